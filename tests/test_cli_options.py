"""Options of estimators on the command line are as the estimators declare them, and nowhere declared a second time."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
import typer
from typer.main import get_command

from conftest import Call
from isogloss import cli
from isogloss.cli._options import declared, with_options
from isogloss.estimator import THREADS, Estimator, option
from isogloss.learners.passes import TRAINERS
from isogloss.structures.loopy import CONSTRAINTS
from isogloss.tasks import align, parse, tag, transfer
from isogloss.tasks.adapt import DocumentClassifier
from isogloss.tasks.align import symmetrise
from isogloss.tasks.documents import PolylingualTopics
from isogloss.tasks.documents.ranking import BilingualRanker
from isogloss.tasks.documents.threads import Threads
from isogloss.tasks.extract import EntityTagger, RelationExtractor, RoleLabeller
from isogloss.tasks.joint import BilingualParser, JointConstituentAligner, JointParserAligner, Multiview
from isogloss.tasks.parse.constituency import ConstituencyParser
from isogloss.tasks.parse.options import CONSTRAINTS as NAMED
from isogloss.tasks.segment import BilingualSegmenter, Segmenter
from isogloss.tasks.transfer.names_options import ProjectedNamesOptions
from isogloss.tasks.translate import Translator

USED: dict[str, tuple[type[Estimator], ...]] = {
    "align": (align.HMMAligner, align.Model1Aligner, align.Model2Aligner, align.SegmentedAligner),
    "train-aligner": (align.MatchingAligner, align.QuadraticAligner, align.ItgAligner),
    "tag train": (tag.CrfTagger, tag.DictionaryTagger, tag.GraphTagger, tag.ProjectedTagger),
    "parse train": (parse.DependencyParser,),
    "parse induce": (parse.GrammarInducer,),
    "parse train-joint": (parse.JointMorphologyParser,),
    "parse restyle": (parse.StyleAdapter,),
    "constituency train": (ConstituencyParser,),
    "adapt train": (DocumentClassifier,),
    "joint train": (JointParserAligner,),
    "joint train-constituents": (JointConstituentAligner,),
    "joint train-bilingual": (BilingualParser,),
    "multiview train": (Multiview,),
    "extract train": (EntityTagger, RelationExtractor, RoleLabeller),
    "topics train": (PolylingualTopics,),
    "transfer combine": (transfer.DelexicalisedParser,),
    "transfer names": (ProjectedNamesOptions,),
    "transfer train": (transfer.TransferredParser,),
    "threads": (Threads,),
    "rank train": (BilingualRanker,),
    "segment train": (Segmenter, BilingualSegmenter),
    "translate train": (Translator,),
    "translate apply": (Translator,),
}
"""Commands, and the estimators that they train."""
OWN = {
    "align": {"links", "segment"},  # links by others; without --segment, no words are cut
    "train-aligner": {"links"},
    "tag train": {"column", "dictionary"},  # several columns at once; a file
    "extract train": {"syntax"},  # of every task, names among them
    "parse train-joint": {"dictionary"},  # a file
    "transfer train": {"dictionary"},
    "threads": {"links"},  # a file
    "translate apply": {"nbest"},  # how many translations to write, not to tune on
}
"""Options of commands that only have the name of an estimator's: they take something else."""


def commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, entry in cli.COMMANDS.items():
        module = import_module(entry.module)
        if hasattr(module, "COMMANDS"):
            yield from ((f"{name} {one}", function) for one, function in module.COMMANDS.items())
        else:
            yield name, module.command


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return {str(one.name): one for one in get_command(app).params if one.param_type_name == "option"}


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_options_are_as_declared(name: str) -> None:
    function = dict(commands())[name]
    found = parameters(function)
    if "threads" in found:
        assert found["threads"].help == THREADS
    classes = USED.get(name, ())
    assert bool(classes) == ("options" in inspect.signature(inspect.unwrap(function)).parameters)
    checked = 0
    for key, parameter in found.items():
        options = [kind._options[key] for kind in classes if key in kind._options]
        if not options or key == "threads" or key in OWN.get(name, ()):
            continue
        checked += 1
        assert parameter.default is None, f"{name} --{key} has a default of its own"
        for one in options:
            assert one.help[1:] in parameter.help, f"{name} --{key} has help of its own"
            assert shown(one.default, parameter) in parameter.help, f"{name} --{key} has another default"
    assert checked > 1 or not classes


def shown(default: Any, parameter: Any) -> str:
    if default is None:
        return ""
    if isinstance(default, bool):
        return (parameter.secondary_opts if not default else parameter.opts)[0].lstrip("-")
    if isinstance(default, tuple):
        return ", ".join(default)
    return f"{default:g}" if isinstance(default, float) else str(default)


class Slow(Estimator):
    rate: float = option(default=0.5, above=0, below=1, help="Length of steps.")
    limit: float | str = option(default="auto", choices=("auto",), kind=float, least=0, help="Where to stop.")
    words: list[str] | None = option(default=None, kind=(list, tuple), help="What to look at.")
    lowercase: bool = option(default=True, help="Compare words without case.")


class Fast(Estimator):
    rate: float = option(default=2.0, above=0, help="Length of steps.")
    rounds: int = option(default=3, least=1, help="How often.")


def made(calls: list[Any]) -> Callable[..., None]:
    @with_options(
        {"": Slow, "with --fast": Fast}, "rate", "limit", "words", "lowercase", "rounds",
        flags={"lowercase": "--lowercase/--keep-case"},
    )  # fmt: skip
    def command(name: str, fast: bool = False, *, options: dict[str, Any]) -> None:
        calls.append((name, fast, options))

    return command


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ([], {}),
        (["--rate", "0.25"], {"rate": 0.25}),
        (["--rate", "7"], {"rate": 7.0}),  # right for one of the two
        (["--limit", "auto"], {"limit": "auto"}),
        (["--limit", "1e-3"], {"limit": 0.001}),
        (["--words", "a, b"], {"words": ("a", "b")}),
        (["--keep-case"], {"lowercase": False}),
        (["--lowercase", "--rounds", "4"], {"lowercase": True, "rounds": 4}),
    ],
)
def test_what_was_said_is_handed_over(given: list[str], options: dict[str, Any]) -> None:
    calls: list[Any] = []
    app = typer.Typer(add_completion=False)
    app.command()(made(calls))
    get_command(app).main(["me", *given], standalone_mode=False)
    assert calls == [("me", False, options)]
    for kind in (Slow, Fast):
        here = {name: value for name, value in options.items() if declared(kind, name)}
        if here and not (kind is Slow and options.get("rate") == 7.0):
            kind(**here).check_params()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--rate", "-1"], "'-1' should be a number above 0 and below 1, or a number above 0"),
        (["--limit", "best"], "'best' should be 'auto' or a number from 0 on"),
        (["--rounds", "2.5"], "'2.5' should be an integer from 1"),
        (["--rounds", "0"], "'0' should be an integer from 1"),
    ],
)
def test_what_makes_no_sense_is_refused(given: list[str], words: str) -> None:
    app = typer.Typer(add_completion=False)
    app.command()(made([]))
    with pytest.raises(Exception, match="should be") as found:
        get_command(app).main(["me", *given], standalone_mode=False)
    assert words in found.value.format_message()  # type: ignore[attr-defined]


def test_help_of_several_estimators() -> None:
    found = parameters(made([]))
    assert found["rate"].help == "Length of steps. [default: 0.5, above 0 and below 1; with --fast: 2, above 0]"
    assert found["rounds"].help == "With --fast: how often. [default: 3]"
    assert found["limit"].help == "Where to stop. [default: auto, a number from 0 on]"
    assert found["lowercase"].help == "Compare words without case. [default: lowercase]"


def test_declarations_name_what_there_is() -> None:
    """Names are listed apart from what they stand for, so that help need not import it."""
    assert tuple(CONSTRAINTS) == NAMED
    assert set(parse.DependencyParser._options["trainer"].choices) == set(TRAINERS)
    assert tuple(symmetrise._PLANS) == symmetrise.METHODS
    for kind in USED["train-aligner"]:
        known = [name for name in kind._options["trainer"].choices if name != "auto"]
        assert known == list(kind.DEFAULTS)  # type: ignore[attr-defined]


def test_lists_and_switches_reach_the_parser(isogloss: Call) -> None:
    answer = isogloss("parse", "train", "nowhere.conllu", "--save", "nothing", "--factors", "grand,grandest")
    assert answer.status == 2 and "nowhere.conllu" in answer.err
    answer = isogloss("parse", "train", "nowhere.conllu", "--save", "nothing", "--trainer", "luck")
    assert answer.status == 2 and "'luck' should be one of 'likelihood', 'risk'" in answer.err


def test_help_of_trainers_imports_nothing_heavy() -> None:
    script = (
        "import sys; from isogloss.cli import main; main(['tag', 'train', '--help']); "
        "main(['parse', 'train', '--help']); main(['parse', 'train-joint', '--help']); "
        "print([name for name in ('numpy', 'numba', 'scipy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
