"""Dependency trees, one or two, with characters for a terminal and as a picture in SVG.

A dictionary, as `isogloss.data.Treebank.as_dict` makes it, has `words` and `heads` (0 is the root, 1 the first word, -1
or None unknown), and may have

- `labels`, `tags`: a relation and a tag for each word;
- `confidence`: how sure the model is of each link, 0 to 1;
- `other`: the `heads` (and `labels`, `confidence`, `tags`) of a second tree of the same words, and `names`, what the
  two are called;
- `title`: where the sentence is from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from isogloss.errors import ParameterError
from isogloss.show._console import _embedded, _wrapped
from isogloss.show._figure import _LINK, _MISSED, _WRONG
from isogloss.show._measure import clip, display_width, runs_right_to_left
from isogloss.show._tree_picture import Arc, Picture, Side
from isogloss.show._tree_svg import EDGE, LONGEST, SIZE, STYLE, Layout, closing, opening, text_width, word_texts

__all__ = ["tree_svg", "tree_terminal"]

_WIDE_LEVELS = 12  # more levels of arcs than this are drawn one column each

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


# Terminal ------------------------------------------------------------------------------------------------------------


def tree_terminal(tree: Mapping[str, Any], *, width: int = 80, colour: bool = False) -> str:
    """Draw one tree, or two over the same words, with characters.

    Words run down; arcs run beside them, those of a second tree on the other side, with an arrow at the word that
    depends. ``●`` is the root, ``?`` a word whose head is not known, and ``≠`` marks words whose head, label or tag
    differs. Where arcs would need more than half of the width, as in very long sentences, each word names its head
    instead: ``↑3 reads``.

    Parameters
    ----------
    tree : dict
        See `isogloss.show.trees`.
    width : int
        Columns to fill. Words, tags and labels are clipped to fit, the longest first.
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
    picture = Picture.of(tree)
    rows = _rows(picture, _columns(picture, width), width)
    if colour:
        rows = [f"\x1b[31;1m{row}\x1b[0m" if picture.differs(word) else row for word, row in enumerate(rows)]
    return "\n".join(row.rstrip(" ") for row in [*rows, *_wrapped("", picture.caption(), 2, width)])


class _Column(NamedTuple):
    """One column of the drawing; only those that `yield_` are clipped when there is no room."""

    cells: Sequence[str]
    gap: int = 2
    yield_: bool = False
    side: str = "left"

    @property
    def width(self) -> int:
        return max(map(display_width, self.cells), default=0)


def _columns(picture: Picture, width: int) -> list[_Column]:
    """What stands beside and behind the words."""
    numbers = _Column([str(k + 1) for k in range(len(picture.words))], 1, side="right")
    words = _Column(picture.words, 1, True)
    tags = _Column(picture.tags, yield_=True)
    arcs = [side.arcs() for side in picture.sides]
    levels = [max((arc.level for arc in some), default=0) for some in arcs]
    step = 2 if max(levels) <= _WIDE_LEVELS and 2 * sum(levels) <= width // 2 else 1
    drawn = step * sum(levels) <= width // 2
    columns = [numbers, words]
    if drawn:
        gutters = [_gutter(side, some, step) for side, some in zip(picture.sides, arcs, strict=True)]
        columns = [_Column(gutters[0], 0), *columns]
        columns += [_Column([row[::-1].translate(_MIRROR) for row in gutter], 1) for gutter in gutters[1:]]
    columns.append(tags)
    for side in picture.sides:
        if not drawn:
            columns.append(_Column([_head_named(picture, head) for head in side.heads], yield_=True))
        columns.append(_Column(side.labels, yield_=True))
        columns.append(_Column(["" if value is None else f"{value:.2f}" for value in side.confidence]))
    columns.append(_Column(["≠" if picture.differs(word) else "" for word in range(len(picture.words))]))
    return [column for column in columns if any(cell.strip() for cell in column.cells)]


def _head_named(picture: Picture, head: int) -> str:
    return "?" if head < 0 else "●" if head == 0 else f"↑{head} {picture.words[head - 1]}"


def _rows(picture: Picture, columns: Sequence[_Column], width: int) -> list[str]:
    """The columns side by side, the widest of those that yield clipped until all fit, or until they are tiny."""
    rows = [""] * len(picture.words)
    room = width - sum(column.gap for column in columns[1:])
    room -= sum(column.width for column in columns if not column.yield_)
    most = _most([column.width for column in columns if column.yield_], room)
    for number, column in enumerate(columns):
        cells = [clip(cell, most) if cell else "" for cell in column.cells] if column.yield_ else column.cells
        gap = " " * (column.gap if number else 0)
        rows = [f"{row}{gap}{cell}" for row, cell in zip(rows, _aligned(cells, column.side), strict=True)]
    return rows


def _most(widths: Sequence[int], room: int, least: int = 4) -> int:
    """The largest width to which columns may be clipped so that they fit into the room.

    >>> _most([10, 3, 20], 33), _most([10, 3, 20], 25), _most([10, 3, 20], 2)
    (20, 12, 4)
    """
    most = max(widths, default=least)
    while most > least and sum(min(width, most) for width in widths) > room:
        most -= 1
    return most


def _gutter(side: Side, arcs: Sequence[Arc], step: int) -> list[str]:
    """The arcs of one tree, words on the right: a string for each word, all of the same width."""
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

_SMALL = 11  # font size of labels, in pixels
_STEP = 24  # between levels of arcs
_GAP = 18  # between words, at least


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
    picture = Picture.of(tree)
    layout = _layout(picture)
    name = escape(", ".join(picture.caption()))
    parts = [opening(layout.width, layout.height, name, STYLE if standalone else "")]
    parts += _labels(picture, layout)
    links = [link for number in range(len(picture.sides)) for link in _links(picture, layout, number)]
    parts += [line for line, _ in links]
    parts += [note for _, note in links]  # after all lines, so that none goes through a label
    parts.append(closing(layout.height, name, _SMALL))
    return "".join(parts)


def _needs(picture: Picture) -> Iterator[tuple[int, int, float]]:
    """Two words and how far apart, in pixels, their middles must be at least."""
    for left, (first, second) in enumerate(pairwise(_widths(picture))):
        yield left, left + 1, (first + second) / 2 + _GAP
    for side in picture.sides:
        for arc in sorted(side.arcs(), key=lambda arc: arc.level):
            yield *arc.span, text_width(_note(picture, side, arc.word), _SMALL) + 20


def _widths(picture: Picture) -> list[float]:
    """Of each word with the tag below it."""
    words = (text_width(clip(word, LONGEST), SIZE) for word in picture.words)
    return [max(width, text_width(tag, _SMALL)) for width, tag in zip(words, picture.tags, strict=True)]


def _layout(picture: Picture) -> Layout:
    import numpy as np  # only here: importing it takes longer than to draw a tree

    n = len(picture.words)
    steps = np.zeros(max(n - 1, 0))
    for first, last, least in _needs(picture):
        missing = least - float(steps[first:last].sum())
        if missing > 0:  # spread what is missing over the words between
            steps[first:last] += missing / (last - first)
    half = [width / 2 for width in _widths(picture)]
    reach = [text_width(_note(picture, side, k), _SMALL) / 2 for side in picture.sides for k in (0, n - 1) if n]
    edge = EDGE + max([*half[:1], *half[-1:], *reach], default=0)
    middles = [edge, *(edge + np.cumsum(steps)).tolist()]
    width = max(middles[-1] + edge, 2 * EDGE + text_width(", ".join(picture.caption()), _SMALL))
    if runs_right_to_left(picture.words):
        middles = [width - middle for middle in middles]
    heights = [_height(side) for side in picture.sides]
    above = heights[0] + EDGE
    below = above + 2 * SIZE + (_SMALL + 4 if any(picture.tags) else 0)
    bottom = below + (heights[1] if len(heights) > 1 else 0)
    return Layout(middles[:n], width, bottom + 28, above, below)


def _height(side: Side) -> float:
    levels = max((arc.level for arc in side.arcs()), default=0)
    return _STEP * (levels + (1 if 0 in side.heads else 0)) + _SMALL + 6


def _labels(picture: Picture, layout: Layout) -> Iterator[str]:
    for word, tag, x in zip(picture.words, picture.tags, layout.middles, strict=True):
        yield from word_texts(word, tag, x, layout.above + SIZE + 2, _SMALL)


def _links(picture: Picture, layout: Layout, number: int) -> Iterator[tuple[str, str]]:
    """The arcs and the root of one tree, and what stands at them: above the words, or below them."""
    side = picture.sides[number]
    base, sign = (layout.above, -1) if number == 0 else (layout.below, 1)
    arcs = side.arcs()
    top = max((arc.level for arc in arcs), default=0) + 1
    for arc in arcs:
        start, end = layout.middles[arc.head], layout.middles[arc.word]
        path, crest = _arc_path(start, end, base, sign, arc.level)
        yield _link(picture, number, arc.word, path, ((start + end) / 2, crest), (end, base), sign)
    for word, head in enumerate(side.heads):
        if head == 0:
            x, crest = layout.middles[word], base + sign * _STEP * top
            path = f"M{x:.5g} {crest:.5g}V{base + sign * 5:.5g}"
            yield _link(picture, number, word, path, (x, crest), (x, base), sign)


def _arc_path(start: float, end: float, base: float, sign: int, level: int) -> tuple[str, float]:
    """An arc from the middle of a head to that of a word, above (−1) or below (1) a line; and how far it goes."""
    start += 5 if end > start else -5  # leave the middle of a head to the arrow that points at it
    crest = base + sign * _STEP * level
    bend = min(8.0, abs(end - start) / 2) * (1 if end > start else -1)
    path = (
        f"M{start:.5g} {base:.5g}V{crest - sign * 8:.5g}Q{start:.5g} {crest:.5g} {start + bend:.5g} {crest:.5g}"
        f"H{end - bend:.5g}Q{end:.5g} {crest:.5g} {end:.5g} {crest - sign * 8:.5g}V{base + sign * 5:.5g}"
    )
    return path, crest


def _link(
    picture: Picture,
    number: int,
    word: int,
    path: str,
    label_at: tuple[float, float],
    arrow_at: tuple[float, float],
    sign: int,
) -> tuple[str, str]:
    side = picture.sides[number]
    differs = picture.differs(word) in ("head", "label")
    colour = (_WRONG if number == 0 else _MISSED) if differs else _LINK
    sure = side.confidence[word]
    opacity = 1.0 if sure is None else 0.25 + 0.75 * min(max(sure, 0.0), 1.0)
    (x, y), (tip_x, tip_y) = label_at, arrow_at
    arrow = f"M{tip_x:.5g} {tip_y + sign:.5g}l-3.5 {7 * sign}h7z"
    head = side.heads[word]
    names = [picture.words[head - 1] if head else "root", picture.words[word]]
    told = " → ".join(names) + (f": {side.labels[word]}" if side.labels[word] else "")
    told += "" if sure is None else f" ({sure:.2f})"
    offset = -4 if sign < 0 else _SMALL + 2
    title = f"<title>{escape(told)}</title>"
    line = (
        f'<g stroke-opacity="{opacity:.2f}" fill-opacity="{opacity:.2f}">{title}'
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{2.6 if differs else 1.4}"/>'
        f'<path d="{arrow}" fill="{colour}"/></g>'
    )
    note = escape(_note(picture, side, word))
    text = f'<text class="link" x="{x:.5g}" y="{y + offset:.5g}" text-anchor="middle" font-size="{_SMALL}">'
    return line, f"{text}{note}{title}</text>" if note else ""


def _note(picture: Picture, side: Side, word: int) -> str:
    """What stands at a link: label and confidence in percent."""
    sure = side.confidence[word]
    parts = ["≠"] if picture.differs(word) in ("head", "label") else []
    parts += [clip(side.labels[word], LONGEST)] if side.labels[word] else []
    parts += [] if sure is None else [f"{100 * sure:.0f}%"]
    return " ".join(parts)
