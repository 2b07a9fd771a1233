"""A page of topics: languages side by side, words as large as they are probable, documents, shares over time.

A dictionary has `languages` (names), `topics`, each with `topic` (its number), `share`, `shares` by language, `words`
by language (``[word, probability]``, the most probable first), and may have `documents` (``{"id", "date", "share",
"texts" by language}``); with `times` (names of points in time) and `counts` (documents of each), a topic also has
`times`, its mean share at each. `isogloss.tasks.documents.looking.as_page` makes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from isogloss.show._measure import printable, runs_right_to_left

__all__ = ["topics_page", "write_topics"]

_LARGE, _SMALL = 2.0, 0.8
_WIDTH, _HEIGHT = 360, 48
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --accent: #2a6fb0; --soft: #8882; }
body { font: 16px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 0; }
.topic { border-top: 1px solid var(--line); padding: .8rem 0; }
.head { display: flex; gap: 1rem; align-items: center; flex-wrap: wrap; }
.bar { background: var(--soft); width: 8rem; height: .6rem; }
.bar i { display: block; height: 100%; background: var(--accent); }
.languages { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: .3rem 1.5rem; }
.language b { font-weight: 600; opacity: .6; margin-inline-end: .5rem; } .language span { margin-inline-end: .5rem; }
details { margin-top: .4rem; } details li { margin: .3rem 0; } time, .share { opacity: .65; }
svg { display: block; } svg rect { fill: var(--accent); } svg text { font-size: 10px; fill: currentColor; opacity: .7; }
"""


def topics_page(given: Mapping[str, Any], *, title: str = "Topics") -> Iterator[str]:
    """Make a page, piece by piece; it asks the network for nothing, and needs no script.

    Examples
    --------
    >>> topic = {"topic": 0, "share": 1.0, "shares": {"en": 1.0}, "words": {"en": [["<sea>", 0.5]]}}
    >>> "&lt;sea&gt;" in "".join(topics_page({"languages": ["en"], "topics": [topic]}))
    True
    """
    yield "<!doctype html>\n<html><head><meta charset='utf-8'>"
    yield "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    yield f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n<body><h1>{_text(title)}</h1>\n"
    topics, times = given["topics"], given.get("times") or []
    languages = [str(name) for name in given["languages"]]
    yield f"<p>{len(topics)} topics, the largest first. Words are as large as they are probable in their topic.</p>\n"
    largest = max((float(topic["share"]) for topic in topics), default=1.0) or 1.0
    top = max((max(topic["times"]) for topic in topics if topic.get("times")), default=0.0)
    for topic in topics:
        yield from _topic(topic, languages, largest, times, top)
    yield "</body></html>\n"


def write_topics(given: Mapping[str, Any], where: str | os.PathLike[str], *, title: str = "Topics") -> None:
    """Write the page of `topics_page` to a file, whole or not at all."""
    from isogloss.data.formats import atomic_write

    with atomic_write(os.fspath(where)) as file:
        for piece in topics_page(given, title=title):
            file.write(piece.encode("utf-8", "backslashreplace"))


def _topic(
    topic: Mapping[str, Any], languages: Sequence[str], largest: float, times: Sequence[str], top: float
) -> Iterator[str]:
    share, number = float(topic["share"]), int(topic["topic"])
    yield f"<section class='topic' id='topic-{number}'><div class='head'><h2>Topic {number}</h2>"
    yield f"<div class='bar'><i style='width:{100 * share / largest:.1f}%'></i></div>"
    yield f"<span class='share'>{100 * share:.2f}% of all words</span></div>\n<div class='languages'>"
    for name in languages:
        yield _words(name, topic["words"].get(name) or [], float(topic["shares"].get(name, 0.0)))
    yield "</div>\n"
    if times and topic.get("times"):
        yield _time_line(times, topic["times"], top)
    if topic.get("documents"):
        yield f"<details><summary>{len(topic['documents'])} documents</summary><ol>"
        yield from (_document(one) for one in topic["documents"])
        yield "</ol></details>"
    yield "</section>\n"


def _words(language: str, words: Sequence[Any], share: float) -> str:
    high = max((float(p) for _, p in words), default=1.0) or 1.0
    sized = " ".join(
        f"<span style='font-size:{_SMALL + (_LARGE - _SMALL) * (float(p) / high) ** 0.5:.2f}em' "
        f"title='{100 * float(p):.2f}%'>{_text(str(word))}</span>"
        for word, p in words
    )
    direction = " dir='rtl'" if runs_right_to_left([str(word) for word, _ in words]) else ""
    tag = f" lang='{escape(language, quote=True)}'" if language else ""
    return (
        f"<div class='language'{tag}{direction}><b title='{100 * share:.2f}% of the words of this language'>"
        f"{_text(language)}</b>{sized}</div>"
    )


def _time_line(times: Sequence[str], values: Sequence[float], top: float) -> str:
    step = _WIDTH / max(1, len(times))
    bars = "".join(
        f"<rect x='{k * step:.1f}' y='{_HEIGHT * (1 - value / top):.1f}' width='{max(1.0, step - 1):.1f}' "
        f"height='{_HEIGHT * value / top:.1f}'><title>{_text(str(times[k]))}: {100 * value:.1f}%</title></rect>"
        for k, value in enumerate(values)
        if top > 0
    )
    return (
        f"<svg width='{_WIDTH}' height='{_HEIGHT + 14}' role='img' aria-label='share over time'>{bars}"
        f"<text x='0' y='{_HEIGHT + 11}'>{_text(str(times[0]))}</text><text x='{_WIDTH}' y='{_HEIGHT + 11}' "
        f"text-anchor='end'>{_text(str(times[-1]))}</text></svg>"
    )


def _document(one: Mapping[str, Any]) -> str:
    date = f" <time>{_text(str(one['date']))}</time>" if one.get("date") else ""
    texts = "".join(
        f"<div lang='{escape(str(name), quote=True)}'><bdi>{_text(str(text))}</bdi></div>"
        for name, text in one["texts"].items()
    )
    share = f"<span class='share'>{100 * float(one['share']):.0f}%</span>"
    return f"<li><b>{_text(str(one['id']))}</b>{date} {share}{texts}</li>"


def _text(text: str) -> str:
    return escape(printable(text))
