"""Isogloss learns from text which exists in two or more languages.

>>> import isogloss as ig
>>> bitext = ig.Bitext.of([("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")])
>>> print(ig.HMMAligner().fit(bitext).predict(bitext)[0])
0-0 1-1
"""

from __future__ import annotations

import isogloss._start  # noqa: F401 - first, so that Ctrl-C is no traceback while the rest is imported

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

from isogloss._version import __version__
from isogloss.engine.numba_cache import prepare

if TYPE_CHECKING:
    from isogloss import samples, show
    from isogloss.data import Alignment, Bitext, Links, Ragged, Text, Vocabulary
    from isogloss.errors import IsoglossError
    from isogloss.store import load
    from isogloss.tasks.align import HMMAligner, Model1Aligner, Model2Aligner

prepare()

_WHERE = {
    "Alignment": "isogloss.data",
    "Bitext": "isogloss.data",
    "HMMAligner": "isogloss.tasks.align",
    "Model1Aligner": "isogloss.tasks.align",
    "Model2Aligner": "isogloss.tasks.align",
    "IsoglossError": "isogloss.errors",
    "Links": "isogloss.data",
    "Ragged": "isogloss.data",
    "Text": "isogloss.data",
    "Vocabulary": "isogloss.data",
    "load": "isogloss.store",
}

__all__ = [
    "Alignment",
    "Bitext",
    "HMMAligner",
    "IsoglossError",
    "Links",
    "Model1Aligner",
    "Model2Aligner",
    "Ragged",
    "Text",
    "Vocabulary",
    "__version__",
    "load",
    "samples",
    "show",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for, so that `import isogloss` costs almost nothing."""
    if name in ("samples", "show"):
        return import_module(f"isogloss.{name}")
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'isogloss' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
