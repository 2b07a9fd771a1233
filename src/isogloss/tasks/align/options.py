"""Options of aligners: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

from isogloss.engine.devices import DEVICES
from isogloss.estimator import THREADS, Estimator, option

__all__ = [
    "CONSTRAINTS", "METHODS", "MOST_WORDS", "SEGMENT_STAGES", "SETS", "HMMOptions", "ItgOptions", "MatchingOptions",
    "QuadraticOptions", "SegmentedOptions", "SupervisedOptions",
]  # fmt: skip

MOST_WORDS = 32_000
"""Words that a side of a pair may have at the most: what 16 bits can number."""
CONSTRAINTS = ("none", "agreement", "bijective", "symmetric")
METHODS = (
    "intersection", "union", "grow", "grow-final", "grow-final-and", "grow-diag", "grow-diag-final",
    "grow-diag-final-and",
)  # fmt: skip
"""The names that `symmetrise` knows."""
SETS = (
    "association", "position", "shape", "frequency", "context", "lexical", "hmm", "stems", "surroundings", "trust",
    "ibm",
)  # fmt: skip
"""Sets of features that are on if nothing else is said; "blocks" and "pairs" are there too."""
AUTO = "auto"
SEGMENT_STAGES = ("source", "target", "words")
"""What a `SegmentedAligner` learns before it links morphemes; each has a checkpoint beside the usual one."""
COSTED = ("frank-wolfe", "extragradient", "mira", "subgradient", "softmax-margin")
"""Trainers of aligners that look at costs of errors."""
LOWERCASE = "Compare words without case, or keep upper and lower case apart."
MARGINS = "Find weights by the largest margin (frank-wolfe and its like), or one pair after the other."


class HMMOptions(Estimator):
    """Options of `HMMAligner`, `Model1Aligner` and `Model2Aligner`."""

    constraint: str = option(default="agreement", choices=CONSTRAINTS, help="What training asks of the two directions.")
    decode_constraint: str | None = option(
        default=None, choices=(None, *CONSTRAINTS),
        help="What decoding asks of them; the same if not given, but symmetric after agreement.",
    )  # fmt: skip
    iterations: int | None = option(
        default=None, kind=int, least=0, most=10**6,
        help="Iterations of the model, after those of Model 1; chosen by the size of the text if not given.",
    )  # fmt: skip
    threshold: float | str = option(
        default="auto", choices=("auto", "points"), kind=float, above=0, below=1,
        help="Links are the word pairs whose probability reaches it; auto and points find it without labels.",
    )  # fmt: skip
    symmetrise: str = option(
        default="posterior", choices=("posterior", *METHODS), help="How the two directions become one set of links."
    )
    decode: str = option(
        default="posterior", choices=("posterior", "viterbi"),
        help="What makes the links of each direction that symmetrise joins.",
    )  # fmt: skip
    lowercase: bool = option(default=True, help=LOWERCASE)
    spelling: float = option(
        default=3.0, least=0, most=1000, help="Pseudo-count of a pair of words that are spelt alike; 0 for none."
    )
    stems: float = option(
        default=2.0, least=0, most=1000, help="Pseudo-count of words whose stems go together; 0 for none."
    )
    smoothing: float | None = option(
        default=None, kind=float, least=1e-9, most=1000,
        help="Pseudo-count of every pair of words, met or not; by the number of different words if not given.",
    )  # fmt: skip
    null: float | str = option(
        default=0.15, choices=("length",), kind=float, least=1e-6, most=0.999,
        help="Probability that a word has no link, before any word is looked at; length takes 1 / (m + 1) where m "
        "words can be linked to.",
    )  # fmt: skip
    _lexicon: str | PathLike[str] | Iterable[tuple[Any, ...]] | None = option(
        default=None, kind=(str, PathLike, Iterable), kept=False, alias="lexicon",
        help="Word pairs known beforehand, with weights or without, in a file or as tuples; a weight is a pseudo-count,"
        " 10 if not given.",
    )  # fmt: skip
    max_length: int = option(
        default=1000, least=1, most=MOST_WORDS, help="Pairs with more words on a side are passed over."
    )
    train_length: int | None = option(
        default=None, kind=int, least=1, most=MOST_WORDS,
        help="Pairs with more words on a side are not learnt from, but have links; as long as any if not given.",
    )  # fmt: skip
    remember: bool = option(
        default=True, kept=False,
        help="Judge the text of the training by all that was learnt there, each sentence without its own evidence; or "
        "as any other text, and as a saved model does.",
    )  # fmt: skip
    seed: int = option(
        default=0, least=0, most=2**63 - 1, effect=False,
        help="Seed of the random number generator, for form's sake: nothing here is random.",
    )  # fmt: skip
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
    device: str = option(
        default="auto", choices=DEVICES, kept=False, effect=False,
        help="Where to train: on the processor, or on a GPU (needs torch); auto takes one for large texts, cuda cuts "
        "words to stems in one way unless --stem-classes says otherwise.",
    )  # fmt: skip
    model1_iterations: int | None = option(
        default=None, kind=int, least=0, most=10**6,
        help="Iterations of Model 1 before those of the model; by the size of the text if not given.",
    )  # fmt: skip
    model1_constraint: str = option(
        default="none", choices=("none", "agreement"),
        help="What the iterations of Model 1 that come first ask of the two directions, from the second on.",
    )  # fmt: skip
    final: bool = option(default=False, help="Learn how far from the end of a sentence its last link is (HMM only).")
    null_smoothing: float = option(
        default=0.01, least=1e-9, most=1000,
        help="Pseudo-count, per word type, of the null word, which is spread by frequency.",
    )  # fmt: skip
    stem_length: int = option(default=4, least=1, most=64, help="Letters of a word that make its stem.")
    stem_classes: int | None = option(
        default=None, kind=int, least=1, most=3,
        help="Ways to cut words to stems: by their beginning (1), also by a shorter one (2), also by their ending (3); "
        "by the size of the text if not given.",
    )  # fmt: skip
    leave_out: float = option(
        default=1.0, least=0, most=1, help="How much of its own evidence a sentence is judged without in training."
    )
    decode_leave_out: float = option(
        default=1.0, least=0, most=1, help="How much of its own evidence a sentence is judged without in decoding."
    )
    dual_search: str | None = option(
        default=None, choices=(None, "fixed", "adaptive"),
        help="Minimise the dual of a projection by steps of one length, or of a length that is found; adaptive where "
        "training projects, if not given.",
    )  # fmt: skip
    dual_steps: int | None = option(
        default=None, kind=int, least=0, most=10**6,
        help="Steps on the dual of a projection at the most; as the constraint needs if not given.",
    )  # fmt: skip
    dual_rate: float = option(
        default=1.0, least=1e-3, most=8, help="Length of these steps, or of the first where it is found."
    )
    dual_tolerance: float = option(default=0.01, least=0, most=1000, help="The violation at which these steps stop.")


class SegmentedOptions(HMMOptions):
    """Options of `SegmentedAligner`: its own, and those of its aligners."""

    segment: str = option(
        default="both", choices=("both", "source", "target"), help="The sides whose words are cut into morphemes."
    )
    cut_length: int = option(default=4, least=1, most=64, help="Words of fewer letters are not cut.")
    cut_count: int = option(
        default=100, least=1, help="Words that occur more often than this in the text of the training are not cut."
    )
    morpheme_weight: float = option(
        default=0.45, above=0, most=1,
        help="How much links of morphemes count beside links of words; 1 leaves links of words out.",
    )  # fmt: skip


class SupervisedOptions(Estimator):
    """Options of all aligners that learn from hand-aligned sentence pairs."""

    features: Sequence[str] = option(default=SETS, kind=(list, tuple), help="Sets of features to see word pairs by.")
    links: Sequence[str] = option(
        default=(), kind=(list, tuple), help="Names of links by other systems, which are given with each text."
    )
    _lexicon: Any = option(
        default=None, kind=(str, PathLike, Iterable), kept=False, alias="lexicon",
        help="Word pairs known beforehand, as a feature, in a file or as tuples.",
    )  # fmt: skip
    extra: Sequence[Callable[..., Any]] = option(
        default=(), kind=(list, tuple), kept=False, help="Functions that make features of your own."
    )
    trainer: str = option(default="", help="How weights are found; each class names its own ways.")
    missed: float | None = option(
        default=None, kind=float, least=0, needs={"trainer": (*COSTED, AUTO)},
        help="What a sure link that is missed costs, and more gives more links; chosen by cross-validation if not "
        "given. For trainers of margins.",
    )  # fmt: skip
    spurious: float = option(
        default=1.0, least=0, needs={"trainer": (*COSTED, AUTO)},
        help="What a wrong link costs, for trainers of margins.",
    )  # fmt: skip
    iterations: int | None = option(
        default=None, kind=int, least=1, most=10**6,
        help="The most passes over the gold; chosen by cross-validation, or by a limit of the trainer, if not given.",
    )  # fmt: skip
    regularisation: float | None = option(
        default=None, kind=float, least=0, needs={"trainer": ("likelihood", *COSTED)},
        help="What keeps weights small; chosen by cross-validation if not given.",
    )  # fmt: skip
    targets: str | None = option(
        default=None, choices=(None, "latent", "fixed", "gold"),
        help="What is learnt where gold allows several structures, or none; what suits the class if not given.",
    )  # fmt: skip
    threshold: float | str | None = option(
        default=None, choices=("auto",), kind=float, above=0, below=1,
        help="Links are those whose probability reaches it; the best set of links if not given.",
    )  # fmt: skip
    tune: bool = option(default=True, help="Choose by cross-validation what was not given, or take what is usual.")
    folds: int = option(default=5, least=2, most=10**6, help="Folds of the cross-validation within the gold.")
    empty: str = option(
        default="skip", choices=("skip", "learn"),
        help="Pass over pairs without gold links, or learn that nothing is to be linked.",
    )  # fmt: skip
    lowercase: bool = option(default=True, help=LOWERCASE)
    max_length: int = option(
        default=200, least=1, most=MOST_WORDS, help="Pairs with more words on a side are passed over."
    )
    seed: int = option(default=0, least=0, most=2**63 - 1, help="Seed of folds and of the order of pairs in training.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class MatchingOptions(SupervisedOptions):
    """Options of `MatchingAligner`."""

    trainer: str = option(
        default="frank-wolfe", choices=("frank-wolfe", "extragradient", "mira", "subgradient", "perceptron"),
        help=MARGINS,
    )  # fmt: skip


class QuadraticOptions(SupervisedOptions):
    """Options of `QuadraticAligner`."""

    trainer: str = option(
        default="frank-wolfe", choices=("frank-wolfe", "subgradient", "mira", "perceptron"), help=MARGINS
    )
    fertility: int = option(default=2, least=1, most=100, help="The most links of a word.")
    pairs: bool = option(default=True, help="Two links between neighbouring words may score together.")
    near: int | None = option(
        default=3, choices=(None,), kind=int, least=1, most=MOST_WORDS, needs={"pairs": (True,)},
        help="A link is plausible if it is among so many best of its row or column; None scores all pairs of links.",
    )  # fmt: skip
    decode: str = option(
        default="auto", choices=("auto", "milp", "lp"), needs={"pairs": (True,)},
        help="Find the best set of links with pairs exactly (milp), or by rounding a relaxation (lp).",
    )  # fmt: skip
    time_limit: float | None = option(
        default=5.0, choices=(None,), kind=float, above=0,
        help="Seconds for a sentence pair, after which the best found so far is taken.",
    )  # fmt: skip
    relaxed: bool = option(
        default=True, needs={"pairs": (True,), "trainer": ("frank-wolfe", "subgradient")},
        help="Look for rivals in the linear relaxation, as in the paper.",
    )  # fmt: skip


class ItgOptions(SupervisedOptions):
    """Options of `ItgAligner`, but for `chart_limit`, whose limit is that of its structure."""

    trainer: str = option(
        default=AUTO, choices=(AUTO, "likelihood", "mira", "softmax-margin"),
        help="Raise the probability of what is nearest to gold, with costs of errors (softmax-margin), push "
        "the best alignment below the target (mira), or take what does better in cross-validation (auto).",
    )  # fmt: skip
    blocks: int | str | None = option(
        default="auto", choices=("auto", None), kind=int, least=2, most=100,
        help="The most words in a block, as gold has them with auto; None has no blocks.",
    )  # fmt: skip
    grammar: str = option(
        default="normal", choices=("normal", "simple"), help="Build each alignment in one way, or in several."
    )
    competitive: bool = option(
        default=False, needs={"trainer": ("likelihood", AUTO)},
        help="Keep only links that stand together with the best of their row and of their column.",
    )  # fmt: skip
    prune: bool = option(default=True, help="Leave out what both directions of the HMM hold for impossible.")
    confident: float = option(
        default=0.9, least=0, most=1, help="Links with a posterior above this are broken by few cells that are kept."
    )
    cell_limit: int = option(
        default=2, least=0, most=10**6, help="How many confident links a cell of the chart may break."
    )
    negligible: float = option(
        default=1e-4, least=0, most=1, help="Links with both posteriors below this are left out."
    )
