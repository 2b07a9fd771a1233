"""`isogloss view` of names: one file, or two with what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from isogloss.cli._drawing import Drawing, Painters, SideBySide, first_lines, short_names
from isogloss.cli._extract import KINDS, read_marked

if TYPE_CHECKING:
    from isogloss.data.mentions import Mentions

__all__ = ["is_names", "view_names"]


def is_names(path: str, format: str) -> bool:
    """Whether a file has names marked in it: the format says so, or its first lines."""
    if format != "auto":
        return format in KINDS
    from isogloss.data.formats.mentions import format_of

    return format_of(first_lines(path)) is not None


def view_names(files: Sequence[str], drawing: Drawing) -> None:
    """Draw the names of one file, or of two over the same words, in the terminal, on a page, or as SVG."""
    drawing.draw(files, lambda: _Shown.of(files, drawing), ("extract-score", "10 s"))


@dataclass(frozen=True)
class _Shown(SideBySide):
    """Names of one file, or of two."""

    noun: ClassVar[str] = "sentence"

    first: Mentions
    second: Mentions | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, files: Sequence[str], drawing: Drawing) -> _Shown:
        kind = None if drawing.format == "auto" else drawing.format
        first, *rest = (read_marked(path, kind, drawing.encoding, drawing.errors) for path in files)
        if rest:
            from isogloss.metrics.names import check_same_sentences

            check_same_sentences(first, rest[0])
        return cls(first, rest[0] if rest else None, short_names(files))

    def differences(self) -> list[int]:
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
            facts["sentences that differ"] = sum(1 for count in self.differences() if count)
            facts |= {f"F1 against {self.names[1]}": score.f1, "signature": score.signature}
        return facts
