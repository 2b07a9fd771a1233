"""Hidden Markov models of tags, learnt from text without tags: each token says which tags it may have.

The masks are those of tokens, not of words: a dictionary gives every token of a word the same set, and other evidence
(a link to a tagged token of another language) may narrow the set of one token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import DataError, ParameterError
from isogloss.learners.em import EM
from isogloss.learners.multinomials import normalise
from isogloss.learners.optimisers import Lbfgs, WholeObjective
from isogloss.learners.posterior import Outcome, Together
from isogloss.learners.runner import run
from isogloss.progress import Progress
from isogloss.structures import FactoredLattices, LatticeParts
from isogloss.tasks.tag.emissions import LogLinearEmissions

__all__ = ["Hmm", "HmmFit", "TokenLabels", "fit_hmm"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Project = Callable[[Together, "Array | None"], "Together | Outcome[Together]"]
LOWEST = -1e5
"""Stands for the logarithm of 0 where logarithms are subtracted."""


class TokenLabels:
    """The labels that each token of a text may have.

    Parameters
    ----------
    ids : int[n_tokens]
        The word type of each token.
    offsets : int64[n_sentences + 1]
    allowed : bool[n_tokens, k]
        A token that allows nothing is taken to allow everything.

    Examples
    --------
    >>> text = TokenLabels([0, 1, 0], [0, 2, 3], [[True, False], [True, True], [False, False]])
    >>> text.labels.tolist(), text.tokens.tolist()
    ([0, 0, 1, 0, 1], [0, 1, 1, 2, 2])
    """

    def __init__(self, ids: ArrayLike, offsets: ArrayLike, allowed: ArrayLike) -> None:
        self.ids, self.offsets = np.asarray(ids, np.int64), np.ascontiguousarray(offsets, np.int64)
        mask = np.asarray(allowed, np.bool_)
        ends = self.offsets
        if ends.ndim != 1 or not len(ends) or ends[0] or (np.diff(ends) < 0).any() or ends[-1] != len(self.ids):
            raise ParameterError(f"TokenLabels: offsets should rise from 0 to {len(self.ids)}, the number of tokens")
        if mask.ndim != 2 or len(mask) != len(self.ids) or not mask.shape[1]:
            raise ParameterError(f"TokenLabels: allowed should be [{len(self.ids)}, k], not {list(mask.shape)}")
        if not mask.any(axis=1).all():
            mask = mask | ~mask.any(axis=1, keepdims=True)
        self.k = int(mask.shape[1])
        self._parts = [LatticeParts.allowed(mask, self.offsets)]
        self._parts.append(replace(self._parts[0], order=2))
        self._cells: dict[int, Integers] = {}

    def parts(self, order: int) -> LatticeParts:
        """The layout of chains over these labels."""
        return self._parts[order - 1]

    @property
    def tokens(self) -> Integers:
        """int64[n_entries]: the token of each pair of a token and a label that it may have, in order."""
        return self._parts[0].positions

    @property
    def labels(self) -> Integers:
        """int64[n_entries]: the label of each pair."""
        return self._parts[0].labels

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    @cached_property
    def types(self) -> Integers:
        """int64[n_entries]: the word type of each pair."""
        return self.ids[self.tokens]

    def cells(self, n_types: int) -> Integers:
        """int64[n_entries]: where each pair stands in a table [k, n_types]."""
        if n_types not in self._cells:
            self._cells = {n_types: self.labels * n_types + self.types}
        return self._cells[n_types]

    def spread(self, entries: Array) -> Array:
        """float64[n_tokens, k] from float64[n_entries]."""
        out = np.zeros((self.n_tokens, self.k))
        out[self.tokens, self.labels] = entries
        return out

    def emission_counts(self, posterior: Array, n_types: int) -> Array:
        """float64[k, n_types]: how often each label is expected with each type."""
        counts = np.bincount(self.cells(n_types), posterior, self.k * n_types)
        return counts.reshape(self.k, n_types).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Hmm:
    r"""A hidden Markov model of order 1 or 2,

    .. math:: p(x, y) = \prod_t p(y_t \mid y_{t-1}, y_{t-2})\, p(x_t \mid y_t)

    where label k stands for the two places before a sentence; there is no transition to an end.

    Parameters
    ----------
    transitions : float64[k + 1, k] or float64[k + 1, k + 1, k]
        Probabilities; the last axis is the label, those before it the labels before, in the order of the text.
    emissions : float64[k, n_types]
        Log probabilities.

    Examples
    --------
    >>> model = Hmm(np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]), np.log([[0.75, 0.25], [0.25, 0.75]]))
    >>> free = TokenLabels([0, 0, 1], [0, 3], np.ones((3, 2)))
    >>> model.posterior(free).round(3).tolist(), model.best(free).tolist()
    ([[0.789, 0.211], [0.785, 0.215], [0.605, 0.395]], [0, 0, 0])
    """

    transitions: Array
    emissions: Array

    @property
    def order(self) -> int:
        return self.transitions.ndim - 1

    @property
    def k(self) -> int:
        return int(self.transitions.shape[-1])

    def lattices(self, text: TokenLabels, soft: Array | None = None) -> FactoredLattices:
        """The distributions over the labels of each sentence; log Z is log p(x) of a text without further scores.

        Parameters
        ----------
        text : TokenLabels
        soft : float64[n_entries], optional
            Added to the log scores of entries: other evidence about single tokens.
        """
        nodes = self.emissions.reshape(-1)[text.cells(self.emissions.shape[1])]
        return FactoredLattices(
            text.parts(self.order), nodes if soft is None else nodes + soft, _logs(self.transitions)
        )

    def posterior(self, text: TokenLabels) -> Array:
        """float64[n_tokens, k]: p(y_t | x)."""
        return text.spread(self.lattices(text).marginals().values)

    def best(self, text: TokenLabels) -> NDArray[np.int64]:
        """int64[n_tokens]: the most probable sequence of each sentence (Viterbi)."""
        return self.lattices(text).best()


def _logs(probabilities: Array) -> Array:
    return np.log(probabilities, out=np.full(probabilities.shape, LOWEST), where=probabilities > 0)


class HmmFit(NamedTuple):
    """What was learnt, and how it went."""

    model: Hmm
    weights: Array | None
    """float64[k, n_features]: of log-linear emissions; `None` for tables."""
    normalisers: Array | None
    """float64[k]: log Σ exp(weights · features) over types, by which new types can be scored."""
    trace: Array
    """float64[n_steps]: log-likelihood and log priors at the beginning of each step (gradient: at the end), those of
    order 1 before order 2 not included."""


class _Params(NamedTuple):
    transitions: Array
    emissions: Array
    weights: Array | None


@dataclass(eq=False)
class _Counts:
    """Expected numbers of transitions and of words with labels."""

    transitions: Array
    emissions: Array

    def __iadd__(self, other: _Counts) -> _Counts:
        self.transitions, self.emissions = self.transitions + other.transitions, self.emissions + other.emissions
        return self


@dataclass(frozen=True, eq=False)
class _TagModel:
    """Hidden Markov models of one text, for `EM`: the text is one batch, whose sentences share all but their scores."""

    text: TokenLabels
    n_types: int
    emissions: LogLinearEmissions | None
    smoothing: float
    evaluations: int
    soft: Array | None

    def zero_counts(self) -> _Counts:
        return _Counts(np.zeros(()), np.zeros(()))

    def distributions(self, params: _Params, text: Any) -> FactoredLattices:
        return Hmm(params.transitions, params.emissions).lattices(self.text, self.soft)

    def expected_counts(self, text: Any, q: FactoredLattices) -> _Counts:
        return _Counts(q.counts(), self.text.emission_counts(q.marginals().values, self.n_types))

    def maximise(self, counts: _Counts) -> _Params:
        return self._maximise(counts, None, 3 * self.evaluations)

    def improve(self, params: _Params, counts: _Counts) -> _Params:
        if params.weights is None:
            return self.maximise(counts)
        return self._maximise(counts, params.weights, self.evaluations)

    def _maximise(self, counts: _Counts, weights: Array | None, evaluations: int) -> _Params:
        moves = normalise(counts.transitions, alpha=self.smoothing)
        if self.emissions is None:
            with np.errstate(divide="ignore"):
                return _Params(moves, np.log(normalise(counts.emissions)), None)
        fitted = self.emissions.fit(counts.emissions, weights, tolerance=1e-6, steps=evaluations)
        return _Params(moves, self.emissions.table(fitted), fitted)

    def log_prior(self, params: _Params) -> float:
        value = self.smoothing * float(np.log(params.transitions).sum()) if self.smoothing else 0.0
        if self.emissions is not None and params.weights is not None:
            value += self.emissions.log_prior(params.weights)
        return value


class _Marginal(WholeObjective):
    """The penalised marginal likelihood as a function of weights, for `Lbfgs`.

    Weights are those of emissions followed by log scores of transitions, which a softmax makes probabilities. The
    gradient is that of the expected complete-data likelihood at the posterior of the same weights.
    """

    def __init__(self, model: _TagModel, shape: tuple[int, ...]) -> None:
        assert model.emissions is not None
        self.model, self.shape, self.emissions = model, shape, model.emissions
        self.n_emissions = self.emissions.n_weights

    @property
    def n_weights(self) -> int:
        return self.n_emissions + int(np.prod(self.shape))

    def params(self, weights: Array) -> _Params:
        own = weights[: self.n_emissions]
        scores = weights[self.n_emissions :].reshape(self.shape)
        raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return _Params(raised / raised.sum(axis=-1, keepdims=True), self.emissions.table(own), own.copy())

    def add_gradient(self, weights: Array, out: Array, items: Integers | None = None, /) -> float:
        params, model = self.params(weights), self.model
        q = model.distributions(params, model.text)
        counts = model.expected_counts(model.text, q)
        out[: self.n_emissions] += self.emissions.gradient(weights[: self.n_emissions], counts.emissions)
        smoothed = counts.transitions + model.smoothing
        out[self.n_emissions :] += (smoothed - smoothed.sum(axis=-1, keepdims=True) * params.transitions).ravel()
        return float(q.log_partition().sum()) + model.log_prior(params)


def fit_hmm(
    ids: ArrayLike,
    offsets: ArrayLike,
    allowed: ArrayLike,
    features: Any = None,
    *,
    n_types: int | None = None,
    order: int = 2,
    iterations: int = 50,
    first_order: int = 0,
    variance: float = 10.0,
    restrict_support: bool = False,
    smoothing: float = 1e-4,
    evaluations: int = 20,
    seed: int = 0,
    method: str = "em",
    initial: ArrayLike | None = None,
    soft: ArrayLike | None = None,
    project: Project | None = None,
    progress: Progress | None = None,
) -> HmmFit:
    """Learn a hidden Markov model from text whose tokens say which labels they may have.

    Runs on the threads of `using_threads`; the result does not depend on their number.

    Parameters
    ----------
    ids : int[n_tokens]
        The word type of each token.
    offsets : int64[n_sentences + 1]
    allowed : bool[n_tokens, k]
        For a dictionary of types, ``dictionary.allowed(types)[ids]``.
    features : sparse matrix [n_types, n_features], optional
        Of word types: emissions are log-linear in them, with weights of their own for each label. Without, emissions
        are tables.
    n_types : int, optional
        The rows of `features`, or one more than the largest of `ids`, if not given.
    order : 1 or 2
    iterations : int
        E-steps; with "gradient", steps of L-BFGS.
    first_order : int
        How many of the iterations, at order 2, are those of a model of order 1, as which it begins.
    variance : float
        Of the Gaussian prior on weights of features.
    restrict_support : bool
        Emissions of a label are normalised over the types that allow it at one token at least, not over all.
    smoothing : float
        Added to all counts of transitions.
    evaluations : int
        Of the emissions' likelihood in each M-step, at most.
    seed : int
        Of the random start.
    method : "em" or "gradient"
        "gradient": L-BFGS on the marginal likelihood, after a first step of EM; for log-linear emissions.
    initial : float64[k, n_types], optional
        What each type's tokens are taken to be in the first step, one by one, in place of random emissions: p(y|x), up
        to a factor of the type.
    soft : float64[n_tokens, k], optional
        Added to the log scores of labels at tokens: other evidence, such as log p(evidence | label).
    project : callable, optional
        Posterior regularisation: from `Together` (of one `FactoredLattices` of all sentences) and where the last search
        ended to a `Together` or an `Outcome`; see `project_corpus` of `isogloss.learners.em.step`.
    progress : Progress, optional

    References
    ----------
    Li, Graça and Taskar, Wiki-ly Supervised Part-of-Speech Tagging, EMNLP 2012. Berg-Kirkpatrick et al., Painless
    Unsupervised Learning with Features, NAACL 2010 ("gradient").

    Examples
    --------
    >>> from scipy.sparse import identity
    >>> mask = np.array([[1, 0], [0, 1], [1, 1]])               # types 0 and 1 are known, 2 is not
    >>> ids = [0, 1, 2, 1, 0, 1, 0, 2]                          # it stands where 0 and 1 stand
    >>> fit = fit_hmm(ids, [0, 2, 4, 6, 8], mask[ids], identity(3), order=1)
    >>> fit.model.posterior(TokenLabels([2, 1], [0, 2], mask[[2, 1]])).round().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if method not in ("em", "gradient") or (method == "gradient" and features is None):
        raise ParameterError("fit_hmm: method should be 'em' or, with features, 'gradient'; tables are learnt by 'em'")
    if not (order in (1, 2) and smoothing >= 0 and variance > 0 and iterations > 0 <= first_order and evaluations > 1):
        raise ParameterError(
            "fit_hmm: order 1 or 2, smoothing and first_order >= 0, variance > 0, iterations >= 1 and evaluations >= 2 "
            "are needed"
        )
    if project is not None and method == "gradient":
        raise ParameterError("fit_hmm: a projection is for method 'em'")
    text = TokenLabels(ids, offsets, allowed)
    n_types = _n_types(text, n_types, features)
    support = _support(text, n_types)
    emitting = None
    if features is not None:
        emitting = LogLinearEmissions(features, text.k, l2=1 / variance, allowed=support if restrict_support else None)
    evidence = None if soft is None else np.asarray(soft, np.float64)[text.tokens, text.labels]
    model = _TagModel(text, n_types, emitting, smoothing, evaluations, evidence)
    learner: EM[Any, Any, Any] = EM(model, [text], project_corpus=project)  # type: ignore[arg-type,list-item]
    first_order = min(first_order, iterations - 1) if order == 2 else 0
    begin = None if initial is None else np.asarray(initial, np.float64)
    params = _first_params(text, support, 1 if first_order else order, seed, begin)
    if emitting is not None or begin is not None:  # what they begin with is no model of theirs: one step leads there
        params = learner.step(learner.init(params))[0].params
    if first_order:
        params = _repeated(learner, params, first_order, progress)[0]
        params = params._replace(transitions=np.repeat(params.transitions[None], text.k + 1, axis=0))
    if method == "gradient":
        params, trace = _climbed(model, params, iterations - first_order, progress)
    else:
        params, trace = _repeated(learner, params, iterations - first_order, progress)
    return _fitted(model, params, trace)


def _n_types(text: TokenLabels, given: int | None, features: Any) -> int:
    """Word types of a text that has words, and of features that fit it."""
    if not text.n_tokens:
        raise DataError("fit_hmm: the text has no words, so there is nothing to learn from")
    if features is None:
        return int(text.ids.max()) + 1 if given is None else given
    if given not in (None, features.shape[0]):
        raise ParameterError(f"fit_hmm: features of {features.shape[0]} types for a text of {given}")
    return int(features.shape[0])


def _repeated(
    learner: EM[Any, Any, Any], params: _Params, iterations: int, progress: Progress | None
) -> tuple[_Params, Array]:
    result = run(learner, learner.init(params), iterations=iterations, progress=progress, name="Learning tags")
    return result.state.params, result.trace


def _climbed(model: _TagModel, params: _Params, iterations: int, progress: Progress | None) -> tuple[_Params, Array]:
    target = _Marginal(model, params.transitions.shape)
    learner = Lbfgs(target)
    assert params.weights is not None
    begin = np.concatenate([params.weights, _logs(params.transitions).ravel()])
    found = run(
        learner, learner.init(begin), iterations=iterations, tolerance=1e-9, progress=progress, name="Learning tags"
    )
    return target.params(found.state.weights), found.trace


def _fitted(model: _TagModel, params: _Params, trace: Array) -> HmmFit:
    learnt, emitting = Hmm(params.transitions, params.emissions), model.emissions
    if emitting is None or params.weights is None:
        return HmmFit(learnt, None, None, trace)
    return HmmFit(learnt, params.weights.reshape(learnt.k, -1), emitting.normalisers(params.weights), trace)


def _support(text: TokenLabels, n_types: int) -> NDArray[np.bool_]:
    """bool[k, n_types]: types that some token allows a label for; all of them, for a label that has none."""
    if int(text.ids.min(initial=0)) < 0 or int(text.ids.max(initial=-1)) >= n_types:
        raise ParameterError(f"fit_hmm: ids should be numbers of types, from 0 to {n_types - 1}")
    found = np.zeros((text.k, n_types), np.bool_)
    found[text.labels, text.types] = True
    return found | ~found.any(axis=1, keepdims=True)


def _first_params(
    text: TokenLabels, support: NDArray[np.bool_], order: int, seed: int, initial: Array | None
) -> _Params:
    """Random emissions of the types that allow a label, and transitions that are all but uniform."""
    rng, k = np.random.default_rng(seed), text.k
    noise, wobble = rng.uniform(0.01, 1.0, support.shape), rng.random((k + 1,) * order + (k,))
    table, moves = normalise(noise * support), normalise(1.0 + 0.01 * wobble)
    if initial is not None:
        if initial.shape != support.shape or not (initial >= 0).all():
            raise ParameterError(f"fit_hmm: initial should be {list(support.shape)} numbers, 0 or more")
        table = initial * (1.0 + 0.01 * noise)
    with np.errstate(divide="ignore"):
        return _Params(moves, np.log(table), None)
