"""`isogloss view` of names: one file, or two with what differs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from isogloss.cli._common import say
from isogloss.cli._drawing import Drawable, Drawing, Painters
from isogloss.cli._extract import KINDS, read_marked
from isogloss.errors import MentionsError, UsageError

if TYPE_CHECKING:
    from isogloss.data.mentions import Mentions

__all__ = ["is_names", "view_names"]

_SNIFFED = 1 << 16


def is_names(path: str, format: str) -> bool:
    """Whether a file has names marked in it: the format says so, or its first lines."""
    if format != "auto":
        return format in KINDS
    if not os.path.isfile(path):  # what a pipe begins with could not be read again
        return False
    from isogloss.data.formats.files import pieces
    from isogloss.data.formats.mentions import format_of

    data = b""
    for piece in pieces(path, _SNIFFED):
        data += piece
        if len(data) >= _SNIFFED:
            data = data[: data.rfind(b"\n", 0, _SNIFFED) + 1]
            break
    return format_of(data) is not None


def view_names(files: Sequence[str], drawing: Drawing) -> None:
    """Draw the names of one file, or of two over the same words, in the terminal, on a page, or as SVG."""
    drawing.draw(files, lambda: _Shown.of(files, drawing), ("extract-score", "10 s"))


@dataclass(frozen=True)
class _Shown(Drawable):
    """Names of one file, or of two."""

    noun: ClassVar[str] = "sentence"
    most: ClassVar[tuple[int, int]] = (500, 10)

    first: Mentions
    second: Mentions | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, files: Sequence[str], drawing: Drawing) -> _Shown:
        kind = None if drawing.format == "auto" else drawing.format
        names = tuple(os.path.basename(path) for path in files)
        names = tuple(files) if len(set(names)) < len(names) else names
        first, *rest = (read_marked(path, kind, drawing.encoding, drawing.errors) for path in files)
        if rest:
            from isogloss.metrics.names import check_same_sentences

            check_same_sentences(first, rest[0])
        return cls(first, rest[0] if rest else None, names)

    def choose(self, sentences: Sequence[int] | None, limit: int, quiet: bool) -> list[int]:
        """The sentences to show, counted from 0; of two files those that differ, the most different first."""
        n = len(self.first)
        for number in sentences or ():
            if number > n:
                raise UsageError(f"--line {number}: {self.first.name} has {n:,} sentences. Give a number from 1 to {n}")
        if sentences:
            return [number - 1 for number in sentences]
        if n == 0:
            raise MentionsError(
                f"{self.first.name}: has no sentences, so there is nothing to draw. Is it the right file?"
            )
        if self.second is None:
            if n > limit:
                say(f"the first {limit:,} of {n:,} sentences are shown; --limit and --line choose others", quiet)
            return list(range(min(limit, n)))
        counts = self._differences()
        order = sorted((k for k in range(n) if counts[k]), key=lambda k: -counts[k])
        say(f"{len(order):,} of {n:,} sentences differ; --line chooses others", quiet)
        return order[:limit]

    def _differences(self) -> list[int]:
        """Names of each sentence that only one of both files has."""
        assert self.second is not None
        pairs = zip(self.first, self.second, strict=True)
        return [len(set(one.entities) ^ set(other.entities)) for one, other in pairs]

    def as_dict(self, sentence: int) -> dict[str, Any]:
        """One sentence as `isogloss.show.names` takes it."""
        drawn = self.first[sentence].as_dict() | {"number": sentence + 1}
        if self.second is not None:
            drawn |= {"other": self.second[sentence].as_dict(), "names": list(self.names)}
        return drawn

    @property
    def title(self) -> str:
        return " – ".join(self.names)

    def painters(self) -> Painters:
        from isogloss.show import names_page, names_svg, names_terminal

        return Painters(names_page, names_svg, names_terminal)

    def summary(self) -> dict[str, Any]:
        """What stands at the top of the page."""
        facts: dict[str, Any] = {
            "sentences": len(self.first), "words": self.first.n_words, "names": self.first.n_entities,
        }  # fmt: skip
        if self.second is not None:
            from isogloss.metrics.names import score_entities

            score = score_entities(self.first, self.second, bootstrap=0)
            facts["sentences that differ"] = sum(1 for count in self._differences() if count)
            facts |= {f"F1 against {self.names[1]}": score.f1, "signature": score.signature}
        return facts
