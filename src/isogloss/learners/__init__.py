"""How parameters are found. A learner is `init` and `step`; it knows structures, never tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily
from isogloss.learners.agreement import agreement, merge

if TYPE_CHECKING:
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
        project_pair,
        regularise,
    )
    from isogloss.learners.posterior.exponentiated import exponentiated
    from isogloss.learners.posterior.project import project
    from isogloss.learners.risk import Risk, mbr
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".em": "EM Info State init step",
            ".multinomials": "LogLinearMultinomial normalise",
            ".posterior": "AtMost Exactly Features Groups Pair Projection Together bijective project_pair regularise",
            ".posterior.exponentiated": "exponentiated",
            ".posterior.project": "project",
            ".risk": "Risk mbr",
        },
    )

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
