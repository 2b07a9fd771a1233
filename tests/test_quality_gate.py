"""Quality may not fall unnoticed: error rates of the default aligner on texts whose links are known, and accuracies of
aligners from gold, taggers and parsers that learn from a few hundred sentences.

The numbers are percentages measured with the defaults of the day; treebanks are scored on development files. When a
change of the defaults is meant to move them, measure again and write the new numbers here, in the same commit.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isogloss import samples
from isogloss.data import Constituents, Mentions, Treebank
from isogloss.metrics import score_links
from isogloss.tasks.align import HMMAligner, MatchingAligner
from isogloss.tasks.extract import EntityTagger
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.constituency import ConstituencyParser
from isogloss.tasks.tag import CrfTagger

AER = {"en-de": 12.22, "en-tr": 21.19, "synthetic": 10.31, "synthetic, held out": 9.67}
MARGIN = 0.5  # points; other processors round the last digit differently


def measured():
    """Every text of the gate: AER in percent."""
    for name in samples.names():
        bitext = samples.bitext(name)
        yield name, HMMAligner().fit(bitext).score(bitext, samples.gold(name)).aer
    text = samples.synthetic(1000, seed=11)
    taught, held = text.bitext.part(0, 800), text.bitext.part(800, 1000)
    aligner = HMMAligner().fit(taught)
    yield "synthetic", aligner.score(taught, text.links.part(0, 800)).aer
    yield "synthetic, held out", score_links(aligner.predict(held), text.links.part(800, 1000)).aer


@pytest.fixture(scope="module")
def scores():
    return dict(measured())


@pytest.mark.parametrize("name", list(AER))
def test_error_does_not_rise(scores, name):
    assert scores[name] <= AER[name] + MARGIN


def test_every_text_has_a_record(scores):
    assert scores.keys() == AER.keys()


# --- learnt from annotation

LEARNT = {
    "links from gold": 94.01,
    "tags": 89.20,
    "trees": 75.95,
    "trees, order 2": 78.46,
    "constituents": 65.70,
    "names": 67.66,
}
"""Accuracies in percent: 100 − AER, UPOS, LAS, LAS, F1 and F1."""
SPREAD = 1.0  # points; a few hundred words are scored, and learning amplifies the last digits


def _data(*parts: str) -> Path:
    place = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"), *parts)
    if not place.exists():
        pytest.skip("needs the corpora behind ISOGLOSS_DATA")
    return place


def _hungarian() -> tuple[Treebank, Treebank]:
    train, dev = (Treebank.read(_data("treebanks/hu-szeged", f"{part}.conllu.gz")) for part in ("train", "dev"))
    return train[:300], dev[:150]


def test_links_from_gold() -> None:
    text = samples.synthetic(600, seed=11)
    aligner = MatchingAligner().fit(text.bitext.part(0, 100), text.links.part(0, 100), unlabelled=text.bitext)
    found = aligner.predict(text.bitext.part(100, 600))
    assert 100 - score_links(found, text.links.part(100, 600)).aer >= LEARNT["links from gold"] - SPREAD


@pytest.mark.data
def test_tags() -> None:
    train, dev = _hungarian()
    assert CrfTagger().fit(train).score(dev).accuracy >= LEARNT["tags"] - SPREAD


@pytest.mark.data
@pytest.mark.parametrize(("name", "order"), [("trees", 1), pytest.param("trees, order 2", 2, marks=pytest.mark.slow)])
def test_trees(name: str, order: int) -> None:
    train, dev = _hungarian()
    assert DependencyParser(order=order, iterations=4).fit(train).score(dev).las >= LEARNT[name] - SPREAD


@pytest.mark.data
def test_constituents() -> None:
    trees = Constituents.read(_data("constituency/wsj-sample/trees.mrg.gz"))
    assert (
        ConstituencyParser(iterations=3).fit(trees[:200]).score(trees[3300:3400]).f1 >= LEARNT["constituents"] - SPREAD
    )


@pytest.mark.data
def test_names() -> None:
    train, dev = (Mentions.read(_data(f"ner/conll2002-es/esp.{part}.gz")) for part in ("train", "testa"))
    assert EntityTagger(iterations=3).fit(train[:1000]).score(dev[:600]).f1 >= LEARNT["names"] - SPREAD
