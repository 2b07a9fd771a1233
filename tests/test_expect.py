"""The E-step over pairs: scores, constraints and counts, held against chains of one pair and generic projections."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Bitext
from isogloss.learners import agreement, bijective, project_pair
from isogloss.structures import AlignmentChain
from isogloss.structures._numba.jumps import BAND, BUCKETS, FIRST, ROWS
from isogloss.tasks.align._numba import expect as kernel
from isogloss.tasks.align._numba.expect import MODELS, MODES, UNIT, Pairs, Parameters
from isogloss.tasks.align.corpus import Corpus

FEW = settings(max_examples=20, deadline=None, derandomize=True)
CLOSE = 0.5 / UNIT + 2e-5  # rounding to whole numbers, and float32


# --- a small text and random parameters --------------------------------------------------------------------------


class Text(NamedTuple):
    pairs: Pairs
    p: Parameters


def corpus_of(sizes, n_types, rng):
    """Sentences of the given (source, target) lengths, of few types, so that words repeat within a sentence."""
    rows = [
        tuple(" ".join(f"{side}{k}" for k in rng.integers(0, n_types, size)) for side, size in zip("ef", both))
        for both in sizes
    ]
    return Corpus.of(Bitext.of(rows), lowercase=True, max_length=100)


def draw_text(sizes, seed, *, n_types=6, p0=0.2, spread=2.0, stems=0.0, final=False):
    """Weights, masses and nulls drawn apart from each other: the kernel must not assume that they add up."""
    rng = np.random.default_rng(seed)
    corpus = corpus_of(sizes, n_types, rng)
    n, m = len(corpus.source_words), len(corpus.target_words)

    def positive(*shape, scale=1.0):
        return (scale * np.exp(rng.normal(0.0, spread, shape))).astype(np.float32)

    def simplex(size):
        rows = rng.dirichlet(np.full(size, 3.0), 2) + 1e-3
        return rows / rows.sum(axis=1, keepdims=True)

    source_null, target_null = positive(n + 1, scale=0.1), positive(m + 1, scale=0.1)
    p = Parameters(
        positive(len(corpus.columns), 2), 20 + positive(n + 1), 20 + positive(m + 1), source_null, target_null,
        np.array([2 + source_null.sum(), 2 + target_null.sum()], np.float32),
        simplex(BUCKETS), simplex(FIRST), np.ones((2, FIRST)), simplex(BUCKETS), p0, np.float32(0.01),
        *(stems * rng.random((3, size)).astype(np.float32) for size in (n + 1, m + 1, n + 1, m + 1)),
        np.zeros((0, 2), np.float32),
    )  # fmt: skip
    return Text(corpus.pairs, p._replace(last=simplex(FIRST)) if final else p)


class Result(NamedTuple):
    forward: list  # by pair, [n_source, n_target]
    backward: list
    source_null: np.ndarray
    target_null: np.ndarray
    scores: np.ndarray
    counts: np.ndarray  # [2, ROWS, BUCKETS]
    bound: float
    residual: float
    raw: tuple


def run(
    text, model="hmm", constraint="none", *, steps=0, rate=1.0, tolerance=0.0, adaptive=False, leave_out=0.0,
    before=None, limit=99,
):  # fmt: skip
    """The kernel, with its whole numbers as probabilities again; `before` are an earlier run's, to be left out."""
    pairs = text.pairs
    known = kernel.no_evidence(pairs)
    if before is not None:
        known = (*kernel.keep_cells(pairs.cell_offsets, before[0]), before[1:])
    posterior = np.zeros((len(pairs.cells), 2), np.uint16)
    nulls = np.zeros(len(pairs.source_ids), np.uint16), np.zeros(len(pairs.target_ids), np.uint16)
    n_pairs = len(pairs.cell_offsets) - 1
    scores = np.full((n_pairs, 2), np.nan)
    counts, sums = kernel.expect(
        MODELS[model], MODES[constraint], pairs, text.p, 0, n_pairs, limit, steps, rate, tolerance,
        adaptive, np.float32(leave_out), True, known, posterior, nulls, scores,
    )  # fmt: skip
    cells = [
        posterior[pairs.cell_offsets[s] : pairs.cell_offsets[s + 1]].reshape(*shape(pairs, s), 2) / UNIT
        for s in range(n_pairs)
    ]
    return Result(
        [c[..., 0] for c in cells], [c[..., 1] for c in cells], nulls[0] / UNIT, nulls[1] / UNIT, scores, counts,
        sums[0], sums[1], (posterior, *nulls),
    )  # fmt: skip


def shape(pairs, s):
    return tuple(int(offsets[s + 1] - offsets[s]) for offsets in (pairs.source_offsets, pairs.target_offsets))


def words(pairs, s):
    return (
        pairs.source_ids[pairs.source_offsets[s] : pairs.source_offsets[s + 1]],
        pairs.target_ids[pairs.target_offsets[s] : pairs.target_offsets[s + 1]],
    )


def tokens(values, offsets, s):
    return values[offsets[s] : offsets[s + 1]]


# --- the same by another road ------------------------------------------------------------------------------------


def emissions(text, s, leave_out=0.0, before=None):
    """p(target word | source word) [m, n], p(source | target) [n, m] and the nulls of both sides, cell by cell."""
    pairs, p = text.pairs, text.p
    source, target = words(pairs, s)
    n, m = len(source), len(target)
    q, q_source, q_target = np.zeros((n, m, 2)), np.zeros(n), np.zeros(m)
    if before is not None:
        q = before[0][pairs.cell_offsets[s] : pairs.cell_offsets[s + 1]].reshape(n, m, 2) * (leave_out / UNIT)
        q_source = tokens(before[1], pairs.source_offsets, s) * (leave_out / UNIT)
        q_target = tokens(before[2], pairs.target_offsets, s) * (leave_out / UNIT)
    forward, backward = np.empty((m, n)), np.empty((n, m))
    for i, e in enumerate(source):
        for j, f in enumerate(target):
            entry = pairs.cells[pairs.cell_offsets[s] + i * m + j]
            a, b = p.weights[entry].astype(float) if entry >= 0 else (float(p.floor), float(p.floor))
            if leave_out:  # this cell's own part, in the counts and in the prior that its stems have made of them
                a = max(p.floor, a - q[i, j, 0] * (1 + float(p.own_source[:, e] @ p.share_target[:, f])))
                b = max(p.floor, b - q[i, j, 1] * (1 + float(p.own_target[:, f] @ p.share_source[:, e])))
            forward[j, i] = a / (p.source_mass[e] - q[i, :, 0].sum())
            backward[i, j] = b / (p.target_mass[f] - q[:, j, 1].sum())
    target_null = np.maximum(1e-9, p.target_null[target] - q_target) / (p.null_mass[1] - q_target)
    source_null = np.maximum(1e-9, p.source_null[source] - q_source) / (p.null_mass[0] - q_source)
    return forward, backward, target_null, source_null


def distortion(weights, n):
    """p(j | i) over n positions."""
    d = np.arange(n)[None, :] - np.arange(n)[:, None]
    rows = weights[np.where(np.abs(d) <= BAND, d + BAND, BUCKETS - 1)]
    return rows / rows.sum(axis=1, keepdims=True)


def chains(text, s, **leaving):
    """Both directions of a pair as general chains."""
    forward, backward, target_null, source_null = emissions(text, s, **leaving)
    both = []
    for side, emission, null in ((0, forward, target_null), (1, backward, source_null)):
        size = emission.shape[1]
        first = text.p.first[side][np.minimum(np.arange(size), FIRST - 1)]
        moves = distortion(text.p.jumps[side], size)
        last = text.p.last[side][np.minimum(np.arange(size)[::-1], FIRST - 1)]
        p0 = text.p.p0 or 1 / (size + 1)
        initial, final = first / first.sum(), np.append(size * last / last.sum(), 1.0)
        both.append(AlignmentChain(np.log(emission), np.log(null), np.log(initial), np.log(moves), p0, np.log(final)))
    return tuple(both)


def independents(text, s, model):
    """Posteriors [n_source, n_target] and log p of both directions of Models 1 and 2."""
    forward, backward, target_null, source_null = emissions(text, s)
    found = []
    for side, emission, null in ((0, forward, target_null), (1, backward, source_null)):
        n, m = emission.shape
        prior = np.full((n, m), 1.0)
        if model == "model2":
            for t in range(n):
                d = np.arange(1, m + 1) - (t + 1) * m // n
                prior[t] = text.p.diagonal[side][np.where(np.abs(d) <= BAND, d + BAND, BUCKETS - 1)]
        prior /= prior.sum(axis=1, keepdims=True)
        p0 = text.p.p0 or 1 / (m + 1)
        scores = (1 - p0) * prior * emission
        total = scores.sum(axis=1) + p0 * null
        found.append((scores / total[:, None], np.log(total).sum()))
    return found[0][0].T, found[1][0], found[0][1], found[1][1]


def bucket_counts(text, both):
    """The distortion counts of many pairs of chains."""
    counts = np.zeros((2, ROWS, BUCKETS))
    for pair in both:
        for side, chain in enumerate(pair):
            size = chain.m
            d = np.arange(size)[None, :] - np.arange(size)[:, None]
            bucket = np.where(np.abs(d) <= BAND, d + BAND, BUCKETS - 1)
            place = np.minimum(np.arange(size), FIRST - 1)
            jumped, entered = chain.jump_counts(), chain.initial_counts()
            norms = text.p.jumps[side][bucket].sum(axis=1)
            np.add.at(counts[side, 0], bucket, jumped)
            np.add.at(counts[side, 1], bucket, (jumped.sum(axis=1) / norms)[:, None] * np.ones(size))
            np.add.at(counts[side, 2], place, entered)
            np.add.at(counts[side, 3], place, entered.sum() / text.p.first[side][place].sum())
            left = chain.final_counts()[:-1]
            np.add.at(counts[side, 4], place, left[::-1])
            np.add.at(counts[side, 5], place, left.sum() / text.p.last[side][place].sum())
    return counts


SIZES = [(1, 1), (1, 5), (4, 1), (3, 2), (7, 12), (18, 5), (2, 34), (17, 16)]


def some_sizes():
    return st.lists(
        st.tuples(st.sampled_from([1, 2, 3, 5, 9, 17]), st.sampled_from([1, 2, 4, 7, 16, 33])), min_size=1, max_size=4
    )


# --- no constraint -----------------------------------------------------------------------------------------------


@given(some_sizes(), st.integers(0, 2**32 - 1), st.sampled_from([0.001, 0.2, 0.9, 0.0]), st.booleans())
@FEW
def test_without_constraint_it_is_forward_backward_of_every_pair(sizes, seed, p0, final):
    text = draw_text(sizes, seed, p0=p0, final=final)  # p0 of 0 is 1 / (m + 1) where there are m words to choose from
    found = run(text)
    both = [chains(text, s) for s in range(len(sizes))]
    for s, (forward, backward) in enumerate(both):
        assert found.forward[s] == pytest.approx(forward.posterior().T, abs=CLOSE)
        assert found.backward[s] == pytest.approx(backward.posterior(), abs=CLOSE)
        assert tokens(found.target_null, text.pairs.target_offsets, s) == pytest.approx(
            forward.null_posterior(), abs=CLOSE
        )
        assert tokens(found.source_null, text.pairs.source_offsets, s) == pytest.approx(
            backward.null_posterior(), abs=CLOSE
        )
        assert found.scores[s] == pytest.approx([forward.log_partition(), backward.log_partition()], rel=1e-5, abs=1e-4)
    rounded = len(sizes) * 2.0**-21  # sums are of multiples of 2⁻²⁰, pair by pair
    assert found.bound == pytest.approx(found.scores.sum(), rel=1e-9, abs=rounded) and found.residual == 0
    assert found.counts == pytest.approx(bucket_counts(text, both), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("p0", [0.2, 0.0])
@pytest.mark.parametrize("model", ["model1", "model2"])
def test_without_constraint_models_1_and_2_equal_the_formula(model, p0):
    text = draw_text(SIZES, 4, p0=p0)
    found = run(text, model)
    for s in range(len(SIZES)):
        forward, backward, log_forward, log_backward = independents(text, s, model)
        assert found.forward[s] == pytest.approx(forward, abs=CLOSE)
        assert found.backward[s] == pytest.approx(backward, abs=CLOSE)
        assert found.scores[s] == pytest.approx([log_forward, log_backward], rel=1e-5, abs=1e-4)


# --- agreement ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["model1", "model2", "hmm"])
def test_agreement_is_the_product_and_keeps_the_rest(model):
    text = draw_text(SIZES, 5)
    alone, found = run(text, model), run(text, model, "agreement", steps=9)
    for s in range(len(SIZES)):
        q = agreement(alone.forward[s], alone.backward[s])
        assert found.forward[s] == pytest.approx(q, abs=2 * CLOSE)
        assert (found.forward[s] == found.backward[s]).all()
        assert (found.forward[s] <= np.minimum(alone.forward[s], alone.backward[s]) + 1 / UNIT).all()
        assert (found.forward[s].sum(axis=0) <= 1 + 1e-3).all() and (found.forward[s].sum(axis=1) <= 1 + 1e-3).all()
    for name in ("source_null", "target_null", "scores", "counts"):  # nulls and jumps stay those of each direction
        assert (getattr(found, name) == getattr(alone, name)).all()
    assert found.bound == alone.bound


# --- symmetry ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 6])
@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_symmetric_steps_are_those_of_the_generic_projection(steps, rate):
    """Step by step: posteriors, what they cost, and the jumps of the tilted chains."""
    text = draw_text(SIZES, 6)
    found = run(text, "hmm", "symmetric", steps=steps, rate=rate)
    bound, residual, tilted = 0.0, 0.0, []
    for s in range(len(SIZES)):
        reference = project_pair(
            *chains(text, s), slack=0.0, optimiser="fixed", rate=2 * rate, steps=steps, tolerance=0.0
        )
        q = reference.q
        assert found.forward[s] == pytest.approx(q.forward.posterior().T, abs=2 * CLOSE)
        assert found.backward[s] == pytest.approx(q.backward.posterior(), abs=2 * CLOSE)
        assert tokens(found.target_null, text.pairs.target_offsets, s) == pytest.approx(
            q.forward.null_posterior(), abs=2 * CLOSE
        )
        tilted.append((q.forward, q.backward))
        bound += 2 * reference.bound  # the generic projection gives each direction half of the weight
        residual += np.linalg.norm(q.forward.posterior().T - q.backward.posterior())
    assert found.bound == pytest.approx(bound, rel=1e-5)
    assert found.residual == pytest.approx(residual, abs=1e-3)
    assert found.counts == pytest.approx(bucket_counts(text, tilted), rel=2e-3, abs=2e-3)
    assert (found.scores == run(text).scores).all()  # log p is that of the model, whatever the constraint


@pytest.mark.parametrize("model", ["model1", "hmm"])
def test_symmetric_converges_to_the_projection(model):
    sizes = [(1, 1), (2, 3), (3, 2), (4, 1), (5, 7), (18, 3)]
    text = draw_text(sizes, 7, spread=1.0)
    residuals = [run(text, model, "symmetric", steps=steps).residual for steps in (1, 5, 25, 125, 600)]
    assert all(after < before for before, after in pairwise(residuals))
    assert residuals[-1] < 0.02 * len(sizes)
    found, alone = run(text, model, "symmetric", steps=600), run(text, model)
    for s in range(len(sizes)):
        assert (found.forward[s].sum(axis=1) <= 1.01).all() and (found.forward[s].sum(axis=0) <= 1.01).all()
        assert (found.backward[s].sum(axis=1) <= 1.01).all() and (found.backward[s].sum(axis=0) <= 1.01).all()
        if model == "hmm":
            best = project_pair(*chains(text, s), slack=0.0, tolerance=1e-6, steps=2000)
            assert best.converged
            assert found.forward[s] == pytest.approx(best.q.forward.posterior().T, abs=0.01)
            assert found.backward[s] == pytest.approx(best.q.backward.posterior(), abs=0.01)
    assert found.bound < alone.bound


def test_symmetric_stops_where_the_directions_agree():
    """With tolerance reached before the first step there is one step, of no consequence."""
    text = draw_text([(2, 2), (3, 5)], 8)
    loose = run(text, "hmm", "symmetric", steps=50, tolerance=1e3)
    assert loose.residual == run(text, "hmm", "symmetric", steps=1).residual
    assert run(text, "hmm", "symmetric", steps=0).forward[1].tolist() == run(text).forward[1].tolist()


def test_symmetric_stays_finite_where_it_is_nearly_impossible():
    """One word against forty with almost no null: the multipliers grow without end."""
    text = draw_text([(1, 40), (40, 1), (33, 2)], 9, p0=1e-6, spread=5.0)
    for constraint in ("symmetric", "bijective"):
        for adaptive in (False, True):
            found = run(text, "hmm", constraint, steps=400, rate=2.0, adaptive=adaptive)
            assert np.isfinite(found.bound) and np.isfinite(found.residual) and np.isfinite(found.counts).all()
            for s in range(3):
                assert (found.forward[s].sum(axis=0) <= 1 + 1e-3).all()
                assert (found.backward[s].sum(axis=1) <= 1 + 1e-3).all()


# --- the adaptive search -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["model1", "hmm"])
def test_the_adaptive_search_finds_the_symmetric_projection(model):
    """Within the tolerance, where as many fixed steps are far from it."""
    sizes = [(1, 1), (2, 3), (3, 2), (4, 1), (5, 7), (18, 3), (12, 17)]
    text = draw_text(sizes, 7, spread=2.0, final=True)
    found = run(text, model, "symmetric", steps=100, tolerance=1e-3, adaptive=True)
    assert found.residual <= 1e-3 * len(sizes)
    assert found.residual < 0.1 * run(text, model, "symmetric", steps=100).residual
    if model == "hmm":
        tilted, bound = [], 0.0
        for s in range(len(sizes)):
            best = project_pair(*chains(text, s), slack=0.0, tolerance=1e-6, steps=2000)
            assert found.forward[s] == pytest.approx(best.q.forward.posterior().T, abs=2e-3)
            assert found.backward[s] == pytest.approx(best.q.backward.posterior(), abs=2e-3)
            tilted.append((best.q.forward, best.q.backward))
            bound += 2 * best.bound
        assert found.bound == pytest.approx(bound, rel=1e-4)  # the divergence is least: strong duality
        assert found.counts == pytest.approx(bucket_counts(text, tilted), rel=0.02, abs=0.02)


def test_the_adaptive_search_finds_the_bijective_projection_where_fixed_steps_swing():
    """Many words that want the same partner: D is far from flat, and steps of 1 go to and fro."""
    sizes = [(1, 1), (2, 3), (1, 4), (5, 9), (18, 3), (2, 30), (33, 4)]
    text = draw_text(sizes, 11, spread=3.0, p0=0.05)
    found = run(text, "hmm", "bijective", steps=200, tolerance=1e-3, adaptive=True)
    for s in range(len(sizes)):
        best = [bijective(c, tolerance=1e-6) for c in chains(text, s)]
        assert found.forward[s] == pytest.approx(best[0].q.posterior().T, abs=2e-3)
        assert found.backward[s] == pytest.approx(best[1].q.posterior(), abs=2e-3)
    assert 0 <= found.residual <= 1e-3 * len(sizes)
    few = [run(text, "hmm", "bijective", steps=50, adaptive=adaptive).residual for adaptive in (False, True)]
    assert few[1] < 0.1 * few[0]


@pytest.mark.parametrize("constraint", ["symmetric", "bijective"])
def test_the_adaptive_search_stops_at_the_tolerance_and_at_its_budget(constraint):
    text = draw_text(SIZES, 8, p0=0.05)
    alone = run(text)
    loose = run(text, "hmm", constraint, steps=50, tolerance=1e3, adaptive=True)
    assert all((a == b).all() for a, b in zip(alone.raw, loose.raw))  # nothing is done where nothing is asked
    residuals = [
        run(text, "hmm", constraint, steps=200, tolerance=tolerance, adaptive=True).residual
        for tolerance in (1.0, 0.1, 0.01)
    ]
    assert all(after < before for before, after in pairwise(residuals))
    assert residuals[-1] <= 0.01 * len(SIZES)
    one = run(text, "hmm", constraint, steps=1, adaptive=True)  # the first step is one of the rate
    assert one.residual == pytest.approx(run(text, "hmm", constraint, steps=1).residual, rel=1e-3)


# --- bijectivity -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 3, 40])
def test_bijective_steps_are_those_of_the_generic_projection(steps):
    text = draw_text(SIZES, 10)
    found = run(text, "hmm", "bijective", steps=steps, rate=0.5)
    bound, tilted = 0.0, []
    for s in range(len(SIZES)):
        both = [bijective(c, optimiser="fixed", rate=0.5, steps=steps, tolerance=0.0) for c in chains(text, s)]
        assert found.forward[s] == pytest.approx(both[0].q.posterior().T, abs=2 * CLOSE)
        assert found.backward[s] == pytest.approx(both[1].q.posterior(), abs=2 * CLOSE)
        bound += both[0].bound + both[1].bound
        tilted.append((both[0].q, both[1].q))
    assert found.bound == pytest.approx(bound, rel=1e-5)
    assert found.counts == pytest.approx(bucket_counts(text, tilted), rel=2e-3, abs=2e-3)


def test_bijective_converges_to_the_projection():
    sizes = [(1, 1), (2, 3), (3, 2), (1, 4), (5, 9), (18, 3)]
    text = draw_text(sizes, 11)
    found = run(text, "hmm", "bijective", steps=600, rate=0.5)
    for s in range(len(sizes)):
        best = [bijective(c, tolerance=1e-6) for c in chains(text, s)]
        assert found.forward[s] == pytest.approx(best[0].q.posterior().T, abs=2e-3)
        assert found.backward[s] == pytest.approx(best[1].q.posterior(), abs=2e-3)
        assert found.forward[s].sum(axis=1).max() <= 1.002  # uses of source words
        assert found.backward[s].sum(axis=0).max() <= 1.002
    assert 0 <= found.residual <= 2e-3 * len(sizes)


def test_bijective_does_nothing_where_no_word_is_used_twice():
    text = draw_text([(3, 1), (5, 2), (1, 1)], 12, p0=0.99, spread=0.5)
    alone, found = run(text), run(text, "hmm", "bijective", steps=30)
    assert all(q.sum(axis=1).max() < 1 for q in alone.forward) and all(q.sum(axis=0).max() < 1 for q in alone.backward)
    assert all((a == b).all() for a, b in zip(alone.raw, found.raw))
    assert found.bound == alone.bound and found.residual == 0


# --- leaving out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("leave_out", "stems"), [(1.0, 0.0), (1.0, 0.4), (0.5, 0.4)])
def test_own_evidence_is_left_out(leave_out, stems):
    text = draw_text(SIZES, 13, stems=stems)
    before = run(text).raw
    found = run(text, leave_out=leave_out, before=before)
    both = [chains(text, s, leave_out=leave_out, before=before) for s in range(len(SIZES))]
    for s, (forward, backward) in enumerate(both):
        assert found.forward[s] == pytest.approx(forward.posterior().T, abs=2 * CLOSE)
        assert found.backward[s] == pytest.approx(backward.posterior(), abs=2 * CLOSE)
        assert tokens(found.target_null, text.pairs.target_offsets, s) == pytest.approx(
            forward.null_posterior(), abs=2 * CLOSE
        )
        assert found.scores[s] == pytest.approx([forward.log_partition(), backward.log_partition()], rel=1e-5, abs=1e-4)
    moved = max(np.abs(a - b).max() for a, b in zip(found.forward, run(text).forward))
    assert moved > 0.01  # it makes a difference here


def test_nothing_is_left_out_when_nothing_was_put_in():
    text = draw_text(SIZES, 14, stems=0.5)
    nothing = tuple(np.zeros_like(a) for a in run(text).raw)
    assert all((a == b).all() for a, b in zip(run(text).raw, run(text, leave_out=1.0, before=nothing).raw))


def test_what_is_left_is_never_below_the_floor():
    """Counts that are all a sentence's own: only the priors are left, and nothing is negative or not a number."""
    text = draw_text([(2, 3)], 15)
    tiny = np.full_like(text.p.weights, 0.0101)
    masses = {name: np.full_like(getattr(text.p, name), 1.0) for name in ("source_mass", "target_mass")}
    nulls = {name: np.full_like(getattr(text.p, name), 0.5) for name in ("source_null", "target_null")}
    text = Text(text.pairs, text.p._replace(weights=tiny, **masses, **nulls, null_mass=np.full(2, 1.5, np.float32)))
    full = tuple(np.full_like(a, UNIT) for a in run(text).raw)
    found = run(text, leave_out=1.0, before=full)
    assert np.isfinite(found.scores).all() and np.isfinite(found.counts).all()
    assert (found.forward[0] <= 1).all() and (found.forward[0].sum(axis=0) <= 1 + 1e-4).all()


# --- corners -----------------------------------------------------------------------------------------------------


def test_cells_without_entry_and_unknown_words_have_the_floor():
    text = draw_text([(3, 4), (2, 17)], 16)
    cells, source, target = text.pairs.cells.copy(), text.pairs.source_ids.copy(), text.pairs.target_ids.copy()
    cells[[0, 5, 13]], source[1], target[[2, 9]] = -1, -1, -1
    text = Text(text.pairs._replace(cells=cells, source_ids=source, target_ids=target), text.p)
    found = run(text)
    for s in range(2):
        forward, backward = chains(text, s)
        assert found.forward[s] == pytest.approx(forward.posterior().T, abs=CLOSE)
        assert found.backward[s] == pytest.approx(backward.posterior(), abs=CLOSE)
    nothing = Text(text.pairs._replace(cells=np.full_like(cells, -1), source_ids=np.full_like(source, -1)), text.p)
    for constraint in MODES:
        assert np.isfinite(run(nothing, "hmm", constraint, steps=5).scores).all()


def test_empty_and_long_pairs_are_passed_over():
    sizes = [(2, 3), (0, 4), (3, 0), (0, 0), (9, 2), (2, 9), (3, 3)]
    rng = np.random.default_rng(17)
    rows = [
        tuple(" ".join(f"{side}{k}" for k in rng.integers(0, 6, size)) for side, size in zip("ef", both))
        for both in sizes
    ]
    corpus = Corpus.of(Bitext.of(rows), lowercase=True, max_length=8)
    assert corpus.skipped.tolist() == [False, True, True, True, True, True, False]
    assert [corpus.shape(k) for k in (0, 4, 6)] == [(2, 3), (0, 0), (3, 3)]
    text = draw_text([(2, 3), (9, 2), (2, 9), (3, 3)], 17)
    found = run(text, limit=8)
    assert np.isnan(found.scores[[1, 2]]).all() and np.isfinite(found.scores[[0, 3]]).all()
    assert not found.forward[1].any() and not found.backward[2].any()
    assert run(text, limit=9).forward[0].tolist() == found.forward[0].tolist()


@pytest.mark.parametrize("constraint", list(MODES))
def test_a_part_of_the_text_is_as_the_whole(constraint):
    """Shards: a range of pairs gives those pairs' posteriors, and sums add up."""
    text = draw_text(SIZES * 3, 18)
    whole = run(text, "hmm", constraint, steps=4)
    n = len(SIZES) * 3
    posterior = np.zeros((len(text.pairs.cells), 2), np.uint16)
    nulls = np.zeros(len(text.pairs.source_ids), np.uint16), np.zeros(len(text.pairs.target_ids), np.uint16)
    scores, total = np.full((n, 2), np.nan), np.zeros(3)
    for start, stop in ((0, 5), (5, 6), (6, n)):
        _, sums = kernel.expect(
            MODELS["hmm"], MODES[constraint], text.pairs, text.p, start, stop, 99, 4, 1.0, 0.0, False, np.float32(0.0),
            True,
            kernel.no_evidence(text.pairs), posterior, nulls, scores,
        )  # fmt: skip
        total += sums
    assert (posterior == whole.raw[0]).all() and (scores == whole.scores).all()
    assert total.tolist() == [whole.bound, whole.residual, n]  # exactly, however the text is cut


def swapped(text):
    """The same text and parameters with source and target exchanged, and the order of cells that follows."""
    pairs, p = text.pairs, text.p
    order = []
    for s in range(len(pairs.cell_offsets) - 1):
        n, m = shape(pairs, s)
        order.append(pairs.cell_offsets[s] + np.arange(n * m).reshape(n, m).T.ravel())
    order = np.concatenate(order)
    turned = Pairs(
        pairs.target_ids, pairs.target_offsets, pairs.source_ids, pairs.source_offsets, pairs.cell_offsets,
        pairs.cells[order],
    )  # fmt: skip
    other = Parameters(
        p.weights[:, ::-1].copy(), p.target_mass, p.source_mass, p.target_null, p.source_null, p.null_mass[::-1].copy(),
        p.jumps[::-1].copy(), p.first[::-1].copy(), p.last[::-1].copy(), p.diagonal[::-1].copy(), p.p0, p.floor,
        p.own_target, p.own_source, p.share_target, p.share_source, p.pull,
    )  # fmt: skip
    return Text(turned, other), order


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("constraint", list(MODES))
def test_swapping_the_languages_swaps_the_answer(model, constraint):
    text = draw_text(SIZES, 19, stems=0.4, final=True)
    other, order = swapped(text)
    before = run(text).raw
    turned = before[0][order][:, ::-1].copy(), before[2], before[1]
    one = run(text, model, constraint, steps=7, leave_out=1.0, before=before)
    two = run(other, model, constraint, steps=7, leave_out=1.0, before=turned)
    apart = np.abs(one.raw[0][order].astype(int) - two.raw[0][:, ::-1])
    assert apart.max() <= 2  # the last digit of float32 may round the other way
    assert one.scores == pytest.approx(two.scores[:, ::-1], rel=1e-6, abs=1e-6)
    assert one.counts == pytest.approx(two.counts[::-1], rel=1e-4, abs=1e-4)


# --- best paths --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", list(MODELS))
@pytest.mark.parametrize("p0", [0.2, 0.0])
def test_best_paths_are_the_best_of_each_direction(model, p0):
    text = draw_text(SIZES, 20, p0=p0, final=True)
    forward = np.full(len(text.pairs.target_ids), -9, np.int32)
    backward = np.full(len(text.pairs.source_ids), -9, np.int32)
    kernel.best_paths(MODELS[model], text.pairs, text.p, 0, len(SIZES), 99, forward, backward)
    for s in range(len(SIZES)):
        ahead = tokens(forward, text.pairs.target_offsets, s)
        back = tokens(backward, text.pairs.source_offsets, s)
        if model == "hmm":
            for chain, path in zip(chains(text, s), (ahead, back)):
                assert chain.score(path) == pytest.approx(chain.score(chain.argmax()), abs=1e-4)
            continue
        there, here, _, _ = independents(text, s, model)
        for posterior, path in ((there.T, ahead), (here, back)):
            full = np.concatenate([1 - posterior.sum(axis=1, keepdims=True), posterior], axis=1)
            assert full[np.arange(len(path)), path + 1] == pytest.approx(full.max(axis=1), abs=1e-5)
