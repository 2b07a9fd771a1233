"""Which sentences to align next: expected errors, the greedy choice, and what is left out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import HMMAligner, samples
from isogloss.data import Bitext, Links
from isogloss.errors import BitextError, ParameterError
from isogloss.tasks.align.supervised import suggest as module
from isogloss.tasks.align.supervised.suggest import Doubts, suggest


class Fixed:
    """An aligner whose posteriors are given, by the words of a pair."""

    def __init__(self, bitext: Bitext, posteriors: list[np.ndarray]) -> None:
        self.known = {bitext[k]: p for k, p in enumerate(posteriors)}
        self.links: list[Any] = []

    def predict_proba(self, bitext: Bitext, links: Any = None) -> list[np.ndarray]:
        self.links.append(links)
        return [self.known[pair] for pair in bitext]


def text(*pairs: str) -> Bitext:
    return Bitext.of([tuple(pair.split("|")) for pair in pairs])  # type: ignore[misc]


def square(n: int, p: float, sure: float = 0.99) -> np.ndarray:
    """Words in order, sure of all but the first."""
    out = np.full((n, n), 0.0)
    np.fill_diagonal(out, sure)
    out[0, 0] = p
    return out


# Expected errors -----------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 2), st.integers(1, 3), st.integers(0, 10**6))
def test_expected_errors_are_those_of_all_truths(n: int, m: int, seed: int) -> None:
    """Against the sum over all sets of links, each drawn with its probability; and no other decision has fewer."""
    p = np.random.default_rng(seed).random((n, m))
    truths = np.array(list(itertools.product([0, 1], repeat=n * m))).reshape(-1, n, m)
    chance = np.prod(np.where(truths, p, 1 - p), axis=(1, 2))
    doubts = Doubts.of([p], Bitext.of([(["a"] * n, ["x"] * m)]))
    wrong = np.abs(truths[:, None] - truths[None])  # decision, truth
    expected = (wrong.sum(axis=(2, 3)) * chance).sum(axis=1)
    best = int(np.argmin(expected))
    assert doubts.errors[0] == pytest.approx(expected[best])
    assert doubts.source == pytest.approx((wrong[best].sum(axis=2) * chance[:, None]).sum(axis=0))
    assert doubts.target == pytest.approx((wrong[best].sum(axis=1) * chance[:, None]).sum(axis=0))
    decided = truths[best]
    agree = (decided * p).sum()
    size = decided.sum() + p.sum()
    assert doubts.links[0] == pytest.approx(size)
    assert doubts.error[0] == pytest.approx(1 - 2 * agree / size)


def test_pairs_that_were_passed_over_have_no_doubts() -> None:
    bitext = text("a b|x", "|y", "c|z")
    doubts = Doubts.of([np.array([[0.5], [0.0]]), np.zeros((0, 0)), np.array([[1.0]])], bitext)
    assert doubts.errors.tolist() == [0.5, 0.0, 0.0] and doubts.error[1] == 0
    assert np.isnan(doubts.linked[1]) and doubts.linked[2] == 1
    assert len(doubts.source) == 3 and len(doubts.target) == 3


def test_parts_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    bitext = samples.bitext("en-de").part(3, 20)
    posteriors = [np.random.default_rng(k).random((len(s), len(t))) for k, (s, t) in enumerate(bitext)]
    whole = Doubts.by(Fixed(bitext, posteriors), bitext)
    monkeypatch.setattr(module, "PART", 4)
    parts = Doubts.by(Fixed(bitext, posteriors), bitext)
    for name in ("source", "target", "errors", "links", "linked"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))


def test_links_by_others_go_with_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    bitext = text(*(f"a{k} b|x{k} y" for k in range(5)))
    aligner = Fixed(bitext, [square(2, 0.5)] * 5)
    monkeypatch.setattr(module, "PART", 2)
    Doubts.by(aligner, bitext, links={"other": Links.of([[(0, 0)] * 1 for _ in range(5)])})
    assert [len(given["other"]) for given in aligner.links] == [2, 2, 1]


# The choice ----------------------------------------------------------------------------------------------------------


def brute_force(bitext: Bitext, posteriors: list[np.ndarray], n: int, discount: float, length: float) -> list[int]:
    """Greedy choice by the formula, everything anew at each step; for texts without pairs that are alike."""
    chosen: list[int] = []
    seen: dict[tuple[int, str], int] = {}
    for _ in range(n):
        gains = []
        for k, p in enumerate(posteriors):
            x, size = np.minimum(p, 1 - p), max(1.0, (p >= 0.5).sum() + p.sum())
            total = 0.0
            for side in (0, 1):
                for word, doubt in zip(bitext[k][side], x.sum(axis=1 - side), strict=True):
                    total += doubt * discount ** seen.get((side, word.lower()), 0)
            gains.append(-1.0 if k in chosen else total / (2 * size**length))
        best = int(np.argmax(gains))
        chosen.append(best)
        for side in (0, 1):
            for word in {word.lower() for word in bitext[best][side]}:
                seen[side, word] = seen.get((side, word), 0) + 1
    return chosen


@pytest.mark.parametrize(("discount", "length"), [(0.5, 0.5), (0.3, 1.0), (1.0, 0.0)])
def test_choice_is_greedy_by_the_formula(monkeypatch: pytest.MonkeyPatch, discount: float, length: float) -> None:
    monkeypatch.setattr(module, "ALIKE", 1.0)
    monkeypatch.setattr(module, "LINKED", 0.0)
    bitext = samples.bitext("en-tr")
    rng = np.random.default_rng(5)
    posteriors = [rng.random((len(s), len(t))) ** 4 for s, t in bitext]
    found = suggest(Fixed(bitext, posteriors), bitext, 8, shortest=1, longest=1000, discount=discount, length=length)
    assert [one.pair for one in found] == brute_force(bitext, posteriors, 8, discount, length)
    assert [one.line for one in found] == [one.pair + 1 for one in found]
    assert all(a.gain >= b.gain for a, b in itertools.pairwise(found))


def test_doubtful_pairs_come_first_and_twins_once() -> None:
    bitext = text("a b c d|A B C D", "e f g h|E F G H", "i j k l|I J K L", "E f g h|E F G h", "m n o p|M N O P")
    posteriors = [square(4, 0.9), square(4, 0.5), square(4, 0.7), square(4, 0.51), square(4, 0.95)]
    found = suggest(Fixed(bitext, posteriors), bitext, 10, shortest=1, longest=9)
    assert [one.pair for one in found] == [1, 2, 0, 4]  # pair 3 is pair 1 once more
    assert found[0].errors == pytest.approx(0.5 + 3 * 0.01)


def test_what_is_done_is_not_suggested_and_its_words_count_less() -> None:
    bitext = text("a b c d|A B C D", "a f g h|A F G H", "i j k l|I J K L")
    posteriors = [square(4, 0.5), square(4, 0.5), square(4, 0.6)]
    aligner = Fixed(bitext, posteriors)
    assert suggest(aligner, bitext, 3, shortest=1)[0].pair == 0
    gold = Links.of([[(0, 0)], []])
    found = suggest(aligner, bitext, 3, gold=gold, shortest=1)
    assert [one.pair for one in found] == [2, 1]  # the doubt about `a` is worth half
    assert suggest(aligner, bitext, 3, gold=gold, shortest=1, discount=1)[0].pair == 1
    with pytest.raises(BitextError, match="gold for 4 pairs"):
        suggest(aligner, bitext, gold=Links.of([[]] * 4))


def test_unusual_lengths_and_bad_translations_are_left_out() -> None:
    words = [f"{letter}{k}" for letter in "abcdefgh" for k in range(30)]
    pairs = [
        (words[30 * k : 30 * k + size], words[30 * k : 30 * k + size]) for k, size in enumerate((2, 5, 6, 7, 8, 30))
    ]
    bitext = Bitext.of(pairs)
    posteriors = [square(len(source), 0.5) for source, _ in pairs]
    posteriors[3] = np.full((7, 7), 0.02)  # nothing belongs together: much doubt about little
    found = suggest(Fixed(bitext, posteriors), bitext, 10)
    assert {one.pair for one in found} == {2, 4}
    longer = suggest(Fixed(bitext, posteriors), bitext, 10, shortest=1, longest=40)
    assert {one.pair for one in longer} == {0, 1, 2, 4, 5}


def test_a_model_of_the_text_itself_and_the_same_answer_twice() -> None:
    bitext = samples.bitext("en-de")
    aligner = HMMAligner().fit(bitext)
    found = suggest(aligner, bitext, 5)
    assert found == suggest(aligner, bitext, 5) and len({one.pair for one in found}) == 5
    own = aligner.predict_proba(bitext)[found[0].pair]  # own evidence left out, not as a new text
    assert found[0].errors == pytest.approx(float(np.minimum(own, 1 - own).sum()), abs=1e-5)
    assert found[0].as_dict()["error"] == 100 * found[0].error


def test_nothing_to_suggest() -> None:
    bitext = text("|", "a|")
    assert suggest(Fixed(bitext, [np.zeros((0, 0))] * 2), bitext) == []
    sure = text("a b|A B")
    assert suggest(Fixed(sure, [np.eye(2)]), sure, shortest=1) == []


@pytest.mark.parametrize(
    "wrong", [{"n": 0}, {"n": True}, {"discount": 2}, {"length": -1}, {"shortest": 0}, {"shortest": 9, "longest": 3}]
)
def test_senseless_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="suggest: "):
        suggest(None, text("a|b"), **wrong)
