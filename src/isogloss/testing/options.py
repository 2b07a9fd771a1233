"""`check_effects`: every option that an estimator declares changes what it learns, or is refused."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isogloss import store
from isogloss.errors import IsoglossError, ParameterError
from isogloss.estimator import Option, same_value
from isogloss.testing.learners import same

__all__ = ["check_effects", "values_to_try"]

Given = Mapping[str, Any]
STANDS_FOR_ANOTHER = (None, "auto")
"""Values in whose place an estimator takes another, so that one of the others may do the same."""
FAR = 100.0
"""By how much numbers without a limit are multiplied."""


def check_effects(
    make: Callable[..., Any],
    fit: Callable[[Any], Any],
    text: Any,
    *,
    ways: Sequence[Given] = ({},),
    trials: Mapping[str, Sequence[Any]] | None = None,
    predict: Callable[[Any, Any], Any] | None = None,
) -> None:
    """Hold every option of an estimator against its promise; AssertionError names those that break it.

    An option that is declared with ``effect=True`` (the default) changes the arrays that are saved or what is predicted
    when another value is given, in each of the `ways`, or is refused there with an `IsoglossError`. Of numbers, one
    of the values tried has to; of `choices`, all, but for the one that None or "auto" stands for. An option with
    ``effect=False`` changes nothing. Where what an option `needs` is not there, it is refused. In each way, a second
    estimator learns the same as the first: otherwise nothing could be said of options.

    Parameters
    ----------
    make : callable
        A new estimator; takes its options by name, as a class does. What it learns should be small and far from
        settled: a few sentences, one or two passes.
    fit : callable
        Teaches an estimator, and returns it.
    text
        What `predict` takes.
    ways : sequence of mapping
        Options that decide on what others mean, such as the trainer, with their values: all other options are tried in
        each of them. A way that an estimator does not have is a mistake.
    trials : mapping of str to sequence, optional
        What to try for an option in place of what its declaration says (`values_to_try`): values, or mappings of
        several options in whose company it says something, itself among them, which are passed over in ways that say
        otherwise. An empty sequence tries nothing, for what a small sample cannot show.
    predict : callable, optional
        (fitted, text) to what is compared; `predict` and `predict_proba` unless given.

    Examples
    --------
    >>> from isogloss.data import Text, Treebank
    >>> from isogloss.estimator import option
    >>> from isogloss.tasks.tag import CrfTagger
    >>> class Careless(CrfTagger):
    ...     speed: float = option(default=0.1, above=0, help="What nobody looks at.")
    >>> trees = Treebank.of([[("she", "PRON"), ("sleeps", "VERB")], [("he", "PRON"), ("eats", "VERB")]] * 3)
    >>> only = {name: () for name in CrfTagger()._options}
    >>> check_effects(Careless, lambda tagger: tagger.fit(trees), Text.of(["he sleeps"]), trials=only)
    Traceback (most recent call last):
    ...
    AssertionError: Careless: speed changes nothing: 0.001, 10.0
    """
    declared: Mapping[str, Option] = make()._options
    known = dict(trials or {})
    wrong = [f"there is no option {name!r} to try" for name in known if name not in declared]
    shown: set[str] = set()
    tried: set[str] = set()
    for number, way in enumerate(ways):
        look = _Look(make, fit, text, way, predict)
        wrong += look.changes_by_itself()
        for name, option in declared.items():
            if name in way:
                continue
            values = known.get(name)
            if values is None:
                values = values_to_try(option, getattr(make(**way), option.attribute))
                if values is None:
                    wrong.append(f"{name} takes anything: say in `trials` what to try")
                    continue
            if not option.effect:
                if number == 0:
                    wrong += look.without_effect(name, values)
                continue
            values = [trial for trial in values if look.is_of_this_way(name, trial)]
            if not values:
                continue
            tried.add(name)
            found, effective = look.with_effect(name, option, values)
            wrong += found
            if effective:
                shown.add(name)
    refused = sorted(tried - shown)
    wrong += [f"{name} is refused in every way that was tried" for name in refused if not _said(wrong, name)]
    title = type(make()).__name__
    assert not wrong, f"{title}: " + "; ".join(wrong)


def values_to_try(option: Option, now: Any) -> list[Any] | None:
    """Other values of an option: all choices, both ends of numbers; None where its declaration does not say.

    Examples
    --------
    >>> from isogloss.estimator import option
    >>> values_to_try(option(default="mbr", choices=("mbr", "map"), help=""), "mbr")
    ['map']
    >>> values_to_try(option(default=5, least=1, help=""), 2)
    [1, 3, 9]
    >>> values_to_try(option(default=0.1, above=0, help=""), 0.1)
    [0.001, 10.0]
    """
    found: list[Any] = list(option.choices)
    if bool in option.kinds:
        found += [True, False]
    elif float in option.kinds:
        found += _floats(option, now)
    elif int in option.kinds:
        base = now if isinstance(now, int) else 2
        found += [int(option.least or 0), base + 1, 4 * base + 1]
    elif not option.choices:
        return None
    unlike: list[Any] = []
    for value in found:
        if option.allows(value) and not any(same_value(value, other) for other in [now, *unlike]):
            unlike.append(value)
    return unlike


def _floats(option: Option, now: Any) -> list[float]:
    base = float(now) if isinstance(now, int | float) and now else 1.0
    small = base / FAR if option.least is None else float(option.least)
    if option.most is not None:
        return [small, float(option.most)]
    return [small, base * FAR if option.below is None else base + 0.9 * (option.below - base)]


def _said(wrong: Sequence[str], name: str) -> bool:
    return any(words.startswith(name + " ") for words in wrong)


class _Look:
    """What an estimator comes to in one of its ways."""

    def __init__(
        self,
        make: Callable[..., Any],
        fit: Callable[[Any], Any],
        text: Any,
        way: Given,
        predict: Callable[[Any, Any], Any] | None,
    ) -> None:
        self.make, self.fit, self.text, self.way = make, fit, text, dict(way)
        self.predict = predict or _predictions
        self._known: dict[str, Any] = {}

    def outcome(self, **given: Any) -> Any:
        """Saved arrays and predictions; remembered, since many options have the same company."""
        key = repr(sorted(given.items()))
        if key not in self._known:
            with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
                warnings.simplefilter("ignore")
                fitted = self.fit(self.make(**{**self.way, **given}))
                place = Path(folder) / "model"
                fitted.save(place)
                self._known[key] = store.read(place).arrays, self.predict(fitted, self.text)
        return self._known[key]

    def changes_by_itself(self) -> list[str]:
        """What is wrong where a second estimator with the same options learns something else."""
        first = self.outcome()
        self._known.clear()
        return [] if same(self.outcome(), first) else [f"it learns something else each time{self._here}"]

    def with_effect(self, name: str, option: Option, values: Sequence[Any]) -> tuple[list[str], bool]:
        """What is wrong, and whether the option changed anything."""
        inert, moving, effective = list[Any](), list[Any](), False
        listed = bool(option.choices) or bool in option.kinds
        for trial in values:
            company, value = _split(name, trial)
            given = {**self.way, **company}
            if not option.has_company(self.make(**given).get_params(deep=False)):
                if not self._refuses({**company, name: value}):
                    return [f"{name} has not what it needs, and is not refused{self._here}"], False
                continue
            try:
                changed = not same(self.outcome(**{**company, name: value}), self.outcome(**self._alone(company)))
            except IsoglossError:
                continue
            except Exception as problem:  # that is a finding, too, and others may follow
                found = f"{name}={value!r} ends in {type(problem).__name__}{self._here}: {problem}"
                return [found], True
            if changed and not listed:
                return [], True
            effective |= changed
            (moving if changed else inert).append(value)
        inert = [value for value in inert if not any(same_value(value, other) for other in moving)]
        spare = int(listed and getattr(self.make(**self.way), option.attribute) in STANDS_FOR_ANOTHER)
        if len(inert) > spare and (listed or not effective):
            return [f"{name} changes nothing{self._here}: {', '.join(map(repr, inert))}"], effective
        return [], effective

    def without_effect(self, name: str, values: Sequence[Any]) -> list[str]:
        """What is wrong with an option that is declared as without effect: one value is enough."""
        for trial in values:
            company, value = _split(name, trial)
            try:
                found = self.outcome(**{**company, name: value})
            except IsoglossError:  # such as a device that is not here
                continue
            if not same(found, self.outcome(**company)):
                return [f"{name} is declared as without effect, and {value!r} changes the result"]
            break
        return []

    def _alone(self, company: Given) -> dict[str, Any]:
        """The company of an option without those that say nothing when it is not there."""
        idle = self.make(**{**self.way, **company})._idle()
        return {name: value for name, value in company.items() if name not in idle}

    def is_of_this_way(self, name: str, trial: Any) -> bool:
        """Whether the company of a trial is not that of another way."""
        company, _ = _split(name, trial)
        return all(same_value(self.way[other], value) for other, value in company.items() if other in self.way)

    @property
    def _here(self) -> str:
        return f" with {', '.join(f'{name}={value!r}' for name, value in self.way.items())}" if self.way else ""

    def _refuses(self, given: Given) -> bool:
        try:
            self.make(**{**self.way, **given}).check_params()
        except ParameterError:
            return True
        return False


def _split(name: str, trial: Any) -> tuple[dict[str, Any], Any]:
    """The company of an option, and its value."""
    if isinstance(trial, Mapping) and name in trial:
        return {other: value for other, value in trial.items() if other != name}, trial[name]
    return {}, trial


def _predictions(fitted: Any, text: Any) -> Any:
    return fitted.predict(text), fitted.predict_proba(text) if hasattr(fitted, "predict_proba") else None
