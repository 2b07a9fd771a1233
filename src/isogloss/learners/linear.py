r"""Linear classifiers of items that stand alone, such as documents: one row of features each, soft or known labels.

.. math:: \min_w\; \frac{1}{\sum_i c_i} \sum_i c_i \sum_y t_{iy}\, L(w, x_i, y)
    + \sum_j \lambda_j (w_j - w^0_j)^2

`LinearLoss` is an objective for `Lbfgs` and for what takes a few items at a time. The loss is that of a log-linear
model, or the modified Huber loss of one score against the others. With two labels there is one score, that of the
second; with more there is one for each.

References
----------
Zhang, Solving Large Scale Linear Prediction Problems Using Stochastic Gradient Descent Algorithms, ICML 2004 (the
modified Huber loss). Blitzer, Dredze and Pereira, ACL 2007, section 5 (penalties towards other weights than 0). We
differ: the loss is a mean, since λ = 10⁻⁴ beside a sum would be no penalty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.sparse import Sparse
from isogloss.learners.correspondence import modified_huber
from isogloss.learners.optimisers import Lbfgs
from isogloss.learners.runner import run

__all__ = ["LOSSES", "LinearLoss", "LinearWeights", "fit_linear", "naive_bayes_weights", "softmax"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]
LOSSES = ("huber", "logistic")


def softmax(scores: Array) -> Array:
    """float64[n, k]: probabilities of labels, of rows of log scores."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


class LinearWeights:
    """Weights of labels, and what they say of rows.

    Parameters
    ----------
    weights : float64[n_scores, n_features]
        One row for two labels, which is that of the second, and a row for each label otherwise.
    bias : float64[n_scores]
    """

    def __init__(self, weights: ArrayLike, bias: ArrayLike) -> None:
        self.weights, self.bias = np.atleast_2d(np.asarray(weights, np.float64)), np.atleast_1d(np.asarray(bias, float))
        if len(self.bias) != len(self.weights) or len(self.bias) == 2:
            raise ParameterError(f"LinearWeights: {len(self.weights)} rows of weights, but {len(self.bias)} biases")

    @property
    def n_labels(self) -> int:
        return 2 if len(self.bias) == 1 else len(self.bias)

    def scores(self, rows: Sparse) -> Array:
        """float64[n, n_labels]: of each label; with two labels, the halves of one score, so that they sum to 0."""
        found = np.stack([rows.scores(w) for w in self.weights], axis=1) + self.bias
        return np.concatenate([-found / 2, found / 2], axis=1) if len(self.bias) == 1 else found


class LinearLoss:
    """The mean loss of rows, less penalties, with the sign of something to be raised.

    Parameters
    ----------
    rows : Sparse
        Features of each item.
    targets : float64[n, n_labels]
        How much of each item belongs to each label; rows sum to 1.
    loss : "huber" or "logistic"
    counts : float64[n], optional
        What each item counts; 1 if not given.
    penalty : float or float64[n_features]
        λ of each feature. Biases have none.
    centre : float64[n_scores, n_features], optional
        Where weights are drawn to; 0 if not given.
    bias : float64[n_scores], optional
        The biases, where they are known; otherwise they are learnt.

    Examples
    --------
    >>> rows = Sparse.of([[0], [1], [0, 1]], 2)
    >>> found = fit_linear(rows, [[0, 1], [1, 0], [0.5, 0.5]], loss="logistic", penalty=0.01)
    >>> softmax(found.scores(rows)).round(2).tolist()
    [[0.12, 0.88], [0.88, 0.12], [0.5, 0.5]]
    """

    def __init__(
        self,
        rows: Sparse,
        targets: ArrayLike,
        *,
        loss: str = "huber",
        counts: ArrayLike | None = None,
        penalty: float | ArrayLike = 1e-3,
        centre: ArrayLike | None = None,
        bias: ArrayLike | None = None,
    ) -> None:
        self.rows, self.targets, self.loss = rows, np.asarray(targets, np.float64), loss
        n, wide = rows.n_rows, rows.n_features
        if loss not in LOSSES:
            raise ParameterError(f"LinearLoss: loss should be one of {', '.join(LOSSES)}, not {loss!r}")
        if self.targets.ndim != 2 or len(self.targets) != n or self.targets.shape[1] < 2:
            raise ParameterError(f"LinearLoss: targets should be [{n}, labels], not {list(self.targets.shape)}")
        self.n_scores = 1 if self.targets.shape[1] == 2 else self.targets.shape[1]
        self.counts = np.ones(n) if counts is None else np.asarray(counts, np.float64)
        self.total = float(self.counts.sum()) or 1.0
        self.penalty = np.broadcast_to(np.asarray(penalty, np.float64), (wide,))
        self.centre = np.zeros((self.n_scores, wide)) if centre is None else np.asarray(centre, np.float64)
        self.bias = None if bias is None else np.asarray(bias, np.float64)
        if self.counts.shape != (n,) or self.centre.shape != (self.n_scores, wide):
            raise ParameterError("LinearLoss: counts and centre should be as many as rows and weights")
        if self.bias is not None and self.bias.shape != (self.n_scores,):
            raise ParameterError(f"LinearLoss: bias should be {self.n_scores} numbers, not {list(self.bias.shape)}")

    @property
    def n_weights(self) -> int:
        return self.n_scores * (self.rows.n_features + 1)

    def __len__(self) -> int:
        return self.rows.n_rows

    def support(self, items: Items) -> NDArray[np.int64] | None:
        """Penalties speak of all weights."""
        return None

    def split(self, weights: Array) -> LinearWeights:
        """Weights and biases out of one vector."""
        table = np.asarray(weights, np.float64).reshape(self.n_scores, -1)
        return LinearWeights(table[:, :-1], table[:, -1] if self.bias is None else self.bias)

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None) -> float:
        """The value of some items with their share of the penalties, or of all; its gradient is added to `out`."""
        found, chosen = self.split(weights), slice(None) if items is None else items
        counts = np.zeros(len(self))
        counts[chosen] = self.counts[chosen] / self.total
        share = 1.0 if items is None else len(items) / max(1, len(self))
        raw = np.stack([self.rows.scores(w) for w in found.weights], axis=1) + found.bias
        value, slope = self._loss(raw)
        slope *= counts[:, None]
        away = found.weights - self.centre
        table = out.reshape(self.n_scores, -1)
        for k in range(self.n_scores):
            table[k, :-1] -= self.rows.totals(slope[:, k]) + 2 * share * self.penalty * away[k]
            if self.bias is None:
                table[k, -1] -= slope[:, k].sum()
        return -float(counts @ value) - share * float((self.penalty * away**2).sum())

    def gradient(self, weights: NDArray[Any], items: Items) -> tuple[float, Gradient]:
        """Value and gradient of a few items."""
        out = np.zeros(self.n_weights)
        return self.add_gradient(np.asarray(weights, np.float64), out, items), Gradient.whole(out)

    def _loss(self, scores: Array) -> tuple[Array, Array]:
        """float64[n], float64[n, n_scores]: the loss of each row, and its derivative in the scores."""
        targets = self.targets[:, 1:] if self.n_scores == 1 else self.targets
        if self.loss == "huber":
            right, up = modified_huber(scores, 1.0)
            wrong, down = modified_huber(scores, -1.0)
            return (targets * right + (1 - targets) * wrong).sum(axis=1), targets * up + (1 - targets) * down
        if self.n_scores == 1:
            value = np.logaddexp(0.0, scores) - targets * scores
            return value[:, 0], np.exp(-np.logaddexp(0.0, -scores)) - targets
        log_z = np.logaddexp.reduce(scores, axis=1)
        return log_z - (targets * scores).sum(axis=1), np.exp(scores - log_z[:, None]) - targets


def fit_linear(
    rows: Sparse,
    targets: ArrayLike,
    *,
    iterations: int = 100,
    tolerance: float = 1e-6,
    start: LinearWeights | None = None,
    **options: Any,
) -> LinearWeights:
    """The weights of least loss, by L-BFGS; options are those of `LinearLoss`."""
    objective = LinearLoss(rows, targets, **options)
    learner = Lbfgs(objective)
    first = None if start is None else np.concatenate([start.weights, start.bias[:, None]], axis=1).ravel()
    found = run(learner, learner.init(first), iterations=iterations, tolerance=tolerance)
    return objective.split(found.state.weights)


def naive_bayes_weights(
    rows: Sparse, targets: ArrayLike, counts: ArrayLike | None = None, smoothing: float = 1.0
) -> Array:
    r"""float64[n_scores, n_features]: how much more often a feature is met with a label than with the others, as a log.

    .. math:: r_{yj} = \log \frac{(\alpha + \sum_i t_{iy} x_{ij}) / \sum_{j'} (\alpha + \sum_i t_{iy} x_{ij'})}
        {(\alpha + \sum_i (1 - t_{iy}) x_{ij}) / \sum_{j'} (\alpha + \sum_i (1 - t_{iy}) x_{ij'})}

    Features that are multiplied by it make a linear classifier begin where naive Bayes is [1]_. With two labels there
    is one row, that of the second.

    References
    ----------
    .. [1] Wang and Manning, Baselines and Bigrams: Simple, Good Sentiment and Topic Classification, ACL 2012.

    Examples
    --------
    >>> naive_bayes_weights(Sparse.of([[0, 1], [1, 2]], 3), [[1, 0], [0, 1]]).round(2).tolist()
    [[-0.69, 0.0, 0.69]]
    """
    wanted = np.asarray(targets, np.float64)
    weighted = wanted if counts is None else wanted * np.asarray(counts, np.float64)[:, None]
    each = np.stack([rows.totals(column) for column in weighted.T])
    total = each.sum(axis=0)
    own = each[1:] if len(each) == 2 else each
    inside, outside = smoothing + own, smoothing + total - own
    shares = (inside.sum(axis=1, keepdims=True), outside.sum(axis=1, keepdims=True))
    return np.asarray(np.log(inside) - np.log(shares[0]) - np.log(outside) + np.log(shares[1]))
