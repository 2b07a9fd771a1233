"""All assignments of a small factor graph, and all that a factor can say."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.testing.enumerate.base import Array, BruteForce

__all__ = ["assignments", "brute_force_factors", "brute_force_messages", "having"]

Values = NDArray[np.int64]
Rule = Callable[[Values], NDArray[np.bool_]]


def assignments(sizes: Sequence[int]) -> Values:
    """int64[count, n_variables]: every combination of values, of sizes[v] values for variable v.

    >>> assignments([2, 3]).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    listed = list(itertools.product(*(range(size) for size in sizes)))
    return np.array(listed, np.int64).reshape(len(listed), len(sizes))


def having(*pairs: tuple[int, int]) -> Rule:
    """The rule that holds where each of these (variable, value) is so.

    >>> having((0, 1), (1, 2))(assignments([2, 3])).tolist()
    [False, False, False, False, False, True]
    """
    return lambda values: np.all([values[:, variable] == value for variable, value in pairs], axis=0)


def brute_force_factors(
    sizes: Sequence[int], parts: Sequence[Rule], scores: ArrayLike, hard: Sequence[Rule] = ()
) -> BruteForce:
    """Every assignment that keeps the hard rules; part p, worth scores[p], is in those for which parts[p] holds.

    >>> wet = brute_force_factors([2, 2], [having((0, 1)), having((0, 1), (1, 1))], [0.0, np.log(3)])
    >>> round(float(np.exp(wet.log_partition)), 9), wet.marginals.round(3).tolist()
    (6.0, [0.667, 0.5])
    """
    values = assignments(sizes)
    for rule in hard:
        values = values[rule(values)]
    worth = np.asarray(scores, np.float64)
    indicators = np.array([rule(values) for rule in parts], np.float64).reshape(len(parts), len(values)).T
    log_scores = np.array([worth[row > 0].sum() for row in indicators])
    return BruteForce([tuple(int(v) for v in row) for row in values], indicators, log_scores)


def brute_force_messages(
    values: Values, log_scores: ArrayLike, incoming: Sequence[ArrayLike], *, maximise: bool = False
) -> list[Array]:
    """What a factor says to each of its variables: for every value the log total of the assignments that have it.

    Parameters
    ----------
    values : int64[count, n_variables]
        Assignments to the factor's variables that it allows at all.
    log_scores : float64[count]
    incoming : list of float64[sizes[v]]
        Log weights of values, from elsewhere; those of the variable spoken to are left out.

    Returns
    -------
    list of float64[sizes[v]]
        Log weights, not normalised; −∞ for what cannot be.
    """
    weights = [np.asarray(logs, np.float64) for logs in incoming]
    heard = np.array([logs[values[:, v]] for v, logs in enumerate(weights)]).reshape(len(weights), len(values))
    out = []
    for v, logs in enumerate(weights):
        terms = np.asarray(log_scores, np.float64) + np.delete(heard, v, axis=0).sum(axis=0)
        said = [_total(terms[values[:, v] == value], maximise) for value in range(len(logs))]
        out.append(np.array(said))
    return out


def _total(terms: Array, maximise: bool) -> float:
    top = float(terms.max(initial=-np.inf))
    return top if maximise or top == -np.inf else top + float(np.log(np.exp(terms - top).sum()))
