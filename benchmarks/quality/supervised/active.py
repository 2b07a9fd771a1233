"""Which pairs to align by hand: drawn at random, or suggested by a model that learns from those before."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.supervised.models import Model, NotYet
from benchmarks.quality.supervised.texts import POOL_SEED, Benchmark, Gold, Numbers
from isogloss.data import Alignment, Bitext, Links

BEGIN = 25
"""Pairs that are drawn before there is a model to ask."""
AT_A_TIME = 25


def drawn(n: int, number: int) -> Numbers:
    """An order of the pool; smaller sets are within larger ones."""
    return np.random.default_rng([POOL_SEED, number]).permutation(n)


def suggested(place: Benchmark, model: Model, number: int, n: int) -> Numbers:
    """The first n pairs of a chain of suggestions that begins with a draw."""
    order = drawn(len(place.pool), number)[:BEGIN]
    while len(order) < n:
        order = np.concatenate([order, _more(place, model, tuple(order.tolist()))])
    return order[:n]


@cache
def _more(place: Benchmark, model: Model, chosen: tuple[int, ...]) -> Numbers:
    """Further pairs, by what a model that has learnt from the chosen ones doubts."""
    try:
        from isogloss.tasks.align.supervised.suggest import suggest
    except ImportError as problem:
        raise NotYet(f"suggest: {problem}") from None
    aligner = model.make(0, place.threads)
    gold = place.pool.take(np.sort(chosen))
    aligner.fit_features(place.features(gold, aligner), gold.links)
    bitext = place.bitext(place.pool)
    found = suggest(_Kept(aligner, place, place.pool), bitext, AT_A_TIME, gold=_only(place.pool.links, chosen))
    return np.array([one.pair for one in found], np.int64)


class _Kept:
    """An aligner that has its features already; for the whole pool, asked once."""

    def __init__(self, aligner: Any, place: Benchmark, gold: Gold) -> None:
        self.aligner, self.place, self.gold = aligner, place, gold

    def predict_proba(self, bitext: Bitext) -> list[NDArray[Any]]:
        assert len(bitext) == len(self.gold)
        features = self.place.features(self.gold, self.aligner)
        return [posterior for _, posterior in self.aligner._predict(features, True)]


def _only(gold: Links, chosen: tuple[int, ...]) -> Links:
    """Gold of the chosen pairs; nothing of the others, which nobody has aligned yet."""
    kept = set(chosen)
    return Links.of(row if number in kept else Alignment(frozenset()) for number, row in enumerate(gold))
