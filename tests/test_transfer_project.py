"""Trees, tags, morphology and names carried through links: `project_annotation` and `isogloss transfer project`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isogloss import cli, samples
from isogloss.data.bitext import Bitext
from isogloss.data.links import Alignment, Links
from isogloss.data.treebank import Treebank, features_of
from isogloss.errors import ParameterError, TreebankError
from isogloss.tasks.parse import DependencyParser, JointMorphologyParser
from isogloss.tasks.transfer.annotation import Partners, project_annotation, project_names
from isogloss.tasks.transfer.edges import ProjectedEdges, project_edges


def small() -> tuple[Treebank, Bitext, Links]:
    words = [
        {"form": "Ann", "upos": "PROPN", "head": 3, "deprel": "nsubj", "feats": "Number=Sing", "misc": "NER=B-PER"},
        {"form": "Lee", "upos": "PROPN", "head": 1, "deprel": "flat", "misc": "NER=I-PER|SpaceAfter=No"},
        {"form": "sings", "upos": "VERB", "head": 0, "deprel": "root", "feats": "Tense=Pres"},
    ]
    sure = {(0, 1): 0.9, (1, 2): 0.8, (2, 0): 0.5}
    links = Links.of([Alignment(frozenset(sure), probability=sure), []])
    return Treebank.of([words]), Bitext.of([("Ann Lee sings", "singt Ann Lee jetzt"), ("", "leer")]), links


def test_what_is_asked_for_is_carried_with_where_it_came_from() -> None:
    source, bitext, links = small()
    found = project_annotation(source, bitext, links, what=("heads", "tags", "feats", "names"))
    assert found.heads.tolist() == [0, 1, 2, -1, -1]
    assert found.strings("upos", 0) == ("VERB", "PROPN", "PROPN", "_")
    assert found.strings("feats", 0) == ("Tense=Pres", "Number=Sing", "_", "_")
    assert found.strings("deprel", 0) == ("root", "nsubj", "flat", "_")
    misc = [features_of(text) for text in found.strings("misc", 0)]
    assert misc[1] == {
        "Proj": "1", "ProjConf": "0.4500", "TagProj": "1", "TagProjConf": "0.9000", "NER": "B-PER", "NERConf": "0.8500",
    }  # fmt: skip
    assert misc[2]["NER"] == "I-PER" and "NERConf" not in misc[2] and found.strings("misc", 0)[3] == "_"
    assert found.predicted == {"head", "deprel", "upos", "feats"}
    alone = project_annotation(source, bitext, links, what=["tags"])
    assert (alone.heads < 0).all() and alone.predicted == {"upos"}


def test_the_threshold_is_of_what_is_carried() -> None:
    source, bitext, links = small()
    found = project_annotation(source, bitext, links, what=("heads", "tags"), threshold=0.6)
    assert found.heads.tolist() == [-1, -1, 2, -1, -1]  # 0.9 · 0.8
    assert found.strings("upos", 0) == ("_", "PROPN", "PROPN", "_")


def test_columns_of_the_target_stay_where_nothing_arrives() -> None:
    source, bitext, links = small()
    rows = [[{"form": word, "upos": "X", "lemma": "l", "misc": "A=b"} for word in ["singt", "Ann", "Lee", "jetzt"]]]
    target = Treebank.of([*rows, [{"form": "leer", "upos": "ADJ"}]])
    found = project_annotation(source, bitext, links, target=target, what=("tags",))
    assert found.strings("upos", 0) == ("VERB", "PROPN", "PROPN", "X") and found.strings("upos", 1) == ("ADJ",)
    assert found.strings("lemma", 0) == ("l",) * 4 and found.strings("misc", 0)[3] == "A=b"
    with pytest.raises(TreebankError, match="'nein' where"):
        other = Treebank.of([[{"form": word} for word in ["singt", "Ann", "nein", "jetzt"]], [{"form": "leer"}]])
        project_annotation(source, bitext, links, target=other)


def test_edges_can_be_given() -> None:
    source, bitext, links = small()
    edges = project_edges(source, bitext, links)
    none = project_annotation(source, bitext, links, edges=edges.keep(np.zeros(len(edges.word), np.bool_)))
    assert (none.heads < 0).all() and none.strings("upos", 0)[0] == "VERB"
    one = ProjectedEdges.of(edges.offsets, [3], [1])
    assert project_annotation(source, bitext, links, edges=one).heads.tolist() == [-1, -1, -1, 1, -1]


def test_wrong_requests() -> None:
    source, bitext, links = small()
    with pytest.raises(ParameterError, match="not lemmas"):
        project_annotation(source, bitext, links, what=["lemmas"])
    with pytest.raises(ParameterError, match="from 0 to 1"):
        project_annotation(source, bitext, links, threshold=2)


# --- names


def names_of(labels: str, links: list[tuple[int, int]], n: int, threshold: float = 0.0) -> list[str]:
    marks = labels.split()
    source = Treebank.of([[{"form": "s", "misc": f"NER={mark}"} for mark in marks]])
    bitext = Bitext.of([(["s"] * len(marks), ["t"] * n)])
    partners = Partners.of(source, bitext, Links.of([links]))
    found = project_names(source, Treebank.from_text(bitext.target), partners, threshold)
    return [features_of(text).get("NER", "O") for text in found.strings("misc", 0)]


@pytest.mark.parametrize(
    ("labels", "links", "wanted"),
    [
        ("B-PER I-PER O", [(0, 1), (1, 2), (2, 0)], "O B-PER I-PER"),
        ("B-PER I-PER", [(0, 0), (1, 2)], "B-PER I-PER I-PER"),  # the word between has no link
        ("B-PER I-PER O", [(0, 0), (1, 2), (2, 1)], "B-PER O O"),  # the word between is linked elsewhere
        ("B-PER B-PER", [(0, 0), (1, 1)], "B-PER B-PER O"),
        ("B-LOC I-PER", [(0, 0), (1, 1)], "B-LOC B-PER O"),  # another kind is another name
        ("O O", [(0, 0), (1, 1)], "O O O"),
        ("B-LOC O", [], "O O O"),
        ("I-LOC I-LOC", [(0, 2), (1, 1)], "O B-LOC I-LOC"),
    ],
)
def test_names_are_one_run_of_words(labels: str, links: list, wanted: str) -> None:
    assert names_of(labels, links, 3) == wanted.split()


def test_names_that_are_no_spans_are_refused_by_their_line() -> None:
    for mark in ("(e1-person", "PER", "B", "O-PER"):
        with pytest.raises(TreebankError, match=r"line 2: NER=.* is not B-kind, I-kind or O"):
            names_of(f"O {mark}", [], 1)
    source, bitext, links = small()
    with pytest.raises(TreebankError, match="no names to carry"):
        project_annotation(source.with_columns(misc=["_"] * 3), bitext, links, what=["names"])


def test_a_name_does_not_go_on_in_the_next_sentence() -> None:
    source = Treebank.of([[{"form": "a", "misc": "Entity=B-PER"}], [{"form": "b", "misc": "Entity=I-PER"}]])
    bitext = Bitext.of([("a", "x"), ("b", "y")])
    found = project_annotation(source, bitext, Links.of([[(0, 0)], [(0, 0)]]), what=["names"])
    assert [features_of(found.strings("misc", s)[0])["Entity"] for s in range(2)] == ["B-PER", "B-PER"]


# --- the command


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pairs of the sample that have trees."""
    monkeypatch.chdir(tmp_path)
    for name, what in (("few.en", "source"), ("few.de", "target"), ("gold.txt", "gold")):
        lines = samples.path("en-de", what).read_text(encoding="utf-8").splitlines(keepends=True)
        Path(name).write_text("".join(lines[:24]), encoding="utf-8")
    Path("en.conllu").write_text(samples.trees("en-de"), encoding="utf-8")
    Path("de.conllu").write_text(samples.trees("en-de", "target"), encoding="utf-8")
    return tmp_path


PROJECT = ["transfer", "project", "--bitext", "few.en", "few.de", "--source-trees", "en.conllu"]


def test_the_command_writes_what_the_function_gives(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*PROJECT, "--links", "gold.txt", "-o", "out.conllu"]) == 0
    assert "24 sentences, 211 words: heads of 88.6%, tags of 92.9% of the words" in capfd.readouterr().err
    gold = samples.gold("en-de")[:24]
    expected = project_annotation(Treebank.read("en.conllu"), Bitext.read("few.en", "few.de"), gold)
    assert Path("out.conllu").read_bytes() == expected.to_bytes()
    right = Treebank.read("de.conllu").heads
    known = expected.heads >= 0
    assert np.mean(expected.heads[known] == right[known]) > 0.9
    assert cli.main([*PROJECT, "--links", "gold.txt", "--what", "tags", "-q"]) == 0
    assert "# isogloss_predicted = UPOS\n" in capfd.readouterr().out


def test_links_are_found_where_none_are_given(files: Path) -> None:
    assert cli.main([*PROJECT, "-o", "out.conllu", "-q", "--threshold", "0.5"]) == 0
    found = Treebank.read("out.conllu")
    sure = [features_of(text) for s in range(len(found)) for text in found.strings("misc", s)]
    assert (found.heads >= 0).any() and all(float(one["ProjConf"]) >= 0.5 for one in sure if "ProjConf" in one)


def test_gaps_are_filled_by_a_parser_that_learns_from_what_was_carried(files: Path) -> None:
    assert cli.main([*PROJECT, "--links", "gold.txt", "-o", "partial.conllu", "-q"]) == 0
    assert cli.main([*PROJECT, "--links", "gold.txt", "--fill", "-o", "whole.conllu", "-q"]) == 0
    partial, whole, gold = (Treebank.read(name) for name in ("partial.conllu", "whole.conllu", "de.conllu"))
    whole.check_trees(complete=True)
    known = partial.heads >= 0
    assert np.array_equal(whole.heads[known], partial.heads[known])
    filled = [features_of(text) for s in range(len(whole)) for text in whole.strings("misc", s)]
    assert all(("Confidence" in one) != ("Proj" in one) for one in filled)
    DependencyParser(iterations=2, order=1).fit(gold).save("model")
    more = ["--fill", "--parser", "model", "--target-tags", "de.conllu", "-o", "other.conllu", "-q"]
    assert cli.main([*PROJECT, "--links", "gold.txt", *more]) == 0
    other = Treebank.read("other.conllu")
    assert np.mean(other.heads == gold.heads) > np.mean(whole.heads == gold.heads)


@pytest.mark.parametrize(
    ("more", "finding"),
    [
        (["--what", "lemmas"], "'lemmas' is none of heads, tags, feats, names"),
        (["--what", "tags", "--fill"], "--fill is for heads"),
        (["--parser", "model"], "--parser is for --fill"),
        (["--links", "a", "--model", "b"], "exclude each other"),
        (["--threshold", "1.5"], "from 0 to 1"),
    ],
)
def test_calls_that_make_no_sense(files: Path, capfd: pytest.CaptureFixture[str], more: list, finding: str) -> None:
    assert cli.main([*PROJECT, *more]) == 2
    assert finding in capfd.readouterr().err


def test_what_the_files_say_wrong(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*PROJECT, "--links", "gold.txt", "--what", "heads", "--fill", "-q"]) == 1
    assert "no word has a tag" in capfd.readouterr().err
    wrong = ["transfer", "project", "--bitext", "few.de", "few.en", "--source-trees", "en.conllu", "-q"]
    assert cli.main([*wrong, "--links", "gold.txt"]) == 1
    assert "en.conllu" in capfd.readouterr().err
    JointMorphologyParser(iterations=1).fit(Treebank.read("de.conllu")).save("joint")
    assert cli.main([*PROJECT, "--links", "gold.txt", "--fill", "--parser", "joint"]) == 2
    assert "cannot take heads as given" in capfd.readouterr().err


def test_markup_has_both_names(files: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("one.en").write_text("the <b>red</b> house\n")
    Path("one.de").write_text("das rote Haus\n")
    Path("links").write_text("0-0 1-1 2-2\n")
    found = []
    for name in (["transfer", "markup"], ["transfer-markup"]):
        assert cli.main([*name, "one.en", "one.de", "links", "-q"]) == 0
        found.append(capfd.readouterr().out)
    assert found[0] == found[1] == "das <b>rote</b> Haus\n"
