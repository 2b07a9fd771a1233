"""`isogloss translate` from end to end on a sample, and with input that is wrong."""

from __future__ import annotations

import itertools
import json
import mmap
import shutil

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.cli import main
from isogloss.errors import IsoglossError
from isogloss.tasks.translate import Translator

QUICK = ["--order", "3", "--iterations", "2", "--nbest", "10", "--passes", "3", "--quiet"]
REST = ("monotone", "swap")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translate")
    text = samples.bitext("en-de")
    for name, part in (("train", text[:40]), ("dev", text[40:])):
        for language, side in (("en", part.source), ("de", part.target)):
            (folder / f"{name}.{language}").write_text("".join(" ".join(row) + "\n" for row in side))
    (folder / "links").write_text("".join(f"{row}\n" for row in samples.gold("en-de")[:40]))
    given = [str(folder / name) for name in ("train.en", "train.de")]
    dev = [str(folder / name) for name in ("dev.en", "dev.de")]
    said = run(
        ["train", *given, "--dev", *dev, "--links", str(folder / "links"), "--save", str(folder / "model"), *QUICK]
    )
    assert said == 0
    return folder


def run(arguments):
    """The exit status."""
    return main(["translate", *arguments])


def lines(place):
    return (place / "dev.en").read_text().splitlines()


def test_a_translator_end_to_end(place, capsys):
    model, out = str(place / "model"), place / "out"
    assert run(["apply", model, str(place / "dev.en"), "-o", str(out), "--quiet"]) == 0
    found = Translator.load(model).predict((place / "dev.en").read_text().splitlines())
    assert out.read_text().splitlines() == found
    assert run(["score", str(out), str(place / "dev.de"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert 0 < told["bleu"] < 100 and 0 < told["chrf"] < 100
    assert run(["score", str(out), str(place / "dev.de"), "--against", str(place / "dev.de"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"]["bleu"]["delta"] < 0


def test_n_best_lists(place, capsys):
    assert (
        run(["apply", str(place / "model"), str(place / "dev.en"), "--nbest", "3", "-o", str(place / "nbest"), "-q"])
        == 0
    )
    rows = [line.split(" ||| ") for line in (place / "nbest").read_text().splitlines()]
    assert {int(row[0]) for row in rows} == set(range(10)) and len(rows) <= 30
    weights = Translator.load(place / "model").weights_
    for _, _, features, score in rows:
        pairs = zip(features.split()[::2], features.split()[1::2], strict=True)
        assert sum(weights[name.removesuffix("=")] * float(value) for name, value in pairs) == pytest.approx(
            float(score), abs=1e-3
        )
    assert run(["apply", str(place / "model"), str(place / "dev.en"), "--json", "-q"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 10 and {"text", "score", "phrases", "features"} <= lines[0].keys()
    assert run(["explain", str(place / "model"), "The old woman reads a letter ."]) == 0
    assert "->" in capsys.readouterr().out


def test_bars_in_n_best_lists(place, tmp_path):
    (tmp_path / "in").write_text("Anna ||| bought | a book\n")
    assert (
        run(["apply", str(place / "model"), str(tmp_path / "in"), "--nbest", "1", "-o", str(tmp_path / "o"), "-q"]) == 0
    )
    _, text, _, _ = (tmp_path / "o").read_text().split(" ||| ")
    assert "&#124;&#124;&#124;" in text.split() and "|" in text.split()


def test_a_text_without_phrases_is_warned_of(tmp_path, capsys):
    (tmp_path / "s").write_text("a b\n")
    (tmp_path / "t").write_text("x y\n")
    given = [str(tmp_path / name) for name in ("s", "t")]
    (tmp_path / "links").write_text("\n")
    more = ["--links", str(tmp_path / "links"), "--iterations", "0", "--save", str(tmp_path / "m"), "-q"]
    assert run(["train", *given, *more]) == 0
    assert "every word will be copied" in capsys.readouterr().err


def test_a_model_that_stays_in_its_file_translates_the_same(place):
    source = (place / "dev.en").read_text().splitlines()
    model = Translator.load(place / "model", mapped=True)
    for array in (model.table_.arrays["scores"], model.language_model_.arrays["words"]):
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert isinstance(array.base, mmap.mmap)
    assert model.predict(source) == Translator.load(place / "model").predict(source)
    assert (
        run(["apply", str(place / "model"), str(place / "dev.en"), "-o", str(place / "mapped"), "--from-disk", "-q"])
        == 0
    )
    assert (place / "mapped").read_text().splitlines() == model.predict(source)
    arrays, others = (store.read(place / "model", mapped=mapped).arrays for mapped in (False, True))
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert array.dtype == others[name].dtype and np.array_equal(array, others[name])


def test_odd_lines_keep_their_place(place):
    words = (place / "train.en").read_text().split()
    lines = ["", "qqq zzz", "   ", " ".join(words[:300]), "a | b ||| c", "\ufeffx"]
    (place / "odd").write_text("\n".join(lines) + "\n")
    assert run(["apply", str(place / "model"), str(place / "odd"), "-o", str(place / "odd.out"), "-q"]) == 0
    found = (place / "odd.out").read_text().split("\n")
    assert len(found) == len(lines) + 1 and found[0] == found[2] == "" and found[1] == "qqq zzz"
    assert len(found[3].split()) > 150


def test_very_long_lines_are_translated_in_pieces(place, monkeypatch, capsys):
    from isogloss.tasks.translate import translator

    model = Translator.load(place / "model")
    short, words = "Can you help me ?", (place / "train.en").read_text().split()[:50]
    pieces = [" ".join(words[k : k + 10]) for k in range(0, 50, 10)]
    each = model.predict([short, *pieces, short])
    monkeypatch.setattr(translator, "LONGEST", 10)
    assert model.predict([short, " ".join(words), "", short]) == [each[0], " ".join(each[1:-1]), "", each[-1]]
    with pytest.raises(IsoglossError, match="line 2: 50 words"):
        model.predict_nbest([short, " ".join(words)], 2)
    many = place / "many"
    many.write_text(f"{short}\n" * 149 + " ".join(words) + "\n")
    assert run(["apply", str(place / "model"), str(many), "--nbest", "2", "-q", "-o", str(place / "x")]) == 1
    assert "line 150: 50 words" in capsys.readouterr().err


def test_a_stopped_run_goes_on(place):
    whole, partial = place / "whole", place / "again.partial"
    assert run(["apply", str(place / "model"), str(place / "dev.en"), "-o", str(whole), "-q"]) == 0
    kept = whole.read_text().splitlines(keepends=True)
    partial.write_text("".join(["as it was\n", *kept[1:4], "cut in the mid"]))
    assert (
        run(["apply", str(place / "model"), str(place / "dev.en"), "-o", str(place / "again"), "--resume", "-q"]) == 0
    )
    assert (place / "again").read_text().splitlines(keepends=True) == ["as it was\n", *kept[1:]]
    assert not partial.exists()


def test_what_was_translated_is_kept_where_a_run_stops(place, monkeypatch, capsys):
    whole, out = place / "whole", place / "stopped"
    assert run(["apply", str(place / "model"), str(place / "dev.en"), "-o", str(whole), "-q"]) == 0
    predict = Translator.predict_parts

    def stopped(translator, parts):
        yield from itertools.islice(predict(translator, parts), 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(Translator, "predict_parts", stopped)
    assert run(["apply", str(place / "model"), str(place / "dev.en"), "-o", str(out), "-q"]) == 130
    assert "stopped.partial keeps 3 lines: run the same again with --resume" in capsys.readouterr().err
    monkeypatch.undo()
    assert run(["apply", str(place / "model"), str(place / "dev.en"), "-o", str(out), "--resume", "-q"]) == 0
    assert out.read_bytes() == whole.read_bytes()


def test_another_reordering_leaves_the_limit_of_the_model_aside(place, capsys):
    model = Translator.load(place / "model").set_params(distortion_limit=3)
    model.save(place / "limited")
    for reordering in REST:
        assert run(["apply", str(place / "limited"), str(place / "dev.en"), "--reordering", reordering, "-q"]) == 0
    told = capsys.readouterr().out
    right = [model.set_params(reordering=name, distortion_limit=6) and model.predict(lines(place)) for name in REST]
    assert told.splitlines() == [*right[0], *right[1]]


def test_sentences_that_are_known_from_the_training_text_are_told(place, capsys):
    for language in ("en", "de"):
        train, dev = (place / f"train.{language}").read_text(), (place / f"dev.{language}").read_text()
        (place / f"both.{language}").write_text(dev + "".join(train.splitlines(keepends=True)[:20]))
    given = [str(place / name) for name in ("train.en", "train.de", "both.en", "both.de")]
    assert run(["train", *given[:2], "--dev", *given[2:], "--save", str(place / "known"), *QUICK]) == 0
    assert "20 of 30 pairs to tune on stand in the training text" in capsys.readouterr().err


def test_weights_can_be_found_anew(place):
    text = samples.bitext("en-de")
    model = Translator.load(place / "model")
    before = dict(model.weights_)
    assert model.tune(text[:40]) is model
    assert model.weights_ != before and len(model.tuning_) == 2


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["train", "train.en", "dev.de", "--save", "x"], 1, "lines"),
        (["train", "train.en", "train.de", "--dev", "dev.en", "train.de", "--save", "x"], 1, "lines"),
        (["train", "train.en", "train.de", "--dev", "dev.en", "nothing", "--save", "x"], 2, "nothing"),
        (["train", "train.en", "train.de", "--links", "dev.en", "--save", "x"], 1, "line 1"),
        (["train", "dev.en", "dev.de", "--links", "links", "--save", "x"], 1, "links"),
        (["train", "train.en", "train.de", "--order", "0", "--save", "x"], 2, "order"),
        (
            ["train", "train.en", "train.de", "--distortion-limit", "3", "--reordering", "swap", "--save", "x"],
            2,
            "distortion",
        ),
        (["train", "empty", "empty", "--save", "x"], 1, "no sentence pair"),
        (["train", "train.en", "train.de", "--dev", "blank", "blank", "--save", "x"], 1, "tune on"),
        (["train", "train.en", "train.de", "--dev", "train.en", "train.de", "--save", "x"], 1, "40 of 40 pairs"),
        (["train", "one.en", "one.de", "--save", "x"], 1, "none can be held out"),
        (["train", "train.en", "train.de", "--columns", "0,1", "--save", "x"], 2, "--columns and --languages are for"),
        (
            ["train", "train.en", "train.de", "--features", "pos", "--tags", "t", "t", "--classes", "3", "--save", "x"],
            2,
            "--classes says nothing with --tags",
        ),
        (["apply", "nothing", "dev.en"], 2, "nothing"),
        (["apply", "model", "nothing"], 2, "nothing"),
        (["apply", "model", "dev.en", "--nbest", "0"], 2, "nbest"),
        (["apply", "model", "dev.en", "--resume"], 2, "--resume"),
        (["apply", "damaged", "dev.en"], 1, "damaged"),
        (["apply", "swapping", "dev.en", "--distortion-limit", "3"], 2, "distortion_limit says nothing"),
        (["score", "dev.en", "train.de"], 1, "lines"),
        (["score", "empty", "empty"], 1, "no sentence to score against"),
        (["score", "blank", "blank"], 1, "no sentence to score against"),
        (["explain", "model", ""], 2, "no sentence"),
        (["explain", "model", "  "], 2, "no sentence"),
    ],
)
def test_what_is_wrong_is_said(place, monkeypatch, capsys, arguments, status, words):
    monkeypatch.chdir(place)
    (place / "empty").write_text("")
    (place / "blank").write_text("\n\n")
    for language in ("en", "de"):
        (place / f"one.{language}").write_text((place / f"train.{language}").read_text().split("\n")[0] + "\n")
    if arguments[1] == "swapping" and not (place / "swapping").exists():
        Translator.load(place / "model").set_params(reordering="swap").save(place / "swapping")
    if not (place / "damaged").exists():
        shutil.copytree(place / "model", place / "damaged")
        file = place / "damaged" / "model.safetensors"
        file.write_bytes(file.read_bytes()[:-100])
    assert run([*arguments, *(QUICK if arguments[0] == "train" and "--order" not in arguments else [])]) == status
    said = capsys.readouterr().err
    assert words in said and "Traceback" not in said
    assert not (place / "x").exists()


def test_every_damaged_model_is_refused_when_it_stays_in_its_file(place):
    file = place / "model" / "model.safetensors"
    whole = file.read_bytes()
    try:
        for damaged in (whole[:-1], whole[:8], b"", b"\xff" * 100, whole[:-3] + b"abc"):
            file.write_bytes(damaged)
            with pytest.raises(IsoglossError, match="model"):
                Translator.load(place / "model", mapped=True)
    finally:
        file.write_bytes(whole)
