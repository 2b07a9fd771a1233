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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.optimisers import Items, WholeObjective
from isogloss.structures.base import expected, kept
from isogloss.structures.batch import Batch

__all__ = ["CoupledLikelihood", "Coupling", "MeanField", "mean_field"]

Array = NDArray[np.float64]


class Coupling:
    """Tuples of parts of several batches of structures.

    Parameters
    ----------
    sizes : sequence of int
        How many parts each component has, of all its sentences together.
    tuples : int64[n_tuples, arity]
        Numbers of parts: those of the first component come first, then those of the second, and so on; -1 for a place
        that is not used. A tuple has at most one part of each component, or the expectation would be no product.

    Examples
    --------
    >>> Coupling([4, 9], [[3, 4], [0, 12]]).starts.tolist()
    [0, 4, 13]
    """

    def __init__(self, sizes: Sequence[int], tuples: ArrayLike) -> None:
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.tuples = np.ascontiguousarray(tuples, np.int64)
        if self.tuples.ndim != 2:
            raise ParameterError(f"Coupling: tuples should be [n, arity], not {list(self.tuples.shape)}")
        if self.tuples.size and not -1 <= self.tuples.min() <= self.tuples.max() < self.starts[-1]:
            raise ParameterError(f"Coupling: parts should be numbers from 0 to {self.starts[-1] - 1}, or -1")
        owner = np.searchsorted(self.starts, self.tuples, side="right") - 1
        for k in range(len(sizes)):
            twice = np.flatnonzero(((owner == k) & (self.tuples >= 0)).sum(axis=1) > 1)
            if len(twice):
                raise ParameterError(f"Coupling: tuple {twice[0]} has two parts of component {k}; it may have one")

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


@dataclass(frozen=True, eq=False)
class MeanField:
    """What `mean_field` has found.

    Parameters
    ----------
    components : list of Batch
        The factors of Q.
    marginals : float64[n_parts]
        Of the parts of all components, as `Coupling` numbers them.
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
        Of the same sentences; what is known is clamped (`Batch.clamp`), and then stays as it is.
    coupling : Coupling
    weights : float64[n_tuples]
    order : sequence of int, optional
        In which components are updated; as they are given if left out.
    sweeps : int
        The most updates of each component.
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
    worth = np.ascontiguousarray(weights, np.float64)
    if worth.shape != (len(coupling),) or not np.isfinite(worth).all():
        raise ParameterError(f"mean_field: weights should be {len(coupling)} finite numbers, one for each tuple")
    factors = list(components)
    marginals = np.concatenate([np.zeros(0), *(one.marginals().values for one in factors)])
    own = [_own_bound(one, one) for one in components]
    trace, converged = [sum(own) + float(worth @ coupling.products(marginals))], False
    for _ in range(sweeps):
        before = marginals.copy()
        for k in range(len(components)) if order is None else order:
            base = components[k]
            moved = base.scores.values + coupling.fields(k, worth, marginals)
            factors[k] = base.with_scores(base.scores.like(kept(moved)))
            marginals[coupling.starts[k] : coupling.starts[k + 1]] = factors[k].marginals().values
            own[k] = _own_bound(base, factors[k])
            trace.append(sum(own) + float(worth @ coupling.products(marginals)))
        converged = bool(np.abs(marginals - before).max(initial=0.0) <= tolerance)
        if converged:
            break
    return MeanField(factors, marginals, coupling.products(marginals), trace, converged)


def _own_bound(base: Batch[Any], factor: Batch[Any]) -> float:
    """E_q[own score] + H(q) of all sentences: log Z of q less what coupling has added to its score."""
    total = float(factor.log_partition().sum())
    if factor is base:
        return total
    marginals = factor.marginals().values
    allowed = base.scores.values > -np.inf
    added = factor.scores.values[allowed] - base.scores.values[allowed]
    return total - expected(marginals[allowed], added)


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
