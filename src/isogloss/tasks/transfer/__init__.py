"""What is known of one side, carried across links: markup, tags, trees, and parsers that learn from them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.tasks.transfer.annotation import project_annotation
    from isogloss.tasks.transfer.edges import Density, ProjectedEdges, project_edges, project_posteriors
    from isogloss.tasks.transfer.markup import Guess, Placement, Tag, place_markup, strip_markup, transfer_markup
    from isogloss.tasks.transfer.parser import TransferredParser
    from isogloss.tasks.transfer.several import DelexicalisedParser

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

_NAMES = {
    "annotation": "project_annotation",
    "edges": "Density ProjectedEdges project_edges project_posteriors",
    "markup": "Guess Placement Tag place_markup strip_markup transfer_markup",
    "parser": "TransferredParser",
    "several": "DelexicalisedParser",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"isogloss.tasks.transfer.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isogloss.tasks.transfer' has no attribute {name!r}")
