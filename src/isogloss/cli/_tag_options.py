"""Options of `isogloss tag train`: files, by hand; and those of taggers, as they are declared."""

from __future__ import annotations

from typing import Annotated

import typer

from isogloss.cli._evidence import bitext_option, dictionary_option, links_option
from isogloss.tasks.tag.options import COLUMNS, CrfOptions, DictionaryOptions, GraphOptions, ProjectedOptions

__all__ = [
    "LEARNING", "WAYS", "Adapt", "BitextFiles", "ColumnNames", "DictionaryFile", "Graph", "LinksFile", "SourceTags",
    "Taught", "Unlabelled",
]  # fmt: skip

EVIDENCE = "Without tagged text, or with little"
WAYS = {
    "": CrfOptions,
    "with --dictionary": DictionaryOptions,
    "with --graph": GraphOptions,
    "with --bitext": ProjectedOptions,
}
"""Ways to train, and what can be said about each."""
LEARNING = (
    "order", "decoder", "iterations", "l1", "l2", "min_count", "emissions", "learner", "threshold", "soft",
    "neighbours", "strength", "seed",
)  # fmt: skip
"""Options of the estimators that can be said."""


def _columns(value: str) -> str:
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in COLUMNS:
            raise typer.BadParameter(f"'{name}' is not one of {', '.join(COLUMNS)}")
    if len(set(names)) < len(names):
        raise typer.BadParameter(f"'{value}' names a column twice")
    return ",".join(names)


Taught = Annotated[
    str | None,
    typer.Argument(
        metavar="[TRAIN]",
        show_default=False,
        help="A treebank in CoNLL-U (or CoNLL-X, CoNLL-2009) with tags; with --dictionary, text without.",
    ),
]
ColumnNames = Annotated[
    str,
    typer.Option(
        "--column", metavar="upos|xpos|feats", callback=_columns, help="What to learn; several as upos,feats."
    ),
]
DictionaryFile = Annotated[
    str | None,
    dictionary_option(
        "Words with the tags they may have, a pair a line: learn from TRAIN as text without tags.", EVIDENCE
    ),
]
BitextFiles = Annotated[
    tuple[str, str] | None,
    bitext_option(
        "Learn to tag the language of TARGET, along links to SOURCE, line by line its translation.", EVIDENCE
    ),
]
SourceTags = Annotated[
    str | None,
    typer.Option(
        "--source-tags", metavar="FILE", rich_help_panel=EVIDENCE, help="SOURCE in CoNLL-U with tags (tag apply)."
    ),
]
LinksFile = Annotated[str | None, links_option(EVIDENCE)]
Graph = Annotated[
    bool,
    typer.Option(
        "--graph",
        rich_help_panel=EVIDENCE,
        help="Learn from few sentences in TRAIN and from --unlabelled text: words in similar places, similar tags.",
    ),
]
Unlabelled = Annotated[
    str | None,
    typer.Option("--unlabelled", metavar="TEXT", rich_help_panel=EVIDENCE, help="More text, of any tags or none."),
]
Adapt = Annotated[
    str | None,
    typer.Option(
        "--adapt",
        metavar="TEXT",
        rich_help_panel=EVIDENCE,
        help="Text without tags of the domain to be tagged: words that stand in like places share what is learnt.",
    ),
]
