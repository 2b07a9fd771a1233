"""Chains over lists of labels: `Lattices` with scores of all parts, `FactoredLattices` with shared transitions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.ragged import Ragged
from isogloss.data.rows import gathered
from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, InfeasibleError, kept, numbers
from isogloss.structures.batch import Batch, Stack, run_sentences
from isogloss.structures.kbest import checked_k
from isogloss.structures.lattice_parts import LatticeParts
from isogloss.structures.semiring import DRAW, MAX, Semiring

if TYPE_CHECKING:
    from isogloss.structures._numba.lattices import Lists

__all__ = ["FactoredLattices", "Lattice", "Lattices"]

Labels = NDArray[np.int64]
SENTENCES_PER_BLOCK, BLOCKS = 64, 16  # pieces of a batch for threads, each with counts of its own
COUNTERS = 1 << 22  # numbers in the counts of all blocks together, at most


class _OverLists(Batch[Labels]):
    """What both kinds share: sequences are made of the labels of `layout`, and scores begin with those of nodes."""

    layout: LatticeParts

    @abstractmethod
    def _paths(self, semiring: Semiring, u: Array) -> tuple[Labels, Array]:
        """The best or drawn label of every position, and ⊕ of every sentence."""

    def __getitem__(self, s: int) -> Lattice:
        if not -len(self) <= s < len(self):
            raise IndexError(f"{self!r}: no sentence {s}")
        return Lattice(self._take(np.array([s % len(self)])))

    @abstractmethod
    def _take(self, items: NDArray[np.int64]) -> Self: ...

    def _labels(self, semiring: Semiring, u: Array) -> list[Labels]:
        labels, values = self._paths(semiring, u)
        self._refuse_infeasible(values)
        return list(Ragged(labels, self.layout.offsets))

    def argmax(self) -> Sequence[Labels]:
        """The best labels of each sentence: a list of int64[n]."""
        return self._labels(MAX, np.empty(0))

    def sample(self, rng: np.random.Generator) -> Sequence[Labels]:
        """Labels for each sentence; the same numbers are drawn as by one sentence after the other."""
        return self._labels(DRAW, rng.random(self.layout.n_positions))

    def best(self) -> Labels:
        """int64[n_positions]: the best labels of all sentences, one after the other."""
        labels, values = self._paths(MAX, np.empty(0))
        self._refuse_infeasible(values)
        return labels

    def _joined(self, structures: Sequence[Any]) -> Labels:
        """Labels for each sentence, all in one vector."""
        rows = [np.asarray(y, np.int64).reshape(-1) for y in self._one_each(structures)]
        for s in np.flatnonzero([len(y) for y in rows] != self.layout.lengths)[:1]:
            raise ParameterError(f"{self!r}: sentence {s} has {self.layout.lengths[s]} positions, not {len(rows[s])}")
        return np.concatenate([np.zeros(0, np.int64), *rows])

    def log_prob(self, structures: Sequence[Any]) -> Array:
        """float64[n_sentences]: log p(y) of the labels of each sentence."""
        return self.score(structures) - self.log_partition()

    @abstractmethod
    def score(self, structures: Sequence[Any]) -> Array:
        """float64[n_sentences]: log score of the labels of each sentence, not normalised."""

    @abstractmethod
    def _whole(self) -> tuple[Lists, Array]:
        """Lists and scores of all parts, for kernels."""

    def k_best(self, k: int) -> list[list[tuple[float, Labels]]]:
        """The `k` best sequences of each sentence with their scores, best first; fewer if fewer are allowed."""
        from isogloss.structures._numba.lattice_kbest import best_sequences

        lengths = self.layout.lengths
        size = _room(checked_k(k, f"{self!r}: k_best"), self.layout)
        found, labels = np.empty((len(self), size)), np.zeros(int(lengths.sum()) * size, np.int64)
        lists, scores = self._whole()
        run_sentences(best_sequences, len(self), lists, scores, size, found, labels)
        self._refuse_infeasible(found[:, 0])
        starts = size * self.layout.offsets
        return [
            [
                (float(found[s, c]), labels[starts[s] + c * n : starts[s] + (c + 1) * n].copy())
                for c in np.flatnonzero(found[s] > -np.inf).tolist()
            ]
            for s, n in enumerate(lengths.tolist())
        ]


def _room(k: int, layout: LatticeParts) -> int:
    """`k`, or the most sequences that any sentence has."""
    logs = np.concatenate([[0.0], np.cumsum(np.log2(np.diff(layout.starts)))])
    most = float((logs[layout.offsets[1:]] - logs[layout.offsets[:-1]]).max(initial=0.0))
    return min(k, round(2**most) + 1) if most < 40 else k


class Lattices(_OverLists):
    r"""Distributions over sequences of labels, many at once, where each position has a list of labels of its own.

    .. math:: p(y) \propto \exp \Big( \sum_t s_t(y_t) + \sum_{t \ge 1} s_t(y_{t-1}, y_t)
        + \sum_{t \ge 2} s_t(y_{t-2}, y_{t-1}, y_t) \Big)

    over the sequences that `LatticeParts` allow; the last sum at order 2 only.

    Parameters
    ----------
    layout : LatticeParts
    scores : float64[n_parts]
        Taken as they are, not copied.

    Notes
    -----
    Exact. Sums run in scaled probabilities; where something that was rounded to 0 could matter, again in logarithms.

    Examples
    --------
    >>> parts = LatticeParts.of([[[3, 5], [0], [3, 5]], [[1]]])
    >>> scores = np.zeros(parts.n_parts)
    >>> scores[parts.node_places[parts.labels == 5]] = np.log(3)
    >>> many = Lattices(parts, scores)
    >>> np.exp(many.log_partition()).round(6).tolist(), [y.tolist() for y in many.argmax()]
    ([16.0, 1.0], [[5, 0, 5], [1]])
    >>> many.marginals()[0][:5].round(6).tolist()                        # of nodes
    [0.25, 0.75, 1.0, 0.25, 0.75]
    """

    def __init__(self, layout: LatticeParts, scores: Array) -> None:
        self.layout = layout
        self.scores = layout.stack(kept(np.ascontiguousarray(numbers(scores, "Lattices")))).checked("Lattices")

    def _whole(self) -> tuple[Lists, Array]:
        return self.layout.lists, self.scores.values

    def _remake(self, scores: Stack) -> Self:
        return type(self)(self.layout, scores.values)

    def _take(self, items: NDArray[np.int64]) -> Self:
        return type(self)(self.layout.take(items), self.scores.take(items).values)

    def _solve(self) -> tuple[Array, Stack]:
        from isogloss.structures._numba.lattices import lattice_sums

        marginals, values = np.empty(self.layout.n_parts), np.empty(len(self))
        run_sentences(lattice_sums, len(self), self.layout.lists, self.scores.values, marginals, values)
        return values, self.scores.like(marginals)

    def _paths(self, semiring: Semiring, u: Array) -> tuple[Labels, Array]:
        from isogloss.structures._numba.lattices import lattice_paths

        labels, values = np.zeros(self.layout.n_positions, np.int64), np.empty(len(self))
        run_sentences(lattice_paths, len(self), semiring, self.layout.lists, self.scores.values, u, labels, values)
        return labels, values

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of the labels of each sentence, laid out as `scores`."""
        return self.scores.like(self.layout.indicate(self._joined(structures)))

    def score(self, structures: Sequence[Any]) -> Array:
        """float64[n_sentences]: log score of the labels of each sentence, not normalised."""
        used = self.parts(structures)
        return np.array([s[p > 0].sum() for p, s in zip(used, self.scores, strict=True)], np.float64)


class FactoredLattices(_OverLists):
    r"""Chains over lists of labels with the same transitions everywhere: hidden Markov models with a dictionary.

    .. math:: p(y) \propto \exp \sum_t \big( nodes_t(y_t) + transitions(y_{t-1}, y_t) \big)

    and at order 2 :math:`transitions(y_{t-2}, y_{t-1}, y_t)`, where label k stands for the places before a sentence. No
    vector of edges or triples is made: what goes in are scores of entries and one table, and what comes out are
    posteriors of entries and one table of expected transitions.

    Parameters
    ----------
    layout : LatticeParts
        Its order is that of the transitions.
    nodes : float64[n_entries]
        The `scores` that `with_scores` replaces, and to which `marginals` belong. Taken as they are, not copied.
    transitions : float64[k + 1, k] or float64[k + 1, k + 1, k]
        The last axis is the label, those before it the labels before, in the order of the text.

    Examples
    --------
    >>> parts = LatticeParts.of([[[0, 1], [1], [0, 1]]])
    >>> moves = np.log([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])             # the last row begins a sentence
    >>> many = FactoredLattices(parts, np.zeros(5), moves)
    >>> many.marginals()[0].round(4).tolist(), many.counts().round(4).tolist()
    ([0.1111, 0.8889, 1.0, 0.2, 0.8], [[0.0, 0.1111], [0.2, 1.6889], [0.1111, 0.8889]])
    """

    def __init__(self, layout: LatticeParts, nodes: Array, transitions: ArrayLike) -> None:
        table = np.array(numbers(transitions, "FactoredLattices: transitions"), order="C")
        k = table.shape[-1] if table.ndim else 0
        if table.shape != (k + 1,) * layout.order + (k,) or np.isnan(table).any() or (table == np.inf).any():
            wanted = "[k + 1, k]" if layout.order == 1 else "[k + 1, k + 1, k]"
            raise ParameterError(
                f"FactoredLattices: transitions should be {wanted} log scores, not {list(table.shape)}"
            )
        if layout.n_entries and not (layout.labels.min() >= 0 and layout.labels.max() < k):
            raise ParameterError(f"FactoredLattices: labels should be numbers from 0 to {k - 1}")
        self.layout, self.k, self.transitions = layout, k, kept(table)
        values = kept(np.ascontiguousarray(numbers(nodes, "FactoredLattices: nodes")))
        self.scores = layout.node_stack(values).checked("FactoredLattices: nodes")

    def _whole(self) -> tuple[Lists, Array]:
        return self.lattices()._whole()

    def _remake(self, scores: Stack) -> Self:
        return type(self)(self.layout, scores.values, self.transitions)

    def _take(self, items: NDArray[np.int64]) -> Self:
        return type(self)(self.layout.take(items), self.scores.take(items).values, self.transitions)

    def lattices(self) -> Lattices:
        """The same distributions with scores of all parts."""
        layout, labels, table = self.layout, self.layout.labels, self.transitions
        scores = np.zeros(layout.n_parts)
        scores[layout.node_places] = self.scores.values
        first = layout.offsets[:-1][layout.lengths > 0]
        begin = gathered(layout.starts, first)[1]  # entries
        scores[layout.node_places[begin]] += table[(self.k,) * layout.order][labels[begin]]
        before, own = labels[layout.edges].T
        if layout.order == 1:
            scores[layout.edge_places] = table[before, own]
            return Lattices(layout, scores)
        second = np.isin(layout.positions[layout.edges[:, 1]], first + 1)
        scores[layout.edge_places[second]] = table[self.k, before[second], own[second]]
        scores[layout.triple_places] = table[tuple(labels[layout.triples].T)]
        return Lattices(layout, scores)

    @cached_property
    def _swept(self) -> tuple[Array, Array, Array]:
        """log Z, marginals of nodes, and expected transitions of all sentences."""
        from isogloss.structures._numba.lattices import factored_sums

        logs = self.transitions.reshape(-1)
        top = float(logs.max(initial=-np.inf))
        top = top if top > -np.inf else 0.0
        blocks = max(1, min(BLOCKS, len(self) // SENTENCES_PER_BLOCK, COUNTERS // max(1, len(logs))))
        marginals, values = np.empty(self.layout.n_entries), np.empty(len(self))
        counts = np.zeros((blocks, len(logs)))
        with using_threads():
            run_blocks(
                factored_sums, blocks, self.layout.node_lists, self.k, self.scores.values, np.exp(logs - top), logs,
                top, marginals, counts, values,
            )  # fmt: skip
        return values, marginals, counts.sum(axis=0).reshape(self.transitions.shape)

    def _solve(self) -> tuple[Array, Stack]:
        values, marginals, _ = self._swept
        return values, self.scores.like(marginals)

    def counts(self) -> Array:
        """Expected numbers of transitions in all sentences, in the form of `transitions`."""
        self.log_partition()  # names the sentence that allows nothing, if one does
        return self._swept[2]

    def _paths(self, semiring: Semiring, u: Array) -> tuple[Labels, Array]:
        from isogloss.structures._numba.lattices import factored_paths

        labels, values = np.zeros(self.layout.n_positions, np.int64), np.empty(len(self))
        given = (self.layout.node_lists, self.k, self.scores.values, self.transitions.reshape(-1))
        run_sentences(factored_paths, len(self), semiring, *given, u, labels, values)
        return labels, values

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Nodes of the labels of each sentence, laid out as `scores`."""
        out = np.zeros(self.layout.n_entries)
        out[self.layout.find(self._joined(structures))] = 1.0
        return self.scores.like(out)

    def score(self, structures: Sequence[Any]) -> Array:
        """float64[n_sentences]: log score of the labels of each sentence, not normalised."""
        labels, layout = self._joined(structures), self.layout
        since = np.arange(len(labels)) - np.repeat(layout.offsets[:-1], layout.lengths)
        before = [np.where(since >= back, np.roll(labels, back), self.k) for back in range(layout.order, 0, -1)]
        each = self.scores.values[layout.find(labels)] + self.transitions[(*before, labels)]
        return np.array([row.sum() for row in Ragged(each, layout.offsets)], np.float64)

    def entropy(self) -> Array:
        """float64[n_sentences]: −Σ p log p in nats."""
        return self.lattices().entropy()


class Lattice(Distribution[Labels]):
    """One sentence of `Lattices` or `FactoredLattices`: ``many[s]``.

    Examples
    --------
    >>> parts = LatticeParts.of([[[0], [1, 2]], [[3, 5], [0], [3, 5]]])
    >>> dist = Lattices(parts, np.arange(parts.n_parts, dtype=float) ** 2)[1]
    >>> dist.argmax().tolist(), [(score, y.tolist()) for score, y in dist.k_best(2)]
    ([5, 0, 5], [(456.0, [5, 0, 5]), (424.0, [3, 0, 5])])
    """

    def __init__(self, batch: _OverLists) -> None:
        if len(batch) != 1:
            raise ParameterError(f"Lattice: a batch of one sentence is needed, not {batch!r}; take one: batch[s]")
        self.batch, self.scores = batch, batch.scores[0]

    @property
    def layout(self) -> LatticeParts:
        """The labels that positions may have."""
        return self.batch.layout

    def __repr__(self) -> str:
        order = ", order=2" if self.layout.order == 2 else ""
        return f"Lattice(n={self.layout.n_positions}, {self.layout.n_entries} labels{order})"

    def _solve(self) -> tuple[float, Array]:
        values, marginals = self.batch._solve()
        self._check(values)
        return float(values[0]), marginals.values

    def _check(self, values: Array) -> None:
        if values[0] == -np.inf:
            raise InfeasibleError(f"{self!r}: no sequence of labels is allowed. Give at least one a finite score")

    def _path(self, semiring: Semiring, u: Array) -> Labels:
        labels, values = self.batch._paths(semiring, u)
        self._check(values)
        return labels

    def argmax(self) -> Labels:
        """The best labels: int64[n]."""
        return self._path(MAX, np.empty(0))

    def sample(self, rng: np.random.Generator) -> Labels:
        """Labels drawn from the distribution."""
        return self._path(DRAW, rng.random(self.layout.n_positions))

    def parts(self, y: ArrayLike) -> Array:
        """1 for each part that the labels have, 0 elsewhere, laid out as `scores`."""
        return self.batch.parts([y]).values

    def score(self, y: ArrayLike) -> float:
        """Log score of labels, not normalised."""
        return float(self.batch.score([y])[0])

    def entropy(self) -> float:
        """−Σ p log p in nats."""
        if isinstance(self.batch, FactoredLattices):
            return self.batch.lattices()[0].entropy()
        return super().entropy()

    def k_best(self, k: int) -> list[tuple[float, Labels]]:
        """The `k` best sequences with their scores, best first; fewer if fewer are allowed."""
        self._check(self.batch._paths(MAX, np.empty(0))[1])
        return self.batch.k_best(k)[0]

    def _read(self, parts: Array) -> Labels:
        layout = self.layout
        rows = Ragged(parts[: layout.n_entries], layout.starts)
        entries = [int(layout.starts[t]) + int(np.argmax(row)) for t, row in enumerate(rows)]
        return np.asarray(layout.labels[np.array(entries, np.int64)])

    def _remake(self, scores: Array) -> Self:
        return type(self)(self.batch._remake(self.batch.scores.like(scores)))
