"""Cut a corpus into contiguous ranges of sentence pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError

__all__ = ["Shard", "shards"]


class Shard(NamedTuple):
    """Sentence pairs start..stop-1."""

    start: int
    stop: int


def shards(cells: NDArray[np.int64], *, limit: int) -> list[Shard]:
    """Contiguous ranges of at most `limit` cells each, a single pair that is larger being a range of its own.

    The cuts depend on the data and on `limit` alone, never on threads or machines: counts summed shard by shard are
    then the same bits everywhere. Each range takes as many pairs as fit, so that k ranges are the fewest possible.

    Parameters
    ----------
    cells : int64[n_pairs]
        Work in each pair, such as `Bitext.cells`.
    limit : int
        Cells a shard may have, which bounds the memory of its posteriors.

    Examples
    --------
    >>> shards(np.array([3, 3, 3, 9, 1]), limit=6)
    [Shard(start=0, stop=2), Shard(start=2, stop=3), Shard(start=3, stop=4), Shard(start=4, stop=5)]
    """
    if limit < 1:
        raise ParameterError(f"shards: limit should be a positive number of cells, not {limit!r}")
    ends = np.cumsum(cells, dtype=np.int64)
    cuts: list[Shard] = []
    start, done = 0, 0
    while start < len(ends):
        stop = int(np.searchsorted(ends, done + limit, side="right"))
        stop = max(stop, start + 1)
        cuts.append(Shard(start, stop))
        start, done = stop, int(ends[stop - 1])
    return cuts
