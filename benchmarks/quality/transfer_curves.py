"""How many trees a transferred parser is worth: parsers learnt from some gold trees, beside it.

python -m benchmarks.quality.transfer_curves                rows that are missing
python -m benchmarks.quality.transfer_curves --only de,es   some languages
python -m benchmarks.quality.transfer_curves --again        replace rows that are there
python -m benchmarks.quality.transfer_curves --table        run nothing: fill the tables of its page

"supervised": our parser of order 1, learnt from the first N trees of a file, with gold tags (UPOS alone, as
transferred parsers have them), scored on the development files on which the options of transfer were chosen. There is
no train file of the German and Spanish GSD treebanks here, so that trees are of their test files, and there are no
more than these have; French and Italian trees are of ParTUT's train files. "worth" is where the curve, straight
between points by the logarithm of N, reaches the UAS of the transferred parser (`benchmarks.quality.transfer --dev`).

"UDPipe": tagger and parser of UDPipe 1 with their usual settings, learnt from the first hundred of the same trees,
scored on PUD with its own tags, as orientation beside the whole chain without annotation (PARSING_PEERS is a Python
that has ufal.udpipe). There are no such trees for Portuguese.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks import rows
from benchmarks.quality import transfer
from benchmarks.quality.parsing.models import DRIVER, NotHere, peers, udpipe_version
from isogloss import __version__
from isogloss.data.treebank import Treebank
from isogloss.metrics.parsing import score_trees
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.transfer.views import universal

LANGUAGES = tuple(transfer.TREES)
SIZES = (10, 30, 100, 300, 1000, 3000)
FEW = 100
UDPIPE, OURS = "UDPipe", "supervised"
COLUMNS = (
    "date", "machine", "version", "commit", "command", "language", "part", "system", "trees", "words", "uas", "las",
    "upos", "cpu_seconds",
)  # fmt: skip
KEY = ("language", "part", "system", "trees")
PAGE = transfer.PAGE


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("transfer_curves.csv"), COLUMNS, KEY)


def sizes(language: str) -> list[int]:
    """How many trees are learnt from: round numbers, and all there are."""
    every = len(transfer.treebank(transfer.TREES[language]))
    return [*(size for size in SIZES if size < every), every]


def scored(found: list[Treebank], gold: list[Treebank]) -> dict[str, float]:
    words = [one.n_words for one in gold]
    scores = [score_trees(one, other, bootstrap=0) for one, other in zip(found, gold, strict=True)]
    return {name: float(np.average([getattr(s, name) for s in scores], weights=words)) for name in ("uas", "las")}


def supervised(language: str, size: int) -> dict[str, object]:
    """A row of our parser, learnt from some trees with gold tags."""
    trees = universal(transfer.treebank(transfer.TREES[language]).part(0, size))
    gold = [transfer.treebank(name) for name in transfer.DEVELOPMENT[language]]
    began = time.process_time()
    parser = DependencyParser(order=1, projective=True, threads=1).fit(trees)
    seconds = time.process_time() - began
    found = [parser.predict(universal(one)) for one in gold]
    return row(language, "dev", OURS, size, sum(one.n_words for one in gold)) | {
        **scored(found, gold), "upos": 100.0, "cpu_seconds": seconds,
    }  # fmt: skip


def udpipe(language: str) -> dict[str, object]:
    """A row of UDPipe, learnt from few trees, which tags as well as parses."""
    gold = transfer.treebank(f"pud/{language}")
    with tempfile.TemporaryDirectory() as folder:
        train, test, model, out = (Path(folder, name) for name in ("train", "test", "model", "out"))
        transfer.treebank(transfer.TREES[language]).part(0, FEW).write(train, "conllu")
        gold.write(test, "conllu")
        began = time.process_time()
        subprocess.run([peers(), DRIVER, "train", train, "", model, "", ""], check=True, stderr=subprocess.DEVNULL)
        subprocess.run([peers(), DRIVER, "apply", model, test, out, ""], check=True)
        found = Treebank.read(out, "conllu")
    score = score_trees(found, gold, bootstrap=0)
    made = row(language, "test", UDPIPE, FEW, gold.n_words)
    made |= {"uas": score.uas, "las": score.las, "upos": score.upos, "cpu_seconds": time.process_time() - began}
    return made | {"version": udpipe_version(peers())}


def row(language: str, part: str, system: str, trees: int, words: int) -> dict[str, object]:
    return {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": "python -m benchmarks.quality.transfer_curves", "language": language, "part": part,
        "system": system, "trees": trees, "words": words,
    }  # fmt: skip


def worth(points: list[tuple[int, float]], reached: float) -> str:
    """How many trees reach a score, on the straight lines between points by log N.

    Examples
    --------
    >>> worth([(10, 50.0), (100, 70.0)], 60.0), worth([(10, 50.0), (100, 70.0)], 80.0), worth([(10, 50.0)], 40.0)
    ('32', 'more than 100', 'fewer than 10')
    """
    points = sorted(points)
    if reached < points[0][1]:
        return f"fewer than {points[0][0]:,}"
    for (low, below), (high, above) in pairwise(points):
        if below <= reached < above:
            share = (reached - below) / (above - below)
            return f"{np.exp(np.log(low) + share * (np.log(high) - np.log(low))):,.0f}"
    return f"more than {points[-1][0]:,}"


def table() -> str:
    """UAS by language and number of trees, the transferred parser, and what it is worth."""
    found = {tuple(line[name] for name in KEY): line for line in results().read()}
    other = {tuple(line[name] for name in transfer.KEY): line for line in transfer.results().read()}
    names = ("10", "30", "100", "300", "1,000", "all")
    lines = [f"| | {' | '.join(names)} | transferred | is worth | with 100 trees |", "|---" * (len(names) + 4) + "|"]
    used = []
    for language in LANGUAGES:
        own = {int(key[3]): line for key, line in found.items() if key[:3] == (language, "dev", OURS)}
        if not own:
            continue
        every = max(own)
        points = [(size, float(line["uas"])) for size, line in own.items()]
        used += [(str(size), language, line) for size, line in own.items()]
        cells = [_cell(own, size) if size != every else "" for size in (10, 30, 100, 300, 1000)]
        cells.append(f"{float(own[every]['uas']):.1f} ({every:,})")
        for method in ("complete", "complete, 100 trees"):
            line = other.get((language, "dev", method, "given"))
            cells.append("" if line is None else f"{float(line['uas']):.1f}")
            if line is not None:
                used.append((method, language, line))
            if method == "complete":
                cells.append("" if line is None else worth(points, float(line["uas"])))
        lines.append(f"| {language} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits(used)])


def _cell(found: dict[int, rows.Row], size: int) -> str:
    return f"{float(found[size]['uas']):.1f}" if size in found else ""


def orientation() -> str:
    """UDPipe with a hundred trees beside the whole chain, on PUD, both with their own tags."""
    ours = {tuple(line[name] for name in transfer.KEY): line for line in transfer.results().read()}
    theirs = {line["language"]: line for line in results().read() if line["system"] == UDPIPE}
    lines = ["| | UPOS | UAS | LAS | UDPipe, 100 trees: UPOS | UAS | LAS |", "|---" * 7 + "|"]
    used = []
    for language in LANGUAGES:
        pair = (ours.get((language, "test", transfer.MAIN, "predicted")), theirs.get(language))
        if not all(pair):
            continue
        cells = [f"{float(line[name]):.1f}" for line in pair if line for name in ("upos", "uas", "las")]
        used += [(name, language, line) for name, line in zip(("ours", UDPIPE), pair, strict=True) if line]
        lines.append(f"| {language} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.transfer_curves", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="languages, such as de,es; default: all")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--table", action="store_true", help="run nothing: fill the tables of its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "curves", table())
        rows.fill(PAGE, "udpipe", orientation())
        return
    file = results()
    for language in arguments.only.split(",") if arguments.only else LANGUAGES:
        for size in sizes(language):
            same = {"language": language, "part": "dev", "system": OURS, "trees": size}
            if arguments.again or not file.has(**same):
                file.put([supervised(language, size)])
        if arguments.again or not file.has(language=language, part="test", system=UDPIPE, trees=FEW):
            try:
                file.put([udpipe(language)])
            except NotHere as absent:
                print(absent, file=sys.stderr)


if __name__ == "__main__":
    main()
