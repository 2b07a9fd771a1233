"""Trees of constituents, one or two, with characters for a terminal and as a picture in SVG.

A dictionary, as `isogloss.data.Constituents.as_dict` makes it, has `words`, `labels` (of nodes, a node before those
below it), `parents` (the node above each, from 0, -1 for none) and `attached` (the node that each word hangs on), and
may have

- `tags`: a tag for each word;
- `confidence`: how sure the model is of each node, 0 to 1;
- `other`: the `labels`, `parents` and `attached` (and `tags`, `confidence`) of a second tree of the same words, and
  `names`, what the two are called;
- `title`: where the sentence is from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from isogloss.errors import ParameterError
from isogloss.show._console import _BIDI_CONTROLS, _wrapped
from isogloss.show._figure import _LINK, _MISSED, _WRONG
from isogloss.show._measure import clip, printable, runs_right_to_left
from isogloss.show._tree_svg import EDGE, LONGEST, SIZE, STYLE, Layout, closing, opening, text_width, word_texts

__all__ = ["Bracketing", "constituents_svg", "constituents_terminal"]

Span = tuple[int, int, str]


class Nodes(NamedTuple):
    """One tree over the words."""

    labels: tuple[str, ...]
    parents: tuple[int, ...]
    attached: tuple[int, ...]
    tags: tuple[str, ...]
    confidence: tuple[float | None, ...]
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, given: Mapping[str, Any], n: int) -> Nodes:
        labels = tuple(_clean(label) for label in given["labels"])
        parents, attached = tuple(map(int, given["parents"])), tuple(map(int, given["attached"]))
        tags = tuple(_clean(tag) for tag in given.get("tags") or [""] * n)
        sure = given.get("confidence")
        confidence = tuple([None] * len(labels) if sure is None else [float(value) for value in sure])
        if len(parents) != len(labels) or len(attached) != n or len(tags) != n or len(confidence) != len(labels):
            raise ParameterError("show: a tree should have a parent for each label, and a node and a tag for each word")
        if any(not -1 <= parent < node for node, parent in enumerate(parents)):
            raise ParameterError("show: a node should come after the one above it; -1 is for none")
        if any(not -1 <= node < len(labels) for node in attached):
            raise ParameterError("show: a word hangs on a node that is not there; -1 is for none")
        low, high = [n] * len(labels), [0] * len(labels)
        for word, node in enumerate(attached):
            if node >= 0:
                low[node], high[node] = min(low[node], word), max(high[node], word + 1)
        for node in range(len(labels) - 1, -1, -1):
            if (parent := parents[node]) >= 0:
                low[parent], high[parent] = min(low[parent], low[node]), max(high[parent], high[node])
        return cls(labels, parents, attached, tags, confidence, tuple(zip(low, high, strict=True)))

    def children(self, node: int) -> list[tuple[int, int]]:
        """(first word, node) of what is below a node, or below nothing for -1; words have the node -1."""
        nodes = [(self.spans[k][0], k) for k, parent in enumerate(self.parents) if parent == node]
        words = [(word, -1) for word, above in enumerate(self.attached) if above == node]
        return sorted(nodes + words)

    def brackets(self) -> list[Span]:
        """First word, the one behind the last, and label of each node."""
        return [(begin, end, label) for (begin, end), label in zip(self.spans, self.labels, strict=True)]

    def heights(self) -> list[int]:
        """How many nodes are below each, at the most, and itself."""
        found = [1] * len(self.labels)
        for node in range(len(found) - 1, -1, -1):
            if (parent := self.parents[node]) >= 0:
                found[parent] = max(found[parent], found[node] + 1)
        return found


class Bracketing(NamedTuple):
    """What is to be drawn, checked."""

    words: tuple[str, ...]
    sides: tuple[Nodes, ...]
    names: tuple[str, ...]
    title: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Bracketing:
        if any(key not in given for key in ("words", "labels", "parents", "attached")):
            raise ParameterError("show: a tree should have the keys 'words', 'labels', 'parents' and 'attached'")
        words = tuple(_clean(word) for word in given["words"])
        sides = [Nodes.of(given, len(words))]
        if given.get("other") is not None:
            sides.append(Nodes.of(given["other"], len(words)))
        names = tuple(_clean(name) for name in given.get("names") or ("first", "second"))
        return cls(words, tuple(sides), names, _clean(given.get("title") or ""))

    def alone(self, side: int) -> set[int]:
        """Nodes that the other tree does not have: other words, or another label."""
        if len(self.sides) == 1:
            return set()
        there = Counter(self.sides[1 - side].brackets())
        found = set()
        for node, bracket in enumerate(self.sides[side].brackets()):
            if there[bracket]:
                there[bracket] -= 1
            else:
                found.add(node)
        return found

    def tag(self, word: int) -> str:
        """The tag of a word, or both where they are two: ``NN≠VB``."""
        return "≠".join(dict.fromkeys(side.tags[word] or "_" for side in self.sides)).removeprefix("_")

    def caption(self) -> list[str]:
        """What is said of the whole, in parts that a comma may join."""
        n = len(self.words)
        parts = [f"{n} word{'s' * (n != 1)}, {len(self.sides[0].labels)} brackets"]
        if len(self.sides) == 2:
            own, missed = len(self.alone(0)), len(self.alone(1))
            tags = sum("≠" in self.tag(word) for word in range(n))
            parts = [f"{' | '.join(self.names)}: {parts[0]}"]
            parts += [f"{own} not in {self.names[1]}", f"{missed} in {self.names[1]} alone"] if own or missed else []
            parts += [f"{tags} with other tags"] if tags else []
            parts += [] if own or missed or tags else ["no difference"]
        sure = [value for value in self.sides[0].confidence if value is not None]
        parts += [f"mean confidence {sum(sure) / len(sure):.2f}"] if sure else []
        return [f"{self.title}: {parts[0]}" if self.title else parts[0], *parts[1:]]


def _clean(text: Any) -> str:
    return _BIDI_CONTROLS.sub("", printable(str(text)))


# Terminal ------------------------------------------------------------------------------------------------------------


def constituents_terminal(tree: Mapping[str, Any], *, width: int = 80, colour: bool = False) -> str:
    """Draw one tree, or two over the same words, with characters: nodes run down, what is below them is indented.

    Of two trees the first is drawn; ``≠`` marks nodes that the second does not have, and nodes that it has alone are
    listed below.

    Examples
    --------
    >>> print(constituents_terminal({"words": ["The", "dog", "sleeps"], "tags": ["DT", "NN", "VBZ"],
    ...     "labels": ["S", "NP", "VP"], "parents": [-1, 0, 0], "attached": [1, 1, 2]}))
    S
    ├─NP
    │ ├─DT The
    │ └─NN dog
    └─VP
      └─VBZ sleeps
    3 words, 3 brackets
    """
    if width < 20:
        raise ParameterError(f"show.constituents_terminal: width should be at least 20 columns, not {width!r}")
    picture = Bracketing.of(tree)
    alone = picture.alone(0)
    rows = [
        f"\x1b[31;1m{row}\x1b[0m" if colour and node in alone else row
        for row, node in _rows(picture, -1, "", alone, width)
    ]
    for node in sorted(picture.alone(1)) if len(picture.sides) == 2 else ():
        begin, end, label = picture.sides[1].brackets()[node]
        rows.append(clip(f"≠ {label or '( )'} over {' '.join(picture.words[begin:end])}", width))
    return "\n".join([*rows, *_wrapped("", picture.caption(), 2, width)])


def _rows(picture: Bracketing, node: int, before: str, alone: set[int], width: int) -> Iterator[tuple[str, int]]:
    """Lines of what is below a node, each with its node."""
    side = picture.sides[0]
    children = side.children(node)
    for number, (word, child) in enumerate(children):
        last = number == len(children) - 1
        branch = "" if node < 0 else "└─" if last else "├─"
        if child < 0:
            yield clip(f"{before}{branch}{picture.tag(word)} {picture.words[word]}", width), -1
            continue
        sure = side.confidence[child]
        told = f"{side.labels[child] or '( )'}{' ≠' * (child in alone)}{'' if sure is None else f' {sure:.2f}'}"
        yield clip(f"{before}{branch}{told}", width), child
        yield from _rows(picture, child, before + ("" if node < 0 else "  " if last else "│ "), alone, width)


# SVG -----------------------------------------------------------------------------------------------------------------

_SMALL = 12
_STEP = 34
_GAP = 18


def constituents_svg(tree: Mapping[str, Any], *, standalone: bool = True) -> str:
    """Draw one tree above its words, and a second one upside down below them, as SVG.

    Less sure nodes are fainter; nodes that the other tree does not have are coloured, with ``≠``. Pointing at a node
    shows its words. Words written from right to left run that way.

    Returns
    -------
    str
        Well-formed XML without scripts or anything to load.
    """
    picture = Bracketing.of(tree)
    layout = _layout(picture)
    name = escape(", ".join(picture.caption()))
    parts = [opening(layout.width, layout.height, name, STYLE if standalone else "")]
    for word, x in enumerate(layout.middles):
        parts += word_texts(picture.words[word], picture.tag(word), x, layout.above + SIZE, _SMALL)
    for number in range(len(picture.sides)):
        lines, texts = _drawn(picture, layout, number)
        parts += [*lines, *texts]
    parts.append(closing(layout.height, name, _SMALL))
    return "".join(parts)


def _layout(picture: Bracketing) -> Layout:
    widths = [
        max(text_width(clip(word, LONGEST), SIZE), text_width(picture.tag(k), _SMALL), 24)
        for k, word in enumerate(picture.words)
    ]
    middles, at = [], float(EDGE)
    for own in widths:
        middles.append(at + own / 2)
        at += own + _GAP
    width = max(at - _GAP + EDGE, 2 * EDGE + text_width(", ".join(picture.caption()), _SMALL))
    if runs_right_to_left(picture.words):
        middles = [width - middle for middle in middles]
    heights = [_STEP * max(side.heights(), default=0) + _SMALL for side in picture.sides]
    above = heights[0] + EDGE
    below = above + 2 * SIZE + _SMALL
    return Layout(middles, width, below + (heights[1] if len(heights) > 1 else 0) + 30, above, below)


def _drawn(picture: Bracketing, layout: Layout, number: int) -> tuple[list[str], list[str]]:
    """Lines and labels of one tree."""
    side, alone = picture.sides[number], picture.alone(number)
    base, sign = (layout.above, -1) if number == 0 else (layout.below, 1)
    heights = side.heights()
    places: list[tuple[float, float]] = [(0.0, 0.0)] * len(heights)
    for node in range(len(heights) - 1, -1, -1):
        below = [layout.middles[word] if child < 0 else places[child][0] for word, child in side.children(node)]
        places[node] = ((min(below) + max(below)) / 2, base + sign * _STEP * heights[node])
    lines, texts = [], []
    for node, (x, y) in enumerate(places):
        colour = (_WRONG if number == 0 else _MISSED) if node in alone else _LINK
        sure = side.confidence[node]
        opacity = 1.0 if sure is None else 0.3 + 0.7 * min(max(sure, 0.0), 1.0)
        begin, end = side.spans[node]
        told = f"{side.labels[node]}: {' '.join(picture.words[begin:end])}" + ("" if sure is None else f" ({sure:.2f})")
        title = f"<title>{escape(told)}</title>"
        for word, child in side.children(node):
            to_x, to_y = (layout.middles[word], base) if child < 0 else places[child]
            lines.append(
                f'<path d="M{x:.5g} {y - sign * 4:.5g}L{to_x:.5g} {to_y + (sign * 12 if child >= 0 else 0):.5g}" '
                f'fill="none" stroke="{colour}" stroke-opacity="{opacity:.2f}" '
                f'stroke-width="{2.4 if node in alone else 1.3}">{title}</path>'
            )
        label = ("≠ " if node in alone else "") + (clip(side.labels[node], LONGEST) or "( )")
        texts.append(
            f'<text x="{x:.5g}" y="{y + 4:.5g}" text-anchor="middle" font-size="{_SMALL}" '
            f'fill-opacity="{opacity:.2f}">{escape(label)}{title}</text>'
        )
    return lines, texts
