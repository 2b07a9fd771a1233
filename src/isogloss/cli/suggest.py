"""`isogloss suggest`: which sentences to align by hand next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Json,
    Output,
    Quiet,
    Source,
    Target,
    Threads,
    check_output,
    compiling,
    progress_for,
    read_gold,
    say,
    write_json,
    write_result,
)
from isogloss.cli._memory import Look
from isogloss.cli._models import load_aligner
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.cli._systems import NamedLinks, check_needed, job_of, named_files, read_named
from isogloss.errors import BitextError, UsageError

if TYPE_CHECKING:
    from isogloss.data import Bitext
    from isogloss.tasks.align.supervised.suggest import Suggestion

__all__ = ["command"]


@with_reading
def command(
    source: Source,
    target: Target = None,
    number: Annotated[int, typer.Option("--number", "-n", metavar="N", min=1, help="How many sentences.")] = 20,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="Whose doubts count; without it, an HMM of the text itself."),
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option("--gold", metavar="FILE", help="What is aligned already, of the text or its first lines."),
    ] = None,
    output: Output = None,
    text: Annotated[bool, typer.Option("--text", help="Write the sentences too, in two further columns.")] = False,
    links: NamedLinks = None,
    shortest: Annotated[
        int | None,
        typer.Option("--shortest", metavar="N", min=1, help="Words of the longer side; leaves out a quarter of pairs."),
    ] = None,
    longest: Annotated[
        int | None,
        typer.Option("--longest", metavar="N", min=1, help="Words of the longer side; leaves out a tenth of pairs."),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    asked: ReadingOptions,
) -> None:
    """Say which sentences to align by hand next: those with most expected errors about words not seen yet.

    Writes, the best first, a line for each: its number in the text, how much is to be gained, and the error rate that
    the model expects there, in percent; between tabs. Pairs of an unusual length, pairs that look like bad
    translations, and pairs much like one that is done or suggested already are left out.
    """
    named = named_files(links)
    if [source, target, gold, *named.values()].count("-") > 1:
        raise UsageError("standard input can be one of the files only")
    if json and output is not None:
        raise UsageError("--json prints on stdout, and -o asks for a file of lines. Give one of the two")
    if model is None and named:
        raise UsageError("--links: without --model nothing can use them")
    check_output(output, [source, target, gold, *named.values()])
    reading = asked.of(model, source)
    with compiling(job_of(model), quiet):
        from isogloss.data.formats import read_bitext
        from isogloss.tasks.align.supervised.suggest import suggest

        progress = progress_for(quiet)
        fitted = None
        if model is not None:
            fitted = load_aligner(model, threads)
            check_needed(fitted, named, model)
        bitext = read_bitext(source, target, **reading)
        if not len(bitext):
            raise BitextError(f"{bitext.source.name}: is empty, so there is nothing to suggest. Is it the right file?")
        if model is not None:
            Look(fitted, model).at(bitext)
        done = None if gold is None else read_gold(gold, bitext)
        if fitted is None:
            fitted = _unsupervised(bitext, threads, progress)
        others = read_named(named, bitext) or None
        found = suggest(
            fitted, bitext, number, gold=done, shortest=shortest, longest=longest, progress=progress, links=others
        )
    n_done = 0 if done is None else sum(1 for row in done if row.links or row.possible)
    if done is not None and not n_done:
        say(f"{gold}: no line has links, so no pair counts as done", quiet)
    _report(found, number, len(bitext) - n_done, (shortest, longest), quiet)
    if json:
        write_json(_as_dict(found, bitext, text, model))
    else:
        write_result(output, _lines(found, bitext, text))


def _unsupervised(bitext: Bitext, threads: int | None, progress: Any) -> Any:
    from isogloss.tasks.align import HMMAligner

    return HMMAligner(threads=threads).fit(bitext, progress=progress)


def _report(
    found: list[Suggestion], number: int, n_left: int, lengths: tuple[int | None, int | None], quiet: bool
) -> None:
    """Say why there are fewer than were asked for."""
    if len(found) >= number:
        return
    if not n_left:
        say("nothing to suggest: every pair of the text is in the gold already", quiet)
        return
    length, more = "of a usual length", ". --shortest 1 and --longest 100 allow others"
    if lengths != (None, None):
        length, more = "of the length asked for", ""
    what = "nothing to suggest: no pair is left that is" if not found else f"{len(found)} of {number}: no other pair is"
    say(f"{what} {length}, in doubt, and unlike what is done or suggested{more}", quiet)


def _lines(found: list[Suggestion], bitext: Bitext, text: bool) -> Iterator[str]:
    for one in found:
        line = f"{one.line}\t{one.gain:.4f}\t{100 * one.error:.2f}"
        if text:
            line += "".join("\t" + " ".join(words) for words in bitext[one.pair])
        yield line + "\n"


def _as_dict(found: list[Suggestion], bitext: Bitext, text: bool, model: str | None) -> dict[str, Any]:
    entries = []
    for one in found:
        entry = one.as_dict()
        if text:
            entry["source"], entry["target"] = (" ".join(words) for words in bitext[one.pair])
        entries.append(entry)
    return {"pairs": len(bitext), "model": model, "suggestions": entries}
