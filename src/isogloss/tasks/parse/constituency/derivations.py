"""From trees of a treebank to the derivations of a grammar in normal form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituent_forms import ABOVE, INSIDE, JOINT, Markov, binarised
from isogloss.data.constituents import Constituents
from isogloss.errors import ParameterError
from isogloss.structures.cfg import Grammar
from isogloss.structures.latent_cfg import LatentTrees
from isogloss.tasks.parse.constituency.trees import Labels

__all__ = ["Derivations", "Symbols"]

Ints = NDArray[np.int64]
PLAIN = Markov(horizontal=0)
SISTERS = "|"
"""Stands before the sisters that the label of an added node remembers."""


@dataclass(frozen=True, eq=False)
class Symbols:
    """The symbols of a grammar, tags first, and which labels of spans they and unary rules stand for.

    Parameters
    ----------
    tags : tuple of str
    others : tuple of str
        Labels of nodes, and, beginning with ``@``, of nodes that binarising has added.
    labels : int64[S]
        The label of a span over which a symbol was made and is seen, −1 for none.
    changes : int64[U]
        The label of a span with this unary rule.
    """

    tags: tuple[str, ...]
    others: tuple[str, ...]
    labels: Ints
    changes: Ints

    def __len__(self) -> int:
        return len(self.tags) + len(self.others)


@dataclass(frozen=True, eq=False)
class Derivations:
    """Trees as derivations of the grammar that they show.

    Parameters
    ----------
    symbols : Symbols
    rules : Grammar
    trees : LatentTrees
        Entries of the lexicon are those of `entries`.
    entries : int64[E, 2]
        The tag and the word, a number of the forms of the treebank, of each entry of the lexicon.
    """

    symbols: Symbols
    rules: Grammar
    trees: LatentTrees
    entries: Ints

    @classmethod
    def of(cls, flat: Constituents, labels: Labels, markov: Markov = PLAIN) -> Derivations:
        """Of trees without unary chains (`Labels.of`), made binary to the right, without memory of sisters.

        Another `markov` may remember sisters, or the label above: a symbol is then ``NP^S``, also inside of chains.
        """
        if markov.vertical > 2 or markov.tags:
            raise ParameterError("Derivations: symbols remember the label above at most, and tags nothing")
        if markov.horizontal != 0:
            flat = flat.mapped(lambda label: label.replace(SISTERS, "/"))
        trees = binarised(flat, markov)
        names, tags = trees.labels.vocabulary, trees.columns["tag"]
        used = [names[number] for number in np.unique(trees.labels.ids).tolist()]
        own_tags = tuple(sorted({tags.vocabulary[number] for number in np.unique(tags.ids).tolist()}))
        pieces = {name: _ends(name, markov.horizontal != 0) for name in used}
        others = tuple(sorted({symbol for ends in pieces.values() for symbol in ends}))
        number = {name: len(own_tags) + at for at, name in enumerate(others)}
        tag_of = {name: at for at, name in enumerate(own_tags)}
        builder = _Builder(
            seen={name: number[ends[0]] for name, ends in pieces.items()},
            made={name: number[ends[1]] for name, ends in pieces.items()},
        )
        starts = [0]
        for s in range(len(trees)):
            words = slice(*trees.offsets[s : s + 2].tolist())
            inside = slice(*trees.node_offsets[s : s + 2].tolist())
            builder.add(
                [names[k] for k in trees.labels.ids[inside].tolist()],
                trees.parents[inside].tolist(),
                trees.attached[words].tolist(),
                [tag_of[tags.vocabulary[k]] for k in tags.ids[words].tolist()],
                trees.columns["form"].ids[words].tolist(),
            )
            starts.append(len(builder.nodes))
        rules, changes = builder.grammar(len(own_tags) + len(others))
        known = {name.replace(SISTERS, "/") if markov.horizontal != 0 else name: at
                 for at, name in enumerate(labels.names)}  # fmt: skip
        bare = [-1] * len(own_tags) + [known.get(name.split(ABOVE)[0], -1) for name in others]
        joint = [known[name.split(ABOVE)[0]] for name in changes]
        symbols = Symbols(own_tags, others, np.array(bare, np.int64), np.array(joint, np.int64))
        nodes = np.array(builder.nodes, np.int64).reshape(-1, 6)
        entries = np.array(list(builder.entries), np.int64).reshape(-1, 2)
        return cls(symbols, rules, LatentTrees(np.array(starts, np.int64), nodes), entries)


def _ends(name: str, sisters: bool = False) -> tuple[str, str]:
    """The symbols that are seen and made of a node with a compound label, and perhaps that of the node above it.

    Examples
    --------
    >>> _ends("S+VP"), _ends("@S+VP"), _ends("S+VP^NP+NP"), _ends("@NP^S|DT", True)
    (('S', 'VP'), ('@VP', '@VP'), ('S^NP', 'VP^S'), ('@NP^S|DT', '@NP^S|DT'))
    """
    own, bar, memory = name.removeprefix(INSIDE).partition(SISTERS) if sisters else (name.removeprefix(INSIDE), "", "")
    first, *above = own.split(ABOVE)
    chain = first.split(JOINT)
    parents = [ABOVE + parent.split(JOINT)[-1] for parent in above]
    seen = chain[0] + "".join(parents)
    made = chain[-1] + (ABOVE + chain[-2] if above and len(chain) > 1 else "".join(parents))
    if name.startswith(INSIDE):
        inside = INSIDE + made + bar + memory
        return inside, inside
    return seen, made


class _Builder:
    """Derivations tree by tree; rules and entries are numbered as they come."""

    def __init__(self, seen: dict[str, int], made: dict[str, int]) -> None:
        self.seen, self.made = seen, made
        self.nodes: list[tuple[int, int, int, int, int, int]] = []
        self.binary: dict[tuple[int, int, int], int] = {}
        self.unary: dict[tuple[int, int], int] = {}
        self.entries: dict[tuple[int, int], int] = {}
        self.chains: Counter[tuple[tuple[int, int], str]] = Counter()

    def add(
        self, names: Sequence[str], parents: Sequence[int], attached: Sequence[int], tags: Sequence[int],
        forms: Sequence[int],
    ) -> None:  # fmt: skip
        """One tree: nodes in pre-order, and the node and the tag of each word."""
        below: list[list[tuple[int, int]]] = [[] for _ in names]  # where a child begins, and its number in the tree
        first = len(self.nodes)
        for word, node in enumerate(attached):
            entry = self.entries.setdefault((tags[word], forms[word]), len(self.entries))
            self.nodes.append((tags[word], tags[word], entry, -1, -1, -1))
            below[node].append((word, word))
        begins = [0] * len(names)
        for node in range(len(names) - 1, -1, -1):
            children = sorted(below[node])
            begins[node] = children[0][0]
            name = names[node]
            if len(children) == 1:  # a node above a word: the word's own node is seen by the name of the chain
                place = first + children[0][1]
                made = self.nodes[place][0]
                self.nodes[place] = (*self._changed(made, self.seen[name], name, self.nodes[place][2]), -1, -1)
                own = children[0][1]
            else:
                (_, left), (_, right) = children
                rule = (self.made[name], self.nodes[first + left][1], self.nodes[first + right][1])
                number = self.binary.setdefault(rule, len(self.binary))
                self.nodes.append((*self._changed(rule[0], self.seen[name], name, number), left, right))
                own = len(self.nodes) - 1 - first
            if parents[node] >= 0:
                below[parents[node]].append((begins[node], own))

    def _changed(self, made: int, seen: int, name: str, rule: int) -> tuple[int, int, int, int]:
        unary = -1
        if seen != made:
            unary = self.unary.setdefault((seen, made), len(self.unary))
            self.chains[(seen, made), name] += 1
        return made, seen, rule, unary

    def grammar(self, n_symbols: int) -> tuple[Grammar, list[str]]:
        """The rules, and the commonest label of each unary one."""
        binary = np.array(list(self.binary), np.int64).reshape(-1, 3)
        unary = np.array(list(self.unary), np.int64).reshape(-1, 2)
        best: dict[tuple[int, int], Any] = {}
        for (pair, name), count in sorted(self.chains.items(), key=lambda item: (-item[1], item[0])):
            best.setdefault(pair, (name, count))
        return Grammar(n_symbols, binary, unary), [best[pair][0] for pair in self.unary]
