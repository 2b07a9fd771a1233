"""What multiview learning asks of a task: candidates, their nodes, and how nodes of two languages are seen."""

from isogloss.tasks.joint.views.base import Node, View
from isogloss.tasks.joint.views.names import NAMES

__all__ = ["VIEWS", "Node", "View"]

VIEWS: dict[str, View] = {"entities": NAMES}
"""By the name of the task."""
