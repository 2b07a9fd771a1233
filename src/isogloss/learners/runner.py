"""The one loop around every learner: stopping, the objective's trace, checkpoints, resuming, signals, progress.

A learner has `step(state) -> (state, info)`; the state knows its `iteration`, the info its `objective`. To be kept in
checkpoints it also has `dump(state) -> (arrays, meta)` and `restore(arrays, meta) -> state`. No learner prints.
"""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as fields_of
from pathlib import Path
from types import FrameType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss._version import __version__
from isogloss.errors import DataError, IsoglossError, ParameterError, UsageError
from isogloss.progress import Progress, QuietProgress

__all__ = ["Info", "Interrupted", "Learner", "Result", "Resumable", "State", "check_checkpoint", "run"]

Reason = Literal["iterations", "tolerance", "should_stop"]
Place = str | os.PathLike[str]

SECONDS, SHARE = 120.0, 0.02
"""Time between two checkpoints at least, and the most of the time that may go into them."""
ENVIRONMENT = "ISOGLOSS_CHECKPOINT_SECONDS"
_TRACE = "runner.trace."
"""Arrays of a checkpoint whose names begin so are the runner's own."""


class Interrupted(IsoglossError):
    """Ctrl-C or SIGTERM stopped the training; the message says what was kept and how to go on."""

    exit_code = 130


class State(Protocol):
    """What the next step needs; a NamedTuple or a dataclass."""

    @property
    def iteration(self) -> int: ...


class Info(Protocol):
    """What a person wants to watch. Other numbers may stand beside the objective: they are traced too.

    A string `detail` ("UAS 88.20 on dev") is shown by progress while the next step goes on.
    """

    @property
    def objective(self) -> float: ...


S = TypeVar("S", bound=State)


class Learner(Protocol[S]):
    """How parameters are found: one step at a time."""

    def step(self, state: S) -> tuple[S, Info]:
        """The next state, and what was seen on the way; `state` itself stays as it was."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A learner whose state can be kept.

    `restore(*dump(state))` must be `state` to the bit. Arrays come back in C order; what `meta` holds comes back as
    JSON gives it (tuples as lists; floats and integers exactly).
    """

    def dump(self, state: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]: ...

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Any: ...


@dataclass(frozen=True, eq=False)
class Result(Generic[S]):
    """Where the learner came to.

    Parameters
    ----------
    state : State
        The last one.
    trace : float64[n_steps]
        The objective of every step, those before a resume included.
    stopped_because : str
        "tolerance" (the objective stands still), "iterations" (all were done) or "should_stop" (it said so).
    watched : dict of str to float64[n_steps]
        Every other number of the infos, such as the violation of constraints.
    """

    state: S
    trace: NDArray[np.float64]
    stopped_because: Reason
    watched: dict[str, NDArray[np.float64]]


def run(
    learner: Learner[S],
    state: S,
    *,
    iterations: int,
    tolerance: float | None = None,
    checkpoint: Place | None = None,
    resume: bool = False,
    every: int | None = 1,
    seconds: float | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    should_stop: Callable[[S, Any], bool] | None = None,
    name: str = "Training",
) -> Result[S]:
    r"""Step until the objective stands still, the iterations are done, or somebody says stop.

    Parameters
    ----------
    learner : Learner
    state : State
        Where to begin; with `resume` and a checkpoint, only its `iteration` counts.
    iterations : int
        The most steps to take from `state`, those before a resume included.
    tolerance : float, optional
        Stop when :math:`|L_t - L_{t-1}| < \text{tolerance} \cdot |L_{t-1}|`, or both are equal.
    checkpoint : path, optional
        A folder that is replaced, whole, after each `every` steps and after the last; with ``every=None`` after the
        first step that ends `seconds` after the last one was written, so that little is lost if the program is killed.
        Either way, it is also written when a signal stops the run. It stays; `store.discard` takes it away when the
        result is safe.
    resume : bool
        Continue from the checkpoint, to the bit as if nothing had happened; without one, from the beginning.
    seconds : float, optional
        Time between two checkpoints of ``every=None``: two minutes unless given, or what the environment variable
        ISOGLOSS_CHECKPOINT_SECONDS says; more where writing one takes long, so that not more than 2 % of the time goes
        into them.
    fingerprint : mapping, optional
        What the run depends on: options and a hash of the data. A checkpoint with another one is refused.
    progress : Progress, optional
    should_stop : callable, optional
        Asked with (state, info) after each step.
    name : str
        The stage, for progress: "Model 1".

    Raises
    ------
    Interrupted
        On SIGINT or SIGTERM. With a checkpoint the step in hand is finished and kept first; a second signal gives it up
        at once. Signals are only watched from the main thread; elsewhere the program's own handling stays.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class At(NamedTuple):
    ...     x: float
    ...     iteration: int = 0
    >>> class Seen(NamedTuple):
    ...     objective: float
    >>> class SquareRoot:  # of 2, by Newton's method
    ...     def step(self, state):
    ...         x = (state.x + 2 / state.x) / 2
    ...         return At(x, state.iteration + 1), Seen(-abs(x * x - 2))
    >>> result = run(SquareRoot(), At(1.0), iterations=4)
    >>> f"{result.state.x:.9f}", len(result.trace), result.stopped_because
    ('1.414213562', 4, 'iterations')
    """
    _check(learner, iterations, tolerance, checkpoint, resume, every, seconds)
    progress = progress or QuietProgress()
    loop = _Loop(learner, state, iterations, tolerance, checkpoint, fingerprint or {}, progress, should_stop, name)
    if checkpoint is not None:
        check_checkpoint(checkpoint)
    if resume:
        loop.take_up()
    progress.start(name, iterations)
    with _watch(progress) as watch:
        try:
            result = loop.go(every, _seconds(seconds), watch)
        except KeyboardInterrupt as stop:
            raise loop.interrupted(watch) from stop
        finally:
            watch.hard = False
            progress.finish()
    if watch.signals:  # it came in the last step
        raise loop.interrupted(watch)
    return result


class Keeping(NamedTuple):
    """Where learning is kept when it is interrupted, and what tells one run from another."""

    checkpoint: Place | None = None
    resume: bool = False
    fingerprint: dict[str, Any] | None = None

    @classmethod
    def of(cls, checkpoint: Place | None, resume: bool, options: Mapping[str, Any], texts: Iterable[Any]) -> Keeping:
        """Of a run with these options and texts; a checkpoint that is not of it is refused before any work.

        Texts are anything with `to_bytes`; None is left out.
        """
        if checkpoint is None:
            return cls(None, resume)
        given = [text.to_bytes() for text in texts if text is not None]
        made = {"options": dict(options), "isogloss": __version__, "data": store.data_hash(*given)}
        check_checkpoint(checkpoint, made, resume=resume)
        return cls(checkpoint, resume, made)

    def stage(self, name: str) -> Keeping:
        """The same for one of several runs that follow one another: each has a checkpoint of its own beside others.

        Examples
        --------
        >>> Keeping("model.checkpoint", True, {"data": "3a"}).stage("weights")
        Keeping(checkpoint='model.checkpoint.weights', resume=True, fingerprint={'data': '3a', 'stage': 'weights'})
        """
        if self.checkpoint is None:
            return self
        return Keeping(f"{os.fspath(self.checkpoint)}.{name}", self.resume, {**(self.fingerprint or {}), "stage": name})

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of `run`."""
        return self._asdict()


def check_checkpoint(
    checkpoint: Place, fingerprint: Mapping[str, Any] | None = None, *, resume: bool = False
) -> None:  # fmt: skip
    """Refuse what `run` would refuse, before the work that leads to it: a bad place, or the checkpoint of another run.

    With a fingerprint and `resume`, a checkpoint that is there should be of the run of this fingerprint.
    """
    folder = Path(checkpoint)
    if not folder.parent.exists() and folder.parent.parent.is_dir():
        with suppress(OSError):  # said better by what follows
            folder.parent.mkdir()
    store.check_place(folder)
    if (folder / store.HEADER).is_file():
        header = store.read_header(folder, kind=store.CHECKPOINT)
        if resume and fingerprint is not None:
            _check_same(folder, header["options"], json.loads(store.as_json(fingerprint)))


def _check_same(checkpoint: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    differences = _differences(before, now)
    if differences:
        raise _another_run(checkpoint, "; ".join(differences))


def _another_run(checkpoint: Path, why: str) -> UsageError:
    return UsageError(
        f"{checkpoint}: this checkpoint is of another run: {why}. "
        "Resume with the same text and options, or start again without resuming"
    )


def _check(
    learner: Learner[Any],
    iterations: int,
    tolerance: float | None,
    checkpoint: Place | None,
    resume: bool,
    every: int | None,
    seconds: float | None,
) -> None:
    if iterations < 0:
        raise ParameterError(f"iterations should be 0 or more, not {iterations!r}")
    if tolerance is not None and not tolerance >= 0:
        raise ParameterError(f"tolerance should be 0 or more, not {tolerance!r}")
    if seconds is not None and not seconds >= 0:
        raise ParameterError(f"seconds should be 0 or more, not {seconds!r}")
    if every is not None and every < 1:
        raise ParameterError(f"every should be a positive number of steps, not {every!r}")
    if resume and checkpoint is None:
        raise UsageError("resume: there is no checkpoint to continue from. Give the folder of the run that was stopped")
    if checkpoint is not None and not isinstance(learner, Resumable):
        raise TypeError(f"{type(learner).__name__} has no `dump` and `restore`, which checkpoints need")


def _seconds(given: float | None) -> float:
    """Time between two checkpoints: as given, as the environment says, or as is usual."""
    if given is None:
        said = os.environ.get(ENVIRONMENT, "")
        try:
            given = float(said) if said else SECONDS
        except ValueError:
            given = math.nan
        if not given >= 0:
            raise UsageError(f"{ENVIRONMENT}: should be a number of seconds, 0 or more, not {said!r}")
    return given


class _Loop(Generic[S]):
    """A run in progress: everything that a checkpoint must hold, and the rules for stopping."""

    def __init__(
        self,
        learner: Learner[S],
        state: S,
        iterations: int,
        tolerance: float | None,
        checkpoint: Place | None,
        fingerprint: Mapping[str, Any],
        progress: Progress,
        should_stop: Callable[[S, Any], bool] | None,
        name: str,
    ) -> None:
        self.learner, self.state, self.name = learner, state, name
        self.first, self.iterations = state.iteration, iterations
        self.tolerance, self.should_stop, self.progress = tolerance, should_stop, progress
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.fingerprint: dict[str, Any] = json.loads(store.as_json(fingerprint))
        self.trace: dict[str, list[float]] = {"objective": []}
        self.told_to_stop, self.detail = False, ""
        self.kept: int | None = None  # iterations in the checkpoint of this run

    @property
    def done(self) -> int:
        return self.state.iteration - self.first

    def go(self, every: int | None, seconds: float, watch: _Watch) -> Result[S]:
        reason, wait = self.reason(), seconds
        written = time.monotonic()
        while reason is None:
            watch.raise_if_signalled()
            words = [f"iteration {self.done + 1} of {self.iterations}", *([self.detail] if self.detail else [])]
            self.progress.update(self.done, ", ".join(words))
            watch.gentle = self.checkpoint is not None  # otherwise finishing the step would keep nothing
            self.step()
            reason = self.reason()
            if every is None:
                due = reason is None and time.monotonic() - written >= wait
            else:
                due = reason is not None or self.done % every == 0
            if self.checkpoint is not None and (due or watch.signals):
                watch.gentle, watch.hard = True, False
                begun = time.monotonic()
                self.keep()
                written = time.monotonic()
                wait = max(seconds, (written - begun) / SHARE)
                watch.hard = True
        self.progress.update(self.done, f"{self.done} iterations")
        columns = {name: np.array(column, np.float64) for name, column in self.trace.items()}
        return Result(self.state, columns.pop("objective"), reason, columns)

    def step(self) -> None:
        state, info = self.learner.step(self.state)
        numbers = _numbers(info)
        if math.isnan(numbers["objective"]):
            raise DataError(
                f"{self.name}, iteration {self.done + 1}: the objective is not a number. "
                "Are there probabilities of 0 or infinite scores in what it started from?" + self.what_is_kept()
            )
        if state.iteration != self.state.iteration + 1:
            raise TypeError(f"{type(self.learner).__name__}.step should add 1 to the state's iteration")
        self.state = state
        for name in {**self.trace, **numbers}:  # a number that only some steps have leaves gaps
            self.trace.setdefault(name, [math.nan] * (self.done - 1)).append(numbers.get(name, math.nan))
        self.told_to_stop = bool(self.should_stop is not None and self.should_stop(state, info))
        self.detail = str(getattr(info, "detail", ""))

    def reason(self) -> Reason | None:
        """Why there is nothing left to do, from what a checkpoint holds alone: a resumed run decides the same."""
        if self.told_to_stop:
            return "should_stop"
        if self.tolerance is not None and len(self.trace["objective"]) > 1:
            before, now = self.trace["objective"][-2:]
            if abs(now - before) < self.tolerance * abs(before) or now == before:
                return "tolerance"
        return "iterations" if self.done >= self.iterations else None

    # --- checkpoints

    def keep(self) -> None:
        assert self.checkpoint is not None
        arrays, meta = cast(Resumable, self.learner).dump(self.state)
        if any(name.startswith(_TRACE) for name in arrays):
            raise TypeError(f"names of arrays that begin with {_TRACE!r} are the runner's own")
        store.save(
            self.checkpoint,
            kind=store.CHECKPOINT,
            options=self.fingerprint,
            arrays={**arrays, **{_TRACE + name: np.array(column) for name, column in self.trace.items()}},
            meta={"learner": meta, "name": self.name, "first": self.first, "told_to_stop": self.told_to_stop},
        )
        self.kept = self.done

    def take_up(self) -> None:
        """Go back to where the checkpoint is, if there is one and it is of this run."""
        assert self.checkpoint is not None
        if not self.checkpoint.exists():
            self.progress.note(f"{self.checkpoint}: no checkpoint yet, so this starts from the beginning")
            return
        saved = store.read(self.checkpoint, kind=store.CHECKPOINT)
        _check_same(self.checkpoint, saved.options, self.fingerprint)
        name = saved.meta.get("name")
        if name != self.name or saved.meta.get("first") != self.first:
            raise _another_run(self.checkpoint, f"it is of {name!r}, not {self.name!r}")
        with store.named(self.checkpoint), store.reading("this checkpoint"):
            columns = {name: saved.arrays.pop(name) for name in list(saved.arrays) if name.startswith(_TRACE)}
            self.trace = {name.removeprefix(_TRACE): column.tolist() for name, column in columns.items()}
            self.state = cast(Resumable, self.learner).restore(saved.arrays, saved.meta["learner"])
            self.told_to_stop = bool(saved.meta["told_to_stop"])
        self.kept = self.done

    # --- words

    def interrupted(self, watch: _Watch) -> Interrupted:
        what = "SIGTERM" if signal.SIGTERM in watch.signals else "Ctrl-C"
        return Interrupted(f"{self.name}: stopped by {what}." + self.what_is_kept())

    def what_is_kept(self) -> str:
        if self.checkpoint is None:
            return " Nothing was kept"
        if self.kept is None:
            return f" No iteration was finished, so there is nothing in {self.checkpoint}; run it again"
        return (
            f" {self.checkpoint} keeps iteration {self.kept} of {self.iterations}: run the same again with --resume "
            "(in Python: resume=True) to go on from there"
        )


def _numbers(info: Info) -> dict[str, float]:
    """The numbers among the fields of a NamedTuple, a dataclass or a plain object."""
    if is_dataclass(info):
        values = {field.name: getattr(info, field.name) for field in fields_of(info)}
    else:
        values = info._asdict() if hasattr(info, "_asdict") else dict(vars(info))
    values["objective"] = info.objective
    return {name: float(v) for name, v in values.items() if isinstance(v, int | float | np.number | np.bool_)}


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    """What two fingerprints say differently, key by key."""
    found: list[str] = []
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            found.append(f"{prefix}{key} was {_short(old)} and is {_short(new)}")
    return found


def _short(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:12] + "..." + text[-5:]


# --- signals ----------------------------------------------------------------------------------------------------------


class _Watch:
    """Signals that came, and what the next one does.

    `gentle`: the first signal only takes note. `hard`: a second one stops the step at once; off while a checkpoint is
    being written.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.signals: list[int] = []
        self.gentle, self.hard = True, True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.signals.append(number)
        if self.hard and (not self.gentle or len(self.signals) > 1):
            raise KeyboardInterrupt
        with suppress(RuntimeError):  # the signal came in the middle of a write to the same stream
            self.progress.note("Stopping after this iteration; once more to stop at once")

    def raise_if_signalled(self) -> None:
        if self.signals:
            raise KeyboardInterrupt


@contextmanager
def _watch(progress: Progress) -> Iterator[_Watch]:
    """Watch SIGINT and SIGTERM while inside; Python allows it in the main thread alone."""
    watch = _Watch(progress)
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    # None: a handler that was not set from Python, which we could not put back. SIG_IGN: `nohup` and the like.
    both = (signal.SIGINT, signal.SIGTERM)
    watched = [number for number in both if signal.getsignal(number) not in (None, signal.SIG_IGN)]
    before = {number: signal.signal(number, watch) for number in watched}
    try:
        yield watch
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
