"""Learning weights: stochastic gradients of the likelihood, from beliefs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.features import KeyTable
from isogloss.tasks.parse.joint._numba.layout import Sentence, Shape
from isogloss.tasks.parse.joint.features import link_templates
from isogloss.tasks.parse.joint.schema import Schema

__all__ = ["Inference", "Settings", "all_beliefs", "learn", "link_table", "potentials_of", "shape_of"]

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


def learn(
    sentences: Sequence[Sentence],
    shape: Shape,
    weights: NDArray[np.float64],
    how: Inference,
    settings: Settings,
    watch: Callable[[int, float, Callable[[], NDArray[np.float64]]], None] | None = None,
    refine: Callable[[NDArray[np.float64]], Sequence[Sentence]] | None = None,
) -> NDArray[np.float64]:
    """Weights after some passes of AdaGrad over sentences in random order, from the given ones.

    .. math:: \\nabla = f(gold) - E_b[f] - \\theta / (\\sigma^2 N)

    where expectations are by the beliefs of factors. Sentences of a batch are worked on side by side and added up in
    order, so that nothing depends on the number of threads. After each pass, `watch` is told its number, the mean
    log-likelihood of a word as it was met, and how to get the weights. After the first, `refine` may give the same
    sentences with fewer values, for the rest.
    """
    from isogloss.tasks.parse.joint._numba.learn import decay_all, gather, gradient, step

    size = len(weights)
    weights, squares, sums = weights.copy(), np.zeros(size), np.zeros(size)
    marks, touched, last = np.zeros(size, np.bool_), np.zeros(size, np.int64), np.zeros(size, np.int64)
    rng, now = np.random.default_rng(settings.seed), 0
    decay = settings.batch / (settings.variance * max(1, len(sentences)))
    words = sum(len(sentence.words) - 1 for sentence in sentences)

    def current() -> NDArray[np.float64]:
        decay_all(weights, squares, last, now, settings.rate, decay)
        return weights.copy()

    for number in range(settings.passes):
        order, total = rng.permutation(len(sentences)), 0.0
        for first in range(0, len(order), settings.batch):
            chosen = [sentences[s] for s in order[first : first + settings.batch]]
            count = 0
            for places, values, gain in _gradients(chosen, shape, weights, how, gradient):
                count = gather(places, values, sums, marks, touched, count)
                total += gain
            step(touched, count, sums, marks, weights, squares, last, now, settings.rate, decay)
            now += 1
        if watch is not None:
            watch(number, total / max(1, words), current)
        if refine is not None and number == 0 and settings.passes > 1:
            sentences = refine(current())
    return current()


def _gradients(
    chosen: Sequence[Sentence], shape: Shape, weights: NDArray[np.float64], how: Inference, gradient: Any
) -> list[Any]:
    out: list[Any] = [None] * len(chosen)
    potentials = potentials_of(shape, weights)

    def work(block: int, blocks: int) -> None:
        out[block] = gradient(
            chosen[block], shape, weights, potentials, how.links, how.tags, how.projective, how.single_root,
            how.iterations, how.tolerance, how.small,
        )  # fmt: skip

    run_blocks(work, len(chosen))
    return out
