"""Aligners that learn from hand-aligned sentence pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.tasks.align.supervised.base import SupervisedAligner
    from isogloss.tasks.align.supervised.choosing import Choice, choose_aligner
    from isogloss.tasks.align.supervised.itg import ItgAligner
    from isogloss.tasks.align.supervised.matching import MatchingAligner
    from isogloss.tasks.align.supervised.quadratic import QuadraticAligner
    from isogloss.tasks.align.supervised.validation import cross_validate, learning_curve
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".base": "SupervisedAligner",
            ".choosing": "Choice choose_aligner",
            ".itg": "ItgAligner",
            ".matching": "MatchingAligner",
            ".quadratic": "QuadraticAligner",
            ".validation": "cross_validate learning_curve",
        },
    )

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
