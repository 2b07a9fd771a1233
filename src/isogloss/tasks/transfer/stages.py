"""What a long chain of work has made so far, kept in a folder, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isogloss import store
from isogloss.data.bitext import Bitext
from isogloss.data.links import Links
from isogloss.errors import UsageError

__all__ = ["Stages"]

M = TypeVar("M")
FILE = "stages.json"
LINKS = "checkpoint.links"


class Stages:
    """A folder with what each stage has made: saved models and links.

    Parameters
    ----------
    folder : path, optional
        Without it nothing is kept.
    resume : bool
        Take what is there; otherwise a folder of an earlier run is emptied.
    fingerprint : mapping
        What the run depends on. A folder with another one is refused, since its stages are of another run.
    """

    def __init__(self, folder: str | PathLike[str] | None, resume: bool, fingerprint: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else Path(fspath(folder))
        self.resume = resume
        if self.folder is None:
            return
        own = json.dumps(fingerprint, sort_keys=True, default=str)
        file = self.folder / FILE
        if file.exists():
            if resume and file.read_text(encoding="utf-8") != own:
                raise UsageError(
                    f"{self.folder}: these are stages of a run with other options or other texts. Run it as it was, or "
                    "without --resume to begin again"
                )
            if not resume:
                self.discard()
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise UsageError(f"{self.folder}: this folder is to keep what is learnt, but it has other files. Move them")
        self.folder.mkdir(parents=True, exist_ok=True)
        file.write_text(own, encoding="utf-8")

    def keeping(self, name: str) -> dict[str, Any]:
        """Where the stage `name` is kept while it is going on, as arguments of `fit`."""
        if self.folder is None:
            return {}
        return {"checkpoint": self.folder / f"{name}.checkpoint", "resume": self.resume}

    def model(self, name: str, make: Callable[[], M]) -> M:
        """The model of a stage: as an earlier run left it, or made now, and kept."""
        if self.folder is None:
            return make()
        place = self.folder / name
        if self.resume and place.exists():
            kept: M = store.load(place)
            return kept
        made = make()
        made.save(place)  # type: ignore[attr-defined]
        running = self.folder / f"{name}.checkpoint"
        if running.exists():
            store.discard(running)
        return made

    def links(self, bitext: Bitext, make: Callable[[], Links]) -> Links:
        """Links of a bitext, in the same way."""
        if self.folder is None:
            return make()
        place = self.folder / "links"
        if self.resume and place.exists():
            arrays = store.read(place, kind=LINKS).arrays
            chance = arrays.get("probability")
            if len(arrays["offsets"]) == len(bitext) + 1:
                return Links(arrays["offsets"], arrays["source"], arrays["target"], chance, None, bitext)
        made = make()
        arrays = {"offsets": made.offsets, "source": made.source, "target": made.target}
        if made.probability is not None:
            arrays["probability"] = made.probability
        store.save(place, kind=LINKS, options={}, arrays={k: np.ascontiguousarray(v) for k, v in arrays.items()})
        return made

    def discard(self) -> None:
        """Take the folder away: the result is safe, or is not wanted."""
        if self.folder is not None and (self.folder / FILE).exists():
            shutil.rmtree(self.folder)
