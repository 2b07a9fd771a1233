"""Features of blocks, of pairs of links and of further links, against references that look at one part at a time."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data import Bitext
from isogloss.errors import ModelError, ParameterError, UsageError
from isogloss.structures.matching import neighbour_pairs
from isogloss.tasks.align.features import PATTERNS, SETS, FeatureExtractor
from isogloss.tasks.align.features.neighbours import VERSIONS

words = st.sampled_from(["a", "b", "c", "d", ".", "ü", "12"])
sides = st.lists(words, max_size=5)
texts = st.lists(st.tuples(sides, sides), min_size=1, max_size=8)
WEAK = ("association", "position", "blocks", "pairs")
MORE = ("lexical", "hmm", "association", "blocks", "pairs")


def spans_of(rows, size):
    return Counter(tuple(row[k : k + size]) for row in rows for k in range(len(row) - size + 1))


@settings(max_examples=40, deadline=None)
@given(texts, texts, st.integers(2, 4))
def test_blocks_agree_with_references(pairs, others, max_size):
    pairs = [*pairs, (["a", "b"], ["c"])]
    text = [pair for pair in pairs if pair[0] and pair[1]]
    extractor = FeatureExtractor(sets=WEAK).fit(Bitext.of(pairs))
    for given_pairs in (pairs, others):
        features = extractor.transform(Bitext.of(given_pairs))
        blocks = extractor.block_features(Bitext.of(given_pairs), features, max_size=max_size)
        assert len(blocks) == len(given_pairs)
        for number, pair in enumerate(given_pairs):
            if not (pair[0] and pair[1]):
                assert blocks.parts_of(number).start == blocks.parts_of(number).stop
                continue
            check_blocks(pair, text, features, blocks, number, max_size, pair in text)


def check_blocks(pair, text, features, blocks, number, max_size, inside):
    n, m = len(pair[0]), len(pair[1])
    rows = blocks.values[blocks.parts_of(number)].reshape(2, n, m, max_size - 1, len(blocks.names))
    column = {name: k for k, name in enumerate(blocks.names)}
    indptr, indices = blocks.indicators
    start = blocks.parts_of(number).start
    for side in (0, 1):
        tokens = [row[side] for row in text]
        total = sum(map(len, tokens)) + 1
        for i in range(n):
            for j in range(m):
                for size in range(2, max_size + 1):
                    found = rows[side, i, j, size - 2]
                    first = (i, j)[side]
                    here = start + ((side * n + i) * m + j) * (max_size - 1) + size - 2
                    fired = [blocks.indicator_names[k] for k in indices[indptr[here] : indptr[here + 1]]]
                    if first + size > (n, m)[side]:
                        assert not found.any() and not fired
                        continue
                    span = tuple(pair[side][first : first + size])
                    count = spans_of(tokens, size)[span]
                    count = max(0, (count if count > 1 else 0) - inside)
                    assert found[column["ngram_count"]] == pytest.approx(math.log(1 + count) / math.log(total))
                    p = (count + 1) / total
                    alone = spans_of(tokens, 1)
                    apart = math.prod((alone[(word,)] - inside + 1) / total for word in span)
                    information = math.log(p / apart) / (-(size - 1) * math.log(p)) if count else 0.0
                    assert found[column["ngram_pmi"]] == pytest.approx(min(1, max(0, information)), abs=1e-5)
                    assert [found[column[f"size_{k}"]] for k in range(2, max_size + 1)] == [
                        k == size for k in range(2, max_size + 1)
                    ]
                    cells = (slice(i, i + size), j) if side == 0 else (i, slice(j, j + size))
                    for name in ("dice", "distance", "last"):
                        mean = features.matrix(number, name)[cells].mean(dtype=float)
                        assert found[column[f"mean:{name}"]] == pytest.approx(mean, abs=1e-6)
                    assert found[column["least:dice"]] == features.matrix(number, "dice")[cells].min()
                    check_shape(span, pair[1 - side][(j, i)[side]], side, text, fired)


def check_shape(span, single, side, text, fired):
    """All words but marks are among the 25 most frequent of these small texts; all shapes seen have an indicator."""
    known = [{word for row in text for word in row[k] if word != "."} for k in (0, 1)]
    shape = " ".join(word if word in known[side] else "X" for word in span)
    other = single if single in known[1 - side] else "X"
    shapes = Counter(
        " ".join(word if word in known[side] else "X" for word in row[side][k : k + size])
        for row in text
        for size in (2, 3, 4)
        for k in range(len(row[side]) - size + 1)
    )
    if len(shapes) <= 100:
        expected = [f"[{shape}|{other}]" if side == 0 else f"[{other}|{shape}]"]
        assert fired == (expected if shape in shapes else [])


def test_blocks_of_chosen_features_and_wrong_sizes():
    bitext = samples.bitext("en-de").part(0, 10)
    extractor = FeatureExtractor(sets=WEAK).fit(bitext)
    features = extractor.transform(bitext)
    blocks = extractor.block_features(bitext, features, max_size=2, averaged=["dice"])
    assert blocks.names == ("size_2", "ngram_count", "ngram_pmi", "least:dice", "mean:dice")
    part = blocks[3:5]
    assert np.array_equal(part.values, blocks.values[blocks.offsets[3] : blocks.offsets[5]]) and len(part) == 2
    assert len(part.indicators[0]) == len(part.values) + 1 and np.shares_memory(part.values, blocks.values)
    for size in (1, 5, True, "2"):
        with pytest.raises(ParameterError, match="max_size"):
            extractor.block_features(bitext, features, max_size=size)
    with pytest.raises(UsageError, match="another text"):
        extractor.block_features(bitext.part(0, 9), features)
    with pytest.raises(UsageError, match="blocks"):
        FeatureExtractor(sets=()).fit(bitext).block_features(bitext, features)
    with pytest.raises(UsageError, match="pairs"):
        FeatureExtractor(sets=()).fit(bitext).fertility_features(bitext, features)


# --- pairs of links


def hits_of(p):
    """For a word and the next on the first side: monotone, crosswise, to one word; summed over the other side."""
    n, m = p.shape
    out = np.zeros((n, 3))
    for i in range(n - 1):
        out[i, 0] = sum(p[i, j] * p[i + 1, j + 1] for j in range(m - 1))
        out[i, 1] = sum(p[i, j + 1] * p[i + 1, j] for j in range(m - 1))
        out[i, 2] = sum(p[i, j] * p[i + 1, j] for j in range(m))
    return np.minimum(1, out)


def habits_of(rows, posteriors, threshold):
    """Of one side: sums of hits by pair of words, occurrences, words with several links, theirs, shares overall."""
    hits, often, several, tokens = {}, Counter(), Counter(), Counter()
    every, multiple = [], []
    for row, p in zip(rows, posteriors):
        for i, word in enumerate(row):
            tokens[word] += 1
            more = int((p[i] >= threshold).sum() >= 2)
            several[word] += more
            multiple.append(more)
            if i + 1 < len(row):
                key = word, row[i + 1]
                often[key] += 1
                hits[key] = hits.get(key, 0) + hits_of(p)[i]
                every.append(hits_of(p)[i])
    return hits, often, several, tokens, np.mean(every, axis=0) if every else np.zeros(3), np.mean(multiple)


@pytest.fixture(scope="module")
def judged():
    bitext = samples.bitext("en-de")
    return bitext, FeatureExtractor(sets=MORE).fit(bitext.part(0, 40))


def judged_by(text, p, threshold):
    """For every pair of the text, of which 40 were seen: shares of patterns, and of words with several links."""
    habits = (
        habits_of([row[0] for row in text[:40]], p[:40], threshold),
        habits_of([row[1] for row in text[:40]], [q.T for q in p[:40]], threshold),
    )
    for k in range(len(text)):
        inside = text[k] in text[:40]
        shares, multiples = [], []
        for side, q in ((0, p[k]), (1, p[k].T)):
            hits, often, several, tokens, overall, many = habits[side]
            words, own = text[k][side], hits_of(q)
            more = (q >= threshold).sum(axis=1) >= 2
            shares.append(np.tile(overall, (len(words), 1)))
            for i, key in enumerate(pairwise(words)):
                if often[key] > 1:
                    shares[-1][i] = (hits[key] - inside * own[i] + 2 * overall) / (often[key] - inside + 2)
            multiples.append(
                [
                    (several[word] - inside * more[i] + 2 * many) / (max(0, tokens[word] - inside) + 2)
                    for i, word in enumerate(words)
                ]
            )
        yield shares, multiples


@pytest.mark.parametrize("more", [(), ("ibm",), ("ibm", "stems")])
def test_pairs_of_links_agree_with_references(more, judged):
    bitext, extractor = judged
    if more:
        extractor = FeatureExtractor(sets=(*MORE, *more), stems=(4,), fertile_words=3).fit(bitext.part(0, 40))
    features = extractor.transform(bitext)
    found = extractor.link_pair_features(bitext, features)
    fertility = extractor.fertility_features(bitext, features)
    text = [tuple([word.lower() for word in side] for side in bitext[k]) for k in range(len(bitext))]
    first = "consensus" if "stems" in more else "hmm"  # links and own evidence by the same posteriors
    judges = {"": first} | {f"{name}_": name for name in VERSIONS if more}
    p = {
        name: [features.matrix(k, column).astype(float) for k in range(len(bitext))] for name, column in judges.items()
    }
    thresholds = {name: extractor.aligners_["model2" if name else "hmm"].threshold_ for name in judges}
    shares = {name: list(judged_by(text, p[name], np.float32(thresholds[name]))) for name in judges}
    for k in range(len(bitext)):
        own = {name: each[k] for name, each in shares.items()}
        check_pairs(found, k, p[""][k], features.matrix(k, "dice"), own)
        check_fertility(fertility, k, p[""][k], own[""][1])
        for side, made in enumerate(fertility):
            check_words(made, k, text[k][side], 3 if more else 100)


def check_pairs(found, k, p, dice, own):
    n, m = p.shape
    every = neighbour_pairs(n, m, monotone=0.0, inverted=0.0, one_to_two=0.0)
    kinds = np.repeat(np.arange(4), [(n - 1) * (m - 1)] * 2 + [n * (m - 1), (n - 1) * m])
    rows = found.values[found.parts_of(k)]
    assert len(rows) == len(every.links) == len(kinds)
    for row, kind, (a, b, c, d) in zip(rows, kinds, every.links):
        i, j = min(a, c), min(b, d)
        name = PATTERNS[kind]
        expected = {"bias": 1.0, "least_dice": min(dice[a, b], dice[c, d])}
        expected |= {"least": min(p[a, b], p[c, d]), "product": p[a, b] * p[c, d]}
        for judge, (shares, multiples) in own.items():
            source = multiples[0][i] if name == "one_to_two" else shares[0][i][min(kind, 2)]
            target = multiples[1][j] if name == "two_to_one" else shares[1][j][min(kind, 2)]
            expected |= {f"{judge}source_share": source, f"{judge}target_share": target}
        assert found.names == tuple(expected)
        assert row == pytest.approx(list(expected.values()), abs=1e-4), (k, name, i, j)


def check_words(made, k, words, n):
    """One indicator for each of the `n` most frequent words, where it stands."""
    assert 0 < len(set(made.indicator_names)) == len(made.indicator_names) <= n
    indptr, indices = made.indicators
    for token, word in zip(range(*made.parts_of(k).indices(len(made.values))), words):
        fired = [made.indicator_names[at] for at in indices[indptr[token] : indptr[token + 1]]]
        assert fired == [name for name in (f"word:{word}",) if name in made.indicator_names]


def check_fertility(fertility, k, p, multiples):
    for side, q in ((0, p), (1, p.T)):
        found = dict(zip(fertility[side].names, fertility[side].values[fertility[side].parts_of(k)].T))
        assert found["multiple"] == pytest.approx(np.array(multiples[side]), abs=1e-5)
        second = np.sort(np.pad(q, ((0, 0), (1, 0))), axis=1)[:, -2]
        assert found["second"] == pytest.approx(second, abs=1e-6)
        assert found["single"] + found["multiple"] == pytest.approx(1) and found["bias"].all()
        bands = sum(found[name] for name in ("rare", "seldom", "common", "frequent"))
        assert np.array_equal(bands, np.ones(len(q)))


def test_swapping_the_languages_swaps_the_parts(judged):
    bitext, _ = judged
    there = FeatureExtractor(sets=WEAK).fit(bitext)
    back = FeatureExtractor(sets=WEAK).fit(bitext.swapped())
    one, two = there.transform(bitext), back.transform(bitext.swapped())
    a = there.block_features(bitext, one, averaged=["dice"])
    b = back.block_features(bitext.swapped(), two, averaged=["dice"])
    x, y = there.link_pair_features(bitext, one), back.link_pair_features(bitext.swapped(), two)
    for k in range(len(bitext)):
        n, m = one.shape(k)
        first = a.values[a.parts_of(k)].reshape(2, n, m, 3, -1)
        second = b.values[b.parts_of(k)].reshape(2, m, n, 3, -1)
        assert first == pytest.approx(second[::-1].swapaxes(1, 2), abs=1e-6)
        diagonal = (n - 1) * (m - 1)
        assert x.values[x.parts_of(k)][:diagonal].reshape(n - 1, m - 1, -1) == pytest.approx(
            y.values[y.parts_of(k)][:diagonal].reshape(m - 1, n - 1, -1).swapaxes(0, 1)
        )
    p, q = there.fertility_features(bitext, one), back.fertility_features(bitext.swapped(), two)
    assert np.array_equal(p[0].values, q[1].values) and p[0].names == ("bias", "rare", "seldom", "common", "frequent")


def test_kept_and_read_again(judged):
    bitext, extractor = judged
    again = FeatureExtractor.from_arrays(extractor.arrays())
    new = bitext.part(40, len(bitext))
    features = extractor.transform(new)
    for one, two in (
        (extractor.block_features(new, features), again.block_features(new, features)),
        (extractor.link_pair_features(new, features), again.link_pair_features(new, features)),
        *zip(extractor.fertility_features(new, features), again.fertility_features(new, features)),
    ):
        assert one.names == two.names and np.array_equal(one.values, two.values)
        assert one.indicator_names == two.indicator_names
        assert one.indicators is None or np.array_equal(one.indicators[1], two.indicators[1])
    arrays = extractor.arrays()
    with pytest.raises(ModelError):
        FeatureExtractor.from_arrays({**arrays, "habits/source/hits": arrays["habits/source/hits"][1:]})
    with pytest.raises(ModelError):
        FeatureExtractor.from_arrays({**arrays, "phrases/source/counts": arrays["phrases/source/counts"][1:]})


def test_extractors_of_earlier_versions_have_one_judge_and_no_words():
    bitext = samples.bitext("en-de").part(0, 12)
    extractor = FeatureExtractor(sets=(*MORE, "ibm")).fit(bitext)
    arrays = {name: array for name, array in extractor.arrays().items() if not name.startswith("habits_")}
    header = json.loads(arrays["header"].tobytes())
    assert header["options"].pop("fertile_words") == 100
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    old, new = FeatureExtractor.from_arrays(arrays).transform(bitext), extractor.transform(bitext)
    few, many = old.further["link_pairs"], new.further["link_pairs"]
    assert few.names == many.names[:6] and len(many.names) == 12
    assert old.further["source_further"].indicator_names == () != new.further["source_further"].indicator_names


def test_threads_agree_and_model2_may_judge():
    bitext = samples.bitext("en-de").part(0, 20)
    sets = (*(name for name in SETS if name != "hmm"), "ibm", "blocks", "pairs")
    made = []
    for threads in (1, 2):
        extractor = FeatureExtractor(sets=sets, threads=threads).fit(bitext)
        features = extractor.transform(bitext)
        made.append(
            [
                extractor.block_features(bitext, features).values,
                extractor.link_pair_features(bitext, features).values,
                *(side.values for side in extractor.fertility_features(bitext, features)),
            ]
        )
    assert all(np.array_equal(a, b) for a, b in zip(*made)) and made[0][1].shape[1] == 12
