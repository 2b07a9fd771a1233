"""Factor graphs: variables, factors that call other structures, and belief propagation between them."""

from __future__ import annotations

from isogloss.structures.factorgraph.batch import FactorGraphs
from isogloss.structures.factorgraph.beliefs import Beliefs
from isogloss.structures.factorgraph.graph import FactorGraph
from isogloss.structures.factorgraph.passing import ConvergenceReport
from isogloss.structures.factorgraph.variables import Factors, Variables

__all__ = ["Beliefs", "ConvergenceReport", "FactorGraph", "FactorGraphs", "Factors", "Variables"]
