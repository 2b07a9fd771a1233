"""`Segmenter`: cuts are as enumeration says, rules turn pieces into morphemes, and the commands hold with bad input."""

from __future__ import annotations

import gzip
import json
import signal
import warnings
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isogloss import samples, store
from isogloss.cli import main
from isogloss.data import Segmentation, Text
from isogloss.data.formats.segmentations import parse_segmentation, parse_words
from isogloss.data.graphemes import graphemes
from isogloss.data.segmentation import surface_pieces
from isogloss.errors import ModelError, ParameterError, SegmentationError, UsageError
from isogloss.features import Axis, phrases
from isogloss.learners.loglinear import Likelihood
from isogloss.learners.models import Model
from isogloss.learners.runner import Interrupted
from isogloss.progress import QuietProgress
from isogloss.tasks.segment import Segmenter
from isogloss.tasks.segment.cuts import FittedCuts, PiecesMet, border_posteriors, joined, rows_of, segments_of
from isogloss.tasks.segment.rewrites import SAME, FittedRewrites, Rule, RuleBook, rule_of
from isogloss.tasks.segment.seen import KNOWN, Places, TextKnowledge, seen_words
from isogloss.tasks.segment.types import WordTypes

CUT = samples.morphemes()
FEW = CUT[:80]


@pytest.fixture(scope="module")
def segmenter() -> Segmenter:
    return Segmenter(rounds=3, iterations=30).fit(CUT.text, CUT)


# --- what is known of text


def counted(words: list[str], string: str) -> list[int]:
    """What a text says of a string, without our tries."""
    before = {word[: -len(string)][-1:] for word in words if word.endswith(string)}
    behind = {word[len(string) :][:1] for word in words if word.startswith(string)}
    return [
        sum(word.startswith(string) for word in words), sum(word.endswith(string) for word in words),
        sum(string in word for word in words), int(string in words), min(8, len(behind)), min(8, len(before)),
    ]  # fmt: skip


def test_knowledge_of_text_is_what_a_search_finds() -> None:
    words = ["abab", "ab", "ba", "abba", "bab", "aab", "b"]
    text = TextKnowledge.of([*words, "AB", "Abab"], longest=4)
    for string in ("a", "b", "ab", "ba", "abb", "abab", "bb"):
        number = text.substrings.spans(text.encode([string]).letters)[len(string) - 1]
        wanted = counted(words, string)
        if wanted[2] >= 2 or wanted[3]:
            assert text.table[:, number].tolist() == wanted, string
    assert text.has(["abab", "ABBA", "abbab"]).tolist() == [True, True, False]


def test_a_word_says_nothing_of_itself() -> None:
    """What is seen of a word of the text is what is seen where it is not there."""
    words = ["walk", "walks", "walked", "talk", "talks", "talked", "call", "calls"]
    for word in ("walked", "calls", "talk"):
        with_it, without = (TextKnowledge.of([w for w in words if w != left], 6) for left in ("", word))
        found = []
        for text in (with_it, without):
            types = text.encode([word])
            found.append(text.spans([word], types, Places(types.letters, 6))[:4])
        np.testing.assert_array_equal(found[0], found[1], err_msg=word)
    assert len(KNOWN) == 6


@pytest.mark.parametrize("longest", [1, 3, 20])
def test_spans_know_where_they_are(longest: int) -> None:
    words = ["abcab", "a", "xyz"]
    places = Places(WordTypes.of(words).letters, longest)
    first = np.cumsum([0, *map(len, words)])
    wanted = [
        (w, first[w] + b, first[w] + e)
        for w, word in enumerate(words)
        for b in range(len(word))
        for e in range(b + 1, min(len(word), b + longest) + 1)
    ]
    assert [*zip(places.owners.tolist(), places.begin.tolist(), places.end.tolist(), strict=True)] == wanted
    assert places.starting.tolist() == [b == first[w] for w, b, _ in wanted]
    assert places.ending.tolist() == [e == first[w + 1] for w, _, e in wanted]


def test_codes_of_phrases_tell_sequences_apart() -> None:
    letters = np.array([1, 2, 1, 2, 2, 1])
    codes = phrases(Axis([0, 4, 6], letter=letters), 3, "letter")
    spans = [(b, e) for n, m in ((0, 4), (4, 6)) for b in range(n, m) for e in range(b + 1, min(m, b + 3) + 1)]
    for one, other in product(range(len(spans)), repeat=2):
        alike = letters[slice(*spans[one])].tolist() == letters[slice(*spans[other])].tolist()
        assert (codes[one] == codes[other]) == alike


# --- pieces of words


def edits(piece: str, morpheme: str) -> int:
    """Letters to replace, leave out and put in, by the recursion itself."""
    if not piece or not morpheme:
        return len(piece) + len(morpheme)
    return min(
        edits(piece[1:], morpheme[1:]) + (piece[0] != morpheme[0]),
        edits(piece[1:], morpheme) + 1,
        edits(piece, morpheme[1:]) + 1,
    )


def test_pieces_of_words_are_those_of_the_fewest_edits() -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        word = "".join(rng.choice(list("abc"), rng.integers(2, 7)))
        morphemes = tuple("".join(rng.choice(list("abc"), rng.integers(1, 4))) for _ in range(rng.integers(1, 4)))
        if "".join(morphemes) == word or len(morphemes) > len(word):
            continue
        (pieces,) = surface_pieces([word], [morphemes])
        assert "".join(pieces) == word
        least = min(
            sum(edits(word[a:b], one) for (a, b), one in zip(y, morphemes, strict=True))
            for y in ways(len(word))
            if len(y) == len(morphemes)
        )
        assert sum(map(edits, pieces, morphemes)) == least, (word, morphemes, pieces)


# --- cuts


def ways(n: int) -> list[tuple[tuple[int, int], ...]]:
    """All ways to cut n letters."""
    found = []
    for marks in product((0, 1), repeat=n - 1):
        cuts = [0, *(t + 1 for t, mark in enumerate(marks) if mark), n]
        found.append(tuple(pairwise(cuts)))
    return found


@pytest.mark.parametrize("longest", [2, 5])
def test_rows_of_pieces(longest: int) -> None:
    lengths = np.array([5, 1, 3])
    spans = [
        (w, b, e) for w, n in enumerate(lengths) for b in range(n) for e in range(b + 1, min(n, b + longest) + 1)
    ]  # fmt: skip
    for w, n in enumerate(lengths.tolist()):
        for y in ways(n):
            if max(e - b for b, e in y) > longest:
                continue
            cuts = [tuple((b, b + 1, 0) for b in range(m)) for m in lengths.tolist()]
            cuts[w] = tuple((b, e, 0) for b, e in y)
            found = rows_of(cuts, lengths, longest).tolist()
            assert [spans[k] for k in found] == [(v, b, e) for v, own in enumerate(cuts) for b, e, _ in own]


def test_long_pieces_are_cut_and_joined_again() -> None:
    for sizes in ([3], [4, 9, 1], [12], [8, 2]):
        cut = segments_of(sizes, 4)
        assert max(end - begin for begin, end, _ in cut) <= 4
    assert joined(segments_of([3, 2, 1], 4), 4) == segments_of([3, 2, 1], 4)
    assert joined(segments_of([13, 2], 4), 4) == ((0, 13, 0), (13, 15, 0))
    assert joined(segments_of([9, 1], 4), 4) == ((0, 9, 0), (9, 10, 0))


def fitted(words: list[str], longest: int) -> tuple[FittedCuts, TextKnowledge]:
    text = TextKnowledge.of(words, longest)
    seen = seen_words(words, text)
    cuts = [segments_of([1] * len(word), longest) for word in words]
    return FittedCuts.collected(seen, cuts, believed=False, min_count=1), text


def test_the_model_of_cuts_agrees_with_enumeration_and_its_gradient_with_differences() -> None:
    rng = np.random.default_rng(5)
    words, longest = ["abac", "ba", "c", "cabab"], 3
    unfinished, text = fitted(words, longest)
    seen = seen_words(words, text)
    model = unfinished.model(seen)
    weights = rng.normal(size=model.n_weights)
    nodes = model.nodes.nodes(weights[: model.nodes.n_weights])
    spans = model.spans.nodes(weights[model.nodes.n_weights :][: model.spans.n_weights])[:, 0]
    step, start, end = weights[-3:]
    first, row = 0, 0
    rows = {}
    for w, word in enumerate(words):
        for b in range(len(word)):
            for e in range(b + 1, min(len(word), b + longest) + 1):
                rows[w, b, e], row = row, row + 1
    gold = []
    for w, word in enumerate(words):
        n, scores = len(word), {}
        for y in ways(n):
            if max(e - b for b, e in y) > longest:
                continue
            score = start + end + step * (len(y) - 1)
            for b, e in y:
                inside = nodes[first + b + 1 : first + e, 1].sum()
                score += nodes[first + b, 0] + inside + spans[rows[w, b, e]]
            scores[y] = score
        z = np.logaddexp.reduce(list(scores.values()))
        dist = model.batch(weights, np.array([w]))[0]
        assert dist.log_partition() == pytest.approx(z)
        best = max(scores, key=lambda y: scores[y])
        assert tuple((b, e) for b, e, _ in dist.argmax()) == best
        borders = [sum(np.exp(s - z) for y, s in scores.items() if t in {b for b, _ in y}) for t in range(1, n)]
        found = border_posteriors(np.array(dist.segment_marginals())[:, :, 0])
        own = [t for t in range(1, n) if t < longest]  # longer pieces go on
        np.testing.assert_allclose(found[: len(own)], borders[: len(own)], atol=1e-12)
        gold.append(tuple((b, e, 0) for b, e in best))
        first += n
    likelihood = Likelihood(model, gold=gold)
    slope, other = np.zeros(model.n_weights), np.zeros(model.n_weights)
    value = likelihood.add_gradient(weights, slope)
    listed = Model.add_likelihood(model, weights, model.gold(gold), other, None, 1.0)
    assert value == pytest.approx(listed)
    np.testing.assert_allclose(slope, other, atol=1e-10)
    for k in rng.choice(model.n_weights, 25, replace=False):
        step_ = np.zeros(model.n_weights)
        step_[k] = 1e-5
        up, down = (likelihood.add_gradient(weights + sign * step_, np.zeros_like(slope)) for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(slope[k], abs=1e-6)


@pytest.mark.parametrize("longest", [3, 8])
def test_words_do_not_count_their_own_pieces(longest: int) -> None:
    cut = [("ab", "ab", "a"), ("ab",), ("c", "abab"), ("b", "b"), ("bc", "b")]
    words = ["".join(pieces) for pieces in cut]
    seen = seen_words(words, TextKnowledge.of(words, longest))
    cuts = [segments_of([len(piece) for piece in pieces], longest) for pieces in cut]
    each = [[word[b:e] for b, e, _ in y] for word, y in zip(words, cuts, strict=True)]
    rows = rows_of(cuts, seen.lengths, longest)
    met = PiecesMet.of(seen, rows)
    spans = [
        (w, word[b:e])
        for w, word in enumerate(words) for b in range(len(word)) for e in range(b + 1, min(len(word), b + longest) + 1)
    ]  # fmt: skip
    every = [sum(own.count(span) for own in each) for _, span in spans]
    others = [often - each[w].count(span) for often, (w, span) in zip(every, spans, strict=True)]
    assert max(others) > 1 and min(others) == 0
    assert met.column(seen).tolist() == [often.bit_length() for often in every]
    assert met.column(seen, rows).tolist() == [often.bit_length() for often in others]
    other = seen_words(["xab"], TextKnowledge.of(words, longest))
    known = {span: often.bit_length() for (_, span), often in zip(spans, every, strict=True)}
    assert met.column(other).tolist() == [0, 0, 0, known["a"], known["ab"], known["b"]]


def test_gold_of_another_size_is_refused() -> None:
    unfinished, text = fitted(["ab", "c"], 3)
    model = unfinished.model(seen_words(["ab", "c"], text))
    with pytest.raises(ParameterError, match="1 targets were given"):
        model.gold([((0, 2, 0),)])


# --- rules


@pytest.mark.parametrize(
    ("piece", "morpheme", "rule"),
    [
        ("happi", "happy", Rule(0, "i", "y")), ("stopp", "stop", Rule(3, "", "")),
        ("ess", "es", Rule(3, "", "")), ("r", "er", Rule(1, "", "e")),
        ("bak", "bake", Rule(0, "", "e")), ("went", "go", Rule(2, "went", "go")), ("s", "s", SAME),
        ("tanzani", "Tanzania", Rule(2, "tanzani", "Tanzania")), ("İ", "i", Rule(2, "i̇", "i")),
    ],
)  # fmt: skip
def test_rules(piece: str, morpheme: str, rule: Rule) -> None:
    assert rule_of(piece, morpheme) == rule
    if len(piece.lower()) == len(piece):
        assert rule.on(piece) == morpheme


def test_rules_fit_where_they_were_met() -> None:
    pairs = {("happi", "happy"): 3, ("lazi", "lazy"): 2, ("stopp", "stop"): 2, ("ski", "ski"): 4, ("went", "go"): 1}
    book = RuleBook.of(pairs, 10)
    pairs |= {("bak", "bake"): 1, ("lov", "love"): 1}
    book = RuleBook.of(pairs, 10)
    pieces = ("angri", "Went", "mak", "mal", "hugg", "ss")
    results = {piece: [book.rules[k].on(piece) for k in book.fitting(piece)] for piece in pieces}
    assert {piece: own[1:] for piece, own in results.items()} == {
        "angri": ["angry"], "Went": ["Go"], "mak": ["make"], "mal": [], "hugg": ["hug"], "ss": [],
    }  # fmt: skip
    assert len(RuleBook.of(pairs, 0).rules) == 7  # each of a piece alone


def test_rewriting_learns_which_rule_applies(segmenter: Segmenter) -> None:
    found = segmenter.predict(Text.of(["happily marries stopping gladness"]))[0]
    assert found[:3] == (("happy", "ly"), ("marry", "s"), ("stop", "ing"))
    plain = Segmenter(rounds=2, iterations=10, rewrites=0).fit(CUT.text, CUT).predict(CUT.text)
    assert plain.is_surface and segmenter.n_rules_ > 0


def test_a_morpheme_does_not_say_that_it_is_known() -> None:
    cut = [(("bak", "ed"), ("bake", "ed")), (("bak", "ing"), ("bake", "ing")), (("lov", "ed"), ("love", "ed"))]
    rules = FittedRewrites.rules_of(cut, 10)
    text = TextKnowledge.of(["x"], 4)
    choosing = rules._choosing([pieces for pieces, _ in cut], text, [m for _, own in cut for m in own])
    known = {name: choosing.parts.columns["known"][k] for k, name in enumerate(choosing.results)}
    assert known["love"] == 0 and known["bake"] == 1  # bake is in another word, too


# --- the estimator


def test_words_of_gold_are_cut_as_in_gold(segmenter: Segmenter) -> None:
    score = segmenter.score(CUT)
    assert score.morpheme_f1 > 97 and score.boundary_f1 > 97
    assert segmenter.supervised_ and len(segmenter.trace_) and np.diff(segmenter.trace_).max() <= 1e-9


def test_gold_as_text_leaks_no_labels() -> None:
    """Of a segmentation given as text, the words alone are learnt from."""
    other = Segmentation.at(CUT.text, [("x",)] * CUT.n_words)
    one, two = (Segmenter(rounds=2).fit(text).predict(FEW.text) for text in (CUT, other))
    assert one.to_bytes() == two.to_bytes()
    assert list(parse_words(CUT.to_bytes())) == list(parse_words(other.to_bytes())) == list(CUT.text)


@pytest.mark.parametrize("line", [("@@x", ["@@x"]), ("@@x", ["@@", "x"]), ("a@@b", ["a", "@@b"]), ("@@", ["@", "@"])])
def test_words_with_the_mark_in_them_are_read_as_they_were_written(line: tuple[str, list[str]]) -> None:
    written = Segmentation.of([line])
    assert parse_segmentation(written.to_bytes()).words() == written.words()


def test_lines_stay_lines(segmenter: Segmenter) -> None:
    text = Text.of(["", "unhappy words", "", "x"])
    found = segmenter.predict(text)
    assert len(found) == 4 and found[0] == () and len(found[1]) == 2
    lines = found.to_bytes(labels=True, confidence=True).decode().split("\n")
    assert lines[0] == lines[2] == "" and lines[1].count("\t") == 3
    again = parse_segmentation(found.to_bytes(labels=True, confidence=True))
    assert list(again) == list(found)


@pytest.mark.parametrize(
    "word", ["e\u0301te\u0301s", "\U00010330\U00010331\U00010332", "9/11", "x" * 70, "ÉCOLE", "İstanbul", "@@", "ﬃ"]
)
def test_strange_words(word: str, segmenter: Segmenter) -> None:
    pieces = Segmenter(rounds=2, iterations=5, rewrites=0).fit(FEW.text, FEW).predict(Text.of([word]))[0][0]
    assert "".join(pieces) == word
    clusters = graphemes(word)
    cuts, at = set(np.cumsum([len(cluster) for cluster in clusters]).tolist()), 0
    for piece in pieces:
        at += len(piece)
        assert at in cuts  # nothing is cut between a letter and its accent
    assert len(segmenter.predict_proba(Text.of([word]))[0]) == len(clusters) - 1
    told = segmenter.explain(word)
    assert told["letters"] == list(clusters) and 0 < told["ways"][0]["probability"] <= 1


def test_ways_are_in_order_and_no_more_than_all(segmenter: Segmenter) -> None:
    text = Text.of(["unhappily", "ab"])
    found = segmenter.predict_k_best(text, 4)
    assert [len(one) for one in found] == [4, 2]
    assert sum(p for p, _ in found[1]) == pytest.approx(1.0, abs=0.2)
    assert found[0][0][1] == segmenter.predict(text)[0][0]
    with pytest.raises(ParameterError, match="k should be 1"):
        segmenter.predict_k_best(text, 0)


def test_ways_of_a_model_of_text_come_once(segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch) -> None:
    from isogloss.tasks.segment import segmenter as module

    found = Segmenter(rounds=3).fit(CUT.text)
    text = Text.of(["unhappily walks", "x unhappily"])
    each = found.predict_k_best(text, 20)
    for ways in each:
        assert len({morphemes for _, morphemes in ways}) == len(ways)
        assert [p for p, _ in ways] == sorted((p for p, _ in ways), reverse=True)
    assert [len(ways) for ways in each] == [20, 16, 1, 20] and each[0] == each[3]
    assert sum(p for p, _ in each[1]) == pytest.approx(1.0)
    whole = [(one.predict(text).to_bytes(confidence=True), one.predict_k_best(text, 20)) for one in (found, segmenter)]
    monkeypatch.setattr(module, "LETTERS", 1)  # a word at a time
    assert whole == [
        (one.predict(text).to_bytes(confidence=True), one.predict_k_best(text, 20)) for one in (found, segmenter)
    ]


def test_morphemes_that_begin_with_a_vowel_sign() -> None:
    """They are not cut off the consonant before them, but found again by rules of spelling."""
    lines = [(stem + end, [stem, end]) for stem in ("लड़क", "घोड़", "बच्च", "कमर") for end in ("ा", "े", "ों")]
    gold = Segmentation.of(lines)
    assert gold.surface().words()[1][1] == ("लड़", "के")
    for options in ({}, {"gold_as": "constraints"}):
        found = Segmenter(rounds=2, **options).fit(gold.text, gold).predict(gold.text)  # type: ignore[arg-type]
        assert all("".join(own) == word for word, own in found.words())
    assert Segmenter(rounds=2).fit(gold.text, gold).predict(gold.text).words() == gold.words()


def test_text_of_which_no_string_is_known() -> None:
    gold = Segmentation.of([("ab", ["a", "b"]), ("cd", ["ce", "d"])])
    found = Segmenter(rounds=1, longest=1).fit(gold.text, gold).predict(gold.text)
    assert found[0] == (("ab",),)  # pieces of the greatest length go on


def test_text_alone(tmp_path: Path) -> None:
    found = Segmenter(rounds=4).fit(samples.morphemes().text)
    assert not found.supervised_ and found.n_features_ == 0
    words = found.predict(Text.of(["walking helped"]))
    assert words[0] == (("walk", "ing"), ("help", "ed"))
    assert words.labels is not None and set(words.labels[int(words.chosen[0])]) <= {"prefix", "stem", "suffix"}


class Stop(QuietProgress):
    """Sends Ctrl-C before the third step of a stage."""

    def __init__(self, stage: str) -> None:
        self.stage, self.now = stage, ""

    def start(self, name: str, total: float | None = None) -> None:
        self.now = name

    def update(self, done: float, detail: str = "") -> None:
        if self.now == self.stage and done == 2:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("stage", "kept", "gold"),
    [
        ("Learning morphemes", "", None),
        ("Learning morphemes", ".text", FEW),
        ("Learning where words are cut", "", FEW),
        ("Learning how morphemes are spelt", ".spelling", FEW),
    ],
)
def test_what_was_stopped_goes_on_to_the_bit(stage: str, kept: str, gold: Segmentation | None, tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    made: dict[str, Any] = {"rounds": 3, "iterations": 8, "length_penalty": 1.3}
    with pytest.raises(Interrupted, match=rf"checkpoint{kept} keeps iteration 3 of .*resume"):
        Segmenter(**made).fit(CUT.text, gold, Stop(stage), checkpoint=place)
    with pytest.raises(UsageError, match=r"another run: options\.rounds was 3 and is 4"):
        Segmenter(**{**made, "rounds": 4}).fit(CUT.text, gold, checkpoint=place, resume=True)
    for number, checkpoint in enumerate((place, None)):
        found = Segmenter(**made).fit(CUT.text, gold, checkpoint=checkpoint, resume=number == 0)
        found.save(tmp_path / str(number))
    for name in ("model.safetensors", "model.json"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()
    if gold is not None:  # what begins anew does not leave a stage of before
        with pytest.raises(Interrupted):
            Segmenter(**{**made, "rounds": 4}).fit(CUT.text, gold, Stop("Learning morphemes"), checkpoint=place)
        assert not (tmp_path / "checkpoint.spelling").exists()


def test_nothing_to_learn_from() -> None:
    with pytest.raises(SegmentationError, match="no words to learn from"):
        Segmenter().fit(Text.of([""]))
    with pytest.raises(SegmentationError, match="no words with morphemes"):
        Segmenter().fit(Text.of(["a b"]), Segmentation.of([]))
    with pytest.raises(ParameterError, match="cannot be taken for words with their morphemes"):
        Segmenter().fit(Text.of(["a b"]), [("cats", ["cat", "s"])])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="should be one word"):
        Segmenter(rounds=1).fit(FEW.text).explain("two words")


def test_damaged_models_are_refused(segmenter: Segmenter, tmp_path: Path) -> None:
    segmenter.save(tmp_path / "m")
    whole = store.read(tmp_path / "m")
    for name, wrong in (("text.parents", 10**6), ("morphemes.parents", 10**6), ("rewrites.kinds", 9)):
        arrays = {**whole.arrays, name: np.full_like(whole.arrays[name], wrong)}
        store.save(tmp_path / "bad", kind=whole.kind, options=whole.options, arrays=arrays, meta=whole.meta)
        with pytest.raises(ModelError):
            store.load(tmp_path / "bad")
    assert store.load(tmp_path / "m").predict(FEW.text).to_bytes() == segmenter.predict(FEW.text).to_bytes()


# --- the commands


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["sample", "morphemes", "-q"]) == 0
    return tmp_path


def test_commands_from_end_to_end(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = (files / "morphemes.en.tsv").read_bytes()
    (files / "few.tsv.gz").write_bytes(gzip.compress(b"".join(gold.splitlines(True)[::2])))
    (files / "rest.tsv").write_bytes(b"".join(gold.splitlines(True)[1::2]))
    train = ["segment", "train", "morphemes.en.txt", "--gold", "few.tsv.gz", "--rounds", "3", "--iterations", "30"]
    assert main([*train, "--save", "m", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["gold"] == 120 and told["types"] == 469 and told["rules"] > 0 and told["length_penalty"] > 1
    assert main(["segment", "apply", "m", "rest.tsv", "-o", "out.tsv", "--labels", "--confidence"]) == 0
    assert main(["segment", "score", "out.tsv", "rest.tsv", "--json"]) == 0
    score = json.loads(capsys.readouterr().out)
    assert score["morpheme"]["f1"] > 80 and score["boundary"]["f1"] > 85
    assert main(["segment", "score", "out.tsv", "rest.tsv", "--against", "out.tsv"]) == 0
    assert "against" in capsys.readouterr().out
    assert main(["segment", "apply", "m", "rest.tsv", "--nbest", "2"]) == 0
    line, word, _, probability = capsys.readouterr().out.splitlines()[0].split("\t")
    assert (line, word) == ("0", gold.decode().splitlines()[1].split("\t")[0]) and 0 < float(probability) <= 1
    assert main(["segment", "explain", "m", "unhappily"]) == 0
    assert "un + happy + ly" in capsys.readouterr().out


def test_bad_input_is_said_in_words(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "empty.txt").write_text("")
    (files / "blank.txt").write_text("\n\n")
    (files / "plain.txt").write_text("cats\ndogs\n")
    (files / "half.tsv").write_text("cats\tcat @@s\ndogs\n")
    (files / "one.tsv").write_text("cats\tcat @@s\n")
    (files / "other.tsv").write_text("cows\tcow @@s\n")
    train = ["segment", "train", "morphemes.en.txt", "--save", "m", "--rounds", "1"]
    for arguments, status, words in (
        (["segment", "train", "empty.txt", "--save", "m"], 1, "empty.txt: there are no words to learn from"),
        (["segment", "train", "blank.txt", "--save", "m"], 1, "there are no words to learn from"),
        ([*train, "--gold", "plain.txt"], 1, "plain.txt, line 1: 'cats' is no word"),
        ([*train, "--gold", "half.tsv"], 1, "half.tsv, line 2"),
        ([*train, "--gold", "empty.txt"], 1, "empty.txt: there are no words with morphemes"),
        ([*train, "--gold", "none.tsv"], 2, "none.tsv: no such file"),
        ([*train, "--l2", "3"], 2, "--l2 says nothing without --gold"),
        ([*train, "--length-penalty", "9"], 2, "length-penalty"),
        (["segment", "score", "one.tsv", "morphemes.en.tsv"], 1, "has 1 lines and morphemes.en.tsv 240: not the same"),
        (["segment", "score", "one.tsv", "other.tsv"], 1, "one.tsv, line 1: 'cats', where other.tsv has 'cows'"),
        (["segment", "score", "empty.txt", "empty.txt"], 1, "empty.txt: there are no words, so there is nothing to"),
        (["segment", "score", "blank.txt", "blank.txt", "--against", "blank.txt"], 1, "there is nothing to score"),
        (["segment", "apply", "none", "plain.txt"], 2, "none: there is no such saved model"),
    ):
        assert main(arguments) == status, arguments
        said = " ".join(capsys.readouterr().err.split())
        assert words in said and "went wrong inside" not in said, said


def test_gold_that_does_not_fit_is_told_of(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "crowded.tsv").write_text("cats\tcat @@s\n\nox\to @@x @@en\n")
    (files / "shifted.tsv").write_text("cats\tdog @@s\nwin\thouse @@s\nyarn\tbook\nrings\tring @@s\n")
    (files / "hyphens.tsv").write_text("\ncats\tcat-s\nyarn\tyarn\n")
    train = ["segment", "train", "morphemes.en.txt", "--save", "m", "--rounds", "1", "--iterations", "2"]
    for gold, words in (
        ("hyphens.tsv", "hyphens.tsv: no word is cut, and so no word will be (line 2: 'cats' as 'cat-s')"),
        ("crowded.tsv", "crowded.tsv: there are more morphemes than letters in 1 word (line 3: 'ox' as 'o x en')"),
        ("shifted.tsv", "shifted.tsv: 3 of 4 words have morphemes without half of their letters (line 1: 'cats' as"),
    ):
        assert main([*train, "--gold", gold]) == 0
        assert words in " ".join(capsys.readouterr().err.split())
    assert main([*train, "--gold", "morphemes.en.tsv"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_lines_without_words_and_a_tab(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["segment", "train", "morphemes.en.tsv", "--save", "m", "--rounds", "2", "-q"]) == 0
    (files / "in.txt").write_text("walked\twrong @@label\n\n  \nwalks talks\n")
    assert main(["segment", "apply", "m", "in.txt", "-q"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 5 and lines[1] == lines[2] == "" and "wrong" not in lines[0]
    (files / "empty.txt").write_text("")
    assert main(["segment", "apply", "m", "empty.txt"]) == 0
    assert "there are no words in it" in capsys.readouterr().err
