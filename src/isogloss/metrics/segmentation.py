"""Scores of morphemes: those of the shared task, boundaries inside words, and a matching for canonical gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.segmentation import Morphemes, Segmentation
from isogloss.errors import ParameterError, SegmentationError
from isogloss.metrics._resampling import Difference, paired
from isogloss.metrics.scores import Sample, Score, precision_recall

__all__ = ["SegmentationComparison", "SegmentationScore", "compare_segmentations", "score_segmentation"]

KINDS = ("morpheme", "boundary", "emma")
_RATES = ("precision", "recall", "f1")
_REMEDY = "Cut the words of the gold file (`isogloss segment apply MODEL GOLD`), and leave its lines in their order"
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, repr=False)
class SegmentationScore(Score):
    """How good segmentations are, in percent.

    Parameters
    ----------
    morpheme_precision, morpheme_recall, morpheme_f1 : float
        Of the longest common subsequence of both lists of morphemes of a line, as the shared task counts.
    boundary_precision, boundary_recall, boundary_f1 : float
        Of boundaries inside words; those of words themselves are not counted. Where morphemes of gold are no pieces of
        their words, boundaries are those of `isogloss.data.segmentation.surface_pieces`.
    emma_precision, emma_recall, emma_f1 : float
        Of morphemes under the best matching of found ones with those of gold, one with one: what a piece is called
        does not matter as long as it is called so always.
    words_right : float
        Words all of whose morphemes are right.
    found, gold : int
        Morphemes.
    """

    morpheme_precision: float
    morpheme_recall: float
    morpheme_f1: float
    boundary_precision: float
    boundary_recall: float
    boundary_f1: float
    emma_precision: float
    emma_recall: float
    emma_f1: float
    words_right: float
    found: int
    gold: int
    words: int

    @property
    def measures(self) -> tuple[str, ...]:
        """Precision, recall and F1 of each kind, and whole words."""
        return (*(f"{kind}_{rate}" for kind in KINDS for rate in _RATES), "words_right")

    @property
    def headline(self) -> str:
        """`morpheme_f1`."""
        return "morpheme_f1"

    def _shown(self) -> tuple[str, ...]:
        return ("morpheme_f1", "boundary_f1")

    def _further(self) -> dict[str, Any]:
        nested = {kind: {rate: self[f"{kind}_{rate}"] for rate in _RATES} for kind in KINDS}
        return {**nested, "words": self.words, "found": self.found, "gold": self.gold}


@dataclass(frozen=True)
class SegmentationComparison(Difference):
    """The difference in morpheme F1 of two systems on the same words."""

    def __str__(self) -> str:
        return self.said_of("f1")


def _rates(counts: NDArray[Any]) -> dict[str, NDArray[np.float64]]:
    """Measures of counts[..., 11]: three of each kind, then words that are right, and words."""
    found = {}
    for at, kind in enumerate(KINDS):
        for name, rate in precision_recall(counts[..., 3 * at : 3 * at + 3]).items():
            found[f"{kind}_{name}"] = rate
    sums = np.asarray(counts, np.float64)
    return {**found, "words_right": sums[..., 9] / np.maximum(sums[..., 10], 1)}


def score_segmentation(
    predicted: Segmentation, gold: Segmentation, *, bootstrap: int = 1000, seed: int = 0
) -> SegmentationScore:
    """Score morphemes of the same lines.

    Parameters
    ----------
    predicted, gold : Segmentation
    bootstrap : int
        Resamples of lines for intervals; 0 for none.
    seed : int

    References
    ----------
    Batsuren et al., The SIGMORPHON 2022 shared task on morpheme segmentation (its script `evaluate.py`). Spiegler and
    Monson, EMMA: a novel evaluation metric for morphological analysis, COLING 2010; we count all morphemes alike, where
    they average over words.

    Examples
    --------
    >>> gold = Segmentation.of([("unhappily", ["un", "happy", "ly"]), ("cats", ["cat", "s"])])
    >>> found = Segmentation.of([("unhappily", ["un", "happi", "ly"]), ("cats", ["cats"])])
    >>> score = score_segmentation(found, gold, bootstrap=0)
    >>> score.morpheme_f1, score.boundary_precision, round(score.boundary_recall, 1), score.words_right
    (44.44444444444444, 100.0, 66.7, 0.0)
    >>> score.emma_recall                                     # happi is happy, and cats is either cat or s
    80.0
    """
    counts = _counts(predicted, gold)
    sample = Sample(counts, _rates, bootstrap, seed)
    totals = counts.sum(axis=0).tolist()
    signature = sample.signed(
        "morphemes:lcs", "boundaries:inner", "average:micro", f"n:{len(gold)}", f"gold:{totals[2]}"
    )
    return SegmentationScore(
        **sample.percent(), found=totals[1], gold=totals[2], words=totals[10], n=len(gold), signature=signature,
        sample=sample,
    )  # fmt: skip


def compare_segmentations(
    first: Segmentation, second: Segmentation, gold: Segmentation, *, resamples: int = 10_000, seed: int = 0
) -> SegmentationComparison:
    """Morpheme F1 of two systems on the same lines: difference in percent, interval and how likely chance is."""
    both = np.stack([_counts(system, gold)[:, :3] for system in (first, second)], axis=1)
    return SegmentationComparison(
        **paired(both, lambda sums: precision_recall(sums)["f1"], resamples, seed, "compare_segmentations")
    )


def check_same_words(predicted: Segmentation, gold: Segmentation) -> None:
    """Both must be of the same words, and of some."""
    for one in (predicted, gold):
        if not isinstance(one, Segmentation):
            raise ParameterError(f"give a Segmentation, as Segmentation.read('gold.tsv'), not {type(one).__name__}")
    if not gold.n_words:
        raise SegmentationError(f"{gold.name}: there are no words, so there is nothing to score. Is it the right file?")
    if len(predicted) != len(gold):
        raise SegmentationError(
            f"{predicted.name} has {len(predicted)} lines and {gold.name} {len(gold)}: not the same words. {_REMEDY}"
        )
    for s in range(len(gold)):
        ours, theirs = predicted.text.tokens(s), gold.text.tokens(s)
        if ours != theirs:
            raise SegmentationError(
                f"{predicted.name}, line {s + 1}: {' '.join(ours)!r:.60}, where {gold.name} has "
                f"{' '.join(theirs)!r:.60}: not the same words. {_REMEDY}"
            )


def _counts(predicted: Segmentation, gold: Segmentation) -> Integers:
    """int64[n_lines, 11]: right, found and wanted morphemes, boundaries and matched morphemes; right words, words."""
    check_same_words(predicted, gold)
    counts = np.zeros((len(gold), 11), np.int64)
    ends = gold.text.ids.offsets - gold.text.ids.offsets[0]
    line = np.repeat(np.arange(len(gold)), np.diff(ends))
    inner = [_boundaries(one.surface()) for one in (predicted, gold)]
    ours, theirs = predicted.chosen.tolist(), gold.chosen.tolist()
    for w, s in enumerate(line.tolist()):
        a, b = inner[0][w], inner[1][w]
        counts[s, 3:6] += len(a & b), len(a), len(b)
        counts[s, 9:] += predicted.analyses[ours[w]] == gold.analyses[theirs[w]], 1
    for s in range(len(gold)):
        found = tuple(piece for one in ours[ends[s] : ends[s + 1]] for piece in predicted.analyses[one])
        right = tuple(piece for one in theirs[ends[s] : ends[s + 1]] for piece in gold.analyses[one])
        counts[s, :3] = _common(found, right), len(found), len(right)
    counts[:, 6] = np.bincount(line, _matched(predicted, gold), len(gold)).astype(np.int64)
    counts[:, 7:9] = counts[:, 1:3]
    return counts


@lru_cache(maxsize=1 << 16)
def _common(first: Morphemes, second: Morphemes) -> int:
    """The length of the longest common subsequence."""
    if first == second:
        return len(first)
    row = [0] * (len(second) + 1)
    for one in first:
        before = 0
        for j, other in enumerate(second, 1):
            here = before + 1 if one == other else max(row[j], row[j - 1])
            before, row[j] = row[j], here
    return row[-1]


def _boundaries(surface: Segmentation) -> list[frozenset[int]]:
    """Where words are cut, in characters, for each word of the text."""
    each = [frozenset(list(accumulate(len(piece) for piece in one))[:-1]) for one in surface.analyses]
    return [each[one] for one in surface.chosen.tolist()]


def _matched(predicted: Segmentation, gold: Segmentation) -> Integers:
    """int64[n_words]: morphemes of each word whose partner in the best matching of both vocabularies is in it, too."""
    pairs, inverse, often = np.unique(
        np.stack([predicted.chosen, gold.chosen], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    shared: Counter[tuple[int, int]] = Counter()
    each: list[dict[tuple[int, int], int]] = []
    for (ours, theirs), many in zip(pairs.tolist(), often.tolist(), strict=True):
        sides = (predicted.analyses[ours], gold.analyses[theirs])
        here = [
            Counter(table.setdefault(m, len(table)) for m in side) for table, side in zip(numbers, sides, strict=True)
        ]
        together = {(a, b): min(m, n) for a, m in here[0].items() for b, n in here[1].items()}
        each.append(together)
        for key, least in together.items():
            shared[key] += least * many
    partners = _matching(shared, len(numbers[0]), len(numbers[1]))
    own = np.array([sum(m for (a, b), m in one.items() if partners[a] == b) for one in each], np.int64)
    return own[inverse.ravel()] if len(own) else np.zeros(0, np.int64)


def _matching(shared: Counter[tuple[int, int]], n_first: int, n_second: int) -> Sequence[int]:
    """For each of the first its partner, −1 for none, so that the sum of what partners share is the largest."""
    if not shared:
        return [-1] * n_first
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    top = max(shared.values()) + 1.0
    rows, columns = np.array(list(shared), np.int64).T
    costs = top - np.array(list(shared.values()), np.float64)
    alone = np.arange(n_first)  # a column for each row that stays alone
    table = csr_matrix(
        (
            np.concatenate([costs, np.full(n_first, top)]),
            (np.concatenate([rows, alone]), np.concatenate([columns, n_second + alone])),
        ),
        shape=(n_first, n_second + n_first),
    )
    first, second = min_weight_full_bipartite_matching(table)
    partners = np.full(n_first, -1, np.int64)
    partners[first] = np.where(second < n_second, second, -1)
    found: list[int] = partners.tolist()
    return found
