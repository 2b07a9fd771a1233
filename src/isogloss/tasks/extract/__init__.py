"""Names, and what they have to do with each other, found in text; and who does what to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.tasks.extract.entities import EntityTagger
    from isogloss.tasks.extract.relations import LatentTree, RelationExtractor
    from isogloss.tasks.extract.roles import RoleLabeller
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".entities": "EntityTagger",
            ".relations": "LatentTree RelationExtractor",
            ".roles": "RoleLabeller",
        },
    )

__all__ = ["EntityTagger", "LatentTree", "RelationExtractor", "RoleLabeller"]
