"""Words as extractors see them: codes of what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column
from isogloss.data.vocabulary import Vocabulary
from isogloss.features import Axis
from isogloss.tasks.parse.constituency.words import Known, code_of, shape_of

__all__ = ["ROOT", "coded", "distance_bins", "lowered", "rooted", "sequences", "way", "word_codes"]

Ints = NDArray[np.int64]
ROOT = code_of("the root of a tree")
_GAPS = (1, 2, 3, 4, 5, 6, 8, 11, 16, 25)


def coded(column: Column, code: Callable[[str], int]) -> Ints:
    """A code for each word, made once for each kind."""
    table = np.array([code(text) for text in column.vocabulary], np.int64)
    return table[column.ids] if len(table) else np.zeros(0, np.int64)


def word_codes(forms: Column, known: Known, others: Mapping[str, Column]) -> dict[str, Ints]:
    """What words are seen by.

    "word" (of known ones themselves, of others their shape and ending), "stem" (its first five letters), "suffix" (the
    last three), "shape", and the columns in `others`, such as tags and lemmas.
    """
    found = {
        "word": coded(forms, lambda form: known.code(form.lower())),
        "stem": coded(forms, lambda form: code_of(f"stem {form.lower()[:5]}")),
        "suffix": coded(forms, lambda form: code_of(f"suffix {form.lower()[-3:]}")),
        "shape": coded(forms, lambda form: code_of(shape_of(form))),
    }
    return found | {name: coded(column, code_of) for name, column in others.items()}


def lowered(forms: Column) -> Column:
    """The same words in small letters."""
    numbers: dict[str, int] = {}
    table = np.array([numbers.setdefault(form.lower(), len(numbers)) for form in forms.vocabulary], np.int32)
    return Column(table[forms.ids] if len(table) else np.zeros(0, np.int32), Vocabulary(numbers))


def distance_bins(gaps: Ints) -> Ints:
    """Distances in bins: one by one up to 6, then wider."""
    return np.searchsorted(np.array(_GAPS), gaps, side="right").astype(np.int64)


def rooted(offsets: Ints, attributes: Mapping[str, Ints]) -> Axis:
    """Nodes of dependency trees: those of each sentence behind a root of its own."""
    lengths = np.diff(offsets)
    wider = np.concatenate([[0], np.cumsum(lengths + 1)]).astype(np.int64)
    inside = np.ones(int(wider[-1]), bool)
    inside[wider[:-1]] = False
    made: dict[str, Any] = {}
    for name, codes in attributes.items():
        made[name] = np.full(int(wider[-1]), ROOT)
        made[name][inside] = codes
    return Axis(wider, **made)


def sequences(codes: Ints, begins: Ints, ends: Ints, most: int) -> Ints:
    """A code for the words between, in order; −1 where there are more than `most`."""
    mixed, modulus = np.zeros(len(begins), np.uint64), np.uint64(0x9E3779B97F4A7C15)
    for step in range(most):
        there = begins + step < ends
        at = np.where(there, begins + step, 0)
        seen = codes[at].astype(np.uint64) if len(codes) else mixed
        mixed = np.where(there, (mixed * modulus + seen + np.uint64(1)) & np.uint64((1 << 62) - 1), mixed)
    return np.where(ends - begins > most, -1, mixed.astype(np.int64))


def way(one: int, other: int, heads: Ints) -> tuple[list[int], list[int]]:
    """The words that are left upwards, and those that are come to downwards, on the way from one word to another."""
    ways = []
    for word in (one, other):
        way = [word]
        while heads[way[-1]] >= 0 and len(way) <= len(heads):
            way.append(int(heads[way[-1]]))
        ways.append(way)
    up, down = ways
    while up and down and up[-1] == down[-1]:
        up.pop()
        down.pop()
    return up, down[::-1]
