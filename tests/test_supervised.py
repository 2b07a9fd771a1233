"""What all supervised aligners share: gold as costs and targets, parts and their features, folds, checks of input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data import Alignment, Bitext, Links
from isogloss.errors import LinksError
from isogloss.metrics import score_links
from isogloss.structures import Flat, Matching
from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.supervised.parts import Kind, Parts, link_and_null_parts, take_pairs
from isogloss.tasks.align.supervised.targets import (
    GoldCells,
    OpenFlat,
    check_gold,
    error_rate,
    link_cost,
    make_target,
)
from isogloss.tasks.align.supervised.training import make_folds


def random_features(rng: np.random.Generator, shapes: list[tuple[int, int]]) -> PairFeatures:
    sizes = np.array(shapes, np.int64).reshape(-1, 2)
    cells, source, target = int(sizes.prod(axis=1).sum()), int(sizes[:, 0].sum()), int(sizes[:, 1].sum())
    fired = rng.integers(0, 3, cells)
    indptr = np.concatenate([[0], np.cumsum(fired)]).astype(np.int64)
    indices = np.concatenate(
        [np.zeros(0, np.int32), *(rng.choice(4, count, replace=False).astype(np.int32) for count in fired)]
    )
    names = ("bias", "dice", "hmm")
    links = rng.random((cells, 3)).astype(np.float32)
    nulls = rng.random((source, 2)).astype(np.float32), rng.random((target, 2)).astype(np.float32)
    words = tuple(f"word{k}" for k in range(4))
    return PairFeatures(sizes, names, links, ("bias", "rare"), *nulls, (indptr, indices), words)


SHAPES = [(2, 3), (0, 0), (1, 1), (4, 2)]


def matchings(n: int, m: int) -> list[frozenset[tuple[int, int]]]:
    """All sets of links with at most one a word, by trying every set."""
    cells = list(itertools.product(range(n), range(m)))
    sets = itertools.chain.from_iterable(itertools.combinations(cells, k) for k in range(min(n, m) + 1))
    return [
        frozenset(links) for links in sets if len({i for i, _ in links}) == len(links) == len({j for _, j in links})
    ]


# --- gold and costs


def test_loss_of_every_alignment_is_counted_by_hand():
    rng = np.random.default_rng(0)
    sure = rng.random((2, 3)) < 0.4
    possible = (rng.random((2, 3)) < 0.4) & ~sure
    cost = link_cost(sure, possible, missed=3.0, spurious=0.5)
    for linked in itertools.product([0, 1], repeat=6):
        y = np.array(linked).reshape(2, 3)
        missed = sum(1 for cell in np.argwhere(sure) if not y[tuple(cell)])
        spurious = sum(1 for cell in np.argwhere(y == 1) if not sure[tuple(cell)] and not possible[tuple(cell)])
        assert cost.of(y) == pytest.approx(3.0 * missed + 0.5 * spurious)


gold_flags = st.lists(st.sampled_from(["sure", "possible", "no"]), min_size=6, max_size=6)


@given(gold_flags, st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_target_has_the_least_loss_of_all_matchings_and_is_the_preferred_one(flags, seed):
    sure = np.array([flag == "sure" for flag in flags]).reshape(2, 3)
    possible = np.array([flag == "possible" for flag in flags]).reshape(2, 3)
    dist = Flat(Matching(np.zeros((2, 3))))
    prefer = np.random.default_rng(seed).normal(size=len(dist.scores))
    target = make_target(dist, sure, possible, missed=3.0, prefer=prefer)
    unit = link_cost(sure, possible)
    every = {links: dist.parts(links) for links in matchings(2, 3)}
    loss = {links: unit.of(parts[:6].reshape(2, 3)) for links, parts in every.items()}
    least = min(loss.values())
    assert loss[target.y] == least
    best = max(float(every[links] @ prefer) for links in every if loss[links] == least)
    assert float(every[target.y] @ prefer) == pytest.approx(best)
    assert target.cost.of(every[target.y]) == 0.0
    assert min(target.cost.of(parts) for parts in every.values()) >= 0.0


def test_sure_links_that_a_target_drops_are_free():
    sure = np.array([[True, True]])
    dist = Flat(Matching(np.zeros((1, 2))))
    target = make_target(dist, sure, ~sure, missed=2.0, prefer=np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    assert target.y == {(0, 1)}
    costs = [target.cost.of(dist.parts(links)) for links in ((), [(0, 0)], [(0, 1)])]
    assert costs == [2.0, 2.0, 0.0]


def test_gold_outside_the_class_can_be_kept():
    sure = np.array([[True, True], [False, False]])
    dist = Flat(Matching(np.zeros((2, 2))))
    target = make_target(dist, sure, np.zeros((2, 2), bool), project=False)
    assert target.y.tolist() == [1, 1, 0, 0, 0, 1, 0, 0]  # links; the second source word is alone
    open_dist = OpenFlat(dist)
    assert open_dist.parts(target.y) is target.y
    assert open_dist.parts({(0, 0)}).tolist() == dist.parts({(0, 0)}).tolist()
    scored = open_dist.with_scores(np.arange(8.0))
    assert scored.score(target.y) == 0.0 + 1.0 + 5.0
    assert scored.argmax() == dist.with_scores(np.arange(8.0)).argmax()


def test_gold_cells_are_in_the_order_of_features():
    gold = Links.of([Alignment(frozenset({(1, 2)}), frozenset({(0, 0)})), {(0, 0)}, set(), {(3, 1)}])
    cells = GoldCells.of(gold, np.array(SHAPES))
    assert cells.labelled.tolist() == [True, False, False, True]  # the second is passed over, whatever its gold says
    sure, possible = cells.of_pair(0)
    assert np.argwhere(sure).tolist() == [[1, 2]] and np.argwhere(possible).tolist() == [[0, 0]]
    assert np.argwhere(cells.of_pair(3)[0]).tolist() == [[3, 1]]
    turned = cells.take([3, 0])
    assert np.argwhere(turned.of_pair(0)[0]).tolist() == [[3, 1]]
    assert np.argwhere(turned.of_pair(1)[0]).tolist() == [[1, 2]]


@given(st.integers(0, 2**16))
@settings(max_examples=30, deadline=None)
def test_error_rate_is_that_of_the_metric(seed):
    rng = np.random.default_rng(seed)
    shapes = [(2, 3), (3, 1)]
    rows, predicted = [], []
    for n, m in shapes:
        draw = rng.random((n, m))
        as_links = lambda flags: frozenset(map(tuple, np.argwhere(flags).tolist()))  # noqa: E731
        rows.append(Alignment(as_links(draw < 0.3), as_links((draw >= 0.3) & (draw < 0.6))))
        predicted.append(as_links(rng.random((n, m)) < 0.5))
    gold = Links.of(rows)
    cells = GoldCells.of(gold, np.array(shapes))
    linked = np.concatenate([np.array([[(i, j) in own for j in range(m)] for i in range(n)]).ravel()
                             for own, (n, m) in zip(predicted, shapes, strict=True)])  # fmt: skip
    assert 100 * error_rate(linked, cells) == pytest.approx(score_links(Links.of(predicted), gold, bootstrap=0).aer)


def test_gold_that_does_not_fit_its_text_is_refused_with_the_place():
    bitext = Bitext.of([("a b", "c d"), ("a", "c d e")])
    with pytest.raises(LinksError, match=r"links for 1 sentence pairs but .* has 2.*unlabelled"):
        check_gold(Links.of([{(0, 0)}]), bitext)
    with pytest.raises(LinksError, match=r"line 2: the link 1-0 has source word 1, but that line .* has 1 words"):
        check_gold(Links.of([{(0, 0)}, {(1, 0)}]), bitext)
    with pytest.raises(LinksError, match=r"line 1: the link 0-2 has target word 2"):
        check_gold(Links.of([{(0, 2)}, set()]), bitext)


# --- parts


def test_parts_score_as_one_matrix_and_kind_by_kind():
    rng = np.random.default_rng(1)
    features = random_features(rng, SHAPES)
    parts = link_and_null_parts(features)
    assert parts.n_weights == 4 + 3 + 2 + 2 == len(parts.names)
    weights = rng.normal(size=parts.n_weights)
    links, source, target = parts.scores(weights)
    whole = parts.sparse().scores(weights)
    by_hand = []
    for k, (n, m) in enumerate(SHAPES):
        by_hand += [links[features.cells_of(k)], source[features.source_of(k)], target[features.target_of(k)]]
        for row in range(features.cells_of(k).start, features.cells_of(k).stop):
            indptr, indices = features.lexical
            expected = features.links[row].astype(float) @ weights[4:7]
            expected += weights[indices[indptr[row] : indptr[row + 1]]].sum()
            assert links[row] == pytest.approx(expected)
        assert len(links[features.cells_of(k)]) == n * m
    assert whole == pytest.approx(np.concatenate(by_hand))
    assert source == pytest.approx(features.source_nulls.astype(float) @ weights[7:9])
    assert target == pytest.approx(features.target_nulls.astype(float) @ weights[9:])
    assert parts.names[:5] == ("word0", "word1", "word2", "word3", "bias")
    assert parts.names[7:] == ("source null: bias", "source null: rare", "target null: bias", "target null: rare")


def test_parts_know_what_each_feature_adds():
    rng = np.random.default_rng(2)
    features = random_features(rng, SHAPES)
    parts = link_and_null_parts(features)
    weights = rng.normal(size=parts.n_weights)
    scores = parts.scores(weights)
    for kind, row in ((0, 7), (0, 0), (1, 3), (2, 2)):
        found = parts.contributions(weights, kind, row)
        assert sum(weight * value for _, weight, value in found) == pytest.approx(scores[kind][row])
        named = dict(zip(parts.names, weights, strict=True))
        assert all(named[name] == weight for name, weight, _ in found)


def test_kinds_with_indicators_of_their_own_do_not_share_weights():
    counts = np.array([1, 1])
    first = Kind("", ("a",), np.array([[1.0], [2.0]]), counts, (np.array([0, 1, 1]), np.array([0], np.int32)), ("x",))
    second = Kind("block", ("a",), np.array([[4.0], [8.0]]), counts, (np.array([0, 0, 1]), np.array([0], np.int32)), ("x",))  # noqa: E501 # fmt: skip
    parts = Parts([first, second])
    assert parts.names == ("x", "block: x", "a", "block: a")
    assert parts.sparse().scores([100.0, 200.0, 1.0, 10.0]).tolist() == [101.0, 40.0, 2.0, 280.0]


@given(st.lists(st.integers(0, 3), max_size=6))
@settings(max_examples=30, deadline=None)
def test_taking_pairs_takes_all_their_rows(chosen):
    features = random_features(np.random.default_rng(3), SHAPES)
    taken = take_pairs(features, np.array(chosen, np.int64))
    weights = np.random.default_rng(4).normal(size=11)
    before, after = link_and_null_parts(features).scores(weights), link_and_null_parts(taken).scores(weights)
    assert len(taken) == len(chosen)
    for place, k in enumerate(chosen):
        assert after[0][taken.cells_of(place)].tolist() == before[0][features.cells_of(k)].tolist()
        assert after[1][taken.source_of(place)].tolist() == before[1][features.source_of(k)].tolist()
        assert after[2][taken.target_of(place)].tolist() == before[2][features.target_of(k)].tolist()


# --- folds


@given(st.integers(1, 40), st.integers(2, 7), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_folds_part_the_pairs(n, folds, seed):
    groups = make_folds(n, folds, seed)
    assert len(groups) == min(n, folds)
    assert sorted(np.concatenate(groups).tolist()) == list(range(n))
    sizes = [len(group) for group in groups]
    assert max(sizes) - min(sizes) <= 1
    assert all(a.tolist() == b.tolist() for a, b in zip(groups, make_folds(n, folds, seed), strict=True))


def test_taking_links_keeps_possible_ones():
    gold = samples.gold("en-de")
    taken = gold.take(np.array([7, 0, 7]))
    wanted = [gold[k] for k in (7, 0, 7)]
    assert [(row.links, row.possible) for row in taken] == [(row.links, row.possible) for row in wanted]
