"""`isogloss extract`: learn to find names in text, find them, and score what was found."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any

import typer

from isogloss.cli._common import (
    READING,
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Resume,
    Threads,
    Tokenise,
    check_output,
    choice,
    compiling,
    progress_for,
    say,
    write_json,
    write_result,
)
from isogloss.cli._extract import KINDS, SYNTAX, TASKS, read_input, read_marked, score_lines, task_of
from isogloss.cli._memory import as_remembered, say_if_strange
from isogloss.cli._models import header_of, load_extractor
from isogloss.cli._options import with_options
from isogloss.cli._treebanks import DevFile, SaveFolder, standard_input_once
from isogloss.errors import UsageError

__all__ = ["COMMANDS", "apply", "score", "train"]

LEARNING = "Learning"

TrainFile = Annotated[
    str,
    typer.Argument(
        metavar="TRAIN",
        show_default=False,
        help="A word a line with its tag last (BIO, IOB1, BIOES, BILOU), and an empty line after each sentence.",
    ),
]
MarkedFormat = Annotated[
    str, choice("auto", *KINDS, option="--format", panel=READING, help="What the file is in; the text says it itself.")
]


@with_options(
    {f"with --task {name}": task.options for name, task in TASKS.items()},
    "decoder", "threshold", "tags", "longest", "iterations", "rate", "l2", "batch", "min_count", "seed",
    panel=LEARNING, first=("model", "trainer"),
)  # fmt: skip
def train(
    text: TrainFile,
    save: SaveFolder,
    task: Annotated[str, choice(*TASKS, option="--task", help="What to look for.")] = "entities",
    syntax: Annotated[
        str, choice(*SYNTAX, option="--syntax", metavar="NAME", help=f"Trees to look at: {', '.join(SYNTAX)}.")
    ] = "none",
    dev: DevFile = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    format: MarkedFormat = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn what is marked in a text, such as names with their types.

    `isogloss extract apply` then finds it in new text.
    """
    from isogloss import store

    began = time.perf_counter()
    chosen = task_of(task, syntax)
    standard_input_once(text, dev)
    store.check_place(save)  # before the work
    checkpoint = save.rstrip("/") + ".checkpoint"
    if len(chosen.syntax) > 1:
        options["syntax"] = syntax
    if unknown := sorted(set(options) - set(chosen.options._options)):
        raise UsageError(f"--{unknown[0].replace('_', '-')} says nothing with --task {task}. Leave it out")
    told = chosen.options(**options)
    told.check_params()
    key = "-".join(str(getattr(told, name)) for name in ("model", "trainer", "syntax") if hasattr(told, name))
    with compiling(f"extract-train-{task}-{key}", quiet, "60 s"):
        kind = None if format == "auto" else format
        estimator = chosen.made({**options, "threads": threads})
        given = chosen.read(text, kind, encoding, errors)
        held_out = None if dev is None else chosen.read(dev, kind, encoding, errors)
        estimator.fit(given, held_out, progress_for(quiet), checkpoint=checkpoint, resume=resume)
    estimator.save(save)
    store.discard(checkpoint)
    seconds, tuning = time.perf_counter() - began, estimator.tuning_
    line = chosen.described(estimator, given)
    if len(tuning):
        line += f"; F1 {tuning.max():.2f} on {dev} (best of {len(tuning)} passes: {tuning.argmax() + 1})"
    say(line, quiet)
    say(f"saved in {save}, {seconds:.1f} s", quiet)
    if json:
        found = {
            "task": task, "syntax": syntax, **chosen.summary(estimator, given),
            "dev": float(tuning.max()) if len(tuning) else None,
            "passes": int(tuning.argmax()) + 1 if len(tuning) else len(estimator.trace_),
            "trace": estimator.trace_, "tuning": tuning, "model": save, "seconds": seconds,
        }  # fmt: skip
        write_json(found)


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss extract train`.")
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="IN", show_default=False, help="A file like that of training, or a tokenised sentence a line."
        ),
    ],
    output: Output = None,
    threads: Threads = None,
    quiet: Quiet = False,
    tokenise: Tokenise = None,
    format: Annotated[
        str,
        choice(
            "auto", "text", *KINDS, option="--format", panel=READING,
            help="Plain text, or what the file is in; the text says it itself.",
        ),
    ] = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:  # fmt: skip
    """Find what a saved model has learnt to find, and write it in the format of IN.

    Plain text becomes columns, a word and its tag (BIO) a line. What IN has marked itself is not looked at.
    """
    began = time.perf_counter()
    check_output(output, [text])
    kind = header_of(model, "extract")["kind"]  # a wrong model is refused before anything is compiled for it
    with compiling(f"{kind.replace('.', '-')}-apply", quiet):
        from isogloss.data.bitext import Text
        from isogloss.data.reading import TextForm
        from isogloss.data.rows import counted
        from isogloss.data.tokenise import tokenise_bytes

        extractor = load_extractor(model, threads)

        def as_text(data: bytes, name: str) -> Text:
            form = as_remembered({"tokenise": tokenise, "normalise": None}, extractor.reading_, model)
            made = tokenise_bytes(data, form["tokenise"], form["normalise"], name=name)
            return replace(made, form=TextForm(form["tokenise"], form["normalise"]))

        given = read_input(text, format, encoding, errors, as_text)
        if tokenise is not None and not isinstance(given, Text):
            raise UsageError(f"--tokenise is for plain text, and {text} says itself what a word is. Leave it out")
        say_if_strange(extractor.reading_, given if isinstance(given, Text) else given.text())
        found = extractor.predict(given)
        write_result(output, found.to_bytes())
    seconds = time.perf_counter() - began
    said = f"{counted(found.n_entities, 'name')} in {counted(len(found), 'sentence')}"
    say(f"{said}, {counted(found.n_words, 'word')}, {seconds:.1f} s", quiet)


def score(
    found: Annotated[str, typer.Argument(metavar="OUT", show_default=False, help="What was found.")],
    gold: Annotated[str, typer.Argument(metavar="GOLD", show_default=False, help="The right ones of the same words.")],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="FILE", help="Those of a second system: is the difference more than chance?"),
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    format: MarkedFormat = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score names against gold: precision, recall and F1 of exact spans with types, in percent, as conlleval counts.

    All names of all types together are averaged (micro); each type has its own line.
    """
    check_output(output, [found, gold, against])
    standard_input_once(found, gold, against)
    kind = None if format == "auto" else format
    with compiling("extract-score", quiet, "10 s"):
        from isogloss.metrics.names import compare_entities, score_entities

        ours, right = (read_marked(path, kind, encoding, errors) for path in (found, gold))
        told = score_entities(ours, right).as_dict()
        if against is not None:
            theirs = read_marked(against, kind, encoding, errors)
            told["against"] = compare_entities(ours, theirs, right).as_dict()
    if json:
        write_json(told, output)
        return
    write_result(output, "\n".join([*score_lines(told), ""]))


COMMANDS = {"train": train, "apply": apply, "score": score}
"""The commands of this group: ``isogloss extract train`` and so on."""
