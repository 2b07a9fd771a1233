"""A loss taken apart by kinds of words; what a parser does not foresee; tags of two domains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data import Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.metrics.adaptation import Side, decompose_loss
from isogloss.tasks.parse.adapting import KINDS, Tried, decompose, known_words, tag_differences, unforeseen


@given(st.integers(0, 2**31), st.integers(1, 6))
def test_what_kinds_add_sums_to_the_loss(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    sides = [Side(rng.integers(0, n, m), rng.random(m) < 0.4) for m in rng.integers(1, 40, 2).tolist()]
    found = decompose_loss(sides[0], sides[1], [str(k) for k in range(n)])
    assert sum(kind.adds for kind in found.kinds) == pytest.approx(found.loss)
    assert sum(kind.by_error + kind.by_share for kind in found.kinds) == pytest.approx(found.loss)
    assert found.loss == pytest.approx(100 * (sides[1].wrong.mean() - sides[0].wrong.mean()))
    for share, words in (("source_share", "source_words"), ("target_share", "target_words")):
        assert sum(getattr(kind, share) for kind in found.kinds) == pytest.approx(100)
        assert sum(getattr(kind, words) for kind in found.kinds) == len(sides[words == "target_words"].kinds)
    for kind in found.kinds:
        if kind.loss is not None:
            assert kind.loss == pytest.approx(kind.target_error - kind.source_error)


def test_the_same_domain_loses_nothing() -> None:
    side = Side(np.array([0, 1, 1]), np.array([True, False, True]))
    found = decompose_loss(side, side, ["a", "b"])
    assert found.loss == 0 and all(kind.adds == 0 for kind in found.kinds) and found.of("b").source_error == 50
    with pytest.raises(ParameterError, match="no kind 'c'"):
        found.of("c")
    with pytest.raises(ParameterError, match="both domains"):
        decompose_loss(side, Side(np.zeros(0, np.int64), np.zeros(0, np.bool_)), ["a", "b"])


def bank(rows: list[list[tuple[str, str, int]]]) -> Treebank:
    return Treebank.of([[(form, tag, head) for form, tag, head in row] for row in rows])


HERE = bank([[("the", "DET", 2), ("dog", "NOUN", 3), ("barks", "VERB", 0)], [("go", "VERB", 0)]])
THERE = bank([[("gene", "NOUN", 2), ("grows", "VERB", 0), ("fast", "ADV", 2)], [("go", "VERB", 0)]])


def tried(gold: Treebank, wrong: list[int], sure: list[float] | None = None) -> Tried:
    heads = gold.heads.copy()
    for word in wrong:
        heads[word] = 0 if heads[word] else 1
    return Tried(gold.with_columns(heads=heads), gold, None if sure is None else np.array(sure))


def test_kinds_of_words() -> None:
    known = known_words(HERE)
    assert known == {"the", "dog", "barks", "go"}
    source, target = tried(HERE, [0]), tried(THERE, [0, 2])
    found = decompose(source, target, "unknown", known)
    assert {kind.name: (kind.source_words, kind.target_words) for kind in found.kinds} == {
        "both known": (4, 1), "one unknown": (0, 1), "both unknown": (0, 2),
    }  # fmt: skip
    by_link = {kind.name for kind in decompose(source, target, "link").kinds}
    assert by_link == {"NOUN > DET", "VERB > NOUN", "root > VERB", "VERB > ADV"}
    assert {kind.name: kind.target_words for kind in decompose(source, target, "length").kinds} == {"root": 2, "1": 2}
    for by in KINDS:
        found = decompose(source, target, by, known)
        assert found.loss == pytest.approx(25) and sum(kind.adds for kind in found.kinds) == pytest.approx(25)
    with pytest.raises(ParameterError, match="by should be one of"):
        decompose(source, target, "colour")


def test_words_without_a_head_in_gold_are_not_scored() -> None:
    gold = bank([[("a", "X", 2), ("b", "X", 0), ("c", "X", -1)]])
    found = decompose(tried(gold, []), tried(gold, [0]), "tag")
    assert found.kinds[0].source_words == 2 and found.loss == 50


def test_a_parser_that_is_less_sure_foresees_a_loss_and_a_sure_one_does_not() -> None:
    rng, n = np.random.default_rng(0), 4000
    words = [[("w", "X", 0)]] * n
    gold = bank(words)

    def side(sure: np.ndarray, wrong: np.ndarray) -> Tried:
        heads = np.where(wrong, -1, 0)
        return Tried(gold.with_columns(heads=heads), gold, sure)

    here = rng.uniform(0.5, 1, n)
    source = side(here, rng.random(n) > here)
    less = rng.uniform(0.5, 0.8, n)  # other inputs: less sure, and as often right as it is sure
    shift = unforeseen(source, side(less, rng.random(n) > less), {"w"})
    assert shift.loss > 8 and abs(shift.unforeseen) < 3 and shift.share < 30
    other = unforeseen(source, side(here, rng.random(n) > here - 0.3), {"w"})  # other guidelines: as sure as ever
    assert (
        other.foreseen == pytest.approx(0, abs=2)
        and other.share > 85
        and other.known == pytest.approx(other.unforeseen)
    )
    assert other.sure > other.sure_source + 20
    assert shift.loss == pytest.approx(shift.foreseen + shift.unforeseen)
    with pytest.raises(ParameterError, match=r"Tried\.by"):
        unforeseen(tried(HERE, []), source, ())


def test_sequences_of_tags() -> None:
    found = tag_differences(HERE, THERE, 2)
    counts = {"DET NOUN": 1, "NOUN VERB": 1, "VERB ·": 2}, {"NOUN VERB": 1, "VERB ADV": 1, "ADV ·": 1, "VERB ·": 1}
    names = {name for side in counts for name in side}
    moved = {name: 25.0 * (counts[1].get(name, 0) - counts[0].get(name, 0)) for name in names}
    assert found.distance == pytest.approx(sum(map(abs, moved.values())) / 2)
    assert {name: there - here for name, here, there in found.largest if there != here} == {
        name: value for name, value in moved.items() if value
    }
    assert tag_differences(HERE, HERE, 3).distance == 0
    penn = Treebank.of([[{"form": "a", "xpos": "NNP"}]]), Treebank.of([[{"form": "a", "xpos": "NN"}]])
    assert tag_differences(*penn).distance == 100 and tag_differences(*penn, fine=False).distance == 0
    with pytest.raises(TreebankError, match="no word has a tag"):
        tag_differences(Treebank.of([[("a",)]]), HERE)
    with pytest.raises(TreebankError, match=r"tags of different columns .* upos and .* xpos"):
        tag_differences(HERE, penn[0])
    both = Treebank.of([[{"form": "a", "upos": "NOUN", "xpos": "NNP"}]])
    for one, other in ((both, penn[0]), (penn[0], both)):  # the column that both have
        assert tag_differences(one, other).distance == 0
