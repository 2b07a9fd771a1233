"""`isogloss tag train` without a treebank of its own: dictionaries, links, neighbours, new domains."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from isogloss import cli
from isogloss.data.treebank import Treebank

WORDS = {
    "DET": {"the": "der", "a": "ein", "no": "kein"},
    "NOUN": {"dog": "Hund", "man": "Mann", "day": "Tag", "ball": "Ball"},
    "VERB": {"sleeps": "schläft", "comes": "kommt", "falls": "fällt"},
}
WAYS = list(product(*(table.items() for table in WORDS.values())))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ways")
    lines = ["", *(" ".join(word for word, _ in way) for way in WAYS)]
    (folder / "text.en").write_text("\n".join(lines) + "\n")
    (folder / "text.de").write_text("\n".join(["", *(" ".join(word for _, word in way) for way in WAYS)]) + "\n")
    tagged = [[(word, tag) for (word, _), tag in zip(way, WORDS, strict=True)] for way in WAYS]
    Treebank.of(tagged).write(folder / "text.en.conllu")
    Treebank.of(tagged[:6]).write(folder / "few.conllu")
    pairs = [f"{word}\t{tag}\n" for tag, table in WORDS.items() for word in table.values()]
    (folder / "words.tsv").write_text("".join(pairs) + "Tag\tVERB\n")
    (folder / "links").write_text("\n" + "0-0 1-1 2-2\n" * len(WAYS))
    return folder


def trained(files: Path, model: Path, *arguments: str, ok: int = 0) -> Path:
    named = [str(files / a) if (files / a).exists() else a for a in arguments]
    assert cli.main(["tag", "train", *named, "--save", str(model), "-q"]) == ok
    return model


def tags(files: Path, model: Path, text: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    (model.parent / "in.txt").write_text(text + "\n")
    capsys.readouterr()
    assert cli.main(["tag", "apply", str(model), str(model.parent / "in.txt"), "-q", "--confidence"]) == 0
    return [line.split("\t")[3] for line in capsys.readouterr().out.splitlines() if "\t" in line]


def test_from_a_dictionary(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = trained(files, tmp_path / "m", "text.de", "--dictionary", "words.tsv", "--iterations", "10")
    assert tags(files, model, "kein Ball kommt", capsys) == ["DET", "NOUN", "VERB"]


@pytest.mark.parametrize(
    "more", [[], ["--links", "links"], ["--dictionary", "words.tsv"], ["--learner", "hmm", "--soft"]]
)
def test_along_links(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    along = ["--bitext", "text.en", "text.de", "--source-tags", "text.en.conllu"]
    more = more if "--soft" in more else ["--threshold", "0.5", *more]
    model = trained(files, tmp_path / "m", *along, *more, "--json")
    summary = json.loads(capsys.readouterr().out)
    assert summary["evidence"]["words"] == 3 * len(WAYS) and summary["labels"] == (12 if "words.tsv" in more else 3)
    assert tags(files, model, "kein Ball kommt", capsys) == ["DET", "NOUN", "VERB"]


def test_from_few_sentences_and_neighbours(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = trained(files, tmp_path / "m", "few.conllu", "--graph", "--unlabelled", "text.en", "--iterations", "3")
    assert tags(files, model, "no ball comes", capsys) == ["DET", "NOUN", "VERB"]


def test_for_another_domain(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = (files / "text.en").read_text() * 3
    (tmp_path / "new.txt").write_text(more.replace("ball", "gene").replace("falls", "binds"))
    (tmp_path / "old.txt").write_text(more)
    here = ["--adapt", str(tmp_path / "new.txt"), "--unlabelled", str(tmp_path / "old.txt")]
    model = trained(files, tmp_path / "m", "text.en.conllu", *here)
    assert tags(files, model, "no gene comes", capsys) == ["DET", "NOUN", "VERB"]
    trained(files, tmp_path / "n", "few.conllu", "--adapt", "few.conllu", ok=1)
    assert "no word occurs more than 20 times" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "what to learn from?"),
        (["--dictionary", "words.tsv"], "needs a text"),
        (["--bitext", "text.en", "text.de"], "needs --source-tags"),
        (["--source-tags", "text.en.conllu"], "needs --bitext"),
        (["few.conllu", "--graph"], "needs --unlabelled"),
        (["few.conllu", "--unlabelled", "text.en"], "--unlabelled is for"),
        (["text.de", "--dictionary", "words.tsv", "--l1", "1"], "--l1 has no meaning with --dictionary"),
        (["text.de", "--dictionary", "words.tsv", "--dev", "few.conllu"], "--dev has no meaning with --dictionary"),
        (["text.de", "--dictionary", "words.tsv", "--graph"], "two ways"),
        (["text.de", "--dictionary", "words.tsv", "--column", "upos,feats"], "one column"),
        (["--bitext", "text.en", "--source-tags", "text.en.conllu"], "--bitext needs two files"),
        (["few.conllu", "--soft"], "--soft has no meaning when learning from tags"),
        (["few.conllu", "--iterations", "0"], "--iterations should be an integer from 1"),
        (
            ["--bitext", "text.en", "text.de", "--source-tags", "text.en.conllu", "--l2", "0"],
            "number above 0 with --bitext",
        ),
    ],
)
def test_what_does_not_go_together(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    trained(files, tmp_path / "m", *arguments, ok=2)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.fixture
def odd(files: Path, tmp_path: Path) -> Path:
    """A folder with files that hold nothing, or something else than is wanted."""
    (tmp_path / "blank.txt").write_text("\n\n")
    Treebank.of([[("no", "_"), ("tags", "_")]]).write(tmp_path / "untagged.conllu")
    (tmp_path / "other.tsv").write_text("talo\tNOUN\nkoira\tNOUN\n")
    labels = [[(word, f"{word}{i}") for word in ("a", "b", "c")] for i in range(20)]
    Treebank.of(labels).write(tmp_path / "many.conllu")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["few.conllu", "--graph", "--unlabelled", "{odd}/blank.txt"],
            "blank.txt: there are no words, so there are no",
        ),
        (["few.conllu", "--dev", "{odd}/untagged.conllu"], "untagged.conllu: no word has anything in column upos"),
        (
            ["few.conllu", "--graph", "--unlabelled", "text.en", "--dev", "{odd}/untagged.conllu"],
            "nothing to choose on",
        ),
        (["{odd}/blank.txt", "--dictionary", "words.tsv"], "blank.txt: there are no words"),
        (["few.conllu", "--adapt", "few.conllu"], "in Python, a lower threshold (Correspondence(threshold="),
    ],
)
def test_files_that_hold_nothing(
    files: Path, odd: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    trained(files, odd / "m", *(word.format(odd=odd) for word in arguments), ok=1)
    assert said in capsys.readouterr().err
    assert not (odd / "m").exists()


def test_a_dictionary_of_another_language_is_doubted(
    files: Path, odd: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(files, odd / "m", "text.de", "--dictionary", str(odd / "other.tsv"), "--iterations", "1")
    assert "other.tsv has only 0.0% of the words" in capsys.readouterr().err
    trained(files, odd / "m", "text.de", "--dictionary", "words.tsv", "--iterations", "1")
    assert "warning" not in capsys.readouterr().err
    assert cli.main(["dictionary", "stats", str(files / "words.tsv"), str(odd / "blank.txt")]) == 0
    assert "warning" in capsys.readouterr().err


def test_many_labels_are_warned_of_before_the_work(
    files: Path, odd: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isogloss.tasks.tag.GraphTagger.fit", lambda *a, **b: (_ for _ in ()).throw(KeyboardInterrupt))
    given = [str(odd / "many.conllu"), "--graph", "--unlabelled", "text.en"]
    trained(files, odd / "m", *given, ok=130)
    assert "has 60 different upos" in capsys.readouterr().err
    trained(files, odd / "m", *given, "--order", "1", ok=130)
    assert "different" not in capsys.readouterr().err


def test_tags_of_two_sets_are_not_compared_in_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, tags in (("twelve", "NOUN CONJ NOUN"), ("ud", "NOUN CCONJ PROPN"), ("both", "NOUN VERB NOUN")):
        Treebank.of([list(zip(("tea", "and", "Eve"), tags.split(), strict=True))]).write(tmp_path / name)
    for found, more, warned in (
        ("twelve", [], True),
        ("twelve", ["--tagset", "universal12"], False),
        ("both", [], False),
    ):
        assert cli.main(["tag", "score", str(tmp_path / found), str(tmp_path / "ud"), *more]) == 0
        assert ("has tags of universal12 and" in capsys.readouterr().err) == warned


def test_empty_lines_are_no_sentences(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = trained(files, tmp_path / "m", "few.conllu", "--iterations", "1")
    (tmp_path / "in.txt").write_text("the dog\n\na ball\n")
    assert cli.main(["tag", "apply", str(model), str(tmp_path / "in.txt"), "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "1 empty line has no place in CoNLL-U and is left out" in said and "2 sentences, 4 words" in said


def test_nothing_has_no_score(odd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tag", "score", str(odd / "blank.txt"), str(odd / "blank.txt")]) == 1
    assert "blank.txt: there are no words, so there is nothing to score" in capsys.readouterr().err
