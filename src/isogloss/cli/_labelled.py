"""Tables of labelled documents on the command line: which columns there are, and reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import READING

if TYPE_CHECKING:
    from isogloss.data.labelled import Columns, LabelledDocuments

__all__ = ["Heading", "LabelColumn", "TextColumns", "column_of", "read_documents", "text_columns"]

LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="The column of the label, by number from 0 or by name [default: 0].",
        rich_help_panel=READING,
    ),
]  # fmt: skip
TextColumns = Annotated[
    str | None,
    typer.Option(
        "--text", metavar="COLUMN,...", rich_help_panel=READING,
        help="The columns of the text, by number from 0 or by name; without it, all but the label and columns of "
        "numbers.",
    ),
]  # fmt: skip
Heading = Annotated[
    bool,
    typer.Option(
        "--heading", rich_help_panel=READING,
        help="The first line names the columns; so it does where a column is called by its name.",
    ),
]  # fmt: skip


def column_of(word: str) -> int | str:
    """A column: a number from 0, or a name.

    >>> column_of("2"), column_of("title")
    (2, 'title')
    """
    return int(word) if word.isascii() and word.isdigit() else word


def text_columns(words: str | None) -> tuple[int | str, ...] | None:
    """Columns with commas between them; None if nothing was said.

    >>> text_columns("2, body"), text_columns(None)
    ((2, 'body'), None)
    """
    if words is None:
        return None
    found = tuple(column_of(word.strip()) for word in words.split(",") if word.strip())
    if not found:
        raise typer.BadParameter("--text should name one column or more, with commas between them")
    return found


def read_documents(
    path: str,
    label: str | int | None,
    text: str | tuple[int | str, ...] | None,
    heading: bool,
    known: Columns | None = None,
    **reading: Any,
) -> LabelledDocuments:
    """A table with the columns that were asked for, or else with those that are known from another."""
    from isogloss.data.formats.labelled import read_labelled

    columns = text_columns(text) if isinstance(text, str) else text
    if columns is None and known is not None:
        columns, heading = known.text, heading or known.heading
    at = column_of(label) if isinstance(label, str) else label
    return read_labelled(path, label=at, text=columns, heading=heading or None, **reading)
