"""Which words of a treebank a grammar sees: their tags, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isogloss.data.rows import gathered
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.tasks.parse.induction.grammar import TagText

__all__ = ["Material", "marks_of", "without_marks"]

Integers = NDArray[np.int64]

PENN_MARKS = frozenset((",", ".", ":", "``", "''", '"', "-LRB-", "-RRB-", "(", ")", "HYPH", "NFP"))
"""Tags of punctuation marks in treebanks that have Penn's tags alone. Signs of currency are words."""


def marks_of(treebank: Treebank) -> NDArray[np.bool_]:
    """bool[n_words]: the punctuation marks, by UPOS or, where a word has none, by Penn's tags."""
    ids, vocabulary = treebank.columns["upos"]
    upos = np.array([tag == "PUNCT" for tag in vocabulary], np.bool_)
    bare = np.array([tag == "_" for tag in vocabulary], np.bool_)
    fine_ids, fine = treebank.columns["xpos"]
    xpos = np.array([tag in PENN_MARKS for tag in fine], np.bool_)
    if not len(ids):
        return np.zeros(0, np.bool_)
    return np.asarray(upos[ids] | (bare[ids] & xpos[fine_ids]))


@dataclass(frozen=True, eq=False)
class Material:
    """The words of a treebank that a grammar sees.

    Parameters
    ----------
    text : TagText
    sentences : int64[n]
        The numbers of the sentences in the treebank.
    words : int64[n_words]
        The number of each word among all of the treebank.
    """

    text: TagText
    sentences: Integers
    words: Integers

    @classmethod
    def of(
        cls, treebank: Treebank, column: str, tags: Vocabulary, *, punctuation: bool, longest: int | None = None
    ) -> Material:
        """Words without marks, unless `punctuation`, of sentences that then have 1 to `longest` words.

        Tags that are not among `tags` have the number ``len(tags)``.
        """
        kept = np.ones(treebank.n_words, np.bool_) if punctuation else ~marks_of(treebank)
        lengths = np.add.reduceat(np.append(kept, False), treebank.offsets[:-1]) if len(treebank) else np.zeros(0)
        lengths = np.where(treebank.lengths > 0, lengths, 0).astype(np.int64)
        chosen = lengths > 0 if longest is None else (lengths > 0) & (lengths <= longest)
        words = np.flatnonzero(kept & np.repeat(chosen, treebank.lengths))
        ids, vocabulary = treebank.columns[column]
        numbers = np.array([tags.index_of(tag) for tag in vocabulary], np.int64)
        numbers = np.where(numbers < 0, len(tags), numbers)
        offsets = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
        found = numbers[ids[words]] if len(words) else np.zeros(0, np.int64)
        return cls(TagText(found, offsets, len(tags) + 1), np.flatnonzero(chosen), words)

    def take(self, rows: NDArray[np.bool_]) -> Material:
        """Some of the sentences, by a mask."""
        chosen = np.flatnonzero(rows)
        offsets, places = gathered(self.text.offsets, chosen)
        text = TagText(self.text.tags[places], offsets, self.text.n_tags)
        return Material(text, self.sentences[chosen], self.words[places])

    def places(self, treebank: Treebank) -> Integers:
        """int64[n_words of the treebank]: from 1, the number of each word among those of its sentence that the grammar
        sees; 0 for words that it does not see."""
        found = np.zeros(treebank.n_words, np.int64)
        starts = np.repeat(self.text.offsets[:-1], np.diff(self.text.offsets))
        found[self.words] = np.arange(len(self.words)) - starts + 1
        return found

    def heads(self, treebank: Treebank) -> Integers:
        """int64[n_words]: the heads of the treebank, counted among the words that the grammar sees.

        0 for the root; −1 where the treebank has none, and where it is a word that the grammar does not see.
        """
        given = treebank.heads[self.words].astype(np.int64)
        first = np.repeat(treebank.offsets[self.sentences], np.diff(self.text.offsets))
        found = self.places(treebank)[first + np.maximum(given, 1) - 1] if len(given) else given
        return np.where(given > 0, np.where(found > 0, found, -1), given)

    def within(self, treebank: Treebank) -> Integers:
        """int64[n_words]: the number of each word within its sentence, from 0."""
        return self.words - np.repeat(treebank.offsets[self.sentences], np.diff(self.text.offsets))


def without_marks(treebank: Treebank, heads: NDArray[np.int32]) -> NDArray[np.int32]:
    """Heads in which none is a punctuation mark: what hangs on a mark hangs on the mark's head, and so on up.

    Marks keep their heads. In a sentence of several roots, as arise below a mark that is the root, the first stays and
    the others hang on it.
    """
    marks, found = marks_of(treebank), heads.copy()
    for s in range(len(treebank)):
        begin, end = treebank.offsets[s : s + 2]
        own, skipped = found[begin:end], marks[begin:end]
        for _ in range(end - begin):
            wrong = (own > 0) & skipped[np.maximum(own, 1) - 1] & ~skipped
            if not wrong.any():
                break
            own[wrong] = own[own[wrong] - 1]
        roots = np.flatnonzero((own == 0) & ~skipped)
        own[roots[1:]] = roots[0] + 1 if len(roots) else 0
    return found
