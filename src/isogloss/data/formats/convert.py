"""One function at the border: whatever people hold in memory, made into a `Bitext`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isogloss.data.bitext import Bitext, Text
from isogloss.data.formats.bitexts import read_bitext
from isogloss.errors import BitextError, ParameterError

__all__ = ["as_bitext", "is_files"]


def as_bitext(obj: Any, **options: Any) -> Bitext:
    """Make a `Bitext` of what a user has.

    Parameters
    ----------
    obj
        One of: a `Bitext`; a path, or a tuple of two paths; an iterable of pairs, each side a string, a sequence of
        tokens or a spaCy document; an iterable of mappings with "source" and "target", or with a "translation" that
        holds a text for each language (as rows of a dataset do); a pandas or polars frame, of which columns "source"
        and "target" are taken, else the first two.
    **options
        For paths only: what `read_bitext` takes.

    Examples
    --------
    >>> as_bitext([("das Haus", ["the", "house"])])[0]
    (('das', 'Haus'), ('the', 'house'))
    >>> as_bitext([{"translation": {"de": "ein Haus", "en": "a house"}}])[0]
    (('ein', 'Haus'), ('a', 'house'))
    """
    if isinstance(obj, Bitext):
        return obj
    if is_files(obj):
        return read_bitext(*obj if isinstance(obj, tuple) else (obj,), **options)
    if options:
        raise ParameterError(f"as_bitext: {', '.join(options)} can be given with paths only")
    if hasattr(obj, "columns"):
        return _from_frame(obj)
    if isinstance(obj, Mapping) or not isinstance(obj, Iterable):
        raise ParameterError(f"as_bitext: cannot make a bitext of {type(obj).__name__}. Give paths or a list of pairs")
    rows = list(obj)
    if rows and isinstance(rows[0], Mapping):
        rows = _from_mappings(rows)
    for number, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 2:
            raise ParameterError(f"as_bitext: item {number} should be a pair (source, target), not {row!r:.60}")
    return Bitext(_text([row[0] for row in rows], "source"), _text([row[1] for row in rows], "target"))


def is_files(obj: object) -> bool:
    """Whether `as_bitext` takes it for the name of a file, or for two."""
    files = obj if isinstance(obj, tuple) and len(obj) == 2 else (obj,)
    return all(isinstance(file, str | os.PathLike) for file in files)


def _from_frame(frame: Any) -> Bitext:
    names = list(frame.columns)
    if len(names) < 2:
        raise ParameterError(f"as_bitext: a frame needs two columns, source and target, but this one has {names}")
    chosen = ("source", "target") if {"source", "target"} <= set(names) else names[:2]
    source, target = (_text(frame[name].to_list(), str(name)) for name in chosen)
    return Bitext(source, target)


def _from_mappings(rows: list[Any]) -> list[tuple[Any, Any]]:
    rows = [row.get("translation", row) if isinstance(row, Mapping) else row for row in rows]
    first = rows[0]
    if isinstance(first, Mapping) and {"source", "target"} <= set(first):
        keys = ["source", "target"]
    elif isinstance(first, Mapping) and len(first) == 2:
        keys = list(first)
    else:
        raise ParameterError(
            "as_bitext: item 0 should have 'source' and 'target', or a 'translation' of two languages, "
            f"not {first!r:.60}"
        )
    pairs = []
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping) or any(key not in row for key in keys):
            raise ParameterError(f"as_bitext: item {number} should have {keys[0]!r} and {keys[1]!r}, as the first has")
        pairs.append((row[keys[0]], row[keys[1]]))
    return pairs


def _text(sentences: list[Any], side: str) -> Text:
    """One side; strings are split at ASCII white space, as lines of files are."""
    if all(isinstance(sentence, str) for sentence in sentences):
        try:
            data = "\n".join([*(sentence.replace("\n", " ") for sentence in sentences), ""]).encode()
        except UnicodeEncodeError as problem:
            raise BitextError(f"the {side} holds half a character ({problem.object[problem.start]!r})") from None
        return Text.from_bytes(data)
    return Text.of([_tokens(sentence, number, side) for number, sentence in enumerate(sentences)])


def _tokens(sentence: Any, number: int, side: str) -> list[str]:
    if isinstance(sentence, str):
        return [word.decode("utf-8", "surrogatepass") for word in sentence.encode("utf-8", "surrogatepass").split()]
    if sentence is None or isinstance(sentence, float) or type(sentence).__name__ == "NAType":  # missing in a frame
        return []
    if not isinstance(sentence, Iterable):
        raise ParameterError(f"as_bitext: {side} {number} should be a string or tokens, not {sentence!r:.60}")
    tokens: list[Any] = [token if isinstance(token, str) else getattr(token, "text", None) for token in sentence]
    if not all(isinstance(token, str) for token in tokens):
        raise ParameterError(f"as_bitext: {side} {number} should hold strings, not {sentence!r:.60}")
    return tokens
