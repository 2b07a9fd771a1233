"""`ProjectiveTrees`: many projective trees at once, and the sweep that one tree and many share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.devices import current
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, kept
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.heads import Heads, heads_of
from isogloss.structures.kinds import KindsBatch
from isogloss.structures.projective import KINDS, ProjectiveTree
from isogloss.structures.semiring import Log, Max, Semiring

__all__ = ["ProjectiveTrees", "sweep"]


def sweep(
    semiring: Semiring,
    scores: Stack,
    siblings: Stack | None,
    grandparents: Stack | None,
    single_root: bool,
    u: Array,
    starts: NDArray[np.int64],
) -> tuple[Array, list[Array]]:
    """For each sentence ⊕ over all trees; and the derivatives by each kind of scores given, laid out like them."""
    values, sizes = np.empty(len(scores)), np.ascontiguousarray(scores.shapes[:, 0])
    if siblings is None and grandparents is None:
        return values, [_first_order(semiring, scores, sizes, single_root, u, starts, values)]
    from isogloss.structures._numba.eisner2 import second_order_trees

    like = siblings if siblings is not None else grandparents
    assert like is not None
    tables = [kept(np.zeros(len(like.values))) if siblings is None else siblings.values]
    tables.append(kept(np.zeros(0)) if grandparents is None else grandparents.values)
    grads = [np.zeros(len(table)) for table in (scores.values, *tables)]
    order = 0 if grandparents is None else 1
    layout = (scores.offsets, like.offsets, sizes, order, single_root)  # type: ignore[assignment]
    run_sentences(second_order_trees, len(scores), semiring, scores.values, *tables, *layout, u, starts, *grads, values)
    given = (True, siblings is not None, grandparents is not None)
    return values, [grad for grad, wanted in zip(grads, given, strict=True) if wanted]


def _first_order(
    semiring: Semiring,
    scores: Stack,
    sizes: NDArray[np.int64],
    single_root: bool,
    u: Array,
    starts: NDArray[np.int64],
    values: Array,
) -> Array:
    """The derivatives, and ⊕ into `values`."""
    from isogloss.structures._numba.eisner import best_trees, log_trees, marginal_trees

    layout = (scores.values, scores.offsets, sizes, single_root)
    if isinstance(semiring, Log) and current() == "cuda" and len(sizes):
        from isogloss.structures._gpu import eisner, transfer

        values[:], grad = transfer.solved(eisner.marginal_trees, scores, sizes, single_root)
        if np.isnan(values).any():
            run_sentences(log_trees, len(scores), semiring, *layout, u, starts, grad, values)
        return np.asarray(grad, np.float64)
    grad = np.zeros(len(scores.values))
    if isinstance(semiring, Max):
        run_sentences(best_trees, len(scores), *layout, grad, values)
        return grad
    values[:] = np.nan
    if isinstance(semiring, Log):
        run_sentences(marginal_trees, len(scores), *layout, grad, values)
    if np.isnan(values).any():
        run_sentences(log_trees, len(scores), semiring, *layout, u, starts, grad, values)
    return grad


class ProjectiveTrees(KindsBatch[Heads]):
    """Many distributions over projective trees, of sentences of any lengths: the batch view of `ProjectiveTree`.

    Every number equals, to the bit, what `ProjectiveTree` gives for the sentence alone, on any number of threads.

    Parameters
    ----------
    scores : Stack
        float64[n+1, n+1] for each sentence, indexed (head, child).
    single_root : bool
        As for `ProjectiveTree`, for all sentences.
    siblings, grandparents : Stack, optional
        float64[n+1, n+1, n+1] for each sentence.

    Examples
    --------
    >>> many = ProjectiveTrees.of([np.zeros((3, 3)), np.zeros((1, 1)), np.zeros((5, 5))])
    >>> np.exp(many.log_partition()).round(6).tolist(), [len(heads) for heads in many.argmax()]
    ([3.0, 1.0, 55.0], [2, 0, 4])
    """

    def __init__(
        self,
        scores: Stack,
        *,
        single_root: bool = False,
        siblings: Stack | None = None,
        grandparents: Stack | None = None,
    ) -> None:
        shapes = scores.shapes
        if shapes.shape[1:] != (2,) or (shapes[:, 0] != shapes[:, 1]).any() or (shapes < 1).any():
            raise ParameterError("ProjectiveTrees: scores should be [n+1, n+1], the root first, for every sentence")
        for kind, stack in zip(KINDS, (siblings, grandparents), strict=True):
            if stack is not None and not np.array_equal(stack.shapes, np.repeat(shapes[:, :1], 3, axis=1)):
                raise ParameterError(f"ProjectiveTrees: {kind} should be [n+1, n+1, n+1] for every sentence")
        for kind, stack in zip(("scores", *KINDS), (scores, siblings, grandparents), strict=True):
            if stack is not None:
                stack.checked(f"ProjectiveTrees: {kind}")
        self.scores, self.single_root = scores, bool(single_root)
        self.siblings, self.grandparents = siblings, grandparents

    @classmethod
    def of(
        cls,
        scores: Iterable[ArrayLike],
        *,
        single_root: bool = False,
        siblings: Iterable[ArrayLike] | None = None,
        grandparents: Iterable[ArrayLike] | None = None,
    ) -> ProjectiveTrees:
        """From one array of each kind for each sentence."""
        return cls(
            Stack.of(scores, "ProjectiveTrees: scores", 2),
            single_root=single_root,
            siblings=None if siblings is None else Stack.of(siblings, "ProjectiveTrees: siblings", 3),
            grandparents=None if grandparents is None else Stack.of(grandparents, "ProjectiveTrees: grandparents", 3),
        )

    def __getitem__(self, s: int) -> ProjectiveTree:
        siblings = None if self.siblings is None else self.siblings[s]
        above = None if self.grandparents is None else self.grandparents[s]
        return ProjectiveTree(self.scores[s], single_root=self.single_root, siblings=siblings, grandparents=above)

    def _remake(self, scores: Stack) -> Self:
        cls = type(self)
        return cls(scores, single_root=self.single_root, siblings=self.siblings, grandparents=self.grandparents)

    def _take(self, items: NDArray[np.int64]) -> ProjectiveTrees:
        kinds = (None if stack is None else stack.take(items) for stack in (self.siblings, self.grandparents))
        more = dict(zip(KINDS, kinds, strict=True))
        return ProjectiveTrees(self.scores.take(items), single_root=self.single_root, **more)

    def _all_kinds(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, list[Array]]:
        return sweep(semiring, self.scores, self.siblings, self.grandparents, self.single_root, u, starts)

    def _kinds(self) -> list[Stack]:
        return [stack for stack in (self.scores, self.siblings, self.grandparents) if stack is not None]

    def _draws(self) -> NDArray[np.int64]:
        each = 2 if self.siblings is None and self.grandparents is None else 3
        return np.asarray(each * (self.scores.shapes[:, 0] - 1), np.int64)

    def _structures(self, parts: Stack) -> Sequence[Heads]:
        return heads_of(parts)

    def sibling_marginals(self) -> Stack:
        """Posteriors of (head, previous, child), laid out as `siblings`."""
        if self.siblings is None:
            raise ParameterError(f"{self!r}: siblings are not scored; give siblings= (zeros will do)")
        return self.siblings.like(self._sums[1][1])

    def grandparent_marginals(self) -> Stack:
        """Posteriors of (grandparent, head, child), laid out as `grandparents`."""
        if self.grandparents is None:
            raise ParameterError(f"{self!r}: grandparents are not scored; give grandparents= (zeros will do)")
        return self.grandparents.like(self._sums[1][-1])

    def hessian_vector(self, vectors: Stack | Iterable[ArrayLike]) -> Stack:
        """d marginals(scores + ε vectors) / dε at ε = 0, laid out as `scores`; first order only."""
        from isogloss.structures._numba.eisner_moments import many_moments

        given = [self[s]._values(vector) for s, vector in enumerate(self._one_each(list(vectors)))]
        stack, values = Stack.of(given, f"{self!r}: vectors", 2), np.empty(len(self))
        out, sizes = np.zeros(len(self.scores.values)), np.ascontiguousarray(self.scores.shapes[:, 0])
        layout = (self.scores.offsets, sizes, self.single_root)
        run_sentences(many_moments, len(self), self.scores.values, stack.values, *layout, out, values)
        self._refuse_infeasible(values)
        return self.scores.like(out)
