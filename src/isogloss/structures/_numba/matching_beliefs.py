"""Approximate sums over sets of links: belief propagation, and a random walk."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["beliefs", "beliefs_of_many", "walk"]

SIZE, TURNS = 16.0, 40  # scores of this size need no scaling; iterations for each scale otherwise


@njit(cache=True, nogil=True)
def _add(a, b):
    """log(eᵃ + eᵇ)."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@njit(cache=True, nogil=True)
def _plus(x):
    """log(1 + eˣ)."""
    return x + np.log1p(np.exp(-x)) if x > 0.0 else np.log1p(np.exp(x))


@njit(cache=True, nogil=True)
def _one_link(x, table, out):
    """Messages of a word that has one link or none; returns its log total.

    out[j] = table[1] − log(e^{table[0]} + Σ_{l ≠ j} e^{table[1] + x[l]}), each sum taken without the term left out.
    """
    none = table[0] - table[1]
    top, second, at = none, -np.inf, -1
    for j in range(len(x)):
        if x[j] > top:
            top, second, at = x[j], top, j
        elif x[j] > second:
            second = x[j]
    if top == -np.inf:
        for j in range(len(x)):
            out[j] = np.inf
        return -np.inf
    mass = np.exp(none - top)
    for j in range(len(x)):  # what came before
        out[j] = mass
        mass += np.exp(x[j] - top)
    total, after = top + np.log(mass), 0.0
    for j in range(len(x) - 1, -1, -1):  # and what comes after
        rest = out[j] + after
        after += np.exp(x[j] - top)
        if j != at:
            out[j] = -top - np.log(rest)
        elif second == -np.inf:
            out[j] = np.inf
        else:  # the largest is the one left out: sum from the second largest
            rest = np.exp(none - second)
            for other in range(len(x)):
                if other != j:
                    rest += np.exp(x[other] - second)
            out[j] = -second - np.log(rest)
    return total + table[1]


@njit(cache=True, nogil=True)
def _some_links(x, table, out, down):
    """Messages of a word that may have several links; returns its log total. `down` is float64[≥ len(x) + 1, D + 2]."""
    k, most = len(x), len(table) - 1
    up = np.full(most + 1, -np.inf)
    up[0] = 0.0
    for r in range(most + 2):
        down[k, r] = table[r] if r <= most else -np.inf
    for j in range(k - 1, -1, -1):
        for r in range(most + 1):
            down[j, r] = _add(down[j + 1, r], down[j + 1, r + 1] + x[j])
        down[j, most + 1] = -np.inf
    for j in range(k):
        on, off = -np.inf, -np.inf
        for r in range(most + 1):
            on = _add(on, up[r] + down[j + 1, r + 1])
            off = _add(off, up[r] + down[j + 1, r])
        out[j] = on - off if on > -np.inf else -np.inf
        for r in range(most, 0, -1):
            up[r] = _add(up[r], up[r - 1] + x[j])
    return down[0, 0]


@njit(cache=True, nogil=True)
def _messages(x, table, out, down):
    return _one_link(x, table, out) if len(table) == 2 else _some_links(x, table, out, down)


@njit(cache=True, nogil=True)
def _degrees(x, table, out):
    """Posterior of each number of links, given the messages that come in."""
    k, most = len(x), len(table) - 1
    up = np.full(most + 1, -np.inf)
    up[0] = 0.0
    for j in range(k):
        for r in range(most, 0, -1):
            up[r] = _add(up[r], up[r - 1] + x[j])
    total = -np.inf
    for r in range(most + 1):
        total = _add(total, up[r] + table[r])
    for r in range(most + 1):
        out[r] = np.exp(up[r] + table[r] - total)


@njit(cache=True, nogil=True)
def _turn(
    scores, source_table, target_table, first, second, pair_scores, damping, cap,
    by_source, by_target, by_pairs, to_first, to_second, odds, x, out, down,
):  # fmt: skip
    """Messages of all source words, then target words, then pairs.

    Returns the largest change of a message and that of a link's log odds, both relative to size.
    """
    n, m = scores.shape
    keep, moved, change, flat = 1.0 - damping, 0.0, 0.0, scores.ravel()
    for i in range(n):
        for j in range(m):
            x[j] = scores[i, j] + by_target[i, j] + by_pairs[i * m + j]
        _messages(x[:m], source_table[i], out, down)
        for j in range(m):
            new = min(cap, max(-cap, out[j])) - by_source[i, j]
            if scores[i, j] > -np.inf:
                moved = max(moved, abs(new) / (1.0 + abs(by_source[i, j])))
            by_source[i, j] += keep * new
    for j in range(m):
        for i in range(n):
            x[i] = scores[i, j] + by_source[i, j] + by_pairs[i * m + j]
        _messages(x[:n], target_table[j], out, down)
        for i in range(n):
            new = min(cap, max(-cap, out[i])) - by_target[i, j]
            if scores[i, j] > -np.inf:
                moved = max(moved, abs(new) / (1.0 + abs(by_target[i, j])))
            by_target[i, j] += keep * new
    for p in range(len(first)):
        a, b = first[p], second[p]
        if flat[a] == -np.inf or flat[b] == -np.inf:
            continue
        to_a = flat[a] + by_source[a // m, a % m] + by_target[a // m, a % m] + by_pairs[a] - to_first[p]
        to_b = flat[b] + by_source[b // m, b % m] + by_target[b // m, b % m] + by_pairs[b] - to_second[p]
        new_a = max(-cap, _plus(to_b + pair_scores[p]) - _plus(to_b)) - to_first[p]
        new_b = max(-cap, _plus(to_a + pair_scores[p]) - _plus(to_a)) - to_second[p]
        moved = max(moved, abs(new_a) / (1.0 + abs(to_first[p])), abs(new_b) / (1.0 + abs(to_second[p])))
        to_first[p] += keep * new_a
        to_second[p] += keep * new_b
        by_pairs[a] += keep * new_a
        by_pairs[b] += keep * new_b
    for e in range(n * m):
        if flat[e] > -np.inf:
            new = flat[e] + by_source[e // m, e % m] + by_target[e // m, e % m] + by_pairs[e]
            change = max(change, abs(new - odds[e]) / (1.0 + abs(new)))
            odds[e] = new
    return moved, change


@njit(cache=True, nogil=True)
def beliefs(
    scores, source_table, target_table, first, second, pair_scores, damping, tolerance, iterations,
    links, source_degrees, target_degrees, pairs, info,
):  # fmt: skip
    """Loopy belief propagation: one factor a word, which knows the score of its number of links, and one a pair.

    Every link is a variable, 0 or 1; messages are log odds. Source words, target words and pairs take turns. At a fixed
    point the value is the Bethe approximation of log Z, and the beliefs are its derivative. Where scores are large,
    messages first settle under scores that are scaled down, which come closer to the given ones step by step.

    Parameters
    ----------
    first, second : int64[n_pairs]
        The two links of each pair, counted in C order.
    damping : float
        Share of the old message that is kept.
    tolerance : float
        Largest relative change of a message at which we stop. Beliefs may seem settled long before: surplus words bid
        against each other, and source and target messages move apart, until one of them falls back to its null. Only
        where every word must have a link may they do so without end, and there log odds count.
    iterations : int
        At most so many, after those under scaled scores.
    links, source_degrees, target_degrees, pairs : overwritten
    info : float64[2]
        Overwritten with the iterations used and the last change.

    Returns
    -------
    Bethe log Z.
    """
    n, m = scores.shape
    size = 0.0
    for x in scores.flat:
        if x > -np.inf:
            size = max(size, abs(x))
    cap = 1e3 + 8.0 * (n + m) * size
    by_source, by_target, by_pairs = np.zeros((n, m)), np.zeros((n, m)), np.zeros(n * m)
    to_first, to_second = np.zeros(len(first)), np.zeros(len(first))
    x, out, odds = np.empty(max(n, m)), np.empty(max(n, m)), np.full(n * m, -np.inf)
    down = np.empty((max(n, m) + 1, max(source_table.shape[1], target_table.shape[1]) + 1))
    forced = np.all(source_table[:, 0] == -np.inf) and np.all(target_table[:, 0] == -np.inf)
    used, change, scale = 0, 0.0, 1.0
    while scale * size > SIZE:
        scale *= 0.5
    while True:
        links_now, source_now, target_now = scores * scale, source_table * scale, target_table * scale
        pairs_now = pair_scores * scale
        for _ in range(iterations if scale == 1.0 else TURNS):
            moved, change = _turn(links_now, source_now, target_now, first, second, pairs_now, damping, cap,
                                  by_source, by_target, by_pairs, to_first, to_second, odds, x, out, down)  # fmt: skip
            change = min(moved, change) if forced else moved
            used += 1
            if change <= (tolerance if scale == 1.0 else 0.01):
                break
        if scale == 1.0:
            break
        scale *= 2.0
        for array in (by_source.ravel(), by_target.ravel(), by_pairs, to_first, to_second):
            for at in range(len(array)):
                array[at] = min(cap, max(-cap, 2.0 * array[at]))
    info[0], info[1] = used, change
    for i in range(n):
        for j in range(m):
            links[i, j] = 1.0 / (1.0 + np.exp(-odds[i * m + j])) if scores[i, j] > -np.inf else 0.0
    return _bethe(scores, source_table, target_table, first, second, pair_scores, by_source, by_target, by_pairs,
                  to_first, to_second, source_degrees, target_degrees, pairs, x, out, down)  # fmt: skip


@njit(cache=True, nogil=True)
def _bethe(
    scores, source_table, target_table, first, second, pair_scores, by_source, by_target, by_pairs,
    to_first, to_second, source_degrees, target_degrees, pairs, x, out, down,
):  # fmt: skip
    """log Z as the sum of what factors see, less what links count more than once; and beliefs of degrees and pairs."""
    n, m = scores.shape
    value, flat = 0.0, scores.ravel()
    for i in range(n):
        for j in range(m):
            x[j] = scores[i, j] + by_target[i, j] + by_pairs[i * m + j]
            if scores[i, j] > -np.inf:
                value -= _plus(x[j] + by_source[i, j])
        value += _messages(x[:m], source_table[i], out, down)
        _degrees(x[:m], source_table[i], source_degrees[i])
    for j in range(m):
        for i in range(n):
            x[i] = scores[i, j] + by_source[i, j] + by_pairs[i * m + j]
        value += _messages(x[:n], target_table[j], out, down)
        _degrees(x[:n], target_table[j], target_degrees[j])
    for p in range(len(first)):
        a, b = first[p], second[p]
        pairs[p] = 0.0
        if flat[a] == -np.inf or flat[b] == -np.inf:
            continue
        odds_a = flat[a] + by_source[a // m, a % m] + by_target[a // m, a % m] + by_pairs[a]
        odds_b = flat[b] + by_source[b // m, b % m] + by_target[b // m, b % m] + by_pairs[b]
        to_a, to_b = odds_a - to_first[p], odds_b - to_second[p]
        both = to_a + to_b + pair_scores[p]
        total = _add(_add(0.0, to_a), _add(to_b, both))
        pairs[p] = np.exp(both - total)
        value += total - _plus(odds_a) - _plus(odds_b)
    return value


@njit(cache=True, nogil=True)
def beliefs_of_many(
    block, count, chosen, scores, offsets, shapes, tables, starts, sides, no_scores, damping, tolerance,
    iterations, links, degrees, values, info,
):  # fmt: skip
    """`beliefs`, without pairs, on those of the sentences block, block + count, … of a batch that `chosen` marks.

    `tables`, `starts` and `sides` are laid out as for `sums_of_many`; `no_scores` is an empty array of scores of pairs.
    """
    nothing, no_pairs = np.empty(0, np.int64), np.empty(0)
    for s in range(block, len(shapes), count):
        if not chosen[s]:
            continue
        n, m = shapes[s]
        own = scores[offsets[s] : offsets[s + 1]].reshape((n, m))
        out = links[offsets[s] : offsets[s + 1]].reshape((n, m))
        a, b, c = starts[s, 0], starts[s, 1], starts[s + 1, 0]
        source, target = tables[a:b].reshape((n, sides[s, 0])), tables[b:c].reshape((m, sides[s, 1]))
        source_out, target_out = degrees[a:b].reshape((n, sides[s, 0])), degrees[b:c].reshape((m, sides[s, 1]))
        values[s] = beliefs(own, source, target, nothing, nothing, no_scores, damping, tolerance, iterations,
                            out, source_out, target_out, no_pairs, info[s])  # fmt: skip


@njit(cache=True, nogil=True)
def _pairs_on(linked, e, starts, other, pair_scores):
    """Score of the pairs that link e makes with those that are on."""
    total, m = 0.0, linked.shape[1]
    for q in range(starts[e], starts[e + 1]):
        if linked[other[q] // m, other[q] % m]:
            total += pair_scores[q]
    return total


@njit(cache=True, nogil=True)
def _pick(flags, number):
    """Index of the `number`-th True."""
    for at in range(len(flags)):
        if flags[at]:
            if number == 0:
                return at
            number -= 1
    return -1


@njit(cache=True, nogil=True)
def walk(linked, scores, source_table, target_table, starts, other, pair_scores, u):
    """A Metropolis walk over sets of links, len(u) steps from `linked`, which is overwritten.

    A step picks a cell. A link there is taken away; else one is added, and where a word has all the links it may have,
    one of them makes room; where both words do, two links swap partners. Proposals are symmetric, so that the walk has
    the right distribution in the long run (Jerrum and Sinclair 1989 for matchings).

    Parameters
    ----------
    u : float64[steps, 4]
        Uniform on [0, 1).
    """
    n, m = scores.shape
    source_degree, target_degree = linked.sum(axis=1), linked.sum(axis=0)
    source_most, target_most = source_table.shape[1] - 1, target_table.shape[1] - 1
    removed, added = np.empty(2, np.int64), np.empty(2, np.int64)
    for t in range(len(u)):
        e = int(u[t, 0] * n * m)
        i, j, i2, j2 = e // m, e % m, -1, -1
        if scores[i, j] == -np.inf:
            continue
        if not linked[i, j]:
            if source_degree[i] == source_most:
                j2 = _pick(linked[i], int(u[t, 1] * source_most))
            if target_degree[j] == target_most:
                i2 = _pick(linked[:, j], int(u[t, 2] * target_most))
        swap = i2 >= 0 and j2 >= 0
        if swap and (linked[i2, j2] or source_degree[i2] < source_most or target_degree[j2] < target_most):
            continue
        gain = 0.0
        if linked[i, j]:
            removed[0], removed[1], added[0], added[1] = e, -1, -1, -1
        else:
            removed[0], removed[1] = i * m + j2 if j2 >= 0 else -1, i2 * m + j if i2 >= 0 else -1
            added[0], added[1] = e, i2 * m + j2 if swap else -1
        before = _nodes(i, j, i2, j2, source_table, target_table, source_degree, target_degree)
        for c in removed:
            if c >= 0:
                linked[c // m, c % m] = False
                source_degree[c // m] -= 1
                target_degree[c % m] -= 1
                gain -= scores[c // m, c % m] + _pairs_on(linked, c, starts, other, pair_scores)
        for c in added:
            if c >= 0:
                gain += scores[c // m, c % m] + _pairs_on(linked, c, starts, other, pair_scores)
                linked[c // m, c % m] = True
                source_degree[c // m] += 1
                target_degree[c % m] += 1
        gain += _nodes(i, j, i2, j2, source_table, target_table, source_degree, target_degree) - before
        if u[t, 3] < np.exp(min(0.0, gain)):
            continue
        for c in added:
            if c >= 0:
                linked[c // m, c % m] = False
                source_degree[c // m] -= 1
                target_degree[c % m] -= 1
        for c in removed:
            if c >= 0:
                linked[c // m, c % m] = True
                source_degree[c // m] += 1
                target_degree[c % m] += 1


@njit(cache=True, nogil=True)
def _nodes(i, j, i2, j2, source_table, target_table, source_degree, target_degree):
    """Scores of the numbers of links of the words that a step touches."""
    total = source_table[i, source_degree[i]] + target_table[j, target_degree[j]]
    if i2 >= 0:
        total += source_table[i2, source_degree[i2]]
    if j2 >= 0:
        total += target_table[j2, target_degree[j2]]
    return total
