r"""From posteriors to links: thresholds that need no labels, and the choice of cells.

Posteriors are whole numbers in units of 1/65535, [n_cells, 2]: forward and backward. The *soft union* of both
directions [1]_ is their mean.

The label-free threshold maximises the F-measure that the posteriors themselves promise. If link k holds with
probability :math:`p_k`, keeping a set A of links has expected

.. math:: F(A) \approx \frac{2 \sum_{k \in A} p_k}{|A| + \sum_k p_k},

which is greatest when A is all links above half of the greatest F [2]_. *Posterior points* [3]_ keep instead as many
links as Viterbi decoding would.

References
----------
.. [1] DeNero and Klein, Tailoring Word Alignments to Syntactic Machine Translation, ACL 2007, section 4.
.. [2] Lipton, Elkan and Naryanaswamy, Optimal Thresholding of Classifiers to Maximize F1 Measure, ECML 2014, theorem 1.
.. [3] Ganchev, Graça and Taskar, Better Alignments = Better Translations?, ACL 2008, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links

__all__ = [
    "UNIT",
    "drop_below",
    "expected_f_threshold",
    "in_units",
    "joined",
    "links_above",
    "links_of_paths",
    "links_reaching",
    "points_threshold",
    "probabilities",
    "reaches",
    "spectrum",
    "spectrum_of",
]

UNIT = 65535
LEAST = 0.05
"""The least threshold that is chosen without labels."""
Direction = Literal["both", "forward", "backward"]


def spectrum(posterior: NDArray[np.uint16], direction: Direction = "both") -> NDArray[np.int64]:
    """How many cells have each posterior: bin k of 2 * 65535 + 1 is probability k / (2 * 65535)."""
    from isogloss.tasks.align._numba.decode import count_values

    bins: NDArray[np.int64] = count_values(posterior, _code(direction), 2 * UNIT + 1)
    return bins


def spectrum_of(probability: NDArray[np.float32]) -> NDArray[np.int64]:
    """The same for links with probabilities.

    >>> np.flatnonzero(spectrum_of(np.float32([0.5, 0.5, 1.0]))).tolist()
    [65535, 131070]
    """
    return np.bincount(np.rint(probability * np.float64(2 * UNIT)).astype(np.int64), minlength=2 * UNIT + 1)


def reaches(probability: NDArray[np.float32], threshold: float) -> NDArray[np.bool_]:
    """Which links `links_reaching` chooses."""
    found: NDArray[np.bool_] = np.rint(probability * np.float64(2 * UNIT)) >= _units(threshold)
    return found


def in_units(links: Links) -> Links:
    """The same links with probabilities in units of posteriors, so that a threshold may be one of them."""
    assert links.probability is not None
    rounded = np.rint(links.probability * np.float64(2 * UNIT)) / (2 * UNIT)
    return replace(links, probability=rounded.astype(np.float32))


def links_reaching(links: Links, threshold: float) -> Links:
    """Links whose probability is at least `threshold`.

    >>> str(links_reaching(Links.above([[[0.5, 0.25]]], 0), 0.5)[0])
    '0-0'
    """
    assert links.probability is not None
    kept = reaches(links.probability, threshold)
    counts = np.bincount(links.pair[kept], minlength=len(links))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Links(offsets, links.source[kept], links.target[kept], links.probability[kept], None, links.bitext)


def drop_below(posterior: NDArray[np.uint16], threshold: float) -> None:
    """Set cells to 0 that `links_above` would not choose."""
    from isogloss.tasks.align._numba.decode import drop_cells

    drop_cells(posterior, _units(threshold))


def _units(threshold: float) -> int:
    """The least sum of both directions that reaches a threshold."""
    return max(1, int(np.ceil(threshold * 2 * UNIT - 0.01)))  # a posterior given back as float32 keeps its cell


def joined(parts: Iterable[Links], bitext: Bitext | None = None) -> Links:
    """Links of consecutive parts of a text, with probabilities, as one."""
    offsets, none = [np.zeros(1, np.int64)], np.zeros(0, np.int32)
    columns = [(none, none, np.zeros(0, np.float32))]
    n_links = 0
    for part in parts:
        assert part.probability is not None
        offsets.append(part.offsets[1:] + n_links)
        columns.append((part.source, part.target, part.probability))
        n_links += len(part.source)
    source, target, probability = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Links(np.concatenate(offsets), source, target, probability, None, bitext)


def _code(direction: Direction) -> int:
    return {"both": 0, "forward": 1, "backward": 2}[direction]


def expected_f_threshold(bins: NDArray[np.int64], *, least: float = LEAST) -> float:
    """The threshold with the greatest expected F-measure, never below `least`.

    Examples
    --------
    >>> bins = np.zeros(2 * 65535 + 1, np.int64); bins[-1] = 10; bins[1000] = 40
    >>> 0.05 <= expected_f_threshold(bins) <= 1.0
    True
    """
    value = np.arange(len(bins)) / (len(bins) - 1)
    promised = np.cumsum((bins * value)[::-1])[::-1]
    kept = np.cumsum(bins[::-1])[::-1]
    f = 2.0 * promised / np.maximum(1e-9, kept + promised[0])
    f[value < least] = -1.0
    return float(value[int(np.argmax(f))])


def points_threshold(bins: NDArray[np.int64], n_links: int) -> float:
    """The posterior of the n-th best cell: keeping all that reach it keeps n links, and those that tie with it."""
    kept = np.cumsum(bins[::-1])[::-1]
    enough = np.flatnonzero(kept >= max(1, n_links))
    return float(enough[-1] / (len(bins) - 1)) if len(enough) and enough[-1] > 0 else 1.0 / (len(bins) - 1)


def links_above(
    pairs: Any,
    posterior: NDArray[np.uint16],
    threshold: float,
    direction: Direction = "both",
    bitext: Bitext | None = None,
) -> Links:
    """All cells whose posterior is at least `threshold`, with that posterior as their probability."""
    from isogloss.tasks.align._numba.decode import choose_cells, count_cells

    least = _units(threshold)
    offsets = np.zeros(len(pairs.cell_offsets), np.int64)
    count_cells(pairs.cell_offsets, posterior, _code(direction), least, offsets)
    np.cumsum(offsets, out=offsets)
    n = int(offsets[-1])
    source, target, probability = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float32)
    choose_cells(
        pairs.cell_offsets, pairs.target_offsets, posterior, _code(direction), least, offsets,
        source, target, probability,
    )  # fmt: skip
    return Links(offsets, source, target, probability, None, bitext)


def links_of_paths(pairs: Any, forward: NDArray[np.int32], backward: NDArray[np.int32]) -> tuple[Links, Links]:
    """Best paths as links, source first: forward[target token] and backward[source token] are positions or -1."""
    return (
        _links_of_path(pairs.target_offsets, forward, flipped=True),
        _links_of_path(pairs.source_offsets, backward, flipped=False),
    )


def _links_of_path(offsets: NDArray[np.int64], path: NDArray[np.int32], *, flipped: bool) -> Links:
    linked = path >= 0
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[linked]
    own = (np.arange(len(path)) - np.repeat(offsets[:-1], np.diff(offsets)))[linked].astype(np.int32)
    source, target = (path[linked], own) if flipped else (own, path[linked])
    order = np.lexsort((target, source, row))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(offsets) - 1))]).astype(np.int64)
    return Links(starts, source[order], target[order])


def probabilities(links: Links, pairs: Any, posterior: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The mean posterior of given links."""
    row = links.pair
    width = np.diff(pairs.target_offsets)[row]
    cells = pairs.cell_offsets[row] + links.source.astype(np.int64) * width + links.target
    mean: NDArray[np.float32] = posterior[cells].sum(axis=1, dtype=np.float32) / np.float32(2 * UNIT)
    return mean
