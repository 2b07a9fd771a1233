"""Text and bitexts, split at their contractions, with the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Bitext, Text
from isogloss.data.contractions.table import Contractions
from isogloss.data.links import Links
from isogloss.data.ragged import Ragged
from isogloss.data.rows import gathered
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import LinksError

__all__ = ["SplitBitext", "bitext_of_treebanks", "split_bitext", "split_text", "split_words"]

Ids = NDArray[np.int64]


def split_words(text: Text, contractions: Contractions | None) -> tuple[Text, Ids]:
    """The words of a text, split, and the surface word that each is of.

    Returns
    -------
    words : Text
        Sentence by sentence. Lines and places in them are those of the surface text, and not kept.
    surface : int64[n_words]
        The number of the surface word, among all of the text.

    Examples
    --------
    >>> words, surface = split_words(Text.of(["Am Haus", "zum Tor"]), Contractions.of_language("de"))
    >>> words[0], words[1], surface.tolist()
    (('An', 'dem', 'Haus'), ('zu', 'dem', 'Tor'), [0, 0, 1, 2, 2, 3])
    """
    bare = replace(text, spans=None, lines=None)
    if contractions is None:
        return bare, np.arange(text.n_words)
    chosen, parts = contractions.chosen(text)
    numbers = {word: number for number, word in enumerate(text.vocabulary.types)}
    n_types = len(numbers)
    rows = [[number] for number in range(n_types)]  # first each type as it is, then as it is split
    rows += [
        [number] if of_type is None else [numbers.setdefault(part, len(numbers)) for part in of_type]
        for number, of_type in enumerate(parts)
    ]
    pieces = Ragged.of(rows)
    row_of = text.ids.flat.astype(np.int64) + n_types * chosen
    starts, places = gathered(pieces.offsets, row_of)
    ids, vocabulary = _renumbered(pieces.values[places], list(numbers))
    offsets = starts[text.ids.offsets - text.ids.offsets[0]]
    surface = np.repeat(np.arange(text.n_words), np.diff(starts))
    return replace(bare, ids=Ragged(ids, offsets), vocabulary=vocabulary), surface


def _renumbered(ids: NDArray[np.int32], types: list[str]) -> tuple[NDArray[np.int32], Vocabulary]:
    """The same words numbered in order of first appearance, without types that do not occur."""
    used, first, at = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(used), np.int32)
    place[order] = np.arange(len(used), dtype=np.int32)
    return place[at.reshape(-1)], Vocabulary([types[number] for number in used[order].tolist()])


def split_text(text: Text, contractions: Contractions | None) -> Treebank:
    """A text as a treebank of its words, whose multiword tokens are what was split; see `Treebank.from_text`.

    Examples
    --------
    >>> trees = split_text(Text.of(["Am Haus"]), Contractions.of_language("de"))
    >>> print(trees.to_bytes().decode().replace("\\t", " "), end="")
    # sent_id = 1
    # text = Am Haus
    1-2 Am _ _ _ _ _ _ _ _
    1 An _ _ _ _ _ _ _ _
    2 dem _ _ _ _ _ _ _ _
    3 Haus _ _ _ _ _ _ _ _
    <BLANKLINE>
    """
    if contractions is None:
        return Treebank.from_text(text)
    return Treebank.from_split(text, *split_words(text, contractions))


@dataclass(frozen=True, eq=False)
class SplitBitext:
    """A bitext whose words were split, and of which surface word each is a part.

    Parameters
    ----------
    bitext : Bitext
        The split words.
    surface : Bitext
        The words as they were.
    source_words, target_words : Ragged of int64
        For each split word, the place of its surface word in the sentence, from 0.
    """

    bitext: Bitext
    surface: Bitext
    source_words: Ragged
    target_words: Ragged

    def split_links(self, links: Links) -> Links:
        """Links of surface words, carried to all parts of both words with their probabilities.

        Examples
        --------
        >>> split = split_bitext(Bitext.of([("am Haus", "at the house")]), Contractions.of_language("de"))
        >>> split.split_links(Links.of([{(0, 0), (1, 2)}]))[0].links == {(0, 0), (1, 0), (2, 2)}
        True
        """
        self._check(links, self.surface)
        pair = links.pair
        source_first, source_size = _places(self.source_words, self.surface.source, pair, links.source)
        target_first, target_size = _places(self.target_words, self.surface.target, pair, links.target)
        sizes = source_size * target_size
        link = np.repeat(np.arange(len(sizes)), sizes)
        within = np.arange(len(link)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        source = source_first[link] + within // target_size[link]
        target = target_first[link] + within % target_size[link]
        return _gathered(links, pair[link], source, target, link, self.bitext)

    def surface_links(self, links: Links) -> Links:
        """Links of split words, carried back: surface words are linked where some parts of both are.

        The probability is that of the most probable of these links, and a link is possible only if all of them are.

        Examples
        --------
        >>> split = split_bitext(Bitext.of([("am Haus", "at the house")]), Contractions.of_language("de"))
        >>> split.surface_links(Links.of([{(0, 0), (1, 1), (2, 2)}]))[0].links == {(0, 0), (0, 1), (1, 2)}
        True
        """
        self._check(links, self.bitext)
        pair = links.pair
        source = self.source_words.flat[_starts(self.bitext.source)[pair] + links.source]
        target = self.target_words.flat[_starts(self.bitext.target)[pair] + links.target]
        return _gathered(links, pair, source, target, np.arange(len(pair)), self.surface)

    def _check(self, links: Links, bitext: Bitext) -> None:
        """Refuse links of other sentences."""
        if len(links) != len(bitext):
            raise LinksError(f"links of {len(links)} pairs were given for {len(bitext)}. Give those of the same bitext")
        pair = links.pair
        for side, text, words in (("source", bitext.source, links.source), ("target", bitext.target, links.target)):
            outside = (words < 0) | (words >= text.ids.lengths[pair])
            if outside.any():
                at = int(outside.argmax())
                raise LinksError(
                    f"pair {int(pair[at]) + 1}: a link has {side} word {int(words[at])}, but there are "
                    f"{int(text.ids.lengths[pair[at]])}, counted from 0. Are they links of the split words, or of the "
                    "words as they were?"
                )


def _starts(text: Text) -> Ids:
    """Where sentences start, from 0."""
    starts: Ids = text.ids.offsets[:-1] - text.ids.offsets[0]
    return starts


def _places(words: Ragged, surface: Text, pair: Ids, places: NDArray[np.int32]) -> tuple[Ids, Ids]:
    """The first part, in its sentence, of surface words, and how many parts each has."""
    starts = _starts(surface)
    of_word = words.flat + np.repeat(starts, words.lengths)
    sizes = np.bincount(of_word, minlength=surface.n_words)
    first = np.cumsum(sizes) - sizes
    wanted = starts[pair] + places
    return first[wanted] - words.offsets[pair], sizes[wanted]


def _gathered(links: Links, pair: Ids, source: Ids, target: Ids, of: Ids, bitext: Bitext) -> Links:
    """Links in order without doubles; link k comes from link ``of[k]`` of `links`."""
    order = np.lexsort((target, source, pair))
    pair, source, target, of = pair[order], source[order], target[order], of[order]
    fresh = np.ones(len(pair), bool)
    fresh[1:] = (np.diff(pair) != 0) | (np.diff(source) != 0) | (np.diff(target) != 0)
    first = np.flatnonzero(fresh)
    offsets = np.zeros(len(links) + 1, np.int64)
    np.cumsum(np.bincount(pair[first], minlength=len(links)), out=offsets[1:])
    probability, possible = links.probability, links.possible  # without links, empty as they are
    if len(first):
        probability = None if probability is None else np.fmax.reduceat(probability[of], first)
        possible = None if possible is None else np.logical_and.reduceat(possible[of], first)
    return Links(offsets, source[first].astype(np.int32), target[first].astype(np.int32), probability, possible, bitext)


def split_bitext(bitext: Bitext, source: Contractions | None = None, target: Contractions | None = None) -> SplitBitext:
    """Split the words of one side of a bitext, or of both.

    Parameters
    ----------
    bitext : Bitext
    source, target : Contractions, optional
        Those of each side; a side without them stays as it is.

    Examples
    --------
    >>> split = split_bitext(Bitext.of([("am Haus", "at the house")]), Contractions.of_language("de"))
    >>> split.bitext[0], split.source_words[0].tolist()
    ((('an', 'dem', 'Haus'), ('at', 'the', 'house')), [0, 0, 1])
    """
    sides = []
    for text, contractions in ((bitext.source, source), (bitext.target, target)):
        words, surface = split_words(text, contractions)
        within = surface - np.repeat(_starts(text), words.ids.lengths)
        sides.append((words, Ragged(within, words.ids.offsets - words.ids.offsets[0])))
    (source_text, source_words), (target_text, target_words) = sides
    return SplitBitext(replace(bitext, source=source_text, target=target_text), bitext, source_words, target_words)


def bitext_of_treebanks(source: Treebank, target: Treebank) -> SplitBitext:
    """Two treebanks, sentence by sentence translations, as words and as the tokens that are written.

    Examples
    --------
    >>> german = split_text(Text.of(["Am Haus"]), Contractions.of_language("de"))
    >>> pairs = bitext_of_treebanks(german, Treebank.from_text(Text.of(["At the house"])))
    >>> pairs.surface[0][0], pairs.bitext[0][0], pairs.source_words[0].tolist()
    (('Am', 'Haus'), ('An', 'dem', 'Haus'), [0, 0, 1])
    """
    texts, places = [], []
    for trees in (source, target):
        tokens, within = _tokens(trees)
        texts.append((trees.text(), tokens))
        places.append(Ragged(within, trees.offsets))
    words, surface = (Bitext(*side) for side in zip(*texts, strict=True))
    return SplitBitext(words, surface, *places)


def _tokens(trees: Treebank) -> tuple[Text, Ids]:
    """The tokens of a treebank, and the place of each word's among those of its sentence."""
    (ids, vocabulary), ranges = trees.columns["form"], trees.ranges
    fresh = np.ones(trees.n_words, np.bool_)
    numbers = {word: number for number, word in enumerate(vocabulary)}
    forms = ids.astype(np.int32)
    for first, stop, form in ranges.rows():
        fresh[first + 1 : stop] = False
        forms[first] = numbers.setdefault(form, len(numbers))
    before = np.concatenate([[0], np.cumsum(fresh)]).astype(np.int64)
    offsets = before[trees.offsets]
    within = before[1:] - 1 - np.repeat(offsets[:-1], trees.lengths)
    return Text(Ragged(forms[fresh], offsets), Vocabulary(numbers), trees.name), within
