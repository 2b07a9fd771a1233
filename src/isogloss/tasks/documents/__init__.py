"""What is learnt of documents: topics across languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isogloss.lazily import lazily

if TYPE_CHECKING:
    from isogloss.tasks.documents.topics import PolylingualTopics
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            ".topics": "PolylingualTopics",
        },
    )

__all__ = ["PolylingualTopics"]
