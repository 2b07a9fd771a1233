r"""The alignment HMM of one sentence pair and one direction: forward-backward in scaled float32.

A chain over the words of the *generated* sentence (``n`` of them, time) whose states are positions in the *generating*
sentence (``m`` of them), with null states that carry the position of the last real word [1]_ [2]_:

.. math:: p(j \mid i) = (1 - p_0)\, c(j - i) / \sum_{j'} c(j' - i), \qquad p(null_i \mid i) = p_0,

and :math:`c(d)` has its own value for :math:`|d| \le 5` and one common value, the *tail*, beyond. Two facts make it
fast. What follows depends on the position alone, so real and null states of a position share one backward value and
:math:`G = \alpha + \alpha_{null}` is all the forward pass needs. And a constant tail means that a step is eleven
shifted multiplications with :math:`c(d) - tail` plus the tail times the total, instead of a matrix product.

How likely the last real word is to lie so far from the end [3]_ is a further factor, where it is learnt.

`AlignmentChain` is the same model as a general chain in float64 logs; tests hold both to agree. All matrices are flat
float32 with rows `stride` apart, `stride` a multiple of the lane width, and zero in the padding: a state that is zero
there stays zero.

References
----------
.. [1] Och and Ney, A Systematic Comparison of Various Statistical Alignment Models, CL 2003, section 2.
.. [2] Graça, Ganchev and Taskar, Learning Tractable Word Alignment Models with Complex Constraints, CL 2010, section
   2.1. We differ: the common value of far jumps is a weight for each position, so that the renormalised model has an
   exact generalised M-step (see `jump_counts`), and words that are null before any real word keep the initial
   distribution.
.. [3] Liang, Taskar and Klein, Alignment by Agreement, NAACL 2006, equation 1: weights out of the last word of their
   own (`last_weights`). We differ: they are normalised over the positions, as those into the first word are, and equal
   weights say nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from isogloss.structures._numba.lanes import WIDTH, add, load, multiply, multiply_add, splat, store, total

__all__ = [
    "BAND",
    "BUCKETS",
    "FIRST",
    "ROWS",
    "backward_pass",
    "first_weights",
    "forward_pass",
    "independent",
    "jump_counts",
    "jump_norms",
    "last_weights",
    "log_likelihood",
    "padded",
    "viterbi",
]

BAND = 5  # jumps up to this size have a parameter each
BUCKETS = 2 * BAND + 2  # -5..5, then the tail
FIRST = 2 * BAND + 1  # positions of the first real word with a parameter each; the last one is shared
ROWS = 6  # of counts: jumps, positions of the first and of the last real word, each with its divisors
_KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_KERNEL)
def padded(length):
    """`length` rounded up to whole lanes."""
    return (length + WIDTH - 1) // WIDTH * WIDTH


@njit(**_KERNEL)
def jump_norms(jumps, m, inverse):
    """inverse[i] = 1 / sum of jumps(j - i) over the m positions j; zero in the padding."""
    cumulated = np.zeros(BUCKETS)
    tail = jumps[BUCKETS - 1]
    for d in range(2 * BAND + 1):
        cumulated[d + 1] = cumulated[d] + (jumps[d] - tail)
    for i in range(m):
        low, high = max(0, BAND - i), min(2 * BAND + 1, m - i + BAND)
        inverse[i] = 1.0 / (m * tail + cumulated[high] - cumulated[low])
    for i in range(m, padded(m)):
        inverse[i] = 0.0


@njit(**_KERNEL)
def first_weights(first, m, out):
    """The distribution of the first real word over the m positions, from one weight a bucket; zero in the padding."""
    norm = 0.0
    for j in range(m):
        norm += first[min(j, FIRST - 1)]
    for j in range(m):
        out[j] = first[min(j, FIRST - 1)] / norm
    for j in range(m, padded(m)):
        out[j] = 0.0


@njit(**_KERNEL)
def last_weights(last, m, out):
    """How likely the last real word is at each of m positions, from one weight for each distance from the end.

    In units of 1/m: equal weights are 1 each, exactly, and say nothing. Zero in the padding.
    """
    norm = 0.0
    for j in range(m):
        norm += last[min(j, FIRST - 1)]
    for j in range(m):
        out[j] = last[min(m - 1 - j, FIRST - 1)] * m / norm
    for j in range(m, padded(m)):
        out[j] = 0.0


@njit(**_KERNEL)
def _band(jumps, number):
    """The weights of the eleven jumps of the band less the tail, each in all lanes."""
    tail = jumps[BUCKETS - 1]
    return (
        splat(number(jumps[0] - tail)),
        splat(number(jumps[1] - tail)),
        splat(number(jumps[2] - tail)),
        splat(number(jumps[3] - tail)),
        splat(number(jumps[4] - tail)),
        splat(number(jumps[5] - tail)),
        splat(number(jumps[6] - tail)),
        splat(number(jumps[7] - tail)),
        splat(number(jumps[8] - tail)),
        splat(number(jumps[9] - tail)),
        splat(number(jumps[10] - tail)),
    )


@njit(**_KERNEL, inline="always")
def _shifted(row, at, k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10):
    """Eleven shifted products: sum over d of k[d] * row[at + d], in two chains to hide latency."""
    x = multiply(k0, load(row, at))
    y = multiply(k1, load(row, at + 1))
    x = multiply_add(k2, load(row, at + 2), x)
    y = multiply_add(k3, load(row, at + 3), y)
    x = multiply_add(k4, load(row, at + 4), x)
    y = multiply_add(k5, load(row, at + 5), y)
    x = multiply_add(k6, load(row, at + 6), x)
    y = multiply_add(k7, load(row, at + 7), y)
    x = multiply_add(k8, load(row, at + 8), x)
    y = multiply_add(k9, load(row, at + 9), y)
    return add(x, multiply_add(k10, load(row, at + 10), y))


@njit(**_KERNEL)
def forward_pass(emission, null, n, m, stride, jumps, inverse, first, last, p0, mass, real, scale, row):
    """Forward sweep. Fills `mass` (G: real and null together), `real` (alpha of real states) and `scale`; returns Z.

    `scale[t]` is the factor by which step t was multiplied, so that log p = log Z - sum(log scale). `row` is scratch of
    `padded(m) + 2 * WIDTH`. `scale[n + t]` keeps the mass that has met no real word after t words.
    """
    number = emission.dtype.type
    end = padded(m)
    k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10 = _band(jumps, number)
    tail = number(jumps[BUCKETS - 1])
    q0 = number(1.0) - p0
    zero = splat(number(0.0))
    store(row, 0, zero)
    store(row, WIDTH + end, zero)
    factor = splat(q0)
    for j in range(0, end, WIDTH):
        alpha = multiply(load(emission, j), multiply(factor, load(first, j)))
        store(real, j, alpha)
        store(mass, j, alpha)
    scale[0] = number(1.0)
    scale[n] = number(1.0)
    unmet = null[0] * p0
    for t in range(1, n):
        before, now = (t - 1) * stride, t * stride
        sums = zero
        for i in range(0, end, WIDTH):
            h = multiply(load(mass, before + i), load(inverse, i))
            store(row, WIDTH + i, h)
            sums = add(sums, h)
        whole = total(sums)
        r = number(1.0) / (whole + unmet)
        scale[t] = r
        scale[n + t] = unmet
        base, stay = splat(q0 * tail * whole * r), splat(null[t] * p0 * r)
        move, enter = splat(q0 * r), splat(unmet * q0 * r)
        for j in range(0, end, WIDTH):
            x = _shifted(row, WIDTH + j - BAND, k10, k9, k8, k7, k6, k5, k4, k3, k2, k1, k0)
            alpha = multiply(load(emission, now + j), multiply_add(move, x, multiply_add(enter, load(first, j), base)))
            store(real, now + j, alpha)
            store(mass, now + j, multiply_add(stay, load(mass, before + j), alpha))
        unmet *= null[t] * p0 * r
    sums = zero
    for i in range(0, end, WIDTH):
        sums = multiply_add(load(mass, (n - 1) * stride + i), load(last, i), sums)
    return total(sums) + unmet


@njit(**_KERNEL)
def backward_pass(emission, null, n, m, stride, jumps, inverse, last, p0, z, real, scale, row, beta, posterior):
    """Backward sweep after `forward_pass`. Fills posterior[t, j] = P(word t is linked to j); leaves beta of word 0."""
    number = emission.dtype.type
    end = padded(m)
    k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10 = _band(jumps, number)
    tail = number(jumps[BUCKETS - 1])
    q0 = number(1.0) - p0
    zero = splat(number(0.0))
    store(row, 0, zero)
    store(row, WIDTH + end, zero)
    start = splat(number(1.0) / z)
    for i in range(0, end, WIDTH):
        store(beta, i, multiply(start, load(last, i)))
    for t in range(n - 1, 0, -1):
        now = t * stride
        sums = zero
        for j in range(0, end, WIDTH):
            b = load(beta, j)
            store(posterior, now + j, multiply(load(real, now + j), b))
            u = multiply(load(emission, now + j), b)
            store(row, WIDTH + j, u)
            sums = add(sums, u)
        r = scale[t]
        base, stay, move = splat(tail * total(sums)), splat(null[t] * p0 * r), splat(q0 * r)
        for i in range(0, end, WIDTH):
            x = add(base, _shifted(row, WIDTH + i - BAND, k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10))
            store(beta, i, multiply_add(stay, load(beta, i), multiply(multiply(move, load(inverse, i)), x)))
    for j in range(0, end, WIDTH):
        store(posterior, j, multiply(load(real, j), load(beta, j)))


@njit(**_KERNEL)
def log_likelihood(z, scale, n):
    """log p of the generated words, from what `forward_pass` left; products first, since logarithms are slow."""
    value, product = np.log(np.float64(z)), 1.0
    for t in range(1, n):
        product *= np.float64(scale[t])
        if not 1e-200 < product < 1e200:
            value -= np.log(product)
            product = 1.0
    return value - np.log(product)


@njit(**_KERNEL)
def jump_counts(
    emission,
    null,
    n,
    m,
    stride,
    jumps,
    inverse,
    weights,
    first,
    ends,
    last,
    p0,
    z,
    mass,
    real,
    scale,
    row,
    beta,
    leaving,
    entering,
    sums,
    posterior,
    counts,
):
    r"""Backward sweep after `forward_pass` that also adds expected jumps, and what they are divided by, to counts.

    With :math:`N(d)` expected jumps and :math:`N_i` the expected number of moves away from position i of m, the update

    .. math:: c'(d) = N(d) \Big/ \sum_{m, i} N_i \, n_d(i, m) / Z_i(m), \qquad Z_i(m) = \sum_{j < m} c(j - i)

    (:math:`n_d`: how many positions j lie at jump d) never lowers the expected log-likelihood: it maximises the bound
    from :math:`-\log Z \ge -\log Z_{old} - Z / Z_{old} + 1`. Rows of counts[ROWS, BUCKETS]: 0 jumps, 1 their divisors;
    2 and 3 the same for the first real word, whose buckets are positions; 4 and 5 for the last one, whose buckets are
    distances from the end. `first_weights` made `first` of `weights`, and `last_weights` made `last` of `ends`. `row`,
    `beta`, `leaving`, `entering` (padded) and `sums` (BAND * 2 + 1 lanes) are scratch. Fills `posterior` as
    `backward_pass` does.
    """
    number = emission.dtype.type
    end = padded(m)
    k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10 = _band(jumps, number)
    tail = number(jumps[BUCKETS - 1])
    q0 = number(1.0) - p0
    zero = splat(number(0.0))
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = zero
    store(row, 0, zero)
    store(row, WIDTH + end, zero)
    start = splat(number(1.0) / z)
    for i in range(0, end, WIDTH):
        store(beta, i, multiply(start, load(last, i)))
        store(leaving, i, zero)
        store(entering, i, zero)
    for t in range(n - 1, -1, -1):
        r = scale[t]
        whole = zero
        fresh = splat(scale[n + t] * q0 * r)
        for j in range(0, end, WIDTH):
            b = load(beta, j)
            store(posterior, t * stride + j, multiply(load(real, t * stride + j), b))
            u = multiply(load(emission, t * stride + j), b)
            store(row, WIDTH + j, u)
            whole = add(whole, u)
            store(entering, j, multiply_add(fresh, u, load(entering, j)))
        if t == 0:
            break
        base, stay, move = splat(tail * total(whole)), splat(null[t] * p0 * r), splat(q0 * r)
        for i in range(0, end, WIDTH):
            at = WIDTH + i - BAND
            x = add(base, _shifted(row, at, k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10))
            h = multiply(move, load(inverse, i))
            here = multiply(h, load(mass, (t - 1) * stride + i))
            store(leaving, i, multiply_add(here, x, load(leaving, i)))
            store(beta, i, multiply_add(stay, load(beta, i), multiply(h, x)))
            s0 = multiply_add(here, load(row, at), s0)
            s1 = multiply_add(here, load(row, at + 1), s1)
            s2 = multiply_add(here, load(row, at + 2), s2)
            s3 = multiply_add(here, load(row, at + 3), s3)
            s4 = multiply_add(here, load(row, at + 4), s4)
            s5 = multiply_add(here, load(row, at + 5), s5)
            s6 = multiply_add(here, load(row, at + 6), s6)
            s7 = multiply_add(here, load(row, at + 7), s7)
            s8 = multiply_add(here, load(row, at + 8), s8)
            s9 = multiply_add(here, load(row, at + 9), s9)
            s10 = multiply_add(here, load(row, at + 10), s10)
    store(sums, 0, s0)
    store(sums, WIDTH, s1)
    store(sums, 2 * WIDTH, s2)
    store(sums, 3 * WIDTH, s3)
    store(sums, 4 * WIDTH, s4)
    store(sums, 5 * WIDTH, s5)
    store(sums, 6 * WIDTH, s6)
    store(sums, 7 * WIDTH, s7)
    store(sums, 8 * WIDTH, s8)
    store(sums, 9 * WIDTH, s9)
    store(sums, 10 * WIDTH, s10)
    _add_first(m, weights, first, entering, counts)
    _add_last(m, ends, last, mass[(n - 1) * stride : (n - 1) * stride + m], 1.0 / np.float64(z), counts)
    _add_jumps(m, jumps, inverse, leaving, sums, counts)


@njit(**_KERNEL)
def _add_first(m, weights, first, entering, counts):
    """Where the first real word is expected, and the divisors of the buckets."""
    norm = entered = 0.0
    for j in range(m):
        entry = np.float64(first[j]) * entering[j]
        counts[2, min(j, FIRST - 1)] += entry
        entered += entry
        norm += weights[min(j, FIRST - 1)]
    for j in range(m):
        counts[3, min(j, FIRST - 1)] += entered / norm


@njit(**_KERNEL)
def _add_last(m, weights, last, mass, scale, counts):
    """Where the last real word is expected, counted from the end, and the divisors of the buckets."""
    norm = left = 0.0
    for j in range(m):
        leave = scale * mass[j] * last[j]
        counts[4, min(m - 1 - j, FIRST - 1)] += leave
        left += leave
        norm += weights[min(j, FIRST - 1)]
    for j in range(m):
        counts[5, min(j, FIRST - 1)] += left / norm


@njit(**_KERNEL)
def _add_jumps(m, jumps, inverse, leaving, sums, counts):
    """Expected jumps by bucket; what is not within the band is in the tail."""
    band = 2 * BAND + 1
    far = 0.0
    for i in range(m):
        moved = np.float64(leaving[i])
        far += moved
        share = moved * inverse[i]
        for d in range(max(0, BAND - i), min(band, m - i + BAND)):
            counts[1, d] += share
        counts[1, band] += share * (max(0, i - BAND) + max(0, m - 1 - i - BAND))
    for d in range(band):
        near = jumps[d] * total(load(sums, d * WIDTH))
        counts[0, d] += near
        far -= near
    counts[0, band] += max(0.0, far)


@njit(**_KERNEL)
def independent(emission, null, n, m, stride, prior, prior_stride, p0, posterior):
    """Models 1 and 2: every word chooses on its own, position j with prior[t, j]; fills `posterior`, returns log p.

    Rows of `prior` lie `prior_stride` apart: 0 where all words have the same.
    """
    number = emission.dtype.type
    end = padded(m)
    q0 = splat(number(1.0) - p0)
    value = 0.0
    for t in range(n):
        sums = splat(number(0.0))
        for j in range(0, end, WIDTH):
            x = multiply(q0, multiply(load(emission, t * stride + j), load(prior, t * prior_stride + j)))
            store(posterior, t * stride + j, x)
            sums = add(sums, x)
        z = total(sums) + p0 * null[t]
        value += np.log(np.float64(z))
        r = splat(number(1.0) / z)
        for j in range(0, end, WIDTH):
            store(posterior, t * stride + j, multiply(r, load(posterior, t * stride + j)))
    return value


@njit(**_KERNEL)
def viterbi(emission, null, n, m, stride, jumps, inverse, first, last, p0, path):
    """The best path: path[t] is the position that word t is linked to, -1 for null. Float64 logs, ties to the left."""
    band = 2 * BAND + 1
    q0 = np.log(1.0 - p0)
    log_p0 = np.log(p0) if p0 > 0.0 else -np.inf
    log_jumps = np.log(jumps)
    best = np.full((n, m), -np.inf)  # best score of being at position i after word t, real or null
    back = np.full((n, m), -1, np.int32)  # the position before; -2 means: word t is null here
    unmet = 0.0
    for t in range(n):
        log_null = np.log(np.float64(null[t])) + log_p0
        for j in range(m):
            e = np.log(np.float64(emission[t * stride + j])) + q0
            top = unmet + np.log(np.float64(first[j]))
            came = -1
            if t > 0:
                for i in range(m):
                    d = j - i + BAND
                    score = best[t - 1, i] + np.log(np.float64(inverse[i])) + log_jumps[d if 0 <= d < band else band]
                    if score > top:
                        top, came = score, i
            best[t, j] = e + top
            back[t, j] = came
            if t > 0 and best[t - 1, j] + log_null > best[t, j]:
                best[t, j] = best[t - 1, j] + log_null
                back[t, j] = -2
        unmet += log_null
    for t in range(n):
        path[t] = -1
    for j in range(m):
        best[n - 1, j] += np.log(np.float64(last[j]))
    at = np.argmax(best[n - 1])
    if best[n - 1, at] < unmet:
        return
    t = n - 1
    while t >= 0:
        if back[t, at] == -2:
            t -= 1
            continue
        path[t] = at
        at = back[t, at]
        t -= 1
        if at < 0:
            return
