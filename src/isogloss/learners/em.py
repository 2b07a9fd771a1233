"""EM for any model whose posterior is a structure; posterior-regularised EM when a projection is handed in.

A model says four things: its empty counts, the distribution over structures of each item (a sentence, a pair), the
counts expected of an item under such a distribution, and the parameters that are best for given counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from isogloss.errors import ParameterError
from isogloss.learners.posterior import Projection
from isogloss.structures import Structure

__all__ = ["Info", "Model", "State", "identity", "init", "step"]

Params = TypeVar("Params")
Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)
S = TypeVar("S", bound=Structure)


Counts: TypeAlias = Any  # whatever adds up in place by +=, such as an array


class Model(Protocol[Params, Item_contra, S]):
    """What `step` asks of a model."""

    def zero_counts(self) -> Counts: ...

    def distributions(self, params: Params, batch: Sequence[Item_contra], /) -> Iterable[S]:
        """One structure for each item, with log p(item, y) as the score of y."""

    def expected_counts(self, item: Item_contra, q: S, /) -> Counts: ...

    def maximise(self, counts: Counts, /) -> Params: ...


class State(NamedTuple, Generic[Params]):
    """What the next step needs."""

    params: Params
    iteration: int = 0


class Info(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """Of the parameters that the step began with: the log-likelihood; with a projection Σ log p(x) − KL(q‖p); with
    `hard`, Σ log p(x, best y)."""
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


def step(
    state: State[Params],
    batches: Iterable[Sequence[Item]],
    model: Model[Params, Item, S],
    project: Callable[[S], S | Projection[S]] = identity,
    *,
    hard: bool = False,
) -> tuple[State[Params], Info]:
    """One E-step over all batches, in order, and one M-step.

    Parameters
    ----------
    state : State
    batches : iterable of sequences of items
    model : Model
    project : callable
        Distribution to distribution, or to a `Projection`: for instance
        ``partial(posterior.project, features=F, bound=b)``. The identity gives EM.
    hard : bool
        Count the best structure alone (Viterbi training). The structure has to offer `clamp`.

    Returns
    -------
    State, Info
        The objective belongs to the parameters of the state handed in. It never falls from one step to the next if
        `model.maximise` is exact and the projections converge.
    """
    counts, objective, violation, evaluations, unconverged = model.zero_counts(), 0.0, 0.0, 0, 0
    for batch in batches:
        for item, dist in zip(batch, model.distributions(state.params, batch), strict=True):
            projected = project(dist)
            if isinstance(projected, Projection):
                q, bound = projected.q, projected.bound
                violation = max(violation, projected.violation)
                evaluations += projected.evaluations
                unconverged += not projected.converged
            else:
                q, bound = projected, projected.log_partition()
            if hard:
                q = _clamped(dist, q.argmax())
                bound = q.log_partition()
            counts += model.expected_counts(item, q)
            objective += bound
    info = Info(objective, violation, evaluations, unconverged)
    return State(model.maximise(counts), state.iteration + 1), info


def _clamped(dist: S, y: Any) -> S:
    clamp: Callable[[Any], S] | None = getattr(dist, "clamp", None)
    if clamp is None:
        raise ParameterError(f"step: hard=True needs a structure with clamp(y), and {type(dist).__name__} has none")
    return clamp(y)
