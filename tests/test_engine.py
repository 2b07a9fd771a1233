"""Shards, threads, the engine and the kernels' cache."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isogloss
from isogloss.engine import cache
from isogloss.engine import threads as threads_module
from isogloss.engine.base import Engine, LocalEngine
from isogloss.engine.shards import Shard, shards
from isogloss.engine.stale import discard_stale
from isogloss.engine.threads import available, in_background, run_blocks, threads, using_threads
from isogloss.errors import ParameterError
from isogloss.places import refusal

# --- shards -----------------------------------------------------------------------------------------------------------


def greedy(cells: list[int], limit: int) -> list[tuple[int, int]]:
    """One pair after the other, by the definition."""
    cuts: list[list[int]] = []
    room = 0
    for pair, size in enumerate(cells):
        if not cuts or size > room:
            cuts.append([pair, pair])
            room = limit
        cuts[-1][1] = pair + 1
        room -= size
    return [(start, stop) for start, stop in cuts]


@given(st.lists(st.integers(0, 12)), st.integers(1, 20))
def test_shards_are_those_of_the_definition(cells: list[int], limit: int) -> None:
    cuts = shards(np.array(cells, np.int64), limit=limit)
    assert [tuple(cut) for cut in cuts] == greedy(cells, limit)
    assert [pair for cut in cuts for pair in range(*cut)] == list(range(len(cells)))
    assert all(sum(cells[slice(*cut)]) <= limit or cut.stop == cut.start + 1 for cut in cuts)


def test_shards_of_nothing_and_of_everything() -> None:
    assert shards(np.array([], np.int64), limit=5) == []
    assert shards(np.zeros(1000, np.int64), limit=1) == [Shard(0, 1000)]
    assert len(shards(np.full(10, 2**40), limit=2**42)) == 3  # no overflow
    with pytest.raises(ParameterError, match="limit should be"):
        shards(np.array([1]), limit=0)


# --- threads ----------------------------------------------------------------------------------------------------------


def test_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(threads_module, "_cores", lambda: 4)
    monkeypatch.setattr(threads_module, "_quota_once", lambda: 3)
    assert (available(), threads(), threads(1), threads(4), threads(99)) == (3, 3, 1, 4, 4)
    monkeypatch.setattr(threads_module, "_cores", lambda: 1)
    assert (available(), threads(), threads(8)) == (1, 1, 1)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "6")  # the user's own word on how many Numba may start
    assert (threads(), threads(8)) == (1, 6)
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ParameterError, match="positive integer"):
            threads(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/", {"cpu.max": "20000 100000\n"}, 1),
        ("0::/", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
        ("0::/elsewhere/on/the/host", {"cpu.max": "200000 100000"}, 2),
        ("3:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ("3:cpu,cpuacct:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("2:memory:/", {"cpu.max": "100000 100000"}, None),
        ("0::/", {"cpu.max": "nonsense"}, None),
        ("nonsense", {}, None),
    ],
)
def test_quota_of_containers(tmp_path: Path, own: str, files: dict[str, str], cores: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "own").write_text(own + "\n")
    found = threads_module._quota(tmp_path, tmp_path / "own")
    assert found == cores or (cores is None and found > 1000)
    assert threads_module._quota(tmp_path / "absent", tmp_path / "absent") > 1000


def test_threads_are_put_back() -> None:
    before = numba.get_num_threads()
    with using_threads(1) as n:
        assert n == 1 == numba.get_num_threads()
        with using_threads() as inner:  # None keeps what was chosen around it
            assert inner == 1 == numba.get_num_threads()
        with using_threads(2) as inner:
            assert inner == threads(2) == numba.get_num_threads()
        assert numba.get_num_threads() == 1
    with using_threads() as n:
        assert n == threads() == numba.get_num_threads()
    with pytest.raises(ZeroDivisionError), using_threads(1):
        _ = 1 / 0
    assert numba.get_num_threads() == before


PARALLEL = """
import numba, numpy as np
from numba import njit, prange
from isogloss.engine.threads import using_threads

@njit(parallel=True, nogil=True)
def who(n):
    seen = np.zeros(64, np.int64)
    for i in prange(n):
        seen[numba.get_thread_id()] = 1
    return seen.sum()

for n in (1, 2, 1):
    with using_threads(n):
        assert who(10_000) == n, (n, who(10_000))
print(numba.threading_layer())
"""


def test_the_layer_that_is_always_there_takes_the_number() -> None:
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    run = subprocess.run([sys.executable, "-c", PARALLEL], env=environment, capture_output=True, text=True)
    assert run.stdout.strip() == "workqueue", run.stderr


def test_our_kernels_do_not_use_the_parallel_mode_of_numba() -> None:
    """Its `workqueue` layer ends the process when two Python threads enter it, and nothing here keeps them apart."""
    sources = Path(isogloss.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if re.search(r"parallel\s*=\s*True|prange", path.read_text("utf-8"))] == []


THREADS = """
import os
from concurrent.futures import ThreadPoolExecutor
from isogloss.engine import threads
from isogloss.engine.threads import run_blocks, using_threads

threads._cores = lambda: 2
threads._quota_once = lambda: 2
"""
NESTED = {
    "threads inside using_threads": """
def work(k):
    seen = []
    with using_threads(2):
        run_blocks(lambda block, count: seen.append(block), 8)
    return sorted(seen)
with using_threads(2), ThreadPoolExecutor(4) as pool:
    assert list(pool.map(work, range(20))) == [list(range(8))] * 20
""",
    "blocks of blocks": """
seen = []
def inner(block, count, outer):
    seen.append((outer, block))
def outer(block, count):
    with using_threads(2) as n:
        assert n == 1
        run_blocks(inner, 3, block)
    run_blocks(inner, 3, block)
with using_threads(2):
    run_blocks(outer, 4)
assert sorted(seen) == sorted((a, b) for a in range(4) for b in range(3) for _ in range(2))
""",
    "other sizes of pools meanwhile": """
def work(k):
    for n in (1, 2, 2, 1, 2):
        with using_threads(n):
            run_blocks(lambda block, count: sum(range(1000)), 20)
with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(30)))
""",
    "a forked process": """
with using_threads(2):
    run_blocks(lambda block, count: None, 4)
    child = os.fork() if hasattr(os, "fork") else None
    run_blocks(lambda block, count: None, 4)
if child == 0:
    os._exit(0)
assert child is None or os.waitpid(child, 0)[1] == 0
""",
    "folds of taggers": """
from isogloss.data import Treebank
from isogloss.tasks.tag import CrfTagger, jackknife
text = Treebank.of([[("the", "DET"), ("dog", "NOUN"), ("sleeps", "VERB")], [("a", "DET"), ("cat", "NOUN")]] * 10)
options = dict(tagger=CrfTagger("upos", iterations=2), folds=3, threads=2)
outside = jackknife(text, **options)
with using_threads(2):
    assert jackknife(text, **options).to_bytes() == outside.to_bytes()
""",
}


@pytest.mark.parametrize("case", NESTED)
def test_threads_within_threads_do_not_wait_for_ever(case: str) -> None:
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    script = [sys.executable, "-W", "ignore", "-c", THREADS + NESTED[case] + "print('done')"]
    run = subprocess.run(script, env=environment, capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() == "done", run.stderr


def test_blocks_that_have_not_begun_are_left_out_after_an_error() -> None:
    begun: list[int] = []
    go_on = threading.Event()

    def kernel(block: int, count: int) -> None:
        begun.append(block)
        if block == 0:
            raise ZeroDivisionError
        go_on.wait(5)

    with using_threads(2) as n:
        try:
            with pytest.raises(ZeroDivisionError):
                run_blocks(kernel, 50)
        finally:
            go_on.set()
    assert n == 1 or len(begun) < 50


# --- engine -----------------------------------------------------------------------------------------------------------


def test_work_in_the_background_needs_a_second_thread() -> None:
    with using_threads(1):
        assert in_background(threading.get_ident) is None
    if threads(2) > 1:
        with using_threads(2):
            later = in_background(threading.get_ident)
            assert later is not None and later.result() != threading.get_ident()


def test_engine_reduces_in_shard_order() -> None:
    """Floats of very different size: another order gives another sum."""
    values = [1.0, 1e16, -1e16, 1.0]
    seen: list[tuple[int, int]] = []
    engine: Engine = LocalEngine(1, on_shard=lambda done, total: seen.append((done, total)))
    cuts = shards(np.ones(4, np.int64), limit=1)
    assert engine.reduce(lambda shard: values[shard.start], cuts, lambda a, b: a + b, 0.0) == 1.0
    assert engine.reduce(lambda shard: values[shard.start], cuts[1:] + cuts[:1], lambda a, b: a + b, 0.0) == 2.0
    assert seen == 2 * [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_engine_maps_lazily_and_lets_errors_through() -> None:
    asked: list[int] = []

    def function(shard: Shard) -> int:
        asked.append(shard.start)
        return 10 // (2 - shard.start)

    results = LocalEngine(1).map(function, [Shard(0, 1), Shard(1, 2), Shard(2, 3)])
    assert asked == []
    assert next(results) == 5 and asked == [0]
    assert next(results) == 10
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(LocalEngine().map(function, [])) == []
    with pytest.raises(ParameterError):
        LocalEngine(0)


# --- cache ------------------------------------------------------------------------------------------------------------

KERNEL = """
from numba import njit

@njit(cache=True)
def answer(n):
    return n + 1
"""

RUN = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from isogloss.engine.cache import cold, ensure_cache, mark_warm
print(ensure_cache() if sys.argv[2] == "ensure" else "left to Numba")  # the import has made the choice already
from isogloss.data.tiny import answer
assert answer(41) == 42
print(sum(answer.stats.cache_hits.values()))
print(cold()); mark_warm(); print(cold())
"""


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package beside which nothing can be kept, even by root: `__pycache__` is a file."""
    place = tmp_path_factory.mktemp("sealed")
    source = Path(isogloss.__file__).parent
    shutil.copytree(source, place / "isogloss", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "isogloss" / "data" / "tiny.py").write_text(KERNEL)
    for folder in [Path(name) for name, _, _ in os.walk(place / "isogloss")]:
        (folder / "__pycache__").write_text("")
    return place


def run(sealed: Path, tmp_path: Path, *, home: bool, temporary: bool, ensure: bool = True) -> list[str]:
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    environment = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    environment |= {"PYTHONPATH": str(sealed), "HOME": str(tmp_path if home else nowhere)}
    (tmp_path / "tmp").mkdir(exist_ok=True)
    arguments = [str(tmp_path / "tmp" if temporary else nowhere), "ensure" if ensure else "leave"]
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.splitlines()[-1:]
    return done.stdout.split("\n")[:-1]


def test_read_only_package_uses_the_users_cache(sealed: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / ".cache" / "isogloss" / "kernels")
    assert run(sealed, tmp_path, home=True, temporary=True) == [folder, "0", "True", "False"]
    assert run(sealed, tmp_path, home=True, temporary=True) == [folder, "1", "False", "False"]  # found again


def test_read_only_package_and_home_use_a_temporary_folder(sealed: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "tmp" / f"isogloss-kernels-{os.getuid()}")
    assert run(sealed, tmp_path, home=False, temporary=True) == [folder, "0", "True", "False"]
    assert os.stat(folder).st_mode & 0o077 == 0


def test_nowhere_to_write_still_works(sealed: Path, tmp_path: Path) -> None:
    assert run(sealed, tmp_path, home=False, temporary=False) == ["None", "0", "True", "True"]


def test_importing_the_package_is_enough(sealed: Path, tmp_path: Path) -> None:
    """Without what the package does when it is imported, Numba says "cannot cache function" here."""
    found = run(sealed, tmp_path, home=False, temporary=False, ensure=False)
    assert found == ["left to Numba", "0", "True", "True"]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The choice made anew, on folders of our own, without telling Numba."""
    package, home = tmp_path / "package", tmp_path / "home"
    package.mkdir()
    (package / "module.py").write_text("")
    monkeypatch.setattr(cache, "PACKAGE", package)
    monkeypatch.setattr(cache, "_tell_numba", lambda folder: None)
    monkeypatch.setattr(cache, "_troubles", [])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(cache, "ensure_cache", cache.ensure_cache.__wrapped__)
    return tmp_path


def test_order_of_choice(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.ensure_cache() == fresh / "package" / "__pycache__"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(fresh / "named"))
    assert cache.ensure_cache() == fresh / "named" and cache.troubles() == ()
    monkeypatch.chdir(fresh)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "named")
    assert cache.ensure_cache() == fresh / "named"
    shutil.rmtree(fresh / "named")
    (fresh / "named").write_text("")  # what is named cannot be used
    assert cache.ensure_cache() == fresh / "package" / "__pycache__"
    (words,) = cache.troubles()
    assert f"{fresh / 'named'}: cannot be written (file exists)" in words and words.endswith("__pycache__ instead")
    shutil.rmtree(fresh / "package" / "__pycache__")
    (fresh / "package" / "__pycache__").write_text("")
    assert cache.ensure_cache() == fresh / "home" / ".cache" / "isogloss" / "kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", str(fresh / "xdg"))
    assert cache.ensure_cache() == fresh / "xdg" / "isogloss" / "kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", str(fresh / "named" / "below a file"))
    assert cache.ensure_cache() == fresh / f"isogloss-kernels-{os.getuid()}"
    monkeypatch.setattr(cache, "_ROOM", 2**70)  # every disk is full
    assert cache.ensure_cache() is None and "kept nowhere" in cache.troubles()[-1]


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only"), (errno.EACCES, "you may not")],
)
def test_a_named_folder_that_refuses_files_is_passed_over(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    """As a full disk does: its folder is there, and permissions are as they should be."""

    def prove(path: Path, **_: object) -> None:
        if path.parent == fresh / "named":
            raise refusal(path, OSError(number, os.strerror(number)))

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(fresh / "named"))
    monkeypatch.setattr(cache, "prove", prove)
    assert cache.ensure_cache() == fresh / "package" / "__pycache__"
    assert words in cache.troubles()[0] and len(cache.troubles()) == 1


def test_a_temporary_folder_of_somebody_else_is_not_trusted(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled kernels are loaded as code."""
    (fresh / "package" / "__pycache__").write_text("")
    (fresh / "home").write_text("")
    folder = fresh / f"isogloss-kernels-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert cache.ensure_cache() is None
    folder.rmdir()
    (fresh / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to("elsewhere")
    assert cache.ensure_cache() is None


def test_stamps_tell_versions_and_jobs_apart(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.cold() and cache.cold("align")
    cache.mark_warm("align")
    assert cache.cold() and not cache.cold("align")
    monkeypatch.setattr(cache, "__version__", "99.0")
    assert cache.cold("align")


def test_deciding_costs_nothing_heavy() -> None:
    code = "import sys; from isogloss.engine.cache import ensure_cache; ensure_cache(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


FULL_LATER = """
import errno, sys
from isogloss.engine import cache
from isogloss.engine.numba_cache import compile_seconds
import numba
from numba.core.caching import IndexDataCacheFile

def full(self, *more):
    raise OSError(errno.ENOSPC, "No space left on device")

setattr(IndexDataCacheFile, sys.argv[1], full)
sys.path.insert(0, sys.argv[2])
from tiny import answer
assert compile_seconds() == 0.0
assert answer(41) == 42 and answer(41.0) == 42.0
print(len(cache.troubles()), cache.troubles()[0], compile_seconds() > 0.0)
cache.mark_warm("tiny")
print(cache.cold("tiny"))
"""


@pytest.mark.parametrize("where", ["_save_data", "_save_index", "_load_index"])
def test_kernels_run_though_the_disk_fills_up(tmp_path: Path, where: str) -> None:
    """Numba would let the error through to whoever called the kernel."""
    (tmp_path / "tiny.py").write_text(KERNEL)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    script = [sys.executable, "-c", FULL_LATER, where, str(tmp_path)]
    done = subprocess.run(script, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, cold = done.stdout.splitlines()
    assert said.startswith("1 compiled kernels could not be kept ([Errno 28] No space left") and said.endswith("True")
    assert cold == "True"  # nothing says that the next run will find them


# --- stale kernels ----------------------------------------------------------------------------------------------------

CALLED = "from numba import njit\n\n@njit(cache=True)\ndef called(x):\n    return x + {}\n"
CALLER = (
    "from numba import njit\n\nfrom isogloss._numba.called import (\n    called,\n)\n\n"
    "@njit(cache=True)\ndef caller(x):\n    return 10 * called(x)\n"
)
ALONE = "from numba import njit\n\n@njit(cache=True)\ndef alone(x):\n    return -x\n"
ASK = (
    "from isogloss._numba.caller import caller\nfrom isogloss._numba.alone import alone\n"
    "print(caller(1), alone(1), sum(caller.stats.cache_hits.values()), sum(alone.stats.cache_hits.values()))"
)


def test_kernels_are_compiled_again_when_what_they_call_has_changed(tmp_path: Path) -> None:
    package = tmp_path / "isogloss"
    (package / "_numba").mkdir(parents=True)
    for name, text in (("called", CALLED.format(1)), ("caller", CALLER), ("alone", ALONE), ("__init__", "")):
        (package / "_numba" / f"{name}.py").write_text(text)
    (package / "__init__.py").write_text("")

    def ask() -> list[int]:
        environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True)
        return [int(number) for number in done.stdout.split()]

    folder = package / "__pycache__"
    assert len(discard_stale(package, folder)) == 4  # nothing is known yet
    assert ask() == [20, -1, 0, 0]
    assert discard_stale(package, folder) == []
    assert ask() == [20, -1, 1, 1]
    (folder / "isogloss-1.0-align.warm").touch()
    assert discard_stale(package, folder) == [] and list(folder.glob("*.warm"))
    (package / "_numba" / "called.py").write_text(CALLED.format(25))
    assert ask() == [20, -1, 1, 1]  # this is why: Numba looks at the caller's file alone
    assert {path.stem for path in discard_stale(package, folder)} == {"called", "caller"}
    assert not list(folder.glob("*.warm"))  # something has to be compiled again
    assert ask() == [260, -1, 0, 1]
    (folder / "kernels.json").write_text("{")  # a damaged note is as good as none
    assert len(discard_stale(package, folder)) == 4
    assert discard_stale(package, tmp_path / "absent" / "folder") != []
    assert discard_stale(tmp_path / "nothing", folder) == []
