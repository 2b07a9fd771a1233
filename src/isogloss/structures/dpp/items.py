"""`Dpp`: sets of items that are good and unlike each other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores, kept, numbers
from isogloss.structures.dpp.base import Determinantal, checked_features, checked_size, greedy, node_numbers

__all__ = ["Dpp"]


class Dpp(Determinantal[int, tuple[int, ...]]):
    r"""A determinantal point process over n items, or with a `size` a k-DPP, whose sets all have k items.

    .. math:: P(Y) = \frac{\det L_Y}{\det(L + I)}, \qquad P^k(Y) = \frac{\det L_Y}{\sum_{|Y'| = k} \det L_{Y'}}, \qquad
        L_{ab} = q_a\, \phi_a^\top \phi_b\, q_b

    Parameters
    ----------
    scores : float64[n]
        :math:`\log q^2` of each item; −∞ forbids it.
    features : float64[n, dimensions]
        φ. They need not have length 1: their lengths are quality too.
    size : int, optional
        k.

    Notes
    -----
    Sets are sorted tuples of numbers. All is exact but `argmax`, which is greedy: with a size its determinant is at
    least :math:`1 / (k!)^2` of the best [2]_; without one no such bound holds. `log_bound` bounds any set's. There is
    no `entropy`, which has no short form, and no `clamp`. Time: O(n d²) once, then O(n k²) a draw, d the dimensions.

    References
    ----------
    .. [1] Kulesza and Taskar, k-DPPs: Fixed-Size Determinantal Point Processes, ICML 2011. Gillenwater, Kulesza
       and Taskar, EMNLP 2012, equations 3, 4 and 6.
    .. [2] Çivril and Magdon-Ismail, On selecting a maximum volume sub-matrix of a matrix,
       Theoretical Computer Science 410, 2009.

    Examples
    --------
    >>> dist = Dpp(np.zeros(3), [[1, 0], [1, 0.1], [0, 1]], size=2)
    >>> dist.argmax(), round(float(np.exp(dist.log_prob([0, 2]))), 3), dist.marginals().round(3).tolist()
    ((1, 2), 0.498, [0.502, 0.502, 0.995])
    >>> rng = np.random.default_rng(0)
    >>> len(dist.sample(rng)), len(Dpp(np.full(3, 9.0), np.eye(3)).sample(rng))       # of two; of any size
    (2, 3)
    """

    def __init__(self, scores: ArrayLike, features: ArrayLike, *, size: int | None = None) -> None:
        self.scores = checked_scores(scores, "Dpp: scores", (None,))
        given = checked_features(features, len(self.scores), "Dpp")
        wide = given.shape[1] > len(given)  # turned into as many dimensions as items, which L does not notice
        self.features = kept(np.ascontiguousarray(np.asarray(np.linalg.qr(given.T, mode="r")).T)) if wide else given
        self.size = checked_size(size, "Dpp")

    def __repr__(self) -> str:
        return f"Dpp(n={len(self.scores)}, dimensions={self.features.shape[1]}, size={self.size})"

    @classmethod
    def of_kernel(cls, kernel: ArrayLike, *, size: int | None = None) -> Dpp:
        """From L itself, float64[n, n], symmetric and positive semi-definite.

        Examples
        --------
        >>> bool(np.isclose(Dpp.of_kernel([[2.0, 1.0], [1.0, 3.0]]).log_partition(), np.log(3 * 4 - 1)))
        True
        """
        array = numbers(kernel, "Dpp.of_kernel")
        if array.ndim != 2 or array.shape[0] != array.shape[1] or not np.isfinite(array).all():
            raise ParameterError(f"Dpp.of_kernel: a square matrix of finite numbers is needed, not {list(array.shape)}")
        largest = float(np.abs(array).max(initial=0.0))
        if np.abs(array - array.T).max(initial=0.0) > 1e-9 * largest:
            raise ParameterError("Dpp.of_kernel: the kernel should be symmetric")
        values, vectors = np.linalg.eigh(0.5 * (array + array.T))
        if values.min(initial=0.0) < -1e-9 * len(array) * max(largest, 1e-300):
            raise ParameterError(
                f"Dpp.of_kernel: the kernel has the eigenvalue {values.min():.3g}; determinants would be negative"
            )
        return cls(np.zeros(len(array)), vectors * np.sqrt(np.maximum(values, 0.0)), size=size)

    @cached_property
    def _weights(self) -> tuple[float, Array]:
        top = float(self.scores.max(initial=-np.inf))
        if top == -np.inf:
            return top, np.zeros(len(self.scores))
        return top, np.exp(self.scores - top)

    @cached_property
    def _marginals(self) -> Array:
        along = self.features @ (self.spectrum.vectors * np.sqrt(self._shares()))
        return kept(np.minimum(self._weights[1] * (along * along).sum(axis=1), 1.0))

    def _moments(self) -> tuple[float, Array]:
        scale, weights = self._weights
        if scale == -np.inf and not self.size:  # the empty set is left
            scale = 0.0
        return scale, (self.features * weights[:, None]).T @ self.features

    def marginals(self) -> Array:
        """float64[n]: probability that each item is in the set."""
        return self._marginals

    def argmax(self) -> tuple[int, ...]:
        """The set that grows by the item which adds most; see the notes for how good it is."""
        self.log_partition()  # refuses what is impossible
        return self._set(greedy(self.scores, self.features, self.size))

    def parts(self, y: Any) -> Array:
        """1 for each item of the set, 0 elsewhere."""
        found = np.zeros(len(self.scores))
        np.add.at(found, np.array(self._items(y), np.int64), 1.0)
        return found

    def from_parts(self, parts: ArrayLike) -> tuple[int, ...]:
        """The set with these parts."""
        array = np.asarray(parts, np.float64)
        if array.shape != self.scores.shape or not np.isin(array, (0.0, 1.0)).all():
            raise ParameterError(f"{self!r}: parts should be {len(self.scores)} numbers that are 0 or 1")
        return tuple(np.flatnonzero(array).tolist())

    def _draw(self, values: Array, rng: np.random.Generator) -> int | None:
        masses = self._weights[1] * values * values
        ends = masses.cumsum()
        if not ends[-1] > 0.0:
            return None
        at = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
        return min(at, int(np.flatnonzero(masses)[-1]))

    def _vector(self, item: int, features: Array) -> Array:
        return np.asarray(features[item])

    def _item_score(self, item: int) -> float:
        return float(self.scores[item])

    def _items(self, y: Any) -> list[int]:
        found: list[int] = node_numbers(list(y), len(self.scores), repr(self)).tolist()
        return found

    def _set(self, items: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(items))

    def _remake(self, scores: Array) -> Self:
        return type(self)(scores, self.features, size=self.size)

    def _raise_infeasible(self) -> NoReturn:
        raise InfeasibleError(f"{self!r}: every item is forbidden")
