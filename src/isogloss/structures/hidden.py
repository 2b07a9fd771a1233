"""`HiddenTrees`: labelled pairs of words beside trees that nobody annotated, which are summed out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import gathered, run_sums
from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, kept
from isogloss.structures.batch import Batch, One, Stack, run_sentences
from isogloss.structures.brackets import Bracketings
from isogloss.structures.projective_batch import ProjectiveTrees
from isogloss.structures.spanning import SpanningTrees
from isogloss.structures.spans import n_spans, spans_of

__all__ = ["NO_PAIR", "TREES", "UNKNOWN", "Couplings", "HiddenTree", "HiddenTrees", "link_number"]

Ints = NDArray[np.int64]
TREES = ("projective", "spanning", "brackets", "none")
"""Kinds of trees: links without crossings, any links, binary brackets, and no tree at all."""
NO_PAIR, UNKNOWN = -1, -2
"""In place of a label: a pair that is none, and one of which nothing is known. As `_numba.hidden` has them."""


def link_number(head: int, child: int, n: int) -> int:
    """The number of a link among the parts of a dependency tree over n words; node 0 is the root.

    Examples
    --------
    >>> link_number(0, 2, 3), link_number(3, 1, 3)
    (2, 13)
    """
    if not (0 <= head <= n and 1 <= child <= n and head != child):
        raise ParameterError(f"link_number: no tree over {n} words has a link from {head} to {child}")
    return head * (n + 1) + child


@dataclass(frozen=True, eq=False)
class Couplings:
    """Which pairs some sentences have, and which parts of their trees these are coupled to.

    Parameters
    ----------
    lengths, pairs : int64[n_sentences]
        Numbers of words, and of pairs.
    offsets : int64[n_sentences + 1]
        Connectors of sentence *s* are ``offsets[s] … offsets[s + 1] - 1``, those of a pair side by side.
    pair, cell : int64[n_connectors]
        The pair of each connector, and the part of the tree (`link_number`, or `span_number`), in its sentence.

    Examples
    --------
    >>> some = Couplings.of([(3, 2, [(0, link_number(1, 2, 3)), (1, link_number(3, 1, 3))]), (0, 0, [])])
    >>> some.lengths.tolist(), some.pairs.tolist(), some.cell.tolist()
    ([3, 0], [2, 0], [6, 13])
    """

    lengths: Ints
    pairs: Ints
    offsets: Ints
    pair: Ints
    cell: Ints

    @classmethod
    def of(cls, sentences: Iterable[tuple[int, int, Sequence[tuple[int, int]]]]) -> Couplings:
        """From the number of words, the number of pairs, and (pair, cell) of every connector of each sentence."""
        listed = list(sentences)
        both = np.array([link for *_, links in listed for link in links], np.int64).reshape(-1, 2)
        return cls(
            np.array([n for n, *_ in listed], np.int64),
            np.array([many for _, many, _ in listed], np.int64),
            np.cumsum([0, *(len(links) for *_, links in listed)]).astype(np.int64),
            np.ascontiguousarray(both[:, 0]),
            np.ascontiguousarray(both[:, 1]),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, items: Ints) -> Couplings:
        """Those of some sentences, in that order."""
        offsets, places = gathered(self.offsets, items)
        return Couplings(self.lengths[items], self.pairs[items], offsets, self.pair[places], self.cell[places])

    def n_cells(self, tree: str) -> Ints:
        """int64[n_sentences]: how many parts trees of a kind have."""
        if tree == "none":
            return np.zeros(len(self), np.int64)
        sizes = self.lengths * (self.lengths + 1) // 2 if tree == "brackets" else (self.lengths + 1) ** 2
        return np.asarray(sizes, np.int64)

    def sizes(self, tree: str, n_labels: int) -> Ints:
        """int64[n_sentences]: how many scores sentences have."""
        return np.asarray(self.pairs * (1 + n_labels) + np.diff(self.offsets) + self.n_cells(tree), np.int64)

    def check(self, tree: str) -> None:
        """`ParameterError` unless every connector is of a pair and a part that there are, and none clash."""
        from isogloss.structures._numba.hidden import shared_pair

        place, counts = "Couplings", np.diff(self.offsets)
        if len(self.offsets) != len(self) + 1 or self.offsets[-1] != len(self.pair) or len(self.pair) != len(self.cell):
            raise ParameterError(f"{place}: offsets, pairs and cells do not fit together; make them with Couplings.of")
        cells, which = self.n_cells(tree), np.repeat(np.arange(len(self)), counts)
        lost = (self.pair < 0) | (self.pair >= self.pairs[which]) | (self.cell < 0) | (self.cell >= cells[which])
        if lost.any():
            c = int(np.flatnonzero(lost)[0])
            s = int(which[c])
            raise ParameterError(
                f"{place}: a connector of sentence {s} has pair {self.pair[c]} of {self.pairs[s]} and part "
                f"{self.cell[c]} of {cells[s]}, that is, one that there is not"
            )
        falling = (np.diff(self.pair) < 0) & (np.diff(which) == 0)
        if falling.any():
            s = int(which[np.flatnonzero(falling)[0]])
            raise ParameterError(f"{place}: connectors of sentence {s} should be in the order of their pairs")
        s, c, d = shared_pair(self.offsets, self.pair, self.cell, self.lengths, tree == "brackets")
        if s >= 0:
            raise ParameterError(
                f"{place}: pair {self.pair[c]} of sentence {s} is coupled to parts {self.cell[c]} and {self.cell[d]}, "
                "which one tree can have together; parts of a pair should exclude each other"
            )


class HiddenTrees(Batch[Ints]):
    r"""Pairs of words that have a label or none, and a hidden tree that speaks for or against each pair.

    .. math:: p(\ell, z) \propto \exp \Big( \sum_{(h, m) \in z} tree[h, m]
        + \sum_{p: \ell_p \ne none} pair[p] + label[p, \ell_p] + \sum_{c = (p, z_c): z_c \in z} connector[c] \Big)

    where z is a tree and every pair p is true with one label, or is none. Scores of a sentence are one vector: pair[P],
    label[P, L], connector[C], then those of all parts of the tree; −∞ forbids.

    Given the tree, pairs are independent of each other, so that labels are summed first, and trees by the usual
    programs, once [1]_. With :math:`A_p = e^{pair_p} \sum_\ell e^{label_{p\ell}}`, connectors :math:`\delta_c` and
    parts of trees :math:`\omega_c` as weights:

    .. math:: \log Z = \sum_p \log(1 + A_p) + \log Z_{tree}\Big(\omega_c \prod_{p \sim c}
        \frac{1 + A_p \delta_c}{1 + A_p}\Big) \qquad
        P(p) = \sum_c \mu_c \frac{A\delta_c}{1 + A\delta_c} + \Big(1 - \sum_c \mu_c\Big) \frac{A}{1 + A}

    Parameters
    ----------
    scores : Stack
        One vector for each sentence.
    couplings : Couplings
        A pair may have several connectors if the parts that they are coupled to exclude each other, such as the two
        directions of a link; a part may have connectors to several pairs.
    n_labels : int
    tree : "projective", "spanning", "brackets" or "none"
        Parts of trees are links [n+1, n+1] (head, child) with node 0 as the root, or spans as numbered by `spans_of`.
    single_root : bool
        Whether the root has exactly one child; not looked at for brackets.
    at_most_one : bool
        Whether a pair may be true without a label.

    Notes
    -----
    Everything is exact, in the time of one sum over trees. A structure is one vector of whole numbers: the label of
    each pair (`NO_PAIR`, −1, for none; `n_labels` for a pair without a label), then the head of each word, or for
    brackets 1 or 0 for each span. `split` takes it apart. `given` says what is known of labels, of trees, or of both.

    References
    ----------
    .. [1] Naradowsky, Riedel and Smith, Improving NLP through marginalization of hidden syntactic structure, EMNLP
       2012, whose belief propagation is exact here; the closed form is ours.

    Examples
    --------
    Two words, one pair with two labels, coupled to the link from word 1 to word 2; two trees, and three choices each.

    >>> couplings = Couplings.of([(2, 1, [(0, link_number(1, 2, 2))])])
    >>> many = HiddenTrees.of([np.zeros(1 + 2 + 1 + 9)], couplings, 2)
    >>> round(float(np.exp(many.log_partition()[0])), 9)
    6.0
    >>> scores = np.zeros(13); scores[3] = np.log(4.0)                          # the connector
    >>> dist = HiddenTrees.of([scores], couplings, 2)[0]
    >>> dist.marginals()[[0, 3]].round(3).tolist()                              # of 3 + 9, with the pair: 2 + 8
    [0.833, 0.667]
    >>> dist.split(dist.argmax())
    (array([0]), array([0, 1]))
    """

    def __init__(
        self,
        scores: Stack,
        couplings: Couplings,
        n_labels: int,
        *,
        tree: str = "projective",
        single_root: bool = True,
        at_most_one: bool = False,
    ) -> None:
        if tree not in TREES:
            raise ParameterError(f"HiddenTrees: tree should be one of {', '.join(TREES)}, not {tree!r}")
        couplings.check(tree)
        self.couplings, self.n_labels, self.tree = couplings, n_labels, tree
        self.single_root, self.at_most_one = bool(single_root), bool(at_most_one)
        self._labels: Ints | None = None
        self._trees: NDArray[np.bool_] | None = None
        if not np.array_equal(np.diff(scores.offsets), couplings.sizes(tree, n_labels)):
            raise ParameterError(
                "HiddenTrees: scores should have pairs, labels of pairs, connectors and parts of the tree of every "
                "sentence"
            )
        self.scores = scores.checked("HiddenTrees: scores")

    @classmethod
    def of(cls, scores: Iterable[ArrayLike], couplings: Couplings, n_labels: int, **options: Any) -> HiddenTrees:
        """From one vector of scores for each sentence."""
        return cls(Stack.of(scores, "HiddenTrees: scores", 1), couplings, n_labels, **options)

    def _like(self, scores: Stack, couplings: Couplings, labels: Ints | None, trees: NDArray[np.bool_] | None) -> Self:
        other = object.__new__(type(self))
        other.couplings, other.n_labels, other.tree = couplings, self.n_labels, self.tree
        other.single_root, other.at_most_one = self.single_root, self.at_most_one
        other._labels, other._trees, other.scores = labels, trees, scores
        return other

    def __getitem__(self, s: int) -> HiddenTree:
        return HiddenTree(self._take(np.array([range(len(self))[s]])))

    def _remake(self, scores: Stack) -> Self:
        return self._like(scores, self.couplings, self._labels, self._trees)

    def _take(self, items: Ints) -> Self:
        labels = None if self._labels is None else self._labels[gathered(self._starts, items)[1]]
        trees = None if self._trees is None else self._trees[gathered(self._cells, items)[1]]
        return self._like(self.scores.take(items), self.couplings.take(items), labels, trees)

    # --- layout

    @cached_property
    def _starts(self) -> Ints:
        """int64[n_sentences + 1]: where the pairs of each sentence begin."""
        return np.concatenate([[0], np.cumsum(self.couplings.pairs)]).astype(np.int64)

    @cached_property
    def _cells(self) -> Ints:
        """int64[n_sentences + 1]: where the parts of each tree begin."""
        return np.concatenate([[0], np.cumsum(self.couplings.n_cells(self.tree))]).astype(np.int64)

    @cached_property
    def _known(self) -> Ints:
        return np.full(int(self._starts[-1]), UNKNOWN, np.int64) if self._labels is None else self._labels

    def _layout(self, *best: bool) -> tuple[Any, ...]:
        values, own = self.scores.values.view(), self.couplings
        values.flags.writeable = False  # so that kernels are compiled for one type
        layout = (values, self.scores.offsets, own.pairs, self.n_labels, self._starts, own.offsets, own.pair, own.cell)
        return (*layout, self.at_most_one, self._known, *best, self._cells)

    # --- what is known

    def given(self, labels: Sequence[ArrayLike] | None = None, trees: Sequence[Any] | None = None) -> Self:
        """The distributions of what agrees with what is known, with the scores that it has here.

        Parameters
        ----------
        labels : sequence of int[n_pairs], optional
            For each sentence the label of every pair, `NO_PAIR` or `UNKNOWN`.
        trees : sequence, optional
            For each sentence heads, or a set of spans; taken as they are, whether or not they are trees of this kind.
        """
        known, cells = self._labels, self._trees
        if labels is not None:
            known = np.concatenate([np.zeros(0, np.int64), *(np.asarray(own, np.int64) for own in labels)])
            most = self.n_labels if self.at_most_one else self.n_labels - 1
            if len(labels) != len(self) or [len(np.ravel(own)) for own in labels] != self.couplings.pairs.tolist():
                raise ParameterError(f"{self!r}: labels should be given for every pair of every sentence")
            if known.size and not UNKNOWN <= known.min() <= known.max() <= most:
                raise ParameterError(f"{self!r}: labels are numbers from {UNKNOWN} (not known) to {most}")
        if trees is not None:
            cells = np.zeros(int(self._cells[-1]), bool)
            for s, own in enumerate(self._one_each(trees)):
                cells[self._cells[s] : self._cells[s + 1]] = self._tree_parts(s, own)
        return self._like(self.scores, self.couplings, known, cells)

    def _tree_parts(self, s: int, tree: Any) -> NDArray[np.bool_]:
        """bool[n_cells]: which parts a tree of sentence *s* has."""
        n, out = int(self.couplings.lengths[s]), np.zeros(int(np.diff(self._cells)[s]), bool)
        if self.tree == "none":
            return out
        if self.tree == "brackets":
            ends = np.array(sorted(tree), np.int64).reshape(-1, 2)
            if ((ends < 0) | (ends > n)).any() or (ends[:, 0] >= ends[:, 1]).any():
                raise ParameterError(f"{self!r}: the tree of sentence {s} has brackets outside of it: {tree!r}")
            shorter = ends[:, 1] - ends[:, 0] - 1
            out[shorter * n - shorter * (shorter - 1) // 2 + ends[:, 0]] = True
            return out
        heads = np.asarray(tree, np.int64)
        if heads.shape != (n,) or (n and not 0 <= heads.min() <= heads.max() <= n):
            raise ParameterError(f"{self!r}: a tree is {n} heads from 0 to {n}, one a word, not {tree!r}")
        out[heads * (n + 1) + np.arange(1, n + 1)] = True
        return out

    def clamp(self, structures: Sequence[Any]) -> Self:
        """The distributions in which these structures alone are allowed, one for each sentence."""
        both = [self.split(s, y) for s, y in enumerate(self._one_each(structures))]
        return self.given([labels for labels, _ in both], [tree for _, tree in both])

    # --- sums

    def trees(self) -> Any:
        """The distributions of the trees alone, with labels summed out: a batch of `ProjectiveTrees`, say."""
        return self._weighed(False)[2]

    def _weighed(self, best: bool) -> tuple[Array, Array, Any]:
        """log A of each pair, Σ log(1 + A) of each sentence, and the trees that are left to sum."""
        from isogloss.structures._numba.hidden import weigh

        weights, values = np.empty(int(self._starts[-1])), np.empty(len(self))
        tree = np.empty(int(self._cells[-1]))
        run_sentences(weigh, len(self), *self._layout(best), weights, values, tree)
        n = self.couplings.lengths
        rank = 1 if self.tree == "brackets" else 2
        shapes = np.diff(self._cells)[:, None] if rank == 1 else np.stack([n + 1, n + 1], axis=1)
        stack = Stack(kept(tree), self._cells, shapes)
        if self._trees is not None or self.tree == "none":
            return weights, values, stack
        if self.tree == "brackets":
            return weights, values, Bracketings(stack)
        many = ProjectiveTrees if self.tree == "projective" else SpanningTrees
        return weights, values, many(stack, single_root=self.single_root)

    def _solve(self) -> tuple[Array, Stack]:
        from isogloss.structures._numba.hidden import spread

        weights, values, trees = self._weighed(False)
        if isinstance(trees, Stack):
            held = self._held()
            total, tree = run_sums(np.where(held, trees.values, 0.0), self._cells), held.astype(np.float64)
        else:
            total, tree = trees.log_partition(), trees.marginals().values
        out = np.empty(len(self.scores.values))
        run_sentences(spread, len(self), *self._layout(), weights, np.asarray(tree, np.float64), out)
        return values + total, self.scores.like(out)

    def _held(self) -> NDArray[np.bool_]:
        """Parts of the trees that are known, or of none."""
        return np.zeros(0, bool) if self._trees is None or self.tree == "none" else self._trees

    def _refuse_infeasible(self, values: Array) -> None:
        if (values == -np.inf).any():
            first = int(np.flatnonzero(values == -np.inf)[0])
            raise InfeasibleError(
                f"sentence {first}: {self!r} allows nothing: what is known of it is forbidden by a score of -inf. Give "
                "its parts finite scores"
            )

    # --- structures

    def argmax(self) -> list[Ints]:
        """The best labels and tree of each sentence together."""
        _, values, trees = self._weighed(True)
        if isinstance(trees, Stack):
            held = self._held().astype(np.float64)
            self._refuse_infeasible(values + run_sums(np.where(held > 0, trees.values, 0.0), self._cells))
        else:
            self._refuse_infeasible(values)
            held = trees.parts(trees.argmax()).values
        return self._joined(self._chosen(held, np.zeros(0)), held)

    def sample(self, rng: np.random.Generator) -> list[Ints]:
        """Labels and a tree for each sentence; the same numbers are drawn as by one sentence after the other."""
        if len(self) != 1:
            return [self._take(np.array([s])).sample(rng)[0] for s in range(len(self))]
        self.log_partition()
        _, _, trees = self._weighed(False)
        if isinstance(trees, Stack):
            held = self._held().astype(np.float64)
        else:
            held = trees.parts(trees.sample(rng)).values
        return self._joined(self._chosen(held, rng.random(int(self._starts[-1]))), held)

    def _chosen(self, held: Array, u: Array) -> Ints:
        """int64[n_pairs]: the best labels below trees that have these parts; drawn ones, with numbers to draw by."""
        from isogloss.structures._numba.hidden import label_pairs

        out = np.empty(int(self._starts[-1]), np.int64)
        best = not len(u)
        run_sentences(label_pairs, len(self), *self._layout(best), np.asarray(held, np.float64), u, out)
        return out

    def _joined(self, labels: Ints, held: Array) -> list[Ints]:
        """Labels and trees in one vector for each sentence."""
        found = []
        for s, n in enumerate(self.couplings.lengths.tolist()):
            tree = held[self._cells[s] : self._cells[s + 1]] > 0
            if self.tree in ("projective", "spanning"):
                tree = tree.reshape(n + 1, n + 1)[:, 1:].argmax(axis=0)
            found.append(np.concatenate([labels[self._starts[s] : self._starts[s + 1]], tree]).astype(np.int64))
        return found

    def split(self, s: int, y: ArrayLike) -> tuple[Ints, Any]:
        """Labels of pairs and the tree, heads or a set of spans, of a structure of sentence *s*."""
        whole, n, many = np.asarray(y), int(self.couplings.lengths[s]), int(self.couplings.pairs[s])
        rest = {"none": 0, "brackets": n_spans(n)}.get(self.tree, n)
        if whole.shape != (many + rest,) or (whole.size and whole.dtype.kind not in "iu"):
            raise ParameterError(f"{self!r}: a structure of sentence {s} is {many + rest} whole numbers, not {y!r}")
        whole = whole.astype(np.int64)
        if self.tree != "brackets":
            return whole[:many], whole[many:]
        return whole[:many], frozenset((int(i), int(j)) for i, j in spans_of(n)[whole[many:] > 0].tolist())

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of one structure for each sentence, laid out as `scores`."""
        out = self.scores.like(np.zeros(len(self.scores.values)))
        for s, y in enumerate(self._one_each(structures)):
            labels, tree = self.split(s, y)
            own, many, cells = out[s], len(labels), self._tree_parts(s, tree)
            if labels.size and not NO_PAIR <= labels.min() <= labels.max() < self.n_labels + self.at_most_one:
                raise ParameterError(
                    f"{self!r}: labels of sentence {s} should be from {NO_PAIR} to {self.n_labels - 1}"
                )
            own[:many] = labels >= 0
            named = np.flatnonzero((labels >= 0) & (labels < self.n_labels))
            own[many + named * self.n_labels + labels[named]] = 1.0
            here = slice(*self.couplings.offsets[s : s + 2].tolist())
            first = many * (1 + self.n_labels)
            both = (labels[self.couplings.pair[here]] >= 0) & cells[self.couplings.cell[here]]
            own[first : first + len(both)] = both
            own[first + len(both) :] = cells
        return out

    def from_parts(self, parts: Stack | Iterable[ArrayLike]) -> list[Ints]:
        """The structures that have these parts, one vector for each sentence; the inverse of `parts`."""
        found = []
        for s, own in enumerate(self._one_each(list(parts))):
            vector, many = np.asarray(own, np.float64), int(self.couplings.pairs[s])
            if vector.shape != self.scores[s].shape:
                raise ParameterError(f"{self!r}: parts of sentence {s} should be {list(self.scores[s].shape)}")
            rows = vector[many : many * (1 + self.n_labels)].reshape(many, self.n_labels)
            labels = np.where(rows.any(axis=1), rows.argmax(axis=1), self.n_labels) if self.n_labels else np.zeros(many)
            labels = np.where(vector[:many] > 0, labels, NO_PAIR)
            one = self._take(np.array([s]))
            found += one._joined(labels.astype(np.int64), vector[len(vector) - int(one._cells[-1]) :])
        return found


class HiddenTree(One[Ints]):
    """A sentence of `HiddenTrees`, with the methods of a single structure."""

    batch: HiddenTrees

    def __repr__(self) -> str:
        own = self.batch.couplings
        return f"HiddenTree(n={own.lengths[0]}, {own.pairs[0]} pairs, tree={self.batch.tree!r})"

    def split(self, y: ArrayLike) -> tuple[Ints, Any]:
        """Labels of pairs, and the tree: heads, or a set of spans."""
        return self.batch.split(0, y)

    def score(self, y: Any) -> float:
        """Log score of a structure, not normalised; −∞ where it is no tree, or not what is known."""
        labels, tree = self.split(y)
        many, known = self.batch, self.batch._known
        held = many._tree_parts(0, tree)
        if ((known != UNKNOWN) & (known != labels)).any() or (many._trees is not None and (many._trees != held).any()):
            return -np.inf
        if many._trees is None and many.tree != "none" and not many.trees()[0]._is_tree(tree):
            return -np.inf
        return super().score(y)

    def clamp(self, y: Any) -> Self:
        """The distribution in which `y` alone is allowed, with the score it has here."""
        return type(self)(self.batch.clamp([y]))
