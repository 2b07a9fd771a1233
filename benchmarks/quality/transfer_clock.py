"""Time and memory of `isogloss transfer train` from text to parser, by the number of pairs.

python -m benchmarks.quality.transfer_clock                 rows that are missing: 10,000, 20,000 and 40,000 pairs
python -m benchmarks.quality.transfer_clock --pairs 5000    another number
python -m benchmarks.quality.transfer_clock --again         replace rows that are there
python -m benchmarks.quality.transfer_clock --table         run nothing: fill the table of its page

English to German, the first lines of Europarl, the English Web Treebank, one thread, everything as it comes. Kernels
are compiled before, by a run on a hundred pairs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import corpora, rows
from benchmarks.clock import measure
from benchmarks.quality import transfer
from benchmarks.quality.parsing.texts import command_line
from isogloss import __version__
from isogloss.data.bitext import Bitext

PAIRS = (10_000, 20_000, 40_000)
WARM = 100
COLUMNS = (
    "date", "machine", "version", "commit", "command", "pairs", "words", "threads", "seconds", "cpu_seconds", "peak_mb",
)  # fmt: skip
KEY = ("pairs", "threads")
PAGE = transfer.PAGE


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("transfer_clock.csv"), COLUMNS, KEY)


def run(folder: Path, pairs: int) -> dict[str, float]:
    """The clock around the command, on the first lines."""
    texts = corpora.data_folder() / "bitext/europarl-7way"
    bitext = Bitext.read(texts / "en.txt.gz", texts / "de.txt.gz").part(0, pairs)
    sides = [folder / f"{pairs}.{name}" for name in ("en", "de")]
    for side, text in zip(sides, (bitext.source, bitext.target), strict=True):
        side.write_text("".join(" ".join(text[k]) + "\n" for k in range(len(text))), encoding="utf-8")
    treebank = corpora.data_folder() / "treebanks/en-ewt/train.conllu.gz"
    given = ["--bitext", *sides, "--source-treebank", treebank, "--save", folder / f"{pairs}.model"]
    learn = [command_line(), "transfer", "train", *given, "--threads", "1", "-q"]
    return measure(learn, threads=1, log=folder / "log") | {"words": float(bitext.target.n_words)}


def table() -> str:
    """Seconds and memory by the number of pairs."""
    lines = ["| pairs | CPU minutes | peak memory, MB |", "|---|---|---|"]
    used = []
    for row in sorted(results().read(), key=lambda row: int(row["pairs"])):
        minutes = float(row["cpu_seconds"]) / 60
        lines.append(f"| {int(row['pairs']):,} | {minutes:.1f} | {float(row['peak_mb']):,.0f} |")
        used.append(("", row["pairs"], row))
    return "\n".join([*lines, "", rows.commits(used)])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.transfer_clock", description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=0, help="how many; default: 10,000, 20,000 and 40,000")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--table", action="store_true", help="run nothing: fill the table of its page")
    arguments = parser.parse_args(argv)
    if arguments.table:
        rows.fill(PAGE, "clock", table())
        return
    file = results()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), WARM)
        for pairs in (arguments.pairs,) if arguments.pairs else PAIRS:
            if not arguments.again and file.has(pairs=pairs, threads=1):
                continue
            cost = run(Path(folder), pairs)
            words = int(cost.pop("words"))
            row: dict[str, object] = {
                "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
                "command": "isogloss transfer train --bitext EN DE --source-treebank TRAIN --save MODEL --threads 1",
                "pairs": pairs, "words": words, "threads": 1, **cost,
            }  # fmt: skip
            file.put([row])
            print(f"{pairs:,} pairs: {cost['cpu_seconds']:.0f} CPU s, {cost['peak_mb']:.0f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
