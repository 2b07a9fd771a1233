"""What commands share: options with one name and one help text, and the ways results leave the program.

>>> def command(source: Source, target: Target = None, output: Output = None, quiet: Quiet = False) -> None:
...     check_output(output, [source, target])
...     with compiling("example", quiet):
...         write_result(output, "...")
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from isogloss.cli._frame import say, warn
from isogloss.engine.numba_cache import compile_seconds
from isogloss.errors import UsageError
from isogloss.estimator import THREADS
from isogloss.places import is_written_directly, prove

if TYPE_CHECKING:
    from isogloss.data import Bitext, Links
    from isogloss.progress import Progress

__all__ = [
    "Columns",
    "Encoding",
    "Errors",
    "Format",
    "GroupedHelp",
    "Json",
    "Languages",
    "LinksFormat",
    "Normalise",
    "Output",
    "Quiet",
    "Resume",
    "Source",
    "SourceEncoding",
    "Stopwatch",
    "Target",
    "TargetEncoding",
    "Threads",
    "Tokenise",
    "check_output",
    "choice",
    "compiling",
    "is_standard_output",
    "progress_for",
    "read_gold",
    "say",
    "two",
    "warn",
    "write_json",
    "write_result",
]

_BOUND = re.compile(r"\s*\[x>=\d+\]")  # that a number of things is at least 1 needs no saying

READING = "Reading"
"""The heading of `--help` for options about the text."""


# Help ----------------------------------------------------------------------------------------------------------------


class GroupedHelp(TyperCommand):
    """Help as plain text, with the options under the headings that `rich_help_panel` names."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [parameter for parameter in self.get_params(ctx) if parameter.param_type_name == "argument"]
        return ["[OPTIONS]", *(parameter.metavar or str(parameter.name).upper() for parameter in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                name = (parameter.metavar or str(parameter.name).upper()).strip("[].")
                words = getattr(parameter, "help", None) or (parameter.get_help_record(ctx) or ("", ""))[1]
                groups.setdefault("Arguments", []).append((name, words))
            elif (record := parameter.get_help_record(ctx)) is not None:
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                groups.setdefault(heading, []).append((record[0], _BOUND.sub("", record[1])))
        for heading in sorted(groups, key=lambda heading: {"Arguments": 0, READING: 2}.get(heading, 1)):
            with formatter.section(heading):
                formatter.write_dl(groups[heading])


# Options -------------------------------------------------------------------------------------------------------------


def choice(*names: str, option: str, help: str, panel: str | None = None, metavar: str | None = None) -> Any:
    """An option that takes one of a few words: ``Annotated[str, choice("a", "b", option="--letter", help="...")]``.

    Help shows the words beside the option, or `metavar` where they are too many for a line: `help` then names them.
    """

    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"'{value}' is not one of {', '.join(names)}")
        return value

    return typer.Option(option, metavar=metavar or "|".join(names), help=help, callback=check, rich_help_panel=panel)


def two(kind: Callable[[str], Any], example: str) -> Callable[[str], tuple[Any, Any]]:
    """A parser of two values with a comma between them."""

    def parse(value: str) -> tuple[Any, Any]:
        try:
            first, second = (kind(part.strip()) for part in value.split(","))
        except ValueError:
            raise typer.BadParameter(f"'{value}' should be two values with a comma between them: {example}") from None
        return first, second

    return parse


Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", show_default=False, help="Source text, a sentence a line; or one file with both sides."
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(metavar="[TARGET]", show_default=False, help="Its translation, line by line; omitted for one file."),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where the result goes; stdout without it, or for `-`."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but warnings and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the checkpoint that a stopped run left beside its model.")
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, help=THREADS),
]

Format = Annotated[
    str,
    choice(
        "auto",
        "pair",
        "bars",
        "tsv",
        "tmx",
        option="--format",
        panel=READING,
        help="How a single file holds both sides: `source ||| target` (bars), columns (tsv), or TMX.",
    ),
]
Encoding = Annotated[
    str, typer.Option("--encoding", metavar="NAME", rich_help_panel=READING, help="How the text is written.")
]
SourceEncoding = Annotated[
    str | None,
    typer.Option(
        "--source-encoding",
        metavar="NAME",
        rich_help_panel=READING,
        help="Encoding of SOURCE, if it is not that of --encoding; for two files.",
    ),
]
TargetEncoding = Annotated[
    str | None,
    typer.Option(
        "--target-encoding",
        metavar="NAME",
        rich_help_panel=READING,
        help="Encoding of TARGET, if it is not that of --encoding; for two files.",
    ),
]
Errors = Annotated[
    str,
    choice(
        "strict",
        "replace",
        "ignore",
        option="--errors",
        panel=READING,
        help="What to do with bytes that are not of the encoding.",
    ),
]
Tokenise = Annotated[
    str | None,
    choice(
        "space",
        "unicode",
        "characters",
        option="--tokenise",
        panel=READING,
        help="What a word is: what stands between spaces (the default, unless a model was trained with another), what "
        "a plain tokeniser finds, or each character.",
    ),
]
Normalise = Annotated[
    str | None,
    choice("NFC", "NFD", "NFKC", "NFKD", option="--normalise", panel=READING, help="Unicode normalisation."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B",
        rich_help_panel=READING,
        help="Which columns, from 0, hold source and target; needed where there are more than two.",
    ),
]
Languages = Annotated[
    str | None,
    typer.Option(
        "--languages",
        metavar="A,B",
        rich_help_panel=READING,
        help="The two languages to take from a TMX file, as `en,fr`; needed where it has more.",
    ),
]
LinksFormat = Annotated[
    str,
    choice("pharaoh", "naacl", "giza", option="--links-format", help="How links are written."),
]


def read_gold(path: str, text: Bitext | Callable[[int], Bitext | None]) -> Links:
    """Gold links of the whole text, or of its first lines: people annotate a few hundred and train on more.

    `text` may be a function that gives the first n pairs, or None if it cannot; then indices are not checked.
    """
    import warnings

    from isogloss.data import Bitext
    from isogloss.data.formats import parse_links, read_bytes
    from isogloss.data.formats.files import name_of

    data, name = read_bytes(path), name_of(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when it is read with the text
        n_gold = len(parse_links(data, name))
    first = text.part(0, min(n_gold, len(text))) if isinstance(text, Bitext) else text(n_gold)
    return parse_links(data, name, bitext=first)


# Out -----------------------------------------------------------------------------------------------------------------


def is_standard_output(path: str | None) -> bool:
    """Whether a result goes to stdout."""
    return path is None or path == "-"


def check_output(path: str | None, inputs: Iterable[str | None] = ()) -> None:
    """Before the work: that an output file can be written, and that no input would be overwritten by it."""
    if path is None or path == "-":
        return
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a directory; give the name of a file in it")
    if is_written_directly(path):
        return
    prove(path)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise UsageError(f"{path}: is there already and may not be written to. Write to another file")
    for other in inputs:
        if other is not None and os.path.isfile(path) and os.path.exists(other) and os.path.samefile(path, other):
            raise UsageError(f"{path}: is to be read and written at once. Give another name for the output")


def write_result(path: str | None, pieces: Iterable[bytes | str] | bytes | str) -> None:
    """Write a result to a file, whole or not at all, or to stdout when `path` is None or ``-``."""
    from isogloss.data.formats import atomic_write

    with atomic_write(path) as file:
        for piece in [pieces] if isinstance(pieces, bytes | str) else pieces:
            file.write(piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece)


def write_json(value: Mapping[str, Any], path: str | None = None) -> None:
    """Write a JSON object, on stdout unless a path is given; what is not a number (NaN) becomes null."""
    import json

    text = json.dumps(_plain(value), ensure_ascii=False, indent=2, allow_nan=False)
    write_result(path, text + "\n")


def _plain(value: Any) -> Any:
    """Only what JSON knows; arrays and their numbers are turned into Python's."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def progress_for(quiet: bool) -> Progress:
    """What long work reports to: a bar on a terminal, lines in a log, nothing when quiet."""
    from isogloss.progress import for_stream

    return for_stream(quiet)


class Stopwatch:
    """How long a command has worked; compiling kernels, which is done once, is counted apart."""

    def __init__(self) -> None:
        self._began, self._compiled = time.perf_counter(), compile_seconds()

    @property
    def seconds(self) -> float:
        """All the time since the command began."""
        return time.perf_counter() - self._began

    @property
    def compiling(self) -> float:
        """How much of it went into compiling."""
        return compile_seconds() - self._compiled

    def rate(self, number: int) -> float:
        """So many things done, in a second of work."""
        return number / max(self.seconds - self.compiling, 1e-9)

    def __str__(self) -> str:
        aside = f" ({self.compiling:.1f} s of it compiling)" if self.compiling >= 0.05 else ""
        return f"{self.seconds:.1f} s{aside}"


@contextmanager
def compiling(job: str, quiet: bool, about: str = "30 s") -> Iterator[None]:
    """Around the work: say first that kernels have to be compiled, if so, and remember afterwards that they are."""
    from isogloss.engine import cache

    cache.ensure_cache()
    known = _tell_troubles()
    _import_kernels_machinery()
    cold = cache.cold(job)
    if cold:
        say(f"first use of this command: compiling kernels, about {about}; later runs start at once", quiet)
        if job == "align":
            _compile_aligner()  # before the work, so that estimates of the time left are not spoilt by it
    yield
    if cold:
        cache.mark_warm(job)
    _tell_troubles(known)


def _tell_troubles(known: int = 0) -> int:
    """Warn of what went wrong with keeping compiled kernels, but for what is known already; returns how much is now."""
    from isogloss.engine.cache import troubles

    for words in troubles()[known:]:
        warn(words)
    return len(troubles())


def _compile_aligner() -> None:
    from isogloss.data import Bitext
    from isogloss.tasks.align import HMMAligner

    HMMAligner(threads=1).fit_predict(Bitext.of([("one two", "eins zwei"), ("two", "zwei")]))


def _import_kernels_machinery() -> None:
    """Import what every kernel needs of Numba, but not SciPy.

    Numba imports all of `scipy.linalg` only to learn whether `np.cov` and its like may call BLAS. No kernel of ours
    does, and it takes longer than aligning a few hundred sentences.
    """
    if "scipy.linalg" in sys.modules or "numba.np.arraymath" in sys.modules:
        return
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]  # Python's way to say: not there
    try:
        import_module("numba.np.arraymath")
    except ImportError:  # another Numba, which will import what it needs when it does
        pass
    finally:
        del sys.modules["scipy.linalg"]
