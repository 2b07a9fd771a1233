"""Hidden Markov models of tags, learnt from text without tags: each token says which tags it may have.

The masks are those of tokens, not of words: a dictionary gives every token of a word the same set, and other evidence
(a link to a tagged token of another language) may narrow the set of one token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.engine.threads import run_blocks
from isogloss.errors import DataError, ParameterError
from isogloss.learners.multinomials import normalise
from isogloss.learners.optimisers import Lbfgs, WholeObjective
from isogloss.learners.posterior import Outcome, Together
from isogloss.learners.runner import run
from isogloss.progress import Progress
from isogloss.structures.factored_chain import FactoredChains
from isogloss.tasks.tag.emissions import LogLinearEmissions

__all__ = ["Expected", "Hmm", "HmmFit", "Lattice", "fit_hmm"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Project = Callable[[Together, "Array | None"], "Together | Outcome[Together]"]
SENTENCES_PER_BLOCK = 64
BLOCKS = 64
LOWEST = -1e5
"""Stands for the logarithm of 0 where logarithms are subtracted."""


class Lattice:
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
    >>> lattice = Lattice([0, 1, 0], [0, 2, 3], [[True, False], [True, True], [False, False]])
    >>> lattice.labels.tolist(), lattice.tokens.tolist()
    ([0, 0, 1, 0, 1], [0, 1, 1, 2, 2])
    """

    def __init__(self, ids: ArrayLike, offsets: ArrayLike, allowed: ArrayLike) -> None:
        self.ids, self.offsets = np.asarray(ids, np.int64), np.ascontiguousarray(offsets, np.int64)
        mask = np.asarray(allowed, np.bool_)
        ends = self.offsets
        if ends.ndim != 1 or not len(ends) or ends[0] or (np.diff(ends) < 0).any() or ends[-1] != len(self.ids):
            raise ParameterError(f"Lattice: offsets should rise from 0 to {len(self.ids)}, the number of tokens")
        if mask.ndim != 2 or len(mask) != len(self.ids) or not mask.shape[1]:
            raise ParameterError(f"Lattice: allowed should be [{len(self.ids)}, k], not {list(mask.shape)}")
        if not mask.any(axis=1).all():
            mask = mask | ~mask.any(axis=1, keepdims=True)
        self.k = int(mask.shape[1])
        self.tokens, self.labels = np.nonzero(mask)
        """int64[n_entries]: each pair of a token and a label that it may have, in order."""
        self.starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
        """int64[n_tokens + 1]: where the entries of each token begin."""

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Integers:
        """int64[n_sentences]."""
        return np.diff(self.offsets)

    def spread(self, entries: Array, fill: float = 0.0) -> Array:
        """float64[n_tokens, k] from float64[n_entries]."""
        out = np.full((self.n_tokens, self.k), fill)
        out[self.tokens, self.labels] = entries
        return out

    def emission_counts(self, posterior: Array, n_types: int) -> Array:
        """float64[k, n_types]: how often each label is expected with each type."""
        cells = self.labels * n_types + self.ids[self.tokens]
        return np.bincount(cells, posterior, self.k * n_types).reshape(self.k, n_types).astype(np.float64, copy=False)

    def part(self, sentences: Integers) -> Lattice:
        """Some of the sentences."""
        tokens = np.concatenate([np.arange(self.offsets[s], self.offsets[s + 1]) for s in sentences.tolist()])
        offsets = np.concatenate([[0], np.cumsum(self.lengths[sentences])])
        mask = np.zeros((self.n_tokens, self.k), np.bool_)
        mask[self.tokens, self.labels] = True
        return Lattice(self.ids[tokens.astype(np.int64)], offsets, mask[tokens.astype(np.int64)])


class Expected(NamedTuple):
    """Of an E-step."""

    values: Array
    """float64[n_sentences]: log of the sum over label sequences; log p(x) for a text without further scores."""
    transitions: Array
    """float64[k + 1, …, k]: expected numbers, in the form of `Hmm.transitions`."""
    posterior: Array
    """float64[n_entries]."""


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
    >>> free = Lattice([0, 0, 1], [0, 3], np.ones((3, 2)))
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

    def nodes(self, lattice: Lattice) -> Array:
        """float64[n_entries]: log p(x|y) of each entry of a lattice."""
        return np.asarray(self.emissions[lattice.labels, lattice.ids[lattice.tokens]])

    def expect(self, lattice: Lattice, soft: Array | None = None) -> Expected:
        """The E-step, on the threads of `using_threads`.

        Parameters
        ----------
        lattice : Lattice
        soft : float64[n_entries], optional
            Added to the log scores of entries: other evidence about single tokens.
        """
        from isogloss.tasks.tag._numba import lattice as kernels

        nodes = self.nodes(lattice) if soft is None else self.nodes(lattice) + soft
        shifts = np.maximum.reduceat(nodes, lattice.starts[:-1]) if lattice.n_tokens else np.zeros(0)
        shifts = np.where(np.isfinite(shifts), shifts, 0.0)
        weights = np.exp(nodes - shifts[lattice.tokens])
        n = len(lattice.offsets) - 1
        blocks = max(1, min(BLOCKS, n // SENTENCES_PER_BLOCK))
        posterior, values = np.zeros(len(weights)), np.zeros(n)
        counts = np.zeros((blocks, self.transitions.size))
        kernel: Any = kernels.expected_1 if self.order == 1 else kernels.expected_2
        given = (lattice.offsets, lattice.starts, lattice.labels, weights, self.k, self.transitions.ravel())
        run_blocks(kernel, blocks, *given, posterior, counts, values)
        total = counts.sum(axis=0).reshape(self.transitions.shape)
        lost = np.flatnonzero(values == -np.inf)
        values += np.add.reduceat(np.append(shifts, 0.0), lattice.offsets[:-1]) * (lattice.lengths > 0) if n else 0.0
        if len(lost):
            self._in_logs(lattice, soft, lost, values, total, posterior)
        return Expected(values, total, posterior)

    def _in_logs(
        self, lattice: Lattice, soft: Array | None, lost: Integers, values: Array, total: Array, posterior: Array
    ) -> None:
        """Sentences whose sums vanish in floating point: the slow way, in logarithms."""
        entries = np.concatenate(
            [np.arange(lattice.starts[lattice.offsets[s]], lattice.starts[lattice.offsets[s + 1]]) for s in lost]
        )
        part = lattice.part(lost)
        chains = self.chains(part, None if soft is None else soft[entries])
        values[lost] = chains.log_partition()
        total += transition_counts(chains)
        posterior[entries] = chains.marginals().values.reshape(-1, self.k)[part.tokens, part.labels]

    def chains(self, lattice: Lattice, soft: Array | None = None) -> FactoredChains:
        """The same distributions as structures, for learners; −∞ forbids."""
        nodes = lattice.spread(self.nodes(lattice) if soft is None else self.nodes(lattice) + soft, -np.inf)
        logs, k = _logs(self.transitions), self.k
        if self.order == 1:
            return FactoredChains.packed(nodes, lattice.lengths, logs[:k], logs[k])
        # Pairs are added at every place from the second on, where transitions are from the third on.
        return FactoredChains.packed(
            nodes, lattice.lengths, logs[:k, :k] - logs[k, :k], logs[k, k], pairs=logs[k, :k]
        )  # fmt: skip

    def posterior(self, lattice: Lattice) -> Array:
        """float64[n_tokens, k]: p(y_t | x)."""
        return lattice.spread(self.expect(lattice).posterior)

    def best(self, lattice: Lattice) -> NDArray[np.int64]:
        """int64[n_tokens]: the most probable sequence of each sentence (Viterbi)."""
        return np.concatenate([np.zeros(0, np.int64), *self.chains(lattice).argmax()])


def transition_counts(chains: FactoredChains) -> Array:
    """Expected transitions of chains in the form of `Hmm.transitions`."""
    k, counts = chains.k, chains.counts()
    out = np.zeros((k + 1,) * chains.order + (k,))
    if chains.order == 1:
        out[:k], out[k] = counts.transitions, counts.start
        return out
    out[:k, :k], out[k, k] = counts.transitions, counts.start
    out[k, :k] = np.maximum(counts.pairs - counts.transitions.sum(axis=0), 0.0)
    return out


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


class _State(NamedTuple):
    params: _Params
    iteration: int = 0
    start: Array | None = None


class _Info(NamedTuple):
    objective: float
    violation: float = 0.0


class _Em:
    """Steps of EM, for `runner.run`."""

    def __init__(
        self,
        lattice: Lattice,
        n_types: int,
        emissions: LogLinearEmissions | None,
        smoothing: float,
        evaluations: int,
        soft: Array | None,
        project: Project | None,
    ) -> None:
        self.lattice, self.n_types, self.emissions = lattice, n_types, emissions
        self.smoothing, self.evaluations, self.soft, self.project = smoothing, evaluations, soft, project

    def expect(self, params: _Params, start: Array | None) -> tuple[float, Array, Array, float, Array | None]:
        """Objective without priors, expected transitions, posterior, violation, and where to start next time."""
        model = Hmm(params.transitions, params.emissions)
        if self.project is None:
            found = model.expect(self.lattice, self.soft)
            return float(found.values.sum()), found.transitions, found.posterior, 0.0, None
        text = Together([model.chains(self.lattice, self.soft)])
        outcome = self.project(text, start)
        q, bound, violation, start = outcome, 0.0, 0.0, None
        if isinstance(outcome, Outcome):
            q, bound, violation, start = outcome.q, outcome.bound, outcome.violation, outcome.start
        else:
            bound = float(np.sum(outcome.log_partition()))
        chains: Any = q.members[0]  # type: ignore[union-attr]
        posterior = chains.marginals().values.reshape(-1, model.k)[self.lattice.tokens, self.lattice.labels]
        return bound, transition_counts(chains), posterior, violation, start

    def maximise(self, transitions: Array, posterior: Array, weights: Array | None, evaluations: int) -> _Params:
        counts = self.lattice.emission_counts(posterior, self.n_types)
        moves = normalise(transitions, alpha=self.smoothing)
        if self.emissions is None:
            with np.errstate(divide="ignore"):
                return _Params(moves, np.log(normalise(counts)), None)
        fitted = self.emissions.fit(counts, weights, tolerance=1e-6, steps=evaluations)
        return _Params(moves, self.emissions.table(fitted), fitted)

    def log_prior(self, params: _Params) -> float:
        value = self.smoothing * float(np.log(params.transitions).sum()) if self.smoothing else 0.0
        if self.emissions is not None and params.weights is not None:
            value += self.emissions.log_prior(params.weights)
        return value

    def step(self, state: _State) -> tuple[_State, _Info]:
        value, transitions, posterior, violation, start = self.expect(state.params, state.start)
        params = self.maximise(transitions, posterior, state.params.weights, self.evaluations)
        return _State(params, state.iteration + 1, start), _Info(value + self.log_prior(state.params), violation)


class _Marginal(WholeObjective):
    """The penalised marginal likelihood as a function of weights, for `Lbfgs`.

    Weights are those of emissions followed by log scores of transitions, which a softmax makes probabilities. The
    gradient is that of the expected complete-data likelihood at the posterior of the same weights.
    """

    def __init__(self, em: _Em, shape: tuple[int, ...]) -> None:
        assert em.emissions is not None
        self.em, self.shape, self.emissions = em, shape, em.emissions
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
        params, em = self.params(weights), self.em
        value, transitions, posterior, _, _ = em.expect(params, None)
        counts = em.lattice.emission_counts(posterior, em.n_types)
        out[: self.n_emissions] += self.emissions.gradient(weights[: self.n_emissions], counts)
        smoothed = transitions + em.smoothing
        out[self.n_emissions :] += (smoothed - smoothed.sum(axis=-1, keepdims=True) * params.transitions).ravel()
        return value + em.log_prior(params)


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
        Posterior regularisation: from `Together` (of one `FactoredChains` of all sentences) and where the last search
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
    >>> fit.model.posterior(Lattice([2, 1], [0, 2], mask[[2, 1]])).round().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if method not in ("em", "gradient") or (method == "gradient" and features is None):
        raise ParameterError("fit_hmm: method should be 'em' or, with features, 'gradient'; tables are learnt by 'em'")
    if not (order in (1, 2) and smoothing >= 0 and variance > 0 and iterations > 0 <= first_order and evaluations > 1):
        raise ParameterError(
            "fit_hmm: order 1 or 2, smoothing and first_order >= 0, variance > 0, iterations >= 1 and evaluations >= 2 "
            "are needed"
        )
    lattice = Lattice(ids, offsets, allowed)
    n_types = _n_types(lattice, n_types, features)
    support = _support(lattice, n_types)
    emissions = None
    if features is not None:
        kept = support if restrict_support else None
        emissions = LogLinearEmissions(features, lattice.k, l2=1 / variance, allowed=kept)
    evidence = None if soft is None else np.asarray(soft, np.float64)[lattice.tokens, lattice.labels]
    em = _Em(lattice, n_types, emissions, smoothing, evaluations, evidence, project)
    first_order = min(first_order, iterations - 1) if order == 2 else 0
    params = _first_params(
        lattice,
        support,
        1 if first_order else order,
        seed,
        None if initial is None else np.asarray(initial, np.float64),
    )
    if emissions is not None or initial is not None:  # what they begin with is no model of theirs: one step leads there
        _, transitions, posterior, _, _ = em.expect(params, None)
        params = em.maximise(transitions, posterior, None, 3 * evaluations)
    if first_order:
        params, _ = _repeated(em, params, first_order, progress)
        params = params._replace(transitions=np.repeat(params.transitions[None], lattice.k + 1, axis=0))
    params, trace = (_climbed if method == "gradient" else _repeated)(em, params, iterations - first_order, progress)
    return _fitted(em, params, trace)


def _n_types(lattice: Lattice, given: int | None, features: Any) -> int:
    """Word types of a text that has words, and of features that fit it."""
    if not lattice.n_tokens:
        raise DataError("fit_hmm: the text has no words, so there is nothing to learn from")
    if features is None:
        return int(lattice.ids.max()) + 1 if given is None else given
    if given not in (None, features.shape[0]):
        raise ParameterError(f"fit_hmm: features of {features.shape[0]} types for a text of {given}")
    return int(features.shape[0])


def _repeated(em: _Em, params: _Params, iterations: int, progress: Progress | None) -> tuple[_Params, Array]:
    result = run(em, _State(params), iterations=iterations, progress=progress, name="Learning tags")
    return result.state.params, result.trace


def _climbed(em: _Em, params: _Params, iterations: int, progress: Progress | None) -> tuple[_Params, Array]:
    target = _Marginal(em, params.transitions.shape)
    learner = Lbfgs(target)
    assert params.weights is not None
    begin = np.concatenate([params.weights, _logs(params.transitions).ravel()])
    found = run(
        learner, learner.init(begin), iterations=iterations, tolerance=1e-9, progress=progress, name="Learning tags"
    )
    return target.params(found.state.weights), found.trace


def _fitted(em: _Em, params: _Params, trace: Array) -> HmmFit:
    model = Hmm(params.transitions, params.emissions)
    if em.emissions is None or params.weights is None:
        return HmmFit(model, None, None, trace)
    return HmmFit(model, params.weights.reshape(model.k, -1), em.emissions.normalisers(params.weights), trace)


def _support(lattice: Lattice, n_types: int) -> NDArray[np.bool_]:
    """bool[k, n_types]: types that some token allows a label for; all of them, for a label that has none."""
    if int(lattice.ids.min(initial=0)) < 0 or int(lattice.ids.max(initial=-1)) >= n_types:
        raise ParameterError(f"fit_hmm: ids should be numbers of types, from 0 to {n_types - 1}")
    found = np.zeros((lattice.k, n_types), np.bool_)
    found[lattice.labels, lattice.ids[lattice.tokens]] = True
    return found | ~found.any(axis=1, keepdims=True)


def _first_params(
    lattice: Lattice, support: NDArray[np.bool_], order: int, seed: int, initial: Array | None
) -> _Params:
    """Random emissions of the types that allow a label, and transitions that are all but uniform."""
    rng, k = np.random.default_rng(seed), lattice.k
    noise, wobble = rng.uniform(0.01, 1.0, support.shape), rng.random((k + 1,) * order + (k,))
    table, moves = normalise(noise * support), normalise(1.0 + 0.01 * wobble)
    if initial is not None:
        if initial.shape != support.shape or not (initial >= 0).all():
            raise ParameterError(f"fit_hmm: initial should be {list(support.shape)} numbers, 0 or more")
        table = initial * (1.0 + 0.01 * noise)
    with np.errstate(divide="ignore"):
        return _Params(moves, np.log(table), None)
