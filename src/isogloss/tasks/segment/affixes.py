"""Lists of prefixes and suffixes, found in a trie of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from isogloss.tasks.segment.types import WordTypes

__all__ = ["Affixes", "mine_affixes", "reachable"]

Letters = tuple[int, ...]


class Affixes(NamedTuple):
    """Strings of letters, the best first."""

    prefixes: tuple[Letters, ...]
    suffixes: tuple[Letters, ...]


def mine_affixes(types: WordTypes, n_prefixes: int, n_suffixes: int, *, longest: int = 8) -> Affixes:
    """The strings by which most different stems of a word list are completed, at both ends.

    In a trie of all words, a stem is a node from which words go on in more than one way, ending there being one; the
    score of a suffix is the number of stems from which it leads to the end of a word. For prefixes, words are read from
    their ends. Of equal scores the longer string comes first.

    References
    ----------
    Schone and Jurafsky, Knowledge-free induction of morphology using latent semantic analysis, CoNLL 2000; Naradowsky
    and Toutanova, ACL 2011, section 4.

    Examples
    --------
    >>> words = WordTypes.of(["do", "undo", "tie", "untie", "ties", "tied", "load", "loads", "unload", "loaded"])
    >>> found = mine_affixes(words, 1, 1)
    >>> ["".join(words.alphabet[letter] for letter in affix) for affix in (*found.prefixes, *found.suffixes)]
    ['un', 's']
    """
    words = {"".join(map(chr, row)) for row in types.letters}
    suffixes = _completions(words, n_suffixes, longest)
    prefixes = [affix[::-1] for affix in _completions({word[::-1] for word in words}, n_prefixes, longest)]
    return Affixes(*(tuple(tuple(map(ord, affix)) for affix in found) for found in (prefixes, suffixes)))


def _completions(words: Iterable[str], most: int, longest: int) -> list[str]:
    if most == 0:
        return []
    listed = sorted(words)
    ways: Counter[str] = Counter(listed)  # ending here is a way to go on
    nodes = {word[:t] for word in listed for t in range(1, len(word) + 1)}
    ways.update(node[:-1] for node in nodes)
    stems = {node for node in nodes if ways[node] > 1}
    scores: Counter[str] = Counter()
    for word in listed:
        scores.update(word[t:] for t in range(max(1, len(word) - longest), len(word)) if word[:t] in stems)
    return [affix for affix, _ in sorted(scores.items(), key=lambda one: (-one[1], -len(one[0]), one[0]))[:most]]


def reachable(word: Letters, cuts: Iterable[int], affixes: Affixes) -> int:
    """How many of the boundaries of a word are still possible if its affixes have to be listed ones.

    A boundary can be found where a listed suffix or further suffixes follow a stem, or prefixes go before one, that is
    where a listed suffix begins at it and ends at another boundary or the end, or a listed prefix ends at it.
    """
    wanted = sorted(set(cuts))
    borders = [0, *wanted, len(word)]
    prefixes, suffixes = set(affixes.prefixes), set(affixes.suffixes)
    found = 0
    for at, cut in enumerate(wanted, 1):
        before, after = word[borders[at - 1] : cut], word[cut : borders[at + 1]]
        found += before in prefixes or after in suffixes
    return found
