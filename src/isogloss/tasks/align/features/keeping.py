"""A `FeatureExtractor` as plain arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data import Vocabulary
from isogloss.layout import Layout, Numbers, Offsets, Strings, check, texts
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

_WORDS: Layout = {
    "words/source_frequent": Strings("n", distinct=True),
    "words/target_frequent": Strings("m", distinct=True),
}
_DICTIONARY: Layout = {
    "words/source_dictionary": Strings("n", distinct=True),
    "words/target_dictionary": Strings("m", distinct=True),
    "dictionary/rows": Offsets("n", "k"),
    "dictionary/columns": Numbers("int32", "k", least=0, below="m"),
}


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
    for judge, habits in extractor._habits.items():
        found |= {f"{_place_of(judge)}{name}": array for name, array in habits.arrays().items()}
    words = dict(zip(("source_frequent", "target_frequent"), extractor._frequent, strict=True))
    if extractor._dictionary is not None:
        words |= {"source_dictionary": extractor._dictionary.source, "target_dictionary": extractor._dictionary.target}
        found |= {"dictionary/rows": extractor._dictionary.rows, "dictionary/columns": extractor._dictionary.columns}
    for name, listed in words.items():
        found[f"words/{name}"], found[f"words/{name}_offsets"] = store.pack_strings(listed)
    return found


def _place_of(judge: str) -> str:
    """Before the names of arrays that are a judge's."""
    return f"habits_{judge}/" if judge else "habits/"


Kind = TypeVar("Kind", bound="FeatureExtractor")


def restored(
    kind: type[Kind], arrays: Mapping[str, NDArray[Any]], extra: Sequence[Callable[..., Any]], threads: int | None
) -> Kind:
    """What `arrays_of` gave."""

    with store.reading("what this model knows of its features"):
        header = json.loads(arrays["header"].tobytes())
        options = {"fertile_words": 0} | header["options"]  # earlier versions had no such words
        made = kind(**options, extra=extra, threads=threads)
        made.check_params()
        made._extra_names = [texts(group, "extra") for group in header["extra"]]
        made.statistics_ = Statistics.from_arrays(store.unprefixed("counts/", arrays))
        made.aligners_ = {
            name: _aligner(made, name, header["aligners"][name], store.unprefixed(f"{name}/", arrays))
            for name in made.aligner_names
        }
        sizes = len(made.statistics_.source_words), len(made.statistics_.target_words)
        if "blocks" in made.sets:
            made._phrases = Phrases.from_arrays(store.unprefixed("phrases/", arrays), *sizes)
        if "pairs" in made.sets and made._judge is not None:
            known = {judge: store.unprefixed(_place_of(judge), arrays) for judge in made._judges}
            made._habits = {  # earlier versions had one judge
                judge: LinkHabits.from_arrays(own, *sizes) for judge, own in known.items() if own or not judge
            }
        words = check(arrays, _WORDS, "the frequent words of this model")
        made._frequent = [Vocabulary(words[name]) for name in _WORDS]
        made._dictionary = _dictionary(arrays)
    return made


def _aligner(
    extractor: FeatureExtractor, name: str, told: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> HMMAligner:
    model = "hmm" if name.startswith(STEM) else name
    meta = {"threshold": told["threshold"]}
    found = ALIGNERS[model]._from_saved(store.Saved(f"align.{model}", told["options"], dict(arrays), meta))
    found.threads = extractor.threads
    if found.options_["max_length"] < extractor.max_length:
        raise ValueError(f"{name} passes over pairs that have features")
    return found


def _dictionary(arrays: Mapping[str, NDArray[Any]]) -> Dictionary | None:
    if "dictionary/rows" not in arrays:
        return None
    found = check(arrays, _DICTIONARY, "the dictionary of this model")
    source, target, rows, columns = (found[name] for name in _DICTIONARY)
    return Dictionary(Vocabulary(source), Vocabulary(target), rows, columns)
