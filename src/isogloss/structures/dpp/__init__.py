"""Determinantal point processes: sets of items, or of paths through a graph, that are good and unlike each other."""

from __future__ import annotations

from isogloss.structures.dpp.graph import PathGraph, Paths
from isogloss.structures.dpp.items import Dpp
from isogloss.structures.dpp.paths import PathDpp, enough_dimensions, projected
from isogloss.structures.dpp.spectrum import Spectrum, log_elementary

__all__ = ["Dpp", "PathDpp", "PathGraph", "Paths", "Spectrum", "enough_dimensions", "log_elementary", "projected"]
