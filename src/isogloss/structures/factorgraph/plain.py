"""A factor graph as plain data, and back: a header that JSON can hold, and arrays. No code is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ModelError
from isogloss.structures.base import kept
from isogloss.structures.factorgraph.constituents import Bracketing, Epu
from isogloss.structures.factorgraph.family import Family, Unary
from isogloss.structures.factorgraph.local import OneOf, Pair, Table
from isogloss.structures.factorgraph.sequences import ChainFactor, ChildSequence, Valence
from isogloss.structures.factorgraph.several import Conjunction, Indicator, Number
from isogloss.structures.factorgraph.trees import NoCross, Tree
from isogloss.structures.factorgraph.variables import Variables

if TYPE_CHECKING:
    from isogloss.structures.factorgraph.graph import FactorGraph

__all__ = ["from_arrays", "to_arrays"]

G = TypeVar("G", bound="FactorGraph")


def to_arrays(graph: FactorGraph) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays."""
    arrays: dict[str, NDArray[Any]] = {"scores": np.array(graph.scores), "evidence": np.array(graph._evidence)}
    factors = []
    for at, (family, handle) in enumerate(zip(graph._families, graph._factors, strict=True)):
        slots = (family.links,) if isinstance(family, NoCross) else family.slots
        for i, slot in enumerate(slots):
            arrays[f"factors{at}.slot{i}"] = np.array(slot.numbers)
        arrays |= {f"factors{at}.{name}": np.array(array) for name, array in family.arrays().items()}
        entry = {"kind": family.kind, "slots": [slot.k for slot in slots], "options": family.options()}
        factors.append(entry | {"shape": list(handle.shape)})
    options = graph.options
    header = {
        "iterations": options.iterations,
        "tolerance": options.tolerance,
        "damping": options.damping,
        "schedule": options.schedule,
        "variables": [{"name": v.name, "shape": list(v.shape), "k": v.k} for v in graph._blocks],
        "factors": factors,
    }
    return header, arrays


def from_arrays(cls: type[G], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> G:
    """The graph that `to_arrays` was given."""
    try:
        graph = cls(**{name: header[name] for name in ("iterations", "tolerance", "damping", "schedule")})
        for entry in header["variables"]:
            graph._add_variables(tuple(entry["shape"]), int(entry["k"]), entry["name"])
        scores, start = np.asarray(arrays["scores"], np.float64), 0
        for at, entry in enumerate(header["factors"]):
            stop = start + int(np.prod(entry["shape"]))
            family = _family(graph, entry, arrays, at)
            graph._add(family, scores[start:stop].reshape(entry["shape"]))
            start = stop
        evidence = np.array(arrays["evidence"], np.float64)
    except (KeyError, TypeError, IndexError, ValueError) as finding:
        raise ModelError(f"FactorGraph.from_arrays: the data are not a whole factor graph ({finding!r})") from finding
    if evidence.shape != graph._evidence.shape or start != len(scores):
        raise ModelError("FactorGraph.from_arrays: scores or observations do not fit the variables and factors")
    graph._evidence = kept(evidence)
    return graph


def _family(graph: FactorGraph, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], at: int) -> Family:
    kind, options = entry["kind"], entry["options"]
    slots = []
    for i, k in enumerate(entry["slots"]):
        numbers = np.asarray(arrays[f"factors{at}.slot{i}"], np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < graph.n_variables:
            raise ValueError(f"factors {at} touch variables that are not there")
        block = next((v for v in graph._blocks if numbers.size and numbers.flat[0] in v.numbers), None)
        slots.append(Variables(numbers, int(k), block.name if block else "", graph._mark))
    if kind == "table":
        return Table(slots[:-1], slots[-1]) if options["gated"] else Table(slots)
    if kind == "one_of":
        return OneOf(slots[0], np.asarray(arrays[f"factors{at}.offsets"], np.int64), options["at_most"])
    if kind in ("number", "indicator"):
        offsets = np.asarray(arrays[f"factors{at}.offsets"], np.int64)
        if kind == "number":
            return Number(slots[0], offsets, options["bins"])
        first, second, whole = slots
        return Indicator(first, second, whole, offsets)
    simple: dict[str, type[Any]] = {
        "unary": Unary,
        "pair": Pair,
        "conjunction": Conjunction,
        "chain": ChainFactor,
        "child_sequence": ChildSequence,
        "valence": Valence,
        "tree": Tree,
        "no_cross": NoCross,
        "brackets": Bracketing,
        "epu": Epu,
    }
    made: Family = simple[kind](*slots, **options)
    return made
