"""Hypothesis strategies: small scores and sentence pairs, with lengths unequal and corners included."""

from isogloss.testing.strategies.alignments import AlignmentInputs, alignment_inputs, alignment_pairs
from isogloss.testing.strategies.base import numbers, pair_sizes
from isogloss.testing.strategies.brackets import bracket_scores, span_scores
from isogloss.testing.strategies.chains import FactoredInputs, chain_scores, factored_inputs
from isogloss.testing.strategies.dpp import PathInputs, path_inputs
from isogloss.testing.strategies.factors import FactorTree, factor_trees, log_odds, log_weights
from isogloss.testing.strategies.grammars import CfgInputs, cfg_inputs
from isogloss.testing.strategies.itg import ItgInputs, itg_inputs
from isogloss.testing.strategies.lattices import LatticeInputs, lattice_inputs
from isogloss.testing.strategies.matchings import MatchingInputs, matching_inputs
from isogloss.testing.strategies.trees import tree_scores
from isogloss.testing.strategies.valence import ValenceInputs, valence_inputs

__all__ = [
    "AlignmentInputs",
    "CfgInputs",
    "FactorTree",
    "FactoredInputs",
    "ItgInputs",
    "LatticeInputs",
    "MatchingInputs",
    "PathInputs",
    "ValenceInputs",
    "alignment_inputs",
    "alignment_pairs",
    "bracket_scores",
    "cfg_inputs",
    "chain_scores",
    "factor_trees",
    "factored_inputs",
    "itg_inputs",
    "lattice_inputs",
    "log_odds",
    "log_weights",
    "matching_inputs",
    "numbers",
    "pair_sizes",
    "path_inputs",
    "span_scores",
    "tree_scores",
    "valence_inputs",
]
