"""Projections: the dual, its optimum and what it promises, against enumeration and a generic convex solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.learners.posterior import AtMost, Exactly, Features, Pair, bijective, project, project_pair
from isogloss.learners.posterior.dual import Dual
from isogloss.learners.posterior.features import as_features
from isogloss.structures import AlignmentChain, Chain, InfeasibleError
from isogloss.testing import brute_force_alignments, brute_force_chain
from isogloss.testing.solver import project_listed
from isogloss.testing.strategies import AlignmentInputs, alignment_inputs, alignment_pairs

FEW = settings(max_examples=25, deadline=None, derandomize=True)
TIGHT = {"tolerance": 1e-7}


def tilted(inputs, penalty):
    """The enumeration of a direction after its link scores are lowered."""
    return brute_force_alignments(*inputs._replace(emission=inputs.emission - penalty))


def example(n, m, seed=0, null_weight=0.2, spread=1.5):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(m + 1, m))
    rows -= np.logaddexp.reduce(rows, axis=1, keepdims=True)
    emission, null = rng.normal(0, spread, (n, m)), rng.normal(0, spread, n)
    return AlignmentInputs(emission, null, rows[0], rows[1:], null_weight, rng.normal(size=m + 1))


# --- bijectivity -------------------------------------------------------------------------------------------------


@given(alignment_inputs(most=3))
@FEW
def test_bijective_is_the_dual_optimum(inputs):
    found = bijective(AlignmentChain(*inputs), **TIGHT)
    p, q = brute_force_alignments(*inputs), tilted(inputs, found.multipliers)
    used = q.marginals.sum(axis=0)
    assert found.converged
    assert found.q.posterior() == pytest.approx(q.marginals, abs=1e-10)
    assert q.divergence(p) == pytest.approx(-found.dual, abs=1e-6)
    assert found.divergence == pytest.approx(q.divergence(p), abs=1e-9)
    assert found.bound == pytest.approx(p.log_partition - q.divergence(p), abs=1e-9)
    assert (used <= 1 + 1e-6).all() and (found.multipliers >= 0).all()
    assert used[found.multipliers > 1e-6] == pytest.approx(1.0, abs=1e-5)  # complementary slackness
    assert found.q.posterior().sum(axis=1) + found.q.null_posterior() == pytest.approx(np.ones(found.q.n))


@pytest.mark.parametrize(("n", "m"), [(3, 2), (3, 1), (2, 3)])
@pytest.mark.parametrize("slack", [0.0, 0.15])
def test_bijective_equals_a_generic_convex_solver(n, m, slack):
    inputs = example(n, m, seed=n + m)
    inputs.emission[:, 0] += 2.0  # garbage collection: one word takes all
    p = brute_force_alignments(*inputs)
    found = bijective(AlignmentChain(*inputs), most=0.6, slack=slack, **TIGHT)
    (q,) = project_listed([p.probabilities], [p.parts.sum(axis=1).T], np.full(m, 0.6), slack=slack)
    assert found.evaluations > 0 and found.divergence > 0.01
    assert tilted(inputs, found.multipliers).probabilities == pytest.approx(q, abs=2e-5)
    assert -found.dual == pytest.approx((q[q > 0] * np.log(q[q > 0] / p.probabilities[q > 0])).sum(), abs=1e-6)
    assert found.violation <= 1e-6


def test_bijective_without_null_is_reported_not_looped():
    crowded = AlignmentChain(*example(3, 2, null_weight=0.0))
    with pytest.raises(InfeasibleError, match="positive null probability"):
        bijective(crowded)
    for optimiser in ("gradient", "lbfgs"):
        with pytest.raises(InfeasibleError, match="2 constraints"):
            bijective(crowded, optimiser=optimiser)
    assert bijective(AlignmentChain(*example(2, 3, null_weight=0.0))).converged  # enough words: feasible without null
    assert bijective(crowded, most=1.5).converged  # 3 words on 2, one and a half each: the only way, and found
    assert bijective(crowded, slack=1.0).converged


# --- symmetry ----------------------------------------------------------------------------------------------------


@given(alignment_pairs(least=1, most=3, spread=1.0), st.sampled_from([0.0, 0.001, 0.1]))
@FEW
def test_symmetry_is_the_dual_optimum(pair, slack):
    forward, backward = pair
    found = project_pair(AlignmentChain(*forward), AlignmentChain(*backward), slack=slack, **TIGHT)
    links = found.multipliers
    qf, qb = tilted(forward, links.T), tilted(backward, -links)
    pf, pb = brute_force_alignments(*forward), brute_force_alignments(*backward)
    assert found.converged
    assert found.q.forward.posterior() == pytest.approx(qf.marginals, abs=1e-10)
    assert found.q.backward.posterior() == pytest.approx(qb.marginals, abs=1e-10)
    apart = qf.marginals.T - qb.marginals
    assert np.linalg.norm(apart) <= 2 * slack + 1e-6
    divergence = 0.5 * qf.divergence(pf) + 0.5 * qb.divergence(pb)
    assert divergence == pytest.approx(-found.dual, abs=1e-6)
    assert found.divergence == pytest.approx(divergence, abs=1e-9)
    for q in (qf, qb):  # symmetry implies bijectivity
        assert (q.marginals.sum(axis=0) <= 1 + 2 * slack * np.sqrt(links.size) + 1e-6).all()


@pytest.mark.parametrize(("n_source", "n_target"), [(2, 3), (3, 2), (1, 3)])
@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_symmetry_equals_a_generic_convex_solver(n_source, n_target, slack):
    forward, backward = example(n_target, n_source, 1), example(n_source, n_target, 2)
    p = [brute_force_alignments(*forward), brute_force_alignments(*backward)]
    features = [
        p[0].parts.transpose(0, 2, 1).reshape(len(p[0].parts), -1).T,
        -p[1].parts.reshape(len(p[1].parts), -1).T,
    ]
    zero = np.zeros(n_source * n_target)
    options = {"shares": (0.5, 0.5), "equality": True, "slack": slack}
    solved = project_listed([side.probabilities for side in p], features, zero, **options)
    found = project_pair(AlignmentChain(*forward), AlignmentChain(*backward), slack=slack, **TIGHT)
    assert tilted(forward, found.multipliers.T).probabilities == pytest.approx(solved[0], abs=5e-5)
    assert tilted(backward, -found.multipliers).probabilities == pytest.approx(solved[1], abs=5e-5)


def test_swapping_the_languages_swaps_the_answer():
    forward, backward = AlignmentChain(*example(3, 2, 1)), AlignmentChain(*example(2, 3, 2))
    one, two = project_pair(forward, backward, **TIGHT), project_pair(backward, forward, **TIGHT)
    assert two.multipliers == pytest.approx(-one.multipliers.T, abs=1e-5)
    assert two.q.forward.posterior() == pytest.approx(one.q.backward.posterior(), abs=1e-6)
    assert two.q.backward.posterior() == pytest.approx(one.q.forward.posterior(), abs=1e-6)


def test_mixture_variant_is_another_problem_and_is_solved():
    forward, backward = example(4, 3, 3), example(3, 4, 4)
    forward.emission[:, 0] += 2.0
    found = project_pair(AlignmentChain(*forward), AlignmentChain(*backward), slack=0.0, balanced=False, **TIGHT)
    share = found.q.share
    qf, qb = tilted(forward, found.multipliers.T), tilted(backward, -found.multipliers)
    pf, pb = brute_force_alignments(*forward), brute_force_alignments(*backward)
    assert share * qf.marginals.T == pytest.approx((1 - share) * qb.marginals, abs=1e-6)
    assert np.abs(qf.marginals.T - qb.marginals).max() > 0.02 and share != pytest.approx(0.5, abs=0.01)
    mixing = share * np.log(2 * share) + (1 - share) * np.log(2 * (1 - share))
    divergence = share * qf.divergence(pf) + (1 - share) * qb.divergence(pb) + mixing
    assert divergence == pytest.approx(-found.dual, abs=1e-6)
    assert found.divergence == pytest.approx(divergence, abs=1e-9)
    balanced = project_pair(AlignmentChain(*forward), AlignmentChain(*backward), slack=0.0, **TIGHT)
    assert balanced.q.share == 0.5
    assert balanced.q.forward.posterior() == pytest.approx(balanced.q.backward.posterior().T, abs=1e-6)


def test_fixed_steps_are_those_of_ganchev_2008():
    forward, backward = example(4, 3, 5), example(3, 4, 6)
    theirs = np.zeros((3, 4))  # algorithm 1, on the enumeration; its λ has the other sign
    for _ in range(7):
        qf, qb = tilted(forward, -theirs.T), tilted(backward, theirs)
        theirs += -qf.marginals.T + qb.marginals
    options = {"slack": 0.0, "optimiser": "fixed", "rate": 2.0}
    found = project_pair(AlignmentChain(*forward), AlignmentChain(*backward), steps=7, **options)
    assert -found.multipliers == pytest.approx(theirs, abs=1e-10)
    assert found.evaluations == 7 and not found.converged
    more = project_pair(AlignmentChain(*forward), AlignmentChain(*backward), steps=60, **options)
    assert more.violation < 0.3 * found.violation


def test_symmetry_without_null_is_reported_not_looped():
    forward, backward = (AlignmentChain(*example(n, m, null_weight=0.0)) for n, m in ((3, 2), (2, 3)))
    for slack in (0.0, 0.001):
        with pytest.raises(InfeasibleError, match="6 constraints"):
            project_pair(forward, backward, slack=slack)
    same = [AlignmentChain(*example(2, 2, seed, null_weight=0.0)) for seed in (0, 1)]
    assert project_pair(*same, slack=0.001).converged  # equal lengths need no null


def test_link_impossible_in_one_direction_only():
    forward, backward = example(3, 2, 1), example(2, 3, 2)
    forward.emission[0, 0] = -np.inf
    found = project_pair(AlignmentChain(*forward), AlignmentChain(*backward), slack=0.001)
    assert found.converged and np.isfinite(found.multipliers).all()
    assert found.q.forward.posterior()[0, 0] == 0 and found.q.backward.posterior()[0, 0] <= 0.0021


def test_empty_and_wrong_sides():
    found = project_pair(AlignmentChain(*example(3, 0)), AlignmentChain(*example(0, 3)))
    assert found.evaluations == 0 and found.multipliers.shape == (0, 3)
    with pytest.raises(ParameterError, match="wrong way round"):
        project_pair(AlignmentChain(*example(3, 2)), AlignmentChain(*example(3, 2)))


# --- the generic projector ---------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.0, 0.2]))
@FEW
def test_any_features_on_a_chain(seed, equality, slack):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(3, 2, 2))
    scores[1, 1, 0] = -np.inf
    features = rng.normal(size=(2, *scores.shape))
    p = brute_force_chain(scores)
    listed = np.tensordot(features, np.moveaxis(p.parts, 0, -1), 3)
    inner = rng.dirichlet(np.ones(len(p.structures))) * (p.probabilities > 0)
    bound = listed @ (inner / inner.sum())  # some q meets this, so the problem is feasible
    found = project(Chain(scores), features, bound, equality=equality, slack=slack, **TIGHT)
    (q,) = project_listed([p.probabilities], [listed], bound, equality=equality, slack=slack)
    here = brute_force_chain(found.q.scores)
    excess = listed @ here.probabilities - bound
    broken = excess if equality else np.maximum(excess, 0)
    assert found.converged
    assert here.divergence(p) == pytest.approx(-found.dual, abs=1e-6)
    assert here.probabilities == pytest.approx(q, abs=2e-4)
    assert np.linalg.norm(broken) <= slack + 1e-6
    assert equality or (found.multipliers >= 0).all()
    assert found.violation == pytest.approx(max(0.0, np.linalg.norm(broken) - slack), abs=1e-9)


@pytest.mark.parametrize(("equality", "slack"), [(False, 0.0), (True, 0.0), (True, 0.3), (False, 0.02)])
def test_gradient_of_the_dual_by_finite_difference(equality, slack):
    rng = np.random.default_rng(4)
    scores, features, bound = rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 3, 2, 2)), rng.normal(size=3)
    penalty = (Exactly if equality else AtMost)(bound, slack)
    dual = Dual(Chain(scores), as_features(features, 3, scores.shape, "test"), penalty)
    p = brute_force_chain(scores)

    def value(multipliers):
        moved = brute_force_chain(scores - np.tensordot(multipliers, features, 1))
        return multipliers @ bound + moved.log_partition - p.log_partition + slack * np.linalg.norm(multipliers)

    at, step = rng.random(3) + 0.1, 1e-6
    point = dual.at(at)
    slopes = [(value(at + step * e) - value(at - step * e)) / (2 * step) for e in np.eye(3)]
    assert point.value == pytest.approx(value(at), abs=1e-12)
    assert point.gradient == pytest.approx(np.array(slopes), abs=1e-7)
    # At the kink, the gradient reported is that of the steepest way down.
    origin = dual.origin
    broken = penalty.broken(origin.expectations)
    way = broken / np.linalg.norm(broken)
    assert (value(step * way) - value(np.zeros(3))) / step == pytest.approx(origin.gradient @ way, abs=1e-4)


def test_nothing_is_done_when_the_constraints_hold():
    dist = AlignmentChain(*example(2, 3))
    found = bijective(dist, most=2.5)
    assert found.q is dist and found.evaluations == 0 and found.converged and not found.multipliers.any()
    assert found.dual == found.divergence == found.violation == 0 and found.bound == dist.log_partition()
    # Exactly at the edge of the slack: 0 is optimal just below it and not just above.
    excess = np.maximum(dist.posterior().sum(axis=0) - 0.3, 0)
    edge = np.linalg.norm(excess)
    assert bijective(dist, most=0.3, slack=edge * 1.0001).evaluations == 0
    assert bijective(dist, most=0.3, slack=edge * 0.999).evaluations > 0
    # A pair that agrees already.
    coin = Chain(np.zeros((1, 2, 2)))
    agreeing = project(Pair(coin, coin), Features(lambda mu: mu[:4] - mu[4:], lambda x: np.append(x, -x)), [0] * 4)
    assert agreeing.evaluations == 0


def test_dense_features_and_operators_agree_and_so_do_optimisers():
    dist = AlignmentChain(*example(4, 2, 8))
    dense = np.zeros((2, 4, 2))
    dense[[0, 1], :, [0, 1]] = 1.0
    first = bijective(dist, most=0.8, **TIGHT)
    second = project(dist, dense, [0.8, 0.8], **TIGHT)
    assert second.multipliers == pytest.approx(first.multipliers, abs=1e-10)
    slow = bijective(dist, most=0.8, optimiser="gradient", tolerance=1e-5)
    assert slow.converged and slow.multipliers == pytest.approx(first.multipliers, abs=1e-3)
    fixed = bijective(dist, most=0.8, optimiser="fixed", rate=1.0, tolerance=1e-5)
    assert fixed.converged and fixed.multipliers == pytest.approx(first.multipliers, abs=1e-3)


def test_a_warm_start_saves_work_and_a_cap_is_reported():
    pair = AlignmentChain(*example(3, 4, 1)), AlignmentChain(*example(4, 3, 2))
    cold = project_pair(*pair)
    warm = project_pair(*pair, start=cold.multipliers)
    assert warm.converged and warm.evaluations < cold.evaluations / 2
    violations = [project_pair(*pair, steps=steps).violation for steps in (2, 6, 200)]
    assert violations[0] > violations[1] > violations[2]
    capped = project_pair(*pair, steps=3)
    assert not capped.converged and capped.evaluations <= 4 and np.isfinite(capped.dual)
    loose, tight = project_pair(*pair, tolerance=1e-2), project_pair(*pair, tolerance=1e-6)
    assert loose.evaluations < tight.evaluations and loose.violation > tight.violation


def test_pair_is_a_structure_whose_marginals_are_derivatives():
    forward, backward = AlignmentChain(*example(3, 2, 1)), AlignmentChain(*example(2, 3, 2))
    for balanced in (True, False):
        pair = Pair(forward, backward, balanced=balanced)
        pair = pair.with_scores(pair.scores + np.linspace(-1, 1, pair.scores.size))  # away from the base
        for at in range(pair.scores.size):
            nudge = np.zeros(pair.scores.size)
            nudge[at] = 1e-6
            up, down = (pair.with_scores(pair.scores + sign * nudge).log_partition() for sign in (1, -1))
            assert (up - down) / 2e-6 == pytest.approx(pair.marginals()[at], abs=1e-6)
    assert pair.parts(pair.argmax()).sum() <= 5
    assert [len(y) for y in pair.sample(np.random.default_rng(0))] == [3, 2]


def test_bad_arguments_are_refused_by_name():
    dist = Chain(np.zeros((1, 2, 2)))
    one = np.ones((1, 1, 2, 2))
    for options, message in (
        ({"bound": [1.0, 2.0]}, "features should be"),
        ({"bound": [np.inf]}, "bound"),
        ({"slack": -1.0}, "slack"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"steps": 0}, "steps"),
        ({"optimiser": "newton", "bound": [0.0]}, "optimiser"),
    ):
        with pytest.raises(ParameterError, match=message):
            project(dist, one, **{"bound": [1.0], **options})
