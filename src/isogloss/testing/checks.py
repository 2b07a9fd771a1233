"""`check_structure`: every law that a structure has to keep, at once, for ours and for yours."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.testing.enumerate import BruteForce

__all__ = ["check_batch", "check_k_best", "check_laws", "check_structure"]

Array = NDArray[np.float64]


def _close(have: Any, want: Any, law: str, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(have, want, rtol=rtol, atol=atol, err_msg=law)


def check_structure(
    structure: Callable[[Array], Any],
    enumerate: Callable[[Array], BruteForce],
    *,
    shapes: Iterable[tuple[int, ...]],
    count: Callable[[tuple[int, ...]], int] | None = None,
    column: Callable[[Array], Any] | None = None,
    batch: Callable[[list[Array]], Any] | None = None,
    samples: int = 400,
    seed: int = 0,
) -> None:
    """Hold a structure against enumeration; AssertionError names the law that is broken.

    Parameters
    ----------
    structure : callable
        Scores to a structure with `log_partition`, `marginals`, `argmax`, `sample`, `parts`,
        `with_scores`, and, where it has them, `log_prob`, `entropy`, `from_parts`.
    enumerate : callable
        Scores to a `BruteForce` of everything the structure ranges over.
    shapes : iterable of tuples
        Shapes of scores to try; keep them small, and let the lengths differ.
    count : callable, optional
        Shape to the known number of structures, checked against log Z at score 0.
    column : callable, optional
        Scores to an index of parts of which every structure has exactly one: adding c to them adds c to log Z.
    batch : callable, optional
        List of scores to an object with `log_partition`, `marginals`, `argmax` for all of them; see `check_batch`.
    samples : int
        Draws for the test of frequencies; 0 leaves it out.

    Examples
    --------
    >>> from isogloss.structures import Chain
    >>> from isogloss.testing import brute_force_chain, check_structure
    >>> check_structure(
    ...     Chain, brute_force_chain, shapes=[(0, 2, 2), (1, 3, 3), (3, 2, 2)], batch=Chain.batch,
    ...     count=lambda shape: shape[1] ** shape[0], column=lambda scores: np.s_[-1:])
    """
    rng = np.random.default_rng(seed)
    tried: list[Array] = []
    for shape in shapes:
        plain = rng.normal(0.0, 2.0, shape)
        holed = np.where(rng.random(shape) < 0.3, -np.inf, plain)
        for scores in (plain, np.zeros(shape), holed):
            truth = enumerate(scores)
            if truth.log_partition == -np.inf:
                _check_infeasible(structure(scores))
                continue
            check_laws(structure(scores), truth, rng=rng, samples=samples)
            tried.append(scores)
        if count is not None:
            _check_count(structure(np.zeros(shape)), count(shape), shape)
        if column is not None and plain.size:
            _check_shift(structure, plain, column(plain))
    if batch is not None:
        check_batch(structure, batch, tried)


def check_laws(
    dist: Any, truth: BruteForce, *, rng: np.random.Generator, samples: int = 400, best: bool = True
) -> None:
    """The laws that need one set of scores; `best=False` where `argmax` gives a good structure, not always the best."""
    marginals = dist.marginals()
    assert np.isfinite(dist.log_partition()), "log Z is not a number although something is allowed"
    _close(dist.log_partition(), truth.log_partition, "log Z")
    assert marginals.shape == dist.scores.shape, "marginals are not shaped like the scores"
    _close(marginals, truth.marginals, "marginals")
    assert not marginals[dist.scores == -np.inf].any(), "a forbidden part has probability"
    if best:
        _check_best(dist, truth)
    _check_views(dist, truth)
    _check_gradient(dist)
    if hasattr(dist, "entropy"):
        _close(dist.entropy(), truth.entropy, "entropy", rtol=1e-7, atol=1e-9)
    if samples:
        _check_samples(dist, truth, rng, samples)


def _key(y: Any) -> Hashable:
    """A sequence as a tuple, a set of links as a frozenset: something to look up among the enumerated."""
    if isinstance(y, int):
        return y
    if isinstance(y, Set):
        return frozenset(tuple(int(end) for end in link) for link in y)
    return tuple(tuple(state) if isinstance(state, tuple) else int(state) for state in y)


def _check_best(dist: Any, truth: BruteForce) -> None:
    best = _key(dist.argmax())
    assert best in truth.structures, f"argmax {best} is not a structure"
    score = truth.log_scores[list(truth.structures).index(best)]
    _close(score, truth.best, "argmax is not the best")


def _check_views(dist: Any, truth: BruteForce) -> None:
    probabilities = truth.probabilities
    for row in range(0, len(truth.structures), max(1, len(truth.structures) // 20)):
        y = truth.structures[row]
        np.testing.assert_array_equal(dist.parts(y), truth.parts[row], err_msg=f"parts of {y}")
        if hasattr(dist, "from_parts"):
            assert _key(dist.from_parts(dist.parts(y))) == y, f"from_parts(parts({y})) is something else"
        if hasattr(dist, "log_prob"):
            _close(np.exp(dist.log_prob(y)), probabilities[row], f"log_prob {y}")
    again = dist.with_scores(dist.scores)
    assert again.log_partition() == dist.log_partition(), "with_scores(the same scores) changes log Z"


def _check_gradient(dist: Any, step: float = 1e-5) -> None:
    """Marginals are the derivative of log Z: compare along a fixed direction over the allowed parts."""
    allowed = dist.scores > -np.inf
    if not allowed.any():
        return
    direction = np.where(allowed, np.cos(np.arange(dist.scores.size)).reshape(dist.scores.shape), 0.0)
    above, below = (dist.with_scores(dist.scores + sign * step * direction).log_partition() for sign in (1, -1))
    slope = float((direction * dist.marginals()).sum())
    _close((above - below) / (2 * step), slope, "gradient", rtol=1e-5, atol=1e-6)


def _check_samples(dist: Any, truth: BruteForce, rng: np.random.Generator, samples: int) -> None:
    """Frequencies against probabilities by a loose χ²; structures that are rare are put together."""
    place = {y: row for row, y in enumerate(truth.structures)}
    seen = np.zeros(len(place))
    for _ in range(samples):
        seen[place[_key(dist.sample(rng))]] += 1
    expected = truth.probabilities * samples
    assert not seen[expected == 0].any(), "a forbidden structure was drawn"
    often = expected >= 5
    observed = np.append(seen[often], seen[~often].sum())
    hoped = np.append(expected[often], expected[~often].sum())
    filled = hoped > 0
    statistic = float(((observed - hoped)[filled] ** 2 / np.maximum(hoped[filled], 1.0)).sum())
    freedom = max(1, int(filled.sum()) - 1)
    assert statistic < freedom + 6 * math.sqrt(2 * freedom) + 6, (
        f"sample frequencies: χ² {statistic:.1f}, {freedom} d.f."
    )


def _check_infeasible(dist: Any) -> None:
    from isogloss.structures import InfeasibleError

    for method in (dist.log_partition, dist.marginals, dist.argmax, lambda: dist.sample(np.random.default_rng(0))):
        try:
            method()
        except InfeasibleError:
            continue
        raise AssertionError("everything is forbidden, and no InfeasibleError says so")


def _check_count(dist: Any, count: int, shape: tuple[int, ...]) -> None:
    _close(np.exp(dist.log_partition()), count, f"number of structures of {shape}")


def _check_shift(structure: Callable[[Array], Any], scores: Array, column: Any) -> None:
    shifted = scores.copy()
    shifted[column] += 1.25
    change = structure(shifted).log_partition() - structure(scores).log_partition()
    _close(change, 1.25, "shifting a column does not shift log Z")


def check_batch(
    structure: Callable[[Array], Any], batch: Callable[[list[Array]], Any], scores: Sequence[Array]
) -> None:
    """A batch equals one by one, and any number of threads equals one thread, to the bit.

    Held against each other are log Z, marginals, best structures and, where the batch has these methods, entropies and
    what `take` gives.
    """
    from isogloss.engine.threads import using_threads

    results = []
    for number in (1, 2):
        with using_threads(number):
            many = batch(list(scores))
            entropies = many.entropy() if hasattr(many, "entropy") else None
            best = [_key(y) for y in many.argmax()]
            results.append((many.log_partition(), list(many.marginals()), best, entropies))
    for values, marginals, best, entropies in results:
        for row, one in enumerate(map(structure, scores)):
            assert values[row] == one.log_partition(), f"batch, sentence {row}: log Z differs"
            np.testing.assert_array_equal(np.ravel(marginals[row]), one.marginals().ravel(), err_msg=f"batch, {row}")
            assert best[row] == _key(one.argmax()), f"batch, sentence {row}: argmax differs"
            if entropies is not None:
                assert entropies[row] == one.entropy(), f"batch, sentence {row}: the entropy differs"
    _check_take(many, results[-1])


def _check_take(many: Any, found: Any) -> None:
    """Some sentences, turned round and one of them twice, are as they are among all."""
    if not hasattr(many, "take"):
        return
    chosen = [*range(len(many) - 1, -1, -2), *range(min(1, len(many)))]
    some = many.take(np.array(chosen, np.int64))
    assert len(some) == len(chosen), "take: another number of sentences"
    best = [_key(y) for y in some.argmax()]
    for row, s in enumerate(chosen):
        assert some.log_partition()[row] == found[0][s], f"take, sentence {s}: log Z differs"
        np.testing.assert_array_equal(np.ravel(some.marginals()[row]), np.ravel(found[1][s]), err_msg=f"take, {s}")
        assert best[row] == found[2][s], f"take, sentence {s}: argmax differs"


def check_k_best(found: Sequence[tuple[float, Any]], truth: BruteForce, k: int) -> None:
    """What `k_best(k)` gave: the best k allowed structures, or all if there are fewer, best first, each once."""
    allowed = np.sort(truth.log_scores[truth.log_scores > -np.inf])[::-1]
    assert len(found) == min(k, len(allowed)), f"k_best({k}): {len(found)} structures of {len(allowed)}"
    place = {y: row for row, y in enumerate(truth.structures)}
    keys = [_key(y) for _, y in found]
    assert len(set(keys)) == len(keys), "k_best: a structure comes twice"
    _close([score for score, _ in found], allowed[: len(found)], "k_best: not the best scores, best first")
    _close([score for score, _ in found], [truth.log_scores[place[key]] for key in keys], "k_best: score of another")
