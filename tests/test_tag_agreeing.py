"""Columns of one tagger do not contradict each other."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss import cli
from isogloss.data import Text, Treebank
from isogloss.errors import ModelError
from isogloss.tasks.tag import Tagger, jackknife
from isogloss.tasks.tag.agreeing import UNLISTED, Combinations
from isogloss.tasks.tag.learning import Decoded

CASES = {"NOUN": ["Case=Nom", "Case=Acc"], "VERB": ["Tense=Past", "_"], "ADJ": ["Case=Nom", "Degree=Pos"]}


def noisy(n: int, seed: int) -> Treebank:
    """Sentences whose words say little about their tags, so that taggers of single columns guess."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        row = []
        for _ in range(int(rng.integers(1, 9))):
            tag = str(rng.choice(list(CASES)))
            feats = str(rng.choice(CASES[tag]))
            ending = tag[0].lower() if rng.random() < 0.6 else feats[-1] if rng.random() < 0.5 else ""
            row.append({"form": str(rng.choice(list("abcde"))) + ending, "upos": tag, "feats": feats})
        rows.append(row)
    return Treebank.of(rows)


def pairs(trees: Treebank) -> set[tuple[str, str]]:
    return {pair for row in trees for pair in zip(row.columns["upos"], row.columns["feats"], strict=True)}


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger(["feats", "upos"], iterations=3, threads=1).fit(noisy(60, 0))


@pytest.mark.parametrize("decoder", ["marginal", "viterbi"])
def test_no_pair_is_new(tagger: Tagger, decoder: str) -> None:
    seen, new = pairs(noisy(60, 0)), noisy(80, 1)
    alone = new
    for one in tagger.taggers.values():
        one.decoder = decoder
        alone = one.predict(alone)
    found = tagger.predict(new)
    assert pairs(alone) - seen  # what columns would have by themselves
    assert pairs(found) <= seen
    same = [
        (a, b) for a, b in zip(alone, found, strict=True) for a, b in zip(*map(words, (a, b)), strict=True) if a in seen
    ]
    assert same and all(a == b for a, b in same)  # what agrees already stays
    score = tagger.score(new)
    assert score.columns == {"upos": accuracy(found, new, "upos"), "feats": accuracy(found, new, "feats")}
    assert score["upos"] >= float(score) == score.accuracy and score.measures == ("accuracy", "upos", "feats")


def words(sentence) -> list[tuple[str, str]]:
    return list(zip(sentence.columns["upos"], sentence.columns["feats"], strict=True))


def accuracy(found: Treebank, gold: Treebank, column: str) -> float:
    both = [pair for s in range(len(gold)) for pair in zip(found.strings(column, s), gold.strings(column, s))]
    return pytest.approx(100 * np.mean([a == b for a, b in both]))


@pytest.mark.parametrize("decoder", ["marginal", "viterbi"])
def test_confidence_is_of_the_tag_that_was_chosen(tagger: Tagger, decoder: str) -> None:
    new = noisy(30, 2)
    for one in tagger.taggers.values():
        one.decoder = decoder
    found, chances = tagger.tags(new, confidence=True), tagger.predict_proba(new)
    for column, (labels, chance) in found.items():
        assert chance == pytest.approx(chances[column][np.arange(new.n_words), labels], abs=1e-6)
    assert all(tags.chances is None for tags in tagger.tags(new).values())


def test_saved_combinations_are_used_and_old_models_go_on(tagger: Tagger, tmp_path: Path) -> None:
    new = noisy(40, 3)
    tagger.save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model")
    assert again.columns == ("upos", "feats") and again.predict(new).to_bytes() == tagger.predict(new).to_bytes()
    new.write(tmp_path / "in.conllu")
    arguments = [str(tmp_path / name) for name in ("model", "in.conllu")]
    assert cli.main(["tag", "apply", *arguments, "-o", str(tmp_path / "out.conllu"), "--confidence", "-q"]) == 0
    out = Treebank.read(tmp_path / "out.conllu")
    assert pairs(out) <= pairs(noisy(60, 0)) and "FeatsConfidence=" in out.strings("misc", 0)[0]
    parts = tagger.to_parts()
    del parts["arrays"]["combinations"]
    old = Tagger.from_parts(**parts)
    expected = new
    for one in tagger.taggers.values():
        expected = one.predict(expected)
    assert old.predict(new).to_bytes() == expected.to_bytes()


@pytest.mark.parametrize(
    "change", [lambda rows: rows[:, :1], lambda rows: rows + 99, lambda rows: rows - 1, lambda rows: rows[:0]]
)
def test_damaged_combinations_are_refused(tagger: Tagger, change) -> None:
    parts = tagger.to_parts()
    parts["arrays"]["combinations"] = change(parts["arrays"]["combinations"])
    with pytest.raises(ModelError, match="combination"):
        Tagger.from_parts(**parts)


def test_jackknifed_tags_agree() -> None:
    text = noisy(60, 4)
    assert pairs(jackknife(text, Tagger(["upos", "feats"], iterations=2), 3, threads=2)) <= pairs(text)
    assert len(Tagger(["upos", "feats"], iterations=2).fit(text).predict(Text.of(["", "ab"]))) == 2


@given(st.integers(0, 2**30), st.integers(1, 3))
def test_the_best_combination_by_enumeration(seed: int, n_columns: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(1, 5, n_columns).tolist())
    n_seen, n = int(rng.integers(1, 8)), int(rng.integers(0, 6))
    known = Combinations.of([rng.integers(0, size, n_seen) for size in sizes], sizes)
    found, dense = [], []
    for size in sizes:
        most = int(rng.integers(1, size + 1))
        lists = np.array([rng.permutation(size)[:most] for _ in range(n)], np.int32).reshape(n, most)
        chances = np.sort(rng.dirichlet(np.ones(most), n).reshape(n, most).astype(np.float32), axis=1)[:, ::-1]
        found.append(Decoded(lists[:, 0].copy(), lists, chances, np.zeros(0)))
        full = np.full((n, size), UNLISTED)
        np.put_along_axis(full, lists.astype(np.int64), np.maximum(chances, UNLISTED), axis=1)
        dense.append(full)
    labels = known.agreed(found)
    rows = {tuple(row) for row in known.rows.tolist()}
    for word in range(n):
        chosen = tuple(int(column[word]) for column in labels)
        values = {
            row: float(np.prod([dense[c][word, y] for c, y in enumerate(row)]))
            for row in itertools.product(*map(range, sizes))
            if row in rows
        }
        assert chosen in rows and values[chosen] == pytest.approx(max(values.values()))
