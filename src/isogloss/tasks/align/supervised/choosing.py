"""Which kind of aligner suits a text? The gold tells: all are cross-validated in it, and the best is trained."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Alignment, Bitext, Links
from isogloss.data.formats import BitextLike, IsoglossWarning, as_bitext
from isogloss.engine.threads import using_threads
from isogloss.errors import IsoglossError, LinksError, ParameterError, UsageError
from isogloss.metrics import AlignmentScore, Comparison, compare, score_links
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.align.features import FeatureExtractor, PairFeatures
from isogloss.tasks.align.supervised.base import SupervisedAligner
from isogloss.tasks.align.supervised.parts import take_pairs
from isogloss.tasks.align.supervised.targets import GoldCells, check_enough, check_gold, check_links
from isogloss.tasks.align.supervised.training import make_folds

__all__ = ["KINDS", "Choice", "check_options", "choose_aligner", "unsuited"]

Rows = NDArray[np.int64]
KINDS = {"matching": "MatchingAligner", "quadratic": "QuadraticAligner", "itg": "ItgAligner"}
"""The simpler ones first."""
TIE = 0.05
"""A simpler kind is taken if its AER, in percent, is as close as this to the best."""
ENOUGH = 150
"""Pairs that kinds are compared on: with charts more take long, and what is a clear winner shows on these."""
COSTS = {"matching": 1.0, "quadratic": 6.0, "itg": 6.0}
"""How long a training takes beside those of other kinds, as long as none was timed."""
FAILURES = (IsoglossError, MemoryError, ArithmeticError, np.linalg.LinAlgError)
"""What may be wrong between a kind and a text; all else is wrong in the program."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The kind of aligner that did best on held-out gold, and what the others did.

    Parameters
    ----------
    kind : str
    aligner : SupervisedAligner
        Of that kind, trained on all gold.
    errors : dict of str to AlignmentScore
        Of each kind, the simpler first, with default settings on held-out pairs: `aer`, and its bootstrap interval in
        ``intervals["aer"]``.
    comparisons : dict of str to Comparison
        The kind that was taken against each of the others, on the same pairs.
    failed : dict of str to str
        Kinds that could not be trained, and why.
    n_pairs, n_gold : int
        Pairs that kinds were compared on (that were learnt from, with `dev`), of so many with gold.
    folds : int or None
        Of the cross-validation; None if errors are those on `dev`.
    """

    kind: str
    aligner: SupervisedAligner
    errors: dict[str, AlignmentScore]
    comparisons: dict[str, Comparison]
    failed: dict[str, str]
    n_pairs: int
    n_gold: int
    folds: int | None

    def __str__(self) -> str:
        where = "on dev" if self.folds is None else f"in {self.folds}-fold cross-validation within the gold"
        if self.n_pairs < self.n_gold:
            where += f" ({self.n_pairs} of {self.n_gold} pairs, drawn by the seed)"
        errors = ", ".join(f"{kind} {score.aer:.2f}" for kind, score in self.errors.items())
        words = f"AER {where}, default settings: {errors}; taken: {self.kind}"
        if self.comparisons:
            rival = min(self.comparisons, key=lambda kind: self.errors[kind].aer)
            words += f" (against {rival} p = {self.comparisons[rival].p_value:.2g})"
        return words

    def as_dict(self) -> dict[str, Any]:
        """Plain data; errors and differences in percent."""
        return {
            "kind": self.kind,
            "held_out": "dev" if self.folds is None else "folds",
            "folds": self.folds,
            "pairs": self.n_pairs,
            "gold_pairs": self.n_gold,
            "errors": {kind: score.as_dict() for kind, score in self.errors.items()},
            "comparisons": {kind: found.as_dict() for kind, found in self.comparisons.items()},
            "failed": dict(self.failed),
        }


def choose_aligner(
    bitext: BitextLike,
    gold: Links,
    unlabelled: BitextLike | None = None,
    *,
    kinds: Sequence[str] = ("matching", "quadratic", "itg"),
    folds: int = 5,
    links: Mapping[str, Links] | None = None,
    dev: tuple[Any, Links] | None = None,
    dev_links: Mapping[str, Links] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Choice:
    """Compare kinds of aligners on held-out gold, and train the best on all of it.

    Every kind is trained with its default settings on the same folds and features; the least AER over all held-out
    pairs wins, or a simpler kind within 0.05 points of it. Kinds that cannot be trained are passed over with a warning.
    The error of the winner is that of the best of three, so a little too good.

    Parameters
    ----------
    bitext, gold, unlabelled
        As for `SupervisedAligner.fit`.
    kinds : sequence of str
        Among "matching", "quadratic" and "itg".
    folds : int
        Of the comparison, and of the choice of settings for the kind that is taken. Where gold has more than 150
        pairs, the comparison is on 150 of them, drawn by the seed, since training with charts is slow.
    links : mapping of str to Links, optional
        Links by other systems for `bitext`, as features.
    dev : (bitext, gold), optional
        Kinds are compared on it, and settings chosen, instead of on folds.
    dev_links : mapping of str to Links, optional
        Links by other systems for the text of `dev`.
    **options
        Of all aligners: see `SupervisedAligner`. With ``tune=False``, the kind that is taken keeps its default settings
        too, which saves most of the time after the comparison.

    Examples
    --------
    >>> from isogloss import samples
    >>> small = {"features": ("association", "position"), "iterations": 2, "tune": False}
    >>> choice = choose_aligner(samples.bitext("en-de"), samples.gold("en-de"), folds=2, kinds=["matching", "itg"],
    ...                         **small)
    >>> list(choice.errors), type(choice.aligner).__name__ == KINDS[choice.kind]
    (['matching', 'itg'], True)
    """
    aligners = _new_aligners(kinds, {**options, "folds": folds, "links": tuple(links or ())})
    return _Choosing(aligners, dev, dev_links, progress or QuietProgress()).run(
        as_bitext(bitext), gold, unlabelled, links
    )


def unsuited(kinds: Sequence[str], options: Mapping[str, Any]) -> tuple[str, str] | None:
    """An option that cannot be given for several kinds at once, and why; None if all can."""
    classes = {kind: _class(kind) for kind in kinds}
    shared = set.intersection(*(set(cls._options) for cls in classes.values()))
    for name, value in options.items():
        if name == "trainer":
            having = [kind for kind, cls in classes.items() if value in cls.DEFAULTS]
            if 0 < len(having) < len(kinds):
                return name, f"only {' and '.join(having)} can be trained by {value}"
        elif name == "regularisation" and value is not None and len(kinds) > 1:
            return name, "a number that each kind takes in another sense"
        elif name not in shared:
            if having := [kind for kind, cls in classes.items() if name in cls._options]:
                return name, f"an option of {' and '.join(having)} only"
            return name, f"no kind has such an option; all have {', '.join(sorted(shared - {'regularisation'}))}"
    return None


def _class(kind: str) -> type[SupervisedAligner]:
    found: type[SupervisedAligner] = getattr(import_module(f"isogloss.tasks.align.supervised.{kind}"), KINDS[kind])
    return found


def _new_aligners(kinds: Sequence[str], options: Mapping[str, Any]) -> dict[str, SupervisedAligner]:
    """One of each kind, the simpler first, with its options checked."""
    if isinstance(kinds, str) or not kinds or not set(kinds) <= set(KINDS):
        raise ParameterError(f"choose_aligner: kinds should be some of {', '.join(KINDS)}, not {kinds!r}")
    kinds = [kind for kind in KINDS if kind in kinds]
    if (problem := unsuited(kinds, options)) is not None:
        raise UsageError(
            f"choose_aligner: {problem[0]}: {problem[1]}, and {', '.join(kinds)} are to be compared. Leave it out, or "
            "name fewer kinds"
        )
    if len(kinds) > 1:  # costs of errors, say, which trainers of some kinds do not look at
        return {kind: _class(kind).of_options(options) for kind in kinds}
    alone = _class(kinds[0])(**options)
    alone.check_params()
    return {kinds[0]: alone}


def check_options(kinds: Sequence[str], options: Mapping[str, Any]) -> None:
    """`ParameterError` for values that a kind does not take, before the work."""
    _new_aligners(kinds, options)


class _Judged(NamedTuple):
    """Pairs to learn from and pairs to link, the same for all kinds."""

    features: PairFeatures
    gold: Links
    held_out: PairFeatures
    rows: Rows
    """Where the held-out pairs stand."""


class _Choosing:
    """One comparison, and the training after it.

    Parameters
    ----------
    aligners : dict of str to SupervisedAligner
        One of each kind, not fitted.
    """

    def __init__(
        self,
        aligners: dict[str, SupervisedAligner],
        dev: tuple[Any, Links] | None,
        dev_links: Mapping[str, Links] | None,
        progress: Progress,
    ) -> None:
        self.aligners, self.progress = aligners, progress
        self.first = next(iter(aligners.values()))  # for what all have in common
        self.dev = None if dev is None else (as_bitext(dev[0]), dev[1])
        self.dev_links = dev_links
        self.failed: dict[str, str] = {}

    def run(self, bitext: Bitext, gold: Links, unlabelled: Any, links: Mapping[str, Links] | None) -> Choice:
        self._check(bitext, gold)
        chosen, n_gold = self._draw(bitext, gold)
        with using_threads(self.first.threads):
            extractor = self._extractor().fit(bitext, unlabelled, progress=self.progress)
            features = extractor.transform(bitext.take(chosen), _taken(links, chosen))
            learnt = gold.take(chosen)
            judged, splits = self._splits(features, learnt, extractor)
            whole = _Whole(self.progress, self.aligners, len(splits), self.dev is not None)
            try:
                found = self._link(splits, len(judged), whole)
                kind, errors, comparisons = self._compare(found, judged)
                aligner = self.aligners[kind]
                aligner.extractor_ = own = extractor.only(aligner.new_extractor().sets)  # a model as small as alone
                if len(chosen) < n_gold:
                    features, learnt = own.transform(bitext, links), gold
                with whole.training(kind, f"training {kind}", last=True) as inner:
                    aligner.fit_features(features, learnt, self._dev_features(own), inner)
            finally:
                self.progress.finish()
        n_folds = None if self.dev is not None else len(splits)
        return Choice(kind, aligner, errors, comparisons, self.failed, len(chosen), n_gold, n_folds)

    # --- what is compared on

    def _check(self, bitext: Bitext, gold: Links) -> None:
        check_gold(gold, bitext)
        if self.dev is not None:
            check_gold(self.dev[1], self.dev[0], "the gold of dev")
            check_links(self.dev_links, self.first.links, "choose_aligner: dev_links")
        elif self.dev_links is not None:
            raise UsageError("choose_aligner: dev_links are given without dev=(bitext, gold)")

    def _usable(self, bitext: Bitext, gold: Links) -> Rows:
        """Pairs that can be learnt from and judged."""
        lengths = np.stack([bitext.source.ids.lengths, bitext.target.ids.lengths])
        usable = (lengths.min(axis=0) > 0) & (lengths.max(axis=0) <= self.first.max_length)
        if self.first.empty == "skip":
            usable &= np.diff(gold.offsets) > 0
        return np.flatnonzero(usable)

    def _draw(self, bitext: Bitext, gold: Links) -> tuple[Rows, int]:
        """The pairs to compare on, and of how many."""
        usable = self._usable(bitext, gold)
        shapes = np.stack([bitext.source.ids.lengths, bitext.target.ids.lengths], axis=1)[usable]
        check_enough(GoldCells.of(gold.take(usable), shapes), ENOUGH, "choose_aligner")  # few: training says so
        if self.dev is None and len(usable) < 2:
            raise LinksError(
                "choose_aligner: one pair with gold cannot tell which kind of aligner is best. Align more by hand, "
                "give dev=(bitext, gold), or take a MatchingAligner"
            )
        if len(usable) <= ENOUGH:
            return usable, len(usable)
        drawn = np.random.default_rng(self.first.seed).permutation(len(usable))[:ENOUGH]
        return usable[np.sort(drawn)], len(usable)

    def _extractor(self) -> FeatureExtractor:
        """One that makes the features of all kinds."""
        extractors = [aligner.new_extractor() for aligner in self.aligners.values()]
        extractors[0].sets = tuple(dict.fromkeys(name for one in extractors for name in one.sets))
        return extractors[0]

    def _dev_features(self, extractor: FeatureExtractor) -> tuple[PairFeatures, Links] | None:
        return None if self.dev is None else (extractor.transform(self.dev[0], self.dev_links), self.dev[1])

    def _splits(
        self, features: PairFeatures, gold: Links, extractor: FeatureExtractor
    ) -> tuple[Links, Sequence[Callable[[], _Judged]]]:
        """The gold to judge by, and what makes each split: dev, or each fold in turn."""
        if self.dev is not None:
            usable = self._usable(*self.dev)
            if not len(usable):
                raise LinksError("choose_aligner: no pair of dev has gold links, so nothing can be chosen on it")
            other = extractor.transform(self.dev[0].take(usable), _taken(self.dev_links, usable))
            one = _Judged(features, gold, other, np.arange(len(usable)))
            return self.dev[1].take(usable), [lambda: one]

        def split(fold: Rows) -> _Judged:
            rest = np.setdiff1d(np.arange(len(gold)), fold)
            return _Judged(take_pairs(features, rest), gold.take(rest), take_pairs(features, fold), fold)

        folds = make_folds(len(gold), self.first.folds, self.first.seed)
        return gold, [lambda fold=fold: split(fold) for fold in folds]

    # --- comparing

    def _link(self, splits: Sequence[Callable[[], _Judged]], n_pairs: int, whole: _Whole) -> dict[str, Links]:
        """What each kind makes of held-out pairs. All have a fold before any has the next, so that times show early."""
        rows: dict[str, list[Alignment | None]] = {kind: [None] * n_pairs for kind in self.aligners}
        for number, make in enumerate(splits):
            judged = make()
            for kind in self.aligners:
                if kind in self.failed:
                    continue
                detail = kind if len(splits) == 1 else f"{kind}, fold {number + 1} of {len(splits)}"
                try:
                    with whole.training(kind, detail) as inner, warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # of little gold or long pairs, in every fold
                        fitted = self._fresh(kind).fit_features(judged.features, judged.gold, progress=inner)
                        found = fitted.predict_features(judged.held_out)
                except FAILURES as problem:
                    self.failed[kind] = str(problem) or type(problem).__name__
                    whole.forget(kind)
                    warnings.warn(f"{kind} is passed over: {self.failed[kind]}", IsoglossWarning, stacklevel=4)
                    continue
                for row, alignment in zip(judged.rows.tolist(), found, strict=True):
                    rows[kind][row] = alignment
        if len(self.failed) == len(self.aligners):
            reasons = "; ".join(f"{kind}: {reason}" for kind, reason in self.failed.items())
            raise LinksError(f"choose_aligner: no kind of aligner can be trained on this gold. {reasons}")
        return {
            kind: Links.of(row for row in rows[kind] if row is not None) for kind in rows if kind not in self.failed
        }

    def _fresh(self, kind: str) -> SupervisedAligner:
        """Another aligner of a kind, with default settings."""
        whole = self.aligners[kind]
        aligner = type(whole)(**whole.get_params()).set_params(tune=False)
        if aligner.threshold is None:  # then temperatures make no link, and take their time
            aligner.calibrate = lambda held_out: (1.0, 0.5)  # type: ignore[method-assign]
        return aligner

    def _compare(
        self, found: dict[str, Links], gold: Links
    ) -> tuple[str, dict[str, AlignmentScore], dict[str, Comparison]]:
        """The simplest kind that is about as good as the best; errors; and how sure that is."""
        seed = self.first.seed
        errors = {kind: score_links(links, gold, seed=seed) for kind, links in found.items()}
        least = min(score.aer for score in errors.values())
        kind = next(kind for kind in KINDS if kind in errors and errors[kind].aer <= least + TIE)
        others = {other: links for other, links in found.items() if other != kind}
        return kind, errors, {other: compare(found[kind], links, gold, seed=seed) for other, links in others.items()}


def _taken(links: Mapping[str, Links] | None, rows: Rows) -> dict[str, Links] | None:
    return None if links is None else {name: given.take(rows) for name, given in links.items()}


# Time left -----------------------------------------------------------------------------------------------------------


class _Whole:
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
        known = [np.median(seconds) / COSTS[other] for other, seconds in self.seconds.items() if seconds]
        return COSTS[kind] * float(np.mean(known) if known else 1.0)

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
