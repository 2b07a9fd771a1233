"""What a run was given besides its texts, so that an interrupted one only goes on with the same."""

from __future__ import annotations

from typing import Any

from isogloss import store

__all__ = ["hash_of_model"]


def hash_of_model(model: Any) -> str | None:
    """What a model that has learnt is told apart by: all that would be saved of it. None without a model.

    Examples
    --------
    >>> from isogloss.data import Mentions
    >>> from isogloss.tasks.extract import EntityTagger
    >>> text = Mentions.of([("Ada left London".split(), [(0, 1, "PER"), (2, 3, "LOC")])] * 5)
    >>> one, two, other = (EntityTagger(iterations=n).fit(text) for n in (2, 2, 3))
    >>> hash_of_model(one) == hash_of_model(two), hash_of_model(one) == hash_of_model(other), hash_of_model(None)
    (True, False, None)
    """
    if model is None:
        return None
    made = model._to_saved()
    arrays = [part for name in sorted(made.arrays) for part in (name, made.arrays[name])]
    return store.data_hash(made.kind, store.as_json(made.options), store.as_json(made.meta), *arrays)
