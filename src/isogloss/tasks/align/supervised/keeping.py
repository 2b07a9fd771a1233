"""The folder that a supervised aligner is saved in."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from isogloss import store
from isogloss.data import Bitext, Links
from isogloss.data.reading import Reading
from isogloss.errors import ModelError
from isogloss.layout import Layout, Numbers, Strings, check, integer, number
from isogloss.tasks.align.features import FeatureExtractor
from isogloss.tasks.align.supervised.training import Setting

if TYPE_CHECKING:
    from isogloss.tasks.align.supervised.base import SupervisedAligner

__all__ = ["check_names", "restore", "saved_of"]

Aligner = TypeVar("Aligner", bound="SupervisedAligner")
EXTRACTOR = "extractor."
"""Before the names of arrays that are the extractor's."""


_LEARNT: Layout = {
    "names.blob": Strings("n", offsets="names.offsets", distinct=True),
    "weights": Numbers("float64", "n", least=-1e6, below=1e6),
    "trace": Numbers("float64", "passes"),
}


def saved_of(aligner: SupervisedAligner) -> store.Saved:
    """What is kept: weights, statistics and what else there is to know."""
    blob, offsets = store.pack_strings(aligner._names)
    arrays = {f"{EXTRACTOR}{name}": array for name, array in aligner.extractor_.arrays().items()}
    arrays |= {"weights": aligner._weights, "names.blob": blob, "names.offsets": offsets, "trace": aligner.trace_}
    meta = {
        "temperature": aligner.temperature_, "threshold": aligner.threshold_, "setting": aligner.setting_.as_dict(),
        "n_gold": aligner.n_gold_, "tuning": aligner.tuning_, "trainer": aligner.trainer_,
        **Reading.to_meta(aligner.reading_),
    }  # fmt: skip
    return store.Saved(aligner._kind, aligner.kept_options, arrays, meta)


def restore(kind: type[Aligner], saved: store.Saved) -> Aligner:
    """The aligner that `saved_of` took apart; what cannot be one is refused with `ModelError`."""
    with store.reading("this model"):
        aligner = kind.of_options(saved.options)
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
    way = meta.get("trainer", aligner.trainer)  # versions before 0.2 had one trainer a model, among its options
    if way not in aligner.ways():
        raise ValueError(f"it was trained by {way!r}, and its options say {aligner.trainer}")
    aligner.take_way(way)
    given = meta["threshold"]
    aligner.threshold_ = None if given is None else number(given, "threshold", least=0.0, most=1.0)
    if list(aligner.links) != list(aligner.extractor_.links):
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
