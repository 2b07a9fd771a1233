"""Our side of each problem: a function that prepares, and returns the work to be clocked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.speed.structures import problems
from isogloss.engine.threads import using_threads

Work = Callable[[], float]


def chain(n: int, batch: int, labels: int) -> Work:
    """Scores, log Z and all node marginals of a tagger with 8 attributes a position, as crfsuite's tagger has them."""
    model, _ = _crf(n, batch, labels)
    weights = np.random.default_rng(0).normal(0, 0.1, model.n_weights)

    def work() -> float:
        many = model.distributions(weights)
        many.log_partition()
        return float(many.node_marginals()[0][0, 0])

    return work


def crf(n: int, batch: int, labels: int) -> Work:
    """One evaluation of the likelihood and its gradient, as each step of L-BFGS makes it."""
    from isogloss.learners.loglinear import Likelihood

    model, gold = _crf(n, batch, labels)
    objective = Likelihood(model, gold=list(gold))
    weights = np.random.default_rng(0).normal(0, 0.1, model.n_weights)
    gradient = np.zeros(model.n_weights)

    def work() -> float:
        gradient[:] = 0.0
        return float(objective.add_gradient(weights, gradient))

    return work


def crf_loss(n: int, batch: int, labels: int) -> float:
    """The loss that L-BFGS ends at, to compare with crfsuite's: the same objective on the same features."""
    from isogloss.learners.loglinear import Lbfgs, Likelihood
    from isogloss.learners.runner import run

    model, gold = _crf(n, batch, labels)
    learner = Lbfgs(Likelihood(model, gold=list(gold)), l2=2.0)  # crfsuite's c2 is the whole factor of |w|^2
    return -run(learner, learner.init(), iterations=200, tolerance=1e-9).trace[-1]


def _crf(n: int, batch: int, labels: int) -> tuple[Any, Any]:
    from isogloss.features.sparse import Sparse
    from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures

    attributes, gold = problems.tagging(n, batch, labels)
    used, index = np.unique(attributes, return_inverse=True)  # crfsuite numbers those that occur
    rows = index.reshape(batch * n, problems.ATTRIBUTES)
    sparse = Sparse.of([np.unique(row) for row in rows], len(used))
    features = NodeFeatures(sparse, LabelPairs.all(len(used), labels))
    return ChainModel(features, np.full(batch, n), ends=False), gold


def projective(n: int, batch: int, labels: int) -> Work:
    from isogloss.structures import ProjectiveTree

    scores = list(problems.trees(n, batch))

    def work() -> float:
        many = ProjectiveTree.batch(scores)
        many.log_partition()
        return float(many.marginals()[0][0, 1])

    return work


def spanning(n: int, batch: int, labels: int) -> Work:
    from isogloss.structures import SpanningTree

    scores = list(problems.trees(n, batch))

    def work() -> float:
        many = SpanningTree.batch(scores)
        many.log_partition()
        return float(many.marginals()[0][0, 1])

    return work


def spans(n: int, batch: int, labels: int) -> Work:
    """log Z and marginals of binary trees all of whose spans have a label."""
    from isogloss.structures import SpanTree
    from isogloss.structures.spans import spans_of

    starts, ends = spans_of(n).T
    scores = [one[starts, ends - 1] for one in problems.spans(n, batch, labels)]

    def work() -> float:
        many = SpanTree.batch(scores, arity="binary")
        many.log_partition()
        return float(many.marginals()[0][n].sum())

    return work


def grammar(n: int, batch: int, labels: int) -> Work:
    """log Z and marginals of a dense grammar in normal form."""
    from isogloss.structures import Cfg, Grammar

    tags, weights, roots = problems.grammar(n, batch, labels)
    rules = np.argwhere(np.ones(weights.shape, bool))
    of, scores = Grammar(2 * labels, rules), []
    for one in tags:
        inner = np.full((n * (n + 1) // 2, 2 * labels), -np.inf)
        inner[:n, labels:], inner[n:, :labels] = one, 0.0
        inner[-1, :labels] = roots
        scores.append(of.scores(n, binary=weights.ravel(), inner=inner))

    def work() -> float:
        many = Cfg.many(scores, of)
        many.marginals()
        return float(many.log_partition()[0])

    return work


def matching(n: int, batch: int, labels: int) -> Work:
    from isogloss.structures import Matching

    scores = list(problems.matchings(n, batch))
    return lambda: float(sum(len(Matching(one).argmax()) for one in scores))


def scipy_matching(n: int, batch: int, labels: int) -> Work:
    """The same assignments by SciPy alone: negative scores are worth nothing, so that words may stay alone."""
    from scipy.optimize import linear_sum_assignment

    scores = list(problems.matchings(n, batch))

    def work() -> float:
        links = 0
        for one in scores:
            gains = np.maximum(one, 0.0)
            rows, columns = linear_sum_assignment(gains, maximize=True)
            links += int((gains[rows, columns] > 0).sum())
        return float(links)

    return work


def itg(n: int, batch: int, labels: int) -> Work:
    """log Z and marginals of the normal form with nulls, every cell."""
    return _itg(n, batch, pruned=False)


def itg_pruned(n: int, batch: int, labels: int) -> Work:
    """The same with the pruning of Haghighi et al. 2009 from posteriors of two directions."""
    return _itg(n, batch, pruned=True)


def _itg(n: int, batch: int, *, pruned: bool) -> Work:
    from isogloss.structures import Itg

    forward, backward = problems.posteriors(n, n)
    dist = Itg(np.log(np.sqrt(forward * backward)), np.full(n, -3.0), np.full(n, -3.0))
    if pruned:
        dist = dist.prune(forward, backward)

    def work() -> float:
        fresh = dist.with_scores(dist.scores)
        fresh.marginals()
        return float(fresh.log_partition())

    return work


ITERATIONS = 5


def bp(families: str) -> Callable[[int, int, int], Work]:
    """One sentence, five iterations of belief propagation with the factors named."""

    def prepare(n: int, batch: int, labels: int) -> Work:
        from isogloss.structures import FactorGraph

        rng, graph = np.random.default_rng(0), FactorGraph()
        links = graph.links(n)
        graph.unary(links, problems.trees(n, 1)[0])
        graph.tree(links, projective="ptree" in families)
        if "grand" in families:
            i, j, k = (axis.ravel() for axis in np.indices((n + 1, n + 1, n + 1)))
            real = (i != j) & (j != k) & (i != k) & (j > 0) & (k > 0)
            i, j, k = i[real], j[real], k[real]
            graph.pairwise(links[i, j], links[j, k], rng.normal(0, 0.3, len(i)))
        if "nocross" in families:
            graph.no_cross(links, np.full((n, n), -1.0))
        graph.run(iterations=1, tolerance=0.0)

        def work() -> float:
            found = graph.run(iterations=ITERATIONS, tolerance=0.0)
            return float(found.probabilities(links)[0, 1])

        return work

    return prepare


def threaded(work: Work, threads: int) -> Work:
    """The same work with a number of threads."""

    def run() -> float:
        with using_threads(threads):
            return work()

    return run
