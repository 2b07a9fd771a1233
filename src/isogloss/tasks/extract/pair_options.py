"""Options of extractors of relations and roles: names, defaults, limits and meanings.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from isogloss.estimator import THREADS, Estimator, option

__all__ = ["HIDDEN", "PairOptions", "RelationOptions", "RoleOptions"]

HIDDEN = ("hidden-dependency", "hidden-constituency", "joint")
"""With trees that are summed over."""
_LINKS = ("hidden-dependency", "joint")


class PairOptions(Estimator):
    """Options of all that labels pairs of words beside hidden trees."""

    at_most_one: bool = option(
        default=False, help="Allow pairs without a label, which are predicted as if there were none."
    )
    threshold: float = option(
        default=0.4, least=0, below=1, help="How probable a pair and its label have to be, as a mean of both."
    )
    iterations: int = option(default=10, least=1, help="Passes over the text; with dev, the best number up to this.")
    rate: float = option(default=0.1, above=0, help="Length of steps.")
    l2: float = option(default=5.0, least=0, help="Penalty on the squares of weights.")
    batch: int = option(default=8, least=1, help="Sentences of a step.")
    min_count: int = option(default=1, least=1, help="Features of pairs that are met less often are left out.")
    min_word: int = option(
        default=2, least=1, help="Words that occur less often are seen by their shapes and endings alone."
    )
    bits: int = option(
        default=18,
        least=4,
        most=24,
        needs={"syntax": HIDDEN},
        help="Features of hidden trees are hashed to so many bits.",
    )
    start: float = option(
        default=1.0, least=-20, most=20, needs={"syntax": HIDDEN},
        help="The weight of all connectors between pairs and trees at the beginning.",
    )  # fmt: skip
    crossing: bool = option(default=False, needs={"syntax": _LINKS}, help="Let links of hidden trees cross.")
    seed: int = option(default=0, least=0, help="Seed of the order of sentences.")
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)


class RelationOptions(PairOptions):
    """Options of `RelationExtractor`."""

    syntax: str = option(
        default="hidden-constituency", choices=("none", "given", "hidden-dependency", "hidden-constituency"),
        help="Look at no trees, at those of a parser, or at trees that are learnt with the relations, from nothing.",
    )  # fmt: skip
    features: str = option(
        default="all", choices=("all", "pairs"),
        help="See pairs by all words inside, around and between names, or by the names and their distance alone.",
    )  # fmt: skip


class RoleOptions(PairOptions):
    """Options of `RoleLabeller`."""

    syntax: str = option(
        default="hidden-dependency", choices=("none", "given", "joint", "hidden-dependency"),
        help="Look at no trees, at those that the file has, learn those and sum over trees later (joint), or learn "
        "trees with the roles, from nothing.",
    )  # fmt: skip
    features: str = option(
        default="all", choices=("all", "pairs"),
        help="See pairs by all words around and between, or by the predicate, the argument and their distance alone.",
    )  # fmt: skip
    senses: bool = option(default=True, help="Predict senses of predicates as well.")
