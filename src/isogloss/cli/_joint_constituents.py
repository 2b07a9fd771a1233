"""`isogloss joint train-constituents`, and what the other commands of the group do with trees of constituents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._bilingual import refuse_idle
from isogloss.cli._common import Encoding, Errors, Json, Quiet, Resume, Threads, compiling, progress_for
from isogloss.cli._constituents import read_trees
from isogloss.cli._memory import say_if_strange
from isogloss.cli._models import load_aligner, load_constituency_parser
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder
from isogloss.errors import UsageError
from isogloss.tasks.joint.options import JointConstituentOptions

if TYPE_CHECKING:
    from isogloss.data.constituent_pairs import ConstituentPairs

__all__ = ["read_constituent_pairs", "train_constituents"]

LEARNING = "Learning"
SEPARATE = "Separate models"
FORMS = "in brackets, or a dependency treebank (.conllu), whose subtrees are taken"


@with_options(
    JointConstituentOptions,
    "coupling", "grain", "blocks", "nulls", "unlinked", "objective", "order", "tags", "passes", "folds",
    "prune_brackets", "prune_links", "prune_bispans", "min_count", "l2", "iterations", "sweeps", "tolerance",
    "threshold", "seed",
    panel=LEARNING,
)  # fmt: skip
def train_constituents(
    source: Annotated[
        str, typer.Argument(metavar="SRC", show_default=False, help=f"Trees of the source side, {FORMS}.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TGT", show_default=False, help="The same sentences in the target language.")
    ],
    save: SaveFolder,
    links: Annotated[
        str | None,
        typer.Argument(
            metavar="[LINKS]", show_default=False,
            help="Links between words, a line a pair (0-0 1-2). Without them, links are summed over.",
        ),
    ] = None,
    source_parser: Annotated[
        str | None,
        typer.Option(
            "--source-parser", metavar="MODEL", rich_help_panel=SEPARATE,
            help="A parser by `isogloss constituency train` of other trees; otherwise one learns from SRC.",
        ),
    ] = None,
    target_parser: Annotated[
        str | None,
        typer.Option("--target-parser", metavar="MODEL", rich_help_panel=SEPARATE, help="The same of the target side."),
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
    """Learn how constituents of two languages and the links between their words agree.

    Parsers of both sides and an aligner are learnt as well, unless they are given; `isogloss joint apply` then finds
    trees and links together.
    """
    training = Training(save, source, target, links, quiet=quiet)
    JointConstituentOptions(**options).check_params()
    if "unlinked" in options and links is None:
        raise UsageError("--unlinked is about links that are known. Leave it out, or give LINKS")
    if source_parser is not None and target_parser is not None:
        refuse_idle(options, ("order", "tags", "passes", "seed"), "both parsers are given")
        if aligner is not None:
            refuse_idle(options, ("folds",), "both parsers and the aligner are given")
    with compiling("joint-train-constituents", quiet, "60 s"):
        from isogloss.data.rows import counted
        from isogloss.tasks.joint import JointConstituentAligner

        given: dict[str, Any] = {}
        pairs = read_constituent_pairs(source, target, links, encoding, errors)
        for name, path, side in (
            ("source_parser", source_parser, pairs.source),
            ("target_parser", target_parser, pairs.target),
        ):
            if path is not None:
                given[name] = load_constituency_parser(path, threads)
                say_if_strange(given[name].reading_, side.text())
        if aligner is not None:
            given["aligner"] = load_aligner(aligner, threads)
        model = JointConstituentAligner(**options, threads=threads)
        model.fit(pairs, progress_for(quiet), checkpoint=training.checkpoint, resume=resume, **given)
    told = {"pairs": len(pairs), "features": model.n_features_, "trace": model.trace_}
    line = f"{counted(len(pairs), 'pair')}, {counted(model.n_features_, 'weight')} of agreement"
    training.keep(model, line, json=told if json else None, checkpoints=())


def read_constituent_pairs(
    source: str, target: str, links: str | None, encoding: str, errors: str, *, empty_lines: bool = False
) -> ConstituentPairs:
    """Trees of both sides and, if there is a file of them, links."""
    from isogloss.data.constituent_pairs import ConstituentPairs
    from isogloss.data.formats import read_links

    trees = [read_trees(path, "auto", encoding, errors, empty_lines=empty_lines) for path in (source, target)]
    pairs = ConstituentPairs(trees[0], trees[1])
    if links is None:
        return pairs
    return ConstituentPairs(trees[0], trees[1], read_links(links, bitext=pairs.bitext(), encoding=encoding))
