"""Options of parsers that learn from translations, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["METHODS", "MODELS", "DelexicalisedOptions", "TransferOptions"]

METHODS = ("complete", "posterior", "density", "hard", "random", "delexicalised", "quasi", "partial")
"""How trees of the target are found from those of the source; see `TransferredParser`."""
MODELS = {
    "features": ("complete", "posterior", "density", "hard", "random", "delexicalised"),
    "grammar": ("quasi", "partial", "hard", "posterior"),
}
"""What is learnt of the target's trees, and by which methods; of those that both have, the first is meant."""
PROJECTING = tuple(name for name in METHODS if name != "delexicalised")
FEATURED = tuple(name for name in MODELS["features"] if name != "delexicalised")


class TransferOptions(Estimator):
    """Options of `TransferredParser`, but for its dictionary."""

    _title: ClassVar[str] = "TransferredParser"

    method: str = option(
        default="complete", choices=METHODS,
        help="How target trees are found: completed by a parser that looks at tags alone (complete), kept in "
        "expectation (posterior), from dense sentences on (density), whole projected trees only (hard), completed at "
        "random (random), or not projected at all (delexicalised); for grammars of tags, beside source trees (quasi), "
        "or with what is projected as known heads (partial).",
    )  # fmt: skip
    model: str | None = option(
        default=None, choices=(None, *MODELS),
        help="What is learnt of target trees: a parser with features, or a grammar of tags (a dependency model with "
        "valence). If not given, as the method needs it; hard and posterior have both.",
    )  # fmt: skip
    order: int = option(
        default=1, choices=(1, 2), needs={"method": FEATURED, "model": (None, "features")},
        help="Order of the target parser: links one by one (1), or with others (2).",
    )  # fmt: skip
    iterations: int = option(default=4, least=1, help="Passes of the target parser over its sentences.")
    rounds: int = option(
        default=1, least=1, most=10, needs={"method": ("complete", "density")},
        help="How often trees are completed and learnt, from the second time on with what was learnt before.",
    )  # fmt: skip
    sentences: int = option(
        default=10_000, least=1, needs={"method": tuple(name for name in PROJECTING if name != "hard")},
        help="Sentences to learn from at most: those whose trees are most probable.",
    )  # fmt: skip
    longest: int = option(
        default=30, least=1, most=250, needs={"method": PROJECTING},
        help="Longer sentences of the bitext are not learnt from; by grammars, none of more than 20 words.",
    )  # fmt: skip
    share: float = option(
        default=0.9, least=0, most=1, needs={"method": ("posterior",)},
        help="Projected links to keep in expectation, with method='posterior'.",
    )  # fmt: skip
    shares: str = option(
        default="one", choices=("one", "agreement"), needs={"method": ("posterior",)},
        help="With method='posterior': keep the same share of all links (one), or more of relations and directions "
        "that a parser of tags alone agrees with more often (agreement).",
    )  # fmt: skip
    draws: int = option(
        default=8, least=1, most=100,
        help="Tags that are drawn for each word from the tagger's posteriors, where text is tagged: trees are those of "
        "all draws together. 1 takes the most probable tags.",
    )  # fmt: skip
    contractions: str = option(
        default="auto",
        help="What is split into several words: a language, a file, none, or auto for the language of the text.",
    )  # fmt: skip
    seed: int = option(default=0, least=0, help="Seed of the order of sentences.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class DelexicalisedOptions(Estimator):
    """Options of `DelexicalisedParser`."""

    _title: ClassVar[str] = "DelexicalisedParser"

    iterations: int = option(default=4, least=1, help="Passes over each treebank.")
    exponent: float = option(
        default=4.0, least=0, most=100, help="How much more sources count whose tags are like the text's; 0: all alike."
    )
    directions: bool = option(
        default=True,
        help="Guess on which side of their heads words stand from the order of tags, and correct links.",
    )
    seed: int = option(default=0, least=0, help="Seed of the order of sentences.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
