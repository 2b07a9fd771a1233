"""How parameters are found. A learner is `init` and `step`; it knows structures, never tasks."""

from isogloss.learners.agreement import agreement, merge
from isogloss.learners.em import EM, Info, State, init, step
from isogloss.learners.multinomials import LogLinearMultinomial, normalise
from isogloss.learners.posterior import (
    AtMost,
    Exactly,
    Features,
    Groups,
    Pair,
    Projection,
    Together,
    bijective,
    exponentiated,
    project,
    project_pair,
    regularise,
)
from isogloss.learners.risk import Risk, mbr

__all__ = [
    "EM",
    "AtMost",
    "Exactly",
    "Features",
    "Groups",
    "Info",
    "LogLinearMultinomial",
    "Pair",
    "Projection",
    "Risk",
    "State",
    "Together",
    "agreement",
    "bijective",
    "exponentiated",
    "init",
    "mbr",
    "merge",
    "normalise",
    "project",
    "project_pair",
    "regularise",
    "step",
]
