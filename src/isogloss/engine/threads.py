"""How many cores a kernel may use."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock, local
from typing import Any, TypeVar

from isogloss.errors import ParameterError

__all__ = ["available", "in_background", "run_blocks", "threads", "using_threads"]

T = TypeVar("T")


def threads(n: int | None = None) -> int:
    """The number of threads to use: all we may have, or `n` of them if that many can be had.

    Asking for more than there are is not an error: results do not depend on the number.

    Examples
    --------
    >>> threads(1)
    1
    """
    if n is None:
        return min(available(), _ceiling())
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ParameterError(f"threads should be a positive integer, or None for all cores, not {n!r}")
    return min(n, _ceiling())


def available() -> int:
    """Cores this process may run on: its affinity mask, less what a container's quota takes away."""
    return max(1, min(_cores(), _quota_once()))


@cache
def _quota_once() -> int:
    """Quotas hardly change while a process runs, and reading them takes half a millisecond."""
    return _quota()


def _cores() -> int:
    if hasattr(os, "process_cpu_count"):  # Python 3.13; also listens to PYTHON_CPU_COUNT
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ceiling() -> int:
    """The most threads Numba will start: what its variable says, or a thread for each core."""
    try:
        return max(1, int(os.environ["NUMBA_NUM_THREADS"]))
    except (KeyError, ValueError):
        return _cores()


def _quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Cores that control groups grant, rounded up; a large number where there is no limit.

    Version 2 says ``quota period`` (or ``max period``) in `cpu.max` of our group and of each group around it; version 1
    has the same two numbers in two files, -1 for none. Inside a container our group is usually the root.
    """
    limit = math.inf
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, group = (line.split(":", 2) + ["", ""])[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = root / "cpu" if controllers else root
        inner = base / group.lstrip("/")
        for folder in (inner, *(p for p in inner.parents if p.is_relative_to(base))):
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            try:
                quota, period = " ".join((folder / name).read_text() for name in names).split()
                if quota not in ("max", "-1"):
                    limit = min(limit, math.ceil(int(quota) / int(period)))
            except (OSError, ValueError, ZeroDivisionError):
                continue
    return 2**16 if limit == math.inf else max(1, int(limit))


@contextmanager
def using_threads(n: int | None = None) -> Iterator[int]:
    """Let kernels inside use `threads(n)` threads, and put the number back afterwards.

    None inside another `using_threads` keeps the number chosen there. Every Python thread has a number of its own, and
    none waits for another, so that work which is split over threads by hand may be done inside or outside of this. In a
    block of `run_blocks` the number is 1: the other cores have blocks of their own.

    Kernels of yours in Numba's parallel mode need a lock of their own if several Python threads call them: its
    `workqueue` layer, the one that is always there, ends the process when two enter at once.

    Examples
    --------
    >>> with using_threads(1) as n:
    ...     n
    1
    """
    import numba
    from numba.core import config

    before = numba.get_num_threads()
    if n is None and _here.inside:
        n = _here.number
    chosen = min(threads(n), config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    chosen = 1 if _here.in_block else chosen
    numba.set_num_threads(chosen)
    outer, _here.number = _here.number, chosen
    _here.inside += 1
    try:
        yield chosen
    finally:
        _here.inside -= 1
        _here.number = outer
        numba.set_num_threads(before)


class _Here(local):
    """What one Python thread may use."""

    number = 1
    inside = 0
    in_block = False


_here = _Here()
_pools: dict[int, ThreadPoolExecutor] = {}
_making_pools = Lock()


def _forget_pools() -> None:
    """In a forked process: its threads are gone, and what is submitted to them would wait for ever."""
    global _making_pools
    _pools.clear()
    _making_pools = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def _pool(n: int) -> ThreadPoolExecutor:
    """The pool of that size, which all Python threads share; its threads know that what they run are blocks."""
    with _making_pools:
        if n not in _pools:
            _pools[n] = ThreadPoolExecutor(n, "isogloss", initializer=setattr, initargs=(_here, "in_block", True))
        return _pools[n]


def run_blocks(kernel: Callable[..., object], count: int, *args: Any) -> None:
    """``kernel(block, count, *args)`` for every block from 0 to count - 1, on the threads of `using_threads`.

    Kernels release Python's lock, and a block writes only what is its own; then nothing depends on the number of
    threads, and kernels need not be compiled in Numba's parallel mode, which takes three times as long. `count` should
    depend on the data alone. Outside `using_threads`, and for a call from within a block, blocks run one after the
    other. When one fails, those that have not begun are left out.

    Examples
    --------
    >>> seen = []
    >>> run_blocks(lambda block, count: seen.append((block, count)), 2)
    >>> seen
    [(0, 2), (1, 2)]
    """
    if _here.number == 1 or count == 1:
        for block in range(count):
            kernel(block, count, *args)
        return
    pool = _pool(_here.number)
    started = [pool.submit(kernel, block, count, *args) for block in range(count)]
    try:
        for result in started:
            result.result()
    except BaseException:
        for result in started:
            result.cancel()
        raise


def in_background(function: Callable[..., T], *args: Any) -> Future[T] | None:
    """Start a function in another thread, one after the other; kernels run on that thread alone.

    None where kernels have one thread: then there is no core to do it on, and whoever needs it calls it.
    """
    return _pool(1).submit(function, *args) if _here.number > 1 else None
