r"""Two views that teach each other: a reranker of pairs of candidates whose nodes are matched by a hidden matching.

Each item (a sentence pair) has candidates of both sides with log-probabilities of a full and of a weakened model. Pairs
of nodes, one of each side, have features. The reranker

.. math:: q(y \mid x) \propto \max_a \exp\big[\lambda_1 \ell^W_1(y_1) + \lambda_2 \ell^W_2(y_2) + \theta \cdot
          \phi(y_1, a, y_2)\big]

learns to give the candidates that the full models choose a high probability. It knows nodes and features, not words.

References
----------
Burkett, Petrov, Blitzer and Klein, Learning Better Monolingual Models with Unannotated Bilingual Text, CoNLL 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.sparse import Sparse
from isogloss.learners.optimisers import Lbfgs
from isogloss.learners.runner import run
from isogloss.progress import Progress
from isogloss.structures.batch import run_sentences

__all__ = ["RULES", "CandidatePairs", "Candidates", "FixedMatchings", "MatchedView", "fit_multiview", "floored"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
RULES = ("full", "weak", "product", "uniform")
"""Decision rules, equations 5, 2, 3 and 4 of the paper."""
STEPS = 100
"""The most steps of L-BFGS in a round."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of one side of an item.

    Parameters
    ----------
    nodes : sequence of sequences of int
        The nodes of each candidate, by their numbers among the distinct nodes of the item and side.
    full, weak : float64[n_candidates]
        Log-probabilities under both models.
    """

    nodes: Sequence[Sequence[int] | NDArray[np.int64]]
    full: Array
    weak: Array


def floored(log_probabilities: ArrayLike) -> Array:
    """Candidates that a model cannot make (−∞) have the least log-probability of the list, minus 1.

    >>> floored([-1.0, -np.inf, -2.0]).tolist()
    [-1.0, -3.0, -2.0]
    """
    given = np.array(log_probabilities, np.float64)
    fine = np.isfinite(given)
    given[~fine] = given[fine].min() - 1.0 if fine.any() else 0.0
    return given


class CandidatePairs:
    """All pairs of candidates of some items, as arrays that kernels work on.

    Parameters
    ----------
    sides : sequence of (Candidates, Candidates)
        For each item; each side has at least one candidate.
    n_nodes : sequence of (int, int)
        How many distinct nodes each side of each item has.
    features : Sparse
        A row for each pair of distinct nodes: items in order, source node by source node.
    """

    def __init__(
        self, sides: Sequence[tuple[Candidates, Candidates]], n_nodes: Sequence[tuple[int, int]], features: Sparse
    ) -> None:
        counts = [(len(one.nodes), len(two.nodes)) for one, two in sides]
        shapes = [(*own, *many) for own, many in zip(n_nodes, counts, strict=True)]
        self.shapes = np.array(shapes, np.int64).reshape(-1, 4)
        if len(shapes) and self.shapes[:, 2:].min() < 1:
            raise ParameterError("CandidatePairs: each side of an item should have at least one candidate")
        self.features = features
        self.cells = _starts(self.shapes[:, 0] * self.shapes[:, 1])
        if features.n_rows != int(self.cells[-1]):
            raise ParameterError(
                f"CandidatePairs: features should have {int(self.cells[-1])} rows, one for each pair of nodes"
            )
        self.pairs = _starts(self.shapes[:, 2] * self.shapes[:, 3])
        lists = [own.nodes for both in sides for own in both]
        flat = [np.asarray(nodes, np.int64) for own in lists for nodes in own]
        self.nodes = np.concatenate([np.zeros(0, np.int64), *flat])
        self.starts = _starts(np.array([len(nodes) for nodes in flat], np.int64))
        most = np.repeat(self.shapes[:, :2].ravel(), self.shapes[:, 2:].ravel())
        if len(self.nodes) and not (
            self.nodes.min() >= 0 and (self.nodes < np.repeat(most, np.diff(self.starts))).all()
        ):
            raise ParameterError("CandidatePairs: a candidate has a node that the item has not")
        self.lists = _starts(np.array([len(own) for own in lists], np.int64))[:-1].reshape(-1, 2)
        self.room = _starts(np.array([_places(*own) for own in sides], np.int64))
        self.full, self.weak = (
            [np.concatenate([np.zeros(0), *(_spread(both, side, name) for both in sides)]) for side in (0, 1)]
            for name in ("full", "weak")
        )

    def __len__(self) -> int:
        return len(self.shapes)

    def matched(self, weights: Array) -> tuple[Integers, Integers]:
        """The best matching of each pair of candidates: matched pairs of nodes, and how many each has."""
        from isogloss.learners._numba.multiview import matchings

        edges, counts = np.zeros(int(self.room[-1]), np.int64), np.zeros(int(self.pairs[-1]), np.int64)
        given = (self.cells, self.shapes, self.lists, self.starts, self.nodes, self.pairs, self.room)
        run_sentences(matchings, len(self), self.features.scores(weights), *given, edges, counts)
        return edges, counts

    def scores(self, view: MatchedView, rule: str = "full") -> list[Array]:
        """The score of every pair of candidates under a decision rule: float64[n_source, n_target] for each item."""
        edges, counts = self.matched(view.theta)
        edge, owner = self.features.scores(view.theta), np.repeat(np.arange(len(counts)), counts)
        used = np.arange(len(owner)) + np.repeat(self._gaps(counts), counts)
        bilingual = np.bincount(owner, edge[edges[used]], len(counts)) if len(owner) else np.zeros(len(counts))
        weak = view.scale[0] * self.weak[0] + view.scale[1] * self.weak[1]
        if rule == "full":
            base = view.scale[0] * self.full[0] + view.scale[1] * self.full[1]
        elif rule == "weak":
            base = weak
        elif rule == "product":
            base = weak + self.full[0] + self.full[1]
        elif rule == "uniform":
            base = self.full[0] + self.full[1]
        else:
            raise ParameterError(f"rule should be one of {', '.join(RULES)}, not {rule!r}")
        whole = base + bilingual
        return [
            whole[self.pairs[s] : self.pairs[s + 1]].reshape(self.shapes[s, 2], self.shapes[s, 3])
            for s in range(len(self))
        ]

    def _gaps(self, counts: Integers) -> Integers:
        """How far the places of the edges of each pair are behind where they would be without free places."""
        before = np.cumsum(counts) - counts
        item = np.repeat(np.arange(len(self)), np.diff(self.pairs))
        return np.asarray(self.room[item] - before[self.pairs[item]], np.int64)

    def best(self, view: MatchedView, rule: str = "full") -> Integers:
        """int64[n_items, 2]: the best candidates of both sides; of equal ones, the first."""
        found = [np.unravel_index(int(own.argmax()), own.shape) for own in self.scores(view, rule)]
        return np.array(found, np.int64).reshape(-1, 2)


def _places(one: Candidates, two: Candidates) -> int:
    """The most edges that the matchings of all pairs can have."""
    sizes = [np.array([len(nodes) for nodes in own.nodes], np.int64) for own in (one, two)]
    return int(np.minimum.outer(*sizes).sum())


def _spread(both: tuple[Candidates, Candidates], side: int, name: str) -> Array:
    """What one side says of its candidates, for each pair of candidates."""
    own = np.asarray(getattr(both[side], name), np.float64)
    other = len(both[1 - side].nodes)
    return np.repeat(own, other) if side == 0 else np.tile(own, other)


def _starts(sizes: NDArray[Any]) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


class MatchedView(NamedTuple):
    """What is learnt: weights θ of features of matched nodes, and the scale λ of each side's log-probabilities."""

    theta: Array
    scale: Array

    @property
    def vector(self) -> Array:
        """θ, then λ."""
        return np.concatenate([self.theta, self.scale])


class FixedMatchings:
    """The objective of a round, Σ log q of the right candidates with matchings as they are: concave in θ and λ.

    Weights are θ, then those of λ₁ and λ₂ that `free` names; the others are 0.
    """

    def __init__(
        self, data: CandidatePairs, gold: Integers, found: tuple[Integers, Integers], free: Sequence[int] = (0, 1)
    ) -> None:
        self.data, self.gold, self.found, self.free = data, gold, found, tuple(free)
        self.n_weights = data.features.n_features + len(self.free)

    def __len__(self) -> int:
        return 1

    def support(self, items: Integers, /) -> Integers:
        """All weights."""
        return np.arange(self.n_weights)

    def gradient(self, weights: NDArray[Any], items: Integers, /) -> tuple[float, Gradient]:
        """Value and gradient, as of one item."""
        slope = np.zeros(self.n_weights)
        return self.add_gradient(np.asarray(weights, np.float64), slope), Gradient.whole(slope)

    def add_gradient(self, weights: Array, out: Array, items: Integers | None = None, /) -> float:
        """The log-likelihood; its gradient, right less expected, is added to `out`."""
        data, size = self.data, self.data.features.n_features
        values, edge, share = self.solved(weights)
        data.features.add_totals(edge, out[:size])
        right = data.pairs[:-1] + self.gold
        for at, side in enumerate(self.free):
            own = data.weak[side]
            out[size + at] += float(own[right].sum() - (share * own).sum())  # BLAS sums otherwise on other threads
        return float(values.sum())

    def solved(self, weights: Array) -> tuple[Array, Array, Array]:
        """Log-probabilities of the right candidates, right less expected edges, and probabilities of all pairs."""
        from isogloss.learners._numba.multiview import expected_edges

        data, size = self.data, self.data.features.n_features
        base = np.zeros(int(data.pairs[-1]))
        for at, side in enumerate(self.free):
            base += weights[size + at] * data.weak[side]
        edge, share, values = np.zeros(int(data.cells[-1])), np.empty(len(base)), np.empty(len(data))
        scores = data.features.scores(weights[:size])
        given = (scores, data.shapes, data.pairs, data.room, *self.found, self.gold)
        run_sentences(expected_edges, len(data), base, *given, edge, share, values)
        return values, edge, share


class Round(NamedTuple):
    """One round: what was learnt, and the penalised log-likelihood with the best matchings under it."""

    view: MatchedView
    objective: float


def fit_multiview(
    data: CandidatePairs,
    gold: ArrayLike,
    start: MatchedView,
    *,
    rounds: int = 8,
    l2: float = 1.0,
    tolerance: float = 1e-6,
    progress: Progress | None = None,
) -> tuple[MatchedView, Array]:
    """Alternate between the best matchings and the best weights, and keep the best round.

    Parameters
    ----------
    data : CandidatePairs
    gold : int64[n_items, 2]
        The candidates that the full models choose.
    start : MatchedView
        Weights of the first matchings: with θ = 0 nothing would be matched.
    rounds : int
        The most rounds. The objective with matchings that are found anew may fall, so that the best round is kept.
    l2 : float
        Penalty ½ l2 (‖θ‖² + ‖λ‖²).
    tolerance : float
        Rounds end when the objective has risen by less than this share of itself.

    Returns
    -------
    MatchedView
        What was learnt in the best round; λ ≥ 0.
    float64[n_rounds + 1]
        The objective of the start and after each round.
    """
    chosen = np.asarray(gold, np.int64).reshape(-1, 2)
    right = chosen[:, 0] * data.shapes[:, 3] + chosen[:, 1]
    found = data.matched(start.theta)
    best = Round(start, _value(data, right, found, start, l2))
    trace, view = [best.objective], start
    if progress is not None:
        progress.start("Learning from both sides", rounds)
    for number in range(rounds):
        view = _maximised(data, right, found, view, l2)
        found = data.matched(view.theta)
        reached = Round(view, _value(data, right, found, view, l2))
        trace.append(reached.objective)
        if progress is not None:
            progress.update(number + 1)
        gain = reached.objective - best.objective
        if number == 0 or gain > 0:
            best = reached
        if number and gain < tolerance * max(1.0, abs(best.objective)):
            break
    return best.view, np.array(trace)


def _value(
    data: CandidatePairs, right: Integers, found: tuple[Integers, Integers], view: MatchedView, l2: float
) -> float:
    values, _, _ = FixedMatchings(data, right, found).solved(view.vector)
    return float(values.sum()) - 0.5 * l2 * float(view.vector @ view.vector)


def _maximised(
    data: CandidatePairs, right: Integers, found: tuple[Integers, Integers], view: MatchedView, l2: float
) -> MatchedView:
    """The maximum over θ and λ ≥ 0: without bounds if that is inside them, else the best with some λ = 0.

    The objective is concave, so that the best of the four ways to fix λ that keep to the bounds is the maximum.
    """
    ways = sorted(product((0, 1), repeat=2), key=sum, reverse=True)
    reached: list[tuple[float, MatchedView]] = []
    for way in ways:
        free = [side for side in (0, 1) if way[side]]
        learner = Lbfgs(FixedMatchings(data, right, found, free), l2=l2)
        begin = np.concatenate([view.theta, view.scale[free]])
        state = run(learner, learner.init(begin), iterations=STEPS, tolerance=1e-9).state
        scale = np.zeros(2)
        scale[free] = state.weights[len(view.theta) :]
        if (scale >= 0).all():
            reached.append((state.value, MatchedView(state.weights[: len(view.theta)], scale)))
            if len(free) == 2:
                break
    return max(reached, key=lambda one: one[0])[1]
