"""Aligners that learn from hand-aligned sentence pairs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.align.supervised.base import SupervisedAligner
    from isogloss.tasks.align.supervised.choosing import Choice, choose_aligner
    from isogloss.tasks.align.supervised.itg import ItgAligner
    from isogloss.tasks.align.supervised.matching import MatchingAligner
    from isogloss.tasks.align.supervised.quadratic import QuadraticAligner
    from isogloss.tasks.align.supervised.validation import cross_validate, learning_curve

__all__ = [
    "Choice",
    "ItgAligner",
    "MatchingAligner",
    "QuadraticAligner",
    "SupervisedAligner",
    "choose_aligner",
    "cross_validate",
    "learning_curve",
]

_HOMES = {
    "Choice": "choosing",
    "ItgAligner": "itg",
    "MatchingAligner": "matching",
    "QuadraticAligner": "quadratic",
    "SupervisedAligner": "base",
    "choose_aligner": "choosing",
    "cross_validate": "validation",
    "learning_curve": "validation",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
