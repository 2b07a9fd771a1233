"""Keys of features, on Python's numbers: the same as the kernels of `isogloss.features._numba.mixing` compute.

A template's code on a part is ``mix(start + Σ code · factor)``. Its start comes from its name, the factors from the
places of its terms, so that keys depend on nothing but the template and what it sees: not on the order of templates or
sentences, on the process or on the machine.

References
----------
Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014 (the mixer).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["AFTER", "BEFORE", "factor_of", "factors_of", "mix", "splitmix", "start_of", "starts_of"]

BEFORE, AFTER = -1, -2
"""Codes of what lies before and after a sentence; codes of words are not negative."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(h: int) -> int:
    """What the kernel of the same name makes of a 64-bit number."""
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    h = (h ^ h >> 27) * 0x94D049BB133111EB & _MASK
    return h ^ h >> 31


def splitmix(number: int) -> int:
    """A well mixed 64-bit number for each small one: draw `number` of SplitMix64 with seed 0.

    Examples
    --------
    >>> hex(splitmix(0))
    '0xe220a8397b1dcdaf'
    """
    return mix((number + 1) * _GOLDEN & _MASK)


def start_of(name: str, kind: str = "") -> int:
    """Where the sum of a template begins; `kind` keeps templates of the same name apart that share a table.

    Examples
    --------
    >>> start_of("head.tag") == start_of("head.tag"), start_of("head.tag") == start_of("head.tag", "valence")
    (True, False)
    """
    text = f"{kind}: {name}" if kind else name
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def starts_of(names: Iterable[str], kind: str = "") -> NDArray[np.uint64]:
    """uint64[n]: `start_of` each."""
    return np.array([start_of(name, kind) for name in names], np.uint64)


def factor_of(place: int) -> int:
    """What the code of the term at this place of a template is multiplied by: an odd number."""
    return splitmix(1 << 20 | place) | 1


def factors_of(places: int | Sequence[int]) -> NDArray[np.uint64]:
    """uint64[n]: `factor_of` some places, or of the first n."""
    return np.array([factor_of(place) for place in (range(places) if isinstance(places, int) else places)], np.uint64)
