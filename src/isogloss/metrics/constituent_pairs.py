"""Scores of pairs of constituent trees and of the links between their words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isogloss.data.constituent_pairs import ConstituentPairs
from isogloss.errors import LinksError, TreebankError
from isogloss.metrics.alignment import AlignmentScore, score_links
from isogloss.metrics.brackets import BracketScore, score_brackets
from isogloss.metrics.pairs import content_links

__all__ = ["ConstituentPairScore", "score_constituent_pairs"]


@dataclass(frozen=True)
class ConstituentPairScore:
    """Scores of the brackets of both sides and, where both have them, of links; in percent."""

    source: BracketScore
    target: BracketScore
    links: AlignmentScore | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        told: dict[str, Any] = {"source": self.source.as_dict(), "target": self.target.as_dict()}
        return told if self.links is None else told | {"links": self.links.as_dict()}

    def __str__(self) -> str:
        lines = [f"source: {self.source}", f"target: {self.target}"]
        return "\n".join(lines if self.links is None else [*lines, f"links: {self.links}"])


def score_constituent_pairs(
    found: ConstituentPairs, gold: ConstituentPairs, *, content: bool = False, bootstrap: int = 1000
) -> ConstituentPairScore:
    """Score brackets of both sides by EVALB's rules, and links, against gold.

    Parameters
    ----------
    found, gold : ConstituentPairs
        Two annotations of the same words.
    content : bool
        Gold has links of content words alone: those between two words that it has none of do not count.
    bootstrap : int
        Resamples for intervals.

    Examples
    --------
    >>> from isogloss.data import Constituents
    >>> pairs = ConstituentPairs(Constituents.of(["(S (A a) (B b))"]), Constituents.of(["(S (A x))"]))
    >>> score_constituent_pairs(pairs, pairs).source.f1
    100.0
    """
    if len(found) != len(gold):
        raise TreebankError(
            f"{found.source.name} has {len(found)} trees but {gold.source.name} has {len(gold)}: sentence k of one is "
            "scored against sentence k of the other. Are they of the same text?"
        )
    links = None
    if gold.links is not None:
        if found.links is None:
            raise LinksError("gold has links, but none were found. Give both, or neither")
        ours = content_links(found.links, gold.links) if content else found.links
        links = score_links(ours, gold.links, bootstrap=bootstrap)
    sides = [
        score_brackets(ours, right, bootstrap=bootstrap)
        for ours, right in ((found.source, gold.source), (found.target, gold.target))
    ]
    return ConstituentPairScore(sides[0], sides[1], links)
