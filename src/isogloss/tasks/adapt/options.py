"""Options of document classifiers: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from isogloss.errors import ParameterError
from isogloss.estimator import THREADS, Estimator, option

__all__ = ["METHODS", "DocumentOptions", "shares_of"]

METHODS = ("self-training", "scl", "scl-mi", "none")
"""Ways to adapt to a new domain."""
_SELF = {"method": ("self-training",)}
_SCL = {"method": ("scl", "scl-mi")}


class DocumentOptions(Estimator):
    """Options of `DocumentClassifier`."""

    _title: ClassVar[str] = "DocumentClassifier"

    method: str = option(
        default="self-training", choices=METHODS, kw_only=False,
        help="How to adapt to unlabelled documents: label them with the proportions of labels that were found among "
        "them, and learn from that (self-training); put words side by side that predict the same frequent words (scl), "
        "or the same words that tell labels apart (scl-mi); or not at all (none).",
    )  # fmt: skip
    ngrams: int = option(default=3, least=1, most=5, help="Maximum length of the sequences of words that are features.")
    values: str = option(
        default="presence", choices=("presence", "counts"),
        help="What counts of a sequence of words: that it is there (presence), or how often (counts).",
    )  # fmt: skip
    min_count: int = option(default=4, least=1, help="Sequences of words in fewer documents are left out.")
    own_columns: bool = option(
        default=True,
        help="Where the text has several columns, words of all but the longest, such as a title, count by themselves "
        "as well.",
    )  # fmt: skip
    weighting: str = option(
        default="naive-bayes", choices=("naive-bayes", "none"),
        help="Whether sequences of words count by how well they tell labels apart, as in naive Bayes.",
    )  # fmt: skip
    loss: str = option(
        default="huber", choices=("huber", "logistic"), help="Loss that is minimised: modified Huber or logistic."
    )
    l2: float = option(default=3e-4, above=0, help="Penalty on the squares of weights, beside the mean loss.")
    prior: Any = option(
        default="estimated", choices=("estimated", "source"), kind=(dict, list, tuple), needs=_SELF,
        help="How frequent labels are among the unlabelled documents: estimated, as in the source, or shares such as "
        "neg=0.3,pos=0.7.",
    )  # fmt: skip
    rounds: int = option(default=6, least=1, needs=_SELF, help="Rounds of self-training.")
    folds: int = option(
        default=5, least=2, most=100,
        help="Number of parts of the documents. Each part is labelled by a classifier that learnt from the others, "
        "which also shows how sure its scores are.",
    )  # fmt: skip
    sharpness: float = option(
        default=4.0, above=0, needs=_SELF,
        help="How sure labels of self-training are: 1 keeps posteriors, more comes near to the best label alone.",
    )  # fmt: skip
    stable: float = option(
        default=1.0, above=0, needs={"method": ("self-training",), "prior": ("estimated",)},
        help="Proportions are estimated from words whose log frequency differs by at most this between the domains.",
    )  # fmt: skip
    pivots: int | None = option(
        default=None, kind=int, least=1, needs=_SCL,
        help="Maximum number of pivots, the words that are predicted. If not given, 1000 with scl and 100 with scl-mi: "
        "further down the list, words say little about labels.",
    )  # fmt: skip
    pivot_count: int = option(
        default=5, least=0, needs=_SCL, help="Pivots are in more than so many documents of both domains."
    )
    dimensions: int = option(
        default=50, least=1, most=10000, needs=_SCL, help="Number of new features that are made of the predictors."
    )
    masking: str = option(
        default="words", choices=("own", "words", "pivots"), needs=_SCL,
        help="What the predictor of a pivot does not see: the pivot (own), all that shares a word with it (words), or "
        "all pivots (pivots).",
    )  # fmt: skip
    rescale: str = option(
        default="length", choices=("length", "standard", "norm", "none"), needs=_SCL,
        help="Size of the new features: mean 0 and together as long as the words of a document (length), mean 0 and "
        "variance 1 each (standard), five times the sum of the words (norm), or unchanged (none).",
    )  # fmt: skip
    own_centre: bool = option(
        default=True, needs={"method": ("scl", "scl-mi"), "rescale": ("length", "standard")},
        help="Whether the new features have mean 0 in each domain by itself, and not only in the source.",
    )  # fmt: skip
    positive: bool = option(default=True, needs=_SCL, help="Decompose only the positive weights of the predictors.")
    blocks: bool = option(default=False, needs=_SCL, help="Decompose words, pairs of words and so on separately.")
    pivot_l2: float = option(
        default=1e-3, above=0, needs=_SCL, help="Penalty on the squares of the weights of predictors."
    )
    places_l2: float = option(
        default=1e-4, least=0, needs=_SCL, help="Penalty on the squares of the weights of new features."
    )
    correction: float = option(
        default=0.3, above=0, needs={"method": ("scl", "scl-mi", "none")},
        help="Penalty on what labels of the target change in the classifier of the source, where there are some.",
    )  # fmt: skip
    correction_by: str = option(
        default="score", choices=("score", "label"), needs={"method": ("scl", "scl-mi", "none")},
        help="What the correction knows of the classifier of the source: the score that it gives to the words of a "
        "document (score), or only its label (label).",
    )  # fmt: skip
    target_weight: float = option(
        default=5.0, above=0, needs=_SELF,
        help="Number of documents of the source that a labelled one of the target counts for, where there are some.",
    )  # fmt: skip
    seed: int = option(default=0, least=0, help="Seed of the random number generator that puts documents into folds.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        shares_of(self.prior)


def shares_of(prior: str | Mapping[str, float] | Sequence[str]) -> dict[str, float] | None:
    """Shares of labels, as they are given: a mapping, or strings such as ``pos=0.7``; None for a word.

    Examples
    --------
    >>> shares_of({"pos": 0.7, "neg": 0.3}), shares_of(["neg=1", "pos=3"]), shares_of("estimated")
    ({'pos': 0.7, 'neg': 0.3}, {'neg': 0.25, 'pos': 0.75}, None)
    """
    if isinstance(prior, str):
        return None
    found: dict[str, float] = {}
    pairs = prior.items() if isinstance(prior, Mapping) else (str(entry).rpartition("=")[::2] for entry in prior)
    for label, share in pairs:
        try:
            value = float(share)
        except (TypeError, ValueError):
            value = -1.0
        if not label or label in found or not 0 <= value < float("inf"):
            raise ParameterError(
                f"DocumentClassifier: prior should be shares of labels, such as neg=0.3,pos=0.7, not {prior!r}"
            )
        found[str(label)] = value
    if not sum(found.values()) > 0:
        raise ParameterError(f"DocumentClassifier: prior has no share above 0: {prior!r}")
    total = sum(found.values())
    return {label: share / total for label, share in found.items()}
