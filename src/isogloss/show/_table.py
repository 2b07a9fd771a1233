"""A few rows as a table, for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from isogloss.show._measure import clip, printable

__all__ = ["table"]

_WIDEST = 200
"""Columns of text that a cell may have."""


def table(given: Mapping[str, Any]) -> str:
    """Draw the first rows of something long as a self-contained HTML fragment.

    Parameters
    ----------
    given : dict
        `heads`, the names of the columns; `rows`, each with a cell for every column; and perhaps `caption`, what stands
        above, and `total`, how many rows there are if not all are given.

    Returns
    -------
    str
        Well-formed XML, without scripts or anything to load. Text is escaped, long cells are cut, and cells run from
        right to left where their text does.

    Examples
    --------
    >>> drawn = table({"heads": ["word"], "rows": [["<b>"]], "total": 3})
    >>> "<td dir='auto'>&lt;b&gt;</td>" in drawn.replace('"', "'"), "and 2 more" in drawn
    (True, True)
    """
    rows = [_row("td", cells) for cells in given["rows"]]
    left = int(given.get("total", len(rows))) - len(rows)
    caption = _text(str(given.get("caption", "")))
    more = f"<figcaption>and {left:,} more</figcaption>" if left > 0 else ""
    return (
        f'<figure class="isogloss" style="margin:0.5em 0"><div>{caption}</div><div style="overflow-x:auto"><table>'
        f"<thead>{_row('th', given['heads'])}</thead><tbody>{''.join(rows)}</tbody></table></div>{more}</figure>"
    )


def _row(kind: str, cells: Any) -> str:
    inner = "".join(f'<{kind} dir="auto">{_text(clip(str(cell), _WIDEST))}</{kind}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _text(text: str) -> str:
    return escape(printable(text))
