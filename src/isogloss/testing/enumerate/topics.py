"""All ways to give the words of a few tiny documents topics; nothing of ours is used."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["mixture_of", "probability_of_words", "topic_joint", "topic_posterior"]

Array = NDArray[np.float64]
Word = tuple[int, int, int]
"""Document, language and number of a word."""


def topic_joint(
    words: Sequence[Word], topics: Sequence[int], alpha: Sequence[float], beta: float, sizes: Sequence[int]
) -> float:
    """log P(words, topics), multinomials summed out: each word in turn given those before it (a Pólya urn).

    >>> round(math.exp(topic_joint([(0, 0, 1), (0, 0, 1)], [0, 0], [1.0], 1.0, [2])), 4)  # 1/2 · 2/3
    0.3333
    """
    in_document: dict[tuple[int, int], int] = {}
    of_document: dict[int, int] = {}
    in_topic: dict[tuple[int, int, int], int] = {}
    of_topic: dict[tuple[int, int], int] = {}
    value = 0.0
    for (d, language, w), t in zip(words, topics, strict=True):
        value += math.log(in_document.get((d, t), 0) + alpha[t]) - math.log(of_document.get(d, 0) + sum(alpha))
        value += math.log(in_topic.get((language, w, t), 0) + beta)
        value -= math.log(of_topic.get((language, t), 0) + sizes[language] * beta)
        in_document[d, t] = in_document.get((d, t), 0) + 1
        of_document[d] = of_document.get(d, 0) + 1
        in_topic[language, w, t] = in_topic.get((language, w, t), 0) + 1
        of_topic[language, t] = of_topic.get((language, t), 0) + 1
    return value


def topic_posterior(
    words: Sequence[Word], alpha: Sequence[float], beta: float, sizes: Sequence[int]
) -> dict[tuple[int, ...], float]:
    """P(topics | words) of every assignment."""
    states = list(itertools.product(range(len(alpha)), repeat=len(words)))
    weights = [math.exp(topic_joint(words, state, alpha, beta, sizes)) for state in states]
    return {state: weight / sum(weights) for state, weight in zip(states, weights, strict=True)}


def _weights(shares: Array, alpha: Sequence[float]) -> dict[tuple[int, ...], float]:
    """P(words, topics) of one document, shares[i, t] being the probability of word i in topic t."""
    found = {}
    for state in itertools.product(range(len(alpha)), repeat=len(shares)):
        weight, counts = 1.0, [0.0] * len(alpha)
        for i, t in enumerate(state):
            weight *= shares[i, t] * (counts[t] + alpha[t]) / (i + sum(alpha))
            counts[t] += 1
        found[state] = weight
    return found


def probability_of_words(shares: Array, alpha: Sequence[float]) -> float:
    """P(words) of one document whose words have fixed probabilities in topics: float64[n, n_topics].

    >>> round(float(probability_of_words(np.array([[0.5, 0.5], [0.25, 0.25]]), [1.0, 2.0])), 6)
    0.125
    """
    return sum(_weights(shares, alpha).values())


def mixture_of(shares: Array, alpha: Sequence[float]) -> Array:
    """The mean of (N_t + alpha_t) / (N + A) over the posterior of the topics of one document's words."""
    found, whole = np.zeros(len(alpha)), 0.0
    for state, weight in _weights(shares, alpha).items():
        counts = np.bincount(np.array(state, int), minlength=len(alpha))
        found += weight * (counts + np.asarray(alpha)) / (len(state) + sum(alpha))
        whole += weight
    return found / whole
