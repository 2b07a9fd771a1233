"""`ValenceGrammar`: the probabilities of a dependency grammar over tags, and trees under it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.layout import Layout, Numbers
from isogloss.structures import Stack, ValenceTrees

__all__ = ["Events", "TagText", "ValenceGrammar"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class TagText:
    """Sentences as numbers of tags, and where the parts of their trees stand in the tables of a grammar.

    Parameters
    ----------
    tags : int[n_words]
        From 0 to `n_tags` − 1.
    offsets : int64[n_sentences + 1]
    n_tags : int

    Examples
    --------
    >>> text = TagText([0, 1, 1], [0, 2, 3], 2)
    >>> len(text), text.link_offsets.tolist(), text.side[:9].tolist()
    (2, [0, 9, 13], [0, 1, 1, 0, 0, 1, 0, 0, 0])
    """

    def __init__(self, tags: ArrayLike, offsets: ArrayLike, n_tags: int) -> None:
        self.tags, self.offsets, self.n_tags = np.asarray(tags, np.int64), np.asarray(offsets, np.int64), n_tags
        ends = self.offsets
        if ends.ndim != 1 or not len(ends) or ends[0] or (np.diff(ends) < 0).any() or ends[-1] != len(self.tags):
            raise ParameterError(f"TagText: offsets should rise from 0 to {len(self.tags)}, the number of words")
        if len(self.tags) and not 0 <= self.tags.min() <= self.tags.max() < n_tags:
            raise ParameterError(f"TagText: tags should be from 0 to {n_tags - 1}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, start: int, stop: int) -> TagText:
        """Sentences start … stop − 1."""
        first, last = self.offsets[start], self.offsets[stop]
        return TagText(self.tags[first:last], self.offsets[start : stop + 1] - first, self.n_tags)

    def sentences(self) -> list[Integers]:
        """The tags of each sentence."""
        return np.split(self.tags, self.offsets[1:-1]) if len(self) else []

    @property
    def sizes(self) -> Integers:
        """int64[n_sentences]: words and the root."""
        return np.diff(self.offsets) + 1

    def of_nodes(self, values: Integers) -> Integers:
        """int64[n_words + n_sentences]: what words have, for each node; 0 for the roots."""
        found = np.zeros(len(self.tags) + len(self), np.int64)
        found[np.arange(len(self.tags)) + np.repeat(np.arange(1, len(self) + 1), self.sizes - 1)] = values
        return found

    @cached_property
    def nodes(self) -> Integers:
        """int64[n_words + n_sentences]: the tag of each node, 0 for the roots, which no part reads."""
        return self.of_nodes(self.tags)

    @cached_property
    def link_offsets(self) -> Integers:
        """int64[n_sentences + 1]: where the links of each sentence begin."""
        return np.concatenate([[0], np.cumsum(self.sizes**2)]).astype(np.int64)

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The head and the child of each link, as nodes of their sentence."""
        size = np.repeat(self.sizes, self.sizes**2)
        at = np.arange(self.link_offsets[-1]) - np.repeat(self.link_offsets[:-1], self.sizes**2)
        return at // np.maximum(size, 1), at % np.maximum(size, 1)

    @property
    def distances(self) -> Integers:
        """int64[n_links]: of head and child, in words."""
        return np.asarray(np.abs(self.ends[0] - self.ends[1]))

    @property
    def from_root(self) -> NDArray[np.bool_]:
        """bool[n_links]: whether the head is the root and the child a word."""
        return np.asarray((self.ends[0] == 0) & (self.ends[1] > 0))

    @property
    def between_words(self) -> NDArray[np.bool_]:
        """bool[n_links]: whether head and child are two words."""
        head, child = self.ends
        return np.asarray((head > 0) & (child > 0) & (head != child))

    @property
    def side(self) -> Integers:
        """int64[n_links]: 1 where the child is to the right of the head."""
        return (self.ends[1] > self.ends[0]).astype(np.int64)

    def at_ends(self, nodes: Integers) -> tuple[Integers, Integers]:
        """What head and child of each link have, of what nodes have."""
        first = np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes**2)
        return nodes[first + self.ends[0]], nodes[first + self.ends[1]]

    @cached_property
    def link_tags(self) -> tuple[Integers, Integers]:
        """The tags of head and child of each link; 0 for the root."""
        return self.at_ends(self.nodes)

    @cached_property
    def _pairs(self) -> Integers:
        """int64[n_links]: (tag of the head, side) of each link, as a number."""
        return self.link_tags[0] * 2 + self.side

    def child_cells(self, valences: int) -> Integers:
        """int64[n_links · V_c]: where each child stands in a table [k, 2, V_c, k]."""
        first = self._pairs[:, None] * valences + np.arange(valences)
        return np.asarray(first * self.n_tags + self.link_tags[1][:, None]).reshape(-1)

    def stop_cells(self, valences: int) -> Integers:
        """int64[n_nodes · 4 V_s]: where each decision stands in a table [k, 2, V_s, 2]."""
        return (self.nodes[:, None] * (4 * valences) + np.arange(4 * valences)).reshape(-1)

    def stacks(self, links: Array, stops: Array, children: Array, classes: tuple[int, int]) -> tuple[Stack, ...]:
        """Scores of all parts, as `ValenceTrees` takes them."""
        stop_valences, child_valences = classes
        size, starts = self.sizes, np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        of = np.ones_like(size)
        shapes = (
            np.stack([size, size], axis=1),
            np.stack([size, 2 * of, stop_valences * of, 2 * of], axis=1),
            np.stack([size, size, child_valences * of], axis=1),
        )
        offsets = (self.link_offsets, starts * (4 * stop_valences), self.link_offsets * child_valences)
        return tuple(map(Stack, (links, stops, children), offsets, shapes))


@dataclass(eq=False)
class Events:
    """How often each decision of a grammar is expected; adds up by ``+=``.

    root : float64[k]
    stop : float64[k, 2, V_s, 2]
    child : float64[k, 2, V_c, k]
    """

    root: Array
    stop: Array
    child: Array

    @classmethod
    def none(cls, n_tags: int, classes: tuple[int, int]) -> Events:
        """Nothing counted yet."""
        return cls(np.zeros(n_tags), np.zeros((n_tags, 2, classes[0], 2)), np.zeros((n_tags, 2, classes[1], n_tags)))

    @classmethod
    def of(cls, text: TagText, trees: ValenceTrees, classes: tuple[int, int]) -> Events:
        """What distributions over the trees of a text expect."""
        from_root, k = text.from_root, text.n_tags
        root = _summed(text.link_tags[1][from_root], trees.marginals().values[from_root], (k,))
        stop = _summed(text.stop_cells(classes[0]), trees.stop_marginals().values, (k, 2, classes[0], 2))
        child = _summed(text.child_cells(classes[1]), trees.child_marginals().values, (k, 2, classes[1], k))
        return cls(root, stop, child)

    def levelled(self) -> Events:
        """The same numbers of children for each pair of tags, and for each valence, but neither tells of the other.

        To begin with: a grammar whose classes of valence have different children from the first step on settles at once
        on what the start says of distance.
        """
        cells = self.child.sum(axis=3)
        share = np.divide(cells, cells.sum(axis=2, keepdims=True), out=np.zeros_like(cells), where=cells > 0)
        return Events(self.root, self.stop, share[..., None] * self.child.sum(axis=2)[:, :, None, :])

    def __iadd__(self, other: Events) -> Events:
        self.root, self.stop, self.child = self.root + other.root, self.stop + other.stop, self.child + other.child
        return self


@dataclass(frozen=True, eq=False)
class ValenceGrammar:
    r"""A dependency model with valence over tags 0 … k − 1, with a back-off for children.

    .. math:: p(x, y) = p_{root}(r) \prod_{h \to m} p_{stop}(0 \mid h, d, v)\, p_{child}(m \mid h, d, v)
        \prod_h \prod_d p_{stop}(1 \mid h, d, k_{hd}), \qquad
        p_{child} = \lambda\, p(m \mid h, d, v) + (1 - \lambda)\, p(m \mid d, v)

    Parameters
    ----------
    root : float64[k]
    stop : float64[k, 2, V_s, 2]
        (head, side, valence, decision): go on (0) or stop (1).
    child : float64[k, 2, V_c, k]
        (head, side, valence, child).
    back : float64[2, V_c, k]
        (side, valence, child).
    back_off : float
        λ; 1 for none.
    nearest_first : bool
        As for `ValenceTree`.

    Examples
    --------
    >>> grammar = ValenceGrammar(np.array([0.5, 0.5]), np.full((2, 2, 2, 2), 0.5), np.full((2, 2, 1, 2), 0.5),
    ...                          np.full((2, 1, 2), 0.5))
    >>> trees = grammar.trees(TagText([0, 1, 0], [0, 3], 2))
    >>> round(float(np.exp(trees.log_partition()[0])), 9), trees.argmax()[0].tolist()
    (0.003417969, [2, 0, 2])
    """

    root: Array
    stop: Array
    child: Array
    back: Array
    back_off: float = 1.0
    nearest_first: bool = True

    LAYOUT: ClassVar[Layout] = {
        "root": Numbers("float64", ("k",), least=0.0),
        "stop": Numbers("float64", ("k", 2, "s", 2), least=0.0),
        "child": Numbers("float64", ("k", 2, "c", "k"), least=0.0),
        "back": Numbers("float64", (2, "c", "k"), least=0.0),
    }

    @property
    def n_tags(self) -> int:
        return len(self.root)

    @property
    def classes(self) -> tuple[int, int]:
        """V_s and V_c."""
        return self.stop.shape[2], self.child.shape[2]

    @property
    def children(self) -> Array:
        """float64[k, 2, V_c, k]: probabilities of children, back-off included."""
        return self.back_off * self.child + (1 - self.back_off) * self.back

    def trees(self, text: TagText) -> ValenceTrees:
        """The trees of each sentence; log Z is log p(x)."""
        if text.n_tags != self.n_tags:
            raise ParameterError(f"ValenceGrammar: {self.n_tags} tags, but the text has {text.n_tags}")
        with np.errstate(divide="ignore"):
            root, stop, child = np.log(self.root), np.log(self.stop), np.log(self.children)
        links = np.where(text.from_root, root[text.link_tags[1]], 0.0)
        stops = stop.reshape(-1)[text.stop_cells(self.classes[0])]
        children = child.reshape(-1)[text.child_cells(self.classes[1])]
        return ValenceTrees(*text.stacks(links, stops, children, self.classes), nearest_first=self.nearest_first)

    def smoothed(self, amount: float) -> ValenceGrammar:
        """For parsing: `amount` added to every probability, and one more tag, number k, for those never seen.

        A tag never seen decides as tags do on average, and is as rare a child as can be.
        """
        stop = np.concatenate([self.stop, self.stop.mean(axis=0, keepdims=True)])
        child = np.concatenate([self.child, self.child.mean(axis=0, keepdims=True)])
        return ValenceGrammar(
            np.append(self.root, 0.0) + amount,
            stop + amount,
            _with_zero(child) + amount,
            _with_zero(self.back) + amount,
            self.back_off,
            self.nearest_first,
        )


def _summed(cells: Integers, values: Array, shape: tuple[int, ...]) -> Array:
    """What the cells of a table add up to."""
    return np.bincount(cells, values, int(np.prod(shape))).astype(np.float64, copy=False).reshape(shape)


def _with_zero(table: Array) -> Array:
    """One more outcome, of probability 0."""
    return np.concatenate([table, np.zeros((*table.shape[:-1], 1))], axis=-1)
