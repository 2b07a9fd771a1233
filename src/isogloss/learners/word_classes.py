r"""Classes of words that have the same words beside them, learnt from text alone.

`aggregate_markov` is a model of neighbours through classes, learnt by EM [1]_,

.. math:: P(w' \mid w) = \sum_z P(z \mid w)\, P(w' \mid z),

where w' is a word together with the side on which it stands. `brown_classes` puts each word into one class so that the
mutual information of neighbouring classes is high, greedily, and then merges classes to a tree [2]_; the way from its
root to a class is a string of bits, and classes that begin alike are alike [3]_.

References
----------
.. [1] Saul and Pereira, Aggregate and Mixed-Order Markov Models for Statistical Language Processing, EMNLP 1997.
.. [2] Brown et al., Class-Based n-gram Models of Natural Language, Computational Linguistics 18(4), 1992. Liang,
   Semi-Supervised Learning for Natural Language, MEng thesis, MIT 2005 (losses kept up to date; sums of words are those
   of the whole text from the beginning, which we follow).
.. [3] Koo, Carreras and Collins, Simple Semi-Supervised Dependency Parsing, ACL 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError
from isogloss.learners.runner import run
from isogloss.progress import Progress

__all__ = ["AggregateMarkov", "WordPairs", "aggregate_markov", "brown_classes", "nearest_centres"]

Array = NDArray[np.float64]
NOTHING = 1e-12
BLOCKS = 16
"""Parts of the words; results depend on it, and it does not depend on threads."""


class WordPairs(NamedTuple):
    """Which words follow which, and how often: a sparse matrix by rows.

    begins : int64[n_words + 1]
    others : int32[n_pairs]
    counts : float64[n_pairs]
    """

    begins: NDArray[np.int64]
    others: NDArray[np.int32]
    counts: Array

    @classmethod
    def of(cls, first: NDArray[np.int64], second: NDArray[np.int64], n_words: int, n_others: int) -> WordPairs:
        """Of pairs as they are met."""
        codes, counts = np.unique(first * max(1, n_others) + second, return_counts=True)
        rows = codes // max(1, n_others)
        begins = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_words))]).astype(np.int64)
        return cls(begins, (codes % max(1, n_others)).astype(np.int32), counts.astype(np.float64))


def neighbours(ids: NDArray[np.int64], offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Words and those that follow them within sentences; −1 is no word, and has no neighbours."""
    last = np.zeros(len(ids), np.bool_)
    last[offsets[1:][np.diff(offsets) > 0] - 1] = True
    at = np.flatnonzero(~last[:-1]) if len(ids) else np.zeros(0, np.int64)
    first, second = ids[at], ids[at + 1] if len(at) else ids[:0]
    both = (first >= 0) & (second >= 0)
    return first[both], second[both]


class _State(NamedTuple):
    given: Array
    emit: Array
    iteration: int = 0


class _Info(NamedTuple):
    objective: float


@dataclass(frozen=True, eq=False)
class AggregateMarkov:
    """EM of the aggregate Markov model, for `isogloss.learners.runner.run`.

    Parameters
    ----------
    pairs : WordPairs
        Words, and what they are met with.
    n_others : int
    """

    pairs: WordPairs
    n_others: int

    def init(self, classes: int, seed: int = 0) -> _State:
        """Random distributions: the same for all classes would stay so."""
        rng = np.random.default_rng(seed)
        given = rng.uniform(0.5, 1.5, (len(self.pairs.begins) - 1, classes))
        emit = rng.uniform(0.5, 1.5, (self.n_others, classes))
        return _State(given / given.sum(axis=1, keepdims=True), emit / emit.sum(axis=0, keepdims=True))

    def step(self, state: _State) -> tuple[_State, _Info]:
        """One step; the objective is the log-likelihood of the parameters that it began with, which never falls."""
        from isogloss.learners._numba.word_classes import aggregate_step

        classes = state.given.shape[1]
        fresh, sums = np.zeros_like(state.given), np.zeros((BLOCKS, self.n_others, classes))
        values = np.zeros(BLOCKS)
        with using_threads():
            run_blocks(aggregate_step, BLOCKS, *self.pairs, state.given, state.emit, fresh, sums, values)
        emit = sums.sum(axis=0)
        met = fresh.sum(axis=1, keepdims=True)
        given = np.where(met > 0, fresh / np.where(met > 0, met, 1.0), state.given)
        total = emit.sum(axis=0, keepdims=True)
        emit = np.where(total > 0, emit / np.where(total > 0, total, 1.0), state.emit)
        return _State(given, emit, state.iteration + 1), _Info(float(values.sum()))


def aggregate_markov(
    ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    n_words: int,
    classes: int,
    *,
    iterations: int = 30,
    seed: int = 0,
    progress: Progress | None = None,
) -> Array:
    """float64[n_words, classes]: P(z | w) of each word, by the words on its left and on its right.

    Parameters
    ----------
    ids : int64[n]
        Words of sentences, one after the other; −1 for those that are left out.
    offsets : int64[n_sentences + 1]
    n_words, classes : int
    iterations, seed : int

    Examples
    --------
    >>> ids = np.array([0, 1, 2, 0, 3, 2] * 9)                                # 1 and 3 stand between the same words
    >>> found = aggregate_markov(ids, np.arange(0, 55, 3), 4, 2)
    >>> bool(np.allclose(found[1], found[3], atol=0.01))
    True
    """
    if classes < 1:
        raise ParameterError(f"aggregate_markov: classes should be 1 or more, not {classes!r}")
    first, second = neighbours(ids, offsets)
    pairs = WordPairs.of(
        np.concatenate([first, second]), np.concatenate([second, first + n_words]), n_words, 2 * n_words
    )
    learner = AggregateMarkov(pairs, 2 * n_words)
    found = run(
        learner, learner.init(classes, seed), iterations=iterations, tolerance=1e-6, progress=progress,
        name="Learning classes of words",
    )  # fmt: skip
    return found.state.given


def brown_classes(ids: NDArray[np.int64], offsets: NDArray[np.int64], n_words: int, classes: int) -> list[str]:
    """The class of each word as a string of bits, the way to it from the root of the tree of all classes.

    Parameters
    ----------
    ids : int64[n]
        Words of sentences, one after the other; −1 for those that are left out. A word without neighbours has the
        class of the rarest.
    offsets : int64[n_sentences + 1]
    n_words, classes : int

    Examples
    --------
    >>> ids = np.array([0, 1, 2, 0, 3, 2] * 9)
    >>> found = brown_classes(ids, np.arange(0, 55, 3), 4, 3)
    >>> found[1] == found[3], len(set(found))
    (True, 3)
    """
    from isogloss.learners._numba.word_classes import brown, merge_all

    if classes < 1:
        raise ParameterError(f"brown_classes: classes should be 1 or more, not {classes!r}")
    if not n_words:
        return []
    often = np.bincount(ids[ids >= 0], minlength=n_words)
    order = np.argsort(-often, kind="stable")
    rank = np.empty(n_words, np.int64)
    rank[order] = np.arange(n_words)
    first, second = neighbours(np.where(ids >= 0, rank[np.maximum(ids, 0)], -1), offsets)
    ahead, back = WordPairs.of(first, second, n_words, n_words), WordPairs.of(second, first, n_words, n_words)
    left, right = (np.maximum(np.bincount(side, minlength=n_words), 0.5).astype(float) for side in (first, second))
    slots = np.empty(n_words, np.int64)
    n, to_left, to_right, there = brown(*ahead, *back, left, right, min(classes, n_words), slots)
    merges = np.zeros((max(0, int(there.sum()) - 1), 2), np.int64)
    merge_all(n, to_left, to_right, there, float(left.sum()), merges)
    bits = dict.fromkeys(np.unique(slots).tolist(), "")
    members = {slot: [slot] for slot in bits}
    for d, e in merges.tolist():
        for slot in members[d]:
            bits[slot] = "0" + bits[slot]
        for slot in members[e]:
            bits[slot] = "1" + bits[slot]
        members[d] += members.pop(e)
    return [bits[int(slots[rank[w]])] for w in range(n_words)]


def nearest_centres(
    points: Array, k: int, *, counts: ArrayLike | None = None, iterations: int = 50
) -> NDArray[np.int64]:
    """int64[n]: which of k centres each point lies nearest to, centres being the means of their points (k-means).

    The first centre is the heaviest point, each further one the point that is heaviest by its count and by its distance
    to the centres before; nothing is drawn.

    Parameters
    ----------
    points : float64[n, d]
    k : int
    counts : float64[n], optional
        What points count.

    Examples
    --------
    >>> nearest_centres(np.array([[0.0], [0.1], [5.0], [5.1]]), 2).tolist()
    [0, 0, 1, 1]
    """
    x, weights = np.asarray(points, np.float64), np.ones(len(points)) if counts is None else np.asarray(counts, float)
    if k < 1:
        raise ParameterError(f"nearest_centres: k should be 1 or more, not {k!r}")
    if not len(x):
        return np.zeros(0, np.int64)
    chosen = [int(weights.argmax())]
    apart = ((x - x[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < min(k, len(x)) and (apart * weights).max() > NOTHING:
        chosen.append(int((apart * weights).round(12).argmax()))
        apart = np.minimum(apart, ((x - x[chosen[-1]]) ** 2).sum(axis=1))
    centres, found = x[chosen], np.full(len(x), -1, np.int64)
    for _ in range(iterations):
        far = (centres**2).sum(axis=1) - 2 * (x @ centres.T)
        fresh = far.round(9).argmin(axis=1)
        if np.array_equal(fresh, found):
            break
        found = fresh
        heavy = np.bincount(found, weights, minlength=len(centres))
        sums = np.stack([np.bincount(found, weights * column, minlength=len(centres)) for column in x.T], axis=1)
        centres = np.where(heavy[:, None] > 0, sums / np.where(heavy > 0, heavy, 1.0)[:, None], centres)
    return found
