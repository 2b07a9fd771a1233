"""Files of summaries and of judged sentences: a JSON object a line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.summaries import Judged, Summaries, Summary
from isogloss.errors import DocumentsError

__all__ = ["read_judged", "read_summaries"]

_SUMMARY = {"document", "system", "summary", "reference", "references", "human", "extract"}
_JUDGED = {"document", "sentences", "utilities", "subsumed"}


def read_summaries(path: PathOrName, *, encoding: str = "utf-8", errors: str = "strict") -> Summaries:
    """Read summaries, a JSON object a line.

    `document` and `system` name them. `summary` is the text, a sentence a line of it where sentences matter;
    `reference` is the summary of a person, `references` a list of several; `human` what people think of it, a number;
    `extract` the numbers of the sentences that it took of the document, from 0 on.
    """
    made = []
    for row, place in _objects(path, _SUMMARY, ("document", "system"), encoding, errors):
        if "reference" in row and "references" in row:
            raise DocumentsError(f"{place}: a reference and references; give one of them")
        references = row.get("references", [row["reference"]] if "reference" in row else [])
        if not isinstance(references, list):
            raise DocumentsError(f"{place}: 'references' should be a list of texts, not {references!r}")
        made.append(
            Summary(
                _text(row["document"], "document", place),
                _text(row["system"], "system", place),
                _text(row.get("summary", ""), "summary", place),
                tuple(_text(each, "reference", place) for each in references),
                _number(row["human"], "human", place) if "human" in row else math.nan,
                _numbers(row["extract"], place) if "extract" in row else None,
            )
        )
    return Summaries(tuple(made), name_of(path))


def read_judged(path: PathOrName, *, encoding: str = "utf-8", errors: str = "strict") -> dict[str, Judged]:
    """Read documents whose sentences judges have weighed, by their names; a JSON object a line.

    `sentences` is a list of texts, `utilities` an object with a list of numbers for each judge, as many as sentences,
    0 or more; `subsumed` a list of pairs of sentences, from 0 on: all that the first says, the second says as well.
    """
    made: dict[str, Judged] = {}
    for row, place in _objects(path, _JUDGED, ("document", "sentences"), encoding, errors):
        name, sentences = _text(row["document"], "document", place), row["sentences"]
        if name in made:
            raise DocumentsError(f"{place}: the document {name!r} is there twice")
        if not isinstance(sentences, list):
            raise DocumentsError(f"{place}: 'sentences' should be a list of texts, not {sentences!r}")
        utilities = row.get("utilities", {})
        if not isinstance(utilities, dict):
            raise DocumentsError(f"{place}: 'utilities' should be an object with a list for each judge")
        weighed = {judge: _utilities(values, judge, len(sentences), place) for judge, values in utilities.items()}
        pairs = row.get("subsumed", [])
        if not isinstance(pairs, list):
            raise DocumentsError(f"{place}: 'subsumed' should be a list of pairs of sentences, not {pairs!r}")
        subsumed = [_numbers(pair, place) for pair in pairs]
        if not all(len(pair) == 2 and max(pair) < len(sentences) for pair in subsumed):
            raise DocumentsError(f"{place}: 'subsumed' should have pairs of sentences from 0 to {len(sentences) - 1}")
        texts = tuple(_text(each, "sentence", place) for each in sentences)
        made[name] = Judged(name, texts, weighed, tuple((pair[0], pair[1]) for pair in subsumed))
    return made


def _objects(
    path: PathOrName, known: set[str], wanted: tuple[str, ...], encoding: str, errors: str
) -> Iterator[tuple[dict[str, Any], str]]:
    lines = read_bytes(path, encoding=encoding, errors=errors).decode().split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name_of(path)}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise DocumentsError(f"{place}: no JSON object: {problem}") from None
        if not isinstance(row, dict) or (lost := [name for name in wanted if name not in row]):
            missing = "" if not isinstance(row, dict) else f": {lost[0]!r} is missing"
            raise DocumentsError(f"{place}: an object with {' and '.join(map(repr, wanted))} is wanted{missing}")
        if unknown := sorted(set(row) - known):
            raise DocumentsError(f"{place}: {unknown[0]!r} is not known; there are {', '.join(sorted(known))}")
        yield row, place


def _text(value: Any, name: str, place: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise DocumentsError(f"{place}: {name!r} should be text, not {value!r}")
    return value


def _number(value: Any, name: str, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1e30:
        raise DocumentsError(f"{place}: {name!r} should be a number, not {value!r}")
    return float(value)


def _numbers(value: Any, place: str) -> tuple[int, ...]:
    plain = isinstance(value, list) and all(isinstance(x, int) and not isinstance(x, bool) and x >= 0 for x in value)
    if not plain:
        raise DocumentsError(f"{place}: numbers of sentences from 0 on are wanted, not {value!r}")
    return tuple(value)


def _utilities(value: Any, judge: str, many: int, place: str) -> Any:
    if not isinstance(value, list) or len(value) != many:
        raise DocumentsError(f"{place}: judge {judge!r} should have {many} utilities, one for each sentence")
    made = np.array([_number(each, f"utility of {judge}", place) for each in value], np.float64)
    if (made < 0).any():
        raise DocumentsError(f"{place}: judge {judge!r} has a utility below 0")
    return made
