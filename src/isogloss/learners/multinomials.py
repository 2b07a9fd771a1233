"""M-steps of multinomials: counts to probabilities, by division, under a Dirichlet prior, or by log-linear features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.learners._vectors import dot
from isogloss.learners.optimisers import Lbfgs, WholeObjective

__all__ = ["Fit", "LogLinearMultinomial", "dirichlet_divergence", "mixture_split", "normalise"]

Array = NDArray[np.float64]


def normalise(counts: ArrayLike, *, alpha: float = 0.0, variational: bool = False) -> Array:
    r"""Expected counts to the parameters of multinomials, along the last axis.

    .. math:: \theta_k = \frac{n_k + \alpha}{\sum_j n_j + \alpha}, \qquad \text{variational: }\;
        \theta_k = \exp\big(\psi(n_k + \alpha) - \psi(\textstyle\sum_j n_j + \alpha)\big)

    Parameters
    ----------
    counts : float64[..., n_outcomes]
    alpha : float
        Added to every count: a symmetric Dirichlet prior. A row without counts becomes uniform when it is 0.
    variational : bool
        The mean-field posterior under the prior instead: small counts are discounted, the more the smaller `alpha`
        (:math:`e^{\psi(x)} \approx x - \tfrac12`), and rows add up to less than 1, which EM does not mind.

    References
    ----------
    MacKay, Ensemble Learning for Hidden Markov Models, 1997; used by Gillenwater et al., ACL 2010, as "DD".

    Examples
    --------
    >>> normalise([[3.0, 1.0], [0.0, 0.0]]).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    >>> normalise([3.0, 1.0], alpha=0.1, variational=True).round(3).tolist()
    [0.705, 0.176]
    """
    array = np.asarray(counts, np.float64)
    if not (array >= 0).all() or not np.isfinite(array).all():
        raise ParameterError("normalise: counts should be finite numbers, 0 or more")
    if not 0 <= alpha < np.inf or (variational and alpha == 0):
        raise ParameterError(f"normalise: alpha should be 0 or more, and positive when variational, not {alpha!r}")
    array = array + alpha
    totals = array.sum(axis=-1, keepdims=True)
    if variational:
        from scipy.special import digamma

        return np.asarray(np.exp(digamma(array) - digamma(totals)))
    if not array.shape[-1]:
        return array
    return np.asarray(np.where(totals > 0, array / np.where(totals > 0, totals, 1.0), 1.0 / array.shape[-1]))


def dirichlet_divergence(counts: ArrayLike, alpha: float) -> float:
    r"""Σ over rows of KL(Dirichlet(n + α) ‖ Dirichlet(α)).

    What variational EM adds to its objective with a minus sign: the log-likelihood under ``normalise(counts, alpha=α,
    variational=True)`` less this is a lower bound of the evidence, and never falls.
    """
    from scipy.special import digamma, gammaln

    array = np.asarray(counts, np.float64)
    after, before = array + alpha, np.full(array.shape, float(alpha))
    sums = gammaln(after.sum(axis=-1)) - gammaln(before.sum(axis=-1))
    each = gammaln(before) - gammaln(after) + array * (digamma(after) - digamma(after.sum(axis=-1, keepdims=True)))
    return float(np.sum(sums) + np.sum(each))


def mixture_split(counts: ArrayLike, *parts: tuple[float, ArrayLike]) -> list[Array]:
    r"""Expected counts of outcomes of a mixture, divided among its parts by their responsibilities.

    .. math:: n_i = n\, \frac{\lambda_i p_i}{\sum_j \lambda_j p_j}

    The M-step of a back-off with fixed weights: each part is then normalised by itself.

    Parameters
    ----------
    counts : float64[...]
        n; 0 where no part gives the outcome any probability.
    parts : (float, float64[...])
        λ and p of each part; tables that lack leading axes are those of all rows.

    Examples
    --------
    >>> own, shared = mixture_split([8.0, 2.0], (0.25, [0.6, 0.4]), (0.75, [0.2, 0.8]))
    >>> own.round(3).tolist(), shared.round(3).tolist()
    ([4.0, 0.286], [4.0, 1.714])
    """
    given = np.asarray(counts, np.float64)
    weighted = [np.broadcast_to(weight * np.asarray(p, np.float64), given.shape) for weight, p in parts]
    whole = np.sum(weighted, axis=0)
    scale = np.divide(given, whole, out=np.zeros_like(given), where=whole > 0)
    return [scale * part for part in weighted]


class Fit(NamedTuple):
    """What was fitted."""

    weights: Array
    """float64[n_weights]."""
    objective: float
    """Σ counts · log p − ½ l2 ‖w‖²; never below that of the weights started from."""
    evaluations: int
    converged: bool
    """Whether the largest entry of the gradient is within the tolerance."""


SEARCH = 25
"""Evaluations that one search along a direction may spend."""


class _Expected(WholeObjective):
    """The log-likelihood of expected counts, a function of the weights of a model."""

    def __init__(self, model: LogLinearMultinomial, counts: Array) -> None:
        self.model, self.counts = model, counts

    @property
    def n_weights(self) -> int:
        return self.model.n_weights

    def add_gradient(self, weights: Array, out: Array, items: NDArray[np.int64] | None = None, /) -> float:
        value, gradient = self.model.likelihood(weights, self.counts)
        out += gradient
        return value


class LogLinearMultinomial:
    r"""Multinomials with shared features: :math:`p(v \mid c) \propto \exp(w \cdot f(c, v))`, one for each context *c*.

    Parameters
    ----------
    features : sparse matrix [n_rows, n_features]
        Row *r* is f(c, v); the rows of a context stand together.
    offsets : int64[n_contexts + 1], or int
        The rows of context *c* are ``offsets[c]:offsets[c + 1]``. A number: so many contexts, of equal size.
    l2 : float
        Of the penalty ½ l2 ‖w‖²: 1 / variance of the prior on weights.
    allowed : bool[n_rows], optional
        Outcomes that are possible; the others have probability 0 whatever the weights.
    base : float64[n_rows], optional
        Added to the scores, and not learnt: log m for an outcome that stands for m of equal features.

    Notes
    -----
    With `conjoined`, each context has weights of its own for the same features of outcomes, as in emissions of words
    from tags: one small matrix is then enough, and an evaluation is two products with it.

    References
    ----------
    Berg-Kirkpatrick et al., Painless Unsupervised Learning with Features, NAACL 2010; Li, Graça and Taskar, Wiki-ly
    Supervised Part-of-Speech Tagging, EMNLP 2012, section 4 (HMM-ME).

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> suffixes = csr_matrix([[1.0, 0], [1, 0], [0, 1]])              # two words in -s, one in -t
    >>> model = LogLinearMultinomial.conjoined(suffixes, 1, l2=0.01)
    >>> fit = model.fit([4.0, 0.0, 4.0])                               # the two in -s share what one of them has
    >>> np.exp(model.log_probs(fit.weights)).round(3).tolist()
    [0.25, 0.25, 0.5]
    """

    def __init__(
        self,
        features: Any,
        offsets: ArrayLike | int,
        *,
        l2: float = 0.1,
        allowed: ArrayLike | None = None,
        base: ArrayLike | None = None,
    ) -> None:
        from scipy.sparse import csr_matrix

        self._rows = csr_matrix(features, dtype=np.float64)
        self._columns = self._rows.T.tocsr()
        self._copies = 0
        self._set_up(self._rows.shape[0], offsets, l2, allowed, base)

    @classmethod
    def conjoined(
        cls,
        features: Any,
        n_contexts: int,
        *,
        l2: float = 0.1,
        allowed: ArrayLike | None = None,
        base: ArrayLike | None = None,
    ) -> LogLinearMultinomial:
        """Outcomes [n_outcomes, n_features] with weights of their own in each context.

        Rows are ``context * n_outcomes + outcome`` and weights ``context * n_features + feature``; `allowed` and `base`
        may be [n_contexts, n_outcomes].
        """
        from scipy.sparse import csr_matrix

        made = cls.__new__(cls)
        made._rows = csr_matrix(features, dtype=np.float64)
        made._columns = made._rows.T.tocsr()
        made._copies = n_contexts
        made._set_up(n_contexts * made._rows.shape[0], n_contexts, l2, allowed, base)
        return made

    def _set_up(
        self, n_rows: int, offsets: ArrayLike | int, l2: float, allowed: ArrayLike | None, base: ArrayLike | None
    ) -> None:
        given = np.asarray(offsets, np.int64)
        if given.ndim == 0:
            if given < 1 or n_rows % int(given):
                raise ParameterError(f"LogLinearMultinomial: {n_rows} rows are not {int(given)} contexts of equal size")
            given = np.linspace(0, n_rows, int(given) + 1).astype(np.int64)
        if given[0] != 0 or given[-1] != n_rows or (np.diff(given) < 1).any():
            raise ParameterError(
                f"LogLinearMultinomial: offsets should rise from 0 to {n_rows}, the number of rows, with at least one "
                "row for each context"
            )
        if not 0 <= l2 < np.inf:
            raise ParameterError(f"LogLinearMultinomial: l2 should be 0 or more, and finite, not {l2!r}")
        self.offsets, self.l2 = given, float(l2)
        self._context = np.repeat(np.arange(len(given) - 1), np.diff(given))
        self._base = None if base is None else np.asarray(base, np.float64).ravel()
        if self._base is not None and not (self._base.shape == (n_rows,) and np.isfinite(self._base).all()):
            raise ParameterError(f"LogLinearMultinomial: base should be {n_rows} finite numbers, one for each row")
        self.allowed: NDArray[np.bool_] | None = None
        if allowed is not None:
            self.allowed = np.asarray(allowed, np.bool_).ravel()
            if self.allowed.shape != (n_rows,):
                raise ParameterError(f"LogLinearMultinomial: allowed should be {n_rows} answers, one for each row")
            none = np.flatnonzero(~np.logical_or.reduceat(self.allowed, given[:-1]))
            if len(none):
                raise ParameterError(f"LogLinearMultinomial: context {none[0]} allows nothing; allow one outcome")

    @property
    def n_rows(self) -> int:
        """Pairs of context and outcome."""
        return int(self.offsets[-1])

    @property
    def n_weights(self) -> int:
        """Length of w."""
        return int(self._rows.shape[1]) * (self._copies or 1)

    def _scores(self, weights: Array) -> Array:
        if not self._copies:
            return np.asarray(self._rows @ weights)
        return np.asarray((self._rows @ weights.reshape(self._copies, -1).T).T.ravel())

    def _gather(self, values: Array) -> Array:
        """The transpose of `_scores`."""
        if not self._copies:
            return np.asarray(self._columns @ values)
        return np.asarray((self._columns @ values.reshape(self._copies, -1).T).T.ravel())

    def log_probs(self, weights: ArrayLike) -> Array:
        """float64[n_rows]: log p(v | c); −∞ where not allowed."""
        scores = self._scores(np.asarray(weights, np.float64))
        if self._base is not None:
            scores = scores + self._base
        if self.allowed is not None:
            scores = np.where(self.allowed, scores, -np.inf)
        top = np.maximum.reduceat(scores, self.offsets[:-1])
        shifted = scores - top[self._context]
        return np.asarray(shifted - np.log(np.add.reduceat(np.exp(shifted), self.offsets[:-1]))[self._context])

    def objective(self, weights: ArrayLike, counts: ArrayLike) -> tuple[float, Array]:
        r"""Value and gradient of :math:`\sum_r n_r \log p_r - \tfrac12 l_2 \|w\|^2`.

        .. math:: \nabla = \sum_{c, v} (n_{cv} - n_c\, p(v \mid c))\, f(c, v) - l_2 w
        """
        w = np.asarray(weights, np.float64)
        value, gradient = self.likelihood(w, self._checked(counts))
        return value + self.log_prior(w), gradient - self.l2 * w

    def likelihood(self, weights: Array, counts: Array) -> tuple[float, Array]:
        """The same without the penalty, of counts that were checked before."""
        logs = self.log_probs(weights)
        totals = np.add.reduceat(counts, self.offsets[:-1])[self._context]
        value = dot(counts, np.where(counts > 0, logs, 0.0))
        return value, self._gather(counts - totals * np.exp(logs))

    def _checked(self, counts: ArrayLike) -> Array:
        n = np.asarray(counts, np.float64).ravel()
        if n.shape != (self.n_rows,) or not (n >= 0).all():
            raise ParameterError(f"LogLinearMultinomial: counts should be {self.n_rows} numbers, 0 or more, one a row")
        if self.allowed is not None and n[~self.allowed].any():
            at = int(np.flatnonzero(~self.allowed & (n > 0))[0])
            raise ParameterError(f"LogLinearMultinomial: row {at} is counted {n[at]:g} times, but is not allowed")
        return n

    def log_prior(self, weights: ArrayLike) -> float:
        """−½ l2 ‖w‖²: what EM adds to its objective."""
        w = np.asarray(weights, np.float64)
        return -0.5 * self.l2 * dot(w, w)

    def fit(
        self, counts: ArrayLike, start: ArrayLike | None = None, *, tolerance: float = 1e-6, steps: int = 50
    ) -> Fit:
        """Weights for expected counts, by L-BFGS.

        Parameters
        ----------
        counts : float64[n_rows]
        start : float64[n_weights], optional
            Weights to start from: those of the previous M-step. What is returned is never worse, so that even one step
            makes a generalised M-step.
        tolerance : float
            Of the largest entry of the gradient, relative to max(1, Σ counts).
        steps : int
            Evaluations to spend at most.
        """
        expected = _Expected(self, self._checked(counts))
        learner = Lbfgs(expected, l2=self.l2)
        state, spent = learner.init(start), 1
        enough = tolerance * max(1.0, float(expected.counts.sum()))
        idle = False
        while np.abs(state.gradient).max(initial=0.0) > enough and spent < steps and not idle:
            learner.evaluations = min(SEARCH, steps - spent)
            before, had_history = state.value, bool(state.moves)
            state, info = learner.step(state)
            spent += info.evaluations
            idle = state.value == before and not had_history  # along the gradient itself there is nothing to gain
        return Fit(state.weights, state.value, spent, bool(np.abs(state.gradient).max(initial=0.0) <= enough))

    def split(self, rows: Array) -> Sequence[Array]:
        """A vector over rows as one array for each context."""
        return np.split(rows, self.offsets[1:-1])
