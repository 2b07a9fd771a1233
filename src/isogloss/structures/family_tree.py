"""`FamilyTrees`: trees of labelled spans in which every constituent sees the label of the one above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, InfeasibleError
from isogloss.structures.batch import Batch, One, Stack, run_sentences
from isogloss.structures.kbest import checked_k, k_best
from isogloss.structures.span_tree import LabelledSpans, SpanTrees
from isogloss.structures.spans import spans_of

__all__ = ["FamilyTrees", "n_family_parts"]

_SURE = 1e9
"""What a constituent that has to be there earns, in searches for further trees."""


def n_family_parts(lengths: NDArray[np.int64], labels: int) -> NDArray[np.int64]:
    """int64[n_sentences]: how many scores sentences of these lengths have."""
    parts: NDArray[np.int64] = labels * (lengths * (lengths + 1) + 2 * lengths + labels)
    return parts


class FamilyTrees(Batch[LabelledSpans]):
    r"""Distributions over constituent trees of many sentences, in which parents and children see each other's labels.

    .. math:: p(y) \propto \exp \Big( \sum_{(s, b) \in y} label[s, b] + \sum_{(s, b) < (t, a)} below[s, a] + pair[b, a]
        + \sum_{w < a} word[w, a] + \sum_{j | a} split[j, a] \Big)

    where (s, b) < (t, a) is a constituent with label b directly below one with label a, w < a a bare word directly
    below a constituent with label a, and j | a a place between two children of one. Constituents have two or more
    parts, which are constituents or bare words; a single word may have a label; the whole sentence is a constituent.
    Scores of a sentence are one vector: label[spans, L], below[spans, L], word[n, L], split[n, L], pair[L, L], spans
    numbered as by `spans_of`; −∞ forbids.

    Notes
    -----
    Everything is exact, in O(n³ L + n² L²): a label is chosen once for a child, not for every rule that it could be
    part of. Vectors over labels lie in one piece. Structures are sets of (i, j, label).

    References
    ----------
    Hall, Durrett and Klein, Less grammar, more features, ACL 2014 (features of spans and splits); Johnson, PCFG models
    of linguistic tree representations, CL 1998 (labels above). We need no grammar and no binarisation.
    """

    def __init__(self, scores: Stack, lengths: NDArray[np.int64], n_labels: int) -> None:
        sizes = n_family_parts(np.asarray(lengths, np.int64), n_labels)
        if not np.array_equal(np.diff(scores.offsets), sizes):
            raise ParameterError("FamilyTrees: scores should have label, below, word, split and pair of every sentence")
        self.scores = scores.checked("FamilyTrees: scores")
        self.lengths, self.n_labels = np.asarray(lengths, np.int64), n_labels

    def __getitem__(self, s: int) -> Distribution[LabelledSpans]:
        return One(FamilyTrees(self.scores.take(np.array([s])), self.lengths[[s]], self.n_labels))

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, self.lengths, self.n_labels)

    def _take(self, items: NDArray[np.int64]) -> FamilyTrees:
        return FamilyTrees(self.scores.take(items), self.lengths[items], self.n_labels)

    def _solve(self) -> tuple[Array, Stack]:
        from isogloss.structures._numba.family_tree import log_families, sum_families

        values, grad = np.empty(len(self)), np.empty(len(self.scores.values))
        run_sentences(sum_families, len(self), *self._layout(), grad, values)
        if np.isnan(values).any():
            run_sentences(log_families, len(self), *self._layout(), grad, values)
        return values, self.scores.like(grad)

    def _refuse_infeasible(self, values: Array) -> None:
        if (values == -np.inf).any():
            first = int(np.flatnonzero(values == -np.inf)[0])
            raise InfeasibleError(
                f"sentence {first}: {self!r} allows no tree. Give the constituents of at least one finite scores"
            )

    def _layout(self) -> tuple[Any, ...]:
        values = self.scores.values.view()
        values.flags.writeable = False  # so that kernels are compiled for one type
        return values, self.scores.offsets, self.lengths, self.n_labels

    def _best(self) -> tuple[Array, list[LabelledSpans]]:
        from isogloss.structures._numba.family_tree import best_families

        return self._found(best_families)

    def _found(self, kernel: Any, *extra: Any) -> tuple[Array, list[LabelledSpans]]:
        """What a kernel finds, a value and a tree for each sentence; there is room for 2n constituents."""
        starts = np.concatenate([[0], np.cumsum(2 * self.lengths)]).astype(np.int64)
        spans, labels = np.empty(int(starts[-1]), np.int64), np.empty(int(starts[-1]), np.int64)
        counts, values = np.empty(len(self), np.int64), np.empty(len(self))
        run_sentences(kernel, len(self), *self._layout(), starts[:-1], *extra, spans, labels, counts, values)
        self._refuse_infeasible(values)
        found = []
        for s, n in enumerate(self.lengths.tolist()):
            here = slice(int(starts[s]), int(starts[s] + counts[s]))
            ends = spans_of(n)[spans[here]] if n else np.zeros((0, 2), np.int64)
            found.append(frozenset(zip(ends[:, 0].tolist(), ends[:, 1].tolist(), labels[here].tolist(), strict=True)))
        return values, found

    def argmax(self) -> list[LabelledSpans]:
        """The best tree of each sentence."""
        return self._best()[1]

    def best_scores(self) -> Array:
        """float64[n_sentences]: the log score of the best tree of each, not normalised."""
        return self._best()[0]

    def sample(self, rng: np.random.Generator) -> list[LabelledSpans]:
        """One tree for each sentence; the same numbers are drawn as by one sentence after the other."""
        from isogloss.structures._numba.family_tree import draw_families

        return self._found(draw_families, rng.random(4 * int(self.lengths.sum())))[1]

    def k_best(self, k: int) -> list[list[tuple[float, LabelledSpans]]]:
        """The `k` best trees of each sentence with their scores, each once, by one search for each span and tree."""
        checked_k(k, f"{self!r}: k_best")
        return [self._k_best(s, k) for s in range(len(self))]

    def _k_best(self, s: int, k: int) -> list[tuple[float, LabelledSpans]]:
        n, labels, base = int(self.lengths[s]), self.n_labels, np.array(self.scores[s])
        if n == 0:
            return [(0.0, frozenset())]
        ends = spans_of(n)
        places = {(int(i), int(j)): t for t, (i, j) in enumerate(ends.tolist())}

        def best(fixed: Sequence[int], banned: frozenset[int]) -> tuple[float, list[int]] | None:
            """Choices are labels of spans, narrow ones first; −1 for no constituent."""
            scores, asked = base.copy(), 0
            rows = scores[: len(ends) * labels].reshape(-1, labels)
            for t, label in enumerate(fixed):
                own = rows[t, label] + _SURE if label >= 0 else -np.inf
                rows[t] = -np.inf
                rows[t, label if label >= 0 else 0] = own
                asked += label >= 0
            if banned:
                rows[len(fixed), [label for label in banned if label >= 0]] = -np.inf
                rows[len(fixed)] += _SURE * (-1 in banned)
                asked += -1 in banned
            stack = Stack(scores, np.array([0, len(scores)]), np.array([[len(scores)]]))
            one = FamilyTrees(stack, self.lengths[[s]], labels)
            try:
                (value,), (found,) = one._best()
            except InfeasibleError:
                return None
            value -= asked * _SURE
            if value < -_SURE / 2:  # not all that was asked for is there
                return None
            choices = [-1] * len(ends)
            for i, j, label in found:
                choices[places[i, j]] = label
            return float(self._score(s, found)), choices

        found = k_best(best, k)
        return [
            (score, frozenset((int(i), int(j), c) for (i, j), c in zip(ends.tolist(), choices, strict=True) if c >= 0))
            for score, choices in found
        ]

    def _score(self, s: int, y: LabelledSpans) -> float:
        one = FamilyTrees(self.scores.take(np.array([s])), self.lengths[[s]], self.n_labels)
        held = one.parts([y]).values
        used = held > 0
        return float(held[used] @ one.scores.values[used])

    def constituents(self) -> Stack:
        """The posterior of each label of each span: float64[n_spans, n_labels] for each sentence."""
        return labelled(self.marginals(), self.lengths, self.n_labels)

    def most_right(self, *, threshold: float = 0.5) -> list[LabelledSpans]:
        """For each sentence the tree with the highest Σ (posterior − threshold); see `SpanTree.most_right`."""
        return SpanTrees(self.constituents()).most_right(SpanTrees(self.constituents()).scores, threshold=threshold)

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of one tree for each sentence, laid out as `scores`."""
        from isogloss.structures._numba.family_tree import family_parts

        out = np.zeros(len(self.scores.values))
        for s, y in enumerate(self._one_each(structures)):
            n = int(self.lengths[s])
            nodes = sorted(y, key=lambda node: (node[0], -node[1]))
            if any(not (0 <= i < j <= n and 0 <= label < self.n_labels) for i, j, label in nodes):
                raise ParameterError(f"{self!r}: the tree of sentence {s} has constituents outside of it")
            begins, ends, kinds = (np.array([node[k] for node in nodes], np.int64) for k in range(3))
            own = out[self.scores.offsets[s] : self.scores.offsets[s + 1]]
            family_parts(n, self.n_labels, begins, ends, kinds, _parents(nodes), own)
        return self.scores.like(out)


def _parents(nodes: Sequence[tuple[int, int, int]]) -> NDArray[np.int64]:
    """int64[n_nodes]: the node above each, in pre-order; −1 for none."""
    above: list[int] = []
    open_: list[int] = []
    for number, (begin, end, _) in enumerate(nodes):
        while open_ and nodes[open_[-1]][1] <= begin:
            open_.pop()
        if open_ and end > nodes[open_[-1]][1]:
            raise ParameterError(f"FamilyTrees: constituents {nodes[open_[-1]]} and {nodes[number]} cross")
        above.append(open_[-1] if open_ else -1)
        open_.append(number)
    return np.array(above, np.int64)


def labelled(marginals: Stack, lengths: NDArray[np.int64], n_labels: int) -> Stack:
    """The first part of each vector: float64[n_spans, n_labels]."""
    spans = lengths * (lengths + 1) // 2
    offsets = np.concatenate([[0], np.cumsum(spans * n_labels)]).astype(np.int64)
    values = np.empty(int(offsets[-1]))
    for s in range(len(lengths)):
        values[offsets[s] : offsets[s + 1]] = marginals.values[marginals.offsets[s] :][: spans[s] * n_labels]
    return Stack(values, offsets, np.stack([spans, np.full(len(spans), n_labels)], axis=1).astype(np.int64))
