"""Files of documents: a document a line in a file for each language, or a folder of files, or MALLET's lines."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from isogloss.data.bitext import Text
from isogloss.data.documents import Documents
from isogloss.data.formats.document_records import is_json_lines, read_json_documents
from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.reading import TOKENISERS, TextForm
from isogloss.errors import ParameterError

__all__ = ["FORMATS", "languages_of", "read_documents"]

FORMATS = ("lines", "mallet", "folder")

_ENDINGS = re.compile(r"\.(gz|xz|zst|txt|tok|tsv)$")
_BETWEEN = re.compile(r"[._-]")
_CODE = re.compile(r"[a-z]{2,3}")


def read_documents(
    *paths: PathOrName,
    languages: Sequence[str] | None = None,
    format: str | None = None,
    dates: PathOrName | None = None,
    tokenise: str | None = None,
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
        Names of the languages, one for each file; if not given, what the names of files say (`languages_of`). Of JSON
        lines, which name them, those that are wanted.
    format : "lines", "mallet" or "folder", optional
        "mallet": lines have the name of a document and a label before the text, and documents of the same name are the
        same. If not given, folders are folders, and all others have lines.
    dates : path, optional
        A file with a date a line, for each document.
    tokenise : "space", "unicode" or "characters", optional
        What a word is, as in `isogloss.data.formats.read_bitext`; if not given, "space", and "unicode" in JSON lines.
    encoding, errors : str
        As in `isogloss.data.formats.read_bytes`.
    """
    from isogloss.data.formats.document_files import read_dates, read_folders, read_named_lines

    if not paths:
        raise ParameterError("read_documents: give the path of a file for each language")
    if any(map(is_json_lines, paths)):
        if len(paths) > 1 or format is not None or dates is not None:
            named = ", ".join(map(name_of, paths))
            raise ParameterError(f"{named}: JSON lines have all languages and dates in one file. Give that alone")
        every = read_json_documents(paths[0], tokenise=tokenise or "unicode", encoding=encoding, errors=errors)
        return every if languages is None else every.in_languages(*languages)
    if languages is not None and len(languages) != len(paths):
        raise ParameterError(f"read_documents: {len(paths)} files, but {len(languages)} languages")
    tokenise = tokenise or "space"
    if format not in (None, *FORMATS) or tokenise not in TOKENISERS:
        raise ParameterError(f"read_documents: there is no format {format!r} with tokenise={tokenise!r}")
    names = languages_of(paths) if languages is None else tuple(languages)
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


def languages_of(paths: Sequence[PathOrName], known: Collection[str] = ()) -> tuple[str, ...]:
    """What the names of files say of their languages, in small letters.

    That is the part in which they differ, best of all one of two or three letters; of a single file the last. Where
    languages are known, their names are looked for first.

    Examples
    --------
    >>> languages_of(["data/EN.txt.gz", "data/FR.txt.gz"]), languages_of(["en.train", "fr.train"])
    (('en', 'fr'), ('en', 'fr'))
    >>> languages_of(["speeches.de.txt"]), languages_of(["fr.held-out.txt"], known=("en", "fr"))
    (('de',), ('fr',))
    """
    parts = [_parts(path) for path in paths]
    told = tuple(next((part for part in reversed(own) if part in known), "") for own in parts)
    if known and all(told) and len(set(told)) == len(told):
        return told
    if len(paths) == 1:
        return (parts[0][-1],)
    least = min(map(len, parts))
    ways = [tuple(own[place] for own in parts) for place in (*range(-1, -least - 1, -1), *range(least))]
    distinct = [way for way in ways if len(set(way)) == len(way)]
    short = [way for way in distinct if all(map(_CODE.fullmatch, way))]
    return next(iter(short or distinct), tuple(".".join(own) for own in parts))


def _parts(path: PathOrName) -> list[str]:
    name = os.path.basename(name_of(path)).lower()
    while (shorter := _ENDINGS.sub("", name)) != name:
        name = shorter
    return _BETWEEN.split(name)
