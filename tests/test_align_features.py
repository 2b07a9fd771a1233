"""Features of supervised alignment against slow references, on odd words and small texts."""

from __future__ import annotations

import math
import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data import Bitext, Links
from isogloss.data.formats import as_bitext
from isogloss.errors import LinksError, ModelError, ParameterError, UsageError
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.align.features import SETS, FeatureExtractor, PairFeatures
from isogloss.tasks.align.features.writing import writing_of
from isogloss.tasks.align.priors import fold

WORDS = (
    'the The café cafe CAFÉ Москва moskva 日本 日 ١٢ 12 12% , « " a naïve 🙂 ’ ǅ ß İstanbul السلام שלום नमस्ते ไทย '
    "\u0301 x\u0301 straße translation traduction " + "long" * 20 + " " + "ab" * 40
).split()
NO_ALIGNER = ("association", "position", "shape", "frequency", "context", "lexical")
sentences = st.lists(st.sampled_from(WORDS), max_size=5)
texts = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6)


def usable(pairs):
    return [pair for pair in pairs if pair[0] and pair[1]]


# --- references, written for one cell at a time


def subsequence(a, b):
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def edits(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def common(a, b):
    return next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def lower(pair):
    return tuple(tuple(word.lower() for word in side) for side in pair)


def counts_of(pairs, without=None):
    """Sentence pairs with each source word, each target word, and each pair of them; one pair taken out once."""
    source, target, both = {}, {}, {}
    for pair in pairs:
        if without is not None and pair == without:
            without = None
            continue
        for a in set(pair[0]):
            source[a] = source.get(a, 0) + 1
            for b in set(pair[1]):
                both[a, b] = both.get((a, b), 0) + 1
        for b in set(pair[1]):
            target[b] = target.get(b, 0) + 1
    return source, target, both


def reference(pair, text):
    """name -> list of rows, for one pair; `text` is what the statistics are of."""
    text = [lower(p) for p in usable(text)]
    low = lower(pair)
    inside = low in text
    source, target, both = counts_of(text, low if inside else None)
    whole = counts_of(text)
    n_pairs = len(text) - inside
    n_source, n_target = len(pair[0]), len(pair[1])
    dice = [[2 * both.get((a, b), 0) / max(1, source.get(a, 0) + target.get(b, 0)) for b in low[1]] for a in low[0]]
    out: dict[str, np.ndarray] = {}

    def put(name, i, j, value):
        out.setdefault(name, np.zeros((n_source, n_target)))[i, j] = value

    for i, a in enumerate(pair[0]):
        for j, b in enumerate(pair[1]):
            x, y = low[0][i], low[1][j]
            put("bias", i, j, 1)
            put("dice", i, j, dice[i][j])
            llr, pmi = information(both.get((x, y), 0), source.get(x, 0), target.get(y, 0), n_pairs)
            put("llr", i, j, llr)
            put("pmi", i, j, pmi)
            d = abs((i + 0.5) / n_source - (j + 0.5) / n_target)
            words = min(1, d * max(n_source, n_target) / 10)
            put("distance", i, j, d)
            put("distance_squared", i, j, d**2)
            put("distance_root", i, j, d**0.5)
            put("diagonal", i, j, words)
            put("diagonal_squared", i, j, words**2)
            put("first", i, j, i == j == 0)
            put("last", i, j, i == n_source - 1 and j == n_target - 1)
            put("dice_proximity", i, j, dice[i][j] * (1 - d))
            for name, value in shape(a, b, i, j).items():
                put(name, i, j, value)
            ranks, kinds = [], []
            for word, found, all_counts in ((x, source, whole[0]), (y, target, whole[1])):
                c = found.get(word, 0)
                ranks.append(1 + sum(v > c for v in all_counts.values()))
                kinds.append((ranks[-1] <= 100, c <= 1))
            size = max(len(whole[0]), len(whole[1]))
            put("rank_difference", i, j, abs(math.log(ranks[0]) - math.log(ranks[1])) / math.log(size + 1))
            for k, name in enumerate(("frequent", "rare")):
                put(f"both_{name}", i, j, kinds[0][k] and kinds[1][k])
                put(f"one_{name}", i, j, kinds[0][k] != kinds[1][k])
            put("next_dice", i, j, dice[i + 1][j + 1] if i + 1 < n_source and j + 1 < n_target else 0)
            put("previous_dice", i, j, dice[i - 1][j - 1] if i and j else 0)
            row = max((dice[i][k] for k in range(n_target) if k != j), default=0)
            column = max((dice[k][j] for k in range(n_source) if k != i), default=0)
            put("dice_in_row", i, j, dice[i][j] / (dice[i][j] + row) if dice[i][j] else 0)
            put("dice_in_column", i, j, dice[i][j] / (dice[i][j] + column) if dice[i][j] else 0)
    return out


def information(both, a, b, n):
    """Log-likelihood ratio, as twice n times the mutual information of the table, and pointwise information."""
    if both * n <= a * b:
        return 0.0, 0.0
    table = np.array([[both, a - both], [b - both, n - a - b + both]]) / n
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    g = 2 * n * sum(p * math.log(p / q) for p, q in zip(table.ravel(), expected.ravel()) if p > 0)
    pmi = 1.0 if both == n else math.log(both * n / (a * b)) / -math.log(both / n)
    return g / (g + 10.83), pmi


def shape(a, b, i, j):
    x, y = fold(a.lower())[:64], fold(b.lower())[:64]
    longer = max(len(x), len(y))

    def consonants(word):
        if not any(c.isalpha() for c in word):
            return None
        left = "".join(c for c in fold(word.lower()) if c not in "aeiouy")
        return left if sum(c.isalpha() for c in left) > 1 else None

    def digits(word):
        return "".join(str(unicodedata.digit(c)) for c in word if unicodedata.digit(c, None) is not None)

    def number(word):
        return bool(digits(word)) and not any(c.isalpha() for c in word)

    def mark(word):
        return not any(c.isalnum() for c in word)

    def capital(word, place):
        return place > 0 and word[0].isupper()

    def script(word):
        return next((unicodedata.name(c, "?").split()[0].split("-")[0] for c in word.lower() if c.isalpha()), None)

    def same(p, q):
        return bool(p) and p == q

    quotes = str.maketrans("«’", "\"'")
    ratio = (lambda k: k / longer) if x and y else (lambda k: 0.0)
    return {
        "exact": a == b,
        "folded": same(fold(a.lower()), fold(b.lower())),
        "consonants": same(consonants(a), consonants(b)),
        "digits": same(digits(a), digits(b)),
        "punctuation": mark(a) and mark(b) and a.translate(quotes) == b.translate(quotes),
        "subsequence": ratio(subsequence(x, y)),
        "edit": 1 - edits(x, y) / longer if x and y else 0.0,
        "prefix": ratio(common(x, y)),
        "suffix": ratio(common(x[::-1], y[::-1])),
        "short": all(len(fold(w.lower())) <= 3 and not mark(w) for w in (a, b)),
        "one_number": number(a) != number(b),
        "one_punctuation": mark(a) != mark(b),
        "capitals": capital(a, i) and capital(b, j),
        "one_capital": capital(a, i) != capital(b, j),
        "same_script": same(script(a), script(b)),
    }


# --- the sets without an aligner


@settings(max_examples=60, deadline=None)
@given(texts, texts, st.booleans())
def test_features_agree_with_references(labelled, others, together):
    labelled = [*labelled, (["the"], ["12", "Москва"])]
    text = [p for p in labelled if not together or lower(p) not in map(lower, others)] + (others if together else [])
    extractor = FeatureExtractor(sets=NO_ALIGNER)
    extractor.fit(as_bitext(labelled), as_bitext(others) if together else None)
    for pairs in (labelled, others):
        features = extractor.transform(Bitext.of(pairs))
        assert features.links.dtype == np.float32 and len(features) == len(pairs)
        assert features.links.min(initial=0) >= 0 and features.links.max(initial=1) <= 1
        for k, pair in enumerate(pairs):
            if not (pair[0] and pair[1]):
                assert features.shape(k) == (0, 0)
                continue
            expected = reference(pair, text)
            assert set(expected) == set(features.link_names)
            for name, values in expected.items():
                assert features.matrix(k, name) == pytest.approx(values, abs=2e-6), (name, pair)


@settings(max_examples=40, deadline=None)
@given(texts)
def test_swapping_the_languages_transposes_the_features(pairs):
    bitext = Bitext.of([*pairs, (["a"], ["b", "c"])])
    there = FeatureExtractor(sets=NO_ALIGNER).fit(bitext).transform(bitext)
    back = FeatureExtractor(sets=NO_ALIGNER).fit(bitext.swapped()).transform(bitext.swapped())
    swapped = {"dice_in_row": "dice_in_column", "dice_in_column": "dice_in_row"}
    for k in range(len(bitext)):
        for name in there.link_names:
            assert np.array_equal(there.matrix(k, name), back.matrix(k, swapped.get(name, name)).T), name
    assert np.array_equal(there.source_nulls, back.target_nulls)


def test_indicators_name_frequent_words():
    pairs = (
        [(["the", "house", "."], ["das", "Haus", "."])] * 4 + [(["the", "dog"], ["der", "Hund"])] * 3 + [([], ["x"])]
    )
    bitext = Bitext.of(pairs)
    extractor = FeatureExtractor(sets=("lexical",), lexical_pairs=2, lexical_words=1).fit(bitext)
    features = extractor.transform(bitext)
    assert features.lexical_names == (
        "pair:the|das", "pair:the|haus", "pair:house|das", "pair:house|haus", "source:the", "target:das",
    )  # fmt: skip
    indptr, indices = features.lexical
    fired = [[features.lexical_names[k] for k in indices[a:b]] for a, b in pairwise(indptr)]
    assert fired[:6] == [
        ["pair:the|das", "source:the", "target:das"], ["pair:the|haus", "source:the"], ["source:the"],
        ["pair:house|das", "target:das"], ["pair:house|haus"], [],
    ]  # fmt: skip
    part = features[4:6]
    assert part.lexical[0].tolist() == [0, 1, 2, 2, 2, 3, 4, 4, 4]
    assert [features.lexical_names[k] for k in part.lexical[1]] == ["source:the"] * 4


def test_a_part_shares_memory_and_means_the_same():
    bitext = samples.bitext("en-de")
    features = FeatureExtractor(sets=NO_ALIGNER).fit(bitext).transform(bitext)
    part = features[10:20]
    assert np.shares_memory(part.links, features.links) and len(part) == 10
    for k in range(10):
        assert np.array_equal(part.matrix(k, "dice"), features.matrix(10 + k, "dice"))
        assert np.array_equal(part.source_nulls[part.source_of(k)], features.source_nulls[features.source_of(10 + k)])
        assert np.array_equal(part.target_nulls[part.target_of(k)], features.target_nulls[features.target_of(10 + k)])
    assert features[-1].shape(0) == features.shape(len(features) - 1) and len(features[5:2]) == 0
    with pytest.raises(IndexError):
        features[len(features)]
    with pytest.raises(UsageError, match="dice"):
        features.column("nice")


def test_a_pair_has_the_same_features_in_whatever_company():
    bitext = samples.bitext("en-de")
    extractor = FeatureExtractor().fit(bitext.part(0, 30))
    features = extractor.transform(bitext)
    for k in (0, 7, 29, 30, 44):
        alone = extractor.transform([bitext[k]])
        assert np.array_equal(alone.links, features[k].links)
        assert np.array_equal(alone.source_nulls, features[k].source_nulls)


def test_null_features_say_how_frequent_a_word_is():
    pairs = [(["a", "b", "7"], ["x"])] * 3 + [(["a", "."], ["x", "rare"])]
    features = FeatureExtractor(sets=("position",)).fit(Bitext.of(pairs)).transform([(["a", ".", "new", "7"], ["x"])])
    found = dict(zip(features.null_names, features.source_nulls.T.tolist()))
    assert found == {
        "bias": [1, 1, 1, 1], "rank_10": [1, 1, 1, 1], "rank_100": [0] * 4, "rank_1000": [0] * 4,
        "rare": [0, 1, 1, 0], "punctuation": [0, 1, 0, 0], "number": [0, 0, 0, 1],
        "best_dice": pytest.approx([1.0, 0.4, 0.0, 6 / 7]),
    }  # fmt: skip


# --- aligners


@pytest.fixture(scope="module")
def bitext():
    return samples.bitext("en-de")


@pytest.fixture(scope="module")
def fitted(bitext):
    return FeatureExtractor(sets=SETS).fit(bitext.part(0, 25), bitext.part(20, 40))


def test_posteriors_are_those_of_the_aligner(bitext, fitted):
    text = Bitext.of([bitext[k] for k in range(40)])
    aligner = HMMAligner().fit(text)
    features = fitted.transform(bitext)
    mean, (forward, backward) = aligner.predict_proba(text), aligner.predict_directions(text)
    fresh, new = aligner.predict_proba(bitext), aligner.predict_directions(bitext)
    for k in range(len(bitext)):
        known = k < 40  # these were in the text: own evidence left out
        p = mean[k] if known else fresh[k]
        assert features.matrix(k, "hmm") == pytest.approx(p, abs=2e-5)
        assert features.matrix(k, "hmm_forward") == pytest.approx((forward if known else new[0])[k], abs=2e-5)
        assert features.matrix(k, "hmm_backward") == pytest.approx((backward if known else new[1])[k], abs=2e-5)
        f, b = features.matrix(k, "hmm_forward"), features.matrix(k, "hmm_backward")
        p = (f + b) / 2
        assert features.matrix(k, "hmm_product") == pytest.approx(f * b)
        clipped = np.clip(p.astype(float), 1 / (1 + math.e**10), 1 / (1 + math.e**-10))
        assert features.matrix(k, "hmm_logit") == pytest.approx(0.5 + np.log(clipped / (1 - clipped)) / 20, abs=1e-5)
        assert np.array_equal(features.matrix(k, "hmm_link"), p >= np.float32(aligner.threshold_))
        best = (p > 0) & (p == p.max(axis=1, keepdims=True)), (p > 0) & (p == p.max(axis=0, keepdims=True))
        assert np.array_equal(features.matrix(k, "hmm_best_in_row"), best[0])
        assert np.array_equal(features.matrix(k, "hmm_best_in_column"), best[1])
        nulls = features.source_nulls[features.source_of(k)], features.target_nulls[features.target_of(k)]
        null, best_at = features.null_names.index("hmm_null"), features.null_names.index("hmm_best")
        assert nulls[0][:, null] + b.sum(axis=1) == pytest.approx(1, abs=2e-3)  # the word's partner, or none
        assert nulls[1][:, null] + f.sum(axis=0) == pytest.approx(1, abs=2e-3)
        assert nulls[0][:, best_at] == pytest.approx(p.max(axis=1))
    assert "model1_forward" in features.link_names and features.matrix(0, "model2_mean").max() > 0.5


def test_stems_are_posteriors_over_words_cut_short(bitext, fitted):
    def cut(pairs, n):
        return Bitext.of([tuple([word[:n] for word in side] for side in pair) for pair in pairs])

    features = fitted.transform(bitext)
    means = [[features.matrix(k, "hmm") for k in range(len(bitext))]]
    for n in (3, 5):
        text = cut([bitext[k] for k in range(40)], n)
        aligner = HMMAligner().fit(text)
        known, fresh = aligner.predict_proba(text), aligner.predict_proba(cut(bitext, n))
        means.append([known[k] if k < 40 else fresh[k] for k in range(len(bitext))])
        for k in range(len(bitext)):
            assert features.matrix(k, f"stem_{n}") == pytest.approx(means[-1][k], abs=2e-5)
    for k in range(len(bitext)):
        consensus = sum(mean[k] for mean in means) / 3
        assert features.matrix(k, "consensus") == pytest.approx(consensus, abs=2e-5)
        best = features.source_nulls[features.source_of(k)][:, features.null_names.index("consensus_best")]
        assert best == pytest.approx(consensus.max(axis=1), abs=2e-5)


def test_trust_is_the_logit_of_the_consensus_times_what_tells_how_far_to_trust_it(bitext, fitted):
    features = fitted.transform(bitext)
    named = [name for name in features.link_names if name.startswith("trust_")]
    assert len(named) == 9
    for name in named:
        own = features.links[:, features.column(name.removeprefix("trust_"))]
        logit = features.links[:, features.column("consensus_logit")]
        assert np.array_equal(features.links[:, features.column(name)], logit * own)
    few = FeatureExtractor(sets=("association", "trust")).fit(bitext)
    assert few.link_names == ("bias", "dice", "llr", "pmi", "trust_dice")


AROUND = ("above_left", "above", "above_right", "left", None, "right", "below_left", "below", "below_right")


@settings(max_examples=40, deadline=None)
@given(texts)
def test_surroundings_are_neighbours_and_rivals(pairs):
    if not usable(pairs):
        return
    features = FeatureExtractor(sets=("association", "surroundings")).fit(as_bitext(pairs)).transform(as_bitext(pairs))
    for k in range(len(pairs)):
        dice = features.matrix(k, "dice")
        n, m = dice.shape
        for i in range(n):
            for j in range(m):
                for at, name in enumerate(AROUND):
                    x, y = i + at // 3 - 1, j + at % 3 - 1
                    if name is not None:
                        expected = dice[x, y] if 0 <= x < n and 0 <= y < m else 0
                        assert features.matrix(k, f"around_{name}")[i, j] == expected
                row, column = np.delete(dice[i], j), np.delete(dice[:, j], i)
                assert features.matrix(k, "around_row_rival")[i, j] == row.max(initial=0)
                assert features.matrix(k, "around_column_rival")[i, j] == column.max(initial=0)
                assert features.matrix(k, "around_row_sum")[i, j] == pytest.approx(min(1, dice[i].sum() / 2))
                assert features.matrix(k, "around_column_sum")[i, j] == pytest.approx(min(1, dice[:, j].sum() / 2))


def test_kept_and_read_again(bitext, fitted):
    arrays = fitted.arrays()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays.values())
    again = FeatureExtractor.from_arrays(arrays)
    new = bitext.part(40, len(bitext))
    a, b = fitted.transform(new), again.transform(new)
    assert a.link_names == b.link_names and a.lexical_names == b.lexical_names
    assert np.array_equal(a.links, b.links) and np.array_equal(a.source_nulls, b.source_nulls)
    assert np.array_equal(a.lexical[1], b.lexical[1])
    assert sorted(again.arrays()) == sorted(arrays)
    broken = dict(arrays)
    del broken["counts/columns"]
    with pytest.raises(ModelError):
        FeatureExtractor.from_arrays(broken)
    with pytest.raises(ModelError):
        FeatureExtractor.from_arrays({**arrays, "counts/columns": arrays["counts/columns"] + 1000})


def test_threads_agree(bitext, fitted):
    one, two = (FeatureExtractor(sets=SETS, threads=n).fit(bitext.part(0, 25), bitext.part(20, 40)) for n in (1, 2))
    a, b = one.transform(bitext), two.transform(bitext)
    assert np.array_equal(a.links, b.links) and np.array_equal(a.links, fitted.transform(bitext).links)


# --- what the user brings


def test_links_of_other_systems():
    bitext = Bitext.of([("a b", "x y z"), ("", "q"), ("c", "u")])
    links = Links.of([{(0, 2), (1, 0)}, set(), {(0, 0)}])
    sure = Links(links.offsets, links.source, links.target, np.array([0.25, np.nan, 1.0], np.float32))
    extractor = FeatureExtractor(sets=("position",), links=("other", "sure")).fit(bitext)
    features = extractor.transform(bitext, {"other": links, "sure": sure})
    assert features.matrix(0, "links:other").tolist() == [[0, 0, 1], [1, 0, 0]]
    assert features.matrix(0, "links:sure").tolist() == [[0, 0, 0.25], [1, 0, 0]]
    assert features.matrix(2, "links:other").tolist() == [[1]]
    with pytest.raises(UsageError, match="other, sure"):
        extractor.transform(bitext)
    with pytest.raises(LinksError, match="of 2 pairs, the text has 3"):
        extractor.transform(bitext, {"other": links[:2], "sure": sure})
    with pytest.raises(LinksError, match="line 3"):
        extractor.transform(bitext, {"other": Links.of([set(), set(), {(0, 1)}]), "sure": sure})


def test_dictionary(tmp_path):
    file = tmp_path / "words.tsv"
    file.write_text("Haus\thouse\nhaus\thome\nCafé\tcoffee house\nüber\tover\n", encoding="utf-8")
    bitext = Bitext.of([(["das", "Haus", "Über"], ["the", "House", "home", "over"]), (["haus"], ["home"])])
    for dictionary in (file, [("Haus", "house"), ("haus", "home"), ("Café", "coffee house"), ("uber", "OVER")]):
        extractor = FeatureExtractor(sets=(), lexicon=dictionary).fit(bitext)
        features = FeatureExtractor.from_arrays(extractor.arrays()).transform(bitext)
        assert features.link_names == (
            "bias", "dictionary", "dictionary_only_in_row", "dictionary_only_in_column",
        )  # fmt: skip
        assert features.matrix(0, "dictionary").tolist() == [[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
        assert features.matrix(0, "dictionary_only_in_row").tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
        assert features.matrix(0, "dictionary_only_in_column").tolist() == [[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
        assert features.matrix(1, "dictionary_only_in_row").tolist() == [[1]]


def same_length(view):
    return np.equal.outer([len(word) for word in view.source], [len(word) for word in view.target])


def test_functions_of_the_user(bitext):
    seen = []

    def several(view):
        assert view.shape == (len(view.source_ids), len(view.target_counts))
        seen.append(view.number)
        return {
            "half": view.features["dice"] / 2,
            "known": np.multiply.outer(view.source_ids >= 0, view.target_ids >= 0),
        }

    text = Bitext.of([("", ""), *(bitext[k] for k in range(5))])
    extractor = FeatureExtractor(sets=("association",), extra=[same_length, several]).fit(text)
    seen.clear()
    features = extractor.transform(text)
    assert features.link_names[-3:] == ("extra:same_length", "extra:half", "extra:known") and seen == [1, 2, 3, 4, 5]
    assert np.array_equal(features.matrix(2, "extra:half"), features.matrix(2, "dice") / 2)
    lengths = [[len(word) for word in side] for side in bitext[0]]
    assert features.matrix(1, "extra:same_length").tolist() == [[a == b for b in lengths[1]] for a in lengths[0]]
    kept = FeatureExtractor.from_arrays(extractor.arrays())
    with pytest.raises(UsageError, match="same_length"):
        kept.transform(text)
    kept = FeatureExtractor.from_arrays(extractor.arrays(), extra=[same_length, several])
    assert kept.transform(bitext.part(5, 9)).link_names == features.link_names


@pytest.mark.parametrize(
    "function",
    [lambda view: np.zeros((1, 1)), lambda view: np.full(view.shape, np.nan), lambda view: {"a": view.number}],
)
def test_wrong_functions_are_named(function):
    with pytest.raises(ParameterError, match="extra feature"):
        text = Bitext.of([("a b", "x"), ("c", "y z")])
        FeatureExtractor(sets=(), extra=[function]).fit(text).transform(text)


def test_wrong_options():
    with pytest.raises(ParameterError, match="association"):
        FeatureExtractor(sets=("magic",)).check_params()
    with pytest.raises(ParameterError, match="lexical_pairs"):
        FeatureExtractor(lexical_pairs=-1).check_params()
    for stems in ((3, 3), (True,), ("3",), (0,)):
        with pytest.raises(ParameterError, match="stems should be different numbers"):
            FeatureExtractor(stems=stems).fit([("a", "b")])
    with pytest.raises(UsageError, match="fit first"):
        FeatureExtractor().transform([("a", "b")])
    with pytest.raises(UsageError, match="fit first"):
        FeatureExtractor().arrays()


def test_every_script_has_a_writing():
    for code in [*range(0x20, 0x3000, 7), *range(0xA000, 0x11000, 101), 0x1F600, 0xD800]:
        look = writing_of(chr(code))
        assert isinstance(look.folded, str)


def test_empty_text_to_transform():
    features = FeatureExtractor().fit(samples.bitext("en-de").part(0, 5)).transform(Bitext.of([("", "a"), ("", "")]))
    assert isinstance(features, PairFeatures) and features.shapes.tolist() == [[0, 0], [0, 0]]
    assert features.links.shape == (0, len(features.link_names)) and len(FeatureExtractor(sets=()).link_names) == 1


def test_pairs_that_only_share_a_key_are_not_the_same():
    from isogloss.tasks.align._numba.features import same_rows

    ids, offsets = np.array([1, 2, 3, 1], np.int32), np.array([0, 2, 3, 4])
    known, starts = np.array([1, 2, 3, 1, 9], np.int32), np.array([0, 2, 3, 5])
    found = np.array([0, 1, 2])  # the last is longer there
    same_rows(ids, offsets, known, starts, found)
    assert found.tolist() == [0, 1, -1]
    found = np.array([1, -1, 1])
    same_rows(ids, offsets, known, starts, found)
    assert found.tolist() == [-1, -1, -1]
