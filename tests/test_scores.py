"""Scores of all tasks are of one kind: percent, intervals that are drawn when asked for, and a recipe."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from isogloss.data import Links, Treebank
from isogloss.errors import TreebankError
from isogloss.metrics import Score, score_links, score_tags, score_trees, scores
from isogloss.structures.batch import Stack
from isogloss.testing import check_posteriors

GOLD = Treebank.of([
    [("She", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")],
    [("He", "PRON", 2, "nsubj"), ("eats", "VERB", 0, "root")],
    [("It", "PRON", 2, "nsubj"), ("rains", "VERB", 0, "root"), (".", "PUNCT", 2, "punct")],
]).with_columns(feats=["Case=Nom", "_", "Case=Nom", "_", "Case=Nom", "_", "_"])  # fmt: skip
WRONG = GOLD.with_columns(
    upos=["PRON", "NOUN", "PRON", "VERB", "PRON", "VERB", "SYM"],
    feats=["_", "X=1", "Case=Nom", "_", "Case=Nom", "_", "_"],
    heads=[2, 0, 2, 0, 2, 0, 1],
)  # fmt: skip


def all_scores(bootstrap: int = 1000) -> list[Score]:
    links = Links.of([{(0, 0), (1, 1)}, {(0, 0)}]), Links.of([{(0, 0)}, {(0, 0), (1, 1)}])
    return [
        score_links(*links, bootstrap=bootstrap),
        score_tags(WRONG, GOLD, ["upos", "feats"], bootstrap=bootstrap),
        score_trees(WRONG, GOLD, bootstrap=bootstrap),
    ]


def test_scores_are_of_one_kind() -> None:
    for score, headline in zip(all_scores(), ("aer", "accuracy", "las"), strict=True):
        assert isinstance(score, Score) and score.headline == headline and score[headline] == float(score)
        low, high = score.interval
        assert 0 <= low <= score.value <= high <= 100 and score.intervals[headline] == (low, high)
        plain = json.loads(json.dumps(score.as_dict()))
        assert plain[headline] == score.value and plain["intervals"][headline] == [low, high]
        assert repr(score) == str(score) and f"{score.value:.2f} ± {(high - low) / 2:.1f}" in str(score)
        for wrong in ("bleu", "_further"):
            with pytest.raises(KeyError, match=wrong):
                score[wrong]


def test_without_a_bootstrap_there_are_no_intervals() -> None:
    for score in all_scores(bootstrap=0):
        assert score.intervals == {} and all(map(math.isnan, score.interval)) and "±" not in str(score)


def test_intervals_are_drawn_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    resampled = scores.resampled
    monkeypatch.setattr(scores, "resampled", lambda *given: drawn.append(1) or resampled(*given))
    for score in all_scores():
        drawn.clear()
        assert score.value > 0 and drawn == []
        assert score.interval == score.intervals[score.headline] and drawn == [1], "once"


def test_tags_by_hand() -> None:
    score = score_tags(WRONG, GOLD, ["upos", "feats"])
    # words 2 and 7 have a wrong tag, words 1 and 2 wrong features
    assert score.columns == {"upos": pytest.approx(500 / 7), "feats": pytest.approx(500 / 7)}
    assert score.accuracy == pytest.approx(400 / 7) and score.measures == ("accuracy", "upos", "feats")
    assert (score.n, score.words) == (3, 7) and score.signature.startswith("columns:upos+feats|n:3|words:7|seed:0|v:")
    one = score_tags(WRONG, GOLD)
    assert one["upos"] == one.accuracy == score["upos"] and str(one).startswith("UPOS = 71.43 ± ")
    nothing = score_tags(Treebank.of([]), Treebank.of([]))
    assert math.isnan(nothing.accuracy) and nothing.intervals == {}
    with pytest.raises(TreebankError, match="not the same text"):
        score_tags(GOLD[:1], GOLD)


def test_the_headline_is_of_what_was_scored() -> None:
    assert score_trees(WRONG, GOLD, columns=["head"]).headline == "uas"
    assert score_trees(WRONG, GOLD, columns=["upos", "feats"]).headline == "upos"


def stack(*sentences: list[list[float]]) -> Stack:
    return Stack.of([np.array(sentence) for sentence in sentences])


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (np.array([[0.5, 0.4]]), "of a word are not 1"),
        (np.array([[1.5, -0.5]]), "from 0 to 1"),
        (np.array([[np.nan, 1.0]]), "not numbers"),
        ({"upos": np.array([[1.0]]), "feats": np.array([[0.9]])}, "of a word are not 1"),
        ([np.array([[0.5, 2.0]], np.float32)], "from 0 to 1"),
        ([np.zeros((1, 1, 1, 1), np.float32)], "a row for each source word"),
        (stack([[0, 0.5], [0, 0]]), "heads are not 1"),
        (stack([[1.0, 1.0], [0, 0]]), "the root has a head"),
        ((stack([[0, 1.0], [0, 0]]), {"upos": np.array([[0.2]])}), "of a word are not 1"),
        ("posteriors", "gives a str"),
    ],
)
def test_posteriors_that_are_none_are_found(found: object, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_posteriors(found)


def test_posteriors_of_all_tasks() -> None:
    for found in (
        np.array([[0.5, 0.5]]), {"upos": np.array([[1.0]])}, [np.array([[0.5, 0.0]], np.float32), np.zeros((0, 3))],
        stack([[0, 1.0], [0, 0]]), (stack([[0, 1.0], [0, 0]]), {"upos": np.array([[1.0]])}), np.zeros((0, 4)),
    ):  # fmt: skip
        check_posteriors(found)
