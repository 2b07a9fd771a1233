"""The problems that every system is given: the same numbers from the same seed. NumPy alone, for peers run it too."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

WORDS = 3000  # attributes of the tagging problem
ATTRIBUTES = 8  # of each position


def chains(n: int, batch: int, labels: int, seed: int = 0) -> tuple[Array, Array]:
    """Node scores float64[batch, n, labels] and transitions float64[labels, labels]."""
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (batch, n, labels)), rng.normal(0, 1, (labels, labels))


def tagging(n: int, batch: int, labels: int, seed: int = 0) -> tuple[Array, Array]:
    """Attributes int[batch, n, ATTRIBUTES], frequent ones first, and labels int[batch, n], half told by the first."""
    rng = np.random.default_rng(seed)
    drawn = np.minimum(rng.zipf(1.3, (batch, n, ATTRIBUTES)), WORDS // ATTRIBUTES) - 1
    attributes = drawn + np.arange(ATTRIBUTES) * (WORDS // ATTRIBUTES)
    noise = rng.integers(0, labels, (batch, n))
    return attributes, np.where(rng.random((batch, n)) < 0.5, attributes[:, :, 0] % labels, noise)


def trees(n: int, batch: int, seed: int = 0) -> Array:
    """Scores of links float64[batch, n + 1, n + 1], (head, child), node 0 the root."""
    return np.random.default_rng(seed).normal(0, 1, (batch, n + 1, n + 1))


def spans(n: int, batch: int, labels: int, seed: int = 0) -> Array:
    """Scores of labels over spans float64[batch, n, n, labels], by the first and the last word."""
    return np.random.default_rng(seed).normal(0, 1, (batch, n, n, labels))


def grammar(n: int, batch: int, labels: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """A dense grammar of so many symbols and as many tags: log scores of tags float64[batch, n, labels], of rules
    float64[labels, 2 labels, 2 labels], whose right-hand sides are symbols and then tags, and of roots float64[labels].
    """
    rng = np.random.default_rng(seed)
    shape = (labels, 2 * labels, 2 * labels)
    return rng.normal(0, 1, (batch, n, labels)), rng.normal(-6, 1, shape), rng.normal(0, 1, labels)


def matchings(n: int, batch: int, seed: int = 0) -> Array:
    """Scores of links float64[batch, n, n + 2]: one near the diagonal stands out, as between sentences."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-1, 1, (batch, n, n + 2))
    i = np.arange(n)
    scores[:, i, np.clip(i + rng.integers(-1, 3, n), 0, n + 1)] += 3
    return scores


def posteriors(n_source: int, n_target: int, seed: int = 0) -> Array:
    """Link posteriors such as an HMM gives, float64[2, n_source, n_target]: nine in ten words near certain."""
    rng = np.random.default_rng(seed)
    out = np.full((2, n_source, n_target), 1e-6)
    for i in range(n_source):
        j = min(n_target - 1, max(0, round(i * n_target / n_source) + int(rng.integers(-1, 2))))
        sure = rng.random() < 0.9
        for direction in range(2):
            spread = rng.dirichlet(np.full(5, 0.3)) * (0.04 if sure else 0.9)
            around = np.clip(np.arange(j - 2, j + 3), 0, n_target - 1)
            np.add.at(out[direction, i], around, spread)
            out[direction, i, j] += 0.95 if sure else 0.0
    return out / np.maximum(out.sum(axis=2, keepdims=True), 1.0)
