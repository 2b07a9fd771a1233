"""How long a choice between kinds of aligners will take: one stage over all trainings, for people who wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from isogloss.progress import Progress
from isogloss.tasks.align.supervised.base import SupervisedAligner

__all__ = ["TimeLeft", "kind_of"]

COSTS = {"matching": 1.0, "quadratic": 8.0, "itg": 6.0}
"""How long a training takes beside those of other kinds, as long as none was timed."""


def kind_of(contestant: str) -> str:
    """Which kind of aligner "itg/mira" is."""
    return contestant.partition("/")[0]


class TimeLeft:
    """One stage over all trainings, in shares of time: what was measured so far says how long the rest will take.

    Parameters
    ----------
    aligners : dict of str to SupervisedAligner
        One of each kind, as trained in the end.
    rounds : int
        Trainings of each kind before.
    """

    def __init__(
        self, progress: Progress, aligners: Mapping[str, SupervisedAligner], rounds: int, on_dev: bool
    ) -> None:
        self.progress = progress
        self.rounds = dict.fromkeys(aligners, rounds)
        self.seconds: dict[str, list[float]] = {kind: [] for kind in aligners}
        self.last = {kind: _stages(aligner, on_dev) for kind, aligner in aligners.items()}
        self.spent = self.shown = 0.0
        progress.start("Choosing an aligner", 1.0)

    def forget(self, kind: str) -> None:
        """A kind has no further trainings."""
        self.rounds[kind] = 0
        if len(self.last) > 1:
            self.last.pop(kind)

    @contextmanager
    def training(self, kind: str, detail: str, last: bool = False) -> Iterator[Progress]:
        """What a training reports to."""
        expected, stages = self._expected(kind), self.last[kind] if last else [1.0]
        if last:
            self.last = {}
        else:
            self.rounds[kind] -= 1
        after = self._after()
        began = time.monotonic()

        def report(share: float) -> None:
            spent = self.spent + time.monotonic() - began
            left = (1.0 - share) * sum(stages) * expected + after
            self.shown = max(self.shown, min(spent / max(spent + left, 1e-9), 1.0))
            self.progress.update(self.shown, detail)

        report(0.0)
        yield _Inner(report, self.progress.note, stages)
        self.seconds[kind].append(time.monotonic() - began)
        self.spent += self.seconds[kind][-1]

    def _expected(self, kind: str) -> float:
        """Seconds of a training with default settings."""
        if self.seconds[kind]:
            return float(np.median(self.seconds[kind]))
        known = [np.median(seconds) / COSTS[kind_of(other)] for other, seconds in self.seconds.items() if seconds]
        return COSTS[kind_of(kind)] * float(np.mean(known) if known else 1.0)

    def _after(self) -> float:
        """Seconds that are left after a training; the last one is of any kind."""
        last = [self._expected(kind) * sum(stages) for kind, stages in self.last.items()]
        return sum(self._expected(kind) * n for kind, n in self.rounds.items()) + (
            float(np.mean(last)) if last else 0.0
        )


def _stages(aligner: SupervisedAligner, on_dev: bool) -> list[float]:
    """How long the stages of a training take, in trainings with default settings."""
    if not aligner.tune:
        return [1.0]
    settings = aligner.settings()
    tried = float(1 if on_dev else aligner.folds) * max(1.0, settings[0].passes / settings[0].iterations)
    if getattr(aligner, "pairs", False) and len(settings) > 1:  # costs are chosen without pairs of links, which is fast
        return [0.1 * tried * len(settings), 0.1, tried, 1.0]
    return [tried * len(settings), 1.0]


class _Inner:
    """What a training says of its stages, as the share of the training that is done."""

    def __init__(self, report: Callable[[float], None], note: Callable[[str], None], stages: Sequence[float]) -> None:
        self._report, self.note, self._stages = report, note, stages
        self._number, self._total, self._done = -1, 1.0, 0.0

    def start(self, name: str, total: float | None = None) -> None:
        """The next stage."""
        self._number, self._total, self._done = self._number + 1, total or 1.0, 0.0

    def update(self, done: float, detail: str = "") -> None:
        """So much of the stage is done."""
        self._done = done
        self.within(0.0)

    def within(self, fraction: float) -> None:
        """So much of a unit of the stage."""
        before = sum(self._stages[: max(self._number, 0)])
        own = self._stages[self._number] if 0 <= self._number < len(self._stages) else 0.0
        share = (before + own * (self._done + fraction) / self._total) / sum(self._stages)
        self._report(min(max(share, 0.0), 1.0))

    def finish(self) -> None:
        """The stage is over."""
