"""Files of documents: a document a line in a file for each language."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from isogloss.data.bitext import Text
from isogloss.data.documents import Documents
from isogloss.data.formats.document_records import is_json_lines, read_json_documents
from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.errors import ParameterError

__all__ = ["read_documents"]

_ENDINGS = re.compile(r"\.(gz|xz|zst|txt|tok|tsv)$")


def read_documents(
    *paths: PathOrName, languages: Sequence[str] | None = None, encoding: str = "utf-8", errors: str = "strict"
) -> Documents:
    """Read documents, a line each, from one file for each language: line k of every file is the same document.

    Parameters
    ----------
    *paths : str or path
        An empty line is a document that this language lacks. One file whose name ends in `.jsonl` has documents as
        `read_json_documents` reads them.
    languages : sequence of str, optional
        Names of the languages, one for each file; what is last in the names of files otherwise (`speeches.de.txt.gz`
        is of `de`).
    encoding, errors : str
        As in `isogloss.data.formats.read_bytes`.
    """
    if not paths:
        raise ParameterError("read_documents: give the path of a file for each language")
    if len(paths) == 1 and is_json_lines(paths[0]):
        if languages is not None:
            raise ParameterError("read_documents: JSON lines say themselves which language they are in")
        return read_json_documents(paths[0], encoding=encoding, errors=errors)
    if languages is not None and len(languages) != len(paths):
        raise ParameterError(f"read_documents: {len(paths)} files, but {len(languages)} languages")
    names = tuple(map(language_of, paths)) if languages is None else tuple(languages)
    texts = tuple(Text.from_bytes(read_bytes(path, encoding=encoding, errors=errors), name_of(path)) for path in paths)
    return Documents(texts, names, name=", ".join(map(name_of, paths)))


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
