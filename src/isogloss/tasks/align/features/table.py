"""One text on its way to `PairFeatures`: its words as the statistics know them, and the columns as they are filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Text, Vocabulary
from isogloss.errors import LinksError
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.features.base import Floats
from isogloss.tasks.align.features.evidence import Posteriors
from isogloss.tasks.align.features.statistics import Known, Statistics, association
from isogloss.tasks.align.features.writing import Writing, letters_of, writing_of

__all__ = ["COLUMNS", "NULLS", "Dictionary", "Table", "stem_columns"]

COLUMNS = {
    "association": ("dice", "llr", "pmi"),
    "position": (
        "distance", "distance_squared", "distance_root", "diagonal", "diagonal_squared", "first", "last",
        "dice_proximity",
    ),
    "shape": (
        "exact", "folded", "consonants", "digits", "punctuation", "subsequence", "edit", "prefix", "suffix", "short",
        "one_number", "one_punctuation", "capitals", "one_capital", "same_script",
    ),
    "frequency": ("rank_difference", "both_frequent", "one_frequent", "both_rare", "one_rare"),
    "context": ("next_dice", "previous_dice", "dice_in_row", "dice_in_column"),
    "lexical": (),
    "hmm": (
        "hmm", "hmm_forward", "hmm_backward", "hmm_product", "hmm_logit", "hmm_link", "hmm_best_in_row",
        "hmm_best_in_column",
    ),
    "stems": (),
    "surroundings": tuple(
        f"around_{place}"
        for place in (
            "above_left", "above", "above_right", "left", "right", "below_left", "below", "below_right", "row_rival",
            "row_sum", "column_rival", "column_sum",
        )
    ),
    "trust": (),
    "ibm": tuple(
        f"{model}_{kind}"
        for model in ("model1", "model2")
        for kind in (
            "mean", "forward", "backward", "product", "logit", "link", "best_in_row", "best_in_column",
        )
    ),
    "blocks": (),
    "pairs": (),
}  # fmt: skip
"""Names of the link features of each set; "lexical" has indicators, "blocks" and "pairs" are of other parts, and those
of "stems" and "trust" are in `stem_columns` and `TRUSTED`."""

CONSENSUS = "consensus"
TRUSTED = (
    "both_rare", "one_rare", "both_frequent", "one_frequent", "rank_difference", "punctuation", "one_punctuation",
    "diagonal", "dice",
)  # fmt: skip
"""What tells how far the consensus is to be trusted: the set "trust" has its logit times each that there is."""
DICTIONARY = ("dictionary", "dictionary_only_in_row", "dictionary_only_in_column")
NULLS = ("bias", "rank_10", "rank_100", "rank_1000", "rare", "punctuation", "number", "best_dice")
HMM_NULLS = ("hmm_null", "hmm_best")
CONSENSUS_NULLS = ("consensus_best",)

_CAP = 10  # words of distance to the diagonal beyond which there is no farther
_FREQUENT = 100  # rank
_RARE = 1  # sentence pairs


def stem_columns(stems: Sequence[int]) -> tuple[str, ...]:
    """Names of the set "stems": of the posterior over words cut to so many letters, and of the mean of all."""
    names = [f"stem_{n}" for n in stems] + [CONSENSUS]
    return tuple(column for name in names for column in (name, f"{name}_logit"))


class Side(NamedTuple):
    """The tokens of one side of a text."""

    numbers: NDArray[np.int32]  # [n_forms]: numbers in the statistics, -1 unknown
    counts: NDArray[np.int64]  # [n_tokens]: sentence pairs with the word, the token's own not counted
    ranks: NDArray[np.int64]  # [n_tokens]
    tokens: Any  # `Tokens` of the kernels
    writing: list[Writing]  # of each form


class Dictionary(NamedTuple):
    """Word pairs by source word: folded forms, and which go together."""

    source: Vocabulary
    target: Vocabulary
    rows: NDArray[np.int64]
    columns: NDArray[np.int32]


class Table:
    """Columns of link features for one text.

    Parameters
    ----------
    bitext, corpus
        The text, and the same as numbers.
    statistics : Statistics
    known : Known, optional
        The text that the statistics are of, to leave a pair's own evidence out.
    names : tuple of str
        Every link feature, in order.
    """

    def __init__(
        self, bitext: Bitext, corpus: Corpus, statistics: Statistics, known: Known | None, names: tuple[str, ...]
    ) -> None:
        self.bitext, self.corpus, self.statistics = bitext, corpus, statistics
        self.names = names
        self.columns = {name: k for k, name in enumerate(names)}
        self.out = np.zeros((corpus.n_cells, len(names)), np.float32)
        source = statistics.source_words.encode(corpus.source_words)
        target = statistics.target_words.encode(corpus.target_words)
        self.known = np.full(len(corpus), -1, np.int64)
        if known is not None:
            self.known = known.find(corpus, source, target)
        self.inside = self.known >= 0
        self.source, self.target = self._sides(source, target)
        self.dice = np.zeros(corpus.n_cells, np.float32)
        self.shapes = np.stack([np.diff(corpus.pairs.source_offsets), np.diff(corpus.pairs.target_offsets)], axis=1)

    # --- words

    def _sides(self, source: NDArray[np.int32], target: NDArray[np.int32]) -> tuple[Side, Side]:
        corpus, pairs, statistics = self.corpus, self.corpus.pairs, self.statistics
        shared: dict[tuple[str, str], int] = {}  # numbers of forms, the same on both sides
        made = []
        for text, words, ids, offsets, numbers, counts, ladder in (
            (self.bitext.source, corpus.source_words, pairs.source_ids, pairs.source_offsets, source,
             statistics.source_counts, statistics.source_ladder),
            (self.bitext.target, corpus.target_words, pairs.target_ids, pairs.target_offsets, target,
             statistics.target_counts, statistics.target_ladder),
        ):  # fmt: skip
            own = np.repeat(self.inside, np.diff(offsets))
            found = np.append(counts, 0)[numbers][ids] - own
            rank = 1 + len(ladder) - np.searchsorted(ladder, found, side="right")
            looks = [writing_of(word) for word in words]
            tokens = self._tokens(text, looks, ids, offsets, found, rank, shared)
            made.append(Side(numbers, found, rank, tokens, looks))
        return made[0], made[1]

    def _tokens(
        self,
        text: Text,
        looks: list[Writing],
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        counts: NDArray[np.int64],
        ranks: NDArray[np.int64],
        shared: dict[tuple[str, str], int],
    ) -> Any:
        from isogloss.tasks.align._numba import features as kernels

        def number(kind: str, form: str | None) -> int:
            return -1 if not form else shared.setdefault((kind, form), len(shared))

        kinds = ("folded", "consonants", "digits", "punctuation")
        keys = np.full((len(ids), 5), -1, np.int32)
        of_forms = np.array(
            [[number(kind, getattr(look, kind)) for kind in kinds] for look in looks], np.int32
        ).reshape(len(looks), 4)
        keys[:, 1:] = of_forms[ids]
        bits = np.array(
            [
                kernels.NUMBER * look.number | kernels.PUNCTUATION * (look.punctuation is not None)
                | kernels.SHORT * look.short
                for look in looks
            ],
            np.uint8,
        )  # fmt: skip
        scripts = np.array([number("script", look.script) for look in looks], np.int32)
        flags = bits[ids]
        flags[ranks <= _FREQUENT] |= kernels.FREQUENT
        flags[counts <= _RARE] |= kernels.RARE
        written, types = _written(text, self.corpus.skipped)
        exact, capital = np.full(len(types) or 1, -1, np.int32), np.zeros(len(types) or 1, bool)
        for k in np.unique(written).tolist():
            exact[k], capital[k] = number("exact", types[k]), types[k][:1].isupper()
        keys[:, 0] = exact[written]
        upper = capital[written]
        upper[offsets[:-1][np.diff(offsets) > 0]] = False  # a sentence starts with a capital whatever the word
        flags[upper] |= kernels.CAPITAL
        return kernels.Tokens(offsets, keys, flags, scripts[ids])

    # --- sets

    def associate(self, *, wanted: bool) -> None:
        """Dice of every cell, which other sets build on; all association features if wanted."""
        from isogloss.tasks.align._numba.features import associate

        counts = self.statistics.entries_in(self.corpus, self.source.numbers, self.target.numbers)
        n_pairs = int(self.statistics.n_pairs)
        alone = association(*counts, n_pairs)
        both, source, target = counts
        others = association(both - 1, source - 1, target - 1, n_pairs - 1) if self.inside.any() else alone
        pairs = self.corpus.pairs
        column = self.columns["dice"] if wanted else -1
        associate(pairs.cell_offsets, pairs.cells, self.inside, alone, others, self.dice, self.out, column)

    def place(self) -> None:
        """Where the two words stand: distances from the diagonal, ends of sentences."""
        from isogloss.tasks.align._numba.features import place

        place(*self._geometry, self.dice, _CAP, self.out, self.columns["distance"])

    def compare(self) -> None:
        """How the two words are written."""
        from isogloss.tasks.align._numba.features import compare, spell

        corpus = self.corpus
        source, target, n_letters = letters_of(
            [look.folded for look in self.source.writing], [look.folded for look in self.target.writing]
        )
        spelt = np.zeros((len(corpus.columns), 4), np.float32)
        spell(corpus.rows, corpus.columns, *source, *target, n_letters, spelt)
        pairs = corpus.pairs
        compare(
            self.source.tokens, self.target.tokens, pairs.cell_offsets, pairs.cells, spelt, self.out,
            self.columns["exact"],
        )  # fmt: skip

    def rate(self) -> None:
        """How frequent the two words are."""
        from isogloss.tasks.align._numba.features import rate

        logs = [np.log(side.ranks).astype(np.float32) for side in (self.source, self.target)]
        size = max(len(self.statistics.source_words), len(self.statistics.target_words), 1)
        rate(
            self.source.tokens, self.target.tokens, logs[0], logs[1], 1.0 / np.log(size + 1.0),
            self.corpus.pairs.cell_offsets,
            self.out, self.columns["rank_difference"],
        )  # fmt: skip

    def look_around(self) -> None:
        """Dice of the neighbours, and of the rivals in row and column."""
        from isogloss.tasks.align._numba.features import neighbours

        neighbours(*self._geometry, self.dice, self.out, self.columns["next_dice"])

    def believe(self, posteriors: Posteriors, threshold: float, first: str) -> None:
        """What an unsupervised aligner thinks, from column `first` on."""
        from isogloss.tasks.align._numba import features as kernels

        kernels.posteriors(*self._geometry, posteriors.both, threshold, self.out, self.columns[first])

    def rate_links(self, probability: Floats, first: str) -> None:
        """A probability of every cell and its logit, from column `first` on."""
        from isogloss.tasks.align._numba import features as kernels

        kernels.logits(self.corpus.pairs.cell_offsets, probability, self.out, self.columns[first])

    def surround(self, probability: Floats | None) -> None:
        """How probable the links around each cell are, and its rivals; by Dice where there is no probability."""
        from isogloss.tasks.align._numba import features as kernels

        values = self.dice if probability is None else probability
        kernels.surroundings(*self._geometry, values, self.out, self.columns[COLUMNS["surroundings"][0]])

    def trust(self, probability: Floats | None) -> None:
        """Logits of a probability of every cell, of Dice without, times what tells how far to trust them."""
        from isogloss.tasks.align._numba import features as kernels

        logit = np.empty((self.corpus.n_cells, 2), np.float32)
        values = self.dice if probability is None else probability
        kernels.logits(self.corpus.pairs.cell_offsets, values, logit, 0)
        for name in TRUSTED:
            if f"trust_{name}" in self.columns:
                by = self.out[:, self.columns[name]]
                np.multiply(logit[:, 1], by, out=self.out[:, self.columns[f"trust_{name}"]])

    def translate(self, dictionary: Dictionary) -> None:
        """Whether a dictionary has the two words, and whether it has no other pair for one of them here."""
        from isogloss.tasks.align._numba.features import find_entries

        corpus = self.corpus
        source = dictionary.source.encode(look.folded for look in self.source.writing)
        target = dictionary.target.encode(look.folded for look in self.target.writing)
        found = np.full(len(corpus.columns), -1, np.int64)
        find_entries(
            corpus.rows, corpus.columns, source, target, dictionary.rows, dictionary.columns, len(dictionary.target),
            found,
        )  # fmt: skip
        listed = (found >= 0)[corpus.pairs.cells]
        column = self.columns[DICTIONARY[0]]
        self.out[:, column] = listed
        row, other = self._words_of_cells
        for k, word in enumerate((row, other)):
            hits = np.bincount(word[listed], minlength=int(word.max(initial=-1)) + 1)
            self.out[:, column + 1 + k] = listed & (hits[word] == 1)

    def link(self, name: str, links: Links) -> None:
        """Another system's links, with their probabilities where it gives them."""
        pairs = self.corpus.pairs
        if len(links) != len(self.corpus):
            raise LinksError(
                f"links {name!r} are of {len(links)} pairs, the text has {len(self.corpus)}: "
                "give links with one line for each pair of the text"
            )
        row = links.pair
        lengths = np.stack([self.bitext.source.ids.lengths, self.bitext.target.ids.lengths], axis=1)[row]
        outside = np.flatnonzero(
            (links.source >= lengths[:, 0]) | (links.target >= lengths[:, 1]) | (links.source < 0) | (links.target < 0)
        )
        if len(outside):
            k = int(outside[0])
            raise LinksError(
                f"links {name!r}, pair {row[k]} (line {self.bitext.line_of(int(row[k]))}): {links.source[k]}-"
                f"{links.target[k]} is outside its {lengths[k, 0]} and {lengths[k, 1]} words. "
                "Are the links of this text, source index first?"
            )
        keep = ~self.corpus.skipped[row]
        cell = pairs.cell_offsets[row] + links.source.astype(np.int64) * lengths[:, 1] + links.target
        value = np.ones(len(row), np.float32)
        if links.probability is not None:
            value = np.where(np.isnan(links.probability), np.float32(1.0), links.probability)
        self.out[cell[keep], self.columns[f"links:{name}"]] = np.clip(value[keep], 0.0, 1.0)

    # --- the rest

    def lexical(
        self, source: Vocabulary, target: Vocabulary, n_pairs: int, n_words: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Indicators of pairs of frequent words and of frequent words: (indptr, indices)."""
        from isogloss.tasks.align._numba.features import lexical_counts, lexical_fill

        pairs = self.corpus.pairs
        paired = min(n_pairs, len(source)), min(n_pairs, len(target))
        listed = min(n_words, len(source)), min(n_words, len(target))
        a = source.encode(self.corpus.source_words)[pairs.source_ids]
        b = target.encode(self.corpus.target_words)[pairs.target_ids]
        where = a, pairs.source_offsets, b, pairs.target_offsets, pairs.cell_offsets, paired, listed
        indptr = np.zeros(self.corpus.n_cells + 1, np.int64)
        lexical_counts(*where, indptr)
        np.cumsum(indptr, out=indptr)
        indices = np.empty(indptr[-1], np.int32)
        lexical_fill(*where, indptr, indices)
        return indptr, indices

    def nulls(self, posteriors: Posteriors | None, consensus: Floats | None) -> tuple[Floats, Floats]:
        """Features of leaving a word unlinked, float32[n_words, n] of both sides."""
        from isogloss.tasks.align._numba.features import NUMBER, PUNCTUATION

        made = []
        for k, side in enumerate((self.source, self.target)):
            flags, rank = side.tokens.flags, side.ranks
            word = self._words_of_cells[k]
            columns = [
                np.ones(len(rank)), rank <= 10, (rank > 10) & (rank <= 100), (rank > 100) & (rank <= 1000),
                side.counts <= _RARE, (flags & PUNCTUATION) > 0, (flags & NUMBER) > 0,
                _largest(self.dice, word, len(rank)),
            ]  # fmt: skip
            if posteriors is not None:
                mean = posteriors.both.mean(axis=1, dtype=np.float32)
                columns += [(posteriors.source_null, posteriors.target_null)[k], _largest(mean, word, len(rank))]
            if consensus is not None:
                columns.append(_largest(consensus, word, len(rank)))
            made.append(np.stack(columns, axis=1).astype(np.float32))
        return made[0], made[1]

    @property
    def _geometry(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        pairs = self.corpus.pairs
        return pairs.source_offsets, pairs.target_offsets, pairs.cell_offsets

    @property
    def _words_of_cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The source token and the target token of every cell."""
        pairs, (n, m) = self.corpus.pairs, self.shapes.T
        source = np.repeat(np.arange(len(pairs.source_ids)), np.repeat(m, n))
        within = np.arange(self.corpus.n_cells) - np.repeat(pairs.cell_offsets[:-1], n * m)
        target = np.repeat(pairs.target_offsets[:-1], n * m) + within % np.repeat(m, n * m)
        return source, target


def _largest(values: Floats, word: NDArray[np.int64], n_words: int) -> Floats:
    """The greatest value among the cells of each word."""
    out = np.zeros(n_words, np.float32)
    np.maximum.at(out, word, values)
    return out


def _written(text: Text, skipped: NDArray[np.bool_]) -> tuple[NDArray[np.int32], list[str]]:
    """The type, as written, of every token of the pairs that are not skipped."""
    start, stop = text.ids.offsets[0], text.ids.offsets[-1]
    return text.ids.values[start:stop][np.repeat(~skipped, text.ids.lengths)], text.vocabulary.types
