"""`isogloss tag`: learn parts of speech and morphology from a treebank, tag new text, and score tags."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Seed,
    Threads,
    check_output,
    choice,
    compiling,
    progress_for,
    say,
    write_json,
    write_result,
)
from isogloss.cli._treebanks import (
    DevFile,
    Found,
    Gold,
    InFormat,
    SaveFolder,
    TrainFile,
    read_any,
    read_treebank,
    score_files,
    standard_input_once,
)

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank
    from isogloss.tasks.tag import Tagger

__all__ = ["COMMANDS", "apply", "score", "train"]

LEARNING = "Learning"
COLUMNS = ("upos", "xpos", "feats")
SENTENCES = 20_000
"""Sentences that are tagged at a time, for progress."""


def _columns(value: str) -> str:
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in COLUMNS:
            raise typer.BadParameter(f"'{name}' is not one of {', '.join(COLUMNS)}")
    if len(set(names)) < len(names):
        raise typer.BadParameter(f"'{value}' names a column twice")
    return ",".join(names)


def train(
    treebank: TrainFile,
    save: SaveFolder,
    dev: DevFile = None,
    column: Annotated[
        str,
        typer.Option(
            "--column", metavar="upos|xpos|feats", callback=_columns, help="What to learn; several as upos,feats."
        ),
    ] = "upos",
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    order: Annotated[
        int,
        typer.Option(
            "--order",
            metavar="1|2",
            min=1,
            max=2,
            rich_help_panel=LEARNING,
            help="Tags before a word's own to look at.",
        ),
    ] = 2,
    decoder: Annotated[
        str,
        choice(
            "marginal",
            "viterbi",
            option="--decoder",
            panel=LEARNING,
            help="The most probable tag of each word, or the most probable sequence.",
        ),
    ] = "marginal",
    iterations: Annotated[
        int, typer.Option("--iterations", metavar="N", min=1, rich_help_panel=LEARNING, help="Passes over the text.")
    ] = 8,
    l1: Annotated[
        float, typer.Option("--l1", metavar="X", min=0, rich_help_panel=LEARNING, help="Penalty; more, fewer weights.")
    ] = 0.1,
    l2: Annotated[
        float,
        typer.Option("--l2", metavar="X", min=0, rich_help_panel=LEARNING, help="Penalty; more, smaller weights."),
    ] = 0.0,
    min_count: Annotated[
        int,
        typer.Option(
            "--min-count", metavar="N", min=1, rich_help_panel=LEARNING, help="Leave out attributes met less often."
        ),
    ] = 1,
    seed: Seed = 0,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Learn the tags of a treebank: parts of speech, tags of the language, or bundles of features.

    Nothing but the treebank is needed. `isogloss tag apply` then tags new text.
    """
    from isogloss import store

    began = time.perf_counter()
    standard_input_once(treebank, dev)
    store.check_place(save)  # before the work
    names = column.split(",")
    with compiling(f"tag-train-{order}", quiet):
        from isogloss.tasks.tag import Tagger

        options = {"order": order, "decoder": decoder, "iterations": iterations, "l1": l1, "l2": l2, "seed": seed}
        tagger = Tagger(names, min_count=min_count, threads=threads, **options)
        text = read_treebank(treebank, encoding, errors)
        held_out = None if dev is None else read_treebank(dev, encoding, errors)
        tagger.fit(text, held_out, progress_for(quiet))
    tagger.save(save)
    seconds = time.perf_counter() - began
    for name, one in tagger.taggers.items():
        line = f"{name}: {len(one.labels_):,} tags from {len(text):,} sentences, {text.n_words:,} words"
        if held_out is not None:
            passes = int(one.tuning_.argmax()) + 1
            line += f"; {one.tuning_.max():.2f}% right on {dev} (best of {iterations} passes: {passes})"
        say(line, quiet)
    say(f"saved in {save}, {seconds:.1f} s", quiet)
    if json:
        write_json(_summary(tagger, text, save, seconds))


def _summary(tagger: Tagger, text: Treebank, save: str, seconds: float) -> dict[str, Any]:
    columns = {
        name: {
            "labels": len(one.labels_),
            "dev": float(one.tuning_.max()) if len(one.tuning_) else None,
            "passes": int(one.tuning_.argmax()) + 1 if len(one.tuning_) else len(one.trace_),
            "trace": one.trace_,
        }
        for name, one in tagger.taggers.items()
    }
    return {"sentences": len(text), "words": text.n_words, "columns": columns, "model": save, "seconds": seconds}


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss tag train`.")
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="IN", show_default=False, help="CoNLL-U, or plain text: a sentence a line, words between spaces."
        ),
    ],
    output: Output = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Write the probability of each tag into MISC: UposConfidence=0.98.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    format: InFormat = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Tag text with a saved tagger. CoNLL-U keeps everything but the tags; plain text becomes CoNLL-U."""
    began = time.perf_counter()
    check_output(output, [text])
    with compiling("tag-apply", quiet):
        from isogloss.tasks.tag import Tagger

        tagger = Tagger.load(model)
        for one in tagger.taggers.values():
            one.threads = threads
        given = read_any(text, format, encoding, errors)
        tagged = _tagged(tagger, given, confidence, quiet)
        write_result(output, tagged.to_bytes())
    seconds = time.perf_counter() - began
    say(f"{len(given):,} sentences, {given.n_words:,} words: {', '.join(tagger.columns)}, {seconds:.1f} s", quiet)


def _tagged(tagger: Tagger, given: Treebank, confidence: bool, quiet: bool) -> Treebank:
    """The text with tags, part by part."""
    import numpy as np

    from isogloss.data.treebank import Column
    from isogloss.data.vocabulary import Vocabulary

    progress = progress_for(quiet)
    progress.start("Tagging", max(1, len(given)))
    columns: dict[str, Any] = {}
    chances: dict[str, list[str]] = {column: [] for column in tagger.columns}
    for column, one in tagger.taggers.items():
        found = []
        for start in range(0, len(given), SENTENCES):
            part = given.part(start, min(start + SENTENCES, len(given)))
            found.append(one.predict(part).columns[column].ids)
            if confidence:
                chances[column] += [f"{p:.4f}" for p in one.confidence(part).tolist()]
            progress.update(min(start + SENTENCES, len(given)), column)
        columns[column] = Column(np.concatenate([np.zeros(0, np.int32), *found]), Vocabulary(one.labels_))
    progress.finish()
    tagged = given.with_columns(**columns)
    if confidence:
        for column in tagger.columns:
            tagged = tagged.with_misc(f"{column.capitalize()}Confidence", chances[column])
    return tagged


def score(
    found: Found,
    gold: Gold,
    tagset: Annotated[
        str | None,
        choice("universal12", "ud17", option="--tagset", help="Compare the UPOS of both files in this set of tags."),
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score tags against gold: words whose UPOS, XPOS and universal features are right, in percent.

    They are those of the CoNLL 2018 shared task for the same words; bundles of features are right as a whole.
    """
    measures = ("upos", "xpos", "ufeats")
    score_files(found, gold, measures, output, encoding, errors, json=json, quiet=quiet, tagset=tagset)


COMMANDS = {"train": train, "apply": apply, "score": score}
"""The commands of this group: ``isogloss tag train`` and so on."""
