"""Treebanks in files: CoNLL-U, CoNLL-X and CoNLL-2009, read and written without touching what did not change.

A file is kept as it is, with the places of its words in it. Writing copies the text and puts new contents in the
columns that were changed, so that comments, multiword tokens, empty nodes, enhanced dependencies, blank lines and line
ends come out byte for byte.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.formats.files import PathOrName, name_of, read_bytes, read_whole
from isogloss.data.tokenise import spaces_after
from isogloss.data.treebank import Column, Ranges, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError, TreebankError

__all__ = [
    "LAYOUTS", "Layout", "PlainSource", "Source", "format_treebank", "layout_named", "parse_treebank", "plain_treebank",
    "read_treebank", "split_treebank",
]  # fmt: skip

COLUMNS = ("form", "lemma", "upos", "xpos", "feats", "deprel", "deps", "misc")
NOTHING = "_"

_COMPRESSED = (".gz", ".xz", ".zst")
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # those of UTF-32 begin with, or hold, the same two bytes
_UNFIT = re.compile("[\t\n\r]")
_PREDICTED = re.compile(rb"^#[ \t]*isogloss_predicted[ \t]*=[ \t]*([^\r\n]*)", re.MULTILINE)
_COMMENTS = re.compile(rb"\s*(?:#[^\n]*(?:\n|\Z))*")
_GLOBAL = re.compile(rb"\s*(?:#[ \t]*global\.[^\n]*\n)*")  # CoNLL-U Plus wants these first
_RANGE = re.compile(rb"^(\d+)-(\d+)\t([^\t\r\n]*)(?:\t([^\t\r\n]*))*", re.MULTILINE)  # the last group is MISC
_SENT_ID = re.compile(rb"^#[ \t]*sent_id[ \t]*=[ \t]*([^\r\n]*?)[ \t]*\r?$", re.MULTILINE)


class Layout(NamedTuple):
    """How a format lays out its columns.

    Parameters
    ----------
    name, title : str
        As `format=` has it, and as people write it.
    n_fields : int
        Columns that every word has.
    exact : bool
        Whether there may be no more than these.
    groups : bool
        Whether there may be multiword tokens and empty nodes.
    places : mapping of str to int
        Which column, from 0, holds what we call so.
    suffixes : tuple of str
        What names of such files end in.
    """

    name: str
    title: str
    n_fields: int
    exact: bool
    groups: bool
    places: Mapping[str, int]
    suffixes: tuple[str, ...]


_SHARED = {"form": 1, "lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "head": 6, "deprel": 7}
LAYOUTS = (
    Layout("conllu", "CoNLL-U", 10, True, True, {**_SHARED, "deps": 8, "misc": 9}, (".conllu", ".conllup")),
    Layout("conllx", "CoNLL-X", 8, False, False, _SHARED, (".conllx", ".conll", ".conll06", ".conll07")),
    Layout(
        "conll2009",
        "CoNLL-2009",
        14,
        False,
        False,
        {"form": 1, "lemma": 2, "xpos": 4, "feats": 6, "head": 8, "deprel": 10},
        (".conll09", ".conll2009"),
    ),
)


def layout_named(format: str) -> Layout:
    """The layout of that name."""
    for layout in LAYOUTS:
        if layout.name == format:
            return layout
    raise ParameterError(f"format should be one of {', '.join(layout.name for layout in LAYOUTS)}, not {format!r}")


def layout_of_name(name: str) -> Layout | None:
    """The layout that the name of a file promises."""
    base = name.lower()
    for suffix in _COMPRESSED:
        base = base.removesuffix(suffix)
    ending = os.path.splitext(base)[1]
    return next((layout for layout in LAYOUTS if ending in layout.suffixes), None)


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """The text that a treebank came from, and where its words stand in it.

    Parameters
    ----------
    data : bytes
        The whole file, UTF-8, without a byte order mark.
    layout : Layout
    rows : int64[n_words]
        Where the row of each word starts.
    fields : int32[n_words, n_fields + 1]
        Where its fields start, counted from there; a field ends one byte before the next starts.
    blocks : int64[n_sentences, 2]
        Where the text of each sentence, with the comments before and the empty line after it, starts and stops.
    changed : frozenset of str
        Columns of the treebank that are no longer what `data` says.
    predicted : frozenset of str
        Columns that a tagger or a parser wrote, here or, as a comment at the top says, before the file was written.
    mark : bytes
        The byte order mark, if there was one.
    rest : bytes
        The text of a file without sentences.
    """

    data: bytes
    layout: Layout
    rows: NDArray[np.int64]
    fields: NDArray[np.int32]
    blocks: NDArray[np.int64]
    changed: frozenset[str] = field(default_factory=frozenset)
    predicted: frozenset[str] = field(default_factory=frozenset)
    mark: bytes = b""
    rest: bytes = b""

    def part(self, sentences: slice, words: slice) -> Source:
        """Neighbouring sentences and their words."""
        return replace(self, rows=self.rows[words], fields=self.fields[words], blocks=self.blocks[sentences], rest=b"")

    def take(self, sentences: NDArray[np.int64], words: NDArray[np.int64]) -> Source:
        """Those sentences, in that order."""
        taken = replace(self, rows=self.rows[words], fields=self.fields[words], blocks=self.blocks[sentences], rest=b"")
        return taken._with_end() if np.any(taken.blocks[:-1, 1] == len(self.data)) else taken

    def _with_end(self) -> Source:
        """End the last sentence of the file with an empty line, so that another may follow it."""
        line = self.line_end
        missing = 2 - min(len(re.findall(rb"\r?\n", ending[0])), 2) if (ending := _END.search(self.data)) else 2
        blocks = np.where(self.blocks == len(self.data), len(self.data) + missing * len(line), self.blocks)
        return replace(self, data=self.data + line * missing, blocks=blocks)

    @property
    def line_end(self) -> bytes:
        return b"\r\n" if b"\r\n" in self.data[:4096] else b"\n"

    def line_of(self, word: int) -> int:
        """The line, from 1, of a word."""
        return 1 + self.data.count(b"\n", 0, int(self.rows[word]))

    def comments(self, key: str) -> list[str]:
        """What ``# key = ...`` says before each sentence; empty where nothing does."""
        pattern = re.compile(
            rb"^#[ \t]*" + re.escape(key.encode()) + rb"[ \t]*=[ \t]*([^\r\n]*?)[ \t]*\r?$", re.MULTILINE
        )
        found = {match.start(): match[1] for match in pattern.finditer(self.data)}
        places = np.array(list(found), np.int64)
        first = np.searchsorted(places, self.blocks[:, 0])
        values = [value.decode() for value in found.values()]
        stops = self.blocks[:, 1].tolist()
        return [
            values[at] if at < len(values) and places[at] < stop else ""
            for at, stop in zip(first.tolist(), stops, strict=True)
        ]

    def ranges(self, offsets: NDArray[np.int64]) -> Ranges:
        """The multiword tokens of sentences whose words start at these places."""
        if not self.layout.groups:
            return Ranges(np.zeros(0, np.int64), np.zeros(0, np.int64))
        found = list(_RANGE.finditer(self.data))
        places = np.array([match.start() for match in found], np.int64)
        within = np.searchsorted(places, self.blocks)
        filled = within[:, 0] < within[:, 1]
        first, stop, forms, misc = [], [], [], []
        for sentence in np.flatnonzero(filled).tolist():
            start = int(offsets[sentence])
            for match in found[slice(*within[sentence].tolist())]:
                first.append(start + int(match[1]) - 1)
                stop.append(start + int(match[2]))
                forms.append(match[3].decode())
                misc.append((match[4] or b"_").decode())
        return Ranges(np.array(first, np.int64), np.array(stop, np.int64), tuple(forms), tuple(misc))

    def comment_lines(self, sentence: int) -> list[str]:
        """The comments of one sentence, without their line ends."""
        start, stop = self.blocks[sentence].tolist()
        lines = self.data[start:stop].split(b"\n")
        return [line.removesuffix(b"\r").decode() for line in lines if line.startswith(b"#")]


_END = re.compile(rb"(?:\r?\n)+\Z")


@dataclass(frozen=True, eq=False, repr=False)
class PlainSource:
    """The plain text that a treebank came from, a sentence a line: CoNLL-U is made of it when it is written.

    Parameters
    ----------
    text : Text
    sentences : int64[n_sentences]
        Rows of the text.
    rows : int64[n_words]
        The same for each word.
    changed, predicted
        As in `Source`.
    surface : int64[n_words], optional
        Where words were split: the number of the token, among all of the text, that each word is of.
    """

    text: Text
    sentences: NDArray[np.int64]
    rows: NDArray[np.int64]
    changed: frozenset[str] = field(default_factory=frozenset)
    predicted: frozenset[str] = field(default_factory=frozenset)
    surface: NDArray[np.int64] | None = None
    layout: ClassVar[Layout] = LAYOUTS[0]
    line_end: ClassVar[bytes] = b"\n"

    def part(self, sentences: slice, words: slice) -> PlainSource:
        """Neighbouring sentences and their words."""
        surface = None if self.surface is None else self.surface[words]
        return replace(self, sentences=self.sentences[sentences], rows=self.rows[words], surface=surface)

    def take(self, sentences: NDArray[np.int64], words: NDArray[np.int64]) -> PlainSource:
        """Those sentences, in that order."""
        surface = None if self.surface is None else self.surface[words]
        return replace(self, sentences=self.sentences[sentences], rows=self.rows[words], surface=surface)

    def line_of(self, word: int) -> int:
        """The line of the text, from 1, of a word."""
        return 1 + int(self.rows[word])

    def _comment(self, key: str, sentence: int) -> str:
        if key == "sent_id":
            return str(sentence + 1)
        return spaces_after(self.text, sentence)[0] if key == "text" else ""

    def comments(self, key: str) -> list[str]:
        """What ``# key = ...`` will say before each sentence; empty for sentences without words."""
        filled = self.text.ids.lengths > 0
        return [self._comment(key, sentence) if filled[sentence] else "" for sentence in self.sentences.tolist()]

    def ranges(self, offsets: NDArray[np.int64]) -> Ranges:
        """The multiword tokens: neighbours in a sentence that are of one token."""
        if self.surface is None or not len(self.surface):
            return Ranges(np.zeros(0, np.int64), np.zeros(0, np.int64))
        fresh = np.ones(len(self.surface) + 1, bool)
        fresh[1:-1] = np.diff(self.surface) != 0
        fresh[offsets] = True  # a sentence may stand behind itself
        first = np.flatnonzero(fresh)
        several = np.diff(first) > 1
        first, stop = first[:-1][several], first[1:][several]
        types, ids = self.text.vocabulary.types, self.text.ids
        forms, misc = [], []
        gaps: dict[int, list[str]] = {}
        for token, sentence in zip(self.surface[first].tolist(), self.rows[first].tolist(), strict=True):
            if sentence not in gaps:
                gaps = {sentence: spaces_after(self.text, sentence)[1]}
            start = int(ids.offsets[sentence] - ids.offsets[0])
            forms.append(types[int(ids.flat[token])])
            misc.append(gaps[sentence][token - start])
        return Ranges(first, stop, tuple(forms), tuple(misc))

    def comment_lines(self, sentence: int) -> list[str]:
        """The comments of one sentence."""
        return [f"# {key} = {self._comment(key, int(self.sentences[sentence]))}" for key in ("sent_id", "text")]


# Reading -------------------------------------------------------------------------------------------------------------


def read_treebank(
    path: PathOrName,
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    errors: str = "strict",
    trees: bool = False,
) -> Treebank:
    """Read a treebank from a file.

    Parameters
    ----------
    path : str or path
        ``-`` is standard input. gzip, xz and zstd are undone whatever the file is called.
    format : {"conllu", "conllx", "conll2009"}, optional
        Without it, the name says (``.conllu``; ``.conllx``, ``.conll``; ``.conll09``), and otherwise the number of
        columns: ten are CoNLL-U, fourteen or more CoNLL-2009.
    encoding, errors : str
        As in `read_bytes`. The file is written as UTF-8 in any case.
    trees : bool
        Refuse sentences that are no trees: two roots, or a cycle. Unknown heads are no fault.

    Raises
    ------
    TreebankError
        What is in the file is wrong; the message names the line and the sentence.
    UsageError
        The file is not there, or may not be read.
    """
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8") and errors == "strict":
        data = read_whole(path)
    else:
        data = read_bytes(path, encoding=encoding, errors=errors)
    if format is None:
        promised = layout_of_name(name_of(path))
        format = None if promised is None or promised.name == "conllx" else promised.name
        if promised is not None and promised.name == "conllx":
            format = "conll2009" if _n_columns(data) >= 14 else "conllx"
    return parse_treebank(data, name_of(path), format=format, trees=trees)


def parse_treebank(data: bytes, name: str = "<memory>", *, format: str | None = None, trees: bool = False) -> Treebank:
    """The treebank that some bytes of UTF-8 are; `name` is for messages. See `read_treebank`."""
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    data = data[len(mark) :]
    _check_utf8(data, name)
    if format is None:
        format = "conll2009" if _n_columns(data) >= 14 else "conllu"
    layout = layout_named(format)
    from isogloss.data.formats._numba.tables import intern, scan_table

    letters = np.frombuffer(data, np.uint8)
    problem, rows, fields, heads, offsets, starts = scan_table(
        letters, layout.n_fields, layout.exact, layout.places["head"], layout.groups
    )
    if problem[0]:
        raise _explained(problem, data, name, layout)
    blocks = np.stack([starts[:-1], starts[1:]], axis=1)
    columns = {}
    for column in COLUMNS:
        if column in layout.places:
            ids, first, lengths = intern(letters, rows, fields, layout.places[column])
            spans = zip(first.tolist(), lengths.tolist(), strict=True)
            columns[column] = Column(ids, Vocabulary([data[at : at + length].decode() for at, length in spans]))
        else:
            columns[column] = Column(np.zeros(len(rows), np.int32), Vocabulary([NOTHING]))
    rest = data if len(offsets) == 1 else b""
    source = Source(data, layout, rows, fields, blocks, predicted=_noted(data), mark=mark, rest=rest)
    treebank = Treebank(offsets, columns, heads, name, source)
    if trees:
        treebank.check_trees()
    return treebank


def _noted(data: bytes) -> frozenset[str]:
    """The columns that the comments at the top of a file call predicted."""
    top = _COMMENTS.match(data)
    assert top is not None
    names = b" ".join(_PREDICTED.findall(top[0])).decode().lower().split()
    return frozenset(names) & {*COLUMNS, "head"}


def _n_columns(data: bytes) -> int:
    """Columns of the first word."""
    line = re.search(rb"^[^#\s][^\n]*", data, re.MULTILINE)
    return 0 if line is None else line[0].count(b"\t") + 1


def _check_utf8(data: bytes, name: str) -> None:
    if data.startswith(_WIDE_MARKS):
        raise TreebankError(
            f"{name}, line 1: the byte order mark says UTF-16, not UTF-8. Give --encoding utf-16 "
            "(encoding='utf-16' in Python)"
        )
    try:
        data.isascii() or codecs.utf_8_decode(data, "strict", True)
    except UnicodeDecodeError as problem:
        found = data[problem.start : problem.end].hex(" ")
        raise TreebankError(
            f"{_place(data, problem.start, name)}: byte {found} cannot be read as UTF-8. Another encoding? say so: "
            "--encoding latin-1 (encoding='latin-1' in Python)"
        ) from None


def _place(data: bytes, at: int, name: str) -> str:
    """File, line and sentence of a byte: the id that its comments give, or its number from 1."""
    line = 1 + data.count(b"\n", 0, at)
    before = max(data.rfind(b"\n\n", 0, at), data.rfind(b"\n\r\n", 0, at), 0)
    after = min((end for blank in (b"\n\n", b"\n\r\n") if (end := data.find(blank, at)) >= 0), default=len(data))
    found = _SENT_ID.search(data, before, after)
    if found and found[1]:
        return f"{name}, line {line}, sentence {found[1].decode('utf-8', 'replace')}"
    blocks = re.split(rb"\n(?:\r?\n)+", data[:before])
    return f"{name}, sentence {1 + sum(map(_has_words, blocks))}, line {line}"


def _has_words(block: bytes) -> bool:
    return any(line.strip() and not line.startswith(b"#") for line in block.split(b"\n"))


def _explained(problem: tuple[int, int, int], data: bytes, name: str, layout: Layout) -> TreebankError:
    """The error of a line: place, finding, remedy."""
    from isogloss.data.formats._numba import tables as kind

    code, start, more = (int(value) for value in problem)
    stop = data.find(b"\n", start)
    text = data[start : len(data) if stop < 0 else stop].removesuffix(b"\r").decode("utf-8", "replace")
    cells = text.split("\t")
    at = layout.places["head"]
    head = cells[at] if at < len(cells) else ""
    wanted = f"{layout.n_fields}" if layout.exact else f"at least {layout.n_fields}"
    findings = {
        kind.COLUMNS: f"{more} column{'s' * (more != 1)} where {layout.title} has {wanted} in {_short(text)}. "
        + _separators(text, more, layout),
        kind.UNEVEN: f"{len(cells)} columns where the lines before have {more} in {_short(text)}. "
        "All words of a sentence have as many; put _ where nothing is known",
        kind.BAD_ID: f"the first column is {_short(cells[0])}, not the number of a word. "
        + ("Write 1, 2, ..., 3-4 for a multiword token, 3.1 for an empty node" if layout.groups else "Write 1, 2, ..."),
        kind.ORDER: f"word {_short(cells[0])} where word {more} should be. Words count from 1 in each sentence; "
        "is a line lost, or the empty line between two sentences?",
        kind.BAD_RANGE: f"multiword token {_short(cells[0])} before word {more}. It should stand before its "
        "first word, name its first and last, and not overlap another",
        kind.RANGE_OUTSIDE: f"multiword token {_short(cells[0])} in a sentence of {more} words. Is a line lost?",
        kind.BAD_EMPTY_NODE: f"empty node {_short(cells[0])} after word {more}. It should be {more}.1, {more}.2, ...",
        kind.NO_FORM: "the second column, the word itself, is empty. Put _ where nothing is known",
        kind.BAD_HEAD: f"head {_short(head)} is not a number. Give the number of a word, 0 for the root, "
        "or _ where it is not known",
        kind.HEAD_OUTSIDE: f"head {_short(head)} in a sentence of {more} words. Give 1 to {more}, 0 for the root, "
        "or _ where it is not known",
    }
    return TreebankError(f"{_place(data, start, name)}: {findings[code]}")


def _separators(text: str, n_found: int, layout: Layout) -> str:
    if n_found < layout.n_fields and len(text.split()) >= layout.n_fields:
        return "Some stand between spaces: put one tab between columns"
    if n_found > layout.n_fields:
        return f"More than {layout.title} has: is it another format? give format="
    return "Put one tab between columns, and _ where nothing is known"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


# Writing -------------------------------------------------------------------------------------------------------------


def format_treebank(treebank: Treebank, format: str | None = None) -> bytes:
    """The text of a treebank, in its own format or another.

    In its own, only what was changed differs from the file that was read. Another has comments and columns alone:
    multiword tokens, empty nodes and columns that it does not know are left out. CoNLL-U says in a comment at the top
    which columns were predicted.
    """
    source = treebank.source
    layout = source.layout if format is None else layout_named(format)
    homeless = sorted(source.changed - set(layout.places))
    if homeless:
        raise TreebankError(
            f"{treebank.name}: {layout.title} has no column for {', '.join(homeless)}. "
            "Write it as CoNLL-U: a name that ends in .conllu, or format='conllu'"
        )
    if isinstance(source, PlainSource) or layout.name != source.layout.name:
        return _with_note(_written_anew(treebank, layout), source, layout)
    from isogloss.data.formats._numba.tables import splice

    changed = sorted(source.changed, key=layout.places.__getitem__)
    contents: list[bytes] = []
    ids = np.empty((len(changed), len(treebank.heads)), np.int64)
    for row, column in enumerate(changed):
        if column == "head":
            numbers, types = treebank.heads + 1, heads_as_types(treebank.heads)
        else:
            numbers, types = treebank.columns[column].ids, treebank.columns[column].vocabulary.types
        ids[row] = numbers.astype(np.int64) + len(contents)
        contents += [text.encode() for text in types]
    starts = np.zeros(len(contents) + 1, np.int64)
    np.cumsum([len(text) for text in contents], out=starts[1:])
    spliced = splice(
        np.frombuffer(source.data, np.uint8),
        source.blocks,
        treebank.offsets,
        source.rows,
        source.fields,
        np.array([layout.places[column] for column in changed], np.int64),
        np.frombuffer(b"".join(contents), np.uint8),
        starts,
        ids,
    )
    return source.mark + _with_note(spliced.tobytes(), source, layout) + source.rest


def _with_note(text: bytes, source: Source | PlainSource, layout: Layout) -> bytes:
    """Name the predicted columns at the top, where text of CoNLL-U does not do so already."""
    missing = source.predicted - _noted(text)
    if not missing or not text or layout.name != "conllu":
        return text
    names = " ".join(sorted(missing, key=layout.places.__getitem__)).upper()
    first = _GLOBAL.match(text)
    assert first is not None
    at = first.end()
    return text[:at] + f"# isogloss_predicted = {names}".encode() + source.line_end + text[at:]


def heads_as_types(heads: NDArray[np.int32]) -> list[str]:
    """What heads look like in a file: head k is entry k + 1."""
    return [NOTHING, *map(str, range(int(heads.max(initial=0)) + 1))]


def _written_anew(treebank: Treebank, layout: Layout) -> bytes:
    cells: list[Iterable[str]] = [repeat(NOTHING)] * layout.n_fields
    within = np.arange(1, treebank.n_words + 1) - np.repeat(treebank.offsets[:-1], treebank.lengths)
    cells[0] = map(str, within.tolist())
    for column, place in layout.places.items():
        if column == "head":
            numbers, types = treebank.heads + 1, heads_as_types(treebank.heads)
        else:
            numbers, types = treebank.columns[column].ids, list(treebank.columns[column].vocabulary.types)
        cells[place] = map(types.__getitem__, numbers.tolist())
    rows = list(map("\t".join, zip(*cells, strict=False)))
    if layout.groups:
        _put_ranges(rows, treebank, within, layout)
    lines: list[str] = []
    for sentence, (start, stop) in enumerate(pairwise(treebank.offsets.tolist())):
        if start < stop:
            lines += [*treebank.source.comment_lines(sentence), *rows[start:stop], ""]
    return "".join(f"{line}\n" for line in lines).encode()


def _put_ranges(rows: list[str], treebank: Treebank, within: NDArray[np.int64], layout: Layout) -> None:
    """Write the line of each multiword token before that of its first word."""
    ranges = treebank.ranges
    for (first, stop, form), misc in zip(ranges.rows(), ranges.misc, strict=True):
        cells = [f"{within[first]}-{within[stop - 1]}"] + [NOTHING] * (layout.n_fields - 1)
        cells[layout.places["form"]], cells[layout.places["misc"]] = form, misc
        rows[first] = "\t".join(cells) + "\n" + rows[first]


def plain_treebank(text: Text) -> Treebank:
    """The words of a text as a treebank, see `Treebank.from_text`."""
    lengths = text.ids.lengths
    offsets = np.zeros(len(text) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    nothing = Column(np.zeros(text.n_words, np.int32), Vocabulary([NOTHING] if text.n_words else []))
    columns = dict.fromkeys(COLUMNS, nothing)
    columns["form"] = _forms(text)
    if text.spans is not None and text.lines is not None:
        columns["misc"] = Column.of(gap for sentence in range(len(text)) for gap in spaces_after(text, sentence)[1])
    sentences = np.arange(len(text))
    source = PlainSource(text, sentences, np.repeat(sentences, lengths))
    return Treebank(offsets, columns, np.full(text.n_words, -1, np.int32), text.name, source, text.form)


def split_treebank(text: Text, words: Text, surface: NDArray[np.int64]) -> Treebank:
    """The words that a text was split into as a treebank, see `Treebank.from_split`."""
    lengths = words.ids.lengths
    starts = text.ids.offsets - text.ids.offsets[0]
    of_token = np.repeat(np.arange(len(text)), np.diff(starts))
    fits = len(words) == len(text) and len(surface) == words.n_words
    if not fits or not np.array_equal(np.unique(surface), np.arange(text.n_words)) or (np.diff(surface) < 0).any():
        raise ParameterError("from_split: every word of the text should have its parts, in order and in as many lines")
    rows = np.repeat(np.arange(len(words)), lengths)
    if not np.array_equal(of_token[surface], rows):
        raise ParameterError("from_split: the parts of a word should stand in its sentence")
    plain, whole = plain_treebank(text), plain_treebank(words)
    several = np.bincount(surface, minlength=text.n_words)[surface] > 1
    ids, vocabulary = plain.columns["misc"]
    nothing = vocabulary.index_of(NOTHING)
    types = vocabulary.types if nothing >= 0 else [*vocabulary.types, NOTHING]
    misc = np.where(several, nothing if nothing >= 0 else len(types) - 1, ids[surface]).astype(np.int32)
    source = PlainSource(text, np.arange(len(text)), rows, surface=surface)
    columns = {**whole.columns, "misc": Column(misc, Vocabulary(types))}
    return Treebank(whole.offsets, columns, whole.heads, text.name, source, text.form)


def _forms(text: Text) -> Column:
    """The words of a text, numbered in order of first appearance."""
    used, first, at = np.unique(text.ids.flat, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(used), np.int32)
    place[order] = np.arange(len(used), dtype=np.int32)
    words = [text.vocabulary.types[number] for number in used[order].tolist()]
    _check_cells("form", words)
    return Column(place[at.reshape(-1)], Vocabulary(words))


def _check_cells(column: str, texts: Iterable[str]) -> None:
    for text in texts:
        if not text or _UNFIT.search(text):
            raise TreebankError(f"Treebank: {column} {text!r} is empty or has a tab or a line end in it")


def table_of(sentences: Iterable[Sequence[Mapping[str, object]]]) -> bytes:
    """CoNLL-U text of words given as mappings from column to content; what is not given is ``_``."""
    places = LAYOUTS[0].places
    lines = []
    for sentence in sentences:
        for number, word in enumerate(sentence, start=1):
            cells = [str(number)] + [NOTHING] * 9
            for column, content in word.items():
                if column not in places:
                    raise ParameterError(f"Treebank: no column {column!r}; there are {', '.join(places)}")
                _check_cells(column, [text := str(content)])
                cells[places[column]] = text
            lines.append("\t".join(cells))
        if sentence:
            lines.append("")
    return "".join(f"{line}\n" for line in lines).encode()
