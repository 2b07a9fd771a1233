"""``--contractions``: which words are split, and what is said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from isogloss.cli._frame import say

if TYPE_CHECKING:
    from isogloss.data import Text
    from isogloss.data.contractions import Contractions

__all__ = ["ContractionsOption", "contractions_for"]

ContractionsOption = Annotated[
    str,
    typer.Option(
        "--contractions",
        metavar="auto|none|LANG|FILE",
        help="Split words such as `della` into those of trees (`di la`): by the list of the language that the text "
        "seems to be in, not at all, by the list of LANG (`it`), or by FILE: lines `form TAB parts`, or CoNLL-U with "
        "multiword tokens.",
    ),
]


def contractions_for(option: str, text: Text, quiet: bool) -> Contractions | None:
    """What the option asks for, for this text, said on stderr."""
    from isogloss.data.contractions import LANGUAGES, Contractions

    found = Contractions.choose(option, text)
    if option == "auto" and found is None:
        say(
            f"{text.name}: in none of the languages whose contractions we know ({', '.join(LANGUAGES)}), or too short "
            "to say; no word is split. --contractions LANG or FILE says otherwise",
            quiet,
        )
    elif option == "auto" and found is not None:
        say(f"{text.name}: contractions are split as those of {found.language}; --contractions none keeps them", quiet)
    return found
