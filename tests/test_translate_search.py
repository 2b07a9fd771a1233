"""The decoder against all derivations that there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data import Bitext, Links, Text
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, LinksError, ModelError
from isogloss.metrics import sentence_bleu
from isogloss.tasks.translate import Translator
from isogloss.tasks.translate.forced import forced
from isogloss.tasks.translate.language_model import LanguageModel
from isogloss.tasks.translate.search import BLANKET, Decoder, Searching, first_weights
from isogloss.tasks.translate.table import TranslationTable
from isogloss.tasks.translate.translator import LONGEST, SQUARES, _together, held_out, usable
from isogloss.tasks.translate.tuning import References
from isogloss.testing.enumerate import sentence_bleu as by_definition
from isogloss.testing.enumerate import translations

SOURCE, TARGET = "abcd", "wxyz"
IDENTITY = Links.of([[(0, 0)]])


@st.composite
def models(draw):
    """A table of a few phrase pairs, a language model, weights, and a sentence with unknown and repeated words."""
    pairs, links = [], []
    for _ in range(draw(st.integers(1, 5))):
        source = draw(st.lists(st.sampled_from(SOURCE), min_size=1, max_size=4))
        target = draw(st.lists(st.sampled_from(TARGET), min_size=1, max_size=4))
        cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
        pairs.append((source, target))
        links.append(draw(st.sets(st.sampled_from(cells), max_size=4)))
    text = Bitext.of(pairs)
    table = TranslationTable.of(text, Links.of(links), max_length=draw(st.integers(1, 3)))
    model = LanguageModel.of(text.target, draw(st.integers(1, 3)), words=table.target)
    weights = np.array([draw(st.floats(-0.5, 1.5).map(lambda x: round(x, 3))) for _ in BLANKET])
    sentence = draw(st.lists(st.sampled_from([*SOURCE, "q", "w"]), max_size=4))
    return table, model, weights, sentence


def listed(table, model, weights, sentence):
    """The options of a sentence by span, as an enumerator takes them: the pair or the copied word, scores, words."""
    options = {}
    for first in range(len(sentence)):
        for end in range(first + 1, len(sentence) + 1):
            found = []
            for entry in table.entries(sentence[first:end]):
                own = weights[2] * len(entry.target) + weights[3] + float(np.dot(weights[4:8], entry.scores))
                found.append(((entry.target, entry.orientations), own, entry.target))
            if not found and end == first + 1:
                copied = ("copied", table.orientation_of(-1))
                found = [(copied, weights[2] + weights[3], (sentence[first],))]
            if found:
                options[first, end] = found
    return options


def fluency(model, weights):
    return lambda words: weights[0] * model.log_probs(Text.of([words]))[0]


def brute_force(table, model, weights, sentence, **reordering):
    options = listed(table, model, weights, sentence)
    jump = lambda i, j: -weights[1] * abs(i - j)  # noqa: E731

    def turn(before, step):
        (first, end), (_, own) = step
        began, ended = before[0] if before is not None else (0, 0)
        place = 0 if first == ended else 1 if end == began else 2
        behind = before[1][1][3 + place] * weights[11 + place] if before is not None else 0.0
        return own[place] * weights[8 + place] + behind

    turning = turn if reordering.pop("turning", True) else None
    return translations(len(sentence), options, jump, fluency(model, weights), turn=turning, **reordering)


def decoded(decoder, sentence, many=10**6, **how):
    sentences = decoder.sentences(Text.of([sentence]))
    found = decoder.search(sentences, many, **how)
    return found, decoder.texts(found)


@settings(max_examples=120, deadline=None)
@given(models(), st.integers(0, 3), st.booleans())
def test_an_unlimited_beam_finds_all_derivations(made, limit, turning):
    table, model, weights, sentence = made
    decoder = Decoder(table, model, weights, Searching.exact(distortion_limit=limit, turning=turning))
    found, texts = decoded(decoder, sentence, distinct=False)
    right = brute_force(table, model, weights, sentence, limit=limit, turning=turning)
    np.testing.assert_allclose(found.scores, [d.score for d in right], atol=1e-5)
    assert sorted(texts) == sorted(" ".join(d.words) for d in right)


@settings(max_examples=80, deadline=None)
@given(models())
def test_phrases_that_swap(made):
    table, model, weights, sentence = made
    decoder = Decoder(table, model, weights, Searching.exact(swapping=True))
    found, texts = decoded(decoder, sentence, distinct=False)
    right = brute_force(table, model, weights, sentence, swapping=True)
    np.testing.assert_allclose(found.scores, [d.score for d in right], atol=1e-5)
    assert sorted(texts) == sorted(" ".join(d.words) for d in right)


@settings(max_examples=60, deadline=None)
@given(models(), st.integers(0, 2), st.integers(1, 6))
def test_the_best_with_different_words(made, limit, many):
    table, model, weights, sentence = made
    decoder = Decoder(table, model, weights, Searching.exact(distortion_limit=limit))
    found, texts = decoded(decoder, sentence, many)
    best = {}
    for d in brute_force(table, model, weights, sentence, limit=limit):
        best.setdefault(" ".join(d.words), d.score)
    np.testing.assert_allclose(found.scores, list(best.values())[:many], atol=1e-5)
    assert len(set(texts)) == len(texts)
    for text, score in zip(texts, found.scores, strict=True):
        assert best[text] == pytest.approx(score, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(models(), st.integers(0, 3), st.booleans())
def test_scores_are_weights_times_features(made, limit, swapping):
    table, model, weights, sentence = made
    decoder = Decoder(table, model, weights, Searching.exact(distortion_limit=limit, swapping=swapping))
    found, _ = decoded(decoder, sentence, 50, distinct=False)
    np.testing.assert_allclose(decoder.features(found) @ weights, found.scores, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(models(), st.integers(0, 3), st.booleans(), st.data())
def test_forced_decoding_finds_the_best_derivation_of_a_reference(made, limit, swapping, data):
    table, model, weights, sentence = made
    way = {"swapping": True} if swapping else {"limit": limit}
    every = brute_force(table, model, weights, sentence, **way)
    words = data.draw(st.sampled_from([d.words for d in every]) | st.lists(st.sampled_from(TARGET), max_size=5))
    decoder = Decoder(table, model, weights, Searching.exact(distortion_limit=limit, swapping=swapping))
    found = forced(decoder, Bitext.of([(sentence, list(words))]))
    right = [d.score for d in every if d.words == tuple(words)]
    np.testing.assert_allclose(found.scores, right[:1], atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(models())
def test_without_reordering_there_is_one_way_whatever_it_is_called(made):
    table, model, weights, sentence = made
    monotone = Decoder(table, model, weights, Searching.exact(distortion_limit=0))
    found, texts = decoded(monotone, sentence)
    heavy = weights.copy()
    heavy[1] = 1e6  # no swap is worth that
    swapping, swapped = decoded(Decoder(table, model, heavy, Searching.exact(swapping=True)), sentence)
    kept = swapping.scores > -1e5
    np.testing.assert_allclose(swapping.scores[kept], found.scores, atol=1e-5)
    assert [text for text, k in zip(swapped, kept, strict=True) if k] == texts or len(set(found.scores)) < len(texts)


@settings(max_examples=40, deadline=None)
@given(models(), st.integers(1, 3), st.integers(1, 8))
def test_a_narrow_beam_finds_derivations_that_there_are(made, beam, pops):
    table, model, weights, sentence = made
    decoder = Decoder(table, model, weights, Searching(beam=beam, pops=pops, options=2, distortion_limit=1))
    found, texts = decoded(decoder, sentence, 3)
    right = {(" ".join(d.words), round(d.score, 4)) for d in brute_force(table, model, weights, sentence, limit=1)}
    assert len(texts) >= 1
    for text, score in zip(texts, found.scores.tolist(), strict=True):
        assert any(text == words and abs(score - value) < 1e-3 for words, value in right)


@pytest.fixture(scope="module")
def sample():
    text = samples.bitext("en-de")
    table = TranslationTable.of(text, samples.gold("en-de"))
    model = LanguageModel.of(text.target, 3, words=table.target)
    return text, Decoder(table, model, first_weights(), Searching(beam=20, pops=60))


def test_threads_change_nothing(sample):
    text, decoder = sample
    sentences = decoder.sentences(text.source[:30])
    with using_threads(1):
        one = decoder.search(sentences, 5)
    with using_threads(4):
        four = decoder.search(sentences, 5)
    assert one.scores.tobytes() == four.scores.tobytes()
    assert one.options.tobytes() == four.options.tobytes()


def test_sentences_together_are_sentences_alone(sample):
    text, decoder = sample
    together = decoder.search(decoder.sentences(text.source[:10]), 3)
    each = [decoder.search(decoder.sentences(text.source[k : k + 1]), 3) for k in range(10)]
    np.testing.assert_array_equal(together.scores, np.concatenate([one.scores for one in each]))
    assert decoder.texts(together) == [text for one in each for text in decoder.texts(one)]


def test_wider_beams_find_no_worse(sample):
    text, decoder = sample
    scores = []
    for beam in (1, 10, 100):
        wide = Decoder(decoder.table, decoder.language_model, decoder.weights, Searching(beam=beam, pops=20 * beam))
        scores.append(wide.search(wide.sentences(text.source[:40])).scores.mean())
    assert scores == sorted(scores)


def test_long_sentences(sample):
    text, decoder = sample
    words = [word for row in text.source[:40] for word in row][:150]
    found, texts = decoded(decoder, words, 1)
    assert len(texts) == 1
    assert decoder.features(found) @ decoder.weights == pytest.approx(found.scores)


def test_the_table_says_what_phrase_extraction_found(sample):
    from isogloss.tasks.translate import extract_phrases

    text, decoder = sample
    right = {}
    for part in extract_phrases(text, samples.gold("en-de"), max_length=5):
        for pair in part:
            right.setdefault(pair.source, {})[pair.target] = (pair[2:6], pair.links)
    assert decoder.table.n_phrases == len(right)
    for source in list(right)[::37]:
        entries = list(decoder.table.entries(source))
        assert {entry.target for entry in entries} == set(right[source])
        for entry in entries:
            scores, links = right[source][entry.target]
            np.testing.assert_allclose(np.exp(entry.scores), np.maximum(scores, 1e-7), rtol=1e-5)
            assert entry.links == links


def linked(links, sizes, i, j):
    if i < 0 or j < 0:
        return i < 0 and j < 0
    if i >= sizes[0] or j >= sizes[1]:
        return i >= sizes[0] and j >= sizes[1]
    return (i, j) in links


def test_orientations_are_those_of_all_occurrences():
    """Counted from spans and links of each sentence, with nothing of ours."""
    from collections import Counter, defaultdict

    from isogloss.tasks.translate import extract_phrases

    rng = np.random.default_rng(0)
    pairs, links = [], []
    for _ in range(40):
        n, m = rng.integers(1, 6, 2)
        pairs.append(([f"s{k}" for k in rng.integers(0, 4, n)], [f"t{k}" for k in rng.integers(0, 4, m)]))
        links.append({(i, j) for i in range(n) for j in range(m) if rng.random() < 1.2 / max(n, m)})
    right = defaultdict(Counter)
    for (source, target), own in zip(pairs, links, strict=True):
        n, m = len(source), len(target)
        for a, b in itertools.combinations(range(n + 1), 2):
            for c, d in itertools.combinations(range(m + 1), 2):
                inside = [(i, j) for i, j in own if a <= i < b and c <= j < d]
                if not inside or any((a <= i < b) != (c <= j < d) for i, j in own):
                    continue
                for side, (same, other, j) in enumerate(((a - 1, b, c - 1), (b, a - 1, d))):
                    place = linked(own, (n, m), same, j), linked(own, (n, m), other, j)
                    how = {(True, False): 0, (False, True): 1}.get(place, 2)
                    right[tuple(source[a:b]), tuple(target[c:d])][3 * side + how] += 1
    found = {}
    for part in extract_phrases(Bitext.of(pairs), Links.of(links), max_length=5):
        for pair, counts in zip(part, part.orientations.tolist(), strict=True):
            found[pair.source, pair.target] = counts
    assert found == {pair: [counts[k] for k in range(6)] for pair, counts in right.items()}
    table = TranslationTable.of(Bitext.of(pairs), Links.of(links))
    general = np.array(list(found.values())).sum(0) + 0.5
    for entry in table.entries(["s1"]):
        counts = np.array(found[entry.source, entry.target])
        for side in (slice(0, 3), slice(3, 6)):
            smooth = counts[side] + 3 * general[side] / general[side].sum()
            np.testing.assert_allclose(np.exp(entry.orientations[side]), smooth / smooth.sum(), rtol=1e-5)


def test_only_so_many_candidates_are_kept():
    text = Bitext.of([("a", "x"), ("a", "x"), ("a", "y"), ("a", "z")])
    table = TranslationTable.of(text, Links.of([[(0, 0)]] * 4), candidates=2)
    assert [entry.target for entry in table.entries(["a"])] == [("x",), ("y",)]


@pytest.mark.parametrize(
    "name", ["source_words", "first_words", "pair_starts", "target_words", "constellations", "kinds", "turns"]
)
def test_damaged_tables_are_refused(sample, name):
    _, decoder = sample
    table = decoder.table
    arrays = {key: array.copy() for key, array in table.arrays.items()}
    assert len(TranslationTable.from_arrays(table.source, table.target, arrays, 4)) == len(table)
    arrays[name][len(arrays[name]) // 2] = -1
    with pytest.raises(ModelError):
        TranslationTable.from_arrays(table.source, table.target, arrays, 4)


def test_words_that_are_copied_are_right_where_the_reference_has_them():
    """Names that no model knows: BLEU of learners is that of the words that come out."""
    text = Bitext.of([("das Haus", "the house"), ("ein Haus", "a house")])
    table = TranslationTable.of(text, Links.of([[(0, 0), (1, 1)]] * 2))
    decoder = Decoder(table, LanguageModel.of(text.target, 2, words=table.target), first_weights())
    dev = Bitext.of([("das Haus Qqq Zzz Haus", "the house Qqq Zzz house"), ("Qqq Yyy das Haus", "Yyy Qqq the house")])
    found = decoder.search(decoder.sentences(dev.source))
    references = References.of(dev.target, decoder.language_model)
    counts = references.counts(found)
    for text, reference, own in zip(decoder.texts(found), dev.target, counts, strict=True):
        assert sentence_bleu(own) == pytest.approx(by_definition(text.split(), reference))
    assert counts[0, :4].tolist() == [5, 4, 3, 2] and counts[1, 0] == 4
    again = References.of(dev.target[1:], decoder.language_model).counts(found, np.array([0, 0]))
    np.testing.assert_array_equal(again[1], counts[1])


def test_only_sentences_that_may_be_tuned_on_are_held_out():
    pairs = [(f"a{k}", f"b{k}") if k % 20 != 19 else ("a b", "") for k in range(100)]
    away = held_out(Bitext.of(pairs))
    assert np.flatnonzero(away).tolist() == [20, 41, 62, 83]  # the 20th, 40th and so on of the 95 others
    assert np.flatnonzero(held_out(Bitext.of([("a", "b"), ("a", "b"), ("a", "")]))).tolist() == [1]
    with pytest.raises(BitextError, match="none can be held out"):
        held_out(Bitext.of([("a", "b"), ("a", "")]))
    long = " ".join(["a"] * (LONGEST + 1))
    assert usable(Bitext.of([(long, "b"), ("a", long), ("a", "b"), ("", "b")])).tolist() == [False, False, True, False]


def test_nothing_is_held_out_if_nothing_is_tuned():
    text = Bitext.of([("a b", "x y")] * 30 + [("c", "z")])
    learnt = Translator(iterations=0).fit(text, links=Links.of([[(0, 0), (1, 1)]] * 30 + [[(0, 0)]]))
    assert learnt.predict(["c"]) == ["z"]


def test_links_of_another_text_are_refused_before_the_work():
    text = Bitext.of([("a b", "x y")] * 30)
    with pytest.raises(LinksError, match="links for 3 pairs"):
        Translator().fit(text, links=Links.of([[(0, 0)]] * 3))
    with pytest.raises(LinksError, match="outside the sentence"):
        Translator().fit(text, links=Links.of([[(2, 0)]] * 30))


def test_weights_stay_what_they_were_if_tuning_is_stopped(monkeypatch):
    text = Bitext.of([("a b", "x y")] * 3)
    learnt = Translator(iterations=0).fit(text, links=Links.of([[(0, 0), (1, 1)]] * 3))
    learnt._weights = learnt._weights + 1
    before = learnt.weights_
    monkeypatch.setattr(Translator, "_tune", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        learnt.set_params(iterations=1).tune(text)
    assert learnt.weights_ == before


def test_long_sentences_are_translated_a_few_at_a_time():
    lengths = np.array([10] * 250 + [1000] * 5 + [1500, 0, 0, 3])
    runs = list(_together(lengths))
    assert [runs[0][0], *(last for _, last in runs)] == sorted({0, *(first for first, _ in runs), len(lengths)})
    assert runs[:3] == [(0, 100), (100, 200), (200, 252)] and runs[-2:] == [(255, 256), (256, 259)]
    for first, last in runs:
        assert last - first == 1 or (lengths[first:last] ** 2).sum() <= SQUARES
    assert list(_together(lengths[:0])) == []


def test_tables_whose_phrases_are_not_in_order_are_refused():
    """Kernels look phrases up by halves, and go by this order as to where the words of a phrase end."""
    text = Bitext.of([("a b", "x y"), ("a c", "x z")])
    table = TranslationTable.of(text, Links.of([[(0, 0), (1, 1)]] * 2))
    words = table.arrays["source_words"]
    assert words.tolist() == [0, 0, 1, 0, 2, 1, 2]  # a, a b, a c, b, c
    for damaged in ([0, 0, 2, 0, 1, 1, 2], [0, 0, 1, 0, 1, 1, 2]):
        arrays = table.arrays | {"source_words": np.array(damaged, np.int32)}
        with pytest.raises(ModelError, match="do not fit together"):
            TranslationTable.from_arrays(table.source, table.target, arrays, 4)
    starts = np.array([0, 2, 4, 5, 6, 7])  # a b, a c, a, b, c: the third would be read beyond its end
    arrays = table.arrays | {"source_starts": starts, "source_words": np.array([0, 1, 0, 2, 0, 1, 2], np.int32)}
    with pytest.raises(ModelError, match="do not fit together"):
        TranslationTable.from_arrays(table.source, table.target, arrays, 4)


def test_empty_tables():
    table = TranslationTable.of(Bitext.of([("a", "x")]), Links.of([[]]))
    model = LanguageModel.of(Text.of(["x"]), 2, words=table.target)
    decoder = Decoder(table, model, first_weights(), Searching())
    assert decoded(decoder, ["a", "b"], 1)[1] == ["a b"]
    assert decoded(decoder, [], 1)[1] == [""]
    assert decoder.texts(decoder.search(decoder.sentences(Text.of([])))) == []
