"""Words cut into morphemes: F1 of morphemes and of borders, by how many words were cut by people.

python -m benchmarks.quality.segment                         all rows that are missing
python -m benchmarks.quality.segment --only ces.word         some texts
python -m benchmarks.quality.segment --systems ours;crfsuite some systems
python -m benchmarks.quality.segment --gold 500,all          some numbers of words that were cut
python -m benchmarks.quality.segment --again                 replace rows that are there
python -m benchmarks.quality.segment --paired                which systems differ by more than chance?
python -m benchmarks.quality.segment --new                   scores of test words that are not in the training list
python -m benchmarks.quality.segment --speed                 seconds and memory of learning from 100,000 words
python -m benchmarks.quality.segment --table                 run nothing: write the tables of docs/segment.md

SIGMORPHON 2022. Czech words and sentences: `train` to learn from, settings chosen on `dev`, `test.gold` to score, once.
English sentences likewise. English words: of the lines of `eng.word.dev` every second is learnt from, of the others
every second was for settings, and the rest is scored. All words of `train`, uncut, are the text of every system;
words that were cut are drawn from it. CRFSUITE_PYTHON names a Python that has python-crfsuite; without it, its rows are
left out. It sees the letters that our segmenter sees around each border, as strings, and labels each letter as the
beginning, middle or end of a piece, or as a piece. Morphemes that are spelt otherwise are beyond it. MORFESSOR_PYTHON
names a Python that has Morfessor 2.0.6, which learns from the different words of the text in lower case.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import rows
from benchmarks.clock import measure
from isogloss import Segmentation, __version__, compare_segmentations, score_segmentation

PLACE = Path("out/segment")
PAGE = Path(__file__).parents[2] / "docs" / "segment.md"
PEER = Path(__file__).with_name("entities_peer.py")
MORFESSOR = Path(__file__).with_name("segment_peer.py")
PAPER = (
    "--no-leave-out", "--base-power", "1", "--frequencies", "tokens", "--shortest-stem", "1", "--longest-affix", "12",
)  # fmt: skip
SYSTEMS: dict[str, tuple[str, ...]] = {
    "ours": (),
    "ours-without-text": (),
    "text": (),
    "text-up": ("--model", "up"),
    "text-hmmp-basic": ("--model", "hmmp-basic"),
    "text-hmmp": ("--model", "hmmp"),
    "text-paper-up": ("--model", "up", *PAPER[:5]),
    "text-paper-hmmp-basic": ("--model", "hmmp-basic", *PAPER),
    "text-paper-hmmp": ("--model", "hmmp", *PAPER),
    "text-paper-full": ("--model", "full", *PAPER),
    "text-morfessor": (),
    "crfsuite": ("0", "0.1", "100"),
}
"""Options of `isogloss segment train`; of python-crfsuite, c1, c2 and the most iterations of L-BFGS. Those that begin
with text learn from text alone; "without-text" has the words that were cut as its text."""
PENALTIES = ("1.3", "1.4", "1.5", "1.6", "1.7")
CHOICES: dict[str, tuple[str, ...]] = {
    **{f"text-paper-{model}": PENALTIES for model in ("up", "hmmp-basic", "hmmp", "full")},
    "text-morfessor": ("1", "0.3", "0.1", "0.03"),
}
"""Length penalties and Morfessor's corpus weights that are tried; the one with the best F1 of morphemes on dev counts.
In the paper it is F1 of borders; where morphemes are as short as in Czech, words cut after nearly every letter have the
best. All other systems keep to their defaults."""
TITLES = {
    "ours": "ours", "ours-without-text": "ours, without other text", "text": "text alone", "text-up": "text alone, up",
    "text-hmmp-basic": "text alone, hmmp-basic", "text-hmmp": "text alone, hmmp", "crfsuite": "python-crfsuite",
    **{f"text-paper-{model}": f"as in the paper, {model}" for model in ("up", "hmmp-basic", "hmmp", "full")},
    "text-morfessor": "Morfessor 2.0.6",
}  # fmt: skip
TEXTS = ("ces.word", "eng.word", "ces.sentence", "eng.sentence")
GOLD = ("0", "500", "2000", "all")
MEASURES = (
    "morpheme_f1", "low", "high", "morpheme_precision", "morpheme_recall", "boundary_f1", "boundary_precision",
    "boundary_recall", "emma_f1", "words_right",
)  # fmt: skip
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "system", "gold", "seed", "words", "cut", "test",
    "dev_f1", *MEASURES, "train_cpu", "train_seconds", "train_mb", "apply_cpu", "words_per_cpu", "apply_mb",
)  # fmt: skip
CLOCK = {"cpu": "cpu_seconds", "seconds": "seconds", "mb": "peak_mb"}
SPEED = (
    "date", "machine", "version", "commit", "command", "words", "cut", "threads", "train_cpu", "train_seconds",
    "train_mb", "apply_cpu", "apply_seconds", "apply_mb",
)  # fmt: skip
NEW = ("date", "commit", "data", "system", "gold", "test", "new", "morpheme_f1", "boundary_f1", "words_right")
PAIRED = ("date", "commit", "data", "gold", "first", "second", "delta", "low", "high", "p")


def _read(name: str, part: str) -> Segmentation:
    """A part of a text: train, dev or test."""
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "segmentation/sigmorphon2022"
    if name == "eng.word":
        whole = Segmentation.read(folder / "eng.word.dev.tsv.gz")
        number = np.arange(len(whole))
        return whole.take(number % 2 == 0 if part == "train" else number % 4 == (1 if part == "dev" else 3))
    kind = "test.gold" if part == "test" else part
    return Segmentation.read(folder / f"{name}.{kind}.tsv.gz")


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("segment.csv"), COLUMNS, ("data", "system", "gold", "seed"))


def makes_sense(system: str, gold: str) -> bool:
    """Whether a system learns from so many words that were cut, and would not be the same as another."""
    if system.endswith("without-text") and gold == "all":  # all text has been cut
        return False
    return system.startswith("text") == (gold == "0")


def _files(name: str, gold: str, seed: int, place: Path) -> int:
    """Write what is learnt from and tried on; how many words were cut."""
    train = _read(name, "train")
    some = train
    if gold not in ("0", "all"):
        order = np.random.default_rng(seed).permutation(len(train))
        some = train.take(np.sort(order[: int(gold)]))
    (place / "text.tsv").write_bytes(train.to_bytes())
    (place / "gold.tsv").write_bytes(some.to_bytes())
    for part in ("dev", "test"):
        (place / f"{part}.tsv").write_bytes(_read(name, part).to_bytes())
    return 0 if gold == "0" else some.n_words


def _learn(system: str, gold: str, place: Path, choice: str = "") -> dict[str, float]:
    if system == "text-morfessor":
        _letters(Segmentation.read(place / "text.tsv"), place / "train.txt")
        python = _named("MORFESSOR_PYTHON", "Morfessor")
        peer: list[str | Path] = [python, MORFESSOR, "train", place / "train.txt", place / "model", choice]
        return measure(peer, log=place / "train.log")
    if system == "crfsuite":
        _attributes(Segmentation.read(place / "gold.tsv").surface(), place / "train.attributes")
        return measure([_python(), PEER, "train", place / "train.attributes", place / "model", *SYSTEMS[system]])
    text = place / ("gold.tsv" if system.endswith("without-text") else "text.tsv")
    given: list[str | Path] = [] if gold == "0" else ["--gold", place / "gold.tsv"]
    train: list[str | Path] = [sys.executable, "-m", "isogloss", "segment", "train", text, *given]
    train += ["--save", place / "model"]
    chosen = ["--length-penalty", choice] if choice else []
    return measure([*train, "--threads", "1", *SYSTEMS[system], *chosen], log=place / "train.log")


def _apply(system: str, place: Path, part: str) -> dict[str, float]:
    out = place / f"{part}.{system}.tsv"
    if system == "text-morfessor":
        given = Segmentation.read(place / f"{part}.tsv")
        _letters(given, place / "words.txt")
        python = _named("MORFESSOR_PYTHON", "Morfessor")
        done = measure([python, MORFESSOR, "apply", place / "words.txt", place / "model", place / "cut.txt"])
        lines = (place / "cut.txt").read_text(encoding="utf-8").splitlines()
        cut = dict(zip(given.text.vocabulary, map(str.split, lines), strict=True))
        out.write_bytes(Segmentation.at(given.text, [_as_written(w, cut[w]) for w, _ in given.words()]).to_bytes())
        return done
    if system != "crfsuite":
        apply: list[str | Path] = [sys.executable, "-m", "isogloss", "segment", "apply", place / "model"]
        apply += [place / f"{part}.tsv"]
        apply += ["-o", out]
        return measure([*apply, "--threads", "1"], log=place / "apply.log")
    given = Segmentation.read(place / f"{part}.tsv")
    _attributes(given.surface(), place / "attributes")
    done = measure([_python(), PEER, "apply", place / "model", place / "attributes", place / "labels.txt"])
    labels = iter((place / "labels.txt").read_text(encoding="utf-8").split("\n\n"))
    out.write_bytes(
        Segmentation.at(given.text, [_cut(word, next(labels).split()) for word, _ in given.words()]).to_bytes()
    )
    return done


def _cut(word: str, labels: Sequence[str]) -> tuple[str, ...]:
    from isogloss.data.graphemes import graphemes

    pieces: list[str] = []
    for letter, label in zip(graphemes(word), labels, strict=True):
        if label in "BS" or not pieces:
            pieces.append("")
        pieces[-1] += letter
    return tuple(pieces)


def speed(words: int = 100_000) -> list[dict[str, object]]:
    """Learning from so many words, of all texts, and cutting them; with 500 of them cut by people, or with none."""
    place = PLACE / "speed"
    place.mkdir(parents=True, exist_ok=True)
    every = [word for name in TEXTS for part in ("train", "dev", "test") for word, _ in _read(name, part).words()]
    different = list(dict.fromkeys(every))[:words]
    (place / "text.txt").write_text("".join(f"{word}\n" for word in different), encoding="utf-8")
    given = _read("ces.word", "train")
    order = np.random.default_rng(0).permutation(len(given))
    (place / "gold.tsv").write_bytes(given.take(np.sort(order[:500])).to_bytes())
    made: list[dict[str, object]] = []
    for cut in (0, 500):
        for threads in (1, 2):
            gold: list[str | Path] = ["--gold", place / "gold.tsv"] if cut else []
            start: list[str | Path] = [sys.executable, "-m", "isogloss", "segment"]
            end: list[str | Path] = ["--threads", str(threads)]
            learnt = measure([*start, "train", place / "text.txt", *gold, "--save", place / "model", *end])
            applied = measure([*start, "apply", place / "model", place / "text.txt", "-o", place / "out.tsv", *end])
            told = f"isogloss segment train TEXT{' --gold FEW' if cut else ''} --threads {threads}"
            made.append({
                "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
                "command": told, "words": len(different), "cut": cut, "threads": threads,
                **{f"train_{measured}": learnt[name] for measured, name in CLOCK.items()},
                **{f"apply_{measured}": applied[name] for measured, name in CLOCK.items()},
            })  # fmt: skip
            print(f"{told}: {learnt['seconds']:.0f} s, {learnt['peak_mb']:.0f} MB", flush=True)
    return made


def timings() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("segment-speed.csv"), SPEED, ("words", "cut", "threads"))


def speeds() -> str:
    """Seconds and memory of learning from many words."""
    used = rows.Used()
    heads = ("words", "words cut", "threads", "train, s", "CPU s", "MB", "cut all, s", "MB")
    lines = [f"| {' | '.join(heads)} |", "|" + "---:|" * len(heads)]
    for row in timings().read():
        measured = ("train_seconds", "train_cpu", "train_mb", "apply_seconds", "apply_mb")
        cells = [f"{int(row['words']):,}", row["cut"], row["threads"], *(f"{float(row[one]):,.0f}" for one in measured)]
        lines.append(f"| {' | '.join(cells)} |")
        used.add(f"{row['cut']} cut, threads: {row['threads']}", row["words"], row)
    return used.below("\n".join(lines))


def _python() -> str:
    return _named("CRFSUITE_PYTHON", "python-crfsuite")


def _named(variable: str, has: str) -> str:
    """The Python that a variable names."""
    found = os.environ.get(variable, "")
    if not Path(found).is_file():
        raise FileNotFoundError(f"set {variable} to a Python that has {has}")
    return found


def _letters(cut: Segmentation, out: Path) -> None:
    """The different words of a text in lower case, one a line, letter by letter the same as the words."""
    from isogloss.tasks.segment.types import letters_of

    used = np.unique(cut.text.ids.flat).tolist()
    if len(used) < len(cut.text.vocabulary):
        raise ValueError(f"{cut.name}: a part of a text has words of other parts in its vocabulary")
    lines = ("".join(letters_of(word)) for word in cut.text.vocabulary)
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _as_written(word: str, pieces: Sequence[str]) -> tuple[str, ...]:
    """Pieces of a word in lower case as those of the word itself; the whole where letters have changed in length."""
    if sum(map(len, pieces)) != len(word):
        return (word,)
    ends = np.cumsum([0, *map(len, pieces)]).tolist()
    return tuple(word[a:b] for a, b in pairwise(ends))


def _attributes(cut: Segmentation, out: Path) -> None:
    """What our segmenter sees of the letters around each border, as a file for the peer."""
    from isogloss.data.graphemes import graphemes
    from isogloss.features import Templates
    from isogloss.tasks.segment.cuts import LETTERS
    from isogloss.tasks.segment.seen import TextKnowledge, seen_words

    each = cut.words()
    words = [word for word, _ in each]
    seen = seen_words(words, TextKnowledge.of(words, 1))
    keys = Templates(LETTERS, kind="border").keys(seen.positions())
    at = 0
    with open(out, "w", encoding="utf-8") as file:
        for _, pieces in each:
            for piece in pieces:
                n = len(graphemes(piece))
                for label in ["S"] if n == 1 else ["B", *["M"] * (n - 2), "E"]:
                    file.write("\t".join([label, *(format(key, "x") for key in keys[at].tolist() if key)]) + "\n")
                    at += 1
            file.write("\n")


def run(name: str, system: str, gold: str, seed: int = 0) -> dict[str, Any]:
    """One row."""
    place = PLACE / f"{name}.{system}.{gold}.{seed}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    cut = _files(name, gold, seed, place)
    choice, tried = "", None
    if system in CHOICES:
        scores = {}
        for tried in CHOICES[system]:
            learnt = _learn(system, gold, place, tried)
            _apply(system, place, "dev")
            found = Segmentation.read(place / f"dev.{system}.tsv")
            scores[tried] = score_segmentation(found, _read(name, "dev"), bootstrap=0).morpheme_f1
        choice = max(scores, key=scores.__getitem__)
    if tried is None or choice != tried:
        learnt = _learn(system, gold, place, choice)
        _apply(system, place, "dev")
    applied = _apply(system, place, "test")
    shown = {part: Segmentation.read(place / f"{part}.{system}.tsv") for part in ("dev", "test")}
    right = {part: _read(name, part) for part in shown}
    dev = score_segmentation(shown["dev"], right["dev"], bootstrap=0).morpheme_f1
    score = score_segmentation(shown["test"], right["test"])
    low, high = score.intervals["morpheme_f1"]
    versions = {"crfsuite": "0.9.12", "text-morfessor": "2.0.6"}
    given = "" if gold == "0" else " --gold FEW"
    told = f"isogloss segment train TEXT{given}"
    if system in versions:
        told = "python-crfsuite lbfgs c1 c2 iterations" if system == "crfsuite" else "morfessor corpusweight"
    elif choice:
        choice = f"--length-penalty {choice}"
    measures = {measured: score[measured] for measured in MEASURES if measured not in ("low", "high")}
    return {
        "date": rows.today(), "machine": rows.machine(), "version": versions.get(system, __version__),
        "commit": rows.commit(), "command": " ".join([told, *SYSTEMS[system], *choice.split()]), "data": name,
        "system": system, "gold": gold, "seed": seed, "words": Segmentation.read(place / "text.tsv").n_words,
        "cut": cut, "test": right["test"].n_words, "dev_f1": dev, **measures, "low": low, "high": high,
        "train_cpu": learnt["cpu_seconds"], "train_seconds": learnt["seconds"], "train_mb": learnt["peak_mb"],
        "apply_cpu": applied["cpu_seconds"], "words_per_cpu": right["test"].n_words / applied["cpu_seconds"],
        "apply_mb": applied["peak_mb"],
    }  # fmt: skip


def compare(name: str, gold: str) -> list[dict[str, object]]:
    """Every two systems that learnt from as many words and whose morphemes are still there."""
    right = _read(name, "test")
    places = {system: PLACE / f"{name}.{system}.{gold}.0" / f"test.{system}.tsv" for system in SYSTEMS}
    found = {system: Segmentation.read(path) for system, path in places.items() if path.exists()}
    made = []
    for first, second in combinations(found, 2):
        told = compare_segmentations(found[first], found[second], right)
        made.append({
            "date": rows.today(), "commit": rows.commit(), "data": name, "gold": gold, "first": first,
            "second": second, "delta": told.delta, "low": told.interval[0], "high": told.interval[1], "p": told.p_value,
        })  # fmt: skip
    return made


def compare_new(name: str) -> list[dict[str, object]]:
    """Scores of the test words that training has not, of all systems whose morphemes are still there."""
    known, right = {word for word, _ in _read(name, "train").words()}, _read(name, "test")
    new = np.array([all(word not in known for word, _ in right[at : at + 1].words()) for at in range(len(right))])
    made: list[dict[str, object]] = []
    for gold in GOLD:
        for system in SYSTEMS:
            path = PLACE / f"{name}.{system}.{gold}.0" / f"test.{system}.tsv"
            if path.exists():
                score = score_segmentation(Segmentation.read(path).take(new), right.take(new), bootstrap=0)
                told = {measured: score[measured] for measured in ("morpheme_f1", "boundary_f1", "words_right")}
                made.append({
                    "date": rows.today(), "commit": rows.commit(), "data": name, "system": system, "gold": gold,
                    "test": len(right), "new": int(new.sum()), **told,
                })  # fmt: skip
    return made


def new_words() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("segment-new.csv"), NEW, ("data", "system", "gold"))


def new() -> str:
    """F1 of test words that are not in training."""
    used = rows.Used()
    lines = ["| text | new words | gold | system | morphemes F1 | borders F1 |", "|---|---:|---:|---|---:|---:|"]
    for row in new_words().read():
        cells = [f"{float(row[measured]):.1f}" for measured in ("morpheme_f1", "boundary_f1")]
        line = [row["data"], f"{int(row['new']):,}", row["gold"], TITLES[row["system"]], *cells]
        lines.append(f"| {' | '.join(line)} |")
        used.add(f"{TITLES[row['system']]}, {row['gold']}", row["data"], row)
    return used.below("\n".join(lines))


def table() -> str:
    """F1 by how many words were cut."""
    used = rows.Used()
    heads = (
        "text",
        "words cut",
        "system",
        "morphemes F1",
        "precision",
        "recall",
        "borders F1",
        "words right",
        "train, CPU s",
    )
    lines = [f"| {' | '.join(heads)} |", "|---|---:|---|" + "---:|" * (len(heads) - 3)]
    for name in TEXTS:
        for gold in GOLD:
            for system in SYSTEMS:
                for row in results().find(data=name, system=system, gold=gold, seed=0):
                    spread = f" ({float(row['low']):.1f} to {float(row['high']):.1f})"
                    cells = [f"{float(row['morpheme_f1']):.2f}{spread}"]
                    names = ("morpheme_precision", "morpheme_recall", "boundary_f1", "words_right")
                    cells += [f"{float(row[measured]):.1f}" for measured in names]
                    cells.append(f"{float(row['train_cpu']):.0f}")
                    cut = f"{int(row['cut']):,}"
                    lines.append(f"| {name} | {cut} | {TITLES[system]} | {' | '.join(cells)} |")
                    used.add(f"{TITLES[system]}, {gold}", name, row)
    return used.below("\n".join(lines))


def comparisons() -> str:
    """What differs by more than chance."""
    used = rows.Used()
    lines = ["| text | words cut | better? | than | difference | p |", "|---|---:|---|---|---:|---:|"]
    for row in paired().read():
        p = "< 0.0002" if float(row["p"]) < 0.0002 else f"{float(row['p']):.4f}"
        spread = f"{float(row['delta']):+.2f} ({float(row['low']):+.2f} to {float(row['high']):+.2f})"
        names = f"{TITLES[row['first']]} | {TITLES[row['second']]}"
        lines.append(f"| {row['data']} | {row['gold']} | {names} | {spread} | {p} |")
        used.add(f"{row['gold']}, {names.replace(' | ', ' and ')}", row["data"], row)
    return used.below("\n".join(lines))


def paired() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("segment-paired.csv"), PAIRED, ("data", "gold", "first", "second"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(TEXTS))
    parser.add_argument("--systems", default=";".join(SYSTEMS))
    parser.add_argument("--gold", default=",".join(GOLD))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--paired", action="store_true")
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        rows.fill(PAGE, "segment", table())
        rows.fill(PAGE, "segment-paired", comparisons())
        rows.fill(PAGE, "segment-new", new())
        rows.fill(PAGE, "segment-speed", speeds())
        return
    if asked.new:
        for name in asked.only.split(","):
            new_words().put(compare_new(name))
        return
    if asked.speed:
        timings().put(speed())
        return
    if asked.paired:
        for name in asked.only.split(","):
            for gold in asked.gold.split(","):
                paired().put(compare(name, gold))
        return
    for gold in asked.gold.split(","):
        for name in asked.only.split(","):
            for system in asked.systems.split(";"):
                if not makes_sense(system, gold):
                    continue
                if not asked.again and results().has(data=name, system=system, gold=gold, seed=0):
                    continue
                try:
                    made = run(name, system, gold)
                except FileNotFoundError as problem:
                    print(f"{name} {system}: left out: {problem}", file=sys.stderr)
                    continue
                results().put([made])
                print(f"{name} {system} {gold}: {made['morpheme_f1']:.2f}, dev {made['dev_f1']:.2f}", flush=True)


if __name__ == "__main__":
    main()
