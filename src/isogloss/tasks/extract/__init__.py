"""Names, and what they have to do with each other, found in text; and who does what to whom."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.extract.entities import EntityTagger
    from isogloss.tasks.extract.relations import LatentTree, RelationExtractor
    from isogloss.tasks.extract.roles import RoleLabeller

__all__ = ["EntityTagger", "LatentTree", "RelationExtractor", "RoleLabeller"]

_HOMES = {
    "EntityTagger": "entities",
    "LatentTree": "relations",
    "RelationExtractor": "relations",
    "RoleLabeller": "roles",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"isogloss.tasks.extract.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isogloss.tasks.extract' has no attribute {name!r}")
