"""Grammars learnt from tags alone: no tree is needed, and none is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.tasks.parse.induction.grammar import ValenceGrammar
    from isogloss.tasks.parse.induction.inducer import GrammarInducer
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".grammar": "ValenceGrammar",
            ".inducer": "GrammarInducer",
        },
    )

__all__ = ["GrammarInducer", "ValenceGrammar"]
