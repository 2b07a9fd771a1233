"""Scores: how good links and their probabilities are, with intervals, comparisons and the recipe of each number."""

from isogloss.metrics.alignment import (
    AlignmentScore,
    Comparison,
    bijectivity,
    compare,
    score_by_frequency,
    score_links,
    symmetry,
)
from isogloss.metrics.confidence import (
    Calibration,
    Curve,
    best_threshold,
    calibration,
    curve,
    threshold_at_recall,
)

__all__ = [
    "AlignmentScore",
    "Calibration",
    "Comparison",
    "Curve",
    "best_threshold",
    "bijectivity",
    "calibration",
    "compare",
    "curve",
    "score_by_frequency",
    "score_links",
    "symmetry",
    "threshold_at_recall",
]
