"""What an aligner was told, checked, and what it chooses by itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from isogloss.errors import ParameterError
from isogloss.tasks.align.symmetrise import METHODS

__all__ = ["CONSTRAINTS", "MOST_WORDS", "Settings"]

MOST_WORDS = 32_000
"""Words that a side of a pair may have at the most: what 16 bits can number."""
CONSTRAINTS = ("none", "agreement", "bijective", "symmetric")

# Iterations for texts of at least so many source words.
_FEWER: tuple[tuple[int, dict[str, Any]], ...] = (
    (4_000_000, {"model1_iterations": 3, "iterations": 3}),
    (2_000_000, {"model1_iterations": 3, "iterations": 4}),
)


@dataclass(frozen=True)
class Settings:
    """Every number the training and the decoding use.

    Parameters
    ----------
    model : {"model1", "model2", "hmm"}
    constraint : {"none", "agreement", "bijective", "symmetric"}
        On the posteriors, in training.
    decode_constraint : same
        On the posteriors that links are read from.
    iterations : int
        Of the model itself, after `model1_iterations` of Model 1.
    smoothing : float
        Pseudo-count of every pair of words, met or not.
    null : float
        Probability that a word has no link, before any word is looked at.
    null_smoothing : float
        Pseudo-count, per word type, of the null word, spread by frequency.
    spelling, stems : float
        Pseudo-counts of a pair of words that are spelt alike, and of words whose stems go together; 0 for none.
    stem_length : int
        Letters of a word that make its stem.
    leave_out, decode_leave_out : float
        How much of its own evidence a sentence is judged without, in training and decoding: 1 all of it, 0 nothing.
    dual_steps, dual_rate, dual_tolerance
        Gradient steps on the dual of a projection, their size, and the violation at which they stop.
    lowercase : bool
    max_length : int
        Words a side may have; longer pairs are passed over.
    """

    model: str = "hmm"
    constraint: str = "agreement"
    decode_constraint: str = "symmetric"
    model1_iterations: int = 5
    iterations: int = 5
    smoothing: float = 0.001
    null: float = 0.15
    null_smoothing: float = 0.01
    spelling: float = 1.5
    stems: float = 2.0
    stem_length: int = 4
    leave_out: float = 1.0
    decode_leave_out: float = 1.0
    dual_steps: int = 6
    dual_rate: float = 1.0
    dual_tolerance: float = 0.01
    threshold: float | str = "auto"
    symmetrise: str = "posterior"
    decode: str = "posterior"
    lowercase: bool = True
    max_length: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("model1_iterations", 0, 10**6),
            ("iterations", 0, 10**6),
            ("max_length", 1, MOST_WORDS),
            ("stem_length", 1, 64),
            ("dual_steps", 0, 10**6),
            ("seed", 0, 2**63 - 1),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise ParameterError(f"{name} should be a whole number from {low} to {high}, not {value!r}")
        for name, bottom, top in (
            ("smoothing", 1e-9, 1e3),
            ("null", 1e-6, 0.999),
            ("null_smoothing", 1e-9, 1e3),
            ("spelling", 0.0, 1e3),
            ("stems", 0.0, 1e3),
            ("leave_out", 0.0, 1.0),
            ("decode_leave_out", 0.0, 1.0),
            ("dual_rate", 1e-3, 8.0),
            ("dual_tolerance", 0.0, 1e3),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not bottom <= value <= top:
                raise ParameterError(f"{name} should be a number from {bottom:g} to {top:g}, not {value!r}")
        for name, choices in (
            ("model", ("model1", "model2", "hmm")),
            ("constraint", CONSTRAINTS),
            ("decode_constraint", CONSTRAINTS),
            ("symmetrise", ("posterior", *METHODS)),
            ("decode", ("posterior", "viterbi")),
        ):
            if getattr(self, name) not in choices:
                raise ParameterError(f"{name} should be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if not isinstance(self.lowercase, bool):
            raise ParameterError(f"lowercase should be True or False, not {self.lowercase!r}")
        t = self.threshold
        if not (t in ("auto", "points") or (isinstance(t, int | float) and not isinstance(t, bool) and 0 < t < 1)):
            raise ParameterError(f"threshold should be auto, points or a number between 0 and 1, not {t!r}")
        if self.decode == "viterbi" and self.symmetrise == "posterior":
            raise ParameterError(
                "decode='viterbi' gives links of each direction, without posteriors to join: "
                "choose how to join them, e.g. symmetrise='grow-diag-final-and'"
            )

    def for_size(self, n_words: int, given: Collection[str]) -> Settings:
        """The same with fewer iterations on large texts, for the sake of time, unless they were given.

        Tried on the 37 pairs of the Hansards development set with 2.4 million source words around them, where three and
        four, and three and three, could not be told from five and five. Above that size there was no gold to try it on.
        """
        fewer = next((fewer for least, fewer in _FEWER if n_words >= least), {})
        return replace(self, **{name: value for name, value in fewer.items() if name not in given})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, options: dict[str, Any]) -> Settings:
        """What `as_dict` gave; options of another version that we do not know are refused."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(options) - known):
            raise ParameterError(f"unknown options: {', '.join(unknown)}")
        return cls(**options)
