"""Whole trees from projected links and another parser's posteriors, held against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.data.links import Links
from isogloss.errors import ParameterError
from isogloss.structures.batch import Stack
from isogloss.tasks.transfer.completing import FLOOR, complete_trees, mixed, shared_links
from isogloss.tasks.transfer.edges import ProjectedEdges
from isogloss.testing.enumerate.trees import trees as all_trees


def some(rng: np.random.Generator, lengths: list[int]) -> tuple[ProjectedEdges, Stack]:
    """Random edges, whose words get at most 1 in all, and random posteriors of another parser."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows, prior = [], []
    for s, n in enumerate(lengths):
        shares = rng.dirichlet(np.full(max(1, n), 0.5), size=n).T if n else np.zeros((1, 0))
        matrix = np.zeros((n + 1, n + 1))
        for c in range(1, n + 1):
            heads = [h for h in range(n + 1) if h != c]
            matrix[heads, c] = shares[:, c - 1]
            for h in rng.choice(heads, rng.integers(0, 3)).tolist():
                rows.append((int(offsets[s]) + c - 1, h, float(rng.uniform(0, 0.5))))
        prior.append(matrix)
    word, head, chance = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    return ProjectedEdges.of(offsets, word, head, chance), Stack.of(prior, "prior", 2)


def brute(edges: ProjectedEdges, prior: Stack, s: int) -> tuple[list[np.ndarray], np.ndarray]:
    """All trees of a sentence that have the most right heads in expectation, and the posterior of every link."""
    n = int(edges.lengths[s])
    shares = np.asarray(prior[s]).copy()
    for c in range(1, n + 1):
        own = edges.word == edges.offsets[s] + c - 1
        shares[:, c] *= 1 - min(1.0, float(edges.probability[own].sum()))
        for h, p in zip(edges.head[own].tolist(), edges.probability[own].tolist(), strict=True):
            shares[h, c] += p
    trees = [np.asarray(tree) for tree in all_trees(n, projective=True, single_root=True)]
    weights = np.array([np.prod([max(shares[h, c + 1], FLOOR) for c, h in enumerate(tree)]) for tree in trees])
    weights /= weights.sum()
    links = np.zeros((n + 1, n + 1))
    for tree, weight in zip(trees, weights, strict=True):
        for c, h in enumerate(tree):
            links[h, c + 1] += weight
    worth = np.array([sum(links[h, c + 1] for c, h in enumerate(tree)) for tree in trees])
    return [tree for tree, value in zip(trees, worth, strict=True) if value > worth.max() - 1e-9], links


@pytest.mark.parametrize("seed", range(8))
def test_trees_and_confidences_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.permutation([0, 1, 2, 3, 4, 5]).tolist()
    edges, prior = some(rng, lengths)
    found = complete_trees(edges, prior)
    for s, n in enumerate(lengths):
        own = slice(int(edges.offsets[s]), int(edges.offsets[s + 1]))
        if not n:
            assert not len(found.heads[own])
            continue
        best, links = brute(edges, prior, s)
        assert any(np.array_equal(found.heads[own], tree) for tree in best)
        np.testing.assert_allclose(
            found.confidence[own], links[found.heads[own], np.arange(1, n + 1)], atol=1e-9
        )  # fmt: skip


def test_words_say_what_arrived_and_leave_the_rest_to_the_other_parser() -> None:
    edges, prior = some(np.random.default_rng(3), [4, 2])
    shares = mixed(edges, prior)
    for s in range(2):
        np.testing.assert_allclose(shares[s][:, 1:].sum(axis=0), 1.0, atol=1e-12)
    nothing = edges.keep(np.zeros(len(edges.word), np.bool_))
    np.testing.assert_array_equal(mixed(nothing, prior).values, prior.values)


def test_posteriors_of_other_sentences_are_refused() -> None:
    edges, _ = some(np.random.default_rng(0), [3])
    with pytest.raises(ParameterError, match="for the sentences of the edges"):
        complete_trees(edges, Stack.of([np.zeros((3, 3))], "prior", 2))


def test_shared_links_add_up_to_one_at_most() -> None:
    links = Links.of([[(0, 0), (0, 1), (1, 1)], [(0, 0)], []])
    shared = shared_links(links)
    assert shared.probability is not None
    for side in (shared.source, shared.target):
        keys = shared.pair << 32 | side
        for key in np.unique(keys):
            assert shared.probability[keys == key].sum() <= 1 + 1e-6
    assert shared.probability[-1] == 1.0
