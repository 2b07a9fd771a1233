"""EM over batches and whole texts, its M-steps, and EM as a learner that the runner drives."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.sparse import csr_matrix, identity, kron

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners import EM, LogLinearMultinomial, init, normalise, step
from isogloss.learners.loglinear import Lbfgs, Likelihood, LinearModel, Total
from isogloss.learners.multinomials import dirichlet_divergence
from isogloss.learners.posterior import (
    GraphLaplacian,
    Groups,
    Together,
    edge_types,
    exponentiated,
    label_features,
    project,
    regularise,
)
from isogloss.learners.runner import run
from isogloss.structures import Chain, FactoredChains, Itg, Matching, ProjectiveTree
from isogloss.testing import brute_force_chain, check_learner

K, V = 2, 4
SENTENCES = [(0, 1, 0, 1), (), (0, 1), (2, 0, 1, 2), (3,), (1, 0, 1, 0, 2, 3)]
BATCHES = [SENTENCES[:2], SENTENCES[2:]]


def logs(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def rises(trace, tolerance=1e-9):
    assert all(b >= a - tolerance for a, b in itertools.pairwise(trace)), trace
    return trace[-1] > trace[0] + 1e-3


# --- a hidden Markov model, sentence by sentence and in batches ----------------------------------------------------


class Tagger:
    """start [k], move [k, k] and emit [k, v] side by side: float64[k, 1 + k + v]."""

    def zero_counts(self):
        return np.zeros((K, 1 + K + V))

    def tables(self, params):
        return np.split(params, [1, 1 + K], axis=1)

    def distributions(self, params, batch):
        start, move, emit = self.tables(logs(params))
        for symbols in batch:
            scores = move + emit.T[np.array(symbols, int)][:, None, :]
            scores[:1] = start[:, 0] + emit[:, symbols[:1]].T[:, None, :]
            yield Chain(scores)

    def expected_counts(self, symbols, q):
        counts, nodes = self.zero_counts(), q.node_marginals()
        counts[:, 0] = nodes[:1].sum(axis=0)
        counts[:, 1 : 1 + K] = q.marginals()[1:].sum(axis=0)
        for t, symbol in enumerate(symbols):
            counts[:, 1 + K + symbol] += nodes[t]
        return counts

    def maximise(self, counts):
        start, move, emit = self.tables(counts)
        return np.concatenate([normalise(start.T).T, normalise(move), normalise(emit)], axis=1)

    def begin(self, seed=0):
        return self.maximise(np.random.default_rng(seed).random((K, 1 + K + V)))


class BatchTagger(Tagger):
    """The same, all sentences of a batch at once."""

    def distributions(self, params, batch):
        start, move, emit = self.tables(logs(params))
        return FactoredChains([emit.T[np.array(x, int)] for x in batch], move, start[:, 0])

    def expected_counts(self, batch, q):
        counts, steps = self.zero_counts(), q.counts()
        counts[:, 0] = steps.start
        counts[:, 1 : 1 + K] = steps.transitions
        symbols = np.array([v for x in batch for v in x], int)
        np.add.at(counts.T, 1 + K + symbols, q.marginals().values.reshape(-1, K))
        return counts


def steps_of(model, params, n, **options):
    state, infos = init(params), []
    for _ in range(n):
        state, info = step(state, BATCHES, model, **options)
        infos.append(info)
    return state.params, infos


def rarely_zero(dist):
    """State 0 at most 40% of a sentence."""
    features = np.zeros((1, *dist.scores.shape))
    features[0, ..., 0] = 1 / max(1, len(dist.scores))
    return project(dist, features, [0.4], tolerance=1e-8)


@pytest.mark.parametrize("options", [{}, {"hard": True}, {"project": rarely_zero}])
def test_batches_do_what_single_structures_do(options):
    begin = Tagger().begin()
    one, infos = steps_of(Tagger(), begin, 6, **options)
    many, others = steps_of(BatchTagger(), begin, 6, **options)
    assert many == pytest.approx(one, abs=1e-6 if "project" in options else 1e-12)
    assert [i.objective for i in others] == pytest.approx([i.objective for i in infos], abs=1e-6)
    assert rises([i.objective for i in others], 1e-6)
    if not options:
        truth = sum(brute_force_chain(d.scores).log_partition for d in Tagger().distributions(begin, SENTENCES))
        assert others[0].objective == pytest.approx(truth, abs=1e-10)
    if "project" in options:
        assert infos[0].evaluations > 0 and infos[0].unconverged == 0 and max(i.violation for i in infos) < 1e-6


# --- penalties on the whole text ---------------------------------------------------------------------------------


def word_labels(text, strength):
    """Few labels for each symbol, anywhere in the text."""
    flat = [v for x in SENTENCES for v in x]
    starts = np.cumsum([0, *map(len, SENTENCES)])
    tokens = [np.arange(a, b) for a, b in itertools.pairwise(starts)]
    groups = (np.array(flat)[:, None] * K + np.arange(K)).ravel()
    return label_features(text, tokens, len(flat), K), Groups(groups, strength)


def sparse_labels(strength, tolerance=1e-8):
    def project_corpus(text, start):
        return regularise(text, *word_labels(text, strength), start=start, tolerance=tolerance)

    return project_corpus


@pytest.mark.parametrize("model", [Tagger(), BatchTagger()], ids=["single", "batch"])
def test_a_penalty_on_the_whole_text_never_lowers_the_objective(model):
    begin = model.begin(1)
    params, infos = steps_of(model, begin, 8, project_corpus=sparse_labels(1.0))
    assert rises([i.objective for i in infos], 1e-6)
    assert infos[0].unconverged == 0 and infos[0].evaluations > infos[-1].evaluations > 0  # it starts where it was
    plain, others = steps_of(model, begin, 8)
    assert infos[0].objective < others[0].objective
    text = Together(model.distributions(params, SENTENCES))
    features, penalty = word_labels(text, 1.0)
    used = [
        penalty.largest(features.expectations(dist.marginals())).sum()
        for dist in (text, Together(model.distributions(plain, SENTENCES)))
    ]
    assert used[0] < used[1] - 0.1
    none, zeros = steps_of(model, begin, 8, project_corpus=sparse_labels(0.0))
    assert np.array_equal(none, plain) and [i.objective for i in zeros] == pytest.approx([i.objective for i in others])


def test_hard_em_on_the_whole_text():
    begin = Tagger().begin(2)
    found = [
        steps_of(model, begin, 5, project_corpus=lambda text, _: text, hard=True) for model in (Tagger(), BatchTagger())
    ]
    plain, infos = steps_of(Tagger(), begin, 5, hard=True)
    for params, others in found:
        assert params == pytest.approx(plain, abs=1e-12)
        assert [i.objective for i in others] == pytest.approx([i.objective for i in infos])


class Attachments:
    """Trees in which a word of tag c hangs from one of tag h with probability θ[h, c]; the root is the last row."""

    tags = 3

    def zero_counts(self):
        return np.zeros((self.tags + 1, self.tags))

    def distributions(self, params, batch):
        scores = []
        for tags in batch:
            table = np.zeros((len(tags) + 1, len(tags) + 1))
            table[:, 1:] = logs(params)[np.append(self.tags, tags).astype(int)][:, np.array(tags, int)]
            scores.append(table)
        return ProjectiveTree.batch(scores)

    def expected_counts(self, batch, q):
        counts = self.zero_counts()
        for tags, edges in zip(batch, q.marginals(), strict=True):
            heads, children = np.append(self.tags, tags).astype(int), np.array(tags, int)
            np.add.at(counts, (heads[:, None], children[None, :]), edges[:, 1:])
        return counts

    def maximise(self, counts):
        return normalise(counts)


TREEBANK = [[0, 1], [0, 1, 2], [], [1, 2], [2, 0, 1], [0], [1, 2, 0, 1]]


@pytest.mark.parametrize("symmetric", [False, True])
def test_pairs_of_tags_in_grammar_induction(symmetric):
    model, batches = Attachments(), [TREEBANK[:4], TREEBANK[4:]]
    begin = normalise(np.random.default_rng(0).random((4, 3)) + 1)

    def project_corpus(text, start, strength):
        features, groups = edge_types(text, TREEBANK, 3, symmetric=symmetric)
        return regularise(text, features, Groups(groups, strength), start=start, tolerance=1e-8)

    traces, types = {}, {}
    for strength in (0.0, 3.0):
        learner = EM(model, batches, project_corpus=partial(project_corpus, strength=strength))
        result = run(learner, learner.init(begin), iterations=12)
        traces[strength] = result.trace
        text = Together(model.distributions(result.state.params, TREEBANK))
        features, groups = edge_types(text, TREEBANK, 3)
        types[strength] = Groups(groups, 1.0).cost(features.expectations(text.marginals()))
        assert rises(result.trace, 1e-6)
    plain = EM(model, batches)
    same = run(plain, plain.init(begin), iterations=12)
    assert traces[0.0] == pytest.approx(same.trace, abs=1e-9)
    assert types[3.0] < types[0.0] - 0.1  # fewer pairs of tags in use


# --- a conditional random field regularised by a graph -------------------------------------------------------------


class GraphField:
    """A field of 3 sentences without labels and one with, whose M-step is L-BFGS; J̄ of He et al. 2013."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.lengths, self.gold, self.l2 = (3, 2, 4), np.array([0, 1, 1]), 0.1
        self.labelled, self.free = self.field([(0, 1, 2)]), self.field([rng.integers(0, 4, n) for n in self.lengths])

    def field(self, sentences):
        rows, chains = [], []
        for words in sentences:
            chains.append(np.zeros((len(words), K, K)))
            for t, word in enumerate(words):
                for i, j in itertools.product(range(K), range(K)):
                    used = t > 0 or i == 0
                    rows.append([word * K + j, 4 * K + i * K + j][: 1 + (t > 0)] if used else [])
        return LinearModel(Chain.batch(chains), Sparse.of(rows, 4 * K + K * K))

    def zero_counts(self):
        return 0.0

    def distributions(self, weights, batch):
        return self.free.distributions(weights)

    def expected_counts(self, batch, q):
        return q.marginals().values

    def supervised(self, weights):
        gradient = np.zeros(len(weights))
        likelihood = Likelihood(self.labelled, gold=[self.gold]).add_gradient(weights, gradient)
        return likelihood - 0.5 * self.l2 * weights @ weights

    def log_prior(self, weights):
        return self.supervised(weights) - float(np.sum(self.free.distributions(weights).log_partition()))

    def improve(self, weights, marginals):
        stack = self.free.distributions(weights).scores.like(np.asarray(marginals))
        both = Total([Likelihood(self.labelled, gold=[self.gold]), Likelihood(self.free, soft=stack)])
        learner = Lbfgs(both, l2=self.l2)
        return run(learner, learner.init(weights), iterations=60, tolerance=1e-12).state.weights


def test_a_graph_over_positions_while_a_field_is_learnt():
    model, vertices = GraphField(3), [[0, 1, 2], [1, 3], [0, 2, 3, -1]]
    weights = np.triu(np.random.default_rng(1).random((4, 4)), 1)
    fixed = np.zeros((4, 2))
    fixed[[0, 1, 2], model.gold] = 1
    graph = GraphLaplacian(csr_matrix(weights + weights.T), [3, 3, 3, 2], 2, fixed=fixed)

    def project_corpus(text, start):
        features = label_features(text, vertices, 4, K)
        return exponentiated(text, features, graph, strength=2.0, tolerance=1e-7, steps=5000, start=start)

    learner = EM(model, [[0, 1, 2]], project_corpus=project_corpus)
    result = run(learner, learner.init(np.zeros(model.free.n_weights)), iterations=6)
    assert rises(result.trace, 1e-6) and not result.watched["unconverged"].any()
    text = Together(model.distributions(result.state.params, None))
    found = project_corpus(text, None)
    assert model.supervised(result.state.params) - found.divergence - found.cost >= result.trace[-1] - 1e-6


# --- the runner --------------------------------------------------------------------------------------------------


def test_em_is_a_learner_that_can_be_stopped_and_taken_up():
    model = BatchTagger()
    learner = EM(model, BATCHES, project_corpus=sparse_labels(0.5))
    begin = learner.init(model.begin(4))
    check_learner(learner, begin, monotone=True, tolerance=1e-7)
    whole = run(learner, begin, iterations=6)
    half = learner.restore(*learner.dump(run(learner, begin, iterations=3).state))
    rest = run(learner, half, iterations=3)
    assert np.array_equal(rest.state.params, whole.state.params) and np.array_equal(rest.trace, whole.trace[3:])
    early = run(EM(Tagger(), BATCHES), init(model.begin(4)), iterations=200, tolerance=1e-6)
    assert early.stopped_because == "tolerance" and rises(early.trace)


def test_resuming_is_to_the_bit(tmp_path):
    model = BatchTagger()
    learner = EM(model, BATCHES, project_corpus=sparse_labels(0.5))
    begin = learner.init(model.begin(5))
    whole = run(learner, begin, iterations=4)

    class Cut(EM):
        def step(self, state):
            if state.iteration == 2:
                raise RuntimeError("power cut")
            return super().step(state)

    with pytest.raises(RuntimeError, match="power cut"):
        run(Cut(model, BATCHES, project_corpus=sparse_labels(0.5)), begin, iterations=4, checkpoint=tmp_path / "c")
    again = run(learner, begin, iterations=4, checkpoint=tmp_path / "c", resume=True)
    assert np.array_equal(again.trace, whole.trace) and np.array_equal(again.state.params, whole.state.params)
    assert np.array_equal(again.state.start, whole.state.start)


def test_parameters_of_any_usual_form_are_kept():
    learner = EM(Tagger(), BATCHES)
    for params in (np.eye(2), [np.eye(2), np.ones(3)], (np.eye(2),), {"a": np.eye(2), "b": np.ones(1)}):
        back = learner.restore(*learner.dump(init(params)))
        assert type(back.params) is type(params) and back.iteration == 0 and back.start is None
        flat = params.values() if isinstance(params, dict) else params
        kept = back.params.values() if isinstance(params, dict) else back.params
        assert all(np.array_equal(a, b) for a, b in zip(flat, kept, strict=True))
    for params in (object(), [object()]):
        with pytest.raises(TypeError, match="`dump` and `restore`"):
            learner.dump(init(params))

    class Own(Tagger):
        def dump(self, params):
            return {"x": np.array([params])}, {"kind": "number"}

        def restore(self, arrays, meta):
            assert meta == {"kind": "number"}
            return float(arrays["x"][0])

    own = EM(Own(), BATCHES)
    assert own.restore(*own.dump(init(2.5))).params == 2.5


# --- multinomials ------------------------------------------------------------------------------------------------


def test_normalise_and_its_priors():
    counts = np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert normalise(counts).tolist() == [[0.75, 0.25, 0.0], [1 / 3] * 3]
    assert normalise(counts, alpha=1.0) == pytest.approx(np.array([[4, 2, 1], [7 / 3] * 3]) / 7)
    rng = np.random.default_rng(0)
    discounted = normalise(counts, alpha=0.25, variational=True)
    draws = np.log(np.maximum(rng.dirichlet(counts[0] + 0.25, 200_000), 1e-300)).mean(axis=0)  # E[log θ]
    assert np.log(discounted[0]) == pytest.approx(draws, rel=0.02)
    assert (discounted.sum(axis=1) < 1).all() and discounted[0, 2] < normalise(counts, alpha=0.25)[0, 2]
    large = normalise([1000.0, 3000.0], alpha=0.5, variational=True)
    assert large == pytest.approx([0.25, 0.75], abs=1e-3)
    for wrong in ({"alpha": -1.0}, {"variational": True}):
        with pytest.raises(ParameterError, match="alpha"):
            normalise([1.0], **wrong)
    with pytest.raises(ParameterError, match="counts"):
        normalise([-1.0])
    assert normalise(np.zeros((2, 0))).shape == (2, 0)


@given(st.floats(0.0, 5.0), st.floats(0.0, 5.0), st.sampled_from([0.6, 1.0, 2.5]))
@settings(max_examples=15, deadline=None)
def test_divergence_of_dirichlets_by_quadrature(a, b, alpha):
    after, before = stats.beta(a + alpha, b + alpha), stats.beta(alpha, alpha)
    value, _ = integrate.quad(lambda x: after.pdf(x) * (after.logpdf(x) - before.logpdf(x)), 0, 1)
    assert dirichlet_divergence([a, b], alpha) == pytest.approx(value, abs=1e-4)
    assert dirichlet_divergence([[a, b], [0, 0]], alpha) == pytest.approx(dirichlet_divergence([a, b], alpha))


class Variational(Tagger):
    """Parameters are expected counts; the E-step sees them discounted."""

    alpha = 0.2

    def distributions(self, params, batch):
        start, move, emit = self.tables(params)
        discounted = [normalise(table, alpha=self.alpha, variational=True) for table in (start.T, move, emit)]
        return super().distributions(np.concatenate([discounted[0].T, *discounted[1:]], axis=1), batch)

    def maximise(self, counts):
        return counts

    def log_prior(self, params):
        start, move, emit = self.tables(params)
        return -sum(dirichlet_divergence(table, self.alpha) for table in (start.T, move, emit))


def test_variational_em_never_lowers_its_bound():
    model = Variational()
    _, infos = steps_of(model, np.random.default_rng(0).random((K, 1 + K + V)) * 3, 15)
    assert rises([i.objective for i in infos])


# --- log-linear multinomials -------------------------------------------------------------------------------------

OFFSETS = np.array([0, 3, 4, 8])


def ragged(seed=0, l2=0.3, allowed=None):
    features = csr_matrix(
        np.random.default_rng(seed).normal(size=(8, 5)) * (np.random.default_rng(1).random((8, 5)) < 0.6)
    )
    return LogLinearMultinomial(features, OFFSETS, l2=l2, allowed=allowed), features.toarray()


@pytest.mark.parametrize("masked", [False, True])
def test_value_and_gradient_of_log_linear_multinomials(masked):
    allowed = np.array([1, 1, 0, 1, 1, 0, 1, 1], bool) if masked else None
    model, features = ragged(allowed=allowed)
    rng = np.random.default_rng(2)
    counts, weights = rng.random(8) * (1 if allowed is None else allowed), rng.normal(size=5)
    value = -0.15 * weights @ weights
    for begin, end in itertools.pairwise(OFFSETS):  # one context at a time, by definition
        scores = np.exp(features[begin:end] @ weights) * (1 if allowed is None else allowed[begin:end])
        p = scores / scores.sum()
        assert np.exp(model.log_probs(weights))[begin:end] == pytest.approx(p)
        used = counts[begin:end] > 0
        value += counts[begin:end][used] @ np.log(p[used])
    found, gradient = model.objective(weights, counts)
    slopes = [
        (model.objective(weights + 1e-6 * e, counts)[0] - model.objective(weights - 1e-6 * e, counts)[0]) / 2e-6
        for e in np.eye(5)
    ]
    assert found == pytest.approx(value) and gradient == pytest.approx(np.array(slopes), abs=1e-7)
    assert [len(piece) for piece in model.split(counts)] == [3, 1, 4]
    assert np.isfinite(model.objective(weights * 1e4, counts)[0])


def test_fit_is_optimal_warm_and_never_worse():
    model, _ = ragged()
    counts = np.random.default_rng(3).random(8) * 10
    fit = model.fit(counts, tolerance=1e-9, steps=200)
    assert fit.converged and np.abs(model.objective(fit.weights, counts)[1]).max() < 1e-6
    again = model.fit(counts, fit.weights, tolerance=1e-8)
    assert again.evaluations == 1 and np.array_equal(again.weights, fit.weights)
    previous = model.objective(np.ones(5), counts)[0]
    for steps in (1, 2, 3, 10):
        early = model.fit(counts, np.ones(5), steps=steps)
        assert early.evaluations <= steps and early.objective >= previous
        assert early.objective == pytest.approx(model.objective(early.weights, counts)[0])
        previous = early.objective
    assert not early.converged or early.objective == pytest.approx(fit.objective)
    assert model.log_prior(fit.weights) == pytest.approx(-0.15 * fit.weights @ fit.weights)


def test_indicator_features_give_relative_frequencies_and_conjoined_is_a_shorthand():
    counts = np.array([[4.0, 1.0, 3.0], [2.0, 2.0, 0.5]])
    free = LogLinearMultinomial.conjoined(identity(3), 2, l2=0.0)
    fitted = np.exp(free.log_probs(free.fit(counts, tolerance=1e-10, steps=300).weights)).reshape(2, 3)
    assert fitted == pytest.approx(normalise(counts), abs=1e-6)
    words = csr_matrix(np.random.default_rng(0).random((3, 4)))
    short, long = LogLinearMultinomial.conjoined(words, 2), LogLinearMultinomial(kron(identity(2), words), 2)
    weights = np.random.default_rng(1).normal(size=8)
    assert short.n_weights == long.n_weights == 8 and short.n_rows == long.n_rows == 6
    assert short.log_probs(weights) == pytest.approx(long.log_probs(weights))
    assert short.objective(weights, counts)[1] == pytest.approx(long.objective(weights, counts)[1])


def test_an_outcome_may_stand_for_several():
    rows = csr_matrix(np.array([[1.0, 0], [0, 1], [0, 1], [0, 1], [1, 1]]))
    whole = LogLinearMultinomial.conjoined(rows, 2)
    shared = LogLinearMultinomial.conjoined(rows[[0, 1, 4]], 2, base=np.tile(np.log([1, 3, 1]), 2))
    weights = np.random.default_rng(1).normal(size=4)
    single = np.exp(whole.log_probs(weights)).reshape(2, 5)
    summed = np.stack([single[:, 0], single[:, 1:4].sum(1), single[:, 4]], axis=1)
    assert np.exp(shared.log_probs(weights)).reshape(2, 3) == pytest.approx(summed)
    counts = np.random.default_rng(2).random((2, 5))
    few = np.stack([counts[:, 0], counts[:, 1:4].sum(1), counts[:, 4]], axis=1)
    assert shared.objective(weights, few)[1] == pytest.approx(whole.objective(weights, counts)[1])


class FeatureTagger(Tagger):
    """Emissions from features of symbols, as in HMM-ME; an M-step of a few steps of L-BFGS."""

    def __init__(self, steps):
        self.steps = steps
        suffixes = csr_matrix(np.array([[1, 0, 1.0], [1, 0, 0], [0, 1, 0], [0, 1, 1]]))
        self.emissions = LogLinearMultinomial.conjoined(suffixes, K, l2=0.1)

    def distributions(self, params, batch):
        emit = np.exp(self.emissions.log_probs(params[1])).reshape(K, V)
        return super().distributions(np.concatenate([params[0], emit], axis=1), batch)

    def improve(self, params, counts):
        start, move, emit = self.tables(counts)
        fit = self.emissions.fit(emit, params[1], steps=self.steps)
        return [np.concatenate([normalise(start.T).T, normalise(move)], axis=1), fit.weights]

    def log_prior(self, params):
        return self.emissions.log_prior(params[1])


@pytest.mark.parametrize("steps", [2, 4, 50])
def test_generalised_em_with_features_never_lowers_the_penalised_likelihood(steps):
    model = FeatureTagger(steps)
    rng = np.random.default_rng(6)
    begin = [Tagger().begin(6)[:, : 1 + K], rng.normal(size=model.emissions.n_weights)]
    learner = EM(model, BATCHES)
    check_learner(learner, learner.init(begin), monotone=True)
    result = run(learner, learner.init(begin), iterations=15)
    assert rises(result.trace)
    assert result.state.params[0].sum(axis=0)[0] == pytest.approx(1)
    regularised = EM(model, BATCHES, project_corpus=sparse_labels(0.5))
    assert rises(run(regularised, regularised.init(begin), iterations=8).trace, 1e-6)


def test_bad_arguments_are_refused_by_name():
    features = csr_matrix(np.ones((6, 2)))
    for call, message in (
        (lambda: LogLinearMultinomial(features, 4), "6 rows are not 4 contexts"),
        (lambda: LogLinearMultinomial(features, [0, 3, 3, 6]), "offsets"),
        (lambda: LogLinearMultinomial(features, 2, l2=-1.0), "l2"),
        (lambda: LogLinearMultinomial(features, 2, allowed=[True] * 5), "6 answers"),
        (lambda: LogLinearMultinomial(features, 2, base=np.zeros(5)), "6 finite numbers"),
        (lambda: LogLinearMultinomial(features, 2, allowed=[True] * 3 + [False] * 3), "context 1 allows nothing"),
        (lambda: LogLinearMultinomial(features, 2).fit(np.ones(5)), "6 numbers"),
        (lambda: LogLinearMultinomial(features, 2, allowed=[True] * 5 + [False]).fit(np.ones(6)), "row 5 is counted"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()


def links_of(scores, kind, together):
    """A model whose items are sentence pairs of given scores; structures in a batch, or one by one."""

    class Links:
        def zero_counts(self):
            return np.zeros((3, 3))

        def distributions(self, params, batch):
            given = [params + scores[item] for item in batch]
            return kind.batch(given, -0.2) if together else [kind(one, -0.2) for one in given]

        def expected_counts(self, item, q):
            return sum(q.marginals()) if together else q.marginals()

        def maximise(self, counts):
            return np.log(counts + 0.1)

    return Links()


@pytest.mark.parametrize("kind", [Matching, Itg])
@pytest.mark.parametrize("project_each", [None, lambda dist: dist.with_scores(dist.scores - 0.1)])
def test_hard_em_counts_the_best_links_alone_in_batches_too(kind, project_each):
    scores = np.random.default_rng(0).normal(size=(2, 3, 3))
    more = {} if project_each is None else {"project": project_each}
    found = []
    for together in (False, True):
        learner = EM(links_of(scores, kind, together), [[0, 1]], hard=True, **more)
        found.append(learner.step(learner.init(np.zeros((3, 3)))))
    (one, info), (batch, other) = found
    assert other.objective == pytest.approx(info.objective)
    assert batch.params == pytest.approx(one.params)
    best = [kind(own, -0.2).argmax() for own in scores]
    if project_each is None:
        assert info.objective == pytest.approx(sum(kind(own, -0.2).score(y) for own, y in zip(scores, best)))


def test_a_model_without_an_m_step_is_refused_in_words() -> None:
    class Bare:
        def zero_counts(self) -> float:
            return 0.0

        def distributions(self, params: float, batch: list[Chain]) -> list[Chain]:
            return batch

        def expected_counts(self, item: Chain, q: Chain) -> float:
            return 1.0

    with pytest.raises(ParameterError, match=r"Bare has no M-step; give it maximise\(counts\) or improve"):
        step(init(0.0), [[Chain(np.zeros((1, 2, 2)))]], Bare())
