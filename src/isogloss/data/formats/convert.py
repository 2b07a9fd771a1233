"""The border: whatever people hold, made into what tasks take, or refused with what to give instead."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias

from isogloss.data.bitext import Bitext, Text
from isogloss.data.documents import Documents
from isogloss.data.formats.bitexts import read_bitext
from isogloss.data.links import Links
from isogloss.data.mentions import Mentions
from isogloss.data.rows import Shown
from isogloss.data.segmentation import Segmentation
from isogloss.data.treebank import Treebank
from isogloss.errors import BitextError, ParameterError, UsageError

__all__ = [
    "BitextLike",
    "DocumentsLike",
    "TextLike",
    "as_bitext",
    "as_documents",
    "as_gold",
    "as_links",
    "as_mentions",
    "as_segmentation",
    "as_text",
    "as_treebank",
    "is_files",
]  # fmt: skip


class Frame(Protocol):
    """A table with named columns, as pandas and polars have."""

    @property
    def columns(self) -> Any: ...

    @property
    def shape(self) -> tuple[int, int]: ...

    def __getitem__(self, name: Any, /) -> Any: ...


File: TypeAlias = str | os.PathLike[str]
BitextLike: TypeAlias = (
    Bitext | File | tuple[File, File] | Iterable[tuple[Any, Any] | list[Any] | Mapping[str, Any]] | Frame
)
"""What can be made into sentence pairs; `as_bitext` says what each stands for."""

DocumentsLike: TypeAlias = Documents | Text | Sequence[Mapping[str, Sequence[str] | str] | Sequence[str] | str]
"""What can be made into documents."""

TextLike: TypeAlias = Text | Sequence[Sequence[str] | str]
"""What can be made into sentences of one language."""

_TEXT = "a Text, as Text.of(['she sleeps']), or a list of sentences, as ['she sleeps'] or [['she', 'sleeps']]"
_PAIRS = "a Bitext, the path of a file, two paths, or a list of pairs, as [('das Haus', 'the house')]"
_SENTENCES = "a Treebank, as Treebank.read('text.conllu'), or a Text, as Text.of(['she sleeps'])"
_GOLD = "a Treebank with tags or trees, as Treebank.read('gold.conllu')"
_NAMES = "Mentions, as Mentions.read('names.conll'), or a Text, as Text.of(['Ada lives in London'])"
_DOCUMENTS = "Documents, as Documents.read('en.txt', 'fr.txt'), or a list, as [{'en': 'the house', 'fr': 'la maison'}]"
_MORPHEMES = "a Segmentation, as Segmentation.read('words.tsv') or Segmentation.of([('cats', ['cat', 's'])])"
_LINKS = "Links, as read_links('gold.txt') or Links.of([{(0, 0), (1, 1)}])"


def as_treebank(obj: Treebank | Text) -> Treebank:
    """The sentences that a tagger or a parser is given: a treebank as it is, a text as one without tags."""
    if isinstance(obj, Text):
        return Treebank.from_text(obj)
    return obj if isinstance(obj, Treebank) else _refuse(obj, "sentences", _SENTENCES)


def as_text(obj: TextLike) -> Text:
    """Sentences of one language: a text as it is; a list of strings, split at white space, or of token lists."""
    if isinstance(obj, Text):
        return obj
    rows = isinstance(obj, list | tuple) and all(
        isinstance(row, str) or (isinstance(row, list | tuple) and all(isinstance(word, str) for word in row))
        for row in obj
    )
    return Text.of(obj) if rows else _refuse(obj, "sentences", _TEXT)


def as_mentions(obj: Mentions | Text) -> Mentions:
    """The sentences that names are looked for in, learnt from or scored against: a text has none yet."""
    if isinstance(obj, Text):
        return Mentions.from_text(obj)
    return obj if isinstance(obj, Mentions) else _refuse(obj, "sentences with names", _NAMES)


def as_documents(obj: DocumentsLike) -> Documents:
    """Documents as they are; a text, or a list of strings, of token lists or of mappings by language, as documents."""
    if isinstance(obj, Documents):
        return obj
    if isinstance(obj, Text):
        return Documents((obj,), ("",), name=obj.name)
    words = isinstance(obj, list | tuple) and all(isinstance(row, str | list | tuple | Mapping) for row in obj)
    return Documents.of(obj) if words else _refuse(obj, "documents", _DOCUMENTS)


def as_gold(obj: Treebank) -> Treebank:
    """The treebank that a tagger or a parser learns from, or is scored against."""
    return obj if isinstance(obj, Treebank) else _refuse(obj, "a treebank", _GOLD)


def as_segmentation(obj: Segmentation) -> Segmentation:
    """Words with their morphemes, that a segmenter learns from or is scored against."""
    return obj if isinstance(obj, Segmentation) else _refuse(obj, "words with their morphemes", _MORPHEMES)


def as_links(obj: Links) -> Links:
    """The links that an aligner learns from, or is scored against."""
    return obj if isinstance(obj, Links) else _refuse(obj, "links", _LINKS)


def _refuse(obj: Any, wanted: str, remedy: str) -> NoReturn:
    """Say what was given and what should be."""
    raise ParameterError(f"{_told(obj)} cannot be taken for {wanted}. Give {remedy}")


def _told(obj: Any) -> str:
    """What was given, in a few words.

    Examples
    --------
    >>> _told(None), _told("Haus"), _told(["das", "Haus"]), _told(Text.of(["das Haus"]))
    ('None', "'Haus'", 'a list of str', 'a Text')
    """
    if obj is None or isinstance(obj, str | int | float):
        return f"{obj!r:.60}"
    inner = f" of {type(obj[0]).__name__}" if isinstance(obj, list | tuple) and obj else ""
    name = type(obj).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}{inner}"


def as_bitext(obj: BitextLike, **options: Any) -> Bitext:
    """Make a `Bitext` of what a user has.

    Parameters
    ----------
    obj
        One of: a `Bitext`; a path, or a tuple of two paths; an iterable of pairs, each side a string, a sequence of
        tokens or a spaCy document; an iterable of mappings with "source" and "target", or with a "translation" that
        holds a text for each language (as rows of a dataset do); a pandas or polars frame, of which columns "source"
        and "target" are taken, or both if there are two.
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
        return _read(*obj if isinstance(obj, tuple) else (obj,), options=options)
    if options:
        raise ParameterError(f"as_bitext: {', '.join(options)} can be given with paths only")
    if hasattr(obj, "columns") and not isinstance(obj, Shown):  # a treebank is no frame
        return _from_frame(obj)
    if isinstance(obj, Shown | Mapping) or not isinstance(obj, Iterable):
        _refuse(obj, "a bitext", _PAIRS)
    rows: list[Any] = list(obj)
    if rows and isinstance(rows[0], Mapping):
        rows = _from_mappings(rows)
    for number, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 2:
            raise ParameterError(
                f"as_bitext: item {number} should be a pair (source, target), not {row!r:.60}. Give {_PAIRS}"
            )
    return Bitext(_text([row[0] for row in rows], "source"), _text([row[1] for row in rows], "target"))


def is_files(obj: object) -> bool:
    """Whether `as_bitext` takes it for the name of a file, or for two."""
    files = obj if isinstance(obj, tuple) and len(obj) == 2 else (obj,)
    return all(isinstance(file, str | os.PathLike) for file in files)


def _read(*paths: Any, options: Mapping[str, Any]) -> Bitext:
    """Read files; a string that is none may have been meant as text."""
    for path in paths:
        if os.fspath(path) != "-" and not os.path.exists(path):
            raise UsageError(f"{os.fspath(path)!r:.60}: no such file. Give {_PAIRS}")
    return read_bitext(*paths, **options)


def _from_frame(frame: Any) -> Bitext:
    names = list(frame.columns)
    if len(names) < 2:
        raise ParameterError(f"as_bitext: a frame needs two columns, source and target, but this one has {names}")
    chosen = ["source", "target"] if {"source", "target"} <= set(names) else names
    if len(chosen) > 2:
        raise ParameterError(
            f"as_bitext: a frame of {len(names)} columns, {names!r:.200}, does not say which two are the text. Give "
            "those two, source first, as in frame[['de', 'en']], or name them 'source' and 'target'"
        )
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


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value


def _tokens(sentence: Any, number: int, side: str) -> list[str]:
    if isinstance(sentence, str):
        return [word.decode("utf-8", "surrogatepass") for word in sentence.encode("utf-8", "surrogatepass").split()]
    if sentence is None or type(sentence).__name__ == "NAType" or _is_nan(sentence):  # missing in a frame
        return []
    if not isinstance(sentence, Iterable):
        raise ParameterError(f"as_bitext: {side} {number} should be a string or tokens, not {sentence!r:.60}")
    tokens: list[Any] = [token if isinstance(token, str) else getattr(token, "text", None) for token in sentence]
    if not all(isinstance(token, str) for token in tokens):
        raise ParameterError(f"as_bitext: {side} {number} should hold strings, not {sentence!r:.60}")
    return tokens
