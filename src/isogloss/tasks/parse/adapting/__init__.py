"""Parsers for a new domain: what is lost there and why, and ways to win some of it back.

Each way is a small change of a `fit` of `DependencyParser`: sentences, words or features that count more (`Focus`),
further codes of words and marks on links (`View`), or other sentences to learn from.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.parse.adapting.adaptation import ParserAdaptation
    from isogloss.tasks.parse.adapting.decomposing import (
        KINDS,
        TagDifferences,
        Tried,
        Unforeseen,
        decompose,
        known_words,
        tag_differences,
        unforeseen,
    )
    from isogloss.tasks.parse.adapting.stacking import GivenLinks, OtherParser

__all__ = [
    "KINDS",
    "GivenLinks",
    "OtherParser",
    "ParserAdaptation",
    "TagDifferences",
    "Tried",
    "Unforeseen",
    "decompose",
    "known_words",
    "tag_differences",
    "unforeseen",
]

_NAMES = {
    "adaptation": "ParserAdaptation",
    "decomposing": "KINDS TagDifferences Tried Unforeseen decompose known_words tag_differences unforeseen",
    "stacking": "GivenLinks OtherParser",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"isogloss.tasks.parse.adapting.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isogloss.tasks.parse.adapting' has no attribute {name!r}")
