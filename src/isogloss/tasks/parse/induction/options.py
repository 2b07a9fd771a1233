"""Options of `GrammarInducer`: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["ALPHAS", "LEARNERS", "MOST_VALENCES", "RULES", "STARTS", "VALENCES", "InductionOptions"]

VALENCES = {"dmv": (2, 1), "extended": (3, 3)}
"""Models, and their classes of valence: of decisions to stop, and of children."""
ALPHAS = {"dmv": 0.25, "extended": 0.1}
LEARNERS = ("sparse", "em", "dirichlet")
STARTS = ("harmonic", "distance", "uniform")
RULES = ("ud", "function-heads")
MOST_VALENCES = 10
SPARSE = {"learner": ("sparse",), "rules": (None,)}
"""What options of the sparsity penalty need."""
"""No more classes of valence may be asked for."""


class InductionOptions(Estimator):
    """Options of `GrammarInducer`."""

    model: str = option(
        default="dmv", choices=tuple(VALENCES),
        help="The dependency model with valence, or extended: children depend on valence, too, and heads share what "
        "they know.",
    )  # fmt: skip
    learner: str = option(
        default="sparse", choices=LEARNERS,
        help="Learn a grammar that needs few pairs of tags (sparse), the likeliest one (em), or one under a prior that "
        "likes few outcomes (dirichlet).",
    )  # fmt: skip
    sigma: float = option(
        default=3.0, least=0, needs=SPARSE,
        help="Strength of the sparsity penalty: for 1,000 words of training, or as it is (--no-scaled). 0 is em.",
    )  # fmt: skip
    scaled: bool = option(
        default=True, needs=SPARSE, help="Whether sigma is meant for 1,000 words, and grows with the text."
    )
    root_sigma: float = option(
        default=1.0, least=0, needs=SPARSE,
        help="Strength of the penalty for tags of the root, as a multiple of sigma.",
    )  # fmt: skip
    symmetric: bool = option(
        default=True, needs=SPARSE,
        help="Whether each link is a use of its pair of tags (PR-S), or each word with all heads of one tag (PR-AS).",
    )  # fmt: skip
    alpha: float | None = option(
        default=None, kind=float, above=0, needs={"learner": ("dirichlet",)},
        help="Parameter of the Dirichlet prior; 0.25 for dmv and 0.1 for extended if not given.",
    )  # fmt: skip
    rules: str | None = option(
        default=None, choices=(None, *RULES),
        help="Demand that most links are among a short list of pairs of universal tags, with content words (ud) or "
        "function words as heads; in place of the sparsity penalty.",
    )  # fmt: skip
    share: float = option(
        default=0.8, above=0, below=1, needs={"rules": RULES}, help="The share of links that rules demand."
    )
    stop_valences: int | None = option(
        default=None, kind=int, least=1, most=MOST_VALENCES,
        help="Classes of the number of children, for decisions to stop; 2 for dmv, 3 for extended if not given.",
    )  # fmt: skip
    child_valences: int | None = option(
        default=None, kind=int, least=1, most=MOST_VALENCES,
        help="Classes of the number of children, for the next child; 1 for dmv, 3 for extended if not given.",
    )  # fmt: skip
    back_off: float = option(
        default=1 / 3, above=0, most=1, needs={"model": ("extended",)},
        help="How much the children of a tag are its own, and not those of all tags; for extended models.",
    )  # fmt: skip
    nearest_first: bool = option(
        default=True, help="Whether children are counted from the head outwards, or from the farthest inwards."
    )
    start: str = option(
        default="harmonic", choices=STARTS,
        help="Begin with heads that are near (harmonic), with trees of short links (distance), or with all alike.",
    )  # fmt: skip
    iterations: int = option(default=100, least=1, most=10**6, help="Steps of EM, at most.")
    viterbi: int = option(
        default=0, least=0, most=10**6, help="Further steps of EM that count the best tree of each sentence alone."
    )
    tolerance: float = option(
        default=1e-5, least=0, help="Stop when the objective changes by less than this part of itself."
    )
    dual_steps: int = option(
        default=10, least=1, most=10**6, needs=({"learner": ("sparse",)}, {"rules": RULES}),
        help="Passes over the text that the penalty or rules may cost in each step.",
    )  # fmt: skip
    gap: float = option(
        default=1e-2, least=0, needs=({"learner": ("sparse",)}, {"rules": RULES}),
        help="How exactly each step solves for the penalty or rules: the duality gap, relative.",
    )  # fmt: skip
    column: str = option(default="upos", choices=("upos", "xpos"), help="Which tags the grammar is made of.")
    longest: int = option(default=10, least=1, help="Sentences of more words are not learnt from.")
    punctuation: bool = option(default=False, help="Whether punctuation marks are words of the grammar.")
    smoothing: float = option(
        default=4.5399929762484854e-05, above=0, most=1, help="Added to all probabilities before parsing; exp(-10)."
    )
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
