"""Taggers that learn from one domain and tag another."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data.bitext import Text
from isogloss.data.treebank import Treebank
from isogloss.errors import DataError, ModelError, ParameterError, UsageError
from isogloss.features import positions
from isogloss.features.sparse import Sparse
from isogloss.tasks.tag import CrfTagger
from isogloss.tasks.tag.adapting import Correspondence, _steps, _unit
from isogloss.tasks.tag.labels import units_of
from isogloss.tasks.tag.learning import Learning, Real, Rows, Settings, Weights, decode
from isogloss.tasks.tag.words import word_axis

NOUN_BEFORE, VERB_BEFORE = ("the", "a", "this", "of"), ("will", "can", "to", "may")
NOUN_AFTER, VERB_AFTER = (".", "is", "was", ","), ("the", "him", "it", "them")


def letters(rng: np.random.Generator, n: int) -> list[str]:
    """Words that look alike: nothing in their spelling tells nouns from verbs."""
    return ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(n)]


def domain(seed: int, nouns: list[str], verbs: list[str], n: int) -> Treebank:
    """Content words of two classes between function words that depend on the class; a fifth of contexts is empty."""
    rng, sentences = np.random.default_rng(seed), []
    for _ in range(n):
        words = []
        for _ in range(rng.integers(1, 4)):
            noun = rng.random() < 0.5
            bare = rng.random() < 0.2
            content = (str(rng.choice(nouns if noun else verbs)), "N" if noun else "V")
            before = (str(rng.choice(NOUN_BEFORE if noun else VERB_BEFORE)), "F")
            after = (str(rng.choice(NOUN_AFTER if noun else VERB_AFTER)), "F")
            words += [content] if bare else [before, content, after]
        sentences.append(words)
    return Treebank.of(sentences)


@pytest.fixture(scope="module")
def domains() -> dict[str, Treebank | list[str]]:
    rng = np.random.default_rng(0)
    words = list(dict.fromkeys(letters(rng, 70)))
    news, bio = (words[:15], words[15:30]), (words[30:45], words[45:60])
    return {
        "source": domain(1, *news, 300), "target": domain(2, *bio, 300), "test": domain(3, *bio, 200),
        "nouns": [*news[0], *bio[0]], "verbs": [*news[1], *bio[1]],
    }  # fmt: skip


@pytest.fixture(scope="module")
def learnt(domains: dict[str, Treebank]) -> Correspondence:
    # λ for a thousand words, where 10⁻⁴ is for hundreds of thousands.
    options = {"threshold": 10, "min_count": 1, "regularisation": 0.01, "normalise": False}
    return Correspondence(h=3, **options).fit(domains["source"], domains["target"])


# --- places -------------------------------------------------------------------------------------------------------


def test_words_of_both_domains_lie_by_class(domains: dict[str, list[str]], learnt: Correspondence) -> None:
    content = [*domains["nouns"], *domains["verbs"]]
    at = learnt.places(Text.of([word] for word in content))[:, learnt.names.index("word")]
    unit = _unit(learnt.table[at])
    cosines, noun = unit @ unit.T, np.arange(60) < 30
    news = np.arange(60) % 30 < 15
    across = news[:, None] & ~news[None, :]
    within = cosines[across & (noun[:, None] == noun[None, :])]
    between = cosines[across & (noun[:, None] != noun[None, :])]
    assert within.mean() > between.mean() + 0.5
    assert np.quantile(within, 0.1) > np.quantile(between, 0.9)
    for word in domains["nouns"][20:23]:
        found = learnt.neighbours(word, 5, domain="source")
        assert {entry["word"] for entry in found} <= set(domains["nouns"][:15])
        assert all(entry["target"] == 0 < entry["source"] for entry in found)


def test_unseen_words_of_the_target_are_tagged(domains: dict[str, Treebank], learnt: Correspondence) -> None:
    plain = ["word", "form"]
    alone = CrfTagger(templates=plain).fit(domains["source"])
    adapted = CrfTagger(templates=plain).fit(domains["source"], correspondence=learnt)
    test = domains["test"]
    content = np.array([tag != "F" for s in range(len(test)) for tag in test.strings("upos", s)])
    gold = np.array([tag for s in range(len(test)) for tag in test.strings("upos", s)])[content]

    def accuracy(tagger: CrfTagger) -> float:
        found = tagger.predict(test)
        tags = np.array([tag for s in range(len(test)) for tag in found.strings("upos", s)])[content]
        return float((tags == gold).mean())

    assert accuracy(adapted) > 0.97 and accuracy(adapted) > accuracy(alone) + 0.05
    bare = Treebank.of([[(word, "N")] for word in domains["nouns"][15:]] + [[(w, "V")] for w in domains["verbs"][15:]])
    assert alone.score(bare)["upos"] < 65  # chance
    assert adapted.score(bare)["upos"] > 90


def test_looking_up_is_the_product_with_the_projection(domains: dict[str, Treebank], learnt: Correspondence) -> None:
    text = domains["test"].part(0, 20)
    places, table = learnt.places(text), learnt.table
    expected = []
    for b in range(len(learnt.names)):
        x = np.zeros((text.n_words, len(table)), np.float32)  # the binary attributes of the block
        known = np.flatnonzero(places[:, b] >= 0)
        x[known, places[known, b]] = 1
        expected.append(x @ table)
    assert learnt.transform(text) == pytest.approx(np.concatenate(expected, axis=1), abs=1e-6)
    unknown = learnt.transform(Text.of(["Zzzzzqqq"]))[0].reshape(len(learnt.names), -1)
    assert not unknown[learnt.names.index("word")].any() and unknown[learnt.names.index("word[-1]")].any()


def test_each_block_is_orthonormal(learnt: Correspondence, domains: dict[str, Treebank]) -> None:
    places = np.concatenate([learnt.places(domains[name]) for name in ("source", "target")])
    for b in range(len(learnt.names)):
        theta = learnt.table[np.unique(places[:, b][places[:, b] >= 0])].T.astype(float)
        kept = theta.any(axis=1)
        assert theta[kept] @ theta[kept].T == pytest.approx(np.eye(kept.sum()), abs=1e-5)
        assert not (learnt.strengths_[b] > 0)[~kept].any()


def test_attributes_that_look_at_a_word_are_hidden_from_its_pivots() -> None:
    assert _steps("word[-1] & word") == {-1, 0} and _steps("suffix3[+2]") == {2} and _steps("look & suffix2") == {0}
    found = Correspondence(["word", "word[-1]", "suffix2[+1]", "word[-1] & word[+1]", "word[+2]"])
    blocks = np.array([0, 1, 2, 3, 4, -1], np.int32)
    assert found._made_of(-1, blocks).tolist() == [False, True, False, True, False, False]
    assert found._made_of(0, blocks).tolist() == [True, False, False, False, False, False]
    assert found._made_of(1, blocks).tolist() == [False, False, True, True, False, False]


def test_the_same_text_twice_is_the_method_of_one_domain(domains: dict[str, Treebank]) -> None:
    text = domains["source"].part(0, 80)
    options = {
        "h": 2,
        "threshold": 8,
        "regularisation": 0.05,
        "tolerance": 1e-9,
        "min_count": 1,
        "normalise": False,
        "templates": ["word", "word[-1]", "word[+1]"],
    }
    one, two = Correspondence(**options).fit(text), Correspondence(**options).fit(text, text)
    assert one.pivots_ == two.pivots_
    assert two.table == pytest.approx(one.table, abs=1e-4)
    assert two.strengths_ == pytest.approx(one.strengths_, abs=1e-5)


def test_threads_do_not_matter(domains: dict[str, Treebank]) -> None:
    one, two = (
        Correspondence(h=2, regularisation=0.01, threads=n).fit(domains["source"], domains["target"]) for n in (1, 2)
    )
    for name, array in one.to_arrays().items():
        assert np.array_equal(array, two.to_arrays()[name]), name


# --- taggers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [1.0, 0.5])
@pytest.mark.parametrize("order", [1, 2])
def test_places_that_are_zero_change_nothing(
    domains: dict[str, Treebank], learnt: Correspondence, kept: float, order: int
) -> None:
    nothing = Correspondence.from_arrays(learnt.options_, learnt.to_arrays())
    nothing._table, nothing.kept = np.zeros_like(learnt.table), kept
    flat = Correspondence(h=0).fit(domains["source"], domains["target"])
    text = domains["source"].part(0, 60)
    plain = CrfTagger(order=order, iterations=3).fit(text)
    for none in (nothing, flat):
        tagger = CrfTagger(order=order, iterations=3).fit(text, correspondence=none)
        assert np.array_equal(plain.predict_proba(domains["test"]), tagger.predict_proba(domains["test"]))
        assert np.array_equal(plain.trace_, tagger.trace_)


@pytest.mark.parametrize("scale", [5.0, 1.5])
def test_places_are_so_many_times_as_large_as_binary_attributes(
    domains: dict[str, Treebank], learnt: Correspondence, scale: float
) -> None:
    given = Correspondence.from_arrays(learnt.options_, learnt.to_arrays())
    given.scale, given.kept = scale, 1.0
    tagger, text = CrfTagger(iterations=1), domains["source"].part(0, 50)
    adapted = tagger.fit(text, correspondence=given)._learnt.adapted
    parts = positions(word_axis(text.columns["form"].ids, text.columns["form"].vocabulary.types, text.offsets))
    binary = (tagger._templates.keys(parts) != 0).sum(axis=1).mean()
    projected = np.abs(adapted.scale * given.transform(text)).sum(axis=1).mean()
    assert projected / binary == pytest.approx(scale, rel=1e-5)
    assert adapted.real(text).mean_size() / binary == pytest.approx(scale, rel=1e-5)


def test_half_of_the_dimensions_are_kept(domains: dict[str, Treebank], learnt: Correspondence) -> None:
    adapted = CrfTagger(iterations=1).fit(domains["source"], correspondence=learnt)._learnt.adapted
    assert len(adapted.blocks) == len(adapted.dimensions) == int(np.ceil(len(learnt.names) * 3 / 2))
    assert len(set(zip(adapted.blocks.tolist(), adapted.dimensions.tolist(), strict=True))) == len(adapted.blocks)
    assert learnt.names.index("word") in adapted.blocks


class Small:
    """A few words with random real-valued attributes, beside one binary attribute."""

    def __init__(self, seed: int, n: int) -> None:
        rng = np.random.default_rng(seed)
        self.k, self.units = 3, units_of(["a", "b", "c"], split=False)
        self.table = rng.normal(size=(5, 2)).astype(np.float32)
        self.places = rng.integers(-1, 5, (n, 2)).astype(np.int32)
        chosen = np.array([0, 0, 1], np.int32), np.array([0, 1, 1], np.int32)
        self.real = Real(self.places, self.table, *chosen, np.float32(0))
        padded = np.concatenate([self.table, np.zeros((1, 2), np.float32)])  # −1 is the last
        self.values = np.stack([padded[self.places[:, b], d] for b, d in zip(*chosen, strict=True)], axis=1)
        self.attributes = Sparse.of([[0]] * n, 1)
        self.rows = Rows(np.array([0, 3]), np.arange(3, dtype=np.int32))
        self.offsets = np.array([0, n])


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2]), st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_sums_are_those_of_enumeration(seed: int, order: int, n: int) -> None:
    model = Small(seed, n)
    rng = np.random.default_rng(seed + 1)
    size = 3 + 4 * 3
    draws = [rng.normal(size=m).astype(np.float32) for m in (size, size, 16, 64 * (order == 2))]
    given = (model.attributes, model.offsets, model.rows, model.units, Weights(*draws))
    found = decode(*given, Settings(order=order, margin=1e6, most=3), model.real)
    nodes = draws[1][:3].astype(float) + model.values.astype(float) @ draws[1][3:].reshape(4, 3)[:3].T.astype(float)
    moves, every = draws[2].reshape(4, 4).astype(float), list(itertools.product(range(3), repeat=n))
    scores = []
    for labels in every:
        padded = (3, 3, *labels, 3)
        score = sum(nodes[t, y] for t, y in enumerate(labels))
        score += sum(moves[x, y] for x, y in itertools.pairwise(padded[1:]))
        if order == 2:
            triples = draws[3].reshape(4, 4, 4).astype(float)
            score += sum(triples[z] for z in zip(padded, padded[1:], padded[2:], strict=False))
        scores.append(score)
    assert found.totals[0] == pytest.approx(np.logaddexp.reduce(scores), abs=1e-4)


@pytest.mark.parametrize("first", [0, 1])
def test_the_first_step_tells_the_gradient(first: int) -> None:
    """From 0 AdaGrad goes rate · g / (1 + |g|), and g is (right − 1/3) x for each unit and attribute."""
    model = Small(4, 1)
    options = Settings(order=1, margin=1e6, most=3, iterations=1 - first, rate=1e-3, l1=0.0, folds=1)
    options = options._replace(first_iterations=first)
    given = (model.attributes, model.offsets, np.array([1]), model.rows, model.units, options)
    weights, _, _ = Learning(*given, real=model.real).run()
    found = (weights.pruner if first else weights.nodes)[3:].reshape(4, 3)
    g = np.outer([-1 / 3, 2 / 3, -1 / 3, 0], model.values[0])
    assert found == pytest.approx(1e-3 * g / (1 + np.abs(g)), rel=1e-4, abs=1e-9)


def test_saved_is_as_learnt(domains: dict[str, Treebank], learnt: Correspondence, tmp_path: Path) -> None:
    tagger = CrfTagger(iterations=2).fit(domains["source"], domains["test"], correspondence=learnt)
    assert len(tagger.tuning_) == 2 and tagger.score(domains["test"])["upos"] == pytest.approx(tagger.tuning_.max())
    tagger.save(tmp_path / "model")
    again = CrfTagger.load(tmp_path / "model")
    assert np.array_equal(tagger.predict_proba(domains["test"]), again.predict_proba(domains["test"]))
    kept = again._learnt.adapted.correspondence
    assert kept.pivots_ == learnt.pivots_ and kept.neighbours("the", 3) == learnt.neighbours("the", 3)
    options, arrays, meta = tagger.options_, tagger.to_arrays(), tagger.to_meta()
    for name, array in (
        ("nodes", arrays["nodes"][:-1]),
        ("correspondence.table", arrays["correspondence.table"][1:]),
        ("correspondence.blocks", arrays["correspondence.blocks"] + 1000),
        ("correspondence.dimensions", arrays["correspondence.dimensions"][:-1]),
    ):
        with pytest.raises(ModelError):
            CrfTagger.from_parts(options, arrays | {name: array}, meta)


def test_explained_is_what_was_added(domains: dict[str, Treebank], learnt: Correspondence) -> None:
    tagger = CrfTagger(order=1, iterations=3).fit(domains["source"], correspondence=learnt)
    text = domains["test"]
    why = tagger.explain(text, 0, 0)
    fitted = tagger._learnt
    y, z = (fitted.labels.index(why[name]) for name in ("tag", "rival"))
    real = fitted.adapted.real(text)
    weights = fitted.weights.nodes[len(fitted.rows.units) :].reshape(-1, len(real.blocks))
    at = real.places[0, real.blocks]
    values = np.where(at >= 0, real.table[at, real.dimensions], 0)
    listed = [entry["weight"] for entry in why["attributes"] if entry["template"].endswith("(correspondence)")]
    assert listed and sum(listed) == pytest.approx(float((weights[y] - weights[z]) @ values), rel=1e-4)


# --- edges --------------------------------------------------------------------------------------------------------


def test_empty_and_short_sentences() -> None:
    source, target = Text.of(["", "a", "a b", "b a"] * 3), Text.of(["a", "", "a c", "c a"] * 3)
    found = Correspondence(h=25, threshold=2).fit(source, target)  # fewer words than dimensions
    assert found.transform(Text.of(["", "a", ""])).shape == (1, 25 * len(found.names))
    assert found.transform(Text.of([""])).shape == (0, 25 * len(found.names))
    assert {word for _, word in found.pivots_} == {"a"}  # places outside sentences are no pivots
    trees = Treebank.of([[("a", "X"), ("b", "Y")], [("b", "Y")]])
    assert CrfTagger(iterations=1).fit(trees, correspondence=found).predict(Text.of(["", "a"])).n_words == 1


def test_no_pivots_says_what_to_do() -> None:
    with pytest.raises(DataError, match=r"more than 20 times .* reaches is 3\. .* lower threshold"):
        Correspondence().fit(Text.of(["a b c"] * 9), Text.of(["a d"] * 3))


@pytest.mark.parametrize(
    "wrong", [{"h": -1}, {"threshold": 2.5}, {"regularisation": 0.0}, {"scale": -1.0}, {"kept": 0}, {"kept": 1.5}]
)
def test_wrong_options_are_named(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Correspondence(**wrong).check_params()


def test_asking_wrongly(learnt: Correspondence) -> None:
    with pytest.raises(UsageError, match="fit first"):
        Correspondence().transform(Text.of(["a"]))
    with pytest.raises(UsageError, match="template"):
        learnt.neighbours("the", template="nothing")
    with pytest.raises(UsageError, match="domain"):
        learnt.neighbours("the", domain="news")
    assert learnt.neighbours("zzzzzz") == []
