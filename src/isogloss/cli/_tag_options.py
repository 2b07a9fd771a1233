"""Options of `isogloss tag train`: what each is called, and what its help says."""

from __future__ import annotations

from typing import Annotated

import typer

from isogloss.cli._common import choice

__all__ = [
    "L1", "L2", "Adapt", "BitextFiles", "ColumnNames", "Decoder", "DictionaryFile", "Emissions", "Graph", "Iterations",
    "Learner", "LinksFile", "MinCount", "Neighbours", "Order", "Soft", "SourceTags", "Strength", "Taught", "Threshold",
    "Unlabelled",
]  # fmt: skip

LEARNING = "Learning"
EVIDENCE = "Without tagged text, or with little"
COLUMNS = ("upos", "xpos", "feats")


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
    typer.Option(
        "--dictionary",
        metavar="DICT",
        rich_help_panel=EVIDENCE,
        help="Words with the tags they may have, a pair a line: learn from TRAIN as text without tags.",
    ),
]
BitextFiles = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--bitext",
        metavar="SOURCE TARGET",
        rich_help_panel=EVIDENCE,
        help="Learn to tag the language of TARGET, along links to SOURCE, line by line its translation.",
    ),
]
SourceTags = Annotated[
    str | None,
    typer.Option(
        "--source-tags", metavar="FILE", rich_help_panel=EVIDENCE, help="SOURCE in CoNLL-U with tags (tag apply)."
    ),
]
LinksFile = Annotated[
    str | None,
    typer.Option(
        "--links",
        metavar="FILE",
        rich_help_panel=EVIDENCE,
        help="Links of the bitext (align --scores); found anew without it.",
    ),
]
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
Order = Annotated[
    int | None,
    typer.Option(
        "--order",
        metavar="1|2",
        min=1,
        max=2,
        rich_help_panel=LEARNING,
        help="Tags before a word's own to look at; 1 with --bitext, 2 otherwise.",
    ),
]
Decoder = Annotated[
    str | None,
    choice(
        "marginal",
        "viterbi",
        option="--decoder",
        panel=LEARNING,
        help="The most probable tag of each word (without it), or the most probable sequence.",
    ),
]
Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations",
        metavar="N",
        min=1,
        rich_help_panel=LEARNING,
        help="Passes over the text: 8; 7 with --dictionary, 4 with --graph, 50 with --bitext.",
    ),
]
L1 = Annotated[
    float | None,
    typer.Option("--l1", metavar="X", min=0, rich_help_panel=LEARNING, help="Penalty; more, fewer weights. 0.1."),
]
L2 = Annotated[
    float | None,
    typer.Option(
        "--l2", metavar="X", min=0, rich_help_panel=LEARNING, help="Penalty; more, smaller weights. 0; with --bitext 1."
    ),
]
MinCount = Annotated[
    int | None,
    typer.Option(
        "--min-count",
        metavar="N",
        min=1,
        rich_help_panel=LEARNING,
        help="Leave out attributes met less often. 1; with --bitext 3.",
    ),
]
Emissions = Annotated[
    str | None,
    choice(
        "features",
        "table",
        option="--emissions",
        panel=LEARNING,
        help="With --dictionary: words by their endings and looks (without it), or each by itself.",
    ),
]
Learner = Annotated[
    str | None,
    choice(
        "crf",
        "hmm",
        option="--learner",
        panel=LEARNING,
        help="With --bitext: a conditional random field (without it), or a hidden Markov model.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="P",
        min=0,
        max=1,
        rich_help_panel=LEARNING,
        help="With --bitext: links at least as probable as this decide on a word's tag. 0.9.",
    ),
]
Soft = Annotated[
    bool | None,
    typer.Option(
        "--soft/--hard",
        rich_help_panel=LEARNING,
        show_default=False,
        help="With --bitext: links say how probable a tag should be at least, or decide on it (without either).",
    ),
]
Neighbours = Annotated[
    int | None,
    typer.Option("--neighbours", metavar="N", min=1, rich_help_panel=LEARNING, help="With --graph: of a trigram. 10."),
]
Strength = Annotated[
    float | None,
    typer.Option(
        "--strength", metavar="X", min=0, rich_help_panel=LEARNING, help="With --graph: what unlike tags cost. 2."
    ),
]
