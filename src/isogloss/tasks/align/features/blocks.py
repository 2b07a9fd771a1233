r"""Features of blocks, terminals that link one word to several neighbours: what the words have to do with each other.

A block has the mean of the features of its links, an indicator for its length, and statistics of its several words:
how often they stand together, :math:`\log(1 + c) / \log(1 + N)`, and their mutual information

.. math:: \frac{1}{-(k - 1) \log p(w_1 \dots w_k)} \log \frac{p(w_1 \dots w_k)}{\prod_i p(w_i)},

with add-one counts, 0 where they were not seen together twice. An indicator tells its *shape*: its words, those outside
the most frequent ones of their language replaced by X, such as ``[in X of|X]``.

References
----------
Haghighi, Blitzer, DeNero and Klein, Better Word Alignments with Supervised ITG Models, ACL 2009, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Vocabulary
from isogloss.errors import ParameterError
from isogloss.layout import COUNTS, Layout, Numbers, Strings, check, collect
from isogloss.store import prefixed, unprefixed
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.features.base import Floats, PairFeatures, PartFeatures, starts_of

__all__ = ["LONGEST", "Phrases", "Spans", "block_features"]

LONGEST = 4
"""Words of the longest block that statistics are kept for."""

_FREQUENT = 25  # words of each language that shapes keep
_SHAPES = 100  # shapes of each side, by frequency, that have indicators
_LAYOUT: Layout = {
    "keys": Numbers("uint64", "n", order="strict"),
    "counts": Numbers("int32", "n", least=0),
    "tokens": Numbers("int64", "types", least=0, below=COUNTS),
    "frequent": Strings("frequent", distinct=True),
    "shapes": Numbers("int64", "shapes", least=1),
}


@dataclass(frozen=True, eq=False)
class Spans:
    """Statistics of spans of two to four words of one language.

    Parameters
    ----------
    keys, counts : uint64[n_spans], int32[n_spans]
        Numbers of spans that occur at least twice, in ascending order, and how often they do.
    tokens : int64[n_types]
        How often each word form occurs.
    frequent : Vocabulary
        The words that shapes keep.
    shapes : int64[n_shapes]
        The most frequent shapes, by frequency.
    """

    keys: NDArray[np.uint64]
    counts: NDArray[np.int32]
    tokens: NDArray[np.int64]
    frequent: Vocabulary
    shapes: NDArray[np.int64]

    @classmethod
    def of(cls, words: Vocabulary, ids: NDArray[np.int32], offsets: NDArray[np.int64], frequent: list[str]) -> Spans:
        """Count the spans of a text; `frequent` are its most frequent words."""
        keys, counts = np.unique(_keys(ids, offsets), return_counts=True)
        again = (counts > 1) & (keys > 0)
        kept = Vocabulary(frequent)
        shapes, often = np.unique(_shapes(kept.encode(words)[ids] + 1, offsets), return_counts=True)
        order = np.argsort(-often[shapes > 0], kind="stable")[:_SHAPES]
        tokens = np.bincount(ids, minlength=len(words)).astype(np.int64)
        return cls(keys[again], counts[again].astype(np.int32), tokens, kept, shapes[shapes > 0][order])

    def statistics(self, numbers: NDArray[np.int32], offsets: NDArray[np.int64], own: NDArray[np.bool_]) -> Floats:
        """Share of occurrences and mutual information of the spans from each token on: float32[n_tokens, 3, 2].

        `numbers` are of the tokens' forms in the statistics; `own` says which tokens stand in the text they are of, and
        are not to count themselves.
        """
        keys = _keys(numbers, offsets)
        seen = np.zeros(keys.shape, np.int64)
        if len(self.keys):
            at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            seen = np.where(self.keys[at] == keys, self.counts[at], 0) - own[:, None]
        seen = np.maximum(0, seen)
        total = float(self.tokens.sum() + 1)
        alone = np.log((np.append(self.tokens, 0)[numbers] - own + 1.0) / total)
        out = np.zeros((*keys.shape, 2), np.float32)
        apart = alone.copy()
        for k in range(keys.shape[1]):
            apart[: max(0, len(apart) - k - 1)] += alone[
                k + 1 :
            ]  # past the end of a sentence this is noise, and not used
            together = np.log((seen[:, k] + 1.0) / total)
            information = (together - apart) / np.maximum(1e-9, -(k + 1.0) * together)
            out[:, k, 0] = np.log1p(seen[:, k]) / np.log(total)
            out[:, k, 1] = np.where(seen[:, k] > 0, np.clip(information, 0.0, 1.0), 0.0)
        return out

    def ranks(self, codes: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """Which of the frequent shapes the spans from each token on have, -1 for none: int32[n_tokens, 3]."""
        found = _shapes(codes, offsets)
        if not len(self.shapes):
            return np.full(found.shape, -1, np.int32)
        order = np.argsort(self.shapes)
        at = np.minimum(np.searchsorted(self.shapes[order], found), len(order) - 1)
        return np.where(self.shapes[order][at] == found, order[at], -1).astype(np.int32)

    def shape_names(self) -> list[str]:
        """The frequent shapes in words."""
        letters = ["X", *self.frequent.types]
        names = []
        for shape in self.shapes.tolist():
            words = []
            while shape > 1:
                words.append(letters[shape % 256])
                shape //= 256
            names.append(" ".join(reversed(words)))
        return names


def _keys(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    from isogloss.tasks.align._numba.spans import span_keys

    keys = np.zeros((len(ids), LONGEST - 1), np.uint64)
    span_keys(ids, offsets, keys)
    return keys


def _shapes(codes: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    from isogloss.tasks.align._numba.spans import span_patterns

    out = np.zeros((len(codes), LONGEST - 1), np.int64)
    span_patterns(codes, offsets, out)
    return out


@dataclass(frozen=True, eq=False)
class Phrases:
    """Statistics of spans of both languages."""

    source: Spans
    target: Spans

    @classmethod
    def of(cls, corpus: Corpus, frequent: tuple[list[str], list[str]]) -> Phrases:
        """Count a text, given the most frequent words of both sides."""
        pairs = corpus.pairs
        return cls(
            Spans.of(corpus.source_words, pairs.source_ids, pairs.source_offsets, frequent[0][:_FREQUENT]),
            Spans.of(corpus.target_words, pairs.target_ids, pairs.target_offsets, frequent[1][:_FREQUENT]),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, under names of their own."""
        return prefixed("source/", collect(self.source, _LAYOUT)) | prefixed("target/", collect(self.target, _LAYOUT))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_source: int, n_target: int) -> Phrases:
        """What `arrays` gave, for texts of so many source and target types."""
        sides = []
        for side, n_types in (("source", n_source), ("target", n_target)):
            found = check(unprefixed(f"{side}/", arrays), _LAYOUT, f"the phrase counts ({side})", {"types": n_types})
            sides.append(Spans(**found | {"frequent": Vocabulary(found["frequent"])}))
            sides[-1].shape_names()  # reading fails where a shape has words that are not there
        return cls(*sides)


def block_features(
    phrases: Phrases,
    corpus: Corpus,
    numbers: tuple[NDArray[np.int32], NDArray[np.int32]],
    inside: NDArray[np.bool_],
    features: PairFeatures,
    *,
    max_size: int = LONGEST,
    averaged: Sequence[str] | None = None,
) -> PartFeatures:
    """Features of all blocks of 2 to `max_size` words with one word, of every pair.

    Rows of a pair are those of `Blocks` in C order, `many_source` [i, j, words - 2] and then `many_target`; blocks that
    would reach past the end of the sentence have zeros. Memory is 8 (max_size - 1) bytes a cell and feature.

    Parameters
    ----------
    phrases, corpus, numbers, inside
        Statistics, the text, its forms in the statistics, and the pairs that the statistics are of.
    features : PairFeatures
        Of the same text.
    averaged : sequence of str, optional
        The link features to take the mean of; all but the bias if not given.
    """
    from isogloss.tasks.align._numba.spans import fill_blocks

    if isinstance(max_size, bool) or not isinstance(max_size, int) or not 2 <= max_size <= LONGEST:
        raise ParameterError(f"block_features: max_size should be from 2 to {LONGEST} words, not {max_size!r}")
    pairs, more = corpus.pairs, max_size - 1
    chosen = [name for name in features.link_names if name != "bias"] if averaged is None else list(averaged)
    least = [name for name in ("dice", "hmm") if name in features.link_names]
    names = [f"size_{k + 2}" for k in range(more)] + ["ngram_count", "ngram_pmi"]
    names += [f"least:{name}" for name in least] + [f"mean:{name}" for name in chosen]
    spans = tuple(
        np.ascontiguousarray(side.statistics(known[ids], offsets, np.repeat(inside, np.diff(offsets)))[:, :more])
        for side, known, ids, offsets in (
            (phrases.source, numbers[0], pairs.source_ids, pairs.source_offsets),
            (phrases.target, numbers[1], pairs.target_ids, pairs.target_offsets),
        )
    )
    starts = starts_of(2 * more * np.diff(pairs.cell_offsets))
    values = np.zeros((starts[-1], len(names)), np.float32)
    fill_blocks(
        pairs.source_offsets, pairs.target_offsets, pairs.cell_offsets, features.links,
        np.array([features.column(name) for name in chosen], np.int64),
        np.array([features.column(name) for name in least], np.int64), spans, max_size, starts, values,
    )  # fmt: skip
    fired, fired_names = _indicators(phrases, corpus, more, starts)
    return PartFeatures(tuple(names), values, starts, fired, fired_names)


def _indicators(
    phrases: Phrases, corpus: Corpus, more: int, starts: NDArray[np.int64]
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int32]], tuple[str, ...]]:
    """The shape of every block: at most one indicator each."""
    pairs = corpus.pairs
    codes = (
        phrases.source.frequent.encode(corpus.source_words)[pairs.source_ids] + 1,
        phrases.target.frequent.encode(corpus.target_words)[pairs.target_ids] + 1,
    )
    ranks = phrases.source.ranks(codes[0], pairs.source_offsets), phrases.target.ranks(codes[1], pairs.target_offsets)
    n, m = np.diff(pairs.source_offsets), np.diff(pairs.target_offsets)
    n_cells = len(pairs.cells)
    within = np.arange(n_cells) - np.repeat(pairs.cell_offsets[:-1], n * m)
    width = np.repeat(m, n * m)
    source = np.repeat(pairs.source_offsets[:-1], n * m) + within // np.maximum(1, width)
    target = np.repeat(pairs.target_offsets[:-1], n * m) + within % np.maximum(1, width)
    words = [["X", *spans.frequent.types] for spans in (phrases.source, phrases.target)]
    first = len(phrases.source.shapes) * len(words[1])
    of_source = np.where(ranks[0] >= 0, ranks[0] * len(words[1]), -1)[source, :more]
    of_target = np.where(ranks[1] >= 0, first + ranks[1] * len(words[0]), -1)[target, :more]
    of_source = np.where(of_source >= 0, of_source + codes[1][target][:, None], -1)
    of_target = np.where(of_target >= 0, of_target + codes[0][source][:, None], -1)
    found = np.full(starts[-1], -1, np.int64)  # so it stays for spans past the end, whose shape is 0
    rows = np.repeat(starts[:-1], n * m) + within * more  # of the first block of each cell
    later = rows + np.repeat(n * m * more, n * m)
    for k in range(more):
        found[rows + k], found[later + k] = of_source[:, k], of_target[:, k]
    indptr = np.concatenate([[0], np.cumsum(found >= 0)]).astype(np.int64)
    names = [f"[{shape}|{word}]" for shape in phrases.source.shape_names() for word in words[1]]
    names += [f"[{word}|{shape}]" for shape in phrases.target.shape_names() for word in words[0]]
    return (indptr, found[found >= 0].astype(np.int32)), tuple(names)
