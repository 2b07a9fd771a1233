"""Saved models: a folder of `model.safetensors` (the arrays) and `model.json` (the header); never pickle.

The header names the format and its version, the kind of model, its options, what else the model remembers, every array
with its shape, and the SHA-256 of the arrays' file. It holds no dates and no machine names: the same model is the same
bytes. A folder is written beside its place and renamed, so that a reader sees the old model or the new one, whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss._version import __version__
from isogloss.data.ragged import Ragged
from isogloss.errors import DataError, ModelError, UsageError
from isogloss.places import own_mark, prove, refusal, remove_leftovers, sync

__all__ = [
    "Saved", "data_hash", "discard", "load", "named", "pack_strings", "prefixed", "read", "read_header", "reading",
    "save", "unpack_strings", "unprefixed",
]  # fmt: skip

FORMAT = "isogloss-model"
FORMAT_VERSION = 2
"""Version 2: keys of features are mixed from names of templates, the same way in all tasks."""
CHECKPOINT = "checkpoint"
HEADER = "model.json"
ARRAYS = "model.safetensors"

KINDS = {
    "adapt.documents": "isogloss.tasks.adapt:DocumentClassifier",
    "align.hmm": "isogloss.tasks.align:HMMAligner",
    "align.itg": "isogloss.tasks.align:ItgAligner",
    "align.matching": "isogloss.tasks.align:MatchingAligner",
    "align.model1": "isogloss.tasks.align:Model1Aligner",
    "align.model2": "isogloss.tasks.align:Model2Aligner",
    "align.quadratic": "isogloss.tasks.align:QuadraticAligner",
    "align.segmented": "isogloss.tasks.align:SegmentedAligner",
    "constituency.span": "isogloss.tasks.parse.constituency:ConstituencyParser",
    "extract.entities": "isogloss.tasks.extract:EntityTagger",
    "extract.relations": "isogloss.tasks.extract:RelationExtractor",
    "extract.roles": "isogloss.tasks.extract:RoleLabeller",
    "joint.bilingual": "isogloss.tasks.joint:BilingualParser",
    "joint.constituents": "isogloss.tasks.joint:JointConstituentAligner",
    "joint.multiview": "isogloss.tasks.joint:Multiview",
    "joint.pairs": "isogloss.tasks.joint:JointParserAligner",
    "parse.delexicalised": "isogloss.tasks.transfer:DelexicalisedParser",
    "parse.dependency": "isogloss.tasks.parse:DependencyParser",
    "parse.induced": "isogloss.tasks.parse:GrammarInducer",
    "parse.joint": "isogloss.tasks.parse:JointMorphologyParser",
    "parse.transferred": "isogloss.tasks.transfer:TransferredParser",
    "parse.restyled": "isogloss.tasks.parse:StyleAdapter",
    "rank.pairs": "isogloss.tasks.documents.ranking:BilingualRanker",
    "segment.bilingual": "isogloss.tasks.segment:BilingualSegmenter",
    "segment.morphemes": "isogloss.tasks.segment:Segmenter",
    "tag.crf": "isogloss.tasks.tag:CrfTagger",
    "tag.dictionary": "isogloss.tasks.tag:DictionaryTagger",
    "tag.graph": "isogloss.tasks.tag:GraphTagger",
    "tag.projected": "isogloss.tasks.tag:ProjectedTagger",
    "tag.several": "isogloss.tasks.tag:Tagger",
    "threads.paths": "isogloss.tasks.documents.threads:Threads",
    "topics.polylingual": "isogloss.tasks.documents:PolylingualTopics",
    "translate.phrases": "isogloss.tasks.translate:Translator",
}
"""Where the class of each kind lives, as `module:class`; its `_from_saved` makes the object."""

LEAST_VERSIONS = dict.fromkeys(
    (
        "parse.delexicalised",
        "parse.dependency",
        "parse.joint",
        "parse.restyled",
        "parse.transferred",
        "tag.crf",
        "tag.graph",
        "tag.projected",
        "tag.several",
        CHECKPOINT,
    ),
    2,
)
"""Kinds of which older versions of the format are refused: their weights belong to features with other keys."""

_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_DTYPES = _INTEGERS | {"bool", "float16", "float32", "float64"}

Place = str | os.PathLike[str]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Saved:
    """What a model folder holds.

    `kind` says which class can read the rest, such as ``align.hmm``; `options` are the arguments of its constructor;
    `arrays` the parameters, with the dtypes and shapes they were saved with; `meta` what else the model remembers, such
    as the hash of its data. `version` is that of the format, `written_by` that of Isogloss.
    """

    kind: str
    options: dict[str, Any]
    arrays: Arrays
    meta: dict[str, Any]
    version: int = FORMAT_VERSION
    written_by: str = __version__
    inside: Mapping[str, Saved] = field(default_factory=dict)
    """Models that lie in the folder of this one, by the names of their folders: they are models of their own, which
    are written with it and not read with it."""


# --- writing ----------------------------------------------------------------------------------------------------------


def save(
    path: Place,
    *,
    kind: str,
    options: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    meta: Mapping[str, Any] | None = None,
    inside: Mapping[str, Saved] | None = None,
) -> None:
    """Write a model folder, whole or not at all.

    A model that is already there stays until the new one is complete on the disk. A folder that holds anything but a
    saved model is never replaced.

    Parameters
    ----------
    path : str or path
        The folder; the one it lies in must exist.
    kind : str
    options, meta : mapping
        Anything JSON can say; NumPy scalars become numbers, tuples become lists.
    arrays : mapping of str to array
        Booleans, integers and floats of any shape.
    inside : mapping of str to Saved, optional
        Models of their own that are to lie in the folder, by the names of their folders.

    Raises
    ------
    DataError
        The disk is full.
    UsageError
        The place cannot be written, or holds something else.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = tempfile.mkdtemp() + "/toy.model"
    >>> save(folder, kind="toy", options={"alpha": 0.1}, arrays={"counts": np.arange(3)})
    >>> read(folder).arrays["counts"].tolist(), read(folder).options
    ([0, 1, 2], {'alpha': 0.1})
    """
    target = Path(os.path.realpath(path))
    _check_replaceable(target)
    own = Saved(kind, dict(options), dict(arrays), dict(meta or {}), inside=dict(inside or {}))
    fresh = target.with_name(f".{target.name}.new-{own_mark()}")
    try:
        _check_room(target, _size_of(own))
        remove_leftovers(target.parent, f".{target.name}.new-")
        fresh.mkdir()
        _write_all(fresh, own)
        _put_in_place(fresh, target)
    except OSError as error:
        raise _trouble(target, error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # what is left of a failure, or the model that was replaced


def _size_of(saved: Saved) -> int:
    return sum(array.nbytes for array in saved.arrays.values()) + sum(map(_size_of, saved.inside.values()))


def _write_all(folder: Path, saved: Saved) -> None:
    """A model, and in folders those that lie in it."""
    for name, other in saved.inside.items():
        (folder / name).mkdir()
        _write_all(folder / name, other)
    storable = {name: _storable(name, array) for name, array in sorted(saved.arrays.items())}
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "isogloss": __version__,
        "kind": saved.kind,
        "options": saved.options,
        "meta": saved.meta,
        "arrays": {name: _describe(array) for name, array in storable.items()},
    }
    if saved.inside:
        header["inside"] = sorted(saved.inside)
    _write(folder, header, storable)


def discard(path: Place) -> None:
    """Delete a saved model or checkpoint; nothing happens when there is none, and nothing else is ever deleted."""
    folder = Path(os.path.realpath(path))
    if folder.exists():
        _check_replaceable(folder)
        shutil.rmtree(folder, ignore_errors=True)


def check_place(path: Place) -> None:
    """Before the work: refuse a place where saving a folder would fail, or would destroy what is not ours."""
    target = Path(os.path.realpath(path))
    _check_replaceable(target)
    remove_leftovers(target.parent, f".{target.name}.new-")
    prove(path)


def _check_replaceable(target: Path) -> None:
    """Refuse to replace what is not a saved model, or cannot be renamed."""
    if not os.path.lexists(target):
        return
    if os.path.ismount(target):
        raise UsageError(f"{target}: a disk is mounted here, which cannot be replaced. Give the name of a folder in it")
    if not target.is_dir():
        raise UsageError(f"{target}: this is a file, and a saved model is a folder. Give another name")
    found = sorted(os.listdir(target))
    strangers = [name for name in found if name not in (HEADER, ARRAYS)]
    try:
        header = json.loads((target / HEADER).read_bytes()) if found else {}
        own = [name for name in strangers if name in header.get("inside", ()) and _is_model(target / name)]
        strangers = [name for name in strangers if name not in own]
        ours = not found or (not strangers and header["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        ours = False
    if not ours:
        names = ", ".join((strangers or found)[:3])
        raise UsageError(
            f"{target}: the folder holds something else than a saved model ({names}), which saving would replace. "
            "Give the name of a new folder, or move that away"
        )


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a saved model and nothing else."""
    try:
        names = {entry.name for entry in folder.iterdir()}
        return names <= {HEADER, ARRAYS} and json.loads((folder / HEADER).read_bytes())["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _storable(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.name not in _DTYPES:
        raise TypeError(f"array {name!r} is of {array.dtype}, which a saved model cannot hold. Make numbers of it")
    # Little-endian and C order: the file then depends on the values alone, and safetensors reads raw memory.
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _describe(array: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.name, "shape": list(array.shape)}


def _plain(value: Any) -> Any:
    """What `json` asks for when it meets something it does not know."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a saved model's header cannot hold {value!r} ({type(value).__name__})")


def as_json(header: Mapping[str, Any]) -> str:
    return json.dumps(header, sort_keys=True, indent=1, default=_plain) + "\n"


def _check_room(target: Path, size: int) -> None:
    """Say at once that a model will not fit, rather than after filling the disk for everybody."""
    free = shutil.disk_usage(target.parent).free
    if size > free:
        raise DataError(
            f"{target}: the disk is full: the model takes {_megabytes(size)} and {_megabytes(free)} are free. "
            "Nothing was written. Make room, or save elsewhere"
        )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _write(folder: Path, header: dict[str, Any], arrays: Arrays) -> None:
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    text = as_json(header)  # first, so that options which JSON cannot say fail before the disk is touched
    file = folder / ARRAYS
    file.touch()
    mode = stat.S_IMODE(file.stat().st_mode)  # what the user's umask gives; safetensors makes files private
    try:
        save_file(arrays, file)
        file.chmod(mode)
    except SafetensorError as error:  # safetensors wraps the operating system's errors in words
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]) if number else 0, str(error)) from error
    _sync(file)
    text = as_json({**header, "bytes": file.stat().st_size, "sha256": _sha256_of(file)})
    (folder / HEADER).write_text(text, encoding="utf-8", newline="\n")
    _sync(folder / HEADER)
    _sync(folder)


def _sync(path: Path) -> None:
    """Ask that a file or folder be on the disk before we go on."""
    if os.name != "posix" and path.is_dir():
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)  # Windows syncs what it may write alone
    try:
        sync(handle)
    finally:
        os.close(handle)


def _sha256_of(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}.previous")


def _put_in_place(fresh: Path, target: Path) -> None:
    """Rename `fresh` to `target`; an older model then lies at `fresh`, or nowhere."""
    previous = _previous(target)
    if not target.exists():
        os.rename(fresh, target)
    elif not _exchange(fresh, target):
        shutil.rmtree(previous, ignore_errors=True)
        os.rename(target, previous)
        try:
            os.rename(fresh, target)
        except BaseException:
            os.rename(previous, target)
            raise
    shutil.rmtree(previous, ignore_errors=True)
    _sync(target.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, where the system can: `renameat2` of Linux."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _trouble(target: Path, error: OSError) -> DataError | UsageError:
    """The operating system's refusal, in the user's words."""
    refused = refusal(target, error)
    return type(refused)(f"{refused}. The older model there is as it was") if target.exists() else refused


# --- reading ----------------------------------------------------------------------------------------------------------


def read_header(path: Place, *, kind: str | None = None) -> dict[str, Any]:
    """The header of a saved model, checked; the arrays are not touched.

    Raises
    ------
    UsageError
        There is nothing at `path`.
    ModelError
        What is there is damaged, foreign, too new, or of another kind.
    """
    folder = _folder(path)
    file = folder / HEADER
    if not file.is_file():
        raise ModelError(f"{folder}: there is no {HEADER} in this folder, so it is no saved model. Is the name right?")
    try:
        header = json.loads(file.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: this is not JSON ({error}). The file is damaged: save the model again") from error
    except OSError as error:
        raise ModelError(f"{file}: cannot be read ({error.strerror})") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelError(f"{file}: this is not the header of an Isogloss model. Give a folder that Isogloss saved")
    _check_header(file, header)
    _check_age(folder, header)
    if kind is not None and header["kind"] != kind:
        raise ModelError(f"{folder}: this holds {_article(header['kind'])}, where {_article(kind)} is wanted")
    return header


def _folder(path: Place) -> Path:
    folder = Path(path)
    if folder.name in (HEADER, ARRAYS) and folder.is_file():
        folder = folder.parent
    if folder.is_dir():
        return folder
    if os.path.lexists(folder):
        raise ModelError(f"{folder}: this is a file, and a saved model is a folder. Give a folder that Isogloss saved")
    previous = _previous(folder)
    hint = f" A save was cut short: the model before it is {previous}, rename it" if previous.is_dir() else ""
    raise UsageError(f"{folder}: there is no such saved model.{hint or ' Is the name right?'}")


def _check_header(file: Path, header: dict[str, Any]) -> None:
    version = header.get("version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ModelError(
            f"{file}: written by Isogloss {header.get('isogloss', '?')} in version {version} of the format; "
            f"Isogloss {__version__} reads up to version {FORMAT_VERSION}. Update Isogloss"
        )
    expected = {"version": int, "isogloss": str, "kind": str, "options": dict, "meta": dict}
    expected |= {"arrays": dict, "bytes": int, "sha256": str}
    for key, type_ in expected.items():
        if not isinstance(header.get(key), type_):
            raise ModelError(f"{file}: {key!r} is missing or not as it should be. The header is damaged: save again")


def _check_age(folder: Path, header: dict[str, Any]) -> None:
    """Refuse what would load but mean something else in this version."""
    kind, version = header["kind"], header["version"]
    if version < LEAST_VERSIONS.get(kind, 1):
        remedy = "Train from the beginning, without resuming" if kind == CHECKPOINT else "Train it again"
        raise ModelError(
            f"{folder}: {_article(kind)}, written by Isogloss {header['isogloss']} in version {version} of the format, "
            f"in which features had other keys than they have now: its weights would go astray. {remedy}, with this "
            "version of Isogloss"
        )


def _article(kind: str) -> str:
    return "a checkpoint of training" if kind == CHECKPOINT else f"a model of kind {kind!r}"


def read(path: Place, *, kind: str | None = None, mapped: bool = False) -> Saved:
    """Read a model folder; what is damaged, foreign, or not of `kind` is refused.

    Parameters
    ----------
    path : str or path
    kind : str, optional
    mapped : bool
        Leave the arrays in their file: the operating system reads the pages that are looked at, and forgets them where
        memory is short. Nothing is ever written to the file.

    Raises
    ------
    UsageError
        There is nothing at `path`.
    ModelError
        The folder is not a whole saved model of a version we read; the message says which file and what is wrong.
    """
    header = read_header(path, kind=kind)
    file = _folder(path) / ARRAYS
    arrays = _read_arrays(file, header, mapped)
    found = {name: _describe(array) for name, array in arrays.items()}
    for name in sorted(found.keys() | header["arrays"].keys()):
        listed, there = header["arrays"].get(name), found.get(name)
        if listed != there:
            raise ModelError(
                f"{file}: array {name!r} is {_words(there)} but {HEADER} says {_words(listed)}. "
                "The two files do not belong together: save the model again"
            )
    return Saved(header["kind"], header["options"], arrays, header["meta"], header["version"], header["isogloss"])


def _words(description: Any) -> str:
    if not isinstance(description, dict):
        return "missing"
    return f"{description.get('dtype')}{description.get('shape')}"


def _read_arrays(file: Path, header: dict[str, Any], mapped: bool = False) -> Arrays:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    remedy = "Copy the whole folder again, or train again"
    try:
        size = file.stat().st_size
        if size != header["bytes"]:
            raise ModelError(f"{file}: {size:,} bytes where {header['bytes']:,} were saved. It was cut. {remedy}")
        if _sha256_of(file) != header["sha256"]:
            raise ModelError(f"{file}: its contents have changed since it was saved (checksum differs). {remedy}")
        loaded: Arrays = _mapped(file) if mapped else load_file(file)
    except FileNotFoundError as error:
        raise ModelError(f"{file}: missing, though {HEADER} is there. {remedy}") from error
    except (OSError, SafetensorError, *_MALFORMED) as error:  # types and offsets of the file may be anything
        raise ModelError(f"{file}: cannot be read ({error}). {remedy}") from error
    return {name: array if array.flags.writeable else array.copy() for name, array in loaded.items()}


_NAMES = {"BOOL": "bool", **{f"{a}{n}": f"{b}{n}" for a, b in (("I", "int"), ("U", "uint"), ("F", "float"))
                             for n in (8, 16, 32, 64)}}  # fmt: skip
"""What safetensors calls types of numbers."""


def _mapped(file: Path) -> Arrays:
    """The arrays of a file of safetensors, which stay in it; the format is a header in JSON behind its length."""
    with open(file, "rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
    found: Arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = np.dtype(_NAMES[entry["dtype"]]), tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        if end - begin != dtype.itemsize * math.prod(shape):
            raise ValueError(f"array {name!r} has another size than its shape")
        if end == begin:
            found[name] = np.zeros(shape, dtype)
            continue
        at = np.memmap(file, dtype, "c", 8 + size + begin, shape)  # kernels are compiled for arrays that may be written
        found[name] = at.view(np.ndarray)
    return found


def load(path: Place, *, mapped: bool = False) -> Any:
    """The object that was saved at `path`, whatever its kind; `mapped` as for `read`.

    Raises
    ------
    UsageError, ModelError
        As `read`; also when the kind is not one that can be loaded.
    """
    header = read_header(path)
    kind = header["kind"]
    if kind == CHECKPOINT:
        raise ModelError(f"{path}: this is a checkpoint of training, not a finished model. Continue it with --resume")
    if kind not in KINDS:
        raise ModelError(
            f"{path}: a model of kind {kind!r}, written by Isogloss {header['isogloss']}; "
            f"Isogloss {__version__} knows {', '.join(sorted(KINDS))}. Update Isogloss"
        )
    module, name = KINDS[kind].split(":")
    saved = read(path, kind=kind, mapped=mapped)
    with named(path):
        return getattr(import_module(module), name)._from_saved(saved)


_MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What Python raises when data are of another type, size or value than the code expects."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Around the making of an object from a saved model: whatever its contents lead to becomes a `ModelError`.

    >>> with reading("the saved toy"):  # doctest: +ELLIPSIS
    ...     {}["weights"]
    Traceback (most recent call last):
    ...
    isogloss.errors.ModelError: the saved toy is damaged or of another version (KeyError: 'weights'). Copy it again, ...
    """
    try:
        yield
    except (UsageError, *_MALFORMED) as finding:
        words = str(finding) if isinstance(finding, UsageError) else f"{type(finding).__name__}: {finding}"
        raise ModelError(
            f"{what} is damaged or of another version ({words}). Copy it again, or train it again"
        ) from finding


@contextmanager
def named(path: Place) -> Iterator[None]:
    """What goes wrong with a saved model is said with the name of its folder."""
    try:
        yield
    except ModelError as problem:
        raise ModelError(f"{os.fspath(path)}: {problem}") from None


# --- strings and hashes -----------------------------------------------------------------------------------------------


def prefixed(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays of a part of a model, by names that say so.

    >>> list(prefixed("labels.", {"weights": np.zeros(3)}))
    ['labels.weights']
    """
    return {prefix + name: array for name, array in arrays.items()}


def unprefixed(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Of the arrays of a model those of a part of it, by the part's own names: the inverse of `prefixed`."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def hold(name: str, model: Any) -> tuple[Arrays, Any]:
    """Arrays and meta of an estimator that another model carries along under a name; `held` makes it again.

    Nothing, and None, where there is none to carry.
    """
    if model is None:
        return {}, None
    made = model._to_saved()
    return prefixed(f"{name}.", made.arrays), {"kind": made.kind, "options": made.options, "meta": made.meta}


def held(name: str, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any], *classes: Any) -> Any:
    """The estimator that `hold` took apart, which should be of one of these classes."""
    known = {one._kind: one for one in classes}
    if about["kind"] not in known:
        raise ValueError(f"its {name} is of kind {about['kind']!r}, not {' or '.join(known)}")
    saved = Saved(about["kind"], dict(about["options"]), unprefixed(f"{name}.", arrays), dict(about["meta"]))
    return known[saved.kind]._from_saved(saved)


def pack_strings(strings: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Strings as arrays: string *i* is ``blob[offsets[i]:offsets[i + 1]]`` in UTF-8.

    Returns
    -------
    blob : uint8[n_bytes]
    offsets : int64[n_strings + 1]

    Examples
    --------
    >>> blob, offsets = pack_strings(["né", "", "a"])
    >>> offsets.tolist(), unpack_strings(blob, offsets)
    ([0, 3, 3, 4], ['né', '', 'a'])
    """
    # surrogatepass: words read from broken text with a lenient error handler come back as they went in
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(piece) for piece in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def unpack_strings(blob: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[str]:
    """The inverse of `pack_strings`; arrays that cannot come from it are refused with `ModelError`."""
    data, bounds = blob.tobytes(), offsets.tolist()
    if not bounds or bounds[0] != 0 or bounds[-1] != len(data) or np.any(np.diff(offsets) < 0):
        raise ModelError("a list of words in the saved model is damaged (offsets do not fit). Save the model again")
    try:
        return [str(data[a:b], "utf-8", "surrogatepass") for a, b in pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise ModelError(f"a list of words in the saved model is not UTF-8 ({error}). Save the model again") from error


Hashable = bytes | str | int | float | None | Ragged | NDArray[Any] | Sequence[str]


def data_hash(*parts: Hashable) -> str:
    """SHA-256 of data, the same on every machine and for every way the same values lie in memory.

    Parts may be bytes, strings, numbers, None, arrays, `Ragged` (a slice of rows hashes as its own copy would) and
    sequences of strings such as a `Vocabulary`. Order, dtype and shape matter; where one part ends matters too.

    Examples
    --------
    >>> data_hash("a", "b") == data_hash("ab"), data_hash(["a", "b"]) == data_hash(["a", "b"])
    (False, True)
    """
    digest = hashlib.sha256()
    for part in parts:
        for tag, payload in _pieces(part):
            size = payload.nbytes if isinstance(payload, np.ndarray) else len(payload)
            digest.update(f"{tag}:{size}:".encode())
            digest.update(np.ascontiguousarray(payload).data if isinstance(payload, np.ndarray) else payload)
    return digest.hexdigest()


def _pieces(part: Hashable) -> Iterable[tuple[str, bytes | NDArray[Any]]]:
    if isinstance(part, bytes):
        return [("bytes", part)]
    if isinstance(part, str):
        return [("str", part.encode("utf-8", "surrogatepass"))]
    if part is None or isinstance(part, int | float):
        return [(type(part).__name__, repr(part).encode())]
    if isinstance(part, Ragged):
        first, last = part.offsets[0], part.offsets[-1]
        return [("ragged", b""), *_pieces(part.values[first:last]), *_pieces(part.offsets - first)]
    if isinstance(part, np.ndarray):
        plain = _storable("hashed", part)
        return [(f"array {plain.dtype.name}{list(plain.shape)}", plain)]
    blob, offsets = pack_strings(part)
    return [("strings", b""), *_pieces(blob), *_pieces(offsets)]
