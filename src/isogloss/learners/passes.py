"""`LearntInPasses`: what estimators have in common that pass over sentences, and try what they learnt on others.

A task says what its model and its target are (`learner_of` makes a learner of both), how good weights are on held-out
sentences, and what is kept. Checkpoints, progress, the best pass, curves and the header of a saved model are the same
for all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.reading import Reading
from isogloss.errors import ParameterError
from isogloss.layout import vector
from isogloss.learners.loglinear import Likelihood
from isogloss.learners.margin import Mira, Perceptron
from isogloss.learners.models import Model
from isogloss.learners.risk import Risk
from isogloss.learners.runner import Keeping, run
from isogloss.learners.stochastic import AdaGrad
from isogloss.learners.tuning import Stages, Tuned
from isogloss.pass_options import PassOptions, PassSettings
from isogloss.progress import Progress, QuietProgress

__all__ = ["TRAINERS", "Course", "LearntInPasses", "Passed", "learner_of"]

TRAINERS = ("likelihood", "risk", "mira", "perceptron")
FIRST_BY_LIKELIHOOD = 0.4
"""The share of passes after which minimum risk, which has many optima, takes over from likelihood."""
Arrays = dict[str, NDArray[Any]]
Fitted = TypeVar("Fitted")


def learner_of(
    model: Model,
    target: Any,
    settings: PassSettings,
    within: Callable[[float], object] | None = None,
    *,
    likelihood: Likelihood | None = None,
    least: float = 0.0,
    counts: NDArray[np.float64] | None = None,
    **stepping: Any,
) -> Any:
    """The learner that `settings.trainer` names, for `isogloss.learners.runner.run`.

    The first of several passes is far from where the others are, and does not count for the mean.

    Parameters
    ----------
    model : Model
    target
        What is right: for likelihood a `Target`, for margins what has rivals, for risk what has costs.
    settings : PassSettings
    within : callable, optional
        Told how much of a pass is done.
    likelihood : Likelihood, optional
        What the trainer of that name raises, where it is not the likelihood of the target.
    least : float
        Parts whose posterior is this close to what it should be are left alone.
    counts : float64[n_items], optional
        What each item counts in likelihood. Losses, of margins and risk, are counted by the target.
    **stepping
        Further arguments of `AdaGrad`.
    """
    if settings.trainer not in TRAINERS:
        raise ParameterError(f"trainer should be one of {', '.join(TRAINERS)}, not {settings.trainer!r}")
    passing: dict[str, Any] = {
        "batch": settings.batch, "seed": settings.seed, "average_from": int(settings.iterations > 1),
        "in_place": True, "within": within,
    }  # fmt: skip
    if settings.trainer == "perceptron":
        return Perceptron(model, target, **passing)
    if settings.trainer == "mira":
        return Mira(model, target, augmentation=(1.0, 1.0), cap=settings.rate, **passing)
    stepping = {"rate": settings.rate, "l2": settings.l2, **stepping, **passing}
    likely = AdaGrad(likelihood or Likelihood(model, target=target, least=least, counts=counts), **stepping)
    if settings.trainer == "likelihood":
        return likely
    first = min(int(np.ceil(FIRST_BY_LIKELIHOOD * settings.iterations)), settings.iterations - 1)
    return Stages([(first, likely), (settings.iterations, AdaGrad(Risk(model, target, least=least), **stepping))])


class Passed(NamedTuple):
    """What came of passes.

    Parameters
    ----------
    weights : float[n_weights]
        Those of the best pass on held-out sentences, or those that the learner came to.
    trace : float64[n_passes]
        The objective of each pass, as it was met.
    scores : float64[n_passes]
        Of held-out sentences after each pass; empty without any.
    """

    weights: NDArray[Any]
    trace: NDArray[np.float64]
    scores: NDArray[np.float64]

    def losses(self, n: float) -> NDArray[np.float64]:
        """float64[n_passes]: the mean loss of each of `n` words or pairs."""
        return np.asarray(-self.trace / max(1.0, n))


class Course(NamedTuple):
    """What surrounds learning: how many passes there are, who watches, and where they are kept if they are stopped."""

    iterations: int
    progress: Progress
    keeping: Keeping = Keeping()

    def run(
        self,
        learner: Any,
        name: str,
        score: Callable[[NDArray[Any]], float] | None = None,
        what: str = "F1 {:.2f} on dev",
        *,
        start: NDArray[Any] | None = None,
    ) -> Passed:
        """Pass until the score on other sentences has long been better, or all passes are made.

        Parameters
        ----------
        learner : learner
            See `isogloss.learners.tuning.Tuned`.
        name : str
            The stage, for progress.
        score : callable, optional
            How good weights are on other sentences.
        what : str
            What the score is, for progress.
        start : float[n_weights], optional
            Weights to begin with.
        """
        tuned = Tuned(learner, score, what)
        result = run(
            tuned, tuned.init(start), iterations=self.iterations, should_stop=tuned.is_done, progress=self.progress,
            name=name, every=None, **self.keeping.arguments,
        )  # fmt: skip
        return Passed(result.state.weights, result.trace, np.array(result.state.scores, np.float64))


class LearntInPasses(PassOptions, Generic[Fitted]):
    """An estimator that is learnt in passes, with the best of them chosen on other sentences.

    A subclass has `fit`, which checks what it is given and learns within `_course`, ending in `_learnt_from`; and says
    in `_to_parts` and `_of_parts` what is kept.
    """

    _saved_as: ClassVar[str] = "the saved model"
    """What messages call a folder of it."""

    @property
    def _learnt(self) -> Fitted:
        """What was learnt; who asks too early is told to learn first."""
        if "_fitted" not in vars(self):
            raise self._has_not_learnt
        return self._fitted

    # --- learning

    @contextmanager
    def _course(
        self,
        progress: Progress | None,
        checkpoint: str | PathLike[str] | None,
        resume: bool,
        texts: Iterable[Any],
    ) -> Iterator[Course]:
        """What surrounds learning from these texts; a checkpoint of another run is refused before any work."""
        progress = progress or QuietProgress()
        keeping = Keeping.of(checkpoint, resume, self.options_, texts)
        try:
            yield Course(self.iterations, progress, keeping)
        finally:
            progress.finish()

    def _take(self, fitted: Fitted, losses: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
        """Keep what was learnt, and how it went."""
        self._fitted, self.trace_, self.tuning_ = fitted, losses, scores

    def _learnt_from(self, text: Any) -> Self:
        """Keep what there is to know of the text that was learnt from."""
        self.reading_ = Reading.of(text, frequent=True)
        return self

    # --- keeping

    @abstractmethod
    def _to_parts(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays of what was learnt, and what else is remembered."""

    @abstractmethod
    def _of_parts(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Fitted:
        """The inverse. A model folder is not trusted: every array goes through `isogloss.layout.check`."""

    def _to_saved(self) -> store.Saved:
        arrays, meta = self._to_parts()
        meta |= {"trace": self.trace_.tolist(), "tuning": self.tuning_.tolist(), **Reading.to_meta(self.reading_)}
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        meta = saved.meta
        with store.reading(cls._saved_as):
            made = cls.of_options(saved.options)
            fitted = made._of_parts(saved.arrays, meta)
            made._take(fitted, vector(meta["trace"], "trace"), vector(meta["tuning"], "tuning"))
            made.reading_ = Reading.from_meta(meta)
        return made
