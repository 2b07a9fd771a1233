"""From posteriors to links: thresholds, the choice of cells, and best paths as links, against NumPy and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isogloss.data import Links
from isogloss.tasks.align._numba.expect import Pairs
from isogloss.tasks.align.decode import (
    UNIT,
    expected_f_threshold,
    links_above,
    links_of_paths,
    points_threshold,
    probabilities,
    spectrum,
)

MANY = settings(max_examples=60, deadline=None, derandomize=True)
BINS = 2 * UNIT + 1


class Cells:
    """Pairs of some shapes, with posteriors."""

    def __init__(self, shapes, posterior):
        self.shapes = shapes

        def offsets(sizes):
            return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

        n, m = [a for a, _ in shapes], [b for _, b in shapes]
        empty = np.zeros(0, np.int32)
        self.pairs = Pairs(empty, offsets(n), empty, offsets(m), offsets([a * b for a, b in shapes]), empty)
        self.posterior = np.asarray(posterior, np.uint16).reshape(-1, 2)

    def matrices(self, direction):
        """Probabilities [n_source, n_target] of every pair."""
        whole = self.posterior.astype(np.int64)
        twice = {"both": whole.sum(axis=1), "forward": 2 * whole[:, 0], "backward": 2 * whole[:, 1]}[direction]
        cuts = self.pairs.cell_offsets
        return [twice[a:b].reshape(shape) / (2 * UNIT) for a, b, shape in zip(cuts[:-1], cuts[1:], self.shapes)]


@st.composite
def cells(draw):
    """Few distinct values, so that there are ties, and shapes with nothing in them."""
    shapes = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = np.concatenate([[0, 1, UNIT], rng.integers(0, UNIT, 4)])
    return Cells(shapes, rng.choice(values, (sum(a * b for a, b in shapes), 2)))


@given(cells(), st.sampled_from(["both", "forward", "backward"]), st.sampled_from([1e-9, 0.2, 0.5, 0.9999, 1.0]))
@MANY
def test_links_above_are_the_cells_that_reach_the_threshold(text, direction, threshold):
    found = links_above(text.pairs, text.posterior, threshold, direction)
    assert len(found) == len(text.shapes)
    for pair, matrix in zip(found, text.matrices(direction), strict=True):
        assert pair.links == {(int(i), int(j)) for i, j in np.argwhere((matrix >= threshold) & (matrix > 0))}
        assert all(p == pytest.approx(matrix[link], abs=1e-6) for link, p in pair.probability.items())
    order = list(zip(found.pair.tolist(), found.source.tolist(), found.target.tolist(), strict=True))
    assert order == sorted(order)


@given(cells(), st.sampled_from(["both", "forward", "backward"]))
@MANY
def test_a_threshold_taken_from_a_cell_keeps_that_cell(text, direction):
    """Thresholds are posteriors of cells; none may be lost to the last digit of a float."""
    for matrix in text.matrices(direction):
        for value in np.unique(matrix[matrix > 0]):
            for threshold in (float(value), float(np.float32(value))):  # probabilities of links are float32
                kept = links_above(text.pairs, text.posterior, threshold, direction)
                assert len(kept.source) == sum((m >= value).sum() for m in text.matrices(direction))


@given(cells())
@MANY
def test_more_is_kept_the_lower_the_threshold(text):
    before: list[frozenset] = [frozenset()] * len(text.shapes)
    for threshold in (1.0, 0.7, 0.4, 0.1, 1e-6):
        now = [pair.links for pair in links_above(text.pairs, text.posterior, threshold)]
        assert all(a <= b for a, b in zip(before, now, strict=True))
        before = now


@given(cells(), st.sampled_from(["both", "forward", "backward"]))
@MANY
def test_spectrum_counts_every_cell(text, direction):
    bins = spectrum(text.posterior, direction)
    values = np.concatenate([m.ravel() for m in text.matrices(direction)])
    assert len(bins) == BINS and bins.sum() == len(values)
    place = np.flatnonzero(bins)
    assert np.repeat(place / (2 * UNIT), bins[place]) == pytest.approx(np.sort(values))


# --- thresholds --------------------------------------------------------------------------------------------------


def bins_of(values):
    bins = np.zeros(BINS, np.int64)
    np.add.at(bins, np.asarray(values, int), 1)
    return bins


some_values = st.lists(st.integers(0, 2 * UNIT), min_size=1, max_size=30)


@given(some_values)
@example([0])
@example([2 * UNIT] * 3)
@example([int(0.05 * 2 * UNIT) + 1] * 10)
@MANY
def test_the_expected_f_threshold_is_the_best_of_all(values):
    """F of what is kept, if every link holds with its own posterior: 2 Σ kept p / (kept + Σ all p)."""
    p = np.array(values) / (2 * UNIT)
    threshold = expected_f_threshold(bins_of(values))

    def promise(t):
        kept = p[p >= t]
        return 2 * kept.sum() / max(1e-9, len(kept) + p.sum())

    assert threshold >= 0.05
    assert promise(threshold) == pytest.approx(
        max(promise(t) for t in np.unique(p) if t >= 0.05) if (p >= 0.05).any() else 0
    )


@given(some_values.filter(lambda values: max(values) > UNIT))
@MANY
def test_the_expected_f_threshold_is_half_of_the_best_f(values):
    """The theorem that the rule rests on: kept is what lies above half of the optimum, and nothing else."""
    p = np.array(values) / (2 * UNIT)
    t = expected_f_threshold(bins_of(values), least=0.0)
    best = 2 * p[p >= t].sum() / (np.sum(p >= t) + p.sum())
    assert (p[p >= t] >= best / 2 - 1e-9).all() and (p[p < t] <= best / 2 + 1e-9).all()


@given(some_values, st.integers(0, 35))
@MANY
def test_points_keep_as_many_links_as_asked_up_to_ties(values, n):
    threshold = points_threshold(bins_of(values), n)
    p = np.array(values) / (2 * UNIT)
    positive = p[p > 0]
    assert threshold > 0
    kept, above = (p >= threshold).sum(), (p > threshold).sum()
    if len(positive) >= max(1, n):
        assert kept >= max(1, n) > above  # not one more than ties make
    else:
        assert kept == len(positive)  # there are no more links to have


# --- paths -------------------------------------------------------------------------------------------------------


def test_paths_become_links_source_first():
    text = Cells([(3, 2), (0, 0), (1, 3)], np.zeros((9, 2)))
    forward = np.array([2, -1, 0, 0, -1], np.int32)  # of target words
    backward = np.array([1, -1, 1, 2], np.int32)  # of source words
    ahead, back = links_of_paths(text.pairs, forward, backward)
    assert [str(row) for row in ahead] == ["2-0", "", "0-0 0-1"]
    assert [str(row) for row in back] == ["0-1 2-1", "", "0-2"]


def test_probabilities_of_given_links_are_the_mean_of_both_directions():
    rng = np.random.default_rng(5)
    text = Cells([(3, 2), (0, 4), (1, 3)], rng.integers(0, UNIT + 1, (9, 2)))
    links = Links.of([{(2, 1), (0, 0)}, set(), {(0, 2)}])
    first, _, last = text.matrices("both")
    assert probabilities(links, text.pairs, text.posterior) == pytest.approx([first[0, 0], first[2, 1], last[0, 2]])
