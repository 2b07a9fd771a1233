"""Families of factors over several Booleans: all true at once, how many are true, and whether one of some pairs is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isogloss.errors import ParameterError
from isogloss.structures.base import Array
from isogloss.structures.factorgraph.family import Family, Ints
from isogloss.structures.factorgraph.variables import Variables

__all__ = ["Conjunction", "Indicator", "Number"]


class Conjunction(Family):
    r"""A few Booleans, worth exp(score) when all of them are true (MONO and its kin: quaternary soft factors).

    .. math:: m_{\to i} = \log \Big(1 + (e^s - 1) \prod_{j \ne i} p_j\Big), \qquad p_j = \frac{1}{1 + e^{-a_j}}

    One array operation for all factors of a graph. A score of −∞ says that not all can be true.

    References
    ----------
    Smith 2010, section 4.7.
    """

    kind = "conjunction"

    def __init__(self, *variables: Variables) -> None:
        shapes = {v.shape for v in variables}
        if len(shapes) != 1 or any(v.k for v in variables):
            raise ParameterError(
                f"FactorGraph.conjunction: one or more arrays of Booleans of one shape are needed, not {variables!r}"
            )
        self.slots = variables
        self.shape = variables[0].shape
        self.count = variables[0].size

    def owners(self) -> tuple[Ints, ...]:
        return (np.arange(self.count).reshape(self.shape),) * len(self.slots)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages_several import conjunctions

        heard = np.stack([message.ravel() for message in incoming])
        out = np.empty_like(heard)
        conjunctions(scores.ravel(), heard, out, maximise)
        return tuple(message.reshape(self.shape) for message in out)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages_several import conjunction_beliefs

        beliefs = np.empty(self.count)
        heard = np.stack([message.ravel() for message in incoming])
        value = conjunction_beliefs(scores.ravel(), heard, beliefs, maximise)
        return float(value), beliefs.reshape(self.shape)

    def parts(self, values: Sequence[Ints]) -> Array | None:
        return np.asarray(np.prod(np.stack(values), axis=0), np.float64)


class Number(Family):
    """How many Booleans of a row are true, in bins 0, 1, … and "so many or more" (fertility); a chain of counts."""

    kind = "number"

    def __init__(self, variables: Variables, offsets: Ints, bins: int) -> None:
        if bins < 1:
            raise ParameterError(f"FactorGraph.number: scores should have at least one bin, not {bins}")
        self.slots = (variables,)
        self.offsets = offsets
        self.count = len(offsets) - 1
        self.shape = (self.count, bins)

    def owners(self) -> tuple[Ints, ...]:
        return (np.repeat(np.arange(self.count), np.diff(self.offsets)),)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages_several import numbers_true

        out = np.empty_like(incoming[0])
        numbers_true(scores, self.offsets, incoming[0], out, maximise)
        return (out,)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages_several import number_beliefs

        beliefs = np.empty(self.shape)
        return float(number_beliefs(scores, self.offsets, incoming[0], beliefs, maximise)), beliefs

    def parts(self, values: Sequence[Ints]) -> Array | None:
        sums = np.diff(np.concatenate([[0], np.cumsum(values[0])])[self.offsets])
        out = np.zeros(self.shape)
        out[np.arange(self.count), np.minimum(sums, self.shape[1] - 1)] = 1.0
        return out

    def options(self) -> dict[str, Any]:
        return {"bins": self.shape[1]}

    def arrays(self) -> dict[str, Ints]:
        return {"offsets": self.offsets}


class Indicator(Family):
    r"""A Boolean for each group of pairs: true where both of exactly one pair are, false where those of none are.

    A word is the grandparent of another by one of the words between, two words are siblings by one of their heads;
    what scores such a relation needs a variable for it. More than one pair of a group is not allowed, which a tree
    rules out anyway. With :math:`h_p` the odds of a pair, the indicator is told :math:`\sum_p h_p`. As one factor it is
    the same as an AND variable for each pair and one factor over these, of which it has no cycles.

    References
    ----------
    Smith 2010, section 4.7, which has these variables.
    """

    kind = "indicator"

    def __init__(self, first: Variables, second: Variables, whole: Variables, offsets: Ints) -> None:
        if any(v.k for v in (first, second, whole)) or first.shape != second.shape or len(first.shape) != 1:
            raise ParameterError(
                f"FactorGraph.indicator: two rows of Booleans are needed, pair by pair, not {first!r}, {second!r}"
            )
        if len(offsets) != whole.size + 1 or int(offsets[0]) != 0 or int(offsets[-1]) != first.size:
            raise ParameterError(
                f"FactorGraph.indicator: offsets should be those of {whole.size} groups of {first.size} pairs in all"
            )
        self.slots = (first, second, whole.reshape(-1))
        self.offsets = offsets
        self.count = whole.size

    def owners(self) -> tuple[Ints, ...]:
        of_pairs = np.repeat(np.arange(self.count), np.diff(self.offsets))
        return of_pairs, of_pairs, np.arange(self.count)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages_several import indicators

        first, second, whole = incoming
        out = np.empty_like(first), np.empty_like(second), np.empty_like(whole)
        indicators(self.offsets, first, second, whole, *out, maximise)
        return out

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages_several import indicator_totals

        first, second, whole = incoming
        return float(indicator_totals(self.offsets, first, second, whole, maximise)), np.zeros(0)

    def parts(self, values: Sequence[Ints]) -> Array | None:
        first, second, whole = values
        sums = np.diff(np.concatenate([[0], np.cumsum(first * second)])[self.offsets])
        return np.zeros(0) if (sums == whole).all() else None

    def arrays(self) -> dict[str, Ints]:
        return {"offsets": self.offsets}
