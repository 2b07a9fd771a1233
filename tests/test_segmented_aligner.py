"""`SegmentedAligner`: morphemes are aligned, and links are of words; held against sums that are written out."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isogloss as ig
from conftest import Answer
from isogloss import samples
from isogloss.data import Bitext, Links, Segmentation, Text
from isogloss.errors import ModelError, ParameterError, UsageError
from isogloss.learners.runner import Interrupted
from isogloss.progress import QuietProgress
from isogloss.tasks.align import HMMAligner, SegmentedAligner
from isogloss.tasks.align import morphemes as parts
from isogloss.tasks.segment import Segmenter

VERBS = ("jump", "walk", "climb", "shout", "whisper", "wander")
STEMS = dict(zip(VERBS, ("hypp", "kävel", "kiipe", "huud", "kuiska", "vaelt"), strict=True))
PEOPLE = {"i": "n", "you": "t", "we": "mme"}
CASES = {"in": "ssa", "from": "sta", "on": "lla"}
PLACES = {"garden": "puutarha", "forest": "metsä", "island": "saare", "valley": "laakso"}


def inflected() -> Bitext:
    """Pronouns and prepositions that are endings on the other side, each verb and place in few of its forms."""
    rows = []
    for v, verb in enumerate(VERBS):
        for p, (who, ending) in enumerate(PEOPLE.items()):
            for c, (case, suffix) in enumerate(CASES.items()):
                place = list(PLACES)[(v + p + c) % len(PLACES)]
                if (v + 2 * p + c) % 3:
                    rows.append((f"{who} {verb} {case} {place}", f"{STEMS[verb]}i{ending} {PLACES[place]}{suffix}"))
    return Bitext.of(rows)


class Endings:
    """Cuts what is known to be an ending."""

    def predict(self, text: Text) -> Segmentation:
        found = []
        for s in range(len(text)):
            for word in text.tokens(s):
                ends = [end for end in (*PEOPLE.values(), *CASES.values()) if word.endswith(end)]
                end = max(ends, key=len, default="")
                found.append((word[: len(word) - len(end)], end) if end else (word,))
        return Segmentation.at(text, found)


class Fixed(Segmenter):
    """A segmenter that knows them."""

    def predict(self, text: Any) -> Segmentation:
        return Endings().predict(text)


# Cutting, and going back to words ------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.sampled_from(["a", "bb", "ccc", "dddd", "Ääkköset"]), max_size=5), max_size=5),
    st.integers(1, 5), st.data(),
)  # fmt: skip
def test_morphemes_make_up_their_words(rows: list[list[str]], shortest: int, data: st.DataObject) -> None:
    class Letters:
        def predict(self, text: Text) -> Segmentation:
            assert all(map(is_long, text.vocabulary))
            return Segmentation.at(text, [tuple(word) for s in range(len(text)) for word in text.tokens(s)])

    def is_long(word: str) -> bool:
        return len(word) >= shortest

    text = Text.of([["x"], *rows])
    text = text[1:]  # ids and offsets do not begin at 0
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), bool)
    cut = parts.cut_text(text, Letters(), keep, may_cut=lambda words: np.array([*map(is_long, words)], bool))
    assert len(cut.text) == len(rows)
    wanted, of = [], []
    for row, kept in zip(rows, keep, strict=True):
        own = [tuple(word) if is_long(word) else (word,) for word in row] if kept else []
        wanted.append(tuple(piece for word in own for piece in word))
        of += [k for k, word in enumerate(own) for _ in word]
    assert [cut.text[s] for s in range(len(rows))] == wanted and cut.words.tolist() == of
    for s, row in enumerate(rows):
        for k, word in enumerate(row):
            assert "".join(cut.morphemes(s, k)) == (word if keep[s] else "")


@given(st.data())
def test_links_of_words_are_sums_over_their_morphemes(data: st.DataObject) -> None:
    """Against loops over all pairs of morphemes."""
    sizes = [data.draw(st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=2, max_size=2)) for _ in range(2)]
    cuts = [
        parts.CutText(
            Text.of([["m"] * sum(row) for row in side]),
            np.array([k for row in side for k, n in enumerate(row) for _ in range(n)], np.int32),
        )
        for side in sizes
    ]
    chance = st.floats(0, 1, width=32)
    grids = [
        np.array([[data.draw(chance) for _ in range(sum(t))] for _ in range(sum(s))]).reshape(sum(s), sum(t))
        for s, t in zip(*sizes, strict=True)
    ]
    found = parts.links_of_words(Links.above(grids, 0.0), *cuts)
    for pair, (s, t) in enumerate(zip(*sizes, strict=True)):
        wanted: dict[tuple[int, int], float] = {}
        rows, columns = ([k for k, n in enumerate(row) for _ in range(n)] for row in (s, t))
        for a, i in enumerate(rows):
            for b, j in enumerate(columns):
                if grids[pair][a, b] > 0:
                    wanted[i, j] = wanted.get((i, j), 0.0) + float(np.float32(grids[pair][a, b]))
        own = found[pair].probability
        assert own.keys() == wanted.keys()
        assert all(own[cell] == pytest.approx(min(1.0, p), rel=1e-5) for cell, p in wanted.items())


def test_averages_are_by_pair() -> None:
    one = Links.above([[[0.5, 0.0]], [[0.8]]], 0.0)
    other = Links.above([[[0.25, 1.0]], [[0.4]]], 0.0)
    found = parts.averaged(one, other, np.array([0.5, 0.0]))
    assert found[0].probability == {(0, 0): 0.375, (0, 1): 0.5}
    assert found[1].probability == pytest.approx({(0, 0): 0.8})


def test_short_and_frequent_words_stay_whole() -> None:
    """By counts of the text of the training, without case."""
    text = Bitext.of([("Walks in walks", "gehn")] * 3 + [("talks in", "redn"), ("sees us", "siehn")])
    aligner = SegmentedAligner(segment="source", cut_count=5, cut_length=5)

    class Halves(Segmenter):
        def predict(self, text: Any) -> Segmentation:
            return Segmentation.at(text, [(w[:1], w[1:]) for s in range(len(text)) for w in text.tokens(s)])

    aligner.fit(text, source_segmenter=Halves())
    shown = [aligner.explain(text, pair, source=0)["morphemes"] for pair in (0, 3, 4)]
    assert shown == [["Walks"], ["t", "alks"], ["sees"]]
    aligner.set_params(cut_count=6).fit(text, source_segmenter=Halves())
    assert aligner.explain(text, 0, source=0)["morphemes"] == ["W", "alks"]
    assert aligner.explain(Bitext.of([("balks", "x")]), 0, source=0)["morphemes"] == ["b", "alks"]
    aligner.set_params(cut_count=10**6, cut_length=1).fit(text, source_segmenter=Halves())
    assert [aligner.explain(text, 0, source=k)["morphemes"] for k in (0, 1)] == [["W", "alks"], ["i", "n"]]


# The aligner ---------------------------------------------------------------------------------------------------------


def test_endings_are_linked_to_words() -> None:
    """With known endings, "in the garden" and its one word are all linked; words alone leave most of it out."""
    text = inflected()
    gold = Links.of([[(0, 0), (1, 0), (2, 1), (3, 1)]] * len(text))
    words = HMMAligner().fit(text).score(text, gold)
    cut = SegmentedAligner(segment="target").fit(text, target_segmenter=Fixed())
    found = cut.score(text, gold)
    assert found.recall > words.recall + 25 and found.aer < words.aer - 15
    assert cut.segmenters_[0] is None and isinstance(cut.segmenters_[1], Fixed)
    learnt = SegmentedAligner(segment="target").fit(text).score(text, gold)
    assert learnt.aer < words.aer - 5


def test_probabilities_are_averages_of_both_aligners() -> None:
    """Against what each aligner says of every cell, summed by hand."""
    text = inflected()
    for weight in (0.3, 1.0):
        aligner = SegmentedAligner(segment="target", morpheme_weight=weight, remember=False)
        aligner.fit(text, target_segmenter=Fixed())
        cut = Endings().predict(text.target)
        morphemes = Bitext.of([(text[k][0], [m for word in cut[k] for m in word]) for k in range(len(text))])
        p = HMMAligner(remember=False).fit(text).predict_proba(text)
        q = HMMAligner(remember=False, max_length=2000).fit(morphemes).predict_proba(morphemes)
        for k, own in enumerate(aligner.predict_proba(text)):
            owner = [j for j, word in enumerate(cut[k]) for _ in word]
            summed = np.zeros_like(p[k])
            for column, j in enumerate(owner):
                summed[:, j] += q[k][:, column]
            wanted = (1 - weight) * p[k] + weight * np.minimum(1, summed)
            assert np.abs(own - wanted).max() < 0.01  # links below 0.002 are left out
        links = aligner.predict(text)
        for k, own in enumerate(aligner.predict_proba(text)):
            clear = np.abs(own - aligner.threshold_) > 1e-4
            chosen = np.zeros(own.shape, bool)
            for cell in links[k].links:
                chosen[cell] = True
            assert (chosen == (own >= aligner.threshold_))[clear].all()


def test_lines_stay_lines() -> None:
    """Empty sides and long pairs have no links, and others the same as without them."""
    text = inflected()
    aligner = SegmentedAligner(max_length=8).fit(text)
    long = " ".join(["garden"] * 9)
    mixed = Bitext.of([text[0], ("", "metsässä"), text[1], (long, "metsässä"), ("", ""), text[2]])
    found = aligner.predict(mixed)
    assert len(found) == 6 and [len(found[k]) for k in (1, 3, 4)] == [0, 0, 0]
    alone = aligner.predict(text[:3].take([0, 1, 2]))
    assert [found[k].probability for k in (0, 2, 5)] == [alone[k].probability for k in range(3)]
    assert [grid.size for grid in aligner.predict_proba(mixed)][1::2] == [0, 0, aligner.predict_proba(mixed)[5].size]
    assert len(aligner.predict(Bitext.of([]))) == 0


def test_pairs_with_very_many_morphemes_are_linked_by_their_words() -> None:
    class Letters(Segmenter):
        def predict(self, text: Any) -> Segmentation:
            return Segmentation.at(text, [tuple(word) for s in range(len(text)) for word in text.tokens(s)])

    pairs = [*inflected(), *([("on hill", "mäellä"), ("in hill", "mäessä")] * 2)]
    text = Bitext.of(pairs)
    aligner = SegmentedAligner(segment="source", max_length=4).fit(text, source_segmenter=Letters())
    words = HMMAligner(threshold=0.002, max_length=4).fit(text)
    new = text[:4].take([3, 2, 1])
    for k in range(3):
        assert len(new.source.tokens(k)) == 4 and sum(map(len, new[k][0])) > 8
        assert aligner.predict_proba(new)[k] == pytest.approx(words.predict_proba(new)[k], abs=0.003)


def test_saved_models_say_the_same(tmp_path: Path) -> None:
    text = inflected()
    aligner = SegmentedAligner().fit(text)
    aligner.save(tmp_path / "a.model")
    loaded = ig.load(tmp_path / "a.model")
    new = Bitext.of([("we wander in forest", "vaeltimme metsässä"), ("", ""), ("qqq", "zzz")])
    assert [a.probability for a in loaded.predict(new)] == [a.probability for a in aligner.predict(new)]
    assert sorted(loaded.lexicon()) == sorted(aligner.lexicon())
    assert loaded.pair_scores(new) == pytest.approx(aligner.pair_scores(new), nan_ok=True)
    assert loaded.explain(new, 0, target=1) == aligner.explain(new, 0, target=1)
    saved = loaded._to_saved()
    with pytest.raises(ModelError, match="does not go with its segmenters"):
        SegmentedAligner._from_saved(replace(saved, options=saved.options | {"segment": "source"}))


def test_explain_shows_morphemes() -> None:
    text = inflected()
    aligner = SegmentedAligner(segment="target").fit(text, target_segmenter=Fixed())
    told = aligner.explain(text, 0, target=1)
    assert told["word"] == text[0][1][1] and len(told["morphemes"]) == 2 and told["candidates"][0]["linked"]
    best = told["candidates"][0]
    assert best["posterior"] == pytest.approx(0.55 * best["by_words"] + 0.45 * best["by_morphemes"], abs=2e-4)
    assert aligner.explain(text, 0, source=3)["candidates"][0]["morphemes"] == told["morphemes"]
    with pytest.raises(UsageError, match="no target word 7"):
        aligner.explain(text, 0, target=7)


def test_learning_goes_on() -> None:
    text = inflected()
    aligner = SegmentedAligner(segment="target").fit(text[:20], target_segmenter=Fixed())
    before = aligner.predict(text[20:])
    known = len(aligner.words_.known_words_[0].words)
    assert aligner.update(text[20:]) is aligner
    assert len(aligner.words_.known_words_[0].words) >= known
    assert aligner.predict(text[20:])[0].probability != before[0].probability
    threshold = aligner.threshold_
    aligner.update(Bitext.of([("", "a")]))
    assert aligner.threshold_ == threshold


def test_threshold_from_gold() -> None:
    text = inflected()
    gold = Links.of([[(0, 0), (1, 0), (2, 1), (3, 1)]] * len(text))
    aligner = SegmentedAligner(segment="target").fit(text, target_segmenter=Fixed())
    before = aligner.score(text, gold).aer
    aligner.tune_threshold(text, gold)
    assert aligner.score(text, gold).aer <= before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"symmetrise": "union"}, "symmetrise should be 'posterior'"),
        ({"threshold": "points"}, "threshold should be 'auto' or a number"),
        ({"decode": "viterbi", "symmetrise": "union"}, "should be 'posterior'"),
        ({"morpheme_weight": 0.0}, "morpheme_weight should be a number above 0 to 1"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        SegmentedAligner(**options).fit(inflected())


def test_segmenters_that_are_refused() -> None:
    with pytest.raises(ParameterError, match="source_segmenter says nothing with segment='target'"):
        SegmentedAligner(segment="target").fit(inflected(), source_segmenter=Fixed())
    with pytest.raises(ParameterError, match="should be a Segmenter"):
        SegmentedAligner().fit(inflected(), source_segmenter=Endings())  # type: ignore[arg-type]


class Stop(QuietProgress):
    """Sends Ctrl-C before the third step of the n-th stage of a name."""

    def __init__(self, stage: str, number: int) -> None:
        self.stage, self.left, self.now = stage, number, ""

    def start(self, name: str, total: float | None = None) -> None:
        self.now = name
        self.left -= name == self.stage

    def update(self, done: float, detail: str = "") -> None:
        if self.now == self.stage and not self.left and done == 2:
            signal.raise_signal(signal.SIGINT)


STOPS = {
    ".words": ("Training", 1), ".source": ("Learning morphemes", 1), ".target": ("Learning morphemes", 2),
    "": ("Training", 2),
}  # fmt: skip


@pytest.mark.parametrize("stage", STOPS)
def test_learning_is_taken_up_where_it_was_stopped(tmp_path: Path, stage: str) -> None:
    text, place = inflected(), tmp_path / "run.checkpoint"
    with pytest.raises(Interrupted, match=rf"checkpoint{stage} keeps iteration"):
        SegmentedAligner().fit(text, checkpoint=place, progress=Stop(*STOPS[stage]))
    for number, where in enumerate((place, None)):
        found = SegmentedAligner().fit(text, checkpoint=where, resume=number == 0)
        found.save(tmp_path / str(number))
    for name in ("model.safetensors", "model.json"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()


def test_a_new_run_makes_way(tmp_path: Path) -> None:
    """What an earlier run left of its first stages is not taken for one of this run."""
    text, place = inflected(), tmp_path / "run.checkpoint"
    with pytest.raises(Interrupted):
        SegmentedAligner(null=0.2).fit(text, checkpoint=place, progress=Stop(*STOPS[".words"]))
    with pytest.raises(UsageError, match="another run"):
        SegmentedAligner().fit(text, checkpoint=place, resume=True)
    with pytest.raises(Interrupted):
        SegmentedAligner().fit(text, checkpoint=place, progress=Stop(*STOPS[".source"]))
    assert not (tmp_path / "run.checkpoint.words").exists()
    SegmentedAligner().fit(text, checkpoint=place, resume=True)


# The command ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    text = inflected()
    paths = tmp_path / "a.en", tmp_path / "a.xx"
    for path, side in zip(paths, (text.source, text.target), strict=True):
        path.write_text("".join(" ".join(side.tokens(k)) + "\n" for k in range(len(side))) + "\n", encoding="utf-8")
    return paths


def test_command(files: tuple[Path, Path], tmp_path: Path, isogloss: Any) -> None:
    model, output = tmp_path / "m.model", tmp_path / "o.txt"
    pair = [str(path) for path in files]
    made: Answer = isogloss("align", *pair, "--segment", "target", "--save", model, "-o", output, "--scores")
    assert made.status == 0, made.err
    lines = output.read_text().splitlines()
    assert len(lines) == len(inflected()) + 1 and lines[-1] == "" and ":" in lines[0]
    assert not list(tmp_path.glob("*.checkpoint*"))
    applied = isogloss("align", *pair, "--model", model, "-o", tmp_path / "p.txt")
    assert applied.status == 0 and len((tmp_path / "p.txt").read_text().splitlines()) == len(lines)
    fewer = isogloss("align", *pair, "--model", model, "--max-length", 2, "-o", tmp_path / "q.txt")
    assert fewer.status == 0 and (tmp_path / "q.txt").read_text().strip() == ""
    assert isogloss("lexicon", model).out.startswith("source\ttarget")


def test_command_with_saved_segmenters(files: tuple[Path, Path], tmp_path: Path, isogloss: Any) -> None:
    pair = [str(path) for path in files]
    saved = tmp_path / "xx.segmenter"
    Segmenter(length_penalty=1.8).fit(inflected().target).save(saved)
    plain = isogloss("align", *pair, "--segment", "target", "--scores")
    given = isogloss("align", *pair, "--segment", "target", "--target-segmenter", saved, "--scores")
    weighed = isogloss("align", *pair, "--segment", "target", "--morpheme-weight", 1, "--scores")
    assert plain.status == given.status == weighed.status == 0
    assert len({plain.out, given.out, weighed.out}) == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--morpheme-weight", "0.5"], "says nothing without --segment"),
        (["--source-segmenter", "x"], "Add --segment source"),
        (["--segment", "target", "--source-segmenter", "x"], "says nothing with --segment target"),
        (["--segment", "both", "--chunk", "5"], "--chunk does not go with --segment"),
        (["--segment", "both", "--memory", "4GB"], "--memory does not go with --segment"),
        (["--segment", "both", "--aligner", "model1"], "--aligner does not go with --segment"),
        (["--segment", "both", "--engine", "processes"], "--engine does not go with --segment"),
        (["--segment", "both", "--model", "x"], "--model does not go with --segment"),
        (["--segment", "both", "--symmetrise", "union"], "symmetrise should be 'posterior'"),
    ],
)
def test_command_refuses(files: tuple[Path, Path], more: list[str], words: str, isogloss: Any) -> None:
    answer = isogloss("align", *map(str, files), *more)
    assert answer.status == 2 and words in " ".join(answer.err.split())


def test_sample() -> None:
    """A saved model and the text of the training, as in the docs."""
    text = samples.bitext("en-tr")
    aligner = SegmentedAligner().fit(text)
    assert len(aligner.predict(text)) == len(text)
