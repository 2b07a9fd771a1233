"""Candidate links are found fast: each weight is looked up once, and the likeliest links are kept without sorting."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss import samples
from isogloss.data.joining import join_treebanks
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse import quick
from isogloss.tasks.parse.features import FILTER_TEMPLATES
from isogloss.tasks.parse.filtering import LinkFilter
from isogloss.tasks.parse.inference import Shape
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer, count_keys
from isogloss.tasks.parse.words import Words, columns_of, encode


@pytest.fixture(scope="module")
def trees() -> Treebank:
    found = Treebank.from_bytes(samples.trees("en-de", "target").encode())
    empty = Treebank.of([[], [("Geh", "VERB", 0)], [("!", "PUNCT", 0)]])
    long = Treebank.of([[(f"w{i % 7}", ("NOUN", "VERB", "PUNCT", "CCONJ", "ADP")[i % 5], i) for i in range(45)]])
    return join_treebanks([found, empty, long])


def scorer_of(trees: Treebank, seed: int) -> tuple[PartScorer, Words]:
    """The keys of all links with random weights; half of them are left out of the table."""
    columns = columns_of(trees)
    words, features = encode(trees, columns).without_features(), FeatureSet.of(columns, (), FILTER_TEMPLATES)
    every = Candidates.all(words.lengths)
    keys = count_keys(words, features, every, (), trees.heads, support="all")
    weights = np.random.default_rng(seed).normal(size=len(keys)).astype(np.float32)
    weights[np.random.default_rng(seed).random(len(keys)) < 0.5] = 0
    return PartScorer.packed(features, keys, weights), words


@pytest.mark.parametrize("threads", [1, 2])
def test_scores_are_those_of_the_general_scorer_to_the_bit(
    trees: Treebank, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "WORTH", np.inf)
    scorer, words = scorer_of(trees, 1)
    for some in (np.arange(len(trees)), np.arange(3, 7), np.arange(len(trees) - 4, len(trees))):
        parts = TreeParts.of(Candidates.all(words.lengths[some]))
        with using_threads(threads):
            found, right = quick.scores_of_links(scorer, words, some, parts), scorer.scores(words, some, parts)
        assert np.array_equal(found, right) and (len(right) == 0 or np.abs(right).max() > 1)


def test_few_links_are_scored_one_by_one(trees: Treebank, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there would be more weights to look up than links have."""
    scorer, words = scorer_of(trees, 2)
    asked = []
    monkeypatch.setattr(scorer, "scores", lambda *given: asked.append(given) or np.zeros(1))
    some = np.arange(1)
    assert quick.scores_of_links(scorer, words, some, TreeParts.of(Candidates.all(words.lengths[some]))).tolist() == [0]
    assert len(asked) == 1


@pytest.mark.parametrize("most", [1, 4, 100])
def test_the_likeliest_are_kept_with_the_best_and_the_right(most: int) -> None:
    from isogloss.tasks.parse._numba.filtering import choose

    rng = np.random.default_rng(most)
    every = Candidates.all([0, 1, 9, 5])
    n_words = int(every.offsets[-1])
    beliefs = rng.random(every.n_links) ** 6
    best, gold = (np.array([rng.choice(every.heads[a:b]) for a, b in spans(every)], np.int32) for _ in range(2))
    kept = np.zeros(every.n_links, bool)
    choose(0, 1, every.offsets, every.starts, every.heads, beliefs, best, gold, 0.01, most, kept)
    for w, (a, b) in enumerate(spans(every)):
        own = beliefs[a:b]
        likely = every.heads[a:b][own >= 0.01 * own.max()]
        ranked = [every.heads[a + i] for i in np.argsort(-own)[:most]]
        wanted = {int(h) for h in likely if h in ranked} | {int(best[w]), int(gold[w])}
        assert set(every.heads[a:b][kept[a:b]].tolist()) == wanted
    assert n_words == 15


def spans(every: Candidates) -> list[tuple[int, int]]:
    return list(zip(every.starts[:-1].tolist(), every.starts[1:].tolist(), strict=True))


def test_candidates_are_the_same_either_way(trees: Treebank, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(trees)
    words = encode(trees, columns)
    chosen = LinkFilter.fit(words, columns, trees.heads, Shape("projective"), threshold=0.01)
    found = []
    for worth in (0.0, np.inf):
        monkeypatch.setattr(quick, "WORTH", worth)
        found.append(chosen.candidates(words))
    assert np.array_equal(found[0].heads, found[1].heads) and np.array_equal(found[0].starts, found[1].starts)
    assert found[0].n_links < Candidates.all(words.lengths).n_links
