"""EM for any model whose posterior is a structure; posterior-regularised EM when a projection is handed in.

A model says four things: its empty counts, the distribution over structures of each item (a sentence, a pair), the
counts expected of an item under such a distribution, and the parameters that are best for given counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.errors import ParameterError
from isogloss.learners.posterior import Outcome, Together
from isogloss.learners.posterior.together import Array, clamped
from isogloss.structures import Structure
from isogloss.structures.batch import Batch, Stack

__all__ = ["EM", "Info", "Model", "State", "identity", "init", "step"]

Params = TypeVar("Params")
Params_contra = TypeVar("Params_contra", contravariant=True)
Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)
S = TypeVar("S", bound=Structure)
S_co = TypeVar("S_co", bound=Structure, covariant=True)


Counts: TypeAlias = Any  # whatever adds up in place by +=, such as an array
ProjectCorpus: TypeAlias = Callable[[Together, "Array | None"], "Together | Outcome[Together]"]


class Model(Protocol[Params_contra, Item_contra, S_co]):
    """What `step` asks of a model.

    And one of two M-steps: ``maximise(counts) -> params``; or ``improve(params, counts) -> params``, which starts from
    the parameters of before and need not come to the best, only to better ones (generalised EM;
    `LogLinearMultinomial.fit`), and which is taken where a model has both. ``log_prior(params) -> float`` is added to
    the objective where a model has it. Where an item stands for several equal ones, ``weights(batch) -> float64[n]``
    says for how many, which its log-likelihood counts in the objective; expected counts are weighed by the model.
    """

    def zero_counts(self) -> Counts: ...

    def distributions(self, params: Params_contra, batch: Sequence[Item_contra], /) -> Iterable[S_co] | Batch[Any]:
        """One structure for each item, or one `Batch` of them all, with log p(item, y) as the score of y."""

    def expected_counts(self, item: Any, q: Any, /) -> Counts:
        """Of an item and its distribution; if `distributions` gives batches, of a batch of items and its `Batch`."""


class State(NamedTuple, Generic[Params]):
    """What the next step needs."""

    params: Params
    iteration: int = 0
    start: Array | None = None
    """Where the next projection of the whole text starts; `None` without one."""


class Info(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """Of the parameters that the step began with: the log-likelihood, and the log prior if the model has one; with a
    projection less KL(q‖p) and the penalty; with `hard`, Σ log p(x, best y)."""
    violation: float = 0.0
    """The largest left by a projection."""
    evaluations: int = 0
    """Spent on projections."""
    unconverged: int = 0
    """Projections that ran out of steps."""


def identity(dist: S) -> S:
    """The projection of plain EM."""
    return dist


def init(params: Params) -> State[Params]:
    """The state before the first step."""
    return State(params, 0)


class _Watched:
    """What projections say, summed up."""

    def __init__(self) -> None:
        self.objective, self.violation, self.evaluations, self.unconverged = 0.0, 0.0, 0, 0

    def take(self, projected: Any, dist: Any, hard: bool, weight: Any = 1.0) -> Any:
        """The distribution to count with, from what a projection gave for `dist`."""
        q, bound = projected, None
        if isinstance(projected, Outcome):
            q, bound = projected.q, weight * projected.bound
            self.violation = max(self.violation, projected.violation)
            self.evaluations += projected.evaluations
            self.unconverged += not projected.converged
        if hard:
            q, bound = clamped(dist, q.argmax()), None
        self.objective += float(np.sum(weight * q.log_partition())) if bound is None else bound
        return q

    def info(self) -> Info:
        return Info(self.objective, self.violation, self.evaluations, self.unconverged)


def step(
    state: State[Params],
    batches: Iterable[Sequence[Item]],
    model: Model[Params, Item, S],
    project: Callable[[S], S | Outcome[S]] = identity,
    *,
    project_corpus: ProjectCorpus | None = None,
    hard: bool = False,
) -> tuple[State[Params], Info]:
    """One E-step over all batches, in order, and one M-step.

    Parameters
    ----------
    state : State
    batches : iterable of sequences of items
    model : Model
    project : callable
        Distribution to distribution, or to the `Outcome` of a projection: for instance
        ``partial(posterior.project, features=F, bound=b)``. The identity gives EM.
    project_corpus : callable, optional
        The same for all items at once, in place of `project`: called with `Together` and with what the last step's
        outcome had as `start` (`None` at first), for instance
        ``lambda text, start: regularise(text, features, Groups(groups, 1.0), start=start)``. All distributions are then
        in memory together.
    hard : bool
        Count the best structure alone (Viterbi training). The structure has to offer `clamp`.

    Returns
    -------
    State, Info
        The objective belongs to the parameters of the state handed in. It never falls from one step to the next if
        `model.maximise` is exact, or `model.improve` no worse than what it started from, and the projections converge.
    """
    watched, start = _Watched(), None
    if project_corpus is None:
        weigh = getattr(model, "weights", _as_one)
        pairs = (
            (batch, _projected(model.distributions(state.params, batch), project, watched, hard, weigh(batch)))
            for batch in batches
        )
        counts = _counted(model, pairs)
    else:
        kept = list(batches)
        given = [_listed(model.distributions(state.params, batch)) for batch in kept]
        text = Together([member for found in given for member in ([found] if isinstance(found, Batch) else found)])
        outcome = project_corpus(text, state.start)
        q = watched.take(outcome, text, hard)
        start = outcome.start if isinstance(outcome, Outcome) else None
        counts = _counted(model, zip(kept, _dealt(q, given), strict=True))
    prior = getattr(model, "log_prior", None)
    if prior is not None:
        watched.objective += float(prior(state.params))
    return State(_improved(model, state.params, counts), state.iteration + 1, start), watched.info()


def _improved(model: Any, params: Any, counts: Counts) -> Any:
    """The M-step that the model has."""
    if hasattr(model, "improve"):
        return model.improve(params, counts)
    if not hasattr(model, "maximise"):
        raise ParameterError(
            f"EM: {type(model).__name__} has no M-step; give it maximise(counts) or improve(params, counts)"
        )
    return model.maximise(counts)


def _listed(found: Any) -> Any:
    return found if isinstance(found, Batch) else list(found)


def _as_one(batch: Any) -> None:
    """Items that stand for themselves alone."""


def _projected(
    found: Any, project: Callable[[Any], Any], watched: _Watched, hard: bool, weights: Array | None
) -> Any:  # fmt: skip
    """What to count with: a batch for a batch, and an iterable of structures for an iterable."""
    if not isinstance(found, Batch):
        each_weight = itertools.repeat(1.0) if weights is None else iter(weights.tolist())
        return (watched.take(project(dist), dist, hard, next(each_weight)) for dist in found)
    if project is identity:
        return watched.take(found, found, hard, 1.0 if weights is None else weights)
    own = np.ones(len(found)) if weights is None else weights
    each = [watched.take(project(found[s]), found[s], hard, float(own[s])) for s in range(len(found))]
    if hard:
        return found.clamp([q.argmax() for q in each])
    return found.with_scores(Stack.of([q.scores for q in each], repr(found), found.scores.shapes.shape[1]))


def _dealt(text: Together, given: Sequence[Any]) -> Iterable[Any]:
    """The members of `text`, as the model gave them: a batch, or a list of structures, for each batch of items."""
    at = 0
    for found in given:
        size = 1 if isinstance(found, Batch) else len(found)
        yield text.members[at] if isinstance(found, Batch) else text.members[at : at + size]
        at += size


def _counted(model: Any, pairs: Iterable[tuple[Any, Any]]) -> Counts:
    counts = model.zero_counts()
    for batch, found in pairs:
        if isinstance(found, Batch):
            counts += model.expected_counts(batch, found)
        else:
            for item, q in zip(batch, found, strict=True):
                counts += model.expected_counts(item, q)
    return counts


@dataclass(frozen=True)
class EM(Generic[Params, Item, S]):
    """EM as a learner for `runner.run`; the arguments are those of `step`.

    Checkpoints hold parameters that are an array, or a mapping or sequence of arrays. A model with others offers
    ``dump(params) -> (arrays, meta)`` and ``restore(arrays, meta) -> params``.

    Examples
    --------
    >>> from isogloss.learners import normalise
    >>> from isogloss.learners.runner import run
    >>> from isogloss.structures import Chain
    >>> class Coins:  # each item is a number of heads in 10 throws, of one of two coins; params are their chances
    ...     def zero_counts(self): return np.zeros((2, 2))
    ...     def distributions(self, params, batch):
    ...         return (Chain(np.log([[[*params**h * (1 - params) ** (10 - h)], [1, 1]]])) for h in batch)
    ...     def expected_counts(self, heads, q): return q.node_marginals()[0, :, None] * [heads, 10 - heads]
    ...     def maximise(self, counts): return normalise(counts)[:, 0]
    >>> learner = EM(Coins(), [[5, 9, 8, 4, 7]])
    >>> result = run(learner, learner.init(np.array([0.6, 0.5])), iterations=10)
    >>> result.state.params.round(2).tolist(), bool((np.diff(result.trace) >= 0).all())
    ([0.8, 0.52], True)
    """

    model: Model[Params, Item, S]
    batches: Sequence[Sequence[Item]]
    project: Callable[[S], S | Outcome[S]] = identity
    project_corpus: ProjectCorpus | None = None
    hard: bool = False

    def init(self, params: Params) -> State[Params]:
        """The state before the first step."""
        return init(params)

    def step(self, state: State[Params]) -> tuple[State[Params], Info]:
        """One E-step and one M-step."""
        return step(state, self.batches, self.model, self.project, project_corpus=self.project_corpus, hard=self.hard)

    def dump(self, state: State[Params]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """The state for a checkpoint."""
        custom = getattr(self.model, "dump", None)
        meta: dict[str, Any] = {"iteration": state.iteration, "form": "model"}
        if custom is not None:
            named, meta["model"] = custom(state.params)
        else:
            meta["form"], named = _named(state.params, type(self.model).__name__)
        arrays = {f"params.{name}": array for name, array in named.items()}
        if state.start is not None:
            arrays["start"] = state.start
        return arrays, meta

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> State[Any]:
        """The state of a checkpoint."""
        named = store.unprefixed("params.", arrays)
        params: Any = named
        if meta["form"] == "model":
            params = self.model.restore(named, meta["model"])  # type: ignore[attr-defined]
        elif meta["form"] == "array":
            params = named[""]
        elif meta["form"] != "dict":
            ordered = [named[str(at)] for at in range(len(named))]
            params = tuple(ordered) if meta["form"] == "tuple" else ordered
        return State(params, meta["iteration"], arrays.get("start"))


def _named(params: Any, model: str) -> tuple[str, dict[str, NDArray[Any]]]:
    """Parameters as arrays with names, and the form that they had."""
    form = "array" if isinstance(params, np.ndarray) else type(params).__name__
    named: dict[str, NDArray[Any]] = {}
    if form == "array":
        named = {"": params}
    elif form == "dict":
        named = {str(name): np.asarray(array) for name, array in params.items()}
    elif form in ("list", "tuple"):
        named = {str(at): np.asarray(array) for at, array in enumerate(params)}
    if not named or any(array.dtype.hasobject for array in named.values()):
        raise TypeError(
            f"EM: parameters of type {type(params).__name__} are not arrays; give {model} `dump` and `restore`, or run "
            "without a checkpoint"
        )
    return form, named
