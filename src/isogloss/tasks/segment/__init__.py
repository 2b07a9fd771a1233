"""Words cut into morphemes: learnt from text alone, with words that people have cut, or with a translation."""

from isogloss.tasks.segment.bilingual_segmenter import BilingualSegmenter
from isogloss.tasks.segment.segmenter import Segmenter

__all__ = ["BilingualSegmenter", "Segmenter"]
