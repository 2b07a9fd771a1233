"""The best matching: an assignment kernel for plain matchings, min-cost flow for degrees, and the nearest point."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "BOTH_REQUIRED", "INFEASIBLE", "SOLVED", "best_flow", "best_flows", "best_matching", "best_matchings", "nearest",
    "nearest_from",
]  # fmt: skip

SOLVED, INFEASIBLE, BOTH_REQUIRED = 0, 1, 2
BIDS = 4  # bids a word in the opening auction; more of them cost time where few words compete for fewer


@njit(cache=True, nogil=True)
def best_matching(scores, source_null, target_null, partner):
    """The best set of links in which no word has more than one.

    Subtracting the nulls of both ends turns a score into the gain of a link; words without one gain nothing. The side
    with fewer words bids (an auction with exact bids, as in the row reduction of Jonker and Volgenant 1987), then what
    is left is placed along shortest augmenting paths, which may also end at a word that falls back to its null.

    Parameters
    ----------
    scores : float64[n_source, n_target]
    source_null, target_null : float64[n_source], float64[n_target]
        −∞ where a word must have a link.
    partner : int64[n_source]
        Overwritten with the target word of each source word, or −1.

    Returns
    -------
    SOLVED, INFEASIBLE, or BOTH_REQUIRED when words of both sides must have a link, which this kernel does not do.
    """
    n, m = scores.shape
    must_source, must_target = False, False
    for i in range(n):
        must_source = must_source or source_null[i] == -np.inf
    for j in range(m):
        must_target = must_target or target_null[j] == -np.inf
    if must_source and must_target:
        return BOTH_REQUIRED
    if must_target or (n > m and not must_source):
        gain, free = np.empty((m, n)), np.empty(m, np.bool_)
        for j in range(m):
            free[j] = target_null[j] > -np.inf
            null = target_null[j] if free[j] else 0.0
            for i in range(n):
                gain[j, i] = scores[i, j] - source_null[i] - null
        other = np.empty(m, np.int64)
        found = _assign(gain, free, other)
        if found == INFEASIBLE:  # `other` may not have been filled
            return found
        for i in range(n):
            partner[i] = -1
        for j in range(m):
            if other[j] >= 0:
                partner[other[j]] = j
        return found
    gain, free = np.empty((n, m)), np.empty(n, np.bool_)
    for i in range(n):
        free[i] = source_null[i] > -np.inf
        null = source_null[i] if free[i] else 0.0
        for j in range(m):
            gain[i, j] = scores[i, j] - target_null[j] - null
    return _assign(gain, free, partner)


@njit(cache=True, nogil=True)
def _assign(gain, free, partner):
    """Rows bid for columns; a free row bids 0 for staying alone. Keeps profit[i] + price[j] ≥ gain[i, j], equal where
    linked, price 0 where a column is free and profit 0 where a row is alone: at the end nothing can be better."""
    n, m = gain.shape
    price, profit = np.zeros(m), np.empty(n)
    owner, waiting = np.full(m, -1), np.empty(n, np.int64)
    n_waiting, bids = 0, 0
    for start in range(n):
        i = start
        while True:
            top, second, at = 0.0 if free[i] else -np.inf, -np.inf, -1
            for j in range(m):
                x = gain[i, j] - price[j]
                if x > second:
                    if x > top:
                        second, top, at = top, x, j
                    else:
                        second = x
            partner[i], profit[i] = -1, top
            if at < 0:
                if not free[i]:
                    return INFEASIBLE
                break
            before = owner[at]
            bids += 1
            if before >= 0 and (second == -np.inf or top == second or bids > BIDS * n):
                waiting[n_waiting] = i
                n_waiting += 1
                break
            owner[at], partner[i] = i, at
            if before < 0:
                break
            price[at] += top - second
            profit[i] = second
            i = before
    return _augment(gain, free, partner, price, profit, owner, waiting[:n_waiting])


@njit(cache=True, nogil=True)
def _augment(gain, free, partner, price, profit, owner, waiting):
    """Place the rows that wait, each along the cheapest path to a free column or to a row that can be left alone."""
    m = gain.shape[1]
    distance, via, columns = np.empty(m), np.empty(m, np.int64), np.empty(m, np.int64)
    for start in waiting:
        top = 0.0 if free[start] else -np.inf
        for j in range(m):
            top = max(top, gain[start, j] - price[j])
        if top == -np.inf:
            return INFEASIBLE
        profit[start] = top
        best, last_column, last_row = top if free[start] else np.inf, -1, start
        for j in range(m):
            columns[j], via[j], distance[j] = j, start, top + price[j] - gain[start, j]
        left = m  # columns[left:] have been passed
        while left > 0:
            nearest_one, at = best, -1
            for q in range(left):
                if distance[columns[q]] < nearest_one:
                    nearest_one, at = distance[columns[q]], q
            if at < 0:
                break
            j = columns[at]
            row = owner[j]
            if row < 0:
                best, last_column = nearest_one, j
                break
            left -= 1
            columns[at], columns[left] = columns[left], j
            base = nearest_one + profit[row]
            if free[row] and base < best:
                best, last_column, last_row = base, -1, row
            for q in range(left):
                c = columns[q]
                d = base + price[c] - gain[row, c]
                if d < distance[c]:
                    distance[c], via[c] = d, row
        if best == np.inf:
            return INFEASIBLE
        profit[start] -= best
        for q in range(left, m):
            j = columns[q]
            profit[owner[j]] -= best - distance[j]
            price[j] += best - distance[j]
        if last_column < 0:
            if last_row == start:
                continue
            last_column = partner[last_row]
            partner[last_row] = -1
        j, row = last_column, -1
        while row != start:
            row = via[j]
            owner[j] = row
            j, partner[row] = partner[row], j
    return SOLVED


@njit(cache=True, nogil=True)
def best_matchings(
    block, count, scores, offsets, shapes, source_null, target_null, source_starts, target_starts, partner, found
):
    """`best_matching` on the sentences block, block + count, … of a batch; `found` gets what it returns."""
    for s in range(block, len(shapes), count):
        source, target = slice(source_starts[s], source_starts[s + 1]), slice(target_starts[s], target_starts[s + 1])
        own = scores[offsets[s] : offsets[s + 1]].reshape((shapes[s, 0], shapes[s, 1]))
        found[s] = best_matching(own, source_null[source], target_null[target], partner[source])


@njit(cache=True, nogil=True)
def _steps(table, big):
    """Cost of the first, second, … link of each word, ∞ when it may have no more; and how many it must have.

    `table` has the score of each number of links. A link that a word must have costs −big.
    """
    n, most = table.shape[0], table.shape[1] - 1
    steps, least = np.full((n, most + 1), np.inf), np.zeros(n, np.int64)
    for i in range(n):
        while least[i] < most and table[i, least[i]] == -np.inf:
            least[i] += 1
        for d in range(most):
            if table[i, d] == -np.inf:
                if d < least[i]:
                    steps[i, d] = -big
            elif table[i, d + 1] > -np.inf:
                steps[i, d] = table[i, d] - table[i, d + 1]
    return steps, least


@njit(cache=True, nogil=True)
def _bound(array, bound):
    for x in array.flat:
        if abs(x) < np.inf:
            bound = max(bound, abs(x))
    return bound


@njit(cache=True, nogil=True)
def best_flow(scores, source_table, target_table, linked):
    """The best set of links when the score of a word's number of links is concave in that number.

    Min-cost flow by successive shortest paths with potentials: a path adds one link and may move others; costs of paths
    only rise, so that the first that gains nothing ends the search. O(links (n_source + n_target)²).

    Parameters
    ----------
    scores : float64[n_source, n_target]
    source_table, target_table : float64[n_source, D + 1], float64[n_target, D' + 1]
        Score of having 0, 1, … links, −∞ first where a word must have some, −∞ last where it may not have as many.
    linked : bool[n_source, n_target]
        Overwritten.

    Returns
    -------
    SOLVED or INFEASIBLE.
    """
    n, m = scores.shape
    big = 8.0 * (n + m + 2) * (1.0 + _bound(target_table, _bound(source_table, _bound(scores, 0.0))))
    source_steps, source_least = _steps(source_table, big)
    target_steps, target_least = _steps(target_table, big)
    source_degree, target_degree = np.zeros(n, np.int64), np.zeros(m, np.int64)
    source_pot, target_pot = source_steps[:, 0].copy(), np.full(m, np.inf)
    sink_pot = np.inf
    for i in range(n):
        for j in range(m):
            linked[i, j] = False
            if source_pot[i] < np.inf and scores[i, j] > -np.inf:
                target_pot[j] = min(target_pot[j], source_pot[i] - scores[i, j])
    for j in range(m):
        sink_pot = min(sink_pot, target_pot[j] + target_steps[j, 0])
    via_source, via_target = np.empty(n, np.int64), np.empty(m, np.int64)
    from_start, from_words = np.empty(n), np.empty(m)
    while sink_pot < np.inf:
        best, last = _shortest(
            scores, linked, source_steps, target_steps, source_degree, target_degree,
            source_pot, target_pot, sink_pot, from_start, from_words, via_source, via_target,
        )  # fmt: skip
        if last < 0 or best + sink_pot >= 0.0:
            break
        for i in range(n):
            source_pot[i] += min(best, from_start[i])
        for j in range(m):
            target_pot[j] += min(best, from_words[j])
        sink_pot += best
        j = last
        target_degree[j] += 1
        while j >= 0:
            i = via_target[j]
            linked[i, j] = True
            j = via_source[i]
            if j >= 0:
                linked[i, j] = False
        source_degree[i] += 1
    for i in range(n):
        if source_degree[i] < source_least[i]:
            return INFEASIBLE
    for j in range(m):
        if target_degree[j] < target_least[j]:
            return INFEASIBLE
    return SOLVED


@njit(cache=True, nogil=True)
def _shortest(
    scores, linked, source_steps, target_steps, source_degree, target_degree,
    source_pot, target_pot, sink_pot, from_start, from_words, via_source, via_target,
):  # fmt: skip
    """Dijkstra over reduced costs, which are never negative; returns the distance of the sink, and its last word."""
    n, m = scores.shape
    source_done, target_done = np.zeros(n, np.bool_), np.zeros(m, np.bool_)
    best, last = np.inf, -1
    for i in range(n):
        from_start[i], via_source[i] = source_steps[i, source_degree[i]] - source_pot[i], -1
    for j in range(m):
        from_words[j], via_target[j] = np.inf, -1
    while True:
        near, at, is_source = best, -1, True
        for i in range(n):
            if not source_done[i] and from_start[i] < near:
                near, at = from_start[i], i
        for j in range(m):
            if not target_done[j] and from_words[j] < near:
                near, at, is_source = from_words[j], j, False
        if at < 0:
            return best, last
        if is_source:
            source_done[at] = True
            for j in range(m):
                if not linked[at, j] and scores[at, j] > -np.inf:
                    d = near + max(0.0, source_pot[at] - scores[at, j] - target_pot[j])
                    if d < from_words[j]:
                        from_words[j], via_target[j] = d, at
        else:
            target_done[at] = True
            d = near + max(0.0, target_pot[at] + target_steps[at, target_degree[at]] - sink_pot)
            if d < best:
                best, last = d, at
            for i in range(n):
                if linked[i, at]:
                    d = near + max(0.0, target_pot[at] + scores[i, at] - source_pot[i])
                    if d < from_start[i]:
                        from_start[i], via_source[i] = d, at


@njit(cache=True, nogil=True)
def best_flows(
    block, count, scores, offsets, shapes,
    source_table, source_starts, source_shapes, target_table, target_starts, target_shapes, linked, found,
):  # fmt: skip
    """`best_flow` on the sentences block, block + count, … of a batch."""
    for s in range(block, len(shapes), count):
        shape = (shapes[s, 0], shapes[s, 1])
        own, out = slice(offsets[s], offsets[s + 1]), linked[offsets[s] : offsets[s + 1]].reshape(shape)
        source = source_table[source_starts[s] : source_starts[s + 1]].reshape((shape[0], source_shapes[s, 1]))
        target = target_table[target_starts[s] : target_starts[s + 1]].reshape((shape[1], target_shapes[s, 1]))
        found[s] = best_flow(scores[own].reshape(shape), source, target, out)


@njit(cache=True, nogil=True)
def _shift(values, least, most):
    """The α nearest 0 that brings Σ clip(values − α, 0, 1) between `least` and `most`: safeguarded Newton steps on a
    function that falls in straight pieces."""
    total, low, high = 0.0, np.inf, -np.inf
    for v in values:
        total += min(1.0, max(0.0, v))
        if v > -np.inf:
            low, high = min(low, v), max(high, v)
    if least <= total <= most or low == np.inf:
        return 0.0
    goal = most if total > most else least
    if total <= most:
        low, high = low - 1.0, 0.0
    else:
        low = 0.0
    x = 0.0
    for _ in range(200):
        total, slope, below = 0.0, 0, -np.inf
        for v in values:
            d = v - x
            if d >= 1.0:
                total += 1.0
            elif d > 0.0:
                total += d
                slope += 1
            else:
                below = max(below, v)
        if slope == 0 and total == goal:  # flat here: a whole interval would do, and its end is what stays put
            return max(below, low) if goal == most else x
        if total > goal:
            low = x
        else:
            high = x
        step = x + (total - goal) / slope if slope > 0 else 0.5 * (low + high)
        if abs(step - x) <= 1e-16 * (1.0 + abs(x)):
            return step
        x = step if low < step < high else 0.5 * (low + high)
    return x


@njit(cache=True, nogil=True)
def nearest(point, source_least, source_most, target_least, target_most, tolerance, sweeps):
    """The nearest z in [0, 1] with sums of rows and columns within bounds: block ascent on the dual.

    z = clip(point − α − β, 0, 1); every sweep finds the best α given β, then β given α. `point` is overwritten with
    z. Returns the number of sweeps, or −1 when they did not suffice.
    """
    beta = np.zeros(point.shape[1])
    return nearest_from(point, source_least, source_most, target_least, target_most, beta, tolerance, sweeps)


@njit(cache=True, nogil=True)
def nearest_from(point, source_least, source_most, target_least, target_most, beta, tolerance, sweeps):
    """`nearest`, beginning at β, which is overwritten: what a point nearby had saves most of the sweeps."""
    n, m = point.shape
    alpha, row, column = np.zeros(n), np.empty(m), np.empty(n)
    used = -1
    for sweep in range(sweeps):
        change = 0.0
        for i in range(n):
            for j in range(m):
                row[j] = point[i, j] - beta[j]
            x = _shift(row, source_least[i], source_most[i])
            change = max(change, abs(x - alpha[i]))
            alpha[i] = x
        for j in range(m):
            for i in range(n):
                column[i] = point[i, j] - alpha[i]
            x = _shift(column, target_least[j], target_most[j])
            change = max(change, abs(x - beta[j]))
            beta[j] = x
        if change <= tolerance:
            used = sweep + 1
            break
    for i in range(n):
        total = 0.0
        for j in range(m):
            point[i, j] = min(1.0, max(0.0, point[i, j] - alpha[i] - beta[j]))
            total += point[i, j]
        if total > source_most[i]:  # columns come last and are kept; rows are off by rounding or by the tolerance
            for j in range(m):
                point[i, j] *= source_most[i] / total
    return used
