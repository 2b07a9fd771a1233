"""What multiview learning asks of a task: candidates, their nodes, and how nodes of two languages are seen."""

from typing import Any

from isogloss.errors import ParameterError
from isogloss.tasks.joint.views.base import Nodes, View
from isogloss.tasks.joint.views.names import NAMES
from isogloss.tasks.joint.views.tags import TAGS
from isogloss.tasks.joint.views.trees import TREES

__all__ = ["VIEWS", "Nodes", "View", "view_of"]

VIEWS: dict[str, View] = {"entities": NAMES, "tag": TAGS, "parse": TREES}
"""By the name of the task."""


def view_of(model: Any) -> View:
    """The task of a model."""
    for view in VIEWS.values():
        if isinstance(model, view.classes()):
            return view
    known = ", ".join(one.__name__ for view in VIEWS.values() for one in view.classes())
    raise ParameterError(f"a model should be one of {known}, not {model!r:.60}")
