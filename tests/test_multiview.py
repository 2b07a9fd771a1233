"""Two models that teach each other: what is predicted, labels of other corpora, and the command line end to end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isogloss as ig
from isogloss import samples
from isogloss.cli import main
from isogloss.data import Alignment, Links, Mentions
from isogloss.data.name_types import renamed, shared_type, shared_types
from isogloss.data.sentence_pairs import SentencePairs
from isogloss.errors import ParameterError, UsageError
from isogloss.tasks.extract import EntityTagger
from isogloss.tasks.joint import Multiview, multiview
from isogloss.tasks.joint.views import Nodes

CONLL04 = {"PER": "Peop", "LOC": "Loc", "ORG": "Org", "MISC": "Other"}


@cache
def names(side: str) -> Mentions:
    """The first 50 sentences of the sample with names, which are translations of each other."""
    return samples.mentions("en-de", side).part(0, 50)


@cache
def tagger(side: str, renaming: bool = False) -> EntityTagger:
    text = renamed(names(side), CONLL04) if renaming else names(side)
    return EntityTagger(iterations=4).fit(text)


@cache
def fitted(**options: Any) -> Multiview:
    return Multiview("entities", candidates=6, **options).fit(pairs(), tagger("source"), tagger("target"))


@cache
def pairs() -> SentencePairs:
    return SentencePairs(names("source"), names("target"))


def found(text: Any) -> list[Any]:
    return [text.entities(s) for s in range(len(text))]


# --- what is predicted


@pytest.mark.parametrize("decoder", ["nodes", "best"])
def test_one_candidate_leaves_the_best_analyses(decoder: str) -> None:
    both = Multiview("entities", candidates=1).fit(pairs(), tagger("source"), tagger("target"))
    for rule in ("full", "weak", "product", "uniform"):
        made = both.predict(pairs(), rule=rule, decoder=decoder)
        for side, own in (("source", made.source), ("target", made.target)):
            best = tagger(side).k_best(names(side), 1)
            assert found(own) == [analysis for ((_, analysis),) in best]


def test_swapped_languages_have_swapped_results() -> None:
    links = ig.HMMAligner(iterations=2).fit_predict(pairs().bitext())
    straight = SentencePairs(names("source"), names("target"), links)
    turned = SentencePairs(names("target"), names("source"), Links.of([row.T for row in links]))
    one = Multiview("entities", candidates=5).fit(straight, tagger("source"), tagger("target"))
    two = Multiview("entities", candidates=5).fit(turned, tagger("target"), tagger("source"))
    here, there = one.predict(straight), two.predict(turned)
    assert found(here.source) == found(there.target)
    assert found(here.target) == found(there.source)
    assert np.allclose(one.trace_, two.trace_, rtol=1e-4)


def test_pairs_that_are_no_translations_are_found_apart() -> None:
    """Nothing is linked, so that no match is worth anything, and each side has its own best."""
    both = fitted()
    apart = SentencePairs(names("source"), names("target"), Links.of([[]] * len(names("source"))))
    weights = both.feature_weights()
    inside = {name: value for name, value in weights.items() if name.startswith("links")}
    assert inside["links inside both"] > 0 > inside["links out of the source"]
    made = both.predict(apart, decoder="best")
    for side, own in (("source", made.source), ("target", made.target)):
        assert found(own) == [best[0][1] for best in tagger(side).k_best(names(side), 1)]


def test_the_bitext_teaches_a_model_that_misses_names() -> None:
    """A target model that has learnt from three sentences finds more with the help of the source."""
    poor = EntityTagger(iterations=4).fit(names("target").part(0, 12))
    gold = pairs()
    both = Multiview("entities", candidates=20).fit(gold, tagger("source"), poor)
    alone = ig.metrics.score_entities(both.separate(gold).target, names("target"), bootstrap=0).f1
    together = ig.metrics.score_entities(both.predict(gold).target, names("target"), bootstrap=0).f1
    assert together > alone


def test_distinct_nodes_are_told_apart_whatever_their_numbers() -> None:
    """Also where numbers are so large that a key of all of them would not fit in 64 bits."""
    for most in (3, 2**31):
        rows = np.concatenate([np.zeros((1, 6)), most * np.eye(6), np.zeros((1, 6))]).astype(np.int64)
        nodes = Nodes.distinct(rows, [3, 5])
        assert (np.concatenate([nodes.table[own] for own in nodes.of]) == rows).all() and len(nodes.table) == 7


def test_a_weak_model_knows_the_labels_of_the_full_one() -> None:
    other = tagger("source", renaming=True)
    with pytest.raises(ParameterError, match=r"the source model knows LOC, .* Peop"):
        Multiview("entities").fit(pairs(), tagger("source"), tagger("target"), source_weak=other)


# --- labels of other corpora


def test_types_of_conll04_are_those_of_conll_2002() -> None:
    assert {shared_type(theirs): kind for kind, theirs in CONLL04.items()} == {kind: kind for kind in CONLL04}
    assert shared_types(["Peop", "Org", "Award"], ["PER", "ORG"]) == {"Org": "ORG", "Peop": "PER"}
    assert shared_types(["PER", "Org"], ["PER", "ORG"]) == {}


def test_other_names_of_types_change_nothing() -> None:
    """Labels are matched by what they mean: a model with Peop learns and finds what one with PER does."""
    theirs = tagger("source", renaming=True)
    both = Multiview("entities", candidates=6).fit(pairs(), theirs, tagger("target"))
    here, there = both.predict(pairs()), fitted().predict(pairs())
    assert {kind for own in found(here.source) for _, _, kind in own} <= set(CONLL04.values())
    assert found(here.target) == found(there.target)
    assert [tuple((b, e, shared_type(kind)) for b, e, kind in own) for own in found(here.source)] == found(there.source)


# --- the command line


@cache
def files(folder: Path) -> Path:
    """Texts of the sample and a small model of each task and side."""
    for side in ("source", "target"):
        (folder / f"{side}.txt").write_text(samples.path("en-de", side).read_text(encoding="utf-8"), encoding="utf-8")
        trees = str(samples.path("en-de", f"{side}-trees"))
        tagger(side).save(folder / f"{side}.entities")
        assert main(["tag", "train", trees, "--save", str(folder / f"{side}.tag"), "--iterations", "2", "-q"]) == 0
        parse = ["parse", "train", trees, "--save", str(folder / f"{side}.parse"), "--tags", "predicted", "-q"]
        assert main([*parse, "--order", "1", "--iterations", "2"]) == 0
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files(tmp_path_factory.mktemp("multiview"))


def train(place: Path, out: str, *more: str, task: str = "entities", bitext: tuple[str, str] = ("", "")) -> list[str]:
    texts = [str(place / (own or f"{side}.txt")) for own, side in zip(bitext, ("source", "target"), strict=True)]
    models = [f for side in ("source", "target") for f in (f"--{side}-model", str(place / f"{side}.{task}"))]
    return ["multiview", "train", "--bitext", *texts, "--task", task, *models, "--save", str(place / out), *more]


def apply(place: Path, model: str, *more: str) -> list[str]:
    outs = ["--out-source", str(place / "out.source"), "--out-target", str(place / "out.target")]
    return [
        "multiview",
        "apply",
        str(place / model),
        str(place / "source.txt"),
        str(place / "target.txt"),
        *outs,
        *more,
    ]


APPLY = {"entities": "extract", "tag": "tag", "parse": "parse"}


@pytest.mark.parametrize("task", ["entities", "tag", "parse"])
def test_commands_end_to_end(place: Path, task: str) -> None:
    assert main([*train(place, f"both.{task}", "--retrain", "--candidates", "5", "-q", task=task)]) == 0
    assert main([*apply(place, f"both.{task}"), "-q"]) == 0
    for side in ("source", "target"):
        given = (place / f"{side}.txt").read_text(encoding="utf-8").splitlines()
        made = place / f"out.{side}"
        read = Mentions.read(made) if task == "entities" else ig.Treebank.read(made)
        assert [" ".join(read.words(s)) for s in range(len(read))] == given
        alone = place / f"alone.{side}"
        assert (
            main(
                [
                    APPLY[task],
                    "apply",
                    str(place / f"both.{task}" / side),
                    str(place / f"{side}.txt"),
                    "-o",
                    str(alone),
                    "-q",
                ]
            )
            == 0
        )
        assert alone.stat().st_size > 0
        model = ig.load(place / f"both.{task}" / side)
        assert type(model) is type(ig.load(place / f"{side}.{task}"))


def test_files_and_python_agree(place: Path) -> None:
    assert main([*train(place, "again", "-q")]) == 0
    assert main([*apply(place, "again"), "-q"]) == 0
    loaded = Multiview.load(place / "again")
    made = loaded.predict(ig.Bitext.read(place / "source.txt", place / "target.txt"))
    assert Mentions.read(place / "out.source").to_bytes() == made.source.to_bytes()
    assert Mentions.read(place / "out.target").to_bytes() == made.target.to_bytes()


def test_links_are_read(place: Path) -> None:
    n = len((place / "source.txt").read_text(encoding="utf-8").splitlines())
    (place / "links").write_text("0-0 1-1\n" * n, encoding="utf-8")
    assert main([*train(place, "linked", "--links", str(place / "links"), "-q")]) == 0
    assert Multiview.load(place / "linked").feature_weights() != Multiview.load(place / "again").feature_weights()


def test_models_of_other_labels_go_together(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tagger("source", renaming=True).save(place / "theirs")
    asked = train(place, "mixed", "-q", "--retrain")
    asked[asked.index("--source-model") + 1] = str(place / "theirs")
    assert main(asked) == 0
    assert main([*apply(place, "mixed"), "-q"]) == 0
    tags = {line.split()[-1] for line in (place / "out.source").read_text(encoding="utf-8").splitlines() if line}
    assert tags <= {"O", *(f"{p}-{kind}" for p in "BI" for kind in CONLL04.values())}
    (place / "some.conll").write_bytes(names("source").to_bytes())
    (place / "some.txt").write_text("\n".join(" ".join(names("source").words(s)) for s in range(50)), encoding="utf-8")
    assert (
        main(
            ["extract", "apply", str(place / "mixed" / "source"), str(place / "some.txt"), "-o", str(place / "o"), "-q"]
        )
        == 0
    )
    capsys.readouterr()
    assert main(["extract", "score", str(place / "o"), str(place / "some.conll")]) == 0
    told = capsys.readouterr()
    assert "Peop as PER" in told.err
    assert float(next(line for line in told.out.splitlines() if line.startswith("f1")).split()[1]) > 50


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bitext": ("source.txt", "short.txt")}, "50 sentences but .* has 49"),
        ({"bitext": ("nothing.txt", "nothing.txt")}, "no sentences"),
        ({"bitext": ("source.txt", "missing.txt")}, "no such file"),
        ({"task": "tag", "bitext": ("gap.txt", "target.txt")}, "line 3 of .* is empty"),
    ],
)
def test_texts_that_do_not_fit(
    place: Path, change: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (place / "target.txt").read_text(encoding="utf-8").splitlines()
    (place / "short.txt").write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")
    (place / "gap.txt").write_text("\n".join([*lines[:2], "", *lines[3:]]) + "\n", encoding="utf-8")
    (place / "nothing.txt").write_text("", encoding="utf-8")
    capsys.readouterr()
    assert main(train(place, "refused", "-q", **change)) != 0
    assert re.search(words, capsys.readouterr().err)
    assert not (place / "refused").exists()


def test_models_that_do_not_fit(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = train(place, "refused", "-q")
    asked[asked.index("--source-model") + 1] = str(place / "source.tag")
    assert main([*train(place, "both", "-q", "--candidates", "2", "--rounds", "1")]) == 0
    swapped = apply(place, "both")
    swapped[3:5] = swapped[4], swapped[3]
    for wrong, words in (
        (swapped, "source and target look swapped"),
        (asked, "where an extractor of names or relations is wanted"),
        (apply(place, "source.entities"), "a model by `isogloss multiview train` is wanted"),
        (apply(place, "nowhere"), "no such saved model"),
    ):
        capsys.readouterr()
        assert main(wrong) != 0
        assert words in capsys.readouterr().err


def test_empty_lines_have_no_names(place: Path) -> None:
    lines = (place / "source.txt").read_text(encoding="utf-8").splitlines()
    (place / "gap.txt").write_text("\n".join(["", *lines[1:]]) + "\n", encoding="utf-8")
    assert main([*train(place, "gaps", "-q", bitext=("gap.txt", "target.txt"))]) == 0
    asked = apply(place, "gaps", "-q")
    asked[3] = str(place / "gap.txt")
    assert main(asked) == 0
    assert len(Mentions.read(place / "out.source")) == len(lines) - 1  # columns have no place for it
    assert len(Mentions.read(place / "out.target")) == len(lines)


def test_a_stopped_run_goes_on(place: Path) -> None:
    """Killed while it learns, continued with --resume: the same files as in one go."""
    assert main([*train(place, "whole", "--retrain", "-q", "--threads", "1")]) == 0
    asked = [sys.executable, "-m", "isogloss", *train(place, "parts", "--retrain", "-q", "--threads", "1")]
    process = subprocess.Popen(asked, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stages = place / "parts.checkpoint"
    for _ in range(2000):
        if (stages / "both").exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert main([*train(place, "parts", "--retrain", "-q", "--threads", "1", "--resume")]) == 0
    for name in ("model.safetensors", "source/model.safetensors", "target/model.safetensors"):
        assert (place / "parts" / name).read_bytes() == (place / "whole" / name).read_bytes()
    assert not stages.exists()


def test_a_run_goes_on_with_what_it_began_with(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other models, other probabilities of links and another mixture are another run."""

    def broken(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    other = EntityTagger(iterations=2).fit(names("source"))
    kept: dict[str, Any] = {"checkpoint": tmp_path / "stages", "resume": True}
    links = [Links.of([Alignment(frozenset({(0, 0)}), probability={(0, 0): p})] * len(pairs())) for p in (0.9, 0.4)]
    first, second = (SentencePairs(names("source"), names("target"), own) for own in links)
    both = Multiview("entities", candidates=3, rounds=1)
    monkeypatch.setattr(Multiview, "_learn", broken)
    with pytest.raises(KeyboardInterrupt):
        both.fit(first, tagger("source"), tagger("target"), **kept)
    monkeypatch.undo()
    for given, model in ((second, tagger("source")), (first, other)):
        with pytest.raises(UsageError, match="of a run with other"):
            both.fit(given, model, tagger("target"), **kept)
    both.fit(first, tagger("source"), tagger("target"), **kept)

    monkeypatch.setattr(multiview, "retrained", broken)
    with pytest.raises(KeyboardInterrupt):
        both.retrain(first, names("source"), **kept)
    with pytest.raises(UsageError, match="of a run with other"):
        both.retrain(first, names("source"), mixture="equal", **kept)
    with pytest.raises(UsageError, match="of a run with other"):
        both.retrain(first, names("target"), **kept)

    monkeypatch.undo()
    monkeypatch.setattr(Multiview, "retrain", broken)
    assert main([*train(place, "began", "--retrain", "-q")]) != 0
    other.save(place / "other.entities")
    asked = train(place, "began", "--retrain", "-q", "--resume")
    asked[asked.index("--source-model") + 1] = str(place / "other.entities")
    assert main(asked) == 2
