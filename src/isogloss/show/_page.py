"""Many sentence pairs as one HTML page that needs nothing but a browser."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, TextIO

from isogloss.errors import UsageError
from isogloss.show._measure import printable, runs_right_to_left
from isogloss.show._pair import Pair

__all__ = ["page", "write_page"]

_SLOT = re.compile(r"<!--slot:(\w+)-->|/\*slot:(\w+)\*/")
_NAMES = {"precision": "Precision", "recall": "Recall", "f1": "F", "f": "F", "aer": "AER"}

# Inside <script> a browser looks for "</script" and "<!--" whatever JSON says, old engines end a line at U+2028, and
# a lone surrogate has no UTF-8; JSON reads all of these back from their escapes.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def page(
    pairs: Iterable[Mapping[str, Any]],
    *,
    title: str = "Alignments",
    summary: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """Make a page for many sentence pairs, piece by piece.

    The page shows each pair as two lines of words with curves between them, or as a grid. It sorts by order in the
    file, by disagreement with gold and by confidence, searches words, and hides links below a probability while it
    counts precision, recall, F and AER of what is left. Of two systems it shows first where they differ most,
    and lists those links beside gold, with the reasons that are given. It asks the network for nothing. Pairs are drawn
    when they come into view, so thousands open at once.

    Parameters
    ----------
    pairs : iterable of dict
        See `isogloss.show`. Read once; none is kept, so that memory does not grow with them.
    title : str
        What the page is called.
    summary : dict, optional
        Shown at the top as it is: scores in percent (`precision`, `recall`, `f1`, `aer`) and whatever else should be
        known of the run (`signature`, model, data).

    Yields
    ------
    str
        Pieces of the page, to be written one after the other as UTF-8.

    Examples
    --------
    >>> pieces = page([{"source": ["das"], "target": ["the"], "links": [[0, 0, 0.9]]}], title="das <the>")
    >>> next(line for line in "".join(pieces).split("\\n") if "<title>" in line)
    '<title>das &lt;the&gt;</title>'
    """
    assets = resources.files("isogloss.show") / "assets"
    texts = {
        name: (assets / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "draw.js", "page.js")
    }
    slots = {
        "title": _text(title),
        "style": texts["page.css"],
        "summary": _summary(summary),
        "draw": texts["draw.js"],
        "script": texts["page.js"],
    }
    at = 0
    for slot in _SLOT.finditer(texts["page.html"]):
        yield texts["page.html"][at : slot.start()]
        name = slot[1] or slot[2]
        if name == "pairs":
            yield from _embedded(pairs)
        else:
            yield slots[name]
        at = slot.end()
    yield texts["page.html"][at:]


def write_page(
    pairs: Iterable[Mapping[str, Any]],
    where: str | os.PathLike[str] | TextIO,
    *,
    title: str = "Alignments",
    summary: Mapping[str, Any] | None = None,
) -> None:
    """Write the page of `page` to a file, or to an open text stream.

    A file appears whole or not at all: it is written beside its name and moved there at the end.
    """
    pieces = page(pairs, title=title, summary=summary)
    if not isinstance(where, str | os.PathLike):
        where.writelines(pieces)
        return
    goal = Path(where)
    if not goal.absolute().parent.is_dir():
        raise UsageError(f"show.write_page: there is no folder {goal.parent} for {goal.name}; make it first")
    handle, beside = tempfile.mkstemp(prefix=f".{goal.name}.", dir=goal.absolute().parent)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, goal)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _umask() -> int:
    """The permissions that new files go without; mkstemp grants none to others."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _embedded(pairs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    yield "["
    for number, given in enumerate(pairs):
        text = json.dumps(_record(Pair.of(given, number + 1)), ensure_ascii=False, separators=(",", ":"))
        yield (",\n" if number else "\n") + _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    yield "\n]"


def _record(pair: Pair) -> dict[str, Any]:
    """The pair as the page keeps it: the dictionary that was given, the posterior as a list of what it adds."""
    record: dict[str, Any] = {"source": pair.source, "target": pair.target, "links": _triples(pair.links)}
    if pair.possible:
        record["possible"] = sorted(pair.possible)
    if pair.posterior:
        record["posterior"] = _triples(pair.posterior)
    if pair.sure is not None:
        record["gold"] = {"sure": sorted(pair.sure), "possible": sorted(pair.allowed)}
    if pair.other is not None:
        record |= {"other": _triples(pair.other), "names": pair.names}
    if pair.reasons:
        record["reasons"] = [
            {"source": i, "target": j, "features": [[name, round(value, 3)] for name, value in why.features],
             "probability": None if why.probability is None else round(why.probability, 4), "text": why.text}
            for (i, j), why in sorted(pair.reasons.items())
        ]  # fmt: skip
    for key in ("line", "title", "confidence", "languages"):
        if (value := getattr(pair, key)) is not None:
            record[key] = value
    record["rtl"] = [int(runs_right_to_left(side)) for side in (pair.source, pair.target)]
    return record


def _triples(links: Mapping[tuple[int, int], float | None]) -> list[list[float | None]]:
    return [[i, j, None if p is None else round(p, 4)] for (i, j), p in links.items()]


def _summary(summary: Mapping[str, Any] | None) -> str:
    if not summary:
        return ""
    entries = []
    for key, value in summary.items():
        shown = f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
        words = str(key).replace("_", " ")
        name = _NAMES.get(words.lower(), words[:1].upper() + words[1:])
        score = ' class="score"' if str(key).lower() in _NAMES else ""
        entries.append(f"<div{score}><dt>{_text(name)}</dt><dd><bdi>{_text(shown)}</bdi></dd></div>")
    return f'<dl class="summary">{"".join(entries)}</dl>'


def _text(text: str) -> str:
    return escape(printable(text))
