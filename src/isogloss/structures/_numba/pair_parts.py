"""How two trees and word links between them fit together: which configurations there are over candidate links.

Variables of a pair are numbered: links of the target tree, those of the source tree, word links, indicators. Nodes
count from 1, the root is 0; the roots are linked to each other. A configuration has up to four variables: of a target
link or what stands for one, of a source link or what stands for one, and two word links, of the heads and of the
children; `TRUE` and `FALSE` stand for what is certain.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "FALSE", "MONO", "SDOUBLE", "SGRAND", "SSIB", "SWAP", "SYNCH", "TDOUBLE", "TGRAND", "TRUE", "TSIB", "fill_pairs",
    "indicate_pairs", "measure_pairs",
]  # fmt: skip

MONO, SWAP, SDOUBLE, TDOUBLE, SGRAND, SSIB, TGRAND, TSIB, SYNCH = range(9)
TRUE, FALSE = -1, -2
GRAND, SIBLING = 0, 1


@njit(cache=True, nogil=True)
def _numbers(n, head, child):
    """int32[n + 1, n + 1]: the number of each candidate link (head, child), −1 where there is none."""
    found = np.full((n + 1, n + 1), -1, np.int32)
    for a in range(len(head)):
        found[head[a], child[a]] = a
    return found


@njit(cache=True, nogil=True)
def _relations(n, head, child, odds, numbers, kind, wanted, first, second, starts):
    """Pairs of links by which a word is the grandparent of another, or the sibling of one after it.

    Pairs count whose log-odds have a sum above 0. Without room in `first`, their number; int32[n + 1, n + 1] says which
    relation has which number, and `wanted` (bool, the same shape) which are looked at.
    """
    groups = np.full((n + 1, n + 1), -1, np.int32)
    count, pairs = 0, 0
    for a in range(n + 1):
        for b in range(1, n + 1):
            if not wanted[a, b]:
                continue
            here = 0
            for middle in range(n + 1):
                if kind == GRAND:
                    up, low = numbers[a, middle], numbers[middle, b]
                else:
                    up, low = numbers[middle, a], numbers[middle, b]
                if middle in (a, b) or up < 0 or low < 0 or not odds[up] + odds[low] > 0:
                    continue
                if len(first):
                    first[pairs + here], second[pairs + here] = up, low
                here += 1
            if here:
                groups[a, b] = count
                if len(starts):
                    starts[count] = pairs
                count, pairs = count + 1, pairs + here
    return groups, count, pairs


@njit(cache=True, nogil=True)
def _linked(n, links, side):
    """Which pairs of words, and roots, have word links and may thus be in a relation that matters."""
    found = np.zeros(n + 1, np.bool_)
    for a in range(len(links)):
        found[links[a, side] + 1] = True
    return found


@njit(cache=True, nogil=True)
def _wish(n, kind, linked, relevant):
    """bool[n + 1, n + 1]: relations that some configuration may look at."""
    wanted = np.zeros((n + 1, n + 1), np.bool_)
    for a in range(n + 1):
        for b in range(1, n + 1):
            if a != b and linked[b] and (linked[a] or (a == 0 and kind == GRAND)) and relevant[a, b]:
                wanted[a, b] = kind == GRAND or a < b
    return wanted


@njit(cache=True, nogil=True)
def _relevant(n, links, side, kind, other):
    """bool[n + 1, n + 1]: words that are linked to the ends of a candidate link of the other side."""
    found = np.zeros((n + 1, n + 1), np.bool_)
    for b in range(len(links)):
        child, under = links[b, side] + 1, links[b, 1 - side] + 1
        if other[0, under] >= 0:
            found[0, child] = True
        for a in range(len(links)):
            head, over = links[a, side] + 1, links[a, 1 - side] + 1
            if a != b and other[over, under] >= 0:
                found[head, child] = True
                if kind == SIBLING:
                    found[child, head] = True
    return found


@njit(cache=True, nogil=True)
def _sibling(groups, a, b):
    return groups[a, b] if a < b else groups[b, a]


@njit(cache=True, nogil=True)
def _add(at, room, kinds, slots, nodes, kind, four, where):
    if room:
        kinds[at] = kind
        for k in range(4):
            slots[at, k] = four[k]
            nodes[at, k] = where[k]
    return at + 1


@njit(cache=True, nogil=True)
def _synchronous(at, room, kinds, slots, nodes, source, target, cells, base):
    """SYNCH of each word link with candidate heads of both words, where something is ruled out."""
    for k in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            under = cells[k, j]
            if k == 0 or j == 0 or under < 0:
                continue
            for m in range(source.shape[0]):
                for over in range(target.shape[0]):
                    if m == k or over == j:
                        continue
                    own, other, link = source[m, k], target[over, j], cells[m, over]
                    both_root = m == 0 and over == 0
                    there = (own >= 0) + (other >= 0) + (both_root or link >= 0)
                    if there < 2 or (own < 0 and other < 0):
                        continue
                    four = (
                        other if other >= 0 else FALSE,
                        base[0] + own if own >= 0 else FALSE,
                        TRUE if both_root else (base[1] + link if link >= 0 else FALSE),
                        base[1] + under,
                    )
                    at = _add(at, room, kinds, slots, nodes, SYNCH, four, (m, k, over, j))
    return at


@njit(cache=True, nogil=True)
def _lay_out(room, n_source, n_target, source, target, known, odds, links, wanted, kinds, slots, nodes, groups):
    """Indicators and configurations of one pair; only their numbers without `room`.

    Parameters
    ----------
    source, target : (head, child)
    known : bool
        The source tree is what its links say: they are certain, and no variables.
    odds : (float64[.], float64[.])
        Log-odds of links of either side, to choose relations by.
    links : int32[n_links, 2]
        Words of each side, from 0.
    wanted : bool[9]
    groups : (first, second, starts)
        To be filled: of each indicator its pairs of variables.
    """
    own, other = _numbers(n_source, source[0], source[1]), _numbers(n_target, target[0], target[1])
    first, second, starts = groups
    n_links_t, n_links_s = len(target[0]), 0 if known else len(source[0])
    base = (n_links_t, n_links_t + n_links_s)
    after = base[1] + len(links)
    relations = np.full((4, max(n_source, n_target) + 1, max(n_source, n_target) + 1), -1, np.int32)
    count, pairs = 0, 0
    for which in range(4):
        of_source, kind = which < 2, which % 2
        if not wanted[SGRAND + which]:
            continue
        n, side = (n_source, 0) if of_source else (n_target, 1)
        relevant = _relevant(n, links, side, kind, other if of_source else own)
        wish = _wish(n, kind, _linked(n, links, side), relevant)
        head, child = source if of_source else target
        certain = of_source and known
        write = room and not certain
        found, more, further = _relations(
            n, head, child, odds[0] if of_source else odds[1], own if of_source else other, kind, wish,
            first[pairs:] if write else first[:0], second[pairs:] if write else second[:0],
            starts[count:] if write else starts[:0],
        )  # fmt: skip
        for a in range(n + 1):
            for b in range(n + 1):
                if found[a, b] >= 0:
                    relations[which, a, b] = 0 if certain else count + found[a, b]
        if certain:
            continue
        if room:
            first[pairs : pairs + further] += base[0] if of_source else 0
            second[pairs : pairs + further] += base[0] if of_source else 0
            starts[count : count + more] += pairs
        count, pairs = count + more, pairs + further
    at = 0
    for b in range(len(links)):
        y_, y = links[b, 0] + 1, links[b, 1] + 1
        for a in range(-1, len(links)):
            if a == b:
                continue
            x_ = links[a, 0] + 1 if a >= 0 else 0
            x = links[a, 1] + 1 if a >= 0 else 0
            heads = base[1] + a if a >= 0 else TRUE
            pair, where = (heads, base[1] + b), (x_, y_, x, y)
            t = other[x, y] if x != y else -1
            s = own[x_, y_] if x_ != y_ else -1
            s_slot = TRUE if known else base[0] + s
            if wanted[MONO] and t >= 0 and s >= 0:
                at = _add(at, room, kinds, slots, nodes, MONO, (t, s_slot, pair[0], pair[1]), where)
            if wanted[SWAP] and a >= 0 and t >= 0 and x_ != y_ and own[y_, x_] >= 0:
                turned = TRUE if known else base[0] + own[y_, x_]
                at = _add(at, room, kinds, slots, nodes, SWAP, (t, turned, pair[0], pair[1]), where)
            if wanted[SDOUBLE] and x == y and s >= 0:
                at = _add(at, room, kinds, slots, nodes, SDOUBLE, (TRUE, s_slot, pair[0], pair[1]), where)
            if wanted[TDOUBLE] and x_ == y_ and t >= 0:
                at = _add(at, room, kinds, slots, nodes, TDOUBLE, (t, TRUE, pair[0], pair[1]), where)
            for which in range(4):
                of_source, kind = which < 2, which % 2
                link = t if of_source else s
                u, v = (x_, y_) if of_source else (x, y)
                if not wanted[SGRAND + which] or link < 0 or u == v or (kind == SIBLING and a < 0):
                    continue
                g = relations[which, u, v] if kind == GRAND else _sibling(relations[which], u, v)
                if g < 0:
                    continue
                stands = TRUE if of_source and known else after + g
                two = (t, stands) if of_source else (stands, s_slot)
                at = _add(at, room, kinds, slots, nodes, SGRAND + which, (two[0], two[1], pair[0], pair[1]), where)
    if wanted[SYNCH]:
        cells = np.full((n_source + 1, n_target + 1), -1, np.int32)
        for a in range(len(links)):
            cells[links[a, 0] + 1, links[a, 1] + 1] = a
        at = _synchronous(at, room, kinds, slots, nodes, own, other, cells, base)
    return at, count, pairs


@njit(cache=True, nogil=True)
def measure_pairs(
    block, blocks, n_source, n_target, source_offsets, source_head, source_child, target_offsets, target_head,
    target_child, known, source_odds, target_odds, link_offsets, links, wanted, counts,
):  # fmt: skip
    """counts[k] = (configurations, indicators, pairs of links behind these) of the k-th pair."""
    kinds, slots = np.empty(0, np.int8), np.empty((0, 4), np.int32)
    groups = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32))
    for k in range(block, len(n_source), blocks):
        s, t = slice(source_offsets[k], source_offsets[k + 1]), slice(target_offsets[k], target_offsets[k + 1])
        counts[k, 0], counts[k, 1], counts[k, 2] = _lay_out(
            False, n_source[k], n_target[k], (source_head[s], source_child[s]), (target_head[t], target_child[t]),
            known, (source_odds[s], target_odds[t]), links[link_offsets[k] : link_offsets[k + 1]], wanted, kinds, slots,
            slots, groups,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def fill_pairs(
    block, blocks, n_source, n_target, source_offsets, source_head, source_child, target_offsets, target_head,
    target_child, known, source_odds, target_odds, link_offsets, links, wanted, conf_offsets, group_offsets,
    pair_offsets, kinds, slots, nodes, first, second, starts,
):  # fmt: skip
    """Write configurations and indicators; ``starts`` has room for one more than there are indicators of each pair."""
    for k in range(block, len(n_source), blocks):
        s, t = slice(source_offsets[k], source_offsets[k + 1]), slice(target_offsets[k], target_offsets[k + 1])
        c = slice(conf_offsets[k], conf_offsets[k + 1])
        p = slice(pair_offsets[k], pair_offsets[k + 1])
        own = starts[group_offsets[k] + k : group_offsets[k + 1] + k + 1]
        _, count, pairs = _lay_out(
            True, n_source[k], n_target[k], (source_head[s], source_child[s]), (target_head[t], target_child[t]),
            known, (source_odds[s], target_odds[t]), links[link_offsets[k] : link_offsets[k + 1]], wanted, kinds[c],
            slots[c], nodes[c], (first[p], second[p], own),
        )  # fmt: skip
        own[count] = pairs


@njit(cache=True, nogil=True)
def indicate_pairs(
    block, blocks, t_lengths, t_link_offsets, t_pair_offsets, t_run_offsets, t_head, t_child, upper, lower, run_starts,
    run_links, t_begins, s_lengths, s_link_offsets, s_head, s_child, known, link_offsets, links, conf_offsets,
    group_offsets, pair_offsets, kinds, slots, first, second, starts, begins, bins, target, on_target, on_source,
    linked, out,
):  # fmt: skip
    """1 for each part that two trees and word links have, 0 for the others.

    Parameters
    ----------
    target : float64[n_parts of target trees]
    on_target, on_source, linked : bool
        Of candidate links of the trees and of word links, whether they are there.
    """
    for k in range(block, len(t_lengths), blocks):
        b, t = begins[k], t_begins[k]
        out[b[0] : b[6]] = 0.0
        out[b[0] : b[1]] = target[t[0] : t[5]]
        n_t, n_s = t_link_offsets[k + 1] - t_link_offsets[k], b[2] - b[1]
        n_links = link_offsets[k + 1] - link_offsets[k]
        after, groups = n_t + n_s + n_links, starts[group_offsets[k] + k : group_offsets[k + 1] + k + 1]
        true = np.zeros(after + len(groups) - 1, np.bool_)
        true[:n_t] = on_target[t_link_offsets[k] : t_link_offsets[k + 1]]
        if not known:
            true[n_t : n_t + n_s] = on_source[s_link_offsets[k] : s_link_offsets[k + 1]]
        true[n_t + n_s : after] = linked[link_offsets[k] : link_offsets[k + 1]]
        own = slice(pair_offsets[k], pair_offsets[k + 1])
        for g in range(len(groups) - 1):
            for p in range(groups[g], groups[g + 1]):
                if true[first[own][p]] and true[second[own][p]]:
                    true[after + g] = True
        out[b[1] : b[3]] = true[n_t:after]
        fertile = np.zeros((2, max(t_lengths[k], s_lengths[k])), np.int64)
        for a in range(n_links):
            if linked[link_offsets[k] + a]:
                fertile[0, links[link_offsets[k] + a, 0]] += 1
                fertile[1, links[link_offsets[k] + a, 1]] += 1
        for i in range(s_lengths[k]):
            out[b[3] + i * bins + min(fertile[0, i], bins - 1)] = 1.0
        for j in range(t_lengths[k]):
            out[b[4] + j * bins + min(fertile[1, j], bins - 1)] = 1.0
        at = b[5]
        for f in range(conf_offsets[k], conf_offsets[k + 1]):
            if kinds[f] == SYNCH:
                break
            there = True
            for place in range(4):
                slot = slots[f, place]
                if slot >= 0 and not true[slot]:
                    there = False
            out[at] = 1.0 if there else 0.0
            at += 1
