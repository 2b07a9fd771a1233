"""`PairFeatures`: features of all parts of many sentence pairs; `PairView`: one pair as a user's function sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import UsageError

__all__ = ["Floats", "PairFeatures", "PairView", "PartFeatures"]

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Features of the parts of sentence pairs, in bulk: of every cell (word pair) and of every word's being unlinked.

    Cells lie source word by source word, pair after pair: cell (i, j) of pair k is row
    ``cells_of(k).start + i * n_target + j`` of `links`. Memory is ``4 * len(link_names)`` bytes a cell, and a few more
    where lexical indicators fire.

    Parameters
    ----------
    shapes : int64[n_pairs, 2]
        Source and target words of each pair; (0, 0) where a pair is passed over.
    link_names, links : tuple of str, float32[n_cells, n_link_features]
    null_names : tuple of str
    source_nulls, target_nulls : float32[n_words, n_null_features]
        Words of all pairs, one after the other.
    lexical : (int64[n_cells + 1], int32[n_fired]), optional
        Indicators of each cell, as `Sparse` takes them: numbers into `lexical_names`.
    lexical_names : tuple of str
    further : mapping of str to PartFeatures
        Features of other parts, where the extractor has a set for them: "link_pairs", "source_further" and
        "target_further" with "pairs"; "blocks", without means over links, with "blocks".
    """

    shapes: NDArray[np.int64]
    link_names: tuple[str, ...]
    links: Floats
    null_names: tuple[str, ...]
    source_nulls: Floats
    target_nulls: Floats
    lexical: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None
    lexical_names: tuple[str, ...] = ()
    further: Mapping[str, PartFeatures] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.shapes)

    def __repr__(self) -> str:
        return (
            f"PairFeatures({len(self)} pairs, {len(self.links)} cells, {len(self.link_names)} link features, "
            f"{len(self.null_names)} null features, {len(self.lexical_names)} indicators)"
        )

    @cached_property
    def cell_offsets(self) -> NDArray[np.int64]:
        """Where the cells of each pair start in `links`, and the end: int64[n_pairs + 1]."""
        return starts_of(self.shapes[:, 0] * self.shapes[:, 1])

    @cached_property
    def source_offsets(self) -> NDArray[np.int64]:
        """Where the words of each pair start in `source_nulls`, and the end: int64[n_pairs + 1]."""
        return starts_of(self.shapes[:, 0])

    @cached_property
    def target_offsets(self) -> NDArray[np.int64]:
        """Where the words of each pair start in `target_nulls`, and the end: int64[n_pairs + 1]."""
        return starts_of(self.shapes[:, 1])

    def cells_of(self, pair: int) -> slice:
        """Rows of `links` that belong to a pair."""
        return slice(int(self.cell_offsets[pair]), int(self.cell_offsets[pair + 1]))

    def source_of(self, pair: int) -> slice:
        """Rows of `source_nulls` that belong to a pair."""
        return slice(int(self.source_offsets[pair]), int(self.source_offsets[pair + 1]))

    def target_of(self, pair: int) -> slice:
        """Rows of `target_nulls` that belong to a pair."""
        return slice(int(self.target_offsets[pair]), int(self.target_offsets[pair + 1]))

    def shape(self, pair: int) -> tuple[int, int]:
        """Source and target words of a pair."""
        return int(self.shapes[pair, 0]), int(self.shapes[pair, 1])

    def matrix(self, pair: int, name: str) -> Floats:
        """One link feature of one pair, float32[n_source, n_target]; a view."""
        return self.links[self.cells_of(pair), self.column(name)].reshape(self.shape(pair))

    def column(self, name: str) -> int:
        """Which column of `links` a feature is."""
        try:
            return self.link_names.index(name)
        except ValueError:
            raise UsageError(f"no link feature {name!r}; there are {', '.join(self.link_names)}") from None

    def __getitem__(self, pairs: slice | int) -> PairFeatures:
        """A contiguous range of pairs (a number gives a range of one), sharing the memory."""
        if isinstance(pairs, slice):
            start, stop, step = pairs.indices(len(self))
            if step != 1:
                raise IndexError(f"PairFeatures: pairs are taken in steps of 1, not {step}")
            stop = max(start, stop)
        else:
            start = pairs + len(self) if pairs < 0 else pairs
            if not 0 <= start < len(self):
                raise IndexError(f"PairFeatures: no pair {pairs} among {len(self)}")
            stop = start + 1
        first, last = self.cell_offsets[start], self.cell_offsets[stop]
        lexical = None
        if self.lexical is not None:
            indptr, indices = self.lexical
            lexical = indptr[first : last + 1] - indptr[first], indices[indptr[first] : indptr[last]]
        return PairFeatures(
            self.shapes[start:stop],
            self.link_names,
            self.links[first:last],
            self.null_names,
            self.source_nulls[self.source_offsets[start] : self.source_offsets[stop]],
            self.target_nulls[self.target_offsets[start] : self.target_offsets[stop]],
            lexical,
            self.lexical_names,
            {name: parts[start:stop] for name, parts in self.further.items()},
        )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        found = [self.links, self.source_nulls, self.target_nulls, self.shapes, *(self.lexical or ())]
        return sum(int(array.nbytes) for array in found) + sum(parts.nbytes for parts in self.further.values())


def starts_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


@dataclass(frozen=True, eq=False)
class PairView:
    """One sentence pair, for a user's feature function ``f(view) -> float array [n_source, n_target]``.

    Parameters
    ----------
    number : int
        Which pair of the text it is.
    source, target : tuple of str
        The words as written.
    source_ids, target_ids : int32[n_source], int32[n_target]
        Numbers of the word forms in the statistics; -1 where the text had no such form.
    source_counts, target_counts : int64[n_source], int64[n_target]
        In how many sentence pairs of the text each form occurs, this one not counted.
    features : mapping of str to float32[n_source, n_target]
        Link features computed so far, under their names: ``view.features["dice"]``, and, with the set "hmm",
        ``view.features["hmm"]``, the posterior.
    """

    number: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    source_ids: NDArray[np.int32]
    target_ids: NDArray[np.int32]
    source_counts: NDArray[np.int64]
    target_counts: NDArray[np.int64]
    features: Mapping[str, NDArray[Any]]

    @property
    def shape(self) -> tuple[int, int]:
        """(n_source, n_target)."""
        return len(self.source), len(self.target)


@dataclass(frozen=True, eq=False)
class PartFeatures:
    """Features of another kind of part (blocks of words, pairs of links, words with a second link), in bulk.

    Parameters
    ----------
    names, values : tuple of str, float32[n_parts, n_features]
        Parts of all sentence pairs, one pair after the other.
    offsets : int64[n_pairs + 1]
        Where the parts of each pair start, and the end.
    indicators : (int64[n_parts + 1], int32[n_fired]), optional
        Numbers into `indicator_names` that fire for each part, as `Sparse` takes them.
    indicator_names : tuple of str
    """

    names: tuple[str, ...]
    values: Floats
    offsets: NDArray[np.int64]
    indicators: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None
    indicator_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return (
            f"PartFeatures({len(self)} pairs, {len(self.values)} parts, {len(self.names)} features, "
            f"{len(self.indicator_names)} indicators)"
        )

    def parts_of(self, pair: int) -> slice:
        """Rows of `values` that belong to a pair."""
        return slice(int(self.offsets[pair]), int(self.offsets[pair + 1]))

    def __getitem__(self, pairs: slice) -> PartFeatures:
        """A contiguous range of pairs, sharing the memory."""
        start, stop, step = pairs.indices(len(self))
        if step != 1:
            raise IndexError(f"PartFeatures: pairs are taken in steps of 1, not {step}")
        stop = max(start, stop)
        first, last = self.offsets[start], self.offsets[stop]
        fired = None
        if self.indicators is not None:
            indptr, indices = self.indicators
            fired = indptr[first : last + 1] - indptr[first], indices[indptr[first] : indptr[last]]
        offsets = self.offsets[start : stop + 1] - first
        return PartFeatures(self.names, self.values[first:last], offsets, fired, self.indicator_names)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in (self.values, self.offsets, *(self.indicators or ())))
