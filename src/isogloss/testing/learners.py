"""`check_learner`: the laws that a learner has to keep, at once, for ours and for yours."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["check_gradient", "check_learner"]


def check_learner(
    learner: Any,
    state: Any,
    *,
    steps: int = 3,
    monotone: bool = False,
    tolerance: float = 1e-9,
    objective: Any = None,
    permuted: Any = None,
    threads: bool = True,
) -> None:
    """Hold a learner against the laws; AssertionError names the one that is broken.

    Always: a step leaves its state as it was and does the same when it is done again; `iteration` grows by 1; the
    objective is a number. Where the learner has `dump` and `restore`: a state that went through JSON and arrays is the
    same to the bit, and so is the step after it.

    Parameters
    ----------
    learner : object with `step(state) -> (state, info)`
    state : State
        Where to begin.
    steps : int
        How many to look at.
    monotone : bool
        Whether the objective may never fall.
    tolerance : float
        By how much it may, and by how much two orders of the data may differ, relative to its size.
    objective : Objective, optional
        With `add_gradient`; its gradient is checked by finite differences at each state's `weights`.
    permuted : Learner, optional
        The same learner with its data in another order: for learners that look at all data in each step, the objective
        must then be the same but for rounding.
    threads : bool
        Whether one thread and two must give the same bits.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class At(NamedTuple):
    ...     x: float
    ...     iteration: int = 0
    >>> class Seen(NamedTuple):
    ...     objective: float
    >>> class SquareRoot:  # of 2, by Newton's method
    ...     def step(self, state):
    ...         x = (state.x + 2 / state.x) / 2
    ...         return At(x, state.iteration + 1), Seen(-abs(x * x - 2))
    ...     def dump(self, state):
    ...         return {}, {"x": state.x, "iteration": state.iteration}
    ...     def restore(self, arrays, meta):
    ...         return At(meta["x"], meta["iteration"])
    >>> check_learner(SquareRoot(), At(1.0), monotone=True)
    """
    trace: list[float] = []
    begin = state
    for _ in range(steps):
        if objective is not None:
            check_gradient(objective, state.weights)
        after, info = _check_step(learner, state)
        if hasattr(learner, "dump"):
            _check_kept(learner, state, after)
        trace.append(float(info.objective))
        state = after
    assert np.isfinite(trace).all(), f"the objective is not a number: {trace}"
    if monotone:
        for before, now in pairwise(trace):
            assert now >= before - tolerance * max(1.0, abs(before)), f"the objective falls from {before} to {now}"
    if permuted is not None:
        _check_permuted(permuted, begin, trace, tolerance)
    if threads:
        _check_threads(learner, begin)


def check_gradient(
    objective: Any,
    weights: ArrayLike,
    *,
    items: Sequence[int] | None = None,
    directions: int = 4,
    width: float = 1e-5,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> None:
    """Hold the gradient of an objective against finite differences, and lists and `support` of items against it.

    Parameters
    ----------
    objective : Objective
    weights : float64[n_weights]
        Where to look.
    items : list of int, optional
        The items to look at, all unless given.
    directions : int
        Random directions to try; every single weight is tried where there are no more than that.
    """
    at = np.asarray(weights, np.float64)
    some = None if items is None else np.asarray(items, np.int64)

    def value(where: Any) -> float:
        return float(objective.add_gradient(where, np.zeros(len(at)), some))

    gradient = np.zeros(len(at))
    objective.add_gradient(at, gradient, some)
    rng = np.random.default_rng(seed)
    ways = np.eye(len(at)) if len(at) <= directions else rng.normal(size=(directions, len(at)))
    for way in ways:
        slope = (value(at + width * way) - value(at - width * way)) / (2 * width)
        wanted = float(way @ gradient)
        allowed = tolerance * max(1.0, float(np.abs(way * gradient).sum()))
        assert abs(slope - wanted) <= allowed, f"gradient: {wanted} by formula and {slope} by differences"
    twice = gradient.copy()
    objective.add_gradient(at, twice, some)
    np.testing.assert_allclose(twice, 2 * gradient, rtol=1e-9, atol=1e-12, err_msg="the gradient is not added to `out`")
    if some is None:
        return
    _, lists = objective.gradient(at, some)
    listed = np.zeros(len(at))
    lists.add_to(listed)
    np.testing.assert_allclose(listed, gradient, rtol=1e-7, atol=1e-9, err_msg="gradient as lists is another")
    if objective.support(some) is not None:
        support = np.asarray(objective.support(some))
        assert len(np.unique(support)) == len(support), "support names a weight twice"
        rest = np.ones(len(at), np.bool_)
        rest[support] = False
        assert not gradient[rest].any(), "the gradient reaches weights that are not in the support"


def _check_step(learner: Any, state: Any) -> tuple[Any, Any]:
    untouched = copy.deepcopy(state)
    first, info = learner.step(state)
    assert same(state, untouched), "step changes the state that it is given"
    assert first.iteration == state.iteration + 1, "step does not add 1 to the iteration"
    kept = copy.deepcopy(first)
    again, info_again = learner.step(state)
    assert same(first, kept), "a second step changes what the first gave"
    assert same(first, again) and same(info, info_again), "the same step from the same state ends elsewhere"
    return first, info


def _check_kept(learner: Any, state: Any, after: Any) -> None:
    arrays, meta = learner.dump(state)
    for name, array in arrays.items():
        assert isinstance(array, np.ndarray) and array.dtype.kind in "biuf", f"dump: {name} is not an array of numbers"
    meta = json.loads(json.dumps(meta))
    restored = learner.restore({name: np.array(array, order="C") for name, array in arrays.items()}, meta)
    assert same(restored, state), "restore(dump(state)) is not the state"
    assert same(learner.step(restored)[0], after), "a step from a restored state ends elsewhere"


def _check_permuted(learner: Any, state: Any, trace: list[float], tolerance: float) -> None:
    for wanted in trace:
        state, info = learner.step(state)
        gap = abs(info.objective - wanted)
        assert gap <= tolerance * max(1.0, abs(wanted)), f"the order of the data moves the objective by {gap}"


def _check_threads(learner: Any, state: Any) -> None:
    from isogloss.engine.threads import using_threads

    results = []
    for number in (1, 2):
        with using_threads(number):
            results.append(learner.step(state))
    assert same(results[0][0], results[1][0]), "one thread and two end elsewhere"


def same(a: Any, b: Any) -> bool:
    """Whether two states are the same to the bit; NaN is the same as NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype == object or b.dtype == object:
            return a.shape == b.shape and all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
        return bool(a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if is_dataclass(a) and type(a) is type(b):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in fields(a))
    if isinstance(a, float | np.floating) and isinstance(b, float | np.floating):
        return bool(a == b or (np.isnan(a) and np.isnan(b)))
    if hasattr(a, "__dict__") and type(a) is type(b):
        return same(vars(a), vars(b))
    return bool(a == b)
