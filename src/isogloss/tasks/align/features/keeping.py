"""A `FeatureExtractor` as plain arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data import Vocabulary
from isogloss.errors import ModelError
from isogloss.tasks.align.features.blocks import Phrases
from isogloss.tasks.align.features.neighbours import LinkHabits
from isogloss.tasks.align.features.statistics import Statistics
from isogloss.tasks.align.features.table import Dictionary
from isogloss.tasks.align.hmm import HMMAligner, Model1Aligner, Model2Aligner

if TYPE_CHECKING:
    from isogloss.tasks.align.features.extractor import FeatureExtractor

__all__ = ["ALIGNERS", "STEM", "arrays_of", "restored"]

ALIGNERS = {"hmm": HMMAligner, "model1": Model1Aligner, "model2": Model2Aligner}
STEM = "stem_"
"""Names of the HMMs over words cut short begin so."""


def arrays_of(extractor: FeatureExtractor) -> dict[str, NDArray[Any]]:
    """Everything but the user's functions."""
    header = {
        "options": extractor.options_,
        "extra": [list(group) for group in extractor._extra_names],
        "aligners": {
            name: {"options": aligner.options_, "threshold": aligner.threshold_}
            for name, aligner in extractor.aligners_.items()
        },
    }
    found: dict[str, NDArray[Any]] = {"header": np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)}
    found |= {f"counts/{name}": array for name, array in extractor.statistics_.arrays().items()}
    for name, aligner in extractor.aligners_.items():
        found |= {f"{name}/{key}": array for key, array in aligner._model.arrays().items()}
    found |= {
        f"phrases/{name}": array for name, array in (extractor._phrases.arrays() if extractor._phrases else {}).items()
    }
    found |= {
        f"habits/{name}": array for name, array in (extractor._habits.arrays() if extractor._habits else {}).items()
    }
    words = dict(zip(("source_frequent", "target_frequent"), extractor._frequent, strict=True))
    if extractor._dictionary is not None:
        words |= {"source_dictionary": extractor._dictionary.source, "target_dictionary": extractor._dictionary.target}
        found |= {"dictionary/rows": extractor._dictionary.rows, "dictionary/columns": extractor._dictionary.columns}
    for name, listed in words.items():
        found[f"words/{name}"], found[f"words/{name}_offsets"] = store.pack_strings(listed)
    return found


Kind = TypeVar("Kind", bound="FeatureExtractor")


def restored(
    kind: type[Kind], arrays: Mapping[str, NDArray[Any]], extra: Sequence[Callable[..., Any]], threads: int | None
) -> Kind:
    """What `arrays_of` gave."""

    def under(prefix: str) -> dict[str, NDArray[Any]]:
        return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}

    try:
        header = json.loads(arrays["header"].tobytes())
        made = kind(**header["options"], extra=extra, threads=threads)
        made._extra_names = [tuple(group) for group in header["extra"]]
        made.statistics_ = Statistics.from_arrays(under("counts/"))
        made.aligners_ = {}
        for name in (*ALIGNERS, *(f"{STEM}{n}" for n in made.stems)):
            if name in header["aligners"]:
                told, model = header["aligners"][name], "hmm" if name.startswith(STEM) else name
                meta = {"threshold": told["threshold"]}
                saved = store.Saved(f"align.{model}", told["options"], under(f"{name}/"), meta)
                made.aligners_[name] = ALIGNERS[model]._from_saved(saved)
                made.aligners_[name].threads = threads
        if phrases := under("phrases/"):
            made._phrases = Phrases.from_arrays(phrases)
        if habits := under("habits/"):
            made._habits = LinkHabits.from_arrays(habits)
        words = under("words/")
        listed = {
            name: Vocabulary(store.unpack_strings(words[name], words[f"{name}_offsets"]))
            for name in words
            if not name.endswith("_offsets")
        }
        made._frequent = [listed["source_frequent"], listed["target_frequent"]]
        made._dictionary = None
        if "source_dictionary" in listed:
            made._dictionary = Dictionary(
                listed["source_dictionary"], listed["target_dictionary"],
                arrays["dictionary/rows"], arrays["dictionary/columns"],
            )  # fmt: skip
    except (KeyError, ValueError, TypeError) as problem:
        raise ModelError(
            f"the features of this model cannot be read ({problem}). Was it damaged? Train it again"
        ) from None
    return made
