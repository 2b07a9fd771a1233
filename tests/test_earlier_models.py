"""Aligners that an earlier version saved are loaded, and align as they did.

The models in tests/models are small and of sample text. They were made by the sources of the version in their name:

    text, gold = ig.samples.bitext("en-de"), ig.samples.gold("en-de")
    few, sets = text.part(0, 12), ("association", "position", "shape")
    ig.HMMAligner(threads=1).fit(few).save("hmm-0.1.0.model")
    ig.MatchingAligner(features=sets, tune=False, threads=1).fit(few, gold.part(0, 12)).save("matching-0.1.0.model")

`links.json` has what each said of `text.part(12, 18)`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import isogloss as ig
from conftest import Call
from isogloss import store

MODELS = Path(__file__).parent / "models"
NAMES = {"hmm": "HMMAligner", "matching": "MatchingAligner"}
SAVED_BY = "0.1.0"
NEW = slice(12, 18)


def expected(name: str) -> list[str]:
    found: dict[str, list[str]] = json.loads((MODELS / "links.json").read_text(encoding="utf-8"))
    return found[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_an_earlier_version_aligns_as_it_did(name: str) -> None:
    folder = MODELS / f"{name}-{SAVED_BY}.model"
    assert store.read(folder).written_by == SAVED_BY != ig.__version__
    aligner = ig.load(folder)
    assert type(aligner).__name__ == NAMES[name]
    links = aligner.predict(ig.samples.bitext("en-de").part(NEW.start, NEW.stop))
    assert [str(row) for row in links] == expected(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_an_earlier_version_saves_and_loads_again(name: str, tmp_path: Path) -> None:
    aligner = ig.load(MODELS / f"{name}-{SAVED_BY}.model")
    aligner.save(tmp_path / "again.model")
    assert store.read(tmp_path / "again.model").written_by == ig.__version__
    links = ig.load(tmp_path / "again.model").predict(ig.samples.bitext("en-de").part(NEW.start, NEW.stop))
    assert [str(row) for row in links] == expected(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_aligns_with_a_model_of_an_earlier_version(name: str, isogloss: Call, tmp_path: Path) -> None:
    pairs = ig.samples.bitext("en-de").part(NEW.start, NEW.stop)
    for side, sentences in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        text = "".join(" ".join(words) + "\n" for words in sentences)
        (tmp_path / side).write_text(text, encoding="utf-8")
    model = MODELS / f"{name}-{SAVED_BY}.model"
    answer = isogloss("align", tmp_path / "source", tmp_path / "target", "--model", model, "--quiet")
    assert (answer.status, answer.out.splitlines()) == (0, expected(name))
