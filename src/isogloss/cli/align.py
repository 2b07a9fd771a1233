"""`isogloss align`: link the words of a parallel text."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    LinksFormat,
    Output,
    Quiet,
    Source,
    Stopwatch,
    Target,
    Threads,
    check_output,
    choice,
    compiling,
    is_standard_output,
)
from isogloss.cli._engines import ENGINES, AskedEngine
from isogloss.cli._memory import Look
from isogloss.cli._models import load_aligner
from isogloss.cli._options import flag_of, with_options
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.cli._segments import AskedSegments, with_segments
from isogloss.cli._systems import NamedLinks, check_needed, job_of, named_files
from isogloss.errors import UsageError
from isogloss.tasks.align.options import SEGMENT_STAGES, HMMOptions

if TYPE_CHECKING:
    from isogloss.cli._alignment import Alignments

__all__ = ["command"]

MODEL = "Model"
WORKERS = "Workers"
ALIGNERS = {"hmm": "HMMAligner", "model1": "Model1Aligner", "model2": "Model2Aligner"}
_STREAMED = 10_000
_LEARNING = (
    "constraint", "iterations", "threshold", "symmetrise", "decode", "lexicon", "lowercase", "max_length", "seed",
    "device",
)  # fmt: skip
_ANEW = ("threshold", "symmetrise", "decode", "max_length", "threads")  # what may be chosen for a saved model


@with_reading
@with_segments
@with_options(HMMOptions, *_LEARNING, panel=MODEL, flags={"lowercase": "--lowercase/--keep-case"})
def command(
    source: Source,
    target: Target = None,
    output: Output = None,
    scores: Annotated[bool, typer.Option("--scores", help="Write the probability of each link: `0-1:0.9731`.")] = False,
    save: Annotated[str | None, typer.Option("--save", metavar="MODEL", help="Keep the model in this folder.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Train nothing: apply this saved model, in a stream.")
    ] = None,
    links: NamedLinks = None,
    gold: Annotated[
        str | None,
        typer.Option("--gold", metavar="FILE", help="Score right away, against gold of the text or its first lines."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="A summary of the run on stdout, for programs; the links need -o then.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint that a stopped run left beside its output.")
    ] = False,
    threads: Threads = None,
    links_format: LinksFormat = "pharaoh",
    quiet: Quiet = False,
    aligner: Annotated[
        str | None, choice(*ALIGNERS, option="--aligner", panel=MODEL, help="Which model; hmm without it.")
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            "--chunk",
            metavar="N",
            min=1,
            rich_help_panel=MODEL,
            help="Learn from N pairs at a time, each part once, instead of from all in every iteration; with --model, "
            "align N pairs at a time.",
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            rich_help_panel=MODEL,
            help="Train in no more memory than this, such as 4GB, with files for the rest; without it, in most of what "
            "is free.",
        ),
    ] = None,
    engine: Annotated[
        str,
        choice(
            *ENGINES,
            option="--engine",
            panel=WORKERS,
            help="Who trains: this process; processes of this machine; tasks of Ray; or jobs that you start yourself, "
            "with `isogloss align-worker`. The links are the same.",
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            rich_help_panel=WORKERS,
            help="How many workers; one for each core without it. Each has --threads, or its share of the cores.",
        ),
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(
            "--groups",
            metavar="N",
            min=1,
            rich_help_panel=WORKERS,
            help="Parts of the text that are worked on as one, at the most; four for each worker without it.",
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="HOST:PORT",
            rich_help_panel=WORKERS,
            help="A Ray cluster that runs, or auto; without it, Ray is started on this machine.",
        ),
    ] = None,
    work_folder: Annotated[
        str | None,
        typer.Option(
            "--work-folder",
            metavar="DIR",
            rich_help_panel=WORKERS,
            help="A folder that all workers see; the same command takes up a run that was stopped, with any "
            "number of workers.",
        ),
    ] = None,
    *,
    options: dict[str, Any],
    asked: ReadingOptions,
    segments: AskedSegments,
) -> None:
    """Link the words of a parallel text, and write a line `source-target ...` for every pair, counted from 0.

    Without --model it trains on the text and aligns it; nothing needs to be tuned. Empty pairs, and pairs that are too
    long, give an empty line.
    """
    watch = Stopwatch()
    if threads is not None:
        options["threads"] = threads
    systems = named_files(links)
    if [source, target, gold, *systems.values()].count("-") > 1:
        raise UsageError("standard input can be one of the files only; both sides go in as 'source ||| target'")
    _check_outputs(output, json, resume, scores, links_format)
    _check_model(model, save, resume, aligner, options)
    elsewhere = AskedEngine(engine, workers, groups, address, work_folder)
    elsewhere.check(model=model, chunk=chunk, resume=resume)
    segments.check(model=model, aligner=aligner, memory=memory, chunk=chunk, engine=not elsewhere.is_local)
    allowed = _allowed(memory, model, chunk)
    if model is None and systems:
        raise UsageError(
            "--links: without --model nothing uses them. `isogloss train-aligner` learns what they are worth"
        )
    check_output(output, [source, target, gold, options.get("lexicon"), *systems.values()])
    if save is not None:
        from isogloss import store

        store.check_place(save)
    reading = asked.of(model, source)
    with compiling(job_of(model) if segments.segment is None else "align-segment", quiet):
        from isogloss.cli._alignment import Alignments

        work = Alignments(source, target, reading, output, scores, links_format, gold, quiet, watch)
        if model is not None:
            fitted = _loaded(model, options)
            check_needed(fitted, systems, model)
            work.apply(fitted, chunk or _STREAMED, systems, Look(fitted, model))
        elif segments.segment is not None:
            fitted = _trained_on_morphemes(work, segments, options, resume, save)
        else:
            fitted = _trained(work, _new(aligner or "hmm", options), options, chunk, allowed, resume, save, elsewhere)
    work.report(fitted, json, model or save)


def _trained(
    work: Alignments,
    aligner: Any,
    options: dict[str, Any],
    chunk: int | None,
    memory: int | None,
    resume: bool,
    save: str | None,
    elsewhere: AskedEngine,
) -> Any:
    """Train, align and keep the model; the checkpoint goes when all of it is safe."""
    from isogloss.cli._chunks import discard
    from isogloss.cli._room import is_large, most_of_what_is_free

    checkpoint = _checkpoint_for(work.output, chunk is not None, resume)
    if not elsewhere.is_local:
        return _trained_elsewhere(work, aligner, elsewhere, options.get("threads"), memory, save)
    if chunk is None and (memory is not None or is_large(work.source, work.target)):
        _check_rereadable("--memory", work.source, work.target)
        work.train_in_parts(aligner, memory or most_of_what_is_free(), checkpoint, resume)
    elif chunk is None:
        work.train(aligner, checkpoint, resume)
    else:
        _check_rereadable("--chunk", work.source, work.target)
        aligner = work.train_in_chunks(aligner, chunk, options, checkpoint, resume)
    if save is not None:
        aligner.save(save)
    if checkpoint is not None:
        discard(checkpoint)
    return aligner


def _trained_on_morphemes(
    work: Alignments, segments: AskedSegments, options: dict[str, Any], resume: bool, save: str | None
) -> Any:
    """The same with words cut into morphemes; each stage has a checkpoint of its own."""
    from isogloss.cli._chunks import discard

    aligner = segments.new(options)
    checkpoint = _checkpoint_for(work.output, False, resume)
    work.train(aligner, checkpoint, resume, **segments.segmenters(options.get("threads")))
    if save is not None:
        aligner.save(save)
    if checkpoint is not None:
        for place in (checkpoint, *(f"{checkpoint}.{stage}" for stage in SEGMENT_STAGES)):
            discard(place)
    return aligner


def _checkpoint_for(output: str | None, in_chunks: bool, resume: bool) -> str | None:
    """Where checkpoints of a run lie; one that is there and of another kind of run is refused, or makes way."""
    from isogloss.cli._chunks import check_kind

    checkpoint = _checkpoint(output)
    if checkpoint is not None:
        check_kind(checkpoint, in_chunks, resume)
    elif resume:
        raise UsageError(f"--resume: {output} is not a file, so no checkpoint can lie beside it")
    return checkpoint


def _trained_elsewhere(
    work: Alignments, aligner: Any, elsewhere: AskedEngine, threads: int | None, memory: int | None, save: str | None
) -> Any:
    """Have workers train, align and keep the model; their folder is emptied when all of it is safe."""
    from isogloss.cli._room import is_large, most_of_what_is_free
    from isogloss.learners.runner import Interrupted

    try:
        with elsewhere.made(threads) as engine:
            if memory is not None or is_large(work.source, work.target):
                _check_rereadable("--memory", work.source, work.target)
                work.train_in_parts(aligner, memory or most_of_what_is_free(), None, False, engine=engine)
            else:
                work.train(aligner, None, False, engine=engine)
            if save is not None:
                aligner.save(save)
    except Interrupted as stop:
        if elsewhere.work_folder is None:
            raise
        raise Interrupted(
            f"Training: stopped. {elsewhere.work_folder} keeps what was done: run the same again to go on from there"
        ) from stop
    return aligner


def _check_outputs(output: str | None, json: bool, resume: bool, scores: bool, links_format: str) -> None:
    if is_standard_output(output):
        if json:
            raise UsageError("--json: stdout already has the links. Send them to a file with -o")
        if resume:
            raise UsageError("--resume: the checkpoint lies beside the output file. Give the -o of the stopped run")
    if scores and links_format == "giza":
        raise UsageError("--scores: GIZA++ records have no place for the probability of a link. Use pharaoh or naacl")


def _check_model(
    model: str | None, save: str | None, resume: bool, aligner: str | None, options: dict[str, Any]
) -> None:
    if model is None:
        return
    if save is not None:
        raise UsageError("--model applies a saved model and --save keeps a new one: give one of the two")
    if resume:
        raise UsageError("--resume continues a training, but --model trains nothing")
    other = [name for name in options if name not in _ANEW]
    if aligner is not None or other:
        flag = flag_of(other[0]) if other else "--aligner"
        if options.get("lowercase") is False and flag == "--lowercase":
            flag = "--keep-case"
        raise UsageError(f"{flag} is for training, and --model trains nothing. Leave out one of the two")


def _allowed(memory: str | None, model: str | None, chunk: int | None) -> int | None:
    """The bytes that --memory asks for."""
    if memory is None:
        return None
    for other, flag, why in (
        (model, "--model", "a saved model is applied a part at a time, and needs little more than itself"),
        (chunk, "--chunk", "a part of the text is learnt from at a time"),
    ):
        if other is not None:
            raise UsageError(f"--memory is for training on a whole text. With {flag} {why}: leave out one of the two")
    from isogloss.cli._room import size_of

    return size_of(memory)


def _check_rereadable(flag: str, *paths: str | None) -> None:
    """A text in parts is read twice: to train, and to be aligned."""
    for path in paths:
        pipe = path == "-"
        with suppress(OSError):
            pipe = pipe or (path is not None and stat.S_ISFIFO(os.stat(path).st_mode))
        if pipe:
            raise UsageError(f"{flag} reads the text twice, and '{path}' can be read once. Put it in a file first")


def _checkpoint(output: str | None) -> str | None:
    """The folder for checkpoints, beside an output that is a file."""
    if output is None or is_standard_output(output) or (os.path.exists(output) and not os.path.isfile(output)):
        return None
    return output + ".checkpoint"


def _new(name: str, options: dict[str, Any]) -> Any:
    from isogloss.tasks import align

    made = getattr(align, ALIGNERS[name])(**options)
    made.check_params()
    return made


def _loaded(path: str, options: dict[str, Any]) -> Any:
    """The model at `path`, with the few options that may be chosen anew for it."""
    from isogloss import store

    fitted = load_aligner(path, options.get("threads"))
    changes = {name: value for name, value in options.items() if name not in ("threads", "threshold")}
    if fitted.supervised:
        _limit(fitted, changes, path)
    elif changes:
        saved = store.read(path)
        chosen = {name: changes.get(name, saved.options.get(name)) for name in ("symmetrise", "decode", "max_length")}
        type(fitted)(**chosen).check_params()  # complains of what makes no sense as it does in training
        fitted = type(fitted)._from_saved(replace(saved, options={**saved.options, **changes}))
        fitted.threads = options.get("threads")
    if "threshold" in options:
        if isinstance(options["threshold"], str):
            raise UsageError(
                f"--threshold {options['threshold']} is found in training; with --model give a probability"
            )
        fitted.threshold_ = options["threshold"]
    return fitted


def _limit(fitted: Any, changes: dict[str, Any], path: str) -> None:
    """A supervised model takes its links as one, and knows pairs up to the length it was trained with."""
    for name in ("symmetrise", "decode"):
        if name in changes:
            raise UsageError(
                f"--{name} is for models of two directions, and {path} holds a {type(fitted).__name__}, "
                "which has none. Leave it out"
            )
    length = changes.get("max_length", fitted.max_length)
    if length > fitted.max_length:
        raise UsageError(
            f"--max-length {length}: {path} was trained for pairs of up to {fitted.max_length} words. Give no more, or "
            f"train with --max-length {length}"
        )
    fitted.max_length = fitted.extractor_.max_length = length
