"""What can be inferred: structures know scores and parts, never words.

A structure is an object with one set of `scores` and the methods of `Structure`; most add `log_prob`, `entropy`,
`from_parts` and `clamp`. Importing this room does not import the compiled kernels; the first call of a method does.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.alignment_chain import AlignmentChain
from isogloss.structures.chain import Chain, Chains, InfeasibleError

__all__ = ["AlignmentChain", "Chain", "Chains", "InfeasibleError", "Structure"]


@runtime_checkable
class Structure(Protocol):
    """What learners ask of a structure: six methods, and the scores that it was made with."""

    @property
    def scores(self) -> NDArray[np.float64]: ...

    def log_partition(self) -> float: ...

    def marginals(self) -> NDArray[np.float64]: ...

    def argmax(self) -> Any: ...

    def sample(self, rng: np.random.Generator, /) -> Any: ...

    def parts(self, y: Any, /) -> NDArray[np.float64]: ...

    def with_scores(self, scores: NDArray[np.float64], /) -> Self: ...
