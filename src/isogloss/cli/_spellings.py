"""Other ways to write the same: American spellings of options, and `--model` where the model is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isogloss.errors import UsageError

__all__ = ["model_first", "our_spelling"]

_SPELLINGS = {
    "neighbors": "neighbours",
    "normalize": "normalise",
    "symmetrize": "symmetrise",
    "tokenize": "tokenise",
    "unlabeled": "unlabelled",
}
_MODEL = "--model"


def our_spelling(name: str) -> str:
    """The name of an option as it is declared.

    >>> our_spelling("tokenize"), our_spelling("threads")
    ('tokenise', 'threads')
    """
    return _SPELLINGS.get(name, name)


def model_first(command: Any, arguments: Sequence[str]) -> list[str]:
    """The arguments of a command whose first is MODEL, with what was given as `--model` in its place."""
    given = list(arguments)
    declared = {name for parameter in command.params for name in parameter.opts}
    first = next((one.name for one in command.params if one.param_type_name == "argument"), None)
    if first != "model" or _MODEL in declared:
        return given
    for place, word in enumerate(given):
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name == _MODEL:
            if not equals and place + 1 == len(given):
                raise UsageError(f"{_MODEL} needs the folder of a saved model")
            return [value if equals else given[place + 1], *given[:place], *given[place + (1 if equals else 2) :]]
    return given
