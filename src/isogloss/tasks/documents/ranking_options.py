"""Options of rankers: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["AGGREGATORS", "CHOICES", "FEATURES", "SCALES", "TRAINERS", "RankerOptions"]

FEATURES = ("given", "index", "output", "dic", "ratio", "mt", "url")
"""Kinds of features."""
AGGREGATORS = ("mean", "max", "softmax", "weighted", "borda")
CHOICES = ("ranker", "given", "grades")
SCALES = ("group", "all", "none")
TRAINERS = ("dual", "pegasos")


class RankerOptions(Estimator):
    """Options of `BilingualRanker`."""

    _title: ClassVar[str] = "BilingualRanker"

    constraints: int = option(
        default=5, least=0, most=1000,
        help="Documents of the other language that each document is paired with; 0 ranks without them.",
    )  # fmt: skip
    aggregator: str = option(
        default="mean", choices=AGGREGATORS,
        help="What the score of a document is made of: the mean over its pairs (H-2), the best (H-1), a mean that "
        "leans to the best (softmax), one that leans to good documents of the other language (weighted), or places "
        "(borda).",
    )  # fmt: skip
    choose: str = option(
        default="ranker", choices=CHOICES,
        help="Which documents of the other language help: the first ones by a ranker of that language, as they are "
        "given, or by their grades, which unseen queries have not.",
    )  # fmt: skip
    features: Sequence[str] | None = option(
        default=None, kind=(list, tuple),
        help=f"Kinds of features, of {', '.join(FEATURES)}; all that the data allow if not given.",
    )  # fmt: skip
    lexicon: Any = option(
        default=None, kind=(str, PathLike, Iterable), kept=False,
        help="Words of the language that is ranked, and their translations: a table of `isogloss lexicon`.",
    )  # fmt: skip
    least: float = option(
        default=0.1, least=0, most=1, help="Entries of the lexicon with a lower p(target | source) are left out."
    )
    scale: str = option(
        default="group", choices=SCALES,
        help="Features go from 0 to 1 in each group, have mean 0 and deviation 1 in all, or stay as they are.",
    )  # fmt: skip
    trainer: str = option(
        default="dual", choices=TRAINERS, help="Ascent of the dual, which ends near the optimum, or stochastic steps."
    )
    regularisation: float | None = option(
        default=None, kind=float, above=0, most=1e6,
        help="What half the squared norm of the weights counts beside the mean hinge; chosen on held-out groups if not "
        "given.",
    )  # fmt: skip
    folds: int = option(
        default=5, least=2, most=100, needs={"regularisation": (None,)}, help="Parts that groups are held out in."
    )
    balance: str = option(
        default="groups", choices=("groups", "pairs"), help="What counts the same: every group, or every pair."
    )
    most_pairs: int = option(
        default=500, least=1, help="Pairs that are drawn of a group that has more; the others are not learnt from."
    )
    iterations: int = option(
        default=50, least=1,
        help="Rounds of learning at most: of ten passes over all pairs with trainer dual, of one with pegasos.",
    )  # fmt: skip
    tolerance: float = option(
        default=1e-3, least=0, below=1, needs={"trainer": ("dual",)},
        help="How far from the optimum the objective may be, as a share.",
    )  # fmt: skip
    seed: int = option(default=0, least=0, help="Seed of the order of pairs and of what is drawn.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
