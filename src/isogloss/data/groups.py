"""`Groups`: things that are to be ranked, such as documents found for a query, or translations of a sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import Rows, counted, row_numbers
from isogloss.errors import DocumentsError

__all__ = ["Candidate", "Group", "Groups"]


@dataclass(frozen=True)
class Candidate:
    """Something that is to be ranked, or that helps to rank: a document, or the output of a system.

    Parameters
    ----------
    id : str
    text, title, url : str
        As far as there are any.
    grade : float
        How good it is, higher is better: a grade, or a number of clicks; not a number where that is not known.
    features : mapping of str to float
        What somebody else has measured, by name.
    """

    id: str
    text: str = ""
    title: str = ""
    url: str = ""
    grade: float = math.nan
    features: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Group:
    """Candidates of which each is better or worse than the others: those of one query, or of one sentence.

    Parameters
    ----------
    id : str
    candidates : tuple of Candidate
        Those that are to be ranked.
    query : str
        What they were found by, if they are documents.
    reference : str
        What they should be like, if they are outputs of systems.
    others : tuple of Candidate
        Documents in another language, found by the same query there: constraint documents.
    other_query : str
        The query in that language.
    """

    id: str
    candidates: tuple[Candidate, ...]
    query: str = ""
    reference: str = ""
    others: tuple[Candidate, ...] = ()
    other_query: str = ""

    @property
    def grades(self) -> NDArray[np.float64]:
        """float64[n_candidates]."""
        return np.array([each.grade for each in self.candidates], np.float64)

    @property
    def other_grades(self) -> NDArray[np.float64]:
        """float64[n_others]."""
        return np.array([each.grade for each in self.others], np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Rows[Group]):
    """Groups of candidates: `groups[0]` is a `Group`, and `groups[:10]` are `Groups`.

    Parameters
    ----------
    groups : tuple of Group
        No two with the same id, and in none two candidates with the same id.
    name : str
        The file, for messages.

    Examples
    --------
    >>> groups = Groups.of([("a query", [("d1", 2.0, {"bm25": 3.1}), ("d2", 0.0, {"bm25": 1.5})])])
    >>> groups, groups[0].grades.tolist(), groups.feature_names
    (Groups(1 group, 2 candidates), [2.0, 0.0], ('bm25',))
    """

    groups: tuple[Group, ...]
    name: str = "<memory>"

    def __post_init__(self) -> None:
        _once(self.name, "group", (group.id for group in self.groups))
        for group in self.groups:
            for noun, members in (("candidate", group.candidates), ("document of the other language", group.others)):
                _once(f"{self.name}, group {group.id!r}", noun, (each.id for each in members))

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Sequence[tuple[str, float, Mapping[str, float]]]]]) -> Groups:
        """From names of groups, each with (id, grade, features) of its candidates."""
        made = (
            Group(name, tuple(Candidate(one, grade=float(grade), features=dict(found)) for one, grade, found in each))
            for name, each in rows
        )
        return cls(tuple(made))

    @classmethod
    def read(cls, path: str | PathLike[str], **options: Any) -> Groups:
        """Read a file of groups; see `isogloss.data.formats.groups.read_groups`."""
        from isogloss.data.formats.groups import read_groups

        return read_groups(path, **options)

    def to_bytes(self) -> bytes:
        """JSON lines, as `read` takes them."""
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self._lines()).encode()

    def _lines(self) -> Iterable[dict[str, Any]]:
        for group in self.groups:
            sides = ((False, group.query, group.candidates), (True, group.other_query, group.others))
            for other, query, members in sides:
                for each in members:
                    row: dict[str, Any] = {"group": group.id, "id": each.id}
                    if not math.isnan(each.grade):
                        row["grade"] = each.grade
                    if other:
                        row["other"] = True
                    words = {"query": query, "reference": "" if other else group.reference}
                    row |= {name: text for name, text in words.items() if text}
                    row |= {name: getattr(each, name) for name in ("title", "text", "url") if getattr(each, name)}
                    if each.features:
                        row["features"] = dict(each.features)
                    yield row

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def n_candidates(self) -> int:
        return sum(len(group.candidates) for group in self.groups)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features that candidates come with, in order of first appearance."""
        return self._names("candidates")

    @property
    def other_feature_names(self) -> tuple[str, ...]:
        """The same of the documents in the other language."""
        return self._names("others")

    def _names(self, side: str) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(name for group in self.groups for each in getattr(group, side) for name in each.features)
        )

    def part(self, start: int, stop: int) -> Groups:
        """Groups start..stop-1."""
        return replace(self, groups=self.groups[start:stop])

    def take(self, numbers: ArrayLike) -> Groups:
        """Groups by their numbers, in that order, or by a mask of booleans."""
        rows = row_numbers(numbers, len(self), "Groups").tolist()
        return replace(self, groups=tuple(self.groups[row] for row in rows))

    def _row(self, number: int) -> Group:
        return self.groups[number]

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        others = sum(len(group.others) for group in self.groups)
        beside = [f"{others:,} in another language"] if others else []
        return [counted(len(self), "group"), counted(self.n_candidates, "candidate"), *beside, *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[g.id, g.query or g.reference, len(g.candidates), len(g.others)] for g in self.groups[:most]]
        return {"heads": ["group", "query or reference", "candidates", "others"], "rows": rows, "total": len(self)}


def _once(place: str, noun: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DocumentsError(f"{place}: there are two of the same name, {noun} {name!r}. Give each its own id")
        seen.add(name)
