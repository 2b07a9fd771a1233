"""Families of factors on the links of a dependency tree: the tree itself, and pairs of links that cross."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.base import Array, InfeasibleError
from isogloss.structures.factorgraph.family import Choice, Family, Ints
from isogloss.structures.factorgraph.sequences import links_grid
from isogloss.structures.factorgraph.variables import Variables

__all__ = ["NoCross", "Tree"]

MOST = 1e6  # log-odds beyond this count as this: they only arise where messages grow without end


class Tree(Family):
    r"""The true links are a dependency tree rooted at node 0, projective (PTREE) or not (TREE); O(n³).

    With log-odds a as the scores of links, :math:`\mu` their marginals, and the other heads of the same child for
    :math:`1 - \mu`,

    .. math:: m_{ij} = \log \mu_{ij} - \log \sum_{i' \ne i} \mu_{i'j} - a_{ij} .

    Maxima take the place of sums with max-marginals, for projective trees. A link that is already certain, either way,
    is told 0: what the tree would say of it cannot change anything.

    References
    ----------
    Smith 2010, equations 2.13–2.15, algorithm 2.4 (PTREE); 3.19–3.22 (TREE); appendix B.4 (maxima).
    """

    kind = "tree"

    def __init__(self, links: Variables, projective: bool, single_root: bool) -> None:
        self.n = links_grid(links, "tree")
        self.slots = (links,)
        self.projective = projective
        self.single_root = single_root
        self.maximises = projective  # type: ignore[misc]
        self.count = 1
        head, child = np.indices(links.shape)
        self._never = (head == child) | (child == 0)

    def owners(self) -> tuple[Ints, ...]:
        return (np.zeros(self.slots[0].shape, np.int64),)

    def _dist(self, log_odds: Array) -> Any:
        """The tree distribution whose scores are the log-odds; a certain link leaves its child no other head."""
        scores = np.where(self._never | (log_odds == -np.inf), -np.inf, np.clip(log_odds, -MOST, MOST))
        certain = log_odds == np.inf
        if certain.any():
            heads = certain.sum(axis=0)
            if heads.max() > 1 or certain[self._never].any():
                raise InfeasibleError("a tree gives every word one head, and more are certain, or a loop is")
            scores[:, heads == 1] = np.where(certain[:, heads == 1], 0.0, -np.inf)
        if self.projective:
            from isogloss.structures.projective import ProjectiveTree

            return ProjectiveTree(scores, single_root=self.single_root)
        from isogloss.structures.spanning import SpanningTree

        return SpanningTree(scores, single_root=self.single_root)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        a = incoming[0]
        dist = self._dist(a)
        if maximise:
            best: Array = dist.max_marginals()
            log_true, log_false = best, _others(best, np.maximum, -np.inf)
        else:
            log_true, log_false = self._log_marginals(dist, a)
        open_ = np.isfinite(a) & ~self._never
        out = np.where(self._never, -np.inf, 0.0)
        with np.errstate(invalid="ignore"):  # NaN where a word has no possible head: the caller raises
            out[open_] = (log_true - log_false)[open_] - np.clip(a[open_], -MOST, MOST)
        return (out,)

    def _log_marginals(self, dist: Any, a: Array) -> tuple[Array, Array]:
        """log μ and log(1 − μ), also where μ or 1 − μ is too small for a number."""
        mu = dist.marginals()
        rest = _others(mu, np.add, 0.0)
        with np.errstate(divide="ignore"):
            log_true, log_false = np.log(mu), np.log(rest)
        open_ = np.isfinite(a) & ~self._never
        lost_true, lost_false = open_ & (mu == 0), open_ & (rest == 0)
        if lost_true.any() or lost_false.any():
            if self.projective:  # the best tree with the link tells the impossible from the very unlikely
                best = dist.max_marginals() - dist.log_partition()
                log_true = np.where(lost_true, best, log_true)
                log_false = np.where(lost_false, _others(best, np.maximum, -np.inf), log_false)
            else:
                log_true = dist.log_marginals()
                log_false = _others(log_true, np.logaddexp, -np.inf)
        return log_true, log_false

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        try:
            dist = self._dist(incoming[0])
            value = dist.score(dist.argmax()) if maximise else dist.log_partition()
            return float(value), np.zeros(0)
        except InfeasibleError:
            return -np.inf, np.zeros(0)

    def parts(self, values: Sequence[Ints]) -> Array | None:
        links = values[0]
        if links[self._never].any() or (links[:, 1:].sum(axis=0) != 1).any():
            return None
        heads = links.argmax(axis=0)
        up = heads
        for _ in range(self.n.bit_length()):  # the head of the head, of the head of that, ...
            up = up[up]
        if up.any() or (self.single_root and self.n and links[0].sum() != 1):
            return None
        if self.projective and self._crosses(heads[1:]):
            return None
        return np.zeros(0)

    def _crosses(self, heads: Ints) -> bool:
        words = np.arange(1, self.n + 1)
        return bool(_crossing(heads[:, None], words[:, None], heads, words).any())

    def choose(self, scores: Array, incoming: Sequence[Array], factor: int, rng: Any) -> Choice | None:
        dist = self._dist(incoming[0])
        heads = dist.argmax() if rng is None else dist.sample(rng)
        values = np.zeros(self.slots[0].shape, np.int64)
        values[heads, np.arange(1, self.n + 1)] = 1
        return self.slots[0].numbers.ravel(), values.ravel()

    def options(self) -> dict[str, Any]:
        return {"projective": self.projective, "single_root": self.single_root}


def _others(x: Array, ufunc: np.ufunc, nothing: float) -> Array:
    """For every entry, the reduction of the other entries of its column, without taking anything back."""
    above, below = np.full_like(x, nothing), np.full_like(x, nothing)
    ufunc.accumulate(x[:-1], axis=0, out=above[1:])
    ufunc.accumulate(x[:0:-1], axis=0, out=below[-2::-1])
    return np.asarray(ufunc(above, below))


class NoCross(Family):
    r"""For any two words, a score where the links into them cross (NOCROSS); O(n) for a pair, O(n³) for all.

    With `one_head` the factor also demands that each of the two words has exactly one head. With odds :math:`\bar q`,
    and :math:`c_{ij}` the total of the heads of :math:`\ell` whose link would cross i → j,

    .. math:: w_{ij} = x_{j\ell} c_{ij} + (Q_\ell - c_{ij}), \qquad
        m_{ij} = \log w_{ij} - \log \sum_{i' \ne i} \bar q_{i'j} w_{i'j} .

    Without, it is worth 1 where a word has no head or several, which a tree or `exactly_one` beside it rules out. The
    distribution is the same, but messages say nothing where the score is 0; with `one_head`, n − 1 factors repeat for
    every word what the tree says already, and messages grow until beliefs are worthless.

    References
    ----------
    Smith 2010, section 3.4.2, equation 3.23, has `one_head`, and few iterations. We differ: what does not cross is
    summed, not subtracted.
    """

    kind = "no_cross"

    def __init__(self, links: Variables, one_head: bool) -> None:
        self.n = links_grid(links, "no_cross")
        self.one_head = one_head
        self.links = links
        first, second = np.triu_indices(self.n, 1)
        self.first, self.second = first + 1, second + 1
        self.count = len(first)
        self.shape = (self.count,)
        words = np.stack([self.first, self.second], axis=1)
        self.slots = (links.T[words],)  # [pair, side, head]

    def owners(self) -> tuple[Ints, ...]:
        return (np.broadcast_to(np.arange(self.count)[:, None, None], self.slots[0].shape),)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages_crossing import crossings, soft_crossings

        out = np.empty_like(incoming[0])
        kernel = crossings if self.one_head else soft_crossings
        kernel(scores, self.first, self.second, incoming[0], out, maximise)
        return (out,)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages_crossing import crossing_beliefs, soft_crossing_beliefs

        beliefs = np.empty(self.shape)
        kernel = crossing_beliefs if self.one_head else soft_crossing_beliefs
        value = kernel(scores, self.first, self.second, incoming[0], beliefs, maximise)
        return float(value), beliefs

    def parts(self, values: Sequence[Ints]) -> Array | None:
        links = values[0]
        heads = links.argmax(axis=2)
        words = np.stack([self.first, self.second], axis=1)
        single = ((links.sum(axis=2) == 1) & (heads != words)).all(axis=1)
        if self.one_head and not single.all():
            return None
        crossed = _crossing(heads[:, 0], self.first, heads[:, 1], self.second)
        return np.asarray(single & crossed, np.float64)

    def options(self) -> dict[str, Any]:
        return {"one_head": self.one_head}


def _crossing(head: Ints, word: Ints, head2: Ints, word2: Ints) -> NDArray[np.bool_]:
    """Whether two links cross when drawn above the sentence."""
    low, high = np.minimum(head, word), np.maximum(head, word)
    low2, high2 = np.minimum(head2, word2), np.maximum(head2, word2)
    first = (low < low2) & (low2 < high) & (high < high2)
    return np.asarray(first | (low2 < low) & (low < high2) & (high2 < high))
