"""Many structures of one kind, worked on together: `Stack` holds their arrays, `Batch` has the methods of one for all.

Sentences, not cells, go to threads; nothing is summed across sentences, so that every number equals, to the bit, what
the structure alone gives, whatever the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered, row_numbers
from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError
from isogloss.structures.base import (
    Array,
    Distribution,
    InfeasibleError,
    checked_scores,
    expected,
    kept,
    numbers,
)
from isogloss.structures.semiring import DRAW, LOG, MAX, Semiring

__all__ = ["Batch", "Listed", "One", "ProgramBatch", "Stack", "run_sentences"]

Y = TypeVar("Y")
PIECES = 4  # of a batch for each thread, so that none waits long for another


@dataclass(frozen=True, eq=False)
class Stack:
    """Arrays of one rank and any shapes, one after the other in one vector.

    Parameters
    ----------
    values : float64[n_values]
    offsets : int64[n + 1]
        Array *s* is ``values[offsets[s]:offsets[s + 1]]``, in C order.
    shapes : int64[n, rank]

    Examples
    --------
    >>> stack = Stack.of([np.zeros((2, 3)), np.ones((0, 1)), np.eye(2)])
    >>> len(stack), stack[2].tolist(), stack.shapes.tolist()
    (3, [[1.0, 0.0], [0.0, 1.0]], [[2, 3], [0, 1], [2, 2]])
    """

    values: Array
    offsets: NDArray[np.int64]
    shapes: NDArray[np.int64]

    @classmethod
    def of(cls, arrays: Iterable[ArrayLike], place: str = "Stack", rank: int | None = None) -> Stack:
        """Copy the arrays into one vector, once all are known to hold log scores and to have one rank."""
        blocks = [numbers(array, f"{place}: sentence {s}") for s, array in enumerate(arrays)]
        rank = rank if rank is not None else (blocks[0].ndim if blocks else 1)
        for s, block in enumerate(blocks):
            if block.ndim != rank:
                raise ParameterError(f"{place}: sentence {s} should have {rank} axes, not shape {list(block.shape)}")
        shapes = np.array([block.shape for block in blocks], np.int64).reshape(len(blocks), rank)
        offsets = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))]).astype(np.int64)
        values = np.concatenate([block.ravel() for block in blocks]) if blocks else np.zeros(0)
        return cls(kept(values), offsets, shapes).checked(place)

    @classmethod
    def one(cls, array: Array) -> Stack:
        """A single array that is known to be in order, not copied."""
        return cls(array.reshape(-1), np.array([0, array.size]), np.array([array.shape], np.int64))

    def checked(self, place: str) -> Stack:
        """The stack itself, once it is known to hold log scores (no NaN, no +∞), and as many as its shapes say."""
        sizes = self.shapes.prod(axis=1)
        if (
            len(self.offsets) != len(sizes) + 1
            or self.offsets[0] != 0
            or not np.array_equal(np.diff(self.offsets), sizes)
        ):
            raise ParameterError(
                f"{place}: the offsets of a Stack should be those of its shapes; make it with Stack.of"
            )
        if self.values.shape != (self.offsets[-1],):
            raise ParameterError(f"{place}: {self.offsets[-1]} scores are needed, not {list(self.values.shape)}")
        if self.values.size and not self.values.max() < np.inf:  # NaN is not, either
            at = int(np.flatnonzero(~(self.values < np.inf))[0])
            s = int(np.searchsorted(self.offsets, at, side="right")) - 1
            checked_scores(self[s], f"{place}: sentence {s}", self[s].shape)  # says where
        return self

    def like(self, values: Array) -> Stack:
        """Other values in arrays of the same shapes."""
        return Stack(values, self.offsets, self.shapes)

    def take(self, items: NDArray[np.int64]) -> Stack:
        """Some of the arrays, by their numbers, in that order; a copy."""
        offsets, places = gathered(self.offsets, items)
        return Stack(kept(self.values[places]), offsets, self.shapes[items])

    def __len__(self) -> int:
        return len(self.shapes)

    def __getitem__(self, s: int) -> Array:
        if not -len(self) <= s < len(self):
            raise IndexError(f"Stack: no array {s} among {len(self)}")
        s %= len(self)
        return self.values[self.offsets[s] : self.offsets[s + 1]].reshape(self.shapes[s])

    def __iter__(self) -> Iterator[Array]:
        return (self[s] for s in range(len(self)))


def run_sentences(kernel: Callable[..., object], count: int, *args: Any) -> None:
    """``kernel(block, blocks, *args)`` on threads, where a block is the sentences block, block + blocks, … < count.

    The threads are those of `using_threads` around the call, or all that can be had. Their number decides that of the
    blocks, which is harmless as long as sentences share nothing. A single sentence is worked on right here.
    """
    if count == 1:
        kernel(0, 1, *args)
    elif count:
        with using_threads() as threads:
            run_blocks(kernel, 1 if threads == 1 else min(count, PIECES * threads), *args)


class Batch(ABC, Generic[Y]):
    """Many distributions; the methods of `Distribution`, each with one answer for every sentence.

    A subclass sets `scores` and writes `__getitem__`, `_solve`, `argmax`, `sample` and `_remake`, and `_take` if it can
    do better than a list of its sentences. Where some sentence allows nothing, `InfeasibleError` names the first.
    """

    scores: Stack

    @abstractmethod
    def __getitem__(self, s: int) -> Distribution[Y]:
        """Sentence *s* alone."""

    @abstractmethod
    def _solve(self) -> tuple[Array, Stack]:
        """log Z of each sentence, −∞ where nothing is allowed, and marginals laid out as `scores`; called once."""

    @abstractmethod
    def argmax(self) -> Sequence[Y]:
        """The best structure of each sentence."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Sequence[Y]:
        """One structure for each sentence; the same numbers are drawn as by one sentence after the other."""

    @abstractmethod
    def _remake(self, scores: Stack) -> Self:
        """The same sentences and options under other scores of the same shapes."""

    def take(self, items: ArrayLike) -> Batch[Y]:
        """Some of the sentences, by their numbers, in that order: what a minibatch is made of.

        Examples
        --------
        >>> from isogloss.structures import Chain
        >>> many = Chain.batch([np.zeros((n, 2, 2)) for n in range(4)])
        >>> np.exp(many.take([3, 1]).log_partition()).round(6).tolist()
        [8.0, 2.0]
        """
        return self._take(row_numbers(items, len(self), type(self).__name__))

    def _take(self, items: NDArray[np.int64]) -> Batch[Y]:
        return Listed([self[s] for s in items.tolist()])

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} sentences)"

    @cached_property
    def _solved(self) -> tuple[Array, Stack]:
        values, marginals = self._solve()
        self._refuse_infeasible(values)
        kept(marginals.values)
        return kept(values), marginals

    def _refuse_infeasible(self, values: Array) -> None:
        forbidden = np.flatnonzero(values == -np.inf)
        if len(forbidden):
            first = int(forbidden[0])
            among = f" (one of {len(forbidden)})" if len(forbidden) > 1 else ""
            try:
                self[first].log_partition()
            except InfeasibleError as finding:
                raise InfeasibleError(f"sentence {first}{among}: {finding}") from finding
            raise InfeasibleError(f"sentence {first}{among}: {self[first]!r} allows nothing")

    def log_partition(self) -> Array:
        """float64[n_sentences]: log Z of each."""
        return self._solved[0]

    def marginals(self) -> Stack:
        """Posterior of each part, laid out as `scores`."""
        return self._solved[1]

    def entropy(self) -> Array:
        """float64[n_sentences]: −Σ p log p in nats."""
        values, marginals = self._solved
        means = [expected(*pair) for pair in zip(marginals, self.scores, strict=True)]
        return np.maximum(0.0, values - np.array(means, np.float64))

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of one structure for each sentence, laid out as `scores`."""
        values = np.empty(len(self.scores.values))
        out = self.scores.like(values)
        for s, y in enumerate(self._one_each(structures)):
            out[s][...] = self[s].parts(y)
        return out

    def from_parts(self, parts: Stack | Iterable[ArrayLike]) -> list[Y]:
        """The structures that have these parts, one array for each sentence; the inverse of `parts`."""
        return [self[s].from_parts(one) for s, one in enumerate(self._one_each(list(parts)))]

    def k_best(self, k: int) -> list[list[tuple[float, Y]]]:
        """The `k` best structures of each sentence with their scores, one sentence after the other."""
        found = []
        for s in range(len(self)):
            one: Any = self[s]
            if not hasattr(one, "k_best"):
                raise ParameterError(f"{self!r}: {type(one).__name__} has no k_best; use argmax")
            found.append(self._named(s, one.k_best, k))
        return found

    def best_scores(self) -> Array:
        """float64[n_sentences]: the log score of the best structure of each, not normalised."""
        used = self.parts(self.argmax())
        each = (float(scores[held > 0].sum()) for held, scores in zip(used, self.scores, strict=True))
        return np.fromiter(each, np.float64, len(self))

    def clamp(self, structures: Sequence[Any]) -> Self:
        """The distributions in which these structures alone are allowed, one for each sentence."""
        used = self.parts(structures).values > 0
        return self._remake(self.scores.like(kept(np.where(used, self.scores.values, -np.inf))))

    def _named(self, s: int, method: Callable[..., Any], *args: Any) -> Any:
        """What a method of sentence *s* gives; where that allows nothing, the error says which sentence it is."""
        try:
            return method(*args)
        except InfeasibleError as finding:
            raise InfeasibleError(f"sentence {s}: {finding}") from finding

    def log_prob(self, structures: Sequence[Any]) -> Array:
        """float64[n_sentences]: log p(y) of one structure for each sentence."""
        scores = [self[s].score(y) for s, y in enumerate(self._one_each(structures))]
        return np.array(scores, np.float64) - self.log_partition()

    def _one_each(self, structures: Sequence[Any]) -> Sequence[Any]:
        if len(structures) != len(self):
            raise ParameterError(f"{self!r}: {len(structures)} structures were given; give one for each sentence")
        return structures

    def with_scores(self, scores: Stack | Iterable[ArrayLike]) -> Self:
        """The same sentences under other scores; a Stack is taken as it is, not copied."""
        if isinstance(scores, Stack):
            stack = scores.checked(repr(self))
        else:
            stack = Stack.of(scores, repr(self), self.scores.shapes.shape[1])
        if not np.array_equal(stack.shapes, self.scores.shapes):
            raise ParameterError(f"{self!r}: new scores should have the shapes of the old")
        return self._remake(stack)


class ProgramBatch(Batch[Y]):
    """Many dynamic programs; a subclass writes one sweep over all of them."""

    @abstractmethod
    def _sweep(self, semiring: Semiring, u: Array, starts: NDArray[np.int64]) -> tuple[Array, Stack]:
        """For each sentence ⊕ over all structures, and the derivatives; sentence *s* reads ``u[starts[s]:]``."""

    @abstractmethod
    def _draws(self) -> NDArray[np.int64]:
        """How many uniform numbers each sentence takes."""

    @abstractmethod
    def _structures(self, parts: Stack) -> Sequence[Y]:
        """The structures with these parts."""

    def _solve(self) -> tuple[Array, Stack]:
        return self._sweep(LOG, np.empty(0), np.zeros(len(self) + 1, np.int64))

    def argmax(self) -> Sequence[Y]:
        """The best structure of each sentence."""
        values, grad = self._sweep(MAX, np.empty(0), np.zeros(len(self) + 1, np.int64))
        self._refuse_infeasible(values)
        return self._structures(grad)

    def best_scores(self) -> Array:
        """float64[n_sentences]: the log score of the best structure of each, not normalised."""
        values, _ = self._sweep(MAX, np.empty(0), np.zeros(len(self) + 1, np.int64))
        self._refuse_infeasible(values)
        return values

    def sample(self, rng: np.random.Generator) -> Sequence[Y]:
        """One structure for each sentence; the same numbers are drawn as by one sentence after the other."""
        starts = np.concatenate([[0], np.cumsum(self._draws())]).astype(np.int64)
        values, grad = self._sweep(DRAW, rng.random(int(starts[-1])), starts)
        self._refuse_infeasible(values)
        return self._structures(grad)


class Listed(Batch[Any]):
    """Structures of any kind, with all the methods of a batch: those of each structure, one after the other.

    For structures that have no kernels for many sentences, such as one of your own, or `Flat`.

    Examples
    --------
    >>> from isogloss.structures import Chain, ProjectiveTree
    >>> both = Listed([Chain(np.zeros((2, 3, 3))), ProjectiveTree(np.zeros((3, 3)))])
    >>> np.exp(both.log_partition()).round(6).tolist(), both.marginals().values.shape
    ([9.0, 3.0], (27,))
    """

    def __init__(self, structures: Sequence[Any]) -> None:
        self.structures = list(structures)
        each = [np.asarray(one.scores, np.float64) for one in self.structures]
        rank = max((array.ndim for array in each), default=1)
        same = all(array.ndim == rank for array in each)
        if not same:  # arrays of different ranks lie side by side as vectors
            rank = 1
        shapes = [array.shape if same else (array.size,) for array in each]
        sizes = [array.size for array in each]
        self.scores = Stack(
            kept(np.concatenate([np.zeros(0), *(array.ravel() for array in each)])),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.array(shapes, np.int64).reshape(len(each), rank),
        )

    def __getitem__(self, s: int) -> Any:
        return self.structures[s]

    def _solve(self) -> tuple[Array, Stack]:
        values, marginals = np.empty(len(self)), np.zeros(len(self.scores.values))
        for s, one in enumerate(self.structures):
            try:
                values[s] = one.log_partition()
                marginals[self.scores.offsets[s] : self.scores.offsets[s + 1]] = np.ravel(one.marginals())
            except InfeasibleError:
                values[s] = -np.inf
        return values, self.scores.like(marginals)

    def argmax(self) -> list[Any]:
        """The best structure of each sentence."""
        return [self._named(s, one.argmax) for s, one in enumerate(self.structures)]

    def sample(self, rng: np.random.Generator) -> list[Any]:
        """One structure for each sentence."""
        return [self._named(s, one.sample, rng) for s, one in enumerate(self.structures)]

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of one structure for each sentence, laid out as `scores`."""
        given = zip(self.structures, self._one_each(structures), strict=True)
        return self.scores.like(np.concatenate([np.zeros(0), *(np.ravel(one.parts(y)) for one, y in given)]))

    def _remake(self, scores: Stack) -> Self:
        new = ((one, scores[s]) for s, one in enumerate(self.structures))
        return type(self)([one.with_scores(array.reshape(one.scores.shape)) for one, array in new])

    def _take(self, items: NDArray[np.int64]) -> Listed:
        return Listed([self.structures[s] for s in items.tolist()])


class One(Distribution[Y]):
    """A sentence of a batch whose kernels work on many: a batch of one, with the methods of a single structure."""

    def __init__(self, batch: Batch[Y]) -> None:
        if len(batch) != 1:
            raise ParameterError(f"One: a batch of one sentence is needed, not {batch!r}")
        self.batch, self.scores = batch, batch.scores[0]

    def __repr__(self) -> str:
        return f"One({self.batch!r})"

    def _solve(self) -> tuple[float, Array]:
        return float(self.batch.log_partition()[0]), self.batch.marginals()[0]

    def argmax(self) -> Y:
        """The best structure."""
        return self.batch.argmax()[0]

    def sample(self, rng: np.random.Generator) -> Y:
        """One structure drawn from the distribution."""
        return self.batch.sample(rng)[0]

    def parts(self, y: Any) -> Array:
        """1 for each part that the structure `y` has, 0 elsewhere, shaped like `scores`."""
        return self.batch.parts([y])[0]

    def k_best(self, k: int) -> list[tuple[float, Y]]:
        """The `k` best structures with their scores."""
        return self.batch.k_best(k)[0]

    def _read(self, parts: Array) -> Y:
        return self.batch.from_parts([parts])[0]

    def _remake(self, scores: Array) -> Self:
        return type(self)(self.batch.with_scores(self.batch.scores.like(scores.ravel())))
