r"""Projected edges as a constraint on what a parser expects: a share of them must be kept, in expectation.

.. math:: \max_\theta -\sum_x \min_q KL(q \| p_\theta(\cdot \mid x)) \quad\text{where}\quad
    \frac{1}{|C_x|} \sum_{e \in C_x} q(e \mid x) \ge \eta

No tree is ever built of projected edges: those that contradict each other, or the rest of what the parser learns, may
be given up, as long as enough of the others are kept.

References
----------
Ganchev, Gillenwater and Taskar, Dependency Grammar Induction via Bitext Projection Constraints, ACL 2009: the
discriminative model, whose stochastic gradient is :math:`E_q[f] - E_{p_\theta}[f]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.learners.models import Wanted
from isogloss.learners.posterior.conserved import MARGIN, Conserved, PartSets, conserve
from isogloss.structures.loopy import LoopyTrees
from isogloss.tasks.parse.training import Found
from isogloss.tasks.transfer.edges import ProjectedEdges

__all__ = ["ConservedEdges", "agreed_shares"]

Items = NDArray[np.int64]


class ConservedEdges:
    """What trees should be like that keep a share of projected edges: a target of `Likelihood` over a `TreeModel`.

    Parameters
    ----------
    edges : ProjectedEdges
        Of all sentences of the model's words. Each counts once, whatever its probability.
    sentences : int64[n_items]
        As in `TreeModel`.
    share : float, or float64[n_items]
        η, of the reference 0.9. It is lowered, by `margin`, to below what a tree can keep.
    weighted : bool
        Whether edges count by their probabilities.
    margin, tolerance : float
        As in `isogloss.learners.posterior.conserve`.
    warm : bool
        Begin each search where that of the last pass ended. A few inferences are saved; but what was found depends, in
        digits beyond `tolerance`, on the passes before, so that a run which is resumed is not the same to the bit.

    Attributes
    ----------
    gains : float64[n_items]
        What edges of each item gained when it was last asked for; 0 where the parser kept enough by itself.
    """

    def __init__(
        self,
        edges: ProjectedEdges,
        sentences: Items,
        share: float | NDArray[np.float64] = 0.9,
        *,
        weighted: bool = False,
        margin: float = MARGIN,
        tolerance: float = 1e-4,
        warm: bool = False,
    ) -> None:
        self.share = np.broadcast_to(np.asarray(share, np.float64), len(sentences))
        if not ((self.share >= 0) & (self.share <= 1)).all():
            raise ParameterError(f"ConservedEdges: share should be from 0 to 1, not {share!r}")
        self.sets = _cells(edges, weighted).take(np.asarray(sentences, np.int64))
        self.margin, self.tolerance, self.warm = margin, tolerance, warm
        self.gains = np.zeros(len(sentences))

    @property
    def n_known(self) -> float:
        """How many edges there are."""
        return float(len(self.sets.places))

    def kept(self, items: Items, trees: Any) -> Conserved:
        """The nearest distributions that keep enough, over matrices (head, child) for each sentence."""
        if not isinstance(trees, LoopyTrees) or trees.layout.families:
            raise ParameterError(
                "ConservedEdges: expectations of links are exact for trees of order 1 only; train with order=1"
            )
        start = self.gains[items] if self.warm else None
        found = conserve(
            trees.tree_factor(), self.sets.take(items), self.share[items], margin=self.margin,
            tolerance=self.tolerance, start=start,
        )  # fmt: skip
        self.gains[items] = found.gains
        return found

    def wanted(self, items: Items, trees: Any) -> Wanted:
        """Posteriors of links under the nearest distributions, and log Z − KL of each sentence."""
        found = self.kept(items, trees)
        return Wanted(found.marginals[trees.layout.cells], found.values)

    def found(self, items: Items, trees: Any) -> Found:
        """The same, as models with relations ask for it; every sentence has such a distribution."""
        return Found(self.wanted(items, trees), np.zeros(len(items), np.bool_))


def _cells(edges: ProjectedEdges, weighted: bool) -> PartSets:
    """Where edges stand in matrices (head, child) of their sentences."""
    if weighted:
        edges = edges.keep(edges.probability > 0)
    sizes = (edges.lengths + 1)[edges.sentence]
    places = edges.head.astype(np.int64) * sizes + edges.child
    return PartSets(edges.starts, places, edges.probability if weighted else np.ones(len(places)))


def agreed_shares(edges: ProjectedEdges, heads: NDArray[np.int32], share: float) -> NDArray[np.float64]:
    r"""η of each sentence from η of relations and directions, estimated without labels.

    Edges of relation and direction *c* are trusted by how often another parser, which has not seen them, agrees:

    .. math:: \eta_c = 1 - (1 - \eta) \frac{1 - a_c}{1 - \bar a}

    where :math:`a_c` is the share of edges of *c* that its trees have, and :math:`\bar a` that of all edges, so that
    the mean over all edges is η. What a sentence has to keep is the mean of its edges.

    Parameters
    ----------
    edges : ProjectedEdges
    heads : int32[n_words]
        Trees of the other parser.
    share : float
        η.

    Returns
    -------
    float64[n_sentences]

    Examples
    --------
    Two of three edges to the left are in the trees, and the one to the right is.

    >>> edges = ProjectedEdges.of([0, 2, 4, 6, 8], [0, 2, 4, 7], [2, 2, 2, 1])
    >>> agreed_shares(edges, np.array([2, 0, 2, 0, 0, 1, 0, 1]), 0.7).round(2).tolist()
    [0.6, 0.6, 0.6, 1.0]
    """
    if not len(edges.word):
        return np.full(len(edges), share)
    agreed = edges.conserved(heads).astype(np.float64)
    side = np.where(edges.head == 0, 2, (edges.head > edges.child).astype(np.int64))
    kind = (edges.relation.astype(np.int64) + 1) * 3 + side
    mean = float(agreed.mean())
    often = np.bincount(kind, agreed) / np.maximum(np.bincount(kind), 1)
    wrong = (1.0 - often[kind]) / max(1.0 - mean, 1e-12)
    own = np.clip(1.0 - (1.0 - share) * wrong, 0.0, 1.0)
    sums, sizes = np.bincount(edges.sentence, own, len(edges)), np.bincount(edges.sentence, minlength=len(edges))
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), share)
