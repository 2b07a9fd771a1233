"""What `isogloss parse train --adapt` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._treebanks import read_either
from isogloss.errors import UsageError
from isogloss.tasks.parse.adapting.options import AdaptationOptions

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank
    from isogloss.progress import Progress
    from isogloss.tasks.parse import DependencyParser

__all__ = ["ADAPTING", "AdaptText", "adapted", "check_adapting", "said_of"]

ADAPTING = "For another domain"
AdaptText = Annotated[
    str | None,
    typer.Option(
        "--adapt",
        metavar="TEXT",
        rich_help_panel=ADAPTING,
        help="Text of the domain that is to be parsed, in CoNLL-U or plain; its trees are not looked at.",
    ),
]


def check_adapting(adapt: str | None, options: dict[str, Any], *, resume: bool, bitext: bool) -> None:
    """`UsageError` for options that say nothing together."""
    if adapt is None:
        if options:
            raise UsageError(f"--adapt-{next(iter(options)).replace('_', '-')} needs --adapt TEXT")
        return
    if bitext:
        raise UsageError("--adapt needs TRAIN, a treebank, and not --bitext")
    if resume:
        raise UsageError("with --adapt, training cannot be taken up again; leave --resume out")
    AdaptationOptions(**options).check_params()


def adapted(
    parser: DependencyParser,
    treebank: Treebank,
    dev: Treebank | None,
    adapt: str,
    options: dict[str, Any],
    reading: tuple[str, str],
    progress: Progress,
) -> None:
    """Let a parser learn from a treebank, adapted to the text in a file."""
    from isogloss.tasks.parse.adapting import ParserAdaptation

    text = read_either(adapt, "auto", *reading)
    ParserAdaptation(**options).adapt(parser, treebank, text, dev, progress)


def said_of(adapt: str, options: dict[str, Any]) -> str:
    """A line on what was done."""
    return f"adapted to {adapt} by {AdaptationOptions(**options).method}"
