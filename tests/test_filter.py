"""Bad pairs are found, good ones kept, and one line in is one line out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss import samples
from isogloss.cli import main
from isogloss.data import Bitext
from isogloss.errors import ParameterError
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.align.filtering import (
    REASONS,
    PairFacts,
    cross_scores,
    filter_pairs,
    judge,
    mismatched,
    noise_threshold,
    row_keys,
)


def shuffled(n, share, seed=0):
    """A synthetic bitext in which a share of the targets belong to other sources, and which."""
    bitext = samples.synthetic(n, seed=seed).bitext
    bad = np.random.default_rng(seed).choice(n, int(share * n), replace=False)
    rows = np.arange(n)
    rows[bad] = np.roll(bad, 1)
    flag = np.zeros(n, bool)
    flag[bad] = True
    return Bitext(bitext.source, bitext.take(rows).target), flag


def precision_recall(found, truth):
    return (found & truth).sum() / max(found.sum(), 1), (found & truth).sum() / truth.sum()


@pytest.mark.parametrize(("n", "share"), [(300, 0.2), (2000, 0.05), (2000, 0.3)])
def test_shuffled_pairs_are_found(n, share):
    """Measured: precision and recall 0.98 and 0.90; 1.00 and 0.90; 0.99 and 0.99."""
    bitext, truth = shuffled(n, share)
    verdicts = filter_pairs(bitext)
    precision, recall = precision_recall(~verdicts.keep, truth)
    assert precision > 0.94 and recall > 0.85
    assert verdicts.noise == pytest.approx(share, rel=0.5)


def test_a_model_of_clean_text_finds_them_too():
    bitext, truth = shuffled(1000, 0.2)
    aligner = HMMAligner().fit(samples.synthetic(2000, seed=0).bitext.part(1000, 2000))
    for options in ({}, {"keep": 0.8}):
        precision, recall = precision_recall(~filter_pairs(bitext, aligner, **options).keep, truth)
        assert precision > 0.92 and recall > 0.84


def test_clean_text_is_left_alone():
    for bitext in (samples.bitext("en-de"), samples.bitext("en-tr"), samples.synthetic(1000, seed=3).bitext):
        assert filter_pairs(bitext).counts()["kept"] >= 0.99 * len(bitext)


def test_a_text_is_judged_better_in_halves_than_by_what_it_taught(tmp_path):
    bitext, truth = shuffled(1000, 0.2)
    HMMAligner().fit(bitext).save(tmp_path / "model")
    halves, at_once = cross_scores(bitext)[0], HMMAligner.load(tmp_path / "model").pair_scores(bitext)
    n_bad = int(truth.sum())
    found = [truth[np.argsort(scores)[:n_bad]].mean() for scores in (halves, at_once)]
    assert found[0] > 0.95 and found[0] > found[1]
    assert np.median(halves[truth]) < 0 < np.percentile(halves[~truth], 5)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_threshold_is_that_of_fewest_errors(share):
    """Two bells whose places are known: the best threshold is where the weighted densities meet."""
    rng = np.random.default_rng(5)
    n_bad = int(20_000 * share)
    score = np.concatenate([rng.normal(-1, 0.5, n_bad), rng.normal(2, 0.7, 20_000 - n_bad)])
    found, threshold = noise_threshold(score, rng.normal(-1, 0.5, 20_000))
    assert found == pytest.approx(share, abs=0.02)
    bad = np.arange(20_000) < n_bad
    errors = [((score < t) != bad).sum() for t in np.linspace(-4, 6, 400)]
    assert ((score < threshold) != bad).sum() <= 1.1 * min(errors) + 10
    assert noise_threshold(np.zeros(0), np.zeros(0))[1] == -np.inf


def test_mismatched_pairs_are_other_pairs_of_like_length():
    bitext = samples.synthetic(200, seed=1).bitext
    other = mismatched(bitext)
    assert sorted(target for _, target in other) == sorted(target for _, target in bitext)
    assert sum(a == b for a, b in zip(bitext, other, strict=True)) <= 4
    assert np.abs(bitext.target.ids.lengths - other.target.ids.lengths).max() <= 20
    assert np.abs(bitext.target.ids.lengths - other.target.ids.lengths).mean() < 1


def test_plain_checks_and_their_order():
    long, words = "a " * 1200, "w1 w2 w3 w4 w5"
    pairs = [
        ("", ""),
        ("a", ""),
        (long, "x"),
        ("a b", "x " * 20),
        (words, words.upper()),
        ("Berlin", "Berlin"),
        ("a b c", "x y z"),
        ("a b c", "x y z"),
        ("a b c d", "x y z"),
    ]
    facts = PairFacts.of(Bitext.of(pairs), np.array([np.nan, np.nan, np.nan, 9, 9, 1, 1, 1, -1]))
    named = [REASONS[reason] for reason in judge(facts, least=0, duplicates=False).reason]
    assert named == ["empty", "empty", "long", "ratio", "identical", "kept", "kept", "duplicate", "score"]
    assert judge(facts, identical=True).reason[4] == 0 and np.isnan(judge(facts).noise)
    assert judge(facts).reason[7] == 0
    assert judge(facts, max_length=3).counts()["long"] == 4
    assert judge(facts, least=1.5).counts()["kept"] == 0


def test_the_usual_ratio_is_that_of_full_pairs():
    pairs = [("a " * 10, "x " * 10)] * 10 + [("a " * 10, "")] * 90
    facts = PairFacts.of(Bitext.of(pairs), np.ones(100))
    assert judge(facts).counts() | {"empty": 0, "kept": 0} == dict.fromkeys(REASONS, 0)
    assert judge(facts).counts()["kept"] == 10


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), max_size=20), st.floats(0, 1))
def test_keep_takes_the_best_share(scores, share):
    facts = PairFacts.of(Bitext.of([("a", "x")] * len(scores)), np.array(scores, float))
    verdicts = judge(facts, keep=share)
    kept, dropped = facts.score[verdicts.keep], facts.score[~verdicts.keep]
    assert len(kept) == int(share * len(scores))
    if len(kept) and len(dropped):
        assert kept.min() >= dropped.max()
        assert verdicts.least == kept.min()


words = st.lists(st.sampled_from(["a", "b", "A", "c"]), max_size=4)


@given(st.lists(st.tuples(words, words), max_size=8), st.data())
def test_rows_are_taken_and_compared_by_their_words(pairs, data):
    bitext = Bitext.of([(["z"], ["z"]), *pairs]).part(1, len(pairs) + 1)
    rows = np.array(data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=8) if pairs else st.just([])), np.int64)
    assert list(bitext.take(rows)) == [bitext[row] for row in rows.tolist()]
    keys, again = row_keys(bitext.source), row_keys(Bitext.of(pairs).source)
    assert keys.tolist() == again.tolist()
    equal = [[left == right for left, _ in pairs] for right, _ in pairs]
    assert (keys[:, None] == keys[None, :]).tolist() == equal
    facts = PairFacts.of(bitext, np.zeros(len(pairs)))
    assert facts.identical.tolist() == [
        [word.lower() for word in source] == [word.lower() for word in target] for source, target in pairs
    ]


def test_parts_judge_as_the_whole_does():
    bitext, _ = shuffled(60, 0.2)
    score = np.linspace(-1, 1, 60)
    whole = PairFacts.of(bitext, score)
    parts = PairFacts.together([PairFacts.of(bitext.part(k, k + 20), score[k : k + 20]) for k in (0, 20, 40)])
    for name in ("n_source", "n_target", "identical", "key", "score"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    assert len(PairFacts.together([])) == 0


def test_wrong_options_are_refused():
    facts = PairFacts.of(Bitext.of([("a", "x")]), np.zeros(1))
    for options in ({"keep": 0.5, "least": 0.0}, {"keep": 1.5}, {"ratio": 0.5}, {"ratio": float("nan")}):
        with pytest.raises(ParameterError):
            judge(facts, **options)


def test_texts_too_small_to_be_halved():
    assert np.isfinite(cross_scores(Bitext.of([("a b", "x y")]))[0]).all()
    assert np.isnan(cross_scores(Bitext.of([("", ""), ("a", "")]))[0]).all()
    assert len(cross_scores(Bitext.of([]))[0]) == 0


# The command ---------------------------------------------------------------------------------------------------------


def run(capsysbinary, *arguments):
    status = main([str(argument) for argument in arguments])
    told = capsysbinary.readouterr()
    return status, told.out.decode(), told.err.decode()


@pytest.fixture
def files(tmp_path):
    bitext, truth = shuffled(300, 0.1)
    for name, text in (("source", bitext.source), ("target", bitext.target)):
        (tmp_path / name).write_text("".join(" ".join(text.tokens(k)) + "\n" for k in range(300)) + "\n")
    return tmp_path, truth


def test_command_writes_pairs_scores_and_report(files, capsysbinary):
    folder, truth = files
    kept = folder / "kept.source", folder / "kept.target"
    status, out, err = run(
        capsysbinary,
        "filter",
        folder / "source",
        folder / "target",
        "-o",
        *kept,
        "--scores",
        folder / "scores",
        "--report",
    )
    assert status == 0
    rows = [line.split("\t") for line in (folder / "scores").read_text().splitlines()]
    assert len(rows) == 301 and rows[300] == ["", "empty"]
    dropped = np.array([row[1] != "kept" for row in rows[:300]])
    assert precision_recall(dropped, truth)[1] > 0.8
    for side, path in zip(("source", "target"), kept, strict=True):
        lines = (folder / side).read_text().splitlines()
        expected = [line for line, row in zip(lines, rows, strict=True) if row[1] == "kept"]
        assert path.read_text().splitlines() == expected
    assert "kept" in out and "empty" in out and "lines 301" in out
    assert "of 301 pairs kept" in err


def test_command_with_a_model_streams_the_same(files, capsysbinary, monkeypatch):
    from isogloss.cli import filter as command

    folder, _ = files
    HMMAligner().fit(samples.synthetic(1000, seed=0).bitext).save(folder / "model")
    arguments = ("filter", folder / "source", folder / "target", "--model", folder / "model", "--keep", 0.5, "--json")
    status, whole, _ = run(capsysbinary, *arguments, "-o", folder / "a", folder / "b")
    monkeypatch.setattr(command, "_STREAMED", 64)
    _, parts, _ = run(capsysbinary, *arguments, "-o", folder / "c", folder / "d")
    whole, parts = json.loads(whole), json.loads(parts)
    del whole["noise"], parts["noise"]  # pairs are put together at random within a part
    assert status == 0 and whole == parts and whole["counts"]["kept"] == 150
    assert (folder / "a").read_bytes() == (folder / "c").read_bytes()
    assert (folder / "b").read_bytes() == (folder / "d").read_bytes()


def test_command_refuses(files, capsysbinary):
    folder, _ = files
    sides = folder / "source", folder / "target"
    for more in (
        [],
        ["--report", "--keep", "0.5", "--least", "1"],
        ["-o", folder / "x", folder / "x"],
        ["-o", folder / "source", folder / "x"],
        ["--report", "--model", folder / "missing"],
        ["--report", "--keep", "2"],
    ):
        status, out, err = run(capsysbinary, "filter", *sides, *more)
        assert (status, out) == (2, "") and err.startswith("isogloss: ")
    (folder / "target").write_text("x\n")
    assert run(capsysbinary, "filter", *sides, "--report")[0] == 1
