"""Lists of labels that positions of many sentences may have, and the parts of chains over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered, row_numbers
from isogloss.errors import ParameterError
from isogloss.structures.base import Array
from isogloss.structures.batch import Stack, run_sentences

if TYPE_CHECKING:
    from isogloss.structures._numba.lattices import Lists

__all__ = ["LatticeParts"]

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LatticeParts:
    """The labels that each position may have, and all parts of the chains over them in one vector.

    A pair of a position and a label that it may have is an *entry*. Of each sentence the vector has its nodes (one for
    each entry), then its edges (an entry of t − 1 and one of t), then at order 2 its triples (entries of t − 2, t − 1
    and t), positions in order and the last entry running fastest.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Positions of each sentence.
    starts : int64[n_positions + 1]
        Position *t* may have the labels ``labels[starts[t]:starts[t + 1]]``, one at least, each once.
    labels : int64[n_entries]
    order : 1 or 2
        How many labels before it a label depends on.

    Examples
    --------
    >>> parts = LatticeParts.of([[[3, 5], [0], [3, 5]], [[1]]], order=2)
    >>> parts.counts.tolist()                                   # nodes, edges and triples of each sentence
    [[5, 4, 4], [1, 0, 0]]
    >>> parts.labels[parts.triples][:2].tolist()
    [[3, 0, 3], [3, 0, 5]]
    """

    offsets: Places
    starts: Places
    labels: Places
    order: int = 1

    def __post_init__(self) -> None:
        for name in ("offsets", "starts", "labels"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.int64))
        if self.order not in (1, 2):
            raise ParameterError(f"LatticeParts: order should be 1 or 2, not {self.order!r}")
        _check_rising("offsets", self.offsets, 0, len(self.starts) - 1, "positions")
        _check_rising("starts", self.starts, 1, len(self.labels), "labels")

    @classmethod
    def of(cls, lists: Iterable[Sequence[Sequence[int]]], order: int = 1) -> LatticeParts:
        """From a list of labels for each position of each sentence."""
        sentences = [[np.asarray(labels, np.int64).reshape(-1) for labels in sentence] for sentence in lists]
        for s, sentence in enumerate(sentences):
            for t, labels in enumerate(sentence):
                if not len(labels) or len(np.unique(labels)) < len(labels):
                    raise ParameterError(
                        f"LatticeParts: position {t} of sentence {s} should have one label at least, and each once"
                    )
        every = [labels for sentence in sentences for labels in sentence]
        starts, offsets = ([0, *map(len, some)] for some in (every, sentences))
        return cls(np.cumsum(offsets), np.cumsum(starts), np.concatenate([np.zeros(0, np.int64), *every]), order)

    @classmethod
    def allowed(cls, mask: ArrayLike, offsets: ArrayLike, order: int = 1) -> LatticeParts:
        """The labels for which bool[n_positions, k] is true."""
        given = np.asarray(mask, np.bool_)
        starts = np.concatenate([[0], np.cumsum(given.sum(axis=1))])
        return cls(np.asarray(offsets, np.int64), starts, np.nonzero(given)[1], order)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_positions(self) -> int:
        return len(self.starts) - 1

    @property
    def n_entries(self) -> int:
        return len(self.labels)

    @property
    def n_parts(self) -> int:
        return int(self.part_offsets[-1])

    @property
    def lengths(self) -> Places:
        """int64[n_sentences]: positions of each."""
        return np.diff(self.offsets)

    @cached_property
    def counts(self) -> Places:
        """int64[n_sentences, 3]: nodes, edges and triples of each."""
        from isogloss.structures._numba.lattices import count_parts

        out = np.zeros((len(self), 3), np.int64)
        count_parts(self.order, self.offsets, self.starts, out)
        return out

    @cached_property
    def part_offsets(self) -> Places:
        """int64[n_sentences + 1]: where the vector of each sentence begins."""
        return np.concatenate([[0], np.cumsum(self.counts.sum(axis=1))]).astype(np.int64)

    @cached_property
    def positions(self) -> Places:
        """int64[n_entries]: the position of each entry."""
        return np.repeat(np.arange(self.n_positions), np.diff(self.starts))

    @cached_property
    def node_places(self) -> Places:
        """int64[n_entries]: where nodes stand among all parts."""
        return self._places(0)

    @cached_property
    def edge_places(self) -> Places:
        """int64[n_edges]: where edges stand among all parts."""
        return self._places(1)

    @cached_property
    def triple_places(self) -> Places:
        """int64[n_triples]: where triples stand among all parts; none at order 1."""
        return self._places(2)

    def _places(self, kind: int) -> Places:
        first = self.part_offsets[:-1] + self.counts[:, :kind].sum(axis=1)
        counts = self.counts[:, kind]
        before = np.cumsum(counts) - counts
        return np.asarray(np.arange(int(counts.sum())) + np.repeat(first - before, counts))

    @cached_property
    def edges(self) -> Places:
        """int64[n_edges, 2]: the entries that each edge leads from and to."""
        from isogloss.structures._numba.lattices import list_edges

        out = np.empty((int(self.counts[:, 1].sum()), 2), np.int64)
        list_edges(self.offsets, self.starts, out)
        return out

    @cached_property
    def triples(self) -> Places:
        """int64[n_triples, 3]: the entries of each triple; none at order 1."""
        from isogloss.structures._numba.lattices import list_triples

        out = np.empty((int(self.counts[:, 2].sum()), 3), np.int64)
        if self.order == 2:
            list_triples(self.offsets, self.starts, out)
        return out

    @cached_property
    def lists(self) -> Lists:
        """As kernels take it, for scores of all parts."""
        from isogloss.structures._numba.lattices import Lists

        return Lists(self.order, self.offsets, self.starts, self.labels, self.part_offsets)

    @cached_property
    def node_lists(self) -> Lists:
        """The same for scores of nodes alone."""
        from isogloss.structures._numba.lattices import Lists

        return Lists(self.order, self.offsets, self.starts, self.labels, self.starts[self.offsets])

    def stack(self, values: Array) -> Stack:
        """A vector over all parts as one array for each sentence."""
        return Stack(values, self.part_offsets, np.diff(self.part_offsets)[:, None])

    def node_stack(self, values: Array) -> Stack:
        """A vector over entries as one array for each sentence."""
        offsets = self.starts[self.offsets]
        return Stack(values, offsets, np.diff(offsets)[:, None])

    def find(self, labels: ArrayLike) -> Places:
        """int64[n_positions]: the entry of each position that has this label; `ParameterError` where there is none."""
        from isogloss.structures._numba.lattices import find_entries

        wanted = np.asarray(labels, np.int64)
        if wanted.shape != (self.n_positions,):
            raise ParameterError(f"LatticeParts: {self.n_positions} labels are needed, not {list(wanted.shape)}")
        entries = np.empty(self.n_positions, np.int64)
        find_entries(0, 1, self.starts, self.labels, wanted, entries)
        for t in np.flatnonzero(entries < 0)[:1].tolist():
            s = int(np.searchsorted(self.offsets, t, side="right")) - 1
            raise ParameterError(
                f"LatticeParts: position {t - self.offsets[s]} of sentence {s} may not have label {wanted[t]}, only "
                f"{self.labels[self.starts[t] : self.starts[t + 1]].tolist()}"
            )
        return entries

    def indicate(self, labels: ArrayLike) -> Array:
        """float64[n_parts]: 1 for each part that these labels, int[n_positions], have."""
        from isogloss.structures._numba.lattices import indicate

        entries, out = self.find(labels), np.empty(self.n_parts)
        run_sentences(indicate, len(self), self.lists, entries, out)
        return out

    def take(self, items: ArrayLike) -> LatticeParts:
        """Some of the sentences, in the given order."""
        offsets, positions = gathered(self.offsets, row_numbers(items, len(self), "LatticeParts"))
        starts, entries = gathered(self.starts, positions)
        return LatticeParts(offsets, starts, self.labels[entries], self.order)


def _check_rising(name: str, array: Places, least: int, last: int, what: str) -> None:
    if array.ndim != 1 or not len(array) or array[0] or array[-1] != last or (np.diff(array) < least).any():
        by = "" if least == 0 else ", by 1 at least"
        raise ParameterError(f"LatticeParts: {name} should rise from 0 to {last}, the number of {what}{by}")
