"""Partial trees: can a projective tree have these links?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures import ProjectiveTree
from isogloss.structures.base import InfeasibleError
from isogloss.structures.partial import can_be_projective, compatible_heads
from isogloss.testing.enumerate import trees


def some_tree_has(heads: list[int], single_root: bool) -> bool:
    known = [(word, head) for word, head in enumerate(heads) if head >= 0]
    every = trees(len(heads), projective=True, single_root=single_root)
    return any(all(tree[word] == head for word, head in known) for tree in every)


@st.composite
def partial(draw: st.DrawFn, most: int = 5) -> list[int]:
    n = draw(st.integers(0, most))
    return [draw(st.one_of(st.just(-1), st.integers(0, n))) for _ in range(n)]


@given(st.lists(partial(), max_size=4), st.booleans())
def test_a_tree_exists_where_enumeration_finds_one(sentences: list[list[int]], single_root: bool) -> None:
    offsets = np.cumsum([0, *map(len, sentences)])
    flat = np.array([head for heads in sentences for head in heads], np.int32)
    found = can_be_projective(flat, offsets, single_root=single_root)
    assert found.tolist() == [some_tree_has(heads, single_root) for heads in sentences]


def test_one_head_no_cycle_and_no_crossing_are_not_enough() -> None:
    heads = [2, -1, 1]  # r -> a, a -> b with a < r < b
    assert not can_be_projective(heads, [0, 3], single_root=False)[0]
    assert can_be_projective([2, -1, -1], [0, 3])[0]


@pytest.mark.parametrize("n", [63, 64, 65, 130])
@pytest.mark.parametrize("single_root", [False, True])
def test_rows_of_several_words_agree_with_the_chart_of_sums(n: int, single_root: bool) -> None:
    rng = np.random.default_rng(n)
    answers = set()
    for known in [2, 4, 8, 16, 100] * 3:
        whole = ProjectiveTree(rng.normal(size=(n + 1, n + 1)), single_root=single_root).argmax()
        heads = np.full(n, -1, np.int64)
        words = rng.permutation(n)[:known]
        heads[words] = whole[words]
        if rng.random() < 0.6:
            heads[words[0]] = (words[0] + rng.integers(2, 6)) % (n + 1)
        scores = np.zeros((n + 1, n + 1))
        for word in np.flatnonzero(heads >= 0):
            scores[np.arange(n + 1) != heads[word], word + 1] = -np.inf
        try:
            ProjectiveTree(scores, single_root=single_root).argmax()
            expected = True
        except InfeasibleError:
            expected = False
        answers.add(expected)
        assert bool(can_be_projective(heads, [0, n], single_root=single_root)[0]) == expected
    assert answers == {True, False}


@given(partial(), st.booleans(), st.randoms(use_true_random=False))
def test_links_are_taken_as_long_as_a_tree_has_them_all(heads: list[int], single_root: bool, random) -> None:
    n = len(heads)
    links = [(word, random.randint(0, n)) for word in range(n) for _ in range(2)]
    random.shuffle(links)
    links = [(word, head) for word, head in links if head != word + 1]
    wanted = [-1] * n
    for word, head in links:
        trial = [*wanted]
        trial[word] = head
        if wanted[word] < 0 and some_tree_has(trial, single_root):
            wanted = trial
    word, head = [list(side) for side in zip(*links, strict=True)] or [[], []] if links else [[], []]
    got = compatible_heads([0, n], word, head, np.arange(len(links)), single_root=single_root)
    assert got.tolist() == wanted


def test_threads_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 12, 60)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    word = np.repeat(np.arange(offsets[-1]), 2)
    head = (rng.random(len(word)) * (np.repeat(lengths, lengths)[word] + 1)).astype(np.int32)
    found = []
    for n in (1, 2):
        with using_threads(n):
            found.append(compatible_heads(offsets, word, head, np.arange(len(word))))
    assert np.array_equal(*found)


def test_what_kernels_index_with_is_checked() -> None:
    for heads in ([5, 0], [-2, 0], [0]):
        with pytest.raises(ParameterError, match="heads should be"):
            can_be_projective(heads, [0, 2])
    with pytest.raises(ParameterError, match="words from 0 to 1"):
        compatible_heads([0, 2], [2], [0], [0])
    with pytest.raises(ParameterError, match="number of words"):
        compatible_heads([0, 2], [1], [3], [0])
