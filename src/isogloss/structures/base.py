"""What structures share: the contract that learners see, checked scores, and the methods that follow from a few others.

`Distribution` makes the full set of methods from log Z, marginals, the best structure and a draw. `Program` makes those
four from one sweep in a semiring, for dynamic programs. `Flat` lays out the parts of a structure that has several
kinds of them (links, nulls, blocks, pairs of links) as one vector, so that learners need not know the kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import IsoglossError, ParameterError
from isogloss.structures.semiring import DRAW, LOG, MAX, Semiring

if TYPE_CHECKING:
    from isogloss.structures.polytope import Polytope

__all__ = [
    "Array", "Distribution", "Flat", "InfeasibleError", "Program", "Structure", "checked_scores", "expected", "kept",
    "numbers",
]  # fmt: skip

Array = NDArray[np.float64]
Y = TypeVar("Y")


class InfeasibleError(IsoglossError):
    """Nothing is left: every structure is forbidden, or no distribution meets the constraints."""


@runtime_checkable
class Structure(Protocol):
    """What learners ask of a structure: six methods, and the scores that it was made with."""

    @property
    def scores(self) -> Array: ...

    def log_partition(self) -> float: ...

    def marginals(self) -> Array: ...

    def argmax(self) -> Any: ...

    def sample(self, rng: np.random.Generator, /) -> Any: ...

    def parts(self, y: Any, /) -> Array: ...

    def with_scores(self, scores: Array, /) -> Self: ...


def checked_scores(scores: ArrayLike, place: str, shape: Sequence[int | None]) -> Array:
    """A private, read-only float64 copy of `scores`, once shape and values are known to make sense.

    `None` in `shape` stands for any length. Finite numbers and −∞ pass; NaN and +∞ do not.
    """
    array = np.array(numbers(scores, place), order="C")
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = "[" + ", ".join("any" if want is None else str(want) for want in shape) + "]"
        raise ParameterError(f"{place}: the shape should be {wanted}, not {list(array.shape)}")
    if not np.all(array < np.inf):
        at = tuple(int(i) for i in np.argwhere(~(array < np.inf))[0])
        raise ParameterError(
            f"{place}: {array[at]} at {list(at)}; log scores are finite, or minus infinity for what is forbidden"
        )
    return kept(array)


def numbers(scores: ArrayLike, place: str) -> Array:
    """`scores` as float64; not a copy if they are already."""
    try:
        array = np.asarray(scores)
        if array.dtype.kind == "c":  # NumPy would drop the imaginary part
            raise TypeError("complex numbers")
        return np.asarray(array, np.float64)
    except (TypeError, ValueError) as finding:
        raise ParameterError(f"{place}: an array of real numbers is needed ({finding})") from finding


def expected(marginals: Array, scores: Array) -> float:
    """Σ marginals · scores over the allowed parts."""
    used = marginals > 0
    return float(marginals[used] @ scores[used])


def kept(array: Array) -> Array:
    """The same array, from now on read-only: what a structure hands out is its own."""
    array.flags.writeable = False
    return array


class Distribution(ABC, Generic[Y]):
    r"""A distribution over structures y, each a set of parts, with :math:`p(y) \propto \exp \sum_{part \in y} scores`.

    A subclass sets `scores` and writes `_solve`, `argmax`, `sample`, `parts`, `_read` and `_remake`; the other methods
    follow. Where everything is forbidden, `_solve`, `argmax` and `sample` raise `InfeasibleError`.
    """

    scores: Array

    # --- what a subclass writes

    @abstractmethod
    def _solve(self) -> tuple[float, Array]:
        """log Z and marginals shaped like `scores`; called once."""

    @abstractmethod
    def argmax(self) -> Y:
        """The best structure."""

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Y:
        """One structure drawn from the distribution."""

    @abstractmethod
    def parts(self, y: Any) -> Array:
        """1 for each part that the structure `y` has, 0 elsewhere, shaped like `scores`."""

    @abstractmethod
    def _read(self, parts: Array) -> Y:
        """The structure with these parts; what comes back for parts of no structure does not matter."""

    @abstractmethod
    def _remake(self, scores: Array) -> Self:
        """The same sentence and options under other scores of the same shape."""

    # --- what follows

    @cached_property
    def _solved(self) -> tuple[float, Array]:
        value, marginals = self._solve()
        return value, kept(marginals)

    def log_partition(self) -> float:
        """log Z, the log of the sum over all structures."""
        return self._solved[0]

    def marginals(self) -> Array:
        """Posterior of each part, shaped like `scores`, the derivative of log Z; read-only, computed once."""
        return self._solved[1]

    def score(self, y: Any) -> float:
        """Log score of a structure, not normalised."""
        return float(self.scores[self.parts(y) > 0].sum())

    def log_prob(self, y: Any) -> float:
        """log p(y); −∞ for a forbidden structure."""
        return self.score(y) - self.log_partition()

    def entropy(self) -> float:
        """−Σ p log p in nats, as log Z − Σ marginals · scores over the allowed parts."""
        value, marginals = self._solved
        return max(0.0, value - expected(marginals, self.scores))

    def from_parts(self, parts: ArrayLike) -> Y:
        """The structure that has these parts; the inverse of `parts`."""
        array = np.asarray(parts, np.float64)
        if array.shape != self.scores.shape:
            raise ParameterError(f"{self!r}: parts should be {list(self.scores.shape)}, not {list(array.shape)}")
        y = self._read(array)
        try:
            same = np.array_equal(self.parts(y), array)
        except ParameterError:
            same = False
        if not same:
            raise ParameterError(f"{self!r}: these parts are not one structure; marginals? take argmax() or sample()")
        return y

    def with_scores(self, scores: ArrayLike) -> Self:
        """The same sentence under other scores: the hook for every learner."""
        return self._remake(checked_scores(scores, f"{self!r}: scores", self.scores.shape))

    def clamp(self, y: Any) -> Self:
        """The distribution in which `y` alone is allowed, with the score it has here."""
        return self._remake(kept(np.where(self.parts(y) > 0, self.scores, -np.inf)))


class Program(Distribution[Y]):
    """A dynamic program: one sweep gives log Z and marginals, the best structure or a draw, as the semiring says."""

    @abstractmethod
    def _sweep(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        """⊕ over all structures, and its derivative by `scores`; −∞ where nothing is allowed. `u` is uniform on [0, 1),
        `_draws()` numbers with DRAW and none otherwise."""

    @abstractmethod
    def _draws(self) -> int:
        """How many uniform numbers one draw takes, at most."""

    @abstractmethod
    def _raise_infeasible(self) -> NoReturn:
        """Say what is missing."""

    def _swept(self, semiring: Semiring, u: Array) -> tuple[float, Array]:
        value, grad = self._sweep(semiring, u)
        if value == -np.inf:
            self._raise_infeasible()
        return value, grad

    def _solve(self) -> tuple[float, Array]:
        return self._swept(LOG, np.empty(0))

    def argmax(self) -> Y:
        """The best structure; among equals, always the same one."""
        return self._read(self._swept(MAX, np.empty(0))[1])

    def sample(self, rng: np.random.Generator) -> Y:
        """One structure drawn from the distribution."""
        return self._read(self._swept(DRAW, rng.random(self._draws()))[1])


class HasKinds(Protocol):
    """A structure with several kinds of parts, each kind an array: what `Flat` needs of it.

    The arrays of `part_scores`, `part_marginals` and `kinds_of` have the same shapes, in the same order.
    """

    def part_scores(self) -> tuple[Array, ...]: ...

    def part_marginals(self) -> tuple[Array, ...]: ...

    def kinds_of(self, y: Any, /) -> tuple[Array, ...]: ...

    def with_part_scores(self, *scores: Array) -> Self: ...

    def log_partition(self) -> float: ...

    def argmax(self) -> Any: ...

    def sample(self, rng: np.random.Generator, /) -> Any: ...


K = TypeVar("K", bound=HasKinds)


class Flat(Generic[K]):
    """All kinds of parts of a structure in one vector, with the six methods: what feature-based learners work on.

    Parameters
    ----------
    dist : structure with `part_scores`, `part_marginals`, `kinds_of` and `with_part_scores`
        For instance an `Itg`, whose parts are links, source nulls, target nulls and blocks.
    """

    def __init__(self, dist: K) -> None:
        self.dist = dist

    def __repr__(self) -> str:
        return f"Flat({self.dist!r})"

    @cached_property
    def scores(self) -> Array:
        """float64[n_parts]: the kinds one after the other, each in C order."""
        return kept(_joined(self.dist.part_scores()))

    def log_partition(self) -> float:
        """log Z."""
        return self.dist.log_partition()

    def marginals(self) -> Array:
        """float64[n_parts]."""
        return _joined(self.dist.part_marginals())

    def argmax(self) -> Any:
        """The best structure."""
        return self.dist.argmax()

    def sample(self, rng: np.random.Generator) -> Any:
        """One structure drawn."""
        return self.dist.sample(rng)

    def k_best(self, k: int) -> list[tuple[float, Any]]:
        """The k best structures with their scores, where the structure knows them."""
        found: Callable[[int], list[tuple[float, Any]]] | None = getattr(self.dist, "k_best", None)
        if found is None:
            raise ParameterError(f"{self!r}: {type(self.dist).__name__} has no k_best; use argmax")
        return found(k)

    def polytope(self) -> Polytope:
        """What lies between the structures, all kinds of parts as one vector, where the structure knows it."""
        made: Callable[[], Polytope] | None = getattr(self.dist, "part_polytope", None)
        if made is None:
            raise ParameterError(
                f"{self!r}: {type(self.dist).__name__} has no polytope that points can be projected on; use a learner "
                "that needs argmax alone, such as FrankWolfe"
            )
        return made()

    def parts(self, y: Any) -> Array:
        """float64[n_parts]: how often `y` uses each part."""
        return _joined(self.dist.kinds_of(y))

    def with_scores(self, scores: ArrayLike) -> Flat[K]:
        """The same sentence with other scores of all kinds of parts."""
        vector = checked_scores(scores, f"{self!r}: scores", self.scores.shape)
        shapes = [array.shape for array in self.dist.part_scores()]
        pieces = np.split(vector, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        new = (piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True))
        return Flat(self.dist.with_part_scores(*new))


def _joined(arrays: Sequence[Array]) -> Array:
    return np.concatenate([np.ravel(array) for array in arrays])
