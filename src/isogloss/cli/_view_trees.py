"""`isogloss view` of treebanks: one, or two with what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from isogloss.cli._drawing import Drawing, Painters, SideBySide, first_lines, short_names
from isogloss.errors import TreebankError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isogloss.data.treebank import Column, Treebank

__all__ = ["FORMATS", "is_treebank", "view_trees"]

FORMATS = ("conllu", "conllx", "conll2009")


def is_treebank(path: str, format: str) -> bool:
    """Whether a file is to be drawn as trees: by `--format`, by its name, or by the first word in it."""
    if format != "auto":
        return format in FORMATS
    from isogloss.data.formats.conllu import layout_of_name

    if layout_of_name(path) is not None:
        return True
    for line in first_lines(path).removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.strip() and not line.startswith(b"#"):
            return line.count(b"\t") >= 9 and line.split(b"\t")[0].replace(b"-", b"").replace(b".", b"").isdigit()
    return False


def view_trees(files: Sequence[str], drawing: Drawing) -> None:
    """Draw one treebank, or two over the same words, in the terminal, on a page, or a single tree as SVG."""
    job = ("tag-score", "10 s")  # the same kernels: those that read
    drawing.draw(files, lambda: Shown.of([drawing.read(path) for path in files]), job)


@dataclass(frozen=True)
class Shown(SideBySide):
    """One treebank, or two of the same words."""

    noun: ClassVar[str] = "tree"

    first: Treebank
    second: Treebank | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, treebanks: Sequence[Treebank]) -> Shown:
        first, second = treebanks[0], treebanks[1] if len(treebanks) > 1 else None
        if second is not None:
            _check_same_words(first, second)
        return cls(first, second, short_names([treebank.name for treebank in treebanks]))

    def differences(self) -> list[int]:
        """Words of each sentence whose head, relation or tag is another in the second treebank."""
        import numpy as np

        assert self.second is not None
        apart = self.first.heads != self.second.heads
        for column in ("deprel", "upos"):
            apart |= _unequal(self.first.columns[column], self.second.columns[column])
        sums = np.zeros(len(apart) + 1, np.int64)
        np.cumsum(apart, out=sums[1:])
        counts: list[int] = np.diff(sums[self.first.offsets]).tolist()
        return counts

    def as_dict(self, sentence: int) -> dict[str, Any]:
        """One sentence as `isogloss.show.trees` takes it."""
        drawn = self.first.as_dict(sentence, self.second, self.names if self.second is not None else ())
        if self.second is not None:
            drawn["other"]["tags"] = list(self.second.strings("upos", sentence))
        elif set(drawn["tags"]) == {"_"}:
            drawn["tags"] = list(self.first.strings("xpos", sentence))
        number = f"sentence {sentence + 1}"
        drawn["title"] = number if drawn["title"] == number else f"{number}, {drawn['title']}"
        return drawn | {"number": sentence + 1}

    def painters(self) -> Painters:
        from isogloss.show import tree_page, tree_svg, tree_terminal

        return Painters(tree_page, tree_svg, tree_terminal)

    def summary(self) -> dict[str, Any]:
        """What stands at the top of the page."""
        facts: dict[str, Any] = {"sentences": len(self.first), "words": self.first.n_words}
        if self.second is not None:
            counts = self.differences()
            facts |= {"sentences that differ": sum(count > 0 for count in counts), "words that differ": sum(counts)}
            facts |= self._scores()
        return facts

    def _scores(self) -> dict[str, Any]:
        """UAS and LAS against the second treebank, as `isogloss parse score` has them; of trees that are there."""
        from isogloss.metrics.parsing import left_out, score_trees

        assert self.second is not None
        omitted = left_out(self.first, self.second, None)
        told = [name for name in ("uas", "las") if name not in omitted]
        if not told:
            return {}
        score = score_trees(self.first, self.second, bootstrap=0).as_dict()
        scores = {f"{name.upper()} against {self.names[1]}": score[name] for name in told}
        return {**scores, "signature": score["signature"]}


def _unequal(first: Column, second: Column) -> NDArray[np.bool_]:
    """Where two columns of the same words say different things."""
    numbers = first.vocabulary.encode(second.vocabulary)
    apart: NDArray[np.bool_] = first.ids != numbers[second.ids]
    return apart


def _check_same_words(first: Treebank, second: Treebank) -> None:
    """Raise with both places where the words of two treebanks part."""
    for sentence in range(min(len(first), len(second))):
        ours, theirs = first.words(sentence), second.words(sentence)
        if ours == theirs:
            continue
        at = next((k for k, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
        if at is None:
            finding, at = f"{len(ours)} words, but {len(theirs)}", 0
        else:
            finding = f"word {at + 1} is {ours[at]!r}, but {theirs[at]!r}"
        lines = [trees.line_of(int(trees.offsets[sentence]) + at) for trees in (first, second)]
        raise TreebankError(
            f"{first.name}, line {lines[0]}, {first.label_of(sentence)}: {finding} in {second.name}, line {lines[1]}. "
            "Two trees are drawn over the same words: give two parses of one text"
        )
    if len(first) != len(second):
        raise TreebankError(
            f"{first.name} has {len(first):,} sentences, but {second.name} has {len(second):,}. Two trees are drawn "
            "over the same words: was one of them cut short?"
        )
