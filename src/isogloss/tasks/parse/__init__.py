"""Parsers: dependency trees for the words of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.tasks.parse.induction import GrammarInducer
    from isogloss.tasks.parse.joint import JointMorphologyParser
    from isogloss.tasks.parse.parser import DependencyParser
    from isogloss.tasks.parse.restyled import StyleAdapter
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".induction": "GrammarInducer",
            ".joint": "JointMorphologyParser",
            ".parser": "DependencyParser",
            ".restyled": "StyleAdapter",
        },
    )

__all__ = ["DependencyParser", "GrammarInducer", "JointMorphologyParser", "StyleAdapter"]
