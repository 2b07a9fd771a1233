"""The exact program that belief propagation is measured against has the same trees with the same scores."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.quality.parsing import exact, search

from isogloss import samples
from isogloss.data import Treebank
from isogloss.structures import ProjectiveTree
from isogloss.structures.base import kept
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse import DependencyParser

FAMILIES = [("grand",), ("siblings",), ("grand", "siblings")]


def some_links(n: int, rng: np.random.Generator) -> np.ndarray:
    """Candidates among which there is a projective tree with one root child: a chain."""
    allowed = rng.random((n + 1, n + 1)) < 0.7
    allowed[np.arange(n), np.arange(1, n + 1)] = True
    return allowed


def random_model(families: tuple[str, ...], seed: int) -> tuple[TreeParts, np.ndarray]:
    rng = np.random.default_rng(seed)
    candidates = Candidates.kept([some_links(n, rng) for n in (4, 1, 5, 2)])
    parts = TreeParts.of(candidates, families)
    return parts, rng.normal(size=parts.n_parts)


def all_trees(tree: ProjectiveTree) -> list[tuple[int, ...]]:
    n = tree.n
    return [heads for heads in product(range(n + 1), repeat=n) if tree._is_tree(np.array(heads))]


@pytest.mark.parametrize("families", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_both_score_every_tree_alike(families: tuple[str, ...], seed: int) -> None:
    parts, values = random_model(families, seed)
    starts = np.concatenate([[0], np.cumsum(parts.lengths)])
    for k in range(len(parts)):
        one = exact.dense(parts, values, k)
        tree = ProjectiveTree(one.scores, single_root=True, siblings=one.siblings, grandparents=one.grandparents)
        seen = 0
        for heads in all_trees(tree):
            whole = np.full(int(parts.lengths.sum()), -1)
            whole[starts[k] : starts[k + 1]] = heads
            used = parts.indicate(whole)[parts.offsets[k] : parts.offsets[k + 1]]
            allowed = np.isfinite(one.scores[list(heads), np.arange(1, tree.n + 1)]).all()
            score = tree.score(np.array(heads))
            assert np.isfinite(score) == allowed
            if allowed:
                seen += 1
                expected = float(used @ values[parts.offsets[k] : parts.offsets[k + 1]])
                assert score + one.constant == pytest.approx(expected, abs=1e-9)
        assert seen


@pytest.mark.parametrize("families", FAMILIES)
def test_the_program_gives_the_posteriors_of_enumeration(families: tuple[str, ...]) -> None:
    parts, values = random_model(families, 7)
    found = search.by_program(parts, values, single_root=True)
    at = 0
    for k in range(len(parts)):
        one = exact.dense(parts, values, k)
        tree = ProjectiveTree(one.scores, single_root=True, siblings=one.siblings, grandparents=one.grandparents)
        trees = [heads for heads in all_trees(tree) if np.isfinite(tree.score(np.array(heads)))]
        weights = np.exp([tree.score(np.array(heads)) for heads in trees])
        posterior = np.zeros((tree.n + 1, tree.n + 1))
        for weight, heads in zip(weights / weights.sum(), trees, strict=True):
            posterior[list(heads), np.arange(1, tree.n + 1)] += weight
        size = posterior.size
        np.testing.assert_allclose(found.posteriors[at : at + size].reshape(posterior.shape), posterior, atol=1e-9)
        at += size
        worth = [posterior[list(heads), np.arange(1, tree.n + 1)].sum() for heads in trees]
        first = int(parts.lengths[:k].sum())
        assert tuple(found.heads[first : first + tree.n]) == trees[int(np.argmax(worth))]


@pytest.mark.parametrize("families", FAMILIES)
def test_posteriors_of_all_parts_are_those_of_enumeration(families: tuple[str, ...]) -> None:
    parts, values = random_model(families, 11)
    trees = exact.ExactShape("projective", True, families).trees(parts, kept(values))
    log_z, beliefs = trees.partitions_and_beliefs()
    starts = np.concatenate([[0], np.cumsum(parts.lengths)])
    for k in range(len(parts)):
        here = slice(parts.offsets[k], parts.offsets[k + 1])
        one = exact.dense(parts, values, k)
        tree = ProjectiveTree(one.scores, single_root=True)
        total, expected = 0.0, np.zeros(parts.offsets[k + 1] - parts.offsets[k])
        for heads in all_trees(tree):
            if np.isfinite(tree.score(np.array(heads))):
                whole = np.full(int(parts.lengths.sum()), -1)
                whole[starts[k] : starts[k + 1]] = heads
                used = parts.indicate(whole)[here]
                weight = np.exp(used @ values[here])
                total, expected = total + weight, expected + weight * used
        assert log_z[k] == pytest.approx(np.log(total), abs=1e-9)
        np.testing.assert_allclose(beliefs[here], expected / total, atol=1e-9)


def test_a_parser_that_learnt_with_exact_sums_is_as_any_other(tmp_path: Path) -> None:
    trees = Treebank.from_bytes(samples.trees("en-de", "target").encode(), "de.conllu")
    trees = trees.take(search.projective(trees))
    options = {"projective": True, "order": 2, "factors": ["grand", "siblings"], "iterations": 2, "labels": "second"}
    parser = exact.ExactParser(**options).fit(trees)
    assert parser.trace_[1] < parser.trace_[0]
    assert abs(DependencyParser(**options).fit(trees).trace_[1] / parser.trace_[1] - 1) > 1e-4  # sums do differ
    with pytest.raises(SystemExit, match="trees without relations"):
        exact.ExactParser(**options | {"labels": "joint"}).fit(trees)
    parser.save(tmp_path / "model")
    again = DependencyParser.load(tmp_path / "model")
    assert again.families_ == ("grand", "siblings") and again.n_features_ == parser.n_features_


def test_beliefs_are_exact_where_larger_parts_say_nothing() -> None:
    parts, values = random_model(("grand", "siblings"), 3)
    for k in range(len(parts)):
        values[parts.begins[k, 1] : parts.begins[k, 5]] = 0.0
    right = search.by_program(parts, values, single_root=True)
    found = search.by_beliefs(parts, values, 2, single_root=True)
    numbers = search.compared(found, right, right.heads, parts.lengths)
    assert numbers["search_error"] == 0 and numbers["same_trees"] == 100 and numbers["UAS_exact"] == 100
    assert numbers["belief_error"] == pytest.approx(0, abs=1e-5)


def test_the_error_is_a_mean_over_sentences() -> None:
    right = search.Found(np.array([0, 0, 1, 2, 3], np.int32), np.zeros(1), 1.0)
    found = search.Found(np.array([0, 0, 1, 1, 2], np.int32), np.zeros(1), 1.0)
    numbers = search.compared(found, right, right.heads, np.array([1, 4]))
    assert numbers["search_error"] == pytest.approx(25.0)
    assert numbers["same_trees"] == 50 and numbers["UAS"] == pytest.approx(60.0)


def test_other_factors_are_refused() -> None:
    parts, values = random_model(("grand", "valence"), 0)
    with pytest.raises(SystemExit, match="valence"):
        exact.dense(parts, values, 0)
