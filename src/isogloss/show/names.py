"""Pictures of names over a sentence, and of relations between them.

A dictionary has the keys of `isogloss.data.Mentioned.as_dict`: `words`; `entities`, each ``[begin, end, type]`` with
words from 0; and may have `relations` (``[first, second, label]``, names by their numbers), `confidence` of names,
`title`, and `other` with the `entities` of a second system, and `names`, what the two are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from isogloss.errors import ParameterError
from isogloss.show._console import _wrapped
from isogloss.show._figure import _LINK, _MISSED, _WRONG
from isogloss.show._measure import clip, printable, runs_right_to_left
from isogloss.show._tree_page import Figure, write_page_of
from isogloss.show._tree_svg import EDGE, LONGEST, SIZE, closing, opening, text_width

__all__ = ["names_page", "names_svg", "names_terminal"]

Name = tuple[int, int, str]
_GAP, _SMALL, _ROW, _ARC = 8, 11, 30, 26
NOTE = "A line below words is a name, with its type; fainter ones are less sure, if that is known."


@dataclass(frozen=True)
class _Picture:
    """What there is to draw."""

    words: tuple[str, ...]
    sides: tuple[tuple[Name, ...], ...]
    relations: tuple[tuple[int, int, str], ...]
    confidence: tuple[float | None, ...]
    names: tuple[str, ...]
    title: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> _Picture:
        words = tuple(printable(str(word)) for word in given["words"])
        sides = [_checked(given["entities"], len(words))]
        if given.get("other") is not None:
            sides.append(_checked(given["other"]["entities"], len(words)))
        relations = tuple((int(a), int(b), printable(str(label))) for a, b, label in given.get("relations") or ())
        if any(not (0 <= a < len(sides[0]) and 0 <= b < len(sides[0])) for a, b, _ in relations):
            raise ParameterError("show: a relation should be between two names, counted from 0")
        sure = given.get("confidence")
        confidence = tuple([None] * len(sides[0]) if sure is None else [float(value) for value in sure])
        called = tuple(printable(str(name)) for name in given.get("names") or ("first", "second"))
        return cls(words, tuple(sides), relations, confidence, called, printable(str(given.get("title") or "")))

    def alone(self, side: int) -> frozenset[Name]:
        """Names that the other side does not have."""
        return frozenset(self.sides[side]) - frozenset(self.sides[1 - side]) if len(self.sides) == 2 else frozenset()

    def phrase(self, name: Name) -> str:
        return " ".join(self.words[name[0] : name[1]])

    def caption(self) -> list[str]:
        counts = [f"{len(self.words)} words", *(f"{len(side)} names" for side in self.sides[:1])]
        if len(self.sides) == 2:
            counts = [
                counts[0],
                *(f"{len(side)} names in {of}" for side, of in zip(self.sides, self.names, strict=True)),
            ]
        return [*([self.title] if self.title else []), *counts]


def _checked(entities: Iterable[Any], n: int) -> tuple[Name, ...]:
    found = tuple((int(begin), int(end), printable(str(kind))) for begin, end, kind in entities)
    if any(not 0 <= begin < end <= n for begin, end, _ in found):
        raise ParameterError(f"show: names should be words 0 to {n}, first and one behind the last")
    return found


def names_terminal(sentence: Mapping[str, Any], *, width: int = 80, colour: bool = False) -> str:
    """Draw names with characters: brackets around their words, with the type; of two systems one below the other.

    Examples
    --------
    >>> print(names_terminal({"words": ["Ada", "left", "New", "York"], "entities": [[0, 1, "PER"], [2, 4, "LOC"]],
    ...     "relations": [[0, 1, "Lived_In"]]}))
    [Ada PER] left [New York LOC]
    Ada -Lived_In-> New York
    4 words, 2 names
    """
    if width < 20:
        raise ParameterError(f"show.names_terminal: width should be at least 20 columns, not {width!r}")
    picture = _Picture.of(sentence)
    rows: list[str] = []
    for number, side in enumerate(picture.sides):
        head = f"{picture.names[number]}: " if len(picture.sides) == 2 else ""
        alone = picture.alone(number)
        rows += _wrapped(head, list(_bracketed(picture, side, alone, colour)), 2, width, " ")
    for first, second, label in picture.relations:
        one, other = (picture.phrase(picture.sides[0][name]) for name in (first, second))
        rows.append(clip(f"{one} -{label}-> {other}", width))
    return "\n".join([*rows, *_wrapped("", picture.caption(), 2, width)])


def _bracketed(picture: _Picture, side: tuple[Name, ...], alone: frozenset[Name], colour: bool) -> Iterator[str]:
    begins = {name[0]: name for name in side}
    word = 0
    while word < len(picture.words):
        name = begins.get(word)
        if name is None:
            yield picture.words[word]
            word += 1
            continue
        text = f"[{'≠ ' if name in alone else ''}{picture.phrase(name)} {name[2]}]"
        yield f"\x1b[{'31;1' if name in alone else '36'}m{text}\x1b[0m" if colour else text
        word = name[1]


def names_svg(sentence: Mapping[str, Any], *, standalone: bool = True) -> str:
    """Draw words in a row with names below them, relations above, and names of a second system below those, as SVG.

    Names that the other system does not have are coloured, with ``≠``; pointing at one shows its words.

    Returns
    -------
    str
        Well-formed XML without scripts or anything to load.

    Examples
    --------
    >>> drawn = names_svg({"words": ["<Ada>", "left"], "entities": [[0, 1, "PER"]]})
    >>> "&lt;Ada&gt;" in drawn, drawn.count("<line")
    (True, 1)
    """
    picture = _Picture.of(sentence)
    widths = _widths(picture)
    lefts, at = [], float(EDGE)
    for own in widths:
        lefts.append(at)
        at += own + _GAP
    width = max(at - _GAP + EDGE, 2 * EDGE + text_width(", ".join(picture.caption()), _SMALL))
    if runs_right_to_left(picture.words):
        lefts = [width - left - own for left, own in zip(lefts, widths, strict=True)]
    top = EDGE + _ARC * len(picture.relations)
    height = top + SIZE + _ROW * len(picture.sides) + 34
    caption = escape(", ".join(picture.caption()))
    style = "<style>.isogloss-tree{color:#222;background:#fff}</style>" if standalone else ""
    parts = [opening(width, height, caption, style)]
    for word, (left, own) in enumerate(zip(lefts, widths, strict=True)):
        parts.append(_text(left + own / 2, top + SIZE, clip(picture.words[word], LONGEST), SIZE, picture.words[word]))
    for side in range(len(picture.sides)):
        parts += _lines(picture, side, lefts, widths, top + SIZE + 8 + _ROW * side)
    parts += _arcs(picture, lefts, widths, top)
    parts.append(closing(height, caption, _SMALL))
    return "".join(parts)


def _widths(picture: _Picture) -> list[float]:
    """Pixels of each word: as wide as it is written, and names at least as wide as their types."""
    widths = [max(text_width(clip(word, LONGEST), SIZE), 10.0) for word in picture.words]
    for side in range(len(picture.sides)):
        for begin, end, kind in picture.sides[side]:
            label = text_width(clip(kind, LONGEST), _SMALL) + 20
            missing = label - sum(widths[begin:end]) - _GAP * (end - begin - 1)
            if missing > 0:
                widths[end - 1] += missing
    return widths


def _lines(picture: _Picture, side: int, lefts: list[float], widths: list[float], y: float) -> Iterator[str]:
    """Names of one system, as lines with types below them."""
    alone = picture.alone(side)
    for number, name in enumerate(picture.sides[side]):
        begin, end, kind = name
        ends = [lefts[begin], lefts[begin] + widths[begin], lefts[end - 1], lefts[end - 1] + widths[end - 1]]
        colour = (_WRONG if side == 0 else _MISSED) if name in alone else _LINK
        sure = picture.confidence[number] if side == 0 else None
        opacity = 1.0 if sure is None else 0.3 + 0.7 * min(max(sure, 0.0), 1.0)
        told = f"{kind}: {picture.phrase(name)}" + ("" if sure is None else f" ({sure:.2f})")
        yield (
            f'<line x1="{min(ends):.5g}" x2="{max(ends):.5g}" y1="{y:.5g}" y2="{y:.5g}" stroke="{colour}" '
            f'stroke-opacity="{opacity:.2f}" stroke-width="{4 if name in alone else 3}">'
            f"<title>{escape(told)}</title></line>"
        )
        label = ("≠ " if name in alone else "") + clip(kind, LONGEST)
        yield _text((min(ends) + max(ends)) / 2, y + _SMALL + 3, label, _SMALL, told)


def _arcs(picture: _Picture, lefts: list[float], widths: list[float], top: float) -> Iterator[str]:
    """Relations as arcs above the words, each on a level of its own."""
    for level, (first, second, label) in enumerate(picture.relations):
        middles = []
        for name in (first, second):
            begin, end, _ = picture.sides[0][name]
            ends = [lefts[begin], lefts[begin] + widths[begin], lefts[end - 1], lefts[end - 1] + widths[end - 1]]
            middles.append((min(ends) + max(ends)) / 2)
        y = top - _ARC * (level + 1) + _SMALL
        a, b = middles
        told = f"{picture.phrase(picture.sides[0][first])} → {picture.phrase(picture.sides[0][second])}: {label}"
        yield (
            f'<path d="M{a:.5g} {top:.5g}V{y:.5g}H{b:.5g}V{top - 3:.5g}m-3 -5l3 5l3 -5" fill="none" stroke="{_LINK}" '
            f'stroke-width="1.4"><title>{escape(told)}</title></path>'
        )
        yield _text((a + b) / 2, y - 3, clip(label, LONGEST), _SMALL, told)


def _text(x: float, y: float, shown: str, size: int, full: str) -> str:
    title = f"<title>{escape(full)}</title>" if shown != full else ""
    direction = ' direction="rtl"' if runs_right_to_left([shown]) else ""
    place = f'x="{x:.5g}" y="{y:.5g}" text-anchor="middle" font-size="{size}"{direction}'
    return f"<text {place}>{escape(shown)}{title}</text>"


def names_page(
    sentences: Iterable[Mapping[str, Any]], *, title: str = "Names", summary: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Make a page with a picture of each sentence, piece by piece; see `isogloss.show.tree_page`.

    Examples
    --------
    >>> text = "".join(names_page([{"words": ["Ada", "left"], "entities": [[0, 1, "PER"]]}]))
    >>> text.count("<svg"), "PER" in text
    (1, True)
    """
    yield from write_page_of(map(_figure, sentences), title, summary, NOTE)


def _figure(sentence: Mapping[str, Any]) -> Figure:
    picture, note = _Picture.of(sentence), NOTE
    if len(picture.sides) == 2:
        first, second = picture.names
        note += f" The upper line: {first}; the lower one: {second}. Thicker lines and ≠ are where they differ."
    said = [
        *picture.words,
        *(kind for side in picture.sides for _, _, kind in side),
        *(r[2] for r in picture.relations),
    ]
    svg = names_svg(sentence, standalone=False)
    return Figure(svg, said, note, sentence.get("number"), runs_right_to_left(picture.words))
