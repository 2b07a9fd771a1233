"""Chains whose transitions are the same at every position: `FactoredChain`, and `FactoredChains` for a whole corpus.

This is the form in which hidden Markov models and conditional random fields are trained. No array of n k² numbers is
made: what goes in are scores of labels and one table of transitions, what comes out are posteriors of labels and one
table of expected transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, checked_scores
from isogloss.structures.batch import Batch, Stack
from isogloss.structures.chain import Chain, Labels, checked_labels
from isogloss.structures.chain_steps import SharedSteps, StepCounts, aligned_zeros
from isogloss.structures.semiring import DRAW, LOG, MAX, Semiring

__all__ = ["FactoredChain", "FactoredChains", "StepCounts"]

BLOCKS = 16  # pieces that a batch is cut into for threads, each with counts of its own
COUNTERS = 1 << 22  # numbers in the counts of all pieces together, at most


class FactoredChains(Batch[Labels]):
    r"""Many chains over the same labels with the same transitions; for sentence *s*

    .. math:: p(y) \propto \exp\Big(start[y_0] + end[y_{n-1}] + \sum_t nodes_s[t, y_t]
        + \sum_{t \ge 1} transitions[y_{t-1}, y_t]\Big)

    and at order 2 :math:`\sum_{t \ge 2} transitions[y_{t-2}, y_{t-1}, y_t] + \sum_{t \ge 1} pairs[y_{t-1}, y_t]`.

    Parameters
    ----------
    nodes : Stack, or iterable of float64[n, k]
        Log score of each label at each position of each sentence. These are the `scores` that `with_scores` replaces
        and to which `marginals` belong. A Stack is taken as it is, not copied; see also `packed`.
    transitions : float64[k, k] or float64[k, k, k]
        The number of axes tells the order.
    start, end : float64[k], optional
        0 unless given. An empty sentence has neither: its log Z is 0.
    pairs : float64[k, k], optional
        At order 2 only; 0 unless given.

    Notes
    -----
    Time O(n k²) or O(n k³), memory O(n k) or O(n k²) a sentence. Sums over sentences are made in the same order,
    whatever the number of threads.

    Examples
    --------
    >>> nodes, start = [np.zeros((3, 2)), np.zeros((1, 2))], np.log([0.5, 0.5])
    >>> many = FactoredChains(nodes, np.log([[0.9, 0.1], [0.2, 0.8]]), start)
    >>> np.exp(many.log_partition()).round(9).tolist(), many.transition_counts().round(3).tolist()
    ([1.0, 1.0], [[0.945, 0.105], [0.19, 0.76]])
    """

    def __init__(
        self,
        nodes: Stack | Iterable[ArrayLike],
        transitions: ArrayLike,
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        *,
        pairs: ArrayLike | None = None,
    ) -> None:
        self._steps = SharedSteps(transitions, start, end, pairs, "FactoredChains")
        self.scores = nodes if isinstance(nodes, Stack) else Stack.of(nodes, "FactoredChains: nodes", 2)
        shapes = self.scores.shapes
        if shapes.shape[1] != 2 or (shapes[:, 1] != self.k).any():
            raise ParameterError(f"FactoredChains: nodes should be [n, {self.k}] for every sentence")
        if isinstance(nodes, Stack) and nodes.values.size and not nodes.values.max() < np.inf:  # NaN is not, either
            checked_scores(nodes.values, "FactoredChains: nodes.values", nodes.values.shape)

    @classmethod
    def packed(
        cls,
        nodes: Array,
        lengths: ArrayLike,
        transitions: ArrayLike,
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        *,
        pairs: ArrayLike | None = None,
    ) -> Self:
        """From the nodes of all sentences in one array, without copying: float64[Σ lengths, k], lengths int64[n]."""
        sizes = np.asarray(lengths, np.int64)
        values = np.ascontiguousarray(nodes, np.float64)
        if values.ndim != 2 or sizes.ndim != 1 or (sizes < 0).any() or len(values) != sizes.sum():
            raise ParameterError(
                f"FactoredChains.packed: nodes should be [Σ lengths, k], here [{int(sizes.sum())}, k], "
                f"not {list(values.shape)}"
            )
        shapes = np.stack([sizes, np.full(len(sizes), values.shape[1], np.int64)], axis=1)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64) * values.shape[1]
        return cls(Stack(values.reshape(-1), offsets, shapes), transitions, start, end, pairs=pairs)

    # --- what was given

    @property
    def k(self) -> int:
        """Number of labels."""
        return self._steps.k

    @property
    def order(self) -> int:
        """1 or 2."""
        return self._steps.order

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[n_sentences]."""
        return self.scores.shapes[:, 0]

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """int64[n_sentences + 1]: the first position of each sentence among all."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def __repr__(self) -> str:
        return f"FactoredChains({len(self)} sentences, k={self.k}{', order=2' if self.order == 2 else ''})"

    def __getitem__(self, s: int) -> FactoredChain:
        return FactoredChain._of(self.scores[s], self._steps)

    def _remake(self, scores: Stack) -> Self:
        made = type(self).__new__(type(self))
        made._steps, made.scores = self._steps, scores
        return made

    def _take(self, items: NDArray[np.int64]) -> FactoredChains:
        return self._remake(self.scores.take(items))

    # --- the program

    def _sweep(self, semiring: Semiring, u: Array) -> tuple[Array, Array, Array]:
        """Values, derivatives by nodes, float64[positions * k], and by tables, float64[2, contexts * k * k]."""
        from isogloss.structures._numba.chain import factored_chains

        steps = self._steps
        grad, values = np.zeros(len(self.scores.values)), np.empty(len(self))
        blocks = self._blocks
        counts = np.zeros((blocks, *steps.tables.shape))
        given = (self.scores.values, self._starts, steps.k, steps.contexts, steps.tables, steps.start, steps.end)
        _run(factored_chains, blocks, semiring, *given, grad, counts, u, values)
        return values, grad, _added(counts)

    @cached_property
    def _swept(self) -> tuple[Array, Array, Array]:
        """The sweep in LOG, in probabilities as long as they hold."""
        from isogloss.structures._numba.chain_scaled import factored_log

        steps, weights = self._steps, self._steps.weights
        grad, values, blocks = np.zeros(len(self.scores.values)), np.empty(len(self)), self._blocks
        counts, sums = np.zeros((blocks, *steps.tables.shape)), aligned_zeros((blocks, *weights.plain.shape))
        sizes = (steps.k, steps.order, steps.contexts)
        given = (self.scores.values, self._starts, *sizes, steps.tables, steps.start, steps.end)
        flat = (weights.plain.reshape(-1), weights.transposed.reshape(-1), weights.shifts, weights.safe)
        _run(factored_log, blocks, LOG, *given, *flat, grad, sums.reshape(-1), counts, values)
        expected = (_added(sums) * weights.plain)[..., : steps.k].transpose(0, 2, 1, 3)
        return values, grad, _added(counts) + expected.reshape(steps.tables.shape)

    @property
    def _blocks(self) -> int:
        """Pieces of the batch, by its size alone."""
        return max(1, min(len(self), BLOCKS, COUNTERS // max(1, self._steps.tables.size)))

    def _solve(self) -> tuple[Array, Stack]:
        values, grad, _ = self._swept
        return values, self.scores.like(grad)

    def _labels(self, semiring: Semiring, u: Array) -> Ragged:
        values, grad, _ = self._sweep(semiring, u)
        self._refuse_infeasible(values)
        rows = grad.reshape(-1, max(self.k, 1))
        return Ragged(rows.argmax(axis=1).astype(np.int64), self._starts)

    def argmax(self) -> Sequence[Labels]:
        """The best sequence of each sentence: a list of int64[n]."""
        return list(self._labels(MAX, np.empty(0)))

    def sample(self, rng: np.random.Generator) -> Sequence[Labels]:
        """One sequence for each sentence; the same numbers are drawn as by one sentence after the other."""
        return list(self._labels(DRAW, rng.random(int(self._starts[-1]))))

    def node_marginals(self) -> Stack:
        """float64[n, k] for each sentence: posterior of each label at each position. The same as `marginals`."""
        return self.marginals()

    # --- sums over all sentences

    @cached_property
    def _expected(self) -> StepCounts:
        nodes = self.marginals().values.reshape(-1, self.k)
        first, later = self._swept[2].reshape(2, self.k, self._steps.contexts, self.k)
        some = self.lengths > 0
        start, end = nodes[self._starts[:-1][some]].sum(axis=0), nodes[self._starts[1:][some] - 1].sum(axis=0)
        if self.order == 1:
            both = (first + later).reshape(self.k, self.k)
            return StepCounts(both, both, start, end)
        return StepCounts(later.copy(), first[0] + later.sum(axis=0), start, end)

    def counts(self) -> StepCounts:
        """Expected numbers of transitions, pairs, first and last labels, over all sentences."""
        return self._expected

    def transition_counts(self) -> Array:
        """float64[k, k] or float64[k, k, k]: expected number of times that each transition is taken."""
        return self._expected.transitions

    def pair_counts(self) -> Array:
        """float64[k, k]: expected number of times that each label follows each other; at order 1 the transitions."""
        return self._expected.pairs

    def start_counts(self) -> Array:
        """float64[k]: expected number of sentences that begin with each label."""
        return self._expected.start

    def end_counts(self) -> Array:
        """float64[k]: expected number of sentences that end with each label."""
        return self._expected.end

    def _joined(self, structures: Sequence[Any] | Ragged) -> Labels:
        """One sequence for each sentence, all in one vector."""
        rows = structures if isinstance(structures, Ragged) else [np.asarray(y, np.int64) for y in structures]
        self._one_each(rows)  # type: ignore[arg-type]
        lengths = rows.lengths if isinstance(rows, Ragged) else np.array([y.size for y in rows], np.int64)
        for s in np.flatnonzero(lengths != self.lengths)[:1]:
            raise ParameterError(f"{self!r}: sentence {s} has {self.lengths[s]} positions, not {lengths[s]}")
        if isinstance(rows, Ragged):
            joined = np.asarray(rows.flat, np.int64)
        else:
            joined = np.concatenate([np.zeros(0, np.int64), *rows])
        return checked_labels(joined, len(joined), self.k, repr(self))

    def counts_of(self, structures: Sequence[Any] | Ragged) -> StepCounts:
        """Numbers of transitions, pairs, first and last labels in one sequence for each sentence."""
        labels, k, some = self._joined(structures), self.k, self.lengths > 0
        since = np.arange(len(labels)) - np.repeat(self._starts[:-1], self.lengths)
        start, end = labels[self._starts[:-1][some]], labels[self._starts[1:][some] - 1]
        second, third = np.flatnonzero(since >= 1), np.flatnonzero(since >= 2)
        pairs = np.bincount(labels[second - 1] * k + labels[second], minlength=k * k).reshape(k, k).astype(np.float64)
        ends = [np.bincount(ones, minlength=k).astype(np.float64) for ones in (start, end)]
        if self.order == 1:
            return StepCounts(pairs, pairs, ends[0], ends[1])
        triples = (labels[third - 2] * k + labels[third - 1]) * k + labels[third]
        return StepCounts(np.bincount(triples, minlength=k**3).reshape(k, k, k).astype(np.float64), pairs, *ends)

    def score(self, structures: Sequence[Any] | Ragged) -> Array:
        """float64[n_sentences]: log score of one sequence for each sentence, not normalised."""
        labels, steps, k = self._joined(structures), self._steps, self.k
        at = np.arange(len(labels))
        since = at - np.repeat(self._starts[:-1], self.lengths)
        each = self.scores.values.reshape(-1, k)[at, labels] if len(labels) else np.zeros(0)
        each[since == 0] += steps.start[labels[since == 0]]
        last = np.repeat(self._starts[1:], self.lengths) == at + 1
        each[last] += steps.end[labels[last]]
        second, third = np.flatnonzero(since >= 1), np.flatnonzero(since >= 2)
        if self.order == 1:
            each[second] += steps.transitions[labels[second - 1], labels[second]]
        else:
            each[second] += steps.pairs[labels[second - 1], labels[second]]
            each[third] += steps.transitions[labels[third - 2], labels[third - 1], labels[third]]
        return np.array(
            [each[here:there].sum() for here, there in zip(self._starts[:-1], self._starts[1:], strict=True)]
        )

    def log_prob(self, structures: Sequence[Any] | Ragged) -> Array:
        """float64[n_sentences]: log p(y) of one sequence for each sentence."""
        return self.score(structures) - self.log_partition()

    def entropy(self) -> Array:
        """float64[n_sentences]: −Σ p log p in nats."""
        self.log_partition()  # names the sentence that allows nothing, if one does
        return np.array([self[s].entropy() for s in range(len(self))], np.float64)


class FactoredChain(Distribution[Labels]):
    """One chain in the factored form: a distribution over label sequences whose `scores` are those of the nodes.

    Parameters
    ----------
    nodes : float64[n, k]
        Log score of each label at each position: the `scores` that `with_scores` replaces; `marginals` are theirs.
    transitions, start, end, pairs
        As for `FactoredChains`.

    Notes
    -----
    The distribution is that of ``Chain.factored(...)``, which is `chain` here and has marginals of steps. With `Flat`,
    learners see nodes, transitions, pairs, start and end as one vector of parts.

    Examples
    --------
    >>> dist = FactoredChain(np.log([[0.6, 0.4], [0.1, 0.9]]), np.log([[0.9, 0.1], [0.2, 0.8]]))
    >>> dist.argmax().tolist(), dist.marginals().round(3).tolist()
    ([1, 1], [[0.267, 0.733], [0.153, 0.847]])
    """

    def __init__(
        self,
        nodes: ArrayLike,
        transitions: ArrayLike,
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        *,
        pairs: ArrayLike | None = None,
    ) -> None:
        self._shared = SharedSteps(transitions, start, end, pairs, "FactoredChain")
        self.scores = checked_scores(nodes, "FactoredChain: nodes", (None, self.k))

    @classmethod
    def _of(cls, nodes: Array, shared: SharedSteps) -> Self:
        made = cls.__new__(cls)
        made._shared, made.scores = shared, nodes
        return made

    @classmethod
    def batch(
        cls,
        nodes: Stack | Iterable[ArrayLike],
        transitions: ArrayLike,
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        *,
        pairs: ArrayLike | None = None,
    ) -> FactoredChains:
        """Many sentences with the same transitions."""
        return FactoredChains(nodes, transitions, start, end, pairs=pairs)

    @property
    def n(self) -> int:
        """Number of positions."""
        return int(self.scores.shape[0])

    @property
    def k(self) -> int:
        """Number of labels."""
        return self._shared.k

    @property
    def order(self) -> int:
        """1 or 2."""
        return self._shared.order

    def __repr__(self) -> str:
        return f"FactoredChain(n={self.n}, k={self.k}{', order=2' if self.order == 2 else ''})"

    @cached_property
    def _alone(self) -> FactoredChains:
        made = FactoredChains.__new__(FactoredChains)
        shapes = np.array([self.scores.shape], np.int64)
        made._steps = self._shared
        made.scores = Stack(self.scores.reshape(-1), np.array([0, self.scores.size], np.int64), shapes)
        return made

    def steps(self) -> Array:
        """float64[n, k, k] or float64[n, k, k, k]: the score of each step, as `Chain` takes them."""
        n, k, shared = self.n, self.k, self._shared
        out = np.full((n, k, shared.contexts, k), -np.inf)
        if n:
            out[0, 0, 0] = shared.start
            out[1:] = shared.tables[1].reshape(k, shared.contexts, k)
            out[1:2] = shared.tables[0].reshape(k, shared.contexts, k)
            out += self.scores[:, None, None, :]
            out[n - 1] += shared.end
        return out.reshape(n, *[k] * (self.order + 1))

    @cached_property
    def chain(self) -> Chain:
        """The same distribution as a `Chain`, with an array of scores for all steps."""
        return Chain(self.steps())

    def _raise_infeasible(self) -> NoReturn:
        self.chain._raise_infeasible()

    def _solve(self) -> tuple[float, Array]:
        values, grad, _ = self._alone._swept
        if values[0] == -np.inf:
            self._raise_infeasible()
        return float(values[0]), grad.reshape(self.scores.shape)

    def _found(self, semiring: Semiring, u: Array) -> Labels:
        values, grad, _ = self._alone._sweep(semiring, u)
        if values[0] == -np.inf:
            self._raise_infeasible()
        return self._read(grad.reshape(self.scores.shape))

    def argmax(self) -> Labels:
        """int64[n]: the best sequence; among equals, the one with the lowest labels counted from the end."""
        return self._found(MAX, np.empty(0))

    def sample(self, rng: np.random.Generator) -> Labels:
        """int64[n]: one sequence drawn from the distribution."""
        return self._found(DRAW, rng.random(self.n))

    def k_best(self, k: int) -> list[tuple[float, Labels]]:
        """The `k` best sequences with their scores, best first; fewer if fewer are allowed."""
        return self.chain.k_best(k)

    def counts(self) -> StepCounts:
        """Expected numbers of transitions, pairs, first and last labels."""
        self.log_partition()  # says what is missing, if something is
        return self._alone.counts()

    def parts(self, y: ArrayLike) -> Array:
        """float64[n, k]: 1 for the label at each position."""
        out = np.zeros(self.scores.shape)
        out[np.arange(self.n), checked_labels(y, self.n, self.k, repr(self))] = 1.0
        return out

    def _read(self, parts: Array) -> Labels:
        return np.asarray(parts.argmax(axis=1), np.int64) if parts.size else np.zeros(0, np.int64)

    def _remake(self, scores: Array) -> Self:
        return self._of(scores, self._shared)

    def score(self, y: ArrayLike) -> float:
        """Log score of a sequence, not normalised."""
        return float(self._alone.score([y])[0])

    def entropy(self) -> float:
        """−Σ p log p in nats, as log Z less the expected score."""
        value = self.log_partition()
        pairs = zip(self.part_scores(), self.part_marginals(), strict=True)
        return max(0.0, value - sum(float(mu[mu > 0] @ scores[mu > 0]) for scores, mu in pairs))

    # --- kinds of parts, for `Flat`

    def part_scores(self) -> tuple[Array, ...]:
        """Scores of nodes, transitions, first and last labels, and at order 2 of pairs."""
        shared = self._shared
        more = (shared.pairs,) if self.order == 2 else ()
        return (self.scores, shared.transitions, shared.start, shared.end, *more)

    def part_marginals(self) -> tuple[Array, ...]:
        """Expected numbers of the same parts: the derivatives of log Z by their scores."""
        return self._kinds(self.marginals(), self.counts())

    def kinds_of(self, y: ArrayLike) -> tuple[Array, ...]:
        """Numbers of the same parts in a sequence."""
        return self._kinds(self.parts(y), self._alone.counts_of([y]))

    def _kinds(self, nodes: Array, counts: StepCounts) -> tuple[Array, ...]:
        more = (counts.pairs,) if self.order == 2 else ()
        return (nodes, counts.transitions, counts.start, counts.end, *more)

    def with_part_scores(
        self, nodes: Array, transitions: Array, start: Array, end: Array, pairs: Array | None = None
    ) -> FactoredChain:
        """The same sentence with other scores of all kinds of parts."""
        return FactoredChain(nodes, transitions, start, end, pairs=pairs)


def _run(kernel: Callable[..., object], blocks: int, *args: Any) -> None:
    """The blocks on threads; one alone right here, since asking how many threads there are takes longer."""
    if blocks == 1:
        kernel(0, 1, *args)
        return
    with using_threads():
        run_blocks(kernel, blocks, *args)


def _added(counts: Array) -> Array:
    """The sum over the first axis, always in the same order."""
    out: Array = counts[0].copy()
    for more in counts[1:]:
        out += more
    return out
