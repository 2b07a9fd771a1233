"""What an aligner was told, and what it chooses by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from isogloss.tasks.align.options import CONSTRAINTS, MOST_WORDS

__all__ = ["CONSTRAINTS", "MOST_WORDS", "Settings"]

_USUAL = {"model1_iterations": 5, "iterations": 5}
# Iterations for texts of at least so many source words.
_FEWER: tuple[tuple[int, dict[str, int]], ...] = (
    (4_000_000, {"model1_iterations": 3, "iterations": 3}),
    (2_000_000, {"model1_iterations": 3, "iterations": 4}),
)


@dataclass(frozen=True)
class Settings:
    """Every number the training and the decoding use; options of `HMMAligner`, which checks them, without gaps.

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

    model: str
    constraint: str
    decode_constraint: str
    model1_iterations: int
    iterations: int
    smoothing: float
    null: float
    null_smoothing: float
    spelling: float
    stems: float
    stem_length: int
    leave_out: float
    decode_leave_out: float
    dual_steps: int
    dual_rate: float
    dual_tolerance: float
    threshold: float | str
    symmetrise: str
    decode: str
    lowercase: bool
    max_length: int
    seed: int

    @classmethod
    def of(cls, model: str, given: Mapping[str, Any], n_words: int = 0) -> Settings:
        """The options of an aligner, and what follows for those that are None from its constraint and its text.

        There are fewer iterations on large texts, for the sake of time. Tried on the 37 pairs of the Hansards
        development set with 2.4 million source words around them, where three and four, and three and three, could not
        be told from five and five. Above that size there was no gold to try it on.
        """
        constraint = given["constraint"]
        iterations = next((fewer for least, fewer in _FEWER if n_words >= least), _USUAL)
        chosen: dict[str, Any] = {
            "decode_constraint": "symmetric" if constraint == "agreement" else constraint,
            "dual_steps": 20 if constraint in ("bijective", "symmetric") else 6,  # training needs tighter projections
            **iterations,
        }
        names = (field.name for field in fields(cls) if field.name != "model")
        return cls(model, **{name: chosen[name] if given[name] is None else given[name] for name in names})

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
