"""Hidden Markov models with masks, against enumeration by nothing of ours."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, identity

from isogloss.engine.threads import using_threads
from isogloss.errors import DataError, ParameterError
from isogloss.learners.posterior import Together
from isogloss.tasks.tag.emissions import LogLinearEmissions
from isogloss.tasks.tag.hmm import Hmm, TokenLabels, fit_hmm

TYPES = 5


def paths(transitions, emissions, ids, allowed):
    """All allowed label sequences of a sentence: (labels, cells of transitions that are used, probability)."""
    k, order = transitions.shape[-1], transitions.ndim - 1
    for labels in itertools.product(range(k), repeat=len(ids)):
        if all(allowed[t][y] for t, y in enumerate(labels)):
            before, weight, cells = (k,) * order, 1.0, []
            for word, y in zip(ids, labels, strict=True):
                cells.append((*before, y))
                weight *= transitions[(*before, y)] * emissions[y, word]
                before = (*before, y)[1:]
            yield labels, cells, weight


@st.composite
def cases(draw, max_k=3):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, order = draw(st.integers(1, max_k)), draw(st.integers(1, 2))
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids, allowed = rng.integers(0, TYPES, offsets[-1]), rng.random((offsets[-1], k)) < 0.6
    allowed[np.arange(len(ids)), rng.integers(0, k, len(ids))] = True
    transitions = rng.dirichlet(np.full(k, 0.5), (k + 1,) * order) + 1e-9
    emissions = rng.dirichlet(np.full(TYPES, 0.5), k) + 1e-9
    return transitions / transitions.sum(-1, keepdims=True), emissions, ids, offsets, allowed


@settings(max_examples=60, deadline=None)
@given(cases())
def test_expectations_agree_with_enumeration(case):
    transitions, emissions, ids, offsets, allowed = case
    model, text = Hmm(transitions, np.log(emissions)), TokenLabels(ids, offsets, allowed)
    found, posterior, best = model.lattices(text), model.posterior(text), model.best(text)
    counts, mass = np.zeros_like(transitions), np.zeros(allowed.shape)
    for s, (here, there) in enumerate(itertools.pairwise(offsets.tolist())):
        every = list(paths(transitions, emissions, ids[here:there], allowed[here:there]))
        total = math.fsum(weight for _, _, weight in every)
        assert found.log_partition()[s] == pytest.approx(math.log(total), abs=1e-9)
        for labels, cells, weight in every:
            for cell in cells:
                counts[cell] += weight / total
            for t, y in enumerate(labels):
                mass[here + t, y] += weight / total
        ours = next(weight for labels, _, weight in every if list(labels) == best[here:there].tolist())
        assert ours == pytest.approx(max(weight for _, _, weight in every), rel=1e-9)
    assert found.counts() == pytest.approx(counts, abs=1e-9)
    assert posterior == pytest.approx(mass, abs=1e-9)
    assert (posterior[~allowed] == 0).all()


@settings(max_examples=20, deadline=None)
@given(cases())
def test_other_evidence_of_tokens_multiplies(case):
    transitions, emissions, ids, offsets, allowed = case
    evidence = np.random.default_rng(len(ids)).random(allowed.shape) + 0.1
    model, text = Hmm(transitions, np.log(emissions)), TokenLabels(ids, offsets, allowed)
    found = model.lattices(text, np.log(evidence)[text.tokens, text.labels])
    for s, (here, there) in enumerate(itertools.pairwise(offsets.tolist())):
        every = paths(transitions, emissions, ids[here:there], allowed[here:there])
        total = math.fsum(w * math.prod(evidence[here + t, y] for t, y in enumerate(labels)) for labels, _, w in every)
        assert found.log_partition()[s] == pytest.approx(math.log(total), abs=1e-9)


def test_order_2_that_does_not_look_further_back_is_order_1():
    rng = np.random.default_rng(3)
    first, emissions = rng.dirichlet(np.ones(4), 5), np.log(rng.dirichlet(np.ones(TYPES), 4))
    second = np.broadcast_to(first, (5, 5, 4)).copy()
    text = TokenLabels(rng.integers(0, TYPES, 40), [0, 0, 1, 3, 40], rng.random((40, 4)) < 0.7)
    one, two = Hmm(first, emissions), Hmm(second, emissions)
    assert two.posterior(text) == pytest.approx(one.posterior(text))
    assert two.lattices(text).log_partition() == pytest.approx(one.lattices(text).log_partition())
    assert two.best(text).tolist() == one.best(text).tolist()


def corpus(seed=0, sentences=60, k=4, types=12):
    """Text of a hidden Markov model, its labels, and a mask that always allows the true label."""
    rng = np.random.default_rng(seed)
    moves, words = rng.dirichlet(np.full(k, 0.3), k + 1), rng.dirichlet(np.full(types, 0.2), k)
    ids, labels, offsets = [], [], [0]
    for _ in range(sentences):
        y = k
        for _ in range(rng.integers(0, 12)):
            y = rng.choice(k, p=moves[y])
            labels.append(y)
            ids.append(rng.choice(types, p=words[y]))
        offsets.append(len(ids))
    ids, labels = np.array(ids), np.array(labels)
    allowed = rng.random((types, k)) < 0.3
    allowed[ids, labels] = True
    return ids, labels, np.array(offsets), allowed


FEATURES = csr_matrix(np.array([[i % 2 == 0, i % 3 == 0, i < 6, i == 7, i > 9] for i in range(12)], float))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("features", [None, FEATURES])
@pytest.mark.parametrize("restrict", [False, True])
def test_the_objective_never_falls(order, features, restrict):
    ids, _, offsets, allowed = corpus()
    fit = fit_hmm(
        ids, offsets, allowed[ids], features, n_types=12, order=order, iterations=30, restrict_support=restrict
    )  # fmt: skip
    assert len(fit.trace) == 30 and (np.diff(fit.trace) >= -1e-9 * abs(fit.trace[-1])).all()
    assert fit.trace[-1] > fit.trace[0]
    assert fit.model.transitions.sum(-1) == pytest.approx(1.0)
    assert np.exp(fit.model.emissions).sum(-1) == pytest.approx(1.0)


def test_order_2_may_begin_as_order_1():
    ids, _, offsets, allowed = corpus(3)
    text, given_ = TokenLabels(ids, offsets, allowed[ids]), {"n_types": 12, "smoothing": 0.0}
    first = fit_hmm(ids, offsets, allowed[ids], order=1, iterations=4, **given_)
    second = fit_hmm(ids, offsets, allowed[ids], order=2, iterations=7, first_order=4, **given_)
    assert len(second.trace) == 3 and second.trace[0] == pytest.approx(first.model.lattices(text).log_partition().sum())
    assert (np.diff(second.trace) >= -1e-9).all() and second.model.order == 2
    assert len(fit_hmm(ids, offsets, allowed[ids], order=2, iterations=1, first_order=4, **given_).trace) == 1


def test_without_smoothing_the_objective_is_the_likelihood():
    ids, _, offsets, allowed = corpus(1)
    text = TokenLabels(ids, offsets, allowed[ids])
    before = fit_hmm(ids, offsets, allowed[ids], n_types=12, order=1, iterations=4, smoothing=0.0)
    after = fit_hmm(ids, offsets, allowed[ids], n_types=12, order=1, iterations=5, smoothing=0.0)
    assert after.trace[-1] == pytest.approx(before.model.lattices(text).log_partition().sum())


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_emissions_and_their_gradient_by_the_definition(seed, restrict):
    rng = np.random.default_rng(seed)
    allowed = rng.random((3, 12)) < 0.7 if restrict else np.ones((3, 12), bool)
    allowed[:, 0] = True
    model = LogLinearEmissions(FEATURES, 3, l2=0.1, allowed=allowed if restrict else None)
    counts, weights = rng.random((3, 12)) * allowed, rng.normal(size=model.n_weights)
    assert len(np.unique(model.groups)) < 12 or restrict  # some types are alike

    def value(weights):
        scores = np.where(allowed, weights.reshape(3, -1) @ FEATURES.toarray().T, -np.inf)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return logs, (counts[allowed] * logs[allowed]).sum() - 0.05 * weights @ weights

    assert model.table(weights) == pytest.approx(value(weights)[0])
    zs = np.log((np.exp(weights.reshape(3, -1) @ FEATURES.toarray().T) * allowed).sum(1))
    assert model.normalisers(weights) == pytest.approx(zs)
    gradient = model.gradient(weights, counts)
    for i in rng.integers(0, len(weights), 4):
        tip = np.zeros(len(weights))
        tip[i] = 1e-6
        rise = value(weights + tip)[1] - value(weights - tip)[1]
        assert gradient[i] == pytest.approx(rise / 2e-6, abs=1e-6)


def test_an_indicator_for_each_word_and_a_flat_prior_is_a_table():
    ids, _, offsets, allowed = corpus(2)
    found = [
        fit_hmm(
            ids, offsets, allowed[ids], features, n_types=12, order=1, iterations=n, seed=5, variance=1e12,
            evaluations=2000, smoothing=1e-3,
        )
        for features, n in ((None, 4), (identity(12), 3))  # the first step of features is taken before they count
    ]  # fmt: skip
    table, logs = np.exp(found[0].model.emissions), np.exp(found[1].model.emissions)
    assert logs == pytest.approx(table, abs=2e-3)
    assert found[1].model.transitions == pytest.approx(found[0].model.transitions, abs=2e-3)


def test_gradient_climbs_the_same_likelihood():
    ids, _, offsets, allowed = corpus(4)
    given_ = (ids, offsets, allowed[ids], FEATURES)
    em = fit_hmm(*given_, order=1, iterations=300, evaluations=50)
    direct = fit_hmm(*given_, order=1, iterations=300, method="gradient")
    assert (np.diff(direct.trace) >= -1e-9 * abs(direct.trace[-1])).all()
    assert direct.trace[-1] >= em.trace[-1] - 0.01 * abs(em.trace[-1])
    # at the end of the one there is nothing to climb for the other: a stationary point of both
    again = direct.model.lattices(TokenLabels(ids, offsets, allowed[ids])).counts() + 1e-4
    assert direct.model.transitions == pytest.approx(again / again.sum(-1, keepdims=True), abs=0.02)


def test_gradient_of_the_marginal_likelihood_is_the_difference():
    from isogloss.tasks.tag.hmm import _Marginal, _TagModel

    ids, _, offsets, allowed = corpus(5, sentences=10)
    text = TokenLabels(ids, offsets, allowed[ids])
    emissions = LogLinearEmissions(FEATURES, 4, l2=0.1)
    for shape in ((5, 4), (5, 5, 4)):
        target = _Marginal(_TagModel(text, 12, emissions, 0.01, 20, None), shape)
        weights, gradient = np.random.default_rng(1).normal(size=target.n_weights), np.zeros(target.n_weights)
        target.add_gradient(weights, gradient)
        for i in [0, 7, target.n_emissions, target.n_emissions + 11, target.n_weights - 1]:
            tip, rubbish = np.zeros(len(weights)), np.zeros(len(weights))
            tip[i] = 1e-5
            rise = target.add_gradient(weights + tip, rubbish) - target.add_gradient(weights - tip, rubbish)
            assert gradient[i] == pytest.approx(rise / 2e-5, abs=1e-5)


def test_masks_of_tokens_are_kept():
    ids, labels, offsets, allowed = corpus(6)
    mask = allowed[ids].copy()
    narrowed = np.arange(len(ids)) % 3 == 0
    mask[narrowed] = np.eye(4, dtype=bool)[labels[narrowed]]  # narrower than the sets of their types
    for features in (None, FEATURES):
        fit = fit_hmm(ids, offsets, mask, features, n_types=12, iterations=5)
        posterior = fit.model.posterior(TokenLabels(ids, offsets, mask))
        assert (posterior[~mask] == 0).all() and posterior.sum(1) == pytest.approx(1.0)
        assert posterior[narrowed].argmax(1).tolist() == labels[narrowed].tolist()


def test_a_projection_that_does_nothing_is_em():
    ids, _, offsets, allowed = corpus(7, sentences=20)
    for order in (1, 2):
        given_ = (ids, offsets, allowed[ids], FEATURES)
        plain = fit_hmm(*given_, order=order, iterations=5)
        starts = []

        def same(text: Together, start, starts=starts):
            starts.append(start)
            return text

        hooked = fit_hmm(*given_, order=order, iterations=5, project=same)
        assert hooked.trace == pytest.approx(plain.trace) and len(starts) == 6
        assert hooked.model.transitions == pytest.approx(plain.model.transitions, abs=1e-6)


def test_the_number_of_threads_changes_nothing():
    ids, _, offsets, allowed = corpus(8, sentences=500)
    found = []
    for n in (1, 2):
        with using_threads(n):
            found.append(fit_hmm(ids, offsets, allowed[ids], FEATURES, iterations=5))
    assert found[0].trace.tolist() == found[1].trace.tolist()
    assert (found[0].model.transitions == found[1].model.transitions).all()
    assert (found[0].weights == found[1].weights).all()


def test_the_seed_decides():
    ids, _, offsets, allowed = corpus(9)
    first, second, other = (fit_hmm(ids, offsets, allowed[ids], n_types=12, iterations=3, seed=s) for s in (1, 1, 2))
    assert first.trace.tolist() == second.trace.tolist() != other.trace.tolist()


@pytest.mark.parametrize("order", [1, 2])
def test_long_sentences_and_impossible_products(order):
    rng = np.random.default_rng(0)
    model = Hmm(rng.dirichlet(np.ones(3), (4,) * order), np.log(rng.dirichlet(np.ones(TYPES), 3)) - 400)
    text = TokenLabels(rng.integers(0, TYPES, 5000), [0, 5000], np.ones((5000, 3)))
    posterior = model.posterior(text)
    assert np.isfinite(model.lattices(text).log_partition()).all() and posterior.sum(1) == pytest.approx(1.0)
    # label 1 alone leads on, and at the first word its share is too small for floating point
    transitions = np.full((3,) * order + (2,), 0.5)
    transitions[..., 0, :] = [1.0, 0.0]
    steep = Hmm(transitions, np.array([[0.0, -1e4], [-800.0, 0.0]]))
    found = steep.lattices(TokenLabels([0, 1, 0, 0], [0, 3, 4], [[1, 1], [0, 1], [1, 1], [1, 0]]))
    assert found.log_partition() == pytest.approx([-800 + 3 * np.log(0.5) + np.log1p(np.exp(-800)), np.log(0.5)])
    assert found.marginals().values == pytest.approx([0, 1, 1, 1, 0, 1], abs=1e-12)
    assert found.counts().sum() == pytest.approx(4.0)


def test_a_token_that_allows_nothing_allows_everything():
    text = TokenLabels([0, 1], [0, 2], [[False, False], [True, False]])
    assert text.labels.tolist() == [0, 1, 0]


def test_a_label_without_words_gives_no_nan():
    ids, _, offsets, allowed = corpus(10)
    mask = np.column_stack([allowed, np.zeros(12, bool)])
    for features, restrict in itertools.product((None, FEATURES), (False, True)):
        fit = fit_hmm(
            ids, offsets, mask[ids], features, n_types=12, iterations=3, restrict_support=restrict
        )  # fmt: skip
        assert np.isfinite(fit.trace).all() and not np.isnan(fit.model.emissions).any()
        assert (fit.model.posterior(TokenLabels(ids, offsets, mask[ids]))[:, 4] == 0).all()


def test_wrong_arguments_are_named():
    with pytest.raises(DataError, match="no words"):
        fit_hmm([], [0, 0], np.zeros((0, 3)), n_types=3)
    with pytest.raises(ParameterError, match="order"):
        fit_hmm([0], [0, 1], np.ones((1, 3)), order=3)
    with pytest.raises(ParameterError, match="offsets"):
        TokenLabels([0, 1], [0, 1], np.ones((2, 2)))
    with pytest.raises(ParameterError, match="gradient"):
        fit_hmm([0], [0, 1], np.ones((1, 3)), method="gradient")
    with pytest.raises(ParameterError, match="numbers of types"):
        fit_hmm([0, 4], [0, 2], np.ones((2, 2)), n_types=3)
