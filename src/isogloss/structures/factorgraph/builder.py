"""How a factor graph is put together: arrays of variables, and factors over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores, kept
from isogloss.structures.factorgraph.constituents import Bracketing, Epu, always_there, rewrite_triples
from isogloss.structures.factorgraph.family import Family, Unary
from isogloss.structures.factorgraph.local import OneOf, Pair, Table
from isogloss.structures.factorgraph.passing import Options, Wiring
from isogloss.structures.factorgraph.sequences import ChainFactor, ChildSequence, Valence, links_grid
from isogloss.structures.factorgraph.several import Conjunction, Indicator, Number
from isogloss.structures.factorgraph.trees import NoCross, Tree
from isogloss.structures.factorgraph.variables import Factors, Variables
from isogloss.structures.spans import n_words

__all__ = ["Builder"]


class Builder:
    """The half of `FactorGraph` that adds variables and factors."""

    options: Options
    scores: Array
    _blocks: tuple[Variables, ...]
    _families: tuple[Family, ...]
    _factors: tuple[Factors, ...]
    _evidence: Array
    _mark: object

    @cached_property
    def _wiring(self) -> Wiring:
        sizes = np.concatenate([np.zeros(0, np.int64), *(np.full(block.size, block.k) for block in self._blocks)])
        return Wiring(sizes.astype(np.int64), self._families)

    # --- variables

    @property
    def n_variables(self) -> int:
        """Number of variables, those that can only be false included."""
        return sum(block.size for block in self._blocks)

    def boolean(self, shape: int | tuple[int, ...], *, active: ArrayLike | None = None, name: str = "") -> Variables:
        """An array of Booleans; those not `active` (bool[shape]) are false."""
        variables = self._add_variables(_axes(shape), 0, name)
        if active is not None:
            mask = np.broadcast_to(np.asarray(active, np.bool_), variables.shape)
            self._observe(np.where(mask, 0.0, -np.inf), variables)
        return variables

    def multinomial(
        self, shape: int | tuple[int, ...], k: int, *, allowed: ArrayLike | None = None, name: str = ""
    ) -> Variables:
        """An array of variables with values 0 … k − 1; `allowed` (bool[shape, k]) forbids some values of some."""
        if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
            raise ParameterError(f"FactorGraph.multinomial: k should be a positive integer, not {k!r}")
        variables = self._add_variables(_axes(shape), int(k), name)
        if allowed is not None:
            mask = np.broadcast_to(np.asarray(allowed, np.bool_), (*variables.shape, k))
            self._observe(np.where(mask, 0.0, -np.inf), variables)
        return variables

    def links(self, n: int, *, active: ArrayLike | None = None, name: str = "links") -> Variables:
        """Boolean[n + 1, n + 1]: links (head, child) between n words and the root, node 0, which is nobody's child."""
        if n < 0:
            raise ParameterError(f"FactorGraph.links: n should be a number of words, not {n}")
        head, child = np.indices((n + 1, n + 1))
        possible = (head != child) & (child > 0)
        if active is not None:
            possible &= np.asarray(active, np.bool_)
        return self.boolean((n + 1, n + 1), active=possible, name=name)

    def spans(self, n: int, *, active: ArrayLike | None = None, name: str = "spans") -> Variables:
        """Boolean[n(n + 1)/2]: spans of n words as `spans_of` numbers them; single words and the whole are true."""
        if n < 0:
            raise ParameterError(f"FactorGraph.spans: n should be a number of words, not {n}")
        always = always_there(n)
        variables = self._add_variables(always.shape, 0, name)
        mask = np.broadcast_to(np.asarray(True if active is None else active, np.bool_), variables.shape)
        self._observe(np.where(always, np.inf, np.where(mask, 0.0, -np.inf)), variables)
        return variables

    def variables(self, name: str) -> Variables:
        """The array of variables that was added under this name."""
        for block in self._blocks:
            if block.name == name:
                return block
        raise ParameterError(f"{self!r}: no variables {name!r} among {[block.name for block in self._blocks]}")

    # --- soft factors

    def unary(self, variables: Variables, scores: ArrayLike) -> Factors:
        """Scores float64[shape] of Booleans being true, or float64[shape, k] of values (LINK, TAG)."""
        return self._add(Unary(self._own(variables)), scores)

    def pairwise(self, first: Variables, second: Variables, scores: ArrayLike) -> Factors:
        """Scores float64[shape] of two Booleans both being true; −∞ is NAND, a finite penalty soft NAND.

        Grandparents are ``pairwise(links[i, j], links[j, k], scores)`` with arrays i, j, k; siblings likewise.
        """
        if first.k or second.k:
            raise ParameterError("FactorGraph.pairwise: Booleans are needed; for variables with k values, use table")
        return self._add(Pair(self._own(first), self._own(second)), scores)

    def conjunction(self, *variables: Variables, scores: ArrayLike) -> Factors:
        """Scores float64[shape] of a few Booleans all being true: ``conjunction(a, b, c, d, scores=...)`` (MONO)."""
        return self._add(Conjunction(*(self._own(v) for v in variables)), scores)

    def number(self, rows: Variables | Iterable[Variables], scores: ArrayLike) -> Factors:
        """Scores float64[n_rows, bins] of how many Booleans of each row are true, the last bin open (fertilities)."""
        bins = np.shape(scores)[-1] if np.ndim(scores) else 0
        return self._add(Number(*self._rows(rows, "number"), bins), scores)

    def table(self, variables: Sequence[Variables], scores: ArrayLike) -> Factors:
        """Factors with a score for every combination of values: float64[shape, v₁, v₂, …], where a Boolean has two."""
        return self._add(Table([self._own(v) for v in variables]), scores)

    def link_tags(self, links: Variables, *tags: Variables, scores: ArrayLike) -> Factors:
        """Factors that score values of variables where a Boolean is true: float64[shape, k₁, k₂, …] (TAGLINK).

        With tags of the head and of the child: ``link_tags(links[h, c], tags[h - 1], tags[c - 1], scores=...)``; one
        array of tags does for links from the root.
        """
        if links.k:
            raise ParameterError(f"FactorGraph.link_tags: the first variables should be Boolean, not {links!r}")
        return self._add(Table([self._own(v) for v in tags], gate=self._own(links)), scores)

    def chain(self, tags: Variables, scores: ArrayLike) -> Factors:
        """One factor over a row of n variables: float64[n − 1, k, k] for every two neighbours, or, at order 2,
        float64[n − 2, k, k, k] for every three."""
        return self._add(ChainFactor(self._own(tags), np.ndim(scores) - 2), scores)

    def no_cross(self, links: Variables, scores: ArrayLike, *, one_head: bool = False) -> Factors:
        """For any two of n words, a score where the links into them cross: float64[n, n], of which word j < l is read;
        the handle's share of `scores` is those pairs in order, n(n − 1)/2 numbers (NOCROSS).

        Meant for use beside `tree`, or `exactly_one` for every word. With `one_head` each factor itself demands that
        its words have one head, as in the reference; beside a tree that is said too often, and beliefs suffer.
        """
        n = links_grid(links, "no_cross")
        penalties = np.asarray(scores, np.float64)
        if penalties.shape != (n, n):
            raise ParameterError(f"FactorGraph.no_cross: scores should be [{n}, {n}], not {list(penalties.shape)}")
        return self._add(NoCross(self._own(links), bool(one_head)), penalties[np.triu_indices(n, 1)])

    def child_sequence(self, links: Variables, scores: ArrayLike) -> Factors:
        """Bigrams of the children of each head, outward on either side: float64[2, n + 1, n + 1, n + 1], indexed (left
        or right, head, previous child, next child), where the head itself stands for both ends (CHILDSEQ)."""
        return self._add(ChildSequence(self._own(links)), scores)

    def valence(self, links: Variables, scores: ArrayLike) -> Factors:
        """Numbers of children of each head on either side: float64[2, n + 1, bins], the last bin open (VALENCE)."""
        bins = np.shape(scores)[-1] if np.ndim(scores) else 0
        return self._add(Valence(self._own(links), bins), scores)

    def rewrite(self, labels: Variables, scores: ArrayLike) -> Factors:
        """For all i < j < k of n words, scores float64[n_triples, l, l, l] of the labels of (i, j), (j, k) and (i, k),
        none of which is 0 (REWRITE); order and number of the triples are those of `rewrite_triples`.

        The handle's share of `scores` has the value 0 of every label as well, [n_triples, l + 1, l + 1, l + 1], with
        scores of 0. With these factors a graph has cycles as soon as there are three words.
        """
        n, k = n_words(labels.size), labels.k
        triples = rewrite_triples(n) if n >= 0 else np.zeros((0, 3), np.int64)
        given = np.asarray(scores, np.float64)
        if n < 0 or k < 2 or given.shape != (len(triples), k - 1, k - 1, k - 1):
            raise ParameterError(
                f"FactorGraph.rewrite: labels of all spans of a sentence, and scores {[len(triples), *[k - 1] * 3]} "
                f"are needed, not {labels!r} and {list(given.shape)}"
            )
        padded = np.zeros((len(triples), k, k, k))
        padded[:, 1:, 1:, 1:] = given
        return self.table([labels[triples[:, side]] for side in range(3)], padded)

    # --- hard factors

    def exactly_one(self, rows: Variables | Iterable[Variables]) -> Factors:
        """Of every row exactly one is true: rows are the last axis of an array, or any Boolean arrays (EXACTLY1)."""
        return self._one_of(rows, "exactly_one", False)

    def at_most_one(self, rows: Variables | Iterable[Variables]) -> Factors:
        """Of every row at most one is true (ATMOST1)."""
        return self._one_of(rows, "at_most_one", True)

    def indicator(self, first: Variables, second: Variables, offsets: ArrayLike, whole: Variables) -> Factors:
        """Each Boolean of `whole` is true where both of one of its pairs are: pairs of group g are
        ``offsets[g] … offsets[g + 1] - 1`` of two rows of Booleans, no two of which are true (grandparents, siblings).
        """
        starts = np.ascontiguousarray(offsets, np.int64)
        return self._add(Indicator(self._own(first), self._own(second), self._own(whole), starts), np.zeros(0))

    def tree(self, links: Variables, *, projective: bool = True, single_root: bool = False) -> Factors:
        """The true links, Boolean[n + 1, n + 1], are a dependency tree: projective (PTREE) or not (TREE)."""
        return self._add(Tree(self._own(links), bool(projective), bool(single_root)), np.zeros(0))

    def brackets(self, spans: Variables, *, arity: str = "binary") -> Factors:
        """The true spans, Boolean[n(n + 1)/2], are a tree: binary (CKYBRACKET), or of "any" fan-out (EARLEYBRACKET)."""
        return self._add(Bracketing(self._own(spans), arity), np.zeros(0))

    def epu(self, booleans: Variables, labels: Variables) -> Factors:
        """A Boolean is true exactly where the variable at its place has another value than 0 (EPU)."""
        return self._add(Epu(self._own(booleans), self._own(labels)), np.zeros(0))

    # --- adding

    def _add_variables(self, shape: tuple[int, ...], k: int, name: str) -> Variables:
        name = name or f"variables{len(self._blocks)}"
        if any(block.name == name for block in self._blocks):
            raise ParameterError(f"{self!r}: there are variables named {name!r} already; give another name")
        start, size = self.n_variables, int(np.prod(shape))
        variables = Variables(np.arange(start, start + size).reshape(shape), k, name, self._mark)
        self._blocks = (*self._blocks, variables)
        self._evidence = kept(np.concatenate([self._evidence, np.zeros(size * max(k, 1))]))
        self._forget()
        return variables

    def _own(self, variables: Variables) -> Variables:
        if not isinstance(variables, Variables) or variables.graph is not self._mark:
            raise ParameterError(f"{self!r}: {variables!r} are not variables of this graph")
        return variables

    def _add(self, family: Family, scores: ArrayLike) -> Factors:
        values = checked_scores(scores, f"FactorGraph: scores of {family.kind} factors", family.shape)
        handle = Factors(len(self._factors), family.kind, family.count, len(self.scores), family.shape)
        self._families = (*self._families, family)
        self._factors = (*self._factors, handle)
        self.scores = kept(np.concatenate([self.scores, values.ravel()]))
        self._forget()
        return handle

    def _one_of(self, rows: Variables | Iterable[Variables], place: str, at_most: bool) -> Factors:
        return self._add(OneOf(*self._rows(rows, place), at_most), np.zeros(0))

    def _rows(self, rows: Variables | Iterable[Variables], place: str) -> tuple[Variables, NDArray[np.int64]]:
        """Rows of Booleans one after the other, and where each begins."""
        groups = [self._own(row) for row in ([rows] if isinstance(rows, Variables) else rows)]
        if any(row.k or not row.shape for row in groups):
            raise ParameterError(f"FactorGraph.{place}: arrays of Booleans are needed, not {groups!r}")
        if isinstance(rows, Variables):
            lengths = np.full(int(np.prod(rows.shape[:-1])), rows.shape[-1])
        else:
            lengths = np.array([row.size for row in groups], np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        numbers = np.concatenate([np.zeros(0, np.int64), *(row.numbers.ravel() for row in groups)])
        name = groups[0].name if groups else ""
        return Variables(numbers, 0, name, self._mark), offsets

    def _observe(self, told: Array, variables: Variables) -> None:
        cells = self._wiring.cells(variables)
        evidence = np.array(self._evidence)
        with np.errstate(invalid="ignore"):
            evidence[cells] += told
        if np.isnan(evidence).any():
            raise InfeasibleError(f"{self!r}: {variables!r} were observed otherwise before")
        self._evidence = kept(evidence)
        for name in ("_prior", "exact", "beliefs", "_solved"):
            self.__dict__.pop(name, None)

    def _forget(self) -> None:
        for name in ("_wiring", "_prior", "exact", "beliefs", "_solved"):
            self.__dict__.pop(name, None)

    def _copy(self) -> Self:
        """Another graph of the same variables and factors, to be scored or observed anew."""
        wiring = self._wiring
        other = object.__new__(type(self))
        other.options, other.scores, other._mark = self.options, self.scores, self._mark
        other._blocks, other._families, other._factors = self._blocks, self._families, self._factors
        other._evidence = self._evidence
        other.__dict__["_wiring"] = wiring
        return other


def _axes(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
