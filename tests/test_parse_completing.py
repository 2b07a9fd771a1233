"""Trees of which some heads are given: `DependencyParser.complete` and `isogloss parse complete`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isogloss import cli
from isogloss.data import Treebank, features_of
from isogloss.errors import TreebankError
from isogloss.structures import ProjectiveTree, SpanningTree
from isogloss.tasks.parse import DependencyParser, JointMorphologyParser, cutting
from isogloss.tasks.parse.completing import LONGEST
from isogloss.testing.enumerate import trees as all_trees


@pytest.fixture(scope="module")
def parsers(trees: Treebank) -> dict[tuple[int, bool], DependencyParser]:
    return {
        (order, projective): DependencyParser(order=order, projective=projective, iterations=4).fit(trees)
        for order in (1, 2)
        for projective in (True, False)
    }


def with_gaps(trees: Treebank, share: float = 0.5, seed: int = 0) -> Treebank:
    rng = np.random.default_rng(seed)
    heads = np.where(rng.random(trees.n_words) < share, -1, trees.heads)
    relations = [name for s in range(len(trees)) for name in trees.strings("deprel", s)]
    gone = rng.random(trees.n_words) < share
    return trees.with_columns(
        heads=heads, deprel=["_" if lost else name for name, lost in zip(relations, gone, strict=True)]
    )


@pytest.mark.parametrize("decoder", ["mbr", "map"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("projective", [True, False])
def test_given_heads_stay_however_unlikely_and_the_rest_makes_a_tree(
    trees: Treebank, parsers: dict, order: int, projective: bool, decoder: str
) -> None:
    parser = parsers[order, projective].with_inference(decoder=decoder)
    kind, rng = ProjectiveTree if projective else SpanningTree, np.random.default_rng(order)
    drawn = [kind(rng.normal(size=(n + 1, n + 1)), single_root=True).argmax() for n in trees.lengths.tolist()]
    heads = np.concatenate(drawn).astype(np.int32)
    heads[rng.random(len(heads)) < 0.6] = -1
    found = parser.complete(trees.with_columns(heads=heads))
    assert np.array_equal(found.heads[heads >= 0], heads[heads >= 0])
    found.check_trees(complete=True)
    if projective:
        assert not found.crossing.any()


def test_it_is_the_best_tree_with_these_heads(trees: Treebank, parsers: dict) -> None:
    parser = parsers[1, True].with_inference(decoder="map")
    few = trees.take(np.flatnonzero(trees.lengths == 6)[:4])
    partial = with_gaps(few, 0.6, seed=4)
    found = parser.complete(partial)
    for s in range(len(few)):
        here = slice(few.offsets[s], few.offsets[s + 1])
        exact = next(iter(parser._trees(parser._seen(few.part(s, s + 1))[2]))).tree_factor()[0]
        every = {tree: exact.score(np.array(tree)) for tree in all_trees(6, projective=True, single_root=True)}
        given = partial.heads[here]
        fitting = {
            tree: p for tree, p in every.items() if all(g < 0 or g == h for g, h in zip(given, tree, strict=True))
        }
        assert tuple(found.heads[here].tolist()) == max(fitting, key=fitting.__getitem__)
        total = np.logaddexp.reduce(list(fitting.values()))
        for word in range(6):
            misc = features_of(found.strings("misc", s)[word])
            assert ("Confidence" in misc) == (given[word] < 0)
            if given[word] < 0:
                same = [p for tree, p in fitting.items() if tree[word] == found.heads[here][word]]
                assert float(misc["Confidence"]) == pytest.approx(np.exp(np.logaddexp.reduce(same) - total), abs=2e-4)


def test_a_few_sentences_at_a_time_are_all_at_once(
    trees: Treebank, parsers: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial, parser = with_gaps(trees), parsers[2, True]
    whole = parser.complete(partial)
    monkeypatch.setattr("isogloss.tasks.parse.inference.CELLS", 200)
    assert parser.complete(partial).to_bytes() == whole.to_bytes()


def test_without_given_heads_it_is_predict(trees: Treebank, parsers: dict) -> None:
    parser = parsers[2, True]
    bare = trees.with_columns(heads=np.full(trees.n_words, -1), deprel=["_"] * trees.n_words)
    one, other = parser.complete(bare), parser.predict(trees)
    assert np.array_equal(one.heads, other.heads)
    assert [one.strings("deprel", s) for s in range(len(trees))] == [
        other.strings("deprel", s) for s in range(len(trees))
    ]


def test_given_relations_stay_and_others_are_told_with_confidence(trees: Treebank, parsers: dict) -> None:
    partial = with_gaps(trees)
    found, plain = (parsers[2, True].complete(partial, confidence=sure) for sure in (True, False))
    for s in range(len(trees)):
        rows = zip(*(bank.strings("deprel", s) for bank in (partial, found)), found.strings("misc", s), strict=True)
        for before, after, misc in rows:
            assert after != "_" and before in ("_", after)
            assert ("LabelConfidence" in features_of(misc)) == (before == "_")
    assert plain.columns["misc"].vocabulary.types == trees.columns["misc"].vocabulary.types
    assert np.array_equal(plain.heads, found.heads)


TEXT = """\
# sent_id = one
# text = zum Haus
1-2\tzum\t_\t_\t_\t_\t_\t_\t_\t_
1\tzu\tzu\tADP\t_\t_\t3\tcase\t_\tGloss=to
2\tdem\tder\tDET\t_\t_\t3\tdet\t_\t_
3\tHaus\tHaus\tNOUN\t_\t_\t0\troot\t0:root\tSpaceAfter=No
3.1\tist\t_\t_\t_\t_\t_\t_\t_\t_

"""


def test_sentences_without_gaps_stay_to_the_byte(trees: Treebank, parsers: dict) -> None:
    parser = parsers[2, True]
    whole = Treebank.from_bytes(TEXT.encode())
    assert parser.complete(whole) is whole
    gap = TEXT.replace("one", "two").replace("3\tcase", "_\t_").replace("\r", "")
    both = parser.complete(Treebank.from_bytes((TEXT + gap + TEXT).encode())).to_bytes().decode()
    first, middle, last = (part + "\n\n" for part in both.strip().split("\n\n"))
    assert first == last == TEXT
    assert [line for line in middle.splitlines() if not line.startswith("1\t")] == [
        line for line in gap.splitlines() if not line.startswith("1\t")
    ]
    (filled,) = [line.split("\t") for line in middle.splitlines() if line.startswith("1\t")]
    assert filled[6] != "_" and filled[7] != "_" and filled[9].startswith("Gloss=to|Confidence=")


def test_a_crossing_tree_that_is_whole_is_no_fault_of_a_projective_parser(trees: Treebank, parsers: dict) -> None:
    words = [("a", "X", 3, "dep"), ("b", "X", 4, "dep"), ("c", "X", 0, "root"), ("d", "X", 3, "_")]
    found = parsers[1, True].complete(Treebank.of([words]))
    assert found.heads.tolist() == [3, 4, 0, 3] and "_" not in found.strings("deprel", 0)


@pytest.mark.parametrize(
    ("heads", "finding"),
    [
        ([2, 1, -1, 0], "line 1: word 1 .* own ancestor"),
        ([0, 0, -1, 1], r"line 2: words 1 \('a'\) and 2 \('b'\) are both the root"),
        ([3, 4, -1, -1], r"de.conllu, line 2: word 2 \('b'\) hangs on word 4 \('d'\), and no tree .* --nonprojective"),
        ([2, -1, 1, -1], r"de.conllu, line 3: word 3 \('c'\) hangs on word 1 \('a'\), and no tree without crossing"),
    ],
)
def test_heads_that_no_tree_has_are_refused_by_their_line(parsers: dict, heads: list[int], finding: str) -> None:
    rows = [{"form": form, "upos": "X", "head": head} for form, head in zip("abcd", heads, strict=True)]
    partial = Treebank.of([rows], "de.conllu")
    with pytest.raises(TreebankError, match=finding):
        parsers[1, True].complete(partial)
    if "nonprojective" in finding or "crossing" in finding:
        parsers[1, False].complete(partial).check_trees(complete=True)


def test_very_long_sentences_with_gaps_are_refused(parsers: dict) -> None:
    words = [("w", "NOUN", 0 if k == 0 else -1) for k in range(LONGEST + 1)]
    with pytest.raises(TreebankError, match=f"line 1: sentence 1 has {LONGEST + 1} words"):
        parsers[1, True].complete(Treebank.of([words]))


def test_given_heads_of_long_sentences_stay_whole(parsers: dict) -> None:
    n = cutting.LONGEST + 50  # what `predict` would cut in two
    words = [("w", "NOUN", n if k == 0 else 0 if k == n - 1 else -1) for k in range(n)]
    found = parsers[1, True].complete(Treebank.of([words]))
    assert found.heads[0] == n and found.heads[-1] == 0
    found.check_trees(complete=True)
    assert not found.crossing.any()


def test_a_parser_with_a_tagger_keeps_the_tags_that_are_given(trees: Treebank) -> None:
    parser = DependencyParser(iterations=2, order=1, tags="predicted").fit(trees)
    partial = with_gaps(trees).with_columns(upos=["X"] * trees.n_words)
    found = parser.complete(partial)
    assert set(found.strings("upos", 0)) == {"X"} and (found.heads >= 0).all()


# --- the command


def test_the_command(trees: Treebank, parsers: dict, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parsers[2, True].save(tmp_path / "model")
    partial = with_gaps(trees)
    partial.write(tmp_path / "partial.conllu")
    arguments = ["parse", "complete", str(tmp_path / "partial.conllu"), "--parser", str(tmp_path / "model")]
    assert cli.main([*arguments, "-o", str(tmp_path / "out.conllu")]) == 0
    said = capfd.readouterr().err
    assert f"{(partial.heads < 0).sum()} of {trees.n_words} heads filled in, in {len(trees)} sentences" in said
    expected = parsers[2, True].complete(Treebank.read(tmp_path / "partial.conllu"))
    assert (tmp_path / "out.conllu").read_bytes() == expected.to_bytes()
    assert cli.main([*arguments, "--no-confidence", "-q"]) == 0
    assert "Confidence" not in capfd.readouterr().out
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\ta\t_\tX\t_\t_\t1\t_\t_\t_\n\n")
    assert cli.main(["parse", "complete", str(bad), "--parser", str(tmp_path / "model"), "-q"]) == 1
    assert "bad.conllu, line 1: word 1 ('a') is its own head" in capfd.readouterr().err


def test_a_format_without_misc(trees: Treebank, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    DependencyParser(iterations=1, order=1).fit(trees).save(tmp_path / "model")
    with_gaps(trees).write(tmp_path / "in.conllx")
    arguments = ["parse", "complete", str(tmp_path / "in.conllx"), "--parser", str(tmp_path / "model"), "-q"]
    assert cli.main(arguments) == 2 and "CoNLL-X has no column for MISC" in capfd.readouterr().err
    assert cli.main([*arguments, "--no-confidence", "-o", str(tmp_path / "out.conllx")]) == 0
    assert (Treebank.read(tmp_path / "out.conllx").heads >= 0).all()


def test_a_joint_parser_is_refused(trees: Treebank, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    JointMorphologyParser(iterations=1).fit(trees).save(tmp_path / "joint")
    trees.write(tmp_path / "in.conllu")
    assert cli.main(["parse", "complete", str(tmp_path / "in.conllu"), "--parser", str(tmp_path / "joint")]) == 2
    assert "cannot take heads as given" in capfd.readouterr().err
