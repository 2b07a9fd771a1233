"""Learning from few labelled items and many unlabelled ones.

`Regularised` and `Alternating` are for conditional random fields (`fields`). For items that stand alone, such as
documents, `with_proportions` finds posteriors whose labels keep to given proportions, and `em_proportions`,
`confusion_proportions` and `stable_features` find what these are in a new domain. `harmonic` spreads labels over a
graph. `SelfTraining`, `CoTraining` and `HiddenLabelNaiveBayes` are classifiers as scikit-learn has them, and
`structural_learning` finds the subspace that many problems share.
"""

from isogloss.learners.semi_supervised.fields import (
    Alternating,
    AlternatingInfo,
    AlternatingState,
    Info,
    Regularised,
    State,
    vertex_features,
)
from isogloss.learners.semi_supervised.given import Classifier
from isogloss.learners.semi_supervised.harmonic import class_mass, harmonic, propagated
from isogloss.learners.semi_supervised.hidden_labels import HiddenLabelNaiveBayes, HiddenLabels
from isogloss.learners.semi_supervised.priors import confusion_proportions, em_proportions, stable_features
from isogloss.learners.semi_supervised.proportions import with_proportions
from isogloss.learners.semi_supervised.structural import SharedSubspace, structural_learning
from isogloss.learners.semi_supervised.teaching import CoTraining, SelfTraining, ViewDiagnosis, view_diagnosis

__all__ = [
    "Alternating",
    "AlternatingInfo",
    "AlternatingState",
    "Classifier",
    "CoTraining",
    "HiddenLabelNaiveBayes",
    "HiddenLabels",
    "Info",
    "Regularised",
    "SelfTraining",
    "SharedSubspace",
    "State",
    "ViewDiagnosis",
    "class_mass",
    "confusion_proportions",
    "em_proportions",
    "harmonic",
    "propagated",
    "stable_features",
    "structural_learning",
    "vertex_features",
    "view_diagnosis",
    "with_proportions",
]
