"""How good are these links? Precision, recall, F and alignment error rate, with intervals and a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Text
from isogloss.errors import LinksError, ParameterError
from isogloss.metrics._counts import check_rows, contained, counts_by_pair, link_keys, rates, sorted_once
from isogloss.metrics._resampling import Difference, paired
from isogloss.metrics.scores import Sample, Score

__all__ = [
    "AlignmentScore",
    "Comparison",
    "bijectivity",
    "compare",
    "score_by_frequency",
    "score_links",
    "symmetry",
]

Side = Literal["source", "target", "either"]


@dataclass(frozen=True, kw_only=True, repr=False)
class AlignmentScore(Score):
    """Precision, recall, balanced F and alignment error rate, in percent.

    Parameters
    ----------
    precision, recall, f1, aer : float
    links, sure, possible : int
        Links predicted, links that are sure in the gold, and links that are possible only.
    """

    precision: float
    recall: float
    f1: float
    aer: float
    links: int
    sure: int
    possible: int

    @property
    def measures(self) -> tuple[str, ...]:
        """All four."""
        return ("precision", "recall", "f1", "aer")

    @property
    def headline(self) -> str:
        """Always `aer`: less is better."""
        return "aer"

    def _further(self) -> dict[str, Any]:
        return {"links": self.links, "sure": self.sure, "possible": self.possible}


def score_links(
    predicted: Links,
    gold: Links,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    include: NDArray[Any] | None = None,
) -> AlignmentScore:
    r"""Score links against a gold standard with sure and possible links.

    .. math:: P = \frac{|A\cap P|}{|A|}, \quad R = \frac{|A\cap S|}{|S|}, \quad F = \frac{2PR}{P+R}, \quad
              AER = 1 - \frac{|A\cap S| + |A\cap P|}{|A| + |S|}

    with A the links predicted, S the sure ones and P the sure and possible ones. Where gold has sure links alone,
    AER = 1 - F. Precision of no links is 1, recall of no sure links is 1, and AER of nothing against nothing is 0.

    Parameters
    ----------
    predicted : Links
        All its links count, whatever they are marked as.
    gold : Links
        `possible` is true for links that are possible only.
    bootstrap : int
        Resamples of sentence pairs for the 95% percentile intervals; 0 for none.
    seed : int
        Of the bootstrap; the scores themselves have no chance in them.
    include : bool[n_pairs] or int[.], optional
        The pairs to score; all of them when absent.

    References
    ----------
    F. J. Och and H. Ney, A Systematic Comparison of Various Statistical Alignment Models, Computational Linguistics
    2003. F is not theirs: it is the balanced mean of the P and R above.

    Examples
    --------
    >>> from isogloss.data import Alignment
    >>> gold = Links.of([Alignment(frozenset({(0, 0), (1, 1)}), possible=frozenset({(1, 2)}))])
    >>> score = score_links(Links.of([{(0, 0), (1, 2), (2, 2)}]), gold, bootstrap=0)
    >>> print(score)  # doctest: +ELLIPSIS
    AER = 40.00 | links:sure+possible|null:no|index:0|n:1|seed:0|v:...
    >>> round(score.precision, 1), score.recall, float(score)
    (66.7, 50.0, 40.0)
    """
    counts = counts_by_pair(predicted, gold)
    if include is not None:
        counts = counts[_chosen(include, len(gold))]
    return _score(counts, bootstrap, seed)


def _score(counts: NDArray[np.int64], bootstrap: int, seed: int, remark: str = "") -> AlignmentScore:
    sample = Sample(counts, rates, bootstrap, seed)
    links, _, _, sure, allowed = counts.sum(axis=0).tolist()
    kinds = "sure+possible" if allowed > sure else "sure"
    signature = sample.signed(f"links:{kinds}", "null:no", "index:0", remark, f"n:{len(counts)}")
    return AlignmentScore(
        **sample.percent(),
        links=links,
        sure=sure,
        possible=allowed - sure,
        n=len(counts),
        signature=signature,
        sample=sample,
    )


def _chosen(include: NDArray[Any], n_pairs: int) -> NDArray[Any]:
    include = np.asarray(include)
    if include.dtype == bool and len(include) != n_pairs:
        raise LinksError(f"score: include has {len(include)} flags for {n_pairs} sentence pairs; give one for each")
    if include.dtype == bool:
        return include
    outside = include[(include < 0) | (include >= n_pairs)]
    if outside.size:
        raise LinksError(f"score: include names pair {outside[0]}, but there are {n_pairs} pairs, counted from 0")
    return include.astype(np.int64)


MEASURES = ("aer", "precision", "recall", "f1")


@dataclass(frozen=True)
class Comparison(Difference):
    """The difference of two systems in AER: a negative `delta` says that the first is better; see `Difference`.

    In another `measure` (precision, recall or f1) a positive one does.
    """

    measure: str = "aer"

    def __str__(self) -> str:
        return self.said_of("AER" if self.measure == "aer" else self.measure)


def compare(
    a: Links,
    b: Links,
    gold: Links,
    *,
    resamples: int = 10_000,
    seed: int = 0,
    include: NDArray[Any] | None = None,
    measure: str = "aer",
) -> Comparison:
    """Is one set of links better than another, or is it the choice of sentences?

    Both are scored on the same resamples of sentence pairs (Koehn 2004); the p-value is two-sided and never 0. What is
    compared is `measure`: aer, precision, recall or f1.
    """
    if measure not in MEASURES:
        raise ParameterError(f"compare: measure should be one of {', '.join(MEASURES)}, not {measure!r}")
    check_rows(a, b, "the first system", "the second")
    counts = np.stack([counts_by_pair(a, gold), counts_by_pair(b, gold)], axis=1)  # [n_pairs, 2, 5]
    if include is not None:
        counts = counts[_chosen(include, len(gold))]
    found = paired(counts, lambda summed: rates(summed)[measure], resamples, seed, "compare")
    return Comparison(**found, measure=measure)


def symmetry(forward: Links, backward: Links) -> float:
    """How far two directions agree: links in both over links in either; 1 when there are none.

    References
    ----------
    J. Graça, K. Ganchev and B. Taskar, Learning Tractable Word Alignment Models with Complex Constraints,
    Computational Linguistics 2010.

    Examples
    --------
    >>> symmetry(Links.of([{(0, 0), (1, 1)}]), Links.of([{(0, 0), (2, 1)}]))  # doctest: +ELLIPSIS
    0.333...
    """
    check_rows(forward, backward, "forward", "backward")
    (one, other), _ = link_keys(forward, backward)
    one, other = sorted_once(one), sorted_once(other)
    common = int(np.count_nonzero(contained(one, other)))
    union = len(one) + len(other) - common
    return common / union if union else 1.0


def bijectivity(links: Links) -> float:
    """Share of links that are one-to-one: neither of their words has another link; 1 when there are none.

    Examples
    --------
    >>> bijectivity(Links.of([{(0, 0), (1, 1), (1, 2)}]))  # doctest: +ELLIPSIS
    0.333...
    """
    if len(links.source) == 0:
        return 1.0
    (keys,), stride = link_keys(links)
    keys = sorted_once(keys)
    width = 1 + int(links.target.max())
    pair = keys // stride
    source_of, target_of = keys // width, pair * width + keys % width  # a number for every word of either side
    _, at, times = np.unique(target_of, return_inverse=True, return_counts=True)
    neighbour = source_of[1:] == source_of[:-1]  # keys are in the order of source words
    alone = (times[at] == 1) & ~np.append(neighbour, False) & ~np.append(False, neighbour)
    return float(alone.mean())


def score_by_frequency(
    predicted: Links,
    gold: Links,
    bitext: Bitext,
    rare: int = 5,
    *,
    training: Bitext | None = None,
    side: Side = "either",
    bootstrap: int = 1000,
    seed: int = 0,
) -> dict[str, AlignmentScore]:
    """Scores of the links of rare words and of the links of common words.

    Every link, predicted or gold, falls in one class by its words; each class is scored by itself.

    Parameters
    ----------
    bitext : Bitext
        The words of the pairs that are scored.
    rare : int
        A word is rare if it is seen fewer times than this.
    training : Bitext, optional
        The text in which words are counted, as written; `bitext` when absent.
    side : "source", "target" or "either"
        The word of the link that must be rare.

    Returns
    -------
    dict
        "rare" and "common".

    References
    ----------
    Graça, Ganchev and Taskar 2010, section 2.2: rare is fewer than five occurrences in the training text.
    """
    if side not in ("source", "target", "either"):
        raise ParameterError(f"score: side should be 'source', 'target' or 'either', not {side!r}")
    if len(bitext) != len(gold):
        raise LinksError(
            f"score: the text has {len(bitext)} sentence pairs but the gold has {len(gold)}; give the text of the gold"
        )
    training = bitext if training is None else training
    seen = {
        "source": _seen(bitext.source, training.source),
        "target": _seen(bitext.target, training.target),
    }
    sides = ("source", "target") if side == "either" else (side,)
    scores = {}
    rare_predicted = _is_rare(predicted, bitext, seen, sides, rare)
    rare_gold = _is_rare(gold, bitext, seen, sides, rare)
    for name, sign in (("rare", "<"), ("common", ">=")):
        counts = counts_by_pair(
            predicted.keep(rare_predicted if name == "rare" else ~rare_predicted),
            gold.keep(rare_gold if name == "rare" else ~rare_gold),
        )
        scores[name] = _score(counts, bootstrap, seed, remark=f"words:{side}{sign}{rare}")
    return scores


def _seen(text: Text, training: Text) -> NDArray[np.int64]:
    """How many times each word type of `text` is seen in `training`: int64[n_types]."""
    ids = training.ids
    times = np.bincount(ids.flat, minlength=len(training.vocabulary))
    if training is text:
        return times
    there = training.vocabulary.encode(text.vocabulary)
    return np.where(there >= 0, np.append(times, 0)[there], 0)


def _is_rare(
    links: Links,
    bitext: Bitext,
    seen: Mapping[str, NDArray[np.int64]],
    sides: tuple[str, ...],
    rare: int,
) -> NDArray[np.bool_]:
    """Whether a word of the link, on one of those sides, is rare: bool[n_links]."""
    is_rare = np.zeros(len(links.source), bool)
    pair = links.pair
    for side in sides:
        ids, index = getattr(bitext, side).ids, getattr(links, side)
        outside = (index < 0) | (index >= ids.lengths[pair])
        if outside.any():
            at = int(outside.argmax())
            raise LinksError(
                f"score: pair {pair[at]} has a link to {side} word {index[at]}, but that sentence has "
                f"{ids.lengths[pair[at]]} words. Indices count from 0, source first"
            )
        is_rare |= seen[side][ids.values[ids.offsets[:-1][pair] + index]] < rare
    return is_rare
