"""The aligners that are compared, as names and options that a row can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isogloss.errors import ParameterError
from isogloss.tasks.align import supervised
from isogloss.tasks.align.features import SETS

WEAK: tuple[str, ...] = ("association", "position", "shape", "frequency", "context", "lexical")
"""Dice, distance, spelling, frequency, neighbours and common words: nothing that another aligner says."""
WEAK_AND_IBM: tuple[str, ...] = (*WEAK, "ibm")
"""Models 1 and 2 besides, as Lacoste-Julien et al. have them."""
CLASSES = {"matching": "MatchingAligner", "quadratic": "QuadraticAligner", "itg": "ItgAligner"}
HMM = "hmm"
NAMES = {SETS: "all", WEAK: "weak", WEAK_AND_IBM: "weak+ibm"}


class NotYet(Exception):
    """A model that this version does not have; the message says which."""


@dataclass(frozen=True)
class Model:
    """A class of aligners with options; `hmm` is the unsupervised default."""

    kind: str
    features: tuple[str, ...] = SETS
    options: tuple[tuple[str, Any], ...] = ()

    def make(self, seed: int, threads: int) -> Any:
        """A new aligner."""
        try:
            options = {"features": self.features, "seed": seed, "threads": threads, **dict(self.options)}
            aligner = getattr(supervised, CLASSES[self.kind])(**options)
            aligner.check_params()
        except (AttributeError, ParameterError, TypeError) as problem:
            raise NotYet(f"{self}: {problem}") from None
        return aligner

    @property
    def feature_text(self) -> str:
        return "" if self.kind == HMM else NAMES.get(self.features, "+".join(self.features))

    @property
    def option_text(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.options if value is not None)

    def __str__(self) -> str:
        return " ".join(part for part in (self.kind, self.feature_text, self.option_text) if part)


def model(kind: str, features: tuple[str, ...] = SETS, **options: Any) -> Model:
    return Model(kind, tuple(features), tuple(options.items()))
