"""`SentencePairs`: sentences in two languages, as text, with names, or with tags and trees, and links between words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from isogloss.data.bitext import Bitext, Text
from isogloss.data.links import Links
from isogloss.data.mentions import Mentions
from isogloss.data.rows import counted
from isogloss.data.tree_pairs import TreePairs, check_inside
from isogloss.data.treebank import Treebank
from isogloss.errors import BitextError, UsageError

__all__ = ["SentencePairs", "as_sentence_pairs"]

Side = Text | Mentions | Treebank
KINDS = (Text, Mentions, Treebank)


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """Two texts, sentence k of one a translation of sentence k of the other, with whatever is known of each.

    Parameters
    ----------
    source, target : Text, Mentions or Treebank
    links : Links, optional
        Between their words, from 0.

    Examples
    --------
    >>> source = Mentions.of([(["Ada", "lives", "here"], [(0, 1, "PER")])])
    >>> pairs = SentencePairs(source, Text.of(["Ada wohnt hier"]))
    >>> len(pairs), pairs.bitext()[0][1]
    (1, ('Ada', 'wohnt', 'hier'))
    """

    source: Side
    target: Side
    links: Links | None = None

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise BitextError(
                f"{self.source.name} has {len(self.source)} sentences but {self.target.name} has {len(self.target)}: "
                "sentence k of one must translate sentence k of the other. Was one lost on one side?"
            )
        if self.links is not None:
            check_inside(self.links, *self.lengths, "texts")

    @property
    def lengths(self) -> tuple[Any, Any]:
        """Words of each sentence of both sides: int64[n_pairs] each."""
        text = self.bitext()
        return text.source.ids.lengths, text.target.ids.lengths

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        linked = "" if self.links is None else f", {counted(len(self.links.source), 'link')}"
        return f"SentencePairs({counted(len(self), 'pair')}{linked})"

    def take(self, numbers: ArrayLike) -> SentencePairs:
        """Some of the pairs, by their numbers."""
        links = None if self.links is None else self.links.take(numbers)
        return SentencePairs(self.source.take(numbers), self.target.take(numbers), links)

    def bitext(self) -> Bitext:
        """The words alone."""
        source, target = (side if isinstance(side, Text) else side.text() for side in (self.source, self.target))
        return Bitext(source, target)


def as_sentence_pairs(given: Any) -> SentencePairs:
    """What people hand over: pairs of any kind, or two texts and perhaps links."""
    if isinstance(given, SentencePairs):
        return given
    if isinstance(given, TreePairs):
        return SentencePairs(given.source, given.target, given.links)
    if isinstance(given, Bitext):
        return SentencePairs(given.source, given.target)
    fits = isinstance(given, tuple | list) and 2 <= len(given) <= 3
    if not fits or not all(isinstance(one, KINDS) for one in given[:2]):
        raise UsageError(
            f"two texts are needed, and perhaps links, not {type(given).__name__}. Give a Bitext, or "
            "SentencePairs(source, target, links) of Text, Mentions or Treebank"
        )
    return SentencePairs(*given)
