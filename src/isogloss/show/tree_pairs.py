"""Both trees of a sentence pair and the links between their words in one picture: source above, target below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from isogloss.show._tree_svg import EDGE, LONGEST, SIZE, STYLE, closing, opening, text_width, word_texts

__all__ = ["tree_pair", "tree_pairs_page"]

SMALL, GAP, STEP, LINKS = 11, 18, 22, 90
"""Size of small text; pixels between words, for each level of a tree, and between both sentences."""
AGREES = "#2b6cb0"
"""Links of trees that both sides have, through links of their words."""


def tree_pair(pair: Mapping[str, Any]) -> str:
    """An SVG of one pair, as `isogloss.data.TreePairs.as_dict` describes it.

    The tree of the source is drawn above its words, that of the target upside down below its words. Links of trees that
    synchronise, whose heads and children are linked to those of a link on the other side, are drawn thick.

    Examples
    --------
    >>> side = {"words": ["she", "sleeps"], "tags": ["PRON", "VERB"], "heads": [2, 0], "labels": ["nsubj", "root"]}
    >>> picture = tree_pair({"source": side, "target": side, "links": [(0, 0), (1, 1)]})
    >>> picture.count("<path"), picture.count("<line"), picture.count('stroke-width="2.5"')
    (4, 2, 4)
    """
    sides = [pair["source"], pair["target"]]
    middles = [_middles(side["words"], side["tags"]) for side in sides]
    levels = [_levels(side["heads"]) for side in sides]
    heights = [STEP * (max(level, default=0) + 1) + SIZE for level in levels]
    width = max((row[-1] if row else 0.0) for row in middles) + 60 + EDGE
    top = EDGE + heights[0] + SIZE
    bottom = top + SMALL + LINKS
    height = bottom + SMALL + 10 + heights[1] + 2 * SIZE
    name = escape(f"{' '.join(sides[0]['words'])} – {' '.join(sides[1]['words'])}")
    links = [(int(i), int(j)) for i, j in pair["links"]]
    agree = _agreeing(sides, links)
    out = [opening(width, height, name, STYLE)]
    for i, j in links:
        ends = f'x1="{middles[0][i]:.5g}" y1="{top + SMALL + 8:.5g}" x2="{middles[1][j]:.5g}" y2="{bottom - SIZE:.5g}"'
        out.append(f'<line {ends} stroke="currentColor" stroke-opacity="0.5"/>')
    for k, (side, place, sign) in enumerate(((sides[0], top - SIZE - 2, -1), (sides[1], bottom + SMALL + 8, 1))):
        out += _arcs(side, middles[k], levels[k], place, sign, agree[k])
        for word, tag, x in zip(side["words"], side["tags"], middles[k], strict=True):
            out += word_texts(word, tag, x, top if k == 0 else bottom, SMALL)
    out.append(closing(height, name, SMALL))
    return "".join(out)


def tree_pairs_page(pairs: Iterable[Mapping[str, Any]], title: str) -> Iterator[str]:
    """A page of such pictures, piece by piece; it needs no network."""
    head = f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(title)}</title></head><body>'
    yield head + f"<h1>{escape(title)}</h1>\n"
    for number, pair in enumerate(pairs, start=1):
        yield f'<div style="overflow-x:auto"><p>{number}</p>{tree_pair(pair)}</div>\n'
    yield "</body></html>\n"


def _middles(words: list[str], tags: list[str]) -> list[float]:
    found, at = [], float(EDGE)
    for word, tag in zip(words, tags, strict=True):
        wide = max(text_width(word[:LONGEST], SIZE), text_width(tag, SMALL), 20.0)
        found.append(at + wide / 2)
        at += wide + GAP
    return found


def _levels(heads: list[int]) -> list[int]:
    """How high the link of each word is drawn: above all links below it."""
    spans = {w: (min(w, h - 1), max(w, h - 1)) for w, h in enumerate(heads) if h > 0}
    levels = [0] * len(heads)
    for w in sorted(spans, key=lambda w: spans[w][1] - spans[w][0]):
        low, high = spans[w]
        inner = [levels[o] for o, (a, b) in spans.items() if o != w and low <= a and b <= high and b - a < high - low]
        levels[w] = 1 + max(inner, default=0)
    top = max(levels, default=0)
    return [top + 1 if h == 0 else level for h, level in zip(heads, levels, strict=True)]


def _agreeing(sides: list[Mapping[str, Any]], links: list[tuple[int, int]]) -> tuple[set[int], set[int]]:
    """Words of each side whose links to their heads synchronise with one on the other side; roots with roots."""
    linked = {(0, 0), *((i + 1, j + 1) for i, j in links)}
    found: tuple[set[int], set[int]] = (set(), set())
    for i, j in links:
        if (sides[0]["heads"][i], sides[1]["heads"][j]) in linked:
            found[0].add(i)
            found[1].add(j)
    return found


def _arcs(
    side: Mapping[str, Any], middles: list[float], levels: list[int], y: float, sign: int, agree: set[int]
) -> Iterator[str]:
    for word, (head, label) in enumerate(zip(side["heads"], side["labels"], strict=True)):
        if head < 0:
            continue
        top = y + sign * STEP * levels[word]
        child = middles[word]
        paint = f'stroke="{AGREES}" stroke-width="2.5"' if word in agree else 'stroke="currentColor" stroke-width="1"'
        if head == 0:
            path, middle = f"M{child:.5g} {y:.5g}V{top:.5g}", child
        else:
            start = middles[head - 1]
            path = f"M{start:.5g} {y:.5g}C{start:.5g} {top:.5g} {child:.5g} {top:.5g} {child:.5g} {y:.5g}"
            middle = 0.5 * (start + child)
            top = y + sign * 0.75 * STEP * levels[word]
        yield f'<path d="{path}" fill="none" {paint}><title>{escape(label)}</title></path>'
        yield (
            f'<text x="{middle:.5g}" y="{top + (SMALL if sign > 0 else -3):.5g}" text-anchor="middle" '
            f'font-size="{SMALL}">{escape(label)}</text>'
        )
