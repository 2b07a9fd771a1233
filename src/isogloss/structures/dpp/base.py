"""What determinantal point processes share: the dual kernel, draws, sizes, bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Any, Generic, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores, kept, numbers
from isogloss.structures.dpp.spectrum import Spectrum

__all__ = ["Determinantal", "checked_features", "checked_size", "log_gram"]

Item = TypeVar("Item", bound=Hashable)
Y = TypeVar("Y")
COLLINEAR = 1e-11
"""A vector of which no larger share is outside the span of others lies in that span, but for rounding."""
TRIES = 200


class Determinantal(ABC, Generic[Item, Y]):
    r"""A distribution over sets Y of items, :math:`P(Y) \propto \det L_Y`, :math:`L_{ab} = q_a \phi_a^\top \phi_b q_b`.

    Items may be too many to list: what is asked of a subclass is the dual kernel and a draw of one item. Scores are
    :math:`\log q^2`, so that :math:`\log \det L_Y = \sum_{a \in Y} scores_a + \log \det(\phi_a^\top \phi_b)`, and
    marginals are the derivative of log Z by the scores, as with every structure.
    """

    scores: Array
    features: Array
    """float64[n, dimensions]"""
    size: int | None

    # --- what a subclass writes

    @abstractmethod
    def _moments(self) -> tuple[float, Array]:
        """s and M with Σ_y q²(y) φ(y) φ(y)ᵀ = exp(s) M; s = −∞ where nothing is allowed."""

    @abstractmethod
    def _draw(self, values: Array, rng: np.random.Generator) -> Item | None:
        """One item with probability proportional to q² · (sum of its values)²; None where rounding leaves nothing."""

    @abstractmethod
    def _vector(self, item: Item, features: Array) -> Array:
        """The features of an item, given those of what it is made of."""

    @abstractmethod
    def _item_score(self, item: Item) -> float:
        """log q² of an item."""

    @abstractmethod
    def _items(self, y: Any) -> list[Item]:
        """The items of a set that was handed in, checked."""

    @abstractmethod
    def _set(self, items: Iterable[Item]) -> Y:
        """Items as they are handed out."""

    @abstractmethod
    def _remake(self, scores: Array) -> Self:
        """The same with other scores."""

    @abstractmethod
    def _raise_infeasible(self) -> NoReturn:
        """Say why there is no item at all."""

    @abstractmethod
    def marginals(self) -> Array:
        """Expected number of uses of each part, shaped like `scores`: the derivative of log Z."""

    @abstractmethod
    def argmax(self) -> Y:
        """A set with a large determinant."""

    @abstractmethod
    def parts(self, y: Any) -> Array:
        """How often the items of a set use each part, shaped like `scores`."""

    # --- what follows

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and eigenvectors of the dual kernel; `InfeasibleError` where no set of this size is possible."""
        scale, moments = self._moments()
        if scale == -np.inf:
            self._raise_infeasible()
        found = Spectrum.of(scale, moments)
        if self.size is not None and self.size > found.rank:
            raise InfeasibleError(
                f"{self!r}: size {self.size} is more than the {found.rank} dimensions that the features of what is "
                f"allowed span, so that every set of that size has probability 0. Ask for {found.rank} at most, give "
                "features of more dimensions, or make scores less far apart: what is below 1e-14 of the rest is lost"
            )
        return found

    def log_partition(self) -> float:
        """log Z: of the sum of det(L_Y) over all sets of `size`, or over all sets, which is log det(L + I)."""
        return self.spectrum.log_partition(self.size)

    def expected_size(self) -> float:
        """The mean number of items of a set."""
        return float(self.spectrum.chances(self.size).sum())

    def score(self, y: Any) -> float:
        """log det(L_Y); −∞ where items are alike or forbidden."""
        items = self._items(y)
        own = sum(self._item_score(item) for item in items)
        if own == -np.inf or len(set(items)) < len(items):
            return -np.inf
        return own + log_gram(np.array([self._vector(item, self.features) for item in items]))

    def log_prob(self, y: Any) -> float:
        """log P(Y); −∞ for sets that are not of this size."""
        items = self._items(y)
        if self.size is not None and len(items) != self.size:
            return -np.inf
        return self.score(items) - self.log_partition()

    def inclusion(self, item: Any) -> float:
        r"""Probability that an item is in the set.

        .. math:: P(y \in Y) = \sum_j P(j \in J)\, (v_j^\top q(y) \phi(y))^2 / \lambda_j
        """
        (one,) = self._items([item])
        found = self.spectrum
        along = found.vectors.T @ self._vector(one, self.features)
        return float(np.exp(self._item_score(one) - found.scale) * (self._shares() * along * along).sum())

    def _shares(self) -> Array:
        """P(j ∈ J) / eigenvalue of M, for each eigenvector."""
        return np.asarray(self.spectrum.chances(self.size) / self.spectrum.values)

    def sample(self, rng: np.random.Generator) -> Y:
        """One set, exactly: eigenvectors first, then items one after the other, each outside the span of those before.

        In coordinates in which the chosen part of C is the identity, an item has probability
        :math:`q^2 \\|P \\phi\\|^2 / |V|`, P onto what the items before have left. A direction of that space is chosen
        uniformly (each has mass 1), then an item along it. The space is found anew for each item, from all before.
        """
        found = self.spectrum
        chosen = found.choose(self.size, rng.random(found.rank))
        features = self.features @ (found.vectors[:, chosen] / np.sqrt(found.values[chosen]))
        items: list[Item] = []
        taken = np.zeros((0, len(chosen)))
        for left in range(len(chosen), 0, -1):
            basis = np.linalg.qr(taken.T, mode="complete")[0][:, len(taken) :]
            item, vector = self._draw_outside(features, basis, int(rng.integers(left)), rng)
            items.append(item)
            taken = np.vstack([taken, vector / np.linalg.norm(vector)])
        return self._set(items)

    def _draw_outside(
        self, features: Array, basis: Array, direction: int, rng: np.random.Generator
    ) -> tuple[Item, Array]:
        """An item along one direction; what has been drawn through rounding alone (a thread drawn before) is not it."""
        values = np.ascontiguousarray(features @ basis[:, direction])
        for _ in range(TRIES):
            item = self._draw(values, rng)
            if item is None:
                continue
            vector = self._vector(item, features)
            if np.linalg.norm(vector @ basis) > COLLINEAR * np.linalg.norm(vector):
                return item, vector
        raise InfeasibleError(
            f"{self!r}: scores are so far apart that float64 cannot tell the last items from rounding. Make scores "
            "less far apart, or ask for fewer items"
        )

    def best_of(self, samples: int, rng: np.random.Generator) -> Y:
        """The set with the largest det(L_Y) among so many draws; of equals the first."""
        if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 1:
            raise ParameterError(f"{self!r}: best_of needs a positive number of samples, not {samples!r}")
        drawn = [self.sample(rng) for _ in range(samples)]
        return max(drawn, key=self.score)

    def log_bound(self) -> float:
        """No set has a log det(L_Y) above this: `log_bound() - score(argmax())` says how far argmax may be off."""
        return self.spectrum.log_bound(self.size)

    def with_scores(self, scores: ArrayLike) -> Self:
        """The same items under other scores."""
        return self._remake(checked_scores(scores, f"{self!r}: scores", self.scores.shape))


def greedy(scores: Array, vectors: Array, size: int | None) -> list[int]:
    """Rows, one after the other, each with the largest det(L_Y) together with those before; without a size, as long as
    the determinant grows. Of equals the first."""
    left = vectors.copy()
    lengths = np.linalg.norm(vectors, axis=1)
    chosen: list[int] = []
    most = len(scores) if size is None else size
    while len(chosen) < most:
        norms = np.linalg.norm(left, axis=1)
        norms[norms <= COLLINEAR * lengths] = 0.0
        with np.errstate(divide="ignore"):
            gains = scores + 2.0 * np.log(norms)
        gains[chosen] = -np.inf
        best = int(gains.argmax()) if len(gains) else -1
        if best < 0 or gains[best] == -np.inf or (size is None and gains[best] <= 0.0):
            break
        chosen.append(best)
        basis = np.linalg.qr(vectors[chosen].T)[0]  # anew from the vectors themselves: nothing drifts
        left = vectors - (vectors @ basis) @ basis.T
        left -= (left @ basis) @ basis.T
    return chosen


def log_gram(vectors: Array) -> float:
    """log det of the products of the rows with each other; −∞ where one of them is in the span of the others.

    Examples
    --------
    >>> round(log_gram(np.array([[2.0, 0.0], [5.0, 1.0]])), 9) == round(float(np.log(4)), 9)
    True
    """
    if not len(vectors):
        return 0.0
    lengths = np.linalg.norm(vectors, axis=1)
    if len(vectors) > vectors.shape[1] or not lengths.all():
        return -np.inf
    rest = np.abs(np.diag(np.linalg.qr((vectors / lengths[:, None]).T, mode="r")))
    if (rest <= COLLINEAR).any():
        return -np.inf
    return float(2.0 * (np.log(rest) + np.log(lengths)).sum())


def checked_features(features: ArrayLike, n: int, place: str) -> Array:
    """A read-only float64[n, dimensions] copy of features, finite."""
    array = np.array(numbers(features, f"{place}: features"), order="C")
    if array.ndim != 2 or len(array) != n:
        raise ParameterError(f"{place}: features should be [{n}, dimensions], not {list(array.shape)}")
    if not np.isfinite(array).all():
        raise ParameterError(f"{place}: features should be finite numbers")
    return kept(array)


def checked_size(size: int | None, place: str) -> int | None:
    if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0):
        raise ParameterError(f"{place}: size should be a number of items, or None for sets of any size, not {size!r}")
    return None if size is None else int(size)


def node_numbers(items: Any, n: int, place: str) -> NDArray[np.int64]:
    array = np.asarray(items)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise ParameterError(f"{place}: numbers from 0 to {n - 1} are needed, not {items!r}")
    if len(array) and not (array.min() >= 0 and array.max() < n):
        raise ParameterError(f"{place}: {items!r} has a number that is not from 0 to {n - 1}")
    return array.astype(np.int64)
