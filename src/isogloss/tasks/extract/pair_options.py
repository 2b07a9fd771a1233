"""Options of extractors of relations and roles: names, defaults, limits and meanings.

Help is made of them, so this module imports nothing that is heavy.
"""

from __future__ import annotations

from isogloss.estimator import option
from isogloss.pass_options import PassOptions, PassSettings

__all__ = ["HIDDEN", "PairOptions", "RelationOptions", "RoleOptions"]

HIDDEN = ("hidden-dependency", "hidden-constituency", "joint")
"""With trees that are summed over."""
_LINKS = ("hidden-dependency", "joint")


class PairOptions(PassOptions):
    """Options of all that labels pairs of words beside hidden trees."""

    syntax: str = option(
        default="hidden-dependency",
        choices=("none", "given", *HIDDEN),
        help="What is known of trees, or learnt of them.",
    )
    at_most_one: bool = option(
        default=False, help="Allow pairs without a label, which are predicted as if there were none."
    )
    threshold: float = option(
        default=0.4, least=0, below=1, help="How probable a pair and its label have to be, as a mean of both."
    )
    rate: float = option(default=0.1, above=0, help="Length of steps.")
    l2: float = option(default=5.0, least=0, help="Penalty on the squares of weights.")
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

    @property
    def pass_settings(self) -> PassSettings:
        """How passes are made: by likelihood."""
        return PassSettings(
            "likelihood", self.iterations, float(self.rate), float(self.l2), self.batch, self.seed
        )  # fmt: skip


class RelationOptions(PairOptions):
    """Options of `RelationExtractor`."""

    syntax: str = option(
        default="hidden-dependency", choices=("none", "given", "hidden-dependency", "hidden-constituency"),
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
