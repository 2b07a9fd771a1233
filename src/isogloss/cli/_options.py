"""Options of estimators on the command line: made of what the estimators declare, and said nowhere else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from os import PathLike
from typing import Annotated, Any, get_type_hints

import typer

from isogloss.estimator import Estimator, Option

__all__ = ["Ways", "added", "declared", "described", "flag_of", "with_options"]

Ways = Mapping[str, type[Estimator]]
"""The estimators that a command may use, by what is said about each in help: `with --graph`."""

_FEW = 34
"""Characters: longer lists of choices stand in the help of an option, not beside its name."""
_MANY = 10**6
"""A limit of this and more is there for the machine, and not said."""
_MARKS = {list: "A,B,...", PathLike: "FILE", float: "X", int: "N", str: "NAME"}
"""What stands for a value of some kind."""


def with_options(
    ways: type[Estimator] | Ways,
    *names: str,
    panel: str | None = None,
    first: Sequence[str] = (),
    flags: Mapping[str, str] | None = None,
    prefix: str = "",
    instead_of: str = "options",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command that takes `options`, a dictionary, the options of estimators, as Typer looks for them.

    `options` has those that were given, with values as the estimator takes them. Everything else follows from how they
    are declared: type, choices and limits; default and help, for each estimator where they differ.

    Parameters
    ----------
    ways
        One class that declares options, or several that the command chooses from.
    names : str
        Of options, which any of the classes has.
    panel : str, optional
        The heading in help for all but those of `first`.
    first : sequence of str
        Of options that stand among those of the command itself.
    flags : mapping
        What an option is called where that is not ``--name``, or for a switch ``--name/--no-name``.
    prefix : str
        What all names begin with on the command line: ``adapt`` makes ``--adapt-method`` of `method`.
    instead_of : str
        The parameter that gathers them, for commands that take options of several estimators together.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        start = f"{prefix}_" if prefix else ""
        made = {}
        for name in (*first, *names):
            flag = (flags or {}).get(name) or (flag_of(start + name) if prefix else None)
            made[start + name] = (_annotation(name, ways, None if name in first else panel, flag), None)

        def hand_over(own: dict[str, Any], given: dict[str, Any]) -> None:
            told = {name.removeprefix(start): value for name, value in given.items() if value is not None}
            command(**own, **{instead_of: told})

        return added(command, instead_of, made, hand_over)

    return decorate


def added(
    command: Callable[..., None],
    instead_of: str,
    made: Mapping[str, tuple[Any, Any]],
    hand_over: Callable[[dict[str, Any], dict[str, Any]], None],
) -> Callable[..., None]:
    """A command with parameters, by name with annotation and default, in the place of one that gathers them.

    `hand_over` is called with what is the command's own, and with what was added. A parameter that the command declares
    itself stays its own, and is handed over both ways.
    """
    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name != instead_of]
    known = {parameter.name for parameter in own}

    @wraps(command)
    def told(**given: Any) -> None:
        hand_over({name: given[name] for name in known}, {name: given[name] for name in made})

    hints = {name: annotation for name, (annotation, _) in made.items()} | get_type_hints(command, include_extras=True)
    further = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for name, (_, default) in made.items()
        if name not in known
    ]
    places = [parameter for parameter in own if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    gathering = [parameter for parameter in own if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    parameters = [each.replace(annotation=hints[each.name]) for each in (*places, *further, *gathering)]
    told.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    told.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return told


# One option ----------------------------------------------------------------------------------------------------------


def declared(ways: type[Estimator] | Ways, name: str) -> dict[str, Option]:
    """What the estimators say about an option, by way; those that do not have it are left out."""
    by_way: Ways = {"": ways} if isinstance(ways, type) else ways
    return {way: kind._options[name] for way, kind in by_way.items() if name in kind._options}


def flag_of(name: str) -> str:
    """
    >>> flag_of("max_length")
    '--max-length'
    """
    return "--" + name.replace("_", "-")


def _annotation(name: str, ways: type[Estimator] | Ways, panel: str | None, flag: str | None) -> Any:
    """What Typer wants to know; the default is None, whatever the option's, for: nothing was said."""
    found = declared(ways, name)
    settings: dict[str, Any] = {"rich_help_panel": panel, "show_default": False}
    if any(bool in option.kinds for option in found.values()):
        flag = flag or f"{flag_of(name)}/--no-{flag_of(name)[2:]}"
        settings["help"] = described(found, ways, flag.replace("--", "").split("/"))
        return Annotated[bool | None, typer.Option(flag, **settings)]
    settings["help"] = described(found, ways)
    return Annotated[
        Any, typer.Option(flag or flag_of(name), metavar=_metavar(found), parser=_parser(found), **settings)
    ]


def _parser(found: Mapping[str, Option]) -> Callable[[Any], Any]:
    """What makes a value of a word; one that is right for none of the estimators is refused."""

    def parse(word: Any) -> Any:
        for option in found.values():
            value = _value(option, str(word))
            if value is not None and option.allows(value):
                return value
        wanted = dict.fromkeys(option.wanted.removesuffix(", or None") for option in found.values())
        raise typer.BadParameter(f"'{word}' should be {', or '.join(wanted)}")

    return parse


def _value(option: Option, word: str) -> Any:
    """A word as the option takes it; None if it cannot."""
    for choice in option.choices:
        if choice is not None and word == str(choice):
            return choice
    if list in option.kinds:
        return tuple(part.strip() for part in word.split(",") if part.strip())
    for kind in (int, float):
        with suppress(ValueError):
            if kind in option.kinds:
                return kind(word)
    return word if str in option.kinds else None


# Its words -----------------------------------------------------------------------------------------------------------


def described(found: Mapping[str, Option], ways: type[Estimator] | Ways, flags: Sequence[str] = ()) -> str:
    """The help of an option: the sentence of each estimator, once; then defaults and limits in brackets.

    >>> from isogloss.estimator import option
    >>> class One(Estimator):
    ...     rate: float = option(default=0.5, above=0, below=1, help="Length of steps.")
    >>> class Other(Estimator):
    ...     rate: float = option(default=2.0, above=0, help="Length of steps.")
    >>> described(declared(One, "rate"), One)
    'Length of steps. [default: 0.5, above 0 and below 1]'
    >>> ways = {"": One, "with --fast": Other}
    >>> described(declared(ways, "rate"), ways)
    'Length of steps. [default: 0.5, above 0 and below 1; with --fast: 2, above 0]'
    """
    n_ways = 1 if isinstance(ways, type) else len(ways)
    listed = _metavar(found) == "NAME"
    words = _by_way({way: option.help for way, option in found.items()}, n_ways)
    notes = _by_way({way: _note(option, flags, listed) for way, option in found.items()}, len(found))
    sentences = " ".join(f"{_capital(way)}: {_small(text)}" if way else text for way, text in words)
    brackets = "; ".join(f"{way}: {text.removeprefix('default: ')}" if way else text for way, text in notes)
    return f"{sentences} [{brackets}]" if brackets else sentences


def _by_way(words: Mapping[str, str], n_ways: int) -> list[tuple[str, str]]:
    """Words beside the ways that share them; what all ways share, or the usual way says, stands first without any."""
    sharing: dict[str, list[str]] = {}
    for way, text in words.items():
        sharing.setdefault(text, []).append(way)
    said = [("" if "" in ways or len(ways) == n_ways else " and ".join(ways), text) for text, ways in sharing.items()]
    return [(way, text) for way, text in said if text]


def _note(option: Option, flags: Sequence[str], listed: bool) -> str:
    """Default, choices unless they stand beside the name, and limits, as far as there is something to say."""
    default, numbers = option.default, [kind for kind in (int, float) if kind in option.kinds]
    if isinstance(default, bool):
        shown = flags[not default]
    elif isinstance(default, tuple):
        shown = ", ".join(default)
    else:
        shown = "" if default is None else f"{default:g}" if isinstance(default, float) else str(default)
    names = [str(choice) for choice in option.choices if choice is not None]
    plain = numbers == [int] and (option.least or 0) <= 1 and (option.most or _MANY) >= _MANY  # a number of things
    limits = "" if plain or not numbers else " ".join([*(["a number"] if names else []), *option._limits()])
    choices = f"one of {', '.join(names)}" if listed and names else ""
    return ", ".join(filter(None, [shown and f"default: {shown}", choices, limits]))


def _metavar(found: Mapping[str, Option]) -> str:
    """What stands beside the name of an option: what it may be."""
    names = dict.fromkeys(str(choice) for option in found.values() for choice in option.choices if choice is not None)
    kinds = {kind for option in found.values() for kind in option.kinds}
    marks = [mark for kind, mark in _MARKS.items() if kind in kinds][:1]
    shown = "|".join([*names, *marks])
    return shown if len(shown) <= _FEW else "NAME"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _small(text: str) -> str:
    """A sentence after a colon; an abbreviation keeps its capitals."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
