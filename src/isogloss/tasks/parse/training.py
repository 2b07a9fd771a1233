"""How weights of links are found: minibatches of sentences, what each asks of its links, and the step that follows.

The three are apart: a scorer gives scores and gradients (`LinkScorer`), an objective says how the loss of a sentence
changes with the score of each link (`OBJECTIVES`), and `Steps` moves the weights. Objectives see a batch of structures
and gold heads, so that any structure that has marginals can take the place of first-order trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.structures.base import InfeasibleError, kept
from isogloss.structures.batch import Batch, Stack
from isogloss.tasks.parse.inference import best_trees, cells_of, trees_of
from isogloss.tasks.parse.links import Gradient, LinkScorer
from isogloss.tasks.parse.words import Words

__all__ = ["OBJECTIVES", "Asked", "Settings", "Steps", "learn", "likelihood", "mira", "perceptron"]

BLOCKS = 4
LEAST = 1e-4
"""Links whose posterior is this close to what it should be are left alone."""


class Settings(NamedTuple):
    """Options of learning; see `DependencyParser`."""

    trainer: str = "likelihood"
    iterations: int = 10
    rate: float = 0.1
    l2: float = 0.0
    batch: int = 16
    seed: int = 0
    projective: bool = True
    single_root: bool = True


class Asked(NamedTuple):
    """What an objective asks of a minibatch.

    Parameters
    ----------
    values : Stack
        Derivative of the loss by the score of each link.
    losses : float64[n_sentences]
    """

    values: Stack
    losses: NDArray[np.float64]


Objective = Callable[[Batch[Any], NDArray[np.int32]], Asked]


def likelihood(trees: Batch[Any], heads: NDArray[np.int32]) -> Asked:
    r"""Minus the log probability of the known heads, :math:`-\log \sum_{y \ni known} p(y \mid x)`.

    Its derivative is the posterior of a link less the posterior among the trees that have the known heads; where all
    are known that is 1 or 0, also if no tree of this kind has them (a projective model of crossing links).
    """
    total, marginals = trees.log_partition(), trees.marginals()
    wanted = np.zeros(len(marginals.values))
    if heads.min(initial=0) >= 0:
        cells = cells_of(trees.scores, heads)
        wanted[cells] = 1.0
        words = trees.scores.shapes[:, 0] - 1
        gold = _sums(trees.scores.values[cells], words)
    else:
        gold, wanted = _clamped(trees, heads)
    return Asked(marginals.like(marginals.values - wanted), total - gold)


def _clamped(trees: Batch[Any], heads: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log Σ exp score of the trees that have the known heads, and the posteriors among them."""
    known = _restricted(trees, heads)
    try:
        return known.log_partition(), known.marginals().values
    except InfeasibleError:
        pass
    totals, marginals = np.empty(len(trees)), trees.marginals().values.copy()
    for k in range(len(trees)):  # a sentence that no tree fits asks for nothing
        here = slice(trees.scores.offsets[k], trees.scores.offsets[k + 1])
        try:
            totals[k] = known[k].log_partition()
            marginals[here] = known[k].marginals().ravel()
        except InfeasibleError:
            totals[k] = trees.log_partition()[k]
    return totals, marginals


def _restricted(trees: Batch[Any], heads: NDArray[np.int32]) -> Batch[Any]:
    """The same trees, of which only those with the known heads are allowed."""
    from isogloss.tasks.parse._numba.updates import clamp_heads

    scores = trees.scores
    values = scores.values.copy()
    clamp_heads(scores.offsets, np.ascontiguousarray(scores.shapes[:, 0]), heads, values)
    return trees.with_scores(scores.like(kept(values)))


def _sums(values: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of consecutive runs; runs may be empty."""
    before = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.cumsum(lengths)
    return np.asarray(before[ends] - before[ends - lengths])


def perceptron(trees: Batch[Any], heads: NDArray[np.int32]) -> Asked:
    """Links of the best tree that should not be there, and those that should; losses are wrong heads."""
    return _compared(trees, heads, best_trees(trees, "map"), margin=False)


def mira(trees: Batch[Any], heads: NDArray[np.int32]) -> Asked:
    """As for the perceptron, with the tree that is best when every wrong head earns 1; losses are hinges."""
    cost = np.ones(len(trees.scores.values))
    right = heads >= 0
    cells = cells_of(trees.scores, np.where(right, heads, 0))
    cost[cells[right]] = 0.0
    free = np.flatnonzero(~right)
    if len(free):
        values = np.zeros(len(cost))
        from isogloss.tasks.parse._numba.updates import clamp_heads

        clamp_heads(trees.scores.offsets, np.ascontiguousarray(trees.scores.shapes[:, 0]), heads, values)
        cost = (values == -np.inf).astype(np.float64)  # words without a head have no cost
    harder = trees.with_scores(trees.scores.like(kept(trees.scores.values + cost)))
    return _compared(trees, heads, best_trees(harder, "map"), margin=True)


def _compared(
    trees: Batch[Any], heads: NDArray[np.int32], found: NDArray[np.int32], *, margin: bool
) -> Asked:  # fmt: skip
    wanted = heads
    if heads.min(initial=0) < 0:  # the best tree that has the known heads
        try:
            wanted = best_trees(_restricted(trees, heads), "map")
        except InfeasibleError:
            wanted = np.where(heads >= 0, heads, found).astype(np.int32)
    scores, words = trees.scores, trees.scores.shapes[:, 0] - 1
    ours, theirs = cells_of(scores, found), cells_of(scores, wanted)
    values = np.zeros(len(scores.values))
    values[ours] += 1.0
    values[theirs] -= 1.0
    losses = _sums(((found != heads) & (heads >= 0)).astype(np.float64), words)
    if margin:
        losses += _sums(scores.values[ours] - scores.values[theirs], words)
    return Asked(scores.like(values), losses)


OBJECTIVES: dict[str, Objective] = {"likelihood": likelihood, "mira": mira, "perceptron": perceptron}
"""By the name of the trainer."""


class Steps:
    """Weights that move along gradients, and the mean of where they have been.

    Parameters
    ----------
    n : int
    rate, l2 : float
        Length of steps, and decay. For margins, `rate` is the longest step of MIRA, and 0 makes all steps 1.
    margins : bool
        Steps by margin, one sentence at a time, in place of AdaGrad on minibatches.
    """

    def __init__(self, n: int, *, rate: float, l2: float = 0.0, margins: bool = False) -> None:
        self.rate, self.l2, self.margins = rate, l2, margins
        self.weights, self._squares = np.zeros(n, np.float32), np.zeros(0 if margins else n, np.float32)
        self._gradient, self._totals = np.zeros(n, np.float32), np.zeros(n, np.float32)
        self._last, self.step = np.zeros(n, np.int32), 0

    def take(self, gradient: Gradient, losses: NDArray[np.float64]) -> None:
        """One step."""
        from isogloss.tasks.parse._numba import updates

        self.step += 1
        lists = (gradient.places, gradient.ends, gradient.numbers, gradient.parts, np.int32(self.step))
        kept = (self._gradient, self._totals, self._last)
        if self.margins:
            margin_step: Any = updates.margin_step
            margin_step(*lists, losses, float(self.rate), self.weights, *kept)
        else:
            options = (np.float32(self.rate), np.float32(self.l2), self.weights, self._squares)
            run_blocks(updates.adagrad, BLOCKS, *lists, *options, *kept)

    def mean(self) -> NDArray[np.float32]:
        """float32[n]: the mean of the weights since the last `forget`."""
        from isogloss.tasks.parse._numba.updates import averaged

        out = np.empty_like(self.weights)
        run_blocks(averaged, BLOCKS, np.int32(self.step), self.weights, self._totals, self._last, out)
        return out

    def forget(self) -> None:
        """Let the mean begin here."""
        self._totals[:] = 0
        self._last[:] = 0
        self.step = 0


def learn(
    scorer: LinkScorer,
    words: Words,
    heads: NDArray[np.int32],
    offsets: NDArray[np.int64],
    settings: Settings,
    watch: Callable[[int, float, Callable[[], NDArray[np.float32]] | None], bool],
) -> NDArray[np.float32]:
    """Learn weights of links.

    Parameters
    ----------
    scorer : LinkScorer
        With the table of features; its weights are set here.
    heads : int32[n_words]
        −1 where not known; sentences without any known head are passed over.
    watch : callable
        Told the pass, and the mean loss of a word in it; after the pass also a function that gives the weights so far.
        When it says True, learning ends.

    Returns
    -------
    float32[n_features] : the mean of the weights
    """
    steps = Steps(
        len(scorer.table),
        rate={"perceptron": 0.0}.get(settings.trainer, settings.rate),
        l2=settings.l2,
        margins=settings.trainer != "likelihood",
    )
    scorer.weights = steps.weights
    known = np.add.reduceat(np.append(heads >= 0, False).astype(np.int64), offsets[:-1]) if len(words) else np.zeros(0)
    useful = np.flatnonzero((known > 0) & (words.lengths > 0))
    objective = OBJECTIVES[settings.trainer]
    for number in range(settings.iterations):
        mixed = np.random.default_rng([settings.seed, number]).permutation(useful)
        lost = 0.0
        for start in range(0, len(mixed), settings.batch):
            sentences = mixed[start : start + settings.batch]
            scores = scorer.scores(words, sentences)
            trees = trees_of(scores, projective=settings.projective, single_root=settings.single_root)
            asked = objective(trees, _heads_of(heads, offsets, sentences))
            steps.take(scorer.gradient(words, sentences, asked.values, least=LEAST), asked.losses)
            lost += float(asked.losses.sum())
            if start // settings.batch % 16 == 0:
                watch(number, start / len(mixed), None)
        if watch(number + 1, lost / max(1, int(known.sum())), steps.mean):
            break
        if number == 0:
            steps.forget()  # the first pass is far from where the others are
    return steps.mean()


def _heads_of(
    heads: NDArray[np.int32], offsets: NDArray[np.int64], sentences: NDArray[np.int64]
) -> NDArray[np.int32]:  # fmt: skip
    parts = [heads[offsets[s] : offsets[s + 1]] for s in sentences.tolist()]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)
