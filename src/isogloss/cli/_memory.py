"""What a model remembers of its text: how new text is to be read on the command line, and whether it looks alike."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from isogloss.cli._frame import warn
from isogloss.cli._models import header_of
from isogloss.errors import BitextError, UsageError

if TYPE_CHECKING:
    from isogloss.data import Bitext, Text, Treebank
    from isogloss.data.reading import Reading
    from isogloss.tasks.align.languages import Homes

__all__ = ["Look", "as_remembered", "reading_of", "say_if_strange"]

USUAL = {"tokenise": "space", "normalise": None, "languages": None}


def reading_of(model: str | None) -> Reading | None:
    """What a saved aligner remembers of its text; nothing without a model."""
    if model is None:
        return None
    from isogloss.data.reading import Reading

    return Reading.from_meta(header_of(model, "align")["meta"])


def as_remembered(
    asked: dict[str, Any], remembered: Reading | None, model: str | None, source: str | None = None
) -> dict[str, Any]:
    """Options of reading as they were asked for, else as the model remembers them, else the usual ones.

    `asked` has None where nothing was said; what contradicts the model is refused. Languages are for a TMX file alone.
    """
    known = {} if remembered is None else dict(remembered.options)
    if remembered is not None and remembered.languages is not None and ".tmx" in os.path.basename(source or "").lower():
        known["languages"] = remembered.languages
    for name, value in asked.items():
        if value is not None and known.get(name, value) != value:
            own = f"with --{name} {_said(known[name])}" if known[name] else f"without --{name}"
            raise UsageError(
                f"--{name} {_said(value)}: {model} learnt from text that was read {own}. Leave --{name} out, which "
                f"reads this text likewise, or train a model with --{name} {_said(value)}"
            )
    return {name: known.get(name, USUAL[name]) if value is None else value for name, value in asked.items()}


def _said(value: str | tuple[str, str]) -> str:
    return value if isinstance(value, str) else ",".join(value)


class Look:
    """The first look at a text that a saved aligner is applied to; parts of it are handed in until they are enough."""

    def __init__(self, aligner: Any, model: str) -> None:
        self.aligner, self.model, self.done = aligner, model, False
        self._met: list[Counter[str]] = [Counter(), Counter()]

    def at(self, bitext: Bitext) -> None:
        """Refuse a text whose sides look swapped; say that the words of another are hardly those of the model."""
        if self.done:
            return
        from isogloss.data.reading import ENOUGH, FrequentWords, lettered
        from isogloss.tasks.align.languages import homes_of, words_of

        for met, counts in zip(self._met, words_of(self.aligner, bitext), strict=True):
            met.update(counts)
        self._refuse_swapped(homes_of(self.aligner, *self._met), f"{bitext.source.name}, {bitext.target.name}")
        self.done = min(met.total() for met in self._met) >= ENOUGH
        if not self.done:
            return
        for text, met, known in zip((bitext.source, bitext.target), self._met, self.aligner.known_words_, strict=True):
            own = zip(known.words, known.counts.tolist(), strict=True)
            if finding := FrequentWords.of(lettered(own)).finding(lettered(met.items())):
                warn(f"{text.name}: {finding}")

    def _refuse_swapped(self, found: Homes, names: str) -> None:
        if found.swapped is None:
            return
        remembered = () if self.aligner.reading_ is None else self.aligner.reading_.names
        learnt = f" ({self.model} learnt from {' and '.join(remembered)})" if any(remembered) else ""
        raise BitextError(
            f"{names}: {found.swapped}{learnt}. Give them in the other order (with --columns or --languages, where one "
            "file has both), or train a model of this direction"
        )


def say_if_strange(remembered: Reading | None, text: Text | Treebank) -> None:
    """Say that a text hardly has the frequent words of the text that a tagger or parser learnt from."""
    from isogloss.data.reading import word_counts

    if remembered is None or remembered.frequent is None:
        return
    if finding := remembered.frequent.finding(word_counts(text)):
        warn(f"{text.name}: {finding}")
