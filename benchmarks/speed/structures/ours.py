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
    model, data = _crf_model(n, batch, labels)
    weights = np.random.default_rng(0).normal(0, 0.1, model.size)

    def work() -> float:
        return float(model.distributions(weights, data).node_marginals()[0][0, 0])

    return work


def crf(n: int, batch: int, labels: int) -> Work:
    """One evaluation of the likelihood and its gradient, as each step of L-BFGS makes it."""
    model, data = _crf_model(n, batch, labels)
    weights = np.random.default_rng(0).normal(0, 0.1, model.size)

    def work() -> float:
        return float(model.objective(weights, data)[0])

    return work


def _crf_model(n: int, batch: int, labels: int) -> tuple[Any, Any]:
    raise NotImplementedError


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


def threaded(work: Work, threads: int) -> Work:
    """The same work with a number of threads."""

    def run() -> float:
        with using_threads(threads):
            return work()

    return run
