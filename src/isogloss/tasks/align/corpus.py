"""A bitext as the kernels take it: word forms as numbers, in shards, and the word pairs that occur together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Text, Vocabulary
from isogloss.engine.shards import Shard, shards
from isogloss.engine.shelf import Shelf
from isogloss.engine.threads import in_background, run_blocks
from isogloss.store import data_hash

if TYPE_CHECKING:
    from isogloss.tasks.align.priors import Stems

__all__ = ["KEPT_CELLS", "SHARD", "Corpus", "Encoder", "Occurrences", "Room", "Stay", "Wanted", "Words"]

SHARD = 1 << 24
"""Cells of a shard: what is worked on at a time, and so has a place in memory for every cell."""

KEPT_CELLS = 1 << 27
"""Cells of a text whose entries are found once and kept, four bytes each, if there is room for thrice as much."""

_FINE = 16
"""How many times smaller than `SHARD` fine shards are, as long as the text has no more than so many."""

Occurrences = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]


class Words(NamedTuple):
    """Word numbers of some sentence pairs; a pair that is passed over is empty."""

    source_ids: NDArray[np.int32]
    source_offsets: NDArray[np.int64]
    target_ids: NDArray[np.int32]
    target_offsets: NDArray[np.int64]

    @property
    def cell_offsets(self) -> NDArray[np.int64]:
        """Where the cells of each pair start."""
        return _starts(np.diff(self.source_offsets) * np.diff(self.target_offsets))

    def occurrences(self, n_types: int) -> Occurrences:
        """Where each source form occurs (see `_numba.lexicon.occurrences`)."""
        from isogloss.tasks.align._numba.lexicon import occurrences

        found: Occurrences = occurrences(self.source_ids, self.source_offsets, n_types)
        return found

    def occurrences_of(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """In which pairs the source forms first..last-1 occur: where those of each start, and the pairs."""
        from isogloss.tasks.align._numba.lexicon import sentences_of

        found: tuple[NDArray[np.int64], NDArray[np.int32]] = sentences_of(
            self.source_ids, self.source_offsets, first, last
        )
        return found


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentence pairs with their own table of word pairs.

    The text lies in shards on a shelf, in memory or in files. What is listed by cell exists for one shard at a time
    (`shard`), or, for those who ask for it, for the whole text (`pairs`). Entries of cells are kept, if they are few.

    Parameters
    ----------
    source_words, target_words : Vocabulary
        Word forms (lower case, unless case is kept) that occur.
    source_counts, target_counts : int64[n_types]
        How often each of them occurs.
    rows, columns : int64[n_source_types + 1], int32[n_entries]
        The table: entries ``rows[e]:rows[e + 1]`` belong to source form e, ``columns`` says with which target form.
    shards : list of Shard
        Ranges of pairs, of `SHARD` cells at most. What is learnt does not depend on how the text is cut.
    shelf : Shelf
    skipped : bool[n_pairs]
        Pairs that are passed over: a side is empty, or longer than `max_length`.
    least : int
        Cells in which the words of an entry meet, at the least. 1: every cell has an entry. More, where the table would
        not have fitted the memory it was given; entries that were asked for by name are there all the same.
    room : Room
        What the table may take.
    dropped : (int64[n_source_types], int64[n_target_types])
        How many entries of each form have been left out.
    cells : int, optional
        Number of cells of the whole text, if it is known; entries of few are kept (`KEPT_CELLS`).
    """

    source_words: Vocabulary
    target_words: Vocabulary
    source_counts: NDArray[np.int64]
    target_counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    shards: list[Shard]
    shelf: Shelf
    skipped: NDArray[np.bool_]
    max_length: int
    least: int
    room: Room
    dropped: tuple[NDArray[np.int64], NDArray[np.int64]]
    cells: int | None = None
    _space: dict[str, NDArray[Any]] = field(default_factory=dict, init=False, repr=False)
    _found: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _coming: dict[int, Future[tuple[Words, Occurrences]]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, bitext: Bitext, *, lowercase: bool, max_length: int, fine: bool = False) -> Corpus:
        """A text that is in memory."""
        return cls.of_parts([bitext], lowercase=lowercase, max_length=max_length, fine=fine)

    @classmethod
    def of_parts(
        cls,
        parts: Iterable[Bitext],
        *,
        lowercase: bool,
        max_length: int,
        shelf: Shelf | None = None,
        room: Room | None = None,
        fine: bool = False,
    ) -> Corpus:
        """A text that comes in parts; how it is cut changes nothing.

        With `room`, entries of few cells are left out until the table fits. `fine` shards are for several workers:
        short texts have a dozen too.
        """
        encoder = Encoder.of(parts, lowercase=lowercase, max_length=max_length, shelf=shelf, fine=fine)
        return encoder.corpus(room or Room())

    def __len__(self) -> int:
        return len(self.skipped)

    def within(self, length: int) -> int:
        """How many pairs have words on both sides, and no more than so many."""
        found = 0
        for shard in range(len(self.shards)):
            words = self.words(shard)
            sides = np.diff(words.source_offsets), np.diff(words.target_offsets)
            found += int(((np.minimum(*sides) > 0) & (np.maximum(*sides) <= length)).sum())
        return found

    def words(self, shard: int) -> Words:
        """The pairs of one shard."""
        return Words(*self.shelf.get(_name(shard)))

    def shard(self, shard: int, stems: Stems | None = None) -> tuple[Any, Occurrences]:
        """The pairs of one shard as `Pairs`, the entries of their cells found anew, and where source forms occur.

        Cells are valid until the next shard is asked for. Those without entry have the pair of `stems` of their words.
        """
        if self._found.get("shard") != shard or self._found["stems"] is not stems:
            self._found.clear()
            words, where = self._indexed(shard)
            self._found.update(shard=shard, stems=stems, pairs=self._pairs(shard, words, where, stems), where=where)
        return self._found["pairs"], self._found["where"]

    def _pairs(self, shard: int, words: Words, where: Occurrences, stems: Stems | None) -> Any:
        """With the entries of all cells: those that are kept, or found anew."""
        from isogloss.tasks.align._numba.expect import Pairs

        name = f"cells-{shard}"
        if name in self.shelf:
            return Pairs(*words, words.cell_offsets, *self.shelf.get(name))
        size = int(words.cell_offsets[-1])
        if not self._keeps_cells or not self.shelf.has_room(4 * size):
            return self._with_cells(words, where, self.space("cells", size, np.int32), stems)
        pairs = self._with_cells(words, where, np.empty(size, np.int32), stems)
        self.shelf.put(name, pairs.cells)
        return pairs

    @cached_property
    def _keeps_cells(self) -> bool:
        """Whether a text is short enough, for the memory there is, that entries of its cells are found once."""
        if self.cells is None or self.cells > KEPT_CELLS or self.least > 1:
            return False
        return self.shelf.has_room(12 * self.cells)

    def forget_cells(self) -> None:
        """Let go of entries of cells; who asks for them again has them found anew."""
        for shard in range(len(self.shards)):
            self.shelf.drop(f"cells-{shard}")
        self._found.clear()

    def _indexed(self, shard: int) -> tuple[Words, Occurrences]:
        """The words of a shard and where they occur; those of the shard that follows are fetched meanwhile."""
        coming = self._coming.pop(shard, None)
        found = self._index(shard) if coming is None else coming.result()
        after = (shard + 1) % len(self.shards)
        self._coming.clear()
        there = after != shard and _name(after) in self.shelf  # workers have one shard at a time
        if there and (later := in_background(self._index, after)) is not None:
            self._coming[after] = later
        return found

    def _index(self, shard: int) -> tuple[Words, Occurrences]:
        words = self.words(shard)
        return words, words.occurrences(len(self.source_counts))

    def space(self, name: str, size: int, kind: Any) -> NDArray[Any]:
        """Memory that every shard takes in turn, so that it is asked for once."""
        if name not in self._space or len(self._space[name]) < size:
            self._space.pop(name, None)
            self._space[name] = np.empty(size, kind)
        return self._space[name][:size]

    def _with_cells(
        self, words: Words, where: Occurrences, cells: NDArray[np.int32], stems: Stems | None = None
    ) -> Any:
        from isogloss.tasks.align._numba.expect import Pairs
        from isogloss.tasks.align._numba.lexicon import find_cells, find_some_cells

        offsets = words.cell_offsets
        given = (*where, words.target_ids, words.target_offsets, offsets, self.rows, self.columns)
        if self.least == 1:
            find_cells(*given, max(1, len(self.target_counts)), cells)
        else:
            find_some_cells(*given, self.no_stems if stems is None else stems.classes, cells)
        return Pairs(*words, offsets, cells)

    def pairs_of_classes(
        self, source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]] | None:
        """Pairs of classes of forms that share cells, as rows and columns: the frequent ones, if there is little room.

        None, where the table is whole and says so itself.
        """
        if self.least == 1:
            return None
        n, m = (int(classes.max(initial=-1)) + 1 for classes in (source, target))
        forms = len(self.source_words) + len(self.target_words)
        capacity = None if self.room.classes is None else self.room.classes(forms)
        table = _Table(n, m, capacity=capacity, listed=self.room.listed)

        def of_classes(shard: int) -> Words:
            there = self.words(shard)
            return there._replace(source_ids=source[there.source_ids], target_ids=target[there.target_ids])

        table.fill(len(self.shards), of_classes)
        return table.arrays()

    @property
    def no_stems(self) -> tuple[Any, ...]:
        """Every source form a class of its own, and no pairs of classes."""
        n, m = len(self.source_counts), len(self.target_counts)
        starts = np.arange(n + 1)
        return (
            np.arange(n, dtype=np.int32),
            starts,
            np.zeros_like(starts),
            np.zeros(0, np.int32),
            np.zeros(m, np.int32),
            1,
        )

    def hash(self) -> str:
        """SHA-256 of the words of all pairs, whatever shelf they lie on and however they are cut."""
        shards = map(self.words, range(len(self.shards)))
        return _hash(shards, self.source_words.types, self.target_words.types, self.skipped)

    # --- the whole text at once

    @cached_property
    def pairs(self) -> Any:
        """All pairs as `Pairs`, with the entry of every cell: four bytes a cell."""
        return self._with_cells(self.whole, self.occurrences, np.empty(self.n_cells, np.int32))

    @cached_property
    def occurrences(self) -> Occurrences:
        """Where each source form occurs in the whole text."""
        return self.whole.occurrences(len(self.source_words))

    @cached_property
    def whole(self) -> Words:
        """The words of all pairs."""
        return _joined([self.words(k) for k in range(len(self.shards))])

    @property
    def n_cells(self) -> int:
        return int(self.whole.cell_offsets[-1])

    @property
    def n_source_words(self) -> int:
        """Words of the source side, those of pairs that are passed over left out."""
        return int(self.source_counts.sum())

    def shape(self, pair: int) -> tuple[int, int]:
        """Words of a pair on both sides; (0, 0) when it is skipped."""
        a, b = self.whole.source_offsets, self.whole.target_offsets
        return int(a[pair + 1] - a[pair]), int(b[pair + 1] - b[pair])


def _name(shard: int) -> str:
    return f"words-{shard}"


def _joined(parts: list[Words]) -> Words:
    """Words of consecutive shards as one."""
    if len(parts) == 1:
        return parts[0]
    ids = [np.concatenate([np.zeros(0, np.int32), *(part[side] for part in parts)]) for side in (0, 2)]
    offsets = [
        _starts(np.concatenate([np.zeros(0, np.int64), *(np.diff(part[side]) for part in parts)])) for side in (1, 3)
    ]
    return Words(ids[0], offsets[0], ids[1], offsets[1])


def _hash(shards: Iterable[Words], source: Iterable[str], target: Iterable[str], skipped: NDArray[np.bool_]) -> str:
    digests = [hashlib.sha256() for _ in range(4)]
    for words in shards:
        parts = words.source_ids, np.diff(words.source_offsets), words.target_ids, np.diff(words.target_offsets)
        for digest, part in zip(digests, parts, strict=True):
            digest.update(np.ascontiguousarray(part, part.dtype.newbyteorder("<")).data)
    return data_hash([digest.hexdigest() for digest in digests], list(source), list(target), skipped)


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


class _Side:
    """Forms of one side, numbered in order of first appearance, as the text comes in."""

    def __init__(self, lowercase: bool) -> None:
        self.form = str.lower if lowercase else str
        self.numbers: dict[str, int] = {}
        self.counts = np.zeros(0, np.int64)

    def encode(self, text: Text, skipped: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The form of every token, and lengths of sentences; skipped sentences become empty."""
        from isogloss.tasks.align._numba.lexicon import number_types

        values, lengths = np.ascontiguousarray(text.ids.flat), text.ids.lengths
        if skipped.any():
            values = values[np.repeat(~skipped, lengths)]
            lengths = np.where(skipped, 0, lengths)
        types, numbers, form = text.vocabulary.types, self.numbers, self.form
        mapping = np.full(len(types) or 1, -1, np.int32)
        met = number_types(values, mapping)
        mapping[met] = [numbers.setdefault(form(types[k]), len(numbers)) for k in met.tolist()]
        ids = mapping[values]
        counts = np.bincount(ids, minlength=len(numbers))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        return ids, lengths


class Encoder:
    """Cuts a text that comes in parts into shards; what a `Corpus` is before it has a table."""

    def __init__(self, lowercase: bool, max_length: int, shelf: Shelf, fine: bool) -> None:
        self.max_length, self.shelf, self.fine = max_length, shelf, fine
        self.cut_cells = 0
        self.sides = _Side(lowercase), _Side(lowercase)
        self.shards: list[Shard] = []
        self.skipped: list[NDArray[np.bool_]] = [np.zeros(0, bool)]
        self.waiting: list[tuple[NDArray[Any], ...]] = []  # ids and lengths of both sides, not yet a shard

    @classmethod
    def of(
        cls,
        parts: Iterable[Bitext],
        *,
        lowercase: bool,
        max_length: int,
        shelf: Shelf | None = None,
        fine: bool = False,
    ) -> Encoder:
        """All parts, on a shelf; in `fine` shards, a dozen of a short text too, if there are several workers."""
        encoder = cls(lowercase, max_length, Shelf() if shelf is None else shelf, fine)
        for part in parts:
            encoder.add(part)
        if encoder.waiting:
            encoder._cut(last=True)
        return encoder

    def add(self, bitext: Bitext) -> None:
        lengths = bitext.source.ids.lengths, bitext.target.ids.lengths
        skipped = (lengths[0] == 0) | (lengths[1] == 0)
        skipped |= (lengths[0] > self.max_length) | (lengths[1] > self.max_length)
        self.skipped.append(skipped)
        source, target = (
            side.encode(text, skipped) for side, text in zip(self.sides, (bitext.source, bitext.target), strict=True)
        )
        self.waiting.append((*source, *target))
        if sum(int(part[1] @ part[3]) for part in self.waiting) > SHARD:
            self._cut(last=False)

    def _cut(self, last: bool) -> None:
        """Put what waits on the shelf, shard by shard; unless this is the end, the last of them may still grow."""
        joined = [np.concatenate([part[k] for part in self.waiting]) for k in range(4)]
        starts = [_starts(joined[k]) for k in (1, 3)]
        cells = joined[1] * joined[3]
        limit = max(SHARD // _FINE, min(SHARD, self.cut_cells // _FINE)) if self.fine else SHARD
        ranges = shards(cells, limit=max(1, limit))
        kept = ranges if last else ranges[:-1]
        first = self.shards[-1].stop if self.shards else 0
        for start, stop in kept:
            words = []
            for ids, offsets in ((joined[0], starts[0]), (joined[2], starts[1])):
                words += [ids[offsets[start] : offsets[stop]].copy(), offsets[start : stop + 1] - offsets[start]]
            self.shelf.put(_name(len(self.shards)), *words)
            self.shards.append(Shard(first + start, first + stop))
        done = kept[-1].stop if kept else 0
        self.cut_cells += int(cells[:done].sum())
        at = [int(offsets[done]) for offsets in starts]
        rest = (joined[0][at[0] :], joined[1][done:], joined[2][at[1] :], joined[3][done:])
        self.waiting = [tuple(array.copy() for array in rest)]

    @property
    def all_skipped(self) -> NDArray[np.bool_]:
        """Which pairs are passed over."""
        return np.concatenate(self.skipped)

    @property
    def n_source_words(self) -> int:
        """Words of the source side, those of pairs that are passed over left out."""
        return int(self.sides[0].counts.sum())

    def shard_words(self, shard: int) -> Words:
        """The pairs of one shard."""
        return Words(*self.shelf.get(_name(shard)))

    def words(self) -> Iterator[Words]:
        """The pairs of one shard after the other."""
        return map(self.shard_words, range(len(self.shards)))

    def whole(self) -> Words:
        """The words of all pairs."""
        return _joined(list(self.words()))

    def hash(self) -> str:
        """That of the corpus."""
        return _hash(self.words(), self.sides[0].numbers, self.sides[1].numbers, self.all_skipped)

    def corpus(self, room: Room) -> Corpus:
        """The text that was given, with its table; the numbers of forms are let go."""
        words = [Vocabulary(side.numbers) for side in self.sides]
        for side in self.sides:
            side.numbers = {}
        n, m = (len(side) for side in words)
        table = _Table(
            n, m,
            capacity=None if room.entries is None else room.entries(n + m),
            listed=room.listed,
            wanted=None if room.wanted is None else partial(room.wanted, *words),
        )  # fmt: skip
        table.fill(len(self.shards), self.shard_words)
        return self._with_table(words, *table.arrays(), table.least, room, table.dropped)

    def with_table(self, rows: NDArray[np.int64], columns: NDArray[np.int32]) -> Corpus:
        """The text that was given, with a table that has every pair of words that occurs."""
        words = [Vocabulary(side.numbers) for side in self.sides]
        dropped = np.zeros(len(words[0]), np.int64), np.zeros(len(words[1]), np.int64)
        return self._with_table(words, rows, columns, 1, Room(), dropped)

    def _with_table(
        self,
        words: list[Vocabulary],
        rows: NDArray[np.int64],
        columns: NDArray[np.int32],
        least: int,
        room: Room,
        dropped: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> Corpus:
        return Corpus(
            words[0], words[1], self.sides[0].counts, self.sides[1].counts, rows, columns, self.shards, self.shelf,
            self.all_skipped, self.max_length, least, room, dropped, self.cut_cells,
        )  # fmt: skip


Stay = Callable[[NDArray[np.int64], NDArray[np.int32]], NDArray[np.bool_]]
Wanted = Callable[[Vocabulary, Vocabulary], Stay]


class Room(NamedTuple):
    """What the table of a corpus may take.

    Parameters
    ----------
    entries, classes : callable, optional
        How many entries it may have, given the number of forms on both sides, and how many pairs of classes of forms
        (stems), if entries have to be left out.
    listed : int
        Entries of shards that are merged at a time; the table does not depend on it.
    wanted : callable, optional
        ``wanted(source_words, target_words)`` is a function of rows and columns which says what entries stay, however
        rare they are. It is made when the first have to go.
    """

    entries: Callable[[int], int] | None = None
    classes: Callable[[int], int] | None = None
    listed: int = 1 << 25
    wanted: Wanted | None = None


_BLOCKS = 32
_COUNTED = 1 << 23  # numbers of entries that are added up at a time
_ALWAYS = 255  # the number of cells that stands for entries which stay
_MOST = 254


class _Table:
    """All pairs of forms that share a cell, by source form, in order of first meeting.

    For a range of source forms at a time, the entries of all shards are listed and merged; ranges are as long as memory
    for the lists allows. When there are too many entries, those of the fewest cells go, here and from then on.
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        *,
        capacity: int | None,
        listed: int,
        wanted: Callable[[], Stay] | None = None,
    ) -> None:
        self.n_source, self.n_target = n_source, n_target
        self.capacity, self.listed, self.wanted = capacity, listed, wanted
        self._stay: Stay | None = None
        self.least, self.size = 1, 0
        self.dropped = np.zeros(n_source, np.int64), np.zeros(n_target, np.int64)
        self.parts: list[tuple[int, NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]] = []

    def fill(self, n_shards: int, words: Callable[[int], Words]) -> None:
        """Of the shards of a text, whose words are asked for several times.

        Threads take a shard each where there are many, and otherwise source types of one shard after the other.
        """
        from isogloss.tasks.align._numba.lexicon import blocks_for, count_entries, list_entries

        n, m = self.n_source, max(1, self.n_target)
        blocks = min(_BLOCKS, n_shards) if n_shards >= _BLOCKS // 2 else 1

        def some(block: int, count: int, first: int, last: int, take: Callable[..., None]) -> None:
            by_types = blocks_for(last - first) if count == 1 else 1
            for shard in range(block, n_shards, count):
                there = words(shard)
                where = there.occurrences_of(first, last)
                take(block, shard, by_types, *where, there.target_ids, there.target_offsets, m)

        sizes = np.zeros(n, np.int64)
        for first, last in shards(np.ones(n, np.int64), limit=_COUNTED // blocks):
            counted = np.zeros((blocks, last - first), np.int64)

            def count(block: int, shard: int, *there: Any, counted: NDArray[np.int64] = counted) -> None:
                counted[block] += count_entries(*there)

            run_blocks(some, blocks, first, last, count)
            sizes[first:last] = counted.sum(axis=0)
        for first, last in shards(sizes + n_shards // 2, limit=self.listed):  # rows of each shard take room too
            lists: list[Any] = [None] * n_shards

            def list_(block: int, shard: int, *there: Any, lists: list[Any] = lists) -> None:
                lists[shard] = list_entries(*there)

            run_blocks(some, blocks, first, last, list_)
            self._add(first, *_merged(lists, m))

    def _add(self, first: int, rows: NDArray[np.int64], columns: NDArray[np.int32], cells: NDArray[np.int32]) -> None:
        if self.capacity is None:
            cells = cells[:0]
        self.parts.append((first, rows, columns, np.minimum(cells, _MOST).astype(np.uint8)))
        self.size += len(columns)
        if self.least > 1:
            self._protect(len(self.parts) - 1)
            self._drop(len(self.parts) - 1)
        while self.capacity is not None and self.size > self.capacity and self.least < _MOST:
            self.least += 1
            for part in range(len(self.parts)):
                if self.least == 2:
                    self._protect(part)
                self._drop(part)

    def _protect(self, part: int) -> None:
        """Mark entries that are to stay."""
        if self.wanted is None:
            return
        first, rows, columns, cells = self.parts[part]
        whole = np.zeros(self.n_source + 1, np.int64)
        whole[first : first + len(rows)] = rows
        whole[first + len(rows) :] = rows[-1]
        if self._stay is None:
            self._stay = self.wanted()
        cells[self._stay(whole, columns)] = _ALWAYS

    def _drop(self, part: int) -> None:
        first, rows, columns, cells = self.parts[part]
        keep = cells >= self.least
        kept = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])[rows]
        self.dropped[0][first : first + len(rows) - 1] += np.diff(rows) - np.diff(kept)
        self.dropped[1][:] += np.bincount(columns[~keep], minlength=self.n_target)
        self.parts[part] = first, kept, columns[keep], cells[keep]
        self.size += len(self.parts[part][2]) - len(columns)

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Rows and columns of the whole table."""
        sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(rows) for _, rows, _, _ in self.parts)])
        columns = np.empty(self.size, np.int32)
        at = 0
        while self.parts:  # each goes as it is copied
            part = self.parts.pop(0)[2]
            columns[at : at + len(part)] = part
            at += len(part)
        return _starts(sizes), columns


def _merged(lists: list[tuple[NDArray[Any], ...]], n_targets: int) -> tuple[NDArray[Any], ...]:
    """The entries of some source forms in all shards as one list."""
    from isogloss.tasks.align._numba.lexicon import merge_entries

    if len(lists) == 1:
        return lists[0]
    begins = np.cumsum([0, *(len(part[1]) for part in lists[:-1])])
    rows = np.stack([part[0] + begin for part, begin in zip(lists, begins, strict=True)])
    columns, cells = (np.concatenate([part[k] for part in lists]) for k in (1, 2))
    lists.clear()
    merged: tuple[NDArray[Any], ...] = merge_entries(rows, columns, cells, n_targets)
    return merged
