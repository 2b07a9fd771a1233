"""Options of parsers: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option
from isogloss.pass_options import TrainerOptions

__all__ = [
    "CONSTRAINTS",
    "DECODERS",
    "LABELS",
    "MOST_ROUNDS",
    "RATES",
    "SUPPORTS",
    "DependencyOptions",
    "JointOptions",
    "RestyleOptions",
]

RATES = {"likelihood": 0.05, "risk": 0.05, "mira": 0.01, "perceptron": 1.0}
"""Trainers, and the length of their steps."""
DECODERS = ("mbr", "map")
CONSTRAINTS = ("tree", "projective", "exactly-one", "exactly-one-no-2-cycle", "at-most-one", "not-2")
"""Those of `isogloss.structures.loopy.CONSTRAINTS`."""
SUPPORTS = ("gold", "tags", "all")
"""Which features are kept: those that fire on gold parts; of wrong parts also what does not look at words; or all."""
LABELS = ("second", "joint")
MOST_ROUNDS = 1000
"""No more rounds of belief propagation may be asked for."""
PASSES = "Passes over the treebank; with dev, the best number up to this."
ROUNDS = "Maximum number of rounds of belief propagation."
SEED = "Seed of the order of sentences."


class DependencyOptions(TrainerOptions):
    """Options of `DependencyParser`."""

    _rates: ClassVar[Mapping[str, float]] = RATES

    projective: bool | None = option(
        default=None, kind=bool, help="Whether no two links may cross; as it is in the treebank if not given."
    )
    order: int = option(
        default=2, choices=(1, 2),
        help="Score links one by one (1, faster), or with those above and beside them (2, better).",
    )  # fmt: skip
    factors: Sequence[str] | None = option(
        default=None, kind=(list, tuple), needs={"order": (2,)},
        help="Larger parts to score at order 2, of grand, siblings, valence and crossing; all if not given.",
    )  # fmt: skip
    trainer: str = option(
        default="likelihood", choices=tuple(RATES),
        help="Learn probabilities of trees, the fewest errors in expectation, or margins (mira, perceptron).",
    )  # fmt: skip
    decoder: str = option(
        default="mbr", choices=DECODERS,
        help="The tree with the most right heads in expectation, or the most probable one.",
    )  # fmt: skip
    constraint: str | None = option(
        default=None, choices=(None, *CONSTRAINTS),
        help="What is demanded of all links together in place of a tree, for comparison.",
    )  # fmt: skip
    single_root: bool = option(default=True, help="Whether the root has one child.")
    rounds: int = option(default=5, least=1, most=MOST_ROUNDS, help=ROUNDS)
    prune: float = option(
        default=3e-3, least=0, below=1,
        help="Links that a quick first parser gives less than this share of the best are not looked at; 0 looks at "
        "all.",
    )  # fmt: skip
    iterations: int = option(default=6, least=1, help=PASSES)
    l2: float = option(
        default=0.0, least=0, needs={"trainer": ("likelihood", "risk")},
        help="Penalty on the squares of weights, with trainer likelihood or risk.",
    )  # fmt: skip
    batch: int = option(default=16, least=1, help="Sentences of a step.")
    min_count: int = option(default=1, least=1, help="Features that fire less often are left out.")
    support: str = option(
        default="tags", choices=SUPPORTS,
        help="Keep features of gold parts alone; of others, too, what does not look at words; or all.",
    )  # fmt: skip
    labels: str | None = option(
        default=None, choices=(None, *LABELS),
        help="Choose relations when the tree is known (second), or let them have a say in it (joint); joint for "
        "likelihood if not given.",
    )  # fmt: skip
    tags: str = option(
        default="gold", choices=("gold", "predicted"),
        help="Take tags and features as they are given, or learn a tagger as well, which the parser carries along.",
    )  # fmt: skip
    templates: Sequence[str] | None = option(
        default=None, kind=(list, tuple), help="What links are seen by; see isogloss.tasks.parse.features."
    )


class JointOptions(Estimator):
    """Options of `JointMorphologyParser`, but for its dictionary."""

    attributes: Sequence[str] | None = option(
        default=None, kind=(list, tuple), kw_only=False,
        help="Features to predict; all that one word in two thousand has, if not given.",
    )  # fmt: skip
    joint: bool = option(
        default=True, help="Find tags and trees together, or first tags and then trees, for comparison."
    )
    threshold: int = option(
        default=5, least=1, needs={"dictionary": ("train",)},
        help="How often a word must be seen for dictionary='train'.",
    )  # fmt: skip
    iterations: int = option(default=5, least=1, help=PASSES)
    tag_iterations: int = option(default=5, least=1, help="Passes of the tagger.")
    bp_iterations: int = option(default=5, least=1, most=MOST_ROUNDS, help=ROUNDS)
    rate: float = option(default=0.1, above=0, help="Length of steps.")
    variance: float = option(default=1.0, above=0, help="Variance of the Gaussian prior of weights.")
    prune: float = option(
        default=0.01, least=0, below=1, help="Values of tags to which the tagger gives less are left out."
    )
    reach: int = option(default=0, least=0, help="Features of words are also kept for wrong links up to this length.")
    government: bool = option(default=False, help="Whether links also look at a value that the child alone has.")
    stack: float = option(default=0.0, least=0, most=1e6, help="How much the joint model listens to the tagger.")
    stack_links: float = option(
        default=0.0, least=0, most=1e6,
        help="How much it listens to a DependencyParser, which is learnt as well and also finds relations; 0 for none.",
    )  # fmt: skip
    tags: str = option(default="predicted", choices=("predicted", "gold"), help="Whether tags are predicted, or given.")
    projective: bool = option(default=False, help="Whether no two links may cross.")
    single_root: bool = option(default=True, help="Whether the root has one child.")
    batch: int = option(default=8, least=1, help="Sentences of a step.")
    seed: int = option(default=0, least=0, help=SEED)
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class RestyleOptions(Estimator):
    """Options of `StyleAdapter`."""

    relations: bool = option(
        default=True, help="Look at relations of the old trees and paths through them, or at configurations alone."
    )
    l2: float | None = option(
        default=None, kind=float, above=0,
        help="Penalty on the squares of weights; chosen by cross-validation on the trees if not given.",
    )  # fmt: skip
    folds: int = option(
        default=3, least=2, needs={"l2": (None,)}, help="Parts that the trees are cut into for cross-validation."
    )
    iterations: int = option(default=100, least=1, help="Maximum number of steps of L-BFGS.")
    decoder: str = option(
        default="mbr", choices=DECODERS,
        help="The tree with the most right heads in expectation, or the most probable one.",
    )  # fmt: skip
    single_root: bool = option(default=True, help="Whether the root has one child.")
    seed: int = option(default=0, least=0, help="Seed of the cut into folds.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
