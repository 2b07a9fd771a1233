"""Bytes in and bytes out: compression, encodings, blocks of lines, and output files that are whole or absent."""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import numpy as np

from isogloss.data.formats.compression import MAGIC, compressor, decompressed
from isogloss.errors import BitextError, DataError, ParameterError, UsageError
from isogloss.places import FULL, is_written_directly, own_mark, refusal, remove_leftovers

__all__ = [
    "IsoglossWarning",
    "PathOrName",
    "atomic_write",
    "check_encoding",
    "name_of",
    "open_lines",
    "pieces",
    "read_bytes",
    "read_whole",
    "side_encodings",
]

PathOrName = str | os.PathLike[str]

_PIECE = 1 << 16
_LARGE_PIECE = 1 << 20  # when all of the file is read at once
_FAILED = FULL | {errno.EIO}
_WIDE_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]
_BYTE_ORDERS = {"utf-16": ("utf-16-le", "utf-16-be"), "utf-32": ("utf-32-le", "utf-32-be")}
# Python calls them text encodings, but no file is written in them.
_NOT_OF_FILES = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
_TOLERANCES = ("strict", "replace", "ignore", "backslashreplace")


class IsoglossWarning(UserWarning):
    """Something looks odd, and the work goes on; the message says what was assumed."""


def name_of(path: PathOrName) -> str:
    """The name of a file, as messages give it."""
    name = os.fspath(path)
    return "<stdin>" if name == "-" else name


# Reading -------------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(path: PathOrName) -> Iterator[BinaryIO]:
    """Open for reading; what is wrong with the path itself is wrong usage."""
    if os.fspath(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed below, once the complaints about opening are behind us
    except FileNotFoundError:
        raise UsageError(f"{name_of(path)}: no such file") from None
    except IsADirectoryError:
        raise UsageError(f"{name_of(path)}: is a directory; give a file in it") from None
    except (OSError, ValueError) as problem:
        raise UsageError(f"{name_of(path)}: cannot be read: {_reason(problem)}") from None
    with stream:
        yield stream


def _reason(problem: Exception) -> str:
    return (getattr(problem, "strerror", None) or str(problem)).lower()


def _would_wait(stream: BinaryIO) -> bool:
    """Whether reading would block now: true of a pipe or a terminal whose writer is still thinking."""
    try:
        return not select.select([stream], [], [], 0)[0]
    except (ValueError, TypeError):  # not a stream with a descriptor
        return False
    except OSError:  # Windows can tell of sockets alone, and a pipe or a terminal may always make us wait
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def _raw_pieces(stream: BinaryIO, head: bytes, size: int) -> Iterator[bytes]:
    if head:
        yield head
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while True:
        if _would_wait(stream):
            yield b""
        piece = read(size)
        if not piece:
            return
        yield piece


def pieces(path: PathOrName, size: int = _PIECE) -> Iterator[bytes]:
    """The contents of a file, decompressed, in pieces of no fixed size, at most some MiB each.

    `size` is how many bytes of the file are read at a time. An empty piece says that whoever writes into the pipe has
    nothing more just now.
    """
    name = name_of(path)
    with _opened(path) as stream:
        try:
            head = b""
            while any(magic.startswith(head) and magic != head for magic in MAGIC):
                byte = stream.read(1)  # one by one: a pipe must not make us wait for bytes that a text does not need
                head += byte
                if not byte:
                    break
            raw = _raw_pieces(stream, head, size)
            kind = MAGIC.get(head)
            yield from raw if kind is None else decompressed(raw, kind, name)
        except OSError as problem:
            raise DataError(f"{name}: reading failed: {_reason(problem)}") from None


def read_whole(path: PathOrName) -> bytes:
    """The contents of a file, decompressed, and as they are otherwise."""
    whole = io.BytesIO()  # grows in place, where joining pieces would hold everything twice
    whole.writelines(pieces(path, _LARGE_PIECE))
    return whole.getvalue()


def read_bytes(path: PathOrName, *, encoding: str = "utf-8", errors: str = "strict") -> bytes:
    """The whole of a file as valid UTF-8 without a byte order mark.

    Parameters
    ----------
    path : str or path
        ``-`` is standard input. gzip, xz and zstd are undone whatever the file is called.
    encoding : str
        How the file is written, by a name that Python knows.
    errors : {"strict", "replace", "ignore", "backslashreplace"}
        What to do with bytes that are not of that encoding.

    Raises
    ------
    BitextError
        The bytes are not of that encoding, or the compressed data are damaged.
    UsageError
        There is no such file, or it cannot be read.
    """
    wide = check_encoding(encoding, errors)
    whole = read_whole(path)
    if wide is not None:
        return b"".join(_transcoded([whole], name_of(path), wide, errors))
    whole = _without_mark(whole, name_of(path))
    _suspect_wide(whole, name_of(path))
    return _checked(whole, name_of(path), errors, 1)


def open_lines(
    path: PathOrName, *, size: int = 10_000, encoding: str = "utf-8", errors: str = "strict", eager: bool = False
) -> Iterator[bytes]:
    """Blocks of at most `size` lines, as `read_bytes` would give them; memory is bounded by a block.

    With `eager`, a block is given as soon as whole lines are there and the writer of the pipe has stopped for breath,
    so that a program which sends a line and waits for its answer gets it. Without, every block but the last has `size`
    lines.
    """
    wide = check_encoding(encoding, errors)
    if size < 1:
        raise ParameterError(f"open_lines: size should be a positive integer, not {size!r}")
    name = name_of(path)
    source: Iterable[bytes] = pieces(path)
    if wide is not None:
        source = _transcoded(source, name, wide, errors)
    line = 1
    for block in _blocks(source, size, eager):
        if line == 1 and wide is None:
            block = _without_mark(block, name)
            _suspect_wide(block, name)
        n_lines = block.count(b"\n")
        if block:
            yield block if wide is not None else _checked(block, name, errors, line)
        line += n_lines


def _blocks(source: Iterable[bytes], size: int, eager: bool) -> Iterator[bytes]:
    held: list[bytes] = []
    n_held = 0  # whole lines among them
    for piece in source:
        if not piece:
            if eager and n_held:
                block, newline, rest = b"".join(held).rpartition(b"\n")
                yield block + newline
                held, n_held = [rest], 0
            continue
        ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n")) + 1
        start = used = 0
        while n_held + len(ends) - used >= size:
            used += size - n_held
            stop = int(ends[used - 1])
            yield b"".join([*held, piece[start:stop]])
            held, n_held, start = [], 0, stop
        held.append(piece[start:])
        n_held += len(ends) - used
    if rest := b"".join(held):
        yield rest


def check_encoding(encoding: str, errors: str = "strict") -> str | None:
    """Refuse what is no encoding of text; the name by which Python knows it when it is another than UTF-8."""
    if errors not in _TOLERANCES:
        raise ParameterError(f"errors should be one of {', '.join(_TOLERANCES)}, not {errors!r}")
    try:
        found = codecs.lookup(encoding)
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # refuses codecs that are not of text, such as hex
    except (LookupError, TypeError, ValueError):
        found = None
    if found is None or found.incrementaldecoder is None or found.name in _NOT_OF_FILES:
        raise ParameterError(
            f"encoding should be a text encoding that Python knows (utf-8, latin-1, utf-16, ...), not {encoding!r:.60}"
        )
    return None if found.name in {"utf-8", "utf-8-sig"} else found.name


def side_encodings(encoding: str, source: str | None, target: str | None) -> tuple[str, str]:
    """The encoding of each of two files: its own where one is given, and the common one otherwise."""
    return encoding if source is None else source, encoding if target is None else target


def _without_mark(data: bytes, name: str) -> bytes:
    for mark, encoding in _WIDE_MARKS:
        if data.startswith(mark):
            raise BitextError(
                f"{name}, line 1: the byte order mark says {encoding.upper()}, not UTF-8. "
                f"Give --encoding {encoding} (encoding='{encoding}' in Python)"
            )
    return data.removeprefix(codecs.BOM_UTF8)


def _suspect_wide(data: bytes, name: str) -> None:
    if b"\0" in data:
        warnings.warn(
            f"{name}: there are NUL bytes in it. If it is UTF-16 without a byte order mark, give --encoding utf-16-le "
            "(encoding='utf-16-le' in Python)",
            IsoglossWarning,
            stacklevel=3,
        )


def _checked(data: bytes, name: str, errors: str, first_line: int) -> bytes:
    """The same bytes if they are UTF-8; else an error that names the line, or what `errors` makes of them."""
    if data.isascii():
        return data
    step, at = 1 << 22, 0
    view = memoryview(data)
    try:
        while at < len(data):  # in windows, so that checking a large file does not need its size again
            final = at + step >= len(data)
            at += codecs.utf_8_decode(view[at : at + step], "strict", final)[1]
    except UnicodeDecodeError as problem:
        if errors != "strict":
            return data.decode("utf-8", errors).encode()
        start, stop = at + problem.start, at + problem.end
        raise _not_decodable(data, start, stop, name, "utf-8", first_line + data.count(b"\n", 0, start)) from None
    return data


def _transcoded(source: Iterable[bytes], name: str, encoding: str, errors: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    line, started = 1, False

    def decode(piece: bytes, final: bool) -> bytes:
        nonlocal line, started
        try:
            text = decoder.decode(piece, final)
        except UnicodeError as problem:
            data: bytes = getattr(problem, "object", b"")
            if not started and encoding in _BYTE_ORDERS and not data.startswith(tuple(mark for mark, _ in _WIDE_MARKS)):
                raise _no_mark(name, encoding) from None
            if not isinstance(problem, UnicodeDecodeError):
                raise
            line += data[: problem.start].decode(problem.encoding, "ignore").count("\n")
            raise _not_decodable(data, problem.start, problem.end, name, encoding, line) from None
        if text and not started:
            started, text = True, text.removeprefix("\ufeff")
        line += text.count("\n")
        return text.encode("utf-8", "replace")

    for piece in source:
        if not piece or (piece := decode(piece, False)):
            yield piece
    if piece := decode(b"", True):
        yield piece


def _no_mark(name: str, encoding: str) -> BitextError:
    little, big = _BYTE_ORDERS[encoding]
    return BitextError(
        f"{name}, line 1: there is no byte order mark, so {encoding.upper()} does not say which byte of a character "
        f"comes first. Give --encoding {little}, as Windows has it, or --encoding {big} (encoding= in Python)"
    )


def _not_decodable(data: bytes, start: int, stop: int, name: str, encoding: str, line: int) -> BitextError:
    left = max(start - 16, data.rfind(b"\n", 0, start) + 1)
    right = data.find(b"\n", stop, stop + 16)
    near = data[left : right if right >= 0 else stop + 16].decode("ascii", "backslashreplace").strip()
    what = "byte" if stop - start == 1 else "bytes"
    remedy = "--errors replace (errors='replace') puts a mark in its place"
    if encoding == "utf-8":
        remedy = (
            "Another encoding? say so: --encoding latin-1 (encoding='latin-1' in Python; of one side of a bitext "
            f"--source-encoding, --target-encoding); {remedy}"
        )
    return BitextError(
        f"{name}, line {line}: {what} {data[start:stop].hex(' ')} in '{near}' cannot be read as {encoding.upper()}. "
        + remedy
    )


# Writing -------------------------------------------------------------------------------------------------------------


@contextmanager
def atomic_write(path: PathOrName | None) -> Iterator[BinaryIO]:
    """Write a file so that it is there whole, or not at all.

    The bytes go to a new file beside `path`, which takes its place when the block ends well and is removed when it does
    not: a full disk, an error or Ctrl-C leaves what was there before. ``-`` and None are standard output; devices and
    pipes are written to directly. Names in ``.gz``, ``.xz`` and ``.zst`` are compressed, with the same bytes each time.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "links.txt")
    >>> with atomic_write(path) as file:
    ...     _ = file.write(b"0-0 1-1\\n")
    >>> path.read_text()
    '0-0 1-1\\n'
    """
    if path is None or os.fspath(path) == "-":
        with _standard_output() as out:
            yield out
        return
    name = os.fspath(path)
    before = _existing(name)
    if is_written_directly(name):
        with suppress(BrokenPipeError), _explained(name), _device(name) as stream, compressor(stream, name) as out:
            yield out
        return
    final = os.path.realpath(name)
    folder, base = os.path.split(final)
    remove_leftovers(folder, f".{base[:60]}.", ".part")
    part = os.path.join(folder, f".{base[:60]}.{own_mark()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        try:
            handle = os.open(part, flags, 0o666)
        except (OSError, ValueError) as problem:
            raise refusal(name, problem) from None
        with _explained(name), os.fdopen(handle, "wb") as stream:
            with compressor(stream, name) as out:
                yield out
            stream.flush()
            os.fsync(stream.fileno())
            if before:
                with suppress(OSError):
                    os.chmod(part, stat.S_IMODE(before.st_mode))
        try:
            os.replace(part, final)
        except OSError as problem:
            raise refusal(name, problem) from None
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _device(name: str) -> BinaryIO:
    try:
        return open(name, "wb")
    except OSError as problem:
        raise refusal(name, problem) from None


def _existing(name: str) -> os.stat_result | None:
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(found.st_mode):
        raise UsageError(f"{name}: is a directory; give the name of a file in it")
    if not os.access(name, os.W_OK):
        raise UsageError(f"{name}: is there already and may not be written to")
    return found


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Full and failing disks in the user's words; any other error passes, since it may be of something else."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _FAILED:
            raise refusal(name, problem) from None
        raise


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    out = getattr(sys.stdout, "buffer", None)
    if out is None:  # a notebook: text only
        held = io.BytesIO()
        yield held
        sys.stdout.write(held.getvalue().decode("utf-8", "replace"))
        return
    try:
        sys.stdout.flush()
        yield out
        out.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _silence_output()
    except OSError as problem:
        if problem.errno not in _FAILED:
            raise
        _silence_output()
        raise DataError(f"<stdout>: the output could not be written: {_reason(problem)}") from None


def _silence_output() -> None:
    """Let what is left in the buffers go nowhere, so that Python does not complain again when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
