"""Weaker copies of models, which multiview learning asks for beside the full ones, and how weak they are.

A weak model should be about right, and worse than the full one in ways that a translation can make good: with equal
models there is nothing to learn of pairs, with a useless one nothing to begin with. Burkett et al. (2010) have weak
models 6 to 10 points of F1 below the full ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from isogloss.errors import ParameterError
from isogloss.progress import Progress
from isogloss.tasks.joint.views import View, view_of

__all__ = ["Weakness", "learn_weaker", "weakness", "without_words"]


class Weakness(NamedTuple):
    """How good two models are on the same text, in percent."""

    full: float
    weak: float

    @property
    def gap(self) -> float:
        """How much better the full one is."""
        return self.full - self.weak

    def __str__(self) -> str:
        return f"{self.weak:.1f} where the full model has {self.full:.1f}"


def without_words(model: Any) -> Any:
    """The model without the weights of what looks at whole words: nothing has to be learnt for it."""
    return view_of(model).without_words(model)


def learn_weaker(
    model: Any,
    text: Any,
    progress: Progress | None = None,
    *,
    blind_to: Sequence[str] | None = None,
    share: float = 1.0,
    seed: int = 0,
    **keeping: Any,
) -> Any:
    """A model with the same options that learns from less.

    Parameters
    ----------
    model
        A full model; it is left alone.
    text
        What it learnt from: sentences with names, tags or trees.
    progress : Progress, optional
    blind_to : sequence of str, optional
        Attributes that are not looked at; what suits the task if not given.
    share : float
        The share of the sentences that are learnt from.
    seed : int
        Seed of their choice.
    **keeping
        `checkpoint` and `resume`, as of `fit`.
    """
    if not 0 < share <= 1:
        raise ParameterError(f"learn_weaker: share should be a number above 0 and up to 1, not {share!r}")
    view: View = view_of(model)
    if share < 1:
        some = np.random.default_rng(seed).permutation(len(text))[: max(1, round(share * len(text)))]
        text = text.take(np.sort(some))
    fresh = view.fresh(model, view.weaker if blind_to is None else tuple(blind_to))
    return fresh.fit(text, None, progress, **keeping)


def weakness(full: Any, weak: Any, held_out: Any) -> Weakness:
    """How good both models are on text that neither has learnt from, by the score of their task."""
    view = view_of(full)
    return Weakness(*(float(view.score(model.predict(held_out), held_out, bootstrap=0)) for model in (full, weak)))
