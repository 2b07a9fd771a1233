"""Parts of `QuadraticAligner` beyond links and nulls: pairs of neighbouring links, and further links of a word.

Scores of pairs are 0 or more and those of further links 0 or less: features of both are 0 or more, and their weights
have one sign. A third link may not be cheaper than a second; features that only it has see to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from isogloss.structures import neighbour_pairs
from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.features.base import PartFeatures
from isogloss.tasks.align.supervised.parts import Kind

__all__ = ["PATTERNS", "LinkPairs", "find_link_pairs", "further_link_kinds", "null_kinds", "pair_kind", "plausible"]

Indices = NDArray[np.int64]
Floats = NDArray[np.float32]

PATTERNS = ("monotone", "inverted", "one_to_two", "two_to_one")
NEAR = 3
"""A link is plausible if it is among so many of its row or of its column."""
LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class LinkPairs:
    """The pairs of neighbouring links that are scored, of many sentence pairs.

    Parameters
    ----------
    links : int64[n_pairs_of_links, 4]
        Rows (i, j, k, l): the links i-j and k-l; those of one sentence pair after those of another.
    pattern : int64[n_pairs_of_links]
        Numbers into `PATTERNS`.
    place : int64[n_pairs_of_links]
        Which of all neighbours it is, in the order of `neighbour_pairs` with all four patterns.
    counts : int64[n_pairs]
        Pairs of links of each sentence pair.
    """

    links: Indices
    pattern: Indices
    place: Indices
    counts: Indices

    def of_pair(self, pair: int) -> slice:
        """Rows of one sentence pair."""
        stop = int(self.counts[: pair + 1].sum())
        return slice(stop - int(self.counts[pair]), stop)

    def split(self) -> list[Indices]:
        """The links of each sentence pair."""
        return np.split(self.links, np.cumsum(self.counts)[:-1]) if len(self.counts) else []


def evidence(features: PairFeatures) -> Floats | None:
    """How likely each cell is, as features alone say: the HMM's posterior, Model 2's, or Dice; None without."""
    for name in ("hmm", "model2_mean", "dice"):
        if name in features.link_names:
            return np.ascontiguousarray(features.links[:, features.column(name)])
    return None


def plausible(values: Floats, near: int = NEAR) -> NDArray[np.bool_]:
    """Cells among the `near` largest of their row or of their column, tiny ones apart: bool[n_source, n_target].

    Examples
    --------
    >>> plausible(np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.4]], np.float32), near=1).astype(int).tolist()
    [[1, 0, 0], [0, 1, 1]]
    """
    out = np.zeros(values.shape, np.bool_)
    for axis in (0, 1):
        k = values.shape[axis] - near
        least = np.partition(values, k, axis=axis).take([k], axis=axis) if k > 0 else -np.inf
        out |= values >= least
    return out & (values >= LEAST)


def find_link_pairs(features: PairFeatures, patterns: Sequence[str], near: int | None = NEAR) -> LinkPairs:
    """The pairs of neighbouring links of every sentence pair.

    Parameters
    ----------
    patterns : sequence of str
        Which of `PATTERNS`.
    near : int, optional
        Leave out pairs of which neither link is plausible: what is left grows with the words of a sentence pair
        rather than with its cells. None keeps all, as does text without posteriors and Dice.
    """
    known = _found.setdefault(features, {})
    key = tuple(patterns), near
    if key not in known:
        known[key] = _find_link_pairs(features, patterns, near)
    return known[key]


_found: WeakKeyDictionary[PairFeatures, dict[tuple[tuple[str, ...], int | None], LinkPairs]] = WeakKeyDictionary()
"""Training, calibration and search ask for the same ones again and again."""


def _find_link_pairs(features: PairFeatures, patterns: Sequence[str], near: int | None) -> LinkPairs:
    likely = None if near is None else evidence(features)
    wanted = np.array([PATTERNS.index(name) for name in patterns], np.int64)
    links, pattern, place = [np.zeros((0, 4), np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    counts = np.zeros(len(features), np.int64)
    for k in range(len(features)):
        n, m = features.shape(k)
        if n == 0 or m == 0:
            continue
        rows, kinds = _neighbours(n, m)
        keep = np.isin(kinds, wanted)
        if likely is not None and near is not None:
            good = plausible(likely[features.cells_of(k)].reshape(n, m), near)
            keep &= good[rows[:, 0], rows[:, 1]] | good[rows[:, 2], rows[:, 3]]
        chosen = np.flatnonzero(keep)
        links.append(rows[chosen])
        pattern.append(kinds[chosen])
        place.append(chosen)
        counts[k] = len(chosen)
    return LinkPairs(np.concatenate(links), np.concatenate(pattern), np.concatenate(place), counts)


@lru_cache(maxsize=256)
def _neighbours(n: int, m: int) -> tuple[Indices, Indices]:
    """All pairs of neighbouring links of a sentence pair, and the pattern of each."""
    rows = np.asarray(neighbour_pairs(n, m, monotone=0.0, inverted=0.0, one_to_two=0.0).links)
    return rows, np.repeat(np.arange(4), [(n - 1) * (m - 1)] * 2 + [n * (m - 1), (n - 1) * m])


def pair_kind(features: PairFeatures, pairs: LinkPairs, patterns: Sequence[str]) -> Kind:
    """Features of pairs of links.

    Those of `link_pair_features`, where the extractor made them (set "pairs"), else a constant and the lesser evidence
    of the two links; and the greater evidence. Each pattern has columns of its own.
    """
    likely, table = evidence(features), features.further.get("link_pairs")
    numbers = [PATTERNS.index(name) for name in patterns]
    own, row = np.searchsorted(numbers, pairs.pattern), np.arange(len(pairs.links))
    which = np.repeat(np.arange(len(features)), pairs.counts)
    blocks: list[tuple[str, Floats]] = []
    if table is not None:
        found = table.values[table.offsets[:-1][which] + pairs.place]
        blocks += [("" if name == "bias" else f":{name}", found[:, k]) for k, name in enumerate(table.names)]
    else:
        blocks.append(("", np.ones(len(row), np.float32)))
    if likely is not None:
        start, columns = features.cell_offsets[:-1][which], features.shapes[which, 1]
        first, second = (likely[start + pairs.links[:, a] * columns + pairs.links[:, a + 1]] for a in (0, 2))
        if table is None:
            blocks.append((":least", np.minimum(first, second)))
        blocks.append((":most", np.maximum(first, second)))
    out = np.zeros((len(row), len(numbers), len(blocks)), np.float32)
    for k, (_, values) in enumerate(blocks):
        out[row, own, k] = values
    names = tuple(f"{pattern}{column}" for pattern in patterns for column, _ in blocks)
    return Kind("pair", names, out.reshape(len(row), len(names)), pairs.counts)


def further_link_kinds(features: PairFeatures, fertility: int) -> list[Kind]:
    """Features of the second, third, … link of each word of both sides; later ones have all that earlier ones have.

    Those of `fertility_features`, where the extractor made them (set "pairs"), else those of nulls and the evidence of
    the second best link.
    """
    kinds = []
    for side, (name, nulls) in enumerate((("source", features.source_nulls), ("target", features.target_nulls))):
        made = features.further.get(f"{name}_further")
        if made is None:
            made = PartFeatures(*_plain(features, nulls, side), features.source_offsets)  # offsets are not looked at
        kinds.append(_steps(f"{name} further", made, features.shapes[:, side], fertility))
    return kinds


def _plain(features: PairFeatures, nulls: Floats, side: int) -> tuple[tuple[str, ...], Floats]:
    likely = evidence(features)
    chosen = [k for k, own in enumerate(features.null_names) if own not in ("best_dice", "hmm_null", "hmm_best")]
    names, values = tuple(features.null_names[k] for k in chosen), nulls[:, chosen]
    if likely is None:
        return names, values
    second = _second(features, likely, side)[:, None]
    return (*names, "second", "no_second"), np.concatenate([values, second, 1.0 - second], axis=1)


def _steps(name: str, made: PartFeatures, counts: Indices, fertility: int) -> Kind:
    """One row for each further link of a word."""
    more, values = fertility - 1, made.values
    later = [f"link {d}" for d in range(3, fertility + 1)]
    ladder = np.tril(np.ones((more, more), np.float32))[:, 1:]  # link d also costs what links 3 … d cost alone
    rows = np.concatenate([np.repeat(values, more, axis=0), np.tile(ladder, (len(values), 1))], axis=1)
    fired = made.indicators
    if fired is not None:  # one word or none for each row, so that repeating is in place
        often = np.repeat(np.diff(fired[0]), more)
        fired = np.concatenate([[0], np.cumsum(often)]).astype(np.int64), np.repeat(fired[1], more)
    return Kind(name, (*made.names, *later), rows, counts * more, fired, made.indicator_names)


def _second(features: PairFeatures, likely: Floats, side: int) -> Floats:
    """The evidence of the second best partner of each word of a side."""
    out = [np.zeros(0, np.float32)]
    for k in range(len(features)):
        n, m = features.shape(k)
        cells = likely[features.cells_of(k)].reshape(n, m)
        cells = cells if side == 0 else cells.T
        out.append(np.partition(cells, -2, axis=1)[:, -2] if cells.shape[1] > 1 else np.zeros(len(cells), np.float32))
    return np.concatenate(out)


def null_kinds(features: PairFeatures) -> list[Kind]:
    """Nulls of both sides for words that may have several links, with the opposite of every feature.

    Min-cost flow finds the best set of links if being alone never scores more than a second link takes. That is so if
    nulls score 0 or less; what all nulls share, links and further links may have instead.
    """
    names = features.null_names
    turned = [k for k, name in enumerate(names) if name != "bias"]
    kinds = []
    for side, (name, values) in enumerate((("source", features.source_nulls), ("target", features.target_nulls))):
        both = np.concatenate([values, 1.0 - values[:, turned]], axis=1, dtype=np.float32)
        every = (*names, *(f"not {names[k]}" for k in turned))
        kinds.append(Kind(f"{name} null", every, both, features.shapes[:, side]))
    return kinds
