"""`LoopyTrees`: trees in which pairs of links have scores, many at once, by belief propagation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered
from isogloss.engine.devices import current
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, kept
from isogloss.structures.batch import Batch, One, Stack, run_sentences
from isogloss.structures.heads import Heads
from isogloss.structures.tree_parts import Candidates, TreeParts

__all__ = ["CONSTRAINTS", "LoopyTrees"]

CONSTRAINTS = {
    "tree": (0, False, False),
    "projective": (1, False, False),
    "exactly-one": (2, False, False),
    "exactly-one-no-2-cycle": (2, False, True),
    "at-most-one": (3, False, False),
    "not-2": (4, True, False),
}
"""What is demanded of all links together, for kernels: the constraint, and which pairs of links exclude each other.

The weaker ones (table 3.3 of the reference) are for comparison; decoding gives a tree in any case.
"""


LARGEST = 50.0
STEP = 1e-3
"""Of scores, for differences of beliefs."""


class LoopyTrees(Batch[Heads]):
    r"""Distributions over trees with scores of links and of more than one link at a time; approximate.

    .. math:: p(y) \propto \exp \Big( \sum_{h \to c} s_{hc} + \sum_{g \to h \to c} s_{ghc} + \sum_h \sum_{(c, c')}
        s_{hcc'} + \sum_h s_h(\#children) + \sum_{j < k} s_{jk} [\text{the links into j and k cross}] \Big)

    over the trees that `TreeParts` allow. Messages are passed as in `FactorGraph`, of which this is the fast relative
    for one kind of graph: one compiled call for a whole sentence, sparse in links. Families of factors take turns, the
    tree last, in place of all at once.

    Parameters
    ----------
    parts : TreeParts
    scores : float64[n_parts]
    constraint : str
        One of `CONSTRAINTS`.
    single_root : bool
        Whether the root has one child; of trees.
    iterations : int
        Rounds of messages, at most.
    tolerance : float
        When no log-odds change by more, relative where they are large, messages have come to rest.

    Notes
    -----
    Without families, trees are exact, and no round is needed. `log_partition` is Bethe's approximation, `marginals` are
    beliefs; of links they are the marginals of the tree factor, which add up to 1 for each word. `argmax` is the best
    tree by the belief of the tree factor (exact without families).

    References
    ----------
    Smith and Eisner, Dependency parsing by belief propagation, EMNLP 2008; Smith 2010, chapters 2 and 3.

    Examples
    --------
    >>> parts = TreeParts.of(Candidates.all([3]), ["grand"])
    >>> trees = LoopyTrees(parts, np.zeros(parts.n_parts), constraint="projective")
    >>> round(float(np.exp(trees.log_partition()[0])), 6), trees.beliefs_of_links()[0][:, 1].round(4).tolist()
    (12.0, [0.5833, 0.0, 0.25, 0.1667])
    """

    def __init__(
        self,
        parts: TreeParts,
        scores: Array,
        *,
        constraint: str = "tree",
        single_root: bool = False,
        iterations: int = 5,
        tolerance: float = 1e-4,
    ) -> None:
        if constraint not in CONSTRAINTS:
            raise ParameterError(
                f"LoopyTrees: constraint should be one of {', '.join(CONSTRAINTS)}, not {constraint!r}"
            )
        self.layout, self.constraint, self.single_root = parts, constraint, bool(single_root)
        self.iterations, self.tolerance = iterations, tolerance
        self.scores = parts.stack(kept(np.asarray(scores, np.float64))).checked("LoopyTrees")

    @classmethod
    def of(cls, lengths: ArrayLike, scores: Array, families: Sequence[str] = (), **options: Any) -> Self:
        """All links of sentences with these lengths."""
        return cls(TreeParts.of(Candidates.all(lengths), families), scores, **options)

    def __getitem__(self, s: int) -> One[Heads]:
        """Sentence *s* alone, over the same parts."""
        return One(self.take([s]))

    def _over(self, parts: TreeParts, scores: Array) -> Self:
        return type(self)(
            parts, scores, constraint=self.constraint, single_root=self.single_root, iterations=self.iterations,
            tolerance=self.tolerance,
        )  # fmt: skip

    def _remake(self, scores: Stack) -> Self:
        return self._over(self.layout, scores.values)

    def _take(self, items: NDArray[np.int64]) -> Self:
        return self._over(self.layout.take(items), self.scores.take(items).values)

    @cached_property
    def _run(self) -> tuple[Array, Array, NDArray[np.int64], Array]:
        """log Z, beliefs, rounds, and the log-odds that the tree factor hears."""
        if current() == "cuda" and len(self.layout):
            found = self._run_on_device()
            if found is not None:
                return found
        return self._run_on_threads()

    def _run_on_device(self) -> tuple[Array, Array, NDArray[np.int64], Array] | None:
        """The same on the GPU; None for constraints and families that it has not. What it leaves is done on threads."""
        from isogloss.structures._gpu import loopy, transfer

        parts, demands = self.layout, (self.single_root, self.iterations, self.tolerance)
        if self.constraint not in ("tree", "projective") or not set(parts.families) <= set(loopy.FAMILIES):
            return None
        layout = loopy.Layout.of(parts, transfer.put)
        projective = self.constraint == "projective"
        found = loopy.believe(layout, transfer.put(self.scores.values), projective, *demands)
        values, beliefs, rounds, heard = map(transfer.fetched, found)
        left = np.flatnonzero(np.isnan(values))
        if len(left):
            own = self._take(left)._run_on_threads()
            values[left], rounds[left] = own[0], own[2]
            beliefs[gathered(parts.offsets, left)[1]] = own[1]
            heard[gathered(parts.link_offsets, left)[1]] = own[3]
        return values, beliefs, rounds, heard

    def _run_on_threads(self) -> tuple[Array, Array, NDArray[np.int64], Array]:
        from isogloss.structures._numba.loopy import believe

        parts = self.layout
        beliefs, values = np.empty(parts.n_parts), np.empty(len(parts))
        rounds, heard = np.zeros(len(parts), np.int64), np.empty(parts.n_links)
        code, not_two, no_cycle = CONSTRAINTS[self.constraint]
        demands = (code, not_two, no_cycle, self.single_root, self.iterations, float(self.tolerance))
        run_sentences(
            believe, len(parts), *parts.layout, self.scores.values, *demands, beliefs, values, rounds, heard
        )  # fmt: skip
        return values, beliefs, rounds, heard

    def partitions_and_beliefs(self) -> tuple[Array, Array]:
        """log Z of each sentence, −∞ where no tree is allowed, and beliefs of all parts (of no use there)."""
        values, beliefs, _, _ = self._run
        return values, beliefs

    def _solve(self) -> tuple[Array, Stack]:
        values, beliefs, _, _ = self._run
        return values, self.layout.stack(beliefs)

    def _refuse_infeasible(self, values: Array) -> None:
        wrong = np.flatnonzero(~(values > -np.inf))
        if not len(wrong):
            return
        first = int(wrong[0])
        if np.isnan(values[first]):
            raise ParameterError(
                f"sentence {first}: scores are too far apart for sums over trees in float64. Scale them down, or "
                "forbid with minus infinity instead of large negative numbers"
            )
        raise InfeasibleError(f"sentence {first}: no tree is allowed. Give more links a finite score")

    @property
    def rounds(self) -> NDArray[np.int64]:
        """int64[n_sentences]: how many rounds of messages there were."""
        return self._run[2]

    def beliefs_of_links(self) -> Stack:
        """float64[n + 1, n + 1] for each sentence: the posterior of each link (head, child)."""
        self.marginals()
        return self.layout.of_links(self._run[1][self.layout.link_places], 0.0)

    def tree_factor(self) -> Batch[Heads]:
        """The distribution over trees that the tree factor believes in: the messages to it are scores of links."""
        heard = self.scores.values  # without families, what the tree hears is the scores
        if self.layout.families or self.constraint not in ("tree", "projective"):
            self._refuse_infeasible(self._run[0])
            heard = self._run[3]
        scores = self.layout.of_links(heard, -np.inf)
        kept(scores.values)
        if self.constraint == "projective":
            from isogloss.structures.projective_batch import ProjectiveTrees

            return ProjectiveTrees(scores, single_root=self.single_root)
        from isogloss.structures.spanning import SpanningTrees

        return SpanningTrees(scores, single_root=self.single_root)

    def having(self, heads: ArrayLike) -> Self:
        """The same trees, of which only those with these heads of words are allowed; −1 where any will do."""
        known = np.asarray(heads)[self.layout.link_words]
        scores = self.scores.values.copy()
        scores[self.layout.link_places[(known >= 0) & (known != self.layout.head)]] = -np.inf
        return self.with_scores(self.scores.like(kept(scores)))

    def hessian_vector(self, vectors: Stack) -> Stack:
        """How beliefs move when scores move along a vector: exact for links alone, else by a central difference."""
        parts = self.layout
        if not parts.families and self.constraint in ("tree", "projective"):
            exact: Any = self.tree_factor()
            moved = exact.hessian_vector(parts.of_links(vectors.values[parts.link_places], 0.0))
            return self.scores.like(moved.values[parts.cells])
        there, back = (
            self.with_scores(self.scores.like(kept(self.scores.values + sign * STEP * vectors.values))).marginals()
            for sign in (1, -1)
        )
        return self.scores.like((there.values - back.values) / (2 * STEP))

    def argmax(self) -> Sequence[Heads]:
        """The best tree of each sentence by the belief of the tree factor.

        Scores beyond `LARGEST` are scaled down first, all by the same factor, which leaves the best tree the best: sums
        over trees then do not lose their digits.
        """
        values = self.scores.values
        largest = float(np.abs(values[values > -np.inf]).max(initial=0.0))
        if self.layout.families and largest > LARGEST:
            return self.with_scores(self.scores.like(values * (LARGEST / largest))).argmax()
        return self.tree_factor().argmax()

    def sample(self, rng: np.random.Generator) -> Sequence[Heads]:
        return self.tree_factor().sample(rng)

    def k_best(self, k: int) -> list[list[tuple[float, Heads]]]:
        """The `k` best trees of each sentence by the belief of the tree factor."""
        return self.tree_factor().k_best(k)

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of one tree for each sentence, laid out as `scores`."""
        heads = [np.asarray(y, np.int64) for y in self._one_each(structures)]
        return self.layout.stack(self.layout.indicate(np.concatenate([np.zeros(0, np.int64), *heads])))

    def from_parts(self, parts: Stack | Any) -> list[Heads]:
        """The trees that have these parts."""
        links = self.layout.of_links(np.concatenate([np.ravel(one) for one in parts])[self.layout.link_places], 0.0)
        return [np.asarray(matrix[:, 1:].argmax(axis=0), np.int64) for matrix in links]

    def log_prob(self, structures: Sequence[Any]) -> Array:
        """float64[n_sentences]: log p(y) of one tree for each sentence, as good as log Z."""
        parts = self.parts(structures)
        totals = [float(p[p > 0] @ s[p > 0]) for p, s in zip(parts, self.scores, strict=True)]
        return np.array(totals) - self.log_partition()
