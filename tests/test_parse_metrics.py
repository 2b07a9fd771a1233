"""Scores of tags and trees against hand-computed numbers and a second implementation of their definitions."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.metrics import breakdown_trees, compare_trees, confusion, score_trees

RELATIONS = [
    "nsubj",
    "obl:arg",
    "obl",
    "det",
    "case",
    "punct",
    "root",
    "aux:pass",
    "conj",
    "cc",
    "nmod:poss",
    "discourse",
    "clf",
    "weird",
]
BUNDLES = ["_", "Case=Nom|Number=Sing", "Number=Sing|Case=Nom", "Case=Nom|Number=Sing|Typo=Yes", "Case=Acc",
           "Number[psor]=Sing", "Foreign=Yes"]  # fmt: skip
FUNCTION = {"aux", "cop", "mark", "det", "clf", "case", "cc", "punct", "weird"}
UNIVERSAL = {"Case", "Number", "Foreign"}

Row = dict[str, Any]


def rows_of(rng: random.Random, lengths: list[int]) -> list[list[Row]]:
    return [
        [
            {
                "form": f"w{k}",
                "upos": rng.choice("AB"),
                "xpos": rng.choice("abc"),
                "feats": rng.choice(BUNDLES),
                "head": rng.randint(0, n),
                "deprel": rng.choice(RELATIONS),
            }
            for k in range(n)
        ]
        for n in lengths
    ]


def by_definition(predicted: list[list[Row]], gold: list[list[Row]]) -> dict[str, float]:
    """Word by word, as the shared task says it: precision over the system's words, recall over those of gold."""
    pairs = [(p, g) for ours, theirs in zip(predicted, gold, strict=True) for p, g in zip(ours, theirs, strict=True)]

    def f1(right: int, system: int, reference: int) -> float:
        if system + reference == 0:
            return 0.0
        precision, recall = right / system if system else 0.0, right / reference if reference else 0.0
        return 200 * precision * recall / (precision + recall) if precision + recall else 0.0

    def base(word: Row) -> str:
        return str(word["deprel"]).split(":")[0]

    def features(word: Row) -> list[str]:
        return sorted(entry for entry in word["feats"].split("|") if entry.split("=")[0] in UNIVERSAL)

    n = len(pairs)
    content = [(p, g) for p, g in pairs if base(g) not in FUNCTION]
    return {
        "uas": f1(sum(p["head"] == g["head"] for p, g in pairs), n, n),
        "las": f1(sum((p["head"], base(p)) == (g["head"], base(g)) for p, g in pairs), n, n),
        "clas": f1(
            sum((p["head"], base(p)) == (g["head"], base(g)) for p, g in content),
            sum(base(p) not in FUNCTION for p, _ in pairs),
            len(content),
        ),
        "upos": f1(sum(p["upos"] == g["upos"] for p, g in pairs), n, n),
        "xpos": f1(sum(p["xpos"] == g["xpos"] for p, g in pairs), n, n),
        "ufeats": f1(sum(features(p) == features(g) for p, g in pairs), n, n),
    }


@given(st.lists(st.integers(1, 5), max_size=5), st.integers(0, 2**30))
@settings(max_examples=150, deadline=None)
def test_scores_by_definition(lengths: list[int], seed: int) -> None:
    rng = random.Random(seed)
    gold, predicted = rows_of(rng, lengths), rows_of(rng, lengths)
    every = ["head", "deprel", "upos", "xpos", "feats"]  # some may be empty by chance
    score = score_trees(Treebank.of(predicted), Treebank.of(gold), bootstrap=0, columns=every).as_dict()
    for name, value in by_definition(predicted, gold).items():
        assert score[name] == pytest.approx(value), name


def test_scores_by_hand() -> None:
    # gold: the(det>2) dog(nsubj>3) barks(root) loudly(advmod>3) .(punct>3)
    gold = Treebank.of(
        [[("the", "DET", 2, "det"), ("dog", "NOUN", 3, "nsubj"), ("barks", "VERB", 0, "root"),
          ("loudly", "ADV", 3, "advmod"), (".", "PUNCT", 3, "punct")]]
    )  # fmt: skip
    predicted = gold.with_columns(
        heads=[2, 3, 0, 2, 2],  # loudly and . are wrong
        deprel=["nmod:poss", "nsubj:pass", "root", "advmod", "punct"],  # the determiner is a content word here
        upos=["DET", "NOUN", "NOUN", "ADV", "PUNCT"],
    )
    score = score_trees(predicted, gold, bootstrap=0)
    assert score.uas == 60 and score.las == 40 and score.upos == 80
    assert math.isnan(score.xpos) and score.left_out["xpos"] == "<memory> has no xpos" and "xpos" not in score.as_dict()
    # content: gold dog barks loudly (3), predicted the dog barks loudly (4), right dog barks (2)
    assert score.clas == pytest.approx(100 * 2 * 2 / (3 + 4))
    assert score.as_dict()["clas"] == pytest.approx(57.142857)


def test_a_treebank_is_right_about_itself() -> None:
    trees = Treebank.of(rows_of(random.Random(3), [4, 2, 7]))
    score = score_trees(trees, trees)
    assert [getattr(score, name) for name in ("uas", "las", "clas", "upos", "xpos", "ufeats")] == [100.0] * 6
    assert score.intervals["las"] == (100.0, 100.0) == score.interval and score.words == 13 and score.n == 3
    assert str(score).startswith("UAS = 100.00 ± 0.0, LAS = 100.00 ± 0.0 | punct:yes|subtypes:no|n:3|words:13|")


def test_words_without_a_gold_head_are_left_out() -> None:
    gold = Treebank.of([[("a", "X", -1, "_"), ("b", "X", 0, "root"), ("c", "X", 2, "obj")]])
    score = score_trees(gold.with_columns(heads=[2, 0, 1], deprel=["det", "root", "obj"]), gold, bootstrap=0)
    assert (score.uas, score.las, score.clas, score.upos, score.heads) == (50, 50, 50, 100, 2)
    assert "heads:2" in score.signature


def test_what_was_not_predicted_is_not_scored() -> None:
    gold = Treebank.of([[("a", "X", 2, "det", "a", "DT"), ("b", "Y", 0, "root", "b", "NN")]] * 2)
    parsed = gold.with_predictions(heads=[2, 0, 0, 1])
    for again in (parsed, Treebank.from_bytes(parsed.to_bytes()), parsed.part(1, 2), parsed.take([1, 0])):
        assert again.predicted == {"head"}
        assert again.to_bytes().count(b"# isogloss_predicted = HEAD\n") == 1
    score = score_trees(parsed, gold, bootstrap=10)
    assert score.measures == ("uas",) and score.uas == 50 and set(score.intervals) == {"uas"}
    assert str(score).startswith("UAS = 50.00") and "LAS" not in str(score)
    assert score_trees(parsed, gold, columns=["head", "deprel"]).measures == ("uas", "las", "clas")
    tagged = Treebank.from_bytes(parsed.to_bytes()).with_predictions(upos=["X", "Y", "Y", "Y"])
    again = Treebank.from_bytes(tagged.to_bytes())
    assert again.predicted == {"head", "upos"} and score_trees(again, gold).measures == ("uas", "upos")
    with pytest.raises(ParameterError, match="columns should be a list of some of head, deprel"):
        score_trees(parsed, gold, columns=["lemma"])
    with pytest.raises(TreebankError, match="nothing in it can be scored"):
        score_trees(Treebank.from_text(gold.text()), gold)


def test_the_note_keeps_line_ends_marks_and_what_must_stand_first() -> None:
    table = "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\r\n\r\n"
    data = ("# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\r\n# text = a\r\n" + table).encode()
    trees = Treebank.from_bytes(b"\xef\xbb\xbf" + data).with_predictions(upos=["_"])
    first, second, third = trees.to_bytes().split(b"\r\n")[:3]
    assert first.startswith(b"\xef\xbb\xbf# global.columns") and third == b"# text = a"
    assert second == b"# isogloss_predicted = UPOS"
    assert b"#" not in Treebank.from_bytes(data, format="conllu").with_predictions(upos=["_"]).part(0, 0).to_bytes()


def test_nothing_scores_nothing() -> None:
    empty = Treebank.of([])
    score = score_trees(empty, empty)
    assert score.uas == 0.0 and score.clas == 0.0 and score.intervals == {}


@pytest.mark.parametrize(
    ("predicted", "says"),
    [
        ([["a", "b"], ["c", "x"]], "sentence 2 .number 2.: word 2 is 'x' in <memory> but 'd' in <memory> .line 5."),
        ([["a", "b"], ["c"]], "sentence 2 .number 2.: 1 words in <memory> but 2"),
        ([["a", "b"]], "has 1 sentences but <memory> has 2"),
        ([["a"], ["b", "c", "d"]], "sentence 1 .number 1.: 1 words"),
    ],
)
def test_other_words_are_refused(predicted: list[list[str]], says: str) -> None:
    gold = Treebank.of([[("a",), ("b",)], [("c",), ("d",)]])
    with pytest.raises(TreebankError, match=says):
        score_trees(Treebank.of([[(word,) for word in sentence] for sentence in predicted]), gold)


def test_space_within_words_does_not_matter() -> None:
    gold = Treebank.of([[("10 000", "NUM", 0, "root")]])
    assert score_trees(Treebank.of([[("10000", "NUM", 0, "root")]]), gold).las == 100


def test_comparison_is_symmetric_and_sees_what_is_there() -> None:
    rng = random.Random(0)
    gold = Treebank.of(rows_of(rng, [6] * 150))
    noise = np.random.default_rng(0)

    def damaged(share: float) -> Treebank:
        fresh = noise.integers(0, 7, gold.n_words)
        return gold.with_columns(heads=np.where(noise.random(gold.n_words) < share, fresh, gold.heads))

    good, bad = damaged(0.1), damaged(0.3)
    found = compare_trees(good, bad, gold, measure="uas", resamples=2000)
    assert found.first == score_trees(good, gold, bootstrap=0).uas
    assert found.delta == pytest.approx(found.first - found.second) and found.delta > 0
    assert found.interval[0] > 0 and found.p_value < 0.01
    back = compare_trees(bad, good, gold, measure="uas", resamples=2000)
    assert back.delta == -found.delta and back.p_value == found.p_value
    same = compare_trees(good, good, gold, resamples=100)
    assert same.delta == 0 and same.p_value == 1.0 and "ΔLAS" in str(same)
    assert compare_trees(damaged(0.2), damaged(0.2), gold, resamples=2000).p_value > 0.01
    with pytest.raises(ParameterError, match="measure should be one of uas"):
        compare_trees(good, bad, gold, measure="mlas")


def test_interval_agrees_with_resampling_by_hand() -> None:
    rng = random.Random(5)
    gold, predicted = Treebank.of(rows_of(rng, [3, 9, 5, 7] * 8)), Treebank.of(rows_of(rng, [3, 9, 5, 7] * 8))
    low, high = score_trees(predicted, gold, bootstrap=4000).intervals["uas"]
    draws = np.random.default_rng(9)
    hits = predicted.heads == gold.heads
    values = []
    for _ in range(4000):
        chosen = draws.integers(0, len(gold), len(gold))
        flags = np.concatenate([hits[gold.offsets[k] : gold.offsets[k + 1]] for k in chosen])
        values.append(100 * flags.mean())
    assert np.quantile(values, [0.025, 0.975]) == pytest.approx([low, high], abs=1)


@given(st.lists(st.integers(1, 14), min_size=1, max_size=4), st.integers(0, 2**30))
@settings(max_examples=60, deadline=None)
def test_breakdowns_by_counting(lengths: list[int], seed: int) -> None:
    rng = random.Random(seed)
    theirs, ours = rows_of(rng, lengths), rows_of(rng, lengths)
    gold, predicted = Treebank.of(theirs), Treebank.of(ours)

    def distance(at: int, word: Row) -> str:
        if word["head"] == 0:
            return "root"
        gap = abs(at + 1 - word["head"])
        return next((name for name, last in (("1", 1), ("2", 2), ("3-6", 6), ("7-10", 10)) if gap <= last), "11-")

    kinds = {"distance": distance, "deprel": lambda at, word: word["deprel"].split(":")[0]}
    for by, kind in kinds.items():
        words, found, heads, labels, hits = Counter(), Counter(), Counter(), Counter(), Counter()  # type: ignore[var-annotated]
        for ours_here, theirs_here in zip(ours, theirs, strict=True):
            for at, (p, g) in enumerate(zip(ours_here, theirs_here, strict=True)):
                head = p["head"] == g["head"]
                label = head and p["deprel"].split(":")[0] == g["deprel"].split(":")[0]
                words[kind(at, g)] += 1
                found[kind(at, p)] += 1
                heads[kind(at, g)] += head
                labels[kind(at, g)] += label
                hits[kind(at, p)] += label if by == "deprel" else head
        result = breakdown_trees(predicted, gold, by)
        assert set(result) == set(words) | set(found)
        for name, row in result.items():
            assert (row["words"], row["predicted"]) == (words[name], found[name])
            assert row["uas"] == pytest.approx(100 * heads[name] / max(words[name], 1))
            assert row["las"] == pytest.approx(100 * labels[name] / max(words[name], 1))
            assert row["precision"] == pytest.approx(100 * hits[name] / max(found[name], 1))
    for by in ("upos", "length"):
        assert sum(row["words"] for row in breakdown_trees(predicted, gold, by).values()) == gold.n_words

    matrix = confusion(predicted, gold, subtypes=True)
    pairs = Counter(
        (g["deprel"], p["deprel"]) for a, b in zip(theirs, ours, strict=True) for g, p in zip(a, b, strict=True)
    )
    for (i, name), (j, other) in itertools.product(enumerate(matrix.names), enumerate(matrix.names)):
        assert matrix.counts[i, j] == pairs[name, other]
    assert matrix.counts.sum() == gold.n_words
    wrong = Counter({pair: times for pair, times in pairs.items() if pair[0] != pair[1]})
    worst = matrix.worst(3)
    assert [times for *_, times in worst] == [times for _, times in wrong.most_common(3)]
    assert all(wrong[name, other] == times for name, other, times in worst)


def test_confusion_of_attached_words_and_of_tags() -> None:
    gold = Treebank.of([[("a", "X", 2, "obl:arg"), ("b", "Y", 0, "root"), ("c", "X", 1, "obj")]])
    predicted = gold.with_columns(heads=[2, 0, 2], deprel=["obl", "root", "nmod"], upos=["X", "X", "X"])
    assert confusion(predicted, gold).worst() == [("obj", "nmod", 1)]
    assert confusion(predicted, gold, subtypes=True).worst() == [("obl:arg", "obl", 1), ("obj", "nmod", 1)]
    assert confusion(predicted, gold, attached=True).worst() == []
    tags = confusion(predicted, gold, "upos")
    assert tags.names == ("X", "Y") and tags.counts.tolist() == [[2, 0], [1, 0]]
    with pytest.raises(ParameterError, match="by should be"):
        breakdown_trees(predicted, gold, "colour")
