"""A parallel text of any length that counts like Europarl: lengths of sentences, frequencies of words, new words.

The joined Europarl text (28 words a line) gives lengths of both sides and frequencies of the words of both. Beyond its
vocabulary there is a tail of words that it does not have: together they are as probable as the words that it has once
(the estimate of Good and Turing), and fall off as its rarest words do, so that the vocabulary goes on growing with the
text. A source word has three translations, of about its own rank; some words have none; neighbours change places. So
the text can be learnt from, and its cells, entries and vocabulary grow as those of a real one: it is for the clock and
for memory, not for quality.

`python -m benchmarks.synthetic FILE` writes what the generator is fitted by, for a machine without the corpora; there
SYNTHETIC_FIT names that file.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import OUT, Set, all_sets

FITTED_TO = "europarl-en-fr-joined"
AT_ONCE = 20_000
TAIL = 20_000_000
"""Ranks that words beyond the vocabulary may have."""
TRANSLATED, CHOSEN = 0.85, np.array([0.7, 0.9, 1.0])
_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


@dataclass(frozen=True)
class Side:
    """Words of one language by falling frequency, and how the tail falls off."""

    words: list[str]
    below: NDArray[np.float64]  # cumulative probability of known words; the rest is the tail's
    exponent: float

    @classmethod
    def of(cls, counts: Counter[str]) -> Side:
        ranked = counts.most_common()
        frequency = np.array([count for _, count in ranked], float)
        once = float((frequency == 1).sum())
        total = frequency.sum()
        half = len(frequency) // 2  # frequencies fall as rank ** -exponent between the middle and the end
        exponent = np.log(frequency[half // 4] / frequency[half]) / np.log(4.0)
        return cls([word for word, _ in ranked], np.cumsum(frequency / total) * (1 - once / total), max(1.05, exponent))

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Ranks of words, from 0."""
        known = len(self.words)
        ranks = np.searchsorted(self.below, rng.random(size), side="right")
        outside = ranks >= known
        low, high = known ** (1 - self.exponent), TAIL ** (1 - self.exponent)
        u = rng.random(int(outside.sum()))
        ranks[outside] = ((low + u * (high - low)) ** (1 / (1 - self.exponent))).astype(np.int64)
        return np.maximum(ranks, 0)

    def spelt(self, ranks: NDArray[np.int64]) -> list[str]:
        """The words of some ranks; one of the tail is a known word with a number in letters."""
        words, known = self.words, len(self.words)
        return [words[k] if k < known else f"{words[k % known][:5]}{_number(k // known)}" for k in ranks.tolist()]


def _number(k: int) -> str:
    digits = ""
    while True:
        k, digit = divmod(k, 26)
        digits += str(_LETTERS[digit])
        if not k:
            return digits


class Generator:
    """Pairs of sentences that count like those of a text.

    Parameters
    ----------
    source, target : Counter
        How often each word of a side occurs.
    lengths : int64[n_pairs, 2]
        Words of both sides of each pair.
    """

    def __init__(self, source: Counter[str], target: Counter[str], lengths: NDArray[np.int64]) -> None:
        self.counts = source, target
        self.source, self.target = Side.of(source), Side.of(target)
        self.lengths = lengths

    @classmethod
    def of(cls, text: Set) -> Generator:
        """Fitted to a text."""
        text.assemble()
        source, target = Counter[str](), Counter[str]()
        lengths = []
        with open(text.source, encoding="utf-8") as sources, open(text.target, encoding="utf-8") as targets:
            for left, right in zip(sources, targets, strict=True):
                a, b = left.split(), right.split()
                source.update(a)
                target.update(b)
                lengths.append((len(a), len(b)))
        return cls(source, target, np.array(lengths))

    def write(self, path: Path) -> None:
        """What it is fitted by, for a machine without the corpora."""
        sides = {}
        for name, counts in zip(("source", "target"), self.counts, strict=True):
            sides[name] = np.frombuffer("\n".join(counts).encode(), np.uint8)
            sides[f"{name}_counts"] = np.array(list(counts.values()))
        np.savez_compressed(path, lengths=self.lengths, **sides)

    @classmethod
    def read(cls, path: Path) -> Generator:
        """What `write` wrote."""
        with np.load(path) as found:
            words = [found[name].tobytes().decode().split("\n") for name in ("source", "target")]
            counts = [found[f"{name}_counts"].tolist() for name in ("source", "target")]
            sides = [Counter(dict(zip(*side, strict=True))) for side in zip(words, counts, strict=True)]
            return cls(sides[0], sides[1], found["lengths"])

    def part(self, start: int, seed: int = 1) -> list[tuple[str, str]]:
        """The `AT_ONCE` pairs from `start` on."""
        return list(self._part(np.random.default_rng([seed, start])))

    def pairs(self, n_pairs: int, seed: int = 1) -> Iterator[tuple[str, str]]:
        """The first pairs are the same, however many are asked for."""
        for start in range(0, n_pairs, AT_ONCE):
            yield from self.part(start, seed)[: n_pairs - start]

    def _part(self, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
        lengths = self.lengths[rng.integers(0, len(self.lengths), AT_ONCE)]
        n_source, n_target = int(lengths[:, 0].sum()), int(lengths[:, 1].sum())
        source, target = self.source.draw(n_source, rng), self.target.draw(n_target, rng)
        starts = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(lengths, axis=0)])
        pair = np.repeat(np.arange(AT_ONCE), lengths[:, 1])
        within = np.arange(n_target) - starts[pair, 1]
        jitter = rng.integers(-1, 2, n_target) * (rng.random(n_target) < 0.3)
        origin = np.clip(within * lengths[pair, 0] // np.maximum(1, lengths[pair, 1]) + jitter, 0, lengths[pair, 0] - 1)
        kind = np.searchsorted(CHOSEN, rng.random(n_target), side="right")
        translated = rng.random(n_target) < TRANSLATED
        original = source[starts[pair, 0] + origin]
        target[translated] = _translation(original, kind)[translated]
        left, right = self.source.spelt(source), self.target.spelt(target)
        for (a, b), (c, d) in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            yield " ".join(left[a:c]), " ".join(right[b:d])


def _translation(rank: NDArray[np.int64], kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """The word that a word becomes: of the same rank, or of one nearby that depends on the word alone."""
    shift = (rank * 2654435761 + kind * 40503) % np.maximum(2, rank // 4 + 2)
    found: NDArray[np.int64] = np.where(kind == 0, rank, rank + shift - rank // 8)
    return np.maximum(0, found)


def generator() -> Generator:
    """The one of the benchmarks: fitted to Europarl here, or to the file that SYNTHETIC_FIT names."""
    kept = os.environ.get("SYNTHETIC_FIT")
    return Generator.read(Path(kept)) if kept else Generator.of(all_sets()[FITTED_TO])


def _sides(start: int) -> tuple[bytes, bytes, bytes]:
    """Source, target, and both in lower case as fast_align takes them, of the pairs from `start` on."""
    pairs = _made.part(start)
    joint = "".join(f"{source} ||| {target}\n" for source, target in pairs).lower()
    source, target = ("".join(pair[side] + "\n" for pair in pairs) for side in (0, 1))
    return source.encode(), target.encode(), joint.encode()


_made: Generator


def assemble(n_pairs: int, processes: int = 1) -> tuple[Path, Path]:
    """The files of the first pairs, written once; a third, `joint.lower.txt`, has both sides for fast_align."""
    global _made
    place = OUT / f"synthetic-{n_pairs}"
    names = "source.txt", "joint.lower.txt", "target.txt"
    source, _, target = (place / name for name in names)
    if target.exists():
        return source, target
    if n_pairs % AT_ONCE:
        raise SystemExit(f"synthetic-{n_pairs}: the number of pairs should be a multiple of {AT_ONCE:,}")
    place.mkdir(parents=True, exist_ok=True)
    _made = generator()
    with multiprocessing.get_context("fork").Pool(processes) as pool, ExitStack() as stack:
        files = [stack.enter_context(open(place / f"{name}.unfinished", "wb")) for name in names]
        for left, right, joint in pool.imap(_sides, range(0, n_pairs, AT_ONCE)):
            for file, part in zip(files, (left, joint, right), strict=True):
                file.write(part)
    for name in names:
        (place / f"{name}.unfinished").rename(place / name)
    return source, target


if __name__ == "__main__":
    generator().write(Path(sys.argv[1]))
