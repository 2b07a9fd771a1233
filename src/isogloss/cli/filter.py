"""`isogloss filter`: drop sentence pairs that are not translations of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Json,
    Quiet,
    Source,
    Target,
    Threads,
    check_output,
    compiling,
    progress_for,
    say,
    write_json,
    write_result,
)
from isogloss.cli._memory import Look
from isogloss.cli._models import load_aligner
from isogloss.cli._reading import ReadingOptions, with_reading
from isogloss.errors import UsageError

if TYPE_CHECKING:
    from isogloss.data import Bitext
    from isogloss.tasks.align.filtering import Verdicts

__all__ = ["command"]

_STREAMED = 10_000


@with_reading
def command(
    source: Source,
    target: Target = None,
    output: Annotated[
        tuple[str, str] | None,
        typer.Option("--output", "-o", metavar="SOURCE TARGET", help="Two files for the pairs that are kept."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Judge with this model, of other text, in a stream.")
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option("--keep", metavar="SHARE", min=0, max=1, help="Keep this share of the pairs, the best."),
    ] = None,
    least: Annotated[
        float | None,
        typer.Option("--least", metavar="SCORE", help="Keep pairs of this score and more; found without it."),
    ] = None,
    scores: Annotated[
        str | None, typer.Option("--scores", metavar="FILE", help="Score and verdict of every pair, a line each.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Print how many pairs were dropped for which reason, and the first lines.")
    ] = False,
    max_length: Annotated[
        int, typer.Option("--max-length", metavar="N", min=1, help="Drop pairs with more words on a side.")
    ] = 1000,
    ratio: Annotated[
        float,
        typer.Option("--ratio", metavar="R", min=1, help="Drop pairs with a side R times as long as it should be."),
    ] = 3.0,
    keep_identical: Annotated[
        bool, typer.Option("--keep-identical", help="Keep long pairs whose two sides are the same text.")
    ] = False,
    drop_duplicates: Annotated[
        bool, typer.Option("--drop-duplicates", help="Keep a pair that comes again only once.")
    ] = False,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    asked: ReadingOptions,
) -> None:
    """Drop sentence pairs that are not translations of each other.

    The score of a pair is the gain in log-probability a word from seeing the other side: mostly above 0 for
    translations. Without --model the text judges itself, each half by an aligner trained on the other half. Without
    --keep and --least, the score that is good enough is found by comparing with pairs put together at random. Empty,
    overlong, copied and lopsided pairs are dropped before scores are looked at.
    """
    if keep is not None and least is not None:
        raise UsageError("--keep and --least exclude each other; give one of them")
    if output is None and scores is None and not report and not json:
        raise UsageError("nothing is asked for: give -o SOURCE TARGET, --scores FILE, --report or --json")
    if output is not None and output[0] == output[1]:
        raise UsageError(f"-o: both sides would be written to {output[0]}; give two names")
    for path in (*(output or ()), scores):
        check_output(path, [source, target])
    reading = asked.of(model, source)
    with compiling("align", quiet):
        from isogloss.tasks.align.filtering import PairFacts, judge

        parts = _parts(source, target, reading, whole=model is None)
        judged = _judge(model, threads, quiet)
        facts = PairFacts.together([PairFacts.of(part, *judged(part)) for part in parts()])
        verdicts = judge(
            facts,
            keep=keep,
            least=least,
            max_length=max_length,
            ratio=ratio,
            identical=keep_identical,
            duplicates=not drop_duplicates,
        )
        if output is not None:
            _write(parts(), verdicts, output)
    if scores is not None:
        write_result(scores, _score_lines(verdicts))
    if json:
        write_json(_as_dict(verdicts))
    elif report:
        write_result(None, _table(verdicts))
    say(_summary(verdicts), quiet)


def _parts(source: str, target: str | None, reading: dict[str, Any], *, whole: bool) -> Callable[[], Iterable[Bitext]]:
    """The text part by part, as often as it is asked for; in one part when it is to be trained on."""
    from isogloss.data.formats import read_bitext, stream_bitext

    if whole:
        held = [read_bitext(source, target, **reading)]
        return lambda: held
    if "-" in (source, target):
        kept = list(stream_bitext(source, target, size=_STREAMED, **reading))
        return lambda: kept
    return lambda: stream_bitext(source, target, size=_STREAMED, **reading)


def _summary(verdicts: Verdicts) -> str:
    least = f", of score {verdicts.least:.2f} and more" if abs(verdicts.least) < float("inf") else ""
    noise = f"; about {verdicts.noise:.1%} seem to be no translations" if least and verdicts.noise > 0 else ""
    return f"{verdicts.counts()['kept']:,} of {len(verdicts):,} pairs kept{least}{noise}"


def _judge(model: str | None, threads: int | None, quiet: bool) -> Callable[[Bitext], tuple[Any, Any]]:
    """What scores the pairs of a text."""
    from isogloss.tasks.align.filtering import scores_of

    if model is None:
        from isogloss.tasks.align import HMMAligner
        from isogloss.tasks.align.filtering import cross_scores

        progress = progress_for(quiet)
        return lambda bitext: cross_scores(bitext, make=lambda: HMMAligner(threads=threads), progress=progress)
    aligner = load_aligner(model, threads)
    look = Look(aligner, model)

    def judged(bitext: Bitext) -> tuple[Any, Any]:
        look.at(bitext)
        return scores_of(aligner, bitext)

    return judged


def _write(parts: Iterable[Bitext], verdicts: Verdicts, output: tuple[str, str]) -> None:
    """Both sides of the pairs that are kept; neither file is there if the work is stopped."""
    from isogloss.data.formats import atomic_write
    from isogloss.data.formats.bitexts import lines_of

    with ExitStack() as stack:
        files = [stack.enter_context(atomic_write(path)) for path in output]
        done = 0
        for part in parts:
            kept = part.take(verdicts.keep[done : done + len(part)])
            for file, text in zip(files, (kept.source, kept.target), strict=True):
                file.write(lines_of(text, untokenised=True))
            done += len(part)


def _score_lines(verdicts: Verdicts) -> Iterator[str]:
    from isogloss.tasks.align.filtering import REASONS

    for score, reason in zip(verdicts.score.tolist(), verdicts.reason.tolist(), strict=True):
        yield f"{score:.4f}\t{REASONS[reason]}\n" if score == score else f"\t{REASONS[reason]}\n"


def _as_dict(verdicts: Verdicts) -> dict[str, Any]:
    counts = verdicts.counts()
    return {
        "pairs": len(verdicts),
        "least": verdicts.least,
        "noise": 100 * verdicts.noise,
        "counts": counts,
        "first_lines": {name: [pair + 1 for pair in verdicts.first(name)] for name in counts if name != "kept"},
    }


def _table(verdicts: Verdicts) -> Iterator[str]:
    width = len(f"{len(verdicts):,}")
    for name, count in verdicts.counts().items():
        share = f"{count / max(len(verdicts), 1):7.2%}"
        first = "" if name == "kept" else "  lines " + ", ".join(str(pair + 1) for pair in verdicts.first(name))
        if count or name == "kept":
            yield f"{name:10} {count:{width},}  {share}{first}{', ...' if count > 5 and name != 'kept' else ''}\n"
