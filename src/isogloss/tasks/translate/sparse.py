r"""Sparse features of translations: indicators that add up over the steps of a derivation.

A phrase pair has features that are the same wherever it is used: which pair it is, which target phrase, its words, one
by one and in linked pairs, how long and how likely it is, the tags of both sides, and how its words are linked (its
*constellation*). Reordering has features of the tags of the words between
which it jumps, and of two phrases that swap. With the weights fixed, what a pair's features come to is one number, and
that of a jump or a swap is looked up: the decoder takes both as it takes any score (`Learnt`).

Tags of a phrase are those that it most often has in the training text, so that they do not depend on where it stands;
those of a word of the source likewise. Without tags, classes of words that stand between the same words take their
place (`isogloss.learners.word_classes`).

References
----------
Liang, Bouchard-Côté, Klein and Taskar, COLING-ACL 2006: phrases, parts of speech, constellations, reordering by parts
of speech.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.rows import gathered
from isogloss.errors import ModelError, ParameterError
from isogloss.features import KEYS, Axis, Index, Parts, Role, Sparse, Templates
from isogloss.layout import Layout, Numbers, check
from isogloss.tasks.translate.search import Sentences
from isogloss.tasks.translate.table import TranslationTable

__all__ = ["LAYOUT", "MOST_TAGS", "Learnt", "PhraseTags", "Reordering", "phrase_parts", "phrase_templates"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_TAGS = 500
"""So that those of seven words fit into one number."""
WORDS_OF_PHRASES = ("source & target", "target", "likelihood", "lengths", "words.number", "linked.pair")
TAGS_OF_PHRASES = ("source_tags & target_tags", "target_tags")
LINKS_OF_PHRASES = ("links", "links & source_tags")
SIDE = 7
"""Words of a phrase at most, as kernels of the table have it, which take long to import."""
TOGETHER = 1024
"""Phrase pairs whose features are listed together."""
BINS = np.log([1.0001, 2, 4, 10, 30, 100, 1000])
"""Where bins of −log p begin."""
JUMPS = ("distance", "distance & to.tag", "distance & from.tag & to.tag")
SWAPS = ("lengths", "passed_tags & moved_tags")
DISTANCES = (-6, -3, -1, 0, 1, 2, 4, 7)
"""Where bins of jumps begin."""

LAYOUT: Layout = {
    "pairs": Numbers("float32", "pairs"),
    "tags": Numbers("int16", "source words", least=0, below=MOST_TAGS),
    "keys": KEYS,
    "weights": Numbers("float64", "features"),
}
"""Arrays of what was learnt of sparse features."""


def phrase_templates(features: str) -> Templates:
    """What phrase pairs are seen by: "phrases", "pos" (these and tags) or "all" (these and constellations)."""
    known = {
        "phrases": WORDS_OF_PHRASES,
        "pos": WORDS_OF_PHRASES + TAGS_OF_PHRASES,
        "all": WORDS_OF_PHRASES + TAGS_OF_PHRASES + LINKS_OF_PHRASES,
    }
    if features not in known:
        raise ParameterError(f"features should be one of {', '.join(known)}, not {features!r}")
    return Templates(known[features], kind="phrases")


@dataclass(frozen=True, eq=False)
class PhraseTags:
    """The tags that phrases of a text most often have, and those of its words.

    Parameters
    ----------
    codes : int64[n]
        Codes of phrases (`isogloss.tasks.translate._numba.sparse.phrase_codes`), ascending.
    patterns : int64[n]
        The tags of each as one number.
    words : int64[n_words]
        The tag of each word, that of unknown words where it never occurs.
    n_tags : int
        One more stands for unknown words.
    """

    codes: Integers
    patterns: Integers
    words: Integers
    n_tags: int

    @classmethod
    def of(cls, ids: Integers, offsets: Integers, tags: Integers, n_words: int, n_tags: int, longest: int) -> Self:
        """Count the tags of a text, one a token, for phrases of up to `longest` words; ties go to the first tag."""
        from isogloss.tasks.translate._numba.sparse import gram_codes

        if n_tags >= MOST_TAGS:
            raise ParameterError(f"there are {n_tags} different tags, and {MOST_TAGS - 1} at most can be told apart")
        found = []
        codes, patterns = np.empty(len(ids), np.int64), np.empty(len(ids), np.int64)
        for length in range(1, longest + 1):
            gram_codes(offsets, ids, tags, n_tags + 2, length, codes, patterns)
            found.append(_most_frequent(codes[codes >= 0], patterns[codes >= 0]))
        words = np.full(n_words, n_tags, np.int64)
        once, tag = _most_frequent(np.asarray(ids, np.int64), np.asarray(tags, np.int64))
        words[once] = tag
        every = [np.concatenate(column) for column in zip(*found, strict=True)]
        order = np.argsort(every[0], kind="stable")
        return cls(every[0][order], every[1][order], words, n_tags)

    @property
    def base(self) -> int:
        """What the numbers of tags are multiplied with, one word after the other."""
        return self.n_tags + 2

    def of_phrases(self, codes: Integers) -> Integers:
        """int64[n]: the tags of phrases as one number each; −1 of phrases that do not occur in the text."""
        if not len(self.codes):
            return np.full(len(codes), -1, np.int64)
        at = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[at] == codes, self.patterns[at], -1)


def _most_frequent(keys: Integers, values: Integers) -> tuple[Integers, Integers]:
    """Different keys, ascending, and the value that each has most often, the least of equals."""
    order = np.lexsort((values, keys))
    keys, values = keys[order], values[order]
    if not len(keys):
        return keys, values
    starts = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])))
    counts = np.diff(np.append(starts, len(keys)))
    best = np.lexsort((values[starts], -counts, keys[starts]))
    first = np.flatnonzero(np.append(True, keys[starts][best][1:] != keys[starts][best][:-1]))
    return keys[starts][best][first], values[starts][best][first]


def phrase_parts(
    table: TranslationTable, pairs: Integers, source: PhraseTags | None = None, target: PhraseTags | None = None
) -> Parts:
    """Phrase pairs of a table by their numbers, as parts with codes of what is known of them."""
    from isogloss.tasks.translate._numba.sparse import phrase_codes

    arrays = table.arrays
    of_source, of_target = np.empty(table.n_phrases, np.int64), np.empty(len(table), np.int64)
    phrase_codes(arrays["source_starts"], arrays["source_words"], of_source)
    phrase_codes(arrays["target_starts"], arrays["target_words"], of_target)
    phrase = np.searchsorted(arrays["pair_starts"], pairs, side="right") - 1
    lengths = np.diff(arrays["source_starts"])[phrase], np.diff(arrays["target_starts"])[pairs]
    kinds = arrays["kinds"][arrays["constellations"][pairs]]
    columns = {
        "source": of_source[phrase],
        "target": of_target[pairs],
        "links": kinds,
        "lengths": lengths[0] * (SIDE + 1) + lengths[1],
        "likelihood": _binned(arrays["scores"][pairs]),
    }
    if source is not None and target is not None:
        columns["source_tags"] = source.of_phrases(columns["source"])
        columns["target_tags"] = target.of_phrases(columns["target"])
    roles = {"words": _target_words(arrays, pairs), "linked": _linked_words(arrays, phrase, pairs, kinds)}
    offsets = np.append(np.arange(0, len(pairs), TOGETHER), len(pairs))  # pieces of work, where others have sentences
    return Parts(len(pairs), offsets, roles, columns)


def _binned(scores: NDArray[np.float32]) -> Integers:
    """One number for the probabilities of a pair given its source and given its target, each by its size."""
    each = [np.searchsorted(BINS, -scores[:, k], side="right") for k in (0, 2)]
    return np.asarray(each[0] * (len(BINS) + 1) + each[1], np.int64)


def _target_words(arrays: Mapping[str, NDArray[Any]], pairs: Integers) -> Role:
    """The words of target phrases, each by itself."""
    starts, places = gathered(arrays["target_starts"], pairs)
    axis = Axis([0, len(places)], number=arrays["target_words"][places].astype(np.int64))
    return Role(axis, starts[:-1], starts[1:])


def _linked_words(arrays: Mapping[str, NDArray[Any]], phrase: Integers, pairs: Integers, kinds: Integers) -> Role:
    """The linked words inside pairs, two by two."""
    from isogloss.tasks.translate._numba.sparse import linked_words

    starts, codes = np.empty(len(pairs) + 1, np.int64), np.empty(0, np.int64)
    sides = [arrays[f"{side}_{name}"] for side in ("source", "target") for name in ("starts", "words")]
    given: list[Any] = [pairs, phrase, *sides, kinds, SIDE, starts]
    linked_words(*[*given, codes])
    codes = np.empty(int(starts[-1]), np.int64)
    linked_words(*[*given, codes])
    return Role(Axis([0, len(codes)], pair=codes), starts[:-1], starts[1:])


@dataclass(frozen=True, eq=False)
class Reordering:
    """Features of jumps and of phrases that swap, by the tags of words of the source.

    Parameters
    ----------
    tags : int64[n_words] or int16[n_words]
        The tag of each word of a table's source side; `n_tags` for words without any.
    n_tags : int
    swapping : bool
        True for a decoder that only swaps neighbouring phrases: there are features of swaps besides those of jumps.
    """

    tags: NDArray[Any]
    n_tags: int
    swapping: bool

    def matrices(self, sentences: Sentences, table: TranslationTable, index: Index) -> tuple[Sparse, Sparse]:
        """Features of all jumps and of all swaps of some sentences, laid out as the decoder has them."""
        of_jumps = JUMP_TEMPLATES.matrix(self._jumps(sentences, table), index)
        parts, places, n_cells = self._swaps(sentences, table)
        rows = SWAP_TEMPLATES.matrix(parts, index)
        sizes = np.zeros(n_cells, np.int64)
        sizes[places] = np.diff(rows.indptr)
        return of_jumps, Sparse(np.concatenate([[0], np.cumsum(sizes)]), rows.indices, rows.n_indicators)

    def index(self, sentences: Sentences, table: TranslationTable) -> Index:
        """The features of some sentences."""
        keys = [
            JUMP_TEMPLATES.index(self._jumps(sentences, table)).keys,
            SWAP_TEMPLATES.index(self._swaps(sentences, table)[0]).keys,
        ]
        return Index(np.unique(np.concatenate(keys)))

    def _tagged(self, sentences: Sentences, table: TranslationTable) -> Axis:
        text = sentences.text
        offsets = text.ids.offsets - text.ids.offsets[0]
        numbers = table.source.encode(text.vocabulary)[text.ids.flat] if text.n_words else text.ids.flat
        tags = np.append(np.asarray(self.tags, np.int64), self.n_tags)[numbers]  # −1 is the last
        return Axis(offsets, tag=tags)

    def _jumps(self, sentences: Sentences, table: TranslationTable) -> Parts:
        axis, lengths, starts = self._tagged(sentences, table), sentences.lengths, sentences.jump_starts
        sizes = np.diff(starts)
        width = np.repeat(lengths, sizes)
        cell = np.arange(int(starts[-1])) - np.repeat(starts[:-1], sizes)
        first = np.repeat(axis.offsets[:-1], sizes)
        after, to = cell // np.maximum(width, 1), cell % np.maximum(width, 1)
        away = after != to
        roles = {
            "from": Role(axis, np.where(away & (after < width), first + after, -1)),
            "to": Role(axis, np.where(away, first + to, -1)),
        }
        distance = np.searchsorted(np.array(DISTANCES), to - after, side="right")
        return Parts(len(cell), starts, roles, {"distance": distance})

    def _swaps(self, sentences: Sentences, table: TranslationTable) -> tuple[Parts, Integers, int]:
        """Swaps that fit into their sentences, their cells, and how many cells there are."""
        longest, n = table.longest, sentences.lengths
        starts = sentences.swap_starts(longest) if self.swapping else np.zeros(len(n) + 1, np.int64)
        axis = self._tagged(sentences, table)
        sizes = np.diff(starts)
        cell = np.arange(int(starts[-1])) - np.repeat(starts[:-1], sizes)
        moved, rest = cell % longest + 1, cell // longest
        passed, gap = rest % longest + 1, rest // longest
        fits = gap + passed + moved <= np.repeat(n, sizes)
        first = (np.repeat(axis.offsets[:-1], sizes) + gap)[fits]
        passed, moved = passed[fits], moved[fits]
        tags = axis.attributes["tag"]
        columns = {
            "lengths": passed * (longest + 1) + moved,
            "passed_tags": _pattern(tags, first, passed, self.n_tags + 2),
            "moved_tags": _pattern(tags, first + passed, moved, self.n_tags + 2),
        }
        each = np.bincount(np.repeat(np.arange(len(n)), sizes)[fits], minlength=len(n))
        offsets = np.concatenate([[0], np.cumsum(each)]).astype(np.int64)
        return Parts(len(first), offsets, columns=columns), np.flatnonzero(fits), len(cell)


JUMP_TEMPLATES, SWAP_TEMPLATES = Templates(JUMPS, kind="jumps"), Templates(SWAPS, kind="swaps")


def _pattern(tags: Integers, first: Integers, lengths: Integers, base: int) -> Integers:
    """The tags of spans as one number each."""
    out, power = np.zeros(len(first), np.int64), 1
    for k in range(int(lengths.max(initial=0))):
        inside = np.flatnonzero(lengths > k)
        out[inside] += (tags[first[inside] + k] + 1) * power
        power *= base
    return out


@dataclass(frozen=True, eq=False)
class Learnt:
    """What sparse features come to under weights that are fixed: a number for each phrase pair, weights of reordering.

    Parameters
    ----------
    pairs : float32[n_pairs]
        The sum of the weights of each phrase pair's features.
    reordering : Reordering or None
    index : Index
        Numbers of the features of reordering.
    weights : float64[n_features]
        Their weights.
    """

    pairs: NDArray[np.float32]
    reordering: Reordering | None
    index: Index
    weights: Array

    def options(self, sentences: Sentences) -> Array:
        """float64[n_options]: what the features of each option of some sentences add up to."""
        known = sentences.pairs >= 0
        out = np.zeros(len(known))
        out[known] = self.pairs[sentences.pairs[known]]
        return out

    def moves(self, sentences: Sentences, table: TranslationTable) -> tuple[Array, Array]:
        """What the features of all jumps and all swaps of some sentences add up to; no swaps where phrases jump."""
        if self.reordering is None:
            return np.zeros(int(sentences.jump_starts[-1])), np.zeros(0)
        jumps, swaps = self.reordering.matrices(sentences, table, self.index)
        return jumps.scores(self.weights), swaps.scores(self.weights)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        own = self.reordering
        tags = np.zeros(0, np.int16) if own is None else np.asarray(own.tags, np.int16)
        return {"pairs": self.pairs, "tags": tags, "keys": self.index.keys, "weights": self.weights}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], table: TranslationTable, n_tags: int, swapping: bool
    ) -> Self:
        """The inverse of `to_arrays`; arrays are checked."""
        n_words = len(arrays["tags"])
        found = check(arrays, LAYOUT, "the sparse features", {"pairs": len(table), "source words": n_words})
        if n_words not in (0, len(table.source)) or found["tags"].max(initial=0) > n_tags:
            raise ModelError("the sparse features: the tags of source words do not fit. Copy the model again")
        reordering = Reordering(found["tags"], n_tags, swapping) if n_words else None
        return cls(found["pairs"], reordering, Index(found["keys"]), found["weights"])

    @property
    def n_tags(self) -> int:
        """How many tags there are, unknown words aside."""
        return 0 if self.reordering is None else self.reordering.n_tags
