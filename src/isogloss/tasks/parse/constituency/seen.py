"""What a constituency parser is given, to learn from or to parse, as it sees it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from isogloss.data.bitext import Text
from isogloss.data.constituents import Constituents, unescaped
from isogloss.data.formats import IsoglossWarning
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.tasks.parse.constituency.fitted import FittedSpans
from isogloss.tasks.parse.constituency.trees import check_tops, column_of, plain
from isogloss.tasks.parse.constituency.words import Sentences
from isogloss.tasks.parse.cutting import LONGEST

__all__ = ["Given", "Seen", "as_tagged", "usable"]

Given = Constituents | Treebank | Text


@dataclass(frozen=True, eq=False)
class Seen:
    """Sentences as the parser sees them.

    Parameters
    ----------
    words, tags : list of tuple of str
    codes : Sentences
    gold : bool
        Whether tags are those that were given.
    """

    words: list[tuple[str, ...]]
    tags: list[tuple[str, ...]]
    codes: Sentences
    gold: bool

    @classmethod
    def of(cls, text: Given, learnt: FittedSpans, *, gold: bool) -> Seen:
        """Words, tags and codes of what is to be parsed, by a parser that learnt from gold tags, or has a tagger."""
        if isinstance(text, Constituents):
            text = plain(text)
            words = [text.words(k) for k in range(len(text))]
            tags, forms, offsets = text.columns["tag"], text.columns["form"], text.offsets
        elif isinstance(text, Treebank):
            words = [text.words(k) for k in range(len(text))]
            tags, forms, offsets = text.columns["xpos"], text.columns["form"], text.offsets
            if gold:
                raise TreebankError(
                    f"{text.name}: this parser learnt from tags that were given, and a treebank has them in several "
                    "columns. Give Constituents, as Constituents.from_dependencies(treebank, tag='upos')"
                )
        elif isinstance(text, Text):
            words = [text.tokens(k) for k in range(len(text))]
            if gold:
                raise TreebankError(
                    f"{text.name}: has no tags, and this parser learnt from tags that were given (--tags gold). Give "
                    "trees, whose tags are taken, or train with --tags predicted (tags='predicted')"
                )
            forms = tags = column_of(words)
            offsets = np.concatenate([[0], np.cumsum(text.ids.lengths)]).astype(np.int64)
        else:
            raise ParameterError(
                f"{type(text).__name__} cannot be parsed. Give Constituents, a Treebank, or a Text, as "
                "Text.of(['she sleeps'])"
            )
        if learnt.tagger is not None:
            plain_words = [[unescaped(word) for word in sentence] for sentence in words]
            tagged = learnt.tagger.predict(Text.of(plain_words))
            tags = tagged.columns["xpos"]
        names = tags.vocabulary.types
        listed = [names[number] for number in tags.ids.tolist()]
        own = [tuple(listed[a:b]) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        return cls(words, own, Sentences.of(offsets, forms, tags, learnt.words), gold)


def usable(trees: Constituents) -> Constituents:
    """Trees to learn from: those with words, and not too long ones."""
    if not isinstance(trees, Constituents):
        raise ParameterError(f"fit: give Constituents, as Constituents.read('trees.mrg'), not {type(trees).__name__}")
    found = plain(trees)
    check_tops(found)
    short = found.lengths <= LONGEST
    if not short.all():
        warnings.warn(
            f"{trees.name}: {np.count_nonzero(~short):,} of {len(trees):,} trees have more than {LONGEST} words and "
            "are passed over. Are they lists, or several sentences each?",
            IsoglossWarning,
            stacklevel=4,
        )
    good = short & (found.lengths > 0)
    if not good.any():
        many = f"from 1 to {LONGEST} words" if found.lengths.any() else "words"
        raise TreebankError(f"{trees.name}: no tree has {many}, so there is nothing to learn. Is it the right file?")
    return found.take(good)


def as_tagged(trees: Constituents) -> Treebank:
    """Words, as people write them, with their tags as xpos."""
    words = [[unescaped(word) for word in trees.words(k)] for k in range(len(trees))]
    given = Treebank.from_text(Text.of(words, trees.name))
    return given.with_columns(xpos=trees.columns["tag"])
