"""Names, and what they have to do with each other, found in text."""

from isogloss.tasks.extract.entities import EntityTagger

__all__ = ["EntityTagger"]
