"""`isogloss threads`: several story lines through dated or linked documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    READING,
    Encoding,
    Errors,
    Output,
    Quiet,
    Stopwatch,
    Threads,
    check_output,
    choice,
    compiling,
    say,
    write_json,
    write_result,
)
from isogloss.cli._models import load_threads
from isogloss.cli._options import with_options
from isogloss.cli._treebanks import standard_input_once
from isogloss.errors import UsageError
from isogloss.tasks.documents.thread_options import ThreadOptions

if TYPE_CHECKING:
    from isogloss.data import Documents
    from isogloss.tasks.documents.threads import Threads as Graph

__all__ = ["command"]

DRAWN = ("beta", "node_weight", "edge_weight", "constant", "samples", "disjoint", "shorter")
GRAPH = (
    "links", "least_similarity", "successors", "features", "neighbours", "dimensions", "min_documents", "max_share",
    "revisit",
)  # fmt: skip
PANEL = "Graph and drawing"


@with_options(
    ThreadOptions, *DRAWN, *(name for name in GRAPH if name != "links"), panel=PANEL, first=("k", "length", "seed"),
    flags={"k": "-k"},
)  # fmt: skip
def command(
    docs: Annotated[
        str | None,
        typer.Argument(
            metavar="[DOCS]",
            show_default=False,
            help="Documents as JSON lines: id, date, language, text, links (ids of other documents).",
        ),
    ] = None,
    output: Output = None,
    page: Annotated[
        str | None,
        typer.Option("--page", metavar="FILE", help="Write a page: threads on a time line, with documents to read."),
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option("--documents", metavar="NODES", help="Documents as a table in place of DOCS: id, date, text."),
    ] = None,
    links: Annotated[
        str | None,
        typer.Option("--links", metavar="EDGES", help="Their links as a table: linking id, linked id (citing, cited)."),
    ] = None,
    follow: Annotated[
        str | None,
        typer.Option(
            "--follow", metavar="auto|given|similar", help=ThreadOptions._options["links"].help + " [default: auto]"
        ),
    ] = None,
    save: Annotated[
        str | None, typer.Option("--save", metavar="MODEL", help="Keep the graph in this folder, to draw again.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Draw from a graph that --save kept.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Write lines to read in place of JSON.")] = False,
    tokenise: Annotated[
        str,
        choice(
            "unicode",
            "space",
            "characters",
            option="--tokenise",
            panel=READING,
            help="What a word is: what a plain tokeniser finds, what stands between spaces, or each character.",
        ),
    ] = "unicode",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    threads: Threads = None,
    quiet: Quiet = False,
    *,
    options: dict[str, Any],
) -> None:
    """Draw several threads through an archive: story lines, lines of research.

    Each thread is a path of documents in the order of time, along links, or through later documents that are similar.
    Threads are salient and coherent one by one, and unlike each other: they are drawn together, exactly, from a
    structured determinantal point process. The result is JSON with ids, dates and the beginnings of documents.
    """
    from isogloss.data.rows import counted

    watch = Stopwatch()
    _check_files(docs, documents, links, model, save)
    if follow is not None:
        options["links"] = follow
    seed = options.setdefault("seed", 0)
    for path in (output, page):
        check_output(path, [docs, documents, links])
    with compiling("threads", quiet):
        drawn_from, where = _threads(
            docs, documents, links, model, options | {"threads": threads}, tokenise, encoding, errors
        )
        for line in drawn_from.left_out_.words():
            say(line, quiet)
        (found,) = drawn_from.predict([seed])
    if save is not None:
        drawn_from.save(save)
    record = _record(drawn_from, found.as_dict(), seed)
    if text:
        from isogloss.show.threads import threads_terminal

        write_result(output, threads_terminal(record, width=_width(output)) + "\n")
    else:
        write_json(record, output)
    if page is not None:
        from isogloss.show.threads import threads_page

        summary = {name: record[name] for name in ("documents", "links", "coherence", "overlap", "seed")}
        write_result(page, threads_page(record, title=f"Threads through {where}", summary=summary))
    said = (
        f"{counted(len(found), 'thread')} of {counted(drawn_from.length, 'document')}" + " at most" * drawn_from.shorter
    )
    say(f"{said} through {record['documents']:,}, {counted(record['links'], 'link')}; {watch.seconds:.1f} s", quiet)


def _check_files(
    docs: str | None, documents: str | None, links: str | None, model: str | None, save: str | None
) -> None:
    from isogloss import store

    if sum(each is not None for each in (docs, documents, model)) != 1:
        raise UsageError("give DOCS.jsonl, or --documents NODES.tsv with --links EDGES.tsv, or --model: one of these")
    if links is not None and documents is None:
        raise UsageError("--links goes with --documents; links of JSON lines are in them")
    if save is not None:
        if model is not None:
            raise UsageError("--save goes with documents; a graph that is taken from --model is kept already")
        store.check_place(save)
    standard_input_once(docs, documents, links)


def _threads(
    docs: str | None,
    documents: str | None,
    links: str | None,
    model: str | None,
    options: dict[str, Any],
    tokenise: str,
    encoding: str,
    errors: str,
) -> tuple[Graph, str]:
    """A graph that was made or loaded, and what it is called."""
    import os

    from isogloss.tasks.documents.threads import Threads as Graph

    if model is not None:
        loaded = load_threads(model)
        fixed = sorted(set(options) & set(GRAPH))
        if fixed:
            raise UsageError(f"--{fixed[0].replace('_', '-')} belongs to the graph, which {model} has already")
        return loaded.set_params(**{name: value for name, value in options.items() if name != "seed"}), model
    estimator = Graph(**options)
    estimator.check_params()
    reading = {"tokenise": tokenise, "encoding": encoding, "errors": errors}
    name = docs or documents or ""
    return estimator.fit(_read(docs, documents, links, reading)), os.path.basename(name) if name != "-" else "stdin"


def _read(docs: str | None, documents: str | None, links: str | None, reading: dict[str, Any]) -> Documents:
    from isogloss.data.formats.document_records import read_document_tables, read_json_documents

    if docs is not None:
        return read_json_documents(docs, **reading)
    assert documents is not None
    return read_document_tables(documents, links, **reading)


def _record(threads: Graph, found: dict[str, Any], seed: int) -> dict[str, Any]:
    from dataclasses import asdict

    options = {name: value for name, value in threads.get_params().items() if name not in ("seed", "threads")}
    return found | {
        "documents": len(threads.ids_),
        "links": len(threads.graph_.edges),
        "left_out": asdict(threads.left_out_),
        "options": options,
        "seed": seed,
    }


def _width(output: str | None) -> int:
    import shutil

    return 120 if output not in (None, "-") else max(20, shutil.get_terminal_size((100, 24)).columns)
