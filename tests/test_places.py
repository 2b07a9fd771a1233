"""Places to write to are proved before the work, and every refusal has its own words."""

from __future__ import annotations

import builtins
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from isogloss import cli, places, samples, store
from isogloss.cli import _common
from isogloss.data.formats.files import atomic_write
from isogloss.errors import DataError, IsoglossError, UsageError
from isogloss.places import own_mark, prove

SOURCE, TARGET, GOLD = (str(samples.path("en-de", what)) for what in ("source", "target", "gold"))
TREES = str(samples.path("en-de", "source-trees"))

REFUSALS = {
    errno.EROFS: (UsageError, "the disk is read-only there"),
    errno.EACCES: (UsageError, "you may not (permission denied)"),
    errno.ENOSPC: (DataError, "the disk is full"),
    errno.EDQUOT: (DataError, "the disk is full"),
    errno.EIO: (DataError, "the disk failed"),
    errno.ENAMETOOLONG: (UsageError, "cannot be written (file name too long)"),
}

Refuse = Callable[[Path, int], None]


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """Let the system refuse, with an error number, to make new files in a folder."""

    def refuse(folder: Path, number: int) -> None:
        real = builtins.open

        def opened(path: object, mode: str = "r", *args: object, **more: object) -> object:
            if isinstance(path, str) and "x" in mode and Path(path).parent == folder:
                raise OSError(number, os.strerror(number), path)
            return real(path, mode, *args, **more)  # type: ignore[call-overload]

        monkeypatch.setattr(places, "open", opened, raising=False)

    return refuse


@pytest.mark.parametrize("number", REFUSALS)
@pytest.mark.parametrize("check", [places.prove, store.check_place, _common.check_output])
def test_each_refusal_has_its_own_words(
    tmp_path: Path, refuse: Refuse, number: int, check: Callable[[str], None]
) -> None:
    expected, words = REFUSALS[number]
    refuse(tmp_path, number)
    with pytest.raises(IsoglossError) as caught:
        check(str(tmp_path / "result"))
    assert type(caught.value) is expected and words in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "result")) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("check", [places.prove, store.check_place, _common.check_output])
def test_what_is_in_the_way(tmp_path: Path, check: Callable[[str], None]) -> None:
    check(str(tmp_path / "result"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="there is no folder"):
        check(str(tmp_path / "absent" / "result"))
    with pytest.raises(UsageError, match="name too long"):
        check(str(tmp_path / ("long" * 80)))
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"there is no folder|not a directory"):
        check(str(tmp_path / "file" / "result"))


def test_devices_and_pipes_need_nothing_beside_them(tmp_path: Path, refuse: Refuse) -> None:
    refuse(Path("/dev"), errno.EACCES)
    refuse(tmp_path, errno.EROFS)
    os.mkfifo(tmp_path / "pipe")
    for path in (os.devnull, "/dev/stdout", "/dev/fd/1", str(tmp_path / "pipe"), "-", None):
        _common.check_output(path)


def test_a_model_is_not_saved_over_a_mounted_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename would fail there, after the training."""
    (tmp_path / "m").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == tmp_path / "m")
    with pytest.raises(UsageError, match="a disk is mounted here"):
        store.check_place(tmp_path / "m")


def test_a_checkpoint_is_discarded_on_a_full_disk(tmp_path: Path, refuse: Refuse) -> None:
    store.save(tmp_path / "m", kind="toy", options={}, arrays={})
    refuse(tmp_path, errno.ENOSPC)
    store.discard(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


WRITERS = {
    "align": ["align", SOURCE, TARGET, "-o", "{}"],
    "align --save": ["align", SOURCE, TARGET, "--save", "{}"],
    "train-aligner": ["train-aligner", "matching", SOURCE, TARGET, GOLD, "--save", "{}"],
    "suggest": ["suggest", SOURCE, TARGET, "-o", "{}"],
    "score": ["score", GOLD, GOLD, "-o", "{}"],
    "view": ["view", SOURCE, TARGET, GOLD, "-o", "{}"],
    "view trees": ["view", TREES, "-o", "{}"],
    "lexicon": ["lexicon", SOURCE, TARGET, GOLD, "-o", "{}"],
    "phrases": ["phrases", SOURCE, TARGET, GOLD, "-o", "{}"],
    "filter": ["filter", SOURCE, TARGET, "-o", "{}", "{}2"],
    "filter --scores": ["filter", SOURCE, TARGET, "--scores", "{}"],
    "tag train": ["tag", "train", TREES, "--save", "{}"],
    "tag apply": ["tag", "apply", "model", TREES, "-o", "{}"],
    "tag score": ["tag", "score", TREES, TREES, "-o", "{}"],
    "parse train": ["parse", "train", TREES, "--save", "{}"],
    "parse train-joint": ["parse", "train-joint", TREES, "--save", "{}"],
    "parse apply": ["parse", "apply", "model", TREES, "-o", "{}"],
    "parse score": ["parse", "score", TREES, TREES, "-o", "{}"],
    "dictionary": ["dictionary", "stats", TREES, TREES, "-o", "{}"],
    "doctor": ["doctor", SOURCE, TARGET, "-o", "{}"],
    "transfer-markup": ["transfer-markup", SOURCE, TARGET, GOLD, "-o", "{}"],
    "transfer-markup --report": ["transfer-markup", SOURCE, TARGET, GOLD, "--report", "{}"],
}


@pytest.mark.parametrize("arguments", WRITERS.values(), ids=WRITERS)
def test_every_command_that_writes_looks_first(
    arguments: list[str],
    tmp_path: Path,
    refuse: Refuse,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def begun(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr(_common, "_import_kernels_machinery", begun)
    refuse(tmp_path, errno.EROFS)
    place = str(tmp_path / "result")
    assert cli.main([argument.format(place) for argument in arguments]) == 2
    said = capfd.readouterr().err
    assert said.startswith(f"isogloss: {place}") and "read-only" in said and said.count("\n") == 1, said


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kilobytes, where the machine lets us have one."""
    if not sys.platform.startswith("linux"):
        pytest.skip("tmpfs is a thing of Linux")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount disks")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_on_real_disks(small_disk: Path) -> None:
    checks: list[Callable[[str], None]] = [store.check_place, _common.check_output]
    for check in checks:
        check(str(small_disk / "result"))
    (small_disk / "filling").write_bytes(bytes(2**16))
    for check in checks:
        with pytest.raises(DataError, match="the disk is full"):
            check(str(small_disk / "result"))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for check in checks:
        with pytest.raises(UsageError, match="read-only"):
            check(str(small_disk / "result"))


# --- what was never finished


def test_leftovers_of_dead_processes_go_and_others_stay(tmp_path: Path) -> None:
    """Of a folder, a file and a trial that a process was writing when it was killed, nothing is left by the next."""
    dead = subprocess.run(
        [sys.executable, "-c", "from isogloss.places import own_mark; print(own_mark())"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    alive = own_mark()
    for whose in (dead, alive, f"00000000-1-{dead[-8:]}"):  # the last is of another machine
        (tmp_path / f".model.new-{whose}").mkdir()
        (tmp_path / f".model.new-{whose}" / "model.safetensors").write_bytes(b"half")
        for name in ("isogloss-", "links.txt.", "other.txt."):
            (tmp_path / f".{name}{whose}.part").write_bytes(b"half")
    store.save(tmp_path / "model", kind="toy", options={}, arrays={})
    with atomic_write(tmp_path / "links.txt") as file:
        file.write(b"0-0\n")
    prove(tmp_path / "links.txt")
    left = [path.name for path in tmp_path.iterdir() if dead in path.name]
    assert left == [f".other.txt.{dead}.part"]  # nobody has written there again
    assert sum(alive in path.name for path in tmp_path.iterdir()) == 4
    assert sum("00000000" in path.name for path in tmp_path.iterdir()) == 4


def test_a_signal_while_a_file_is_made_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between the making of the file and the first line that knows of it."""
    made = os.open

    def interrupted(*args: Any) -> int:
        os.close(made(*args))
        assert list(tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "links.txt"):
        raise AssertionError("nothing is written")
    assert not list(tmp_path.iterdir())
