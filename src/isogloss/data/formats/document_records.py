"""Documents with ids, dates and links: JSON lines, and tables of nodes and edges."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from os import fspath
from typing import Any

import numpy as np

from isogloss.data.documents import NO_DATE, Documents, day_of
from isogloss.data.formats.files import IsoglossWarning, PathOrName, name_of, read_bytes
from isogloss.data.tokenise import tokenise_text
from isogloss.errors import DocumentsError

__all__ = ["is_json_lines", "read_document_tables", "read_json_documents"]

_JSON_LINES = re.compile(r"\.(jsonl|ndjson)(\.(gz|xz|zst))?$")
FIELDS = ("id", "date", "language", "text", "links")


def is_json_lines(path: PathOrName) -> bool:
    """Whether the name of a file says that it has a JSON object on each line.

    Examples
    --------
    >>> is_json_lines("news.jsonl.gz"), is_json_lines("news.txt")
    (True, False)
    """
    return bool(_JSON_LINES.search(fspath(path)))


def read_json_documents(
    path: PathOrName, *, tokenise: str = "unicode", encoding: str = "utf-8", errors: str = "strict"
) -> Documents:
    """Read documents from JSON lines: an object with `id`, `text` and perhaps `date`, `language` and `links` on each.

    Lines with one id in several languages are one document; it has the links of all of them. Links to documents that
    are not in the file are left out, and how many there were is warned of. Other fields are not looked at.

    Parameters
    ----------
    path : str or path
    tokenise : str
        How texts are cut into words; see `isogloss.data.tokenise.tokenise_text`.
    encoding, errors : str
        As in `isogloss.data.formats.read_bytes`.
    """
    name, found = name_of(path), _Found(name_of(path))
    for number, line in _lines(path, encoding, errors):
        record = _record(line, f"{name}, line {number}")
        found.add(number, record["id"], record["date"], record["language"], record["text"])
        found.links += [(number, record["id"], to) for to in record["links"]]
    return found.made(tokenise)


def read_document_tables(
    nodes: PathOrName,
    edges: PathOrName | None = None,
    *,
    tokenise: str = "unicode",
    encoding: str = "utf-8",
    errors: str = "strict",
) -> Documents:
    """Read documents from a table, ``id TAB date TAB text``, and links from another, ``from TAB to`` (citing, cited).

    A date may be a year alone, or empty. Links with ids that the first table lacks are left out, and how many there
    were is warned of.

    Parameters
    ----------
    nodes, edges : str or path
    tokenise : str
        How texts are cut into words; see `isogloss.data.tokenise.tokenise_text`.
    encoding, errors : str
        As in `isogloss.data.formats.read_bytes`.
    """
    name = name_of(nodes)
    found = _Found(name)
    for number, line in _lines(nodes, encoding, errors):
        columns = line.split("\t", 2)
        if len(columns) < 3:
            raise DocumentsError(
                f"{name}, line {number}: {len(columns)} column{'s'[: len(columns) != 1]} in {_short(line)}; a line is "
                "id TAB date TAB text. JSON lines? `isogloss threads FILE` reads them, without --documents"
            )
        found.add(number, columns[0], _day(columns[1], f"{name}, line {number}"), "", columns[2].replace("\t", " "))
    if edges is not None:
        found.name_of_links = name_of(edges)
        for number, line in _lines(edges, encoding, errors):
            ends = line.split("\t")
            if len(ends) != 2 or not all(ends):
                raise DocumentsError(
                    f"{name_of(edges)}, line {number}: {_short(line)} is not two ids with a tab between them"
                )
            found.links.append((number, ends[0], ends[1]))
    return found.made(tokenise)


@dataclass
class _Found:
    """Documents as they are met, by id."""

    name: str
    days: dict[str, tuple[int, np.datetime64]] = field(default_factory=dict)
    texts: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)
    links: list[tuple[int, str, str]] = field(default_factory=list)
    name_of_links: str = ""

    def add(self, number: int, name: str, day: np.datetime64, language: str, text: str) -> None:
        if not name:
            raise DocumentsError(f"{self.name}, line {number}: the id is empty")
        there = self.texts.setdefault(language, {})
        if name in there:
            which = f" in the language {language!r}" if language else ""
            raise DocumentsError(
                f"{self.name}, line {number}: the id {name!r} is that of line {there[name][0]} already{which}"
            )
        there[name] = number, " ".join(text.split())
        before, known = self.days.setdefault(name, (number, day))
        if not np.isnat(day) and not np.isnat(known) and day != known:
            raise DocumentsError(
                f"{self.name}, line {number}: {name!r} is of {day}, but on line {before} it is of {known}"
            )
        if np.isnat(known):
            self.days[name] = number, day

    def made(self, tokenise: str) -> Documents:
        if not self.days:
            raise DocumentsError(f"{self.name}: there is no document in it")
        ids, languages = tuple(self.days), tuple(self.texts)
        texts = tuple(
            tokenise_text([self.texts[language].get(name, (0, ""))[1] for name in ids], tokenise, name=self.name)
            for language in languages
        )
        dates = np.array([day for _, day in self.days.values()], "datetime64[D]")
        made = Documents(texts, languages, ids, None if np.isnat(dates).all() else dates, name=self.name)
        return made.linked(self._known_links())

    def _known_links(self) -> Iterable[tuple[str, str]]:
        """Links between documents that are there, each once; what is left out is said."""
        place = self.name_of_links or self.name
        unknown = [(number, end) for number, *pair in self.links for end in pair if end not in self.days]
        if self.name_of_links and unknown and {n for n, *_ in self.links} <= {n for n, _ in unknown}:
            number, end = unknown[0]
            raise DocumentsError(
                f"{place}: no line has two ids of {self.name}; line {number} names {end!r}. Are these the links of "
                "other documents?"
            )
        if unknown:
            number, end = unknown[0]
            warnings.warn(
                f"{place}: {len(unknown)} link{'s'[: len(unknown) != 1]} with an id that no document has "
                f"({end!r} on line {number}) left out",
                IsoglossWarning,
                stacklevel=4,
            )
        return dict.fromkeys((one, other) for _, one, other in self.links if one in self.days and other in self.days)


def _lines(path: PathOrName, encoding: str, errors: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers."""
    text = read_bytes(path, encoding=encoding, errors=errors).decode("utf-8")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.removesuffix("\r")


def _record(line: str, place: str) -> dict[str, Any]:
    """The five fields of a line, of their right kinds."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as problem:
        table = ". A table? Give it with --documents" if line.count("\t") >= 2 else ""
        raise DocumentsError(f"{place}: this is not JSON ({problem}): {_short(line)}{table}") from None
    if not isinstance(given, dict):
        raise DocumentsError(f"{place}: an object with {', '.join(FIELDS)} is needed, not {_short(line)}")
    for name in ("id", "text"):
        if name not in given:
            raise DocumentsError(f"{place}: there is no {name!r}; an object has {', '.join(FIELDS)}")
    name, links = given["id"], given.get("links") or []
    if isinstance(name, bool) or not isinstance(name, (str, int)):
        raise DocumentsError(f"{place}: the id should be a string, not {_short(json.dumps(name))}")
    for what in ("text", "language"):
        if not isinstance(given.get(what, "") or "", str):
            raise DocumentsError(f"{place}: {what} should be a string, not {_short(json.dumps(given[what]))}")
    if not isinstance(links, list) or not all(isinstance(to, (str, int)) and not isinstance(to, bool) for to in links):
        raise DocumentsError(f"{place}: links should be a list of ids, not {_short(json.dumps(links))}")
    return {
        "id": str(name), "date": _day(given.get("date"), place), "language": given.get("language") or "",
        "text": given["text"] or "", "links": [str(to) for to in links],
    }  # fmt: skip


def _day(given: Any, place: str) -> np.datetime64:
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if given is not None and not isinstance(given, str):
        raise DocumentsError(f"{place}: the date should be a string, not {_short(json.dumps(given))}")
    try:
        return day_of(given.strip()) if given else NO_DATE
    except ValueError as problem:
        raise DocumentsError(f"{place}: {problem}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
