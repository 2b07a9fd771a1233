"""`RuleModel`: a grammar with a weight for each rule, and features of the spans of nodes: max-margin parsing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.sparse import Sparse
from isogloss.learners.margin import Cost
from isogloss.learners.models import Model
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch
from isogloss.structures.cfg import Cfgs

__all__ = ["RuleModel", "constituent_costs"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]


class RuleModel(Model):
    r"""Trees of a grammar, scored by weights of their rules and by features of the spans of their nodes.

    .. math:: score(y) = base(y) + \sum_{rule \in y} w_{rule} + \sum_{(i, j) \in y} w \cdot f(x, i, j)

    A span has the same features whatever its symbol, so that they cost one number a span, however many they are.

    Parameters
    ----------
    trees : Cfgs
        One distribution for each item. Its scores are the base, which has no weight: log probabilities of words given
        their tags, −∞ for what is forbidden.
    spans : Sparse, optional
        A row for each span of each sentence, one sentence after the other.

    References
    ----------
    Taskar, Klein, Collins, Koller and Manning, Max-margin parsing, EMNLP 2004, sections 4 and 5 (BASIC is without
    spans, LEXICAL with words at the edges of spans).

    Examples
    --------
    >>> from isogloss.learners.frank_wolfe import FrankWolfe
    >>> from isogloss.learners.runner import run
    >>> from isogloss.structures.cfg import Cfg, Grammar
    >>> grammar = Grammar(1, [[0, 0, 0]])
    >>> trees = Cfg.many([grammar.scores(3)], grammar)
    >>> right = trees[0].with_scores(grammar.scores(3, inner=[[0], [0], [0], [0], [1], [0]])).argmax()  # a (b c)
    >>> model = RuleModel(trees, Sparse.of([[], [], [], [0], [1], []], 2))
    >>> learner = FrankWolfe(model, [right], constituent_costs(trees, [right]), l2=0.1)
    >>> found = run(learner, learner.init(), iterations=20, should_stop=lambda _, info: info.gap < 1e-9)
    >>> found.state.weights.round(3).tolist()                             # wins by 1: one wrong constituent
    [0.0, -0.5, 0.5]
    """

    def __init__(self, trees: Cfgs, spans: Sparse | None = None) -> None:
        self.trees, self.grammar = trees, trees.grammar
        self._n_rules = len(self.grammar.binary) + len(self.grammar.unary)
        counts = trees.lengths * (trees.lengths + 1) // 2
        self._firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if spans is None:
            spans = Sparse(np.zeros(int(self._firsts[-1]) + 1, np.int64), np.zeros(0, np.int32), 0)
        if spans.n_rows != self._firsts[-1]:
            raise ParameterError(f"RuleModel: {spans.n_rows} rows of features for {self._firsts[-1]} spans")
        self.spans = spans

    @property
    def n_weights(self) -> int:
        """Those of binary rules, of unary rules, and of features of spans."""
        return self._n_rules + self.spans.n_features

    def __len__(self) -> int:
        return len(self.trees)

    def batch(self, weights: NDArray[Any], items: Items) -> Batch[Any]:
        """The distributions of some items."""
        some = self.trees.take(items)
        scores = some.scores.like(some.scores.values.copy())
        rules, others = weights[: self._n_rules], np.asarray(weights[self._n_rules :], np.float64)
        for k, item in enumerate(np.asarray(items).tolist()):
            own = scores[k]
            own[: self._n_rules] += rules
            first, last = self._firsts[item : item + 2].tolist()
            self.grammar.split(own).inner[...] += self.spans.scores(others, first, last)[:, None]
        return some.with_scores(scores.like(kept(scores.values)))

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of `batch`."""
        each, found = batch.scores.like(np.where(np.abs(values) > least, values, 0.0)), []
        for k, item in enumerate(np.asarray(items).tolist()):
            own = each[k]
            used = np.flatnonzero(own[: self._n_rules])
            of_spans = self.grammar.split(own).inner.sum(axis=1)
            first = int(self._firsts[item])
            numbers, amounts = [used], [own[used]]
            for span in np.flatnonzero(of_spans).tolist():
                row = self.spans.indices[self.spans.indptr[first + span] : self.spans.indptr[first + span + 1]]
                numbers.append(row.astype(np.int64) + self._n_rules)
                amounts.append(np.full(len(row), of_spans[span]))
            found.append((np.concatenate(numbers), np.concatenate(amounts)))
        return Gradient.of(found)


def constituent_costs(trees: Cfgs, right: Sequence[Any], free: Sequence[int] = ()) -> list[Cost]:
    """The loss that counts wrong constituents: a symbol over a span that the right tree has not.

    With unary rules, a node counts by half for the symbol that was made and by half for the one that is seen.

    Parameters
    ----------
    trees : Cfgs
    right : sequence of trees
    free : sequence of int
        Symbols that cost nothing, such as tags.

    References
    ----------
    Taskar et al. 2004, section 3 (constituent loss).
    """
    found = []
    for parts in trees.parts(right):
        kinds = trees.grammar.split(parts)
        cost = np.zeros(len(parts))
        own = trees.grammar.split(cost)
        layers = [(own.inner, kinds.inner), (own.outer, kinds.outer)][: 2 if len(kinds.outer) else 1]
        for layer, there in layers:
            layer[...] = (there == 0) / len(layers)
            layer[:, list(free)] = 0.0
        found.append(Cost(cost))
    return found
