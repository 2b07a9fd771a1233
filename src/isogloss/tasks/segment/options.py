"""Options of segmenters: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = [
    "LINKED", "MODELS", "OF_BITEXT", "OF_GOLD", "STAGES", "BilingualSegmenterOptions", "MorphemeOptions",
    "SegmenterOptions",
]  # fmt: skip

MODELS = ("up", "hmmp-basic", "hmmp", "full")
"""What is modelled of words that nobody has cut; see `isogloss.tasks.segment.morphemes`."""
STAGES = ("text", "spelling")
"""What is learnt before and after where words are cut, with gold; each has a checkpoint beside the usual one."""
OF_GOLD = ("gold_as", "l2", "iterations", "min_count", "rewrites")
"""Options that say something with gold alone."""
LINKED = 0.8
"""Two words are linked if more morphemes of one than this are expected to come from the other."""
OF_BITEXT = ("distortion", "passes", "source_weight", "least")
"""Options that say something with a translation alone."""


_TYPED = {"model": ("hmmp-basic", "hmmp", "full")}
_FEATURES = {"gold_as": ("features",)}


class MorphemeOptions(Estimator):
    """Options of what is learnt from words that nobody has cut."""

    model: str = option(
        default="full", choices=MODELS, kw_only=False,
        help="What is learnt from words that nobody has cut: morphemes alone (up), prefixes, stems and suffixes "
        "(hmmp-basic), which of them follow each other (hmmp), and how words end (full).",
    )  # fmt: skip
    length_penalty: float | None = option(
        default=None, kind=float, least=0, most=3,
        help="A morpheme of n letters has the weight exp(-n^length_penalty): larger values give more and shorter "
        "morphemes, and 0 switches the weight off. If not given, it is 1.3 or, with words cut by people, the one of "
        "seven values that finds most of their boundaries.",
    )  # fmt: skip
    rounds: int = option(default=10, least=1, help="Number of iterations of EM over words that nobody has cut.")
    frequencies: str = option(
        default="log", choices=("types", "log", "tokens"),
        help="How much a word counts that occurs n times in the text: 1 (types), 1 + log2 n (log) or n (tokens).",
    )  # fmt: skip
    base_power: float = option(
        default=0.6, least=0, most=1,
        help="Power to which the probability of the letters of a new morpheme is raised: below 1, new stems cost less.",
    )  # fmt: skip
    leave_out: bool = option(
        default=True,
        help="Subtract from the count of each morpheme the most that a single place in a word has given to it, so that "
        "words do not support themselves.",
    )  # fmt: skip
    shortest_stem: int = option(
        default=3, least=1, most=64, needs=_TYPED, help="Stems of fewer letters are made improbable."
    )
    longest_affix: int = option(
        default=4, least=1, most=64, needs=_TYPED, help="Prefixes and suffixes of more letters are made improbable."
    )
    prefixes: int = option(
        default=0, least=0, most=10_000,
        help="Number of prefixes in the list of those that are allowed. If it is 0 for prefixes and suffixes, there is "
        "no list, and any string may be one.",
    )  # fmt: skip
    suffixes: int = option(
        default=0, least=0, most=10_000, help="Number of suffixes in the list of those that are allowed."
    )
    longest: int = option(default=20, least=1, most=64, help="Maximum number of letters of a piece of a word.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class SegmenterOptions(MorphemeOptions):
    """Options of `Segmenter`."""

    _title: ClassVar[str] = "Segmenter"

    gold_as: str = option(
        default="features", choices=("features", "constraints"),
        help="What words cut by people are used for: a model of letters and pieces is learnt from them (features), or "
        "their boundaries are kept while the model of the text is learnt (constraints).",
    )  # fmt: skip
    l2: float = option(
        default=0.2, least=0, needs=_FEATURES, help="Penalty on the squares of weights learnt from words that are cut."
    )
    iterations: int = option(
        default=100, least=1, needs=_FEATURES, help="Maximum number of steps of L-BFGS over words that are cut."
    )
    min_count: int = option(
        default=1, least=1, needs=_FEATURES, help="Attributes of letters and pieces that occur less often are left out."
    )
    rewrites: int = option(
        default=200, least=0, most=10000, needs=_FEATURES,
        help="Maximum number of rules by which pieces of words become morphemes that are spelt otherwise, such as "
        "happi and happy; 0 leaves pieces as they are.",
    )  # fmt: skip


class BilingualSegmenterOptions(MorphemeOptions):
    """Options of `BilingualSegmenter`."""

    _title: ClassVar[str] = "BilingualSegmenter"

    distortion: str = option(
        default="learnt", choices=("learnt", "uniform"),
        help="How far the next morpheme jumps in the translation is learnt, or all of its positions are equally "
        "probable (uniform).",
    )  # fmt: skip
    passes: int = option(
        default=8, least=1,
        help="Number of iterations of EM over sentence pairs, after three with all positions equally probable.",
    )  # fmt: skip
    source_weight: float = option(
        default=3.0, above=0,
        help="Pseudo-counts by which morphemes that come from a word are smoothed by those that come from any.",
    )  # fmt: skip
    least: float = option(
        default=0.01, least=0, below=1,
        help="Morphemes of a word that are less probable than this, by words alone, are not looked at.",
    )  # fmt: skip
