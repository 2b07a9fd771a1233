"""Word alignment: links between the words of sentence pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.tasks.align.hmm import HMMAligner, Model1Aligner, Model2Aligner
    from isogloss.tasks.align.segmented import SegmentedAligner
    from isogloss.tasks.align.supervised.itg import ItgAligner
    from isogloss.tasks.align.supervised.matching import MatchingAligner
    from isogloss.tasks.align.supervised.quadratic import QuadraticAligner
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".hmm": "HMMAligner Model1Aligner Model2Aligner",
            ".segmented": "SegmentedAligner",
            ".supervised.itg": "ItgAligner",
            ".supervised.matching": "MatchingAligner",
            ".supervised.quadratic": "QuadraticAligner",
        },
    )

__all__ = [
    "HMMAligner",
    "ItgAligner",
    "MatchingAligner",
    "Model1Aligner",
    "Model2Aligner",
    "QuadraticAligner",
    "SegmentedAligner",
]
