"""Grammars learnt from tags alone: no tree is needed, and none is looked at."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.parse.induction.grammar import ValenceGrammar
    from isogloss.tasks.parse.induction.inducer import GrammarInducer

__all__ = ["GrammarInducer", "ValenceGrammar"]

_HOMES = {"GrammarInducer": "inducer", "ValenceGrammar": "grammar"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"isogloss.tasks.parse.induction.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isogloss.tasks.parse.induction' has no attribute {name!r}")
