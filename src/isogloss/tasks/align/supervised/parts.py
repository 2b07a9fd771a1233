"""Features of all kinds of parts of a structure, side by side: what joins `PairFeatures` and the learners.

A structure such as `Matching` has links, nulls of either side and perhaps more; `Flat` lays their scores out as one
vector a pair, kind after kind. `Parts` has the features of the same parts in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.tasks.align.features.base import PairFeatures, PartFeatures

__all__ = ["Kind", "Parts", "link_and_null_parts", "take_pairs"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Indicators = tuple[NDArray[np.int64], NDArray[np.int32]]


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of part: links, say, or source words that have none.

    Parameters
    ----------
    name : str
        Goes before the names of its features, as in "source null: bias"; "" for links.
    features : tuple of str
    values : float[n_rows, n_features]
        Rows of all pairs, one pair after the other.
    counts : int64[n_pairs]
        Rows of each pair.
    indicators : (int64[n_rows + 1], int32[n_fired]), optional
        Indicator features of each row, as numbers into `indicator_names`.
    indicator_names : tuple of str
    """

    name: str
    features: tuple[str, ...]
    values: NDArray[np.floating]
    counts: Indices
    indicators: Indicators | None = None
    indicator_names: tuple[str, ...] = ()

    @cached_property
    def offsets(self) -> Indices:
        """Where the rows of each pair start, and the end: int64[n_pairs + 1]."""
        return _starts(self.counts)

    @property
    def n_rows(self) -> int:
        return len(self.values)

    @cached_property
    def sparse(self) -> Sparse:
        """Its rows alone."""
        indptr, indices = self.indicators or (np.zeros(self.n_rows + 1, np.int64), np.zeros(0, np.int32))
        return Sparse(indptr, indices, len(self.indicator_names), dense=self.values)

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Full names of its indicators, and of its other features."""
        before = f"{self.name}: " if self.name else ""
        return tuple(before + name for name in self.indicator_names), tuple(before + name for name in self.features)


class Parts:
    """The features of all parts of many pairs, kind by kind; the weights are those of all kinds together.

    Parameters
    ----------
    kinds : sequence of Kind
        In the order of `part_scores` of the structure. A kind with rows but without features scores 0.

    Notes
    -----
    The weights: indicators of the first kind, of the second, …; then the other features of the first kind, and so on
    (`Sparse` has its dense columns last).
    """

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = tuple(kinds)
        if len({len(kind.counts) for kind in self.kinds}) > 1:
            raise ParameterError("Parts: every kind needs a count for each pair")
        for kind in self.kinds:
            if kind.n_rows != kind.counts.sum():
                raise ParameterError(f"Parts: {kind.name or 'links'}: {kind.n_rows} rows, counted {kind.counts.sum()}")

    def __len__(self) -> int:
        return len(self.kinds[0].counts)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each weight."""
        both = [kind.names() for kind in self.kinds]
        return tuple(name for first, _ in both for name in first) + tuple(name for _, rest in both for name in rest)

    @property
    def n_weights(self) -> int:
        return self._indicator_starts[-1] + self._dense_starts[-1]

    @cached_property
    def _indicator_starts(self) -> list[int]:
        return list(accumulate((len(kind.indicator_names) for kind in self.kinds), initial=0))

    @cached_property
    def _dense_starts(self) -> list[int]:
        return list(accumulate((len(kind.features) for kind in self.kinds), initial=0))

    def columns(self, kind: int) -> slice:
        """Which weights are those of a kind's features that are not indicators."""
        first = self._indicator_starts[-1]
        return slice(first + self._dense_starts[kind], first + self._dense_starts[kind + 1])

    def weights_of(self, kind: int, weights: ArrayLike) -> Array:
        """The weights of one kind, as its `sparse` takes them."""
        w = np.asarray(weights, np.float64)
        return np.concatenate(
            [w[self._indicator_starts[kind] : self._indicator_starts[kind + 1]], w[self.columns(kind)]]
        )

    def scores(self, weights: ArrayLike) -> list[Array]:
        """The scores of all rows of each kind: what structures are made of for prediction."""
        if np.shape(weights) != (self.n_weights,):
            raise ParameterError(f"Parts: weights should be {self.n_weights} numbers, not {list(np.shape(weights))}")
        return [kind.sparse.scores(self.weights_of(k, weights)) for k, kind in enumerate(self.kinds)]

    def sparse(self) -> Sparse:
        """One matrix with a row for each part: pair after pair, and within a pair kind after kind, as in `Flat`."""
        counts = np.stack([kind.counts for kind in self.kinds], axis=1)  # [n_pairs, n_kinds]
        starts = _starts(counts.ravel())
        n_rows, first = int(starts[-1]), self._indicator_starts[-1]
        dense = np.zeros((n_rows, self._dense_starts[-1]))
        fired = np.zeros(n_rows, np.int64)
        rows = []
        for k, kind in enumerate(self.kinds):
            own = np.repeat(starts[:-1].reshape(counts.shape)[:, k] - kind.offsets[:-1], kind.counts)
            rows.append(own + np.arange(kind.n_rows))
            block = self.columns(k)
            dense[rows[k], block.start - first : block.stop - first] = kind.values
            if kind.indicators is not None:
                fired[rows[k]] = np.diff(kind.indicators[0])
        indptr = _starts(fired)
        indices = np.zeros(int(indptr[-1]), np.int32)
        for k, kind in enumerate(self.kinds):
            if kind.indicators is not None:
                lengths = np.diff(kind.indicators[0])
                places = np.repeat(indptr[rows[k]] - kind.indicators[0][:-1], lengths) + np.arange(lengths.sum())
                indices[places] = kind.indicators[1] + self._indicator_starts[k]
        return Sparse(indptr, indices, first, dense=dense)

    def contributions(self, weights: ArrayLike, kind: int, row: int) -> list[tuple[str, float, float]]:
        """(name, weight, value) of each feature that a row of a kind has; weight · value sum to its score."""
        found, own = self.kinds[kind], self.weights_of(kind, weights)
        n = len(found.indicator_names)
        indicator_names, names = found.names()
        out = []
        if found.indicators is not None:
            indptr, indices = found.indicators
            out += [(indicator_names[k], float(own[k]), 1.0) for k in indices[indptr[row] : indptr[row + 1]].tolist()]
        values = np.asarray(found.values[row], np.float64).tolist()
        return out + [(name, float(own[n + k]), values[k]) for k, name in enumerate(names) if values[k]]


def link_and_null_parts(features: PairFeatures) -> Parts:
    """Links, source nulls and target nulls: the parts of a plain `Matching` or `Itg`."""
    source, target = features.shapes[:, 0], features.shapes[:, 1]
    return Parts(
        [
            Kind("", features.link_names, features.links, source * target, features.lexical, features.lexical_names),
            Kind("source null", features.null_names, features.source_nulls, source),
            Kind("target null", features.null_names, features.target_nulls, target),
        ]
    )


def take_pairs(features: PairFeatures, pairs: ArrayLike) -> PairFeatures:
    """The features of chosen pairs, in the order given: int64[.] or bool[n_pairs]."""
    chosen = np.asarray(pairs)
    chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
    cells = _rows(features.cell_offsets, chosen)
    lexical = None
    if features.lexical is not None:
        indptr, indices = features.lexical
        lexical = _starts(np.diff(indptr)[cells]), indices[_rows(indptr, cells)]
    return PairFeatures(
        features.shapes[chosen],
        features.link_names,
        features.links[cells],
        features.null_names,
        features.source_nulls[_rows(features.source_offsets, chosen)],
        features.target_nulls[_rows(features.target_offsets, chosen)],
        lexical,
        features.lexical_names,
        {name: _take_parts(parts, chosen) for name, parts in features.further.items()},
    )


def _take_parts(parts: PartFeatures, chosen: Indices) -> PartFeatures:
    rows = _rows(parts.offsets, chosen)
    fired = None
    if parts.indicators is not None:
        indptr, indices = parts.indicators
        fired = _starts(np.diff(indptr)[rows]), indices[_rows(indptr, rows)]
    offsets = _starts(np.diff(parts.offsets)[chosen])
    return PartFeatures(parts.names, parts.values[rows], offsets, fired, parts.indicator_names)


def _rows(offsets: Indices, chosen: Indices) -> Indices:
    """Rows of chosen groups, one group after the other."""
    lengths = np.diff(offsets)[chosen]
    ends = np.cumsum(lengths)
    return np.repeat(offsets[chosen] - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


def _starts(sizes: NDArray[np.int64]) -> Indices:
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out
