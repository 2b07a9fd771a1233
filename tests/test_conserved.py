"""Shares of parts that are kept in expectation: the dual of one number for each structure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.learners.posterior import AtMost, PartSets, attainable_shares, conserve, regularise
from isogloss.structures import Chain, ProjectiveTree, ProjectiveTrees, SpanningTree
from isogloss.testing.enumerate import tree_parts, trees
from isogloss.testing.solver import project_listed

TIGHT = 1e-9


@st.composite
def cases(draw: st.DrawFn, most: int = 4) -> tuple[np.ndarray, list[int], np.ndarray, float, bool]:
    """Scores of one tree, the places of some links, their weights, a share, and whether the root has one child."""
    n = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    scores = 2 * rng.normal(size=(n + 1, n + 1))
    if draw(st.booleans()):
        scores[draw(st.integers(1, n)), draw(st.integers(1, n))] = -np.inf
    cells = [h * (n + 1) + c for h in range(n + 1) for c in range(1, n + 1) if h != c]
    places = draw(st.lists(st.sampled_from(cells), unique=True, max_size=5))
    weights = rng.choice([0.5, 1.0, 2.0], len(places)) if draw(st.booleans()) else np.ones(len(places))
    return scores, sorted(places), weights, draw(st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0])), draw(st.booleans())


def listed(scores: np.ndarray, single_root: bool) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of all trees, and their parts."""
    parts = np.array(
        [tree_parts(tree).ravel() for tree in trees(len(scores) - 1, projective=True, single_root=single_root)]
    )
    total = np.array([scores.ravel()[row > 0].sum() for row in parts])
    p = np.exp(total - total.max())
    return p / p.sum(), parts


@settings(max_examples=60, deadline=None)
@given(cases())
def test_it_is_what_a_generic_solver_finds_over_all_trees(drawn: tuple) -> None:
    scores, places, weights, share, single_root = drawn
    batch = ProjectiveTree.batch([scores], single_root=single_root)
    found = conserve(batch, PartSets.of([places], [weights]), share, tolerance=TIGHT, margin=0.05)
    p, parts = listed(scores, single_root)
    own = np.zeros(len(p)) if not places else parts[:, places] @ weights / weights.sum()
    if not places:
        assert found.gains[0] == 0 and np.array_equal(found.marginals, batch.marginals().values)
        return
    asked = min(share, own[p > 0].max() - 0.05)
    assert attainable_shares(batch, PartSets.of([places], [weights]))[0] == pytest.approx(own[p > 0].max())
    if p @ own >= asked:
        assert found.gains[0] == 0 and found.divergence[0] == 0
        assert np.array_equal(found.marginals, batch.marginals().values)
        return
    assert found.asked[0] == pytest.approx(asked)
    assert found.shares[0] == pytest.approx(asked, abs=10 * TIGHT)
    (q,) = project_listed([p], [-own[None]], [-asked])
    assert found.marginals == pytest.approx(q @ parts, abs=2e-4)
    held = q > 0
    assert found.divergence[0] == pytest.approx(float(q[held] @ np.log(q[held] / p[held])), abs=1e-4)
    assert found.values[0] == pytest.approx(batch.log_partition()[0] - found.divergence[0])


@settings(max_examples=60, deadline=None)
@given(cases(5))
def test_slackness_gap_and_sign(drawn: tuple) -> None:
    scores, places, weights, share, single_root = drawn
    batch = ProjectiveTree.batch([scores], single_root=single_root)
    found = conserve(batch, PartSets.of([places], [weights]), share, tolerance=TIGHT)
    assert found.multipliers[0] >= 0 and found.divergence[0] >= 0
    assert abs(found.multipliers[0] * (found.shares[0] - found.asked[0])) < 1e-6
    if not found.gains[0]:
        return
    a = np.zeros(scores.size)
    a[places] = weights / weights.max()
    q = batch.with_scores(batch.scores.like(batch.scores.values + found.gains[0] * a))
    assert found.marginals == pytest.approx(q.marginals().values)
    primal = found.gains[0] * float(a @ found.marginals) - float(q.log_partition()[0] - batch.log_partition()[0])
    assert primal == pytest.approx(found.divergence[0], abs=1e-6)


def many(seed: int = 0, count: int = 40) -> tuple[ProjectiveTrees, PartSets]:
    rng = np.random.default_rng(seed)
    scores, sets = [], []
    for _ in range(count):
        n = int(rng.integers(0, 12))
        scores.append(3 * rng.normal(size=(n + 1, n + 1)))
        links = (
            {(int(rng.integers(0, n + 1)), int(rng.integers(1, n + 1))) for _ in range(rng.integers(0, n + 1))}
            if n
            else set()
        )
        sets.append(sorted(h * (n + 1) + c for h, c in links if h != c))
    return ProjectiveTree.batch(scores, single_root=True), PartSets.of(sets)


def test_all_at_once_is_one_by_one_on_any_number_of_threads() -> None:
    batch, sets = many()
    with using_threads(1):
        whole = conserve(batch, sets, 0.9)
    with using_threads(2):
        again = conserve(batch, sets, 0.9)
    assert np.array_equal(whole.marginals, again.marginals) and np.array_equal(whole.gains, again.gains)
    assert (whole.gains > 0).sum() > 10 and (whole.gains == 0).sum() > 3
    for s in range(len(batch)):
        row = np.array([s])
        one = conserve(batch.take(row), sets.take(row), 0.9)
        here = slice(batch.scores.offsets[s], batch.scores.offsets[s + 1])
        assert np.array_equal(one.marginals, whole.marginals[here]) and one.gains[0] == whole.gains[s]


def test_it_is_what_the_general_projection_finds() -> None:
    batch, sets = many(3, 6)
    found = conserve(batch, sets, 0.8, tolerance=TIGHT)
    for s in range(len(batch)):
        places = sets.places[sets.offsets[s] : sets.offsets[s + 1]]
        if not found.gains[s]:
            continue
        feature = np.zeros((1, *batch.scores.shapes[s]))
        feature.reshape(-1)[places] = -1 / len(places)
        other = regularise(batch[s], feature, AtMost([-found.asked[s]]), tolerance=1e-8)
        assert other.q.marginals().ravel() == pytest.approx(
            found.marginals[batch.scores.offsets[s] : batch.scores.offsets[s + 1]], abs=1e-5
        )
        assert other.multipliers[0] == pytest.approx(found.multipliers[s], rel=1e-4)


def test_a_start_changes_nothing_but_the_work() -> None:
    batch, sets = many(1)
    cold = conserve(batch, sets, 0.9, tolerance=TIGHT)
    warm = conserve(batch, sets, 0.9, tolerance=TIGHT, start=cold.gains, attainable=attainable_shares(batch, sets))
    assert warm.marginals == pytest.approx(cold.marginals, abs=1e-7)
    assert warm.evaluations < cold.evaluations / 4
    assert cold.evaluations < 12 * (cold.gains > 0).sum()


def test_two_heads_of_one_word_are_kept_half_each_at_most() -> None:
    batch = ProjectiveTree.batch([np.zeros((3, 3))])
    both = PartSets.of([[1, 7]])  # 0 -> 1 and 2 -> 1
    found = conserve(batch, both, 0.9)
    assert found.asked[0] == found.shares[0] or found.asked[0] == pytest.approx(0.49)
    assert found.gains[0] == 0  # word 1 has no third head: they have half in any case
    with_gain = conserve(ProjectiveTree.batch([np.zeros((4, 4))]), PartSets.of([[1, 9]]), 0.9, tolerance=TIGHT)
    assert with_gain.shares[0] == pytest.approx(0.49) and np.isfinite(with_gain.gains[0])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_edge_cases(share: float) -> None:
    batch = ProjectiveTree.batch([np.zeros((1, 1)), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((4, 4))])
    found = conserve(batch, PartSets.of([[], [1], [], []]), share)  # no words; n = 1, its only link; nothing to keep
    assert not found.gains.any() and not found.divergence.any()
    assert np.array_equal(found.marginals, batch.marginals().values)
    assert found.shares.tolist() == [1.0, 1.0, 1.0, 1.0]


def test_shares_of_nothing_and_of_all() -> None:
    batch, sets = many(5)
    assert not conserve(batch, sets, 0.0).gains.any()
    every = conserve(batch, sets, 1.0, tolerance=TIGHT)
    top = attainable_shares(batch, sets)
    active = every.gains > 0
    assert active.sum() > 20 and every.shares[active] == pytest.approx(top[active] - 0.01, abs=1e-6)


def test_a_gain_has_a_limit_beyond_which_less_is_kept() -> None:
    scores = np.array([[0, 0, 0], [0, 0, -100.0], [0, 0, 0]])
    found = conserve(ProjectiveTree.batch([scores]), PartSets.of([[5]]), 0.9, most=5.0)
    assert found.gains[0] == 5.0 and found.shares[0] < 1e-9


def test_any_batch_will_do() -> None:
    rng = np.random.default_rng(2)
    spanning = SpanningTree.batch([rng.normal(size=(5, 5)) for _ in range(3)])
    found = conserve(spanning, PartSets.of([[1, 7], [9], []]), 0.9, tolerance=1e-6)
    assert found.shares[:2] == pytest.approx(found.asked[:2], abs=1e-6)
    chains = Chain.batch([rng.normal(size=(n, 3, 3)) for n in (2, 4)])
    kept = conserve(chains, PartSets.of([[0], [9]]), 0.95, tolerance=1e-6)
    assert kept.shares == pytest.approx(np.array([0.95, 0.95]), abs=1e-6)


@pytest.mark.parametrize(
    ("sets", "finding"),
    [
        (PartSets.of([[1], [2]]), "one for each"),
        (PartSets.of([[9]]), "places should be"),
        (PartSets.of([[-1]]), "places should be"),
        (PartSets.of([[1, 1]]), "named twice"),
        (PartSets.of([[1]], [[0.0]]), "weights should be"),
        (PartSets.of([[1]], [[np.nan]]), "weights should be"),
    ],
)
def test_sets_that_do_not_fit_are_refused(sets: PartSets, finding: str) -> None:
    with pytest.raises(ParameterError, match=finding):
        conserve(ProjectiveTree.batch([np.zeros((3, 3))]), sets, 0.9)


def test_shares_outside_of_the_range_are_refused() -> None:
    with pytest.raises(ParameterError, match="from 0 to 1"):
        conserve(ProjectiveTree.batch([np.zeros((3, 3))]), PartSets.of([[1]]), 1.5)
