"""Trees whose constituents see the label above them, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.structures import Stack
from isogloss.structures.base import InfeasibleError
from isogloss.structures.family_tree import FamilyTrees, n_family_parts

Node = tuple[int, int, int]


def trees(i: int, j: int, labels: int) -> list[list[Node]]:
    """All constituents over i … j with all that can be inside of them."""
    inside: list[list[Node]] = [[]] if j - i == 1 else sequences(i, j, labels)
    return [[(i, j, label), *below] for below in inside for label in range(labels)]


def sequences(i: int, j: int, labels: int) -> list[list[Node]]:
    """All sequences of two or more children; a bare word is a child that is not listed."""
    found = []
    for k in range(i + 1, j):
        for first in children(i, k, labels):
            found += [first + last for last in children(k, j, labels)]
            found += [first + rest for rest in sequences(k, j, labels)]
    return found


def children(i: int, j: int, labels: int) -> list[list[Node]]:
    return trees(i, j, labels) + ([[]] if j - i == 1 else [])


def number(i: int, j: int, n: int) -> int:
    return sum(n - width for width in range(j - i - 1)) + i


def parts_of(tree: list[Node], n: int, labels: int) -> Any:
    spans = n * (n + 1) // 2
    label, below = np.zeros((spans, labels)), np.zeros((spans, labels))
    word, split, pair = np.zeros((n, labels)), np.zeros((n, labels)), np.zeros((labels, labels))
    for i, j, b in tree:
        label[number(i, j, n), b] += 1
        above = [node for node in tree if node[0] <= i and node[1] >= j and node != (i, j, b)]
        if above:
            begin, _, a = min(above, key=lambda node: node[1] - node[0])
            below[number(i, j, n), a] += 1
            pair[b, a] += 1
            split[i, a] += i > begin
    for w in range(n):
        begin, end, a = min((node for node in tree if node[0] <= w < node[1]), key=lambda node: node[1] - node[0])
        if end - begin > 1:
            word[w, a] += 1
            split[w, a] += w > begin
    return np.concatenate([part.ravel() for part in (label, below, word, split, pair)])


def stack(scores: list[Any]) -> Stack:
    sizes = np.array([len(one) for one in scores], np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Stack(np.concatenate([np.zeros(0), *scores]), offsets, sizes[:, None])


@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from([(0, 2), (1, 2), (2, 2), (3, 2), (4, 2)]), min_size=1, max_size=3),
    st.sampled_from([1.0, 100.0]),
    st.sampled_from([0.0, 0.1]),
)
@settings(max_examples=40, deadline=None)
def test_sums_and_best_trees_agree_with_enumeration(
    seed: int, sizes: list[tuple[int, int]], factor: float, forbidden: float
) -> None:
    rng = np.random.default_rng(seed)
    lengths, labels = np.array([n for n, _ in sizes]), 2
    scores = [factor * rng.normal(size=size) for size in n_family_parts(lengths, labels).tolist()]
    for one in scores:
        one[rng.random(len(one)) < forbidden] = -np.inf
    many = FamilyTrees(stack(scores), lengths, labels)
    values, marginals = many._solve()
    for s, n in enumerate(lengths.tolist()):
        if n == 0:
            assert values[s] == 0.0
            continue
        every = trees(0, n, labels)
        parts = np.array([parts_of(tree, n, labels) for tree in every])
        totals = np.where(parts > 0, parts * np.where(parts > 0, scores[s], 0.0), 0.0).sum(axis=1)
        if totals.max() == -np.inf:
            assert values[s] == -np.inf
            continue
        weights = np.exp(totals - totals.max())
        value = totals.max() + np.log(weights.sum())
        assert values[s] == pytest.approx(value)
        expected = (weights / weights.sum()) @ parts
        assert marginals[s] == pytest.approx(expected, abs=1e-9)
        alone = FamilyTrees(stack([scores[s]]), lengths[[s]], labels)
        assert alone.log_partition()[0] == values[s]
        assert alone.best_scores()[0] == pytest.approx(totals.max())
        best = alone.argmax()
        assert totals[every.index(sorted(best[0], key=lambda node: (node[0], -node[1])))] == pytest.approx(totals.max())
        assert np.array_equal(alone.parts(best).values, parts_of(list(best[0]), n, labels))


def test_without_scores_all_trees_are_counted() -> None:
    lengths = np.array([1, 2, 3, 4])
    many = FamilyTrees(stack([np.zeros(size) for size in n_family_parts(lengths, 2).tolist()]), lengths, 2)
    counted = [len(trees(0, n, 2)) for n in lengths.tolist()]
    assert np.exp(many.log_partition()) == pytest.approx(counted)
    assert [tuple(block.shape) for block in many.constituents()] == [(n * (n + 1) // 2, 2) for n in lengths.tolist()]
    assert many.constituents()[3][-1].sum() == pytest.approx(1.0)


def test_most_right_is_the_best_sum_of_posteriors() -> None:
    rng = np.random.default_rng(3)
    lengths = np.array([4])
    many = FamilyTrees(stack([rng.normal(size=int(n_family_parts(lengths, 2)[0]))]), lengths, 2)
    posterior = many.constituents()[0]
    gains = {tuple(tree): sum(posterior[number(i, j, 4), b] - 0.3 for i, j, b in tree) for tree in trees(0, 4, 2)}
    (found,) = many.most_right(threshold=0.3)
    assert gains[tuple(sorted(found, key=lambda node: (node[0], -node[1])))] == pytest.approx(max(gains.values()))


def test_trees_are_drawn_as_often_as_they_are_probable() -> None:
    rng = np.random.default_rng(11)
    lengths, draws = np.array([3, 0, 1, 2]), 6000
    scores = [rng.normal(size=size) for size in n_family_parts(lengths, 2).tolist()]
    scores[0][rng.random(len(scores[0])) < 0.1] = -np.inf
    many = FamilyTrees(stack(scores), lengths, 2)
    drawn = [many.sample(rng) for _ in range(draws)]
    assert all(trees[1] == frozenset() for trees in drawn)
    for s in (0, 2, 3):
        n = int(lengths[s])
        every = [frozenset(tree) for tree in trees(0, n, 2)]
        parts = np.array([parts_of(list(tree), n, 2) for tree in every])
        totals = (parts * np.where(parts > 0, scores[s], 0.0)).sum(axis=1)
        chances = np.exp(totals - totals.max()) / np.exp(totals - totals.max()).sum()
        seen = np.bincount([every.index(found[s]) for found in drawn], minlength=len(every))
        assert seen[chances == 0].sum() == 0
        expected = draws * chances[chances > 0]
        enough = expected > 5
        squares = (seen[chances > 0] - expected)[enough] ** 2 / expected[enough]
        assert squares.sum() < enough.sum() + 5 * np.sqrt(2 * enough.sum())  # chi-square, within five deviations


def test_draws_are_those_of_one_sentence_after_the_other() -> None:
    rng = np.random.default_rng(12)
    lengths = np.array([4, 0, 3, 1])
    many = FamilyTrees(stack([rng.normal(size=size) for size in n_family_parts(lengths, 3).tolist()]), lengths, 3)
    one = np.random.default_rng(1)
    assert many.sample(np.random.default_rng(1)) == [many.take([s]).sample(one)[0] for s in range(4)]


def test_the_k_best_trees() -> None:
    rng = np.random.default_rng(5)
    lengths = np.array([3, 0])
    scores = [rng.normal(size=size) for size in n_family_parts(lengths, 2).tolist()]
    scores[0][rng.random(len(scores[0])) < 0.1] = -np.inf
    found, empty = FamilyTrees(stack(scores), lengths, 2).k_best(20)
    parts = [parts_of(tree, 3, 2) for tree in trees(0, 3, 2)]
    totals = sorted(
        (float(np.where(y > 0, y * np.where(y > 0, scores[0], 0.0), 0.0).sum()) for y in parts), reverse=True
    )
    assert [score for score, _ in found] == pytest.approx(totals[:20])
    assert len({tree for _, tree in found}) == 20
    assert empty == [(0.0, frozenset())]


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(ParameterError, match="label, below, word, split and pair"):
        FamilyTrees(stack([np.zeros(3)]), np.array([2]), 2)
    many = FamilyTrees(stack([np.zeros(int(n_family_parts(np.array([2]), 2)[0]))]), np.array([2]), 2)
    with pytest.raises(ParameterError, match="outside"):
        many.parts([{(0, 3, 0)}])
    with pytest.raises(ParameterError, match="cross"):
        FamilyTrees(stack([np.zeros(int(n_family_parts(np.array([3]), 1)[0]))]), np.array([3]), 1).parts(
            [{(0, 3, 0), (0, 2, 0), (1, 3, 0)}]
        )
    with pytest.raises(InfeasibleError, match="allows no tree"):
        many.with_scores(stack([np.full(len(many.scores.values), -np.inf)])).log_partition()
