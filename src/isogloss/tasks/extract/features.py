"""What words and names are seen by, when names are looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isogloss.data.mentions import Mentions
from isogloss.errors import MentionsError
from isogloss.features import Axis, Parts, phrases, positions, spans
from isogloss.tasks.parse.constituency.words import code_of
from isogloss.tasks.tag.words import AFFIX, word_codes

__all__ = ["SPAN_TEMPLATES", "TAG_TEMPLATES", "WORD_TEMPLATES", "Seen", "seen_words"]

WORD_TEMPLATES: tuple[Any, ...] = (
    (), "form", "word", *(f"prefix{n}" for n in range(1, AFFIX)), *(f"suffix{n}" for n in range(1, AFFIX + 1)),
    "shape", "look", "look & first",
    "word[-1]", "word[+1]", "word[-2]", "word[+2]", "form[-1]", "form[+1]",
    "look[-1]", "look[+1]", "look[-2]", "look[+2]", "shape[-1]", "shape[+1]", "suffix3[-1]", "suffix3[+1]",
    "look[-1] & look", "look & look[+1]", "look[-1] & look & look[+1]", "look[-2] & look[-1] & look",
    "word[-1] & word", "word & word[+1]", "word[-1] & look", "look & word[+1]",
    "word[-2] & word[-1]", "word[+1] & word[+2]", "word[-1] & word[+1]",
)  # fmt: skip
"""Of a word: letters and how it is written, and the same of its neighbours."""

TAG_TEMPLATES: tuple[Any, ...] = (
    "tag", "tag[-1]", "tag[+1]", "tag[-2]", "tag[+2]", "tag[-1] & tag", "tag & tag[+1]", "tag[-1] & tag & tag[+1]",
    "look & tag", "word & tag",
)  # fmt: skip
"""The same of parts of speech that are given."""

SPAN_TEMPLATES: tuple[Any, ...] = (
    (), "length", "phrase", "written", "length & written",
    "first.word & last.word", "first.word & length", "last.word & length",
    "first.word[-1] & last.word[+1]", "first.word[-1] & length", "last.word[+1] & length",
    "first.word[-1] & written", "written & last.word[+1]", "first.word & written", "written & last.word",
    "first.look[-1] & written & last.look[+1]", "first.suffix3 & last.suffix3",
)  # fmt: skip
"""Of a name as a whole: all its words (phrase), how these are written, its length, and what stands around it."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Sentences as codes.

    axis : Axis
        What is known of each word.
    """

    axis: Axis

    def words(self) -> Parts:
        """A part for each word."""
        return positions(self.axis)

    def spans(self, longest: int) -> Parts:
        """A part for each span of up to `longest` words, with columns "length", "phrase" and "written"."""
        codes = {name: phrases(self.axis, longest, of) for name, of in (("phrase", "word"), ("written", "look"))}
        return spans(self.axis, longest).with_columns(**codes)


def seen_words(mentions: Mentions, *, tags: bool) -> Seen:
    """Sentences as codes; with `tags`, the parts of speech that the file has among them."""
    ids, vocabulary = mentions.columns["form"]
    first = np.zeros(mentions.n_words, np.int64)
    first[mentions.offsets[:-1][mentions.lengths > 0]] = 1
    used, at = np.unique(ids, return_inverse=True)
    codes = {name: table[at] for name, table in word_codes([vocabulary[number] for number in used.tolist()]).items()}
    if tags:
        if "tag" not in mentions.columns:
            raise MentionsError(
                f"{mentions.name}: has no column of parts of speech, which names are looked for by here (--tags "
                "given). Give columns as word, part of speech, tag; or train with --tags none (tags='none')"
            )
        column, kinds = mentions.columns["tag"]
        table = np.array([code_of(kind) for kind in kinds], np.int64)
        codes["tag"] = table[column] if len(table) else np.zeros(0, np.int64)
    return Seen(Axis(mentions.offsets, first=first, **codes))
