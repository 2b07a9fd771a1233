"""Options of multiview learning: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["CHOICES", "RULES", "TASKS", "MultiviewOptions"]

TASKS = ("entities", "tag", "parse")
RULES = ("full", "weak", "product", "uniform")
"""Those of `isogloss.learners.multiview.RULES`."""
CHOICES = ("best", "most")


class MultiviewOptions(Estimator):
    """Options of `Multiview`."""

    _title: ClassVar[str] = "Multiview"

    task: str = option(
        default="entities", choices=TASKS, kw_only=False,
        help="What both models do: find names (entities), tag words (tag) or parse (parse).",
    )  # fmt: skip
    candidates: int = option(
        default=20, least=1, most=1000, help="Number of the most probable analyses of each side that are looked at."
    )
    rule: str = option(
        default="full", choices=RULES,
        help="What chooses among pairs of analyses: the learnt scores with the full models in place of the weak ones "
        "(full), or with the weak ones (weak); the product of both (product); or the full models and what was learnt "
        "of pairs, unweighted (uniform).",
    )  # fmt: skip
    decoder: str = option(
        default="best", choices=("best", "nodes"),
        help="Take the best pair of analyses (best), or on each side what is expected to have the most right over all "
        "pairs (nodes).",
    )  # fmt: skip
    source_choice: str = option(
        default="best", choices=CHOICES,
        help="What is learnt from on the source side: the best analysis of the full model, or, of its best five, the "
        "one with the most names or links (most), for models that miss much.",
    )  # fmt: skip
    target_choice: str = option(default="best", choices=CHOICES, help="The same of the target side.")
    threshold: float = option(
        default=0.5,
        least=0,
        below=1,
        help="Word links with a higher probability are also counted as if they were certain.",
    )
    rounds: int = option(
        default=8,
        least=1,
        most=1000,
        help="Maximum number of rounds, in each of which nodes are matched anew and weights learnt.",
    )
    l2: float = option(default=1.0, above=0, help="Penalty on the squares of weights.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
