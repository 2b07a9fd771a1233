"""isogloss joint train-bilingual, end to end, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Treebank, TreePairs
from isogloss.tasks.joint import BilingualParser, bilingual
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.tag import jackknife

TRAIN = "joint train-bilingual few.en.conllu few.de.conllu --passes 2 --folds 2 --iterations 3 --order 1 -q"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pairs of the sample, the first 16 to learn from; the target side without heads elsewhere."""
    monkeypatch.chdir(tmp_path)
    for code, side in (("en", "source"), ("de", "target")):
        trees = Treebank.from_bytes(samples.trees("en-de", side).encode())
        trees.part(0, 16).write(f"few.{code}.conllu")
        trees.part(16, len(trees)).write(f"rest.{code}.conllu")
    return tmp_path


def write_bare(source: str, target: str) -> None:
    """A treebank without heads and relations."""
    rows = [line.split("\t") for line in Path(source).read_text(encoding="utf-8").splitlines()]
    bare = ["\t".join([*row[:6], "_", "_", *row[8:]]) if len(row) == 10 else row[0] for row in rows]
    Path(target).write_text("\n".join([*bare, ""]), encoding="utf-8")


def pairs(name: str) -> TreePairs:
    return TreePairs(Treebank.read(f"{name}.en.conllu"), Treebank.read(f"{name}.de.conllu"))


def test_a_parser_of_the_target_end_to_end(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    english = DependencyParser(order=1, iterations=2).fit(
        Treebank.from_bytes(samples.trees("en-de", "source").encode())
    )
    english.save("english")
    given = ["--source-parser", "english", "--save", "m", "--json"]
    for idle in ("--folds 2", "--order 1"):  # of a source parser that learns
        assert main([*TRAIN.replace("--folds 2 ", "").replace(" --order 1", "").split(), *idle.split(), *given]) == 2
        assert f"{idle.split()[0]} says nothing where --source-parser is given" in capsys.readouterr().err
    assert main([*TRAIN.replace("--folds 2 ", "").replace(" --order 1", "").split(), *given]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pairs"] == 16 and told["features"] > 0
    outs = "--out-source a.conllu --out-target b.conllu --out-links l.txt -q"
    assert main(f"joint apply m rest.en.conllu rest.de.conllu {outs}".split()) == 0
    found = BilingualParser.load("m").predict(pairs("rest"))
    assert Treebank.read("b.conllu").heads.tolist() == found.target.heads.tolist()
    assert len(Path("l.txt").read_text(encoding="utf-8").splitlines()) == len(found.source)
    gold = "joint score a.conllu b.conllu rest.en.conllu rest.de.conllu --json"
    assert main(gold.split()) == 0
    assert json.loads(capsys.readouterr().out)["target"]["uas"] > 50


def test_target_trees_of_what_is_parsed_are_not_looked_at(place: Path) -> None:
    assert main([*TRAIN.split(), "--save", "m"]) == 0
    bare = Treebank.read("rest.de.conllu")
    bare.with_predictions(heads=bare.heads * 0).write("bare.de.conllu")
    outs = []
    for target in ("rest.de.conllu", "bare.de.conllu"):
        assert main(f"joint apply m rest.en.conllu {target} --out-target {target}.out -q".split()) == 0
        outs.append(Treebank.read(f"{target}.out").heads.tolist())
    assert outs[0] == outs[1]


def test_the_number_of_passes_is_chosen_on_dev(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dev = "--dev-source rest.en.conllu --dev-target rest.de.conllu --save m --json"
    assert main([*TRAIN.split(), *dev.split()]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(BilingualParser.load("m").tuning_) == 3
    assert told["pairs"] == 16


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("few.en.conllu rest.de.conllu --save m", "sentences"),
        ("few.en.conllu few.de.conllu --dev-source rest.en.conllu --save m", "give both"),
        ("few.en.conllu few.de.conllu --weights fixed --save m", "weights"),
        ("few.en.conllu few.de.conllu --folds 1 --save m", "from 2 to 100"),
        ("few.en.conllu few.de.conllu --source-parser few.en.conllu --save m", "a saved model is a folder"),
        ("few.en.conllu text.txt --save m", "text.txt"),
        ("bare.en.conllu few.de.conllu --save m", "no parser of the source"),
        ("few.en.conllu few.de.conllu --dev-source rest.en.conllu --dev-target bare.de.conllu --save m", "number of"),
        ("few.en.conllu few.de.conllu --dev-source no.conllu --dev-target no.conllu --save m", "no.conllu: no word"),
    ],
)
def test_what_is_refused(place: Path, wrong: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text("Das ist kein Baum .\n" * 16, encoding="utf-8")
    Path("no.conllu").write_text("", encoding="utf-8")
    write_bare("few.en.conllu", "bare.en.conllu")
    write_bare("rest.de.conllu", "bare.de.conllu")
    assert main(["joint", "train-bilingual", *wrong.split(), "-q"]) != 0
    assert words in " ".join(capsys.readouterr().err.split())
    assert not Path("m").exists()


def test_source_trees_that_are_taken_as_given_are_whole(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = "joint train-bilingual few.en.conllu few.de.conllu --source-trees given --passes 1 --iterations 1 -q"
    assert main([*given.split(), "--save", "m"]) == 0
    write_bare("few.en.conllu", "bare.en.conllu")
    for wrong in (
        given.replace("few.en", "bare.en").split() + ["--source-parser", "m", "--save", "x"],
        ["joint", "apply", "m", "bare.en.conllu", "few.de.conllu", "--out-target", "o", "-q"],
    ):
        if "--source-parser" in wrong:
            BilingualParser.load("m").models_.source.save("english")
            wrong[wrong.index("m")] = "english"
        assert main(wrong) == 1
        assert "bare.en.conllu, line 3, sentence en-de-01-en: word 1 ('The') has no head" in capsys.readouterr().err


def test_predicted_tags_of_what_is_learnt_from_are_those_of_taggers_that_have_not_seen_them(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those will be that the parser sees later; each source word as the tagger of the other folds tags it."""
    seen: dict[str, Any] = {}
    original = bilingual.look

    def looking(some: TreePairs, view: Any, parser: Any, *more: Any, **options: Any) -> Any:
        seen.setdefault("looked", original(some, view, parser, *more, **options))
        return seen["looked"]

    monkeypatch.setattr(bilingual, "look", looking)
    few = pairs("few")
    fitted = BilingualParser(tags="predicted", order=1, passes=1, folds=2, iterations=1).fit(few)
    looked = seen["looked"]
    for side, model in (("target", fitted.models_.target), ("source", fitted.models_.source)):
        learnt, text = model._learnt, getattr(few, side)
        late = learnt.encode(learnt.tagger.predict(text)).codes
        assert (getattr(looked, side).codes != late).any(), side
    learnt = fitted.models_.target._learnt
    assert (looked.target.codes == learnt.encode(jackknife(few.target, learnt.tagger, 5)).codes).all()
