"""What a supervised aligner sees of words and word pairs: numbers, for all cells of a text at once."""

from isogloss.tasks.align.features.base import PairFeatures, PairView, PartFeatures
from isogloss.tasks.align.features.extractor import SETS, FeatureExtractor
from isogloss.tasks.align.features.neighbours import PATTERNS
from isogloss.tasks.align.features.statistics import Statistics

__all__ = ["PATTERNS", "SETS", "FeatureExtractor", "PairFeatures", "PairView", "PartFeatures", "Statistics"]
