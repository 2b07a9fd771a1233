"""What spans and places are seen by: the surface features of "less grammar, more features", with tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isogloss.features import Templates

__all__ = ["ABOVE_TEMPLATES", "PLACE_TEMPLATES", "SPAN_TEMPLATES", "templates_for"]

SPAN_TEMPLATES: tuple[Any, ...] = (
    (),
    "first.word", "last.word", "first.word[-1]", "last.word[+1]", "first.word[+1]", "last.word[-1]",
    "first.tag", "last.tag", "first.tag[-1]", "last.tag[+1]", "first.tag[+1]", "last.tag[-1]",
    "first.ending", "last.ending", "first.ending[-1]", "last.ending[+1]",
    "first.word[-1] & first.word", "last.word & last.word[+1]", "first.word & last.word",
    "first.word[-1] & last.word[+1]", "first.word & last.word[+1]",
    "first.tag[-1] & first.tag", "last.tag & last.tag[+1]", "first.tag & last.tag", "first.tag[-1] & last.tag[+1]",
    "first.word & last.tag", "first.tag & last.word", "first.word & last.tag[+1]", "first.tag & last.word[+1]",
    "first.word[-1] & last.tag", "first.tag[-1] & last.word", "first.word[-1] & last.tag[+1]",
    "first.tag[-1] & last.word[+1]", "first.word[-1] & first.tag", "first.tag[-1] & first.word",
    "last.word & last.tag[+1]", "last.tag & last.word[+1]",
    "first.tag[-1] & first.tag & last.tag", "first.tag & last.tag & last.tag[+1]",
    "first.tag[-1] & first.tag & last.tag & last.tag[+1]",
    "first.tag[-2] & first.tag[-1] & first.tag", "last.tag & last.tag[+1] & last.tag[+2]",
    "first.tag & first.tag[+1] & last.tag[-1] & last.tag", "first.tag & first.tag[+1] & first.tag[+2]",
    "last.tag[-2] & last.tag[-1] & last.tag", "first.tag[-1] & first.tag & first.tag[+1]",
    "last.tag[-1] & last.tag & last.tag[+1]",
    "first.tag[-1] & first.tag & first.tag[+1] & last.tag[+1]",
    "first.tag[-1] & last.tag[-1] & last.tag & last.tag[+1]",
    "sequence", "outline", "first.tag[-1] & sequence", "sequence & last.tag[+1]",
    "first.tag[-1] & sequence & last.tag[+1]", "first.tag[-1] & outline & last.tag[+1]",
    "balance", "content", "balance & content", "first.tag & content", "first.tag[-1] & content & last.tag[+1]",
    "first.word & content",
)  # fmt: skip
"""Of a span, for its label. Each fires by itself and together with the length of the span, and so do those below."""

ABOVE_TEMPLATES: tuple[Any, ...] = (
    (),
    "first.tag", "last.tag", "first.tag[-1]", "last.tag[+1]", "first.word[-1]", "last.word[+1]", "first.word",
    "last.word", "first.tag[-1] & last.tag[+1]", "first.tag[-2] & first.tag[-1]", "last.tag[+1] & last.tag[+2]",
    "first.tag[-1] & first.tag", "last.tag & last.tag[+1]", "first.tag[-1] & first.tag & last.tag[+1]",
    "first.word[-1] & first.tag", "first.word[-1] & last.tag[+1]",
)  # fmt: skip
"""Of a span, for the label of the constituent that it is a child of."""

PLACE_TEMPLATES: tuple[Any, ...] = (
    (),
    "word", "tag", "tag[-1]", "word[-1]", "tag[+1]", "word[+1]", "tag[-1] & tag", "tag & tag[+1]", "word[-1] & tag",
    "tag[-1] & word", "tag[-2] & tag[-1]", "tag[-1] & tag & tag[+1]", "tag[-2] & tag[-1] & tag", "ending",
)  # fmt: skip
"""Of a word, for the label of the constituent that it is a child of, and of one whose children meet before it."""


def templates_for(order: int, spans: Sequence[Any] | None = None) -> dict[str, Templates]:
    """Templates of each family of features; those of spans may be others."""
    found = {"label": Templates(SPAN_TEMPLATES if spans is None else spans, kind="label")}
    if order == 2:
        found["below"] = Templates(ABOVE_TEMPLATES, kind="below")
        found["place"] = Templates(PLACE_TEMPLATES, kind="place")
    return found
