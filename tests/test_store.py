"""Saved models: what goes in comes out, and what is not whole is refused with words that help."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isogloss import __version__, store
from isogloss.data import Ragged, Vocabulary
from isogloss.errors import DataError, ModelError, UsageError
from isogloss.store import data_hash, discard, pack_strings, read, read_header, save, unpack_strings

DTYPES = ["?", "<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
ANY_ARRAY = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


def toy(path: Path, **changes: object) -> Path:
    """A small model with two arrays."""
    given = {"kind": "toy", "options": {"alpha": 0.1}, "meta": {"data": "abc"}}
    arrays = {"counts": np.arange(6.0).reshape(2, 3), "ids": np.array([1, 2], np.int32)}
    save(path, **{**given, "arrays": arrays, **changes})  # type: ignore[arg-type]
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


# --- round trips ------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(arrays=st.dictionaries(st.text(min_size=1, max_size=8).filter(lambda s: s != "__metadata__"), ANY_ARRAY))
def test_arrays_come_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, arrays: dict) -> None:
    folder = tmp_path_factory.mktemp("models") / "m"
    # surrogates cannot be names of arrays; they are a matter of words, tested below
    arrays = {name: a for name, a in arrays.items() if name.isprintable()}
    save(folder, kind="toy", options={}, arrays=arrays)
    back = read(folder).arrays
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (back[name].dtype, back[name].shape) == (array.dtype, array.shape)
        assert back[name].tobytes() == array.tobytes()  # NaN payloads and the sign of zero included
        assert back[name].flags.writeable


def test_layout_in_memory_does_not_matter(tmp_path: Path) -> None:
    table = np.arange(24, dtype=np.float32).reshape(4, 6)
    variants = [table, np.asfortranarray(table), np.repeat(table, 2, axis=0)[::2], table.astype(">f4")]
    for k, variant in enumerate(variants):
        save(tmp_path / str(k), kind="toy", options={}, arrays={"table": variant, "T": variant.T})
        assert np.array_equal(read(tmp_path / str(k)).arrays["T"], table.T)
    assert all(contents(tmp_path / str(k)) == contents(tmp_path / "0") for k in range(1, len(variants)))


def test_header_says_everything_and_bytes_are_deterministic(tmp_path: Path) -> None:
    toy(tmp_path / "a")
    toy(tmp_path / "b", arrays=dict(reversed(list(read(tmp_path / "a").arrays.items()))))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert sorted(contents(tmp_path / "a")) == ["model.json", "model.safetensors"]
    header = json.loads((tmp_path / "a" / "model.json").read_text())
    assert header["format"] == "isogloss-model" and header["version"] == 2 and header["isogloss"] == __version__
    assert header["arrays"] == {
        "counts": {"dtype": "float64", "shape": [2, 3]},
        "ids": {"dtype": "int32", "shape": [2]},
    }
    saved = read(tmp_path / "a")
    assert (saved.kind, saved.options, saved.meta, saved.version) == ("toy", {"alpha": 0.1}, {"data": "abc"}, 2)


def test_options_may_be_numpy_scalars_tuples_and_odd_floats(tmp_path: Path) -> None:
    options = {"n": np.int64(3), "p": np.float64(0.1), "t": (1, 2), "inf": -np.inf, "file": Path("x"), "w": "né\udcff"}
    toy(tmp_path / "m", options=options)
    assert read(tmp_path / "m").options == {
        "n": 3,
        "p": 0.1,
        "t": [1, 2],
        "inf": -np.inf,
        "file": "x",
        "w": "né\udcff",
    }


def test_files_may_be_read_by_others_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        toy(tmp_path / "m")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "m", *sorted((tmp_path / "m").iterdir()))]
    assert modes == [0o755, 0o644, 0o644]


def test_what_cannot_be_stored_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="'words' is of object"):
        toy(tmp_path / "m", arrays={"words": np.array(["a", None], object)})
    with pytest.raises(TypeError, match="cannot hold <object"):
        toy(tmp_path / "m", options={"rng": object()})
    assert list(tmp_path.iterdir()) == []


# --- replacing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("can_exchange", [True, False])
def test_saving_again_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool) -> None:
    if not can_exchange:
        monkeypatch.setattr(store, "_exchange", lambda one, other: False)
    toy(tmp_path / "m")
    toy(tmp_path / "m", arrays={"new": np.ones(3)})
    assert list(read(tmp_path / "m").arrays) == ["new"]
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_an_empty_folder_and_a_symbolic_link_may_be_saved_to(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    toy(tmp_path / "empty")
    (tmp_path / "link").symlink_to("empty")
    toy(tmp_path / "link", arrays={"new": np.ones(3)})
    assert (tmp_path / "link").is_symlink() and list(read(tmp_path / "empty").arrays) == ["new"]


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.tex": "years of work"},
        {"model.json": '{"format": "another"}'},
        {"model.json": "[]"},
        {"model.safetensors": "of another toolkit"},
        {"model.json": '{"format": "isogloss-model"}', "notes.txt": "mine"},
    ],
)
def test_a_folder_that_is_not_a_model_is_never_replaced(tmp_path: Path, files: dict[str, str]) -> None:
    folder = tmp_path / "precious"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    before = contents(folder)
    for act in (toy, discard):
        with pytest.raises(UsageError, match="something else than a saved model"):
            act(folder)
    assert contents(folder) == before


def test_places_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        toy(tmp_path / "no" / "m")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        toy(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x"


FAILURES = [
    (errno.ENOSPC, DataError, "disk is full"),
    (errno.EDQUOT, DataError, "disk is full"),
    (errno.EROFS, UsageError, "cannot be written"),
    (errno.EIO, DataError, "could not be written"),
]


@pytest.mark.parametrize(("number", "expected", "words"), FAILURES)
@pytest.mark.parametrize("where", ["os.fsync", "os.rename"])
@pytest.mark.parametrize("older", [True, False])
def test_a_failing_disk_leaves_what_was_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    expected: type,
    words: str,
    where: str,
    older: bool,
) -> None:
    monkeypatch.setattr(store, "_exchange", lambda one, other: False)
    if older:
        toy(tmp_path / "m")
    before = contents(tmp_path / "m") if older else None

    with monkeypatch.context() as patch:
        real, name = getattr(os, where.partition(".")[2]), where.partition(".")[2]
        calls = 0

        def fail(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls == (2 if older or name == "fsync" else 1):  # second: after the old model was set aside
                raise OSError(number, os.strerror(number))
            return real(*arguments)

        patch.setattr(os, name, fail)
        with pytest.raises(expected, match=words) as caught:
            toy(tmp_path / "m", arrays={"new": np.ones(3)})
    assert ("older model there is as it was" in str(caught.value)) == older
    assert [p.name for p in tmp_path.iterdir()] == (["m"] if older else [])
    assert before is None or contents(tmp_path / "m") == before


def test_the_operating_systems_refusal_inside_safetensors_is_translated(tmp_path: Path) -> None:
    """A limit on the size of files makes the write itself fail, as a full disk does."""
    resource = pytest.importorskip("resource")
    toy(tmp_path / "m")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(DataError, match="disk is full"):
            toy(tmp_path / "m", arrays={"big": np.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(read(tmp_path / "m").arrays) == ["counts", "ids"]
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_model_that_will_not_fit_is_refused_before_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.shutil, "disk_usage", lambda _: types.SimpleNamespace(free=10))
    with pytest.raises(DataError, match=r"the model takes 0.0 MB and 0.0 MB are free"):
        toy(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_killed_processes_go_but_those_of_live_ones_stay(tmp_path: Path) -> None:
    for name, age in ((".m.new-old", 90_000), (".m.new-young", 5), (".other.new-old", 90_000)):
        (tmp_path / name).mkdir()
        when = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (when, when))
    toy(tmp_path / "m")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".m.new-young", ".other.new-old", "m"]


def test_discard(tmp_path: Path) -> None:
    discard(tmp_path / "nothing")
    discard(toy(tmp_path / "m"))
    assert list(tmp_path.iterdir()) == []


# --- refusals ---------------------------------------------------------------------------------------------------------


def edit_header(folder: Path, **changes: object) -> None:
    header = json.loads((folder / "model.json").read_text())
    header.update(changes)
    (folder / "model.json").write_text(json.dumps({k: v for k, v in header.items() if v is not None}))


def truncate(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-8])


def flip_a_bit(folder: Path) -> None:
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(bytes(data))


def foreign_arrays(folder: Path) -> None:
    """Not safetensors at all, but with a checksum that fits."""
    import hashlib

    data = b"PK\x03\x04 a pickled model" * 3
    (folder / "model.safetensors").write_bytes(data)
    edit_header(folder, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def rewrite_arrays(**changes: object):  # type: ignore[no-untyped-def]
    """Arrays that differ from what the header lists, in a file whose checksum fits."""

    def act(folder: Path) -> None:
        listed = json.loads((folder / "model.json").read_text())["arrays"]
        arrays = {name: a for name, a in {**read(folder).arrays, **changes}.items() if a is not None}
        discard(folder)
        toy(folder, arrays=arrays)
        edit_header(folder, arrays=listed)

    return act


def write(text: str | bytes):  # type: ignore[no-untyped-def]
    return lambda folder: (folder / "model.json").write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "model.json").unlink(), "there is no model.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors: missing"),
        (write(""), "model.json: this is not JSON"),
        (write('{"format": "isogl'), "model.json: this is not JSON"),
        (write(b"\xff\xfe{"), "model.json: this is not JSON"),
        (write("[" * 100_000), "model.json: this is not JSON"),
        (write('["isogloss-model"]'), "not the header of an Isogloss model"),
        (lambda folder: edit_header(folder, format="gensim"), "not the header of an Isogloss model"),
        (lambda folder: edit_header(folder, version=3, isogloss="9.9"), "Isogloss 9.9 in version 3 .* Update Isogloss"),
        (lambda folder: edit_header(folder, version=3, kind=None, sha256=None), "version 3 .* Update Isogloss"),
        (lambda folder: edit_header(folder, version="2"), "'version' is missing or not as it should be"),
        (lambda folder: edit_header(folder, sha256=None), "'sha256' is missing or not as it should be"),
        (lambda folder: edit_header(folder, options=[1]), "'options' is missing or not as it should be"),
        (truncate, r"model.safetensors: \d+ bytes where \d+ were saved"),
        (flip_a_bit, "contents have changed"),
        (foreign_arrays, "model.safetensors: cannot be read"),
        (rewrite_arrays(ids=None), "array 'ids' is missing but model.json says int32"),
        (rewrite_arrays(ids=np.zeros(3, np.int32)), r"array 'ids' is int32\[3\] but model.json says int32\[2\]"),
        (rewrite_arrays(ids=np.zeros(2, np.int64)), r"array 'ids' is int64\[2\] but model.json says int32\[2\]"),
        (rewrite_arrays(more=np.zeros(2)), r"array 'more' is float64\[2\] but model.json says missing"),
    ],
)
def test_a_damaged_or_foreign_folder_is_refused(tmp_path: Path, damage, words: str) -> None:  # type: ignore[no-untyped-def]
    folder = toy(tmp_path / "m")
    damage(folder)
    with pytest.raises(ModelError, match=words) as caught:
        read(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("kind", [*store.KINDS, store.CHECKPOINT])
def test_models_whose_features_have_old_keys_are_refused_and_others_are_read(tmp_path: Path, kind: str) -> None:
    folder = toy(tmp_path / "m", kind=kind)
    assert read(folder).version == 2
    edit_header(folder, version=1)
    # aligners and two more have no keys of templates; those of later tasks have no version 1
    later = ("extract.", "rank.", "threads.", "topics.", "adapt.", "joint.", "segment.", "translate.")
    unkeyed = ("tag.dictionary", "parse.induced", "constituency.span")
    if kind.startswith(("align.", *later)) or kind in unkeyed:
        assert read(folder).version == 1
        return
    remedy = "without resuming" if kind == store.CHECKPOINT else "Train it again"
    for act in (lambda: store.read_header(folder), lambda: read(folder), lambda: store.load(folder)):
        with pytest.raises(ModelError, match=f"version 1 of the format, in which features had other keys.*{remedy}"):
            act()


def test_every_single_cut_of_the_arrays_is_refused(tmp_path: Path) -> None:
    file = toy(tmp_path / "m") / "model.safetensors"
    data = file.read_bytes()
    for size in range(len(data)):
        file.write_bytes(data[:size])
        with pytest.raises(ModelError):
            read(tmp_path / "m")


def test_wrong_kind_and_missing_path(tmp_path: Path) -> None:
    folder = toy(tmp_path / "m")
    assert read(folder, kind="toy").kind == "toy"
    with pytest.raises(ModelError, match=r"holds a model of kind 'toy', where a model of kind 'align.hmm' is wanted"):
        read(folder, kind="align.hmm")
    with pytest.raises(UsageError, match="there is no such saved model"):
        read(tmp_path / "absent")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelError, match="a saved model is a folder"):
        read(tmp_path / "file")
    (tmp_path / ".lost.previous").mkdir()
    with pytest.raises(UsageError, match=r"\.lost\.previous, rename it"):
        read(tmp_path / "lost")


def test_a_file_of_the_folder_stands_for_the_folder(tmp_path: Path) -> None:
    folder = toy(tmp_path / "m")
    assert read(folder / "model.json").kind == read(folder / "model.safetensors").kind == "toy"
    assert read_header(folder / "model.json")["kind"] == "toy"


def test_load_finds_the_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Toy:
        @classmethod
        def _from_saved(cls, saved: store.Saved) -> tuple[str, dict]:
            return "made", saved.options

    monkeypatch.setitem(sys.modules, "toys", types.SimpleNamespace(Toy=Toy))  # type: ignore[arg-type]
    monkeypatch.setitem(store.KINDS, "toy", "toys:Toy")
    assert store.load(toy(tmp_path / "m")) == ("made", {"alpha": 0.1})
    with pytest.raises(ModelError, match=r"kind 'unheard.of'.*knows .*align.hmm"):
        store.load(toy(tmp_path / "n", kind="unheard.of"))
    with pytest.raises(ModelError, match=r"checkpoint of training.*--resume"):
        store.load(toy(tmp_path / "c", kind=store.CHECKPOINT))


# --- strings and hashes -----------------------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=[]))))
def test_strings_come_back(strings: list[str]) -> None:
    blob, offsets = pack_strings(strings)
    assert (blob.dtype, offsets.dtype, len(offsets)) == (np.uint8, np.int64, len(strings) + 1)
    assert unpack_strings(blob, offsets) == strings


@pytest.mark.parametrize(
    ("blob", "offsets"), [(b"ab", []), (b"ab", [0, 1]), (b"ab", [1, 2]), (b"ab", [0, 3, 2]), (b"\xff", [0, 1])]
)
def test_damaged_strings_are_refused(blob: bytes, offsets: list[int]) -> None:
    with pytest.raises(ModelError, match="list of words"):
        unpack_strings(np.frombuffer(blob, np.uint8), np.array(offsets, np.int64))


def test_data_hash_depends_on_values_alone() -> None:
    rows = Ragged.of([[1, 2], [], [3]])
    assert data_hash(rows[1:]) == data_hash(Ragged.of([[], [3]])) != data_hash(rows)
    table = np.arange(6).reshape(2, 3)
    assert data_hash(table) == data_hash(np.asfortranarray(table)) == data_hash(table.astype(">i8"))
    assert data_hash(Vocabulary(["a", "b"])) == data_hash(["a", "b"])


def test_data_hash_is_the_same_on_every_machine() -> None:
    """Changing this value makes every checkpoint and model forget its data: raise the format version if it must be."""
    value = data_hash(Ragged.of([[1, 2], [], [3]]), ["das", "Haus"], np.eye(2), "x", b"y", 3, 0.5, None)
    assert value == "16f6887d43e50732cf95643ad870990fb0ec58c966bbbc9159cb263a1c193bc0"


def test_data_hash_tells_things_apart() -> None:
    ids = np.array([1, 2], np.int32)
    things = [
        (),
        ("ab",),
        ("a", "b"),
        (["ab"],),
        (["a", "b"],),
        (b"ab",),
        (ids,),
        (ids.astype(np.int64),),
        (ids[None],),
        (Ragged.of([[1, 2]]),),
        (Ragged.of([[1], [2]]),),
        (None,),
        (0,),
        (0.0,),
        ("",),
        ("", ""),
    ]
    assert len({data_hash(*parts) for parts in things}) == len(things)
