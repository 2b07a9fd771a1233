"""Labels that are found jointly with the tree: part of the score of every candidate link, and summed out of it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.features import Templates
from isogloss.features.gradients import Gradient
from isogloss.learners.models import Share, spread
from isogloss.structures.base import Array
from isogloss.structures.batch import run_sentences
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import FAMILIES, Candidates, TreeParts
from isogloss.tasks.parse.features import LABEL_TEMPLATES
from isogloss.tasks.parse.inference import pieces
from isogloss.tasks.parse.labels import LabelWeights, gold_labels
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer
from isogloss.tasks.parse.training import TreeModel, with_links
from isogloss.tasks.parse.words import Columns, Words

__all__ = ["RATE", "JointScorer", "LabelScorer", "LabelledTrees", "SummedTrees"]

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
        """The same features with other weights; what was made of the templates is kept."""
        other = copy(self)
        object.__setattr__(other, "weights", weights)
        return other

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


class SummedTrees(LoopyTrees):
    """Trees with labels summed out of links, and the probabilities of these labels."""

    chances: Array
    """float64[n_links, n_labels]: of each label if the link is there."""


class LabelledTrees(TreeModel):
    r"""Trees whose links have labels, learnt together: weights of parts come first, then those of labels.

    A batch has the labels summed out. The derivative of the log-likelihood by the score of a labelled link is

    .. math:: q(h \to c)\, q(r \mid h \to c) - p(h \to c)\, p(r \mid h \to c)

    with *q* the posterior among all labelled trees that have the known heads and the known labels: for a word of which
    both are known, 1 where they are gold and 0 elsewhere.

    Parameters
    ----------
    trees : TreeModel
    labels : LabelScorer
    gold : int64[n_words]
        Numbers of labels, −1 where not known.
    """

    def __init__(self, trees: TreeModel, labels: LabelScorer, gold: NDArray[np.int64]) -> None:
        super().__init__(trees.scorer, trees.words, trees.candidates, trees.shape, trees.sentences)
        self.labels, self.right = labels, gold
        self.labels._links  # noqa: B018 - made once, for all that have other weights

    @classmethod
    def of(cls, trees: TreeModel, treebank: Treebank, columns: Columns, heads: NDArray[np.int32]) -> Self | None:
        """With the labels of a treebank; None where it has none."""
        names, gold = gold_labels(treebank)
        if not names:
            return None
        return cls(trees, LabelScorer.empty(trees.words, columns, names, heads, gold, treebank.offsets), gold)

    @property
    def n_parts_weights(self) -> int:
        """Where the weights of labels begin."""
        return len(self.scorer.table)

    @property
    def n_weights(self) -> int:
        return self.n_parts_weights + len(self.labels.weights)

    def scorers(self, weights: NDArray[np.float32]) -> tuple[PartScorer, LabelScorer]:
        """Those of parts and of labels, with their share of the weights."""
        border = self.n_parts_weights
        return self.scorer.with_weights(weights[:border]), self.labels.with_weights(weights[border:])

    def batch(self, weights: NDArray[Any], items: NDArray[np.int64]) -> SummedTrees:
        """Trees over the candidate links of some sentences, with labels summed out."""
        of_parts, of_labels = self.scorers(weights)
        sentences = self.sentences[items]
        parts = TreeParts.of(self.candidates, self.shape.families, sentences)
        sums, chances = of_labels.chances(self.words, sentences, parts)
        scores = with_links(parts, of_parts.scores(self.words, sentences, parts), sums)
        trees = SummedTrees(parts, scores, **self.shape.options)
        trees.chances = chances
        return trees

    def gradient(self, items: NDArray[np.int64], batch: Any, values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of `batch`, where the labels of a link share its value."""
        of_labels = values[batch.layout.link_places, None] * batch.chances
        return self._both(items, batch, values, of_labels, least)

    def _both(
        self, items: NDArray[np.int64], batch: SummedTrees, values: Array, labels: Array, least: float
    ) -> Gradient:  # fmt: skip
        sentences = self.sentences[items]
        given = (self.words, sentences, batch.layout)
        each = (self.scorer.gradient(*given, values, least=least), self.labels.gradient(*given, labels, least=least))
        return Gradient.joined(each, (0, self.n_parts_weights))

    def likelihood(
        self,
        weights: NDArray[Any],
        target: Any,
        items: NDArray[np.int64],
        share: Share = 1.0,
        *,
        least: float = 0.0,
    ) -> tuple[float, Gradient]:
        """Σ share · log p(known heads and labels), and its gradient."""
        batch = self.batch(weights, items)
        parts, chances = batch.layout, batch.chances
        links, right = self._known(items, parts)
        known = np.zeros(parts.n_links)
        known[links] = np.log(np.maximum(chances[links, right], np.finfo(np.float64).tiny))
        labelled = batch.with_scores(batch.scores.like(with_links(parts, batch.scores.values, known)))
        found = target.found(items, labelled)
        wanted = found.wanted
        total, values = batch.log_partition(), wanted.parts - batch.marginals().values
        asked, gained = wanted.parts[parts.link_places], wanted.values - total
        if found.impossible.any():
            values[np.repeat(found.impossible, np.diff(parts.offsets))] = 0.0
            asked[np.repeat(found.impossible, np.diff(parts.link_offsets))] = 0.0
            gained[found.impossible] = 0.0
        # As if no label were known, and what is known of it; most links are far from what is right, and ask nothing.
        of_labels = values[parts.link_places, None] * chances
        some = asked[links] != 0
        links, right = links[some], right[some]
        of_labels[links] -= asked[links, None] * chances[links]
        of_labels[links, right] += asked[links]
        value = float(np.sum(share * gained)) if np.ndim(share) else float(share) * float(gained.sum())
        of_links, of_parts = spread(share, parts.link_offsets), spread(share, parts.offsets)
        if np.ndim(share):
            of_links = np.asarray(of_links)[:, None]
        return value, self._both(items, batch, of_parts * values, of_links * of_labels, least)

    def _known(self, items: NDArray[np.int64], parts: TreeParts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The links to words that have a label, and that label."""
        shifts = self.candidates.offsets[self.sentences[items]] - np.concatenate([[0], np.cumsum(parts.lengths)])[:-1]
        right = self.right[parts.link_words + np.repeat(shifts, np.diff(parts.link_offsets))]
        links = np.flatnonzero(right >= 0)
        return links, right[links]
