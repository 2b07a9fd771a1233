"""An alignment as a piece of HTML with an SVG grid in it, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from isogloss.show._measure import clip, display_width, printable, runs_right_to_left
from isogloss.show._pair import Cell, Pair

__all__ = ["alignment"]

# Text and lines take the colour of the page (currentColor). These three stand out on white and on black, and differ
# for readers who do not tell red from green; shapes say the same without them.
_LINK, _WRONG, _MISSED = "#3584c8", "#d9602a", "#b055a8"
_FONT = "system-ui,'Segoe UI','Noto Sans',sans-serif"
_COLUMN = 0.6  # a terminal column in ems: a little more than most proportional fonts need
_LEAN = 60  # degrees that the target words lean
_LEAN_COSINE, _LEAN_SINE = 0.5, 0.866
_LONGEST = 28  # terminal columns of a label; the rest is in the tooltip

_LEGEND = (
    (Cell("link", 0.9, "", True, True), "link, fainter is less sure"),
    (Cell("right", 0.9, "sure", True, True), "right, sure in gold"),
    (Cell("right", 0.9, "possible", True, True), "right, possible in gold"),
    (Cell("wrong", 0.9, "", True, True), "wrong"),
    (Cell("missed", None, "sure", False, False), "missed"),
    (Cell("allowed", None, "possible", False, False), "possible, not linked"),
    (Cell("possible", None, "", False, False), "possible"),
    (Cell("faint", 0.4, "", False, False), "probability without a link"),
)


class _Layout(NamedTuple):
    """Sizes in pixels; `x` of a column is mirrored when the target runs right to left."""

    square: int
    font: int
    left: int
    top: int
    width: int
    height: int
    mirrored: bool
    n_target: int

    def x(self, column: float) -> float:
        """The left edge of a column, in the direction the target is read."""
        if self.mirrored:
            return self.width - self.left - (column + 1) * self.square
        return self.left + column * self.square


def alignment(pair: Mapping[str, Any]) -> str:
    """Draw one sentence pair as a self-contained HTML fragment.

    Target words run along the top and source words down the side; a target that is written from right to left runs
    that way, and its source words stand on the right. A filled square is a link, fainter when less probable; a box
    is a sure gold link and a dashed box a possible one; a cross marks a wrong link, a ring a missed one, and a dot a
    probability without a link. Of two systems that differ, the first fills the upper left half of a square and the
    second the lower right. Pointing at a square names its words and probability.

    Parameters
    ----------
    pair : dict
        See `isogloss.show`.

    Returns
    -------
    str
        Well-formed XML, without scripts, styles to load or identifiers: many can stand in one document.
    """
    checked = Pair.of(pair)
    return "".join(_fragment(checked))


def _fragment(pair: Pair) -> Iterator[str]:
    caption = _text(pair.caption())
    yield '<figure class="isogloss" style="margin:0.5em 0">'
    if pair.source and pair.target:
        layout = _layout(pair)
        yield (
            '<div style="overflow-x:auto"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'width="{layout.width}" height="{layout.height}" viewBox="0 0 {layout.width} {layout.height}" '
            f'font-family="{_FONT}" font-size="{layout.font}" fill="currentColor" overflow="visible" '
            f'aria-label="{caption}">'
        )
        yield from _labels(pair, layout)
        yield _rules(pair, layout)
        for (i, j), cell in pair.cells().items():
            corner = layout.x(j), layout.top + i * layout.square
            yield f"<g><title>{_text(pair.explain((i, j), cell))}</title>"
            yield f"{_mark(cell, corner, layout.square, pair.other is not None)}</g>"
        yield "</svg></div>"
    else:
        for side in (pair.source, pair.target):
            yield f'<div dir="auto">{_text(" ".join(side)) or "(no words)"}</div>'
    yield f'<figcaption style="font-size:0.85em;opacity:0.85"><bdi>{caption}</bdi>{_legend(pair)}</figcaption></figure>'


def _layout(pair: Pair) -> _Layout:
    longest = max(len(pair.source), len(pair.target))
    square, font = (24, 14) if longest <= 24 else (20, 13) if longest <= 40 else (16, 11)
    size = font * _COLUMN
    left = round(8 + size * max(_label_width(word) for word in pair.source))
    lean = [size * _label_width(word) for word in pair.target]
    top = round(14 + max(lean) * _LEAN_SINE + font * _LEAN_COSINE)
    n_target = len(pair.target)
    over = max(at * square + square / 2 + length * _LEAN_COSINE + font for at, length in enumerate(lean))
    width = round(left + max(over, n_target * square) + 2)
    mirrored = runs_right_to_left(pair.target)
    return _Layout(square, font, left, top, width, top + len(pair.source) * square + 2, mirrored, n_target)


def _labels(pair: Pair, layout: _Layout) -> Iterator[str]:
    """The words: source beside the first column, target leaning away from it."""
    languages = pair.languages or ("", "")
    source_runs, target_runs = runs_right_to_left(pair.source), layout.mirrored
    edge = layout.width - layout.left + 6 if layout.mirrored else layout.left - 6
    for i, word in enumerate(pair.source):
        y = layout.top + (i + 0.5) * layout.square + layout.font * 0.35
        runs = runs_right_to_left([word], source_runs)
        yield _label(word, f'x="{edge:.4g}" y="{y:.5g}"', runs, layout.mirrored, languages[0])
    for j, word in enumerate(pair.target):
        x, y = layout.x(j) + layout.square / 2, layout.top - 6
        x += -layout.font * 0.25 if layout.mirrored else layout.font * 0.25
        angle = _LEAN if layout.mirrored else -_LEAN
        runs = runs_right_to_left([word], target_runs)
        place = f'transform="translate({x:.5g} {y:.5g}) rotate({angle})"'
        yield _label(word, place, runs, not layout.mirrored, languages[1])


def _label(word: str, place: str, right_to_left: bool, holds_left: bool, language: str) -> str:
    """A word whose left (or right) edge is at a place: in SVG the anchor speaks of reading order, not of sides."""
    anchor = "start" if holds_left != right_to_left else "end"
    direction = "rtl" if right_to_left else "ltr"
    shown = clip(printable(word), _LONGEST)
    full = f"<title>{_text(word)}</title>" if shown != word else ""
    return (
        f'<text {place} text-anchor="{anchor}" direction="{direction}" unicode-bidi="isolate" '
        f'style="unicode-bidi:isolate" lang="{_text(language)}">{full}{_text(shown)}</text>'
    )


def _rules(pair: Pair, layout: _Layout) -> str:
    first, last = sorted((layout.x(0), layout.x(layout.n_target - 1)))
    last += layout.square
    bottom = layout.top + len(pair.source) * layout.square
    rows = "".join(f"M{first:.5g} {layout.top + i * layout.square}H{last:.5g}" for i in range(len(pair.source) + 1))
    columns = "".join(f"M{first + j * layout.square:.5g} {layout.top}V{bottom}" for j in range(layout.n_target + 1))
    return f'<path d="{rows}{columns}" stroke="currentColor" stroke-opacity="0.18" fill="none"/>'


def _mark(cell: Cell, corner: tuple[float, float], square: int, compared: bool) -> str:
    """One square: a filled inner square for a link, and what gold and the second system say around it."""
    x, y = corner
    inset = square * 0.17
    inner = square - 2 * inset
    place = f'x="{x + inset:.5g}" y="{y + inset:.5g}" width="{inner:.4g}" height="{inner:.4g}"'
    middle = x + square / 2, y + square / 2
    parts = [f'<rect x="{x:.5g}" y="{y:.5g}" width="{square}" height="{square}" fill="none" pointer-events="all"/>']
    alone = compared and cell.first != cell.second
    if cell.first or alone:
        opacity = 1.0 if cell.probability is None else 0.15 + 0.85 * min(max(cell.probability, 0.0), 1.0)
        colour = "currentColor" if not cell.first else _WRONG if cell.kind == "wrong" else _LINK
        outline = _outline((x + inset, y + inset), inner, cell.first, alone)
        parts.append(
            f'<path d="{outline}" fill="{colour}" fill-opacity="{opacity if cell.first else opacity / 2:.2f}"/>'
        )
    elif cell.kind == "faint" and cell.probability is not None:
        radius = inner / 2 * min(max(cell.probability, 0.0), 1.0) ** 0.5
        parts.append(_circle(middle, max(radius, 0.8), f'fill="{_LINK}" fill-opacity="0.55"'))
    if cell.gold or cell.kind == "possible":
        dashes = "" if cell.gold == "sure" else ' stroke-dasharray="3 2"'
        parts.append(f'<rect {place} fill="none" stroke="currentColor" stroke-width="1.6"{dashes}/>')
    if cell.kind == "wrong":
        a, b, c, d = x + 1.6 * inset, y + 1.6 * inset, x + square - 1.6 * inset, y + square - 1.6 * inset
        cross = f"M{a:.5g} {b:.5g}L{c:.5g} {d:.5g}M{c:.5g} {b:.5g}L{a:.5g} {d:.5g}"
        parts.append(f'<path d="{cross}" stroke="currentColor" stroke-width="1.8" fill="none"/>')
    if cell.kind == "missed":
        parts.append(_circle(middle, inner / 4, f'fill="none" stroke="{_MISSED}" stroke-width="2"'))
    return "".join(parts)


def _outline(corner: tuple[float, float], size: float, first: bool, alone: bool) -> str:
    """A square, or the half that belongs to one of two systems: upper left the first's, lower right the second's."""
    x, y = corner
    left, top, right, bottom = (f"{value:.5g}" for value in (x, y, x + size, y + size))
    if not alone:
        return f"M{left} {top}H{right}V{bottom}H{left}Z"
    return f"M{left} {top}H{right}L{left} {bottom}Z" if first else f"M{right} {top}V{bottom}H{left}Z"


def _circle(middle: tuple[float, float], radius: float, paint: str) -> str:
    return f'<circle cx="{middle[0]:.5g}" cy="{middle[1]:.5g}" r="{radius:.3g}" {paint}/>'


def _legend(pair: Pair) -> str:
    """The signs that occur in this picture, and no others."""
    cells = pair.cells().values()
    seen = {(cell.kind, cell.gold) for cell in cells}
    parts = []
    for cell, meaning in _LEGEND:
        if (cell.kind, cell.gold) in seen:
            parts.append(_entry(_mark(cell, (0, 0), 16, False), meaning))
    if pair.other is not None and any(cell.first != cell.second for cell in cells):
        for first, name in zip((True, False), pair.names, strict=True):
            half = Cell("link" if first else "other", None, "", first, not first)
            parts.append(_entry(_mark(half, (0, 0), 16, True), f"only {name}"))
    return f"<div>{' '.join(parts)}</div>" if parts else ""


def _entry(drawing: str, meaning: str) -> str:
    return (
        '<span style="white-space:nowrap;margin-right:1em"><svg xmlns="http://www.w3.org/2000/svg" width="16" '
        'height="16" fill="currentColor" aria-hidden="true" style="vertical-align:-3px;display:inline-block">'
        f"{drawing}</svg> {_text(meaning)}</span>"
    )


def _label_width(word: str) -> int:
    return display_width(clip(printable(word), _LONGEST))


def _text(text: str) -> str:
    return escape(printable(text))
