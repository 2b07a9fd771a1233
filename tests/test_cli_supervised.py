"""The command line of supervised alignment: train-aligner, align --model, suggest, and view of two systems."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Call
from isogloss import cli, samples, show, store
from isogloss.data import Bitext, Links
from isogloss.data.formats import format_links, read_links
from isogloss.tasks.align import MatchingAligner
from isogloss.tasks.align.supervised.base import SupervisedAligner

QUICK = ("--no-tune", "--iterations", "3", "--trainer", "mira", "--features", "association,position,hmm", "-q")
SCRIPT = "import sys; from isogloss.cli import main; sys.exit(main())"


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled text, its gold, links by another system, and two models: without those as a feature, and with."""
    place = tmp_path_factory.mktemp("supervised")
    for part in ("source", "target", "gold"):
        shutil.copy(samples.path("en-de", part), place / part)
    diagonal = Links.of(
        [(k, k) for k in range(min(len(source), len(target)))] for source, target in samples.bitext("en-de")
    )
    write(place / "diagonal", format_links(diagonal))
    texts = [str(place / part) for part in ("source", "target", "gold")]
    assert cli.main(["train-aligner", "matching", *texts, "--save", str(place / "model"), *QUICK]) == 0
    more = ["--links", f"diagonal={place / 'diagonal'}"]
    assert cli.main(["train-aligner", "matching", *texts, "--save", str(place / "with"), *QUICK, *more]) == 0
    return place


def files(place: Path, *names: str) -> list[Path]:
    return [place / name for name in names]


# train-aligner -------------------------------------------------------------------------------------------------------


def test_training_is_that_of_python(place: Path) -> None:
    made = MatchingAligner(
        tune=False, iterations=3, trainer="mira", features=("association", "position", "hmm"), seed=0
    ).fit(samples.bitext("en-de"), samples.gold("en-de"))
    kept: Any = store.load(place / "model")
    assert kept.weights_ == made.weights_ and kept.n_gold_ == 50


def test_report_of_the_error_and_the_settings(isogloss: Call, place: Path, tmp_path: Path) -> None:
    options = ["--features", "association,position,hmm", "--trainer", "perceptron", "--option", "folds=2"]
    arguments = ["train-aligner", "matching", *files(place, "source", "target", "gold"), *options]
    answer = isogloss(*arguments, "--save", tmp_path / "m", "--json")
    assert answer.status == 0
    found = json.loads(answer.out)
    assert found["gold_pairs"] == found["pairs"] == 50 and found["unlabelled_pairs"] == 0
    assert found["sure"] + found["possible"] == len(samples.gold("en-de").source) and found["possible"] > 0
    assert found["held_out"] == "folds" and found["model"] == str(tmp_path / "m")
    assert found["aer"] == min(entry["aer"] for entry in found["tuning"]) > 1  # percent
    assert found["weights"]["hmm"] and found["options"]["folds"] == 2
    assert "learnt from 50 pairs with gold (438 sure, 39 possible)" in answer.err
    assert f"AER {found['aer']:.2f} in 2-fold cross-validation" in answer.err
    assert f"by the HMM alone, {found['aer_hmm']:.2f}" in answer.err
    assert f"trainer perceptron, missed 1, spurious 1, iterations {found['setting']['iterations']}" in answer.err
    hmm = tmp_path / "hmm"
    assert isogloss("align", *files(place, "source", "target"), "-o", hmm, "-q").status == 0
    score = json.loads(isogloss("score", hmm, place / "gold", "--json", "--bootstrap", "0").out)
    assert found["aer_hmm"] == pytest.approx(score["aer"], abs=0.5)  # the same model; only its links are rounded


def test_gold_of_some_lines(isogloss: Call, place: Path, tmp_path: Path) -> None:
    lines = (place / "gold").read_text().splitlines()
    first = write(tmp_path / "first", "\n".join(lines[:30]) + "\n")
    every = [line if k % 2 else "" for k, line in enumerate(lines)]
    other = write(tmp_path / "other", "\n".join(every) + "\n")
    texts = files(place, "source", "target")
    learnt = []
    for gold, pairs in ((first, 30), (other, 25)):
        answer = isogloss("train-aligner", "matching", *texts, gold, *QUICK[:-1], "--json", "--save", tmp_path / "m")
        found = json.loads(answer.out)
        assert answer.status == 0 and found["gold_pairs"] == pairs and found["unlabelled_pairs"] == 50 - pairs
        assert f"{pairs} pairs with gold" in answer.err and f"{50 - pairs} pairs of the text without" in answer.err
        learnt.append(found["weights"])
    bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    made = MatchingAligner(tune=False, iterations=3, trainer="mira", features=("association", "position", "hmm"))
    made.fit(bitext.part(0, 30), gold[:30], bitext.part(30, 50))
    assert learnt[0] == pytest.approx(made.weights_)
    learn = isogloss("train-aligner", "matching", *texts, other, *QUICK, "--json", "--empty", "learn")
    assert json.loads(learn.out)["gold_pairs"] == 50


def test_little_gold_is_said_once(isogloss: Call, place: Path, tmp_path: Path) -> None:
    lines = (place / "gold").read_text().splitlines(keepends=True)
    for number, words in ((1, "warning: MatchingAligner: gold for 1 sentence pair is little"), (6, "gold of 6 pairs")):
        few = write(tmp_path / "few", "".join(lines[:number]))
        answer = isogloss("train-aligner", "matching", *files(place, "source", "target"), few, *QUICK[:-1], "--json")
        assert answer.status == 0 and words in answer.err and answer.err.count("is little") == 1


def test_unlabelled_text_dev_and_a_file_with_both_sides(isogloss: Call, place: Path, tmp_path: Path) -> None:
    source, target, gold = ((place / name).read_text().splitlines() for name in ("source", "target", "gold"))
    both = write(tmp_path / "both", "".join(f"{a} ||| {b}\n" for a, b in zip(source[:30], target[:30], strict=True)))
    for name, lines in (("s", source), ("t", target), ("g", gold)):
        write(tmp_path / name, "\n".join(lines[30:] if name != "g" else lines[30:40]) + "\n")
    write(tmp_path / "first", "\n".join(gold[:30]) + "\n")
    rest = files(tmp_path, "s", "t", "g")
    options = [option for option in QUICK if option != "--no-tune"]
    options[options.index("3")] = "2"
    arguments = ["train-aligner", "matching", both, tmp_path / "first", *options[:-1], "--missed", "2", "--json"]
    answer = isogloss(*arguments, "--unlabelled", *rest[:2], "--dev", *rest)
    found = json.loads(answer.out)
    assert answer.status == 0 and found["gold_pairs"] == 30 and found["unlabelled_pairs"] == 20
    assert found["held_out"] == "dev" and "on --dev" in answer.err and "20 unlabelled pairs" in answer.err
    assert found["setting"]["missed"] == 2 and len(found["tuning"]) == 1
    assert "not saved" in answer.err


@pytest.mark.parametrize(
    ("gold", "status", "words"),
    [
        ("", 1, "no line has links"),
        ("\n\n", 1, "no line has links"),
        ("0-0 99-1\n", 1, "source word 99"),
        ("0p0\n1p1\n", 1, "only possible links"),
        ("0-0\n" * 51, 1, "has 51 lines but"),
        (b"\xff\xfe0-0", 1, "gold"),
        ("a-b\n", 1, "line 1"),
    ],
)
def test_gold_that_cannot_be_used(
    isogloss: Call, place: Path, tmp_path: Path, gold: str | bytes, status: int, words: str
) -> None:
    given = write(tmp_path / "gold", gold)
    answer = isogloss(
        "train-aligner", "matching", *files(place, "source", "target"), given, "--save", tmp_path / "m", *QUICK
    )
    assert answer.status == status and words in answer.err and answer.err.count("\n") == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["blocks", "source", "target", "gold", "--save", "m"], "not one of matching, quadratic, itg"),
        (["matching", "source", "target", "gold"], "give --save MODEL"),
        (["matching", "source", "target", "gold", "--save", "no/where/m"], "no folder"),
        (["matching", "source", "target", "nothing", "--save", "m"], "no such file"),
        (["matching", "source", "target", "gold", "--save", "m", "--features", "dice"], "there is no set of features"),
        (["matching", "source", "target", "gold", "--save", "m", "--trainer", "adam"], "'adam' should be one of"),
        (["matching", "source", "target", "gold", "--save", "m", "--missed", "-1"], "--missed"),
        (["matching", "source", "target", "gold", "--save", "m", "--threshold", "2"], "above 0 and below 1"),
        (["matching", "source", "target", "gold", "--save", "m", "--lexicon", "no"], "no such file"),
        (["matching", "source", "target", "gold", "--save", "m", "--links", "diagonal"], "a name and a file"),
        (["matching", "source", "target", "gold", "--save", "m", *["--links", "a=diagonal"] * 2], "given twice"),
        (["matching", "source", "target", "gold", "--save", "m", "--option", "depth=3"], "has no such option"),
        (["matching", "source", "target", "gold", "--save", "m", "--option", "folds"], "a name and a value"),
        (["matching", "source", "target", "gold", "--save", "m", "--dev", "source", "target", "gold"], "other sent"),
        (["matching", "-", "target", "-", "--save", "m"], "standard input"),
        (["matching", "source", "target", "gold", "--save", "m", "--features", ","], "names no set"),
        (["matching", "source", "target", "gold", "--save", "m", "--seed", "-1"], "'-1' should be an integer from 0"),
        (["matching", "source", "target", "gold", "--save", "gold"], "this is a file, and a saved model is a folder"),
    ],
)
def test_wrong_calls(
    isogloss: Call, place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(place)
    answer = isogloss("train-aligner", *arguments)
    assert answer.status == 2 and words in answer.err and answer.err.count("\n") == 1
    assert not Path("m").exists()


def test_gold_that_cannot_be_of_this_text_is_doubted(isogloss: Call, place: Path, tmp_path: Path) -> None:
    """Wrong gold may have no index out of range."""
    source, target = ((place / name).read_text().splitlines() for name in ("source", "target"))
    turned = [" ".join(f"{n - 1 - i}-{(i + 3) % m}" for i in range(n)) for n, m in
              ((len(a.split()), len(b.split())) for a, b in zip(source, target, strict=True))]  # fmt: skip
    arguments = ["train-aligner", "matching", *files(place, "source", "target")]
    answer = isogloss(*arguments, write(tmp_path / "turned", "\n".join(turned)), *QUICK, "--json")
    assert answer.status == 0 and "warning: the gold and an HMM of the text hardly agree (AER" in answer.err
    answer = isogloss(*arguments, place / "gold", *QUICK, "--json")
    assert answer.status == 0 and answer.err == ""


def test_gold_that_is_missing_and_gold_that_is_too_long(isogloss: Call, place: Path, tmp_path: Path) -> None:
    answer = isogloss("train-aligner", "matching", *files(place, "source", "target"), "--save", tmp_path / "m")
    assert answer.status == 1 and "give both, and GOLD: isogloss train-aligner" in answer.err
    arguments = ["train-aligner", "matching", *files(place, "source", "target", "gold"), *QUICK[:-1], "--json"]
    answer = isogloss(*arguments, "--max-length", "8")
    longer = sum(max(map(len, pair)) > 8 for pair in samples.bitext("en-de"))
    assert answer.status == 0 and 0 < longer < 50
    assert f"isogloss: {longer} pairs with gold passed over: a side is empty or longer than 8 words" in answer.err


def test_bad_text(isogloss: Call, place: Path, tmp_path: Path) -> None:
    short = write(tmp_path / "short", "eins\nzwei\n")
    answer = isogloss("train-aligner", "matching", place / "source", short, place / "gold", "--save", tmp_path / "m")
    assert answer.status == 1 and "has 50 lines but" in answer.err
    latin = write(tmp_path / "latin", (place / "target").read_text().encode("latin-1", "replace"))
    arguments = ["train-aligner", "matching", place / "source", latin, place / "gold", *QUICK, "--save", tmp_path / "m"]
    answer = isogloss(*arguments)
    assert answer.status == 1 and "--encoding" in answer.err
    assert isogloss(*arguments, "--encoding", "latin-1").status == 0


def test_links_of_gold_are_no_feature(isogloss: Call, place: Path, tmp_path: Path) -> None:
    arguments = ["train-aligner", "matching", *files(place, "source", "target", "gold"), "--save", tmp_path / "m"]
    answer = isogloss(*arguments, "--links", f"gold={place / 'gold'}")
    assert answer.status == 1 and "possible links" in answer.err


def test_dev_with_links_by_others(isogloss: Call, place: Path, tmp_path: Path) -> None:
    for name in ("source", "target", "gold", "diagonal"):
        lines = (place / name).read_text().splitlines(keepends=True)
        if name == "gold":
            lines[31] = "\n"  # not done: its links by others must not be taken for those of the next pair
        write(tmp_path / f"{name}1", "".join(lines[:30]))
        write(tmp_path / f"{name}2", "".join(lines[30:]))
    options = ["--features", "association,position", "--trainer", "mira", "--iterations", "2", "--missed", "1"]
    arguments = ["train-aligner", "matching", *files(tmp_path, "source1", "target1", "gold1"), *options, "--json"]
    arguments += ["--links", f"d={tmp_path / 'diagonal1'}", "-q"]
    dev = ["--dev", *files(tmp_path, "source2", "target2", "gold2")]
    answer = isogloss(*arguments, *dev, "--dev-links", f"d={tmp_path / 'diagonal2'}")
    found = json.loads(answer.out)
    assert answer.status == 0 and found["held_out"] == "dev" and "links:d" in found["weights"]
    bitext, gold, diagonal = samples.bitext("en-de"), samples.gold("en-de"), read_links(place / "diagonal")
    rows = np.array([30, *range(32, 50)])
    dev_text = Bitext.of(bitext[int(k)] for k in rows)
    made = MatchingAligner(trainer="mira", iterations=2, missed=1.0, features=("association", "position"), links=["d"])
    made.fit(
        bitext.part(0, 30), gold[:30], dev=(dev_text, gold.take(rows)), links={"d": diagonal[:30]},
        dev_links={"d": diagonal.take(rows)},
    )  # fmt: skip
    assert found["aer"] == pytest.approx(100 * made.tuning_[0]["aer"]) and found["weights"] == made.weights_
    for more, words in (
        (dev, "--dev-links d=FILE"),
        ([*dev, "--dev-links", "d"], "--dev-links d: should be a name and a file, as --dev-links"),
        ([*dev, "--dev-links", f"d={tmp_path / 'diagonal2'}", "--dev-links", "e=x"], "--dev-links e: --links has no"),
        (["--dev-links", f"d={tmp_path / 'diagonal2'}"], "there is none"),
    ):
        answer = isogloss(*arguments, *more)
        assert answer.status == 2 and words in answer.err and answer.err.count("\n") == 1
    answer = isogloss(*arguments, *dev, "--dev-links", f"d={tmp_path / 'diagonal1'}")
    assert answer.status == 1 and "diagonal1" in answer.err


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_a_stopped_training_leaves_nothing(place: Path, tmp_path: Path, number: int, name: str) -> None:
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("whoever started us said that this signal is to be ignored, and children inherit it")
    given = map(str, files(place, "source", "target", "gold"))
    command = [sys.executable, "-c", SCRIPT, "train-aligner", "matching", *given, "--save", str(tmp_path / "m")]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    running.send_signal(number)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 130 and f"stopped by {name}" in said.splitlines()[-1]
    assert os.listdir(tmp_path) == []


def test_every_kind_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from isogloss.cli import train_aligner
    from isogloss.tasks import align

    for kind, name in train_aligner.ALIGNERS.items():
        if hasattr(align, name):
            assert issubclass(getattr(align, name), SupervisedAligner)
            assert f"align.{kind}" in store.KINDS


# align --model -------------------------------------------------------------------------------------------------------


def test_a_model_is_applied_as_any_other(isogloss: Call, place: Path, tmp_path: Path) -> None:
    texts = files(place, "source", "target")
    answer = isogloss("align", *texts, "--model", place / "model", "-o", tmp_path / "links", "--gold", place / "gold")
    assert answer.status == 0 and "AER = " in answer.out and "50 pairs" in answer.err
    wanted = store.load(place / "model").predict(samples.bitext("en-de"))
    assert (tmp_path / "links").read_bytes() == format_links(wanted)
    parts = isogloss("align", *texts, "--model", place / "model", "--scores", "--chunk", "7", "-q")
    assert parts.status == 0 and parts.out == format_links(wanted, scores=True).decode()


def test_one_line_in_is_one_line_out(isogloss: Call, place: Path, tmp_path: Path) -> None:
    source, target = (
        write(tmp_path / "s", "the house\n\nthe the the the\n"),
        write(tmp_path / "t", "das Haus\nx\ndas\n"),
    )
    answer = isogloss("align", source, target, "--model", place / "model", "--max-length", "3")
    assert answer.status == 0 and answer.out.count("\n") == 3 and answer.out.splitlines()[1:] == ["", ""]
    assert "1 empty: line 2" in answer.err and "longer than 3 words" in answer.err


def test_threshold_gives_fewer_or_more_links(isogloss: Call, place: Path, tmp_path: Path) -> None:
    counts = []
    for threshold in ("0.99", "0.5", "0.05"):
        answer = isogloss(
            "align", *files(place, "source", "target"), "--model", place / "model", "--threshold", threshold, "--json",
            "-o", tmp_path / "links",
        )  # fmt: skip
        counts.append(json.loads(answer.out)["links"])
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--symmetrise", "union"], "two directions"),
        (["--decode", "viterbi"], "two directions"),
        (["--max-length", "500"], "trained for pairs of up to 200 words"),
        (["--threshold", "auto"], "give a probability"),
        (["--constraint", "none"], "is for training"),
        (["--save", "other"], "give one of the two"),
        (["--links", "nobody=diagonal"], "was trained without links by others"),
    ],
)
def test_options_that_make_no_sense(isogloss: Call, place: Path, option: list[str], words: str) -> None:
    answer = isogloss("align", *files(place, "source", "target"), "--model", place / "model", *option)
    assert answer.status == 2 and words in answer.err and answer.out == ""


def test_links_by_others_are_given_again(isogloss: Call, place: Path, tmp_path: Path) -> None:
    texts, model = files(place, "source", "target"), ["--model", place / "with"]
    answer = isogloss("align", *texts, *model)
    assert answer.status == 2 and "--links diagonal=FILE" in answer.err
    assert isogloss("align", *texts, "--links", "a=b").status == 2
    given = ["--links", f"diagonal={place / 'diagonal'}"]
    whole = isogloss("align", *texts, *model, *given, "-q")
    links = read_links(place / "diagonal")
    wanted = store.load(place / "with").predict(samples.bitext("en-de"), links={"diagonal": links})
    assert whole.status == 0 and whole.out == format_links(wanted).decode()
    assert isogloss("align", *texts, *model, *given, "--chunk", "9", "-q") == whole
    lines = (place / "diagonal").read_text().splitlines(keepends=True)
    for wrong, words in (
        (lines[:30], "has 30 lines but"),
        ([*lines, "\n"], "has 51 lines but"),
        (["0-77\n", *lines[1:]], "0-77"),
    ):
        bad = write(tmp_path / "bad", "".join(wrong))
        answer = isogloss("align", *texts, *model, "--links", f"diagonal={bad}", "-o", tmp_path / "out")
        assert answer.status == 1 and words in answer.err and not (tmp_path / "out").exists()


def test_damaged_models(isogloss: Call, place: Path, tmp_path: Path) -> None:
    texts = files(place, "source", "target")
    for name, damage in (
        ("cut", lambda folder: os.truncate(folder / store.ARRAYS, 500)),
        ("odd", lambda folder: write(folder / store.HEADER, _other_trainer((folder / store.HEADER).read_text()))),
        ("bare", lambda folder: (folder / store.HEADER).unlink()),
        ("half", lambda folder: _resaved(folder, lambda key, array: array[:-1] if key == "weights" else array)),
        ("less", lambda folder: _resaved(folder, lambda key, array: None if key == "weights" else array)),
        ("lost", lambda folder: _resaved(folder, lambda key, array: None if "hmm" in key else array)),
    ):
        shutil.copytree(place / "model", tmp_path / name)
        damage(tmp_path / name)
        for command in (["align"], ["suggest"]):
            answer = isogloss(*command, *texts, "--model", tmp_path / name)
            assert answer.status == 1 and answer.err.startswith(f"isogloss: {tmp_path / name}")
            assert answer.err.count("\n") == 1 and ("again" in answer.err or "name right" in answer.err), answer.err


def test_a_model_with_functions_is_for_python(isogloss: Call, place: Path, tmp_path: Path) -> None:
    def same(view: Any) -> Any:
        return np.equal.outer(view.source, view.target)

    bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    own = MatchingAligner(features=("association",), extra=[same], tune=False, iterations=2)
    own.fit(bitext, gold).save(tmp_path / "own")
    answer = isogloss("align", *files(place, "source", "target"), "--model", tmp_path / "own")
    assert answer.status == 1 and answer.err.startswith(
        f"isogloss: {tmp_path / 'own'}: this model has features of your"
    )


def _resaved(folder: Path, change: Callable[[str, Any], Any]) -> None:
    """The same model with other arrays, as if it had been saved so."""
    saved = store.read(folder)
    arrays = {name: change(name, array) for name, array in saved.arrays.items()}
    kept = {name: array for name, array in arrays.items() if array is not None}
    store.save(folder, kind=saved.kind, options=saved.options, arrays=kept, meta=saved.meta)


def _other_trainer(header: str) -> str:
    return header.replace('"mira"', '"adam"')


# suggest -------------------------------------------------------------------------------------------------------------


def test_suggestions_as_lines_and_json(isogloss: Call, place: Path, tmp_path: Path) -> None:
    from isogloss.tasks.align.supervised.suggest import suggest

    texts = files(place, "source", "target")
    wanted = suggest(store.load(place / "model"), samples.bitext("en-de"), 4)
    answer = isogloss("suggest", *texts, "--model", place / "model", "-n", "4")
    assert answer.status == 0 and answer.err == ""
    rows = [line.split("\t") for line in answer.out.splitlines()]
    assert [row[0] for row in rows] == [str(one.line) for one in wanted]
    assert [float(row[2]) for row in rows] == pytest.approx([100 * one.error for one in wanted], abs=0.01)
    out = tmp_path / "next"
    assert isogloss("suggest", *texts, "--model", place / "model", "-n", "4", "--text", "-o", out).out == ""
    first = out.read_text().splitlines()[0].split("\t")
    assert (tuple(first[3].split()), tuple(first[4].split())) == samples.bitext("en-de")[wanted[0].pair]
    found = json.loads(isogloss("suggest", *texts, "--model", place / "model", "-n", "4", "--json").out)
    assert [one["line"] for one in found["suggestions"]] == [one.line for one in wanted] and found["pairs"] == 50


def test_suggestions_that_are_fewer_say_why(isogloss: Call, place: Path, tmp_path: Path) -> None:
    arguments = ["suggest", *files(place, "source", "target"), "--model", place / "model"]
    for more, words in (
        (["-n", "1000"], r"^isogloss: \d+ of 1000: no other pair is of a usual length.*--shortest 1 and --longest"),
        (["--shortest", "50"], "nothing to suggest: no pair is left that is of the length asked for"),
        (["--gold", place / "gold"], "nothing to suggest: every pair of the text is in the gold already"),
        (["--gold", write(tmp_path / "none", "\n"), "-n", "1"], "no line has links, so no pair counts as done"),
    ):
        answer = isogloss(*arguments, *more)
        assert answer.status == 0 and re.search(words, answer.err) and answer.err.count("\n") == 1


def test_suggestions_without_a_model_leave_out_what_is_done(isogloss: Call, place: Path, tmp_path: Path) -> None:
    texts = files(place, "source", "target")
    first = isogloss("suggest", *texts, "-n", "3", "-q")
    assert first.status == 0 and isogloss("suggest", *texts, "-n", "3", "-q") == first
    lines = [int(line.split("\t")[0]) for line in first.out.splitlines()]
    gold = (place / "gold").read_text().splitlines()
    done = write(tmp_path / "done", "".join((line if k in lines else "") + "\n" for k, line in enumerate(gold, 1)))
    again = isogloss("suggest", *texts, "-n", "3", "--gold", done, "-q")
    assert not {int(line.split("\t")[0]) for line in again.out.splitlines()} & set(lines)
    answer = isogloss("suggest", *texts, "--gold", place / "gold")
    assert answer.status == 0 and answer.out == "" and "nothing to suggest" in answer.err
    answer = isogloss("suggest", *texts, "-n", "50")
    assert answer.status == 0 and " of 50: no other pair" in answer.err


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["source", "target", "--links", "a=b"], 2, "without --model"),
        (["source", "target", "--model", "with"], 2, "--links diagonal=FILE"),
        (["source", "target", "--model", "nowhere"], 2, "no such saved model"),
        (["source", "target", "--json", "-o", "x"], 2, "Give one of the two"),
        (["source", "target", "-n", "0"], 2, "--number"),
        (["source", "target", "--shortest", "9", "--longest", "3"], 2, "shortest is 9"),
        (["source", "empty"], 1, "has 50 lines but"),
        (["empty", "empty"], 1, "nothing to suggest"),
    ],
)
def test_suggest_refuses(
    isogloss: Call, place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, words: str
) -> None:
    monkeypatch.chdir(place)
    write(place / "empty", "")
    answer = isogloss("suggest", *arguments)
    assert answer.status == status and words in answer.err and answer.out == ""


# view of two systems -------------------------------------------------------------------------------------------------


def records(page: str) -> list[dict[str, Any]]:
    """The pairs in a page."""
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found
    pairs: list[dict[str, Any]] = json.loads(found[1])
    return pairs


@pytest.fixture(scope="module")
def links(place: Path) -> Path:
    write(place / "links", format_links(store.load(place / "model").predict(samples.bitext("en-de")), scores=True))
    return place / "links"


def test_most_different_pairs_with_reasons(isogloss: Call, place: Path, links: Path) -> None:
    arguments = ["view", *files(place, "source", "target"), links, "--compare", place / "diagonal", "--limit", "5"]
    page = isogloss(*arguments, "--gold", place / "gold", "--model", place / "model")
    assert page.status == 0
    pairs = records(page.out)
    first, second = read_links(links), read_links(place / "diagonal")
    apart = [a.links ^ b.links for a, b in zip(first, second, strict=True)]
    most = sorted(range(50), key=lambda k: -len(apart[k]))[:5]
    assert [pair["line"] for pair in pairs] == sorted(k + 1 for k in most)
    aligner: Any = store.load(place / "model")
    for pair in pairs:
        at = pair["line"] - 1
        told = {(one["source"], one["target"]): one for one in pair["reasons"]}
        assert set(told) == set(sorted(apart[at])[:12])
        (i, j), one = next(iter(told.items()))
        answer = aligner.explain(samples.bitext("en-de"), at, source=i, target=j)
        assert sum(value for _, value in one["features"]) == pytest.approx(answer["gain"], abs=0.01)
        assert one["probability"] == pytest.approx(answer["probability"], abs=1e-4) and one["text"] == answer["reason"]
    without = records(isogloss(*arguments).out)
    assert all("reasons" not in pair and pair["names"] == ["links", "diagonal"] for pair in without)


def test_reasons_for_what_gold_has_otherwise_and_in_a_terminal(isogloss: Call, place: Path, links: Path) -> None:
    arguments = ["view", *files(place, "source", "target"), links, "--gold", place / "gold", "--model", place / "model"]
    arguments += ["--limit", "8"]
    pairs = records(isogloss(*arguments).out)
    gold, found = samples.gold("en-de"), read_links(links)
    for pair in pairs:
        at = pair["line"] - 1
        errors = (found[at].links - gold[at].links - gold[at].possible) | (gold[at].links - found[at].links)
        assert {(one["source"], one["target"]) for one in pair.get("reasons", [])} == set(sorted(errors)[:12])
    line = next(pair["line"] for pair in pairs if "reasons" in pair)
    drawn = isogloss(*arguments, "--terminal", "--line", line)
    assert drawn.status == 0 and re.search(r"^\S+ — \S+: \d\.\d\d: \w+", drawn.out, re.MULTILINE)


def test_reasons_are_few_enough_for_a_page(
    isogloss: Call, place: Path, links: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isogloss.cli import view

    monkeypatch.setattr(view, "_MOST_REASONS", 4)
    monkeypatch.setattr(view, "_MOST_REASONS_OF_A_PAIR", 3)
    arguments = ["view", *files(place, "source", "target"), links, "--compare", place / "diagonal"]
    answer = isogloss(*arguments, "--model", place / "model")
    assert sorted(len(pair.get("reasons", [])) for pair in records(answer.out))[-3:] == [0, 1, 3]
    assert "features are given for 4 links" in answer.err


def test_view_refuses_models_that_cannot_explain(isogloss: Call, place: Path, links: Path, tmp_path: Path) -> None:
    arguments = ["view", *files(place, "source", "target"), links, "--limit", "1"]
    assert "give --compare" in isogloss(*arguments, "--model", place / "model").err
    assert "and none is given" in isogloss(*arguments, "--links", "a=b").err
    more = ["--compare", place / "diagonal", "--model"]
    assert "--links diagonal=FILE" in isogloss(*arguments, *more, place / "with").err
    assert isogloss(*arguments, *more, place / "with", "--links", f"diagonal={place / 'diagonal'}").status == 0
    plain = tmp_path / "plain"
    assert isogloss("align", *files(place, "source", "target"), "--save", plain, "-o", tmp_path / "l", "-q").status == 0
    answer = isogloss(*arguments, *more, plain)
    said = " ".join(answer.err.split())
    assert answer.status == 2 and "the HMMAligner that is kept here has no features" in said
    assert (
        "auto` keeps one like it" in said and "Name a kind that has features: `isogloss train-aligner matching`" in said
    )


def test_reasons_are_checked_and_escaped() -> None:
    pair = {"source": ["a"], "target": ["<x>"], "links": [[0, 0]], "other": [], "names": ["one", "two"]}
    why = {"source": 0, "target": 0, "features": [["pair:a|<x>", np.float32(1.5)]], "probability": float("nan")}
    page = "".join(show.page([{**pair, "reasons": [why]}]))
    assert records(page)[0]["reasons"][0]["features"] == [["pair:a|<x>", 1.5]] and "a|<x>" not in page
    assert records(page)[0]["reasons"][0]["probability"] is None
    with pytest.raises(Exception, match="outside a pair"):
        "".join(show.page([{**pair, "reasons": [{**why, "source": 3}]}]))


BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome here")
def test_the_table_of_differences_in_a_browser(tmp_path: Path) -> None:
    same = {"source": ["u"], "target": ["v"], "links": [[0, 0]], "other": [[0, 0]], "line": 1}
    apart = {
        "source": ["a", "b"], "target": ["x", "y"], "links": [[0, 0, 0.9], [1, 0, 0.4]], "other": [[1, 1, 0.8]],
        "names": ["ours", "theirs"], "gold": {"sure": [[0, 0], [1, 1]], "possible": []}, "line": 2,
        "reasons": [{"source": 1, "target": 0, "features": [["dice", -0.5]], "probability": 0.4, "text": "so it is"}],
    }  # fmt: skip
    goal = tmp_path / "page.html"
    show.write_page([same, apart], goal)
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
    flags += f" --user-data-dir={tmp_path / 'profile'} --virtual-time-budget=3000 --window-size=1200,2000 --dump-dom"
    done = subprocess.run([str(BROWSER), *flags.split(), goal.as_uri()], capture_output=True, text=True, timeout=120)
    if done.returncode or "<html" not in done.stdout:
        pytest.skip(f"the browser did not start: {done.stderr[-200:]}")
    assert re.findall(r'<article[^>]*id="pair-(\d+)"', done.stdout) == ["2", "1"]  # most different first
    card, other = done.stdout.split('id="pair-2"')[1].split('id="pair-1"')
    rows = [re.sub(r"<[^>]*>", "|", row) for row in re.findall(r"<tr data-s.*?</tr>", card, re.DOTALL)]
    assert len(rows) == 3 and "<tr" not in other.split("<script")[0]
    assert "✓ linked 0.90, right" in rows[0] and "○ missed" in rows[0] and "|sure|" in rows[0]
    assert "✗ linked 0.40, wrong" in rows[1] and "– not linked, right" in rows[1] and "no link" in rows[1]
    assert "so it is" in rows[1] and "dice" in rows[1] and "−0.50" in rows[1]
    assert "○ missed" in rows[2] and "✓ linked 0.80, right" in rows[2]
    assert card.count('class="curve wrong"') == 1 and "differ (3)" in card


def test_help_names_the_options(isogloss: Call) -> None:
    for name in ("train-aligner", "suggest"):
        answer = isogloss(name, "--help")
        assert answer.status == 0 and answer.out.startswith(f"Usage: isogloss {name} [OPTIONS] ")
        assert "--links NAME=FILE" in answer.out and max(map(len, answer.out.splitlines())) <= 80


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from isogloss.cli import main; main(['train-aligner', '--help']); main(['suggest', '--help']); "
        "main(['view', '--help']); print([name for name in ('numpy', 'numba', 'scipy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_empty_text_is_aligned_to_nothing(isogloss: Call, place: Path, tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", "")
    answer = isogloss("align", empty, empty, "--model", place / "model")
    assert answer.status == 0 and answer.out == ""
