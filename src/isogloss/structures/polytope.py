"""`Polytope`: what lies between the structures of a sentence, for learners that move through it."""

from __future__ import annotations

from typing import Protocol

from isogloss.structures.base import Array

__all__ = ["Polytope"]


class Polytope(Protocol):
    """The parts of structures and everything between them, as points that can be projected on it.

    Coordinates need not be the parts: in a matching with nulls, links alone say how much of each null there is. Parts
    follow from coordinates by `parts`, which is affine. Structures that can be projected on have a method `polytope`
    that makes one of these; so far `Matching`, and `Flat` of a `Matching`, both without pairs of links.
    """

    @property
    def n_coordinates(self) -> int: ...

    @property
    def n_prices(self) -> int:
        """How many numbers `project` likes to be given back."""
        ...

    def start(self) -> Array:
        """Some point: float64[n_coordinates]."""
        ...

    def parts(self, point: Array, /) -> Array:
        """float64[n_parts], laid out as the raveled scores of the structure."""
        ...

    def pull(self, scores: Array, /) -> Array:
        """The derivative of scores · parts(point) by the point, float64[n_coordinates]; what is forbidden counts 0."""
        ...

    def project(self, point: Array, prices: Array, /, tolerance: float = 1e-10) -> Array:
        """The nearest point of the polytope.

        `prices`, float64[n_prices], say where to begin: 0, or what the projection of a point nearby left there. They
        are overwritten, and change how long it takes, not what comes out, but for the tolerance.
        """
        ...
