"""`isogloss constituency`: learn constituents from bracketed trees, parse new text, and score trees."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

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
from isogloss.cli._constituents import KINDS, read_trees, read_two, score_lines
from isogloss.cli._memory import say_if_strange
from isogloss.cli._models import header_of, load_constituency_parser
from isogloss.cli._options import with_options
from isogloss.cli._training import Training, passes_line, passes_of
from isogloss.cli._treebanks import SaveFolder, standard_input_once
from isogloss.errors import UsageError
from isogloss.tasks.parse.constituency.options import ConstituencyOptions

if TYPE_CHECKING:
    from isogloss.data.constituents import Constituents
    from isogloss.tasks.parse.constituency import ConstituencyParser

__all__ = ["COMMANDS", "apply", "score", "train"]

LEARNING = "Learning"
SHORT = 40
"""Words, up to which sentences are scored a second time, as has been the custom."""

TreesFile = Annotated[
    str,
    typer.Argument(
        metavar="TREES",
        show_default=False,
        help="Bracketed trees (Penn), NEGRA export, discbracket; or CoNLL-U, whose subtrees become constituents.",
    ),
]
DevTrees = Annotated[
    str | None,
    typer.Option("--dev", metavar="DEV", help="Other trees: the iteration that is best on them is kept."),
]
TreesFormat = Annotated[
    str,
    choice("auto", *KINDS, option="--format", panel=READING, help="What trees are in; the name or the text says it."),
]


@with_options(
    ConstituencyOptions, "trainer", "decoder", "threshold", "prune", "iterations", "rate", "l2", "batch", "min_count",
    "min_word", "cycles", "grammars", "share", "seed", panel=LEARNING, first=("model", "order", "tags"),
)  # fmt: skip
def train(
    trees: TreesFile,
    save: SaveFolder,
    dev: DevTrees = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    format: TreesFormat = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn the constituents of a treebank, and tags with them.

    Nothing but the trees is needed. Function tags and traces are left aside, and discontinuous trees made continuous.
    `isogloss constituency apply` then parses new text.
    """
    training = Training(save, trees, dev, quiet=quiet)
    told = ConstituencyOptions(**options)
    with compiling(f"constituency-train-{told.model}-{told.tags}-{told.trainer}-{told.order}", quiet, "90 s"):
        from isogloss.tasks.parse.constituency import ConstituencyParser

        parser = ConstituencyParser(threads=threads, **options)
        text = read_trees(trees, format, encoding, errors)
        held_out = None if dev is None else read_trees(dev, format, encoding, errors)
        parser.fit(text, held_out, progress_for(quiet), checkpoint=training.checkpoint, resume=resume)
    training.keep(parser, _described(parser, text, dev), json=_summary(parser, text) if json else None)


def _described(parser: ConstituencyParser, text: Constituents, dev: str | None) -> str:
    from isogloss.data.rows import counted

    line = f"{len(parser.labels_):,} labels, "
    if parser.model != "span":
        line += f"{counted(len(parser.n_states_), 'grammar')} with {sum(parser.n_states_):,} states, "
    if parser.model != "grammar":
        line += f"{parser.n_features_:,} features, "
    return f"{line}from {len(text):,} trees, {text.stripped().n_words:,} words{passes_line(parser, 'F1', dev)}"


def _summary(parser: ConstituencyParser, text: Constituents) -> dict[str, Any]:
    return {
        "trees": len(text),
        "words": text.stripped().n_words,
        "labels": len(parser.labels_),
        "features": parser.n_features_,
        "states": list(parser.n_states_),
        **passes_of(parser),
    }


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss constituency train`.")
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", show_default=False, help="A tokenised sentence a line; or trees, of which words count."
        ),
    ],
    output: Output = None,
    confidence: Annotated[
        str | None,
        typer.Option(
            "--confidence", metavar="FILE",
            help="Write the probability of each bracket to FILE as well: sentence, first and last word (both from 1), "
            "label and probability, with tabs between them.",
        ),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    tokenise: Tokenise = None,
    format: Annotated[
        str,
        choice(
            "auto", "text", *KINDS, option="--format", panel=READING,
            help="Plain text, or what trees are in; trees are known by their names.",
        ),
    ] = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:  # fmt: skip
    """Parse text with a saved parser: a tree a line, and an empty line for an empty line.

    Round brackets that are words are written -LRB- and -RRB-.
    """
    began = time.perf_counter()
    check_output(output, [text])
    check_output(confidence, [text])
    if confidence is not None and confidence == (output or "-"):
        raise UsageError(f"--confidence {confidence}: trees go there already. Give it a file of its own")
    header_of(model, "constituency")  # a wrong model is refused before anything is compiled for it
    with compiling("constituency-apply", quiet):
        from isogloss.cli._constituents import confidence_table, read_for
        from isogloss.data.bitext import Text

        parser = load_constituency_parser(model, threads)
        given = read_for(parser, model, text, format, encoding, errors, tokenise)
        say_if_strange(parser.reading_, given if isinstance(given, Text) else given.text())
        parsed = parser.predict(given, confidence=confidence is not None)
        write_result(output, parsed.to_bytes("line"))
        if confidence is not None:
            write_result(confidence, confidence_table(parsed))
    seconds = time.perf_counter() - began
    say(f"{len(parsed):,} sentences, {parsed.n_words:,} words parsed, {seconds:.1f} s", quiet)


def score(
    found: Annotated[str, typer.Argument(metavar="OUT", show_default=False, help="Trees that were found.")],
    gold: Annotated[str, typer.Argument(metavar="GOLD", show_default=False, help="The right trees of the same words.")],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="FILE", help="Trees of a second system: is the difference more than chance?"),
    ] = None,
    output: Output = None,
    json: Json = False,
    breakdown: Annotated[
        bool, typer.Option("--breakdown", help="Where the errors are: by label, by width and by length.")
    ] = False,
    quiet: Quiet = False,
    format: TreesFormat = "auto",
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score trees against gold by EVALB's rules: precision, recall and F1 of labelled brackets, in percent.

    Traces, punctuation, function tags and the outermost bracket do not count, and ADVP is PRT (COLLINS.prm). `exact`
    are sentences with all brackets right, `tags` words with the right tag. Sentences of up to 40 words are scored
    again.
    """
    check_output(output, [found, gold, against])
    standard_input_once(found, gold, against)
    with compiling("constituency-score", quiet, "10 s"):
        from isogloss.metrics.brackets import breakdown_brackets, compare_brackets, score_brackets

        ours, right = read_two(found, gold, format, encoding, errors)
        whole = score_brackets(ours, right)
        told = {**whole.as_dict(), "short": score_brackets(ours, right, longest=SHORT).as_dict()}
        if against is not None:
            theirs, _ = read_two(against, gold, format, encoding, errors)
            told["against"] = compare_brackets(ours, theirs, right).as_dict()
        if breakdown:
            told["breakdown"] = {by: breakdown_brackets(ours, right, by) for by in ("label", "width", "length")}
    if json:
        write_json(told, output)
        return
    write_result(output, "\n".join([*score_lines(told, whole.signature), ""]))


COMMANDS = {"train": train, "apply": apply, "score": score}
"""The commands of this group: ``isogloss constituency train`` and so on."""
