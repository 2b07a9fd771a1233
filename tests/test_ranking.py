"""Ranking with the help of another language: what is compared, learnt, added up and scored."""

from __future__ import annotations

import itertools
import math
import signal
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau

from isogloss import store
from isogloss.data.groups import Candidate, Group, Groups
from isogloss.errors import DocumentsError, ModelError, ParameterError
from isogloss.learners.pairs import PairAscent
from isogloss.learners.runner import Interrupted
from isogloss.metrics.ranking import compare_rankings, kendall_tau, ordered_pairs, score_ranking
from isogloss.tasks.documents.dictionaries import Translations, read_translations, url_similarity
from isogloss.tasks.documents.index import Index
from isogloss.tasks.documents.outputs import OUTPUT_FEATURES, output_features
from isogloss.tasks.documents.ranking import BilingualRanker, aggregate
from isogloss.tasks.documents.ranking_features import comparable, min_max
from isogloss.testing.fuzz.models import DICTIONARY, new_ranked, ranked

# --- what is compared


def definitions(grades, others):
    """Both definitions of the paper, by brute force over all pairs of pairs."""
    pairs = list(itertools.product(range(len(grades)), range(len(others))))
    first, second = set(), set()
    for p, q in itertools.product(pairs, repeat=2):
        e, c = grades[p[0]] - grades[q[0]], others[p[1]] - others[q[1]]
        if (e > 0 and c >= 0) or (e >= 0 and c > 0):
            first.add((p, q))
        if e > 0 and c >= 0:
            second.add((p, q))
    return first, second


@pytest.mark.parametrize("sizes", [(4, 3), (1, 2), (3, 1), (0, 2), (2, 5)])
def test_comparable_pairs_agree_with_brute_force(sizes):
    rng = np.random.default_rng(sizes)
    for _ in range(10):
        grades, others = (rng.integers(3, size=n).astype(float) for n in sizes)
        better, beside = comparable(grades, others)
        found = {((i, j), (k, m)) for i, k in better.tolist() for j, m in beside.tolist()}
        first, second = definitions(grades, others)
        assert found == second <= first
        assert all(p != q and (q, p) not in found for p, q in found)
        assert all((p, s) in found for p, q in found for r, s in found if q == r)


def test_unknown_grades_are_compared_with_nothing_but_themselves():
    better, beside = comparable(np.array([1.0, np.nan, 0.0]), np.array([np.nan, 1.0]))
    assert better.tolist() == [[0, 2]] and beside.tolist() == [[0, 0], [1, 1]]


# --- from pairs to documents


def bilingual(seed, n_groups=6, n=4, m=3, similarity=True, other=True):
    """Groups with features of both sides; addresses make similarities."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(n_groups):

        def address():
            return "".join(rng.choice(list("abcd"), 6)) if similarity else ""

        ours = [
            Candidate(
                f"e{i}", url=address(), grade=float(rng.integers(3)), features={"a": rng.normal(), "b": rng.normal()}
            )
            for i in range(n)
        ]
        theirs = [
            Candidate(
                f"c{j}", url=address(), grade=float(rng.integers(3)), features={"z": rng.normal()} if other else {}
            )
            for j in range(m)
        ]
        made.append(Group(str(k), tuple(ours), others=tuple(theirs)))
    return Groups(tuple(made))


def orders(scores):
    return [np.argsort(-own, kind="stable").tolist() for own in scores]


def test_without_similarities_all_roads_lead_to_the_features_of_the_document():
    groups = bilingual(0, similarity=False)
    found = []
    for name in ("mean", "max", "softmax", "weighted", "borda"):
        ranker = BilingualRanker(aggregator=name, regularisation=0.01).fit(groups)
        weights = ranker.feature_weights()
        assert not any(key.startswith("pair:") for key in weights) and "other:z" in weights
        found.append(orders(ranker.predict(groups)))
    own = []
    for group in groups:
        x = min_max(np.array([[each.features["a"], each.features["b"]] for each in group.candidates]))
        own.append(x @ [weights["a"], weights["b"]])
    assert all(each == orders(own) for each in found)


def test_one_document_beside_makes_no_difference_between_aggregators():
    groups = bilingual(1)
    ranked_by = [
        BilingualRanker(aggregator=name, constraints=1, regularisation=0.01).fit(groups).predict(groups)
        for name in ("mean", "max", "softmax", "weighted")
    ]
    for each in ranked_by[1:]:
        for one, other in zip(ranked_by[0], each, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_monolingual_ranker_is_the_case_of_one_constant_document():
    groups = bilingual(2, similarity=False)
    constant = (Candidate("c", grade=1.0, features={"z": 3.0}),)
    beside = Groups(tuple(replace(group, others=constant) for group in groups))
    alone = Groups(tuple(replace(group, others=()) for group in groups))
    options = {"regularisation": 0.02, "tolerance": 1e-7, "iterations": 200}
    one = BilingualRanker(constraints=1, **options).fit(beside)
    two, three = BilingualRanker(**options).fit(alone), BilingualRanker(constraints=0, **options).fit(groups)
    for name in ("a", "b"):
        assert one.feature_weights()[name] == pytest.approx(two.feature_weights()[name], abs=1e-4)
        assert two.feature_weights()[name] == three.feature_weights()[name]
    assert orders(one.predict(beside)) == orders(two.predict(alone)) == orders(three.predict(groups))


def test_constant_similarities_are_as_good_as_none():
    groups = bilingual(3, similarity=False)
    same = Groups(
        tuple(
            replace(
                group,
                candidates=tuple(replace(each, url="x") for each in group.candidates),
                others=tuple(replace(each, url="x") for each in group.others),
            )
            for group in groups
        )
    )
    one, two = (BilingualRanker(regularisation=0.01).fit(given) for given in (groups, same))
    assert two.feature_weights()["pair:url"] == 0.0
    assert orders(one.predict(groups)) == orders(two.predict(same))


def test_longer_weights_and_other_orders_of_documents_change_no_ranking():
    groups = bilingual(4)
    for name in ("mean", "max", "weighted", "borda"):
        ranker = BilingualRanker(aggregator=name, regularisation=0.01).fit(groups)
        before = ranker.predict(groups)
        turned = Groups(tuple(replace(g, candidates=g.candidates[::-1], others=g.others[::-1]) for g in groups))
        for one, other in zip(before, ranker.predict(turned), strict=True):
            np.testing.assert_allclose(one, other[::-1], atol=1e-12)
        if name != "weighted":  # whose shares of documents depend on the length
            ranker._fitted = replace(ranker._fitted, weights=7.5 * ranker._fitted.weights)
            assert orders(ranker.predict(groups)) == orders(before)


def test_aggregators_by_hand():
    scores = np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    assert aggregate(scores, "weighted", np.array([0.0, math.log(3)])).tolist() == pytest.approx([0.75, 1.0, 1.5])
    assert aggregate(scores, "borda").tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert aggregate(scores, "softmax")[0] == pytest.approx(math.log((math.exp(3) + 1) / 2))
    with pytest.raises(ParameterError, match="no way"):
        aggregate(scores, "median")


# --- which documents help, and edge cases


def test_good_documents_of_the_other_language_are_chosen():
    groups = bilingual(5, m=6)
    best = Groups(
        tuple(
            replace(g, others=tuple(replace(c, features={"z": c.grade + 0.01 * k}) for k, c in enumerate(g.others)))
            for g in groups
        )
    )
    ranker = BilingualRanker(constraints=2, regularisation=0.01).fit(best)
    for group in best:
        rows = ranker._choose(group, ranker._fitted.extractor(group), ranker._fitted)
        kept = group.other_grades[rows]
        assert kept.min() >= np.sort(group.other_grades)[-2]
    by_grade = BilingualRanker(constraints=2, choose="grades", regularisation=0.01).fit(best)
    first = BilingualRanker(constraints=2, choose="given", regularisation=0.01).fit(best)
    assert first._choose(best[0], first._fitted.extractor(best[0]), first._fitted).tolist() == [0, 1]
    assert len(by_grade.pair_scores(best)[0][0]) == 2


def test_groups_without_help_and_with_little_of_it_are_ranked():
    groups = bilingual(6)
    ranker = BilingualRanker(constraints=2, regularisation=0.01).fit(groups)
    bare = Groups(tuple(replace(group, others=group.others[:k]) for k, group in enumerate(groups[:3])))
    found = ranker.predict(bare)
    assert [len(own) for own in found] == [4, 4, 4] and np.isfinite(np.concatenate(found)).all()
    weights = ranker.feature_weights()
    x = min_max(np.array([[each.features["a"], each.features["b"]] for each in bare[0].candidates]))
    np.testing.assert_allclose(found[0], x @ [weights["a"], weights["b"]])
    single = Groups((replace(groups[0], candidates=groups[0].candidates[:1]), Group("none", ())))
    assert [own.shape for own in ranker.predict(single)] == [(1,), (0,)]


def test_nothing_to_learn_from_is_said():
    groups = bilingual(0)
    level = Groups(
        tuple(replace(g, candidates=tuple(replace(c, grade=1.0) for c in g.candidates)) for g in groups), "x"
    )
    for given in (level, Groups(())):
        with pytest.raises(DocumentsError, match="no two candidates of a group have different grades"):
            BilingualRanker().fit(given)
    bare = Groups((Group("q", (Candidate("a", grade=1), Candidate("b", grade=2))),), "bare")
    with pytest.raises(ParameterError, match="bare has nothing to see its candidates by"):
        BilingualRanker().fit(bare)
    with pytest.raises(ParameterError, match="features of kind 'dic': what they need is not in"):
        BilingualRanker(features=("dic",)).fit(groups)
    with pytest.raises(ParameterError, match="features should be of given, index"):
        BilingualRanker(features=("words",)).fit(groups)
    with pytest.raises(ParameterError, match="give Groups"):
        BilingualRanker().fit([1])


def test_draws_of_pairs_and_balance():
    groups = bilingual(8, n_groups=3, n=6, m=4)
    every = BilingualRanker(regularisation=0.01)
    prepared = []

    class Looking(BilingualRanker):
        def _trained(self, given, *rest, **more):
            prepared.append(given)
            return super()._trained(given, *rest, **more)

    Looking(regularisation=0.01).fit(groups)
    whole, few = every._pairs(prepared[-1]), BilingualRanker(most_pairs=10)._pairs(prepared[-1])
    assert len(few) == 30 and len(whole) > 300
    known = set(zip(whole.above.tolist(), whole.below.tolist(), strict=True))
    drawn = list(zip(few.above.tolist(), few.below.tolist(), strict=True))
    assert set(drawn) <= known and len(set(drawn)) == len(drawn)
    assert whole.shares.mean() == pytest.approx(1) and len(np.unique(whole.shares.round(9))) > 1
    assert np.ptp(BilingualRanker(balance="pairs")._pairs(prepared[-1]).shares) == pytest.approx(0)


def test_regularisation_is_chosen_on_held_out_groups():
    ranker = BilingualRanker().fit(bilingual(9, n_groups=10))
    assert ranker.regularisation_ in (1e-4, 1e-3, 1e-2, 1e-1) and ranker.tuning_.shape == (4,)
    single = Groups(bilingual(9, n_groups=1).groups)
    assert BilingualRanker().fit(single).regularisation_ == 1e-2


def test_a_stopped_run_goes_on_to_the_bit(tmp_path, monkeypatch):
    groups, make = bilingual(11, other=False), lambda: BilingualRanker(regularisation=1e-3, tolerance=0.0, iterations=6)
    whole = make().fit(groups)
    real, steps = PairAscent.step, []

    def stopping(self, state):
        steps.append(state.iteration)
        if len(steps) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(self, state)

    monkeypatch.setattr(PairAscent, "step", stopping)
    with pytest.raises(Interrupted):
        make().fit(groups, checkpoint=tmp_path / "checkpoint")
    monkeypatch.setattr(PairAscent, "step", real)
    again = make().fit(groups, checkpoint=tmp_path / "checkpoint", resume=True)
    assert again.feature_weights() == whole.feature_weights() and again.trace_.tolist() == whole.trace_.tolist()


# --- features


DOCUMENTS = [["a", "b", "a"], ["b", "c"], [], ["c", "c", "d", "unheard"], ["a", "d", "d", "b", "c", "e"]]


def test_measures_of_the_index_agree_with_their_formulas():
    index = Index.of(DOCUMENTS)
    n, average = len(DOCUMENTS), sum(map(len, DOCUMENTS)) / len(DOCUMENTS)
    total = Counter(word for document in DOCUMENTS for word in document)
    whole = total.total()
    query = ["a", "d", "a", "nowhere"]
    others = [*DOCUMENTS, ["a", "new", "new"]]
    encoded = index.encode(others)
    for k, document in enumerate(others):
        tf, size, different = Counter(document), len(document), len(set(document))
        wanted = [0.0, 0.0, 0.0, 0.0]
        for word in ("a", "d", "a"):
            held = sum(word in each for each in DOCUMENTS)
            idf = math.log(1 + (n - held + 0.5) / (held + 0.5))
            wanted[0] += idf * tf[word] * 2.2 / (tf[word] + 1.2 * (0.25 + 0.75 * size / average))
            share = total[word] / whole
            wanted[1] += math.log((tf[word] + 1000 * share) / (size + 1000))
            wanted[2] += math.log(0.6 * tf[word] / size + 0.4 * share if size else share)
            wanted[3] += math.log((max(tf[word] - 0.7, 0) + 0.7 * different * share) / size if size else share)
        found = [
            measure(query, encoded)[k]
            for measure in (index.bm25, index.dirichlet, index.jelinek_mercer, index.absolute_discounting)
        ]
        assert found == pytest.approx(wanted)


def test_feedback_adds_words_of_the_best_documents():
    documents = [["cat", "whisker"], ["cat", "whisker", "paw"], ["whisker", "sofa"], ["stone"], ["sand"], ["rock"]]
    index = Index.of(documents)
    encoded = index.encode(documents)
    plain, more = index.bm25(["cat"], encoded), index.bm25_feedback(["cat"], encoded)
    assert plain[2] == 0 and more[2] > 0 and more[:2].min() > more[2] and not more[3:].any()
    assert index.bm25_feedback(["nowhere"], encoded).tolist() == [0.0] * 6
    assert index.bm25_feedback([], index.encode([])).shape == (0,)


def by_hand(document, other, words, ours, theirs):
    """DIC and both ratios, as the formulas say."""
    idf = {}
    n, m = len(ours), len(theirs)
    here, there = Counter(document), Counter(other)
    pairs = [(e, c) for e, c in words if e in here and c in there]
    for e, c in pairs:
        held = sum(e in each for each in ours) + sum(c in each for each in theirs)
        idf[e, c] = math.log((n + m) / held)
    top = sum(here[e] * there[c] * idf[e, c] ** 2 for e, c in pairs)

    def z(counts, side, collection):
        known = sum((counts[p[side]] * idf[p]) ** 2 for p in pairs)
        rest = {w for w in counts if not any(p[side] == w for p in pairs)}
        return known + sum(
            (counts[w] * math.log(len(collection) / sum(w in each for each in collection))) ** 2 for w in rest
        )

    below = z(here, 0, ours) * z(there, 1, theirs)
    share = [
        sum(counts[w] for w in counts if any(p[side] == w for p in pairs)) / max(1, counts.total())
        for side, counts in ((0, here), (1, there))
    ]
    return top / math.sqrt(below) if below else 0.0, *share


def test_similarities_agree_with_their_formulas():
    rng = np.random.default_rng(0)
    ours = [[f"e{k}" for k in rng.integers(6, size=rng.integers(0, 7))] for _ in range(5)]
    theirs = [[f"c{k}" for k in rng.integers(6, size=rng.integers(0, 7))] for _ in range(4)]
    words = sorted({(f"e{i}", f"c{j}") for i, j in rng.integers(6, size=(9, 2))})
    dictionary = Translations.of(words, Index.of(ours), Index.of(theirs))
    back = Translations.of([(c, e) for e, c in words], Index.of(theirs), Index.of(ours)).compare(theirs, ours)
    found = dictionary.compare(ours, theirs)
    used = [(e, c) for e, c in words if any(e in d for d in ours) and any(c in d for d in theirs)]
    for i, j in itertools.product(range(5), range(4)):
        dic, forward, backward = by_hand(ours[i], theirs[j], used, ours, theirs)
        assert found.dic[i, j] == pytest.approx(dic, abs=1e-12)
        assert (found.forward[i, j], found.backward[i, j]) == pytest.approx((forward, backward))
        assert back.dic[j, i] == pytest.approx(dic, abs=1e-12) and back.forward[j, i] == pytest.approx(backward)
        assert 0 <= found.dic[i, j] <= 1 + 1e-12 and 0 <= found.translated[i, j] <= 1 + 1e-12
    np.testing.assert_allclose(found.returned, back.translated.T, atol=1e-12)


def test_a_document_and_its_image_are_alike_and_strangers_are_not():
    ours = [["a", "b", "a"], ["c", "d"], ["b", "c", "e"]]
    image = [[word.upper() for word in each] for each in ours]
    words = [(word, word.upper()) for word in "abcde"]
    found = Translations.of(words, Index.of(ours), Index.of(image)).compare(ours, image)
    assert np.diag(found.dic) == pytest.approx(1) and np.diag(found.translated) == pytest.approx(1)
    assert np.diag(found.forward).tolist() == np.diag(found.backward).tolist() == [1, 1, 1]
    assert found.dic[0, 1] == 0 and found.forward[0, 1] == 0
    nothing = Translations.of([], Index.of(ours), Index.of(image)).compare([["x"], []], image)
    assert not nothing.dic.any() and not nothing.translated.any()


def test_lexicons_are_read_as_the_command_writes_them(tmp_path):
    file = tmp_path / "words.tsv"
    file.write_text(
        "source\ttarget\ttarget_given_source\tsource_given_target\tcount\nDas\tThe\t0.8\t0.5\t3\nHaus\thouse\n"
    )
    assert read_translations(file) == [("Das", "The", 0.8), ("Haus", "house", 1.0)]
    file.write_text("das\tthe\t0.8\ndas the\n")
    with pytest.raises(Exception, match=r"words.tsv, line 2: 'das the' is no entry"):
        read_translations(str(file))
    index = Index.of([["das", "haus"]]), Index.of([["the", "house"]])
    kept = Translations.of(
        [("Das", "The", 0.8), ("das", "the", 0.05), ("haus", "the", 0.05)], *index, least=0.1, lowercase=True
    )
    assert len(kept) == 1 and kept.chance.tolist() == [0.8]


def test_addresses():
    assert url_similarity("http://a.b/c", "https://a.b/c") == 1.0
    assert url_similarity("", "x") == 0.0 and url_similarity("abc", "xyz") == 0.0


def test_outputs_are_seen_beside_their_reference_and_the_others():
    index = Index.of([["the", "cat", "sat", "."]])
    found = output_features(["The cat sat.", "A dog stood!", "", "the cat sat ."], "The cat sat.", index)
    columns = dict(zip(OUTPUT_FEATURES, found.T, strict=True))
    assert found.shape == (4, len(OUTPUT_FEATURES)) and np.isfinite(found).all()
    assert columns["chrf"][0] == 1.0 > columns["chrf"][3] > columns["chrf"][1] >= columns["chrf"][2] == 0.0
    assert columns["edits"].tolist() == [0.0, -1.0, -1.0, 0.0] and columns["words1-f"][3] == 1.0
    assert columns["others-words1"][0] > columns["others-words1"][1] and columns["too-short"][2] < 0
    assert output_features([], "x", index).shape == (0, len(OUTPUT_FEATURES))


# --- scores


def test_tau_agrees_with_a_count_and_with_scipy():
    rng = np.random.default_rng(2)
    for n in (2, 5, 9):
        scores, grades = rng.permutation(n), rng.permutation(n)
        assert kendall_tau(scores, grades) == pytest.approx(kendalltau(scores, grades).statistic)
        tied = rng.integers(3, size=n)
        right = sum(scores[i] > scores[j] for i in range(n) for j in range(n) if tied[i] > tied[j])
        wrong = sum(scores[i] < scores[j] for i in range(n) for j in range(n) if tied[i] > tied[j])
        assert ordered_pairs(scores, tied) == (right, wrong, 0)
        if right + wrong:
            assert kendall_tau(scores, tied) == pytest.approx((right - wrong) / (right + wrong))
    assert kendall_tau([1, 2, 3], [1, 2, 3]) == 1 and kendall_tau([1, 2, 3], [3, 2, 1]) == -1
    assert math.isnan(kendall_tau([1, 2], [1, 1])) and ordered_pairs([1, 2], [math.nan, 1]) == (0, 0, 0)


def test_scores_and_comparisons_of_rankings():
    groups = bilingual(12, n_groups=30)
    good = [group.grades + 0.1 * k for k, group in enumerate(groups)]
    bad = [-own for own in good]
    score = score_ranking(good, groups)
    assert score.pairs == score.tau == 100 and score.interval == (100, 100) and score.tau_interval == (100, 100)
    assert float(score_ranking(bad, groups)) == 0 and score_ranking(bad, groups).tau == -100
    gain = compare_rankings(good, bad, groups, measure="tau")
    assert gain.delta == 200 and gain.p_value < 0.01 and "ΔTAU = +200.00" in str(gain)
    assert compare_rankings(good, good, groups).p_value == 1.0
    said = score.as_dict()
    assert said["tau"] == 100 and said["groups"] == score.groups and said["tau_interval"] == [100, 100]
    with pytest.raises(DocumentsError, match="scores of 1 groups"):
        score_ranking(good[:1], groups)
    with pytest.raises(DocumentsError, match="has 4 candidates, and the ranking 2 scores"):
        score_ranking([[1, 2], *good[1:]], groups)
    with pytest.raises(ParameterError, match="'pairs' or 'tau'"):
        compare_rankings(good, bad, groups, measure="ndcg")


# --- saved


def test_a_dictionary_and_an_index_are_kept(tmp_path):
    ranker = BilingualRanker(lexicon=DICTIONARY, regularisation=0.01).fit(ranked())
    assert set(ranker._fitted.extractor.kinds) == {"given", "index", "dic", "ratio", "mt", "url"}
    ranker.save(tmp_path / "model")
    loaded = store.load(tmp_path / "model")
    assert loaded.regularisation_ == 0.01 and loaded.feature_weights() == ranker.feature_weights()
    for one, other in zip(ranker.predict(new_ranked()), loaded.predict(new_ranked()), strict=True):
        assert one.tolist() == other.tolist()
    saved = store.read(tmp_path / "model")
    saved.arrays["translations.source"][0] = 10**6
    with pytest.raises(ModelError, match="dictionary of this model"):
        BilingualRanker._from_saved(saved)
