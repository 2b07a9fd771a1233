"""Trees carried through links: hard, soft, and as partial trees."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data.bitext import Bitext, Text
from isogloss.data.links import Alignment, Links
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import LinksError, ParameterError, TreebankError
from isogloss.structures import Stack
from isogloss.structures.partial import can_be_projective
from isogloss.tasks.transfer.edges import (
    ProjectedEdges,
    density_of,
    links_above,
    only_one_to_one,
    project_edges,
    project_posteriors,
)

RELATIONS = ("nsubj", "obj", "_")
GRID = st.sampled_from([0.25, 0.5, 0.75, 1.0])


@st.composite
def pairs(draw: st.DrawFn) -> list[tuple[list[int], list[str], list[float], int, dict[tuple[int, int], float]]]:
    """Pairs as (heads, relations, confidences, target length, links with probabilities); empty sides among them."""
    found = []
    for _ in range(draw(st.integers(0, 4))):
        n, m = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        heads = [draw(st.sampled_from([h for h in range(-1, n + 1) if h != word + 1])) for word in range(n)]
        relations = [draw(st.sampled_from(RELATIONS)) for _ in range(n)]
        sure = [draw(GRID) for _ in range(n)]
        cells = st.tuples(st.integers(0, max(0, n - 1)), st.integers(0, max(0, m - 1)))
        found.append((heads, relations, sure, m, draw(st.dictionaries(cells, GRID, max_size=7)) if n and m else {}))
    return found


def given_as(drawn: list) -> tuple[Bitext, Treebank, Links]:
    bitext = Bitext.of([(["s"] * len(heads), ["t"] * m) for heads, _, _, m, _ in drawn])
    rows = [
        [{"form": "s", "head": h, "deprel": r, "misc": f"Confidence={p}"} for h, r, p in zip(*three, strict=True)]
        for *three, _, _ in drawn
    ]
    trees = Treebank.of([row for row in rows if row])
    return bitext, trees, Links.of([Alignment(frozenset(found), probability=found) for *_, found in drawn])


def carried_by_hand(drawn: list, root: bool) -> list[tuple[int, int, float]]:
    """(word, head, probability) of everything that hard projection gives, from its definition."""
    out, first = [], 0
    for heads, _, sure, m, links in drawn:
        here: dict[tuple[int, int], float] = {}
        for c, p in enumerate(heads):
            for (i, child), own in links.items():
                if i != c or p < 0:
                    continue
                above = [(0, 1.0)] if p == 0 else [(j + 1, q) for (h, j), q in links.items() if h == p - 1]
                for head, other in above:
                    if (head or root) and head != child + 1:
                        key = (first + child, head)
                        here[key] = max(here.get(key, 0.0), sure[c] * own * other)
        out += [(*key, value) for key, value in sorted(here.items())]
        first += m
    return out


@given(pairs(), st.booleans())
def test_every_linked_pair_of_words_gets_the_link(drawn: list, root: bool) -> None:
    bitext, trees, links = given_as(drawn)
    got = project_edges(trees, bitext, links, root=root)
    assert list(zip(got.word.tolist(), got.head.tolist(), got.probability.tolist(), strict=True)) == carried_by_hand(
        drawn, root
    )
    assert got.offsets.tolist() == np.cumsum([0, *(m for *_, m, _ in drawn)]).tolist()


@given(pairs())
def test_relation_and_origin_are_those_of_a_way_there(drawn: list) -> None:
    bitext, trees, links = given_as(drawn)
    got = project_edges(trees, bitext, links)
    for at in range(len(got.word)):
        sentence = int(got.sentence[at])
        heads, relations, sure, _, linked = drawn[sentence]
        c = int(got.origin[at]) - 1
        name = "_" if got.relation[at] < 0 else got.names[got.relation[at]]
        assert relations[c] == name
        ways = [linked.get((c, int(got.child[at]) - 1), 0.0) * sure[c]]
        if got.head[at]:
            ways[0] *= linked.get((heads[c] - 1, int(got.head[at]) - 1), 0.0)
        assert ways[0] == pytest.approx(got.probability[at])


@given(pairs(), st.booleans(), st.integers(0, 2**20))
def test_soft_projection_is_the_sum_over_all_ways(drawn: list, root: bool, seed: int) -> None:
    bitext, trees, links = given_as(drawn)
    rng = np.random.default_rng(seed)
    matrices = []
    for heads, *_ in drawn:
        n = len(heads)
        matrix = rng.random((n + 1, n + 1))
        np.fill_diagonal(matrix, 0.0)
        matrix[:, 0] = 0.0
        matrices.append(matrix / np.maximum(matrix.sum(axis=0), 1e-9))
    posteriors = Stack.of([matrix for matrix in matrices if len(matrix) > 1], rank=2)
    cutoff = 0.05
    got = project_posteriors(posteriors, trees, bitext, links, root=root, cutoff=cutoff)
    dense = np.zeros((bitext.target.n_words, 1 + max([0, *(m for *_, m, _ in drawn)])))
    first = 0
    for (heads, _, _, m, linked), matrix in zip(drawn, matrices, strict=True):
        n = len(heads)
        across = np.zeros((n + 1, m + 1))
        across[0, 0] = float(root)
        for (i, j), p in linked.items():
            across[i + 1, j + 1] = p
        whole = np.einsum("hc,hi,cj->ij", matrix, across, across)[:, 1:]
        whole[np.arange(1, m + 1), np.arange(m)] = 0.0
        dense[first : first + m, : m + 1] = (whole / np.maximum(1.0, whole.sum(axis=0))).T
        first += m
    back = np.zeros_like(dense)
    back[got.word, got.head] = got.probability
    assert np.abs(back - np.where(dense >= cutoff, dense, 0.0))[np.abs(dense - cutoff) > 1e-9].max(initial=0) < 1e-3
    assert (got.totals() <= 1 + 1e-12).all()


def test_certain_posteriors_are_hard_projection() -> None:
    bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    trees = Treebank.from_bytes(samples.trees("en-de").encode())
    bitext, links = bitext[: len(trees)], only_one_to_one(gold[: len(trees)].keep(~gold[: len(trees)].possible))
    links = Links(links.offsets, links.source, links.target, np.ones(len(links.source), np.float32))
    sizes = trees.lengths + 1
    stack = Stack.of([np.zeros((n, n)) for n in sizes.tolist()])
    values = stack.values.copy()
    for s in range(len(trees)):
        for word, head in enumerate(trees.heads[trees.offsets[s] : trees.offsets[s + 1]].tolist(), 1):
            values[stack.offsets[s] + head * sizes[s] + word] = 1.0
    soft, hard = project_posteriors(stack.like(values), trees, bitext, links), project_edges(trees, bitext, links)
    assert len(hard.word) > 50
    for one, other in zip(astuple(soft), astuple(hard), strict=True):
        assert np.array_equal(one, other)


def test_probabilities_default_to_one_and_possible_links_do_not_count() -> None:
    bitext = Bitext.of([("a b", "x y")])
    trees = Treebank.of([[("a", "X", 2, "dep"), ("b", "X", 0, "root")]])
    every = project_edges(trees, bitext, Links.of([[(0, 0), (1, 1)]]))
    assert every.probability.tolist() == [1.0, 1.0]
    some = project_edges(trees, bitext, Links.of([Alignment(frozenset({(1, 1)}), possible=frozenset({(0, 0)}))]))
    assert (some.word.tolist(), some.head.tolist()) == ([1], [0])


def test_one_to_one_links_alone() -> None:
    bitext = Bitext.of([("a b", "x y z")])
    trees = Treebank.of([[("a", "X", 2), ("b", "X", 0)]])
    links = Links.of([[(0, 0), (1, 1), (1, 2)]])
    assert project_edges(trees, bitext, links).head.tolist() == [2, 3, 0, 0]
    assert project_edges(trees, bitext, links, one_to_one=True).head.tolist() == []


def test_links_in_any_order_within_a_pair_carry_the_same() -> None:
    bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    trees = Treebank.from_bytes(samples.trees("en-de").encode())
    bitext, links = bitext[: len(trees)], gold[: len(trees)]
    rng = np.random.default_rng(1)
    order = np.lexsort((rng.random(len(links.source)), links.pair))
    mixed = Links(links.offsets, links.source[order], links.target[order], None, links.possible[order])
    for one, other in zip(
        astuple(project_edges(trees, bitext, mixed)), astuple(project_edges(trees, bitext, links)), strict=True
    ):
        assert np.array_equal(one, other)


def test_links_and_trees_of_another_text_are_refused() -> None:
    bitext = Bitext.of([("a b", "x y")])
    trees = Treebank.of([[("a", "X", 2), ("b", "X", 0)]])
    with pytest.raises(LinksError, match="past the end"):
        project_edges(trees, bitext, Links.of([[(0, 2)]]))
    with pytest.raises(LinksError, match="past the end"):
        project_edges(trees, bitext, Links(np.array([0, 1]), np.array([-1], np.int32), np.array([0], np.int32)))
    with pytest.raises(TreebankError, match="'c' where"):
        project_edges(Treebank.of([[("a", "X", 2), ("c", "X", 0)]]), bitext, Links.of([[]]))
    with pytest.raises(ParameterError, match="do not fit"):
        project_posteriors(Stack.of([np.zeros((2, 2))]), trees, bitext, Links.of([[(0, 0)]]))


# --- partial trees


@given(pairs(), GRID)
def test_heads_are_a_partial_projective_tree_of_likely_edges(drawn: list, threshold: float) -> None:
    bitext, trees, links = given_as(drawn)
    edges = project_edges(trees, bitext, links)
    heads = edges.heads(threshold)
    assert can_be_projective(heads, edges.offsets).all()
    given_edges = dict(zip(zip(edges.word.tolist(), edges.head.tolist(), strict=True), edges.probability, strict=True))
    for word, head in enumerate(heads.tolist()):
        mine = sorted((p for (w, _), p in given_edges.items() if w == word), reverse=True)
        if head >= 0:
            assert given_edges[word, head] == mine[0] >= threshold
            assert len(mine) == 1 or mine[1] < mine[0]
        elif mine and mine[0] >= threshold and (len(mine) == 1 or mine[1] < mine[0]):
            (best,) = [h for (w, h), p in given_edges.items() if w == word and p == mine[0]]
            more = heads.copy()
            more[word] = best
            assert not can_be_projective(more, edges.offsets).all()


def test_the_more_probable_of_two_crossing_edges_stays() -> None:
    edges = ProjectedEdges.of([0, 4], [0, 1], [3, 4], [0.5, 0.9])
    assert edges.heads().tolist() == [-1, 4, -1, -1]
    assert edges.heads(0.95).tolist() == [-1] * 4


def test_two_heads_that_are_equally_probable_are_none() -> None:
    edges = ProjectedEdges.of([0, 3], [0, 0, 1], [2, 3, 3], [0.5, 0.5, 0.25])
    assert edges.heads().tolist() == [-1, 3, -1]


def test_density_is_the_share_and_the_longest_run() -> None:
    found = density_of(np.array([2, 0, -1, 2, 1, 3, -1, -1, 1]), np.array([0, 6, 8, 8, 9]))
    assert found.share.tolist() == [5 / 6, 0.0, 1.0, 1.0]
    assert found.run.tolist() == [3, 0, 0, 1]
    assert density_of(np.zeros(0, np.int32), np.array([0])).run.tolist() == []


def test_a_treebank_has_where_heads_came_from() -> None:
    bitext = Bitext.of([("she sleeps", "dann schläft sie"), ("", "")])
    trees = Treebank.of([[("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]])
    sure = {(0, 2): 0.5, (1, 1): 1.0}
    edges = project_edges(trees, bitext, Links.of([Alignment(frozenset(sure), probability=sure), []]))
    made = edges.as_treebank(bitext.target)
    assert made.heads.tolist() == [-1, 0, 2]
    assert made.strings("deprel", 0) == ("_", "root", "nsubj")
    assert made.strings("misc", 0) == ("_", "Proj=2|ProjConf=1.0000", "Proj=1|ProjConf=0.5000")
    assert "head" in made.predicted
    own = Treebank.of([[{"form": "dann", "misc": "SpaceAfter=No"}, {"form": "schläft"}, {"form": "sie"}]])
    assert edges.as_treebank(own, 0.75).strings("misc", 0) == ("SpaceAfter=No", "Proj=2|ProjConf=1.0000", "_")
    with pytest.raises(TreebankError, match="target side"):
        edges.as_treebank(Text.of(["a b"]))


def test_nothing_projected_is_a_treebank_without_heads() -> None:
    bitext = Bitext.of([("a", "x")])
    edges = project_edges(Treebank.of([[("a", "X", 0, "root")]]), bitext, Links.of([[]]))
    assert edges.as_treebank(bitext.target).heads.tolist() == [-1]
    assert edges.density() == (np.zeros(1), np.zeros(1))


# --- edges as a value


def test_edges_are_ordered_and_there_once() -> None:
    edges = ProjectedEdges.of([0, 2, 4], [3, 0, 3, 2], [1, 2, 1, 0], [0.5, 1, 0.75, 0.25], names=["a"])
    assert edges.word.tolist() == [0, 2, 3]
    assert edges.probability.tolist() == [1.0, 0.25, 0.75]
    assert edges.starts.tolist() == [0, 1, 3]
    taken = edges.take([1, 0, 1])
    assert (taken.word.tolist(), taken.head.tolist()) == ([0, 1, 2, 4, 5], [0, 1, 2, 0, 1])
    assert taken.offsets.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("given", "finding"),
    [
        (([4], [0]), "words from 0 to 3"),
        (([0], [3]), "another word of the same sentence"),
        (([0], [1]), "another word of the same sentence"),
        (([0], [2], [1.5]), "from 0 to 1"),
        (([0], [2], [1.0], [0]), "relations should be"),
    ],
)
def test_edges_outside_of_their_sentence_are_refused(given: tuple, finding: str) -> None:
    with pytest.raises(ParameterError, match=finding):
        ProjectedEdges.of([0, 2, 4], *given)


def test_parts_of_a_text_and_threads_give_the_same() -> None:
    bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    trees = Treebank.from_bytes(samples.trees("en-de").encode())
    bitext, links = bitext[: len(trees)], gold[: len(trees)]
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            found.append(project_edges(trees, bitext, links))
    part = project_edges(trees[5:9], bitext[5:9], links[5:9])
    for one, other, some, taken in zip(
        *map(astuple, (*found, part, found[0].take(np.arange(5, 9)))), strict=True
    ):  # fmt: skip
        assert np.array_equal(one, other)
        assert np.array_equal(some, taken) or isinstance(some, tuple)


def test_cells_above_a_cutoff_are_links() -> None:
    links = links_above([np.array([[0.9, 0.2], [0.0, 0.5]], np.float32), np.zeros((0, 3), np.float32)], 0.3)
    assert [str(row) for row in links] == ["0-0 1-1", ""]
    assert links.probability is not None and links.probability.dtype == np.float32
