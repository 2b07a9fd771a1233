"""The graph of handwritten letters: neighbours by the earth mover's distance of their images and of the letters around.

The distance is the one that FastEMD calls EMD-hat, with its usual ground distance min(‖x − y‖, 3) and the penalty 3 for
each pixel that one image has more. All pixels weigh the same and that ground distance is a metric, so pixels that both
images have stay where they are, and the rest is an assignment problem, solved exactly.

References: Pele and Werman, Fast and Robust Earth Mover's Distances, ICCV 2009; He, Gillenwater and Taskar, CoNLL 2013.
"""

from __future__ import annotations

import gzip
import itertools
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.learners.graphs import mutual, nearest

ROWS, COLUMNS = 16, 8
THRESHOLD = 3.0
CANDIDATES, LEAST_COSINE = 50, 0.3


class Letters(NamedTuple):
    """All letters of all words, one after the other."""

    pixels: NDArray[np.bool_]
    """bool[n, 128]."""
    labels: NDArray[np.int64]
    """int64[n]: 0 for a … 25 for z."""
    offsets: NDArray[np.int64]
    """int64[n_words + 1]."""
    words: tuple[str, ...]


def data_file() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "ocr-letters" / "letters.tsv.gz"


def read() -> Letters:
    with gzip.open(data_file(), "rt") as file:
        rows = [line.split() for line in file]
    number = np.array([int(row[0]) for row in rows])
    if [int(row[2]) for row in rows if row[2] == "0"] and (np.diff(number) < 0).any():
        raise ValueError(f"{data_file()}: words should stand one after the other")
    labels = np.array([ord(row[3]) - ord("a") for row in rows], np.int64)
    images = np.frombuffer(b"".join(bytes.fromhex(row[4]) for row in rows), np.uint8).reshape(len(rows), 16)
    offsets = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(rows)]]).astype(np.int64)
    words = ["".join(row[3] for row in rows[a:b]) for a, b in itertools.pairwise(offsets)]
    return Letters(np.unpackbits(images, axis=1).astype(np.bool_), labels, offsets, tuple(words))


def ground() -> NDArray[np.float64]:
    """float64[128, 128]: how far a pixel is from another, 3 at most."""
    y, x = np.divmod(np.arange(ROWS * COLUMNS), COLUMNS)
    return np.minimum(np.hypot(y[:, None] - y, x[:, None] - x), THRESHOLD)


@njit(cache=True, nogil=True)
def _assigned(cost, few, many, n, m, u, v, match, way, least, used):
    """The least cost of giving each of n rows one of m ≥ n columns of its own: shortest augmenting paths."""
    for j in range(m + 1):
        v[j], match[j] = 0.0, -1
    for i in range(n):
        u[i] = 0.0
    total = 0.0
    for i in range(n):
        for j in range(m + 1):
            least[j], used[j] = np.inf, False
        match[m] = i
        at = m
        while True:
            used[at] = True
            row, delta, following = match[at], np.inf, m
            for j in range(m):
                if used[j]:
                    continue
                reduced = cost[few[row], many[j]] - u[row] - v[j]
                if reduced < least[j]:
                    least[j], way[j] = reduced, at
                if least[j] < delta:
                    delta, following = least[j], j
            for j in range(m + 1):
                if used[j]:
                    u[match[j]] += delta
                    v[j] -= delta
                else:
                    least[j] -= delta
            at = following
            if match[at] < 0:
                break
        while at != m:
            before = way[at]
            match[at] = match[before]
            at = before
    for j in range(m):
        if match[j] >= 0:
            total += cost[few[match[j]], many[j]]
    return total


@njit(cache=True, nogil=True)
def distances(block, blocks, pixels, cost, threshold, first, second, out):
    """The earth mover's distance of image first[i] from image second[i]; infinite where one is -1."""
    size = pixels.shape[1]
    mine, theirs = np.empty(size, np.int64), np.empty(size, np.int64)
    u, v, least = np.empty(size + 1), np.empty(size + 1), np.empty(size + 1)
    match, way, used = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64), np.empty(size + 1, np.bool_)
    for i in range(block * len(first) // blocks, (block + 1) * len(first) // blocks):
        a, b = first[i], second[i]
        if a < 0 or b < 0:
            out[i] = np.inf
            continue
        n, m = 0, 0
        for p in range(size):
            if pixels[a, p] and not pixels[b, p]:
                mine[n] = p
                n += 1
            elif pixels[b, p] and not pixels[a, p]:
                theirs[m] = p
                m += 1
        if n <= m:
            moved = _assigned(cost, mine, theirs, n, m, u, v, match, way, least, used)
        else:
            moved = _assigned(cost, theirs, mine, m, n, u, v, match, way, least, used)
        out[i] = moved + threshold * abs(n - m)


def measured(letters: Letters, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float32]:
    """float32[n]: distances of pairs of letters."""
    out = np.empty(len(first))
    with using_threads():
        run_blocks(distances, max(1, len(first) // 4096), letters.pixels, ground(), THRESHOLD, first, second, out)
    return out.astype(np.float32)


def pairs(letters: Letters, cache: Path) -> dict[str, NDArray[Any]]:
    """Candidates (the nearest by pixels) and distances of them and of the letters beside them; kept on disk."""
    file = cache / "letters-pairs.npz"
    if file.exists():
        with np.load(file) as kept:
            return dict(kept)
    begin = time.time()
    near = nearest(letters.pixels.astype(np.float64), CANDIDATES, least=LEAST_COSINE, exact=True).tocoo()
    once = near.maximum(near.T).tocoo()
    held = once.row < once.col
    u, v = once.row[held].astype(np.int64), once.col[held].astype(np.int64)
    found: dict[str, NDArray[Any]] = {"first": u, "second": v, "cosine": once.data[held].astype(np.float32)}
    middle = time.time()
    found["own"] = measured(letters, u, v)
    n = len(letters.labels)
    starts, ends = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    starts[letters.offsets[:-1]] = True
    ends[letters.offsets[1:] - 1] = True
    left, right = np.where(starts, -1, np.arange(n) - 1), np.where(ends, -1, np.arange(n) + 1)
    found["left"], found["right"] = measured(letters, left[u], left[v]), measured(letters, right[u], right[v])
    found["seconds"] = np.array([middle - begin, time.time() - middle])
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(file, **found)  # type: ignore[arg-type]
    return found


def graph(letters: Letters, cache: Path, *, bandwidth: float = 10.0, mixing: float = 0.8, neighbours: int = 20) -> Any:
    """The mutual nearest neighbours by exp(−EMD / bandwidth²) of the letters, mixed with those beside them."""
    from scipy.sparse import csr_matrix

    found = pairs(letters, cache)
    own, left, right = (np.exp(-found[name].astype(np.float64) / bandwidth**2) for name in ("own", "left", "right"))
    similar = mixing * own + (1 - mixing) * (left + right)
    n = len(letters.labels)
    rows, columns = (
        np.concatenate(ends) for ends in ((found["first"], found["second"]), (found["second"], found["first"]))
    )
    weights = np.concatenate([similar, similar])
    order = np.lexsort((columns, -weights, rows))
    rows, columns, weights = rows[order], columns[order], weights[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    held = rank < neighbours
    return mutual(csr_matrix((weights[held], (rows[held], columns[held])), shape=(n, n)))
