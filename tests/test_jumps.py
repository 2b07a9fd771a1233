"""The alignment HMM in lanes, held against the general chain, against enumeration, and the same code in float64."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isogloss.structures import AlignmentChain
from isogloss.structures._numba import jumps as kernels
from isogloss.structures._numba.jumps import BAND, BUCKETS, FIRST, ROWS
from isogloss.structures._numba.lanes import WIDTH
from isogloss.tasks.align._numba.expect import _diagonal_counts, _diagonal_prior
from isogloss.tasks.align.maximisation import maximised
from isogloss.testing import brute_force_alignments

LAWS = settings(max_examples=100, deadline=None, derandomize=True)
FEW = settings(max_examples=30, deadline=None, derandomize=True)

# Lengths that fill no lane, one, just more than one, two, and three; all pairs of them are unequal somewhere.
LENGTHS = (1, 2, 3, 5, 7, 11, 15, 16, 17, 31, 33, 40)


class Direction(NamedTuple):
    """One direction of a sentence pair as plain probabilities: n words generated from m."""

    emission: np.ndarray  # [n, m]
    null: np.ndarray  # [n]
    jumps: np.ndarray  # [BUCKETS]
    first: np.ndarray  # [FIRST]
    p0: float
    last: np.ndarray = np.ones(FIRST)

    @property
    def bucket(self):
        """The bucket of every move (i, j)."""
        m = self.emission.shape[1]
        d = np.arange(m)[None, :] - np.arange(m)[:, None]
        return np.where(np.abs(d) <= BAND, d + BAND, BUCKETS - 1)

    @property
    def moves(self):
        """p(j | i) without null, [m, m], and the norms they were divided by."""
        weights = self.jumps[self.bucket]
        return weights / weights.sum(axis=1, keepdims=True), weights.sum(axis=1)

    @property
    def initial(self):
        weights = self.first[np.minimum(np.arange(self.emission.shape[1]), FIRST - 1)]
        return weights / weights.sum()

    @property
    def inputs(self):
        """As `AlignmentChain` and the enumeration take them."""
        with np.errstate(divide="ignore"):
            return (
                np.log(self.emission), np.log(self.null), np.log(self.initial), np.log(self.moves[0]), self.p0,
                np.log(self.final),
            )  # fmt: skip

    @property
    def final(self):
        """Weights of the position of the last real word, in units of 1/m; the last one is for none."""
        m = self.emission.shape[1]
        weights = self.last[np.minimum(np.arange(m)[::-1], FIRST - 1)]
        return np.append(m * weights / weights.sum(), 1.0)

    @property
    def chain(self):
        return AlignmentChain(*self.inputs)


def draw_direction(n, m, seed, *, holes=0.0, spread=2.0, p0=0.2):
    rng = np.random.default_rng(seed)
    emission = np.exp(rng.normal(0.0, spread, (n, m)))
    emission[rng.random((n, m)) < holes] = 0.0
    null = np.exp(rng.normal(0.0, spread, n))
    top = np.maximum(null, emission.max(axis=1))  # as the E-step scales them
    jumps, first = rng.dirichlet(np.full(BUCKETS, 0.7)) + 1e-6, rng.dirichlet(np.full(FIRST, 0.7)) + 1e-6
    last = np.ones(FIRST) if seed % 2 else rng.dirichlet(np.full(FIRST, 0.7)) + 1e-6
    return Direction(emission / top[:, None], null / top, jumps / jumps.sum(), first / first.sum(), p0, last)


@st.composite
def directions(draw, lengths=LENGTHS):
    n, m = draw(st.sampled_from(lengths)), draw(st.sampled_from(lengths))
    holes, p0 = draw(st.sampled_from([0.0, 0.3, 0.9])), draw(st.sampled_from([1e-6, 0.1, 0.5, 0.999]))
    return draw_direction(n, m, draw(st.integers(0, 2**32 - 1)), holes=holes, p0=p0)


class Found(NamedTuple):
    log_likelihood: float
    posterior: np.ndarray
    counts: np.ndarray


def laid_out(direction, dtype):
    """Flat rows a stride apart with zeros in the padding, norms and first weights."""
    n, m = direction.emission.shape
    stride = kernels.padded(m)
    assert stride % WIDTH == 0 and 0 <= stride - m < WIDTH
    emission = np.zeros((n, stride), dtype)
    emission[:, :m] = direction.emission
    inverse, first, last = (np.full(stride, np.nan, dtype) for _ in range(3))
    kernels.jump_norms(direction.jumps, m, inverse)
    kernels.first_weights(direction.first, m, first)
    kernels.last_weights(direction.last, m, last)
    return emission.ravel(), direction.null.astype(dtype), n, m, stride, inverse, first, last, dtype(direction.p0)


def run(direction, dtype=np.float64):
    """Forward, backward and counting; scratch starts as rubbish, so that nothing can lean on what was there."""
    emission, null, n, m, stride, inverse, first, last, p0 = laid_out(direction, dtype)

    def scratch(size):
        return np.full(size, np.nan, dtype)

    mass, real, posterior = scratch(n * stride), scratch(n * stride), scratch(n * stride)
    scale, row, beta = scratch(2 * n + 2), scratch(stride + 2 * WIDTH), scratch(stride)
    z = kernels.forward_pass(
        emission, null, n, m, stride, direction.jumps, inverse, first, last, p0, mass, real, scale, row
    )  # fmt: skip
    z = dtype(z)
    kernels.backward_pass(
        emission, null, n, m, stride, direction.jumps, inverse, last, p0, z, real, scale, row, beta, posterior
    )  # fmt: skip
    value = kernels.log_likelihood(z, scale, n)
    posterior = posterior.reshape(n, stride)
    assert (posterior[:, m:] == 0).all()
    counts = np.zeros((ROWS, BUCKETS))
    row, beta, leaving, entering, sums = (
        scratch(size) for size in (stride + 2 * WIDTH, stride, stride, stride, BUCKETS * WIDTH)
    )
    again = scratch(n * stride)
    kernels.jump_counts(
        emission, null, n, m, stride, direction.jumps, inverse, direction.first, first, direction.last, last, p0, z,
        mass, real, scale, row, beta, leaving, entering, sums, again, counts,
    )  # fmt: skip
    # A few roundings a step (which products are fused is the compiler's choice), and more where the tail, which is
    # taken off the band and added again, is far above what it is taken off.
    rounding = max(16.0, direction.jumps[-1] / direction.jumps.min()) * n * np.finfo(dtype).eps
    np.testing.assert_allclose(again.reshape(n, stride), posterior, rtol=rounding, atol=np.finfo(dtype).tiny)
    return Found(value, posterior[:, :m], counts)


def by_bucket(direction, jumped, entered, left):
    """What `jump_counts` adds, from expected moves [m, m] and expected first and last positions [m]."""
    m = direction.emission.shape[1]
    counts = np.zeros((ROWS, BUCKETS))
    np.add.at(counts[0], direction.bucket, jumped)
    np.add.at(counts[1], direction.bucket, np.broadcast_to((jumped.sum(axis=1) / direction.moves[1])[:, None], (m, m)))
    place = np.minimum(np.arange(m), FIRST - 1)
    np.add.at(counts[2], place, entered)
    np.add.at(counts[3], place, entered.sum() / direction.first[place].sum())
    np.add.at(counts[4], place, left[::-1])
    np.add.at(counts[5], place, left.sum() / direction.last[place].sum())
    return counts


# --- norms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_row_of_jumps_and_of_first_positions_sums_to_one(dtype):
    rng = np.random.default_rng(3)
    jumps, first = rng.dirichlet(np.ones(BUCKETS)), rng.dirichlet(np.ones(FIRST))
    for m in (*range(1, 20), 31, 32, 33, 70):  # below the band, around the lanes, beyond both
        wide = kernels.padded(m)
        inverse, out = np.full(wide, np.nan, dtype), np.full(wide, np.nan, dtype)
        kernels.jump_norms(jumps, m, inverse)
        kernels.first_weights(first, m, out)
        direction = Direction(np.ones((1, m)), np.ones(1), jumps, first, 0.1)
        rows = jumps[direction.bucket] * inverse[:m, None].astype(np.float64)
        tolerance = 1e-12 if dtype is np.float64 else 1e-6
        assert rows.sum(axis=1) == pytest.approx(np.ones(m), abs=tolerance)
        assert out[:m] == pytest.approx(direction.initial, rel=tolerance)
        assert (inverse[m:] == 0).all() and (out[m:] == 0).all()


def test_far_jumps_share_their_weight_evenly():
    jumps = np.full(BUCKETS, 0.05)
    jumps[BUCKETS - 1] = 0.45
    moves, _ = Direction(np.ones((1, 20)), np.ones(1), jumps, np.ones(FIRST), 0.1).moves
    assert moves[0, 6:] == pytest.approx(np.full(14, moves[0, 6])) and moves[0, 6] == pytest.approx(9 * moves[0, 0])


# --- forward and backward ----------------------------------------------------------------------------------------


@given(directions())
@example(draw_direction(1, 1, 0))
@example(draw_direction(40, 1, 1))
@example(draw_direction(1, 40, 2))
@example(draw_direction(33, 17, 3, holes=0.97))
@LAWS
def test_kernel_in_float64_equals_the_general_chain(direction):
    found, chain = run(direction), direction.chain
    assert found.log_likelihood == pytest.approx(chain.log_partition(), rel=1e-9, abs=1e-9)
    assert found.posterior == pytest.approx(chain.posterior(), abs=1e-9)
    assert 1 - found.posterior.sum(axis=1) == pytest.approx(chain.null_posterior(), abs=1e-9)
    assert not found.posterior[direction.emission == 0].any()
    reference = by_bucket(direction, chain.jump_counts(), chain.initial_counts(), chain.final_counts()[:-1])
    assert found.counts[[0, 2, 4]] == pytest.approx(reference[[0, 2, 4]], abs=1e-9)
    assert found.counts[[1, 3, 5]] == pytest.approx(reference[[1, 3, 5]], rel=1e-7, abs=1e-7)  # over small weights
    assert found.counts[2].sum() == pytest.approx(1 - np.exp(chain.log_prob(np.full(chain.n, -1))), abs=1e-9)


@given(directions(), st.sampled_from([1.0, 100.0]))
@LAWS
def test_float32_is_enough(direction, ratio):
    """The tail is taken off the band and added again: weights far below the tail lose digits, in proportion."""
    least = direction.jumps[-1] / ratio
    direction = direction._replace(jumps=np.maximum(direction.jumps, least))
    fine, coarse = run(direction), run(direction, np.float32)
    n, loss = len(direction.null), 1e-5 * max(1.0, ratio / 5)
    assert coarse.log_likelihood == pytest.approx(fine.log_likelihood, abs=loss * (1 + 0.2 * n))
    assert coarse.posterior == pytest.approx(fine.posterior, abs=2 * loss)
    assert coarse.counts[[0, 2, 4]] == pytest.approx(fine.counts[[0, 2, 4]], rel=10 * loss, abs=2 * loss * n)
    assert coarse.counts[[1, 3, 5]] == pytest.approx(fine.counts[[1, 3, 5]], rel=100 * loss, abs=1e-3)


@given(directions(lengths=(1, 2, 3, 4)))
@FEW
def test_kernel_equals_enumeration(direction):
    truth, found = brute_force_alignments(*direction.inputs), run(direction)
    assert found.log_likelihood == pytest.approx(truth.log_partition, abs=1e-10)
    assert found.posterior == pytest.approx(truth.marginals, abs=1e-10)
    m = direction.emission.shape[1]
    jumped, entered, left = np.zeros((m, m)), np.zeros(m), np.zeros(m)
    for alignment, p in zip(truth.structures, truth.probabilities, strict=True):
        real = [position for position in alignment if position >= 0]  # jumps are measured from the last real word
        for before, after in pairwise(real):
            jumped[before, after] += p
        if real:
            entered[real[0]] += p
            left[real[-1]] += p
    wanted = by_bucket(direction, jumped, entered, left)
    assert found.counts[[0, 2, 4]] == pytest.approx(wanted[[0, 2, 4]], abs=1e-10)


def test_equal_weights_of_the_last_word_say_nothing():
    """Not even in the last digit: the default aligner has them."""
    out = np.full(48, np.nan, np.float32)
    for m in range(1, 41):
        kernels.last_weights(np.ones(FIRST), m, out)
        assert (out[:m] == 1.0).all() and (out[m : kernels.padded(m)] == 0.0).all()


def test_null_keeps_its_place():
    """A far move is as improbable through null as without it: the word between does not reset the position."""
    jumps = np.full(BUCKETS, 1e-12)
    jumps[BAND + 1] = 1.0  # one step to the right
    emission = np.zeros((3, 3))
    emission[0, 0], emission[2, 1], emission[2, 2] = 1.0, 0.5, 0.5
    direction = Direction(emission, np.array([0.0, 1.0, 0.0]), jumps, np.ones(FIRST), 0.3)
    posterior = run(direction).posterior
    assert posterior[0] == pytest.approx([1, 0, 0]) and not posterior[1].any()
    assert posterior[2] == pytest.approx([0, 1, 0], abs=1e-9)


def test_impossible_but_for_null_is_all_null():
    direction = Direction(np.zeros((20, 18)), np.ones(20), np.ones(BUCKETS), np.ones(FIRST), 0.5)
    for dtype in (np.float64, np.float32):
        found = run(direction, dtype)
        assert not found.posterior.any() and not found.counts.any()
        assert found.log_likelihood == pytest.approx(20 * np.log(0.5), rel=1e-6)


def test_long_improbable_sentences_stay_finite():
    """A thousand words of emissions near the end of float32: scaling, not logarithms, has to carry them."""
    direction = draw_direction(1000, 37, 5, spread=15.0)
    found = run(direction, np.float32)
    assert np.isfinite(found.log_likelihood) and np.isfinite(found.posterior).all() and np.isfinite(found.counts).all()
    assert found.log_likelihood == pytest.approx(run(direction).log_likelihood, rel=1e-5)
    assert (found.posterior.sum(axis=1) <= 1 + 1e-4).all()


# --- the best path -----------------------------------------------------------------------------------------------


def best_path(direction, dtype=np.float32):
    emission, null, n, m, stride, inverse, first, last, _ = laid_out(direction, dtype)
    path = np.full(n, -9, np.int32)
    kernels.viterbi(emission, null, n, m, stride, direction.jumps, inverse, first, last, direction.p0, path)
    return path


@given(directions(lengths=(1, 2, 3, 5, 11, 17, 33)))
@FEW
def test_viterbi_is_the_best_path_of_the_chain(direction):
    chain, path = direction.chain, best_path(direction)
    assert chain.score(path) == pytest.approx(
        chain.score(chain.argmax()), abs=1e-4
    )  # float32 emissions: scores, not paths


@given(directions(lengths=(1, 2, 3, 4)))
@FEW
def test_viterbi_equals_enumeration(direction):
    truth, path = brute_force_alignments(*direction.inputs), best_path(direction)
    assert truth.log_scores[truth.structures.index(tuple(path.tolist()))] == pytest.approx(truth.best, abs=1e-5)


def test_viterbi_breaks_ties_to_the_left_and_for_links():
    even = Direction(np.ones((3, 4)), np.ones(3), np.ones(BUCKETS), np.ones(FIRST), 0.01)
    assert best_path(even).tolist() == [0, 0, 0]
    assert best_path(even._replace(emission=np.zeros((3, 4)))).tolist() == [-1, -1, -1]
    assert best_path(even._replace(p0=0.99)).tolist() == [-1, -1, -1]


# --- Models 1 and 2 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 40), (40, 3), (17, 16), (2, 7)])
def test_independent_words_equal_the_formula(n, m, dtype):
    direction = draw_direction(n, m, n + m, holes=0.3)
    emission, null, _, _, stride, _, _, _, p0 = laid_out(direction, dtype)
    rng = np.random.default_rng(m)
    weights = rng.dirichlet(np.ones(BUCKETS))
    prior = np.full(n * stride, np.nan, np.float32)
    _diagonal_prior(weights, n, m, stride, prior)
    plain = np.zeros((n, m))
    for word in range(1, n + 1):  # Liang et al. count from 1
        for position in range(1, m + 1):
            d = position - word * m // n
            plain[word - 1, position - 1] = weights[d + BAND] if abs(d) <= BAND else weights[BUCKETS - 1]
    plain /= plain.sum(axis=1, keepdims=True)
    prior = prior.reshape(n, stride)
    assert prior[:, :m] == pytest.approx(plain, rel=1e-6) and not prior[:, m:].any()
    posterior = np.full(n * stride, np.nan, dtype)
    value = kernels.independent(emission, null, n, m, stride, prior.astype(dtype).ravel(), stride, p0, posterior)
    scores = 0.8 * prior[:, :m].astype(np.float64) * direction.emission
    totals = scores.sum(axis=1) + 0.2 * direction.null
    assert value == pytest.approx(np.log(totals).sum(), rel=1e-5 if dtype is np.float32 else 1e-12, abs=1e-6)
    close = 2e-6 if dtype is np.float32 else 1e-12
    assert posterior.reshape(n, stride)[:, :m] == pytest.approx(scores / totals[:, None], abs=close)
    assert not posterior.reshape(n, stride)[:, m:].any()


def test_offsets_from_the_diagonal_are_counted_by_bucket():
    n, m = 9, 23
    stride = kernels.padded(m)
    rng = np.random.default_rng(8)
    weights, posterior = rng.dirichlet(np.ones(BUCKETS)), np.zeros((n, stride), np.float32)
    posterior[:, :m] = rng.dirichlet(np.ones(m + 1), n)[:, :m]
    counts = np.zeros((4, BUCKETS))
    _diagonal_counts(weights, n, m, stride, posterior.ravel(), counts)
    expected = np.zeros((4, BUCKETS))
    for t in range(n):
        d = np.arange(1, m + 1) - (t + 1) * m // n
        bucket = np.where(np.abs(d) <= BAND, d + BAND, BUCKETS - 1)
        np.add.at(expected[0], bucket, posterior[t, :m])
        np.add.at(expected[1], bucket, posterior[t].sum() / weights[bucket].sum())
    assert counts == pytest.approx(expected, rel=1e-5)


# --- the M-step of distortion ------------------------------------------------------------------------------------


def expected_log_likelihood(jumps, moved):
    """Σ N_ij log p(j | i), for moves of several lengths m."""
    value = 0.0
    for counts in moved:
        m = len(counts)
        moves, _ = Direction(np.ones((1, m)), np.ones(1), jumps, np.ones(FIRST), 0.1).moves
        value += (counts * np.log(moves)).sum()
    return value


def counted(jumps, moved):
    """Rows 0 and 1 of the counts, for one direction."""
    total = np.zeros((ROWS, BUCKETS))
    for counts in moved:
        m = len(counts)
        none = np.zeros(m)
        total += by_bucket(Direction(np.ones((1, m)), np.ones(1), jumps, np.ones(FIRST), 0.1), counts, none, none)
    return total[:1], total[1:2]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 1.0, 1000.0]), st.sampled_from([(2,), (1, 3, 4), (5, 9, 24)]))
@LAWS
def test_the_m_step_of_jumps_never_lowers_the_expected_log_likelihood(seed, size, lengths):
    """Nothing has to be taken off for the pseudo-counts: they hold the weights where they were, and add no optimum."""
    rng = np.random.default_rng(seed)
    moved = [size * rng.gamma(0.3, 1.0, (m, m)) for m in lengths]
    jumps = rng.dirichlet(np.ones(BUCKETS)) + 1e-6
    jumps /= jumps.sum()
    value = expected_log_likelihood(jumps, moved)
    for _ in range(5):
        jumps = maximised(*counted(jumps, moved), jumps[None])[0]
        assert jumps.sum() == pytest.approx(1.0) and (jumps > 0).all()
        after = expected_log_likelihood(jumps, moved)
        assert after >= value - 1e-9 * abs(value)
        value = after


def test_the_m_step_of_jumps_finds_the_weights_that_made_the_counts():
    rng = np.random.default_rng(11)
    truth = rng.dirichlet(np.full(BUCKETS, 2.0))
    moved = []
    for m in (3, 8, 30):
        moves, _ = Direction(np.ones((1, m)), np.ones(1), truth, np.ones(FIRST), 0.1).moves
        moved.append(rng.uniform(50, 100, (m, 1)) * moves)
    assert maximised(*counted(truth, moved), truth[None])[0] == pytest.approx(truth, rel=1e-12)  # a fixed point
    jumps = np.full(BUCKETS, 1 / BUCKETS)
    for _ in range(60):
        jumps = maximised(*counted(jumps, moved), jumps[None])[0]
    assert jumps == pytest.approx(truth, rel=1e-4)


def test_jumps_that_no_sentence_allows_keep_their_weight():
    """With one word there is one move; the others are not unlearnt."""
    before = np.full((1, BUCKETS), 1 / BUCKETS)
    after = maximised(*counted(before[0], [np.full((1, 1), 1e6)]), before)
    assert after == pytest.approx(before)
