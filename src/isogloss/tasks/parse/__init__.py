"""Parsers: dependency trees for the words of a text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.parse.induction import GrammarInducer
    from isogloss.tasks.parse.joint import JointMorphologyParser
    from isogloss.tasks.parse.parser import DependencyParser
    from isogloss.tasks.parse.restyled import StyleAdapter

__all__ = ["DependencyParser", "GrammarInducer", "JointMorphologyParser", "StyleAdapter"]

_HOMES = {
    "DependencyParser": "parser",
    "GrammarInducer": "induction",
    "JointMorphologyParser": "joint",
    "StyleAdapter": "restyled",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"isogloss.tasks.parse.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isogloss.tasks.parse' has no attribute {name!r}")
