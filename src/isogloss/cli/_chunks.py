"""Training a part of the text at a time, with a checkpoint after each: a folder of one saved model and `run.json`."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from isogloss import store
from isogloss._version import __version__
from isogloss.cli._common import say, write_result
from isogloss.data import Bitext
from isogloss.errors import ModelError, UsageError
from isogloss.learners.runner import Interrupted
from isogloss.progress import Progress

__all__ = ["Chunks", "check_kind", "discard", "is_checkpoint"]

_RUN = "run.json"
_MODEL = "chunk-{}"


class Chunks:
    """The parts that have been learnt from, and the aligner that knows them.

    Parameters
    ----------
    aligner : Aligner
        Not fitted yet; `take_up` puts another in its place.
    checkpoint : str or None
        The folder; None when the output has no place beside it.
    fingerprint : dict
        What the run depends on besides the text; a checkpoint with another one is refused.
    """

    def __init__(self, aligner: Any, checkpoint: str | None, fingerprint: dict[str, Any], progress: Progress) -> None:
        self.aligner, self.progress = aligner, progress
        self.folder = None if checkpoint is None else Path(checkpoint)
        self.fingerprint: dict[str, Any] = json.loads(store.as_json({**fingerprint, "version": __version__}))
        self.done = self.kept = 0
        self.hash = ""
        self.hash_kept = ""
        self.trace: list[float] = []

    def take_up(self) -> None:
        """Go back to where the checkpoint is, if there is one and it is of this run."""
        assert self.folder is not None
        if not self.folder.exists():
            say(f"{self.folder}: no checkpoint yet, so this starts from the beginning")
            return
        try:
            run = json.loads((self.folder / _RUN).read_text(encoding="utf-8"))
            self.kept, self.hash_kept, self.trace = int(run["chunks"]), str(run["data"]), list(run["trace"])
            before = dict(run["fingerprint"])
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{self.folder}: this checkpoint is damaged. Start again without --resume") from None
        for name in sorted(before.keys() | self.fingerprint.keys()):
            if before.get(name) != self.fingerprint.get(name):
                raise _another_run(self.folder, f"{name} was {before.get(name)} and is {self.fingerprint.get(name)}")
        self.aligner = store.load(self.folder / _MODEL.format(self.kept))

    def learn(self, bitext: Bitext) -> None:
        """Learn from the next part, unless the checkpoint did so already."""
        sides = (bitext.source, bitext.target)
        self.hash = store.data_hash(self.hash, *(part for side in sides for part in (side.ids, side.vocabulary)))
        if self.done < self.kept:
            self.done += 1
            if self.done == self.kept and self.hash != self.hash_kept:
                assert self.folder is not None
                raise _another_run(self.folder, "the text has changed")
            return
        try:
            learn = self.aligner.update if self.done else self.aligner.fit
            learn(bitext, progress=self.progress)
        except Interrupted:
            raise Interrupted(f"stopped in pairs {bitext.line_of(0):,} and after." + self._what_is_kept()) from None
        except KeyboardInterrupt as stop:
            raise Interrupted(f"{str(stop) or 'stopped by Ctrl-C'}." + self._what_is_kept()) from None
        self.done += 1
        self.trace += [float(value) for value in getattr(self.aligner, "trace_", ())]
        if self.folder is not None:
            self._keep(self.folder)

    def _keep(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.aligner.save(folder / _MODEL.format(self.done))
        run = {"chunks": self.done, "data": self.hash, "trace": self.trace, "fingerprint": self.fingerprint}
        write_result(str(folder / _RUN), store.as_json(run))
        if self.kept:
            store.discard(folder / _MODEL.format(self.kept))
        self.kept = self.done

    def _what_is_kept(self) -> str:
        if self.folder is None:
            return " Nothing was kept, because the output is not a file"
        if not self.kept:
            return " No part was finished; run it again"
        return (
            f" {self.folder} keeps the model of {self.kept} parts: run the same again with --resume to go on from there"
        )


def _another_run(folder: Path, why: str) -> UsageError:
    return UsageError(
        f"{folder}: this checkpoint is of another run: {why}. "
        "Resume with the same text and options, or start again without --resume"
    )


def check_kind(checkpoint: str, in_chunks: bool, resume: bool) -> None:
    """Make way for a new run where an older one with or without chunks left something; to resume it, be the same."""
    if not os.path.isdir(checkpoint) or is_checkpoint(checkpoint) == in_chunks:
        if not resume and in_chunks:
            discard(checkpoint)
        return
    if resume:
        raise _another_run(Path(checkpoint), f"it was run with{'out' if in_chunks else ''} --chunk")
    discard(checkpoint)


def is_checkpoint(folder: str | Path) -> bool:
    """Whether a run with chunks left it."""
    return (Path(folder) / _RUN).is_file()


def discard(checkpoint: str) -> None:
    """Delete a checkpoint of either kind, and nothing else."""
    folder = Path(checkpoint)
    if not is_checkpoint(folder):
        store.discard(folder)
        return
    for model in folder.glob(_MODEL.format("*")):
        store.discard(model)
    for leftover in folder.glob(".chunk-*.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with suppress(OSError):
        (folder / _RUN).unlink()
        folder.rmdir()
