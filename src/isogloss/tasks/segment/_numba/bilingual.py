"""Words as small lattices, sentence pairs as lattices of words, and what is counted in them.

Words and their ways to be cut are kept once for each different word: *rows* are spans with a type, *arcs* are rows
between nodes, which know a place in the word, the type of the morpheme before it, and whether there is another before
that. A *cell* is a row in a sentence under one of its source words, or under null in the last column; its *entry* is
the pair of the morpheme and the source word, −1 where there is none.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["best_cuts", "count_pairs", "cut_lattices", "find_cells", "join_lattices", "lay_out_pairs", "link_words",
           "number_entries"]  # fmt: skip


@njit(cache=True, nogil=True)
def _reach(n, longest, k, begins, keep, steps, forward, backward):
    """Which nodes, by place, how many morphemes there are (1, more) and type, are on a way through a word."""
    forward[:] = False
    backward[:] = False
    for width in range(1, min(n, longest) + 1):
        for label in range(k):
            if keep[begins[0] + width - 1, label] and steps[1, k, label]:
                forward[width, 0, label] = True
    for t in range(1, n):
        for place in range(2):
            for before in range(k):
                if not forward[t, place, before]:
                    continue
                for width in range(1, min(n - t, longest) + 1):
                    for label in range(k):
                        if keep[begins[t] + width - 1, label] and steps[0, before, label]:
                            forward[t + width, 1, label] = True
    for label in range(k):
        if steps[1, label, k]:
            backward[n, 0, label] = forward[n, 0, label]
            backward[n, 1, label] = forward[n, 1, label]
    for t in range(n - 1, 0, -1):
        for place in range(2):
            for before in range(k):
                if not forward[t, place, before]:
                    continue
                for width in range(1, min(n - t, longest) + 1):
                    for label in range(k):
                        if (
                            keep[begins[t] + width - 1, label]
                            and steps[0, before, label]
                            and backward[t + width, 1, label]
                        ):
                            backward[t, place, before] = True


@njit(cache=True, nogil=True)
def cut_lattices(lengths, longest, starts, keep, steps, filling, sizes, arcs, about, rows, nodes_at, arcs_at, rows_at):
    """The lattice of each word, from the spans with types that are kept.

    Called twice: with `filling` 0 it says in sizes[n_words, 3] how many nodes, arcs and rows each word has; then it
    fills arcs[., 3] with tail, head and row of the word's own, about[., 3] with the place of its morpheme (0, 1, 2),
    the type before it (k at the beginning) and whether the word ends, and rows[., 4] with begin, end, type and the
    number of the span.
    """
    k = keep.shape[1]
    for word in range(len(lengths)):
        n = lengths[word]
        begins, at = np.empty(n + 1, np.int64), starts[word]
        for t in range(n + 1):
            begins[t] = at
            at += min(longest, n - t)
        forward, backward = np.empty((n + 1, 2, k), np.bool_), np.empty((n + 1, 2, k), np.bool_)
        _reach(n, longest, k, begins, keep, steps, forward, backward)
        numbers = np.full((n + 1, 2, k), -1, np.int64)
        count = 1
        for t in range(1, n):
            for place in range(2):
                for label in range(k):
                    if forward[t, place, label] and backward[t, place, label]:
                        numbers[t, place, label] = count
                        count += 1
        for place in range(2):
            for label in range(k):
                if backward[n, place, label]:
                    numbers[n, place, label] = count
        own = np.full((starts[word + 1] - starts[word], k), -1, np.int64)
        n_rows, n_arcs = 0, 0
        arc, row = arcs_at[word] if filling else 0, rows_at[word] if filling else 0
        for t in range(n):
            for place in range(1 if t == 0 else 2):
                for before in range(k):
                    if t == 0 and before:
                        break
                    tail = numbers[t, place, before] if t else 0
                    if tail < 0:
                        continue
                    kind, last = (0, before) if t else (1, k)
                    for width in range(1, min(n - t, longest) + 1):
                        for label in range(k):
                            span = begins[t] + width - 1
                            head = numbers[t + width, 1 if t else 0, label]
                            if head < 0 or not keep[span, label] or not steps[kind, last, label]:
                                continue
                            number = own[span - starts[word], label]
                            if number < 0:
                                number = own[span - starts[word], label] = n_rows
                                if filling:
                                    rows[row + n_rows, 0], rows[row + n_rows, 1] = t, t + width
                                    rows[row + n_rows, 2], rows[row + n_rows, 3] = label, span
                                n_rows += 1
                            if filling:
                                at = arc + n_arcs
                                arcs[at, 0], arcs[at, 1], arcs[at, 2] = tail, head, number
                                about[at, 0] = 0 if t == 0 else place + 1
                                about[at, 1], about[at, 2] = last, int(t + width == n)
                            n_arcs += 1
        sizes[word, 0], sizes[word, 1], sizes[word, 2] = count + 1, n_arcs, n_rows


@njit(cache=True, nogil=True)
def join_lattices(
    block, blocks, words, word_offsets, nodes, arcs, arcs_at, rows_at, tails, heads, rows, arc_offsets, borders,
    node_offsets,
):  # fmt: skip
    """The lattices of sentences, from those of their words, which follow one another."""
    for s in range(block, len(word_offsets) - 1, blocks):
        node, row, at = 0, 0, arc_offsets[s]
        borders[node_offsets[s]] = 1
        for t in range(word_offsets[s], word_offsets[s + 1]):
            word = words[t]
            for a in range(arcs_at[word], arcs_at[word + 1]):
                tails[at], heads[at], rows[at] = node + arcs[a, 0], node + arcs[a, 1], row + arcs[a, 2]
                at += 1
            for v in range(1, nodes[word] - 1):
                borders[node_offsets[s] + node + v] = 0
            node += nodes[word] - 1
            borders[node_offsets[s] + node] = 1
            row += rows_at[word + 1] - rows_at[word]


@njit(cache=True, nogil=True)
def number_entries(
    occurrences, first, units, words, word_offsets, rows_at, n_units, source_offsets, source, cell_offsets, filling,
    cells, entries, owners, n_source,
):  # fmt: skip
    """Number the pairs of a source word and a morpheme that occur together, by source word; how many there are.

    occurrences : int64[n_places]; first : int64[n_source + 1]
        Where each source word stands, among all places; the sentence of a place is found in `source_offsets`.
    cells : int32[n_cells]; entries, owners : int32[n_entries]
        With `filling`, the entry of each cell; the morpheme and the source word of each entry.
    """
    mark, number = np.full(n_units, -1, np.int64), np.empty(n_units, np.int64)
    count = 0
    for e in range(n_source + 1):
        low, high = (first[e], first[e + 1]) if e < n_source else (0, len(source_offsets) - 1)
        for o in range(low, high):
            place = 0
            s = o
            if e < n_source:
                place = occurrences[o]
                s = np.searchsorted(source_offsets, place, side="right") - 1
            m = source_offsets[s + 1] - source_offsets[s]
            column = place - source_offsets[s] if e < n_source else m
            at = cell_offsets[s] + column
            for t in range(word_offsets[s], word_offsets[s + 1]):
                for r in range(rows_at[words[t]], rows_at[words[t] + 1]):
                    unit = units[r]
                    if mark[unit] != e:
                        mark[unit], number[unit] = e, count
                        if filling:
                            entries[count], owners[count] = unit, e
                        count += 1
                    if filling:
                        cells[at] = number[unit]
                    at += m + 1
    return count


@njit(cache=True, nogil=True)
def find_cells(
    block, blocks, units, words, word_offsets, rows_at, source, source_offsets, first, entries, cell_offsets, cells
):  # fmt: skip
    """The entry of each cell, looked for among those of each source word, which are sorted; −1 where there is none.

    first : int64[n_source + 2]
        Where the entries of each source word begin, null being the last; words that are not known have numbers below 0.
    """
    for s in range(block, len(word_offsets) - 1, blocks):
        begin, end = source_offsets[s], source_offsets[s + 1]
        at = cell_offsets[s]
        for t in range(word_offsets[s], word_offsets[s + 1]):
            for r in range(rows_at[words[t]], rows_at[words[t] + 1]):
                for place in range(begin, end + 1):
                    e = source[place] if place < end else len(first) - 2
                    cells[at] = -1
                    if e >= 0 and units[r] >= 0:
                        low, high = first[e], first[e + 1]
                        while low < high:
                            middle = (low + high) // 2
                            if entries[middle] < units[r]:
                                low = middle + 1
                            else:
                                high = middle
                        if low < first[e + 1] and entries[low] == units[r]:
                            cells[at] = low
                    at += 1


@njit(cache=True, nogil=True)
def lay_out_pairs(
    block, blocks, words, word_offsets, arcs_at, rows_at, row_labels, row_scores, arc_scores, source, source_offsets,
    cells, cell_offsets, entry_scores, shares, k, tables, table_offsets, sizes, scores, offsets,
):  # fmt: skip
    """Scores of sentence pairs, as `AlignedSegments` has them.

    row_scores : float64[n_rows]
        Of the morphemes of words, whatever they come from.
    entry_scores : float64[n_entries]; shares : float64[(n_source + 1) k]
        Of those that come from a source word; of others, what the word and the type add to their own score. Source
        words that are not known have numbers below 0, and add nothing.
    tables : float64[.]
        Steps inside and across, and final, for each number of source words; `sizes` says which each sentence has.
    """
    for s in range(block, len(word_offsets) - 1, blocks):
        begin, end = source_offsets[s], source_offsets[s + 1]
        at, cell = offsets[s], cell_offsets[s]
        for t in range(word_offsets[s], word_offsets[s + 1]):
            for r in range(rows_at[words[t]], rows_at[words[t] + 1]):
                own, label = row_scores[r], row_labels[r]
                for place in range(begin, end + 1):
                    entry = cells[cell]
                    if entry >= 0:
                        scores[at] = entry_scores[entry]
                    else:
                        e = source[place] if place < end else len(shares) // k - 1
                        scores[at] = own + (shares[e * k + label] if e >= 0 else 0.0)
                    cell += 1
                    at += 1
        for t in range(word_offsets[s], word_offsets[s + 1]):
            for a in range(arcs_at[words[t]], arcs_at[words[t] + 1]):
                scores[at] = arc_scores[a]
                at += 1
        for c in range(table_offsets[sizes[s]], table_offsets[sizes[s] + 1]):
            scores[at] = tables[c]
            at += 1


@njit(cache=True, nogil=True)
def count_pairs(
    words, word_offsets, arcs_at, rows_at, source_offsets, cells, cell_offsets, table_offsets, sizes, marginals,
    offsets, counts, largest, arc_counts, table_counts,
):  # fmt: skip
    """Add expected counts of entries, of arcs of words and of steps, one sentence after the other.

    `largest` becomes the most that a single cell has given to an entry.
    """
    for s in range(len(word_offsets) - 1):
        at = offsets[s]
        n_cells = cell_offsets[s + 1] - cell_offsets[s]
        for c in range(n_cells):
            much, entry = marginals[at + c], cells[cell_offsets[s] + c]
            if much > 0.0 and entry >= 0:
                counts[entry] += much
                largest[entry] = max(largest[entry], much)
        at += n_cells
        for t in range(word_offsets[s], word_offsets[s + 1]):
            for a in range(arcs_at[words[t]], arcs_at[words[t] + 1]):
                arc_counts[a] += marginals[at]
                at += 1
        for c in range(table_offsets[sizes[s]], table_offsets[sizes[s] + 1]):
            table_counts[c] += marginals[at]
            at += 1


@njit(cache=True, nogil=True)
def link_words(
    block, blocks, words, word_offsets, rows_at, source_offsets, owners, marginals, offsets, links, link_offsets
):  # fmt: skip
    """How many morphemes of each word are expected to come from each source word, [n_source, n_target], at most 1."""
    for s in range(block, len(word_offsets) - 1, blocks):
        begin, end, at = source_offsets[s], source_offsets[s + 1], offsets[s]
        n = word_offsets[s + 1] - word_offsets[s]
        for t in range(n):
            word = words[word_offsets[s] + t]
            for _ in range(rows_at[word], rows_at[word + 1]):
                for place in range(begin, end):
                    links[link_offsets[s] + owners[place] * n + t] += marginals[at]
                    at += 1
                at += 1
        for c in range(link_offsets[s], link_offsets[s + 1]):
            links[c] = min(links[c], 1.0)


@njit(cache=True, nogil=True)
def _cut(arcs, low, high, n_nodes, row, rows, posteriors, boundaries, threshold, little, taken):
    """The best way through the lattice of one word: boundaries that are probable, and types that are."""
    best, back = np.full(n_nodes, -np.inf), np.full(n_nodes, -1, np.int64)
    best[0] = 0.0
    for a in range(low, high):
        r = arcs[a, 2]
        begin = rows[row + r, 0]
        gain = little * posteriors[r] + (boundaries[begin - 1] - threshold if begin else 0.0)
        if best[arcs[a, 0]] + gain > best[arcs[a, 1]]:
            best[arcs[a, 1]], back[arcs[a, 1]] = best[arcs[a, 0]] + gain, a
    node = n_nodes - 1
    while node > 0:
        a = back[node]
        taken[arcs[a, 2]] = 1
        node = arcs[a, 0]


@njit(cache=True, nogil=True)
def best_cuts(
    block, blocks, words, word_offsets, nodes, arcs, arcs_at, rows_at, rows, source_offsets, marginals, offsets,
    threshold, little, letter_offsets, boundaries, row_offsets, taken,
):  # fmt: skip
    """How probable a boundary after each letter but the last of each word is, and which rows the best cuts take.

    letter_offsets, row_offsets : int64[n_words + 1]
        Where the boundaries, and the rows, of each word of the text begin.
    """
    for s in range(block, len(word_offsets) - 1, blocks):
        m, at = source_offsets[s + 1] - source_offsets[s], offsets[s]
        for t in range(word_offsets[s], word_offsets[s + 1]):
            word = words[t]
            first, count = rows_at[word], rows_at[word + 1] - rows_at[word]
            own = np.zeros(count)
            here = boundaries[letter_offsets[t] : letter_offsets[t + 1]]
            for r in range(count):
                for _ in range(m + 1):
                    own[r] += marginals[at]
                    at += 1
                if rows[first + r, 0]:
                    here[rows[first + r, 0] - 1] += own[r]
            for c in range(len(here)):
                here[c] = min(here[c], 1.0)
            _cut(
                arcs, arcs_at[word], arcs_at[word + 1], nodes[word], first, rows, own, here, threshold, little,
                taken[row_offsets[t] : row_offsets[t + 1]],
            )  # fmt: skip
