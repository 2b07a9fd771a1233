"""Models on minibatches: lists of gradients, steps, margins, risk and projections, against plain loops over weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from isogloss.engine.threads import using_threads
from isogloss.errors import ModelError, ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.sparse import Sparse
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.frank_wolfe import FrankWolfe
from isogloss.learners.loglinear import Ftrl, Likelihood, LinearModel, Total
from isogloss.learners.margin import Mira, Perceptron, hamming
from isogloss.learners.models import Model
from isogloss.learners.optimisers import Lbfgs, WholeObjective
from isogloss.learners.posterior import AtMost, regularise
from isogloss.learners.risk import Risk
from isogloss.learners.runner import Interrupted, run
from isogloss.learners.stochastic import AdaGrad, Sgd
from isogloss.learners.tuning import Stages, Tuned
from isogloss.structures import Chain, LoopyTrees, Matching, ProjectiveTree, SpanningTree, TreeParts
from isogloss.structures.batch import Listed, One
from isogloss.structures.tree_parts import FAMILIES, Candidates
from isogloss.testing import check_gradient, check_learner

N_WEIGHTS = 7


def features(rng: np.random.Generator, n_parts: int, *, dense: bool = False) -> Sparse:
    rows = [sorted(rng.choice(N_WEIGHTS, rng.integers(0, 4), replace=False).tolist()) for _ in range(n_parts)]
    return Sparse.of(rows, N_WEIGHTS, dense=rng.normal(size=(n_parts, 2)) if dense else None)


class Walked(Model):
    """Trees whose parts have features that are made when they are asked for: part p has weight (7 p + item) mod n."""

    dtype: ClassVar[Any] = np.float32
    n_weights = 11

    def __init__(self, lengths: list[int], families: tuple[str, ...] = ()) -> None:
        self.candidates, self.families = Candidates.all(lengths), families

    def __len__(self) -> int:
        return len(self.candidates)

    def numbers(self, items: np.ndarray, parts: TreeParts) -> np.ndarray:
        inside = np.arange(parts.n_parts) - np.repeat(parts.offsets[:-1], np.diff(parts.offsets))
        return (7 * inside + np.repeat(items, np.diff(parts.offsets))) % self.n_weights

    def batch(self, weights: np.ndarray, items: np.ndarray) -> LoopyTrees:
        parts = TreeParts.of(self.candidates, self.families, items)
        return LoopyTrees(parts, weights[self.numbers(items, parts)].astype(np.float64), iterations=30, tolerance=1e-10)

    def gradient(self, items: np.ndarray, batch: Any, values: np.ndarray, *, least: float = 0.0) -> Gradient:
        offsets, values = batch.layout.offsets, np.where(np.abs(values) > least, values, 0.0)
        return Gradient(offsets[:-1], offsets[1:], self.numbers(items, batch.layout), values)


def chains(seed: int = 0, *, batch: bool = True, dense: bool = False) -> tuple[LinearModel, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    scores = [rng.normal(size=(n, 3, 3)) for n in (3, 0, 2, 4, 1)]
    scores[3][1, :, 2] = -np.inf
    structures = [Chain(one) for one in scores]
    n_parts = sum(one.size for one in scores)
    model = LinearModel(Chain.batch(scores) if batch else structures, features(rng, n_parts, dense=dense))
    return model, [np.array(dist.sample(rng)) for dist in structures]


# --- structures


def test_a_list_of_structures_is_a_batch() -> None:
    ones = [Chain(np.zeros((2, 3, 3))), ProjectiveTree(np.zeros((3, 3))), Matching(np.zeros((1, 2)))]
    many = Listed(ones)
    assert many.log_partition() == pytest.approx([one.log_partition() for one in ones])
    assert many.take([2, 0])[0] is ones[2] and len(many.sample(np.random.default_rng(0))) == 3
    other = many.with_scores(many.scores.like(many.scores.values + 1.0))
    assert other.log_partition()[0] == pytest.approx(ones[0].log_partition() + 2.0)
    best = many.argmax()
    parts = many.parts(best)
    assert parts.values.sum() == sum(one.parts(y).sum() for one, y in zip(ones, best, strict=True))
    with pytest.raises(IndexError):
        many.take([3])


@pytest.mark.parametrize("families", [(), ("grand",), FAMILIES])
def test_a_sentence_of_loopy_trees_is_a_distribution(families: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    parts = TreeParts.of(Candidates.all([3, 0, 1, 4]), families)
    trees = LoopyTrees(parts, rng.normal(size=parts.n_parts), iterations=10)
    for s in range(4):
        one = trees[s]
        assert isinstance(one, One) and one.log_partition() == trees.log_partition()[s]
        np.testing.assert_array_equal(one.marginals(), trees.marginals()[s])
        y = one.argmax()
        assert np.array_equal(y, trees.argmax()[s]) and np.array_equal(one.from_parts(one.parts(y)), y)
        assert one.with_scores(one.scores + 0.0).log_partition() == one.log_partition()
    with pytest.raises(ParameterError):
        One(trees)


def test_trees_of_some_sentences_are_those_of_all() -> None:
    lengths = [3, 0, 1, 4, 2]
    every, chosen = TreeParts.of(Candidates.all(lengths), FAMILIES), np.array([4, 0, 3, 0])
    some, again = every.take(chosen), TreeParts.of(Candidates.all(lengths), FAMILIES, chosen)
    for name in ("lengths", "link_offsets", "head", "child", "upper", "lower", "run_starts", "run_links", "begins"):
        np.testing.assert_array_equal(getattr(some, name), getattr(again, name), err_msg=name)


def test_covariances_of_links_are_exact() -> None:
    rng = np.random.default_rng(2)
    scores, cost = rng.normal(size=(5, 5)), rng.normal(size=(5, 5))
    parts = TreeParts.of(Candidates.all([4]))
    trees = LoopyTrees(parts, scores.ravel()[parts.cells])
    moved = trees.hessian_vector(trees.scores.like(cost.ravel()[parts.cells])).values
    assert moved == pytest.approx(SpanningTree(scores).hessian_vector(cost).ravel()[parts.cells])


# --- lists


def test_gradients_add_up_whatever_their_gaps() -> None:
    gradient = Gradient(np.array([1, 5]), np.array([3, 6]), np.array([9, 2, 2, 9, 9, 4]), np.arange(6.0))
    dense = np.zeros(10)
    gradient.add_to(dense, 2.0)
    assert dense[[2, 4]].tolist() == [6.0, 10.0] and dense.sum() == 16.0
    assert gradient.support().tolist() == [2, 4] and gradient.n_entries == 3
    twice = Gradient.joined([gradient, gradient], [0, 3])
    assert twice.merged()[0].tolist() == [2, 4, 5, 7] and twice.merged()[1].tolist() == [3.0, 5.0, 3.0, 5.0]


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("dense", [True, False])
def test_minibatches_of_stored_rows_have_the_gradient_of_all(batch: bool, dense: bool) -> None:
    model, gold = chains(batch=batch, dense=dense)
    weights = np.random.default_rng(3).normal(size=model.n_weights)
    likelihood = Likelihood(model, gold=gold)
    for items in ([0], [3, 1], [4, 2, 0], list(range(5))):
        check_gradient(likelihood, weights, items=items)
    whole, parts = np.zeros(model.n_weights), np.zeros(model.n_weights)
    value = likelihood.add_gradient(weights, whole)
    each = [likelihood.gradient(weights, np.array(items)) for items in ([3, 1], [0, 2, 4])]
    for _, gradient in each:
        gradient.add_to(parts)
    assert sum(one for one, _ in each) == pytest.approx(value) and parts == pytest.approx(whole)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("ends", [True, False])
def test_a_field_has_two_roads_to_its_gradient(order: int, ends: bool) -> None:
    rng = np.random.default_rng(4)
    lengths = [3, 0, 1, 4, 2]
    nodes = NodeFeatures(Sparse.of([[int(rng.integers(4))] for _ in range(10)], 4), LabelPairs.all(4, 3))
    model = ChainModel(nodes, lengths, order=order, ends=ends)
    gold = [rng.integers(0, 3, n) for n in lengths]
    weights, items = rng.normal(size=model.n_weights), np.array([4, 0, 1, 3, 2])
    check_gradient(Likelihood(model, gold=gold), weights, items=items.tolist())
    by_counts, by_steps = np.zeros(model.n_weights), np.zeros(model.n_weights)
    value = model.add_likelihood(weights, model.gold(gold), by_counts, items, 1.0)
    other, lists = Model.likelihood(model, weights, Model.gold(model, gold), items)
    lists.add_to(by_steps)
    assert other == pytest.approx(value) and by_steps == pytest.approx(by_counts)


def test_a_model_that_lists_nothing_has_all_that_learners_ask() -> None:
    model = Walked([3, 2, 0, 4])
    weights = np.random.default_rng(5).normal(size=model.n_weights).astype(np.float32)
    gold = [model.distribution(weights, s).sample(np.random.default_rng(s)) for s in range(4)]
    rivals = [model.distribution(weights, s).sample(np.random.default_rng(s + 9)) for s in range(4)]
    wide = weights.astype(np.float64)
    check_gradient(Likelihood(model, gold=gold), wide, items=[0, 2, 3], tolerance=1e-4)
    for s in range(4):
        at, much = model.difference(s, gold[s], rivals[s])
        dist = model.distribution(wide, s)
        assert float(wide[at] @ much) == pytest.approx(dist.score(gold[s]) - dist.score(rivals[s]))
        support = model.support(np.array([s]))
        assert support is not None and set(at) <= set(support)


# --- steps, against loops over weights


class Rows(WholeObjective):
    """A bowl for each item over some of the weights, as lists: −½ Σ (w − c)²."""

    n_weights = N_WEIGHTS

    def __init__(self, seed: int = 0, n: int = 9) -> None:
        rng = np.random.default_rng(seed)
        self.at = [np.sort(rng.choice(N_WEIGHTS, 3, replace=False)) for _ in range(n)]
        self.centre = [rng.normal(size=3) for _ in range(n)]

    def __len__(self) -> int:
        return len(self.at)

    def support(self, items: np.ndarray) -> np.ndarray:
        return np.unique(np.concatenate([self.at[s] for s in items]))

    def gradient(self, weights: np.ndarray, items: np.ndarray) -> tuple[float, Gradient]:
        gaps = [self.centre[s] - weights[self.at[s]] for s in items]
        lists = Gradient.of([(self.at[s], gap) for s, gap in zip(items, gaps, strict=True)])
        return -0.5 * sum(float(gap @ gap) for gap in gaps), lists

    def add_gradient(self, weights: np.ndarray, out: np.ndarray, items: np.ndarray | None = None) -> float:
        value, lists = self.gradient(weights, np.arange(len(self)) if items is None else items)
        lists.add_to(out)
        return value


def dense_passes(objective: Rows, passes: int, batch: int, seed: int, move: Any) -> tuple[np.ndarray, np.ndarray]:
    """Weights after some passes, and their mean after each step: every weight is moved at every step."""
    weights, seen = np.zeros(N_WEIGHTS), []
    for p in range(passes):
        order = np.random.default_rng([seed, p]).permutation(len(objective))
        starts = range(0, len(order), batch)
        for b, start in enumerate(starts):
            slope = np.zeros(N_WEIGHTS)
            objective.add_gradient(weights, slope, order[start : start + batch])
            weights = move(weights, slope, p, b, len(starts))
            seen.append(weights)
    return weights, np.mean(seen, axis=0)


@pytest.mark.parametrize("batch", [1, 2, 4, 20])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.1, 0.0), (0.05, 0.3)])
def test_adagrad_is_what_its_formula_says(batch: int, l1: float, l2: float) -> None:
    objective, squares = Rows(), np.zeros(N_WEIGHTS)

    def move(weights: np.ndarray, slope: np.ndarray, p: int, b: int, many: int) -> np.ndarray:
        nonlocal squares
        squares = squares + slope**2
        h = (np.sqrt(0.01 + squares) + 0.2) / 0.3
        u = weights + slope / h
        return np.sign(u) * np.maximum(np.abs(u) - l1 / many / h, 0) / (1 + l2 / many / h)

    wanted, mean = dense_passes(objective, 3, batch, 5, move)
    learner = AdaGrad(objective, rate=0.3, damping=0.01, floor=0.2, l1=l1, l2=l2, batch=batch, seed=5)
    found = run(learner, learner.init(), iterations=3).state
    assert found.weights == pytest.approx(wanted, abs=1e-12)
    if not (l1 or l2):
        assert found.average == pytest.approx(mean, abs=1e-12)
    check_learner(learner, learner.init())


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.2, 0.0), (0.1, 0.5)])
def test_ftrl_is_what_its_formula_says(batch: int, l1: float, l2: float) -> None:
    objective, z, size = Rows(1), np.zeros(N_WEIGHTS), np.zeros(N_WEIGHTS)

    def move(weights: np.ndarray, slope: np.ndarray, p: int, b: int, many: int) -> np.ndarray:
        nonlocal z, size
        after = np.sqrt(size**2 + slope**2)
        z = z + slope + (after - size) / 0.3 * weights
        size = after
        made = np.sign(z) * np.maximum(np.abs(z) - l1, 0) / ((1 + size) / 0.3 + l2)
        return np.where(slope == 0, weights, made)

    wanted, _ = dense_passes(objective, 3, batch, 2, move)
    learner = Ftrl(objective, rate=0.3, l1=l1, l2=l2, batch=batch, seed=2)
    found = run(learner, learner.init(), iterations=3).state
    assert found.weights == pytest.approx(wanted, abs=1e-12) and np.array_equal(found.average, found.weights)
    check_learner(learner, learner.init())
    again = learner.init(found.weights)  # a step from there begins where it is
    slope, unmoved = Gradient.of([([0], [1e-12])]), again.weights.copy()
    learner._move(learner._prepare(again), 0, 0, slope, again.weights, again.memory)
    assert again.weights == pytest.approx(unmoved, abs=1e-9)


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_sgd_is_what_its_formula_says(l2: float) -> None:
    objective = Rows(2)

    def move(weights: np.ndarray, slope: np.ndarray, p: int, b: int, many: int) -> np.ndarray:
        length = 0.2 / (1 + 0.5 * (p + b / many))
        return (weights + length * slope) / (1 + l2 / many * length)

    wanted, _ = dense_passes(objective, 2, 2, 0, move)
    learner = Sgd(objective, rate=0.2, decay=0.5, l2=l2, batch=2)
    assert run(learner, learner.init(), iterations=2).state.weights == pytest.approx(wanted, abs=1e-12)


def test_penalties_reach_weights_that_nobody_lists() -> None:
    listed, silent = Rows(3), Rows(3)
    silent.support = lambda items: None  # type: ignore[assignment, return-value, method-assign]
    ends = []
    for objective in (listed, silent):
        learner = AdaGrad(objective, l1=0.2, l2=0.1, batch=2)
        ends.append(run(learner, learner.init(), iterations=40).state.weights)
    assert np.abs(ends[0] - ends[1]).max() < 0.05 and np.array_equal(ends[0] == 0, ends[1] == 0)


def test_some_weights_may_have_another_rate_and_the_first_pass_no_say() -> None:
    objective = Rows(4)
    one = AdaGrad(objective, rate=0.3, rates=[(4, 0.01)], batch=20, average_from=1)
    state, _ = one.step(one.init())
    plain, _ = AdaGrad(objective, rate=0.3, batch=20).step(one.init())
    assert state.weights[:4] == pytest.approx(plain.weights[:4])
    assert state.weights[4:] == pytest.approx(plain.weights[4:] / 30)
    second, _ = one.step(state)
    assert second.average == pytest.approx(second.weights) and second.steps == 1  # one step of the second pass
    without = AdaGrad(objective, batch=2, average_from=None)
    found = run(without, without.init(), iterations=2).state
    assert np.array_equal(found.average, found.weights)


# --- margins


def mira_by_hand(model: LinearModel, gold: Any, costs: Any, batch: int, cap: float, passes: int) -> np.ndarray:
    """Sentences of a minibatch are searched with the same weights; then each moves them as far as it has to."""
    weights = np.zeros(model.n_weights)
    for p in range(passes):
        order = np.random.default_rng([0, p]).permutation(len(model))
        for start in range(0, len(order), batch):
            fixed = weights.copy()
            for s in order[start : start + batch]:
                dist = model.distribution(fixed, int(s))
                rival = dist.with_scores(dist.scores + costs[s].parts).argmax()
                at, much = model.difference(int(s), gold[s], rival)
                lack = costs[s].of(dist.parts(rival)) - (dist.score(gold[s]) - dist.score(rival))
                if (much**2).sum() > 0 and lack > 0:
                    weights[at] += min(cap, lack / (much**2).sum()) * much
    return weights


@pytest.mark.parametrize("batch", [2, 3, 5])
def test_mira_on_minibatches(batch: int) -> None:
    model, gold = chains(7)
    costs = [hamming(model.structures[s].parts(gold[s]), missed=0.5) for s in range(5)]  # type: ignore[attr-defined]
    learner = Mira(model, gold, costs, augmentation=(1, 1), cap=0.2, batch=batch)
    found = run(learner, learner.init(), iterations=3).state
    assert found.weights == pytest.approx(mira_by_hand(model, gold, costs, batch, 0.2, 3), abs=1e-12)
    check_learner(learner, learner.init())
    assert np.abs(found.average).sum() > 0


def test_margins_of_a_model_that_lists_nothing() -> None:
    model = Walked([3, 2, 4, 0, 5, 3])
    truth = np.random.default_rng(8).normal(size=model.n_weights).astype(np.float32) * 3
    gold = [model.distribution(truth, s).argmax() for s in range(6)]
    costs = [hamming(model.distribution(truth, s).parts(y)) for s, y in enumerate(gold)]
    for learner in (
        Mira(model, gold, costs, batch=4, cap=1.0), Mira(model, gold, costs), Perceptron(model, gold, batch=3),
        Perceptron(model, gold), FrankWolfe(model, gold, costs, l2=0.01),
    ):  # fmt: skip
        weights = run(learner, learner.init(), iterations=40).state.average
        right = [np.array_equal(model.distribution(weights.astype(np.float32), s).argmax(), gold[s]) for s in range(6)]
        assert sum(right) >= 5, f"{type(learner).__name__}: {right}"


# --- risk and projections


@pytest.mark.parametrize("families", [(), ("grand", "siblings")])
def test_risk_of_trees_by_finite_differences(families: tuple[str, ...]) -> None:
    model = Walked([3, 2, 4], families)
    rng = np.random.default_rng(9)
    weights = (0.3 * rng.normal(size=model.n_weights)).astype(np.float64)
    gold = [model.distribution(weights, s).sample(rng) for s in range(3)]
    costs = [hamming(model.distribution(weights, s).parts(y)) for s, y in enumerate(gold)]
    risk = Risk(model, costs, gold=gold, mix=0.3)
    check_gradient(risk, weights, items=[0, 2], tolerance=1e-6 if not families else 2e-2)
    assert risk.risk(weights) == pytest.approx(
        sum(cost.of(model.distribution(weights, s).marginals()) for s, cost in enumerate(costs)), rel=1e-6
    )


def test_projections_are_targets_of_minibatches() -> None:
    """Parts 0 of all items together at most 0.1 per item: the gradient is that of −min KL, by finite differences."""
    model, _ = chains(10)
    sizes = np.diff(model._offsets)

    def project(items: np.ndarray, batch: Any) -> Any:
        row = np.zeros(int(sizes[items].sum()))
        starts = np.cumsum(sizes[items]) - sizes[items]
        row[starts[sizes[items] > 0]] = 1.0
        return regularise(batch, row[None], AtMost([0.1 * len(items)]), tolerance=1e-9)

    objective = Likelihood(model, project=project)
    weights = 0.5 * np.random.default_rng(11).normal(size=model.n_weights)
    for items in ([0, 2], [3, 4, 0]):
        check_gradient(objective, weights, items=items, tolerance=1e-4)
    learner = AdaGrad(objective, batch=2, rate=0.3)
    check_learner(learner, learner.init())
    result = run(learner, learner.init(), iterations=30)
    assert result.trace[-1] > result.trace[0] and result.trace[-1] <= 1e-9  # −KL, which is 0 at best


def test_targets_are_asked_for_one_at_a_time() -> None:
    model, gold = chains()
    with pytest.raises(ParameterError, match="one of gold, soft, within, target and project"):
        Likelihood(model, gold=gold, project=lambda items, batch: batch)
    with pytest.raises(ParameterError, match="one for each item"):
        Likelihood(Walked([2, 2]), gold=[[0, 1]])


def test_several_objectives_are_one() -> None:
    model, gold = chains(12)
    both = Total([Likelihood(model, gold=gold), Likelihood(model, gold=gold, share=2.0)])
    weights = np.random.default_rng(13).normal(size=model.n_weights)
    check_gradient(both, weights, items=[0, 7, 3, 9])


# --- threads, checkpoints, tuning


def test_threads_do_not_matter_and_neither_do_interruptions(tmp_path: Path) -> None:
    model = Walked([5, 3, 4, 6, 2] * 8, ("grand",))
    gold = [model.distribution(np.ones(11, np.float32), s).sample(np.random.default_rng(s)) for s in range(40)]
    learner = AdaGrad(Likelihood(model, gold=gold), batch=8, in_place=True)
    states = []
    for threads in (1, 2):
        with using_threads(threads):
            states.append(run(learner, learner.init(), iterations=3).state)
    assert states[0].weights.dtype == np.float32
    np.testing.assert_array_equal(states[0].weights, states[1].weights)
    np.testing.assert_array_equal(states[0].memory, states[1].memory)
    tuned = Tuned(learner, lambda weights: -float(np.abs(weights).sum()))
    whole = run(tuned, tuned.init(), iterations=4).state
    count = 0

    def stop(state: Any, info: Any) -> bool:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        return False

    with pytest.raises(Interrupted):
        run(tuned, tuned.init(), iterations=4, checkpoint=tmp_path / "c", should_stop=stop)
    resumed = run(tuned, tuned.init(), iterations=4, checkpoint=tmp_path / "c", resume=True).state
    np.testing.assert_array_equal(whole.weights, resumed.weights)
    assert whole.scores == resumed.scores


def test_the_best_step_is_kept_and_the_search_ends() -> None:
    objective = Rows(6)
    scores = iter([1.0, 3.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    seen: list[np.ndarray] = []

    def score(weights: np.ndarray) -> float:
        seen.append(np.array(weights))
        return next(scores)

    learner = Tuned(AdaGrad(objective), score, patience=3)
    found = run(learner, learner.init(), iterations=8, should_stop=learner.is_done)
    assert len(seen) == 5 and found.stopped_because == "should_stop"  # the first of the best, and three more
    np.testing.assert_array_equal(found.state.weights, seen[3])
    none = Tuned(Lbfgs(objective))
    assert run(none, none.init(), iterations=2).state.weights.shape == (N_WEIGHTS,)


def test_stages_follow_each_other() -> None:
    objective = Rows(7)
    first, second = AdaGrad(objective, rate=0.5), Sgd(objective, rate=0.1)
    both = Stages([(2, first), (1, second)])
    state = both.init()
    for learner in (first, first, second, second):
        wanted, _ = learner.step(state)
        state, _ = both.step(state)
        np.testing.assert_array_equal(state.weights, wanted.weights)
    check_learner(both, both.init())


def test_the_best_step_is_one_of_the_last_stage() -> None:
    """A first stage that does better on other data is there to begin with: its weights do not count."""
    objective = Rows(8)
    numbers = [9.0, 8.0, 7.0, 6.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    seen: list[np.ndarray] = []

    def score(weights: np.ndarray) -> float:
        seen.append(np.array(weights))
        return numbers[len(seen) - 1]

    learner = Tuned(Stages([(4, AdaGrad(objective)), (6, AdaGrad(objective, rate=0.3))]), score, patience=3)
    found = run(learner, learner.init(), iterations=10, should_stop=learner.is_done)
    assert (len(seen), found.stopped_because) == (9, "should_stop")
    np.testing.assert_array_equal(found.state.weights, seen[5])
    assert found.state.scores == tuple(numbers[:9])


@pytest.mark.parametrize("kind", [AdaGrad, Ftrl, Sgd])
@pytest.mark.parametrize("name", ["weights", "memory", "best"])
def test_a_checkpoint_of_another_size_is_refused_before_a_kernel_sees_it(kind: Any, name: str) -> None:
    learner = Tuned(kind(Rows()), lambda weights: 1.0)
    state, _ = learner.step(learner.init())
    arrays, meta = learner.dump(state)
    key = name if name == "best" else f"learner.{name}"
    for other in (arrays[key][:-1], arrays[key].astype(np.float32)):
        with pytest.raises(ModelError, match="Start again without resuming"):
            learner.restore({**arrays, key: other}, meta)
