"""A parser from the treebanks of several languages, by tags: `DelexicalisedParser` and `isogloss transfer combine`."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from isogloss import cli, samples, store
from isogloss.data import Text, Treebank, features_of
from isogloss.errors import ModelError, ParameterError, TreebankError, UsageError
from isogloss.structures.batch import Stack
from isogloss.tasks.parse.cutting import LONGEST
from isogloss.tasks.parse.words import encode
from isogloss.tasks.transfer import DelexicalisedParser
from isogloss.tasks.transfer.directions import (
    RIDGE,
    corrected,
    direction_factors,
    predicted_directions,
    tag_directions,
    tag_orders,
)
from isogloss.tasks.transfer.similarity import (
    CLOSEST,
    KINDS,
    TRIGRAMS,
    divergence,
    similarity_weights,
    tag_kinds,
    tag_trigrams,
)
from isogloss.tasks.transfer.views import universal, without_words
from isogloss.testing.enumerate import trees as all_trees

FILES = {"en": ("en-de", "source"), "de": ("en-de", "target"), "tr": ("en-tr", "target")}
TREES = {name: Treebank.from_bytes(samples.trees(*place).encode()) for name, place in FILES.items()}
TEXT = Treebank.from_bytes(samples.trees("en-tr", "source").encode())
TAGS = ("NOUN", "VERB", "ADP", "DET", "PUNCT")


@pytest.fixture(scope="module")
def parser() -> DelexicalisedParser:
    return DelexicalisedParser(iterations=2).fit(TREES)


def tagged(*sentences: str) -> Treebank:
    return Treebank.of([[("w", tag) for tag in sentence.split()] for sentence in sentences])


# --- how near sources are


def counted(trees: Treebank) -> Counter[tuple[str, ...]]:
    """Trigrams by another road."""
    found: Counter[tuple[str, ...]] = Counter()
    for s in range(len(trees)):
        tags = ["<", *trees.strings("upos", s), ">"]
        found.update(zip(tags, tags[1:], tags[2:], strict=False))
    return found


def test_trigrams_are_those_around_each_word() -> None:
    trees = Treebank.of([[], [("a", "NOUN")], [("b", "VERB"), ("c", "NEW"), ("d", "_")], [("e", "NOUN")]])
    for text in (trees, TREES["de"]):
        counts = tag_trigrams(text)
        assert counts.sum() == text.n_words
        assert sorted(counts[counts > 0].tolist()) == sorted(counted(text).values())
    assert tag_trigrams(tagged("NOUN VERB")).tolist() != tag_trigrams(tagged("VERB NOUN")).tolist()
    assert np.array_equal(tag_trigrams(tagged("NOUN", "VERB")), tag_trigrams(tagged("VERB", "NOUN")))
    assert not tag_trigrams(Treebank.of([])).any()


def test_divergence_by_hand() -> None:
    """Both have the trigrams of DET NOUN, twice; the target alone has VERB by itself, the source NOUN, twice."""
    target = tag_trigrams(tagged("DET NOUN", "DET NOUN", "VERB"))
    source = tag_trigrams(tagged("DET NOUN", "NOUN", "NOUN", "DET NOUN"))
    # 2/5 against 2/7, twice, and 1/5 against the 1/7 of one that was not seen: 6 words, and 1 for what is smoothed
    by_hand = 2 * 2 / 5 * math.log((2 / 5) / (2 / 7)) + 1 / 5 * math.log((1 / 5) / (1 / 7))
    assert divergence(target, source) == pytest.approx(by_hand, rel=1e-12)


def test_divergence_on_real_text() -> None:
    for one, other in itertools.permutations(TREES.values(), 2):
        own, theirs = counted(one), counted(other)
        smoothed = {key: theirs[key] or 1 for key in own | theirs}
        total, n = sum(smoothed.values()), sum(own.values())
        wanted = sum(c / n * math.log(c / n / (smoothed[key] / total)) for key, c in own.items())
        assert divergence(tag_trigrams(one), tag_trigrams(other)) == pytest.approx(wanted, rel=1e-9)


def test_divergences_are_never_negative() -> None:
    """The source's counts are divided by their sum after smoothing; a short source would otherwise seem too near."""
    target, source = tag_trigrams(tagged("NOUN VERB ADP DET NOUN PUNCT")), tag_trigrams(tagged("ADJ ADJ"))
    assert divergence(target, source) > 0
    assert divergence(target, target) == 0
    assert divergence(tag_trigrams(Treebank.of([])), source) == 0
    with pytest.raises(ParameterError, match="do not compare"):
        divergence(target, source[:5])


def test_weights_by_hand() -> None:
    found = similarity_weights(np.array([0.5, 1.0, 2.0]))
    assert found == pytest.approx(np.array([16, 1, 1 / 16]) / (17 + 1 / 16))
    assert similarity_weights(np.array([0.5, 1.0, 2.0]), 0) == pytest.approx(np.full(3, 1 / 3))
    assert similarity_weights(np.array([0.0, 0.0, 1.0])) == pytest.approx([0.5, 0.5, 0.0])
    assert similarity_weights(np.array([CLOSEST / 2, CLOSEST])).tolist() == [0.5, 0.5]


# --- trees


def test_posteriors_are_summed_by_these_weights(parser: DelexicalisedParser) -> None:
    weights = parser.weights_for(TEXT)
    assert weights == pytest.approx(
        dict(zip(TREES, similarity_weights(np.array(list(parser.divergences_for(TEXT).values()))), strict=True))
    )
    own = {source.name: source.parser for source in parser._learnt.sources}
    seen = without_words(universal(TEXT))
    wanted = sum(weights[name] * own[name].predict_proba(seen).values for name in TREES)
    plain = parser.with_sources(TREES)
    plain.directions = False
    assert plain.predict_proba(TEXT).values == pytest.approx(wanted, abs=1e-12)


# --- directions


def test_directions_are_counted_by_both_tags() -> None:
    counts = tag_directions(TREES["de"])
    kinds = tag_kinds(TREES["de"])
    by_hand: Counter[tuple[int, int, int]] = Counter()
    for s, sentence in enumerate(TREES["de"]):
        first = int(TREES["de"].offsets[s])
        for child, head in enumerate(sentence.heads, 1):
            if head > 0:
                by_hand[int(child > head), int(kinds[first + child - 1]), int(kinds[first + head - 1])] += 1
    assert {place: int(counts[place]) for place in by_hand} == by_hand and counts.sum() == sum(by_hand.values())
    assert not tag_directions(Treebank.of([[("a", "DET")]])).any()


def test_orders_are_those_of_neighbours() -> None:
    text = tagged("DET NOUN VERB", "DET NOUN")
    kinds = tag_kinds(text)
    orders = tag_orders(tag_trigrams(text))
    assert orders[kinds[0], kinds[1]] == 2 and orders[kinds[1], kinds[2]] == 1 and orders[kinds[1], kinds[0]] == 0


def test_predicted_directions_are_ridge_regression_in_the_primal() -> None:
    """α is found from products of sources; here weights of orders are found instead, one tag pair at a time."""
    rng = np.random.default_rng(1)
    trigrams = rng.integers(0, 5, (4, TRIGRAMS))
    directions = rng.integers(0, 9, (4, 2, KINDS, KINDS))
    target = rng.integers(0, 5, TRIGRAMS)
    pairs = [(a, b) for a in range(KINDS) for b in range(a + 1, KINDS)]
    every = [tag_orders(counts) for counts in (*trigrams, target)]
    often = {(a, b): sum((o[a, b] + o[b, a]) / o.sum() for o in every[:-1]) for a, b in pairs}
    x = np.array([[math.log((o[a, b] + 2) / (o[b, a] + 2)) * often[a, b] ** 0.5 for a, b in pairs] for o in every])
    rows, own = x[:-1] - x[:-1].mean(axis=0), x[-1] - x[:-1].mean(axis=0)
    penalty = RIDGE * (rows**2).sum() / 4
    found = predicted_directions(target, trigrams, directions)
    for child, head in ((0, 1), (3, 3), (KINDS - 1, 5)):
        y = np.log((directions[:, 0, child, head] + 1) / (directions[:, 1, child, head] + 1))
        beta = np.linalg.solve(rows.T @ rows + penalty * np.eye(len(pairs)), rows.T @ (y - y.mean()))
        assert found[child, head] == pytest.approx(y.mean() + own @ beta, rel=1e-6, abs=1e-9)


def test_one_source_and_sources_that_are_alike_are_not_corrected() -> None:
    own, counts = tag_trigrams(TREES["en"]), tag_directions(TREES["en"])
    for n in (1, 3):
        directions = np.stack([counts] * n)
        found = predicted_directions(tag_trigrams(TREES["tr"]), np.stack([own] * n), directions)
        factors = direction_factors(found, directions, np.full(n, 1 / n))
        assert factors == pytest.approx(np.ones_like(factors))


@pytest.mark.parametrize("seed", range(3))
def test_corrected_posteriors_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = (1, 4, 0, 3)
    text = tagged(*(" ".join(rng.choice(TAGS, size=n)) for n in lengths if n))
    cells = [rng.random((n + 1, n + 1)) for n in lengths if n]
    factors, kinds = rng.random((2, KINDS, KINDS)) + 0.1, tag_kinds(text)
    found = corrected(Stack.of(cells, "posteriors", 2), kinds, factors)
    for s, matrix in enumerate(cells):
        n, first = len(matrix) - 1, int(text.offsets[s])
        for child in range(1, n + 1):
            column = matrix[:, child].copy()
            for head in range(1, n + 1):
                column[head] *= factors[int(child > head), kinds[first + child - 1], kinds[first + head - 1]]
            assert found[s][:, child] == pytest.approx(column / column.sum())


def test_a_language_is_corrected_towards_its_own_directions() -> None:
    """Sources have nouns before or behind their heads, and the order of adpositions tells which of them to believe."""

    def trees(before: bool, adposition_first: bool, n: int = 40) -> Treebank:
        small, large = (("n", "NOUN"), ("m", "NOUN"))
        pair = [(*small, 2, "nmod"), (*large, 0, "root")] if before else [(*large, 0, "root"), (*small, 1, "nmod")]
        case = [("p", "ADP", 2, "case"), ("x", "PROPN", 0, "root")]
        other = [("x", "PROPN", 0, "root"), ("p", "ADP", 1, "case")]
        return Treebank.of([pair, case if adposition_first else other] * n)

    sources = {str(k): trees(k < 3, k >= 3) for k in range(6)}
    made = DelexicalisedParser(iterations=2, exponent=0).fit(sources)
    for first in (True, False):
        text = Treebank.of([[("p", "ADP"), ("x", "PROPN")] if first else [("x", "PROPN"), ("p", "ADP")]] * 9
                           + [[("a", "NOUN"), ("b", "NOUN")]])  # fmt: skip
        assert made.predict(text).heads[-2:].tolist() == ([0, 1] if first else [2, 0])


def test_models_of_before_directions_are_read_and_not_corrected(parser: DelexicalisedParser, tmp_path: Path) -> None:
    parser.save(tmp_path / "new")
    saved = store.read(tmp_path / "new", kind="parse.delexicalised")
    arrays = {name: array for name, array in saved.arrays.items() if name != "directions"}
    options = {name: value for name, value in saved.options.items() if name != "directions"}
    store.save(tmp_path / "old", kind="parse.delexicalised", options=options, arrays=arrays, meta=saved.meta)
    old, plain = DelexicalisedParser.load(tmp_path / "old"), parser.with_sources(TREES)
    plain.directions = False
    assert np.array_equal(old.predict_proba(TEXT).values, plain.predict_proba(TEXT).values)
    old.save(tmp_path / "again")
    assert np.array_equal(DelexicalisedParser.load(tmp_path / "again").predict(TEXT).heads, plain.predict(TEXT).heads)


def test_the_tree_has_the_most_right_heads_in_expectation(parser: DelexicalisedParser) -> None:
    rng = np.random.default_rng(3)
    text = tagged(*(" ".join(rng.choice(TAGS, size=n)) for n in (1, 2, 3, 4, 5, 5, 5)))
    found, posteriors = parser.predict(text), parser.predict_proba(text)
    different = 0
    for s in range(len(text)):
        n = int(text.lengths[s])
        worth = {
            tree: sum(posteriors[s][head, child] for child, head in enumerate(tree, 1))
            for tree in all_trees(n, projective=True, single_root=True)
            if all(posteriors[s][head, child] > 0 for child, head in enumerate(tree, 1))
        }
        own = tuple(found.heads[text.offsets[s] : text.offsets[s + 1]].tolist())
        assert worth[own] == pytest.approx(max(worth.values()), abs=1e-12)
        different += len(worth) > 1
    assert different >= 5


def test_links_that_no_source_has_stay_out() -> None:
    from isogloss.tasks.transfer.completing import most_expected

    # 1 <- root with 0.6 and 2 <- 1 impossible: the tree 0 -> 2 -> 1 is all there is, though 0.6 is more than 0.4
    posteriors = Stack.of([[[0, 0.6, 1.0], [0, 0, 0], [0, 0.4, 0]]], "posteriors", 2)
    assert most_expected(posteriors).tolist() == [2, 0]


def test_one_source_is_that_parser(parser: DelexicalisedParser) -> None:
    for name in TREES:
        alone = parser.with_sources([name])
        (source,) = alone._learnt.sources
        wanted = source.parser.predict(without_words(universal(TEXT)), confidence=True)
        found = alone.predict(TEXT, confidence=True)
        assert np.array_equal(found.heads, wanted.heads)
        assert alone.sources_ == (name,) and alone.weights_for(TEXT) == {name: 1.0}
        for s in range(len(TEXT)):
            assert found.strings("deprel", s) == wanted.strings("deprel", s)
            assert found.words(s) == TEXT.words(s) and found.strings("lemma", s) == TEXT.strings("lemma", s)
            told, said = (list(map(features_of, trees.strings("misc", s))) for trees in (found, wanted))
            for one, other in zip(told, said, strict=True):
                for key in ("Confidence", "LabelConfidence"):
                    assert float(one[key]) == pytest.approx(float(other[key]), abs=1.1e-4)


def test_relations_are_voted_for(parser: DelexicalisedParser) -> None:
    found, weights = parser.predict(TEXT), parser.weights_for(TEXT)
    votes = [Counter() for _ in range(TEXT.n_words)]
    for source in parser._learnt.sources:
        learnt = source.parser._learnt
        words = encode(without_words(universal(TEXT)), learnt.columns)
        chances = learnt.labeller.predict_proba(words, found.heads, TEXT.offsets)
        for word in range(TEXT.n_words):
            for name, chance in zip(learnt.labeller.names, chances[word].tolist(), strict=True):
                votes[word][name] += weights[source.name] * chance
    chosen = [name for s in range(len(TEXT)) for name in found.strings("deprel", s)]
    for name, vote in zip(chosen, votes, strict=True):
        assert vote[name] == pytest.approx(max(vote.values()), abs=1e-9)


def test_sources_without_relations_do_not_vote() -> None:
    bare = TREES["de"].with_columns(deprel=["_"] * TREES["de"].n_words)
    both = DelexicalisedParser(iterations=1).fit({"en": TREES["en"], "de": bare})
    found = both.predict(TEXT, confidence=True)
    assert set(found.columns["deprel"].vocabulary) == set(both.with_sources(["en"])._learnt.sources[0].parser.labels_)
    sure = [float(features_of(misc)["LabelConfidence"]) for s in range(len(TEXT)) for misc in found.strings("misc", s)]
    assert max(sure) > 0.9  # shares are those of the sources that vote
    none = both.with_sources(["de"]).predict(TEXT, confidence=True)
    assert "LabelConfidence" not in none.to_bytes().decode() and (none.heads >= 0).all()


def test_a_target_text_fixes_the_weights(parser: DelexicalisedParser) -> None:
    assert parser.weights_ is None
    fixed = DelexicalisedParser(iterations=2).fit(TREES, TREES["tr"])
    assert fixed.weights_ == pytest.approx({"en": 0, "de": 0, "tr": 1}, abs=1e-6)
    assert fixed.weights_for(TEXT) == fixed.weights_
    assert parser.weights_for(TREES["tr"]) == fixed.weights_ != parser.weights_for(TEXT)
    same = parser.predict(TREES["tr"])
    assert np.array_equal(fixed.predict(TREES["tr"]).heads, same.heads)


def test_long_sentences_are_parsed_in_pieces(parser: DelexicalisedParser) -> None:
    rng = np.random.default_rng(0)
    long = tagged("DET NOUN VERB", " ".join(rng.choice(TAGS, size=LONGEST + 20)))
    found = parser.predict(long)
    found.check_trees(complete=True)
    assert found.n_words == LONGEST + 23 and not found.crossing.any()


def test_few_sentences_at_a_time_are_all_at_once(
    parser: DelexicalisedParser, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    whole = parser.predict(TEXT, confidence=True).to_bytes()
    monkeypatch.setattr("isogloss.tasks.parse.inference.CELLS", 300)
    assert parser.predict(TEXT, confidence=True).to_bytes() == whole


# --- what is refused


def test_what_cannot_be_learnt_from(parser: DelexicalisedParser) -> None:
    for none in ([], {}):
        with pytest.raises(UsageError, match="there is no treebank to learn from"):
            DelexicalisedParser().fit(none)
    with pytest.raises(UsageError, match="give a list of treebanks"):
        DelexicalisedParser().fit(TREES["en"])  # type: ignore[arg-type]
    with pytest.raises(TreebankError, match="no word has a head"):
        DelexicalisedParser().fit([TREES["en"], tagged("NOUN VERB")])
    with pytest.raises(TreebankError, match="no word has a tag in column upos"):
        DelexicalisedParser().fit([Treebank.of([[("a", "_", 0, "root")]])])
    with pytest.raises(TreebankError, match="no word has a tag in column upos"):
        DelexicalisedParser().fit([TREES["en"]], Treebank.of([[("a", "_")]]))
    with pytest.raises(TreebankError, match="no word has a tag in column upos"):
        parser.predict(Text.of(["she sleeps"]))
    with pytest.raises(ParameterError, match="'fr' is none of the sources, en, de, tr"):
        parser.with_sources(["en", "fr"])
    with pytest.raises(ParameterError, match="none was named"):
        parser.with_sources([])


def test_names_of_sources(tmp_path: Path) -> None:
    quick = DelexicalisedParser(iterations=1)
    assert quick.fit([TREES["en"], TREES["de"]]).sources_ == ("1", "2")
    for name in ("a.conllu", "b.conllu"):
        TREES["en"].part(0, 5).write(tmp_path / name)
    read = [Treebank.read(tmp_path / name) for name in ("a.conllu", "b.conllu")]
    assert quick.fit(read).sources_ == ("a.conllu", "b.conllu")
    assert quick.fit([read[0], read[0]]).sources_ == ("1", "2")


# --- keeping


def test_interrupted_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from isogloss.tasks.transfer import several

    fit, made = several.DependencyParser.fit, []

    def failing(self, *given, **options):
        made.append(1)
        if len(made) == 3:
            raise KeyboardInterrupt
        return fit(self, *given, **options)

    monkeypatch.setattr(several.DependencyParser, "fit", failing)
    place = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        DelexicalisedParser(iterations=1).fit(TREES, checkpoint=place)
    with pytest.raises(UsageError, match="other options"):
        DelexicalisedParser(iterations=2).fit(TREES, checkpoint=place, resume=True)
    resumed = DelexicalisedParser(iterations=1).fit(TREES, checkpoint=place, resume=True)
    assert len(made) == 4  # two were there already
    assert not place.exists()
    resumed.save(tmp_path / "resumed")
    DelexicalisedParser(iterations=1).fit(TREES).save(tmp_path / "whole")
    for file in ("model.json", "model.safetensors"):
        assert (tmp_path / "resumed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_models_of_other_trees_are_refused(parser: DelexicalisedParser, tmp_path: Path) -> None:
    """Posteriors of trees that may cross, or have two roots, need not leave a projective tree."""
    from isogloss import store

    parser.save(tmp_path / "m")
    saved = store.read(tmp_path / "m", kind="parse.delexicalised")
    for change in ({"constraint": "tree"}, {"single_root": False}, {"families": ["grand"]}):
        meta = json.loads(json.dumps(saved.meta))
        meta["parsers"][1]["meta"]["shape"] |= change
        store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=saved.arrays, meta=meta)
        with pytest.raises(ModelError):
            DelexicalisedParser.load(tmp_path / "bad")
    for meta in ({**saved.meta, "names": ["a"]}, {**saved.meta, "names": [], "parsers": []}):
        store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=saved.arrays, meta=meta)
        with pytest.raises(ModelError):
            DelexicalisedParser.load(tmp_path / "bad")
    wrong = saved.arrays | {"trigrams": saved.arrays["trigrams"] - 1}
    store.save(tmp_path / "bad", kind=saved.kind, options=saved.options, arrays=wrong, meta=saved.meta)
    with pytest.raises(ModelError, match="trigrams"):
        DelexicalisedParser.load(tmp_path / "bad")


# --- the commands


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    for name, trees in {**TREES, "text": TEXT}.items():
        trees.write(tmp_path / f"{name}.conllu")
    return {name: str(tmp_path / f"{name}.conllu") for name in (*TREES, "text")}


def test_combine_and_apply(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = str(tmp_path / "m"), str(tmp_path / "out.conllu")
    given = [files[name] for name in TREES]
    call = ["transfer", "combine", *given, "--target", files["text"], "--iterations", "2", "--save", model, "--json"]
    assert cli.main(call) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert list(told["sources"]) == given == list(told["weights"]) and sum(told["weights"].values()) == pytest.approx(1)
    assert f"shares for {files['text']}: {max(told['weights'], key=told['weights'].get)} " in said.err
    assert not Path(f"{model}.checkpoint").exists()
    assert cli.main(["parse", "apply", model, files["text"], "--confidence", "-o", out]) == 0
    wanted = DelexicalisedParser(iterations=2).fit(TREES, TEXT).predict(TEXT, confidence=True)
    assert np.array_equal(Treebank.read(out).heads, wanted.heads)
    assert Path(out).read_bytes() == wanted.to_bytes()
    capsys.readouterr()
    for line, status, words in (
        (["parse", "complete", files["text"], "--parser", model], 2, "cannot take heads as given"),
        (["transfer", "apply", model, files["text"]], 2, "this parser was not transferred. Use `isogloss parse apply`"),
        (["tag", "apply", model, files["text"]], 2, "this is a dependency parser (parse.delexicalised)"),
    ):
        assert cli.main(line) == status
        assert words in " ".join(capsys.readouterr().err.split())


def test_apply_needs_tags(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, plain = str(tmp_path / "m"), tmp_path / "plain.txt"
    assert cli.main(["transfer", "combine", files["en"], "--iterations", "1", "--save", model, "-q"]) == 0
    plain.write_text("she sleeps\n")
    assert cli.main(["parse", "apply", model, str(plain)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "no word has a tag in column upos" in said and "isogloss tag apply" in said


def test_wrong_calls(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "m")
    for line, status, words in (
        ([files["en"], files["en"]], 2, "was given twice"),
        (["-", "-"], 2, "standard input can be one of the files only"),
        ([files["en"], "--exponent", "-1"], 2, "exponent"),
        ([str(tmp_path / "none.conllu")], 2, "none.conllu: no such file"),
    ):
        assert cli.main(["transfer", "combine", *line, "--save", model, "-q"]) == status
        assert words in " ".join(capsys.readouterr().err.split())
        assert not Path(model).exists()
