"""Structured support vector machines and saddle points: held against generic solvers over listed structures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners._region import Region
from isogloss.learners.extragradient import Extragradient
from isogloss.learners.frank_wolfe import FrankWolfe, Subgradient
from isogloss.learners.margin import Cost, Mira, Perceptron, hamming, nearest
from isogloss.learners.models import LinearModel
from isogloss.learners.runner import run
from isogloss.structures import Chain, Fertility, Flat, Matching, neighbour_pairs
from isogloss.testing import check_learner, link_sets, matchings
from isogloss.testing.solver import relaxed_margin

SHAPES = ((2, 2), (1, 3), (3, 2))


class Problem:
    """Items with features of all parts, their gold, and a list of every structure of each."""

    def __init__(self, structures, listed, rng, *, missed=2.0, n_features=4, dense=None, gold=None):
        sizes = [dist.scores.size for dist in structures]
        self.dense = rng.normal(size=(sum(sizes), n_features)) if dense is None else dense
        rows = [[] for _ in range(len(self.dense))]
        self.structures, self.listed = structures, listed
        self.model = LinearModel(structures, Sparse.of(rows, 0, dense=self.dense))
        self.targets = [each[rng.integers(len(each))] for each in listed] if gold is None else gold
        links = [dist.dist.scores.size if isinstance(dist, Flat) else dist.scores.size for dist in structures]
        self.costs = []
        for dist, y, n in zip(structures, self.targets, links):
            free = np.arange(dist.scores.size).reshape(dist.scores.shape) >= n  # nulls and the like cost nothing
            self.costs.append(hamming(dist.parts(y), missed=missed, free=free))
        ends = np.cumsum([0, *sizes])
        self.features = [self.dense[a:b] for a, b in itertools.pairwise(ends)]

    def margins(self):
        """(item, ψ, loss) of every structure, from its parts."""
        for s, (dist, y) in enumerate(zip(self.structures, self.targets)):
            base = np.where(np.isfinite(np.ravel(dist.scores)), np.ravel(dist.scores), 0.0)
            gold = np.ravel(dist.parts(y))
            for other in self.listed[s]:
                parts = np.ravel(dist.parts(other))
                yield s, (gold - parts) @ self.features[s], self.costs[s].of(dist.parts(other)) + base @ (parts - gold)

    def hinges(self, w):
        best = np.full(len(self.structures), -np.inf)
        for s, psi, loss in self.margins():
            best[s] = max(best[s], loss - psi @ w)
        return best

    def solved(self, *, l2=0.0, radius=np.inf, lower=-np.inf, upper=np.inf):
        """Weights and value of ½ l2 ‖w‖² + Σ hinge, by sequential quadratic programming with a slack for each item."""
        k, n = self.dense.shape[1], len(self.structures)
        rows, rhs = [], []
        for s, psi, loss in self.margins():
            rows.append(np.concatenate([psi, np.eye(n)[s]]))
            rhs.append(loss)
        A, b = np.array(rows), np.array(rhs)
        constraints = [{"type": "ineq", "fun": lambda x: A @ x - b, "jac": lambda x: A}]
        if radius < np.inf:
            constraints.append(
                {
                    "type": "ineq",
                    "fun": lambda x: radius**2 - x[:k] @ x[:k],
                    "jac": lambda x: np.concatenate([-2 * x[:k], np.zeros(n)]),
                }
            )
        low, high = np.broadcast_to(lower, k), np.broadcast_to(upper, k)
        bounds = [*zip(low, high), *[(None, None)] * n]
        start = np.concatenate([np.clip(np.zeros(k), low, high), self.hinges(np.clip(np.zeros(k), low, high))])
        found = minimize(
            lambda x: (0.5 * l2 * x[:k] @ x[:k] + x[k:].sum(), np.concatenate([l2 * x[:k], np.ones(n)])),
            start,
            jac=True,
            method="SLSQP",
            bounds=bounds,
            constraints=constraints,
            options={"maxiter": 500, "ftol": 1e-13},
        )
        assert found.success or found.status == 8, found.message
        w = np.clip(found.x[:k], low, high)
        return w, 0.5 * l2 * w @ w + self.hinges(w).sum()


def flat_matchings(rng, shapes=SHAPES, base=True):
    """With nulls, base scores and now and then a forbidden link."""
    out, listed = [], []
    for n, m in shapes:
        scores = rng.normal(size=(n, m)) * 0.3 * base
        if base and n * m > 3:
            scores[0, 0] = -np.inf
        out.append(Flat(Matching(scores, 0.2 * base, -0.1 * base)))
        listed.append([y for y in matchings(n, m) if np.isfinite(out[-1].dist.score(y))])
    return out, listed


def problem(seed, shapes=SHAPES, **more):
    rng = np.random.default_rng(seed)
    return Problem(*flat_matchings(rng, shapes), rng, **more)


BOUNDS = [
    {},
    {"lower": [0.0, -np.inf, 0.0, -0.05]},
    {"lower": [-0.1, 0.0, 0.0, 0.05], "upper": [0.1, np.inf, 0.0, 0.2]},
]


# --- where weights may be ------------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.sampled_from([0.3, 2.0, np.inf]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_nearest_weights_and_the_least_slope_are_those_of_a_generic_solver(seed, radius, bounded):
    rng = np.random.default_rng(seed)
    lower = np.where(rng.random(4) < 0.6, -rng.random(4) * 0.5, -np.inf) if bounded else None
    upper = np.where(rng.random(4) < 0.6, rng.random(4) * 0.5, np.inf) if bounded else None
    region, v = Region("x", 4, lower, upper, radius), rng.normal(size=4) * 2
    z = region.project(v)
    assert (z >= region.lower).all() and (z <= region.upper).all() and np.linalg.norm(z) <= radius * (1 + 1e-12)
    np.testing.assert_allclose(region.project(z), z, atol=1e-12)
    inside = [region.project(rng.normal(size=4) * 3) for _ in range(30)]
    assert all((v - z) @ (u - z) <= 1e-9 for u in inside)  # the angle that makes it the nearest
    least = region.least(v)
    assert all(v @ u >= least - 1e-9 * max(1.0, abs(least)) for u in inside)
    if radius < np.inf:  # far out against the slope, the nearest point is the one where the least is
        assert v @ region.project(-1e7 * v) == pytest.approx(least, abs=1e-5)
    if not bounded:
        assert least == (-np.inf if radius == np.inf else pytest.approx(-radius * np.linalg.norm(v)))


def test_bounds_that_cannot_be_met_are_refused():
    for wrong in ({"lower": [1.0, 0.0], "upper": [0.0, 1.0]}, {"lower": np.zeros(3)}, {"radius": 0.0}):
        with pytest.raises(ParameterError):
            Region("Learner", 2, **wrong)
    with pytest.raises(ParameterError, match="ball"):
        Region("Learner", 2, lower=1.0, radius=1.0)


# --- block-coordinate Frank-Wolfe ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("l2", [0.3, 3.0])
def test_frank_wolfe_finds_the_optimum_of_a_generic_solver(bounds, l2):
    for seed in range(3):
        given = problem(seed)
        learner = FrankWolfe(given.model, given.targets, given.costs, l2=l2, **bounds)
        result = run(learner, learner.init(), iterations=200, should_stop=lambda _, info: info.gap < 1e-8)
        w, value = given.solved(l2=l2, **bounds)
        assert result.watched["gap"][-1] < 1e-8
        assert (np.diff(result.trace) > -1e-9).all() and (result.watched["gap"] > -1e-9).all()
        assert result.trace[-1] <= value + 1e-7
        assert learner.primal(result.state.weights) == pytest.approx(value, rel=1e-7, abs=1e-7)
        assert learner.primal(w) == pytest.approx(value)  # the same objective, by listing
        np.testing.assert_allclose(result.state.weights, w, atol=1e-3)
        assert (result.state.weights >= learner.region.lower).all()
        assert (result.state.weights <= learner.region.upper).all()


def test_the_dual_that_is_reported_is_that_of_the_rivals_and_certifies_the_average_too():
    given = problem(5)
    learner = FrankWolfe(given.model, given.targets, given.costs, l2=0.5)
    state = learner.init()
    means = np.zeros(4)
    for _ in range(5):
        state, info = learner.step(state)
        assert info.objective == pytest.approx(learner.dual(state))
        assert info.gap == pytest.approx(learner.primal(state.weights) - info.objective)
        assert learner.primal(state.average) >= info.objective - 1e-9
    one = Problem(given.structures[:1], given.listed[:1], np.random.default_rng(0), gold=given.targets[:1])
    learner = FrankWolfe(one.model, one.targets, one.costs, l2=0.5, between=0)
    state = learner.init()
    for t in range(1, 6):  # one item: the average is one of the weights after each pass
        state, _ = learner.step(state)
        means += t * state.weights
        np.testing.assert_allclose(state.average, means / (t * (t + 1) / 2), atol=1e-12)


def test_frank_wolfe_learns_any_structure_and_skips_certificates():
    rng = np.random.default_rng(1)
    dists = [Chain(np.zeros((n, 2, 2))) for n in (3, 2)]
    listed = [list(itertools.product(range(2), repeat=n)) for n in (3, 2)]
    given = Problem(dists, listed, rng)
    learner = FrankWolfe(given.model, given.targets, given.costs, l2=1.0, certify=3)
    result = run(learner, learner.init(), iterations=30)
    assert np.isnan(result.watched["gap"][:2]).all() and not np.isnan(result.watched["gap"][2])
    assert result.trace[-1] == pytest.approx(given.solved(l2=1.0)[1], rel=1e-6)
    assert result.watched["estimate"][-1] >= 0
    check_learner(learner, learner.init(), monotone=True)


def test_a_batch_is_searched_as_its_sentences_are():
    rng = np.random.default_rng(2)
    scores = [rng.normal(size=shape) for shape in SHAPES]
    dense = rng.normal(size=(sum(s.size for s in scores), 3))
    features = Sparse.of([[] for _ in dense], 0, dense=dense)
    gold = [rng.choice(matchings(*s.shape)) for s in scores]
    costs = [hamming(Matching(s).parts(y)) for s, y in zip(scores, gold)]
    batch = FrankWolfe(LinearModel(Matching.batch(scores, 0.3), features), gold, costs)
    each = FrankWolfe(LinearModel([Matching(s, 0.3) for s in scores], features), gold, costs)
    w = rng.normal(size=3)
    assert batch.primal(w) == pytest.approx(each.primal(w), abs=1e-12)
    own = np.split(dense, np.cumsum([s.size for s in scores])[:-1])
    with_nulls = np.concatenate([np.concatenate([d, np.zeros((sum(s.shape), 3))]) for s, d in zip(scores, own)])
    listed, flat = [matchings(*s.shape) for s in scores], [Flat(Matching(s, 0.3)) for s in scores]
    given = Problem(flat, listed, rng, missed=1.0, gold=gold, dense=with_nulls)
    assert each.primal(w) == pytest.approx(0.5 * w @ w + given.hinges(w).sum())  # hidden nulls count


@given(st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_hinges_bound_the_loss_of_what_is_decoded(seed):
    given = problem(seed)
    rng = np.random.default_rng(seed)
    w = rng.normal(size=4)
    learner = FrankWolfe(given.model, given.targets, given.costs)
    by_list = given.hinges(w)
    for s, cost in enumerate(given.costs):
        rival = learner.hinge.at(w, s)
        decoded = given.model.distribution(w, s).argmax()
        assert rival.value == pytest.approx(by_list[s])
        assert rival.value >= cost.of(given.structures[s].parts(decoded)) - 1e-9
    assert learner.hinge.total(w) == pytest.approx(by_list.sum())


def test_gold_outside_the_class_is_replaced_by_the_nearest_and_pays_for_it():
    structure = Flat(Matching(np.zeros((1, 2))))
    gold = np.array([1.0, 1.0, 0, 0, 0])  # two links of one word
    cost = hamming(gold, free=[False, False, True, True, True])
    target = nearest(structure, cost)
    model = LinearModel([structure], Sparse.of([[0], [1], [], [], []], 2))
    learner = FrankWolfe(model, [target], [cost], l2=0.1)
    assert learner.init().losses.tolist() == [1.0]
    result = run(learner, learner.init(), iterations=200, should_stop=lambda _, info: info.gap < 1e-9)
    assert result.watched["gap"][-1] < 1e-9 and result.watched["primal"][-1] >= 1.0
    forbidden = LinearModel([Flat(Matching([[-np.inf, 0.0]]))], model.features)
    with pytest.raises(ParameterError, match="forbidden"):
        FrankWolfe(forbidden, [{(0, 0)}], [cost]).hinge.at(np.zeros(2), 0)


def quadratic(seed, n=2, m=3):
    """Matchings with pairs and second links, whose features keep the signs that they need with weights above 0."""
    rng = np.random.default_rng(seed)
    dists, listed, dense = [], [], []
    for _ in range(2):
        pairs = neighbour_pairs(n, m, monotone=0.0, inverted=0.0)
        dist = Flat(Matching(np.zeros((n, m)), fertility=Fertility(np.zeros((n, 1)), np.zeros((m, 0))), pairs=pairs))
        rows = np.zeros((dist.scores.size, 4))
        rows[: n * m, :2] = rng.normal(size=(n * m, 2))
        first, last = n * m + n + m, n * m + n + m + n
        rows[first:last, 2] = -1.0 - rng.random(n)  # a penalty
        rows[last:, 3] = rng.random(len(pairs.scores))
        dists.append(dist)
        dense.append(rows)
        listed.append(link_sets(n, m, 2, 1))
    return Problem(dists, listed, rng, dense=np.concatenate(dense), missed=1.5)


def test_signs_of_penalties_and_pairs_hold_and_relaxed_hinges_bound_exact_ones():
    lower = [-np.inf, -np.inf, 0.0, 0.0]
    for seed in range(3):
        given = quadratic(seed)
        args = given.model, given.targets, given.costs
        exact = FrankWolfe(*args, l2=1.0, lower=lower)
        found = run(exact, exact.init(), iterations=50, should_stop=lambda _, info: info.gap < 1e-5)
        assert found.watched["primal"][-1] == pytest.approx(given.solved(l2=1.0, lower=lower)[1], rel=1e-5)
        relaxed = FrankWolfe(*args, l2=1.0, lower=lower, relaxed=True)
        other = run(relaxed, relaxed.init(), iterations=50, should_stop=lambda _, info: info.gap < 1e-5)
        assert other.watched["gap"][-1] < 1e-5
        for w in (found.state.weights, found.state.average, other.state.weights, other.state.average):
            assert (w[2:] >= 0).all()
            assert relaxed.primal(w) >= exact.primal(w) - 1e-6  # the solver's tolerance
        assert other.trace[-1] >= found.trace[-1] - 1e-4


def test_the_relaxed_machine_has_the_optimum_of_a_generic_solver():
    lower = [-np.inf, -np.inf, 0.0, 0.0]
    for seed in range(3):
        given = quadratic(seed)
        args = given.model, given.targets, given.costs
        learner = FrankWolfe(*args, l2=0.2, lower=lower, relaxed=True)
        result = run(learner, learner.init(), iterations=50, should_stop=lambda _, info: info.gap < 1e-7)
        w, value = relaxed_margin(given.structures, given.features, given.targets, given.costs, l2=0.2, lower=lower)
        assert result.trace[-1] == pytest.approx(value, abs=1e-6)
        assert learner.primal(w) == pytest.approx(value, abs=1e-5)
        np.testing.assert_allclose(result.state.weights, w, atol=2e-3)  # √(2 gap / l2), and the solver's own
        assert value >= given.solved(l2=0.2, lower=lower)[1] - 1e-6  # the machine without fractions


# --- subgradients, perceptron and MIRA -----------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", BOUNDS)
def test_subgradients_come_near_the_optimum(bounds):
    given = problem(1)
    learner = Subgradient(given.model, given.targets, given.costs, l2=1.0, certify=100, **bounds)
    result = run(learner, learner.init(), iterations=200)
    value = given.solved(l2=1.0, **bounds)[1]
    assert -result.trace[-1] >= value - 1e-9
    assert -result.trace[-1] == pytest.approx(value, rel=1e-2)
    assert (result.state.average >= learner.region.lower).all() and (result.state.weights <= learner.region.upper).all()
    check_learner(learner, learner.init())


@pytest.mark.parametrize("kind", [Perceptron, Mira])
def test_perceptron_and_mira_keep_bounds(kind):
    given = problem(3)
    args = given.model, given.targets, given.costs
    free, bound = kind(*args), kind(*args, lower=[0.0, -np.inf, 0.05, -np.inf], upper=[np.inf, 0.0, np.inf, 0.3])
    assert bound.init().weights.tolist() == [0.0, 0.0, 0.05, 0.0]
    state, weights = bound.init(), []
    one = Problem(given.structures[1:2], given.listed[1:2], np.random.default_rng(0), gold=[frozenset({(0, 1)})])
    for _ in range(6):
        state, _ = bound.step(state)
        for w in (state.weights, state.average):
            assert (w >= bound.region.lower - 1e-15).all() and (w <= bound.region.upper + 1e-15).all()
    assert np.abs(free.step(free.init())[0].weights).max() > 0
    single = kind(one.model, one.targets, one.costs, lower=-0.1, upper=0.1)
    state = single.init()
    for _ in range(4):
        state, _ = single.step(state)
        weights.append(state.weights)
        np.testing.assert_allclose(state.average, np.mean(weights, axis=0), atol=1e-14)
    check_learner(bound, bound.init())


def test_wrong_options_are_refused():
    given = problem(0)
    args = given.model, given.targets, given.costs
    for wrong in ({"l2": 0.0}, {"certify": -1}, {"lower": np.zeros(3)}):
        with pytest.raises(ParameterError):
            FrankWolfe(*args, **wrong)
    with pytest.raises(ParameterError, match="2 targets for 3 items"):
        FrankWolfe(given.model, given.targets[:2], given.costs)
    with pytest.raises(ParameterError, match="relaxation"):
        chains = LinearModel([Chain(np.zeros((1, 2, 2)))], Sparse.of([[0], [1], [], []], 2))
        FrankWolfe(chains, [[0]], [Cost(np.zeros((1, 2, 2)))], relaxed=True).hinge.at(np.zeros(2), 0)


# --- polytopes -----------------------------------------------------------------------------------------------------


def fertile(rng, n, m, base=0.4):
    """A matching with second links, a word that must have one and a forbidden link."""
    penalties = Fertility(rng.random((n, 1)), np.cumsum(rng.random((m, 2)), axis=1))
    scores = rng.normal(size=(n, m)) * base
    scores[0, 1] = -np.inf
    source_null = -rng.random(n)
    source_null[0] = -np.inf
    return Matching(scores, source_null, -rng.random(m), fertility=penalties)


@pytest.mark.parametrize("kind", ["links", "flat", "fertile"])
def test_projections_are_feasible_and_nearest_and_prices_only_save_time(kind):
    rng = np.random.default_rng(7)
    for n, m in ((2, 3), (3, 2), (1, 2), (4, 4)):
        if kind == "fertile":
            dist, listed = Flat(fertile(rng, n, m)), link_sets(n, m, 2, min(3, n))
            listed = [y for y in listed if np.isfinite(dist.dist.score(y))]
            listed = [listed[at] for at in rng.permutation(len(listed))[:200]]
        else:
            dist, listed = Matching(np.zeros((n, m))), matchings(n, m)
            dist = dist if kind == "links" else Flat(dist)
        polytope = dist.polytope()
        corners = np.array([np.ravel(dist.parts(y)) for y in listed])
        points = [coordinates(dist, y, polytope.shape) for y in listed]
        for corner, point in zip(corners, points):
            np.testing.assert_allclose(polytope.parts(point), corner, atol=1e-12)
        prices = np.zeros(polytope.n_prices)
        scores = rng.normal(size=corners.shape[1])
        for _ in range(5):
            v = rng.normal(size=polytope.n_coordinates) * 0.7
            fresh = polytope.project(v, np.zeros(polytope.n_prices))
            z = polytope.project(v, prices)
            np.testing.assert_allclose(z, fresh, atol=1e-8)
            np.testing.assert_allclose(polytope.project(z, np.zeros(polytope.n_prices)), z, atol=1e-8)
            for u in points:  # the angle that makes it the nearest; forbidden coordinates are 0 in both
                assert (v - z) @ (u - z) <= 1e-7
            parts = polytope.parts(z)
            assert (parts >= -1e-9).all() and (parts <= 1 + 1e-9).all()
            other = polytope.start()
            change = scores @ (parts - polytope.parts(other))  # affine, with `pull` as its derivative
            assert polytope.pull(scores) @ (z - other) == pytest.approx(change, abs=1e-8)


def coordinates(dist, y, shape):
    """Links, and of further links what is not there."""
    parts = np.ravel(dist.parts(y))
    if not isinstance(dist, Flat):
        return parts
    n, m = dist.dist.scores.shape
    steps = parts[n * m + n + m :]
    matrix = np.zeros(shape)
    matrix[:n, :m] = parts[: n * m].reshape(n, m)
    more = shape[1] - m
    matrix[:n, m:] = 1.0 - steps[: n * more].reshape(n, more)
    matrix[n:, :m] = 1.0 - steps[n * more :].reshape(m, shape[0] - n).T
    return matrix.ravel()


def test_what_cannot_be_projected_on_says_so():
    scores = np.zeros((2, 2))
    for dist in (Matching(scores, 0.5), Matching(scores, fertility=Fertility(np.ones((2, 1)), np.ones((2, 1))))):
        with pytest.raises(ParameterError, match="Flat"):
            dist.polytope()
    with pytest.raises(ParameterError, match="FrankWolfe"):
        Flat(Matching(scores, pairs=neighbour_pairs(2, 2, monotone=1.0))).polytope()
    from isogloss.structures import Itg

    with pytest.raises(ParameterError, match="FrankWolfe"):
        Flat(Itg(scores)).polytope()
    assert Matching(scores, fertility=2).polytope().project(np.full(4, 2.0), np.zeros(2)).tolist() == [1.0] * 4


# --- extragradient -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_the_saddle_value_is_the_least_sum_of_hinges_of_a_generic_solver(bounds, radius):
    for seed in range(2):
        given = problem(seed)
        learner = Extragradient(given.model, given.targets, given.costs, radius=radius, **bounds)
        result = run(learner, learner.init(), iterations=1000, should_stop=lambda _, info: info.gap < 1e-6)
        w, value = given.solved(radius=radius, **bounds)
        assert -1e-9 <= result.watched["gap"][-1] < 1e-6
        assert (result.watched["dual"] <= value + 1e-6).all() and (-result.trace >= value - 1e-6).all()
        assert -result.trace[-1] == pytest.approx(value, abs=2e-6)
        np.testing.assert_allclose(result.state.weights, w, atol=1e-2)
        assert (result.watched["ratio"] <= 0.9).all()
        for weights in (result.state.weights, result.state.average):
            assert np.linalg.norm(weights) <= radius * (1 + 1e-12)
            assert (weights >= learner.region.lower - 1e-15).all() and (weights <= learner.region.upper + 1e-15).all()


def test_a_ball_and_a_penalty_have_the_same_optimum():
    given = problem(2)
    svm = FrankWolfe(given.model, given.targets, given.costs, l2=0.7)
    penalised = run(svm, svm.init(), iterations=200, should_stop=lambda _, info: info.gap < 1e-10).state.weights
    learner = Extragradient(given.model, given.targets, given.costs, radius=float(np.linalg.norm(penalised)))
    result = run(learner, learner.init(), iterations=1000, should_stop=lambda _, info: info.gap < 1e-8)
    assert learner.primal(result.state.weights) == pytest.approx(svm.primal(penalised) - 0.35 * penalised @ penalised)
    np.testing.assert_allclose(result.state.weights, penalised, atol=1e-4)


def test_second_links_are_learnt_on_the_polytope_with_signs_kept():
    rng = np.random.default_rng(4)
    dists = [Flat(fertile(rng, n, m, base=0.0)) for n, m in ((2, 2), (2, 3))]
    listed = [link_sets(*d.dist.scores.shape, 2, min(3, d.dist.n_source)) for d in dists]
    listed = [[y for y in each if np.isfinite(d.dist.score(y))] for d, each in zip(dists, listed)]
    dense = []
    for dist in dists:
        links, nulls = dist.dist.scores.size, sum(dist.dist.scores.shape)
        rows = np.zeros((dist.scores.size, 4))
        rows[:links, :2] = rng.normal(size=(links, 2))
        rows[links : links + nulls, 2] = -rng.random(nulls)  # nulls never score more than a second link costs
        rows[links + nulls :, 3] = -1.0
        dense.append(rows)
    given = Problem(dists, listed, rng, dense=np.concatenate(dense))
    bounds = {"lower": [-np.inf, -np.inf, 0.0, 0.0]}
    learner = Extragradient(given.model, given.targets, given.costs, radius=1.5, **bounds)
    result = run(learner, learner.init(), iterations=1000, should_stop=lambda _, info: info.gap < 1e-6)
    assert abs(result.watched["gap"][-1]) < 1e-6
    assert -result.trace[-1] == pytest.approx(given.solved(radius=1.5, **bounds)[1], abs=1e-5)
    assert (result.state.weights[2:] >= 0).all() and (result.state.average[2:] >= 0).all()


def separable(rng, shapes=((3, 3), (2, 4), (4, 3))):
    """Gold that some weights make the best by a wide margin."""
    dists, gold, dense = [], [], []
    for n, m in shapes:
        dist = Flat(Matching(np.zeros((n, m))))
        y = frozenset(enumerate(rng.permutation(m)[: min(n, m)].tolist()))
        links = dist.dist.parts(y)
        rows = np.concatenate([np.stack([links, 1 - links], axis=2).reshape(-1, 2), np.zeros((n + m, 2))])
        dists.append(dist)
        gold.append(y)
        dense.append(rows)
    return Problem(dists, [[y] for y in gold], rng, dense=np.concatenate(dense), gold=gold)


def test_all_hinges_are_zero_where_the_gold_can_be_separated():
    given = separable(np.random.default_rng(0))
    learner = Extragradient(given.model, given.targets, given.costs)
    result = run(learner, learner.init(), iterations=300, should_stop=lambda _, info: info.gap < 1e-9)
    assert result.trace[-1] == pytest.approx(0.0, abs=1e-9)
    assert [given.model.distribution(result.state.weights, s).argmax() for s in range(3)] == given.targets


def test_extragradient_keeps_the_laws_of_learners_whatever_the_order_of_sentences():
    shapes = [(2, 3)] * 10 + [(3, 2), (1, 1)] * 10
    rng = np.random.default_rng(6)
    dists, listed = flat_matchings(rng, shapes)
    given = Problem(dists, listed, rng)
    learner = Extragradient(given.model, given.targets, given.costs, radius=3.0)
    order = np.random.default_rng(0).permutation(len(dists))
    other = Problem(
        [dists[s] for s in order],
        [listed[s] for s in order],
        rng,
        dense=np.concatenate([given.features[s] for s in order]),
        gold=[given.targets[s] for s in order],
    )
    permuted = Extragradient(other.model, other.targets, other.costs, radius=3.0)
    check_learner(learner, learner.init(), steps=4)
    left, right = learner.init(), permuted.init()
    for _ in range(20):
        (left, one), (right, two) = learner.step(left), permuted.step(right)
        assert one.objective == pytest.approx(two.objective, rel=1e-9)
    np.testing.assert_allclose(left.weights, right.weights, atol=1e-9)


def test_plain_links_and_batches_give_the_same_as_flat_ones():
    rng = np.random.default_rng(8)
    shapes = [(3, 2), (2, 2)]
    dense = [rng.normal(size=(n * m, 3)) for n, m in shapes]
    gold = [frozenset({(0, 1)}), frozenset({(0, 0), (1, 1)})]
    costs = [hamming(Matching(np.zeros(shape)).parts(y)) for shape, y in zip(shapes, gold)]
    features = Sparse.of([[] for _ in np.concatenate(dense)], 0, dense=np.concatenate(dense))
    plain = LinearModel([Matching(np.zeros(shape)) for shape in shapes], features)
    batch = LinearModel(Matching.batch([np.zeros(shape) for shape in shapes]), features)
    wide = [np.concatenate([d, np.zeros((sum(shape), 3))]) for d, shape in zip(dense, shapes)]
    flat = LinearModel(
        [Flat(Matching(np.zeros(shape))) for shape in shapes],
        Sparse.of([[] for _ in np.concatenate(wide)], 0, dense=np.concatenate(wide)),
    )
    flat_costs = [Cost(np.append(np.ravel(c.parts), np.zeros(sum(s))), c.constant) for c, s in zip(costs, shapes)]
    found = []
    for model, of in ((plain, costs), (batch, costs), (flat, flat_costs)):
        learner = Extragradient(model, gold, of, radius=2.0)
        found.append(run(learner, learner.init(), iterations=30).state.weights)
    np.testing.assert_allclose(found[0], found[1], atol=1e-10)
    np.testing.assert_allclose(found[0], found[2], atol=1e-8)


def test_extragradient_refuses_what_it_cannot_do():
    given = problem(0)
    args = given.model, given.targets, given.costs
    for wrong in ({"radius": 0.0}, {"rate": 0.0}, {"tolerance": 0.0}, {"lower": 1.0, "radius": 0.5}):
        with pytest.raises(ParameterError):
            Extragradient(*args, **wrong)
    with pytest.raises(ParameterError, match="4 numbers"):
        Extragradient(*args).init(np.zeros(3))
    chains = LinearModel([Chain(np.zeros((1, 2, 2)))], Sparse.of([[0], [1], [], []], 2))
    with pytest.raises(ParameterError, match="FrankWolfe"):
        Extragradient(chains, [[0]], [Cost(np.zeros((1, 2, 2)))])
