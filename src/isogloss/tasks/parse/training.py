"""How weights are found: minibatches of sentences, what each asks of its parts, and the step that follows.

The three are apart: a scorer gives scores and gradients (`PartScorer`), an objective says how the loss of a sentence
changes with the score of each part (`OBJECTIVES`), and `Steps` moves the weights. Objectives see distributions over
trees and gold heads, and know nothing of features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.structures.base import Array, kept
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse.inference import Shape, best_trees
from isogloss.tasks.parse.scoring import Gradient, PartScorer
from isogloss.tasks.parse.words import Words

__all__ = [
    "OBJECTIVES", "Asked", "LabelTerms", "Labels", "Passes", "Seen", "Settings", "Steps", "TreeLearner", "likelihood",
    "mira", "perceptron", "risk", "with_links",
]  # fmt: skip

LEAST = 1e-3
"""Parts whose posterior is this close to what it should be are left alone."""
MARGINS = ("mira", "perceptron")
FIRST_BY_LIKELIHOOD = 0.4
"""The share of passes after which minimum risk, which has many optima, takes over from likelihood."""


class Settings(NamedTuple):
    """Options of learning; see `DependencyParser`."""

    trainer: str = "likelihood"
    iterations: int = 10
    rate: float = 0.1
    l2: float = 0.0
    batch: int = 16
    seed: int = 0


class Asked(NamedTuple):
    """What an objective asks of a minibatch.

    Parameters
    ----------
    values : float64[n_parts]
        Derivative of the loss by the score of each part.
    losses : float64[n_sentences]
    wanted : float64[n_parts], optional
        Of likelihood: the posterior of each part among the trees that have all that is known.
    """

    values: Array
    losses: NDArray[np.float64]
    wanted: Array | None = None


Objective = Callable[[LoopyTrees, NDArray[np.int32]], Asked]


class LabelTerms(NamedTuple):
    """What labels add to the links of a minibatch.

    Parameters
    ----------
    sums : float64[n_links]
        Log of the sum over labels, a part of the score of the link.
    known : float64[n_links]
        What the score of the link loses when labels other than the known one of its child are ruled out; at most 0.
    chances : float64[n_links, n_labels]
        Probability of each label if the link is there.
    """

    sums: Array
    known: Array
    chances: Array


class Labels(Protocol):
    """A scorer of labels that learns together with trees, see `isogloss.tasks.parse.labelled.LabelLearner`."""

    steps: Steps

    def terms(self, words: Words, sentences: NDArray[np.int64], parts: TreeParts) -> LabelTerms:
        """What labels add to links, with the weights of now."""
        ...

    def take(
        self, words: Words, sentences: NDArray[np.int64], parts: TreeParts, terms: LabelTerms, asked: Asked
    ) -> None:
        """One step."""


def likelihood(trees: LoopyTrees, heads: NDArray[np.int32], labels: Array | None = None) -> Asked:
    r"""Minus the log probability of the known heads, :math:`-\log \sum_{y \ni known} p(y \mid x)`, and of known labels.

    `labels` is the `known` of `LabelTerms`, where labels are part of the trees.

    Its derivative is the posterior of a part less the posterior among the trees that have the known heads; where all
    are known that is 1 or 0, also if no tree of this kind has them (a projective model of crossing links). With larger
    parts than links, posteriors are beliefs and log Z is Bethe's.
    """
    total, marginals = trees.log_partition(), trees.marginals().values
    parts = trees.layout
    wanted = parts.indicate(heads)
    labelled = trees
    if labels is not None:
        labelled = trees.with_scores(trees.scores.like(with_links(parts, trees.scores.values, labels)))
    gold = _sums(wanted * labelled.scores.values, np.diff(parts.offsets))
    partial = _sums((heads < 0).astype(np.float64), parts.lengths) > 0
    if partial.any():
        clamped = labelled.having(heads)
        values, beliefs = clamped.partitions_and_beliefs()
        impossible = partial & ~(values > -np.inf)  # a sentence that no tree fits asks for nothing
        gold = np.where(partial, np.where(impossible, total, values), gold)
        every, none = (np.repeat(some, np.diff(parts.offsets)) for some in (partial, impossible))
        wanted = np.where(every, beliefs, wanted)
        return Asked(np.where(none, 0.0, marginals - wanted), total - gold, np.where(none, 0.0, wanted))
    return Asked(marginals - wanted, total - gold, wanted)


def with_links(parts: TreeParts, scores: Array, values: Array) -> Array:
    """float64[n_parts]: scores of parts, with a value added to each link."""
    added = scores.copy()
    added[parts.link_places] += values
    return kept(added)


def _sums(values: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of consecutive runs; runs may be empty."""
    before = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.cumsum(lengths)
    return np.asarray(before[ends] - before[ends - lengths])


def risk(trees: LoopyTrees, heads: NDArray[np.int32]) -> Asked:
    r"""The expected number of wrong heads, :math:`\sum_j 1 - p(y_j^* \mid x)`.

    Its derivative by the score of a part is minus the covariance of the part with the number of right heads: exact for
    links alone (Smith 2010, equations 3.9–3.14), else by differences of beliefs.
    """
    from isogloss.learners.risk import hessian_vector

    parts = trees.layout
    right = parts.indicate(heads)
    cost = np.zeros(parts.n_parts)
    cost[parts.link_places] = right[parts.link_places]
    chance = trees.marginals().values * cost
    known = _sums((heads >= 0).astype(np.float64), parts.lengths)
    losses = known - _sums(chance, np.diff(parts.offsets))
    if parts.families:
        moved = _moved(trees, cost)
    else:
        exact = trees.tree_factor()
        vector = parts.of_links(cost[parts.link_places], 0.0)
        found = hessian_vector(exact, vector)
        moved = found.values[parts.cells]
    return Asked(-moved, losses)


def _moved(trees: LoopyTrees, vector: Array, step: float = 1e-3) -> Array:
    """How beliefs move when scores move along a vector: a central difference."""
    there, back = (
        trees.with_scores(trees.scores.like(kept(trees.scores.values + sign * step * vector))).marginals().values
        for sign in (1, -1)
    )
    return np.asarray((there - back) / (2 * step))


def perceptron(trees: LoopyTrees, heads: NDArray[np.int32]) -> Asked:
    """Parts of the best tree that should not be there, and those that should; losses are wrong heads."""
    return _compared(trees, heads, best_trees(trees, "map"), margin=False)


def mira(trees: LoopyTrees, heads: NDArray[np.int32]) -> Asked:
    """As for the perceptron, with the tree that is best when every wrong head earns 1; losses are hinges."""
    parts = trees.layout
    known = heads[parts.link_words]
    harder = trees.scores.values.copy()
    harder[parts.link_places[(known >= 0) & (known != parts.head)]] += 1.0
    found = best_trees(trees.with_scores(trees.scores.like(kept(harder))), "map")
    return _compared(trees, heads, found, margin=True)


def _compared(
    trees: LoopyTrees, heads: NDArray[np.int32], found: NDArray[np.int32], *, margin: bool
) -> Asked:  # fmt: skip
    parts, wanted = trees.layout, heads
    if heads.min(initial=0) < 0:  # the best tree that has the known heads, where there is one
        clamped = trees.having(heads)
        possible = np.repeat(clamped.partitions_and_beliefs()[0] > -np.inf, parts.lengths)
        wanted = np.where(heads >= 0, heads, found).astype(np.int32)
        if possible.all():
            wanted = best_trees(clamped, "map")
    values = parts.indicate(found) - parts.indicate(wanted)
    losses = _sums(((found != heads) & (heads >= 0)).astype(np.float64), parts.lengths)
    if margin:
        losses += _sums(values * trees.scores.values, np.diff(parts.offsets))
    return Asked(values, losses)


OBJECTIVES: dict[str, Objective] = {"likelihood": likelihood, "risk": risk, "mira": mira, "perceptron": perceptron}
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
        self.weights, self._state, self.step = np.zeros(n, np.float32), np.zeros((n, 4), np.float32), 0

    def take(self, gradient: Gradient, losses: NDArray[np.float64]) -> None:
        """One step."""
        from isogloss.tasks.parse._numba import updates

        self.step += 1
        lists = (gradient.places, gradient.ends, gradient.numbers, gradient.parts, np.float32(self.step))
        if self.margins:
            margin_step: Any = updates.margin_step
            margin_step(*lists, losses, float(self.rate), self.weights, self._state)
        else:
            options = (np.float32(self.rate), np.float32(self.l2), self.weights, self._state)
            with using_threads() as threads:  # any number of blocks gives the same
                run_blocks(updates.adagrad, threads, *lists, *options)

    def mean(self) -> NDArray[np.float32]:
        """float32[n]: the mean of the weights since the last `forget`."""
        from isogloss.tasks.parse._numba.updates import averaged

        out = np.empty_like(self.weights)
        run_blocks(averaged, 1, np.float32(self.step), self.weights, self._state, out)
        return out

    def forget(self) -> None:
        """Let the mean begin here."""
        from isogloss.tasks.parse._numba.updates import LAST, TOTALS

        self._state[:, TOTALS] = 0
        self._state[:, LAST] = 0
        self.step = 0

    def dump(self) -> dict[str, NDArray[Any]]:
        """All that the next step needs."""
        return {"weights": self.weights, "state": self._state, "step": np.array(self.step)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go back to where `dump` was."""
        self.weights[:], self._state[:], self.step = arrays["weights"], arrays["state"], int(arrays["step"])


@dataclass(frozen=True)
class Passes:
    """How many passes are done. What has been learnt is in the learner: weights move in place."""

    iteration: int = 0


class Seen(NamedTuple):
    """What a pass has to say: the mean loss of a word while it went on, and words for people."""

    objective: float
    detail: str = ""


class TreeLearner:
    """Learns weights of parts; a step is a pass over all sentences, for `isogloss.learners.runner.run`.

    Parameters
    ----------
    scorer : PartScorer
        With the table of features; its weights are set here.
    words : Words
    candidates : Candidates
        The links that are looked at.
    heads : int32[n_words]
        −1 where not known; sentences without any known head are passed over.
    shape : Shape
    settings : Settings
    labels : Labels, optional
        Learns its weights together with those of parts, by likelihood.
    within : callable, optional
        Told how much of a pass is done, from 0 to 1.
    """

    def __init__(
        self,
        scorer: PartScorer,
        words: Words,
        candidates: Candidates,
        heads: NDArray[np.int32],
        shape: Shape,
        settings: Settings,
        labels: Labels | None = None,
        within: Callable[[float], object] = lambda share: None,
    ) -> None:
        rate = 0.0 if settings.trainer == "perceptron" else settings.rate
        self.steps = Steps(len(scorer.table), rate=rate, l2=settings.l2, margins=settings.trainer in MARGINS)
        scorer.weights = self.steps.weights
        self.scorer, self.words, self.candidates, self.heads, self.shape = scorer, words, candidates, heads, shape
        self.settings, self.labels, self.within = settings, labels, within
        known = _sums((heads >= 0).astype(np.float64), words.lengths)
        self.useful, self.n_known = np.flatnonzero(known > 0), float(known.sum())

    def step(self, state: Passes) -> tuple[Passes, Seen]:
        """One pass."""
        loss = self.go_over(state.iteration)
        self.settle(state.iteration)
        return Passes(state.iteration + 1), Seen(loss)

    def go_over(self, number: int) -> float:
        """Learn from all sentences, in an order that depends on the number of the pass; the mean loss of a word."""
        settings, lost = self.settings, 0.0
        objective = OBJECTIVES[settings.trainer]
        if settings.trainer == "risk" and number < FIRST_BY_LIKELIHOOD * settings.iterations:
            objective = likelihood
        mixed = np.random.default_rng([settings.seed, number]).permutation(self.useful)
        for start in range(0, len(mixed), settings.batch):
            lost += self._learn_from(mixed[start : start + settings.batch], objective)
            if start // settings.batch % 16 == 0:
                self.within(start / len(mixed))
        return lost / max(1.0, self.n_known)

    def _learn_from(self, sentences: NDArray[np.int64], objective: Objective) -> float:
        """One step of the weights; the loss of the sentences before it."""
        words, labels = self.words, self.labels
        parts = TreeParts.of(self.candidates, self.shape.families, sentences)
        scores, gold = self.scorer.scores(words, sentences, parts), self._heads_of(sentences)
        if labels is None:
            asked = objective(self.shape.trees(parts, scores), gold)
        else:
            terms = labels.terms(words, sentences, parts)
            asked = likelihood(self.shape.trees(parts, with_links(parts, scores, terms.sums)), gold, terms.known)
            labels.take(words, sentences, parts, terms, asked)
        self.steps.take(self.scorer.gradient(words, sentences, parts, asked.values, least=LEAST), asked.losses)
        return float(asked.losses.sum())

    def _heads_of(self, sentences: NDArray[np.int64]) -> NDArray[np.int32]:
        offsets = self.candidates.offsets
        return np.concatenate([self.heads[offsets[s] : offsets[s + 1]] for s in sentences.tolist()])

    def settle(self, number: int) -> None:
        """After a pass: the first is far from where the others are, and does not count for the mean."""
        if number == 0 and self.settings.iterations > 1:
            self.steps.forget()
            if self.labels is not None:
                self.labels.steps.forget()
