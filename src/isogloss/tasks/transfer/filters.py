"""What of links, pairs and projected edges is worth using: each a function that changes nothing it is given.

References
----------
Ganchev, Gillenwater and Taskar, ACL 2009, section 5: (a) links between words of incompatible tags, of which nouns and
verbs matter most; (b) pairs whose root is no verb on one of the sides; (c) sentences of subtitles that end in an
ellipsis or have several commas; (d) punctuation. Rasooli and Collins, EMNLP 2015: sentences that are densely projected.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Bitext, Text
from isogloss.data.links import Links
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError
from isogloss.tasks.transfer.edges import ProjectedEdges, density_of

__all__ = [
    "NOUN_VERB", "compatible_links", "dense_sentences", "plain_sentences", "punctuation", "verbal_roots",
    "without_words",
]  # fmt: skip

Mask = NDArray[np.bool_]
NOUN_VERB = frozenset((a, b) for n in ("NOUN", "PROPN") for v in ("VERB",) for a, b in ((n, v), (v, n)))
"""Pairs of tags, source first, whose words should not be linked."""


def compatible_links(
    links: Links,
    bitext: Bitext,
    source: Treebank,
    target: Treebank,
    forbidden: Iterable[tuple[str, str]] = NOUN_VERB,
    *,
    column: str = "upos",
) -> Links:
    """The links between words whose tags go together.

    Parameters
    ----------
    links : Links
    bitext : Bitext
    source, target : Treebank
        Both sides with tags, sentence by sentence the words of the bitext; they may lack sentences for empty lines.
    forbidden : pairs of str
        Tags, source first, that do not go together; a noun and a verb if nothing is said.
    column : str
        Of both treebanks.

    Examples
    --------
    >>> bitext = Bitext.of([("a walk", "er geht")])
    >>> source = Treebank.of([[("a", "DET"), ("walk", "NOUN")]])
    >>> target = Treebank.of([[("er", "PRON"), ("geht", "VERB")]])
    >>> str(compatible_links(Links.of([[(0, 0), (1, 1)]]), bitext, source, target)[0])
    '0-0'
    """
    from isogloss.tasks.tag.projection import check_links, first_words

    check_links(bitext, links)
    first = first_words(bitext, source), first_words(bitext.swapped(), target)
    names = sorted({tag for pair in forbidden for tag in pair})
    table = np.zeros((len(names) + 1, len(names) + 1), np.bool_)  # the last stands for all others
    numbers = Vocabulary(names)
    for a, b in forbidden:
        table[numbers.index_of(a), numbers.index_of(b)] = True
    tags = []
    for treebank, begin, place in zip((source, target), first, (links.source, links.target), strict=True):
        ids, vocabulary = treebank.columns[column]
        code = numbers.encode(vocabulary) if names and len(vocabulary) else np.full(len(vocabulary), -1, np.int32)
        tags.append(code[ids[begin[links.pair] + place]] if len(place) else np.zeros(0, np.int32))
    return links.keep(~table[tags[0], tags[1]])


def verbal_roots(
    links: Links,
    bitext: Bitext,
    source: Treebank,
    target: Treebank,
    verbs: Iterable[str] = ("VERB", "AUX"),
    *,
    column: str = "upos",
) -> Mask:
    """bool[n_pairs]: pairs in which the root of the source tree is a verb, and linked with a verb of the target."""
    from isogloss.tasks.tag.projection import check_links, first_words

    check_links(bitext, links)
    first = first_words(bitext, source), first_words(bitext.swapped(), target)
    known = set(verbs)
    are_verbs = []
    for treebank in (source, target):
        ids, vocabulary = treebank.columns[column]
        are_verbs.append(np.array([name in known for name in vocabulary], np.bool_)[ids] if len(ids) else ids > 0)
    pair = links.pair
    at_source, at_target = first[0][pair] + links.source, first[1][pair] + links.target
    out = np.zeros(len(bitext), np.bool_)
    if len(pair):
        good = (source.heads[at_source] == 0) & are_verbs[0][at_source] & are_verbs[1][at_target]
        if links.possible is not None:
            good &= ~links.possible
        out[pair[good]] = True
    return out


def dense_sentences(
    edges: ProjectedEdges, *, share: float = 0.8, run: int | None = 7, threshold: float = 0.0
) -> Mask:  # fmt: skip
    """bool[n_sentences]: sentences of which much was projected.

    Those in which at least `share` of the words have a head, or some `run` neighbouring words all have (Rasooli and
    Collins: 0.8 and 7); None for no such run.
    """
    if not 0 <= share <= 1 or (run is not None and run < 1):
        raise ParameterError(f"dense_sentences: share from 0 to 1 and run of 1 or more are needed, not {share}, {run}")
    found = density_of(edges.heads(threshold), edges.offsets)
    dense = found.share >= share
    return dense if run is None else dense | (found.run >= run)


def punctuation(text: Treebank) -> Mask:
    """bool[n_words]: words with the tag PUNCT, or of nothing but punctuation where there is no tag.

    Examples
    --------
    >>> punctuation(Treebank.of([[("Hi", "INTJ"), ("!", "_"), ("%", "SYM"), (".", "PUNCT")]])).tolist()
    [False, True, False, True]
    """
    (ids, tags), (forms, words) = text.columns["upos"], text.columns["form"]
    if not len(ids):
        return np.zeros(0, np.bool_)
    marks = np.array([all(unicodedata.category(c).startswith("P") for c in word) for word in words], np.bool_)
    tagged = np.array([name == "PUNCT" for name in tags], np.bool_)
    nothing = np.array([name == "_" for name in tags], np.bool_)
    return np.asarray(tagged[ids] | (nothing[ids] & marks[forms]))


def without_words(edges: ProjectedEdges, words: Mask) -> ProjectedEdges:
    """The edges that lead neither to nor from some words, such as `punctuation`.

    Examples
    --------
    >>> edges = ProjectedEdges.of([0, 3], [0, 1, 2], [2, 0, 2])
    >>> without_words(edges, np.array([False, False, True])).word.tolist()
    [0, 1]
    """
    if words.shape != (edges.n_words,):
        raise ParameterError(f"without_words: {edges.n_words} flags are needed, one a word, not {list(words.shape)}")
    above = edges.offsets[edges.sentence] + np.maximum(edges.head - 1, 0)
    return edges.keep(~words[edges.word] & ~(words[above] & (edges.head > 0)))


def plain_sentences(text: Text, *, commas: int = 1) -> Mask:
    """bool[n_sentences]: sentences that do not end in an ellipsis and have no more than so many commas.

    Examples
    --------
    >>> plain_sentences(Text.of(["so it is .", "well ...", "a , b , c .", "and …"])).tolist()
    [True, False, False, False]
    """
    types = text.vocabulary.types
    comma = np.array([word == "," for word in types], np.bool_)
    dots = np.array([word.endswith(("...", "…")) for word in types], np.bool_)
    ids, offsets = text.ids.flat, text.ids.offsets - text.ids.offsets[0]
    if not len(ids):
        return np.ones(len(text), np.bool_)
    before = np.concatenate([[0], np.cumsum(comma[ids])])
    ends = dots[ids[np.maximum(offsets[1:] - 1, 0)]] & (np.diff(offsets) > 0)
    return np.asarray((before[offsets[1:]] - before[offsets[:-1]] <= commas) & ~ends)
