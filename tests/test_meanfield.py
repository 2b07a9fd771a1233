"""Structured mean field against enumeration of all structures together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.meanfield import CoupledLikelihood, Coupling, mean_field
from isogloss.learners.optimisers import Lbfgs
from isogloss.learners.runner import run
from isogloss.structures import ProjectiveTree, SpanningTree
from isogloss.structures.batch import Batch
from isogloss.structures.chain import Chain

SIZES = [(3, 2), (1, 2), (2, 0)]
"""Words of both sides of each pair."""


def made(seed: int = 0, strength: float = 1.0) -> tuple[list[Batch], Coupling, NDArray[np.float64]]:
    """Two trees and a chain for each pair, and random triples and pairs of their parts."""
    rng = np.random.default_rng(seed)
    components: list[Batch] = [
        SpanningTree.batch([rng.normal(size=(n + 1, n + 1)) for n, _ in SIZES], single_root=True),
        Chain.batch([rng.normal(size=(2, 2, 2)) for _ in SIZES]),
        ProjectiveTree.batch([rng.normal(size=(m + 1, m + 1)) for _, m in SIZES]),
    ]
    sizes = [len(one.scores.values) for one in components]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    tuples = []
    for s in range(len(SIZES)):
        bounds = [one.scores.offsets[s : s + 2] + starts[k] for k, one in enumerate(components)]
        for _ in range(8):
            picked = [int(rng.integers(*own)) for own in bounds]
            picked[int(rng.integers(3))] = -1 if rng.random() < 0.4 else picked[0]
            tuples.append(picked if len(set(picked)) == 3 else [picked[0], -1, int(rng.integers(*bounds[2]))])
    owner = np.searchsorted(starts, tuples, side="right") - 1
    fine = [[t[a] if (owner[i][:a] != owner[i][a]).all() else -1 for a in range(3)] for i, t in enumerate(tuples)]
    return components, Coupling(sizes, fine), strength * rng.normal(size=len(fine))


def structures_of(one: object, count: int) -> list[NDArray[np.float64]]:
    """The parts of all trees of `count` words, or all sequences of two states, by trying everything."""
    if isinstance(one, Chain):
        return [np.asarray(one.parts(list(y))) for y in itertools.product(range(2), repeat=2)]
    found = []
    for heads in itertools.product(range(count + 1), repeat=count):
        try:
            if one.score(heads) > -np.inf:  # type: ignore[attr-defined]
                found.append(np.asarray(one.parts(heads)))  # type: ignore[attr-defined]
        except ParameterError:
            continue
    return found


def enumerated(components: list[Batch], coupling: Coupling, weights: NDArray[np.float64]) -> tuple[float, NDArray]:
    """log Z of all pairs together, and exact marginals of all parts."""
    total, exact = 0.0, np.zeros(coupling.starts[-1])
    for s, lengths in enumerate(SIZES):
        ones = [component[s] for component in components]
        every = [structures_of(one, n) for one, n in zip(ones, (lengths[0], 2, lengths[1]), strict=True)]
        scores, vectors = [], []
        for chosen in itertools.product(*every):
            vector = np.zeros(coupling.starts[-1])
            value = 0.0
            for k, parts in enumerate(chosen):
                at = coupling.starts[k] + components[k].scores.offsets[s]
                vector[at : at + parts.size] = parts.ravel()
                value += float((parts * np.where(parts > 0, ones[k].scores, 0)).sum())
            here = [all(p < 0 or vector[p] for p in row) for row in coupling.tuples.tolist()]
            # tuples of other pairs have a part that is not there, since every tuple has one at least
            value += float(weights[np.array(here)].sum())
            scores.append(value)
            vectors.append(vector)
        top = max(scores)
        shares = np.exp(np.array(scores) - top)
        total += top + float(np.log(shares.sum()))
        exact += (shares / shares.sum()) @ np.array(vectors)
    return total, exact


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_lies_below_log_z_and_never_falls(seed: int) -> None:
    components, coupling, weights = made(seed, 2.0)
    found = mean_field(components, coupling, weights, sweeps=100, tolerance=1e-10)
    total, _ = enumerated(components, coupling, weights)
    assert found.bound <= total + 1e-9
    assert (np.diff(found.trace) >= -1e-9).all() and found.trace[-1] > found.trace[0]


def test_without_weights_nothing_changes_and_the_bound_is_log_z() -> None:
    components, coupling, weights = made()
    found = mean_field(components, coupling, 0 * weights)
    total, exact = enumerated(components, coupling, 0 * weights)
    assert found.converged and len(found.trace) == 4  # the start, and one sweep
    assert found.bound == pytest.approx(total) and found.marginals == pytest.approx(exact)


def test_small_weights_agree_to_second_order() -> None:
    components, coupling, weights = made(1)
    errors = []
    for size in (0.1, 0.05):
        found = mean_field(components, coupling, size * weights, sweeps=100, tolerance=1e-12)
        total, _ = enumerated(components, coupling, size * weights)
        errors.append(total - found.bound)
    assert 0 <= errors[1] < errors[0] < 0.1
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.25)


def test_one_free_component_is_exact() -> None:
    components, coupling, weights = made(2, 2.0)
    known = [components[0].clamp(components[0].argmax()), components[1], components[2].clamp(components[2].argmax())]
    found = mean_field(known, coupling, weights, order=[1], tolerance=0.0)
    total, exact = enumerated(known, coupling, weights)
    assert found.bound == pytest.approx(total) and found.marginals == pytest.approx(exact)


def test_the_order_of_components_does_not_matter() -> None:
    components, coupling, weights = made(3)
    one = mean_field(components, coupling, weights, sweeps=50, tolerance=1e-12)
    sizes = np.diff(coupling.starts)
    turned = np.concatenate([[0], np.cumsum(sizes[::-1])])
    owner = np.searchsorted(coupling.starts, coupling.tuples, side="right") - 1
    moved = coupling.tuples - coupling.starts[owner] + turned[2 - owner]
    other = Coupling(sizes[::-1].tolist(), np.where(coupling.tuples < 0, -1, moved))
    two = mean_field(components[::-1], other, weights, order=[2, 1, 0], sweeps=50, tolerance=1e-12)
    assert two.bound == pytest.approx(one.bound)
    assert two.components[0].marginals().values == pytest.approx(one.components[2].marginals().values)


def objective(seed: int = 4) -> CoupledLikelihood:
    components, coupling, _ = made(seed)
    features = Sparse.of([[t % 3, 3 + t % 2] for t in range(len(coupling))], 5)
    rng = np.random.default_rng(7)
    known = [components[0].clamp(components[0].sample(rng)), components[1], components[2].clamp(components[2].argmax())]
    return CoupledLikelihood(components, known, coupling, features, sweeps=500, tolerance=1e-12)


def test_the_gradient_agrees_with_finite_differences() -> None:
    told, weights, step = objective(), np.array([0.3, -0.2, 0.4, 0.1, -0.5]), 1e-5
    slope = np.zeros(5)
    told.add_gradient(weights, slope)
    for k, one in enumerate(np.eye(5)):
        above, below = (told.add_gradient(weights + sign * step * one, np.zeros(5)) for sign in (1, -1))
        assert slope[k] == pytest.approx((above - below) / (2 * step), abs=1e-5)


def test_an_optimiser_raises_it() -> None:
    told = objective()
    learner = Lbfgs(told, l2=0.1)
    start = learner.init()
    assert run(learner, start, iterations=10).state.value > start.value


def test_what_makes_no_sense_is_refused() -> None:
    components, coupling, weights = made()
    with pytest.raises(ParameterError, match="two parts of component 0"):
        Coupling([4, 9], [[0, 1]])
    with pytest.raises(ParameterError, match="numbers from 0 to 12"):
        Coupling([4, 9], [[0, 13]])
    with pytest.raises(ParameterError, match="one for each tuple"):
        mean_field(components, coupling, weights[1:])
    with pytest.raises(ParameterError, match="the coupling is of others"):
        mean_field(components[:2], coupling, weights)
