"""Numba's own cache of compiled kernels, made to forgive: what cannot be kept on the disk is compiled again next time.

Numba lets the error of a full disk through to whoever called a kernel, and raises on import where no folder can be
written. `prepare` puts this right before the first kernel is made, without importing Numba, or much else, by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["compile_seconds", "prepare"]

MODULE = "numba.core.dispatcher"
"""What is imported before any kernel is made."""

_timers: list[Any] = []


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


def _measure() -> None:
    """Begin to count the time that compiling takes."""
    event: Any = import_module("numba.core.event")
    _timers.append(event.TimingListener())
    event.register("numba:compile", _timers[-1])


def compile_seconds() -> float:
    """How long this process has spent on compiling kernels; what was taken from the cache does not count."""
    return float(sum(timer.duration for timer in _timers if timer.done))
