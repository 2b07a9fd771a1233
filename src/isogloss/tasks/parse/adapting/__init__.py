"""Parsers for a new domain: what is lost there and why, and ways to win some of it back.

Each way is a small change of a `fit` of `DependencyParser`: sentences, words or features that count more (`Focus`),
further codes of words and marks on links (`View`), or other sentences to learn from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

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
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".adaptation": "ParserAdaptation",
            ".decomposing": "KINDS TagDifferences Tried Unforeseen decompose known_words tag_differences unforeseen",
            ".stacking": "GivenLinks OtherParser",
        },
    )

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
