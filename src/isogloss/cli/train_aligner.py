"""`isogloss train-aligner`: learn to align from sentences that a person aligned."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from isogloss.cli._aligner_training import AlignerTraining, GoldFiles
from isogloss.cli._common import Json, Quiet, Threads, compiling, write_json
from isogloss.cli._gold import dev_files
from isogloss.cli._options import flag_of, with_options
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.cli._systems import NamedLinks, named_files
from isogloss.errors import UsageError
from isogloss.tasks.align.options import ItgOptions, MatchingOptions, QuadraticOptions, SupervisedOptions

__all__ = ["command"]

LEARNING = "Learning"
ALIGNERS = {"matching": "MatchingAligner", "quadratic": "QuadraticAligner", "itg": "ItgAligner"}
WAYS = {"matching": MatchingOptions, "quadratic": QuadraticOptions, "itg": ItgOptions}
_LEARNING = (
    "features", "trainer", "missed", "iterations", "threshold", "empty", "tune", "lowercase", "max_length", "seed",
)  # fmt: skip
AUTO = "auto"


def _kind(value: str) -> str:
    if value not in (*ALIGNERS, AUTO):
        raise typer.BadParameter(f"'{value}' is not one of {', '.join((*ALIGNERS, AUTO))}")
    return value


@with_reading
@with_options(WAYS, *_LEARNING, panel=LEARNING, first=("lexicon",), flags={"lowercase": "--lowercase/--keep-case"})
def command(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="|".join((*ALIGNERS, AUTO)),
            show_default=False,
            callback=_kind,
            help="Links one to one; words with two links, and neighbours; blocks that a grammar puts together; or that "
            "of them which does best on held-out gold, if it is better than an aligner without gold.",
        ),
    ],
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", show_default=False, help="Source text; or one file with both sides.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="[TARGET]", show_default=False, help="Its translation; omitted for one file.")
    ],
    gold: Annotated[
        str | None,
        typer.Argument(
            metavar="GOLD", show_default=False, help="Links by hand, of all or the first lines; empty: not done."
        ),
    ] = None,
    save: Annotated[str | None, typer.Option("--save", metavar="MODEL", help="Keep the model in this folder.")] = None,
    unlabelled: Annotated[
        tuple[str, str] | None,
        typer.Option("--unlabelled", metavar="SOURCE TARGET", help="More text without links; the more the better."),
    ] = None,
    dev: Annotated[
        tuple[str, str, str] | None,
        typer.Option("--dev", metavar="SOURCE TARGET GOLD", help="Choose settings on this, not on folds of the gold."),
    ] = None,
    links: NamedLinks = None,
    dev_links: Annotated[
        list[str] | None,
        typer.Option("--dev-links", metavar="NAME=FILE", help="The same for the text of --dev."),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            rich_help_panel=LEARNING,
            help="Any other option that the class has in Python; may be given several times.",
        ),
    ] = None,
    *,
    options: dict[str, Any],
    asked: ReadingOptions,
) -> None:
    """Learn to align from sentences that were aligned by hand; fifty to a hundred are enough to begin with.

    GOLD has a line `0-0 1-2 3p4` for each line of the text: source first, counted from 0, p for possible links. It may
    end early, and an empty line says that a pair is not done; the text of such pairs is used without links. Settings
    are chosen by cross-validation within the gold, and with `auto` the kind of aligner too; where that cannot be told
    from the aligner without gold, `auto` keeps the latter, and says so. Apply the model with `isogloss align --model`,
    and ask `isogloss suggest` what to align next.
    """
    began = time.perf_counter()
    text = (source, None, target) if gold is None else (source, target, gold)
    files = GoldFiles(text, unlabelled, dev, named_files(links), dev_files(dev_links))
    files.check()
    _check(files, save, options, json)
    if files.named:
        options["links"] = tuple(files.named)
    if threads is not None:
        options["threads"] = threads
    reading = asked.of()
    if save is not None:
        from isogloss import store

        store.check_place(save)  # before the work
    with compiling(f"train-{kind}", quiet, "a minute"):
        if "lexicon" in options:
            from isogloss.tasks.align.lexicon import read_lexicon

            options["lexicon"] = list(read_lexicon(options["lexicon"]))  # a wrong file should not cost a training
        own = _own_options(option)
        aligner = None if kind == AUTO else _new(kind, options, own)
        shared = _for_all_kinds(options, own) if kind == AUTO else {}
        skip_empty = {**options, **own}.get("empty", SupervisedOptions().empty) == "skip"
        work = AlignerTraining(files, reading, skip_empty, quiet)
        work.train(aligner, shared)
    if save is not None:
        work.aligner.save(save)
    seconds = time.perf_counter() - began
    work.report(save, seconds)
    if json:
        write_json(work.summary(save, seconds))


def _check(files: GoldFiles, save: str | None, options: dict[str, Any], json: bool) -> None:
    if options.get("features") == () and not files.others:
        raise UsageError("--features: names no set, so there is nothing to learn. Leave it out to have the usual ones")
    if save is None and not json:
        raise UsageError("train-aligner: what is learnt would be lost: give --save MODEL, or --json to see the report")


def _own_options(given: list[str] | None) -> dict[str, Any]:
    """``["fertility=2", ...]`` as a dictionary: numbers, true, false and null as in JSON, all else as words."""
    import json

    found: dict[str, Any] = {}
    for entry in given or ():
        name, mark, value = entry.partition("=")
        if not name or not mark:
            raise UsageError(f"--option {entry}: should be a name and a value, as --option folds=10")
        try:
            found[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            found[name.replace("-", "_")] = value
    return found


def _new(kind: str, options: dict[str, Any], own: dict[str, Any]) -> Any:
    from isogloss.tasks import align

    made = getattr(align, ALIGNERS[kind], None)
    if made is None:
        raise UsageError(f"train-aligner {kind}: this version of Isogloss has no {ALIGNERS[kind]}")
    known = {name for name, declared in made._options.items() if declared.kept}
    for name in own:
        if name not in known:
            raise UsageError(f"--option {name}: {ALIGNERS[kind]} has no such option; it has {', '.join(sorted(known))}")
    _check_once(options, own)
    aligner = made(**{**options, **own})
    aligner.check_params()
    return aligner


def _check_once(options: dict[str, Any], own: dict[str, Any]) -> None:
    for name in own:
        if name in options:
            raise UsageError(f"--option {name}: is given twice, once as {flag_of(name)}")


def _for_all_kinds(options: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Options of `choose_aligner`; those that not every kind of aligner has are refused."""
    from isogloss.tasks.align.supervised.choosing import check_options, unsuited

    _check_once(options, own)
    every = {**options, **own}
    if (problem := unsuited(list(ALIGNERS), every)) is not None:
        name, reason = problem
        asked = f"--option {name}" if name in own else flag_of(name)
        raise UsageError(
            f"{asked}: {reason}, and auto tries {', '.join(ALIGNERS)}. Leave it out, or name the kind that you want: "
            "isogloss train-aligner itg ..."
        )
    check_options(list(ALIGNERS), every)
    return {name: value for name, value in every.items() if name != "links"}
