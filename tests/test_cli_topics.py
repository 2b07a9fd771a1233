"""`isogloss topics`: every command as a new user would call it, with bad input too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Documents

LANGUAGES = ("en", "de", "fr")
FILES = [f"parliament.{name}.txt" for name in LANGUAGES]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    said = capsys.readouterr()
    return status, said.out, " ".join(said.err.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, its last documents apart, and a model of the others."""
    place = tmp_path_factory.mktemp("topics")
    samples.write("parliament", place)
    for name in LANGUAGES:
        lines = (place / f"parliament.{name}.txt").read_text().splitlines(keepends=True)
        (place / f"train.{name}.txt").write_text("".join(lines[:75]))
        (place / f"new.{name}.txt").write_text("".join(lines[75:]))
    train = [str(place / f"train.{name}.txt") for name in LANGUAGES]
    options = ["--topics", "8", "--iterations", "200", "--max-share", "0.3"]
    assert main(["topics", "train", *train, *options, "--save", str(place / "model"), "-q"]) == 0
    return place


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_training_says_what_it_has_learnt(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, said = call(
        capsys, "topics", "train", *FILES, "--topics", "3", "--iterations", "10", "--save", "small", "--json"
    )
    found = json.loads(out)
    assert status == 0 and found["languages"] == ["en", "de", "fr"] and found["documents"] == 90
    assert found["topics"] == 3 and found["log_likelihood_a_word"] < 0
    assert "3 topics of 90 documents" in said and "log-likelihood" in said and "saved in small" in said


def test_a_line_a_document_and_a_number_a_topic(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, said = call(capsys, "topics", "apply", "model", "--language", "fr", "new.fr.txt", "-o", "out.tsv")
    rows = [list(map(float, line.split("\t"))) for line in Path("out.tsv").read_text().splitlines()]
    assert status == 0 and len(rows) == 15 and {len(row) for row in rows} == {8} and "15 documents" in said
    assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in rows)
    assert call(capsys, "topics", "apply", "model", "new.fr.txt", "-q")[1] == Path("out.tsv").read_text()


def test_translations_find_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["topics", "match", "model", "--source", "en", "new.en.txt", "--target", "fr", "new.fr.txt"]
    status, out, _ = call(capsys, *given, "--json")
    found = json.loads(out)
    assert status == 0 and found["top1"] >= 60 and found["top5"] <= found["top20"] <= 100 and "distance:js" in out
    assert "TOP1 = " in call(capsys, *given)[1]


def test_a_lexicon_helps(capsys: pytest.CaptureFixture[str]) -> None:
    whole = Documents.read("train.en.txt", "train.fr.txt")
    for number, name in enumerate(("en", "fr")):  # every line that is in both, cut into sentences
        rows = [whole.texts[number].tokens(k) for k in range(len(whole)) if whole.present[k].all()]
        Path(f"s.{name}").write_text("".join(" ".join(row).replace(" . ", " .\n") + "\n" for row in rows))
    assert call(capsys, "align", "s.en", "s.fr", "--save", "links", "-o", "links.txt", "-q")[0] == 0
    assert call(capsys, "lexicon", "links", "-o", "en-fr.tsv", "-q")[0] == 0
    given = ["topics", "match", "model", "new.en.txt", "new.fr.txt", "--lexicon", "en-fr.tsv"]
    found = json.loads(call(capsys, *given, "--json")[1])
    assert found["top1"] >= found["topics_alone"]["top1"] and found["lexicon_alone"]["top1"] > 50
    assert "js+lexicon|weight:0.5" in found["signature"]
    only = json.loads(call(capsys, *given, "--weight", "0", "--json")[1])
    assert only["top1"] == only["topics_alone"]["top1"]
    assert "lexicon alone: TOP1" in call(capsys, *given)[1]
    assert "--weight is that of --lexicon" in call(capsys, *given[:-2], "--weight", "0.3")[2]
    Path("bad.tsv").write_text("one\n")
    assert "bad.tsv, line 1" in call(capsys, *given[:-1], "bad.tsv")[2]
    for name, lines in (("en", slice(0, 40)), ("fr", slice(40, 75))):  # no document in both
        Path(f"apart.{name}").write_text("\n".join(Path(f"train.{name}.txt").read_text().splitlines()[lines]) + "\n")
    train = ["topics", "train", "apart.en", "apart.fr", "--apart", "--topics", "8", "--iterations", "150", "-q"]
    ranks = []
    for more in ([], ["--lexicon", "en-fr.tsv"], ["--lexicon", "en,fr=en-fr.tsv"]):
        assert call(capsys, *train, "--max-share", "0.3", *more, "--save", "apart")[0] == 0
        ranks.append(json.loads(call(capsys, *given[:2], "apart", *given[3:5], "--json")[1])["top5"])
    assert ranks[1] == ranks[2] > ranks[0]


def test_words_as_a_table_as_json_and_as_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "topics", "words", "model", "-n", "4")
    rows = [line.split("\t") for line in out.splitlines()]
    assert status == 0 and len(rows) == 24 and [row[2] for row in rows[:3]] == ["en", "de", "fr"]
    assert all(len(row[3].split()) <= 4 for row in rows)
    found = json.loads(call(capsys, "topics", "words", "model", "--json")[1])["topics"]
    assert len(found) == 8 and set(found[0]["words"]) == set(LANGUAGES)
    status, _, said = call(
        capsys, "topics", "words", "model", *FILES, "--dates", "parliament.dates.txt", "-o", "page.html"
    )
    page = Path("page.html").read_text()
    assert status == 0 and page.count("<section") == 8 and page.count("<svg") == 8 and "<details>" in page
    assert "lang='fr'" in page and "2005" in page and "http" not in page and "page.html: 8 topics" in said
    assert (
        call(capsys, "topics", "words", "model", "-o", "bare.html")[0] == 0
        and "<svg" not in Path("bare.html").read_text()
    )


def test_scores(capsys: pytest.CaptureFixture[str]) -> None:
    new = [f"new.{name}.txt" for name in LANGUAGES]
    status, out, _ = call(capsys, "topics", "score", "model", *new, "--json")
    found = json.loads(out)
    assert status == 0 and set(found["held_out"]) == {*LANGUAGES, "together"}
    assert all(one["nats_per_word"] < 0 for one in found["held_out"].values())
    assert -1 <= found["coherence"]["cnpmi"] <= 1 and set(found["coherence"]["across"]) == {"en-de", "en-fr", "de-fr"}
    text = call(capsys, "topics", "score", "model", "new.en.txt", "--runs", "2", "--no-resample")[1]
    assert text.startswith("en\t-") and "NPMI" in text and "CNPMI" not in text


def test_formats_of_files(capsys: pytest.CaptureFixture[str]) -> None:
    for name in LANGUAGES[:2]:
        lines = Path(f"parliament.{name}.txt").read_text().splitlines()
        Path(f"mallet.{name}.txt").write_text("".join(f"s{k}\tx\t{line}\n" for k, line in enumerate(lines)))
        Path(f"in-{name}").mkdir()
        for k, line in enumerate(lines):
            if line:
                Path(f"in-{name}/s{k:02}.txt").write_text(line.replace(" . ", " .\n"))
    whole = Documents.read(*FILES[:2])
    named = Documents.read("mallet.en.txt", "mallet.de.txt", format="mallet")
    folders = Documents.read("in-en", "in-de", languages=["en", "de"])
    assert len(named) == len(folders) == 90 and named.n_words == folders.n_words == whole.n_words
    assert sorted(str(folders[k].words) for k in range(90)) == sorted(str(whole[k].words) for k in range(90))
    assert named[5].words == whole[5].words and named.id_of(5) == "s5"
    options = ["--topics", "2", "--iterations", "5", "--save", "other"]
    assert call(capsys, "topics", "train", "mallet.en.txt", "--format", "mallet", *options)[0] == 0
    assert call(capsys, "topics", "train", "in-en", "in-de", "--languages", "en,de", *options)[0] == 0


def test_words_are_made_as_in_training(capsys: pytest.CaptureFixture[str]) -> None:
    Path("raw.en.txt").write_text("The sea, the ship.\nA ship; the sea!\nA tree, a leaf.\nThe leaf-tree, leaf.\n" * 2)
    options = ["--topics", "2", "--iterations", "20", "--max-share", "1", "--save", "raw"]
    assert call(capsys, "topics", "train", "raw.en.txt", "--tokenise", "unicode", *options)[0] == 0
    assert "sea" in call(capsys, "topics", "words", "raw")[1]
    Path("one.txt").write_text("sea,ship\n")
    status, out, said = call(capsys, "topics", "apply", "raw", "one.txt")
    assert status == 0 and "1 of them not in the model" in said and max(map(float, out.split())) > 0.6


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["train", "new.en.txt", "train.fr.txt", "--save", "x"], 1, "Was a line lost or joined?"),
        (["train", "new.en.txt", "new.en.txt", "--save", "x"], 1, "a language is named twice"),
        (["train", "missing.txt", "--save", "x"], 2, "missing.txt"),
        (["train", "new.en.txt", "--topics", "0", "--save", "x"], 2, "'0' should be an integer from 1"),
        (["train", "new.en.txt", "--languages", "en,fr", "--save", "x"], 2, "names 2 languages, but there are 1 files"),
        (["train", "empty.txt", "--save", "x"], 1, "there are no words"),
        (["train", "bad.txt", "--format", "mallet", "--save", "x"], 1, "line 2: 'lonely' is not `name label text`"),
        (["train", "twice.txt", "--format", "mallet", "--save", "x"], 1, "line 2: the name 'a' is there already"),
        (["apply", "model", "--language", "es", "new.fr.txt"], 2, "there is no language 'es' in this model"),
        (["apply", "model", "empty.txt"], 2, "there is no language 'empty' in this model; there is en, de, fr"),
        (["apply", "nowhere", "new.fr.txt"], 2, "there is no such saved model"),
        (["match", "model", "new.en.txt", "train.fr.txt"], 2, "15 lines"),
        (["match", "model", "new.en.txt", "train.en.txt"], 2, "75"),
        (["match", "model", "new.en.txt", "new.en.txt"], 2, "both of the language 'en'"),
        (["words", "model", "new.en.txt"], 2, "FILES are shown on a page alone"),
        (["words", "model", "--dates", "dates.txt", "-o", "p.html"], 2, "--dates are those of FILES"),
        (["words", "model", "new.en.txt", "--dates", "dates.txt", "-o", "p.html"], 1, "has 2 dates, but there are 15"),
        (["words", "model", "two.en.txt", "--dates", "dates.txt", "-o", "p.html"], 1, "line 2: 'soon' is not a date"),
        (["score", "model", "twice.txt"], 2, "no language 'twice'"),
        (["train", "in.pieces", "new.en.txt", "--format", "folder", "--save", "x"], 2, "is no folder"),
        (["train", "in.pieces", "--save", "x"], 1, "there are no files in this folder"),
        (["train", "new.en.txt", "--apart", "--save", "x"], 2, "--apart is for several files"),
        (["train", *FILES, "--lexicon", "w.tsv", "--save", "x"], 2, "there are 3 languages. Say which it translates"),
        (["train", *FILES, "--lexicon", "en,es=w.tsv", "--save", "x"], 2, "should name two of the languages"),
        (["train", *FILES, "--lexicon", "en,fr=missing.tsv", "--save", "x"], 2, "missing.tsv"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, words: str
) -> None:
    Path("empty.txt").write_text("\n\n")
    Path("bad.txt").write_text("a x some text\nlonely\n")
    Path("twice.txt").write_text("a x some text\na x other\n")
    Path("dates.txt").write_text("2011-03\nsoon\n")
    Path("two.en.txt").write_text("one\ntwo\n")
    Path("in.pieces").mkdir(exist_ok=True)
    found, _, said = call(capsys, "topics", *arguments)
    assert (found, words in said) == (status, True), said
    assert "Traceback" not in said


def test_empty_lines_are_missing_documents(capsys: pytest.CaptureFixture[str]) -> None:
    Path("gap.en.txt").write_text("carbon coal\n\ncod fishermen\n")
    status, out, _ = call(capsys, "topics", "apply", "model", "gap.en.txt")
    assert status == 0 and len(out.splitlines()) == 3
    Path("gap.fr.txt").write_text("\ncarbone\npêcheurs cabillaud\n")
    found = json.loads(call(capsys, "topics", "match", "model", "gap.en.txt", "gap.fr.txt", "--json")[1])
    assert found["n"] == found["candidates"] == 1


def test_json_lines_name_their_languages(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [(f"d{k}", name, text) for k in range(8) for name, text in (("en", "red fish ship"), ("de", "roter Fisch"))]
    docs, model, out = tmp_path / "docs.jsonl", str(tmp_path / "model"), tmp_path / "out.tsv"
    docs.write_text("".join(json.dumps({"id": i, "language": name, "text": t}) + "\n" for i, name, t in rows))
    few = ["--topics", "2", "--iterations", "2", "--min-documents", "1", "--max-share", "1", "--drop-frequent", "0"]
    assert main(["topics", "train", str(docs), *few, "--save", model, "-q"]) == 0
    assert main(["topics", "apply", model, "--language", "de", str(docs), "-o", str(out), "-q"]) == 0
    assert len(out.read_text().splitlines()) == 8
    assert main(["topics", "score", model, str(docs), "-q"]) == 0
    assert main(["topics", "apply", model, str(docs), "-q"]) == 2
    assert "is in en, de. Say which of them is meant" in capfd.readouterr().err
    assert main(["topics", "train", str(docs), str(docs), *few, "--save", model + "2", "-q"]) == 2
    assert "JSON lines have all languages and dates in one file" in capfd.readouterr().err
