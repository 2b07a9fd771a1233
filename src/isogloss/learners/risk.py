r"""Minimum risk over any structure: the expected loss of a log-linear model, and its gradient.

.. math:: R(w) = \sum_i E_{p_w(y \mid x_i)}[\ell_i(y)], \qquad
    \frac{\partial R}{\partial\, scores} = \mathrm{Cov}(parts, \ell_i) = \nabla^2 \log Z \cdot cost_i

for losses that are sums over parts, ℓ(y) = constant + Σ parts(y) · cost, such as the number of wrong heads. `Risk`
is an objective like `Likelihood` for `Lbfgs`, `AdaGrad`, `Ftrl` and `Sgd`. `mbr` decodes for the same losses.

References
----------
Smith, PhD thesis, Johns Hopkins 2010, equations 3.9-3.18, A.27 and A.28. Smith and Eisner, Minimum Risk Annealing for
Training Log-Linear Models, COLING-ACL 2006. Li and Eisner, First- and Second-Order Expectation Semirings, EMNLP 2009.
Domke, Implicit Differentiation by Perturbation, NIPS 2010.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.learners.chain_model import ChainModel
from isogloss.learners.margin import Cost
from isogloss.learners.models import Model, ModelObjective, Target, pieces
from isogloss.learners.runner import Result, run
from isogloss.progress import Progress
from isogloss.structures import (
    AlignmentChain,
    Chain,
    Chains,
    Choices,
    FactoredChain,
    FactorGraph,
    FactorGraphs,
    Itg,
    LoopyTrees,
    Matching,
    ProjectiveTree,
    ProjectiveTrees,
    SpanningTrees,
    Stack,
)
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Listed, run_sentences
from isogloss.structures.matching.sums import TOLERANCE

__all__ = ["Costs", "Risk", "anneal", "hessian_vector", "mbr", "tempered"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]


# --- the Hessian of log Z


def hessian_vector(dist: Any, vector: Any) -> Any:
    r"""How the marginals of any structure move when its scores move along `vector`: ∇² log Z · vector.

    .. math:: \frac{d}{d\varepsilon} \mu(scores + \varepsilon\, vector) = \mathrm{Cov}(parts,\ vector \cdot parts)

    Parameters
    ----------
    dist : structure or batch
    vector : float64, shaped like the scores; for a batch a Stack, or one array for each sentence
        Finite; what it holds for forbidden parts does not matter.

    Returns
    -------
    float64, shaped like the scores, or a Stack

    Notes
    -----
    ==================================================== ========================================================
    structures with a method `hessian_vector`            that (trees of first order, `Choice`; exact)
    `Chain`, `FactoredChain`, `AlignmentChain`           conditional means of the sum, forwards and backwards, from
                                                         the posteriors of steps: exact, O(n k²) or O(n k³)
    all others (`Itg`, `Matching`, `FactorGraph`,        differences of marginals at scores ± h · vector and
    second-order trees, what is in `Flat`)               ± 2h · vector, weighted for an error of order h⁴
    ==================================================== ========================================================

    With δ the error of a marginal and r = max |vector| times the expected number of parts, which is about the most that
    the sum can be, differences take h = δ^(1/5) / r. That balances truncation and rounding; the result is off by some
    δ^(4/5) r, which is 10⁻¹² r for exact sums and scores of moderate size (δ is the unit in the last place times the
    largest score), and 10⁻⁶ r for belief propagation that stops at a tolerance of 10⁻⁸. Beliefs of graphs with cycles
    have the symmetric Hessian that a gradient needs only once messages have settled (Domke 2010); after a few rounds
    what comes back is an approximation.

    Examples
    --------
    >>> coin = Chain(np.zeros((1, 2, 2)))
    >>> hessian_vector(coin, [[[1.0, 0.0], [0.0, 0.0]]]).tolist()  # variance and covariance of a fair coin
    [[[0.25, -0.25], [0.0, 0.0]]]
    """
    if isinstance(dist, Batch):
        return _many(dist, vector)
    given = np.asarray(vector, np.float64)
    if given.shape != dist.scores.shape:
        raise ParameterError(f"{dist!r}: the vector should be {list(dist.scores.shape)}, not {list(given.shape)}")
    given = _finite(dist, given, dist.scores)
    if _has_own(dist):
        return dist.hessian_vector(given)
    if isinstance(dist, Chain):
        return _chains(Chain.batch([dist.scores]), dist.marginals().reshape(-1), given.reshape(-1))[0]
    if isinstance(dist, FactoredChain):
        steps = np.broadcast_to(given.reshape(dist.n, *[1] * dist.order, dist.k), dist.chain.scores.shape)
        return hessian_vector(dist.chain, steps).sum(axis=tuple(range(1, dist.order + 1)))
    if isinstance(dist, AlignmentChain):
        steps = np.zeros(dist.chain.scores.shape)
        steps[:, :, : dist.m] = given[:, None, :]
        return hessian_vector(dist.chain, steps).sum(axis=1)[:, : dist.m]
    _refuse_blocks(dist)
    return _differences(
        lambda scores: dist.with_scores(scores).marginals(), dist.scores, given, _step(dist, given, dist.marginals())
    )


def _finite(dist: Any, vector: Array, scores: Array) -> Array:
    """The vector, 0 for forbidden parts."""
    out = np.where(scores == -np.inf, 0.0, vector)
    if not np.isfinite(out).all():
        raise ParameterError(f"{dist!r}: the vector should be finite for all parts that are allowed")
    return out


def _has_own(dist: Any) -> bool:
    """Whether the structure has a method `hessian_vector` that works: trees have it for first order."""
    return hasattr(dist, "hessian_vector") and not _second_order(dist)


def _second_order(dist: Any) -> bool:
    trees = isinstance(dist, ProjectiveTree | ProjectiveTrees)
    return trees and not (dist.siblings is None and dist.grandparents is None)


def _refuse_blocks(dist: Any) -> None:
    if isinstance(dist, Itg) and dist.blocks is not None:
        raise ParameterError(
            f"{dist!r}: with blocks, marginals of links are not the derivatives by their scores. Take Flat(dist), in "
            "which blocks are parts"
        )


def _many(batch: Any, vectors: Stack | Iterable[ArrayLike]) -> Stack:
    stack: Stack = batch.scores
    arrays = [np.asarray(vector, np.float64) for vector in vectors]
    if [array.shape for array in arrays] != [tuple(shape) for shape in stack.shapes.tolist()]:
        raise ParameterError(f"{batch!r}: vectors should have the shapes of the scores, one for each sentence")
    flat = _finite(batch, np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)]), stack.values)
    given = stack.like(flat)
    if _has_own(batch):
        return batch.hessian_vector(given)  # type: ignore[no-any-return]
    if isinstance(batch, Chains):
        return _chains(batch, batch.marginals().values, flat)
    ones = [batch[s] for s in range(len(batch))]
    if ones and isinstance(ones[0], FactoredChain):
        each = [hessian_vector(one, vector).ravel() for one, vector in zip(ones, given, strict=True)]
        return stack.like(np.concatenate(each))
    for one in ones:
        _refuse_blocks(one)
    steps = [_step(*three) for three in zip(ones, given, batch.marginals(), strict=True)]
    every = np.repeat(np.array(steps, np.float64), np.diff(stack.offsets))
    return stack.like(
        _differences(lambda scores: _rescored(batch, scores).marginals().values, stack.values, flat, every)
    )


def _rescored(batch: Any, scores: Array) -> Any:
    return batch.with_scores(batch.scores.like(kept(scores)))


def _chains(batch: Chains, marginals: Array, values: Array) -> Stack:
    from isogloss.learners._numba.chain_moments import chain_covariances

    stack, k = batch.scores, batch.scores.shapes[:, 1]
    sizes = np.stack([batch.lengths, k, k if batch.order == 2 else np.ones_like(k)], axis=1)
    out = np.zeros(len(values))
    # One kind of array each, so that the kernel is compiled once.
    args = (kept(marginals.view()), kept(values.view()), stack.offsets, sizes, out)
    if len(batch) == 1:
        chain_covariances(0, 1, *args)
    else:
        run_sentences(chain_covariances, len(batch), *args)
    return stack.like(out)


def _step(dist: Any, vector: Array, marginals: Array) -> float:
    """h of `hessian_vector`; 0 where the vector is."""
    reach = float(np.abs(vector).max(initial=0.0)) * max(1.0, float(marginals.sum()))
    largest = float(np.abs(dist.scores, where=dist.scores > -np.inf, out=np.zeros(dist.scores.shape)).max(initial=1.0))
    error = float(np.finfo(np.float64).eps) * largest
    if isinstance(dist, FactorGraph | Matching) and not dist.exact:
        error = max(error, TOLERANCE if isinstance(dist, Matching) else dist.options.tolerance)
    return error**0.2 / reach if reach else 0.0


def _differences(marginals: Callable[[Array], Array], scores: Array, vector: Array, step: Any) -> Array:
    """d marginals / dε along `vector`, from four points; `step` is one number or one for each part."""
    move = step * vector
    if not move.any():
        return np.zeros(scores.shape)
    near = marginals(scores + move) - marginals(scores - move)
    far = marginals(scores + 2 * move) - marginals(scores - 2 * move)
    return np.asarray((8 * near - far) / (12 * np.where(step, step, 1.0)))


# --- temperature and decoding


def tempered(dist: Any, temperature: float) -> Any:
    r"""The distribution :math:`p^{1/T}`, normalised: flat for T → ∞, the best structure alone for T → 0.

    All kinds of scores are divided by T, also those (nulls, transitions, siblings) that are not in `dist.scores`. What
    comes back for a batch is a batch, or a list where its sentences have scores of other kinds.

    Examples
    --------
    >>> tempered(Chain(np.log([[[0.8, 0.2], [1, 1]]])), 0.5).marginals()[0, 0].round(3).tolist()
    [0.941, 0.059]
    """
    _check_temperature("tempered", temperature)
    if temperature == 1:
        return dist
    if isinstance(dist, AlignmentChain):
        raise ParameterError(f"{dist!r}: jumps and nulls have no temperature here; take tempered(dist.chain, …)")
    if isinstance(dist, Batch):
        plain = isinstance(dist, Chains | Choices | SpanningTrees | ProjectiveTrees | FactorGraphs | LoopyTrees)
        if plain and not _second_order(dist):
            return _rescored(dist, dist.scores.values / temperature)
        return [tempered(dist[s], temperature) for s in range(len(dist))]
    if hasattr(dist, "with_part_scores"):
        return dist.with_part_scores(*(scores / temperature for scores in dist.part_scores()))
    return dist.with_scores(dist.scores / temperature)


def _check_temperature(place: str, temperature: float) -> None:
    if not 0 < temperature < np.inf:
        raise ParameterError(f"{place}: temperature should be positive, not {temperature!r}")


def mbr(dist: Any, *, threshold: float = 0.0) -> Any:
    r"""The structure of least expected loss: of all that are allowed, the one whose parts have the most posterior.

    .. math:: \hat y = \arg\max_y \sum_{part \in y} \big(p(part \mid x) - threshold\big)

    Minimum Bayes risk needs no sum over pairs of structures when the loss is a sum over parts: the expected loss of
    deciding for y is then linear in the parts of y, with posteriors as coefficients. Where all structures have the same
    number of parts (trees: links; chains: steps, or labels with `FactoredChain`), threshold 0 gives the most right
    parts in expectation. Where they have not (`Itg`, `Matching`, `AlignmentChain`: links), every missed part costing m
    and every spurious part s, the threshold is s / (m + s): 1/2 for Hamming loss; 0 links as much as it can.

    Parameters
    ----------
    dist : structure or batch
        Its parts are those of `marginals`: links alone for an `Itg`, every kind of parts for ``Flat(Itg(…))``. A part
        that `dist` forbids is not chosen; other kinds of scores (nulls, transitions, siblings) forbid as they did, and
        count for nothing else.

    Returns
    -------
    a structure, as `argmax` gives it; one for each sentence of a batch

    References
    ----------
    Smith 2010, equations 3.16-3.18 and A.28; Goodman, Parsing Algorithms and Metrics, ACL 1996.

    Examples
    --------
    >>> from isogloss.structures import Matching
    >>> likely = Matching(np.log([[3.0, 0.5], [0.5, 0.1]]))
    >>> sorted(mbr(likely)), sorted(mbr(likely, threshold=0.5))
    ([(0, 0), (1, 1)], [(0, 0)])
    """
    if isinstance(dist, Batch):
        if isinstance(dist, Chains | SpanningTrees | ProjectiveTrees) and not _second_order(dist):
            values = _worth(dist.scores.values, dist.marginals().values, threshold)
            return _rescored(dist, values).argmax()
        return [mbr(dist[s], threshold=threshold) for s in range(len(dist))]
    worth = _worth(dist.scores, dist.marginals(), threshold)
    if isinstance(dist, Itg):
        bare = dist.with_part_scores(*(_worth(scores) for scores in dist.part_scores()))
        return bare.adding(np.where(dist.scores == -np.inf, 0.0, dist.marginals() - threshold)).argmax()
    if isinstance(dist, AlignmentChain):
        null, initial, jump, final = map(_worth, (dist.null_emission, dist.initial, dist.jump, dist.final))
        even = dist.null_weight if dist.null_weight in (0.0, 1.0) else 0.5
        return AlignmentChain(worth, null, initial, jump, even, final).argmax()
    if hasattr(dist, "with_part_scores"):
        return dist.with_part_scores(worth, *(_worth(scores) for scores in dist.part_scores()[1:])).argmax()
    return dist.with_scores(worth).argmax()


def _worth(scores: Array, posteriors: ArrayLike = 0.0, threshold: float = 0.0) -> Array:
    """Posteriors less the threshold; −∞ for what is forbidden."""
    return np.where(scores == -np.inf, -np.inf, np.asarray(posteriors, np.float64) - threshold)


# --- training


class Risk(ModelObjective):
    r"""Minus the expected loss of a model's items, on request mixed with their likelihood: what optimisers raise.

    .. math:: \sum_i\; mix \cdot \log p_w(y_i \mid x_i)\; -\; (1 - mix) \cdot E_{p_w^{1/T}(y \mid x_i)}[\ell_i(y)]

    Parameters
    ----------
    model : Model
        Over any structures, see `hessian_vector`.
    costs : sequence of Cost, or Costs
        The loss of each item, such as ``hamming(dist.parts(gold), missed=0)``: 1 for each part that is wrong; or what
        says it for a few items at a time.
    temperature : float
        T: below 1 the risk comes near to the loss of the best structures, above 1 it gets smoother.
    gold : sequence of structures, or Target, optional
        What is right, one for each item; for `mix`. The likelihood is that of temperature 1.
    mix : float
        The share of the likelihood, 0 to 1.
    share : float
        What all is multiplied with, as for `Likelihood`.
    least : float
        In minibatches, derivatives by scores of parts up to this size are left out.

    Notes
    -----
    The gradient by the scores is Cov(parts, loss) / T. Not convex: start from weights that have something to say, such
    as those of highest likelihood (``learner.init(weights)``), and see `anneal`. Unlike minus the log-likelihood, the
    risk of an item is bounded: hopeless items do not weigh much.

    Examples
    --------
    >>> from isogloss.learners.margin import hamming
    >>> from isogloss.learners.models import LinearModel
    >>> from isogloss.learners.optimisers import Lbfgs
    >>> from isogloss.features.sparse import Sparse
    >>> coin = LinearModel([Chain(np.zeros((1, 2, 2)))] * 3, Sparse.of([[0], [1], [], []] * 3, 2))
    >>> tosses = [coin.structures[s].parts([side]) for s, side in enumerate((0, 0, 1))]
    >>> risk = Risk(coin, [hamming(toss, missed=0) for toss in tosses])
    >>> round(risk.risk([0.0, 0.0]), 3), round(risk.risk([9.0, 0.0]), 3)  # likelihood would say 2 to 1
    (1.5, 1.0)
    """

    def __init__(
        self,
        model: Model,
        costs: Sequence[Cost] | Costs,
        *,
        temperature: float = 1.0,
        gold: Sequence[Any] | Target | None = None,
        mix: float = 0.0,
        share: float = 1.0,
        least: float = 0.0,
    ) -> None:
        _check_temperature("Risk", temperature)
        if not isinstance(model, Model):
            raise ParameterError(f"Risk: a Model is needed, such as LinearModel, not {model!r}")
        if isinstance(model, ChainModel):
            raise ParameterError("Risk: costs are of parts, and of ChainModel only labels are; take a LinearModel")
        if not 0 <= mix <= 1 or not 0 <= share < np.inf:
            raise ParameterError(f"Risk: mix should be from 0 to 1 and share 0 or more, not {mix!r}, {share!r}")
        if mix > 0 and gold is None:
            raise ParameterError("Risk: mix needs gold, the right structure of each item")
        self.model, self.temperature, self.mix, self.share, self.least = model, temperature, mix, share, least
        self.costs: Costs = costs if isinstance(costs, Costs) else _PartCosts(model, costs)
        self._target: Any = gold if gold is None or isinstance(gold, Target) else model.gold(gold)

    def __repr__(self) -> str:
        return f"Risk({self.model!r}, temperature={self.temperature:g}, mix={self.mix:g})"

    def at(self, temperature: float) -> Risk:
        """The same at another temperature."""
        _check_temperature("Risk.at", temperature)
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, temperature=temperature)
        return other

    def risk(self, weights: ArrayLike, items: Items | None = None) -> float:
        """Σ E[ℓ] of the items, or of all, at the temperature; neither mixed nor multiplied."""
        array = np.asarray(weights, np.float64)
        return sum(self._lost(some, self._at(array, some)) for some in pieces(len(self), items))

    def gradient(self, weights: NDArray[Any], items: Items) -> tuple[float, Gradient]:
        """Minus the risk of some items, with likelihood as `mix` says, and its gradient as lists."""
        value, found, much = 0.0, [], self.share * (1 - self.mix)
        if self._target is not None and self.mix:
            share = self.share * self.mix
            value, gradient = self.model.likelihood(weights, self._target, items, share, least=self.least)
            found.append(gradient)
        if much or not found:
            batch = self._at(weights, items)
            costs, _ = self.costs.costs(items, batch)
            moved = hessian_vector(batch, batch.scores.like(costs)).values
            value -= much * self._lost(items, batch)
            by_parts = -much / self.temperature * moved
            found.append(self.model.gradient(items, batch, by_parts, least=self.least))
        return value, found[0] if len(found) == 1 else Gradient.joined(found)

    def add_gradient(self, weights: Array, out: Array, items: Items | None = None) -> float:
        """Minus the risk of the items, or of all, with likelihood as `mix` says; its gradient is added to `out`."""
        total = 0.0
        for some in pieces(len(self), items):
            value, gradient = self.gradient(weights, some)
            gradient.add_to(out)
            total += value
        return total

    def _at(self, weights: NDArray[Any], items: Items) -> Batch[Any]:
        """The distributions of some items, at the temperature."""
        found = tempered(self.model.batch(weights, items), self.temperature)
        return found if isinstance(found, Batch) else Listed(found)

    def _lost(self, items: Items, batch: Batch[Any]) -> float:
        """Σ E[ℓ]."""
        costs, constants = self.costs.costs(items, batch)
        return float(constants.sum()) + float((costs * batch.marginals().values).sum())


@runtime_checkable
class Costs(Protocol):
    """Losses of items that are linear in the parts, for a few items at a time."""

    def costs(self, items: Items, batch: Batch[Any], /) -> tuple[Array, Array]:
        """What each part of `batch` costs, float64[n_parts], and what each item costs in any case."""
        ...


class _PartCosts:
    """One `Cost` for each item."""

    def __init__(self, model: Model, costs: Sequence[Cost]) -> None:
        if len(costs) != len(model):
            raise ParameterError(f"Risk: {len(costs)} costs for {len(model)} items")
        every = list(costs)
        for some in pieces(len(model), None):
            scores = model.batch(np.zeros(model.n_weights, model.dtype), some).scores
            for k, s in enumerate(some.tolist()):
                if np.shape(every[s].parts) != scores[k].shape or not np.isfinite(every[s].parts).all():
                    raise ParameterError(f"Risk: the cost of item {s} should be finite and {list(scores[k].shape)}")
        self._constants = np.array([cost.constant for cost in every], np.float64)
        self._parts = [np.ravel(cost.parts).astype(np.float64, copy=False) for cost in every]

    def costs(self, items: Items, batch: Batch[Any]) -> tuple[Array, Array]:
        """Those of some items, one after the other."""
        each = (self._parts[s] for s in items.tolist())
        return np.concatenate([np.zeros(0), *each]), self._constants[items]


def anneal(
    risk: Risk,
    learner: Callable[[Risk], Any],
    weights: ArrayLike,
    temperatures: Sequence[float],
    *,
    iterations: int,
    tolerance: float | None = None,
    progress: Progress | None = None,
) -> list[Result[Any]]:
    """Train at one temperature after the other, each from where the last one ended.

    Parameters
    ----------
    risk : Risk
    learner : callable
        Objective to learner, such as ``lambda risk: Lbfgs(risk, l2=0.1)``.
    weights : float64[n_weights]
        Where to begin: as a rule the weights of highest likelihood.
    temperatures : sequence of float
        Falling as a rule, such as (2, 1, 0.5): smooth first, then near to the loss of the best structures.
    iterations, tolerance, progress
        Of each stage, as for `runner.run`.

    Returns
    -------
    list of Result, one for each temperature

    References
    ----------
    Smith and Eisner 2006, section 3.2 (γ is 1 / T). We leave the scale of the weights to the learner's l2.
    """
    found: list[Result[Any]] = []
    start = np.array(weights, np.float64)
    for temperature in temperatures:
        made = learner(risk.at(temperature))
        options: dict[str, Any] = {"iterations": iterations, "tolerance": tolerance, "progress": progress}
        found.append(run(made, made.init(start), name=f"Risk, temperature {temperature:g}", **options))
        start = found[-1].state.weights
    return found
