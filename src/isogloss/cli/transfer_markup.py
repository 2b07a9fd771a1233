"""`isogloss transfer-markup`, or `transfer markup`: tags and placeholders of the source, placed in the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Output,
    Quiet,
    SourceEncoding,
    TargetEncoding,
    Threads,
    Tokenise,
    check_output,
    compiling,
    progress_for,
    say,
    write_result,
)
from isogloss.cli._memory import Look, as_remembered, reading_of
from isogloss.cli._models import load_aligner
from isogloss.errors import BitextError, UsageError

if TYPE_CHECKING:
    from isogloss.data import Bitext, Links
    from isogloss.tasks.transfer import Tag

__all__ = ["command", "linker"]

_STREAMED = 10_000

Block = tuple[list[str], list[str], int]


def command(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", show_default=False, help="Source text with tags or placeholders.")
    ],
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", show_default=False, help="Its translation, without them.")
    ] = None,
    links: Annotated[
        str | None,
        typer.Argument(metavar="[LINKS]", show_default=False, help="Links of the source without its markup (--strip)."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Find the links with this saved model.")
    ] = None,
    output: Output = None,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="List the tags whose place is a guess: line, tag, why."),
    ] = None,
    strip: Annotated[
        bool, typer.Option("--strip", help="Write SOURCE without its markup, to be aligned, and do no more.")
    ] = False,
    keep_placeholders: Annotated[
        bool, typer.Option("--keep-placeholders", help="Treat {0}, %s and the like as words, not as markup.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    source_encoding: SourceEncoding = None,
    target_encoding: TargetEncoding = None,
    errors: Errors = "strict",
    tokenise: Tokenise = None,
) -> None:
    """Carry inline tags (<b>, <g id="1">, <x/>) and placeholders ({0}, %s) of the source into the target.

    Tags go where the links say that their words went. With neither LINKS nor --model, it trains on the text first.
    Every tag is written once, tags nest as they did, and the words of the target stay as they are; how many places are
    a guess is said at the end.
    """
    from isogloss.data.formats.files import side_encodings

    if [source, target, links].count("-") > 1:
        raise UsageError("standard input can be one of the files only")
    for path in (output, report):
        check_output(path, [source, target, links])
    if strip and (target is not None or model is not None):
        raise UsageError("--strip writes SOURCE without its markup, and takes no TARGET, LINKS or --model")
    if not strip and target is None:
        raise UsageError("the translation is missing: give SOURCE and TARGET, or --strip")
    if links is not None and model is not None:
        raise UsageError("LINKS and --model exclude each other; give one of them")
    form = as_remembered({"tokenise": tokenise, "normalise": None}, reading_of(model), model)
    work = _Work(form, not keep_placeholders, errors)
    encodings = side_encodings(encoding, source_encoding, target_encoding)
    if strip:
        write_result(output, work.stripped(source, encodings[0]))
        return
    assert target is not None
    with compiling("transfer-markup" if links is not None else "align", quiet, "10 s" if links is not None else "30 s"):
        blocks = work.blocks((source, target), encodings, None if model is None else _STREAMED)
        linked = linker(links, model, threads, quiet)
        write_result(output, work.placed(blocks, (f"{source} (without markup)", target), linked))
    if report is not None:
        write_result(report, "".join(f"{line}\t{tag}\t{reason}\n" for line, tag, reason in work.guesses))
    lines = sorted({line for line, _, _ in work.guesses})
    where = f"; a guess in {len(lines):,} of them, first in line {lines[0]:,}" if lines else ""
    say(f"{work.tags:,} tags placed in {work.marked:,} lines{where}", quiet)


def linker(links: str | None, model: str | None, threads: int | None, quiet: bool) -> Callable[[Bitext], Links]:
    """What finds the links of a bitext."""
    if links is not None:
        from isogloss.data.formats import read_links

        return lambda bitext: read_links(links, bitext=bitext)
    if model is not None:
        aligner = load_aligner(model, threads)
        look = Look(aligner, model)

        def predict(bitext: Bitext) -> Links:
            look.at(bitext)
            links: Links = aligner.predict(bitext)
            return links

        return predict
    from isogloss.tasks.align import HMMAligner

    progress = progress_for(quiet)
    return lambda bitext: HMMAligner(threads=threads).fit_predict(bitext, progress=progress)


class _Work:
    """Lines on their way, and what was met."""

    def __init__(self, form: dict[str, Any], placeholders: bool, errors: str) -> None:
        self.tokenise, self.normalise = form["tokenise"], form["normalise"]
        self.placeholders, self.errors = placeholders, errors
        self.guesses: list[tuple[int, str, str]] = []
        self.tags = self.marked = 0

    def _lines(self, path: str, encoding: str, size: int | None) -> Iterator[list[str]]:
        """Blocks of lines, all in one if there is no size; a carriage return at the end of a line is not of it."""
        from isogloss.data.formats import open_lines

        for block in open_lines(path, size=size or 2**62, encoding=encoding, errors=self.errors):
            lines = block.decode().split("\n")
            yield lines[:-1] if not lines[-1] else lines

    def stripped(self, path: str, encoding: str) -> Iterator[str]:
        from isogloss.tasks.transfer import strip_markup

        for lines in self._lines(path, encoding, _STREAMED):
            for line in lines:
                tokens, _ = strip_markup(line, placeholders=self.placeholders, tokenise=self.tokenise)
                yield " ".join(tokens) + "\n"

    def blocks(self, paths: tuple[str, str], encodings: tuple[str, str], size: int | None) -> Iterator[Block]:
        """Lines of both sides, and the number of the first."""
        done = 0
        sides = [self._lines(path, encoding, size) for path, encoding in zip(paths, encodings, strict=True)]
        for left, right in zip_longest(*sides, fillvalue=cast(list[str], [])):
            if len(left) != len(right):
                n_source, n_target = (
                    done + len(block) + sum(map(len, rest)) for block, rest in zip((left, right), sides, strict=True)
                )
                raise BitextError(
                    f"{paths[0]} has {n_source} lines but {paths[1]} has {n_target}: line k of one must translate line "
                    "k of the other. `isogloss doctor` says where they part"
                )
            yield left, right, done + 1
            done += len(left)

    def placed(
        self, blocks: Iterator[Block], names: tuple[str, str], linked: Callable[[Bitext], Links]
    ) -> Iterator[str]:
        from isogloss.data import Bitext, Text
        from isogloss.data.tokenise import normalise_words
        from isogloss.tasks.transfer import strip_markup
        from isogloss.tasks.transfer._tags import word_spans

        for source, target, first in blocks:
            stripped = [strip_markup(line, placeholders=self.placeholders, tokenise=self.tokenise) for line in source]
            words = [[line[a:b] for a, b in word_spans(line, self.tokenise)] for line in target]
            left = normalise_words(Text.of((tokens for tokens, _ in stripped), names[0]), self.normalise)
            bitext = Bitext(left, normalise_words(Text.of(words, names[1]), self.normalise), first)
            yield from self._placed(stripped, target, bitext, linked(bitext))

    def _placed(
        self, stripped: list[tuple[list[str], list[Tag]]], target: list[str], bitext: Bitext, links: Links
    ) -> Iterator[str]:
        from isogloss.tasks.transfer import place_markup

        for pair, ((tokens, tags), line) in enumerate(zip(stripped, target, strict=True)):
            if not tags:
                yield line + "\n"
                continue
            placement = place_markup(tags, len(tokens), line, links[pair], tokenise=self.tokenise)
            self.guesses += [(bitext.line_of(pair), guess.tag, guess.reason) for guess in placement.guesses]
            self.tags += len(tags)
            self.marked += 1
            yield placement.line + "\n"
