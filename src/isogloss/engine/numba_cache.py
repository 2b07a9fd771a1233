"""Numba's own cache of compiled kernels, made to forgive: what cannot be kept on the disk is compiled again next time.

Numba lets the error of a full disk through to whoever called a kernel, and raises on import where no folder can be
written. `prepare` puts this right before the first kernel is made, without importing Numba, or much else, by itself.
It also lets processes that start together take turns, so that each kernel is compiled by one of them, not by all.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["compile_seconds", "prepare"]

MODULE = "numba.core.dispatcher"
"""What is imported before any kernel is made."""

PATIENCE = 300.0
"""Seconds that a process waits, at most, for another one to compile."""

_timers: list[Any] = []
_turns: dict[str, int] = {}
"""Open files of kernels that this process is compiling, which others wait for; Numba's lock guards it."""


def prepare() -> None:
    """Choose the folder for kernels as soon as Numba is imported, and no sooner: `import isogloss` costs nothing."""
    if MODULE in sys.modules:
        _make_ready()
    else:
        sys.meta_path.insert(0, _Watch())


def _make_ready() -> None:
    from isogloss.engine import cache

    _forgive(cache.ensure_cache() is not None, cache.could_not_keep)
    _measure()


class _Watch:
    """Finds `MODULE` as Python would, and makes everything ready when it has been imported."""

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != MODULE:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _make_ready()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _forgive(keeps: bool, tell: Callable[[Exception], None]) -> None:
    """Let kernels run though their code cannot be kept; `tell` is given the reason.

    Where nothing can be kept at all (`keeps` is false), ``cache=True`` means nothing from now on.
    """
    from numba.core.caching import FunctionCache
    from numba.core.dispatcher import Dispatcher

    if not keeps:
        Dispatcher.enable_caching = lambda self: None  # type: ignore[method-assign]
        return

    def forgiving(call: Callable[..., Any], problem: type[Exception]) -> Callable[..., Any]:
        def forgiven(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except problem as found:
                tell(found)
                return None

        return forgiven

    owner: Any = FunctionCache  # not their parent class: other libraries keep other things with it
    owner.load_overload = forgiving(FunctionCache.load_overload, OSError)
    owner.save_overload = forgiving(FunctionCache.save_overload, OSError)
    Dispatcher.enable_caching = forgiving(Dispatcher.enable_caching, RuntimeError)  # type: ignore[method-assign]
    _take_turns(owner, Dispatcher)


def _take_turns(keeper: Any, dispatcher: Any) -> None:
    """Let a process that lacks a kernel wait while another one compiles kernels of the same file, then look again.

    The turn is a lock on the file of sources, which ends with the process. Files of kernels do not import each other in
    circles, so no two processes wait for each other.
    """
    from numba.core.compiler_lock import global_compiler_lock

    load, compile_one = keeper.load_overload, dispatcher.compile

    def load_overload(self: Any, sig: Any, target: Any) -> Any:
        found = load(self, sig, target)
        if found is None and _wait_for_turn(self._py_func.__code__.co_filename):
            found = load(self, sig, target)
        return found

    def compile_in_turn(self: Any, sig: Any) -> Any:
        with global_compiler_lock:
            before = len(_turns)
            try:
                return compile_one(self, sig)
            finally:
                while len(_turns) > before:
                    os.close(_turns.popitem()[1])

    keeper.load_overload, dispatcher.compile = load_overload, compile_in_turn


def _wait_for_turn(path: str) -> bool:
    """Begin a turn at the kernels of a file; True if another process has had one meanwhile.

    Where files cannot be locked, every process compiles for itself.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    if path in _turns:
        return False
    with suppress(OSError):
        _turns[path] = os.open(path, os.O_RDONLY)
        end = time.monotonic() + PATIENCE
        waited = False
        while time.monotonic() < end:
            try:
                fcntl.flock(_turns[path], fcntl.LOCK_EX | fcntl.LOCK_NB)
                return waited
            except BlockingIOError:
                waited = True
                time.sleep(0.02)
    return True


def _measure() -> None:
    """Begin to count the time that compiling takes."""
    event: Any = import_module("numba.core.event")
    _timers.append(event.TimingListener())
    event.register("numba:compile", _timers[-1])


def compile_seconds() -> float:
    """How long this process has spent on compiling kernels; what was taken from the cache does not count."""
    return float(sum(timer.duration for timer in _timers if timer.done))
