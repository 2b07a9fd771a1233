"""Heads of constituents: by tables for Penn labels, or from dependency trees of the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituents import Constituents, ConstituentTree, Nested, unescaped
from isogloss.data.treebank import Treebank
from isogloss.errors import TreebankError

__all__ = [
    "COLLINS", "HeadRule", "bare", "dependencies_by_table", "head_child", "heads_by_table", "heads_from_dependencies",
]  # fmt: skip


class HeadRule(NamedTuple):
    """How the head of a node is found: the first child, from one side, with the first of these labels that occurs.

    side : {"left", "right"}
        Where the search begins.
    labels : tuple of str
        Those before others are better. If none occurs, the outermost child of that side is the head.
    """

    side: str
    labels: tuple[str, ...] = ()


def _rule(side: str, labels: str = "") -> HeadRule:
    return HeadRule(side, tuple(labels.split()))


COLLINS: Mapping[str, HeadRule] = {
    "ADJP": _rule("left", "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
    "ADVP": _rule("right", "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    "CONJP": _rule("right", "CC RB IN"),
    "FRAG": _rule("right"),
    "INTJ": _rule("left"),
    "LST": _rule("right", "LS :"),
    "NAC": _rule("left", "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    "PP": _rule("right", "IN TO VBG VBN RP FW"),
    "PRN": _rule("left"),
    "PRT": _rule("right", "RP"),
    "QP": _rule("left", "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
    "RRC": _rule("right", "VP NP ADVP ADJP PP"),
    "S": _rule("left", "TO IN VP S SBAR ADJP UCP NP"),
    "SBAR": _rule("left", "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    "SBARQ": _rule("left", "SQ S SINV SBARQ FRAG"),
    "SINV": _rule("left", "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    "SQ": _rule("left", "VBZ VBD VBP VB MD VP SQ"),
    "UCP": _rule("right"),
    "VP": _rule("left", "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP"),
    "WHADJP": _rule("left", "CC WRB JJ ADJP"),
    "WHADVP": _rule("right", "CC WRB"),
    "WHNP": _rule("left", "WDT WP WP$ WHADJP WHPP WHNP"),
    "WHPP": _rule("right", "IN TO FW"),
}
"""The head table of Collins (1999, appendix A), who took it from Magerman (1995). Noun phrases have rules of their own;
labels that are not here have their leftmost child as head."""

_NOUNS = ("NN", "NNP", "NNPS", "NNS", "NX", "POS", "JJR")
_PUNCTUATION = frozenset({",", ".", ":", "``", "''", "-LRB-", "-RRB-"})


def bare(label: str) -> str:
    """A label without function tags and indices.

    Examples
    --------
    >>> bare("NP-SBJ-1"), bare("NP=2"), bare("-NONE-"), bare("ADVP|PRT")
    ('NP', 'NP', '-NONE-', 'ADVP|PRT')
    """
    if label.startswith("-"):
        return label
    return label.partition("-")[0].partition("=")[0]


def head_child(label: str, children: Sequence[str], table: Mapping[str, HeadRule] = COLLINS) -> int:
    """Which child of a node is its head, from the bare labels (or tags) of node and children.

    Examples
    --------
    >>> head_child("VP", ["MD", "RB", "VP"]), head_child("NP", ["DT", "JJ", "NN", "PP"])
    (0, 2)
    >>> head_child("NP", ["NP", "CC", "NP"])
    0
    """
    found = _noun_head(children) if label in ("NP", "NX") else _by_rule(table.get(label, HeadRule("left")), children)
    if found >= 2 and children[found - 1] in ("CC", "CONJP"):  # of coordinated children, the first
        before = next((k for k in range(found - 2, -1, -1) if children[k] not in _PUNCTUATION), found)
        found = before
    return found


def _noun_head(children: Sequence[str]) -> int:
    if children[-1] == "POS":
        return len(children) - 1
    searches = (
        ("right", _NOUNS), ("left", ("NP",)), ("right", ("$", "ADJP", "PRN")), ("right", ("CD",)),
        ("right", ("JJ", "JJS", "RB", "QP")),
    )  # fmt: skip
    for side, labels in searches:
        order = range(len(children)) if side == "left" else range(len(children) - 1, -1, -1)
        for k in order:
            if children[k] in labels:
                return k
    return len(children) - 1


def _by_rule(rule: HeadRule, children: Sequence[str]) -> int:
    order = range(len(children)) if rule.side == "left" else range(len(children) - 1, -1, -1)
    for label in rule.labels:
        for k in order:
            if children[k] == label:
                return k
    return next((k for k in order if children[k] not in _PUNCTUATION), order[0])


def heads_by_table(trees: Constituents, table: Mapping[str, HeadRule] = COLLINS) -> NDArray[np.int32]:
    """int32[n_nodes]: the head word of each node, counted within its sentence.

    Examples
    --------
    >>> trees = Constituents.of(["(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))"])
    >>> heads_by_table(trees).tolist()
    [2, 1, 2]
    """
    choose: Callable[[str, Sequence[str]], int] = lambda label, children: head_child(label, children, table)  # noqa: E731
    heads = [_heads(tree, choose) for tree in trees]
    return np.array([head for each in heads for head in each], np.int32)


def _heads(tree: ConstituentTree, choose: Callable[[str, Sequence[str]], int]) -> list[int]:
    children: list[list[tuple[int, int, str]]] = [[] for _ in tree.labels]  # first word, node or -1, label
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            children[parent].append((tree.spans[node][0], node, bare(tree.labels[node])))
    for word, node in enumerate(tree.attached):
        if node >= 0:
            children[node].append((word, -1, bare(tree.tags[word])))
    heads = [0] * len(children)
    for node in range(len(children) - 1, -1, -1):
        ordered = sorted(children[node])
        first, below, _ = ordered[choose(bare(tree.labels[node]), [label for _, _, label in ordered])]
        heads[node] = first if below < 0 else heads[below]
    return heads


def dependencies_by_table(trees: Constituents, table: Mapping[str, HeadRule] = COLLINS) -> Treebank:
    """Dependency trees of the words of constituents: each node's head word heads those of its other children.

    Traces and function tags are left out first. Tags become XPOS, words are unescaped (``-LRB-`` is ``(``), and there
    are no relations. Where a sentence has several trees, or words beside them, the first head is that of the others.

    References
    ----------
    Yamada and Matsumoto, Statistical dependency analysis with support vector machines, IWPT 2003, section 4 (with a
    head table of Collins).

    Examples
    --------
    >>> trees = dependencies_by_table(Constituents.of(["(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))"]))
    >>> trees.words(0), trees.heads.tolist(), trees.strings("xpos", 0)
    (('the', 'dog', 'sleeps'), [2, 3, 0], ('DT', 'NN', 'VBZ'))
    """
    bare_trees = trees.stripped()
    heads = heads_by_table(bare_trees, table)
    rows, first = [], 0
    for tree in bare_trees:
        own = heads[first : first + len(tree.labels)].tolist()
        first += len(tree.labels)
        above = [-1] * len(tree.words)  # the head of each word, −1 for those that nothing stands above
        for node, parent in enumerate(tree.parents):
            if parent >= 0 and own[node] != own[parent]:
                above[own[node]] = own[parent]
        for word, node in enumerate(tree.attached):
            if node >= 0 and own[node] != word:
                above[word] = own[node]
        roots = [word for word, head in enumerate(above) if head < 0]
        found = [0 if word == roots[0] else roots[0] + 1 if head < 0 else head + 1 for word, head in enumerate(above)]
        rows.append([
            {"form": unescaped(form), "xpos": tag, "head": head}
            for form, tag, head in zip(tree.words, tree.tags, found, strict=True)
        ])  # fmt: skip
    made = Treebank.of([row for row in rows if row])
    return replace(made, name=trees.name)


def heads_from_dependencies(trees: Constituents, treebank: Treebank) -> NDArray[np.int32]:
    """int32[n_nodes]: the head word of each node, as dependency trees of the same words have it.

    It is the word of the node whose own head lies outside; where there are several, the first of those nearest to the
    root.
    """
    if len(trees) != len(treebank) or not np.array_equal(trees.lengths, treebank.lengths):
        raise TreebankError(
            f"{trees.name} and {treebank.name} do not have the same sentences: heads are taken from dependency trees "
            "of the same words. Were traces stripped?"
        )
    found: list[int] = []
    for number, tree in enumerate(trees):
        words, theirs = map(unescaped, tree.words), map(unescaped, treebank.words(number))
        if list(words) != list(theirs):
            raise TreebankError(f"tree {number + 1} of {trees.name} has other words than {treebank.label_of(number)}")
        start, stop = treebank.offsets[number : number + 2].tolist()
        found += _outward(tree, treebank.heads[start:stop].tolist())
    return np.array(found, np.int32)


def _outward(tree: ConstituentTree, heads: Sequence[int]) -> list[int]:
    depths = [0] * len(heads)
    for word in range(len(heads)):
        at, steps = word, 0
        while at >= 0 and steps <= len(heads):
            at, steps = heads[at] - 1 if heads[at] > 0 else -1, steps + 1
        depths[word] = steps
    below: list[set[int]] = [set() for _ in tree.labels]
    for word, node in enumerate(tree.attached):
        if node >= 0:
            below[node].add(word)
    for node in range(len(below) - 1, -1, -1):
        if tree.parents[node] >= 0:
            below[tree.parents[node]] |= below[node]
    return [min(words, key=lambda word: (heads[word] - 1 in words, depths[word], word)) for words in below]


def children_of(part: Nested, tree: ConstituentTree) -> list[str]:
    """The labels of what hangs below a node: bare labels of nodes, tags of words."""
    return [bare(child[0]) if isinstance(child, tuple) else bare(tree.tags[child]) for child in part[1]]
