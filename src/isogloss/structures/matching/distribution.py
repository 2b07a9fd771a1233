"""`Matching`: sets of links in which every word has at most one, or at most a few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, InfeasibleError, checked_scores, kept
from isogloss.structures.kbest import checked_k
from isogloss.structures.matching import search, sums
from isogloss.structures.matching.assignment import best_partners, nearest_point
from isogloss.structures.matching.parts import (
    NO_PAIRS,
    Fertility,
    Indices,
    Pairs,
    Problem,
    checked_fertility,
    checked_links,
    checked_null,
    checked_pairs,
    checked_steps,
    constant,
    degree_table,
)
from isogloss.structures.matching.polytope import LinkPolytope, PartPolytope
from isogloss.structures.matching.search import Links, Method, Relaxation, Solution, links_at
from isogloss.structures.matching.sums import Convergence, Inference, Sums

if TYPE_CHECKING:
    from isogloss.structures.matching.batch import Matchings

__all__ = ["Matching"]


class Matching(Distribution[Links]):
    r"""A distribution over sets of links between two sentences, in which words have few links.

    .. math:: p(y) \propto \exp \Big( \sum_{ij \in y} scores_{ij} + \sum_{i \notin y} source\_null_i
        + \sum_{j \notin y} target\_null_j - fertility(y) + pairs(y) \Big)

    Parameters
    ----------
    scores : float64[n_source, n_target]
        Log score of each link; −∞ forbids. The array is copied.
    source_null, target_null : float, float64[n_source] or float64[n_target]
        Log score of a word that has no link; −∞ says that it must have one.
    fertility : Fertility or int, optional
        How many links a word may have and what the second, third, … takes from the score; a number is a limit for all
        words, without penalties. One link a word when not given.
    pairs : Pairs, optional
        Scores for pairs of links, see `neighbour_pairs`.
    inference : "auto", "exact" or "bp"
        How log Z and marginals are found; "auto" is exact when that takes some hundredths of a second.

    Notes
    -----
    `argmax` is exact: assignment, min-cost flow with fertility, an integer program with pairs. The sum over matchings
    is #P-hard: `log_partition`, `marginals`, `entropy` and `log_prob` are exact for small sentences only (one side of
    up to 12 words or so; with pairs up to 65,000 sets of links), and beyond come from belief propagation, with log Z
    by Bethe's formula. `exact` and `method` say which, `convergence` how it ended. `sample` is exact where the sum is,
    and a Metropolis walk elsewhere. Without words on a side there is one structure, the empty one.

    References
    ----------
    Taskar, Lacoste-Julien and Klein, A Discriminative Matching Approach to Word Alignment, EMNLP 2005; Lacoste-Julien
    et al., Word Alignment via Quadratic Assignment, NAACL 2006; nulls as in Haghighi et al., ACL 2009, section 2.1.

    Examples
    --------
    >>> dist = Matching([[2.0, 0.5], [1.9, -1.0]])
    >>> sorted(dist.argmax()), dist.exact
    ([(0, 1), (1, 0)], True)
    >>> round(float(np.exp(Matching(np.zeros((3, 3))).log_partition())), 6)
    34.0
    """

    def __init__(
        self,
        scores: ArrayLike,
        source_null: ArrayLike = 0.0,
        target_null: ArrayLike = 0.0,
        fertility: Fertility | int | None = None,
        pairs: Pairs | None = None,
        *,
        inference: Inference = "auto",
    ) -> None:
        self.scores = checked_links(scores, "Matching: scores")
        n_source, n_target = self.scores.shape
        self.source_null = checked_null(source_null, "Matching: source_null", n_source)
        self.target_null = checked_null(target_null, "Matching: target_null", n_target)
        self._source_steps, self._target_steps = checked_fertility(fertility, n_source, n_target)
        if pairs is not None:
            self._pair_links, self._pair_scores = checked_pairs(pairs, (n_source, n_target))
        if inference not in ("auto", "exact", "bp"):
            raise ParameterError(f'Matching: inference should be "auto", "exact" or "bp", not {inference!r}')
        self.inference: Inference = inference

    _pair_links, _pair_scores = NO_PAIRS, constant((0,))
    _least: tuple[Indices, Indices] | None = None
    _FIELDS: ClassVar[tuple[str, ...]] = (
        "scores", "source_null", "target_null", "_source_steps", "_target_steps", "_pair_links", "_pair_scores",
        "_least", "inference",
    )  # fmt: skip

    @classmethod
    def _made(cls, **fields: Any) -> Self:
        """From fields that are known to be right."""
        new = object.__new__(cls)
        new.__dict__.update(fields)
        return new

    def _but(self, **fields: Any) -> Self:
        """A copy with other fields."""
        return self._made(**({name: getattr(self, name) for name in self._FIELDS} | fields))

    @classmethod
    def batch(
        cls,
        scores: Iterable[ArrayLike],
        source_null: ArrayLike | Sequence[ArrayLike] = 0.0,
        target_null: ArrayLike | Sequence[ArrayLike] = 0.0,
        fertility: Fertility | int | Sequence[Fertility | int | None] | None = None,
        pairs: Pairs | Sequence[Pairs | None] | None = None,
        *,
        inference: Inference = "auto",
    ) -> Matchings:
        """Many matchings at once; each option is one for all, or a list with one for each sentence."""
        from isogloss.structures.matching.batch import Matchings

        return Matchings(scores, source_null, target_null, fertility, pairs, inference=inference)

    # --- what it is

    @property
    def n_source(self) -> int:
        """Number of source words."""
        return int(self.scores.shape[0])

    @property
    def n_target(self) -> int:
        """Number of target words."""
        return int(self.scores.shape[1])

    @property
    def fertility(self) -> Fertility | None:
        """Penalties of further links, or None when a word has one at most."""
        if self._source_steps.shape[1] == self._target_steps.shape[1] == 0:
            return None
        return Fertility(0.0 - self._source_steps, 0.0 - self._target_steps)

    @property
    def pairs(self) -> Pairs | None:
        """Scored pairs of links."""
        if not len(self._pair_scores):
            return None
        ends = self._pair_links
        links = np.stack([ends // self.n_target, ends % self.n_target], axis=2).reshape(-1, 4)
        return Pairs(links, self._pair_scores)

    def __repr__(self) -> str:
        more = f", fertility={self._source_steps.shape[1] + 1}" if self.fertility else ""
        more += f", pairs={len(self._pair_scores)}" if len(self._pair_scores) else ""
        return f"Matching(n_source={self.n_source}, n_target={self.n_target}{more})"

    @cached_property
    def _problem(self) -> Problem:
        least = self._least or (None, None)
        return Problem(
            self.scores,
            degree_table(self.source_null, self._source_steps, least[0]),
            degree_table(self.target_null, self._target_steps, least[1]),
            self._pair_links,
            self._pair_scores,
        )

    @property
    def _plain(self) -> bool:
        """One link a word, no pairs: assignment will do."""
        further = self._source_steps.size or self._target_steps.size
        return not (further or self._pair_scores.size or self._least is not None)

    # --- the best

    def argmax(self, method: Method = "auto", *, time_limit: float | None = None, repair: bool = True) -> Links:
        """The best set of links; among equals, always the same one. See `solve` for the options."""
        if method == "auto" and self._plain:
            partner = best_partners(self.scores, self.source_null, self.target_null)
            if partner is None:
                self._raise_infeasible()
            return frozenset([link for link in enumerate(partner.tolist()) if link[1] >= 0])
        return self.solve(method, time_limit=time_limit, repair=repair).links

    def solve(self, method: Method = "auto", *, time_limit: float | None = None, repair: bool = True) -> Solution:
        """The best set of links, with its score, an upper bound, and what found it.

        Parameters
        ----------
        method : "auto", "flow", "milp" or "lp"
            "auto" takes assignment or flow where they are exact, else "milp", an integer program solved by HiGHS. "lp"
            solves the relaxation and keeps links of a half or more. Flow is exact without pairs, when no word's null
            scores more than the penalty of its second link takes.
        time_limit : float, optional
            Seconds for the integer program, then the better of its best answer so far and the rounded relaxation.
        repair : bool
            With "lp", leave out links that break a limit, least certain first, then switch open links while that pays.
            Without, as in the paper, the result may have more links a word than allowed; it is no structure then, and
            its score is −∞.
        """
        return search.solve(self, method, time_limit=time_limit, repair=repair)

    def relaxation(self) -> Relaxation:
        """The linear relaxation: links, degrees and pairs between 0 and 1 (equations 1 to 3 of Lacoste-Julien et al.).

        Without pairs it is integral, and its value that of `argmax`; with them an upper bound.
        """
        return search.relaxation(self)

    def k_best(self, k: int) -> list[tuple[float, Links]]:
        """The `k` best sets of links with their scores, best first, or all if there are fewer.

        Plain matchings by splitting around each one found (Murty 1968), at most k · n assignments; with fertility or
        pairs by k integer programs, each of which excludes what came before.
        """
        found = search.k_best_links(self, checked_k(k, repr(self)))
        if not found:
            self._raise_infeasible()
        return found

    def _raise_infeasible(self) -> NoReturn:
        problem = self._problem
        allowed = self.scores > -np.inf
        for side, table, axis in (("source", problem.source_table, 1), ("target", problem.target_table, 0)):
            must = np.argmax(table > -np.inf, axis=1)
            short = np.flatnonzero(allowed.sum(axis=axis) < must)
            if len(short):
                raise InfeasibleError(
                    f"{self!r}: {side} word {short[0]} must have a link (its null is minus infinity), "
                    "and every link of it is forbidden. Give it a null score, or a link"
                )
        raise InfeasibleError(
            f"{self!r}: the words that must have a link (those whose null is minus infinity) cannot all have one at "
            "once. Give some of them a null score, or allow more links"
        )

    # --- the sum

    @cached_property
    def _method(self) -> str:
        return sums.chosen_method(self._problem, self.inference, repr(self))

    @property
    def exact(self) -> bool:
        """Whether log Z, marginals, entropy and draws are exact."""
        return self._method != "bp"

    @property
    def method(self) -> str:
        """How log Z and marginals are found: "exact" or "bp"."""
        return "exact" if self.exact else "bp"

    @property
    def convergence(self) -> Convergence | None:
        """How belief propagation ended; None when exact."""
        return self._sums.convergence

    @cached_property
    def _sums(self) -> Sums:
        if self._method == "bp":
            self._refuse_infeasible()
        found = sums.sum_up(self._problem, self._method)
        if found.value == -np.inf:
            self._raise_infeasible()
        if found.convergence is not None:
            sums.warn_unless(found.convergence.converged, repr(self))
        return found

    def _refuse_infeasible(self) -> None:
        """InfeasibleError, found by looking for the best; nothing to do unless some word must have a link."""
        problem = self._problem
        if (problem.source_table[:, 0] == -np.inf).any() or (problem.target_table[:, 0] == -np.inf).any():
            (self if (self._pair_scores == -np.inf).any() else self._without_pairs()).solve()

    def _solve(self) -> tuple[float, Array]:
        return self._sums.value, self._sums.links

    def entropy(self) -> float:
        """−Σ p log p in nats, as log Z − Σ marginals · scores over all kinds of parts; Bethe's where not exact."""
        found, problem = self._sums, self._problem
        kinds = (
            (found.links, self.scores),
            (found.source_degrees, problem.source_table),
            (found.target_degrees, problem.target_table),
            (found.pairs, self._pair_scores),
        )
        return max(0.0, found.value - sum(float(p[p > 0] @ scores[p > 0]) for p, scores in kinds))

    def null_marginals(self) -> tuple[Array, Array]:
        """float64[n_source] and float64[n_target]: posterior of having no link."""
        return self._sums.source_degrees[:, 0].copy(), self._sums.target_degrees[:, 0].copy()

    def fertility_marginals(self) -> tuple[Array, Array]:
        """float64[n_source, D − 1] and float64[n_target, D′ − 1]: posterior of at least 2, 3, … links."""
        source, target = (
            np.cumsum(degrees[:, :1:-1], axis=1)[:, ::-1]
            for degrees in (self._sums.source_degrees, self._sums.target_degrees)
        )
        return source, target

    def pair_marginals(self) -> Array:
        """float64[n_pairs]: posterior that both links are there, in the order of `pairs`."""
        return self._sums.pairs.copy()

    def sample(self, rng: np.random.Generator, *, sweeps: int = 100) -> Links:
        """One set of links; a draw from the distribution where `exact`, else the end of a walk that starts at the best.

        The walk (Metropolis) takes `sweeps` steps for each cell; it forgets its start slowly where scores are large.
        """
        if self.exact:
            linked = sums.draw(self._problem, self._method, rng)
            if linked is None:
                self._raise_infeasible()
            return links_at(linked)
        return links_at(sums.walk_from(self._problem, self._start(), sweeps, rng))

    def _start(self) -> NDArray[np.bool_]:
        """Somewhere to walk from: the best without pairs, unless it breaks a forbidden one."""
        y = self._without_pairs().solve().links
        if len(self._pair_scores) and self.score(y) == -np.inf:
            y = self.solve("lp").links
        return self.parts(y) > 0

    # --- views

    def _links_of(self, y: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        pairs = np.array(sorted({(int(i), int(j)) for i, j in y}), np.int64).reshape(-1, 2)
        source, target = pairs[:, 0], pairs[:, 1]
        if len(pairs):
            inside = (pairs >= 0).all() and (source < self.n_source).all() and (target < self.n_target).all()
            if not inside:
                raise ParameterError(f"{self!r}: a link of {sorted(y)} is outside the sentences; links count from 0")
            most = self._source_steps.shape[1] + 1, self._target_steps.shape[1] + 1
            for side, ends, limit in (("source", source, most[0]), ("target", target, most[1])):
                word = int(np.bincount(ends).argmax())
                if (ends == word).sum() > limit:
                    raise ParameterError(
                        f"{self!r}: {side} word {word} has {(ends == word).sum()} links, where {limit} may be. "
                        "More are allowed by fertility"
                    )
        return source, target

    def parts(self, y: Any) -> Array:
        """float64[n_source, n_target]: 1 for each link of `y`, 0 elsewhere."""
        out = np.zeros(self.scores.shape)
        out[self._links_of(y)] = 1.0
        return out

    def _read(self, parts: Array) -> Links:
        return links_at(parts > 0)

    def score(self, y: Any) -> float:
        """Log score of a set of links, not normalised."""
        return self._score_of(self.parts(y) > 0)

    def _score_of(self, linked: NDArray[np.bool_]) -> float:
        problem, total = self._problem, float(self.scores[linked].sum())
        for table, axis in ((problem.source_table, 1), (problem.target_table, 0)):
            degrees = linked.sum(axis=axis)
            if (degrees >= table.shape[1]).any():
                return -np.inf
            total += float(np.take_along_axis(table, degrees[:, None], axis=1).sum())
        return total + float(self._pair_scores[linked.ravel()[self._pair_links].all(axis=1)].sum())

    def _remake(self, scores: Array) -> Self:
        return self._but(scores=scores)

    def _without_pairs(self) -> Self:
        return self._but(_pair_links=NO_PAIRS, _pair_scores=constant((0,)))

    def clamp(self, y: Any) -> Self:
        """The distribution in which `y` alone is allowed, with the score it has here."""
        parts = self.parts(y)
        least = parts.sum(axis=1).astype(np.int64), parts.sum(axis=0).astype(np.int64)
        return self._but(scores=kept(np.where(parts > 0, self.scores, -np.inf)), _least=least)

    def project_onto_polytope(self, point: ArrayLike, *, tolerance: float = 1e-10) -> Array:
        r"""The nearest point of the polytope of links: between 0 and 1, and no word with more links than it may have.

        .. math:: \arg\min_z \tfrac12 \sum_{ij} (z_{ij} - point_{ij})^2

        Forbidden links are 0. Penalties and pairs do not matter. Block ascent on the dual, to `tolerance` in the dual
        variables; sums of rows and columns keep their limits to rounding. (Taskar et al. 2005, section 3.)
        """
        array = np.array(point, np.float64)
        if array.shape != self.scores.shape or not np.isfinite(array).all():
            raise ParameterError(f"{self!r}: a point is {list(self.scores.shape)} finite numbers")
        self._without_pairs()._refuse_infeasible()
        array[self.scores == -np.inf] = -np.inf
        return nearest_point(array, self._problem, tolerance, repr(self))

    def polytope(self) -> LinkPolytope:
        """The polytope of links, for learners that move through it; `Flat(dist).polytope()` has the other parts too."""
        return LinkPolytope.of(self)

    # --- all kinds of parts, for `Flat`

    def part_scores(self) -> tuple[Array, ...]:
        """Links, source nulls, target nulls, further links of source words and of target words, pairs."""
        steps = self._source_steps, self._target_steps
        return self.scores, self.source_null, self.target_null, *steps, self._pair_scores

    def part_marginals(self) -> tuple[Array, ...]:
        """Posteriors of all kinds of parts, in the order of `part_scores`."""
        return self.marginals(), *self.null_marginals(), *self.fertility_marginals(), self.pair_marginals()

    def kinds_of(self, y: Any) -> tuple[Array, ...]:
        """1 for each part of any kind that `y` has, in the order of `part_scores`."""
        return self._kinds(self.parts(y))

    def _kinds(self, links: Array) -> tuple[Array, ...]:
        degrees = links.sum(axis=1), links.sum(axis=0)
        nulls = (np.clip(1.0 - degree, 0.0, 1.0) for degree in degrees)
        steps = (
            np.clip(degree[:, None] - 1.0 - np.arange(scores.shape[1]), 0.0, 1.0)
            for degree, scores in zip(degrees, (self._source_steps, self._target_steps), strict=True)
        )
        ends = links.ravel()[self._pair_links]
        return links, *nulls, *steps, np.asarray(ends.prod(axis=1))

    def part_polytope(self) -> PartPolytope:
        """The polytope of all kinds of parts; there is none with pairs of links."""
        return PartPolytope(self)

    def with_part_scores(self, *scores: ArrayLike) -> Self:
        """The same sentences under other scores of all kinds of parts, in the order of `part_scores`."""
        names = ("scores", "source_null", "target_null", "_source_steps", "_target_steps", "_pair_scores")
        if len(scores) != len(names):
            raise ParameterError(f"{self!r}: {len(scores)} arrays of scores were given; part_scores() has {len(names)}")
        new = {
            name: checked_scores(array, f"{self!r}: {name.lstrip('_')}", old.shape)
            for name, array, old in zip(names, scores, self.part_scores(), strict=True)
        }
        for side in ("source", "target"):
            checked_steps(new[f"_{side}_steps"], side, len(new[f"_{side}_steps"]))
        return self._but(**new)
