"""Filters of links, pairs and edges; rules; and what projection is compared with."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.bitext import Bitext, Text
from isogloss.data.links import Alignment, Links
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures.partial import can_be_projective
from isogloss.tasks.transfer.baselines import determined_sentences, random_trees
from isogloss.tasks.transfer.edges import ProjectedEdges
from isogloss.tasks.transfer.filters import (
    compatible_links,
    dense_sentences,
    plain_sentences,
    punctuation,
    verbal_roots,
    without_words,
)
from isogloss.tasks.transfer.rules import (
    BULGARIAN,
    SPANISH,
    Edges,
    adjectives,
    auxiliaries,
    main_verbs,
    particle,
    prepositions,
    with_rules,
)
from isogloss.testing.enumerate import trees


def tagged(*sentences: str) -> Treebank:
    """From words written as form/TAG/head, the head if there is one."""
    rows = []
    for sentence in sentences:
        cells = [word.split("/") for word in sentence.split()]
        rows.append([(cell[0], cell[1], int(cell[2]) if len(cell) > 2 else -1) for cell in cells])
    return Treebank.of(rows)


def pair() -> tuple[Bitext, Treebank, Treebank, Links]:
    source = tagged("she/PRON/2 walks/VERB/0", "a/DET/2 walk/NOUN/0")
    target = tagged("sie/PRON geht/VERB", "Gang/NOUN gehen/VERB")
    bitext = Bitext.of([("she walks", "sie geht"), ("", ""), ("a walk", "Gang gehen")])
    return bitext, source, target, Links.of([[(0, 0), (1, 1)], [], [(0, 0), (1, 0), (1, 1)]])


# --- filters


def test_links_of_nouns_and_verbs_are_dropped_or_those_that_are_named() -> None:
    bitext, source, target, links = pair()
    assert [str(row) for row in compatible_links(links, bitext, source, target)] == ["0-0 1-1", "", "0-0 1-0"]
    other = compatible_links(links, bitext, source, target, [("PRON", "PRON"), ("DET", "NOUN")])
    assert [str(row) for row in other] == ["1-1", "", "1-0 1-1"]
    assert len(compatible_links(links, bitext, source, target, []).source) == 5


def test_roots_are_verbs_on_both_sides() -> None:
    bitext, source, target, links = pair()
    assert verbal_roots(links, bitext, source, target).tolist() == [True, False, False]
    assert verbal_roots(links, bitext, source, target, ["NOUN"]).tolist() == [False, False, True]
    doubtful = Links.of([Alignment(frozenset({(0, 0)}), possible=frozenset({(1, 1)})), [], []])
    assert not verbal_roots(doubtful, bitext, source, target).any()
    assert not verbal_roots(Links.of([[], [], []]), bitext, source, target).any()


def test_dense_sentences_have_a_share_or_a_run() -> None:
    offsets = np.array([0, 10, 20, 30])
    chain = [*range(8), *range(10, 17)]  # 8 of 10, 7 of 10, none
    heads = [word - int(offsets[np.searchsorted(offsets, word, side="right") - 1]) for word in chain]
    edges = ProjectedEdges.of(offsets, chain, heads)
    assert dense_sentences(edges).tolist() == [True, True, False]
    assert dense_sentences(edges, run=None).tolist() == [True, False, False]
    assert dense_sentences(edges, share=1.0, run=8).tolist() == [True, False, False]
    with pytest.raises(ParameterError, match="share from 0 to 1"):
        dense_sentences(edges, share=2)


def test_punctuation_and_edges_without_it() -> None:
    trees = tagged("Hallo/INTJ ,/PUNCT Welt/NOUN !/_ .../X")
    found = punctuation(trees)
    assert found.tolist() == [False, True, False, True, False]
    edges = ProjectedEdges.of([0, 5], [0, 1, 2, 3, 4], [3, 3, 0, 3, 2])
    assert without_words(edges, found).word.tolist() == [0, 2]
    with pytest.raises(ParameterError, match="5 flags"):
        without_words(edges, found[:3])


def test_plain_sentences_of_a_part_of_a_text() -> None:
    text = Text.of(["a ...", "b , c .", "", "d , e , f", "g"])
    assert plain_sentences(text).tolist() == [False, True, True, False, True]
    assert plain_sentences(text[1:4]).tolist() == [True, True, False]
    assert plain_sentences(text, commas=2).tolist() == [False, True, True, True, True]


# --- rules


def ruled(rule: object, sentence: str, edges: set[tuple[int, int]]) -> Edges:
    trees = tagged(sentence)
    return frozenset(rule(trees.words(0), trees.strings("upos", 0), frozenset(edges)))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("rule", "sentence", "given_edges", "wanted"),
    [
        # S1: the main verb heads the auxiliary, adopts its children, is the root, and heads the pronoun before it
        (
            main_verbs,
            "ella/PRON ha/AUX cantado/VERB hoy/ADV",
            {(0, 2), (2, 1), (2, 4)},
            {(0, 3), (3, 2), (3, 1), (3, 4)},
        ),
        (main_verbs, "canta/VERB y/CCONJ baila/VERB", {(0, 1), (1, 3)}, {(0, 1), (1, 3)}),
        (main_verbs, "es/AUX ,/PUNCT canta/VERB", {(0, 1), (1, 3)}, {(0, 3)}),
        # S2: the first of two heads the second
        (adjectives, "casa/NOUN roja/ADJ", {(0, 1), (1, 2)}, {(0, 1), (1, 2)}),
        (adjectives, "gran/ADJ casa/NOUN de/ADP", {(0, 2), (2, 1), (2, 3)}, {(0, 1), (1, 2), (1, 3)}),
        # S3: prepositions on the first verb, but de between noun phrases
        (prepositions, "vive/VERB en/ADP casa/NOUN", {(3, 2), (1, 3)}, {(1, 2), (1, 3)}),
        (prepositions, "vive/VERB casa/NOUN de/ADP Ana/PROPN", {(4, 3)}, {(2, 3)}),
        (prepositions, "vive/VERB de/ADP lejos/ADV", {(3, 2)}, {(1, 2)}),
        (prepositions, "de/ADP", set(), set()),
        # B1: the particle heads all up to the verb, adopts some of their children, and takes the verb's place
        (particle("да"), "искам/VERB да/PART пея/VERB днес/ADV", {(1, 3), (3, 4)}, {(1, 2), (2, 3), (2, 4)}),
        (particle("да"), "искам/VERB да/PART пея/VERB аз/PRON", {(1, 3), (3, 4)}, {(1, 2), (2, 3), (3, 4)}),
        (particle("не"), "искам/VERB да/PART пея/VERB", {(1, 3)}, {(1, 3)}),
        # B2: auxiliaries head main verbs
        (auxiliaries, "аз/PRON съм/AUX пял/VERB", {(3, 1), (3, 2), (0, 3)}, {(2, 1), (2, 3), (0, 2)}),
    ],
)
def test_rules_do_what_they_say(rule: object, sentence: str, given_edges: set, wanted: set) -> None:
    assert ruled(rule, sentence, given_edges) == wanted


def test_rules_compose_in_order_and_leave_the_rest_alone() -> None:
    target = tagged("ella/PRON ha/AUX cantado/VERB", "casa/NOUN roja/ADJ")
    edges = ProjectedEdges.of([0, 3, 3, 5], [0, 1, 4], [2, 0, 1], [0.5, 1.0, 0.25], [0, -1, 0], [1, 2, 2], ["dep"])
    got = with_rules(edges, target, SPANISH)
    found = list(
        zip(got.word.tolist(), got.head.tolist(), got.probability.tolist(), got.relation.tolist(), strict=True)
    )
    assert found == [(0, 3, 1.0, -1), (1, 3, 1.0, -1), (2, 0, 1.0, -1), (4, 1, 0.25, 0)]
    assert got.origin.tolist() == [0, 0, 0, 2]
    assert with_rules(edges, target, []).probability.tolist() == edges.probability.tolist()
    seen: list[int] = []
    with_rules(edges, target, [lambda w, t, e: seen.append(1) or e, lambda w, t, e: seen.append(2) or e])
    assert seen == [1, 2, 1, 2]
    assert len(with_rules(edges.keep(np.zeros(3, np.bool_)), target, SPANISH).word) == 4
    with pytest.raises(ParameterError, match=r"edge \(1, 9\) in a sentence of 3 words"):
        with_rules(edges, target, [lambda w, t, e: {(1, 9)}])
    with pytest.raises(ParameterError, match="give the sentences"):
        with_rules(edges, target.part(0, 1), SPANISH)


@given(st.data())
def test_rules_give_words_at_most_one_new_head_and_no_loops(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    kinds = ["VERB", "AUX", "NOUN", "ADJ", "ADP", "PRON", "PART", "PUNCT"]
    words = ["да", "не", "de", "x"]
    row = [(data.draw(st.sampled_from(words)), data.draw(st.sampled_from(kinds))) for _ in range(n)]
    cells = st.tuples(st.integers(0, n), st.integers(1, n)).filter(lambda edge: edge[0] != edge[1])
    edges = frozenset(data.draw(st.lists(cells, max_size=6)))
    for rule in (*SPANISH, *BULGARIAN):
        made = frozenset(rule([w for w, _ in row], [t for _, t in row], edges))
        assert all(0 <= h <= n and 1 <= c <= n and h != c for h, c in made)
        before, after = (Counter(c for _, c in some) for some in (edges, made))
        assert all(after[c] <= max(1, before[c]) for c in after)


# --- baselines


@st.composite
def noisy(draw: st.DrawFn) -> ProjectedEdges:
    lengths = draw(st.lists(st.integers(0, 6), max_size=4))
    offsets = np.cumsum([0, *lengths])
    word, head = [], []
    for s, n in enumerate(lengths):
        for _ in range(draw(st.integers(0, 2 * n))):
            child, above = draw(st.integers(1, n)), draw(st.integers(0, n))
            if above != child:
                word.append(int(offsets[s]) + child - 1)
                head.append(above)
    return ProjectedEdges.of(offsets, word, head)


@given(noisy(), st.integers(0, 5), st.booleans())
def test_random_trees_are_projective_and_keep_what_came_first(
    edges: ProjectedEdges, seed: int, single_root: bool
) -> None:
    heads = random_trees(edges, seed=seed, single_root=single_root)
    order = np.argsort(np.random.default_rng(seed).random(len(edges.word)), kind="stable")
    for s in range(len(edges)):
        first, n = int(edges.offsets[s]), int(edges.lengths[s])
        mine = tuple(heads[first : first + n].tolist())
        every = trees(n, projective=True, single_root=single_root)
        assert mine in every
        taken: dict[int, int] = {}
        for at in order.tolist():  # an edge is left out only where no tree has it beside those before it
            if edges.sentence[at] == s:
                child, head = int(edges.child[at]), int(edges.head[at])
                trial = {**taken, child: head}
                if child not in taken and any(all(tree[c - 1] == h for c, h in trial.items()) for tree in every):
                    taken = trial
        assert all(mine[child - 1] == head for child, head in taken.items())


def test_random_trees_are_the_same_for_a_seed_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, 80)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    word = np.arange(0, offsets[-1], 3)
    head = (rng.random(len(word)) * np.repeat(lengths, lengths)[word]).astype(int)
    own = word - np.repeat(offsets[:-1], lengths)[word] + 1
    edges = ProjectedEdges.of(offsets, word[head != own], head[head != own])
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            found.append(random_trees(edges, seed=3))
    assert np.array_equal(*found) and not np.array_equal(found[0], random_trees(edges, seed=4))
    assert can_be_projective(found[0], offsets).all() and (found[0] >= 0).all()


def test_every_tree_can_be_drawn() -> None:
    edges = ProjectedEdges.of([0, 3], [], [])
    seen = {tuple(random_trees(edges, seed=seed).tolist()) for seed in range(200)}
    assert seen == set(trees(3, projective=True, single_root=True))


def test_hard_projection_keeps_whole_trees_alone() -> None:
    edges = ProjectedEdges.of([0, 2, 4, 4], [0, 1, 2], [0, 1, 0], [1.0, 0.5, 1.0])
    assert determined_sentences(edges).tolist() == [True, False, True]
    assert determined_sentences(edges, 0.75).tolist() == [False, False, True]
