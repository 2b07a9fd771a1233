"""A sentence and its translation: the tree of one, word links, what they carry, and the tree of the other.

A dictionary has `source` and `target`, trees as `isogloss.show.trees` describes them, over different words; `links`
(``[i, j]`` or ``[i, j, probability]``, from 0); and may have

- `edges`: what the links carry, ``[head, word]`` or ``[head, word, probability]`` over target words: the head is 0 for
  the root, words count from 1;
- `title`: where the pair is from; `number`: which pair of the file it is, from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from isogloss.errors import ParameterError
from isogloss.show._figure import _LINK, _WRONG
from isogloss.show._measure import clip, runs_right_to_left
from isogloss.show._tree_page import Figure, write_page_of
from isogloss.show._tree_picture import Picture, Side, place_arcs
from isogloss.show._tree_svg import EDGE, LONGEST, SIZE, STYLE, closing, opening, text_width, word_texts
from isogloss.show.trees import _GAP, _SMALL, _STEP, _arc_path, tree_terminal

__all__ = ["projection_page", "projection_svg", "projection_terminal"]

_BETWEEN = 90  # pixels between the words of the two sentences, where links are drawn
_NOTE = (
    "Above: a sentence and its tree. Lines between the words: links, fainter if less sure. Below: its translation; "
    "dashed arcs are what the links carry, fainter if less probable, and solid arcs the tree."
)


class _Edge(NamedTuple):
    """What is carried to a target word; `head` 0 is the root, both count from 1."""

    head: int
    word: int
    probability: float | None
    relation: str = ""


class _Shown(NamedTuple):
    """What is to be drawn, checked."""

    source: Picture
    target: Picture
    links: tuple[tuple[int, int, float | None], ...]
    edges: tuple[_Edge, ...]
    title: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> _Shown:
        missing = [key for key in ("source", "target", "links") if key not in given]
        if missing:
            raise ParameterError(f"show: a projection should have the key {missing[0]!r}")
        source, target = Picture.of(given["source"]), Picture.of(given["target"])
        n, m = len(source.words), len(target.words)
        links = tuple((int(link[0]), int(link[1]), _third(link)) for link in given["links"])
        edges = tuple(
            _Edge(int(edge[0]), int(edge[1]), _third(edge), str(edge[3]) if len(edge) > 3 else "")
            for edge in given.get("edges") or ()
        )
        if not all(0 <= i < n and 0 <= j < m for i, j, _ in links):
            raise ParameterError(f"show: links should be of {n} source and {m} target words, from 0")
        if not all(0 <= edge.head <= m and 1 <= edge.word <= m and edge.head != edge.word for edge in edges):
            raise ParameterError(f"show: edges should be of {m} target words, from 1, and 0 for the root")
        return cls(source, target, links, edges, str(given.get("title") or ""))

    def kept(self, edge: _Edge) -> bool:
        """Whether the tree has what was carried."""
        return self.target.sides[0].heads[edge.word - 1] == edge.head

    def caption(self) -> str:
        kept = sum(map(self.kept, self.edges))
        words = {edge.word for edge in self.edges}
        said = [
            _counted(len(self.links), "link"),
            f"edges carried to {len(words)} of {_counted(len(self.target.words), 'word')}",
            f"{kept} of {len(self.edges)} in the tree" if self.edges else "",
        ]
        found = ", ".join(part for part in said if part)
        return f"{self.title}: {found}" if self.title else found


def _third(row: Sequence[Any]) -> float | None:
    return float(row[2]) if len(row) > 2 and row[2] is not None else None


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


# Terminal ------------------------------------------------------------------------------------------------------------


def projection_terminal(pair: Mapping[str, Any], *, width: int = 80, colour: bool = False) -> str:
    """Draw both trees with characters; beside that of the target, the most probable head that arrived at each word.

    Examples
    --------
    >>> she = {"words": ["she", "sleeps"], "heads": [2, 0]}
    >>> sie = {"words": ["sie", "schläft"], "heads": [2, 0]}
    >>> print(projection_terminal({"source": she, "target": sie, "links": [[0, 0], [1, 1]], "edges": [[2, 1, 0.8]]}))
    ╭─▶ 1 she
    ╰─● 2 sleeps
    2 words
    links: she~sie sleeps~schläft
    ╭─▶ 1 sie     ◀─╮  0.80
    ╰─● 2 schläft ?─╯        ≠
    tree | carried: 2 words, 1 with other heads
    """
    shown = _Shown.of(pair)
    drawn = [tree_terminal(pair["source"], width=width, colour=colour)]
    source, target = shown.source.words, shown.target.words
    drawn.append("links: " + (" ".join(f"{source[i]}~{target[j]}" for i, j, _ in sorted(shown.links)) or "none"))
    best: dict[int, _Edge] = {}
    for edge in shown.edges:
        if edge.word not in best or (edge.probability or 0.0) > (best[edge.word].probability or 0.0):
            best[edge.word] = edge
    words = range(1, len(target) + 1)
    carried = {
        "heads": [best[word].head if word in best else -1 for word in words],
        "labels": _relations(shown, best),
        "confidence": [best[word].probability if word in best else None for word in words],
    }
    both = {**pair["target"], "other": carried, "names": ("tree", "carried")}
    return "\n".join([*drawn, tree_terminal(both, width=width, colour=colour)])


def _relations(shown: _Shown, best: Mapping[int, _Edge]) -> list[str]:
    """The relation that arrived at each word; where nobody says what edges carry, those of the tree."""
    labels = shown.target.sides[0].labels
    if not any(edge.relation for edge in shown.edges):
        return list(labels)
    return [best[word].relation if word in best else "" for word in range(1, len(labels) + 1)]


# SVG -----------------------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """The words of one sentence: their middles, how wide they are together, and whether they run to the left."""

    middles: list[float]
    width: float


def projection_svg(pair: Mapping[str, Any], *, standalone: bool = True) -> str:
    """Draw a sentence pair as SVG: tree, links, what they carry (dashed), and the tree of the translation.

    Parameters
    ----------
    pair : dict
        See `isogloss.show.projection`.
    standalone : bool
        As in `tree_svg`.

    Returns
    -------
    str
        Well-formed XML without scripts or anything to load.
    """
    shown = _Shown.of(pair)
    above, below = _arcs_above(shown.source), _arcs_below(shown)
    rows = [_row(shown.source, above), _row(shown.target, below)]
    width = max(*(row.width for row in rows), 2 * EDGE + text_width(shown.caption(), _SMALL))
    middles = [_placed(picture, row, width) for picture, row in zip((shown.source, shown.target), rows, strict=True)]
    top = EDGE + _STEP * (1 + max((level for _, _, level in above), default=0)) + _SMALL
    words = (top + SIZE + 2, top + 2 * SIZE + _SMALL + 6 + _BETWEEN + SIZE)
    base = words[1] + _SMALL + 14
    deepest = 1 + max((level for _, _, level in below), default=0)
    height = base + _STEP * deepest + _SMALL + 30
    name = escape(shown.caption())
    parts = [opening(width, height, name, STYLE if standalone else "")]
    parts += _links(shown, middles, (words[0] + _SMALL + 8, words[1] - SIZE))
    for picture, places, y in zip((shown.source, shown.target), middles, words, strict=True):
        parts += _words(picture, places, y)
    parts += _tree(shown.source, middles[0], above, top, -1)
    parts += _carried(shown, middles[1], below, base)
    parts += _tree(shown.target, middles[1], below, base, 1)
    parts.append(closing(height, name, _SMALL))
    return "".join(parts)


Levels = list[tuple[int, int, int]]


def _arcs_above(picture: Picture) -> Levels:
    return [(arc.head, arc.word, arc.level) for arc in picture.sides[0].arcs()]


def _arcs_below(shown: _Shown) -> Levels:
    """Links of the tree and what was carried, each once, so that those that are both lie on one another."""
    pairs = {(head - 1, word) for word, head in enumerate(shown.target.sides[0].heads) if head > 0 and head - 1 != word}
    pairs |= {(edge.head - 1, edge.word - 1) for edge in shown.edges if edge.head > 0}
    return [(arc.head, arc.word, arc.level) for arc in place_arcs(sorted(pairs), len(shown.target.words))]


def _row(picture: Picture, levels: Levels) -> _Row:
    """Words so far apart that neither they nor the labels of neighbours touch."""
    side = picture.sides[0]
    halves = []
    for word, (text, tag) in enumerate(zip(picture.words, picture.tags, strict=True)):
        wide = max(text_width(clip(text, LONGEST), SIZE), text_width(tag, _SMALL))
        short = any(level == 1 and word in (low, high) for low, high, level in levels)
        halves.append(max(wide, (text_width(side.labels[word], _SMALL) + 12) * 0.6 if short else 0.0) / 2)
    at, middles = float(EDGE), []
    for half in halves:
        middles.append(at + half)
        at += 2 * half + _GAP
    return _Row(middles, at - _GAP + EDGE if middles else 2.0 * EDGE)


def _placed(picture: Picture, row: _Row, width: float) -> list[float]:
    """Middles in the whole picture, in which the shorter sentence stands in the middle."""
    shift = (width - row.width) / 2
    middles = [middle + shift for middle in row.middles]
    return [width - middle for middle in middles] if runs_right_to_left(picture.words) else middles


def _words(picture: Picture, middles: Sequence[float], y: float) -> Iterator[str]:
    for word, tag, x in zip(picture.words, picture.tags, middles, strict=True):
        yield from word_texts(word, tag, x, y, _SMALL)


def _links(shown: _Shown, middles: Sequence[Sequence[float]], ends: tuple[float, float]) -> Iterator[str]:
    for i, j, chance in shown.links:
        told = f"{shown.source.words[i]} ~ {shown.target.words[j]}" + ("" if chance is None else f" ({chance:.2f})")
        yield (
            f'<path class="word-link" d="M{middles[0][i]:.5g} {ends[0]:.5g}L{middles[1][j]:.5g} {ends[1]:.5g}" '
            f'fill="none" stroke="currentColor" stroke-width="1.4" stroke-opacity="{0.6 * _strength(chance):.2f}">'
            f"<title>{escape(told)}</title></path>"
        )


def _carried(shown: _Shown, middles: Sequence[float], levels: Levels, base: float) -> Iterator[str]:
    """Dashed arcs, wider than those of the tree, which may lie on them."""
    placed = {(head, word): level for head, word, level in levels}
    for edge in shown.edges:
        head, word = edge.head - 1, edge.word - 1
        level = _root_level(levels) if head < 0 else placed[head, word]
        path = _path(middles, head, word, level, base, 1)
        names = (shown.target.words[head] if head >= 0 else "root", shown.target.words[word])
        told = " → ".join(names) + ", carried" + ("" if edge.probability is None else f" ({edge.probability:.2f})")
        colour = _LINK if shown.kept(edge) else _WRONG
        yield (
            f'<path class="carried" d="{path}" fill="none" stroke="{colour}" stroke-width="4" stroke-dasharray="6 4" '
            f'stroke-opacity="{0.7 * _strength(edge.probability):.2f}"><title>{escape(told)}</title></path>'
        )


def _tree(picture: Picture, middles: Sequence[float], levels: Levels, base: float, sign: int) -> Iterator[str]:
    """Solid arcs, with arrows at words that depend, and relations."""
    side = picture.sides[0]
    placed = {(head, word): level for head, word, level in levels}
    notes = []
    for word, head in enumerate(side.heads):
        if head < 0 or head - 1 == word:
            continue
        level = _root_level(levels) if head == 0 else placed[head - 1, word]
        path = _path(middles, head - 1, word, level, base, sign)
        arrow = f"M{middles[word]:.5g} {base + sign:.5g}l-3.5 {7 * sign}h7z"
        told, opacity = _told(picture, side, word), _strength(side.confidence[word])
        yield (
            f'<g stroke-opacity="{opacity:.2f}" fill-opacity="{opacity:.2f}"><title>{escape(told)}</title>'
            f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.4"/>'
            f'<path d="{arrow}" fill="currentColor"/></g>'
        )
        if side.labels[word]:
            x = middles[word] if head == 0 else (middles[head - 1] + middles[word]) / 2
            y = base + sign * _STEP * level + (-4 if sign < 0 else _SMALL + 2)
            label = escape(clip(side.labels[word], LONGEST))
            notes.append(
                f'<text class="link" x="{x:.5g}" y="{y:.5g}" text-anchor="middle" font-size="{_SMALL}">{label}</text>'
            )
    yield from notes  # after all lines, so that none goes through a label


def _told(picture: Picture, side: Side, word: int) -> str:
    head = side.heads[word]
    told = f"{picture.words[head - 1] if head else 'root'} → {picture.words[word]}"
    told += f": {side.labels[word]}" if side.labels[word] else ""
    return told + ("" if side.confidence[word] is None else f" ({side.confidence[word]:.2f})")


def _root_level(levels: Levels) -> int:
    return 1 + max((level for _, _, level in levels), default=0)


def _path(middles: Sequence[float], head: int, word: int, level: int, base: float, sign: int) -> str:
    """An arc; a head of −1 is the root."""
    if head < 0:
        return f"M{middles[word]:.5g} {base + sign * _STEP * level:.5g}V{base + sign * 5:.5g}"
    return _arc_path(middles[head], middles[word], base, sign, level)[0]


def _strength(chance: float | None) -> float:
    return 1.0 if chance is None else 0.25 + 0.75 * min(max(chance, 0.0), 1.0)


# Page ----------------------------------------------------------------------------------------------------------------


def projection_page(
    pairs: Iterable[Mapping[str, Any]], *, title: str = "Projection", summary: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Make a page with a picture of each pair, piece by piece; it needs nothing but a browser. As `tree_page`.

    Examples
    --------
    >>> pair = {"source": {"words": ["<a>"], "heads": [0]}, "target": {"words": ["b"], "heads": [0]}, "links": [[0, 0]]}
    >>> text = "".join(projection_page([pair]))
    >>> text.count("<svg"), "<a>" in text
    (1, False)
    """
    yield from write_page_of(map(_figure, pairs), title, summary, _NOTE)


def _figure(pair: Mapping[str, Any]) -> Figure:
    shown = _Shown.of(pair)
    said = [
        text for picture in (shown.source, shown.target) for side in picture.sides
        for text in (*picture.words, *side.tags, *side.labels)
    ]  # fmt: skip
    return Figure(projection_svg(pair, standalone=False), said, _NOTE, pair.get("number"))
