"""Grammars that are told something: known heads, trees of another language, edges to keep."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from isogloss import samples
from isogloss.data import Links, Treebank
from isogloss.errors import LinksError, ParameterError, TreebankError, UsageError
from isogloss.learners.posterior import PartSets, Together, attainable_shares, conserving
from isogloss.structures import ProjectiveTree
from isogloss.tasks.parse.induction import GrammarInducer, ValenceGrammar
from isogloss.tasks.parse.induction.evidence import Beside, EdgesToKeep
from isogloss.tasks.parse.induction.grammar import TagText
from isogloss.tasks.parse.induction.learning import GrammarModel, allowed_links
from isogloss.tasks.parse.induction.quasi import QuasiText
from isogloss.testing import brute_force_valence

GOLD = Treebank.from_bytes(samples.trees("en-de", "target").encode())
SAME = Links.of([[(i, i) for i in range(n)] for n in GOLD.lengths.tolist()])
MAKE = partial(GrammarInducer, learner="em", longest=20, start="uniform", iterations=30)
TEXT = TagText([0, 1, 0, 2, 0, 1, 0, 1], [0, 3, 7, 8], 3)
HEADS = np.array([2, -1, -1, -1, 1, -1, 3, 0])
"""One head of the first sentence, two of the second, the only one of the third."""


def tables(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"root": ((), 3), "stop": ((3, 2, 2), 2), "child": ((3, 2, 1), 3), "back": ((2, 1), 3)}
    return {name: rng.dirichlet(np.ones(end), shape) for name, (shape, end) in shapes.items()}


def enumerated(s: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """The trees of a sentence and their log scores, whatever is known of heads."""
    trees = ValenceGrammar(**tables()).trees(TEXT)[s]
    found = brute_force_valence(trees.scores, trees.stops, trees.children)
    return [tuple(tree) for tree in found.structures], np.asarray(found.log_scores)


def test_sums_over_trees_with_known_heads_agree_with_enumeration() -> None:
    model = GrammarModel(TEXT, (2, 1), allowed=allowed_links(TEXT, HEADS))
    trees = model.distributions(tables(), [TEXT])
    for s in range(3):
        listed, scores = enumerated(s)
        known = HEADS[TEXT.offsets[s] : TEXT.offsets[s + 1]]
        kept = np.array([all(h in (-1, own) for h, own in zip(known, tree, strict=True)) for tree in listed])
        assert kept.any() and (s == 2 or not kept.all())
        weights = np.exp(scores[kept])
        assert trees.log_partition()[s] == pytest.approx(float(np.log(weights.sum())))
        expected = np.zeros((len(known) + 1, len(known) + 1))
        for tree, weight in zip(np.array(listed)[kept], weights / weights.sum(), strict=True):
            expected[tree, np.arange(1, len(known) + 1)] += weight
        np.testing.assert_allclose(trees.marginals()[s], expected, atol=1e-12)


def test_every_tree_has_the_heads_that_are_known() -> None:
    trees = GrammarModel(TEXT, (2, 1), allowed=allowed_links(TEXT, HEADS)).distributions(tables(), [TEXT])
    rng = np.random.default_rng(1)
    for found in (trees.argmax(), *(trees.sample(rng) for _ in range(30))):
        drawn = np.concatenate(list(found))
        assert (drawn[HEADS >= 0] == HEADS[HEADS >= 0]).all()


def test_whole_trees_are_counted() -> None:
    learnt = MAKE().fit(GOLD, heads=True)
    assert learnt.score(GOLD).uas > 85
    assert len(learnt.trace_) <= 3  # the second step finds what the first has found
    alone = MAKE(start="harmonic").fit(GOLD)
    assert learnt.score(GOLD).uas > alone.score(GOLD).uas + 30


def test_em_with_some_heads_never_falls_and_lies_between() -> None:
    some = GOLD.with_columns(heads=np.where(np.arange(GOLD.n_words) % 3, -1, GOLD.heads).astype(np.int32))
    learnt = MAKE(tolerance=0).fit(some, heads=True)
    assert (np.diff(learnt.trace_) >= -1e-8).all()
    assert MAKE(start="harmonic").fit(GOLD).score(GOLD).uas < learnt.score(GOLD).uas < 90


def test_sentences_without_a_projective_tree_are_left_out() -> None:
    words = [("a", "NOUN"), ("b", "VERB"), ("c", "NOUN"), ("d", "NOUN")]
    good = [(*word, head, "x") for word, head in zip(words, (2, 0, 2, 2), strict=True)]
    bad = [(*word, head, "x") for word, head in zip(words, (3, 4, 0, 3), strict=True)]
    assert MAKE().fit(Treebank.of([good, bad, good]), heads=True).n_sentences_ == 2
    with pytest.raises(TreebankError, match="no sentence has a projective tree"):
        MAKE().fit(Treebank.of([bad]), heads=True)


def test_beside_itself_a_grammar_is_that_of_its_trees() -> None:
    """The source is the target and every word is linked with itself: 0.9 for head and child are enough."""
    learnt = MAKE(tolerance=0).fit(GOLD, beside=Beside(GOLD, SAME))
    assert (np.diff(learnt.trace_) >= -1e-8).all()
    assert learnt.score(GOLD).uas > MAKE(start="harmonic").fit(GOLD).score(GOLD).uas + 30
    assert learnt.score(GOLD).uas > MAKE().fit(GOLD, heads=True).score(GOLD).uas - 5
    for renormalised, fixed in ((True, False), (False, False), (True, True)):
        other = MAKE(tolerance=0).fit(GOLD, beside=Beside(GOLD, SAME, renormalised, fixed))
        assert (np.diff(other.trace_) >= -1e-8).all(), (renormalised, fixed)
        assert other.configurations_ is not None and other.configurations_.argmax() == 1


def test_what_a_configuration_lacks_is_lost_unless_renormalised() -> None:
    """The source is 1 ← 2 → 3; all three target words are linked with one each."""
    chances = np.array([0.05, 0.6, 0.1, 0.1, 0.05, 0.03, 0.02, 0.05])
    one = TagText([0, 0, 0], [0, 3], 1)
    own, scaled = (
        QuasiText.of(one, [[2, 0, 2]], [[[1], [2], [3]]], renormalised=flag).log_senses(chances).reshape(4, 4)
        for flag in (False, True)
    )
    assert own[2, 1] == pytest.approx(np.log(0.6 / 2)) and own[1, 2] == pytest.approx(np.log(0.1))
    assert own[1, 3] == pytest.approx(np.log(0.1)) and own[0, 2] == pytest.approx(np.log(0.6))
    leaf = 0.05 + 0.1 + 0.1 + 0.05  # itself, its head, its sister, nothing
    assert scaled[1, 3] == pytest.approx(np.log(0.1 / leaf))


def test_edges_are_kept_in_expectation() -> None:
    edges = EdgesToKeep(np.arange(GOLD.n_words), GOLD.heads, np.full(len(GOLD), 0.9))
    learnt = MAKE(start="harmonic", tolerance=0, iterations=15).fit(GOLD, edges=edges)
    assert (np.diff(learnt.trace_) >= -0.05).all() and learnt.unconverged_ == 0  # solved to 1e-4 of each share
    assert learnt.score(GOLD).uas > 70


def test_the_nearest_trees_that_keep_a_share_agree_with_enumeration() -> None:
    trees = ValenceGrammar(**tables()).trees(TEXT)
    sets = PartSets.of([[1 * 4 + 2, 3 * 4 + 1], [3 * 5 + 1], []])
    free = attainable_shares(ProjectiveTree.batch([np.zeros((n, n)) for n in (4, 5, 2)]), sets)
    found = conserving(sets, 0.4, free)(Together([trees]), None)
    total = 0.0
    for s, places in enumerate(([(1, 2), (3, 1)], [(3, 1)], [])):
        listed, scores = enumerated(s)
        kept = np.array([sum(tree[child - 1] == head for head, child in places) for tree in listed])
        tilted = scores + found.multipliers[s] * kept
        q, p = (np.exp(x - np.logaddexp.reduce(x)) for x in (tilted, scores))
        share = float(q @ kept) / max(1, len(places))
        assert not places or share == pytest.approx(0.4, abs=2e-4) or share > 0.4
        total += float(np.logaddexp.reduce(scores) - q @ np.log(q / p))
        assert found.q[s].log_partition() == pytest.approx(float(np.logaddexp.reduce(tilted)))
    assert found.bound == pytest.approx(total, abs=1e-3) and found.multipliers.max() > 0


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    beside = Beside(GOLD, SAME)
    edges = EdgesToKeep(np.arange(GOLD.n_words), GOLD.heads, np.full(len(GOLD), 0.9))
    with pytest.raises(UsageError, match="beside needs learner='em'"):
        GrammarInducer(longest=20).fit(GOLD, beside=beside)
    with pytest.raises(UsageError, match="edges needs learner='em', without rules"):
        MAKE(rules="ud").fit(GOLD, edges=edges)
    with pytest.raises(UsageError, match="stands for itself"):
        MAKE().fit(GOLD, beside=beside, heads=True)
    with pytest.raises(UsageError, match="no Viterbi steps"):
        MAKE(viterbi=1).fit(GOLD, beside=beside)
    with pytest.raises(TreebankError, match="give one for each"):
        MAKE().fit(GOLD, beside=Beside(GOLD[:3], SAME))
    with pytest.raises(LinksError, match="words that it does not have"):
        MAKE().fit(GOLD, beside=Beside(GOLD, Links.of([[(0, 99)], *([[]] * (len(GOLD) - 1))])))
    with pytest.raises(ParameterError, match="cycle above word"):
        QuasiText.of(TagText([0], [0, 1], 1), [[2, 1]], [[[1]]])


def test_configurations_are_saved_with_the_grammar(tmp_path: Path) -> None:
    learnt = MAKE().fit(GOLD, beside=Beside(GOLD, SAME))
    learnt.save(tmp_path / "model")
    again = GrammarInducer.load(tmp_path / "model")
    assert again.configurations_ is not None
    np.testing.assert_array_equal(again.configurations_, learnt.configurations_)
    assert again.predict(GOLD).to_bytes() == learnt.predict(GOLD).to_bytes()
    assert MAKE().fit(GOLD).configurations_ is None
