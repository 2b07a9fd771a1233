"""Annotation styles: what they look like, that they are always trees, and that the way back leads home."""

from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss import samples
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.tasks.parse.styles import COORDINATIONS, Style, convert

SIDES = ("child", "head")
STYLES = [Style(*each) for each in itertools.product(COORDINATIONS, SIDES, SIDES, SIDES, SIDES)]


def trees(*rows: str) -> Treebank:
    """A sentence from ``form/head/relation`` words."""
    return Treebank.of([[(f, "X", int(h), r) for f, h, r in (w.split("/") for w in row.split())] for row in rows])


def shown(treebank: Treebank, sentence: int = 0) -> str:
    heads = treebank.heads[treebank.offsets[sentence] : treebank.offsets[sentence + 1]].tolist()
    rows = zip(treebank.words(sentence), heads, treebank.strings("deprel", sentence), strict=True)
    return " ".join(f"{form}/{head}/{relation}" for form, head, relation in rows)


def same(a: Treebank, b: Treebank) -> bool:
    return all(shown(a, s) == shown(b, s) for s in range(len(a)))


# --- what styles look like

HANDMADE = {
    "shared preposition, Prague": (
        "went/0/root to/3/case Rome/1/obl ,/5/punct Paris/3/conj and/7/cc Bonn/3/conj ./1/punct",
        Style("prague", "child"),
        "went/0/root to/3/case Rome/6/obl:co ,/6/punct Paris/6/obl:co and/1/coord:cc Bonn/6/obl:co ./1/punct",
    ),
    "shared preposition, both": (
        "went/0/root to/3/case Rome/1/obl and/5/cc Bonn/3/conj",
        Style("prague", "head"),
        "went/0/root to/1/obl Rome/4/comp:case:co and/2/coord:cc Bonn/4/comp:case:co",
    ),
    "a preposition for each": (
        "went/0/root to/3/case Rome/1/obl and/6/cc to/6/case Bonn/3/conj",
        Style("ud", "head"),
        "went/0/root to/1/obl Rome/2/comp:case and/5/cc to/2/conj Bonn/5/comp:case",
    ),
    "a preposition for each, Prague": (
        "went/0/root to/3/case Rome/1/obl and/6/cc to/6/case Bonn/3/conj",
        Style("prague", "head"),
        "went/0/root to/4/obl:co Rome/2/comp:case and/1/coord:cc to/4/obl:co Bonn/5/comp:case",
    ),
    "chain": (
        "Rome/0/root ,/3/punct Paris/1/conj and/5/cc Bonn/1/conj",
        Style("chain"),
        "Rome/0/root ,/3/punct Paris/1/conj and/5/cc Bonn/3/conj",
    ),
    "what follows is shared": (
        "cats/0/root and/3/cc dogs/1/conj here/1/advmod",
        Style("prague"),
        "cats/2/root:co and/0/coord:cc dogs/2/root:co here/2/advmod",
    ),
    "a coordination within another": (
        "a/0/root and/3/cc b/1/conj or/5/cc c/3/conj",
        Style("prague"),
        "a/2/root:co and/0/coord:cc b/4/root:co or/2/coord:cc:co c/4/root:co",
    ),
    "marks where there is no conjunction": (
        "a/0/root ,/3/punct b/1/conj",
        Style("prague"),
        "a/2/root:co ,/0/coord:punct b/2/root:co",
    ),
    "nothing to head it": ("a/0/root “/3/punct b/1/conj", Style("prague"), "a/0/root “/3/punct b/1/conj"),
    "a chain of function words": (
        "said/0/root that/6/mark she/6/nsubj has/6/aux been/6/aux:pass seen/1/ccomp",
        Style("ud", "child", "child", "head", "head"),
        "said/0/root that/1/ccomp she/4/nsubj has/2/comp:mark been/4/comp:aux seen/5/comp:aux:pass",
    ),
    "the copula": (
        "he/3/nsubj is/3/cop old/0/root",
        Style(copulas="head"),
        "he/2/nsubj is/0/root old/2/comp:cop",
    ),
    "behind the noun": (
        "Rom/3/nmod gegen/1/case sieg/0/root",
        Style(prepositions="head"),
        "Rom/2/comp:case gegen/3/nmod sieg/0/root",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HANDMADE)
def test_styles_look_as_they_should(name):
    before, style, after = HANDMADE[name]
    made = convert(trees(before), *style)
    assert shown(made) == after
    assert shown(convert(made, given=style)) == before
    made.check_trees()


def test_a_style_is_reached_from_any_other():
    text = trees(*(before for name, (before, _, _) in HANDMADE.items() if "within" not in name))  # chains lose it
    for first, second in itertools.product([Style("prague", "head"), Style("chain"), Style("ud", "head")], repeat=2):
        assert same(convert(convert(text, *first), *second, given=first), convert(text, *second))


# --- trees of any kind stay trees

RELATIONS = ["case", "conj", "cc", "punct", "mark", "aux", "obj", "fixed", "comp:case", "coord:cc", "obj:co", "root:co"]


@st.composite
def any_trees(draw):
    n = draw(st.integers(1, 9))
    order = draw(st.permutations(range(1, n + 1)))
    heads = [0] * (n + 1)
    for at, word in enumerate(order):
        heads[word] = 0 if at == 0 else order[draw(st.integers(0, at - 1))]
    names = draw(st.lists(st.sampled_from(RELATIONS), min_size=n, max_size=n))
    return Treebank.of([[("w", "X", head, name) for head, name in zip(heads[1:], names, strict=True)]])


@given(any_trees(), st.sampled_from(STYLES), st.sampled_from(STYLES))
def test_whatever_comes_in_a_tree_comes_out(treebank, source, target):
    made = convert(treebank, *target, given=source)
    made.check_trees()
    assert np.count_nonzero(made.heads == 0) == 1


# --- the way back


class Node:
    """A word of a sentence that is being made; `nodes` are those of its phrase, in order."""

    def __init__(self, relation: str = "") -> None:
        self.relation, self.parent = relation, None

    def under(self, parent: Node, relation: str) -> Node:
        self.parent, self.relation = parent, relation
        return self


def phrase(rng: random.Random, depth: int, nested: bool) -> tuple[list[Node], Node]:
    """A phrase as guidelines have it: function words lead it or follow it, conjuncts follow with commas and words."""
    head = Node()
    nodes = [head]
    for relation in ("amod", "obj", "nsubj"):
        if depth and rng.random() < 0.4:
            own, top = phrase(rng, depth - 1, nested)
            top.under(head, relation)
            nodes = nodes + own if rng.random() < 0.5 else own + nodes
    for relation in ("case", "cop", "aux", "mark"):
        if rng.random() < 0.25:
            word = Node().under(head, relation)
            nodes = nodes + [word] if rng.random() < 0.2 else [word, *nodes]
            if rng.random() < 0.2:
                nodes.insert(nodes.index(word) + 1, Node().under(word, "fixed"))
    if depth and rng.random() < 0.4:
        own, top = phrase(rng, depth - 1, nested)
        nodes = [*own, *nodes]
        top.under(head, "advmod")
    count = rng.choice((0, 0, 1, 2)) if depth else 0
    for _ in range(count):
        own, top = phrase(rng, depth - 1 if nested else 0, nested)
        joins = [Node().under(top, relation) for relation in ("punct", "cc") if rng.random() < 0.6]
        top.under(head, "conj")
        nodes += [*joins, *own]
    if depth and rng.random() < 0.3:
        own, top = phrase(rng, depth - 1, nested)
        nodes += own
        top.under(head, "acl")
    return nodes, head


def sentence(seed: int, nested: bool) -> list[tuple[str, str, int, str]]:
    nodes, head = phrase(random.Random(seed), 3, nested)
    head.relation = "root"
    numbers = {id(node): i for i, node in enumerate(nodes, 1)}
    return [
        ("," if node.relation == "punct" else "w", "X", numbers[id(node.parent)] if node.parent else 0, node.relation)
        for node in nodes
    ]


@given(st.integers(0, 10**9), st.sampled_from(STYLES))
def test_to_a_style_and_back_is_the_identity(seed, style):
    text = Treebank.of([sentence(seed, nested=style.coordination != "chain")])
    made = convert(text, *style)
    made.check_trees()
    assert same(convert(made, given=style), text)


@given(st.integers(0, 10**9), st.sampled_from([style for style in STYLES if style.coordination != "chain"]))
def test_links_of_well_made_trees_do_not_begin_to_cross(seed, style):
    text = Treebank.of([sentence(seed, nested=True)])
    assert not text.crossing.any()
    assert not convert(text, *style).crossing.any()


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("style", STYLES, ids=str)
def test_samples_come_back(side, style):
    text = Treebank.from_bytes(samples.trees("en-de", side).encode())
    assert same(convert(convert(text, *style), given=style), text)


def test_what_is_lost_is_what_is_said():
    nested = trees("a/0/root and/3/cc b/1/conj or/5/cc c/3/conj")
    assert shown(convert(convert(nested, "chain"), given=Style("chain"))).endswith("c/1/conj")
    own = trees("just/2/advmod after/3/case noon/0/root")
    back = convert(convert(own, prepositions="head"), given=Style(prepositions="head"))
    assert shown(back) == "just/3/advmod after/3/case noon/0/root"


# --- borders


def test_nothing_else_changes():
    text = Treebank.from_bytes(samples.trees("en-de", "source").encode())
    made = convert(text, "prague", "head")
    assert all(made.columns[name] is text.columns[name] for name in ("form", "lemma", "upos", "feats", "misc"))
    assert same(convert(text), text) and len(convert(Treebank.of([]), "prague")) == 0


def test_wrong_styles_and_trees_are_refused():
    text = trees("a/0/root")
    with pytest.raises(ParameterError, match="coordination should be one of ud, prague, chain, not 'moscow'"):
        convert(text, "moscow")
    with pytest.raises(ParameterError, match="prepositions should be one of child, head"):
        convert(text, given=Style(prepositions="up"))
    with pytest.raises(TreebankError, match="sentence 1: word 2 has no head"):
        convert(Treebank.of([[("a", "X", 0, "root"), ("b", "X")]]), "prague")


def test_a_minute_is_enough_for_many_sentences():
    text = Treebank.of([sentence(seed, nested=True) for seed in range(300)])
    began = time.process_time()
    convert(text, "prague", "head")
    assert (time.process_time() - began) / len(text) < 60 / 20_000
