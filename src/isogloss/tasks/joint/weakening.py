"""Weaker copies of models: what multiview learning asks for beside the full ones."""

from __future__ import annotations

from typing import Any

from isogloss.tasks.extract import EntityTagger

__all__ = ["without_words"]

UNSEEN: dict[type, tuple[str, ...]] = {EntityTagger: ("form", "word")}


def without_words(model: Any) -> Any:
    """The model without the weights of what looks at whole words: nothing has to be learnt for it."""
    return model.blind_to(UNSEEN[type(model)])
