r"""Posteriors of unlabelled items whose labels keep to given proportions.

.. math:: \min_q\; \sum_i E_{q_i}[-\log p(y \mid x_i)] - \tfrac1\beta H(q_i)
    \qquad \text{such that} \quad \frac1n \sum_i q_i(y) = \pi_y

With sharpness β = 1 this is the projection of posterior regularisation, min KL(q‖p); with larger β labels become
surer, and for β → ∞ this is self-training in which each label is given to as many items as its proportion says. The
constraint is what keeps self-training from giving all items the label that it likes best.

References
----------
Ganchev, Graça, Gillenwater and Taskar, Posterior Regularization for Structured Latent Variable Models, JMLR 11, 2010.
Mann and McCallum, Generalized Expectation Criteria, JMLR 11, 2010 (label regularisation, a penalty in place of the
constraint).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.learners.posterior.features import Features
from isogloss.learners.posterior.project import project
from isogloss.structures import FactoredChain

__all__ = ["Proportioned", "checked_proportions", "with_proportions"]

Array = NDArray[np.float64]


class Proportioned(NamedTuple):
    """What `with_proportions` found.

    posterior : float64[n, n_labels]
        q.
    offsets : float64[n_labels]
        What was added to the log scores of labels, with mean 0.
    divergence : float
        KL(q‖p) of all items together, p being the sharpened posterior.
    """

    posterior: Array
    offsets: Array
    divergence: float


def checked_proportions(proportions: ArrayLike, n_labels: int, place: str) -> Array:
    """float64[n_labels], once it is known that they are not negative and sum to 1."""
    found = np.asarray(proportions, np.float64)
    if found.shape != (n_labels,) or not (found >= 0).all() or abs(float(found.sum()) - 1) > 1e-6:
        raise ParameterError(f"{place}: proportions should be {n_labels} numbers from 0 on that sum to 1, not {found}")
    return found


def with_proportions(
    scores: ArrayLike, proportions: ArrayLike, *, sharpness: float = 1.0, slack: float = 0.0, tolerance: float = 1e-4
) -> Proportioned:
    """The posteriors nearest to those of a model whose labels keep to proportions.

    Parameters
    ----------
    scores : float64[n, n_labels]
        Log scores of labels, up to a constant for each item.
    proportions : float64[n_labels]
        π. A label with proportion 0 is given to no item.
    sharpness : float
        β.
    slack : float
        By how much proportions may be missed, in the 2-norm.
    tolerance : float
        By how much they may be missed beyond the slack, times the number of items.

    Examples
    --------
    >>> found = with_proportions(np.log([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), [1 / 3, 2 / 3])
    >>> found.posterior.round(3).tolist(), found.posterior.mean(axis=0).round(3).tolist()
    ([[0.521, 0.479], [0.326, 0.674], [0.153, 0.847]], [0.333, 0.667])
    """
    given = np.asarray(scores, np.float64) * sharpness
    if given.ndim != 2 or given.shape[1] < 2 or not np.isfinite(given).all() or not sharpness > 0:
        raise ParameterError("with_proportions: scores should be [items, labels] and finite, and sharpness above 0")
    n, k = given.shape
    wanted = checked_proportions(proportions, k, "with_proportions")
    if not n:
        return Proportioned(np.zeros((0, k)), np.zeros(k), 0.0)
    allowed = wanted > 0
    given = np.where(allowed, given - given.max(axis=1, keepdims=True, where=allowed, initial=-np.inf), -np.inf)
    labels = Features.indexed(np.broadcast_to(np.arange(k), (n, k)), k)
    start = np.zeros(k)  # where proportions would be met if all items were alike
    start[allowed] = np.logaddexp.reduce(given[:, allowed], axis=0) - np.log(n) - np.log(wanted[allowed])
    found = project(
        FactoredChain(given, np.zeros((k, k))), labels, n * wanted, equality=True, slack=n * slack,
        tolerance=n * tolerance, start=start,
    )  # fmt: skip
    offsets = -found.multipliers
    return Proportioned(found.q.marginals(), offsets - offsets.mean(), found.divergence)
