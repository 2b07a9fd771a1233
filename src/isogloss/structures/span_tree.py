"""`SpanTree`: trees of labelled spans, without a grammar; `SpanTrees`: many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, InfeasibleError, checked_scores
from isogloss.structures.batch import Stack
from isogloss.structures.span_charts import Ints, Kind, SpanBatch, SpanDistribution, checked_arity
from isogloss.structures.spans import n_words, span_number

__all__ = ["LabelledSpans", "SpanTree", "SpanTrees"]

LabelledSpans = frozenset[tuple[int, int, int]]


class SpanTree(SpanDistribution[LabelledSpans]):
    r"""A distribution over constituent trees of n words, in which every constituent is scored by itself.

    .. math:: p(y) = \frac{1}{Z} \exp \sum_{(i, j, \ell) \in y} scores[(i, j), \ell]

    A tree is a set of constituents (i, j, label) that do not cross, with fence-posts 0 ≤ i < j ≤ n and at most one
    label a span: chains of unary constituents are labels of their own.

    Parameters
    ----------
    scores : float64[n_spans, n_labels]
        Log score of a constituent with this label over this span, spans narrow ones first, then by start (`spans_of`);
        −∞ forbids. The array is copied.
    arity : "any" or "binary"
        "any": constituents have two or more parts, which are constituents or bare words; a single word may have a label
        or none. "binary": the spans of a binary bracketing have exactly one label each, single words too, and label 0,
        whose score counts, means that there is no constituent.
    rooted : bool
        Whether the whole sentence must be a constituent; otherwise it may be a sequence of several. With "binary" it
        always has a label, and this is not looked at.

    Notes
    -----
    Everything is exact, in O(n³ + n² n_labels): labels are summed span by span, and one number a span goes into the
    chart. A sentence without words has one tree, the empty one.

    References
    ----------
    Stern, Andreas and Klein, A minimal span-based neural constituency parser, ACL 2017; Hall, Durrett and Klein, Less
    grammar, more features, ACL 2014; Zhang, Zhou and Li, IJCAI 2020 (two-stage normalisation). For fan-outs above 2 we
    have a chart of our own, without binarisation and its spurious derivations.

    Examples
    --------
    >>> scores = np.full((6, 2), -2.0)                     # three words, two labels
    >>> scores[5, 0], scores[4, 1] = 3.0, 1.0              # the sentence, and words 1 and 2
    >>> dist = SpanTree(scores)
    >>> sorted(dist.argmax())
    [(0, 3, 0), (1, 3, 1)]
    >>> dist.marginals().sum(axis=1).round(3).tolist()     # single words, (0, 2), (1, 3) and (0, 3)
    [0.213, 0.213, 0.213, 0.066, 0.692, 1.0]
    """

    def __init__(self, scores: ArrayLike, *, arity: str = "any", rooted: bool = True) -> None:
        self.scores = checked_scores(scores, "SpanTree: scores", (None, None))
        if n_words(len(self.scores)) < 0:
            raise ParameterError(
                f"SpanTree: {len(self.scores)} rows of scores; n words have n(n + 1)/2 spans, that is 0, 1, 3, 6 …"
            )
        self._kind = _kind(arity, rooted, "SpanTree")

    @classmethod
    def batch(cls, scores: Iterable[ArrayLike], *, arity: str = "any", rooted: bool = True) -> SpanTrees:
        """Many sentences at once, from one array of scores for each."""
        return SpanTrees(Stack.of(scores, "SpanTrees: scores", 2), arity=arity, rooted=rooted)

    def __repr__(self) -> str:
        return f"SpanTree(n={self.n}, {self.scores.shape[1]} labels, arity={self.arity!r}, rooted={self.rooted})"

    @property
    def rooted(self) -> bool:
        """Whether the whole sentence must be a constituent."""
        return self._kind.rooted

    def _raise_infeasible(self) -> NoReturn:
        allowed = np.asarray(self.scores > -np.inf).any(axis=1).reshape(len(self.scores))
        if self._kind.binary and not allowed[: self.n].all():
            finding = f"word {int(np.flatnonzero(~allowed[: self.n])[0])} has no allowed label, and every tree has one"
        elif not allowed[-1:].all():
            other = "" if self._kind.binary else "; a sequence of constituents does with rooted=False"
            finding = f"the whole sentence has no allowed label{other}"
        else:
            finding = "the allowed spans make no binary tree"
        raise InfeasibleError(f"{self!r}: {finding}. Give the constituents of at least one tree finite scores")

    @staticmethod
    def _tree(ends: Ints, labels: Ints) -> LabelledSpans:
        return frozenset(zip(ends[:, 0].tolist(), ends[:, 1].tolist(), labels.tolist(), strict=True))

    def _checked(self, y: Any) -> LabelledSpans:
        try:
            found = frozenset((int(i), int(j), int(label)) for i, j, label in y)
        except (TypeError, ValueError) as finding:
            raise ParameterError(f"{self!r}: a tree is a set of constituents (i, j, label), not {y!r}") from finding
        labels = self.scores.shape[1]
        for i, j, label in found:
            if not (0 <= i < j <= self.n and 0 <= label < labels):
                wanted = f"0 <= i < j <= {self.n} with a label from 0 to {labels - 1}"
                raise ParameterError(f"{self!r}: constituents are {wanted}, not {(i, j, label)}")
        return found

    def parts(self, y: Any) -> Array:
        """float64[n_spans, n_labels]: 1 for each constituent of the tree, 0 elsewhere."""
        out = np.zeros(self.scores.shape)
        for i, j, label in self._checked(y):
            out[span_number(i, j, self.n), label] = 1.0
        return out


def _kind(arity: Any, rooted: Any, place: str) -> Kind:
    binary = checked_arity(arity, place)
    return Kind(binary, not binary, bool(rooted))


class SpanTrees(SpanBatch[LabelledSpans]):
    """Many distributions over trees of labelled spans, of sentences of any lengths: the batch view of `SpanTree`.

    Every number equals, to the bit, what `SpanTree` gives for the sentence alone, on any number of threads.

    Parameters
    ----------
    scores : Stack
        float64[n_spans, n_labels] for each sentence.
    arity, rooted
        As for `SpanTree`, for all sentences.

    Examples
    --------
    >>> many = SpanTrees(Stack.of([np.zeros((n * (n + 1) // 2, 2)) for n in range(5)]), arity="binary")
    >>> np.exp(many.log_partition()).round(6).tolist()     # Catalan numbers times 2 to the number of spans
    [1.0, 2.0, 8.0, 64.0, 640.0]
    """

    _one = SpanTree

    def __init__(self, scores: Stack, *, arity: str = "any", rooted: bool = True) -> None:
        self._set(scores, _kind(arity, rooted, "SpanTrees"), 2)

    @property
    def rooted(self) -> bool:
        """Whether the whole sentence must be a constituent."""
        return self._kind.rooted

    def parts(self, structures: Sequence[Any]) -> Stack:
        """Parts of one tree for each sentence, laid out as `scores`."""
        out = self.scores.like(np.zeros(len(self.scores.values)))
        for s, y in enumerate(self._one_each(structures)):
            n, block = int(self._lengths[s]), out[s]
            for i, j, label in y:
                if not 0 <= label < block.shape[1]:
                    self[s].parts(y)  # says what is wrong
                block[span_number(i, j, n), label] = 1.0
        return out
