"""Words as a constituency parser sees them: codes of words, tags, endings and shapes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituents import unescaped
from isogloss.data.treebank import Column
from isogloss.features import Axis, Parts, Role

__all__ = ["Known", "Sentences", "code_of", "signature_of", "span_parts"]

_OPENING = {
    "``": 1,
    "„": 1,
    "“": 1,
    "«": 1,
    "''": 2,
    "”": 2,
    "»": 2,
    "(": 3,
    "[": 3,
    "{": 3,
    ")": 4,
    "]": 4,
    "}": 4,
    ",": 5,
}
_COORDINATING = ("CC", "CCONJ", "KON", "CONJ")


def code_of(text: str) -> int:
    """A number for a string, the same everywhere: 62 bits of its hash."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 2


def shape_of(word: str) -> str:
    """Kinds of characters, repetitions left out.

    Examples
    --------
    >>> shape_of("McDonald"), shape_of("1,200"), shape_of("U.S."), shape_of("well-known")
    ('XxXx', '0,0', 'X.X.', 'x-x')
    """
    found: list[str] = []
    for character in word:
        kind = "X" if character.isupper() else "x" if character.isalpha() else "0" if character.isdigit() else character
        if not found or found[-1] != kind:
            found.append(kind)
    return "".join(found[:6])


def signature_of(word: str) -> str:
    """What stands for a rare word: its shape and its last three letters.

    Examples
    --------
    >>> signature_of("untouchables"), signature_of("1987")
    ('x|les', '0|')
    """
    ending = word[-3:].lower() if word[-1:].isalpha() and len(word) > 3 else ""
    return f"{shape_of(word)}|{ending}"


@dataclass(frozen=True)
class Known:
    """The words that a parser knows by themselves; others are seen by their signatures."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, forms: Column, least: int) -> Known:
        """Those that occur so often at the least."""
        counts = np.bincount(forms.ids, minlength=len(forms.vocabulary))
        total: dict[str, int] = {}
        for form, count in zip(forms.vocabulary, counts.tolist(), strict=True):
            total[unescaped(form)] = total.get(unescaped(form), 0) + count
        return cls(tuple(sorted(form for form, count in total.items() if count >= least)))

    @cached_property
    def _set(self) -> frozenset[str]:
        return frozenset(self.words)

    def code(self, word: str) -> int:
        """Of the word itself if it is known, else of its signature."""
        return code_of(f"w {word}") if word in self._set else code_of(f"s {signature_of(word)}")


@dataclass(frozen=True, eq=False)
class Sentences:
    """Words and tags of some sentences as codes.

    offsets : int64[n_sentences + 1]
    axis : Axis
        With the attributes that templates look at.
    marks, tags, classes : int64[n_words]
    """

    offsets: NDArray[np.int64]
    axis: Axis
    marks: NDArray[np.int64]
    tags: NDArray[np.int64]
    classes: NDArray[np.int64]

    @classmethod
    def of(cls, offsets: NDArray[np.int64], forms: Column, tags: Column, known: Known) -> Sentences:
        """Of words, which may be written as in trees or as people write them, and their tags."""
        word = _codes(forms, lambda form: known.code(unescaped(form)))
        ending = _codes(forms, lambda form: code_of(signature_of(unescaped(form))))
        tag = _codes(tags, code_of)
        coarse = _codes(tags, lambda name: code_of(name[:2]))
        marks = _codes(forms, lambda form: _OPENING.get(unescaped(form), 0))
        coordinating = _codes(tags, lambda name: 6 if name in _COORDINATING else 7 if name[:1] in ("V", "M") else 0)
        marks = np.where(marks > 0, marks, coordinating)
        return cls(offsets, Axis(offsets, word=word, tag=tag, ending=ending, coarse=coarse), marks, tag, coarse)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, offsets: NDArray[np.int64]) -> Sentences:
        """Neighbouring words, cut into sentences at these places."""
        words = slice(int(offsets[0]), int(offsets[-1]))
        axis = Axis(offsets - offsets[0], **{name: codes[words] for name, codes in self.axis.attributes.items()})
        return Sentences(axis.offsets, axis, self.marks[words], self.tags[words], self.classes[words])


def _codes(column: Column, code: Callable[[str], int]) -> NDArray[np.int64]:
    table = np.array([code(text) for text in column.vocabulary], np.int64)
    return table[column.ids] if len(table) else np.zeros(0, np.int64)


def span_parts(words: Sentences) -> Parts:
    """All spans of sentences, laid out as `isogloss.structures.SpanTree` has them, with roles and columns.

    Roles "first", "last" and "inside"; columns "length" (in bins), "sequence" (tags in order), "outline" (coarse tags
    in order), "balance" and "content".
    """
    from isogloss.structures.batch import run_sentences
    from isogloss.tasks.parse.constituency._numba.spans import COLUMNS, span_codes

    lengths = np.diff(words.offsets)
    offsets = np.concatenate([[0], np.cumsum(lengths * (lengths + 1) // 2)]).astype(np.int64)
    out = np.empty((COLUMNS, int(offsets[-1])), np.int64)
    run_sentences(span_codes, len(words), words.offsets, offsets, words.tags, words.classes, words.marks, out)
    first, stop, length, sequence, outline, balance, content = out
    roles = {
        "first": Role(words.axis, first),
        "last": Role(words.axis, stop - 1),
        "inside": Role(words.axis, first, stop),
    }
    columns = {"length": length, "sequence": sequence, "outline": outline, "balance": balance, "content": content}
    return Parts(len(first), offsets, roles, columns, bins=length)


def columns_of(strings: Iterable[Sequence[str]]) -> Column:
    """All strings of several sentences as a column."""
    return Column.of(text for sentence in strings for text in sentence)
