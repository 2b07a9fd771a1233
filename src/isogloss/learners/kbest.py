r"""Learning from n-best lists of a search whose structures nobody can list: hope and fear, over all lists so far.

Of the candidates of an item, the *hope* has a high score and a high quality, the *fear* a high score and a low one:

.. math:: \hat y^+ = \arg\max_y\; w \cdot f(y) + q(y), \qquad \hat y^- = \arg\max_y\; w \cdot f(y) - q(y)

and MIRA has the hope win by the difference of their qualities, with the least change of the weights. `KBestMira` is
batch MIRA: it asks a search for the n best of every item, puts them beside those that it found before, makes some
passes over all lists, and asks again under the mean of the weights.

Qualities of whole texts, such as BLEU, are no sums over items. That of a candidate is what the text of the last items
would come to with it: counts of the hopes of earlier items are kept, and fade.

References
----------
Cherry and Foster, Batch Tuning Strategies for Statistical Machine Translation, NAACL 2012. Chiang, Marton and Resnik,
Online Large-Margin Training of Syntactic and Structural Translation Features, EMNLP 2008 (fading counts).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ModelError, ParameterError
from isogloss.learners.stochastic import Passing, StochasticState

__all__ = ["CandidateLists", "HopeFear", "KBestMira", "KBestState", "Quality", "SearchInfo"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]
FADING = 0.999
"""What is left of earlier counts after each item."""


class CandidateLists(NamedTuple):
    """Candidates of items, with all that learning needs to know of them.

    Parameters
    ----------
    starts : int64[n_items + 1]
        Candidates of item *s* are ``starts[s] … starts[s + 1] - 1``; the best first, as a search gives them.
    features : float64[n, n_weights]
    counts : float64[n, n_counts]
        What their quality is made of.
    """

    starts: Items
    features: Array
    counts: Array

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.features)

    @property
    def first(self) -> Array:
        """Counts of the first of each list; those without candidates are left out."""
        return self.counts[self.starts[:-1][np.diff(self.starts) > 0]]

    def joined(self, more: CandidateLists) -> CandidateLists:
        """With those of other lists that are not there yet, at the end of each list."""
        owners = [np.repeat(np.arange(len(each.starts) - 1), np.diff(each.starts)) for each in (self, more)]
        item = np.concatenate(owners)
        rows = np.concatenate([self.features, more.features]), np.concatenate([self.counts, more.counts])
        every = np.column_stack([item, *rows])
        _, first = np.unique(every, axis=0, return_index=True)
        first.sort()
        order = first[np.argsort(item[first], kind="stable")]
        sizes = np.bincount(item[order], minlength=len(self.starts) - 1)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return CandidateLists(starts, rows[0][order], rows[1][order])


class Quality(Protocol):
    """What counts come to: float64[...] of counts[..., n_counts], the higher the better."""

    def __call__(self, counts: Array, /) -> Array: ...


class HopeFear(Passing):
    """Passes over lists of candidates: of each item, the hope should win over the fear by the difference in quality.

    Parameters
    ----------
    lists : CandidateLists
    quality : callable
        Quality of the counts of a candidate together with those that are left of earlier items.
    cap : float
        The most that one item may change the weights by.
    batch : int
        Items that are looked at with the same weights, and beside the same earlier ones.
    fading : float
        What is left of the counts after each item; 0 judges candidates by themselves.
    seed : int
        Of the order of items.
    """

    def __init__(
        self,
        lists: CandidateLists,
        quality: Quality,
        *,
        cap: float = 0.01,
        batch: int = 1,
        fading: float = FADING,
        seed: int = 0,
    ) -> None:
        if not 0 <= fading < 1:
            raise ParameterError(f"HopeFear: fading should be from 0 to below 1, not {fading!r}")
        if not cap > 0:
            raise ParameterError(f"HopeFear: cap should be positive, not {cap!r}")
        super().__init__(len(lists.starts) - 1, batch=batch, seed=seed, in_place=True)
        self.lists, self.quality, self.cap, self.fading = lists, quality, cap, fading
        width = lists.counts.shape[1]
        self.background = np.ones(width) if fading else np.zeros(width)

    def init(self, weights: ArrayLike | None = None) -> StochasticState:
        """The state before the first pass, at the given weights or at 0."""
        return StochasticState.fresh(np.zeros(self.lists.features.shape[1]) if weights is None else np.array(weights))

    def step(self, state: StochasticState) -> StochasticState:
        """One pass over all items."""
        from isogloss.learners._numba.kbest import look, move

        state, lists = self.begun(state), self.lists
        weights, memory, steps = state.weights, state.memory, state.steps
        room = int(np.sort(np.diff(lists.starts))[-self.batch :].sum())
        scores, beside = np.empty(room), np.empty((room, lists.counts.shape[1]))
        for _, items in self.minibatches(state.iteration):
            n = look(items, lists.starts, lists.features, lists.counts, self.background, weights, scores, beside)
            move(
                items, lists.starts, lists.features, lists.counts, scores, self.quality(beside[:n]), self.cap,
                float(steps), self.fading, self.background, weights, memory,
            )  # fmt: skip
            steps += 1
        return StochasticState(weights, state.iteration + 1, memory, steps)


class KBestState(NamedTuple):
    """What the next step needs."""

    weights: Array
    iteration: int
    lists: CandidateLists

    @property
    def average(self) -> Array:
        """The weights, which are means already: what to search with."""
        return self.weights


class SearchInfo(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """The quality of what the search found under the weights that the step began with."""
    candidates: int
    """All that are known."""
    moved: float
    """The length of the change of the weights."""


class KBestMira:
    """Batch MIRA over the n-best lists of a search.

    Parameters
    ----------
    search : callable
        Weights to the n best of every item; the results for the weights of the last call are remembered.
    quality : callable
        Quality of the counts of one candidate beside earlier ones, as for `HopeFear`.
    total : callable
        Counts of a whole text to what is to be high, for the trace: BLEU.
    n_items, n_counts : int
    cap : float
        The most that one item may change the weights by, C.
    passes : int
        Over all lists, in each step.
    batch : int
        Items that are looked at with the same weights.
    fading, seed
        As for `HopeFear`.

    Examples
    --------
    >>> from isogloss.learners.runner import run
    >>> def search(weights):  # two candidates, of which the second is right
    ...     order = np.argsort(-(np.eye(2) @ weights))
    ...     return CandidateLists(np.array([0, 2]), np.eye(2)[order], np.array([[0.0], [1.0]])[order])
    >>> quality = lambda counts: counts[..., 0]
    >>> learner = KBestMira(search, quality, lambda counts: float(counts[0]), 1, 1, cap=1.0, passes=3, fading=0.0)
    >>> found = run(learner, learner.init([0.5, 0.0]), iterations=3)
    >>> found.trace.tolist(), found.state.weights.round(2).tolist()
    ([0.0, 1.0, 1.0], [-0.25, 0.75])
    """

    def __init__(
        self,
        search: Callable[[Array], CandidateLists],
        quality: Quality,
        total: Callable[[Array], float],
        n_items: int,
        n_counts: int,
        *,
        cap: float = 0.01,
        passes: int = 20,
        batch: int = 1,
        fading: float = FADING,
        seed: int = 0,
    ) -> None:
        if passes < 1:
            raise ParameterError(f"KBestMira: passes should be positive, not {passes!r}")
        self.search, self.quality, self.total = search, quality, total
        self.n_items, self.n_counts = n_items, n_counts
        self.cap, self.passes, self.batch, self.fading, self.seed = cap, passes, batch, fading, seed
        self._last: tuple[bytes, CandidateLists] | None = None

    def init(self, weights: ArrayLike) -> KBestState:
        """The state before the first step."""
        start = np.array(weights, np.float64)
        starts = np.zeros(self.n_items + 1, np.int64)
        nothing = CandidateLists(starts, np.zeros((0, len(start))), np.zeros((0, self.n_counts)))
        return KBestState(start, 0, nothing)

    def found(self, weights: Array) -> CandidateLists:
        """What the search finds under weights."""
        key = np.ascontiguousarray(weights).tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self.search(weights)
        return self._last[1]

    def value(self, weights: Array) -> float:
        """The quality of the best of all items under weights: for `isogloss.learners.tuning.Tuned`."""
        return self.total(self.found(weights).first.sum(axis=0))

    def step(self, state: KBestState) -> tuple[KBestState, SearchInfo]:
        """One search, and some passes over all lists so far."""
        found = self.found(state.weights)
        lists = state.lists.joined(found)
        weights = self._passed(state, lists)
        moved = float(np.linalg.norm(weights - state.weights))
        info = SearchInfo(self.total(found.first.sum(axis=0)), len(lists), moved)
        return KBestState(weights, state.iteration + 1, lists), info

    def _passed(self, state: KBestState, lists: CandidateLists) -> Array:
        """The mean of the weights over all passes."""
        learner = HopeFear(
            lists, self.quality, cap=self.cap, batch=self.batch, fading=self.fading, seed=self.seed + state.iteration
        )
        inner = learner.init(state.weights)
        for _ in range(self.passes):
            inner = learner.step(inner)
        return np.array(inner.average)

    def dump(self, state: KBestState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For checkpoints."""
        return {"weights": state.weights, **state.lists._asdict()}, {"iteration": state.iteration}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> KBestState:
        """The inverse of `dump`."""
        lists = CandidateLists(arrays["starts"], arrays["features"], arrays["counts"])
        sound = (
            len(lists.starts) == self.n_items + 1
            and lists.starts[-1] == len(lists.features) == len(lists.counts)
            and lists.features.shape[1:] == arrays["weights"].shape
            and lists.counts.shape[1:] == (self.n_counts,)
        )
        if not sound:
            raise ModelError("the candidates of the checkpoint do not fit this text. Start again without resuming")
        return KBestState(arrays["weights"], int(meta["iteration"]), lists)
