"""A probabilistic lexicon from linked words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Text, Vocabulary
from isogloss.errors import LinksError, ParameterError

__all__ = ["NULL", "Entry", "Lexicon", "lexicon_from_links"]

NULL = "NULL"
"""What stands for the missing word where a table lists words without links."""


class Entry(NamedTuple):
    """A word and its translation."""

    source: str
    target: str
    target_given_source: float
    source_given_target: float
    expected_count: float


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Word pairs with their counts and probabilities, as columns; iterate for rows.

    Rows are ordered by source word (in the order of Unicode), the most probable translation first.

    Parameters
    ----------
    source_words, target_words : Vocabulary
    source, target : int32[n_rows]
        Word numbers.
    count : float64[n_rows]
        How often the two are linked; expected, if links have probabilities.
    target_given_source, source_given_target : float64[n_rows]
    source_unlinked, target_unlinked : int64[n_types]
        For each word, how many of its occurrences have no link.
    source_null, target_null : float64[n_types]
        p(null | word) for each word.

    Examples
    --------
    >>> text = Bitext.of([("das Haus", "the house"), ("das Buch", "the book")])
    >>> lexicon = lexicon_from_links(text, Links.of([[(0, 0), (1, 1)], [(0, 0)]]))
    >>> for entry in lexicon:
    ...     print(*entry)
    Haus house 1.0 1.0 1.0
    das the 1.0 1.0 2.0
    >>> lexicon.translations("Haus"), lexicon.null_share("Buch")
    ([('house', 1.0)], 1.0)
    """

    source_words: Vocabulary
    target_words: Vocabulary
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    count: NDArray[np.float64]
    target_given_source: NDArray[np.float64]
    source_given_target: NDArray[np.float64]
    source_unlinked: NDArray[np.int64]
    target_unlinked: NDArray[np.int64]
    source_null: NDArray[np.float64]
    target_null: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[Entry]:
        source_words, target_words = self.source_words.types, self.target_words.types
        step = 100_000  # few numbers at a time are Python objects
        for start in range(0, len(self), step):
            rows = slice(start, start + step)
            columns = (self.source, self.target, self.target_given_source, self.source_given_target, self.count)
            for i, j, forward, backward, count in zip(*(column[rows].tolist() for column in columns), strict=True):
                yield Entry(source_words[i], target_words[j], forward, backward, count)

    def translations(self, word: str) -> list[tuple[str, float]]:
        """The translations of a source word with their probabilities, best first; none if the word is not there."""
        first, last = self._rows.get(self.source_words.index_of(word), (0, 0))
        words = [self.target_words.types[number] for number in self.target[first:last].tolist()]
        return list(zip(words, self.target_given_source[first:last].tolist(), strict=True))

    def null_share(self, word: str) -> float:
        """p(null | word) of a source word: how often it has no link. 0 for a word that is not there."""
        number = self.source_words.index_of(word)
        return float(self.source_null[number]) if number >= 0 else 0.0

    def unlinked(self) -> Iterator[Entry]:
        """Rows for source words that are sometimes without a link: the word, `NULL`, p(null | word), p(word | null)."""
        total = max(int(self.source_unlinked.sum()), 1)
        columns = self.source_null.tolist(), self.source_unlinked.tolist()
        for word, share, count in zip(self.source_words, *columns, strict=True):
            if count:
                yield Entry(word, NULL, share, count / total, count)

    @cached_property
    def _rows(self) -> dict[int, tuple[int, int]]:
        """First and last row of each source word."""
        starts = _starts(self.source)
        edges = [*starts.tolist(), len(self.source)]
        return dict(zip(self.source[starts].tolist(), pairwise(edges), strict=True))


def lexicon_from_links(bitext: Bitext, links: Links, *, least_count: float = 0.0) -> Lexicon:
    r"""Count which words are linked to which, and turn counts into probabilities both ways.

    .. math:: p(t \mid s) = \frac{c(s, t)}{c(s, \text{null}) + \sum_{t'} c(s, t')}

    and the same with source and target exchanged. A link counts 1, or its probability if links have one; a word without
    links counts 1 for null. A word with two links is counted for both.

    Parameters
    ----------
    bitext : Bitext
    links : Links
        A row for every pair. Links marked as possible are left out.
    least_count : float
        Leave out pairs that are counted less than this; the probabilities of the others stay as they are.

    References
    ----------
    Koehn, Och and Marcu, Statistical Phrase-Based Translation, NAACL 2003, section 3.4. We differ: links may be
    weighted by their probability.
    """
    if not least_count >= 0:
        raise ParameterError(f"lexicon_from_links: least_count should be 0 or more, not {least_count!r}")
    return _counted(bitext, sure_links(bitext, links), least_count)[0]


def sure_links(bitext: Bitext, links: Links) -> Links:
    """The links without those that are only possible, once they are known to fit the text."""
    if len(links) != len(bitext):
        raise LinksError(
            f"there are links for {len(links)} pairs, but {bitext.source.name} has {len(bitext)}: "
            "line k of the links speaks of pair k"
        )
    if links.possible is not None:
        links = links.keep(~links.possible)
    pair = links.pair
    outside = (links.source >= bitext.source.ids.lengths[pair]) | (links.target >= bitext.target.ids.lengths[pair])
    outside |= (links.source < 0) | (links.target < 0)
    if outside.any():
        at = int(outside.argmax())
        raise LinksError(
            f"{bitext.source.name}, line {bitext.line_of(int(pair[at]))}: link {links.source[at]}-{links.target[at]} "
            "is outside the sentence. Are these the links of this text, source first, counted from 0?"
        )
    return links


def _counted(bitext: Bitext, links: Links, least_count: float) -> tuple[Lexicon, NDArray[np.float64]]:
    """The lexicon and, for every link, p(target | source) and p(source | target) of its words: float64[n_links, 2]."""
    source_at, target_at = token_positions(bitext, links)
    source, target = bitext.source.ids.values[source_at], bitext.target.ids.values[target_at]
    n_source, n_target = len(bitext.source.vocabulary), len(bitext.target.vocabulary)
    keys = source.astype(np.int64) * max(n_target, 1) + target
    order = np.argsort(keys, kind="stable")  # stable: the sums do not depend on how the machine sorts
    starts = _starts(keys[order])
    weight = np.ones(len(keys)) if links.probability is None else np.nan_to_num(links.probability.astype(float), nan=1)
    count = np.add.reduceat(weight[order], starts) if len(starts) else np.zeros(0)
    row_source, row_target = source[order[starts]], target[order[starts]]
    unlinked = [
        np.bincount(unlinked_words(text, at), minlength=n_types)
        for text, at, n_types in ((bitext.source, source_at, n_source), (bitext.target, target_at, n_target))
    ]
    totals = [
        np.bincount(words, count, minlength=n_types) + null
        for words, n_types, null in ((row_source, n_source, unlinked[0]), (row_target, n_target, unlinked[1]))
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        forward, backward = count / totals[0][row_source], count / totals[1][row_target]
        shares = [np.nan_to_num(null / total) for null, total in zip(unlinked, totals, strict=True)]
    of_link = np.empty((len(keys), 2))
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(keys))))
    of_link[order] = np.column_stack((forward[group], backward[group]))
    rows = _in_reading_order(bitext.source.vocabulary, bitext.target.vocabulary, row_source, row_target, forward)
    rows = rows[(count[rows] >= least_count) & (count[rows] > 0)]
    lexicon = Lexicon(
        bitext.source.vocabulary,
        bitext.target.vocabulary,
        row_source[rows],
        row_target[rows],
        count[rows],
        forward[rows],
        backward[rows],
        unlinked[0],
        unlinked[1],
        shares[0],
        shares[1],
    )
    return lexicon, of_link


def token_positions(bitext: Bitext, links: Links) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where in ``ids.values`` of each side the two words of every link are: int64[n_links] each."""
    counts = np.diff(links.offsets)
    source_at = np.repeat(bitext.source.ids.offsets[:-1], counts) + links.source
    target_at = np.repeat(bitext.target.ids.offsets[:-1], counts) + links.target
    return source_at, target_at


def unlinked_words(text: Text, linked: NDArray[np.int64]) -> NDArray[np.int32]:
    """The word numbers of the tokens that no link touches."""
    free = np.ones(len(text.ids.values), bool)
    free[linked] = False
    first, last = text.ids.offsets[0], text.ids.offsets[-1]  # a part of a text shares the array of the whole
    words: NDArray[np.int32] = text.ids.values[first:last][free[first:last]]
    return words


def _starts(values: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.int64]:
    """Where each run of equal values starts."""
    return np.flatnonzero(np.concatenate([np.ones(min(len(values), 1), bool), values[1:] != values[:-1]]))


def ranks(words: Vocabulary) -> NDArray[np.int32]:
    """The place of each word type in alphabetical order (by code points): int32[n_types]."""
    order = sorted(range(len(words)), key=words.types.__getitem__)
    rank = np.empty(len(words), np.int32)
    rank[order] = np.arange(len(words), dtype=np.int32)
    return rank


def _in_reading_order(
    source_words: Vocabulary,
    target_words: Vocabulary,
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    probability: NDArray[np.float64],
) -> NDArray[np.int64]:
    return np.lexsort((ranks(target_words)[target], -probability, ranks(source_words)[source]))
