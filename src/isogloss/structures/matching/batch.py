"""`Matchings`: many matchings at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, kept
from isogloss.structures.batch import Batch, Stack, run_sentences
from isogloss.structures.matching import sums
from isogloss.structures.matching.assignment import best_partners_of_required
from isogloss.structures.matching.distribution import Matching
from isogloss.structures.matching.parts import (
    NO_PAIRS,
    Fertility,
    Indices,
    Pairs,
    checked_fertility,
    checked_pairs,
    concave,
    constant,
    no_steps,
)
from isogloss.structures.matching.search import Links, links_at
from isogloss.structures.matching.sums import Convergence, Inference, Sums

__all__ = ["Matchings"]

FEW_CELLS = 2**18  # below, all matchings take a few milliseconds, and handing them to threads would take as long


class Matchings(Batch[Links]):
    """Many matchings of any sizes, worked on together: the batch view of `Matching`.

    Parameters
    ----------
    scores : list of float64[n_source, n_target]
    source_null, target_null : float, or list of what `Matching` takes
    fertility, pairs : as for `Matching`, or a list with one for each sentence
    inference : "auto", "exact" or "bp"

    Examples
    --------
    >>> many = Matchings([np.eye(2), np.zeros((0, 3)), np.ones((1, 2))], source_null=0.5)
    >>> [sorted(links) for links in many.argmax()], many.exact.tolist()
    ([[(0, 0), (1, 1)], [], [(0, 0)]], [True, True, True])
    """

    def __init__(
        self,
        scores: Iterable[ArrayLike],
        source_null: ArrayLike | Sequence[ArrayLike] = 0.0,
        target_null: ArrayLike | Sequence[ArrayLike] = 0.0,
        fertility: Fertility | int | Sequence[Fertility | int | None] | None = None,
        pairs: Pairs | Sequence[Pairs | None] | None = None,
        *,
        inference: Inference = "auto",
    ) -> None:
        self.scores = Stack.of(scores, "Matchings", 2)
        shapes = self.scores.shapes
        self.source_null = _nulls(source_null, shapes[:, 0], "Matchings: source_null")
        self.target_null = _nulls(target_null, shapes[:, 1], "Matchings: target_null")
        self._steps: list[tuple[Array, Array]] | None = None
        if fertility is not None and fertility != 1:
            for_all = isinstance(fertility, (Fertility, int, np.integer))
            each: Sequence[Any] = (
                [fertility] * len(self) if for_all else self._one_each(cast("Sequence[Any]", fertility))
            )
            sizes = shapes.tolist()
            self._steps = [checked_fertility(given, *size) for given, size in zip(each, sizes, strict=True)]
        self._pairs: list[tuple[NDArray[np.int64], Array]] | None = None
        if pairs is not None:
            sizes = [(n, m) for n, m in shapes.tolist()]
            listed = [pairs] * len(self) if isinstance(pairs, Pairs) else self._one_each(pairs)
            self._pairs = [checked_pairs(own, size) for own, size in zip(listed, sizes, strict=True)]
        if inference not in ("auto", "exact", "bp"):
            raise ParameterError(f'Matchings: inference should be "auto", "exact" or "bp", not {inference!r}')
        self.inference: Inference = inference

    _least: list[tuple[Indices, Indices] | None] | None = None  # links that words must have, of clamped matchings

    def __getitem__(self, s: int) -> Matching:
        scores = self.scores[s]
        n, m = scores.shape
        steps = self._steps[s] if self._steps is not None else (no_steps(n), no_steps(m))
        pairs = self._pairs[s] if self._pairs is not None else (NO_PAIRS, constant((0,)))
        one = Matching._made(
            scores=scores, source_null=self.source_null[s], target_null=self.target_null[s], _source_steps=steps[0],
            _target_steps=steps[1], _pair_links=pairs[0], _pair_scores=pairs[1],
            _least=None if self._least is None else self._least[s], inference=self.inference,
        )  # fmt: skip
        if "_sums" in self.__dict__ and self._sums[s].value > -np.inf:
            one.__dict__["_sums"] = self._sums[s]
        return one

    def _remake(self, scores: Stack) -> Self:
        new = object.__new__(type(self))
        kept_fields = ("source_null", "target_null", "_steps", "_pairs", "_least", "inference")
        new.__dict__.update({name: getattr(self, name) for name in kept_fields} | {"scores": scores})
        return new

    def _take(self, items: NDArray[np.int64]) -> Matchings:
        new, chosen = self._remake(self.scores.take(items)), items.tolist()
        new.source_null, new.target_null = self.source_null.take(items), self.target_null.take(items)
        for name in ("_steps", "_pairs", "_least"):
            each = getattr(self, name)
            setattr(new, name, None if each is None else [each[s] for s in chosen])
        return new

    def clamp(self, structures: Sequence[Any]) -> Self:
        """The distributions in which these sets of links alone are allowed; see `Matching.clamp`."""
        each = [self[s].clamp(y) for s, y in enumerate(self._one_each(structures))]
        new = self._remake(Stack.of([one.scores for one in each], "Matchings", 2))
        new._least = [one._least for one in each]
        return new

    # --- the best

    def argmax(self) -> list[Links]:
        """The best set of links of each sentence."""
        if self._pairs is not None:
            return self._one_by_one()
        if self._steps is not None or self._least is not None:
            return self._by_flow()
        return self._by_assignment()

    def _one_by_one(self) -> list[Links]:
        return [self._named(s, self[s].argmax) for s in range(len(self))]

    def _by_assignment(self) -> list[Links]:
        partner, found = self._partners()
        self._refuse_infeasible(np.where(found == 0, 0.0, -np.inf))
        words = np.flatnonzero(partner >= 0)
        starts = self.source_null.offsets
        source = (words - np.repeat(starts[:-1], np.diff(starts))[words]).tolist()
        target, cuts = partner[words].tolist(), np.searchsorted(words, starts).tolist()
        return [frozenset(zip(source[a:b], target[a:b], strict=True)) for a, b in pairwise(cuts)]

    def _partners(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        from isogloss.structures._numba.matching import BOTH_REQUIRED, SOLVED, best_matchings

        nulls = self.source_null, self.target_null
        partner, found = np.empty(len(nulls[0].values), np.int64), np.empty(len(self), np.int64)
        stack = self.scores.values, self.scores.offsets, self.scores.shapes
        words = *(null.values for null in nulls), *(null.offsets for null in nulls)
        if len(self.scores.values) < FEW_CELLS:
            kernel: Any = best_matchings
            kernel(0, 1, *stack, *words, partner, found)
        else:
            run_sentences(best_matchings, len(self), *stack, *words, partner, found)
        for s in np.flatnonzero(found == BOTH_REQUIRED).tolist():
            own = best_partners_of_required(self.scores[s], nulls[0][s], nulls[1][s])
            if own is not None:
                partner[nulls[0].offsets[s] : nulls[0].offsets[s + 1]] = own
                found[s] = SOLVED
        return partner, found

    def partners(self) -> list[NDArray[np.int64]]:
        """The best again, as int64[n_source] for each sentence: the target word of each source word, or −1.

        For matchings with one link a word and no pairs; quicker than sets when there are many.
        """
        if self._steps is not None or self._pairs is not None or self._least is not None:
            raise ParameterError(f"{self!r}: partners are for one link a word and no pairs; take argmax()")
        partner, found = self._partners()
        self._refuse_infeasible(np.where(found == 0, 0.0, -np.inf))
        return np.split(partner, self.source_null.offsets[1:-1]) if len(self) else []

    def _by_flow(self) -> list[Links]:
        from isogloss.structures._numba.matching import INFEASIBLE, best_flows

        flows = [bool(concave(a).all() and concave(b).all()) for a, b in self._tables]
        if not all(flows):
            return self._one_by_one()
        source, target = (Stack.of(tables, "Matchings", 2) for tables in zip(*self._tables, strict=True))
        linked, found = np.zeros(len(self.scores.values), np.bool_), np.empty(len(self), np.int64)
        stacks = [(stack.values, stack.offsets, stack.shapes) for stack in (self.scores, source, target)]
        run_sentences(best_flows, len(self), *stacks[0], *stacks[1], *stacks[2], linked, found)
        self._refuse_infeasible(np.where(found == INFEASIBLE, -np.inf, 0.0))
        out = []
        for s, (n, m) in enumerate(self.scores.shapes.tolist()):
            own = linked[self.scores.offsets[s] : self.scores.offsets[s + 1]].reshape(n, m)
            out.append(links_at(own))
        return out

    @cached_property
    def _tables(self) -> list[tuple[Array, Array]]:
        """Scores of each number of links, for source and target words of each sentence."""
        problems = (self[s]._problem for s in range(len(self)))
        return [(problem.source_table, problem.target_table) for problem in problems]

    def sample(self, rng: np.random.Generator) -> list[Links]:
        """One set of links for each sentence; the same numbers are drawn as by one sentence after the other."""
        return [self._named(s, self[s].sample, rng) for s in range(len(self))]

    # --- the sum

    @cached_property
    def _methods(self) -> list[str]:
        return [self[s]._method for s in range(len(self))]

    @property
    def exact(self) -> NDArray[np.bool_]:
        """bool[n_sentences]: where log Z and marginals are exact, and not from belief propagation."""
        return np.array([method != "bp" for method in self._methods], np.bool_)

    @property
    def convergence(self) -> list[Convergence | None]:
        """How belief propagation ended, for each sentence; None where exact."""
        return [found.convergence for found in self._sums]

    @cached_property
    def _sums(self) -> list[Sums]:
        from isogloss.structures._numba.matching_beliefs import beliefs_of_many
        from isogloss.structures._numba.matching_sums import sums_of_many

        if self._pairs is not None:
            return [sums.sum_up(self[s]._problem, method) for s, method in enumerate(self._methods)]
        tables, starts, sides = self._layout()
        links, degrees = np.zeros(len(self.scores.values)), np.zeros(len(tables))
        values, info = np.zeros(len(self)), np.zeros((len(self), 2))
        stack = self.scores.values, self.scores.offsets, self.scores.shapes, tables, starts, sides
        by_beliefs = ~self.exact
        run_sentences(sums_of_many, len(self), ~by_beliefs, *stack, links, degrees, values)
        settings = constant((0,)), sums.DAMPING, sums.TOLERANCE, sums.ITERATIONS
        run_sentences(beliefs_of_many, len(self), by_beliefs, *stack, *settings, links, degrees, values, info)
        out = []
        for s, (n, m) in enumerate(self.scores.shapes.tolist()):
            a, b, c = int(starts[s, 0]), int(starts[s, 1]), int(starts[s + 1, 0])
            used, change = info[s].tolist()
            convergence = Convergence(int(used), change, change <= sums.TOLERANCE) if by_beliefs[s] else None
            own = links[self.scores.offsets[s] : self.scores.offsets[s + 1]].reshape(n, m)
            source, target = degrees[a:b].reshape(n, sides[s, 0]), degrees[b:c].reshape(m, sides[s, 1])
            out.append(Sums(float(values[s]), own, source, target, np.zeros(0), convergence))
        return out

    def _layout(self) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
        """All tables in one vector, where they start, and their widths: what the kernels over a batch take."""
        widths = np.array([(a.shape[1], b.shape[1]) for a, b in self._tables], np.int64).reshape(-1, 2)
        sizes = self.scores.shapes * widths
        starts = np.zeros((len(self) + 1, 2), np.int64)
        ends = np.cumsum(sizes.ravel()).reshape(-1, 2)
        starts[1:, 0], starts[:-1, 1] = ends[:, 1], ends[:, 0]
        turned = [
            sums.program_cells(n, m, a, b)[1]
            for (n, m), (a, b) in zip(self.scores.shapes.tolist(), widths.tolist(), strict=True)
        ]
        sides = np.concatenate([widths, np.array(turned, np.int64).reshape(-1, 1)], axis=1)
        flat = [table.ravel() for both in self._tables for table in both]
        return kept(np.concatenate(flat) if flat else np.zeros(0)), starts, sides

    def _solve(self) -> tuple[Array, Stack]:
        for s in np.flatnonzero(~self.exact).tolist():
            self._named(s, self[s]._refuse_infeasible)
        found = self._sums
        values = np.array([own.value for own in found], np.float64)
        sums.warn_unless(all(own.convergence is None or own.convergence.converged for own in found), repr(self))
        links = [own.links.ravel() for own in found]
        return values, self.scores.like(np.concatenate(links) if links else np.zeros(0))

    def entropy(self) -> Array:
        """float64[n_sentences]: −Σ p log p in nats."""
        self.log_partition()
        return np.array([self[s].entropy() for s in range(len(self))], np.float64)

    def null_marginals(self) -> list[tuple[Array, Array]]:
        """For each sentence, posteriors of source and target words to have no link."""
        self.log_partition()
        return [self[s].null_marginals() for s in range(len(self))]


def _nulls(null: Any, counts: NDArray[np.int64], place: str) -> Stack:
    """One null score for each word of each sentence."""
    if not isinstance(null, (list, tuple)) and np.ndim(null) == 0:
        if not float(null) < np.inf:
            raise ParameterError(f"{place}: {null}; log scores are finite, or minus infinity for what is forbidden")
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Stack(kept(np.full(int(offsets[-1]), float(null))), offsets, counts.reshape(-1, 1).copy())
    each = list(null)
    if len(each) != len(counts):
        raise ParameterError(f"{place}: {len(each)} were given; give one for each of {len(counts)} sentences")
    pairs = zip(each, counts.tolist(), strict=True)
    stack = Stack.of((np.full(count, own) if np.ndim(own) == 0 else own for own, count in pairs), place, 1)
    wrong = np.flatnonzero(stack.shapes[:, 0] != counts)
    if len(wrong):
        s = int(wrong[0])
        raise ParameterError(f"{place}: sentence {s} has {counts[s]} words, and {stack.shapes[s, 0]} nulls")
    return stack
