r"""How frequent each label is among items without labels, which come from elsewhere than the labelled ones.

`em_proportions` and `confusion_proportions` ask a classifier. Both are right if items of one label are alike in both
places (:math:`p(x \mid y)` is the same), and wrong where they are not: a domain in which everybody says "problem" looks
negative. `stable_features` names the features of which it can be believed: those that are as frequent in the new
domain as the labels, in the proportions found so far, would make them.

References
----------
Saerens, Latinne and Decaestecker, Adjusting the Outputs of a Classifier to New a Priori Probabilities, Neural
Computation 14(1), 2002. Lipton, Wang and Smola, Detecting and Correcting for Label Shift with Black Box Predictors,
ICML 2018.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.learners.semi_supervised.proportions import checked_proportions

__all__ = ["confusion_proportions", "em_proportions", "stable_features"]

Array = NDArray[np.float64]
SUREST = 1e-9
"""Posteriors that are smaller are taken for this."""


def em_proportions(
    posteriors: ArrayLike,
    trained: ArrayLike,
    *,
    iterations: int = 1000,
    tolerance: float = 1e-8,
    least: float = 1e-3,
    strength: float = 0.0,
) -> Array:
    r"""The proportions of labels under which posteriors are most likely, by EM.

    .. math:: q_i(y) \propto p(y \mid x_i)\, \pi_y / \pi^0_y, \qquad
        \pi_y \leftarrow \frac1{n + s} \Big( \sum_i q_i(y) + s\, \pi^0_y \Big)

    Parameters
    ----------
    posteriors : float64[n, n_labels]
        Of a classifier that is right about how sure it is where it was trained,
    trained : float64[n_labels]
        and the proportions of labels there, π⁰.
    least : float
        No label has less. No posterior is taken for less than `SUREST` either: a classifier that is wholly sure of
        some item would otherwise rule out what all other items say.
    strength : float
        s: as how many items it counts that proportions are those of training, which is a Dirichlet prior. Of a few
        items, posteriors that are all a little wrong would otherwise give one label everything.

    Returns
    -------
    float64[n_labels]

    Examples
    --------
    >>> em_proportions([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]).round(3).tolist()
    [0.812, 0.188]
    """
    known, first = np.asarray(posteriors, np.float64), np.asarray(trained, np.float64)
    if known.ndim != 2 or not np.isfinite(known).all() or (known < 0).any():
        raise ParameterError("em_proportions: posteriors should be [items, labels], finite, and 0 or more")
    shares = checked_proportions(first, known.shape[-1], "em_proportions")
    if not (shares > 0).all():
        raise ParameterError(
            f"em_proportions: each label should be among those learnt from, not in proportions {first}"
        )
    ratios = np.maximum(known, SUREST) / shares
    found = first.copy()
    for _ in range(iterations):
        joint = ratios * found
        counts = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + strength * first
        fresh = counts / (len(joint) + strength) if len(joint) else found
        fresh = np.maximum(fresh, least)
        fresh /= fresh.sum()
        if np.abs(fresh - found).max() < tolerance:
            return np.asarray(fresh)
        found = fresh
    return found


def confusion_proportions(held_out: ArrayLike, labels: ArrayLike, posteriors: ArrayLike, least: float = 1e-3) -> Array:
    r"""The proportions that explain what a classifier says of new items, given what it says of known ones.

    .. math:: \pi = \arg\min_\pi \| C \pi - \bar p \|, \qquad C_{y'y} = E[p(y' \mid x) \mid y], \quad
        \bar p = E_{new}[p(y' \mid x)]

    over proportions (least squares with nothing below 0).

    Parameters
    ----------
    held_out : float64[m, n_labels]
        Posteriors of items whose labels are known and were not learnt from,
    labels : int64[m]
        and these labels; each has to be there.
    posteriors : float64[n, n_labels]
        Posteriors of the new items.

    Examples
    --------
    >>> held_out = [[0.8, 0.2], [0.8, 0.2], [0.2, 0.8], [0.2, 0.8]]
    >>> confusion_proportions(held_out, [0, 0, 1, 1], [[0.8, 0.2]] * 3 + [[0.2, 0.8]]).round(3).tolist()
    [0.75, 0.25]
    """
    from scipy.optimize import nnls

    known, right, new = np.asarray(held_out, float), np.asarray(labels, np.int64), np.asarray(posteriors, float)
    k = known.shape[1]
    if (np.bincount(right, minlength=k) == 0).any():
        raise ParameterError("confusion_proportions: each label should be among the known items")
    table = np.stack([known[right == y].mean(axis=0) for y in range(k)], axis=1)
    heavy = 1e3 * max(1.0, float(np.abs(table).max()))  # so that shares sum to 1
    found, _ = nnls(np.concatenate([table, np.full((1, k), heavy)]), np.append(new.mean(axis=0), heavy))
    found = np.maximum(found, least)
    return np.asarray(found / found.sum())


def stable_features(
    known: Sparse, targets: ArrayLike, new: Sparse, proportions: ArrayLike, *, window: float = 1.0, least: int = 5
) -> NDArray[np.bool_]:
    r"""bool[n_features]: features about as frequent among new items as proportions of labels make one expect.

    .. math:: \Big| \log \frac{p_{new}(f)}{\sum_y \pi_y\, p(f \mid y)} - m \Big| \le window

    where m is the median over features, since items may be longer or shorter as a whole.

    Parameters
    ----------
    known : Sparse
        Labelled items, of indicators,
    targets : float64[n, n_labels]
        and their labels.
    new : Sparse
        Unlabelled items.
    proportions : float64[n_labels]
        π.
    least : int
        In fewer items of either kind, nothing is said of a feature, and it is not stable.
    """
    wanted = np.asarray(targets, np.float64)
    shares = checked_proportions(proportions, wanted.shape[1], "stable_features")
    each = np.stack([_met(known, column) for column in wanted.T])
    met = _met(new, np.ones(new.n_rows))
    enough: NDArray[np.bool_] = (each.sum(axis=0) >= least) & (met >= least)
    if not enough.any():
        return enough
    rates = (each + 0.5) / (wanted.sum(axis=0)[:, None] + 1)
    moved = np.log((met + 0.5) / (new.n_rows + 1)) - np.log(shares @ rates)
    return np.asarray(enough & (np.abs(moved - np.median(moved[enough])) <= window))


def _met(rows: Sparse, counts: Array) -> Array:
    """In how many items each feature is, whatever its value."""
    return Sparse(rows.indptr, rows.indices, rows.n_indicators).totals(counts)
