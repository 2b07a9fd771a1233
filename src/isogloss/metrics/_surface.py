"""Words of two treebanks of the same text, paired by the characters that they cover.

As in the evaluation of the CoNLL 2018 shared task (Zeman et al. 2018, section 4): words that are tokens by themselves
are pairs if they cover the same characters. The words of a multiword token all cover the whole token, so that where
there is one on either side, the words of both sides that it reaches are compared by their forms, in small letters, and
those of a longest common subsequence are pairs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.errors import TreebankError

__all__ = ["Covered", "covered", "paired_words"]

Ids = NDArray[np.int64]

_SHOWN = 20


@dataclass(frozen=True)
class Covered:
    """The characters of a treebank without white space, and those that each word covers.

    Parameters
    ----------
    characters : str
    start, stop : list of int
        By word; the words of a multiword token cover what it does.
    several : list of bool
        Whether a word is one of several of its token.
    forms : list of str
        In small letters.
    sentences : int64[n_sentences + 1]
        The character that each sentence starts with, and the number of all.
    """

    characters: str
    start: list[int]
    stop: list[int]
    several: list[bool]
    forms: list[str]
    sentences: Ids

    def __len__(self) -> int:
        return len(self.start)

    def reaches(self, word: int, end: int) -> bool:
        """Whether a word is of a stretch that ends at a character: a token must start before it, other words stop."""
        if word >= len(self):
            return False
        return self.start[word] < end if self.several[word] else self.stop[word] <= end


def covered(treebank: Treebank) -> Covered:
    """Which characters the words of a treebank cover."""
    ids, vocabulary = treebank.columns["form"]
    bare = [_without_spaces(form) for form in vocabulary]
    small = [form.lower() for form in vocabulary]
    numbers = ids.tolist()
    tokens = {first: (stop, _without_spaces(form)) for first, stop, form in treebank.ranges.rows()}
    pieces: list[str] = []
    start, stop, several = [], [], []
    word = at = 0
    while word < len(numbers):
        behind, text = tokens.get(word, (word + 1, bare[numbers[word]]))
        pieces.append(text)
        size = behind - word
        start += [at] * size
        stop += [at + len(text)] * size
        several += [size > 1] * size
        word, at = behind, at + len(text)
    sentences = np.array([*start, at], np.int64)[treebank.offsets]
    return Covered("".join(pieces), start, stop, several, [small[number] for number in numbers], sentences)


def _without_spaces(form: str) -> str:
    return "".join(letter for letter in form if not (letter.isspace() or unicodedata.category(letter) == "Zs"))


def paired_words(predicted: Treebank, gold: Treebank) -> tuple[Ids, Ids, Covered, Covered]:
    """The pairs of words, predicted and gold: int64[n_pairs] each, in order; and what the words of both cover.

    Examples
    --------
    >>> from isogloss.data import Text
    >>> from isogloss.data.contractions import Contractions, split_text
    >>> text = Text.of(["am Haus im Tal"])
    >>> ours, theirs = (split_text(text, Contractions(rules)) for rules in ({"am": "an dem"}, {"im": "in dem"}))
    >>> [found.tolist() for found in paired_words(ours, theirs)[:2]]
    [[2, 4], [1, 4]]
    """
    ours, theirs = covered(predicted), covered(gold)
    if ours.characters != theirs.characters:
        raise _different(predicted, gold, ours, theirs)
    pairs = np.array(list(_pairs(theirs, ours)), np.int64).reshape(-1, 2)
    return pairs[:, 1], pairs[:, 0], ours, theirs


def _pairs(gold: Covered, system: Covered) -> Iterator[tuple[int, int]]:
    """The pairs (gold, system), from left to right."""
    g = s = 0
    while g < len(gold) and s < len(system):
        if gold.several[g] or system.several[s]:
            first, (g, s) = _stretch(gold, system, g, s)
            common = _common_words(gold.forms[first[0] : g], system.forms[first[1] : s])
            yield from ((first[0] + i, first[1] + j) for i, j in common)
            continue
        here, there = (gold.start[g], gold.stop[g]), (system.start[s], system.stop[s])
        if here == there:
            yield g, s
        advance_gold, advance_system = here == there or here[0] <= there[0], here == there or here[0] > there[0]
        g, s = g + advance_gold, s + advance_system


def _stretch(gold: Covered, system: Covered, g: int, s: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The words of both sides that the multiword token at `g` or `s` reaches: the first two, and those behind the last.

    It is widened by every other multiword token that begins in it. A word of the other side that began before the token
    is left behind.
    """
    sides, at = (gold, system), [g, s]
    own = 0 if gold.several[g] else 1
    other = 1 - own
    end = sides[own].stop[at[own]]
    if not sides[other].several[at[other]] and sides[other].start[at[other]] < sides[own].start[at[own]]:
        at[other] += 1
    first = (at[0], at[1])
    while gold.reaches(at[0], end) or system.reaches(at[1], end):
        following = [
            side.start[word] if word < len(side) else len(side.characters) + 1
            for side, word in zip(sides, at, strict=True)
        ]
        chosen = 0 if following[0] <= following[1] else 1
        if sides[chosen].several[at[chosen]]:
            end = max(end, sides[chosen].stop[at[chosen]])
        at[chosen] += 1
    return first, (at[0], at[1])


def _common_words(gold: Sequence[str], system: Sequence[str]) -> Iterator[tuple[int, int]]:
    """A longest common subsequence; of several, the one whose words are used as soon as they meet."""
    n, m = len(gold), len(system)
    longest = np.zeros((n + 1, m + 1), np.int64)  # of what is left from a word of each
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            with_both = longest[i + 1, j + 1] + 1 if gold[i] == system[j] else 0
            longest[i, j] = max(with_both, longest[i + 1, j], longest[i, j + 1])
    i = j = 0
    while i < n and j < m:
        if gold[i] == system[j]:
            yield i, j
            i, j = i + 1, j + 1
        elif longest[i, j] == longest[i + 1, j]:
            i += 1
        else:
            j += 1


def _different(predicted: Treebank, gold: Treebank, ours: Covered, theirs: Covered) -> TreebankError:
    """The error of two texts: where they part."""
    both = zip(ours.characters, theirs.characters, strict=False)
    shorter = min(len(ours.characters), len(theirs.characters))
    at = next((place for place, (mine, other) in enumerate(both) if mine != other), shorter)
    sentence = int(np.clip(np.searchsorted(theirs.sentences, at, side="right") - 1, 0, max(len(gold) - 1, 0)))
    place = f"{gold.label_of(sentence)} (number {sentence + 1})" if len(gold) else gold.name
    start = max(int(theirs.sentences[sentence]), at - _SHOWN // 2) if len(gold) else 0
    parts = [found.characters[start : at + _SHOWN] for found in (ours, theirs)]
    said = [repr(part) if part else "nothing" for part in parts]
    return TreebankError(
        f"{place}: without spaces, {predicted.name} goes on with {said[0]} where {gold.name} has {said[1]}. Words "
        "may differ, but not the text: give the surface words of multiword tokens (1-2 della), and the same sentences "
        "in the same order"
    )
