"""`ProjectiveTree`: dependency trees without crossing links; `ProjectiveTrees`: many of them at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores, kept
from isogloss.structures.batch import Stack
from isogloss.structures.heads import Heads, HeadTree, crosses, link_scores
from isogloss.structures.kbest import checked_k, k_best
from isogloss.structures.kinds import KindsProgram
from isogloss.structures.semiring import MAX, Semiring

if TYPE_CHECKING:
    from isogloss.structures.projective_batch import ProjectiveTrees

__all__ = ["ProjectiveTree"]

KINDS = ("siblings", "grandparents")


class ProjectiveTree(HeadTree, KindsProgram[Heads]):
    r"""A distribution over projective dependency trees of n words: no two links cross when drawn above the sentence.

    .. math:: p(y) = \frac{1}{Z} \exp \sum_{h \to m \,\in\, y} \Big( scores[h, m]
              + siblings[h, p_m, m] + grandparents[y_h, h, m] \Big)

    where :math:`p_m` is the child of *h* next to *m* on the way to *h*, or *h* itself where *m* is the nearest child on
    its side, and :math:`y_h` the head of *h* (links of the root have no grandparent).

    Parameters
    ----------
    scores : float64[n+1, n+1]
        Log score of each link (head, child); node 0 is the root, words are 1 … n; −∞ forbids. The diagonal and column 0
        are not read and have marginal 0. The array is copied, as are the next two.
    single_root : bool
        Whether the root has exactly one child; otherwise any number.
    siblings : float64[n+1, n+1, n+1], optional
        Log score (head, previous, child) of a child beside its neighbour: *adjacent* children of one side, the nearest
        one marked by previous = head. Other cells are not read.
    grandparents : float64[n+1, n+1, n+1], optional
        Log score (grandparent, head, child). Cells with head 0 are not read.

    Notes
    -----
    Everything is exact: O(n³) time for first order and siblings, O(n⁴) with grandparents, with or without siblings.
    Trees are given as heads, int64[n]: word *m* hangs on ``heads[m - 1]``. A sentence without words has one tree, the
    empty one, with either kind of root. Where no tree is allowed, `InfeasibleError` is raised. Heads of the wrong
    length or range raise `ParameterError`; heads that are no tree, cross, or have several root children under
    `single_root` have log probability −∞.

    References
    ----------
    Eisner, Three new probabilistic models for dependency parsing, COLING 1996; D. A. Smith, Efficient inference for
    trees and alignments, PhD thesis, 2010, appendix B, whose base cases for products should be 1; McDonald and Pereira,
    EACL 2006 (siblings); Koo and Collins, ACL 2010 (grandparents).

    Examples
    --------
    >>> dist = ProjectiveTree(np.zeros((4, 4)))
    >>> round(float(np.exp(dist.log_partition())), 9), round(float(dist.marginals()[0, 1]), 6)
    (12.0, 0.583333)
    >>> ProjectiveTree([[0, 1, 0], [0, 0, 3], [0, 0, 0]]).argmax().tolist()
    [0, 1]
    """

    def __init__(
        self,
        scores: ArrayLike,
        *,
        single_root: bool = False,
        siblings: ArrayLike | None = None,
        grandparents: ArrayLike | None = None,
    ) -> None:
        place = type(self).__name__
        self.scores = link_scores(scores, place)
        size = len(self.scores)
        self.single_root = bool(single_root)
        self.siblings, self.grandparents = (
            None if table is None else checked_scores(table, f"{place}: {kind}", (size,) * 3)
            for kind, table in zip(KINDS, (siblings, grandparents), strict=True)
        )

    @classmethod
    def batch(
        cls,
        scores: Iterable[ArrayLike],
        *,
        single_root: bool = False,
        siblings: Iterable[ArrayLike] | None = None,
        grandparents: Iterable[ArrayLike] | None = None,
    ) -> ProjectiveTrees:
        """Many sentences at once, from one array of each kind for each."""
        from isogloss.structures.projective_batch import ProjectiveTrees

        return ProjectiveTrees.of(scores, single_root=single_root, siblings=siblings, grandparents=grandparents)

    @property
    def _first_order(self) -> bool:
        return self.siblings is None and self.grandparents is None

    def __repr__(self) -> str:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        return f"ProjectiveTree(n={self.n}, single_root={self.single_root}{''.join(f', {kind}' for kind in given)})"

    def _with(self, scores: Array, siblings: Array | None, grandparents: Array | None) -> Self:
        """The same sentence with arrays that are known to be in order."""
        other = object.__new__(type(self))
        other.scores, other.single_root = scores, self.single_root
        other.siblings, other.grandparents = siblings, grandparents
        return other

    # --- the dynamic program

    def _all_kinds(self, semiring: Semiring, u: Array) -> tuple[float, tuple[Array, ...]]:
        """⊕ over all trees, and its derivatives by each kind of scores."""
        from isogloss.structures.projective_batch import sweep

        stacks = [
            None if table is None else Stack.one(table) for table in (self.scores, self.siblings, self.grandparents)
        ]
        values, grads = sweep(semiring, stacks[0], stacks[1], stacks[2], self.single_root, u, np.zeros(2, np.int64))  # type: ignore[arg-type]
        return float(values[0]), tuple(
            grad.reshape(table.shape) for grad, table in zip(grads, self.part_scores(), strict=True)
        )

    def _draws(self) -> int:
        return 2 * self.n if self._first_order else 3 * self.n

    def _raise_infeasible(self) -> NoReturn:
        allowed = self.scores > -np.inf
        np.fill_diagonal(allowed, False)
        orphans = np.flatnonzero(~allowed[:, 1:].any(axis=0)) + 1
        if len(orphans):
            finding = f"no head is allowed for word {orphans[0]}"
        elif not allowed[0].any():
            finding = "no word may hang on the root"
        else:
            kind = "projective tree with one root child" if self.single_root else "projective tree"
            finding = f"the allowed links make no {kind}"
        raise InfeasibleError(f"{self!r}: {finding}. Give the links of at least one tree finite scores")

    # --- trees and parts

    def _is_tree(self, heads: Heads) -> bool:
        """Whether it is a tree of this kind, and nothing crosses."""
        return super()._is_tree(heads) and not crosses(heads)

    def score(self, y: ArrayLike) -> float:
        """Log score of a tree, not normalised; −∞ for heads that are not a projective tree of this kind."""
        heads = self._checked(y)
        if not self._is_tree(heads):
            return -math.inf
        return self._total(heads)

    def _remake(self, scores: Array) -> Self:
        return self._with(scores, self.siblings, self.grandparents)

    # --- several kinds of parts

    def part_scores(self) -> tuple[Array, ...]:
        """Scores of links, then of siblings and of grandparents where given."""
        return tuple(table for table in (self.scores, self.siblings, self.grandparents) if table is not None)

    def kinds_of(self, y: ArrayLike) -> tuple[Array, ...]:
        """1 for each part that the tree has, in arrays like those of `part_scores`."""
        heads = self._checked(y)
        words = np.arange(1, self.n + 1)
        found = [self.parts(heads)]
        if self.siblings is not None:
            found.append(np.zeros(self.siblings.shape))
            found[-1][heads, _previous(heads), words] = 1.0
        if self.grandparents is not None:
            found.append(np.zeros(self.grandparents.shape))
            below = heads > 0
            found[-1][heads[heads[below] - 1], heads[below], words[below]] = 1.0
        return tuple(found)

    def with_part_scores(self, *scores: Array) -> Self:
        """The same sentence with other scores of every kind, in the order of `part_scores`."""
        old = self.part_scores()
        if len(scores) != len(old):
            raise ParameterError(
                f"{self!r}: {len(scores)} arrays were given; give one for each kind, {len(old)} in all"
            )
        new = [checked_scores(table, f"{self!r}: scores", was.shape) for table, was in zip(scores, old, strict=True)]
        siblings = new[1] if self.siblings is not None else None
        return self._with(new[0], siblings, new[-1] if self.grandparents is not None else None)

    def sibling_marginals(self) -> Array:
        """float64[n+1, n+1, n+1]: posterior of (head, previous, child), as scored by `siblings`."""
        if self.siblings is None:
            raise ParameterError(f"{self!r}: siblings are not scored; give siblings= (zeros will do)")
        return self._sums[1][1]

    def grandparent_marginals(self) -> Array:
        """float64[n+1, n+1, n+1]: posterior of (grandparent, head, child), as scored by `grandparents`."""
        if self.grandparents is None:
            raise ParameterError(f"{self!r}: grandparents are not scored; give grandparents= (zeros will do)")
        return self._sums[1][-1]

    # --- further questions

    def renyi_entropy(self, alpha: float) -> float:
        r"""Rényi entropy of order `alpha` ≥ 0, in nats, from two partition functions.

        .. math:: R_\alpha = \frac{\log Z(\alpha\,s) - \alpha \log Z(s)}{1 - \alpha}

        0 gives the logarithm of the number of allowed trees, 1 (as the limit) Shannon's entropy, infinity −log p of the
        best tree. Very near 1, where the fraction would lose all digits, it is Shannon's entropy.

        References
        ----------
        Smith 2010, equation A.35.
        """
        if not alpha >= 0:
            raise ParameterError(f"{self!r}: alpha should be 0 or more, or infinity, not {alpha!r}")
        if abs(alpha - 1) < 1e-7:
            return self.entropy()
        if alpha == math.inf:
            return self.log_partition() - self._swept(MAX, np.empty(0))[0]
        allowed = ((scores > -np.inf, scores) for scores in self.part_scores())
        raised = [np.where(allowed, alpha * np.where(allowed, scores, 0.0), -np.inf) for allowed, scores in allowed]
        return (self.with_part_scores(*raised).log_partition() - alpha * self.log_partition()) / (1 - alpha)

    def max_marginals(self) -> Array:
        """float64[n+1, n+1]: score of the best tree that has each link; −∞ where no allowed tree has it.

        One sweep forward and back for first order (Smith 2010, algorithm B.4); for second order one search a link.
        """
        from isogloss.structures._numba.eisner import best_with_link

        out = np.full(self.scores.shape, -np.inf)
        if self._first_order:
            best_with_link(self.scores, self.single_root, out)
        else:
            for head, child in np.argwhere(self.scores[:, 1:] > -np.inf) + [0, 1]:
                if head != child:
                    forced = self.scores.copy()
                    forced[np.arange(self.n + 1) != head, child] = -np.inf
                    out[head, child] = self._remake(kept(forced))._sweep(MAX, np.empty(0))[0]
        if self.n and not (out > -np.inf).any():
            self._raise_infeasible()
        return out

    def expectation(self, values: ArrayLike) -> float:
        """E[Σ values over the links of a tree], in one pass forward without marginals; first order only.

        With values = −scores this plus log Z is the entropy, as in Smith 2010, algorithm B.5 (there with sums in place
        of means).
        """
        return self._moments(values, False)[0]

    def hessian_vector(self, vector: ArrayLike) -> Array:
        """float64[n+1, n+1]: d marginals(scores + ε vector) / dε at ε = 0, in O(n³); first order only.

        The Hessian of log Z times a vector: the covariance of each link with Σ vector over the links of a tree. With
        the links of a gold tree as vector it is the gradient of the expected number of correct links.

        Parameters
        ----------
        vector : float64[n+1, n+1], finite
            The diagonal and column 0 are not read.
        """
        return self._moments(vector, True)[1]

    def _moments(self, values: ArrayLike, derivative: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.eisner_moments import moments

        given, out = self._values(values), np.zeros(self.scores.shape)
        log_z, mean = moments(self.scores, given, self.single_root, derivative, out)
        if log_z == -np.inf:
            self._raise_infeasible()
        return float(mean), out

    def _values(self, values: ArrayLike) -> Array:
        """Values of links, finite, with 0 where no tree has a link."""
        if not self._first_order:
            raise ParameterError(f"{self!r}: this is for first order; use marginals or finite differences instead")
        given = np.array(values, np.float64)
        if given.shape != self.scores.shape:
            raise ParameterError(f"{self!r}: values should be {list(self.scores.shape)}, not {list(given.shape)}")
        given[:, 0] = 0.0
        np.fill_diagonal(given, 0.0)
        given[self.scores == -np.inf] = 0.0  # so that the scores themselves may be given
        if not np.isfinite(given).all():
            raise ParameterError(f"{self!r}: values of links should be finite; {given[~np.isfinite(given)][0]} is not")
        return kept(given)

    def k_best(self, k: int) -> list[tuple[float, Heads]]:
        """The `k` best allowed trees with their scores, or all if there are fewer, best first, each once.

        Every cell of the chart keeps its k best: O(n³ + n² k log(n + k)) for first order. For second order the space is
        split around each tree found, with at most k n searches.
        """
        checked_k(k, f"{self!r}: k_best")
        if self._first_order:
            from isogloss.structures._numba.eisner_kbest import k_trees

            size = min(k, count_trees(self.n, single_root=self.single_root))  # room for all that there are, no more
            trees, values = np.empty((size, self.n), np.int64), np.empty(size)
            count = k_trees(self.scores, self.single_root, size, trees, values)
            found = [(float(values[rank]), trees[rank].copy()) for rank in range(count)]
        else:
            found = [(score, np.array(heads, np.int64)) for score, heads in k_best(self._best, k)]
        if not found:
            self._raise_infeasible()
        return found

    def _best(self, fixed: Sequence[int], banned: frozenset[int]) -> tuple[float, list[int]] | None:
        restricted = self.scores.copy()
        for word, head in enumerate(fixed, 1):
            restricted[np.arange(self.n + 1) != head, word] = -np.inf
        restricted[list(banned), len(fixed) + 1 if banned else 0] = -np.inf
        value, parts = self._remake(kept(restricted))._sweep(MAX, np.empty(0))
        return None if value == -np.inf else (value, self._read(parts).tolist())


def count_trees(n: int, *, single_root: bool) -> int:
    """How many projective trees n words have.

    Examples
    --------
    >>> [count_trees(n, single_root=False) for n in range(6)], [count_trees(n, single_root=True) for n in range(6)]
    ([1, 1, 3, 12, 55, 273], [1, 1, 2, 7, 30, 143])
    """
    if single_root and n:
        return math.comb(3 * n - 2, n - 1) // n
    return math.comb(3 * n, n) // (2 * n + 1)


def _previous(heads: Heads) -> Heads:
    """int64[n]: for each word the next child of its head on the way there, or the head itself."""
    out = heads.copy()
    nearest: dict[int, int] = {}
    for word, head in enumerate(heads.tolist(), 1):
        if head < word:
            out[word - 1], nearest[head] = nearest.get(head, head), word
    nearest.clear()
    for word in range(len(heads), 0, -1):
        head = int(heads[word - 1])
        if head > word:
            out[word - 1], nearest[head] = nearest.get(head, head), word
    return out
