"""What a long chain of work has made so far, kept in a folder, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isogloss import store
from isogloss.data.bitext import Bitext
from isogloss.data.formats import atomic_write
from isogloss.data.links import Links
from isogloss.errors import UsageError
from isogloss.layout import Layout, Numbers, Offsets, check
from isogloss.tasks.tag.projection import check_links

__all__ = ["Stages"]

M = TypeVar("M")
FILE = "stages.json"
LINKS = "checkpoint.links"
_LAYOUT: Layout = {
    "offsets": Offsets("pairs", "links"),
    "source": Numbers("int32", "links", least=0),
    "target": Numbers("int32", "links", least=0),
    "probability": Numbers("float32", "links", least=0),
}


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
                    f"{self.folder}: these are stages of a run with other options, other texts or other models. Run it "
                    "as it was, or without --resume to begin again"
                )
            if not resume:
                self.discard()
        elif self.folder.exists() and not all(_is_unfinished(other.name) for other in self.folder.iterdir()):
            raise UsageError(f"{self.folder}: this folder is to keep what is learnt, but it has other files. Move them")
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as out:
            out.write(own.encode())

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
            kept = check(store.read(place, kind=LINKS).arrays, _LAYOUT, "the links kept", {"pairs": len(bitext)})
            found = Links(**kept, bitext=bitext)
            check_links(bitext, found)
            return found
        made = make()
        chance = np.ones(len(made.source), np.float32) if made.probability is None else made.probability
        made = replace(made, probability=chance)
        arrays = {name: np.ascontiguousarray(getattr(made, name)) for name in _LAYOUT}
        store.save(place, kind=LINKS, options={}, arrays=arrays)
        return made

    def discard(self) -> None:
        """Take the folder away: the result is safe, or is not wanted."""
        if self.folder is not None and (self.folder / FILE).exists():
            shutil.rmtree(self.folder)


def _is_unfinished(name: str) -> bool:
    """Whether this is what a process that was killed has left of its first file (`atomic_write`)."""
    return name.startswith(".") and name.endswith(".part")
