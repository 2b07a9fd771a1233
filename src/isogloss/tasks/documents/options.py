"""Options of models of documents: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from typing import ClassVar

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["MOST_TOPICS", "PRIORS", "TopicOptions"]

PRIORS = ("tuples", "documents")
MOST_TOPICS = 10_000


class TopicOptions(Estimator):
    """Options of `PolylingualTopics`."""

    _title: ClassVar[str] = "PolylingualTopics"

    topics: int = option(default=50, least=1, most=MOST_TOPICS, kw_only=False, help="Number of topics.")
    iterations: int = option(default=1000, least=0, help="Number of sweeps over all words.")
    concentration: float | None = option(
        default=None, kind=float, least=1e-6, most=1e6,
        help="Sum of the prior of a document's topics, at first the same for each; 0.01 for each topic if not given.",
    )  # fmt: skip
    beta: float = option(default=0.01, least=1e-6, most=1e3, help="Prior of each word in each topic.")
    optimise: int = option(
        default=10, least=0,
        help="Number of sweeps after which the prior of topics is made more likely, again and again; 0 for never.",
    )  # fmt: skip
    burn_in: int = option(default=50, least=0, help="Number of sweeps before that begins.")
    blocks: int | None = option(
        default=None, kind=int, least=1, most=1024,
        help="Blocks of documents that do not wait for each other within a sweep: 1 is the exact sampler, more can "
        "use more threads. One for every two million words if not given.",
    )  # fmt: skip
    min_documents: int = option(default=2, least=1, help="Leave out words that are in fewer documents.")
    max_share: float = option(
        default=0.5, above=0, most=1, help="Leave out words that are in more than this share of documents."
    )
    drop_frequent: int = option(default=0, least=0, help="Leave out so many of the most frequent words of a language.")
    lowercase: bool = option(default=True, help="Write all words small.")
    letters: bool = option(default=True, help="Leave out what has no letter, such as numbers and punctuation.")
    prior: str = option(
        default="tuples", choices=PRIORS,
        help="The prior of new documents in a single language: as learnt (tuples), or learnt again from single "
        "documents.",
    )  # fmt: skip
    samples: int = option(
        default=50, least=1, most=10**6,
        help="Number of samples that the topics of a new document are the mean of, after as many that are not used.",
    )  # fmt: skip
    neighbours: int = option(
        default=10, least=1, most=10**6,
        help="With lexicons: on how many documents of another language each document leans.",
    )  # fmt: skip
    lean: float = option(
        default=1.0, least=0, most=1e6,
        help="With lexicons: how much documents lean on those of another language; 0 for not at all.",
    )  # fmt: skip
    seed: int = option(default=0, least=0, help="Seed of the random number generator.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
