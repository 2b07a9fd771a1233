"""Taggers: parts of speech and morphology for the words of a text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.tag.adapting import Correspondence
    from isogloss.tasks.tag.base import ColumnTagger
    from isogloss.tasks.tag.crf import CrfTagger
    from isogloss.tasks.tag.dictionary import DictionaryTagger
    from isogloss.tasks.tag.graph import GraphTagger
    from isogloss.tasks.tag.jackknifing import jackknife
    from isogloss.tasks.tag.projected import ProjectedTagger
    from isogloss.tasks.tag.several import Tagger

__all__ = [
    "ColumnTagger", "Correspondence", "CrfTagger", "DictionaryTagger", "GraphTagger", "ProjectedTagger", "Tagger",
    "jackknife",
]  # fmt: skip

_HOMES = {
    "Correspondence": "adapting",
    "ColumnTagger": "base",
    "CrfTagger": "crf",
    "DictionaryTagger": "dictionary",
    "GraphTagger": "graph",
    "ProjectedTagger": "projected",
    "Tagger": "several",
    "jackknife": "jackknifing",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"isogloss.tasks.tag.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isogloss.tasks.tag' has no attribute {name!r}")
