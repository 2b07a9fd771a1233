"""Names, and what they have to do with each other, found in text."""

from isogloss.tasks.extract.relations import LatentTree, RelationExtractor

__all__ = ["LatentTree", "RelationExtractor"]
