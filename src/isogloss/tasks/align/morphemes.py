"""Texts cut into morphemes, and links of morphemes as links of their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Ragged, Text, Vocabulary
from isogloss.data.segmentation import Segmentation

__all__ = ["CutText", "Cutter", "averaged", "cut_text", "links_of_words"]

_BITS = 15
"""Words of a sentence are numbered in so many bits: no side has more than `MOST_WORDS`."""


class Cutter(Protocol):
    """What cuts words: a `Segmenter`, or anything that predicts as it does."""

    def predict(self, text: Text) -> Segmentation: ...


class CutText(NamedTuple):
    """A text of morphemes, a sentence a row."""

    text: Text
    words: NDArray[np.int32]
    """int32[n_morphemes]: the word of its sentence that each morpheme is of."""

    def morphemes(self, sentence: int, word: int) -> tuple[str, ...]:
        """Those of one word."""
        start, stop = self.text.ids.offsets[sentence : sentence + 2]
        own = np.flatnonzero(self.words[start:stop] == word).tolist()
        tokens = self.text.tokens(sentence)
        return tuple(tokens[at] for at in own)


def cut_text(
    text: Text,
    cutter: Cutter | None,
    keep: NDArray[np.bool_] | None = None,
    *,
    may_cut: Callable[[list[str]], NDArray[np.bool_]] | None = None,
) -> CutText:
    """The words of a text as morphemes.

    Parameters
    ----------
    text : Text
    cutter : Cutter, optional
        Without it, each word is one morpheme.
    keep : bool[n_sentences], optional
        Other rows are empty.
    may_cut : callable, optional
        Which of some words are cut, if not all: bool[n_words].

    Examples
    --------
    >>> class Halves:
    ...     def predict(self, text):
    ...         return Segmentation.at(text, [(w[:2], w[2:]) for s in range(len(text)) for w in text.tokens(s)])
    >>> cut = cut_text(
    ...     Text.of(["walk so fast", "", "walk"]), Halves(), may_cut=lambda words: np.array([w != "so" for w in words])
    ... )
    >>> cut.text[0], cut.words.tolist(), cut.morphemes(2, 0)
    (('wa', 'lk', 'so', 'fa', 'st'), [0, 0, 1, 2, 2, 0, 0], ('wa', 'lk'))
    """
    if keep is not None and not keep.all():
        lengths = np.where(keep, text.ids.lengths, 0)
        flat = text.ids.flat[np.repeat(keep, text.ids.lengths)]
        text = Text(Ragged(flat, _starts(lengths)), text.vocabulary, text.name)
    lengths, ids = text.ids.lengths, text.ids.flat
    position = np.arange(len(ids)) - np.repeat(_starts(lengths)[:-1], lengths)
    if cutter is None:
        return CutText(Text(Ragged(ids, _starts(lengths)), text.vocabulary, text.name), position.astype(np.int32))
    types, number = np.unique(ids, return_inverse=True)
    words = [text.vocabulary[word] for word in types.tolist()]
    cuts: dict[str, Sequence[str]] = {word: (word,) for word in words}
    if may_cut is not None:
        words = [word for word, is_cut in zip(words, may_cut(words).tolist(), strict=True) if is_cut]
    if words:
        cuts |= dict(cutter.predict(Text.of([[word] for word in words])).words())
    numbers: dict[str, int] = {}
    pieces = Ragged.of([[numbers.setdefault(piece, len(numbers)) for piece in own if piece] for own in cuts.values()])
    rows = pieces.take(number.ravel())
    made = Ragged(rows.flat, rows.offsets[_starts(lengths)])
    sizes = rows.lengths
    return CutText(Text(made, Vocabulary(numbers), text.name), np.repeat(position, sizes).astype(np.int32))


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def links_of_words(links: Links, source: CutText, target: CutText, bitext: Bitext | None = None) -> Links:
    """Links of morphemes as links of their words, each as probable as its morphemes' links are together, up to 1.

    Examples
    --------
    >>> halves = CutText(Text.of(["wa lk fa st"]), np.array([0, 0, 1, 1], np.int32))
    >>> whole = CutText(Text.of(["gehe rasch"]), np.array([0, 1], np.int32))
    >>> found = links_of_words(Links.above([[[0.25, 0], [0.5, 0], [0.125, 0.75], [0, 0.75]]], 0), halves, whole)
    >>> found[0].probability
    {(0, 0): 0.75, (1, 0): 0.125, (1, 1): 1.0}
    """
    assert links.probability is not None
    row = links.pair
    words = [
        side.words[side.text.ids.offsets[row] + own] for side, own in ((source, links.source), (target, links.target))
    ]
    return _gathered([replace(links, source=words[0], target=words[1])], [np.ones(len(links))], bitext)


def averaged(words: Links, morphemes: Links, weight: NDArray[np.float64], bitext: Bitext | None = None) -> Links:
    """The average of two lists of links of the same words; `weight` is how much the second counts in each pair, 0 to 1.

    Examples
    --------
    >>> averaged(Links.above([[[1.0, 0.5]]], 0), Links.above([[[0.5, 0]]], 0), np.array([0.25]))[0].probability
    {(0, 0): 0.875, (0, 1): 0.375}
    """
    return _gathered([words, morphemes], [1.0 - weight, weight], bitext)


def _gathered(parts: Sequence[Links], weights: Sequence[NDArray[np.float64]], bitext: Bitext | None) -> Links:
    """Links of several lists, each once, with the weighted sum of their probabilities."""
    keys, chances = [], []
    for links, weight in zip(parts, weights, strict=True):
        assert links.probability is not None
        row = links.pair
        keys.append((row << 2 * _BITS) | (links.source.astype(np.int64) << _BITS) | links.target)
        chances.append(links.probability * weight[row])
    found, number = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.bincount(number.ravel(), np.concatenate(chances), len(found))
    counts = np.bincount(found >> 2 * _BITS, minlength=len(parts[0]))
    mask = (1 << _BITS) - 1
    return Links(
        _starts(counts), ((found >> _BITS) & mask).astype(np.int32), (found & mask).astype(np.int32),
        np.minimum(total, 1.0).astype(np.float32), None, bitext,
    )  # fmt: skip
