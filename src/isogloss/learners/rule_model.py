"""`RuleModel`: a grammar with a weight for each rule, and features of the spans of nodes: max-margin parsing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.rows import gathered
from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.sparse import Sparse
from isogloss.learners.margin import Cost
from isogloss.learners.models import Model
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Listed
from isogloss.structures.cfg import Cfg, Cfgs, Grammar

__all__ = ["RuleModel", "constituent_costs"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]


class RuleModel(Model):
    r"""Trees of a grammar, scored by weights of their rules and by features of the spans of their nodes.

    .. math:: score(y) = base(y) + \sum_{rule \in y} w_{rule} + \sum_{(i, j) \in y} w \cdot f(x, i, j)

    A span has the same features whatever its symbol, so that they cost one number a span, however many they are.

    Parameters
    ----------
    trees : Cfgs, or sequence of Cfg
        One distribution for each item. Its scores are the base, which has no weight: log probabilities of words given
        their tags, −∞ for what is forbidden. In a sequence, each may have a grammar of its own, such as the few rules
        that a coarser look at the sentence has left (`isogloss.structures.cfg.Grammar.part`).
    spans : Sparse, optional
        A row for each span of each sentence, one sentence after the other.
    rules : sequence of int64[R + U], optional
        For each item the weights of the rules of its grammar, binary ones first; the first R + U if not given.
    n_rules : int, optional
        How many rules have weights, if more than are named.

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

    def __init__(
        self,
        trees: Cfgs | Sequence[Cfg],
        spans: Sparse | None = None,
        *,
        rules: Sequence[Items] | None = None,
        n_rules: int | None = None,
    ) -> None:
        self.trees, self._rules = trees, rules
        grammars = [trees.grammar] if isinstance(trees, Cfgs) else [one.grammar for one in trees]
        known = max((_n_rules(grammar) for grammar in grammars), default=0)
        if rules is not None:
            if [_n_rules(self._grammar(item)) for item in range(len(trees))] != [len(own) for own in rules]:
                raise ParameterError("RuleModel: rules should be a number for each rule of the grammar of each item")
            known = max((int(own.max(initial=-1)) + 1 for own in rules), default=0)
            if any(own.min(initial=0) < 0 for own in rules):
                raise ParameterError("RuleModel: numbers of rules should not be negative")
        elif len({id(grammar) for grammar in grammars}) > 1:
            raise ParameterError("RuleModel: items have grammars of their own; say which rules are which with rules=")
        self._n_rules = known if n_rules is None else n_rules
        if self._n_rules < known:
            raise ParameterError(f"RuleModel: {n_rules} rules, and the grammars have {known}")
        lengths = trees.lengths if isinstance(trees, Cfgs) else np.array([one.n for one in trees], np.int64)
        self._firsts = np.concatenate([[0], np.cumsum(lengths * (lengths + 1) // 2)]).astype(np.int64)
        if spans is None:
            spans = Sparse(np.zeros(int(self._firsts[-1]) + 1, np.int64), np.zeros(0, np.int32), 0)
        if spans.n_rows != self._firsts[-1]:
            raise ParameterError(f"RuleModel: {spans.n_rows} rows of features for {self._firsts[-1]} spans")
        self.spans = spans

    def _grammar(self, item: int) -> Grammar:
        return self.trees.grammar if isinstance(self.trees, Cfgs) else self.trees[item].grammar

    def _numbers(self, item: int) -> Items:
        """The weights of the rules of an item."""
        return np.arange(_n_rules(self._grammar(item))) if self._rules is None else self._rules[item]

    @property
    def n_weights(self) -> int:
        """Those of binary rules, of unary rules, and of features of spans."""
        return self._n_rules + self.spans.n_features

    def __len__(self) -> int:
        return len(self.trees)

    def batch(self, weights: NDArray[Any], items: Items) -> Batch[Any]:
        """The distributions of some items."""
        some = self._some(items)
        scores = some.scores.like(some.scores.values.copy())
        others = np.asarray(weights[self._n_rules :], np.float64)
        for k, item in enumerate(np.asarray(items).tolist()):
            own, numbers = scores[k], self._numbers(item)
            own[: len(numbers)] += weights[numbers]
            first, last = self._firsts[item : item + 2].tolist()
            self._grammar(item).split(own).inner[...] += self.spans.scores(others, first, last)[:, None]
        return some.with_scores(scores.like(kept(scores.values)))

    def _some(self, items: Items) -> Batch[Any]:
        if isinstance(self.trees, Cfgs):
            return self.trees.take(items)
        found = [self.trees[item] for item in np.asarray(items).tolist()]
        return found[0].batch if len(found) == 1 else Listed(found)

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features over the parts of `batch`."""
        each, found = batch.scores.like(np.where(np.abs(values) > least, values, 0.0)), []
        for k, item in enumerate(np.asarray(items).tolist()):
            own, numbers = each[k], self._numbers(item)
            used = np.flatnonzero(own[: len(numbers)])
            of_spans = self._grammar(item).split(own).inner.sum(axis=1)
            spans = np.flatnonzero(of_spans)
            fresh, places = gathered(self.spans.indptr, spans + self._firsts[item])
            features = self.spans.indices[places].astype(np.int64) + self._n_rules
            amounts = np.repeat(of_spans[spans], np.diff(fresh))
            found.append((np.concatenate([numbers[used], features]), np.concatenate([own[used], amounts])))
        return Gradient.of(found)

    def support(self, items: Items) -> Items:
        """The weights that the items depend on, each once: rules, and features of spans that some symbol may have."""
        found = [np.zeros(0, np.int64)]
        for item in np.asarray(items).tolist():
            scores = self._some(np.array([item])).scores[0]
            open_ = (self._grammar(item).split(scores).inner > -np.inf).any(axis=1)
            _, places = gathered(self.spans.indptr, np.flatnonzero(open_) + self._firsts[item])
            found += [self._numbers(item), self.spans.indices[places].astype(np.int64) + self._n_rules]
        return np.unique(np.concatenate(found))


def _n_rules(grammar: Grammar) -> int:
    return len(grammar.binary) + len(grammar.unary)


def constituent_costs(trees: Cfgs | Sequence[Cfg], right: Sequence[Any], free: Any = ()) -> Sequence[Cost]:
    """The loss that counts wrong constituents: a symbol over a span that the right tree has not.

    With unary rules, a node counts by half for the symbol that was made and by half for the one that is seen.

    Parameters
    ----------
    trees : Cfgs, or sequence of Cfg
    right : sequence of trees
    free : sequence of int, or one for each item
        Symbols that cost nothing, such as tags.

    References
    ----------
    Taskar et al. 2004, section 3 (constituent loss).
    """
    several = not isinstance(trees, Cfgs) and len(free) > 0 and np.ndim(free[0]) == 1
    return _Costs(trees, right, free if several else [free] * len(right))


class _Costs(Sequence[Cost]):
    """Costs of items, made when they are asked for: all at once they take as much room as all charts."""

    def __init__(self, trees: Cfgs | Sequence[Cfg], right: Sequence[Any], free: Sequence[Any]) -> None:
        self.trees, self.right, self.free = trees, right, free

    def __len__(self) -> int:
        return len(self.right)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self[k] for k in range(len(self))[item]]
        one = self.trees[item]
        grammar = one.grammar
        kinds = grammar.split(grammar.counts(self.right[item], one.n))
        cost = np.zeros(grammar.n_parts(one.n))
        own = grammar.split(cost)
        layers = [(own.inner, kinds.inner), (own.outer, kinds.outer)][: 2 if len(kinds.outer) else 1]
        for layer, there in layers:
            layer[...] = (there == 0) / len(layers)
            layer[:, list(self.free[item])] = 0.0
        return Cost(cost)
