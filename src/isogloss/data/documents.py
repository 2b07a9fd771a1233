"""`Documents`: documents that exist in one or several languages, with dates and links between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Text
from isogloss.data.ragged import Ragged
from isogloss.data.rows import Rows, counted, row_numbers
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import DocumentsError, ParameterError

__all__ = ["Document", "Documents"]

NO_DATE = np.datetime64("NaT", "D")


@dataclass(frozen=True)
class Document:
    """One document of `Documents`: the same content in some of the languages.

    Parameters
    ----------
    id : str
    words : mapping of str to tuple of str
        The words in each language that has it.
    date : datetime.date, optional
    links : tuple of str
        Ids of the documents that it links to.
    """

    id: str
    words: Mapping[str, tuple[str, ...]]
    date: date | None = None
    links: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " | ".join(f"{language}: {' '.join(words)}" for language, words in self.words.items())


@dataclass(frozen=True, eq=False, repr=False)
class Documents(Rows[Document]):
    """Documents in one or several languages: `documents[0]` is a `Document`, and `documents[:10]` are `Documents`.

    Row k of every text is the same document; where a language lacks it, the row is empty. The same word in two
    languages is two words: each text has its own vocabulary.

    Parameters
    ----------
    texts : tuple of Text
        One for each language, all with as many rows.
    languages : tuple of str
        Their names, no two alike.
    ids : tuple of str, optional
        Names of documents, no two alike; their numbers from 1 if not given.
    dates : datetime64[D] of [n_documents], optional
        NaT where a date is not known.
    links : int64[n_links, 2]
        Rows of documents, from which and to which a link goes.
    name : str
        The file or folder, for messages.

    Examples
    --------
    >>> documents = Documents.of([{"en": "the house", "de": "das Haus"}, {"de": "ein Buch"}])
    >>> documents, documents[1].words, documents.present.tolist()
    (Documents(2 documents, en and de, 6 words), {'de': ('ein', 'Buch')}, [[True, True], [False, True]])
    """

    texts: tuple[Text, ...]
    languages: tuple[str, ...]
    ids: tuple[str, ...] | None = None
    dates: NDArray[np.datetime64] | None = None
    links: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    name: str = "<memory>"

    def __post_init__(self) -> None:
        if not self.texts or len(self.texts) != len(self.languages):
            raise ParameterError(f"Documents: {len(self.texts)} texts, but {len(self.languages)} languages")
        if len(set(self.languages)) < len(self.languages):
            raise DocumentsError(f"{self.name}: a language is named twice in {', '.join(self.languages)}")
        for text in self.texts:
            if len(text) != len(self):
                raise DocumentsError(
                    f"{text.name} has {len(text)} lines but {self.texts[0].name} has {len(self)}: line k of every "
                    "file is the same document, and an empty line is one that is missing. Was a line lost or joined?"
                )
        if self.ids is not None and len(set(self.ids)) < len(self.ids):
            twice = next(name for k, name in enumerate(self.ids) if name in self.ids[:k])
            raise DocumentsError(f"{self.name}: the id {twice!r} is given to more than one document")

    @classmethod
    def of(
        cls,
        documents: Iterable[Mapping[str, Sequence[str] | str] | Sequence[str] | str],
        *,
        ids: Sequence[str] | None = None,
        dates: Sequence[str | date | None] | None = None,
        links: Iterable[tuple[str, str]] = (),
    ) -> Documents:
        """From texts by language or, where there is one language, from strings or token lists.

        Dates are written year-month-day, of which the later parts may be left out. Links are pairs of ids.
        """
        rows = [row if isinstance(row, Mapping) else {"": row} for row in documents]
        languages = tuple(dict.fromkeys(language for row in rows for language in row)) or ("",)
        texts = tuple(Text.of([row.get(language, ()) for row in rows]) for language in languages)
        names = tuple(str(k + 1) for k in range(len(rows))) if ids is None else tuple(ids)
        if len(names) != len(rows) or (dates is not None and len(dates) != len(rows)):
            raise ParameterError(f"Documents.of: {len(rows)} documents need as many ids, and as many dates")
        made = cls(
            texts, languages, None if ids is None else names,
            None if dates is None else np.array([day_of(one) for one in dates], "datetime64[D]"),
        )  # fmt: skip
        return made.linked(links)

    @classmethod
    def read(cls, *paths: str | PathLike[str], **options: Any) -> Documents:
        """Read files of documents; see `isogloss.data.formats.documents.read_documents`."""
        from isogloss.data.formats.documents import read_documents

        return read_documents(*paths, **options)

    def __len__(self) -> int:
        return len(self.texts[0])

    # --- what is where

    @property
    def n_words(self) -> int:
        return sum(text.n_words for text in self.texts)

    @property
    def present(self) -> NDArray[np.bool_]:
        """bool[n_documents, n_languages]: whether a language has a document, that is some word of it."""
        return np.stack([text.ids.lengths > 0 for text in self.texts], axis=1)

    def id_of(self, document: int) -> str:
        """The name of a document: its id, or its number from 1."""
        return str(document + 1) if self.ids is None else self.ids[document]

    def language(self, language: str) -> int:
        """The number of a language; `ParameterError` names those that are there."""
        if language not in self.languages:
            there = ", ".join(self.languages) if any(self.languages) else "one language without a name"
            raise ParameterError(f"{self.name}: there is no language {language!r}; there is {there}")
        return self.languages.index(language)

    def text(self, language: str | None = None) -> Text:
        """The documents of a language; of the only one if none is named."""
        if language is None and len(self.texts) > 1:
            raise ParameterError(f"{self.name}: which language? There is {', '.join(self.languages)}")
        return self.texts[0 if language is None else self.language(language)]

    def counts(self, language: str | None = None) -> Any:
        """How often each word of a language is in each document, as a sparse matrix int64[n_documents, n_types]."""
        from scipy.sparse import csr_matrix

        text = self.text(language)
        shape, ids = (len(text), len(text.vocabulary)), text.ids
        ones, starts = np.ones(len(ids.flat), np.int64), ids.offsets - ids.offsets[0]
        made = csr_matrix((ones, ids.flat.astype(np.int64), starts), shape=shape)
        made.sum_duplicates()
        return made

    # --- other documents

    def part(self, start: int, stop: int) -> Documents:
        """Documents start..stop-1; links that lead out of them are gone."""
        return self.take(np.arange(start, max(start, stop)))

    def take(self, numbers: ArrayLike) -> Documents:
        """Documents by their numbers, in that order, or by a mask; links that lead out of them are gone."""
        rows = row_numbers(numbers, len(self), "Documents")
        names = self.ids if self.ids is not None else tuple(str(k + 1) for k in range(len(self)))
        return replace(
            self,
            texts=tuple(text.take(rows) for text in self.texts),
            ids=tuple(names[row] for row in rows.tolist()),
            dates=None if self.dates is None else self.dates[rows],
            links=_links_among(self.links, rows, len(self)),
        )

    def in_languages(self, *languages: str) -> Documents:
        """The same documents in some of the languages, in that order."""
        numbers = [self.language(language) for language in languages]
        return replace(self, texts=tuple(self.texts[k] for k in numbers), languages=languages)

    @classmethod
    def apart(cls, *parts: Documents) -> Documents:
        """Documents of different languages one after another, none of them the same as one of another part.

        Where texts are about the same things, and are no translations of each other.

        Examples
        --------
        >>> Documents.apart(Documents.of([{"en": "a tree"}, {"en": "a ship"}]), Documents.of([{"de": "Bäume"}]))
        Documents(3 documents, en and de, 5 words)
        """
        sizes = [len(part) for part in parts]
        texts = tuple(
            _between(text, sum(sizes[:k]), sum(sizes[k + 1 :])) for k, part in enumerate(parts) for text in part.texts
        )
        dates = None
        if any(part.dates is not None for part in parts):
            own = (np.full(len(part), NO_DATE) if part.dates is None else part.dates for part in parts)
            dates = np.concatenate(list(own))
        languages = tuple(language for part in parts for language in part.languages)
        return cls(texts, languages, dates=dates, name=", ".join(dict.fromkeys(part.name for part in parts)))

    def linked(self, links: Iterable[tuple[str, str]]) -> Documents:
        """With links between documents, which are pairs of ids, in place of those that are there."""
        numbers = {self.id_of(k): k for k in range(len(self))}
        found = []
        for pair in links:
            for end in pair:
                if end not in numbers:
                    raise DocumentsError(f"{self.name}: a link names {end!r}, and no document has that id")
            found.append([numbers[end] for end in pair])
        return replace(self, links=np.array(found, np.int64).reshape(-1, 2))

    def pruned(
        self,
        *,
        min_documents: int = 1,
        max_share: float = 1.0,
        drop_frequent: int = 0,
        lowercase: bool = False,
        letters: bool = False,
    ) -> Documents:
        """The documents with fewer words, and vocabularies of what is left.

        Parameters
        ----------
        min_documents : int
            Words that are in fewer documents are left out,
        max_share : float
            those that are in more than this share of the documents of their language,
        drop_frequent : int
            and so many of the most frequent words of each language.
        lowercase : bool
            Write all words small first.
        letters : bool
            Leave out words without a letter, such as numbers and punctuation.

        Examples
        --------
        >>> documents = Documents.of(["The house , the 1990", "a house", "the mouse"])
        >>> documents.pruned(lowercase=True, letters=True, drop_frequent=1)[0].words
        {'': ('house',)}
        """
        form = str.lower if lowercase else str
        texts = tuple(_pruned(text, form, min_documents, max_share, drop_frequent, letters) for text in self.texts)
        return replace(self, texts=texts)

    # --- rows

    def _row(self, number: int) -> Document:
        words = {name: text.tokens(number) for name, text in zip(self.languages, self.texts, strict=True)}
        day = None if self.dates is None else self.dates[number].astype(object)
        to = self.links[self.links[:, 0] == number, 1].tolist()
        there = {language: some for language, some in words.items() if some}
        return Document(self.id_of(number), there, day, tuple(self.id_of(k) for k in to))

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        links = [counted(len(self.links), "link")] if len(self.links) else []
        names = [", ".join(self.languages[:-1]) + " and " * (len(self.languages) > 1) + self.languages[-1]]
        return [counted(len(self), "document"), *filter(None, names), counted(self.n_words, "word"), *links, *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [
            [self.id_of(k), *(" ".join(text.tokens(k)[:20]) for text in self.texts)]
            for k in range(min(most, len(self)))
        ]
        return {"heads": ["id", *self.languages], "rows": rows, "total": len(self)}


def day_of(given: str | date | None) -> np.datetime64:
    """A day as NumPy has it; `ValueError` for what is none.

    Examples
    --------
    >>> str(day_of("2011-03")), str(day_of("20110304")), str(day_of(None))
    ('2011-03-01', '2011-03-04', 'NaT')
    """
    if given is None or given == "":
        return NO_DATE
    if isinstance(given, date):
        return np.datetime64(given, "D")
    written = given.strip()
    if len(written) == 8 and written.isascii() and written.isdigit():
        written = f"{written[:4]}-{written[4:6]}-{written[6:]}"
    if not written[:1].isdigit():
        raise ValueError(f"{given!r} is not a date: write 2011, 2011-03 or 2011-03-04")
    try:
        return np.datetime64(written[:10], "D")
    except ValueError:
        raise ValueError(f"{given!r} is not a date: write 2011, 2011-03 or 2011-03-04") from None


def _links_among(links: NDArray[np.int64], rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Links between some documents, by their new numbers."""
    fresh = np.full(n, -1, np.int64)
    fresh[rows] = np.arange(len(rows))
    renumbered = fresh[links]
    return renumbered[(renumbered >= 0).all(axis=1)]


def _between(text: Text, before: int, after: int) -> Text:
    """With so many empty rows before it and after it."""
    ends = text.ids.offsets
    offsets = np.concatenate([np.full(before, ends[0]), ends, np.full(after, ends[-1])])
    return replace(text, ids=Ragged(text.ids.flat, offsets), spans=None, lines=None)


def _pruned(text: Text, form: Any, min_documents: int, max_share: float, drop_frequent: int, letters: bool) -> Text:
    vocabulary, number_of = text.vocabulary.mapped(form)
    flat = number_of[text.ids.flat] if text.n_words else np.zeros(0, np.int32)
    rows = np.repeat(np.arange(len(text)), text.ids.lengths)
    once = np.unique(rows * len(vocabulary) + flat) % max(1, len(vocabulary))
    in_documents = np.bincount(once, minlength=len(vocabulary))
    how_often = np.bincount(flat, minlength=len(vocabulary))
    most = max_share * max(1, int((text.ids.lengths > 0).sum()))
    kept = (how_often > 0) & (in_documents >= min_documents) & (in_documents <= most)
    if letters:
        kept &= np.fromiter((any(map(str.isalpha, word)) for word in vocabulary), bool, len(vocabulary))
    by_count = np.lexsort((np.arange(len(vocabulary)), -how_often))
    kept[[k for k in by_count.tolist() if kept[k]][:drop_frequent]] = False
    fresh = (np.cumsum(kept) - 1).astype(np.int32)
    stays = kept[flat]
    lengths = np.bincount(rows[stays], minlength=len(text))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    words = Vocabulary(word for word, stay in zip(vocabulary, kept.tolist(), strict=True) if stay)
    return replace(text, ids=Ragged(fresh[flat[stays]], offsets), vocabulary=words, spans=None, lines=None)
