"""`isogloss transfer combine`: a parser for a language without a treebank, from those of several other languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Quiet,
    Resume,
    Threads,
    compiling,
    progress_for,
)
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder, read_treebank
from isogloss.errors import UsageError
from isogloss.tasks.transfer.options import DelexicalisedOptions

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank

__all__ = ["combine"]

SOURCES = 8
"""Sources that are named with their shares; the rest is summed up."""


@with_options(DelexicalisedOptions, first=("exponent", "directions", "iterations", "seed"))
def combine(
    treebanks: Annotated[
        list[str],
        typer.Argument(
            metavar="TREEBANK...", show_default=False, help="Treebanks in CoNLL-U, each of another language, with UPOS."
        ),
    ],
    save: SaveFolder,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="TEXT",
            help="Text of the language to parse, with UPOS in CoNLL-U: sources are weighted for it. Without it, they "
            "are weighted for each text that is parsed.",
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Learn a parser for a language that has neither a treebank nor a translation, from treebanks of other languages.

    Parsers that see tags alone are learnt from each treebank, and together parse any text with UPOS: those whose tags
    follow each other as they do in the text count most. `isogloss parse apply` then parses. See
    docs/transfer-several.md.
    """
    training = Training(save, *treebanks, target, quiet=quiet)
    DelexicalisedOptions(**options).check_params()
    with compiling("transfer-combine", quiet, "90 s"):
        from isogloss.tasks.transfer import DelexicalisedParser

        sources = _by_name(treebanks, encoding, errors)
        text = None if target is None else read_treebank(target, encoding, errors)
        parser = DelexicalisedParser(threads=threads, **options)
        parser.fit(sources, text, progress_for(quiet), checkpoint=training.checkpoint, resume=resume)
    lines = [f"{name}: {len(trees):,} sentences, {trees.n_words:,} words" for name, trees in sources.items()]
    if target is not None and parser.weights_ is not None:
        lines.append(f"shares for {target}: {_shares(parser.weights_)}")
    told = {name: {"sentences": len(trees), "words": trees.n_words} for name, trees in sources.items()}
    summary = {"sources": told, "weights": parser.weights_}
    training.keep(parser, *lines, json=summary if json else None, checkpoints=())


def _by_name(paths: list[str], encoding: str, errors: str) -> dict[str, Treebank]:
    """Treebanks by the names of their files, as they were given."""
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise UsageError(f"{twice}: this treebank was given twice. Give each once")
    return {path: read_treebank(path, encoding, errors) for path in paths}


def _shares(weights: dict[str, float]) -> str:
    """The nearest sources with their shares, in percent."""
    order = sorted(weights, key=lambda name: -weights[name])
    told = [f"{name} {100 * weights[name]:.1f}%" for name in order[:SOURCES]]
    rest = sum(weights[name] for name in order[SOURCES:])
    return ", ".join([*told, f"{len(order) - SOURCES} others {100 * rest:.1f}%"] if len(order) > SOURCES else told)
