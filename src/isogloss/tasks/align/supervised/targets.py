r"""Gold links as learners need them: which cells are sure and possible, what errors cost, and a target in the class.

Sure links count when they are missed, links that are neither sure nor possible when they are predicted; possible links
are free either way:

.. math:: \ell(y) = c^- |S \setminus y| + c^+ |y \setminus (S \cup P)|

Gold need not be a structure of the class: a word may have two sure links where a matching allows one. The target is
then the structure of least loss, and sure links that it leaves out are free; or, as an option, gold as it is.

References
----------
Taskar, Lacoste-Julien and Klein, EMNLP 2005, section 2 (the loss); Haghighi et al., ACL 2009, section 3 (targets within
the class, possible links).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data import Bitext, Links
from isogloss.data.formats import IsoglossWarning
from isogloss.errors import LinksError, UsageError
from isogloss.learners.margin import Cost
from isogloss.structures.base import Flat, HasKinds

__all__ = [
    "GoldCells",
    "OpenFlat",
    "Target",
    "check_enough",
    "check_gold",
    "check_links",
    "error_rate",
    "least_loss",
    "link_cost",
    "make_target",
]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
FEW_PAIRS = 5


def check_gold(gold: Links, bitext: Bitext, name: str = "the gold") -> None:
    """`LinksError` unless there is a row of gold for each pair and every link lies within its sentences."""
    if len(gold) != len(bitext):
        raise LinksError(
            f"{name} has links for {len(gold)} sentence pairs but {bitext.source.name} has {len(bitext)}. "
            "Give the text that the gold belongs to, line for line; other text goes in as unlabelled"
        )
    pair = gold.pair
    for side, ends in (("source", gold.source), ("target", gold.target)):
        text = getattr(bitext, side)
        outside = np.flatnonzero((ends < 0) | (ends >= text.ids.lengths[pair]))
        if len(outside):
            at = int(outside[0])
            line, k = bitext.line_of(int(pair[at])), int(pair[at])
            raise LinksError(
                f"{name}, line {line}: the link {gold.source[at]}-{gold.target[at]} has {side} word {ends[at]}, but "
                f"that line of {text.name} has {text.ids.lengths[k]} words. Links count from 0, source first: "
                "is the gold for this text, with the languages in this order?"
            )


def check_links(given: Mapping[str, Links] | None, systems: Sequence[str], place: str) -> None:
    """`UsageError` unless links are there of all systems that are features, and of no others."""
    if set(given or ()) != set(systems):
        raise UsageError(
            f"{place}: those of {', '.join(given or ()) or 'nobody'} were given, and features are those of "
            f"{', '.join(systems) or 'nobody'}. Name the systems in the constructor, links=[name, ...], and give fit "
            "{name: Links} for each text"
        )


@dataclass(frozen=True, eq=False)
class GoldCells:
    """Gold of many pairs as flags of cells, in the order of `PairFeatures.links`.

    Parameters
    ----------
    shapes : int64[n_pairs, 2]
        (0, 0) where a pair is passed over; its links are left out.
    sure, possible : bool[n_cells]
        No cell is both.
    """

    shapes: NDArray[np.int64]
    sure: Flags
    possible: Flags

    @classmethod
    def of(cls, gold: Links, shapes: NDArray[np.int64]) -> GoldCells:
        """From links, which must lie within the shapes (`check_gold`)."""
        offsets = _starts(shapes.prod(axis=1))
        pair = gold.pair
        inside = shapes[pair].prod(axis=1) > 0
        cells = offsets[pair] + gold.source.astype(np.int64) * shapes[pair, 1] + gold.target
        unsure = np.zeros(len(cells), np.bool_) if gold.possible is None else gold.possible
        sure, possible = np.zeros(int(offsets[-1]), np.bool_), np.zeros(int(offsets[-1]), np.bool_)
        sure[cells[inside & ~unsure]] = True
        possible[cells[inside & unsure]] = True
        return cls(shapes, sure, possible & ~sure)

    def __len__(self) -> int:
        return len(self.shapes)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where the cells of each pair start, and the end: int64[n_pairs + 1]."""
        return _starts(self.shapes.prod(axis=1))

    @cached_property
    def labelled(self) -> Flags:
        """bool[n_pairs]: pairs that are not passed over and have a link, sure or possible."""
        some = np.concatenate([[0], np.cumsum(self.sure | self.possible)])
        return np.asarray(np.diff(some[self.offsets]) > 0)

    def of_pair(self, pair: int) -> tuple[Flags, Flags]:
        """Sure and possible cells of a pair, bool[n_source, n_target] each."""
        rows = slice(int(self.offsets[pair]), int(self.offsets[pair + 1]))
        n, m = self.shapes[pair].tolist()
        return self.sure[rows].reshape(n, m), self.possible[rows].reshape(n, m)

    def take(self, pairs: ArrayLike) -> GoldCells:
        """Chosen pairs, in the order given."""
        chosen = np.arange(len(self))[np.asarray(pairs)]
        lengths = np.diff(self.offsets)[chosen]
        ends = np.cumsum(lengths)
        rows = np.repeat(self.offsets[chosen] - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
        return GoldCells(self.shapes[chosen], self.sure[rows], self.possible[rows])


def check_enough(cells: GoldCells, n_pairs: int, place: str) -> None:
    """`LinksError` where gold has no sure link; a warning where it has few pairs to learn from."""
    if not cells.sure.any():
        finding = "only possible links" if cells.possible.any() else "no links at all"
        raise LinksError(
            f"{place}: the gold has {finding}, and there is nothing to learn without sure ones. Sure links are "
            "written i-j, possible ones ipj; is it the right file?"
        )
    if n_pairs < FEW_PAIRS:
        warnings.warn(
            f"{place}: gold for {n_pairs} sentence pair{'s'[: n_pairs != 1]} is little; some fifty to a hundred are "
            "needed to do better than an aligner without gold",
            IsoglossWarning,
            stacklevel=4,
        )


def error_rate(linked: Flags, gold: GoldCells) -> float:
    """AER of predicted cells, bool[n_cells], over all pairs together."""
    predicted, sure = int(linked.sum()), int(gold.sure.sum())
    hits = int((linked & gold.sure).sum())
    allowed = hits + int((linked & gold.possible).sum())
    return 1.0 - (hits + allowed) / (predicted + sure) if predicted + sure else 0.0


def link_cost(sure: Flags, possible: Flags, *, missed: float = 1.0, spurious: float = 1.0) -> Cost:
    """The loss above for one pair, in links: parts are float64[n_source, n_target].

    Examples
    --------
    >>> sure, possible = np.array([[True, False, False]]), np.array([[False, True, False]])
    >>> cost = link_cost(sure, possible, missed=3)
    >>> [cost.of(np.array([links])) for links in ([1, 0, 0], [0, 1, 0], [0, 0, 1])]
    [0.0, 3.0, 4.0]
    """
    parts = np.where(sure, -missed, np.where(possible, 0.0, spurious))
    return Cost(parts, missed * float(sure.sum()))


class Target(NamedTuple):
    """What an item is trained towards."""

    y: Any
    """A structure; or float64[n_parts], parts of gold that is no structure, which `OpenFlat` takes as they are."""
    cost: Cost
    """The loss of every other structure, over all parts; 0 for the target itself."""


class OpenFlat:
    """A `Flat` to whose `parts` one may also give parts themselves: targets that are outside the class."""

    def __init__(self, flat: Flat[Any]) -> None:
        self.flat = flat

    def __repr__(self) -> str:
        return f"Open{self.flat!r}"

    def __getattr__(self, name: str) -> Any:
        if name == "flat":  # while it is being made or copied
            raise AttributeError(name)
        return getattr(self.flat, name)

    def parts(self, y: Any) -> Array:
        """float64[n_parts]."""
        return y if isinstance(y, np.ndarray) else self.flat.parts(y)

    def score(self, y: Any) -> float:
        """Log score of a structure, or of parts."""
        parts = self.parts(y)
        used = parts != 0
        return float(parts[used] @ self.flat.scores[used])

    def with_scores(self, scores: ArrayLike) -> OpenFlat:
        """The same sentence with other scores of all kinds of parts."""
        return OpenFlat(self.flat.with_scores(scores))


def spread_links(dist: Flat[Any], links: ArrayLike) -> Array:
    """Numbers of links as numbers of all parts, 0 for those that are not links."""
    out = np.zeros(len(dist.scores))
    flat = np.ravel(links)
    out[: len(flat)] = flat
    return out


def least_loss(dist: Flat[Any], loss: Array, prefer: Array | None = None) -> Any:
    """The structure with the least loss; among equals, the one with the highest `prefer`.

    Parameters
    ----------
    loss : float64[n_parts]
        Whole numbers, so that preferences, scaled to be small, decide between equals only.
    prefer : float64[n_parts], optional
        Scores of any size; those of the model as it stands, or a guess.
    """
    wanted = -loss
    if prefer is not None and len(prefer):
        allowed = dist.scores > -np.inf
        most = float(np.abs(prefer[allowed]).max(initial=0.0))
        if most > 0:
            wanted = wanted + prefer / (4.0 * most * (1.0 + len(prefer)))
    return dist.with_scores(np.where(dist.scores == -np.inf, -np.inf, wanted)).argmax()


def make_target(
    dist: Flat[Any],
    sure: Flags,
    possible: Flags,
    *,
    missed: float = 1.0,
    spurious: float = 1.0,
    prefer: Array | None = None,
    project: bool = True,
    spread: Any = spread_links,
) -> Target:
    """The target of a pair and its cost.

    Parameters
    ----------
    dist : Flat
        The class: its forbidden parts stay forbidden, its scores do not matter.
    sure, possible : bool[n_source, n_target]
    missed, spurious : float
        c⁻ and c⁺.
    prefer : float64[n_parts], optional
        Breaks ties, and decides which of the possible links the target has: those with a score above 0.
    project : bool
        False keeps gold as it is, possible links left out, even where no structure of the class has these links.
    spread : callable
        (dist, float64[n_source, n_target]) -> float64[n_parts]: what all parts cost, given what links cost. The default
        gives parts that are not links 0; for structures with blocks, a block costs what its links do.
    """
    if not project:
        y = _parts_of(dist, sure)
        cost = link_cost(sure, possible, missed=missed, spurious=spurious)
        return Target(y, Cost(spread(dist, cost.parts), cost.constant))
    unit = np.where(sure, -1.0, np.where(possible, 0.0, 1.0))
    y = least_loss(dist, spread(dist, unit), prefer)
    has = np.zeros(sure.shape, np.bool_)
    if len(y):
        has[tuple(np.array(sorted(y)).T)] = True
    cost = link_cost(sure & has, possible | (sure & ~has), missed=missed, spurious=spurious)
    return Target(y, Cost(spread(dist, cost.parts), cost.constant))


def _parts_of(dist: Flat[Any], links: Flags) -> Array:
    """Links and nulls of any set of links; further kinds of parts are 0, unless the structure knows them."""
    kinds: HasKinds = dist.dist
    whole = getattr(kinds, "kinds_of_any", None)
    if whole is not None:
        return np.concatenate([np.ravel(array) for array in whole(links)])
    arrays: Sequence[Array] = kinds.part_scores()
    nulls = [(links.sum(axis=axis) == 0).astype(np.float64) for axis in (1, 0)]
    rest = [np.zeros(array.size) for array in arrays[3:]]
    return np.concatenate([links.ravel().astype(np.float64), *nulls, *rest])


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out
