"""Kernels of link features: every cell of many sentence pairs, column by column of one table.

Cells lie source word by source word, pair after pair. A block of work is every `count`-th pair (or source type); it
writes only the rows of its own pairs, so that nothing depends on the number of threads.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from isogloss.engine.threads import run_blocks
from isogloss.tasks.align._numba.lexicon import blocks_for

__all__ = [
    "Tokens",
    "associate",
    "compare",
    "count_together",
    "find_entries",
    "lexical_counts",
    "lexical_fill",
    "neighbours",
    "pair_keys",
    "place",
    "posteriors",
    "rate",
    "same_rows",
    "spell",
]

_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}
LONGEST = 64  # letters of a word that are compared
Tokens = namedtuple("Tokens", "offsets keys flags scripts")  # of one side: int64, int32[n, 5], uint8[n], int16[n]
CAPITAL, NUMBER, PUNCTUATION, SHORT, FREQUENT, RARE = 1, 2, 4, 8, 16, 32
"""Bits of a token's flags."""


# --- counts


@njit(**_KERNEL)
def _count_together(block, count, starts, sentence, position, target_ids, target_offsets, cell_offsets, cells, sums):
    met = np.full(max(1, target_ids.max() + 1 if target_ids.size else 1), -1, np.int64)
    for word in range(block, starts.size - 1, count):
        last = -1
        for at in range(starts[word], starts[word + 1]):
            s = sentence[at]
            if s == last:  # a word that stands twice in a sentence counts once
                continue
            last = s
            width = target_offsets[s + 1] - target_offsets[s]
            first = cell_offsets[s] + position[at] * width
            for k in range(width):
                other = target_ids[target_offsets[s] + k]
                if met[other] != at:
                    met[other] = at
                    sums[cells[first + k]] += 1


def count_together(starts, sentence, position, target_ids, target_offsets, cell_offsets, cells, sums):
    """sums[entry] = number of sentence pairs in which both words of the entry occur."""
    run_blocks(
        _count_together, blocks_for(starts.size - 1), starts, sentence, position, target_ids, target_offsets,
        cell_offsets, cells, sums,
    )  # fmt: skip


@njit(**_KERNEL)
def _find_entries(block, count, rows, columns, source, target, known_rows, known_columns, n_targets, out):
    met = np.full(n_targets, -1, np.int32)
    place = np.empty(n_targets, np.int64)
    for word in range(block, rows.size - 1, count):
        there = source[word]
        if there < 0:
            continue
        for entry in range(known_rows[there], known_rows[there + 1]):
            met[known_columns[entry]] = word
            place[known_columns[entry]] = entry
        for entry in range(rows[word], rows[word + 1]):
            other = target[columns[entry]]
            if other >= 0 and met[other] == word:
                out[entry] = place[other]


def find_entries(rows, columns, source, target, known_rows, known_columns, n_targets, out):
    """out[entry] = number of the entry in another table, left alone where there is none.

    `source` and `target` give the number there of each type here, -1 for none; `n_targets` counts the types there.
    """
    run_blocks(
        _find_entries, blocks_for(rows.size - 1), rows, columns, source, target, known_rows, known_columns,
        max(1, n_targets), out,
    )  # fmt: skip


@njit(**_KERNEL)
def pair_keys(source_ids, source_offsets, target_ids, target_offsets, keys):
    """keys[pair]: one number for the words of a pair, equal for equal pairs (and, rarely, for others)."""
    for s in range(keys.size):
        h = np.uint64(1469598103934665603)
        for at in range(source_offsets[s], source_offsets[s + 1]):
            h = (h ^ np.uint64(source_ids[at] + 2)) * np.uint64(1099511628211)
            h ^= h >> np.uint64(29)
        h = (h ^ np.uint64(1)) * np.uint64(1099511628211)
        for at in range(target_offsets[s], target_offsets[s + 1]):
            h = (h ^ np.uint64(target_ids[at] + 2)) * np.uint64(1099511628211)
            h ^= h >> np.uint64(29)
        keys[s] = h


@njit(**_KERNEL)
def same_rows(ids, offsets, known, starts, other):
    """other[row] = -1 where the row is not the same, number for number, as row other[row] of `known` there."""
    for s in range(other.size):
        t = other[s]
        if t < 0:
            continue
        n = offsets[s + 1] - offsets[s]
        if starts[t + 1] - starts[t] != n:
            other[s] = -1
            continue
        for k in range(n):
            if ids[offsets[s] + k] != known[starts[t] + k]:
                other[s] = -1
                break


# --- spelling


@njit(**_KERNEL)
def _ones(v):
    n = 0
    while v:
        v &= v - np.uint64(1)
        n += 1
    return n


@njit(**_KERNEL)
def _spell(block, count, rows, columns, a_letters, a_starts, b_letters, b_starts, n_letters, out):
    one = np.uint64(1)
    masks = np.zeros(n_letters, np.uint64)
    for word in range(block, rows.size - 1, count):
        start = a_starts[word]
        m = min(LONGEST, a_starts[word + 1] - start)
        if m == 0:
            continue
        for k in range(m):
            masks[a_letters[start + k]] |= one << np.uint64(k)
        top = one << np.uint64(m - 1)
        for entry in range(rows[word], rows[word + 1]):
            other = columns[entry]
            first = b_starts[other]
            n = min(LONGEST, b_starts[other + 1] - first)
            if n == 0:
                continue
            longer = max(m, n)
            v = ~np.uint64(0)  # Hyyrö's recurrence for the longest common subsequence
            plus, minus, distance = ~np.uint64(0), np.uint64(0), m  # Myers's for the edit distance
            for k in range(n):
                eq = masks[b_letters[first + k]]
                u = v & eq
                v = (v + u) | (v - u)
                x = eq | minus
                d0 = (((x & plus) + plus) ^ plus) | x
                hp = minus | ~(d0 | plus)
                hm = d0 & plus
                if hp & top:
                    distance += 1
                if hm & top:
                    distance -= 1
                hp = (hp << one) | one
                hm = hm << one
                plus = hm | ~(d0 | hp)
                minus = d0 & hp
            shorter = min(m, n)
            prefix = 0
            while prefix < shorter and a_letters[start + prefix] == b_letters[first + prefix]:
                prefix += 1
            suffix = 0
            while suffix < shorter and a_letters[start + m - 1 - suffix] == b_letters[first + n - 1 - suffix]:
                suffix += 1
            out[entry, 0] = np.float32(_ones(~v)) / np.float32(longer)
            out[entry, 1] = np.float32(1.0) - np.float32(distance) / np.float32(longer)
            out[entry, 2] = np.float32(prefix) / np.float32(longer)
            out[entry, 3] = np.float32(suffix) / np.float32(longer)
        for k in range(m):
            masks[a_letters[start + k]] = 0


def spell(rows, columns, a_letters, a_starts, b_letters, b_starts, n_letters, out):
    """out[entry] = (common subsequence, 1 - edit distance, common prefix, common suffix) over the longer word's length.

    Letters are numbers below `n_letters`, of which the first 64 of a word are compared; words without letters have 0.
    """
    run_blocks(
        _spell, blocks_for(rows.size - 1), rows, columns, a_letters, a_starts, b_letters, b_starts, max(1, n_letters),
        out,
    )  # fmt: skip


# --- columns of the table


@njit(**_KERNEL)
def _associate(block, count, cell_offsets, cells, inside, alone, others, dice, out, column):
    for s in range(block, cell_offsets.size - 1, count):
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            entry = cells[cell]
            if inside[s]:
                dice[cell] = others[entry, 0]
            else:
                dice[cell] = alone[entry, 0]
            if column >= 0:
                for k in range(3):
                    out[cell, column + k] = others[entry, k] if inside[s] else alone[entry, k]


def associate(cell_offsets, cells, inside, alone, others, dice, out, column):
    """Dice of every cell, and association in three columns; from `others` for pairs whose own evidence is left out."""
    run_blocks(
        _associate, blocks_for(cell_offsets.size - 1), cell_offsets, cells, inside, alone, others, dice, out, column
    )


@njit(**_KERNEL)
def _place(block, count, source_offsets, target_offsets, cell_offsets, dice, cap, out, column):
    for s in range(block, cell_offsets.size - 1, count):
        n = source_offsets[s + 1] - source_offsets[s]
        m = target_offsets[s + 1] - target_offsets[s]
        cell = cell_offsets[s]
        longer = max(n, m)
        for i in range(n):
            for j in range(m):
                d = abs((i + 0.5) / n - (j + 0.5) / m)
                words = min(1.0, d * longer / cap)
                out[cell, column] = d
                out[cell, column + 1] = d * d
                out[cell, column + 2] = np.sqrt(d)
                out[cell, column + 3] = words
                out[cell, column + 4] = words * words
                out[cell, column + 5] = 1.0 if i == 0 and j == 0 else 0.0
                out[cell, column + 6] = 1.0 if i == n - 1 and j == m - 1 else 0.0
                out[cell, column + 7] = dice[cell] * (1.0 - d)
                cell += 1


def place(source_offsets, target_offsets, cell_offsets, dice, cap, out, column):
    """Eight columns about where the two words stand; distances in words are capped at `cap`."""
    run_blocks(
        _place, blocks_for(cell_offsets.size - 1), source_offsets, target_offsets, cell_offsets, dice, float(cap), out,
        column,
    )  # fmt: skip


@njit(**_KERNEL)
def _compare(block, count, a, b, cell_offsets, cells, spelt, out, column):
    for s in range(block, cell_offsets.size - 1, count):
        cell = cell_offsets[s]
        for x in range(a.offsets[s], a.offsets[s + 1]):
            for y in range(b.offsets[s], b.offsets[s + 1]):
                f, g = a.flags[x], b.flags[y]
                both, one = f & g, f ^ g
                row = out[cell, column:]
                for k in range(5):  # exact, folded, consonants, digits, punctuation: numbers of forms, -1 for none
                    row[k] = 1.0 if a.keys[x, k] >= 0 and a.keys[x, k] == b.keys[y, k] else 0.0
                entry = cells[cell]
                for k in range(4):
                    row[5 + k] = spelt[entry, k]
                row[9] = 1.0 if both & SHORT else 0.0
                row[10] = 1.0 if one & NUMBER else 0.0
                row[11] = 1.0 if one & PUNCTUATION else 0.0
                row[12] = 1.0 if both & CAPITAL else 0.0
                row[13] = 1.0 if one & CAPITAL else 0.0
                row[14] = 1.0 if a.scripts[x] >= 0 and a.scripts[x] == b.scripts[y] else 0.0
                cell += 1


def compare(a, b, cell_offsets, cells, spelt, out, column):
    """Fifteen columns about how the two words are written; `a` and `b` are `Tokens`."""
    run_blocks(_compare, blocks_for(cell_offsets.size - 1), a, b, cell_offsets, cells, spelt, out, column)


@njit(**_KERNEL)
def _rate(block, count, a, b, a_rank, b_rank, scale, cell_offsets, out, column):
    for s in range(block, cell_offsets.size - 1, count):
        cell = cell_offsets[s]
        for x in range(a.offsets[s], a.offsets[s + 1]):
            for y in range(b.offsets[s], b.offsets[s + 1]):
                both, one = a.flags[x] & b.flags[y], a.flags[x] ^ b.flags[y]
                row = out[cell, column:]
                row[0] = min(1.0, abs(a_rank[x] - b_rank[y]) * scale)
                row[1] = 1.0 if both & FREQUENT else 0.0
                row[2] = 1.0 if one & FREQUENT else 0.0
                row[3] = 1.0 if both & RARE else 0.0
                row[4] = 1.0 if one & RARE else 0.0
                cell += 1


def rate(a, b, a_rank, b_rank, scale, cell_offsets, out, column):
    """Five columns about how frequent the two words are; `a_rank` and `b_rank` are logarithms of ranks by token."""
    run_blocks(_rate, blocks_for(cell_offsets.size - 1), a, b, a_rank, b_rank, float(scale), cell_offsets, out, column)


@njit(**_KERNEL)
def _neighbours(block, count, source_offsets, target_offsets, cell_offsets, dice, out, column):
    for s in range(block, cell_offsets.size - 1, count):
        n = source_offsets[s + 1] - source_offsets[s]
        m = target_offsets[s + 1] - target_offsets[s]
        first = cell_offsets[s]
        best, second = np.zeros((2, n + m), np.float32)
        for i in range(n):
            for j in range(m):
                d = dice[first + i * m + j]
                for at in (i, n + j):
                    if d > best[at]:
                        second[at] = best[at]
                        best[at] = d
                    elif d > second[at]:
                        second[at] = d
        for i in range(n):
            for j in range(m):
                cell = first + i * m + j
                d = dice[cell]
                out[cell, column] = dice[cell + m + 1] if i + 1 < n and j + 1 < m else 0.0
                out[cell, column + 1] = dice[cell - m - 1] if i > 0 and j > 0 else 0.0
                for k in range(2):
                    at = i if k == 0 else n + j
                    rival = best[at] if d < best[at] else second[at]
                    out[cell, column + 2 + k] = d / (d + rival) if d > 0.0 else 0.0


def neighbours(source_offsets, target_offsets, cell_offsets, dice, out, column):
    """Four columns: Dice of the next and previous diagonal cell, and Dice against the best rival in row and column.

    A rival of equal Dice gives one half, none gives 1.
    """
    run_blocks(
        _neighbours, blocks_for(cell_offsets.size - 1), source_offsets, target_offsets, cell_offsets, dice, out, column
    )


@njit(**_KERNEL)
def _posteriors(block, count, source_offsets, target_offsets, cell_offsets, both, threshold, out, column):
    for s in range(block, cell_offsets.size - 1, count):
        n = source_offsets[s + 1] - source_offsets[s]
        m = target_offsets[s + 1] - target_offsets[s]
        first = cell_offsets[s]
        best = np.zeros(n + m, np.float32)
        for i in range(n):
            for j in range(m):
                p = np.float32(0.5) * (both[first + i * m + j, 0] + both[first + i * m + j, 1])
                best[i] = max(best[i], p)
                best[n + j] = max(best[n + j], p)
        for i in range(n):
            for j in range(m):
                cell = first + i * m + j
                forward, backward = both[cell, 0], both[cell, 1]
                p = np.float32(0.5) * (forward + backward)
                row = out[cell, column:]
                row[0], row[1], row[2] = p, forward, backward
                row[3] = forward * backward
                row[4] = _logit(p)
                row[5] = 1.0 if p >= threshold else 0.0
                row[6] = 1.0 if p > 0.0 and p >= best[i] else 0.0
                row[7] = 1.0 if p > 0.0 and p >= best[n + j] else 0.0


@njit(**_KERNEL)
def _logit(p):
    """log(p / (1 - p)), clipped to ±10 and moved to [0, 1]."""
    low = 4.5397868702434395e-05  # 1 / (1 + e^10)
    p = min(1.0 - low, max(low, np.float64(p)))
    return min(1.0, max(0.0, 0.5 + np.log(p / (1.0 - p)) / 20.0))


def posteriors(source_offsets, target_offsets, cell_offsets, both, threshold, out, column):
    """Eight columns of an aligner's posteriors float32[n_cells, 2]."""
    run_blocks(
        _posteriors, blocks_for(cell_offsets.size - 1), source_offsets, target_offsets, cell_offsets, both,
        np.float32(threshold), out, column,
    )  # fmt: skip


@njit(**_KERNEL)
def _logits(block, count, cell_offsets, values, out, column):
    for s in range(block, cell_offsets.size - 1, count):
        for cell in range(cell_offsets[s], cell_offsets[s + 1]):
            out[cell, column] = values[cell]
            out[cell, column + 1] = _logit(values[cell])


def logits(cell_offsets, values, out, column):
    """Two columns: a probability of every cell float32[n_cells], and its logit."""
    run_blocks(_logits, blocks_for(cell_offsets.size - 1), cell_offsets, values, out, column)


@njit(**_KERNEL)
def _surroundings(block, count, source_offsets, target_offsets, cell_offsets, values, out, column):
    for s in range(block, cell_offsets.size - 1, count):
        n = source_offsets[s + 1] - source_offsets[s]
        m = target_offsets[s + 1] - target_offsets[s]
        grid = values[cell_offsets[s] : cell_offsets[s + 1]].reshape(n, m)
        best, second, total = np.zeros(n + m, np.float32), np.zeros(n + m, np.float32), np.zeros(n + m, np.float32)
        for i in range(n):
            for j in range(m):
                for word in (i, n + j):
                    total[word] += grid[i, j]
                    if grid[i, j] > best[word]:
                        best[word], second[word] = grid[i, j], best[word]
                    elif grid[i, j] > second[word]:
                        second[word] = grid[i, j]
        for i in range(n):
            for j in range(m):
                row = out[cell_offsets[s] + i * m + j, column:]
                at = 0
                for down in range(-1, 2):
                    for right in range(-1, 2):
                        if down != 0 or right != 0:
                            x, y = i + down, j + right
                            row[at] = grid[x, y] if 0 <= x < n and 0 <= y < m else np.float32(0.0)
                            at += 1
                for word in (i, n + j):
                    row[at] = second[word] if grid[i, j] >= best[word] else best[word]
                    row[at + 1] = min(np.float32(1.0), np.float32(0.5) * total[word])
                    at += 2


def surroundings(source_offsets, target_offsets, cell_offsets, values, out, column):
    """Twelve columns of float32[n_cells] around each cell.

    The eight neighbours, row by row; then of its row and of its column the largest of the other cells, and half the
    sum of all, at most 1.
    """
    run_blocks(
        _surroundings, blocks_for(cell_offsets.size - 1), source_offsets, target_offsets, cell_offsets, values, out,
        column,
    )  # fmt: skip


# --- indicators


@njit(**_KERNEL)
def _lexical_counts(block, count, a, a_offsets, b, b_offsets, cell_offsets, paired, listed, sizes):
    for s in range(block, cell_offsets.size - 1, count):
        cell = cell_offsets[s]
        for x in range(a_offsets[s], a_offsets[s + 1]):
            for y in range(b_offsets[s], b_offsets[s + 1]):
                n = 0
                if 0 <= a[x] < paired[0] and 0 <= b[y] < paired[1]:
                    n += 1
                if 0 <= a[x] < listed[0]:
                    n += 1
                if 0 <= b[y] < listed[1]:
                    n += 1
                sizes[cell + 1] = n
                cell += 1


def lexical_counts(a, a_offsets, b, b_offsets, cell_offsets, paired, listed, sizes):
    """sizes[cell + 1] = how many indicators fire there.

    `a` and `b` are ranks of tokens among the frequent words, or -1; the first `paired` words of each side have an
    indicator for every pair, the first `listed` one for themselves.
    """
    run_blocks(
        _lexical_counts, blocks_for(cell_offsets.size - 1), a, a_offsets, b, b_offsets, cell_offsets, paired, listed,
        sizes,
    )  # fmt: skip


@njit(**_KERNEL)
def _lexical_fill(block, count, a, a_offsets, b, b_offsets, cell_offsets, paired, listed, indptr, indices):
    n_pairs = paired[0] * paired[1]
    for s in range(block, cell_offsets.size - 1, count):
        cell = cell_offsets[s]
        for x in range(a_offsets[s], a_offsets[s + 1]):
            for y in range(b_offsets[s], b_offsets[s + 1]):
                at = indptr[cell]
                if 0 <= a[x] < paired[0] and 0 <= b[y] < paired[1]:
                    indices[at] = a[x] * paired[1] + b[y]
                    at += 1
                if 0 <= a[x] < listed[0]:
                    indices[at] = n_pairs + a[x]
                    at += 1
                if 0 <= b[y] < listed[1]:
                    indices[at] = n_pairs + listed[0] + b[y]
                cell += 1


def lexical_fill(a, a_offsets, b, b_offsets, cell_offsets, paired, listed, indptr, indices):
    """Write the indicators that `lexical_counts` counted: of pairs, of source words, of target words."""
    run_blocks(
        _lexical_fill, blocks_for(cell_offsets.size - 1), a, a_offsets, b, b_offsets, cell_offsets, paired, listed,
        indptr, indices,
    )  # fmt: skip
