"""Names as labels of words, and as segments of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isogloss.data.mentions import Entity, Mentions
from isogloss.errors import MentionsError
from isogloss.structures.semimarkov import Segments

__all__ = ["OUTSIDE", "NameLabels"]

OUTSIDE = 0
"""The number of words outside of names, as a label of words and of segments."""


@dataclass(frozen=True)
class NameLabels:
    """Types of names as numbers.

    As segments, type t has label t + 1. As tags of words it has 2t + 1 where a name begins and 2t + 2 where it goes on.

    Examples
    --------
    >>> labels = NameLabels(("LOC", "PER"))
    >>> labels.tags(4, [(1, 3, "PER")]).tolist(), labels.names_of_tags([0, 3, 4, 1])
    ([0, 3, 4, 0], [(1, 3, 'PER'), (3, 4, 'LOC')])
    >>> labels.segments(4, [(1, 3, "PER")])
    ((0, 1, 0), (1, 3, 2), (3, 4, 0))
    """

    types: tuple[str, ...]

    @classmethod
    def of(cls, mentions: Mentions) -> NameLabels:
        """The types that occur, sorted; names that overlap are refused."""
        for s in range(len(mentions)):
            behind = 0
            for begin, end, _ in mentions.entities(s):
                if begin < behind:
                    raise MentionsError(
                        f"{mentions.name}, line {mentions.line_of(s)}: names of this sentence overlap, which tags and "
                        "segments cannot say. Leave out the inner ones"
                    )
                behind = end
        used = np.unique(mentions.types.ids).tolist()
        return cls(tuple(sorted(mentions.types.vocabulary[number] for number in used)))

    @property
    def n_tags(self) -> int:
        """Tags of words, the one outside of names among them."""
        return 2 * len(self.types) + 1

    @property
    def n_labels(self) -> int:
        """Labels of segments, likewise."""
        return len(self.types) + 1

    def moves(self, *, apart: bool = False) -> NDArray[np.bool_]:
        """bool[n_tags + 1, n_tags]: a name goes on after its beginning or its inside alone; see `ChainModel`.

        With `apart`, no name begins right behind another of its type.
        """
        k = self.n_tags
        allowed = np.ones((k + 1, k), np.bool_)
        inside = np.arange(2, k, 2)
        allowed[:, inside] = False
        allowed[inside, inside] = allowed[inside - 1, inside] = True
        if apart:
            allowed[inside, inside - 1] = allowed[inside - 1, inside - 1] = False
        return allowed

    def tags(self, n: int, entities: Iterable[Entity]) -> NDArray[np.int64]:
        """int64[n]: the tags of words."""
        found = np.zeros(n, np.int64)
        for begin, end, kind in entities:
            tag = 2 * self.types.index(kind) + 1
            found[begin:end] = tag + 1
            found[begin] = tag
        return found

    def names_of_tags(self, tags: Sequence[int] | NDArray[np.int64]) -> list[Entity]:
        """The names that tags of words say."""
        found: list[Entity] = []
        begin = -1
        row = [*(int(tag) for tag in tags), OUTSIDE]
        for t, tag in enumerate(row):
            goes_on = begin >= 0 and tag == row[begin] + 1
            if begin >= 0 and not goes_on:
                found.append((begin, t, self.types[(row[begin] - 1) // 2]))
                begin = -1
            if tag % 2:
                begin = t
        return found

    def segments(self, n: int, entities: Iterable[Entity]) -> Segments:
        """The whole sentence as segments: names, and words outside of them one by one."""
        found: list[tuple[int, int, int]] = []
        behind = 0
        for begin, end, kind in entities:
            found += [(t, t + 1, OUTSIDE) for t in range(behind, begin)]
            found.append((begin, end, self.types.index(kind) + 1))
            behind = end
        return (*found, *((t, t + 1, OUTSIDE) for t in range(behind, n)))

    def names_of_segments(self, segments: Segments) -> list[Entity]:
        """The names among segments."""
        return [(begin, end, self.types[label - 1]) for begin, end, label in segments if label != OUTSIDE]
