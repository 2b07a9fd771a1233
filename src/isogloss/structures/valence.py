"""`ValenceTree`: projective trees whose heads count their children (DMV); `ValenceTrees`: many of them at once."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores, kept
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.heads import Heads, HeadTree, crosses, heads_of, link_scores
from isogloss.structures.kinds import KindsBatch, KindsProgram
from isogloss.structures.semiring import Log, Semiring

__all__ = ["ValenceBatch", "ValenceProgram", "ValenceTree", "ValenceTrees"]

LEFT, RIGHT = 0, 1
CONTINUE, STOP = 0, 1


class ValenceProgram(KindsProgram[Heads]):
    """What trees with valence share, whether their nodes are words or senses of words: links, decisions and children.

    A structure is the head of each node, and −1 for one that takes no part.
    """

    stops: Array
    children: Array
    nearest_first: bool

    def _set(self, scores: ArrayLike, stops: ArrayLike, children: ArrayLike, nearest_first: bool) -> None:
        """Take the scores over, once they are known to fit together."""
        place = type(self).__name__
        self.scores = link_scores(scores, place)
        size = len(self.scores)
        self.stops = checked_scores(stops, f"{place}: stops", (size, 2, None, 2))
        self.children = checked_scores(children, f"{place}: children", (size, size, None))
        if not self.stops.shape[2] or not self.children.shape[2]:
            raise ParameterError(f"{place}: stops and children should have at least one class of valence")
        self.nearest_first = bool(nearest_first)

    def _with(self, scores: Array, stops: Array, children: Array) -> Self:
        """The same sentence with arrays that are known to be in order."""
        other = object.__new__(type(self))
        other.scores, other.stops, other.children = scores, stops, children
        other.nearest_first = self.nearest_first
        return other

    def _senses(self) -> NDArray[np.int64] | None:
        """How many senses each word has; None if nodes are words."""
        return None

    @abstractmethod
    def _checked(self, y: Any) -> Heads:
        """The structure as an array, once it is known to have a head for each node that takes part."""

    @abstractmethod
    def _is_tree(self, heads: Heads) -> bool:
        """Whether it is a projective tree with one root child."""

    # --- the dynamic program

    def _all_kinds(self, semiring: Semiring, u: Array) -> tuple[float, tuple[Array, ...]]:
        senses = self._senses()
        stacks = (Stack.one(self.scores), Stack.one(self.stops), Stack.one(self.children))
        given = None if senses is None else [senses]
        values, grads = _swept(semiring, stacks, self.nearest_first, u, np.zeros(2, np.int64), given)
        shaped = (grad.reshape(table.shape) for grad, table in zip(grads, self.part_scores(), strict=True))
        return float(values[0]), tuple(shaped)

    def _remake(self, scores: Array) -> Self:
        return self._with(scores, self.stops, self.children)

    # --- several kinds of parts

    def score(self, y: ArrayLike) -> float:
        """Log score of a structure, not normalised; −∞ for what is no projective tree with one root child."""
        heads = self._checked(y)
        return self._total(heads) if self._is_tree(heads) else -math.inf

    def part_scores(self) -> tuple[Array, ...]:
        """Scores of links, of decisions to stop, and of children."""
        return self.scores, self.stops, self.children

    def kinds_of(self, y: ArrayLike) -> tuple[Array, ...]:
        """How often the structure has each part, in arrays like those of `part_scores`."""
        heads = self._checked(y)
        stops, children = np.zeros(self.stops.shape), np.zeros(self.children.shape)
        last_stop, last_child = self.stops.shape[2] - 1, self.children.shape[2] - 1
        for head in np.flatnonzero(heads >= 0) + 1:
            taken = np.flatnonzero(heads == head) + 1
            for side, some in ((LEFT, taken[taken < head][::-1]), (RIGHT, taken[taken > head])):
                for v, child in enumerate(some if self.nearest_first else some[::-1]):
                    stops[head, side, min(v, last_stop), CONTINUE] += 1.0
                    children[head, child, min(v, last_child)] += 1.0
                stops[head, side, min(len(some), last_stop), STOP] += 1.0
        return self.parts(heads), stops, children

    def with_part_scores(self, *scores: Array) -> Self:
        """The same sentence with other scores of every kind, in the order of `part_scores`."""
        old = self.part_scores()
        if len(scores) != len(old):
            raise ParameterError(f"{self!r}: {len(scores)} arrays were given; give links, stops and children")
        return self._with(
            *(checked_scores(table, f"{self!r}: scores", was.shape) for table, was in zip(scores, old, strict=True))
        )

    def stop_marginals(self) -> Array:
        """How often each decision is expected, an array like `stops`."""
        return self._sums[1][1]

    def child_marginals(self) -> Array:
        """Posterior of each link with the valence of its child, an array like `children`."""
        return self._sums[1][2]


class ValenceTree(HeadTree, ValenceProgram):
    r"""A distribution over projective trees with one root child, in which heads decide child by child whether to stop.

    .. math:: p(y) = \frac1Z \exp \Big( scores[0, r] + \sum_{h \to m \in y} \big( scores[h, m]
        + stops[h, d, v_m, 0] + children[h, m, v_m] \big) + \sum_h \sum_d stops[h, d, k_{hd}, 1] \Big)

    where *d* is the side of the child (0 left, 1 right), :math:`v_m` the number of children that *h* has on that side
    and that come before *m*, and :math:`k_{hd}` the number that it has there in the end; both are capped at the last
    class of the array that is read.

    Parameters
    ----------
    scores : float64[n+1, n+1]
        Log score of each link (head, child) whatever its valence; node 0 is the root, words are 1 … n; −∞ forbids. In a
        grammar, row 0 has the root probabilities and the rest is 0: what posterior regularisation changes. The diagonal
        and column 0 are not read.
    stops : float64[n+1, 2, V_s, 2]
        Log score (head, side, valence, decision) of taking one more child (0) and of stopping (1). Row 0 is not read.
    children : float64[n+1, n+1, V_c]
        Log score (head, child, valence). Row 0, column 0 and the diagonal are not read.
    nearest_first : bool
        Whether children come from the head outwards, so that the nearest has valence 0; otherwise the farthest has.
        With V_c = 1 it makes no difference: every side then has the same decisions.

    Notes
    -----
    Everything is exact, in O(n³V) time for V = max(V_s, V_c). Trees are given as heads, as for `ProjectiveTree`. V_s =
    2 and V_c = 1 is the dependency model with valence. `marginals` are those of links; `stop_marginals` and
    `child_marginals` the expected numbers of the other parts, of which a tree may have one several times: what EM
    counts.

    References
    ----------
    Klein and Manning, Corpus-based induction of syntactic structure, ACL 2004; Headden, Johnson and McClosky, NAACL
    2009 (valence of children); Gillenwater et al., ACL 2010, section 2.

    Examples
    --------
    >>> dist = ValenceTree(np.zeros((4, 4)), np.zeros((4, 2, 2, 2)), np.zeros((4, 4, 1)))
    >>> round(float(np.exp(dist.log_partition())), 9), dist.marginals()[0, 1:].round(4).tolist()
    (7.0, [0.4286, 0.1429, 0.4286])
    >>> far = np.zeros((3, 2, 2, 2))
    >>> far[:, 1, 0, 0] = -3.0                                        # nobody likes to have a first child on the right
    >>> ValenceTree(np.zeros((3, 3)), far, np.zeros((3, 3, 1))).argmax().tolist()
    [2, 0]
    """

    single_root = True

    def __init__(self, scores: ArrayLike, stops: ArrayLike, children: ArrayLike, *, nearest_first: bool = True) -> None:
        self._set(scores, stops, children, nearest_first)

    @classmethod
    def batch(
        cls,
        scores: Iterable[ArrayLike],
        stops: Iterable[ArrayLike],
        children: Iterable[ArrayLike],
        *,
        nearest_first: bool = True,
    ) -> ValenceTrees:
        """Many sentences at once, from one array of each kind for each."""
        return ValenceTrees.of(scores, stops, children, nearest_first=nearest_first)

    def __repr__(self) -> str:
        classes = f"stop_valences={self.stops.shape[2]}, child_valences={self.children.shape[2]}"
        return f"ValenceTree(n={self.n}, {classes}, nearest_first={self.nearest_first})"

    def _draws(self) -> int:
        return 5 * self.n + 1

    def _raise_infeasible(self) -> NoReturn:
        if not (self.scores[0, 1:] > -np.inf).any():
            finding = "no word may hang on the root"
        elif not (self.stops[1:, :, :, STOP] > -np.inf).any(axis=2).all():
            finding = "some word may never stop"
        else:
            finding = "the allowed links and decisions make no projective tree with one root child"
        raise InfeasibleError(f"{self!r}: {finding}. Give the parts of at least one tree finite scores")

    def _is_tree(self, heads: Heads) -> bool:
        """Whether it is a tree with one root child, and nothing crosses."""
        return super()._is_tree(heads) and not crosses(heads)


def _swept(
    semiring: Semiring,
    stacks: tuple[Stack, Stack, Stack],
    nearest_first: bool,
    u: Array,
    starts: NDArray[np.int64],
    senses: Sequence[NDArray[np.int64]] | None = None,
) -> tuple[Array, list[Array]]:
    """For each sentence ⊕ over all trees, and the derivatives by each kind of scores, laid out like them.

    `senses` says for each sentence how many each of its words has, one if not given.
    """
    from isogloss.structures._numba.valence import log_valence_trees, marginal_valence_trees

    scores, stops, children = stacks
    tables = [kept(stack.values.view()) for stack in stacks]  # read-only, so that kernels are compiled for one type
    bounds = scores.shapes[:, 0] if senses is None else np.array([len(counts) + 1 for counts in senses], np.int64)
    ends = np.concatenate([[0], np.cumsum(bounds)]).astype(np.int64)
    if senses is None:
        firsts = np.arange(ends[-1]) - np.repeat(ends[:-1], bounds)
    else:
        firsts = np.concatenate([np.zeros(0, np.int64), *(np.append(0, np.cumsum(counts)) for counts in senses)])
    offsets = np.array([*(stack.offsets[:-1] for stack in stacks), ends[:-1]], np.int64).reshape(4, len(scores))
    sizes = np.stack([scores.shapes[:, 0], stops.shapes[:, 2], children.shapes[:, 2], bounds], axis=1)
    grads, values = [np.zeros(len(stack.values)) for stack in stacks], np.full(len(scores), np.nan)
    layout: tuple[Any, ...] = (*tables, offsets, sizes, firsts, nearest_first)
    if isinstance(semiring, Log):
        run_sentences(marginal_valence_trees, len(scores), *layout, *grads, values)
    if np.isnan(values).any():
        run_sentences(log_valence_trees, len(scores), semiring, *layout, u, starts, *grads, values)
    return values, grads


class ValenceBatch(KindsBatch[Heads]):
    """What batches of trees with valence share: links, decisions and children of each sentence."""

    stops: Stack
    children: Stack
    nearest_first: bool

    def _set(self, scores: Stack, stops: Stack, children: Stack, nearest_first: bool) -> None:
        """Take the scores over, once they are known to fit together."""
        size, count, place = scores.shapes[:, :1], len(scores), type(self).__name__
        wanted = {"scores": (scores, (0, 0)), "stops": (stops, (0, 2, None, 2)), "children": (children, (0, 0, None))}
        for kind, (stack, axes) in wanted.items():
            shapes = stack.shapes
            fits = shapes.shape == (count, len(axes)) and bool((shapes >= 1).all())
            for axis, want in enumerate(axes if fits else ()):
                fits &= want is None or bool((shapes[:, axis] == (want or size[:, 0])).all())
            if not fits:
                named = ", ".join("n+1" if axis == 0 else str(axis or "V") for axis in axes)
                raise ParameterError(
                    f"{place}: {kind} should be [{named}] for every sentence, the root first, and V at least 1"
                )
            stack.checked(f"{place}: {kind}")
        self.scores, self.stops, self.children = scores, stops, children
        self.nearest_first = bool(nearest_first)

    def _senses(self) -> Sequence[NDArray[np.int64]] | None:
        """How many senses the words of each sentence have; None if nodes are words."""
        return None

    def _kinds(self) -> tuple[Stack, Stack, Stack]:
        return self.scores, self.stops, self.children

    def _all_kinds(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, list[Array]]:
        return _swept(semiring, self._kinds(), self.nearest_first, u, starts, self._senses())

    def stop_marginals(self) -> Stack:
        """How often each decision is expected, laid out as `stops`."""
        return self.stops.like(self._sums[1][1])

    def child_marginals(self) -> Stack:
        """Posteriors of links with the valence of their children, laid out as `children`."""
        return self.children.like(self._sums[1][2])


class ValenceTrees(ValenceBatch):
    """Many distributions over trees with valence, of sentences of any lengths: the batch view of `ValenceTree`.

    Every number equals, to the bit, what `ValenceTree` gives for the sentence alone, on any number of threads.

    Parameters
    ----------
    scores, stops, children : Stack
        float64[n+1, n+1], [n+1, 2, V_s, 2] and [n+1, n+1, V_c] for each sentence.
    nearest_first : bool
        As for `ValenceTree`, for all sentences.

    Examples
    --------
    >>> sizes = (1, 2, 3, 5)
    >>> many = ValenceTrees.of(*([np.zeros(shape) for shape in shapes] for shapes in (
    ...     [(n, n) for n in sizes], [(n, 2, 3, 2) for n in sizes], [(n, n, 2) for n in sizes])))
    >>> np.exp(many.log_partition()).round(6).tolist()
    [1.0, 1.0, 2.0, 30.0]
    """

    def __init__(self, scores: Stack, stops: Stack, children: Stack, *, nearest_first: bool = True) -> None:
        self._set(scores, stops, children, nearest_first)

    @classmethod
    def of(
        cls,
        scores: Iterable[ArrayLike],
        stops: Iterable[ArrayLike],
        children: Iterable[ArrayLike],
        *,
        nearest_first: bool = True,
    ) -> ValenceTrees:
        """From one array of each kind for each sentence."""
        return cls(
            Stack.of(scores, "ValenceTrees: scores", 2),
            Stack.of(stops, "ValenceTrees: stops", 4),
            Stack.of(children, "ValenceTrees: children", 3),
            nearest_first=nearest_first,
        )

    def __getitem__(self, s: int) -> ValenceTree:
        return ValenceTree(self.scores[s], self.stops[s], self.children[s], nearest_first=self.nearest_first)

    def _remake(self, scores: Stack) -> Self:
        other = object.__new__(type(self))
        other.scores, other.stops, other.children = scores, self.stops, self.children
        other.nearest_first = self.nearest_first
        return other

    def _take(self, items: NDArray[np.int64]) -> ValenceTrees:
        kinds = (stack.take(items) for stack in self._kinds())
        return ValenceTrees(*kinds, nearest_first=self.nearest_first)

    def _draws(self) -> NDArray[np.int64]:
        return np.asarray(5 * (self.scores.shapes[:, 0] - 1) + 1, np.int64)

    def _structures(self, parts: Stack) -> Sequence[Heads]:
        return heads_of(parts)
