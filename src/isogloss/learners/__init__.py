"""How parameters are found. A learner is `init` and `step`; it knows structures, never tasks."""

from isogloss.learners.agreement import agreement, merge
from isogloss.learners.em import Info, State, init, step
from isogloss.learners.posterior import Features, Pair, Projection, bijective, project, project_pair

__all__ = [
    "Features",
    "Info",
    "Pair",
    "Projection",
    "State",
    "agreement",
    "bijective",
    "init",
    "merge",
    "project",
    "project_pair",
    "step",
]
