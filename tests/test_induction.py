"""Grammar induction: expected events, EM, priors, penalties and rules by other roads; trees of any length."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from conftest import Call
from isogloss import samples
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import DataError, ParameterError, TreebankError, UsageError
from isogloss.learners.em import EM
from isogloss.learners.multinomials import mixture_split
from isogloss.learners.posterior import Groups, Together, edge_types, regularise
from isogloss.structures import Stack
from isogloss.tasks.parse.induction import GrammarInducer, ValenceGrammar
from isogloss.tasks.parse.induction.grammar import Events, TagText
from isogloss.tasks.parse.induction.learning import (
    FLOOR,
    GrammarModel,
    at_least,
    learn,
    sparsity,
    starting_events,
)
from isogloss.tasks.parse.induction.material import Material, marks_of, without_marks
from isogloss.tasks.parse.induction.rules import rule_tables
from isogloss.testing import brute_force_valence, check_estimator, valence_parts
from isogloss.testing.solver import regularise_listed

MODELS = [((2, 1), 1.0), ((2, 2), 1 / 3), ((3, 3), 1 / 3)]
"""Classes of valence, and the weight of a head's own children."""


def random_text(seed, n_sentences=12, longest=6, n_tags=3):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, n_sentences)
    return TagText(rng.integers(0, n_tags, lengths.sum()), np.append(0, np.cumsum(lengths)), n_tags)


def random_grammar(seed, classes, back_off, n_tags=3, nearest_first=True):
    rng = np.random.default_rng(seed)
    shapes = ((), (n_tags, 2, classes[0]), (n_tags, 2, classes[1]), (2, classes[1]))
    ends = (n_tags, 2, n_tags, n_tags)
    tables = (rng.dirichlet(np.ones(end), shape) for shape, end in zip(shapes, ends, strict=True))
    return ValenceGrammar(*tables, back_off, nearest_first)


def enumerated(trees):
    """Every tree of each sentence."""
    return [
        brute_force_valence(one.scores, one.stops, one.children, one.nearest_first)
        for one in (trees[s] for s in range(len(trees)))
    ]


# --- the grammar


@pytest.mark.parametrize("nearest_first", [True, False])
@pytest.mark.parametrize(("classes", "back_off"), MODELS)
def test_expected_events_are_those_of_enumerated_trees(classes, back_off, nearest_first):
    text = random_text(0, longest=4)
    trees = random_grammar(1, classes, back_off, nearest_first=nearest_first).trees(text)
    wanted = Events.none(3, classes)
    for tags, truth in zip(text.sentences(), enumerated(trees), strict=True):
        for heads, p in zip(truth.structures, truth.probabilities, strict=True):
            stops, children = valence_parts(heads, *classes, nearest_first)
            for child, head in enumerate(heads, 1):
                if head == 0:
                    wanted.root[tags[child - 1]] += p
                else:
                    side = int(child > head)
                    wanted.child[tags[head - 1], side, :, tags[child - 1]] += p * children[head, child]
                wanted.stop[tags[child - 1]] += p * stops[child]
    found = Events.of(text, trees, classes)
    for name in ("root", "stop", "child"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-10, err_msg=name)


@pytest.mark.parametrize(("classes", "back_off"), MODELS)
def test_a_tree_has_the_product_of_its_decisions(classes, back_off):
    grammar, tags = random_grammar(2, classes, back_off), [0, 2, 1, 1]
    trees = grammar.trees(TagText(tags, [0, 4], 3))
    own = grammar.back_off * grammar.child + (1 - grammar.back_off) * grammar.back
    last = [size - 1 for size in classes]
    # word 2 (tag 2) is the root's child, with 1 on its left and 3, 4 on its right
    p = grammar.root[2] * grammar.stop[0, 0, 0, 1] * grammar.stop[0, 1, 0, 1]
    p *= grammar.stop[2, 0, 0, 0] * own[2, 0, 0, 0] * grammar.stop[2, 0, min(1, last[0]), 1]
    p *= grammar.stop[2, 1, 0, 0] * own[2, 1, 0, 1]
    p *= grammar.stop[2, 1, min(1, last[0]), 0] * own[2, 1, min(1, last[1]), 1]
    p *= grammar.stop[2, 1, min(2, last[0]), 1]
    p *= (grammar.stop[1, 0, 0, 1] * grammar.stop[1, 1, 0, 1]) ** 2
    assert trees[0].score([2, 0, 2, 2]) == pytest.approx(np.log(p))


@pytest.mark.parametrize(("classes", "back_off"), MODELS)
def test_it_is_a_distribution_over_tags_and_trees(classes, back_off):
    """Probabilities of all sentences up to a length add up to less than 1, and to nearly 1 where heads stop soon."""
    grammar = random_grammar(3, classes, back_off, n_tags=2)
    grammar.stop[..., 1] = 0.8 + 0.2 * grammar.stop[..., 1]
    grammar.stop[..., 0] = 1 - grammar.stop[..., 1]
    sums = []
    for longest in (1, 3, 6):
        strings = [tags for n in range(1, longest + 1) for tags in itertools.product((0, 1), repeat=n)]
        text = TagText(np.concatenate(strings), np.append(0, np.cumsum([len(tags) for tags in strings])), 2)
        sums.append(float(np.exp(grammar.trees(text).log_partition()).sum()))
    assert sums[0] < sums[1] < sums[2] < 1 and sums[2] > 0.97


def test_smoothing_keeps_every_tree_and_every_tag_possible():
    grammar = ValenceGrammar(np.array([1.0, 0.0]), np.zeros((2, 2, 2, 2)), np.zeros((2, 2, 1, 2)), np.zeros((2, 1, 2)))
    trees = grammar.smoothed(np.exp(-10)).trees(TagText([2, 1, 0, 2], [0, 4], 3))
    assert np.isfinite(trees.log_partition()).all()


# --- where it begins


@pytest.mark.parametrize("nearest_first", [True, False])
@pytest.mark.parametrize("classes", [(2, 1), (3, 2)])
def test_harmonic_counts_are_those_of_words_that_choose_heads_alone(classes, nearest_first):
    text = TagText([0, 1, 2, 1, 0], [0, 4, 5], 3)
    wanted = Events.none(3, classes)
    wanted.root[0] += 1.0  # the sentence of one word
    wanted.stop[0, :, 0, 1] += 1.0
    tags, n = [0, 1, 2, 1], 4
    chances = np.zeros((n + 1, n + 1))  # (head, child)
    chances[0, 1:] = 1 / n
    for child in range(1, n + 1):
        near = {head: 1 / abs(head - child) for head in range(1, n + 1) if head != child}
        for head, weight in near.items():
            chances[head, child] = (1 - 1 / n) * weight / sum(near.values())
    for heads in itertools.product(range(n + 1), repeat=n):  # no tree is asked for
        p = np.prod([chances[head, child] for child, head in enumerate(heads, 1)])
        if p == 0:
            continue
        stops, children = valence_parts(heads, *classes, nearest_first)
        for child, head in enumerate(heads, 1):
            wanted.stop[tags[child - 1]] += p * stops[child]
            if head == 0:
                wanted.root[tags[child - 1]] += p
            else:
                wanted.child[tags[head - 1], int(child > head), :, tags[child - 1]] += p * children[head, child]
    found = starting_events(text, classes, "harmonic", nearest_first)
    for name in ("root", "stop", "child"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-12, err_msg=name)


def test_children_begin_alike_in_all_classes():
    text = random_text(4)
    found = starting_events(text, (3, 3), "harmonic").levelled()
    plain = starting_events(text, (3, 3), "harmonic")
    np.testing.assert_allclose(found.child.sum(axis=2), plain.child.sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(found.child.sum(axis=3), plain.child.sum(axis=3), atol=1e-12)
    tables = GrammarModel(text, (3, 3), 1 / 3).first(plain)["child"]
    counted = plain.child.sum(axis=3) > 100 * FLOOR
    for table, some in zip(tables.reshape(-1, 3, 3), counted.reshape(-1, 3), strict=True):
        for row in table[some]:
            np.testing.assert_allclose(row, table[some][0], atol=0.05)


@pytest.mark.parametrize("start", ["harmonic", "distance", "uniform"])
def test_every_start_gives_multinomials(start):
    text = random_text(5)
    model = GrammarModel(text, (2, 2), 1 / 3)
    params = model.first(starting_events(text, (2, 2), start))
    for name in ("root", "stop", "child", "back"):
        np.testing.assert_allclose(params[name].sum(axis=-1), 1.0, atol=1e-12)


# --- learning


def learnt(text, classes, back_off, demanded=None, *, alpha=0.0, iterations=15, **options):
    model = GrammarModel(text, classes, back_off, alpha)
    events = starting_events(text, classes, "harmonic")
    return learn(model, events, demanded or (lambda trees: None), iterations=iterations, **options)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("classes", "back_off"), MODELS)
def test_the_objective_never_falls(classes, back_off, alpha):
    text = random_text(6, 40, 7, 4)
    grammar, trace, _ = learnt(text, classes, back_off, alpha=alpha)
    assert (np.diff(trace) >= -1e-8).all() and trace[-1] > trace[0]
    if not alpha:
        for table in (grammar.root, grammar.stop, grammar.child, grammar.back):
            np.testing.assert_allclose(table.sum(axis=-1), 1.0, atol=1e-12)


def test_hard_em_never_falls():
    text = random_text(7, 40, 7, 4)
    model = GrammarModel(text, (2, 2), 1 / 3)
    learner = EM(model, [[text]], hard=True)
    state, seen = learner.init(model.first(starting_events(text, (2, 2), "harmonic"))), []
    for _ in range(8):
        state, info = learner.step(state)
        seen.append(info.objective)
    assert (np.diff(seen) >= -1e-8).all()


def penalised(text, sigma, *, symmetric=True, gap=1e-6, steps=1000):
    return lambda trees: sparsity(text, trees, sigma, sigma, symmetric=symmetric, gap=gap, steps=steps)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("classes", "back_off"), MODELS[:2])
def test_the_penalised_objective_never_falls(classes, back_off, symmetric):
    text = random_text(8, 15, 5, 3)
    _, trace, watched = learnt(text, classes, back_off, penalised(text, 2.0, symmetric=symmetric), iterations=8)
    assert not watched["unconverged"].any()
    assert (np.diff(trace) >= -1e-3).all() and trace[-1] > trace[0] + 1


def test_a_penalty_of_nothing_is_em():
    text = random_text(9, 20, 6, 3)
    plain, penalty = learnt(text, (2, 1), 1.0), learnt(text, (2, 1), 1.0, penalised(text, 0.0))
    np.testing.assert_allclose(plain[1], penalty[1], rtol=1e-13)
    np.testing.assert_array_equal(plain[0].child, penalty[0].child)


def test_both_penalties_are_one_where_no_sentence_repeats_a_tag():
    text = TagText([0, 1, 2, 2, 0, 1, 0, 2, 1], [0, 3, 5, 6, 8, 9], 3)
    both = [learnt(text, (2, 1), 1.0, penalised(text, 1.5, symmetric=symmetric), iterations=5) for symmetric in (0, 1)]
    np.testing.assert_allclose(both[0][1], both[1][1], rtol=1e-7)
    np.testing.assert_allclose(both[0][0].child, both[1][0].child, atol=1e-4)


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_dual_finds_what_a_generic_solver_finds(symmetric):
    """Three sentences, two tags: over explicitly listed trees; and what grows and shrinks with sigma."""
    text = TagText([0, 1, 0, 1, 1, 0, 0, 1, 0], [0, 3, 5, 9], 2)
    trees = random_grammar(10, (2, 1), 1.0, n_tags=2).trees(text)
    together = Together(trees)
    features, groups = edge_types(together, text.sentences(), 2, symmetric=symmetric)
    truths = enumerated(trees)
    listed = []
    for s, truth in enumerate(truths):
        columns = []
        for parts in truth.parts:
            whole = np.zeros(together.offsets[-1])
            whole[together.offsets[s] : together.offsets[s + 1]] = parts.ravel()
            columns.append(features.expectations(whole))
        listed.append(np.array(columns).T)
    costs, divergences = [], []
    for sigma in (0.3, 1.0, 3.0):
        found = regularise(together, features, Groups(groups, sigma), tolerance=1e-11, steps=2000)
        assert found.converged and -1e-9 <= found.gap < 1e-6
        solved = regularise_listed(
            [truth.probabilities for truth in truths], listed, groups=groups, strength=np.full(groups.max() + 1, sigma)
        )
        for q, truth, member in zip(solved, truths, found.q, strict=True):
            wanted = np.tensordot(q, truth.parts, 1)
            np.testing.assert_allclose(member.marginals(), wanted, atol=2e-4)
        used = np.bincount(groups, found.multipliers)
        expected = features.expectations(found.q.marginals())
        largest = Groups(groups, sigma).largest(expected)
        np.testing.assert_allclose(used[largest > 1e-6], sigma, rtol=1e-4)  # every group is pulled as hard as allowed
        costs.append(found.cost / sigma)
        divergences.append(found.divergence)
    assert (np.diff(costs) <= 1e-7).all() and (np.diff(divergences) >= -1e-7).all()


def test_root_links_have_a_strength_of_their_own():
    text = random_text(11, 20, 5, 3)
    trees = random_grammar(11, (2, 1), 1.0).trees(text)
    features, groups = edge_types(Together(trees), text.sentences(), 3)
    project = sparsity(text, trees, 2.0, 0.0, symmetric=False, gap=1e-6, steps=300)
    outcome = project(Together(trees), None)
    multipliers = np.bincount(groups, outcome.multipliers)
    rooted = np.unique(groups[features.expectations(text.from_root.astype(float)) > 0])
    assert len(rooted) == 3 and (multipliers[rooted] == 0).all()
    assert np.delete(multipliers, rooted).max() == pytest.approx(2.0)


def test_rules_reach_their_share():
    text = random_text(12, 30, 6, 3)
    trees = random_grammar(12, (2, 1), 1.0).trees(text)
    allowed, roots = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool), np.array([1, 0, 0], bool)

    def share(dist):
        links = dist.marginals() if isinstance(dist, Together) else dist.marginals().values
        head, child = text.link_tags
        ruled = np.where(text.from_root, roots[child], allowed[head, child] & text.between_words)
        return float(links @ ruled) / len(text.tags)

    before = share(trees)
    outcome = at_least(text, allowed, roots, before + 0.1, gap=1e-9, steps=200)(Together(trees), None)
    assert share(outcome.q) == pytest.approx(before + 0.1, abs=1e-3)
    nothing = at_least(text, allowed, roots, before - 0.1, gap=1e-9, steps=200)(Together(trees), None)
    assert share(nothing.q) == pytest.approx(before) and nothing.divergence == 0
    most = at_least(text, np.zeros((3, 3), bool), np.zeros(3, bool), 0.9, gap=1e-6, steps=50)(Together(trees), None)
    assert np.isfinite(most.bound)  # what cannot be had is not insisted on


def test_counts_of_a_mixture_are_split_without_loss():
    counts = np.random.default_rng(0).random((3, 2, 4))
    own, shared = np.random.default_rng(1).dirichlet(np.ones(4), (3, 2)), np.random.default_rng(2).dirichlet(np.ones(4))
    parts = mixture_split(counts, (0.3, own), (0.7, shared))
    np.testing.assert_allclose(parts[0] + parts[1], counts)
    np.testing.assert_allclose(parts[0] / parts[1], 0.3 * own / (0.7 * shared))


# --- the estimator

TAGGED = Treebank.from_bytes(samples.trees("en-de", "target").encode())
INDUCER = partial(GrammarInducer, iterations=4, longest=14)


@pytest.mark.parametrize("options", [{}, {"model": "extended", "learner": "dirichlet"}, {"rules": "ud", "viterbi": 2}])
def test_estimator(options):
    new = Treebank.of([[("Die", "DET"), ("Frau", "NOUN"), ("schläft", "VERB")], [("Ach", "INTJ"), ("!", "PUNCT")]])
    trees = TAGGED[:20]
    check_estimator(
        partial(INDUCER, **options), lambda e: e.fit(trees), new, empty=Treebank.of([]), training=trees,
        other_fit=lambda e: e.fit(trees[:9]), score=lambda e: e.score(trees),
    )  # fmt: skip


def test_heads_are_never_looked_at():
    blind = TAGGED[:20].with_columns(heads=np.full(TAGGED[:20].n_words, -1))
    one, other = INDUCER().fit(TAGGED[:20]), INDUCER().fit(blind)
    np.testing.assert_array_equal(one.grammar_.child, other.grammar_.child)


def test_predicted_trees_are_trees_and_projective_with_marks():
    inducer = INDUCER(learner="em").fit(TAGGED)
    found = inducer.predict(TAGGED, confidence=True)
    found.check_trees(complete=True)
    assert not found.crossing.any()
    assert found.predicted == {"head"} and set(found.columns["deprel"].vocabulary) == {"_"}
    heads, sure = found.heads, inducer.predict_proba(TAGGED[:5])
    for s, posterior in enumerate(sure):
        for child in range(1, len(posterior)):
            word = int(found.offsets[s]) + child - 1
            said = dict(entry.split("=") for entry in found.strings("misc", s)[child - 1].split("|"))
            assert float(said["Confidence"]) == pytest.approx(posterior[heads[word], child], abs=1e-4)


def test_marks_hang_on_what_is_above_both_sides():
    inducer = INDUCER(model="dmv", rules="ud").fit(TAGGED)
    found = inducer.predict(
        Treebank.of(
            [
                [("«", "PUNCT"), ("Sie", "PRON"), (",", "PUNCT"), ("sagt", "VERB"), (".", "PUNCT"), ("»", "PUNCT")],
                [("…", "PUNCT"), ("!", "PUNCT")],
                [],
                [("Ja", "INTJ")],
            ]
        )
    )
    assert found.heads.tolist() == [4, 4, 4, 0, 4, 4, 0, 1, 0]


def test_long_sentences_and_strange_tags():
    inducer = INDUCER(learner="em").fit(TAGGED[:20])
    long = [("Haus", "NOUN"), ("geht", "VERB"), ("qqq", "STRANGE")] * 100
    found = inducer.predict(Treebank.of([long, [("qqq", "STRANGE")]]))
    found.check_trees(complete=True)
    with pytest.raises(TreebankError, match="at most 250 words"):
        inducer.predict_proba(Treebank.of([long]))


def test_sigma_is_scaled_by_the_text():
    trees = TAGGED[:30]
    words = INDUCER(learner="em").fit(trees).n_words_
    scaled, plain = INDUCER(sigma=2.0).fit(trees), INDUCER(sigma=2.0 * words / 1000, scaled=False).fit(trees)
    np.testing.assert_array_equal(scaled.trace_, plain.trace_)
    np.testing.assert_array_equal(INDUCER(sigma=0.0).fit(trees).trace_, INDUCER(learner="em").fit(trees).trace_)


def test_it_begins_with_links_that_are_given():
    """From the links of the trees, EM stays near them; from links the other way round it does not."""
    trees = TAGGED[:60]
    right, none = [], []
    for s in range(len(trees)):
        n = int(trees.lengths[s])
        scores = np.full((n + 1, n + 1), -np.inf)
        scores[trees.heads[trees.offsets[s] : trees.offsets[s + 1]], np.arange(1, n + 1)] = 0.0
        right.append(scores)
        none.append(np.zeros((n + 1, n + 1)))
    short = INDUCER(learner="em", iterations=1, longest=20)
    informed = short.fit(trees, links=Stack.of(right)).score(trees).uas
    assert informed > short.fit(trees, links=Stack.of(none)).score(trees).uas + 15
    with pytest.raises(ParameterError, match="links should be"):
        short.fit(trees, links=Stack.of(right[:-1]))


def test_what_cannot_be_learnt_from_is_refused():
    with pytest.raises(TreebankError, match="no word has a tag in column xpos"):
        INDUCER(column="xpos").fit(Treebank.of([[("a", "X")]]))
    with pytest.raises(TreebankError, match="no sentence has 1 to 1 words"):
        INDUCER().set_params(longest=1).fit(TAGGED[:3])
    with pytest.raises(ParameterError, match="column should be 'upos'"):
        INDUCER(rules="ud", column="xpos").fit(TAGGED[:3])
    with pytest.raises(DataError, match="'NN' is none of them"):
        INDUCER(rules="ud").fit(Treebank.of([[("a", "NN"), ("b", "VB")]]))
    with pytest.raises(UsageError, match="call fit first"):
        INDUCER().predict(TAGGED[:3])
    with pytest.raises(TreebankError, match="no word has a tag"):
        INDUCER(learner="em").fit(TAGGED[:9]).predict(Treebank.of([[("a",), ("b",)]]))


# --- which words are seen


def test_marks_are_told_by_upos_or_by_penns_tags():
    trees = Treebank.of(
        [[("a", "X"), (",", "PUNCT"), ("$", "SYM")], [{"form": "b", "xpos": "NN"}, {"form": "-", "xpos": ":"}]]
    )
    assert marks_of(trees).tolist() == [False, True, False, False, True]
    seen = Material.of(trees, "upos", Vocabulary(["SYM", "X"]), punctuation=False)
    assert seen.text.tags.tolist() == [1, 0, 2] and seen.words.tolist() == [0, 2, 3]
    assert seen.within(trees).tolist() == [0, 2, 0]
    assert Material.of(trees, "upos", Vocabulary(["X"]), punctuation=False, longest=1).sentences.tolist() == [1]


def test_heads_without_marks():
    trees = Treebank.of(
        [
            [("a", "X", 2), ("-", "PUNCT", 4), ("b", "X", 2), ("c", "X", 0)],
            [("!", "PUNCT", 0), ("d", "X", 1), ("e", "X", 1)],
        ]
    )
    assert without_marks(trees, trees.heads).tolist() == [4, 4, 4, 0, 0, 0, 2]


def test_rule_tables_know_the_tags_of_a_text():
    pairs, roots = rule_tables("function-heads", ["ADP", "AUX", "NOUN", "VERB"])
    assert pairs[0].tolist() == [False, False, True, False] and roots.tolist() == [False, True, False, True]
    assert not rule_tables("ud", ["ADP", "NOUN"])[0][0].any()


# --- the command


def test_commands(isogloss: Call, tmp_path: Path) -> None:
    tagged, model, out = tmp_path / "de.conllu", tmp_path / "induced", tmp_path / "out.conllu"
    tagged.write_text(samples.trees("en-de", "target"), encoding="utf-8")
    done = isogloss(
        "parse", "induce", str(tagged), "--model", "dmv", "--rules", "ud", "--iterations", "5", "--save", str(model)
    )
    assert done.status == 0 and "a grammar of" in done.err and "22 of 24 sentences" in done.err
    assert not model.with_name("induced.checkpoint").exists()
    done = isogloss("parse", "apply", str(model), str(tagged), "-o", str(out))
    assert done.status == 0
    inducer = GrammarInducer(model="dmv", rules="ud", iterations=5).fit(TAGGED)
    assert Treebank.read(out).heads.tolist() == inducer.predict(TAGGED).heads.tolist()
    done = isogloss("tag", "apply", str(model), str(tagged))
    assert done.status == 2 and "isogloss parse apply" in done.err


def test_command_says_what_is_missing(isogloss: Call, tmp_path: Path) -> None:
    bare = tmp_path / "bare.conllu"
    bare.write_bytes(Treebank.of([[("a",), ("b",)]]).to_bytes())
    done = isogloss("parse", "induce", str(bare), "--save", str(tmp_path / "model"))
    assert done.status == 1 and "no word has a tag in column upos" in done.err and "isogloss tag apply" in done.err
