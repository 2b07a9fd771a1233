"""Families of factors on the spans of a sentence: the bracketing itself, and labels that go with brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError
from isogloss.structures.batch import Stack
from isogloss.structures.brackets import Bracketings, Brackets
from isogloss.structures.factorgraph.family import Choice, Family, Ints, as_log_weights
from isogloss.structures.factorgraph.variables import Variables
from isogloss.structures.spans import n_words, spans_of

__all__ = ["Bracketing", "Epu", "always_there", "rewrite_triples"]

MOST = 1e6  # log-odds beyond this count as this: they only arise where messages grow without end
LOST = 1e-6  # a sum that is smaller beside the whole is made anew rather than taken as a difference
Bools = NDArray[np.bool_]


def always_there(n: int) -> Bools:
    """bool[n_spans]: single words and the whole sentence, which every tree has."""
    width = np.diff(spans_of(n), axis=1).ravel()
    return np.asarray((width == 1) | (width == n))


def rewrite_triples(n: int) -> Ints:
    """int64[n_triples, 3]: the numbers of the spans (i, j), (j, k) and (i, k) for all i < j < k, by i, then j, then k.

    Examples
    --------
    >>> rewrite_triples(3).tolist()
    [[0, 1, 3], [0, 4, 5], [3, 2, 5], [1, 2, 4]]
    """
    number = {tuple(span): at for at, span in enumerate(spans_of(n).tolist())}
    found = [(number[i, j], number[j, k], number[i, k])
             for i in range(n) for j in range(i + 1, n) for k in range(j + 1, n + 1)]  # fmt: skip
    return np.array(found, np.int64).reshape(-1, 3)


class Bracketing(Family):
    r"""The true spans are a tree: binary (CKYBRACKET), or of any fan-out (EARLEYBRACKET); O(n³).

    With log-odds a as the scores of spans and :math:`\mu` their marginals,

    .. math:: m_{ij} = \log \mu_{ij} - \log (1 - \mu_{ij}) - a_{ij},

    where what is too small to be seen beside the rest, in either term, is a sum of its own: over the trees that have
    the span, or have it not. Maxima are found in that way for every span, in O(n⁵). A span that is already certain is
    told 0; one without which there is no tree is told that it is true.

    References
    ----------
    Smith 2010, section 5.1.2. We differ: 1 − μ is no difference where it is small.
    """

    kind = "brackets"

    def __init__(self, spans: Variables, arity: str) -> None:
        n = n_words(spans.size)
        if spans.k or len(spans.shape) != 1 or n < 0:
            raise ParameterError(
                f"FactorGraph.brackets: Booleans for the n(n + 1)/2 spans of a sentence are needed, as spans(n) has "
                f"them, not {spans!r}"
            )
        self.n, self.arity = n, arity
        Brackets(np.zeros(0), arity=arity)  # refuses other words
        self.slots = (spans,)
        self.count = 1
        ends = spans_of(n)
        first, last = ends[:, 0], ends[:, 1]
        over = (first[:, None] < first) & (first < last[:, None]) & (last[:, None] < last)
        self._crossing = over | over.T

    def owners(self) -> tuple[Ints, ...]:
        return (np.zeros(self.slots[0].shape, np.int64),)

    def _scores(self, log_odds: Array) -> tuple[Array, float]:
        """Scores of spans under which certain ones are in every tree, and what these add that counts as 0."""
        scores = np.where(np.isfinite(log_odds), np.clip(log_odds, -MOST, MOST), np.where(log_odds > 0, 0.0, -np.inf))
        return self._with(scores, log_odds == np.inf)

    def _with(self, scores: Array, certain: Bools) -> tuple[Array, float]:
        """Scores under which these spans are in every tree, and what was added to the score of every tree."""
        if not certain.any():
            return scores, 0.0
        scores = np.where(self._crossing[certain].any(axis=0), -np.inf, scores)
        if (scores[certain] == -np.inf).any():  # two of them cross
            return np.full_like(scores, -np.inf), 0.0
        if self.arity == "binary":  # a binary tree without a span has one that crosses it
            return scores, 0.0
        finite = np.abs(scores[np.isfinite(scores)])
        much = 100.0 + 2.0 * float(finite.sum())
        return scores + much * certain, much * int(certain.sum())

    def _variants(self, scores: Array, with_: Ints, without: Ints, maximise: bool) -> tuple[Array, Array]:
        """log totals of the trees that have some spans, and of those that have others not, one by one; −∞ for none."""
        made, added = [], []
        for span in with_.tolist():
            forced, more = self._with(scores, np.arange(len(scores)) == span)
            made.append(forced)
            added.append(more)
        for span in without.tolist():
            made.append(np.where(np.arange(len(scores)) == span, -np.inf, scores))
            added.append(0.0)
        found = np.array([self._total(one, maximise) for one in made]) - added
        found[: len(with_)][scores[with_] == -np.inf] = -np.inf  # it crosses one that is certain
        return found[: len(with_)], found[len(with_) :]

    def _total(self, scores: Array, maximise: bool) -> float:
        if not maximise:
            many = Bracketings(Stack.of([scores], "FactorGraph.brackets", 1), arity=self.arity)
            return float(many._solve()[0][0])
        try:
            dist = Brackets(scores, arity=self.arity)
            return float(dist.score(dist.argmax()))
        except InfeasibleError:
            return -np.inf

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        a = incoming[0]
        given, _ = self._scores(a)
        whole = self._total(given, maximise)
        if whole == -np.inf:
            raise InfeasibleError("the spans that are left make no tree")
        dist, open_ = Brackets(given, arity=self.arity), np.isfinite(a)
        there = dist.parts(dist.argmax()) if maximise else dist.marginals()
        with np.errstate(divide="ignore"):
            true, false = np.log(there), np.log1p(-there)
        if maximise:
            true, false = np.where(there > 0, 0.0, -np.inf), np.where(there > 0, -np.inf, 0.0)
        with_, without = np.flatnonzero(open_ & (there < LOST)), np.flatnonzero(open_ & (1.0 - there < LOST))
        totals = self._variants(given, with_, without, maximise)
        true[with_], false[without] = totals[0] - whole, totals[1] - whole
        out = np.zeros(a.shape)
        with np.errstate(invalid="ignore"):
            out[open_] = (true - false)[open_] - np.clip(a[open_], -MOST, MOST)
        return (out,)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        given, more = self._scores(incoming[0])
        return self._total(given, maximise) - more, np.zeros(0)

    def parts(self, values: Sequence[Ints]) -> Array | None:
        ends = spans_of(self.n)
        tree = frozenset(map(tuple, ends[values[0] > 0].tolist()))
        bare = Brackets(np.zeros(len(ends)), arity=self.arity)
        return np.zeros(0) if bare.log_prob(tree) > -np.inf else None

    def choose(self, scores: Array, incoming: Sequence[Array], factor: int, rng: Any) -> Choice | None:
        dist = Brackets(self._scores(incoming[0])[0], arity=self.arity)
        tree = dist.argmax() if rng is None else dist.sample(rng)
        return self.slots[0].numbers, dist.parts(tree).astype(np.int64)

    def options(self) -> dict[str, Any]:
        return {"arity": self.arity}


class Epu(Family):
    r"""A Boolean is true exactly where a variable of k values has another than 0 (EPU, *e pluribus unum*).

    .. math:: m_{\to B} = \log \sum_{v > 0} q(v) - \log q(0), \qquad m_{\to C}(0) = 0, \; m_{\to C}(v) = a

    References
    ----------
    Smith 2010, section 5.1.2: brackets and labels of constituents, where 0 stands for no constituent.
    """

    kind = "epu"

    def __init__(self, booleans: Variables, labels: Variables) -> None:
        if booleans.k or labels.k < 2 or booleans.shape != labels.shape:
            raise ParameterError(
                f"FactorGraph.epu: Booleans and variables of two or more values in arrays of one shape are needed, not "
                f"{booleans!r} and {labels!r}"
            )
        self.slots = (booleans, labels)
        self.count = booleans.size

    def owners(self) -> tuple[Ints, ...]:
        number = np.arange(self.count).reshape(self.slots[0].shape)
        return number, number

    def send(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[Array, ...]:
        told, labels = incoming
        with np.errstate(invalid="ignore"):  # NaN where nothing is left: the caller raises
            to_boolean = _reduced(labels[..., 1:], maximise) - labels[..., 0]
        sides = as_log_weights(told)
        to_labels = np.where(np.arange(labels.shape[-1]) > 0, sides[..., 1:], sides[..., :1])
        top = to_labels.max(axis=-1, keepdims=True)
        return to_boolean, to_labels - np.where(top == -np.inf, 0.0, top)

    def believe(self, scores: Array, incoming: Sequence[Array], maximise: bool) -> tuple[float, Array]:
        told, labels = incoming
        sides = as_log_weights(told) + np.stack([labels[..., 0], _reduced(labels[..., 1:], maximise)], axis=-1)
        return float(_reduced(sides, maximise).sum()), np.zeros(0)

    def parts(self, values: Sequence[Ints]) -> Array | None:
        return np.zeros(0) if ((values[0] > 0) == (values[1] > 0)).all() else None


def _reduced(logs: Array, maximise: bool) -> Array:
    found = np.maximum.reduce(logs, axis=-1) if maximise else np.logaddexp.reduce(logs, axis=-1)
    return np.asarray(found)
