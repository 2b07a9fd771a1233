"""`Constituents`: sentences with trees of constituents, in bulk, and the file they came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Text
from isogloss.data.ragged import Ragged
from isogloss.data.rows import Rows, counted, gathered, row_numbers
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError

if TYPE_CHECKING:
    from isogloss.data.formats.brackets import BracketSource

__all__ = ["BRACKETS", "EMPTY_TAG", "ConstituentTree", "Constituents", "Nested", "escaped", "unescaped"]

EMPTY_TAG = "-NONE-"
"""The tag of words that are not there: traces, and other empty elements."""
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""How Penn treebanks write brackets that are words."""
_WRITTEN = {"(": "-LRB-", ")": "-RRB-"}

Nested = tuple[str, list[Any]]
"""A node as its label and what hangs below it, in order: words by their numbers, from 0, and further nodes."""


def unescaped(word: str) -> str:
    r"""A word as people write it: Penn treebanks have ``-LRB-`` for a bracket, and ``\/`` and ``\*``.

    Examples
    --------
    >>> unescaped("-LRB-"), unescaped("1\\/2"), unescaped("and\\/or")
    ('(', '1/2', 'and/or')
    """
    return BRACKETS.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def escaped(word: str) -> str:
    """A word as it can stand in a bracketed tree: round brackets become ``-LRB-`` and ``-RRB-``.

    Examples
    --------
    >>> escaped("("), escaped(":)"), escaped("[")
    ('-LRB-', ':-RRB-', '[')
    """
    return word.replace("(", _WRITTEN["("]).replace(")", _WRITTEN[")"])


@dataclass(frozen=True)
class ConstituentTree:
    """One tree of `Constituents`, which draws itself in a notebook; printed, it is a line of brackets.

    Parameters
    ----------
    words, tags : tuple of str
    labels : tuple of str
        Of the nodes in pre-order.
    spans : tuple of (int, int)
        The first word of each node, and the one behind its last.
    parents : tuple of int
        The node above each, -1 for none.
    attached : tuple of int
        The node that each word hangs on, -1 for none.
    confidence : tuple of float, optional
        How sure the parser is of each node.
    title : str
        Its number in the file.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    labels: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    parents: tuple[int, ...]
    attached: tuple[int, ...]
    confidence: tuple[float, ...] | None = None
    title: str = ""

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        from isogloss.data.formats.brackets import bracketed

        return bracketed(self)

    def __repr__(self) -> str:
        return f"ConstituentTree({str(self)!r:.80})"

    def brackets(self) -> list[tuple[int, int, str]]:
        """First word, the one behind the last, and label of each node, in pre-order."""
        return [(begin, end, label) for (begin, end), label in zip(self.spans, self.labels, strict=True)]

    def forest(self) -> list[int | Nested]:
        """The tree as nested tuples: what has nothing above it, usually one node."""
        made: list[Nested] = [(label, []) for label in self.labels]
        top: list[int | Nested] = []
        below: list[list[tuple[int, int | Nested]]] = [[] for _ in made]
        above: list[tuple[int, int | Nested]] = []
        for node, parent in enumerate(self.parents):
            (below[parent] if parent >= 0 else above).append((self.spans[node][0], made[node]))
        for word, node in enumerate(self.attached):
            (below[node] if node >= 0 else above).append((word, word))
        for node, children in enumerate(below):
            made[node][1].extend(child for _, child in sorted(children, key=_first))
        top.extend(child for _, child in sorted(above, key=_first))
        return top

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as `isogloss.show.constituents_svg` takes it."""
        drawn = {
            "words": list(self.words), "tags": list(self.tags), "labels": list(self.labels),
            "parents": list(self.parents), "attached": list(self.attached), "title": self.title,
        }  # fmt: skip
        return drawn if self.confidence is None else {**drawn, "confidence": list(self.confidence)}

    def _repr_html_(self) -> str:
        from isogloss import show

        return show.constituents_svg(self.as_dict(), standalone=False)


def _first(child: tuple[int, int | Nested]) -> int:
    return child[0]


@dataclass(frozen=True, eq=False, repr=False)
class Constituents(Rows[ConstituentTree]):
    """Sentences with trees of constituents: `trees[0]` is a `ConstituentTree`, and `trees[:10]` are `Constituents`.

    Words are the leaves, traces among them until they are stripped; every word has a tag. Nodes are what stands above
    the tags, in pre-order: a node comes before those below it, and children come in the order of their first words. A
    node without a label is an outer bracket, as in ``( (S ...) )``. Where trees are discontinuous, a node begins with
    its first word and ends with its last, and need not have all between; `continuous` makes such trees ordinary ones.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Where the words of each sentence start, from 0.
    columns : mapping of str to Column
        "form" and "tag" of the words; NEGRA's export format adds "lemma", "morph" and "function".
    attached : int32[n_words]
        The node of its sentence that each word hangs on, counted from 0; -1 for none.
    node_offsets : int64[n_sentences + 1]
        Where the nodes of each sentence start.
    labels : Column
        Of nodes, with function tags if there are any: ``NP-SBJ-1``.
    parents : int32[n_nodes]
        The node of its sentence above each; -1 for none.
    name : str
        The file, for messages.
    source : BracketSource, optional
        The text of the trees, if they are as they were read.
    confidence : float64[n_nodes], optional
        How sure a parser is of each node.

    Examples
    --------
    >>> trees = Constituents.of(["(S (NP (PRP She)) (VP (VBZ sleeps)))"])
    >>> trees, trees.words(0), trees.tags(0)
    (Constituents(1 tree, 2 words), ('She', 'sleeps'), ('PRP', 'VBZ'))
    >>> trees[0].brackets()
    [(0, 2, 'S'), (0, 1, 'NP'), (1, 2, 'VP')]
    >>> print(trees[0])
    (S (NP (PRP She)) (VP (VBZ sleeps)))
    """

    offsets: NDArray[np.int64]
    columns: Mapping[str, Column]
    attached: NDArray[np.int32]
    node_offsets: NDArray[np.int64]
    labels: Column
    parents: NDArray[np.int32]
    name: str = "<memory>"
    source: BracketSource | None = None
    confidence: NDArray[np.float64] | None = field(default=None, kw_only=True)

    # Making ----------------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | PathLike[str], format: str | None = None, **options: Any) -> Constituents:
        """Read bracketed trees, or NEGRA's export format; see `isogloss.data.formats.read_constituents`."""
        from isogloss.data.formats.brackets import read_constituents

        return read_constituents(path, format=format, **options)

    @classmethod
    def from_bytes(
        cls, data: bytes, name: str = "<memory>", *, format: str | None = None, empty_lines: bool = False
    ) -> Constituents:
        """Parse UTF-8 text; see `isogloss.data.formats.read_constituents`."""
        from isogloss.data.formats.brackets import parse_constituents

        return parse_constituents(data, name, format=format, empty_lines=empty_lines)

    @classmethod
    def of(cls, trees: Iterable[str], name: str = "<memory>") -> Constituents:
        """From bracketed trees, a string each; an empty one is a sentence without words."""
        lines = "".join(re.sub(r"[ \t\r\n]+", " ", tree).strip(" ") + "\n" for tree in trees)
        return cls.from_bytes(lines.encode(), name, format="brackets", empty_lines=True)

    @classmethod
    def from_dependencies(cls, treebank: Treebank, *, tag: str = "upos") -> Constituents:
        """The subtrees of dependency trees as constituents; see `isogloss.data.constituent_forms.from_dependencies`."""
        from isogloss.data.constituent_forms import from_dependencies

        if not isinstance(treebank, Treebank):
            raise ParameterError(f"give a Treebank, as Treebank.read('trees.conllu'), not {type(treebank).__name__}")
        return from_dependencies(treebank, tag=tag)

    @classmethod
    def assembled(
        cls,
        words: Iterable[Sequence[str]],
        tags: Iterable[Sequence[str]],
        forests: Iterable[Sequence[int | Nested]],
        name: str = "<memory>",
    ) -> Constituents:
        """From words, tags and nested tuples, as `ConstituentTree.forest` has them, of each sentence."""
        from isogloss.data._numba.constituents import in_order

        forms: list[str] = []
        of_words: list[str] = []
        labels: list[str] = []
        lengths, counts = [0], [0]
        attached, parents = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for own, own_tags, forest in zip(words, tags, forests, strict=True):
            names, hangs, above = _numbered(forest, len(own))
            order = in_order(len(own), hangs, above)
            place = np.full(len(names) + 1, -1, np.int32)
            place[order] = np.arange(len(order), dtype=np.int32)
            attached.append(place[hangs])
            parents.append(place[above[order]])
            labels += [names[node] for node in order.tolist()]
            forms += own
            of_words += own_tags
            lengths.append(len(own))
            counts.append(len(names))
        columns = {"form": Column.of(forms), "tag": Column.of(of_words)}
        return cls(
            np.cumsum(lengths, dtype=np.int64), columns, np.concatenate(attached), np.cumsum(counts, dtype=np.int64),
            Column.of(labels), np.concatenate(parents), name,
        )  # fmt: skip

    def with_words(self, **columns: Column | Sequence[str]) -> Constituents:
        """The same trees with other words or tags, one entry for each word: ``with_words(tag=tags)``."""
        fresh = {name: Column.of(c) if not isinstance(c, Column) else c for name, c in columns.items()}
        for name, column in fresh.items():
            if len(column.ids) != self.n_words:
                raise ParameterError(f"with_words: {name} has {len(column.ids)} entries for {self.n_words} words")
        return replace(self, columns={**self.columns, **fresh}, source=None)

    def with_labels(self, labels: Column | Sequence[str]) -> Constituents:
        """The same trees with other labels, one for each node."""
        column = labels if isinstance(labels, Column) else Column.of(labels)
        if len(column.ids) != self.n_nodes:
            raise ParameterError(f"with_labels: {len(column.ids)} labels for {self.n_nodes} nodes; give one for each")
        return replace(self, labels=column, source=None)

    def mapped(self, change: Callable[[str], str]) -> Constituents:
        """The same trees with labels changed, such as by ``str.lower``."""
        vocabulary, numbers = self.labels.vocabulary.mapped(change)
        return self.with_labels(Column(numbers[self.labels.ids], vocabulary))

    # In other forms; how, and how back, is said in isogloss.data.constituent_forms -----------------------------------

    def stripped(self, *, functions: bool = True, empty: bool = True) -> Constituents:
        """Without function tags and indices, and without traces."""
        from isogloss.data.constituent_forms import stripped

        return stripped(self, functions=functions, empty=empty)

    def continuous(self, heads: NDArray[np.int32] | None = None) -> Constituents:
        """Discontinuous trees as ordinary ones, by raising."""
        from isogloss.data.constituent_forms import continuous

        return continuous(self, heads)

    def collapsed(self) -> Constituents:
        """Unary chains as nodes with compound labels; `expanded` undoes it."""
        from isogloss.data.constituent_forms import collapsed

        return collapsed(self)

    def expanded(self) -> Constituents:
        """Nodes with compound labels as unary chains."""
        from isogloss.data.constituent_forms import expanded

        return expanded(self)

    def binarised(self, **how: Any) -> Constituents:
        """At most two children a node; `unbinarised` undoes it."""
        from isogloss.data.constituent_forms import binarised

        return binarised(self, **how)

    def unbinarised(self) -> Constituents:
        """The trees that were binarised."""
        from isogloss.data.constituent_forms import unbinarised

        return unbinarised(self)

    # Looking ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_words(self) -> int:
        return len(self.attached)

    @property
    def n_nodes(self) -> int:
        return len(self.parents)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Words of each sentence: int64[n_sentences]."""
        return np.diff(self.offsets)

    def words(self, sentence: int) -> tuple[str, ...]:
        """The words of one sentence, as they are written in trees."""
        return self.strings("form", sentence)

    def tags(self, sentence: int) -> tuple[str, ...]:
        """The tags of one sentence."""
        return self.strings("tag", sentence)

    def strings(self, column: str, sentence: int) -> tuple[str, ...]:
        """What the words of one sentence have in a column."""
        return self._named(self.columns[column], self.offsets, sentence)

    def _named(self, column: Column, offsets: NDArray[np.int64], sentence: int) -> tuple[str, ...]:
        start, stop = offsets[sentence : sentence + 2].tolist()
        types = column.vocabulary.types
        return tuple(types[number] for number in column.ids[start:stop].tolist())

    @cached_property
    def _spans(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        from isogloss.data._numba.constituents import spans_of

        begins, ends, sizes = (np.empty(self.n_nodes, np.int32) for _ in range(3))
        spans_of(self.offsets, self.node_offsets, self.attached, self.parents, begins, ends, sizes)
        return begins, ends, sizes

    @property
    def begins(self) -> NDArray[np.int32]:
        """int32[n_nodes]: the first word of each node, counted within its sentence."""
        return self._spans[0]

    @property
    def ends(self) -> NDArray[np.int32]:
        """int32[n_nodes]: the word behind the last of each node."""
        return self._spans[1]

    @property
    def discontinuous(self) -> NDArray[np.bool_]:
        """bool[n_nodes]: whether words between the first and the last of a node belong to others."""
        begins, ends, sizes = self._spans
        return ends - begins > sizes

    @property
    def sentence_of_node(self) -> NDArray[np.int64]:
        """int64[n_nodes]: the sentence of each node."""
        return np.repeat(np.arange(len(self)), np.diff(self.node_offsets))

    def _row(self, number: int) -> ConstituentTree:
        words = slice(*self.offsets[number : number + 2].tolist())
        nodes = slice(*self.node_offsets[number : number + 2].tolist())
        spans = zip(self.begins[nodes].tolist(), self.ends[nodes].tolist(), strict=True)
        sure = None if self.confidence is None else tuple(self.confidence[nodes].tolist())
        return ConstituentTree(
            self.words(number), self.tags(number), self._named(self.labels, self.node_offsets, number), tuple(spans),
            tuple(self.parents[nodes].tolist()), tuple(self.attached[words].tolist()), sure, f"tree {number + 1}",
        )  # fmt: skip

    def line_of(self, sentence: int) -> int:
        """The line of the file, from 1, in which a tree begins; its number where there is no file."""
        return sentence + 1 if self.source is None else self.source.line_of(sentence)

    def part(self, start: int, stop: int) -> Constituents:
        """Trees start..stop-1, sharing arrays, vocabularies and text."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        words = slice(*self.offsets[[start, stop]].tolist())
        nodes = slice(*self.node_offsets[[start, stop]].tolist())
        return self._chosen(
            self.offsets[start : stop + 1] - words.start, self.node_offsets[start : stop + 1] - nodes.start, words,
            nodes, slice(start, stop),
        )  # fmt: skip

    def take(self, numbers: ArrayLike) -> Constituents:
        """Trees by their numbers, in that order, or by a mask of booleans; vocabularies and text are shared."""
        chosen = row_numbers(numbers, len(self), "Constituents")
        offsets, words = gathered(self.offsets, chosen)
        node_offsets, nodes = gathered(self.node_offsets, chosen)
        return self._chosen(offsets, node_offsets, words, nodes, chosen)

    def _chosen(
        self, offsets: NDArray[np.int64], node_offsets: NDArray[np.int64], words: Any, nodes: Any, rows: Any
    ) -> Constituents:
        return replace(
            self,
            offsets=offsets,
            columns={name: Column(ids[words], vocabulary) for name, (ids, vocabulary) in self.columns.items()},
            attached=self.attached[words],
            node_offsets=node_offsets,
            labels=Column(self.labels.ids[nodes], self.labels.vocabulary),
            parents=self.parents[nodes],
            source=None if self.source is None else self.source.chosen(rows),
            confidence=None if self.confidence is None else self.confidence[nodes],
        )

    @classmethod
    def joined(cls, parts: Sequence[Constituents]) -> Constituents:
        """The trees of several, one after the other."""
        if not parts:
            return cls.of([])
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([part.lengths for part in parts]))]).astype(np.int64)
        counts = np.concatenate([np.diff(part.node_offsets) for part in parts])
        shared = set.intersection(*(set(part.columns) for part in parts))
        columns = {name: _joined([part.columns[name] for part in parts]) for name in parts[0].columns if name in shared}
        return cls(
            offsets, columns, np.concatenate([part.attached for part in parts]),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), _joined([part.labels for part in parts]),
            np.concatenate([part.parents for part in parts]), parts[0].name,
        )  # fmt: skip

    def text(self) -> Text:
        """The words alone, as they are written in trees."""
        ids, vocabulary = self.columns["form"]
        return Text(Ragged(ids, self.offsets), vocabulary, self.name)

    def as_dict(self, sentence: int, other: Constituents | None = None, names: Sequence[str] = ()) -> dict[str, Any]:
        """One tree as plain data, for `isogloss.show`; `other` has another tree of the same words."""
        from isogloss.data.formats.brackets import check_same_words

        drawn = self[sentence].as_dict()
        if other is not None:
            check_same_words(self, other, sentence)
            drawn.update(other=other[sentence].as_dict(), names=list(names or (self.name, other.name)))
        return drawn

    def statistics(self) -> dict[str, Any]:
        """Counts of what is here.

        Examples
        --------
        >>> Constituents.of(["(S (NP (PRP She)) (VP (VBZ sleeps)))"]).statistics()["nodes"]
        3
        """
        children = np.bincount(self._above(self.parents, self.node_offsets), minlength=self.n_nodes)
        children += np.bincount(self._above(self.attached, self.offsets), minlength=self.n_nodes)
        return {
            "sentences": len(self),
            "words": self.n_words,
            "nodes": self.n_nodes,
            "longest": int(self.lengths.max(initial=0)),
            "labels": len(np.unique(self.labels.ids)),
            "tags": len(np.unique(self.columns["tag"].ids)),
            "types": len(np.unique(self.columns["form"].ids)),
            "unary": int(np.count_nonzero(children == 1)),
            "most_children": int(children.max(initial=0)),
            "discontinuous": int(np.count_nonzero(self.discontinuous)),
        }

    def _above(self, numbers: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of nodes among all, of words or nodes that stand at these offsets; those without any left out."""
        starts = np.repeat(self.node_offsets[:-1], np.diff(offsets))
        return (numbers + starts)[numbers >= 0]

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        return [counted(len(self), "tree"), counted(self.n_words, "word"), *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[number, str(tree)] for number, tree in enumerate(self[:most])]
        return {"heads": ["", "tree"], "rows": rows, "total": len(self)}

    # Writing ---------------------------------------------------------------------------------------------------------

    def to_bytes(self, format: str | None = None) -> bytes:
        """The text: what was read if nothing changed, a tree a line otherwise; see `format_constituents`."""
        from isogloss.data.formats.brackets import format_constituents

        return format_constituents(self, format)

    def write(self, path: str | PathLike[str], format: str | None = None) -> None:
        """Write a file, whole or not at all; ``-`` is standard output, ``.gz``, ``.xz`` and ``.zst`` are compressed."""
        from isogloss.data.formats.files import atomic_write

        data = self.to_bytes(format)
        with atomic_write(path) as file:
            file.write(data)


def _numbered(
    forest: Sequence[int | Nested], n_words: int
) -> tuple[list[str], NDArray[np.int32], NDArray[np.int32]]:  # fmt: skip
    """Labels of nested nodes, the node of each word, and the node above each node."""
    names: list[str] = []
    hangs, above = np.full(n_words, -1, np.int32), []
    waiting = [(child, -1) for child in reversed(forest)]
    while waiting:
        part, parent = waiting.pop()
        if isinstance(part, tuple):
            above.append(parent)
            names.append(part[0])
            waiting += [(child, len(names) - 1) for child in reversed(part[1])]
        else:
            hangs[part] = parent
    return names, hangs, np.array(above, np.int32)


def _joined(columns: Sequence[Column]) -> Column:
    numbers: dict[str, int] = {}
    ids = []
    for column in columns:
        mapping = [numbers.setdefault(text, len(numbers)) for text in column.vocabulary]
        ids.append(np.array(mapping, np.int32)[column.ids] if mapping else np.zeros(0, np.int32))
    return Column(np.concatenate(ids), Vocabulary(numbers))
