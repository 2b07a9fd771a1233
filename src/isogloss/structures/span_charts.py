"""What `Brackets` and `SpanTree` have in common: kernels over labelled spans, and the methods that follow from them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, Distribution, kept
from isogloss.structures.batch import Batch, Stack, run_sentences
from isogloss.structures.kbest import checked_k
from isogloss.structures.spans import n_words, spans_of

__all__ = ["Constituents", "Kind", "SpanBatch", "SpanDistribution", "checked_arity", "nested"]

Ints = NDArray[np.int64]
Y = TypeVar("Y", bound=frozenset[Any])


class Kind(NamedTuple):
    """Which trees there are."""

    binary: bool
    """Every constituent of several words has two parts; otherwise two or more."""
    bare: bool
    """A single word may have no label."""
    rooted: bool
    """The whole sentence is a constituent."""


class Constituents(NamedTuple):
    """The trees of many sentences: spans by number, and their labels; those of tree *s* from starts[s] on."""

    starts: Ints
    counts: Ints
    spans: Ints
    labels: Ints

    def of(self, s: int) -> tuple[Ints, Ints]:
        """Spans and labels of one tree."""
        here = slice(self.starts[s], self.starts[s] + self.counts[s])
        return self.spans[here], self.labels[here]


def checked_arity(arity: Any, place: str) -> bool:
    """Whether trees are binary."""
    if arity not in ("binary", "any"):
        raise ParameterError(f"{place}: arity should be 'binary' or 'any', not {arity!r}")
    return bool(arity == "binary")


def _lengths_of(scores: Stack, place: str) -> Ints:
    """int64[n_sentences]: numbers of words, once every array is known to have a row for each span of a sentence."""
    rows = scores.shapes[:, 0].tolist()
    lengths = np.array([n_words(row) for row in rows], np.int64).reshape(len(rows))
    if (lengths < 0).any():
        s = int(np.flatnonzero(lengths < 0)[0])
        raise ParameterError(
            f"{place}: sentence {s} has {rows[s]} spans; n words have n(n + 1)/2, that is 0, 1, 3, 6 …"
        )
    return lengths


def _layout(scores: Stack, lengths: Ints) -> tuple[Any, ...]:
    wide = scores.shapes[:, 1] if scores.shapes.shape[1] == 2 else np.ones(len(scores), np.int64)
    values = scores.values.view()
    values.flags.writeable = False  # so that kernels are compiled for one type
    return values, scores.offsets, lengths, np.ascontiguousarray(wide)


def _sums(scores: Stack, lengths: Ints, kind: Kind) -> tuple[Array, Array]:
    """log Z of each sentence, and marginals laid out as `scores`."""
    from isogloss.structures._numba.span_tree import log_spans, marginal_spans

    values, grad = np.empty(len(scores)), np.empty(len(scores.values))
    layout = (*_layout(scores, lengths), *kind)
    run_sentences(marginal_spans, len(scores), *layout, grad, values)
    if np.isnan(values).any():
        run_sentences(log_spans, len(scores), *layout, grad, values)
    return values, grad


def _empty(lengths: Ints) -> Constituents:
    starts = np.concatenate([[0], np.cumsum(2 * lengths)]).astype(np.int64)
    room = int(starts[-1])
    return Constituents(
        starts[:-1], np.empty(len(lengths), np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    )


def _best(scores: Stack, lengths: Ints, kind: Kind) -> tuple[Array, Constituents]:
    """The best tree of each sentence and its score, −∞ where none is allowed."""
    from isogloss.structures._numba.span_tree import best_spans

    values, found = np.empty(len(scores)), _empty(lengths)
    into = (found.starts, found.spans, found.labels, found.counts)
    run_sentences(best_spans, len(scores), *_layout(scores, lengths), *kind, *into, values)
    return values, found


def _drawn(scores: Stack, lengths: Ints, kind: Kind, rng: np.random.Generator) -> tuple[Array, Constituents]:
    """One tree drawn for each sentence, and log Z, −∞ where none is allowed."""
    from isogloss.structures._numba.span_tree import drawn_spans
    from isogloss.structures.semiring import DRAW

    starts = np.concatenate([[0], np.cumsum(4 * lengths)]).astype(np.int64)
    u = rng.random(int(starts[-1]))
    values, found = np.empty(len(scores)), _empty(lengths)
    into = (found.starts, found.spans, found.labels, found.counts)
    run_sentences(drawn_spans, len(scores), DRAW, *_layout(scores, lengths), *kind, u, starts, *into, values)
    return values, found


def _k_best(scores: Array, n: int, kind: Kind, k: int) -> list[tuple[float, Ints, Ints]]:
    """Score, spans and labels of the `k` best trees of a sentence; `scores` is [n_spans, n_labels]."""
    from isogloss.structures._numba.span_tree_kbest import k_trees

    if n == 0:
        return [(0.0, np.zeros(0, np.int64), np.zeros(0, np.int64))]
    values, wide = np.empty(k), scores.shape[1] + 1
    tags, lengths = k_trees(scores, spans_of(n), n, *kind, k, values)
    found = []
    for rank, length in enumerate(lengths.tolist()):
        mine = tags[rank, :length]
        mine = mine[(mine >= 0) & (mine % wide < wide - 1)]
        found.append((float(values[rank]), mine // wide, mine % wide))
    return found


def _moments(scores: Stack, vectors: Array, lengths: Ints, kind: Kind) -> tuple[Array, Array]:
    """log Z, and d marginals(scores + ε vectors) / dε at ε = 0, laid out as `scores`."""
    from isogloss.structures._numba.span_tree_moments import span_moments

    values, out = np.empty(len(scores)), np.zeros(len(scores.values))
    numbers, *layout = _layout(scores, lengths)
    run_sentences(span_moments, len(scores), numbers, vectors, *layout, *kind, out, values)
    return values, out


def nested(spans: Iterable[tuple[int, int]]) -> bool:
    """Whether no two spans cross.

    Examples
    --------
    >>> nested([(0, 3), (0, 2), (2, 3)]), nested([(0, 2), (1, 3)])
    (True, False)
    """
    open_: list[int] = []
    for start, end in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        while open_ and open_[-1] <= start:
            open_.pop()
        if open_ and end > open_[-1]:
            return False
        open_.append(end)
    return True


def _is_tree(spans: Sequence[tuple[int, int]], n: int, kind: Kind) -> bool:
    """Whether these spans, each once, are the constituents of a tree of this kind."""
    if n == 0:
        return not spans
    given = set(spans)
    if not nested(given) or ((kind.rooted or kind.binary) and (0, n) not in given):
        return False
    words = sum(end - start == 1 for start, end in given)
    if words < n and not kind.bare:
        return False
    return not kind.binary or len(given) - words == n - 1


class SpanDistribution(Distribution[Y]):
    """A distribution over sets of spans that make a tree, scored span by span; [n_spans] or [n_spans, n_labels]."""

    _kind: Kind
    _only: Y | None = None
    """The tree that alone is allowed, after `clamp`: where parts may be left out, −∞ elsewhere does not say so."""

    # --- what a subclass writes

    @staticmethod
    @abstractmethod
    def _tree(ends: Ints, labels: Ints) -> Y:
        """The tree with these spans, int64[count, 2], and labels, int64[count]."""

    @abstractmethod
    def _checked(self, y: Any) -> Y:
        """`y` as a set of what a tree has; ParameterError where it could not be one of this sentence."""

    @abstractmethod
    def _raise_infeasible(self) -> NoReturn:
        """Say what is missing."""

    # --- what follows

    @property
    def n(self) -> int:
        """Number of words."""
        return n_words(len(self.scores))

    @property
    def arity(self) -> str:
        """ "binary" or "any"."""
        return "binary" if self._kind.binary else "any"

    @property
    def _wide(self) -> int:
        return self.scores.shape[1] if self.scores.ndim == 2 else 1

    def _problem(self) -> tuple[Stack, Ints, Kind]:
        sizes = np.array([0, self.scores.size]), np.array([self.scores.shape], np.int64)
        return Stack(self.scores.reshape(-1), *sizes), np.array([self.n]), self._kind

    def _feasible(self, value: float) -> float:
        if value == -np.inf:
            self._raise_infeasible()
        return float(value)

    def _solve(self) -> tuple[float, Array]:
        if self._only is not None:
            return self._feasible(self.score(self._only)), self.parts(self._only)
        values, grad = _sums(*self._problem())
        return self._feasible(values[0]), grad.reshape(self.scores.shape)

    def _chosen(self, values: Array, found: Constituents) -> Y:
        self._feasible(values[0])
        spans, labels = found.of(0)
        return self._tree(spans_of(self.n)[spans], labels)

    def argmax(self) -> Y:
        """The best tree; among equals, always the same one."""
        if self._only is not None:
            return self.k_best(1)[0][1]
        return self._chosen(*_best(*self._problem()))

    def sample(self, rng: np.random.Generator) -> Y:
        """One tree drawn from the distribution."""
        if self._only is not None:
            return self.k_best(1)[0][1]
        return self._chosen(*_drawn(*self._problem(), rng))

    def k_best(self, k: int) -> list[tuple[float, Y]]:
        """The `k` best allowed trees with their scores, or all if there are fewer, best first, each once.

        After one search for the best, cells are looked into as far as is needed (Huang and Chiang 2005, algorithm 3).
        """
        checked_k(k, f"{self!r}: k_best")
        if self._only is not None:
            return [(self._feasible(self.score(self._only)), self._only)]
        found = _k_best(self.scores.reshape(len(self.scores), self._wide), self.n, self._kind, k)
        if not found:
            self._raise_infeasible()
        ends = spans_of(self.n)
        return [(score, self._tree(ends[spans], labels)) for score, spans, labels in found]

    def hessian_vector(self, vector: ArrayLike) -> Array:
        """d marginals(scores + ε vector) / dε at ε = 0, shaped like the scores, in the time of marginals.

        The Hessian of log Z times a vector: the covariance of each part with Σ vector over the parts of a tree. With
        the parts of a gold tree as vector it is the gradient of the expected number of right ones.
        """
        given = _finite(vector, self.scores, repr(self))
        if self._only is not None:
            return np.zeros(self.scores.shape)
        scores, lengths, kind = self._problem()
        values, out = _moments(scores, given.ravel(), lengths, kind)
        self._feasible(values[0])
        return out.reshape(self.scores.shape)

    def most_right(self, marginals: ArrayLike | None = None, *, threshold: float = 0.5) -> Y:
        """The allowed tree with the highest Σ (posterior − threshold) over its parts: minimum Bayes risk.

        Parameters
        ----------
        marginals : float64, shaped like the scores, optional
            Posterior of each part, by default those of this distribution; mixed ones of several models do as well.
        threshold : float
            What a part costs: 0 asks for as many right ones as possible, 0.5 counts wrong ones against them. The best
            F1 that is expected lies at half its value, somewhat below 0.5.
        """
        given = self.marginals() if marginals is None else np.asarray(marginals, np.float64)
        if given.shape != self.scores.shape or not np.isfinite(given).all():
            raise ParameterError(f"{self!r}: marginals should be {list(self.scores.shape)}, and finite")
        return self._remake(kept(_gains(self.scores, given - threshold, self._kind))).argmax()

    def _read(self, parts: Array) -> Y:
        spans, labels = np.nonzero(parts.reshape(len(parts), self._wide) > 0)
        return self._tree(spans_of(self.n)[spans], labels)

    def _is_tree(self, y: Y) -> bool:
        spans = [part[:2] for part in y]
        return len(set(spans)) == len(spans) and _is_tree(spans, self.n, self._kind)

    def from_parts(self, parts: ArrayLike) -> Y:
        """The tree that has these parts; the inverse of `parts`."""
        found = super().from_parts(parts)
        if not self._is_tree(found):
            raise ParameterError(f"{self!r}: {sorted(found)} are not a tree of this kind")
        return found

    def score(self, y: Any) -> float:
        """Log score of a tree, not normalised; −∞ for a set that is no tree of this kind."""
        found = self._checked(y)
        if not self._is_tree(found) or (self._only is not None and found != self._only):
            return -np.inf
        return super().score(found)

    def _remake(self, scores: Array) -> Self:
        other = object.__new__(type(self))
        other.scores, other._kind, other._only = scores, self._kind, self._only
        return other

    def clamp(self, y: Any) -> Self:
        """The distribution in which `y` alone is allowed, with the score it has here."""
        other = super().clamp(y)
        other._only = self._checked(y)
        return other


def _gains(scores: Array, worth: Array, kind: Kind) -> Array:
    """What parts are worth, −∞ where they are forbidden; label 0 of binary trees is no constituent, and worth 0."""
    if kind.binary and worth.ndim == 2:
        worth = worth.copy()
        worth[:, :1] = 0.0
    return np.where(scores > -np.inf, worth, -np.inf)


def _finite(vector: ArrayLike, scores: Array, place: str) -> Array:
    """Values of parts, finite, with 0 where no tree has a part."""
    given = np.array(vector, np.float64)
    if given.shape != scores.shape:
        raise ParameterError(f"{place}: a vector should be {list(scores.shape)}, not {list(given.shape)}")
    given[scores == -np.inf] = 0.0
    if not np.isfinite(given).all():
        raise ParameterError(f"{place}: a vector should be finite; {given[~np.isfinite(given)][0]} is not")
    return given


class SpanBatch(Batch[Y]):
    """Many `SpanDistribution` of one kind. A subclass says what a sentence alone is, `_one`."""

    _one: ClassVar[type[SpanDistribution[Any]]]
    _lengths: Ints
    _kind: Kind
    _only: list[Y] | None = None

    def _set(self, scores: Stack, kind: Kind, rank: int) -> None:
        """Take scores of this rank, once they are known to be of sentences."""
        place, axes = type(self).__name__, ", ".join(("n_spans", "n_labels")[:rank])
        if scores.shapes.shape[1] != rank:
            raise ParameterError(f"{place}: scores should be [{axes}] for every sentence")
        self.scores, self._kind = scores.checked(f"{place}: scores"), kind
        self._lengths = _lengths_of(scores, place)

    @property
    def arity(self) -> str:
        """ "binary" or "any"."""
        return "binary" if self._kind.binary else "any"

    def __getitem__(self, s: int) -> Any:
        one: Any = object.__new__(self._one)
        one.scores, one._kind = kept(np.array(self.scores[s])), self._kind
        one._only = None if self._only is None else self._only[s]
        return one

    def _remake(self, scores: Stack) -> Self:
        other = object.__new__(type(self))
        other.scores, other._lengths, other._kind, other._only = scores, self._lengths, self._kind, self._only
        return other

    def _take(self, items: Ints) -> Self:
        other = self._remake(self.scores.take(items))
        other._lengths = self._lengths[items]
        other._only = None if self._only is None else [self._only[s] for s in items.tolist()]
        return other

    def clamp(self, structures: Sequence[Any]) -> Self:
        """The distributions in which these trees alone are allowed, one for each sentence."""
        other = super().clamp(structures)
        other._only = [self[s]._checked(y) for s, y in enumerate(structures)]
        return other

    def _solve(self) -> tuple[Array, Stack]:
        if self._only is not None:
            each = [self[s].score(y) for s, y in enumerate(self._only)]
            return np.array(each, np.float64), self.parts(self._only)
        values, grad = _sums(self.scores, self._lengths, self._kind)
        return values, self.scores.like(grad)

    def _trees(self, values: Array, found: Constituents) -> list[Y]:
        self._refuse_infeasible(values)
        known: dict[int, Ints] = {}
        out: list[Y] = []
        for s, n in enumerate(self._lengths.tolist()):
            if n not in known:
                known[n] = spans_of(n)
            spans, labels = found.of(s)
            out.append(self._one._tree(known[n][spans], labels))
        return out

    def argmax(self) -> list[Y]:
        """The best tree of each sentence."""
        if self._only is not None:
            self.log_partition()
            return self._only
        return self._trees(*_best(self.scores, self._lengths, self._kind))

    def best_constituents(self) -> Constituents:
        """The best tree of each sentence as arrays of span numbers and labels, for those who need no sets."""
        values, found = _best(self.scores, self._lengths, self._kind)
        self._refuse_infeasible(values)
        return found

    def best_scores(self) -> Array:
        """float64[n_sentences]: the log score of the best tree of each, not normalised."""
        if self._only is not None:
            return self.log_partition()
        values, _ = _best(self.scores, self._lengths, self._kind)
        self._refuse_infeasible(values)
        return values

    def sample(self, rng: np.random.Generator) -> list[Y]:
        """One tree for each sentence; the same numbers are drawn as by one sentence after the other."""
        if self._only is not None:
            return self.argmax()
        return self._trees(*_drawn(self.scores, self._lengths, self._kind, rng))

    def most_right(self, marginals: Stack | None = None, *, threshold: float = 0.5) -> list[Y]:
        """For each sentence the allowed tree with the highest Σ (posterior − threshold) over its parts.

        Posteriors are those of this batch, or a Stack of others, laid out as the scores; see the single structure.
        """
        given = self.marginals() if marginals is None else marginals
        if not np.array_equal(given.shapes, self.scores.shapes) or not np.isfinite(given.values).all():
            raise ParameterError(f"{self!r}: marginals should be a Stack with the shapes of the scores, and finite")
        gains = np.where(self.scores.values > -np.inf, given.values - threshold, -np.inf)
        if self._kind.binary and self.scores.shapes.shape[1] == 2:
            stack = self.scores.like(gains)
            for s in range(len(self)):
                stack[s][:, :1] = np.where(self.scores[s][:, :1] > -np.inf, 0.0, -np.inf)
        return self._remake(self.scores.like(kept(gains))).argmax()

    def hessian_vector(self, vectors: Stack | Iterable[ArrayLike]) -> Stack:
        """d marginals(scores + ε vectors) / dε at ε = 0, laid out as `scores`."""
        given = [_finite(v, self.scores[s], repr(self)) for s, v in enumerate(self._one_each(list(vectors)))]
        if self._only is not None:
            return self.scores.like(np.zeros(len(self.scores.values)))
        flat = np.concatenate([np.zeros(0), *(one.ravel() for one in given)])
        values, out = _moments(self.scores, flat, self._lengths, self._kind)
        self._refuse_infeasible(values)
        return self.scores.like(out)
