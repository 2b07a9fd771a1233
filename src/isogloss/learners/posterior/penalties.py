r"""What may be asked of expected features: constraints, and penalties known by their conjugates.

A penalty R is a convex function of expectations m = E_q[f]. The projector works on its conjugate
:math:`R^*(\lambda) = \sup_m \lambda \cdot m - R(m)` and on the set where that is finite:

===============  ===================================================  =====================================
penalty          R(m)                                                 R*(λ), and where
===============  ===================================================  =====================================
`AtMost`         0 if ‖(m − b)₊‖₂ ≤ ε, else ∞                         b·λ + ε‖λ‖₂, λ ≥ 0
`Exactly`        0 if ‖m − b‖₂ ≤ ε, else ∞                            b·λ + ε‖λ‖₂
`Groups`         Σ_g σ_g max_{i ∈ g} (m_i − b_i)₊  (l1/linf)          b·λ, λ ≥ 0 and Σ_{i ∈ g} λ_i ≤ σ_g
`Norm`           σ ‖(m − b)₊‖₂                                        b·λ, λ ≥ 0 and ‖λ‖₂ ≤ σ
`Quadratic`      ½ Σ w_i (m_i − b_i)², or of (m_i − b_i)₊             b·λ + ½ Σ λ_i²/w_i  (hinge: λ ≥ 0)
`Linear`         c·m                                                  0, λ = c
===============  ===================================================  =====================================

`Quadratic` and `Linear` are differentiable and can be given to `exponentiated` as well.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.learners.posterior.together import Array

__all__ = ["AtMost", "Exactly", "Groups", "Linear", "Norm", "Penalty", "Quadratic", "capped"]


class Penalty(Protocol):
    """What `regularise` asks of a penalty."""

    @property
    def size(self) -> int:
        """m, the number of features."""

    @property
    def hard(self) -> bool:
        """Whether it is a constraint, met or not; otherwise it is finite everywhere."""

    def cost(self, expectations: Array, /) -> float:
        """R(m); 0 for a constraint, whose failing `violation` tells."""

    def violation(self, expectations: Array, /) -> float:
        """By how much a constraint is missed; 0 for the others."""

    def conjugate(self, multipliers: Array, /) -> float:
        """R*(λ), for λ where it is finite."""

    def slope(self, multipliers: Array, expectations: Array, /) -> Array:
        """∇R*(λ) − m, the gradient of the dual; at a kink, the subgradient of the steepest way down."""

    def nearest(self, multipliers: Array, /) -> Array:
        """The nearest λ for which R* is finite."""

    def residual(self, multipliers: Array, expectations: Array, /) -> float:
        """How far λ is from optimal: the gap R(m) + R*(λ) − λ·m ≥ 0, or, for a constraint, the norm of the gradient in
        the directions that are open."""

    def limits(self) -> tuple[Array, Array] | None:
        """The least and the largest λ, when `nearest` does no more than clip."""


def _bounds(bound: ArrayLike, place: str) -> Array:
    limits = np.asarray(bound, np.float64)
    if limits.ndim != 1 or not np.isfinite(limits).all():
        raise ParameterError(f"{place}: bound should be one finite number for each feature, not {bound!r}")
    return limits


class _Constraint:
    hard = True

    def __init__(self, bound: ArrayLike, slack: float = 0.0) -> None:
        self.bound, self.slack = _bounds(bound, "project"), slack
        if not slack >= 0:
            raise ParameterError(f"project: slack should be 0.0 or more, not {slack!r}")

    @property
    def size(self) -> int:
        return len(self.bound)

    def broken(self, expectations: Array) -> Array:
        """By how much each constraint is missed, slack aside."""
        raise NotImplementedError

    def cost(self, expectations: Array) -> float:
        return 0.0

    def violation(self, expectations: Array) -> float:
        return max(0.0, float(np.linalg.norm(self.broken(expectations))) - self.slack)

    def conjugate(self, multipliers: Array) -> float:
        return float(multipliers @ self.bound) + self.slack * float(np.linalg.norm(multipliers))

    def slope(self, multipliers: Array, expectations: Array) -> Array:
        size, excess = float(np.linalg.norm(multipliers)), expectations - self.bound
        if size > 0:
            return self.slack * multipliers / size - excess
        # R* has a kink here when there is slack; of its subgradients, take the one of the steepest way down.
        broken = self.broken(expectations)
        return np.asarray(self.slack * broken / max(float(np.linalg.norm(broken)), self.slack, 1e-300) - excess)


class AtMost(_Constraint):
    """E_q[f] ≤ bound, up to `slack` in the 2-norm."""

    def broken(self, expectations: Array) -> Array:
        return np.maximum(expectations - self.bound, 0.0)

    def nearest(self, multipliers: Array) -> Array:
        return np.maximum(multipliers, 0.0)

    def residual(self, multipliers: Array, expectations: Array) -> float:
        slope = self.slope(multipliers, expectations)
        return float(np.linalg.norm(np.where(multipliers > 0, slope, np.minimum(slope, 0.0))))

    def limits(self) -> tuple[Array, Array]:
        return np.zeros(self.size), np.full(self.size, np.inf)


class Exactly(_Constraint):
    """E_q[f] = bound, up to `slack` in the 2-norm."""

    def broken(self, expectations: Array) -> Array:
        return expectations - self.bound

    def nearest(self, multipliers: Array) -> Array:
        return multipliers

    def residual(self, multipliers: Array, expectations: Array) -> float:
        return float(np.linalg.norm(self.slope(multipliers, expectations)))

    def limits(self) -> tuple[Array, Array]:
        return np.full(self.size, -np.inf), np.full(self.size, np.inf)


class _Soft:
    """What penalties share that are finite everywhere and whose R* is b·λ where it is finite."""

    hard = False
    bound: Array

    @property
    def size(self) -> int:
        return len(self.bound)

    def cost(self, expectations: Array) -> float:
        raise NotImplementedError

    def violation(self, expectations: Array) -> float:
        return 0.0

    def conjugate(self, multipliers: Array) -> float:
        return float(multipliers @ self.bound)

    def slope(self, multipliers: Array, expectations: Array) -> Array:
        return self.bound - expectations

    def residual(self, multipliers: Array, expectations: Array) -> float:
        gap = self.cost(expectations) + self.conjugate(multipliers) - float(multipliers @ expectations)
        return max(0.0, gap)

    def limits(self) -> tuple[Array, Array] | None:
        return None


def capped(values: ArrayLike, groups: ArrayLike, caps: ArrayLike) -> Array:
    r"""Nearest point with :math:`x \ge 0` and :math:`\sum_{i \in g} x_i \le \sigma_g` for each group *g*.

    Clip at 0; where a group is still above its cap, lower all of it by the one amount that, after clipping again,
    meets the cap. The amount is found by leaving out what falls below it until nothing does (Michelot 1986), for all
    groups at once and without sorting.

    Parameters
    ----------
    values : float64[m]
    groups : int64[m]
        Group of each value.
    caps : float64[n_groups]

    Examples
    --------
    >>> capped([0.75, 0.5, -1.0, 0.25, -0.5], [0, 0, 0, 1, 1], [1.0, 1.0]).tolist()
    [0.625, 0.375, 0.0, 0.25, 0.0]
    """
    from isogloss.learners._numba.simplex import lower_to_caps

    point, group, cap = np.asarray(values, np.float64), np.asarray(groups, np.int64), np.asarray(caps, np.float64)
    if point.shape != group.shape or (len(group) and not 0 <= group.min() <= group.max() < len(cap)):
        raise ParameterError(f"capped: groups should be one number from 0 to {len(cap) - 1} for each value")
    point = np.where(cap[group] > 0, np.maximum(point, 0.0), 0.0)
    lower_to_caps(point, group, np.ascontiguousarray(cap))
    return point


class Groups(_Soft):
    r"""The l1/linf penalty :math:`\sum_g \sigma_g \max_{i \in g} (E_q[f_i] - b_i)_+`.

    With expectations of indicators it counts, softly, how many groups are used at all: the sparsity penalty on pairs of
    tags of Gillenwater et al. 2010. Groups of one feature give l1, one group of all gives linf.

    Parameters
    ----------
    groups : int64[m]
        Group of each feature; every group from 0 to the last.
    strength : float or float64[n_groups]
        σ, one for all groups or one for each.
    bound : float64[m], optional
        b, 0 when not given.

    References
    ----------
    Gillenwater, Ganchev, Graça, Pereira and Taskar, Sparsity in Dependency Grammar Induction, ACL 2010, section 3.
    """

    def __init__(self, groups: ArrayLike, strength: ArrayLike | float, bound: ArrayLike | None = None) -> None:
        self.groups: NDArray[np.int64] = np.asarray(groups, np.int64)
        if self.groups.ndim != 1 or (self.groups < 0).any():
            raise ParameterError("Groups: groups should be one number from 0 up for each feature")
        sigma, count = np.asarray(strength, np.float64), int(self.groups.max(initial=-1)) + 1
        if sigma.ndim and sigma.shape != (count,):
            raise ParameterError(f"Groups: there are {count} groups, so strength should be 1 or {count} numbers")
        if not (sigma >= 0).all() or np.isinf(sigma).any():
            raise ParameterError(f"Groups: strength should be 0 or more, and finite, not {strength!r}")
        self.caps: Array = np.broadcast_to(sigma, (count,))
        self.bound = np.zeros(len(self.groups)) if bound is None else _bounds(bound, "Groups")
        if self.bound.shape != self.groups.shape:
            raise ParameterError(f"Groups: {len(self.groups)} features, but {len(self.bound)} entries of bound")

    def largest(self, expectations: Array) -> Array:
        """float64[n_groups]: max_{i ∈ g} (m_i − b_i)₊."""
        found = np.zeros(len(self.caps))
        np.maximum.at(found, self.groups, expectations - self.bound)
        return found

    def cost(self, expectations: Array) -> float:
        return float(self.caps @ self.largest(expectations))

    def nearest(self, multipliers: Array) -> Array:
        return capped(multipliers, self.groups, self.caps)

    def limits(self) -> tuple[Array, Array] | None:
        if len(self.caps) != len(self.groups):
            return None
        return np.zeros(self.size), self.caps[self.groups]


class Norm(_Soft):
    """The penalty σ ‖(E_q[f] − bound)₊‖₂."""

    def __init__(self, bound: ArrayLike, strength: float) -> None:
        self.bound, self.strength = _bounds(bound, "Norm"), strength
        if not 0 <= strength < np.inf:
            raise ParameterError(f"Norm: strength should be 0 or more, and finite, not {strength!r}")

    def cost(self, expectations: Array) -> float:
        return self.strength * float(np.linalg.norm(np.maximum(expectations - self.bound, 0.0)))

    def nearest(self, multipliers: Array) -> Array:
        point = np.maximum(multipliers, 0.0)
        return point * min(1.0, self.strength / max(float(np.linalg.norm(point)), 1e-300))


class Quadratic(_Soft):
    """½ Σ w_i (E_q[f_i] − b_i)²; with `hinge`, of the positive parts alone (a squared hinge).

    Parameters
    ----------
    bound : float64[m]
    weights : float or float64[m]
        w > 0.
    hinge : bool
        Only what exceeds the bound costs.
    """

    def __init__(self, bound: ArrayLike, weights: ArrayLike | float = 1.0, hinge: bool = False) -> None:
        self.bound, self.hinge = _bounds(bound, "Quadratic"), hinge
        given = np.asarray(weights, np.float64)
        if not (given > 0).all() or np.isinf(given).any() or given.shape not in ((), self.bound.shape):
            raise ParameterError("Quadratic: weights should be one positive number, or one for each feature")
        self.weights: Array = np.broadcast_to(given, self.bound.shape)

    def __call__(self, expectations: Array) -> tuple[float, Array]:
        """Value and gradient."""
        excess = expectations - self.bound
        pull = self.weights * (np.maximum(excess, 0.0) if self.hinge else excess)
        return 0.5 * float(pull @ excess), pull

    def cost(self, expectations: Array) -> float:
        return self(expectations)[0]

    def conjugate(self, multipliers: Array) -> float:
        return float(multipliers @ (self.bound + 0.5 * multipliers / self.weights))

    def slope(self, multipliers: Array, expectations: Array) -> Array:
        return np.asarray(self.bound + multipliers / self.weights - expectations)

    def nearest(self, multipliers: Array) -> Array:
        return np.maximum(multipliers, 0.0) if self.hinge else multipliers

    def limits(self) -> tuple[Array, Array]:
        return np.full(self.size, 0.0 if self.hinge else -np.inf), np.full(self.size, np.inf)


class Linear(_Soft):
    """costs · E_q[f]: nothing but a change of scores, for checks and for mixing with others."""

    def __init__(self, costs: ArrayLike) -> None:
        self.costs = _bounds(costs, "Linear")

    @property
    def size(self) -> int:
        return len(self.costs)

    def __call__(self, expectations: Array) -> tuple[float, Array]:
        """Value and gradient."""
        return float(self.costs @ expectations), self.costs

    def cost(self, expectations: Array) -> float:
        return self(expectations)[0]

    def conjugate(self, multipliers: Array) -> float:
        return 0.0

    def slope(self, multipliers: Array, expectations: Array) -> Array:
        return -expectations

    def residual(self, multipliers: Array, expectations: Array) -> float:
        return 0.0 if np.array_equal(multipliers, self.costs) else np.inf

    def nearest(self, multipliers: Array) -> Array:
        return self.costs

    def limits(self) -> tuple[Array, Array]:
        return self.costs, self.costs
