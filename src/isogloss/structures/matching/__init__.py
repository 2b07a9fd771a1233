"""Sets of links in which words have few: the best by assignment, flow or integer programs; sums exact or by beliefs."""

from __future__ import annotations

from isogloss.structures.matching.batch import Matchings
from isogloss.structures.matching.distribution import Matching
from isogloss.structures.matching.parts import Fertility, Pairs, neighbour_pairs
from isogloss.structures.matching.search import Links, Relaxation, Solution
from isogloss.structures.matching.sums import Convergence

__all__ = [
    "Convergence", "Fertility", "Links", "Matching", "Matchings", "Pairs", "Relaxation", "Solution", "neighbour_pairs",
]  # fmt: skip
