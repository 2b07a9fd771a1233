"""What training an aligner takes in memory, and how memory that is given is shared out.

There are four things: the interpreter with its libraries and kernels; one shard of the text, cell by cell; the table of
word pairs, which has to lie in memory as a whole; and what is known of the pairs between two iterations, which may lie
in files.
"""

from __future__ import annotations

__all__ = ["room_on_shelf"]

_ON_SHELF = 4  # a quarter of what is given is for what may as well lie in files


def room_on_shelf(memory: int) -> int:
    """Bytes that words and evidence may have in memory, if the process may have `memory`."""
    return max(0, memory // _ON_SHELF)
