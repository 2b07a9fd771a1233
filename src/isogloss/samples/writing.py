"""Files of samples, written whole and never over others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from isogloss.errors import UsageError

__all__ = ["write_whole"]


def write_whole(folder: str | Path, texts: Mapping[str, bytes], *, force: bool = False) -> list[Path]:
    """Write files by their names into a folder, which is made if it is not there; returns where they are.

    A file that is there already and differs is refused, before anything is written, unless `force` is given.
    """
    from isogloss.data.formats import atomic_write
    from isogloss.places import refusal

    whole = {Path(folder) / name: text for name, text in texts.items()}
    for goal, text in whole.items():
        if goal.exists() and not force and goal.read_bytes() != text:
            raise UsageError(f"{goal}: is there already and differs. Write to another folder with -o, or use --force")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise refusal(folder, problem) from None
    for goal, text in whole.items():
        with atomic_write(goal) as file:
            file.write(text)
    return list(whole)
