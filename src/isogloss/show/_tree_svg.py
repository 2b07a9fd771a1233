"""What pictures of words with something above or below them have in common, be it trees, constituents or names."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from isogloss.show._figure import _COLUMN, _FONT
from isogloss.show._measure import clip, display_width, runs_right_to_left

__all__ = ["EDGE", "LONGEST", "SIZE", "STYLE", "Layout", "closing", "opening", "text_width", "word_texts"]

SIZE = 15
"""Font size of words, in pixels."""
EDGE = 12
LONGEST = 28
"""Columns of a word or a label; the rest is in its tooltip."""
STYLE = (  # text has a rim of the background, so that lines behind it do not strike it through
    "<style>.isogloss-tree{color:#1d1f22;background:#fff}"
    ".isogloss-tree text{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    "@media (prefers-color-scheme:dark){.isogloss-tree{color:#e9e9e6;background:#1c1f23}"
    ".isogloss-tree text{stroke:#1c1f23}}</style>"
)


class Layout(NamedTuple):
    """Pixels: the middle of each word, and where trees begin above the words and, of a second one, below them."""

    middles: list[float]
    width: float
    height: float
    above: float
    below: float


def text_width(text: str, size: int) -> float:
    """How wide a text is, in pixels, about."""
    return display_width(text) * size * _COLUMN


def opening(width: float, height: float, name: str, style: str) -> str:
    """The first tag of a picture; `name` is what is said of it, escaped."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" class="isogloss-tree" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}" font-size="{SIZE}" '
        f'fill="currentColor" aria-label="{name}">{style}'
    )


def closing(height: float, name: str, small: int) -> str:
    """What is said of the picture, below it, and the last tag."""
    return f'<text x="{EDGE}" y="{height - 8:.0f}" font-size="{small}" fill-opacity="0.7">{name}</text></svg>'


def word_texts(word: str, tag: str, x: float, y: float, small: int) -> Iterator[str]:
    """A word and the tag below it, with their middles at `x`."""
    shown = clip(word, LONGEST)
    title = f"<title>{escape(word)}</title>" if shown != word else ""
    direction = ' direction="rtl"' if runs_right_to_left([word]) else ""
    yield f'<text x="{x:.5g}" y="{y:.5g}" text-anchor="middle"{direction}>{escape(shown)}{title}</text>'
    if tag:
        yield (
            f'<text x="{x:.5g}" y="{y + small + 4:.5g}" text-anchor="middle" font-size="{small}" '
            f'fill-opacity="0.7">{escape(tag)}</text>'
        )
