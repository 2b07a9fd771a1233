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
    along = ["--bitext", "text.en", "text.de", "--source-tags", "text.en.conllu", "--threshold", "0.5"]
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
        (["few.conllu", "--soft"], "--soft has no meaning when learning from tags"),
    ],
)
def test_what_does_not_go_together(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    trained(files, tmp_path / "m", *arguments, ok=2)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
