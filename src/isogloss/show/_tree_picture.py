"""What is drawn of a tree, or of two over the same words: checked, cleaned, and its arcs put on levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from isogloss.errors import ParameterError
from isogloss.show._console import _BIDI_CONTROLS
from isogloss.show._measure import printable

__all__ = ["Arc", "Picture", "Side", "place_arcs"]


class Arc(NamedTuple):
    """A link; `head` and `word` from 0, `level` from 1 for the arcs nearest to the words."""

    head: int
    word: int
    level: int

    @property
    def span(self) -> tuple[int, int]:
        return min(self.head, self.word), max(self.head, self.word)


class Side(NamedTuple):
    """One tree over the words: heads from 1, -1 unknown."""

    heads: tuple[int, ...]
    labels: tuple[str, ...]
    confidence: tuple[float | None, ...]
    tags: tuple[str, ...]

    @classmethod
    def of(cls, given: Mapping[str, Any], n: int) -> Side:
        heads = tuple(-1 if head is None else int(head) for head in _row(given, "heads", n, None))
        for word, head in enumerate(heads, start=1):
            if not -1 <= head <= n:
                raise ParameterError(f"show: word {word} has head {head}, but there are {n} words; 0 is the root")
        confidence = (None if value is None else float(value) for value in _row(given, "confidence", n, None))
        return cls(heads, _texts(given, "labels", n), tuple(confidence), _texts(given, "tags", n))

    def arcs(self) -> list[Arc]:
        """Links between words, each on a level of its own above all shorter links it lies over."""
        pairs = [(head - 1, word) for word, head in enumerate(self.heads) if head > 0 and head - 1 != word]
        return place_arcs(pairs, len(self.heads))


def place_arcs(pairs: Iterable[tuple[int, int]], n: int) -> list[Arc]:
    """Links (head, word) between `n` words, from 0, each on a level of its own above all shorter links it lies over.

    >>> [arc.level for arc in place_arcs([(0, 2), (0, 1), (1, 2)], 3)]
    [1, 2, 3]
    """
    import numpy as np  # only here: importing it takes longer than to draw a tree

    highest = np.zeros(n, np.int64)  # above the gap between a word and the next
    ending: list[set[int]] = [set() for _ in range(n)]  # levels of the arcs whose last word this is
    starting: list[set[int]] = [set() for _ in range(n)]
    placed: list[Arc] = []
    for head, word in sorted(pairs, key=lambda pair: (abs(pair[0] - pair[1]), min(pair))):
        low, high = min(head, word), max(head, word)
        level = 1 + int(highest[low:high].max())
        while level in ending[low] or level in starting[high]:  # two that meet at a word would look like one
            level += 1
        highest[low:high] = level
        starting[low].add(level)
        ending[high].add(level)
        placed.append(Arc(head, word, level))
    return placed


class Picture(NamedTuple):
    """What is to be drawn, checked."""

    words: tuple[str, ...]
    sides: tuple[Side, ...]
    names: tuple[str, ...]
    title: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Picture:
        if "words" not in given or "heads" not in given:
            raise ParameterError("show: a tree should have the keys 'words' and 'heads'")
        words = tuple(_clean(word) for word in given["words"])
        sides = [Side.of(given, len(words))]
        if given.get("other") is not None:
            second = Side.of(given["other"], len(words))
            if given["other"].get("tags") is None:
                second = second._replace(tags=sides[0].tags)
            sides.append(second)
        names = tuple(_clean(name) for name in given.get("names") or ("first", "second"))
        return cls(words, tuple(sides), names, _clean(given.get("title") or ""))

    def differs(self, word: int) -> str:
        """How the two trees differ at a word: in its "head", in its "label", in its "tag", or not at all."""
        if len(self.sides) == 1:
            return ""
        first, second = self.sides
        if first.heads[word] != second.heads[word]:
            return "head"
        if first.labels[word] != second.labels[word]:
            return "label"
        return "tag" if first.tags[word] != second.tags[word] else ""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tag of each word, or both where they are two: ``NOUN≠VERB``."""
        both = [
            dict.fromkeys(tag or "_" for tag in tags) for tags in zip(*(side.tags for side in self.sides), strict=True)
        ]
        return tuple("" if list(tags) == ["_"] else "≠".join(tags) for tags in both)

    def caption(self) -> list[str]:
        """What is said of the whole, in parts that a comma may join."""
        n = len(self.words)
        parts = [f"{n} word{'s' * (n != 1)}"]
        if len(self.sides) == 2:
            found = [self.differs(word) for word in range(n)]
            counted = [("head", "other heads"), ("label", "other labels alone"), ("tag", "other tags alone")]
            differ = [f"{found.count(kind)} with {words}" for kind, words in counted if kind in found]
            parts = [f"{' | '.join(self.names)}: {parts[0]}", *(differ or ["no difference"])]
        sure = [value for value in self.sides[0].confidence if value is not None]
        parts += [f"mean confidence {sum(sure) / len(sure):.2f}"] if sure else []
        return [f"{self.title}: {parts[0]}" if self.title else parts[0], *parts[1:]]


def _clean(text: Any) -> str:
    return _BIDI_CONTROLS.sub("", printable(str(text)))


def _texts(given: Mapping[str, Any], key: str, n: int) -> tuple[str, ...]:
    return tuple("" if text in (None, "_") else _clean(text) for text in _row(given, key, n, ""))


def _row(given: Mapping[str, Any], key: str, n: int, default: Any) -> Sequence[Any]:
    row = given.get(key)
    if row is None and key != "heads":
        return [default] * n
    row = list(row if row is not None else [])
    if len(row) != n:
        raise ParameterError(f"show: {len(row)} {key} for {n} words; give one for each")
    return row
