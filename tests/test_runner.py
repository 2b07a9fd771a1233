"""The training runner and its progress: stopping, checkpoints, resuming to the bit, signals."""

from __future__ import annotations

import inspect
import io
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss import store
from isogloss.errors import DataError, ModelError, ParameterError, UsageError
from isogloss.learners import runner
from isogloss.learners.runner import Interrupted, run
from isogloss.progress import LineProgress, QuietProgress, TerminalProgress, for_stream


class State(NamedTuple):
    table: np.ndarray
    rng: dict[str, Any]
    iteration: int = 0


class Info(NamedTuple):
    objective: float
    violation: float = 0.0
    words: str = "not a number"


class Walk:
    """Every step depends on every bit of the one before, and on a random generator."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.steps = 0

    def start(self, seed: int = 7) -> State:
        return State(np.linspace(0.1, 0.9, 6).reshape(2, 3), np.random.default_rng(seed).bit_generator.state)

    def step(self, state: State) -> tuple[State, Info]:
        self.steps += 1
        time.sleep(self.seconds)
        rng = np.random.default_rng()
        rng.bit_generator.state = state.rng
        table = 3.9 * state.table * (1 - state.table) * rng.uniform(0.9, 1.0, (2, 3))  # chaotic: a lost bit shows
        objective = float(np.log(table).sum())
        return State(table, rng.bit_generator.state, state.iteration + 1), Info(objective, float(table.max()))

    def dump(self, state: State) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        return {"table": state.table}, {"rng": state.rng, "iteration": state.iteration}

    def restore(self, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> State:
        return State(arrays["table"], meta["rng"], meta["iteration"])


class Series:
    """A learner whose objectives are written down beforehand."""

    def __init__(self, *objectives: float) -> None:
        self.objectives = objectives

    def step(self, state: Any) -> tuple[Any, Any]:
        return Counter(state.iteration + 1), Info(self.objectives[state.iteration])


@dataclass(frozen=True)
class Counter:
    iteration: int = 0


def same(a: Any, b: Any) -> bool:
    return bool(
        a.state.table.tobytes() == b.state.table.tobytes()
        and a.state.rng == b.state.rng
        and a.trace.tobytes() == b.trace.tobytes()
        and a.watched["violation"].tobytes() == b.watched["violation"].tobytes()
        and (a.state.iteration, a.stopped_because) == (b.state.iteration, b.stopped_because)
    )


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objectives", "tolerance", "steps", "reason"),
    [
        ((-100.0, -90.0, -89.99, -80.0), None, 4, "iterations"),
        ((-100.0, -90.0, -89.99, -80.0), 1e-3, 3, "tolerance"),  # 0.01 / 90 = 0.00011
        ((-100.0, -90.0, -89.99, -80.0), 1e-4, 4, "iterations"),
        ((-100.0, -100.05, -90.0, -80.0), 1e-3, 2, "tolerance"),  # a small fall is a standstill too
        ((0.0, 0.0, 1.0, 1.0), 0.0, 2, "tolerance"),
        ((-np.inf, -np.inf, 0.0, 0.0), 0.1, 2, "tolerance"),
        ((-np.inf, -90.0, -50.0, -20.0), 0.1, 4, "iterations"),
    ],
)
def test_stopping(objectives: tuple[float, ...], tolerance: float | None, steps: int, reason: str) -> None:
    result = run(Series(*objectives), Counter(), iterations=4, tolerance=tolerance)
    assert (result.state.iteration, result.stopped_because) == (steps, reason)
    assert result.trace.tolist() == list(objectives[:steps])
    assert result.watched.keys() == {"violation"}


def test_the_callback_stops_and_sees_state_and_info() -> None:
    seen: list[tuple[int, float]] = []

    def should_stop(state: Counter, info: Info) -> bool:
        seen.append((state.iteration, info.objective))
        return state.iteration == 2

    result = run(Series(-3.0, -2.0, -1.0), Counter(), iterations=3, should_stop=should_stop)
    assert (result.stopped_because, seen) == ("should_stop", [(1, -3.0), (2, -2.0)])


def test_iterations_are_counted_from_the_state_given() -> None:
    result = run(Series(-5.0, -4.0, -3.0, -2.0, -1.0), Counter(2), iterations=2)
    assert (result.state.iteration, result.trace.tolist()) == (4, [-3.0, -2.0])
    assert run(Series(), Counter(), iterations=0).trace.shape == (0,)


def test_numbers_that_come_and_go_leave_gaps() -> None:
    class Odd(Series):
        def step(self, state: Any) -> tuple[Any, Any]:
            state, info = super().step(state)
            extra = {"late": 5} if state.iteration == 2 else {}
            return state, SimpleNamespace(objective=info.objective, **extra)

    result = run(Odd(-3.0, -2.0, -1.0), Counter(), iterations=3)
    assert np.array_equal(result.watched["late"], [np.nan, 5.0, np.nan], equal_nan=True)


def test_nonsense_is_refused(tmp_path: Path) -> None:
    for wrong in ({"iterations": -1}, {"iterations": 1, "tolerance": -0.1}, {"iterations": 1, "every": 0}):
        with pytest.raises(ParameterError):
            run(Series(), Counter(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no checkpoint to continue from"):
        run(Series(), Counter(), iterations=1, resume=True)
    with pytest.raises(TypeError, match="`dump` and `restore`"):
        run(Series(), Counter(), iterations=1, checkpoint=tmp_path / "c")


def test_an_objective_that_is_not_a_number_stops_before_it_is_kept(tmp_path: Path) -> None:
    class Breaks(Walk):
        def step(self, state: State) -> tuple[State, Info]:
            state, info = super().step(state)
            return state, info if state.iteration < 3 else Info(np.nan)

    learner = Breaks()
    with pytest.raises(DataError, match=r"iteration 3: the objective is not a number.*keeps iteration 2 of 5"):
        run(learner, learner.start(), iterations=5, checkpoint=tmp_path / "c")
    assert store.read(tmp_path / "c").meta["learner"]["iteration"] == 2


# --- checkpoints ------------------------------------------------------------------------------------------------------


class Crash(Exception):
    pass


class Crashing(Walk):
    """Fails at a given step of its life, as a killed process would."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def step(self, state: State) -> tuple[State, Info]:
        if self.steps == self.at:
            raise Crash
        return super().step(state)


@settings(max_examples=25, deadline=None)
@given(at=st.integers(0, 6), every=st.integers(1, 4), tolerance=st.sampled_from([None, 0.2]))
def test_resuming_gives_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory, at: int, every: int, tolerance: float | None
) -> None:
    options: dict[str, Any] = {"iterations": 6, "tolerance": tolerance}
    whole = run(Walk(), Walk().start(), **options)
    options |= {"checkpoint": tmp_path_factory.mktemp("runs") / "c", "every": every, "resume": True}
    try:
        first = run(Crashing(at), Walk().start(), **options)
        assert same(first, whole)  # it had nothing to crash at
    except Crash:
        pass
    second = Walk()
    assert same(run(second, Walk().start(), **options), whole)
    total = whole.state.iteration
    assert second.steps == (total - at // every * every if at < total else 0)
    third = Walk()
    assert same(run(third, Walk().start(), **options), whole) and third.steps == 0  # a finished run does nothing


def test_a_stop_by_callback_is_remembered(tmp_path: Path) -> None:
    options: dict[str, Any] = {"iterations": 5, "checkpoint": tmp_path / "c", "every": 3}
    first = run(Walk(), Walk().start(), should_stop=lambda state, info: state.iteration == 2, **options)
    learner = Walk()
    again = run(learner, Walk().start(), resume=True, should_stop=lambda state, info: False, **options)
    assert same(first, again) and learner.steps == 0


def test_more_iterations_may_be_asked_for_on_resuming(tmp_path: Path) -> None:
    run(Walk(), Walk().start(), iterations=2, checkpoint=tmp_path / "c")
    more = run(Walk(), Walk().start(), iterations=5, checkpoint=tmp_path / "c", resume=True)
    assert same(more, run(Walk(), Walk().start(), iterations=5))


def test_without_resume_a_run_starts_afresh_and_replaces_the_checkpoint(tmp_path: Path) -> None:
    run(Walk(), Walk().start(seed=1), iterations=4, checkpoint=tmp_path / "c")
    learner = Walk()
    run(learner, Walk().start(seed=2), iterations=2, checkpoint=tmp_path / "c")
    assert learner.steps == 2 and store.read(tmp_path / "c").meta["learner"]["iteration"] == 2


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "run" / "c"  # the folder around it is made
    fingerprint = {"options": {"constraint": "symmetric", "seed": 1}, "data": "a" * 64}
    run(Walk(), Walk().start(), iterations=1, checkpoint=place, fingerprint=fingerprint)
    before = store.read_header(place)

    def again(name: str = "Training", **changes: Any) -> None:
        run(
            Walk(),
            Walk().start(),
            iterations=1,
            checkpoint=place,
            resume=True,
            name=name,
            fingerprint={**fingerprint, **changes},
        )

    again()
    again(options={"seed": np.int64(1), "constraint": "symmetric"})  # the same in other clothes
    with pytest.raises(UsageError, match=r'options.constraint was "symmetric" and is "none"\. Resume with the same'):
        again(options={"constraint": "none", "seed": 1})
    with pytest.raises(UsageError, match=r'data was "aaa.*" and is "bbb'):
        again(data="b" * 64)
    with pytest.raises(UsageError, match=r"data was .* and is not given"):
        again(data=None)
    with pytest.raises(UsageError, match="it is of 'Training', not 'HMM'"):
        again(name="HMM")
    assert store.read_header(place) == before


def test_places_a_checkpoint_may_not_take(tmp_path: Path) -> None:
    store.save(tmp_path / "model", kind="align.hmm", options={}, arrays={})
    for resume in (True, False):
        with pytest.raises(ModelError, match=r"holds a model of kind 'align.hmm', where a checkpoint"):
            run(Walk(), Walk().start(), iterations=1, checkpoint=tmp_path / "model", resume=resume)
    assert store.read(tmp_path / "model").kind == "align.hmm"
    with pytest.raises(UsageError, match="there is no folder"):
        run(Walk(), Walk().start(), iterations=1, checkpoint=tmp_path / "a" / "b" / "c")


def test_a_wrong_place_is_refused_before_any_work(tmp_path: Path) -> None:
    learner = Walk()
    for place, words in (
        (tmp_path, "something else"),
        (Path(__file__), "is a file"),
        (tmp_path / "x/y/z", "no folder"),
    ):
        (tmp_path / "precious.txt").write_text("")
        with pytest.raises(UsageError, match=words):
            run(learner, learner.start(), iterations=3, checkpoint=place)
    assert learner.steps == 0


def test_a_crafted_checkpoint_is_refused(tmp_path: Path) -> None:
    """Its checksum is right, and its contents are not what the learner wrote."""
    run(Walk(), Walk().start(), iterations=1, checkpoint=tmp_path / "c")
    saved = store.read(tmp_path / "c")
    for arrays, meta in (({}, saved.meta), (saved.arrays, {**saved.meta, "learner": None})):
        store.save(tmp_path / "c", kind=saved.kind, options=saved.options, arrays=arrays, meta=meta)
        with pytest.raises(ModelError, match="c: this checkpoint is damaged"):
            run(Walk(), Walk().start(), iterations=2, checkpoint=tmp_path / "c", resume=True)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    run(Walk(), Walk().start(), iterations=1, checkpoint=tmp_path / "c")
    (tmp_path / "c" / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match="0 bytes where"):
        run(Walk(), Walk().start(), iterations=1, checkpoint=tmp_path / "c", resume=True)


# --- signals ----------------------------------------------------------------------------------------------------------


class Signalled(Walk):
    """Sends this process signals in the middle of its second step."""

    def __init__(self, *signals: int) -> None:
        super().__init__()
        self.signals = signals
        self.finished = 0

    def step(self, state: State) -> tuple[State, Info]:
        if state.iteration == 1:
            for number in self.signals:
                signal.raise_signal(number)
        result = super().step(state)
        self.finished = result[0].iteration
        return result


@pytest.mark.parametrize(
    ("signals", "finished"),
    [
        ((signal.SIGINT,), 2),
        ((signal.SIGTERM,), 2),
        ((signal.SIGINT, signal.SIGINT), 1),
        ((signal.SIGTERM, signal.SIGINT), 1),
    ],
)
def test_one_signal_finishes_the_step_and_two_give_it_up(
    tmp_path: Path, signals: tuple[int, ...], finished: int
) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    learner = Signalled(*signals)
    with pytest.raises(Interrupted, match=f"keeps iteration {finished} of 5.*--resume.*resume=True") as caught:
        run(learner, learner.start(), iterations=5, checkpoint=tmp_path / "c")
    assert caught.value.exit_code == 130
    assert ("SIGTERM" if signal.SIGTERM in signals else "Ctrl-C") in str(caught.value)
    assert learner.finished == finished
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    resumed = run(Walk(), Walk().start(), iterations=5, checkpoint=tmp_path / "c", resume=True)
    assert same(resumed, run(Walk(), Walk().start(), iterations=5))


def test_a_signal_is_kept_even_when_the_next_checkpoint_is_far(tmp_path: Path) -> None:
    learner = Signalled(signal.SIGTERM)
    with pytest.raises(Interrupted, match="keeps iteration 2 of 50"):
        run(learner, learner.start(), iterations=50, every=40, checkpoint=tmp_path / "c")


def test_a_signal_in_the_last_step_is_not_swallowed(tmp_path: Path) -> None:
    learner = Signalled(signal.SIGTERM)
    with pytest.raises(Interrupted, match="keeps iteration 2 of 2"):
        run(learner, learner.start(), iterations=2, checkpoint=tmp_path / "c")
    learner = Signalled()
    assert run(learner, learner.start(), iterations=2, checkpoint=tmp_path / "c", resume=True).state.iteration == 2
    assert learner.steps == 0


def test_without_a_checkpoint_the_step_is_given_up_at_once() -> None:
    learner = Signalled(signal.SIGINT)
    with pytest.raises(Interrupted, match="Nothing was kept"):
        run(learner, learner.start(), iterations=5)
    assert learner.finished == 1


def test_signals_during_a_checkpoint_wait_until_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = store.save

    def save(*arguments: Any, **more: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        real(*arguments, **more)

    monkeypatch.setattr(store, "save", save)
    with pytest.raises(Interrupted, match="keeps iteration 1 of 5"):
        run(Walk(), Walk().start(), iterations=5, checkpoint=tmp_path / "c")
    assert store.read(tmp_path / "c").meta["learner"]["iteration"] == 1


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        learner = Signalled(signal.SIGINT)
        assert run(learner, learner.start(), iterations=3, checkpoint=tmp_path / "c").state.iteration == 3
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    seen: list[Any] = []

    def work() -> None:
        learner = Walk(seconds=0.1)
        seen.append(run(learner, learner.start(), iterations=2).state.iteration)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.05)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    thread.join()
    assert seen == [2]


PROGRAM = """
import sys, time
from typing import Any, NamedTuple
import numpy as np
from isogloss import store
from isogloss.errors import IsoglossError
from isogloss.learners.runner import run

CLASSES

checkpoint, out, resume = sys.argv[1], sys.argv[2], sys.argv[3] == "resume"
every = 1 if sys.argv[4] == "steps" else None
learner = Walk(seconds=0.15)
given = {"iterations": 6, "checkpoint": checkpoint, "resume": resume, "every": every, "fingerprint": {"seed": 7}}
try:
    result = run(learner, learner.start(), **given)
except IsoglossError as error:
    sys.stderr.write(str(error))
    sys.exit(error.exit_code)
arrays, meta = learner.dump(result.state)
store.save(out, kind="toy", options={}, arrays={**arrays, "trace": result.trace}, meta=meta)
print(learner.steps)
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(
    ("number", "by"), [(signal.SIGTERM, "steps"), (signal.SIGKILL, "steps"), (signal.SIGKILL, "time")]
)
def test_a_killed_process_resumes_to_the_same_bytes(
    tmp_path: Path, number: signal.Signals, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOGLOSS_CHECKPOINT_SECONDS", "0.01")
    program = PROGRAM.replace("CLASSES", "\n".join(inspect.getsource(item) for item in (State, Info, Walk)))

    def start(out: str, mode: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, str(tmp_path / "c"), str(tmp_path / out), mode, by]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    victim = start("never", "fresh")
    deadline = time.monotonic() + 60
    while not (tmp_path / "c").exists() and victim.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(victim.pid, number)
    _, words = victim.communicate(timeout=60)
    assert not (tmp_path / "never").exists()
    if number == signal.SIGTERM:
        assert victim.returncode == 130 and "stopped by SIGTERM" in words and "--resume" in words
    else:
        assert victim.returncode == -signal.SIGKILL
    kept = store.read(tmp_path / "c").meta["learner"]["iteration"]
    assert 1 <= kept < 6

    steps, words = start("resumed", "resume").communicate(timeout=60)
    assert int(steps) == 6 - kept, words
    learner = Walk()
    whole = run(learner, learner.start(), iterations=6)
    arrays, meta = learner.dump(whole.state)
    store.save(tmp_path / "whole", kind="toy", options={}, arrays={**arrays, "trace": whole.trace}, meta=meta)
    assert contents(tmp_path / "resumed") == contents(tmp_path / "whole")


def test_checkpoints_by_time_are_few_where_they_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One a second at most, and fifty times what it took to write the last one lie between two."""
    now, written = 0.0, list[float]()
    monkeypatch.setattr(runner.time, "monotonic", lambda: now)
    save = store.save

    def slow(*args: Any, **more: Any) -> None:
        nonlocal now
        save(*args, **more)
        written.append(now)
        now += 0.095

    def tick(state: Any, info: Any) -> bool:
        nonlocal now
        now += 0.5
        return False

    monkeypatch.setattr(store, "save", slow)
    options: dict[str, Any] = {"iterations": 24, "checkpoint": tmp_path / "c", "every": None, "should_stop": tick}
    whole = run(Walk(), Walk().start(), seconds=1, **options)
    assert written == pytest.approx([1.0, 6.095, 11.19])
    written.clear()
    assert same(run(Walk(), Walk().start(), **options), whole) and not written  # two minutes have not passed
    for wrong in ("soon", "-1", "nan"):
        monkeypatch.setenv("ISOGLOSS_CHECKPOINT_SECONDS", wrong)
        with pytest.raises(UsageError, match="ISOGLOSS_CHECKPOINT_SECONDS: should be a number of seconds"):
            run(Walk(), Walk().start(), **options)
    with pytest.raises(ParameterError, match="seconds should be 0 or more"):
        run(Walk(), Walk().start(), seconds=-1.0, **options)


# --- progress ---------------------------------------------------------------------------------------------------------


class Recorder(QuietProgress):
    def __init__(self) -> None:
        self.said: list[str] = []

    def start(self, name: str, total: float | None = None) -> None:
        self.said.append(f"start {name} {total}")

    def update(self, done: float, detail: str = "") -> None:
        self.said.append(f"{done} {detail}")

    def finish(self) -> None:
        self.said.append("finish")

    def note(self, message: str) -> None:
        self.said.append(message)


def test_the_runner_reports_and_always_finishes(tmp_path: Path) -> None:
    recorder = Recorder()
    run(Series(-2.0, -1.0), Counter(), iterations=2, progress=recorder, name="Model 1")
    assert recorder.said == [
        "start Model 1 2",
        "0 iteration 1 of 2",
        "1 iteration 2 of 2",
        "2 2 iterations",
        "finish",
    ]
    recorder = Recorder()
    with pytest.raises(IndexError):
        run(Series(-2.0), Counter(), iterations=2, progress=recorder)
    assert recorder.said[-1] == "finish"
    recorder = Recorder()
    run(Walk(), Walk().start(), iterations=1, progress=recorder, checkpoint=tmp_path / "c", resume=True)
    assert "no checkpoint yet" in recorder.said[0]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_one_line_in_ten_seconds() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = LineProgress(stream, clock=clock)
    progress.start("Model 1", 100)
    for second in range(1, 41):
        clock.now = second
        progress.update(second, f"iteration {second + 1} of 100")
    lines = stream.getvalue().splitlines()
    assert lines == [
        "Model 1, iteration 11 of 100: 10%, about 90 s left",
        "Model 1, iteration 21 of 100: 20%, about 80 s left",
        "Model 1, iteration 31 of 100: 30%, about 70 s left",
        "Model 1, iteration 41 of 100: 40%, about 60 s left",
    ]


def test_a_log_of_work_without_end_or_of_short_work() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = LineProgress(stream, clock=clock)
    progress.start("Reading")
    progress.update(5)
    assert stream.getvalue() == ""
    clock.now = 11
    progress.within(0.5)
    assert stream.getvalue() == "Reading\n"
    progress.finish()
    clock.now = 30
    progress.update(6)  # no stage: nothing to say
    progress.note("3 lines were empty")
    assert stream.getvalue() == "Reading\n3 lines were empty\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_but_not_for_short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream, clock = Terminal(), Clock()
    progress = TerminalProgress(stream, clock=clock)
    progress.start("Model 1", 4)
    progress.update(1, "iteration 2 of 4")
    progress.note("said plainly")
    assert stream.getvalue() == "said plainly\n"
    clock.now = 2
    out = sys.stdout
    progress.start("HMM [symmetric]", 4)
    progress.update(1, "iteration 2 of 4")
    assert sys.stdout is out  # results on stdout are not caught by the bar
    progress.note("a [note] above the bar")
    progress.within(0.5)
    progress.finish()
    shown = stream.getvalue()
    assert "HMM [symmetric], iteration 2 of 4" in shown and "a [note] above the bar" in shown and "38%" in shown
    progress.finish()


def test_what_fits_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(for_stream(True, Terminal()), QuietProgress)
    assert isinstance(for_stream(False, Terminal()), TerminalProgress)
    assert isinstance(for_stream(False, io.StringIO()), LineProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(for_stream(False, Terminal()), LineProgress)


def test_rich_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys, isogloss.progress as p; x = p.for_stream(); x.start('a', 2); x.update(1); x.finish(); "
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
