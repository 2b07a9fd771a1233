"""Spanning trees against enumeration, exact integer determinants and the formulas of the literature."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.errors import ParameterError
from isogloss.structures import InfeasibleError, SpanningTree
from isogloss.structures.spanning import _moved, _sampled
from isogloss.testing import brute_force_trees, check_structure, trees
from isogloss.testing.strategies import tree_scores

both = pytest.mark.parametrize("single_root", [False, True])


def forced_logs(dist):
    """The same distribution, solved in logarithms whatever its scores."""
    from isogloss.structures._numba.arithmetic import Logs
    from isogloss.structures._numba.spanning import spanning_trees

    size, marginals, values = len(dist.scores), np.zeros(dist.scores.size), np.empty(1)
    layout = (np.array([0, size * size]), np.array([size]), dist.single_root, False)
    spanning_trees(0, 1, Logs(0), np.ones(1, np.bool_), dist.scores.ravel(), *layout, marginals, values)
    return float(values[0]), marginals.reshape(size, size)


def number_of_trees(n, single_root):
    if n == 0:
        return 1
    return n ** (n - 1) if single_root else (n + 1) ** (n - 1)


# --- laws


@both
def test_laws(single_root):
    check_structure(
        partial(SpanningTree, single_root=single_root),
        partial(brute_force_trees, single_root=single_root),
        shapes=[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)],
        count=lambda shape: number_of_trees(shape[0] - 1, single_root),
        batch=partial(SpanningTree.batch, single_root=single_root),
    )
    check_structure(
        partial(SpanningTree, single_root=single_root),
        partial(brute_force_trees, single_root=single_root),
        shapes=[(2, 2), (4, 4)],
        column=lambda scores: np.s_[:, -1],
        samples=0,
    )


@both
@settings(max_examples=60, deadline=None)
@given(scores=tree_scores(max_n=4), seed=st.integers(0, 99))
def test_agrees_with_enumeration(single_root, scores, seed):
    truth, dist = brute_force_trees(scores, single_root=single_root), SpanningTree(scores, single_root=single_root)
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.sample(np.random.default_rng(0))):
            with pytest.raises(InfeasibleError):
                method()
        return
    assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(dist.marginals(), truth.marginals, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(dist.marginals().sum(axis=0)[1:], 1.0, rtol=1e-14)
    assert not dist.marginals()[:, 0].any() and not dist.marginals().diagonal().any()
    assert dist.entropy() == pytest.approx(truth.entropy, abs=1e-10)
    # the same in logarithms, which plain scores never need
    value, marginals = forced_logs(dist)
    assert value == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(marginals, truth.marginals, rtol=1e-11, atol=1e-14)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(dist.log_marginals()), truth.marginals, rtol=1e-11, atol=1e-14)
    assert np.array_equal(dist.log_marginals() > -np.inf, truth.parts[truth.log_scores > -np.inf].any(axis=0))
    # covariance with a random vector, in both arithmetics
    vector = np.random.default_rng(seed).normal(size=scores.shape)
    p, along = truth.probabilities, (truth.parts * vector).sum(axis=(1, 2))
    covariance = np.tensordot(p * (along - p @ along), truth.parts, 1)
    np.testing.assert_allclose(dist.hessian_vector(vector), covariance, atol=1e-12)
    alone = dist._alone
    moved = _moved(alone, np.ones(1, np.bool_), alone.scores.like(vector.ravel()))[0]
    np.testing.assert_allclose(moved, covariance, atol=1e-12)
    # the same draws
    one = dist.sample(np.random.default_rng(seed))
    posterior = alone.scores.like(dist.marginals().ravel())
    other = _sampled(alone, posterior, np.ones(1, np.bool_), np.random.default_rng(seed))[0]
    assert one.tolist() == other.tolist()
    assert dist.log_prob(one) > -np.inf


@both
@settings(max_examples=60, deadline=None)
@given(scores=tree_scores(max_n=4))
def test_k_best_lists_all_in_order(single_root, scores):
    truth, dist = brute_force_trees(scores, single_root=single_root), SpanningTree(scores, single_root=single_root)
    allowed = np.sort(truth.log_scores[truth.log_scores > -np.inf])[::-1]
    if not len(allowed):
        with pytest.raises(InfeasibleError):
            dist.k_best(3)
        return
    for k in (1, 3, 200):
        found = dist.k_best(k)
        np.testing.assert_allclose([score for score, _ in found], allowed[:k], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose([dist.score(y) for _, y in found], allowed[:k], rtol=1e-12, atol=1e-12)
        assert len({tuple(y) for _, y in found}) == len(found)
    assert found[0][1].tolist() == dist.argmax().tolist()


@both
@pytest.mark.parametrize("n", [5, 6])
def test_best_tree_among_all(single_root, n):
    listed = np.array(trees(n, single_root=single_root))
    rng = np.random.default_rng(n)
    for kind in ("normal", "negative", "tied", "holes", "holes and ties"):
        for _ in range(40):
            scores = rng.normal(0.0, 3.0, (n + 1, n + 1))
            if kind == "negative":
                scores = -np.abs(scores) - 50
            if "tie" in kind:
                scores = rng.integers(-1, 2, scores.shape).astype(float)
            if "holes" in kind:
                scores[rng.random(scores.shape) < 0.5] = -np.inf
            best = scores[listed, np.arange(1, n + 1)].sum(axis=1).max()
            dist = SpanningTree(scores, single_root=single_root)
            if best == -np.inf:
                with pytest.raises(InfeasibleError):
                    dist.argmax()
            else:
                assert dist.score(dist.argmax()) == pytest.approx(best, rel=1e-13, abs=1e-12)


@both
def test_counts_of_long_sentences(single_root):
    for n in (1, 2, 7, 33, 64, 200):
        value = SpanningTree(np.zeros((n + 1, n + 1)), single_root=single_root).log_partition()
        assert value == pytest.approx(math.log(number_of_trees(n, single_root)), rel=1e-13, abs=1e-13)


def test_short_sentences():
    empty = SpanningTree([[np.nan_to_num(-np.inf)]])
    assert empty.log_partition() == 0.0 and empty.argmax().tolist() == [] and empty.marginals().tolist() == [[0.0]]
    assert empty.sample(np.random.default_rng(0)).tolist() == [] and empty.k_best(3)[0][0] == 0.0
    one = SpanningTree([[5.0, -3.25], [2.0, 7.0]], single_root=True)
    assert one.log_partition() == -3.25 and one.marginals().tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert one.entropy() == 0.0 and one.sample(np.random.default_rng(0)).tolist() == [0]


# --- formulas of the literature


def test_risk_gradient_is_that_of_the_thesis():
    """Smith 2010, equations 3.9-3.14, with parent and child as in our specification: loop form and O(n³) form."""
    rng = np.random.default_rng(3)
    n = 6
    scores = rng.normal(size=(n + 1, n + 1))
    gold = np.array([0, 1, 1, 3, 3, 5])
    dist = SpanningTree(scores)
    u = np.exp(scores)
    np.fill_diagonal(u, 0.0)
    u[:, 0] = 0.0
    kirchhoff = np.diag(u[:, 1:].sum(axis=0)) - u[1:, 1:]
    inverse = np.zeros((n + 1, n + 1))
    inverse[1:, 1:] = np.linalg.inv(kirchhoff)
    assert dist.log_partition() == pytest.approx(np.linalg.slogdet(kirchhoff)[1])
    words = np.arange(1, n + 1)
    loop, a = np.zeros_like(u), np.zeros_like(u)
    for c in words:
        for p in range(n + 1):
            total = sum(
                u[gold[k - 1], k] * (inverse[c, k] - inverse[c, gold[k - 1]]) * (inverse[k, p] - inverse[k, c])
                for k in words
            )
            loop[p, c] = u[p, c] * ((gold[c - 1] == p) * (inverse[c, c] - inverse[c, p]) + total)
        a[c, 1:] = u[gold, words] * (inverse[c, 1:] - inverse[c, gold])
    b = a @ inverse
    direct = (gold[None, :] == np.arange(n + 1)[:, None]) * (inverse.diagonal()[1:] - inverse[1:].T)
    matrix_form = np.zeros_like(u)
    matrix_form[:, 1:] = u[:, 1:] * (direct + b[1:].T - b.diagonal()[1:])
    ours = dist.hessian_vector(dist.parts(gold))
    np.testing.assert_allclose(ours, loop, atol=1e-12)
    np.testing.assert_allclose(ours, matrix_form, atol=1e-12)

    def expected_right(moved):
        return float((SpanningTree(moved).marginals() * dist.parts(gold)).sum())

    step, direction = 1e-5, rng.normal(size=scores.shape)
    slope = (expected_right(scores + step * direction) - expected_right(scores - step * direction)) / (2 * step)
    assert (ours * direction).sum() == pytest.approx(slope, rel=1e-7)


@both
def test_hessian_is_symmetric_and_exact_for_long_sentences(single_root):
    rng = np.random.default_rng(4)
    scores, v, w = rng.normal(0.0, 2.0, (3, 31, 31))
    dist = SpanningTree(scores, single_root=single_root)
    moved = dist.hessian_vector(v)
    assert (moved * w).sum() == pytest.approx((dist.hessian_vector(w) * v).sum(), rel=1e-10)
    step = 1e-5
    above, below = (dist.with_scores(scores + sign * step * v).marginals() for sign in (1, -1))
    np.testing.assert_allclose(moved, (above - below) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(moved.sum(axis=0), 0.0, atol=1e-12)


def test_koo_single_root_determinant():
    """Koo et al. 2007: the first row of the Laplacian without root weights is replaced by them."""
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(8, 8))
    u = np.exp(scores)
    np.fill_diagonal(u, 0.0)
    laplacian = np.diag(u[1:, 1:].sum(axis=0)) - u[1:, 1:]
    laplacian[0] = u[0, 1:]
    dist, inverse = SpanningTree(scores, single_root=True), np.linalg.inv(laplacian)
    assert dist.log_partition() == pytest.approx(np.linalg.slogdet(laplacian)[1])
    np.testing.assert_allclose(dist.marginals()[0, 1:], u[0, 1:] * inverse[:, 0], rtol=1e-11)
    assert dist.marginals()[0].sum() == pytest.approx(1.0, rel=1e-13)


def test_minimum_bayes_risk_tree_has_the_most_right_heads():
    rng = np.random.default_rng(6)
    for _ in range(20):
        dist = SpanningTree(rng.normal(0.0, 2.0, (5, 5)))
        marginals, listed = dist.marginals(), np.array(trees(4))
        right = marginals[listed, np.arange(1, 5)].sum(axis=1)
        chosen = SpanningTree(marginals).argmax()
        assert marginals[chosen, np.arange(1, 5)].sum() == pytest.approx(right.max())


# --- numerics: right or refused


def exact_trees(scores, single_root):
    """log Z and marginals by enumeration with 40 digits and any exponent."""
    n = len(scores) - 1
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 40, 10**12, -(10**12)
        total, mass = Decimal(0), [[Decimal(0)] * (n + 1) for _ in range(n + 1)]
        for heads in trees(n, single_root=single_root):
            links = [(head, child) for child, head in enumerate(heads, 1)]
            if min((scores[link] for link in links), default=0.0) == -np.inf:
                continue
            weight = sum((Decimal(float(scores[link])) for link in links), Decimal(0)).exp()
            total += weight
            for head, child in links:
                mass[head][child] += weight
        return float(total.ln()), np.array([[float(x / total) for x in row] for row in mass])


def awkward_scores(rng, n, kind):
    scores = rng.normal(size=(n + 1, n + 1))
    match kind:
        case "uniform":
            return rng.uniform(-1e4, 1e4, scores.shape)
        case "far root":
            scores[0] -= 1e4
        case "mutual":  # two words that want each other far more than anything else
            scores[1:3, 1:3] += 1e4
        case "near root":
            scores[0] -= 40.0
        case "steps":
            scores += rng.choice([0.0, -1e4, 1e4, -700.0, 350.0], scores.shape)
        case "holes":
            scores = scores * 300
            scores[rng.random(scores.shape) < 0.4] = -np.inf
    return scores


@both
@pytest.mark.parametrize("kind", ["uniform", "far root", "mutual", "near root", "steps", "holes"])
def test_extreme_scores_against_many_digits(single_root, kind):
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 4, 4, 4):
        scores = awkward_scores(rng, n, kind)
        if brute_force_trees(scores, single_root=single_root).log_partition == -np.inf:
            continue
        value, marginals = exact_trees(scores, single_root)
        dist = SpanningTree(scores, single_root=single_root)
        assert dist.log_partition() == pytest.approx(value, rel=4e-15, abs=1e-12)
        np.testing.assert_allclose(dist.marginals(), marginals, rtol=2e-11, atol=1e-90)
        assert dist.score(dist.argmax()) == pytest.approx(brute_force_trees(scores, single_root=single_root).best)
        tree = dist.sample(rng)
        assert dist.log_prob(tree) > -60


def integer_determinant(matrix):
    """Bareiss: exact, in integers of any size."""
    rows, before, sign = [list(row) for row in matrix], 1, 1
    for k in range(len(rows) - 1):
        swap = next((r for r in range(k, len(rows)) if rows[r][k]), None)
        if swap is None:
            return 0
        if swap != k:
            rows[k], rows[swap], sign = rows[swap], rows[k], -sign
        for r in range(k + 1, len(rows)):
            for c in range(k + 1, len(rows)):
                rows[r][c] = (rows[r][c] * rows[k][k] - rows[r][k] * rows[k][c]) // before
        before = rows[k][k]
    return sign * rows[-1][-1]


def integer_kirchhoff(weights, single_root):
    n = len(weights) - 1
    matrix = [[-weights[i][j] if i != j else 0 for j in range(1, n + 1)] for i in range(1, n + 1)]
    for j in range(n):
        matrix[j][j] = sum(weights[i][j + 1] for i in range(1 if single_root else 0, n + 1) if i != j + 1)
    if single_root:
        matrix[0] = [weights[0][j] for j in range(1, n + 1)]
    return matrix


@both
@pytest.mark.parametrize(("n", "spread", "root"), [(12, 8, 0), (12, 30, -120), (9, 1500, -3000), (20, 4, -40)])
def test_near_singular_against_exact_determinants(single_root, n, spread, root):
    """Weights are powers of two, so that determinants are integers; two links of each size are tried."""
    rng = np.random.default_rng(n + spread)
    powers = rng.integers(0, spread + 1, (n + 1, n + 1))
    powers[1:4, 1:4] += spread
    powers[0] += root
    powers -= powers.min()
    weights = [[1 << int(power) for power in row] for row in powers]
    whole = integer_determinant(integer_kirchhoff(weights, single_root))
    bits = max(0, whole.bit_length() - 1000)
    dist = SpanningTree(powers * math.log(2), single_root=single_root)
    assert dist.log_partition() == pytest.approx(math.log(whole >> bits) + bits * math.log(2), rel=1e-14)
    marginals = dist.marginals()
    for wanted in (0.5, 1e-2, 1e-6, 1e-12):
        links = np.where(
            (marginals > 0) & (marginals < 0.99), np.abs(np.log(marginals + 1e-300) - math.log(wanted)), 99
        )
        head, child = (int(x) for x in np.unravel_index(links.argmin(), links.shape))
        kept = weights[head][child]
        weights[head][child] = 0
        without = integer_determinant(integer_kirchhoff(weights, single_root))
        weights[head][child] = kept
        exact = float(1 - Fraction(without, whole))
        assert marginals[head, child] == pytest.approx(exact, rel=1e-11), (head, child, wanted)


def test_naive_determinant_would_be_wrong():
    """The case for all this: LU on the same matrix has no right digit, and says nothing."""
    scores = np.zeros((4, 4))
    scores[1, 2] = scores[2, 1] = 40.0
    scores[0, 1:] = -3.0
    scores[3, 1:] = -3.0
    u = np.exp(scores)
    np.fill_diagonal(u, 0.0)
    naive = np.linalg.slogdet(np.diag(u[:, 1:].sum(axis=0)) - u[1:, 1:])[1]
    value, marginals = exact_trees(scores, False)
    assert abs(naive - value) > 0.01
    dist = SpanningTree(scores)
    assert dist.log_partition() == pytest.approx(value, rel=1e-15)
    np.testing.assert_allclose(dist.marginals(), marginals, rtol=1e-14)


@both
@pytest.mark.parametrize("spread", [1.0, 50.0, 1e4])
def test_two_hundred_words(single_root, spread):
    rng = np.random.default_rng(8)
    scores = rng.uniform(-spread, spread, (201, 201))
    scores[:, :100] += rng.uniform(-1e4, 1e4, 100)  # per child, which changes nothing but log Z
    dist = SpanningTree(scores, single_root=single_root)
    best = dist.argmax()
    marginals = dist.marginals()
    assert np.isfinite(dist.log_partition()) and dist.log_partition() >= dist.score(best) - 1e-6
    np.testing.assert_allclose(marginals.sum(axis=0)[1:], 1.0, rtol=1e-12)
    assert marginals.min() >= 0.0
    if single_root:
        assert marginals[0].sum() == pytest.approx(1.0, rel=1e-9)
        assert (best == 0).sum() == 1
    drawn = dist.sample(rng)
    assert dist.log_prob(drawn) < 0 or dist.log_prob(drawn) == pytest.approx(0.0, abs=1e-8)
    assert 0 <= dist.entropy() <= dist.n * math.log(dist.n + 1)


@both
@pytest.mark.parametrize(("root", "wanted"), [(0.0, 1e-12), (-2e4, 1e-9)])
def test_renumbered_words_give_the_same(single_root, root, wanted):
    """Another order of elimination rounds in other places: what both agree on is no accident of one of them."""
    rng, n = np.random.default_rng(15), 120
    scores = rng.uniform(-1e4, 1e4, (n + 1, n + 1))
    scores[0] += root
    order = np.concatenate([[0], rng.permutation(n) + 1])
    dist = SpanningTree(scores, single_root=single_root)
    other = SpanningTree(scores[np.ix_(order, order)], single_root=single_root)
    assert other.log_partition() == pytest.approx(dist.log_partition(), rel=1e-14)
    np.testing.assert_allclose(other.marginals(), dist.marginals()[np.ix_(order, order)], rtol=wanted, atol=1e-90)
    used = dist.log_marginals()[1:, 1:] > -np.inf
    inner = np.ix_(order[1:], order[1:])
    logs, again = dist.log_marginals()[inner], other.log_marginals()[1:, 1:]
    np.testing.assert_allclose(again[used[np.ix_(order[1:] - 1, order[1:] - 1)]], logs[logs > -np.inf], atol=1e-9)


def test_mutual_pair_in_a_long_sentence_needs_logarithms():
    """Two words that want each other e^10000 more than anything: by symmetry each is the other's head half the time."""
    n = 120
    scores = np.zeros((n + 1, n + 1))
    scores[3, 7] = scores[7, 3] = 1e4
    dist = SpanningTree(scores)
    marginals = dist.marginals()
    np.testing.assert_allclose([marginals[3, 7], marginals[7, 3]], 0.5, rtol=1e-9)
    others = np.delete(marginals[:, 3], 7)
    np.testing.assert_allclose(others[others > 0].sum(), 0.5, rtol=1e-9)
    # the pair is one word with doubled weights: (n + 1)^(n - 3) forests times (n + 1) * 2
    value = 1e4 + math.log(2) + (n - 2) * math.log(n + 1)
    assert dist.log_partition() == pytest.approx(value, rel=1e-14)
    rng = np.random.default_rng(0)
    heads = [dist.sample(rng) for _ in range(20)]
    assert all((y[2] == 7) != (y[6] == 3) for y in heads)
    assert 2 < sum(int(y[2] == 7) for y in heads) < 18


@both
def test_samples_follow_extreme_scores(single_root):
    """Frequencies where plain float64 has run out: root links of e^-10000, and a pair that wants each other."""
    scores = np.random.default_rng(9).normal(size=(5, 5))
    scores[0] -= 1e4
    scores[1, 2] += 5e3
    scores[2, 1] += 5e3
    truth, dist = brute_force_trees(scores, single_root=single_root), SpanningTree(scores, single_root=single_root)
    rng, place, n_draws = np.random.default_rng(1), {y: i for i, y in enumerate(truth.structures)}, 2000
    seen = np.zeros(len(place))
    for _ in range(n_draws):
        seen[place[tuple(dist.sample(rng).tolist())]] += 1
    expected = truth.probabilities * n_draws
    often = expected > 5
    assert seen[~often].sum() <= expected[~often].sum() + 6 * math.sqrt(expected[~often].sum() + 1)
    statistic = ((seen - expected)[often] ** 2 / expected[often]).sum()
    assert statistic < often.sum() + 6 * math.sqrt(2 * often.sum())


@both
def test_refuses_what_float64_cannot_tell(single_root):
    scores = np.zeros((5, 5))
    scores[0] = scores[1:3, 3:] = scores[3:, 1:3] = -1e13
    with pytest.raises(ParameterError, match="too far apart"):
        SpanningTree(scores, single_root=single_root).marginals()
    with pytest.raises(ParameterError, match="sentence 1"):
        SpanningTree.batch([np.zeros((3, 3)), scores], single_root=single_root).log_partition()


@both
def test_marginals_too_small_for_a_number(single_root):
    """log marginals by enumeration in logarithms: −20000 and less."""
    rng = np.random.default_rng(14)
    scores = rng.uniform(-1e4, 1e4, (5, 5))
    truth, dist = brute_force_trees(scores, single_root=single_root), SpanningTree(scores, single_root=single_root)
    logs = dist.log_marginals()
    for head, child in np.argwhere(truth.parts.any(axis=0)):
        having = truth.log_scores[truth.parts[:, head, child] > 0]
        assert logs[head, child] == pytest.approx(
            np.logaddexp.reduce(having) - truth.log_partition, rel=1e-12, abs=1e-9
        )


def test_large_negative_numbers_forbid_as_well():
    rng = np.random.default_rng(10)
    scores = rng.normal(size=(6, 6))
    holes = rng.random((6, 6)) < 0.3
    holes[0] = False
    hard = SpanningTree(np.where(holes, -np.inf, scores))
    soft = SpanningTree(np.where(holes, -1e9, scores))
    assert soft.log_partition() == pytest.approx(hard.log_partition(), rel=1e-14)
    np.testing.assert_allclose(soft.marginals(), hard.marginals(), rtol=1e-13)


# --- one root child, in parts


def test_core_and_what_hangs_below_it():
    """Words 1-3 reach all, words 4 and 5 only each other: one root child among 1-3, the rest a forest below."""
    rng = np.random.default_rng(11)
    scores = rng.normal(size=(6, 6))
    scores[4:, 1:4] = -np.inf
    truth, dist = brute_force_trees(scores, single_root=True), SpanningTree(scores, single_root=True)
    assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-13)
    np.testing.assert_allclose(dist.marginals(), truth.marginals, rtol=1e-12, atol=1e-15)
    assert not dist.marginals()[0, 4:].any()
    drawn = [dist.sample(np.random.default_rng(seed)) for seed in range(20)]
    assert all((y == 0).sum() == 1 and y[3] != 0 and y[4] != 0 for y in drawn)
    scores[1, 4:] -= 2000.0  # one of those above is out of all proportion
    truth, logs = brute_force_trees(scores, single_root=True), SpanningTree(scores, single_root=True).log_marginals()
    having = truth.log_scores[truth.parts[:, 1, 4] > 0]
    assert logs[1, 4] == pytest.approx(np.logaddexp.reduce(having) - truth.log_partition, rel=1e-12)


def test_says_what_is_missing():
    scores = np.zeros((4, 4))
    scores[:, 2] = -np.inf
    with pytest.raises(InfeasibleError, match="from the root to word 2"):
        SpanningTree(scores).log_partition()
    with pytest.raises(InfeasibleError, match=r"sentence 1: SpanningTree\(n=3.*word 2"):
        SpanningTree.batch([np.zeros((2, 2)), scores]).marginals()
    with pytest.raises(InfeasibleError, match="sentence 1"):
        SpanningTree.batch([np.zeros((2, 2)), scores]).argmax()
    apart = np.full((3, 3), -np.inf)
    apart[0, 1:] = 0.0
    assert SpanningTree(apart).log_partition() == 0.0
    with pytest.raises(InfeasibleError, match="no word is such that all others"):
        SpanningTree(apart, single_root=True).argmax()
    below = np.zeros((3, 3))
    below[0, 1] = below[2, 1] = -np.inf
    with pytest.raises(InfeasibleError, match="root"):
        SpanningTree(below, single_root=True).log_partition()
    below[0, 2], below[1, 2], below[2, 1] = 0.0, 0.0, -np.inf
    with pytest.raises(InfeasibleError, match="root to word 1"):
        SpanningTree(below).k_best(2)


def test_refuses_what_is_no_tree():
    dist = SpanningTree(np.zeros((4, 4)), single_root=True)
    for heads in ([1, 0, 0], [2, 1, 0], [0, 0, 1]):  # a loop, a cycle, two root children
        assert dist.log_prob(heads) == -np.inf
        with pytest.raises(ParameterError, match=r"not a tree|not one structure"):
            dist.from_parts(dist.parts(heads))
    for heads in ([0, 1], [0, 1, 4], [0, 1, -1]):
        with pytest.raises(ParameterError):
            dist.parts(heads)
    with pytest.raises(ParameterError):
        dist.from_parts(np.full((4, 4), 0.25))
    for scores in (np.zeros((3, 4)), np.zeros((0, 0)), np.full((3, 3), np.nan), np.full((2, 2), np.inf)):
        with pytest.raises(ParameterError):
            SpanningTree(scores)
    with pytest.raises(ParameterError, match="sentence 1"):
        SpanningTree.batch([np.zeros((2, 2)), np.zeros((2, 3))])
    with pytest.raises(ParameterError):
        dist.hessian_vector(np.zeros((3, 3)))
    with pytest.raises(ParameterError):
        dist.k_best(0)


# --- batches


@both
def test_batch_of_different_lengths(single_root):
    rng = np.random.default_rng(12)
    arrays = [rng.normal(0.0, 2.0, (n + 1, n + 1)) for n in (3, 0, 17, 1, 40, 8)]
    arrays.append(arrays[2] - 1e4 * (np.arange(18) == 0)[:, None])  # one that needs logarithms
    arrays.append(arrays[0] + 1e4 * (np.arange(4) > 1)[:, None] * (np.arange(4) > 1)[None, :])
    many, ones = SpanningTree.batch(arrays, single_root=single_root), []
    for array in arrays:
        ones.append(SpanningTree(array, single_root=single_root))
    assert many._solved and many._in_logs.any() and not many._in_logs.all()
    np.testing.assert_array_equal(many.log_partition(), [one.log_partition() for one in ones])
    for s, one in enumerate(ones):
        np.testing.assert_array_equal(many.marginals()[s], one.marginals())
    assert [y.tolist() for y in many.argmax()] == [one.argmax().tolist() for one in ones]
    rng_one, rng_many = np.random.default_rng(5), np.random.default_rng(5)
    assert [y.tolist() for y in many.sample(rng_many)] == [one.sample(rng_one).tolist() for one in ones]
    vectors = [rng.normal(size=array.shape) for array in arrays]
    for one, vector, moved in zip(ones, vectors, many.hessian_vector(vectors), strict=True):
        np.testing.assert_array_equal(moved, one.hessian_vector(vector))
    np.testing.assert_allclose(many.entropy(), [one.entropy() for one in ones], rtol=1e-12, atol=1e-12)
    assert len(SpanningTree.batch([], single_root=single_root).log_partition()) == 0


def test_k_best_of_a_long_sentence():
    rng = np.random.default_rng(13)
    dist = SpanningTree(rng.normal(size=(41, 41)), single_root=True)
    found = dist.k_best(10)
    scores = [score for score, _ in found]
    assert scores == sorted(scores, reverse=True) and len({tuple(y) for _, y in found}) == 10
    assert found[0][1].tolist() == dist.argmax().tolist()
    assert all((y == 0).sum() == 1 for _, y in found)


def test_stacks_are_checked_where_they_come_in():
    for wrong in (np.nan, np.inf):
        values = np.zeros(9)
        values[5] = wrong
        many = SpanningTree.batch([np.zeros((3, 3))])
        with pytest.raises(ParameterError, match=r"sentence 0: (nan|inf) at \[1, 2\]"):
            many.with_scores(many.scores.like(values))
