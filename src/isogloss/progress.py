"""How long work tells a person that it is alive, on stderr and only there.

Work reports to a `Progress`: a stage with a name starts, units of it are done, it finishes. A terminal gets a bar with
the time left, a log file a plain line now and then, a script that asked for quiet nothing. `for_stream` chooses.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["LineProgress", "Progress", "QuietProgress", "TerminalProgress", "for_stream"]


class Progress(Protocol):
    """What work may say. One stage at a time; `start` of the next finishes the one before."""

    def start(self, name: str, total: float | None = None) -> None:
        """A stage begins, of `total` units if that is known: ``start("Model 1", 5)``."""
        ...

    def update(self, done: float, detail: str = "") -> None:
        """So many units are done; `detail` follows the name: ``update(1, "iteration 2 of 5")``."""
        ...

    def within(self, fraction: float) -> None:
        """So much, from 0 to 1, of the unit that is being worked on: shards of an iteration."""
        ...

    def finish(self) -> None:
        """The stage is over, well or not."""
        ...

    def note(self, message: str) -> None:
        """One line that is worth reading even when there is no bar."""
        ...


class QuietProgress:
    """Says nothing."""

    def start(self, name: str, total: float | None = None) -> None:
        """Nothing."""

    def update(self, done: float, detail: str = "") -> None:
        """Nothing."""

    def within(self, fraction: float) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""

    def note(self, message: str) -> None:
        """Nothing."""


class _Counting:
    """Where we are in the stage; the children only show it."""

    def __init__(self, stream: TextIO | None, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._name, self._detail = "", ""
        self._total: float | None = None
        self._done, self._part = 0.0, 0.0
        self._began = clock()

    @property
    def stream(self) -> TextIO:
        return self._stream or sys.stderr

    def start(self, name: str, total: float | None = None) -> None:
        self.finish()
        self._name, self._detail, self._total = name, "", total
        self._done, self._part = 0.0, 0.0
        self._began = self._clock()
        self._show()

    def update(self, done: float, detail: str = "") -> None:
        self._done, self._part, self._detail = done, 0.0, detail
        self._show()

    def within(self, fraction: float) -> None:
        self._part = min(max(fraction, 0.0), 1.0)
        self._show()

    def finish(self) -> None:
        self._name = ""

    def note(self, message: str) -> None:
        self.stream.write(message + "\n")
        self.stream.flush()

    @property
    def _title(self) -> str:
        return f"{self._name}, {self._detail}" if self._detail else self._name

    @property
    def _finished(self) -> float:
        return self._done + self._part if self._total is None else min(self._done + self._part, self._total)

    def _show(self) -> None:
        raise NotImplementedError


class LineProgress(_Counting):
    """For logs: at most one plain line in `every` seconds, and none for work shorter than that.

    Examples
    --------
    >>> seconds = iter([0, 0, 0, 12, 13, 40]).__next__
    >>> progress = LineProgress(sys.stdout, clock=seconds)
    >>> progress.start("Model 1", 4)
    >>> progress.update(1, "iteration 2 of 4")
    Model 1, iteration 2 of 4: 25%, about 36 s left
    >>> progress.update(2, "iteration 3 of 4")
    >>> progress.within(0.5)
    Model 1, iteration 3 of 4: 62%, about 24 s left
    """

    def __init__(
        self, stream: TextIO | None = None, every: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(stream, clock)
        self._every = every
        self._last = self._began

    def _show(self) -> None:
        now = self._clock()
        if not self._name or now - self._last < self._every:
            return
        self._last = now
        text = self._title
        if self._total:
            share = self._finished / self._total
            text += f": {share:.0%}"
            if share > 0:
                text += f", about {_duration((now - self._began) * (1 - share) / share)} left"
        self.note(text)


def _duration(seconds: float) -> str:
    """A rough time in words.

    >>> _duration(4.2), _duration(200), _duration(9000)
    ('4 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class TerminalProgress(_Counting):
    """A bar with the time left, once work has lasted `patience` seconds; rich is not even imported before."""

    def __init__(
        self, stream: TextIO | None = None, patience: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(stream, clock)
        self._patience = patience
        self._first = self._began
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def finish(self) -> None:
        """Take the bar away; the line of a stage that was shown stays with its time."""
        if self._bar is not None:
            self._bar.stop()
        self._bar, self._task = None, None
        super().finish()

    def note(self, message: str) -> None:
        """A line above the bar."""
        if self._bar is not None:
            self._bar.console.print(message, markup=False, highlight=False, soft_wrap=True)
        else:
            super().note(message)

    def _show(self) -> None:
        if not self._name:
            return
        if self._bar is None:
            if self._clock() - self._first < self._patience:
                return
            self._bar = self._make_bar()
            self._bar.start()
            self._task = self._bar.add_task(_plain(self._title), total=self._total)
        assert self._task is not None
        self._bar.update(self._task, description=_plain(self._title), completed=self._finished)

    def _make_bar(self) -> RichProgress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(file=self.stream),
            redirect_stdout=False,  # results go where the user sent them, not through the bar
        )


def _plain(text: str) -> str:
    """Names of files and stages are text, not markup."""
    return text.replace("[", r"\[")


def for_stream(quiet: bool = False, stream: TextIO | None = None) -> Progress:
    """What fits the stream (stderr): nothing when `quiet`, a bar on a terminal, lines in a log."""
    if quiet:
        return QuietProgress()
    where = stream or sys.stderr
    if where.isatty() and os.environ.get("TERM") != "dumb":
        return TerminalProgress(stream)
    return LineProgress(stream)
