"""Derivations with bispans, held against enumeration, known counts and the grammar of alignments."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures import Bichart, Bitree, Bitrees, InfeasibleError, Itg, Stack, Structure
from isogloss.structures.bichart import PATTERNS
from isogloss.testing import brute_force_bitrees, check_structure

NULLS = pytest.mark.parametrize("nulls", ["low", "free"])
SIZES = [(0, 0), (0, 2), (1, 1), (1, 2), (2, 2), (3, 2), (2, 3)]


def truth(chart, scores, nulls):
    return brute_force_bitrees(
        scores, tuple(chart.sizes[0].tolist()), chart.cells.tolist(), chart.terms.tolist(), PATTERNS,
        free=nulls == "free",
    )  # fmt: skip


def normal(chart, seed=0, spread=1.0):
    return np.random.default_rng(seed).normal(0, spread, int(chart.n_parts[0]))


@NULLS
@pytest.mark.parametrize("size", SIZES)
def test_bitrees_keep_every_law(size, nulls):
    chart = Bichart.full(*size)
    check_structure(
        lambda scores: Bitree(chart, scores, nulls=nulls),
        lambda scores: truth(chart, scores, nulls),
        shapes=[(int(chart.n_parts[0]),)],
        batch=lambda blocks: Bitree.batch(Bichart.joined([chart] * len(blocks)), blocks, nulls=nulls),
        samples=300,
    )
    assert isinstance(Bitree(chart, normal(chart)), Structure)


@NULLS
def test_every_binary_tree_is_a_derivation(nulls):
    """Catalan numbers where every word is linked; sums over alignments of 1-1 links as those of the simple grammar."""
    for n, count in ((1, 1), (2, 2), (3, 8), (4, 40)):  # of n words: Catalan(n − 1) trees, each joint in two orders
        chart = Bichart.full(n, n, [0])
        scores = np.zeros(int(chart.n_parts[0]))
        scores[: 2 * n] = -np.inf
        assert np.exp(Bitree(chart, scores, nulls=nulls).log_partition()) == pytest.approx(count)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        links, left, right = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
        chart = Bichart.full(4, 3, [0])
        scores = np.zeros(int(chart.n_parts[0]))
        term, i, j = chart.links_of(0)
        scores[:7] = np.concatenate([left, right])
        scores[7 + term] = links[i, j]
        simple = Itg(links, left, right, normal_form=False)
        found = Bitree(chart, scores)
        assert found.log_partition() == pytest.approx(simple.log_partition())
        np.testing.assert_allclose(found.link_marginals(), simple.marginals(), atol=1e-12)


def test_terminals_are_one_to_many_full_or_gapped():
    sizes = {(p.n_source, p.n_target, len(p.links)) for p in PATTERNS}
    assert sizes == {
        (1, 1, 1), (1, 2, 2), (1, 3, 3), (2, 1, 2), (3, 1, 3), (2, 2, 4), (2, 3, 6), (3, 2, 6), (3, 2, 3), (2, 3, 3)
    }  # fmt: skip
    turned = {(p.n_target, p.n_source, tuple(sorted((j, i) for i, j in p.links))) for p in PATTERNS}
    assert turned == {(p.n_source, p.n_target, tuple(sorted(p.links))) for p in PATTERNS}
    gapped = [p for p in PATTERNS if len(p.links) == 3 and (p.n_source, p.n_target) == (3, 2)]
    for pattern in gapped:  # the outer two to one word, the one between them to the other
        to = dict(pattern.links)
        assert to[0] == to[2] != to[1]


def turned_over(chart, scores):
    """The same with both sides exchanged."""
    n, m = chart.sizes[0].tolist()
    other = Bichart.full(m, n)
    number = {tuple(cell): c for c, cell in enumerate(other.cells.tolist())}
    kinds = [(p.n_source, p.n_target, tuple(sorted(p.links))) for p in PATTERNS]
    flip = [kinds.index((t, s, tuple(sorted((j, i) for i, j in links)))) for s, t, links in kinds]
    place = {tuple(term): t for t, term in enumerate(other.terms.tolist())}
    cells = [number[j, h, i, k] for i, k, j, h in chart.cells.tolist()]
    terms = [place[cells[c], flip[kind]] for c, kind in chart.terms.tolist()]
    out = np.empty(len(scores))
    out[:m], out[m : m + n] = scores[n : n + m], scores[:n]
    out[n + m + np.array(terms)] = scores[n + m : n + m + len(terms)]
    out[n + m + len(terms) + np.array(cells)] = scores[n + m + len(terms) :]
    return other, out


@NULLS
def test_exchanging_the_languages_transposes_links(nulls):
    """The order in which nulls are attached is not that of the other side, so that bispans are scored alike here."""
    chart = Bichart.full(3, 4)
    scores = normal(chart, 3)
    scores[int(chart.first_cells[0]) :] = 0.0
    other, turned = turned_over(chart, scores)
    ours, theirs = Bitree(chart, scores, nulls=nulls), Bitree(other, turned, nulls=nulls)
    assert theirs.log_partition() == pytest.approx(ours.log_partition())
    np.testing.assert_allclose(theirs.link_marginals(), ours.link_marginals().T, atol=1e-12)


@NULLS
def test_a_restriction_leaves_what_has_the_highest_sum(nulls):
    chart, rng = Bichart.full(3, 3), np.random.default_rng(1)
    for seed in range(4):
        scores = normal(chart, seed)
        levels = np.zeros(len(scores))
        gold = rng.random((3, 3)) < 0.4  # often no alignment of the grammar
        term, i, j = chart.links_of(0)
        np.add.at(levels, int(chart.first_terms[0]) + term, np.where(gold[i, j], 1, -1))
        every = truth(chart, scores, nulls)
        sums = every.parts @ levels
        kept = sums == sums.max()
        weights = np.where(kept, np.exp(every.log_scores), 0.0)
        found = Bitree.batch(chart, [scores], nulls=nulls).restricted(levels)
        assert found.log_partition()[0] == pytest.approx(np.log(weights.sum()), abs=1e-9)
        np.testing.assert_allclose(found.marginals()[0], weights @ every.parts / weights.sum(), atol=1e-9)
        again = found.with_scores(found.scores).take([0])
        np.testing.assert_array_equal(again.marginals().values, found.marginals().values)
        best = every.log_scores[kept].max()
        assert every.log_scores[list(every.structures).index(found.argmax()[0])] == pytest.approx(best)
    with pytest.raises(ParameterError, match="whole number for each part"):
        found.restricted(levels + 0.5)


@NULLS
def test_a_pruned_chart_has_the_derivations_that_are_left(nulls):
    full, rng = Bichart.full(3, 3, [0, 1, 5]), np.random.default_rng(5)
    for _ in range(4):
        some = full.kept(rng.random(len(full.cells)) < 0.7)
        scores = normal(some, 2)
        number = {tuple(cell): c for c, cell in enumerate(full.cells.tolist())}
        place = {tuple(term): t for t, term in enumerate(full.terms.tolist())}
        whole = np.full(int(full.n_parts[0]), -np.inf)
        whole[:6] = scores[:6]
        cells = [number[tuple(cell)] for cell in some.cells.tolist()]
        for t, (c, kind) in enumerate(some.terms.tolist()):
            whole[6 + place[cells[c], kind]] = scores[6 + t]
        whole[int(full.first_cells[0]) + np.array(cells)] = scores[int(some.first_cells[0]) :]
        expected = Bitree(full, whole, nulls=nulls).log_partition()
        assert Bitree(some, scores, nulls=nulls).log_partition() == pytest.approx(expected)


def test_cells_that_break_too_many_links_are_left_out():
    links = np.ones((4, 4), np.bool_)
    sure = np.eye(4, dtype=np.bool_)
    chart = Bichart.of([links], [0], confident=[sure], broken=1)
    broken = [
        sum((i <= a < k) != (j <= a < h) for a in range(4)) for i, k, j, h in chart.cells_of(0).tolist()
    ]  # fmt: skip
    assert max(broken) == 1
    assert len(Bichart.of([links], [0], confident=[sure], broken=np.inf).cells) == len(Bichart.full(4, 4, [0]).cells)
    few = Bichart.of([sure], [0])
    log_z = Bitree(few, np.zeros(int(few.n_parts[0])), nulls="free").log_partition()
    whole = Bichart.full(4, 4, [0])
    scores = np.zeros(int(whole.n_parts[0]))
    term, i, j = whole.links_of(0)
    scores[8 + term] = np.where(i == j, 0.0, -np.inf)
    assert Bitree(whole, scores, nulls="free").log_partition() == pytest.approx(log_z)


def test_a_batch_has_pairs_of_any_size_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    charts = [Bichart.of([rng.random(size) < 0.5]) for size in ((3, 5), (0, 3), (6, 2), (1, 1), (5, 5))]
    chart = Bichart.joined(charts)
    scores = [normal(one, s) for s, one in enumerate(charts)]
    results = []
    for number in (1, 2):
        with using_threads(number):
            many = Bitrees(chart, Stack.of(scores))
            results.append((many.log_partition(), many.marginals().values))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    for s, one in enumerate(charts):
        assert results[0][0][s] == Bitree(one, scores[s]).log_partition()
        np.testing.assert_array_equal(many.link_marginals()[s], Bitree(one, scores[s]).link_marginals())


def test_what_makes_no_sense_is_refused():
    chart = Bichart.full(2, 2)
    with pytest.raises(ParameterError, match="'low' or 'free'"):
        Bitree(chart, normal(chart), nulls="high")
    with pytest.raises(ParameterError, match="one pair, not of 2"):
        Bitree(Bichart.joined([chart, chart]), normal(chart))
    with pytest.raises(ParameterError, match="numbers from 0 to"):
        Bichart.full(2, 2, [99])
    with pytest.raises(ParameterError, match="too long"):
        Bichart.of([np.ones((200, 200))])
    with pytest.raises(ParameterError, match="no bispan or terminal"):
        Bitree(chart, normal(chart)).parts({(0, 1, 0, 3, -1)})
    with pytest.raises(ParameterError, match="a vector over the parts"):
        Bitrees(chart, Stack.of([np.zeros(3)]))
    with pytest.raises(InfeasibleError, match="words without any"):
        Bitree(chart, np.full(int(chart.n_parts[0]), -np.inf)).log_partition()
