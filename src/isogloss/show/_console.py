"""An alignment in the terminal: a grid, or a list of words when the sentence is too long for one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from isogloss.errors import ParameterError
from isogloss.show._measure import clip, display_width, printable, runs_right_to_left
from isogloss.show._pair import Cell, Kind, Pair

__all__ = ["terminal"]

_SHADES = "░▒▓█"
_EMPTY = "·"
_MOST_PANELS = 2  # a grid cut into more pieces than this is harder to read than a list

# An embedding or an override inside a word would turn the rest of the row around; a mark on each side of a
# right-to-left word keeps the row itself left to right in terminals that reorder, and is invisible in the others.
_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MARK = "\u200e"
_ANSI = re.compile("\x1b\\[[0-9;]*m")

_COLOURS: dict[Kind, str] = {
    "link": "34",
    "right": "32",
    "wrong": "31;1",
    "missed": "35;1",
    "other": "33",
    "faint": "2",
}


def terminal(
    pair: Mapping[str, Any],
    *,
    width: int = 80,
    colour: bool = False,
    layout: Literal["auto", "grid", "list"] = "auto",
) -> str:
    """Draw one sentence pair with characters.

    Source words run down the side and target words along the top, each word on its own line above its column, so that
    every script stays readable. Without gold a link is two blocks whose shade is its probability. With gold or a second
    system a cell has three places: ``[ ]`` is sure in gold, ``( )`` possible, and ``!`` follows a link that is in
    neither; ``1`` and ``2`` stand for links of one system alone.

    Parameters
    ----------
    pair : dict
        See `isogloss.show`.
    width : int
        Columns to fill; a wider grid is cut into panels, and becomes a list when it would need more than two.
    colour : bool
        Use ANSI colours. The drawing says the same without them.
    layout : "auto", "grid" or "list"
        Whether to keep to one form.

    Examples
    --------
    >>> gold = {"sure": [[0, 0], [1, 1]], "possible": []}
    >>> d = {"source": ["la", "maison"], "target": ["the", "house"], "links": [[0, 0, 0.9], [1, 0, 0.3]], "gold": gold}
    >>> print(terminal(d))
            the
            │  house
            │  │
        la [█] ·
    maison  ▒![ ]
    2 links: 1 right, 1 wrong, 1 missed, mean probability 0.60
    ░ ▒ ▓ █ probability below 1/4, 1/2, 3/4, and above · [ ] sure in gold · █! wrong
    """
    if layout not in ("auto", "grid", "list"):
        raise ParameterError(f"show.terminal: layout should be 'auto', 'grid' or 'list', not {layout!r}")
    if width < 20:
        raise ParameterError(f"show.terminal: width should be at least 20 columns, not {width!r}")
    checked = Pair.of(pair)
    return _Drawing(checked, width, colour).draw(layout)


class _Drawing:
    """The measures that the pieces of one drawing share."""

    def __init__(self, pair: Pair, width: int, colour: bool):
        self.pair, self.width, self.colour = pair, width, colour
        self.cells = pair.cells()
        self.source = [_word(word, width // 3) for word in pair.source]
        self.target = [_word(word, width // 3) for word in pair.target]
        self.label_width = max(map(display_width, self.source), default=0)
        self.step = 3 if pair.sure is not None or pair.other is not None or pair.possible else 2

    def draw(self, layout: str) -> str:
        panels = self._panels()
        if layout == "auto":
            layout = "grid" if len(panels) <= _MOST_PANELS else "list"
        if not (self.source and self.target):
            layout = "list"
        body = self._list() if layout == "list" else self._grid(panels)
        lines = [*body, _BIDI_CONTROLS.sub("", printable(self.pair.caption()))]
        if layout == "grid":
            lines += _wrapped("", self._legend(), 0, self.width, " · ")
        lines += self._reasons()
        return "\n".join(line.rstrip(" ") for line in lines)

    def _panels(self) -> list[range]:
        """Target words whose columns, with their labels above, fit side by side."""
        panels: list[range] = []
        start, room = 0, self.width - self.label_width - 1
        for j, word in enumerate(self.target):
            reach = self.step * (j - start) + max(1 + display_width(word), self.step)
            if j > start and reach > room:
                panels.append(range(start, j))
                start = j
        return [*panels, range(start, len(self.target))]

    def _grid(self, panels: Sequence[range]) -> list[str]:
        margin = " " * (self.label_width + 1)
        lines: list[str] = []
        for columns in panels:
            lines += [""] if lines else []
            for at, j in enumerate(columns):
                stems = "".join("│".ljust(self.step) for _ in range(at))
                lines.append(f"{margin} {stems}{_embedded(self.target[j])}")
            lines.append(f"{margin} " + "".join("│".ljust(self.step) for _ in columns))
            for i, word in enumerate(self.source):
                padding = " " * (self.label_width - display_width(word))
                row = "".join(self._square((i, j)) for j in columns)
                lines.append(f"{padding}{_embedded(word)} {row}")
        return lines

    def _square(self, link: tuple[int, int]) -> str:
        cell = self.cells.get(link)
        if cell is None:
            return f" {_EMPTY}".ljust(self.step)
        core = _core(cell, self.pair.other is not None)
        if self.step == 2:
            drawn = core * 2 if cell.first else f" {_EMPTY}"
        else:
            brackets = "[]" if cell.gold == "sure" else "()" if cell.gold or cell.kind == "possible" else "  "
            wrong = cell.kind == "wrong" or (cell.kind == "other" and self.pair.sure is not None)
            drawn = brackets[0] + core + ("!" if wrong else brackets[1])
        return self._paint(drawn, cell.kind)

    def _paint(self, text: str, kind: Kind) -> str:
        code, inked = _COLOURS.get(kind), text.rstrip()
        return f"\x1b[{code}m{inked}\x1b[0m{text[len(inked) :]}" if self.colour and code and inked else text

    def _list(self) -> list[str]:
        lines: list[str] = []
        partners: dict[int, list[str]] = {}
        linked = set()
        for (i, j), cell in self.cells.items():
            if cell.kind not in ("faint", "allowed"):
                partners.setdefault(i, []).append(self._paint(self._partner(j, cell), cell.kind))
                linked.add(j)
        for i, word in enumerate(self.source):
            head = " " * (self.label_width - display_width(word)) + f"{_embedded(word)} — "
            lines += _wrapped(head, partners.get(i, [_EMPTY]), self.label_width + 3, self.width)
        if alone := [_embedded(word) for j, word in enumerate(self.target) if j not in linked]:
            lines += _wrapped(f"{_EMPTY.rjust(self.label_width)} — ", alone, self.label_width + 3, self.width)
        return lines

    def _partner(self, j: int, cell: Cell) -> str:
        notes = [] if cell.probability is None else [f"{cell.probability:.2f}"]
        notes += [cell.kind] if cell.kind in ("wrong", "missed", "possible") else []
        if self.pair.other is not None and cell.first != cell.second:
            notes.append("only " + printable(self.pair.names[0 if cell.first else 1]))
        return _embedded(self.target[j]) + (f" ({', '.join(notes)})" if notes else "")

    def _reasons(self) -> list[str]:
        """Why links are there or not, a line for each."""
        lines = []
        for (i, j), why in sorted(self.pair.reasons.items()):
            head = f"{_embedded(self.source[i])} — {_embedded(self.target[j])}: "
            lines += _wrapped(head, printable(str(why)).split(", "), 4, self.width)
        return lines

    def _legend(self) -> list[str]:
        """The signs that occur, and what they mean."""
        cells = self.cells.values()
        parts = []
        if any(cell.first and cell.probability is not None for cell in cells):
            parts.append(f"{' '.join(_SHADES)} probability below 1/4, 1/2, 3/4, and above")
        if self.pair.sure is not None:
            parts += ["[ ] sure in gold"] if self.pair.sure else []
            parts += ["( ) possible in gold"] if self.pair.allowed else []
            parts += ["█! wrong"] if any(cell.kind == "wrong" for cell in cells) else []
        elif self.pair.possible:
            parts.append("( ) possible")
        if self.pair.other is not None:
            parts += [f"{mark} only {printable(name)}" for mark, name in zip("12", self.pair.names, strict=True)]
        return parts


def _core(cell: Cell, compared: bool) -> str:
    if compared and cell.first != cell.second:
        return "1" if cell.first else "2"
    if not cell.first:
        return " " if cell.gold or cell.kind == "possible" else _EMPTY
    return _SHADES[-1] if cell.probability is None else _SHADES[min(int(max(cell.probability, 0.0) * 4), 3)]


def _word(word: str, width: int) -> str:
    return clip(_BIDI_CONTROLS.sub("", printable(word)), width)


def _embedded(word: str) -> str:
    return f"{_MARK}{word}{_MARK}" if runs_right_to_left([word]) else word


def _wrapped(head: str, parts: Sequence[str], indent: int, width: int, separator: str = ", ") -> list[str]:
    """Parts after a head, with further lines indented below the first part."""
    lines, at = [head], indent
    for k, part in enumerate(parts):
        text = part + (separator if k + 1 < len(parts) else "")
        size = display_width(_ANSI.sub("", text).rstrip())
        if at > indent and at + size > width:
            lines.append(" " * indent)
            at = indent
        lines[-1] += text
        at += size + 1
    return lines if parts else []
