"""Kernels of the features of blocks of words, of pairs of links, and of words with several links.

A block of work is every `count`-th sentence pair; it writes only what belongs to its own pairs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.engine.threads import run_blocks
from isogloss.tasks.align._numba.lexicon import blocks_for

__all__ = ["fill_blocks", "fill_pairs", "pattern_hits", "several", "span_keys", "span_patterns"]

_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}


# --- spans of one side


@njit(**_KERNEL)
def span_keys(ids, offsets, out):
    """out[token, k]: one number for the k + 2 words from the token on; 0 past the end, or with a word of number -1."""
    for s in range(offsets.size - 1):
        for start in range(offsets[s], offsets[s + 1]):
            h = np.uint64(1469598103934665603)
            for k in range(out.shape[1] + 1):
                at = start + k
                if at >= offsets[s + 1] or ids[at] < 0:
                    break
                h = (h ^ np.uint64(ids[at] + 1)) * np.uint64(1099511628211)
                h ^= h >> np.uint64(29)
                if k > 0:
                    out[start, k - 1] = h | np.uint64(1)  # never 0


@njit(**_KERNEL)
def span_patterns(codes, offsets, out):
    """out[token, k]: the codes of k + 2 words from the token on as digits of one number, base 256; 0 past the end."""
    for s in range(offsets.size - 1):
        for start in range(offsets[s], offsets[s + 1]):
            h = 1
            for k in range(min(out.shape[1] + 1, offsets[s + 1] - start)):
                h = h * 256 + codes[start + k]
                if k > 0:
                    out[start, k - 1] = h


# --- blocks


@njit(**_KERNEL)
def _fill_blocks(
    block, count, source_offsets, target_offsets, cell_offsets, links, chosen, least, spans, size, starts, out
):
    for s in range(block, cell_offsets.size - 1, count):
        n = source_offsets[s + 1] - source_offsets[s]
        m = target_offsets[s + 1] - target_offsets[s]
        row = starts[s]
        for side in range(2):
            for i in range(n):
                for j in range(m):
                    for k in range(size - 1):
                        words = k + 2
                        if (side == 0 and i + words > n) or (side == 1 and j + words > m):
                            row += 1
                            continue
                        out[row, k] = 1.0
                        token = source_offsets[s] + i if side == 0 else target_offsets[s] + j
                        for x in range(2):
                            out[row, size - 1 + x] = spans[side][token, k, x]
                        at = size + 1
                        first = cell_offsets[s] + i * m + j
                        step = m if side == 0 else 1
                        for x in range(least.size):
                            low = links[first, least[x]]
                            for w in range(1, words):
                                low = min(low, links[first + w * step, least[x]])
                            out[row, at] = low
                            at += 1
                        for x in range(chosen.size):
                            total = np.float32(0.0)
                            for w in range(words):
                                total += links[first + w * step, chosen[x]]
                            out[row, at] = total / np.float32(words)
                            at += 1
                        row += 1


def fill_blocks(source_offsets, target_offsets, cell_offsets, links, chosen, least, spans, size, starts, out):
    """Features of blocks of 2 … size words with one: lengths, statistics of the span, least and mean of link features.

    Rows are those of `Blocks`: [i, j, words - 2] of many source words, then of many target words; blocks that reach
    past the end have zeros. `spans` are float32[n_tokens, size - 1, 2] of both sides.
    """
    run_blocks(
        _fill_blocks, blocks_for(cell_offsets.size - 1), source_offsets, target_offsets, cell_offsets, links, chosen,
        least, spans, size, starts, out,
    )  # fmt: skip


# --- pairs of links, words with several links


@njit(**_KERNEL)
def _pattern_hits(block, count, source_offsets, target_offsets, cell_offsets, p, source, target):
    for s in range(block, cell_offsets.size - 1, count):
        a, b, first = source_offsets[s], target_offsets[s], cell_offsets[s]
        n, m = source_offsets[s + 1] - a, target_offsets[s + 1] - b
        for i in range(n):
            for j in range(m):
                here = first + i * m + j
                if i + 1 < n and j + 1 < m:
                    monotone = p[here] * p[here + m + 1]
                    inverted = p[here + 1] * p[here + m]
                    source[a + i, 0] += monotone
                    source[a + i, 1] += inverted
                    target[b + j, 0] += monotone
                    target[b + j, 1] += inverted
                if i + 1 < n:
                    source[a + i, 2] += p[here] * p[here + m]
                if j + 1 < m:
                    target[b + j, 2] += p[here] * p[here + 1]
        for i in range(n):
            for k in range(3):
                source[a + i, k] = min(np.float32(1.0), source[a + i, k])
        for j in range(m):
            for k in range(3):
                target[b + j, k] = min(np.float32(1.0), target[b + j, k])


def pattern_hits(source_offsets, target_offsets, cell_offsets, p, source, target):
    """How surely a word and the next are linked monotonely, crosswise, or to one word: float32[n_tokens, 3] a side.

    Links count as independent, with the probabilities `p`; the last word of a sentence has zeros.
    """
    run_blocks(
        _pattern_hits, blocks_for(cell_offsets.size - 1), source_offsets, target_offsets, cell_offsets, p, source,
        target,
    )  # fmt: skip


@njit(**_KERNEL)
def _several(block, count, source_offsets, target_offsets, cell_offsets, p, threshold, out_source, out_target):
    for s in range(block, cell_offsets.size - 1, count):
        a, b, first = source_offsets[s], target_offsets[s], cell_offsets[s]
        n, m = source_offsets[s + 1] - a, target_offsets[s + 1] - b
        best = np.zeros(n + m, np.float32)
        second = np.zeros(n + m, np.float32)
        for i in range(n):
            for j in range(m):
                value = p[first + i * m + j]
                for at in (i, n + j):
                    if value > best[at]:
                        second[at] = best[at]
                        best[at] = value
                    elif value > second[at]:
                        second[at] = value
        for i in range(n):
            out_source[a + i, 0] = second[i]
            out_source[a + i, 1] = 1.0 if second[i] >= threshold else 0.0
        for j in range(m):
            out_target[b + j, 0] = second[n + j]
            out_target[b + j, 1] = 1.0 if second[n + j] >= threshold else 0.0


def several(source_offsets, target_offsets, cell_offsets, p, threshold, source, target):
    """Posterior of each word's second link, and whether it is one: float32[n_tokens, 2] of each side."""
    run_blocks(
        _several, blocks_for(cell_offsets.size - 1), source_offsets, target_offsets, cell_offsets, p,
        np.float32(threshold), source, target,
    )  # fmt: skip


@njit(**_KERNEL)
def _fill_pairs(
    block, count, source_offsets, target_offsets, cell_offsets, dice, p, source_shares, target_shares, starts, out
):
    judges = source_shares.shape[1]
    for s in range(block, cell_offsets.size - 1, count):
        a, b, first = source_offsets[s], target_offsets[s], cell_offsets[s]
        n, m = source_offsets[s + 1] - a, target_offsets[s + 1] - b
        row = starts[s]
        for kind in range(4):  # monotone, inverted, one to two, two to one
            down = 0 if kind == 2 else 1
            right = 0 if kind == 3 else 1
            for i in range(n - down):
                for j in range(m - right):
                    one = first + i * m + j
                    two = one + down * m + right
                    if kind == 1:
                        one, two = one + 1, two - 1
                    out[row, 0] = 1.0
                    out[row, 1] = min(dice[one], dice[two])
                    if p.size:
                        out[row, 2] = min(p[one], p[two])
                        out[row, 3] = p[one] * p[two]
                    for k in range(judges):
                        out[row, 4 + 2 * k] = source_shares[a + i, k, kind]
                        out[row, 5 + 2 * k] = target_shares[b + j, k, kind]
                    row += 1


def fill_pairs(source_offsets, target_offsets, cell_offsets, dice, p, source_shares, target_shares, starts, out):
    """Features of pairs of neighbouring links: a constant, Dice, two of the posteriors `p`, and two for each judge.

    Rows are in the order of `neighbour_pairs`: monotone, inverted, one to two, two to one. Shares float32[n_tokens,
    n_judges, 4] say how often a word (and the next) goes with each pattern. Without posteriors there are no judges.
    """
    run_blocks(
        _fill_pairs, blocks_for(cell_offsets.size - 1), source_offsets, target_offsets, cell_offsets, dice, p,
        source_shares, target_shares, starts, out,
    )  # fmt: skip
