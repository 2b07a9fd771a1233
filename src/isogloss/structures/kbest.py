"""The k best of anything whose best can be found under a few restrictions."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from numbers import Integral
from typing import Protocol

from isogloss.errors import ParameterError

__all__ = ["Best", "checked_k", "k_best"]

Choices = Sequence[int]


class Best(Protocol):
    """The best structure among those that make the given first choices and avoid some for the next.

    A structure is seen as a sequence of choices: a label for each position, a head for each word, a partner (or none,
    say −1) for each source word. `fixed` are the choices for positions 0, 1, …; `banned` are the choices not to make at
    position ``len(fixed)``. Returns (score, choices), or None when nothing is left.
    """

    def __call__(self, fixed: Choices, banned: frozenset[int], /) -> tuple[float, Choices] | None: ...


def checked_k(k: int, place: str) -> int:
    """`k`, once it is known to be a positive number."""
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise ParameterError(f"{place}: k should be a positive integer, not {k!r}")
    return int(k)


def k_best(best: Best, k: int) -> list[tuple[float, tuple[int, ...]]]:
    """The `k` best structures, or all if there are fewer, best first, by splitting what is left around each one found.

    When y is taken from a set, the rest falls into parts: those that first differ from y at position 0, at position 1,
    and so on. Each part is searched by one call of `best`, so that k structures of n choices take at most k n calls;
    a part is only searched as long as it could still matter. Exact, and every structure comes once.

    References
    ----------
    Lawler, A procedure for computing the K best solutions to discrete optimization problems, Management Science 18(7),
    1972; Murty 1968 for assignments.

    Examples
    --------
    >>> def best(fixed, banned):  # two choices of 0 or 1, scored by their sum
    ...     left = [c for c in (1, 0) if c not in banned]
    ...     found = [*fixed, *left[:1], 1, 1][:2] if left or len(fixed) == 2 else None
    ...     return None if found is None else (float(sum(found)), found)
    >>> k_best(best, 3)
    [(2.0, (1, 1)), (1.0, (0, 1)), (1.0, (1, 0))]
    """
    return list(islice(_in_order(best), k))


def _in_order(best: Best) -> Iterator[tuple[float, tuple[int, ...]]]:
    ticket: Callable[[], int] = count().__next__  # among equals, first come first served
    first = best((), frozenset())
    if first is None or first[0] == -math.inf:
        return
    queue = [(-first[0], ticket(), tuple(first[1]), 0, frozenset[int]())]
    while queue:
        cost, _, choices, start, banned = heapq.heappop(queue)
        yield -cost, choices
        for at in range(start, len(choices)):
            avoid = (banned if at == start else frozenset()) | {choices[at]}
            found = best(choices[:at], avoid)
            if found is not None and found[0] > -math.inf:
                heapq.heappush(queue, (-found[0], ticket(), tuple(found[1]), at, avoid))
