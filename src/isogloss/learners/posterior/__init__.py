"""Posterior regularisation: constraints and penalties on what a posterior expects, for any structure.

`project` and `regularise` work on the dual, for constraints and for penalties with a known conjugate; `exponentiated`
takes any convex differentiable penalty. `Together` makes one structure of many, so that both work on a whole text.
`conserve` asks of each structure of a batch that it keeps a share of some parts, all at once.
"""

from isogloss.learners.posterior.conserved import Conserved, PartSets, attainable_shares, conserve, conserving
from isogloss.learners.posterior.edges import edge_types
from isogloss.learners.posterior.exponentiated import Tilted, exponentiated
from isogloss.learners.posterior.features import Features, label_features
from isogloss.learners.posterior.pair import Pair, bijective, project_pair
from isogloss.learners.posterior.penalties import AtMost, Exactly, Groups, Linear, Norm, Penalty, Quadratic, capped
from isogloss.learners.posterior.project import Outcome, Projection, project, regularise
from isogloss.learners.posterior.smooth import GraphLaplacian, Histogram, Smooth, squared_hinge
from isogloss.learners.posterior.together import Together

__all__ = [
    "AtMost",
    "Conserved",
    "Exactly",
    "Features",
    "GraphLaplacian",
    "Groups",
    "Histogram",
    "Linear",
    "Norm",
    "Outcome",
    "Pair",
    "PartSets",
    "Penalty",
    "Projection",
    "Quadratic",
    "Smooth",
    "Tilted",
    "Together",
    "attainable_shares",
    "bijective",
    "capped",
    "conserve",
    "conserving",
    "edge_types",
    "exponentiated",
    "label_features",
    "project",
    "project_pair",
    "regularise",
    "squared_hinge",
]
