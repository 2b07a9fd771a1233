"""Options of all that is learnt in passes over sentences: names, defaults, limits and meanings.

Help of commands is made of them, so this module imports nothing that is heavy. What learns so derives from
`isogloss.learners.passes.LearntInPasses`; a class for which an option has another default, or says something only in
company, declares it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["PassOptions", "PassSettings", "TrainerOptions"]


class PassSettings(NamedTuple):
    """How passes are made: options of learning as they are used."""

    trainer: str = "likelihood"
    iterations: int = 10
    rate: float = 0.1
    l2: float = 0.0
    batch: int = 16
    seed: int = 0


class PassOptions(Estimator):
    """Options of what is learnt in passes."""

    iterations: int = option(default=10, least=1, help="Passes over the text; with dev, the best number up to this.")
    batch: int = option(default=8, least=1, help="Sentences of a step.")
    seed: int = option(default=0, least=0, help="Seed of the order of sentences.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class TrainerOptions(PassOptions):
    """Options of what is learnt in passes by one of several trainers."""

    _rates: ClassVar[Mapping[str, float]] = {}
    """Trainers, and the length of their steps."""

    trainer: str = option(
        default="likelihood", choices=("likelihood", "mira", "perceptron"),
        help="Learn probabilities, or margins (mira, perceptron).",
    )  # fmt: skip
    rate: float | None = option(
        default=None, kind=float, above=0, needs={"trainer": ("likelihood", "risk", "mira")},
        help="Length of steps, for mira the longest; as suits the trainer if not given.",
    )  # fmt: skip
    l2: float = option(
        default=1.0, least=0, needs={"trainer": ("likelihood",)},
        help="Penalty on the squares of weights, with trainer likelihood.",
    )  # fmt: skip

    @property
    def step_length(self) -> float:
        """Length of steps: `rate` or, if that is not given, what suits the trainer."""
        return self._rates[self.trainer] if self.rate is None else float(self.rate)

    @property
    def pass_settings(self) -> PassSettings:
        """How passes are made."""
        return PassSettings(
            self.trainer, self.iterations, self.step_length, float(self.l2), self.batch, self.seed
        )  # fmt: skip

    @property
    def options_(self) -> dict[str, Any]:
        """Every option as it was used; what is kept with a model."""
        return super().options_ | {"rate": self.step_length}
