"""Forced decoding: the best derivation of a translation that is given, if there is one.

Only options whose words stand somewhere in the translation are looked at, which leaves so few that the search is exact
or nearly so: as many hypotheses go on as `WIDE` allows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext
from isogloss.tasks.translate.search import UNLIMITED, Decoder, Derivations, Sentences

__all__ = ["WIDE", "encoded", "forced"]

WIDE = 2000
"""Hypotheses that go on, for each number of words."""


def encoded(bitext: Bitext, decoder: Decoder) -> list[NDArray[np.int32]]:
    """The target side as numbers of the language model; of words that it does not know as `Decoder.search` takes them.

    Such a word can only be one that is copied from the source: −2 less its number there, −1 if it is not there either.
    """
    if not len(bitext.target.vocabulary):
        return [np.zeros(0, np.int32)] * len(bitext)
    numbers = decoder.language_model.encode(bitext.target.vocabulary)
    copied = bitext.source.vocabulary.encode(bitext.target.vocabulary)
    numbers = np.where(numbers == decoder.language_model.unknown, np.where(copied >= 0, -2 - copied, -1), numbers)
    return [numbers[row].astype(np.int32) for row in bitext.target.ids]


def forced(
    decoder: Decoder,
    bitext: Bitext,
    sentences: Sentences | None = None,
    *,
    more: NDArray[np.float64] | None = None,
    jumps: NDArray[np.float64] | None = None,
    swaps: NDArray[np.float64] | None = None,
) -> Derivations:
    """The best derivation of each target side, none where the table cannot make it.

    `more`, `jumps` and `swaps` are what options and moves score besides, as for `Decoder.options`.
    """
    from isogloss.tasks.translate._numba.options import within

    known = decoder.sentences(bitext.source) if sentences is None else sentences
    references = encoded(bitext, decoder)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in references])]).astype(np.int64)
    flat = np.concatenate([np.zeros(0, np.int32), *references])
    fits = np.zeros(len(known.pairs), np.bool_)
    within(known.option_starts, known.target_starts, known.target_words, known.copied, flat, starts, fits)
    wide = replace(decoder.searching, beam=WIDE, pops=UNLIMITED, options=UNLIMITED)
    found = replace(decoder, searching=wide).search(
        known.keeping(fits), 1, references=references, more=None if more is None else more[fits], jumps=jumps,
        swaps=swaps,
    )  # fmt: skip
    return replace(found, sentences=known, options=np.flatnonzero(fits)[found.options])
