"""`isogloss split`: the words of trees instead of the words of the text."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Normalise,
    Output,
    Quiet,
    Tokenise,
    check_output,
    compiling,
    say,
    warn,
    write_result,
)
from isogloss.cli._contractions import ContractionsOption, contractions_for
from isogloss.cli._treebanks import read_either, standard_input_once
from isogloss.errors import UsageError

__all__ = ["command"]


def command(
    text: Annotated[
        str, typer.Argument(metavar="IN", show_default=False, help="A sentence a line, words between spaces.")
    ],
    output: Output = None,
    contractions: ContractionsOption = "auto",
    quiet: Quiet = False,
    tokenise: Tokenise = None,
    normalise: Normalise = None,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Split contractions as treebanks of Universal Dependencies do, and write the words as CoNLL-U.

    Words that were split are written as multiword tokens (`1-2 della`), so that the text can be found again; tags and
    trees are empty. Taggers and parsers then see the words that they have learnt from.
    """
    standard_input_once(text, contractions)
    check_output(output, [text, contractions])
    learns = contractions.removesuffix(".gz").removesuffix(".xz").removesuffix(".zst").endswith(".conllu")
    with compiling("split", quiet, "10 s") if learns else nullcontext():
        from isogloss.data.bitext import Text
        from isogloss.data.contractions import split_text

        given = read_either(text, "auto", encoding, errors, tokenise or "space", normalise)
        if not isinstance(given, Text):
            raise UsageError(f"{text} is a treebank and says itself what a word is. Give plain text, a sentence a line")
        trees = split_text(given, contractions_for(contractions, given, quiet))
        empty = int((trees.lengths == 0).sum())
        if empty:
            lines = "1 empty line has" if empty == 1 else f"{empty:,} empty lines have"
            warn(f"{given.name}: {lines} no place in CoNLL-U and {'is' if empty == 1 else 'are'} left out")
        write_result(output, trees.to_bytes())
    say(
        f"{len(trees):,} sentences, {given.n_words:,} words, of which {len(trees.ranges.forms):,} were split: "
        f"{trees.n_words:,} words of trees",
        quiet,
    )
