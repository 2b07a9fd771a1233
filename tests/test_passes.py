"""What estimators that learn in passes have in common."""

from __future__ import annotations

import numpy as np
import pytest

from isogloss.errors import ParameterError, UsageError
from isogloss.estimator import option
from isogloss.features.sparse import Sparse
from isogloss.learners.margin import Mira, Perceptron
from isogloss.learners.models import LinearModel
from isogloss.learners.passes import TRAINERS, Course, LearntInPasses, learner_of
from isogloss.learners.stochastic import AdaGrad
from isogloss.learners.tuning import Stages
from isogloss.pass_options import PassOptions, PassSettings, TrainerOptions
from isogloss.progress import QuietProgress
from isogloss.structures import Chain
from isogloss.tasks.extract import EntityTagger, RelationExtractor, RoleLabeller
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.constituency import ConstituencyParser

ESTIMATORS = (EntityTagger, RelationExtractor, RoleLabeller, DependencyParser, ConstituencyParser)


def coins(n: int = 4) -> LinearModel:
    """One position with two states and a weight for each."""
    return LinearModel([Chain(np.zeros((1, 2, 2)))] * n, Sparse.of([[0], [1], [], []] * n, 2))


class Known:
    """What is right, asked in none of the three ways: learners are made, and take no step."""

    def wanted(self, items: object, batch: object) -> None: ...

    def costs(self, items: object, batch: object) -> None: ...

    def rivals(self, items: object, batch: object, augmentation: float) -> None: ...


def test_a_trainer_is_made_by_its_name() -> None:
    made = {name: learner_of(coins(), Known(), PassSettings(name, iterations=5)) for name in TRAINERS}
    kinds = {"likelihood": AdaGrad, "risk": Stages, "mira": Mira, "perceptron": Perceptron}
    assert {name: type(learner) for name, learner in made.items()} == kinds
    assert made["risk"].n_before_last == 2  # two of five passes by likelihood
    with pytest.raises(ParameterError, match="trainer should be one of likelihood, risk, mira, perceptron, not 'sgd'"):
        learner_of(coins(), Known(), PassSettings("sgd"))


def test_the_best_pass_is_kept_and_losses_are_those_of_a_word() -> None:
    model = coins()
    learner = learner_of(model, model.gold([[0], [0], [0], [1]]), PassSettings(iterations=9, rate=0.5, batch=4))
    seen: list[float] = []

    def score(weights: np.ndarray) -> float:
        seen.append(float(weights[0]))
        return (1.0, 3.0, 2.0, 2.0, 1.0)[min(len(seen), 5) - 1]

    passed = Course(9, QuietProgress()).run(learner, "Learning", score)
    assert passed.scores.tolist() == [1.0, 3.0, 2.0, 2.0, 1.0]  # three passes without a better one
    assert passed.weights[0] == seen[1]
    assert passed.trace[0] == pytest.approx(-4 * np.log(2)) and passed.losses(4)[0] == pytest.approx(np.log(2))
    assert passed.losses(0).tolist() == (-passed.trace).tolist()
    alone = Course(2, QuietProgress()).run(learner, "Learning", start=np.array([2.0, 0.0]))
    assert len(alone.trace) == 2 and len(alone.scores) == 0
    assert alone.trace[0] == pytest.approx(3 * 2.0 - 4 * np.log(np.exp(2.0) + 1))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_all_have_the_options_and_say_that_they_know_nothing(estimator: type) -> None:
    assert issubclass(estimator, LearntInPasses) and set(PassOptions._options) <= set(estimator._options)
    with pytest.raises(UsageError, match=f"this {estimator.__name__} has learnt nothing yet"):
        estimator()._learnt  # noqa: B018


@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if issubclass(e, TrainerOptions)])
def test_every_trainer_has_a_length_of_steps(estimator: type) -> None:
    trainers = estimator._options["trainer"].choices
    assert set(trainers) == set(estimator._rates) <= set(TRAINERS)
    for trainer in trainers:
        assert estimator(trainer=trainer).step_length == estimator._rates[trainer]
        assert estimator(trainer=trainer).pass_settings.trainer == trainer
    assert estimator(rate=3).options_["rate"] == 3.0


def test_options_of_a_class_come_before_those_of_its_parents() -> None:
    class Own(TrainerOptions):
        width: int = option(default=1, help="Its own.")
        batch: int = option(default=32, least=1, help="Declared again.")

    shared = [*TrainerOptions._options]
    assert [*Own._options] == ["width", "batch", *(name for name in shared if name != "batch")]
    assert Own().batch == 32 and repr(Own(seed=1, width=2)) == "Own(width=2, seed=1)"
