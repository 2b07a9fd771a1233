"""Files of groups to rank: JSON lines, and `group ||| rank ||| reference ||| output`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.groups import Candidate, Group, Groups
from isogloss.errors import DocumentsError

__all__ = ["read_groups", "read_ranking", "write_ranking"]

BARS = " ||| "
_WORDS = ("query", "reference")
_KNOWN = {"group", "id", "grade", "clicks", "other", "title", "text", "url", "features", *_WORDS}


@dataclass
class _Found:
    """What is known of a group so far."""

    candidates: list[Candidate] = field(default_factory=list)
    others: list[Candidate] = field(default_factory=list)
    words: dict[tuple[str, bool], str] = field(default_factory=dict)


def read_groups(path: PathOrName, *, encoding: str = "utf-8", errors: str = "strict") -> Groups:
    """Read groups; what the file is in, its first line says.

    JSON lines have an object for each candidate, with `group` and, as far as there are any: `id` (otherwise its number
    in the group), `grade` or `clicks` (higher is better), `query`, `reference`, `title`, `text`, `url`, `features`
    (names with numbers), and `other` (true for a document in the other language). Lines of a group need not stand
    together.

    The other form is ``group ||| rank ||| reference ||| output``, where a higher rank is better.

    Parameters
    ----------
    path : str or path
    encoding, errors : str
        As in `isogloss.data.formats.read_bytes`.
    """
    name = name_of(path)
    lines = read_bytes(path, encoding=encoding, errors=errors).decode().split("\n")
    found: dict[str, _Found] = {}
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\r")
        if line.strip():
            place = f"{name}, line {number}"
            (_read_json if line.lstrip().startswith("{") else _read_bars)(line, place, found)
    made = (
        Group(
            key, tuple(each.candidates), each.words.get(("query", False), ""), each.words.get(("reference", False), ""),
            tuple(each.others), each.words.get(("query", True), ""),
        )
        for key, each in found.items()
    )  # fmt: skip
    return Groups(tuple(made), name)


def _read_bars(line: str, place: str, found: dict[str, _Found]) -> None:
    fields = line.split(BARS)
    if len(fields) != 4:
        raise DocumentsError(
            f"{place}: {len(fields)} fields between ' ||| ', where `group ||| rank ||| reference ||| output` has 4. "
            "Other groups are a JSON object a line: see docs/rank.md"
        )
    key, rank, reference, output = fields
    group = found.setdefault(key.strip(), _Found())
    _same(group, "reference", False, reference.strip(), place)
    grade = _number(rank.strip(), "the rank", place)
    group.candidates.append(Candidate(str(len(group.candidates) + 1), output.strip(), grade=grade))


def _read_json(line: str, place: str, found: dict[str, _Found]) -> None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise DocumentsError(f"{place}: no JSON object: {problem}") from None
    if not isinstance(row, dict) or "group" not in row:
        raise DocumentsError(f"{place}: an object with 'group' is wanted: the name of its query, or of its sentence")
    if unknown := sorted(set(row) - _KNOWN):
        raise DocumentsError(f"{place}: {unknown[0]!r} is not known; there are {', '.join(sorted(_KNOWN))}")
    other = row.get("other", False)
    if not isinstance(other, bool):
        raise DocumentsError(f"{place}: 'other' should be true or false, not {other!r}")
    group = found.setdefault(_text(row["group"], "group", place), _Found())
    for name in _WORDS:
        if name in row:
            _same(group, name, other, _text(row[name], name, place), place)
    members = group.others if other else group.candidates
    members.append(
        Candidate(
            _text(row.get("id", str(len(members) + 1)), "id", place),
            **{name: _text(row.get(name, ""), name, place) for name in ("text", "title", "url")},
            grade=_grade(row, place),
            features=_features(row.get("features", {}), place),
        )
    )


def _same(group: _Found, name: str, other: bool, text: str, place: str) -> None:
    known = group.words.setdefault((name, other), text)
    if known != text:
        raise DocumentsError(f"{place}: the {name} of this group was {known!r} before, and is {text!r} here")


def _text(value: Any, name: str, place: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise DocumentsError(f"{place}: {name!r} should be text, not {value!r}")
    return value


def _grade(row: dict[str, Any], place: str) -> float:
    if "grade" in row and "clicks" in row:
        raise DocumentsError(f"{place}: a grade and clicks; give one of them")
    value = row.get("grade", row.get("clicks"))
    return math.nan if value is None else _number(value, "the grade", place)


def _number(value: Any, name: str, place: str) -> float:
    try:
        made = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        made = math.nan
    if not abs(made) <= 1e30:
        raise DocumentsError(f"{place}: {name} should be a number, not {value!r}")
    return made


def _features(value: Any, place: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise DocumentsError(f"{place}: 'features' should be an object of names and numbers, not {value!r}")
    return {name: _number(number, f"feature {name!r}", place) for name, number in value.items()}


# --- what was found


def write_ranking(groups: Groups, scores: list[Any]) -> str:
    """A line for each candidate, in the order of the file: group, id, place from 1 on, and score, between tabs."""
    lines = ["group\tid\tplace\tscore\n"]
    for group, own in zip(groups, scores, strict=True):
        order = sorted(range(len(own)), key=lambda k: (-own[k], k))
        place = {k: n for n, k in enumerate(order, 1)}
        for k, each in enumerate(group.candidates):
            cells = [" ".join(text.split()) for text in (group.id, each.id)]
            lines.append(f"{cells[0]}\t{cells[1]}\t{place[k]}\t{own[k]:.9g}\n")
    return "".join(lines)


def read_ranking(path: PathOrName, gold: Groups) -> list[list[float]]:
    """Scores that `write_ranking` wrote, for the candidates of these groups; those that are missing are an error."""
    name = name_of(path)
    known: dict[tuple[str, str], float] = {}
    for number, line in enumerate(read_bytes(path).decode().split("\n"), 1):
        fields = line.removesuffix("\r").split("\t")
        if not line.strip() or (number == 1 and fields[:2] == ["group", "id"]):
            continue
        if len(fields) != 4:
            raise DocumentsError(
                f"{name}, line {number}: {len(fields)} columns, where `isogloss rank apply` writes 4: group, id, place "
                "and score, between tabs"
            )
        key = (fields[0], fields[1])
        if key in known:
            raise DocumentsError(f"{name}, line {number}: candidate {key[1]!r} of group {key[0]!r} is there twice")
        known[key] = _number(fields[3], "the score", f"{name}, line {number}")
    found = []
    for group in gold:
        keys = [(" ".join(group.id.split()), " ".join(each.id.split())) for each in group.candidates]
        if lost := [key for key in keys if key not in known]:
            raise DocumentsError(
                f"{name}: there is no score of candidate {lost[0][1]!r} of group {lost[0][0]!r} of {gold.name}. Is it "
                "the ranking of these groups?"
            )
        found.append([known[key] for key in keys])
    return found
