"""One way to make an estimator: options are declared once, stored as they are given, and checked when learning begins.

A class says what its options are, what they may be and what they mean; the constructor, the checks, `get_params` and
`set_params` (as scikit-learn has them, without depending on it) and the command line follow from that. What commands
take is declared in a module that imports nothing heavy (``isogloss/tasks/*/options.py``), since help is made of it.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from isogloss.errors import ParameterError, UsageError

if TYPE_CHECKING:
    from os import PathLike

    from isogloss.data.reading import Reading
    from isogloss.store import Saved

__all__ = ["THREADS", "Estimator", "Option", "option"]

MOST = 2**31 - 1
"""No integer may be larger unless its option says so."""
Needs = Mapping[str, tuple[Any, ...]]
THREADS = "Number of threads, all cores if not given; the result is the same."
"""What `threads` means, wherever it is an option."""


@dataclass(frozen=True)
class Option:
    """What an option may be, and what it means; made by `option`."""

    default: Any
    help: str
    kinds: tuple[type, ...]
    """Types of values that are right, beside `choices`."""
    choices: tuple[Any, ...] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    kept: bool = True
    """Whether it is saved with a model."""
    kw_only: bool = True
    alias: str | None = None
    needs: tuple[Needs, ...] = ()
    """Other options, and the values of each with which this one says anything: one of these has to hold, if any."""
    effect: bool = True
    """Whether it may change what is learnt or predicted."""
    attribute: str = ""
    """Where its value is stored; known when its class is."""

    def allows(self, value: Any) -> bool:
        """Whether a value is right."""
        numpy = sys.modules.get("numpy")  # whoever has one of its numbers has imported it, and we need not
        if numpy is not None and isinstance(value, numpy.generic):
            value = value.item()
        if value is None:
            return self.default is None or None in self.choices
        if any(type(value) is type(known) and value == known for known in self.choices):
            return True
        if isinstance(value, bool):
            return bool in self.kinds
        return isinstance(value, self.kinds) and (not isinstance(value, int | float) or self._in_range(value))

    def _in_range(self, value: float) -> bool:
        return (
            abs(value) <= sys.float_info.max  # neither infinite nor NaN, nor an integer that no float can hold
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def has_company(self, given: Mapping[str, Any]) -> bool:
        """Whether what it needs is among the values of all options."""
        return not self.needs or any(
            all(any(same_value(given[other], known) for known in values) for other, values in way.items())
            for way in self.needs
        )

    @property
    def wanted(self) -> str:
        """What is right, in words: "an integer from 1 to 100"."""
        listed = ", ".join(repr(choice) for choice in self.choices if choice is not None or not self.kinds)
        if not self.kinds:
            return "one of " + listed
        names = {bool: "True or False", int: "an integer", float: "a number", str: "a string"}
        kinds = [kind for kind in self.kinds if not (kind is int and float in self.kinds)]
        what = " or ".join([*filter(None, [listed]), *(names.get(kind, f"a {kind.__name__}") for kind in kinds)])
        none = self.default is None or None in self.choices
        return " ".join([what, *self._limits()]) + (", or None" if none else "")

    def _limits(self) -> list[str]:
        words = (("from", self.least), ("above", self.above), ("to", self.most), ("below", self.below))
        limits = [
            f"{word} {limit}" if isinstance(limit, int) else f"{word} {limit:g}"
            for word, limit in words
            if limit is not None
        ]
        if self.least is not None and self.most is None and self.below is None:
            limits.append("on")
        elif self.above is not None and self.below is not None:
            limits.insert(1, "and")
        return limits


def option(
    *,
    default: Any,
    help: str,
    kind: type | tuple[type, ...] | None = None,
    choices: tuple[Any, ...] = (),
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    kept: bool = True,
    kw_only: bool = True,
    alias: str | None = None,
    needs: Needs | tuple[Needs, ...] = (),
    effect: bool = True,
) -> Any:
    """Declare an option of an `Estimator`.

    Parameters
    ----------
    default
        Its value unless another is given. Where it is None, None is right. It is never changed in place.
    help : str
        A sentence that says what it means.
    kind : type or tuple of types, optional
        What values may be; that of the default if neither it nor choices are said. Integers are right where floats
        are.
    choices : tuple
        The values that are right, if they can be listed; with `kind`, those that are right beside values of that kind.
    least, most, above, below : float, optional
        Limits of numbers, the first two included.
    kept : bool
        Whether it is saved with a model: not what depends on the machine, nor what JSON cannot say.
    kw_only : bool
        False for options that may be given without their name.
    alias : str, optional
        What the option is called, where a method has that name already: its value then is the attribute that is
        declared.
    needs : mapping of str to tuple, or tuple of such
        Other options, and the values of each with which this one says anything: with another value of one of them, it
        is refused unless it is left at its default. Of several mappings, one is enough.
    effect : bool
        False for what changes no result, such as the number of threads; `isogloss.testing.check_effects` sees to it
        that all others do.
    """
    given = (() if choices else type(default)) if kind is None else kind
    kinds = given if isinstance(given, tuple) else (given,)
    assert type(None) not in kinds, "say what an option without default may be"
    if float in kinds:
        kinds = (*kinds, int)
    elif int in kinds and most is None:
        most = MOST
    company = (needs,) if isinstance(needs, Mapping) else needs
    return Option(default, help, kinds, choices, least, most, above, below, kept, kw_only, alias, company, effect)


@dataclass_transform(kw_only_default=True, field_specifiers=(option,))
class Estimator:
    """What all estimators have in common.

    A subclass declares its options; the constructor stores them and does nothing else. Whatever learns calls
    `check_params` first. What is kept of it, `_to_saved` and `_from_saved` say.

    Examples
    --------
    >>> class Toy(Estimator):
    ...     rounds: int = option(default=5, least=1, help="How often messages are passed.")
    ...     decoder: str = option(default="mbr", choices=("mbr", "map"), help="How a tree is chosen.")
    >>> toy = Toy(rounds=7)
    >>> toy, toy.get_params()
    (Toy(rounds=7), {'rounds': 7, 'decoder': 'mbr'})
    >>> toy.set_params(rounds=0).check_params()
    Traceback (most recent call last):
    ...
    isogloss.errors.ParameterError: Toy: rounds should be an integer from 1 to 2147483647, not 0
    >>> Toy(round=3)
    Traceback (most recent call last):
    ...
    isogloss.errors.ParameterError: Toy has no option 'round'. Did you mean 'rounds'?
    """

    _options: ClassVar[Mapping[str, Option]] = {}
    _kind: ClassVar[str] = ""
    """What its models are called in `isogloss.store`."""
    _title: ClassVar[str] = ""
    """What messages about options call it, if not by the name of its class: commands check mere declarations, too."""
    reading_: Reading | None = None
    """The text that it learnt from and how that was read; None for models of older versions.

    It is declared here because an annotation in a subclass would make it an option for checkers of types."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        found: dict[str, Option] = {}  # its own come first, then those of its parents
        for name, declared in list(vars(cls).items()):
            if isinstance(declared, Option):
                found[declared.alias or name] = replace(declared, attribute=name)
                delattr(cls, name)  # so that nobody meets a declaration where a value should be
        for parent in cls.__mro__[1:]:
            for name, declared in vars(parent).get("_options", {}).items():
                found.setdefault(name, declared)
        cls._options = dict(sorted(found.items(), key=lambda item: item[1].kw_only))
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        cls.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(n, kinds[o.kw_only], default=o.default) for n, o in cls._options.items()]
        )

    def __init__(self, *args: Any, **given: Any) -> None:
        places = [name for name, declared in self._options.items() if not declared.kw_only]
        if len(args) > len(places):
            raise ParameterError(f"{type(self).__name__}: {len(args)} options without names; give {_names(places)}")
        first = dict(zip(places, args))
        if twice := sorted(first.keys() & given.keys()):
            raise ParameterError(f"{type(self).__name__}: {twice[0]} is given twice")
        given |= first
        self._check_names(given)
        for name, declared in self._options.items():
            setattr(self, declared.attribute, given.get(name, declared.default))

    def __repr__(self) -> str:
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(self._options[name].default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every option as it was given; `deep` is there for scikit-learn, and changes nothing."""
        return {name: getattr(self, declared.attribute) for name, declared in self._options.items()}

    def set_params(self, **given: Any) -> Self:
        """Change options; what was learnt with the old ones stays until `fit` is called again."""
        self._check_names(given)
        for name, value in given.items():
            setattr(self, self._options[name].attribute, value)
        return self

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense, by itself or with the others.

        A subclass adds what `needs` cannot say of options that ask something of each other.
        """
        given = self.get_params()
        for name, value in given.items():
            if not (declared := self._options[name]).allows(value):
                raise ParameterError(f"{self._called}: {name} should be {declared.wanted}, not {value!r}")
        for name in self._idle():
            raise ParameterError(f"{self._called}: {self._why_idle(name, given)}")

    @property
    def _called(self) -> str:
        return self._title or type(self).__name__

    def _idle(self) -> list[str]:
        """Options that were given, and say nothing because what they need is not there."""
        given = self.get_params()
        return [
            name
            for name, declared in self._options.items()
            if declared.needs and not same_value(given[name], declared.default) and not declared.has_company(given)
        ]

    def _why_idle(self, name: str, given: Mapping[str, Any]) -> str:
        """What an option lacks, and what to do."""
        ways = self._options[name].needs
        others = list(dict.fromkeys(other for way in ways for other in way))
        there = " and ".join(f"{other}={given[other]!r}" for other in others)
        wanted = []
        for way in ways:
            named = []
            for other, values in way.items():
                possible = [repr(known) for known in values if self._options[other].allows(known)]
                named.append(f"{other} {' or '.join(possible)}")
            wanted.append(" with ".join(named))
        return f"{name} says nothing with {there}. Leave it out, or take {', or '.join(wanted)}"

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> Self:
        """An estimator with those of some options that say something together, checked; the rest are as by default.

        For options that were not chosen for this estimator: those of a saved model, as earlier versions let options
        pass that say nothing, or those of several estimators that are compared.
        """
        made = cls(**options)
        made.set_params(**{name: cls._options[name].default for name in made._idle()})
        made.check_params()
        return made

    def _check_names(self, given: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self._options:
                near = difflib.get_close_matches(name, self._options, 1)
                hint = f"Did you mean {near[0]!r}?" if near else f"It has {_names(self._options)}"
                raise ParameterError(f"{type(self).__name__} has no option {name!r}. {hint}")

    @property
    def options_(self) -> dict[str, Any]:
        """Every option that is saved with a model."""
        return {name: value for name, value in self.get_params().items() if self._options[name].kept}

    # --- keeping

    def save(self, path: str | PathLike[str]) -> None:
        """Write a folder with what was learnt and a header; see `isogloss.store`."""
        from isogloss import store

        made = self._to_saved()
        store.save(
            path, kind=made.kind, options=made.options, arrays=made.arrays, meta=made.meta, inside=made.inside
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """What `save` wrote; `ModelError` names the folder if that cannot be read."""
        from isogloss import store

        saved = store.read(path, kind=cls._kind)
        with store.named(path):
            return cls._from_saved(saved)

    def _to_saved(self) -> Saved:
        """What is kept, for `save` and for models that carry this one along (`isogloss.store.hold`)."""
        raise NotImplementedError(f"{type(self).__name__} says not what is kept of it")

    @classmethod
    def _from_saved(cls, saved: Saved) -> Self:
        """The inverse of `_to_saved`. Nothing that is saved is trusted: see `isogloss.layout` and `store.reading`."""
        raise NotImplementedError(f"{cls.__name__} says not what is kept of it")

    @property
    def _has_not_learnt(self) -> UsageError:
        """To be raised where something learnt is asked for too early."""
        return UsageError(f"this {type(self).__name__} has learnt nothing yet: call fit first, or load a saved model")


def same_value(one: Any, other: Any) -> bool:
    """Whether two values of an option are the same; what cannot be compared is the same as itself alone."""
    if one is other:
        return True
    try:
        return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
    except (TypeError, ValueError):  # arrays and tables
        return False


def _names(names: Any) -> str:
    return ", ".join(names) or "no options"
