"""Segmenters that learn from text, with gold as constraints or as what a penalty is chosen by."""

from __future__ import annotations

import pytest

from isogloss import Segmentation, Segmenter, Text
from isogloss.errors import ParameterError

STEMS = ["walk", "talk", "jump", "call", "read", "play", "train", "load"]
TEXT = Text.of([stem + ending for stem in STEMS for ending in ("", "s", "ed", "ing", "er")])
STRANGE = Segmentation.of([(stem + "ing", [stem + "i", "ng"]) for stem in STEMS])


def test_gold_may_say_where_words_of_the_text_are_cut() -> None:
    alone = Segmenter().fit(TEXT).predict(Text.of(["barking"]))[0]
    taught = Segmenter(gold_as="constraints").fit(TEXT, STRANGE)
    assert not taught.supervised_
    assert alone == (("bark", "ing"),)
    assert taught.predict(Text.of(["barking"]))[0] == (("barki", "ng"),)


def test_the_penalty_is_that_by_which_most_boundaries_of_gold_are_found() -> None:
    whole = Segmentation.of([(word, [word]) for word in ("walks", "reading", "loader", "trained", "jumps", "called")])
    letters = Segmentation.of([(word, list(word)) for word in ("walks", "reading", "loader", "trained")])
    options = {"gold_as": "constraints", "leave_out": False, "base_power": 1.0, "shortest_stem": 1}
    few, many = (Segmenter(**options).fit(TEXT, gold) for gold in (whole, letters))  # type: ignore[arg-type]
    assert few.length_penalty_ == 1.3  # no boundary to be found: the usual one
    assert many.length_penalty_ > 1.3
    given = Segmenter(gold_as="constraints", length_penalty=1.7).fit(TEXT, letters)
    assert given.length_penalty_ == 1.7


def test_options_of_features_are_refused_with_constraints() -> None:
    with pytest.raises(ParameterError, match="rewrites"):
        Segmenter(gold_as="constraints", rewrites=7).fit(TEXT, STRANGE)
