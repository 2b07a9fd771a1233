"""Estimators and scores say what they were given and what they take, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from isogloss.data import Bitext, Links, TagDictionary, Treebank
from isogloss.errors import DataError, UsageError
from isogloss.metrics import breakdown_trees, compare_trees, score_links, score_trees
from isogloss.tasks.parse import DependencyParser, GrammarInducer, JointMorphologyParser, StyleAdapter
from isogloss.tasks.tag import CrfTagger, DictionaryTagger, GraphTagger, ProjectedTagger, Tagger
from isogloss.testing.fuzz import MODELS

BITEXT = Bitext.of([("das Haus", "the house")])
LINKS = Links.of([{(0, 0), (1, 1)}])
TREES = Treebank.of([[("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]])
TEXT, RAGGED = BITEXT.source, BITEXT.source.ids
TAGS = TagDictionary({"she": "PRON"})

ALIGNERS: list[Callable[[], Any]] = [
    cache(MODELS[f"align.{kind}"]) for kind in ("hmm", "model1", "model2", "segmented", "matching", "itg", "quadratic")
]
"""Each learns something small when it is first asked for."""
READERS: list[Callable[[], Any]] = [
    CrfTagger, lambda: DictionaryTagger(TAGS), lambda: ProjectedTagger(TAGS), GraphTagger, lambda: Tagger(["upos"]),
    DependencyParser, JointMorphologyParser, StyleAdapter,
    DependencyParser, GrammarInducer, JointMorphologyParser,
]  # fmt: skip
WRONG = [None, 3, 0.5, "das Haus", "a\0b", ["das Haus"], ["das", "Haus"], {"a": 1}, np.zeros(3), object()]


@pytest.mark.parametrize("make", ALIGNERS)
@pytest.mark.parametrize("thing", [*WRONG, TREES, TEXT, LINKS, RAGGED, ("das Haus", "the")])
def test_aligners_say_what_they_take(make: Callable[[], Any], thing: Any) -> None:
    for call in (make().predict, make().predict_proba, lambda given: make().score(given, LINKS)):
        with pytest.raises((UsageError, DataError), match=r"list of pairs, as|pair \(source, target\)"):
            call(thing)


@pytest.mark.parametrize("make", ALIGNERS)
@pytest.mark.parametrize("thing", [*WRONG, TREES, TEXT, BITEXT])
def test_aligners_say_what_gold_is(make: Callable[[], Any], thing: Any) -> None:
    with pytest.raises((UsageError, DataError), match=r"cannot be taken for links\. Give Links, as read_links"):
        make().score(BITEXT, thing)


@pytest.mark.parametrize("make", READERS)
@pytest.mark.parametrize("thing", [*WRONG, [], BITEXT, LINKS, RAGGED])
def test_taggers_and_parsers_say_what_they_take(make: Callable[[], Any], thing: Any) -> None:
    for call in (make().predict, make().predict_proba):
        with pytest.raises((UsageError, DataError), match=r"cannot be taken for sentences\. Give a Treebank, as "):
            call(thing)
    with pytest.raises((UsageError, DataError), match=r"cannot be taken for a treebank\. Give a Treebank with "):
        make().score(thing)


@pytest.mark.parametrize("make", READERS)
def test_gold_is_no_plain_text(make: Callable[[], Any]) -> None:
    with pytest.raises(UsageError, match="a Text cannot be taken for a treebank"):
        make().score(TEXT)


@pytest.mark.parametrize("thing", [*WRONG, BITEXT])
def test_scores_say_what_they_take(thing: Any) -> None:
    for call in (score_trees, compare_trees, breakdown_trees):
        more = (TREES,) if call is compare_trees else ()
        for given in ((thing, TREES), (TREES, thing)):
            with pytest.raises(UsageError, match=r"cannot be taken for a treebank"):
                call(*given, *more)
    for given in ((thing, LINKS), (LINKS, thing)):
        with pytest.raises(UsageError, match=r"cannot be taken for links"):
            score_links(*given)
