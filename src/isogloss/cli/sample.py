"""`isogloss sample`: write the files of a bundled corpus, to try the other commands on."""

from __future__ import annotations

from typing import Annotated

import typer

from isogloss.cli._common import Quiet, say

__all__ = ["command"]


def command(
    name: Annotated[
        str, typer.Argument(metavar="NAME", show_default=False, help="Which corpus: en-de, en-tr or reviews.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files go; made if it is not there.")
    ] = ".",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that differ.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write the files of a bundled corpus: both texts, gold links, and trees of the first sentences.

    en-de also has trees of constituents, in brackets (.mrg).

    `reviews` is generated: reviews of books and of things for the kitchen, with labels (.tsv).

    Fifty sentence pairs, written for this project; see docs/samples.md. A file that is there already and differs is not
    overwritten.
    """
    from isogloss import samples

    if name == "reviews":
        written = samples.write_reviews(output, force=force)
    else:
        written = samples.write(name, output, force=force)
    say(f"written: {', '.join(str(path) for path in written)}", quiet)
