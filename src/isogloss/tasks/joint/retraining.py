"""Monolingual models that learn from what a bilingual one says of a bitext, beside the text they learnt from before."""

from __future__ import annotations

from typing import Any

import numpy as np

from isogloss.errors import ParameterError
from isogloss.progress import Progress
from isogloss.tasks.joint.views import view_of

__all__ = ["MIXTURES", "mixed", "retrained"]

MIXTURES = ("plain", "equal")
"""How added sentences count: like all others, or all together as much as all others."""


def mixed(view: Any, text: Any, added: Any, mixture: str = "equal") -> Any:
    """Text and added sentences together; of unequal parts, the smaller is repeated until both have about equal mass.

    Repeated sentences stand behind all others.
    """
    if mixture not in MIXTURES:
        raise ParameterError(f"mixture should be one of {', '.join(MIXTURES)}, not {mixture!r}")
    if text is None:
        return added
    parts = [text, added]
    if mixture == "equal" and text.n_words and added.n_words:
        small, large = sorted(parts, key=lambda part: int(part.n_words))
        rows = np.arange(len(small))
        more = round(large.n_words / small.n_words) - 1
        parts += [small.take(np.tile(rows, more))] if more else []
    return view.joined(parts)


def retrained(
    model: Any,
    text: Any,
    added: Any,
    progress: Progress | None = None,
    *,
    mixture: str | None = None,
    **keeping: Any,
) -> Any:
    """A model with the same options that learns from its text and from added sentences.

    With sentences that `Multiview.predict` annotated this is the bilingually retrained model of Burkett et al. (2010),
    figure 5; with sentences that the model annotated itself it is self-training, the baseline.

    Parameters
    ----------
    model
        The full model; it is left alone.
    text
        What it learnt from; None if that is not at hand, and added sentences are all that there is.
    added
        Annotated sentences.
    progress : Progress, optional
    mixture : "plain" or "equal", optional
        Whether added sentences count like all others (names), or all together as much as all others (trees and tags,
        the smaller part repeated); as suits the task if not given.
    **keeping
        `checkpoint` and `resume`, as of `fit`.
    """
    view = view_of(model)
    text = mixed(view, text, added, mixture or view.mixture)
    return view.fresh(model).fit(text, None, progress, **keeping)
