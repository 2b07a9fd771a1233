"""Word alignment: links between the words of sentence pairs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.align.hmm import HMMAligner, Model1Aligner, Model2Aligner
    from isogloss.tasks.align.segmented import SegmentedAligner
    from isogloss.tasks.align.supervised.itg import ItgAligner
    from isogloss.tasks.align.supervised.matching import MatchingAligner
    from isogloss.tasks.align.supervised.quadratic import QuadraticAligner

__all__ = [
    "HMMAligner", "ItgAligner", "MatchingAligner", "Model1Aligner", "Model2Aligner", "QuadraticAligner",
    "SegmentedAligner",
]  # fmt: skip

_HOMES = {
    "ItgAligner": "supervised.itg",
    "MatchingAligner": "supervised.matching",
    "QuadraticAligner": "supervised.quadratic",
    "SegmentedAligner": "segmented",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"isogloss.tasks.align.{_HOMES.get(name, 'hmm')}"), name)
    raise AttributeError(f"module 'isogloss.tasks.align' has no attribute {name!r}")
