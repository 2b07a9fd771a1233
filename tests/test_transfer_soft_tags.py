"""Tags that nobody is sure of, heads that are kept of posteriors, and treebanks that are joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data import Text, Treebank
from isogloss.data.contractions import Contractions, split_text
from isogloss.data.joining import join_treebanks
from isogloss.errors import ParameterError, UsageError
from isogloss.structures.batch import Stack
from isogloss.tasks.tag.projection import Projected
from isogloss.tasks.transfer.edges import project_edges, project_posteriors
from isogloss.tasks.transfer.likely import LikelyHeads
from isogloss.tasks.transfer.soft_tags import drawn_tags, weighed_tags
from isogloss.tasks.transfer.views import possessives_as_determiners, universal

SOURCE = Treebank.from_bytes(samples.trees("en-de", "source").encode())
PAIRS = samples.bitext("en-de").part(0, len(SOURCE))
LINKS = samples.gold("en-de")[: len(SOURCE)]


@given(st.integers(0, 10_000), st.integers(0, 6), st.integers(1, 5), st.integers(1, 9))
def test_draws_are_as_near_to_posteriors_as_so_many_can_be(seed: int, n: int, k: int, draws: int) -> None:
    posterior = np.random.default_rng(seed).dirichlet(np.full(k, 0.5), size=n).reshape(n, k)
    lengths = np.array([n // 2, n - n // 2])
    found = drawn_tags(posterior, lengths, draws, seed)
    assert found.shape == (draws, n) and ((found >= 0) & (found < k)).all()
    counts = np.stack([(found == tag).sum(axis=0) for tag in range(k)], axis=1)
    assert (np.abs(counts - draws * posterior) < 1 + 1e-9).all()
    alone = [drawn_tags(part, np.array([len(part)]), draws, seed) for part in np.split(posterior, lengths[:1])]
    assert np.array_equal(found, np.concatenate(alone, axis=1))  # whatever stands around a sentence


def test_draws_of_neighbours_are_not_tied_to_each_other() -> None:
    found = drawn_tags(np.full((2000, 2), 0.5), np.array([2000]), 2, 0)
    assert (found[0] != found[1]).all() and 0.4 < (found[0, 1:] == found[0, :-1]).mean() < 0.6


@given(st.integers(0, 10_000), st.integers(0, 5), st.integers(1, 4))
def test_weighed_tags_by_hand(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet(np.ones(k), size=n).reshape(n, k)
    carried = Projected(rng.integers(-1, k, n).astype(np.int32), rng.random(n))
    found = weighed_tags(posterior, carried)
    for word in range(n):
        z, r = int(carried.labels[word]), float(carried.probability[word])
        weights = [p * (r * (t == z) + (1 - r) / k) if z >= 0 else p for t, p in enumerate(posterior[word])]
        assert weights[found[word]] == pytest.approx(max(weights))


def test_heads_that_are_kept_project_as_posteriors_do() -> None:
    rng = np.random.default_rng(0)
    cells = []
    for n in SOURCE.lengths.tolist():
        matrix = rng.dirichlet(np.full(n + 1, 0.3), size=n + 1).T
        matrix[:, 0] = 0
        cells.append(matrix)
    stack = Stack.of(cells, "posteriors", 2)
    whole = project_posteriors(stack, SOURCE, PAIRS, LINKS)
    middle = len(SOURCE) // 2
    parts = [
        LikelyHeads.of(Stack.of(some, "posteriors", 2), trees.offsets)
        for some, trees in ((cells[:middle], SOURCE[:middle]), (cells[middle:], SOURCE[middle:]))
    ]
    found = project_posteriors(LikelyHeads.joined(parts), SOURCE, PAIRS, LINKS)
    assert np.array_equal(found.word, whole.word) and np.array_equal(found.head, whole.head)
    assert found.probability == pytest.approx(whole.probability, abs=1e-6)
    rootless = project_posteriors(stack, SOURCE, PAIRS, LINKS, root=False)
    assert (rootless.head > 0).all() and (whole.head == 0).any()
    with pytest.raises(ParameterError, match="do not fit"):
        project_posteriors(parts[0], SOURCE, PAIRS, LINKS)


def test_known_heads_are_hard_projection() -> None:
    soft = project_posteriors(LikelyHeads.known(SOURCE), SOURCE, PAIRS, LINKS)
    hard = project_edges(SOURCE, PAIRS, LINKS)
    kept = {(w, h) for w, h in zip(soft.word.tolist(), soft.head.tolist(), strict=True)}
    assert kept == {(w, h) for w, h in zip(hard.word.tolist(), hard.head.tolist(), strict=True)}


def test_joined_treebanks_have_all_columns_and_heads() -> None:
    german = Treebank.from_bytes(samples.trees("en-de", "target").encode())
    empty = Treebank.from_text(Text.of(["", ""]))
    split = split_text(Text.of(["Am Haus"]), Contractions.of_language("de"))
    parts = [SOURCE, empty, german, split]
    both = join_treebanks(parts)
    assert len(both) == sum(map(len, parts)) and both.name == SOURCE.name
    assert np.array_equal(both.heads, np.concatenate([part.heads for part in parts]))
    at = 0
    for part in parts:
        for s in range(len(part)):
            assert both.words(at) == part.words(s)
            for column in ("upos", "deprel", "feats", "lemma", "misc"):
                assert both.strings(column, at) == part.strings(column, s)
            at += 1
    again = Treebank.from_bytes(join_treebanks([SOURCE, german]).to_bytes())
    assert np.array_equal(again.heads, join_treebanks([SOURCE, german]).heads)
    with pytest.raises(UsageError, match="at least one"):
        join_treebanks([])


def test_possessives_before_their_noun_become_determiners() -> None:
    trees = Treebank.of([
        [("my", "PRON", 2, "nmod:poss"), ("dog", "NOUN", 0, "root")],
        [("dog", "NOUN", 0, "root"), ("his", "PRON", 1, "nmod:poss")],
        [("Ann", "PROPN", 2, "nmod:poss"), ("dog", "NOUN", 0, "root")],
        [("him", "PRON", 2, "nmod"), ("dog", "NOUN", 0, "root")],
    ])  # fmt: skip
    found = possessives_as_determiners(trees)
    assert [found.strings("upos", s)[0] for s in range(4)] == ["DET", "NOUN", "PROPN", "PRON"]
    assert [universal(found).strings("deprel", s)[0] for s in range(4)] == ["det", "root", "nmod", "nmod"]
    assert np.array_equal(found.heads, trees.heads)
