"""Parallel text in files: a pair of files, ``source ||| target``, tab-separated columns and TMX."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from typing import TypedDict, cast

import numpy as np

from isogloss.data.bitext import Bitext, Text
from isogloss.data.formats.files import (
    IsoglossWarning,
    PathOrName,
    atomic_write,
    name_of,
    open_lines,
    pieces,
    read_bytes,
    side_encodings,
)
from isogloss.data.formats.tmx import format_tmx, tmx_pairs
from isogloss.data.reading import NORMAL_FORMS, TOKENISERS, TextForm
from isogloss.errors import BitextError, ParameterError, UsageError

__all__ = ["lines_of", "read_bitext", "stream_bitext", "write_bitext"]

_FORMATS = ("auto", "pair", "bars", "tsv", "tmx")
_COMPRESSED = (".gz", ".xz", ".zst")
_SHOWN = 8  # columns that a message lists
_SPACES = re.compile(r"[ \t-\r]")
_BARS = re.compile(rb"(?:^|(?<=[ \t]))\|\|\|(?=[ \t\r]|$)")

Halves = tuple[bytes, bytes]


class _Decoding(TypedDict):
    encoding: str
    errors: str


@dataclass(frozen=True)
class _Options:
    """How to read, checked once."""

    format: str
    encodings: tuple[str, str]
    errors: str
    tokenise: str
    normalise: str | None
    columns: tuple[int, int] | None
    languages: tuple[str, str] | None

    def __post_init__(self) -> None:
        for option, value, allowed in (
            ("format", self.format, _FORMATS),
            ("tokenise", self.tokenise, TOKENISERS),
            ("normalise", self.normalise, NORMAL_FORMS),
        ):
            if value not in allowed:
                raise ParameterError(f"{option} should be one of {', '.join(map(str, allowed))}, not {value!r}")
        if self.columns is not None and (len(self.columns) != 2 or min(self.columns) < 0):
            raise ParameterError(f"columns should be two numbers from 0, as in (0, 1), not {self.columns!r}")
        if self.languages is not None and (isinstance(self.languages, str) or len(self.languages) != 2):
            raise ParameterError(f"languages should be two codes, as in ('en', 'fr'), not {self.languages!r}")

    @property
    def decoding(self) -> tuple[_Decoding, _Decoding]:
        """What `read_bytes` and `open_lines` want to know, for each side."""
        source, target = self.encodings
        return {"encoding": source, "errors": self.errors}, {"encoding": target, "errors": self.errors}


def read_bitext(
    source: PathOrName,
    target: PathOrName | None = None,
    *,
    format: str = "auto",
    encoding: str = "utf-8",
    source_encoding: str | None = None,
    target_encoding: str | None = None,
    errors: str = "strict",
    tokenise: str = "space",
    normalise: str | None = None,
    columns: tuple[int, int] | None = None,
    languages: tuple[str, str] | None = None,
) -> Bitext:
    """Read a parallel text from two files, or from one that holds both sides.

    Parameters
    ----------
    source, target : str or path
        Two files, of which line k of one translates line k of the other; or `source` alone. ``-`` is standard input,
        and gzip, xz and zstd are undone.
    format : {"auto", "pair", "bars", "tsv", "tmx"}
        Of a single file: ``source ||| target``, tab-separated columns, or a translation memory. "auto" goes by the name
        and the first lines.
    encoding, errors : str
        As in `read_bytes`. A TMX file says itself how it is encoded; another `encoding` than UTF-8 overrides it.
    source_encoding, target_encoding : str, optional
        Of two files: the encoding of one, where it is another than `encoding`.
    tokenise : {"space", "unicode", "characters"}
        What a token is: what stands between ASCII white space, what `isogloss.data.tokenise` finds, or each character.
        The last two keep the lines and where in them each token stands.
    normalise : {None, "NFC", "NFD", "NFKC", "NFKD"}
        Unicode normalisation. With ``tokenise="space"`` it works on each token, so that there are as many tokens as
        before: a normal form with a space in it (of a no-break space, say) is not used. Otherwise on each line, before
        it is tokenised.
    columns : (int, int), optional
        Which columns, from 0, hold source and target (TSV and bars). Needed where a line has more than two: a score or
        an address is never taken for text.
    languages : (str, str), optional
        TMX only: which languages. Needed where there are more than two; otherwise source is the one that comes first in
        the first unit with both.

    Returns
    -------
    Bitext
        Blank lines are empty pairs; an empty file has none. `line_of` counts lines, and in a TMX file units.

    Raises
    ------
    BitextError
        What is in the file is wrong: encoding, compression, separator, unequal numbers of lines.
    UsageError
        The file is not there, or the options contradict each other.
    """
    encodings = side_encodings(encoding, source_encoding, target_encoding)
    options = _Options(format, encodings, errors, tokenise, normalise, columns, languages)
    _check_sources(source, target, options)
    if target is not None:
        sides = (read_bytes(path, **how) for path, how in zip((source, target), options.decoding, strict=True))
        return _bitext(cast(Halves, tuple(sides)), (name_of(source), name_of(target)), options, 1)
    name = name_of(source)
    kind = _by_name(source, options)
    if kind == "tmx":
        return _bitext(_halves(_tmx_of(source, options)), (name, name), options, 1)
    data = read_bytes(source, **options.decoding[0])
    if kind == "auto":
        kind = _by_contents(data, name)
    if kind == "tmx":
        return _bitext(_halves(tmx_pairs([data], name, languages, "utf-8")), (name, name), options, 1)
    return _bitext(_split(data, name, kind, options, 1), (name, name), options, 1)


def stream_bitext(
    source: PathOrName,
    target: PathOrName | None = None,
    *,
    size: int = 10_000,
    format: str = "auto",
    encoding: str = "utf-8",
    source_encoding: str | None = None,
    target_encoding: str | None = None,
    errors: str = "strict",
    tokenise: str = "space",
    normalise: str | None = None,
    columns: tuple[int, int] | None = None,
    languages: tuple[str, str] | None = None,
) -> Iterator[Bitext]:
    """The same text as `read_bitext`, at most `size` pairs at a time: memory does not grow with the file.

    Each part has its own vocabulary, and `line_of` still speaks of the file. A single file that is a pipe gives what it
    has when its writer pauses, so parts may be shorter there. Unequal numbers of lines are found at the end.
    """
    encodings = side_encodings(encoding, source_encoding, target_encoding)
    options = _Options(format, encodings, errors, tokenise, normalise, columns, languages)
    if size < 1:
        raise ParameterError(f"stream_bitext: size should be a positive integer, not {size!r}")
    _check_sources(source, target, options)
    if target is None:
        return _stream_one(source, size, options)
    return _stream_two(source, target, size, options)


def _stream_two(source: PathOrName, target: PathOrName, size: int, options: _Options) -> Iterator[Bitext]:
    names = name_of(source), name_of(target)
    paths = zip((source, target), options.decoding, strict=True)
    sides = [open_lines(path, size=size, **how) for path, how in paths]
    done = 0
    for both in zip_longest(*sides, fillvalue=b""):
        n_lines = [_count_lines(block) for block in both]
        if n_lines[0] != n_lines[1]:
            for side, path in enumerate((source, target)):
                if os.fspath(path) != "-":  # a pipe may have no end
                    n_lines[side] += sum(map(_count_lines, sides[side]))
            n_source, n_target = n_lines[0] + done, n_lines[1] + done
            raise BitextError(
                f"{names[0]} has {n_source} lines but {names[1]} has {n_target}: "
                "line k of one must translate line k of the other. Was a line lost or joined on one side?"
            )
        yield _bitext(cast(Halves, both), names, options, done + 1)
        done += n_lines[0]


def _stream_one(source: PathOrName, size: int, options: _Options) -> Iterator[Bitext]:
    name = name_of(source)
    kind = _by_name(source, options)
    done = 0
    if kind != "tmx":
        blocks = open_lines(source, size=size, eager=True, **options.decoding[0])
        first = next(blocks, b"")
        blocks = chain([first] if first else [], blocks)
        if kind == "auto":
            kind = _by_contents(first, name)
    if kind == "tmx":
        named = _by_name(source, options) == "tmx"
        pairs = _tmx_of(source, options) if named else tmx_pairs(blocks, name, options.languages, "utf-8")
        while part := list(islice(pairs, size)):
            yield _bitext(_halves(part), (name, name), options, done + 1)
            done += len(part)
        return
    for block in blocks:
        yield _bitext(_split(block, name, kind, options, done + 1), (name, name), options, done + 1)
        done += _count_lines(block)


def _check_sources(source: PathOrName, target: PathOrName | None, options: _Options) -> None:
    if target is None:
        if options.format == "pair":
            raise UsageError(f"{name_of(source)}: a pair of files needs both of them")
        if options.encodings[0] != options.encodings[1]:
            raise UsageError(
                f"{name_of(source)}: both sides are in one file, which has one encoding. Give --encoding instead of "
                "--source-encoding and --target-encoding (encoding= in Python)"
            )
        return
    if options.format not in ("auto", "pair"):
        raise UsageError(f"format {options.format!r} is of one file, but two were given: {source} and {target}")
    if os.fspath(source) == os.fspath(target) == "-":
        raise UsageError("standard input can be one side only; to send both, write each pair as 'source ||| target'")
    try:
        same = os.path.samefile(source, target)
    except (OSError, ValueError):  # not there, which whoever opens it will say
        same = False
    if same:
        warnings.warn(
            f"{name_of(source)} is given as both source and target: the text is its own translation",
            IsoglossWarning,
            stacklevel=3,
        )


def _by_name(path: PathOrName, options: _Options) -> str:
    """The format, as far as the file name or the user says."""
    if options.format != "auto":
        return options.format
    name = os.fspath(path).lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return {".tmx": "tmx", ".tsv": "tsv", ".tab": "tsv"}.get(os.path.splitext(name)[1], "auto")


def _by_contents(data: bytes, name: str) -> str:
    """The format, by the first lines."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n", 50)[:50], 1) if line.strip()]
    if not lines:
        return "bars"
    if re.match(rb"\s*<(\?xml|!DOCTYPE|!--|tmx)", lines[0][1]):
        return "tmx"
    with_bars, with_tabs = (sum(mark in line for _, line in lines) for mark in (b"|||", b"\t"))
    if not with_bars and not with_tabs:
        number, line = lines[0]
        raise _no_separator(name, number, line, "' ||| ' and no tab")
    if with_tabs > with_bars:
        return "tsv"
    for number, line in lines:
        if any(b"\t" in field.strip() for field in _cut_bars(line)):
            raise BitextError(
                f"{name}, line {number}: both a tab and ' ||| ' in {_quoted(line)}. Say which of them is between the "
                "two sides: --format tsv or --format bars (format= in Python). If it is a score or an address that "
                "stands before the tab, cut it off first"
            )
    return "bars"


def _no_separator(name: str, number: int, line: bytes, missing: str) -> BitextError:
    return BitextError(
        f"{name}, line {number}: no {missing} in {_quoted(line)}. Two files? give both: isogloss align news.de news.en"
    )


def _quoted(text: bytes, length: int = 60) -> str:
    shown = text.decode("utf-8", "replace").strip()
    return f"'{shown if len(shown) <= length else shown[: length - 3] + '...'}'"


def _wrong_columns(
    name: str, number: int, fields: list[bytes], chosen: tuple[int, int] | None, n_needed: int
) -> BitextError:
    """There are not as many columns as needed, or more than two of which nobody said which are the text."""
    shown = [f"{column} is {_quoted(field, 30)}" for column, field in enumerate(fields[:_SHOWN])]
    listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(fields) <= _SHOWN else f"{', '.join(shown)}, ..."
    found = f"{name}, line {number}: {len(fields)} columns where {n_needed} are needed: {listed}"
    if chosen is not None:
        return BitextError(f"{found}. Columns {chosen[0]} and {chosen[1]} were asked for, counted from 0")
    left, right = _suggested(fields)
    mend = " No line before has so many: mend this one, or" if number > 1 else " Please"
    return BitextError(
        f"{found}.{mend} say which two are source and target, as in --columns {left},{right} "
        f"(columns=({left}, {right}) in Python)"
    )


def _suggested(fields: list[bytes]) -> tuple[int, int]:
    """The first two columns that look like text: neither numbers nor addresses."""
    texts = [field.decode("utf-8", "replace") for field in fields]
    wordy = [
        column for column, text in enumerate(texts) if "://" not in text and any(letter.isalpha() for letter in text)
    ]
    return (wordy[0], wordy[1]) if len(wordy) > 1 else (0, 1)


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


def _split(data: bytes, name: str, kind: str, options: _Options, first_line: int) -> Halves:
    """The two sides of a file that has both in each line."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    left, right = options.columns or (0, 1)
    least = max(left, right) + 1
    cut: Callable[[bytes], list[bytes]] = _cut_bars if kind == "bars" else _cut_tabs
    source, target = [], []
    for number, line in enumerate(lines, first_line):
        fields = cut(line)
        if len(fields) >= least and (options.columns or len(fields) == 2):
            source.append(fields[left])
            target.append(fields[right])
        elif not line.strip():
            source.append(b"")
            target.append(b"")
        elif len(fields) == 1:
            raise _no_separator(name, number, line, "' ||| '" if kind == "bars" else "tab")
        else:
            raise _wrong_columns(name, number, fields, options.columns, least)
    return _lines(source), _lines(target)


def _cut_tabs(line: bytes) -> list[bytes]:
    return line.split(b"\t")


def _cut_bars(line: bytes) -> list[bytes]:
    fields = line.split(b" ||| ")
    if len(fields) == 2 and line.count(b"|||") == 1:
        return fields
    return [field.strip() for field in _BARS.split(line)]  # an empty side, or something to complain about


def _lines(lines: list[bytes]) -> bytes:
    return b"\n".join([*lines, b""])


def _tmx_of(path: PathOrName, options: _Options) -> Iterator[tuple[str, str]]:
    if options.encodings[0].lower() in ("utf-8", "utf8"):
        return tmx_pairs(pieces(path), name_of(path), options.languages)
    blocks = open_lines(path, **options.decoding[0])
    return tmx_pairs(blocks, name_of(path), options.languages, "utf-8")


def _halves(pairs: Iterable[tuple[str, str]]) -> Halves:
    source, target = [], []
    for left, right in pairs:
        source.append(left.encode())
        target.append(right.encode())
    return _lines(source), _lines(target)


def _bitext(sides: Halves, names: tuple[str, str], options: _Options, first_line: int) -> Bitext:
    forms = (TextForm(options.tokenise, options.normalise, code) for code in options.languages or (None, None))
    source, target = (
        replace(_text(data, name, options), form=form) for data, name, form in zip(sides, names, forms, strict=True)
    )
    return Bitext(source, target, first_line)


def _text(data: bytes, name: str, options: _Options) -> Text:
    from isogloss.data.tokenise import NormalForm, normalise_words, tokenise_bytes

    form = cast(NormalForm | None, options.normalise)
    if options.tokenise == "space":
        return normalise_words(Text.from_bytes(data, name), form)
    return tokenise_bytes(data, options.tokenise, form, name=name)


# Writing -------------------------------------------------------------------------------------------------------------


def write_bitext(
    bitext: Bitext,
    source: PathOrName | None,
    target: PathOrName | None = None,
    *,
    format: str = "auto",
    languages: tuple[str, str] = ("x-source", "x-target"),
    untokenised: bool = False,
) -> None:
    """Write a parallel text to two files, or to one that holds both sides.

    Parameters
    ----------
    source, target : str or path
        ``-`` and None are standard output (as `source`); names in ``.gz``, ``.xz`` and ``.zst`` are compressed. Each
        file is whole or absent.
    format : {"auto", "pair", "bars", "tsv", "tmx"}
        "auto": a pair if there are two files, else by the name, else bars.
    languages : (str, str)
        The language codes that TMX wants.
    untokenised : bool
        Write the lines that a tokeniser was given rather than its tokens.

    Notes
    -----
    White space inside a token (tokens from memory may have it) is written as a no-break space, so that reading the file
    again gives as many tokens.
    """
    if format not in _FORMATS:
        raise ParameterError(f"format should be one of {', '.join(_FORMATS)}, not {format!r}")
    options = _Options(format, ("utf-8", "utf-8"), "strict", "space", None, None, languages)
    if (format == "pair") != (target is not None) and format != "auto":
        raise UsageError("a pair of files needs two names, every other format one")
    if target is not None:
        if source is None:
            raise UsageError("a pair of files needs two names, and only the second was given")
        for path, text in ((source, bitext.source), (target, bitext.target)):
            with atomic_write(path) as file:
                file.write(lines_of(text, untokenised=untokenised))
        return
    kind = "bars" if source is None and format == "auto" else _by_name(source or "-", options)
    sides = [lines_of(text, untokenised=untokenised) for text in (bitext.source, bitext.target)]
    data = _together(sides, "bars" if kind == "auto" else kind, bitext, languages)
    with atomic_write(source) as file:
        for piece in data:
            file.write(piece)


def lines_of(text: Text, *, untokenised: bool = False) -> bytes:
    """One side as the bytes of a file: a line for each sentence, its tokens with a space between them."""
    if untokenised and text.lines is not None:
        return _lines([re.sub(r"[\n\t]", " ", line).encode("utf-8", "replace") for line in text.lines])
    from isogloss.data.formats._numba.words import join_words

    words = [(_SPACES.sub("\u00a0", word) or "\u00a0").encode("utf-8", "replace") for word in text.vocabulary.types]
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=starts[1:])
    letters = np.frombuffer(b"".join(words), np.uint8)
    lines: bytes = join_words(text.ids.values, text.ids.offsets, letters, starts).tobytes()
    return lines


def _together(sides: list[bytes], kind: str, bitext: Bitext, languages: tuple[str, str]) -> Iterator[bytes]:
    source, target = (side.split(b"\n")[:-1] for side in sides)
    pairs = zip(source, target, strict=True)
    if kind == "tmx":
        document = format_tmx(((left.decode(), right.decode()) for left, right in pairs), languages)
        yield from (piece.encode() for piece in document)
        return
    if kind == "bars":
        for pair, (left, right) in enumerate(zip(source, target, strict=True)):
            if b"|||" in left + b" " + right and len(_BARS.split(left)) + len(_BARS.split(right)) > 2:
                raise BitextError(
                    f"{bitext.source.name}, line {bitext.line_of(pair)}: '|||' is in the text itself, so it cannot be "
                    "written between the two sides. Write TSV (format='tsv') or two files"
                )
    between = b" ||| " if kind == "bars" else b"\t"
    yield b"".join(left + between + right + b"\n" for left, right in pairs)
