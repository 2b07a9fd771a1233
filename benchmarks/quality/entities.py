"""Names in text that models have not seen: F1 of exact spans with types, time and memory.

python -m benchmarks.quality.entities                        all rows that are missing
python -m benchmarks.quality.entities --only conll2002-es    some texts
python -m benchmarks.quality.entities --systems chain        some systems
python -m benchmarks.quality.entities --again                replace rows that are there
python -m benchmarks.quality.entities --paired               which systems differ by more than chance?
python -m benchmarks.quality.entities --table                run nothing: write the table of docs/extract.md

CoNLL-2002 Spanish: `train` to learn from, settings chosen on `testa`, `testb` to test. Europarl: the same models,
applied to its 799 Spanish sentences. CRFSUITE_PYTHON names a Python that has python-crfsuite; without it, its rows are
left out. It sees the very attributes that our chain sees, as strings, and its penalties were chosen on `testa`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.clock import measure
from isogloss import __version__
from isogloss.data import Mentions
from isogloss.data.formats.mentions import decode_tags, encode_tags
from isogloss.metrics import compare_entities, score_entities

PLACE = Path("out/entities")
TYPES = ("PER", "LOC", "ORG", "MISC")
COLUMNS = (
    "date", "machine", "version", "commit", "command", "data", "system", "seed", "sentences", "test", "dev_f1", "f1",
    "low", "high", "precision", "recall", *TYPES, "train_cpu", "train_seconds", "train_mb", "apply_cpu",
    "sentences_per_cpu", "apply_mb",
)  # fmt: skip
PAIRED = ("date", "commit", "data", "first", "second", "delta", "low", "high", "p")
PAGE = Path(__file__).parents[2] / "docs" / "extract.md"
PEER = Path(__file__).with_name("entities_peer.py")


def _conll(part: str) -> Path:
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"))
    return folder / f"ner/conll2002-es/esp.{part}.gz"


def _europarl() -> Path:
    return Path(os.environ.get("ISOGLOSS_DATA", "../shared/data")) / "ner/europarl-parallel/es.conll"


TEXTS = {"conll2002-es": lambda: _conll("testb"), "europarl-es": _europarl}
SYSTEMS: dict[str, tuple[str, ...]] = {
    "segments": (),
    "chain": ("--model", "chain"),
    "chain-map": ("--model", "chain", "--decoder", "map"),
    "mira": ("--trainer", "mira"),
    "perceptron": ("--trainer", "perceptron"),
    "crfsuite": ("0", "1", "200"),
}
"""Options of `isogloss extract train`; of python-crfsuite, c1, c2 and the most iterations of L-BFGS."""
TITLES = {
    "segments": "segments (default)", "chain": "chain", "chain-map": "chain, best sequence", "mira": "segments, MIRA",
    "perceptron": "segments, perceptron", "crfsuite": "python-crfsuite, attributes of the chain",
}  # fmt: skip


def results() -> rows.Rows:
    return rows.Rows(Path(__file__).with_name("entities.csv"), COLUMNS, ("data", "system", "seed"))


def _isogloss(system: str, place: Path) -> dict[str, float]:
    train = [sys.executable, "-m", "isogloss", "extract", "train", _conll("train"), "--save", place / "model"]
    return measure([*train, "--threads", "1", *SYSTEMS[system]], log=place / "train.log")


def _find(system: str, place: Path, text: Path, out: Path) -> dict[str, float]:
    """Names of a text, by what was learnt in a folder."""
    if system != "crfsuite":
        apply = [sys.executable, "-m", "isogloss", "extract", "apply", place / "model", text, "-o", out]
        return measure([*apply, "--threads", "1"], log=place / "apply.log")
    _attributes(text, place / "test.tsv")
    applied = measure([_python(), PEER, "apply", place / "model", place / "test.tsv", place / "labels.txt"])
    given = Mentions.read(text)
    labels = (place / "labels.txt").read_text(encoding="utf-8").split("\n\n")
    given.with_entities([decode_tags(own.split()) for own in labels[: len(given)]]).write(out)
    return applied


def _python() -> str:
    found = os.environ.get("CRFSUITE_PYTHON", "")
    if not Path(found).is_file():
        raise FileNotFoundError("set CRFSUITE_PYTHON to a Python that has python-crfsuite")
    return found


def _crfsuite(system: str, place: Path) -> dict[str, float]:
    _attributes(_conll("train"), place / "train.tsv")
    return measure([_python(), PEER, "train", place / "train.tsv", place / "model", *SYSTEMS[system]])


def _attributes(text: Path, out: Path) -> None:
    """What our chain sees of every word, as a file for the peer."""
    from isogloss.features import Templates
    from isogloss.tasks.extract.features import WORD_TEMPLATES, seen_words

    mentions = Mentions.read(text)
    keys = Templates(WORD_TEMPLATES, kind="word").keys(seen_words(mentions, tags=False).words())
    with open(out, "w", encoding="utf-8") as file:
        for s, n in enumerate(mentions.lengths.tolist()):
            start = int(mentions.offsets[s])
            tags = encode_tags(n, mentions.entities(s))
            for tag, own in zip(tags, keys[start : start + n].tolist(), strict=True):
                file.write("\t".join([tag, *(format(key, "x") for key in own if key)]) + "\n")
            file.write("\n")


def _trained(system: str) -> tuple[Path, dict[str, float], float]:
    """A model, what it took, and its F1 on `testa`; learnt once for all texts."""
    import json

    place = PLACE / system
    if (place / "learnt.json").exists():
        kept = json.loads((place / "learnt.json").read_text(encoding="utf-8"))
        if rows.is_of(kept, rows.commit()):
            return place, kept["learnt"], kept["dev"]
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    learnt = (_crfsuite if system == "crfsuite" else _isogloss)(system, place)
    _find(system, place, _conll("testa"), place / "testa.conll")
    dev = score_entities(Mentions.read(place / "testa.conll"), Mentions.read(_conll("testa")), bootstrap=0).f1
    kept = {"commit": rows.commit(), "learnt": learnt, "dev": dev}
    (place / "learnt.json").write_text(json.dumps(kept), encoding="utf-8")
    return place, learnt, dev


def run(name: str, system: str) -> dict[str, Any]:
    """One row."""
    place, learnt, dev = _trained(system)
    gold = Mentions.read(TEXTS[name]())
    out = place / f"{name}.conll"
    applied = _find(system, place, TEXTS[name](), out)
    score = score_entities(Mentions.read(out), gold)
    low, high = score.interval
    peer = system == "crfsuite"
    told = " ".join(["python-crfsuite lbfgs c1 c2 iterations" if peer else "isogloss extract train", *SYSTEMS[system]])
    return {
        "date": rows.today(), "machine": rows.machine(), "version": "0.9" if peer else __version__,
        "commit": rows.commit(), "command": told, "data": name, "system": system, "seed": 0,
        "sentences": len(Mentions.read(_conll("train"))), "test": len(gold), "dev_f1": dev, "f1": score.f1,
        "low": low, "high": high, "precision": score.precision, "recall": score.recall,
        **{kind: score.types.get(kind, {"f1": 0.0})["f1"] for kind in TYPES}, "train_cpu": learnt["cpu_seconds"],
        "train_seconds": learnt["seconds"], "train_mb": learnt["peak_mb"], "apply_cpu": applied["cpu_seconds"],
        "sentences_per_cpu": len(gold) / applied["cpu_seconds"], "apply_mb": applied["peak_mb"],
    }  # fmt: skip


def compare(name: str) -> list[dict[str, object]]:
    """Every two systems whose names are still there."""
    gold = Mentions.read(TEXTS[name]())
    there = {system: PLACE / system / f"{name}.conll" for system in SYSTEMS}
    found = {system: Mentions.read(path) for system, path in there.items() if path.exists()}
    made = []
    for first, second in combinations(found, 2):
        told = compare_entities(found[first], found[second], gold)
        made.append({
            "date": rows.today(), "commit": rows.commit(), "data": name, "first": first, "second": second,
            "delta": told.delta, "low": told.interval[0], "high": told.interval[1], "p": told.p_value,
        })  # fmt: skip
    return made


def table() -> str:
    """F1 of every system on every text."""
    used = rows.Used()
    heads = (
        "text",
        "system",
        "F1",
        "precision",
        "recall",
        *TYPES,
        "F1 on testa",
        "training, CPU s",
        "sentences a CPU s",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in TEXTS:
        for system in SYSTEMS:
            for row in results().find(data=name, system=system):
                spread = f" ({float(row['low']):.1f} to {float(row['high']):.1f})"
                cells = [f"{float(row['f1']):.2f}{spread}"]
                cells += [f"{float(row[key]):.1f}" for key in ("precision", "recall", *TYPES, "dev_f1")]
                cells += [f"{float(row['train_cpu']):.0f}", f"{float(row['sentences_per_cpu']):.0f}"]
                lines.append(f"| {name} | {TITLES[system]} | " + " | ".join(cells) + " |")
                used.add(TITLES[system], name, row)
    return used.below("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(TEXTS))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--paired", action="store_true")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        rows.fill(PAGE, "entities", table())
        return
    if asked.paired:
        paired = rows.Rows(Path(__file__).with_name("entities-paired.csv"), PAIRED, ("data", "first", "second"))
        for name in asked.only.split(","):
            paired.put(compare(name))
        return
    for system in asked.systems.split(","):
        for name in asked.only.split(","):
            if not asked.again and results().has(data=name, system=system, seed=0):
                continue
            try:
                made = run(name, system)
            except FileNotFoundError as problem:
                print(f"{name} {system}: left out: {problem}", file=sys.stderr)
                continue
            results().put([made])
            print(f"{name} {system}: F1 {made['f1']:.2f}, {made['dev_f1']:.2f} on testa", flush=True)


if __name__ == "__main__":
    main()
