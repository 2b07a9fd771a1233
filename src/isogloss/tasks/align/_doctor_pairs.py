"""The doctor's look at both sides together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext
from isogloss.tasks.align._doctor_sides import Side, finding
from isogloss.tasks.align.doctor import LONGEST, Finding
from isogloss.tasks.align.filtering import PairFacts, judge

__all__ = ["examine_pairs"]

_FURTHEST = 60  # lines by which the two sides may be out of step, for a guess where it began
_PENALTY = 15.0  # log-odds that must speak for a change of step
_MARKS = "?!:;"

Numbers = NDArray[np.int64]


def examine_pairs(source: Side, target: Side, findings: list[Finding]) -> Bitext | None:
    """All that shows when the sides are compared; the bitext, unless they have different numbers of lines."""
    _steps(source, target, findings)
    n_source, n_target = len(source.text), len(target.text)
    if n_source != n_target or n_source == 0:
        return None
    bitext = Bitext(source.text, target.text)
    facts = PairFacts.of(bitext, np.zeros(n_source))
    if facts.identical[facts.n_source > 0].all() and facts.n_source.any():
        message = "source and target are the same text"
        findings.append(finding("both", "error", "same-text", [], message, "Was one file given twice?", n_source))
        return bitext
    _lengths(facts, findings)
    _repetitions(facts, findings)
    _languages(source, target, findings)
    return bitext


def _lengths(facts: PairFacts, findings: list[Finding]) -> None:
    empty_source, empty_target = facts.n_source == 0, facts.n_target == 0
    one, both = np.flatnonzero(empty_source != empty_target), np.flatnonzero(empty_source & empty_target)
    drop = "isogloss filter SOURCE TARGET -o KEPT_SOURCE KEPT_TARGET drops them"
    if one.size:
        side = "both" if empty_source[one].any() and empty_target[one].any() else None
        side = side or ("source" if empty_source[one].any() else "target")
        message = "one side is empty in {n lines}"
        findings.append(finding(side, "warning", "half-empty", one, message, f"They get no links; {drop}"))
    if both.size:
        message = "both sides are empty in {n lines}"
        findings.append(finding("both", "note", "empty", both, message, "They stay empty in the output"))
    long = np.flatnonzero(np.maximum(facts.n_source, facts.n_target) > LONGEST)
    if long.size:
        message = f"more than {LONGEST:,} words in {{n lines}}"
        remedy = "They are passed over; is a line a sentence? Split them, or give align --max-length"
        findings.append(finding("both", "warning", "long-lines", long, message, remedy))
    verdicts = judge(facts, max_length=int(max(facts.n_source.max(), facts.n_target.max(), 1)), identical=True)
    lopsided = np.array(verdicts.first("ratio", len(verdicts)), np.int64)
    if lopsided.size:
        message = "one side is more than three times as long as the other lets expect in {n lines}"
        findings.append(finding("both", "warning", "length-ratio", lopsided, message, f"Look at them; {drop}"))


def _repetitions(facts: PairFacts, findings: list[Finding]) -> None:
    verdicts = judge(facts, ratio=1e9, max_length=2**31, identical=True, duplicates=False)
    again = np.array(verdicts.first("duplicate", len(verdicts)), np.int64)
    if again.size:
        severity = "warning" if again.size > 0.1 * len(facts) else "note"
        message = f"the same pair as one before in {{n lines}} ({again.size / len(facts):.1%})"
        remedy = "isogloss filter --drop-duplicates keeps each once, if they are not meant to weigh more"
        findings.append(finding("both", severity, "duplicates", again, message, remedy))
    same = np.flatnonzero(facts.identical & (facts.n_source > 3))
    if same.size:
        message = "the same text of more than 3 words on both sides in {n lines}"
        remedy = "Not translated? isogloss filter drops them"
        findings.append(finding("both", "warning", "untranslated", same, message, remedy))


def _languages(source: Side, target: Side, findings: list[Finding]) -> None:
    """Lines that look like the other language, by the words that are commoner there.

    The log-odds of a line's words under the word frequencies of the two sides, without the line itself.
    """
    here, there = _odds(source, target), _odds(target, source)
    words = source.text.ids.lengths, target.text.ids.lengths
    swapped = (here < -4) & (there < -4) & (here + there < -0.5 * (words[0] + words[1]))
    wrong = [
        (odds < -8) & (odds < -1.5 * n) & (n >= 4) & ~swapped for odds, n in zip((here, there), words, strict=True)
    ]
    if swapped.any():
        message = "source and target seem to be exchanged in {n lines}"
        remedy = "Exchange them in these lines; if it is all of them, exchange the files"
        findings.append(finding("both", "warning", "swapped", np.flatnonzero(swapped), message, remedy))
    for side, found in zip((source, target), wrong, strict=True):
        if found.any():
            other = "target" if side.role == "source" else "source"
            message = f"what looks like the language of the {other} in {{n lines}}"
            remedy = "Not translated? isogloss filter drops what is no translation"
            findings.append(finding(side.role, "warning", "other-language", np.flatnonzero(found), message, remedy))


def _odds(side: Side, other: Side) -> NDArray[np.float64]:
    """For each line of a side, the log-odds of its being of that side rather than of the other."""
    there = other.text.vocabulary
    numbers = there.encode(side.types)
    counts_there = np.where(numbers >= 0, other.counts[np.maximum(numbers, 0)] if len(other.counts) else 0, 0)
    total, total_there = max(side.counts.sum(), 1), max(other.counts.sum(), 1)
    odds = np.log((np.maximum(side.counts - 1, 0) + 0.5) / total) - np.log((counts_there + 0.5) / total_there)
    of_lines: NDArray[np.float64] = side.per_line(odds)
    return of_lines


# Lines out of step ---------------------------------------------------------------------------------------------------


def _steps(source: Side, target: Side, findings: list[Finding]) -> None:
    """Unequal numbers of lines, and stretches in which line k does not belong to line k."""
    n_source, n_target = len(source.text), len(target.text)
    gap = n_target - n_source
    shifts = _shifts(source, target) if min(n_source, n_target) >= 4 and abs(gap) <= _FURTHEST else None
    starts = [] if shifts is None else (np.flatnonzero(np.diff(shifts)) + 1).tolist()
    where = ""
    if starts:
        assert shifts is not None
        first = starts[0]
        step = int(shifts[first]) - int(shifts[first - 1])
        more = f" (the first of {len(starts)} places)" if len(starts) > 1 else ""
        where = (
            f"near source line {first + 1:,}, target line {first + 1 + int(shifts[first - 1]):,}: from there on the "
            f"{'target has' if step > 0 else 'source has'} {abs(step)} more{more}"
        )
    if gap:
        message = f"the source has {n_source:,} lines, the target {n_target:,}"
        remedy = f"They seem to part {where}" if where else "Was a line lost, joined or split on one side?"
        findings.append(finding("both", "error", "unequal-lines", starts, message, remedy, abs(gap)))
    elif starts and shifts is not None:
        lines = np.flatnonzero(shifts)
        message = "source and target seem to be out of step in {n lines}, " + where
        remedy = "Look there for a line that is missing, joined or split on one side"
        findings.append(finding("both", "error", "out-of-step", lines, message, remedy))


def _shifts(source: Side, target: Side) -> NDArray[np.int32] | None:
    """For every source line, how much further down its translation seems to stand."""
    from isogloss.tasks.align._numba.doctor import best_shifts

    gap = len(target.text) - len(source.text)
    lengths = [_log_lengths(side) for side in (source, target)]
    centre = float(np.median(lengths[1]) - np.median(lengths[0]))
    loose = math.hypot(*(float(np.std(values)) for values in lengths))
    if loose < 1e-6:
        loose = 1e-6
    tight = min(0.35, 0.7 * loose)
    marks = [_last_marks(side) for side in (source, target)]
    anchors = _anchors(source, target)
    shifts: NDArray[np.int32] = best_shifts(
        np.column_stack((lengths[0] + centre, marks[0])),
        np.column_stack((lengths[1], marks[1])),
        *anchors,
        (tight, loose),
        min(0, gap) - 3,
        max(0, gap) + 3,
        gap,
        _PENALTY,
    )
    return shifts


def _log_lengths(side: Side) -> NDArray[np.float64]:
    """Logarithm of the number of letters of each line."""
    sizes = np.fromiter((len(word) + 1 for word in side.types), np.int64, len(side.types))
    lengths: NDArray[np.float64] = np.log1p(side.per_line(sizes))
    return lengths


def _last_marks(side: Side) -> NDArray[np.float64]:
    """A number for the mark at the end of each line: questions answer questions."""
    of_type = np.fromiter((_MARKS.find(word[-1]) + 1 for word in side.types), np.int64, len(side.types))
    lengths, ends = side.text.ids.lengths, side.text.ids.offsets[1:] - side.text.ids.offsets[0]
    marks = np.zeros(len(lengths))
    full = lengths > 0
    marks[full] = of_type[side.ids[ends[full] - 1]]
    return marks


def _anchors(source: Side, target: Side) -> tuple[Numbers, Numbers, Numbers, Numbers, NDArray[np.float64]]:
    """Words that are written alike on both sides and rare enough to mean something: numbers, names."""
    there = target.text.vocabulary.encode(source.types)
    shared = np.flatnonzero(there >= 0)
    n_lines = max(len(source.text), len(target.text), 1)
    counts = np.maximum(source.counts[shared], target.counts[there[shared]])
    fewer = np.minimum(source.counts[shared], target.counts[there[shared]])
    alike = (counts <= max(1, 0.02 * n_lines)) & (counts <= 3 * fewer + 2)
    shared, counts = shared[alike], counts[alike]
    weights = np.minimum(np.log(n_lines / counts), 6.0) / 2
    numbers = np.arange(len(shared))
    of_source, of_target = (np.full(len(side.types), -1, np.int64) for side in (source, target))
    of_source[shared], of_target[there[shared]] = numbers, numbers
    rows = (_sorted_rows(side, of_type) for side, of_type in ((source, of_source), (target, of_target)))
    (source_words, source_offsets), (target_words, target_offsets) = rows
    return source_words, source_offsets, target_words, target_offsets, weights


def _sorted_rows(side: Side, of_type: Numbers) -> tuple[Numbers, Numbers]:
    """The numbers that the words of each line have, those that have one, in ascending order, each once."""
    numbers = of_type[side.ids]
    row = np.repeat(np.arange(len(side.text)), side.text.ids.lengths)
    row, numbers = row[numbers >= 0], numbers[numbers >= 0]
    keys = np.sort(row * (int(of_type.max(initial=0)) + 1) + numbers)
    keys = keys[np.concatenate([np.ones(min(len(keys), 1), bool), keys[1:] != keys[:-1]])]
    row, numbers = np.divmod(keys, int(of_type.max(initial=0)) + 1)
    return numbers, np.searchsorted(row, np.arange(len(side.text) + 1))
