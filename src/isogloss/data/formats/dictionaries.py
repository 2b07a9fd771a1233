"""Dictionaries of tags in files: tables of words and tags, headings of Wiktionary, tables of UniMorph."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from isogloss.data.formats.files import IsoglossWarning, PathOrName, name_of, read_bytes
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.tagsets import TAGSETS, UNIMORPH, WIKTIONARY, normal_label, possible_tags, to_universal12
from isogloss.errors import DataError, ParameterError

__all__ = ["FORMATS", "format_dictionary", "parse_dictionary", "read_dictionary"]

FORMATS = ("auto", "tsv", "unimorph")

Labels = tuple[str, ...]
Meaning = Callable[[str], Labels | None]

_HEADINGS = frozenset(["tag", "tags", "pos", "upos", "label", "labels", "part of speech"])
_BETWEEN = re.compile(r"[|;,]")
_DASHES = frozenset("-–—")
_LOOKED_AT = 200
_MOST_NAMED = 8


def read_dictionary(
    path: PathOrName,
    *,
    format: str = "auto",
    tagset: str = "auto",
    columns: tuple[int, int] | None = None,
    unknown: str = "error",
    encoding: str = "utf-8",
    errors: str = "strict",
) -> TagDictionary:
    """Read which tags words may have.

    Parameters
    ----------
    path : str or path
        ``-`` is standard input. gzip, xz and zstd are undone whatever the file is called.
    format : {"auto", "tsv", "unimorph"}
        "tsv" is a line ``word TAB tag``. A word may have several lines, or several tags in one, between spaces, commas,
        ``|`` or ``;``. Not looked at are further columns, empty lines, lines that begin with ``#`` and have no tab, and
        a first line of headings. "unimorph" is ``lemma TAB form TAB features``, of which the form
        and its part of speech are kept. "auto" looks at the first lines.
    tagset : {"auto", "universal12", "ud17", "any"}
        What the tags are to be. "auto" keeps those of universal12 or of ud17, and makes universal12 of others that are
        known: headings of Wiktionary ("Proper noun", "Verb form"), codes of UniMorph. "any" keeps whatever is there.
    columns : (int, int), optional
        Which columns of "tsv", from 0, have the word and its tag; (0, 1) by default.
    unknown : {"error", "drop"}
        Whether a tag that is not known is an error, or its lines are left out with a warning.
    encoding, errors : str
        As in `read_bytes`.

    Raises
    ------
    DataError
        A line is not of that form, or has a tag that is not known; the message names the line.
    UsageError
        The file is not there, or may not be read.
    """
    data = read_bytes(path, encoding=encoding, errors=errors)
    return parse_dictionary(data, name_of(path), format=format, tagset=tagset, columns=columns, unknown=unknown)


def parse_dictionary(
    data: bytes,
    name: str = "<memory>",
    *,
    format: str = "auto",
    tagset: str = "auto",
    columns: tuple[int, int] | None = None,
    unknown: str = "error",
) -> TagDictionary:
    """The dictionary that some bytes of UTF-8 are; `name` is for messages. See `read_dictionary`.

    Examples
    --------
    >>> parse_dictionary(b"Haus\\tNoun\\nHaus\\tProper noun\\nschnell\\tAdjective, Adverb\\n")["schnell"]
    ('ADJ', 'ADV')
    >>> parse_dictionary(b"sehen\\tsah\\tV;IND;PST;3;SG\\n", tagset="ud17")["sah"]
    ('AUX', 'VERB')
    """
    for option, value, choices in (
        ("format", format, FORMATS),
        ("tagset", tagset, ("auto", *TAGSETS, "any")),
        ("unknown", unknown, ("error", "drop")),
    ):
        if value not in choices:
            raise ParameterError(f"{option} of a dictionary should be one of {', '.join(choices)}, not {value!r}")
    text = data.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    if format == "auto":
        format = "unimorph" if columns is None and _is_unimorph(text) else "tsv"
    if format == "unimorph":
        rows = _Rows(name, 1, 2, "lemma, form and features")
    else:
        rows = _Rows(name, *(columns or (0, 1)), "word and tag")
    rows.read(text)
    if not rows.words:
        raise DataError(f"{name}: there are no words and tags in it. Give a line for each: word, tab, tag")
    meanings, found_set = _meanings(rows, format, tagset)
    _check_known(rows, meanings, drop=unknown == "drop")
    pairs = ((word, tag) for word, cell in zip(rows.words, rows.cells, strict=True) for tag in meanings[cell] or ())
    return TagDictionary.of(pairs, found_set)


@dataclass
class _Rows:
    """The lines of a file: words, what stands in the cell of their tags, and how often and where first it does."""

    name: str
    word_column: int
    tag_column: int
    wanted: str
    words: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Cell -> lines that have it, and the first of them, from 1."""

    def read(self, text: str) -> None:
        at, tag_at = self.word_column, self.tag_column
        least = max(at, tag_at) + 1
        count, first = dict[str, int](), dict[str, int]()
        for number, columns in _lines(text):
            if len(columns) < least:
                raise self._malformed(number, columns, least)
            word, cell = columns[at].strip(), columns[tag_at].strip()
            if not word or not cell:
                raise self._empty(number, columns, word)
            if not first and cell.lower() in _HEADINGS:
                first[cell] = 0  # headings, not an entry
                continue
            if word in _DASHES and at == 1:  # the paradigm has no such form
                continue
            self.words.append(word)
            self.cells.append(cell)
            count[cell] = count.get(cell, 0) + 1
            first.setdefault(cell, number)
        self.places = {cell: (lines, first[cell]) for cell, lines in count.items()}

    def _malformed(self, number: int, columns: Sequence[str], least: int) -> DataError:
        line = "\t".join(columns)
        if len(columns) == 1:
            finding = f"no tab in {_short(line)}"
        else:
            finding = f"{len(columns)} columns where at least {least} should be in {_short(line)}"
        return DataError(f"{self.name}, line {number}: {finding}. Put one tab between {self.wanted}")

    def _empty(self, number: int, columns: Sequence[str], word: str) -> DataError:
        missing = "tag" if word else "word"
        return DataError(
            f"{self.name}, line {number}: there is no {missing} in {_short(chr(9).join(columns))}. "
            f"Give {self.wanted}, or take the line out"
        )


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Numbers, from 1, and columns of lines that say something."""
    for number, line in enumerate(text.split("\n"), 1):
        columns = line.rstrip("\r").split("\t")
        if len(columns) == 1 and (not columns[0].strip() or columns[0].startswith("#")):
            continue
        yield number, columns


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


# What tags mean ------------------------------------------------------------------------------------------------------


def _is_unimorph(text: str) -> bool:
    """Whether most of the first lines are lemma, form and features, and the second is not a tag already."""
    rows = [columns for _, columns in islice(_lines(text), _LOOKED_AT)]
    tag = _as_headings("universal12")
    fitting = sum(len(row) >= 3 and _unimorph_code(row[2]) is not None and _read(row[1], tag) is None for row in rows)
    return 2 * fitting > len(rows)


def _unimorph_code(bundle: str) -> str | None:
    """The part of speech of a bundle of features; the form of a verb (V.PTCP) says more than V."""
    codes = [code for part in bundle.strip().split(";") if (code := _known_code(part))]
    return next((code for code in codes if code.startswith("V.")), codes[0] if codes else None)


def _known_code(part: str) -> str | None:
    """A part of speech, also one with more behind it: ``V.PTCP.PASS``, ``N(...)``."""
    code = part.strip().partition("(")[0]
    while code and code not in UNIMORPH:
        code = code.rpartition(".")[0]
    return code or None


def _meanings(rows: _Rows, format: str, tagset: str) -> tuple[dict[str, Labels | None], str]:
    """The tags that each cell stands for, None where it is not known, and the set that these are of."""
    if tagset == "any" and format == "tsv":
        return {cell: tuple(cell.split()) for cell in rows.places}, "any"
    wanted = "ud17" if tagset == "ud17" else "universal12"
    if format == "unimorph":
        codes = {cell: _unimorph_code(cell) for cell in rows.places}
        kept = "ud17" if tagset == "any" else wanted
        return {cell: None if code is None else _in_set(UNIMORPH[code], kept) for cell, code in codes.items()}, kept
    for name in sorted(TAGSETS, key=lambda name: name != wanted):  # tags of the wanted set need no translation
        found = {cell: _read(cell, _as_they_are(name)) for cell in rows.places}
        if None in found.values():
            continue
        if tagset == "auto" or name == tagset:
            return found, name
        return {
            cell: tuple(new for tag in tags or () for new in possible_tags(tag, wanted)) for cell, tags in found.items()
        }, wanted
    return {cell: _read(cell, _as_headings(wanted)) for cell in rows.places}, wanted


def _read(cell: str, meaning: Meaning) -> Labels | None:
    """The tags of a cell: of one label, of labels between ``|``, ``;`` or commas, or of labels between spaces."""
    for parts in ([cell], _BETWEEN.split(cell), cell.split()):
        found = [meaning(part.strip()) for part in parts if part.strip()]
        if found and None not in found:
            return tuple(tag for tags in found for tag in tags or ())
    found = [meaning(part) for part in _BETWEEN.sub(" ", cell).split()]
    return None if None in found else tuple(tag for tags in found for tag in tags or ())


def _as_they_are(name: str) -> Meaning:
    tags = frozenset(TAGSETS[name].tags)
    return lambda label: (label,) if label in tags else None


def _as_headings(name: str) -> Meaning:
    """Tags of either set, and headings of Wiktionary."""
    exact = {tag: possible_tags(tag, name) for found in TAGSETS.values() for tag in found.tags}
    if name == "ud17":
        exact |= {tag: (tag,) for tag in TAGSETS[name].tags if tag not in TAGSETS["universal12"].tags}

    def meaning(label: str) -> Labels | None:
        if label in exact:
            return exact[label]
        tags = WIKTIONARY.get(normal_label(label))
        return None if tags is None else _in_set(tags, name)

    return meaning


def _in_set(tags: Iterable[str], name: str) -> Labels:
    """UD tags in a set."""
    return tuple(tags) if name == "ud17" else tuple(to_universal12(tag) for tag in tags)


def _check_known(rows: _Rows, meanings: dict[str, Labels | None], *, drop: bool) -> None:
    foreign = {cell: rows.places[cell] for cell, tags in meanings.items() if tags is None}
    if not foreign:
        return
    n_lines = sum(lines for lines, _ in foreign.values())
    ranked = sorted(foreign.items(), key=lambda entry: (-entry[1][0], entry[1][1]))
    named = ", ".join(
        f"{_short(cell)} ({lines:,} lines, the first is {first})" if lines > 1 else f"{_short(cell)} (line {first})"
        for cell, (lines, first) in ranked[:_MOST_NAMED]
    )
    more = f" and {len(ranked) - _MOST_NAMED} more" if len(ranked) > _MOST_NAMED else ""
    finding = f"{rows.name}: {n_lines:,} of {len(rows.words):,} lines have tags that are not known: {named}{more}"
    if not drop:
        raise DataError(
            f"{finding}. Known are the tags of universal12 and ud17, and headings of Wiktionary. Correct them, leave "
            "these lines out (--unknown drop; unknown='drop' in Python), or keep all tags as they are (--tagset any; "
            "tagset='any')"
        )
    warnings.warn(f"{finding}. These are left out", IsoglossWarning, stacklevel=4)


# Writing -------------------------------------------------------------------------------------------------------------


def format_dictionary(dictionary: TagDictionary) -> bytes:
    """A line ``word TAB tag`` for each pair.

    Examples
    --------
    >>> format_dictionary(TagDictionary({"house": ["VERB", "NOUN"]}))
    b'house\\tNOUN\\nhouse\\tVERB\\n'
    """
    lines = []
    for word, tags in dictionary.items():
        if word != word.strip() or "\t" in word or "\n" in word:
            raise DataError(f"{word!r} cannot be written in a table: there are tabs, line ends or outer spaces in it")
        lines += [f"{word}\t{tag}\n" for tag in tags]
    return "".join(lines).encode("utf-8", "surrogatepass")
