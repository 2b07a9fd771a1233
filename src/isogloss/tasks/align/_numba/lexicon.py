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
    "accumulate_some",
    "blend",
    "blocks_for",
    "column_sums",
    "count_entries",
    "count_nulls",
    "find_cells",
    "find_groups",
    "find_some_cells",
    "group_entries",
    "group_sums",
    "list_entries",
    "look_up",
    "merge_entries",
    "number_types",
    "occurrences",
    "pulled",
    "sentences_of",
    "stem_pull",
]

_AHEAD = 8
_STRAY = -2  # the number of a cell that has no entry, but a pair of classes: from here on downwards
_LINE = 16  # cells of four bytes in a line of the cache
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
def number_types(ids, numbers):
    """Types in order of first appearance; `numbers`, -1 for each type at first, is filled with their places."""
    found = np.empty(min(ids.size, numbers.size), np.int32)
    n = 0
    for token in range(ids.size):
        if numbers[ids[token]] < 0:
            numbers[ids[token]] = n
            found[n] = ids[token]
            n += 1
    return found[:n]


@njit(**_KERNEL)
def sentences_of(ids, offsets, first, last):
    """In which sentences each of the types first..last-1 occurs: starts[last - first + 1], sentence[n_occurrences]."""
    starts = np.zeros(last - first + 1, np.int64)
    for token in range(offsets[0], offsets[-1]):
        if first <= ids[token] < last:
            starts[ids[token] - first + 1] += 1
    for word in range(last - first):
        starts[word + 1] += starts[word]
    free = starts[:-1].copy()
    sentence = np.empty(starts[last - first], np.int32)
    for s in range(offsets.size - 1):
        for token in range(offsets[s], offsets[s + 1]):
            word = ids[token] - first
            if 0 <= word < last - first:
                sentence[free[word]] = s
                free[word] += 1
    return starts, sentence


@njit(**_KERNEL)
def _count_entries(block, count, starts, sentence, target_ids, target_offsets, n_targets, sizes):
    """sizes[word] = number of target types that source type `word` occurs with."""
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
        sizes[word] = n


def count_entries(count, starts, sentence, target_ids, target_offsets, n_targets):
    """With how many target types each source type of `sentences_of` occurs: int64[n_types]; in `count` blocks."""
    sizes = np.zeros(starts.size - 1, np.int64)
    run_blocks(_count_entries, count, starts, sentence, target_ids, target_offsets, n_targets, sizes)
    return sizes


@njit(**_KERNEL)
def _list_entries(block, count, starts, sentence, target_ids, target_offsets, n_targets, rows, columns, cells):
    met = np.full(n_targets, -1, np.int32)
    place = np.empty(n_targets, np.int64)
    for word in range(block, starts.size - 1, count):
        n = rows[word]
        for at in range(starts[word], starts[word + 1]):
            s = sentence[at]
            for token in range(target_offsets[s], target_offsets[s + 1]):
                other = target_ids[token]
                if met[other] != word:
                    met[other] = word
                    place[other] = n
                    columns[n] = other
                    cells[n] = 0
                    n += 1
                cells[place[other]] += 1


def list_entries(count, starts, sentence, target_ids, target_offsets, n_targets):
    """The target types that each source type of `sentences_of` occurs with, in order of first meeting.

    Returns ``rows[n_types + 1]``, ``columns`` and in how many cells each pair of types meets.
    """
    sizes = count_entries(count, starts, sentence, target_ids, target_offsets, n_targets)
    rows = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    columns, cells = np.empty(rows[-1], np.int32), np.empty(rows[-1], np.int32)
    run_blocks(
        _list_entries, count, starts, sentence, target_ids, target_offsets, n_targets, rows, columns, cells
    )  # fmt: skip
    return rows, columns, cells


@njit(**_KERNEL)
def _count_merged(block, count, rows, columns, n_targets, sizes):
    met = np.full(n_targets, -1, np.int32)
    for word in range(block, rows.shape[1] - 1, count):
        n = 0
        for part in range(rows.shape[0]):
            for entry in range(rows[part, word], rows[part, word + 1]):
                if met[columns[entry]] != word:
                    met[columns[entry]] = word
                    n += 1
        sizes[word + 1] = n


@njit(**_KERNEL)
def _merge(block, count, rows, columns, cells, n_targets, merged, merged_columns, merged_cells):
    met = np.full(n_targets, -1, np.int32)
    place = np.empty(n_targets, np.int64)
    for word in range(block, rows.shape[1] - 1, count):
        n = merged[word]
        for part in range(rows.shape[0]):
            for entry in range(rows[part, word], rows[part, word + 1]):
                other = columns[entry]
                if met[other] != word:
                    met[other] = word
                    place[other] = n
                    merged_columns[n] = other
                    merged_cells[n] = 0
                    n += 1
                merged_cells[place[other]] += cells[entry]


def merge_entries(rows, columns, cells, n_targets):
    """Lists of entries of several parts of a text as one; ``rows[part]`` says where those of each type lie."""
    count = blocks_for(rows.shape[1] - 1)
    merged = np.zeros(rows.shape[1], np.int64)
    run_blocks(_count_merged, count, rows, columns, n_targets, merged)
    np.cumsum(merged, out=merged)
    merged_columns, merged_cells = np.empty(merged[-1], np.int32), np.empty(merged[-1], np.int32)
    run_blocks(_merge, count, rows, columns, cells, n_targets, merged, merged_columns, merged_cells)
    return merged, merged_columns, merged_cells


@njit(**_KERNEL)
def _ask_ahead(at, sentence, position, target_ids, target_offsets, cell_offsets, cells):
    """Rows of cells lie all over the text: ask for one some steps before its turn."""
    if at + _AHEAD < sentence.size:
        s = sentence[at + _AHEAD]
        width = target_offsets[s + 1] - target_offsets[s]
        ahead = cell_offsets[s] + position[at + _AHEAD] * width
        prefetch(target_ids, target_offsets[s])
        for cell in range(ahead, ahead + width, _LINE):
            prefetch(cells, cell)


@njit(**_KERNEL)
def _find_cells(
    block, count, starts, sentence, position, target_ids, target_offsets, cell_offsets, rows, columns, n_targets, cells
):
    number = np.full(n_targets, -1, np.int32)
    for word in range(block, starts.size - 1, count):
        if starts[word] == starts[word + 1]:
            continue
        for entry in range(rows[word], rows[word + 1]):
            number[columns[entry]] = entry
        for at in range(starts[word], starts[word + 1]):
            _ask_ahead(at, sentence, position, target_ids, target_offsets, cell_offsets, cells)
            s = sentence[at]
            cell = cell_offsets[s] + position[at] * (target_offsets[s + 1] - target_offsets[s])
            for token in range(target_offsets[s], target_offsets[s + 1]):
                cells[cell] = number[target_ids[token]]
                cell += 1


def find_cells(starts, sentence, position, target_ids, target_offsets, cell_offsets, rows, columns, n_targets, cells):
    """cells[cell] = the entry of its two words, where the table has one for every cell.

    Mark the row of each source type, and walk where it occurs. What is left over from another row is never read.
    """
    run_blocks(
        _find_cells, blocks_for(starts.size - 1), starts, sentence, position, target_ids, target_offsets, cell_offsets,
        rows, columns, n_targets, cells,
    )  # fmt: skip


@njit(**_KERNEL)
def _find_some_cells(
    block, count, starts, sentence, position, target_ids, target_offsets, cell_offsets, rows, columns, members,
    member_starts, group_starts, others, target_class, n_classes, cells,
):  # fmt: skip
    number = np.full(target_class.size, -1, np.int32)
    pair = np.full(n_classes, -1, np.int32)
    for kind in range(block, member_starts.size - 1, count):
        met = 0
        for k in range(member_starts[kind], member_starts[kind + 1]):
            met += starts[members[k] + 1] - starts[members[k]]
        if met == 0:
            continue
        for group in range(group_starts[kind], group_starts[kind + 1]):
            pair[others[group]] = group
        for k in range(member_starts[kind], member_starts[kind + 1]):
            word = members[k]
            if starts[word] == starts[word + 1]:
                continue
            for entry in range(rows[word], rows[word + 1]):
                number[columns[entry]] = entry
            for at in range(starts[word], starts[word + 1]):
                _ask_ahead(at, sentence, position, target_ids, target_offsets, cell_offsets, cells)
                s = sentence[at]
                cell = cell_offsets[s] + position[at] * (target_offsets[s + 1] - target_offsets[s])
                for token in range(target_offsets[s], target_offsets[s + 1]):
                    entry = number[target_ids[token]]
                    cells[cell] = entry if entry >= 0 else _STRAY - pair[target_class[target_ids[token]]]
                    cell += 1
            for entry in range(rows[word], rows[word + 1]):
                number[columns[entry]] = -1
        for group in range(group_starts[kind], group_starts[kind + 1]):
            pair[others[group]] = -1


def find_some_cells(
    starts, sentence, position, target_ids, target_offsets, cell_offsets, rows, columns, classes, cells
):  # fmt: skip
    """cells[cell] = the entry of its two words; without one, ``-2 - group`` of their classes, -1 without that too.

    `classes` are source types by class (members, and where those of each class start), pairs of classes (where those
    of each source class start, and their target classes), the class of every target type, and the number of these.
    """
    run_blocks(
        _find_some_cells, blocks_for(len(classes[1]) - 1), starts, sentence, position, target_ids, target_offsets,
        cell_offsets, rows, columns, *classes, cells,
    )  # fmt: skip


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
            if at + _AHEAD < sentence.size:  # rows lie all over the text: ask for one some steps before its turn
                s = sentence[at + _AHEAD]
                width = target_offsets[s + 1] - target_offsets[s]
                ahead = cell_offsets[s] + position[at + _AHEAD] * width
                for cell in range(ahead, ahead + width, _LINE):
                    prefetch(cells, cell)
                    prefetch(posterior, 2 * cell)
            s = sentence[at]
            width = target_offsets[s + 1] - target_offsets[s]
            first = cell_offsets[s] + position[at] * width
            for cell in range(first, first + width):
                if posterior[cell, 0] != 0 or posterior[cell, 1] != 0:
                    entry = cells[cell]
                    if entry < 0:
                        continue
                    counts[entry, 0] += posterior[cell, 0]
                    counts[entry, 1] += posterior[cell, 1]


def accumulate(starts, sentence, position, target_offsets, cell_offsets, cells, posterior, counts):
    """counts[entry] += posterior[cell] in both directions; whole numbers, so that the sum is exact in any order."""
    run_blocks(
        _accumulate, blocks_for(starts.size - 1), starts, sentence, position, target_offsets, cell_offsets, cells,
        posterior, counts,
    )  # fmt: skip


@njit(**_KERNEL)
def _accumulate_some(
    block, count, starts, sentence, position, target_offsets, cell_offsets, cells, posterior, members, member_starts,
    counts, groups, source,
):  # fmt: skip
    for kind in range(block, member_starts.size - 1, count):
        for k in range(member_starts[kind], member_starts[kind + 1]):
            word = members[k]
            for at in range(starts[word], starts[word + 1]):
                if at + _AHEAD < sentence.size:
                    s = sentence[at + _AHEAD]
                    width = target_offsets[s + 1] - target_offsets[s]
                    ahead = cell_offsets[s] + position[at + _AHEAD] * width
                    for cell in range(ahead, ahead + width, _LINE):
                        prefetch(cells, cell)
                        prefetch(posterior, 2 * cell)
                s = sentence[at]
                width = target_offsets[s + 1] - target_offsets[s]
                first = cell_offsets[s] + position[at] * width
                for cell in range(first, first + width):
                    if posterior[cell, 0] != 0 or posterior[cell, 1] != 0:
                        entry = cells[cell]
                        if entry >= 0:
                            counts[entry, 0] += posterior[cell, 0]
                            counts[entry, 1] += posterior[cell, 1]
                            continue
                        source[word] += posterior[cell, 0]
                        if entry <= _STRAY:
                            groups[_STRAY - entry, 0] += posterior[cell, 0]
                            groups[_STRAY - entry, 1] += posterior[cell, 1]


@njit(**_KERNEL)
def _stray_targets(block, count, source_offsets, target_offsets, cell_offsets, cells, posterior, strays):
    """strays[target token] = what its cells without an entry have, backward."""
    for s in range(block, cell_offsets.size - 1, count):
        first, last = target_offsets[s], target_offsets[s + 1]
        strays[first:last] = 0
        cell = cell_offsets[s]
        for _ in range(source_offsets[s], source_offsets[s + 1]):
            for token in range(first, last):
                if posterior[cell, 1] != 0 and cells[cell] < 0:
                    strays[token] += posterior[cell, 1]
                cell += 1


def accumulate_some(where, pairs, posterior, members, member_starts, counts, groups, source, target):
    """`accumulate` where cells may have no entry: these add to the pairs of classes and the types they belong to.

    A source class owns its types, with their entries, and its pairs of classes.
    """
    run_blocks(
        _accumulate_some, blocks_for(len(member_starts) - 1), *where, pairs.target_offsets, pairs.cell_offsets,
        pairs.cells, posterior, members, member_starts, counts, groups, source,
    )  # fmt: skip
    strays = np.empty(len(pairs.target_ids), np.int64)
    run_blocks(
        _stray_targets, blocks_for(len(pairs.cell_offsets) - 1), pairs.source_offsets, pairs.target_offsets,
        pairs.cell_offsets, pairs.cells, posterior, strays,
    )  # fmt: skip
    count_nulls(pairs.target_ids, strays, target)


@njit(**_KERNEL)
def count_nulls(ids, posterior, counts):
    """counts[type] += posterior[token]; whole numbers."""
    for token in range(ids.size):
        counts[ids[token]] += posterior[token]


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
def _find_groups(block, count, members, member_starts, rows, columns, target_class, starts, other, n_classes, group):
    pair = np.full(n_classes, other.size, np.int32)
    for kind in range(block, member_starts.size - 1, count):
        for k in range(starts[kind], starts[kind + 1]):
            pair[other[k]] = k
        for at in range(member_starts[kind], member_starts[kind + 1]):
            for entry in range(rows[members[at]], rows[members[at] + 1]):
                group[entry] = pair[target_class[columns[entry]]]
        for k in range(starts[kind], starts[kind + 1]):
            pair[other[k]] = other.size


def find_groups(members, member_starts, rows, columns, target_class, starts, other, n_classes):
    """The pair of classes of every entry, where pairs are known by source class; ``len(other)`` for none."""
    group = np.empty(columns.size, np.int32)
    run_blocks(
        _find_groups, blocks_for(member_starts.size - 1), members, member_starts, rows, columns, target_class, starts,
        other, n_classes, group,
    )  # fmt: skip
    return group


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
    prior_rows,
    prior_entries,
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
        known = prior_rows[word]
        for entry in range(rows[word], rows[word + 1]):
            forward = counts[entry, 0] * unit + floor
            backward = counts[entry, 1] * unit + floor
            if known < prior_rows[word + 1] and prior_entries[known] == entry:
                forward += prior[known, 0]
                backward += prior[known, 1]
                known += 1
            for k in range(group.shape[0]):
                forward += pull[group[k, entry], 0] * share_target[k, columns[entry]]
                backward += pull[group[k, entry], 1] * share_source[k, word]
            weights[entry, 0] = forward
            weights[entry, 1] = backward
            mass += weights[entry, 0]
        source_mass[word] = mass


def blend(rows, columns, counts, unit, floor, prior, group, pull, share_source, share_target, weights, source_mass):
    """weights = counts * unit + floor + prior + stem prior, float32[n_entries, 2]; source_mass sums the forward ones.

    `prior` has the entries that have one, in order: where those of each source type start, which they are, and their
    pseudo-counts in both directions. ``pull[group]`` is the strength of the stem prior times the conditional
    probability of the pair of stems, in both directions; shares say which part of its stem a word is. Of `group` and
    the shares there is a row for each way to cut words to stems.
    """
    run_blocks(
        _blend, blocks_for(rows.size - 1), rows, columns, counts, unit, floor, *prior, group, pull, share_source,
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
def pulled(rows, columns, group, pull, share_source, share_target, source, target):
    """How much of the stem prior the entries of each source type (forward) and target type (backward) have."""
    for word in range(rows.size - 1):
        for entry in range(rows[word], rows[word + 1]):
            source[word] += pull[group[entry], 0] * share_target[columns[entry]]
            target[columns[entry]] += pull[group[entry], 1] * share_source[word]


@njit(**_KERNEL)
def column_sums(columns, weights, sums):
    """sums[target type] += weights[entry, 1], in the order of the table."""
    for entry in range(columns.size):
        sums[columns[entry]] += weights[entry, 1]
