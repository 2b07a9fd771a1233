"""How well does it work on sentences it has not seen? Cross-validation over gold pairs, and learning curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Alignment, Links
from isogloss.data.formats import BitextLike, as_bitext
from isogloss.errors import ParameterError
from isogloss.metrics import AlignmentScore, Comparison, compare, score_links
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.align.features import FeatureExtractor, PairFeatures
from isogloss.tasks.align.supervised.base import SupervisedAligner
from isogloss.tasks.align.supervised.parts import take_pairs
from isogloss.tasks.align.supervised.targets import check_gold
from isogloss.tasks.align.supervised.training import make_folds

__all__ = ["CrossValidation", "CurvePoint", "cross_validate", "learning_curve"]

Factory = Callable[[], SupervisedAligner]


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Every gold pair, predicted by a model that was trained on the other folds.

    Parameters
    ----------
    links : Links
        One row for each pair, in the order of the gold.
    folds : list of int64[.]
        The pairs of each fold.
    scores : list of AlignmentScore
        Of each fold.
    score : AlignmentScore
        Of all pairs together, with bootstrap intervals.
    gold : Links
    """

    links: Links
    folds: list[NDArray[np.int64]]
    scores: list[AlignmentScore]
    score: AlignmentScore
    gold: Links

    def compare(self, other: CrossValidation | Links, **options: Any) -> Comparison:
        """Is it better than another system on the same gold? Paired bootstrap; see `isogloss.metrics.compare`."""
        links = other.links if isinstance(other, CrossValidation) else other
        return compare(self.links, links, self.gold, **options)


def cross_validate(
    aligner: Factory,
    bitext: BitextLike,
    gold: Links,
    *,
    folds: int = 5,
    seed: int = 0,
    unlabelled: BitextLike | None = None,
    extractor: FeatureExtractor | None = None,
    links: Any = None,
    progress: Progress | None = None,
) -> CrossValidation:
    """Train on all folds but one and predict that one, in turn.

    Statistics and the HMM behind the features are learnt once, from the text of all folds (and `unlabelled`): they
    see no labels. Whatever an aligner tunes, it tunes within its own training folds.

    Parameters
    ----------
    aligner : callable
        Makes a new aligner: ``lambda: MatchingAligner(trainer="mira")``.
    extractor : FeatureExtractor, optional
        One that is fitted, for instance to compare aligners on the same features.

    Examples
    --------
    >>> from isogloss import samples
    >>> from isogloss.tasks.align import MatchingAligner
    >>> small = lambda: MatchingAligner(features=("association", "position"), tune=False, iterations=3)
    >>> found = cross_validate(small, samples.bitext("en-de"), samples.gold("en-de"), folds=2)
    >>> len(found.links), len(found.scores), found.score.aer < 50
    (50, 2, True)
    """
    features, first = _features(aligner, bitext, gold, unlabelled, extractor, links, progress)
    if folds < 2:
        raise ParameterError(f"cross_validate: folds should be 2 or more, not {folds!r}")
    groups = make_folds(len(gold), folds, seed)
    rows: list[Alignment | None] = [None] * len(gold)
    scores = []
    progress = progress or QuietProgress()
    progress.start("Cross-validation", len(groups))
    for number, fold in enumerate(groups):
        fresh = first if number == 0 else aligner()
        rest = np.setdiff1d(np.arange(len(gold)), fold)
        fresh.fit_features(take_pairs(features, rest), gold.take(rest))
        found = fresh.predict_features(take_pairs(features, fold))
        for place, alignment in zip(fold.tolist(), found, strict=True):
            rows[place] = alignment
        scores.append(score_links(found, gold.take(fold), bootstrap=0))
        progress.update(number + 1, f"fold {number + 1} of {len(groups)}")
    progress.finish()
    pooled = Links.of(row for row in rows if row is not None)
    return CrossValidation(pooled, groups, scores, score_links(pooled, gold, seed=seed), gold)


@dataclass(frozen=True)
class CurvePoint:
    """The error after so many pairs, in percent: of each repeat, with its mean and standard deviation."""

    size: int
    aers: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.aers))

    @property
    def deviation(self) -> float:
        """Standard deviation over the repeats; 0 for one."""
        return float(np.std(self.aers, ddof=1)) if len(self.aers) > 1 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"size": self.size, "aer": self.mean, "deviation": self.deviation, "repeats": list(self.aers)}


def learning_curve(
    aligner: Factory,
    bitext: BitextLike,
    gold: Links,
    test: tuple[Any, Links],
    *,
    sizes: Sequence[int] = (25, 50, 100, 200, 400),
    repeats: int = 3,
    seed: int = 0,
    unlabelled: BitextLike | None = None,
    extractor: FeatureExtractor | None = None,
    progress: Progress | None = None,
) -> list[CurvePoint]:
    """The error on `test` after learning from more and more gold pairs.

    Each repeat draws one order of the pairs by the seed, and takes the first of it, so that larger sets have the
    smaller ones in them; sizes beyond the gold are left out. Where a size is all of the gold, one repeat is enough.

    Parameters
    ----------
    test : (bitext, gold)
        Pairs to score. Put its text into `unlabelled` to let the features know it, labels unseen.
    """
    if repeats < 1 or not sizes or min(sizes) < 1:
        raise ParameterError("learning_curve: sizes and repeats should be positive integers")
    features, first = _features(aligner, bitext, gold, unlabelled, extractor, None, progress)
    test_text = as_bitext(test[0])
    check_gold(test[1], test_text, "the gold of test")
    test_features = first.extractor_.transform(test_text)
    wanted = sorted({size for size in sizes if size <= len(gold)})
    found: dict[int, list[float]] = {size: [] for size in wanted}
    progress = progress or QuietProgress()
    progress.start("Learning curve", repeats * len(wanted))
    for repeat in range(repeats):
        order = np.random.default_rng([seed, repeat]).permutation(len(gold))
        for place, size in enumerate(wanted):
            if size < len(gold) or repeat == 0:
                chosen = np.sort(order[:size])
                fresh = aligner().fit_features(take_pairs(features, chosen), gold.take(chosen))
                links = fresh.predict_features(test_features)
                found[size].append(score_links(links, test[1], bootstrap=0).aer)
            progress.update(repeat * len(wanted) + place + 1, f"{size} pairs")
    progress.finish()
    return [CurvePoint(size, tuple(found[size])) for size in wanted]


def _features(
    aligner: Factory,
    bitext: BitextLike,
    gold: Links,
    unlabelled: Any,
    extractor: FeatureExtractor | None,
    links: Any,
    progress: Progress | None,
) -> tuple[PairFeatures, SupervisedAligner]:
    """Features of the labelled pairs, and a first aligner that has the extractor."""
    text = as_bitext(bitext)
    check_gold(gold, text)
    first = aligner()
    if extractor is None:
        extractor = first.new_extractor().fit(text, unlabelled, progress=progress)
    first.extractor_ = extractor
    return extractor.transform(text, links), first
