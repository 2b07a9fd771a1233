"""The tagger that learns from neighbours: end to end on small texts, kept and loaded, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.data.bitext import Text
from isogloss.data.treebank import Treebank
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.tasks.tag.graph import GraphTagger, Material
from isogloss.tasks.tag.similarity import (
    AROUND,
    WITHIN,
    common_suffixes,
    context_axis,
    contexts,
    similarity,
    trigrams,
)

NOUNS = ["cat", "dog", "cow", "pig", "hen", "fox", "bear", "wolf"]
VERBS = ["eats", "sees", "wants", "finds", "keeps"]
ADVERBS = ["now", "often", "never", "today"]


def sentences(seed, n, nouns=NOUNS):
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        words = [("the", "DET"), (rng.choice(nouns), "NOUN"), (rng.choice(VERBS), "VERB")]
        if rng.random() < 0.6:
            words += [("the", "DET"), (rng.choice(nouns), "NOUN")]
        if rng.random() < 0.5:
            words.append((rng.choice(ADVERBS), "ADV"))
        out.append([*words, (".", "PUNCT")])
    return out


def bank(rows):
    return Treebank.of([[(str(word), tag) for word, tag in row] for row in rows])


LABELLED, REST = bank(sentences(0, 6, NOUNS[:3])), bank(sentences(1, 60))


@pytest.fixture(scope="module")
def tagger():
    return GraphTagger(iterations=4, neighbours=10).fit(LABELLED, REST.text())


def right(found, gold):
    return np.mean(
        [a == b for s in range(len(gold)) for a, b in zip(found.strings("upos", s), gold.strings("upos", s))]
    )


# --- the graph -------------------------------------------------------------------------------------------------------


def test_types_of_trigrams_and_their_features():
    text = Text.of(["a b c d e", "x b c d y", "b .", ""])
    trees = Treebank.from_text(text)
    ids, vocabulary = trees.columns["form"]
    axis = context_axis(ids, vocabulary.types, trees.offsets, ("c",))
    vertices = trigrams(axis)
    words = [word for s in range(len(trees)) for word in trees.words(s)]
    padded = [["<", *trees.words(s), ">"] for s in range(len(trees))]
    triples = [tuple(row[t - 1 : t + 2]) for row in padded for t in range(1, len(row) - 1)]
    numbers = {}
    want = [-1 if word == "." else numbers.setdefault(three, len(numbers)) for word, three in zip(words, triples)]
    assert vertices.of.tolist() == want and vertices.size == len(numbers)
    assert [want[at] for at in vertices.first] == list(range(vertices.size))
    counts = contexts(axis, vertices)
    # Three of 17 features look at endings, which the words here do not have: "c" is no longer than its own.
    middle = numbers[("b", "c", "d")]
    assert counts[middle].sum() == 2 * 14
    assert contexts(axis, vertices, ["word"], shared=True).toarray().sum() == 2 + 1 + 2 + 2 - 2 + 1 - 1
    graph = similarity(axis, vertices, 5)
    assert (graph != graph.T).nnz == 0 and not graph.diagonal().any() and (graph.data <= 1 + 1e-12).all()
    assert graph[numbers[("a", "b", "c")], numbers[("x", "b", "c")]] > 0
    assert len(WITHIN) == 7 and len(AROUND) == 10
    with pytest.raises(ParameterError, match="neighbours"):
        similarity(axis, vertices, 0)


def test_suffixes_are_those_of_many_types():
    types = ["walking", "Talking", "king", "ing", "go"]
    assert common_suffixes(types, least=3) == ("g", "ng", "ing")
    assert common_suffixes(types, least=2, longest=1) == ("g",)
    axis = context_axis(np.arange(5, dtype=np.int32), types, np.array([0, 5]), ("ing", "g"))
    assert axis.attributes["suffix3"].tolist() == [0, 0, 0, -1, -1]
    assert axis.attributes["ending"].tolist() == [0, 0, 0, 1, -1]
    assert axis.attributes["capital"].tolist() == [-1, 0, -1, -1, -1]


# --- the tagger ------------------------------------------------------------------------------------------------------


def test_it_learns_words_that_no_label_was_given_for(tagger):
    alone = GraphTagger(iterations=0).fit(LABELLED, REST)
    known = {word for s in range(len(LABELLED)) for word in LABELLED.words(s)}
    assert set(NOUNS) - known
    for found in (tagger.predict_transductive(), tagger.predict(REST.text())):
        assert right(found, REST) >= max(0.95, right(alone.predict(REST), REST))
    assert tagger.labels_ == ("ADV", "DET", "NOUN", "PUNCT", "VERB")
    chances = tagger.predict_proba(REST)
    assert chances.shape == (REST.n_words, 5) and chances.sum(axis=1) == pytest.approx(np.ones(REST.n_words))
    assert tagger.posteriors_.shape == chances.shape
    assert tagger.score(REST)["upos"] == pytest.approx(100 * right(tagger.predict(REST), REST))
    assert (np.diff(tagger.trace_) >= -1e-9).all() and len(tagger.trace_) == 2 * len(tagger.infos_)


def test_contexts_that_the_field_does_not_see_help_through_the_graph():
    """What a word is depends on the words two places away, which no attribute of the field looks at."""
    rng = np.random.default_rng(0)

    def rows(n, words):
        kinds = [("uno", "A"), ("due", "B")]
        chosen = [(kinds[i % 2], f"{rng.choice(words)}{i % 10}") for i in range(n)]
        return [[(o, "O"), ("m", "M"), (w, tag), ("m", "M"), (o, "O")] for (o, tag), w in chosen]

    few, rest = bank(rows(20, ["ka", "lo"])), bank(rows(80, ["ti", "su", "ne", "ra", "bo"]))
    made = GraphTagger(neighbours=20).fit(few, rest)
    alone = GraphTagger(iterations=0).fit(few, rest)
    assert right(alone.predict(rest), rest) < 0.95 < right(made.predict_transductive(), rest)


def test_saved_and_loaded_it_is_the_same(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    again = GraphTagger.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(REST), tagger.predict_proba(REST))
    assert again.options_ == tagger.options_ and np.array_equal(again.trace_, tagger.trace_)
    with pytest.raises(UsageError, match="not kept"):
        again.predict_transductive()
    arrays = tagger.to_arrays()
    with pytest.raises(ModelError):
        GraphTagger.from_parts(tagger.options_, {**arrays, "weights": arrays["weights"][1:]}, tagger.to_meta())


def test_it_says_why(tagger):
    why = tagger.explain(REST, 0, 1, rival="VERB")
    assert why["tag"] == "NOUN" and why["rival"] == "VERB" and why["word"] == REST.words(0)[1]
    assert why["probabilities"]["NOUN"] > 0.9 and why["attributes"][0]["weight"] > 0
    # What is told adds up to how much better the sentence scores with the one tag than with the other.
    one = REST.part(0, 1)
    chains = tagger._model(
        tagger._templates.matrix(positions_of(tagger, one), tagger._learnt.index), one.lengths, tagger._learnt
    ).distributions(tagger._learnt.weights)
    labels = tagger.predict_proba(one).argmax(axis=1)
    other = labels.copy()
    other[1] = tagger.labels_.index("VERB")
    gap = chains.score([labels])[0] - chains.score([other])[0]
    told = sum(entry["weight"] for entry in why["attributes"] + why["neighbours"])
    assert told == pytest.approx(gap)
    for wrong in ((0, 99, None), (99, 0, None), (0, 0, "NO")):
        with pytest.raises(UsageError, match="explain"):
            tagger.explain(REST, wrong[0], wrong[1], rival=wrong[2])


def positions_of(tagger, treebank):
    from isogloss.features import positions

    return positions(tagger._axis(treebank, tagger._learnt))


def test_threads_do_not_matter(tagger):
    alone = GraphTagger(iterations=1, neighbours=10, threads=1).fit(LABELLED, REST)
    two = GraphTagger(iterations=1, neighbours=10, threads=2).fit(LABELLED, REST)
    assert np.array_equal(alone.posteriors_, two.posteriors_)


@pytest.mark.parametrize("order", [1, 2])
def test_no_rounds_is_the_field_of_the_labelled_sentences(order):
    plain = GraphTagger(iterations=0, order=order).fit(LABELLED, REST)
    assert len(plain.trace_) == 0
    assert plain.posteriors_ == pytest.approx(plain.predict_proba(REST))
    weak = GraphTagger(iterations=1, strength=0.0, order=order).fit(LABELLED, REST)  # q = p: nothing to learn
    assert weak.posteriors_ == pytest.approx(plain.posteriors_, abs=0.02)
    assert weak.infos_[0].divergence == 0


def test_dev_keeps_the_best_round():
    kept = GraphTagger(iterations=3, neighbours=10).fit(LABELLED, REST, dev=REST)
    first = GraphTagger(iterations=0).fit(LABELLED, REST)
    assert kept.score(REST)["upos"] >= first.score(REST)["upos"]


def test_edges():
    for text in (Text.of([]), Text.of([""]), Text.of([". . ."]), Text.of(["", "unseen", "the hen", "."])):
        made = GraphTagger(iterations=2, neighbours=5).fit(LABELLED, text)
        assert len(made.predict_transductive()) == len(text)
        assert np.isfinite(made.posteriors_).all() and (np.diff(made.trace_) >= -1e-9).all()
        assert made.predict_proba(Text.of(["", "x", "the x"])).shape == (3, 5)
    one_label = Treebank.of([[("a", "X")]])
    only = GraphTagger(iterations=1).fit(one_label, Text.of(["b a", "c"]))
    assert only.predict(Text.of(["q r"])).strings("upos", 0) == ("X", "X")
    assert only.explain(Text.of(["q"]), 0, 0)["tag"] == "X"
    everything = GraphTagger(iterations=1, neighbours=5).fit(LABELLED, LABELLED)  # all of the text has labels
    assert right(everything.predict_transductive(), LABELLED) == 1.0


def test_bad_options_and_texts_are_refused():
    for options, message in (
        ({"column": "form"}, "column"),
        ({"order": 3}, "order"),
        ({"neighbours": 0}, "neighbours"),
        ({"strength": -1.0}, "strength"),
        ({"sigma": 0.0}, "sigma"),
        ({"iterations": True}, "iterations"),
    ):
        with pytest.raises(ParameterError, match=message):
            GraphTagger(**options).check_params()
    with pytest.raises(TreebankError, match="nothing to learn"):
        GraphTagger().fit(Treebank.from_text(Text.of(["a b"])), REST)
    with pytest.raises(UsageError, match="fit"):
        GraphTagger().predict(REST)


def test_words_that_no_label_reaches_get_the_most_frequent_one():
    """Propagation alone has nothing to say of trigrams that lie apart from all labelled ones."""
    labelled = bank([[("the", "DET"), ("cat", "NOUN")], [("cat", "NOUN"), ("eats", "VERB"), (".", "PUNCT")]])
    text = Treebank.of([[("zzz", "_"), ("yyy", "_"), ("!", "_")]])
    material = Material(GraphTagger(neighbours=1), labelled, text)
    found, known = material.propagated()
    unreached = ~known.reached[material.vertices.of[material.words :][:2]]
    assert unreached.any() and material.labels[0] != "NOUN"
    assert [material.labels[i] for i in found[:2][unreached]] == ["NOUN"] * int(unreached.sum())
    assert material.labels[found[2]] == "PUNCT"
