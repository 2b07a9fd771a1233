"""`isogloss phrases`: a phrase table from a text and its links."""

from __future__ import annotations

from typing import Annotated

import typer

from isogloss.cli._common import (
    Output,
    Quiet,
    check_output,
    compiling,
    progress_for,
    say,
)
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.errors import UsageError

__all__ = ["command"]


@with_reading
def command(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", show_default=False, help="Source text; or one file with both sides.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="[TARGET]", show_default=False, help="Its translation; omitted for one file.")
    ],
    links: Annotated[str | None, typer.Argument(metavar="LINKS", show_default=False, help="Their links.")] = None,
    output: Output = None,
    max_length: Annotated[
        int,
        typer.Option("--max-length", metavar="N", min=1, max=50, help="The most words of a phrase, either side."),
    ] = 7,
    least_count: Annotated[
        int, typer.Option("--least-count", metavar="N", min=1, help="Leave out pairs that occur less often.")
    ] = 1,
    quiet: Quiet = False,
    *,
    asked: ReadingOptions,
) -> None:
    """Write a phrase table, as Moses reads it, from a text and its links.

    A line is `source ||| target ||| scores ||| links ||| counts`. The scores are p(source | target), the lexical weight
    of the source, p(target | source), the lexical weight of the target; the counts are those of the target phrase, the
    source phrase and the pair. Lines are in alphabetical order of the source phrase.
    """
    files: tuple[str, str | None, str] = (source, None, target) if links is None else (source, target, links)
    if files.count("-") > 1:
        raise UsageError("standard input can be one of the files only")
    check_output(output, files)
    reading = asked.of()
    with compiling("phrases", quiet, "20 s"):
        from isogloss.data.formats import read_bitext, read_links
        from isogloss.tasks.translate import write_phrases

        bitext = read_bitext(*files[:2], **reading)
        found = write_phrases(
            bitext,
            read_links(files[2], bitext=bitext),
            output,
            max_length=max_length,
            least_count=least_count,
            progress=progress_for(quiet),
        )
    say(f"{found.pairs:,} phrase pairs from {found.occurrences:,} occurrences", quiet)
