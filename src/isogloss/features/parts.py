"""Parts, the things that are scored, and the words that they look at.

A part (a position of a chain, an arc of a tree, a word pair, a span) looks at words through *roles*: the position
itself, head and child, source and target word, the words between. Words have integer codes of what is known of them;
parts may have codes of their own, such as a distance, and a bin that every template is combined with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError

__all__ = ["SELF", "Axis", "Parts", "Role", "arcs", "pairs", "phrases", "positions", "spans"]

WORDS_PER_BLOCK = 1 << 14
SELF = "self"
"""The role that an attribute without a role is looked up in."""


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
        self.codes = np.empty((len(attributes), len(self)), np.int64)  # one array, so that kernels need no copy
        for row, (name, codes) in zip(self.codes, attributes.items(), strict=True):
            row[:] = _codes(name, codes, len(self))
        self.attributes = dict(zip(attributes, self.codes, strict=True))

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
    bins : int[n_parts], optional
        With it every template fires twice: as it is, and together with the bin of the part, such as direction and
        length. Bins are numbers from 1 on; on parts with 0 templates fire once.
    """

    n_parts: int
    offsets: NDArray[np.int64]
    roles: Mapping[str, Role] = field(default_factory=dict)
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    bins: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        first = self.offsets
        if first.ndim != 1 or not len(first) or first[0] or first[-1] != self.n_parts or (np.diff(first) < 0).any():
            raise ParameterError(f"Parts: offsets should begin with 0, never fall, and end with {self.n_parts}")
        if self.bins is not None and (_codes("bins", self.bins, self.n_parts) < 0).any():
            raise ParameterError("Parts: bins should be numbers from 0 on")
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
        return replace(self, columns={**self.columns, **more})

    def chosen(self, rows: NDArray[np.int64], offsets: NDArray[np.int64]) -> Parts:
        """Some of the parts by their numbers, perhaps more than once, as those of sentences that begin at `offsets`."""
        roles = {
            name: Role(role.axis, role.at[rows], None if role.until is None else role.until[rows])
            for name, role in self.roles.items()
        }
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Parts(len(rows), offsets, roles, columns, None if self.bins is None else self.bins[rows])

    def with_bins(self, bins: ArrayLike) -> Parts:
        """The same parts, on which every template fires a second time together with a bin."""
        return replace(self, bins=_codes("bins", bins, self.n_parts))


def positions(axis: Axis) -> Parts:
    """One part for each word: what labels of a chain are scored by.

    Examples
    --------
    >>> from isogloss.features import Templates
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


def spans(axis: Axis, longest: int) -> Parts:
    """All spans of up to `longest` words, by their first word and then by their length.

    Roles "first" and "last" (words of the span: look outside with ``first.tag[-1]``, ``last.tag[+1]``) and "inside"
    (all of its words); column "length", from 1 on.

    Examples
    --------
    >>> found = spans(Axis([0, 3, 4], tag=[1, 2, 3, 4]), 2)
    >>> found.offsets.tolist(), found.roles["first"].at.tolist(), found.roles["last"].at.tolist()
    ([0, 5, 6], [0, 0, 1, 1, 2, 3], [0, 1, 1, 2, 2, 3])
    """
    if longest < 1:
        raise ParameterError(f"spans: longest should be 1 or more, not {longest!r}")
    counts = np.minimum(axis.stops - np.arange(len(axis)), longest)
    before = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    first = np.repeat(np.arange(len(axis)), counts)
    length = np.arange(before[-1]) - before[first] + 1
    roles = {
        "first": Role(axis, first),
        "last": Role(axis, first + length - 1),
        "inside": Role(axis, first, first + length),
    }
    return Parts(int(before[-1]), before[axis.offsets], roles, {"length": length})


def phrases(axis: Axis, longest: int, attribute: str) -> NDArray[np.int64]:
    """int64[n_spans]: a code for the sequence of an attribute that each of `spans` has.

    Examples
    --------
    >>> found = phrases(Axis([0, 3], letter=[1, 2, 1]), 2, "letter")  # 1, 12, 2, 21, 1
    >>> len(found), bool(found[0] == found[4]), bool(found[1] == found[3])
    (5, True, False)
    """
    from isogloss.features._numba.spans import phrase_codes

    counts = np.minimum(axis.stops - np.arange(len(axis)), longest)
    before = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    out, codes = np.empty(int(before[-1]), np.int64), np.ascontiguousarray(axis.attributes[attribute])
    blocks = max(1, len(axis) // WORDS_PER_BLOCK)
    with using_threads():
        run_blocks(phrase_codes, blocks, axis.offsets, before[axis.offsets], longest, codes, out)
    return out


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
