"""Around every command: parse the arguments, run it, and turn what goes wrong into one line and an exit status."""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from importlib import import_module
from types import FrameType, TracebackType
from typing import Any, TextIO

from isogloss._start import STOPPED, end_at_once
from isogloss.errors import IsoglossError

__all__ = ["as_program", "call", "guarded", "refuse", "run", "say", "warn"]

_DEBUG = "ISOGLOSS_DEBUG"


# Words on stderr -----------------------------------------------------------------------------------------------------


def say(message: str, quiet: bool = False) -> None:
    """One line on stderr, in the name of the program; nothing when `quiet`."""
    if not quiet:
        _error_line(f"isogloss: {message}")


def warn(message: str) -> None:
    """One line on stderr about something odd that did not stop the work."""
    _error_line(f"isogloss: warning: {message}")


def _error_line(line: str) -> None:
    with suppress(
        OSError, ValueError, AttributeError
    ):  # nobody listens, or no room for words: the exit status still speaks
        sys.stderr.write(" ".join(line.splitlines()) + "\n")
        sys.stderr.flush()


def _debugging() -> bool:
    return os.environ.get(_DEBUG, "") not in ("", "0")


# Parsing -------------------------------------------------------------------------------------------------------------


def run(name: str, module: str, arguments: Sequence[str]) -> int:
    """Call a command and return the exit status."""
    return guarded(partial(call, name, module, arguments), f"isogloss {name}")


def call(name: str, module: str, arguments: Sequence[str]) -> int | None:
    """Import a command, parse its arguments and do what they ask for; errors are raised."""
    loaded = import_module(module)
    if hasattr(loaded, "COMMANDS"):
        return _run_one_of(name, loaded, arguments)
    parsed = _parse(name, loaded.command, arguments)
    return parsed if isinstance(parsed, int) else parsed()


def _run_one_of(name: str, module: Any, arguments: Sequence[str]) -> int | None:
    """A group of commands, ``isogloss tag train``: the module has a function for each in `COMMANDS`."""
    first = arguments[0] if arguments else "--help"
    quiet = [word for word in arguments[:1] if word in ("-q", "--quiet")]  # may stand before the name, too
    if quiet:
        first, arguments = (arguments[1] if len(arguments) > 1 else "--help"), arguments[1:]
    if first in ("-h", "--help"):
        sys.stdout.write(_group_help(name, module))
        return 0
    if first not in module.COMMANDS:
        return refuse(first, list(module.COMMANDS), f"isogloss {name}")
    parsed = _parse(f"{name} {first}", module.COMMANDS[first], [*quiet, *arguments[1:]])
    return parsed if isinstance(parsed, int) else parsed()


def _group_help(name: str, module: Any) -> str:
    """What the commands of a group are, each with the first line of its docstring."""
    lines = [f"Usage: isogloss {name} COMMAND ...", "", module.__doc__.partition(":")[2].strip().capitalize(), ""]
    width = max(map(len, module.COMMANDS))
    lines += ["Commands:"]
    lines += [f"  {key:{width}}  {one.__doc__.strip().splitlines()[0]}" for key, one in module.COMMANDS.items()]
    return "\n".join([*lines, "", f"`isogloss {name} COMMAND --help` has the options of a command.", ""])


def refuse(word: str, names: Sequence[str], program: str = "isogloss") -> int:
    """Say that there is no such command, and which one may have been meant."""
    from difflib import get_close_matches

    what = "option" if word.startswith("-") else "command"
    close = get_close_matches(word, names, 1, 0.5)
    hint = f"Did you mean '{close[0]}'?" if close else f"`{program} --help` lists what there is"
    say(f"no such {what}: '{word}'. {hint}")
    return 2


def _parse(name: str, function: Callable[..., None], arguments: Sequence[str]) -> Callable[[], None] | int:
    """The call that the arguments ask for, or an exit status if they only asked for help.

    Typer parses and does no more: the work is done outside of it, where its own ideas about errors do not reach.
    """
    import typer
    from typer.main import get_command

    from isogloss.cli._common import GroupedHelp
    from isogloss.cli._spellings import model_first, our_spelling

    @wraps(function)
    def prepared(**values: Any) -> Callable[[], None]:
        return partial(function, **values)

    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    settings = {"help_option_names": ["-h", "--help"], "token_normalize_func": our_spelling}
    app.command(name, cls=GroupedHelp, context_settings=settings)(prepared)
    command = get_command(app)
    given = model_first(command, arguments)
    parsed = command.main(given, prog_name=f"isogloss {name}", standalone_mode=False)
    return parsed if callable(parsed) else int(parsed or 0)


# Starting and ending -------------------------------------------------------------------------------------------------


def as_program(work: Callable[[], int]) -> int:
    """Do the work of a whole process: start and end sooner than Python would by itself."""
    gc.set_threshold(100_000, 50, 50)  # importing makes many objects and hardly a cycle; saves a tenth of a second
    status = work()
    if "llvmlite" in sys.modules:
        _leave(status)
    return status


def _leave(status: int) -> None:
    """End at once: taking down Python and LLVM piece by piece would cost as much as aligning thousands of words."""
    with suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


# Running -------------------------------------------------------------------------------------------------------------


def guarded(work: Callable[[], int | None], name: str = "isogloss") -> int:
    """Do the work; whatever stops it becomes a line on stderr and an exit status, never a traceback."""
    _open_closed_streams()
    stops: list[_Stop] = []
    try:
        with _one_line_warnings(), _stoppable(stops):
            status = work() or 0
            if status and stops:  # Typer makes a status of it
                raise stops[0]
            return status
    except BaseException as problem:
        if _debugging() and not isinstance(problem, SystemExit | GeneratorExit):
            import traceback

            traceback.print_exc()
        if stops and not isinstance(problem, KeyboardInterrupt):
            return _status(stops[0], name)  # compiled code that is stopped while it is imported raises what it likes
        return _status(problem, name)


def _status(problem: BaseException, name: str) -> int:
    """Say what happened; the exit status it stands for."""
    if isinstance(problem, IsoglossError):
        say(str(problem))
        return problem.exit_code
    if isinstance(problem, BrokenPipeError):  # the reader, such as `head`, has seen enough
        _let_go(sys.stdout)
        return 0
    if isinstance(problem, KeyboardInterrupt):
        say(str(problem) or _Stop.CTRL_C)
        return STOPPED
    if isinstance(problem, MemoryError):
        say(
            "there is not enough memory for this. `isogloss align --memory 2GB` takes no more than that, and `--chunk "
            "100000` works through a text part by part"
        )
        return 1
    if isinstance(problem, OSError):
        where = f"{problem.filename}: " if problem.filename is not None else ""
        say(f"{where}{(problem.strerror or str(problem)).lower()}")
        return 2 if isinstance(problem, FileNotFoundError) else 1
    if isinstance(problem, SystemExit):
        return problem.code if isinstance(problem.code, int) else int(problem.code is not None)
    message = getattr(problem, "format_message", None)  # what Typer raises has no public class of its own
    if message is not None and hasattr(problem, "exit_code"):
        words = message().rstrip(".")
        place = getattr(getattr(problem, "ctx", None), "command_path", name)
        say(f"{words}{'' if words.endswith('?') else '.'} `{place} --help` lists the options")
        return int(problem.exit_code)
    found = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
    say(
        f"something went wrong inside Isogloss ({found[:200]}). That is our mistake, not yours: please report it, with "
        f"what {_DEBUG}=1 shows"
    )
    return 1


def _open_closed_streams() -> None:
    """A stream that the caller closed leads nowhere, so that no file we open takes its number and its output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the life of the process


def _let_go(stream: TextIO | None) -> None:
    """Let what is left in the buffers go nowhere, so that Python does not complain when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        assert stream is not None
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Our warnings as one line each, once; those of libraries only for who looks for faults."""
    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        ours = any(parent.__name__ == "IsoglossWarning" for parent in category.__mro__)  # by name: no heavy import
        if (ours or _debugging()) and str(message) not in said:
            said.add(str(message))
            warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


class _Stop(KeyboardInterrupt):
    """A signal asked us to end."""

    CTRL_C = "stopped by Ctrl-C"

    def __init__(self, number: int) -> None:
        super().__init__(self.CTRL_C if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}")
        self.number = number


_USUAL = (signal.SIG_DFL, signal.default_int_handler, end_at_once)


@contextmanager
def _stoppable(stops: list[_Stop]) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP unwind, so that half-written files are removed; `stops` has those that came."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        stops.append(_Stop(number))
        raise stops[-1]

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in numbers if signal.getsignal(number) in _USUAL}
    again = _Again()
    hooks = sys.unraisablehook, sys.excepthook
    sys.unraisablehook, sys.excepthook = again.unraisable, again.printed
    try:
        yield
    finally:
        sys.unraisablehook, sys.excepthook = hooks
        again.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


class _Again:
    """Sends a signal again that came where Python could not raise what stops us, when that place is left.

    That is a callback of the import system, a destructor, or compiled code that is being imported: it prints what was
    raised and goes on, or raises something else. Without this the signal would be lost, and the program go on.
    """

    def __init__(self) -> None:
        self._waiting: list[threading.Timer] = []

    def unraisable(self, found: Any) -> None:
        if isinstance(found.exc_value, KeyboardInterrupt):
            self._send_later(found.exc_value)
        elif _debugging():
            sys.__unraisablehook__(found)

    def printed(self, kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
        if isinstance(problem, KeyboardInterrupt):
            self._send_later(problem)
        else:
            sys.__excepthook__(kind, problem, trace)

    def cancel(self) -> None:
        """Everything has been left: nothing is to be stopped any more."""
        for timer in self._waiting:
            timer.cancel()

    def _send_later(self, problem: KeyboardInterrupt) -> None:
        once_more = threading.Timer(0.05, _send, [signal.Signals(getattr(problem, "number", signal.SIGINT))])
        once_more.daemon = True
        once_more.start()
        self._waiting.append(once_more)


def _send(number: signal.Signals) -> None:
    """Send a signal to this process, so that it is the main thread that wakes up."""
    if os.name == "posix":
        os.kill(os.getpid(), number)
    else:  # there `os.kill` ends the process, whatever the signal
        _thread.interrupt_main(number)
