r"""Conditional likelihood of log-linear models over any structure: with gold, latent or soft targets.

.. math:: p_w(y \mid x) = \exp(w \cdot f(x, y)) / Z(x), \qquad
    L(w) = \sum_i \log p_w(\text{target}_i \mid x_i), \qquad
    \nabla L = \sum_i E[f \mid x_i, \text{target}_i] - E[f \mid x_i]

A `Likelihood` is an objective; `Lbfgs`, `AdaGrad` and `Sgd` raise it, with l1 and l2 penalties of their own.

References
----------
Smith, PhD thesis, Johns Hopkins 2010, appendix A (equations A.13-A.22). Haghighi et al., Better Word Alignments with
Supervised ITG Models, ACL 2009, section 4 (latent targets). He, Gillenwater and Taskar, CoNLL 2013 (soft targets).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.models import LinearModel, Model
from isogloss.learners.optimisers import AdaGrad, Info, Lbfgs, Objective, Sgd

__all__ = [
    "AdaGrad",
    "ChainModel",
    "Info",
    "LabelPairs",
    "Lbfgs",
    "Likelihood",
    "LinearModel",
    "Model",
    "NodeFeatures",
    "Objective",
    "Sgd",
    "Total",
]

Array = NDArray[np.float64]
Items = NDArray[np.int64]


class Likelihood:
    r"""The conditional log-likelihood of a model's items; give one of `gold`, `soft` and `within`.

    Parameters
    ----------
    model : Model
        Such as `LinearModel` or `ChainModel`.
    gold : sequence of structures
        What is right, one for each item: :math:`\sum_i \log p(y_i \mid x_i)`. Concave in the weights.
    soft : distributions or expected parts
        :math:`\sum_i E_{q_i}[\log p(y \mid x_i)]`, as in the M-step of posterior regularisation. Concave.
    within : Model
        The same model with fewer structures allowed, such as those that agree with what is known of an item:
        :math:`\sum_i \log p(y \in Y_i \mid x_i) = \sum_i \log Z_{Y_i} - \log Z`. Not concave.
    share : float
        What the sum is multiplied with, such as the weight α of items without gold.

    Examples
    --------
    >>> from isogloss.learners.runner import run
    >>> from isogloss.features.sparse import Sparse
    >>> from isogloss.structures import Chain
    >>> parts = Sparse.of([[0], [1], [], []], 2)                       # one position, two states, a weight for each
    >>> coin = LinearModel([Chain(np.zeros((1, 2, 2)))], parts)
    >>> learner = Lbfgs(Likelihood(coin, soft=[[[[0.8, 0.2], [0, 0]]]]))
    >>> weights = run(learner, learner.init(), iterations=50, tolerance=1e-12).state.weights
    >>> coin.distribution(weights, 0).marginals()[0, 0].round(4).tolist()
    [0.8, 0.2]
    """

    def __init__(
        self, model: Model, *, gold: Any = None, soft: Any = None, within: Model | None = None, share: float = 1.0
    ) -> None:
        given = [name for name, target in (("gold", gold), ("soft", soft), ("within", within)) if target is not None]
        if len(given) != 1:
            raise ParameterError(f"Likelihood: give one of gold, soft and within, not {' and '.join(given) or 'none'}")
        if not 0 <= share < np.inf:
            raise ParameterError(f"Likelihood: share should be 0 or more, not {share!r}")
        if within is not None and (len(within) != len(model) or within.n_weights != model.n_weights):
            raise ParameterError("Likelihood: within should have the items and the weights of the model")
        self.model, self.restricted, self.share = model, within, share
        self._latent = _same_scores(model, within)
        self._target = model.gold(gold) if gold is not None else model.soft(soft) if soft is not None else None

    @property
    def n_weights(self) -> int:
        return self.model.n_weights

    def __len__(self) -> int:
        return len(self.model)

    def support(self, items: Items) -> NDArray[np.int64]:
        """The weights that the items depend on."""
        return self.model.support(items)

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None) -> float:
        """The log-likelihood of the items, or of all, times the share; its gradient is added to `out`."""
        if self.restricted is None:
            return self.model.add_likelihood(weights, self._target, out, items, self.share)
        if self._latent is not None:
            chains, allowed = self._latent
            return chains.add_latent(weights, allowed, out, items, self.share)
        above = self.restricted.add_log_partition(weights, out, items, self.share)
        return above + self.model.add_log_partition(weights, out, items, -self.share)


def _same_scores(model: Model, within: Model | None) -> tuple[ChainModel, NDArray[np.bool_]] | None:
    """The chains and what is allowed, where both models score the same labels of the same words."""
    if not (isinstance(model, ChainModel) and isinstance(within, ChainModel)) or within.allowed is None:
        return None
    same = model.features is within.features and np.array_equal(model.lengths, within.lengths)
    return (model, within.allowed) if same else None


class Total:
    """Several objectives over the same weights as one: labelled and unlabelled items, two corpora.

    The items of the first come first, then those of the second, and so on.
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        if not objectives or len({objective.n_weights for objective in objectives}) > 1:
            raise ParameterError("Total: give one or more objectives over the same number of weights")
        self.objectives = list(objectives)
        self._offsets = np.concatenate([[0], np.cumsum([len(one) for one in objectives])]).astype(np.int64)

    @property
    def n_weights(self) -> int:
        return self.objectives[0].n_weights

    def __len__(self) -> int:
        return int(self._offsets[-1])

    def _split(self, items: Items) -> list[tuple[Objective, Items]]:
        which = np.searchsorted(self._offsets, items, side="right") - 1
        each = [(one, items[which == i] - self._offsets[i]) for i, one in enumerate(self.objectives)]
        return [(one, some) for one, some in each if len(some)]

    def support(self, items: Items) -> NDArray[np.int64]:
        """The weights that the items depend on."""
        return np.unique(np.concatenate([one.support(some) for one, some in self._split(items)]))

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None) -> float:
        """The value of the items, or of all; its gradient is added to `out`."""
        if items is None:
            return sum(one.add_gradient(weights, out, None) for one in self.objectives)
        return sum(one.add_gradient(weights, out, some) for one, some in self._split(items))
