"""Chains over lists of labels: every law against enumeration, both kinds, both orders, and beyond float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures import FactoredLattices, InfeasibleError, Lattice, LatticeParts, Lattices, Structure
from isogloss.structures.base import kept
from isogloss.testing import (
    brute_force_chain,
    brute_force_factored_lattice,
    brute_force_lattice,
    check_batch,
    check_k_best,
    check_laws,
    check_structure,
    lattice_part_names,
)
from isogloss.testing.strategies import LatticeInputs, lattice_inputs

LAWS = settings(max_examples=80, deadline=None, derandomize=True)
LISTS = [[], [[2]], [[0, 3]], [[4], [1, 0]], [[0, 1, 2], [5], [2, 0]], [[1, 3], [0, 2, 4], [3, 1], [2]], [[0, 1]] * 5]


def one(lists, scores, order=1):
    return Lattices(LatticeParts.of([lists], order), scores)[0]


@pytest.mark.parametrize("order", [1, 2])
def test_lattices_keep_every_law(order):
    by_size = {len(lattice_part_names(lists, order)): lists for lists in LISTS}
    assert len(by_size) == len(LISTS)  # so that scores tell which lists they belong to

    def of(arrays):
        lists = [by_size[len(scores)] for scores in arrays]
        return Lattices(LatticeParts.of(lists, order), np.concatenate(arrays))

    check_structure(
        lambda scores: of([scores])[0],
        lambda scores: brute_force_lattice(by_size[len(scores)], scores, order),
        shapes=[(size,) for size in by_size],
        count=lambda shape: int(np.prod([len(labels) for labels in by_size[shape[0]]])),
        column=lambda scores: np.s_[: len(by_size[len(scores)][0])],  # the nodes of the first position
        batch=of,
        samples=200,
    )


@given(lattice_inputs())
@LAWS
def test_lattices_agree_with_enumeration(inputs: LatticeInputs):
    truth, dist = (
        brute_force_lattice(inputs.lists, inputs.scores, inputs.order),
        one(*inputs[:1], inputs.scores, inputs.order),
    )
    assert isinstance(dist, Structure) and dist.layout.order == inputs.order
    if truth.log_partition == -np.inf:
        for method in (dist.log_partition, dist.argmax, lambda: dist.k_best(2)):
            with pytest.raises(InfeasibleError, match="no sequence of labels is allowed"):
                method()
        return
    _check(dist, truth)


def _check(dist, truth):
    """The laws as far as scores of this size allow: differences of scores of whole sequences lose digits."""
    spread = np.abs(dist.scores[dist.scores > -np.inf]).max(initial=0.0)
    if spread < 100:
        check_laws(dist, truth, rng=np.random.default_rng(0), samples=0)
    assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-12, abs=1e-10)
    assert dist.marginals() == pytest.approx(truth.marginals, abs=1e-9)
    assert truth.log_scores[truth.structures.index(tuple(dist.argmax().tolist()))] == pytest.approx(truth.best)
    drawn = tuple(dist.sample(np.random.default_rng(1)).tolist())
    assert truth.log_scores[truth.structures.index(drawn)] > -np.inf
    for k in (1, 3):
        check_k_best(dist.k_best(k), truth, k)


@given(lattice_inputs())
@LAWS
def test_shared_transitions_agree_with_enumeration(inputs: LatticeInputs):
    truth, counts = brute_force_factored_lattice(inputs.lists, inputs.nodes, inputs.transitions)
    many = FactoredLattices(LatticeParts.of([inputs.lists], inputs.order), inputs.nodes, inputs.transitions)
    if truth.log_partition == -np.inf:
        for method in (many.log_partition, many.counts, many.argmax, many.lattices().log_partition):
            with pytest.raises(InfeasibleError, match=r"sentence 0: .*no sequence of labels is allowed"):
                method()
        return
    _check(many[0], truth)
    assert many.counts() == pytest.approx(counts, abs=1e-9)
    whole = many.lattices()
    assert whole.log_partition() == pytest.approx(many.log_partition(), rel=1e-12, abs=1e-10)
    assert whole.marginals().values[whole.layout.node_places] == pytest.approx(many.marginals().values, abs=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_shared_transitions_keep_every_law(order):
    table = np.random.default_rng(order).normal(0, 2, (7,) * order + (6,))
    by_size = {sum(map(len, lists)): lists for lists in LISTS[:5]}

    def of(arrays):
        lists = [by_size[len(scores)] for scores in arrays]
        return FactoredLattices(LatticeParts.of(lists, order), np.concatenate(arrays), table)

    check_structure(
        lambda scores: of([scores])[0],
        lambda scores: brute_force_factored_lattice(by_size[len(scores)], scores, table)[0],
        shapes=[(size,) for size in by_size],
        column=lambda scores: np.s_[: len(by_size[len(scores)][0])],
        batch=of,
        samples=200,
    )


@pytest.mark.parametrize("order", [1, 2])
def test_full_lists_are_a_chain(order):
    n, k, rng = 4, 3, np.random.default_rng(order)
    parts = LatticeParts.of([[range(k)] * n], order)
    scores = rng.normal(size=parts.n_parts)
    steps = np.zeros((n, *[k] * (order + 1)))
    for place, (t, *labels) in enumerate(lattice_part_names([range(k)] * n, order)):
        wanted = (slice(None),) * (order + 1 - len(labels)) + tuple(labels)
        if t >= len(labels) - 1:
            steps[(t, *wanted)] += scores[place]
    assert Lattices(parts, scores).log_partition()[0] == pytest.approx(brute_force_chain(steps).log_partition)


# --- many sentences


def corpus(order, sentences=150, k=6, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    lists = [
        [rng.permutation(k)[: rng.integers(1, k)].tolist() for _ in range(rng.integers(0, 9))] for _ in range(sentences)
    ]
    parts = LatticeParts.of(lists, order)
    return parts, rng.normal(0, spread, parts.n_parts), rng.normal(0, spread, (k + 1,) * order + (k,))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("spread", [2.0, 400.0])
def test_threads_and_batches_change_nothing(order, spread):
    parts, scores, table = corpus(order, spread=spread)
    for made in (Lattices(parts, scores), FactoredLattices(parts, scores[parts.node_places], table)):
        found = []
        for threads in (1, 2):
            with using_threads(threads):
                many = made.with_scores(made.scores)
                drawn = many.sample(np.random.default_rng(3))
                extra = many.counts() if isinstance(many, FactoredLattices) else np.zeros(0)
                found.append((many.log_partition(), many.marginals().values, many.best(), np.concatenate(drawn), extra))
        for first, second in zip(*found, strict=True):
            assert np.array_equal(first, second)
        rng = np.random.default_rng(3)
        assert [y.tolist() for y in drawn] == [made[s].sample(rng).tolist() for s in range(len(made))]
        best = made.argmax()
        assert [tuple(y) for y in made.from_parts(made.parts(best))] == [tuple(y) for y in best]
        assert made.log_prob(best) == pytest.approx([made[s].log_prob(y) for s, y in enumerate(best)])


@pytest.mark.parametrize("order", [1, 2])
def test_some_sentences_are_those_of_all(order):
    parts, scores, table = corpus(order)
    chosen = np.array([7, 0, 149, 7])
    for made in (Lattices(parts, scores), FactoredLattices(parts, scores[parts.node_places], table)):
        some = made.take(chosen)
        assert some.log_partition().tolist() == made.log_partition()[chosen].tolist()
        for at, s in enumerate(chosen.tolist()):
            assert np.array_equal(some.marginals()[at], made.marginals()[s])
            assert some.argmax()[at].tolist() == made[s].argmax().tolist() == made[s - len(made)].argmax().tolist()
    assert len(made.take([])) == 0 and made.take([]).argmax() == []


@pytest.mark.parametrize("order", [1, 2])
def test_long_sentences_neither_vanish_nor_overflow(order):
    rng = np.random.default_rng(0)
    parts = LatticeParts.of([[rng.permutation(3)[: rng.integers(1, 4)] for _ in range(4000)]], order)
    scores = rng.normal(0, 3, parts.n_parts)
    many = Lattices(parts, scores - 300)
    assert many.log_partition()[0] == pytest.approx(
        Lattices(parts, scores).log_partition()[0] - 300 * (4000 + 3999 + (order == 2) * 3998), rel=1e-12
    )
    nodes = many.marginals().values[parts.node_places]
    assert np.add.reduceat(nodes, parts.starts[:-1]) == pytest.approx(1.0)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("gap", [200.0, 350.0, 500.0, 700.0, 740.0, 760.0])
def test_what_probabilities_lose_logarithms_find(order, gap):
    """The first label looks hopeless until the third position forbids, all but, what the second label leads to."""
    lists = [[0, 1], [0, 1], [0, 1]]
    scores = np.zeros(len(lattice_part_names(lists, order)))
    names = lattice_part_names(lists, order)
    scores[names.index((0, 0))] = -gap
    for name in ((1, 0, 1), (1, 1, 0)):
        scores[names.index(name)] = -np.inf
    for name in ((2, 1, 0), (2, 1, 1)):
        scores[names.index(name)] = -gap + 1
    truth, dist = brute_force_lattice(lists, scores, order), one(lists, scores, order)
    assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-13)
    assert dist.marginals() == pytest.approx(truth.marginals, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("gap", [100.0, 240.0, 300.0])
def test_a_label_that_vanishes_may_be_the_best_in_the_end(order, gap):
    """No sum vanishes: the label that is left at first loses a little at every step, and at last too much."""
    lists = [[0, 1]] * 8
    names = lattice_part_names(lists, order)
    scores = np.zeros(len(names))
    scores[names.index((0, 0))] = -7 * gap + 20
    for t in range(1, 8):
        scores[names.index((t, 1, 1))] = -gap
        scores[names.index((t, 0, 1))] = scores[names.index((t, 1, 0))] = -np.inf
    truth, dist = brute_force_lattice(lists, scores, order), one(lists, scores, order)
    assert truth.marginals[0] > 0.99
    assert dist.log_partition() == pytest.approx(truth.log_partition, rel=1e-13)
    assert dist.marginals() == pytest.approx(truth.marginals, abs=1e-12)


def test_a_layout_says_what_is_wrong():
    with pytest.raises(ParameterError, match="position 1 of sentence 0 should have one label at least"):
        LatticeParts.of([[[0], []]])
    with pytest.raises(ParameterError, match="each once"):
        LatticeParts.of([[[0, 0]]])
    with pytest.raises(ParameterError, match="order should be 1 or 2"):
        LatticeParts.of([[[0]]], order=3)
    with pytest.raises(ParameterError, match="starts should rise from 0 to 2"):
        LatticeParts([0, 2], [0, 2, 2], [0, 1])
    with pytest.raises(ParameterError, match="offsets should rise from 0 to 1, the number of positions"):
        LatticeParts([0, 2], [0, 2], [0, 1])
    parts = LatticeParts.of([[[0], [1, 2]]])
    many = Lattices(parts, np.zeros(parts.n_parts))
    with pytest.raises(ParameterError, match="position 1 of sentence 0 may not have label 0, only \\[1, 2\\]"):
        many.parts([[0, 0]])
    with pytest.raises(ParameterError, match="sentence 0 has 2 positions, not 1"):
        many.parts([[0]])
    with pytest.raises(ParameterError, match="5 scores are needed"):
        Lattices(parts, np.zeros(2))
    with pytest.raises(ParameterError, match="nan"):
        Lattices(parts, np.full(parts.n_parts, np.nan))
    with pytest.raises(ParameterError, match="transitions should be \\[k \\+ 1, k\\]"):
        FactoredLattices(parts, np.zeros(3), np.zeros((3, 3)))
    with pytest.raises(ParameterError, match="labels should be numbers from 0 to 1"):
        FactoredLattices(parts, np.zeros(3), np.zeros((3, 2)))
    with pytest.raises(ParameterError, match="a batch of one sentence"):
        Lattice(Lattices(LatticeParts.of([[], []]), np.zeros(0)))
    with pytest.raises(IndexError, match="no sentence 1"):
        many[1]


def test_an_infeasible_sentence_is_named():
    parts = LatticeParts.of([[[0]], [[0, 1], [2]]])
    scores = np.zeros(parts.n_parts)
    scores[parts.edge_places] = -np.inf
    for method in ("log_partition", "marginals", "argmax", "best"):
        with pytest.raises(InfeasibleError, match=r"sentence 1: .*no sequence of labels is allowed"):
            getattr(Lattices(parts, scores), method)()


def test_masks_make_lists():
    parts = LatticeParts.allowed([[True, False, True], [False, True, False]], [0, 1, 2], order=2)
    assert parts.labels.tolist() == [0, 2, 1] and parts.positions.tolist() == [0, 0, 1]
    assert parts.counts.tolist() == [[2, 0, 0], [1, 0, 0]]


def test_parts_stand_where_the_layout_says():
    lists = [[[1, 0], [2], [0, 2]], [], [[0, 1], [1]]]
    parts = LatticeParts.of(lists, order=2)
    names = [(s, *name) for s, one_ in enumerate(lists) for name in lattice_part_names(one_, 2)]
    before = np.repeat(parts.offsets[:-1], parts.lengths)
    sentence = np.repeat(np.arange(3), parts.lengths)
    for places, entries in (
        (parts.node_places, np.arange(parts.n_entries)[:, None]), (parts.edge_places, parts.edges),
        (parts.triple_places, parts.triples),
    ):  # fmt: skip
        for place, row in zip(places.tolist(), entries, strict=True):
            t = int(parts.positions[row[-1]])
            assert names[place] == (sentence[t], t - before[t], *parts.labels[row].tolist())
    y = [[0, 2, 0], [], [1, 1]]
    truth = [brute_force_lattice(one_, np.zeros(len(lattice_part_names(one_, 2))), 2) for one_ in lists]
    want = np.concatenate([t.parts[t.structures.index(tuple(labels))] for t, labels in zip(truth, y, strict=True)])
    assert parts.indicate(np.concatenate([np.array(labels, int) for labels in y])).tolist() == want.tolist()


def test_scores_are_not_copied_and_not_changed():
    parts = LatticeParts.of([[[0, 1], [1]]])
    scores = kept(np.array([0.5, -1.0, 2.0, 0.0, 1.0]))
    many = Lattices(parts, scores)
    many.marginals()
    assert many.scores.values is scores and scores.tolist() == [0.5, -1.0, 2.0, 0.0, 1.0]


def test_batches_of_nothing():
    nothing = LatticeParts.of([])
    many = Lattices(nothing, np.zeros(0))
    assert len(many) == 0 and many.argmax() == [] and many.log_partition().tolist() == []
    check_batch(
        lambda scores: one([], scores),
        lambda all_: Lattices(LatticeParts.of([[]] * len(all_)), np.zeros(0)),
        [np.zeros(0)] * 2,
    )
