"""The reranker of pairs of candidates: matchings, probabilities and rules against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.multiview import RULES, CandidatePairs, Candidates, FixedMatchings, MatchedView, fit_multiview

START = MatchedView(np.array([1.0, -0.5, 0.2]), np.ones(2))


def brute_matching(weights):
    """The best sum of the weights of a matching, by trying all; nothing of ours."""
    n, m = weights.shape
    best = 0.0
    for size in range(min(n, m) + 1):
        for rows in itertools.combinations(range(n), size):
            for columns in itertools.permutations(range(m), size):
                best = max(best, sum(weights[i, j] for i, j in zip(rows, columns, strict=True)))
    return best


def random_items(seed, n_items=12, most_nodes=5, most_candidates=4):
    """Candidates, numbers of nodes, and dense features of random items, some without any node."""
    rng = np.random.default_rng(seed)

    def side(n):
        k = int(rng.integers(1, most_candidates + 1))
        nodes = [sorted(rng.permutation(n)[: rng.integers(0, n + 1)].tolist()) for _ in range(k)]
        return Candidates(nodes, -3 * rng.random(k), -3 * rng.random(k))

    n_nodes = [tuple(int(x) for x in rng.integers(0, most_nodes + 1, 2)) for _ in range(n_items)]
    sides = [(side(a), side(b)) for a, b in n_nodes]
    blocks = [rng.normal(size=(a, b, 3)) for a, b in n_nodes]
    return sides, n_nodes, blocks


def pairs_of(sides, n_nodes, blocks):
    dense = np.concatenate([np.zeros((0, 3)), *(block.reshape(-1, 3) for block in blocks)])
    return CandidatePairs(sides, n_nodes, Sparse(np.zeros(len(dense) + 1), [], 0, dense=dense))


def enumerated(sides, blocks, view, rule):
    """Scores of all pairs of candidates, by the equations."""
    made = []
    for (one, two), block in zip(sides, blocks, strict=True):
        out = np.empty((len(one.nodes), len(two.nodes)))
        for a, b in np.ndindex(*out.shape):
            edge = (block @ view.theta)[np.ix_(one.nodes[a], two.nodes[b])] if len(one.nodes[a]) else np.zeros((0, 0))
            weak = view.scale[0] * one.weak[a] + view.scale[1] * two.weak[b]
            full = view.scale[0] * one.full[a] + view.scale[1] * two.full[b]
            plain = one.full[a] + two.full[b]
            base = {"full": full, "weak": weak, "product": weak + plain, "uniform": plain}[rule]
            out[a, b] = base + brute_matching(edge.reshape(len(one.nodes[a]), len(two.nodes[b])))
        made.append(out)
    return made


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", RULES)
def test_scores_are_those_of_enumeration(seed, rule):
    given = random_items(seed)
    view = MatchedView(START.theta, np.array([0.7, 1.4]))
    found, wanted = pairs_of(*given).scores(view, rule), enumerated(given[0], given[2], view, rule)
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)


def test_probabilities_of_pairs_sum_to_one_and_are_those_of_enumeration():
    given = random_items(5)
    data = pairs_of(*given)
    gold = np.zeros(len(data), np.int64)
    values, _, share = FixedMatchings(data, gold, data.matched(START.theta)).solved(START.vector)
    for s, scores in enumerate(enumerated(given[0], given[2], START, "weak")):
        own = share[data.pairs[s] : data.pairs[s + 1]]
        assert own.sum() == pytest.approx(1.0, abs=1e-12)
        assert values[s] == pytest.approx(scores[0, 0] - math.log(np.exp(scores).sum()), abs=1e-10)


def test_gradient_is_that_of_finite_differences():
    data = pairs_of(*random_items(6))
    objective = FixedMatchings(data, np.zeros(len(data), np.int64), data.matched(START.theta))
    at, slope, step = np.array([0.3, 0.1, -0.4, 0.8, 1.1]), np.zeros(5), 1e-5
    objective.add_gradient(at, slope)
    for k in range(5):
        move = step * np.eye(5)[k]
        rise = objective.add_gradient(at + move, np.zeros(5)) - objective.add_gradient(at - move, np.zeros(5))
        assert slope[k] == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-6)


def test_two_starts_of_a_round_reach_the_same_optimum():
    from isogloss.learners.optimisers import Lbfgs
    from isogloss.learners.runner import run

    data = pairs_of(*random_items(7, n_items=30))
    learner = Lbfgs(FixedMatchings(data, np.zeros(30, np.int64), data.matched(START.theta)), l2=0.5)
    ends = [
        run(learner, learner.init(w), iterations=300, tolerance=1e-14).state for w in (np.zeros(5), np.full(5, 2.0))
    ]
    assert ends[0].value == pytest.approx(ends[1].value, rel=1e-9)
    np.testing.assert_allclose(ends[0].weights, ends[1].weights, atol=1e-4)


def test_scales_are_never_negative_and_the_best_round_is_kept():
    sides, n_nodes, blocks = random_items(8, n_items=40)
    turned = [(Candidates(a.nodes, a.full, -3 - a.weak), b) for a, b in sides]  # the weak model says the opposite
    gold = [(int(np.argmin(a.weak)), int(np.argmax(b.weak))) for a, b in turned]
    data = pairs_of(turned, n_nodes, blocks)
    view, trace = fit_multiview(data, gold, START, l2=0.5)
    assert view.scale[0] == 0.0 and view.scale[1] > 0
    right = np.array(gold)[:, 0] * data.shapes[:, 3] + np.array(gold)[:, 1]
    values, _, _ = FixedMatchings(data, right, data.matched(view.theta)).solved(view.vector)
    reached = values.sum() - 0.25 * view.vector @ view.vector
    assert reached == pytest.approx(trace[1:].max(), rel=1e-9)


def test_one_candidate_and_no_bilingual_weights_leave_the_best_of_each_side():
    sides, n_nodes, blocks = random_items(9)
    alone = [(Candidates(a.nodes[:1], a.full[:1], a.weak[:1]), Candidates(b.nodes[:1], b.full[:1], b.weak[:1]))
             for a, b in sides]  # fmt: skip
    for rule in RULES:
        assert not pairs_of(alone, n_nodes, blocks).best(START, rule).any()
    nothing = MatchedView(np.zeros(3), np.ones(2))
    wanted = [(int(a.full.argmax()), int(b.full.argmax())) for a, b in sides]
    assert pairs_of(sides, n_nodes, blocks).best(nothing, "full").tolist() == [list(one) for one in wanted]


def test_swapping_the_sides_swaps_everything():
    sides, n_nodes, blocks = random_items(10)
    turned = pairs_of([(b, a) for a, b in sides], [(b, a) for a, b in n_nodes], [x.swapaxes(0, 1) for x in blocks])
    gold = [(0, 0)] * len(sides)
    one, _ = fit_multiview(pairs_of(sides, n_nodes, blocks), gold, START)
    two, _ = fit_multiview(turned, gold, START)
    np.testing.assert_allclose(one.theta, two.theta, atol=1e-4)
    np.testing.assert_allclose(one.scale, two.scale[::-1], atol=1e-4)
    swapped = turned.best(MatchedView(one.theta, one.scale[::-1]))
    assert pairs_of(sides, n_nodes, blocks).best(one).tolist() == swapped[:, ::-1].tolist()


def test_the_order_of_candidates_does_not_matter():
    sides, n_nodes, blocks = random_items(11)

    def back(own):
        return Candidates(own.nodes[::-1], own.full[::-1], own.weak[::-1])

    reversed_ = pairs_of([(back(a), back(b)) for a, b in sides], n_nodes, blocks)
    for rule in RULES:
        found, other = pairs_of(sides, n_nodes, blocks).scores(START, rule), reversed_.scores(START, rule)
        for one, two in zip(found, other, strict=True):
            np.testing.assert_allclose(one, two[::-1, ::-1], atol=1e-12)


def noisy_views(ambiguity, seed=0, n_items=600):
    """Two taggers of one name of two types; each is sure of some items and only a little better than chance on others,
    the weak ones less so. `ambiguity` says how often both are unsure of the same item. The features of a pair of nodes
    are that their types are the same, and a bias."""
    rng = np.random.default_rng(seed)

    def chances(right, margin, noise):
        scores = np.where(np.arange(2) == right, margin + noise * rng.normal(), 0.0)
        return scores - np.log(np.exp(scores).sum())

    sides, blocks, truth = [], [], rng.integers(0, 2, n_items)
    for right in truth:
        unsure = rng.permutation([True, False])
        if rng.random() < ambiguity:
            unsure[:] = rng.random() < 0.5
        sides.append(
            tuple(
                Candidates(
                    [[0], [1]], chances(right, 0.8 if hard else 4.0, 1.0), chances(right, 0.3 if hard else 2.0, 1.5)
                )
                for hard in unsure
            )
        )
        blocks.append(np.stack([np.eye(2), np.ones((2, 2)), np.zeros((2, 2))], axis=2))
    return sides, blocks, truth


def accuracies(ambiguity):
    """Shares of right types, of both sides: weak, bilingual with weak, full, bilingual with full."""
    sides, blocks, truth = noisy_views(ambiguity)
    data = pairs_of(sides, [(2, 2)] * len(sides), blocks)
    gold = [(int(a.full.argmax()), int(b.full.argmax())) for a, b in sides]
    view, _ = fit_multiview(data, gold, MatchedView(np.array([0.5, 0.1, 0.0]), np.ones(2)))

    def right(found):
        return float((np.asarray(found) == truth[:, None]).mean())

    weak = [(int(a.weak.argmax()), int(b.weak.argmax())) for a, b in sides]
    return right(weak), right(data.best(view, "weak")), right(gold), right(data.best(view, "full"))


def test_complementary_taggers_help_each_other_and_equal_ones_do_not():
    weak, with_weak, full, with_full = accuracies(0.0)
    assert weak + 0.05 < with_weak and full + 0.05 < with_full
    _, _, same, together = accuracies(1.0)
    assert together - same < (with_full - full) / 2


def test_when_the_weak_models_are_the_full_ones_nothing_changes():
    sides, n_nodes, blocks = random_items(12, n_items=60)
    equal = [(Candidates(a.nodes, a.full, a.full), Candidates(b.nodes, b.full, b.full)) for a, b in sides]
    gold = [(int(a.full.argmax()), int(b.full.argmax())) for a, b in equal]
    data = pairs_of(equal, n_nodes, blocks)
    view, _ = fit_multiview(data, gold, START, l2=0.01)
    assert np.abs(view.theta).max() < 0.2 * view.scale.min()
    assert (data.best(view) == gold).mean() > 0.97


def test_constant_weak_models_leave_what_the_features_say():
    sides, n_nodes, blocks = random_items(13, n_items=40)
    flat = [tuple(Candidates(own.nodes, own.full, np.zeros(len(own.full))) for own in both) for both in sides]
    gold = [(0, 0)] * len(sides)
    view, _ = fit_multiview(pairs_of(flat, n_nodes, blocks), gold, START)
    alone = MatchedView(view.theta, np.zeros(2))
    for one, two in zip(pairs_of(flat, n_nodes, blocks).scores(view, "weak"),
                        pairs_of(sides, n_nodes, blocks).scores(alone, "weak"), strict=True):  # fmt: skip
        np.testing.assert_allclose(one, two, atol=1e-12)


def test_what_makes_no_sense_is_refused():
    none = Sparse(np.zeros(1), [], 0, dense=np.zeros((0, 3)))
    one = Candidates([[]], np.zeros(1), np.zeros(1))
    with pytest.raises(ParameterError, match="at least one candidate"):
        CandidatePairs([(one, Candidates([], np.zeros(0), np.zeros(0)))], [(0, 0)], none)
    with pytest.raises(ParameterError, match="node that the item has not"):
        CandidatePairs([(Candidates([[1]], np.zeros(1), np.zeros(1)), one)], [(1, 0)], none)
    with pytest.raises(ParameterError, match="rule should be"):
        CandidatePairs([(one, one)], [(0, 0)], none).scores(START, "best")
