"""Options that say what taggers and parsers of a language without annotation learn from."""

from __future__ import annotations

from typing import Any

import typer

from isogloss.errors import UsageError

__all__ = ["bitext_option", "check_bitext", "dictionary_option", "links_option", "source_trees_option"]


def bitext_option(help: str, panel: str | None = None) -> Any:
    """``--bitext SOURCE TARGET``."""
    return typer.Option("--bitext", metavar="SOURCE TARGET", rich_help_panel=panel, help=help)


def check_bitext(bitext: tuple[str, str]) -> None:
    """`UsageError` where an option was taken for one of the two files."""
    swallowed = [name for name in bitext if name.startswith("--")]
    if swallowed:
        raise UsageError(f"--bitext needs two files, SOURCE and TARGET; {swallowed[0]} is an option")


def dictionary_option(help: str, panel: str | None = None) -> Any:
    """``--dictionary DICT``."""
    return typer.Option("--dictionary", metavar="DICT", rich_help_panel=panel, help=help)


def links_option(panel: str | None = None) -> Any:
    """``--links FILE``."""
    help = "Links of the bitext (align --scores); found anew without it."
    return typer.Option("--links", metavar="FILE", rich_help_panel=panel, help=help)


def source_trees_option(help: str, panel: str | None = None) -> Any:
    """``--source-trees FILE``."""
    return typer.Option("--source-trees", metavar="FILE", rich_help_panel=panel, help=help)
