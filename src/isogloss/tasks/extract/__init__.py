"""Names, and what they have to do with each other, found in text; and who does what to whom."""

from isogloss.tasks.extract.entities import EntityTagger
from isogloss.tasks.extract.relations import LatentTree, RelationExtractor
from isogloss.tasks.extract.roles import RoleLabeller

__all__ = ["EntityTagger", "LatentTree", "RelationExtractor", "RoleLabeller"]
