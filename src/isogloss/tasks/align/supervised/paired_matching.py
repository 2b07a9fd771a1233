"""`PairedMatching`: a `Matching` whose pairs never cost and further links never pay, and which knows its search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.structures import Fertility, Matching
from isogloss.structures.base import kept
from isogloss.structures.matching import Links, Pairs, Relaxation, Solution
from isogloss.structures.matching.search import Method

__all__ = ["PairedMatching", "Search"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """How the best set of links is looked for.

    Parameters
    ----------
    method : "milp", "lp" or "auto"
        Exactly; by rounding the linear relaxation; or exactly up to `exact_pairs` pairs of links, rounding beyond.
    time_limit : float, optional
        Seconds for one sentence pair, then the best that was found so far.
    exact_pairs, most_pairs : int
        With more than `most_pairs` pairs of links, pairs are left out and the rest is solved by flow.
    """

    method: str = "auto"
    time_limit: float | None = None
    exact_pairs: int = 5_000
    most_pairs: int = 100_000

    def of(self, n_pairs: int) -> Method:
        """What to do with so many pairs of links."""
        if n_pairs == 0 or n_pairs > self.most_pairs:
            return "flow"
        if self.method == "lp" or (self.method == "auto" and n_pairs > self.exact_pairs):
            return "lp"
        return "milp"


class PairedMatching(Matching):
    """A matching with pairs that score 0 or more and further links that score 0 or less.

    Scores of the wrong sign, which come of rounding in averages of weights, count as 0. Pairs that score 0 are left out
    of the search.

    Parameters
    ----------
    scores, source_null, target_null, fertility, pairs
        As for `Matching`.
    search : Search
    """

    search: Search
    _FIELDS = (*Matching._FIELDS, "search")

    def __init__(
        self,
        scores: ArrayLike,
        source_null: ArrayLike = 0.0,
        target_null: ArrayLike = 0.0,
        fertility: Fertility | int | None = None,
        pairs: Pairs | None = None,
        *,
        search: Search | None = None,
    ) -> None:
        super().__init__(scores, source_null, target_null, fertility, pairs)
        self.search = search or Search()

    def with_part_scores(self, *scores: ArrayLike) -> Self:
        """See `Matching.with_part_scores`."""
        links, source, target, *further, pairs = (np.asarray(array, np.float64) for array in scores)
        steps = (np.minimum.accumulate(np.minimum(step, 0.0), axis=1) for step in further)
        return super().with_part_scores(links, source, target, *steps, np.maximum(pairs, 0.0))

    def argmax(self, method: Any = None, *, time_limit: float | None = None, repair: bool = True) -> Links:
        """The best set of links, by its own search unless a method is given."""
        if method is not None:
            return super().argmax(method, time_limit=time_limit, repair=repair)
        core = self.core()
        if core._plain:
            return Matching.argmax(core, "auto")
        return core._searched().links

    def solution(self) -> Solution:
        """The same with its score, a bound, and what found it."""
        return self.core()._searched()

    def _searched(self) -> Solution:
        method = self.search.of(len(self._pair_scores))
        if method == "flow":
            found = self._without_pairs().solve("auto")
            if not len(self._pair_scores):
                return found
            return found._replace(score=self.score(found.links), bound=np.inf, optimal=False)
        return self.solve(method, time_limit=self.search.time_limit)

    def relaxation(self) -> Relaxation:
        """The linear relaxation; by flow where no pair scores."""
        core = self.core()
        if len(core._pair_scores) and self.search.of(len(core._pair_scores)) != "flow":
            found = super(PairedMatching, core).relaxation()
        else:
            best = core._without_pairs().solve("auto")
            found = Relaxation(best.score, self.parts(best.links), (), True)
        kinds = self._kinds(found.links)
        first, second = (found.links.ravel()[self._pair_links[:, end]] for end in (0, 1))
        return found._replace(parts=(*kinds[:5], np.minimum(first, second)))

    def kinds_of_any(self, linked: NDArray[np.bool_]) -> tuple[Array, ...]:
        """`kinds_of` for any set of links: further links are counted up to the limit, pairs wherever both are there."""
        return self._kinds(linked.astype(np.float64))

    def core(self) -> Self:
        """Without the pairs that score 0."""
        used = self._pair_scores != 0
        if used.all():
            return self
        return self._but(_pair_links=self._pair_links[used], _pair_scores=kept(self._pair_scores[used]))
