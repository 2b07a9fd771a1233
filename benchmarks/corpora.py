"""The texts of the benchmarks: what `sets.tsv` names, put together line by line and kept under out/bench."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

OUT = Path("out/bench")
EUROPARL = ("bitext/europarl-7way/en.txt.gz", "bitext/europarl-7way/fr.txt.gz")
LARGE = ("bitext/europarl-en-fr-400k/en.txt.gz", "bitext/europarl-en-fr-400k/fr.txt.gz")
SPEED_ONLY = {
    "ten-pairs": (EUROPARL, 10, 1),
    "europarl-7way-en-fr": (EUROPARL, None, 1),
    "europarl-en-fr-400k": (LARGE, None, 1),
    "europarl-en-fr-joined": (LARGE, None, 2),
}
"""Files, how many lines, and how many neighbouring pairs make one: memory depends on the length of lines."""
HANSARDS = "bitext/hansards-en-fr"


def data_folder() -> Path:
    """The folder behind ISOGLOSS_DATA."""
    folder = Path(os.environ.get("ISOGLOSS_DATA", "../shared/data"))
    if not (folder / "alignment" / "sets.tsv").exists():
        raise SystemExit(f"{folder}/alignment/sets.tsv is not there: set ISOGLOSS_DATA to the folder of corpora.")
    return folder


@dataclass(frozen=True)
class Set:
    """A gold set and the text its systems are trained on; a set without splits is for the clock only."""

    name: str
    folder: str
    splits: tuple[str, ...]
    bitext: tuple[str, str] | None
    first_lines: int | None
    counted: bool
    remark: str
    joined: int = 1

    @property
    def place(self) -> Path:
        """Where its text and the systems' outputs are kept."""
        return OUT / self.name

    @property
    def source(self) -> Path:
        return self.place / "source.txt"

    @property
    def target(self) -> Path:
        return self.place / "target.txt"

    @property
    def joint(self) -> Path:
        """The same pairs as `source ||| target`, in lower case: without it fast_align loses up to two points."""
        return self.place / "joint.lower.txt"

    def has_gold(self, split: str) -> bool:
        return split in self.splits and (data_folder() / self.folder / f"{split}.gold.txt").exists()

    def gold(self, split: str) -> Path:
        """The file of gold links of a split."""
        return data_folder() / self.folder / f"{split}.gold.txt"

    @cached_property
    def lines(self) -> dict[str, range]:
        """The lines, from 0, that each split has in the text: the splits come first, in order, then the bitext."""
        ranges, start = {}, 0
        for split in self.splits:
            with _open(data_folder() / self.folder / f"{split}.src.txt") as file:
                count = sum(1 for _ in file)
            ranges[split] = range(start, start + count)
            start += count
        return ranges

    def pairs(self) -> Iterator[tuple[str, str]]:
        """All pairs of its training text; where a side of the bitext is empty or joined elsewhere, it has no pair."""
        root = data_folder()
        for split in self.splits:
            folder = root / self.folder
            for number, (source, target) in enumerate(
                _pairs(folder / f"{split}.src.txt", folder / f"{split}.tgt.txt"), start=1
            ):
                if not (source and target):
                    raise SystemExit(f"{self.name}, {split}, line {number}: an empty side; gold pairs need two.")
                yield source, target
        if self.bitext:
            lines = islice(_pairs(root / self.bitext[0], root / self.bitext[1]), self.first_lines)
            kept = (pair for pair in lines if all(pair) and "<range>" not in pair)
            for group in zip(*[kept] * self.joined, strict=False):
                source, target = (" ".join(side) for side in zip(*group, strict=True))
                yield source, target

    def assemble(self) -> None:
        """Write the text for the systems, once."""
        if self.joint.exists():
            return
        self.place.mkdir(parents=True, exist_ok=True)
        finished = (self.source, self.target, self.joint)
        unfinished = [path.with_suffix(".unfinished") for path in finished]
        with ExitStack() as stack:
            sources, targets, joint = (
                stack.enter_context(open(path, "w", encoding="utf-8", newline="\n")) for path in unfinished
            )
            for source, target in self.pairs():
                sources.write(source + "\n")
                targets.write(target + "\n")
                joint.write(f"{source} ||| {target}\n".lower())
        for part, whole in zip(unfinished, finished, strict=True):
            part.rename(whole)

    def shapes(self, split: str) -> list[tuple[int, int]]:
        """Numbers of source and target words of the pairs of a split."""
        folder = data_folder() / self.folder
        pairs = _pairs(folder / f"{split}.src.txt", folder / f"{split}.tgt.txt")
        return [(len(source.split()), len(target.split())) for source, target in pairs]


def all_sets() -> dict[str, Set]:
    """Every set of `sets.tsv` in its order, then the sets for the clock only."""
    sets = {}
    with open(data_folder() / "alignment" / "sets.tsv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            name = row["set"]
            hansards = name.startswith("hansards-")
            bitext = None if row["bitext_source"] == "-" else (row["bitext_source"], row["bitext_target"])
            sets[name] = Set(
                name,
                HANSARDS if hansards else f"alignment/{name}",
                tuple(row["text_splits"].split(",")),
                bitext,
                _first_lines(row["remark"]) if hansards else None,
                row["counted"] == "yes",
                row["remark"] or "",
            )
    for name, (files, first_lines, joined) in SPEED_ONLY.items():
        sets[name] = Set(name, "", (), files, first_lines, False, "no gold: for the clock only", joined)
    return sets


def _first_lines(remark: str) -> int | None:
    """The number in "first 1000 lines of the bitext, ..."; None for all of it."""
    words = remark.split()
    return int(words[1]) if words[0] == "first" else None


def _open(path: Path):  # type: ignore[no-untyped-def]
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8", newline="\n")


def _pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    with _open(source) as sources, _open(target) as targets:
        for left, right in zip(sources, targets, strict=True):
            yield left.strip(), right.strip()
