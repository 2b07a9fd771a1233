"""Files of documents: a document a line in a file for each language, or a folder of files, or MALLET's lines."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from isogloss.data.bitext import Text
from isogloss.data.documents import Documents
from isogloss.data.formats.document_records import is_json_lines, read_json_documents
from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.reading import TOKENISERS, TextForm
from isogloss.errors import ParameterError

__all__ = ["FORMATS", "read_documents"]

FORMATS = ("lines", "mallet", "folder")

_ENDINGS = re.compile(r"\.(gz|xz|zst|txt|tok|tsv)$")


def read_documents(
    *paths: PathOrName,
    languages: Sequence[str] | None = None,
    format: str | None = None,
    dates: PathOrName | None = None,
    tokenise: str = "space",
    encoding: str = "utf-8",
    errors: str = "strict",
) -> Documents:
    """Read documents, a line each, from one file for each language: line k of every file is the same document.

    Parameters
    ----------
    *paths : str or path
        An empty line is a document that this language lacks. Or a folder for each language, with a file for each
        document: files of the same name are the same document. One file whose name ends in `.jsonl` has documents as
        `read_json_documents` reads them.
    languages : sequence of str, optional
        Names of the languages, one for each file; what is last in the names of files otherwise (`speeches.de.txt.gz`
        is of `de`).
    format : "lines", "mallet" or "folder", optional
        "mallet": lines have the name of a document and a label before the text, and documents of the same name are the
        same. If not given, folders are folders, and all others have lines.
    dates : path, optional
        A file with a date a line, for each document.
    tokenise : "space", "unicode" or "characters"
        What a word is, as in `isogloss.data.formats.read_bitext`.
    encoding, errors : str
        As in `isogloss.data.formats.read_bytes`.
    """
    from isogloss.data.formats.document_files import read_dates, read_folders, read_named_lines

    if not paths:
        raise ParameterError("read_documents: give the path of a file for each language")
    if len(paths) == 1 and is_json_lines(paths[0]):
        return read_json_documents(paths[0], encoding=encoding, errors=errors)
    if languages is not None and len(languages) != len(paths):
        raise ParameterError(f"read_documents: {len(paths)} files, but {len(languages)} languages")
    if format not in (None, *FORMATS) or tokenise not in TOKENISERS:
        raise ParameterError(f"read_documents: there is no format {format!r} with tokenise={tokenise!r}")
    names = tuple(map(language_of, paths)) if languages is None else tuple(languages)
    reading = {"encoding": encoding, "errors": errors, "tokenise": tokenise}
    folders = [os.path.isdir(name_of(path)) for path in paths]
    if format == "folder" or (format is None and all(folders)):
        if not all(folders):
            raise ParameterError(f"read_documents: {name_of(paths[folders.index(False)])} is no folder")
        made = read_folders(paths, names, **reading)
    elif format == "mallet":
        made = read_named_lines(paths, names, **reading)
    else:
        texts = tuple(_lines(path, **reading) for path in paths)
        made = Documents(texts, names, name=", ".join(map(name_of, paths)))
    return made if dates is None else read_dates(made, dates)


def _lines(path: PathOrName, *, encoding: str, errors: str, tokenise: str) -> Text:
    """The documents of one language, a line each."""
    from isogloss.data.tokenise import tokenise_bytes

    data = read_bytes(path, encoding=encoding, errors=errors)
    if tokenise == "space":
        return replace(Text.from_bytes(data, name_of(path)), form=TextForm(tokenise))
    return replace(tokenise_bytes(data, tokenise, name=name_of(path)), form=TextForm(tokenise))


def language_of(path: PathOrName) -> str:
    """What the name of a file says of its language.

    Examples
    --------
    >>> language_of("data/en.txt.gz"), language_of("speeches.de.txt"), language_of("news-fr.txt")
    ('en', 'de', 'news-fr')
    """
    name = os.path.basename(name_of(path))
    while (shorter := _ENDINGS.sub("", name)) != name:
        name = shorter
    return name.rsplit(".", 1)[-1]
