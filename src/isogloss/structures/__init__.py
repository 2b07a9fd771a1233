"""What can be inferred: structures know scores and parts, never words.

A structure is an object with one set of `scores` and the methods of `Structure`; most add `log_prob`, `entropy`,
`from_parts` and `clamp`. Importing this room does not import the compiled kernels; the first call of a method does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.structures.aligned_segments import AlignedSegments, AlignedSegmentsBatch, SegmentLattice
    from isogloss.structures.alignment_chain import AlignmentChain
    from isogloss.structures.base import Flat, InfeasibleError, Structure
    from isogloss.structures.batch import Stack
    from isogloss.structures.bichart import Bichart
    from isogloss.structures.bitree import Bitree, Bitrees
    from isogloss.structures.brackets import Bracketings, Brackets
    from isogloss.structures.cfg import Cfg, Cfgs, Grammar
    from isogloss.structures.chain import Chain, Chains
    from isogloss.structures.choice import Choice, Choices
    from isogloss.structures.dpp import Dpp, PathDpp, PathGraph, Paths
    from isogloss.structures.factored_chain import FactoredChain, FactoredChains
    from isogloss.structures.factorgraph import FactorGraph, FactorGraphs
    from isogloss.structures.family_tree import FamilyTrees
    from isogloss.structures.hidden import Couplings, HiddenTree, HiddenTrees, link_number
    from isogloss.structures.itg import Itg
    from isogloss.structures.itg_batch import Itgs
    from isogloss.structures.itg_parts import Blocks, Terminal
    from isogloss.structures.lattice import FactoredLattices, Lattice, Lattices
    from isogloss.structures.lattice_parts import LatticeParts
    from isogloss.structures.loopy import LoopyTrees
    from isogloss.structures.loopy_pairs import LoopyPairs, PairOfTrees
    from isogloss.structures.matching import Fertility, Matching, Matchings, Pairs, neighbour_pairs
    from isogloss.structures.pair_parts import PairCandidates, PairParts
    from isogloss.structures.projective import ProjectiveTree
    from isogloss.structures.projective_batch import ProjectiveTrees
    from isogloss.structures.semimarkov import SemiMarkov, SemiMarkovs
    from isogloss.structures.semimarkov2 import SemiMarkov2, SemiMarkovs2
    from isogloss.structures.senses import SenseTree, SenseTrees
    from isogloss.structures.span_tree import SpanTree, SpanTrees
    from isogloss.structures.spanning import SpanningTree, SpanningTrees
    from isogloss.structures.spans import span_number, spans_of
    from isogloss.structures.subset import Subset, Subsets
    from isogloss.structures.tree_parts import Candidates, TreeParts
    from isogloss.structures.valence import ValenceTree, ValenceTrees
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".bitree": "Bitree Bitrees",
            ".bichart": "Bichart",
            ".aligned_segments": "AlignedSegments AlignedSegmentsBatch SegmentLattice",
            ".alignment_chain": "AlignmentChain",
            ".base": "Flat InfeasibleError Structure",
            ".batch": "Stack",
            ".brackets": "Bracketings Brackets",
            ".cfg": "Cfg Cfgs Grammar",
            ".chain": "Chain Chains",
            ".choice": "Choice Choices",
            ".dpp": "Dpp PathDpp PathGraph Paths",
            ".factored_chain": "FactoredChain FactoredChains",
            ".factorgraph": "FactorGraph FactorGraphs",
            ".family_tree": "FamilyTrees",
            ".hidden": "Couplings HiddenTree HiddenTrees link_number",
            ".itg": "Itg",
            ".itg_batch": "Itgs",
            ".itg_parts": "Blocks Terminal",
            ".lattice": "FactoredLattices Lattice Lattices",
            ".lattice_parts": "LatticeParts",
            ".loopy": "LoopyTrees",
            ".loopy_pairs": "LoopyPairs PairOfTrees",
            ".matching": "Fertility Matching Matchings Pairs neighbour_pairs",
            ".pair_parts": "PairCandidates PairParts",
            ".projective": "ProjectiveTree",
            ".projective_batch": "ProjectiveTrees",
            ".semimarkov": "SemiMarkov SemiMarkovs",
            ".semimarkov2": "SemiMarkov2 SemiMarkovs2",
            ".senses": "SenseTree SenseTrees",
            ".span_tree": "SpanTree SpanTrees",
            ".spanning": "SpanningTree SpanningTrees",
            ".spans": "span_number spans_of",
            ".subset": "Subset Subsets",
            ".tree_parts": "Candidates TreeParts",
            ".valence": "ValenceTree ValenceTrees",
        },
    )

__all__ = [
    "AlignedSegments",
    "AlignedSegmentsBatch",
    "AlignmentChain",
    "Bichart",
    "Bitree",
    "Bitrees",
    "Blocks",
    "Bracketings",
    "Brackets",
    "Candidates",
    "Cfg",
    "Cfgs",
    "Chain",
    "Chains",
    "Choice",
    "Choices",
    "Couplings",
    "Dpp",
    "FactorGraph",
    "FactorGraphs",
    "FactoredChain",
    "FactoredChains",
    "FactoredLattices",
    "FamilyTrees",
    "Fertility",
    "Flat",
    "Grammar",
    "HiddenTree",
    "HiddenTrees",
    "InfeasibleError",
    "Itg",
    "Itgs",
    "Lattice",
    "LatticeParts",
    "Lattices",
    "LoopyPairs",
    "LoopyTrees",
    "Matching",
    "Matchings",
    "PairCandidates",
    "PairOfTrees",
    "PairParts",
    "Pairs",
    "PathDpp",
    "PathGraph",
    "Paths",
    "ProjectiveTree",
    "ProjectiveTrees",
    "SegmentLattice",
    "SemiMarkov",
    "SemiMarkov2",
    "SemiMarkovs",
    "SemiMarkovs2",
    "SenseTree",
    "SenseTrees",
    "SpanTree",
    "SpanTrees",
    "SpanningTree",
    "SpanningTrees",
    "Stack",
    "Structure",
    "Subset",
    "Subsets",
    "Terminal",
    "TreeParts",
    "ValenceTree",
    "ValenceTrees",
    "link_number",
    "neighbour_pairs",
    "span_number",
    "spans_of",
]
