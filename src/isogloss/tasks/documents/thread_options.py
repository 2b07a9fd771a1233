"""Options of threads: names, defaults, limits and meanings, for Python and for the command line.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["FEATURES", "LINKS", "ThreadOptions"]

LINKS = ("auto", "given", "similar")
FEATURES = ("neighbours", "words")


class ThreadOptions(Estimator):
    """Options of `Threads`."""

    k: int = option(default=5, least=1, kw_only=False, help="Number of threads.")
    length: int = option(default=8, least=1, most=10_000, kw_only=False, help="Documents of each thread.")
    shorter: bool = option(default=False, help="Whether threads may have fewer documents than length.")
    links: str = option(
        default="auto", choices=LINKS,
        help="What leads from document to document: given links, from what is linked to what links to it; or to later "
        "documents that are similar. auto: links, if there are any.",
    )  # fmt: skip
    least_similarity: float = option(
        default=0.1, least=0, below=1,
        help="Documents less similar than this (cosine of tf-idf) do not count as similar.",
    )  # fmt: skip
    successors: int = option(
        default=30, least=1, needs={"links": ("auto", "similar")},
        help="Where similar documents are followed: how many, the most similar, each may lead to.",
    )  # fmt: skip
    beta: float = option(default=4.0, least=0, most=10_000, help="Weight of quality against diversity.")
    node_weight: float = option(
        default=0.05, least=0, most=100, help="Weight of how central documents are (LexRank, the largest is 1)."
    )
    edge_weight: float = option(
        default=1.0, least=0, most=100, help="Weight of how similar neighbours in a thread are."
    )
    features: str = option(
        default="neighbours", choices=FEATURES,
        help="What tells threads apart: which documents are most similar to theirs, or their words (tf-idf).",
    )  # fmt: skip
    neighbours: int | None = option(
        default=None, kind=int, least=1,
        help="How many most similar documents are looked at; a fiftieth of all, 10 to 1000, if not given.",
    )  # fmt: skip
    dimensions: int = option(default=50, least=1, most=5000, help="Dimensions that features are projected to.")
    constant: float = option(
        default=1.0, least=0, most=10_000,
        help="A feature that all documents share, of this size: the larger it is, the more threads avoid each other.",
    )  # fmt: skip
    min_documents: int = option(default=3, least=1, help="Words that fewer documents have are left out.")
    max_share: float = option(
        default=0.25, above=0, most=1, help="Words that a larger share of the documents have are left out."
    )
    samples: int = option(
        default=20,
        least=1,
        most=1000,
        help="How often a set of threads is drawn; the one with the largest determinant is taken.",
    )
    disjoint: bool = option(default=False, help="Whether no document may be in two threads.")
    revisit: bool = option(
        default=False,
        needs={"links": ("auto", "given")},
        help="Whether a thread may come back to a document, where links go in circles; otherwise such links are left "
        "out if they are against the order of the documents.",
    )
    seed: int = option(default=0, least=0, help="Seed of the projection; of a command, of the draws too.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)
