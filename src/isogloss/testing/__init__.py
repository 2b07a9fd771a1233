"""For tests, ours and yours: enumerators, Hypothesis strategies and conformance checks.

`isogloss.testing.strategies` needs Hypothesis, which is not installed with the toolkit; import it by its own name.
"""

from isogloss.testing.checks import check_batch, check_k_best, check_laws, check_structure
from isogloss.testing.enumerate import (
    BruteForce,
    JointAgreement,
    alignment_score,
    alignments,
    brute_force,
    brute_force_alignments,
    brute_force_chain,
    brute_force_factored,
    brute_force_matching,
    brute_force_trees,
    chain_parts,
    chains,
    grandparent_parts,
    joint_agreement,
    link_sets,
    matching_score,
    matchings,
    sibling_parts,
    tree_parts,
    trees,
)
from isogloss.testing.learners import check_gradient, check_learner

__all__ = [
    "BruteForce",
    "JointAgreement",
    "alignment_score",
    "alignments",
    "brute_force",
    "brute_force_alignments",
    "brute_force_chain",
    "brute_force_factored",
    "brute_force_matching",
    "brute_force_trees",
    "chain_parts",
    "chains",
    "check_batch",
    "check_gradient",
    "check_k_best",
    "check_laws",
    "check_learner",
    "check_structure",
    "grandparent_parts",
    "joint_agreement",
    "link_sets",
    "matching_score",
    "matchings",
    "sibling_parts",
    "tree_parts",
    "trees",
]
