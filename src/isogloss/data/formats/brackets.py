"""Trees of constituents in files: Penn brackets and discbracket, read, and brackets written.

What was read and not changed is written byte for byte, whether a tree stands in a line or in many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituents import Constituents, ConstituentTree, Nested, escaped, unescaped
from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.treebank import Column
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError, TreebankError

__all__ = [
    "FORMATS", "BracketSource", "bracketed", "check_same_words", "difference_of_words", "format_constituents",
    "parse_constituents", "read_constituents",
]  # fmt: skip

FORMATS = ("brackets", "discbracket", "export")
WRITTEN = ("line", "pretty")
_ENDINGS = {".dbr": "discbracket", ".discbracket": "discbracket", ".export": "export", ".negra": "export"}
_WIDE = 80  # columns that a part of a pretty tree may take before it is broken
_NUMBERED = re.compile(r"(\d+)=(.+)", re.DOTALL)


@dataclass(frozen=True, eq=False, repr=False)
class BracketSource:
    """The text that trees came from.

    Parameters
    ----------
    data : bytes
        The whole file, UTF-8.
    blocks : int64[n_trees, 2]
        Where the text of each tree, with the line end behind it, starts and stops.
    format : str
        One of `FORMATS`.
    """

    data: bytes
    blocks: NDArray[np.int64]
    format: str

    def chosen(self, rows: Any) -> BracketSource:
        """The same for some of the trees."""
        return BracketSource(self.data, self.blocks[rows], self.format)

    def line_of(self, tree: int) -> int:
        """The line, from 1, in which a tree begins."""
        start, stop = self.blocks[tree].tolist()
        text = self.data[start:stop]
        return 1 + self.data.count(b"\n", 0, start + (len(text) - len(text.lstrip()) if text.strip() else 0))

    def text(self) -> bytes:
        """The text of all trees."""
        parts = [self.data[start:stop] for start, stop in self.blocks.tolist()]
        for k, part in enumerate(parts[:-1]):
            if not part.endswith(b"\n") and int(self.blocks[k, 1]) == len(self.data):
                parts[k] = part + b"\n"  # the last tree of the file, with others behind it now
        return b"".join(parts)


# Reading -------------------------------------------------------------------------------------------------------------


def read_constituents(
    path: PathOrName,
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    errors: str = "strict",
    empty_lines: bool = False,
) -> Constituents:
    """Read trees of constituents from a file.

    Parameters
    ----------
    path : str or path
        ``-`` is standard input. gzip, xz and zstd are undone whatever the file is called.
    format : {"brackets", "discbracket", "export"}, optional
        Penn brackets; brackets whose words have numbers, as in ``(NN 3=Haus)``; NEGRA's export format. Without it, the
        name says (``.dbr``, ``.discbracket``, ``.export``, ``.negra``), and otherwise the first line.
    encoding, errors : str
        As in `read_bytes`. The file is written as UTF-8 in any case.
    empty_lines : bool
        Whether an empty line between bracketed trees is a sentence without words, as `isogloss constituency apply`
        writes it.

    Raises
    ------
    TreebankError
        What is in the file is wrong; the message names the line.
    UsageError
        The file is not there, or may not be read.
    """
    data = read_bytes(path, encoding=encoding, errors=errors)
    name = name_of(path)
    if format is None:
        bare = re.sub(r"\.(gz|xz|zst)$", "", name.lower())
        format = next((kind for ending, kind in _ENDINGS.items() if bare.endswith(ending)), None)
    return parse_constituents(data, name, format=format, empty_lines=empty_lines)


def parse_constituents(
    data: bytes, name: str = "<memory>", *, format: str | None = None, empty_lines: bool = False
) -> Constituents:
    """The trees that some bytes of UTF-8 are; `name` is for messages. See `read_constituents`.

    Examples
    --------
    >>> trees = parse_constituents(b"(S (VP (V 0=Ruf) (PRT 2=an)) (NP (PRO 1=sie)))")
    >>> print(trees[0], trees.words(0))
    (S (VP (V 0=Ruf) (PRT 2=an)) (NP (PRO 1=sie))) ('Ruf', 'sie', 'an')
    """
    if format is not None and format not in FORMATS:
        raise ParameterError(f"format should be one of {', '.join(FORMATS)}, not {format!r}")
    if format == "export" or (format is None and re.match(rb"\s*(%%|#(FORMAT|BOT|BOS)\b)", data)):
        from isogloss.data.formats.negra import parse_export

        return parse_export(data, name)
    trees = _parse_brackets(data, name, empty_lines)
    if format == "discbracket" or (format is None and _is_numbered(trees)):
        return _reordered(trees)
    return trees


def _parse_brackets(data: bytes, name: str, empty_lines: bool) -> Constituents:
    from isogloss.data.formats._numba.brackets import scan_trees
    from isogloss.data.formats._numba.tables import intern

    letters = np.frombuffer(data, np.uint8)
    problem, tags, words, labels, attached, parents, offsets, node_offsets, blocks = scan_trees(letters, empty_lines)
    if problem[0]:
        raise _explained(int(problem[0]), int(problem[1]), data, name)

    def column(spans: NDArray[np.int64]) -> Column:
        fields = np.zeros((len(spans), 2), np.int32)
        fields[:, 1] = spans[:, 1] - spans[:, 0] + 1
        ids, first, lengths = intern(letters, np.ascontiguousarray(spans[:, 0]), fields, 0)
        places = zip(first.tolist(), lengths.tolist(), strict=True)
        return Column(ids, Vocabulary([data[at : at + length].decode() for at, length in places]))

    source = BracketSource(data, blocks, "brackets")
    columns = {"form": column(words), "tag": column(tags)}
    return Constituents(offsets, columns, attached, node_offsets, column(labels), parents, name, source)


def _explained(code: int, at: int, data: bytes, name: str) -> TreebankError:
    """The error at a byte: place, finding, remedy."""
    from isogloss.data.formats._numba import brackets as kind

    line = 1 + data.count(b"\n", 0, at)
    shown = " ".join(data[at : at + 120].decode("utf-8", "replace").split())
    shown = repr(shown if len(shown) <= 50 else shown[:49] + "…")
    findings = {
        kind.OUTSIDE: f"{shown} stands outside of all brackets. A tree begins with (; is this file of another format?",
        kind.NOT_OPEN: ") closes a bracket that was never opened. Is one missing before it?",
        kind.UNCLOSED: f"the tree that begins here, {shown}, never ends. Is a ) missing?",
        kind.EMPTY_NODE: f"the bracket {shown} has no word in it. Write (TAG word), or leave it out",
        kind.WORD_WITHOUT_TAG: f"a word has no tag at {shown}. Every word has a bracket of its own: (NN house)",
        kind.SEVERAL_WORDS: f"two words in one bracket at {shown}. Every word has a bracket of its own: (NN house)",
    }
    return TreebankError(f"{name}, line {line}: {findings[code]}")


# Discontinuous trees -------------------------------------------------------------------------------------------------


def _is_numbered(trees: Constituents) -> bool:
    """Whether all words of the first trees begin with their places."""
    some = [trees.words(k) for k in range(min(len(trees), 10))]
    if not any(some):
        return False
    for words in some:
        found = [_NUMBERED.fullmatch(word) for word in words]
        if sorted(int(match[1]) if match else -1 for match in found) != list(range(len(words))):
            return False
    return True


def _reordered(trees: Constituents) -> Constituents:
    """Words of discbracket in the order of their numbers."""
    words, tags, forests = [], [], []
    for number, tree in enumerate(trees):
        found = [_NUMBERED.fullmatch(word) for word in tree.words]
        places = [int(match[1]) if match else -1 for match in found]
        if sorted(places) != list(range(len(places))):
            raise TreebankError(
                f"{trees.name}, line {trees.line_of(number)}: words should be numbered 0 to {len(places) - 1}, each "
                "once, as in (NN 3=Haus). Penn brackets? give format='brackets'"
            )
        at = {place: k for k, place in enumerate(places)}
        words.append([_form(found[at[k]]) for k in range(len(places))])
        tags.append([tree.tags[at[k]] for k in range(len(places))])
        forests.append([_renumbered(part, places) for part in tree.forest()])
    made = Constituents.assembled(words, tags, forests, trees.name)
    assert trees.source is not None
    return Constituents(
        made.offsets, made.columns, made.attached, made.node_offsets, made.labels, made.parents, made.name,
        BracketSource(trees.source.data, trees.source.blocks, "discbracket"),
    )  # fmt: skip


def _form(match: re.Match[str] | None) -> str:
    assert match is not None
    return match[2]


def _renumbered(part: int | Nested, places: list[int]) -> int | Nested:
    if isinstance(part, tuple):
        return part[0], [_renumbered(child, places) for child in part[1]]
    return places[part]


# Writing -------------------------------------------------------------------------------------------------------------


def format_constituents(trees: Constituents, format: str | None = None) -> bytes:
    """The text of trees in brackets.

    Parameters
    ----------
    format : {"line", "pretty"}, optional
        A tree a line, and an empty line for a sentence without words; or indented, with an empty line behind each
        tree. Without it, what was read if nothing changed, else a tree a line.

    Raises
    ------
    TreebankError
        A tree is discontinuous, and brackets cannot say so: make them `continuous` first.
    """
    if format is None:
        if trees.source is not None:
            return trees.source.text()
        format = "line"
    if format not in WRITTEN:
        raise ParameterError(f"format should be one of {', '.join(WRITTEN)}, not {format!r}")
    lines = []
    for number, tree in enumerate(trees):
        _check_continuous(trees, number)
        lines.append(bracketed(tree) if format == "line" else pretty(tree) + ("\n" if len(tree) else ""))
    return "".join(f"{line}\n" for line in lines).encode()


def _check_continuous(trees: Constituents, number: int) -> None:
    nodes = slice(*trees.node_offsets[number : number + 2].tolist())
    if trees.discontinuous[nodes].any():
        raise TreebankError(
            f"{trees.name}, line {trees.line_of(number)}: this tree is discontinuous, which brackets cannot say. Make "
            "it an ordinary one first: trees.continuous()"
        )


def bracketed(tree: ConstituentTree) -> str:
    """A tree in a line; words in the order of the tree where it is discontinuous, with their numbers."""
    crossing = any(end - begin != size for (begin, end), size in zip(tree.spans, _sizes(tree), strict=True))
    return " ".join(_line(part, tree, crossing) for part in tree.forest())


def _sizes(tree: ConstituentTree) -> list[int]:
    sizes = [0] * len(tree.labels)
    for node in tree.attached:
        if node >= 0:
            sizes[node] += 1
    for node in range(len(sizes) - 1, -1, -1):
        if tree.parents[node] >= 0:
            sizes[tree.parents[node]] += sizes[node]
    return sizes


def _line(part: int | Nested, tree: ConstituentTree, numbered: bool = False) -> str:
    if isinstance(part, tuple):
        return f"({part[0]} {' '.join(_line(child, tree, numbered) for child in part[1])})"
    number = f"{part}=" if numbered else ""
    return f"({escaped(tree.tags[part])} {number}{escaped(tree.words[part])})"


def pretty(tree: ConstituentTree) -> str:
    """A tree over several lines, children below their node."""
    return "\n".join(line for part in tree.forest() for line in _indented(part, tree, 0))


def _indented(part: int | Nested, tree: ConstituentTree, depth: int) -> Iterator[str]:
    short = _line(part, tree)
    if not isinstance(part, tuple) or 2 * depth + len(short) <= _WIDE:
        yield "  " * depth + short
        return
    yield "  " * depth + f"({part[0]}"
    below = [line for child in part[1] for line in _indented(child, tree, depth + 1)]
    yield from below[:-1]
    yield below[-1] + ")"


# Comparing -----------------------------------------------------------------------------------------------------------


def difference_of_words(ours: Constituents, theirs: Constituents, sentence: int) -> str | None:
    """How the words of two trees differ, in words, with the place; ``(`` and ``-LRB-`` are the same word."""
    first, second = ours.words(sentence), theirs.words(sentence)
    if first == second:
        return None
    pairs = enumerate(zip(map(unescaped, first), map(unescaped, second), strict=False))
    at = next((k for k, (a, b) in pairs if a != b), None)
    if at is None and len(first) == len(second):
        return None
    if at is None:
        finding = f"{len(first)} words in {ours.name} but {len(second)} in {theirs.name}"
    else:
        finding = f"word {at + 1} is {first[at]!r} in {ours.name} but {second[at]!r} in {theirs.name}"
    return f"tree {sentence + 1} ({theirs.name}, line {theirs.line_of(sentence)}): {finding}"


def check_same_words(ours: Constituents, theirs: Constituents, sentence: int) -> None:
    """Refuse two trees that are not over the same words."""
    if (finding := difference_of_words(ours, theirs, sentence)) is not None:
        raise TreebankError(
            f"{finding}. Two trees are compared over the same words: apply the model to the words of the gold trees, "
            "without traces"
        )
