"""Threads through dated documents: a time line, and the documents to read.

A dictionary has the keys of `isogloss.tasks.documents.threads.ThreadSet.as_dict`: `threads`, each with `documents`, a
list of dictionaries with `id`, `text` (how it begins) and perhaps `date` (``2011``, ``2011-03`` or ``2011-03-04``) and
`similarity` to the one before; and perhaps a `weight`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from html import escape
from importlib import resources
from typing import Any

from isogloss.errors import ParameterError
from isogloss.show._figure import _FONT
from isogloss.show._measure import clip, display_width, printable
from isogloss.show._page import _summary, _text

__all__ = ["threads_page", "threads_svg", "threads_terminal"]

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW, _SIZE, _SMALL = 960, 70, 30, 34, 56, 13, 11
_MOST_TICKS = 12
_COLOURS = ("#3584c8", "#d9602a", "#2f9e6e", "#b055a8", "#a8862a", "#5b6068", "#c84848", "#3a9aa8")
_STYLE = """
.line { overflow-x: auto; min-height: 0; }
.line svg { display: block; }
.thread ol { list-style: none; margin: .3rem 0 0; padding: 0; }
.thread li { display: grid; grid-template-columns: 6.5rem minmax(0, 1fr); gap: 0 .8rem; padding: .3rem 0;
  border-top: 1px solid var(--rule); scroll-margin-top: 4rem; }
.thread li:target { background: var(--soft); }
.thread .when { color: var(--muted); font-variant-numeric: tabular-nums; font-size: .9rem; }
.thread .id { color: var(--muted); font-size: .84rem; }
.thread .swatch { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-inline-end: .4em; }
.thread h2 { font-size: 1rem; margin: .2rem 0; }
.note { color: var(--muted); font-size: .9rem; }
"""
_HEAD = """<!DOCTYPE html>
<html lang="en" data-theme="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Isogloss">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
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
<p class="note">{note}</p>
<main aria-label="Threads">
"""
DATED = (
    "A dot is a document, at its date; a line is a thread, read from left to right. Click on a dot to go to its text."
)
UNDATED = "A dot is a document, a line is a thread, read from left to right. Click on a dot to go to its text."


def threads_terminal(found: Mapping[str, Any], *, width: int = 80) -> str:
    """Threads as lines of text: date, id, and how each document begins.

    Examples
    --------
    >>> print(threads_terminal({"threads": [{"documents": [{"id": "a", "date": "2001", "text": "Rain"},
    ...     {"id": "b", "date": "2002", "text": "Rain, and a flood", "similarity": 0.5}]}]}, width=30))
    1 ── 2001 to 2002
      2001  a  Rain
      2002  b  Rain, and a flood
    """
    if width < 20:
        raise ParameterError(f"show.threads_terminal: width should be at least 20 columns, not {width!r}")
    rows: list[str] = []
    for number, documents in enumerate(_documents(found), 1):
        days = [str(each.get("date") or "") for each in documents]
        known = [day for day in days if day]
        rows.append(f"{number} ──" + (f" {known[0]} to {known[-1]}" if known else ""))
        names = [printable(str(each["id"])) for each in documents]
        wide = [max(map(display_width, column), default=0) for column in (days, names)]
        for day, name, each in zip(days, names, documents, strict=True):
            columns = [day.ljust(wide[0]), name + " " * (wide[1] - display_width(name)), printable(str(each["text"]))]
            rows.append(clip("  " + "  ".join(column for column in columns if column.strip()), width))
    return "\n".join(rows)


def threads_svg(found: Mapping[str, Any], *, standalone: bool = True) -> str:
    """A time line with a row for each thread: a dot for each document at its date, joined by a curve.

    Where a document has no date, all documents stand at their places in their threads. Pointing at a dot shows the
    document; on a page, it leads to its text.

    Returns
    -------
    str
        Well-formed XML without scripts or anything to load.

    Examples
    --------
    >>> drawn = threads_svg({"threads": [{"documents": [{"id": "<a>", "date": "2001", "text": "Rain"}]}]})
    >>> drawn.count("<circle"), "&lt;a&gt;" in drawn
    (1, True)
    """
    threads = _documents(found)
    places, ticks = _places(threads)
    height = _TOP + _ROW * max(len(threads), 1) + 20
    style = "<style>.isogloss-threads{color:#222;background:#fff}</style>" if standalone else ""
    label = f"{len(threads)} thread{'s'[: len(threads) != 1]} on a time line"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" class="isogloss-threads" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 0 {_WIDTH} {height}" font-family="{_FONT}" font-size="{_SIZE}" '
        f'fill="currentColor" aria-label="{label}">{style}'
    ]
    for x, name in ticks:
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{height - 8}" stroke="currentColor" '
            f'stroke-opacity="0.15"/><text x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle" font-size="{_SMALL}" '
            f'fill-opacity="0.7">{escape(name)}</text>'
        )
    for number, (documents, xs) in enumerate(zip(threads, places, strict=True)):
        parts += _thread(number, documents, xs, _TOP + _ROW * number + _ROW / 2, standalone)
    return "".join([*parts, "</svg>"])


def _thread(
    number: int, documents: Sequence[Mapping[str, Any]], xs: Sequence[float], y: float, standalone: bool
) -> Iterator[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    yield f'<text x="10" y="{y + 5:.1f}" font-weight="600">{number + 1}</text>'
    level = _levels(xs)
    points = [(x, y + 9 * up) for x, up in zip(xs, level, strict=True)]
    if len(points) > 1:
        way = " ".join(f"{x:.1f},{at:.1f}" for x, at in points)
        yield f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2" stroke-opacity="0.6"/>'
    for place, ((x, at), each) in enumerate(zip(points, documents, strict=True)):
        said = " ".join(filter(None, [str(each.get("date") or ""), str(each["id"]), clip(str(each["text"]), 160)]))
        title = f"<title>{escape(printable(said))}</title>"
        dot = f'<circle cx="{x:.1f}" cy="{at:.1f}" r="6" fill="{colour}">{title}</circle>'
        yield dot if standalone else f'<a href="#t{number + 1}-{place + 1}">{dot}</a>'


def _levels(xs: Sequence[float]) -> list[int]:
    """Dots that would hide each other stand one above the other, in turns."""
    found: list[int] = []
    for place, x in enumerate(xs):
        near = place > 0 and abs(x - xs[place - 1]) < 11
        found.append((1 if found[-1] <= 0 else -1) if near else 0)
    return found


def _documents(found: Mapping[str, Any]) -> list[Sequence[Mapping[str, Any]]]:
    try:
        made: list[Sequence[Mapping[str, Any]]] = [list(thread["documents"]) for thread in found["threads"]]
        for each in (each for thread in made for each in thread):
            _ = each["id"], each["text"]
    except (KeyError, TypeError) as problem:
        raise ParameterError(f"show: threads need documents with id and text ({problem!r})") from None
    return made


def _places(
    threads: Sequence[Sequence[Mapping[str, Any]]],
) -> tuple[list[list[float]], list[tuple[float, str]]]:
    """Where documents stand, in pixels, and the marks of the time line."""
    days = [[_day(each.get("date")) for each in documents] for documents in threads]
    known = [day for row in days for day in row]
    room = _WIDTH - _LEFT - _RIGHT
    if not known or None in known:
        most = max([len(row) for row in days], default=1)
        return [[_LEFT + room * (k + 0.5) / most for k in range(len(row))] for row in days], []
    first, last = (pick(day for day in known if day is not None) for pick in (min, max))
    span = max(last - first, 1.0)

    def at(day: float) -> float:
        return _LEFT + room * (0.5 if last == first else (day - first) / span)

    years = range(int(first), int(last) + 1)
    step = max(1, -(-len(years) // _MOST_TICKS))
    ticks = [(at(float(year)), str(year)) for year in years if year % step == 0 and first <= year <= last]
    if not ticks:
        shown = sorted({str(each["date"]) for row in threads for each in row}, key=lambda d: _day(d) or 0.0)
        ends = dict.fromkeys((shown[0], shown[-1]))
        ticks = [(at(_day(name) or 0.0), name) for name in ends]
    return [[at(day) for day in row if day is not None] for row in days], ticks


def _day(given: Any) -> float | None:
    """A date as a number of years; None for none."""
    if not given:
        return None
    numbers = [int(part) for part in str(given).split("-")]
    year, month, day = (*numbers, 1, 1)[:3]
    return (
        year + (date(2001, month, min(day, 28 if month == 2 else day)).toordinal() - date(2001, 1, 1).toordinal()) / 365
    )


def threads_page(
    found: Mapping[str, Any], *, title: str = "Threads", summary: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Make a page of threads, piece by piece: the time line, then the documents of each thread to read.

    It asks the network for nothing, and needs no scripts.

    Parameters
    ----------
    found : dict
        See above.
    title : str
        What the page is called.
    summary : dict, optional
        Shown at the top as it is.

    Examples
    --------
    >>> found = {"threads": [{"documents": [{"id": "a", "date": "2001", "text": "<Rain>"}]}]}
    >>> text = "".join(threads_page(found))
    >>> text.count("<svg"), "<Rain>" in text, "&lt;Rain&gt;" in text
    (1, False, True)
    """
    threads = _documents(found)
    style = (resources.files("isogloss.show") / "assets" / "page.css").read_text(encoding="utf-8") + _STYLE
    dated = all(each.get("date") for thread in threads for each in thread)
    note = DATED if dated else UNDATED
    yield _HEAD.format(title=_text(title), style=style, summary=_summary(summary), note=_text(note))
    if not threads:
        yield '<p class="note">There is nothing to show.</p>\n'
    yield f'<figure class="pair line">{threads_svg(found, standalone=False)}</figure>\n'
    for number, documents in enumerate(threads, 1):
        colour = _COLOURS[(number - 1) % len(_COLOURS)]
        yield (
            f'<section class="pair thread"><h2><span class="swatch" style="background:{colour}"></span>'
            f"Thread {number}</h2><ol>\n"
        )
        for place, each in enumerate(documents, 1):
            near = each.get("similarity")
            like = "" if near is None else f" · similarity to the one before: {100 * near:.0f}%"
            yield (
                f'<li id="t{number}-{place}"><span class="when">{_text(str(each.get("date") or ""))}</span>'
                f"<span><bdi>{_text(str(each['text']))}</bdi> "
                f'<span class="id">{_text(str(each["id"]))}{like}</span></span></li>\n'
            )
        yield "</ol></section>\n"
    yield "</main>\n</body>\n</html>\n"
