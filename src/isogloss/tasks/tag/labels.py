"""Labels and the units they are scored by: a bundle of features shares weights with others through its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Units", "units_of"]


class Units(NamedTuple):
    """Which units each label consists of.

    heads : int64[k + 2]
        Label *y* consists of ``members[heads[y]:heads[y + 1]]``, the first of them *y* itself; label k is what is
        outside of sentences.
    members : int64[n]
    size : int
        Units there are: k labels, the outside, and parts.
    """

    heads: NDArray[np.int64]
    members: NDArray[np.int64]
    size: int

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.heads) - 2


def units_of(labels: Sequence[str], *, split: bool) -> Units:
    """The units of labels: each by itself or, with `split`, also its parts ``Case=Nom``, ``Number=Sing``.

    Parts that one label only has are left out: they would say the same as the label.

    Examples
    --------
    >>> units = units_of(["Case=Nom|Number=Sing", "Case=Acc|Number=Sing", "_"], split=True)
    >>> units.heads.tolist(), units.members.tolist(), units.size
    ([0, 2, 4, 5, 6], [0, 4, 1, 4, 2, 3], 5)
    """
    k = len(labels)
    parts = [label.split("|") if split else [] for label in labels]
    uses: dict[str, int] = {}
    for row in parts:
        for part in row:
            uses[part] = uses.get(part, 0) + 1
    numbers: dict[str, int] = {}
    heads, members = [0], []
    for y, row in enumerate(parts):
        members.append(y)
        members += [numbers.setdefault(part, k + 1 + len(numbers)) for part in row if uses[part] > 1]
        heads.append(len(members))
    members.append(k)
    heads.append(len(members))
    return Units(np.array(heads, np.int64), np.array(members, np.int64), k + 1 + len(numbers))
