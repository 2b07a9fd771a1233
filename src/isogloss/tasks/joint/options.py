"""Options of joint parsers and aligners: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option
from isogloss.pass_options import PassOptions

__all__ = ["COUPLINGS", "GRAINS", "LINKINGS", "BilingualOptions", "JointConstituentOptions", "JointPairOptions"]

LINKINGS = ("any", "itg")
"""What sets of links may be."""
COUPLINGS = ("all", "mono", "none")
"""Which configurations of two links of trees and their word links have weights."""
GRAINS = ("both", "coarse", "fine")


class JointPairOptions(Estimator):
    """Options of `JointParserAligner`."""

    _title: ClassVar[str] = "JointParserAligner"

    linking: str = option(
        default="any", choices=LINKINGS,
        help="What sets of links may be: any at all, or those of an inversion transduction grammar, one link a word.",
    )  # fmt: skip
    coupling: str = option(
        default="all", choices=COUPLINGS,
        help="What is coupled: links of trees whose words are linked in any configuration, in the same one alone "
        "(mono), or nothing (none), so that parsers and aligner are only weighted anew.",
    )  # fmt: skip
    grain: str = option(
        default="both", choices=GRAINS,
        help="What coupled links are seen by: their configuration and order alone (coarse), tags of their words with "
        "it (fine), or both.",
    )  # fmt: skip
    unlinked: str = option(
        default="open", choices=("open", "absent"),
        help="What it means in training that neither of two words is linked: links between them were not annotated "
        "(open), or there are none (absent).",
    )  # fmt: skip
    objective: str = option(
        default="fields", choices=("fields", "bound"),
        help="What weights raise: how probable each tree is, given what the separate models think of the rest "
        "(fields), or the bound of mean field on the probability of all together (bound).",
    )  # fmt: skip
    order: int = option(default=2, choices=(1, 2), help="Order of the parsers that are learnt on both sides.")
    tags: str = option(
        default="gold", choices=("gold", "predicted"),
        help="Whether parsers that are learnt take tags as they are given, or predict them.",
    )  # fmt: skip
    passes: int = option(default=10, least=1, most=1000, help="Passes of the parsers over their treebanks.")
    folds: int = option(
        default=5, least=2, most=100,
        help="Parts of the training text; each is parsed and aligned by models that learnt from the others.",
    )  # fmt: skip
    prune_heads: float = option(
        default=0.01, least=0, below=1, help="Heads that a parser finds less probable are not looked at."
    )
    prune_links: float = option(
        default=0.05, least=0, below=1, help="Word links that the aligner finds less probable are not looked at."
    )
    min_count: int = option(default=5, least=1, help="Features that fire less often are left out.")
    l2: float = option(default=10.0, above=0, help="Penalty on the squares of weights.")
    iterations: int = option(
        default=30, least=1, most=10_000, help="Maximum number of steps of L-BFGS for the weights."
    )
    sweeps: int = option(
        default=10, least=1, most=1000, help="Maximum number of updates of each tree and of the links of a pair."
    )
    tolerance: float = option(
        default=1e-3, least=0, below=1, help="Change of a probability below which updates of a pair end."
    )
    threshold: float = option(default=0.5, least=0, below=1, help="Links with a higher probability are written.")
    seed: int = option(default=0, least=0, help="Seed of the order of sentences in learning parsers.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class JointConstituentOptions(Estimator):
    """Options of `JointConstituentAligner`."""

    _title: ClassVar[str] = "JointConstituentAligner"

    coupling: str = option(
        default="all", choices=("all", "partial", "both", "none"),
        help="What is coupled: bispans with brackets over their source words, their target words and both (all), those "
        "over one side alone (partial), over both alone (both), or nothing (none), so that parsers and aligner are "
        "only weighted anew.",
    )  # fmt: skip
    grain: str = option(
        default="both", choices=GRAINS,
        help="What coupled parts are seen by: their kind alone (coarse), labels of brackets with it (fine), or both.",
    )  # fmt: skip
    blocks: str = option(
        default="all", choices=("all", "words", "one"),
        help="What terminals may link: one word with one (one), with up to three (words), or two words with two and "
        "three, with a gap too (all).",
    )  # fmt: skip
    nulls: str = option(
        default="low", choices=("low", "free"),
        help="Where words without a link are attached: to the link behind them (low), or to any phrase (free).",
    )  # fmt: skip
    unlinked: str = option(
        default="open", choices=("open", "absent"),
        help="What it means in training that neither of two words is linked: links between them were not annotated "
        "(open), or there are none (absent).",
    )  # fmt: skip
    objective: str = option(
        default="bound", choices=("bound", "fields"),
        help="What weights raise: the bound of mean field on the probability of all together (bound), or how probable "
        "each tree is, given what the separate models think of the rest (fields).",
    )  # fmt: skip
    order: int = option(default=2, choices=(1, 2), help="Order of the parsers that are learnt on both sides.")
    tags: str = option(
        default="gold", choices=("gold", "predicted"),
        help="Whether parsers that are learnt take tags as they are given, or predict them.",
    )  # fmt: skip
    passes: int = option(default=5, least=1, most=1000, help="Passes of the parsers over their trees.")
    folds: int = option(
        default=5, least=2, most=100,
        help="Parts of the training text; each is parsed and aligned by models that learnt from the others.",
    )  # fmt: skip
    prune_brackets: float = option(
        default=0.01, least=0, below=1, help="Brackets that a parser finds less probable are not looked at."
    )
    prune_links: float = option(
        default=0.02, least=0, below=1, help="Word links that the aligner finds less probable are not looked at."
    )
    prune_bispans: float = option(
        default=1e-4, least=0, below=1,
        help="Bispans that are less probable by the aligner's links alone are not looked at.",
    )  # fmt: skip
    min_count: int = option(default=5, least=1, help="Features that fire less often are left out.")
    l2: float = option(default=10.0, above=0, help="Penalty on the squares of weights.")
    iterations: int = option(
        default=15, least=1, most=10_000, help="Maximum number of steps of L-BFGS for the weights."
    )
    sweeps: int = option(
        default=5, least=1, most=1000, help="Maximum number of updates of each tree and of the derivation of a pair."
    )
    tolerance: float = option(
        default=1e-3, least=0, below=1, help="Change of a probability below which updates of a pair end."
    )
    threshold: float = option(default=0.5, least=0, below=1, help="Links with a higher probability are written.")
    seed: int = option(default=0, least=0, help="Seed of the order of sentences in learning parsers.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class BilingualOptions(PassOptions):
    """Options of `BilingualParser`."""

    _title: ClassVar[str] = "BilingualParser"

    coupling: str = option(
        default="all", choices=("all", "mono", "synch", "none"),
        help="Which configurations of links of both trees have scores: all, those in the same direction alone (mono), "
        "none of them but a hard constraint that linked words have linked heads (synch), or nothing at all (none).",
    )  # fmt: skip
    source_trees: str = option(
        default="joint", choices=("joint", "best", "given"),
        help="Source trees: summed over, found together with those of the target (joint); the best one of the source "
        "parser (best); or those of the treebank (given).",
    )  # fmt: skip
    weights: str = option(
        default="learnt", choices=("learnt", "fixed"), needs={"coupling": ("mono", "synch", "none")},
        help="Learn how much configurations count together with the target parser, or take a parser that was learnt "
        "alone, and 1 for mono (fixed).",
    )  # fmt: skip
    grain: str = option(
        default="both", choices=GRAINS, needs={"coupling": ("all", "mono"), "weights": ("learnt",)},
        help="What configurations are seen by: their order alone (coarse), tags of the words with it (fine), or both.",
    )  # fmt: skip
    heads: int = option(
        default=10, least=1, most=1000, needs={"source_trees": ("joint",)},
        help="The most probable heads of each source word that are looked at.",
    )  # fmt: skip
    prune_links: float = option(
        default=0.05, least=0, below=1, help="Word links that the aligner finds less probable are not looked at."
    )
    rounds: int = option(default=10, least=1, most=1000, help="Maximum number of rounds of belief propagation.")
    order: int = option(
        default=2, choices=(1, 2), help="Order of the source parser, if one is learnt: links alone (1), or more (2)."
    )
    tags: str = option(
        default="gold", choices=("gold", "predicted"),
        help="Whether parsers take tags as they are given, or predict them.",
    )  # fmt: skip
    folds: int = option(
        default=5, least=2, most=100, needs={"source_trees": ("joint", "best")},
        help="Parts of the training text, if a source parser is learnt from it; each is parsed by one that learnt from "
        "the others.",
    )  # fmt: skip
    passes: int = option(default=6, least=1, most=1000, help="Passes of the separate parsers over their treebanks.")
    iterations: int = option(
        default=10, least=1, needs={"weights": ("learnt",)},
        help="Passes over the pairs; with dev, the best number up to this.",
    )  # fmt: skip
    rate: float = option(default=0.05, above=0, needs={"weights": ("learnt",)}, help="Length of steps.")
    l2: float = option(default=0.1, least=0, needs={"weights": ("learnt",)}, help="Penalty on the squares of weights.")
    batch: int = option(default=8, least=1, needs={"weights": ("learnt",)}, help="Pairs of a step.")
    min_count: int = option(
        default=3, least=1, needs={"weights": ("learnt",)},
        help="Features of configurations and word links that fire less often are left out.",
    )  # fmt: skip
    threshold: float = option(default=0.5, least=0, below=1, help="Links with a higher probability are written.")
