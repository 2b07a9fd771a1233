"""Which measure to trust? How measures order systems beside how people do, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.metrics._resampling import interval_of

__all__ = ["Correlation", "correlate", "kendall_tau_b", "meta_table"]

Array = NDArray[np.float64]


def kendall_tau_b(one: Array, other: Array) -> float:
    """Kendall's tau with both kinds of ties taken into account; not a number where one side is all tied.

    Examples
    --------
    >>> kendall_tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])).__round__(3)
    0.333
    """
    first, second = (np.sign(each[:, None] - each[None, :]) for each in (one, other))
    below = math.sqrt(float((first != 0).sum()) * float((second != 0).sum()))
    return float((first * second).sum()) / below if below else math.nan


@dataclass(frozen=True)
class Correlation:
    """How a measure agrees with another, as a rule that of people; tau-b, from −1 to 1.

    Parameters
    ----------
    system, system_interval
        Of the means of systems, with a 95% interval over documents.
    summary, summary_interval
        The mean over documents of the tau of the systems in each; the interval is over documents.
    system_by_systems, summary_by_systems : (float, float)
        Intervals over systems instead.
    documents : int
        Documents that have a tau: those where neither measure is the same for all systems.
    """

    system: float
    summary: float
    system_interval: tuple[float, float]
    summary_interval: tuple[float, float]
    system_by_systems: tuple[float, float]
    summary_by_systems: tuple[float, float]
    documents: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data, in percent."""
        found: dict[str, Any] = {"system": 100 * self.system, "summary": 100 * self.summary}
        for name in ("system_interval", "summary_interval", "system_by_systems", "summary_by_systems"):
            found[name] = [100 * end for end in getattr(self, name)]
        return found | {"documents": self.documents}


def _levels(measure: Array, people: Array) -> tuple[float, Array]:
    with np.errstate(invalid="ignore"):
        system = kendall_tau_b(measure.mean(axis=0), people.mean(axis=0))
    each = np.array([kendall_tau_b(m, p) for m, p in zip(measure, people, strict=True)], np.float64)
    return system, each


def correlate(measure: Array, people: Array, *, bootstrap: int = 500, seed: int = 0) -> Correlation:
    """Compare a measure with people.

    Parameters
    ----------
    measure, people : float64[n_documents, n_systems]
        Scores of each summary; every system has one of each document.
    bootstrap : int
        Resamples for intervals; 0 for none.
    seed : int

    Examples
    --------
    >>> people = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])
    >>> found = correlate(people**2, people)
    >>> found.system, found.summary, found.documents
    (1.0, 1.0, 2)
    """
    one, other = np.asarray(measure, np.float64), np.asarray(people, np.float64)
    if one.shape != other.shape or one.ndim != 2 or not one.size:
        raise ParameterError(
            f"correlate: scores [n_documents, n_systems] are wanted, not {one.shape} and {other.shape}"
        )
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise ParameterError("correlate: a score is not a number")
    system, each = _levels(one, other)
    rng = np.random.default_rng(seed)
    drawn: list[list[float]] = [[], [], [], []]
    for _ in range(bootstrap):
        documents = rng.integers(len(one), size=len(one))
        drawn[0].append(kendall_tau_b(one[documents].mean(axis=0), other[documents].mean(axis=0)))
        drawn[1].append(_mean(each[documents]))
        systems = np.sort(rng.integers(one.shape[1], size=one.shape[1]))
        by_system, of_each = _levels(one[:, systems], other[:, systems])
        drawn[2].append(by_system)
        drawn[3].append(_mean(of_each))
    bounds = [_interval(values) for values in drawn]
    return Correlation(
        system, _mean(each), bounds[0], bounds[1], bounds[2], bounds[3], int(np.isfinite(each).sum())
    )  # fmt: skip


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _interval(values: list[float]) -> tuple[float, float]:
    known = np.array([value for value in values if math.isfinite(value)])
    return interval_of(known) if len(known) else (math.nan, math.nan)


def meta_table(
    measures: Mapping[str, Array], people: Array, *, bootstrap: int = 500, seed: int = 0,
    told: Callable[[str], object] = lambda _: None,
) -> dict[str, Correlation]:  # fmt: skip
    """`correlate` of every measure, the best one of single summaries first."""
    found = {}
    for name, scores in measures.items():
        told(name)
        found[name] = correlate(scores, people, bootstrap=bootstrap, seed=seed)
    return dict(sorted(found.items(), key=lambda item: -np.nan_to_num(item[1].summary, nan=-2.0)))
