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
    choice,
    compiling,
    progress_for,
    say,
    write_result,
)
from isogloss.cli._evidence import bitext_option, links_option, source_trees_option
from isogloss.cli._memory import say_if_strange
from isogloss.cli._models import check_dependency_parser, header_of, load_dependency_parser, load_parser
from isogloss.cli._options import with_options
from isogloss.cli._parse_adapting import ADAPTING, AdaptText, adapted, check_adapting, said_of
from isogloss.cli._training import Training, passes_line, passes_of
from isogloss.cli._transfer_training import Files, Manner, transfer
from isogloss.cli._transfer_training import apply as transfer_apply
from isogloss.cli._treebanks import (
    Breakdown,
    DevFile,
    Found,
    Gold,
    InFormat,
    SaveFolder,
    ScoredColumns,
    ScoredWords,
    TrainFile,
    read_for,
    read_treebank,
    score_files,
)
from isogloss.errors import UsageError
from isogloss.tasks.parse.adapting.options import AdaptationOptions
from isogloss.tasks.parse.induction.options import InductionOptions
from isogloss.tasks.parse.options import DependencyOptions, JointOptions, RestyleOptions
from isogloss.tasks.transfer.options import METHODS, TransferOptions

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank
    from isogloss.tasks.parse import DependencyParser

__all__ = ["COMMANDS", "apply", "complete", "induce", "restyle", "score", "train", "train_joint"]

LEARNING = "Learning"
TRANSLATED = "From a translation"
MEASURES = ("uas", "las", "clas", "upos", "xpos", "ufeats")


@with_options(
    DependencyOptions, "trainer", "decoder", "iterations", "rate", "l2", "min_count", "support", "factors",
    "constraint", "rounds", "prune", "seed", panel=LEARNING, first=("order", "projective", "tags", "labels"),
    flags={"projective": "--projective/--nonprojective"},
)  # fmt: skip
@with_options(
    AdaptationOptions, "method", "classes", "word_count", "pivot_count", "folds", "bags", "bag_size", "share", "weight",
    "form", "seed", panel=ADAPTING, prefix="adapt", instead_of="adapting",
)  # fmt: skip
def train(
    save: SaveFolder,
    treebank: Annotated[
        str | None,
        typer.Argument(metavar="[TRAIN]", show_default=False, help="A treebank in CoNLL-U (or CoNLL-X, CoNLL-2009)."),
    ] = None,
    dev: DevFile = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    bitext: Annotated[
        tuple[str, str] | None,
        bitext_option("In place of TRAIN: learn to parse the language of TARGET, through links to SOURCE.", TRANSLATED),
    ] = None,
    source_trees: Annotated[
        str | None, source_trees_option("SOURCE in CoNLL-U, with tags and trees.", TRANSLATED)
    ] = None,
    links: Annotated[str | None, links_option(TRANSLATED)] = None,
    method: Annotated[
        str | None,
        choice(
            *METHODS,
            option="--method",
            panel=TRANSLATED,
            help="How target trees are found; see `isogloss transfer train`. [default: complete]",
        ),
    ] = None,
    adapt: AdaptText = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
    adapting: dict[str, Any],
) -> None:
    """Learn the trees and relations of a treebank; or, with --bitext, of a translation.

    Nothing but the treebank is needed; words without a head (`_`) may be among the others. `isogloss parse apply` then
    parses new text. `isogloss transfer train` has more to say where there is only a translation.
    """
    check_adapting(adapt, adapting, resume=resume, bitext=bitext is not None)
    if bitext is not None or treebank is None:
        _train_from_bitext(
            treebank, bitext, source_trees, links, save, ({} if method is None else {"method": method}) | options,
            {"encoding": encoding, "errors": errors}, Manner(threads, quiet, resume, json),
        )  # fmt: skip
        return
    for flag, value in (("--source-trees", source_trees), ("--links", links), ("--method", method)):
        if value is not None:
            raise UsageError(f"{flag} needs --bitext SOURCE TARGET")
    training = Training(save, treebank, dev, adapt, quiet=quiet)
    told = DependencyOptions(**options)
    job = f"parse-train-{told.tags}-{told.labels or 'usual'}-{told.trainer}-{told.order}"
    with compiling(job, quiet, "90 s"):
        from isogloss.tasks.parse import DependencyParser

        parser = DependencyParser(threads=threads, **options)
        text = read_treebank(treebank, encoding, errors)
        held_out = None if dev is None else read_treebank(dev, encoding, errors)
        if adapt is None:
            parser.fit(text, held_out, progress_for(quiet), checkpoint=training.checkpoint, resume=resume)
        else:
            adapted(parser, text, held_out, adapt, adapting, (encoding, errors), progress_for(quiet))
    lines = [_described(parser, text, dev), *([] if adapt is None else [said_of(adapt, adapting)])]
    training.keep(parser, *lines, json=_summary(parser, text) | adapting if json else None)


def _train_from_bitext(
    treebank: str | None,
    bitext: tuple[str, str] | None,
    source_trees: str | None,
    links: str | None,
    save: str,
    options: dict[str, Any],
    reading: dict[str, Any],
    manner: Manner,
) -> None:
    """A parser of the target language, as `isogloss transfer train` makes it."""
    if bitext is None:
        raise UsageError("give TRAIN, a treebank to learn from; or --bitext SOURCE TARGET and --source-trees")
    if treebank is not None:
        raise UsageError(f"{treebank}: give a treebank or --bitext. To learn from both: isogloss transfer train")
    if source_trees is None:
        raise UsageError("--bitext needs --source-trees: SOURCE in CoNLL-U with trees (isogloss parse apply)")
    foreign = sorted(set(options) - set(TransferOptions._options))
    if foreign:
        raise UsageError(f"--{foreign[0].replace('_', '-')} cannot be chosen with --bitext; leave it out")
    files = Files(bitext, source_trees=source_trees, links=links)
    transfer(files, save, options, reading, {}, {}, manner)


def _described(parser: DependencyParser, text: Treebank, dev: str | None) -> str:
    kind = "projective trees" if parser.projective_ else "trees that may cross"
    line = f"{kind}, {len(parser.labels_):,} relations, {parser.n_features_:,} weights, from "
    return f"{line}{len(text):,} sentences, {text.n_words:,} words{passes_line(parser, 'UAS', dev)}"


def _summary(parser: DependencyParser, text: Treebank) -> dict[str, Any]:
    return {
        "sentences": len(text),
        "words": text.n_words,
        "relations": len(parser.labels_),
        "features": parser.n_features_,
        "projective": parser.projective_,
        "order": parser.order,
        "factors": parser.families_,
        **passes_of(parser),
    }


@with_options(
    JointOptions, "iterations", "seed", panel=LEARNING, first=("projective", "joint", "stack_links"),
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

    Words are all that the parser then needs. Relations are found with --stack-links, and left open without. See
    docs/parse-joint.md.
    """
    training = Training(save, treebank, dev, quiet=quiet)
    with compiling("parse-train-joint", quiet, "90 s"):
        from isogloss.tasks.parse.joint import AnalysisDictionary, JointMorphologyParser

        lexicon = AnalysisDictionary.read(dictionary) if dictionary and dictionary != "train" else dictionary
        parser = JointMorphologyParser(dictionary=lexicon, threads=threads, **options)
        text = read_treebank(treebank, encoding, errors)
        held_out = None if dev is None else read_treebank(dev, encoding, errors)
        parser.fit(text, held_out, progress_for(quiet), checkpoint=training.checkpoint, resume=resume)
    found = f"{', '.join(parser.values_)} and trees" + (f", {len(parser.labels_):,} relations" * bool(parser.labels_))
    line = f"{found}, from {len(text):,} sentences, {text.n_words:,} words"
    training.keep(parser, line + passes_line(parser, "UAS", dev))


@with_options(RestyleOptions, "l2", "folds", "iterations", "decoder", "seed", panel=LEARNING, first=("relations",))
def restyle(
    treebank: Annotated[
        str,
        typer.Argument(metavar="FEW", show_default=False, help="Trees of the new style in CoNLL-U; ten are worth it."),
    ],
    save: SaveFolder,
    parser: Annotated[
        str | None,
        typer.Option("--parser", metavar="OLD", help="A parser of the old style, by `isogloss parse train`."),
    ] = None,
    old_trees: Annotated[
        str | None,
        typer.Option(
            "--old-trees", metavar="OLD", help="The same sentences with trees of the old style, in place of a parser."
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn another annotation style from a few trees, with a parser of the old style.

    `isogloss parse apply` then parses new text in the new style. A model that was given old trees in place of a parser
    turns trees of the old style into those of the new. See docs/parse-restyle.md.
    """
    if (parser is None) == (old_trees is None):
        raise UsageError(
            "give either --parser, a model of the old style, or --old-trees, the same sentences with trees of the old "
            "style"
        )
    training = Training(save, treebank, old_trees, quiet=quiet)
    if parser is not None:
        kind = header_of(parser, "parse")["kind"]
        if kind != "parse.dependency":
            raise UsageError(f"{parser}: this is a model of kind {kind}, where one by `isogloss parse train` is wanted")
    with compiling("parse-restyle", quiet, "60 s"):
        from isogloss.tasks.parse import StyleAdapter

        adapter = StyleAdapter(threads=threads, **options)
        few = read_treebank(treebank, encoding, errors)
        old: Any = load_parser(parser, threads) if parser else read_treebank(str(old_trees), encoding, errors)
        adapter.fit(few, old, progress_for(quiet))
    found = f"{adapter.n_features_:,} weights of links, penalty {adapter.l2_:g}" if adapter.n_features_ else "nothing"
    summary = {
        "sentences": len(few), "words": few.n_words, "features": adapter.n_features_, "l2": adapter.l2_,
        "losses": adapter.losses_,
    }  # fmt: skip
    line = f"{found}, from {len(few):,} sentences, {few.n_words:,} words"
    training.keep(adapter, line, json=summary if json else None, checkpoints=())


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
    training = Training(save, tagged, quiet=quiet)
    with compiling("parse-induce", quiet, "60 s"):
        from isogloss.tasks.parse import GrammarInducer

        inducer = GrammarInducer(threads=threads, **options)
        text = read_treebank(tagged, encoding, errors)
        inducer.fit(text, progress_for(quiet), checkpoint=training.checkpoint, resume=resume)
    seen = f"{inducer.n_sentences_:,} of {len(text):,} sentences, {inducer.n_words_:,} words"
    summary = {
        "sentences": inducer.n_sentences_, "words": inducer.n_words_, "tags": inducer.tags_, "trace": inducer.trace_,
        "unconverged": inducer.unconverged_,
    }  # fmt: skip
    line = f"a grammar of {len(inducer.tags_)} tags, from {seen}, in {len(inducer.trace_)} steps"
    training.keep(inducer, line, json=summary if json else None)


def apply(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="A folder by `isogloss parse train`, `train-joint`, `restyle` or `induce`, or `isogloss transfer`.",
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
    header = header_of(model, "parse")  # a wrong model is refused before anything is compiled for it
    if header["kind"] == "parse.transferred":  # it splits words of plain text before it tags them
        transfer_apply(
            model, text, output, confidence=confidence, threads=threads, quiet=quiet, format=format, tokenise=tokenise,
            encoding=encoding, errors=errors,
        )  # fmt: skip
        return
    with compiling("parse-apply", quiet):
        parser = load_parser(model, threads)
        given = read_for(parser, model, text, format, encoding, errors, tokenise)
        parsed = parser.predict(given, confidence=confidence)
        write_result(output, parsed.to_bytes())
    seconds = time.perf_counter() - began
    say(f"{len(given):,} sentences, {given.n_words:,} words parsed, {seconds:.1f} s", quiet)


def complete(
    partial: Annotated[
        str,
        typer.Argument(
            metavar="PARTIAL", show_default=False, help="CoNLL-U in which some heads or relations are _ (not known)."
        ),
    ],
    model: Annotated[
        str, typer.Option("--parser", metavar="MODEL", help="A folder by `isogloss parse train`, which fills them in.")
    ],
    output: Output = None,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence/--no-confidence",
            help="Write the probability of what was filled in into MISC: Confidence=0.98.",
        ),
    ] = True,
    threads: Threads = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Fill in the heads and relations that a treebank lacks; those that it has stay, and shape the rest of the tree.

    Sentences without gaps are written as they are, to the byte. Heads that no tree of the parser can have together
    (cycles, two roots, links that cross where the parser's do not) are refused with their line.
    """
    began = time.perf_counter()
    check_output(output, [partial])
    check_dependency_parser(model)  # a wrong model is refused before anything is compiled for it
    with compiling("parse-complete", quiet):
        parser = load_dependency_parser(model, threads)
        given = read_treebank(partial, encoding, errors)
        say_if_strange(parser.reading_, given)
        if confidence and "misc" not in given.source.layout.places:
            raise UsageError(f"{partial}: {given.source.layout.title} has no column for MISC. Add --no-confidence")
        found = parser.complete(given, confidence=confidence)
        write_result(output, found.to_bytes())
    filled, seconds = int((given.heads < 0).sum()), time.perf_counter() - began
    say(f"{filled:,} of {given.n_words:,} heads filled in, in {len(given):,} sentences, {seconds:.1f} s", quiet)


def score(
    found: Found,
    gold: Gold,
    columns: ScoredColumns = None,
    words: ScoredWords = "gold",
    output: Output = None,
    json: Json = False,
    breakdown: Breakdown = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score trees against gold: UAS, LAS and CLAS, and the tags as well, in percent.

    They are those of the CoNLL 2018 shared task: relations without subtypes, punctuation counted except in CLAS.
    Columns that the parser did not write are left out. With `--words surface` they are F over the words of both.
    """
    score_files(
        found, gold, MEASURES, output, encoding, errors, json=json, quiet=quiet, columns=columns, breakdown=breakdown,
        words=words,
    )  # fmt: skip


COMMANDS = {
    "train": train,
    "train-joint": train_joint,
    "restyle": restyle,
    "induce": induce,
    "apply": apply,
    "complete": complete,
    "score": score,
}
"""The commands of this group: ``isogloss parse train`` and so on."""
