"""Kernels of the pair table: which word pairs occur together, and sums over them.

The *cells* of a sentence pair are its word pairs, row by row: cell ``i * n_target + j`` is source word i with target
word j. Word types that meet in some cell share an *entry* of the table; entries are grouped by source type, so that a
thread which owns a source type owns its entries and no sum depends on the number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.engine.threads import run_blocks
from isogloss.structures._numba.lanes import prefetch

__all__ = [
    "accumulate",
    "blend",
    "blocks_for",
    "column_sums",
    "group_entries",
    "group_sums",
    "index_cells",
    "look_up",
    "occurrences",
    "stem_pull",
]

_AHEAD = 8
_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}


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


@njit(**_KERNEL)
def _count_entries(block, count, starts, sentence, target_ids, target_offsets, n_targets, sizes):
    """sizes[word + 1] = number of target types that source type `word` occurs with."""
    met = np.full(n_targets, -1, np.int32)
    for word in range(block, starts.size - 1, count):
        n = 0
        for at in range(starts[word], starts[word + 1]):
            s = sentence[at]
            for token in range(target_offsets[s], target_offsets[s + 1]):
                other = target_ids[token]
                if met[other] != word:
                    met[other] = word
                    n += 1
        sizes[word + 1] = n


@njit(**_KERNEL)
def _number_entries(
    block, count, starts, sentence, position, target_ids, target_offsets, cell_offsets, rows, columns, cells, n_targets
):
    """Write the target type of every entry, and the entry of every cell."""
    met = np.full(n_targets, -1, np.int32)
    number = np.empty(n_targets, np.int32)
    for word in range(block, starts.size - 1, count):
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


def index_cells(starts, sentence, position, target_ids, target_offsets, cell_offsets, n_targets, cells):
    """Number the word pairs that occur together and write the entry of every cell.

    Returns ``rows[n_sources + 1]`` (where the entries of each source type start) and ``columns[n_entries]`` (the target
    type of each), target types in order of first meeting.
    """
    count = blocks_for(starts.size - 1)
    sizes = np.zeros(starts.size, np.int64)
    run_blocks(_count_entries, count, starts, sentence, target_ids, target_offsets, n_targets, sizes)
    rows = np.cumsum(sizes)
    columns = np.empty(rows[-1], np.int32)
    run_blocks(
        _number_entries, count, starts, sentence, position, target_ids, target_offsets, cell_offsets, rows, columns,
        cells, n_targets,
    )  # fmt: skip
    return rows, columns


def blocks_for(n):
    """Pieces of work for the threads, by the number of things to do alone."""
    return max(1, min(32, n // 64))


@njit(**_KERNEL)
def _look_up(block, count, rows, columns, source, target, known_rows, known_columns, known, n_targets, out, found):
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
                out[entry, 0] = known[place[other], 0]
                out[entry, 1] = known[place[other], 1]
                found[entry] = True


def look_up(rows, columns, source, target, known_rows, known_columns, known, n_targets, out, found):
    """Values of entries in another table: out[entry] = known[entry there], found[entry] = True where it has one.

    `source` and `target` give the number there of each type here, -1 for none; `n_targets` counts the types there.
    """
    run_blocks(
        _look_up, blocks_for(rows.size - 1), rows, columns, source, target, known_rows, known_columns, known, n_targets,
        out, found,
    )  # fmt: skip


@njit(**_KERNEL)
def _accumulate(block, count, starts, sentence, position, target_offsets, cell_offsets, cells, posterior, counts):
    for word in range(block, starts.size - 1, count):
        for at in range(starts[word], starts[word + 1]):
            if (
                at + _AHEAD < sentence.size
            ):  # rows of cells lie all over the text: ask for one some steps before its turn
                s = sentence[at + _AHEAD]
                ahead = cell_offsets[s] + position[at + _AHEAD] * (target_offsets[s + 1] - target_offsets[s])
                prefetch(cells, ahead)
                prefetch(posterior, 2 * ahead)
            s = sentence[at]
            width = target_offsets[s + 1] - target_offsets[s]
            first = cell_offsets[s] + position[at] * width
            for cell in range(first, first + width):
                entry = cells[cell]
                counts[entry, 0] += posterior[cell, 0]
                counts[entry, 1] += posterior[cell, 1]


def accumulate(starts, sentence, position, target_offsets, cell_offsets, cells, posterior, counts):
    """counts[entry] += posterior[cell] in both directions; whole numbers, so that the sum is exact in any order."""
    run_blocks(
        _accumulate, blocks_for(starts.size - 1), starts, sentence, position, target_offsets, cell_offsets, cells,
        posterior, counts,
    )  # fmt: skip


@njit(**_KERNEL)
def _count_groups(block, count, members, member_starts, rows, columns, target_group, n_groups, sizes):
    met = np.full(n_groups, -1, np.int32)
    for kind in range(block, member_starts.size - 1, count):
        n = 0
        for at in range(member_starts[kind], member_starts[kind + 1]):
            for entry in range(rows[members[at]], rows[members[at] + 1]):
                other = target_group[columns[entry]]
                if met[other] != kind:
                    met[other] = kind
                    n += 1
        sizes[kind + 1] = n


@njit(**_KERNEL)
def _number_groups(
    block, count, members, member_starts, rows, columns, target_group, n_groups, starts, group, owner, other_side
):
    met = np.full(n_groups, -1, np.int32)
    number = np.empty(n_groups, np.int32)
    for kind in range(block, member_starts.size - 1, count):
        n = starts[kind]
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


def group_entries(members, member_starts, rows, columns, target_group, n_groups):
    """The pair of classes each entry belongs to, given classes of source types (as lists of members) and target types.

    Returns ``group[n_entries]`` and the source and target class of each pair of classes, by source class.
    """
    count = blocks_for(member_starts.size - 1)
    sizes = np.zeros(member_starts.size, np.int64)
    run_blocks(_count_groups, count, members, member_starts, rows, columns, target_group, n_groups, sizes)
    starts = np.cumsum(sizes)
    group = np.empty(columns.size, np.int32)
    owner, other_side = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
    run_blocks(
        _number_groups, count, members, member_starts, rows, columns, target_group, n_groups, starts, group, owner,
        other_side,
    )  # fmt: skip
    return group, owner, other_side


@njit(**_KERNEL)
def _group_sums(block, count, members, member_starts, rows, group, counts, sums):
    for kind in range(block, member_starts.size - 1, count):
        for at in range(member_starts[kind], member_starts[kind + 1]):
            for entry in range(rows[members[at]], rows[members[at] + 1]):
                sums[group[entry], 0] += counts[entry, 0]
                sums[group[entry], 1] += counts[entry, 1]


def group_sums(members, member_starts, rows, group, counts, sums):
    """sums[group] += counts[entry], both directions; a source class owns its pairs."""
    count = blocks_for(member_starts.size - 1)
    run_blocks(_group_sums, count, members, member_starts, rows, group, counts, sums)


@njit(**_KERNEL)
def _blend(
    block,
    count,
    rows,
    columns,
    counts,
    unit,
    floor,
    prior,
    group,
    pull,
    share_source,
    share_target,
    weights,
    source_mass,
):
    for word in range(block, rows.size - 1, count):
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


def blend(rows, columns, counts, unit, floor, prior, group, pull, share_source, share_target, weights, source_mass):
    """weights = counts * unit + floor + prior + stem prior, float32[n_entries, 2]; source_mass sums the forward ones.

    ``pull[group]`` is the strength of the stem prior times the conditional probability of the pair of stems, in both
    directions; shares say which part of its stem a word is. `prior` and `group` may be empty.
    """
    run_blocks(
        _blend, blocks_for(rows.size - 1), rows, columns, counts, unit, floor, prior, group, pull, share_source,
        share_target, weights, source_mass,
    )  # fmt: skip


@njit(**_KERNEL)
def _stem_pull(block, count, starts, other, unit, strength, backward, sums, pull, forward):
    for kind in range(block, starts.size - 1, count):
        total = 0.0
        for g in range(starts[kind], starts[kind + 1]):
            total += sums[g, 0] * unit + 1e-6
        forward[kind] = total
        for g in range(starts[kind], starts[kind + 1]):
            pull[g, 0] = strength * (sums[g, 0] * unit + 1e-6) / total
            pull[g, 1] = strength * (sums[g, 1] * unit + 1e-6) / backward[other[g]]


@njit(**_KERNEL)
def _other_sums(other, unit, sums, backward):
    for g in range(other.size):
        backward[other[g]] += sums[g, 1] * unit + 1e-6


def stem_pull(starts, other, unit, strength, sums, pull, forward, backward):
    """pull[group] = strength times the probability of one class given the other, both ways; fills the sums of classes.

    ``sums[group]`` are counts in units, groups lie by source class from ``starts`` on, ``other`` is their target class.
    """
    _other_sums(other, unit, sums, backward)
    count = blocks_for(starts.size - 1)
    run_blocks(_stem_pull, count, starts, other, unit, strength, backward, sums, pull, forward)


@njit(**_KERNEL)
def column_sums(columns, weights, sums):
    """sums[target type] += weights[entry, 1], in the order of the table."""
    for entry in range(columns.size):
        sums[columns[entry]] += weights[entry, 1]
