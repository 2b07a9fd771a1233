"""What is kept of a supervised aligner: its options, checked, and the folder that a model is saved in."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from isogloss import store
from isogloss.data import Bitext, Links
from isogloss.data.reading import Reading
from isogloss.errors import ModelError, ParameterError
from isogloss.layout import Layout, Numbers, Strings, check, integer, number
from isogloss.tasks.align.features import FeatureExtractor
from isogloss.tasks.align.settings import MOST_WORDS
from isogloss.tasks.align.supervised.training import Setting

if TYPE_CHECKING:
    from isogloss.tasks.align.supervised.base import SupervisedAligner

__all__ = ["check_integer", "check_names", "check_options", "given_options", "restore", "save"]

Aligner = TypeVar("Aligner", bound="SupervisedAligner")
EXTRACTOR = "extractor."
"""Before the names of arrays that are the extractor's."""


_LEARNT: Layout = {
    "names.blob": Strings("n", offsets="names.offsets", distinct=True),
    "weights": Numbers("float64", "n", least=-1e6, below=1e6),
    "trace": Numbers("float64", "passes"),
}


def check_options(aligner: SupervisedAligner) -> None:
    """`ParameterError` for options that make no sense."""
    place = type(aligner).__name__
    for name, allowed in (
        ("trainer", aligner.TRAINERS), ("targets", ("latent", "fixed", "gold")), ("empty", ("skip", "learn")),
    ):  # fmt: skip
        if getattr(aligner, name) not in allowed:
            words = ", ".join(repr(word) for word in allowed)
            raise ParameterError(f"{place}: {name} should be one of {words}, not {getattr(aligner, name)!r}")
    for name in ("missed", "spurious", "regularisation"):
        value = getattr(aligner, name)
        if value is not None and not (isinstance(value, (int, float)) and 0 <= value < np.inf):
            raise ParameterError(f"{place}: {name} should be a number from 0 on, not {value!r}")
    whole = {"iterations": (1, 10**6), "max_length": (1, MOST_WORDS), "folds": (2, 10**6), "seed": (0, 2**63 - 1)}
    for name, (least, most) in whole.items():
        if getattr(aligner, name) is not None or name != "iterations":  # None is chosen by training
            check_integer(aligner, name, least, most)
    for name in ("tune", "lowercase"):
        if not isinstance(getattr(aligner, name), bool):
            raise ParameterError(f"{place}: {name} should be True or False, not {getattr(aligner, name)!r}")
    given = aligner.threshold
    if given is not None and given != "auto" and not (isinstance(given, (int, float)) and 0 < given < 1):
        raise ParameterError(f'{place}: threshold should be "auto" or between 0 and 1, not {given!r}')


def check_integer(aligner: SupervisedAligner, name: str, least: int, most: int) -> None:
    """`ParameterError` for an option that is no whole number from `least` to `most`."""
    value = getattr(aligner, name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        place = type(aligner).__name__
        raise ParameterError(f"{place}: {name} should be an integer from {least} to {most}, not {value!r}")


def given_options(aligner: SupervisedAligner) -> dict[str, Any]:
    """The options that a file can hold, as they were given."""
    return {name: getattr(aligner, name) for name in (*aligner._SHARED_OPTIONS, *aligner._OWN_OPTIONS)}


def save(aligner: SupervisedAligner, path: str | PathLike[str]) -> None:
    """Write a folder with weights, statistics and a header."""
    blob, offsets = store.pack_strings(aligner._names)
    arrays = {f"{EXTRACTOR}{name}": array for name, array in aligner.extractor_.arrays().items()}
    arrays |= {"weights": aligner._weights, "names.blob": blob, "names.offsets": offsets, "trace": aligner.trace_}
    meta = {
        "temperature": aligner.temperature_, "threshold": aligner.threshold_, "setting": aligner.setting_.as_dict(),
        "n_gold": aligner.n_gold_, "tuning": aligner.tuning_, **Reading.to_meta(aligner.reading_),
    }  # fmt: skip
    store.save(path, kind=f"align.{aligner._kind}", options=given_options(aligner), arrays=arrays, meta=meta)


def restore(kind: type[Aligner], saved: store.Saved) -> Aligner:
    """The aligner that `save` wrote; what cannot be one is refused with `ModelError`."""
    with store.reading("this model"):
        aligner = kind(**saved.options)
        own = store.unprefixed(EXTRACTOR, saved.arrays)
        aligner.extractor_ = FeatureExtractor.from_arrays(own, extra=aligner.extra)
        aligner.extractor_.reading_ = Reading.from_meta(saved.meta)
        _check_extra(aligner)
        _take(aligner, saved)
    return aligner


def _check_extra(aligner: SupervisedAligner) -> None:
    """`ModelError` unless the functions given are as many as the model was trained with, under the same names."""
    groups = aligner.extractor_._extra_names
    wanted = ", ".join(name for group in groups for name in group)
    given = [getattr(function, "__name__", "<") for function in aligner.extra]
    load = f"{type(aligner).__name__}.load(path, extra=[...])"
    if groups and not given:
        raise ModelError(
            f"this model has features of your own ({wanted}), and a file cannot hold their functions. Load it in "
            f"Python, with the functions in the order of training: {load}"
        )
    if len(given) != len(groups):
        raise ModelError(
            f"extra has {_functions(len(given))}, and the model was trained with {len(groups)}"
            + (f", for {wanted}. Give {load} the same ones in the same order" if groups else ": leave out extra")
        )
    own = {group[0] for group in groups if len(group) == 1}
    for name, group in zip(given, groups, strict=True):
        if name in own and group != (name,):  # others may have another name than their features
            raise ModelError(f"extra: {name} stands in the place of {', '.join(group)}. Give {load} the order {wanted}")


def _functions(number: int) -> str:
    return f"{number} function{'s'[: number != 1]}"


def _take(aligner: SupervisedAligner, saved: store.Saved) -> None:
    """What was learnt, checked."""
    meta = saved.meta
    found = check(saved.arrays, _LEARNT, "the weights of this model")
    aligner._names, aligner._weights = tuple(found["names.blob"]), found["weights"]
    aligner.trace_, aligner.tuning_ = found["trace"], meta["tuning"]
    aligner.setting_ = Setting.from_dict(meta["setting"])
    aligner.temperature_ = number(meta["temperature"], "temperature", least=1e-6, most=1e6)
    aligner.n_gold_ = integer(meta["n_gold"], "n_gold")
    given = meta["threshold"]
    aligner.threshold_ = None if given is None else number(given, "threshold", least=0.0, most=1.0)
    if aligner.links != aligner.extractor_.links:
        theirs, ours = (", ".join(names) or "nobody" for names in (aligner.extractor_.links, aligner.links))
        raise ValueError(f"its features are links by {theirs}, and its options say {ours}")


def check_names(aligner: SupervisedAligner) -> None:
    """Refuse weights that are not those of the features that the options and the extractor make of any text."""
    nothing = Bitext.of([])
    links = {name: Links.of([]) for name in aligner.links}
    with store.reading("this model"):
        wanted = aligner.parts(aligner.extractor_.transform(nothing, links)).names
        if wanted != aligner._names:
            lacking = next((name for name in wanted if name not in aligner._names), "some of its features")
            raise ValueError(f"it has {len(aligner._names)} weights for {len(wanted)} features, none for {lacking!r}")
