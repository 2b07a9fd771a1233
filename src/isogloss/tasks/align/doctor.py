"""What is odd about a corpus, what to do about it, and what aligning it will cost.

The doctor reads what `isogloss align` would refuse, and says why it would. Every finding names what was found, how
often, where first, and a remedy. It looks at word types rather than words where it can, so that a large corpus takes
seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Text
from isogloss.engine.threads import threads as usable_threads

__all__ = ["SEVERITIES", "Estimate", "Finding", "Report", "SideStatistics", "estimate", "examine"]

SEVERITIES = ("error", "warning", "note")
"""What `align` would refuse or read wrongly; what costs quality; what is good to know."""

# What `isogloss align` costs. Measured with the default command on one core (`python -m benchmarks.scale`): the first
# 20,000, 100,000 and all 199,764 pairs of the joined Europarl text (28 words a line), and 100,447 of the Hansards (10
# words). Every iteration has its share for each cell and for each word, and so have reading, decoding and the table.
START_SECONDS = 1.2
SECONDS_PER_CELL = {"once": 150e-9, "model1": 5e-9, "hmm": 12e-9}
SECONDS_PER_WORD = {"once": 800e-9, "model1": 300e-9, "hmm": 400e-9}
START_BYTES = 180e6
BYTES_PER_CELL = 9.0
"""Of the cells of one shard."""
BYTES_PER_KEPT_CELL = 4.0
"""Of the cells of further shards, if they are few."""
BYTES_PER_WORD = 34.0
BYTES_PER_PAIR = 60.0
BYTES_PER_WORD_PAIR = 57.0
BYTES_PER_TYPE = 350.0
LONGEST = 1000
"""Words of a side beyond which `align` passes a pair over by default."""


@dataclass(frozen=True)
class Finding:
    """One odd thing.

    Parameters
    ----------
    severity : {"error", "warning", "note"}
    code : str
        A name for programs, such as "unequal-lines".
    side : {"source", "target", "both", "links"}
    count : int
        How many lines (or words, where `message` says so) are concerned.
    message, remedy : str
        What was found, and what to do about it.
    lines : tuple of int
        The first of them, counted from 1.
    """

    severity: str
    code: str
    side: str
    count: int
    message: str
    remedy: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class SideStatistics:
    """Numbers of one side."""

    name: str
    lines: int
    words: int
    types: int
    once: int
    longest: int

    @classmethod
    def of(cls, text: Text) -> SideStatistics:
        """Count a text."""
        first, last = text.ids.offsets[0], text.ids.offsets[-1]
        counts = np.bincount(text.ids.values[first:last], minlength=1)
        return cls(
            text.name,
            len(text),
            int(last - first),
            int((counts > 0).sum()),
            int((counts == 1).sum()),
            int(text.ids.lengths.max(initial=0)),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the share of types that occur once and the mean length."""
        more = {
            "share_once": self.once / self.types if self.types else 0.0,
            "mean_length": self.words / self.lines if self.lines else 0.0,
        }
        return {**asdict(self), **more}


@dataclass(frozen=True)
class Estimate:
    """What `isogloss align` will cost on this corpus, about."""

    pairs: int
    cells: int
    word_pairs: int
    seconds: float
    megabytes: float
    threads: int


@dataclass(frozen=True)
class Report:
    """Everything the doctor found; `str` is for people, `as_dict` for programs."""

    findings: tuple[Finding, ...]
    statistics: tuple[SideStatistics, ...] = ()
    estimate: Estimate | None = None
    names: tuple[str, ...] = field(default=())

    @property
    def worst(self) -> str | None:
        """The gravest severity there is."""
        return next((name for name in SEVERITIES if any(f.severity == name for f in self.findings)), None)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "files": list(self.names),
            "findings": [{**asdict(finding), "lines": list(finding.lines)} for finding in self.findings],
            "statistics": {
                side: statistics.as_dict()
                for side, statistics in zip(("source", "target"), self.statistics, strict=False)
            },
            "estimate": None if self.estimate is None else asdict(self.estimate),
        }

    def __str__(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        if self.statistics:
            yield f"{'':8} {'lines':>11} {'words':>12} {'types':>10} {'once':>6} {'longest':>8}  file"
        for side, numbers in zip(("source", "target"), self.statistics, strict=False):
            share = numbers.as_dict()["share_once"]
            yield (
                f"{side:8} {numbers.lines:11,} {numbers.words:12,} {numbers.types:10,} {share:6.0%} "
                f"{numbers.longest:8,}  {numbers.name}"
            )
        if self.estimate is not None:
            cost = self.estimate
            yield (
                f"isogloss align will take about {_duration(cost.seconds)} with {cost.threads} threads, and "
                f"{cost.megabytes:,.0f} MB ({cost.pairs:,} pairs, {cost.cells:,} cells, "
                f"{cost.word_pairs:,} different word pairs)"
            )
        if not self.findings:
            yield "nothing odd was found"
        for finding in self.findings:
            yield ""
            yield f"{finding.severity}: {finding.side}: {finding.message}"
            if finding.lines:
                more = ", ..." if finding.count > len(finding.lines) else ""
                yield f"  lines {', '.join(f'{line:,}' for line in finding.lines)}{more}"
            yield f"  {finding.remedy}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def examine(
    source: str,
    target: str | None = None,
    links: str | None = None,
    *,
    threads: int | None = None,
    **reading: Any,
) -> Report:
    """Look at a corpus.

    Parameters
    ----------
    source, target : str
        Two files, or one that holds both sides.
    links : str, optional
        A file of links or of gold.
    threads : int, optional
        For the estimate; all cores if not given.
    **reading
        What `read_bitext` takes. Text of another encoding than the one given is read all the same.

    Examples
    --------
    >>> from isogloss import samples
    >>> report = examine(*(str(samples.path("en-de", side)) for side in ("source", "target")))
    >>> report.worst, report.statistics[0].words
    (None, 459)
    """
    from isogloss.tasks.align._doctor_links import examine_links
    from isogloss.tasks.align._doctor_pairs import examine_pairs
    from isogloss.tasks.align._doctor_sides import examine_side, read_sides

    findings: list[Finding] = []
    sides = read_sides(source, target, reading, findings)
    for side in sides:
        examine_side(side, findings)
    expected = None
    if len(sides) == 2:
        bitext = examine_pairs(sides[0], sides[1], findings)
        if bitext is not None:
            expected = estimate(bitext, threads=threads)
            if links is not None:
                examine_links(links, bitext, findings)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    names = tuple(name for name in (source, target, links) if name is not None)
    return Report(tuple(findings), tuple(SideStatistics.of(side.text) for side in sides), expected, names)


def estimate(bitext: Bitext, *, threads: int | None = None) -> Estimate:
    """What `isogloss align` will cost.

    Time goes with cells, the word pairs within sentence pairs, and with words; memory with different word pairs, whose
    number is estimated from a sample of them, and with words. `isogloss align --memory` takes less, if it has to.
    """
    from isogloss.tasks.align._numba.doctor import sampled_cooccurrences
    from isogloss.tasks.align.corpus import KEPT_CELLS, SHARD
    from isogloss.tasks.align.hmm import HMMAligner
    from isogloss.tasks.align.settings import Settings

    source, target = (_lowered(text) for text in (bitext.source, bitext.target))
    n_source, n_target = bitext.source.ids.lengths, bitext.target.ids.lengths
    used = (n_source > 0) & (n_target > 0) & (n_source <= LONGEST) & (n_target <= LONGEST)
    cells = int((n_source * n_target)[used].sum())
    bits = min(6, max(0, int(np.log2(max(cells, 1) / 1e6))))
    keys = sampled_cooccurrences(
        source,
        np.ascontiguousarray(bitext.source.ids.offsets),
        target,
        np.ascontiguousarray(bitext.target.ids.offsets),
        max(int(target.max(initial=0)) + 1, 1),
        bits,
        LONGEST,
        max(1024, cells >> bits),
    )
    keys.sort()
    word_pairs = int(np.count_nonzero(np.diff(keys)) + (keys.size > 0)) << bits
    threads = usable_threads(threads)
    n_words = int((n_source + n_target)[used].sum())
    chosen = Settings.of("hmm", HMMAligner().get_params(), int(n_source[used].sum()))
    times = {"once": 1, "model1": chosen.model1_iterations, "hmm": chosen.iterations}
    seconds = sum(n * (cells * SECONDS_PER_CELL[k] + n_words * SECONDS_PER_WORD[k]) for k, n in times.items())
    n_types = len(np.unique(source)) + len(np.unique(target))
    needed = (
        START_BYTES
        + min(cells, SHARD) * BYTES_PER_CELL
        + (max(0, cells - SHARD) * BYTES_PER_KEPT_CELL if cells <= KEPT_CELLS else 0.0)
        + n_words * BYTES_PER_WORD
        + len(bitext) * BYTES_PER_PAIR
        + word_pairs * BYTES_PER_WORD_PAIR
        + n_types * BYTES_PER_TYPE
    )
    return Estimate(int(used.sum()), cells, word_pairs, START_SECONDS + seconds / threads, needed / 1e6, threads)


def _lowered(text: Text) -> NDArray[np.int32]:
    """Word numbers without case, as the aligner counts them."""
    _, mapping = text.vocabulary.mapped(str.lower)
    numbers: NDArray[np.int32] = mapping[text.ids.values] if len(mapping) else text.ids.values
    return np.ascontiguousarray(numbers)
