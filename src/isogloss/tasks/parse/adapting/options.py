"""Options of parser adaptation: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import Estimator, option

__all__ = ["METHODS", "WITH_TAGS", "AdaptationOptions"]

METHODS = (
    "brown", "markov", "correspondence", "stacking", "bagging", "self-training", "domain-weights", "word-weights",
    "feature-weights", "target-features", "no-noun-words",
)  # fmt: skip
"""Ways to adapt a parser to text of another domain."""
WITH_TAGS = ("self-training", "domain-weights", "feature-weights", "target-features")
"""Those that look at tags of the text."""
_CLASSES = {"method": ("brown", "markov", "correspondence")}


class AdaptationOptions(Estimator):
    """Options of `ParserAdaptation`."""

    _title: ClassVar[str] = "ParserAdaptation"

    method: str = option(
        default="brown", choices=METHODS, kw_only=False,
        help="How to adapt. Further features: classes of words from the text of both domains (brown, markov, "
        "correspondence), or the links of another parser (stacking). Further sentences: those that are labelled by "
        "parsers that have not learnt from them (bagging), or those of the new domain (self-training). More weight for "
        "what the new domain has: domain-weights, word-weights, feature-weights. Fewer features: target-features, "
        "no-noun-words.",
    )  # fmt: skip
    classes: int = option(default=100, least=2, most=10000, needs=_CLASSES, help="Number of classes of words.")
    word_count: int = option(
        default=2, least=1, needs={"method": ("brown", "markov")}, help="Words that occur less often have no class."
    )
    pivot_count: int = option(
        default=20, least=0, needs={"method": ("correspondence",)},
        help="Pivots are words that occur more often than this in both domains.",
    )  # fmt: skip
    folds: int = option(
        default=5, least=2, needs={"method": ("stacking",)},
        help="Number of parts of the treebank. The other parser labels each part when it has learnt from the rest.",
    )  # fmt: skip
    bags: int = option(
        default=3, least=1, needs={"method": ("bagging",)}, help="Number of parsers that label for each other."
    )
    bag_size: int = option(
        default=2000,
        least=1,
        needs={"method": ("bagging",)},
        help="Number of sentences that each parser learns from, drawn with replacement.",
    )
    share: float = option(
        default=1.0, above=0, most=1, needs={"method": ("self-training",)},
        help="Share of the sentences of the new domain that are learnt from, the surest first.",
    )  # fmt: skip
    weight: float = option(
        default=0.5, above=0, needs={"method": ("self-training",)},
        help="What a sentence of the new domain counts beside one of the treebank.",
    )  # fmt: skip
    form: str = option(
        default="log", choices=("log", "frequency"), needs={"method": ("word-weights",)},
        help="Whether wrong heads of a word cost by the logarithm of its frequency, or by the frequency itself.",
    )  # fmt: skip
    seed: int = option(default=0, least=0, help="Seed of the random number generator.")
