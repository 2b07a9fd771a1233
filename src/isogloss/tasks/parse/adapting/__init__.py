"""Parsers for a new domain: what is lost there and why, and ways to win some of it back.

Each way is a small change of a `fit` of `DependencyParser`: sentences, words or features that count more (`Focus`),
further codes of words and marks on links (`View`), or other sentences to learn from.
"""

from collections.abc import Mapping

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
from isogloss.tasks.parse.views import View, WordTable

VIEWS: Mapping[str, type[View]] = {view.kind: view for view in (WordTable, OtherParser, GivenLinks)}
"""Views that a saved parser may have."""

__all__ = [
    "KINDS",
    "VIEWS",
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
