"""Tables of labelled documents: a document a line, a tab between columns, one of which has the label."""

from __future__ import annotations

import re
from collections.abc import Sequence

from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.labelled import Columns, LabelledDocuments, joined_columns
from isogloss.data.rows import counted
from isogloss.errors import DocumentsError, ParameterError, UsageError

__all__ = ["Column", "parse_labelled", "read_labelled", "read_rows", "scored_columns", "written"]

Column = int | str
_NUMBER = re.compile(r"[-+]?[\d.,]*\d[\d.,%]*\s*$")
_WRITTEN = "\tpredicted\tprobability"
"""What `written` adds to a heading."""
_LOOKED_AT = 200
"""Rows that are enough to tell a column of numbers."""


def read_labelled(
    path: PathOrName,
    *,
    label: Column | None = 0,
    text: Sequence[Column] | None = None,
    heading: bool | None = None,
    encoding: str = "utf-8",
    errors: str = "strict",
) -> LabelledDocuments:
    """Read documents from a table, a document a line and a tab between columns.

    Parameters
    ----------
    path : str or path
        gzip, xz and zstd are undone; ``-`` is standard input.
    label : int or str, optional
        The column of the label, by number from 0 or by the name in the heading; None if there is none to be looked at.
    text : sequence of int or str, optional
        The columns of the text, which are joined; `LabelledDocuments.column` has each by itself. All but the label and
        columns of nothing but numbers, such as stars, if not given.
    heading : bool, optional
        Whether the first line names the columns: it does if a column is called by its name.
    encoding, errors : str
        As in `isogloss.data.formats.read_bytes`.

    Raises
    ------
    DocumentsError
        A line has too few columns, or a column is not there. The message names file and line.
    """
    data = read_bytes(path, encoding=encoding, errors=errors)
    return parse_labelled(data, name_of(path), label=label, text=text, heading=heading)


def parse_labelled(
    data: bytes,
    name: str = "<memory>",
    *,
    label: Column | None = 0,
    text: Sequence[Column] | None = None,
    heading: bool | None = None,
) -> LabelledDocuments:
    """Documents of a table in UTF-8; see `read_labelled`.

    Examples
    --------
    >>> table = b"kind\\tstars\\ttitle\\tbody\\npos\\t5\\tFine\\tI liked it.\\nneg\\t1\\tNo\\tBad.\\n"
    >>> found = parse_labelled(table, label="kind", text=["title", "body"])
    >>> found.labels, found[0].words
    (('pos', 'neg'), ('Fine', 'I', 'liked', 'it', '.'))
    >>> parse_labelled(table, heading=True).columns
    Columns(label=0, text=('title', 'body'), heading=True)
    """
    named = any(isinstance(column, str) for column in (label, *(text or ())))
    if heading is False and named:
        raise UsageError(f"{name}: columns without a heading have numbers, from 0, and no names")
    lines, head = read_rows(data, name, bool(heading) or named)
    if not lines:
        raise DocumentsError(f"{name}: has no documents. Every line of a table is one, with a tab between columns")
    first = 1 + (head is not None)
    names = [] if head is None else head.split("\t")
    rows = [line.split("\t") for line in lines]
    wide = len(rows[0]) if rows else len(names)
    at = None if label is None or (wide == 1 and label == 0) else _place(label, names, wide, name)
    if text is None:
        places = [c for c in range(wide) if c != at and not _all_numbers(rows, c)] or [
            c for c in range(wide) if c != at
        ]
        text = tuple(names[c] for c in places) if len(set(names)) == len(names) > max(places, default=0) else (*places,)
        strange = next((k for k, row in enumerate(rows) if len(row) > wide), None)
        if strange is not None:
            raise DocumentsError(
                f"{name}, line {strange + first}: {counted(len(rows[strange]), 'column')} where the table begins with "
                f"{wide}. Take the tab out of the text, or name the columns of the text"
            )
    else:
        places = [_place(column, names, wide, name) for column in text]
    if not places:
        raise DocumentsError(f"{name}: there is no column of text beside the label. Name the columns of the text")
    if at in places:
        raise UsageError(f"{name}: column {label} is the label, and cannot be text as well. Name other columns")
    needed = max([*places, -1 if at is None else at]) + 1
    texts, labels = [], []
    for number, row in enumerate(rows, first):
        if len(row) < needed:
            raise DocumentsError(
                f"{name}, line {number}: {counted(len(row), 'column')} where there should be {needed} or more, with a "
                f"tab between them: {lines[number - first]!r:.60}"
            )
        if at is not None and not row[at].strip():
            raise DocumentsError(f"{name}, line {number}: column {label} should have a label, and is empty")
        texts.append([row[place] for place in places])
        labels.append(None if at is None else row[at].strip())
    told = Columns(None if at is None else label, tuple(text), head is not None)
    found, cuts = joined_columns(texts, name)
    given = cuts if len(places) > 1 else None
    return LabelledDocuments(found, tuple(labels), tuple(lines), told, head, name, given)


def read_rows(data: bytes, name: str, heading: bool) -> tuple[list[str], str | None]:
    """The lines of a table, none of which may be empty, and its heading."""
    lines = [line.removesuffix("\r") for line in data.decode().split("\n")]
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise DocumentsError(f"{name}, line {number}: is empty. Every line of a table is a document; take it out")
    if heading and not lines:
        raise DocumentsError(f"{name}: is empty, and should begin with the names of its columns")
    return (lines[1:], lines[0]) if heading else (lines, None)


def scored_columns(data: bytes, name: str, label: Column, heading: bool | None = None) -> tuple[list[str], list[str]]:
    """What was predicted, the last column but one of a table, and the labels of another column.

    The heading that `written` makes is known without being told.

    Examples
    --------
    >>> scored_columns(b"pos\\tFine book.\\tneg\\t0.75\\n", "out.tsv", 0)
    (['neg'], ['pos'])
    """
    headed = data.partition(b"\n")[0].removesuffix(b"\r").decode().endswith(_WRITTEN)
    lines, head = read_rows(data, name, bool(heading) or headed or isinstance(label, str))
    rows = [line.split("\t") for line in lines]
    names = [] if head is None else head.split("\t")
    wide = len(rows[0]) if rows else len(names)
    first = 1 + (head is not None)
    for number, row in enumerate(rows, first):
        if len(row) != wide or wide < 3 or not _is_share(row[-1]):
            raise DocumentsError(
                f"{name}, line {number}: the last two columns should be a label and its probability, as `isogloss "
                f"adapt apply` writes them, after {counted(max(1, wide - 2), 'other')}: {lines[number - first]!r:.60}"
            )
    if not rows:
        raise DocumentsError(f"{name}: there are no documents to score")
    at = _place(label, names, wide, name)
    if at >= wide - 2:
        raise UsageError(
            f"{name}: column {label} was written by `isogloss adapt apply`. Name the column of the right label"
        )
    return [row[-2] for row in rows], [row[at].strip() for row in rows]


def _is_share(word: str) -> bool:
    try:
        return 0 <= float(word) <= 1
    except ValueError:
        return False


def _place(column: Column, names: Sequence[str], wide: int, name: str) -> int:
    """Where a column is."""
    if isinstance(column, bool) or not isinstance(column, int | str):
        raise ParameterError(f"{name}: a column is a number from 0 or a name, not {column!r}")
    if isinstance(column, str):
        if column not in names:
            raise DocumentsError(f"{name}, line 1: no column is called {column!r}; there are {', '.join(names)}")
        return names.index(column)
    if not 0 <= column < max(wide, 1):
        raise DocumentsError(
            f"{name}, line 1: there is no column {column}, but {counted(wide, 'column')} with numbers from 0 and a tab "
            "between them. Give a table that has it, or name other columns"
        )
    return column


def _all_numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    some = [row[column] for row in rows[:_LOOKED_AT] if column < len(row)]
    return bool(some) and all(_NUMBER.match(entry.strip()) for entry in some)


def written(
    documents: LabelledDocuments, labels: Sequence[str], probabilities: Sequence[float], places: int = 4
) -> bytes:
    """The table that documents were read from, with a label and its probability as the last two columns of each line.

    Examples
    --------
    >>> documents = parse_labelled(b"pos\\tFine book.\\n")
    >>> written(documents, ["neg"], [0.75])
    b'pos\\tFine book.\\tneg\\t0.7500\\n'
    """
    lines = documents.lines
    if lines is None:
        lines = tuple(" ".join(words).replace("\t", " ") for _, words in documents)
    head = [] if documents.heading is None else [documents.heading + _WRITTEN]
    rows = [
        f"{line}\t{label}\t{probability:.{places}f}"
        for line, label, probability in zip(lines, labels, probabilities, strict=True)
    ]
    return "".join(f"{line}\n" for line in [*head, *rows]).encode()
