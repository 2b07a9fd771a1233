"""The collapsed sampler of topics: held to enumeration, to its conditionals, and to its invariants."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.stats import chi2

from isogloss.engine.threads import using_threads
from isogloss.errors import ModelError
from isogloss.learners._numba import gibbs as kernels
from isogloss.learners.gibbs import Bags, Gibbs
from isogloss.learners.runner import run
from isogloss.testing import check_learner
from isogloss.testing.enumerate.topics import topic_joint, topic_posterior

Word = tuple[int, int, int]


def bags_of(words: list[Word], sizes: list[int], n_documents: int) -> Bags:
    """Words are in order of document and language."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    lengths = np.zeros((n_documents, len(sizes)), np.int64)
    for d, language, _ in words:
        lengths[d, language] += 1
    numbers = np.array([starts[language] + w for _, language, w in words], np.int32)
    return Bags(numbers, np.concatenate([[0], np.cumsum(lengths.ravel())]).astype(np.int64), np.array(sizes))


def random_words(rng: np.random.Generator, n_documents: int, sizes: list[int], most: int) -> list[Word]:
    """Documents of any length, languages that are missing, and documents without a word."""
    words = []
    for d in range(n_documents):
        for language, size in enumerate(sizes):
            words += [(d, language, int(w)) for w in rng.integers(size, size=rng.integers(most + 1))]
    return words


def chi_square_holds(observed: np.ndarray, expected: np.ndarray) -> bool:
    """Whether draws may come from a distribution: rare outcomes are taken together."""
    expected = expected / expected.sum() * observed.sum()
    rare = expected < 5
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    there = expected > 0
    assert not observed[~there].any()
    value = ((observed - expected)[there] ** 2 / expected[there]).sum()
    return bool(chi2.sf(value, max(1, there.sum() - 1)) > 1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_the_joint_is_that_of_an_urn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, n_topics = [4, 2, 3][: 1 + seed % 3], 1 + seed
    words = random_words(rng, 4, sizes, 5)
    sampler = Gibbs(bags_of(words, sizes, 4), n_topics, concentration=1.0, beta=0.3)
    topics = rng.integers(n_topics, size=len(words)).astype(np.int16)
    alpha = rng.uniform(0.01, 2.0, n_topics)
    expected = topic_joint(words, topics.tolist(), alpha.tolist(), 0.3, sizes)
    assert sampler.log_joint(topics, alpha) == pytest.approx(expected, abs=1e-8)


def test_orders_and_names_do_not_matter_to_the_joint() -> None:
    rng = np.random.default_rng(3)
    words, n_topics = random_words(rng, 5, [4, 3], 6), 4
    topics = rng.integers(n_topics, size=len(words))
    alpha = rng.uniform(0.1, 1.0, n_topics)

    def value(words: list[Word], topics: np.ndarray, alpha: np.ndarray, sizes: list[int]) -> float:
        order = sorted(range(len(words)), key=lambda i: words[i][:2])
        bags = bags_of([words[i] for i in order], sizes, 5)
        sampler = Gibbs(bags, n_topics, concentration=1.0, beta=0.1)
        return sampler.log_joint(topics[order].astype(np.int16), alpha)

    known = value(words, topics, alpha, [4, 3])
    assert value([(4 - d, lang, w) for d, lang, w in words], topics, alpha, [4, 3]) == pytest.approx(known)
    assert value([(d, 1 - lang, w) for d, lang, w in words], topics, alpha, [3, 4]) == pytest.approx(known)
    new = np.array([2, 0, 3, 1])
    relabelled = np.empty(n_topics)
    relabelled[new] = alpha
    assert value(words, new[topics], relabelled, [4, 3]) == pytest.approx(known)


@pytest.mark.parametrize("n_topics", [1, 2, 5, 20, 40])
def test_a_word_is_drawn_from_its_conditional(n_topics: int) -> None:
    """The first word of a sweep, given all others: ratios of joints of states that differ in its topic alone."""
    rng = np.random.default_rng(n_topics)
    sizes = [3, 4]
    words = [(0, 0, 1), *((d, lang, w) for d, lang, w in random_words(rng, 6, sizes, 8) if d > 0)]
    words += [(0, 1, int(w)) for w in rng.integers(4, size=5)]
    words.sort(key=lambda word: word[:2])
    bags, beta = bags_of(words, sizes, 6), 0.2
    alpha = rng.uniform(0.05, 1.0, n_topics)
    topics = rng.integers(n_topics, size=len(words)).astype(np.int16)
    logs = np.array(
        [topic_joint(words, [t, *topics[1:].tolist()], alpha.tolist(), beta, sizes) for t in range(n_topics)]
    )
    formula = []
    own = [(word, t) for word, t in zip(words, topics.tolist(), strict=True)][1:]
    for t in range(n_topics):
        in_document = sum(u == t and d == 0 for (d, _, _), u in own)
        in_topic = sum(u == t and lang == 0 for (_, lang, _), u in own)
        of_word = sum(u == t and lang == 0 and w == 1 for (_, lang, w), u in own)
        formula.append((in_document + alpha[t]) * (of_word + beta) / (in_topic + sizes[0] * beta))
    chances = np.exp(logs - logs.max())
    assert np.array(formula) / sum(formula) == pytest.approx(chances / chances.sum())
    sampler = Gibbs(bags, n_topics, concentration=1.0, beta=beta)
    entries, totals = sampler._counts(topics)
    drawn = np.zeros(n_topics)
    for number in range(4000):
        changed = topics.copy()
        sampler._sweep(number, changed, alpha, entries[None].copy(), totals[None].copy())
        drawn[changed[0]] += 1
    assert chi_square_holds(drawn, chances)


def test_a_document_that_leans_on_others_has_their_topics_in_its_prior() -> None:
    """The first word of a sweep again; and δ N by loops."""
    rng = np.random.default_rng(7)
    sizes, n_topics, beta = [3, 4], 5, 0.2
    words = [(0, 0, 1), (0, 0, 2), *(word for word in random_words(rng, 6, sizes, 8) if word[0] > 0)]
    bags, alpha = bags_of(words, sizes, 6), rng.uniform(0.05, 1.0, n_topics)
    topics = rng.integers(n_topics, size=len(words)).astype(np.int16)
    leaning = np.zeros((6, 6))
    leaning[0, 3], leaning[0, 5], leaning[4, 0] = 0.7, 0.2, 0.5
    sampler = Gibbs(bags, n_topics, concentration=1.0, beta=beta, leaning=csr_matrix(leaning))
    added = np.zeros((6, n_topics))
    for (d, _, _), t in zip(words, topics.tolist(), strict=True):
        added[:, t] += leaning[:, d]
    assert sampler.leans(topics) == pytest.approx(added)
    own = list(zip(words, topics.tolist(), strict=True))[1:]
    chances = []
    for t in range(n_topics):
        in_document = sum(u == t and d == 0 for (d, _, _), u in own)
        in_topic = sum(u == t and lang == 0 for (_, lang, _), u in own)
        of_word = sum(u == t and lang == 0 and w == 1 for (_, lang, w), u in own)
        chances.append((in_document + alpha[t] + added[0, t]) * (of_word + beta) / (in_topic + sizes[0] * beta))
    entries, totals = sampler._counts(topics)
    drawn = np.zeros(n_topics)
    for number in range(4000):
        changed = topics.copy()
        sampler._sweep(number, changed, alpha, entries[None].copy(), totals[None].copy(), sampler.leans(topics))
        drawn[changed[0]] += 1
    assert chi_square_holds(drawn, np.array(chances))
    whole = Gibbs(bags, n_topics, concentration=1.0, beta=beta)
    apart = sum(
        math.lgamma(p.sum()) - math.lgamma(p.sum() + n.sum()) + sum(map(math.lgamma, n + p)) - sum(map(math.lgamma, p))
        - (math.lgamma(alpha.sum()) - math.lgamma(alpha.sum() + n.sum()) + sum(map(math.lgamma, n + alpha))
           - sum(map(math.lgamma, alpha)))
        for p, n in zip(alpha + added, sampler.document_topics(topics), strict=True)
    )  # fmt: skip
    assert sampler.log_joint(topics, alpha) - whole.log_joint(topics, alpha) == pytest.approx(apart)


@pytest.mark.parametrize("blocks", [1, 3])
def test_leaning_is_a_learner_whatever_the_threads(blocks: int) -> None:
    rng = np.random.default_rng(1)
    bags = bags_of(random_words(rng, 12, [5, 4], 20), [5, 4], 12)
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            leaning = csr_matrix(np.random.default_rng(3).random((12, 12)) * (1 - np.eye(12)))
            sampler = Gibbs(bags, 4, concentration=0.3, blocks=blocks, optimise=1, burn_in=0, leaning=leaning)
            found.append(run(sampler, sampler.init(), iterations=6).state)
    assert np.array_equal(found[0].topics, found[1].topics) and np.array_equal(found[0].alpha, found[1].alpha)
    check_learner(sampler, sampler.init(), steps=3)


@pytest.mark.parametrize("sizes", [[3], [2, 2]], ids=["LDA", "two languages"])
def test_states_are_as_frequent_as_the_posterior_says(sizes: list[int]) -> None:
    words = [(0, 0, 0), (0, 0, 1), (0, len(sizes) - 1, 1), (1, 0, 1), (1, len(sizes) - 1, 0)]
    alpha, beta = np.array([0.4, 1.1]), 0.5
    expected = topic_posterior(words, alpha.tolist(), beta, sizes)
    sampler = Gibbs(bags_of(words, sizes, 2), 2, concentration=1.0, beta=beta, seed=1)
    topics = sampler.init().topics
    entries, totals = (table[None].copy() for table in sampler._counts(topics))
    seen = dict.fromkeys(expected, 0)
    for number in range(60_000):
        sampler._sweep(number, topics, alpha, entries, totals)
        if number % 5 == 4:  # states that follow each other are alike
            seen[tuple(topics.tolist())] += 1
    assert chi_square_holds(np.array(list(seen.values()), float), np.array(list(expected.values())))


@pytest.mark.parametrize("blocks", [1, 3])
def test_counts_are_those_of_topics_after_every_sweep(blocks: int) -> None:
    rng = np.random.default_rng(7)
    sizes = [6, 3, 5]
    words = random_words(rng, 9, sizes, 12)
    bags = bags_of(words, sizes, 9)
    sampler = Gibbs(bags, 7, concentration=0.5, blocks=blocks, optimise=2, burn_in=1)
    assert sampler.n_blocks == blocks
    state = sampler.init()
    fresh = Gibbs(bags, 7, concentration=0.5)
    for _ in range(8):
        state, _ = sampler.step(state)
        assert state.topics.min() >= 0 and state.topics.max() < 7
        for kept, counted in zip(sampler._counts(state.topics), fresh._counts(state.topics), strict=True):
            assert np.array_equal(kept, counted)
        offsets, topics, counts, totals = sampler.word_topics(state)
        assert counts.min() > 0 and counts.sum() == len(words) == totals.sum()
        sums = np.zeros((3, 7), np.int64)
        language = np.repeat(np.repeat(np.arange(3), sizes), np.diff(offsets))
        np.add.at(sums, (language, topics), counts)
        assert np.array_equal(sums, totals)
        assert np.isfinite(sampler.log_joint(state.topics, state.alpha))


@pytest.mark.parametrize("blocks", [1, 4])
def test_it_is_a_learner(blocks: int) -> None:
    words = random_words(np.random.default_rng(0), 12, [5, 4], 20)
    sampler = Gibbs(bags_of(words, [5, 4], 12), 6, concentration=0.3, blocks=blocks, optimise=1, burn_in=0)
    check_learner(sampler, sampler.init(), steps=4)


def test_threads_change_nothing_and_blocks_are_cut_by_the_data() -> None:
    words = random_words(np.random.default_rng(2), 40, [9], 30)
    bags = bags_of(words, [9], 40)
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            sampler = Gibbs(bags, 5, concentration=0.3, blocks=4)
            found.append(run(sampler, sampler.init(), iterations=20).state)
    assert np.array_equal(found[0].topics, found[1].topics) and np.array_equal(found[0].alpha, found[1].alpha)
    alone = Gibbs(bags, 5, concentration=0.3)
    assert alone.n_blocks == 1
    assert not np.array_equal(run(alone, alone.init(), iterations=20).state.topics, found[0].topics)


def test_what_was_stopped_goes_on_to_the_bit(tmp_path: Path) -> None:
    words = random_words(np.random.default_rng(5), 20, [9, 7], 30)
    bags = bags_of(words, [9, 7], 20)

    def sampler() -> Gibbs:
        return Gibbs(bags, 8, concentration=0.3, optimise=3, burn_in=4)

    whole = run(sampler(), sampler().init(), iterations=25)
    place = tmp_path / "run"
    run(sampler(), sampler().init(), iterations=13, checkpoint=place)
    resumed = run(sampler(), sampler().init(), iterations=25, checkpoint=place, resume=True)
    assert np.array_equal(resumed.state.topics, whole.state.topics)
    assert np.array_equal(resumed.state.alpha, whole.state.alpha)
    assert np.array_equal(resumed.trace, whole.trace)
    with pytest.raises(ModelError, match="not those of these documents"):
        sampler().restore({"topics": whole.state.topics + np.int16(50), "alpha": whole.state.alpha}, {})


def test_lists_hold_words_that_are_too_frequent_for_short_numbers() -> None:
    bags = bags_of([(0, 0, 0)] * 50, [1], 1)
    short = Gibbs(bags, 4, concentration=0.4)
    long = Gibbs(bags, 4, concentration=0.4)
    long._dtype = np.uint64  # as for words that occur 2^29 times
    states = [run(each, each.init(), iterations=5).state for each in (short, long)]
    assert short._dtype == np.uint32 and np.array_equal(states[0].topics, states[1].topics)


@pytest.mark.parametrize(
    ("words", "sizes", "n_documents"),
    [
        ([(0, 0, 0)] * 30, [1], 1),
        ([(0, 1, 0), (0, 1, 1)], [3, 2], 3),
        ([], [2], 2),
        ([(1, 0, 0)], [1, 4], 2),
        ([(0, 0, int(w)) for w in np.random.default_rng(0).integers(7, size=20_000)], [7], 1),
    ],
    ids=["one word", "a language without words", "no words", "a lonely word", "a long document"],
)
@pytest.mark.parametrize("n_topics", [1, 3])
@pytest.mark.parametrize("concentration", [1e-6, 10.0])
def test_odd_documents(
    words: list[Word], sizes: list[int], n_documents: int, n_topics: int, concentration: float
) -> None:
    sampler = Gibbs(bags_of(words, sizes, n_documents), n_topics, concentration=concentration, optimise=1, burn_in=2)
    result = run(sampler, sampler.init(), iterations=12)
    assert np.isfinite(result.trace).all() and (result.state.alpha > 0).all() and np.isfinite(result.state.alpha).all()
    assert n_topics > 1 or not result.state.topics.any()


def test_topics_of_a_generated_text_are_found_in_all_languages_at_once() -> None:
    rng = np.random.default_rng(11)
    n_topics, sizes = 5, [40, 30, 50]
    phi = [rng.dirichlet(np.full(size, 0.05), n_topics) for size in sizes]
    words: list[Word] = []
    for d in range(150):
        theta = rng.dirichlet(np.full(n_topics, 0.15))
        for language, size in enumerate(sizes):
            for t in rng.choice(n_topics, p=theta, size=30):
                words.append((d, language, int(rng.choice(size, p=phi[language][t]))))
    bags = bags_of(words, sizes, 150)
    sampler = Gibbs(bags, n_topics, concentration=0.5)
    state = run(sampler, sampler.init(), iterations=200).state
    offsets, topics, counts, totals = sampler.word_topics(state)
    found, first = [], 0
    for language, size in enumerate(sizes):
        table = np.full((n_topics, size), 0.01)
        for w in range(size):
            for k in range(offsets[first + w], offsets[first + w + 1]):
                table[topics[k], w] += counts[k]
        found.append(table / (totals[language][:, None] + size * 0.01))
        first += size
    distance = [np.abs(phi[lang][:, None] - found[lang][None]).sum(axis=2) / 2 for lang in range(3)]
    rows, columns = linear_sum_assignment(distance[0])
    for each in distance:  # the same names of topics fit every language
        assert each[rows, columns].max() < 0.15
        assert np.array_equal(linear_sum_assignment(each)[1], columns)
    assert state.alpha.sum() == pytest.approx(0.75, rel=0.3)


def test_first_topics_are_alike_probable() -> None:
    segments = np.array([0, 3000, 9000], np.int64)
    topics = np.zeros(9000, np.int16)
    kernels.first_topics(np.uint64(5), segments, 1, 6, topics)
    assert chi_square_holds(np.bincount(topics, minlength=6).astype(float), np.ones(6))
    assert math.isclose(np.corrcoef(topics[:3000], topics[3000:6000])[0, 1], 0.0, abs_tol=0.06)
