"""NEGRA's export format, version 3 and 4: trees of constituents that may be discontinuous, read alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituents import Constituents
from isogloss.data.formats.brackets import BracketSource
from isogloss.data.treebank import Column
from isogloss.errors import TreebankError

__all__ = ["ROOT", "parse_export"]

ROOT = "VROOT"
"""The label of what NEGRA calls node 0."""
_NODE = re.compile(r"#(\d+)")
_NONE = "--"


class _Rows:
    """The words and nodes of one sentence, as they are read."""

    def __init__(self, line: int, start: int) -> None:
        self.line, self.start = line, start
        self.words: list[list[str]] = []
        self.nodes: dict[int, list[str]] = {}
        self.lines: dict[int, int] = {}


def parse_export(data: bytes, name: str = "<memory>") -> Constituents:
    """Trees in NEGRA's export format.

    Functions of nodes become part of their labels, as Penn treebanks have them (``NP-SB``); those of words, lemmas and
    morphology are columns. Secondary edges are not read. Above all stands a node ``VROOT``.

    Examples
    --------
    >>> text = "#BOS 1\\nRuf\\tVV\\t--\\tHD\\t500\\nsie\\tPRO\\t--\\tOA\\t0\\nan\\tPTK\\t--\\tSVP\\t500\\n"
    >>> trees = parse_export((text + "#500\\tVP\\t--\\t--\\t0\\n#EOS 1\\n").encode())
    >>> trees[0].brackets(), trees.discontinuous.tolist()
    ([(0, 3, 'VROOT'), (0, 3, 'VP')], [False, True])
    """
    found = list(_sentences(data, name))
    version4 = [rows for rows, four in found if four]
    forms, tags, labels = [], [], []
    lemmas, morphs, functions = [], [], []
    lengths, counts, attached, parents = [0], [0], [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    blocks = np.zeros((len(found), 2), np.int64)
    for at, (rows, four) in enumerate(found):
        names, hangs, above = _tree(rows, four, name)
        attached.append(hangs)
        parents.append(above)
        labels += names
        for cells in rows.words:
            forms.append(cells[0])
            lemmas.append(cells[1] if four else _NONE)
            tags.append(cells[1 + four])
            morphs.append(cells[2 + four])
            functions.append(cells[3 + four])
        lengths.append(len(rows.words))
        counts.append(len(names))
        blocks[at] = rows.start
    columns = {"form": forms, "tag": tags, "lemma": lemmas, "morph": morphs, "function": functions}
    if not version4:
        del columns["lemma"]
    made = Constituents(
        np.cumsum(lengths, dtype=np.int64), {key: Column.of(texts) for key, texts in columns.items()},
        np.concatenate(attached), np.cumsum(counts, dtype=np.int64), Column.of(labels), np.concatenate(parents), name,
    )  # fmt: skip
    if len(found):
        blocks[0, 0] = 0
    blocks[:, 1] = [*blocks[1:, 0], len(data)][: len(found)]
    return replace(made, source=BracketSource(data, blocks, "export"))


def _sentences(data: bytes, name: str) -> Iterator[tuple[_Rows, bool]]:
    """The sentences, and whether they have a column for lemmas."""
    four, inside, table = False, None, False
    at = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        line = raw.decode().rstrip("\r")
        start, at = at, at + len(raw) + 1
        if line.startswith("#FORMAT"):
            four = line.split()[1:2] == ["4"]
        elif line.startswith("#BOT"):
            table = True
        elif line.startswith("#EOT"):
            table = False
        elif line.startswith("#BOS"):
            if inside is not None:
                raise _wrong(name, number, "a sentence begins before the one of line "
                             f"{inside.line} ended. Is a line #EOS missing?")  # fmt: skip
            inside = _Rows(number, start)
        elif line.startswith("#EOS"):
            if inside is None:
                raise _wrong(name, number, "#EOS without #BOS before it. Is that line missing?")
            yield inside, four
            inside = None
        elif inside is not None and line.strip():
            _take(inside, line, number, four, name)
        elif line.strip() and not table and not line.startswith("%%"):
            raise _wrong(name, number, f"{line[:50]!r} stands outside of all sentences. Is a line #BOS missing?")
    if inside is not None:
        raise _wrong(name, inside.line, "the sentence that begins here never ends. Is a line #EOS missing?")


def _take(rows: _Rows, line: str, number: int, four: bool, name: str) -> None:
    cells = line.split("%%")[0].rstrip().split("\t") if "\t" in line else line.split("%%")[0].split()
    cells = [cell for cell in cells if cell]
    wanted = 5 + four
    if len(cells) < wanted or not cells[wanted - 1].isdigit():
        columns = (
            "word, lemma, tag, morphology, function, parent" if four else "word, tag, morphology, function, parent"
        )
        raise _wrong(name, number, f"{line[:50]!r} should have columns {columns}, and the parent a number. "
                     "Version 4 says `#FORMAT 4` at the top")  # fmt: skip
    node = _NODE.fullmatch(cells[0])
    if node is None or int(node[1]) < 500:
        rows.words.append(cells)
        return
    if int(node[1]) in rows.nodes:
        raise _wrong(name, number, f"node {cells[0]} is there twice. Give each a number of its own")
    rows.nodes[int(node[1])] = cells
    rows.lines[int(node[1])] = number


def _tree(rows: _Rows, four: bool, name: str) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:
    """Labels in pre-order, the node of each word, and the node above each node."""
    from isogloss.data._numba.constituents import in_order

    place = {0: 0, **{number: k for k, number in enumerate(rows.nodes, start=1)}}
    at = 4 + four
    for number, cells in rows.nodes.items():
        if int(cells[at]) not in place:
            raise _wrong(name, rows.lines[number], f"node {cells[0]} hangs on {cells[at]}, which is not there")
    for cells in rows.words:
        if int(cells[at]) not in place:
            raise _wrong(name, rows.line, f"word {cells[0]!r} hangs on {cells[at]}, which is not in this sentence")
    hangs = np.array([place[int(cells[at])] for cells in rows.words], np.int32)
    above = np.array([-1, *(place[int(cells[at])] for cells in rows.nodes.values())], np.int32)
    if not rows.words:
        return [], hangs, np.zeros(0, np.int32)
    order = in_order(len(hangs), hangs, above)
    reached = np.zeros(len(above), bool)
    for node in hangs.tolist():
        for _ in above:
            if node < 0 or reached[node]:
                break
            reached[node] = True
            node = int(above[node])
    if len(order) < len(above) or not reached.all():
        raise _wrong(name, rows.line, "a node of this sentence has no word below it, or hangs below itself")
    names = [ROOT]
    for cells in rows.nodes.values():
        label, function = cells[1 + four], cells[3 + four]
        names.append(label if function == _NONE else f"{label}-{function}")
    fresh = np.empty(len(order), np.int32)
    fresh[order] = np.arange(len(order), dtype=np.int32)
    upward = above[order]
    return [names[k] for k in order.tolist()], fresh[hangs], np.where(upward >= 0, fresh[upward], -1).astype(np.int32)


def _wrong(name: str, line: int, finding: str) -> TreebankError:
    return TreebankError(f"{name}, line {line}: {finding}")
