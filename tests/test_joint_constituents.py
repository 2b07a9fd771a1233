"""Constituents of both sides and a transduction grammar between them: tuples, bounds, learning, saving, commands."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isogloss as ig
from isogloss import samples
from isogloss.cli import main
from isogloss.data import ConstituentPairs, Constituents, Links, Treebank, TreePairs
from isogloss.data.formats import IsoglossWarning, format_links
from isogloss.errors import LinksError, ParameterError, TreebankError, UsageError
from isogloss.learners.meanfield import CoupledLikelihood, mean_field
from isogloss.metrics.constituent_pairs import score_constituent_pairs
from isogloss.structures import Bichart, Bitrees, SpanTrees, Stack, span_number
from isogloss.structures.bichart import PATTERNS
from isogloss.structures.spans import n_spans
from isogloss.tasks.joint import JointConstituentAligner
from isogloss.tasks.joint.bracket_agreement import KINDS, BracketAgreement, bracket_templates
from isogloss.tasks.joint.bracket_opinions import (
    BracketOpinions,
    bispan_component,
    bracket_component,
    known_terminals,
    nearest_trees,
)
from isogloss.tasks.joint.constituents import LONGEST
from isogloss.tasks.parse.constituency import ConstituencyParser
from isogloss.tasks.parse.constituency.trees import Labels
from isogloss.testing import brute_force_bitrees, brute_force_spans

SMALL: dict[str, Any] = {"order": 1, "passes": 2, "folds": 2, "iterations": 3, "min_count": 1}
NAMES = {"A": 1, "B": 2, "x": 3, "y": 4}


@cache
def pairs() -> ConstituentPairs:
    trees = [Treebank.from_bytes(samples.trees("en-de", side).encode()) for side in ("source", "target")]
    return ConstituentPairs.from_dependencies(TreePairs(*trees, samples.gold("en-de")[: len(trees[0])]))


@cache
def fitted() -> JointConstituentAligner:
    return JointConstituentAligner(**SMALL).fit(pairs())


def opinions(n: int, m: int, seed: int = 0, links: np.ndarray | None = None) -> BracketOpinions:
    """Posteriors of two labels over one pair, and of links."""
    rng = np.random.default_rng(seed)
    sides = []
    for size in (n, m):
        own = rng.dirichlet(np.ones(3), n_spans(size))[:, :2] * 0.9
        own[-1] = rng.dirichlet(np.ones(2))  # the whole sentence has a label
        sides.append(Stack.of([own], "t", 2))
    chances = rng.uniform(0.1, 0.8, (n, m)) if links is None else links
    tags = [[str(one) for one in rng.choice(["x", "y"], size)] for size in (n, m)]
    return BracketOpinions(
        sides[0], sides[1], Stack.of([chances], "l", 2), tags[0], tags[1], ("A", "B"), ("A", "B")
    )  # fmt: skip


def components(told: BracketOpinions, nulls: str = "low", prune: float = 0.0) -> list[Any]:
    return [
        bispan_component(told.links, "all", nulls, prune, prune),
        bracket_component(told.source, prune),
        bracket_component(told.target, prune),
    ]


def weights_of(agreement: BracketAgreement, **kinds: float) -> np.ndarray:
    names = np.array(KINDS)[agreement.kinds]
    return agreement.value * np.array([kinds.get(name, 0.0) for name in names])


def random_weights(agreement: BracketAgreement, size: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, len(agreement.coupling))


def everything(parts: list[Any], nulls: str) -> tuple[np.ndarray, np.ndarray]:
    """bool[n_triples, n_parts] and scores of all triples of structures of the only pair, by enumeration."""
    chart = parts[0].chart
    listed = [
        brute_force_bitrees(
            parts[0].scores[0], tuple(chart.sizes[0].tolist()), chart.cells.tolist(), chart.terms.tolist(), PATTERNS,
            free=nulls == "free",
        )
    ]  # fmt: skip
    listed += [brute_force_spans(one.scores[0], binary=False) for one in parts[1:]]
    rows, scores = [np.zeros((1, 0))], [np.zeros(1)]
    for one in listed:
        allowed = one.log_scores > -np.inf
        own = one.parts[allowed].reshape(int(allowed.sum()), -1)
        rows = [np.concatenate([np.repeat(rows[0], len(own), axis=0), np.tile(own, (len(rows[0]), 1))], axis=1)]
        scores = [np.repeat(scores[0], len(own)) + np.tile(one.log_scores[allowed], len(scores[0]))]
    return rows[0], scores[0]


def worth(rows: np.ndarray, tuples: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What the tuples of each triple of structures are worth."""
    total = np.zeros(len(rows))
    for tuple_, weight in zip(tuples, weights, strict=True):
        total += weight * rows[:, tuple_[tuple_ >= 0]].all(axis=1)
    return total


def log_sum(values: np.ndarray) -> float:
    return float(values.max() + np.log(np.exp(values - values.max()).sum()))


NULLS = pytest.mark.parametrize("nulls", ["low", "free"])


# --- mean field against enumeration


@NULLS
def test_without_weights_the_separate_models_are_left_in_one_sweep(nulls: str) -> None:
    told = opinions(3, 2)
    parts = components(told, nulls)
    agreement = BracketAgreement(parts, told, NAMES, "all")
    found = mean_field(parts, agreement.coupling, np.zeros(len(agreement.coupling)), sweeps=1)
    assert found.converged
    assert found.bound == pytest.approx(sum(float(one.log_partition().sum()) for one in parts))
    for ours, theirs in zip(found.components, parts, strict=True):
        np.testing.assert_array_equal(ours.marginals().values, theirs.marginals().values)


@NULLS
def test_the_bound_is_below_log_z_and_never_falls(nulls: str) -> None:
    for seed in range(3):
        told = opinions(2, 3, seed)
        parts = components(told, nulls)
        agreement = BracketAgreement(parts, told, NAMES, "all")
        rows, scores = everything(parts, nulls)
        for size in (0.05, 0.5, 3.0):
            weights = random_weights(agreement, size, seed)
            log_z = log_sum(scores + worth(rows, agreement.coupling.tuples, weights))
            found = mean_field(parts, agreement.coupling, weights, sweeps=30, tolerance=1e-10)
            assert found.bound <= log_z + 1e-9
            assert (np.diff(found.trace) >= -1e-9).all()


def test_weak_coupling_is_found_to_the_square_of_its_weights() -> None:
    told = opinions(2, 2, 3)
    parts = components(told)
    agreement = BracketAgreement(parts, told, NAMES, "all")
    rows, scores = everything(parts, "low")
    aligned = np.array([KINDS[kind].startswith("align") for kind in agreement.kinds])
    errors = []
    for size in (0.1, 0.05):
        weights = np.where(aligned, size * np.sign(random_weights(agreement, 1.0)), 0.0)
        total = scores + worth(rows, agreement.coupling.tuples, weights)
        exact = np.exp(total - log_sum(total)) @ rows
        found = mean_field(parts, agreement.coupling, weights, sweeps=50, tolerance=1e-12)
        errors.append(float(np.abs(found.marginals - exact).max()))
    assert errors[0] < 0.1**2
    assert errors[1] < 0.4 * errors[0]  # a quarter, to the square


@NULLS
def test_with_known_trees_the_first_term_is_exact(nulls: str) -> None:
    told = opinions(3, 2, 1)
    parts = components(told, nulls)
    agreement = BracketAgreement(parts, told, NAMES, "all")
    known = [parts[0], *(one.clamp(one.argmax()) for one in parts[1:])]
    weights = random_weights(agreement, 1.0)
    rows, scores = everything(parts, nulls)
    own = slice(len(parts[0].scores.values), None)
    trees = np.concatenate([one.marginals().values for one in known[1:]])
    fits = (rows[:, own] == trees).all(axis=1)
    total = (scores + worth(rows, agreement.coupling.tuples, weights))[fits]
    found = mean_field(known, agreement.coupling, weights)
    assert found.bound == pytest.approx(log_sum(total))
    exact = np.exp(total - log_sum(total)) @ rows[fits]
    np.testing.assert_allclose(found.marginals, exact, atol=1e-10)


@NULLS
def test_the_gradient_agrees_with_finite_differences(nulls: str) -> None:
    told = opinions(3, 2, 2)
    parts = components(told, nulls)
    agreement = BracketAgreement(parts, told, NAMES, "all")
    known = [
        known_terminals(parts[0], Links.of([{(0, 0), (2, 1)}]), "open"),
        *(one.clamp(one.argmax()) for one in parts[1:]),
    ]
    templates = bracket_templates("both")
    features = agreement.features(templates, templates.index(agreement.parts, min_count=1))
    objective = CoupledLikelihood(parts, known, agreement.coupling, features, sweeps=500, tolerance=1e-13)
    rng = np.random.default_rng(0)
    weights, gradient = rng.normal(0, 0.3, objective.n_weights), np.zeros(objective.n_weights)
    objective.add_gradient(weights, gradient)
    for _ in range(4):
        way = rng.normal(size=len(weights))
        above, below = (objective.add_gradient(weights + e * way, np.zeros(len(weights))) for e in (1e-5, -1e-5))
        assert (above - below) / 2e-5 == pytest.approx(float(gradient @ way), rel=1e-4, abs=1e-4)


def turned(told: BracketOpinions) -> BracketOpinions:
    return BracketOpinions(
        told.target, told.source, Stack.of([one.T for one in told.links], "l", 2), told.target_tags, told.source_tags,
        told.target_labels, told.source_labels,
    )  # fmt: skip


def test_exchanging_the_languages_transposes_everything() -> None:
    """Nulls on one side: around a terminal with nulls on both, those of the source come first."""
    told = opinions(2, 3, 4)
    found = []
    for one, source_first in ((told, True), (turned(told), False)):
        parts = components(one)
        n = int(parts[0].chart.sizes[0, 0])
        scores = np.array(parts[0].scores.values)
        scores[: n if source_first else 0] = -np.inf
        scores[n : n if source_first else int(parts[0].chart.sizes[0].sum())] = -np.inf
        parts[0] = parts[0].with_scores(parts[0].scores.like(scores))
        agreement = BracketAgreement(parts, one, NAMES, "all")
        first, second = ("align-source", "align-target")[:: 1 if source_first else -1]
        given = {first: 1.0, second: 0.4, "align-both": 1.5, "terminal": 0.2, "bispan": -0.3}
        order = [0, 1, 2] if source_first else [0, 2, 1]
        found.append(
            mean_field(
                parts, agreement.coupling, weights_of(agreement, **given), order=order, sweeps=500, tolerance=1e-13
            )
        )
    ours, theirs = found
    assert ours.bound == pytest.approx(theirs.bound)
    np.testing.assert_allclose(ours.components[1].marginals()[0], theirs.components[2].marginals()[0], atol=1e-8)
    np.testing.assert_allclose(ours.components[2].marginals()[0], theirs.components[1].marginals()[0], atol=1e-8)
    links = [one.components[0].link_marginals()[0] for one in found]
    np.testing.assert_allclose(links[0], links[1].T, atol=1e-8)


def test_a_higher_weight_makes_brackets_agree_more_often() -> None:
    told = opinions(3, 3, 5)
    parts = components(told)
    agreement = BracketAgreement(parts, told, NAMES, "all")
    codes = agreement.parts.roles["first"].at, agreement.parts.roles["second"].at
    both = (agreement.kinds == KINDS.index("align-both")) & (codes[0] == NAMES["A"]) & (codes[1] == NAMES["B"])
    counts = [
        float(mean_field(parts, agreement.coupling, weight * both, sweeps=50).products[both].sum())
        for weight in (-2.0, 0.0, 1.0, 3.0)
    ]
    assert (np.diff(counts) > 0).all()


def test_strong_agreement_carries_brackets_over() -> None:
    """A source parser that is sure of (1, 3), a target parser that would rather have (0, 2), and words in order."""
    spans = n_spans(3)
    source, target = np.full((spans, 1), 0.01), np.full((spans, 1), 0.01)
    source[-1] = target[-1] = 1.0
    source[span_number(1, 3, 3)] = 0.97
    target[span_number(0, 2, 3)], target[span_number(1, 3, 3)] = 0.55, 0.4
    told = BracketOpinions(
        Stack.of([source], "s", 2), Stack.of([target], "t", 2), Stack.of([np.where(np.eye(3), 0.9, 0.02)], "l", 2),
        ["x"] * 3, ["x"] * 3, ("A",), ("A",),
    )  # fmt: skip
    parts = components(told)
    agreement = BracketAgreement(parts, told, NAMES, "all")
    alone = mean_field(parts, agreement.coupling, weights_of(agreement))
    both = mean_field(parts, agreement.coupling, weights_of(agreement, **{"align-both": 3.0}), sweeps=50)
    assert (0, 2, 0) in alone.components[2].argmax()[0] and (1, 3, 0) in both.components[2].argmax()[0]
    none = np.zeros((3, 3))
    nothing = told._replace(links=Stack.of([none], "l", 2))
    parts = components(nothing, prune=0.01)
    agreement = BracketAgreement(parts, nothing, NAMES, "all")
    apart = mean_field(parts, agreement.coupling, weights_of(agreement, **{"align-both": 3.0}), sweeps=50)
    assert (0, 2, 0) in apart.components[2].argmax()[0]
    assert not apart.components[0].link_marginals()[0].any()


def test_tuples_of_a_small_pair() -> None:
    told = opinions(2, 2)
    parts = components(told)
    for which, kinds in (
        ("none", set(KINDS[:5])),
        ("partial", set(KINDS[:7])),
        ("both", {*KINDS[:5], "align-both"}),
        ("all", set(KINDS)),
    ):
        agreement = BracketAgreement(parts, told, NAMES, which)
        assert {KINDS[kind] for kind in agreement.kinds} == kinds
    chart, starts = parts[0].chart, agreement.coupling.starts
    cells = [tuple(cell) for cell in chart.cells.tolist()]
    wanted = set()
    for c, (i, k, j, h) in enumerate(cells):
        for left in range(2):
            for right in range(2):
                first, second = 2 * span_number(i, k, 2) + left, 2 * span_number(j, h, 2) + right
                wanted.add((int(chart.first_cells[0]) + c, int(starts[1]) + first, int(starts[2]) + second))
    both = agreement.kinds == KINDS.index("align-both")
    allowed = [one.scores.values > -np.inf for one in parts[1:]]
    assert all(one.all() for one in allowed)
    assert {tuple(row) for row in agreement.coupling.tuples[both].tolist()} == wanted


# --- structures from opinions


def test_a_parser_that_scores_brackets_one_by_one_is_given_back() -> None:
    scores = np.random.default_rng(0).normal(size=(n_spans(4), 3))
    dist = SpanTrees(Stack.of([scores], "s", 2))
    made = bracket_component(dist.marginals(), 0.0)
    kept = made.marginals()[0]
    again = bracket_component(made.marginals(), 0.0)
    assert kept.shape == scores.shape and kept[-1].sum() == pytest.approx(1.0)
    assert sorted(again.argmax()[0]) == sorted(made.argmax()[0])


def test_pruning_keeps_a_tree_and_what_is_nearest_to_gold() -> None:
    gold = Constituents.of(["(A (x a) (B (x b) (x c)) (x d))"])
    labels = Labels(("A", "B"), None)
    posterior = np.full((n_spans(4), 2), 0.02)
    posterior[-1] = [0.9, 0.1]
    posterior[span_number(1, 3, 4), 1] = 0.2
    posterior[span_number(0, 2, 4), 0] = 0.6
    stack = Stack.of([posterior], "p", 2)
    for prune, spans in ((0.0, {(0, 4, 0), (1, 3, 1)}), (0.1, {(0, 4, 0), (1, 3, 1)}), (0.3, {(0, 4, 0)})):
        component = bracket_component(stack, prune)
        found = nearest_trees(component, gold, labels, stack)
        assert set(found.argmax()[0]) == spans
        assert found.log_partition()[0] == pytest.approx(component[0].score(spans))
    assert (bracket_component(stack, 0.99).scores.values > -np.inf).any()


def test_pruning_nothing_changes_nothing() -> None:
    told = opinions(3, 3, links=np.where(np.eye(3), 0.45, 0.3))
    whole = bispan_component(told.links, "all", "low", 0.0, 0.0)
    assert len(whole.chart.cells) == len(Bichart.full(3, 3).cells)
    few = bispan_component(told.links, "one", "low", 0.35, 1e-3)
    assert len(few.chart.cells) < len(whole.chart.cells)
    assert set(few.chart.terms[:, 1].tolist()) == {0}
    assert len(few.chart.terms) == 3


def test_known_links_leave_the_nearest_derivations() -> None:
    told = opinions(3, 3, links=np.full((3, 3), 0.4))  # none is so sure that bispans are left out
    parts = components(told)
    gold = {(0, 1), (1, 0)}
    known = known_terminals(parts[0], Links.of([gold]), "open")
    links = known.link_marginals()[0]
    assert links[0, 1] == pytest.approx(1.0) and links[1, 0] == pytest.approx(1.0)
    assert links[[0, 0, 1, 1, 2, 2], [0, 2, 1, 2, 0, 1]] == pytest.approx(0.0) and 0.01 < links[2, 2] < 0.99
    absent = known_terminals(parts[0], Links.of([gold]), "absent").link_marginals()[0]
    assert absent[2, 2] == pytest.approx(0.0)
    gap = known_terminals(parts[0], Links.of([{(0, 0), (0, 2)}]), "absent").marginals()[0]  # one link, or three
    worth = np.zeros(len(gap))
    term, i, j = parts[0].chart.links_of(0)
    np.add.at(worth, int(parts[0].chart.first_terms[0]) + term, np.where((i == 0) & (j != 1), 1.0, -1.0))
    assert gap @ worth == pytest.approx(1.0)


# --- the estimator


def test_learning_raises_the_objective_and_saves(tmp_path: Path) -> None:
    joint = fitted()
    assert joint.trace_[-1] > joint.trace_[0] and joint.n_features_ > 20
    joint.save(tmp_path / "model")
    again = ig.load(tmp_path / "model")
    one, other = joint.predict(pairs()), again.predict(pairs())
    assert one.source.to_bytes() == other.source.to_bytes() and one.target.to_bytes() == other.target.to_bytes()
    assert [str(row) for row in one.links or ()] == [str(row) for row in other.links or ()]
    assert again.options_ == joint.options_ and again.trace_.tolist() == joint.trace_.tolist()
    found = joint.predict_proba(pairs())
    assert [one.shape for one in found.links] == [
        (n, m) for n, m in zip(pairs().source.lengths, pairs().target.lengths, strict=True)
    ]
    assert all((one >= 0).all() and (one <= 1).all() for one in found.links)
    for n, one in zip(pairs().source.lengths, found.source, strict=True):
        assert one.shape == (n_spans(int(n)), len(joint.models_.source.labels_))


def test_scores_are_of_brackets_and_links() -> None:
    scores = fitted().scores(pairs(), content=True)
    assert scores.links is not None and scores.source.f1 > 40 and scores.target.f1 > 40
    assert set(scores.as_dict()) == {"source", "target", "links"} and "links" in str(scores)
    assert fitted().score(pairs()).f1 == pytest.approx(
        2 * 100 * (right := scores.source.precision * scores.source.found + scores.target.precision
                   * scores.target.found) / 100
        / (scores.source.found + scores.target.found + scores.source.brackets + scores.target.brackets)
    ) and right > 0  # fmt: skip
    with pytest.raises(LinksError, match="none were found"):
        score_constituent_pairs(ConstituentPairs(pairs().source, pairs().target), pairs())
    with pytest.raises(TreebankError, match="trees but"):
        score_constituent_pairs(pairs().take([0]), pairs())


def test_models_that_learnt_elsewhere_are_taken_as_they_are() -> None:
    parsers = [
        ConstituencyParser(order=1, iterations=2, tags="gold").fit(side) for side in (pairs().source, pairs().target)
    ]
    plain = ConstituentPairs(pairs().source, pairs().target)
    joint = JointConstituentAligner(**SMALL).fit(plain, source_parser=parsers[0], target_parser=parsers[1])
    assert joint.models_.source is parsers[0] and joint.models_.target is parsers[1]
    separate = joint.separate(pairs())
    assert separate.source.to_bytes() == parsers[0].predict(pairs().source).to_bytes()
    with pytest.raises(ParameterError, match="source_parser should be a ConstituencyParser"):
        JointConstituentAligner(**SMALL).fit(pairs(), source_parser=joint)
    with pytest.raises(ParameterError, match="unlinked is about links"):
        JointConstituentAligner(unlinked="absent", **SMALL).fit(plain)


def test_long_pairs_are_left_to_the_separate_models() -> None:
    many = " ".join(f"(x w{k})" for k in range(LONGEST + 1))
    long = ConstituentPairs(Constituents.of([f"(S {many})"]), Constituents.of(["(S (x w0) (x w1))"]))
    texts = ConstituentPairs(
        Constituents.joined([pairs().source.take([0]), long.source, pairs().source.take([1])]),
        Constituents.joined([pairs().target.take([0]), long.target, pairs().target.take([1])]),
    )
    found, separate = fitted().predict(texts), fitted().separate(texts)
    assert found.source.words(1) == long.source.words(0) and len(found) == 3
    assert str(found.source[1]) == str(separate.source[1])
    assert str(found.source[2]) == str(fitted().predict(pairs().take([1])).source[0])
    whole = ConstituentPairs(
        Constituents.joined([pairs().source, long.source]), Constituents.joined([pairs().target, long.target])
    )
    with pytest.warns(IsoglossWarning, match="more than 70 words"):
        JointConstituentAligner(**SMALL)._usable(whole)


def test_what_is_no_pair_of_trees_is_refused() -> None:
    with pytest.raises(UsageError, match="two texts with trees"):
        JointConstituentAligner().fit("trees")  # type: ignore[arg-type]
    with pytest.raises(TreebankError, match="too few to learn from"):
        JointConstituentAligner().fit(pairs().take([0]))
    traces = Constituents.of(["(S (-NONE- *) (VP (x a)))"] * 2)
    with pytest.raises(TreebankError, match="traces"):
        JointConstituentAligner().fit(ConstituentPairs(traces, traces))
    with pytest.raises(TreebankError, match="trees but"):
        ConstituentPairs(pairs().source, pairs().target.take([0]))
    with pytest.raises(LinksError):
        ConstituentPairs(pairs().source.take([0]), pairs().target.take([0]), Links.of([{(99, 0)}]))


def test_an_empty_sentence_has_an_empty_tree() -> None:
    empty = ConstituentPairs(Constituents.of(["", "(S (x a))"]), Constituents.of(["(S (x a) (x b))", "(S (x a))"]))
    found = fitted().predict(empty)
    assert len(found) == 2 and found.source.lengths.tolist() == [0, 1]


def test_a_batch_of_bispans_is_that_of_its_pairs() -> None:
    told = [opinions(2, 3, seed) for seed in range(3)]
    links = Stack.of([one.links[0] for one in told], "l", 2)
    many = bispan_component(links, "all", "free", 0.0, 0.0)
    assert isinstance(many, Bitrees) and len(many) == 3
    for s, one in enumerate(told):
        assert bispan_component(one.links, "all", "free", 0.0, 0.0).log_partition()[0] == many.log_partition()[s]


# --- commands


def test_commands_train_apply_and_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / name) for name in ("en.mrg", "de.mrg", "links.txt")]
    pairs().source.write(paths[0])
    pairs().target.write(paths[1])
    Path(paths[2]).write_bytes(format_links(pairs().links or []))
    model, out = str(tmp_path / "model"), [str(tmp_path / name) for name in ("a.mrg", "b.mrg", "l.txt")]
    options = ["--order", "1", "--passes", "2", "--folds", "2", "--iterations", "3", "--min-count", "1"]
    assert main(["joint", "train-constituents", *paths, "--save", model, *options, "--quiet"]) == 0
    outputs = ["--out-source", out[0], "--out-target", out[1], "--out-links", out[2]]
    assert main(["joint", "apply", model, paths[0], paths[1], *outputs, "--quiet"]) == 0
    expected = fitted().predict(pairs())
    assert Constituents.read(out[0]).to_bytes("line") == expected.source.to_bytes("line")
    assert Path(out[2]).read_bytes() == format_links(expected.links or [])
    capsys.readouterr()
    scored = ["joint", "score", *out[:2], *paths[:2], "--links", out[2], "--gold-links", paths[2], "--json"]
    assert main(scored) == 0
    told = json.loads(capsys.readouterr().out)
    scores = fitted().scores(pairs())
    assert told["source"]["f1"] == pytest.approx(scores.source.f1)
    assert scores.links is not None and told["links"]["aer"] == pytest.approx(scores.links.aer)
    assert main(scored[:-1]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"source f1 {scores.source.f1:.2f}" in lines and not any("brackets" in line for line in lines)
    assert main(["joint", "apply", model, paths[0], paths[1], "--out-source", out[0], "--separate", "--quiet"]) == 0
    assert Constituents.read(out[0]).to_bytes("line") == fitted().separate(pairs()).source.to_bytes("line")


def test_commands_refuse_what_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "en.mrg"
    pairs().source.write(source)
    call = ["joint", "train-constituents", str(source), str(source), "--save", str(tmp_path / "model")]
    assert main([*call, "--unlinked", "absent"]) == 2
    assert "--unlinked is about links that are known" in capsys.readouterr().err
    assert main([*call, "--source-parser", "x", "--target-parser", "y", "--passes", "3"]) == 2
    assert "--passes says nothing" in capsys.readouterr().err
