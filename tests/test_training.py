"""EM for both directions: what can only rise, what must not change, and the same numbers by slow roads."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from isogloss import samples
from isogloss.data import Bitext
from isogloss.engine.threads import using_threads
from isogloss.learners.runner import run
from isogloss.structures import AlignmentChain
from isogloss.structures._numba.jumps import BAND, BUCKETS, FIRST
from isogloss.tasks.align import expectation, maximisation
from isogloss.tasks.align._numba.expect import UNIT
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.hmm import HMMAligner
from isogloss.tasks.align.settings import Settings
from isogloss.tasks.align.training import Training

PLAIN = {"leave_out": 0.0, "stems": 0.0, "spelling": 0.0}  # textbook EM
BARE = {**PLAIN, "smoothing": 1e-9, "null_smoothing": 1e-9}
TIGHT = {
    "none": {},
    "symmetric": {"dual_steps": 400, "dual_rate": 1.0, "dual_tolerance": 1e-5},
    "bijective": {"dual_steps": 400, "dual_rate": 0.5, "dual_tolerance": 1e-5},
}


def corpus_of(bitext, max_length=100):
    return Corpus.of(bitext, lowercase=True, max_length=max_length)


@pytest.fixture(scope="module")
def small():
    return corpus_of(samples.bitext("en-de"))


def settings_of(model="hmm", **options):
    return Settings.of(model, HMMAligner(**options).get_params())


def train(corpus, steps=None, **options):
    training = Training(corpus, settings_of(**options))
    return training, run(training, training.begin(), iterations=training.iterations if steps is None else steps)


def log_prior(training, state):
    """What smoothing adds to the objective: the Dirichlet priors of both tables, unmet pairs included, and of null."""
    model, settings = training.model(state), training.settings
    n, m = len(model.source_words), len(model.target_words)
    owner = np.repeat(np.arange(n), np.diff(model.rows))
    forward = np.log(model.weights[:, 0] / model.source_mass[owner]).sum()
    backward = np.log(model.weights[:, 1] / model.target_mass[model.columns]).sum()
    smoothing = settings.smoothing
    forward += ((m - np.diff(model.rows)) * np.log(smoothing / model.source_mass[:n])).sum()
    backward += ((n - np.bincount(model.columns, minlength=m)) * np.log(smoothing / model.target_mass[:m])).sum()
    value = smoothing * (forward + backward)
    for null, mass, counts in (
        (model.source_null, model.null_mass[0], model.source_counts),
        (model.target_null, model.null_mass[1], model.target_counts),
    ):
        strength = settings.null_smoothing * len(counts) * counts / counts.sum()
        value += (strength * np.log(null[:-1] / mass)).sum()
    return value / training.n_pairs


# --- what can only rise ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["model1", "model2", "hmm"])
@pytest.mark.parametrize(("smoothing", "null_smoothing"), [(1e-9, 1e-9), (0.02, 2.0), (0.5, 0.5)])
def test_em_never_lowers_the_penalised_likelihood(small, model, smoothing, null_smoothing):
    """Through both stages: an HMM of uniform jumps is Model 1, so that nothing is lost where one takes over."""
    settings = settings_of(
        model=model,
        constraint="none",
        iterations=12,
        smoothing=smoothing,
        **{**PLAIN, "null_smoothing": null_smoothing},
    )
    training = Training(small, settings)
    state, trace = training.begin(), []
    while state.iteration < training.iterations:
        penalty = log_prior(training, state) if state.iteration else np.nan  # the first table has no prior in it
        state, info = training.step(state)
        trace.append(info.objective + penalty)
    rises = np.diff(trace[1:])
    assert (rises >= -1e-7 * abs(trace[-1])).all()  # float32
    assert rises[0] > 0.1


@pytest.mark.parametrize("model", ["model1", "hmm"])
@pytest.mark.parametrize("constraint", ["symmetric", "bijective"])
def test_tight_projections_never_lower_the_bound(small, model, constraint):
    training, result = train(
        small, model=model, constraint=constraint, model1_iterations=3, iterations=10, **BARE, **TIGHT[constraint]
    )
    own = result.trace[training.iterations - 10 :]  # before, there is no constraint that costs anything
    assert (np.diff(own) >= -2e-3).all()
    assert own[-1] > own[0] + 1
    _, free = train(small, model=model, constraint="none", model1_iterations=3, iterations=10, **BARE)
    assert own[-1] < free.trace[-1]
    assert result.watched["violation"][-1] < 0.05 and not free.watched["violation"].any()


def test_more_steps_on_the_dual_leave_less_violation(small):
    left = [
        train(
            small, steps=7, constraint="symmetric", **PLAIN, dual_steps=steps, dual_tolerance=0.0
        )[1].watched["violation"][5]
        for steps in (1, 4, 16, 64)
    ]  # fmt: skip
    assert left == sorted(left, reverse=True) and left[-1] < left[0] / 4


# --- the same numbers by a slow road -----------------------------------------------------------------------------


def textbook_model1(pairs, iterations, smoothing, null_smoothing, p0):
    """p(target | source) of Model 1 with a null word, from uniform, word by word in dictionaries."""
    targets = Counter(f for _, target in pairs for f in target)
    table = defaultdict(dict)
    for source, target in pairs:
        for e in source:
            for f in target:
                table[e][f] = 1.0
    table = {e: {f: 1 / len(row) for f in row} for e, row in table.items()}
    tokens = sum(targets.values())
    null = {f: n / tokens for f, n in targets.items()}
    for _ in range(iterations):
        counts, alone, likelihood = {e: dict.fromkeys(row, 0.0) for e, row in table.items()}, Counter(), 0.0
        for source, target in pairs:
            for f in target:
                scores = [(1 - p0) / len(source) * table[e][f] for e in source]
                total = sum(scores) + p0 * null[f]
                likelihood += np.log(total)
                alone[f] += p0 * null[f] / total
                for e, score in zip(source, scores, strict=True):
                    counts[e][f] += score / total
        for e, row in counts.items():
            total = sum(row.values()) + smoothing * len(targets)
            table[e] = {f: (c + smoothing) / total for f, c in row.items()}
        spread = null_smoothing * len(targets)
        total = sum(alone.values()) + spread
        null = {f: (alone[f] + spread * n / tokens) / total for f, n in targets.items()}
    return table, null, likelihood


def test_model_1_equals_the_textbook():
    pairs = [(a.lower().split(), b.lower().split()) for a, b in SENTENCES]
    training, result = train(
        corpus_of(Bitext.of(SENTENCES)), model="model1", constraint="none", iterations=6, model1_iterations=0, null=0.2,
        **{**PLAIN, "smoothing": 0.01, "null_smoothing": 0.05},
    )  # fmt: skip
    steps = len(result.trace)
    model = training.model(result.state)
    forward, target_null, log_forward = textbook_model1(pairs, steps, 0.01, 0.05, 0.2)
    backward, source_null, log_backward = textbook_model1([(b, a) for a, b in pairs], steps, 0.01, 0.05, 0.2)
    for e, word in enumerate(model.source_words):
        for entry in range(model.rows[e], model.rows[e + 1]):
            other = model.target_words[model.columns[entry]]
            there = model.weights[entry, 0] / model.source_mass[e]
            back = model.weights[entry, 1] / model.target_mass[model.columns[entry]]
            assert [there, back] == pytest.approx([forward[word][other], backward[other][word]], rel=1e-3, abs=1e-5)
    for words, found, mass, expected in (
        (model.source_words, model.source_null, model.null_mass[0], source_null),
        (model.target_words, model.target_null, model.null_mass[1], target_null),
    ):
        assert [found[k] / mass for k in range(len(words))] == pytest.approx([expected[w] for w in words], abs=1e-4)
    assert result.trace[-1] == pytest.approx((log_forward + log_backward) / len(pairs), rel=1e-4)


SENTENCES = [
    ("the house is small", "das Haus ist klein"), ("the house", "das Haus"), ("a small house", "ein kleines Haus"),
    ("the the book", "das Buch"), ("a book", "ein Buch"), ("the book is a small small book", "das Buch ist klein"),
    ("small", "klein"), ("is the book the house ?", "ist das Buch das Haus ?"),
]  # fmt: skip


@pytest.mark.parametrize(("null", "final"), [(0.2, False), ("length", True)])
def test_an_iteration_of_the_hmm_equals_chains_pair_by_pair(monkeypatch, null, final):
    """E-step and M-step of the forward direction, by general chains and the definition of the update."""
    monkeypatch.setattr(expectation, "LEAST", 1)  # the last step keeps evidence, here all of it
    corpus = corpus_of(Bitext.of(SENTENCES))
    options = {"model1_iterations": 2, "iterations": 3, "null": null, "final": final, **PLAIN}
    training = Training(corpus, settings_of(model="hmm", constraint="none", **options))
    state = training.begin()
    for _ in range(4):
        state, _ = training.step(state)
    before = training.model(state)
    after, info = training.step(state)
    counts, nulls = defaultdict(float), defaultdict(float)
    moved, divisors, entered, entries = np.zeros(BUCKETS), np.zeros(BUCKETS), np.zeros(FIRST), np.zeros(FIRST)
    left, leaving, value = np.zeros(FIRST), np.zeros(FIRST), 0.0
    for s in range(len(corpus)):
        source = tokens(corpus.pairs.source_ids, corpus.pairs.source_offsets, s)
        target = tokens(corpus.pairs.target_ids, corpus.pairs.target_offsets, s)
        n, m = len(source), len(target)
        entry = corpus.pairs.cells[corpus.pairs.cell_offsets[s] :][: n * m].reshape(n, m)
        d = np.arange(n)[None, :] - np.arange(n)[:, None]
        bucket = np.where(np.abs(d) <= BAND, d + BAND, BUCKETS - 1)
        weights, place = before.jumps[0][bucket], np.minimum(np.arange(n), FIRST - 1)
        first, last = before.first[0][place], before.last[0][place[::-1]]
        chain = AlignmentChain(
            np.log((before.weights[entry, 0] / before.source_mass[source][:, None]).T),
            np.log(before.target_null[target] / before.null_mass[1]),
            np.log(first / first.sum()), np.log(weights / weights.sum(axis=1, keepdims=True)),
            1 / (n + 1) if null == "length" else null, np.log(np.append(n * last / last.sum(), 1.0)),
        )  # fmt: skip
        value += chain.log_partition()
        for k, q in zip(entry.ravel(), chain.posterior().T.ravel(), strict=True):
            counts[k] += q
        for f, q in zip(target.tolist(), chain.null_posterior(), strict=True):
            nulls[f] += q
        jumped = chain.jump_counts()
        np.add.at(moved, bucket, jumped)
        np.add.at(divisors, bucket, (jumped.sum(axis=1) / weights.sum(axis=1))[:, None] * np.ones(n))
        np.add.at(entered, place, chain.initial_counts())
        np.add.at(entries, place, chain.initial_counts().sum() / first.sum())
        np.add.at(left, place[::-1], chain.final_counts()[:-1])
        np.add.at(leaving, place, chain.final_counts()[:-1].sum() / last.sum())
    assert state.evidence.scores[:, 0].sum() == pytest.approx(value, rel=1e-5)
    rounded = 2.0**-21  # the sum is of multiples of 2⁻²⁰
    assert info.objective == pytest.approx(state.evidence.scores.sum() / len(corpus), rel=1e-9, abs=rounded)
    assert after.counts[:, 0] / UNIT == pytest.approx([counts[k] for k in range(len(corpus.columns))], abs=1e-3)
    spread = 0.01 * len(corpus.target_words) * corpus.target_counts / corpus.target_counts.sum()
    expected = spread + [nulls[f] for f in range(len(corpus.target_words))]
    assert training.model(after).target_null[:-1] == pytest.approx(expected, abs=1e-3)
    for found, up, down, old in (
        (after.jumps, moved, divisors, before.jumps),
        (after.first, entered, entries, before.first),
    ):
        new = (up + 0.5) / (down + 0.5 / old[0])
        assert found[0] == pytest.approx(new / new.sum(), rel=1e-3)
    if final:
        new = (left + 0.5) / (leaving + 0.5 / before.last[0])
        assert after.last[0] == pytest.approx(new / new.sum(), rel=1e-3)
    else:
        assert (after.last == 1).all()


def tokens(values, offsets, s):
    return values[offsets[s] : offsets[s + 1]]


def test_counts_are_sums_of_posteriors_and_probabilities_add_up(small):
    training, result = train(small)  # the defaults: priors, leaving out, agreement
    state = result.state
    sums = np.zeros((len(small.columns), 2), np.int64)
    _, posterior = state.evidence.shard(0)
    assert posterior.max(axis=1)[posterior.any(axis=1)].min() >= 16 and not posterior.all()
    np.add.at(sums, small.pairs.cells, posterior.astype(np.int64))
    assert (sums == state.counts).all()
    model, settings = training.model(state), training.settings
    unmet = settings.smoothing * (len(small.target_words) - np.diff(small.rows))
    assert np.add.reduceat(model.weights[:, 0].astype(float), small.rows[:-1]) + unmet == pytest.approx(
        model.source_mass[:-1], rel=1e-5
    )
    assert model.null_mass == pytest.approx([model.source_null[:-1].sum(), model.target_null[:-1].sum()], rel=1e-5)
    assert model.jumps.sum(axis=1) == pytest.approx([1, 1]) and model.first.sum(axis=1) == pytest.approx([1, 1])
    assert (model.weights >= np.float32(settings.smoothing)).all() and (model.jumps > 0).all()


@pytest.mark.parametrize("model", ["model1", "hmm"])
def test_long_pairs_are_counted_only_if_they_are_learnt_from(model):
    """Every word of a pair that is learnt from is counted once, linked or not; of the others there is nothing."""
    corpus = corpus_of(Bitext.of(SENTENCES))
    for length in (1, 3, 4, 100):
        training = Training(corpus, settings_of(model=model, constraint="none", train_length=length))
        state = training.begin()
        for _ in range(training.iterations):
            state, _ = training.step(state)
        words = [b.split() for a, b in SENTENCES if max(len(a.split()), len(b.split())) <= length]
        counted = (state.counts[:, 0].sum() + state.others.target_null.sum()) / UNIT
        assert counted == pytest.approx(sum(map(len, words)), abs=0.01) and training.n_pairs == len(words)


def test_model_1_may_agree_from_its_second_iteration_on():
    corpus = corpus_of(Bitext.of(SENTENCES))
    free, joint = (
        Training(corpus, settings_of(model1_constraint=constraint, model1_iterations=3))
        for constraint in ("none", "agreement")
    )
    states = [free.begin(), joint.begin()]
    for number in range(3):
        for k, training in enumerate((free, joint)):
            states[k], _ = training.step(states[k])
        counts = [state.counts.copy() for state in states]
        if number == 0:
            assert (counts[0] == counts[1]).all()  # nothing is known yet
        else:
            assert (counts[1][:, 0] == counts[1][:, 1]).all() and not (counts[0][:, 0] == counts[0][:, 1]).all()


# --- what must not change ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["model1", "model2", "hmm"])
def test_a_text_twice_gives_the_same_parameters(model, monkeypatch):
    monkeypatch.setattr(maximisation, "PSEUDO", 1e-12)  # it weighs half as much when there is twice the text
    rows = list(samples.bitext("en-de"))
    once, first = train(corpus_of(Bitext.of(rows)), model=model, constraint="none", iterations=3, **BARE)
    twice, second = train(corpus_of(Bitext.of(rows + rows)), model=model, constraint="none", iterations=3, **BARE)
    assert second.trace == pytest.approx(first.trace, abs=1e-2)
    one, two = once.model(first.state), twice.model(second.state)
    assert list(one.source_words) == list(two.source_words) and (one.columns == two.columns).all()
    owner = np.repeat(np.arange(len(one.source_words)), np.diff(one.rows))
    assert two.weights[:, 0] / two.source_mass[owner] == pytest.approx(
        one.weights[:, 0] / one.source_mass[owner], abs=2e-3
    )
    assert two.jumps == pytest.approx(one.jumps, abs=2e-3) and two.diagonal == pytest.approx(one.diagonal, abs=2e-3)


def bits(training, state):
    arrays, _ = training.dump(state)
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("constraint", ["agreement", "symmetric", "bijective"])
def test_threads_do_not_change_a_bit(constraint):
    bitext, found = samples.synthetic(300, seed=5).bitext, []
    for n in (1, 2):
        with using_threads(n):
            training, result = train(corpus_of(bitext), constraint=constraint)
            found.append((bits(training, result.state), result.trace.tobytes()))
    assert found[0] == found[1]


def test_pairs_that_are_passed_over_teach_nothing():
    rows = list(samples.bitext("en-de"))
    noise = [("", "qqq"), ("zzz " * 40, "qqq"), ("zzz", ""), ("", "")]
    plain, a = train(corpus_of(Bitext.of(rows), 30))
    mixed, b = train(corpus_of(Bitext.of(noise + rows), 30))
    assert mixed.corpus.skipped.tolist() == [True] * 4 + [False] * len(rows)
    assert list(mixed.corpus.source_words) == list(plain.corpus.source_words)
    assert b.trace == pytest.approx(a.trace, rel=1e-6)
    assert mixed.model(b.state).weights == pytest.approx(plain.model(a.state).weights, abs=1e-3)
    assert np.isnan(b.state.evidence.scores[:4]).all()


# --- checkpoints -------------------------------------------------------------------------------------------------


class PowerCut(Exception):
    pass


@pytest.mark.parametrize("at", [1, 4, 6])
def test_a_broken_training_is_taken_up_to_the_bit(small, tmp_path, at):
    settings = settings_of(iterations=4)
    whole = Training(small, settings)
    uncut = run(whole, whole.begin(), iterations=whole.iterations)
    calls = iter(range(100))

    def cut(fraction):
        if next(calls) == at:
            raise PowerCut

    broken = Training(small, settings, on_shard=cut)
    with pytest.raises(PowerCut):
        run(broken, broken.begin(), iterations=broken.iterations, checkpoint=tmp_path / "kept", every=1)
    fresh = Training(small, settings)
    again = run(
        fresh, fresh.begin(), iterations=fresh.iterations, checkpoint=tmp_path / "kept", every=1, resume=True
    )  # fmt: skip
    assert again.trace.tobytes() == uncut.trace.tobytes()
    assert bits(fresh, again.state) == bits(whole, uncut.state)


def test_dump_and_restore_are_inverse(small):
    training, result = train(small, steps=3)
    arrays, meta = training.dump(result.state)
    restored = training.restore(arrays, meta)
    assert bits(training, restored) == bits(training, result.state) and restored.iteration == 3
    before = bits(training, result.state)
    training.step(restored)  # which writes over its own evidence, not over the one that was dumped
    assert bits(training, result.state) == before
