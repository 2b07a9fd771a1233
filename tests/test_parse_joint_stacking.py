"""The joint parser beside a full one: scores of links that are known beforehand, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isogloss import store
from isogloss.data.treebank import Treebank
from isogloss.errors import ModelError, ParameterError, TreebankError
from isogloss.structures.batch import Stack
from isogloss.tasks.parse import DependencyParser, JointMorphologyParser
from isogloss.tasks.parse.joint.stacking import as_tagged, link_scores, relations
from isogloss.tasks.parse.joint.text import clamped, see, sentences_of
from test_parse_joint import Model, all_trees, toy

FEW = {"iterations": 3, "tag_iterations": 3, "threads": 1}


@pytest.fixture(scope="module")
def fitted() -> JointMorphologyParser:
    return JointMorphologyParser(**FEW, stack_links=1.0).fit(toy(20))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_scores_of_links_beforehand_multiply_the_probabilities_of_trees(n: int) -> None:
    """With tags that are given, posteriors are exact: p(y) of the model without them, times exp of their sum."""
    free = Model(n, (2, 3), seed=n)
    model = Model(n, (2, 3), seed=n, allowed=clamped(free.gold, free.schema))
    before, without = np.random.default_rng(n).normal(size=(n + 1, n + 1)), model.graph().link_totals
    trees = list(all_trees(n))
    masses = np.exp([sum(without[h, c] + before[h, c] for c, h in enumerate(heads, 1)) for heads in trees])
    expected = np.zeros((n + 1, n + 1))
    for heads, mass in zip(trees, masses / masses.sum(), strict=True):
        for c, h in enumerate(heads, 1):
            expected[h, c] += mass
    model.sentence = model.sentence._replace(links=before)
    _, chances, _ = model.beliefs(iterations=1, tolerance=0.0)
    assert chances == pytest.approx(expected, rel=0, abs=1e-9)
    other = Model(n, (2, 3), seed=n, allowed=clamped(free.gold, free.schema))
    _, plain, _ = other.beliefs(iterations=1, tolerance=0.0)
    assert n == 1 or not np.allclose(plain, expected, atol=1e-3)


def test_sure_links_tell_tags_what_they_are() -> None:
    """Messages take what is known of links on to tags, as enumeration over all tags and trees says."""
    model = Model(3, (2, 2), seed=3, links=2.0)
    plain, _, _ = model.beliefs()
    before = np.zeros((4, 4))
    before[0, 2] = before[2, 1] = before[2, 3] = 40.0
    model.sentence = model.sentence._replace(links=before)
    tags, chances, _ = model.beliefs()
    expected, links, _ = model.enumerate()
    assert chances[2, 1] == pytest.approx(1, abs=1e-6) == links[2, 1]
    assert tags == pytest.approx(expected, abs=0.02) and np.abs(tags - plain).max() > 0.02


def test_sentences_get_their_own_scores() -> None:
    model = Model(2, (2, 2))
    trees = Treebank.of([[("a", "X", 0)], [("b", "X", 0), ("c", "X", 1)]])
    seen, stack = see(trees), Stack.of([np.ones((2, 2)), np.full((3, 3), 2.0)])
    numbers = np.zeros((3, 2), np.int64)
    given = (trees, seen, model.features, model.schema, clamped(numbers, model.schema), numbers[:, 0], numbers)
    assert [one.links.tolist() for one in sentences_of(*given, links=stack)] == [
        [[1.0, 1.0]] * 2,
        [[2.0, 2.0, 2.0]] * 3,
    ]
    assert all(one.links.shape == (0, 0) for one in sentences_of(*given))


def test_with_great_weight_trees_are_those_of_the_full_parser(fitted: JointMorphologyParser) -> None:
    """The product of both is then all but what the full parser believes."""
    test = Treebank.of([[("rex",), ("bonum",), ("amat",)], [("dux",)], [("malus",), ("amat",), ("dux",), ("vidit",)]])
    beside = fitted._fitted.parser
    assert isinstance(beside, DependencyParser) and beside.order == 2
    values = np.zeros((test.n_words, 3), np.int64)
    tagged = as_tagged(test, fitted._fitted.schema, values)
    assert set(tagged.strings("lemma", 0)) == set(tagged.strings("xpos", 0)) == {"_"}
    beliefs = beside.predict_proba(tagged)
    scores = link_scores(beliefs, 3.0)
    assert scores.values == pytest.approx(3 * np.log(np.maximum(beliefs.values, 1e-5)))
    fitted.stack_links, weight = 1e4, fitted.stack_links
    try:
        found = fitted.predict(test)
        chances = fitted.predict_proba(test).links
    finally:
        fitted.stack_links = weight
    pipeline = JointMorphologyParser(**FEW, joint=False).fit(toy(20))
    seen = pipeline.predict(test).with_columns(lemma=["_"] * 8, xpos=["_"] * 8)
    assert found.heads.tolist() == beside.predict(seen).heads.tolist()
    believed = beside.predict_proba(seen)  # half of the mean is this
    assert (chances.values >= 0.5 * believed.values - 1e-12).all()
    for s in range(len(test)):
        assert chances[s][:, 1:].sum(axis=0) == pytest.approx(1)


def test_relations_are_found_as_well(fitted: JointMorphologyParser) -> None:
    test = toy(6)
    found = fitted.predict(test)
    assert found.heads.tolist() == test.heads.tolist() and found.strings("deprel", 0) == test.strings("deprel", 0)
    assert "deprel" in found.predicted and fitted.score(test)["las"] == 100
    bare = toy(12).with_columns(deprel=["_"] * 36)
    plain = JointMorphologyParser(**FEW, stack_links=1.0).fit(bare)
    assert plain.predict(test).strings("deprel", 0) == ("_", "_", "_")
    parser = plain._fitted.parser
    assert parser is not None and relations(parser, test, test.heads) is None


def test_saved_parsers_keep_the_one_beside_them(fitted: JointMorphologyParser, tmp_path: Path) -> None:
    fitted.save(tmp_path / "joint")
    again, test = JointMorphologyParser.load(tmp_path / "joint"), toy(5)
    assert again.predict(test).to_bytes() == fitted.predict(test).to_bytes()
    saved = fitted._to_saved()
    with pytest.raises(ModelError, match="lacks the parser"):
        JointMorphologyParser._from_saved(
            store.Saved(saved.kind, saved.options, saved.arrays, saved.meta | {"parser": None})
        )


def test_it_goes_with_all_kinds_and_threads_do_not_matter() -> None:
    kinds = ({"joint": False}, {"joint": False, "tags": "gold"}, {"projective": True}, {"dictionary": "train"})
    for options in kinds:
        parser = JointMorphologyParser(**FEW, stack_links=0.5, **options).fit(toy(12), dev=toy(4))
        assert parser.score(toy(6))["uas"] == 100, options
    one, two = (
        JointMorphologyParser(iterations=1, tag_iterations=1, stack_links=1.0, threads=k).fit(toy(9)) for k in (1, 2)
    )
    arrays = (dict(parser._to_saved().arrays) for parser in (one, two))
    for (name, first), (_, second) in zip(*(sorted(own.items()) for own in arrays), strict=True):
        assert np.array_equal(first, second), name


def test_treebanks_without_parts_of_speech_are_refused() -> None:
    words = [[("rex", "_", 2, "dep"), ("amat", "_", 0, "root")]] * 4
    with pytest.raises(TreebankError, match=r"no word has a part of speech.*stack_links"):
        JointMorphologyParser(**FEW, stack_links=1.0).fit(Treebank.of(words))
    with pytest.raises(ParameterError, match="stack_links"):
        JointMorphologyParser(stack_links=-1.0).fit(toy(4))


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from isogloss import cli, samples

    train, model, out = (tmp_path / name for name in ("train.conllu", "model", "out.conllu"))
    train.write_text(samples.trees("en-de", "target"), encoding="utf-8")
    asked = ["parse", "train-joint", str(train), "--save", str(model), "--stack-links", "1", "--iterations", "2"]
    assert cli.main(asked) == 0
    (tmp_path / "plain.txt").write_text("Die Frau liest ein Buch .\n", encoding="utf-8")
    assert cli.main(["parse", "apply", str(model), str(tmp_path / "plain.txt"), "-o", str(out), "-q"]) == 0
    found = Treebank.read(out)
    assert found.heads.tolist() == [2, 3, 0, 5, 3, 3] and found.strings("deprel", 0)[2] == "root"
    assert "relations" in capsys.readouterr().err
