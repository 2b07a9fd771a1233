"""The tables of docs/supervised.md, a short form of those of the benchmark page."""

from __future__ import annotations

from pathlib import Path

from benchmarks import rows
from benchmarks.quality.supervised import speed
from benchmarks.quality.supervised.studies import ALL, DRAWN, FIRST, HANSARDS, REFERENCE, SMALL, Job, candidates, draw
from benchmarks.quality.supervised.verdicts import Find

PAGE = Path("docs/supervised.md")
TEXTS = {
    "en-cs.czenali": "English-Czech (czenali, 2.5k pairs)",
    "grc-fi.helfi": "Greek-Finnish (helfi, 8k)",
    "ja-en.kftt": "Japanese-English (kftt, 1.2k)",
    "en-et.xlwa": "English-Estonian (xlwa, 1.4k)",
    "en-ru.xlwa": "English-Russian (xlwa, 1.3k)",
    "hansards-2k": "English-French (Hansards, 2.9k)",
    "hansards-100k": "English-French (Hansards, 103k)",
}
KINDS = {"matching": "matching", "quadratic": "M+F+Q", "itg": "BITG, likelihood"}
"""What the classes are called in the table of speed."""


def fill(find: Find) -> None:
    """Write both tables into the page."""
    rows.fill(PAGE, "supervised", find.used.below(errors(find)))
    rows.fill(PAGE, "supervised speed", _speed())


def errors(find: Find) -> str:
    """Error rates by text and number of gold pairs; in bold the kind that cross-validation takes."""
    lines = ["| text | without gold | gold pairs | `matching` | `quadratic` | `itg` |", "|" + "---|" * 6]
    for text in (*DRAWN, *SMALL, *HANSARDS):
        for n in (100, 400) if text in DRAWN else (0,) if text in SMALL else (100,):
            order = FIRST if text in HANSARDS else draw(0) if n else ALL
            reference = find(Job(text, n, FIRST, REFERENCE)) if text in HANSARDS else find.reference(text)
            chosen = find.chosen(text, n)
            found = [find(Job(text, n, order, each)) for each in candidates().values()]
            if reference is None or None in found:
                continue
            cells = [f"{float(row['AER']):.1f}" for row in found if row is not None]
            cells = [f"**{cell}**" if row is chosen else cell for cell, row in zip(cells, found, strict=True)]
            lines.append(
                f"| {TEXTS[text]} | {float(reference['AER']):.1f} | {n or 'all of dev'} | {' | '.join(cells)} |"
            )
    return "\n".join(lines)


def _speed() -> str:
    """Sentence pairs for each CPU second, and CPU seconds of learning."""
    lengths = list(speed.LENGTHS)
    head = "| sentence pairs per CPU second, by words | learning from 100 |"
    lines = [f"{head} {' | '.join(map(str, lengths))} |", "|" + "---|" * (len(lengths) + 2)]
    used = rows.Used()
    for kind, name in KINDS.items():
        each = speed.models()[name]
        own = {int(row["words"]): row for row in speed.results().read() if speed.is_of(row, each)}
        if not set(lengths) <= own.keys():
            continue
        for words, row in own.items():
            used.add(kind, f"{words} words", row)
        rates = (float(own[words]["pairs"]) / float(own[words]["decode_cpu_seconds"]) for words in lengths)
        cells = (f"{rate:.0f}" if rate >= 1 else f"{rate:.1f}" for rate in rates)
        lines.append(f"| `{kind}` | {float(own[lengths[0]]['train_cpu_seconds']):.0f} s | {' | '.join(cells)} |")
    return used.below("\n".join(lines))
