"""Parse with a kept model of ours in another way than it learnt: other constraint, rounds of messages, or decoder.

python decode.py MODEL TEST OUT rounds=1,decoder=map THREADS
"""

from __future__ import annotations

import sys

from isogloss.data import Treebank
from isogloss.tasks.parse import DependencyParser


def ways(decode: str) -> dict[str, str | int]:
    """Options of `DependencyParser.with_inference`.

    Examples
    --------
    >>> ways("rounds=1,decoder=map")
    {'rounds': 1, 'decoder': 'map'}
    """
    pairs = (part.partition("=")[::2] for part in decode.split(","))
    return {name: int(value) if name == "rounds" else value for name, value in pairs}


def main(model: str, test: str, out: str, decode: str, threads: str) -> None:
    parser = DependencyParser.load(model)
    parser.threads = int(threads)
    chosen: dict[str, object] = dict(ways(decode))
    parser.with_inference(**chosen).predict(Treebank.read(test)).write(out)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
