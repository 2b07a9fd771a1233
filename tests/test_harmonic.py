"""Harmonic functions: the linear system, propagation and random walks say the same."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.linear import fit_linear
from isogloss.learners.semi_supervised.harmonic import class_mass, harmonic, propagated


def graph(seed: int, n: int = 9) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    weights[np.arange(n - 1), np.arange(1, n)] += 0.2  # connected
    labels = np.full(n, -1)
    labels[[0, 4, n - 1]] = [0, 1, 2]
    return weights + weights.T, labels


@pytest.mark.parametrize("seed", range(4))
def test_solution_propagation_and_means_of_neighbours(seed: int) -> None:
    weights, labels = graph(seed)
    found = harmonic(weights, labels, 3)
    assert found == pytest.approx(propagated(weights, labels, 3), abs=1e-8)
    assert harmonic(7 * weights, labels, 3) == pytest.approx(found)
    assert found.sum(axis=1) == pytest.approx(np.ones(9))
    assert found.min() >= -1e-12
    assert np.array_equal(found[labels >= 0], np.eye(3)[labels[labels >= 0]])
    means = weights @ found / weights.sum(axis=1, keepdims=True)
    assert found[labels < 0] == pytest.approx(means[labels < 0], abs=1e-8)


def test_random_walks_end_where_the_solution_says() -> None:
    weights, labels = graph(1)
    found, rng = harmonic(weights, labels, 3), np.random.default_rng(0)
    steps, ends = weights / weights.sum(axis=1, keepdims=True), np.zeros(3)
    for _ in range(3000):
        at = 2
        while labels[at] < 0:
            at = int(rng.choice(9, p=steps[at]))
        ends[labels[at]] += 1
    assert ends / 3000 == pytest.approx(found[2], abs=0.04)


def test_two_moons_with_one_label_each() -> None:
    rng = np.random.default_rng(0)
    angle = rng.random(200) * np.pi
    y = np.arange(200) % 2
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points[y == 1] = [1.0, 0.4] - points[y == 1]
    points += rng.normal(size=points.shape) * 0.04
    apart = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    labels = np.full(200, -1)
    labels[[0, 1]] = [0, 1]
    right = (harmonic(np.exp(-apart / 0.01), labels, 2).argmax(axis=1) == y).mean()
    empty = Sparse(np.zeros(201, np.int64), np.zeros(0, np.int32), 0, dense=points)
    linear = fit_linear(empty.rows(0, 2), np.eye(2), penalty=1e-3).scores(empty).argmax(axis=1)
    assert right > 0.98 > 0.92 > (linear == y).mean()


def test_mass_of_labels_and_dongles() -> None:
    weights, labels = graph(2)
    found = harmonic(weights, labels, 3)[labels < 0]
    assert class_mass(found, [0.2, 0.3, 0.5]).sum(axis=0) == pytest.approx([0.2, 0.3, 0.5])
    outside = np.tile([1.0, 0.0, 0.0], (9, 1))
    near, far = (harmonic(weights, labels, 3, external=outside, trust=t) for t in (1e-9, 1 - 1e-9))
    assert near == pytest.approx(harmonic(weights, labels, 3), abs=1e-6)
    assert far[labels < 0] == pytest.approx(outside[labels < 0], abs=1e-6)


def test_nodes_that_no_label_reaches_and_wrong_graphs() -> None:
    weights = np.zeros((4, 4))
    weights[0, 1] = weights[1, 0] = 1.0
    with pytest.warns(UserWarning, match="no label reaches 2 of 4"):
        found = harmonic(weights, [0, -1, -1, -1], 2)
    assert found.tolist() == [[1, 0], [1, 0], [0.5, 0.5], [0.5, 0.5]]
    from scipy import sparse

    stored = sparse.csr_matrix((np.array([1.0, 1.0, 0.0, 0.0]), ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(4, 4))
    with pytest.warns(UserWarning, match="no label reaches 2 of 4"):  # an edge that is stored and weighs nothing
        assert np.array_equal(harmonic(stored, [0, -1, -1, -1], 2), found)
    for outside, trust in ((np.ones((4, 3)), 0.1), (np.full((4, 2), 0.5), 0.0), (np.full((4, 2), 0.5), 1.5)):
        with pytest.raises(ParameterError, match="external should be"):
            harmonic(weights, [0, -1, -1, -1], 2, external=outside, trust=trust)
    with pytest.raises(ParameterError, match="finite"):
        harmonic([[0, np.inf], [np.inf, 0]], [0, -1], 2)
    with pytest.raises(ParameterError, match="symmetric"):
        harmonic([[0, 1], [0, 0]], [0, -1], 2)
