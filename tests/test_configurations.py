"""Configurations of quasi-synchronous grammars: each row by hand, and all pairs against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.tasks.parse.configurations import CONFIGURATIONS, NULL, configurations, configurations_of_pairs, paths

#           0 -> 2;  2 -> 1, 4;  4 -> 3, 5;  5 -> 6;  6 -> 7
TREE = [2, 0, 4, 2, 4, 5, 6]
ROWS = {
    "same": [(0, 0), (3, 3), (7, 7)],
    "parent-child": [(0, 2), (2, 1), (2, 4), (5, 6)],
    "child-parent": [(2, 0), (1, 2), (4, 2), (6, 5)],
    "siblings": [(1, 4), (4, 1), (3, 5), (5, 3)],
    "grandparent": [(0, 1), (0, 4), (2, 3), (2, 5), (4, 6), (5, 7)],
    "c-command": [(1, 3), (1, 5), (1, 6), (3, 6), (3, 7)],
    "none": [(0, 3), (0, 7), (1, 0), (3, 0), (3, 1), (6, 1), (6, 3), (5, 1), (2, 6), (4, 7), (3, 2), (7, 5)],
}


@pytest.mark.parametrize("name", ROWS)
def test_each_row(name):
    found = configurations(TREE, [0, 7])[0]
    assert [CONFIGURATIONS[found[pair]] for pair in ROWS[name]] == [name] * len(ROWS[name])


def test_words_without_partner():
    found = configurations(TREE, [0, 7])[0]
    pairs = configurations_of_pairs(found, [-1, 2, -1, 2], [3, -1, -1, 3])
    assert pairs.tolist() == [NULL, NULL, NULL, CONFIGURATIONS.index("grandparent")]
    with pytest.raises(ParameterError, match="from -1 to 7"):
        configurations_of_pairs(found, [8], [1])


def test_short_sentences_and_several_roots():
    stack = configurations([0, 0, 0], [0, 0, 1, 3])
    names = [[[CONFIGURATIONS[c] for c in row] for row in matrix] for matrix in stack]
    assert names[0] == [["same"]]
    assert names[1] == [["same", "parent-child"], ["child-parent", "same"]]
    assert names[2][1] == ["child-parent", "same", "siblings"]


def test_what_cannot_be_a_tree_is_refused():
    for heads, offsets in (([3, 0], [0, 2]), ([-2], [0, 1]), ([0], [0, 2]), ([0], [1, 1])):
        with pytest.raises(ParameterError, match="configurations: "):
            configurations(heads, offsets)
    with pytest.raises(ParameterError, match="one for each word"):
        paths([0], [0, 1], np.zeros(2, np.uint64), np.zeros(1, np.uint64))


@st.composite
def trees(draw, unknown=True):
    n = draw(st.integers(1, 8))
    order = draw(st.permutations(range(1, n + 1)))
    heads = [0] * (n + 1)
    for at, word in enumerate(order):
        heads[word] = draw(st.sampled_from([0, *order[:at]]))
        if unknown and draw(st.integers(0, 9)) == 0:
            heads[word] = -1
    return heads[1:]


def above(heads, node):
    """Proper ancestors, nearest first."""
    found = []
    while node > 0 and heads[node - 1] >= 0:
        node = heads[node - 1]
        found.append(node)
    return found


def rows_that_fit(heads, x, y):
    """All rows of the table whose own words fit, in any order; by sets of ancestors."""
    over_x, over_y = above(heads, x), above(heads, y)
    fits = {
        "same": x == y,
        "parent-child": over_y[:1] == [x],
        "child-parent": over_x[:1] == [y],
        "siblings": x != y and bool(over_x) and over_x[:1] == over_y[:1],
        "grandparent": over_y[1:2] == [x],
        "c-command": x != y and over_x[:1] != over_y[:1] and bool(over_x) and over_x[0] in over_y and x not in over_y,
    }
    return [name for name, fit in fits.items() if fit]


@given(st.lists(trees(), min_size=1, max_size=4))
def test_pairs_agree_with_the_definitions_of_which_one_fits(many):
    offsets = np.concatenate([[0], np.cumsum([len(heads) for heads in many])])
    for heads, found in zip(many, configurations(np.concatenate(many), offsets), strict=True):
        for x, y in np.ndindex(found.shape):
            rows = rows_that_fit(heads, x, y)
            assert len(rows) <= 1
            assert CONFIGURATIONS[found[x, y]] == (rows or ["none"])[0]


def way(heads, relations, tags, x, y):
    """The way between two nodes as words: what `paths` has codes for."""
    over_x, over_y = [x, *above(heads, x)], [y, *above(heads, y)]
    meeting = next((node for node in over_x if node in over_y), None)
    if meeting is None:
        return None, None, None
    up, down = over_x[: over_x.index(meeting)], over_y[: over_y.index(meeting)][::-1]
    if not 1 <= len(up) + len(down) <= 4:
        return None, None, None
    whole = (*(("up", relations[w - 1]) for w in up), *(("down", relations[w - 1]) for w in down))
    inner = (("down", "?"), *whole[1:]) if not up and len(down) > 1 else None
    nodes = [*over_x[1 : len(up)], *([meeting] if up and down else []), *down[:-1]]
    return whole, inner, (len(up), len(down), tuple(tags[w - 1] if w else "root" for w in nodes))


@given(st.lists(trees(), min_size=1, max_size=3), st.integers(0, 2**32))
def test_paths_have_the_same_code_where_they_are_the_same_way(many, seed):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum([len(heads) for heads in many])])
    relations, tags = (rng.integers(1, 4, offsets[-1]).astype(np.uint64) for _ in range(2))
    found = paths(np.concatenate(many), offsets, relations, tags)
    places = configurations(np.concatenate(many), offsets).offsets
    for codes, kind in zip(found, range(3), strict=True):
        by_way, by_code = {}, {}
        for s, heads in enumerate(many):
            own = slice(offsets[s], offsets[s + 1])
            matrix = codes[places[s] : places[s + 1]].reshape(len(heads) + 1, -1)
            for x, y in np.ndindex(matrix.shape):
                name = way(heads, relations[own].tolist(), tags[own].tolist(), x, y)[kind]
                code = int(matrix[x, y])
                assert (name is None) == (code == -1)
                assert by_way.setdefault(name, code) == code and by_code.setdefault(code, name) == name
