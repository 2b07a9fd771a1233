"""Structured mean field against enumeration of all structures together, and the subsets that links may be."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.meanfield import CoupledLikelihood, Coupling, FieldLikelihood, mean_field
from isogloss.learners.optimisers import Lbfgs
from isogloss.learners.runner import run
from isogloss.structures import Itg, ProjectiveTree, SpanningTree, Subset
from isogloss.structures.batch import Batch
from isogloss.testing import brute_force_itg, brute_force_subsets, brute_force_trees, check_structure

SIZES = [(3, 2), (1, 2), (2, 0), (1, 1)]
"""Words of both sides of each pair."""
Array = NDArray[np.float64]


def made(seed: int = 0, strength: float = 1.0, kind: str = "subset") -> tuple[list[Batch[Any]], Coupling, Array]:
    """Links between two sentences and a tree over each, with random tuples of their parts, single ones among them."""
    rng = np.random.default_rng(seed)
    links = [rng.normal(size=size) for size in SIZES]
    links[0][0, 0] = -np.inf
    components: list[Batch[Any]] = [
        Subset.batch(links) if kind == "subset" else Itg.batch(links),
        SpanningTree.batch([rng.normal(size=(n + 1, n + 1)) for n, _ in SIZES], single_root=True),
        ProjectiveTree.batch([rng.normal(size=(m + 1, m + 1)) for _, m in SIZES]),
    ]
    sizes = [len(one.scores.values) for one in components]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    tuples = []
    for s in range(len(SIZES)):
        bounds = [one.scores.offsets[s : s + 2] + starts[k] for k, one in enumerate(components)]
        for _ in range(12 if s == 0 else 4):
            picked = [int(rng.integers(*own)) if own[0] < own[1] and rng.random() < 0.75 else -1 for own in bounds]
            second = int(rng.integers(*bounds[0])) if kind == "subset" and picked[0] >= 0 else -1
            tuples.append([*picked, -1 if second == picked[0] else second])
    tuples = [row for row in tuples if max(row) >= 0]
    return components, Coupling(sizes, tuples, [0] if kind == "subset" else []), strength * rng.normal(size=len(tuples))


def structures_of(one: Any) -> list[Array]:
    """The parts of all structures that are allowed, by enumerators that share no code with the structures."""
    if isinstance(one, Subset):
        parts = [p for p in brute_force_subsets(one.scores).parts if (p[one.required] > 0).all()]
    elif isinstance(one, Itg):
        parts = list(brute_force_itg(one.scores, one.source_null, one.target_null).parts)
    else:
        options = {"projective": isinstance(one, ProjectiveTree), "single_root": one.single_root}
        parts = list(brute_force_trees(one.scores, **options).parts)
    return [np.asarray(p) for p in parts if (one.scores[p > 0] > -np.inf).all()]


def enumerated(components: list[Batch[Any]], coupling: Coupling, weights: Array) -> tuple[float, Array]:
    """log Z of all pairs together, and exact marginals of all parts."""
    total, exact = 0.0, np.zeros(coupling.starts[-1])
    for s in range(len(SIZES)):
        ones = [component[s] for component in components]
        scores, vectors = [], []
        for chosen in itertools.product(*(structures_of(one) for one in ones)):
            vector = np.zeros(coupling.starts[-1])
            value = 0.0
            for k, parts in enumerate(chosen):
                at = coupling.starts[k] + components[k].scores.offsets[s]
                vector[at : at + parts.size] = parts.ravel()
                value += float(ones[k].scores[parts > 0].sum())
            # tuples of other pairs have a part that is not there, since every tuple has one at least
            here = np.where(coupling.tuples < 0, 1, vector[coupling.tuples]).all(axis=1)
            scores.append(value + float(weights[here].sum()))
            vectors.append(vector)
        top = max(scores)
        shares = np.exp(np.array(scores) - top)
        total += top + float(np.log(shares.sum()))
        exact += (shares / shares.sum()) @ np.array(vectors)
    return total, exact


def test_laws_of_subsets() -> None:
    shapes = [(0, 2), (1, 1), (2, 2), (1, 3)]
    count = lambda shape: 2 ** int(np.prod(shape))  # noqa: E731
    check_structure(Subset, brute_force_subsets, shapes=shapes, count=count, batch=Subset.batch)
    check_structure(Subset, brute_force_subsets, shapes=[(3,)])
    held = Subset([[0.3, -0.2], [0.1, 0.4]], [[False, True], [False, False]])
    with_it = [y for y in brute_force_subsets(held.scores).parts if y[0, 1]]
    shares = np.exp([float(held.scores[y > 0].sum()) for y in with_it])
    assert held.log_partition() == pytest.approx(np.log(shares.sum()))
    assert held.marginals() == pytest.approx(np.tensordot(shares / shares.sum(), with_it, 1))
    assert held.log_prob({(0, 0)}) == -np.inf and (0, 1) in held.argmax()
    with pytest.raises(ParameterError, match="both required and forbidden"):
        Subset([-np.inf], [True])


@pytest.mark.parametrize("kind", ["subset", "itg"])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_lies_below_log_z_and_never_falls(seed: int, kind: str) -> None:
    components, coupling, weights = made(seed, 2.0, kind)
    found = mean_field(components, coupling, weights, sweeps=100, tolerance=1e-10)
    total, _ = enumerated(components, coupling, weights)
    assert found.bound <= total + 1e-9
    assert (np.diff(found.trace) >= -1e-9).all() and found.trace[-1] > found.trace[0]


def test_without_coupling_nothing_changes_and_the_bound_is_log_z() -> None:
    components, coupling, weights = made()
    alone = np.where(coupling.alone, weights, 0.0)  # scores of single parts are no coupling
    assert alone.any()
    found = mean_field(components, coupling, alone)
    total, exact = enumerated(components, coupling, alone)
    assert found.converged and len(found.trace) == 4  # the start, and one sweep
    assert found.bound == pytest.approx(total) and found.marginals == pytest.approx(exact)
    assert found.trace == pytest.approx([total] * 4)


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
    components, coupling, weights = made(2, 2.0, "itg")
    known = [components[0], *(one.clamp(one.argmax()) for one in components[1:])]
    found = mean_field(known, coupling, weights, tolerance=1e-12)
    total, exact = enumerated(known, coupling, weights)
    assert found.bound == pytest.approx(total) and found.marginals == pytest.approx(exact)


def test_one_pair_does_not_hear_of_the_others() -> None:
    components, coupling, weights = made(3, 1.5)
    found = mean_field(components, coupling, weights)
    for s in range(len(SIZES)):
        bounds = [one.scores.offsets[s : s + 2] for one in components]
        sizes = [int(b[1] - b[0]) for b in bounds]
        owner = np.searchsorted(coupling.starts, coupling.tuples, side="right") - 1
        inside = np.concatenate([coupling.starts[k] + np.arange(*b) for k, b in enumerate(bounds)])
        here = np.isin(coupling.tuples, inside).any(axis=1)
        shift = np.array([coupling.starts[k] + b[0] for k, b in enumerate(bounds)]) - np.cumsum([0, *sizes[:2]])
        moved = np.where(coupling.tuples < 0, -1, coupling.tuples - shift[owner])[here]
        alone = mean_field([one.take([s]) for one in components], Coupling(sizes, moved, [0]), weights[here])
        assert np.array_equal(alone.marginals, found.marginals[inside])


def test_swapping_languages_transposes_everything() -> None:
    components, coupling, weights = made(3)
    one = mean_field(components, coupling, weights, order=[0, 1, 2], sweeps=200, tolerance=1e-13)
    turned = [Subset.batch([scores.T for scores in components[0].scores]), components[2], components[1]]
    cells = Subset.batch([np.arange(a, b).reshape(shape).T for a, b, shape in zip(
        components[0].scores.offsets[:-1], components[0].scores.offsets[1:], components[0].scores.shapes, strict=True
    )]).scores.values.astype(np.int64)  # fmt: skip
    sizes = np.diff(coupling.starts)[[0, 2, 1]].tolist()
    new = np.concatenate([np.argsort(cells), sizes[0] + sizes[1] + np.arange(sizes[2]), sizes[0] + np.arange(sizes[1])])
    other = Coupling(sizes, np.where(coupling.tuples < 0, -1, new[coupling.tuples]), [0])
    two = mean_field(turned, other, weights, order=[0, 2, 1], sweeps=200, tolerance=1e-13)
    assert two.bound == pytest.approx(one.bound)
    assert two.marginals[new] == pytest.approx(one.marginals, abs=1e-9)


def test_a_larger_weight_makes_a_tuple_more_probable() -> None:
    components, coupling, weights = made(5)
    at_first = mean_field(components, coupling, weights)
    several = (coupling.tuples >= 0).sum(axis=1) > 2
    t = int(np.flatnonzero(several & (at_first.products > 0))[0])
    chances = []
    for more in (0.0, 1.0, 2.0, 4.0):
        given = weights + more * (np.arange(len(weights)) == t)
        chances.append(mean_field(components, coupling, given, sweeps=200, tolerance=1e-10).products[t])
    assert (np.diff(chances) > 0).all()


def objective(kind: str, fields: bool = False, seed: int = 4) -> CoupledLikelihood | FieldLikelihood:
    components, coupling, _ = made(seed, kind=kind)
    features = Sparse.of([[t % 3, 3 + t % 2] for t in range(len(coupling))], 5)
    rng = np.random.default_rng(7)
    known = [components[0], *(one.clamp(one.sample(rng)) for one in components[1:])]
    if fields:
        known[0] = components[0].clamp(components[0].sample(rng))
        return FieldLikelihood(components, known, coupling, features)
    return CoupledLikelihood(components, known, coupling, features, sweeps=500, tolerance=1e-12)


@pytest.mark.parametrize("fields", [False, True])
@pytest.mark.parametrize("kind", ["subset", "itg"])
def test_the_gradient_agrees_with_finite_differences(kind: str, fields: bool) -> None:
    told, weights, step = objective(kind, fields), np.array([0.3, -0.2, 0.4, 0.1, -0.5]), 1e-5
    slope = np.zeros(5)
    told.add_gradient(weights, slope)
    for k, one in enumerate(np.eye(5)):
        above, below = (told.add_gradient(weights + sign * step * one, np.zeros(5)) for sign in (1, -1))
        assert slope[k] == pytest.approx((above - below) / (2 * step), abs=1e-5)


def test_an_optimiser_raises_it() -> None:
    told = objective("subset")
    learner = Lbfgs(told, l2=0.1)
    start = learner.init()
    assert run(learner, start, iterations=10).state.value > start.value


def test_fields_are_what_the_first_update_of_a_component_sees() -> None:
    told, weights = objective("itg", True), np.array([0.3, -0.2, 0.4, 0.1, -0.5])
    worth = told.features.scores(weights)
    value = 0.0
    for k, (free, known) in enumerate(zip(told.components, told.known, strict=True)):
        start = np.concatenate([one.marginals().values for one in told.components])
        fields = told.coupling.fields(k, worth, start)
        moved = free.with_scores(free.scores.like(free.scores.values + fields))
        value += float(moved.log_prob(known.argmax()).sum())
    assert told.add_gradient(weights, np.zeros(5)) == pytest.approx(value)


def test_what_is_nearly_certain_still_listens() -> None:
    """Marginals that are rounded to 1 are not known to be: only what is clamped stays as it is."""
    sure = Subset.batch([np.array([[40.0]])]), Subset.batch([np.array([[300.0]])])
    found = mean_field(sure, Coupling([1, 1], [[0, 1]]), [-1000.0])
    assert found.marginals == pytest.approx([0.0, 1.0]) and found.bound == pytest.approx(300.0)
    held = mean_field([sure[0].clamp([{(0, 0)}]), sure[1]], Coupling([1, 1], [[0, 1]]), [-1000.0])
    assert held.marginals == pytest.approx([1.0, 0.0]) and held.bound == pytest.approx(40.0)


def test_threads_of_blas_change_nothing() -> None:
    """Where BLAS has several threads, it sums long products in another order; the bound is not summed by it."""
    script = """
import numpy as np
from isogloss.structures import Subset
from isogloss.learners.meanfield import Coupling, mean_field
rng, n = np.random.default_rng(0), 300_000
two = [Subset.batch([rng.normal(size=n)]) for _ in range(2)]
pairs = np.stack([np.arange(n), n + np.arange(n)], axis=1)
print(mean_field(two, Coupling([n, n], pairs), rng.random(n), sweeps=1).trace)
"""
    said = {
        subprocess.run(
            [sys.executable, "-c", script], env=os.environ | {"OPENBLAS_NUM_THREADS": threads}, capture_output=True,
            text=True, check=True,
        ).stdout
        for threads in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1


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
