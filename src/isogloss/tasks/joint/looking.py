"""What a bilingual parser looks at: candidates of pairs, scores of separate models, and features of what fits together.

Configurations, word links and fertilities are parts of one table with the words that they are about: head and child on
either side. A fertility or a word link is about a child alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.tree_pairs import TreePairs
from isogloss.data.treebank import Treebank
from isogloss.features.parts import Axis, Parts, Role
from isogloss.features.templates import Templates
from isogloss.structures.pair_parts import CONFIGURATIONS, PairCandidates, PairParts
from isogloss.structures.tree_parts import BINS, Candidates
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.words import ATOMS, PAD, Words

__all__ = ["Looked", "SourceView", "bilingual_templates", "configurations_of", "look", "pair_features", "source_view"]

FAINT = 1e-4
"""Posteriors are taken to be at least this far from 0 and 1."""
TINY = 1e-12
CHANCES = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Where bins of the posterior of a word link begin."""
DISTANCES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Where bins of its distance from the diagonal begin."""
ROLES = ("source_head", "source_child", "target_head", "target_child")
LINK, FERTILE = len(CONFIGURATIONS), len(CONFIGURATIONS) + 1
"""Kinds of parts after configurations: a word link; numbers of links of a source word, then of a target word."""
Ints = NDArray[np.int64]
Array = NDArray[np.float64]


class SourceView(NamedTuple):
    """What a parser thinks of source sentences.

    Parameters
    ----------
    candidates : Candidates
    scores : float64[n_links]
        Log scores, of which the trees of the parser are made.
    odds : float64[n_links]
        Log-odds of posteriors.
    words : Words
        Codes of words and tags.
    """

    candidates: Candidates
    scores: Array
    odds: Array
    words: Words

    @classmethod
    def joined(cls, parts: Sequence[SourceView]) -> SourceView:
        """Those of one text after the other."""
        offsets = _chained([one.candidates.offsets for one in parts])
        starts = _chained([one.candidates.starts for one in parts])
        heads = np.concatenate([one.candidates.heads for one in parts])
        words = [one.words for one in parts]
        rows = np.concatenate([[0], np.cumsum([len(one.codes) for one in words])])[:-1]
        joined = Words(
            np.concatenate([one.codes for one in words]),
            np.zeros((int(sum(len(one.codes) for one in words)), 0), np.uint64),
            np.concatenate([one.kinds for one in words]),
            np.concatenate([one.starts + row for one, row in zip(words, rows.tolist(), strict=True)]),
            np.concatenate([one.lengths for one in words]),
        )
        scores, odds = (np.concatenate([one[k] for one in parts]) for k in (1, 2))
        return cls(Candidates(offsets, starts, heads), scores, odds, joined)


def _chained(several: Sequence[Ints]) -> Ints:
    """Offsets of one thing after the other."""
    ends = np.cumsum([0, *(int(one[-1]) for one in several)])
    moved = [one[1:] + end for one, end in zip(several, ends[:-1].tolist(), strict=True)]
    return np.concatenate([[0], *moved]).astype(np.int64)


def source_view(parser: DependencyParser, treebank: Treebank, source: str, heads: int) -> SourceView:
    """The most probable `heads` of each word by a parser, its best trees, or the trees that are given."""
    _, _, words = parser._seen(treebank)
    if source != "joint":
        found = treebank.heads if source == "given" else parser.predict(treebank).heads
        return _certain(words, found)
    matrices, scores = [], []
    for trees in parser._trees(words):
        factor = trees.tree_factor()
        for own, posterior, best in zip(factor.scores, trees.beliefs_of_links(), factor.argmax(), strict=True):
            matrices.append(_most(posterior, own, np.asarray(best), heads))
            scores.append((own, posterior))
    candidates = Candidates.kept(matrices)
    flat = [
        np.stack([own[head, child], posterior[head, child]])
        for (own, posterior), kept in zip(scores, matrices, strict=True)
        for child, head in [np.nonzero(kept.T)]
    ]
    both = np.concatenate([np.zeros((2, 0)), *flat], axis=1)
    clear = np.clip(both[1], TINY, 1 - TINY)
    return SourceView(candidates, both[0], np.log(clear) - np.log1p(-clear), words)


def _certain(words: Words, heads: NDArray[np.int32]) -> SourceView:
    """Trees that are known."""
    offsets = np.concatenate([[0], np.cumsum(words.lengths)]).astype(np.int64)
    n = int(offsets[-1])
    nothing = np.zeros(n)
    return SourceView(Candidates(offsets, np.arange(n + 1), heads.astype(np.int32)), nothing, nothing + 1.0, words)


def _most(posterior: Array, scores: Array, best: Ints, heads: int) -> NDArray[np.bool_]:
    """bool[n + 1, n + 1]: the most probable heads of each word, and those of the best tree."""
    n = len(posterior)
    allowed = scores > -np.inf
    np.fill_diagonal(allowed, False)
    allowed[:, 0] = False
    if heads < n:
        least = -np.sort(-np.where(allowed, posterior, -1.0), axis=0)[heads - 1]
        allowed &= posterior >= least
    allowed[best, np.arange(1, n)] = True
    return allowed


class Looked(NamedTuple):
    """Pairs as the model sees them.

    Parameters
    ----------
    candidates : PairCandidates
    source_scores, link_scores : float64
        Scores of candidate links of the source trees, and log-odds of candidate word links.
    chance : float64[n_links]
        Posteriors of the latter.
    source, target : Words
    """

    candidates: PairCandidates
    source_scores: Array
    link_scores: Array
    chance: Array
    source: Words
    target: Words

    def __len__(self) -> int:
        return len(self.candidates)


def look(
    pairs: TreePairs,
    source: SourceView,
    parser: DependencyParser,
    posteriors: Sequence[Any],
    least: float,
    *,
    known: bool,
    heads: NDArray[np.int32] | None = None,
    tagged: Treebank | None = None,
) -> Looked:
    """Candidates of pairs and what separate models think of them; with `heads`, those of the target are among them.

    `tagged` has the target sentences with the tags that are to be seen; without it they are as the parser sees them.
    """
    learnt = parser._learnt
    words = parser._seen(pairs.target)[2] if tagged is None else learnt.encode(tagged)
    if learnt.filter is None or heads is None:
        target = learnt.candidates(words)
    else:
        target = learnt.filter.candidates(words, heads)
    cells, chances = [np.zeros((0, 2), np.int32)], [np.zeros(0)]
    sizes = zip(pairs.source.lengths.tolist(), pairs.target.lengths.tolist(), strict=True)
    for one, size in zip(posteriors, sizes, strict=True):
        grid = np.asarray(one, np.float64)
        own = np.argwhere(grid >= max(least, TINY)) if grid.shape == size else np.zeros((0, 2), np.int64)
        cells.append(own.astype(np.int32))
        chances.append(grid[own[:, 0], own[:, 1]] if len(own) else np.zeros(0))
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in cells[1:]])]).astype(np.int64)
    chance = np.concatenate(chances)
    clear = np.clip(chance, FAINT, 1 - FAINT)
    candidates = PairCandidates(
        source.candidates, target, offsets, np.concatenate(cells), source.odds, _first_order(learnt, words, target),
        known,
    )  # fmt: skip
    return Looked(candidates, source.scores, np.log(clear) - np.log1p(-clear), chance, source.words, words)


def _first_order(learnt: Any, words: Words, candidates: Candidates) -> Array | None:
    """Log-odds of links by the quick first parser of the target side, if there is one."""
    if learnt.filter is None:
        return None
    from isogloss.tasks.parse.held_out import all_trees

    quick, plain = learnt.filter, words.without_features()
    found = [trees.marginals().values for trees in all_trees(quick.scorer, plain, candidates, quick.shape)]
    chance = np.clip(np.concatenate([np.zeros(0), *found]), TINY, 1 - TINY)
    return np.asarray(np.log(chance) - np.log1p(-chance))


def configurations_of(coupling: str) -> tuple[str, ...]:
    """Those of `PairParts` that an option stands for."""
    return {"all": CONFIGURATIONS[:-1], "mono": ("mono",), "synch": ("synch",), "none": ()}[coupling]


def bilingual_templates(grain: str) -> Templates:
    """Configuration and order; these with the coarse or fine tags of one to four of the words."""
    subsets = [some for k in range(1, 5) for some in combinations(ROLES, k)]
    fine = [
        " & ".join(["configuration", *(f"{role}.{tag}" for role in some)])
        for tag in ("tag", "fine")
        for some in subsets
    ]
    fine += ["configuration & order & target_head.tag & target_child.tag", "configuration & order & target_child.tag"]
    coarse = ["configuration", "configuration & order"]
    return Templates([*(coarse if grain != "fine" else coarse[:1]), *(fine if grain != "coarse" else ())], kind="pair")


def _axis(words: Words) -> Axis:
    """Nodes of all sentences, the root first, with codes of their tags."""
    sizes = words.lengths + 1
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    rows = np.arange(int(offsets[-1])) + np.repeat(words.starts + PAD - offsets[:-1], sizes)
    codes = words.codes.view(np.int64)[rows]
    return Axis(offsets, tag=codes[:, ATOMS.index("tag")], fine=codes[:, ATOMS.index("fine")])


def pair_features(looked: Looked, parts: PairParts) -> Parts:
    """Word links, fertilities and configurations of all pairs, as parts with the words that they are about."""
    axes = _axis(looked.source), _axis(looked.target)
    begins = parts.begins
    offsets = np.concatenate([[0], np.cumsum(begins[:, 6] - begins[:, 2])]).astype(np.int64)
    n_parts = int(offsets[-1])
    nodes, kinds, orders = np.full((n_parts, 4), -1, np.int64), np.zeros(n_parts, np.int64), np.zeros(n_parts, np.int64)
    shift = offsets[:-1] - begins[:, 2]

    def rows_of(section: str, k: int) -> tuple[Ints, Ints]:
        counts = begins[:, k + 1] - begins[:, k]
        return parts.places(section) + np.repeat(shift, counts), np.repeat(np.arange(len(parts)), counts)

    at, pair = rows_of("links", 2)
    nodes[at, 1], nodes[at, 3] = parts.links[:, 0] + 1, parts.links[:, 1] + 1
    n, m = parts.source.lengths[pair], parts.target.lengths[pair]
    gap = np.abs((parts.links[:, 0] + 0.5) / np.maximum(n, 1) - (parts.links[:, 1] + 0.5) / np.maximum(m, 1))
    kinds[at] = LINK
    orders[at] = np.searchsorted(CHANCES, looked.chance, side="right") * (len(DISTANCES) + 1)
    orders[at] += np.searchsorted(DISTANCES, gap, side="right")
    for side, (section, role) in enumerate((("source_fertility", 1), ("target_fertility", 3))):
        at, pair = rows_of(section, 3 + side)
        number = at - np.repeat(begins[:, 3 + side] + shift, begins[:, 4 + side] - begins[:, 3 + side])
        nodes[at, role], kinds[at] = number // BINS + 1, FERTILE + side * BINS + number % BINS
    at, pair = rows_of("configurations", 5)
    own = parts.nodes[parts.soft].astype(np.int64)
    nodes[at], kinds[at] = own, parts.kinds[parts.soft]
    orders[at] = (own[:, 1] > own[:, 0]) + 2 * (own[:, 3] > own[:, 2])
    owner = np.repeat(np.arange(len(parts)), np.diff(offsets))
    roles = {}
    for k, name in enumerate(ROLES):
        axis = axes[k // 2]
        roles[name] = Role(axis, np.where(nodes[:, k] < 0, -1, nodes[:, k] + axis.offsets[owner]))
    return Parts(n_parts, offsets, roles, {"configuration": kinds, "order": orders})
