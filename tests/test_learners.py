"""EM in its variants never lowers its objective; agreement by products and, in the tiny regime, exactly."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from isogloss.errors import ParameterError
from isogloss.learners import agreement, bijective, init, merge, project_pair, step
from isogloss.learners.posterior import Pair, project
from isogloss.structures import AlignmentChain, Chain
from isogloss.testing import alignment_score, brute_force_alignments, brute_force_chain, joint_agreement
from isogloss.testing.strategies import AlignmentInputs, alignment_pairs


def normalised(counts):
    """Rows to probabilities; a row nobody used becomes uniform."""
    sums = counts.sum(axis=-1, keepdims=True)
    return np.where(sums > 0, counts / np.where(sums > 0, sums, 1), 1 / counts.shape[-1])


def logs(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def run(model, items, params, steps, **options):
    state, infos = init(params), []
    for _ in range(steps):
        state, info = step(state, [items[:2], items[2:]], model, **options)
        infos.append(info)
    assert state.iteration == steps
    return state.params, infos


def rises(infos, tolerance=1e-9):
    trace = [info.objective for info in infos]
    assert all(after >= before - tolerance for before, after in itertools.pairwise(trace)), trace
    return trace[-1] > trace[0] + 1e-3


# --- a hidden Markov model over symbols: Baum-Welch ----------------------------------------------------------------


class Tagger:
    """start [k], move [k, k], emit [k, v], packed into one array [k, 1 + k + v]."""

    k, v = 2, 3

    def zero_counts(self):
        return np.zeros((self.k, 1 + self.k + self.v))

    def distributions(self, params, batch):
        with np.errstate(divide="ignore"):
            start, move, emit = np.split(np.log(params), [1, 1 + self.k], axis=1)
        for symbols in batch:
            scores = move + emit.T[np.array(symbols)][:, None, :]
            scores[0] = start[:, 0] + emit[:, symbols[0]]
            yield Chain(scores)

    def expected_counts(self, symbols, q):
        counts = self.zero_counts()
        nodes = q.node_marginals()
        counts[:, 0] = nodes[0]
        counts[:, 1 : 1 + self.k] = q.marginals()[1:].sum(axis=0)
        for t, symbol in enumerate(symbols):
            counts[:, 1 + self.k + symbol] += nodes[t]
        return counts

    def maximise(self, counts):
        start, move, emit = np.split(counts, [1, 1 + self.k], axis=1)
        return np.concatenate([normalised(start.T).T, normalised(move), normalised(emit)], axis=1)


SENTENCES = [(0, 1, 0, 1), (0, 1), (2, 0, 1, 2), (1, 0, 1, 0, 2), (2,)]


def start_tagger(seed=0):
    return Tagger().maximise(np.random.default_rng(seed).random((2, 6)))


def test_em_objective_is_the_likelihood_and_never_falls():
    model, params = Tagger(), start_tagger()
    _, infos = run(model, SENTENCES, params, 12)
    likelihood = sum(brute_force_chain(d.scores).log_partition for d in model.distributions(params, SENTENCES))
    assert infos[0].objective == pytest.approx(likelihood, abs=1e-10)
    assert rises(infos)


def test_hard_em_raises_the_score_of_the_best_paths():
    model, params = Tagger(), start_tagger()
    _, infos = run(model, SENTENCES, params, 8, hard=True)
    best = sum(brute_force_chain(d.scores).best for d in model.distributions(params, SENTENCES))
    assert infos[0].objective == pytest.approx(best, abs=1e-10)
    assert rises(infos)


def test_regularised_em_on_a_chain():
    """State 0 at most 40% of each sentence: the bound L − KL never falls, and every q keeps the constraint."""
    seen = []

    def limited(dist):
        features = np.zeros((1, *dist.scores.shape))
        features[0, :, :, 0] = 1 / dist.n
        found = project(dist, features, [0.4], tolerance=1e-7)
        seen.append(found.q.node_marginals()[:, 0].mean())
        return found

    _, infos = run(Tagger(), SENTENCES, start_tagger(1), 10, project=limited)
    assert rises(infos, 1e-6) and max(seen) <= 0.4 + 1e-6
    assert infos[0].evaluations > 0 and infos[0].unconverged == 0 and infos[-1].violation < 1e-6
    _, plain = run(Tagger(), SENTENCES, start_tagger(1), 1)
    assert infos[0].objective < plain[0].objective


# --- word alignment: one direction -------------------------------------------------------------------------------


class Direction:
    """Words of one side generated from those of the other; all sentences of one size, so that the M-step is exact."""

    null_weight = 0.2

    def __init__(self, generating, generated, m, words):
        self.generating, self.generated, self.m, self.words = generating, generated, m, words

    def start(self, seed):
        rng = np.random.default_rng(seed)
        return self.maximise([rng.random((self.words + 1, self.words)), rng.random((self.m + 1, self.m))])

    def inputs(self, params, pair):
        table, moves = logs(params[0]), logs(params[1])
        made = list(pair[self.generated])
        emission = table[list(pair[self.generating])][:, made].T
        return AlignmentInputs(emission, table[-1, made], moves[-1], moves[:-1], self.null_weight, None)

    def zero_counts(self):
        return np.array([np.zeros((self.words + 1, self.words)), np.zeros((self.m + 1, self.m))], dtype=object)

    def distributions(self, params, batch):
        return (AlignmentChain(*self.inputs(params, pair)) for pair in batch)

    def expected_counts(self, pair, q):
        counts = self.zero_counts()
        links, null = q.posterior(), q.null_posterior()
        for t, word in enumerate(pair[self.generated]):
            np.add.at(counts[0][:, word], list(pair[self.generating]), links[t])
            counts[0][-1, word] += null[t]
        counts[1][:-1] += q.jump_counts()
        counts[1][-1] += q.initial_counts()
        return counts

    def maximise(self, counts):
        return [normalised(counts[0]), normalised(counts[1])]


PAIRS = [((0, 1, 2), (0, 1)), ((1, 0, 3), (1, 0)), ((2, 2, 0), (2, 0)), ((3, 1, 1), (3, 1)), ((0, 3, 2), (3, 2))]
FORWARD = Direction(0, 1, 3, 4)  # two target words from three source words
BACKWARD = Direction(1, 0, 2, 4)


@pytest.mark.parametrize("model", [FORWARD, BACKWARD], ids=["2 from 3", "3 from 2"])
def test_alignment_em_never_lowers_the_likelihood(model):
    params, infos = model.start(3), None
    _, infos = run(model, PAIRS, params, 10)
    truth = sum(brute_force_alignments(*model.inputs(params, pair)).log_partition for pair in PAIRS)
    assert infos[0].objective == pytest.approx(truth, abs=1e-10)
    assert rises(infos)
    assert rises(run(model, PAIRS, params, 6, hard=True)[1])


def test_bijective_em_never_lowers_its_bound():
    _, infos = run(BACKWARD, PAIRS, BACKWARD.start(3), 6, project=partial(bijective, tolerance=1e-7))
    assert rises(infos, 1e-6) and infos[0].evaluations > 0 and max(info.violation for info in infos) < 1e-6


class Both:
    """The two directions side by side."""

    def zero_counts(self):
        return np.array([FORWARD.zero_counts(), BACKWARD.zero_counts()], dtype=object)

    def distributions(self, params, batch):
        sides = FORWARD.distributions(params[0], batch), BACKWARD.distributions(params[1], batch)
        return (Pair(forward, backward) for forward, backward in zip(*sides, strict=True))

    def expected_counts(self, pair, q):
        both = FORWARD.expected_counts(pair, q.forward), BACKWARD.expected_counts(pair, q.backward)
        return np.array(both, dtype=object)

    def maximise(self, counts):
        return FORWARD.maximise(counts[0]), BACKWARD.maximise(counts[1])


def test_symmetric_em_never_lowers_its_bound_and_independent_training_is_two_runs():
    start = FORWARD.start(1), BACKWARD.start(2)
    _, infos = run(Both(), PAIRS, start, 6, project=lambda p: project_pair(p.forward, p.backward, tolerance=1e-7))
    assert rises(infos, 1e-6) and infos[0].evaluations > 0
    (forward, backward), _ = run(Both(), PAIRS, start, 4)
    for together, model, begin in ((forward, FORWARD, start[0]), (backward, BACKWARD, start[1])):
        alone, _ = run(model, PAIRS, begin, 4)
        assert all(np.array_equal(a, b) for a, b in zip(together, alone, strict=True))
    with pytest.raises(ParameterError, match="clamp"):
        run(Both(), PAIRS, start, 1, hard=True)


# --- agreement ---------------------------------------------------------------------------------------------------


@given(alignment_pairs(least=0, most=3))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_merge_is_the_product_of_enumerated_posteriors(pair):
    forward, backward = pair
    there, back = AlignmentChain(*forward), AlignmentChain(*backward)
    first, second = brute_force_alignments(*forward).marginals.T, brute_force_alignments(*backward).marginals
    merged, rest = merge(there, back), merge(there, back, null="rest")
    assert merged.links == pytest.approx(first * second, abs=1e-12)
    assert (merged.links >= 0).all() and (merged.links <= np.minimum(first, second) + 1e-12).all()
    for axis, null, left in (
        (0, merged.forward_null, rest.forward_null),
        (1, merged.backward_null, rest.backward_null),
    ):
        assert (merged.links.sum(axis=axis) <= 1 + 1e-12).all()
        assert null == pytest.approx(1 - (first, second)[axis].sum(axis=axis), abs=1e-10)  # each model's own
        assert left == pytest.approx(1 - merged.links.sum(axis=axis), abs=1e-12)
    swapped = merge(back, there)
    assert swapped.links == pytest.approx(merged.links.T, abs=1e-15)
    assert swapped.forward_null == pytest.approx(merged.backward_null, abs=1e-15)


def test_agreement_of_impossible_links_is_zero_and_shapes_must_match():
    forward = AlignmentChain([[0.0, -np.inf]], [0.0], np.log([0.5, 0.5]), np.log(np.full((2, 2), 0.5)), 0.2)
    backward = AlignmentChain([[0.0], [0.0]], [0.0, 0.0], [0.0], [[0.0]], 0.2)
    assert merge(forward, backward).links[1, 0] == 0
    with pytest.raises(ParameterError, match="source, target"):
        agreement(np.zeros((2, 3)), np.zeros((3, 2)))
    with pytest.raises(ParameterError, match="'own' or 'rest'"):
        merge(forward, backward, null="none")


def exact_joint_step(params):
    """E-step over all matchings, one M-step: the EM of the appendix. Returns objective (3) before it."""
    counts, objective = (FORWARD.zero_counts(), BACKWARD.zero_counts()), 0.0
    for pair in PAIRS:
        inputs = FORWARD.inputs(params[0], pair), BACKWARD.inputs(params[1], pair)
        score = [lambda a, x=x: alignment_score(a, *x) for x in inputs]
        joint = joint_agreement(3, 2, *score)
        objective += joint.objective
        for there, back, p in zip(joint.forward, joint.backward, joint.probabilities, strict=True):
            for total, model, x, a in zip(counts, (FORWARD, BACKWARD), inputs, (there, back), strict=True):
                if p > 0:
                    total += p * model.expected_counts(pair, AlignmentChain(*x).clamp(a))
    return (FORWARD.maximise(counts[0]), BACKWARD.maximise(counts[1])), objective


def test_joint_objective_is_that_of_two_independent_draws():
    params = FORWARD.start(4), BACKWARD.start(5)
    inputs = FORWARD.inputs(params[0], PAIRS[0]), BACKWARD.inputs(params[1], PAIRS[0])
    first, second = (brute_force_alignments(*x) for x in inputs)
    same = 0.0
    for a, p in zip(first.structures, first.probabilities, strict=True):
        for b, q in zip(second.structures, second.probabilities, strict=True):
            there, back = {(i, j) for j, i in enumerate(a) if i >= 0}, {(i, j) for i, j in enumerate(b) if j >= 0}
            same += p * q * (there == back)
    score = [lambda a, x=x: alignment_score(a, *x) for x in inputs]
    joint = joint_agreement(3, 2, *score)
    assert joint.objective == pytest.approx(first.log_partition + second.log_partition + np.log(same), abs=1e-10)
    assert len(joint.matchings) == 13 and joint.probabilities.sum() == pytest.approx(1)


def test_exact_joint_em_never_lowers_the_joint_objective():
    params, trace = (FORWARD.start(4), BACKWARD.start(5)), []
    for _ in range(8):
        params, objective = exact_joint_step(params)
        trace.append(objective)
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(trace)) and trace[-1] > trace[0] + 0.1
