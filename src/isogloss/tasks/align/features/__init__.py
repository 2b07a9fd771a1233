"""What a supervised aligner sees of words and word pairs: numbers, for all cells of a text at once."""

from isogloss.tasks.align.features.base import PairFeatures, PairView
from isogloss.tasks.align.features.extractor import SETS, FeatureExtractor
from isogloss.tasks.align.features.statistics import Statistics

__all__ = ["SETS", "FeatureExtractor", "PairFeatures", "PairView", "Statistics"]
