"""Families of factors over a few variables each: pairs, tables, exactly one, at most one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isogloss.errors import ParameterError
from isogloss.structures.base import Array
from isogloss.structures.factorgraph.family import Choice, Family, Ints, as_log_weights
from isogloss.structures.factorgraph.variables import Variables
from isogloss.structures.semiring import DRAW, MAX, weights

__all__ = ["OneOf", "Pair", "Table"]


class Pair(Family):
    r"""Two Booleans, worth exp(score) when both are true.

    .. math:: m_{\to A} = \operatorname{softplus}(a_B + s) - \operatorname{softplus}(a_B)

    A score of −∞ is NAND; a finite one below 0, soft NAND.
    """

    kind = "pair"

    def __init__(self, first: Variables, second: Variables) -> None:
        if first.shape != second.shape:
            raise ParameterError(
                f"FactorGraph.pairwise: the first variables are {list(first.shape)}, the second {list(second.shape)}; "
                f"give arrays of one shape, a pair at each place"
            )
        self.slots = (first, second)
        self.shape = first.shape
        self.count = first.size

    def owners(self) -> tuple[Ints, ...]:
        number = np.arange(self.count).reshape(self.shape)
        return number, number

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages import pairs

        out = np.empty(self.shape), np.empty(self.shape)
        pairs(scores.ravel(), incoming[0].ravel(), incoming[1].ravel(), out[0].ravel(), out[1].ravel(), maximise)
        return out

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages import pair_beliefs

        beliefs = np.empty(self.shape)
        value = pair_beliefs(scores.ravel(), incoming[0].ravel(), incoming[1].ravel(), beliefs.ravel(), maximise)
        return float(value), beliefs

    def parts(self, values: Sequence[Ints]) -> Array | None:
        return (values[0] * values[1]).astype(np.float64)


class Table(Family):
    r"""A few variables with a score for every combination of values; with a `gate`, worth 1 where the gate is false.

    .. math:: r_{F \to V}(v) = \sum_{A: A[V] = v} F(A) \prod_{U \ne V} q_{U \to F}(A[U])

    Without a gate that is the whole story. A gate L with log-odds a turns the messages r of the table into
    :math:`e^a r(v) + \prod_{U \ne V} \sum_u q_U(u)`, and is itself told the table's total over that of the bare
    variables (TAGLINK of the reference, for any number of tags).

    References
    ----------
    Smith, Efficient Inference for Trees and Alignments, PhD 2010, equation 2.8 and section 2.4.2.
    """

    kind = "table"

    def __init__(self, variables: Sequence[Variables], gate: Variables | None = None) -> None:
        shapes = {v.shape for v in variables} | ({gate.shape} if gate is not None else set())
        if not variables or len(shapes) != 1:
            raise ParameterError(
                f"FactorGraph.table: variables are {[list(s) for s in sorted(shapes)]}; give one or more arrays of one "
                f"shape, the variables of a factor at each place"
            )
        self.tags = tuple(variables)
        self.gated = gate is not None
        self.slots = self.tags if gate is None else (*self.tags, gate)
        self.sizes = np.array([v.n_values for v in self.tags], np.int64)
        self.shape = (*self.tags[0].shape, *(int(size) for size in self.sizes))
        self.count = self.tags[0].size

    def owners(self) -> tuple[Ints, ...]:
        return (np.arange(self.count).reshape(self.tags[0].shape),) * len(self.slots)

    def _flat(self, incoming: Sequence[Array]) -> Array:
        """float64[count, Σ sizes]: log weights of all values."""
        columns = [
            (message if tag.k else as_log_weights(message)).reshape(self.count, tag.n_values)
            for tag, message in zip(self.tags, incoming, strict=False)
        ]
        return np.concatenate(columns, axis=1)

    def _split(self, flat: Array) -> list[Array]:
        return np.split(flat, np.cumsum(self.sizes)[:-1], axis=1)

    def _masses(self, flat: Array, maximise: bool) -> Array:
        """float64[count, arity]: log total of what came in about each variable."""
        reduce = np.maximum.reduce if maximise else np.logaddexp.reduce
        return np.stack([reduce(column, axis=1) for column in self._split(flat)], axis=1)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages import tables

        flat = self._flat(incoming)
        out = np.empty_like(flat)
        tables(scores.reshape(self.count, -1), self.sizes, flat, out, maximise)
        gate = self._gated(flat, out, incoming[-1].ravel(), maximise) if self.gated else None
        messages = []
        for tag, column in zip(self.tags, self._split(out), strict=True):
            if tag.k:
                messages.append(_best_is_zero(column).reshape(*tag.shape, tag.k))
            else:
                messages.append(_log_odds(column[:, 1], column[:, 0]).reshape(tag.shape))
        return tuple(messages) if gate is None else (*messages, gate.reshape(self.slots[-1].shape))

    def _gated(self, flat: Array, out: Array, gate: Array, maximise: bool) -> Array:
        """Mix the messages of the bare table with those of no table, in place; returns the message to the gate."""
        add = np.maximum if maximise else np.logaddexp
        masses = self._masses(flat, maximise)
        bare = masses.sum(axis=1)
        first = int(self.sizes[0])
        with np.errstate(invalid="ignore"):  # −∞ − −∞ where nothing is allowed: NaN, and the caller raises
            inside = add.reduce(out[:, :first] + flat[:, :first], axis=1)
            to_gate = _log_odds(inside, bare)
        shut, open_ = (column[:, None] for column in np.moveaxis(as_log_weights(gate), -1, 0))
        for i, column in enumerate(self._split(out)):
            others = np.delete(masses, i, axis=1).sum(axis=1, keepdims=True)
            column[:] = add(shut + others, open_ + column)
        return to_gate

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages import table_beliefs

        flat = self._flat(incoming)
        beliefs, totals = np.empty((self.count, int(self.sizes.prod()))), np.empty(self.count)
        table_beliefs(scores.reshape(self.count, -1), self.sizes, flat, beliefs, totals, maximise)
        if self.gated:
            shut, open_ = np.moveaxis(as_log_weights(incoming[-1].ravel()), -1, 0)
            inside = open_ + totals
            totals = (np.maximum if maximise else np.logaddexp)(shut + self._masses(flat, maximise).sum(axis=1), inside)
            possible = totals > -np.inf
            beliefs *= np.exp(inside - totals, out=np.zeros(self.count), where=possible)[:, None]
        return float(totals.sum()), beliefs.reshape(self.shape)

    def parts(self, values: Sequence[Ints]) -> Array | None:
        out = np.zeros((self.count, *(int(size) for size in self.sizes)))
        places = tuple(value.ravel() for value in values[: len(self.tags)])
        out[(np.arange(self.count), *places)] = values[-1].ravel() if self.gated else 1.0
        return out.reshape(self.shape)

    def reveal(self, parts: Array) -> Choice | None:
        if self.gated:
            return None
        cells = np.unravel_index(parts.reshape(self.count, -1).argmax(axis=1), tuple(self.sizes))
        return np.concatenate([v.numbers.ravel() for v in self.tags]), np.concatenate(cells).astype(np.int64)

    def options(self) -> dict[str, Any]:
        return {"gated": self.gated}


class OneOf(Family):
    r"""Rows of Booleans of which exactly one is true (EXACTLY1), or at most one (ATMOST1).

    .. math:: m_{\to i} = -\log \sum_{i' \ne i} e^{a_{i'}} \quad\text{(ATMOST1: one more term, 1)}

    References
    ----------
    Smith 2010, section 2.4.1, algorithm 2.3. We differ: sums without i are made from the left and from the right, since
    subtracting from the whole sum loses everything where one variable dominates.
    """

    kind = "one_of"

    def __init__(self, variables: Variables, offsets: Ints, at_most: bool) -> None:
        self.slots = (variables,)
        self.offsets = offsets
        self.at_most = at_most
        self.count = len(offsets) - 1

    def owners(self) -> tuple[Ints, ...]:
        return (np.repeat(np.arange(self.count), np.diff(self.offsets)),)

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        from isogloss.structures._numba.messages import one_of

        out = np.empty_like(incoming[0])
        one_of(self.offsets, incoming[0], out, self.at_most, maximise)
        return (out,)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        from isogloss.structures._numba.messages import one_of_totals

        return float(one_of_totals(self.offsets, incoming[0], self.at_most, maximise)), np.zeros(0)

    def parts(self, values: Sequence[Ints]) -> Array | None:
        sums = np.diff(np.concatenate([[0], np.cumsum(values[0])])[self.offsets])
        return None if (sums > 1).any() or (not self.at_most and (sums != 1).any()) else np.zeros(0)

    def choose(self, scores: Array, incoming: Sequence[Array], factor: int, rng: Any) -> Choice | None:
        row = slice(self.offsets[factor], self.offsets[factor + 1])
        numbers, a = self.slots[0].numbers[row], incoming[0][row]
        if (a == np.inf).any():
            a = np.where(a == np.inf, 0.0, -np.inf)
        elif self.at_most:
            a = np.append(a, 0.0)
        picked = np.zeros(len(a))
        weights(MAX if rng is None else DRAW, a, picked, 0.0 if rng is None else rng.random())
        return numbers, picked[: len(numbers)].astype(np.int64)

    def options(self) -> dict[str, Any]:
        return {"at_most": self.at_most}

    def arrays(self) -> dict[str, Ints]:
        return {"offsets": self.offsets}


def _best_is_zero(column: Array) -> Array:
    top = column.max(axis=-1, keepdims=True)
    return column - np.where(top == -np.inf, 0.0, top)


def _log_odds(true: Array, false: Array) -> Array:
    """true − false of log weights; NaN where both are −∞."""
    with np.errstate(invalid="ignore"):
        return true - false
