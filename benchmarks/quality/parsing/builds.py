"""Whether two builds of UDPipe learn the same model, to the byte: a faster one may then stand for the other.

PARSING_PEERS=PYTHON python -m benchmarks.quality.parsing.builds OTHER_PYTHON     hu, gold tags, one iteration
python -m benchmarks.quality.parsing.builds OTHER_PYTHON --text el --iterations 10

Prints seconds of CPU and the hash of either model; the status is 1 if they differ.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path

from benchmarks.clock import measure
from benchmarks.quality.parsing.models import DRIVER, peers, udpipe_version
from benchmarks.quality.parsing.texts import GOLD, TEXTS, Given, given


def learnt(python: str, files: Given, iterations: int, place: Path) -> str:
    """The hash of the model that UDPipe of this Python learns."""
    command = [python, DRIVER, "train", files.train, files.dev or "", place, "none", f"iterations={iterations}"]
    cost = measure(command, threads=1, log=place.with_suffix(".log"))
    found = hashlib.sha256(place.read_bytes()).hexdigest()
    print(f"UDPipe {udpipe_version(python)}: {cost['cpu_seconds']:.1f} CPU s, {found}")
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.parsing.builds", description=__doc__.split("\n")[0])
    parser.add_argument("python", help="that has the other build")
    parser.add_argument("--text", default="hu", choices=list(TEXTS), help="default: hu")
    parser.add_argument("--iterations", type=int, default=1)
    arguments = parser.parse_args(argv)
    files = given(arguments.text, GOLD)
    with tempfile.TemporaryDirectory() as folder:
        pythons = (peers(), arguments.python)
        models = {learnt(each, files, arguments.iterations, Path(folder, str(k))) for k, each in enumerate(pythons)}
    print("the same model" if len(models) == 1 else "different models")
    return int(len(models) > 1)


if __name__ == "__main__":
    sys.exit(main())
