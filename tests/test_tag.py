"""Taggers: against enumeration, against chains of the library, on toy languages, and on files."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import samples, store
from isogloss.data.bitext import Text
from isogloss.data.treebank import Treebank
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.features.sparse import Sparse
from isogloss.learners.runner import Interrupted
from isogloss.tasks.tag import CrfTagger, Tagger, jackknife
from isogloss.tasks.tag.labels import units_of
from isogloss.tasks.tag.learning import LabelChains, Learning, Real, Rows, Settings, Weights, decode, rows_of
from isogloss.tasks.tag.words import word_axis, word_codes

DATA = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"

BUNDLES = ("Case=Nom|Number=Sing", "Case=Nom|Number=Plur", "Case=Acc|Number=Sing", "_")


def toy(n: int, seed: int = 0) -> Treebank:
    """A language in which endings tell what words are, but for one ending that depends on the word before."""
    rng = np.random.default_rng(seed)
    stems = ["".join(rng.choice(list("bdgklmn"), 3)) for _ in range(40)]
    rows = []
    for _ in range(n):
        row, before = [], ""
        for _ in range(int(rng.integers(2, 8))):
            tag = str(rng.choice(["NOUN", "VERB", "DET"]))
            if rng.random() < 0.3:  # "o" is a noun after a determiner and a verb otherwise
                tag, ending = ("NOUN", "o") if before == "DET" else ("VERB", "o")
            else:
                ending = {"NOUN": "us", "VERB": "it", "DET": "e"}[tag]
            feats = {"NOUN": "Case=Nom|Number=Sing", "VERB": "Number=Sing", "DET": "_"}[tag]
            row.append({"form": str(rng.choice(stems)) + ending, "upos": tag, "feats": feats})
            before = tag
        rows.append(row)
    return Treebank.of(rows)


# --- the program against enumeration ------------------------------------------------------------------------------


class Model:
    """Random weights over a few attributes, and the scores of label sequences by their definition."""

    def __init__(self, seed: int, order: int, labels: tuple[str, ...], split: bool, lengths: tuple[int, ...]) -> None:
        rng = np.random.default_rng(seed)
        self.order, self.units = order, units_of(labels, split=split)
        self.k, n_attributes = len(labels), 5
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n = int(self.offsets[-1])
        self.attributes = Sparse.of(
            [sorted(rng.choice(n_attributes, 2, replace=False)) for _ in range(n)], n_attributes
        )
        inside = [u for u in range(self.units.size) if u != self.k]
        chosen = [
            sorted(rng.choice(inside, rng.integers(1, len(inside) + 1), replace=False)) for _ in range(n_attributes)
        ]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in chosen])]).astype(np.int64)
        self.rows = Rows(starts, np.concatenate(chosen).astype(np.int32))
        size = (self.k + 1) ** 3 if order == 2 else 0

        def draw(m: int) -> np.ndarray:
            return rng.normal(size=m).astype(np.float32)

        self.weights = Weights(
            draw(len(self.rows.units)), draw(len(self.rows.units)), draw(self.units.size**2), draw(size)
        )
        self.gold = rng.integers(0, self.k, n)

    def members(self, y: int) -> list[int]:
        return self.units.members[self.units.heads[y] : self.units.heads[y + 1]].tolist()

    def node(self, r: int, y: int) -> float:
        total = 0.0
        for a in self.attributes.indices[self.attributes.indptr[r] : self.attributes.indptr[r + 1]]:
            for p in range(self.rows.starts[a], self.rows.starts[a + 1]):
                total += float(self.weights.nodes[p]) * (self.rows.units[p] in self.members(y))
        return total

    def move(self, x: int, y: int) -> float:
        table = self.weights.moves.reshape(self.units.size, self.units.size).astype(float)
        return table[x, y] + sum(table[u, v] for u in self.members(x)[1:] for v in self.members(y)[1:])

    def score(self, s: int, labels: tuple[int, ...]) -> float:
        first, k = int(self.offsets[s]), self.k
        total = sum(self.node(first + t, y) for t, y in enumerate(labels))
        padded = (k, k, *labels, k)
        total += sum(self.move(x, y) for x, y in itertools.pairwise(padded[1:]))
        if self.order == 2:
            table = self.weights.triples.reshape(k + 1, k + 1, k + 1).astype(float)
            total += sum(table[z] for z in zip(padded, padded[1:], padded[2:], strict=False))
        return total

    def listed(self, s: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
        n = int(self.offsets[s + 1] - self.offsets[s])
        every = list(itertools.product(range(self.k), repeat=n))
        return every, np.array([self.score(s, y) for y in every])


@given(seed=st.integers(0, 2**32 - 1), order=st.sampled_from([1, 2]), split=st.booleans())
@settings(max_examples=15, deadline=None)
def test_sums_posteriors_and_best_sequences_are_those_of_enumeration(seed: int, order: int, split: bool) -> None:
    model = Model(seed, order, BUNDLES[:3], split, (3, 0, 1, 4))
    wide = Settings(order=order, margin=1e6, most=3)
    given = (model.attributes, model.offsets, model.rows, model.units, model.weights, wide)
    soft, hard = decode(*given), decode(*given, hard=True)
    for s in (0, 2, 3):
        every, scores = model.listed(s)
        total = np.logaddexp.reduce(scores)
        assert soft.totals[s] == pytest.approx(total, abs=1e-4)
        assert hard.totals[s] == pytest.approx(scores.max(), abs=1e-4)
        words = slice(int(model.offsets[s]), int(model.offsets[s + 1]))
        assert tuple(hard.labels[words]) == every[int(scores.argmax())]
        expected = np.zeros((words.stop - words.start, model.k))
        for y, p in zip(every, np.exp(scores - total), strict=True):
            expected[np.arange(len(y)), y] += p
        found = np.zeros_like(expected)
        np.put_along_axis(found, soft.lists[words].astype(np.int64), soft.chances[words].astype(float), axis=1)
        assert np.abs(found - expected).max() < 1e-4
        assert np.array_equal(soft.labels[words], expected.argmax(axis=1))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [128, 2048])
def test_scores_may_be_further_apart_than_probabilities_reach(order: int, scale: int) -> None:
    for seed in range(8):
        model = Model(seed, order, BUNDLES[:3], True, (3, 0, 1, 4))
        # whole multiples, which float32 adds up without rounding
        rounded = (np.round(4 * w) * np.float32(scale / 4) for w in vars(model.weights).values())
        model.weights = Weights(*rounded)
        wide = Settings(order=order, margin=1e9, most=3)
        soft = decode(model.attributes, model.offsets, model.rows, model.units, model.weights, wide)
        for s in (0, 2, 3):
            every, scores = model.listed(s)
            total = np.logaddexp.reduce(scores)
            assert soft.totals[s] == pytest.approx(total, rel=1e-12)
            words = slice(int(model.offsets[s]), int(model.offsets[s + 1]))
            expected = np.zeros((words.stop - words.start, model.k))
            for y, p in zip(every, np.exp(scores - total), strict=True):
                expected[np.arange(len(y)), y] += p
            found = np.zeros_like(expected)
            np.put_along_axis(found, soft.lists[words].astype(np.int64), soft.chances[words].astype(float), axis=1)
            assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n_words", [1, 3])
def test_one_step_goes_up_the_gradient_of_the_likelihood(order: int, n_words: int) -> None:
    """Without penalties the first step of AdaGrad from 0 is rate · g / (1 + |g|): it tells the gradient at 0.

    In a sentence of several words a weight may take several steps, whose slopes are not known apart.
    """
    model = Model(3, order, BUNDLES, True, (n_words,))
    wide = Settings(order=order, margin=1e6, most=4, iterations=1, rate=1e-3, l1=0.0, folds=1, first_iterations=0)
    learning = Learning(model.attributes, model.offsets, model.gold, model.rows, model.units, wide)
    found, values, _ = learning.run()
    assert values[-1] == pytest.approx(-n_words * np.log(4), abs=1e-5)  # all labels alike

    def likelihood(weights: Weights) -> float:
        model.weights = weights
        every, scores = model.listed(0)
        return float(scores[every.index(tuple(model.gold))] - np.logaddexp.reduce(scores))

    zero = Weights(*(np.zeros_like(array) for array in vars(found).values()))
    for name in ("moves", "triples", "nodes"):
        step = getattr(found, name)
        for p in np.flatnonzero(np.abs(step) > 1e-5)[:12]:
            bent = {key: array.copy() for key, array in vars(zero).items()}
            bent[name][p] = 0.01
            above = likelihood(Weights(**bent))
            bent[name][p] = -0.01
            slope = (above - likelihood(Weights(**bent))) / 0.02
            if n_words == 1:
                assert step[p] == pytest.approx(1e-3 * slope / (1 + abs(slope)), rel=1e-3, abs=1e-7)
            elif abs(slope) > 0.05:
                assert np.sign(step[p]) == np.sign(slope)


def test_short_lists_hold_the_best_labels_and_gold() -> None:
    from isogloss.tasks.tag._numba.chain import prune
    from isogloss.tasks.tag._numba.scores import shortlist

    scores, out = np.array([1.0, 5.0, 3.0, 4.9, -2.0], np.float32), np.zeros(3, np.int32)
    assert shortlist(scores, np.float32(5), np.float32(2.5), 3, out) == 3
    assert out.tolist() == [1, 3, 2]
    assert shortlist(scores, np.float32(5), np.float32(0.5), 3, out) == 2
    assert shortlist(scores, np.float32(5), np.float32(100), 2, out[:2]) == 2
    assert out[:2].tolist() == [1, 3]
    model = Model(0, 1, BUNDLES, False, (20,))
    lists, sizes = np.zeros((20, 2), np.int32), np.zeros(20, np.int32)
    given = (model.attributes.indptr, model.attributes.indices, *model.rows, model.units.heads, model.units.members)
    given += (Real.none(20),)
    more = (model.weights.pruner, model.gold, np.float32(0.1), model.units.size, lists, sizes)
    prune(0, 1, np.array([0]), model.offsets, *given, *more)
    assert all(model.gold[r] in lists[r, : sizes[r]] for r in range(20))


def test_rows_have_units_that_were_met() -> None:
    units = units_of(BUNDLES, split=True)
    attributes = Sparse.of([[0, 1], [1], [1]], 3)
    rows = rows_of(attributes, np.array([0, 3, 0]), units, dense=3)
    assert rows.units[: rows.starts[1]].tolist() == [0, 5, 6]  # itself, Case=Nom, Number=Sing
    assert rows.units[rows.starts[1] : rows.starts[2]].tolist() == [u for u in range(units.size) if u != 4]
    assert rows.starts[3] == rows.starts[2]


# --- words --------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=6))
@settings(max_examples=40, deadline=None)
def test_codes_are_equal_where_letters_are(words: list[str]) -> None:
    codes = word_codes(words)
    small = [word.lower() for word in words]
    for i, j in itertools.combinations(range(len(words)), 2):
        assert (codes["form"][i] == codes["form"][j]) == (words[i] == words[j])
        assert (codes["word"][i] == codes["word"][j]) == (small[i] == small[j])
        for m in range(1, 5):
            for name, cut in (("prefix", slice(0, m)), ("suffix", slice(-m, None))):
                both = len(small[i]) >= m and len(small[j]) >= m
                same = codes[f"{name}{m}"][i] == codes[f"{name}{m}"][j]
                if both:
                    assert same == (small[i][cut] == small[j][cut])
                assert (codes[f"{name}{m}"][i] == -1) == (len(small[i]) < m)


def test_looks_tell_capitals_digits_and_marks() -> None:
    words = ["dog", "Dog", "DOG", "iPod", "1984", "x-ray", "...", "U.S.", "犬"]
    looks = word_codes(words)["look"].tolist()
    assert len(set(looks)) == len(words) - 1  # letters without case look like small ones
    assert word_codes(["Dog", "Cattle"])["shape"].tolist().count(word_codes(["Dog"])["shape"][0]) == 2


def test_codes_do_not_depend_on_the_text() -> None:
    one = word_axis(np.array([0, 1], np.int32), ["ab", "cd"], np.array([0, 2]))
    two = word_axis(np.array([3, 0], np.int32), ["cd", "x", "y", "ab"], np.array([0, 2]))
    assert all(np.array_equal(one.attributes[name], two.attributes[name]) for name in one.attributes)


# --- taggers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("decoder", ["marginal", "viterbi"])
def test_learns_what_depends_on_the_tag_before(order: int, decoder: str) -> None:
    tagger = CrfTagger(order=order, decoder=decoder).fit(toy(300))
    assert tagger.score(toy(100, seed=1))["upos"] > 98


def test_the_chain_is_worth_something() -> None:
    """With the word alone as an attribute, only the chain can tell one `-o` from the other."""
    plain = CrfTagger(order=1, templates=["suffix1"]).fit(toy(300))
    assert plain.score(toy(100, seed=1))["upos"] > 98


def test_threads_and_pieces_of_text_do_not_matter() -> None:
    text, new = toy(150), toy(150, seed=1)
    one, two = CrfTagger(threads=1).fit(text), CrfTagger(threads=2).fit(text)
    for name, array in one.to_arrays().items():
        assert np.array_equal(array, two.to_arrays()[name]), name
    whole = one.predict_proba(new)
    parts = [two.predict_proba(new.part(s, s + 50)) for s in (0, 50, 100)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert np.abs(whole.sum(axis=1) - 1).max() < 1e-5


def test_dev_chooses_the_pass() -> None:
    text, dev = toy(60), toy(60, seed=1)
    tagger = CrfTagger(iterations=4).fit(text, dev)
    assert len(tagger.tuning_) == 4 and tagger.score(dev)["upos"] == pytest.approx(tagger.tuning_.max())


def test_saved_is_as_learnt(tmp_path: Path) -> None:
    text, new = toy(80), toy(20, seed=1)
    tagger = Tagger(["upos", "feats"], order=1).fit(text)
    tagger.save(tmp_path / "both")
    again = Tagger.load(tmp_path / "both")
    assert again.columns == ("upos", "feats") and again.predict(new).to_bytes() == tagger.predict(new).to_bytes()
    assert isinstance(store.load(tmp_path / "both"), Tagger)
    single = tagger.taggers["upos"]
    single.save(tmp_path / "one")
    assert Tagger.load(tmp_path / "one").columns == ("upos",)
    loaded = CrfTagger.load(tmp_path / "one")
    assert np.array_equal(loaded.predict_proba(new), single.predict_proba(new)) and loaded.options_ == single.options_
    with pytest.raises(ModelError):
        CrfTagger.load(tmp_path / "both")


def test_taggers_with_options_of_their_own() -> None:
    upos, feats = CrfTagger("upos", order=1, iterations=2), CrfTagger("feats", iterations=3)
    tagger = Tagger.of(feats, upos)
    assert tagger.columns == ("feats", "upos") and list(tagger.taggers) == ["upos", "feats"]
    tagger.fit(toy(20))
    assert tagger.taggers["upos"] is upos and len(upos.trace_) == 2 and len(feats.trace_) == 3
    assert tagger.set_params(iterations=1) is tagger and upos.iterations == feats.iterations == 1
    tagger.fit(toy(20))
    assert len(upos.trace_) == len(feats.trace_) == 1
    plain = Tagger(["upos"], iterations=2).fit(toy(20))
    learnt = plain.taggers["upos"]
    assert plain.set_params(iterations=1).taggers["upos"] is learnt and len(learnt.trace_) == 2
    assert len(plain.fit(toy(20)).taggers["upos"].trace_) == 1
    with pytest.raises(ParameterError, match="Templates: 'no such thing'"):
        plain.set_params(templates=["no such thing"]).check_params()


def test_damaged_arrays_are_refused() -> None:
    tagger = CrfTagger(order=1).fit(toy(30))
    for name, change in (("units", lambda a: a[:-1]), ("moves", lambda a: a[:-1]), ("units", lambda a: a + 1000)):
        arrays = tagger.to_arrays()
        arrays[name] = change(arrays[name])
        with pytest.raises(ModelError):
            CrfTagger.from_parts(tagger.options_, arrays, tagger.to_meta())


def test_everything_else_in_the_file_stays() -> None:
    lines = ["# text = A b", "1-2 Ab _ _ _ _ _ _ _ _", "1 a A X Y _ 2 det _ Z=1", "2 b _ X _ _ 0 root _ _", "", ""]
    data = "\n".join([lines[0], *(line.replace(" ", "\t") for line in lines[1:])])
    tagger = CrfTagger().fit(toy(30))
    out = tagger.predict(Treebank.from_bytes(data.encode())).to_bytes().decode()
    kept = [line.split("\t")[:3] + line.split("\t")[4:] for line in data.splitlines()]
    note, *rest = out.splitlines()
    assert note == "# isogloss_predicted = UPOS"
    assert [line.split("\t")[:3] + line.split("\t")[4:] for line in rest] == kept
    assert all(line.split("\t")[3] in tagger.labels_ for line in rest[2:4])


def test_text_and_empty_sentences() -> None:
    tagger = CrfTagger().fit(toy(30))
    found = tagger.predict(Text.of(["bdgus", "", "klme klmo"]))
    assert found.lengths.tolist() == [1, 0, 2] and found.strings("upos", 2) == ("DET", "NOUN")
    nothing = tagger.predict(Text.of([]))
    assert len(nothing) == 0 and tagger.predict_proba(Text.of([])).shape == (0, 3)


def test_explains_what_speaks_for_a_tag() -> None:
    tagger = CrfTagger(order=1).fit(toy(100))
    found = tagger.explain(Text.of(["klme bdgus"]), 0, 1)
    assert found["tag"] == "NOUN" and found["word"] == "bdgus"
    names = [entry["template"] for entry in found["attributes"][:6]]
    assert any("suffix" in name for name in names)
    assert [entry["place"] for entry in found["neighbours"]] == ["before", "after"]
    assert tagger.explain(Text.of(["klme bdgus"]), 0, 1, rival="DET")["rival"] == "DET"
    with pytest.raises(UsageError):
        tagger.explain(Text.of(["klme"]), 0, 1)
    with pytest.raises(UsageError):
        tagger.explain(Text.of(["klme"]), 0, 0, rival="X")


def test_jackknife_tags_by_other_folds() -> None:
    """A word that occurs once cannot be known to the tagger that tags it."""
    rows = [[{"form": f"w{i}", "upos": "X" if i % 2 else "Y"}, {"form": "end", "upos": "Z"}] for i in range(40)]
    text = Treebank.of(rows)
    templates = ["form"]
    found = jackknife(text, CrfTagger(order=1, templates=templates), folds=4)
    tags = np.array([found.strings("upos", s)[0] for s in range(40)])
    right = np.array([text.strings("upos", s)[0] for s in range(40)])
    assert (tags == right).mean() < 0.75 and all(found.strings("upos", s)[1] == "Z" for s in range(40))
    assert CrfTagger(order=1, templates=templates).fit(text).score(text)["upos"] == 100
    again = jackknife(text, CrfTagger(order=1, templates=templates), folds=4, threads=1)
    assert again.to_bytes() == found.to_bytes()
    with pytest.raises(ParameterError):
        jackknife(text, folds=1)


def test_nothing_to_learn_and_wrong_options_are_named() -> None:
    with pytest.raises(TreebankError, match="column xpos"):
        CrfTagger("xpos").fit(toy(5))
    with pytest.raises(UsageError, match="fit first"):
        CrfTagger().predict(toy(5))
    for options in ({"column": "lemma"}, {"order": 3}, {"rate": 0.0}, {"iterations": 0}, {"decoder": "best"}):
        with pytest.raises(ParameterError):
            CrfTagger(**options).check_params()
    for columns in (["upos", "upos"], [], ["upos", "lemma"]):
        with pytest.raises(ParameterError, match="Tagger: columns should be some of"):
            Tagger(columns).fit(toy(5))


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="needs treebanks in ISOGLOSS_DATA")
def test_a_small_treebank_is_tagged_well() -> None:
    train = Treebank.read(DATA / "hu-szeged/train.conllu.gz").part(0, 250)
    dev = Treebank.read(DATA / "hu-szeged/dev.conllu.gz").part(0, 100)
    assert CrfTagger(iterations=3).fit(train).score(dev)["upos"] > 88
    assert CrfTagger("feats", order=1, iterations=3).fit(train).score(dev)["feats"] > 75


def test_an_interrupted_tagger_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = Treebank.from_bytes(samples.trees("en-de", "target").encode(), "de.conllu")
    whole = CrfTagger(iterations=4).fit(trees, trees)
    passes, before = [], LabelChains.ftrl_pass

    def stopping(self: Any, *given: Any) -> float:
        passes.append(1)
        if len(passes) == 3:
            signal.raise_signal(signal.SIGINT)
        return before(self, *given)

    monkeypatch.setattr(LabelChains, "ftrl_pass", stopping)
    with pytest.raises(Interrupted, match=r"keeps iteration 3 of 4"):
        CrfTagger(iterations=4).fit(trees, trees, checkpoint=tmp_path / "c")
    resumed = CrfTagger(iterations=4).fit(trees, trees, checkpoint=tmp_path / "c", resume=True)
    assert len(passes) == 4 and np.array_equal(resumed.tuning_, whole.tuning_)
    for name, array in whole.to_arrays().items():
        np.testing.assert_array_equal(array, resumed.to_arrays()[name], err_msg=name)
    with pytest.raises(UsageError, match="iterations was 4 and is 5"):
        CrfTagger(iterations=5).fit(trees, trees, checkpoint=tmp_path / "c", resume=True)


def test_triples_without_room_of_their_own_are_spread_over_all_there_is() -> None:
    from isogloss.tasks.tag._numba.chain import ROOM_BITS, _triple
    from isogloss.tasks.tag.learning import ROOM, n_triples

    assert ROOM == 1 << ROOM_BITS == n_triples(200, 2) and n_triples(4, 2) == 125
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers(0, 201, (40_000, 3)), axis=0)
    places = np.array([_triple(*triple, 201, ROOM) for triple in triples.tolist()])
    assert places.min() >= 0 and places.max() < ROOM
    expected = ROOM * (1 - (1 - 1 / ROOM) ** len(triples))  # of places, if they were drawn at random
    assert len(np.unique(places)) > 0.99 * expected
    assert {_triple(x, y, z, 5, 125) for x in range(5) for y in range(5) for z in range(5)} == set(range(125))
