"""gzip, xz and zstd: undone in pieces of bounded size, whatever the file promises, and made for output."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO, cast

from isogloss.errors import BitextError

__all__ = ["FREE_EXPANSION", "MAGIC", "MOST_EXPANSION", "compressor", "decompressed"]

MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""The first bytes of compressed files."""

MOST_EXPANSION = 500
"""How many times larger than its compressed bytes a text may be.

Prose shrinks to a third or a tenth, and what repeats itself line by line to a hundredth; files that are made to fill
the memory are a thousandth of what they hold (gzip), or far less (xz, zstd).
"""

FREE_EXPANSION = 256 << 20
"""Contents of up to this many bytes are never refused."""

# Compressed bytes undone in one go, so that they hold 8 MiB at most: a byte of gzip can be 1 KiB, and of zstd 32 KiB.
_MORSELS = {"gzip": 1 << 13, "xz": 1 << 8, "zstd": 1 << 8}
_PIECE = 1 << 16  # contents are handed on in pieces of at least this size
_MOST_WINDOW = 1 << 31  # of memory for looking back, as `zstd --long=31` and the largest dictionaries of xz want


def _decompressor(kind: str) -> tuple[Callable[[], Any], type[Exception]]:
    """What undoes one member of a file, and what it raises when the member is damaged."""
    if kind == "gzip":
        import zlib

        return lambda: zlib.decompressobj(wbits=31), zlib.error
    if kind == "xz":
        import lzma

        return lambda: lzma.LZMADecompressor(memlimit=_MOST_WINDOW), lzma.LZMAError
    import zstandard

    return (
        lambda: zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW).decompressobj(write_size=_PIECE),
        zstandard.ZstdError,
    )


def decompressed(compressed: Iterable[bytes], kind: str, name: str) -> Iterator[bytes]:
    """Undo gzip, xz or zstd, any number of members one after the other; a member cut short is an error.

    Memory is bounded whatever the members hold, and contents that are larger than text can be are refused: see
    `MOST_EXPANSION`. An empty piece, which says that there is nothing more just now, is passed on.
    """
    start, damage = _decompressor(kind)
    machine = start()
    ready: list[bytes] = []
    n_ready = n_plain = n_compressed = 0
    try:
        for morsel in _morsels(compressed, _MORSELS[kind]):
            n_compressed += len(morsel)
            pause = not morsel
            while morsel:
                if machine.eof:
                    morsel = morsel.lstrip(b"\0")  # padding between members, as tapes and xz have it
                    if not morsel:
                        break
                    machine = start()
                ready.append(machine.decompress(morsel))
                n_ready += len(ready[-1])
                morsel = machine.unused_data if machine.eof else b""
            if n_ready >= _PIECE or (pause and n_ready):
                n_plain += n_ready
                _check_expansion(n_plain, n_compressed, kind, name)
                yield b"".join(ready)
                ready, n_ready = [], 0
            if pause:
                yield b""
    except damage as problem:
        raise BitextError(
            f"{name}: damaged {kind} data ({problem}). Copy or make the file again; `{kind} -t` checks it"
        ) from None
    if not machine.eof:
        raise BitextError(f"{name}: the {kind} data end too soon. Was a copy cut short? `{kind} -t` checks it")
    if n_ready:
        yield b"".join(ready)


def _morsels(compressed: Iterable[bytes], size: int) -> Iterator[bytes]:
    for piece in compressed:
        for at in range(0, max(len(piece), 1), size):
            yield piece[at : at + size]


def _check_expansion(n_plain: int, n_compressed: int, kind: str, name: str) -> None:
    if n_plain > max(FREE_EXPANSION, MOST_EXPANSION * n_compressed):
        raise BitextError(
            f"{name}: its first {n_compressed:,} bytes of {kind} data hold {n_plain:,}, {n_plain // n_compressed:,} "
            f"times as many and more than the {MOST_EXPANSION} times that are read: such files are made to fill the "
            f"memory. If it is right all the same, decompress it yourself first (`{kind} -d`) and give the plain file"
        )


def compressor(stream: BinaryIO, name: str) -> AbstractContextManager[BinaryIO]:
    """What compresses into `stream` as the suffix of the name says; the stream itself for any other suffix."""
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
