"""`Features`: the linear map between marginals of parts and expected features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.learners.posterior.together import Array, Together

__all__ = ["AnyFeatures", "Features", "as_features", "label_features"]


class Features(NamedTuple):
    """A linear map between multipliers and scores, for features too many to be written out.

    expectations : float64[*scores.shape] -> float64[m]
        Marginals of the structure to expected features.
    scores_from : float64[m] -> float64[*scores.shape]
        Its transpose: λ to the score λ · f of each part.

    `Features.indexed` and `Features.sparse` make the two usual kinds.
    """

    expectations: Callable[[Array], Array]
    scores_from: Callable[[Array], Array]

    @classmethod
    def indexed(cls, index: ArrayLike, count: int, weights: ArrayLike | None = None) -> Features:
        """Each part counts for at most one feature.

        Parameters
        ----------
        index : int64[*scores.shape]
            The feature of each part; −1 for none.
        count : int
            m, the number of features.
        weights : float64[*scores.shape], optional
            What each part counts, 1 when not given.

        Examples
        --------
        >>> rows = Features.indexed([[0, 0], [1, -1]], 2)
        >>> rows.expectations(np.array([[0.5, 0.25], [0.125, 1.0]])), rows.scores_from(np.array([1.0, 2.0]))
        (array([0.75 , 0.125]), array([[1., 1.], [2., 0.]]))
        """
        places = np.asarray(index, np.int64)
        if places.size and not -1 <= places.min() <= places.max() < count:
            raise ParameterError(
                f"Features: indices should be from -1 to {count - 1}, not {places.min()}..{places.max()}"
            )
        used = np.flatnonzero(places.ravel() >= 0)
        to = places.ravel()[used]
        scale = None if weights is None else np.asarray(weights, np.float64).ravel()[used]

        def expectations(marginals: Array) -> Array:
            values = marginals.ravel()[used]
            weighted = values if scale is None else values * scale
            return np.bincount(to, weighted, minlength=count).astype(np.float64)

        def scores_from(multipliers: Array) -> Array:
            scores = np.zeros(places.size)
            scores[used] = multipliers[to] if scale is None else multipliers[to] * scale
            return scores.reshape(places.shape)

        return cls(expectations, scores_from)

    @classmethod
    def sparse(cls, matrix: Any, shape: Sequence[int] | None = None) -> Features:
        """From a SciPy sparse matrix [m, n_parts]; `shape` is that of the scores, one vector when not given."""
        rows = matrix.tocsr()
        columns = rows.T.tocsr()
        to = (rows.shape[1],) if shape is None else tuple(shape)
        return cls(
            lambda marginals: np.asarray(rows @ marginals.ravel()),
            lambda multipliers: np.asarray(columns @ multipliers).reshape(to),
        )


AnyFeatures: TypeAlias = Any
"""Features, a dense array [m, *scores.shape], or a SciPy sparse matrix [m, n_parts]."""


def as_features(features: AnyFeatures, count: int | None, shape: tuple[int, ...], place: str) -> Features:
    """As `Features`, once the shape is known to fit."""
    if isinstance(features, Features):
        return features
    size = int(np.prod(shape))
    if hasattr(features, "tocsr"):
        if features.shape[1] != size or count not in (None, features.shape[0]):
            raise ParameterError(
                f"{place}: features should be a matrix [{'m' if count is None else count}, {size}], one row for each "
                f"feature and one column for each part, not {list(features.shape)}"
            )
        return Features.sparse(features, shape)
    array = np.asarray(features, np.float64)
    wanted = [len(array) if count is None and array.ndim else count, *shape]
    if list(array.shape) != wanted or not np.isfinite(array).all():
        raise ParameterError(
            f"{place}: features should be finite numbers {wanted}, one array like the scores for each "
            f"entry of bound, not {list(array.shape)}"
        )
    flat = array.reshape(len(array), size)
    return Features(lambda marginals: flat @ marginals.ravel(), lambda multipliers: (multipliers @ flat).reshape(shape))


def label_features(dist: Together, groups: Sequence[ArrayLike], count: int, n_labels: int) -> Features:
    """How often each label is used by the positions of each group: features ``group * n_labels + label``.

    For structures whose scores are [n, ..., n_labels] with the label of a position last, such as chains of any order.
    With the vertices of a graph as groups these are the sums that `GraphLaplacian` takes; with one group, the histogram
    of labels of the whole text.

    Parameters
    ----------
    dist : Together
    groups : for each sentence int64[n]
        The group of each position; −1 for none.
    count : int
        Number of groups.
    n_labels : int
    """
    index: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    for s, (shape, given) in enumerate(zip(dist.shapes, groups, strict=True)):
        group = np.asarray(given, np.int64)
        if group.shape != shape[:1] or (len(group) and shape[-1] != n_labels) or (group >= count).any():
            raise ParameterError(
                f"label_features: sentence {s} has scores {list(shape)}, so its groups should be {shape[0]} numbers "
                f"from -1 to {count - 1} and its labels {n_labels}; the groups are {group!r}"
            )
        if not len(group):
            continue
        of = np.where(group[:, None] < 0, -1, group[:, None] * n_labels + np.arange(n_labels))
        index.append(np.broadcast_to(of.reshape(shape[0], *[1] * (len(shape) - 2), n_labels), shape).ravel())
    return Features.indexed(np.concatenate(index), count * n_labels)
