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
    Resume,
    SourceEncoding,
    TargetEncoding,
    Threads,
    Tokenise,
    check_output,
    choice,
    compiling,
    progress_for,
    say,
    write_result,
)
from isogloss.cli._models import header_of, load_tagger
from isogloss.cli._options import with_options
from isogloss.cli._tag_options import (
    LEARNING,
    WAYS,
    Adapt,
    BitextFiles,
    ColumnNames,
    DictionaryFile,
    Graph,
    LinksFile,
    SourceTags,
    Taught,
    Unlabelled,
)
from isogloss.cli._tag_training import Request, way_of
from isogloss.cli._training import Training
from isogloss.cli._treebanks import (
    DevFile,
    Found,
    Gold,
    InFormat,
    SaveFolder,
    ScoredColumns,
    read_for,
    score_files,
)
from isogloss.cli.dictionary import DictionaryFormat, DictionaryTagset, UnknownTags

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank
    from isogloss.tasks.tag import Tagger

__all__ = ["COMMANDS", "apply", "score", "train"]

SENTENCES = 20_000
"""Sentences that are tagged at a time, for progress."""


@with_options(WAYS, *LEARNING, panel="Learning", flags={"soft": "--soft/--hard"})
def train(
    save: SaveFolder,
    treebank: Taught = None,
    dev: DevFile = None,
    column: ColumnNames = "upos",
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    dictionary: DictionaryFile = None,
    bitext: BitextFiles = None,
    source_tags: SourceTags = None,
    links: LinksFile = None,
    graph: Graph = False,
    unlabelled: Unlabelled = None,
    adapt: Adapt = None,
    dictionary_format: DictionaryFormat = "auto",
    tagset: DictionaryTagset = "auto",
    unknown: UnknownTags = "error",
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    source_encoding: SourceEncoding = None,
    target_encoding: TargetEncoding = None,
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn a tagger: from a treebank with tags or, for a language that has none, from what there is.

    TRAIN alone: a treebank with tags. TEXT and --dictionary: words with the tags they may have. --bitext and
    --source-tags, with or without --dictionary: a translation that is tagged. TRAIN, --graph and --unlabelled: some
    sentences with tags, and text. `isogloss tag apply` then tags new text.
    """
    request = Request(
        treebank, dev, column.split(","), dictionary, bitext, source_tags, links, graph, unlabelled, adapt,
        options, {"encoding": encoding, "errors": errors},
        {"source_encoding": source_encoding, "target_encoding": target_encoding},
        tokenise,
        {"format": dictionary_format, "tagset": tagset, "unknown": unknown}, threads, quiet,
        save.rstrip("/") + ".checkpoint", resume,
    )  # fmt: skip
    way = way_of(request)
    way.check(request)
    training = Training(save, *request.files(), quiet=quiet)
    with compiling(f"tag-train-{type(way).__name__.strip('_').lower()}-{options.get('order')}", quiet):
        trained = way.train(request)
    training.keep(
        trained.tagger, *trained.lines, json=trained.summary if json else None, checkpoints=request.checkpoints()
    )


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss tag train`.")
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            show_default=False,
            help="CoNLL-U, or plain text: a sentence a line, see --tokenise.",
        ),
    ],
    output: Output = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Write the probability of each tag into MISC: UposConfidence=0.98.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    format: InFormat = "auto",
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Tag text with a saved tagger. CoNLL-U keeps everything but the tags.

    Plain text becomes CoNLL-U with its lines (`# text`) and their numbers (`# sent_id`).
    """
    began = time.perf_counter()
    check_output(output, [text])
    header_of(model, "tag")  # a wrong model is refused before anything is compiled for it
    with compiling("tag-apply", quiet):
        tagger = load_tagger(model, threads)
        given = read_for(tagger, model, text, format, encoding, errors, tokenise)
        tagged = _tagged(tagger, given, confidence, quiet)
        write_result(output, tagged.to_bytes())
    seconds = time.perf_counter() - began
    sentences = int((given.lengths > 0).sum())  # empty lines of a text are none
    say(f"{sentences:,} sentences, {given.n_words:,} words: {', '.join(tagger.columns)}, {seconds:.1f} s", quiet)


def _tagged(tagger: Tagger, given: Treebank, confidence: bool, quiet: bool) -> Treebank:
    """The text with tags, part by part."""
    import numpy as np

    from isogloss.data.treebank import Column
    from isogloss.data.vocabulary import Vocabulary

    progress = progress_for(quiet)
    progress.start("Tagging", max(1, len(given)))
    parts = []
    for start in range(0, len(given), SENTENCES):
        stop = min(start + SENTENCES, len(given))
        parts.append(tagger.tags(given[start:stop], confidence=confidence))
        progress.update(stop)
    progress.finish()
    columns: dict[str, Any] = {}
    for column, one in tagger.taggers.items():
        found = [part[column].labels for part in parts]
        columns[column] = Column(np.concatenate([np.zeros(0, np.int32), *found]), Vocabulary(one.labels_))
    tagged = given.with_predictions(**columns)
    if confidence:
        for column in tagger.columns:
            chances = np.concatenate([np.zeros(0), *(part[column].chances for part in parts)])
            tagged = tagged.with_misc(f"{column.capitalize()}Confidence", [f"{p:.4f}" for p in chances.tolist()])
    return tagged


def score(
    found: Found,
    gold: Gold,
    tagset: Annotated[
        str | None,
        choice("universal12", "ud17", option="--tagset", help="Compare the UPOS of both files in this set of tags."),
    ] = None,
    columns: ScoredColumns = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score tags against gold: words whose UPOS, XPOS and universal features are right, in percent.

    They are those of the CoNLL 2018 shared task for the same words; bundles of features are right as a whole. Columns
    that the tagger did not write are left out.
    """
    measures = ("upos", "xpos", "ufeats")
    score_files(found, gold, measures, output, encoding, errors, json=json, quiet=quiet, columns=columns, tagset=tagset)


COMMANDS = {"train": train, "apply": apply, "score": score}
"""The commands of this group: ``isogloss tag train`` and so on."""
