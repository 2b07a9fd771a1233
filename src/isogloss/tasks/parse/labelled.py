"""Labels that are found jointly with the tree: part of the score of every candidate link, and summed out of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.features import Templates
from isogloss.structures.base import Array
from isogloss.structures.batch import run_sentences
from isogloss.structures.tree_parts import FAMILIES, Candidates, TreeParts
from isogloss.tasks.parse.features import LABEL_TEMPLATES
from isogloss.tasks.parse.inference import pieces
from isogloss.tasks.parse.labels import LabelWeights, gold_labels
from isogloss.tasks.parse.scoring import FeatureSet, Gradient, PartScorer
from isogloss.tasks.parse.training import LEAST, Asked, LabelTerms, Steps, with_links
from isogloss.tasks.parse.words import Columns, Words

__all__ = ["JointScorer", "LabelLearner", "LabelScorer"]

RATE = 0.06
"""Length of steps; chosen on held-out training sentences."""


def _of_links(template: str) -> bool:
    return all(term.split(".")[0] in ("head", "child") for term in template.split(" & "))


class LabelScorer(LabelWeights):
    r"""Labels of candidate links, whatever the rest of the tree.

    The score of a link with label *r* is :math:`s(h, c) + s_r(h, c)`. Labels of different links do not see each other,
    so that they are summed out link by link, and trees are found as without them, with scores

    .. math:: s(h, c) + \log \sum_r \exp s_r(h, c)

    The posterior of a labelled link is that of the link times :math:`p(r \mid h \to c) \propto \exp s_r(h, c)` [1]_.
    Features are those of `isogloss.tasks.parse.labels.Labeller` that look at head, child and their neighbours, and
    those of links that look at what lies between and at agreement.

    References
    ----------
    .. [1] Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 3.2.5.
    """

    TEMPLATES: ClassVar[tuple[str, ...]] = tuple(filter(_of_links, LABEL_TEMPLATES))

    @classmethod
    def empty(
        cls,
        words: Words,
        columns: Columns,
        names: tuple[str, ...],
        heads: NDArray[np.int32],
        gold: NDArray[np.int64],
        offsets: NDArray[np.int64],
    ) -> Self:
        """The features that fire on gold links, with the labels that they fire with; weights are 0.

        `heads` and `gold`, the numbers of labels, are −1 where not known.
        """
        from isogloss.tasks.parse._numba.labelled import collect_link_labels

        templates = cls.templates_for(columns)
        given = (words.starts, words.lengths, words.arrays, _numbers(templates))
        slots, tags = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.int16)
        return cls.of_pairs(names, templates, *collect_link_labels(*given, heads, gold, offsets, slots, tags))

    def with_weights(self, weights: NDArray[np.float32]) -> Self:
        """The same features with other weights."""
        return replace(self, weights=weights)

    def log_sums(self, words: Words, sentences: NDArray[np.int64], parts: TreeParts) -> tuple[Array, Array]:
        """Of each link, float64[n_links]: the log of the sum over labels, and the probability of the best label."""
        return self._scored(words, sentences, parts, np.zeros((0, len(self.names))))

    def chances(self, words: Words, sentences: NDArray[np.int64], parts: TreeParts) -> tuple[Array, Array]:
        """float64[n_links], the log of the sum over labels, and float64[n_links, n_labels], their probabilities."""
        chances = np.empty((parts.n_links, len(self.names)))
        return self._scored(words, sentences, parts, chances)[0], chances

    def _scored(
        self, words: Words, sentences: NDArray[np.int64], parts: TreeParts, chances: Array
    ) -> tuple[Array, Array]:  # fmt: skip
        from isogloss.tasks.parse._numba.labelled import score_link_labels

        sums, best = np.empty(parts.n_links), np.empty(parts.n_links)
        given = (*self._given(words, sentences), self.weights, len(self.names), parts.layout)
        run_sentences(score_link_labels, len(sentences), *given, sums, best, chances)
        return sums, best

    def gradient(
        self, words: Words, sentences: NDArray[np.int64], parts: TreeParts, values: Array, *, least: float = 0.0
    ) -> Gradient:
        """Σ value · features over labelled links, values float64[n_links, n_labels]; up to `least` they count as 0."""
        from isogloss.tasks.parse._numba.features import most_keys
        from isogloss.tasks.parse._numba.labelled import emit_link_labels

        active = np.count_nonzero(np.abs(values) > least, axis=1)
        rooms = np.diff(np.concatenate([[0], np.cumsum(active)])[parts.link_offsets])
        rooms *= 2 * most_keys(len(self.templates), words.features.shape[1])
        places = np.concatenate([[0], np.cumsum(rooms)]).astype(np.int64)
        numbers, shares = np.empty(places[-1], np.int32), np.empty(places[-1], np.float32)
        places, ends = places[:-1], places[:-1].copy()
        given = (*self._given(words, sentences), parts.layout, values, least)
        run_sentences(emit_link_labels, len(sentences), *given, places, numbers, shares, ends)
        return Gradient(places, ends, numbers, shares)

    def predict_proba(
        self, words: Words, heads: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> NDArray[np.float32]:  # fmt: skip
        """float32[n_words, n_labels]: the probability of each label of each word's link."""
        links = Candidates(offsets, np.arange(len(heads) + 1), np.asarray(heads, np.int32))
        found = [np.zeros((0, len(self.names)), np.float32)]
        for sentences in pieces(words.lengths):
            found.append(self.chances(words, sentences, TreeParts.of(links, (), sentences))[1].astype(np.float32))
        return np.concatenate(found)

    def _given(self, words: Words, sentences: NDArray[np.int64]) -> tuple[Any, ...]:
        learnt = (self.table.slots, self.rows, self.labels)
        return sentences, words.starts, words.lengths, words.arrays, self._links, *learnt

    @cached_property
    def _links(self) -> Any:
        return _numbers(self.templates)


def _numbers(templates: Templates) -> Any:
    """Templates as kernels take those of links."""
    nothing = Templates(())
    return FeatureSet(templates, dict.fromkeys(FAMILIES, nothing)).numbers()[0]


@dataclass(frozen=True, eq=False)
class JointScorer:
    """Scores of parts, with labels summed out of links; has the `scores` of a `PartScorer`."""

    parts: PartScorer
    labels: LabelScorer

    def scores(self, words: Words, sentences: NDArray[np.int64], parts: TreeParts) -> Array:
        """float64[n_parts]."""
        return with_links(
            parts, self.parts.scores(words, sentences, parts), self.labels.log_sums(words, sentences, parts)[0]
        )


class LabelLearner:
    r"""Learns weights of labels while those of trees are learnt; `isogloss.tasks.parse.training.Labels`.

    The derivative of the loss by the score of a labelled link is

    .. math:: p(h \to c)\, p(r \mid h \to c) - q(h \to c)\, q(r \mid h \to c)

    with *q* the posterior among all labelled trees that have the known heads and the known labels: for a word of which
    both are known, 1 where they are gold and 0 elsewhere.

    Parameters
    ----------
    scorer : LabelScorer
    gold : int64[n_words]
        Numbers of labels, −1 where not known.
    offsets : int64[n_sentences + 1]
    rate, l2 : float
    """

    def __init__(
        self,
        scorer: LabelScorer,
        gold: NDArray[np.int64],
        offsets: NDArray[np.int64],
        *,
        rate: float = RATE,
        l2: float = 0.0,
    ) -> None:
        self.steps = Steps(len(scorer.weights), rate=rate, l2=l2)
        self.scorer = scorer.with_weights(self.steps.weights)
        self.gold, self.offsets = gold, offsets

    @classmethod
    def of(
        cls, treebank: Treebank, words: Words, columns: Columns, heads: NDArray[np.int32], *, l2: float = 0.0
    ) -> Self | None:  # fmt: skip
        """For the labels of a treebank; None where it has none."""
        names, gold = gold_labels(treebank)
        if not names:
            return None
        empty = LabelScorer.empty(words, columns, names, heads, gold, treebank.offsets)
        return cls(empty, gold, treebank.offsets, l2=l2)

    def _known(self, sentences: NDArray[np.int64], parts: TreeParts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The links to words that have a label, and that label."""
        shifts = self.offsets[sentences] - np.concatenate([[0], np.cumsum(parts.lengths)])[:-1]
        right = self.gold[parts.link_words + np.repeat(shifts, np.diff(parts.link_offsets))]
        links = np.flatnonzero(right >= 0)
        return links, right[links]

    def terms(self, words: Words, sentences: NDArray[np.int64], parts: TreeParts) -> LabelTerms:
        """What labels add to links, with the weights of now."""
        sums, chances = self.scorer.chances(words, sentences, parts)
        links, right = self._known(sentences, parts)
        known = np.zeros(parts.n_links)
        known[links] = np.log(np.maximum(chances[links, right], np.finfo(np.float64).tiny))
        return LabelTerms(sums, known, chances)

    def derivatives(
        self, sentences: NDArray[np.int64], parts: TreeParts, terms: LabelTerms, asked: Asked
    ) -> Array:  # fmt: skip
        """float64[n_links, n_labels]: of the loss, by the score of each labelled link."""
        assert asked.wanted is not None
        wanted = asked.wanted[parts.link_places]
        values = asked.values[parts.link_places, None] * terms.chances  # as if no label were known
        links, right = self._known(sentences, parts)
        values[links] += wanted[links, None] * terms.chances[links]
        values[links, right] -= wanted[links]
        return np.asarray(values)

    def take(
        self, words: Words, sentences: NDArray[np.int64], parts: TreeParts, terms: LabelTerms, asked: Asked
    ) -> None:
        """One step."""
        values = self.derivatives(sentences, parts, terms, asked)
        self.steps.take(self.scorer.gradient(words, sentences, parts, values, least=LEAST), asked.losses)

    def mean(self) -> LabelScorer:
        """The scorer with the mean of the weights so far."""
        return self.scorer.with_weights(self.steps.mean())
