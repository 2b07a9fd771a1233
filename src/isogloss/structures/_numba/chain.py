"""The chain: one sweep forward, and the same sweep backward.

Both kernels know first-order transitions only. A second-order chain is a third loop around the same two primitives
(`total`, `weights`) and would stand here beside `chain`; until then it can be had as a `chain` over pairs of states
with minus infinity where two pairs do not overlap.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from isogloss.structures._numba.semiring import total, weights

__all__ = ["chain", "chains", "sequences"]


@njit(cache=True, nogil=True)
def chain(sr, scores, grad, u):
    """⊕ over y of Σ_t scores[t, y[t-1], y[t]]; the start row is scores[0, 0, :].

    Parameters
    ----------
    sr : LOG, MAX or DRAW
    scores : float64[n, k, k]
    grad : float64[n, k, k]
        Zeros, overwritten with the derivative of the result: marginals, best path or sampled path. It stays zero
        where nothing is allowed, and the result is then −∞.
    u : float64[n]
        Uniform on [0, 1), read by DRAW only; may be empty for the others.
    """
    n, k = scores.shape[0], scores.shape[2]
    if n == 0:
        return 0.0  # the empty sequence
    if k == 0:
        return -np.inf  # positions, and nothing to put there
    alpha, beta = np.empty((n, k)), np.zeros((n, k))
    x, w = np.empty(k), np.empty(k)
    alpha[0] = scores[0, 0]
    for t in range(1, n):
        for j in range(k):
            for i in range(k):
                x[i] = alpha[t - 1, i] + scores[t, i, j]
            alpha[t, j] = total(sr, x)
    value = total(sr, alpha[n - 1])
    weights(sr, alpha[n - 1], beta[n - 1], u[n - 1] if len(u) else 0.0)
    for t in range(n - 1, 0, -1):  # the forward loops, reversed
        draw = u[t - 1] if len(u) else 0.0
        for j in range(k):
            if beta[t, j] == 0.0:
                continue
            for i in range(k):
                x[i] = alpha[t - 1, i] + scores[t, i, j]
            weights(sr, x, w, draw)
            for i in range(k):
                grad[t, i, j] = beta[t, j] * w[i]
                beta[t - 1, i] += grad[t, i, j]
    grad[0, 0] = beta[0]
    return value


@njit(cache=True, nogil=True, parallel=True)
def chains(sr, scores, offsets, lengths, states, grad, u, starts, values):
    """`chain` on many sentences, each on one thread.

    Nothing is summed across sentences, so the number of threads cannot change a bit of the result.

    Parameters
    ----------
    scores, grad : float64[n_values]
        Sentence *s* is ``scores[offsets[s]:offsets[s + 1]]``, a block [lengths[s], states[s], states[s]].
    u : float64[Σ lengths]
        Sentence *s* reads ``u[starts[s]:starts[s + 1]]``; empty when nothing is drawn.
    values : float64[n_sentences]
        Overwritten with the result of every sentence.
    """
    for s in prange(len(lengths)):
        shape = (lengths[s], states[s], states[s])
        block = scores[offsets[s] : offsets[s + 1]].reshape(shape)
        out = grad[offsets[s] : offsets[s + 1]].reshape(shape)
        draws = u[starts[s] : starts[s + 1]] if len(u) else u
        values[s] = chain(sr, block, out, draws)


@njit(cache=True, nogil=True)
def sequences(grad, offsets, lengths, states, starts, out):
    """The states that each sentence steps to, from indicators of steps as `chains` writes them for MAX and DRAW.

    Parameters
    ----------
    out : int64[Σ lengths]
        Sentence *s* is written to ``out[starts[s]:starts[s + 1]]``.
    """
    for s in range(len(lengths)):
        n, k = lengths[s], states[s]
        block = grad[offsets[s] : offsets[s + 1]].reshape((n, k, k))
        for t in range(n):
            for i in range(k):
                for j in range(k):
                    if block[t, i, j] > 0.0:
                        out[starts[s] + t] = j
