"""How weights of trees are found: what the core's learners need to know of trees, and nothing else.

`TreeModel` scores the parts of some sentences and carries what is asked of parts back to weights. `KnownHeads` says
what trees should be like: as a target of likelihood, as one of margins, and as costs of risk. `tree_learner` puts them
together with the learner that an option names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isogloss.features.gradients import Gradient
from isogloss.learners.margin import Rivals
from isogloss.learners.models import Model, Wanted, item_sums, run_sums
from isogloss.learners.passes import learner_of
from isogloss.pass_options import PassSettings
from isogloss.structures.base import Array, kept
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse.focus import Focus
from isogloss.tasks.parse.inference import Shape, best_trees
from isogloss.tasks.parse.scoring import PartScorer
from isogloss.tasks.parse.words import Words

__all__ = ["FLOOR", "KnownHeads", "TreeModel", "known_sentences", "tree_learner", "with_links"]

LEAST = 1e-3
"""Parts whose posterior is this close to what it should be are left alone."""
FLOOR = 0.3
"""Added to the root of Σ g²: weights whose gradient is faint then stay small, in place of moving by a whole step."""
Items = NDArray[np.int64]


class TreeModel(Model):
    """Distributions over the trees of sentences; parts are listed anew for every minibatch.

    Parameters
    ----------
    scorer : PartScorer
        With the table of features; weights are those that methods are given.
    words : Words
    candidates : Candidates
        The links that are looked at.
    shape : Shape
    sentences : int64[n_items]
        Those that there is something to learn from.
    """

    dtype: ClassVar[DTypeLike] = np.float32

    def __init__(
        self, scorer: PartScorer, words: Words, candidates: Candidates, shape: Shape, sentences: Items
    ) -> None:  # fmt: skip
        self.scorer, self.words, self.candidates, self.shape = scorer, words, candidates, shape
        self.sentences = sentences

    @property
    def n_weights(self) -> int:
        return len(self.scorer.table)

    def __len__(self) -> int:
        return len(self.sentences)

    def batch(self, weights: NDArray[Any], items: Items) -> LoopyTrees:
        """Trees over the candidate links of some sentences."""
        sentences = self.sentences[items]
        parts = TreeParts.of(self.candidates, self.shape.families, sentences)
        return self.shape.trees(parts, self.scorer.with_weights(weights).scores(self.words, sentences, parts))

    def gradient(self, items: Items, batch: Any, values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of `batch`: templates are walked again."""
        return self.scorer.gradient(self.words, self.sentences[items], batch.layout, values, least=least)

    def support(self, items: Items) -> None:
        """Features are found as they are needed, and never listed."""
        return


class Found(NamedTuple):
    """What is known of some sentences, and bool[n_sentences]: whether no tree has what is known."""

    wanted: Wanted
    impossible: NDArray[np.bool_]


class KnownHeads:
    r"""The heads that are known of the items of a model.

    Of likelihood, :math:`\log \sum_{y \ni known} p(y \mid x)`: the posterior of a part among the trees that have the
    known heads. Where all are known that is 1 or 0, also if no tree of this kind has them (a projective model of
    crossing links). A sentence that no tree fits asks for nothing. Margins and risk count wrong heads.

    Parameters
    ----------
    heads : int32[n_words]
        −1 where not known.
    offsets : int64[n_sentences + 1]
    sentences : int64[n_items]
    focus : Focus, optional
        What wrong heads cost, in margins and risk, if not 1.
    """

    def __init__(
        self, heads: NDArray[np.int32], offsets: NDArray[np.int64], sentences: Items, focus: Focus | None = None
    ) -> None:
        self.heads, self.offsets, self.sentences = heads, offsets, sentences
        self._costs = None if focus is None else focus.losses(np.diff(offsets))
        self._counts = None if focus is None or focus.sentences is None else np.asarray(focus.sentences, np.float64)
        first, last = offsets[sentences], offsets[sentences + 1]
        known = np.concatenate([[0], np.cumsum(heads >= 0)])
        self.n_known = float((known[last] - known[first]).sum())

    def of(self, items: Items) -> NDArray[np.int32]:
        """The heads of the words of some items, one after the other."""
        return self._words(items, self.heads)

    def _words(self, items: Items, values: NDArray[Any]) -> NDArray[Any]:
        ranges = ((self.offsets[s], self.offsets[s + 1]) for s in self.sentences[items].tolist())
        return np.concatenate([values[:0], *(values[a:b] for a, b in ranges)])

    def _costs_of(self, items: Items, heads: NDArray[np.int32]) -> Array:
        """float64[n_words]: what each wrong head costs; 0 where none is known."""
        return (heads >= 0) * (1.0 if self._costs is None else self._words(items, self._costs))

    # --- likelihood

    def wanted(self, items: Items, trees: Any) -> Wanted:
        """Posteriors of parts among the trees that have the known heads, and log Z of these trees."""
        return self.found(items, trees).wanted

    def found(self, items: Items, trees: Any) -> Found:
        """The same, and which sentences no tree fits."""
        heads, parts = self.of(items), trees.layout
        wanted = parts.indicate(heads)
        values = item_sums(trees, wanted)
        impossible = np.zeros(len(parts), np.bool_)
        unknown = np.zeros(len(parts)) if heads.min(initial=0) >= 0 else _by_sentence(heads < 0, parts)
        if unknown.any():
            some, beliefs = trees.having(heads).partitions_and_beliefs()
            partial = unknown > 0
            impossible = partial & ~(some > -np.inf)
            values = np.where(partial, np.where(impossible, trees.log_partition(), some), values)
            sizes = np.diff(parts.offsets)
            wanted = np.where(np.repeat(partial, sizes), beliefs, wanted)
            wanted = np.where(np.repeat(impossible, sizes), trees.marginals().values, wanted)
        return Found(Wanted(wanted, values), impossible)

    # --- risk

    def costs(self, items: Items, trees: Any) -> tuple[Array, Array]:
        """Wrong heads: as many as are known, less those that a tree has, each for what it costs."""
        heads, parts = self.of(items), trees.layout
        each = self._costs_of(items, heads)
        cost, right = np.zeros(parts.n_parts), parts.indicate(heads)
        cost[parts.link_places] = -right[parts.link_places] * each[parts.link_words]
        return cost, _by_sentence(each, parts)

    # --- margins

    def rivals(self, items: Items, trees: Any, augmentation: float) -> Rivals:
        """The best trees when every wrong head earns `augmentation`, beside the best trees with the known heads."""
        heads, parts, harder = self.of(items), trees.layout, trees
        each = self._costs_of(items, heads)
        if augmentation:
            known, scores = heads[parts.link_words], trees.scores.values.copy()
            wrong = (known >= 0) & (known != parts.head)
            scores[parts.link_places[wrong]] += augmentation * each[parts.link_words[wrong]]
            harder = trees.with_scores(trees.scores.like(kept(scores)))
        found, wanted = best_trees(harder, "map"), heads
        if heads.min(initial=0) < 0:
            clamped = trees.having(heads)
            wanted = np.where(heads >= 0, heads, found).astype(np.int32)
            if (clamped.partitions_and_beliefs()[0] > -np.inf).all():
                wanted = best_trees(clamped, "map")
        counts = None if self._counts is None else self._counts[self.sentences[items]]
        losses = _by_sentence((found != heads) * each, parts)
        return Rivals(parts.indicate(wanted) - parts.indicate(found), losses, counts)


def _by_sentence(words: NDArray[Any], parts: TreeParts) -> Array:
    """float64[n_sentences]: sums of a vector over words."""
    offsets = np.concatenate([[0], np.cumsum(parts.lengths)]).astype(np.int64)
    return run_sums(words.astype(np.float64), offsets)


def with_links(parts: TreeParts, scores: Array, values: Array) -> Array:
    """float64[n_parts]: scores of parts, with a value added to each link."""
    added = scores.copy()
    added[parts.link_places] += values
    return kept(added)


def known_sentences(heads: NDArray[np.int32], lengths: NDArray[np.int64]) -> Items:
    """int64[n_items]: sentences in which some head is known."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.flatnonzero(run_sums((heads >= 0).astype(np.float64), offsets) > 0)


def tree_learner(
    model: Model,
    known: KnownHeads,
    settings: PassSettings,
    within: Callable[[float], object] | None = None,
    rates: tuple[tuple[int, float], ...] = (),
    counts: Array | None = None,
) -> Any:
    """The learner that `settings.trainer` names (`isogloss.learners.passes.learner_of`).

    `rates` are lengths of steps of weights from some number on, where they are others; `counts`, float64[n_items], are
    what items count in likelihood.
    """
    stepping: dict[str, Any] = {"rates": rates, "damping": 0.0, "floor": FLOOR}
    return learner_of(model, known, settings, within, least=LEAST, counts=counts, **stepping)
