r"""What is learnt from text without labels: how often words occur, and how often together.

Counts are of sentence pairs, a word that stands twice in a sentence counting once. A pair of the text itself is judged
by the counts without it, so that the words of training pairs look as words of new text will: a word that occurs there
alone has no partner it always meets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Ragged, Text, Vocabulary
from isogloss.layout import COUNTS, Layout, Numbers, Offsets, Strings, check, collect
from isogloss.tasks.align.corpus import Corpus

__all__ = ["Known", "Statistics", "association", "cut_words", "joined"]

LEAST = 0.005
"""Pairs of words whose Dice coefficient is below are not kept: they count as never having met."""

_SIGNIFICANT = 10.83  # log-likelihood ratio that chance exceeds once in a thousand times: there the feature is one half
_LAYOUT: Layout = {
    "source_words": Strings("n", distinct=True),
    "target_words": Strings("m", distinct=True),
    "source_counts": Numbers("int64", "n", least=0, below=COUNTS),
    "target_counts": Numbers("int64", "m", least=0, below=COUNTS),
    "rows": Offsets("n", "k"),
    "columns": Numbers("int32", "k", least=0, below="m"),
    "together": Numbers("int32", "k", least=0),
    "n_pairs": Numbers("int64", (), least=0, below=COUNTS),
}


@dataclass(frozen=True, eq=False)
class Statistics:
    """Counts of words and of word pairs.

    Parameters
    ----------
    source_words, target_words : Vocabulary
        Word forms of the text.
    source_counts, target_counts : int64[n_types]
        In how many sentence pairs each occurs.
    rows, columns : int64[n_source_types + 1], int32[n_entries]
        Pairs of forms, by source form.
    together : int32[n_entries]
        In how many sentence pairs both occur.
    n_pairs : int64[]
        Sentence pairs of the text.
    """

    source_words: Vocabulary
    target_words: Vocabulary
    source_counts: NDArray[np.int64]
    target_counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    together: NDArray[np.int32]
    n_pairs: NDArray[np.int64]

    @classmethod
    def of(cls, corpus: Corpus, least: float = LEAST) -> Statistics:
        """Count a text; entries with a Dice coefficient below `least` are dropped."""
        from isogloss.tasks.align._numba.features import count_together

        pairs = corpus.pairs
        together = np.zeros(len(corpus.columns), np.int32)
        count_together(
            *corpus.occurrences, pairs.target_ids, pairs.target_offsets, pairs.cell_offsets, pairs.cells, together
        )
        source = _presence(pairs.source_ids, pairs.source_offsets, len(corpus.source_words))
        target = _presence(pairs.target_ids, pairs.target_offsets, len(corpus.target_words))
        sums = np.repeat(source, np.diff(corpus.rows)) + target[corpus.columns]
        keep = 2.0 * together >= least * sums
        kept = np.concatenate([[0], np.cumsum(keep)]).astype(np.int64)
        n_pairs = np.array(int((~corpus.skipped).sum()), np.int64)
        return cls(
            corpus.source_words, corpus.target_words, source, target,
            kept[corpus.rows], corpus.columns[keep], together[keep], n_pairs,
        )  # fmt: skip

    def entries_in(
        self, corpus: Corpus, source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """For every entry of another text: sentence pairs with both words, with the source word, with the target word.

        `source` and `target` give the number here of each form there, -1 for none.
        """
        from isogloss.tasks.align._numba.features import find_entries

        found = np.full(len(corpus.columns), -1, np.int64)
        find_entries(
            corpus.rows, corpus.columns, source, target, self.rows, self.columns, len(self.target_words), found
        )
        both = np.append(self.together, 0)[found].astype(np.int64)
        of_source = np.repeat(np.append(self.source_counts, 0)[source], np.diff(corpus.rows))
        of_target = np.append(self.target_counts, 0)[target][corpus.columns]
        return both, of_source, of_target

    @cached_property
    def source_ladder(self) -> NDArray[np.int64]:
        """Counts of source forms in ascending order: what ranks are read off."""
        return np.sort(self.source_counts)

    @cached_property
    def target_ladder(self) -> NDArray[np.int64]:
        return np.sort(self.target_counts)

    def frequent(self, side: str, n: int) -> list[str]:
        """The n most frequent forms that have a letter or digit, the most frequent first; equals in order of words."""
        words = self.source_words if side == "source" else self.target_words
        counts = self.source_counts if side == "source" else self.target_counts
        order = np.argsort(-counts, kind="stable")
        found: list[str] = []
        for k in order.tolist():
            if len(found) == n:
                break
            if any(c.isalnum() for c in words[k]):
                found.append(words[k])
        return found

    # --- saving

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, under names of their own, for `isogloss.store`."""
        return collect(self, _LAYOUT)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Statistics:
        """What `arrays` gave; refuses tables whose parts do not fit each other."""
        found = check(arrays, _LAYOUT, "the word counts of this model")
        words = {f"{side}_words": Vocabulary(found[f"{side}_words"]) for side in ("source", "target")}
        return cls(**found | words)


def _presence(ids: NDArray[np.int32], offsets: NDArray[np.int64], n_types: int) -> NDArray[np.int64]:
    """In how many rows each type occurs."""
    if not len(ids):
        return np.zeros(n_types, np.int64)
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    seen = np.unique(row * n_types + ids)
    return np.bincount(seen % n_types, minlength=n_types).astype(np.int64)


def association(
    both: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64], n_pairs: int
) -> NDArray[np.float32]:
    r"""Three measures of association of word pairs from their counts: float32[n, 3], all in [0, 1].

    With :math:`C_{ef}` sentence pairs that have both words, :math:`C_e` and :math:`C_f` that have one, of N:

    - Dice, :math:`2 C_{ef} / (C_e + C_f)`;
    - the log-likelihood ratio [1]_ :math:`G` of the 2 × 2 table, as :math:`G / (G + 10.83)`, one half where chance
      exceeds it once in a thousand times;
    - pointwise mutual information as a share of the most it can be [2]_, :math:`\log(p_{ef} / p_e p_f) / -\log p_{ef}`.

    The last two are 0 where the words meet no more often than by chance.

    References
    ----------
    .. [1] Dunning, Accurate Methods for the Statistics of Surprise and Coincidence, CL 19(1), 1993.
    .. [2] Bouma, Normalized (Pointwise) Mutual Information in Collocation Extraction, GSCL 2009.

    Examples
    --------
    >>> association(np.array([2, 0]), np.array([2, 1]), np.array([2, 5]), 100).round(2)
    array([[1.  , 0.64, 1.  ],
           [0.  , 0.  , 0.  ]], dtype=float32)
    """
    n = max(1, int(n_pairs))
    out = np.zeros((len(both), 3), np.float32)
    met = np.flatnonzero(both > 0)
    c, a, b = (x[met].astype(np.float64) for x in (both, source, target))
    out[met, 0] = 2.0 * c / np.maximum(1.0, a + b)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.zeros(len(met))
        for seen, total in ((c, a * b), (a - c, a * (n - b)), (b - c, (n - a) * b), (n - a - b + c, (n - a) * (n - b))):
            ratio = ratio + np.where(seen > 0.0, seen * np.log(np.maximum(seen, 1e-9) * n / total), 0.0)
        ratio = np.maximum(0.0, 2.0 * np.nan_to_num(ratio, nan=0.0, posinf=0.0, neginf=0.0))
        mutual = np.log(c * n / (a * b)) / -np.log(c / n)
    above = c * n > a * b
    out[met, 1] = np.where(above, ratio / (ratio + _SIGNIFICANT), 0.0)
    out[met, 2] = np.where(above, np.clip(np.nan_to_num(mutual, nan=1.0, posinf=1.0), 0.0, 1.0), 0.0)
    return out


# --- texts


@dataclass(frozen=True, eq=False)
class Known:
    """The pairs of a text, to recognise them when they come again.

    Parameters
    ----------
    corpus : Corpus
    keys, order : uint64[n_pairs], int64[n_pairs]
        Hashes in ascending order, and the pairs they are of.
    """

    corpus: Corpus
    keys: NDArray[np.uint64]
    order: NDArray[np.int64]

    @classmethod
    def of(cls, corpus: Corpus) -> Known:
        keys = _keys(*corpus.pairs[:4])
        order = np.argsort(keys, kind="stable")
        return cls(corpus, keys[order], order)

    def find(self, corpus: Corpus, source: NDArray[np.int32], target: NDArray[np.int32]) -> NDArray[np.int64]:
        """The pair here that has the words of each pair there, -1 for none: int64[n_pairs]; word for word the same.

        `source` and `target` give the number here of each form there, -1 for none.
        """
        pairs = corpus.pairs
        mine = (
            np.append(source, np.int32(-1))[pairs.source_ids], pairs.source_offsets,
            np.append(target, np.int32(-1))[pairs.target_ids], pairs.target_offsets,
        )  # fmt: skip
        found = _find(mine, tuple(self.corpus.pairs[:4]), self.keys, self.order)
        found[corpus.skipped] = -1
        return found


def _keys(*arrays: NDArray[Any]) -> NDArray[np.uint64]:
    from isogloss.tasks.align._numba.features import pair_keys

    keys = np.empty(len(arrays[1]) - 1, np.uint64)
    pair_keys(*arrays, keys)
    return keys


def _find(
    mine: tuple[NDArray[Any], ...],
    theirs: tuple[NDArray[Any], ...],
    keys: NDArray[np.uint64],
    order: NDArray[np.int64],
) -> NDArray[np.int64]:
    from isogloss.tasks.align._numba.features import same_rows

    wanted = _keys(*mine)
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = np.where(keys[at] == wanted, order[at], -1).astype(np.int64)
    same_rows(*mine[:2], *theirs[:2], found)
    same_rows(*mine[2:], *theirs[2:], found)
    return found


def joined(labelled: Bitext, unlabelled: Bitext | None) -> Bitext:
    """Both texts as one, the labelled pairs first; those that stand in the unlabelled text too are left empty here."""
    if unlabelled is None:
        return labelled
    sides = []
    for side in ("source", "target"):
        one, two = getattr(labelled, side), getattr(unlabelled, side)
        numbers = {word: k for k, word in enumerate(one.vocabulary)}
        mapping = np.array([numbers.setdefault(word, len(numbers)) for word in two.vocabulary], np.int32)
        start, stop = two.ids.offsets[0], two.ids.offsets[-1]
        more = Ragged(np.append(mapping, np.int32(0))[two.ids.values[start:stop]], two.ids.offsets - start)
        sides.append((one, more, Vocabulary(numbers)))
    (first, more_first, _), (second, more_second, _) = sides
    theirs = more_first.values, more_first.offsets, more_second.values, more_second.offsets
    keys = _keys(*theirs)
    order = np.argsort(keys, kind="stable")
    mine = first.ids.values, first.ids.offsets, second.ids.values, second.ids.offsets
    again = _find(mine, theirs, keys[order], order) >= 0
    texts = [Text(Ragged.concatenate([_emptied(one.ids, again), more]), words, one.name) for one, more, words in sides]
    return Bitext(texts[0], texts[1])


def _emptied(rows: Ragged, chosen: NDArray[np.bool_]) -> Ragged:
    """The same rows, those chosen without values."""
    lengths = rows.lengths
    values = rows.flat[np.repeat(~chosen, lengths)]
    return Ragged(values, np.concatenate([[0], np.cumsum(np.where(chosen, 0, lengths))]).astype(np.int64))


def cut_words(bitext: Bitext, letters: int) -> Bitext:
    """The same pairs, every word cut to so many letters.

    Examples
    --------
    >>> cut_words(Bitext.of([("talossa taloissa", "in houses")]), 3)[0]
    (('tal', 'tal'), ('in', 'hou'))
    """
    texts = []
    for side in (bitext.source, bitext.target):
        words, mapping = side.vocabulary.mapped(lambda word: word[:letters])
        ids = Ragged(np.append(mapping, np.int32(0))[side.ids.values], side.ids.offsets)
        texts.append(Text(ids, words, side.name))
    return replace(bitext, source=texts[0], target=texts[1])


def without(bitext: Bitext, chosen: NDArray[np.bool_]) -> Bitext:
    """The same pairs, those chosen empty on both sides."""
    texts = [Text(_emptied(side.ids, chosen), side.vocabulary, side.name) for side in (bitext.source, bitext.target)]
    return replace(bitext, source=texts[0], target=texts[1])
