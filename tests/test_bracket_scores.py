"""Scores of brackets against numbers of the official program and a second implementation of their definition."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.data import Constituents
from isogloss.errors import ParameterError, TreebankError
from isogloss.metrics import breakdown_brackets, compare_brackets, score_brackets

DELETED = {"-NONE-", ",", ":", "``", "''", "."}
ROOTS = {"", "TOP", "ROOT", "S1", "VROOT"}

# evalb -p COLLINS.prm (as of 2013) on these pairs: matched, gold, found, crossing, words, tags right.
GOLD = [
    "(TOP (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ barks) (ADVP (RB loudly)) (NP (-NONE- *))) (. .)))",
    "(TOP (S (NP (NN I)) (VP (VBD gave) (PRT (RP up)) (NP (NP (DT the) (NN idea)) (PP (IN of) (NP (NN x))))) (. .)))",
    "(TOP (S (`` ``) (NP (NN a)) (, ,) (VP (VB b) (S (VP (TO to) (VP (VB go))))) ('' '')))",
    "(TOP (NP (NP (NN a)) (NP (NN a)) (CC or) (NP=2 (NN b))))",
]
FOUND = [
    "(TOP (S (NP (DT The)) (VP (NN dog) (VBZ barks) (ADVP (RB loudly))) (. .)))",
    "(TOP (S (NP (NN I)) (VP (VBD gave) (ADVP (RB up)) (NP (DT the) (NN idea)) (PP (IN of) (NP (NN x)))) (. .)))",
    "(TOP (S (`` ``) (NP (NN a)) (VP (, ,) (VB b) (VP (TO to) (VP (VB go)))) ('' '')))",
    "(TOP (NP (NP (NP (NN a))) (NN a) (CC or) (NP (NN b))))",
]
EVALB = [(2, 4, 4, 1, 4, 4), (7, 8, 7, 0, 7, 6), (5, 6, 5, 0, 4, 4), (3, 4, 4, 0, 4, 4)]


def test_numbers_of_the_official_program() -> None:
    gold, found = Constituents.of(GOLD), Constituents.of(FOUND)
    for k, (matched, brackets, many, crossing, words, tags) in enumerate(EVALB):
        score = score_brackets(found[k : k + 1], gold[k : k + 1], bootstrap=0)
        assert (score.brackets, score.found, score.words) == (brackets, many, words)
        assert score.recall == pytest.approx(100 * matched / brackets)
        assert score.precision == pytest.approx(100 * matched / many)
        assert score.tags == pytest.approx(100 * tags / words)
        assert score.crossing == crossing
    whole = score_brackets(found, gold, bootstrap=0)
    assert whole.f1 == pytest.approx(200 * 17 / (22 + 20))
    assert (whole.exact, whole.no_crossing) == (0.0, 75.0)


def nodes(text: str, deleted: list[bool] | None = None) -> tuple[list[str], list[str], Counter[tuple[int, int, str]]]:
    """Words, tags, and brackets over the words that count, by a parser of its own."""
    words: list[str] = []
    tags: list[str] = []
    tokens = text.replace("(", " ( ").replace(")", " ) ").split()
    at = 0

    def tree() -> list[tuple[int, int, str]]:
        nonlocal at
        at += 1
        label = ""
        if tokens[at] not in "()":
            label = tokens[at]
            at += 1
        if tokens[at] not in "()":
            words.append(tokens[at])
            tags.append(label)
            at += 2
            return []
        start, found = len(words), []
        while tokens[at] == "(":
            found += tree()
        at += 1
        return [(start, len(words), label), *found]

    spans = tree()
    out = deleted if deleted is not None else [tag in DELETED for tag in tags]
    place = [0]
    for gone in out:
        place.append(place[-1] + (not gone))
    counted: Counter[tuple[int, int, str]] = Counter()
    for begin, end, label in spans:
        name = label.split("-")[0].split("=")[0]
        name = "ADVP" if name == "PRT" else name
        if place[begin] < place[end] and name not in ROOTS:
            counted[place[begin], place[end], name] += 1
    return words, tags, counted


def random_pair(rng: random.Random) -> tuple[str, str]:
    n = rng.randint(1, 9)
    tags = [rng.choice(["NN", "DT", ",", ".", "VB"]) for _ in range(n)]
    theirs = [tag if rng.random() < 0.8 or tag in DELETED else rng.choice(["NN", "VB"]) for tag in tags]

    def grow(own: list[str], low: int, high: int, depth: int) -> str:
        if high - low == 1 and rng.random() < 0.6:
            return f"({own[low]} w{low})"
        many = rng.randint(1, min(high - low, 3)) if depth < 5 else high - low
        cuts = [low, *sorted(rng.sample(range(low + 1, high), many - 1)), high]
        inside = [grow(own, a, b, depth + 1) if depth < 5 else f"({own[a]} w{a})" for a, b in pairwise(cuts)]
        return f"({rng.choice(['S', 'NP', 'PRT', 'ADVP', 'NP-SBJ', 'TOP'])} {' '.join(inside)})"

    return f"(TOP {grow(theirs, 0, n, 0)})", f"(TOP {grow(tags, 0, n, 0)})"


@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_scores_agree_with_their_definition(seed: int, n: int) -> None:
    rng = random.Random(seed)
    pairs = [random_pair(rng) for _ in range(n)]
    right = found = brackets = exact = good = words = crossing = 0
    for ours, theirs in pairs:
        _, gold_tags, gold = nodes(theirs)
        gone = [tag in DELETED for tag in gold_tags]
        _, tags, own = nodes(ours, gone)
        both = gold & own
        right, found, brackets = right + both.total(), found + own.total(), brackets + gold.total()
        exact += gold == own
        good += sum(a == b for a, b, out in zip(tags, gold_tags, gone, strict=True) if not out)
        words += gone.count(False)
        for (a, b, _), many in own.items():
            crosses = any(c < a < d < b or a < c < b < d for c, d, _ in gold)
            crossing += many * crosses
    score = score_brackets(*(Constituents.of(side) for side in zip(*pairs, strict=True)), bootstrap=0)
    assert (score.brackets, score.found, score.words) == (brackets, found, words)
    assert score.f1 == pytest.approx(200 * right / max(found + brackets, 1))
    assert score.exact == pytest.approx(100 * exact / n)
    assert score.tags == pytest.approx(100 * good / max(words, 1))
    assert score.crossing == pytest.approx(crossing / n)


def test_gold_says_which_words_count() -> None:
    gold = Constituents.of(["(S (NP (NN a) (POS ')) (VP (VB b)))"])
    found = Constituents.of(["(S (NP (NN a) ('' ')) (VP (VB b)))"])
    score = score_brackets(found, gold, bootstrap=0)
    assert score.f1 == 100 and score.tags == pytest.approx(200 / 3)


def test_short_sentences_and_missing_ones() -> None:
    gold = Constituents.of(["(S (NP (NN a)) (VP (VB b) (-NONE- *)))", "(S (NN a) (NN b) (NN c))"])
    found = Constituents.of(["(S (NP (NN a)) (VP (VB b)))", ""])
    score = score_brackets(found, gold)
    assert (score.recall, score.precision, score.exact, score.n) == (75.0, 100.0, 50.0, 2)
    assert score.tags == 40.0
    short = score_brackets(found, gold, longest=2)
    assert (short.n, short.f1) == (1, 100.0)
    assert "longest:2" in short.signature
    low, high = score.intervals["f1"]
    assert low <= score.f1 <= high


def test_brackets_are_compared_and_broken_down() -> None:
    gold = Constituents.of(GOLD * 5)
    found = Constituents.of(FOUND * 5)
    better = compare_brackets(gold, found, gold, resamples=200)
    assert better.delta > 0 and better.p_value < 0.05 and "ΔF1" in str(better)
    assert compare_brackets(found, found, gold, resamples=50).p_value == 1.0
    kinds = breakdown_brackets(found, gold)
    assert next(iter(kinds)) == "NP" and kinds["ADVP"]["f1"] == 100.0 and "PRT" not in kinds
    assert sum(kind["brackets"] for kind in kinds.values()) == 5 * 22
    for by in ("width", "length"):
        kinds = breakdown_brackets(found, gold, by)
        assert sum(kind["brackets"] for kind in kinds.values()) == 5 * 22
    with pytest.raises(ParameterError):
        breakdown_brackets(found, gold, "tag")
    with pytest.raises(ParameterError):
        compare_brackets(found, found, gold, measure="las")


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (["(S (NN a))"], "word 1 is 'a'"),
        (["(S (NN x) (NN y))"], "2 words"),
        (["(S (NN x))"] * 2, "2 trees"),
    ],
)
def test_other_words_are_refused(found: list[str], finding: str) -> None:
    with pytest.raises(TreebankError, match=finding):
        score_brackets(Constituents.of(found), Constituents.of(["(S (NN x))"]))


def test_escapes_are_the_same_word() -> None:
    gold = Constituents.of(["(NP (-LRB- -LRB-) (CD 1\\/2))"])
    found = Constituents.assembled([["(", "1/2"]], [["-LRB-", "CD"]], [[("NP", [0, 1])]])
    assert score_brackets(found, gold, bootstrap=0).f1 == 100


def test_punctuation_of_other_tagsets_does_not_count() -> None:
    for tag in ("$.", "$,", "$[", "$-LRB-", "PUNCT", "."):
        gold = Constituents.of([f"(S (NP (N a) (N b)) ({tag} .))"])
        assert score_brackets(Constituents.of([f"(S (NP (N a) (N b) ({tag} .)))"]), gold).f1 == 100.0


def test_nothing_is_not_scored() -> None:
    with pytest.raises(TreebankError, match="nothing to score"):
        score_brackets(Constituents.of([""]), Constituents.of([""]))
    with pytest.raises(ParameterError, match="give Constituents"):
        score_brackets("found.mrg", Constituents.of(["(S (A a))"]))  # type: ignore[arg-type]


def test_files_of_unequal_length_are_refused_with_the_first_tree_that_differs() -> None:
    gold = Constituents.of(GOLD)
    with pytest.raises(TreebankError, match=r"has 3 trees but .* has 4\. .* the first 3 are of the same words: was"):
        score_brackets(Constituents.of(FOUND[:3]), gold)
    with pytest.raises(TreebankError, match=r"part at tree 2 .*: word 1 is '``' in .* but 'I' in"):
        score_brackets(Constituents.of([FOUND[0], *FOUND[2:]]), gold)
    with pytest.raises(TreebankError, match=r"part at tree 4 .*, line 4\): word 1 is 'The' in .* but 'a' in"):
        score_brackets(Constituents.of([*FOUND[:3], FOUND[0], FOUND[3]]), gold)
