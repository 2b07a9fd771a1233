"""Where kernels can run: on the processor, or on a GPU if there is one and torch is installed.

Nothing here imports torch before a GPU is likely to be there and wanted: the import takes seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import local

from isogloss.errors import ParameterError

__all__ = ["DEVICES", "choose", "current", "likely", "using_device"]

DEVICES = ("auto", "cpu", "cuda")
"""What an option `device` may be."""
_PLACES = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")  # the last one is Windows' subsystem for Linux
_INSTALL = "pip install 'isogloss[gpu]'"
_here = local()


@contextmanager
def using_device(device: str) -> Iterator[str]:
    """Inside, batches of structures that have kernels for a GPU are solved there: `current` is what `choose` says.

    Examples
    --------
    >>> with using_device("cpu") as device:
    ...     device
    'cpu'
    """
    before = current()
    _here.device = choose(device)
    try:
        yield _here.device
    finally:
        _here.device = before


def current() -> str:
    """Where batches of structures are solved: "cpu" unless `using_device` says otherwise."""
    return getattr(_here, "device", "cpu")


def likely() -> bool:
    """Whether a GPU seems to be there and what drives it is installed; files are looked at, nothing is imported."""
    return any(map(os.path.exists, _PLACES)) and not _missing()


def choose(device: str, *, worth: bool = True) -> str:
    """The device for what was asked, "cpu" or "cuda"; "auto" is the GPU where there is one and the work is `worth` it.

    Raises
    ------
    ParameterError
        When "cuda" was asked for and cannot be had; says what is missing.
    """
    if device == "cpu" or (device == "auto" and not (worth and likely())):
        return "cpu"
    missing = _missing()
    if missing:
        raise ParameterError(f"device='cuda': {missing} is not installed. Install it ({_INSTALL}), or use device='cpu'")
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if device == "auto":
        return "cpu"
    raise ParameterError(
        f"device='cuda': torch {torch.__version__} sees no GPU here. Is there one, with its driver, and is this torch "
        "built for it (`nvidia-smi` and `python -c 'import torch; print(torch.version.cuda)'` say)? Or use device='cpu'"
    )


def _missing() -> str:
    """The first package that is not installed, or nothing."""
    return next((name for name in ("torch", "triton") if find_spec(name) is None), "")
