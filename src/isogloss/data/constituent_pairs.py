"""`ConstituentPairs`: sentences in two languages with trees of constituents, and links between their words."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from numpy.typing import ArrayLike

from isogloss.data.bitext import Bitext
from isogloss.data.constituents import Constituents
from isogloss.data.links import Links
from isogloss.data.tree_pairs import TreePairs, check_inside
from isogloss.errors import TreebankError, UsageError

__all__ = ["ConstituentPairs", "as_constituent_pairs"]


@dataclass(frozen=True, eq=False)
class ConstituentPairs:
    """Two texts with trees, sentence k of one a translation of sentence k of the other, with links between their words.

    Parameters
    ----------
    source, target : Constituents
        Without traces, which no aligner sees.
    links : Links, optional
        Between words as the trees number them, from 0.

    Examples
    --------
    >>> source = Constituents.of(["(S (NP (PRP She)) (VP (VBZ sleeps)))"])
    >>> target = Constituents.of(["(S (PPER Sie) (VVFIN schläft))"])
    >>> pairs = ConstituentPairs(source, target, Links.of([{(0, 0), (1, 1)}]))
    >>> len(pairs), str(pairs.links[0]), pairs.bitext()[0][1]
    (1, '0-0 1-1', ('Sie', 'schläft'))
    """

    source: Constituents
    target: Constituents
    links: Links | None = None

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise TreebankError(
                f"{self.source.name} has {len(self.source)} trees but {self.target.name} has {len(self.target)}: "
                "sentence k of one must translate sentence k of the other. Was one lost on one side?"
            )
        if self.links is not None:
            check_inside(self.links, self.source.lengths, self.target.lengths, "trees")

    @classmethod
    def read(
        cls, source: str | PathLike[str], target: str | PathLike[str], links: str | PathLike[str] | None = None
    ) -> ConstituentPairs:
        """From two files of trees and a file of links."""
        from isogloss.data.formats import read_links

        trees = Constituents.read(source), Constituents.read(target)
        return cls(*trees, None if links is None else read_links(fspath(links), n_pairs=len(trees[0])))

    @classmethod
    def from_dependencies(cls, pairs: TreePairs, *, tag: str = "upos") -> ConstituentPairs:
        """The subtrees of dependency trees as constituents; see `Constituents.from_dependencies`."""
        source, target = (Constituents.from_dependencies(side, tag=tag) for side in (pairs.source, pairs.target))
        return cls(source, target, pairs.links)

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        linked = "" if self.links is None else f", {len(self.links.source)} links"
        return f"ConstituentPairs({len(self)} pairs, {self.source.n_words} and {self.target.n_words} words{linked})"

    def take(self, numbers: ArrayLike) -> ConstituentPairs:
        """Some of the pairs, by their numbers."""
        links = None if self.links is None else self.links.take(numbers)
        return ConstituentPairs(self.source.take(numbers), self.target.take(numbers), links)

    def bitext(self) -> Bitext:
        """The words alone."""
        return Bitext(self.source.text(), self.target.text())

    def to_bytes(self) -> bytes:
        """All trees and the links, one after the other: what a checkpoint is told apart by."""
        links = b"" if self.links is None else "\n".join(map(str, self.links)).encode()
        return b"\n".join([self.source.to_bytes("line"), self.target.to_bytes("line"), links])


def as_constituent_pairs(given: Any) -> ConstituentPairs:
    """What people hand over: `ConstituentPairs`, or two texts with trees and perhaps links."""
    if isinstance(given, ConstituentPairs):
        return given
    fits = isinstance(given, tuple | list) and 2 <= len(given) <= 3
    if not fits or not all(isinstance(one, Constituents) for one in given[:2]):
        raise UsageError(
            f"two texts with trees of constituents are needed, and perhaps links, not {type(given).__name__}. Give "
            "ConstituentPairs(source, target, links), or ConstituentPairs.read(file, file, file)"
        )
    return ConstituentPairs(*given)
