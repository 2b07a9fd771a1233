"""`isogloss doctor`: what is odd about a corpus, what to do about it, and what aligning it will cost."""

from __future__ import annotations

from typing import Annotated

import typer

from isogloss.cli._common import (
    Columns,
    Encoding,
    Format,
    Json,
    Languages,
    Output,
    Quiet,
    SourceEncoding,
    Target,
    TargetEncoding,
    Threads,
    Tokenise,
    check_output,
    compiling,
    write_json,
    write_result,
)
from isogloss.cli._reading import ReadingOptions
from isogloss.errors import DataError, UsageError

__all__ = ["command"]


def command(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE", show_default=False, help="Source text, a sentence a line; or one file with both sides."
        ),
    ] = None,
    target: Target = None,
    links: Annotated[
        str | None, typer.Argument(metavar="[LINKS]", show_default=False, help="Their links, or gold.")
    ] = None,
    environment: Annotated[
        bool, typer.Option("--environment", help="Say what a bug report needs: versions, machine, cache; no SOURCE.")
    ] = False,
    output: Output = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    format: Format = "auto",
    encoding: Encoding = "utf-8",
    source_encoding: SourceEncoding = None,
    target_encoding: TargetEncoding = None,
    tokenise: Tokenise = "space",
    columns: Columns = None,
    languages: Languages = None,
) -> None:
    """Say what is odd about a corpus, what to do about it, and how long and how much memory `isogloss align` will take.

    It reads what other commands refuse: wrong encodings, unequal numbers of lines (and where they part), text that is
    not tokenised, lines in the wrong language, links that count from 1. The exit status is 1 if there is an error among
    the findings.
    """
    if [source, target, links].count("-") > 1:
        raise UsageError("standard input can be one of the files only")
    check_output(output, [source, target, links])
    if environment:
        _environment(source, output, json)
        return
    if source is None:
        raise UsageError("doctor: what is to be looked at? Give SOURCE and TARGET, or --environment")
    reading = ReadingOptions(
        format=format,
        encoding=encoding,
        source_encoding=source_encoding,
        target_encoding=target_encoding,
        tokenise=tokenise,
        columns=columns,
        languages=languages,
    ).of()
    with compiling("doctor", quiet, "10 s"):
        from isogloss.tasks.align.doctor import examine

        report = examine(source, target, links, threads=threads, **reading)
    if json:
        write_json(report.as_dict(), output)
    else:
        write_result(output, str(report))
    if report.worst == "error":
        n_errors = sum(finding.severity == "error" for finding in report.findings)
        raise DataError(f"{n_errors} error{'s' if n_errors > 1 else ''} that should be mended before aligning")


def _environment(source: str | None, output: str | None, json: bool) -> None:
    from isogloss.cli._environment import as_text, environment

    if source is not None:
        raise UsageError(f"--environment is about this machine, not about {source}. Give one of the two")
    facts = environment()
    if json:
        write_json(facts, output)
    else:
        write_result(output, as_text(facts))
