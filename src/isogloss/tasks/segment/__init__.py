"""Words cut into morphemes: learnt from text alone, or with words that people have cut."""

from isogloss.tasks.segment.segmenter import Segmenter

__all__ = ["Segmenter"]
