"""Options of constituency parsers: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from isogloss.estimator import option
from isogloss.pass_options import TrainerOptions

__all__ = ["DECODERS", "MODELS", "RATES", "THRESHOLDS", "ConstituencyOptions"]

RATES = {"likelihood": 0.1, "mira": 0.05, "perceptron": 1.0}
"""Trainers, and the length of their steps."""
DECODERS = ("mbr", "map")
MODELS = ("span", "grammar", "both")
THRESHOLDS = {"span": 0.3, "grammar": 0.4, "both": 0.4}
"""What a bracket costs, if it is not said."""
_SPAN, _GRAMMAR = {"model": ("span", "both")}, {"model": ("grammar", "both")}


class ConstituencyOptions(TrainerOptions):
    """Options of `ConstituencyParser`."""

    _rates: ClassVar[Mapping[str, float]] = RATES

    model: str = option(
        default="span", choices=MODELS,
        help="Score labelled spans by features (span), learn grammars with hidden states (grammar, no features), or "
        "average what both say (both, best).",
    )  # fmt: skip
    cycles: int = option(
        default=3,
        least=1,
        most=6,
        needs=_GRAMMAR,
        help="How often the states of a grammar are split in two and merged.",
    )
    grammars: int = option(
        default=4, least=1, most=16, needs=_GRAMMAR,
        help="Grammars that begin with different noise, whose posteriors are averaged: more are better and slower.",
    )  # fmt: skip
    share: float = option(
        default=0.7, least=0, most=1, needs={"model": ("both",)}, help="What grammars count for beside the span model."
    )
    order: int = option(
        default=2, choices=(1, 2), needs=_SPAN,
        help="Score brackets one by one (1, faster), or with the label above them (2, better).",
    )  # fmt: skip
    trainer: str = option(
        default="likelihood", choices=tuple(RATES), needs=_SPAN,
        help="Learn probabilities of trees, or margins (mira, perceptron).",
    )  # fmt: skip
    decoder: str | None = option(
        default=None, choices=(None, *DECODERS), needs={"model": ("span",)},
        help="The tree with the most right brackets in expectation (mbr), or the best one (map); mbr for likelihood "
        "and map for margins if not given.",
    )  # fmt: skip
    threshold: float | None = option(
        default=None, kind=float, least=0, below=1,
        needs=(_GRAMMAR, {"decoder": ("mbr",)}, {"decoder": (None,), "trainer": ("likelihood",)}),
        help="What a bracket costs with decoder mbr: more gives fewer and surer ones; if not given, 0.3 for labelled "
        "spans and 0.4 with grammars.",
    )  # fmt: skip
    tags: str = option(
        default="predicted", choices=("predicted", "gold"),
        help="Learn a tagger as well, which the parser carries along, or take tags as they are given.",
    )  # fmt: skip
    prune: float = option(
        default=3e-4, least=0, below=1, needs=_SPAN,
        help="Spans to which a quick first model of bare brackets gives less than this are not looked at; 0 looks at "
        "all.",
    )  # fmt: skip
    iterations: int = option(
        default=5,
        least=1,
        needs=_SPAN,
        help="Passes over the trees, one an iteration; with dev, the best number up to this.",
    )
    rate: float | None = option(
        default=None, kind=float, above=0, needs={"trainer": ("likelihood", "mira"), **_SPAN},
        help="Length of steps, for mira the longest; as suits the trainer if not given.",
    )  # fmt: skip
    l2: float = option(
        default=10.0, least=0, needs={"trainer": ("likelihood",), **_SPAN},
        help="Penalty on the squares of weights, with trainer likelihood.",
    )  # fmt: skip
    batch: int = option(default=8, least=1, needs=_SPAN, help="Sentences of a step.")
    min_count: int = option(
        default=4, least=1, needs=_SPAN, help="Features that fire less often on gold brackets are left out."
    )
    min_word: int = option(
        default=2, least=1, needs=_SPAN, help="Words that occur less often are seen by their shapes and endings alone."
    )
    templates: Sequence[str] | None = option(
        default=None,
        kind=(list, tuple),
        needs=_SPAN,
        help="What spans are seen by; see isogloss.tasks.parse.constituency.features.",
    )
    seed: int = option(default=0, least=0, help="Seed of the order of sentences, and of noise in grammars.")
