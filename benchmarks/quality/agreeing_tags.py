"""What it is worth that the columns of a tagger agree: tags of dev sets, each column by itself and in agreement.

python -m benchmarks.quality.agreeing_tags                 all rows that are missing
python -m benchmarks.quality.agreeing_tags --only hu       some treebanks
python -m benchmarks.quality.agreeing_tags --again         replace rows that are there
python -m benchmarks.quality.agreeing_tags --table         run nothing: write the table of docs/tag.md

One tagger of UPOS and FEATS learns from all training sentences with its usual options, and tags dev twice.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import rows
from isogloss import __version__
from isogloss.data.treebank import Treebank
from isogloss.metrics import score_tags
from isogloss.tasks.tag import Tagger

TREEBANKS = {
    "hu": ("Hungarian Szeged", "hu-szeged"), "el": ("Greek GDT", "el-gdt"), "en": ("English LinES", "en-lines"),
}  # fmt: skip
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "agreeing", "words", "upos", "feats", "both", "new",
    "cpu_seconds",
)  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "tag.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("agreeing_tags.csv"), COLUMNS, ("data", "agreeing"))


def read(name: str, part: str) -> Treebank:
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks" / TREEBANKS[name][1]
    return Treebank.read(folder / f"{part}.conllu.gz")


def pairs(trees: Treebank) -> np.ndarray:
    """object[n_words]: part of speech and features of each word, as one string."""
    tags, feats = (np.array(trees.columns[name].vocabulary.types, object)[trees.columns[name].ids]
                   for name in ("upos", "feats"))  # fmt: skip
    return tags + " " + feats


def measure(name: str) -> list[dict[str, object]]:
    """Two rows: the same tagger without and with agreement."""
    train, dev = read(name, "train"), read(name, "dev")
    tagger, seen = Tagger().fit(train), set(pairs(train))
    found = []
    combinations = tagger._combinations
    for agreeing in (False, True):
        tagger._combinations = combinations if agreeing else None
        tagger.predict(dev)  # kernels are loaded
        began = time.process_time()
        tagged = tagger.predict(dev)
        spent = time.process_time() - began
        own, score = pairs(tagged), score_tags(tagged, dev, ("upos", "feats"), bootstrap=0)
        found.append({
            "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
            "command": f"python -m benchmarks.quality.agreeing_tags --only {name}", "data": name,
            "agreeing": int(agreeing), "words": dev.n_words, "upos": f"{score['upos']:.2f}",
            "feats": f"{score['feats']:.2f}", "both": f"{score.accuracy:.2f}",
            "new": sum(pair not in seen for pair in own.tolist()), "cpu_seconds": f"{spent:.2f}",
        })  # fmt: skip
    return found


def table() -> str:
    """The rows side by side, by itself → in agreement."""
    known = {(row["data"], row["agreeing"]): row for row in results().read()}
    used = rows.Used()
    lines = [
        "| dev set | UPOS | FEATS | both | words with a new combination | CPU seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name, (title, _) in TREEBANKS.items():
        alone, together = known.get((name, "0")), known.get((name, "1"))
        if alone is None or together is None:
            continue
        for row in (alone, together):
            used.add("all", title, row)
        cells = [f"{alone[column]} → {together[column]}" for column in ("upos", "feats", "both", "new", "cpu_seconds")]
        cells[3] += f" of {int(alone['words']):,}"
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return used.below("\n".join(lines))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.agreeing_tags", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(TREEBANKS), help="treebanks, with commas between")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--table", action="store_true", help="write the table of docs/tag.md and run nothing")
    given = parser.parse_args(argv)
    for name in [] if given.table else given.only.split(","):
        if given.again or not results().is_done(data=name, agreeing="1", outdated=given.outdated):
            results().put(measure(name))
    rows.fill(PAGE, "agreement", table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
