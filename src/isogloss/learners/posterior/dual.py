"""The dual of a projection, and ways to its minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from isogloss.learners.posterior.features import Features
from isogloss.learners.posterior.penalties import Penalty
from isogloss.learners.posterior.together import Array
from isogloss.structures import InfeasibleError, Structure

__all__ = ["Dual", "Optimiser", "Point", "search"]

Optimiser = Literal["lbfgs", "quasi-newton", "gradient", "fixed"]

# An infeasible problem shows as a direction along which the dual falls for ever. The slope is measured FAR out: if a
# feasible q exists, it is at least -KL(q‖p) / FAR there, so one below -STEEP proves that none does, unless KL(q‖p)
# could exceed FAR * STEEP nats. This is done when λ first grows beyond WARY, and at the end of a search that failed.
FAR, STEEP, WARY = 1e8, 1e-4, 1e3

MEMORY = 10  # pairs of steps and changes of gradient that quasi-Newton remembers
INNER = 10  # steps on its quadratic model; more of them saved no inference on texts of trees

BLIND = 20  # steps that it takes after D has no digits left to fall by


class Point(NamedTuple):
    """Multipliers, and what is known there."""

    multipliers: Array
    value: float
    """D(λ)."""
    gradient: Array
    residual: float
    """How far from optimal; see `Penalty.residual`. Of penalties, relative to max(1, KL + R)."""
    expectations: Array
    """m = E_q[f]."""
    divergence: float
    """KL(q‖p)."""
    q: Any


class Dual:
    r"""D(λ) = R*(λ) + log Z(λ) − log Z(0), its gradient ∇R*(λ) − E_q[f], and the best point met so far."""

    def __init__(self, dist: Structure, features: Features, penalty: Penalty) -> None:
        self.dist, self.features, self.penalty = dist, features, penalty
        self.evaluations = -1  # the first point is λ = 0, the model's own posterior
        self.wary = WARY
        self.noise = 0.0
        self.origin = self.best = self.lowest = self.at(np.zeros(penalty.size))
        self.noise = 1e-14 * max(1.0, abs(dist.log_partition()))

    def at(self, multipliers: Array) -> Point:
        self.evaluations += 1
        q, moved = self.dist, bool(multipliers.any())
        if moved:
            q = self.dist.with_scores(self.dist.scores - self.features.scores_from(multipliers))
        expectations = self.features.expectations(q.marginals())
        change = q.log_partition() - self.dist.log_partition() if moved else 0.0
        divergence = max(0.0, -float(multipliers @ expectations) - change)
        residual = self.penalty.residual(multipliers, expectations)
        if not self.penalty.hard:
            residual /= max(1.0, abs(divergence + self.penalty.cost(expectations)))
        value = self.penalty.conjugate(multipliers) + change
        gradient = self.penalty.slope(multipliers, expectations)
        point = Point(multipliers, value, gradient, residual, expectations, divergence, q)
        if self.penalty.hard and moved:
            self.watch(point)
        if self.evaluations > 0:
            self.best = point if point.residual < self.best.residual else self.best
            self.lowest = point if point.value < self.lowest.value else self.lowest
        return point

    def watch(self, point: Point) -> None:
        size = float(np.linalg.norm(point.multipliers))
        if size > self.wary:
            self.check_minimum(point)
            self.wary = size * WARY

    def check_minimum(self, point: Point) -> None:
        """Raise if D falls for ever in the direction of `point`, that is, if no q meets the constraints."""
        direction = point.multipliers / max(float(np.linalg.norm(point.multipliers)), 1e-300)
        q = self.dist.with_scores(self.dist.scores - self.features.scores_from(direction * FAR))
        slope = self.penalty.conjugate(direction) - float(direction @ self.features.expectations(q.marginals()))
        if slope < -STEEP:
            missed = self.penalty.violation(self.best.expectations)
            raise InfeasibleError(
                f"project: no distribution over the allowed structures meets the {self.penalty.size} constraints; the "
                f"best found misses them by {missed:.3g} beyond the slack. Loosen the bound, raise the slack, "
                "or allow more structures (for word alignment: give every word a positive null probability)"
            )

    def stepped(self, point: Point, rate: float) -> Array:
        return self.penalty.nearest(point.multipliers - rate * point.gradient)


def search(dual: Dual, first: Point, optimiser: Optimiser, tolerance: float, steps: int, rate: float) -> Point:
    """The best point found, or, with fixed steps, the last."""
    if optimiser == "fixed":
        return _fixed(dual, first, tolerance, steps, rate)
    if optimiser == "gradient":
        _gradient(dual, first, tolerance, steps, rate)
    elif optimiser == "quasi-newton":
        _quasi_newton(dual, first, tolerance, steps, rate)
    else:
        _lbfgs(dual, first, tolerance, steps)
    return dual.best


def _fixed(dual: Dual, point: Point, tolerance: float, steps: int, rate: float) -> Point:
    """Plain (projected) gradient steps of one length; may overshoot, but costs one evaluation a step."""
    for _ in range(steps):
        if point.residual <= tolerance:
            break
        point = dual.at(dual.stepped(point, rate))
    return point


def _gradient(dual: Dual, point: Point, tolerance: float, steps: int, rate: float) -> None:
    """(Projected) gradient steps, shortened until D falls enough and lengthened again when it did."""
    while point.residual > tolerance and dual.evaluations < steps:
        trial = dual.at(dual.stepped(point, rate))
        promised = float(point.gradient @ (trial.multipliers - point.multipliers))
        if trial.value <= point.value + 1e-4 * promised or trial.residual <= tolerance:
            point, rate = trial, rate * 2
        elif rate < 1e-12:
            break  # D has no digits left to fall by
        else:
            rate /= 2


def _lbfgs(dual: Dual, first: Point, tolerance: float, steps: int) -> None:
    """L-BFGS-B, begun afresh from the best point for as long as that helps.

    Slack makes D smooth everywhere but at 0, and 0 is left for good with the first step: 0 was found not to be the
    minimum, and every later point is lower.
    """
    from scipy.optimize import Bounds, minimize

    def evaluate(multipliers: Array) -> tuple[float, Array]:
        point = dual.at(multipliers.copy())
        return point.value, point.gradient

    def stop(_: Array) -> None:
        if dual.best.residual <= tolerance:
            raise StopIteration

    begin, residual, limits = first.multipliers, np.inf, dual.penalty.limits()
    bounds = None if limits is None or not np.isfinite(limits).any() else Bounds(*limits)
    while dual.evaluations < steps and dual.best.residual < residual and dual.best.residual > tolerance:
        residual = dual.best.residual
        options = {"maxfun": steps - dual.evaluations, "maxiter": steps, "gtol": 0.0, "ftol": 0.0, "maxcor": 20}
        minimize(evaluate, begin, jac=True, method="L-BFGS-B", bounds=bounds, callback=stop, options=options)
        begin = dual.best.multipliers


def _quasi_newton(dual: Dual, point: Point, tolerance: float, steps: int, rate: float) -> None:
    """Projected quasi-Newton, for sets that are not boxes (Schmidt et al., AISTATS 2009, algorithm 1).

    Each step minimises, inside the set, a quadratic model of D made from the last gradients; projections onto the set
    are cheap and inference is not. The first step is one along the gradient.
    """
    model, blind = _Model(), 0
    while point.residual > tolerance and dual.evaluations < steps and blind < BLIND:
        aim = model.minimum(point, dual.penalty.nearest) if model else dual.stepped(point, rate)
        direction = aim - point.multipliers
        slope = float(point.gradient @ direction)
        if abs(slope) <= dual.noise:  # D and its slope drown in rounding; the gradient alone still shows the way
            trial: Point | None = dual.at(aim)
            blind += 1
        else:
            trial = _line(dual, point, direction, slope, tolerance, steps)
        if trial is not None:
            model.learn(trial.multipliers - point.multipliers, trial.gradient - point.gradient)
            point = trial
        elif model:
            model = _Model()
        elif rate > 1e-12:
            rate /= 4
        else:
            break


def _line(dual: Dual, point: Point, direction: Array, slope: float, tolerance: float, steps: int) -> Point | None:
    """The first of λ + d, λ + d/2, ... where D falls enough; None if none does.

    Where the change of D drowns in rounding, its slope decides: D is convex, so a point before its minimum along the
    line, or beyond it by less than the start was before it, is lower (the approximate condition of Hager and Zhang).
    """
    length = 1.0
    while slope < 0 and dual.evaluations < steps and length > 1e-6:
        trial = dual.at(point.multipliers + length * direction)
        falls = trial.value <= point.value + 1e-4 * length * slope
        level = trial.value <= point.value + dual.noise and float(trial.gradient @ direction) <= -0.8 * slope
        if falls or level or trial.residual <= tolerance:
            return trial
        # The minimum of the parabola through both values and the first slope, kept within a tenth and a half.
        curve = 2 * (trial.value - point.value - length * slope) / length**2
        length = float(np.clip(-slope / curve if curve > 0 else 0.0, 0.1 * length, 0.5 * length))
    return None


class _Model:
    """B, an estimate of the Hessian of D from the last steps: the compact form of L-BFGS."""

    def __init__(self) -> None:
        self.steps: list[Array] = []
        self.changes: list[Array] = []

    def __bool__(self) -> bool:
        return bool(self.steps)

    def learn(self, step: Array, change: Array) -> None:
        if float(step @ change) > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.steps, self.changes = [*self.steps, step][-MEMORY:], [*self.changes, change][-MEMORY:]

    def product(self) -> tuple[Callable[[Array], Array], float]:
        """v to B v, and the scale of B away from what was learnt."""
        steps, changes = np.array(self.steps), np.array(self.changes)
        scale = float(changes[-1] @ changes[-1]) / float(steps[-1] @ changes[-1])
        cross = steps @ changes.T
        lower, diagonal = np.tril(cross, -1), np.diag(np.diag(cross))
        middle = np.block([[scale * steps @ steps.T, lower], [lower.T, -diagonal]])
        both = np.concatenate([scale * steps, changes])
        inverse = np.linalg.pinv(middle)
        return lambda v: np.asarray(scale * v - (inverse @ (both @ v)) @ both), scale

    def minimum(self, point: Point, nearest: Callable[[Array], Array]) -> Array:
        """Where the model is least inside the set: projected gradient with spectral steps and exact line search."""
        product, scale = self.product()
        at, gradient, length, first = point.multipliers, point.gradient, 1 / scale, 0.0
        for _ in range(INNER):
            way = nearest(at - length * gradient) - at
            slope = min(float(gradient @ way), -float(way @ way) / length)  # the latter but for rounding
            first = first or slope
            if slope >= 1e-12 * first:
                break
            turned = product(way)
            curve = float(way @ turned)
            part = 1.0 if curve <= 0 else min(1.0, -slope / curve)
            at, gradient = at + part * way, gradient + part * turned
            length = float(way @ way) / curve if curve > 0 else 1 / scale
        return at
