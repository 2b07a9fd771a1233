"""Kernels of the pair table: which word pairs occur together, and sums over them.

The *cells* of a sentence pair are its word pairs, row by row: cell ``i * n_target + j`` is source word i with target
word j. Word types that meet in some cell share an *entry* of the table; entries are grouped by source type, so that a
thread which owns a source type owns its entries and no sum depends on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = ["accumulate", "blend", "column_sums", "group_entries", "group_sums", "index_cells", "look_up", "occurrences"]

_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}
_PARALLEL = {**_KERNEL, "parallel": True}
_BLOCKS = 64  # pieces of work handed to threads; fixed, so that results do not depend on how many threads there are


@njit(**_KERNEL)
def occurrences(ids, offsets, n_types):
    """Where each word type occurs: starts[n_types + 1], sentence[n_tokens], position[n_tokens]; type -1 is skipped."""
    starts = np.zeros(n_types + 1, np.int64)
    for token in range(offsets[0], offsets[-1]):
        if ids[token] >= 0:
            starts[ids[token] + 1] += 1
    for word in range(n_types):
        starts[word + 1] += starts[word]
    free = starts[:-1].copy()
    sentence = np.empty(starts[n_types], np.int32)
    position = np.empty(starts[n_types], np.int32)
    for s in range(offsets.size - 1):
        for token in range(offsets[s], offsets[s + 1]):
            word = ids[token]
            if word >= 0:
                sentence[free[word]] = s
                position[free[word]] = token - offsets[s]
                free[word] += 1
    return starts, sentence, position


@njit(**_PARALLEL)
def index_cells(starts, sentence, position, target_ids, target_offsets, cell_offsets, n_targets, cells):
    """Number the word pairs that occur together and write the entry of every cell.

    Returns ``rows[n_sources + 1]`` (where the entries of each source type start) and ``columns[n_entries]`` (the target
    type of each), target types in order of first meeting.
    """
    n_sources = starts.size - 1
    rows = np.zeros(n_sources + 1, np.int64)
    for block in prange(_BLOCKS):
        met = np.full(n_targets, -1, np.int32)
        for word in range(block, n_sources, _BLOCKS):
            n = 0
            for at in range(starts[word], starts[word + 1]):
                s = sentence[at]
                for token in range(target_offsets[s], target_offsets[s + 1]):
                    other = target_ids[token]
                    if met[other] != word:
                        met[other] = word
                        n += 1
            rows[word + 1] = n
    for word in range(n_sources):
        rows[word + 1] += rows[word]
    columns = np.empty(rows[n_sources], np.int32)
    for block in prange(_BLOCKS):
        met = np.full(n_targets, -1, np.int32)
        number = np.empty(n_targets, np.int32)
        for word in range(block, n_sources, _BLOCKS):
            n = rows[word]
            for at in range(starts[word], starts[word + 1]):
                s = sentence[at]
                width = target_offsets[s + 1] - target_offsets[s]
                cell = cell_offsets[s] + position[at] * width
                for token in range(target_offsets[s], target_offsets[s + 1]):
                    other = target_ids[token]
                    if met[other] != word:
                        met[other] = word
                        number[other] = n
                        columns[n] = other
                        n += 1
                    cells[cell] = number[other]
                    cell += 1
    return rows, columns


@njit(**_PARALLEL)
def look_up(rows, columns, source, target, known_rows, known_columns, known, n_targets, out, found):
    """Values of entries in another table: out[entry] = known[entry there], found[entry] = True where it has one.

    `source` and `target` give the number there of each type here, -1 for none; `n_targets` counts the types there.
    """
    for block in prange(_BLOCKS):
        met = np.full(n_targets, -1, np.int32)
        place = np.empty(n_targets, np.int64)
        for word in range(block, rows.size - 1, _BLOCKS):
            there = source[word]
            if there < 0:
                continue
            for entry in range(known_rows[there], known_rows[there + 1]):
                met[known_columns[entry]] = word
                place[known_columns[entry]] = entry
            for entry in range(rows[word], rows[word + 1]):
                other = target[columns[entry]]
                if other >= 0 and met[other] == word:
                    out[entry, 0] = known[place[other], 0]
                    out[entry, 1] = known[place[other], 1]
                    found[entry] = True


@njit(**_PARALLEL)
def accumulate(starts, sentence, position, target_offsets, cell_offsets, cells, posterior, counts):
    """counts[entry] += posterior[cell] in both directions; whole numbers, so that the sum is exact in any order."""
    for block in prange(_BLOCKS):
        for word in range(block, starts.size - 1, _BLOCKS):
            for at in range(starts[word], starts[word + 1]):
                s = sentence[at]
                width = target_offsets[s + 1] - target_offsets[s]
                first = cell_offsets[s] + position[at] * width
                for cell in range(first, first + width):
                    entry = cells[cell]
                    counts[entry, 0] += posterior[cell, 0]
                    counts[entry, 1] += posterior[cell, 1]


@njit(**_PARALLEL)
def group_entries(members, member_starts, rows, columns, target_group, n_groups):
    """The pair of classes each entry belongs to, given classes of source types (as lists of members) and target types.

    Returns ``group[n_entries]`` and, for each pair of classes, its source class: ``owner[n_pairs]``.
    """
    n_classes = member_starts.size - 1
    sizes = np.zeros(n_classes + 1, np.int64)
    for block in prange(_BLOCKS):
        met = np.full(n_groups, -1, np.int32)
        for kind in range(block, n_classes, _BLOCKS):
            n = 0
            for at in range(member_starts[kind], member_starts[kind + 1]):
                for entry in range(rows[members[at]], rows[members[at] + 1]):
                    other = target_group[columns[entry]]
                    if met[other] != kind:
                        met[other] = kind
                        n += 1
            sizes[kind + 1] = n
    for kind in range(n_classes):
        sizes[kind + 1] += sizes[kind]
    group = np.empty(columns.size, np.int32)
    owner = np.empty(sizes[n_classes], np.int32)
    other_side = np.empty(sizes[n_classes], np.int32)
    for block in prange(_BLOCKS):
        met = np.full(n_groups, -1, np.int32)
        number = np.empty(n_groups, np.int32)
        for kind in range(block, n_classes, _BLOCKS):
            n = sizes[kind]
            for at in range(member_starts[kind], member_starts[kind + 1]):
                for entry in range(rows[members[at]], rows[members[at] + 1]):
                    other = target_group[columns[entry]]
                    if met[other] != kind:
                        met[other] = kind
                        number[other] = n
                        owner[n] = kind
                        other_side[n] = other
                        n += 1
                    group[entry] = number[other]
    return group, owner, other_side


@njit(**_PARALLEL)
def group_sums(members, member_starts, rows, group, counts, sums):
    """sums[group] += counts[entry], both directions; a source class owns its pairs."""
    for block in prange(_BLOCKS):
        for kind in range(block, member_starts.size - 1, _BLOCKS):
            for at in range(member_starts[kind], member_starts[kind + 1]):
                for entry in range(rows[members[at]], rows[members[at] + 1]):
                    sums[group[entry], 0] += counts[entry, 0]
                    sums[group[entry], 1] += counts[entry, 1]


@njit(**_PARALLEL)
def blend(rows, columns, counts, unit, floor, prior, group, pull, share_source, share_target, weights, source_mass):
    """weights = counts * unit + floor + prior + stem prior, float32[n_entries, 2]; source_mass sums the forward ones.

    ``pull[group]`` is the strength of the stem prior times the conditional probability of the pair of stems, in both
    directions; shares say which part of its stem a word is. `prior` and `group` may be empty.
    """
    for block in prange(_BLOCKS):
        for word in range(block, rows.size - 1, _BLOCKS):
            mass = 0.0
            for entry in range(rows[word], rows[word + 1]):
                forward = counts[entry, 0] * unit + floor
                backward = counts[entry, 1] * unit + floor
                if prior.size > 0:
                    forward += prior[entry, 0]
                    backward += prior[entry, 1]
                if group.size > 0:
                    forward += pull[group[entry], 0] * share_target[columns[entry]]
                    backward += pull[group[entry], 1] * share_source[word]
                weights[entry, 0] = forward
                weights[entry, 1] = backward
                mass += weights[entry, 0]
            source_mass[word] = mass


@njit(**_KERNEL)
def column_sums(columns, weights, sums):
    """sums[target type] += weights[entry, 1], in the order of the table."""
    for entry in range(columns.size):
        sums[columns[entry]] += weights[entry, 1]
