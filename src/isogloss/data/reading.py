"""How the words of a text were made of its file, and what a model remembers of the text it learnt from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from isogloss.data.bitext import Text
    from isogloss.data.treebank import Treebank

__all__ = [
    "NORMAL_FORMS",
    "TOKENISERS",
    "FrequentWords",
    "Reading",
    "TextForm",
    "check_reading",
    "lettered",
    "word_counts",
]

TOKENISERS = ("space", "unicode", "characters")
"""What may be taken for a word."""
NORMAL_FORMS = (None, "NFC", "NFD", "NFKC", "NFKD")
"""Unicode normal forms that words may be brought to."""
KEY = "reading"
"""The name under which the header of a saved model has it."""
SAMPLE = 2000
"""Sentences from the beginning of a text that are enough to know its words by."""
FREQUENT = 500
"""Words that count as the frequent ones of a text: about half of all that is written in most languages."""
ENOUGH = 50
"""Words with letters, before anything is said of the language of a text."""
STRANGE = 0.25
"""A text is strange if the share of frequent words in it is less than this part of what it was where they come from."""


@dataclass(frozen=True)
class TextForm:
    """How words were made of a file; texts that were made in memory have none.

    Parameters
    ----------
    tokenise : {"space", "unicode", "characters"}
    normalise : {None, "NFC", "NFD", "NFKC", "NFKD"}
        Both as in `isogloss.data.formats.read_bitext`.
    language : str, optional
        The code by which it was asked for, as of one side of a TMX file.
    """

    tokenise: str = "space"
    normalise: str | None = None
    language: str | None = None

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> TextForm:
        """From what a saved model says."""
        made = cls(**given)
        known = made.tokenise in TOKENISERS and made.normalise in NORMAL_FORMS
        if not known or not (made.language is None or isinstance(made.language, str)):
            raise ValueError(f"a text was read with {made}")
        return made

    def differs_from(self, other: TextForm) -> list[str]:
        """The fields in which they contradict each other; a language that is not known contradicts none."""
        differ = [field for field in ("tokenise", "normalise") if getattr(self, field) != getattr(other, field)]
        return differ + ["language"] * (None not in (self.language, other.language) and self.language != other.language)

    def said(self, fields: Iterable[str]) -> str:
        """Some of the fields as Python writes them: ``tokenise='space'``."""
        return ", ".join(f"{field}={getattr(self, field)!r}" for field in fields)


@dataclass(frozen=True)
class FrequentWords:
    """The frequent words of a text, in small letters, and how many of all words with letters they are, from 0 to 1.

    Examples
    --------
    >>> known = FrequentWords.of({"the": 60, "house": 40}, number=1)
    >>> known, known.share_in({"the": 1, "cat": 1}), known.finding({"le": 40, "chat": 30, "the": 1})
    (FrequentWords(words=('the',), share=0.6), 0.5, 'only 1% of its words are among the frequent ones of the text that \
the model learnt from, 60% there: is it of the same language?')
    """

    words: tuple[str, ...]
    share: float

    @classmethod
    def of(cls, counts: Mapping[str, int], number: int = FREQUENT) -> FrequentWords:
        words = tuple(sorted(counts, key=lambda word: (-counts[word], word))[:number])
        return cls(words, round(sum(counts[word] for word in words) / max(1, sum(counts.values())), 4))

    def share_in(self, counts: Mapping[str, int]) -> float:
        """How many of the words of another text they are."""
        return sum(counts.get(word, 0) for word in self.words) / max(1, sum(counts.values()))

    def finding(self, counts: Mapping[str, int]) -> str | None:
        """What there is to say if another text hardly has them; nothing is said of few words."""
        share = self.share_in(counts)
        if sum(counts.values()) < ENOUGH or share >= STRANGE * self.share:
            return None
        return (
            f"only {share:.0%} of its words are among the frequent ones of the text that the model learnt from, "
            f"{self.share:.0%} there: is it of the same language?"
        )


@dataclass(frozen=True)
class Reading:
    """What a model remembers of the text it learnt from.

    Parameters
    ----------
    names : tuple of str
        Of the files, without their folders: one, or source and target.
    forms : tuple of TextForm or None
        How each was read; None where that is not known.
    frequent : FrequentWords, optional
        Only of models that have no vocabulary to know a text by.

    Examples
    --------
    >>> from isogloss.data import Text
    >>> text = Text.of(["das Haus"], name="data/news.de")
    >>> Reading.of(text).names, Reading.of(text).forms, Reading.of(Text.of(["das Haus"]))
    (('news.de',), (None,), None)
    """

    names: tuple[str, ...]
    forms: tuple[TextForm | None, ...]
    frequent: FrequentWords | None = None

    @classmethod
    def of(cls, *texts: Text | Treebank, frequent: bool = False) -> Reading | None:
        """Of a text, or of source and target; with the frequent words of the first if asked. None without any of it."""
        names = tuple("" if text.name == "<memory>" else os.path.basename(text.name) for text in texts)
        forms = tuple(text.form for text in texts)
        common = FrequentWords.of(word_counts(texts[0], sentences=None)) if frequent else None
        return cls(names, forms, common) if any(names) or any(forms) or common else None

    @property
    def options(self) -> dict[str, Any]:
        """What `read_bitext` is to be given to read another text likewise."""
        known = next((form for form in self.forms if form is not None), None)
        return {} if known is None else {"tokenise": known.tokenise, "normalise": known.normalise}

    @property
    def languages(self) -> tuple[str, str] | None:
        """The language codes of source and target, where both are known."""
        codes = [None if form is None else form.language for form in self.forms]
        return (codes[0], codes[1]) if len(codes) == 2 and codes[0] and codes[1] else None

    # --- in the header of saved models

    @staticmethod
    def to_meta(reading: Reading | None) -> dict[str, Any]:
        """An entry for the header of a saved model; none if nothing is known."""
        return {} if reading is None else {KEY: asdict(reading)}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Reading | None:
        """What `to_meta` gave; None for models that do not have it, such as those of older versions."""
        from isogloss.layout import number, texts
        from isogloss.store import reading

        given = meta.get(KEY)
        if given is None:
            return None
        with reading("what the model remembers of its text"):
            forms = tuple(None if form is None else TextForm.checked(form) for form in given["forms"])
            names, common = texts(given["names"], "names", distinct=False), given.get("frequent")
            if common is not None:
                common = FrequentWords(
                    texts(common["words"], "words"), number(common["share"], "share", least=0, most=1)
                )
            if len(names) != len(forms) or len(names) not in (1, 2):
                raise ValueError(f"{len(names)} names of files, and {len(forms)} ways to read them")
            return cls(names, forms, common)


def check_reading(remembered: Reading | None, *texts: Text | Treebank) -> None:
    """Warn of texts that were read in another way than those that a model learnt from."""
    from isogloss.data.formats.files import IsoglossWarning

    if remembered is None:
        return
    for name, form, text in zip(remembered.names, remembered.forms, texts, strict=False):
        if form is None or text.form is None:
            continue
        if differ := form.differs_from(text.form):
            here, there = (one.said(differ) for one in (text.form, form))
            warnings.warn(
                f"{text.name} was read with {here}, but what the model learnt from{f' ({name})' * bool(name)} with "
                f"{there}: its words are others. Read it likewise: its options are in model.reading_.options",
                IsoglossWarning,
                stacklevel=4,
            )


# Words ---------------------------------------------------------------------------------------------------------------


def word_counts(text: Text | Treebank, *, lowercase: bool = True, sentences: int | None = SAMPLE) -> dict[str, int]:
    """How often each word with letters occurs, in the first sentences or, with None, in all.

    Examples
    --------
    >>> from isogloss.data import Text
    >>> word_counts(Text.of(["The house , the 1990"]))
    {'the': 2, 'house': 1}
    """
    from isogloss.data.treebank import Treebank

    words = text.text() if isinstance(text, Treebank) else text
    numbers, counts = np.unique(words.ids[slice(0, sentences)].flat, return_counts=True)
    types = words.vocabulary.types
    counted = ((types[number], count) for number, count in zip(numbers.tolist(), counts.tolist(), strict=True))
    return lettered(counted, lowercase=lowercase)


def lettered(counted: Iterable[tuple[str, int]], *, lowercase: bool = True) -> dict[str, int]:
    """The counts of words that have letters."""
    found: dict[str, int] = {}
    for word, count in counted:
        if any(map(str.isalpha, word)):
            form = word.lower() if lowercase else word
            found[form] = found.get(form, 0) + count
    return found
