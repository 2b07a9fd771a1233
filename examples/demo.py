"""The main job on the bundled sample: align, score, look. `make demo` runs this.

Each step is a command that works the same on your own files.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from isogloss import samples

OUT = Path("out/demo")


def run(*arguments: str) -> None:
    """Show a command and run it."""
    print("$ isogloss " + " ".join(arguments), flush=True)
    subprocess.run([str(Path(sys.executable).with_name("isogloss")), *arguments], check=True)
    print(flush=True)


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name in samples.names():
        source, target, gold = (str(samples.path(name, what)) for what in ("source", "target", "gold"))
        links, page = str(OUT / f"{name}.links"), str(OUT / f"{name}.html")
        run("align", source, target, "-o", links, "--scores")
        run("score", links, gold, "--source-file", source, "--target-file", target)
        run("view", source, target, links, "--gold", gold, "--terminal", "--line", "1")
        run("view", source, target, links, "--gold", gold, "-o", page)
    print(f"Open {OUT / 'en-de.html'} and {OUT / 'en-tr.html'} in a browser to see every pair.")


if __name__ == "__main__":
    main()
