"""What is kept of a supervised aligner: its options, checked, and the folder that a model is saved in."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from isogloss import store
from isogloss.data.reading import Reading
from isogloss.errors import ModelError, ParameterError, UsageError
from isogloss.tasks.align.features import FeatureExtractor
from isogloss.tasks.align.supervised.training import Setting

if TYPE_CHECKING:
    from isogloss.tasks.align.supervised.base import SupervisedAligner

__all__ = ["check_options", "given_options", "restore", "save"]

Aligner = TypeVar("Aligner", bound="SupervisedAligner")
EXTRACTOR = "extractor."
"""Before the names of arrays that are the extractor's."""


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
    for name, least in (("iterations", 1), ("max_length", 1), ("folds", 2), ("seed", 0)):
        value = getattr(aligner, name)
        if value is None and name == "iterations":  # chosen by training
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ParameterError(f"{place}: {name} should be an integer from {least} on, not {value!r}")
    for name in ("tune", "lowercase"):
        if not isinstance(getattr(aligner, name), bool):
            raise ParameterError(f"{place}: {name} should be True or False, not {getattr(aligner, name)!r}")
    given = aligner.threshold
    if given is not None and given != "auto" and not (isinstance(given, (int, float)) and 0 < given < 1):
        raise ParameterError(f'{place}: threshold should be "auto" or between 0 and 1, not {given!r}')


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
    try:
        aligner = kind(**saved.options)
    except (UsageError, TypeError, ValueError) as problem:
        raise _damaged(f"its options make no sense: {problem}") from None
    try:
        own = {n.removeprefix(EXTRACTOR): a for n, a in saved.arrays.items() if n.startswith(EXTRACTOR)}
        aligner.extractor_ = FeatureExtractor.from_arrays(own, extra=aligner.extra)
        aligner.extractor_.reading_ = Reading.from_meta(saved.meta)
        _take(aligner, saved)
    except KeyError as problem:
        raise _damaged(f"{problem} is missing") from None
    except ModelError as problem:  # of the extractor's parts, which do not know where they come from
        raise _damaged(str(problem).partition(". ")[0]) from None
    except (UsageError, TypeError, ValueError, IndexError, AttributeError) as problem:
        raise _damaged(str(problem)) from None
    _check_extra(aligner)
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
    meta, arrays = saved.meta, saved.arrays
    aligner._names = tuple(store.unpack_strings(arrays["names.blob"], arrays["names.offsets"]))
    aligner._weights = np.asarray(arrays["weights"], np.float64)
    aligner.trace_, aligner.tuning_ = arrays["trace"], meta["tuning"]
    aligner.setting_ = Setting.from_dict(meta["setting"])
    aligner.temperature_, aligner.n_gold_ = float(meta["temperature"]), int(meta["n_gold"])
    aligner.threshold_ = None if meta["threshold"] is None else float(meta["threshold"])
    if aligner._weights.shape != (len(aligner._names),):
        raise ValueError(f"it has {aligner._weights.size} weights for {len(aligner._names)} features")
    if not np.isfinite(aligner._weights).all():
        raise ValueError("some of its weights are not numbers")
    if not 0 < aligner.temperature_ < np.inf:
        raise ValueError(f"its temperature is {aligner.temperature_}")
    if missing := sorted(set(aligner.extractor_.link_names) - set(aligner._names)):
        raise ValueError(f"it has no weight for {missing[0]!r}, which is among its features")
    if aligner.links != aligner.extractor_.links:
        theirs, ours = (", ".join(names) or "nobody" for names in (aligner.extractor_.links, aligner.links))
        raise ValueError(f"its features are links by {theirs}, and its options say {ours}")


def _damaged(finding: str) -> ModelError:
    return ModelError(
        f"this model cannot be read: {finding}. It was damaged, or written by another version: copy it again, or train "
        "again"
    )
