"""`isogloss lexicon`: a probabilistic lexicon from a saved model or from links."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Annotated, Any

import typer

from isogloss.cli._common import (
    Output,
    Quiet,
    check_output,
    compiling,
    say,
    write_result,
)
from isogloss.cli._models import header_of, load_aligner
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.errors import UsageError

__all__ = ["command"]

Row = tuple[str, str, float, float, float]

_NAMES = ("source", "target", "target_given_source", "source_given_target", "count")


@with_reading
def command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL|SOURCE", show_default=False, help="A saved model; or a source text, with:")
    ],
    target: Annotated[
        str | None,
        typer.Argument(metavar="[TARGET]", show_default=False, help="Its translation; omitted for one file."),
    ] = None,
    links: Annotated[str | None, typer.Argument(metavar="[LINKS]", show_default=False, help="Their links.")] = None,
    least: Annotated[
        float, typer.Option("--least", metavar="P", min=0, max=1, help="Leave out words of lower p(target | source).")
    ] = 0.01,
    least_count: Annotated[
        float, typer.Option("--least-count", metavar="N", min=0, help="Leave out pairs counted less often.")
    ] = 0.0,
    top: Annotated[
        int | None, typer.Option("--top", metavar="N", min=1, help="At most so many translations of a word.")
    ] = None,
    null: Annotated[
        bool, typer.Option("--null", help="From links: add a row for how often each word has no link.")
    ] = False,
    output: Output = None,
    tsv: Annotated[bool, typer.Option("--tsv", help="Columns between tabs, with a heading; the default.")] = False,
    json: Annotated[bool, typer.Option("--json", help="A JSON object in each line.")] = False,
    quiet: Quiet = False,
    *,
    asked: ReadingOptions,
) -> None:
    """Write a probabilistic lexicon: of a saved model, or counted from a text and its links.

    Columns: source word, target word, p(target | source), p(source | target), and how often the two are linked
    (expected, where links have probabilities). Rows are in alphabetical order of the source word, best translation
    first.
    """
    if tsv and json:
        raise UsageError("--tsv and --json exclude each other; give one of them")
    if null and target is None:
        raise UsageError("--null counts words without links, which needs a text and its links: SOURCE TARGET LINKS")
    check_output(output, [model, target, links])
    reading = asked.of()
    if target is None:
        _check_model(model)
    with compiling("lexicon", quiet, "10 s"):
        if target is None:
            rows = _of_model(model, least)
        else:
            files = (model, None, target) if links is None else (model, target, links)
            rows = _of_links(files, reading, null)
        chosen = _best(rows, least, least_count, top)
        counted = _Counted(chosen)
        write_result(output, _json_lines(counted) if json else _tab_lines(counted))
    say(f"{counted.rows:,} word pairs", quiet)


def _check_model(path: str) -> None:
    """Refuse a wrong one before anything is compiled for it."""
    if not os.path.exists(path):
        raise UsageError(f"{path}: no such model. A text needs its translation and its links: SOURCE TARGET LINKS")
    header_of(path, "align")


def _of_model(path: str, least: float) -> Iterable[Row]:
    aligner = load_aligner(path)
    if aligner.supervised:
        raise UsageError(
            f"{path}: a {type(aligner).__name__} keeps no lexicon. Find links with it (`isogloss align --model`), and "
            "count those: isogloss lexicon SOURCE TARGET LINKS"
        )
    return sorted(aligner.lexicon(least=least), key=_place)


def _place(row: Row) -> tuple[str, float, str]:
    return row[0], -row[2], row[1]


def _of_links(files: tuple[str, str | None, str], reading: dict[str, Any], null: bool) -> Iterable[Row]:
    if files.count("-") > 1:
        raise UsageError("standard input can be one of the files only")
    from isogloss.data.formats import read_bitext, read_links
    from isogloss.tasks.translate.lexicon import lexicon_from_links

    bitext = read_bitext(*files[:2], **reading)
    lexicon = lexicon_from_links(bitext, read_links(files[2], bitext=bitext))
    if not null:
        return lexicon
    import heapq

    return heapq.merge(lexicon, sorted(lexicon.unlinked(), key=_place), key=_place)


def _best(rows: Iterable[Row], least: float, least_count: float, top: int | None) -> Iterator[Row]:
    """Of rows that are grouped by source word, best first: those that were asked for."""
    for _, group in groupby(rows, key=itemgetter(0)):
        yield from islice((row for row in group if row[2] >= least and row[4] >= least_count), top)


class _Counted:
    """Rows on their way out, and how many there were."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows, self.rows = rows, 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.rows += 1
            yield row


def _tab_lines(rows: Iterable[Row]) -> Iterator[str]:
    yield "\t".join(_NAMES) + "\n"
    for source, target, forward, backward, count in rows:
        yield f"{source}\t{target}\t{forward:.6g}\t{backward:.6g}\t{count:.6g}\n"


def _json_lines(rows: Iterable[Row]) -> Iterator[str]:
    from json import dumps

    for source, target, forward, backward, count in rows:
        numbers = (float(f"{number:.6g}") for number in (forward, backward, count))
        yield dumps(dict(zip(_NAMES, (source, target, *numbers), strict=True)), ensure_ascii=False) + "\n"
