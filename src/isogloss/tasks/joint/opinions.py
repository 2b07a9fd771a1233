"""What separate parsers and an aligner think of pairs of sentences, and the structures that are made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.links import Links
from isogloss.data.tree_pairs import TreePairs
from isogloss.data.treebank import Treebank
from isogloss.structures import Itg, ProjectiveTree, SpanningTree
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Stack
from isogloss.structures.itg_batch import Itgs
from isogloss.structures.subset import Subsets

__all__ = ["Opinions", "fold_rows", "known_links", "link_component", "oracle", "tree_component"]

FAINT_HEAD = 1e-6
FAINT_LINK = 1e-4
"""Posteriors are taken to be at least this far from 0, and links from 1: nothing is quite certain."""
CONFIDENT, BROKEN = 0.5, 2
"""Cells of a transduction grammar may break so many links that are as probable as that (Burkett et al., section 7)."""
FEW = 1e-3
"""How much the posterior of a head counts beside a right head, where an oracle tree has a choice."""


class Opinions(NamedTuple):
    """Posteriors of separate models for some pairs, and the tags that they saw."""

    source: Stack
    """float64[n + 1, n + 1] of each sentence, as (head, child)"""
    target: Stack
    links: Stack
    """float64[n_source, n_target] of each pair"""
    source_tags: list[str]
    """A tag for each word."""
    target_tags: list[str]

    @classmethod
    def of(cls, pairs: TreePairs, source_parser: Any, target_parser: Any, aligner: Any) -> Opinions:
        """By models that have learnt."""
        source, source_tags = _parsed(source_parser, pairs.source)
        target, target_tags = _parsed(target_parser, pairs.target)
        found = aligner.predict_proba(pairs.bitext())
        sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
        links = [
            np.asarray(one, np.float64) if one.shape == size else np.zeros(size)  # pairs that it passes over
            for one, size in zip(found, sizes, strict=True)
        ]
        return cls(source, target, Stack.of(links, "links", 2), source_tags, target_tags)

    @classmethod
    def joined(cls, parts: Sequence[Opinions]) -> Opinions:
        """Those of one text after the other."""
        stacks = [
            Stack.of([array for part in parts for array in part[k]], "posteriors", 2)  # type: ignore[union-attr]
            for k in range(3)
        ]
        tags = [[tag for part in parts for tag in part[k]] for k in (3, 4)]
        return cls(stacks[0], stacks[1], stacks[2], tags[0], tags[1])  # type: ignore[arg-type]


def _parsed(parser: Any, treebank: Treebank) -> tuple[Stack, list[str]]:
    _, seen = parser._given(treebank)  # with the tags of the parser's own tagger, where it has one
    ids, vocabulary = seen.columns["upos"]
    names = list(vocabulary)
    return parser.predict_proba(treebank), [names[k] for k in ids.tolist()]


def fold_rows(n: int, folds: int) -> list[NDArray[np.int64]]:
    """The rows of each fold: runs of neighbours, since these are often of one document."""
    return [rows for rows in np.array_split(np.arange(n), min(folds, n)) if len(rows)]


def tree_component(posteriors: Stack, projective: bool, prune: float) -> Batch[Any]:
    """Trees scored by log posteriors of links, without those that are improbable and not in the best tree."""
    kind: Callable[..., Batch[Any]] = ProjectiveTree.batch if projective else SpanningTree.batch
    logs = np.log(np.maximum(posteriors.values, FAINT_HEAD))
    every = kind(list(posteriors.like(logs)), single_root=True)
    best = every.parts(every.argmax()).values > 0
    keep = best | (posteriors.values >= max(prune, 0.0))
    return every.with_scores(posteriors.like(kept(np.where(keep, logs, -np.inf))))


def oracle(component: Batch[Any], treebank: Treebank, posteriors: Stack) -> Batch[Any]:
    """The component with only that tree of each sentence that has the most right heads of those it may have."""
    gain = FEW * posteriors.values
    for s, (start, stop) in enumerate(zip(treebank.offsets[:-1].tolist(), treebank.offsets[1:].tolist(), strict=True)):
        heads = treebank.heads[start:stop]
        known = np.flatnonzero(heads >= 0)
        gain[posteriors.offsets[s] + heads[known].astype(np.int64) * (len(heads) + 1) + known + 1] += 1.0
    allowed = component.scores.values > -np.inf
    judged = component.with_scores(component.scores.like(kept(np.where(allowed, gain, -np.inf))))
    return component.clamp(judged.argmax())


def link_component(posteriors: Stack, linking: str, prune: float) -> Batch[Any]:
    """Sets of links, scored by log odds of posteriors, without those that are improbable."""
    clear = np.clip(posteriors.values, FAINT_LINK, 1 - FAINT_LINK)
    odds = np.where(posteriors.values >= max(prune, 1e-12), np.log(clear / (1 - clear)), -np.inf)
    scores = posteriors.like(kept(odds))
    if linking == "any":
        return Subsets(scores)
    cut = {"confident": CONFIDENT, "cell_limit": BROKEN}
    return Itgs([Itg(one).prune(p, p, **cut) for one, p in zip(scores, posteriors, strict=True)])


def known_links(component: Batch[Any], links: Links, unlinked: str) -> Batch[Any]:
    """The component with what is known of links: those that are annotated, as far as it may have them.

    Other links of annotated words are not there; those between words of which neither is linked are left open, or are
    not there either.
    """
    required, forbidden = (np.zeros(len(component.scores.values), np.bool_) for _ in range(2))
    for s, shape in enumerate(component.scores.shapes.tolist()):
        own = slice(links.offsets[s], links.offsets[s + 1])
        i, j = links.source[own], links.target[own]
        possible = None if links.possible is None else links.possible[own]
        cells = np.zeros(shape, np.bool_)
        cells[i, j] = True
        maybe = np.zeros(shape, np.bool_)
        if possible is not None:
            maybe[i[possible], j[possible]] = True
        touched = np.asarray(cells.any(axis=1))[:, None] | np.asarray(cells.any(axis=0))[None, :]
        if unlinked == "absent":
            touched = np.ones(shape, np.bool_)
        place = slice(component.scores.offsets[s], component.scores.offsets[s + 1])
        required[place] = (cells & ~maybe).ravel()
        forbidden[place] = (touched & ~cells).ravel()
    if isinstance(component, Subsets):
        allowed = component.scores.values > -np.inf
        return component.holding(required & allowed, forbidden)
    counts = component.scores.like(required.astype(np.float64) - forbidden)
    assert isinstance(component, Itgs)
    return Itgs([component[s].restricted(counts[s]) for s in range(len(component))])
