"""Options of taggers: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.estimator import THREADS, Estimator, option

__all__ = [
    "COLUMNS", "ColumnOptions", "CrfOptions", "DictionaryOptions", "FieldOptions", "GraphOptions", "ProjectedOptions",
    "TaggerOptions",
]  # fmt: skip

COLUMNS = ("upos", "xpos", "feats")
DECODERS = ("marginal", "viterbi")
COLUMN = "The column whose tags are predicted."
ORDER = "Tags before a word's own that its score looks at."
DECODER = "Take the most probable tag of each word, or the most probable sequence."
MIN_COUNT = "Attributes that are met less often are left out."
L2 = "Penalty on the squares of weights; more makes them smaller."


class ColumnOptions(Estimator):
    """Options of all taggers of one column."""

    column: str = option(default="upos", choices=COLUMNS, help=COLUMN)
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class FieldOptions(Estimator):
    """Options of conditional random fields over tags, whatever columns they predict."""

    order: int = option(default=2, choices=(1, 2), help=ORDER)
    decoder: str = option(default="marginal", choices=DECODERS, help=DECODER)
    iterations: int = option(default=8, least=1, help="Passes over the text; with dev, the best number up to this.")
    rate: float = option(default=0.3, above=0, help="Length of steps.")
    l1: float = option(default=0.1, least=0, help="Penalty on the size of weights; more leaves fewer that are not 0.")
    l2: float = option(default=0.0, least=0, help=L2)
    min_count: int = option(default=1, least=1, help=MIN_COUNT)
    templates: Sequence[str | Sequence[str]] | None = option(
        default=None, kind=(list, tuple), help="What words are seen by; see isogloss.features."
    )
    margin: float = option(
        default=5.0, above=0,
        help="Labels of a word whose score by itself is lower than the best by more are left out.",
    )  # fmt: skip
    most: int = option(default=12, least=2, help="The most labels of a word that are looked at.")
    seed: int = option(default=0, least=0, help="Seed of the order of sentences.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class CrfOptions(FieldOptions, ColumnOptions):
    """Options of `CrfTagger`."""

    column: str = option(default="upos", choices=COLUMNS, kw_only=False, help=COLUMN)


class TaggerOptions(FieldOptions):
    """Options of `Tagger`: those of `CrfTagger`, the same for all its columns."""

    columns: Sequence[str] = option(
        default=("upos", "feats"), kind=(list, tuple), kw_only=False, help="The columns whose tags are predicted."
    )


class DictionaryOptions(ColumnOptions):
    """Options of `DictionaryTagger`, but for its dictionary."""

    order: int = option(default=2, choices=(1, 2), help=ORDER)
    emissions: str = option(
        default="features", choices=("features", "table"),
        help="See words by their endings and looks (features), or each by itself (table).",
    )  # fmt: skip
    features: str | Sequence[str] = option(
        default="rich", kind=(str, list, tuple), needs={"emissions": ("features",)},
        help="'paper', 'rich', or templates of WordFeatures.",
    )  # fmt: skip
    iterations: int = option(default=7, least=1, help="Iterations of EM, or of L-BFGS.")
    first_order: int = option(
        default=5, least=0, help="How many of these, at order 2, are those of a model of order 1, as which it begins."
    )
    variance: float = option(
        default=10.0, above=0, needs={"emissions": ("features",)},
        help="Variance of the Gaussian prior on the weights of features.",
    )  # fmt: skip
    restrict_support: bool = option(
        default=False, needs={"emissions": ("features",)},
        help="Normalise p(x|y) over the words that may have tag y; for features.",
    )  # fmt: skip
    smoothing: float = option(default=1e-4, above=0, help="Pseudo-count of every transition.")
    decoder: str = option(default="marginal", choices=DECODERS, help=DECODER)
    rules: bool = option(default=True, help="Punctuation marks and numerals that have no entry may only be that.")
    start: str = option(default="dictionary", choices=("dictionary", "random"), help="Where learning begins.")
    method: str = option(
        default="em", choices=("em", "gradient"), help="EM, or L-BFGS on the likelihood of the text itself."
    )
    seed: int = option(default=0, least=0, help="Seed of the random emissions to begin with.")


class GraphOptions(ColumnOptions):
    """Options of `GraphTagger`."""

    column: str = option(default="upos", choices=COLUMNS, kw_only=False, help=COLUMN)
    order: int = option(default=2, choices=(1, 2), help=ORDER)
    neighbours: int = option(default=10, least=1, help="Nearest neighbours of each trigram.")
    strength: float = option(default=2.0, least=0, help="What unlike tags of neighbours cost, beside the model.")
    sigma: float = option(default=100.0, above=0, help="Standard deviation of the Gaussian prior on weights.")
    iterations: int = option(
        default=4, least=0, help="Rounds of posteriors and weights; 0 learns from the labelled sentences alone."
    )
    tolerance: float = option(default=1e-4, least=0, help="Stop when a round gains less than this share.")
    share: float = option(default=1.0, above=0, help="What an unlabelled sentence counts beside a labelled one.")
    suffixes: Sequence[str] | None = option(
        default=None, kind=(list, tuple), help="Endings worth looking at; found in the text if not given."
    )
    shared: bool = option(default=False, help="See isogloss.tasks.tag.similarity.similarity.")
    min_count: int = option(default=1, least=1, help=MIN_COUNT)
    templates: Sequence[str | Sequence[str]] | None = option(
        default=None, kind=(list, tuple), help="What words are seen by; those of the paper if not given."
    )
    inner: int = option(default=15, least=1, help="The most steps for posteriors in each round.")
    climbs: int = option(default=12, least=1, help="The most steps for weights in each round.")
    seed: int = option(default=0, least=0, help="Seed of the approximate search for neighbours in very large texts.")


class ProjectedOptions(ColumnOptions):
    """Options of `ProjectedTagger`, but for its dictionary."""

    learner: str = option(
        default="crf", choices=("crf", "hmm"), help="Learn a conditional random field, or a hidden Markov model."
    )
    order: int = option(default=1, choices=(1, 2), help=ORDER)
    threshold: float = option(
        default=0.9, least=0, most=1, needs={"soft": (False,)},
        help="Least probability of a link that decides on the tag of a word.",
    )  # fmt: skip
    type_share: float = option(
        default=0.3, least=0, most=1, help="Tags that reach a form less often than this are left out."
    )
    doubt: float = option(
        default=0.1, least=0, most=1,
        help="Dictionary entries to which links carry less than this of their tags gain those that do reach them.",
    )  # fmt: skip
    soft: bool = option(
        default=False, help="Links say how probable a tag should be at least, instead of deciding on it."
    )
    strength: float = option(
        default=10.0, above=0, needs={"soft": (True,)},
        help="What posteriors pay where they do not meet expectations of soft links.",
    )  # fmt: skip
    l2: float = option(default=1.0, above=0, help=L2)
    iterations: int = option(default=50, least=1, help="Steps of L-BFGS, or of EM.")
    min_count: int = option(default=3, least=1, needs={"learner": ("crf",)}, help=MIN_COUNT)
    seed: int = option(
        default=0, least=0, effect=False,
        help="Seed of the random number generator, for form's sake: nothing here is random.",
    )  # fmt: skip
