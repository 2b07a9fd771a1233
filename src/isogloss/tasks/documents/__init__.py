"""What is learnt of documents: topics across languages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.documents.topics import PolylingualTopics

__all__ = ["PolylingualTopics"]

_HOMES = {"PolylingualTopics": "topics"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"isogloss.tasks.documents.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isogloss.tasks.documents' has no attribute {name!r}")
