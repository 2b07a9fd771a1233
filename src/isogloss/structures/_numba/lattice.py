"""Chains over lists of labels, one sentence at a time, of order 1 and 2, for kernels over many sentences to call.

Both orders are one program. A *state* at position t is what the next step has to remember: at order 1 the label of t,
at order 2 the pair (label of t − 1, label of t), number i · sizes[t] + j for the i-th label of t − 1 and the j-th of t;
at t = 0 the label alone. A *step* leads from a state of t − 1 to a label of t: step b · sizes[t] + j from the b-th
state to the j-th label. States and steps of all positions stand one after the other. At order 1 states are scored by
labels and steps by pairs of labels, at order 2 states by labels and pairs, and steps by triples.

A caller fills `sizes`, `states` and `steps` of a `Chart`: with weights for `sums`, which is fast and says NaN where
probabilities do not carry; with logarithms for `log_forward` and what follows it, which always do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from isogloss.structures._numba.semiring import total, weights

__all__ = [
    "Chart",
    "U",
    "exponentiate",
    "label_posteriors",
    "log_backward",
    "log_forward",
    "new_chart",
    "room",
    "sums",
    "walk",
]

U = np.uint64
"""Of places in arrays: Numba need not ask whether an unsigned number counts from the end, which halves the time."""
LEAST = 1e-150
"""The least sum at a position, beside weights of at most about 1, that `sums` trusts; and the inverse of the largest
factor by which anything that was rounded to 0 can have been multiplied later."""


class Chart(NamedTuple):
    """The arrays of one sentence, large enough for the longest.

    Before `sums`: weights. After: `states` and, if they are kept, `steps` hold posteriors, and `alpha` holds what the
    weight of each state is multiplied by in Z, over Z: its posterior without its own weight.
    """

    sizes: Any
    """int64[n]: how many labels each position may have, at least one."""
    states: Any
    steps: Any
    alpha: Any
    """float64[n_states], like `beta`: what leads to a state, and what follows it, without the state's own weight."""
    beta: Any
    scales: Any
    """float64[n]"""


@njit(cache=True, nogil=True)
def new_chart(positions, states, steps):
    """Room for a sentence of so many positions, states and steps."""
    return Chart(
        np.empty(positions, np.int64), np.empty(states), np.empty(steps), np.empty(states), np.empty(states),
        np.empty(positions),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def room(order, starts, first, last):
    """States and steps of positions first … last − 1, of which t has starts[t + 1] − starts[t] labels."""
    states, steps, before = 0, 0, 0
    for t in range(first, last):
        wide = starts[t + 1] - starts[t]
        here = wide * (starts[t] - starts[t - 1]) if order == 2 and t > first else wide
        steps += before * wide
        states += here
        before = here
    return states, steps


@njit(cache=True, nogil=True)
def exponentiate(order, n, chart):
    """Logarithms to weights, at most 1 at each position; returns the logarithm of what they were divided by."""
    sizes, states, steps = chart.sizes, chart.states, chart.steps
    shift, before, here, at = 0.0, U(0), U(0), U(0)
    for t in range(n):
        count = U(sizes[t]) * (U(sizes[t - 1]) if order == 2 and t > 0 else U(1))
        shift += _divide(states, here, here + count)
        here += count
        count, before = before * U(sizes[t]), count
        shift += _divide(steps, at, at + count)
        at += count
    return shift


@njit(cache=True, nogil=True)
def _divide(x, first, last):
    top = -np.inf
    for i in range(first, last):
        top = max(top, x[i])
    if top == -np.inf:
        for i in range(first, last):
            x[i] = 0.0
        return 0.0
    for i in range(first, last):
        x[i] = 1.0 if x[i] == top else np.exp(x[i] - top)
    return top


@njit(cache=True, nogil=True)
def sums(order, n, chart, keep):
    """log Z and posteriors of states, and of steps if they are to be kept, from weights.

    Returns
    -------
    float
        NaN where nothing is allowed, or where what was rounded to 0 could matter: weights have then to be filled in
        again as logarithms. Sums are scaled at each position; something lost there, at most 1e-308, is later multiplied
        by scale and beta of the position at most, which are checked, so that relative errors beyond rounding are below
        1e-150.
    """
    sizes, states, steps, alpha, beta, scales = chart
    value, past, here, at = 0.0, U(0), U(0), U(0)
    for t in range(n):
        wide = U(sizes[t])
        end = here + (U(sizes[t - 1]) if order == 2 and t > 0 else U(1)) * wide
        for s in range(here, end):
            alpha[s] = 1.0 if t == 0 else 0.0
        into = here
        for b in range(past, here):
            much = alpha[b] * states[b]
            for j in range(wide):
                alpha[into + j] += much * steps[at + j]
            at += wide
            into += wide
            if into == end:
                into = here
        mass = 0.0
        for s in range(here, end):
            mass += alpha[s] * states[s]
        if not (mass > LEAST and mass < np.inf):
            return np.nan
        scale = 1.0 / mass
        for s in range(here, end):
            alpha[s] *= scale
        scales[t] = scale
        value += np.log(mass)
        past, here = here, end
    end = here
    for s in range(past, end):
        beta[s] = 1.0
    for t in range(n - 1, -1, -1):
        wide, scale, most = U(sizes[t]), scales[t], 0.0
        here = end - (U(sizes[t - 1]) if order == 2 and t > 0 else U(1)) * wide
        for s in range(here, end):
            most = max(most, beta[s])
            alpha[s] *= beta[s]
            beta[s] *= states[s] * scale
            states[s] *= alpha[s]
        if not most * scale < 1.0 / LEAST:
            return np.nan
        if t > 0:
            past = here - U(sizes[t - 1]) * (U(sizes[t - 2]) if order == 2 and t > 1 else U(1))
            at -= (here - past) * wide
            _backward(past, here, end, wide, at, chart, keep)
        end = here
    return value


@njit(cache=True, nogil=True)
def _backward(past, here, end, wide, at, chart, keep):
    """beta of the states past … here − 1 from that, with weights, of the states here … end − 1."""
    states, steps, alpha, beta = chart.states, chart.steps, chart.alpha, chart.beta
    into = here
    for b in range(past, here):
        mass = 0.0
        if keep:
            much = alpha[b] * states[b]
            for j in range(wide):
                x = steps[at + j] * beta[into + j]
                mass += x
                steps[at + j] = much * x
        else:
            for j in range(wide):
                mass += steps[at + j] * beta[into + j]
        beta[b] = mass
        at += wide
        into += wide
        if into == end:
            into = here


@njit(cache=True, nogil=True)
def log_forward(sr, order, n, chart):
    """⊕ over all sequences, from logarithms, with LOG, MAX or DRAW; −∞ where nothing is allowed."""
    sizes, states, steps, alpha = chart.sizes, chart.states, chart.steps, chart.alpha
    past, here, at = 0, 0, 0
    for t in range(n):
        wide = sizes[t]
        rows = sizes[t - 1] if order == 2 and t > 0 else 1
        if t == 0:
            alpha[:wide] = 0.0
        x = np.empty((here - past) // rows)
        for s in range(rows * wide if t else 0):
            i, j = s // wide, s % wide
            for h in range(len(x)):
                b = h * rows + i
                x[h] = alpha[past + b] + states[past + b] + steps[at + b * wide + j]
            alpha[here + s] = total(sr, x)
        at += (here - past) * wide
        past, here = here, here + rows * wide
    return total(sr, alpha[past:here] + states[past:here]) if n else 0.0


@njit(cache=True, nogil=True)
def log_backward(sr, order, n, value, chart, keep):
    """After `log_forward`, whose finite `value` is given: the same as `sums` leaves, but `alpha` in logarithms.

    With MAX, posteriors are how good the best sequence with a state or step is beside the best of all: exp of the
    difference of scores.
    """
    sizes, states, steps, alpha, beta, _ = chart
    starts, places = _places(order, n, sizes)
    beta[: starts[n]] = 0.0
    for t in range(n - 1, -1, -1):
        wide, here = sizes[t], starts[t]
        rows = sizes[t - 1] if order == 2 and t > 0 else 1
        for s in range(here, starts[t + 1]):
            alpha[s] += beta[s]
            beta[s] += states[s]
            states[s] = np.exp(alpha[s] + states[s] - value)
        for b in range(starts[t - 1] if t else here, here):
            i, own = (b - starts[t - 1]) % rows, places[t] + (b - starts[t - 1]) * wide
            x = steps[own : own + wide] + beta[here + i * wide : here + (i + 1) * wide]
            beta[b] = total(sr, x)
            if keep:
                for j in range(wide):
                    steps[own + j] = np.exp(alpha[b] + states[b] + x[j] - value)


@njit(cache=True, nogil=True)
def _places(order, n, sizes):
    """Where the states of each position, and the steps into it, begin."""
    starts, places = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for t in range(n):
        starts[t + 1] = starts[t] + sizes[t] * (sizes[t - 1] if order == 2 and t > 0 else 1)
        places[t + 1] = places[t] + (0 if t == 0 else (starts[t] - starts[t - 1]) * sizes[t])
    return starts, places


@njit(cache=True, nogil=True)
def walk(sr, order, n, chart, u, path):
    """After `log_forward` with MAX or DRAW, of a finite value: which label of its list each position has, to `path`.

    u : float64[n], uniform on [0, 1); read by DRAW only, may be empty for MAX.
    """
    sizes, states, steps, alpha = chart.sizes, chart.states, chart.steps, chart.alpha
    starts, places = _places(order, n, sizes)
    s = 0
    for t in range(n - 1, -1, -1):
        draw = u[t] if len(u) else 0.0
        if t == n - 1:
            s = _chosen(sr, alpha[starts[t] : starts[n]] + states[starts[t] : starts[n]], draw)
        else:
            rows = sizes[t] if order == 2 else 1
            i, j = s // sizes[t + 1], s % sizes[t + 1]
            x = np.empty((starts[t + 1] - starts[t]) // rows)
            for h in range(len(x)):
                b = h * rows + i
                x[h] = alpha[starts[t] + b] + states[starts[t] + b] + steps[places[t + 1] + b * sizes[t + 1] + j]
            s = _chosen(sr, x, draw) * rows + i
        path[t] = s % sizes[t]


@njit(cache=True, nogil=True)
def _chosen(sr, x, draw):
    w = np.empty(len(x))
    weights(sr, x, w, draw)
    for i in range(len(w)):
        if w[i] > 0.0:
            return i
    return 0


@njit(cache=True, nogil=True)
def label_posteriors(order, n, chart, best, out):
    """Posteriors of labels, from those of states: to out[e] for the labels of all positions, one after the other.

    best : bool
        After MAX: how good the best sequence with a label is, not a sum.
    """
    states = chart.states
    s, e = U(0), U(0)
    for t in range(n):
        wide = U(chart.sizes[t])
        rows = U(chart.sizes[t - 1]) if order == 2 and t > 0 else U(1)
        for j in range(wide):
            out[e + j] = states[s + j]
        for _ in range(U(1), rows):
            s += wide
            for j in range(wide):
                own = states[s + j]
                out[e + j] = max(out[e + j], own) if best else out[e + j] + own
        s += wide
        e += wide
