"""What a bug report should say about the machine: versions, processor, memory, and where compiled kernels are."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

CPUINFO, MEMINFO = Path("/proc/cpuinfo"), Path("/proc/meminfo")

__all__ = ["as_text", "environment", "kernel_cache"]

_PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "safetensors", "typer", "rich", "zstandard", "defusedxml")
_PREFIXES = ("NUMBA_", "OPENBLAS_", "OMP_", "MKL_", "ISOGLOSS_", "XDG_CACHE_HOME")


def environment() -> dict[str, Any]:
    """Versions, machine, threads, memory, the cache of kernels, and the variables that have a say in them."""
    from isogloss._version import __version__
    from isogloss.engine import cache
    from isogloss.engine.threads import available, threads

    variables = {name: value for name, value in sorted(os.environ.items()) if name.startswith(_PREFIXES)}
    folder, kernels = cache.ensure_cache(), cache.kernels()
    total, free = _memory()
    return {
        "isogloss": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        **{name: _version(name) for name in _PACKAGES},
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": available(),
        "threads": threads(),
        "memory_mb": total,
        "memory_available_mb": free,
        "cache": None if folder is None else str(folder),
        "cache_kernels": len(kernels),
        "cache_mb": _megabytes(kernels),
        "warm": not cache.cold(cache.EVERYTHING),
        "troubles": list(cache.troubles()),
        "variables": variables,
    }


def as_text(facts: dict[str, Any]) -> str:
    """The same for people, a fact a line."""
    width = max(map(len, facts))
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = " ".join(f"{key}={entry}" for key, entry in value.items()) or "none is set"
        elif isinstance(value, list):
            value = "; ".join(value) or "none"
        lines.append(f"{name.replace('_', ' '):{width}}  {'unknown' if value is None else value}\n")
    return "".join(lines)


def kernel_cache() -> str:
    """Where compiled kernels are, and how much room they take, in words."""
    from isogloss.engine import cache

    folder, kernels = cache.ensure_cache(), cache.kernels()
    if folder is None:
        return "they can be kept nowhere, so every run compiles again"
    return f"{len(kernels):,} of them, {_megabytes(kernels):,} MB, are in {folder}"


def _megabytes(files: Iterable[Path]) -> float:
    return round(sum(path.stat().st_size for path in files) / 1e6, 1)


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The name of the processor, and what LLVM calls its kind, for which kernels are compiled."""
    from llvmlite.binding import get_host_cpu_name  # type: ignore[import-untyped]

    name = platform.processor() or platform.machine()
    with suppress(OSError, KeyError):  # Linux alone has such a file
        name = _table(CPUINFO)["model name"]
    return f"{name} ({get_host_cpu_name()})"


def _memory() -> tuple[int | None, int | None]:
    """Megabytes that the machine has, and that are free for the asking; None where the system does not say."""
    with suppress(OSError, KeyError, ValueError):
        table = _table(MEMINFO)
        return int(table["MemTotal"].split()[0]) // 1024, int(table["MemAvailable"].split()[0]) // 1024
    with suppress(OSError, ValueError, AttributeError):  # macOS; Windows has no `sysconf`
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20, None
    return None, None


def _table(path: Path) -> dict[str, str]:
    """Lines of ``name : value``, as the kernel of Linux writes them."""
    rows = (line.partition(":") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name.strip(): value.strip() for name, _, value in rows}
