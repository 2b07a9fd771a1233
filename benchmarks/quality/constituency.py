"""Constituency parsers on trees that they have not seen: labelled F1 by EVALB's rules, time and memory.

python -m benchmarks.quality.constituency                        all rows that are missing
python -m benchmarks.quality.constituency --only wsj,genia       some texts
python -m benchmarks.quality.constituency --systems order-2      some systems
python -m benchmarks.quality.constituency --again                replace rows that are there
python -m benchmarks.quality.constituency --parse                parse anew with the models of an earlier run
python -m benchmarks.quality.constituency --paired               are our systems better than others by more than chance?
python -m benchmarks.quality.constituency --table                run nothing: write the table of docs/constituency.md

The WSJ sample: the first 3,300 trees (or 1,000, or 300) to learn from, the last 400 to test; settings were chosen on
trees 3,301 to 3,514. GENIA: `future_use` to learn from, `test` to test. Of Universal Dependencies, subtrees are
constituents.
BERKELEY_JAR names BerkeleyParser-1.7.jar (github.com/slavpetrov/berkeleyparser), which needs java; without it, its rows
are left out.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import rows
from benchmarks.clock import measure
from isogloss import __version__
from isogloss.data import Constituents, Treebank
from isogloss.data.constituents import unescaped
from isogloss.metrics import compare_brackets, score_brackets

PLACE = Path("out/constituency")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "system", "seed", "trees", "test", "f1", "low", "high",
    "precision", "recall", "exact", "tags", "f1_40", "f1_15", "train_cpu", "train_seconds", "train_mb", "apply_cpu",
    "sentences_per_cpu", "apply_mb",
)  # fmt: skip
PAIRED = ("date", "commit", "data", "first", "second", "delta", "low", "high", "p")
SEEDS = (1, 2, 3)
PAGE = Path(__file__).parents[2] / "docs" / "constituency.md"


@dataclass(frozen=True)
class Split:
    """Trees to learn from, trees to test on, and perhaps words without trees."""

    train: Constituents
    test: Constituents
    words: Constituents | None = None


def data_folder() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"))


def _wsj() -> Constituents:
    return Constituents.read(data_folder() / "constituency/wsj-sample/trees.mrg.gz")


def _genia(part: str) -> Constituents:
    return Constituents.read(data_folder() / f"constituency/genia/{part}.mrg.gz")


def _ud(name: str) -> Split:
    parts = (Treebank.read(data_folder() / f"treebanks/{name}/{part}.conllu.gz") for part in ("train", "test"))
    train, test = (Constituents.from_dependencies(part) for part in parts)
    return Split(train, test)


TEXTS = {
    "wsj": lambda: Split(_wsj()[:3300], _wsj()[-400:]),
    "wsj-1000": lambda: Split(_wsj()[:1000], _wsj()[-400:]),
    "wsj-300": lambda: Split(_wsj()[:300], _wsj()[-400:]),
    "genia": lambda: Split(_genia("future_use"), _genia("test")),
    "wsj-genia": lambda: Split(_wsj()[:3300], _genia("test")),
    "wsj-genia-self": lambda: Split(_wsj()[:3300], _genia("test"), _genia("future_use")),
    "el": lambda: _ud("el-gdt"),
    "hu": lambda: _ud("hu-szeged"),
    "got": lambda: _ud("got-proiel"),
}
SYSTEMS: dict[str, tuple[str, ...]] = {
    "order-2": (),
    "order-1": ("--order", "1"),
    "perceptron": ("--trainer", "perceptron"),
    "grammar": ("--model", "grammar"),
    "one-grammar": ("--model", "grammar", "--grammars", "1"),
    "both": ("--model", "both"),
    "berkeley": (),
}
TITLES = {
    "order-2": "order 2",
    "order-1": "order 1",
    "perceptron": "perceptron",
    "grammar": "four grammars",
    "one-grammar": "one grammar",
    "both": "order 2 and four grammars",
    "berkeley": "Berkeley 1.7",
}


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("constituency.csv"), COLUMNS, ("data", "system", "seed"))


def _lines(trees: Constituents) -> bytes:
    """The words, as trees have them, a sentence a line."""
    return "".join(" ".join(trees.words(k)) + "\n" for k in range(len(trees))).encode()


def _rooted(trees: Constituents) -> bytes:
    """Trees as Berkeley's reader wants them: an empty bracket around each."""
    from isogloss.data.constituent_forms import without_root

    bare = without_root(trees)
    return "".join(f"( {' '.join([str(bare[k])])} )\n" for k in range(len(bare))).encode()


def _isogloss(split: Split, place: Path, options: tuple[str, ...], seed: int) -> tuple[dict[str, float], ...]:
    program = [sys.executable, "-m", "isogloss", "constituency"]
    model, train = place / "model", place / "train.mrg"
    if split.words is not None:
        train = _self_trained(split, place, options, seed)
    learnt = measure(
        [*program, "train", train, "--save", model, "--threads", "1", "--seed", str(seed), *options],
        log=place / "train.log",
    )
    return learnt, _applied(place)


def _applied(place: Path, threads: int = 1) -> dict[str, float]:
    program = [sys.executable, "-m", "isogloss", "constituency", "apply", place / "model", place / "test.txt"]
    return measure([*program, "-o", place / "found.mrg", "--threads", str(threads)], log=place / "apply.log")


def _self_trained(split: Split, place: Path, options: tuple[str, ...], seed: int) -> Path:
    """Trees to learn from, and those that a parser of them finds for other words."""
    program = [sys.executable, "-m", "isogloss", "constituency"]
    first, found = place / "first", place / "own.mrg"
    assert split.words is not None
    (place / "words.txt").write_bytes(_lines(split.words.stripped()))
    options = (*options, "--threads", "1", "--seed", str(seed))
    measure([*program, "train", place / "train.mrg", "--save", first, *options], log=place / "first.log")
    measure([*program, "apply", first, place / "words.txt", "-o", found, "--threads", "1"], log=place / "own.log")
    both = place / "both.mrg"
    both.write_bytes((place / "train.mrg").read_bytes() + found.read_bytes())
    return both


def _berkeley(split: Split, place: Path, options: tuple[str, ...], seed: int) -> tuple[dict[str, float], ...]:
    jar = os.environ.get("BERKELEY_JAR", "")
    if not Path(jar).is_file() or shutil.which("java") is None:
        raise FileNotFoundError("set BERKELEY_JAR to BerkeleyParser-1.7.jar, and put java on the PATH")
    trainer = ["java", "-Xmx3g", "-XX:+UseSerialGC", "-cp", jar, "edu.berkeley.nlp.PCFGLA.GrammarTrainer"]
    (place / "train.ptb").write_bytes(_rooted(split.train))
    given = ["-path", place / "train.ptb", "-treebank", "SINGLEFILE", "-SMcycles", "4", "-randSeed", str(seed)]
    learnt = measure([*trainer, *given, "-out", place / "grammar"], log=place / "train.log", stdout=place / "train.out")
    program = ["java", "-Xmx3g", "-XX:+UseSerialGC", "-jar", jar, "-gr", place / "grammar"]
    applied = measure(
        [*program, "-inputFile", place / "test.txt", "-outputFile", place / "found.mrg"], log=place / "apply.log"
    )
    return learnt, applied


def run(name: str, system: str, seed: int) -> dict[str, object]:
    """One row."""
    split = TEXTS[name]()
    place = PLACE / name / f"{system}-{seed}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    test = split.test.stripped()
    (place / "train.mrg").write_bytes(split.train.to_bytes("line"))
    (place / "test.txt").write_bytes(_lines(test))
    (place / "gold.mrg").write_bytes(test.to_bytes("line"))
    work = _berkeley if system == "berkeley" else _isogloss
    learnt, applied = work(split, place, SYSTEMS[system], seed)
    training = {"train_cpu": learnt["cpu_seconds"], "train_seconds": learnt["seconds"], "train_mb": learnt["peak_mb"]}
    return _row(name, system, seed, len(split.train), test, applied) | training


def parse(row: rows.Row) -> dict[str, object] | None:
    """A row with the same model, if it is still there: what it finds, and how fast; training is as it was."""
    name, system, seed = row["data"], row["system"], int(row["seed"])
    place = PLACE / name / f"{system}-{seed}"
    if system == "berkeley" or not (place / "model").exists():
        return None
    test = TEXTS[name]().test.stripped()
    (place / "test.txt").write_bytes(_lines(test))
    return dict(row) | _row(name, system, seed, int(row["trees"]), test, _applied(place))


def _row(
    name: str, system: str, seed: int, trees: int, test: Constituents, applied: dict[str, float]
) -> dict[str, object]:  # fmt: skip
    """What was found, beside the gold trees."""
    place = PLACE / name / f"{system}-{seed}"
    found = _read(place / "found.mrg", test)
    score = score_brackets(found, test)
    low, high = score.interval
    return {
        "date": rows.today(), "machine": rows.machine(), "version": "1.7" if system == "berkeley" else __version__,
        "commit": rows.commit(), "command": " ".join(["isogloss constituency train", *SYSTEMS[system]]).strip()
        if system != "berkeley" else f"GrammarTrainer -SMcycles 4 -randSeed {seed}",
        "data": name, "system": system, "seed": seed, "trees": trees, "test": len(test), "f1": score.f1,
        "low": low, "high": high, "precision": score.precision, "recall": score.recall, "exact": score.exact,
        "tags": score.tags, "f1_40": score_brackets(found, test, longest=40, bootstrap=0).f1,
        "f1_15": score_brackets(found, test, longest=15, bootstrap=0).f1, "apply_cpu": applied["cpu_seconds"],
        "sentences_per_cpu": len(test) / applied["cpu_seconds"], "apply_mb": applied["peak_mb"],
    }  # fmt: skip


def _read(path: Path, gold: Constituents) -> Constituents:
    """Trees that were found; where a parser gave up, or lost a word, a sentence without any."""
    lines = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found = []
    for number, line in enumerate(lines.decode().splitlines()):
        one = Constituents.of([line])
        words = [unescaped(word) for word in one.words(0)] if len(one) else []
        found.append(line if words == [unescaped(word) for word in gold.words(number)] else "")
    return Constituents.of(found, str(path))


def compare(name: str) -> list[dict[str, object]]:
    """Each of our systems beside every other whose trees are still there."""
    folders = sorted(path for path in (PLACE / name).iterdir() if (path / "found.mrg").exists())
    gold = Constituents.read(folders[0] / "gold.mrg")
    found = {folder.name: _read(folder / "found.mrg", gold) for folder in folders}
    made = []
    for first in (one for one in found if not one.startswith("berkeley")):
        for second in (one for one in found if one.startswith("berkeley") or one > first):
            told = compare_brackets(found[first], found[second], gold)
            made.append({
                "date": rows.today(), "commit": rows.commit(), "data": name, "first": first, "second": second,
                "delta": told.delta, "low": told.interval[0], "high": told.interval[1], "p": told.p_value,
            })  # fmt: skip
    return made


def table() -> str:
    """F1 of every system on every text."""
    found = results().read()
    used = rows.Used()
    heads = ("trees", "system", "F1", "up to 40 words", "exact", "tags", "training, CPU s", "sentences a CPU s")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in TEXTS:
        for system in SYSTEMS:
            same = [row for row in found if row["data"] == name and row["system"] == system]
            if not same:
                continue

            def mean(column: str, same: list[rows.Row] = same) -> float:
                return sum(float(row[column]) for row in same) / len(same)

            spread = (
                f" ({float(same[0]['low']):.1f} to {float(same[0]['high']):.1f})"
                if len(same) == 1
                else (f" (of {len(same)} seeds: " + ", ".join(f"{float(row['f1']):.1f}" for row in same) + ")")
            )
            cells = [f"{mean('f1'):.1f}{spread}", *(f"{mean(key):.1f}" for key in ("f1_40", "exact", "tags"))]
            cells += [f"{mean('train_cpu'):.0f}", f"{mean('sentences_per_cpu'):.0f}"]
            lines.append(f"| {name} | {TITLES[system]} | " + " | ".join(cells) + " |")
            for row in same:
                used.add(TITLES[system], name, row)
    return used.below("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(TEXTS))
    parser.add_argument("--systems", default="order-2,order-1,grammar,one-grammar,both,berkeley")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--parse", action="store_true")
    parser.add_argument("--paired", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        rows.fill(PAGE, "constituency", table())
        return
    if asked.paired:
        paired = rows.Rows(Path(__file__).with_name("constituency-paired.csv"), PAIRED, ("data", "first", "second"))
        for name in asked.only.split(","):
            if (PLACE / name / "order-2-0" / "found.mrg").exists():
                paired.put(compare(name))
        return
    if asked.parse:
        some = [row for row in results().read() if row["data"] in asked.only.split(",")]
        for row in (row for row in some if row["system"] in asked.systems.split(",")):
            if (made := parse(row)) is not None:
                results().put([made])
                print(f"{row['data']} {row['system']}: F1 {made['f1']:.2f}, {made['sentences_per_cpu']:.0f} a CPU s")
        return
    for name in asked.only.split(","):
        for system in asked.systems.split(","):
            for seed in SEEDS if system == "berkeley" else (0,):
                if not asked.again and results().has(data=name, system=system, seed=seed):
                    continue
                try:
                    made = run(name, system, seed)
                except FileNotFoundError as problem:
                    print(f"{name} {system}: left out: {problem}", file=sys.stderr)
                    continue
                results().put([made])
                print(f"{name} {system} {seed}: F1 {made['f1']:.2f}", flush=True)


if __name__ == "__main__":
    main()
