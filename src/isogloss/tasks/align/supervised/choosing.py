"""Which kind of aligner suits a text? The gold tells: all are cross-validated in it, and the best is trained.

Where that cannot be told from the aligner without gold, the latter is kept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
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
from isogloss.tasks.align.hmm import HMMAligner
from isogloss.tasks.align.supervised.applying import as_links
from isogloss.tasks.align.supervised.base import SupervisedAligner
from isogloss.tasks.align.supervised.parts import take_pairs
from isogloss.tasks.align.supervised.targets import GoldCells, check_enough, check_gold, check_links
from isogloss.tasks.align.supervised.time_left import TimeLeft, kind_of
from isogloss.tasks.align.supervised.training import make_folds

__all__ = ["KINDS", "Choice", "check_options", "choose_aligner", "unsuited"]

Rows = NDArray[np.int64]
KINDS = {"matching": "MatchingAligner", "quadratic": "QuadraticAligner", "itg": "ItgAligner"}
"""The simpler ones first."""
TIE = 0.05
"""A simpler kind is taken if its AER, in percent, is as close as this to the best."""
ENOUGH = 150
"""Pairs that kinds are compared on: with charts more take long, and what is a clear winner shows on these."""
HMM = "hmm"
"""The aligner without gold, behind the features of all kinds."""
LEVEL = 0.05
"""The p-value below which two aligners are told apart."""
FAILURES = (IsoglossError, MemoryError, ArithmeticError, np.linalg.LinAlgError)
"""What may be wrong between a kind and a text; all else is wrong in the program."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The kind of aligner that did best on held-out gold, and what the others did.

    Parameters
    ----------
    kind : str
        Of the aligner; "hmm" where no kind could be told from the aligner without gold.
    aligner : SupervisedAligner or HMMAligner
        Of that kind, trained on all gold; the `HMMAligner` behind the features, which has seen no gold, if it is kept.
    best : str
        The supervised contestant that did best, or a simpler one about as good: a kind, or "itg/mira" where a kind has
        been tried with several trainers.
    errors : dict of str to AlignmentScore
        Of each contestant, the simpler first, with default settings on held-out pairs: `aer`, and its bootstrap
        interval in ``intervals["aer"]``.
    comparisons : dict of str to Comparison
        The best against each of the others, on the same pairs.
    failed : dict of str to str
        Contestants that could not be trained, and why.
    unsupervised : AlignmentScore or None
        Of the aligner without gold on the same pairs; None if the features have no such aligner (set "hmm").
    gain : Comparison or None
        The best against it.
    n_pairs, n_gold : int
        Pairs that kinds were compared on (that were learnt from, with `dev`), of so many with gold.
    folds : int or None
        Of the cross-validation; None if errors are those on `dev`.
    """

    kind: str
    aligner: SupervisedAligner | HMMAligner
    best: str
    errors: dict[str, AlignmentScore]
    comparisons: dict[str, Comparison]
    failed: dict[str, str]
    unsupervised: AlignmentScore | None
    gain: Comparison | None
    n_pairs: int
    n_gold: int
    folds: int | None

    @property
    def is_supervised(self) -> bool:
        """Whether what was learnt from gold is taken."""
        return self.kind != HMM

    def __str__(self) -> str:
        where = "on dev" if self.folds is None else f"in {self.folds}-fold cross-validation within the gold"
        if self.n_pairs < self.n_gold:
            where += f" ({self.n_pairs} of {self.n_gold} pairs, drawn by the seed)"
        errors = ", ".join(f"{kind} {score.aer:.2f}" for kind, score in self.errors.items())
        words = f"AER {where}, default settings: {errors}; {'taken' if self.is_supervised else 'best'}: {self.best}"
        if self.comparisons:
            rival = min(self.comparisons, key=lambda kind: self.errors[kind].aer)
            words += f" (against {rival} p = {self.comparisons[rival].p_value:.2g})"
        if self.gain is None or self.unsupervised is None:
            return words
        words += f"; without gold, by the HMM alone, {self.unsupervised.aer:.2f}"
        if self.is_supervised:
            return f"{words} (p = {self.gain.p_value:.2g})"
        finding = "is not better than" if self.gain.delta >= 0 else "cannot be told from"
        return f"{words}. {self.best} {finding} that (p = {self.gain.p_value:.2g}), so the HMM is kept"

    def as_dict(self) -> dict[str, Any]:
        """Plain data; errors and differences in percent."""
        return {
            "kind": self.kind,
            "best": self.best,
            "held_out": "dev" if self.folds is None else "folds",
            "folds": self.folds,
            "pairs": self.n_pairs,
            "gold_pairs": self.n_gold,
            "errors": {kind: score.as_dict() for kind, score in self.errors.items()},
            "comparisons": {kind: found.as_dict() for kind, found in self.comparisons.items()},
            "failed": dict(self.failed),
            "unsupervised": None if self.unsupervised is None else self.unsupervised.as_dict(),
            "gain": None if self.gain is None else self.gain.as_dict(),
        }


def choose_aligner(
    bitext: BitextLike,
    gold: Links,
    unlabelled: BitextLike | None = None,
    *,
    kinds: Sequence[str] = ("matching", "quadratic", "itg"),
    folds: int = 5,
    level: float = LEVEL,
    links: Mapping[str, Links] | None = None,
    dev: tuple[Any, Links] | None = None,
    dev_links: Mapping[str, Links] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Choice:
    """Compare kinds of aligners on held-out gold, and train the best on all of it.

    Every kind is trained with its default settings on the same folds and features, "itg" with each of its trainers; the
    least AER over all held-out pairs wins, or a simpler kind within 0.05 points of it. Kinds that cannot be trained are
    passed over with a warning. The error of the winner is that of the best of five, so a little too good.

    Where the winner is not better than the `HMMAligner` behind the features by more than chance (a paired bootstrap
    over the held-out pairs), that aligner is what is given back: it has seen the text and no gold.

    Parameters
    ----------
    bitext, gold, unlabelled
        As for `SupervisedAligner.fit`.
    kinds : sequence of str
        Among "matching", "quadratic" and "itg".
    folds : int
        Of the comparison, and of the choice of settings for the kind that is taken. Where gold has more than 150
        pairs, the comparison is on 150 of them, drawn by the seed, since training with charts is slow.
    level : float
        The p-value below which the winner is taken in place of the aligner without gold; 1 takes it always.
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
    (['matching', 'itg/likelihood', 'itg/mira', 'itg/softmax-margin'], True)
    """
    if not 0 <= level <= 1:
        raise ParameterError(f"choose_aligner: level should be from 0 to 1, not {level!r}")
    aligners = _new_aligners(kinds, {**options, "folds": folds, "links": tuple(links or ())})
    return _Choosing(_contestants(aligners), dev, dev_links, progress or QuietProgress(), level).run(
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


def _contestants(aligners: Mapping[str, SupervisedAligner]) -> dict[str, SupervisedAligner]:
    """One for each kind, or for each of its trainers where cross-validation is to choose between them."""
    found: dict[str, SupervisedAligner] = {}
    for kind, aligner in aligners.items():
        ways = aligner.ways()
        if len(ways) == 1:
            found[kind] = aligner
            continue
        for way in ways:
            found[f"{kind}/{way}"] = type(aligner).of_options({**aligner.get_params(), "trainer": way})
    return found


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
        The contestants, not fitted, the simpler first.
    level : float
        The p-value below which the best is taken in place of the aligner without gold.
    """

    def __init__(
        self,
        aligners: dict[str, SupervisedAligner],
        dev: tuple[Any, Links] | None,
        dev_links: Mapping[str, Links] | None,
        progress: Progress,
        level: float = LEVEL,
    ) -> None:
        self.aligners, self.progress, self.level = aligners, progress, level
        self.first = next(iter(aligners.values()))  # for what all have in common
        self.dev = None if dev is None else (as_bitext(dev[0]), dev[1])
        self.dev_links = dev_links
        self.failed: dict[str, str] = {}

    def run(self, bitext: Bitext, gold: Links, unlabelled: Any, links: Mapping[str, Links] | None) -> Choice:
        self._check(bitext, gold)
        chosen, n_gold = self._draw(bitext, gold)
        taken: SupervisedAligner | HMMAligner
        with using_threads(self.first.threads):
            extractor = self._extractor().fit(bitext, unlabelled, progress=self.progress)
            features = extractor.transform(bitext.take(chosen), _taken(links, chosen))
            learnt = gold.take(chosen)
            judged, splits = self._splits(features, learnt, extractor)
            whole = TimeLeft(self.progress, self.aligners, len(splits), self.dev is not None)
            try:
                found, plain = self._link(splits, len(judged), whole)
                best, errors, comparisons = self._compare(found, judged)
                score, gain = self._against(found[best], plain, judged)
                if gain is not None and self.level < 1 and not (gain.delta < 0 and gain.p_value < self.level):
                    kind, taken = HMM, _unsupervised(extractor)
                else:
                    kind, aligner = kind_of(best), self.aligners[best]
                    aligner.extractor_ = own = extractor.only(aligner.new_extractor().sets)  # a model as small as alone
                    if len(chosen) < n_gold:
                        features, learnt = own.transform(bitext, links), gold
                    with whole.training(best, f"training {best}", last=True) as inner:
                        taken = aligner.fit_features(features, learnt, self._dev_features(own), inner)
            finally:
                self.progress.finish()
        n_folds = None if self.dev is not None else len(splits)
        return Choice(
            kind, taken, best, errors, comparisons, self.failed, score, gain, len(chosen), n_gold, n_folds
        )  # fmt: skip

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

    def _link(
        self, splits: Sequence[Callable[[], _Judged]], n_pairs: int, whole: TimeLeft
    ) -> tuple[dict[str, Links], Links | None]:
        """What each contestant makes of held-out pairs, and what the aligner without gold does, if there is one.

        All have a fold before any has the next, so that times show early.
        """
        rows: dict[str, list[Alignment | None]] = {kind: [None] * n_pairs for kind in (*self.aligners, HMM)}
        for number, make in enumerate(splits):
            judged = make()
            if HMM in judged.held_out.link_names:
                for row, alignment in zip(judged.rows.tolist(), _links_without_gold(judged.held_out), strict=True):
                    rows[HMM][row] = alignment
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
        every = {
            kind: Links.of(row for row in rows[kind] if row is not None) for kind in rows if kind not in self.failed
        }
        plain = every.pop(HMM)
        return every, plain if len(plain) == n_pairs else None

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
        kind = next(kind for kind, score in errors.items() if score.aer <= least + TIE)
        others = {other: links for other, links in found.items() if other != kind}
        return kind, errors, {other: compare(found[kind], links, gold, seed=seed) for other, links in others.items()}

    def _against(
        self, best: Links, plain: Links | None, gold: Links
    ) -> tuple[AlignmentScore, Comparison] | tuple[None, None]:
        """The error of the aligner without gold, and how the best differs from it."""
        if plain is None:
            return None, None
        seed = self.first.seed
        return score_links(plain, gold, seed=seed), compare(best, plain, gold, seed=seed)


def _links_without_gold(features: PairFeatures) -> Links:
    """What the HMM behind the features links."""
    linked = features.links[:, features.column("hmm_link")] > 0
    cells = (linked[features.cells_of(k)].reshape(features.shape(k)) for k in range(len(features)))
    return as_links([(frozenset((i, j) for i, j in np.argwhere(own).tolist()), None) for own in cells], None)


def _unsupervised(extractor: FeatureExtractor) -> HMMAligner:
    """The HMM behind the features, as an aligner of its own."""
    aligner = extractor.aligners_[HMM]
    aligner.reading_ = extractor.reading_
    return aligner


def _taken(links: Mapping[str, Links] | None, rows: Rows) -> dict[str, Links] | None:
    return None if links is None else {name: given.take(rows) for name, given in links.items()}
