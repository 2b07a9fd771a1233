"""Files of names: a word a line with its tag in the last column, in any of the usual ways to tag (BIO and others).

What was read is written byte for byte, but for the tags of words whose names have changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.formats.relations import are_heads, are_marked, parse_heads, parse_marked
from isogloss.data.mentions import Entity, Mentions
from isogloss.data.ragged import Ragged
from isogloss.data.treebank import Column
from isogloss.errors import MentionsError, ParameterError

__all__ = [
    "FORMATS", "SCHEMES", "ColumnSource", "MentionSource", "decode_tags", "encode_tags", "format_mentions",
    "format_of", "parse_mentions", "read_mentions", "scheme_of",
]  # fmt: skip

SCHEMES = ("BIO", "IOB1", "BIOES", "BILOU")
"""Ways to write names as tags: begin, inside; B only between neighbours; with ends and singles; last and units."""
_TAG = re.compile(rb"O|[BIESLU]-\S+")
_LAST = {"BIOES": "E", "BILOU": "L"}
_SINGLE = {"BIOES": "S", "BILOU": "U"}
_LOOKED_AT = 1 << 16


class MentionSource(Protocol):
    """The text that sentences with names came from, whatever its format."""

    def line_of(self, sentence: int, /) -> int:
        """The line, from 1, in which a sentence begins."""
        ...

    def chosen(self, rows: Any, /) -> Self:
        """The same for some of the sentences."""
        ...

    def render(self, mentions: Mentions, /) -> bytes:
        """The text with the names and relations that sentences have now."""
        ...


# Tags ----------------------------------------------------------------------------------------------------------------


def decode_tags(tags: Sequence[str]) -> list[Entity]:
    """The names that tags say, by the rules of conlleval: what does not continue a name begins one.

    Examples
    --------
    >>> decode_tags(["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-ORG"])
    [(0, 2, 'PER'), (3, 4, 'LOC'), (4, 5, 'LOC'), (5, 6, 'ORG')]
    >>> decode_tags(["B-PER", "E-PER", "S-LOC", "U-LOC"])
    [(0, 2, 'PER'), (2, 3, 'LOC'), (3, 4, 'LOC')]
    """
    found: list[Entity] = []
    begin, inside, closed = 0, "", False
    for t, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if inside and (tag == "O" or kind != inside or prefix in "BSU" or closed):
            found.append((begin, t, inside))
            inside = ""
        if tag != "O":
            begin, inside, closed = (begin if inside else t), kind, prefix in "ELSU"
    if inside:
        found.append((begin, len(tags), inside))
    return found


def encode_tags(n: int, entities: Sequence[Entity], scheme: str = "BIO") -> list[str]:
    """The tags of n words, of which some are names, in order and without overlap.

    Examples
    --------
    >>> names = [(0, 2, "PER"), (2, 3, "PER")]
    >>> for scheme in SCHEMES:
    ...     print(" ".join(encode_tags(4, names, scheme)))
    B-PER I-PER B-PER O
    I-PER I-PER B-PER O
    B-PER E-PER S-PER O
    B-PER L-PER U-PER O
    """
    tags = ["O"] * n
    behind, before = 0, ""
    for begin, end, kind in entities:
        if begin < behind:
            raise ParameterError(f"names {begin} to {end} and up to {behind} overlap, which tags cannot say")
        tags[begin:end] = [f"I-{kind}"] * (end - begin)
        if scheme != "IOB1" or (begin == behind and kind == before):
            tags[begin] = f"B-{kind}"
        if scheme in _LAST:
            tags[end - 1] = f"{_SINGLE[scheme] if end - begin == 1 else _LAST[scheme]}-{kind}"
        behind, before = end, kind
    return tags


def scheme_of(sentences: Sequence[Sequence[str]]) -> str:
    """Which of `SCHEMES` sentences of tags are written in; "BIO" where nothing tells.

    Examples
    --------
    >>> scheme_of([["I-PER", "B-PER", "O"]]), scheme_of([["B-PER", "I-PER"]]), scheme_of([["U-LOC"]])
    ('IOB1', 'BIO', 'BILOU')
    """
    kinds = {tag for tags in sentences for tag in tags}
    prefixes = {tag[0] for tag in kinds if tag != "O"}
    if prefixes & {"E", "S"}:
        return "BIOES"
    if prefixes & {"L", "U"}:
        return "BILOU"
    needless = inside = 0
    for tags in sentences:
        for before, tag in zip(["O", *tags[:-1]], tags, strict=True):
            needless += tag[0] == "B" and before[2:] != tag[2:]
            inside += tag[0] == "I" and before[2:] != tag[2:]
    return "IOB1" if inside and not needless else "BIO"


# Columns -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class ColumnSource:
    """A file with a word a line, and an empty line after each sentence.

    Parameters
    ----------
    data : bytes
        The whole file, UTF-8.
    blocks : int64[n_sentences, 2]
        Where the text of each sentence, with the empty lines behind it, starts and stops.
    fields : Ragged
        Where the tag of each word of each sentence starts and stops; the end of the line where words have no tags.
    scheme : str
        One of `SCHEMES`.
    separator : bytes
        What goes before a tag where there was none; empty where there was one.
    """

    data: bytes
    blocks: NDArray[np.int64]
    fields: Ragged
    scheme: str
    separator: bytes

    def line_of(self, sentence: int) -> int:
        """The line, from 1, in which a sentence begins."""
        return 1 + self.data.count(b"\n", 0, int(self.blocks[sentence, 0]))

    def chosen(self, rows: Any) -> ColumnSource:
        """The same for some of the sentences."""
        numbers = np.arange(len(self.blocks))[rows]
        return ColumnSource(self.data, self.blocks[rows], self.fields.take(numbers), self.scheme, self.separator)

    def render(self, mentions: Mentions) -> bytes:
        """The text with the tags of the names of now; tags that say the same names stay as they are."""
        pieces: list[bytes] = []
        for s in range(len(mentions)):
            start, stop = self.blocks[s].tolist()
            entities = list(mentions.entities(s))
            before = mentions.strings("label", s) if "label" in mentions.columns else None
            if before is None or decode_tags(before) != entities:
                tags = _encoded(mentions, s, self.scheme)
                for (begin, end), tag in zip(self.fields[s].tolist(), tags, strict=True):
                    pieces += [self.data[start:begin], self.separator, tag.encode()]
                    start = end
            pieces.append(self.data[start:stop])
            if s + 1 < len(mentions) and stop == len(self.data) and not self.data.endswith(b"\n\n"):
                pieces.append(b"\n" if self.data.endswith(b"\n") else b"\n\n")  # others now stand behind the last
        return b"".join(pieces)


def _encoded(mentions: Mentions, s: int, scheme: str) -> list[str]:
    try:
        return encode_tags(int(mentions.lengths[s]), mentions.entities(s), scheme)
    except ParameterError as finding:
        raise ParameterError(f"{mentions.name}, sentence {s + 1}: {finding}") from None


class _Line(NamedTuple):
    """One word of a file."""

    word: bytes
    tag: bytes | None
    """Part of speech."""
    label: bytes
    start: int
    stop: int
    """Where the last field is."""
    number: int


def _parse_columns(data: bytes, name: str) -> Mentions:
    sentences: list[list[_Line]] = []
    blocks: list[list[int]] = []
    width, tabs, at, open_ = 0, False, 0, False
    for number, line in enumerate(data.split(b"\n"), 1):
        end = min(len(data), at + len(line) + 1)
        bare = line.rstrip()
        if not bare:
            if blocks:
                blocks[-1][1] = end
            open_, at = False, end
            continue
        if not width:
            tabs = b"\t" in bare
        fields = bare.split(b"\t") if tabs else bare.split()
        if (width or len(fields)) != len(fields) or not all(fields):
            raise MentionsError(
                f"{name}, line {number}: {len(fields)} columns in {_shown(bare)}, where lines before have {width}. "
                "Every word has a line with the same columns, the tag of names last, and an empty line ends a sentence"
            )
        width = len(fields)
        if not open_:
            sentences.append([])
            blocks.append([blocks[-1][1] if blocks else 0, end])
        last = at + len(bare) - len(fields[-1])
        speech = fields[1] if width > 2 else None
        sentences[-1].append(_Line(fields[0], speech, fields[-1], last, at + len(bare), number))
        blocks[-1][1], open_, at = end, True, end
    return _assembled(data, name, sentences, blocks, width, b"\t" if tabs else b" ")


def _assembled(
    data: bytes, name: str, sentences: list[list[_Line]], blocks: list[list[int]], width: int, separator: bytes
) -> Mentions:
    words = [line for sentence in sentences for line in sentence]
    offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])]).astype(np.int64)
    wrong = next((line for line in words if not _TAG.fullmatch(line.label)), None)
    if wrong is not None and any(_is_name(line.label) for line in words):
        raise MentionsError(
            f"{name}, line {wrong.number}: {_shown(wrong.label)} in the last column is no tag of names. Tags are O, or "
            "B-, I-, E-, S-, L- or U- and a type, as in B-PER"
        )
    tagged = width > 1 and wrong is None
    columns = {"form": Column.of(line.word.decode() for line in words)}
    if width > (2 if tagged else 1):
        columns["tag"] = Column.of((line.tag or line.label).decode() for line in words)
    places = np.array([[line.start, line.stop] for line in words], np.int64).reshape(-1, 2)
    if not tagged:
        places[:, 0] = places[:, 1]
    extents, fields = np.array(blocks, np.int64).reshape(-1, 2), Ragged(places, offsets)
    if not tagged:
        source = ColumnSource(data, extents, fields, "BIO", separator)
        return Mentions.bare(offsets, columns, name, source)
    tags = [[line.label.decode() for line in sentence] for sentence in sentences]
    columns["label"] = Column.of(tag for sentence in tags for tag in sentence)
    source = ColumnSource(data, extents, fields, scheme_of(tags), b"")
    return Mentions.bare(offsets, columns, name, source).with_entities([decode_tags(own) for own in tags])


def _is_name(label: bytes) -> bool:
    return label != b"O" and _TAG.fullmatch(label) is not None


def _shown(text: bytes) -> str:
    return f"{text.decode(errors='replace')!r:.60}"


def _are_columns(data: bytes) -> bool:
    """Whether every one of the first lines has several columns, a tag of names last."""
    head = data[:_LOOKED_AT]
    lines = head.split(b"\n")
    if len(data) > _LOOKED_AT:
        lines.pop()
    fields = [line.split() for line in lines if line.strip()]
    return bool(fields) and all(len(own) > 1 and _TAG.fullmatch(own[-1]) for own in fields)


# All formats ---------------------------------------------------------------------------------------------------------


class _Format(NamedTuple):
    """How files of one kind are known, and read."""

    fits: Callable[[bytes], bool]
    parse: Callable[[bytes, str], Mentions]


FORMATS = {
    "semeval": _Format(are_marked, parse_marked),
    "conll04": _Format(are_heads, parse_heads),
    "columns": _Format(_are_columns, _parse_columns),
}
"""By name, in the order in which they are tried where nothing says what a file is."""


def format_of(data: bytes) -> str | None:
    """The format of some text, by its first lines; None where none fits."""
    return next((name for name, known in FORMATS.items() if known.fits(data)), None)


def read_mentions(
    path: PathOrName, *, format: str | None = None, encoding: str = "utf-8", errors: str = "strict"
) -> Mentions:
    """Read names, and relations where a file has them.

    Parameters
    ----------
    path : str or path
        ``-`` is standard input. gzip, xz and zstd are undone whatever the file is called.
    format : str, optional
        One of `FORMATS`; the text says it otherwise.
    encoding, errors : str
        As in `read_bytes`. The file is written as UTF-8 in any case.

    Raises
    ------
    MentionsError
        What is in the file is wrong; the message names the line.
    UsageError
        The file is not there, or may not be read.
    """
    return parse_mentions(read_bytes(path, encoding=encoding, errors=errors), name_of(path), format=format)


def parse_mentions(data: bytes, name: str = "<memory>", *, format: str | None = None) -> Mentions:
    """The sentences that some bytes of UTF-8 are; `name` is for messages. See `read_mentions`.

    Examples
    --------
    >>> found = parse_mentions(b"Ada NP B-PER\\nsleeps V O\\n\\nLondon NP B-LOC\\n")
    >>> found, found.entities(0), found.strings("tag", 0)
    (Mentions(2 sentences, 3 words, 2 names), ((0, 1, 'PER'),), ('NP', 'V'))
    >>> found.with_entities([[], [(0, 1, "ORG")]]).to_bytes()
    b'Ada NP O\\nsleeps V O\\n\\nLondon NP B-ORG\\n'
    """
    if format is not None and format not in FORMATS:
        raise ParameterError(f"format should be one of {', '.join(FORMATS)}, not {format!r}")
    return FORMATS[format or format_of(data) or "columns"].parse(data, name)


def format_mentions(mentions: Mentions) -> bytes:
    """The text of sentences in the format that was read; without a file, a word and its tag a line."""
    if mentions.source is not None:
        return mentions.source.render(mentions)
    columns = [name for name in ("form", "tag") if name in mentions.columns]
    pieces: list[str] = []
    for s in range(len(mentions)):
        told = [mentions.strings(name, s) for name in columns]
        for fields in zip(*told, _encoded(mentions, s, "BIO"), strict=True):
            if any(not field or re.search(r"\s", field) for field in fields):
                raise ParameterError(
                    f"{mentions.name}, sentence {s + 1}: {fields[0]!r:.60} cannot stand in a column: no spaces there"
                )
            pieces.append(" ".join(fields) + "\n")
        pieces.append("\n")
    return "".join(pieces).encode()
