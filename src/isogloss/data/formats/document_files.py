"""Documents from folders with a file for each, and from lines of a name, a label and a text, as MALLET has them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isogloss.data.bitext import Text
from isogloss.data.documents import Documents, day_of
from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.reading import TextForm
from isogloss.data.tokenise import tokenise_text
from isogloss.errors import DocumentsError

__all__ = ["read_dates", "read_folders", "read_named_lines"]


def read_folders(
    folders: Sequence[PathOrName], languages: Sequence[str], *, encoding: str, errors: str, tokenise: str
) -> Documents:
    """A folder for each language, a file for each document: files of one name are one document.

    The endings of names do not count: `a.txt` and `a.txt.gz` are the document `a`. Hidden files are passed over.
    """
    found: list[dict[str, str]] = []
    for folder in folders:
        own: dict[str, str] = {}
        for path in sorted(Path(name_of(folder)).iterdir()):
            if path.name.startswith(".") or not path.is_file():
                continue
            name = path.name.partition(".")[0]
            if name in own:
                raise DocumentsError(f"{folder}: two files are called {name}, such as {path.name}. Rename one of them")
            own[name] = read_bytes(path, encoding=encoding, errors=errors).decode()
        if not own:
            raise DocumentsError(f"{folder}: there are no files in this folder")
        found.append(own)
    return _by_name(found, languages, [name_of(folder) for folder in folders], tokenise)


def read_named_lines(
    paths: Sequence[PathOrName], languages: Sequence[str], *, encoding: str, errors: str, tokenise: str
) -> Documents:
    """Lines of `name label text`, a file for each language: lines of one name are one document; labels are not kept."""
    found: list[dict[str, str]] = []
    for path in paths:
        own: dict[str, str] = {}
        lines = read_bytes(path, encoding=encoding, errors=errors).decode().split("\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            parts = line.split(None, 2)
            if len(parts) < 2:
                raise DocumentsError(
                    f"{name_of(path)}, line {number}: {line[:40]!r} is not `name label text`. A document a line "
                    "without a name is read without --format mallet"
                )
            if parts[0] in own:
                raise DocumentsError(f"{name_of(path)}, line {number}: the name {parts[0]!r} is there already")
            own[parts[0]] = parts[2] if len(parts) > 2 else ""
        found.append(own)
    return _by_name(found, languages, [name_of(path) for path in paths], tokenise)


def read_dates(documents: Documents, path: PathOrName) -> Documents:
    """Documents with the dates of a file, a date a line, as 2011, 2011-03 or 2011-03-04; an empty line: not known."""
    from dataclasses import replace

    lines = read_bytes(path).decode().splitlines()
    if len(lines) != len(documents):
        raise DocumentsError(f"{name_of(path)} has {len(lines)} dates, but there are {len(documents)} documents")
    days = []
    for number, line in enumerate(lines, 1):
        try:
            days.append(day_of(line.strip()))
        except ValueError as problem:
            raise DocumentsError(f"{name_of(path)}, line {number}: {problem}") from None
    return replace(documents, dates=np.array(days, "datetime64[D]"))


def _by_name(
    found: Sequence[dict[str, str]], languages: Sequence[str], names: Sequence[str], tokenise: str
) -> Documents:
    """Texts by the names of documents, in the order in which these are first met."""
    ids = tuple(dict.fromkeys(name for own in found for name in own))
    texts = []
    for own, place in zip(found, names, strict=True):
        lines = [" ".join(own.get(name, "").split()) for name in ids]
        text = Text.of(lines, place) if tokenise == "space" else tokenise_text(lines, tokenise, name=place)
        texts.append(_formed(text, tokenise))
    return Documents(tuple(texts), tuple(languages), ids, name=", ".join(map(os.path.basename, names)))


def _formed(text: Text, tokenise: str) -> Text:
    from dataclasses import replace

    return replace(text, form=TextForm(tokenise, None))
