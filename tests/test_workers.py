"""Shards that other processes work on: the same bytes as threads, whoever dies, comes back or damages a file."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Call
from isogloss import samples
from isogloss.data import Bitext
from isogloss.engine import parcels
from isogloss.engine.parcels import Damaged
from isogloss.engine.workers import ArrayEngine, ProcessEngine, WorkFolder, _groups, serve, work
from isogloss.errors import ModelError, UsageError, WorkerError
from isogloss.learners.runner import Interrupted, run
from isogloss.progress import QuietProgress
from isogloss.tasks.align import HMMAligner, remote
from isogloss.tasks.align import corpus as corpus_module
from isogloss.tasks.align.corpus import Corpus, Room
from isogloss.tasks.align.settings import Settings
from isogloss.tasks.align.training import Training

SOURCE, TARGET = (samples.path("en-de", side) for side in ("source", "target"))


@pytest.fixture(autouse=True)
def many_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of a few thousand cells has a dozen shards."""
    monkeypatch.setattr(corpus_module, "SHARD", 16 * 700)


@pytest.fixture(scope="module")
def bitext() -> Bitext:
    return samples.synthetic(120, seed=3).bitext


@pytest.fixture
def local(bitext, monkeypatch):
    """In this process, and in one shard."""
    with monkeypatch.context() as patched:
        patched.setattr(corpus_module, "SHARD", 1 << 24)
        aligner = HMMAligner().fit(bitext)
        assert len(aligner._trained_on[1].corpus.shards) == 1
        return bits(aligner, bitext)


def bits(aligner, bitext):
    """All that a training comes to: model, links and their probabilities, what pairs are worth, the trace."""
    links = aligner.predict(bitext)
    arrays = [*aligner._model.arrays().values(), links.source, links.target, links.probability]
    return [aligner.data_hash_, *(array.tobytes() for array in (*arrays, aligner.pair_scores(bitext), aligner.trace_))]


@contextmanager
def serving(path, n):
    """Workers of an `ArrayEngine`, as threads of this process; they end with the run."""
    threads = [threading.Thread(target=serve, args=(path, k, n), daemon=True) for k in range(n)]
    for thread in threads:
        thread.start()
    yield
    parcels.mark(Path(path) / "current", {"finished": True})
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


# --- parcels ----------------------------------------------------------------------------------------------------------


def test_a_parcel_comes_back_and_is_the_same_file_for_the_same_arrays(tmp_path):
    arrays = {"a": np.arange(5, dtype=np.int32), "b": np.zeros((0, 3), np.uint16), "c": np.array([[0.5, np.nan]])}
    digest = parcels.write(tmp_path / "x", arrays, {"rate": 0.1, "pair": (1, 2)})
    assert parcels.write(tmp_path / "y", dict(arrays), {"rate": 0.1, "pair": [1, 2]}) == digest
    found = parcels.read(tmp_path / "x")
    assert found.meta == {"rate": 0.1, "pair": [1, 2]} and found.hash == digest
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype and found.arrays[name].shape == array.shape
        assert found.arrays[name].tobytes() == array.tobytes() and found.arrays[name].flags.writeable
    found.arrays["a"][0] = 7  # stays in this process
    assert parcels.read(tmp_path / "x").arrays["a"][0] == 0
    parcels.forget(tmp_path / "x")
    assert [path.name[0] for path in sorted(tmp_path.iterdir())] == ["y", "y"]


@pytest.mark.parametrize("harm", ["flip", "cut", "no data", "no marker", "other meta"])
def test_a_damaged_parcel_is_refused(tmp_path, harm):
    parcels.write(tmp_path / "x", {"a": np.arange(50)}, {"least": 1})
    data, marker = next(tmp_path.glob("x-*.bin")), tmp_path / "x.json"
    whole = data.read_bytes()
    if harm == "flip":
        data.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    elif harm == "cut":
        data.write_bytes(whole[:-8])
    elif harm == "no data":
        data.unlink()
    elif harm == "no marker":
        marker.unlink()
    else:
        marker.write_text(marker.read_text().replace('"least": 1', '"least": 2'))
    with pytest.raises(Damaged):
        parcels.read(tmp_path / "x")


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40), st.integers(1, 12))
def test_groups_are_all_shards_in_order_and_not_too_many(sizes, n):
    groups = _groups(np.array(sizes), n)
    assert [shard for first, last in groups for shard in range(first, last)] == list(range(len(sizes)))
    assert len(groups) <= n


# --- the same bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_processes_give_the_bytes_of_threads(bitext, local, n):
    with ProcessEngine(workers=n) as engine:
        found = HMMAligner().fit(bitext, engine=engine)
        assert 1 < len(engine.folder.groups) <= 4 * n
    assert bits(found, bitext) == local
    assert not engine.path.exists()


@pytest.mark.parametrize("options", [{"leave_out": 0.0}, {"constraint": "symmetric"}, {"threshold": "points"}])
def test_other_trainings_give_the_same_bytes_too(bitext, tmp_path, options):
    whole = bits(HMMAligner(**options).fit(bitext), bitext)
    with serving(tmp_path, 2), ArrayEngine(str(tmp_path), groups=3) as engine:
        assert bits(HMMAligner(**options).fit(bitext, engine=engine), bitext) == whole


@pytest.mark.parametrize("stems", [0.0, 2.0])
def test_tables_without_rare_pairs_give_the_same_bytes(bitext, tmp_path, stems):
    """Cells without an entry go by stems, which workers are told."""

    def trained(**more):
        room = Room(entries=lambda forms: 300, classes=lambda forms: 200)
        corpus = Corpus.of_parts([bitext], lowercase=True, max_length=100, room=room, fine=True)
        assert corpus.least > 1
        training = Training(corpus, Settings.of("hmm", HMMAligner(stems=stems).get_params()), **more)
        result = run(training, training.begin(), iterations=training.iterations)
        arrays, _ = training.dump(result.state)
        return result.trace.tobytes(), {name: array.tobytes() for name, array in arrays.items()}

    whole = trained()
    with serving(tmp_path, 2), ArrayEngine(str(tmp_path), groups=3) as engine:
        assert trained(engine=engine) == whole


# --- what may happen to workers ---------------------------------------------------------------------------------------


def _written(claim):
    with suppress(FileNotFoundError):  # its group was done meanwhile
        return claim.read_text()


class Killing(ProcessEngine):
    """Kills its first worker in the middle of a group; if it is never met there, between two of them."""

    killed = 0

    def look_after(self, step):
        met = any(_written(claim) == "0 of 2" for claim in (self.path / step).glob("*.claim"))
        if not self.killed and step > "step-000" and (met or step > "step-004"):
            os.kill(self.processes[0].pid, signal.SIGKILL)
            self.processes[0].wait()
            self.killed += 1
        super().look_after(step)


def test_a_worker_that_is_killed_changes_nothing(bitext, local):
    with Killing(workers=2, groups=12) as engine:
        found = HMMAligner().fit(bitext, engine=engine)
        assert engine.killed == 1 and all(process.poll() is None for process in engine.processes)
    assert bits(found, bitext) == local


def test_workers_that_die_again_and_again_are_given_up(bitext, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkerError, match="die again and again"), ProcessEngine(workers=1) as engine:
        HMMAligner().fit(bitext, engine=engine)
    assert not engine.path.exists()


class Damaging(ArrayEngine):
    """Changes a byte of a result before it is read, and of what a shard handed on before it is needed."""

    made_again: list[tuple[str, int]]

    def _result(self, step, digest, group):
        if (step, group) == ("step-002", 1) and not self.made_again:
            while not self.folder.is_done(step, digest, group):
                time.sleep(0.01)
            _flip(next((self.path / step).glob("group-00001-*.bin")))
        return super()._result(step, digest, group)

    def again(self, step, group):
        self.made_again.append((step, group))

    def begin_step(self, step, digest):
        if step == "step-005":
            _flip(next((self.path / "step-004").glob("kept-0000001-*.bin")))


def _flip(path):
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 3] ^= 1
    path.write_bytes(whole)


def test_damaged_files_are_made_again(bitext, local, tmp_path):
    with serving(tmp_path, 2), Damaging(str(tmp_path), groups=3) as engine:
        engine.made_again = []
        assert bits(HMMAligner().fit(bitext, engine=engine), bitext) == local
        assert engine.made_again == [("step-002", 1)]


@pytest.mark.parametrize("problem", [ValueError("the seventh seal"), UsageError("the seventh seal")])
def test_a_worker_that_fails_says_why(bitext, tmp_path, monkeypatch, problem):
    def begin(self, step):
        raise problem

    monkeypatch.setattr(remote.AlignWorker, "begin", begin)
    with serving(tmp_path, 1), pytest.raises(WorkerError, match=r"group-0.*the seventh seal"):
        HMMAligner().fit(bitext, engine=ArrayEngine(str(tmp_path), groups=2))


# --- taking up --------------------------------------------------------------------------------------------------------


class Stopping(QuietProgress):
    def __init__(self, calls):
        self.calls = calls

    def within(self, fraction):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt


def test_a_run_is_taken_up_with_another_number_of_workers(bitext, local, tmp_path):
    with serving(tmp_path, 1), pytest.raises(Interrupted), ArrayEngine(str(tmp_path), groups=5) as engine:
        HMMAligner().fit(bitext, engine=engine, progress=Stopping(26))
    done = {path: path.stat().st_mtime_ns for path in tmp_path.glob("step-00[0-3]/group-*.json")}
    assert len(done) == 20 and (tmp_path / "step-004").exists()
    (tmp_path / "current.json").unlink()
    kept = {}

    class Looking(ArrayEngine):
        def begin_step(self, step, digest):
            kept.update({path: path.stat().st_mtime_ns for path in done if path.exists()} if step == "step-004" else {})

    with serving(tmp_path, 3), Looking(str(tmp_path), workers=3, groups=9) as engine:
        assert bits(HMMAligner().fit(bitext, engine=engine), bitext) == local
        assert len(engine.folder.groups) == 5
    assert kept == done  # nothing of it was done again


def test_another_text_or_other_options_in_the_same_folder(bitext, local, tmp_path):
    with serving(tmp_path, 1), pytest.raises(KeyboardInterrupt):
        HMMAligner(iterations=2).fit(bitext, engine=ArrayEngine(str(tmp_path), groups=2), progress=_Early())
    (tmp_path / "current.json").unlink()
    with pytest.raises(UsageError, match="a run on another text"):
        HMMAligner().fit(samples.synthetic(50, seed=4).bitext, engine=ArrayEngine(str(tmp_path)))
    with serving(tmp_path, 1), ArrayEngine(str(tmp_path)) as engine:  # results of other options do not count
        assert bits(HMMAligner(smoothing=0.01).fit(bitext, engine=engine), bitext) != local
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current.json", "run.json"]
    (tmp_path / "current.json").unlink()
    with serving(tmp_path, 1), ArrayEngine(str(tmp_path)) as engine:
        assert bits(HMMAligner().fit(bitext, engine=engine), bitext) == local


class _Early(QuietProgress):
    def start(self, name, total=None):
        if name == "Decoding":
            raise KeyboardInterrupt


# --- the command line -------------------------------------------------------------------------------------------------


def test_commands_write_the_same_bytes(isogloss: Call, tmp_path):
    common = ["align", SOURCE, TARGET, "--scores", "-q"]
    assert isogloss(*common, "-o", tmp_path / "a", "--save", tmp_path / "a.model").status == 0
    there = ["-o", tmp_path / "b", "--save", tmp_path / "b.model", "--engine", "processes", "--workers", 2]
    assert isogloss(*common, *there, "--work-folder", tmp_path / "work").status == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for name in ("model.json", "model.safetensors"):
        assert (tmp_path / "a.model" / name).read_bytes() == (tmp_path / "b.model" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["current.json", "run.json"]


def test_a_job_for_each_group_and_step(isogloss: Call, bitext, local, tmp_path):
    found = []

    def fit():
        with ArrayEngine(str(tmp_path), groups=2) as engine:
            found.append(HMMAligner().fit(bitext, engine=engine))

    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    while not (tmp_path / "current.json").exists():
        time.sleep(0.01)
    assert "has 2 groups" in isogloss("align-worker", tmp_path, "--group", 2).err
    said = set()
    while thread.is_alive():
        for group in (0, 1, 1):  # what is there is not done again
            answer = isogloss("align-worker", tmp_path, "--group", group)
            assert answer.status == 0
            said.add(answer.err.strip())
    assert "isogloss: step-003: group 1 is done" in said and "isogloss: decoding: group 0 is done" in said
    assert bits(found[0], bitext) == local
    assert "the run is over" in isogloss("align-worker", tmp_path, "--group", 0).err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", 2], "--workers is for other processes"),
        (["--engine", "array"], "name a folder that all workers see"),
        (["--engine", "processes", "--address", "auto"], "--address is that of a Ray cluster"),
        (["--engine", "processes", "--resume"], "--resume does not go with --engine processes"),
        (["--engine", "processes", "--chunk", 5], "--chunk does not go with --engine processes"),
        (["--engine", "spark"], "'spark' is not one of"),
    ],
)
def test_what_does_not_go_together_is_refused(isogloss: Call, tmp_path, arguments, words):
    answer = isogloss("align", SOURCE, TARGET, "-o", tmp_path / "links", *arguments)
    assert answer.status == 2 and words in answer.err


@pytest.mark.parametrize("arguments", [[], ["--group", 0, "--index", 0], ["--index", 1], ["--index", 2, "--of", 2]])
def test_a_worker_is_told_which_part_is_its_own(isogloss: Call, tmp_path, arguments):
    assert isogloss("align-worker", tmp_path, *arguments).status == 2


def test_folders_of_nobody_and_of_other_versions(isogloss: Call, tmp_path):
    assert "no run has been begun" in isogloss("align-worker", tmp_path, "--group", 0).err
    parcels.mark(tmp_path / "run", {"isogloss": "0.0.1", "groups": [], "worker": "", "setup": ""})
    with pytest.raises(UsageError, match=r"is of Isogloss 0\.0\.1"):
        WorkFolder(tmp_path)
    with pytest.raises(UsageError, match=r"is of Isogloss 0\.0\.1"):
        serve(tmp_path, 0, 1)


# --- Ray --------------------------------------------------------------------------------------------------------------


def test_without_ray_the_command_says_how_to_get_it(isogloss: Call, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    answer = isogloss("align", SOURCE, TARGET, "-o", tmp_path / "links", "--engine", "ray", "-q")
    assert answer.status == 2 and "pip install 'isogloss[ray]'" in answer.err


@pytest.mark.slow
def test_tasks_of_ray_give_the_bytes_of_threads(bitext, local):
    pytest.importorskip("ray")
    from isogloss.engine.on_ray import RayEngine

    with RayEngine(workers=2, groups=6) as engine:
        assert bits(HMMAligner().fit(bitext, engine=engine), bitext) == local


# --- files that say something else ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "array", "value"),
    [
        ("words-0000000", "source_ids", 10**6), ("words-0000000", "target_offsets", -1), ("setup", "columns", 10**6),
        ("setup", "rows", 10**9), ("step-000", "weights", np.nan),
    ],
)  # fmt: skip
def test_what_a_kernel_would_index_with_is_checked_first(bitext, name, array, value, tmp_path):
    """Parcels whose hashes are right, and whose numbers lead outside."""
    folder = Path(tmp_path)
    with pytest.raises(Interrupted), Keeping(str(folder), workers=1) as engine:
        HMMAligner().fit(bitext, engine=engine)
    found = parcels.read(folder / name)
    arrays = {key: one.copy() for key, one in found.arrays.items()}
    arrays[array].reshape(-1)[-1] = value
    parcels.write(folder / name, arrays, found.meta)
    with pytest.raises(ModelError):
        work(WorkFolder(folder), "step-000", 0, again=True)


class Keeping(ArrayEngine):
    """Is stopped as soon as the first step is written down."""

    def look_after(self, step):
        raise Interrupted("enough")
