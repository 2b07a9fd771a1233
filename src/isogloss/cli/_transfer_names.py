"""`isogloss transfer names`: a tagger of names for a language without annotation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from isogloss.cli._common import Encoding, Errors, Json, Quiet, Threads, Tokenise, compiling, progress_for
from isogloss.cli._evidence import bitext_option, check_bitext, links_option
from isogloss.cli._models import load_aligner
from isogloss.cli._multiview import Reading, load_model, read_pairs
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder
from isogloss.errors import UsageError
from isogloss.tasks.transfer.names_options import ProjectedNamesOptions

__all__ = ["names"]


@with_options(
    ProjectedNamesOptions, "method", "strength", "faint", "threshold", "iterations", "l2", "min_count", panel="Learning"
)
def names(
    bitext: Annotated[tuple[str, str], bitext_option("Two texts, line by line translations, tokenised.")],
    source_model: Annotated[
        str,
        typer.Option(
            "--source-model", metavar="MODEL", show_default=False,
            help="What finds names in SOURCE, by `isogloss extract train`.",
        ),
    ],
    save: SaveFolder,
    links: Annotated[str | None, links_option()] = None,
    aligner: Annotated[
        str | None,
        typer.Option(
            "--aligner", metavar="MODEL",
            help="An aligner by `isogloss align --save`, of more text; otherwise one learns from both texts.",
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    tokenise: Tokenise = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Learn to find names in the target language, where nothing is annotated, from those of the source.

    `isogloss extract apply` then finds them in new text.
    """
    check_bitext(bitext)
    if links is not None and aligner is not None:
        raise UsageError("--links and --aligner exclude each other; give one of them")
    training = Training(save, *bitext, links, quiet=quiet)
    ProjectedNamesOptions(**options).check_params()
    with compiling("transfer-names", quiet, "60 s"):
        from isogloss.data.formats import read_links
        from isogloss.data.rows import counted
        from isogloss.tasks.transfer.names import project_names

        model = load_model("entities", source_model, threads)
        how = Reading("entities", tokenise, encoding, errors)
        pairs = read_pairs(bitext, (model, None), (source_model, ""), how).bitext()
        given: dict[str, Any] = {} if links is None else {"links": read_links(links, bitext=pairs, encoding=encoding)}
        if aligner is not None:
            given["aligner"] = load_aligner(aligner, threads)
        made = project_names(pairs, model, progress=progress_for(quiet), threads=threads, **given, **options)
    line = (
        f"{len(made.types_)} types of names ({', '.join(made.types_)}), {made.n_features_:,} attributes, from "
        f"{counted(len(pairs), 'pair')}"
    )
    told = {"pairs": len(pairs), "types": list(made.types_), "features": made.n_features_, "trace": made.trace_}
    training.keep(made, line, json=told if json else None, checkpoints=())
