"""Sparse features of parts, from templates, in bulk.

A part (a position of a chain, an arc of a tree, a word pair) looks at words through *roles*: the position itself, head
and child, source and target word, the words between. A template is a conjunction of integer codes found there:
``"head.tag & child.tag & direction"``, ``"word[-1] & word"``. Each part gets, for each template, a 64-bit key mixed
from the template's name and the codes; keys become feature numbers by hashing or by an index made from training data.
No step loops over parts in Python.

Keys depend on the templates' names and on the codes alone: not on the order of templates or sentences, on the process
or on the machine. Two conjunctions out of n share a key with probability about n² / 2⁶⁵ (one in 4,000 for 10⁸).

References
----------
McDonald, Crammer and Pereira, Online Large-Margin Training of Dependency Parsers, ACL 2005 (templates for arcs).
Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009; we use no signs. Smith, PhD thesis,
Johns Hopkins 2010, section 2.8.3 (supported features).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ModelError, ParameterError
from isogloss.layout import Numbers
from isogloss.learners.sparse import Sparse

__all__ = ["Axis", "Hashed", "Index", "Numbering", "Parts", "Role", "Sparse", "Templates", "arcs", "pairs", "positions"]

Keys = NDArray[np.uint64]
PARTS_PER_BLOCK = 1 << 15
SELF = "self"
"""The role that an attribute without a role is looked up in."""

_ITEM = re.compile(r"(?:(?P<role>[A-Za-z_]\w*)\.)?(?P<name>[A-Za-z_]\w*)(?:\[(?P<offset>[+-]?\d+)\])?$")


class Axis:
    """The words of all sentences, one after the other, with integer codes of what is known of them.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Sentence *s* is the words ``offsets[s] … offsets[s + 1] - 1``.
    **attributes : int[n_words]
        Codes from 0 on; a negative code says that a word has no such attribute, and templates with it do not fire.
    """

    def __init__(self, offsets: ArrayLike, **attributes: ArrayLike) -> None:
        self.offsets = np.ascontiguousarray(offsets, np.int64)
        if self.offsets.ndim != 1 or not len(self.offsets) or self.offsets[0] != 0 or (np.diff(self.offsets) < 0).any():
            raise ParameterError("Axis: offsets should begin with 0 and never fall")
        lengths = np.diff(self.offsets)
        self.starts = np.repeat(self.offsets[:-1], lengths)
        self.stops = np.repeat(self.offsets[1:], lengths)
        self.attributes = {name: _codes(name, codes, len(self)) for name, codes in attributes.items()}

    def __len__(self) -> int:
        return int(self.offsets[-1])


def _codes(name: str, codes: ArrayLike, size: int) -> NDArray[np.int64]:
    array = np.asarray(codes)
    if array.shape != (size,) or (array.size and array.dtype.kind not in "iub"):
        raise ParameterError(f"{name}: there should be {size} integer codes, not {array.dtype}{list(array.shape)}")
    return np.ascontiguousarray(array, np.int64)


class Role(NamedTuple):
    """Where parts look: one word each, or a span of words.

    axis : Axis
    at : int[n_parts]
        The word of each part, as its place on the axis; −1 for none, and templates with this role do not fire.
    until : int[n_parts], optional
        With it, a template fires once for each of the words ``at … until - 1``.
    """

    axis: Axis
    at: NDArray[Any]
    until: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of any structures, in the order of their scores, sentence after sentence.

    Parameters
    ----------
    n_parts : int
    roles : dict of str to Role
        An attribute without a role is looked up in the role "self".
    columns : dict of str to int[n_parts]
        Codes of the parts themselves, such as distance and direction.
    offsets : int64[n_sentences + 1]
        Parts of sentence *s* are ``offsets[s] … offsets[s + 1] - 1``.
    """

    n_parts: int
    offsets: NDArray[np.int64]
    roles: Mapping[str, Role] = field(default_factory=dict)
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            if column.shape != (self.n_parts,):
                raise ParameterError(f"Parts: column {name} should have {self.n_parts} codes, not {list(column.shape)}")
        for name, role in self.roles.items():  # kernels look words up without asking
            words = len(role.axis)
            span = role.until is not None
            for ends, least, most in (
                (role.at, 0 if span else -1, words if span else words - 1),
                (role.until, 0, words),
            ):
                if ends is None:
                    continue
                if ends.shape != (self.n_parts,) or (ends.size and not least <= ends.min() <= ends.max() <= most):
                    raise ParameterError(
                        f"Parts: role {name} should have {self.n_parts} places from {least} to {most}, one a part"
                    )

    def with_columns(self, **columns: ArrayLike) -> Parts:
        """The same parts with more columns of codes."""
        more = {name: _codes(name, codes, self.n_parts) for name, codes in columns.items()}
        return Parts(self.n_parts, self.offsets, self.roles, {**self.columns, **more})


def positions(axis: Axis) -> Parts:
    """One part for each word: what labels of a chain are scored by.

    Examples
    --------
    >>> corpus = Axis([0, 2, 3], word=[7, 8, 7])
    >>> found = Templates(["word", "word[-1]"]).keys(positions(corpus))
    >>> bool(found[0, 0] == found[2, 0]), bool(found[0, 1] == found[2, 1]), bool(found[1, 1] == found[2, 1])
    (True, True, False)
    """
    return Parts(len(axis), axis.offsets, {SELF: Role(axis, np.arange(len(axis), dtype=np.int64))})


def arcs(axis: Axis, *, distances: Sequence[int] = (1, 2, 3, 4, 5, 6, 11)) -> Parts:
    """All cells (head, child) of dependency trees, laid out as the scores[n + 1, n + 1] of each sentence.

    Roles "head", "child", "between" (the words strictly between); columns "direction" (1 if the child is on the
    right) and "distance" (in bins that begin at `distances`). Cells that are no arcs (the root as a child, a word as
    its own head) have no features.

    Parameters
    ----------
    axis : Axis
        Nodes: each sentence begins with the root, whose codes are yours to choose.
    """
    sizes = np.diff(axis.offsets)
    offsets = np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64)
    width, cell = np.repeat(sizes, sizes**2), np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes**2)
    first = np.repeat(axis.offsets[:-1], sizes**2)
    head, child = first + cell // width, first + cell % width
    no_arc = (child == first) | (child == head)
    gap = np.abs(child - head)
    columns = {
        "direction": (child > head).astype(np.int8),
        "distance": np.searchsorted(np.asarray(distances), gap, side="right").astype(np.int16),
    }
    small = np.int32 if len(axis) < 2**31 else np.int64
    ends = np.maximum(head, child)
    roles = {
        "head": Role(axis, np.where(no_arc, -1, head).astype(small)),
        "child": Role(axis, np.where(no_arc, -1, child).astype(small)),
        "between": Role(axis, (np.minimum(head, child) + 1).astype(small), np.where(no_arc, 0, ends).astype(small)),
    }
    return Parts(int(offsets[-1]), offsets, roles, columns)


def pairs(source: Axis, target: Axis) -> Parts:
    """All word pairs (i, j), laid out as the scores[n_source, n_target] of each sentence pair.

    Roles "source" and "target". Real-valued features of pairs go to `Templates.matrix` as dense columns.
    """
    n, m = np.diff(source.offsets), np.diff(target.offsets)
    if len(n) != len(m):
        raise ParameterError(f"pairs: {len(n)} sentences on the source side and {len(m)} on the target side")
    offsets = np.concatenate([[0], np.cumsum(n * m)]).astype(np.int64)
    cell = np.arange(offsets[-1]) - np.repeat(offsets[:-1], n * m)
    width = np.repeat(m, n * m)
    at = np.repeat(source.offsets[:-1], n * m) + cell // width, np.repeat(target.offsets[:-1], n * m) + cell % width
    roles = {name: Role(axis, x) for name, axis, x in zip(("source", "target"), (source, target), at, strict=True)}
    return Parts(int(offsets[-1]), offsets, roles)


class Numbering(Protocol):
    """From keys to feature numbers."""

    @property
    def n_features(self) -> int: ...

    def numbers(self, keys: Keys, /) -> NDArray[np.int32]:
        """int32[n]: −1 where a key is 0 or unknown."""
        ...


class Hashed:
    """Features numbered by the first `bits` bits of their keys: no index is kept, and some features share a number."""

    def __init__(self, bits: int) -> None:
        if not 1 <= bits <= 30:
            raise ParameterError(f"Hashed: bits should be from 1 to 30, not {bits!r}")
        self.bits = bits

    def __repr__(self) -> str:
        return f"Hashed(bits={self.bits})"

    @property
    def n_features(self) -> int:
        return 1 << self.bits

    def numbers(self, keys: Keys) -> NDArray[np.int32]:
        """int32[n]: −1 where a key is 0."""
        from isogloss.learners._numba.features import look_up_hashed

        out = np.empty(len(keys), np.int32)
        look_up_hashed(keys, self.bits, out)
        return out


KEYS = Numbers("uint64", "features", least=1, order="strict")
"""How the keys of an `Index` are declared in a saved model."""


class Index:
    """The features of a model, one number each; what is not among them is left out.

    Parameters
    ----------
    keys : uint64[n_features]
        Ascending, no two alike, none of them 0. Feature *i* has key ``keys[i]``.
    """

    def __init__(self, keys: ArrayLike) -> None:
        self.keys = np.ascontiguousarray(keys, np.uint64)
        if self.keys.ndim != 1 or (len(self.keys) and (self.keys[0] == 0 or (self.keys[1:] <= self.keys[:-1]).any())):
            raise ModelError("Index: keys should be ascending, with none twice and none 0. Is the saved model damaged?")
        self._table: tuple[Keys, NDArray[np.int32]] | None = None

    def __repr__(self) -> str:
        return f"Index({self.n_features} features)"

    @property
    def n_features(self) -> int:
        return len(self.keys)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        return {"keys": self.keys}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Index:
        """The inverse of `to_arrays`."""
        return cls(arrays["keys"])

    def numbers(self, keys: Keys) -> NDArray[np.int32]:
        """int32[n]: −1 where a key is 0 or not in the index."""
        from isogloss.learners._numba.features import look_up, place

        if self._table is None:
            table = np.zeros(_room(len(self.keys)), np.uint64)
            numbers = np.zeros(len(table), np.int32)
            place(self.keys, table, numbers)
            self._table = table, numbers
        out = np.empty(len(keys), np.int32)
        look_up(keys, *self._table, out)
        return out


def _room(n: int) -> int:
    """Places for a table of n keys: a power of two, at least twice as many."""
    return 1 << max(10, (2 * n).bit_length())


class _Item(NamedTuple):
    role: str | None
    name: str
    offset: int

    def __str__(self) -> str:
        role = f"{self.role}." if self.role else ""
        return f"{role}{self.name}" + (f"[{self.offset:+d}]" if self.offset else "")


class Templates:
    """Conjunctions of codes, each a family of indicator features.

    Parameters
    ----------
    templates : list of str or of tuples of str
        ``"a & b"`` or ``("a", "b")``. An item is a column of the parts (``direction``), an attribute of the part's own
        word (``word``) or of a role's (``head.tag``), and may look to a neighbour (``word[-1]``, ``head.tag[+1]``);
        outside the sentence there are two codes of their own, one before and one after. A template whose role is a span
        fires once for each word of it. The empty conjunction ``()`` is the bias.

    Examples
    --------
    >>> corpus = Axis([0, 3], word=[0, 1, 0], tag=[2, 2, 5])
    >>> templates = Templates(["word", "tag[-1] & tag"])
    >>> parts = positions(corpus)
    >>> index = templates.index(parts)
    >>> F = templates.matrix(parts, index)
    >>> F.n_features, F.indptr.tolist(), bool(F.indices[0] == F.indices[4])
    (5, [0, 2, 4, 6], True)
    """

    def __init__(self, templates: Sequence[str | Sequence[str]]) -> None:
        self._items = [_parse(template) for template in templates]
        self.names = tuple(" & ".join(map(str, items)) for items in self._items)
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ParameterError(f"Templates: {twice!r} is there twice")
        # The name, not the place in the list, goes into the key: adding a template leaves all others as they were.
        digests = (hashlib.blake2b(name.encode(), digest_size=8).digest() for name in self.names)
        self._seeds = [max(1, int.from_bytes(digest, "little")) for digest in digests]

    def __repr__(self) -> str:
        return f"Templates({list(self.names)})"

    def __len__(self) -> int:
        return len(self.names)

    def keys(self, parts: Parts) -> Keys:
        """uint64[n_parts, n_templates]: the key of each template for each part; 0 where it does not fire.

        For a look inside; templates over spans, which have many keys for a part, are refused.
        """
        out = np.empty((parts.n_parts, len(self)), np.uint64)
        for t, (keys, where) in enumerate(self._mixed(parts, 0, parts.n_parts)):
            if where is not None:
                raise ParameterError(f"Templates.keys: {self.names[t]!r} has many keys for each part")
            out[:, t] = keys
        return out

    def index(self, parts: Parts, *, gold: ArrayLike | None = None, min_count: int = 1) -> Index:
        """Number the features of training data.

        Parameters
        ----------
        parts : Parts
        gold : bool[n_parts], optional
            Count features on these parts alone: those of the right structures, for *supported* features.
        min_count : int
            Keep features that fire at least this often.
        """
        from isogloss.learners._numba.features import insert

        marked = None if gold is None else np.ascontiguousarray(gold, np.bool_)
        if marked is not None and marked.shape != (parts.n_parts,):
            raise ParameterError(f"Templates.index: gold should be {parts.n_parts} booleans, not {list(marked.shape)}")
        table, counts, filled = np.zeros(1 << 16, np.uint64), np.zeros(1 << 16, np.int64), 0
        for start, stop in _blocks(parts.n_parts):
            for keys, where in self._mixed(parts, start, stop):
                fires = np.zeros(0, np.bool_) if marked is None else marked[start:stop]
                if where is not None and marked is not None:
                    fires = np.repeat(fires, np.diff(where))
                done = 0
                while done < len(keys):
                    read, filled = insert(keys[done:], fires[done:], table, counts, filled)
                    done += read
                    if done < len(keys):
                        table, counts = _grown(table, counts)
        return Index(np.sort(table[(table != 0) & (counts >= min_count)]))

    def matrix(self, parts: Parts, numbering: Numbering, *, dense: ArrayLike | None = None) -> Sparse:
        """The features of every part, as one sparse matrix.

        Parameters
        ----------
        parts : Parts
        numbering : Index or Hashed
        dense : float64[n_parts, d], optional
            Real-valued features, which become the last d features.

        Returns
        -------
        Sparse
            Of n_parts rows; a row holds features in the order of the templates. Four bytes for each feature that fires
            and eight for each part.
        """
        spans = list(_blocks(parts.n_parts))
        found: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = [_NOTHING] * len(spans)

        def work(block: int, count: int) -> None:
            found[block] = self._numbered(parts, *spans[block], numbering)

        if numbering.n_features:
            numbering.numbers(np.zeros(0, np.uint64))  # make the table before threads want it
        with using_threads():
            run_blocks(work, len(spans))
        lengths = np.concatenate([np.zeros(0, np.int64), *(block[0] for block in found)])
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        indices = np.concatenate([np.zeros(0, np.int32), *(block[1] for block in found)])
        return Sparse(indptr, indices, numbering.n_features, dense=dense)

    def _numbered(
        self, parts: Parts, start: int, stop: int, numbering: Numbering
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """How many features each part has, and which."""
        from isogloss.learners._numba.features import compress, count_fires

        single = np.arange(stop - start + 1)
        lengths = np.zeros(stop - start, np.int64)
        columns = []
        for keys, where in self._mixed(parts, start, stop):
            columns.append((numbering.numbers(keys), single if where is None else where))
            count_fires(*columns[-1], lengths)
        heads = np.cumsum(lengths) - lengths
        out = np.empty(int(lengths.sum()), np.int32)
        for numbers, where in columns:
            compress(numbers, where, heads, out)
        return lengths, out

    def _mixed(self, parts: Parts, start: int, stop: int) -> Iterator[tuple[Keys, NDArray[np.int64] | None]]:
        """For each template the keys of the parts start … stop - 1, and for spans where those of each part begin."""
        from isogloss.learners._numba.features import mix_column, mix_role, mix_span

        for items, seed in zip(self._items, self._seeds, strict=True):
            keys = np.full(stop - start, seed, np.uint64)
            spans: list[tuple[_Item, Role]] = []
            for item in items:
                role = _role(item, parts)
                if role is None:
                    mix_column(keys, np.asarray(parts.columns[item.name][start:stop], np.int64))
                elif role.until is not None:
                    spans.append((item, role))
                else:
                    axis, at = role.axis, role.at[start:stop]
                    mix_role(keys, at, axis.attributes[item.name], item.offset, axis.starts, axis.stops)
            if not spans:
                yield keys, None
                continue
            role = spans[0][1]
            if any(other is not role for _, other in spans) or role.until is None:
                raise ParameterError("Templates: a template may look at one span only")
            first, last = role.at[start:stop], role.until[start:stop]
            many = np.where(keys == 0, 0, np.maximum(np.asarray(last, np.int64) - first, 0))
            where = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
            codes = np.stack([role.axis.attributes[item.name] for item, _ in spans])
            steps = np.array([item.offset for item, _ in spans])
            out = np.empty(where[-1], np.uint64)
            mix_span(keys, first, last, codes, steps, role.axis.starts, role.axis.stops, where, out)
            yield out, where


_NOTHING = np.zeros(0, np.int64), np.zeros(0, np.int32)


def _parse(template: str | Sequence[str]) -> list[_Item]:
    words = [word.strip() for word in template.split("&")] if isinstance(template, str) else list(template)
    items = []
    for word in words:
        match = _ITEM.match(word)
        if match is None:
            raise ParameterError(
                f"Templates: {word!r} in {template!r} should be a name like word, head.tag, word[-1] or head.tag[+1]"
            )
        items.append(_Item(match["role"], match["name"], int(match["offset"] or 0)))
    return items


def _role(item: _Item, parts: Parts) -> Role | None:
    """The role through which an item is looked up; None for a column."""
    if item.role is None and item.name in parts.columns:
        if item.offset:
            raise ParameterError(f"Templates: {item} is a column of the parts, which have no neighbours")
        return None
    role = parts.roles.get(item.role or SELF)
    if role is None or item.name not in role.axis.attributes:
        known = sorted([*parts.columns, *(f"{r}.{a}" for r in parts.roles for a in parts.roles[r].axis.attributes)])
        raise ParameterError(f"Templates: there is no {item}; these parts have {', '.join(known)}")
    return role


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + PARTS_PER_BLOCK, n)) for start in range(0, n, PARTS_PER_BLOCK))


def _grown(table: Keys, counts: NDArray[np.int64]) -> tuple[Keys, NDArray[np.int64]]:
    """The same keys and counts in a table of twice the size."""
    from isogloss.learners._numba.features import place

    held = np.flatnonzero(table)
    bigger, numbers = np.zeros(2 * len(table), np.uint64), np.zeros(2 * len(table), np.int32)
    place(table[held], bigger, numbers)
    moved = np.where(bigger != 0, counts[held][numbers], 0)
    return bigger, moved
