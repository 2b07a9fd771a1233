"""Many trees as one HTML page that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib import resources
from typing import Any

from isogloss.show._measure import runs_right_to_left
from isogloss.show._page import _summary, _text
from isogloss.show._tree_picture import Picture
from isogloss.show.trees import tree_svg

__all__ = ["tree_page"]

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
        See `isogloss.show.trees`; `number` may say which sentence of the file it is, from 1. Read once, none is kept.
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
    style = (resources.files("isogloss.show") / "assets" / "page.css").read_text(encoding="utf-8")
    begun = False
    for number, tree in enumerate(trees, start=1):
        picture = Picture.of(tree)
        if not begun:
            yield _head(title, style, summary, len(picture.sides) == 2, picture.names)
            begun = True
        yield _figure(picture, tree, number)
    if not begun:
        yield _head(title, style, summary, False, ())
        yield '<p class="note">There is nothing to show.</p>\n'
    yield f"</main>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"


def _head(title: str, style: str, summary: Mapping[str, Any] | None, two: bool, names: tuple[str, ...]) -> str:
    note = "An arrow points from a word to one that depends on it. Fainter links are less sure, if that is known."
    if two:
        note += f" Above the words: {names[0]}; below them: {names[1]}. Thicker links and ≠ are where they differ."
    return _HEAD.format(title=_text(title), style=style + _STYLE, summary=_summary(summary), note=_text(note))


def _figure(picture: Picture, tree: Mapping[str, Any], number: int) -> str:
    words = [text for side in picture.sides for text in (*picture.words, *side.tags, *side.labels)]
    direction = ' dir="rtl"' if runs_right_to_left(picture.words) else ""
    return (
        f'<figure class="pair tree"{direction} data-number="{int(tree.get("number", number))}" '
        f'data-words="{escape(" ".join(dict.fromkeys(words)).lower())}">'
        f"{tree_svg(tree, standalone=False)}</figure>\n"
    )
