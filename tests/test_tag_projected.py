"""Tags carried along links: evidence, constraints, and taggers learnt from them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.bitext import Bitext, Text
from isogloss.data.links import Alignment, Links
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.treebank import Treebank
from isogloss.errors import LinksError, ModelError, ParameterError, TreebankError, UsageError
from isogloss.learners.posterior import Together
from isogloss.tasks.tag import ProjectedTagger
from isogloss.tasks.tag.latent import LatentCrf
from isogloss.tasks.tag.projection import (
    Expectations,
    Projected,
    carried,
    constraints,
    expectations,
    type_counts,
    type_sets,
)  # fmt: skip
from isogloss.tasks.tag.several import Tagger

TAGS = ("DET", "NOUN", "VERB")


def house(times: int = 4) -> tuple[Bitext, Treebank, Links]:
    bitext = Bitext.of([("the house", "das Haus"), ("the dog sleeps", "der Hund schläft")] * times)
    first = [("the", "DET"), ("house", "NOUN")]
    tagged = Treebank.of([first, [("the", "DET"), ("dog", "NOUN"), ("sleeps", "VERB")]] * times)
    return bitext, tagged, Links.of([[(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)]] * times)


# --- evidence


@st.composite
def linked(draw: st.DrawFn) -> tuple[list[tuple[list[str], int, dict[tuple[int, int], float]]], None]:
    """Pairs as (source tags, target length, links with probabilities), empty sides among them."""
    pairs = []
    for _ in range(draw(st.integers(0, 4))):
        tags = draw(st.lists(st.sampled_from([*TAGS, "X"]), max_size=4))
        n = draw(st.integers(0, 4))
        cells = st.tuples(st.integers(0, max(0, len(tags) - 1)), st.integers(0, max(0, n - 1)))
        grid = st.sampled_from([0.25, 0.5, 0.75, 1.0])
        links = draw(st.dictionaries(cells, grid, max_size=6)) if tags and n else {}
        pairs.append((tags, n, links))
    return pairs, None


@given(linked())
def test_each_word_gets_the_tag_of_its_most_probable_link(drawn: tuple) -> None:
    pairs, _ = drawn
    bitext = Bitext.of([(["s"] * len(tags), ["t"] * n) for tags, n, _ in pairs])
    treebank = Treebank.of([[("s", tag) for tag in tags] for tags, _, _ in pairs if tags])
    links = Links.of([Alignment(frozenset(found), probability=found) for _, _, found in pairs])
    got = carried(bitext, links, treebank, TAGS)
    at = 0
    for tags, n, found in pairs:
        for j in range(n):
            mine = [(-p, i) for (i, t), p in found.items() if t == j]
            best = min(mine) if mine else None
            tag = TAGS.index(tags[best[1]]) if best is not None and tags[best[1]] in TAGS else -1
            assert got.labels[at] == tag
            assert got.probability[at] == (-best[0] if best is not None and tag >= 0 else 0.0)
            at += 1
    assert at == len(got.labels)


def test_possible_links_of_gold_carry_nothing() -> None:
    bitext, tagged = Bitext.of([("the dog", "der Hund")]), Treebank.of([[("the", "DET"), ("dog", "NOUN")]])
    links = Links.of([Alignment(frozenset({(0, 0)}), possible=frozenset({(1, 1)}))])
    assert carried(bitext, links, tagged, TAGS).labels.tolist() == [0, -1]


def test_types_keep_tags_above_a_share() -> None:
    found = Projected(np.array([0, 0, 1, -1, 2], np.int32), np.array([1.0, 0.5, 0.5, 0.0, 1.0]))
    counts = type_counts(found, np.array([0, 0, 0, 1, 2], np.int32), 4, 3)
    assert counts.tolist() == [[1.5, 0.5, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]
    allowed, known = type_sets(counts, 0.3)
    assert allowed.tolist() == [[True, False, False], [True] * 3, [False, False, True], [True] * 3]
    assert known.tolist() == [True, False, True, False]
    assert type_sets(counts, 0.2)[0][0].tolist() == [True, True, False]
    with pytest.raises(ParameterError, match="type_share"):
        type_sets(counts, 1.5)


def test_tokens_are_decided_by_links_only_where_their_types_allow_it() -> None:
    types = ["das", "Haus", "neu"]
    ids = np.array([0, 1, 2, 0, 1], np.int32)
    projected = Projected(np.array([0, 1, 2, 1, 1], np.int32), np.array([1.0, 0.5, 1.0, 1.0, 0.95]))
    words = TagDictionary({"das": ["DET"], "Haus": ["NOUN", "VERB"]})
    found = constraints(ids, types, TAGS, dictionary=words, projected=projected, threshold=0.9, share=0.3)
    assert found.words.tolist() == [
        [True, False, False], [False, True, True], [False, False, True], [True, False, False], [False, True, False],
    ]  # fmt: skip
    assert found.decided.tolist() == [True, False, True, False, True]  # "das" may be no NOUN, whatever a link says
    alone = constraints(ids, types, TAGS, dictionary=words, projected=None, threshold=0.9, share=0.3)
    assert alone.words[2].all() and not alone.decided.any() and alone.known.tolist() == [True, True, False]
    links = constraints(ids, types, TAGS, dictionary=None, projected=projected, threshold=2.0, share=0.3)
    assert not links.decided.any() and links.types[0].tolist() == [True, True, False]


def test_links_may_contradict_an_entry() -> None:
    ids, words = np.zeros(20, np.int32), TagDictionary({"una": ["NOUN", "VERB"]})
    projected = Projected(np.array([0] * 19 + [1], np.int32), np.full(20, 0.5))
    given = {"dictionary": words, "projected": projected, "threshold": 0.4, "share": 0.3}
    doubted = constraints(ids, ["una"], TAGS, doubt=0.1, **given)
    assert doubted.gained.tolist() == [[True, False, False]] and doubted.types.all()
    assert doubted.decided.all() and doubted.words.sum() == 20
    for doubt, n in ((0.04, 20), (0.1, 8)):  # the entry has its share; too few links
        held = constraints(ids[:n], ["una"], TAGS, doubt=doubt, **(given | {"projected": Projected(
            projected.labels[-n:], projected.probability[-n:])}))  # fmt: skip
        assert not held.gained.any() and held.types.tolist() == [[False, True, True]]


def test_what_an_entry_gains_holds_for_new_text(tmp_path: Path) -> None:
    bitext, tagged, links = house(6)
    words = TagDictionary({"das": ["NOUN"], "Haus": ["NOUN"]})
    kept = ProjectedTagger(words, doubt=0.0, min_count=1).fit(bitext, tagged, links=links)
    tagger = ProjectedTagger(words, min_count=1).fit(bitext, tagged, links=links)
    text = Text.of(["das Haus"])
    assert kept.predict(text).strings("upos", 0) == ("NOUN", "NOUN")
    assert tagger.predict(text).strings("upos", 0) == ("DET", "NOUN") and words["das"] == ("NOUN",)
    assert tagger.explain(text, 0, 0)["dictionary"] == ["NOUN", "DET"]
    tagger.save(tmp_path / "model")
    assert ProjectedTagger.load(tmp_path / "model").predict(text).strings("upos", 0) == ("DET", "NOUN")


def test_an_entry_with_tags_of_another_set_says_nothing() -> None:
    words = TagDictionary({"das": ["FOO"]})
    found = constraints(np.zeros(1, np.int32), ["das"], TAGS, dictionary=words, projected=None, threshold=1, share=0.3)
    assert found.words.all()


# --- the field


def enumerated(scores: np.ndarray, transitions: np.ndarray, start: np.ndarray, end: np.ndarray) -> dict:
    n, k = scores.shape
    return {
        y: float(
            np.exp(sum(scores[t, y[t]] for t in range(n)) + sum(transitions[y[t - 1], y[t]] for t in range(1, n)))
            * np.exp(start[y[0]] + end[y[-1]])
        )
        for y in product(range(k), repeat=n)
    }


def test_the_objective_is_the_probability_of_what_is_allowed() -> None:
    text = Treebank.from_text(Text.of(["a b a", "b"]))
    allowed = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1]], bool)
    field, trace = LatentCrf.learn(text, allowed, order=1, l2=0.5, iterations=4, min_count=1)
    chains = field.chains(text)
    own = field.weights[: field.index.n_features * 3]
    rest = field.weights[own.size :]
    moves, start, end = rest[:9].reshape(3, 3), rest[9:12], rest[12:]
    scores = chains.scores.values.reshape(-1, 3)
    value = -0.25 * float(field.weights @ field.weights)
    for a, b in ((0, 3), (3, 4)):
        every = enumerated(scores[a:b], moves, start, end)
        inside = sum(p for y, p in every.items() if all(allowed[a + t, y[t]] for t in range(b - a)))
        value += np.log(inside / sum(every.values()))
    assert trace[-1] == pytest.approx(value, abs=1e-9)
    assert (np.diff(trace) >= 0).all()


def test_where_all_is_allowed_nothing_is_learnt() -> None:
    text = Treebank.from_text(Text.of(["a b", "b c d"]))
    field, _ = LatentCrf.learn(text, np.ones((5, 3), bool), order=2, l2=1.0, iterations=5, min_count=1)
    assert not field.weights.any()


def test_expectations_give_a_tag_the_probability_of_its_link() -> None:
    text = Treebank.from_text(Text.of(["a b a"]))
    field, _ = LatentCrf.learn(text, np.ones((3, 3), bool), order=1, l2=1.0, iterations=1, min_count=1)
    wanted = Expectations(np.array([0 * 3 + 1, 2 * 3 + 2]), np.array([0.8, 0.2]), 1e5, 9)
    q = wanted.project(Together([field.chains(text)])).q
    found = np.asarray(q.marginals()).reshape(3, 3)
    assert found[0, 1] == pytest.approx(0.8, abs=5e-3)
    assert found[2, 2] == pytest.approx(1 / 3, abs=1e-6)  # has more than is asked for, and stays


def test_expectations_are_of_tags_that_a_word_may_have() -> None:
    projected = Projected(np.array([0, 1, -1], np.int32), np.array([0.5, 0.75, 0.0]))
    found = constraints(
        np.array([0, 1, 1], np.int32), ["x", "y"], TAGS, dictionary=TagDictionary({"y": ["DET"]}), projected=projected,
        threshold=2.0, share=0.3,
    )  # fmt: skip
    wanted = expectations(projected, found, 2.0)
    assert wanted.places.tolist() == [0] and wanted.least.tolist() == [0.5]


# --- the tagger


@pytest.mark.parametrize(
    "options", [{}, {"order": 2}, {"learner": "hmm"}, {"soft": True}, {"learner": "hmm", "soft": True}]
)
def test_taggers_learn_from_links_and_never_lose_ground(options: dict, tmp_path: Path) -> None:
    bitext, tagged, links = house()
    counted = {} if options.get("learner") == "hmm" else {"min_count": 1}
    tagger = ProjectedTagger(**counted, **options).fit(bitext, tagged, links=links)
    assert tagger.labels_ == ("NOUN", "VERB", "DET")
    text = Text.of(["das Haus schläft", "der Hund"])
    assert tagger.predict(text).strings("upos", 0) == ("DET", "NOUN", "VERB")
    assert (np.diff(tagger.trace_) >= -1e-4 * np.abs(tagger.trace_[:-1])).all()
    chances = tagger.predict_proba(text)
    assert chances.shape == (5, 3) and np.allclose(chances.sum(axis=1), 1)
    tagger.save(tmp_path / "model")
    for again in (ProjectedTagger.load(tmp_path / "model"), Tagger.load(tmp_path / "model").taggers["upos"]):
        assert np.allclose(again.predict_proba(text), chances, atol=1e-5)
        assert again.evidence_ == tagger.evidence_


def test_a_dictionary_holds_for_new_text_and_brings_its_set_of_tags() -> None:
    bitext, tagged, links = house()
    words = TagDictionary({"Hund": ["NOUN"], "Katze": ["NOUN"], "schläft": ["VERB"], "und": ["CONJ"]})
    tagger = ProjectedTagger(words, min_count=1).fit(bitext, tagged, links=links)
    assert "CONJ" in tagger.labels_ and len(tagger.labels_) == 12
    assert tagger.predict(Text.of(["Katze und"])).strings("upos", 0) == ("NOUN", "CONJ")
    assert tagger.predict_proba(Text.of(["Katze"]))[0, tagger.labels_.index("VERB")] == 0.0
    why = tagger.explain(Text.of(["der Hund schläft"]), 0, 1)
    assert why["tag"] == "NOUN" and why["dictionary"] == ["NOUN"] and why["word"] == "Hund"
    assert tagger.explain(Text.of(["der Mann"]), 0, 1, rival="VERB")["dictionary"] is None
    with pytest.raises(UsageError, match="no word 7"):
        tagger.explain(Text.of(["der Mann"]), 0, 7)


def test_links_are_found_when_none_are_given() -> None:
    determiners, nouns = (
        {"the": "der", "a": "ein", "no": "kein"},
        {"dog": "Hund", "man": "Mann", "day": "Tag", "ball": "Ball"},
    )
    verbs = {"sleeps": "schläft", "comes": "kommt", "falls": "fällt"}
    ways = list(product(determiners.items(), nouns.items(), verbs.items()))
    bitext = Bitext.of([tuple(zip(*way, strict=True)) for way in ways])
    tagged = Treebank.of([[(way[0][0], "DET"), (way[1][0], "NOUN"), (way[2][0], "VERB")] for way in ways])
    tagger = ProjectedTagger(threshold=0.5).fit(bitext, tagged)
    assert tagger.evidence_["decided"] > 0
    assert tagger.predict(Text.of(["der Hund schläft"])).strings("upos", 0) == ("DET", "NOUN", "VERB")


def test_a_part_of_a_bitext_is_a_bitext() -> None:
    bitext, tagged, links = house(6)
    whole = ProjectedTagger(min_count=1).fit(*(text.part(0, 8) for text in (bitext, tagged)), links=links.part(0, 8))
    part = ProjectedTagger(min_count=1).fit(*(text.part(4, 12) for text in (bitext, tagged)), links=links.part(4, 12))
    assert part.evidence_ == whole.evidence_
    assert np.array_equal(part._fitted.model.weights, whole._fitted.model.weights)


def test_threads_change_nothing() -> None:
    bitext, tagged, links = house()
    one, two = (ProjectedTagger(threads=n, min_count=1).fit(bitext, tagged, links=links) for n in (1, 2))
    assert np.array_equal(one._fitted.model.weights, two._fitted.model.weights)


def test_words_of_the_source_tags_are_those_of_the_bitext() -> None:
    bitext = Bitext.of([("", "leer"), ("The house", "das Haus"), ("a caf\u00e9", "ein Café")])
    links = Links.of([[], [(1, 1)], [(1, 1)]])
    same = [[("the", "DET"), ("house", "NOUN")], [("A", "DET"), ("cafe\u0301", "NOUN")]]
    assert carried(bitext, links, Treebank.of(same), TAGS).labels.tolist() == [-1, -1, 1, -1, 1]
    same[1][1] = ("tea", "NOUN")
    said = r"line 5: 'tea' where .*, line 3, has 'café' \(1 of 4 words differ\)\. Tag the words"
    with pytest.raises(TreebankError, match=said):
        carried(bitext, links, Treebank.of(same), TAGS)


def test_words_are_compared_before_links_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bitext, _, _ = house()
    monkeypatch.setattr(ProjectedTagger, "_linked", lambda *a: pytest.fail("links were looked for"))
    with pytest.raises(TreebankError, match="'a' where"):
        ProjectedTagger().fit(bitext, Treebank.of([[("a", "DET")] * n for n in (2, 3)] * 4))


def test_tags_of_the_source_and_of_the_dictionary_are_of_one_set() -> None:
    bitext, tagged, links = house()
    own = TagDictionary({"Haus": "NN", "das": "ART"}, tagset="any")
    with pytest.raises(TreebankError, match=r"none of its tags \(DET, NOUN, VERB\) is one of the .* \(ART, NN\)"):
        ProjectedTagger(own).fit(bitext, tagged, links=links)


def test_texts_that_do_not_belong_together_are_named() -> None:
    bitext, tagged, links = house(1)
    with pytest.raises(TreebankError, match=r"3 sentences and .* 2 lines"):
        ProjectedTagger().fit(bitext, Treebank.of([[("a", "X")]] * 3), links=links)
    with pytest.raises(TreebankError, match="sentence 2: 2 words, and 3"):
        ProjectedTagger().fit(bitext, Treebank.of([[("the", "DET"), ("house", "NOUN")]] * 2), links=links)
    with pytest.raises(LinksError, match="1 rows of links for 2 pairs"):
        ProjectedTagger().fit(bitext, tagged, links=links.part(0, 1))
    with pytest.raises(LinksError, match="pair 1: a link goes past the end"):
        ProjectedTagger().fit(bitext, tagged, links=Links.of([[(0, 7)], []]))
    with pytest.raises(TreebankError, match="no word has a tag"):
        ProjectedTagger().fit(bitext, Treebank.from_text(bitext.source), links=links)


@pytest.mark.parametrize(
    "options", [{"learner": "svm"}, {"order": 3}, {"threshold": 1.5}, {"l2": 0.0}, {"strength": -1}]
)
def test_options_are_checked(options: dict) -> None:
    with pytest.raises(ParameterError):
        ProjectedTagger(**options).check_params()


def test_a_damaged_model_says_so(tmp_path: Path) -> None:
    bitext, tagged, links = house()
    tagger = ProjectedTagger(min_count=1).fit(bitext, tagged, links=links)
    arrays = tagger.to_arrays()
    arrays["steps"] = arrays["steps"][:-1]
    with pytest.raises(ModelError, match="array"):
        ProjectedTagger.from_parts(tagger.options_, arrays, tagger.to_meta())
    del arrays["keys"]
    with pytest.raises(ModelError, match="damaged"):
        ProjectedTagger.from_parts(tagger.options_, arrays, tagger.to_meta())
