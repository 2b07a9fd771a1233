"""`Tuned`: any learner, tried on other data after each step, with the weights that were best there.

`Stages`: one learner after the other on the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.errors import ModelError

__all__ = ["Stages", "Tuned", "TunedInfo", "TunedState"]

PATIENCE = 3
"""Steps without a better one, after which learning ends."""


class TunedState(NamedTuple):
    """The state of a learner, and what was best so far."""

    inner: Any
    scores: tuple[float, ...] = ()
    """After each step, if there is anything to try the weights on."""
    best: NDArray[Any] | None = None

    @property
    def iteration(self) -> int:
        """Steps so far."""
        count: int = self.inner.iteration
        return count

    @property
    def weights(self) -> NDArray[Any]:
        """Those that were best; without anything to try them on, those that the learner came to."""
        found: NDArray[Any] = self.inner.average if self.best is None else self.best
        return found


class TunedInfo(NamedTuple):
    """What a person wants to watch: the objective of the learner, the score of the step, and words for both."""

    objective: float
    score: float = float("nan")
    detail: str = ""


class Tuned:
    """A learner whose weights are scored after each step; the best are kept, the last of equals.

    Of a learner in `Stages`, only steps of the last stage can be the best: those before have another objective, and are
    there to begin with. Nor does it end before that stage.

    Parameters
    ----------
    learner : learner with states that have an `average`
        Such as `AdaGrad`, `Ftrl`, `Mira` or `Lbfgs`.
    score : callable, optional
        Weights to a number that should be high, such as accuracy on held-out sentences. Without it, nothing is tried,
        and the weights of the last step count.
    what : str
        What the number is, for progress: "UAS {:.2f} on dev".
    patience : int
        Steps without a better one after which `is_done`.

    Examples
    --------
    >>> from isogloss.learners.optimisers import WholeObjective
    >>> from isogloss.learners.stochastic import Sgd
    >>> from isogloss.learners.runner import run
    >>> class Bowl(WholeObjective):
    ...     n_weights = 1
    ...     def add_gradient(self, weights, out, items=None):
    ...         out += 2 * (3 - weights)
    ...         return -float((weights - 3) @ (weights - 3))
    >>> learner = Tuned(Sgd(Bowl(), rate=0.3), lambda weights: -abs(float(weights[0]) - 2), "{:.1f}")
    >>> found = run(learner, learner.init(), iterations=9, should_stop=learner.is_done)
    >>> found.state.weights.round(1).tolist(), found.stopped_because
    ([2.0], 'should_stop')
    """

    def __init__(
        self,
        learner: Any,
        score: Callable[[NDArray[Any]], float] | None = None,
        what: str = "{:.2f} on dev",
        *,
        patience: int = PATIENCE,
    ) -> None:
        self.learner, self.score, self.what, self.patience = learner, score, what, patience

    @property
    def _first(self) -> int:
        """Steps that come before those that count."""
        steps: int = getattr(self.learner, "n_before_last", 0)
        return steps

    def init(self, weights: Any = None) -> TunedState:
        """The state before the first step."""
        return TunedState(self.learner.init(weights))

    def step(self, state: TunedState) -> tuple[TunedState, TunedInfo]:
        """One step of the learner, and its score."""
        inner, info = self.learner.step(state.inner)
        if self.score is None:
            return TunedState(inner), TunedInfo(info.objective)
        weights = inner.average
        value = float(self.score(weights))
        rivals, best = state.scores[self._first :], state.best
        if inner.iteration > self._first and value >= max(rivals, default=-np.inf):
            best = np.array(weights)
        detail = self.what.format(value)
        return TunedState(inner, (*state.scores, value), best), TunedInfo(info.objective, value, detail)

    def is_done(self, state: TunedState, info: Any) -> bool:
        """True when the score has not come up to its best for `patience` steps."""
        scores = state.scores[self._first :]
        return bool(scores) and len(scores) - 1 - int(np.argmax(scores)) >= self.patience

    def dump(self, state: TunedState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For checkpoints."""
        arrays, meta = self.learner.dump(state.inner)
        kept = store.prefixed("learner.", arrays)
        if state.best is not None:
            kept["best"] = state.best
        return kept, {"learner": meta, "scores": list(state.scores)}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> TunedState:
        """The inverse of `dump`."""
        inner = self.learner.restore(store.unprefixed("learner.", arrays), meta["learner"])
        best = arrays.get("best")
        if best is not None and (best.shape, best.dtype) != (inner.weights.shape, inner.weights.dtype):
            raise ModelError("the best weights of the checkpoint are of another size. Start again without resuming")
        return TunedState(inner, tuple(meta["scores"]), best)


class Stages:
    """Learners of one kind, each for some steps: likelihood first, which is concave, then risk, which is not.

    Parameters
    ----------
    stages : sequence of (int, learner)
        How many steps each is for; the last goes on for as long as steps are asked for.
    """

    def __init__(self, stages: Sequence[tuple[int, Any]]) -> None:
        self.stages = list(stages)

    @property
    def n_before_last(self) -> int:
        """Steps of all stages but the last."""
        return sum(steps for steps, _ in self.stages[:-1])

    def init(self, weights: Any = None) -> Any:
        """The state before the first step."""
        return self.stages[0][1].init(weights)

    def _now(self, iteration: int) -> Any:
        before = 0
        for steps, learner in self.stages:
            before += steps
            if iteration < before:
                return learner
        return self.stages[-1][1]

    def step(self, state: Any) -> tuple[Any, Any]:
        """One step of the learner whose turn it is."""
        found: tuple[Any, Any] = self._now(state.iteration).step(state)
        return found

    def dump(self, state: Any) -> Any:
        """For checkpoints."""
        return self.stages[0][1].dump(state)

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Any:
        """The inverse of `dump`."""
        return self.stages[0][1].restore(arrays, meta)
