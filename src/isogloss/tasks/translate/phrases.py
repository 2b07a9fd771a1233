"""Phrase tables from links.

A phrase pair is two contiguous spans of which every word is linked, if at all, into the other span, with at least one
link between them; words without links at the edges are taken in and left out, both. That is how Moses extracts, and the
table is written as Moses reads it.

Memory: occurrences are held a part at a time, each part being the phrases that start with a range of words in
alphabetical order, so that parts follow one another in the order of the table. The text is gone through anew for every
part, which is cheap beside sorting; nothing is written to disk but the table. Between the parts, 4 bytes are kept for
every occurrence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Vocabulary
from isogloss.data.formats import atomic_write
from isogloss.data.formats.files import PathOrName
from isogloss.errors import ParameterError
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.translate.lexicon import _counted, ranks, sure_links, token_positions

__all__ = ["PhraseCounts", "PhrasePair", "PhraseTable", "extract_phrases", "write_phrases"]

_LONGEST = 50
_BLOCK = 2_000_000
_LINES = 50_000

Integers = NDArray[np.int64]


class PhrasePair(NamedTuple):
    """One line of a phrase table; `links` count words from 0 within the phrases."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    source_given_target: float
    source_lexical: float
    target_given_source: float
    target_lexical: float
    links: tuple[tuple[int, int], ...]
    target_count: int
    source_count: int
    pair_count: int


class PhraseCounts(NamedTuple):
    """How much a table holds."""

    pairs: int
    occurrences: int


@dataclass(frozen=True, eq=False)
class PhraseTable:
    """Phrase pairs in the order of the table, as columns; iterate for rows.

    Parameters
    ----------
    source_at, target_at : int64[n]
        Where an occurrence of the pair stands, in ``ids.values`` of each side. It is the first that has the links which
        the pair most often has.
    source_length, target_length : uint8[n]
    scores : float64[n, 4]
        p(source | target), lexical weight of the source, p(target | source), lexical weight of the target.
    counts : int64[n, 3]
        Occurrences of the target phrase, the source phrase, the pair.
    orientations : int32[n, 6]
        How often the pair is monotone, swapped or neither with what is before it, and with what is behind it.
    """

    source_at: Integers
    target_at: Integers
    source_length: NDArray[np.uint8]
    target_length: NDArray[np.uint8]
    scores: NDArray[np.float64]
    counts: Integers
    orientations: NDArray[np.int32]
    _corpus: _Corpus

    def __len__(self) -> int:
        return len(self.source_at)

    def __iter__(self) -> Iterator[PhrasePair]:
        text, bitext = self._corpus.text, self._corpus.bitext
        columns = (self.source_at, self.source_length, self.target_at, self.target_length)
        sentence_start = self._corpus.sentence_start(self.target_at).tolist()
        for k, (i, n_source, j, n_target) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            links = tuple(
                (word - i, sentence_start[k] + int(text.partner[link]) - j)
                for word in range(i, i + n_source)
                for link in range(text.starts[word], text.starts[word + 1])
            )
            source = tuple(bitext.source.vocabulary.types[word] for word in text.source_ids[i : i + n_source].tolist())
            target = tuple(bitext.target.vocabulary.types[word] for word in text.target_ids[j : j + n_target].tolist())
            yield PhrasePair._make((source, target, *self.scores[k].tolist(), links, *self.counts[k].tolist()))

    def lines(self) -> Iterator[bytes]:
        """The table as text, a line for each pair, many lines at a time."""
        from isogloss.tasks.translate._numba.phrases import format_pairs

        starts = self._corpus.sentence_start(self.target_at)
        columns = starts, self.source_at, self.target_at, self.source_length, self.target_length
        for first in range(0, len(self), _LINES):
            rows = slice(first, first + _LINES)
            arguments: list[Any] = [column[rows] for column in (*columns, self.scores, self.counts)]
            yield format_pairs(*[self._corpus.text, *arguments, self._corpus.spelling]).tobytes()


def extract_phrases(
    bitext: Bitext,
    links: Links,
    *,
    max_length: int = 7,
    least_count: int = 1,
    block: int = _BLOCK,
    progress: Progress | None = None,
) -> Iterator[PhraseTable]:
    r"""Extract and score the phrase pairs that agree with the links, part by part of the table.

    A pair of spans :math:`[a, b) \times [c, d)` agrees with links :math:`A` if some link is inside, and
    :math:`i \in [a, b) \Leftrightarrow j \in [c, d)` for every :math:`(i, j) \in A`. Scores are relative frequencies
    among all occurrences, and lexical weights from the links of the same text.

    Parameters
    ----------
    bitext : Bitext
    links : Links
        A row for every pair. Links marked as possible are left out.
    max_length : int
        The most words of a phrase, on either side.
    least_count : int
        Leave out pairs that occur less often; scores of the others stay as they are.
    block : int
        About how many occurrences are held at once, at some 200 bytes each.

    Yields
    ------
    PhraseTable
        In alphabetical order (by code points) of the source phrase, the most frequent target first, and of equally
        frequent ones that which occurs first; the parts follow one another in that order.

    References
    ----------
    Och and Ney, The Alignment Template Approach to Statistical Machine Translation, Computational Linguistics 2004.
    Koehn, Och and Marcu, Statistical Phrase-Based Translation, NAACL 2003, section 3.4: lexical weights. As Moses does,
    we take those of the links that a pair most often has, not the best over all; links weigh in with their probability
    if they have one.

    Examples
    --------
    >>> text = Bitext.of([("ein Haus", "a house"), ("ein altes Haus", "an old house")])
    >>> for part in extract_phrases(text, Links.of([[(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)]])):
    ...     for pair in part:
    ...         if pair.pair_count > 1 or len(pair.source) > 2:
    ...             print(*pair.source, "|", *pair.target, pair.target_given_source)
    Haus | house 1.0
    ein altes Haus | an old house 1.0
    """
    for name, value, most in (
        ("max_length", max_length, _LONGEST),
        ("least_count", least_count, 2**31),
        ("block", block, 2**31 - 1),
    ):
        if not (isinstance(value, int | np.integer) and 1 <= value <= most):
            raise ParameterError(f"extract_phrases: {name} should be a whole number from 1 to {most}, not {value!r}")
    corpus = _Corpus(bitext, sure_links(bitext, links), max_length)
    return corpus.tables(least_count, block, progress or QuietProgress())


def write_phrases(
    bitext: Bitext,
    links: Links,
    path: PathOrName | None,
    *,
    max_length: int = 7,
    least_count: int = 1,
    block: int = _BLOCK,
    progress: Progress | None = None,
) -> PhraseCounts:
    """Write a phrase table as Moses reads it: options as in `extract_phrases`, path as in `atomic_write`.

    A line is ``source ||| target ||| scores ||| links ||| counts``, with the scores and counts of `PhraseTable` in its
    order. A bar inside a word is written ``&#124;``, as Moses wants it.
    """
    pairs = occurrences = 0
    tables = extract_phrases(
        bitext, links, max_length=max_length, least_count=least_count, block=block, progress=progress
    )
    with atomic_write(path) as file:
        for table in tables:
            for lines in table.lines():
                file.write(lines)
            pairs += len(table)
            occurrences += int(table.counts[:, 2].sum())
    return PhraseCounts(pairs, occurrences)


class _Corpus:
    """The text, its links and its lexicon as the kernels want them."""

    def __init__(self, bitext: Bitext, links: Links, max_length: int) -> None:
        from isogloss.tasks.translate._numba.phrases import Linked, reach

        self.bitext, self.max_length = bitext, max_length
        source, target = bitext.source.ids, bitext.target.ids
        source_at, target_at = token_positions(bitext, links)
        steps = np.diff(source_at), np.diff(target_at)
        falls = np.any((steps[0] < 0) | ((steps[0] == 0) & (steps[1] < 0)))
        order = np.lexsort((target_at, source_at)) if falls else slice(None)
        source_at, target_at = source_at[order], target_at[order]
        lexicon, of_link = _counted(bitext, links, 0)
        self.of_link = of_link[order]
        self.from_null = tuple(
            unlinked / max(int(unlinked.sum()), 1) for unlinked in (lexicon.source_unlinked, lexicon.target_unlinked)
        )
        partner = np.ascontiguousarray(links.target[order], np.int32)
        self.text = Linked(
            np.ascontiguousarray(source.offsets, np.int64),
            np.ascontiguousarray(target.offsets, np.int64),
            np.ascontiguousarray(source.values, np.int32),
            np.ascontiguousarray(target.values, np.int32),
            reach(source_at, partner, len(source.values)),
            reach(target_at, np.ascontiguousarray(links.source[order], np.int32), len(target.values)),
            np.searchsorted(source_at, np.arange(len(source.values) + 1)),
            partner,
        )
        self.spelling = (*_spelling(bitext.source.vocabulary), *_spelling(bitext.target.vocabulary))

    def sentence_start(self, target_at: Integers) -> Integers:
        """Where the target sentences start that hold these words."""
        starts: Integers = self.text.target_offsets[self.sentence(target_at)]
        return starts

    def sentence(self, target_at: Integers) -> Integers:
        """The sentence pairs that hold these words of the target side."""
        found: Integers = np.searchsorted(self.text.target_offsets, target_at, "right") - 1
        return found

    def tables(self, least_count: int, block: int, progress: Progress) -> Iterator[PhraseTable]:
        from isogloss.tasks.translate._numba.phrases import count_first_words

        vocabularies = self.bitext.source.vocabulary, self.bitext.target.vocabulary
        rank = [ranks(words) for words in vocabularies]
        first_words = count_first_words(self.text, self.max_length, *map(len, vocabularies))
        parts = [list(_parts(counts, ranked, block)) for counts, ranked in zip(first_words, rank, strict=True)]
        progress.start("phrases", len(parts[0]) + len(parts[1]))
        target_counts = np.empty(int(first_words[0].sum()), np.int32)
        for done, part in enumerate(parts[1], 1):
            self._count_targets(target_counts, rank[1], part)
            progress.update(done, "counting")
        for done, part in enumerate(parts[0], len(parts[1]) + 1):
            yield self._table(target_counts, rank[0], part, least_count)
            progress.update(done, "scoring")
        progress.finish()

    def _occurrences(self, rank: NDArray[np.int32], part: tuple[int, int, int], *, by_target: bool) -> Any:
        from isogloss.tasks.translate._numba.phrases import collect

        return collect(self.text, self.max_length, by_target, rank, *part)

    def _count_targets(
        self, target_counts: NDArray[np.int32], rank: NDArray[np.int32], part: tuple[int, int, int]
    ) -> None:
        """Write, for each occurrence in this part, how often its target phrase occurs in all."""
        from isogloss.tasks.translate._numba.phrases import number_phrases

        number, _, target_at, _, target_length = self._occurrences(rank, part, by_target=True)
        phrase, _ = number_phrases(self.text.target_ids, target_at, target_length)
        target_counts[number] = np.bincount(phrase)[phrase]

    def _table(
        self,
        target_counts: NDArray[np.int32],
        rank: NDArray[np.int32],
        part: tuple[int, int, int],
        least_count: int,
    ) -> PhraseTable:
        from isogloss.tasks.translate._numba.phrases import count_orientations, describe, number_phrases, usual

        number, source_at, target_at, source_length, target_length = self._occurrences(rank, part, by_target=False)
        source_phrase, first = number_phrases(self.text.source_ids, source_at, source_length)
        place = _alphabetical(self.text.source_ids, rank, source_at[first], source_length[first])
        source_phrase = place[source_phrase]
        target_phrase, first = number_phrases(self.text.target_ids, target_at, target_length)
        keys = source_phrase.astype(np.int64) * (len(first) + 1) + target_phrase
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
        stops = np.append(starts[1:], len(keys))
        sentence = self.sentence(target_at)
        sentence_start, groups = self.text.target_offsets[sentence], np.append(starts, len(keys))
        chosen = usual(
            self.text, sentence_start, order, groups, source_at, target_at, source_length, self.max_length
        )  # fmt: skip
        turned = count_orientations(
            self.text, sentence, order, groups, source_at, target_at, source_length, target_length
        )  # fmt: skip
        count = stops - starts
        of_source = np.bincount(source_phrase)[source_phrase[chosen]]
        of_target = target_counts[number[chosen]].astype(np.int64)
        rows = np.lexsort((number[order[starts]], -count, source_phrase[chosen]))
        rows = rows[count[rows] >= least_count]
        chosen, count, of_source, of_target = chosen[rows], count[rows], of_source[rows], of_target[rows]
        columns = source_at[chosen], target_at[chosen], source_length[chosen], target_length[chosen]
        lexical = describe(self.text, sentence_start[chosen], *columns, self.of_link, self.from_null)
        scores = np.column_stack((count / of_target, lexical[:, 0], count / of_source, lexical[:, 1]))
        counts = np.column_stack((of_target, of_source, count)).astype(np.int64)
        return PhraseTable(*columns, scores, counts, turned[rows], self)


def _parts(counts: Integers, rank: NDArray[np.int32], block: int) -> Iterator[tuple[int, int, int]]:
    """Ranges of ranks with about `block` occurrences: (first rank, last rank + 1, occurrences)."""
    by_rank = np.zeros(len(counts), np.int64)
    by_rank[rank] = counts
    ends = np.cumsum(by_rank)
    first, done = 0, 0
    while done < (ends[-1] if len(ends) else 0):
        last = max(int(np.searchsorted(ends, done + block, "right")), first + 1)
        yield first, last, int(ends[last - 1]) - done
        first, done = last, int(ends[last - 1])


def _alphabetical(
    ids: NDArray[np.int32], rank: NDArray[np.int32], at: Integers, length: NDArray[np.uint8]
) -> NDArray[np.int32]:
    """The place of each of these (different) phrases in alphabetical order, word by word."""
    columns = []
    for word in range(int(length.max(initial=0))):
        inside = word < length
        column = np.full(len(at), -1, np.int32)  # a phrase stands before those that go on where it ends
        column[inside] = rank[ids[at[inside] + word]]
        columns.append(column)
    place = np.empty(len(at), np.int32)
    place[np.lexsort(columns[::-1]) if columns else []] = np.arange(len(at), dtype=np.int32)
    return place


def _spelling(words: Vocabulary) -> tuple[NDArray[np.uint8], Integers]:
    """All words as bytes, one after the other, and where each starts."""
    spelt = [word.replace("|", "&#124;").encode("utf-8", "replace") for word in words.types]
    starts = np.zeros(len(spelt) + 1, np.int64)
    np.cumsum([len(word) for word in spelt], out=starts[1:])
    return np.frombuffer(b"".join(spelt), np.uint8), starts
