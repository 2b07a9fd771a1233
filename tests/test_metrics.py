"""Scores against hand-computed values and against a scorer of Python sets."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from isogloss import __version__
from isogloss.data import Alignment, Bitext, Links
from isogloss.errors import LinksError, ParameterError
from isogloss.metrics import (
    AlignmentScore,
    best_threshold,
    bijectivity,
    calibration,
    compare,
    curve,
    score_by_frequency,
    score_links,
    symmetry,
    threshold_at_recall,
)

DATA = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"))


# A scorer by another road: sets of (pair, source, target) and exact fractions.


def as_set(rows):
    return {(pair, *link) for pair, row in enumerate(rows) for link in row}


def by_sets(predicted, sure, possible):
    allowed = sure | possible
    precision = Fraction(len(predicted & allowed), len(predicted)) if predicted else Fraction(1)
    recall = Fraction(len(predicted & sure), len(sure)) if sure else Fraction(1)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else Fraction(0)
    size = len(predicted) + len(sure)
    aer = 1 - Fraction(len(predicted & sure) + len(predicted & allowed), size) if size else Fraction(0)
    return [float(value) for value in (precision, recall, f1, aer)]


def gold_of(sure, possible):
    return Links.of(Alignment(frozenset(s), frozenset(p)) for s, p in zip(sure, possible, strict=True))


def with_probability(rows):
    """Rows of {(source, target): probability}."""
    return Links.of(Alignment(frozenset(row), probability=row) for row in rows)


def values(score):
    """As shares; scores are in percent."""
    return [score.precision / 100, score.recall / 100, score.f1 / 100, score.aer / 100]


links = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=8)
corpora = st.lists(st.tuples(links, links, links), max_size=5)
# few distinct values, so that there are ties; all of them exact in float32
probabilities = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 0.875, 1.0])
scored_links = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 5)), probabilities, max_size=8)
scored_corpora = st.lists(st.tuples(scored_links, links, links), max_size=4)


# Scores


def test_hand_computed_score():
    gold = gold_of([{(0, 0), (1, 1)}, {(2, 0)}], [{(1, 2)}, set()])
    predicted = Links.of([{(0, 0), (1, 2), (3, 3)}, {(2, 0)}])
    score = score_links(predicted, gold)
    # 4 predicted, 3 of them sure or possible; 2 of 3 sure links found
    assert values(score) == approx([3 / 4, 2 / 3, 2 * (3 / 4) * (2 / 3) / (3 / 4 + 2 / 3), 1 - (2 + 3) / (4 + 3)])
    assert (score.links, score.sure, score.possible, score.n) == (4, 3, 1, 2)


def test_with_sure_links_alone_aer_is_one_minus_f():
    score = score_links(Links.of([{(0, 0), (0, 1)}]), Links.of([{(0, 0), (1, 1), (2, 2)}]))
    assert score.aer == approx(100 - score.f1) == approx(100 * (1 - 2 / 5))
    assert "links:sure|" in score.signature


@settings(max_examples=120, deadline=None)
@given(corpora)
def test_agrees_with_sets(rows):
    predicted, sure, possible = ([row[k] for row in rows] for k in range(3))
    score = score_links(Links.of(predicted), gold_of(sure, possible), bootstrap=0)
    assert values(score) == approx(by_sets(as_set(predicted), as_set(sure), as_set(possible)), abs=1e-12)
    assert score.links == len(as_set(predicted)) and score.sure == len(as_set(sure))
    assert score.possible == len(as_set(possible) - as_set(sure)) and score.n == len(rows)


@settings(max_examples=50, deadline=None)
@given(corpora, st.data())
def test_include_is_scoring_those_pairs_alone(rows, data):
    flags = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    predicted, gold = Links.of(row[0] for row in rows), gold_of([row[1] for row in rows], [row[2] for row in rows])
    kept = [row for row, flag in zip(rows, flags, strict=True) if flag]
    alone = score_links(Links.of(row[0] for row in kept), gold_of([row[1] for row in kept], [row[2] for row in kept]))
    assert score_links(predicted, gold, include=np.array(flags, bool)) == alone
    assert score_links(predicted, gold, include=np.flatnonzero(flags)) == alone


def test_conventions_for_nothing():
    nothing, something = Links.of([[]]), Links.of([{(0, 0)}])
    assert values(score_links(nothing, nothing)) == [1, 1, 1, 0]
    assert values(score_links(nothing, something)) == [1, 0, 0, 1]
    assert values(score_links(something, nothing)) == [0, 1, 0, 1]
    assert values(score_links(Links.of([]), Links.of([]))) == [1, 1, 1, 0]
    only_possible = gold_of([set()], [{(0, 0)}])
    assert values(score_links(something, only_possible)) == [1, 1, 1, 0]


def test_a_link_written_twice_counts_once():
    twice = Links(np.array([0, 3]), np.array([0, 0, 1], np.int32), np.array([0, 0, 1], np.int32))
    assert score_links(twice, Links.of([{(0, 0)}])).links == 2
    # in gold, a link that is both sure and possible is sure
    gold = Links(np.array([0, 2]), *np.array([[0, 0], [0, 0]], np.int32), possible=np.array([True, False]))
    score = score_links(Links.of([{(0, 0)}]), gold)
    assert (score.sure, score.possible, score.recall) == (1, 0, 100)


def test_unordered_rows_and_equal_indices_in_other_pairs():
    shuffled = Links(np.array([0, 2, 3]), np.array([5, 0, 0], np.int32), np.array([0, 5, 4], np.int32))
    assert score_links(shuffled, Links.of([{(0, 5), (5, 0)}, {(0, 4)}])).aer == 0
    assert score_links(shuffled, Links.of([{(0, 4)}, {(5, 0), (0, 5)}])).precision == 0


@settings(max_examples=50, deadline=None)
@given(corpora)
def test_swapping_languages_keeps_the_score(rows):
    gold = gold_of([row[1] for row in rows], [row[2] for row in rows])
    predicted = Links.of(row[0] for row in rows)
    turned = score_links(Links.of(row.T for row in predicted), Links.of(row.T for row in gold))
    assert values(turned) == approx(values(score_links(predicted, gold)))


def test_score_tells_its_recipe():
    gold = gold_of([{(0, 0), (1, 1)}, {(2, 0)}], [{(1, 2)}, set()])
    predicted = Links.of([{(0, 0), (1, 2), (3, 3)}, {(2, 0)}])
    score = score_links(predicted, gold, seed=7)
    assert score.signature == f"links:sure+possible|null:no|index:0|n:2|seed:7|v:{__version__}"
    low, high = score.intervals["aer"]
    assert str(score) == f"AER = 28.57 ± {(high - low) / 2:.1f} | {score.signature}"
    assert str(score_links(predicted, gold, bootstrap=0)).startswith("AER = 28.57 | links:")
    plain = json.loads(json.dumps(score.as_dict()))
    assert list(plain)[:5] == ["precision", "recall", "f1", "aer", "links"]
    assert plain["precision"] == approx(75) and plain["aer"] == approx(200 / 7) and plain["links"] == 4
    assert plain["intervals"]["aer"] == [low, high] == list(score.interval)
    with pytest.raises(AttributeError):
        score.aer = 0.0
    assert hash(score) == hash(score_links(predicted, gold, seed=7))


def test_errors_say_what_and_where():
    with pytest.raises(LinksError, match="3 sentence pairs but the gold has 2"):
        score_links(Links.of([[]] * 3), Links.of([[]] * 2))
    with pytest.raises(LinksError, match=r"first system has 1 .* second has 2"):
        compare(Links.of([[]]), Links.of([[]] * 2), Links.of([[]]))
    with pytest.raises(LinksError, match="negative"):
        score_links(Links.of([{(-1, 0)}]), Links.of([[]]))
    with pytest.raises(LinksError, match="no sentence is that long"):
        score_links(Links.of([{(2**31 - 1, 2**31 - 1)}] * 3), Links.of([[]] * 3))
    with pytest.raises(LinksError, match="2 flags for 1"):
        score_links(Links.of([[]]), Links.of([[]]), include=np.array([True, False]))
    with pytest.raises(LinksError, match="pair 4"):
        score_links(Links.of([[]]), Links.of([[]]), include=np.array([0, 4]))
    with pytest.raises(ParameterError, match="bootstrap"):
        score_links(Links.of([[]]), Links.of([[]]), bootstrap=-1)


# Bootstrap and comparison


def noisy_corpus(n, seed=0, wrong=0.3):
    rng = np.random.default_rng(seed)
    gold = [{(k, k) for k in range(rng.integers(3, 12))} for _ in range(n)]
    predicted = [{(i, j + (rng.random() < wrong)) for i, j in row} for row in gold]
    return Links.of(predicted), Links.of(gold)


def test_intervals_are_those_of_resampled_corpora():
    predicted, gold = noisy_corpus(30)
    both = [(a.links, b.links) for a, b in zip(predicted, gold, strict=True)]
    rng = np.random.default_rng(5)
    aers = []
    for _ in range(1500):
        drawn = [both[k] for k in rng.integers(30, size=30)]
        aers.append(100 - 200 * sum(len(a & b) for a, b in drawn) / sum(len(a) + len(b) for a, b in drawn))
    score = score_links(predicted, gold, bootstrap=3000, seed=1)
    assert score.intervals["aer"] == approx(np.quantile(aers, [0.025, 0.975]), abs=1.2)
    low, high = score.intervals["aer"]
    assert low < score.aer < high
    assert high - low == approx(4 * np.std(aers), rel=0.15)
    for name in ("precision", "recall", "f1"):
        low, high = score.intervals[name]
        assert low < getattr(score, name) < high


def test_intervals_follow_the_seed_and_nothing_else():
    predicted, gold = noisy_corpus(20)
    # global state has no say
    np.random.seed(0)  # noqa: NPY002
    first = score_links(predicted, gold, seed=3)
    np.random.seed(1)  # noqa: NPY002
    assert score_links(predicted, gold, seed=3) == first
    assert score_links(predicted, gold, seed=4).intervals != first.intervals
    assert values(score_links(predicted, gold, seed=4)) == values(first)
    assert score_links(predicted, gold, bootstrap=0).intervals == {}


def test_resampling_in_blocks_is_the_same_kind_of_draw(monkeypatch):
    from isogloss.metrics import _resampling

    counts = np.ones((7, 5), np.int64)
    counts[:, 1] = 2 ** np.arange(7)
    monkeypatch.setattr(_resampling, "_BLOCK", 10)
    sums = _resampling.resampled(counts, 500, 0)
    assert sums.shape == (500, 5) and (sums[:, 0] == 7).all(), "every resample has as many pairs"
    assert sums[:, 1].mean() == approx(127, rel=0.1)
    assert len(np.unique(sums[:, 1])) > 100


def test_compare_knows_better_worse_and_equal():
    good, gold = noisy_corpus(80, wrong=0.1)
    bad = noisy_corpus(80, wrong=0.5)[0]
    difference = compare(good, bad, gold, resamples=2000)
    assert difference.first == approx(score_links(good, gold).aer)
    assert difference.second == approx(score_links(bad, gold).aer)
    assert difference.delta == approx(difference.first - difference.second)
    assert difference.delta < 0
    assert difference.interval[1] < 0 and difference.p_value == approx(2 / 2001)
    other_way = compare(bad, good, gold, resamples=2000)
    assert other_way.delta == approx(-difference.delta) and other_way.p_value == difference.p_value
    assert other_way.interval == approx((-difference.interval[1], -difference.interval[0]))
    same = compare(good, good, gold, resamples=200)
    assert (same.delta, same.interval, same.p_value) == (0, (0, 0), 1)
    assert "p = " in str(difference) and difference.as_dict()["delta"] == difference.delta
    recall = compare(good, bad, gold, resamples=2000, measure="recall")
    assert recall.delta == approx(score_links(good, gold).recall - score_links(bad, gold).recall) and recall.delta > 0
    assert str(recall).startswith("ΔRECALL = +")
    with pytest.raises(ParameterError, match="measure"):
        compare(good, bad, gold, measure="accuracy")


def test_compare_is_paired():
    """A difference in one pair of many is certain nowhere; a small one in every pair is certain."""
    gold = [{(k, k) for k in range(5)} for _ in range(40)]
    one_better = [row - {(0, 0), (1, 1), (2, 2)} if pair == 0 else row for pair, row in enumerate(gold)]
    assert compare(Links.of(one_better), Links.of(gold), Links.of(gold), resamples=2000).p_value > 0.3
    rng = np.random.default_rng(0)
    base = [{(k, k) for k in range(rng.integers(0, 5))} for _ in range(40)]
    little = [row | {(4, 4)} for row in base]
    assert compare(Links.of(little), Links.of(base), Links.of(gold), resamples=2000).p_value < 0.01


def test_chance_alone_is_rarely_called_a_difference():
    found = 0
    for seed in range(40):
        first, gold = noisy_corpus(60, seed=2 * seed)
        second = Links.of(  # other errors on the same gold, at the same rate
            {(i, j + (np.random.default_rng((seed, pair, i)).random() < 0.3)) for i, j in row.links}
            for pair, row in enumerate(gold)
        )
        found += compare(first, second, gold, resamples=400, seed=seed).p_value < 0.05
    assert found <= 7


# Curves, thresholds, calibration


def test_hand_computed_curve():
    predicted = with_probability([{(0, 0): 0.875, (1, 1): 0.5, (2, 2): 0.5}, {(0, 0): 0.25}])
    gold = gold_of([{(0, 0), (1, 1)}, set()], [set(), {(0, 0)}])
    line = curve(predicted, gold)
    assert line.threshold.tolist() == [np.inf, 0.875, 0.5, 0.25]
    assert line.links.tolist() == [0, 1, 3, 4]
    assert line.precision.tolist() == approx([1, 1, 2 / 3, 3 / 4])
    assert line.recall.tolist() == approx([0, 1 / 2, 1, 1])
    assert line.aer.tolist() == approx([1, 1 - 2 / 3, 1 - 4 / 5, 1 - 5 / 6])
    assert line.area == approx(1 / 2 + (1 + 2 / 3) / 4)
    assert best_threshold(predicted, gold) == 0.25
    assert threshold_at_recall(predicted, gold, 0.4) == 0.875
    assert threshold_at_recall(predicted, gold, 0.6) == 0.5
    assert threshold_at_recall(predicted, gold, 0) == np.inf
    plain = json.loads(json.dumps(line.as_dict()))
    assert plain["threshold"] == [None, 0.875, 0.5, 0.25] and plain["area"] == approx(100 * line.area)


@settings(max_examples=100, deadline=None)
@given(scored_corpora)
def test_every_point_of_the_curve_is_the_score_of_its_threshold(rows):
    predicted = with_probability([row[0] for row in rows])
    if predicted.probability is None:
        predicted = replace(predicted, probability=np.zeros(0, np.float32))
    gold = gold_of([row[1] for row in rows], [row[2] for row in rows])
    line = curve(predicted, gold)
    assert line.threshold.tolist() == [np.inf, *sorted({p for row in rows for p in row[0].values()}, reverse=True)]
    area = 0.0
    for k, threshold in enumerate(line.threshold.tolist()):
        kept = predicted.keep(predicted.probability >= threshold)
        score = score_links(kept, gold, bootstrap=0)
        assert [line.precision[k], line.recall[k], line.f1[k], line.aer[k]] == approx(values(score))
        assert line.links[k] == score.links
        if k:
            area += (line.recall[k] - line.recall[k - 1]) * (line.precision[k] + line.precision[k - 1]) / 2
    assert line.area == approx(area)
    best = best_threshold(predicted, gold)
    kept = score_links(predicted.keep(predicted.probability >= best), gold, bootstrap=0)
    assert kept.aer == approx(100 * line.aer.min())
    assert (100 * line.aer[line.threshold > best] > kept.aer - 1e-10).all(), "the highest of equals"


def test_thresholds_are_exact_in_single_precision():
    rng = np.random.default_rng(0)
    n = 500
    links = Links.of([{(k, k) for k in range(n)}])
    predicted = replace(links, probability=rng.random(n).astype(np.float32))
    gold = links.keep(predicted.probability > 0.5)
    threshold = best_threshold(predicted, gold)
    assert score_links(predicted.keep(predicted.probability >= threshold), gold).aer == 0
    assert len(curve(predicted, gold).as_dict(points=50)["recall"]) == 50


def test_a_link_written_twice_has_its_higher_probability():
    twice = Links(np.array([0, 2]), *np.zeros((2, 2), np.int32), probability=np.array([0.25, 0.75], np.float32))
    assert curve(twice, Links.of([{(0, 0)}])).threshold.tolist() == [np.inf, 0.75]


def test_curves_need_probabilities():
    plain, gold = Links.of([{(0, 0)}]), Links.of([{(0, 0)}])
    with pytest.raises(LinksError, match="--scores"):
        curve(plain, gold)
    half = Links.of([Alignment(frozenset({(0, 0), (1, 2)}), probability={(0, 0): 0.5})])
    with pytest.raises(LinksError, match="1-2 of pair 0 has no probability"):
        curve(half, gold)
    scored = with_probability([{(0, 0): 0.5, (1, 1): 0.5}])
    with pytest.raises(ParameterError, match=r"reach a recall of 0\.5"):
        threshold_at_recall(scored, Links.of([{(0, 0), (2, 2)}]), 0.75)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        threshold_at_recall(scored, gold, 75)


def test_hand_computed_calibration():
    predicted = with_probability([{(0, 0): 0.75, (1, 1): 0.75, (2, 2): 1.0, (3, 3): 0.25, (4, 4): 0.0}])
    gold = gold_of([{(0, 0), (2, 2)}], [{(3, 3)}])
    result = calibration(predicted, gold, bins=4)
    # bins: [0, 1/4) has 4-4; [1/4, 1/2) has only the possible link; [3/4, 1] has 0-0, 1-1 and 2-2
    assert result.count.tolist() == [1, 0, 0, 3] and result.skipped == 1
    assert result.confidence[3] == approx(2.5 / 3) and result.accuracy[3] == approx(2 / 3)
    assert np.isnan(result.confidence[1])
    assert result.error == approx((0 + 0.5) / 4)
    assert calibration(predicted, gold, bins=4, possible="right").error == approx((0.5 + 0.75) / 5)
    assert calibration(predicted, gold, bins=4, possible="wrong").error == approx((0.5 + 0.25) / 5)
    plain = json.loads(json.dumps(result.as_dict()))
    assert plain["bins"][1]["confidence"] is None and plain["error"] == approx(12.5)


@settings(max_examples=100, deadline=None)
@given(scored_corpora, st.integers(1, 12), st.sampled_from(["skip", "right", "wrong"]))
def test_calibration_agrees_with_a_plain_loop(rows, bins, possible):
    predicted = with_probability([row[0] for row in rows])
    if predicted.probability is None:
        predicted = replace(predicted, probability=np.zeros(0, np.float32))
    filled, skipped = {}, 0
    for row, sure, maybe in rows:
        for link, p in row.items():
            if link in maybe - sure and possible == "skip":
                skipped += 1
                continue
            right = link in sure or (possible == "right" and link in maybe)
            filled.setdefault(min(int(p * bins), bins - 1), []).append((p, right))
    n = sum(map(len, filled.values()))
    error = sum(abs(sum(p for p, _ in cell) - sum(r for _, r in cell)) for cell in filled.values()) / n if n else 0
    result = calibration(predicted, gold_of([r[1] for r in rows], [r[2] for r in rows]), bins, possible=possible)
    assert result.error == approx(error) and result.skipped == skipped
    assert result.count.tolist() == [len(filled.get(b, [])) for b in range(bins)]


def test_true_probabilities_are_calibrated_and_others_are_not():
    rng = np.random.default_rng(0)
    n = 40_000
    chance = rng.random(n).astype(np.float32)
    everything = Links(np.array([0, n]), np.arange(n, dtype=np.int32), np.zeros(n, np.int32), chance)
    gold = everything.keep(rng.random(n) < chance)
    assert calibration(everything, gold).error < 0.01
    assert calibration(replace(everything, probability=np.sqrt(chance)), gold).error > 0.1
    with pytest.raises(LinksError, match="log scores"):
        calibration(replace(everything, probability=np.log(chance + 0.1)), gold)
    with pytest.raises(ParameterError, match="bins"):
        calibration(everything, gold, bins=0)


# Symmetry, bijectivity, frequency


def test_symmetry_and_bijectivity_by_hand():
    forward, backward = Links.of([{(0, 0), (1, 1)}, {(0, 1)}]), Links.of([{(0, 0)}, {(0, 1), (2, 2)}])
    assert symmetry(forward, backward) == approx(2 / 4)
    assert symmetry(forward, forward) == 1 and symmetry(Links.of([[]]), Links.of([[]])) == 1
    assert bijectivity(Links.of([{(0, 0), (1, 1), (1, 2)}, {(1, 1)}, {(0, 0), (1, 0)}])) == approx(2 / 6)
    assert bijectivity(Links.of([[], []])) == 1
    with pytest.raises(LinksError, match="forward has 2"):
        symmetry(forward, Links.of([[]]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(links, links), max_size=4))
def test_symmetry_and_bijectivity_agree_with_sets(rows):
    one, other = as_set(row[0] for row in rows), as_set(row[1] for row in rows)
    expected = len(one & other) / len(one | other) if one | other else 1
    assert symmetry(Links.of(row[0] for row in rows), Links.of(row[1] for row in rows)) == approx(expected)
    alone = [not any(x != y and x[0] == y[0] and (x[1] == y[1] or x[2] == y[2]) for y in one) for x in one]
    assert bijectivity(Links.of(row[0] for row in rows)) == approx(np.mean(alone) if alone else 1)


def frequency_case():
    bitext = Bitext.of([("a a b", "x y"), ("a c", "x x z")])
    # seen in the text: a 3, b 1, c 1; x 3, y 1, z 1
    gold = gold_of([{(0, 0), (2, 1)}, {(0, 0), (1, 2)}], [{(1, 1)}, set()])
    predicted = Links.of([{(0, 0), (1, 1)}, {(0, 1), (1, 2)}])
    return predicted, gold, bitext


def test_rare_and_common_words_by_hand():
    predicted, gold, bitext = frequency_case()
    scores = score_by_frequency(predicted, gold, bitext, rare=2)
    # rare: predicted 1-1 (y) and 1-2 (c, z); gold sure 2-1, 1-2, possible 1-1
    assert values(scores["rare"])[:2] == approx([2 / 2, 1 / 2])
    assert scores["rare"].aer == approx(100 * (1 - (1 + 2) / (2 + 2)))
    # common: predicted 0-0 and 0-1 (a, x both); gold 0-0 and 0-0
    assert values(scores["common"])[:2] == approx([1 / 2, 1 / 2])
    assert (scores["rare"].links, scores["common"].links) == (2, 2)
    assert "|words:either<2|" in scores["rare"].signature and "|words:either>=2|" in scores["common"].signature
    by_source = score_by_frequency(predicted, gold, bitext, rare=2, side="source")
    assert (by_source["rare"].links, by_source["common"].links) == (1, 3)
    # a word seen exactly so many times is common
    assert score_by_frequency(predicted, gold, bitext, rare=1)["rare"].links == 0
    assert score_by_frequency(predicted, gold, bitext, rare=3)["common"].links == 2
    assert score_by_frequency(predicted, gold, bitext, rare=4)["common"].links == 0
    assert isinstance(scores["rare"], AlignmentScore) and scores["rare"].n == 2


def test_frequencies_can_come_from_another_text():
    predicted, gold, bitext = frequency_case()
    training = Bitext.of([("c c b b", "z z y y"), ("c b", "z y")])  # a and x are not seen at all
    scores = score_by_frequency(predicted, gold, bitext, rare=2, training=training)
    assert (scores["rare"].links, scores["common"].links) == (3, 1)
    part = Bitext.of([("q", "q"), ("a a b", "x y"), ("a c", "x x z"), ("b b", "y")]).part(1, 3)
    assert score_by_frequency(predicted, gold, part, rare=2) == score_by_frequency(predicted, gold, bitext, rare=2)


def test_frequency_errors():
    predicted, gold, bitext = frequency_case()
    with pytest.raises(LinksError, match="1 sentence pairs but the gold has 2"):
        score_by_frequency(predicted, gold, bitext.part(0, 1))
    outside = Links.of([{(0, 0)}, {(1, 3)}])
    with pytest.raises(LinksError, match="pair 1 has a link to target word 3, but that sentence has 3 words"):
        score_by_frequency(outside, gold, bitext)
    with pytest.raises(ParameterError, match="side"):
        score_by_frequency(predicted, gold, bitext, side="both")


# Real gold


def read_gold(path):
    """A reader of our own, so that this test says nothing about the package's."""
    sure, possible = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        tokens = line.split()
        sure.append({tuple(map(int, token.split("-"))) for token in tokens if "-" in token})
        possible.append({tuple(map(int, token.split("p"))) for token in tokens if "p" in token})
    return sure, possible


GOLD_FILES = sorted((DATA / "alignment").glob("*/dev.gold.txt"))


@pytest.mark.data
@pytest.mark.skipif(not GOLD_FILES, reason="no gold alignments behind ISOGLOSS_DATA")
def test_gold_against_itself_has_no_error():
    for path in GOLD_FILES:
        sure, possible = read_gold(path)
        gold = gold_of(sure, possible)
        assert values(score_links(gold, gold, bootstrap=10)) == [1, 1, 1, 0]
        only_sure = score_links(Links.of(sure), gold, bootstrap=10)
        assert values(only_sure) == [1, 1, 1, 0] and only_sure.intervals["aer"] == (0, 0)
        shifted = Links.of({(i + 1, j) for i, j in row} for row in sure)
        assert values(score_links(shifted, gold, bootstrap=0)) == approx(
            by_sets(as_set({(i + 1, j) for i, j in row} for row in sure), as_set(sure), as_set(possible))
        )
