"""`LabelledDocuments`: documents with a label each, or none, as classifiers learn from and write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Text
from isogloss.data.ragged import Ragged
from isogloss.data.rows import Rows, counted, row_numbers
from isogloss.data.tokenise import tokenise_text
from isogloss.errors import DocumentsError, ParameterError

__all__ = ["Columns", "LabelledDocument", "LabelledDocuments", "copies_among", "joined_columns"]


class LabelledDocument(NamedTuple):
    """One of `LabelledDocuments`: its label, None if that is not known, and its words."""

    label: str | None
    words: tuple[str, ...]


class Columns(NamedTuple):
    """Which columns of a table were read.

    label : int or str, optional
        By number from 0, or by name.
    text : tuple of int or str
    heading : bool
        Whether the first line names the columns.
    """

    label: int | str | None
    text: tuple[int | str, ...]
    heading: bool


@dataclass(frozen=True, eq=False, repr=False)
class LabelledDocuments(Rows[LabelledDocument]):
    """Documents with labels: `documents[0]` is a `LabelledDocument`, `documents[:10]` are `LabelledDocuments`.

    Parameters
    ----------
    text : Text
        The words, a row for each document.
    labels : tuple of str or None
        None for a document whose label is not known.
    lines : tuple of str, optional
        Lines of the table that they were read from.
    columns : Columns, optional
        Which columns of that table were read.
    heading : str, optional
        The line that names the columns.
    name : str
        The file, for messages.
    cuts : int64[n_documents, n_columns], optional
        How many words of each document are of each column, where the text is of several; see `column`.

    Examples
    --------
    >>> reviews = LabelledDocuments.of([("pos", "A good book."), ("neg", "A bad one."), (None, "I read it.")])
    >>> reviews, reviews[0], reviews.names
    (LabelledDocuments(3 documents, 12 words, neg and pos), LabelledDocument(label='pos', words=('A', 'good', 'book', \
'.')), ('neg', 'pos'))
    """

    text: Text
    labels: tuple[str | None, ...]
    lines: tuple[str, ...] | None = None
    columns: Columns | None = None
    heading: str | None = None
    name: str = "<memory>"
    cuts: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if len(self.text) != len(self.labels):
            raise ParameterError(f"LabelledDocuments: {len(self.text)} documents, but {len(self.labels)} labels")
        if self.cuts is not None and (self.cuts.sum(axis=1) != self.text.ids.lengths).any():
            raise ParameterError("LabelledDocuments: columns should have as many words together as the text")

    @classmethod
    def of(
        cls, documents: Iterable[tuple[str | None, str | Sequence[str]] | Sequence[Any] | str], name: str = "<memory>"
    ) -> LabelledDocuments:
        """From pairs of a label and a text, or from texts alone; after a label, there may be several texts (`column`).

        A string is cut into words as `isogloss.data.tokenise` does; a list has the words themselves.

        Examples
        --------
        >>> found = LabelledDocuments.of([("pos", "Fine", "I liked it."), ("neg", "", "Bad.")])
        >>> found[0].words, found.column(0).tokens(0)
        (('Fine', 'I', 'liked', 'it', '.'), ('Fine',))
        """
        rows: list[Any] = [(None, one) if isinstance(one, str) else tuple(one) for one in documents]
        wide = len(rows[0]) if rows else 2
        if any(len(row) != wide or wide < 2 or not isinstance(row[0], str | None) for row in rows):
            raise ParameterError("LabelledDocuments.of: give pairs of a label and a text, or texts alone")
        labels = tuple(row[0] for row in rows)
        if wide == 2:
            return cls(_words([text for _, text in rows], name), labels, name=name)
        if not all(isinstance(cell, str) for row in rows for cell in row[1:]):
            raise ParameterError("LabelledDocuments.of: where there are several texts, each should be a string")
        text, cuts = joined_columns([row[1:] for row in rows], name)
        return cls(text, labels, name=name, cuts=cuts)

    @classmethod
    def read(cls, path: str | PathLike[str], **options: Any) -> LabelledDocuments:
        """Read a table; see `isogloss.data.formats.labelled.read_labelled`."""
        from isogloss.data.formats.labelled import read_labelled

        return read_labelled(path, **options)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """The labels that occur, in alphabetical order."""
        return tuple(sorted({label for label in self.labels if label is not None}))

    def column(self, number: int) -> Text:
        """The words of one column of the text, numbered from 0 among those of the text, a row for each document."""
        if self.cuts is None or not 0 <= number < self.cuts.shape[1]:
            many = 1 if self.cuts is None else self.cuts.shape[1]
            raise ParameterError(f"LabelledDocuments: the text has {many} columns, and no column {number}")
        ends = np.cumsum(self.cuts.ravel()).reshape(self.cuts.shape)[:, number]
        lengths = self.cuts[:, number]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        at = np.arange(offsets[-1]) + np.repeat(ends - lengths - offsets[:-1], lengths)
        return Text(Ragged(self.text.ids.flat[at], offsets), self.text.vocabulary, self.name)

    def numbers(self, names: Sequence[str]) -> NDArray[np.int64]:
        """int64[n_documents]: the number of each label among some names; −1 for none, and for other labels."""
        known = {name: number for number, name in enumerate(names)}
        return np.array([known.get(label, -1) if label is not None else -1 for label in self.labels], np.int64)

    def unlabelled(self) -> LabelledDocuments:
        """The same documents with no label known."""
        return replace(self, labels=(None,) * len(self))

    def with_labels(self, labels: Sequence[str | None]) -> LabelledDocuments:
        """The same documents with other labels."""
        return replace(self, labels=tuple(labels))

    def duplicates(self) -> NDArray[np.int64]:
        """int64[n_documents]: documents whose words are the same have the same number, however they are written.

        A copy of a document that is learnt from should not be among those that are scored; `held_out` keeps copies on
        one side. Case, punctuation and the white space between words do not count.

        Examples
        --------
        >>> LabelledDocuments.of(["Good book!", "A bad one.", "good  book"]).duplicates().tolist()
        [0, 1, 0]
        """
        return copies_among([self.text])

    def held_out(self, share: float = 0.2, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of documents to learn from and of documents to score, each label with the same share of both.

        Copies of a text stay on one side. A random order decides, that of `seed`.
        """
        if not 0 < share < 1:
            raise ParameterError(f"held_out: share should be between 0 and 1, not {share!r}")
        copies, names = self.duplicates(), self.names
        labels, away = self.numbers(names), np.zeros(len(self), np.bool_)
        rng = np.random.default_rng(seed)
        members = np.split(np.argsort(copies, kind="stable"), np.cumsum(np.bincount(copies))[:-1])
        for label in range(-1, len(names)):
            wanted = round(share * int((labels == label).sum()))
            groups = rng.permutation(np.unique(copies[labels == label]))
            taken = int(away[labels == label].sum())
            for group in groups.tolist():
                mine = members[group]
                if taken >= wanted:
                    break
                if taken + len(mine) <= wanted and not away[mine].any():
                    away[mine] = True
                    taken += int((labels[mine] == label).sum())
        return np.flatnonzero(~away), np.flatnonzero(away)

    # --- rows

    def part(self, start: int, stop: int) -> LabelledDocuments:
        """Documents start..stop-1."""
        lines = None if self.lines is None else self.lines[start:stop]
        cuts = None if self.cuts is None else self.cuts[start:stop]
        return replace(self, text=self.text.part(start, stop), labels=self.labels[start:stop], lines=lines, cuts=cuts)

    def take(self, numbers: ArrayLike) -> LabelledDocuments:
        """Documents by their numbers, in that order, or by a mask."""
        rows = row_numbers(numbers, len(self), "LabelledDocuments")
        chosen = rows.tolist()
        lines = None if self.lines is None else tuple(self.lines[row] for row in chosen)
        cuts = None if self.cuts is None else self.cuts[rows]
        labels = tuple(self.labels[row] for row in chosen)
        return replace(self, text=self.text.take(rows), labels=labels, lines=lines, cuts=cuts)

    def _row(self, number: int) -> LabelledDocument:
        return LabelledDocument(self.labels[number], self.text.tokens(number))

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        names = list(self.names)
        kinds = [", ".join(names[:-1]) + " and " * (len(names) > 1) + names[-1]] if 0 < len(names) <= 6 else []
        kinds = kinds or ([counted(len(names), "label")] if names else [])
        return [counted(len(self), "document"), counted(self.text.n_words, "word"), *kinds, *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[k, self.labels[k] or "", " ".join(self.text.tokens(k)[:20])] for k in range(min(most, len(self)))]
        return {"heads": ["", "label", "text"], "rows": rows, "total": len(self)}


def copies_among(texts: Sequence[Text]) -> NDArray[np.int64]:
    """int64[n]: a number for each document of some texts, one text after the other; copies have the same number.

    What a copy is: see `LabelledDocuments.duplicates`.
    """
    seen: dict[str, int] = {}
    found = []
    for text in texts:
        plain = ["".join(filter(str.isalnum, word.lower())) for word in text.vocabulary]
        for k in range(len(text)):
            key = " ".join(filter(None, (plain[word] for word in text.ids[k].tolist())))
            found.append(seen.setdefault(key, len(seen)))
    return np.array(found, np.int64)


def joined_columns(rows: Sequence[Sequence[str]], name: str) -> tuple[Text, NDArray[np.int64]]:
    """The words of all columns of each row, and how many of them are of each column."""
    lines = [" ".join(" ".join(row).split("\n")) for row in rows]
    text = tokenise_text(lines, name=name)
    wide = len(rows[0]) if rows else 1
    ends = np.cumsum([[len(cell) + 1 for cell in row] for row in rows], axis=1).reshape(len(rows), wide)
    starts = np.zeros(0, np.int64) if text.spans is None else text.spans.flat[:, 0].astype(np.int64)
    row_of = np.repeat(np.arange(len(rows)), text.ids.lengths)
    column_of = (starts[:, None] >= ends[row_of]).sum(axis=1)
    return text, np.bincount(row_of * wide + column_of, minlength=len(rows) * wide).reshape(len(rows), wide)


def _words(texts: Sequence[str | Sequence[str]], name: str) -> Text:
    if all(isinstance(text, str) for text in texts):
        return tokenise_text([" ".join(str(text).split("\n")) for text in texts], name=name)
    if any(isinstance(text, str) for text in texts):
        raise DocumentsError(f"{name}: some texts are strings and some are lists of words; give one of both")
    return Text.of([list(text) for text in texts], name)
