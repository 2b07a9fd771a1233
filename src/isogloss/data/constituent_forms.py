"""Trees of constituents in other forms, and back: stripped, without unary chains, binary, continuous."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituents import EMPTY_TAG, Constituents, ConstituentTree, Nested
from isogloss.data.head_rules import bare, children_of, head_child
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError, TreebankError

__all__ = [
    "ROOTS", "Markov", "binarised", "collapsed", "continuous", "expanded", "from_dependencies", "stripped",
    "unbinarised", "without_root",
]  # fmt: skip

ROOTS = ("", "TOP", "ROOT", "S1", "VROOT")
"""Labels of the bracket around a whole tree, which says nothing."""
INSIDE = "@"
"""What labels of nodes begin with that binarising has added."""
ABOVE = "^"
"""What stands before the labels of ancestors."""
JOINT = "+"
"""What stands between the labels of a unary chain."""


def _remade(
    trees: Constituents,
    change: Callable[[ConstituentTree, list[int | Nested]], Sequence[int | Nested]],
    tags: Callable[[ConstituentTree, list[int | Nested]], Sequence[str]] | None = None,
) -> Constituents:
    """The same words under changed trees."""
    words, of_words, forests = [], [], []
    for tree in trees:
        forest = tree.forest()
        words.append(tree.words)
        of_words.append(tree.tags if tags is None else tags(tree, forest))
        forests.append(change(tree, forest))
    return Constituents.assembled(words, of_words, forests, trees.name)


def _refuse_mark(trees: Constituents, mark: str, what: str, *, first: bool = False) -> None:
    """Labels that hold what a form marks things with could not be told from what it has made."""
    used = np.unique(trees.labels.ids)
    for label in (trees.labels.vocabulary[number] for number in used.tolist()):
        if label.startswith(mark) if first else mark in label:
            raise TreebankError(f"{trees.name}: label {label!r} has {mark!r} in it, which {what}. Rename it first")


# Stripping -----------------------------------------------------------------------------------------------------------


def stripped(trees: Constituents, *, functions: bool = True, empty: bool = True) -> Constituents:
    """Trees without function tags and indices (``NP-SBJ-1``), and without traces and nodes that have nothing else.

    Examples
    --------
    >>> print(stripped(Constituents.of(["(S (NP-SBJ (-NONE- *)) (VP (TO to) (VP (VB go))))"]))[0])
    (S (VP (TO to) (VP (VB go))))
    """
    if empty and EMPTY_TAG in trees.columns["tag"].vocabulary:
        words, tags, forests = [], [], []
        for tree in trees:
            kept = [word for word, tag in enumerate(tree.tags) if tag != EMPTY_TAG]
            place = {word: k for k, word in enumerate(kept)}
            words.append([tree.words[word] for word in kept])
            tags.append([tree.tags[word] for word in kept])
            forests.append(_without(tree.forest(), place))
        trees = Constituents.assembled(words, tags, forests, trees.name)
    return trees.mapped(bare) if functions else trees


def _without(forest: Sequence[int | Nested], place: dict[int, int]) -> list[int | Nested]:
    kept: list[int | Nested] = []
    for part in forest:
        if not isinstance(part, tuple):
            kept += [place[part]] if part in place else []
        elif below := _without(part[1], place):
            kept.append((part[0], below))
    return kept


def without_root(trees: Constituents) -> Constituents:
    """Trees without the bracket around the whole, whatever it is called (`ROOTS`).

    Examples
    --------
    >>> print(without_root(Constituents.of(["(TOP (S (NP (NN x)) (VP (VB y))))"]))[0])
    (S (NP (NN x)) (VP (VB y)))
    """
    return _remade(trees, lambda tree, forest: _below_root(forest))


def _below_root(forest: Sequence[int | Nested]) -> list[int | Nested]:
    found: list[int | Nested] = []
    for part in forest:
        found += part[1] if isinstance(part, tuple) and part[0] in ROOTS else [part]
    return found


# Unary chains --------------------------------------------------------------------------------------------------------


def collapsed(trees: Constituents, *, joint: str = JOINT) -> Constituents:
    """Unary chains of nodes as one node with a compound label; `expanded` undoes it.

    Examples
    --------
    >>> trees = Constituents.of(["(S (VP (VB go) (ADVP (RB home))))"])
    >>> print(collapsed(trees)[0])
    (S+VP (VB go) (ADVP (RB home)))
    >>> print(expanded(collapsed(trees))[0])
    (S (VP (VB go) (ADVP (RB home))))
    """
    _refuse_mark(trees, joint, "would stand between the labels of a unary chain")
    return _remade(trees, lambda tree, forest: [_collapse(part, joint) for part in forest])


def _collapse(part: int | Nested, joint: str) -> int | Nested:
    if not isinstance(part, tuple):
        return part
    label, children = part
    while len(children) == 1 and isinstance(children[0], tuple):
        label, children = label + joint + children[0][0], children[0][1]
    return label, [_collapse(child, joint) for child in children]


def expanded(trees: Constituents, *, joint: str = JOINT) -> Constituents:
    """Nodes with compound labels as unary chains: the inverse of `collapsed`."""
    return _remade(trees, lambda tree, forest: [_expand(part, joint) for part in forest])


def _expand(part: int | Nested, joint: str) -> int | Nested:
    if not isinstance(part, tuple):
        return part
    *above, lowest = part[0].split(joint)
    found: Nested = (lowest, [_expand(child, joint) for child in part[1]])
    for label in reversed(above):
        found = (label, [found])
    return found


# Binary trees --------------------------------------------------------------------------------------------------------


class Markov(NamedTuple):
    """What labels of binarised trees remember.

    direction : {"left", "right", "head"}
        Which children are split off last: with "right", ``A → B @A`` (the rest branches to the right); with "left",
        ``A → @A C``; with "head", from the head outwards, first its right sisters, then its left ones.
    horizontal : int, optional
        How many of the sisters that are there already the label of an added node names; all of them if None.
    vertical : int
        How many labels, from the node upwards, a label has: 1 is itself alone, 2 with the parent's (``NP^S``).
    tags : bool
        Whether tags get the labels above them as well.
    """

    direction: str = "right"
    horizontal: int | None = None
    vertical: int = 1
    tags: bool = False


def binarised(trees: Constituents, markov: Markov | None = None, **given: Any) -> Constituents:
    """Trees whose nodes have at most two children; `unbinarised` undoes it.

    Added nodes have labels that begin with ``@``, then the label of their node, then, after ``|``, the sisters that
    `horizontal` asks for, nearest first. `markov` or the fields of `Markov` say how.

    Examples
    --------
    >>> trees = Constituents.of(["(NP (DT the) (JJ old) (NN man) (PP (IN of) (NP (NN x))))"])
    >>> print(binarised(trees, horizontal=1)[0])
    (NP (DT the) (@NP|DT (JJ old) (@NP|JJ (NN man) (PP (IN of) (NP (NN x))))))
    >>> print(binarised(trees, direction="head", horizontal=0, vertical=2)[0])
    (NP (DT the) (@NP (JJ old) (@NP (NN man) (PP^NP (IN of) (NP^PP (NN x))))))
    >>> print(unbinarised(binarised(trees, vertical=2))[0]) == print(trees[0])
    (NP (DT the) (JJ old) (NN man) (PP (IN of) (NP (NN x))))
    (NP (DT the) (JJ old) (NN man) (PP (IN of) (NP (NN x))))
    True
    """
    how = (markov or Markov())._replace(**given)
    if how.direction not in ("left", "right", "head"):
        raise ParameterError(f"binarised: direction should be left, right or head, not {how.direction!r}")
    if how.vertical < 1 or (how.horizontal is not None and how.horizontal < 0):
        raise ParameterError("binarised: vertical should be 1 or more, and horizontal 0 or more, or None for all")
    _refuse_mark(trees, INSIDE, "marks nodes that binarising adds", first=True)
    _refuse_mark(trees, ABOVE, "stands before labels of ancestors")
    if how.direction == "head" and trees.discontinuous.any():
        raise TreebankError(f"{trees.name}: trees are discontinuous. Make them ordinary ones first: trees.continuous()")
    tags = (lambda tree, forest: _tags_above(tree, forest, how.vertical)) if how.tags and how.vertical > 1 else None
    return _remade(trees, lambda tree, forest: [_binary(part, tree, how, ()) for part in forest], tags)


def _tags_above(tree: ConstituentTree, forest: Sequence[int | Nested], vertical: int) -> list[str]:
    found = list(tree.tags)

    def visit(part: int | Nested, above: tuple[str, ...]) -> None:
        if isinstance(part, tuple):
            for child in part[1]:
                visit(child, (part[0], *above))
        else:
            found[part] = ABOVE.join([tree.tags[part], *above[: vertical - 1]])

    for part in forest:
        visit(part, ())
    return found


def _binary(part: int | Nested, tree: ConstituentTree, how: Markov, above: tuple[str, ...]) -> int | Nested:
    if not isinstance(part, tuple):
        return part
    label = ABOVE.join([part[0], *above[: how.vertical - 1]])
    children = [_binary(child, tree, how, (part[0], *above)) for child in part[1]]
    if len(children) <= 2:
        return label, children
    names = [child[0] if isinstance(child, tuple) else tree.tags[child] for child in part[1]]
    if how.direction == "head":
        split = head_child(bare(part[0]), children_of(part, tree))
    else:
        split = len(children) - 1 if how.direction == "right" else 0
    return _outwards(label, children, names, split, how.horizontal)


def _outwards(
    label: str, children: Sequence[int | Nested], names: Sequence[str], inmost: int, horizontal: int | None
) -> Nested:  # fmt: skip
    """Begin with one child, take its right sisters, then its left ones; the last of them makes the whole node."""
    steps = [*range(inmost + 1, len(children)), *range(inmost - 1, -1, -1)]
    found: int | Nested = children[inmost]
    low, high = inmost, inmost
    for at, k in enumerate(steps):
        low, high = min(low, k), max(high, k)
        pair = [found, children[k]] if k > inmost else [children[k], found]
        if at == len(steps) - 1:
            return label, pair
        outside = _outer(names, low, high, horizontal)
        found = (INSIDE + label + (f"|{'_'.join(outside)}" if outside else ""), pair)
    raise AssertionError("a node with one child has no steps")


def _outer(names: Sequence[str], low: int, high: int, horizontal: int | None) -> list[str]:
    """What the label of an added node over children low … high remembers: its outer sisters, nearest first."""
    order = [*range(high + 1, len(names)), *range(low - 1, -1, -1)]
    return [names[k] for k in (order if horizontal is None else order[:horizontal])]


def unbinarised(trees: Constituents) -> Constituents:
    """The trees that were binarised: added nodes and labels of ancestors are taken away again."""
    tags = None
    if any(ABOVE in tag for tag in trees.columns["tag"].vocabulary):
        tags = lambda tree, forest: [_cut(tag) for tag in tree.tags]  # noqa: E731
    return _remade(trees, lambda tree, forest: [found for part in forest for found in _unbinary(part)], tags)


def _cut(label: str) -> str:
    return label.partition(ABOVE)[0]


def _unbinary(part: int | Nested) -> list[int | Nested]:
    if not isinstance(part, tuple):
        return [part]
    below = [found for child in part[1] for found in _unbinary(child)]
    return below if part[0].startswith(INSIDE) else [(_cut(part[0]), below)]


# Discontinuous trees -------------------------------------------------------------------------------------------------


def continuous(trees: Constituents, heads: NDArray[np.int32] | None = None) -> Constituents:
    """Discontinuous trees as ordinary ones, by raising; others stay as they are.

    From the lowest nodes on, a discontinuous node keeps the run of neighbouring children that has its head in it, or,
    without `heads`, most words (the first of equals); its other children are hung on the node above. What is above all
    has every word, so that it ends. Words and their order never change.

    Parameters
    ----------
    heads : int32[n_nodes], optional
        The head word of each node, as of `isogloss.data.head_rules`.

    Examples
    --------
    >>> crossed = Constituents.from_bytes(b"(S (VP (V 0=Ruf) (PRT 2=an)) (NP (PRO 1=sie)))")
    >>> print(continuous(crossed)[0])
    (S (VP (V Ruf)) (NP (PRO sie)) (PRT an))
    """
    if not trees.discontinuous.any():
        return trees
    parents, attached = trees.parents.copy(), trees.attached.copy()
    for number in np.unique(trees.sentence_of_node[trees.discontinuous]).tolist():
        within = slice(*trees.offsets[number : number + 2].tolist())
        nodes = slice(*trees.node_offsets[number : number + 2].tolist())
        own = None if heads is None else heads[nodes]
        parents[nodes], attached[within] = _raised(parents[nodes].tolist(), attached[within].tolist(), own)
    tops = trees.sentence_of_node[parents < 0]
    if len(np.unique(tops)) < len(tops):
        raise AssertionError("a tree has one top, or none of its nodes is discontinuous")
    forests = [_forest(trees, number, parents, attached) for number in range(len(trees))]
    words = [trees.words(number) for number in range(len(trees))]
    tags = [trees.tags(number) for number in range(len(trees))]
    made = Constituents.assembled(words, tags, forests, trees.name)
    more = {name: column for name, column in trees.columns.items() if name not in made.columns}
    return made.with_words(**more) if more else made


def _raised(
    parents: list[int], attached: list[int], heads: NDArray[np.int32] | None
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Parents of nodes and words, in pre-order, after raising."""
    for node in range(len(parents) - 1, -1, -1):
        if parents[node] < 0:
            continue
        runs = _runs(node, parents, attached)
        if len(runs) == 1:
            continue
        keep = max(runs, key=lambda run: (heads is not None and int(heads[node]) in run.words, len(run.words)))
        for run in runs:
            if run is not keep:
                for child, is_node in run.children:
                    (parents if is_node else attached)[child] = parents[node]
    return parents, attached


class _Run(NamedTuple):
    """Neighbouring children of a node that have all words between their first and their last."""

    words: set[int]
    children: list[tuple[int, bool]]


def _runs(node: int, parents: Sequence[int], attached: Sequence[int]) -> list[_Run]:
    yields: dict[int, set[int]] = {}
    for word, above in enumerate(attached):
        while above >= 0 and above != node:
            yields.setdefault(above, set()).add(word)
            above = parents[above]
    parts = [(yields[k], (k, True)) for k, above in enumerate(parents) if above == node and k in yields]
    parts += [({word}, (word, False)) for word, above in enumerate(attached) if above == node]
    runs: list[_Run] = []
    for words, child in sorted(parts, key=lambda part: min(part[0])):
        if runs and max(runs[-1].words) + 1 == min(words):
            runs[-1].words.update(words)
            runs[-1].children.append(child)
        else:
            runs.append(_Run(set(words), [child]))
    return runs


def _forest(
    trees: Constituents, number: int, parents: NDArray[np.int32], attached: NDArray[np.int32]
) -> list[int | Nested]:  # fmt: skip
    words = slice(*trees.offsets[number : number + 2].tolist())
    nodes = slice(*trees.node_offsets[number : number + 2].tolist())
    made: list[Nested] = [(label, []) for label in trees[number].labels]
    top: list[int | Nested] = []
    for node, parent in enumerate(parents[nodes].tolist()):
        (made[parent][1] if parent >= 0 else top).append(made[node])
    for word, node in enumerate(attached[words].tolist()):
        (made[node][1] if node >= 0 else top).append(word)
    return top


# From dependency trees -----------------------------------------------------------------------------------------------


def from_dependencies(treebank: Treebank, *, tag: str = "upos") -> Constituents:
    """Constituents that dependency trees have: a word with all that depends on it, under the tag of that word.

    A word on which nothing depends is a leaf alone. Every tree stands below a node ``ROOT``. Where links cross, the
    subtrees are discontinuous, and are made continuous by raising (`continuous`): what is cut off from its head hangs
    on the next word above that has it in one piece.

    Parameters
    ----------
    treebank : Treebank
        With whole trees.
    tag : {"upos", "xpos"}
        The column of tags.

    Examples
    --------
    >>> trees = Treebank.of([[("the", "DET", 2), ("dog", "NOUN", 3), ("sleeps", "VERB", 0)]])
    >>> print(from_dependencies(trees)[0])
    (ROOT (VERB (NOUN (DET the) (NOUN dog)) (VERB sleeps)))
    """
    treebank.check_trees(complete=True)
    if tag not in ("upos", "xpos"):
        raise ParameterError(f"from_dependencies: tag should be upos or xpos, not {tag!r}")
    forests: list[list[int | Nested]] = []
    for number in range(len(treebank)):
        start, stop = treebank.offsets[number : number + 2].tolist()
        above = treebank.heads[start:stop].tolist()
        made = _subtrees(above, treebank.strings(tag, number))
        forests.append([("ROOT", made)] if made else [])
    words = [treebank.words(number) for number in range(len(treebank))]
    tags = [treebank.strings(tag, number) for number in range(len(treebank))]
    trees = Constituents.assembled(words, tags, forests, treebank.name)
    if not trees.discontinuous.any():
        return trees
    from isogloss.data.head_rules import heads_from_dependencies

    return continuous(trees, heads_from_dependencies(trees, treebank))


def _subtrees(heads: Sequence[int], tags: Sequence[str]) -> list[int | Nested]:
    """The nodes below the root."""
    has_any = set(heads)
    made: list[Nested | int] = [(tags[word], [word]) if word + 1 in has_any else word for word in range(len(heads))]
    top: list[int | Nested] = []
    for word, head in enumerate(heads):
        if head == 0:
            top.append(made[word])
        else:
            above = made[head - 1]
            assert isinstance(above, tuple)
            above[1].append(made[word])
    return top
