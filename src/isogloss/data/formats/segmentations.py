"""Segmented words and sentences: a line, a tab, and its morphemes, `@@` before each further one of a word."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from isogloss.data.bitext import Text
from isogloss.data.formats.files import IsoglossWarning, PathOrName, name_of, read_bytes
from isogloss.data.segmentation import MARK, Morphemes, Segmentation, surface_pieces
from isogloss.errors import SegmentationError

__all__ = ["parse_segmentation", "parse_words", "read_segmentation", "read_words"]

_FEW = 5
"""Line numbers that a warning lists."""


def read_segmentation(path: PathOrName, *, encoding: str = "utf-8", errors: str = "strict") -> Segmentation:
    """Read ``word TAB mor @@phemes``, or a sentence a line with those of all its words; further columns are left out.

    This is the format of the SIGMORPHON 2022 shared task. An empty line is a line without words.

    Raises
    ------
    SegmentationError
        A line has no tab, or no morphemes. The message names file and line.
    """
    return parse_segmentation(read_bytes(path, encoding=encoding, errors=errors), name_of(path))


def read_words(path: PathOrName, *, encoding: str = "utf-8", errors: str = "strict") -> Text:
    """Read words or sentences a line; what stands behind a tab, such as morphemes, is left out."""
    return parse_words(read_bytes(path, encoding=encoding, errors=errors), name_of(path))


def parse_words(data: bytes, name: str = "<memory>") -> Text:
    """Lines in UTF-8, up to the first tab; see `read_words`.

    >>> parse_words("cats\\tcat @@s\\n\\nthe cats\\n".encode())[2]
    ('the', 'cats')
    """
    lines = data.decode("utf-8", "surrogatepass").removesuffix("\n").split("\n") if data else []
    return Text.of([line.partition("\t")[0].split() for line in lines], name)


def parse_segmentation(data: bytes, name: str = "<memory>") -> Segmentation:
    """Segmented lines in UTF-8; see `read_segmentation`.

    >>> parse_segmentation("cats\\tcat @@s\\nthe cats\\tthe cat @@s\\n".encode())[1]
    (('the',), ('cat', 's'))
    """
    sentences: list[list[str]] = []
    found: list[Morphemes] = []
    strange: list[int] = []
    for number, line in enumerate(
        data.decode("utf-8", "surrogatepass").removesuffix("\n").split("\n") if data else (), 1
    ):
        row = line.removesuffix("\r")
        if not row.strip():
            sentences.append([])
            continue
        words, morphemes = _parsed(row, f"{name}, line {number}")
        if len(morphemes) != len(words):
            strange.append(number)
            morphemes = _dealt(words, [piece for one in morphemes for piece in one])
        sentences.append(words)
        found += morphemes
    if strange:
        listed = ", ".join(map(str, strange[:_FEW])) + (", ..." if len(strange) > _FEW else "")
        warnings.warn(
            f"{name}: in {len(strange)} lines there are not as many words as words with morphemes (lines {listed}): "
            "their morphemes were dealt out by their letters",
            IsoglossWarning,
            stacklevel=3,
        )
    return Segmentation.at(Text.of(sentences, name), found)


def _parsed(row: str, place: str) -> tuple[list[str], list[Morphemes]]:
    """The words of a line, and morphemes of words; those of a line of one word are all its own."""
    left, tab, right = row.partition("\t")
    words, pieces = left.split(), right.partition("\t")[0].split()
    if not tab or not words or not pieces:
        raise SegmentationError(
            f"{place}: {row!r:.60} is no word (or sentence), a tab, and its morphemes, as in 'cats<TAB>cat {MARK}s'"
        )
    found: list[list[str]] = []
    for number, piece in enumerate(pieces):
        plain = piece.removeprefix(MARK) or piece
        if number == 0 and words[0].startswith(MARK):
            plain = piece  # nothing goes before it: the mark is of the word
        if found and (plain != piece or len(words) == 1):
            found[-1].append(plain)
        else:
            found.append([plain])
    return words, [tuple(one) for one in found]


def _dealt(words: Sequence[str], morphemes: Sequence[str]) -> list[Morphemes]:
    """Morphemes of a line as those of its words: each goes where most of its letters are."""
    from itertools import accumulate

    pieces = surface_pieces(["".join(words)], [tuple(morphemes)])[0]
    if len(pieces) != len(morphemes):  # fewer letters than morphemes: all to the first word
        return [tuple(morphemes), *(() for _ in words[1:])]
    ends = list(accumulate(len(word) for word in words))
    found: list[list[str]] = [[] for _ in words]
    begin = 0
    for piece, morpheme in zip(pieces, morphemes, strict=True):
        middle = begin + len(piece) / 2
        found[next(w for w, end in enumerate(ends) if middle <= end)].append(morpheme)
        begin += len(piece)
    return [tuple(one) for one in found]
