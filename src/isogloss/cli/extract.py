"""`isogloss extract`: learn to find names, relations and roles in text, find them, and score what was found."""

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
from isogloss.cli._extract import (
    KINDS,
    ROLES,
    SYNTAX,
    TASKS,
    read_input,
    read_scored,
    score_lines,
    scores_of,
    task_of,
    with_types_of,
)
from isogloss.cli._memory import as_remembered, say_if_strange
from isogloss.cli._models import header_of, load_crf_tagger, load_dependency_parser, load_extractor
from isogloss.cli._options import with_options
from isogloss.cli._training import Training, passes_line, passes_of
from isogloss.cli._treebanks import DevFile, SaveFolder, standard_input_once
from isogloss.errors import UsageError

__all__ = ["COMMANDS", "apply", "score", "train"]

LEARNING = "Learning"

TrainFile = Annotated[
    str,
    typer.Argument(
        metavar="TRAIN",
        show_default=False,
        help="For names a word a line with its tag last (BIO, IOB1, BIOES, BILOU), and an empty line after each "
        "sentence; for relations a file as of SemEval-2010 task 8 or CoNLL04; for roles Universal Propositions.",
    ),
]
MarkedFormat = Annotated[
    str,
    choice(
        "auto", *KINDS, ROLES, option="--format", panel=READING, help="What the file is in; the text says it itself."
    ),
]


@with_options(
    {f"with --task {name}": task.options for name, task in TASKS.items()},
    "decoder", "threshold", "tags", "longest", "iterations", "rate", "l2", "batch", "min_count", "seed",
    "features", "at_most_one", "min_word", "bits", "start", "crossing", "senses",
    panel=LEARNING, first=("model", "trainer"),
)  # fmt: skip
def train(
    text: TrainFile,
    save: SaveFolder,
    task: Annotated[str, choice(*TASKS, option="--task", help="What to look for.")] = "entities",
    syntax: Annotated[
        str | None,
        choice(
            *SYNTAX,
            option="--syntax",
            metavar="NAME",
            help=f"Trees to look at: {', '.join(SYNTAX)}; hidden ones if not given, and none for names.",
        ),
    ] = None,
    tagger: Annotated[
        str | None,
        typer.Option("--tagger", metavar="MODEL", help="For relations: a tagger by `isogloss tag train`."),
    ] = None,
    parser: Annotated[
        str | None,
        typer.Option(
            "--parser",
            metavar="MODEL",
            help="For relations with --syntax given: a parser by `isogloss parse train --tags predicted`.",
        ),
    ] = None,
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
    chosen = task_of(task, syntax)
    training = Training(save, text, dev, quiet=quiet)
    if len(chosen.syntax) > 1 and syntax is not None:
        options["syntax"] = syntax
    helpers = {name: path for name, path in (("tagger", tagger), ("parser", parser)) if path is not None}
    if lost := sorted(set(helpers) - set(chosen.helpers)):
        raise UsageError(f"--{lost[0]} says nothing with --task {task}. Leave it out")
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
        loaded = {name: _HELPERS[name](path, threads) for name, path in helpers.items()}
        estimator.fit(given, held_out, progress_for(quiet), checkpoint=training.checkpoint, resume=resume, **loaded)
    syntax = getattr(told, "syntax", "none")
    found = {"task": task, "syntax": syntax, **chosen.summary(estimator, given), **passes_of(estimator)}
    line = chosen.described(estimator, given) + passes_line(estimator, "F1", dev)
    training.keep(estimator, line, json=found if json else None)


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
            "auto", "text", *KINDS, ROLES, option="--format", panel=READING,
            help="Plain text, or what the file is in; the text says it itself.",
        ),
    ] = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:  # fmt: skip
    """Find what a saved model has learnt to find, and write it in the format of IN.

    Plain text becomes columns, a word and its tag (BIO) a line; of SemEval there is a number and a label a line. What
    IN has marked itself is not looked at, but relations are between its names, and roles are of its predicates.
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
        if kind != "extract.entities" and isinstance(given, Text):
            wanted = "names" if kind == "extract.relations" else "predicates"
            raise UsageError(f"{text}: plain text, where {wanted} have to be marked. Give a file like that of training")
        shown = given if isinstance(given, Text) else given.text() if hasattr(given, "text") else given.treebank.text()
        say_if_strange(extractor.reading_, shown)
        found = extractor.predict(given)
        write_result(output, found.to_bytes())
    seconds = time.perf_counter() - began
    noun = {"extract.relations": "relation", "extract.roles": "argument"}.get(kind, "name")
    number = {"relation": "n_relations", "argument": "n_arguments"}.get(noun, "n_entities")
    said = f"{counted(getattr(found, number), noun)} in {counted(len(found), 'sentence')}"
    say(f"{said}, {counted(int(shown.ids.lengths.sum()), 'word')}, {seconds:.1f} s", quiet)


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
    """Score names, relations or roles against gold, as the file of gold says: precision, recall and F1, in percent.

    Names are right if their words and their type are, as conlleval counts; relations, if both names, the direction and
    the label are; arguments, if the word and its role are. All of all kinds together are averaged (micro), but for
    SemEval, whose official score is the mean over its nine relations (macro). Where OUT and GOLD have no type of names
    in common, types with other names count as the same: Peop of CoNLL04 as PER.
    """
    check_output(output, [found, gold, against])
    standard_input_once(found, gold, against)
    with compiling("extract-score", quiet, "10 s"):
        ours, right = read_scored(found, gold, format, encoding, errors)
        ours = with_types_of(ours, right, quiet)
        measured, compared = scores_of(right)
        told = measured(ours, right).as_dict()
        if against is not None:
            theirs = with_types_of(read_scored(against, gold, format, encoding, errors)[0], right, quiet)
            told["against"] = compared(ours, theirs, right).as_dict()
    if json:
        write_json(told, output)
        return
    write_result(output, "\n".join([*score_lines(told), ""]))


_HELPERS = {"tagger": load_crf_tagger, "parser": load_dependency_parser}
"""What loads each helper."""
COMMANDS = {"train": train, "apply": apply, "score": score}
"""The commands of this group: ``isogloss extract train`` and so on."""
