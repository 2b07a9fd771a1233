"""Trees with larger parts than links, by belief propagation: against enumeration, and against `FactorGraph`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures import FactorGraph, InfeasibleError
from isogloss.structures.loopy import CONSTRAINTS, LoopyTrees
from isogloss.structures.tree_parts import FAMILIES, Candidates, TreeParts

REST = {"iterations": 500, "tolerance": 1e-13}


# --- by another road --------------------------------------------------------------------------------------------------


def crossing(heads: tuple[int, ...], j: int, k: int) -> bool:
    (a, b), (c, d) = (sorted((heads[word - 1], word)) for word in (j, k))
    return a < c < b < d or c < a < d < b


def is_tree(heads: tuple[int, ...], projective: bool, single: bool) -> bool:
    n = len(heads)
    for word in range(1, n + 1):
        for _ in range(n):
            word = heads[word - 1] if word else 0
        if word:
            return False
    if single and n and heads.count(0) != 1:
        return False
    return not (projective and any(crossing(heads, j, k) for j, k in itertools.combinations(range(1, n + 1), 2)))


def every_tree(n: int, projective: bool, single: bool) -> list[tuple[int, ...]]:
    return [heads for heads in itertools.product(range(n + 1), repeat=n) if is_tree(heads, projective, single)]


def names_of(parts: TreeParts) -> list[tuple[Any, ...]]:
    """A name for each part of a batch of one sentence: (link, h, c), (grand, g, h, c), (siblings, h, side, a, b), …"""
    n, begins = int(parts.lengths[0]), parts.begins[0]
    links = list(zip(parts.head.tolist(), parts.child.tolist(), strict=True))
    names: list[tuple[Any, ...]] = [("link", *link) for link in links]
    if "grand" in parts.families:
        names += [("grand", links[u][0], *links[v]) for u, v in zip(parts.upper, parts.lower, strict=True)]
    for r in range(2 * (n + 1) if "siblings" in parts.families else 0):
        run = [links[a][1] for a in parts.run_links[parts.run_starts[r] : parts.run_starts[r + 1]]]
        stops = ["#", *run, "#"]
        for j in range(1, len(stops) if run else 0):
            names += [("siblings", r // 2, r % 2, stops[i], stops[j]) for i in range(j)]
    if "valence" in parts.families:
        names += [("valence", r // 2, r % 2, v) for r in range(2 * (n + 1)) for v in range(4)]
    if "crossing" in parts.families:
        names += [("crossing", j, k) for k in range(2, n + 1) for j in range(1, k)]
    assert len(names) == begins[5]
    return names


def parts_of_tree(heads: tuple[int, ...]) -> set[tuple[Any, ...]]:
    """The names of all parts of a tree, from the definitions."""
    n = len(heads)
    found: set[tuple[Any, ...]] = {("link", h, c) for c, h in enumerate(heads, 1)}
    found |= {("grand", heads[h - 1], h, c) for c, h in enumerate(heads, 1) if h}
    for h in range(n + 1):
        for side in (0, 1):
            children = [c for c in range(1, n + 1) if heads[c - 1] == h and (c > h) == bool(side)]
            outward = ["#", *(children if side else children[::-1]), "#"]
            found |= {("siblings", h, side, a, b) for a, b in itertools.pairwise(outward)}
            found.add(("valence", h, side, min(3, len(children))))
    found |= {("crossing", j, k) for j, k in itertools.combinations(range(1, n + 1), 2) if crossing(heads, j, k)}
    return found


def brute(parts: TreeParts, scores: np.ndarray, projective: bool, single: bool) -> tuple[float, np.ndarray]:
    """log Z and marginals over all trees that the candidates allow."""
    names = names_of(parts)
    allowed = {name[1:] for name, score in zip(names, scores, strict=True) if name[0] == "link" and score > -np.inf}
    total, mass = 0.0, np.zeros(len(names))
    for heads in every_tree(int(parts.lengths[0]), projective, single):
        if all((h, c) in allowed for c, h in enumerate(heads, 1)):
            own = parts_of_tree(heads)
            used = np.array([name in own for name in names], bool)
            weight = np.exp(scores[used].sum())
            total += weight
            mass += weight * used
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(total)), mass / total


# --- parts ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 5), st.data())
@settings(max_examples=40, deadline=None)
def test_parts_of_trees_are_those_of_the_definitions(n: int, data: st.DataObject) -> None:
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=(n + 1) ** 2, max_size=(n + 1) ** 2)), bool)
    parts = TreeParts.of(Candidates.kept([allowed.reshape(n + 1, n + 1)]), FAMILIES)
    names = names_of(parts)
    assert len(set(names)) == len(names)
    heads = tuple(data.draw(st.lists(st.integers(0, n), min_size=n, max_size=n)))
    if not all(h != c and allowed.reshape(n + 1, n + 1)[h, c] for c, h in enumerate(heads, 1)):
        return
    own = parts_of_tree(heads)
    expected = [name in own and not (name[0] == "grand" and name[1] == name[3]) for name in names]
    assert parts.indicate(np.array(heads, np.int64)).astype(bool).tolist() == expected


def test_candidates() -> None:
    every = Candidates.all([3, 0, 1])
    same = Candidates.kept([np.ones((n + 1, n + 1), bool) for n in (3, 0, 1)])
    for one, other in zip(vars(every).values(), vars(same).values(), strict=True):
        assert np.array_equal(one, other)
    assert len(every) == 3 and every.n_links == 3 * 3 + 1
    with pytest.raises(ParameterError, match="grand, siblings"):
        TreeParts.of(every, ["uncles"])
    some = TreeParts.of(every, ["crossing", "grand"], np.array([2, 0]))
    assert some.families == ("grand", "crossing") and some.lengths.tolist() == [1, 3]


# --- beliefs ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 4), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_links_alone_are_exact(n: int, projective: bool, single: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = TreeParts.of(Candidates.all([n]))
    scores = rng.normal(scale=2.0, size=parts.n_parts)
    scores[rng.random(parts.n_parts) < 0.3] = -np.inf
    trees = LoopyTrees(parts, scores, constraint="projective" if projective else "tree", single_root=single)
    total, marginals = brute(parts, scores, projective, single)
    if total == -np.inf:
        with pytest.raises(InfeasibleError, match="sentence 0"):
            trees.log_partition()
        return
    assert trees.log_partition()[0] == pytest.approx(total) and trees.rounds[0] == 0
    assert trees.marginals().values == pytest.approx(marginals, abs=1e-9)
    assert trees.entropy()[0] == pytest.approx(total - marginals[marginals > 0] @ scores[marginals > 0], abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("projective", [True, False])
def test_errors_shrink_with_scores_of_larger_parts(family: str, projective: bool) -> None:
    rng = np.random.default_rng(0)
    parts = TreeParts.of(Candidates.all([4]), [family])
    links, errors = parts.n_links, []
    for scale in (1.0, 0.3, 0.03):
        worst = []
        for _ in range(5):
            scores = rng.normal(size=parts.n_parts)
            scores[links:] *= scale
            trees = LoopyTrees(parts, scores, constraint="projective" if projective else "tree", **REST)
            total, marginals = brute(parts, scores, projective, False)
            worst.append(np.abs(trees.marginals().values - marginals)[:links].mean())
            assert trees.log_partition()[0] == pytest.approx(total, abs=2 * scale)
        errors.append(float(np.mean(worst)))
    assert errors[0] < 0.15 and errors[2] < errors[0] / 5


def graph_of(parts: TreeParts, scores: np.ndarray, projective: bool, single: bool) -> tuple[FactorGraph, Any]:
    """The same runs as a `FactorGraph` of links, each true or false."""
    n, graph = int(parts.lengths[0]), FactorGraph()
    links = graph.links(n)
    unary = np.full((n + 1, n + 1), -np.inf)
    siblings, valence = np.zeros((2, n + 1, n + 1, n + 1)), np.zeros((2, n + 1, 4))
    for (kind, *place), score in zip(names_of(parts), scores, strict=True):
        if kind == "link":
            unary[tuple(place)] = score
        elif kind == "siblings":
            head, side, a, b = place
            siblings[side, head, head if a == "#" else a, head if b == "#" else b] = score
        else:
            valence[place[1], place[0], place[2]] = score
    graph.unary(links, unary)
    graph.tree(links, projective=projective, single_root=single)
    if "siblings" in parts.families:
        graph.child_sequence(links, siblings)
    if "valence" in parts.families:
        graph.valence(links, valence)
    return graph, links


def graph_of_heads(
    parts: TreeParts, scores: np.ndarray, allowed: Callable[[tuple[int, ...]], bool]
) -> tuple[FactorGraph, Any, tuple[Any, ...]]:
    """The same factors as a `FactorGraph` of words, each with one of n + 1 heads; a factor is a table over all words.

    Returned with its variables and the factors of crossings.
    """
    n, graph = int(parts.lengths[0]), FactorGraph()
    heads = graph.multinomial(n, n + 1)
    words = [heads[c : c + 1] for c in range(n)]
    unary, factors = np.full((n, n + 1), -np.inf), {}
    for (kind, *place), score in zip(names_of(parts), scores, strict=True):
        if kind == "link":
            unary[place[1] - 1, place[0]] = score
        else:  # a run is a factor, and so are a link with all that may be above it, and two words that may cross
            own = {"grand": place[1:], "crossing": place}.get(kind, place[:2])
            factors.setdefault((kind, *own), {})[(kind, *place)] = score
    graph.unary(heads, unary)
    every = list(itertools.product(range(n + 1), repeat=n))
    parts_of = [parts_of_tree(y) for y in every]

    def add(values: list[float]) -> Any:
        return graph.table(words, np.array(values).reshape(1, *[n + 1] * n))

    add([0.0 if allowed(y) else -np.inf for y in every])
    added = {key: add([sum(f[name] for name in f.keys() & names) for names in parts_of]) for key, f in factors.items()}
    return graph, heads, tuple(factor for key, factor in added.items() if key[0] == "crossing")


@pytest.mark.parametrize("families", [(), *((name,) for name in FAMILIES), FAMILIES])
@pytest.mark.parametrize("constraint", ["tree", "projective", "exactly-one"])
def test_messages_come_to_rest_where_those_between_heads_of_words_do(
    families: tuple[str, ...], constraint: str
) -> None:
    rng = np.random.default_rng(len(families))
    for n in (1, 2, 3):
        parts = TreeParts.of(Candidates.all([n]), families)
        scores = 0.7 * rng.normal(size=parts.n_parts)
        trees = LoopyTrees(parts, scores, constraint=constraint, single_root=constraint == "tree", **REST)

        def allowed(heads: tuple[int, ...]) -> bool:
            return constraint == "exactly-one" or is_tree(heads, constraint == "projective", constraint == "tree")

        graph, heads, crossings = graph_of_heads(parts, scores, allowed)
        beliefs = graph.run(iterations=500, tolerance=1e-12)
        links = np.transpose(trees.beliefs_of_links()[0])[1:]
        assert links == pytest.approx(beliefs.probabilities(heads), abs=1e-8)
        assert trees.log_partition()[0] == pytest.approx(graph.log_partition(), abs=1e-8)
        marginals = graph.marginals()
        found = trees.marginals().values[int(parts.begins[0, 4]) :]
        every = list(itertools.product(range(n + 1), repeat=n))
        pairs = [(j, k) for k in range(2, n + 1) for j in range(1, k)] if crossings else []
        for (j, k), factor, belief in zip(pairs, crossings, found, strict=True):
            cells = factor.of(marginals).ravel()
            assert belief == pytest.approx(sum(cells[[crossing(y, j, k) for y in every]]), abs=1e-8)


def test_beliefs_of_crossings_are_near_those_of_enumeration() -> None:
    """Also where words have several likely heads: beliefs that count a word twice lie far below."""
    rng = np.random.default_rng(0)
    parts = TreeParts.of(Candidates.all([4]), ["crossing"])
    at, links, crossings, sums = int(parts.begins[0, 4]), [], [], []
    for _ in range(10):
        scores = rng.normal(scale=2.0, size=parts.n_parts)
        scores[at:] = -1.0
        marginals, right = (
            LoopyTrees(parts, scores, single_root=True).marginals().values,
            brute(parts, scores, False, True),
        )
        links.append(np.abs(marginals - right[1])[:at].mean())
        crossings.append(np.abs(marginals - right[1])[at:].mean())
        sums.append((marginals[at:].sum(), right[1][at:].sum()))
    found, expected = np.sum(sums, axis=0)
    assert np.mean(links) < 0.02 and np.mean(crossings) < 0.02 and found == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("families", [(), ("siblings",), ("valence",), ("siblings", "valence")])
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("single", [True, False])
def test_messages_come_to_rest_where_those_of_the_factor_graph_do(
    families: tuple[str, ...], projective: bool, single: bool
) -> None:
    rng = np.random.default_rng(len(families))
    for n in (1, 3, 4):
        parts = TreeParts.of(Candidates.all([n]), families)
        scores = 0.4 * rng.normal(size=parts.n_parts)
        trees = LoopyTrees(
            parts, scores, constraint="projective" if projective else "tree", single_root=single, **REST
        )  # fmt: skip
        graph, links = graph_of(parts, scores, projective, single)
        beliefs = graph.run(iterations=500, tolerance=1e-12)
        assert trees.beliefs_of_links()[0] == pytest.approx(beliefs.probabilities(links), abs=1e-8)
        assert trees.log_partition()[0] == pytest.approx(graph.log_partition(), abs=1e-8)


def test_beliefs_of_larger_parts_are_consistent_with_those_of_links() -> None:
    rng = np.random.default_rng(1)
    parts = TreeParts.of(Candidates.all([4]), FAMILIES)
    trees = LoopyTrees(parts, 0.3 * rng.normal(size=parts.n_parts), **REST)
    belief = dict(zip(names_of(parts), trees.marginals().values.tolist(), strict=True))
    for (kind, *place), value in belief.items():
        if kind == "link":
            head, child = place
            taken = [v for name, v in belief.items() if name[:2] == ("siblings", head) and name[4] == child]
            assert sum(taken) == pytest.approx(value, abs=1e-6)
    for head in range(5):
        for side in (0, 1):
            counts = [belief["valence", head, side, v] for v in range(4)]
            on_side = [v for name, v in belief.items() if name[:2] == ("link", head) and (name[2] > head) == bool(side)]
            assert sum(counts) == pytest.approx(1.0)
            if len(on_side) <= 3:
                assert sum(v * p for v, p in enumerate(counts)) == pytest.approx(sum(on_side), abs=1e-6)


@pytest.mark.parametrize("constraint", list(CONSTRAINTS))
def test_weaker_constraints(constraint: str) -> None:
    """At most one head: exact; two heads of a word excluded pair by pair: the same distribution, worse beliefs."""
    rng, n = np.random.default_rng(2), 3
    parts = TreeParts.of(Candidates.all([n]))
    scores = rng.normal(size=parts.n_parts)
    trees = LoopyTrees(parts, scores, constraint=constraint, **REST)
    odds = np.exp(scores.reshape(n, n))
    found = trees.marginals().values.reshape(n, n)
    at_most = odds / (1 + odds.sum(axis=1, keepdims=True))
    if constraint == "at-most-one":
        assert found == pytest.approx(at_most)
        assert trees.log_partition()[0] == pytest.approx(np.log(1 + odds.sum(axis=1)).sum())
    elif constraint == "not-2":
        assert found != pytest.approx(at_most, abs=1e-3) and np.abs(found - at_most).max() < 0.2
    elif constraint == "exactly-one":
        assert found == pytest.approx(odds / odds.sum(axis=1, keepdims=True))
    heads = trees.argmax()[0]
    assert is_tree(tuple(heads.tolist()), constraint == "projective", False)


# --- batches ----------------------------------------------------------------------------------------------------------


def test_sentences_of_a_batch_are_those_alone_on_any_number_of_threads() -> None:
    rng, lengths = np.random.default_rng(3), [3, 0, 7, 1, 12, 5]
    every = Candidates.all(lengths)
    parts = TreeParts.of(every, FAMILIES)
    scores = rng.normal(size=parts.n_parts)
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            found.append(LoopyTrees(parts, scores, single_root=True).marginals().values)
    assert np.array_equal(*found)
    for s in range(len(lengths)):
        alone = LoopyTrees(
            TreeParts.of(every, FAMILIES, np.array([s])),
            scores[parts.offsets[s] : parts.offsets[s + 1]],
            single_root=True,
        )
        assert np.array_equal(alone.marginals().values, found[0][parts.offsets[s] : parts.offsets[s + 1]])


def test_trees_and_their_parts_go_back_and_forth() -> None:
    rng, lengths = np.random.default_rng(4), [4, 0, 3]
    parts = TreeParts.of(Candidates.all(lengths), FAMILIES)
    trees = LoopyTrees(parts, rng.normal(size=parts.n_parts), single_root=True)
    best = trees.argmax()
    again = trees.from_parts(trees.parts(best))
    assert [heads.tolist() for heads in again] == [heads.tolist() for heads in best]
    assert (trees.log_prob(best) < 0.5).all() and len(trees.sample(rng)) == 3
    assert trees.k_best(2)[0][0][1].tolist() == best[0].tolist()
    scaled = trees.with_scores(trees.scores.like(trees.scores.values * 1e4))
    assert [len(heads) for heads in scaled.argmax()] == lengths
    with pytest.raises(ParameterError, match="constraint"):
        LoopyTrees(parts, trees.scores.values, constraint="forest")
    assert trees[0].argmax().tolist() == best[0].tolist()


@pytest.mark.parametrize("projective", [True, False])
def test_long_sentences_and_large_scores_give_numbers(projective: bool) -> None:
    rng, n = np.random.default_rng(5), 150
    near = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1))) <= 3
    near[0] = True
    parts = TreeParts.of(Candidates.kept([near]), FAMILIES)
    scores = rng.uniform(-50, 50, size=parts.n_parts)
    trees = LoopyTrees(parts, scores, constraint="projective" if projective else "tree", single_root=True)
    links = trees.beliefs_of_links()[0]
    assert np.isfinite(trees.marginals().values).all() and links[:, 1:].sum(axis=0) == pytest.approx(1.0)
