"""`LoopyPairs`: two trees and the word links between them, many pairs at once, by belief propagation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, kept
from isogloss.structures.batch import Batch, One, Stack, run_sentences
from isogloss.structures.heads import Heads
from isogloss.structures.loopy import CONSTRAINTS
from isogloss.structures.pair_parts import PairParts
from isogloss.structures.tree_parts import TreeParts

__all__ = ["LoopyPairs", "PairOfTrees"]


class PairOfTrees(NamedTuple):
    """Two trees and word links: what `LoopyPairs` is a distribution over."""

    source: Heads
    """int64[n_source]: heads, 0 for the root."""
    target: Heads
    links: frozenset[tuple[int, int]]
    """Source and target word, from 0."""


class LoopyPairs(Batch[PairOfTrees]):
    r"""Distributions over two trees and word links between them, with scores of what fits together; approximate.

    .. math:: p(t, s, a) \propto \exp \Big( score(t) + score(s) + \sum_{(i,j) \in a} s_{ij}
        + \sum_i s_i(\#links) + \sum_j s_j(\#links) + \sum_c s_c [\text{configuration c is there}] \Big)

    A configuration is a target link x → y, a source link x' → y' and word links (x', x), (y', y): mono, swap, and so on
    (`PairParts`), where one of the links may be a relation, grandparent or sibling, which has a variable of its own.
    SYNCH forbids that of three links that belong together two are there without the third. The target tree may have
    families of larger parts, as in `LoopyTrees`; `FactorGraph` says the same slowly, and for any graph.

    Parameters
    ----------
    parts : PairParts
    scores : float64[n_parts]
    constraint, source_constraint : "tree" or "projective"
    single_root : bool
        Whether the roots have one child.
    iterations : int
        Rounds of messages, at most.
    tolerance : float
        When no log-odds change by more, relative where they are large, messages have come to rest.

    Notes
    -----
    `log_partition` is Bethe's approximation, `marginals` are beliefs; those of links of trees are the marginals of the
    tree factors. `argmax` and `sample` take trees by what the tree factors believe, and word links one by one.

    References
    ----------
    Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 4.7.

    Examples
    --------
    >>> from isogloss.structures.pair_parts import PairCandidates
    >>> parts = PairParts.of(PairCandidates.all([2], [2]), ["mono"])
    >>> scores = np.zeros(parts.n_parts)
    >>> scores[parts.places("configurations")] = 2.0
    >>> pairs = LoopyPairs(parts, scores)
    >>> pairs.beliefs_of_links()[0].round(2).tolist()
    [[0.78, 0.78], [0.78, 0.78]]
    """

    def __init__(
        self,
        parts: PairParts,
        scores: Array,
        *,
        constraint: str = "projective",
        source_constraint: str = "projective",
        single_root: bool = True,
        iterations: int = 40,
        tolerance: float = 1e-3,
    ) -> None:
        for one in (constraint, source_constraint):
            if one not in ("tree", "projective"):
                raise ParameterError(f"LoopyPairs: trees are 'tree' or 'projective', not {one!r}")
        self.layout, self.constraint, self.source_constraint = parts, constraint, source_constraint
        self.single_root, self.iterations, self.tolerance = bool(single_root), iterations, tolerance
        self.scores = parts.stack(kept(np.asarray(scores, np.float64))).checked("LoopyPairs")

    def __getitem__(self, s: int) -> One[PairOfTrees]:
        """Pair *s* alone, over the same parts."""
        return One(self.take([s]))

    def _over(self, parts: PairParts, scores: Array) -> Self:
        return type(self)(
            parts, scores, constraint=self.constraint, source_constraint=self.source_constraint,
            single_root=self.single_root, iterations=self.iterations, tolerance=self.tolerance,
        )  # fmt: skip

    def _remake(self, scores: Stack) -> Self:
        return self._over(self.layout, scores.values)

    def _take(self, items: NDArray[np.int64]) -> Self:
        return self._over(self.layout.take(items), self.scores.take(items).values)

    @cached_property
    def _run(self) -> tuple[Array, Array, NDArray[np.int64], Array, Array]:
        """log Z, beliefs, rounds, and the log-odds that the tree factors hear."""
        from isogloss.structures._numba.loopy_pairs import believe_pairs

        parts = self.layout
        beliefs, values = np.empty(parts.n_parts), np.empty(len(parts))
        rounds = np.zeros(len(parts), np.int64)
        heard, source_heard = np.empty(parts.target.n_links), np.zeros(parts.source.n_links)
        demands = (
            CONSTRAINTS[self.constraint][0], self.single_root, CONSTRAINTS[self.source_constraint][0],
            self.single_root, self.iterations, float(self.tolerance),
        )  # fmt: skip
        run_sentences(
            believe_pairs, len(parts), *parts.layout, self.scores.values, *demands, beliefs, values, rounds, heard,
            source_heard,
        )  # fmt: skip
        return values, beliefs, rounds, heard, source_heard

    def _solve(self) -> tuple[Array, Stack]:
        return self._run[0], self.layout.stack(self._run[1])

    def _refuse_infeasible(self, values: Array) -> None:
        wrong = np.flatnonzero(~(values > -np.inf))
        if not len(wrong):
            return
        first = int(wrong[0])
        if np.isnan(values[first]):
            raise ParameterError(
                f"pair {first}: scores are too far apart for sums over trees in float64. Scale them down, or forbid "
                "with minus infinity instead of large negative numbers"
            )
        raise InfeasibleError(f"pair {first}: no tree of one side is allowed. Give more links a finite score")

    @property
    def rounds(self) -> NDArray[np.int64]:
        """int64[n_pairs]: how many rounds of messages there were."""
        return self._run[2]

    def beliefs_of_heads(self, side: str) -> Stack:
        """float64[n + 1, n + 1] for each sentence of the "source" or "target": the posterior of each (head, child)."""
        beliefs, parts = self.marginals().values, self.layout
        if side == "target":
            return parts.target.of_links(beliefs[parts.target_links], 0.0)
        if parts.known:
            return parts.source.of_links(np.ones(parts.source.n_links), 0.0)
        return parts.source.of_links(beliefs[parts.places("source")], 0.0)

    def beliefs_of_links(self) -> Stack:
        """float64[n_source, n_target] for each pair: the posterior of each word link."""
        parts = self.layout
        shapes = np.stack([parts.source.lengths, parts.target.lengths], axis=1)
        offsets = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))]).astype(np.int64)
        values = np.zeros(int(offsets[-1]))
        values[self._cells(offsets)] = self.marginals().values[parts.places("links")]
        return Stack(values, offsets, shapes)

    def _cells(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where word links are in matrices that begin at these offsets."""
        parts = self.layout
        counts = np.diff(parts.link_offsets)
        width = np.repeat(parts.target.lengths, counts)
        return np.asarray(np.repeat(offsets[:-1], counts) + parts.links[:, 0] * width + parts.links[:, 1])

    def given(self, target: Iterable[ArrayLike]) -> Self:
        """The pairs whose target trees have these heads, int[n_target] of each; −1 where any will do."""
        parts, heads = self.layout, [np.asarray(one, np.int64) for one in target]
        if [len(one) for one in heads] != parts.target.lengths.tolist():
            raise ParameterError(f"{self!r}: give a head for each word of each target sentence, or −1")
        known = np.concatenate([np.zeros(0, np.int64), *heads])[parts.target.link_words]
        scores = self.scores.values.copy()
        scores[parts.target_links[(known >= 0) & (known != parts.target.head)]] = -np.inf
        return self.with_scores(self.scores.like(kept(scores)))

    def tree_factor(self, side: str) -> Batch[Heads]:
        """The distribution over trees of the "source" or "target" that the tree factor believes in."""
        self.marginals()
        if side == "target":
            return _trees(self.layout.target, self._run[3], self.constraint, self.single_root)
        if self.layout.known:  # whatever it is like
            return _trees(self.layout.source, self._run[4], "tree", False)
        return _trees(self.layout.source, self._run[4], self.source_constraint, self.single_root)

    def most_right(self, side: str) -> Sequence[Heads]:
        """The trees of one side with the most right heads in expectation: minimum Bayes risk."""
        factor = self.tree_factor(side)
        worth = np.where(factor.scores.values > -np.inf, self.beliefs_of_heads(side).values, -np.inf)
        return factor.with_scores(factor.scores.like(kept(worth))).argmax()

    def argmax(self) -> list[PairOfTrees]:
        """The best trees of each pair by the beliefs of the tree factors, and the word links that are more probable."""
        return self._made(self.tree_factor("source").argmax(), self.tree_factor("target").argmax(), 0.5)

    def sample(self, rng: np.random.Generator) -> list[PairOfTrees]:
        """Trees drawn from the tree factors, and word links one by one from their beliefs."""
        return self._made(self.tree_factor("source").sample(rng), self.tree_factor("target").sample(rng), rng)

    def _made(
        self, source: Sequence[Heads], target: Sequence[Heads], least: float | np.random.Generator
    ) -> list[PairOfTrees]:
        """Trees with the word links that are more probable than something, or drawn."""
        found = []
        for s, t, chances in zip(source, target, self.beliefs_of_links(), strict=True):
            bound = least if isinstance(least, float) else least.random(chances.shape)
            found.append(PairOfTrees(s, t, frozenset((int(i), int(j)) for i, j in np.argwhere(chances > bound))))
        return found

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of two trees and links for each pair, laid out as `scores`."""
        from isogloss.structures._numba.pair_parts import indicate_pairs

        given, parts = self._one_each(structures), self.layout
        heads = [
            np.concatenate([np.zeros(0, np.int64), *(np.asarray(one[side], np.int64) for one in given)])
            for side in range(2)
        ]
        linked = np.zeros(len(parts.links), np.bool_)
        for s, one in enumerate(given):
            own = slice(parts.link_offsets[s], parts.link_offsets[s + 1])
            linked[own] = [(i, j) in one[2] for i, j in parts.links[own].tolist()]
        target = parts.target.indicate(heads[1])
        true = heads[0][parts.source.link_words] == parts.source.head
        on_target = heads[1][parts.target.link_words] == parts.target.head
        out = np.empty(parts.n_parts)
        run_sentences(indicate_pairs, len(parts), *parts.layout, target, on_target, true, linked, out)
        return self.scores.like(out)

    def from_parts(self, parts: Stack | Any) -> list[PairOfTrees]:
        """The trees and links that have these parts."""
        layout = self.layout
        flat = np.concatenate([np.zeros(0), *(np.ravel(one) for one in parts)])
        target = layout.target.of_links(flat[layout.target_links], 0.0)
        own = np.ones(layout.source.n_links) if layout.known else flat[layout.places("source")]
        source = layout.source.of_links(own, 0.0)
        linked = flat[layout.places("links")] > 0
        links = (
            frozenset((int(i), int(j)) for i, j in layout.links[a:b][linked[a:b]])
            for a, b in zip(layout.link_offsets[:-1], layout.link_offsets[1:], strict=True)
        )
        return [
            PairOfTrees(s[:, 1:].argmax(axis=0), t[:, 1:].argmax(axis=0), a)
            for s, t, a in zip(source, target, links, strict=True)
        ]

    def log_prob(self, structures: Sequence[Any]) -> Array:
        """float64[n_pairs]: log p of two trees and links for each pair, as good as log Z."""
        parts = self.parts(structures)
        totals = [float(p[p > 0] @ s[p > 0]) for p, s in zip(parts, self.scores, strict=True)]
        return np.array(totals) - self.log_partition()


def _trees(parts: TreeParts, heard: Array, constraint: str, single_root: bool) -> Batch[Heads]:
    from isogloss.structures.projective_batch import ProjectiveTrees
    from isogloss.structures.spanning import SpanningTrees

    scores = parts.of_links(heard, -np.inf)
    kept(scores.values)
    return (ProjectiveTrees if constraint == "projective" else SpanningTrees)(scores, single_root=single_root)
