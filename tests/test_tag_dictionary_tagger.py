"""Taggers from a dictionary and raw text."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.tagsets import UNIVERSAL12
from isogloss.data.treebank import Treebank
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.tasks.tag import DictionaryTagger
from isogloss.tasks.tag.dictionary import guessed
from isogloss.tasks.tag.emissions import WordFeatures

TAGS = ("DET", "NOUN", "VERB", "ADJ")
ENDINGS = {"DET": "e", "NOUN": "ung", "VERB": "ete", "ADJ": "lich"}
FOLLOWS = {
    "": (0.8, 0.1, 0.0, 0.1), "DET": (0, 0.7, 0, 0.3), "NOUN": (0.1, 0.1, 0.8, 0.0), "VERB": (0.8, 0.1, 0.0, 0.1),
    "ADJ": (0, 0.9, 0.0, 0.1),
}  # fmt: skip


def made_language(seed=0, sentences=300):
    """A treebank whose words end in what their tags are, but for some that have two tags."""
    rng = np.random.default_rng(seed)
    stems = ["".join(rng.choice(list("bdfklmnprst")) + rng.choice(list("aiou")) for _ in range(2)) for _ in range(60)]
    words = {tag: [stem + ending for stem in stems[:: 1 + 9 * (tag == "DET")]] for tag, ending in ENDINGS.items()}
    for stem in stems[:15]:  # words that are nouns and verbs
        words["NOUN"].append(stem + "en")
        words["VERB"].append(stem + "en")
    found = []
    for _ in range(sentences):
        tag, sentence = "", []
        for _ in range(rng.integers(2, 12)):
            tag = TAGS[rng.choice(4, p=FOLLOWS[tag])]
            place = min(int(rng.exponential(len(words[tag]) / 3)), len(words[tag]) - 1)
            sentence.append((words[tag][::-1][place], tag))
        found.append(sentence)
    return Treebank.of(found)


TREEBANK = made_language()
FULL = TagDictionary.of_treebank(TREEBANK).mapped("universal12")
FAST = {"iterations": 10, "first_order": 3, "threads": 1}
MODELS = [(order, emissions) for order in (1, 2) for emissions in ("table", "features")]


def accuracy(tagger: DictionaryTagger, treebank: Treebank) -> float:
    return tagger.score(treebank)["upos"]


@pytest.mark.parametrize(("order", "emissions"), MODELS)
def test_masks_hold_and_the_objective_never_falls(order, emissions):
    half = FULL.sample(0.5, seed=1)
    tagger = DictionaryTagger(half, order=order, emissions=emissions, **FAST).fit(TREEBANK.text())
    assert (np.diff(tagger.trace_) >= -1e-9 * abs(tagger.trace_[-1])).all()
    chances = tagger.predict_proba(TREEBANK)
    ids, vocabulary = TREEBANK.columns["form"]
    assert (chances[~half.allowed(vocabulary)[ids]] == 0).all()
    assert chances.sum(axis=1) == pytest.approx(1.0)
    single = half.allowed(vocabulary)[ids].sum(axis=1) == 1
    assert chances[single].max(axis=1) == pytest.approx(1.0)
    assert tagger.labels_ == half.tags and chances.shape == (TREEBANK.n_words, 12)


def test_a_full_dictionary_of_one_tag_each_is_followed():
    plain = TagDictionary({word: tags[:1] for word, tags in FULL.items()})
    tagger = DictionaryTagger(plain, **FAST).fit(TREEBANK)
    for sentence in range(20):
        tags = tagger.predict(TREEBANK).strings("upos", sentence)
        assert tags == tuple(plain[word][0] for word in TREEBANK.words(sentence))


def test_features_help_with_words_that_are_not_in_the_dictionary():
    third = FULL.sample(0.3, seed=2)
    scores = {}
    for order, emissions in MODELS:
        options = {"order": order, "emissions": emissions, "start": "random", "iterations": 20, "threads": 1}
        scores[order, emissions] = accuracy(DictionaryTagger(third, **options).fit(TREEBANK), TREEBANK)
    assert scores[1, "features"] > scores[1, "table"] + 5 and scores[2, "features"] > scores[2, "table"] + 5


def test_more_words_help():
    scores = [accuracy(DictionaryTagger(FULL.sample(s, seed=3), **FAST).fit(TREEBANK), TREEBANK) for s in (0.1, 0.5, 1)]
    assert scores[0] <= scores[1] <= scores[2] and scores[2] > 90


def test_marginals_are_no_worse_than_the_best_sequence():
    found = {"marginal": [], "viterbi": []}
    for seed in range(4):
        tagger = DictionaryTagger(FULL.sample(0.4, seed=seed), seed=seed, **FAST).fit(TREEBANK)
        for tagger.decoder, scores in found.items():
            scores.append(accuracy(tagger, TREEBANK))
    assert np.mean(found["marginal"]) >= np.mean(found["viterbi"]) - 0.2


def test_new_words_are_scored_by_their_features():
    tagger = DictionaryTagger(FULL.sample(0.6, seed=4), **FAST).fit(TREEBANK)
    new = Text.of(["xaxae xaxaung xaxaete"])
    assert tagger.predict(new).strings("upos", 0) == ("DET", "NOUN", "VERB")
    learnt = tagger._learnt
    emitted = learnt.emissions(["xaxaung", TREEBANK.words(0)[0]])
    scores = learnt.features.matrix(["xaxaung"]).toarray()[0] @ learnt.weights.T
    everything = np.array(
        [math.fsum(row) for row in np.exp(learnt.features.matrix(learnt.types.types) @ learnt.weights.T).T]
    )
    assert np.exp(emitted[:, 0]) == pytest.approx(np.exp(scores) / (everything + np.exp(scores)))
    known = learnt.types.index_of(TREEBANK.words(0)[0])
    assert emitted[:, 1] == pytest.approx(learnt.model.emissions[:, known])
    table = DictionaryTagger(FULL.sample(0.6, seed=4), emissions="table", **FAST).fit(TREEBANK)
    assert (table._learnt.emissions(["xaxaung"]) == 0).all()
    assert table.predict(new).n_words == 3


@pytest.mark.parametrize(("order", "emissions"), MODELS)
def test_edges(order, emissions):
    tagger = DictionaryTagger(FULL, order=order, emissions=emissions, **FAST).fit(
        Text.of(["", *(" ".join(TREEBANK.words(s)) for s in range(100)), "", "xy", "xy zw", "a b c d e"])
    )
    odd = Text.of(["", "xy", "xy zw", "qqq rrr sss", "", " ".join(["qqq", *TREEBANK.words(1)] * 700)])
    for decoder in ("marginal", "viterbi"):
        tagger.decoder = decoder
        found = tagger.predict(odd)
        assert found.lengths.tolist()[:5] == [0, 1, 2, 3, 0] and found.lengths[5] >= 2000
    chances = tagger.predict_proba(odd)
    assert np.isfinite(chances).all() and chances.sum(axis=1) == pytest.approx(1.0)
    assert tagger.predict_proba(Text.of([])).shape == (0, 12)
    assert tagger.predict_proba(Text.of(["", ""])).shape == (0, 12)


def test_text_of_which_no_word_is_known():
    tagger = DictionaryTagger(TagDictionary({"house": "NOUN"}), **FAST).fit(TREEBANK.part(0, 50))
    assert np.isfinite(tagger.trace_).all() and tagger.predict_proba(TREEBANK).sum(axis=1) == pytest.approx(1.0)


def test_predictions_do_not_depend_on_the_company():
    tagger = DictionaryTagger(FULL.sample(0.5, seed=5), **FAST).fit(TREEBANK.part(0, 100))
    both = tagger.predict_proba(TREEBANK.part(100, 200))
    single = np.concatenate([tagger.predict_proba(TREEBANK.part(s, s + 1)) for s in range(100, 200)])
    assert both == pytest.approx(single)


def test_rules_of_punctuation_and_numerals():
    text = Text.of(["dae bung !", "dae 17 bung ."] * 10)
    ruled = DictionaryTagger(TagDictionary({"dae": "DET"}), **FAST).fit(text)
    assert ruled.predict(text).strings("upos", 0)[2] == "." and ruled.predict(text).strings("upos", 1)[1] == "NUM"
    free = DictionaryTagger(TagDictionary({"dae": "DET"}), rules=False, **FAST).fit(text)
    assert (free.predict_proba(text)[2] > 0).sum() > 1


def test_the_same_seed_and_any_threads_give_the_same(tmp_path):
    third = FULL.sample(0.3, seed=2)
    one, two, other = (
        DictionaryTagger(third, start="random", seed=seed, iterations=4, threads=n).fit(TREEBANK)
        for seed, n in ((1, 1), (1, 2), (2, 2))
    )
    assert one.trace_.tolist() == two.trace_.tolist() != other.trace_.tolist()
    assert (one.predict_proba(TREEBANK) == two.predict_proba(TREEBANK)).all()


@pytest.mark.parametrize("emissions", ["features", "table"])
def test_saved_and_loaded(tmp_path, emissions):
    tagger = DictionaryTagger(FULL.sample(0.5), emissions=emissions, **FAST).fit(TREEBANK)
    tagger.save(tmp_path / "model")
    loaded = store.load(tmp_path / "model")
    assert isinstance(loaded, DictionaryTagger) and loaded.options_ == tagger.options_
    text = Text.of([" ".join(TREEBANK.words(0)) + " xyzung"])
    assert (loaded.predict_proba(text) == tagger.predict_proba(text)).all()
    assert loaded.trace_.tolist() == tagger.trace_.tolist()
    arrays = tagger.to_arrays()
    arrays["transitions"] = arrays["transitions"][1:]
    with pytest.raises(ModelError, match="array"):
        DictionaryTagger.from_parts(tagger.options_, arrays, tagger.to_meta())


def test_explanations_add_up():
    tagger = DictionaryTagger(FULL.sample(0.5), order=1, **FAST).fit(TREEBANK)
    article = next(word for word, tags in tagger.dictionary.items() if tags == ("DET",))
    text = Text.of([[article, "xaxaung"]])
    found = tagger.explain(text, 0, 1, rival="VERB")
    assert found["word"] == "xaxaung" and found["tag"] == "NOUN" and found["rival"] == "VERB"
    assert not found["known"] and set(found["allowed"]) == set(UNIVERSAL12) - {"."}
    assert found["features"][0]["feature"].startswith("suffix")
    # nothing follows, and the word before has one tag: the log ratio of two tags is that of emission and transition
    chances = found["probabilities"]
    ratio = math.log(chances["NOUN"] / tagger.predict_proba(text)[1, tagger.labels_.index("VERB")])
    assert found["emission"] + found["neighbours"][0]["weight"] == pytest.approx(ratio)
    assert [entry["place"] for entry in found["neighbours"]] == ["before"]
    known = next(word for word in tagger.dictionary if len(tagger.dictionary[word]) == 1)
    assert tagger.explain(Text.of([known]), 0, 0)["allowed"] == list(tagger.dictionary[known])
    for bad in ({"sentence": 3, "word": 0}, {"sentence": 0, "word": 9}, {"sentence": 0, "word": 0, "rival": "NN"}):
        with pytest.raises(UsageError):
            tagger.explain(text, **bad)


def test_gradient_learns_too():
    half = FULL.sample(0.5, seed=1)
    tagger = DictionaryTagger(half, method="gradient", iterations=15, threads=1).fit(TREEBANK)
    assert (np.diff(tagger.trace_) >= -1e-9 * abs(tagger.trace_[-1])).all() and accuracy(tagger, TREEBANK) > 70


def test_guesses_by_ending():
    words = TagDictionary({"wanting": "VERB", "going": "VERB", "thing": "NOUN", "London": "NOUN", "on": ["ADP", "ADV"]})
    found = guessed(words, ["on", "waiting", "London", "Paxton", "zzz"], strength=1.0)
    at = words.tags.index
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert found[0, [at("ADP"), at("ADV")]].tolist() == [0.5, 0.5] and found[2, at("NOUN")] == 1.0
    # by hand: five entries and a half a count for each of 12 tags; small letters; -g, -ng, -ing: 3; -ting: wanting
    guess = np.array([(n + 0.5) / 11 for n in (2, 2, 0)])  # NOUN, VERB and punctuation, which it cannot be
    for noun, verb, n in ((1, 2, 4), (1, 2, 3), (1, 2, 3), (1, 2, 3), (0, 1, 1)):
        guess = (np.array([noun, verb, 0]) + guess) / (n + 1)
    assert found[1, [at("NOUN"), at("VERB")]] == pytest.approx(guess[:2] / (1 - guess[2]))
    assert not found[[1, 3, 4], at(".")].any()
    assert found[3].argmax() == at("NOUN")
    # of two words that are met more than ten times, one has an entry: half of 30 / (30 + 10) is doubt
    often = guessed(words, ["on", "waiting", "zzz"], [1000, 30, 0], strength=1.0, rare=10.0)
    assert often[[0, 2]] == pytest.approx(found[[0, 4]])
    assert often[1] == pytest.approx(5 / 8 * found[1] + 3 / 8 / 11 * (np.array(words.tags) != "."))


def test_features_of_words():
    types, counts = ["Haus", "haus", "aus", "Maus-3", "raus"], [6, 6, 1, 1, 20]
    found = WordFeatures.learnt(types, counts, "paper", min_count=10, min_types=2)
    assert set(found.names) == {"word=haus", "word=raus", "capital", "hyphen", "digit", "suffix2=us", "suffix3=aus"}
    rows = found.matrix(["Haus", "x-1", "u"]).toarray()
    names = [{found.names[i] for i in np.flatnonzero(row)} for row in rows]
    assert names == [{"word=haus", "capital", "suffix2=us", "suffix3=aus"}, {"hyphen", "digit"}, set()]
    # more than, not at least: "us" ends haus (of any case), aus and raus
    assert "suffix2=us" not in WordFeatures.learnt(types, counts, min_types=3).names
    with pytest.raises(ParameterError, match="no template"):
        WordFeatures(("sound",), ())
    with pytest.raises(ParameterError, match="no set of templates"):
        WordFeatures.learnt(types, counts, "poor")


def test_wrong_usage_is_named():
    for options, message in (
        ({"order": 3}, "order"), ({"emissions": "x"}, "emissions"), ({"iterations": 0}, "iterations"),
        ({"variance": 0.0}, "variance"), ({"smoothing": 0}, "smoothing"), ({"features": "poor"}, "features"),
        ({"features": ("sound",)}, "sound"), ({"method": "gradient", "emissions": "table"}, "gradient"),
        ({"start": "cold"}, "start"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=message):
            DictionaryTagger(FULL, **options).fit(TREEBANK)
    with pytest.raises(ParameterError, match="TagDictionary"):
        DictionaryTagger({"house": ["NOUN"]}).fit(TREEBANK)
    with pytest.raises(UsageError, match="dictionary"):
        DictionaryTagger().fit(TREEBANK)
    with pytest.raises(UsageError, match="no entries"):
        DictionaryTagger(TagDictionary({})).fit(TREEBANK)
    with pytest.raises(TreebankError, match="no words"):
        DictionaryTagger(FULL).fit(Text.of([]))
    with pytest.raises(UsageError, match="fit"):
        DictionaryTagger(FULL).predict(TREEBANK)


def test_tagging_is_fast():
    tagger = DictionaryTagger(FULL.sample(0.5), **FAST).fit(TREEBANK)
    text = Text.of([TREEBANK.words(s % len(TREEBANK)) for s in range(3000)])
    tagger.predict(text)
    begin = time.process_time()
    n = tagger.predict(text).n_words
    assert n / (time.process_time() - begin) > 20_000
