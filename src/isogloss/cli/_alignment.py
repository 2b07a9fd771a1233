"""What `isogloss align` does once its options are settled: read, train, apply, write, count and report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from isogloss._version import __version__
from isogloss.cli._common import (
    Stopwatch,
    is_standard_output,
    progress_for,
    read_gold,
    say,
    write_json,
    write_result,
)
from isogloss.cli._raw import warn_if_raw
from isogloss.cli._systems import read_named
from isogloss.data import Bitext, Links
from isogloss.data.formats import atomic_write, format_links, read_bitext, stream_bitext
from isogloss.errors import BitextError, LinksError

if TYPE_CHECKING:
    from isogloss.cli._memory import Look
    from isogloss.engine.base import Engine
    from isogloss.metrics import AlignmentScore

__all__ = ["Alignments"]

_AT_ONCE = 10_000
"""Pairs that are read at a time."""
_SHOWN = 5
"""How many line numbers of skipped pairs are said."""


class Tally:
    """Pairs, links and skipped lines, added up part by part."""

    def __init__(self) -> None:
        self.pairs = self.links = 0
        self.skipped = {"empty": 0, "too long": 0}
        self.lines: dict[str, list[int]] = {"empty": [], "too long": []}
        self.max_length = 0

    def add(self, bitext: Bitext, links: Links, max_length: int) -> None:
        lengths = np.stack([bitext.source.ids.lengths, bitext.target.ids.lengths])
        empty = (lengths == 0).any(axis=0)
        reasons = {"empty": empty, "too long": ~empty & (lengths > max_length).any(axis=0)}
        for reason, flags in reasons.items():
            self.skipped[reason] += int(np.count_nonzero(flags))
            if (room := _SHOWN - len(self.lines[reason])) > 0:
                self.lines[reason] += [bitext.line_of(int(pair)) for pair in np.flatnonzero(flags)[:room]]
        self.max_length = max_length
        self.pairs += len(bitext)
        self.links += len(links.source)

    @property
    def n_skipped(self) -> int:
        return sum(self.skipped.values())

    def __str__(self) -> str:
        """
        >>> tally = Tally(); tally.pairs, tally.skipped["empty"], tally.lines["empty"] = 50, 7, [3, 4, 5, 6, 7]
        >>> str(tally)
        '50 pairs, 0 links, 7 skipped (7 empty: lines 3, 4, 5, 6, 7, ...)'
        """
        text = f"{_count(self.pairs, 'pair')}, {_count(self.links, 'link')}, {self.n_skipped:,} skipped"
        reasons = []
        for reason, number in self.skipped.items():
            if number:
                lines = ", ".join(map(str, self.lines[reason])) + (", ..." if number > _SHOWN else "")
                words = {"too long": f"longer than {self.max_length} words (--max-length)"}.get(reason, reason)
                reasons.append(f"{number:,} {words}: line{'s'[: number > 1]} {lines}")
        return text + (f" ({'; '.join(reasons)})" if reasons else "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s'[: number != 1]}"


class Alignments:
    """One run: a text in, its links out."""

    def __init__(
        self,
        source: str,
        target: str | None,
        reading: dict[str, Any],
        output: str | None,
        scores: bool,
        links_format: str,
        gold: str | None,
        quiet: bool,
        watch: Stopwatch,
    ) -> None:
        self.watch = watch
        self.source, self.target, self.reading, self.output = source, target, reading, output
        self.scores, self.links_format, self.gold_path, self.quiet = scores, links_format, gold, quiet
        self.tally = Tally()
        self.gold: Links | None = None
        self.held: list[Links] = []  # links of the pairs that gold has
        self.data_hash: str | None = None
        self.trace: list[float] = []

    # --- the four ways

    def train(self, aligner: Any, checkpoint: str | None, resume: bool, **given: Any) -> None:
        """Learn from the whole text in memory, and align it; what is `given` goes to `fit` as well, as an engine."""
        bitext = read_bitext(self.source, self.target, **self.reading)
        if not len(bitext):
            raise _nothing_in(bitext)
        warn_if_raw(bitext)
        if self.gold_path is not None:
            self.gold = read_gold(self.gold_path, bitext)
        links = aligner.fit_predict(
            bitext, checkpoint=checkpoint, resume=resume, progress=progress_for(self.quiet), **given
        )
        self.data_hash, self.trace = aligner.data_hash_, _trace(aligner)
        with atomic_write(self.output) as file:
            self._write(file, bitext, links, aligner)

    def train_in_parts(
        self, aligner: Any, memory: int | None, checkpoint: str | None, resume: bool, **elsewhere: Engine
    ) -> None:
        """Learn from a text that is read a part at a time, and write its links likewise: the links of `train`."""
        if self.gold_path is not None:
            self.gold = read_gold(self.gold_path, self._first)
        folder = None if checkpoint is None else os.path.dirname(os.path.abspath(checkpoint))
        aligner.fit_parts(
            self._parts(), memory=memory, folder=folder, checkpoint=checkpoint, resume=resume,
            progress=progress_for(self.quiet), **elsewhere,
        )  # fmt: skip
        self.data_hash, self.trace = aligner.data_hash_, _trace(aligner)
        with atomic_write(self.output) as file:
            self._write_parts(file, aligner.predict_parts(), aligner)

    def _parts(self) -> Iterator[Bitext]:
        """The parts of the text, with a word to the user if they look raw."""
        parts = stream_bitext(self.source, self.target, size=_AT_ONCE, **self.reading)
        first = next(parts, None)
        if first is None:
            raise _nothing_in(Bitext.read(self.source, self.target, **self.reading))
        warn_if_raw(first)
        yield first
        yield from parts

    def _write_parts(self, file: BinaryIO, links: Iterator[Links], aligner: Any) -> None:
        """Write links that come in parts of their own beside the text, which is read again."""
        from isogloss.tasks.align.decode import joined as joined_links

        waiting = joined_links([])
        for part in stream_bitext(self.source, self.target, size=_AT_ONCE, **self.reading):
            while len(waiting) < len(part):
                if (more := next(links, None)) is None:
                    raise BitextError(f"{self.source} has become longer while it was aligned. Do it again")
                waiting = joined_links([waiting, more])
            self._write(file, part, replace(waiting.part(0, len(part)), bitext=part), aligner)
            waiting = waiting.part(len(part), len(waiting))

    def apply(
        self, aligner: Any, size: int, systems: Mapping[str, str] | None = None, look: Look | None = None
    ) -> None:
        """Align with a model that is there already, a part at a time; a pipe gets its answers as it goes.

        `systems` names files of links by others, which the model has for features; `look` is to see the text first.
        """
        others = read_named(systems or {})
        if self.gold_path is not None:
            self.gold = read_gold(self.gold_path, self._first)
        progress = progress_for(self.quiet)
        with atomic_write(self.output) as file:
            progress.start("Aligning")
            try:
                for bitext in stream_bitext(self.source, self.target, size=size, **self.reading):
                    if look is not None:
                        look.at(bitext)
                        if not self.tally.pairs:
                            warn_if_raw(bitext, aligner.reading_)
                    self._write(file, bitext, self._predict(aligner, bitext, others, systems or {}), aligner)
                    progress.update(self.tally.pairs, f"{self.tally.pairs:,} pairs")
            finally:
                progress.finish()
            self._check_read(others, systems or {})

    def _predict(self, aligner: Any, bitext: Bitext, others: Mapping[str, Links], systems: Mapping[str, str]) -> Links:
        """The links of a part; of a supervised model, probabilities only if they are to be written."""
        if not aligner.supervised:
            links: Links = aligner.predict(bitext)
            return links
        start = self.tally.pairs
        own = {}
        for name, links in others.items():
            if len(links) < start + len(bitext):
                raise _unequal(systems[name], links, self.source, f"at least {start + len(bitext):,}")
            own[name] = links.part(start, start + len(bitext))
        made: Links = aligner.predict(bitext, links=own or None, probability=self.scores)
        return made

    def _check_read(self, others: Mapping[str, Links], systems: Mapping[str, str]) -> None:
        """That no links are left when the text ends; before its file is put in place."""
        for name, links in others.items():
            if len(links) != self.tally.pairs:
                raise _unequal(systems[name], links, self.source, f"{self.tally.pairs:,}")

    def train_in_chunks(
        self, aligner: Any, size: int, options: dict[str, Any], checkpoint: str | None, resume: bool
    ) -> Any:
        """Learn from a part at a time with the counts carried over, then align with the model, which is returned."""
        from isogloss.cli._chunks import Chunks

        fingerprint = {**self.reading, **options, "aligner": type(aligner).__name__, "chunk": size}
        fingerprint.pop("threads", None)
        chunks = Chunks(aligner, checkpoint, fingerprint, progress_for(self.quiet))
        if resume:
            chunks.take_up()
        for bitext in stream_bitext(self.source, self.target, size=size, **self.reading):
            if not chunks.done:
                warn_if_raw(bitext)
            chunks.learn(bitext)
        if not chunks.done:
            raise _nothing_in(Bitext.read(self.source, self.target, **self.reading))
        self.trace = chunks.trace
        self.apply(chunks.aligner, size)
        return chunks.aligner

    def _first(self, n_pairs: int) -> Bitext | None:
        """The first pairs of the text, if it can be read twice."""
        paths = [path for path in (self.source, self.target) if path is not None]
        if not all(os.path.isfile(path) for path in paths):
            return None
        return next(iter(stream_bitext(self.source, self.target, size=max(n_pairs, 1), **self.reading)), None)

    def _write(self, file: BinaryIO, bitext: Bitext, links: Links, aligner: Any) -> None:
        first = self.tally.pairs + 1
        file.write(format_links(links, format=self.links_format, scores=self.scores, bitext=bitext, first=first))
        if is_standard_output(self.output):
            file.flush()
        if self.gold is not None and self.tally.pairs < len(self.gold):
            self.held.append(links[: len(self.gold) - self.tally.pairs])
        self.tally.add(bitext, links, int(aligner.options_["max_length"]))

    # --- words

    def score(self) -> AlignmentScore | None:
        """Of the pairs that gold has."""
        if self.gold is None:
            return None
        from isogloss.metrics import score_links

        links = _joined(self.held)
        if len(links) < len(self.gold):
            raise BitextError(
                f"{self.gold_path} has gold for {len(self.gold)} pairs, but {self.source} has {len(links)}. "
                "The links were written; score them against the gold of this text"
            )
        return score_links(links, self.gold)

    def report(self, aligner: Any, json: bool, model: str | None) -> None:
        """What was done: a line for people, and JSON for programs if that was asked for."""
        say(f"{self.tally}, {self.watch}, {self.watch.rate(self.tally.pairs):,.0f} pairs/s", self.quiet)
        score = self.score()
        if json:
            write_json(self._summary(aligner, model, score))
        elif score is not None:
            rates = ", ".join(f"{name} {score[name]:.2f}" for name in ("precision", "recall", "f1"))
            if is_standard_output(self.output):
                say(f"{rates}, {score}")
            else:
                write_result(None, f"{rates}, {score}\n")

    def _summary(self, aligner: Any, model: str | None, score: AlignmentScore | None) -> dict[str, Any]:
        tally = self.tally
        summary = {
            "pairs": tally.pairs,
            "links": tally.links,
            "skipped": tally.n_skipped,
            "skipped_empty": tally.skipped["empty"],
            "skipped_too_long": tally.skipped["too long"],
            "skipped_lines": tally.lines,
            "seconds": self.watch.seconds,
            "compile_seconds": self.watch.compiling,
            "pairs_per_second": self.watch.rate(tally.pairs),
            "threshold": getattr(aligner, "threshold_", None),
            "objective": self.trace,
            "options": getattr(aligner, "options_", {}),
            "peak_memory_mb": peak_memory(),
            "data_hash": self.data_hash,
            "output": self.output,
            "model": model,
            "version": __version__,
        }
        return summary if score is None else {**summary, "score": score.as_dict()}


def _nothing_in(bitext: Bitext) -> BitextError:
    return BitextError(f"{bitext.source.name}: is empty, so there is nothing to learn from. Is it the right file?")


def _unequal(path: str, links: Links, source: str, lines: str) -> LinksError:
    return LinksError(
        f"{path} has {len(links):,} lines but {source} has {lines}: line k of the links is for line k of the text. "
        "Are they of this text?"
    )


def _trace(aligner: Any) -> list[float]:
    return [float(value) for value in getattr(aligner, "trace_", ())]


def _joined(parts: list[Links]) -> Links:
    """Links of consecutive parts as one."""
    if len(parts) == 1:
        return parts[0]
    offsets = [np.zeros(1, np.int64)]
    for part in parts:
        offsets.append(part.offsets[1:] - part.offsets[0] + offsets[-1][-1])
    empty = np.zeros(0, np.int32)
    return Links(
        np.concatenate(offsets),
        np.concatenate([empty, *(part.source for part in parts)]),
        np.concatenate([empty, *(part.target for part in parts)]),
    )


def peak_memory() -> float | None:
    """The most memory this process had, in megabytes; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3 / 1.024)
