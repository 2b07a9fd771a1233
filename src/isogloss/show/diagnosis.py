"""A page of a diagnosis of two domains: what is lost between them, by what, and what to do next.

A dictionary has `advice` (sentences) and numbers in percent, those of `isogloss.tasks.adapt.Diagnosis` or
`TreebankDiagnosis`, of which None is left out; and may have

- `losses`: by a name ("tag", "unknown"), what `isogloss.metrics.adaptation.Decomposition.as_dict` gives: `loss`,
  `source_error`, `target_error` and `kinds`, each with `name`, `source_share`, `target_share`, `source_error`,
  `target_error`, `loss`, `by_error`, `by_share` and `adds`;
- `tags`: a list of ``{"n", "distance", "largest": [[sequence, share, share], ...]}``;
- `guidelines`: ``{"verdict", "foreseen", "unforeseen", "known", "margin", "share", "links"}``.

`isogloss.tasks.adapt.TreebankDiagnosis.as_dict` makes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from isogloss.show._measure import printable

__all__ = ["NAMES", "diagnosis_page", "write_diagnosis"]

NAMES = {
    "a_distance": "distance (held out)", "a_distance_training": "distance (training)", "unknown": "unknown words",
    "unknown_types": "unknown word types", "source_accuracy": "accuracy in the source",
    "expected_accuracy": "expected in the target", "expected_loss": "expected loss",
    "target_accuracy": "accuracy in the target", "loss": "loss",
}  # fmt: skip
"""Numbers that a diagnosis may have, for people."""
_TITLES = {
    "tag": "By tag", "unknown": "By words that the parser does not know", "link": "By tags of head and word",
    "length": "By distance to the head",
}  # fmt: skip
_MOST = 15
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --worse: #b3402a; --better: #2a7a4b; --soft: #8882; }
body { font: 16px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 64rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: end; padding: .15rem .7rem; border-bottom: 1px solid var(--line); font-weight: 400; }
th { opacity: .7; font-size: .85rem; vertical-align: bottom; } th:first-child, td:first-child { text-align: start; }
.bar { position: relative; width: 14rem; height: .7rem; background: var(--soft); display: inline-block; }
.bar i { position: absolute; height: 100%; background: var(--worse); } .bar i.good { background: var(--better); }
.bar b { position: absolute; height: 100%; width: 1px; background: currentColor; opacity: .5; }
p.note { opacity: .7; font-size: .9rem; margin: .2rem 0; } li { margin: .3rem 0; }
"""


def diagnosis_page(given: Mapping[str, Any], *, title: str = "Two domains") -> Iterator[str]:
    """Make a page, piece by piece; it asks the network for nothing, and needs no script.

    Examples
    --------
    >>> "12.0" in "".join(diagnosis_page({"unknown": 12.0, "advice": ["Label <some>."]}))
    True
    """
    yield "<!doctype html>\n<html><head><meta charset='utf-8'>"
    yield "<meta name='viewport' content='width=device-width, initial-scale=1'>"
    yield f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n<body><h1>{_text(title)}</h1>\n<ul>"
    yield from (f"<li>{_text(str(one))}</li>" for one in given.get("advice") or ())
    yield "</ul>\n<table>"
    for name, said in NAMES.items():
        if given.get(name) is not None:
            yield f"<tr><td>{_text(said)}</td><td>{float(given[name]):.1f}</td></tr>\n"
    for name, share in (given.get("prior") or {}).items():
        yield f"<tr><td>{_text(str(name))} in the target</td><td>{float(share):.1f}</td></tr>\n"
    yield "</table>\n"
    if given.get("guidelines"):
        yield _guidelines(given["guidelines"])
    for by, loss in (given.get("losses") or {}).items():
        yield from _loss(_TITLES.get(by, f"By {by}"), loss)
    for one in given.get("tags") or ():
        yield _sequences(one)
    yield "</body></html>\n"


def write_diagnosis(given: Mapping[str, Any], where: str | os.PathLike[str], *, title: str = "Two domains") -> None:
    """Write the page of `diagnosis_page` to a file, whole or not at all."""
    from isogloss.data.formats import atomic_write

    with atomic_write(os.fspath(where)) as file:
        for piece in diagnosis_page(given, title=title):
            file.write(piece.encode("utf-8", "backslashreplace"))


def _guidelines(given: Mapping[str, Any]) -> str:
    rows = (
        ("foreseen, by the parser's own posteriors", given["foreseen"]),
        ("not foreseen", given["unforeseen"]),
        ("not foreseen, of words that it knows with their heads", given["known"]),
    )
    lines = "".join(f"<tr><td>{_text(name)}</td><td>{float(value):+.1f}</td></tr>" for name, value in rows)
    lines = lines.removesuffix("</td></tr>") + f" ± {float(given['margin']):.1f}</td></tr>"
    return (
        f"<h2>Guidelines: {_text(str(given['verdict']))}</h2><p class='note'>Points of the loss. A parser that meets "
        "other words is less sure, and foresees a loss; one that meets other guidelines is as sure as ever.</p>"
        f"<table>{lines}</table>\n"
    )


def _loss(title: str, given: Mapping[str, Any]) -> Iterator[str]:
    kinds = sorted(given["kinds"], key=lambda kind: -abs(float(kind["adds"])))
    shown, rest = kinds[:_MOST], kinds[_MOST:]
    reach = max((abs(float(kind["adds"])) for kind in shown), default=1.0) or 1.0
    yield f"<h2>{_text(title)}</h2><p class='note'>A loss of {float(given['loss']):.1f} points, from "
    yield f"{float(given['source_error']):.1f}% errors to {float(given['target_error']):.1f}%. What kinds add sums to "
    yield "it: because they have more errors, and because there are more of them.</p>\n<table><tr><th></th>"
    heads = ("share, source", "share, target", "errors, source", "errors, target", "loss", "adds", "")
    yield "".join(f"<th>{name}</th>" for name in heads) + "</tr>\n"
    for kind in shown:
        numbers = (kind[name] for name in ("source_share", "target_share", "source_error", "target_error", "loss"))
        cells = "".join(f"<td>{'' if value is None else f'{float(value):.1f}'}</td>" for value in numbers)
        yield f"<tr><td>{_text(str(kind['name']))}</td>{cells}<td>{float(kind['adds']):+.2f}</td>"
        yield f"<td>{_bar(float(kind['adds']), reach)}</td></tr>\n"
    if rest:
        total = sum(float(kind["adds"]) for kind in rest)
        yield f"<tr><td>{len(rest)} more</td>{'<td></td>' * 5}<td>{total:+.2f}</td><td></td></tr>\n"
    yield "</table>\n"


def _bar(value: float, reach: float) -> str:
    """To the right what is lost, to the left what is won."""
    wide = 50 * min(1.0, abs(value) / reach)
    start = 50.0 if value >= 0 else 50 - wide
    good = "" if value >= 0 else " class='good'"
    return f"<span class='bar'><i{good} style='left:{start:.1f}%;width:{wide:.1f}%'></i><b style='left:50%'></b></span>"


def _sequences(given: Mapping[str, Any]) -> str:
    name = "Tags" if int(given["n"]) == 1 else f"Sequences of {int(given['n'])} tags"
    rows: Sequence[Sequence[Any]] = given["largest"]
    lines = "".join(
        f"<tr><td>{_text(str(tags))}</td><td>{float(here):.2f}</td><td>{float(there):.2f}</td></tr>"
        for tags, here, there in rows
    )
    heads = "<tr><th></th><th>source</th><th>target</th></tr>"
    return f"<h2>{name}: {float(given['distance']):.1f}% differ</h2><table>{heads}{lines}</table>\n"


def _text(text: str) -> str:
    return escape(printable(text))
