"""Parsers of both sides and an aligner that listen to each other: tuples, learning, saving, commands."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isogloss as ig
from isogloss import samples
from isogloss.cli import main
from isogloss.data import Links, Treebank, TreePairs
from isogloss.data.formats import IsoglossWarning, format_links
from isogloss.data.joining import join_treebanks
from isogloss.data.sentence_pairs import SentencePairs
from isogloss.errors import LinksError, ParameterError, TreebankError, UsageError
from isogloss.learners.meanfield import mean_field
from isogloss.metrics.pairs import content_links, dependency_brackets, score_pairs
from isogloss.show.tree_pairs import tree_pair
from isogloss.structures.batch import Stack
from isogloss.tasks.joint import BilingualParser, JointParserAligner
from isogloss.tasks.joint.agreement import CONFIGURATIONS, Agreement
from isogloss.tasks.joint.opinions import Opinions, known_links, link_component, oracle, tree_component
from isogloss.tasks.parse import DependencyParser

SMALL: dict[str, Any] = {"order": 1, "passes": 2, "folds": 2, "iterations": 3, "min_count": 1}


@cache
def pairs() -> TreePairs:
    trees = [Treebank.from_bytes(samples.trees("en-de", side).encode()) for side in ("source", "target")]
    return TreePairs(*trees, samples.gold("en-de")[: len(trees[0])])


@cache
def fitted(linking: str = "any") -> JointParserAligner:
    return JointParserAligner(linking=linking, **SMALL).fit(pairs())


def unsure(n: int, heads: list[int], sure: float = 0.6) -> np.ndarray:
    """Posteriors of heads, most of it on the given ones."""
    out = np.zeros((n + 1, n + 1))
    for child in range(1, n + 1):
        others = [head for head in range(n + 1) if head != child]
        out[others, child] = (1 - sure) / (len(others) - 1) if len(others) > 1 else 1.0
        out[heads[child - 1], child] = sure if len(others) > 1 else 1.0
    return out


def opinions(first: list[int], second: list[int], links: np.ndarray, sure: tuple[float, float]) -> Opinions:
    trees = [Stack.of([unsure(len(h), h, p)], "t", 2) for h, p in zip((first, second), sure, strict=True)]
    return Opinions(*trees, Stack.of([links], "l", 2), ["NOUN"] * len(first), ["NOUN"] * len(second))


def components(told: Opinions, linking: str = "any") -> list[Any]:
    return [
        link_component(told.links, linking, 0.05),
        tree_component(told.source, True, 0.01),
        tree_component(told.target, True, 0.01),
    ]


def weights_of(agreement: Agreement, **configurations: float) -> np.ndarray:
    names = np.array(CONFIGURATIONS)[agreement.parts.columns["configuration"]]
    return agreement.value * np.array([configurations.get(name, 0.0) for name in names])


# --- agreement


@pytest.mark.parametrize("linking", ["any", "itg"])
def test_strong_agreement_carries_the_source_tree_over(linking: str) -> None:
    heads = [2, 0, 4, 2]
    told = opinions(heads, [2, 0, 2, 3], np.where(np.eye(4), 0.9, 0.0), (0.97, 0.4))
    parts = components(told, linking)
    agreement = Agreement(parts, told, {"NOUN": 1}, "all")
    alone = mean_field(parts, agreement.coupling, weights_of(agreement))
    both = mean_field(parts, agreement.coupling, weights_of(agreement, mono=8.0, root=4.0), sweeps=50)
    assert alone.components[2].argmax()[0].tolist() == [2, 0, 2, 3]
    assert both.components[2].argmax()[0].tolist() == heads
    assert alone.marginals[: 4 * 4].reshape(4, 4).diagonal() == pytest.approx(
        parts[0].marginals().values.reshape(4, 4).diagonal()
    )


def test_configurations_of_a_small_pair() -> None:
    told = opinions([2, 0], [0, 1], np.array([[0.9, 0.3], [0.0, 0.8]]), (0.9, 0.9))
    parts = components(told)
    found = Agreement(parts, told, {"NOUN": 1}, "all")
    names = [CONFIGURATIONS[k] for k in found.parts.columns["configuration"]]
    starts = found.coupling.starts
    rows = {
        (name, tuple(sorted(p for p in row if p >= 0)))
        for name, row in zip(names, found.coupling.tuples.tolist(), strict=True)
    }
    link, source, target = (lambda i, j: 2 * i + j), (lambda h, c: starts[1] + 3 * h + c), None
    target = lambda h, c: starts[2] + 3 * h + c  # noqa: E731
    assert ("mono", tuple(sorted([link(0, 0), link(1, 1), source(1, 2), target(1, 2)]))) in rows
    assert ("swap", tuple(sorted([link(0, 0), link(1, 1), source(2, 1), target(1, 2)]))) in rows
    assert ("root", tuple(sorted([link(1, 1), source(0, 2), target(0, 2)]))) in rows
    assert ("tdouble", tuple(sorted([link(0, 0), link(0, 1), target(1, 2)]))) in rows
    assert ("sdouble", tuple(sorted([link(0, 1), link(1, 1), source(2, 1)]))) in rows
    assert not any(link(1, 0) in row for _, row in rows)  # it was pruned
    mono = {name for name, _ in rows if name in ("mono", "swap", "root", "sdouble", "tdouble")}
    assert mono == {"mono", "swap", "root", "sdouble", "tdouble"}
    few = Agreement(parts, told, {"NOUN": 1}, "mono")
    assert {CONFIGURATIONS[k] for k in few.parts.columns["configuration"]} == {
        "source", "target", "odds", "link", "mono", "root",
    }  # fmt: skip


def test_swapping_languages_transposes_everything() -> None:
    one = opinions([2, 0, 2], [0, 1], np.array([[0.9, 0.3], [0.1, 0.8], [0.2, 0.0]]), (0.8, 0.7))
    other = Opinions(one.target, one.source, Stack.of([one.links[0].T], "l", 2), one.target_tags, one.source_tags)
    weights = {"mono": 1.5, "root": 1.0, "swap": -0.5, "link": 0.3}
    turned = {**weights, "sdouble": 0.7, "tdouble": 0.2, "sgrand": 0.4, "tgrand": 0.1, "ssib": -0.2, "tsib": 0.6}
    mirrored = {**weights, "sdouble": 0.2, "tdouble": 0.7, "sgrand": 0.1, "tgrand": 0.4, "ssib": 0.6, "tsib": -0.2}
    found = []
    for told, given, order in ((one, turned, [0, 1, 2]), (other, mirrored, [0, 2, 1])):
        parts = components(told)
        agreement = Agreement(parts, told, {"NOUN": 1}, "all")
        found.append(
            mean_field(
                parts, agreement.coupling, weights_of(agreement, **given), order=order, sweeps=500, tolerance=1e-13
            )
        )
    assert found[0].bound == pytest.approx(found[1].bound)
    assert found[0].components[1].marginals()[0] == pytest.approx(found[1].components[2].marginals()[0], abs=1e-8)
    assert found[0].components[0].marginals()[0] == pytest.approx(found[1].components[0].marginals()[0].T, abs=1e-8)


def test_no_links_leave_the_parsers_alone() -> None:
    told = opinions([2, 0, 2], [0, 1], np.zeros((3, 2)), (0.8, 0.7))
    parts = components(told)
    agreement = Agreement(parts, told, {"NOUN": 1}, "all")
    found = mean_field(parts, agreement.coupling, weights_of(agreement, mono=5.0, root=5.0, sgrand=3.0))
    assert found.components[1].argmax()[0].tolist() == [2, 0, 2]
    assert found.bound == pytest.approx(sum(float(one.log_partition().sum()) for one in parts))


def test_pruning_nothing_changes_nothing() -> None:
    told = opinions([2, 0, 2], [0, 1], np.array([[0.9, 0.3], [0.1, 0.8], [0.2, 0.0]]), (0.8, 0.7))
    whole = tree_component(told.source, True, 0.0)
    assert np.exp(whole.scores[0][:, 1:]) == pytest.approx(np.maximum(told.source[0][:, 1:], 1e-6))
    cut = tree_component(told.source, True, 0.5)
    assert (cut.scores[0] > -np.inf).sum() == 3 and cut.argmax()[0].tolist() == [2, 0, 2]


def test_oracles_are_the_nearest_that_is_left() -> None:
    told = opinions([2, 0, 2], [0, 1], np.zeros((3, 2)), (0.8, 0.7))
    cut = tree_component(told.source, True, 0.15)  # nothing is left but one tree
    gold = Treebank.of([[("a", "X", 0), ("b", "X", 1), ("c", "X", 2)]])
    assert oracle(cut, gold, told.source).argmax()[0].tolist() == [2, 0, 2]
    whole = tree_component(told.source, True, 0.0)
    assert oracle(whole, gold, told.source).argmax()[0].tolist() == [0, 1, 2]


def test_links_of_words_without_gold_are_open_or_absent() -> None:
    told = opinions([2, 0], [0, 1], np.full((2, 2), 0.3), (0.8, 0.7))
    for linking in ("any", "itg"):
        free = link_component(told.links, linking, 0.05)
        gold = Links.of([{(0, 0)}])
        open_ = known_links(free, gold, "open").marginals()[0]
        absent = known_links(free, gold, "absent").marginals()[0]
        assert open_[0] == pytest.approx([1, 0]) and open_[1, 0] == pytest.approx(0) and 0 < open_[1, 1] < 1
        assert absent == pytest.approx(np.array([[1.0, 0.0], [0.0, 0.0]]))


# --- learning


def test_learning_raises_the_objective_and_weights_of_nothing_are_the_separate_models() -> None:
    trace = fitted().trace_
    assert (np.diff(trace) > 0).all()
    made = JointParserAligner(**SMALL)
    made._fitted = fitted()._fitted._replace(weights=np.zeros(fitted().n_features_))
    found = made.predict_proba(pairs())
    models = fitted().models_
    assert found.links[0] == pytest.approx(
        np.where((p := models.aligner.predict_proba(pairs().bitext())[0]) >= 0.05, np.clip(p, 1e-4, 1 - 1e-4), 0),
        abs=1e-6,
    )
    assert len(found.source) == len(pairs())


@pytest.mark.parametrize("linking", ["any", "itg"])
def test_what_is_found_does_not_depend_on_company_or_known_trees(linking: str) -> None:
    joint, some = fitted(linking), pairs().take([0, 3, 5])
    together, alone = joint.predict(some), joint.predict(pairs().take([3]))
    assert together.target.part(1, 2).heads.tolist() == alone.target.heads.tolist()
    assert str(together.links[1]) == str(alone.links[0])  # type: ignore[index]
    blind = TreePairs(*(side.with_columns(heads=np.full(side.n_words, -1)) for side in (some.source, some.target)))
    assert joint.predict(blind).target.heads.tolist() == together.target.heads.tolist()


def test_a_saved_model_is_the_same(tmp_path: Path) -> None:
    fitted().save(tmp_path / "model")
    loaded = ig.load(tmp_path / "model")
    one, two = fitted().predict(pairs()), loaded.predict(pairs())
    assert one.source.to_bytes() == two.source.to_bytes() and list(map(str, one.links)) == list(map(str, two.links))


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    made = JointParserAligner(**SMALL)
    whole = JointParserAligner(**SMALL).fit(pairs())
    place = tmp_path / "checkpoint"
    original = JointParserAligner._agree

    def broken(*_: Any) -> None:
        raise Stop

    JointParserAligner._agree = broken  # type: ignore[method-assign,assignment]
    try:
        with pytest.raises(Stop):
            made.fit(pairs(), checkpoint=place)
    finally:
        JointParserAligner._agree = original  # type: ignore[method-assign]
    assert (place / "source-whole").exists()
    again = JointParserAligner(**SMALL).fit(pairs(), checkpoint=place, resume=True)
    assert np.array_equal(again._learnt.weights, whole._learnt.weights) and not place.exists()
    with pytest.raises(TreebankError, match="nothing to learn"):
        JointParserAligner(**SMALL).fit(
            (pairs().source, pairs().target.with_columns(heads=[-1] * pairs().target.n_words))
        )


def test_a_run_goes_on_with_the_models_that_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyboardInterrupt

    models, place = fitted().models_, tmp_path / "checkpoint"
    other = DependencyParser(order=1, iterations=1, seed=5).fit(pairs().source)
    monkeypatch.setattr(JointParserAligner, "_agree", broken)
    kept: dict[str, Any] = {"checkpoint": place, "resume": True, "target_parser": models.target}
    with pytest.raises(KeyboardInterrupt):
        JointParserAligner(**SMALL).fit(pairs(), source_parser=models.source, **kept)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="of a run with other"):
        JointParserAligner(**SMALL).fit(pairs(), source_parser=other, **kept)
    JointParserAligner(**SMALL).fit(pairs(), source_parser=models.source, **kept)


def test_no_model_judges_what_it_has_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[tuple[set[str], set[str]]] = []
    models, of = JointParserAligner._models, Opinions.of

    def learning(self: Any, some: TreePairs, given: Any, name: str, *more: Any) -> Any:
        found = models(self, some, given, name, *more)
        found.source.learnt = {" ".join(some.source.words(k)) for k in range(len(some))}
        return found

    def judging(some: TreePairs, source: Any, *more: Any) -> Opinions:
        judged.append(({" ".join(some.source.words(k)) for k in range(len(some))}, source.learnt))
        return of(some, source, *more)

    monkeypatch.setattr(JointParserAligner, "_models", learning)
    monkeypatch.setattr(Opinions, "of", judging)
    JointParserAligner(**{**SMALL, "folds": 3, "passes": 1, "iterations": 1}).fit(pairs().take(range(9)))
    assert len(judged) == 3 and not any(own & learnt for own, learnt in judged)
    assert sum(len(own) for own, _ in judged) == 9 and {len(learnt) for _, learnt in judged} == {6}


def test_links_that_nobody_knows_are_not_absent() -> None:
    alone = TreePairs(pairs().source, pairs().target)
    with pytest.raises(ParameterError, match="unlinked is about links that are known"):
        JointParserAligner(unlinked="absent", **SMALL).fit(alone)


def test_empty_sides_and_single_words() -> None:
    words = Treebank.of([[("Yes", "INTJ")], [], [("She", "PRON"), ("sleeps", "VERB")], []])
    other = Treebank.of([[("Ja", "INTJ")], [("Oh", "INTJ")], [], []])
    for linking in ("any", "itg"):
        found = fitted(linking).predict((words, other))
        assert found.source.heads[0] == 0 and found.target.heads.tolist() == [0, 0]
        assert len(found.links[2]) == 0  # type: ignore[index]


def test_pairs_with_very_long_sentences_are_left_to_the_separate_models() -> None:
    words = [("Yes", "INTJ"), ("she", "PRON"), ("sleeps", "VERB")] * 90
    short = pairs().take([0, 3])
    source, target = (
        Treebank.of([*(list(zip(side.words(s), side.strings("upos", s), strict=True)) for s in range(2)), words])
        for side in (short.source, short.target)
    )
    given = TreePairs(source, target).take([0, 2, 1])
    bilingual = BilingualParser(passes=1, folds=2, iterations=1, order=1).fit(pairs())
    for model in (fitted(), bilingual):
        found, alone, apart = model.predict(given), model.predict(short), model.separate(given.take([1]))
        for side in ("source", "target"):
            ours, own, left = (getattr(one, side) for one in (found, alone, apart))
            assert ours.take([0, 2]).heads.tolist() == own.heads.tolist()
            assert ours.take([1]).heads.tolist() == left.heads.tolist()
        assert [str(found.links[k]) for k in (0, 2)] == [str(row) for row in alone.links]  # type: ignore[index,union-attr]
    rows = [[(form, tag, 0 if k == 0 else 1) for k, (form, tag) in enumerate(words)]]
    long = TreePairs(Treebank.of(rows), Treebank.of(rows), Links.of([[]]))
    several = TreePairs(
        *(join_treebanks([getattr(pairs(), side), getattr(long, side)]) for side in ("source", "target")),
        Links.of([*pairs().links, *long.links]),  # type: ignore[misc]
    )
    with pytest.warns(IsoglossWarning, match="1 of 25 pairs have a sentence of more than 250 words"):
        again = JointParserAligner(**SMALL).fit(several)
    assert np.array_equal(again._learnt.weights, fitted()._learnt.weights)


# --- data and scores


def test_pairs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TreebankError, match="sentence k of one must translate"):
        TreePairs(pairs().source, pairs().target.part(0, 3))
    with pytest.raises(LinksError, match="but the sentences have"):
        TreePairs(pairs().source.part(0, 1), pairs().target.part(0, 1), Links.of([{(99, 0)}]))
    negative = Links(np.array([0, 1]), np.array([-1], np.int32), np.array([0], np.int32))
    for kind in (TreePairs, SentencePairs):
        with pytest.raises(LinksError, match="line 1 of the links: -1-0, but the sentences have"):
            kind(pairs().source.part(0, 1), pairs().target.part(0, 1), negative)
    with pytest.raises(LinksError, match="a line for each pair"):
        TreePairs(pairs().source, pairs().target, Links.of([[]]))
    with pytest.raises(UsageError, match="two treebanks are needed"):
        fitted().predict("text")  # type: ignore[arg-type]


def test_brackets_of_dependencies() -> None:
    crossing = Treebank.of([[("a", "A", 3), ("b", "B", 4), ("c", "C", 0), ("d", "D", 3), ("e", "E", 2)]])
    assert dependency_brackets(crossing, 0) == {(0, 5, "C")}
    gold = TreePairs(crossing, crossing, Links.of([{(0, 0)}]))
    scores = score_pairs(gold, gold, bootstrap=0)
    assert scores.source_brackets == scores.target.uas == 100.0 and scores.links is not None
    assert str(content_links(Links.of([{(0, 1), (3, 3)}]), Links.of([{(0, 0)}]))[0]) == "0-1"


def test_what_synchronises_is_drawn_thick() -> None:
    source = Treebank.of([[("<a>", "X", 2, "dep"), ("b", "Y", 0, "root"), ("c", "Z", 2, "obj")]])
    target = Treebank.of([[("B", "Y", 0, "root"), ("A", "X", 1, "dep"), ("C", "Z", 2, "obj")]])
    drawn = tree_pair(TreePairs(source, target, Links.of([{(0, 1), (1, 0), (2, 2)}])).as_dict(0))
    assert drawn.count("<path") == 6 and drawn.count("<line") == 3
    assert drawn.count('stroke-width="2.5"') == 4  # root and dep of both sides; obj hangs on another word
    assert "<a>" not in drawn
    empty = Treebank.of([[]])
    assert "<svg" in tree_pair(TreePairs(empty, empty).as_dict(0))


# --- commands


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pairs().source.write("en.conllu")
    pairs().target.write("de.conllu")
    Path("gold.txt").write_bytes(format_links(pairs().links or (), format="pharaoh"))
    options = "--order 1 --passes 2 --folds 2 --iterations 3 --min-count 1 -q"
    assert main(f"joint train en.conllu de.conllu gold.txt --save m {options} --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == len(pairs())
    outs = "--out-source a.conllu --out-target b.conllu --out-links l.txt"
    assert main(f"joint apply m en.conllu de.conllu {outs} -q".split()) == 0
    found = fitted().predict(TreePairs(Treebank.read("en.conllu"), Treebank.read("de.conllu")))
    assert Treebank.read("b.conllu").heads.tolist() == found.target.heads.tolist()
    assert Path("l.txt").read_text().splitlines() == [str(row) for row in found.links or ()]
    scored = "joint score a.conllu b.conllu en.conllu de.conllu --links l.txt --gold-links gold.txt"
    assert main([*scored.split(), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["target"]["uas"] > 50 and told["links"]["recall"] > 50
    assert main(scored.split()) == 0
    assert "target uas" in capsys.readouterr().out
    assert main(["joint", "view", "a.conllu", "b.conllu", "l.txt", "-o", "page.html", "--first", "2", "-q"]) == 0
    page = Path("page.html").read_text()
    assert page.count("<svg") == 2 and "Die" in page and 'stroke-width="2.5"' in page
    empty, bare = Treebank.from_bytes(b""), pairs().source.with_columns(heads=[-1] * pairs().source.n_words)
    empty.write("empty.conllu")
    bare.write("bare.conllu")
    assert main(["joint", "score", "bare.conllu", "b.conllu", "en.conllu", "de.conllu"]) == 0
    assert "source trees not scored (bare.conllu has no head)" in (said := capsys.readouterr().out)
    assert "source brackets" not in said and "target brackets" in said
    for wrong, said in (
        ("joint score empty.conllu empty.conllu empty.conllu empty.conllu", "there is nothing to score"),
        ("joint score bare.conllu bare.conllu en.conllu en.conllu", "no trees. Are they the right files?"),
        ("joint score a.conllu b.conllu de.conllu en.conllu", "a.conllu, sentence 2 has 8 words, but in de.conllu it"),
        ("joint score a.conllu b.conllu empty.conllu en.conllu", "en.conllu has 24"),
        ("joint score a.conllu b.conllu empty.conllu empty.conllu", "a.conllu has 24 sentences but empty.conllu has"),
        ("joint apply m de.conllu en.conllu --out-links l2.txt", "source and target look swapped"),
        ("joint apply m en.conllu de.conllu", "nothing would be written"),
        ("joint apply m en.conllu de.conllu --out-source x --out-links x", "two results cannot go to one file"),
        ("joint score a.conllu b.conllu en.conllu de.conllu --links l.txt", "give both"),
        ("joint score a.conllu b.conllu en.conllu de.conllu --content", "says nothing without --links"),
        ("parse apply m en.conllu", "isogloss joint apply"),
        ("joint train en.conllu de.conllu l.txt --save m2 --folds 1 -q", "from 2 to 100"),
        ("joint train en.conllu de.conllu --save m2 --unlinked absent -q", "--unlinked is about links"),
        ("joint train en.conllu de.conllu --save m2 --source-parser p --target-parser p --seed 3", "--seed says"),
        (
            "joint train en.conllu de.conllu --save m2 --source-parser p --target-parser p --aligner a --folds 3",
            "--folds says nothing where both parsers and the aligner are given",
        ),
    ):
        assert main(wrong.split()) != 0
        assert said in " ".join(capsys.readouterr().err.split())
