"""`isogloss sample`: write the files of a bundled corpus, to try the other commands on."""

from __future__ import annotations

from typing import Annotated

import typer

from isogloss.cli._common import Quiet, say

__all__ = ["command"]


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", show_default=False, help="Which: en-de, en-tr, parliament, archive, morphemes or reviews."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files go; made if it is not there.")
    ] = ".",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that differ.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write the files of a bundled corpus: both texts, gold links, and trees of the first sentences.

    en-de also has trees of constituents, in brackets (.mrg). parliament has documents in three languages instead, with
    dates, for `isogloss topics`; archive is one file of dated documents with links (.jsonl), for `isogloss threads`;
    morphemes are words, some of them cut into morphemes (.tsv), for `isogloss segment`;
    reviews are generated, of books and of things for the kitchen, with labels (.tsv), for `isogloss adapt`.

    Fifty sentence pairs, written for this project; see docs/samples.md. A file that is there already and differs is not
    overwritten.
    """
    from isogloss import samples

    written = samples.write(name, output, force=force)
    say(f"written: {', '.join(str(path) for path in written)}", quiet)
