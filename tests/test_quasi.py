"""Trees with senses against enumeration, and grammars that are learnt beside the trees of another language."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.errors import ParameterError
from isogloss.structures import Flat, InfeasibleError, SenseTree, SenseTrees, Stack, ValenceTree
from isogloss.tasks.parse.induction import ValenceGrammar
from isogloss.tasks.parse.induction.grammar import TagText
from isogloss.tasks.parse.induction.quasi import CONFIGURATIONS, QuasiText, configurations, learn_beside
from isogloss.testing import brute_force_senses, check_batch, check_laws

SENSES = [[], [2], [1, 2], [2, 1, 2], [2, 2, 1, 2]]


def tables(senses, classes=(2, 2), *, seed=0, holes=0.0):
    rng, size = np.random.default_rng(seed), sum(senses) + 1
    shapes = ((size, size), (size, 2, classes[0], 2), (size, size, classes[1]))
    return [np.where(rng.random(shape) < holes, -np.inf, rng.normal(0, 1.5, shape)) for shape in shapes]


@pytest.mark.parametrize("nearest_first", [True, False])
@pytest.mark.parametrize("classes", [(2, 1), (1, 2), (3, 3)])
@pytest.mark.parametrize("senses", SENSES, ids=str)
def test_senses_agree_with_enumeration(senses, classes, nearest_first):
    for seed, holes in ((1, 0.0), (2, 0.15)):
        parts = tables(senses, classes, seed=seed, holes=holes)
        truth = brute_force_senses(*parts, senses, nearest_first)
        dist = SenseTree(*parts, senses, nearest_first=nearest_first)
        if truth.log_partition == -np.inf:
            with pytest.raises(InfeasibleError):
                dist.log_partition()
            continue
        check_laws(dist, truth, rng=np.random.default_rng(0), samples=150 if holes else 0)
        flat, step = Flat(dist), 1e-5
        direction = np.where(flat.scores > -np.inf, np.cos(np.arange(len(flat.scores))), 0.0)
        above, below = (flat.with_scores(flat.scores + sign * step * direction).log_partition() for sign in (1, -1))
        assert (above - below) / (2 * step) == pytest.approx(float(direction @ flat.marginals()), rel=1e-5, abs=1e-7)


def test_one_sense_is_none():
    parts = tables([1] * 6)
    dist, plain = SenseTree(*parts, [1] * 6), ValenceTree(*parts)
    assert dist.log_partition() == plain.log_partition()
    np.testing.assert_array_equal(dist.marginals(), plain.marginals())
    np.testing.assert_array_equal(dist.link_marginals(), plain.marginals())
    assert dist.argmax().tolist() == plain.argmax().tolist()


def test_batch_equals_one_by_one():
    by_size = {sum(senses) + 1: senses for senses in SENSES}

    def many(blocks):
        listed = [by_size[len(block)] for block in blocks]
        rest = [tables(senses)[1:] for senses in listed]
        return SenseTree.batch(blocks, [one[0] for one in rest], [one[1] for one in rest], listed)

    def alone(block):
        return SenseTree(block, *tables(by_size[len(block)])[1:], by_size[len(block)])

    blocks = [tables(senses)[0] for senses in SENSES]
    check_batch(alone, many, blocks)
    rng = np.random.default_rng(3)
    drawn = [alone(block).sample(rng).tolist() for block in blocks]
    assert [y.tolist() for y in many(blocks).sample(np.random.default_rng(3))] == drawn


def test_long_sentences_with_senses_go_through_logarithms():
    senses = [2] * 200
    dist = SenseTree(*tables(senses, (2, 1)), senses)
    assert np.isfinite(dist.log_partition())
    np.testing.assert_allclose(dist.link_marginals()[:, 1:].sum(axis=0), 1.0, atol=1e-8)
    heads, chosen = dist.split(dist.argmax())
    assert len(heads) == 200 and set(chosen.tolist()) <= {0, 1}


def test_wrong_senses_are_refused():
    parts = tables([2, 1])
    for senses in ([3, 1], [0, 3], [[2, 1]]):
        with pytest.raises(ParameterError, match="add up to 3"):
            SenseTree(*parts, senses)
    dist = SenseTree(*parts, [2, 1])
    with pytest.raises(ParameterError, match="one slot of each word"):
        dist.parts([0, 0, 1])
    assert dist.log_prob([0, -1, 2]) == -np.inf  # hangs on a sense that the word does not have
    with pytest.raises(ParameterError, match="one for each sentence"):
        SenseTrees(*(Stack.of([part]) for part in parts), [])


# --- configurations


def test_every_configuration():
    """1 ← 2 → 4 → 3, 4 → 5 → 6; 2 is the root's child."""
    table = configurations([2, 0, 4, 2, 4, 5])
    named = {
        (2, 2): "same", (2, 4): "parent-child", (4, 2): "child-parent", (1, 4): "siblings", (3, 5): "siblings",
        (2, 3): "grandparent",
        (1, 3): "c-command", (1, 6): "c-command", (3, 6): "c-command", (3, 1): "none", (2, 6): "none", (6, 2): "none",
        (6, 4): "none", (0, 2): "parent-child", (0, 4): "grandparent", (0, 6): "none", (5, 0): "null", (0, 0): "null",
    }  # fmt: skip
    for (x, y), name in named.items():
        assert CONFIGURATIONS[table[x, y]] == name, (x, y)
    assert configurations([0]).tolist() == [[7, 1], [7, 0]] and configurations([]).tolist() == [[7]]
    with pytest.raises(ParameterError, match="cycle"):
        configurations([2, 1])


# --- learning

HEADS = [[2, 0, 2], [2, 3, 0, 3], [0]]
TEXT = TagText([0, 1, 0, 2, 0, 1, 0, 1], [0, 3, 7, 8], 3)


def grammar(seed=0):
    rng = np.random.default_rng(seed)
    shapes = (((), 3), ((3, 2, 2), 2), ((3, 2, 1), 3), ((2, 1), 3))
    return ValenceGrammar(*(rng.dirichlet(np.ones(end), shape) for shape, end in shapes))


def sensed(quasi, own, chances):
    """Trees and senses under a grammar and chances of configurations."""
    plain = own.trees(quasi.text)
    links = plain.scores.like(plain.scores.values + quasi.log_senses(np.asarray(chances)))
    return SenseTrees(links, plain.stops, plain.children, quasi.senses)


def test_links_that_say_nothing_leave_the_grammar_alone():
    """All source words, or none at all, are possible: whatever configurations are likely, trees are the grammar's."""
    own, chances = grammar(), np.random.default_rng(1).dirichlet(np.ones(8))
    plain = own.trees(TEXT)
    everything = [[list(range(len(heads) + 1))] * n for heads, n in zip(HEADS, (3, 4, 1), strict=True)]
    nothing = [[[]] * n for n in (3, 4, 1)]
    for candidates in (everything, nothing):
        found = sensed(QuasiText.of(TEXT, HEADS, candidates), own, chances)
        for s in range(3):
            np.testing.assert_allclose(found[s].link_marginals(), plain.marginals()[s], atol=1e-10)
    np.testing.assert_allclose(  # the senses of every word add up to 1
        sensed(QuasiText.of(TEXT, HEADS, everything), own, chances).log_partition(), plain.log_partition(), atol=1e-9
    )


def test_trees_are_copied_where_links_are_one_to_one():
    own, chances = grammar(2), np.full(8, 1e-9)
    chances[1] = 1.0
    quasi = QuasiText.of(TEXT, HEADS, [[[w] for w in range(1, len(heads) + 1)] for heads in HEADS])
    found = sensed(quasi, own, chances / chances.sum())
    for s, heads in enumerate(HEADS):
        assert found[s].split(found.argmax()[s])[0].tolist() == heads
        np.testing.assert_allclose(found[s].marginals()[heads, np.arange(1, len(heads) + 1)], 1.0, atol=1e-3)


@pytest.mark.parametrize(("classes", "back_off", "start"), [((2, 1), 1.0, "uniform"), ((2, 2), 1 / 3, "harmonic")])
def test_conditional_em_never_falls_and_learns_from_links(classes, back_off, start):
    heads = [[2, 0, 2]] * 10 + [[0, 1, 1]] * 2
    text = TagText(np.tile([0, 1, 2], 12), np.arange(0, 37, 3), 3)
    linked = [[[1], [2], [3, 2]] if k % 2 else [[1], [2], []] for k in range(12)]
    quasi = QuasiText.of(text, heads, linked)
    learnt, chances, trace = learn_beside(
        quasi, classes=classes, back_off=back_off, start=start, iterations=25, tolerance=0
    )
    assert (np.diff(trace) >= -1e-8).all() and trace[-1] > trace[0] + 1
    assert chances.sum() == pytest.approx(1.0) and chances.argmax() == 1
    best = learnt.smoothed(np.exp(-10)).trees(TagText([0, 1, 2], [0, 3], 4)).argmax()[0]
    assert best.tolist() == [2, 0, 2]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError, match="from 0 to 3"):
        QuasiText.of(TEXT, HEADS, [[[4], [1], [1]], [[]] * 4, [[]]])
    with pytest.raises(ParameterError, match="sentence 1 has 4 words"):
        QuasiText.of(TEXT, HEADS, [[[]] * 3, [[]] * 3, [[]]])
