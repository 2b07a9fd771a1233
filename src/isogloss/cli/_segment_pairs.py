"""Segmenters that learn from a translation, on the command line: reading it, training, cutting in its light."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import progress_for
from isogloss.errors import UsageError

if TYPE_CHECKING:
    from isogloss.cli._training import Training
    from isogloss.data import Bitext, Segmentation, Text
    from isogloss.tasks.segment import BilingualSegmenter, Segmenter

__all__ = ["BITEXT", "BitextOption", "learnt_from_pairs", "pairs_of", "told_of", "train_pairs", "words_alone"]

BITEXT = (
    "The same text in another language: line k is the translation of line k. Where its lines have a tab, they are "
    "words or sentences with their morphemes, as `isogloss segment apply` writes them"
)
BitextOption = Annotated[
    str | None, typer.Option("--bitext", metavar="SRC", show_default=False, help=f"{BITEXT}.")
]  # fmt: skip


def read_source(path: str, encoding: str, errors: str) -> tuple[Text, Segmentation | None]:
    """The words of a translation, and their morphemes if the file has them."""
    from isogloss.data.formats.files import name_of, read_bytes
    from isogloss.data.formats.segmentations import parse_segmentation, parse_words

    data = read_bytes(path, encoding=encoding, errors=errors)
    if b"\t" not in data:
        return parse_words(data, name_of(path)), None
    cut = parse_segmentation(data, name_of(path))
    return cut.text, cut


def pairs_of(path: str, text: Text, encoding: str, errors: str) -> tuple[Bitext, Segmentation | None]:
    """A text beside its translation."""
    from isogloss.data import Bitext

    source, morphemes = read_source(path, encoding, errors)
    return Bitext(source, text), morphemes


def train_pairs(
    training: Training, text: Text, bitext: str, few: Segmentation | None, options: dict[str, Any],
    threads: int | None, encoding: str, errors: str, *, quiet: bool, resume: bool,
) -> tuple[BilingualSegmenter, Bitext]:  # fmt: skip
    """Learn from a text and its translation."""
    from isogloss.tasks.segment import BilingualSegmenter

    pairs, morphemes = pairs_of(bitext, text, encoding, errors)
    segmenter = BilingualSegmenter(**options, threads=threads)
    segmenter.fit(
        pairs, few, progress_for(quiet), source_morphemes=morphemes, checkpoint=training.checkpoint, resume=resume
    )
    return segmenter, pairs


def told_of(segmenter: BilingualSegmenter, pairs: Bitext) -> dict[str, Any]:
    """A summary for machines."""
    return {
        "pairs": len(pairs), "words": pairs.target.n_words, "source_words": pairs.source.n_words,
        "types": len(set(pairs.target.vocabulary)), "translations": segmenter.n_translations_,
        "length_penalty": segmenter.length_penalty_, "trace": segmenter.trace_,
    }  # fmt: skip


def learnt_from_pairs(segmenter: Segmenter | BilingualSegmenter, path: str) -> BilingualSegmenter:
    """The segmenter itself, if it has learnt from a translation."""
    from isogloss.tasks.segment import BilingualSegmenter

    if not isinstance(segmenter, BilingualSegmenter):
        raise UsageError(
            f"{path}: this segmenter has learnt without a translation, and cannot look at one. Train it with --bitext"
        )
    return segmenter


def words_alone(segmenter: Segmenter | BilingualSegmenter) -> Segmenter:
    """What cuts words without looking at a translation."""
    from isogloss.tasks.segment import BilingualSegmenter

    return segmenter.segmenter_ if isinstance(segmenter, BilingualSegmenter) else segmenter
