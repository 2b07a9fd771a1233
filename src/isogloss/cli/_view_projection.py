"""`isogloss view` of two treebanks that are translations, with word links: what the links carry, and what is there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from isogloss.cli._common import say
from isogloss.cli._drawing import Drawable, Drawing, Painters
from isogloss.errors import TreebankError, UsageError

if TYPE_CHECKING:
    from isogloss.data.links import Links
    from isogloss.data.treebank import Treebank
    from isogloss.tasks.transfer.edges import ProjectedEdges

__all__ = ["view_projection"]

_TAKEN = 0.05
"""Edges that are less probable are not drawn."""


def view_projection(files: tuple[str, str, str], drawing: Drawing, counted: str) -> None:
    """Draw pairs of trees with links between them, in the terminal, on a page, or one pair as SVG."""
    source, target, links = files

    def make() -> Shown:
        return Shown.of(drawing.read(source), drawing.read(target), links, counted)

    drawing.draw(files, make, ("transfer-project", "30 s"))


@dataclass(frozen=True)
class Shown(Drawable):
    """Two treebanks, links of their words, and what these carry."""

    noun: ClassVar[str] = "pair"
    most: ClassVar[tuple[int, int]] = (200, 5)

    source: Treebank
    target: Treebank
    links: Links
    edges: ProjectedEdges

    @classmethod
    def of(cls, source: Treebank, target: Treebank, links: str, counted: str) -> Shown:
        from isogloss.data.contractions import bitext_of_treebanks
        from isogloss.data.formats import read_links
        from isogloss.tasks.transfer import project_edges

        if len(source) != len(target):
            raise TreebankError(
                f"{source.name} has {len(source):,} sentences, but {target.name} has {len(target):,}. With LINKS, the "
                "second treebank should be the translation of the first, sentence by sentence"
            )
        pairs = bitext_of_treebanks(source, target)
        if counted == "words":
            found = read_links(links, bitext=pairs.bitext)
        else:
            found = pairs.split_links(read_links(links, bitext=pairs.surface))
        edges = project_edges(source, pairs.bitext, found)
        return cls(source, target, found, edges.keep(edges.probability >= _TAKEN))

    def choose(self, sentences: Sequence[int] | None, limit: int, quiet: bool) -> list[int]:
        """The pairs to show, counted from 0."""
        n = len(self.source)
        for number in sentences or ():
            if number > n:
                raise UsageError(f"--line {number}: {self.source.name} has {n:,} sentences. Give one from 1 to {n}")
        if sentences:
            return [number - 1 for number in sentences]
        if n > limit:
            say(f"the first {limit:,} of {n:,} pairs are shown; --limit and --line choose others", quiet)
        return list(range(min(limit, n)))

    def as_dict(self, pair: int) -> dict[str, Any]:
        """One pair as `isogloss.show.projection` takes it."""
        first, last = self.edges.starts[pair], self.edges.starts[pair + 1]
        parts = (array[first:last].tolist() for array in (self.edges.head, self.edges.child, self.edges.probability))
        relations = [self.edges.names[r] if r >= 0 else "" for r in self.edges.relation[first:last].tolist()]
        return {
            "source": _tree(self.source, pair),
            "target": _tree(self.target, pair),
            "links": self.links[pair].as_dict()["links"],
            "edges": [list(edge) for edge in zip(*parts, relations, strict=True)],
            "title": f"pair {pair + 1}",
            "number": pair + 1,
        }

    @property
    def title(self) -> str:
        return " – ".join(dict.fromkeys(os.path.basename(trees.name) for trees in (self.source, self.target)))

    def painters(self) -> Painters:
        from isogloss.show import projection_page, projection_svg, projection_terminal

        return Painters(projection_page, projection_svg, projection_terminal)

    def summary(self) -> dict[str, Any]:
        """What stands at the top of the page."""
        known = self.target.heads[self.edges.word] >= 0
        kept = self.edges.conserved(self.target.heads)
        words = len(set(self.edges.word.tolist()))
        facts: dict[str, Any] = {"pairs": len(self.source), "links": len(self.links.source)}
        facts["words that an edge was carried to, percent"] = 100.0 * words / max(1, self.target.n_words)
        if known.any():
            facts["carried edges that are in the trees, percent"] = 100.0 * float(kept[known].mean())
        return facts


def _tree(trees: Treebank, sentence: int) -> dict[str, Any]:
    drawn = trees.as_dict(sentence)
    if set(drawn["tags"]) == {"_"}:
        drawn["tags"] = list(trees.strings("xpos", sentence))
    return drawn
