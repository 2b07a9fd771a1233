"""Scores of links, their probabilities, tags and trees, with intervals, comparisons and the recipe of each number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.metrics.alignment import (
        AlignmentScore,
        Comparison,
        bijectivity,
        compare,
        score_by_frequency,
        score_links,
        symmetry,
    )
    from isogloss.metrics.brackets import (
        BracketComparison,
        BracketRules,
        BracketScore,
        breakdown_brackets,
        compare_brackets,
        score_brackets,
    )
    from isogloss.metrics.confidence import (
        Calibration,
        Curve,
        best_threshold,
        calibration,
        curve,
        threshold_at_recall,
    )
    from isogloss.metrics.documents import DocumentScore, score_documents
    from isogloss.metrics.names import EntityComparison, EntityScore, compare_entities, score_entities
    from isogloss.metrics.parsing import (
        Confusion,
        ParseComparison,
        ParseScore,
        breakdown_trees,
        compare_trees,
        confusion,
        score_trees,
    )
    from isogloss.metrics.ranking import RankComparison, RankScore, compare_rankings, kendall_tau, score_ranking
    from isogloss.metrics.relations import RelationComparison, RelationScore, compare_relations, score_relations
    from isogloss.metrics.roles import RoleComparison, RoleScore, compare_roles, score_roles
    from isogloss.metrics.scores import Score
    from isogloss.metrics.segmentation import (
        SegmentationComparison,
        SegmentationScore,
        compare_segmentations,
        score_segmentation,
    )
    from isogloss.metrics.tagging import TagScore, score_tags
    from isogloss.metrics.translation import (
        TranslationComparison,
        TranslationScore,
        compare_translations,
        score_translations,
        sentence_bleu,
    )
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".alignment": "AlignmentScore Comparison bijectivity compare score_by_frequency score_links symmetry",
            ".brackets": "BracketComparison BracketRules BracketScore breakdown_brackets compare_brackets "
            "score_brackets",
            ".confidence": "Calibration Curve best_threshold calibration curve threshold_at_recall",
            ".documents": "DocumentScore score_documents",
            ".names": "EntityComparison EntityScore compare_entities score_entities",
            ".parsing": "Confusion ParseComparison ParseScore breakdown_trees compare_trees confusion score_trees",
            ".ranking": "RankComparison RankScore compare_rankings kendall_tau score_ranking",
            ".relations": "RelationComparison RelationScore compare_relations score_relations",
            ".roles": "RoleComparison RoleScore compare_roles score_roles",
            ".scores": "Score",
            ".segmentation": "SegmentationComparison SegmentationScore compare_segmentations score_segmentation",
            ".tagging": "TagScore score_tags",
            ".translation": "TranslationComparison TranslationScore compare_translations score_translations "
            "sentence_bleu",
        },
    )

__all__ = [
    "AlignmentScore",
    "BracketComparison",
    "BracketRules",
    "BracketScore",
    "Calibration",
    "Comparison",
    "Confusion",
    "Curve",
    "DocumentScore",
    "EntityComparison",
    "EntityScore",
    "ParseComparison",
    "ParseScore",
    "RankComparison",
    "RankScore",
    "RelationComparison",
    "RelationScore",
    "RoleComparison",
    "RoleScore",
    "Score",
    "SegmentationComparison",
    "SegmentationScore",
    "TagScore",
    "TranslationComparison",
    "TranslationScore",
    "best_threshold",
    "bijectivity",
    "breakdown_brackets",
    "breakdown_trees",
    "calibration",
    "compare",
    "compare_brackets",
    "compare_entities",
    "compare_rankings",
    "compare_relations",
    "compare_roles",
    "compare_segmentations",
    "compare_translations",
    "compare_trees",
    "confusion",
    "curve",
    "kendall_tau",
    "score_brackets",
    "score_by_frequency",
    "score_documents",
    "score_entities",
    "score_links",
    "score_ranking",
    "score_relations",
    "score_roles",
    "score_segmentation",
    "score_tags",
    "score_translations",
    "score_trees",
    "sentence_bleu",
    "symmetry",
    "threshold_at_recall",
]
