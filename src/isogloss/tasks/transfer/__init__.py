"""What is known of one side, carried to the other through links."""

from isogloss.tasks.transfer.annotation import project_annotation
from isogloss.tasks.transfer.edges import Density, ProjectedEdges, project_edges, project_posteriors
from isogloss.tasks.transfer.markup import Guess, Placement, Tag, place_markup, strip_markup, transfer_markup

__all__ = [
    "Density",
    "Guess",
    "Placement",
    "ProjectedEdges",
    "Tag",
    "place_markup",
    "project_annotation",
    "project_edges",
    "project_posteriors",
    "strip_markup",
    "transfer_markup",
]
