"""`isogloss parse`: learn dependency trees from a treebank, parse new text, and score trees."""

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
    Threads,
    Tokenise,
    check_output,
    compiling,
    progress_for,
    say,
    write_json,
    write_result,
)
from isogloss.cli._models import header_of, load_parser
from isogloss.cli._options import with_options
from isogloss.cli._treebanks import (
    Breakdown,
    DevFile,
    Found,
    Gold,
    InFormat,
    SaveFolder,
    ScoredColumns,
    TrainFile,
    read_for,
    read_treebank,
    score_files,
    standard_input_once,
)
from isogloss.tasks.parse.induction.options import InductionOptions
from isogloss.tasks.parse.options import DependencyOptions, JointOptions

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank
    from isogloss.tasks.parse import DependencyParser

__all__ = ["COMMANDS", "apply", "induce", "score", "train", "train_joint"]

LEARNING = "Learning"
MEASURES = ("uas", "las", "clas", "upos", "xpos", "ufeats")


@with_options(
    DependencyOptions, "trainer", "decoder", "iterations", "rate", "l2", "min_count", "support", "factors",
    "constraint", "rounds", "prune", "seed", panel=LEARNING, first=("order", "projective", "tags", "labels"),
    flags={"projective": "--projective/--nonprojective"},
)  # fmt: skip
def train(
    treebank: TrainFile,
    save: SaveFolder,
    dev: DevFile = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn the trees and relations of a treebank.

    Nothing but the treebank is needed; words without a head (`_`) may be among the others. `isogloss parse apply` then
    parses new text.
    """
    from isogloss import store

    began = time.perf_counter()
    standard_input_once(treebank, dev)
    store.check_place(save)  # before the work
    checkpoint = save.rstrip("/") + ".checkpoint"
    told = DependencyOptions(**options)
    job = f"parse-train-{told.tags}-{told.labels or 'usual'}-{told.trainer}-{told.order}"
    with compiling(job, quiet, "90 s"):
        from isogloss.tasks.parse import DependencyParser

        parser = DependencyParser(threads=threads, **options)
        text = read_treebank(treebank, encoding, errors)
        held_out = None if dev is None else read_treebank(dev, encoding, errors)
        parser.fit(text, held_out, progress_for(quiet), checkpoint=checkpoint, resume=resume)
    parser.save(save)
    store.discard(checkpoint)
    seconds = time.perf_counter() - began
    say(_described(parser, text, dev), quiet)
    say(f"saved in {save}, {seconds:.1f} s", quiet)
    if json:
        write_json(_summary(parser, text, save, seconds))


def _described(parser: DependencyParser, text: Treebank, dev: str | None) -> str:
    kind = "projective trees" if parser.projective_ else "trees that may cross"
    line = f"{kind}, {len(parser.labels_):,} relations, {parser.n_features_:,} weights, from "
    line += f"{len(text):,} sentences, {text.n_words:,} words"
    if not len(parser.tuning_):
        return line
    passes = int(parser.tuning_.argmax()) + 1
    return f"{line}; UAS {parser.tuning_.max():.2f} on {dev} (best of {len(parser.tuning_)} passes: {passes})"


def _summary(parser: DependencyParser, text: Treebank, save: str, seconds: float) -> dict[str, Any]:
    tuned = len(parser.tuning_) > 0
    return {
        "sentences": len(text),
        "words": text.n_words,
        "relations": len(parser.labels_),
        "features": parser.n_features_,
        "projective": parser.projective_,
        "order": parser.order,
        "factors": parser.families_,
        "dev": float(parser.tuning_.max()) if tuned else None,
        "passes": int(parser.tuning_.argmax()) + 1 if tuned else len(parser.trace_),
        "trace": parser.trace_,
        "tuning": parser.tuning_,
        "model": save,
        "seconds": seconds,
    }


@with_options(
    JointOptions, "iterations", "seed", panel=LEARNING, first=("projective", "joint"),
    flags={"projective": "--projective/--nonprojective", "joint": "--joint/--pipeline"},
)  # fmt: skip
def train_joint(
    treebank: TrainFile,
    save: SaveFolder,
    dev: DevFile = None,
    dictionary: Annotated[
        str | None,
        typer.Option(
            "--dictionary",
            metavar="TSV",
            help="Which tags words may have: lines of form, UPOS and features; or `train`, for those seen there.",
        ),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    resume: Resume = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn tags, morphology and trees together, for languages in which they depend on each other.

    Words are all that the parser then needs; relations are left open. See docs/parse-joint.md.
    """
    from isogloss import store

    began = time.perf_counter()
    standard_input_once(treebank, dev)
    store.check_place(save)  # before the work
    checkpoint = save.rstrip("/") + ".checkpoint"
    with compiling("parse-train-joint", quiet, "90 s"):
        from isogloss.tasks.parse.joint import AnalysisDictionary, JointMorphologyParser

        lexicon = AnalysisDictionary.read(dictionary) if dictionary and dictionary != "train" else dictionary
        parser = JointMorphologyParser(dictionary=lexicon, threads=threads, **options)
        text = read_treebank(treebank, encoding, errors)
        held_out = None if dev is None else read_treebank(dev, encoding, errors)
        parser.fit(text, held_out, progress_for(quiet), checkpoint=checkpoint, resume=resume)
    parser.save(save)
    store.discard(checkpoint)
    best = f"; UAS {parser.tuning_.max():.2f} on {dev}" if len(parser.tuning_) else ""
    say(f"{', '.join(parser.values_)} and trees, from {len(text):,} sentences, {text.n_words:,} words{best}", quiet)
    say(f"saved in {save}, {time.perf_counter() - began:.1f} s", quiet)


@with_options(
    InductionOptions, "sigma", "scaled", "root_sigma", "symmetric", "alpha", "share", "stop_valences",
    "child_valences", "back_off", "nearest_first", "start", "iterations", "viterbi", "tolerance", "dual_steps", "gap",
    "smoothing", panel=LEARNING, first=("model", "learner", "rules", "column", "longest", "punctuation"),
    flags={"symmetric": "--symmetric/--asymmetric", "nearest_first": "--nearest-first/--farthest-first"},
)  # fmt: skip
def induce(
    tagged: Annotated[
        str, typer.Argument(metavar="TAGGED", show_default=False, help="CoNLL-U with tags; heads are not looked at.")
    ],
    save: SaveFolder,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn a grammar from tags alone, for languages without a treebank.

    `isogloss parse apply` then parses tagged text with it. Expect far less than a parser has learnt from trees. See
    docs/parse-induce.md.
    """
    from isogloss import store

    began = time.perf_counter()
    store.check_place(save)  # before the work
    checkpoint = save.rstrip("/") + ".checkpoint"
    with compiling("parse-induce", quiet, "60 s"):
        from isogloss.tasks.parse import GrammarInducer

        inducer = GrammarInducer(threads=threads, **options)
        text = read_treebank(tagged, encoding, errors)
        inducer.fit(text, progress_for(quiet), checkpoint=checkpoint, resume=resume)
    inducer.save(save)
    store.discard(checkpoint)
    seconds = time.perf_counter() - began
    seen = f"{inducer.n_sentences_:,} of {len(text):,} sentences, {inducer.n_words_:,} words"
    say(f"a grammar of {len(inducer.tags_)} tags, from {seen}, in {len(inducer.trace_)} steps", quiet)
    say(f"saved in {save}, {seconds:.1f} s", quiet)
    if json:
        write_json(
            {
                "sentences": inducer.n_sentences_,
                "words": inducer.n_words_,
                "tags": inducer.tags_,
                "trace": inducer.trace_,
                "unconverged": inducer.unconverged_,
                "model": save,
                "seconds": seconds,
            }
        )


def apply(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", show_default=False, help="A folder by `isogloss parse train`, `train-joint` or `induce`."
        ),
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="IN", show_default=False, help="CoNLL-U; or, if the model has a tagger, a sentence a line."
        ),
    ],
    output: Output = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Write the probability of each link into MISC: Confidence=0.98.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    format: InFormat = "auto",
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Parse text with a saved parser. CoNLL-U keeps everything but heads, relations and, with a tagger, tags.

    Plain text becomes CoNLL-U with its lines (`# text`) and their numbers (`# sent_id`).
    """
    began = time.perf_counter()
    check_output(output, [text])
    header_of(model, "parse")  # a wrong model is refused before anything is compiled for it
    with compiling("parse-apply", quiet):
        parser = load_parser(model, threads)
        given = read_for(parser, model, text, format, encoding, errors, tokenise)
        parsed = parser.predict(given, confidence=confidence)
        write_result(output, parsed.to_bytes())
    seconds = time.perf_counter() - began
    say(f"{len(given):,} sentences, {given.n_words:,} words parsed, {seconds:.1f} s", quiet)


def score(
    found: Found,
    gold: Gold,
    columns: ScoredColumns = None,
    output: Output = None,
    json: Json = False,
    breakdown: Breakdown = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score trees against gold: UAS, LAS and CLAS, and the tags as well, in percent.

    They are those of the CoNLL 2018 shared task for the same words: relations without subtypes, punctuation counted
    except in CLAS. Columns that the parser did not write are left out.
    """
    score_files(
        found, gold, MEASURES, output, encoding, errors, json=json, quiet=quiet, columns=columns, breakdown=breakdown
    )


COMMANDS = {"train": train, "train-joint": train_joint, "induce": induce, "apply": apply, "score": score}
"""The commands of this group: ``isogloss parse train`` and so on."""
