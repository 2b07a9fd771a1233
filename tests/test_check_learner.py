"""`check_learner` finds what is wrong with a learner, and EM keeps its laws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from isogloss.features import Gradient
from isogloss.learners import em
from isogloss.structures import Chain
from isogloss.testing import check_gradient, check_learner


class State(NamedTuple):
    weights: np.ndarray
    iteration: int = 0


class Info(NamedTuple):
    objective: float


class Climber:
    """Half of the way to the top of −‖w − goal‖² in each step; `flaw` says what it does wrong."""

    def __init__(self, flaw=None, goal=(1.0, 2.0)):
        self.flaw, self.goal, self.calls = flaw, np.array(goal), 0

    def step(self, state):
        self.calls += 1
        weights = state.weights if self.flaw == "in place" else state.weights.copy()
        weights += 0.5 * (self.goal - weights)
        if self.flaw == "memory":
            weights += 1e-12 * self.calls
        if self.flaw == "threads":
            from isogloss.engine.threads import using_threads

            with using_threads() as threads:
                weights *= 1 + 1e-15 * threads
        value = -float(((weights - self.goal) ** 2).sum())
        value = {"falls": -value, "nan": np.nan}.get(self.flaw, value)
        return State(weights, state.iteration + (0 if self.flaw == "count" else 1)), Info(value)

    def dump(self, state):
        weights = state.weights.astype(np.float32) if self.flaw == "rounding" else state.weights
        return {"weights": weights}, {"iteration": state.iteration}

    def restore(self, arrays, meta):
        return State(arrays["weights"].astype(float), meta["iteration"])


def start():
    return State(np.array([0.1, 0.2]))


def test_a_good_learner_passes():
    check_learner(Climber(), start(), monotone=True, permuted=Climber())


@pytest.mark.parametrize(
    ("flaw", "finding"),
    [
        ("in place", "changes the state"),
        ("memory", "ends elsewhere"),
        ("threads", "one thread and two"),
        ("falls", "objective falls"),
        ("nan", "not a number"),
        ("count", "add 1 to the iteration"),
        ("rounding", r"restore\(dump\(state\)\)"),
    ],
)
def test_flaws_are_found(flaw, finding):
    with pytest.raises(AssertionError, match=finding):
        check_learner(Climber(flaw), start(), monotone=True)


def test_another_order_may_not_move_the_objective():
    with pytest.raises(AssertionError, match="order of the data"):
        check_learner(Climber(), start(), permuted=Climber(goal=(1.0, 2.1)))


class Hill:
    """−‖w‖², one item for each weight; `flaw` says what is wrong with its gradient."""

    n_weights = 3

    def __init__(self, flaw=None):
        self.flaw = flaw

    def __len__(self):
        return 3

    def support(self, items):
        return {"short": items[:1], "twice": np.append(items, items[0])}.get(self.flaw, items)

    def add_gradient(self, weights, out, items=None):
        at = np.arange(3) if items is None else items
        slope = -2 * weights[at] * (1.01 if self.flaw == "wrong" else 1)
        if self.flaw == "overwrites":
            out[at] = slope
        else:
            out[at] += slope
        return -float((weights[at] ** 2).sum())

    def gradient(self, weights, items):
        lists = Gradient.of([([s], [-2 * weights[s] * (2 if self.flaw == "doubled" else 1)]) for s in items])
        return -float((weights[items] ** 2).sum()), lists


def test_gradients_are_checked():
    weights = np.array([1.0, -2.0, 0.5])
    check_gradient(Hill(), weights)
    check_gradient(Hill(), weights, items=[2, 0])
    for flaw, finding in (
        ("wrong", "by differences"),
        ("overwrites", "not added"),
        ("doubled", "gradient as lists is another"),
        ("short", "not in the support"),
        ("twice", "names a weight twice"),
    ):
        with pytest.raises(AssertionError, match=finding):
            check_gradient(Hill(flaw), weights, items=[2, 0])


# --- EM ------------------------------------------------------------------------------------------------------------


class Coins:
    """Which of two coins was thrown is hidden: an item is a sequence of throws, its chain the coins.

    Parameters are rows: first coin; next coin after each; throws of each.
    """

    def zero_counts(self):
        return np.zeros((5, 2))

    def distributions(self, params, batch):
        start, move, emit = np.log(params[0]), np.log(params[1:3]), np.log(params[3:])
        for throws in batch:
            scores = np.tile(move, (len(throws), 1, 1)) + emit[:, throws].T[:, None, :]
            scores[0, 0] = start + emit[:, throws[0]]
            yield Chain(scores)

    def expected_counts(self, throws, q):
        counts, nodes = np.zeros((5, 2)), q.node_marginals()
        counts[0] = nodes[0]
        counts[1:3] = q.marginals()[1:].sum(axis=0)
        np.add.at(counts[3:].T, throws, nodes)
        return counts

    def maximise(self, counts):
        return counts / counts.sum(axis=1, keepdims=True)


class Em:
    """`em.init` and `em.step` as a learner."""

    def __init__(self, batches):
        self.batches = batches

    def step(self, state):
        return em.step(state, self.batches, Coins())

    def dump(self, state):
        return {"params": state.params}, {"iteration": state.iteration}

    def restore(self, arrays, meta):
        return em.State(arrays["params"], meta["iteration"])


def test_em_keeps_the_laws():
    rng = np.random.default_rng(0)
    throws = [rng.integers(0, 2, n) for n in (4, 2, 5, 3)]
    params = rng.dirichlet([1, 1], 5)
    check_learner(Em([throws[:2], throws[2:]]), em.init(params), monotone=True, permuted=Em([throws[::-1]]))
