"""Answers by another road: list every structure, score it, add up. itertools and NumPy, and nothing of ours.

Everything here is exponential and meant for sizes up to about 4. Nothing is shared with the dynamic programs that are
held against it, not even the handling of minus infinity.
"""

from isogloss.testing.enumerate.aligned_segments import brute_force_aligned_segments
from isogloss.testing.enumerate.alignments import (
    JointAgreement,
    alignment_score,
    alignments,
    brute_force_alignments,
    joint_agreement,
)
from isogloss.testing.enumerate.base import BruteForce, brute_force
from isogloss.testing.enumerate.bitrees import bitree_derivations, brute_force_bitrees
from isogloss.testing.enumerate.brackets import all_spans, bracketings, brute_force_brackets, brute_force_spans
from isogloss.testing.enumerate.chains import brute_force_chain, brute_force_factored, chain_parts, chains
from isogloss.testing.enumerate.dpp import all_paths, brute_force_dpp, brute_force_path_dpp, brute_force_paths
from isogloss.testing.enumerate.factors import assignments, brute_force_factors, brute_force_messages, having
from isogloss.testing.enumerate.grammars import brute_force_cfg, derivations
from isogloss.testing.enumerate.hidden import brute_force_hidden
from isogloss.testing.enumerate.itg import brute_force_itg, is_block_itg, itg_alignments, itg_kinds
from isogloss.testing.enumerate.lattices import (
    brute_force_factored_lattice,
    brute_force_lattice,
    lattice_part_names,
)
from isogloss.testing.enumerate.matchings import brute_force_matching, link_sets, matching_score, matchings
from isogloss.testing.enumerate.segments import brute_force_segments, segmentations
from isogloss.testing.enumerate.segments2 import brute_force_segments2
from isogloss.testing.enumerate.senses import brute_force_senses
from isogloss.testing.enumerate.subsets import brute_force_choice, brute_force_subsets, subset_parts, subsets
from isogloss.testing.enumerate.translations import Derivation, kneser_ney, sentence_bleu, translations
from isogloss.testing.enumerate.trees import (
    brute_force_trees,
    grandparent_parts,
    sibling_parts,
    tree_parts,
    trees,
)
from isogloss.testing.enumerate.valence import brute_force_valence, valence_parts

__all__ = [
    "BruteForce",
    "Derivation",
    "JointAgreement",
    "alignment_score",
    "alignments",
    "all_paths",
    "all_spans",
    "assignments",
    "bitree_derivations",
    "bracketings",
    "brute_force",
    "brute_force_aligned_segments",
    "brute_force_alignments",
    "brute_force_bitrees",
    "brute_force_brackets",
    "brute_force_cfg",
    "brute_force_chain",
    "brute_force_choice",
    "brute_force_dpp",
    "brute_force_factored",
    "brute_force_factored_lattice",
    "brute_force_factors",
    "brute_force_hidden",
    "brute_force_itg",
    "brute_force_lattice",
    "brute_force_matching",
    "brute_force_messages",
    "brute_force_path_dpp",
    "brute_force_paths",
    "brute_force_segments",
    "brute_force_segments2",
    "brute_force_senses",
    "brute_force_spans",
    "brute_force_subsets",
    "brute_force_trees",
    "brute_force_valence",
    "chain_parts",
    "chains",
    "derivations",
    "grandparent_parts",
    "having",
    "is_block_itg",
    "itg_alignments",
    "itg_kinds",
    "joint_agreement",
    "kneser_ney",
    "lattice_part_names",
    "link_sets",
    "matching_score",
    "matchings",
    "segmentations",
    "sentence_bleu",
    "sibling_parts",
    "subset_parts",
    "subsets",
    "translations",
    "tree_parts",
    "trees",
    "valence_parts",
]
