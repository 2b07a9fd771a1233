"""`Together`: many structures seen as one, so that what binds one sentence can bind a whole text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures import InfeasibleError, Structure
from isogloss.structures.batch import Batch

__all__ = ["Array", "Member", "Together", "as_one", "clamped"]

Array = NDArray[np.float64]
Member: TypeAlias = Structure | Batch[Any]
S = TypeVar("S", bound=Structure)


class Together:
    r"""The product of independent distributions: itself a structure, whose scores are those of all, end to end.

    .. math:: p(y_1, \dots, y_n) = \prod_s p_s(y_s), \qquad \log Z = \sum_s \log Z_s, \qquad
        KL(q \| p) = \sum_s KL(q_s \| p_s)

    A feature of it may add up parts of any sentences, so that a projection of the whole is one of each sentence under
    constraints that couple them.

    Parameters
    ----------
    members : structure, batch, or a sequence of both
        Sentences of a `Batch` count one by one, in order.

    Examples
    --------
    >>> from isogloss.structures import Chain
    >>> both = Together([Chain(np.zeros((1, 2, 2))), Chain(np.zeros((0, 2, 2))), Chain(np.zeros((2, 3, 3)))])
    >>> len(both), both.offsets.tolist(), round(float(np.exp(both.log_partition())), 9)
    (3, [0, 4, 4, 22], 18.0)
    """

    def __init__(self, members: Member | Iterable[Member]) -> None:
        if isinstance(members, Batch):
            self.members: tuple[Member, ...] = (members,)
        elif isinstance(members, Iterable) and not isinstance(members, Structure):
            self.members = tuple(members)
        else:
            self.members = (members,)

    def __repr__(self) -> str:
        return f"Together({len(self)} structures)"

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """int64[n_sentences + 1]: the parts of sentence *s* are ``offsets[s]:offsets[s + 1]``, in C order."""
        sizes = [
            np.diff(member.scores.offsets) if isinstance(member, Batch) else np.array([member.scores.size])
            for member in self.members
        ]
        return np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *sizes]))]).astype(np.int64)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """int64[n_members + 1]: where the parts of each member begin."""
        sizes = [len(_values(member.scores)) for member in self.members]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def _places(self) -> list[tuple[Member, int | None]]:
        """For each sentence, the member that holds it and, in a batch, its number there."""
        places: list[tuple[Member, int | None]] = []
        for member in self.members:
            places += [(member, s) for s in range(len(member))] if isinstance(member, Batch) else [(member, None)]
        return places

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of the scores of each sentence."""
        found: list[tuple[int, ...]] = []
        for member in self.members:
            if isinstance(member, Batch):
                found += [tuple(shape) for shape in member.scores.shapes.tolist()]
            else:
                found.append(member.scores.shape)
        return found

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, s: int) -> Any:
        """Sentence *s* alone."""
        member, place = self._places[s]
        return member if place is None else member[place]  # type: ignore[index]

    def __iter__(self) -> Iterator[Any]:
        return (self[s] for s in range(len(self)))

    # --- the methods of a structure

    @cached_property
    def scores(self) -> Array:
        """float64[n_parts]."""
        return _joined(_values(member.scores) for member in self.members)

    @cached_property
    def log_partitions(self) -> Array:
        """float64[n_sentences]."""
        values: list[Array] = []
        for m, member in enumerate(self.members):
            try:
                values.append(np.atleast_1d(member.log_partition()))
            except InfeasibleError as finding:
                raise InfeasibleError(f"member {m} of {len(self.members)}: {finding}") from finding
        return _joined(values)

    def log_partition(self) -> float:
        """Σ log Z_s; exactly rounded, so that batches and single structures agree."""
        return math.fsum(self.log_partitions)

    def marginals(self) -> Array:
        """float64[n_parts]."""
        return _joined(_values(member.marginals()) for member in self.members)

    def argmax(self) -> list[Any]:
        """The best structure of each sentence."""
        found: list[Any] = []
        for member in self.members:
            found += list(member.argmax()) if isinstance(member, Batch) else [member.argmax()]
        return found

    def sample(self, rng: np.random.Generator) -> list[Any]:
        """One structure for each sentence."""
        found: list[Any] = []
        for member in self.members:
            found += list(member.sample(rng)) if isinstance(member, Batch) else [member.sample(rng)]
        return found

    def parts(self, structures: Sequence[Any]) -> Array:
        """float64[n_parts], of one structure for each sentence."""
        pieces = self._dealt(structures)
        return _joined(_values(member.parts(y)) for member, y in zip(self.members, pieces, strict=True))

    def with_scores(self, scores: ArrayLike) -> Together:
        """The same sentences under other scores."""
        values = np.asarray(scores, np.float64)
        if values.shape != (self._bounds[-1],):
            raise ParameterError(f"{self!r}: scores should be [{self._bounds[-1]}], not {list(values.shape)}")
        new: list[Member] = []
        for member, start, end in zip(self.members, self._bounds, self._bounds[1:], strict=False):
            if isinstance(member, Batch):
                new.append(member.with_scores(member.scores.like(values[start:end])))
            else:
                new.append(member.with_scores(values[start:end].reshape(member.scores.shape)))
        return Together(new)

    def clamp(self, structures: Sequence[Any]) -> Together:
        """One structure for each sentence, and nothing else allowed."""
        pieces = self._dealt(structures)
        return Together([clamped(member, y) for member, y in zip(self.members, pieces, strict=True)])

    def _dealt(self, structures: Sequence[Any]) -> list[Any]:
        """What belongs to each member: one structure, or the list of them for a batch."""
        if len(structures) != len(self):
            raise ParameterError(f"{self!r}: {len(structures)} structures were given; give one for each sentence")
        dealt: list[Any] = []
        at = 0
        for member in self.members:
            size = len(member) if isinstance(member, Batch) else 1
            dealt.append(structures[at : at + size] if isinstance(member, Batch) else structures[at])
            at += size
        return dealt


def as_one(dist: S | Batch[Any] | Sequence[Member]) -> S | Together:
    """The structure itself; `Together` around a batch or a sequence of structures."""
    if isinstance(dist, Batch):
        return Together(dist)
    return dist if isinstance(dist, Structure) else Together(dist)


def clamped(member: Any, y: Any) -> Any:
    """`member` with `y` alone allowed; for a batch, y is one structure for each sentence."""
    clamp = getattr(member, "clamp", None)
    if clamp is None:
        raise ParameterError(f"step: hard=True needs a structure with clamp(y), and {type(member).__name__} has none")
    return clamp(y)


def _values(array: Any) -> Array:
    """The numbers of a stack or of an array, as one vector."""
    return np.asarray(array.values if hasattr(array, "values") else np.ravel(array))


def _joined(arrays: Iterable[Array]) -> Array:
    return np.concatenate([np.zeros(0), *arrays])
