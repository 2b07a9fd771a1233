"""Shards that are worked on by other processes, over a folder of files that all of them see.

The folder has everything once: the encoded shards, what is the same for all of them (`setup`), the parameters of each
step, and for each step and each group of shards a result. All are parcels (`engine.parcels`): a group is done when its
data, hash and marker are there and say that they were made of this step. So workers may come, die and come back, a
group may be worked on twice, and a run that was stopped is taken up on any number of workers, with the same bytes.

``run.json``          version, the text, groups of shards, and which class does the work
``setup, words-*``    what a worker reads once, and shards
``current.json``      the step that is to be worked on, or that the run is over
``step-*``            parameters of a step
``step-*/group-*``    the result of a group; ``step-*/kept-*`` what a shard hands on to its next step
``step-*/*.claim``    who works on a group; ``step-*/*.error.json`` what went wrong there

Local processes, tasks of Ray and arrays of jobs are three ways to call the same function, `work`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np

from isogloss._version import __version__
from isogloss.engine import parcels
from isogloss.engine.parcels import Arrays, Damaged, Parcel
from isogloss.engine.shards import shards as cut
from isogloss.errors import IsoglossError, ModelError, UsageError, WorkerError

__all__ = ["ArrayEngine", "Portable", "ProcessEngine", "Setup", "WorkFolder", "Worker", "WorkerEngine", "serve", "work"]

S = TypeVar("S")
R = TypeVar("R")
Total = TypeVar("Total")
_WORKERS = ("isogloss.tasks.align.remote",)
_STALE = 900.0  # seconds after which a group that nobody has touched may be worked on by others
_SHORT, _LONG = 0.005, 0.2  # seconds between two looks at the folder
_DEATHS = 5  # of workers, without a group that was done between them


class Setup(Protocol):
    """A text as workers need it."""

    worker: str
    """``module:class`` of the `Worker`, within this package."""

    def written(self) -> tuple[Arrays, dict[str, Any]]:
        """What is the same for all shards and steps."""
        ...

    def words(self, shard: int) -> Arrays:
        """One shard."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """Work in each shard."""
        ...


class Portable(Protocol):
    """A pure function of a shard that other processes can be told of."""

    name: str

    def setup(self) -> Setup:
        """What it is a function on."""
        ...

    def written(self) -> tuple[Arrays, dict[str, Any]]:
        """Parameters, and plain data; `keeps` among them says whether shards hand something on to their next step."""
        ...

    def gathered(self, shards: Sequence[int], found: Arrays, kept: Callable[[int], Arrays]) -> Any:
        """What workers found for a group of shards, as the function itself would give it."""
        ...


class Worker(Protocol):
    """Does the work, in another process: made of a `Setup` that was written."""

    def begin(self, step: Parcel) -> WorkOnGroup: ...


class WorkOnGroup(Protocol):
    """The work on one group of shards in one step."""

    def add(self, shard: int, words: Arrays, before: Arrays | None) -> Arrays | None:
        """Work on a shard; returns what it hands on to its next step, if it does."""
        ...

    def result(self) -> Arrays:
        """What all shards of the group come to."""
        ...


# --- the folder -------------------------------------------------------------------------------------------------------


class WorkFolder:
    """The folder of a run, as everybody sees it once `run.json` is there."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        run = parcels.marker(self.path / "run")
        if run is None:
            raise UsageError(f"{self.path}: no run has been begun in this folder")
        if run["isogloss"] != __version__:
            raise UsageError(
                f"{self.path}: this run is of Isogloss {run['isogloss']}, and this is {__version__}. All who take "
                "part need the same version"
            )
        self.run: dict[str, Any] = run
        self.groups = [range(first, last) for first, last in run["groups"]]
        self._worker: Worker | None = None
        self._step: tuple[str, str, Parcel] | None = None

    def current(self) -> dict[str, Any]:
        """The step that is to be worked on ({"step", "hash"}), {"finished": True}, or nothing yet."""
        return parcels.marker(self.path / "current") or {}

    def is_done(self, step: str, digest: str, group: int) -> bool:
        """Whether there is a result of this group, made of this step; that it is undamaged is seen when it is read."""
        said = parcels.marker(self.of_group(step, group))
        return said is not None and said.get("meta", {}).get("step") == digest

    def of_group(self, step: str, group: int) -> Path:
        return self.path / step / f"group-{group:05d}"

    def of_shard(self, step: str, shard: int) -> Path:
        return self.path / step / f"kept-{shard:07d}"

    def step(self, name: str) -> Parcel:
        """The parameters of a step; those of the last are kept, for its next group."""
        said = parcels.marker(self.path / name) or {}
        if self._step is None or self._step[:2] != (name, said.get("sha256")):
            self._step = None
            found = parcels.read(self.path / name)
            self._step = name, found.hash, found
        return self._step[2]

    @property
    def worker(self) -> Worker:
        if self._worker is None:
            module, name = str(self.run["worker"]).split(":")
            if module not in _WORKERS:  # a file says which: it may name nothing else
                raise ModelError(f"{self.path}: {module} is not for workers. Begin the run again, in a new folder")
            self._worker = cast(Worker, getattr(import_module(module), name)(parcels.read(self.path / "setup")))
        return self._worker


def _words(path: Path, shard: int) -> Path:
    return path / f"words-{shard:07d}"


def work(
    folder: WorkFolder, step: str, group: int, *, again: bool = False, beat: Callable[[], None] | None = None
) -> None:
    """Work on one group of shards in one step, and write its result; nothing to do if that is there, unless `again`.

    If what the step before handed on is damaged, that is done again first.
    """
    parameters = folder.step(step)
    if not again and folder.is_done(step, parameters.hash, group):
        return
    try:
        found = _worked(folder, step, parameters, group, beat)
    except _NotHandedOn:
        work(folder, parameters.meta["before"][0], group, again=True, beat=beat)
        found = _worked(folder, step, parameters, group, beat)
    parcels.write(folder.of_group(step, group), found, {"step": parameters.hash})


def _worked(folder: WorkFolder, step: str, parameters: Parcel, group: int, beat: Callable[[], None] | None) -> Arrays:
    job = folder.worker.begin(parameters)
    for shard in folder.groups[group]:
        words = parcels.read(_words(folder.path, shard)).arrays
        handed_on = job.add(shard, words, _before(folder, parameters, shard))
        if handed_on is not None:
            parcels.write(folder.of_shard(step, shard), handed_on, {"step": parameters.hash})
        if beat is not None:
            beat()
    return job.result()


class _NotHandedOn(Damaged):
    """What a shard handed on is not there, or not as it was written."""


def _before(folder: WorkFolder, parameters: Parcel, shard: int) -> Arrays | None:
    """What a shard handed on to this step."""
    name, digest = parameters.meta["before"]
    if name is None:
        return None
    try:
        found = parcels.read(folder.of_shard(name, shard))
    except Damaged as problem:
        raise _NotHandedOn(str(problem)) from problem
    if found.meta["step"] != digest:
        raise _NotHandedOn(f"{folder.path}: what {name} handed on is of another run")
    return found.arrays


# --- those who work ---------------------------------------------------------------------------------------------------


def serve(path: str | os.PathLike[str], index: int, of: int) -> None:
    """Be worker `index` of `of`: take groups that nobody works on, step after step, until the run is over.

    A worker begins with groups that are its own as long as all others do their part, and takes on what it claimed in an
    earlier life. A folder without a run is waited for.
    """
    folder, wait = None, _SHORT
    while True:
        if folder is None and parcels.marker(Path(path) / "run") is not None:
            folder = WorkFolder(path)
        current = {} if folder is None else folder.current()
        if current.get("finished"):
            return
        if folder is not None and "step" in current and _serve_one(folder, current, index, of):
            wait = _SHORT
            continue
        time.sleep(wait)
        wait = min(_LONG, 1.5 * wait)


def _serve_one(folder: WorkFolder, current: dict[str, Any], index: int, of: int) -> bool:
    """Work on one group, if there is one to be worked on."""
    step, digest, n = current["step"], current["hash"], len(folder.groups)
    for k in range(n):
        group = (index * n // of + k) % n
        place = folder.of_group(step, group)
        if folder.is_done(step, digest, group):
            continue
        if parcels.marker(_error(place)) is None and _claimed(place, f"{index} of {of}"):
            _reporting(folder, step, group)
            return True
    return False


def _reporting(folder: WorkFolder, step: str, group: int) -> None:
    """Work on a group; what goes wrong is written down for the one who waits."""
    place = folder.of_group(step, group)

    def beat() -> None:
        with suppress(OSError):
            os.utime(_claim(place))

    try:
        work(folder, step, group, beat=beat)
    except Exception as problem:
        if folder.current().get("step") == step:  # otherwise others were faster, and the run has gone on
            words = str(problem) if isinstance(problem, IsoglossError) else f"{type(problem).__name__}: {problem}"
            parcels.mark(_error(place), {"words": words, "traceback": traceback.format_exc()})
    with suppress(OSError):
        os.unlink(_claim(place))


def _claimed(place: Path, name: str) -> bool:
    """Whether a group is now this worker's: nobody else has it, or has not touched it for long."""
    claim = _claim(place)
    try:
        with open(claim, "x", encoding="utf-8") as file:
            file.write(name)
        return True
    except FileExistsError:
        with suppress(OSError):
            if claim.read_text(encoding="utf-8") == name or time.time() - claim.stat().st_mtime > _STALE:
                claim.write_text(name, encoding="utf-8")
                return True
    except FileNotFoundError:
        pass  # the run has gone on
    return False


def _claim(place: Path) -> Path:
    return place.with_name(place.name + ".claim")


def _error(place: Path) -> Path:
    return place.with_name(place.name + ".error")


# --- the one who waits ------------------------------------------------------------------------------------------------


class WorkerEngine:
    """Writes down what is to be done, waits for it, and hands on the results in the order of shards.

    Parameters
    ----------
    folder : path, optional
        The work folder, seen by all workers. One that has a run of the same text takes it up; without a name, a
        folder for the time being.
    groups : int, optional
        Groups of shards; each is worked on as one, and has one result. By default four for each worker.
    workers : int
        How many workers there are, or are to be.
    """

    def __init__(self, folder: str | None = None, *, workers: int = 1, groups: int | None = None) -> None:
        self.workers, self.n_groups = workers, groups or 4 * workers
        self.temporary = folder is None
        self.path = Path(tempfile.mkdtemp(prefix="isogloss-work-") if folder is None else folder)
        self.folder: WorkFolder | None = None
        self._before: tuple[str | None, str | None] = (None, None)
        self._steps: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> None:
        self.close(finished=kind is None)

    def map(self, function: Callable[[S], R], shards: Sequence[S]) -> Iterator[R]:
        """Results of `function`, which is `Portable`, one for each group of shards."""
        job = cast(Portable, function)
        if self.folder is None:
            self.folder = self._prepared(job.setup())
            self.start()
        folder, name = self.folder, job.name
        arrays, meta = job.written()
        (self.path / name).mkdir(exist_ok=True)
        for left in (*(self.path / name).glob("*.claim"), *(self.path / name).glob("*.error.json")):
            left.unlink(missing_ok=True)
        digest = parcels.write(self.path / name, arrays, {**meta, "before": self._before})
        self._steps.append(name)
        self._forget_older()
        self.begin_step(name, digest)
        parcels.mark(self.path / "current", {"step": name, "hash": digest})
        for group, those in enumerate(folder.groups):
            found = self._result(name, digest, group)
            yield job.gathered(those, found, lambda shard: parcels.read(folder.of_shard(name, shard)).arrays)
            del found
        if meta["keeps"]:
            self._before = name, digest

    def reduce(
        self, function: Callable[[S], R], shards: Sequence[S], combine: Callable[[Total, R], Total], total: Total
    ) -> Total:
        """Combine the results of all groups, in order."""
        for result in self.map(function, shards):
            total = combine(total, result)
        return total

    def close(self, *, finished: bool = True) -> None:
        """End the workers; a run that is `finished` leaves no more than word of that in a folder of the user's."""
        if finished and self.folder is not None:
            parcels.mark(self.path / "current", {"finished": True})
        self.stop()
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        elif finished and self.folder is not None:
            _clear(self.path)

    # --- who works; others may do it otherwise

    def start(self) -> None:
        """Begin the work: called once, when the folder is ready."""

    def begin_step(self, step: str, digest: str) -> None:
        """A step is about to begin."""

    def look_after(self, step: str) -> None:
        """Called again and again while a result is waited for."""

    def again(self, step: str, group: int) -> None:
        """A result was damaged, and taken away."""

    def stop(self) -> None:
        """End what was started."""

    # --- inside

    def _prepared(self, setup: Setup) -> WorkFolder:
        """The folder with the text in it."""
        self.path.mkdir(parents=True, exist_ok=True)
        if self._is_finished():
            _clear(self.path)
            (self.path / "run.json").unlink(missing_ok=True)
        arrays, meta = setup.written()
        digest = parcels.hash_of(arrays, meta)
        run = parcels.marker(self.path / "run")
        if run is not None and run.get("setup") != digest:
            raise UsageError(
                f"{self.path}: the folder holds a run on another text, or with another table. Give another folder, or "
                "delete this one"
            )
        (self.path / "current.json").unlink(missing_ok=True)
        parcels.write(self.path / "setup", arrays, meta)
        for shard in range(len(setup.sizes)):
            parcels.write(_words(self.path, shard), setup.words(shard), {})
        if run is None:
            groups = _groups(np.asarray(setup.sizes, np.int64), self.n_groups)
            run = {"isogloss": __version__, "worker": setup.worker, "setup": digest, "groups": groups}
            parcels.mark(self.path / "run", run)
        return WorkFolder(self.path)

    def _is_finished(self) -> bool:
        return bool((parcels.marker(self.path / "current") or {}).get("finished"))

    def _result(self, step: str, digest: str, group: int) -> Arrays:
        """The result of a group, when it is there and whole."""
        assert self.folder is not None
        place, wait = self.folder.of_group(step, group), _SHORT
        while True:
            if self.folder.is_done(step, digest, group):
                try:
                    return parcels.read(place).arrays
                except Damaged:
                    parcels.forget(place)
                    self.again(step, group)
            for error in (self.path / step).glob("*.error.json"):
                if (said := parcels.marker(error.with_suffix(""))) is not None:
                    raise WorkerError(f"{self.path}: a worker failed on {error.name.split('.')[0]}: {said['words']}")
            self.look_after(step)
            time.sleep(wait)
            wait = min(_LONG, 1.5 * wait)

    def _forget_older(self) -> None:
        """Take away what shards handed on three steps ago: two steps back may still be needed, to mend the last."""
        for name in self._steps[:-3]:
            for marker in (self.path / name).glob("kept-*.json"):
                parcels.forget(marker.with_suffix(""))


def _groups(sizes: Any, n_groups: int) -> list[tuple[int, int]]:
    """Shards that follow each other, about as much work in each group."""
    least, most = int(sizes.max(initial=1)), int(sizes.sum()) or 1
    limit = max(least, -(-most // n_groups))
    while len(found := cut(sizes, limit=limit)) > n_groups:
        limit += max(1, limit // 64)
    return [(group.start, group.stop) for group in found]


def _clear(path: Path) -> None:
    """Take away what belongs to a run, but for the word that it is over."""
    for step in path.glob("*/"):
        if step.name.startswith(("step-", "decoding")):
            shutil.rmtree(step, ignore_errors=True)
    for pattern in ("setup*", "words-*", "step-*", "decoding*", "worker-*.log"):
        for file in path.glob(pattern):
            file.unlink(missing_ok=True)


class ArrayEngine(WorkerEngine):
    """Starts nobody: workers are jobs that somebody else starts (`isogloss align-worker`)."""


class ProcessEngine(WorkerEngine):
    """Workers are processes of this machine, which are started again when they die.

    Parameters
    ----------
    folder, groups
        As `WorkerEngine` has them.
    workers : int
    threads : int
        Threads of each worker.
    """

    def __init__(
        self, folder: str | None = None, *, workers: int = 1, groups: int | None = None, threads: int = 1
    ) -> None:
        super().__init__(folder, workers=workers, groups=groups)
        self.threads = threads
        self.processes: list[subprocess.Popen[bytes]] = []
        self._deaths, self._seen = 0, 0

    def start(self) -> None:
        self.processes = [self._started(index) for index in range(self.workers)]

    def _started(self, index: int) -> subprocess.Popen[bytes]:
        """A worker that ends when this process does: it watches its standard input, and has no terminal to stop it."""
        here = str(Path(__file__).resolve().parents[2])
        paths = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
        order = f"from isogloss.engine.workers import _process; _process({index}, {self.workers}, {self.threads})"
        with open(self.path / f"worker-{index}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", order, str(self.path)], stdin=subprocess.PIPE, stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": paths}, start_new_session=True,
            )  # fmt: skip

    def look_after(self, step: str) -> None:
        for index, process in enumerate(self.processes):
            if process.poll() is None:
                continue
            _shut(process)
            done = sum(1 for _ in self.path.glob("*/group-*[0-9].json"))
            self._deaths = 1 if done != self._seen else self._deaths + 1
            self._seen = done
            if self._deaths > _DEATHS:
                log = (self.path / f"worker-{index}.log").read_text(encoding="utf-8", errors="replace").strip()
                raise WorkerError(
                    f"{self.path}: workers die again and again (status {process.returncode}). Is there enough memory? "
                    f"The last words: {log[-500:] or 'none'}"
                )
            self.processes[index] = self._started(index)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            _shut(process)
        self.processes = []
        for log in self.path.glob("worker-*.log"):
            if not log.stat().st_size:
                log.unlink()


def _shut(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def _process(index: int, of: int, threads: int) -> None:
    """The main function of a worker of `ProcessEngine`."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from isogloss.engine.cache import ensure_cache
    from isogloss.engine.threads import using_threads

    ensure_cache()
    with using_threads(threads):
        serve(sys.argv[1], index, of)
