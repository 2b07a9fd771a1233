"""Options of extractors: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from isogloss.estimator import option
from isogloss.pass_options import TrainerOptions

__all__ = ["DECODERS", "MODELS", "RATES", "EntityOptions"]

MODELS = ("segments", "chain")
RATES = {"likelihood": 0.1, "mira": 0.05, "perceptron": 1.0}
"""Trainers, and the length of their steps."""
DECODERS = ("mbr", "map")


class EntityOptions(TrainerOptions):
    """Options of `EntityTagger`."""

    _title: ClassVar[str] = "EntityTagger"
    _rates: ClassVar[Mapping[str, float]] = RATES

    model: str = option(
        default="segments", choices=MODELS, kw_only=False,
        help="Score words and names as a whole (segments), or words alone, as beginning or continuing a name (chain).",
    )  # fmt: skip
    trainer: str = option(
        default="likelihood", choices=tuple(RATES),
        help="Learn probabilities of names, or margins (mira, perceptron).",
    )  # fmt: skip
    decoder: str | None = option(
        default=None, choices=(None, *DECODERS),
        help="The names with the most right ones in expectation (mbr), or those of the best analysis (map); mbr for "
        "likelihood and map for margins if not given.",
    )  # fmt: skip
    threshold: float = option(
        default=0.35, least=0, below=1,
        needs=({"decoder": ("mbr",)}, {"decoder": (None,), "trainer": ("likelihood",)}),
        help="What a name costs with decoder mbr: more gives fewer and surer ones.",
    )  # fmt: skip
    tags: str = option(
        default="none", choices=("none", "given"),
        help="Look at parts of speech that stand in the file beside the words (given), or not.",
    )  # fmt: skip
    longest: int = option(
        default=16, least=1, most=256, help="The most words of a name, at most as many as the longest of training has."
    )
    min_count: int = option(default=1, least=1, help="Attributes that are met less often are left out.")
    templates: Sequence[str | Sequence[str]] | None = option(
        default=None, kind=(list, tuple), help="What words are seen by; see isogloss.tasks.extract.features."
    )
    span_templates: Sequence[str | Sequence[str]] | None = option(
        default=None, kind=(list, tuple), needs={"model": ("segments",)},
        help="What names as a whole are seen by, with model segments.",
    )  # fmt: skip
