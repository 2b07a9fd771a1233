r"""Conditional likelihood of log-linear models over any structure: with gold, latent or soft targets.

.. math:: p_w(y \mid x) = \exp(w \cdot f(x, y)) / Z(x), \qquad
    L(w) = \sum_i \log p_w(\text{target}_i \mid x_i), \qquad
    \nabla L = \sum_i E[f \mid x_i, \text{target}_i] - E[f \mid x_i]

A `Likelihood` is an objective; `Lbfgs`, `AdaGrad`, `Ftrl` and `Sgd` raise it, with l1 and l2 penalties of their own.
With a projection in place of a target it is that of posterior regularisation.

References
----------
Smith, PhD thesis, Johns Hopkins 2010, appendix A (equations A.13-A.22). Haghighi et al., Better Word Alignments with
Supervised ITG Models, ACL 2009, section 4 (latent targets). He, Gillenwater and Taskar, CoNLL 2013 (soft targets).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.models import LinearModel, Model, ModelObjective, Target, Wanted, pieces
from isogloss.learners.optimisers import Info, Lbfgs, Objective
from isogloss.learners.posterior import Outcome
from isogloss.learners.stochastic import AdaGrad, Ftrl, Sgd
from isogloss.structures.batch import Batch

__all__ = [
    "AdaGrad",
    "ChainModel",
    "Ftrl",
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


Project = Callable[[Items, Batch[Any]], Any]
TARGETS = ("gold", "soft", "within", "target", "project")


class Projected:
    """What a projection of the model's own posteriors is like: the target of posterior regularisation.

    Parameters
    ----------
    project : callable
        Given items and the batch of their distributions: a batch, or the outcome of `regularise` or `project` of it.
    """

    def __init__(self, project: Project) -> None:
        self.project = project

    def wanted(self, items: Items, batch: Batch[Any]) -> Wanted:
        """Marginals of the projection; Σ log Z − KL(q‖p) − R of the minibatch counts for its first item."""
        found, values = self.project(items, batch), np.zeros(len(items))
        if isinstance(found, Outcome):
            values[:1] = found.bound
            found = found.q
            marginals = np.asarray(found.marginals())
        else:
            values[:] = found.log_partition()
            marginals = found.marginals().values
        return Wanted(np.ravel(marginals), values)


class Likelihood(ModelObjective):
    r"""The conditional log-likelihood of a model's items, with one of several kinds of targets.

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
    target : Target
        Anything that says what some items should be like, given their distributions.
    project : callable
        From items and the batch of their distributions to the nearest that meets constraints, such as ``lambda items,
        batch: regularise(batch, features, AtMost(b))``: :math:`-\sum_i \min_q KL(q \| p_w) + R(E_q[f])`, posterior
        regularisation, whose gradient is :math:`E_q[f] - E[f]`. Constraints that span items span those of a minibatch.
    share : float
        What the sum is multiplied with, such as the weight α of items without gold.
    least : float
        In minibatches, parts whose posterior is this close to what it should be are left alone.
    counts : float64[n_items], optional
        What each item counts, beside `share`: :math:`\sum_i c_i \log p(y_i \mid x_i)`; not with `within`.

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
        self,
        model: Model,
        *,
        gold: Any = None,
        soft: Any = None,
        within: Model | None = None,
        target: Target | None = None,
        project: Project | None = None,
        share: float = 1.0,
        least: float = 0.0,
        counts: ArrayLike | None = None,
    ) -> None:
        kinds = dict(zip(TARGETS, (gold, soft, within, target, project), strict=True))
        given = [name for name, kind in kinds.items() if kind is not None]
        if len(given) != 1:
            raise ParameterError(
                f"Likelihood: give one of {', '.join(TARGETS[:-1])} and {TARGETS[-1]}, not "
                f"{' and '.join(given) or 'none'}"
            )
        if not 0 <= share < np.inf:
            raise ParameterError(f"Likelihood: share should be 0 or more, not {share!r}")
        if within is not None and (len(within) != len(model) or within.n_weights != model.n_weights):
            raise ParameterError("Likelihood: within should have the items and the weights of the model")
        self.model, self.restricted, self.share, self.least = model, within, share, least
        self.counts = None if counts is None else np.asarray(counts, np.float64)
        if self.counts is not None:
            fine = self.counts.shape == (len(model),) and np.isfinite(self.counts).all() and (self.counts >= 0).all()
            if not fine or within is not None:
                raise ParameterError(
                    f"Likelihood: counts should be {len(model)} numbers, one for each item, 0 or more; and no within"
                )
        self._latent = _same_scores(model, within)
        self._target: Any = target
        if gold is not None:
            self._target = model.gold(gold)
        elif soft is not None:
            self._target = model.soft(soft)
        elif project is not None:
            self._target = Projected(project)

    def gradient(self, weights: NDArray[Any], items: Items) -> tuple[float, Gradient]:
        """The log-likelihood of some items times the share, and its gradient as lists."""
        if self.restricted is None:
            share = self.share if self.counts is None else self.share * self.counts[items]
            return self.model.likelihood(weights, self._target, items, share, least=self.least)
        above, up = self.restricted.log_partition(weights, items, self.share)
        below, down = self.model.log_partition(weights, items, -self.share)
        return above + below, Gradient.joined([up, down])

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None) -> float:
        """The log-likelihood of the items, or of all, times the share; its gradient is added to `out`."""
        if self.counts is not None:
            total = 0.0
            for some in pieces(len(self), items):
                value, gradient = self.gradient(weights, some)
                gradient.add_to(out)
                total += value
            return total
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

    @property
    def dtype(self) -> DTypeLike:
        """Of weights."""
        return getattr(self.objectives[0], "dtype", np.float64)

    def support(self, items: Items) -> NDArray[np.int64] | None:
        """The weights that the items depend on."""
        each = [one.support(some) for one, some in self._split(items)]
        listed = [one for one in each if one is not None]
        return np.unique(np.concatenate(listed)) if len(listed) == len(each) else None

    def gradient(self, weights: NDArray[Any], items: Items) -> tuple[float, Gradient]:
        """The value of some items, and its gradient as lists."""
        each = [one.gradient(weights, some) for one, some in self._split(items)]
        return sum(value for value, _ in each), Gradient.joined([gradient for _, gradient in each])

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None) -> float:
        """The value of the items, or of all; its gradient is added to `out`."""
        if items is None:
            return sum(one.add_gradient(weights, out, None) for one in self.objectives)
        return sum(one.add_gradient(weights, out, some) for one, some in self._split(items))
