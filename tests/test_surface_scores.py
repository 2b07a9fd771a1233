"""Scores of trees whose words differ, paired by the characters that they cover."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Call
from isogloss.data import Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.metrics import compare_trees, score_trees
from isogloss.metrics._surface import _common_words, paired_words


def trees(*sentences: str) -> Treebank:
    """Sentences such as "della=di/ADP/3/case+la/DET/3/det casa/NOUN/0/root": form, tag, head, relation."""
    lines = []
    for sentence in sentences:
        number = 1
        for token in sentence.split():
            surface, _, parts = token.rpartition("=")
            words = parts.split("+")
            if surface:
                lines.append("\t".join([f"{number}-{number + len(words) - 1}", surface, *"_" * 8]))
            for word in words:
                form, tag, head, relation = (word.split("/") + ["_"] * 3)[:4]
                lines.append("\t".join([str(number), form, "_", tag, "_", "_", head, relation, "_", "_"]))
                number += 1
        lines.append("")
    return Treebank.from_bytes("".join(f"{line}\n" for line in lines).encode())


def pairs(predicted: Treebank, gold: Treebank) -> list[tuple[int, int]]:
    ours, theirs, *_ = paired_words(predicted, gold)
    return list(zip(ours.tolist(), theirs.tolist(), strict=True))


@pytest.mark.parametrize(
    ("system", "gold", "expected"),
    [
        ("della casa", "della casa", [(0, 0), (1, 1)]),
        ("della casa", "della=di+la casa", [(1, 2)]),
        ("della=di+la casa", "della=di+la casa", [(0, 0), (1, 1), (2, 2)]),
        ("Della=Di+LA casa", "Della=di+la casa", [(0, 0), (1, 1), (2, 2)]),  # case is not looked at within a token
        ("della=della+la casa", "della=di+la casa", [(1, 1), (2, 2)]),
        ("dell a casa", "della=di+la casa", [(2, 2)]),
        ("del la casa", "della=di+la casa", [(1, 1), (2, 2)]),  # the second word has the form of a part
        ("dellacasa=di+la+casa", "della=di+la casa", [(0, 0), (1, 1), (2, 2)]),
        ("de llacasa", "della=di+la casa", []),
        ("ab c", "a bc", []),
        ("ab c", "a b c", [(1, 2)]),
        ("x y z", "x yz=y+z", [(0, 0), (1, 1), (2, 2)]),
        ("x yz=y+q w", "xy=x+y z w", [(0, 0), (1, 1), (3, 3)]),  # tokens that overlap are one stretch: x y q, x y z
        ("ab c=a+c", "a bc=b+c", [(2, 2)]),
    ],
)
def test_pairs(system: str, gold: str, expected: list[tuple[int, int]]) -> None:
    assert pairs(trees(system), trees(gold)) == expected
    assert pairs(trees(gold), trees(system)) == [(theirs, ours) for ours, theirs in expected]


def test_a_word_that_lags_behind_is_left_unless_its_form_helps() -> None:
    # Gold goes on to its multiword token while the system stands at `c`; the script of CoNLL 2018 leaves one word
    # behind and compares the other, `d`, with the parts.
    assert pairs(trees("a c d ef=d+f"), trees("a cd ef=d+f")) == [(0, 0), (2, 2), (4, 3)]


@settings(deadline=None)
@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_common_words_are_a_longest_common_subsequence(first: str, second: str) -> None:
    found = list(_common_words(first, second))
    assert all(first[i] == second[j] for i, j in found)
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(found))
    subsequences = (
        {"".join(some) for n in range(7) for some in itertools.combinations(text, n)} for text in (first, second)
    )
    assert len(found) == max(map(len, set.intersection(*subsequences)))


GOLD = "della=di/ADP/3/case+la/DET/3/det casa/NOUN/0/root ./PUNCT/3/punct"
WHOLE = "della/ADP/2/case casa/NOUN/0/root ./PUNCT/2/punct"


def test_scores_by_hand() -> None:
    score = score_trees(trees(WHOLE), trees(GOLD), words="surface", bootstrap=0)
    for name in ("uas", "las", "upos", "word_f1"):  # two pairs, both right, of four words and three
        assert score[name] == pytest.approx(100 * 2 * 2 / 7), name
    assert score.clas == 100 and score.words == 4 and score.n == 1
    assert "paired:characters" in score.signature and "word_f1" in score.as_dict()


def test_a_head_that_has_no_pair_is_wrong() -> None:
    system = trees("della/ADP/3/case casa/NOUN/1/obj ./PUNCT/0/root")
    score = score_trees(system, trees(GOLD), words="surface", bootstrap=0)
    assert score.uas == score.las == score.clas == 0  # casa hangs on a word without a pair, and . is no root in gold
    assert score.upos == pytest.approx(100 * 4 / 7)


def test_the_head_is_found_through_the_pairs() -> None:
    system = trees("della=di/X/3/case+la/X/3/mark casa/X/0/root ./X/3/punct")
    score = score_trees(system, trees(GOLD), words="surface", bootstrap=0)
    assert (score.uas, score.las, score.word_f1, score.upos) == (100, 75, 100, 0)


def test_sentences_may_differ() -> None:
    gold = trees("a/X/2/det b/X/0/root", "c/X/0/root")
    score = score_trees(trees("a/X/2/det b/X/0/root c/X/2/dep"), gold, words="surface", bootstrap=0)
    assert score.uas == pytest.approx(200 / 3) and score.word_f1 == 100
    both = score_trees(gold, trees("a/X/2/det b/X/0/root c/X/2/dep"), words="surface", bootstrap=0)
    assert both.uas == score.uas


def test_unknown_heads_are_left_out_on_both_sides() -> None:
    gold = trees("a/X/2/det b/X/0/root cd/X/_/_")
    for system in ("a/X/2/det b/X/0/root cd/X/1/dep", "a/X/2/det b/X/0/root cd=c/X/1/dep+cd/X/1/dep"):
        score = score_trees(trees(system), gold, words="surface", bootstrap=0)
        assert score.heads == 2 and score.las == pytest.approx(100 * 4 / (4 + ("=" in system)))


def test_the_same_words_have_the_same_score() -> None:
    gold = trees(GOLD, "a/X/2/det b/X/0/root")
    system = gold.with_columns(heads=[3, 1, 0, 3, 0, 1], upos=["ADP", "X", "NOUN", "X", "X", "X"])
    same, surface = (score_trees(system, gold, words=words, bootstrap=50) for words in ("gold", "surface"))
    for name in same.measures:
        assert same[name] == surface[name] and same.intervals[name] == surface.intervals[name]
    assert math.isnan(same.word_f1) and surface.word_f1 == 100


def test_nothing_is_scored_as_nothing() -> None:
    empty = Treebank.of([])
    assert score_trees(empty, empty, words="surface", bootstrap=0).word_f1 == 0


def test_comparing() -> None:
    gold = trees(*[GOLD] * 20)
    found = compare_trees(gold, trees(*[WHOLE] * 20), gold, measure="word_f1", words="surface", resamples=100)
    assert found.delta == pytest.approx(100 - 400 / 7) and found.p_value < 0.05
    with pytest.raises(
        ParameterError, match="measure should be one of uas, las, clas, upos, xpos, ufeats, not 'word_f1'"
    ):
        compare_trees(gold, gold, gold, measure="word_f1")


def test_texts_that_differ() -> None:
    gold = trees("a/X/0/root", "della=di/X/0/root+la/X/1/det casa/X/1/obj")
    with pytest.raises(
        TreebankError, match=r"sentence 2 \(number 2\): without spaces, .* goes on with 'dellcasa'"
    ) as told:
        score_trees(trees("a/X/0/root", "dell/X/0/root casa/X/1/obj"), gold, words="surface")
    assert "has 'dellacasa'" in str(told.value) and "1-2 della" in str(told.value)
    with pytest.raises(TreebankError, match="goes on with nothing where"):
        score_trees(trees("a/X/0/root"), gold, words="surface")
    with pytest.raises(TreebankError, match=r"goes on with 'adellacasa' where .* has 'a'"):
        score_trees(gold, trees("a/X/0/root"), words="surface")
    with pytest.raises(ParameterError, match="words should be 'gold' or 'surface', not 'system'"):
        score_trees(gold, gold, words="system")


def test_command(isogloss: Call, tmp_path: Path) -> None:
    trees(GOLD).write(tmp_path / "gold.conllu")
    trees(WHOLE).write(tmp_path / "out.conllu")
    files = tmp_path / "out.conllu", tmp_path / "gold.conllu"
    answer = isogloss("parse", "score", *files, "--words", "surface", "-q")
    assert answer.status == 0 and "word_f1   57.14  (57.14 to 57.14)" in answer.out.splitlines()
    assert "las       57.14  (57.14 to 57.14)" in answer.out.splitlines()
    refused = isogloss("parse", "score", *files, "-q")
    assert refused.status == 1 and "word 1 is 'della'" in refused.err
    told = isogloss("parse", "score", *files, "--words", "surface", "--breakdown", "-q")
    assert told.status == 2 and "--breakdown is of the same words" in told.err
