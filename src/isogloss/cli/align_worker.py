"""`isogloss align-worker`: do a part of the work of `isogloss align --engine array`."""

from __future__ import annotations

from typing import Annotated

import typer

from isogloss.cli._common import Quiet, Threads, compiling, say
from isogloss.errors import UsageError

__all__ = ["command"]


def command(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", show_default=False, help="The --work-folder of `isogloss align`.")
    ],
    group: Annotated[
        int | None,
        typer.Option("--group", metavar="K", min=0, help="Work on this group of shards in the step at hand, and end."),
    ] = None,
    index: Annotated[
        int | None,
        typer.Option("--index", metavar="I", min=0, help="Be worker I, from 0, of --of N until the run is over."),
    ] = None,
    of: Annotated[int | None, typer.Option("--of", metavar="N", min=1, help="How many workers there are.")] = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Work on shards of a text that `isogloss align --engine array` aligns; the work is found in a folder both see.

    Whatever is there already is not done again, so that a job which was stopped may simply be started again.
    """
    if (group is None) == (index is None):
        raise UsageError("say which part of the work this is: --group K, or --index I --of N")
    if (index is None) != (of is None) or (index is not None and of is not None and index >= of):
        raise UsageError("--index I and --of N go together, and I is below N")
    with compiling("align", quiet):
        from isogloss.engine.threads import using_threads
        from isogloss.engine.workers import WorkFolder, serve, work

        with using_threads(threads):
            if index is not None and of is not None:
                serve(folder, index, of)
                return
            there = WorkFolder(folder)
            current = there.current()
            if "step" not in current:
                say("the run is over" if current.get("finished") else "no step has begun yet", quiet)
                return
            assert group is not None
            if group >= len(there.groups):
                raise UsageError(f"--group {group}: this run has {len(there.groups)} groups, counted from 0")
            work(there, current["step"], group)
            say(f"{current['step']}: group {group} is done", quiet)
