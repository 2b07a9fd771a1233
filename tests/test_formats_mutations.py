"""Good files with random damage: every reader either reads them or says in its own words what is wrong."""

from __future__ import annotations

import gzip
import lzma
import warnings
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import Bitext
from isogloss.data.formats import read_bitext, read_links, stream_bitext
from isogloss.errors import IsoglossError

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>a <bpt i="1">x</bpt>b &amp; c</seg></tuv><tuv xml:lang="fr"><seg>é</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg><![CDATA[q]]></seg></tuv><tuv xml:lang="fr"><seg>&#233;</seg></tuv></tu>
</body></tmx>"""
GIZA = "# Sentence pair (1) source length 2 target length 2\nthe house\nNULL ({ }) das ({ 1 }) Haus ({ 2 })\n"
GOOD = {
    "a.tmx": TMX.encode(),
    "wide.tmx": TMX.replace("UTF-8", "UTF-16").encode("utf-16"),
    "a.xml": TMX.encode(),
    "a.tsv": "das Haus\tthe house\nein Café\ta café\r\n\n".encode(),
    "a.txt": "das Haus ||| the house\nein Café ||| a café\n\n ||| x\n".encode(),
    "pharaoh": b"0-0 1-1:0.5 2p3\n\n1-0\n",
    "naacl": b"1 1 1 S 0.5\n2 3 1 P\n3 1 1\n",
    "giza": GIZA.encode(),
}
PRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
PIECES = (
    b"\t", b"\n", b"\r", b" ||| ", b"\0", b"\xff", b"\xc3", b"\xff\xfe", b"\xef\xbb\xbf", b"<", b">", b"&", b"]]>",
    b"<!ENTITY x 'y'>", b" xml:lang='de'", b" encoding='x'", b"-", b":", b"p", b"nan", b"1e400", b"4294967296", b"-1",
    b"({", b"})",
)  # fmt: skip
TEXT = Bitext.of([("a b c", "x y z w"), ("", ""), ("d e", "f")])
EDIT = st.tuples(st.floats(0, 1), st.integers(0, 8), st.one_of(st.sampled_from(PIECES), st.binary(max_size=3)))


def damaged(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    """At a place between start and end, some bytes replaced by others."""
    for place, n_lost, new in edits:
        at = int(place * len(data))
        data = data[:at] + new + data[at + n_lost :]
    return data


@pytest.mark.parametrize("name", GOOD)
@settings(max_examples=100)
@given(
    before=st.lists(EDIT, max_size=4),
    press=st.sampled_from(sorted(PRESS)),
    after=st.lists(EDIT, max_size=1),
    encoding=st.sampled_from(["utf-8", "utf-8", "utf-16", "utf-32", "utf-7", "cp1252", "shift_jis", "hz"]),
)
def test_damaged_files_are_read_or_refused(tmp_path_factory, name, before, press, after, encoding):
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(damaged(PRESS[press](damaged(GOOD[name], before)), after if press != "plain" else []))
    readers: list[Callable[[], object]] = [
        lambda: list(read_bitext(path, encoding=encoding)),
        lambda: list(stream_bitext(path, encoding=encoding, size=1, columns=(1, 0), languages=("fr", "en"))),
    ]
    if "." not in name:
        readers = [lambda: read_links(path), lambda: read_links(path, bitext=TEXT, encoding=encoding)]
    for read in readers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read()
            except IsoglossError as problem:
                assert "\n" not in str(problem)
