"""The one language of templates: conjunctions of codes, each a family of indicator features.

``"head.tag & child.tag & direction"``, ``"word[-1] & word"``: an item is an attribute of a word in a role, or of a
neighbour, or a code of the part itself. On a part, a template has a 64-bit key, mixed from the template's name and the
codes (`isogloss.features.mixing`); keys become feature numbers by hashing or by an index made from training data
(`isogloss.features.table`). No step loops over parts in Python.

Two conjunctions out of n share a key with probability about n² / 2⁶⁵ (one in 4,000 for 10⁸).

References
----------
McDonald, Crammer and Pereira, Online Large-Margin Training of Dependency Parsers, ACL 2005 (templates for arcs).
Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009; we use no signs. Smith, PhD thesis,
Johns Hopkins 2010, section 2.8.3 (supported features).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError
from isogloss.features.mixing import factor_of, factors_of, starts_of
from isogloss.features.parts import SELF, Axis, Parts, Role
from isogloss.features.sparse import Sparse
from isogloss.features.table import Index, Keys, Numbering

__all__ = ["Numbered", "Template", "Templates", "Term", "View"]

PARTS_PER_BLOCK = 1 << 15
FIRST_TABLE = 1 << 16

Template = str | Sequence[str]

_TERM = re.compile(r"(?:(?P<role>[A-Za-z_]\w*)\.)?(?P<name>[A-Za-z_]\w*)(?:\[(?P<shift>[+-]?\d+)\])?$")


class Term(NamedTuple):
    """One item of a template: what it looks at, of whom, and how many words further."""

    role: str | None
    name: str
    shift: int

    def __str__(self) -> str:
        role = f"{self.role}." if self.role else ""
        return f"{role}{self.name}" + (f"[{self.shift:+d}]" if self.shift else "")

    @classmethod
    def parse(cls, text: str, template: Template) -> Term:
        """From ``head.tag[+1]``; `template` is for messages."""
        match = _TERM.match(text) if isinstance(text, str) else None
        if match is None:
            raise ParameterError(
                f"Templates: {text!r} in {template!r} should be a name like word, head.tag, word[-1] or head.tag[+1]"
            )
        return cls(match["role"], match["name"], int(match["shift"] or 0))


class Numbered(NamedTuple):
    """Templates as kernels take them that have words, roles and attributes of their own.

    starts : uint64[n_templates]
    terms : int64[n_terms, 4]
        Template, role, shift and attribute of each term.
    factors : uint64[n_terms]
    """

    starts: NDArray[np.uint64]
    terms: NDArray[np.int64]
    factors: NDArray[np.uint64]


class View(NamedTuple):
    """Templates on parts, as the kernels of `isogloss.features._numba.walk` take them.

    Only roles, attributes and columns that templates look at are there. What belongs to role *r* lies from ``x[r]`` to
    ``x[r + 1] - 1``: its terms (``terms_of``) and the templates that look at it (``members``).
    """

    starts: NDArray[np.uint64]
    """uint64[n_templates]"""
    wide: NDArray[np.bool_]
    """bool[n_templates]: whether a template looks at a span."""
    column_terms: NDArray[np.int64]
    """int64[n, 2]: template and column."""
    column_factors: NDArray[np.uint64]
    terms_of: NDArray[np.int64]
    """int64[n_roles + 1]"""
    terms: NDArray[np.int64]
    """int64[n_terms, 3]: the template, as a number among those of the role; where codes begin in `codes`; the shift."""
    factors: NDArray[np.uint64]
    """uint64[n_terms]"""
    members: NDArray[np.int64]
    """int64[n_roles + 1]"""
    templates: NDArray[np.int64]
    spans: NDArray[np.bool_]
    """bool[n_roles]: whether the role is a span."""
    words: NDArray[np.int64]
    """int64[n_roles]: where the words of its axis begin in `first` and `last`."""
    first: NDArray[np.int64]
    """int64[n_words]: the first word of each word's sentence; all axes one after the other."""
    last: NDArray[np.int64]
    """int64[n_words]: one after the last."""
    codes: NDArray[np.int64]
    """All attributes one after the other."""
    offsets: NDArray[np.int64]
    at: NDArray[np.int64]
    """int64[n_roles, n_parts]"""
    until: NDArray[np.int64]
    """int64[n_roles, n_parts], 0 for roles that are no spans; no parts if there is no span."""
    columns: NDArray[np.int64]
    """int64[n_columns, n_parts]"""
    bins: NDArray[np.int64]
    """int64[n_parts], or empty."""


class Templates:
    """Conjunctions of codes, each a family of indicator features.

    Parameters
    ----------
    templates : list of str or of tuples of str
        ``"a & b"`` or ``("a", "b")``. An item is a column of the parts (``direction``), an attribute of the part's own
        word (``word``) or of a role's (``head.tag``), and may look to a neighbour (``word[-1]``, ``head.tag[+1]``);
        outside the sentence there are two codes of their own, one before and one after. A template whose role is a span
        fires once for each word of it. The empty conjunction ``()`` is the bias.
    kind : str
        Keeps the keys of templates of the same name apart, where several lists of them share a table.

    Examples
    --------
    >>> from isogloss.features import Axis, positions
    >>> corpus = Axis([0, 3], word=[0, 1, 0], tag=[2, 2, 5])
    >>> templates = Templates(["word", "tag[-1] & tag"])
    >>> parts = positions(corpus)
    >>> index = templates.index(parts)
    >>> F = templates.matrix(parts, index)
    >>> F.n_features, F.indptr.tolist(), bool(F.indices[0] == F.indices[4])
    (5, [0, 2, 4, 6], True)
    """

    def __init__(self, templates: Sequence[Template], *, kind: str = "") -> None:
        self.terms = tuple(_parse(template) for template in templates)
        self.names = tuple(" & ".join(map(str, terms)) for terms in self.terms)
        self.kind = kind
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ParameterError(f"Templates: {twice!r} is there twice")
        self.starts = starts_of(self.names, kind)

    def __repr__(self) -> str:
        return f"Templates({list(self.names)})"

    def __len__(self) -> int:
        return len(self.names)

    # --- as numbers, for kernels

    def numbered(self, roles: Sequence[str], attributes: Sequence[str], *, reach: int) -> Numbered:
        """For kernels with roles and attributes of their own; what is not among them is refused.

        `reach` is how far templates may look from a word.
        """
        terms, factors = [], []
        for number, items in enumerate(self.terms):
            for place, item in enumerate(items):
                if item.role not in roles or item.name not in attributes:
                    raise ParameterError(
                        f"template {self.names[number]!r}: '{item}' should be a word and what to look at, such as "
                        f"'{roles[0]}.{attributes[0]}' or '{roles[-1]}.{attributes[-1]}[-1]'; words are "
                        f"{', '.join(roles)}, and there are {', '.join(attributes)}"
                    )
                if abs(item.shift) > reach:
                    raise ParameterError(
                        f"template {self.names[number]!r}: '{item}' looks further than {reach} words away"
                    )
                terms.append((number, roles.index(item.role), item.shift, attributes.index(item.name)))
                factors.append(factor_of(place))
        return Numbered(self.starts, np.array(terms, np.int64).reshape(-1, 4), np.array(factors, np.uint64))

    def on(self, parts: Parts) -> View:
        """These templates on parts, for kernels; a template that looks at what the parts have not is refused."""
        return _View(self.starts, self.terms, parts).made()

    # --- features

    def keys(self, parts: Parts) -> Keys:
        """uint64[n_parts, n_templates]: the key of each template for each part; 0 where it does not fire.

        For a look inside; templates over spans, which have many keys for a part, are refused. Bins are left aside.
        """
        from isogloss.features._numba.walk import list_keys

        out = np.empty((parts.n_parts, len(self)), np.uint64)
        for number, terms in enumerate(self.terms):
            view = _View(self.starts[number : number + 1], [terms], parts).made()
            if view.wide[0]:
                raise ParameterError(f"Templates.keys: {self.names[number]!r} has many keys for each part")
            list_keys(view, out[:, number])
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
        from isogloss.features._numba.walk import count_keys

        marked = np.zeros(0) if gold is None else np.ascontiguousarray(gold, np.bool_).astype(np.float64)
        if gold is not None and marked.shape != (parts.n_parts,):
            raise ParameterError(f"Templates.index: gold should be {parts.n_parts} booleans, not {list(marked.shape)}")
        view = self.on(parts)
        slots, counts, used = np.zeros(FIRST_TABLE, np.uint64), np.zeros(FIRST_TABLE, np.int32), 0
        for first, last in _blocks(parts.offsets):
            slots, counts, used = count_keys(view, first, last, marked, slots, counts, used)
        return Index(np.sort(slots[counts >= max(1, min_count)]))

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
            Of n_parts rows; a row holds features in the order of the templates, those of spans last, word by word. Four
            bytes for each feature that fires and eight for each part.
        """
        from isogloss.features._numba.walk import number_features, rooms_of

        view, lookup, blocks = self.on(parts), numbering.lookup, _blocks(parts.offsets)
        lengths, found = np.zeros(parts.n_parts, np.int64), [np.zeros(0, np.int32)] * len(blocks)

        def work(block: int, count: int) -> None:
            first, last = blocks[block]
            rooms, nothing = np.empty(last - first, np.int64), np.zeros(0)
            rooms_of(view, np.arange(first, last), rooms, nothing, 0.0, rooms)
            out = np.empty(int(rooms.sum()), np.int32)
            own = lengths[parts.offsets[first] : parts.offsets[last]]
            found[block] = out[: number_features(view, first, last, lookup, own, out)].copy()

        with using_threads():
            run_blocks(work, len(blocks))
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        indices = np.concatenate([np.zeros(0, np.int32), *found])
        return Sparse(indptr, indices, numbering.n_features, dense=dense)


def blind_to(templates: Sequence[Template], attributes: Sequence[str]) -> tuple[Template, ...]:
    """Those of some templates that look at none of the attributes; ``prefix`` stands for prefix1, prefix2 and so on.

    Examples
    --------
    >>> blind_to(["word", "prefix2", ("tag", "word[-1]"), "tag[-1] & tag", ()], ["word", "prefix"])
    ('tag[-1] & tag', ())
    """

    def looks(term: Term) -> bool:
        return term.name in attributes or term.name.rstrip("0123456789") in attributes

    return tuple(one for one in templates if not any(looks(term) for term in _parse(one)))


def _parse(template: Template) -> tuple[Term, ...]:
    words = [word.strip() for word in template.split("&")] if isinstance(template, str) else list(template)
    return tuple(Term.parse(word, template) for word in words)


def _blocks(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Sentences, cut so that each piece has about `PARTS_PER_BLOCK` parts."""
    marks = np.arange(0, int(offsets[-1]) + PARTS_PER_BLOCK, PARTS_PER_BLOCK)
    cuts = np.unique(np.append(np.searchsorted(offsets[:-1], marks[:-1]), len(offsets) - 1)).tolist()
    return list(pairwise(cuts))


class _View:
    """Collects what templates look at."""

    def __init__(self, starts: NDArray[np.uint64], templates: Sequence[tuple[Term, ...]], parts: Parts) -> None:
        self.starts, self.parts = starts, parts
        self.columns: list[str] = []
        self.roles: list[str] = []
        self.axes: list[Axis] = []
        column_terms: list[tuple[int, int]] = []
        column_factors: list[int] = []
        self.terms: list[tuple[int, int, int, int, int, int]] = []
        self.wide = np.zeros(len(templates), np.bool_)
        for number, items in enumerate(templates):
            wide: set[str] = set()
            for place, item in enumerate(items):
                role = self._role(item)
                if role is None:
                    column_terms.append((number, _number(self.columns, item.name)))
                    column_factors.append(place)
                    continue
                name = item.role or SELF
                if role.until is not None:
                    wide.add(name)
                axis = _number(self.axes, role.axis)
                attribute = list(role.axis.attributes).index(item.name)
                self.terms.append((_number(self.roles, name), number, axis, attribute, item.shift, place))
            if len(wide) > 1:
                raise ParameterError("Templates: a template may look at one span only")
            self.wide[number] = bool(wide)
        self.column_terms = np.array(column_terms, np.int64).reshape(-1, 2)
        self.column_factors = factors_of(column_factors)

    def _role(self, item: Term) -> Role | None:
        """The role through which an item is looked up; None for a column."""
        parts = self.parts
        if item.role is None and item.name in parts.columns:
            if item.shift:
                raise ParameterError(f"Templates: {item} is a column of the parts, which have no neighbours")
            return None
        role = parts.roles.get(item.role or SELF)
        if role is None or item.name not in role.axis.attributes:
            known = sorted([*parts.columns, *(f"{r}.{a}" for r in parts.roles for a in parts.roles[r].axis.attributes)])
            raise ParameterError(f"Templates: there is no {item}; these parts have {', '.join(known)}")
        return role

    def made(self) -> View:
        """Everything as arrays."""
        parts, roles = self.parts, [self.parts.roles[name] for name in self.roles]
        starts = np.concatenate([[0], np.cumsum([len(axis) for axis in self.axes])]).astype(np.int64)
        codes = np.concatenate([[0], np.cumsum([axis.codes.size for axis in self.axes])]).astype(np.int64)
        terms_of, members = np.zeros(len(roles) + 1, np.int64), np.zeros(len(roles) + 1, np.int64)
        terms: list[tuple[int, int, int]] = []
        places: list[int] = []
        templates: list[int] = []
        for role in range(len(roles)):
            own = [term for term in self.terms if term[0] == role]
            numbers = sorted({term[1] for term in own})
            for _, template, axis, attribute, shift, place in own:
                terms.append((numbers.index(template), int(codes[axis]) + attribute * len(self.axes[axis]), shift))
                places.append(place)
            templates += numbers
            terms_of[role + 1], members[role + 1] = len(terms), len(templates)
        return View(
            starts=self.starts, wide=self.wide, column_terms=self.column_terms,
            column_factors=self.column_factors, terms_of=terms_of,
            terms=np.array(terms, np.int64).reshape(-1, 3), factors=factors_of(places),
            members=members, templates=np.array(templates, np.int64),
            spans=np.array([role.until is not None for role in roles], np.bool_),
            words=np.array([starts[self.axes.index(role.axis)] for role in roles], np.int64),
            first=_joined([axis.starts for axis in self.axes]), last=_joined([axis.stops for axis in self.axes]),
            codes=_joined([axis.codes.reshape(-1) for axis in self.axes]),
            offsets=np.ascontiguousarray(parts.offsets, np.int64),
            at=_stacked([role.at for role in roles], parts.n_parts),
            until=_stacked([role.until for role in roles], parts.n_parts),
            columns=_stacked([parts.columns[name] for name in self.columns], parts.n_parts),
            bins=np.zeros(0, np.int64) if parts.bins is None else np.ascontiguousarray(parts.bins, np.int64),
        )  # fmt: skip


def _number(known: list[Any], thing: Any) -> int:
    """The number of a thing in a list, where it is put if it is not there."""
    if thing not in known:
        known.append(thing)
    return known.index(thing)


def _joined(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One after the other; a single one as it is."""
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.zeros(0, np.int64), *arrays])


def _stacked(rows: Sequence[NDArray[Any] | None], width: int) -> NDArray[np.int64]:
    """Rows one below the other, 0 where there is none; empty if there are none at all."""
    out = np.empty((len(rows), width if any(row is not None for row in rows) else 0), np.int64)
    for number, row in enumerate(rows):
        out[number] = 0 if row is None else row
    return out
