"""Tasks of `isogloss multiview`: what loads their models and reads their texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from isogloss.cli._extract import read_input, read_marked
from isogloss.cli._memory import as_remembered, say_if_strange
from isogloss.cli._models import header_of, load_dependency_parser, load_extractor, load_tagger
from isogloss.cli._treebanks import read_either, read_treebank
from isogloss.errors import BitextError, UsageError

if TYPE_CHECKING:
    from isogloss.data.sentence_pairs import SentencePairs

__all__ = ["KINDS", "Reading", "load_model", "read_annotated", "read_pairs"]


class Reading(NamedTuple):
    """How two texts are read."""

    task: str
    tokenise: str | None
    encoding: str
    errors: str


class Kind(NamedTuple):
    """What a task needs of the command line."""

    family: str
    """The first part of the kinds of its models; see `isogloss.cli._models.USES`."""
    load: Callable[[str, int | None], Any]
    command: str
    """What trains its models."""


def _load_names(path: str, threads: int | None) -> Any:
    kind = header_of(path, "extract")["kind"]
    if kind != "extract.entities":
        raise UsageError(
            f"{path}: this finds something else than names ({kind}). Give a model by `isogloss extract train`"
        )
    return load_extractor(path, threads)


KINDS = {
    "entities": Kind("extract", _load_names, "isogloss extract train"),
    "tag": Kind("tag", load_tagger, "isogloss tag train"),
    "parse": Kind("parse", load_dependency_parser, "isogloss parse train"),
}


def load_model(task: str, path: str, threads: int | None) -> Any:
    """A saved model of a task; one of another is refused with the command that it is for."""
    return KINDS[task].load(path, threads)


def read_annotated(task: str, path: str, encoding: str, errors: str) -> Any:
    """Sentences with names, tags or trees, to learn from."""
    if task == "entities":
        return read_marked(path, None, encoding, errors)
    return read_treebank(path, encoding, errors)


def read_pairs(files: tuple[str, str], models: tuple[Any, Any], places: tuple[str, str], how: Reading) -> SentencePairs:
    """Two texts, each as its model reads text if there is one; what is not plain text says itself what a word is."""
    from isogloss.data.bitext import Text
    from isogloss.data.sentence_pairs import SentencePairs
    from isogloss.data.treebank import Treebank

    sides: list[Any] = []
    form: dict[str, Any] = {}
    for path, model, place in zip(files, models, places, strict=True):
        if model is not None:
            form = as_remembered({"tokenise": how.tokenise, "normalise": None}, model.reading_, place)
        side = _read(path, form, how)
        if how.tokenise is not None and not isinstance(side, Text):
            raise UsageError(f"--tokenise is for plain text, and {path} says itself what a word is. Leave it out")
        shown = side.text() if how.task == "entities" and not isinstance(side, Text) else side
        if model is not None:
            say_if_strange(model.reading_, shown)
        sides.append(side)
    pairs = SentencePairs(*sides)
    if how.task == "entities":
        return pairs
    empty = np.flatnonzero((pairs.lengths[0] == 0) | (pairs.lengths[1] == 0))
    if len(empty):
        raise BitextError(
            f"line {int(empty[0]) + 1} of {files[0]} or {files[1]} is empty, which has no place in CoNLL-U"
            f" (one of {len(empty)}). Leave these pairs out, as `isogloss filter` does"
        )
    source, target = (side if isinstance(side, Treebank) else Treebank.from_text(side) for side in sides)
    return SentencePairs(source, target)


def _read(path: str, form: dict[str, Any], how: Reading) -> Any:
    if how.task != "entities":
        return read_either(path, "auto", how.encoding, how.errors, **form)
    from dataclasses import replace

    from isogloss.data.reading import TextForm
    from isogloss.data.tokenise import tokenise_bytes

    def as_text(data: bytes, name: str) -> Any:
        made = tokenise_bytes(data, form["tokenise"], form["normalise"], name=name)
        return replace(made, form=TextForm(form["tokenise"], form["normalise"]))

    return read_input(path, "auto", how.encoding, how.errors, as_text)
