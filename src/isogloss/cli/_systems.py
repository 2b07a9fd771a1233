"""Links by other systems as features: `--links NAME=FILE`, and which of them a model needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._models import header_of
from isogloss.errors import LinksError, UsageError

if TYPE_CHECKING:
    from isogloss.data import Bitext, Links

__all__ = ["NamedLinks", "check_needed", "job_of", "named_files", "needed", "read_named"]

NamedLinks = Annotated[
    list[str] | None,
    typer.Option(
        "--links",
        metavar="NAME=FILE",
        help="Links by another system for this text, as a feature; may be given several times.",
    ),
]


def named_files(given: Iterable[str] | None) -> dict[str, str]:
    """``["eflomal=a.txt", ...]`` as a dictionary."""
    found: dict[str, str] = {}
    for entry in given or ():
        name, mark, path = entry.partition("=")
        if not (name and mark and path):
            raise UsageError(f"--links {entry}: should be a name and a file, as --links eflomal=links.txt")
        if name in found:
            raise UsageError(f"--links {name}: given twice, as {found[name]} and {path}. Give each system its own name")
        found[name] = path
    return found


def needed(aligner: Any) -> tuple[str, ...]:
    """Whose links the aligner has for features."""
    names = getattr(aligner, "links", ())
    return tuple(names) if isinstance(names, list | tuple) else ()


def check_needed(aligner: Any, files: Mapping[str, str], model: str) -> None:
    """`UsageError` unless the links given are those that the model was trained with."""
    wanted = needed(aligner)
    if missing := [name for name in wanted if name not in files]:
        asked = " ".join(f"--links {name}=FILE" for name in missing)
        raise UsageError(
            f"{model}: has links by {', '.join(wanted)} for features, and needs them for this text too: give {asked}"
        )
    if other := [name for name in files if name not in wanted]:
        known = f"with links by {', '.join(wanted)}" if wanted else "without links by others"
        raise UsageError(f"--links {other[0]}: {model} was trained {known}. Leave it out, or train with it")


def read_named(files: Mapping[str, str], bitext: Bitext | None = None) -> dict[str, Links]:
    """The links of each system; those for a text are checked against it."""
    from isogloss.data.formats import read_links

    found = {}
    for name, path in files.items():
        links = read_links(path, bitext=bitext)
        if links.possible is not None and links.possible.any():
            raise LinksError(
                f"{path}: has possible links (ipj), as gold does. As a feature, gold would teach nothing but itself: "
                "give the output of another system"
            )
        found[name] = links
    return found


def job_of(path: str | None) -> str:
    """What kernels a saved model needs, as `compiling` remembers it."""
    if path is None:
        return "align"
    kind = str(header_of(path, "align")["kind"])
    plain = ("align.hmm", "align.model1", "align.model2")
    return f"apply-{kind}" if kind.startswith("align.") and kind not in plain else "align"
