"""What training an aligner takes in memory, and how memory that is given is shared out.

There are five things: the interpreter with its libraries and kernels; one shard of the text, cell by cell; the forms of
both sides; the table of word pairs, which has to lie in memory as a whole; and what is known of the pairs between two
iterations, which may lie in files. Measured with `python -m benchmarks.scale`.
"""

from __future__ import annotations

from isogloss.errors import UsageError
from isogloss.tasks.align.corpus import SHARD, Room, Wanted

__all__ = ["FIXED", "PER_ENTRY", "PER_FORM", "room_for", "room_on_shelf"]

FIXED = 190_000_000 + 10 * SHARD
"""Bytes of the interpreter, and of a shard: entries and posteriors of its cells, words, what is written next."""
PER_FORM = 350
"""Bytes of a form: its name, and a dozen numbers."""
PER_ENTRY = 60
"""Bytes of an entry: counts and weights of both directions, and its part of a pair of stems."""
_PER_LISTED = 30
_PER_CLASSES = 160  # of the memory of the table: two fifths, 64 bytes for each pair of stems
_ON_SHELF = 5  # a fifth of what is given is for what may as well lie in files
_SPARE = 25  # a part of what is given that nobody gets: threads have scratch of their own, and files their buffers
_FEWEST = 100_000


def _shared(memory: int) -> int:
    """Bytes that are shared out, if the process may have `memory`."""
    return memory - memory // _SPARE


def room_on_shelf(memory: int) -> int:
    """Bytes that words and evidence may have in memory, if the process may have `memory`."""
    return _shared(memory) // _ON_SHELF


def room_for(memory: int, wanted: Wanted | None = None) -> Room:
    """What the table may take, if the process may have `memory`; entries that are `wanted` stay in any case."""

    def left(n_forms: int) -> int:
        bytes_left = _shared(memory) - FIXED - room_on_shelf(memory) - n_forms * PER_FORM
        if bytes_left < _FEWEST * PER_ENTRY:
            least = int((FIXED + n_forms * PER_FORM + _FEWEST * PER_ENTRY) / ((1 - 1 / _ON_SHELF) * (1 - 1 / _SPARE)))
            raise UsageError(
                f"a text of {n_forms:,} different words takes more than {memory / 1e6:,.0f} MB of memory: allow "
                f"{least / 1e6 + 1:,.0f} MB or more, or keep rare words out of the text"
            )
        return bytes_left

    return Room(
        entries=lambda n_forms: left(n_forms) // PER_ENTRY,
        classes=lambda n_forms: left(n_forms) // _PER_CLASSES,
        listed=min(Room().listed, max(_FEWEST, (_shared(memory) - FIXED - room_on_shelf(memory)) // 3 // _PER_LISTED)),
        wanted=wanted,
    )
