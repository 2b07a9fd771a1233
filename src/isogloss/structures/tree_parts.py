"""Candidate links of many sentences, and the parts of trees over them that may have scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered
from isogloss.errors import ParameterError
from isogloss.structures.base import Array
from isogloss.structures.batch import Stack, run_sentences

__all__ = ["FAMILIES", "Candidates", "Part", "TreeParts"]

FAMILIES = ("grand", "siblings", "valence", "crossing")
"""What pairs of links, or more, can be scored for: a link and the one above it; children of a head that follow each
other outward; the number of children on a side; words whose links cross."""
BINS = 4
"""Numbers of children that are told apart: 0, 1, 2, and 3 or more."""
Ints = NDArray[np.int32]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The heads that each word of many sentences may have.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Words of each sentence.
    starts : int64[n_words + 1]
        Word *w* may hang on ``heads[starts[w]:starts[w + 1]]``, in ascending order; 0 is the root.
    heads : int32[n_links]

    Examples
    --------
    >>> every = Candidates.all([2, 1])
    >>> every.heads.tolist(), every.n_links
    ([0, 2, 0, 1, 0], 5)
    """

    offsets: Places
    starts: Places
    heads: Ints

    @classmethod
    def all(cls, lengths: ArrayLike) -> Candidates:
        """Every link between different words of sentences with these lengths."""
        sizes = np.asarray(lengths, np.int64)
        offsets = _offsets(sizes)
        counts = np.repeat(sizes, sizes)  # a word may hang on all others and the root
        starts = _offsets(counts)
        word = np.repeat(np.arange(len(counts)) - np.repeat(offsets[:-1], sizes) + 1, counts)
        heads = np.arange(len(word)) - np.repeat(starts[:-1], counts)
        return cls(offsets, starts, (heads + (heads >= word)).astype(np.int32))

    @classmethod
    def kept(cls, allowed: Iterable[NDArray[np.bool_]]) -> Candidates:
        """Those links (head, child) for which ``bool[n + 1, n + 1]`` is true, for each sentence."""
        heads, counts, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], [0]
        for matrix in allowed:
            n = len(matrix) - 1
            free = matrix[:, 1:].T & (np.arange(n + 1) != np.arange(1, n + 1)[:, None])
            heads.append(np.nonzero(free)[1].astype(np.int32))
            counts.append(free.sum(axis=1))
            lengths.append(n)
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
        return cls(np.cumsum(lengths).astype(np.int64), starts, np.concatenate(heads))

    @property
    def n_links(self) -> int:
        return len(self.heads)

    def __len__(self) -> int:
        return len(self.offsets) - 1


class Part(NamedTuple):
    """One part of a tree.

    Parameters
    ----------
    family : str
        "link", or one of `FAMILIES`.
    nodes : tuple
        Words count from 1, the root is 0. Of a link (head, child); of grandparents (grandparent, head, child); of
        siblings (head, side, child, next child outward), None where there is none before or after; of valence (head,
        side, number of children), `BINS` − 1 for so many or more; of crossings the two words. Sides are 0, left, and 1,
        right.
    """

    family: str
    nodes: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class TreeParts:
    """All parts of some sentences, in one vector: of each sentence its links, then the families in order.

    Links are listed by child, then head. Made by `TreeParts.of`; `isogloss.structures._numba.tree_parts` says how runs
    and their pairs are numbered.

    Parameters
    ----------
    families : tuple of str
        Some of `FAMILIES`.
    lengths : int64[n_sentences]
        Words.
    link_offsets, pair_offsets, run_offsets : int64[n_sentences + 1]
    head, child : int32[n_links]
    upper, lower : int32[n_pairs]
        Grandparents: numbers of two links of the sentence, g → h and h → c.
    run_starts, run_links : int32
        The links from each head to one side, outward.
    begins : int64[n_sentences, 6]
        Where links, grandparents, siblings, valences and crossings of a sentence begin in the vector, and where it
        ends.
    """

    families: tuple[str, ...]
    lengths: Places
    link_offsets: Places
    pair_offsets: Places
    run_offsets: Places
    head: Ints
    child: Ints
    upper: Ints
    lower: Ints
    run_starts: Ints
    run_links: Ints
    begins: Places

    @classmethod
    def of(
        cls, candidates: Candidates, families: Sequence[str] = (), sentences: Places | None = None
    ) -> TreeParts:  # fmt: skip
        """The parts of some sentences, or of all."""
        from isogloss.structures._numba.tree_parts import lay_out, measure

        if not set(families) <= set(FAMILIES):
            wrong = ", ".join(sorted(set(families) - set(FAMILIES)))
            raise ParameterError(f"TreeParts: families should be among {', '.join(FAMILIES)}, not {wrong}")
        chosen = np.arange(len(candidates)) if sentences is None else np.ascontiguousarray(sentences)
        lengths = np.diff(candidates.offsets)[chosen]
        counts = np.empty((len(chosen), 3), np.int64)
        measure(chosen, candidates.offsets, candidates.starts, candidates.heads, counts)
        links, grands, pairs = counts.T
        has = {name: name in families for name in FAMILIES}
        nothing = np.zeros(len(chosen), np.int64)
        grands = grands if has["grand"] else nothing
        sizes = np.stack([
            links,
            grands,
            pairs if has["siblings"] else nothing,
            2 * (lengths + 1) * BINS if has["valence"] else nothing,
            lengths * (lengths - 1) // 2 if has["crossing"] else nothing,
        ], axis=1)  # fmt: skip
        begins = np.zeros((len(chosen), 6), np.int64)
        np.cumsum(sizes, axis=1, out=begins[:, 1:])
        begins += _offsets(sizes.sum(axis=1))[:-1, None]
        link_offsets, pair_offsets, run_offsets = (_offsets(each) for each in (links, grands, 2 * lengths + 3))
        head, child, run_links = (np.empty(int(link_offsets[-1]), np.int32) for _ in range(3))
        upper, lower = (np.empty(int(pair_offsets[-1]), np.int32) for _ in range(2))
        run_starts = np.empty(int(run_offsets[-1]), np.int32)
        given = (candidates.offsets, candidates.starts, candidates.heads, has["grand"])
        layout = (link_offsets, pair_offsets, run_offsets, head, child, upper, lower, run_starts, run_links)
        run_sentences(lay_out, len(chosen), chosen, *given, *layout)
        ordered = tuple(name for name in FAMILIES if has[name])
        return cls(ordered, lengths, *layout, begins)

    def take(self, items: Places) -> TreeParts:
        """The parts of some sentences, by their numbers, in that order; as `of` lists them."""
        link_offsets, links = gathered(self.link_offsets, items)
        pair_offsets, pairs = gathered(self.pair_offsets, items)
        run_offsets, runs = gathered(self.run_offsets, items)
        begins = self.begins[items]
        shifts = _offsets(begins[:, 5] - begins[:, 0])[:-1] - begins[:, 0]
        return TreeParts(
            self.families, self.lengths[items], link_offsets, pair_offsets, run_offsets, self.head[links],
            self.child[links], self.upper[pairs], self.lower[pairs], self.run_starts[runs], self.run_links[links],
            begins + shifts[:, None],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_links(self) -> int:
        return len(self.head)

    @property
    def n_parts(self) -> int:
        return int(self.begins[-1, 5]) if len(self) else 0

    @cached_property
    def offsets(self) -> Places:
        """int64[n_sentences + 1]: where the vector of each sentence begins."""
        return np.append(self.begins[:, 0], self.n_parts)

    @cached_property
    def link_places(self) -> Places:
        """int64[n_links]: where links stand among all parts."""
        shift = np.repeat(self.begins[:, 0] - self.link_offsets[:-1], np.diff(self.link_offsets))
        return np.asarray(np.arange(self.n_links) + shift)

    @cached_property
    def link_words(self) -> Places:
        """int64[n_links]: the word that each link leads to, counted over all sentences."""
        before = np.concatenate([[0], np.cumsum(self.lengths)])[:-1]
        return np.asarray(self.child.astype(np.int64) - 1 + np.repeat(before, np.diff(self.link_offsets)))

    @property
    def layout(self) -> tuple[Any, ...]:
        """As kernels take it."""
        return (
            self.lengths, self.link_offsets, self.pair_offsets, self.run_offsets, self.head, self.child, self.upper,
            self.lower, self.run_starts, self.run_links, self.begins, BINS,
        )  # fmt: skip

    def stack(self, values: Array) -> Stack:
        """A vector over all parts as one array for each sentence."""
        return Stack(values, self.offsets, np.diff(self.offsets)[:, None])

    @cached_property
    def cells(self) -> Places:
        """int64[n_links]: where links stand in matrices (head, child), one after the other."""
        sizes, counts = self.lengths + 1, np.diff(self.link_offsets)
        first = np.repeat(_offsets(sizes * sizes)[:-1], counts)
        return np.asarray(first + self.head.astype(np.int64) * np.repeat(sizes, counts) + self.child)

    def of_links(self, values: NDArray[Any], nothing: float) -> Stack:
        """float64[n + 1, n + 1] (head, child) for each sentence, of a vector over links; `nothing` for the others."""
        sizes = self.lengths + 1
        offsets = _offsets(sizes * sizes)
        out = np.full(int(offsets[-1]), nothing)
        out[self.cells] = values
        return Stack(out, offsets, np.stack([sizes, sizes], axis=1))

    def name(self, sentence: int, place: int) -> Part:
        """The part that stands at a place of the vector of a sentence.

        Examples
        --------
        >>> parts = TreeParts.of(Candidates.all([2]), ["grand", "siblings"])
        >>> for place in np.flatnonzero(parts.indicate([0, 1])).tolist()[:4]:
        ...     print(*parts.name(0, place))
        link (0, 1)
        link (1, 2)
        grand (0, 1, 2)
        siblings (0, 1, None, 1)
        """
        begins = self.begins[sentence]
        kind = int(np.searchsorted(begins[1:], begins[0] + place, side="right"))
        number = int(begins[0] + place - begins[kind])
        if kind == 0:
            return Part("link", self._ends(sentence, number))
        if kind == 1:
            pair = int(self.pair_offsets[sentence]) + number
            (above, head), (_, child) = (self._ends(sentence, int(links[pair])) for links in (self.upper, self.lower))
            return Part("grand", (above, head, child))
        if kind == 2:
            return Part("siblings", self._neighbours(sentence, number))
        if kind == 3:
            run, count = divmod(number, BINS)
            return Part("valence", (run // 2, run % 2, count))
        before, later = _pair(number)  # (k − 1)(k − 2) / 2 + j − 1 is the number of the words (j, k)
        return Part("crossing", (before + 1, later + 1))

    def _ends(self, sentence: int, link: int) -> tuple[int, int]:
        at = int(self.link_offsets[sentence]) + link
        return int(self.head[at]), int(self.child[at])

    def _neighbours(self, sentence: int, number: int) -> tuple[int | None, ...]:
        """A head, a side, and the two children that a pair of a run stands for."""
        from isogloss.structures._numba.tree_parts import pairs_of_run

        first, base = int(self.run_offsets[sentence]), int(self.link_offsets[sentence])
        starts = self.run_starts[first : first + 2 * int(self.lengths[sentence]) + 3].tolist()
        run = 0
        while number >= (size := pairs_of_run(starts[run + 1] - starts[run])):
            number, run = number - size, run + 1
        before, after = _pair(number)
        links = self.run_links[base + starts[run] : base + starts[run + 1]].tolist()
        children = [None, *(self._ends(sentence, link)[1] for link in links), None]
        return run // 2, run % 2, children[before], children[after]

    def indicate(self, heads: ArrayLike) -> Array:
        """float64[n_parts]: 1 for each part that these trees have; `heads` of all words, −1 where there is none."""
        from isogloss.structures._numba.tree_parts import indicate

        true = np.asarray(heads)[self.link_words] == self.head
        out = np.empty(self.n_parts)
        run_sentences(indicate, len(self), *self.layout, true, out)
        return out


def _pair(number: int) -> tuple[int, int]:
    """(i, j), 0 ≤ i < j, whose number is j (j − 1) / 2 + i."""
    j = (1 + isqrt(8 * number + 1)) // 2
    return number - j * (j - 1) // 2, j


def _offsets(counts: Places) -> Places:
    out = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out
