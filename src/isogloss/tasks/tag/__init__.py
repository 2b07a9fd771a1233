"""Taggers: parts of speech and morphology for the words of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.tasks.tag.adapting import Correspondence
    from isogloss.tasks.tag.base import ColumnTagger
    from isogloss.tasks.tag.crf import CrfTagger
    from isogloss.tasks.tag.dictionary import DictionaryTagger
    from isogloss.tasks.tag.graph import GraphTagger
    from isogloss.tasks.tag.jackknifing import jackknife
    from isogloss.tasks.tag.projected import ProjectedTagger
    from isogloss.tasks.tag.several import Tagger
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".adapting": "Correspondence",
            ".base": "ColumnTagger",
            ".crf": "CrfTagger",
            ".dictionary": "DictionaryTagger",
            ".graph": "GraphTagger",
            ".jackknifing": "jackknife",
            ".projected": "ProjectedTagger",
            ".several": "Tagger",
        },
    )

__all__ = [
    "ColumnTagger", "Correspondence", "CrfTagger", "DictionaryTagger", "GraphTagger", "ProjectedTagger", "Tagger",
    "jackknife",
]  # fmt: skip
