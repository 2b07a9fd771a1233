"""Morphemes that come from the words of a translation: links between words, and where words are cut.

python -m benchmarks.quality.segment_pairs                        all rows that are missing
python -m benchmarks.quality.segment_pairs --only grc-fi.helfi    some texts
python -m benchmarks.quality.segment_pairs --systems full         some systems
python -m benchmarks.quality.segment_pairs --again                replace rows that are there
python -m benchmarks.quality.segment_pairs --table                run nothing: write tables of docs/segment-bilingual

Links: Greek and Finnish (HELFI). Every system learns from the text of all splits without its gold; settings were chosen
on `dev`, and `test` is scored once. Borders: the New Testament in Czech beside English; of the words of ces.word
(SIGMORPHON 2022, `train` and `dev`, from which nothing is learnt here) those that stand in it are scored, as a list
(types) and wherever they stand (tokens). Bible: all verses in Czech and English, for the clock.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import corpora, rows
from benchmarks.clock import measure
from isogloss import Links, Segmentation, __version__, read_links, score_links, score_segmentation

PLACE = Path("out/segment-pairs")
PAGE = Path(__file__).parents[2] / "docs" / "segment-bilingual.md"
UP = ("--model", "up", "--distortion", "uniform")
SYSTEMS: dict[str, tuple[str, ...]] = {
    "model-1": UP,
    "model-1-cut": UP,
    "whole": ("--length-penalty", "0"),
    "full": (),
    "full-cut": (),
    "words": (),
    "align": (),
}
"""Options of `isogloss segment train`. Those that end in "cut" have a translation that was cut into morphemes before;
"words" learns without a translation, and "align" is `isogloss align`."""
TITLES = {
    "model-1": "Model 1 (Chung and Gildea)", "model-1-cut": "Model 1, source cut as well",
    "whole": "bilingual full, words whole", "full": "bilingual full", "full-cut": "bilingual full, source cut as well",
    "words": "without a translation", "align": "`isogloss align`, words",
}  # fmt: skip
DATA = {
    "grc-fi.helfi": ("model-1", "model-1-cut", "whole", "full", "full-cut", "align"),
    "new-testament.en-cs": ("words", "model-1", "full"),
    "bible.en-cs": ("full",),
}
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Of links between words; the one with the best AER on dev counts. That of `isogloss segment links` is 0.8."""
MATTHEW = 23_213
"""The first verse of the New Testament."""
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "system", "pairs", "threshold", "dev_aer", "aer", "low",
    "high", "precision", "recall", "morphemes", "types", "type_f1", "type_precision", "type_recall", "token_f1",
    "token_precision", "token_recall", "train_cpu", "train_seconds", "train_mb", "apply_cpu",
)  # fmt: skip


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("segment_pairs.csv"), COLUMNS, ("data", "system"))


def _files(name: str) -> tuple[Path, Path]:
    """Source and target of a text, made once."""
    if name == "grc-fi.helfi":
        own = corpora.all_sets()[name]
        own.assemble()
        return own.source, own.target
    place = PLACE / name
    place.mkdir(parents=True, exist_ok=True)
    sides = []
    for language in ("en", "cs"):
        path = corpora.data_folder() / f"bitext/bible/{language}.txt.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            sides.append([line.strip() for line in islice(file, MATTHEW if name.startswith("new") else 0, None)])
    kept = [pair for pair in zip(*sides, strict=True) if all(pair) and "<range>" not in pair]
    for at, language in enumerate(("en", "cs")):
        (place / language).write_text("".join(f"{pair[at]}\n" for pair in kept), encoding="utf-8")
    return place / "en", place / "cs"


def _isogloss(*arguments: str | Path) -> dict[str, float]:
    """A command, on one thread."""
    return measure([sys.executable, "-m", "isogloss", *arguments, "--threads", "1"], log=PLACE / "log")


def _added(one: dict[str, float], two: dict[str, float]) -> dict[str, float]:
    found = {name: one[name] + two[name] for name in ("seconds", "cpu_seconds")}
    return {**found, "peak_mb": max(one["peak_mb"], two["peak_mb"])}


def _learn(system: str, source: Path, target: Path, place: Path) -> tuple[dict[str, float], Path]:
    """What learning takes, and the source as it is learnt from."""
    train = ("segment", "train", target, "--save", place / "model")
    if system == "words":
        return _isogloss(*train), source
    before = {"seconds": 0.0, "cpu_seconds": 0.0, "peak_mb": 0.0}
    if system.endswith("-cut"):
        before = _isogloss("segment", "train", source, "--save", place / "source")
        before = _added(before, _isogloss("segment", "apply", place / "source", source, "-o", place / "source.tsv"))
        source = place / "source.tsv"
    return _added(before, _isogloss(*train, "--bitext", source, *SYSTEMS[system])), source


def _linked(name: str, place: Path, n_pairs: int, thresholds: tuple[float, ...]) -> dict[str, Any]:
    """How good the links of a gold set are; without thresholds, all of them."""
    own, links = corpora.all_sets()[name], read_links(place / "links", n_pairs=n_pairs)
    found: dict[str, Any] = {}
    for split in ("dev", "test"):
        lines, gold = own.lines[split], read_links(own.gold(split))
        some = links[lines.start : lines.stop]
        if split == "dev" and thresholds:
            scores = {one: score_links(_above(some, one), gold).aer for one in thresholds}
            found["threshold"] = min(scores, key=scores.__getitem__)
        score = score_links(_above(some, found.get("threshold", 0.0)), gold)
        if split == "dev":
            found["dev_aer"] = score.aer
    low, high = score.interval
    return found | {
        "aer": score.aer, "low": low, "high": high, "precision": score.precision, "recall": score.recall,
    }  # fmt: skip


def _above(links: Links, threshold: float) -> Links:
    """The links that are more probable."""
    return links if links.probability is None else links.keep(links.probability > threshold)


def _gold() -> dict[str, tuple[str, ...]]:
    """Words that people have cut, in small letters."""
    folder = corpora.data_folder() / "segmentation/sigmorphon2022"
    found: dict[str, tuple[str, ...]] = {}
    for part in ("train", "dev"):
        for word, pieces in Segmentation.read(folder / f"ces.word.{part}.tsv.gz").surface().words():
            if word == word.lower():
                found.setdefault(word, pieces)
    return found


def _borders(target: Path, place: Path) -> dict[str, Any]:
    """How good the cuts of words are that people have cut, too: as a list, and wherever they stand."""
    gold = _gold()
    there = set(target.read_text(encoding="utf-8").split())
    listed = [word for word in gold if word in there]
    (place / "list").write_text("".join(f"{word}\n" for word in listed), encoding="utf-8")
    _isogloss("segment", "apply", place / "model", place / "list", "-o", place / "list.tsv")
    shown: dict[str, Any] = {"types": len(listed)}
    tokens = [own for own in Segmentation.read(place / "cut.tsv").words() if own[0] in gold]
    each = {"type": Segmentation.read(place / "list.tsv"), "token": Segmentation.of(tokens)}
    for kind, found in each.items():
        right = Segmentation.of([(word, gold[word]) for word, _ in found.words()])
        score = score_segmentation(found, right, bootstrap=0)
        shown |= {f"{kind}_{name}": score[f"boundary_{name}"] for name in ("f1", "precision", "recall")}
    return shown


def run(name: str, system: str) -> dict[str, Any]:
    """One row."""
    place = PLACE / f"{name}.{system}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    source, target = _files(name)
    with open(target, encoding="utf-8") as file:
        n_pairs = sum(1 for _ in file)
    if system == "align":
        applied = {"cpu_seconds": 0.0}
        learnt = _isogloss("align", source, target, "-o", place / "links")
    else:
        learnt, source = _learn(system, source, target, place)
        beside = () if system == "words" else ("--bitext", source)
        applied = _isogloss("segment", "apply", place / "model", target, *beside, "-o", place / "cut.tsv")
    more: dict[str, Any] = {}
    if system != "align":
        cut = Segmentation.read(place / "cut.tsv")
        more["morphemes"] = sum(len(pieces) for _, pieces in cut.words()) / max(1, cut.n_words)
    if name == "grc-fi.helfi":
        if system != "align":
            beside = ("--threshold", str(min(THRESHOLDS)), "--scores")
            _isogloss("segment", "links", place / "model", source, target, *beside, "-o", place / "links")
        more |= _linked(name, place, n_pairs, () if system == "align" else THRESHOLDS)
    elif name.startswith("new"):
        more |= _borders(target, place)
    told = "isogloss align SRC TEXT" if system == "align" else "isogloss segment train TEXT"
    told += "" if system in ("align", "words") else " --bitext SRC"
    return {
        "date": rows.today(), "machine": rows.machine(), "version": __version__, "commit": rows.commit(),
        "command": " ".join([told, *SYSTEMS[system]]), "data": name, "system": system, "pairs": n_pairs, **more,
        "train_cpu": learnt["cpu_seconds"], "train_seconds": learnt["seconds"], "train_mb": learnt["peak_mb"],
        "apply_cpu": applied["cpu_seconds"],
    }  # fmt: skip


def table(name: str) -> str:
    """The rows of a text."""
    used, first = rows.Used(), name == "grc-fi.helfi"
    heads = ["", "threshold", "dev AER", "AER", "precision", "recall", "morphemes a word", "train, CPU s", "MB"]
    if not first:
        heads = ["", "types F1", "precision", "recall", "tokens F1", "morphemes a word", "train, CPU s", "MB"]
    names = ("threshold", "dev_aer", "aer", "precision", "recall") if first else (
        "type_f1", "type_precision", "type_recall", "token_f1",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for system in DATA[name]:
        for row in results().find(data=name, system=system):
            cells = [f"{float(row[one]):{'g' if one == 'threshold' else '.2f'}}" if row[one] else "" for one in names]
            if first:
                cells[2] += f" ({float(row['low']):.1f} to {float(row['high']):.1f})"
            cells.append(f"{float(row['morphemes']):.2f}" if row["morphemes"] else "")
            cells += [f"{float(row['train_cpu']):.0f}", f"{float(row['train_mb']):.0f}"]
            lines.append(f"| {TITLES[system]} | {' | '.join(cells)} |")
            used.add(TITLES[system], name, row)
    return used.below("\n".join(lines))


def clock() -> str:
    """What the whole Bible takes."""
    used = rows.Used()
    lines = ["| pairs | train, CPU s | MB | apply, CPU s |", "|---:|---:|---:|---:|"]
    for row in results().find(data="bible.en-cs", system="full"):
        numbers = [f"{float(row[name]):.0f}" for name in ("train_cpu", "train_mb", "apply_cpu")]
        lines.append(f"| {int(row['pairs']):,} | {' | '.join(numbers)} |")
        used.add("", "bible.en-cs", row)
    return used.below("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(DATA))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        for name, place in (("grc-fi.helfi", "links"), ("new-testament.en-cs", "borders")):
            rows.fill(PAGE, place, table(name))
        if results().has(data="bible.en-cs"):
            rows.fill(PAGE, "clock", clock())
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in asked.only.split(","):
        for system in asked.systems.split(","):
            if system not in DATA[name] or (not asked.again and results().has(data=name, system=system)):
                continue
            made = run(name, system)
            results().put([made])
            told = " ".join(f"{key} {made[key]:.2f}" for key in ("aer", "type_f1", "token_f1") if key in made)
            print(f"{name} {system}: {told} {made['train_cpu']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
