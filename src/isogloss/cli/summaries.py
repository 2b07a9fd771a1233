"""`isogloss summaries`: score summaries, compare the measures that they are scored by, and make extracts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    check_output,
    choice,
    compiling,
    say,
    write_json,
    write_result,
)
from isogloss.cli._treebanks import standard_input_once

__all__ = ["COMMANDS", "compare", "extract", "score"]

METHODS = ("lead", "random", "centroid", "degree", "lexrank", "signatures")

SummariesFile = Annotated[
    str,
    typer.Argument(
        metavar="SUMMARIES",
        show_default=False,
        help="A JSON object a line: document, system, summary, and as far as there are any reference, human, extract.",
    ),
]
Measures = Annotated[
    str | None,
    typer.Option("--measures", metavar="A,B,...", help="Only these, such as rouge-1-recall; all if not given."),
]
Bootstrap = Annotated[int, typer.Option("--bootstrap", metavar="N", min=0, help="Resamples for intervals; 0 for none.")]


def score(
    summaries: SummariesFile,
    judges: Annotated[
        str | None,
        typer.Option(
            "--judges",
            metavar="FILE",
            help="For extracts, a JSON object a line: document, sentences, utilities (a list a judge), subsumed.",
        ),
    ] = None,
    measures: Measures = None,
    bootstrap: Bootstrap = 1000,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score summaries by system, in percent, with intervals over documents.

    Beside references: ROUGE, chrF++, cosine, subsequence, overlap. Extracts beside judges: precision, recall, percent
    agreement, kappa, and relative utility (utility; of chance and of the judges themselves, and normalised by both).
    """
    check_output(output, [summaries, judges])
    standard_input_once(summaries, judges)
    with compiling("summaries", quiet, "10 s"):
        from isogloss.data.formats.summaries import read_judged, read_summaries
        from isogloss.tasks.documents.summaries import score_summaries

        given = read_summaries(summaries, encoding=encoding, errors=errors)
        judged = None if judges is None else read_judged(judges, encoding=encoding, errors=errors)
        found = score_summaries(given, judged, names=_names(measures), bootstrap=bootstrap)
    if json:
        told = {
            system: {
                name: {
                    "mean": 100 * value.mean,
                    "interval": [100 * end for end in value.interval],
                    "n": value.documents,
                }
                for name, value in own.items()
            }
            for system, own in found.items()
        }
        write_json({"systems": told, "documents": len(given.documents)}, output)
        return
    lines = ["system\tmeasure\tmean\tlow\thigh\tdocuments\n"]
    for system, own in found.items():
        for name, value in own.items():
            low, high = value.interval
            lines.append(
                f"{system}\t{name}\t{100 * value.mean:.2f}\t{100 * low:.2f}\t{100 * high:.2f}\t{value.documents}\n"
            )
    write_result(output, lines)
    say(_described(given), quiet)


def compare(
    summaries: SummariesFile,
    measures: Measures = None,
    bootstrap: Bootstrap = 500,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Compare measures with what people think (`human`): Kendall's tau times 100, with intervals.

    `systems` compares means of systems; `summaries` is the mean over documents of the tau of the systems in each. Both
    have intervals over documents and over systems. The measure that is best for single summaries comes first.
    """
    check_output(output, [summaries])
    with compiling("summaries", quiet, "10 s"):
        from isogloss.data.formats.summaries import read_summaries
        from isogloss.tasks.documents.summaries import compare_measures

        given = read_summaries(summaries, encoding=encoding, errors=errors)
        found = compare_measures(given, names=_names(measures), bootstrap=bootstrap)
    if json:
        write_json({"measures": {name: value.as_dict() for name, value in found.items()}}, output)
        return
    lines = ["measure\tsystems\tover documents\tover systems\tsummaries\tover documents\tover systems\n"]
    for name, value in found.items():
        own = value.as_dict()
        cells = [f"{own['system']:.1f}", _bounds(own["system_interval"]), _bounds(own["system_by_systems"])]
        cells += [f"{own['summary']:.1f}", _bounds(own["summary_interval"]), _bounds(own["summary_by_systems"])]
        lines.append("\t".join([name, *cells]) + "\n")
    write_result(output, lines)
    say(_described(given), quiet)


def extract(
    documents: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENTS",
            show_default=False,
            help="A JSON object a line: document, and sentences, a list of texts.",
        ),
    ],
    method: Annotated[str, choice(*METHODS, option="--method", help="How sentences are chosen.")] = "centroid",
    rate: Annotated[
        float,
        typer.Option("--rate", metavar="X", min=0, max=1, help="Share of the sentences that is taken, rounded up."),
    ] = 0.1,
    redundancy: Annotated[
        float, typer.Option("--redundancy", metavar="X", min=0, help="What likeness to a sentence taken before costs.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of method random.")] = 0,
    output: Output = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Extract sentences of documents: a baseline, as a file that `score` takes."""
    from json import dumps

    check_output(output, [documents])
    with compiling("summaries", quiet, "10 s"):
        from isogloss.data.formats.summaries import read_judged
        from isogloss.errors import UsageError
        from isogloss.tasks.documents.index import Index
        from isogloss.tasks.documents.outputs import words_of
        from isogloss.tasks.documents.summaries import extract as chosen_by

        if not rate > 0:
            raise UsageError("--rate should be above 0")
        given = read_judged(documents, encoding=encoding, errors=errors)
        collection = Index.of([words_of(" ".join(each.sentences)) for each in given.values()])
        lines = []
        for number, (name, each) in enumerate(given.items()):
            chosen = chosen_by(
                each.sentences, method, rate, redundancy=redundancy, collection=collection, seed=seed + number
            )
            text = "\n".join(each.sentences[k] for k in chosen)
            row = {"document": name, "system": method, "summary": text, "extract": chosen}
            lines.append(dumps(row, ensure_ascii=False) + "\n")
    write_result(output, lines)
    say(f"{len(lines):,} extracts by {method}", quiet)


def _names(measures: str | None) -> list[str] | None:
    return None if measures is None else [name.strip() for name in measures.split(",") if name.strip()]


def _bounds(ends: list[float]) -> str:
    return f"{ends[0]:.1f} to {ends[1]:.1f}"


def _described(given: Any) -> str:
    return f"{len(given):,} summaries, {len(given.documents):,} documents, {len(given.systems):,} systems"


COMMANDS = {"score": score, "compare": compare, "extract": extract}
"""The commands of this group: ``isogloss summaries score`` and so on."""
