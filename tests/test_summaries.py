"""Scores of summaries: held against brute force, other implementations, and numbers of rouge-score."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr

from isogloss.data.summaries import Judged, Summaries, Summary
from isogloss.errors import DocumentsError, ParameterError
from isogloss.metrics.meta import correlate, kendall_tau_b, meta_table
from isogloss.metrics.rouge import rouge_l, rouge_lsum, rouge_n
from isogloss.metrics.summaries import (
    co_selection,
    cosine,
    extract_size,
    fleiss_kappa,
    judge_extract,
    lcs_similarity,
    relative_utility,
    relevance_correlation,
)
from isogloss.tasks.documents.index import Index
from isogloss.tasks.documents.summaries import (
    EXTRACTORS,
    MEASURES,
    compare_measures,
    extract,
    measured,
    retrieved,
    score_summaries,
    sentence_scores,
)

# --- sentences in common


def test_precision_is_recall_where_sizes_are_equal_and_swaps_with_it():
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = int(rng.integers(1, 9))
        one, other = (rng.choice(n, int(rng.integers(0, n + 1)), replace=False).tolist() for _ in range(2))
        found, turned = co_selection(one, other, n), co_selection(other, one, n)
        both = sum(k in one and k in other for k in range(n))
        assert found.both == both and sum(found) == n
        assert found.precision == (both / len(one) if one else 0) == turned.recall
        assert found.recall == (both / len(other) if other else 0)
        assert found.agreement == sum((k in one) == (k in other) for k in range(n)) / n == turned.agreement
        if len(one) == len(other):
            assert found.precision == found.recall == found.f
    assert math.isnan(co_selection([], [], 0).agreement)
    with pytest.raises(ParameterError, match="from 0 on"):
        co_selection([3], [0], 3)


def kappa_of(table):
    """Fleiss' kappa as his paper has it, from counts of categories [n_items, n_categories]."""
    n, k = len(table), sum(table[0])
    shares = [sum(row[c] for row in table) / (n * k) for c in range(len(table[0]))]
    extent = [(sum(x * x for x in row) - k) / (k * (k - 1)) for row in table]
    chance = sum(p * p for p in shares)
    return (sum(extent) / n - chance) / (1 - chance)


def test_kappa():
    rng = np.random.default_rng(1)
    for k, n in ((2, 5), (3, 8), (4, 12)):
        taken = rng.random((k, n)) < 0.4
        taken[0, 0], taken[1, 0] = True, False
        wanted = kappa_of([(int(column.sum()), k - int(column.sum())) for column in taken.T])
        assert fleiss_kappa(taken) == pytest.approx(wanted)
    assert fleiss_kappa([[1, 0, 1]] * 3) == 1.0 and fleiss_kappa([[1, 0], [0, 1]]) < 0
    by_chance = [fleiss_kappa(rng.random((3, 200)) < 0.3) for _ in range(100)]
    assert abs(np.mean(by_chance)) < 0.01
    assert math.isnan(fleiss_kappa([[1, 1], [1, 1]])) and math.isnan(fleiss_kappa(np.zeros((2, 0))))
    with pytest.raises(ParameterError, match="two judges"):
        fleiss_kappa([[1, 0]])


def test_a_random_fourth_judge_halves_the_kappa_of_three():
    """Three of six pairs of judges are then of people."""
    rng = np.random.default_rng(2)
    people, with_chance = [], []
    for _ in range(300):
        common = rng.random(300) < 0.3
        judges = np.array([np.where(rng.random(300) < 0.3, rng.random(300) < 0.3, common) for _ in range(3)])
        people.append(fleiss_kappa(judges))
        with_chance.append(fleiss_kappa(np.vstack([judges, rng.random(300) < judges.mean()])))
    assert np.mean(with_chance) == pytest.approx(np.mean(people) / 2, abs=0.01)


# --- utility


@pytest.mark.parametrize("seed", range(6))
def test_the_utility_of_chance_is_the_mean_over_all_extracts(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    worth = rng.integers(0, 11, (3, n)).astype(float)
    worth[:, 0] += 1
    for size in range(1, n + 1):
        every = [relative_utility(chosen, worth) for chosen in itertools.combinations(range(n), size)]
        scores = [found.system for found in every]
        assert every[0].chance == pytest.approx(np.mean(scores))
        assert min(scores) >= 0 and max(scores) == pytest.approx(1)
        best = judge_extract(worth.sum(axis=0), size=size)
        assert relative_utility(best, worth).system == pytest.approx(1)
        known = [found.normalised for found in every if not math.isnan(found.normalised)]
        assert not known or np.mean(known) == pytest.approx(0, abs=1e-9)


def test_normalised_utility_is_1_for_what_is_as_good_as_judges():
    worth = np.array([[4.0, 3, 2, 1], [1, 4, 3, 2], [2, 1, 4, 3]])
    found = relative_utility([1, 2], worth)
    j = np.mean([
        sum(worth[b][k] for k in judge_extract(worth[a], size=2)) / np.sort(worth[b])[-2:].sum()
        for a, b in itertools.permutations(range(3), 2)
    ])  # fmt: skip
    assert found.judges == pytest.approx(j)
    assert found.normalised == pytest.approx((found.system - found.chance) / (found.judges - found.chance))


def test_a_sentence_that_another_says_adds_no_more_than_one_that_does_not():
    worth = [[5.0, 5, 5, 1]]
    plain = relative_utility([0, 1], worth)
    for discount in (0.0, 0.5, 1.0):
        less = relative_utility([0, 1], worth, subsumed=[(1, 0)], discount=discount)
        assert less.system == pytest.approx(plain.system * (1 + discount) / 2) and less.chance == plain.chance
    assert relative_utility([0, 1], worth, subsumed=[(1, 2)]).system == plain.system
    both_ways = relative_utility([0, 1], worth, subsumed=[(0, 1), (1, 0)])
    assert both_ways.system == pytest.approx(plain.system / 2)


def test_utility_that_cannot_be_said_has_a_reason():
    assert "no sentences" in relative_utility([], np.zeros((2, 0))).reason
    assert "empty" in relative_utility([], [[1.0, 2]]).reason
    assert "no sentence is worth" in relative_utility([0], [[0.0, 0], [0, 0]]).reason
    alone = relative_utility([0], [[1.0, 2]])
    assert alone.system == 0.5 and math.isnan(alone.normalised) and alone.reason
    assert "judges agree as chance does" in relative_utility([0], [[1.0, 1], [2, 2]]).reason
    for bad in ([[-1.0]], [[math.nan]]):
        with pytest.raises(ParameterError, match="0 or more"):
            relative_utility([0], bad)
    with pytest.raises(ParameterError, match="discount"):
        relative_utility([0], [[1.0]], discount=2)


def test_sizes_and_extracts_of_judges():
    assert [extract_size(n, 0.1) for n in (0, 1, 10, 11, 20)] == [0, 1, 1, 2, 2]
    assert extract_size(3, 0.5, [1, 1, 8]) == 3 and extract_size(3, 1.0, [1, 1, 8]) == 3
    assert judge_extract([1, 1, 1], 0.5) == [0, 1] and judge_extract([0, 5, 9], 0.1) == [2]
    assert judge_extract([3, 2, 1], 0.5, lengths=[1, 5, 2]) == [0, 1]
    for call in (lambda: extract_size(3, 0), lambda: judge_extract([1])):
        with pytest.raises(ParameterError):
            call()


# --- words


# summary, reference, F of rouge-1, rouge-2 and rouge-L, and of rouge-Lsum, of rouge-score 0.1.2
GOLDEN = [
    ("the cat sat on the mat", "the cat was on a mat", 0.6666666666666666, 0.2, 0.6666666666666666, 0.6666666666666666),
    ("It's late.\nThe dog barked!", "The dog barked late.\nIt did.", 0.8333333333333334, 0.4, 0.5, 0.8333333333333334),
    ("", "a b", 0, 0, 0, 0),
    ("a a a b\nc b a", "a b a\na c", 0.8333333333333333, 0.6, 0.6666666666666666, 0.6666666666666666),
]


@pytest.mark.parametrize(("summary", "reference", "one", "two", "whole", "lines"), GOLDEN)
def test_rouge_is_that_of_rouge_score(summary, reference, one, two, whole, lines):
    found = rouge_n(summary, reference, 1).f, rouge_n(summary, reference, 2).f, rouge_l(summary, reference).f
    assert found == pytest.approx((one, two, whole))
    assert rouge_lsum(summary.split("\n"), reference.split("\n")).f == pytest.approx(lines)


def test_cosines_and_subsequences_of_words():
    rng = np.random.default_rng(3)
    for _ in range(20):
        one, other = (list(rng.choice(list("abcd"), int(rng.integers(0, 6)))) for _ in range(2))
        idf = {letter: float(rng.random()) for letter in "abc"}
        vectors = [np.array([each.count(x) * idf.get(x, 1.0) for x in "abcd"]) for each in (one, other)]
        sizes = [float(np.linalg.norm(v)) for v in vectors]
        wanted = vectors[0] @ vectors[1] / (sizes[0] * sizes[1]) if min(sizes) > 0 else 0.0
        assert cosine(one, other, idf) == pytest.approx(wanted) and 0 <= cosine(one, other) <= 1
        assert 0 <= lcs_similarity(one, other) <= 1 and lcs_similarity(one, one) == (1 if one else 0)
    assert cosine("ab", "cd") == 0 and cosine("abc", "cab") == 1.0


# --- retrieval


def test_relevance_correlation():
    rng = np.random.default_rng(4)
    x, y = rng.random((3, 40)), rng.random((3, 40))
    found, passed = relevance_correlation(x, y)
    assert passed == 0 and found == pytest.approx(np.mean([pearsonr(a, b).statistic for a, b in zip(x, y)]))
    assert relevance_correlation(x, x)[0] == pytest.approx(1) and relevance_correlation(x, 7.5 * x)[0] == pytest.approx(
        1
    )
    many = relevance_correlation(rng.random((50, 400)), rng.random((50, 400)))[0]
    assert abs(many) < 0.03
    assert relevance_correlation(np.zeros((2, 3)), x[:2, :3])[1] == 2
    assert math.isnan(relevance_correlation(np.zeros((2, 3)), x[:2, :3])[0])
    with pytest.raises(ParameterError):
        relevance_correlation(x, y[:, :3])


def collection(seed=5, n=60):
    """Documents about one thing each, said in some of their sentences."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(n):
        topic, sentences = [f"t{k % 12}{letter}" for letter in "abc"], []
        for _ in range(int(rng.integers(6, 12))):
            about = rng.choice(topic, 2).tolist() if rng.random() < 0.6 else []
            sentences.append(" ".join(rng.permutation([*about, *(f"w{j}" for j in rng.integers(40, size=6))])))
        made.append(sentences)
    return made


def test_longer_extracts_are_found_more_as_their_documents_are():
    documents = collection()
    words = [" ".join(each).split() for each in documents]
    index, queries = Index.of(words), [[f"t{k}a", f"t{k}b"] for k in range(12)]
    full = retrieved(index, queries, words)
    by_rate = []
    for rate in (0.1, 0.3, 0.6, 1.0):
        short = [
            " ".join(each[k] for k in extract(each, "centroid", rate, collection=index)).split() for each in documents
        ]
        by_rate.append(relevance_correlation(full, retrieved(index, queries, short))[0])
    assert by_rate == sorted(by_rate) and by_rate[-1] == pytest.approx(1) and by_rate[0] < 0.95


# --- extractors


def test_extractors():
    documents = collection()
    index = Index.of([" ".join(each).split() for each in documents])
    for method in EXTRACTORS:
        for sentences in ([], ["one sentence ."], ["", "!"], documents[0]):
            worth = sentence_scores(sentences, method, collection=index)
            assert worth.shape == (len(sentences),) and np.isfinite(worth).all()
            assert len(extract(sentences, method, 0.3)) == extract_size(len(sentences), 0.3)
            assert extract(sentences, method, 1.0) == list(range(len(sentences)))
    assert extract(documents[0], "lead", size=3) == [0, 1, 2]
    assert extract(documents[0], "random", size=3, seed=1) != extract(documents[0], "random", size=3, seed=2)
    with pytest.raises(ParameterError, match="one of lead, random"):
        extract(["a"], "best", 0.5)


def test_extractors_that_know_the_topic_find_it():
    """Sentences without a word of the topic are worth less to them than to chance."""
    documents = collection(7)
    index = Index.of([" ".join(each).split() for each in documents])

    def share(method):
        found = []
        for k, each in enumerate(documents):
            taken = extract(each, method, 0.3, collection=index, seed=k)
            found.append(np.mean([f"t{k % 12}" in each[s] for s in taken]))
        return np.mean(found)

    by_chance = share("random")
    assert all(share(method) > by_chance + 0.1 for method in ("centroid", "signatures", "lexrank"))


def test_redundant_sentences_are_left_for_later():
    text = ["the cat sat on the mat", "the cat sat on the mat", "a dog barked at night"]
    assert extract(text, "lead", size=2) == [0, 1] and extract(text, "lead", size=2, redundancy=1.0) == [0, 2]
    assert extract(text, "lead", 0.5, by_words=True) == [0, 1]


# --- systems


def some(seed=0, n=12):
    """Summaries by four systems of which each is worse than the one before."""
    rng = np.random.default_rng(seed)
    made, judged = [], {}
    for d in range(n):
        right = [f"w{k}" for k in rng.integers(30, size=12)]
        sentences = tuple(" ".join(right[k : k + 3]) for k in range(0, 12, 3))
        worth = {f"j{j}": rng.integers(0, 5, 4).astype(float) + np.arange(4)[::-1] for j in range(3)}
        judged[str(d)] = Judged(str(d), sentences, worth)
        for s in range(4):
            text = " ".join(word if rng.random() > 0.2 * s else "x" for word in right)
            made.append(Summary(str(d), f"s{s}", text, (" ".join(right),), 1 - 0.2 * s + 0.05 * rng.random(), (s,)))
    return Summaries(tuple(made)), judged


def test_correlations_agree_with_scipy():
    rng = np.random.default_rng(8)
    people, measure = rng.integers(4, size=(6, 5)).astype(float), rng.integers(4, size=(6, 5)).astype(float)
    people[0] = 1.0
    found = correlate(measure, people, bootstrap=50)
    taus = [kendalltau(m, p).statistic for m, p in zip(measure, people, strict=True)]
    assert found.summary == pytest.approx(np.nanmean(taus)) and found.documents == int(np.isfinite(taus).sum()) < 6
    assert found.system == pytest.approx(kendalltau(measure.mean(axis=0), people.mean(axis=0)).statistic)
    assert found.summary_interval[0] <= found.summary <= found.summary_interval[1]
    assert kendall_tau_b(np.array([1.0, 1]), np.array([1.0, 2])) != kendall_tau_b(
        np.array([1.0, 2]), np.array([1.0, 2])
    )
    for bad in ((measure[:2], people), (measure * np.nan, people), (np.zeros((0, 3)), np.zeros((0, 3)))):
        with pytest.raises(ParameterError):
            correlate(*bad)
    told = []
    table = meta_table({"noise": measure, "people": people + 1e-9 * measure}, people, bootstrap=0, told=told.append)
    assert list(table) == ["people", "noise"] and told == ["noise", "people"]


def test_measures_order_systems_as_people_do():
    summaries, judged = some()
    found = compare_measures(summaries, names=["rouge-1-recall", "overlap"], bootstrap=20)
    assert found["rouge-1-recall"].system == 1.0 and found["rouge-1-recall"].summary > 0.6
    assert set(found["overlap"].as_dict()) >= {"system", "summary", "documents"}
    scores = score_summaries(summaries, judged, names=["rouge-1-recall", "cosine"], bootstrap=100)
    recall = [scores[f"s{s}"]["rouge-1-recall"] for s in range(4)]
    assert recall[0].mean == 1.0 and [v.mean for v in recall] == sorted((v.mean for v in recall), reverse=True)
    assert recall[3].interval[0] < recall[3].mean < recall[3].interval[1] and recall[3].documents == 12
    assert scores["s0"]["utility"].mean > scores["s3"]["utility"].mean and scores["s0"]["utility-judges"].mean <= 1
    assert set(scores["s0"]) == {
        "rouge-1-recall", "cosine", "precision", "recall", "agreement", "kappa", "utility", "utility-chance",
        "utility-judges", "utility-normal",
    }  # fmt: skip
    assert set(measured(summaries)) == set(MEASURES)


def test_summaries_that_cannot_be_scored_are_said():
    summaries, judged = some()
    with pytest.raises(DocumentsError, match="two summaries of document '0' by system 's0'"):
        Summaries((*summaries.summaries, summaries[0]))
    bare = Summaries(tuple(Summary(str(d), f"s{s}") for d in range(2) for s in range(3)), "bare")
    with pytest.raises(DocumentsError, match="bare: there is nothing to score by"):
        score_summaries(bare)
    with pytest.raises(DocumentsError, match="bare: to compare measures, three systems"):
        compare_measures(bare)
    with pytest.raises(DocumentsError, match="no judge has weighed document '1'"):
        score_summaries(summaries, {"0": judged["0"]})
    wrong = Summaries((Summary("0", "s", extract=(7,)),))
    with pytest.raises(DocumentsError, match="has sentence 7, and the document 4"):
        score_summaries(wrong, judged)
    with pytest.raises(ParameterError, match="no measure 'bleurt'"):
        measured(summaries, ["bleurt"])
    no_reference = Summaries(tuple(Summary("d", f"s{s}", "x", (), s) for s in range(3)))
    with pytest.raises(DocumentsError, match="Has each a reference"):
        compare_measures(no_reference, names=["chrf"])
