"""`TreePairs`: sentences in two languages, with trees and with links between their words, as far as they are known."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Bitext
from isogloss.data.links import Links
from isogloss.data.treebank import Treebank
from isogloss.errors import LinksError, TreebankError, UsageError

__all__ = ["TreePairs", "as_tree_pairs", "check_inside"]


@dataclass(frozen=True, eq=False)
class TreePairs:
    """Two treebanks, sentence k of one a translation of sentence k of the other, with links between their words.

    Parameters
    ----------
    source, target : Treebank
    links : Links, optional
        Between words as the treebanks number them, from 0.

    Examples
    --------
    >>> source = Treebank.of([[("she", "PRON", 2), ("sleeps", "VERB", 0)]])
    >>> target = Treebank.of([[("sie", "PRON", 2), ("schläft", "VERB", 0)]])
    >>> pairs = TreePairs(source, target, Links.of([{(0, 0), (1, 1)}]))
    >>> len(pairs), str(pairs.links[0]), pairs.bitext()[0][1]
    (1, '0-0 1-1', ('sie', 'schläft'))
    """

    source: Treebank
    target: Treebank
    links: Links | None = None

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise TreebankError(
                f"{self.source.name} has {len(self.source)} sentences but {self.target.name} has {len(self.target)}: "
                "sentence k of one must translate sentence k of the other. Was one lost on one side?"
            )
        if self.links is not None:
            check_inside(self.links, self.source.lengths, self.target.lengths, "treebanks")

    @classmethod
    def read(
        cls, source: str | PathLike[str], target: str | PathLike[str], links: str | PathLike[str] | None = None
    ) -> TreePairs:
        """From two treebanks and a file of links."""
        from isogloss.data.formats import read_links

        trees = Treebank.read(source), Treebank.read(target)
        return cls(*trees, None if links is None else read_links(fspath(links), n_pairs=len(trees[0])))

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        linked = "" if self.links is None else f", {len(self.links.source)} links"
        return f"TreePairs({len(self)} pairs, {self.source.n_words} and {self.target.n_words} words{linked})"

    def take(self, numbers: ArrayLike) -> TreePairs:
        """Some of the pairs, by their numbers."""
        links = None if self.links is None else self.links.take(numbers)
        return TreePairs(self.source.take(numbers), self.target.take(numbers), links)

    def bitext(self) -> Bitext:
        """The words alone."""
        return Bitext(self.source.text(), self.target.text())

    def as_dict(self, pair: int) -> dict[str, Any]:
        """One pair as plain data: what `isogloss.show.tree_pairs` draws."""
        sides = {}
        for name, side in (("source", self.source), ("target", self.target)):
            sides[name] = {
                "words": list(side.words(pair)),
                "tags": ["" if tag == "_" else tag for tag in side.strings("upos", pair)],
                "heads": side.heads[side.offsets[pair] : side.offsets[pair + 1]].tolist(),
                "labels": ["" if label == "_" else label for label in side.strings("deprel", pair)],
            }
        links = [] if self.links is None else sorted(self.links[pair].links)
        return {**sides, "links": links}

    def to_bytes(self) -> bytes:
        """Both treebanks and the links, one after the other: what a checkpoint is told apart by."""
        links = b"" if self.links is None else "\n".join(map(str, self.links)).encode()
        return b"\n".join([self.source.to_bytes(), self.target.to_bytes(), links])


def as_tree_pairs(given: Any) -> TreePairs:
    """What people hand over: `TreePairs`, or two treebanks and perhaps links."""
    if isinstance(given, TreePairs):
        return given
    fits = isinstance(given, tuple | list) and 2 <= len(given) <= 3
    if not fits or not all(isinstance(one, Treebank) for one in given[:2]):
        raise UsageError(
            f"two treebanks are needed, and perhaps links, not {type(given).__name__}. Give TreePairs(source, target, "
            "links), or TreePairs.read(file, file, file)"
        )
    return TreePairs(*given)


def check_inside(links: Links, source: NDArray[np.int64], target: NDArray[np.int64], texts: str) -> None:
    """`LinksError` unless there are links for each pair of sentences with these lengths, of words that these have."""
    if len(links) != len(source):
        raise LinksError(f"there are links of {len(links)} pairs for {len(source)}. Give a line for each pair")
    pair, ends = links.pair, (links.source, links.target)
    inside = [(end >= 0) & (end < lengths[pair]) for end, lengths in zip(ends, (source, target), strict=True)]
    outside = np.flatnonzero(~(inside[0] & inside[1]))
    if len(outside):
        k = int(outside[0])
        s = int(pair[k])
        raise LinksError(
            f"line {s + 1} of the links: {links.source[k]}-{links.target[k]}, but the sentences have {source[s]} and "
            f"{target[s]} words, counted from 0. Are the links of these {texts}?"
        )
