"""`isogloss joint train-bilingual`: a parser of one language that listens to a parser of the other."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from isogloss.cli._common import Encoding, Errors, Json, Quiet, Resume, Threads, compiling, progress_for
from isogloss.cli._memory import say_if_strange
from isogloss.cli._models import load_aligner, load_dependency_parser
from isogloss.cli._options import with_options
from isogloss.cli._training import Training, passes_line, passes_of
from isogloss.cli._treebanks import SaveFolder, read_treebank
from isogloss.errors import UsageError
from isogloss.tasks.joint.options import BilingualOptions

__all__ = ["refuse_idle", "train_bilingual"]

LEARNING = "Learning"
SEPARATE = "Separate models"


def refuse_idle(options: dict[str, Any], names: tuple[str, ...], reason: str) -> None:
    """Refuse options that would say nothing, for a reason."""
    idle = [name for name in names if name in options]
    if idle:
        raise UsageError(f"--{idle[0]} says nothing where {reason}: nothing is learnt by it. Leave it out")


@with_options(
    BilingualOptions,
    "coupling", "source_trees", "weights", "grain", "heads", "prune_links", "rounds", "order", "tags", "folds",
    "passes", "iterations", "rate", "l2", "batch", "min_count", "threshold", "seed",
    panel=LEARNING,
)  # fmt: skip
def train_bilingual(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC", show_default=False,
            help="The source side in CoNLL-U; trees in it are looked at if no --source-parser is given.",
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="TGT", show_default=False, help="The same sentences with trees of the target.")
    ],
    save: SaveFolder,
    dev_source: Annotated[
        str | None,
        typer.Option(
            "--dev-source", metavar="FILE", rich_help_panel=LEARNING,
            help="Other pairs, on which the number of passes is chosen; needs --dev-target.",
        ),
    ] = None,
    dev_target: Annotated[
        str | None, typer.Option("--dev-target", metavar="FILE", rich_help_panel=LEARNING, help="Their target side.")
    ] = None,
    source_parser: Annotated[
        str | None,
        typer.Option(
            "--source-parser", metavar="MODEL", rich_help_panel=SEPARATE,
            help="A parser by `isogloss parse train` that learnt from other trees; otherwise one learns from SRC.",
        ),
    ] = None,
    aligner: Annotated[
        str | None,
        typer.Option(
            "--aligner", metavar="MODEL", rich_help_panel=SEPARATE,
            help="An aligner by `isogloss align --save`, of more text; otherwise one learns from SRC and TGT.",
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Learn a parser of the target language that is helped by one of the source language.

    Some ten to some hundred trees of the target are enough; `isogloss joint apply` then parses pairs of sentences.
    """
    training = Training(save, source, target, dev_source, dev_target, quiet=quiet)
    BilingualOptions(**options).check_params()
    if source_parser is not None:
        refuse_idle(options, ("order", "folds"), "--source-parser is given")
    if (dev_source is None) != (dev_target is None):
        raise UsageError("other pairs have two sides: give both --dev-source and --dev-target, or neither")
    with compiling("joint-train-bilingual", quiet, "60 s"):
        from isogloss.data.rows import counted
        from isogloss.data.tree_pairs import TreePairs
        from isogloss.tasks.joint import BilingualParser

        given: dict[str, Any] = {}
        for name, path, load in (
            ("source_parser", source_parser, load_dependency_parser),
            ("aligner", aligner, load_aligner),
        ):
            if path is not None:
                given[name] = load(path, threads)
        pairs = TreePairs(read_treebank(source, encoding, errors), read_treebank(target, encoding, errors))
        if source_parser is not None:
            say_if_strange(given["source_parser"].reading_, pairs.source)
        dev = None
        if dev_source is not None and dev_target is not None:
            dev = TreePairs(read_treebank(dev_source, encoding, errors), read_treebank(dev_target, encoding, errors))
        parser = BilingualParser(**options, threads=threads)
        parser.fit(pairs, dev, progress_for(quiet), checkpoint=training.checkpoint, resume=resume, **given)
    line = f"{counted(len(pairs), 'pair')}, {counted(parser.n_features_, 'weight')}"
    told = {"pairs": len(pairs), "features": parser.n_features_, **passes_of(parser)}
    line += passes_line(parser, "UAS", dev_target)
    training.keep(parser, line, json=told if json else None, checkpoints=())
