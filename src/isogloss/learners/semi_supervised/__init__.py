"""Learning from few labelled items and many unlabelled ones.

`Regularised` and `Alternating` are for conditional random fields (`fields`). For items that stand alone, such as
documents, `with_proportions` finds posteriors whose labels keep to given proportions, and `em_proportions`,
`confusion_proportions` and `stable_features` find what these are in a new domain. `harmonic` spreads labels over a
graph.
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
from isogloss.learners.semi_supervised.harmonic import class_mass, harmonic, propagated
from isogloss.learners.semi_supervised.priors import confusion_proportions, em_proportions, stable_features
from isogloss.learners.semi_supervised.proportions import with_proportions

__all__ = [
    "Alternating",
    "AlternatingInfo",
    "AlternatingState",
    "Info",
    "Regularised",
    "State",
    "class_mass",
    "confusion_proportions",
    "em_proportions",
    "harmonic",
    "propagated",
    "stable_features",
    "vertex_features",
    "with_proportions",
]
