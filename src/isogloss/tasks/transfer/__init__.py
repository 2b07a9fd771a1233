"""What is known of one side, carried across links: markup, tags, trees, and parsers that learn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.tasks.transfer.annotation import project_annotation
    from isogloss.tasks.transfer.edges import Density, ProjectedEdges, project_edges, project_posteriors
    from isogloss.tasks.transfer.markup import Guess, Placement, Tag, place_markup, strip_markup, transfer_markup
    from isogloss.tasks.transfer.parser import TransferredParser
    from isogloss.tasks.transfer.several import DelexicalisedParser
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".annotation": "project_annotation",
            ".edges": "Density ProjectedEdges project_edges project_posteriors",
            ".markup": "Guess Placement Tag place_markup strip_markup transfer_markup",
            ".parser": "TransferredParser",
            ".several": "DelexicalisedParser",
        },
    )

__all__ = [
    "DelexicalisedParser",
    "Density",
    "Guess",
    "Placement",
    "ProjectedEdges",
    "Tag",
    "TransferredParser",
    "place_markup",
    "project_annotation",
    "project_edges",
    "project_posteriors",
    "strip_markup",
    "transfer_markup",
]
