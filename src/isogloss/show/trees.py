"""Dependency trees, one or two, with characters for a terminal and as a picture in SVG.

A dictionary, as `isogloss.data.Treebank.as_dict` makes it, has `words` and `heads` (0 is the root, 1 the first word, -1
or None unknown), and may have

- `labels`, `tags`: a relation and a tag for each word;
- `confidence`: how sure the model is of each link, 0 to 1;
- `other`: the `heads` (and `labels`, `confidence`) of a second tree of the same words, and `names`, what the two are
  called;
- `title`: where the sentence is from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from isogloss.errors import ParameterError
from isogloss.show._console import _embedded, _word
from isogloss.show._figure import _COLUMN, _FONT, _LINK, _MISSED, _WRONG
from isogloss.show._measure import clip, display_width, printable, runs_right_to_left

__all__ = ["tree_svg", "tree_terminal"]

_WIDE_LEVELS = 12  # more levels of arcs than this are drawn one column each
_LONGEST = 28
_UP, _DOWN, _WORD, _AWAY = 1, 2, 4, 8  # where lines leave a cell: towards the word, and away from it
_BOXES = {
    0: " ",
    _UP | _DOWN: "│",
    _WORD | _AWAY: "─",
    _WORD: "─",
    _WORD | _DOWN: "╭",
    _WORD | _UP: "╰",
    _WORD | _UP | _DOWN: "├",
    _WORD | _AWAY | _DOWN: "┬",
    _WORD | _AWAY | _UP: "┴",
    _WORD | _AWAY | _UP | _DOWN: "┼",
}
_MIRROR = str.maketrans("╭╰├▶", "╮╯┤◀")


class _Arc(NamedTuple):
    """A link; `head` and `word` from 0, `level` from 1 for the arcs nearest to the words."""

    head: int
    word: int
    level: int

    @property
    def span(self) -> tuple[int, int]:
        return min(self.head, self.word), max(self.head, self.word)


class _Side(NamedTuple):
    """One tree over the words: heads from 1, -1 unknown."""

    heads: tuple[int, ...]
    labels: tuple[str, ...]
    confidence: tuple[float | None, ...]

    @classmethod
    def of(cls, given: Mapping[str, Any], n: int) -> _Side:
        heads = tuple(-1 if head is None else int(head) for head in _row(given, "heads", n, None))
        for word, head in enumerate(heads, start=1):
            if not -1 <= head <= n:
                raise ParameterError(f"show: word {word} has head {head}, but there are {n} words; 0 is the root")
        labels = tuple("" if label in (None, "_") else printable(str(label)) for label in _row(given, "labels", n, ""))
        confidence = (None if value is None else float(value) for value in _row(given, "confidence", n, None))
        return cls(heads, labels, tuple(confidence))

    def arcs(self) -> list[_Arc]:
        """Links between words, each on a level of its own above all shorter links it lies over."""
        pairs = [(head - 1, word) for word, head in enumerate(self.heads) if head > 0 and head - 1 != word]
        placed: list[_Arc] = []
        for head, word in sorted(pairs, key=lambda pair: (abs(pair[0] - pair[1]), min(pair))):
            low, high = min(head, word), max(head, word)
            level = 1 + max((arc.level for arc in placed if arc.span[0] < high and low < arc.span[1]), default=0)
            beside = {arc.level for arc in placed if arc.span[1] == low or arc.span[0] == high}
            while level in beside:  # two that meet at a word would look like one
                level += 1
            placed.append(_Arc(head, word, level))
        return placed


class _Picture(NamedTuple):
    """What is to be drawn, checked."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    sides: tuple[_Side, ...]
    names: tuple[str, ...]
    title: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> _Picture:
        if "words" not in given or "heads" not in given:
            raise ParameterError("show: a tree should have the keys 'words' and 'heads'")
        words = tuple(str(word) for word in given["words"])
        sides = [_Side.of(given, len(words))]
        if given.get("other") is not None:
            sides.append(_Side.of(given["other"], len(words)))
        tags = tuple("" if tag in (None, "_") else str(tag) for tag in _row(given, "tags", len(words), ""))
        names = tuple(str(name) for name in given.get("names") or ("first", "second"))
        return cls(words, tags, tuple(sides), names, str(given.get("title") or ""))

    def differs(self, word: int) -> str:
        """How the two trees differ at a word: in its "head", in its "label", or not at all."""
        if len(self.sides) == 1:
            return ""
        first, second = self.sides
        if first.heads[word] != second.heads[word]:
            return "head"
        return "label" if first.labels[word] != second.labels[word] else ""

    def caption(self) -> str:
        n = len(self.words)
        text = f"{n} word{'s' * (n != 1)}"
        if len(self.sides) == 2:
            found = [self.differs(word) for word in range(n)]
            text = f"{' | '.join(self.names)}: {text}, {found.count('head')} with other heads, "
            text += f"{found.count('label')} with other labels alone"
        sure = [value for value in self.sides[0].confidence if value is not None]
        text += f", mean confidence {sum(sure) / len(sure):.2f}" if sure else ""
        return printable(f"{self.title}: {text}" if self.title else text)


def _row(given: Mapping[str, Any], key: str, n: int, default: Any) -> Sequence[Any]:
    row = given.get(key)
    if row is None and key != "heads":
        return [default] * n
    row = list(row if row is not None else [])
    if len(row) != n:
        raise ParameterError(f"show: {len(row)} {key} for {n} words; give one for each")
    return row


# Terminal ------------------------------------------------------------------------------------------------------------


def tree_terminal(tree: Mapping[str, Any], *, width: int = 80, colour: bool = False) -> str:
    """Draw one tree, or two over the same words, with characters.

    Words run down; arcs run beside them, those of a second tree on the other side, with an arrow at the word that
    depends. ``●`` is the root, and ``≠`` marks words whose head or label differs.

    Parameters
    ----------
    tree : dict
        See `isogloss.show.trees`.
    width : int
        Columns to fill; words and labels are clipped rather than the drawing.
    colour : bool
        Use ANSI colours for differences. The drawing says the same without them.

    Examples
    --------
    >>> print(tree_terminal({"words": ["She", "reads", "old", "books"], "heads": [2, 0, 4, 2],
    ...                      "labels": ["nsubj", "root", "amod", "obj"], "confidence": [0.99, 1, 0.9, 0.71]}))
      ╭─▶ 1 She    nsubj  0.99
    ╭─┴─● 2 reads  root   1.00
    │ ╭─▶ 3 old    amod   0.90
    ╰─┴─▶ 4 books  obj    0.71
    4 words, mean confidence 0.90
    """
    if width < 20:
        raise ParameterError(f"show.tree_terminal: width should be at least 20 columns, not {width!r}")
    picture = _Picture.of(tree)
    left = _gutter(picture.sides[0])
    right = [row[::-1].translate(_MIRROR) for row in _gutter(picture.sides[1])] if len(picture.sides) == 2 else []
    room = max(8, (width - 4 - len(left[0] if left else "") - len(right[0] if right else "")) // 3)
    numbers = _aligned([str(k + 1) for k in range(len(picture.words))], "right")
    words = _aligned([_word(word, room) for word in picture.words])
    lines = [" ".join(row) for row in zip(left, numbers, words, strict=True)]
    if right:
        lines = [f"{line} {arcs}" for line, arcs in zip(lines, right, strict=True)]
    notes = [_aligned([clip(printable(tag), room) for tag in picture.tags])]
    for side in picture.sides:
        notes.append(_aligned([clip(label, room) for label in side.labels]))
        notes.append(["" if value is None else f"{value:.2f}" for value in side.confidence])
    if len(picture.sides) == 2:
        notes.append(["≠" if picture.differs(word) else "" for word in range(len(lines))])
    for column in notes:
        if any(text.strip() for text in column):
            lines = [f"{line}  {text}" for line, text in zip(lines, _aligned(column), strict=True)]
    if colour:
        lines = [f"\x1b[31;1m{line}\x1b[0m" if picture.differs(word) else line for word, line in enumerate(lines)]
    return "\n".join(line.rstrip(" ") for line in [*lines, picture.caption()])


def _gutter(side: _Side) -> list[str]:
    """The arcs of one tree, words on the right: a string for each word, all of the same width."""
    arcs = side.arcs()
    levels = max((arc.level for arc in arcs), default=0)
    cells = [[0] * levels for _ in side.heads]  # level k is cell levels - k, so that the nearest stands last
    for arc in arcs:
        low, high = arc.span
        at = levels - arc.level
        cells[low][at] |= _WORD | _DOWN
        cells[high][at] |= _WORD | _UP
        for row in range(low + 1, high):
            cells[row][at] |= _UP | _DOWN
        for row in (low, high):
            for column in range(at + 1, levels):
                cells[row][column] |= _WORD | _AWAY
    step = 2 if levels <= _WIDE_LEVELS else 1
    rows = []
    for head, line in zip(side.heads, cells, strict=True):
        text = "".join(_BOXES[cell] + ("─" if cell & _WORD else " ") * (step - 1) for cell in line)
        arrow = "●" if head == 0 else "▶" if head > 0 else "?"
        rows.append(text + arrow)
    return rows


def _aligned(column: Sequence[str], side: str = "left") -> list[str]:
    width = max(map(display_width, column), default=0)
    padded = []
    for text in column:
        spaces = " " * (width - display_width(text))
        padded.append(spaces + text if side == "right" else _embedded(text) + spaces)
    return padded


# SVG -----------------------------------------------------------------------------------------------------------------

_SIZE, _SMALL = 15, 11  # font sizes of words and of labels, in pixels
_STEP = 24  # between levels of arcs
_GAP = 18  # between words, at least
_EDGE = 12
_STYLE = (  # text has a rim of the background, so that lines behind it do not strike it through
    "<style>.isogloss-tree{color:#1d1f22;background:#fff}"
    ".isogloss-tree text{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    "@media (prefers-color-scheme:dark){.isogloss-tree{color:#e9e9e6;background:#1c1f23}"
    ".isogloss-tree text{stroke:#1c1f23}}</style>"
)


class _Layout(NamedTuple):
    """Pixels: where the middle of each word is, and where its arcs begin above (and, of a second tree, below)."""

    middles: list[float]
    width: float
    height: float
    above: float
    below: float


def tree_svg(tree: Mapping[str, Any], *, standalone: bool = True) -> str:
    """Draw one tree above its words, and a second one below them, as SVG.

    Less sure links are fainter. Links that differ between the trees are thicker and coloured, and ``≠`` stands before
    their labels. Words written from right to left run that way. Pointing at a link names its words, label and
    confidence.

    Parameters
    ----------
    tree : dict
        See `isogloss.show.trees`.
    standalone : bool
        With its own colours, for light and for dark screens. Otherwise it takes the colour of the page around it.

    Returns
    -------
    str
        Well-formed XML without scripts or anything to load.
    """
    picture = _Picture.of(tree)
    layout = _layout(picture)
    name = escape(picture.caption())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" class="isogloss-tree" width="{layout.width:.0f}" '
        f'height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" font-family="{_FONT}" '
        f'font-size="{_SIZE}" fill="currentColor" aria-label="{name}">'
        f"{_STYLE if standalone else ''}"
    ]
    parts += _labels(picture, layout)
    for number in range(len(picture.sides)):
        parts += _links(picture, layout, number)
    parts.append(
        f'<text x="{_EDGE}" y="{layout.height - 8:.0f}" font-size="{_SMALL}" fill-opacity="0.7">{name}</text></svg>'
    )
    return "".join(parts)


def _needs(picture: _Picture) -> Iterator[tuple[int, int, float]]:
    """Two words and how far apart, in pixels, their middles must be at least."""
    widths = [_text_width(clip(printable(word), _LONGEST), _SIZE) for word in picture.words]
    widths = [max(width, _text_width(tag, _SMALL)) for width, tag in zip(widths, picture.tags, strict=True)]
    for left, (first, second) in enumerate(pairwise(widths)):
        yield left, left + 1, (first + second) / 2 + _GAP
    for side in picture.sides:
        for arc in sorted(side.arcs(), key=lambda arc: arc.level):
            yield *arc.span, _text_width(_note(picture, side, arc.word), _SMALL) + 20


def _layout(picture: _Picture) -> _Layout:
    n = len(picture.words)
    steps = [0.0] * max(n - 1, 0)
    for first, last, least in _needs(picture):
        missing = least - sum(steps[first:last])
        if missing > 0:  # spread what is missing over the words between
            for k in range(first, last):
                steps[k] += missing / (last - first)
    half = [_text_width(clip(printable(word), _LONGEST), _SIZE) / 2 for word in picture.words]
    reach = [_text_width(_note(picture, side, k), _SMALL) / 2 for side in picture.sides for k in (0, n - 1) if n]
    edge = _EDGE + max([*half[:1], *half[-1:], *reach], default=0)
    middles = [edge]
    for step in steps:
        middles.append(middles[-1] + step)
    width = max(middles[-1] + edge, 2 * _EDGE + _text_width(picture.caption(), _SMALL))
    if runs_right_to_left(picture.words):
        middles = [width - middle for middle in middles]
    heights = [_height(side) for side in picture.sides]
    above = heights[0] + _EDGE
    below = above + 2 * _SIZE + (_SMALL + 4 if any(picture.tags) else 0)
    bottom = below + (heights[1] if len(heights) > 1 else 0)
    return _Layout(middles[:n], width, bottom + 28, above, below)


def _height(side: _Side) -> float:
    levels = max((arc.level for arc in side.arcs()), default=0)
    return _STEP * (levels + (1 if 0 in side.heads else 0)) + _SMALL + 6


def _labels(picture: _Picture, layout: _Layout) -> Iterator[str]:
    for word, tag, x in zip(picture.words, picture.tags, layout.middles, strict=True):
        y = layout.above + _SIZE + 2
        shown, full = clip(printable(word), _LONGEST), printable(word)
        title = f"<title>{escape(full)}</title>" if shown != full else ""
        yield f'<text x="{x:.5g}" y="{y:.5g}" text-anchor="middle">{escape(shown)}{title}</text>'
        if tag:
            yield (
                f'<text x="{x:.5g}" y="{y + _SMALL + 4:.5g}" text-anchor="middle" font-size="{_SMALL}" '
                f'fill-opacity="0.7">{escape(printable(tag))}</text>'
            )


def _links(picture: _Picture, layout: _Layout, number: int) -> Iterable[str]:
    """The arcs and the root of one tree: above the words, or below them."""
    side = picture.sides[number]
    base, sign = (layout.above, -1) if number == 0 else (layout.below, 1)
    arcs = side.arcs()
    top = max((arc.level for arc in arcs), default=0) + 1
    for arc in arcs:
        start, end = layout.middles[arc.head], layout.middles[arc.word]
        start += 5 if end > start else -5  # leave the middle of a head to the arrow that points at it
        crest = base + sign * _STEP * arc.level
        bend = min(8.0, abs(end - start) / 2) * (1 if end > start else -1)
        path = (
            f"M{start:.5g} {base:.5g}V{crest - sign * 8:.5g}Q{start:.5g} {crest:.5g} {start + bend:.5g} {crest:.5g}"
            f"H{end - bend:.5g}Q{end:.5g} {crest:.5g} {end:.5g} {crest - sign * 8:.5g}V{base + sign * 5:.5g}"
        )
        yield _link(picture, number, arc.word, path, ((start + end) / 2, crest), (end, base), sign)
    for word, head in enumerate(side.heads):
        if head == 0:
            x, crest = layout.middles[word], base + sign * _STEP * top
            path = f"M{x:.5g} {crest:.5g}V{base + sign * 5:.5g}"
            yield _link(picture, number, word, path, (x, crest), (x, base), sign)


def _link(
    picture: _Picture,
    number: int,
    word: int,
    path: str,
    label_at: tuple[float, float],
    arrow_at: tuple[float, float],
    sign: int,
) -> str:
    side = picture.sides[number]
    differs = picture.differs(word)
    colour = (_WRONG if number == 0 else _MISSED) if differs else _LINK
    sure = side.confidence[word]
    opacity = 1.0 if sure is None else 0.25 + 0.75 * min(max(sure, 0.0), 1.0)
    (x, y), (tip_x, tip_y) = label_at, arrow_at
    arrow = f"M{tip_x:.5g} {tip_y + sign:.5g}l-3.5 {7 * sign}h7z"
    head = side.heads[word]
    names = [printable(picture.words[head - 1]) if head else "root", printable(picture.words[word])]
    told = " → ".join(names) + (f": {side.labels[word]}" if side.labels[word] else "")
    told += "" if sure is None else f" ({sure:.2f})"
    offset = -4 if sign < 0 else _SMALL + 2
    return (
        f'<g><title>{escape(told)}</title><g stroke-opacity="{opacity:.2f}" fill-opacity="{opacity:.2f}">'
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{2.6 if differs else 1.4}"/>'
        f'<path d="{arrow}" fill="{colour}"/></g>'
        f'<text x="{x:.5g}" y="{y + offset:.5g}" text-anchor="middle" font-size="{_SMALL}">'
        f"{escape(_note(picture, side, word))}</text></g>"
    )


def _note(picture: _Picture, side: _Side, word: int) -> str:
    """What stands at a link: label and confidence in percent."""
    sure = side.confidence[word]
    parts = ["≠"] if picture.differs(word) else []
    parts += [clip(side.labels[word], _LONGEST)] if side.labels[word] else []
    parts += [] if sure is None else [f"{100 * sure:.0f}%"]
    return " ".join(parts)


def _text_width(text: str, size: int) -> float:
    return display_width(text) * size * _COLUMN
