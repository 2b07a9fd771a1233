"""Changes of nested plain data: the options, the meta data and the JSON headers of saved models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["WRONG", "change_value", "shown"]

WRONG: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 7, 255, 2**31, 10**9, 2**63, -(2**63), 10**400, -(10**400), 0.0, -0.0, 0.5, 1.5,
    1e-320, 1e308, math.inf, -math.inf, math.nan, "", "0", "nan", "auto", "\u0000", "\ud800", "x" * 5000, "../..", [],
    {}, [None], [1, "a", []], [[]], {"": None}, {"a": 1}, [0] * 1000,
)  # fmt: skip
"""What may stand in a place where something else is meant."""
_STOP = 0.3
"""How often a change is made at a container rather than within it."""


def shown(value: Any) -> str:
    """A value in few letters, for descriptions."""
    try:
        text = repr(value)
    except ValueError:  # integers of thousands of digits
        text = "a huge integer"
    return text if len(text) <= 40 else f"{text[:30]}… ({len(text)} letters)"


def change_value(root: Any, rng: np.random.Generator) -> str:
    """Change one place within a dictionary or list, in place; says what was done."""
    holder, key, path = _place(root, rng)
    if holder is None:
        return "an empty container is left as it is"
    operation = _OPERATIONS[rng.integers(len(_OPERATIONS))]
    return f"{path}: {operation(holder, key, rng)}"


def _place(root: Any, rng: np.random.Generator) -> tuple[Any, Any, str]:
    """A random place, as likely in a small part as in a large one: the container, the key and how to get there."""
    holder, key, path, value = None, None, "", root
    while isinstance(value, dict | list) and value and (holder is None or rng.random() > _STOP):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, keys[rng.integers(len(keys))]
        path += f"[{shown(key)}]"
        value = holder[key]
    return holder, key, path


def _replace(holder: Any, key: Any, rng: np.random.Generator) -> str:
    holder[key] = WRONG[rng.integers(len(WRONG))]
    if isinstance(holder[key], dict | list):
        holder[key] = holder[key].copy()
    return f"becomes {shown(holder[key])}"


def _nudge(holder: Any, key: Any, rng: np.random.Generator) -> str:
    """A neighbour of the value, of the same type where it can be."""
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = [value + 1, value - 1, -value, 2 * value, 1000 * value, value % 7 + 0.5, str(value)][
            rng.integers(7)
        ]
    elif isinstance(value, float):
        holder[key] = [value + 1, -value, value * 1e6, value * 1e-6, value * 1e300, str(value)][rng.integers(6)]
    elif isinstance(value, str):
        holder[key] = [value.upper(), value + "x", value[:-1], value * 2, [value], list(value)][rng.integers(6)]
    elif isinstance(value, list):
        holder[key] = [value[::-1], value[:-1], value * 2, value[:1] * 3, [value], dict.fromkeys(map(str, value))][
            rng.integers(6)
        ]
    else:
        return _replace(holder, key, rng)
    return f"{shown(value)} becomes {shown(holder[key])}"


def _delete(holder: Any, key: Any, rng: np.random.Generator) -> str:
    del holder[key]
    return "is deleted"


def _add(holder: Any, key: Any, rng: np.random.Generator) -> str:
    value = WRONG[rng.integers(len(WRONG))]
    if isinstance(holder, list):
        holder.insert(key, value)
    else:
        holder[f"{key}_more" if rng.random() < 0.5 else "unheard_of"] = value
    return f"{shown(value)} is added beside it"


def _swap(holder: Any, key: Any, rng: np.random.Generator) -> str:
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    other = keys[rng.integers(len(keys))]
    holder[key], holder[other] = holder[other], holder[key]
    return f"is swapped with [{shown(other)}]"


_OPERATIONS = (_replace, _replace, _replace, _nudge, _nudge, _nudge, _delete, _add, _swap)
"""Those that are named several times are as many times as likely."""
