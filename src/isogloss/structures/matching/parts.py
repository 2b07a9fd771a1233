"""What a matching may score beside links: further links of a word, and pairs of links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.structures.base import Array, checked_scores, kept

__all__ = [
    "NO_PAIRS", "Fertility", "Indices", "Pairs", "Problem", "checked_fertility", "checked_links", "checked_null",
    "checked_pairs", "checked_steps", "concave", "constant", "degree_table", "neighbour_pairs", "no_steps",
]  # fmt: skip

Indices = NDArray[np.int64]
NO_PAIRS: Indices = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Fertility:
    """Penalties for a word's second, third, … link, beside which it may have no more.

    Parameters
    ----------
    source, target : float64[n_source, D − 1], float64[n_target, D′ − 1]
        What link 2, 3, … D of a word takes from the score: at least 0, and never less than the link before (so that the
        total is convex in the number of links, and the best set of links a min-cost flow). ∞ ends a word earlier.

    References
    ----------
    Lacoste-Julien et al., Word Alignment via Quadratic Assignment, NAACL 2006, section 3.1, equation 2.
    """

    source: ArrayLike
    target: ArrayLike


@dataclass(frozen=True, eq=False)
class Pairs:
    """Scores for pairs of links that are both there.

    Parameters
    ----------
    links : int64[n_pairs, 4]
        Rows (i, j, k, l): the links i-j and k-l. A pair may be listed more than once; its scores add up.
    scores : float64[n_pairs]
        −∞ says that not both may be there.
    """

    links: ArrayLike
    scores: ArrayLike


def neighbour_pairs(
    n_source: int,
    n_target: int,
    *,
    monotone: ArrayLike | None = None,
    inverted: ArrayLike | None = None,
    one_to_two: ArrayLike | None = None,
    two_to_one: ArrayLike | None = None,
) -> Pairs:
    """Pairs of links between neighbouring words, each kind with one score or one for each place; None leaves it out.

    Parameters
    ----------
    monotone : float or float64[n_source − 1, n_target − 1]
        Links i-j and (i+1)-(j+1).
    inverted : float or float64[n_source − 1, n_target − 1]
        Links i-(j+1) and (i+1)-j.
    one_to_two : float or float64[n_source, n_target − 1]
        Links i-j and i-(j+1): one source word, two target words. Without `fertility` no matching has such a pair.
    two_to_one : float or float64[n_source − 1, n_target]
        Links i-j and (i+1)-j; where not given, it is `one_to_two` if that is one number.

    References
    ----------
    Lacoste-Julien et al. 2006, section 3.2, whose third pattern is our `one_to_two` and `two_to_one` together.

    Examples
    --------
    >>> pairs = neighbour_pairs(2, 3, monotone=0.5, inverted=[[0.1, 0.2]])
    >>> pairs.links.tolist(), pairs.scores.tolist()
    ([[0, 0, 1, 1], [0, 1, 1, 2], [0, 1, 1, 0], [0, 2, 1, 1]], [0.5, 0.5, 0.1, 0.2])
    """
    if two_to_one is None and one_to_two is not None and np.ndim(one_to_two) == 0:
        two_to_one = one_to_two
    kinds = (
        ("monotone", monotone, (1, 1), (0, 0, 1, 1)),
        ("inverted", inverted, (1, 1), (0, 1, 1, 0)),
        ("one_to_two", one_to_two, (0, 1), (0, 0, 0, 1)),
        ("two_to_one", two_to_one, (1, 0), (0, 0, 1, 0)),
    )
    links, scores = [np.zeros((0, 4), np.int64)], [np.zeros(0)]
    for name, given, (less_source, less_target), (a, b, c, d) in kinds:
        if given is None:
            continue
        shape = (max(0, n_source - less_source), max(0, n_target - less_target))
        values = np.broadcast_to(np.asarray(given, np.float64), shape) if np.ndim(given) == 0 else given
        scores.append(checked_scores(values, f"neighbour_pairs: {name}", shape).ravel())
        i, j = (axis.ravel() for axis in np.indices(shape))
        links.append(np.stack([i + a, j + b, i + c, j + d], axis=1))
    return Pairs(kept(np.concatenate(links)), kept(np.concatenate(scores)))


def checked_links(scores: ArrayLike, place: str) -> Array:
    """`checked_scores` of two axes, with little to do when all is well: small matchings take a few microseconds."""
    try:
        array = np.array(scores, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        return checked_scores(scores, place, (None, None))  # says what is wrong
    if array.ndim != 2 or (array.size and not array.item(array.argmax()) < np.inf):  # the quickest; a NaN comes first
        return checked_scores(array, place, (None, None))
    array.flags.writeable = False
    return array


@lru_cache(maxsize=1024)
def constant(shape: tuple[int, ...], value: float = 0.0) -> Array:
    """A read-only array of one number; what many matchings share."""
    return kept(np.full(shape, value))


@lru_cache(maxsize=1024)
def zeros(count: int) -> Array:
    """Null scores of so many words; a cache of its own, since one number is looked up faster than a shape."""
    return kept(np.zeros(count))


@lru_cache(maxsize=1024)
def no_steps(count: int) -> Array:
    """No further links of so many words."""
    return kept(np.zeros((count, 0)))


def checked_null(null: ArrayLike, place: str, count: int) -> Array:
    """float64[count], from one score or one for each word."""
    if isinstance(null, (int, float)) and null < np.inf:
        return constant((count,), null) if null else zeros(count)
    array = np.asarray(null, np.float64)
    return checked_scores(np.broadcast_to(array, (count,)) if array.ndim == 0 else array, place, (count,))


def checked_fertility(fertility: Fertility | int | None, n_source: int, n_target: int) -> tuple[Array, Array]:
    """Scores of further links (penalties, sign turned), float64[n_source, D − 1] and float64[n_target, D′ − 1]."""
    if fertility is None:
        return no_steps(n_source), no_steps(n_target)
    if isinstance(fertility, Integral) and not isinstance(fertility, bool):
        most = int(fertility)
        if most < 1:
            raise ParameterError(f"Matching: fertility should be 1 or more links a word, not {most}")
        return constant((n_source, most - 1)), constant((n_target, most - 1))
    if not isinstance(fertility, Fertility):
        raise ParameterError(f"Matching: fertility should be a Fertility, a number of links or None, not {fertility!r}")
    sides = (("source", fertility.source, n_source), ("target", fertility.target, n_target))
    first, second = (checked_steps(0.0 - np.asarray(array, np.float64), side, n) for side, array, n in sides)
    return first, second


def checked_steps(steps: ArrayLike, side: str, count: int) -> Array:
    """Scores of further links of each word, once they are known to be penalties that do not decrease."""
    array = checked_scores(
        steps, f"Matching: fertility of {side} words (penalties with the sign turned)", (count, None)
    )
    if (array > 0).any():
        word, at = (int(x) for x in np.argwhere(array > 0)[0])
        raise ParameterError(
            f"Matching: {side} word {word}: link {at + 2} has the penalty {-array[word, at]}; penalties are 0 or more. "
            "Put what all links share into the scores of links"
        )
    falls = array[:, 1:] > array[:, :-1]
    if falls.any():
        word, at = (int(x) for x in np.argwhere(falls)[0])
        raise ParameterError(
            f"Matching: {side} word {word}: the penalty falls from {-array[word, at]} for link {at + 2} to "
            f"{-array[word, at + 1]} for link {at + 3}; a further link may not be cheaper than the one before. "
            "Repeat the larger penalty: numpy.maximum.accumulate(penalties, axis=1)"
        )
    return array


def checked_pairs(pairs: Pairs | None, shape: tuple[int, int]) -> tuple[Indices, Array]:
    """int64[n_pairs, 2], the two links of each pair counted in C order, and float64[n_pairs]."""
    if pairs is None:
        return NO_PAIRS, constant((0,))
    if not isinstance(pairs, Pairs):
        raise ParameterError(f"Matching: pairs should be Pairs(links, scores), not {type(pairs).__name__}")
    links = np.asarray(pairs.links, np.int64)
    if links.ndim != 2 or links.shape[1] != 4:
        raise ParameterError(f"Matching: pairs: links should be [n_pairs, 4], not {list(links.shape)}")
    scores = checked_scores(pairs.scores, "Matching: scores of pairs", (len(links),))
    outside = ((links < 0) | (links >= np.array(shape * 2))).any(axis=1)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise ParameterError(f"Matching: pair {at} is {links[at].tolist()}, outside {list(shape)} words")
    flat = np.stack([links[:, 0] * shape[1] + links[:, 1], links[:, 2] * shape[1] + links[:, 3]], axis=1)
    same = np.flatnonzero(flat[:, 0] == flat[:, 1])
    if len(same):
        raise ParameterError(
            f"Matching: pair {same[0]} has the same link {links[same[0], :2].tolist()} twice; add its score to the link"
        )
    flat.flags.writeable = False
    return flat, scores


def degree_table(null: Array, steps: Array, least: NDArray[np.int64] | None) -> Array:
    """float64[n, D + 1]: score of having 0, 1, … D links; −∞ below `least`."""
    n, more = steps.shape
    table = np.empty((n, more + 2))
    table[:, 0], table[:, 1] = null, 0.0
    np.cumsum(steps, axis=1, out=table[:, 2:])
    if least is not None:
        table[np.arange(more + 2) < least[:, None]] = -np.inf
    return kept(table)


class Problem(NamedTuple):
    """What the solvers see of a matching: scores of links, of numbers of links, and of pairs of links."""

    scores: Array
    source_table: Array
    target_table: Array
    pair_links: Indices
    pair_scores: Array


def concave(table: Array) -> NDArray[np.bool_]:
    """bool[n]: whether each further link of a word scores no more than the one before; −∞ in front does not count."""
    with np.errstate(invalid="ignore"):
        steps = np.diff(table, axis=1)
        rises = np.diff(steps, axis=1) > 0
    known = (table[:, :-2] > -np.inf) & (table[:, 2:] > -np.inf)
    return np.asarray(~(rises & known).any(axis=1))
