"""Words cut into pieces as words cut by people: a semi-Markov conditional random field over letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.features import Templates
from isogloss.layout import Layout, Numbers, check
from isogloss.learners.chain_model import LabelPairs
from isogloss.learners.segment_model import SegmentModel
from isogloss.learners.supported import Supported
from isogloss.structures.semimarkov import Segments, SemiMarkovs
from isogloss.structures.semimarkov2 import n_word_spans
from isogloss.tasks.segment.seen import Seen

__all__ = ["FittedCuts", "border_posteriors", "joined", "segments_of", "templates_for"]

Integers = NDArray[np.int64]

REACH = 5
"""Letters to each side of a border that are looked at."""


def _letters(first: int, last: int) -> str:
    return " & ".join("letter" if at == 0 else f"letter[{at:+d}]" for at in range(first, last))


LETTERS: tuple[Any, ...] = (
    (), *(_letters(-n, 0) for n in range(1, REACH + 1)), *(_letters(0, n) for n in range(1, REACH + 1)),
    *(_letters(-m, n) for m in range(1, 4) for n in range(1, 4)),
)  # fmt: skip
"""What is seen of letters around a border: before it, behind it, and on both sides."""
POSITIONS: tuple[Any, ...] = (
    *LETTERS, "look", "begun", "rest", "next", "before", "next & before", "left", "right", "left & right",
)  # fmt: skip
"""What is seen of a border: letters; all that is before it in the word, and all that is behind; how many letters follow
what is left of it in other words, and precede what is right of it; whether these are words."""
SPANS: tuple[Any, ...] = (
    "piece", "length", "place & length", "piece & place", "first.letter[-1] & piece", "piece & last.letter[+1]",
    "begins & place", "ends & place", "word & place", "begins & ends & place", "begins & length", "ends & length",
    "inside & place", "inside & length", "inside & begins & ends & place", "met",
)  # fmt: skip
"""What is seen of a piece: its letters, length and place in the word, what stands around it, how frequent it is at the
beginning, at the end and anywhere in words of the text, and how often it is a piece of other words cut by people."""
POSITIONS_BELIEVED: tuple[Any, ...] = (
    "border", "border & letter[-1] & letter", "border & next & before", "border[-1] & border & border[+1]",
)  # fmt: skip
SPANS_BELIEVED: tuple[Any, ...] = (
    "believed", "believed & place", "type & place", "believed & type & place", "believed & length",
)  # fmt: skip
"""What is seen of a border, and of a piece, in what a model without labels believes."""


SPANS_AROUND: tuple[Any, ...] = (
    "first.letter[-1] & piece & last.letter[+1]", "first.letter[-2] & first.letter[-1] & piece",
    "piece & last.letter[+1] & last.letter[+2]",
)  # fmt: skip
"""What is seen of a piece together with its neighbours: it helps where many words were cut, and is too rare where few
were."""


class PiecesMet(NamedTuple):
    """The pieces of words that people have cut, and how often each is met.

    A word that is learnt from does not count its own pieces. Otherwise no piece of such a word would ever be new, as
    those of other words often are.
    """

    codes: Integers
    """int64[n]: codes of the pieces, ascending."""
    counts: Integers
    """int64[n]: in how many places each is met."""

    @classmethod
    def of(cls, seen: Seen, rows: Integers) -> PiecesMet:
        """From words with the numbers of the spans that are their pieces."""
        return cls(*np.unique(seen.columns["piece"][rows], return_counts=True))

    def column(self, seen: Seen, own: Integers | None = None) -> Integers:
        """int64[n_spans]: how often each span is met as a piece, 1 + log₂ of it or 0.

        `own` has the numbers of the spans that are the pieces of these words, and are to be left out.
        """
        piece, n = seen.columns["piece"], len(self.codes)
        at = np.searchsorted(self.codes, piece)
        at[np.append(self.codes, 0)[at] != piece] = n
        found = np.append(self.counts, 0)[at]
        if own is not None:
            word = np.repeat(np.arange(len(seen.lengths)), n_word_spans(seen.lengths, seen.longest))
            there = word * (n + 1) + at
            mine, many = np.unique(there[own], return_counts=True)
            where = np.minimum(np.searchsorted(mine, there), max(0, len(mine) - 1))
            found = found - np.where(mine[where] == there, many[where], 0)
        return np.where(found > 0, np.log2(np.maximum(found, 1)).astype(np.int64) + 1, 0)


def templates_for(*, believed: bool, around: bool) -> tuple[Templates, Templates]:
    """What borders and pieces are seen by."""
    positions = POSITIONS + (POSITIONS_BELIEVED if believed else ())
    spans = SPANS + (SPANS_AROUND if around else ()) + (SPANS_BELIEVED if believed else ())
    return Templates(positions, kind="border"), Templates(spans, kind="piece")


@dataclass(frozen=True, eq=False)
class FittedCuts:
    """What was learnt of cutting.

    Parameters
    ----------
    longest : int
        The most letters of a piece.
    borders, pieces : Supported
        Attributes of positions and of spans.
    met : PiecesMet
    weights : float32[n_weights]
        Of borders, then of pieces, then three that all words share.
    """

    longest: int
    borders: Supported
    pieces: Supported
    met: PiecesMet
    weights: NDArray[np.float32]

    @classmethod
    def collected(
        cls, seen: Seen, cuts: Sequence[Segments], *, believed: bool = True, around: bool = False, min_count: int = 1
    ) -> FittedCuts:
        """What has weights: all that is seen at some letter, and what is seen of right pieces."""
        borders, pieces = templates_for(believed=believed, around=around)
        rows = rows_of(cuts, seen.lengths, seen.longest)
        met = PiecesMet.of(seen, rows)
        parts = seen.spans().with_columns(met=met.column(seen, rows))
        right = np.zeros(parts.n_parts, np.bool_)
        right[rows] = True
        found = []
        for templates, index, k in (
            (borders, borders.index(seen.positions(), min_count=min_count), 2),
            (pieces, pieces.index(parts, gold=right, min_count=min_count), 1),
        ):
            n = index.n_features  # of the two columns of positions, the second is for letters where no piece begins
            found.append(Supported(templates, index, LabelPairs(np.arange(n + 1), np.zeros(n, np.int32), k)))
        return cls(seen.longest, found[0], found[1], met, np.zeros(0, np.float32))

    def model(self, seen: Seen, cuts: Sequence[Segments] | None = None) -> SegmentModel:
        """The model of some words; of those that are learnt from, with how they are cut."""
        own = None if cuts is None else rows_of(cuts, seen.lengths, seen.longest)
        spans = seen.spans().with_columns(met=self.met.column(seen, own))
        borders, pieces = self.borders.on(seen.positions()), self.pieces.on(spans)
        return SegmentModel(borders, pieces, seen.lengths, self.longest, first=[0], inside=[1])

    def distributions(self, seen: Seen) -> SemiMarkovs:
        """The distribution over the ways to cut each word."""
        return self.model(seen).batch(self.weights, np.arange(len(seen.lengths)))

    @property
    def n_features(self) -> int:
        """Attributes that have weights."""
        return self.borders.index.n_features + self.pieces.index.n_features

    def learnt(self, weights: NDArray[np.float64], least: float = 1e-3) -> FittedCuts:
        """With weights, without those that are next to 0."""
        kept = np.where(np.abs(weights) < least, 0.0, weights).astype(np.float32)
        n, m = len(self.borders.pairs.labels), len(self.pieces.pairs.labels)
        borders, first = self.borders.compact(kept[:n])
        pieces, second = self.pieces.compact(kept[n : n + m])
        return replace(self, borders=borders, pieces=pieces, weights=np.concatenate([first, second, kept[n + m :]]))

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        n, m = len(self.borders.pairs.labels), len(self.pieces.pairs.labels)
        return {
            **store.prefixed("borders.", self.borders.to_arrays(self.weights[:n])),
            **store.prefixed("pieces.", self.pieces.to_arrays(self.weights[n : n + m])),
            "shared": self.weights[n + m :], **self.met._asdict(),
        }  # fmt: skip

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], longest: int, *, believed: bool = True, around: bool = False
    ) -> FittedCuts:
        """The inverse of `to_arrays`; what is wrong with it is refused."""
        made, weights = [], []
        both = templates_for(believed=believed, around=around)
        for name, templates, k in zip(("borders", "pieces"), both, (2, 1), strict=True):
            own, known = Supported.from_arrays(
                store.unprefixed(f"{name}.", arrays), templates, k, f"{name} of the saved model"
            )  # fmt: skip
            made.append(own)
            weights.append(known)
        layout: Layout = {
            "shared": Numbers("float32", 3), "codes": Numbers("int64", "met", order="rising"),
            "counts": Numbers("int64", "met", least=1),
        }  # fmt: skip
        found = check(arrays, layout, "the saved model")
        met = PiecesMet(found["codes"], found["counts"])
        return cls(longest, made[0], made[1], met, np.concatenate([*weights, found["shared"]]))


def rows_of(cuts: Sequence[Segments], lengths: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Where the pieces of words are among all spans."""
    found: list[int] = []
    start = 0
    for y, n in zip(cuts, lengths.tolist(), strict=True):
        for begin, end, _ in y:
            # spans that begin before: longest each, or as many as letters are left
            full = max(0, min(begin, n - longest + 1))
            rest = begin - full
            before = full * longest + rest * (n - full) - rest * (rest - 1) // 2
            found.append(start + before + end - begin - 1)
        short = min(n, longest)
        start += short * n - short * (short - 1) // 2
    return np.array(found, np.int64)


def segments_of(sizes: Sequence[int], longest: int) -> Segments:
    """Pieces of these numbers of letters; those that are too long are cut into several."""
    found: list[tuple[int, int, int]] = []
    begin = 0
    for size in sizes:
        marks = [*range(begin, begin + size, longest), begin + size]
        found += [(a, b, 0) for a, b in pairwise(marks)]
        begin += size
    return tuple(found)


def joined(y: Segments, longest: int) -> Segments:
    """The inverse of `segments_of`: a piece that is as long as pieces may be goes on in the next."""
    found: list[tuple[int, int, int]] = []
    before = 0
    for begin, end, label in y:
        if found and before == longest:
            first, _, kind = found.pop()
            found.append((first, end, kind))
        else:
            found.append((begin, end, label))
        before = end - begin
    return tuple(found)


def border_posteriors(segments: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[n - 1]: how probable a border before each letter but the first is, from float64[n, longest]."""
    n, longest = segments.shape
    begins = segments.sum(axis=1)
    begins[longest:] -= segments[: max(0, n - longest), -1]  # these go on
    return np.asarray(np.clip(begins[1:], 0.0, 1.0))
