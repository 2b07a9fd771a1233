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
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, BinaryIO, cast

import numpy as np

from isogloss.errors import BitextError, DataError, ParameterError, UsageError
from isogloss.places import FULL, is_written_directly, refusal

__all__ = ["IsoglossWarning", "PathOrName", "atomic_write", "name_of", "open_lines", "pieces", "read_bytes"]

PathOrName = str | os.PathLike[str]

_PIECE = 1 << 16
_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_FAILED = FULL | {errno.EIO}
_WIDE_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]
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
    if size < 0:
        yield stream.read()
        return
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while True:
        if _would_wait(stream):
            yield b""
        piece = read(size)
        if not piece:
            return
        yield piece


def _decompressor(kind: str) -> Callable[[], Any]:
    if kind == "gzip":
        import zlib

        return lambda: zlib.decompressobj(wbits=31)
    if kind == "xz":
        import lzma

        return lzma.LZMADecompressor
    import zstandard

    return lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()  # as --long makes


def _decompressed(compressed: Iterable[bytes], kind: str, name: str) -> Iterator[bytes]:
    """Undo gzip, xz or zstd, any number of members one after the other; a member cut short is an error."""
    start = _decompressor(kind)
    machine = start()
    try:
        for piece in compressed:
            while piece:
                if machine.eof:
                    piece = piece.lstrip(b"\0")  # padding between members, as tapes and xz have it
                    if not piece:
                        break
                    machine = start()
                if plain := machine.decompress(piece):
                    yield plain
                piece = machine.unused_data if machine.eof else b""
    except Exception as problem:  # zlib.error, LZMAError and ZstdError have no common parent
        if type(problem).__name__ not in {"error", "LZMAError", "ZstdError"}:
            raise
        raise BitextError(
            f"{name}: damaged {kind} data ({problem}). Copy or make the file again; `{kind} -t` checks it"
        ) from None
    if not machine.eof:
        raise BitextError(f"{name}: the {kind} data end too soon. Was a copy cut short? `{kind} -t` checks it")


def pieces(path: PathOrName, size: int = _PIECE) -> Iterator[bytes]:
    """The contents of a file, decompressed, in pieces of no fixed size; in one go when `size` is negative.

    An empty piece says that whoever writes into the pipe has nothing more just now.
    """
    name = name_of(path)
    with _opened(path) as stream:
        try:
            head = b""
            while any(magic.startswith(head) and magic != head for magic in _MAGIC):
                byte = stream.read(1)  # one by one: a pipe must not make us wait for bytes that a text does not need
                head += byte
                if not byte:
                    break
            raw = _raw_pieces(stream, head, size)
            kind = _MAGIC.get(head)
            yield from raw if kind is None else _decompressed(raw, kind, name)
        except OSError as problem:
            raise DataError(f"{name}: reading failed: {_reason(problem)}") from None


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
    wide = _check_encoding(encoding, errors)
    whole = b"".join(pieces(path, -1))
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
    wide = _check_encoding(encoding, errors)
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


def _check_encoding(encoding: str, errors: str) -> str | None:
    """The encoding when it is another than UTF-8."""
    if errors not in _TOLERANCES:
        raise ParameterError(f"errors should be one of {', '.join(_TOLERANCES)}, not {errors!r}")
    try:
        found = codecs.lookup(encoding)
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # refuses codecs that are not of text, such as hex
    except (LookupError, TypeError, ValueError):
        raise ParameterError(
            f"encoding should be a text encoding that Python knows (utf-8, latin-1, utf-16, ...), not {encoding!r}"
        ) from None
    return None if found.name in {"utf-8", "utf-8-sig"} else found.name


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
        except UnicodeDecodeError as problem:
            line += problem.object[: problem.start].decode(problem.encoding, "ignore").count("\n")
            raise _not_decodable(problem.object, problem.start, problem.end, name, encoding, line) from None
        if text and not started:
            started, text = True, text.removeprefix("\ufeff")
        line += text.count("\n")
        return text.encode("utf-8", "replace")

    for piece in source:
        if not piece or (piece := decode(piece, False)):
            yield piece
    if piece := decode(b"", True):
        yield piece


def _not_decodable(data: bytes, start: int, stop: int, name: str, encoding: str, line: int) -> BitextError:
    left = max(start - 16, data.rfind(b"\n", 0, start) + 1)
    right = data.find(b"\n", stop, stop + 16)
    near = data[left : right if right >= 0 else stop + 16].decode("ascii", "backslashreplace").strip()
    what = "byte" if stop - start == 1 else "bytes"
    remedy = "--errors replace (errors='replace') puts a mark in its place"
    if encoding == "utf-8":
        remedy = "Another encoding? say so: --encoding latin-1 (encoding='latin-1' in Python); " + remedy
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
        with suppress(BrokenPipeError), _explained(name), _device(name) as stream, _compressor(stream, name) as out:
            yield out
        return
    final = os.path.realpath(name)
    folder, base = os.path.split(final)
    part = os.path.join(folder, f".{base[:60]}.{os.urandom(4).hex()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(part, flags, 0o666)
    except (OSError, ValueError) as problem:
        raise refusal(name, problem) from None
    try:
        with _explained(name), os.fdopen(handle, "wb") as stream:
            with _compressor(stream, name) as out:
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


def _compressor(stream: BinaryIO, name: str) -> AbstractContextManager[BinaryIO]:
    suffix = os.path.splitext(name)[1].lower()
    box: Any
    if suffix == ".gz":
        import gzip

        box = gzip.GzipFile(filename="", mode="wb", fileobj=stream, compresslevel=6, mtime=0)
    elif suffix == ".xz":
        import lzma

        box = lzma.LZMAFile(stream, "wb")  # noqa: SIM115 - the caller opens and closes it
    elif suffix == ".zst":
        import zstandard

        box = zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(stream, closefd=False)
    else:
        return nullcontext(stream)
    return cast(AbstractContextManager[BinaryIO], box)


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
