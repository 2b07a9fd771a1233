"""Models of morphemes as arrays of a saved model, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.layout import Layout, Numbers, Strings, check, integer, number, vector
from isogloss.store import pack_strings
from isogloss.tasks.segment.morphemes import MODELS, MorphemeModel, Morphemes, MorphemeSettings, Spelling, Transitions
from isogloss.tasks.segment.types import Substrings

__all__ = ["model_from_saved", "model_to_saved"]

_FLOATS = ("base_weight", "shared_weight", "boundary_weight", "variance", "length_penalty")


def model_to_saved(model: MorphemeModel) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays, and what else is remembered."""
    blob, offsets = pack_strings(model.alphabet)
    arrays = {"alphabet": blob, "alphabet_offsets": offsets, **model.substrings.to_arrays()}
    arrays |= dict(model.params._asdict()) | {"spelling": model.spelling.letters}
    meta = {"settings": asdict(model.settings), "stop": model.spelling.stop, "trace": model.trace.tolist()}
    return arrays, meta


def model_from_saved(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> MorphemeModel:
    """The inverse; what is wrong with it is refused."""
    settings = _settings(meta["settings"])
    k = settings.n_labels
    layout: Layout = {
        "alphabet": Strings("alphabet", distinct=True),
        "parents": Numbers("int32", "strings", least=-1, below="strings"),
        "letters": Numbers("int32", "strings", least=0),
        "table": Numbers("float64", ("strings", k), logs=True),
        "unseen": Numbers("float64", k, logs=True),
        "ends": Numbers("float64", (2, 3, k), logs=True),
        "steps": Numbers("float64", (2, k + 1, k + 1), logs=True),
        "weights": Numbers("float64", Transitions(settings).n_weights),
        "spelling": Numbers("float64", "alphabet + 1", logs=True),
    }
    own = check(arrays, layout, "the morphemes of the saved model")
    alphabet = tuple(own["alphabet"])
    n_letters = max(1, len(alphabet))
    if (own["parents"] >= np.arange(len(own["parents"]))).any() or (own["letters"] >= n_letters).any():
        raise ValueError("substrings are not in order, or have letters that are not there")
    substrings = Substrings(own["parents"], own["letters"], n_letters, settings.longest)
    params = Morphemes(*(own[name] for name in Morphemes._fields))
    spelling = Spelling(own["spelling"], float(number(meta["stop"], "stop")))
    return MorphemeModel(settings, alphabet, substrings, params, spelling, vector(meta["trace"], "trace"))


def _settings(given: Mapping[str, Any]) -> MorphemeSettings:
    made = MorphemeSettings(**given)
    for name in _FLOATS:
        number(getattr(made, name), name)
    integer(made.longest, "longest", least=1, most=64)
    integer(made.iterations, "iterations", least=0)
    if made.model not in MODELS or not isinstance(made.prefix_may_end, bool) or not isinstance(made.exact, bool):
        raise ValueError(f"settings of morphemes are {given}")
    return made
