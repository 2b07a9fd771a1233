"""Links in files: Pharaoh ``i-j``, NAACL/WPT and GIZA++ A3, whatever they count from; from 0 on our side."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Bitext
from isogloss.data.formats.files import IsoglossWarning, PathOrName, atomic_write, name_of, read_bytes
from isogloss.data.links import Alignment, Links
from isogloss.errors import BitextError, LinksError, ParameterError

__all__ = ["format_links", "parse_links", "read_links", "write_links"]

IndexBase = Literal["auto", 0, 1]

_NAACL_LINE = re.compile(rb"\d+[ \t]+\d+[ \t]+\d+([ \t]+[SP])?([ \t]+[-+.\deE]+)?\s*$")
_MOST_SENTENCES = 10_000_000  # of a numbered file that is short for it, where nobody says how many pairs there are
_HOW = {
    "pharaoh": "Links are written source-target, as in 0-0 1-2; 3p4 is a possible link and 3-4:0.95 one with a score",
    "naacl": "A line holds: sentence source target [S|P] [score], all from 1",
    "giza": "A record has three lines: '# Sentence pair (1) ...', the words, and 'NULL ({ }) word ({ 1 2 }) ...'",
}


def read_links(
    path: PathOrName,
    *,
    format: str = "auto",
    bitext: Bitext | None = None,
    index_base: IndexBase = "auto",
    direction: str = "forward",
    n_pairs: int | None = None,
    encoding: str = "utf-8",
) -> Links:
    """Read the links of a text.

    Parameters
    ----------
    path : str or path
        ``-`` is standard input; gzip, xz and zstd are undone.
    format : {"auto", "pharaoh", "naacl", "giza"}
        ``i-j`` with possibles ``ipj`` and scores ``i-j:p`` in any mixture; ``sentence source target [S|P] [score]``; or
        the three-line records of GIZA++. "auto" tells by the first line.
    bitext : Bitext, optional
        The text: indices are checked against its lengths, and each `Alignment` then knows its words.
    index_base : {"auto", 0, 1}
        What Pharaoh indices count from. "auto" means 0, unless the text shows that it must be 1: no index is 0, and one
        is as large as its sentence is long. Then links are shifted, with a warning. NAACL counts from 1 unless 0 is
        given.
    direction : {"forward", "backward"}
        GIZA++ only: whether the words with brackets are the source ("forward": target words generated from them) or the
        target.
    n_pairs : int, optional
        How many pairs there are, when there is no bitext: numbered formats leave out pairs without links.

    Raises
    ------
    LinksError
        With file and line: a token that is no link, an index outside its sentence, more or fewer lines than the text.
    """
    try:
        data = read_bytes(path, encoding=encoding)
    except BitextError as problem:
        raise LinksError(str(problem)) from None
    return parse_links(
        data,
        name_of(path),
        format=format,
        bitext=bitext,
        index_base=index_base,
        direction=direction,
        n_pairs=n_pairs,
    )


def parse_links(
    data: bytes,
    name: str = "<memory>",
    *,
    format: str = "auto",
    bitext: Bitext | None = None,
    index_base: IndexBase = "auto",
    direction: str = "forward",
    n_pairs: int | None = None,
) -> Links:
    """The links written in `data`, as `read_links` reads them from a file.

    Examples
    --------
    >>> gold = parse_links(b"0-0 1p2\\n\\n2-1:0.5\\n")
    >>> [sorted(row.links | row.possible) for row in gold]
    [[(0, 0), (1, 2)], [], [(2, 1)]]
    >>> str(parse_links(b"2 1 1 S\\n2 3 2 P\\n")[1])
    '0-0'
    """
    if format == "auto":
        format = _guess(data)
    if format not in _HOW:
        raise ParameterError(f"format of links should be auto, pharaoh, naacl or giza, not {format!r}")
    if index_base not in ("auto", 0, 1):
        raise ParameterError(f"index_base should be 'auto', 0 or 1, not {index_base!r}")
    if direction not in ("forward", "backward"):
        raise ParameterError(f"direction should be forward or backward, not {direction!r}")
    if bitext is not None:
        n_pairs = len(bitext)
    if format == "pharaoh":
        links = _pharaoh(data, name, n_pairs, bitext)
        links = _from_zero(links, name, index_base, bitext)
    elif format == "naacl":
        links = _naacl(data, name, n_pairs, 1 if index_base == "auto" else int(index_base))
    else:
        links = _giza(data, name, n_pairs, direction)
    unit = "line" if format == "pharaoh" else "sentence"
    if bitext is not None:
        _check_range(links, bitext, name, unit)
    return Links(*_in_order(links), bitext)


_Arrays = tuple[
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.float32] | None,
    NDArray[np.bool_] | None,
]


def _guess(data: bytes) -> str:
    first = next((line for line in data[:100_000].splitlines() if line.strip()), b"").strip()
    if first.startswith(b"# Sentence pair"):
        return "giza"
    return "naacl" if _NAACL_LINE.match(first) else "pharaoh"


def _refuse(data: bytes, name: str, fault: int, place: int, format: str) -> None:
    from isogloss.data.formats._numba.links import FAULTS

    if not fault:
        return
    line = data.count(b"\n", 0, place) + 1
    found = re.match(rb"\S*", data[place : place + 60])
    token = found.group() if found else b""
    what = f"'{token.decode('utf-8', 'replace')}' {FAULTS[fault]}" if token else "the line ends too soon"
    raise LinksError(f"{name}, line {line}: {what}. {_HOW[format]}")


def _pharaoh(data: bytes, name: str, n_pairs: int | None, bitext: Bitext | None) -> _Arrays:
    from isogloss.data.formats._numba.links import parse_pharaoh

    *arrays, some_scores, some_possible, fault, place = parse_pharaoh(np.frombuffer(data, np.uint8))
    offsets, source, target, probability, possible = arrays
    _refuse(data, name, fault, place, "pharaoh")
    if n_pairs is not None and len(offsets) - 1 != n_pairs:
        text = f"{bitext.source.name} has {n_pairs} pairs" if bitext is not None else f"there are {n_pairs} pairs"
        raise LinksError(f"{name} has {len(offsets) - 1} lines but {text}: line k of the links speaks of pair k")
    return offsets, source, target, probability if some_scores else None, possible if some_possible else None


def _naacl(data: bytes, name: str, n_pairs: int | None, base: int) -> _Arrays:
    from isogloss.data.formats._numba.links import parse_naacl

    sentence, *arrays, some_scores, some_possible, fault, place = parse_naacl(np.frombuffer(data, np.uint8))
    source, target, probability, possible = arrays
    _refuse(data, name, fault, place, "naacl")
    offsets, order = _by_sentence(sentence, int(sentence.max(initial=0)), n_pairs, name)
    order = order[(source[order] >= base) & (target[order] >= base)]  # 0 is the null word, which is never a link
    kept = np.searchsorted(sentence[order], np.arange(1, len(offsets)), "right")
    return (
        np.concatenate([[0], kept]).astype(np.int64),
        source[order] - np.int32(base),
        target[order] - np.int32(base),
        probability[order] if some_scores else None,
        possible[order] if some_possible else None,
    )


def _giza(data: bytes, name: str, n_pairs: int | None, direction: str) -> _Arrays:
    from isogloss.data.formats._numba.links import parse_giza

    sentence, outer, inner, last, fault, place = parse_giza(np.frombuffer(data, np.uint8))
    _refuse(data, name, fault, place, "giza")
    offsets, order = _by_sentence(sentence, last, n_pairs, name)
    outer, inner = outer[order] - np.int32(1), inner[order] - np.int32(1)
    return (offsets, outer, inner, None, None) if direction == "forward" else (offsets, inner, outer, None, None)


def _by_sentence(
    sentence: NDArray[np.int32], last: int, n_pairs: int | None, name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of rows 1, 2, ..., and the order of links that brings each sentence together."""
    most = max(_MOST_SENTENCES, 10 * len(sentence)) if n_pairs is None else n_pairs
    if last > most:
        there = f"the number of its links is {len(sentence):,}" if n_pairs is None else f"there are {n_pairs} pairs"
        raise LinksError(
            f"{name}: speaks of sentence {last}, but {there}. Is the number right, and is it the file of this text?"
        )
    counts = np.bincount(sentence, minlength=(last if n_pairs is None else n_pairs) + 1)[1:]
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.argsort(sentence, kind="stable")


def _lengths(offsets: NDArray[np.int64], bitext: Bitext) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each link, the lengths of its two sentences."""
    counts = np.diff(offsets)
    return np.repeat(bitext.source.ids.lengths, counts), np.repeat(bitext.target.ids.lengths, counts)


def _from_zero(links: _Arrays, name: str, base: IndexBase, bitext: Bitext | None) -> _Arrays:
    offsets, source, target, probability, possible = links
    if base == 0 or not source.size:
        return links
    lowest = min(int(source.min()), int(target.min()))
    if base == 1 and lowest == 0:
        link = int(np.flatnonzero((source == 0) | (target == 0))[0])
        line = int(np.searchsorted(offsets, link, "right"))
        raise LinksError(
            f"{name}, line {line}: link {source[link]}-{target[link]} has an index 0, but index_base is 1. Leave it out"
        )
    if base == "auto":
        if lowest > 0 and bitext is None and source.size >= 20:
            warnings.warn(
                f"{name}: no index is 0. If it counts words from 1, say so (index_base=1), or give the text; "
                "read as counting from 0",
                IsoglossWarning,
                stacklevel=4,
            )
        if lowest == 0 or bitext is None:
            return links
        n_source, n_target = _lengths(offsets, bitext)
        beyond = np.maximum(source - n_source, target - n_target)
        if beyond.max() != 0:
            return links
        line = int(np.searchsorted(offsets, int(beyond.argmax()), "right"))
        warnings.warn(
            f"{name}: no index is 0, and line {line} has one as large as its sentence is long, so it counts from 1; "
            "shifted to count from 0. index_base=1 says so without this warning",
            IsoglossWarning,
            stacklevel=4,
        )
    return offsets, source - np.int32(1), target - np.int32(1), probability, possible


def _check_range(links: _Arrays, bitext: Bitext, name: str, unit: str) -> None:
    offsets, source, target = links[:3]
    n_source, n_target = _lengths(offsets, bitext)
    wrong = np.flatnonzero((source >= n_source) | (target >= n_target))
    if not wrong.size:
        return
    link = int(wrong[0])
    pair = int(np.searchsorted(offsets, link, "right"))
    side, index, length = "target", target[link], n_target[link]
    if source[link] >= n_source[link]:
        side, index, length = "source", source[link], n_source[link]
    has = f"has {length} words, 0 to {length - 1}" if length > 1 else f"has {length or 'no'} word{'s'[length:]}"
    raise LinksError(
        f"{name}, {unit} {pair}: link {source[link]}-{target[link]} speaks of {side} word {index}, but the sentence "
        f"{has} (links like this: {len(wrong)}). Are these the links of this text, source first, counted from 0?"
    )


def _in_order(links: _Arrays) -> _Arrays:
    """Each row ordered by source, then target, without repetitions."""
    from isogloss.data.formats._numba.links import put_in_order

    offsets, source, target, probability, possible = links
    chances = np.zeros(source.size, np.float32) if probability is None else probability
    unsure = np.zeros(source.size, bool) if possible is None else possible
    offsets = put_in_order(offsets, source, target, chances, unsure)
    n_links = offsets[-1]
    return (
        offsets,
        source[:n_links],
        target[:n_links],
        None if probability is None else probability[:n_links],
        None if possible is None else possible[:n_links],
    )


def format_links(
    links: Links | Iterable[Alignment | Iterable[tuple[int, int]]],
    *,
    format: str = "pharaoh",
    scores: bool = False,
    bitext: Bitext | None = None,
    first: int = 1,
) -> bytes:
    """Links as the bytes of a file.

    Parameters
    ----------
    links : Links, or any sequence of alignments
    format : {"pharaoh", "naacl", "giza"}
    scores : bool
        Write the probability of each link, with four decimals.
    bitext : Bitext, optional
        Whose words GIZA++ records repeat; the one of `links` if that has one.
    first : int
        The sentence number of the first row, for formats that number them: files may be written part by part.

    Examples
    --------
    >>> format_links([[(0, 0), (1, 2)], [], [(2, 1)]])
    b'0-0 1-2\\n\\n2-1\\n'
    """
    if not isinstance(links, Links):
        links = Links.of(links)
    if scores and links.probability is None:
        raise ParameterError("scores were asked for, but these links have no probabilities")
    if format == "giza":
        return _format_giza(links, links.bitext if bitext is None else bitext, first)
    from isogloss.data.formats._numba.links import format_naacl, format_pharaoh

    columns: list[tuple[Any, Any]] = [
        (links.offsets, np.int64),
        (links.source, np.int32),
        (links.target, np.int32),
        (links.probability if scores else (), np.float32),
        (() if links.possible is None else links.possible, np.bool_),
    ]
    arrays: list[Any] = [np.ascontiguousarray(values, dtype) for values, dtype in columns]
    if format == "pharaoh":
        out: bytes = format_pharaoh(*arrays).tobytes()
    elif format == "naacl":
        out = format_naacl(*[*arrays, first]).tobytes()
    else:
        raise ParameterError(f"format of links should be pharaoh, naacl or giza, not {format!r}")
    return out


def _format_giza(links: Links, bitext: Bitext | None, first: int) -> bytes:
    if bitext is None:
        raise ParameterError("GIZA++ records repeat the words: give bitext=")
    if len(bitext) != len(links):
        raise LinksError(f"there are links for {len(links)} pairs, but {bitext.source.name} has {len(bitext)}")
    records = []
    for pair, (source, target) in enumerate(bitext):
        rows = slice(*links.offsets[pair : pair + 2])
        partners: list[list[str]] = [[] for _ in source]
        for i, j in zip(links.source[rows].tolist(), links.target[rows].tolist(), strict=True):
            partners[i].append(f"{j + 1} ")
        linked = set(links.target[rows].tolist())
        null = "".join(f"{j + 1} " for j in range(len(target)) if j not in linked)
        words = [f"{word} ({{ {''.join(marks)}}})" for word, marks in zip(source, partners, strict=True)]
        records.append(
            f"# Sentence pair ({first + pair}) source length {len(source)} target length {len(target)} "
            f"alignment score : 1\n{' '.join(target)}\n{' '.join([f'NULL ({{ {null}}})', *words])}\n"
        )
    return "".join(records).encode()


def write_links(
    links: Links | Iterable[Alignment | Iterable[tuple[int, int]]],
    path: PathOrName | None,
    *,
    format: str = "pharaoh",
    scores: bool = False,
    bitext: Bitext | None = None,
) -> None:
    """Write links to a file, whole or not at all: options as in `format_links`, path as in `atomic_write`."""
    data = format_links(links, format=format, scores=scores, bitext=bitext)
    with atomic_write(path) as file:
        file.write(data)
