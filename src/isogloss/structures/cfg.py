"""`Cfg`: trees of a weighted grammar in normal form, with unary rules; `Cfgs`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, expected
from isogloss.structures.batch import One, ProgramBatch, Stack, run_sentences
from isogloss.structures.semiring import Log, Semiring
from isogloss.structures.spans import n_spans, n_words, span_number, spans_of

__all__ = ["Cfg", "CfgParts", "Cfgs", "Derivation", "Grammar"]

Derivation = frozenset[tuple[int, int, int, int]]
"""A tree: for each node where it begins and ends, the symbol that the node above sees, and the one that was made."""
Ints = NDArray[np.int64]
NEGLIGIBLE = 1e-14
"""Symbols over spans with less posterior are not followed further down."""


class CfgParts(NamedTuple):
    """The parts of the trees of a sentence, or numbers for them, by their kinds.

    binary : float64[R]
        Each binary rule, however often it is used.
    unary : float64[U]
        Each unary rule.
    inner : float64[n_spans, S]
        A symbol over a span, as a binary rule or a word makes it: scores of words and tags are those of single words.
    outer : float64[n_spans, S]
        A symbol over a span, as the rule above sees it: after a unary rule, or the same; [0, S] without unary rules.
    """

    binary: Array
    unary: Array
    inner: Array
    outer: Array


class _Sorted(NamedTuple):
    """Rules in the orders in which kernels walk through them."""

    pairs: tuple[Ints, ...]
    parents: tuple[Ints, ...]


@dataclass(frozen=True, eq=False)
class Grammar:
    """The rules of a grammar, without their scores: A → B C and A → B, symbols as numbers.

    Parameters
    ----------
    n_symbols : int
    binary : int64[R, 3]
        The symbols A, B and C of each rule.
    unary : int64[U, 2], optional
        The symbols A and B, which differ. A span has at most one of these rules above the symbol that was made.

    Examples
    --------
    >>> grammar = Grammar(2, [[0, 0, 0], [0, 0, 1]])
    >>> grammar.n_parts(3), grammar.length_of(14)
    (14, 3)
    """

    n_symbols: int
    binary: Ints
    unary: Ints

    def __init__(self, n_symbols: int, binary: ArrayLike, unary: ArrayLike | None = None) -> None:
        set_ = object.__setattr__
        set_(self, "n_symbols", int(n_symbols))
        set_(self, "binary", self._rules(binary, 3))
        set_(self, "unary", self._rules(np.zeros((0, 2), np.int64) if unary is None else unary, 2))
        if (self.unary[:, 0] == self.unary[:, 1]).any():
            raise ParameterError("Grammar: a unary rule makes a symbol of itself; leave it out")

    def _rules(self, rules: ArrayLike, wide: int) -> Ints:
        given = np.asarray(rules)
        found = np.array(given, np.int64).reshape(-1, wide) if given.size % wide == 0 else None
        if found is None or (given.size and given.dtype.kind not in "iu"):
            raise ParameterError(f"Grammar: rules should be integers in {wide} columns, not {list(given.shape)}")
        if found.size and not (found.min() >= 0 and found.max() < self.n_symbols):
            raise ParameterError(f"Grammar: symbols are numbers from 0 to {self.n_symbols - 1}")
        if len(np.unique(found, axis=0)) < len(found):
            raise ParameterError("Grammar: a rule is given twice; add up the probabilities of both")
        found.flags.writeable = False
        return found

    def __repr__(self) -> str:
        return f"Grammar({self.n_symbols} symbols, {len(self.binary)} binary and {len(self.unary)} unary rules)"

    @property
    def _layers(self) -> int:
        return 2 if len(self.unary) else 1

    def n_parts(self, n: int) -> int:
        """How many scores a sentence of n words has."""
        return len(self.binary) + len(self.unary) + self._layers * n_spans(n) * self.n_symbols

    def length_of(self, n_parts: int) -> int:
        """The number of words of a sentence with so many scores, or −1 if there is none."""
        cells = n_parts - len(self.binary) - len(self.unary)
        step = self._layers * self.n_symbols
        return n_words(cells // step) if cells >= 0 and step and cells % step == 0 else -1

    def split(self, vector: Array) -> CfgParts:
        """A vector over the parts of a sentence by kinds; views, not copies.

        Examples
        --------
        >>> Grammar(2, [[0, 0, 1]]).split(np.arange(7.0)).inner.tolist()
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        """
        first, second = len(self.binary), len(self.binary) + len(self.unary)
        cells = vector[second:].reshape(self._layers, -1, self.n_symbols)
        return CfgParts(vector[:first], vector[first:second], cells[0], cells[1] if len(cells) > 1 else cells[0][:0])

    def scores(
        self,
        n: int,
        binary: ArrayLike = 0.0,
        unary: ArrayLike = 0.0,
        inner: ArrayLike = 0.0,
        outer: ArrayLike = 0.0,
    ) -> Array:
        """The scores of a sentence of n words as one vector; what is not given is 0, and one number does for all.

        Examples
        --------
        >>> Grammar(1, [[0, 0, 0]]).scores(2, binary=-1.0, inner=[[0.5], [0.25], [0.0]]).tolist()
        [-1.0, 0.5, 0.25, 0.0]
        """
        vector = np.empty(self.n_parts(n))
        for place, given in zip(self.split(vector), (binary, unary, inner, outer), strict=True):
            try:
                place[...] = np.asarray(given, np.float64)
            except ValueError as finding:
                raise ParameterError(
                    f"{self!r}: {finding}; a sentence of {n} words has {list(place.shape)}"
                ) from finding
        return vector

    def part(self, symbols: ArrayLike) -> tuple[Grammar, Ints]:
        """The rules among some symbols, which are numbered anew in their order; and what numbers these rules have here.

        Parameters
        ----------
        symbols : int64[n]
            Ascending.

        Examples
        --------
        >>> grammar = Grammar(3, [[0, 1, 1], [0, 2, 2], [2, 2, 0]], [[0, 1], [2, 0]])
        >>> some, numbers = grammar.part([0, 2])
        >>> some.binary.tolist(), some.unary.tolist(), numbers.tolist()
        ([[0, 1, 1], [1, 1, 0]], [[1, 0]], [1, 2, 4])
        """
        chosen = np.asarray(symbols, np.int64)
        fresh = np.full(self.n_symbols, -1, np.int64)
        fresh[chosen] = np.arange(len(chosen))
        binary, unary = fresh[self.binary], fresh[self.unary]
        kept = [np.flatnonzero((rules >= 0).all(axis=1)) for rules in (binary, unary)]
        numbers = np.concatenate([kept[0], kept[1] + len(self.binary)])
        return Grammar(len(chosen), binary[kept[0]], unary[kept[1]]), numbers

    @cached_property
    def _sorted(self) -> _Sorted:
        """Rules by their right-hand sides, for sums, and by their left-hand sides."""
        parents, lefts, rights = self.binary.T
        order = np.lexsort((parents, rights, lefts)).astype(np.int64)
        pairs, starts = np.unique(self.binary[order, 1:], axis=0, return_index=True)
        starts = np.append(starts, len(order)).astype(np.int64)
        columns = np.ascontiguousarray(self.unary.T)
        by_pair = order, np.ascontiguousarray(pairs), starts, parents[order], columns[0], columns[1]
        own = np.argsort(parents, kind="stable").astype(np.int64)
        lone = np.argsort(columns[0], kind="stable").astype(np.int64)
        bounds = np.arange(self.n_symbols + 1)
        by_parent = (
            own, lefts[own], rights[own], np.searchsorted(parents[own], bounds).astype(np.int64),
            lone, columns[1][lone], np.searchsorted(columns[0][lone], bounds).astype(np.int64),
        )  # fmt: skip
        return _Sorted(by_pair, by_parent)

    @cached_property
    def _numbers(self) -> tuple[dict[tuple[int, int, int], int], dict[tuple[int, int], int]]:
        binary = {(a, b, c): number for number, (a, b, c) in enumerate(self.binary.tolist())}
        return binary, {(a, b): number for number, (a, b) in enumerate(self.unary.tolist())}

    def counts(self, y: Any, n: int) -> Array:
        """float64[n_parts]: how often each part is in a tree of n words; ParameterError where it is none."""
        cause: Exception | None = None
        out = np.zeros(self.n_parts(n))
        parts = self.split(out)
        try:
            nodes = {(int(i), int(j)): (int(top), int(made)) for i, j, top, made in y}
            ends = sorted(nodes, key=lambda span: (span[0], -span[1]))
            right = len(nodes) == len(y) == max(0, 2 * n - 1) and ends[:1] == [(0, n)][: len(nodes)]
            for (i, j), (top, made) in nodes.items() if right else ():
                self._count(parts, nodes, (i, j), top, made, n)
        except (TypeError, ValueError, KeyError, StopIteration, IndexError, ParameterError) as finding:
            right, cause = False, finding
        if not right:
            raise ParameterError(
                f"{self!r}: a tree of {n} words is a set of {max(0, 2 * n - 1)} nodes (i, j, top, made) that rules of "
                f"the grammar make, not {y!r}"
            ) from cause
        return out

    def _count(
        self, parts: CfgParts, nodes: dict[tuple[int, int], tuple[int, int]], span: tuple[int, int], top: int,
        made: int, n: int,
    ) -> None:  # fmt: skip
        binary, unary = self._numbers
        (i, j), number = span, span_number(*span, n)
        if made < 0 or top < 0:
            raise ValueError(span)
        parts.inner[number, made] += 1.0
        if len(unary):
            parts.outer[number, top] += 1.0
        if top != made:
            parts.unary[unary[top, made]] += 1.0
        if j - i > 1:
            k = next(k for k in range(i + 1, j) if (i, k) in nodes and (k, j) in nodes)
            parts.binary[binary[made, nodes[i, k][0], nodes[k, j][0]]] += 1.0


class Cfg(One[Derivation]):
    r"""A distribution over the trees that a weighted grammar has for a sentence.

    .. math:: p(y) \propto \exp \Big( \sum_{A \to B\,C} binary + \sum_{A \to B} unary
        + \sum_{(i, j, A) \text{ made}} inner[(i, j), A] + \sum_{(i, j, A) \text{ seen}} outer[(i, j), A] \Big)

    Every span of a binary tree has a symbol that was made, of two parts by a binary rule, or of a word, and one that
    the rule above sees: the same, or another that a unary rule makes of it. A rule with its place is scored by the rule
    and by its left-hand side over its span; −∞ in `inner` or `outer` forbids a symbol over a span, which is how a chart
    is pruned, and how words get their tags.

    Parameters
    ----------
    scores : float64[n_parts]
        `binary`, `unary`, `inner` and `outer` one after the other (`Grammar.scores` makes it, `Grammar.split` takes it
        apart); the array is copied.
    grammar : Grammar

    Notes
    -----
    Everything is exact. Sums take O(n³ P + n² R) for R rules with P different right-hand sides. A structure is a set of
    nodes (i, j, seen, made), 2n − 1 of them; the sentence without words has one, the empty set. Marginals of rules are
    expected numbers of uses.

    References
    ----------
    Baker, Trainable grammars for speech recognition, 1979 (inside and outside); Taskar et al., Max-margin parsing,
    EMNLP 2004 (parts of trees).

    Examples
    --------
    >>> grammar = Grammar(2, [[0, 1, 1], [0, 0, 1], [0, 1, 0]])         # S → X X | S X | X S
    >>> words = np.where(np.arange(6)[:, None] < 3, [[-np.inf, 0.0]], 0.0)   # three words, each an X
    >>> dist = Cfg(grammar.scores(3, binary=np.log([0.5, 0.3, 0.2]), inner=words), grammar)
    >>> round(float(np.exp(dist.log_partition())), 3)                   # 0.5 · 0.3 + 0.5 · 0.2
    0.25
    >>> sorted(dist.argmax())
    [(0, 1, 1, 1), (0, 2, 0, 0), (0, 3, 0, 0), (1, 2, 1, 1), (2, 3, 1, 1)]
    >>> grammar.split(dist.marginals()).binary.round(3).tolist()        # expected uses of each rule
    [1.0, 0.6, 0.4]
    """

    batch: Cfgs  # type: ignore[assignment]

    def __init__(self, scores: ArrayLike | Cfgs, grammar: Grammar | None = None) -> None:
        if not isinstance(scores, Cfgs):
            if not isinstance(grammar, Grammar):
                raise ParameterError(f"Cfg: a Grammar is needed, not {type(grammar).__name__}")
            scores = Cfgs(Stack.of([scores], "Cfg: scores", 1), grammar)
        super().__init__(scores)

    @classmethod
    def many(cls, scores: Iterable[ArrayLike], grammar: Grammar) -> Cfgs:
        """Many sentences at once, from one vector of scores for each."""
        return Cfgs(Stack.of(scores, "Cfgs: scores", 1), grammar)

    def __repr__(self) -> str:
        return f"Cfg(n={self.n}, {self.grammar!r})"

    @property
    def grammar(self) -> Grammar:
        """The rules."""
        return self.batch.grammar

    @property
    def n(self) -> int:
        """Number of words."""
        return int(self.batch.lengths[0])

    def score(self, y: Any) -> float:
        """Log score of a tree, not normalised."""
        return expected(self.parts(y), self.scores)

    def _read(self, parts: Array) -> Derivation:
        return self.batch._tree(parts, self.n)

    def parts(self, y: Any) -> Array:
        """How often each part is in the tree, shaped like `scores`."""
        return self.grammar.counts(y, self.n)


class Cfgs(ProgramBatch[Derivation]):
    """Distributions over the trees that one grammar has for many sentences, each with scores of its own.

    Every number equals, to the bit, what `Cfg` gives for the sentence alone, on any number of threads.

    Parameters
    ----------
    scores : Stack
        float64[n_parts] for each sentence.
    grammar : Grammar
    least : float
        Symbols over spans with less posterior than this are not followed further down when marginals are found: more
        is faster, and enough where marginals decide what is worth a look.

    Examples
    --------
    >>> grammar = Grammar(1, [[0, 0, 0]])
    >>> many = Cfg.many([np.zeros(grammar.n_parts(n)) for n in range(6)], grammar)
    >>> np.exp(many.log_partition()).round(6).tolist()                  # Catalan numbers
    [1.0, 1.0, 1.0, 2.0, 5.0, 14.0]
    """

    def __init__(self, scores: Stack, grammar: Grammar, *, least: float = NEGLIGIBLE) -> None:
        self.least = least
        if scores.shapes.shape[1] != 1:
            raise ParameterError("Cfgs: scores should be one vector for every sentence; see Grammar.scores")
        self.scores, self.grammar = scores.checked("Cfgs: scores"), grammar
        sizes = scores.shapes[:, 0].tolist()
        self.lengths = np.array([grammar.length_of(size) for size in sizes], np.int64).reshape(len(sizes))
        if (self.lengths < 0).any():
            s = int(np.flatnonzero(self.lengths < 0)[0])
            raise ParameterError(
                f"Cfgs: sentence {s} has {sizes[s]} scores, and no sentence has so many under {grammar!r}; make them "
                "with grammar.scores(n, …)"
            )

    def __getitem__(self, s: int) -> Cfg:
        return Cfg(Cfgs(self.scores.take(np.array([s])), self.grammar, least=self.least))

    def _remake(self, scores: Stack) -> Self:
        return type(self)(scores, self.grammar, least=self.least)

    def _take(self, items: NDArray[np.int64]) -> Cfgs:
        return Cfgs(self.scores.take(items), self.grammar, least=self.least)

    def _draws(self) -> Ints:
        return 4 * self.lengths

    def _sweep(self, semiring: Semiring, u: Array, starts: Ints) -> tuple[Array, Stack]:
        from isogloss.structures._numba.cfg import sum_cfgs, sweep_cfgs

        values, grad = np.full(len(self), np.nan), np.empty(len(self.scores.values))
        given = self.scores.values.view()
        given.flags.writeable = False  # so that kernels are compiled for one type
        layout = given, self.scores.offsets, self.lengths, self.grammar.n_symbols
        rules = self.grammar._sorted
        if isinstance(semiring, Log):
            run_sentences(sum_cfgs, len(self), *layout, *rules.pairs, self.least, grad, values)
        if np.isnan(values).any():
            run_sentences(sweep_cfgs, len(self), semiring, *layout, *rules.parents, u, starts, grad, values)
        return values, self.scores.like(grad)

    def _refuse_infeasible(self, values: Array) -> None:
        if (values == -np.inf).any():
            self._raise_infeasible(int(np.flatnonzero(values == -np.inf)[0]))

    def _raise_infeasible(self, s: int) -> NoReturn:
        n, parts = int(self.lengths[s]), self.grammar.split(self.scores[s])
        bare = np.flatnonzero(~np.asarray(parts.inner[:n] > -np.inf).any(axis=1))
        finding = f"word {int(bare[0])} has no symbol" if len(bare) else "the rules make no tree of it"
        where = f"sentence {s}: " if len(self) > 1 else ""
        raise InfeasibleError(f"{where}Cfg(n={n}, {self.grammar!r}): {finding}. Give the parts of a tree finite scores")

    def _tree(self, parts: Array, n: int) -> Derivation:
        kinds, ends = self.grammar.split(parts), spans_of(n)
        spans, made = np.nonzero(kinds.inner > 0)
        seen = made
        if len(self.grammar.unary):
            tops = np.zeros(len(ends), np.int64)
            at, symbols = np.nonzero(kinds.outer > 0)
            tops[at] = symbols
            seen = tops[spans]
        return frozenset(zip(*ends[spans].T.tolist(), seen.tolist(), made.tolist(), strict=True))

    def _structures(self, parts: Stack) -> list[Derivation]:
        return [self._tree(parts[s], n) for s, n in enumerate(self.lengths.tolist())]

    def parts(self, structures: Sequence[Any]) -> Stack:
        """How often each part is in one tree for each sentence, laid out as `scores`."""
        found = [
            self.grammar.counts(y, n) for y, n in zip(self._one_each(structures), self.lengths.tolist(), strict=True)
        ]
        return self.scores.like(np.concatenate([np.zeros(0), *found]))

    def constituents(self) -> list[CfgParts]:
        """Marginals of each sentence by kinds of parts: expected uses of rules, posteriors of symbols over spans."""
        return [self.grammar.split(one) for one in self.marginals()]
