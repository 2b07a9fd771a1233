"""What words and names are seen by, when names are looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.mentions import Mentions
from isogloss.errors import MentionsError
from isogloss.features import Axis, Index, Parts, Sparse, Templates, positions, spans
from isogloss.learners.chain_model import LabelPairs, NodeFeatures
from isogloss.tasks.parse.constituency.words import code_of
from isogloss.tasks.tag.words import AFFIX, word_codes

__all__ = ["SPAN_TEMPLATES", "TAG_TEMPLATES", "WORD_TEMPLATES", "Seen", "Supported", "seen_words"]

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
        from isogloss.structures.batch import run_sentences
        from isogloss.tasks.extract._numba.spans import phrase_codes

        parts = spans(self.axis, longest)
        columns = {}
        for name, attribute in (("phrase", "word"), ("written", "look")):
            out = np.empty(parts.n_parts, np.int64)
            codes = self.axis.attributes[attribute]
            many = len(self.axis.offsets) - 1
            run_sentences(phrase_codes, many, self.axis.offsets, parts.offsets, longest, codes, out)
            columns[name] = out
        return parts.with_columns(**columns)


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


@dataclass(frozen=True, eq=False)
class Supported:
    """Attributes of training data with the labels that they were met with: what has weights.

    Parameters
    ----------
    templates : Templates
    index : Index
    pairs : LabelPairs
    """

    templates: Templates
    index: Index
    pairs: LabelPairs

    @classmethod
    def collected(
        cls, templates: Templates, parts: Parts, gold: NDArray[np.int64], k: int, min_count: int
    ) -> tuple[Supported, NodeFeatures]:
        """Of parts whose labels are known, −1 for those that are nothing; and these parts themselves."""
        index = templates.index(parts, gold=gold >= 0, min_count=min_count)
        attributes = templates.matrix(parts, index)
        made = cls(templates, index, LabelPairs.supported(attributes, gold, k))
        return made, NodeFeatures(attributes, made.pairs)

    def on(self, parts: Parts) -> NodeFeatures:
        """Other parts."""
        return NodeFeatures(self.matrix(parts), self.pairs)

    def matrix(self, parts: Parts) -> Sparse:
        """The attributes of parts that have weights."""
        return self.templates.matrix(parts, self.index)

    def compact(self, weights: NDArray[Any]) -> tuple[Supported, NDArray[Any]]:
        """Without weights that are 0, and attributes that have no others."""
        held = weights != 0
        before = np.concatenate([[0], np.cumsum(held)])
        sizes = np.diff(before[self.pairs.starts])
        used = sizes > 0
        starts = np.concatenate([[0], np.cumsum(sizes[used])]).astype(np.int64)
        pairs = LabelPairs(starts, self.pairs.labels[held], self.pairs.k)
        return Supported(self.templates, Index(self.index.keys[used]), pairs), weights[held]
