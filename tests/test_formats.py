"""Bytes in and out: compression, encodings, blocks, and output that is whole or absent."""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import random
import resource
import stat
import subprocess
import sys
import tracemalloc
import warnings
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data.formats import IsoglossWarning, atomic_write, compression, open_lines, read_bytes
from isogloss.errors import BitextError, DataError, ParameterError, UsageError

PRESS = {
    ".gz": gzip.compress,
    ".xz": lambda data: lzma.compress(data, preset=0),  # the usual one takes seconds for the large files below
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
TEXT = "das Haus\nein Café\n".encode()


def feed(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


# Reading


def test_plain_bytes_come_back(tmp_path):
    (tmp_path / "a").write_bytes(TEXT)
    assert read_bytes(tmp_path / "a") == TEXT
    assert read_bytes(str(tmp_path / "a")) == TEXT


@pytest.mark.parametrize("suffix", [*PRESS, ".txt", ""])
@pytest.mark.parametrize("kind", PRESS)
def test_compression_is_told_by_the_bytes_not_by_the_name(tmp_path, kind, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PRESS[kind](TEXT))
    assert read_bytes(path) == TEXT
    assert b"".join(open_lines(path, size=1)) == TEXT


def test_a_plain_text_may_be_called_gz(tmp_path):
    (tmp_path / "a.gz").write_bytes(TEXT)
    assert read_bytes(tmp_path / "a.gz") == TEXT


@pytest.mark.parametrize("kind", PRESS)
def test_members_one_after_the_other_and_padding(tmp_path, kind):
    path = tmp_path / "a"
    path.write_bytes(PRESS[kind](b"one\n") + PRESS[kind](b"") + PRESS[kind](b"two\n") + bytes(8))
    assert read_bytes(path) == b"one\ntwo\n"


@pytest.mark.parametrize("kind", PRESS)
def test_truncated_compression_is_an_error_wherever_it_is_cut(tmp_path, kind):
    whole = PRESS[kind](b"".join(b"line %d\n" % k for k in range(50)))
    path = tmp_path / f"cut{kind}"
    for length in range(6, len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(BitextError, match="cut"):
            read_bytes(path)
    with pytest.raises(BitextError, match=f"cut{kind}: the .* data end too soon"):
        list(open_lines(path))


@pytest.mark.parametrize("kind", PRESS)
def test_damaged_compression_is_an_error(tmp_path, kind):
    whole = bytearray(PRESS[kind](b"".join(b"line %d\n" % (k * k) for k in range(500))))
    whole[len(whole) // 2] ^= 0xFF
    (tmp_path / "bad").write_bytes(whole)
    with pytest.raises(BitextError, match="bad: damaged"):
        read_bytes(tmp_path / "bad")


def grown(kind: str, n_bytes: int, start: bytes = b"") -> bytes:
    """Compressed zeros that follow some text."""
    return PRESS[kind](start + bytes(n_bytes))


@pytest.mark.parametrize("kind", PRESS)
def test_compressed_files_are_undone_in_bounded_pieces(tmp_path, kind):
    path = tmp_path / f"bomb{kind}"
    path.write_bytes(grown(kind, 128 << 20, TEXT))
    tracemalloc.start()
    lines = open_lines(path, size=1)
    assert [next(lines), next(lines)] == TEXT.splitlines(keepends=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 << 20


@pytest.mark.parametrize("kind", PRESS)
def test_a_file_that_grows_beyond_measure_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(compression, "FREE_EXPANSION", 1 << 20)
    path = tmp_path / f"bomb{kind}"
    path.write_bytes(grown(kind, 16 << 20, TEXT))
    for read in (read_bytes, lambda path: list(open_lines(path))):
        with pytest.raises(
            BitextError, match=rf"bomb\{kind}: its first .* than the 500 times .* decompress it yourself"
        ):
            read(path)


@pytest.mark.parametrize("kind", PRESS)
def test_repetitive_text_and_small_files_are_read(tmp_path, monkeypatch, kind):
    path = tmp_path / f"a{kind}"
    path.write_bytes(grown(kind, 16 << 20))
    with pytest.warns(IsoglossWarning, match="NUL"):
        assert len(read_bytes(path)) == 16 << 20  # however much it grew: below the size from which the ratio counts
    monkeypatch.setattr(compression, "FREE_EXPANSION", 1 << 20)
    draw = random.Random(1)
    text = b"".join(b"%d Yes , Mr President , I agree .\n" % draw.randrange(30) for _ in range(100_000))
    path.write_bytes(PRESS[kind](text))
    assert read_bytes(path) == text and len(text) > 20 * len(path.read_bytes())


def test_a_compressed_pipe_that_pauses_is_answered():
    packer = zlib.compressobj(wbits=31)
    first = packer.compress(b"one\ntw") + packer.flush(zlib.Z_SYNC_FLUSH)
    last = packer.compress(b"o\n") + packer.flush()
    assert list(compression.decompressed([first, b"", last], "gzip", "a")) == [b"one\ntw", b"", b"o\n"]


def test_wrong_paths_are_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="nothing: no such file"):
        read_bytes(tmp_path / "nothing")
    with pytest.raises(UsageError, match="is a directory"):
        read_bytes(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_bytes("a\0b")
    with pytest.raises(UsageError, match="no such file"):
        list(open_lines(tmp_path / "nothing"))


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is readable to root")
def test_unreadable_file_is_wrong_usage(tmp_path):
    (tmp_path / "a").touch(mode=0)
    with pytest.raises(UsageError, match="cannot be read"):
        read_bytes(tmp_path / "a")


def test_not_utf8_names_file_line_bytes_and_remedy(tmp_path):
    (tmp_path / "news.fr").write_bytes(b"un\ndeux\nle caf\xe9 noir\nquatre\n")
    for read in (read_bytes, lambda path: list(open_lines(path, size=2))):
        with pytest.raises(BitextError) as caught:
            read(tmp_path / "news.fr")
        message = str(caught.value)
        assert "news.fr, line 3: byte e9 in 'le caf\\xe9 noir'" in message
        assert "--encoding latin-1" in message and "--errors replace" in message and "encoding='latin-1'" in message


def test_encoding_and_errors_options(tmp_path):
    (tmp_path / "a").write_bytes(b"caf\xe9\n")
    assert read_bytes(tmp_path / "a", encoding="latin-1") == "café\n".encode()
    assert read_bytes(tmp_path / "a", errors="replace") == "caf\ufffd\n".encode()
    assert read_bytes(tmp_path / "a", errors="ignore") == b"caf\n"
    assert b"".join(open_lines(tmp_path / "a", errors="replace")) == "caf\ufffd\n".encode()
    assert b"".join(open_lines(tmp_path / "a", encoding="latin-1")) == "café\n".encode()
    with pytest.raises(BitextError, match=r"a, line 1: byte e9 .*ASCII"):
        read_bytes(tmp_path / "a", encoding="ascii")
    for wrong in (
        "klingon",
        "hex",
        "rot13",
        "base64",
        "idna",
        "punycode",
        "undefined",
        "unicode_escape",
        "",
        "a\0b",
        "x" * 1000,
    ):
        with pytest.raises(ParameterError, match="encoding should be"):
            read_bytes(tmp_path / "a", encoding=wrong)
    with pytest.raises(ParameterError, match="errors should be"):
        read_bytes(tmp_path / "a", errors="surrogateescape")


def test_error_line_is_right_far_into_a_large_file(tmp_path):
    good = "é" * 79 + "\n"  # windows of the check end inside a character
    (tmp_path / "a").write_bytes((good * 40_000).encode() + b"\xff\n")
    with pytest.raises(BitextError, match="line 40001: byte ff"):
        read_bytes(tmp_path / "a")
    with pytest.raises(BitextError, match="line 40001: byte ff"):
        list(open_lines(tmp_path / "a", size=1000))
    (tmp_path / "a").write_bytes((good * 40_000).encode("utf-16-le") + b"\x00\xd8")
    for read in (read_bytes, lambda path, **more: list(open_lines(path, size=999, **more))):
        with pytest.raises(BitextError, match="line 40001"):
            read(tmp_path / "a", encoding="utf-16-le")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1251", "shift_jis"])
def test_other_encodings_and_byte_order_marks(tmp_path, encoding):
    text = "raz\r\nдва\n" if encoding != "shift_jis" else "日本\n語\n"
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    (tmp_path / "a").write_bytes((mark + text).encode(encoding))
    assert read_bytes(tmp_path / "a", encoding=encoding) == text.encode()
    assert b"".join(open_lines(tmp_path / "a", encoding=encoding, size=1)) == text.encode()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_byte_orders_without_a_mark_are_asked_for(tmp_path, encoding):
    (tmp_path / "a").write_bytes("das Haus\n".encode(f"{encoding}-be"))
    for errors in ("strict", "replace"):
        for read in (read_bytes, lambda path, **more: list(open_lines(path, **more))):
            with pytest.raises(BitextError, match=rf"a, line 1: there is no byte order mark.*--encoding {encoding}-be"):
                read(tmp_path / "a", encoding=encoding, errors=errors)
    assert read_bytes(tmp_path / "a", encoding=f"{encoding}-be") == b"das Haus\n"
    (tmp_path / "a").write_bytes(b"")
    assert read_bytes(tmp_path / "a", encoding=encoding) == b""


def test_utf8_mark_is_dropped_and_others_are_named(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfdas\n")
    assert read_bytes(tmp_path / "a") == b"das\n"
    assert list(open_lines(tmp_path / "a")) == [b"das\n"]
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf")
    assert read_bytes(tmp_path / "a") == b"" and list(open_lines(tmp_path / "a")) == []
    for encoding in ("utf-16", "utf-32"):
        (tmp_path / "a").write_bytes("das\n".encode(encoding))
        for errors in ("strict", "replace"):
            with pytest.raises(BitextError, match=f"--encoding {encoding} "):
                read_bytes(tmp_path / "a", errors=errors)


def test_utf16_without_mark_is_suspected(tmp_path):
    (tmp_path / "a").write_bytes("das\n".encode("utf-16-le"))
    with pytest.warns(IsoglossWarning, match="NUL bytes"):
        read_bytes(tmp_path / "a")


def test_standard_input(monkeypatch):
    feed(monkeypatch, gzip.compress(TEXT))
    assert read_bytes("-") == TEXT
    feed(monkeypatch, b"\x1f\n\xff")
    with pytest.raises(BitextError, match="<stdin>, line 2"):
        read_bytes("-")


@settings(deadline=None)
@given(
    lines=st.lists(st.binary(max_size=4).map(lambda x: x.hex().encode()), max_size=30),
    last=st.booleans(),
    size=st.integers(1, 7),
    piece=st.integers(1, 9),
)
def test_blocks_hold_the_lines_they_should(lines, last, size, piece):
    from isogloss.data.formats.files import _blocks

    data = b"\n".join(lines) + (b"\n" if last and lines else b"")
    source = [data[k : k + piece] for k in range(0, len(data), piece)]
    blocks = list(_blocks(source, size, eager=False))
    assert b"".join(blocks) == data
    assert all(block.count(b"\n") == size for block in blocks[:-1])
    assert all(block.count(b"\n") <= size for block in blocks) and all(blocks)
    eager = list(_blocks([x for p in source for x in (p, b"")], size, eager=True))
    assert b"".join(eager) == data
    assert all(block.endswith(b"\n") and block.count(b"\n") <= size for block in eager[:-1])


def test_only_a_newline_ends_a_line(tmp_path):
    strange = "a\u2028b\x0cc\x85d\re\n".encode()
    (tmp_path / "a").write_bytes(strange * 3)
    assert list(open_lines(tmp_path / "a", size=1)) == [strange] * 3


def test_blocks_of_no_lines_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="positive"):
        list(open_lines(tmp_path / "a", size=0))


# Writing


@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=300), suffix=st.sampled_from(["", ".txt", ".gz", ".xz", ".zst", ".GZ"]))
def test_what_is_written_is_read(tmp_path_factory, data, suffix):
    text = data.hex().encode() + b"\n"
    path = tmp_path_factory.mktemp("w") / f"x{suffix}"
    for _ in range(2):
        with atomic_write(path) as file:
            for k in range(0, len(text), 50):
                file.write(text[k : k + 50])
        first = path.read_bytes()
        assert read_bytes(path) == text
    assert path.read_bytes() == first  # the same bytes each time
    assert (first == text) == (suffix in ("", ".txt"))
    assert os.listdir(path.parent) == [path.name]


def test_gzip_has_no_time_and_no_name(tmp_path):
    with atomic_write(tmp_path / "a.gz") as file:
        file.write(TEXT)
    header = (tmp_path / "a.gz").read_bytes()[:10]
    assert header[3] == 0 and header[4:8] == bytes(4)


@pytest.mark.parametrize("name", ["links", "links.gz", "links.xz", "links.zst"])
@pytest.mark.parametrize("problem", [ValueError("mine"), KeyboardInterrupt(), OSError(errno.EPERM, "other")])
def test_a_failure_leaves_what_was_there(tmp_path, name, problem):
    path = tmp_path / name
    path.write_bytes(b"before")
    with pytest.raises(type(problem)), atomic_write(path) as file:
        file.write(b"half" * 100_000)
        raise problem
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["links", "links.gz", "links.zst"])
def test_full_disk_found_by_fsync(tmp_path, monkeypatch, name):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(DataError, match=r"links.*: the disk is full .*nothing was written"),
        atomic_write(tmp_path / name) as f,
    ):
        f.write(b"0-0\n")
    assert os.listdir(tmp_path) == []


def test_full_disk_found_by_write(tmp_path):
    """A limit on the size of files is a disk that fills up while writing."""
    path = tmp_path / "links"
    path.write_bytes(b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(DataError, match="links: the disk is full"), atomic_write(path) as file:
            file.write(b"0-0\n" * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["links"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_devices_are_written_to_directly():
    with pytest.raises(DataError, match="/dev/full: the disk is full"), atomic_write("/dev/full") as file:
        file.write(b"x")
    with atomic_write("/dev/null") as file:
        file.write(b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_pipes_are_written_to_directly(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        with atomic_write(tmp_path / "pipe") as file:
            file.write(TEXT)
        assert reader.stdout is not None and reader.stdout.read() == TEXT
    with subprocess.Popen(["head", "-c", "3", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        with atomic_write(tmp_path / "pipe") as file:  # whose reader leaves early
            for _ in range(1000):
                file.write(TEXT * 100)
        assert reader.stdout is not None and reader.stdout.read() == b"das"


def test_links_modes_and_bad_places(tmp_path):
    real = tmp_path / "real"
    real.write_bytes(b"before")
    real.chmod(0o640)
    (tmp_path / "alias").symlink_to(real)
    with atomic_write(tmp_path / "alias") as file:
        file.write(b"after")
    assert (tmp_path / "alias").is_symlink() and real.read_bytes() == b"after"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    with pytest.raises(UsageError, match="no folder"), atomic_write(tmp_path / "no" / "x"):
        pass
    with pytest.raises(UsageError, match="is a directory"), atomic_write(tmp_path):
        pass


def test_new_files_obey_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "x"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


@pytest.mark.parametrize("path", ["-", None])
def test_standard_output(capfdbinary, path):
    with atomic_write(path) as file:
        file.write(TEXT)
    assert capfdbinary.readouterr().out == TEXT


def test_output_where_there_are_no_bytes(monkeypatch):
    notebook = io.StringIO()
    monkeypatch.setattr(sys, "stdout", notebook)
    with atomic_write("-") as file:
        file.write(TEXT)
    assert notebook.getvalue() == TEXT.decode()


SPEAK = """
from isogloss.data.formats.files import atomic_write
from isogloss.errors import DataError
try:
    with atomic_write("-") as file:
        for _ in range(100_000):
            file.write(b"0-0 1-1\\n")
except DataError as problem:
    raise SystemExit(f"said: {problem}")
"""


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -c '{SPEAK}' | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"0-0 1-1\n", b"", 0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_standard_output_is_said_once():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-c", SPEAK], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "said: <stdout>: the output could not be written: no space left on device"
    ]


def test_no_warning_on_ordinary_text(tmp_path):
    (tmp_path / "a").write_bytes(TEXT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_bytes(tmp_path / "a")
