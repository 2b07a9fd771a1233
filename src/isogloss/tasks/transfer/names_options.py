"""Options of names that are carried into another language: names, defaults, limits and meanings.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["METHODS", "ProjectedNamesOptions"]

METHODS = ("expectations", "hard")


class ProjectedNamesOptions(Estimator):
    """Options of `project_names`."""

    _title: ClassVar[str] = "project_names"

    method: str = option(
        default="expectations", choices=METHODS,
        help="What is carried: probabilities of names over probabilities of links, as what is expected of the model "
        "(expectations), or the names of the source model over certain links (hard).",
    )  # fmt: skip
    strength: float = option(
        default=10.0, above=0, needs={"method": ("expectations",)},
        help="Penalty on expectations that are not met; the higher, the more closely links are followed.",
    )  # fmt: skip
    faint: float = option(
        default=0.02, least=0, below=1, needs={"method": ("expectations",)},
        help="Expected probabilities below this are passed over.",
    )  # fmt: skip
    threshold: float = option(
        default=0.25, least=0, below=1, needs={"method": ("expectations",)},
        help="Names of TARGET that come out more probable than this are learnt from.",
    )  # fmt: skip
    iterations: int = option(
        default=12, least=1, most=1000, needs={"method": ("expectations",)},
        help="Projections of the posteriors, each followed by steps of L-BFGS towards it.",
    )  # fmt: skip
    l2: float = option(
        default=0.1, above=0, needs={"method": ("expectations",)}, help="Penalty on the squares of weights."
    )
    min_count: int = option(
        default=2, least=1, needs={"method": ("expectations",)},
        help="Attributes that are met less often are left out.",
    )  # fmt: skip
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
