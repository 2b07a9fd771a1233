"""Options of segmenters: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["MODELS", "OF_GOLD", "SegmenterOptions"]

MODELS = ("up", "hmmp-basic", "hmmp", "full")
"""What is modelled of words that nobody has cut; see `isogloss.tasks.segment.morphemes`."""
OF_GOLD = ("gold_as", "l2", "iterations", "min_count", "rewrites")
"""Options that say something with gold alone."""


_TYPED = {"model": ("hmmp-basic", "hmmp", "full")}
_FEATURES = {"gold_as": ("features",)}


class SegmenterOptions(Estimator):
    """Options of `Segmenter`."""

    _title: ClassVar[str] = "Segmenter"

    model: str = option(
        default="full", choices=MODELS, kw_only=False,
        help="What is learnt from words that nobody has cut: morphemes alone (up), prefixes, stems and suffixes "
        "(hmmp-basic), which of them follow each other (hmmp), and how words end (full).",
    )  # fmt: skip
    length_penalty: float | None = option(
        default=None, kind=float, least=0, most=3,
        help="A morpheme of n letters weighs exp(-n^length_penalty): more gives more and shorter morphemes; 0 for no "
        "such weight. If not given, 1.3 or, with words that are cut, what finds most of their boundaries.",
    )  # fmt: skip
    rounds: int = option(default=10, least=1, help="Iterations of EM over words that nobody has cut.")
    frequencies: str = option(
        default="log", choices=("types", "log", "tokens"),
        help="How much a word of the text counts that occurs n times: once, 1 + log2 n times, n times.",
    )  # fmt: skip
    base_power: float = option(
        default=0.6, least=0, most=1,
        help="Power of the probability of letters in morphemes that are new: below 1, new stems cost less.",
    )  # fmt: skip
    leave_out: bool = option(
        default=True, help="Take from the count of a morpheme what the word that gives it most has given."
    )
    shortest_stem: int = option(default=3, least=1, most=64, needs=_TYPED, help="Stems of fewer letters are unusual.")
    longest_affix: int = option(
        default=4, least=1, most=64, needs=_TYPED, help="Prefixes and suffixes of more letters are unusual."
    )
    prefixes: int = option(
        default=0, least=0, most=10_000,
        help="Prefixes are those of a list of so many; with suffixes 0 too, there is no list, and all may be.",
    )  # fmt: skip
    suffixes: int = option(default=0, least=0, most=10_000, help="The same of suffixes.")
    longest: int = option(default=20, least=1, most=64, help="The most letters of a piece of a word.")
    gold_as: str = option(
        default="features", choices=("features", "constraints"),
        help="What words that are cut are for: a model of letters and pieces learns from them (features), or they are "
        "words whose boundaries are known where the model of the text is learnt (constraints).",
    )  # fmt: skip
    l2: float = option(
        default=0.2, least=0, needs=_FEATURES, help="Penalty on the squares of weights learnt from words that are cut."
    )
    iterations: int = option(
        default=100, least=1, needs=_FEATURES, help="The most steps of L-BFGS over words that are cut."
    )
    min_count: int = option(
        default=1,
        least=1,
        needs=_FEATURES,
        help="Attributes of letters and pieces that are met less often are left out.",
    )
    rewrites: int = option(
        default=200, least=0, most=10000, needs=_FEATURES,
        help="The most rules by which pieces of words become morphemes that are spelt otherwise, such as happi and "
        "happy; 0 leaves pieces as they are.",
    )  # fmt: skip
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
