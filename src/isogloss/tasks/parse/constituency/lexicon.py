"""Words of a latent grammar: what a word says about the states of tags, and what its spelling says if it is rare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.rows import gathered
from isogloss.structures.latent_cfg import LatentGrammar
from isogloss.tasks.parse.constituency.words import shape_of, signature_of

__all__ = ["Lexicon", "SeenWords", "WordCounts"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
RARE = 2
"""Words that occur at most so often tell what unknown words are like."""
OWN, CLASS = 0.5, 5.0
"""What a word's spelling counts beside its own occurrences, and what a wider class of spellings counts beside a
narrower one."""


def classes_of(word: str) -> tuple[str, str]:
    """The classes of spelling that a word belongs to, the narrower one first.

    Examples
    --------
    >>> classes_of("untouchables"), classes_of("1987")
    (('x|les', 'x|s'), ('0|', '0|'))
    """
    ending = word[-1:].lower() if word[-1:].isalpha() and len(word) > 3 else ""
    return signature_of(word), f"{shape_of(word)}|{ending}"


@dataclass(frozen=True, eq=False)
class Lexicon:
    r"""Which words and tags were seen together, and how they are spelt.

    .. math:: \frac{p(w \mid t_x)}{p(w)} = \frac{p(t_x \mid w)}{p(t_x)}, \qquad
        p(t_x \mid w) = \frac{c(t_x, w) + \kappa\, p(t_x \mid class(w))}{c(w) + \kappa}

    where t_x is a state x of a tag t, and p(t_x | class) is estimated from rare words, a narrower class of spellings
    from a wider one in the same way.

    Parameters
    ----------
    words : tuple of str
        As people write them.
    counts : int64[n_words]
        How often each occurs.
    tags, forms : int64[E]
        The tag and the word of each entry, as numbers.

    References
    ----------
    Petrov et al., ACL 2006, section 2.5 (words by their spellings). Our classes of spellings are not those of English.
    """

    words: tuple[str, ...]
    counts: Ints
    tags: Ints
    forms: Ints

    @cached_property
    def _number(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _classes(self) -> tuple[tuple[dict[str, int], ...], Ints]:
        """The classes of both kinds, and int64[n_words, 2]: those of each word."""
        known: tuple[dict[str, int], ...] = ({}, {})
        found = [
            [own.setdefault(name, len(own)) for own, name in zip(known, classes_of(word), strict=True)]
            for word in self.words
        ]
        return known, np.array(found, np.int64).reshape(-1, 2)

    def estimated(self, grammar: LatentGrammar, uses: Array) -> WordCounts:
        """What expected uses of entries, as blocks of states, say about words and classes of spellings."""
        _, members = self._classes
        wide = grammar.sizes[self.tags]
        entry = np.repeat(np.arange(len(self.tags)), wide)
        state = np.repeat(grammar.states[self.tags] - grammar.of_words[:-1], wide) + np.arange(len(entry))
        totals = np.asarray(np.bincount(state, uses, grammar.n_states), np.float64)
        rare = self.counts[self.forms[entry]] <= RARE
        if not rare.any():
            rare[:] = True
        general = np.bincount(state[rare], uses[rare], grammar.n_states)
        chances = np.zeros((1, grammar.n_states)) + general / general.sum()
        for kind in (1, 0):
            size = len(self._classes[0][kind])
            own = members[self.forms[entry], kind]
            seen = np.bincount(own[rare] * grammar.n_states + state[rare], uses[rare], size * grammar.n_states)
            seen = seen.reshape(size, grammar.n_states)
            above = chances[0] if kind == 1 else chances[self._wider]
            chances = (seen + CLASS * above) / (seen.sum(axis=1, keepdims=True) + CLASS)
            if kind == 1:
                wider = chances
        return WordCounts(
            entry, self.forms[entry], state, uses, totals, chances, wider, general / general.sum(), len(self.words)
        )

    @cached_property
    def _wider(self) -> Ints:
        """The wider class of each narrower one."""
        known, members = self._classes
        found = np.zeros(len(known[0]), np.int64)
        found[members[:, 0]] = members[:, 1]
        return found

    def weights(self, grammar: LatentGrammar, uses: Array, totals: Array) -> Array:
        """Weights of entries for `LatentGrammar.estimated`."""
        known = self.estimated(grammar, uses)
        own = known.chances[self._classes[1][known.form, 0], known.state]
        given = (uses + OWN * own) / (self.counts[known.form] + OWN)
        found: Array = given / _safe(known.totals / known.totals.sum())[known.state]
        return found

    def seen(self, words: Sequence[str]) -> SeenWords:
        """Words as numbers, and their classes of spelling."""
        known, members = self._classes
        numbers = np.array([self._number.get(word, -1) for word in words], np.int64)
        classes = np.full((len(words), 2), -1, np.int64)
        classes[numbers >= 0] = members[numbers[numbers >= 0]]
        for row in np.flatnonzero(numbers < 0).tolist():
            classes[row] = [own.get(name, -1) for own, name in zip(known, classes_of(words[row]), strict=True)]
        return SeenWords(numbers, classes)

    def table(self, known: WordCounts, words: SeenWords) -> Array:
        """float64[n_words, n_states]: how well each word goes with each state of a tag; 0 for other symbols."""
        narrow, wide = words.classes.T
        out = np.where(
            (narrow >= 0)[:, None], known.chances[narrow], np.where((wide >= 0)[:, None], known.wider[wide],
                                                                    known.general),
        )  # fmt: skip
        rows = np.flatnonzero(words.numbers >= 0)
        numbers = words.numbers[rows]
        order, bounds = known.by_form
        starts, places = gathered(bounds, numbers)
        here, own = order[places], np.repeat(rows, np.diff(starts))
        out[rows] *= OWN
        out[own, known.state[here]] += known.uses[here]
        out[rows] /= (self.counts[numbers] + OWN)[:, None]
        shares = _safe(known.totals / known.totals.sum())
        return np.where(known.totals > 0, out / shares, 0.0)


class SeenWords(NamedTuple):
    """Words of a text, as a lexicon sees them.

    numbers : int64[n_words]
        −1 for words that it has not.
    classes : int64[n_words, 2]
        The narrower and the wider class of spelling, −1 where no word that it has is of it.
    """

    numbers: Ints
    classes: Ints


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Expected uses of words with states of tags, and what classes of spellings make probable.

    entry, form, state : int64[n]
        The entry of each number of `uses`, its word and its state.
    totals, general : float64[n_states]
        Uses of each state; its probability for a rare word of any spelling.
    chances, wider : float64[n_classes, n_states]
        Its probability for the narrower and the wider classes.
    """

    entry: Ints
    form: Ints
    state: Ints
    uses: Array
    totals: Array
    chances: Array
    wider: Array
    general: Array
    n_words: int

    @cached_property
    def by_form(self) -> tuple[Ints, Ints]:
        """Numbers of `uses` sorted by their words, and where those of each word begin."""
        order = np.argsort(self.form, kind="stable").astype(np.int64)
        return order, np.searchsorted(self.form[order], np.arange(self.n_words + 1)).astype(np.int64)


def _safe(totals: Array) -> Array:
    return np.where(totals > 0, totals, 1.0)
