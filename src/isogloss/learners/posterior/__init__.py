"""Posterior regularisation: constraints and penalties on what a posterior expects, for any structure.

`project` and `regularise` work on the dual, for constraints and for penalties with a known conjugate; `exponentiated`
takes any convex differentiable penalty. `Together` makes one structure of many, so that both work on a whole text.
"""

from isogloss.learners.posterior.features import Features, label_features
from isogloss.learners.posterior.pair import Pair, bijective, project_pair
from isogloss.learners.posterior.penalties import AtMost, Exactly, Groups, Linear, Norm, Penalty, Quadratic, capped
from isogloss.learners.posterior.project import Outcome, Projection, project, regularise
from isogloss.learners.posterior.together import Together

__all__ = [
    "AtMost",
    "Exactly",
    "Features",
    "Groups",
    "Linear",
    "Norm",
    "Outcome",
    "Pair",
    "Penalty",
    "Projection",
    "Quadratic",
    "Together",
    "bijective",
    "capped",
    "label_features",
    "project",
    "project_pair",
    "regularise",
]
