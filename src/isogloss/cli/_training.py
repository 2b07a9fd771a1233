"""What commands that learn a model have in common: the place is proved first, and what was learnt is kept last."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from isogloss.cli._common import say, write_json
from isogloss.cli._treebanks import standard_input_once

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Training", "passes_line", "passes_of"]


class Saveable(Protocol):
    """What has been learnt."""

    def save(self, path: str, /) -> None: ...


class Tuned(Protocol):
    """What is learnt in passes, the best of which is chosen on dev if there is one."""

    @property
    def trace_(self) -> NDArray[Any]: ...

    @property
    def tuning_(self) -> NDArray[Any]: ...


class Training:
    """One run of a command that learns a model; made before the work, since it refuses what cannot go well.

    Parameters
    ----------
    save : str
        The folder that the model is to be kept in; that it can be is proved.
    *files : str, optional
        What is read, of which one may be standard input.
    quiet : bool
    """

    def __init__(self, save: str, *files: str | None, quiet: bool) -> None:
        from isogloss import store

        self._began = time.perf_counter()
        standard_input_once(*files)
        store.check_place(save)
        self.save, self.quiet = save, quiet

    @property
    def checkpoint(self) -> str:
        """Where an interrupted run leaves what it has learnt."""
        return self.save.rstrip("/") + ".checkpoint"

    def keep(
        self,
        model: Saveable,
        *lines: str,
        json: dict[str, Any] | None = None,
        checkpoints: Sequence[str] | None = None,
    ) -> None:
        """Save the model and say so, after some lines on what it is; write a summary for machines if there is one.

        Checkpoints are not needed any more: the usual one, or those that are named.
        """
        from isogloss import store

        model.save(self.save)
        for checkpoint in (self.checkpoint,) if checkpoints is None else checkpoints:
            store.discard(checkpoint)
        seconds = time.perf_counter() - self._began
        for line in (*lines, f"saved in {self.save}, {seconds:.1f} s"):
            say(line, self.quiet)
        if json is not None:
            write_json(json | {"model": self.save, "seconds": seconds})


def passes_line(model: Tuned, measure: str, dev: str | None) -> str:
    """How good the best pass was on dev, behind a line on the model; nothing without dev."""
    if not len(model.tuning_):
        return ""
    best, many = int(model.tuning_.argmax()) + 1, len(model.tuning_)
    return f"; {measure} {model.tuning_.max():.2f} on {dev} (best of {many} iterations: {best})"


def passes_of(model: Tuned) -> dict[str, Any]:
    """The passes of a model, for machines."""
    tuned = len(model.tuning_) > 0
    return {
        "dev": float(model.tuning_.max()) if tuned else None,
        "passes": int(model.tuning_.argmax()) + 1 if tuned else len(model.trace_),
        "trace": model.trace_,
        "tuning": model.tuning_,
    }
