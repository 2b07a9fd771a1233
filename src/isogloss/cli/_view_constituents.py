"""`isogloss view` of trees of constituents: one file, or two with what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from isogloss.cli._constituents import read_trees, read_two
from isogloss.cli._drawing import Drawing, Painters, SideBySide, short_names
from isogloss.errors import TreebankError

if TYPE_CHECKING:
    from isogloss.data.constituents import Constituents

__all__ = ["view_constituents"]


def view_constituents(files: Sequence[str], drawing: Drawing) -> None:
    """Draw trees of one file, or of two over the same words, in the terminal, on a page, or a single one as SVG."""
    how = (drawing.format, drawing.encoding, drawing.errors)
    drawing.draw(files, lambda: _Shown.of(files, *how), ("constituency-score", "10 s"))


@dataclass(frozen=True)
class _Shown(SideBySide):
    """Trees of one file, or of two, without traces where there are two."""

    noun: ClassVar[str] = "tree"
    many: ClassVar[str] = "trees"

    first: Constituents
    second: Constituents | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, files: Sequence[str], format: str, encoding: str, errors: str) -> _Shown:
        names = short_names(files)
        if len(files) == 1:
            return cls(read_trees(files[0], format, encoding, errors), None, names)
        import numpy as np

        from isogloss.data.constituent_forms import without_root
        from isogloss.data.formats.brackets import check_same_words

        first, second = (
            without_root(trees.stripped()) for trees in read_two(files[0], files[1], format, encoding, errors)
        )
        if len(first) != len(second):
            raise TreebankError(f"{files[0]} has {len(first):,} trees, but {files[1]} has {len(second):,}")
        for sentence in np.flatnonzero((first.lengths > 0) & (second.lengths > 0)).tolist():  # some may have no tree
            check_same_words(first, second, sentence)
        return cls(first, second, names)

    def differences(self) -> list[int]:
        """Brackets of each tree that only one of both has, and words with another tag."""
        assert self.second is not None
        apart = []
        for one, other in zip(self.first, self.second, strict=True):
            ours, theirs = Counter(one.brackets()), Counter(other.brackets())
            tags = sum(a != b for a, b in zip(one.tags, other.tags, strict=False))
            apart.append((ours - theirs).total() + (theirs - ours).total() + tags)
        return apart

    def as_dict(self, sentence: int) -> dict[str, Any]:
        """One tree as `isogloss.show.constituents` takes it; beside a sentence without words, the other alone."""
        first, second = self.first, self.second
        if second is not None and not first.lengths[sentence]:
            first, second = second, None
        elif second is not None and not second.lengths[sentence]:
            second = None
        drawn = first.as_dict(sentence, second, self.names if second is not None else ())
        return drawn | {"number": sentence + 1}

    def painters(self) -> Painters:
        from isogloss.show import constituents_svg, constituents_terminal, tree_page

        return Painters(tree_page, constituents_svg, constituents_terminal)

    def summary(self) -> dict[str, Any]:
        """What stands at the top of the page."""
        facts: dict[str, Any] = {"trees": len(self.first), "words": self.first.n_words}
        if self.second is not None:
            from isogloss.metrics.brackets import score_brackets

            score = score_brackets(self.first, self.second, bootstrap=0)
            facts["trees that differ"] = sum(1 for count in self.differences() if count)
            facts |= {f"F1 against {self.names[1]}": score.f1, "signature": score.signature}
        return facts
