"""Gold for some pairs of a text: the pairs that have it, those that have not, and links by others for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isogloss.cli._common import read_gold
from isogloss.cli._systems import named_files, read_named
from isogloss.errors import BitextError, LinksError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isogloss.data import Bitext, Links

__all__ = ["check_dev", "dev_files", "joined_text", "labelled_pairs", "links_of", "read_dev", "read_text"]


def read_text(source: str, target: str | None, reading: dict[str, Any]) -> Bitext:
    """The text that gold is for: two files, or one with both sides."""
    from isogloss.data.formats import read_bitext

    try:
        return read_bitext(source, target, **reading)
    except BitextError as problem:
        if target is not None:
            raise
        raise BitextError(
            f"{str(problem).partition(' Two files?')[0]} With two names, the first is one file with both sides and the "
            "second is GOLD. Two files? give both, and GOLD: isogloss train-aligner matching news.de news.en gold.txt"
        ) from None


def labelled_pairs(
    text: Bitext, gold: Links, skip_empty: bool
) -> tuple[Bitext, Links, Bitext | None, NDArray[np.int64]]:
    """The pairs with gold and their links, the pairs without, and the numbers of the first."""
    import numpy as np

    done = np.zeros(len(text), np.bool_)
    done[: len(gold)] = np.diff(gold.offsets) > 0 if skip_empty else True
    rows = np.flatnonzero(done)
    rest = None if done.all() else text.take(~done)
    return text.take(rows), gold.take(rows), rest, rows


def joined_text(first: Bitext | None, second: Bitext | None) -> Bitext | None:
    """Two texts as one, where there are two."""
    from isogloss.tasks.align.features.statistics import joined

    return second if first is None else joined(first, second)


def links_of(named: dict[str, str], text: Bitext, rows: NDArray[np.int64]) -> dict[str, Links] | None:
    """What other systems say about chosen pairs of a text."""
    if not named:
        return None
    return {name: found.take(rows) for name, found in read_named(named, text).items()}


def read_dev(
    files: tuple[str, str, str], named: dict[str, str], reading: dict[str, Any]
) -> tuple[tuple[Bitext, Links], dict[str, Links] | None]:
    """The labelled pairs of a text to choose settings on, and other systems' links for them."""
    from isogloss.data.formats import read_bitext

    text = read_bitext(files[0], files[1], **reading)
    gold = read_gold(files[2], text)
    if not len(gold.source):
        raise LinksError(f"{files[2]}: no line has links, so no settings can be chosen on it. Is it the right file?")
    bitext, links, _, rows = labelled_pairs(text, gold, True)
    return (bitext, links), links_of(named, text, rows)


def check_dev(
    files: tuple[str, str | None, str],
    dev: tuple[str, str, str] | None,
    named: dict[str, str],
    dev_named: dict[str, str],
) -> None:
    """That dev is other gold, and has links by the same systems."""
    if dev is None:
        if dev_named:
            raise UsageError("--dev-links: are for the text of --dev, and there is none. Give --dev, or leave them out")
        return
    if dev[2] == files[2]:
        raise UsageError(f"--dev: {dev[2]} is the gold to learn from. Settings are to be chosen on other sentences")
    if missing := [name for name in named if name not in dev_named]:
        asked = " ".join(f"--dev-links {name}=FILE" for name in missing)
        raise UsageError(f"--dev: links by {', '.join(missing)} are features, and are needed for it too: give {asked}")
    if other := [name for name in dev_named if name not in named]:
        raise UsageError(f"--dev-links {other[0]}: --links has no such system. Give its links for both texts, or none")


def dev_files(given: list[str] | None) -> dict[str, str]:
    """Names and files of `--dev-links`."""
    try:
        return named_files(given)
    except UsageError as problem:
        raise UsageError(str(problem).replace("--links", "--dev-links")) from None
