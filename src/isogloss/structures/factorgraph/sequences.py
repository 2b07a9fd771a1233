"""Families of factors that read variables in order: a chain, sequences of children, numbers of children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError
from isogloss.structures.chain import Chain
from isogloss.structures.factorgraph.family import Choice, Family, Ints
from isogloss.structures.factorgraph.variables import Variables

__all__ = ["ChainFactor", "ChildSequence", "Valence", "links_grid"]


class ChainFactor(Family):
    r"""One factor over variables in a row, with a score for every two (order 1) or three neighbours (order 2).

    The message to a variable is the product of what the forward and the backward sweep say of it without its own
    evidence; O(n k²) or O(n k³). As one factor it adds no cycles; as n − 2 tables over three neighbours it would.

    References
    ----------
    Smith 2010, section 2.4.3 (TRIGRAM).
    """

    kind = "chain"

    def __init__(self, tags: Variables, order: int) -> None:
        if len(tags.shape) != 1 or not tags.k:
            raise ParameterError(f"FactorGraph.chain: a row of variables with k values is needed, not {tags!r}")
        if order not in (1, 2):
            raise ParameterError(f"FactorGraph.chain: the order should be 1 or 2, not {order!r}")
        self.slots = (tags,)
        self.order = order
        self.shape = (max(0, tags.size - order), *(tags.k,) * (order + 1))
        self.count = 1 if tags.size else 0

    def owners(self) -> tuple[Ints, ...]:
        return (np.zeros(self.slots[0].shape, np.int64),)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages_sequences import chain1, chain2

        out = np.zeros_like(incoming[0])
        if len(out) > self.order:
            (chain1 if self.order == 1 else chain2)(scores, incoming[0], out, maximise)
            top = out.max(axis=1, keepdims=True)
            out -= np.where(top == -np.inf, 0.0, top)
        return (out,)

    def _chain(self, scores: Array, incoming: Array) -> Chain:
        n, k = incoming.shape
        full = np.zeros((n, *(k,) * (self.order + 1)))
        full[self.order :] = scores
        return Chain(full + incoming.reshape(n, *(1,) * self.order, k))

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        dist = self._chain(scores, incoming[0])
        try:
            if maximise:
                best = dist.argmax()
                return dist.score(best), np.asarray(dist.parts(best)[self.order :])
            return dist.log_partition(), np.asarray(dist.marginals()[self.order :])
        except InfeasibleError:
            return -np.inf, np.zeros(self.shape)

    def parts(self, values: Sequence[Ints]) -> Array | None:
        out = np.zeros(self.shape)
        if len(out):
            n = len(values[0])
            steps = (values[0][lag : n - self.order + lag] for lag in range(self.order + 1))
            out[(np.arange(len(out)), *steps)] = 1.0
        return out

    def choose(self, scores: Array, incoming: Sequence[Array], factor: int, rng: Any) -> Choice | None:
        dist = self._chain(scores, incoming[0])
        return self.slots[0].numbers, dist.argmax() if rng is None else dist.sample(rng)

    def options(self) -> dict[str, Any]:
        return {"order": self.order}


def links_grid(links: Variables, place: str) -> int:
    """n, once `links` is known to be Boolean[n + 1, n + 1]."""
    if links.k or len(links.shape) != 2 or links.shape[0] != links.shape[1] or not links.shape[0]:
        raise ParameterError(
            f"FactorGraph.{place}: links should be Boolean[n + 1, n + 1], (head, child), the root first, not {links!r}"
        )
    return links.shape[0] - 1


class _OfHeads(Family):
    """One factor for each head and side, over the links to the words on that side."""

    def __init__(self, links: Variables, place: str) -> None:
        self.n = links_grid(links, place)
        self.slots = (links,)
        self.count = 2 * (self.n + 1)

    def owners(self) -> tuple[Ints, ...]:
        head, child = np.indices(self.slots[0].shape)
        return (np.where(child < head, head, head + self.n + 1),)

    def _children(self, values: Ints) -> list[tuple[int, int, Ints]]:
        """(side, head, children outward) of every factor."""
        out: list[tuple[int, int, Ints]] = []
        for head in range(self.n + 1):
            found = np.flatnonzero(values[head])
            found = found[(found > 0) & (found != head)]
            out.append((0, head, found[found < head][::-1]))
            out.append((1, head, found[found > head]))
        return out


class ChildSequence(_OfHeads):
    """The children of each head, read outward on either side, scored by neighbours (CHILDSEQ).

    References
    ----------
    Smith 2010, section 2.3.2. The sweep is over the last child taken: O(n²) for a head, since every step is either
    "take this one" or "pass it by".
    """

    kind = "child_sequence"

    def __init__(self, links: Variables) -> None:
        super().__init__(links, self.kind)
        self.shape = (2, self.n + 1, self.n + 1, self.n + 1)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages_sequences import children

        out = np.empty_like(incoming[0])
        children(scores, self.n, incoming[0], out, maximise)
        return (out,)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages_sequences import child_beliefs

        beliefs = np.empty(self.shape)
        return float(child_beliefs(scores, self.n, incoming[0], beliefs, maximise)), beliefs

    def parts(self, values: Sequence[Ints]) -> Array | None:
        out = np.zeros(self.shape)
        for side, head, found in self._children(values[0]):
            out[side, head, np.append(head, found), np.append(found, head)] = 1.0
        return out


class Valence(_OfHeads):
    """The number of children of each head on either side, in bins 0, 1, … and "so many or more" (VALENCE)."""

    kind = "valence"

    def __init__(self, links: Variables, bins: int) -> None:
        super().__init__(links, self.kind)
        if bins < 1:
            raise ParameterError(f"FactorGraph.valence: scores should have at least one bin, not {bins}")
        self.shape = (2, self.n + 1, bins)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages_sequences import valence

        out = np.empty_like(incoming[0])
        valence(scores, self.n, incoming[0], out, maximise)
        return (out,)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages_sequences import valence_beliefs

        beliefs = np.empty(self.shape)
        return float(valence_beliefs(scores, self.n, incoming[0], beliefs, maximise)), beliefs

    def parts(self, values: Sequence[Ints]) -> Array | None:
        out = np.zeros(self.shape)
        for side, head, found in self._children(values[0]):
            out[side, head, min(len(found), self.shape[2] - 1)] = 1.0
        return out

    def options(self) -> dict[str, Any]:
        return {"bins": self.shape[2]}
