"""Options of translators: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import Any, ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["FEATURES", "REORDERING", "STAGES", "TAGGED", "TRAINERS", "UPDATES", "TranslatorOptions"]

REORDERING = ("distance", "swap", "monotone")
"""How phrases may change places."""
FEATURES = ("dense", "phrases", "pos", "all")
"""What translations are scored by, each with all before it."""
SPARSE, TAGGED = FEATURES[1:], FEATURES[2:]
"""Those that are learnt from training sentences; those that look at tags."""
TRAINERS = ("risk", "perceptron", "mira")
"""How sparse weights are learnt."""
RATES = {"risk": 0.03, "perceptron": 0.005, "mira": 0.003}
"""Lengths of steps."""
UPDATES = ("local", "hybrid", "bold")
"""What steps of sparse weights are drawn to; as `isogloss.learners.searched` has them, which takes long to import."""

MOST_HYPOTHESES = 100_000
"""What a search may be asked for: a sentence of many words takes so many for each of them."""

STAGES = ("dense", "sparse", "scale")
"""Stages of learning with sparse features: dense weights, sparse ones, and the weight of these beside the others."""


class TranslatorOptions(Estimator):
    """Options of `Translator`."""

    _title: ClassVar[str] = "Translator"

    order: int = option(default=4, least=1, most=16, help="Words of the longest n-grams of the language model.")
    max_length: int = option(default=5, least=1, most=7, help="The most words of a phrase, on either side.")
    least_count: int = option(default=1, least=1, help="Leave out phrase pairs that occur less often than this.")
    candidates: int = option(
        default=100, least=1, help="Number of translations of a source phrase that are kept, the most frequent ones."
    )
    reordering: str = option(
        default="distance", choices=REORDERING,
        help="How phrases may change places: within a limit (distance), only two that are neighbours (swap), or not "
        "at all (monotone).",
    )  # fmt: skip
    distortion_limit: int = option(
        default=6, least=1, most=50, needs={"reordering": ("distance",)},
        help="How far from the first word that is not translated yet a phrase may end.",
    )  # fmt: skip
    orientation: bool = option(
        default=True, help="Learn for each phrase pair how it likes to be placed beside its neighbours (lexicalised "
        "reordering)."
    )  # fmt: skip
    beam: int = option(
        default=100, least=1, most=MOST_HYPOTHESES,
        help="Number of partial translations that are kept for each number of words translated.",
    )  # fmt: skip
    pops: int = option(
        default=200, least=1, most=MOST_HYPOTHESES,
        help="Number of partial translations that are made for each number of words translated; the best are kept.",
    )  # fmt: skip
    table_limit: int = option(
        default=20, least=1, help="Number of translations of a source phrase that are considered, the best ones."
    )
    iterations: int = option(default=10, least=0, most=1000, help="Rounds of tuning on dev; 0 keeps the first weights.")
    nbest: int = option(default=100, least=2, most=10_000, help="Length of the n-best lists that tuning learns from.")
    cap: float = option(default=0.003, above=0, help="The most that one sentence may change the weights by.")
    passes: int = option(default=20, least=1, most=1000, help="Passes over all n-best lists so far in a round.")
    seed: int = option(default=0, least=0, help="Seed of the order in which sentences are learnt from.")
    features: str = option(
        default="dense", choices=FEATURES,
        help="What translations are scored by: a few real-valued features alone (dense), with weights of phrases "
        "(phrases), of patterns of tags as well (pos), or of patterns of links too (all), learnt from training "
        "sentences.",
    )  # fmt: skip
    trainer: str = option(
        default="risk", choices=TRAINERS, needs={"features": SPARSE},
        help="How sparse weights are learnt: by raising the expected quality of the n-best lists (risk), or by steps "
        "towards one translation, of fixed length (perceptron) or as long as is needed (mira).",
    )  # fmt: skip
    update: str = option(
        default="local", choices=UPDATES, needs={"features": SPARSE, "trainer": TRAINERS[1:]},
        help="Which translation the steps of perceptron and mira go towards: the best of those that were found "
        "(local), the reference (bold; no step where it cannot be reached), or the reference where it can be reached "
        "and otherwise the best that was found (hybrid).",
    )  # fmt: skip
    proposals: int = option(
        default=30, least=2, most=10_000, needs={"features": SPARSE},
        help="Length of the n-best lists that sparse weights are learnt from.",
    )  # fmt: skip
    rate: float | None = option(
        default=None, kind=float, above=0, needs={"features": SPARSE},
        help="Length of steps of sparse weights; with trainer mira, the greatest length. If not given, what suits the "
        "trainer.",
    )  # fmt: skip
    dense_rate: float = option(
        default=0.0, least=0, needs={"features": SPARSE},
        help="Length of steps of dense weights while sparse ones are learnt, as a multiple of theirs; 0 leaves dense "
        "weights as they were tuned.",
    )  # fmt: skip
    epochs: int = option(
        default=5, least=1, most=1000, needs={"features": SPARSE},
        help="Number of passes over training sentences; the weights of the best pass on dev are kept.",
    )  # fmt: skip
    learn_on: int = option(
        default=10_000, least=1, needs={"features": SPARSE},
        help="Number of training sentences that sparse weights are learnt from, at most.",
    )  # fmt: skip
    feature_count: int = option(
        default=10, least=1, needs={"features": SPARSE},
        help="Leave out sparse features that fewer phrases and moves of these sentences have.",
    )  # fmt: skip
    folds: int = option(
        default=5, least=2, most=100, needs={"features": SPARSE},
        help="Number of parts that these sentences are cut into; each is translated by what the rest of the text "
        "teaches.",
    )  # fmt: skip
    batch: int = option(
        default=16, least=1, needs={"features": SPARSE},
        help="Number of sentences that are translated with the same weights.",
    )  # fmt: skip
    classes: int = option(
        default=50, least=1, most=499, needs={"features": TAGGED},
        help="Number of classes of words on each side, which take the place of tags where none are given.",
    )  # fmt: skip
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)

    @property
    def step_length(self) -> float:
        """Length of steps of sparse weights: `rate` or, if that is not given, what suits the trainer."""
        return RATES[self.trainer] if self.rate is None else float(self.rate)

    @property
    def options_(self) -> dict[str, Any]:
        """Every option as it was used; what is kept with a model."""
        return super().options_ | ({} if self.features == "dense" else {"rate": self.step_length})
