"""Learning weights: stochastic gradients of the likelihood, from beliefs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.features import KeyTable
from isogloss.features.gradients import Gradient
from isogloss.learners.models import pieces
from isogloss.learners.runner import run
from isogloss.learners.stochastic import AdaGrad
from isogloss.tasks.parse.joint._numba.layout import Sentence, Shape
from isogloss.tasks.parse.joint.features import link_templates
from isogloss.tasks.parse.joint.schema import Schema

__all__ = [
    "Inference", "JointLikelihood", "Settings", "all_beliefs", "learn", "learner_of", "link_table", "potentials_of",
    "shape_of",
]  # fmt: skip

_FARTHEST = 300.0
_FIRST_TABLE = 1 << 16


class Inference(NamedTuple):
    """What is inferred, and how."""

    links: bool
    tags: bool
    projective: bool
    single_root: bool
    iterations: int
    tolerance: float = 0.0
    small: float = 1e-4
    """Derivatives by scores that are left out."""


class Settings(NamedTuple):
    """How steps are made."""

    passes: int
    rate: float
    variance: float
    batch: int
    seed: int


def shape_of(
    schema: Schema, n_features: int, links: KeyTable | None = None, government: bool = False
) -> tuple[Shape, int]:
    """Where weights are, and how many there are; without `links`, of a tagger."""
    if links is None:
        links = KeyTable.of(np.zeros(0, np.uint64))
    sizes, starts = schema.sizes, schema.starts
    at = n_features * int(starts[-1])
    bigrams, consistency = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    for a, size in enumerate(sizes.tolist()):
        bigrams[a] = at
        at += (size + 1) ** 2
    for a, size in enumerate(sizes.tolist()):
        consistency[a] = at
        at += int(sizes[0]) * size if a else 0
    shape = Shape(sizes, starts, bigrams, consistency, at, government, links.slots, link_templates())
    return shape, at + len(links.payload)


def link_table(sentences: Sequence[Sentence], n_attributes: int, reach: int, government: bool = False) -> KeyTable:
    """The features of links, with numbers."""
    from isogloss.tasks.parse.joint._numba.features import collect

    slots, counts, used = np.zeros(_FIRST_TABLE, np.uint64), np.zeros(_FIRST_TABLE, np.int32), 0
    for sentence in sentences:
        given = (link_templates(), sentence, n_attributes, reach, government)
        slots, counts, used = collect(*given, slots, counts, used)
    return KeyTable.of(np.sort(slots[slots != 0]))


def potentials_of(shape: Shape, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp of the weights of TAG-BIGRAM and TAG-CONSISTENCY."""
    dense = weights[shape.bigrams[0] : shape.link_start]
    return np.exp(np.clip(dense, -_FARTHEST, _FARTHEST))


def all_beliefs(
    sentences: Sequence[Sentence], shape: Shape, weights: NDArray[np.float64], how: Inference
) -> list[tuple[NDArray[np.float64], NDArray[np.float64], int]]:
    """Posteriors of tags and of links of each sentence, and the iterations it took; on threads."""
    from isogloss.tasks.parse.joint._numba.learn import beliefs

    out: list[Any] = [None] * len(sentences)
    potentials = potentials_of(shape, weights)

    def work(block: int, blocks: int) -> None:
        for s in range(block, len(sentences), blocks):
            out[s] = beliefs(
                sentences[s], shape, weights, potentials, how.links, how.projective, how.single_root, how.iterations,
                how.tolerance,
            )  # fmt: skip

    if sentences:
        run_blocks(work, min(len(sentences), 8))
    return out


class JointLikelihood:
    r"""The log-likelihood of tags and trees, with Bethe's log Z: what is raised.

    .. math:: \nabla = f(gold) - E_b[f]

    where expectations are by the beliefs of factors. Sentences of a minibatch are worked on side by side.

    Parameters
    ----------
    sentences : sequence of Sentence
    shape : Shape
    n_weights : int
    how : Inference
    """

    def __init__(self, sentences: Sequence[Sentence], shape: Shape, n_weights: int, how: Inference) -> None:
        self.sentences, self.shape, self.n_weights, self.how = sentences, shape, n_weights, how

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def n_words(self) -> int:
        """Words of all sentences."""
        return sum(len(sentence.words) - 1 for sentence in self.sentences)

    def support(self, items: NDArray[np.int64]) -> None:
        """Features are found as they are needed, and never listed."""
        return

    def gradient(self, weights: NDArray[np.float64], items: NDArray[np.int64]) -> tuple[float, Gradient]:
        """The log-likelihood of some sentences, and its gradient."""
        from isogloss.tasks.parse.joint._numba.learn import gradient

        found: list[Any] = [None] * len(items)
        how, potentials, chosen = self.how, potentials_of(self.shape, weights), items.tolist()

        def work(block: int, blocks: int) -> None:
            found[block] = gradient(
                self.sentences[chosen[block]], self.shape, weights, potentials, how.links, how.tags, how.projective,
                how.single_root, how.iterations, how.tolerance, how.small,
            )  # fmt: skip

        run_blocks(work, len(items))
        return sum(value for _, _, value in found), Gradient.of([(places, slopes) for places, slopes, _ in found])

    def add_gradient(
        self, weights: NDArray[np.float64], out: NDArray[np.float64], items: NDArray[np.int64] | None = None
    ) -> float:
        """The log-likelihood of some sentences, or of all; its gradient is added to `out`."""
        total = 0.0
        for some in pieces(len(self), items, 16):
            value, lists = self.gradient(weights, some)
            lists.add_to(out)
            total += value
        return total


def learner_of(objective: JointLikelihood, settings: Settings, within: Any = None) -> AdaGrad:
    """AdaGrad with a Gaussian prior; weights are not averaged."""
    return AdaGrad(
        objective, rate=settings.rate, l2=1 / settings.variance, batch=settings.batch, seed=settings.seed,
        damping=0.0, average_from=None, in_place=True, within=within,
    )  # fmt: skip


def learn(
    objective: JointLikelihood,
    settings: Settings,
    refine: Callable[[NDArray[np.float64]], JointLikelihood] | None = None,
) -> NDArray[np.float64]:
    """Weights after some passes; after the first, `refine` may give the same sentences with fewer values."""
    learner, rest = learner_of(objective, settings), settings.passes
    state = learner.init()
    if refine is not None and settings.passes > 1:
        state, rest = run(learner, state, iterations=1).state, settings.passes - 1
        learner = learner_of(refine(state.weights), settings)
    return np.asarray(run(learner, state, iterations=rest).state.weights)
