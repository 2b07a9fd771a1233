"""Grammars induced from gold tags, by every learner: how many heads are right that nobody has shown them.

python -m benchmarks.quality.induction                      all rows that are missing
python -m benchmarks.quality.induction --only wsj,el        some texts
python -m benchmarks.quality.induction --systems em,pr-s    some systems
python -m benchmarks.quality.induction --again              replace rows that are there
python -m benchmarks.quality.induction --table              run nothing: write the table of docs/parse-induce.md
python -m benchmarks.quality.induction --speed              time of one pass over 7,000 sentences of 10 words

Learnt and scored on the same short sentences, as is usual where no tree is looked at. Punctuation is left out, of
learning and of scores. Settings were chosen on English (the WSJ sample and en-ewt/dev).
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import rows
from isogloss import __version__
from isogloss.data.treebank import Treebank
from isogloss.tasks.parse.induction import GrammarInducer
from isogloss.tasks.parse.induction.material import marks_of, without_marks

TEXTS = {
    "wsj": (("wsj-sample/wsj",), "xpos", 10), "en-dev": (("en-ewt/dev",), "upos", 10),
    "en": (("en-ewt/test",), "upos", 10), "bg": (("bg-btb/dev", "bg-btb/test"), "upos", 10),
    "de": (("de-gsd/dev", "de-gsd/test"), "upos", 10), "es": (("es-gsd/dev", "es-gsd/test"), "upos", 15),
    "el": (("el-gdt/train",), "upos", 10), "hu": (("hu-szeged/train", "hu-szeged/dev"), "upos", 10),
    "got": (("got-proiel/dev",), "upos", 10), "cs": (("pud/cs",), "upos", 15), "ru": (("pud/ru",), "upos", 15),
    "hi": (("pud/hi",), "upos", 15), "zh": (("pud/zh",), "upos", 15), "id": (("pud/id",), "upos", 15),
    "fi": (("pud/fi",), "upos", 15),
}  # fmt: skip
"""Text: files, column of tags, and the longest sentences that are learnt from and scored."""
CHOSEN = ("wsj", "en-dev")
"""Texts that settings were chosen on; not among the means."""
SYSTEMS = {
    "em": {"model": "dmv", "learner": "em"},
    "dd": {"model": "dmv", "learner": "dirichlet"},
    "pr-s": {"model": "dmv", "learner": "sparse"},
    "pr-as": {"model": "dmv", "learner": "sparse", "symmetric": False},
    "x-em": {"model": "extended", "learner": "em"},
    "x-dd": {"model": "extended", "learner": "dirichlet"},
    "x-pr-s": {"model": "extended", "learner": "sparse"},
    "x-pr-as": {"model": "extended", "learner": "sparse", "symmetric": False},
    "rules": {"model": "dmv", "learner": "em", "rules": "ud"},
    "x-rules": {"model": "extended", "learner": "em", "rules": "ud"},
}
TITLES = {
    "left": "every word on the next", "right": "every word on the one before", "em": "DMV EM", "dd": "DMV DD 0.25",
    "pr-s": "DMV PR-S", "pr-as": "DMV PR-AS", "x-em": "E-DMV (3,3) EM", "x-dd": "E-DMV DD 0.1",
    "x-pr-s": "E-DMV PR-S", "x-pr-as": "E-DMV PR-AS", "rules": "DMV, rules", "x-rules": "E-DMV, rules",
}  # fmt: skip
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "system", "options", "longest", "sentences", "words",
    "accuracy", "undirected", "pairs", "gold_pairs", "steps", "unconverged", "cpu_seconds",
)  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "parse-induce.md"


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("induction.csv"), COLUMNS, ("data", "system"))


def read(name: str) -> Treebank:
    """The short sentences of a text, marks not counted."""
    files, _, longest = TEXTS[name]
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "treebanks"
    whole = b"".join(gzip.decompress((folder / f"{file}.conllu.gz").read_bytes()) for file in files)
    trees = Treebank.from_bytes(whole, name)
    lengths = np.add.reduceat(~marks_of(trees), trees.offsets[:-1])
    return trees.take(np.flatnonzero((lengths > 0) & (lengths <= longest)))


class Judge:
    """Heads of words against gold, punctuation marks left out of both."""

    def __init__(self, trees: Treebank, column: str) -> None:
        self.trees, self.words = trees, np.flatnonzero(~marks_of(trees))
        self.gold = without_marks(trees, trees.heads)
        self.begin = np.repeat(trees.offsets[:-1], trees.lengths)
        ids, vocabulary = trees.columns[column]
        self.tags, self.root = ids, len(vocabulary)

    def above(self, heads: np.ndarray) -> np.ndarray:
        """The head of each word as a number among all, −1 for the root."""
        return np.where(heads > 0, self.begin + heads - 1, -1)[self.words]

    def pairs(self, heads: np.ndarray) -> int:
        """How many pairs of tags (head, child) there are."""
        above = self.above(heads)
        head = np.where(above >= 0, self.tags[np.maximum(above, 0)], self.root)
        return len(np.unique(np.stack([head, self.tags[self.words]]), axis=1).T)

    def scores(self, heads: np.ndarray) -> dict[str, object]:
        found, gold = self.above(heads), self.above(self.gold)
        whole = np.where(self.gold > 0, self.begin + self.gold - 1, -1)
        turned = (found >= 0) & (whole[np.maximum(found, 0)] == self.words)
        return {
            "sentences": len(self.trees), "words": len(self.words),
            "accuracy": f"{100 * np.mean(found == gold):.2f}",
            "undirected": f"{100 * np.mean((found == gold) | turned):.2f}",
            "pairs": self.pairs(heads), "gold_pairs": self.pairs(self.gold),
        }  # fmt: skip

    def chain(self, step: int) -> np.ndarray:
        """Every word on the next one, or on the one before."""
        heads = np.zeros(self.trees.n_words, np.int64)
        sentence = np.searchsorted(self.trees.offsets, self.words, side="right") - 1
        for s in np.unique(sentence):
            own = self.words[sentence == s]
            heads[own] = np.append(0, own[:-1] - self.trees.offsets[s] + 1) if step < 0 else 0
            if step > 0:
                heads[own] = np.append(own[1:] - self.trees.offsets[s] + 1, 0)
        return heads


def measure(name: str, system: str) -> dict[str, object]:
    """One row."""
    trees = read(name)
    _, column, longest = TEXTS[name]
    judge = Judge(trees, column)
    began, steps, unconverged, options = time.process_time(), "", "", ""
    if system in ("left", "right"):
        heads = judge.chain(1 if system == "left" else -1)
    else:
        inducer = GrammarInducer(column=column, longest=longest, **SYSTEMS[system]).fit(trees)
        heads = inducer.predict(trees).heads
        steps, unconverged = str(len(inducer.trace_)), str(inducer.unconverged_)
        options = " ".join(f"{key}={value}" for key, value in inducer.options_.items())
    return {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": f"python -m benchmarks.quality.induction --only {name} --systems {system}", "data": name,
        "system": system, "options": options, "longest": longest, "steps": steps, "unconverged": unconverged,
        "cpu_seconds": f"{time.process_time() - began:.2f}", **judge.scores(heads),
    }  # fmt: skip


def table() -> str:
    """A line for each system, a column for each text, and means over the texts that nothing was chosen on."""
    known = {(row["data"], row["system"]): row for row in results().read()}
    used = rows.Used()
    texts = [name for name in TEXTS if (name, "em") in known]
    others = [name for name in texts if name not in CHOSEN]
    lines = [f"| | {' | '.join(texts)} | mean | pairs of tags |", "|---" * (len(texts) + 3) + "|"]
    for system, title in TITLES.items():
        cells = []
        for name in texts:
            row = known.get((name, system))
            cells.append("–" if row is None else f"{float(row['accuracy']):.1f}")
            if row is not None:
                used.add(title, name, row)
        found = [known[name, system] for name in others if (name, system) in known]
        if not found:
            continue
        means = ["–", "–"]
        if len(found) == len(others):
            means = [f"{np.mean([float(row[key]) for row in found]):.1f}" for key in ("accuracy", "pairs")]
        lines.append(f"| {title} | {' | '.join(cells)} | {' | '.join(means)} |")
    gold = np.mean([float(known[name, "em"]["gold_pairs"]) for name in others]) if others else 0.0
    lines.append(f"| gold |{' |' * len(texts)} | {gold:.1f} |")
    return used.below("\n".join(lines))


def speed() -> None:
    """Sums and posteriors of 7,000 sentences of 10 words, on one thread and on all."""
    from isogloss.engine.threads import using_threads
    from isogloss.tasks.parse.induction.grammar import TagText
    from isogloss.tasks.parse.induction.learning import GrammarModel, starting_events

    rng = np.random.default_rng(0)
    text = TagText(rng.integers(0, 17, 70_000), np.arange(0, 70_001, 10), 17)
    for classes in ((2, 1), (3, 3), (4, 4)):
        model = GrammarModel(text, classes)
        params = model.first(starting_events(text, classes, "harmonic"))
        for threads in (1, None):
            with using_threads(threads):
                model.distributions(params, [text]).marginals()
                began, spent = time.perf_counter(), time.process_time()
                model.distributions(params, [text]).marginals()
                wall, cpu = time.perf_counter() - began, time.process_time() - spent
            print(f"V_s {classes[0]}, V_c {classes[1]}, threads {threads or 'all'}: {wall:.3f} s, {cpu:.3f} CPU s")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.induction", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(TEXTS), help="texts, with commas between")
    parser.add_argument("--systems", default=",".join(TITLES), help="systems, with commas between")
    parser.add_argument("--again", action="store_true", help="replace rows that are there")
    parser.add_argument("--outdated", action="store_true", help="replace rows that another commit has made")
    parser.add_argument("--table", action="store_true", help="write the table of docs/parse-induce.md and run nothing")
    parser.add_argument("--speed", action="store_true", help="time one pass over 7,000 sentences, and run nothing else")
    given = parser.parse_args(argv)
    if given.speed:
        speed()
        return 0
    for name in [] if given.table else given.only.split(","):
        for system in given.systems.split(","):
            if "rules" in system and TEXTS[name][1] != "upos":
                continue
            if given.again or not results().is_done(data=name, system=system, outdated=given.outdated):
                results().put([measure(name, system)])
    rows.fill(PAGE, "induction", table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
