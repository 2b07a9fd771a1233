"""Options of `isogloss parse train`: what each is called, and what its help says."""

from __future__ import annotations

from typing import Annotated

import typer

from isogloss.cli._common import choice

__all__ = [
    "L2",
    "Constraint",
    "Decoder",
    "Factors",
    "Iterations",
    "Labels",
    "MinCount",
    "Order",
    "Projective",
    "Prune",
    "Rate",
    "Rounds",
    "Support",
    "Tags",
    "Trainer",
]

LEARNING = "Learning"

Order = Annotated[
    int,
    typer.Option(
        "--order",
        metavar="1|2",
        min=1,
        max=2,
        help="Score links one by one (fast), or with those above and beside them (better).",
    ),
]
Projective = Annotated[
    bool | None,
    typer.Option("--projective/--nonprojective", help="Whether no links may cross; as it is in TRAIN without either."),
]
Tags = Annotated[
    str,
    choice(
        "gold",
        "predicted",
        option="--tags",
        help="Take tags and features as they are given, or learn a tagger as well, which the parser carries along.",
    ),
]
Labels = Annotated[
    str | None,
    choice(
        "joint",
        "second",
        option="--labels",
        help="Relations have a say in the tree, or are chosen when it is known; joint, if learnt by likelihood.",
    ),
]
Trainer = Annotated[
    str,
    choice(
        "likelihood",
        "risk",
        "mira",
        "perceptron",
        option="--trainer",
        panel=LEARNING,
        help="Learn probabilities of trees, the fewest errors in expectation, or margins.",
    ),
]
Decoder = Annotated[
    str,
    choice(
        "mbr",
        "map",
        option="--decoder",
        panel=LEARNING,
        help="The tree with the most right heads in expectation, or the most probable one.",
    ),
]
Iterations = Annotated[
    int,
    typer.Option("--iterations", metavar="N", min=1, rich_help_panel=LEARNING, help="Passes over the treebank."),
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", metavar="X", rich_help_panel=LEARNING, show_default=False, help="Length of steps."),
]
L2 = Annotated[
    float,
    typer.Option("--l2", metavar="X", min=0, rich_help_panel=LEARNING, help="Decay; more, smaller weights."),
]
MinCount = Annotated[
    int,
    typer.Option(
        "--min-count", metavar="N", min=1, rich_help_panel=LEARNING, help="Leave out features met less often."
    ),
]
Support = Annotated[
    str,
    choice(
        "gold",
        "tags",
        "all",
        option="--support",
        panel=LEARNING,
        help="Features of gold links alone; of others, too, what does not look at words; or all.",
    ),
]
Factors = Annotated[
    str | None,
    typer.Option(
        "--factors",
        metavar="A,B",
        rich_help_panel=LEARNING,
        show_default=False,
        help="Larger parts to score at order 2: some of grand, siblings, valence, crossing; all without it.",
    ),
]
Constraint = Annotated[
    str | None,
    typer.Option(
        "--constraint",
        metavar="NAME",
        rich_help_panel=LEARNING,
        show_default=False,
        help="What is demanded of all links together in place of a tree, for comparison: exactly-one, "
        "exactly-one-no-2-cycle, at-most-one or not-2.",
    ),
]
Rounds = Annotated[
    int,
    typer.Option(
        "--rounds", metavar="N", min=1, rich_help_panel=LEARNING, help="Maximum number of rounds of belief propagation."
    ),
]
Prune = Annotated[
    float,
    typer.Option(
        "--prune",
        metavar="X",
        min=0,
        rich_help_panel=LEARNING,
        help="Do not look at links that a quick first parser gives less than this share of the best; 0 for none.",
    ),
]
