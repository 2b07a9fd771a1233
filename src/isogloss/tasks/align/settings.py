"""What an aligner was told, and what it chooses by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from isogloss.tasks.align.options import CONSTRAINTS, MOST_WORDS
from isogloss.tasks.align.priors import Cut, cuts

__all__ = ["CONSTRAINTS", "MOST_WORDS", "Settings"]

_LARGE = 1_000_000
"""Source words from which on a text has met its word pairs itself, and one way to cut words to stems does."""
_SPREAD, _MOST = 4.0, 0.003
"""Pseudo-counts that smoothing gives a word, all told, if no other amount is asked for, and the most for each pair."""


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
        Pseudo-count of every pair of words, met or not: four for each word, spread over all words of the other side.
    null : float or "length"
        Probability that a word has no link, before any word is looked at; "length" is 1 / (m + 1) where m words can be
        linked to (Liang et al. 2006, section 2).
    null_smoothing : float
        Pseudo-count, per word type, of the null word, spread by frequency.
    spelling, stems : float
        Pseudo-counts of a pair of words that are spelt alike, and of words whose stems go together; 0 for none.
    stem_length, stem_classes : int
        Letters of a word that make its stem, and in how many ways words are cut (`isogloss.tasks.align.priors.cuts`).
    leave_out, decode_leave_out : float
        How much of its own evidence a sentence is judged without, in training and decoding: 1 all of it, 0 nothing.
    final : bool
        Whether the HMM learns how far from the end the last link is, as it learns where the first one is.
    model1_constraint : {"none", "agreement"}
        On the posteriors in the iterations of Model 1 that come first, from the second on.
    dual_search : {"fixed", "adaptive"}
        How the dual of a projection is minimised, see `isogloss.tasks.align._numba.dual`.
    dual_steps, dual_rate, dual_tolerance
        Steps on the dual, their length (with "adaptive" that of the first), and the violation at which they stop.
    lowercase : bool
    max_length : int
        Words a side may have; longer pairs are passed over.
    train_length : int
        Words a side may have to be learnt from, where that is less.
    """

    model: str
    constraint: str
    decode_constraint: str
    model1_iterations: int
    iterations: int
    smoothing: float
    null: float | str
    null_smoothing: float
    spelling: float
    stems: float
    stem_length: int
    stem_classes: int
    leave_out: float
    decode_leave_out: float
    final: bool
    model1_constraint: str
    dual_search: str
    dual_steps: int
    dual_rate: float
    dual_tolerance: float
    threshold: float | str
    symmetrise: str
    decode: str
    lowercase: bool
    max_length: int
    train_length: int
    seed: int

    @classmethod
    def of(cls, model: str, given: Mapping[str, Any], n_words: int = 0, n_types: float = 6000.0) -> Settings:
        """The options of an aligner, and what follows for those that are None from its constraint and its text.

        `n_words` are the source words of the text, `n_types` its different words (of a side, in the geometric mean).
        """
        constraint = given["constraint"]
        projects = constraint in ("bijective", "symmetric") or given["decode_constraint"] == "bijective"
        search = given["dual_search"] or ("adaptive" if projects else "fixed")
        chosen: dict[str, Any] = {
            "decode_constraint": "symmetric" if constraint == "agreement" else constraint,
            "dual_search": search,
            "dual_steps": {"adaptive": 200, "fixed": 20 if projects else 9}[search],
            "train_length": given["max_length"],
            "model1_iterations": 3,
            "iterations": 5,
            "smoothing": min(_MOST, _SPREAD / max(1.0, n_types)),
            "stem_classes": 1 if n_words >= _LARGE else 3,
        }
        names = (field.name for field in fields(cls) if field.name != "model")
        return cls(model, **{name: chosen[name] if given[name] is None else given[name] for name in names})

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The ways to cut words to stems."""
        return cuts(self.stem_length, self.stem_classes)

    @property
    def null_weight(self) -> float:
        """As the E-step takes it: 0 stands for "length"."""
        return 0.0 if self.null == "length" else float(self.null)

    @property
    def learnt_length(self) -> int:
        """Words a side may have to be learnt from."""
        return min(self.max_length, self.train_length)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
