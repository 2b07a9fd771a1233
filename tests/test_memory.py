"""What models remember of the text they learnt from: how it was read, and its languages."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Call
from isogloss import samples, store
from isogloss.data import Bitext, Text, Treebank, Vocabulary
from isogloss.data.formats import IsoglossWarning
from isogloss.data.reading import FrequentWords, Reading, TextForm
from isogloss.data.tokenise import tokenise_text
from isogloss.errors import ModelError
from isogloss.tasks.align import HMMAligner, MatchingAligner, Model1Aligner, Model2Aligner
from isogloss.tasks.align._doctor_sides import raw_findings
from isogloss.tasks.align.languages import KnownWords, homes_of
from isogloss.tasks.tag import CrfTagger, Tagger


@pytest.fixture
def raw(tmp_path: Path) -> tuple[Path, Path]:
    """A sample whose punctuation clings to its words, as people write."""
    bitext = samples.bitext("en-de")
    for name, side in (("raw.en", bitext.source), ("raw.de", bitext.target)):
        lines = [" ".join(side.tokens(k)).replace(" .", ".").replace(" ,", ",").replace(" ?", "?") for k in range(50)]
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return tmp_path / "raw.en", tmp_path / "raw.de"


@pytest.fixture
def model(raw: tuple[Path, Path], tmp_path: Path) -> Path:
    """An aligner of the sample, read with a tokeniser and normalised."""
    HMMAligner(threads=1).fit(Bitext.read(*raw, tokenise="unicode", normalise="NFC")).save(tmp_path / "model")
    return tmp_path / "model"


# How text was read ---------------------------------------------------------------------------------------------------


def test_texts_know_how_they_were_read(raw: tuple[Path, Path]) -> None:
    bitext = Bitext.read(*raw, tokenise="unicode", normalise="NFKC")
    form = TextForm("unicode", "NFKC")
    assert bitext.source.form == form and bitext.part(3, 5).target.form == form and bitext.swapped().source.form == form
    assert Treebank.from_text(bitext.source).part(0, 2).form == form
    assert Bitext.of([("a", "b")]).source.form is None
    assert Reading.of(bitext.source, bitext.target) == Reading(("raw.en", "raw.de"), (form, form))
    assert Reading.of(Bitext.of([("a", "b")]).source) is None


@pytest.mark.parametrize("kind", [HMMAligner, Model1Aligner, Model2Aligner])
def test_an_aligner_remembers(kind: Any, raw: tuple[Path, Path], tmp_path: Path) -> None:
    aligner = kind(threads=1).fit(Bitext.read(*raw, tokenise="unicode"))
    aligner.save(tmp_path / "m")
    for one in (aligner, kind.load(tmp_path / "m")):
        assert one.reading_.names == ("raw.en", "raw.de")
        assert one.reading_.options == {"tokenise": "unicode", "normalise": None}


def test_a_supervised_aligner_remembers(raw: tuple[Path, Path], tmp_path: Path) -> None:
    bitext = Bitext.read(*raw, tokenise="unicode")
    links = HMMAligner(threads=1).fit_predict(bitext)
    aligner = MatchingAligner(features=("association", "position"), tune=False, threads=1).fit(bitext, links)
    aligner.save(tmp_path / "m")
    loaded = MatchingAligner.load(tmp_path / "m")
    assert loaded.reading_ == aligner.reading_ == Reading.of(bitext.source, bitext.target)
    with pytest.warns(IsoglossWarning, match="tokenise='space'"):
        loaded.predict(Bitext.read(*raw))
    with pytest.warns(IsoglossWarning, match="look swapped"):
        loaded.predict(bitext.swapped())


def test_text_read_in_another_way_is_warned_of(raw: tuple[Path, Path], model: Path) -> None:
    aligner = HMMAligner.load(model)
    with pytest.warns(IsoglossWarning, match="tokenise='space', normalise=None, but .* tokenise='unicode'"):
        aligner.predict(Bitext.read(*raw))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aligner.predict(Bitext.read(*raw, **aligner.reading_.options))  # type: ignore[union-attr]
        aligner.predict(Bitext.of([("the house", "das Haus")]))  # nobody knows how that was made
        links = aligner.predict((str(raw[0]), raw[1]))  # files are read as those of the training were
    assert links.bitext is not None and links.bitext.source.form == TextForm("unicode", "NFC")


def test_older_models_say_nothing(raw: tuple[Path, Path], model: Path) -> None:
    saved = store.read(model)
    meta = {name: value for name, value in saved.meta.items() if name != "reading"}
    store.save(model, kind=saved.kind, options=saved.options, arrays=saved.arrays, meta=meta)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = HMMAligner.load(model)
        loaded.predict(Bitext.read(*raw))
    assert loaded.reading_ is None


@pytest.mark.parametrize("wrong", [[], {"names": ["a"]}, {"names": ["a"], "forms": [{"tokenize": "x"}]}])
def test_a_damaged_memory_is_refused(wrong: Any) -> None:
    with pytest.raises(ModelError, match="train it again"):
        Reading.from_meta({"reading": wrong})


# On the command line -------------------------------------------------------------------------------------------------


def test_align_reads_as_the_model_did(isogloss: Call, raw: tuple[Path, Path], model: Path, tmp_path: Path) -> None:
    expected = HMMAligner.load(model).predict(Bitext.read(*raw, tokenise="unicode", normalise="NFC"))
    answer = isogloss("align", *raw, "--model", model, "--quiet")
    assert answer == (0, "".join(f"{row}\n" for row in expected), "")
    assert isogloss("align", *raw, "--model", model, "-q", "--tokenise", "unicode") == answer
    refused = isogloss("align", *raw, "--model", model, "--tokenise", "space")
    assert refused.status == 2 and "--tokenise unicode" in refused.err and "Leave --tokenise out" in refused.err
    assert isogloss("align", *raw, "--model", model, "--normalise", "NFD").status == 2


@pytest.mark.parametrize("command", ["filter", "suggest", "transfer-markup"])
def test_other_commands_read_as_the_model_did(
    isogloss: Call, command: str, raw: tuple[Path, Path], model: Path, tmp_path: Path
) -> None:
    more = {"filter": ["--scores", tmp_path / "scores"], "suggest": ["--text"]}.get(command, [])
    usual = isogloss(command, *raw, "--model", model, "-q", *more)
    assert usual.status == 0 and usual.err == ""
    assert isogloss(command, *raw, "--model", model, "-q", *more, "--tokenise", "unicode") == usual
    refused = isogloss(command, *raw, "--model", model, *more, "--tokenise", "characters")
    assert refused.status == 2 and "--tokenise unicode" in refused.err
    swapped = isogloss(command, *reversed(raw), "--model", model, *more)
    assert swapped.status == 1 and "look swapped" in swapped.err


def test_languages_of_tmx_are_those_of_the_model(isogloss: Call, tmp_path: Path) -> None:
    bitext = samples.bitext("en-de")
    units = [
        "<tu>"
        + "".join(f'<tuv xml:lang="{code}"><seg>{" ".join(side.tokens(k))}</seg></tuv>' for code, side in sides)
        + "</tu>"
        for sides in [[("de", bitext.target), ("en", bitext.source)]]
        for k in range(50)
    ]
    tmx = tmp_path / "memory.tmx"
    tmx.write_text(f'<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>', encoding="utf-8")
    asked = "--languages", "en,de"
    assert isogloss("align", tmx, *asked, "--save", tmp_path / "m", "-o", tmp_path / "links", "-q").status == 0
    answer = isogloss("align", tmx, "--model", tmp_path / "m", "-q")
    assert answer.status == 0 and answer == isogloss("align", tmx, "--model", tmp_path / "m", "-q", *asked)
    refused = isogloss("align", tmx, "--model", tmp_path / "m", "--languages", "de,en")
    assert refused.status == 2 and "--languages en,de" in refused.err


# Swapped, and strange ------------------------------------------------------------------------------------------------


def test_swapped_sides_are_refused(isogloss: Call, raw: tuple[Path, Path], model: Path) -> None:
    answer = isogloss("align", *reversed(raw), "--model", model)
    assert answer.status == 1 and answer.out == ""
    assert "look swapped" in answer.err and "raw.en and raw.de" in answer.err and "other order" in answer.err
    aligner, bitext = HMMAligner.load(model), Bitext.read(*raw, tokenise="unicode", normalise="NFC")
    with pytest.warns(IsoglossWarning, match="look swapped"):
        aligner.predict(bitext.swapped())


def test_a_stream_of_single_lines_is_judged_as_a_whole(isogloss: Call, raw: tuple[Path, Path], model: Path) -> None:
    answer = isogloss("align", *reversed(raw), "--model", model, "--chunk", 1)
    assert answer.status == 1 and "look swapped" in answer.err


@pytest.mark.parametrize("text", samples.names())
def test_no_part_of_a_text_in_order_looks_swapped(text: str) -> None:
    bitext = samples.bitext(text)
    half = HMMAligner(threads=1).fit(bitext.part(0, 25))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1, 3, 25):
            for start in range(25, 50, size):
                half.predict(bitext.part(start, start + size))


def test_what_both_sides_share_is_at_home_on_neither() -> None:
    class Known:
        known_words_ = (
            KnownWords(Vocabulary(["anna", "the"]), np.array([10, 90])),
            KnownWords(Vocabulary(["anna", "das"]), np.array([10, 90])),
        )

    assert homes_of(Known(), {"anna": 500}, {"anna": 500}).swapped is None  # the same text twice
    assert homes_of(Known(), {"das": 500}, {"das": 500}).swapped is None  # only one side speaks for it
    assert homes_of(Known(), {"das": 9}, {"the": 9}).swapped is None  # too few words
    assert homes_of(Known(), {"das": 50}, {"the": 50}).swapped is not None


def test_another_language_is_said(isogloss: Call, raw: tuple[Path, Path], model: Path, tmp_path: Path) -> None:
    turkish = tmp_path / "raw.tr"
    text = samples.bitext("en-tr").target
    turkish.write_text("".join(" ".join(text.tokens(k)) + "\n" for k in range(50)), encoding="utf-8")
    answer = isogloss("align", raw[0], turkish, "--model", model, "-q", "-o", tmp_path / "links")
    assert answer.status == 0 and answer.err.count("\n") == 1
    assert "raw.tr: only" in answer.err and "is it of the same language?" in answer.err


def test_frequent_words_of_few_words_say_nothing() -> None:
    known = FrequentWords.of({"the": 50, "of": 50})
    assert known.share == 1.0
    assert known.finding({"der": 10}) is None
    assert known.finding({"der": 100, "the": 10}) is not None
    assert known.finding({"der": 60, "the": 40}) is None


# Taggers and parsers -------------------------------------------------------------------------------------------------


def test_a_tagger_remembers_its_text(tmp_path: Path) -> None:
    trees = Treebank.read(samples.path("en-de", "source-trees"))
    tagger = CrfTagger(iterations=1, threads=1).fit(trees)
    tagger.save(tmp_path / "m")
    loaded = Tagger.load(tmp_path / "m")
    assert loaded.reading_ == tagger.reading_ and loaded.reading_ is not None
    assert loaded.reading_.frequent is not None and "the" in loaded.reading_.frequent.words
    header = json.loads((tmp_path / "m" / "model.json").read_text())
    assert header["meta"]["reading"]["names"] == [Path(trees.name).name]


def test_a_tagger_of_plain_text_warns_of_text_read_otherwise() -> None:
    text = tokenise_text(["the house !"] * 5, "space", name="a.txt")
    trees = Treebank.from_text(Text(text.ids, text.vocabulary, "a.txt", form=TextForm("space")))
    tagger = CrfTagger(iterations=1, threads=1).fit(trees.with_columns(upos=["DET", "NOUN", "PUNCT"] * 5))
    other = Text(text.ids, text.vocabulary, "b.txt", form=TextForm("unicode"))
    with pytest.warns(IsoglossWarning, match="b.txt was read with tokenise='unicode'"):
        tagger.predict(other)


def test_a_parser_tokenises_and_knows_its_language(isogloss: Call, tmp_path: Path) -> None:
    train = samples.path("en-de", "source-trees")
    quick = "--order", 1, "--iterations", 1, "--tags", "predicted", "--quiet"
    assert isogloss("parse", "train", train, "--save", tmp_path / "m", *quick).status == 0
    (tmp_path / "raw.txt").write_text("The house is old.\n")
    answer = isogloss("parse", "apply", tmp_path / "m", tmp_path / "raw.txt", "--tokenise", "unicode", "-q")
    lines = answer.out.splitlines()
    assert answer.err == "" and lines[1:3] == ["# sent_id = 1", "# text = The house is old."]
    assert lines[6].startswith("4\told\t") and lines[6].endswith("SpaceAfter=No")
    answer = isogloss("parse", "apply", tmp_path / "m", samples.path("en-de", "target"), "-q")
    assert answer.status == 0 and "is it of the same language?" in answer.err


# Raw text ------------------------------------------------------------------------------------------------------------


def test_raw_text_is_said_before_training(isogloss: Call, raw: tuple[Path, Path], tmp_path: Path) -> None:
    answer = isogloss("align", *raw, "-o", tmp_path / "links", "-q")
    assert answer.status == 0 and answer.err.count("\n") == 1
    assert all(name.name in answer.err for name in raw) and "--tokenise unicode" in answer.err
    in_parts = isogloss("align", *raw, "-o", tmp_path / "links", "-q", "--chunk", 30)
    assert in_parts.status == 0 and in_parts.err.count("does not look tokenised") == 2  # each side, once
    assert isogloss("align", *raw, "-o", tmp_path / "links", "-q", "--tokenise", "unicode").err == ""


def test_raw_text_is_said_when_a_model_is_applied(isogloss: Call, raw: tuple[Path, Path], tmp_path: Path) -> None:
    sample = [samples.path("en-de", side) for side in ("source", "target")]
    assert isogloss("align", *sample, "-q", "--save", tmp_path / "m", "-o", tmp_path / "links").err == ""
    answer = isogloss("align", *raw, "--model", tmp_path / "m", "-q", "-o", tmp_path / "links")
    assert answer.err.count("\n") == 1 and "as the text that the model learnt from was" in answer.err
    assert isogloss("align", *sample, "--model", tmp_path / "m", "-q", "-o", tmp_path / "links").err == ""


def test_raw_text_is_said_by_train_aligner(isogloss: Call, raw: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0\n" * 10)
    quick = "--features", "association", "--no-tune", "-q", "--save", tmp_path / "m"
    answer = isogloss("train-aligner", "matching", *raw, tmp_path / "gold", *quick)
    assert answer.status == 0 and "does not look tokenised" in answer.err.splitlines()[0]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{} said: no, it is {}.", ["untokenised"]),
        ("{} said : no , it is {} .", []),
        ("Mr. {} and Mrs. {}", []),
        ("l&apos; homme &quot; {} &quot; , d&apos; {} .", []),  # a tokeniser wrote these
        ("<b>Open</b> the {} {}", ["markup"]),
        ("Save {} &amp; close {}", ["markup"]),
        ('click <g id="1">here</g> {} {}', ["markup"]),
        ("<unk> {} , <s> {}", []),
        ("我们昨天去了{}北京的公园看花，{}非常漂亮。", ["unsegmented"]),
        ("我们 昨天 去 了 {} 公园 看 花 ， {} 漂亮 。", []),
        ("私は昨日{}公園に行きました。{}", ["unsegmented"]),
        ("เมื่อวานนี้เราไปสวนสาธารณะ{}กรุงเทพ{}", ["unsegmented"]),
        ("ذهبت {} إلى البيت، ثم عدت {}؟", ["untokenised"]),
        ("वह {} घर गया।  फिर {}।", ["untokenised"]),
    ],
)
def test_what_looks_raw(line: str, code: list[str]) -> None:
    letters = {"北": "一二三四五六七八九十", "私": "あいうえおかきくけこ", "昨": "一二三四五六七八九十"}
    own = next((found for script, found in letters.items() if script in line), "abcdefghij")
    text = Text.of([line.format(a * 3, b * 4) for a in own for b in own[::2]])
    assert [finding.code for finding in raw_findings(text, "source")] == code
