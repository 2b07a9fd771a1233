r"""The parameters of a Dirichlet distribution from counts that were drawn through it.

Group d has N_d labels, :math:`n_{dt}` of them t, and its shares of labels come from Dirichlet(α), α with a number for
each label. With these summed out,

.. math:: P(n \mid \alpha) = \prod_d \frac{\Gamma(A)}{\Gamma(N_d + A)}
          \prod_t \frac{\Gamma(n_{dt} + \alpha_t)}{\Gamma(\alpha_t)}, \qquad A = \sum_t \alpha_t

References
----------
Minka, Estimating a Dirichlet distribution, 2000, equation 55 (the fixed point); Wallach, Structured topic models for
language, PhD thesis, 2008, section 2.3 (with counts of counts).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isogloss.learners._numba.dirichlet import climb, most, tails

__all__ = ["Tails", "fixed_point_beside"]

LEAST = 1e-9
"""No parameter becomes smaller: a label that no group has would otherwise never come back."""


@dataclass(frozen=True, eq=False)
class Tails:
    """How many groups have each label more than 0, 1, 2, … times: all that the likelihood depends on.

    Parameters
    ----------
    offsets : int64[n_labels + 2]
    values : int64[n]
        ``values[offsets[t] + i]`` groups have label t more than i times; behind the labels stand the sizes of groups.
    """

    offsets: NDArray[np.int64]
    values: NDArray[np.int64]

    @classmethod
    def of(
        cls, labels: NDArray[np.integer], begins: NDArray[np.int64], ends: NDArray[np.int64], n_labels: int
    ) -> Tails:
        """Of groups of labels: those of group d are ``labels[begins[d]:ends[d]]``."""
        offsets = np.concatenate([[0], np.cumsum(most(labels, begins, ends, n_labels))]).astype(np.int64)
        values = np.zeros(offsets[-1], np.int64)
        tails(labels, begins, ends, n_labels, offsets, values)
        return cls(offsets, values)

    def log_likelihood(self, alpha: NDArray[np.float64]) -> float:
        r"""log P(n | α), by :math:`\log \Gamma(n + a) - \log \Gamma(a) = \sum_{i < n} \log (a + i)`."""
        starts = np.append(np.asarray(alpha, np.float64), np.sum(alpha))
        which = np.repeat(np.arange(len(starts)), np.diff(self.offsets))
        terms = self.values * np.log(starts[which] + np.arange(len(self.values)) - self.offsets[which])
        return float(terms[: self.offsets[-2]].sum() - terms[self.offsets[-2] :].sum())

    def fixed_point(
        self, alpha: NDArray[np.float64], *, steps: int = 20, tolerance: float = 1e-4
    ) -> NDArray[np.float64]:
        r"""Better parameters; the likelihood never falls.

        .. math:: \alpha_t \leftarrow \alpha_t \frac{\sum_d [\Psi(n_{dt} + \alpha_t) - \Psi(\alpha_t)]}
                  {\sum_d [\Psi(N_d + A) - \Psi(A)]}

        with :math:`\Psi(n + a) - \Psi(a) = \sum_{i < n} 1 / (a + i)`, until no parameter changes by more than a share
        of `tolerance`, or `steps` are done.

        Examples
        --------
        >>> some = Tails.of(np.array([0, 0, 1, 0]), np.array([0, 2]), np.array([2, 4]), 2)
        >>> some.fixed_point(np.ones(2)).round(2).tolist()
        [3.78, 1.36]
        """
        found = np.maximum(np.array(alpha, np.float64), LEAST)
        climb(self.offsets, self.values, found, steps, float(tolerance), LEAST)
        return found


def fixed_point_beside(
    alpha: NDArray[np.float64],
    counts: NDArray[np.float64],
    beside: NDArray[np.float64],
    *,
    steps: int = 20,
    tolerance: float = 1e-4,
) -> NDArray[np.float64]:
    r"""Better parameters α where the shares of group d come from Dirichlet(α + m_d); the likelihood never falls.

    .. math:: \alpha_t \leftarrow \alpha_t \frac{\sum_d [\Psi(n_{dt} + \alpha_t + m_{dt}) - \Psi(\alpha_t + m_{dt})]}
              {\sum_d [\Psi(N_d + A + M_d) - \Psi(A + M_d)]}

    Minka's bounds on ratios of Γ, at α + m in place of α, and
    :math:`\log(\alpha + m) \ge w \log \alpha + const` with :math:`w = \hat\alpha / (\hat\alpha + m)` by Jensen.

    Parameters
    ----------
    alpha : float64[n_labels]
    counts, beside : float64[n_groups, n_labels]
        n and m.

    Examples
    --------
    >>> counts = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> fixed_point_beside(np.ones(2), counts, np.zeros((2, 2))).round(2).tolist()  # as `Tails.fixed_point`
    [3.78, 1.36]
    """
    from scipy.special import digamma

    found = np.maximum(np.array(alpha, np.float64), LEAST)
    groups, labels = np.nonzero(counts)
    there, whole = counts[groups, labels], counts.sum(axis=1)
    own, others = beside[groups, labels], beside.sum(axis=1)
    for _ in range(steps):
        prior, total = found[labels] + own, found.sum() + others
        above = np.bincount(labels, digamma(there + prior) - digamma(prior), minlength=len(found))
        below = float((digamma(whole + total) - digamma(total)).sum())
        if below <= 0:
            return found
        fresh = np.maximum(found * above / below, LEAST)
        settled = (np.abs(fresh - found) <= tolerance * found).all()
        found = fresh
        if settled:
            break
    return found
