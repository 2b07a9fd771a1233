r"""How good is this summary? Sentences in common with judges, what these are worth, and words in common.

An *extract* is a set of sentences of a document with N sentences. Judges say which they would take, or what each
sentence is worth to them.

References
----------
Radev et al., Evaluation challenges in large-scale document summarization, ACL 2003. Relative utility: Radev, Jing and
Budzikowska, ANLP/NAACL workshop 2000; Radev and Tam, CIKM 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.metrics.overlap import Units, f_measure, lcs_length, ngrams

__all__ = [
    "CoSelection", "RelativeUtility", "co_selection", "cosine", "extract_size", "fleiss_kappa", "judge_extract",
    "lcs_similarity", "mean_over_judges", "relative_utility", "relevance_correlation",
]  # fmt: skip

Array = NDArray[np.float64]


class CoSelection(NamedTuple):
    """Two extracts of one document: how many sentences both take, one alone, the other alone, and neither."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def precision(self) -> float:
        """Of the sentences of the first extract, those that are in the second; 0 of nothing."""
        return _share(self.both, self.both + self.first)

    @property
    def recall(self) -> float:
        """Of the sentences of the second extract, those that are in the first; the precision where sizes are equal."""
        return _share(self.both, self.both + self.second)

    @property
    def f(self) -> float:
        return f_measure(self.precision, self.recall)

    @property
    def agreement(self) -> float:
        """Sentences that both treat alike; not a number without sentences."""
        every = sum(self)
        return (self.both + self.neither) / every if every else math.nan


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def co_selection(extract: Iterable[int], judge: Iterable[int], n_sentences: int) -> CoSelection:
    """Compare two extracts, given as numbers of sentences from 0 on.

    Examples
    --------
    >>> found = co_selection([0, 1], [1, 3], 5)
    >>> found, found.precision, found.agreement
    (CoSelection(both=1, first=1, second=1, neither=2), 0.5, 0.6)
    """
    ours, theirs = _extract(extract, n_sentences), _extract(judge, n_sentences)
    both = len(ours & theirs)
    return CoSelection(both, len(ours) - both, len(theirs) - both, n_sentences - len(ours | theirs))


def _extract(given: Iterable[int], n_sentences: int) -> set[int]:
    chosen = {int(number) for number in given}
    if chosen and not 0 <= min(chosen) <= max(chosen) < n_sentences:
        raise ParameterError(f"an extract has sentences {sorted(chosen)}, and the document {n_sentences}, from 0 on")
    return chosen


def fleiss_kappa(selected: ArrayLike) -> float:
    r"""Agreement of any number of judges beyond chance: 1 if all agree, 0 if they agree as often as chance would.

    .. math:: K = \frac{P(A) - P(E)}{1 - P(E)}, \qquad
        P(A) = \frac{1}{N k (k - 1)} \sum_{i, c} n_{ic} (n_{ic} - 1), \qquad
        P(E) = \sum_c \Big(\frac{1}{N k} \sum_i n_{ic}\Big)^2

    Parameters
    ----------
    selected : bool[n_judges, n_items]
        Whether a judge took an item; two judges or more. Not a number where all took all, or nothing.

    References
    ----------
    Siegel and Castellan 1988; Fleiss 1971.

    Examples
    --------
    >>> fleiss_kappa([[1, 0, 0, 1], [1, 0, 0, 1]]), round(fleiss_kappa([[1, 0, 0, 1], [1, 0, 1, 0]]), 3)
    (1.0, 0.0)
    """
    taken = np.asarray(selected, np.bool_)
    if taken.ndim != 2 or len(taken) < 2:
        raise ParameterError(f"fleiss_kappa: a row for each of two judges or more is needed, not {taken.shape}")
    k, n = taken.shape
    if not n:
        return math.nan
    counts = np.stack([taken.sum(axis=0), k - taken.sum(axis=0)], axis=1).astype(np.float64)
    observed = float((counts * (counts - 1)).sum()) / (n * k * (k - 1))
    chance = float(((counts.sum(axis=0) / (n * k)) ** 2).sum())
    return (observed - chance) / (1 - chance) if chance < 1 else math.nan


# --- utility


def extract_size(n_sentences: int, rate: float, lengths: Sequence[int] | None = None) -> int:
    """How many sentences are a share of a document, rounded up and at least 1; 0 of none.

    With `lengths`, the words of sentences in the order in which they are taken, the least number of them that has that
    share of the words.

    Examples
    --------
    >>> extract_size(9, 0.1), extract_size(20, 0.1), extract_size(4, 0.5, [10, 1, 1, 8])
    (1, 2, 1)
    """
    if not 0 < rate <= 1:
        raise ParameterError(f"extract_size: a rate should be above 0 and at most 1, not {rate!r}")
    if not n_sentences:
        return 0
    if lengths is None:
        return max(1, math.ceil(n_sentences * rate - 1e-9))
    reached = np.cumsum(np.asarray(lengths, np.float64))
    return min(n_sentences, int(np.searchsorted(reached, rate * reached[-1] - 1e-9)) + 1)


def judge_extract(
    utilities: ArrayLike, rate: float | None = None, *, size: int | None = None, lengths: Sequence[int] | None = None
) -> list[int]:
    """The sentences that a judge would take: those worth most, earlier ones first among equals, in their order.

    Parameters
    ----------
    utilities : float64[n_sentences]
    rate : float
        The share of sentences or, with `lengths`, of words that is taken; or `size`, how many sentences.

    Examples
    --------
    >>> judge_extract([3, 9, 3, 0], size=2)
    [0, 1]
    """
    worth = np.asarray(utilities, np.float64)
    order = np.argsort(-worth, kind="stable")
    if size is None:
        if rate is None:
            raise ParameterError("judge_extract: give a rate or a size")
        size = extract_size(len(worth), rate, None if lengths is None else np.asarray(lengths)[order].tolist())
    return sorted(order[:size].tolist())


class RelativeUtility(NamedTuple):
    """What an extract is worth to judges beside what it could be; not numbers where there is a `reason`."""

    system: float
    """S: its utility as a share of that of the best extract of its size."""
    chance: float
    """R: the mean of S over all extracts of its size."""
    judges: float
    """J: what the extract of one judge is worth to another, on the mean, as a share of the other's own."""
    normalised: float
    """D = (S − R) / (J − R): 1 as good as the judges, 0 as good as chance."""
    reason: str = ""


def relative_utility(
    extract: Iterable[int],
    utilities: ArrayLike,
    *,
    subsumed: Iterable[tuple[int, int]] = (),
    discount: float = 0.0,
) -> RelativeUtility:
    r"""S, R, J and D of an extract X with e sentences, by judges i with utilities :math:`u_i`, U = Σ u_i.

    .. math:: S = \frac{\sum_{s \in X} U(s)}{U^*_e}, \quad
        R = \frac{(e / N) \sum_s U(s)}{U^*_e}, \quad
        J = \text{mean}_{i \ne j} \frac{\sum_{s \in Y_i} u_j(s)}{\sum_{s \in Y_j} u_j(s)}

    where :math:`U^*_e` is the sum of the e largest U, and :math:`Y_i` are the e sentences worth most to judge i.

    Parameters
    ----------
    extract : numbers of sentences, from 0 on
    utilities : float64[n_judges, n_sentences]
        0 or more.
    subsumed : pairs (a, b)
        All that sentence a says, b says as well: with both in the extract, a counts `discount` times its utility. Of
        two that subsume each other, the earlier one counts in full.
    discount : float
        From 0, nothing, to 1.

    Notes
    -----
    The best extract, and R, do not know of subsumption: S then is at most 1, and may be below it for every extract.

    Examples
    --------
    >>> found = relative_utility([0, 2], [[10, 5, 8, 1], [9, 8, 6, 0]])
    >>> round(found.system, 3), round(found.chance, 3), round(found.judges, 3), found.reason
    (1.0, 0.712, 0.858, '')
    """
    worth = np.atleast_2d(np.asarray(utilities, np.float64))
    if worth.ndim != 2 or not np.isfinite(worth).all() or (worth < 0).any():
        raise ParameterError("relative_utility: utilities should be numbers[n_judges, n_sentences], 0 or more")
    if not 0 <= discount <= 1:
        raise ParameterError(f"relative_utility: discount should be from 0 to 1, not {discount!r}")
    n = worth.shape[1]
    chosen = _extract(extract, n)
    size, total = len(chosen), worth.sum(axis=0)
    best = float(np.sort(total)[n - size :].sum())
    if not n or not size:
        return _undefined("the document has no sentences" if not n else "the extract is empty")
    if best <= 0:
        return _undefined("no sentence is worth anything to any judge")
    shares = np.ones(n)
    within = {(int(a), int(b)) for a, b in subsumed if a in chosen and b in chosen and a != b}
    for a, b in within:
        if (b, a) not in within or a > b:
            shares[a] = discount
    rows = sorted(chosen)
    system = float((total * shares)[rows].sum()) / best
    chance = size / n * float(total.sum()) / best
    judges = _between_judges(worth, size)
    spread = judges - chance
    if math.isnan(judges) or abs(spread) < 1e-12:
        why = (
            "a judge gives all sentences 0, or there is only one"
            if math.isnan(judges)
            else "judges agree as chance does"
        )
        return RelativeUtility(system, chance, judges, math.nan, why)
    return RelativeUtility(system, chance, judges, (system - chance) / spread)


def _undefined(reason: str) -> RelativeUtility:
    return RelativeUtility(math.nan, math.nan, math.nan, math.nan, reason)


def _between_judges(worth: Array, size: int) -> float:
    """J; not a number for one judge, or where one would take nothing of worth."""
    own = [judge_extract(row, size=size) for row in worth]
    shares = []
    for i, theirs in enumerate(own):
        for j, row in enumerate(worth):
            if i != j:
                most = float(row[own[j]].sum())
                shares.append(float(row[theirs].sum()) / most if most > 0 else math.nan)
    return float(np.mean(shares)) if shares else math.nan


# --- words


def cosine(one: Units, other: Units, idf: Mapping[Any, float] | None = None) -> float:
    """Cosine of the words of two texts, counts times idf; words without one count in full. 0 if a text has none.

    Examples
    --------
    >>> cosine("a b b".split(), "b a b".split()), cosine(["a"], ["b"]), round(cosine(["a", "b"], ["a"]), 3)
    (1.0, 0.0, 0.707)
    """
    ours, theirs = ngrams(tuple(one), 1), ngrams(tuple(other), 1)
    weights = idf or {}

    def weight(key: tuple[Any, ...]) -> float:
        return float(weights.get(key[0], 1.0)) ** 2

    common = sum(count * theirs[key] * weight(key) for key, count in ours.items() if key in theirs)
    sizes = [sum(count * count * weight(key) for key, count in each.items()) for each in (ours, theirs)]
    return min(1.0, common / math.sqrt(sizes[0] * sizes[1])) if min(sizes) > 0 else 0.0


def lcs_similarity(one: Units, other: Units) -> float:
    """2 · lcs / (|X| + |Y|), from 0 to 1; 0 of nothing."""
    size = len(one) + len(other)
    return 2 * lcs_length(one, other) / size if size else 0.0


def mean_over_judges(measure: Any, summary: Any, judges: Sequence[Any]) -> float:
    """sim(M, S): the mean of a measure of a summary with each judge's; not a number without judges."""
    return float(np.mean([measure(summary, each) for each in judges])) if judges else math.nan


# --- retrieval


def relevance_correlation(documents: ArrayLike, summaries: ArrayLike) -> tuple[float, int]:
    r"""Whether summaries are found as their documents are: the mean over queries of Pearson's r of their scores.

    .. math:: r = \frac{\sum_i (x_i - \bar x)(y_i - \bar y)}{\sqrt{\sum_i (x_i - \bar x)^2 \sum_i (y_i - \bar y)^2}}

    Parameters
    ----------
    documents, summaries : float64[n_queries, n_documents]
        Scores of each document, and of its summary, for each query; see `isogloss.tasks.documents.summaries.retrieved`.

    Returns
    -------
    float
        Not a number where no query has any.
    int
        Queries that were passed over, because all documents, or all summaries, have the same score.

    Examples
    --------
    >>> relevance_correlation([[3, 1, 0], [0, 0, 0]], [[6, 2, 0], [1, 0, 0]])
    (1.0, 1)
    """
    x, y = (np.atleast_2d(np.asarray(each, np.float64)) for each in (documents, summaries))
    if x.shape != y.shape:
        raise ParameterError(f"relevance_correlation: scores of {x.shape} documents and {y.shape} summaries")
    found = []
    for one, other in zip(x, y, strict=True):
        one, other = one - one.mean() if len(one) else one, other - other.mean() if len(other) else other
        below = math.sqrt(float(one @ one) * float(other @ other))
        if below > 1e-12 * max(1.0, float(np.abs(one).max(initial=0)) * float(np.abs(other).max(initial=0))):
            found.append(max(-1.0, min(1.0, float(one @ other) / below)))
    return (float(np.mean(found)) if found else math.nan), len(x) - len(found)
