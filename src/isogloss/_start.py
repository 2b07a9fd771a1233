"""The first thing that is imported: in the program `isogloss`, Ctrl-C is no traceback from here on.

Until a command runs there is nothing to put away, so the process ends at once, whatever is being imported. Where the
package is a library in somebody else's program, nothing happens.
"""

import os
import sys
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]  # `signal` is slow

__all__ = ["STOPPED", "end_at_once", "is_program"]

STOPPED = 130
_NAMES = ("isogloss", "isogloss.exe", "isogloss-script.py")


def is_program() -> bool:
    """Whether this process is ``isogloss`` or ``python -m isogloss``."""
    first = sys.argv[0] if getattr(sys, "argv", None) else ""
    if first == "-m":  # Python is still looking for the module
        return "isogloss" in sys.orig_argv
    return os.path.basename(first).lower() in _NAMES


def end_at_once(number: int, frame: object) -> None:
    """What Ctrl-C does while the program starts or ends."""
    os.write(2, b"isogloss: stopped by Ctrl-C\n")
    os._exit(STOPPED)


if is_program() and getsignal(SIGINT) is default_int_handler:
    signal(SIGINT, end_at_once)
