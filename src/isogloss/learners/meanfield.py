r"""Structures coupled by weights on tuples of their parts, and structured mean field over them.

.. math:: P(y_1, \ldots, y_K) \propto \exp\Big[\sum_k s_k(y_k) + \sum_t w_t \prod_{p \in t} [p \in y_{k(p)}]\Big]

is approximated by a product :math:`Q = \prod_k q_k` of distributions of the same kinds, which raise the bound

.. math:: B(Q) = E_Q[\text{score}] + \sum_k H(q_k) \le \log Z

one after the other. Each :math:`q_k` is found exactly by its own structure, from its scores and what the tuples of its
parts are worth under the others, so that the bound never falls. The coupling is data: arrays of numbers of parts.

References
----------
Burkett, Blitzer and Klein, Joint Parsing and Alignment with Weakly Synchronized Grammars, NAACL 2010, section 4 and
figure 3. We differ: components are updated in turn and not all from the round before, since only then the bound cannot
fall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered
from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.optimisers import Items, WholeObjective
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch

__all__ = ["CoupledLikelihood", "Coupling", "FieldLikelihood", "MeanField", "mean_field"]

Array = NDArray[np.float64]


class Coupling:
    """Tuples of parts of several batches of structures.

    Parameters
    ----------
    sizes : sequence of int
        How many parts each component has, of all its sentences together.
    tuples : int64[n_tuples, arity]
        Numbers of parts: those of the first component come first, then those of the second, and so on; -1 for a place
        that is not used. A tuple of one part alone is a score of it, and couples nothing. A tuple has at most one part
        of each component, or the expectation would be no product; unless the parts of the component are independent.
    independent : sequence of int
        Components of which tuples may have several parts, each once.

    Examples
    --------
    >>> Coupling([4, 9], [[3, 4], [0, 12]]).starts.tolist()
    [0, 4, 13]
    """

    def __init__(self, sizes: Sequence[int], tuples: ArrayLike, independent: Sequence[int] = ()) -> None:
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.tuples = np.ascontiguousarray(tuples, np.int64)
        self.independent = frozenset(independent)
        if self.tuples.ndim != 2:
            raise ParameterError(f"Coupling: tuples should be [n, arity], not {list(self.tuples.shape)}")
        if self.tuples.size and not -1 <= self.tuples.min() <= self.tuples.max() < self.starts[-1]:
            raise ParameterError(f"Coupling: parts should be numbers from 0 to {self.starts[-1] - 1}, or -1")
        owner = np.where(self.tuples < 0, -1, np.searchsorted(self.starts, self.tuples, side="right") - 1)
        for a, b in combinations(range(self.tuples.shape[1]), 2):
            twice = (owner[:, a] == owner[:, b]) & (owner[:, a] >= 0)
            free = np.isin(owner[:, a], list(self.independent)) & (self.tuples[:, a] != self.tuples[:, b])
            if len(wrong := np.flatnonzero(twice & ~free)):
                k = owner[wrong[0], a]
                raise ParameterError(f"Coupling: tuple {wrong[0]} has two parts of component {k}; it may have one")
        self.alone = (self.tuples >= 0).sum(axis=1) == 1

    def __len__(self) -> int:
        return len(self.tuples)

    def products(self, marginals: Array) -> Array:
        """float64[n_tuples]: the probability of each tuple where components are independent."""
        from isogloss.learners._numba.meanfield import products

        out = np.empty(len(self))
        products(self.tuples, marginals, out)
        return out

    def fields(self, k: int, weights: Array, marginals: Array) -> Array:
        """What the tuples of each part of component *k* are worth under the marginals of the other components."""
        from isogloss.learners._numba.meanfield import add_fields

        start, stop = int(self.starts[k]), int(self.starts[k + 1])
        out = np.zeros(stop - start)
        add_fields(self.tuples, weights, marginals, start, stop, out)
        return out

    @cached_property
    def _members(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which tuples each part is in: where they begin, and their numbers in ascending order."""
        rows, columns = np.nonzero(self.tuples >= 0)
        parts = self.tuples[rows, columns]
        counts = np.bincount(parts, minlength=int(self.starts[-1]))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return starts, rows[np.argsort(parts, kind="stable")].astype(np.int64)

    def update_each(self, k: int, weights: Array, base: Array, moving: NDArray[np.bool_], marginals: Array) -> Array:
        """New scores of the parts of component *k*, updated one after the other; their marginals are changed."""
        from isogloss.learners._numba.meanfield import update_each

        start, stop = int(self.starts[k]), int(self.starts[k + 1])
        starts, members = self._members
        out = np.array(base)
        update_each(starts[start : stop + 1], members, self.tuples, weights, base, moving, start, marginals, out)
        return out


@dataclass(frozen=True, eq=False)
class MeanField:
    """What `mean_field` has found.

    Parameters
    ----------
    components : list of Batch
        The factors of Q.
    marginals : float64[n_parts]
        Marginals of the parts of all components, as `Coupling` numbers them.
    products : float64[n_tuples]
        Probabilities of tuples under Q: the gradient of the bound by their weights.
    trace : list of float
        The bound, after the uncoupled start and after each update of a component.
    converged : bool
        Whether the last sweep moved no marginal by more than the tolerance.
    """

    components: list[Batch[Any]]
    marginals: Array
    products: Array
    trace: list[float]
    converged: bool

    @property
    def bound(self) -> float:
        """B(Q), of all sentences together; log Z where nothing is coupled, or one component alone is free."""
        return self.trace[-1]


def mean_field(
    components: Sequence[Batch[Any]],
    coupling: Coupling,
    weights: ArrayLike,
    *,
    order: Sequence[int] | None = None,
    sweeps: int = 10,
    tolerance: float = 1e-3,
) -> MeanField:
    """Raise the bound, one component after the other, from the distributions without coupling.

    Parameters
    ----------
    components : sequence of Batch
        Structures of the same sentences; what is known is clamped (`Batch.clamp`), and then stays as it is.
    coupling : Coupling
    weights : float64[n_tuples]
    order : sequence of int, optional
        In which components are updated; as they are given if left out.
    sweeps : int
        Maximum number of updates of each component.
    tolerance : float
        The change of a marginal in a sweep below which it is the last.

    Examples
    --------
    >>> from isogloss.structures import SpanningTree
    >>> pair = [SpanningTree.batch([np.zeros((3, 3))]), SpanningTree.batch([np.zeros((3, 3))])]
    >>> found = mean_field(pair, Coupling([9, 9], [[1, 10]]), [2.0], sweeps=50, tolerance=1e-9)
    >>> bool(found.marginals[1] > 2 / 3), found.converged
    (True, True)
    """
    sizes = [len(one.scores.values) for one in components]
    if sizes != np.diff(coupling.starts).tolist():
        raise ParameterError(f"mean_field: components have {sizes} parts, and the coupling is of others")
    for k in coupling.independent:
        if not getattr(components[k], "independent", False):
            raise ParameterError(f"mean_field: the parts of component {k}, {components[k]!r}, are not independent")
    worth = np.ascontiguousarray(weights, np.float64)
    if worth.shape != (len(coupling),) or not np.isfinite(worth).all():
        raise ParameterError(f"mean_field: weights should be {len(coupling)} finite numbers, one for each tuple")
    going = _Going.begin(components, coupling, worth)
    for _ in range(sweeps):
        before = going.marginals.copy()
        for k in range(len(components)) if order is None else order:
            going.update(k)
        if going.settle(before, tolerance):
            break
    return MeanField(
        going.factors(), going.marginals, coupling.products(going.marginals), going.trace, not going.moving.any()
    )


@dataclass(eq=False)
class _Going:
    """Mean field on its way. A sentence whose marginals have settled stays as it is, whatever the others do."""

    components: Sequence[Batch[Any]]
    coupling: Coupling
    worth: Array
    scores: list[Array]
    """Scores of the factors."""
    logs: list[Array]
    """log Z of each sentence, by the factors."""
    marginals: Array
    trace: list[float]
    moving: NDArray[np.bool_]
    """bool[n_sentences]"""
    rows: list[NDArray[np.int64]]
    """The sentence of each part of each component."""
    certain: list[bool]
    """Whether there is nothing to find out in a component, since one structure alone is allowed."""

    @classmethod
    def begin(cls, components: Sequence[Batch[Any]], coupling: Coupling, worth: Array) -> _Going:
        """The distributions without coupling: own scores, and tuples of one part."""
        alone = np.where(coupling.alone, worth, 0.0)
        nothing = np.zeros(int(coupling.starts[-1]))
        scores = [one.scores.values + coupling.fields(k, alone, nothing) for k, one in enumerate(components)]
        factors = [one.with_scores(one.scores.like(kept(new))) for one, new in zip(components, scores, strict=True)]
        counts = [np.diff(one.scores.offsets) for one in components]
        each = [one.marginals().values for one in factors]
        made = cls(
            components, coupling, worth, scores, [np.array(one.log_partition()) for one in factors],
            np.concatenate([np.zeros(0), *each]), [],
            np.ones(max((len(one) for one in components), default=0), np.bool_),
            [np.repeat(np.arange(len(one)), n) for one, n in zip(components, counts, strict=True)],
            [_is_certain(one, own) for one, own in zip(components, each, strict=True)],
        )  # fmt: skip
        made._trace()
        return made

    def factors(self) -> list[Batch[Any]]:
        """The distributions as they are."""
        pairs = zip(self.components, self.scores, strict=True)
        return [one.with_scores(one.scores.like(kept(values.copy()))) for one, values in pairs]

    def _trace(self) -> None:
        """B(Q): tuples in expectation and, of each component, log Z less what coupling has added to its score.

        Sums are not those of BLAS, whose order depends on how many threads it has.
        """
        total = float((self.worth * self.coupling.products(self.marginals)).sum())
        for k, one in enumerate(self.components):
            own = self.marginals[self.coupling.starts[k] : self.coupling.starts[k + 1]]
            used = own > 0
            added = own[used] * (self.scores[k][used] - one.scores.values[used])
            total += float(self.logs[k].sum()) - float(added.sum())
        self.trace.append(total)

    def update(self, k: int) -> None:
        """Find the best factor of component *k* while the others stay."""
        base, coupling, values = self.components[k], self.coupling, self.components[k].scores.values
        moving = self.moving[self.rows[k]]
        if not self.certain[k] and k in coupling.independent:
            free = moving & (values > -np.inf) & ~base.required  # type: ignore[attr-defined]
            new = coupling.update_each(k, self.worth, values, free, self.marginals)
            self._solve(k, np.arange(len(base)), np.where(free, new, self.scores[k]))
        elif not self.certain[k] and moving.any():
            new = values + coupling.fields(k, self.worth, self.marginals)
            self._solve(k, np.flatnonzero(self.moving), np.where(moving, new, self.scores[k]))
        self._trace()

    def _solve(self, k: int, items: NDArray[np.int64], scores: Array) -> None:
        """log Z and marginals of some sentences under new scores."""
        base = self.components[k]
        self.scores[k] = scores
        some = base if len(items) == len(base) else base.take(items)
        _, places = gathered(base.scores.offsets, items)
        factor = some.with_scores(some.scores.like(kept(scores[places])))
        self.logs[k][items] = factor.log_partition()
        self.marginals[self.coupling.starts[k] + places] = factor.marginals().values

    def settle(self, before: Array, tolerance: float) -> bool:
        """Leave the sentences alone in which no marginal has changed by more than the tolerance; True if all are."""
        change = np.abs(self.marginals - before)
        still = np.zeros_like(self.moving)
        for k, rows in enumerate(self.rows):
            far = change[self.coupling.starts[k] : self.coupling.starts[k + 1]] > tolerance
            still[rows[far]] = True
        self.moving &= still
        return not self.moving.any()


def _is_certain(one: Batch[Any], marginals: Array) -> bool:
    """Whether one structure of each sentence alone is allowed: no part that is there may be missing, or others come."""
    allowed = one.scores.values > -np.inf
    if getattr(one, "independent", False):
        return bool((one.required == allowed).all())  # type: ignore[attr-defined]
    return bool((marginals[allowed] == 1.0).all())


class CoupledLikelihood(WholeObjective):
    r"""How probable what is known is, as far as mean field can tell: :math:`\log Z_{known} - B(Q^*)`.

    The first term is exact where one component at most is not known. The gradient by the weights of features is the
    difference of their expectations, products of marginals in both; it is right where mean field has converged.

    Parameters
    ----------
    components, known : sequences of Batch
        The structures, and the same with what is known clamped.
    coupling : Coupling
    features : Sparse
        A row for each tuple, whose weight is the sum of those of its features.
    sweeps, tolerance
        See `mean_field`.
    """

    def __init__(
        self,
        components: Sequence[Batch[Any]],
        known: Sequence[Batch[Any]],
        coupling: Coupling,
        features: Sparse,
        *,
        sweeps: int = 10,
        tolerance: float = 1e-3,
    ) -> None:
        if features.n_rows != len(coupling):
            raise ParameterError(f"CoupledLikelihood: {features.n_rows} rows of features for {len(coupling)} tuples")
        self.components, self.known, self.coupling, self.features = components, known, coupling, features
        self.sweeps, self.tolerance = sweeps, tolerance

    @property
    def n_weights(self) -> int:
        return self.features.n_features

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None, /) -> float:
        """The objective; its gradient is added to `out`."""
        worth = self.features.scores(weights)
        known, free = (
            mean_field(some, self.coupling, worth, sweeps=self.sweeps, tolerance=self.tolerance)
            for some in (self.known, self.components)
        )
        self.features.add_totals(known.products - free.products, out)
        return known.bound - free.bound


class FieldLikelihood(WholeObjective):
    r"""How probable each known component is, given what the others are believed to be without coupling.

    .. math:: \sum_k \log q_k(y_k), \qquad q_k(y) \propto \exp\Big[s_k(y) + \sum_t w_t\, [t \cap y \ne \emptyset]
        \prod_{p \in t \setminus y} \mu^0_p\Big]

    This is what the first update of mean field makes of each component. It has one optimum, nothing in it is
    approximated, and weights learn to trust others as far as these can be trusted before they are known; the bound of
    `CoupledLikelihood` is lower the stronger the coupling, so that strong coupling looks better there than it is.

    Parameters
    ----------
    components, known, coupling, features
        See `CoupledLikelihood`. A component of which nothing is known adds nothing.
    """

    def __init__(
        self, components: Sequence[Batch[Any]], known: Sequence[Batch[Any]], coupling: Coupling, features: Sparse
    ) -> None:
        from isogloss.learners._numba.meanfield import others

        if features.n_rows != len(coupling):
            raise ParameterError(f"FieldLikelihood: {features.n_rows} rows of features for {len(coupling)} tuples")
        self.components, self.known, self.coupling, self.features = components, known, coupling, features
        self.shares = np.empty(coupling.tuples.shape)
        start = np.concatenate([np.zeros(0), *(one.marginals().values for one in components)])
        others(coupling.tuples, start, self.shares)

    @property
    def n_weights(self) -> int:
        return self.features.n_features

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None, /) -> float:
        """The objective; its gradient is added to `out`."""
        from isogloss.learners._numba.meanfield import add_all_fields

        fields = np.zeros(int(self.coupling.starts[-1]))
        add_all_fields(self.coupling.tuples, self.features.scores(weights), self.shares, fields)
        value, slope = 0.0, np.zeros(len(fields) + 1)  # the last one is for places that are not used
        for k, (free, known) in enumerate(zip(self.components, self.known, strict=True)):
            if known is free:
                continue
            own = slice(self.coupling.starts[k], self.coupling.starts[k + 1])
            for one, sign in ((known, 1.0), (free, -1.0)):
                moved = one.with_scores(one.scores.like(kept(one.scores.values + fields[own])))
                value += sign * float(moved.log_partition().sum())
                slope[own] += sign * moved.marginals().values
        self.features.add_totals((slope[self.coupling.tuples] * self.shares).sum(axis=1), out)
        return value
