"""Workers that are tasks of Ray, on this machine or on a cluster whose nodes see the same work folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from isogloss.engine.workers import WorkerEngine, WorkFolder, work
from isogloss.errors import UsageError, WorkerError

__all__ = ["RayEngine"]

_RETRIES = 10  # of a task whose process or node dies


class RayEngine(WorkerEngine):
    """A task of Ray for each group of shards and step.

    Parameters
    ----------
    folder, groups
        As `WorkerEngine` has them; on a cluster the folder has to be one that all nodes see.
    workers : int
        Cores of a Ray that is started here; a cluster has those it has.
    address : str, optional
        Of a cluster that runs, or "auto"; without it, Ray is started on this machine.
    threads : int
        Threads, and so cores, of each task.
    """

    def __init__(
        self,
        folder: str | None = None,
        *,
        workers: int = 1,
        groups: int | None = None,
        address: str | None = None,
        threads: int = 1,
    ) -> None:
        try:
            import ray
        except ImportError:
            raise UsageError("--engine ray: Ray is not installed. Get it with: pip install 'isogloss[ray]'") from None
        super().__init__(folder, workers=workers, groups=groups)
        self.ray: Any = ray
        self.address, self.threads = address, threads
        self._tasks: dict[Any, int] = {}
        self._started = False

    def start(self) -> None:
        ray = self.ray
        if not ray.is_initialized():
            size: dict[str, Any] = (
                {} if self.address else {"num_cpus": self.workers * self.threads, "include_dashboard": False}
            )
            if self.address is None:  # processes on this machine find what this one has found
                size["runtime_env"] = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}}
            ray.init(address=self.address, log_to_driver=False, logging_level="ERROR", **size)
            self._started = True
        self._work = ray.remote(num_cpus=self.threads, max_retries=_RETRIES)(_task)

    def begin_step(self, step: str, digest: str) -> None:
        assert self.folder is not None
        self._tasks = {}
        for group in range(len(self.folder.groups)):
            if not self.folder.is_done(step, digest, group):
                self.again(step, group)

    def again(self, step: str, group: int) -> None:
        self._tasks[self._work.remote(str(self.path), step, group, self.threads)] = group

    def look_after(self, step: str) -> None:
        if not self._tasks:
            return
        ready, _ = self.ray.wait(list(self._tasks), num_returns=1, timeout=0)
        for task in ready:
            group = self._tasks.pop(task)
            try:
                self.ray.get(task)
            except self.ray.exceptions.RayTaskError as problem:
                cause = problem.cause
                raise WorkerError(
                    f"{self.path}: a worker failed on group {group}: {type(cause).__name__}: {cause}"
                ) from problem
            except self.ray.exceptions.RayError as problem:
                raise WorkerError(f"{self.path}: group {group} was lost: {problem}") from problem

    def stop(self) -> None:
        for task in self._tasks:
            self.ray.cancel(task, force=True)
        self._tasks = {}
        if self._started:
            self.ray.shutdown()
            self._started = False


_folders: dict[str, tuple[Any, WorkFolder]] = {}


def _task(path: str, step: str, group: int, threads: int) -> None:
    """In a process of Ray, which does many groups, and so keeps the folder it knows."""
    from isogloss.engine import parcels
    from isogloss.engine.cache import ensure_cache
    from isogloss.engine.threads import using_threads

    ensure_cache()
    run = parcels.marker(Path(path) / "run")
    if path not in _folders or _folders[path][0] != run:
        _folders[path] = run, WorkFolder(path)
    with using_threads(threads):
        work(_folders[path][1], step, group)
