"""Many trees as one HTML page that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any, NamedTuple

from isogloss.show._measure import runs_right_to_left
from isogloss.show._page import _summary, _text
from isogloss.show._tree_picture import Picture
from isogloss.show.constituents import Bracketing, constituents_svg
from isogloss.show.trees import tree_svg

__all__ = ["Figure", "tree_page", "write_page_of"]

ARROWS = "An arrow points from a word to one that depends on it. Fainter links are less sure, if that is known."
LINES = "Lines lead from a constituent to its parts. Fainter ones are less sure, if that is known."
_STYLE = """
.tree { overflow-x: auto; min-height: 0; content-visibility: auto; contain-intrinsic-size: auto 16rem; }
.tree svg { display: block; direction: ltr; }
.tree text { paint-order: stroke; stroke: var(--card); stroke-width: 3px; }
.note { color: var(--muted); font-size: .9rem; }
"""
_SCRIPT = """
const trees = [...document.querySelectorAll(".tree")];
const search = document.getElementById("search");
function choose() {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  for (const tree of trees) {
    const hit = words.every(word => word[0] === "#" ? tree.dataset.number === word.slice(1) :
      tree.dataset.words.includes(word));
    tree.hidden = !hit;
    shown += hit;
  }
  document.getElementById("count").textContent = shown + " of " + trees.length + " sentences";
}
search.addEventListener("input", choose);
document.getElementById("controls").addEventListener("submit", event => event.preventDefault());
choose();
"""
_HEAD = """<!DOCTYPE html>
<html lang="en" data-theme="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Isogloss">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header class="top">
<h1 dir="auto">{title}</h1>
{summary}
</header>
<form class="bar" id="controls" role="search" aria-label="Search and filter"><div class="tools">
<label class="search">Search <input type="search" id="search" placeholder="words, tags, labels, or #3" \
autocomplete="off" spellcheck="false" dir="auto"></label>
<span id="count" role="status"></span>
</div></form>
<p class="note">{note}</p>
<main id="list" aria-label="Trees">
"""


def tree_page(
    trees: Iterable[Mapping[str, Any]],
    *,
    title: str = "Trees",
    summary: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """Make a page with a picture of each tree, piece by piece.

    The pictures are in the page as SVG, and can be searched for words, tags and labels. The page asks the network for
    nothing, and shows all trees also where scripts are switched off.

    Parameters
    ----------
    trees : iterable of dict
        See `isogloss.show.trees` and `isogloss.show.constituents`; `number` may say which sentence of the file it is,
        from 1. Read once, none is kept.
    title : str
        What the page is called.
    summary : dict, optional
        Shown at the top as it is.

    Yields
    ------
    str
        Pieces of the page, to be written one after the other as UTF-8.

    Examples
    --------
    >>> text = "".join(tree_page([{"words": ["Look", "<here>"], "heads": [0, 1]}], title="Two words"))
    >>> text.count("<svg"), "<here>" in text, "&lt;here&gt;" in text
    (1, False, True)
    """
    yield from write_page_of(map(_figure, trees), title, summary, ARROWS)


def _figure(tree: Mapping[str, Any]) -> Figure:
    """One tree, of links or of constituents, with what there is to say of it."""
    bracketed = "parents" in tree
    picture = Bracketing.of(tree) if bracketed else Picture.of(tree)
    drawn = (constituents_svg if bracketed else tree_svg)(tree, standalone=False)
    said = [text for side in picture.sides for text in (*picture.words, *side.tags, *side.labels)]
    note = LINES if bracketed else ARROWS
    if len(picture.sides) == 2:
        first, second = picture.names
        note += f" Above the words: {first}; below them: {second}. Thicker lines and ≠ are where they differ."
    return Figure(drawn, said, note, tree.get("number"), runs_right_to_left(picture.words))


class Figure(NamedTuple):
    """A picture on a page: SVG, the words it is found by, and what is said above all pictures like it."""

    svg: str
    words: Sequence[str]
    note: str
    number: int | None = None
    right_to_left: bool = False


def write_page_of(
    figures: Iterable[Figure], title: str, summary: Mapping[str, Any] | None, note: str
) -> Iterator[str]:  # fmt: skip
    """A page of pictures that can be searched; `note` is said where there are none."""
    style = (resources.files("isogloss.show") / "assets" / "page.css").read_text(encoding="utf-8") + _STYLE
    begun = False
    for number, figure in enumerate(figures, start=1):
        if not begun:
            yield _HEAD.format(title=_text(title), style=style, summary=_summary(summary), note=_text(figure.note))
            begun = True
        direction = ' dir="rtl"' if figure.right_to_left else ""
        yield (
            f'<figure class="pair tree"{direction} data-number="{int(figure.number or number)}" '
            f'data-words="{escape(" ".join(dict.fromkeys(figure.words)).lower())}">{figure.svg}</figure>\n'
        )
    if not begun:
        yield _HEAD.format(title=_text(title), style=style, summary=_summary(summary), note=_text(note))
        yield '<p class="note">There is nothing to show.</p>\n'
    yield f"</main>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
