"""`isogloss transfer`: what is known of one language, carried to another through translations."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Output,
    Quiet,
    SourceEncoding,
    TargetEncoding,
    Threads,
    check_output,
    compiling,
    progress_for,
    say,
    warn,
    write_result,
)
from isogloss.cli._evidence import bitext_option, check_bitext, links_option, source_trees_option
from isogloss.cli._models import check_dependency_parser, load_dependency_parser
from isogloss.cli._transfer_combining import combine
from isogloss.cli._transfer_names import names
from isogloss.cli._transfer_training import apply, train
from isogloss.cli._treebanks import read_treebank, standard_input_once
from isogloss.cli.transfer_markup import command as markup
from isogloss.cli.transfer_markup import linker
from isogloss.errors import TreebankError, UsageError

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank

__all__ = ["COMMANDS", "apply", "combine", "markup", "names", "project", "train"]

WHAT = "heads,tags,feats"


def project(
    bitext: Annotated[tuple[str, str], bitext_option("Two texts, line by line translations, tokenised.")],
    source_trees: Annotated[str, source_trees_option("SOURCE in CoNLL-U, with what is to be carried.")],
    links: Annotated[str | None, links_option()] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Find the links with this saved aligner.")
    ] = None,
    output: Output = None,
    what: Annotated[
        str, typer.Option("--what", metavar="A,B", help="What to carry: some of heads, tags, feats and names.")
    ] = WHAT,
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="P", help="Carry nothing that is less probable than this.")
    ] = 0.0,
    fill: Annotated[
        bool,
        typer.Option(
            "--fill/--partial",
            help="Fill in the heads that nothing was carried to, or leave them open (_). [default: partial]",
            show_default=False,
        ),
    ] = False,
    parser: Annotated[
        str | None,
        typer.Option(
            "--parser",
            metavar="MODEL",
            help="With --fill: the parser that does it; one is learnt from the carried heads without it.",
        ),
    ] = None,
    target_tags: Annotated[
        str | None,
        typer.Option(
            "--target-tags", metavar="FILE", help="TARGET in CoNLL-U: its columns stay where nothing is carried."
        ),
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    source_encoding: SourceEncoding = None,
    target_encoding: TargetEncoding = None,
    errors: Errors = "strict",
) -> None:
    """Carry trees, tags, morphology and names of the source to the target, along links.

    OUT is TARGET in CoNLL-U. MISC says where each head came from and how sure it is: Proj, the number of the source
    word, and ProjConf; TagProj and TagProjConf for tags and features.
    """
    from isogloss.data.formats.files import side_encodings

    began = time.perf_counter()
    asked = [name.strip() for name in what.split(",")]
    _check(bitext, asked, links, model, fill, parser, threshold)
    standard_input_once(*bitext, source_trees, links, target_tags)
    check_output(output, [*bitext, source_trees, links, target_tags])
    if parser is not None:
        check_dependency_parser(parser)  # before the work
    sides = side_encodings(encoding, source_encoding, target_encoding)
    with compiling("align" if links is None and model is None else "transfer-project", quiet, "30 s"):
        from isogloss.data.bitext import Bitext
        from isogloss.tasks.transfer.annotation import check_request, project_annotation

        text = Bitext.read(*bitext, source_encoding=sides[0], target_encoding=sides[1], errors=errors)
        source = read_treebank(source_trees, encoding, errors)
        target = None if target_tags is None else read_treebank(target_tags, encoding, errors)
        check_request(source, text, asked, threshold, target)  # before the work
        found = linker(links, model, threads, quiet)(text)
        carried = project_annotation(source, text, found, target=target, what=asked, threshold=threshold)
        made = _filled(carried, parser, threads, quiet) if fill else carried
        write_result(output, made.to_bytes())
    _report(carried, asked, time.perf_counter() - began, quiet)


def _check(
    bitext: tuple[str, str],
    what: list[str],
    links: str | None,
    model: str | None,
    fill: bool,
    parser: str | None,
    threshold: float,
) -> None:
    check_bitext(bitext)
    known = ("heads", "tags", "feats", "names")
    wrong = [name for name in what if name not in known]
    if wrong:
        raise UsageError(f"--what {','.join(what)}: {wrong[0]!r} is none of {', '.join(known)}")
    if links is not None and model is not None:
        raise UsageError("--links and --model exclude each other; give one of them")
    if (fill or parser is not None) and "heads" not in what:
        raise UsageError("--fill is for heads, and --what has none. Add heads to --what")
    if parser is not None and not fill:
        raise UsageError("--parser is for --fill, which fills in the heads that nothing was carried to")
    if not 0 <= threshold <= 1:
        raise UsageError(f"--threshold should be from 0 to 1, not {threshold}")


def _filled(carried: Treebank, model: str | None, threads: int | None, quiet: bool) -> Treebank:
    """With a head for every word."""
    from isogloss.tasks.parse import DependencyParser

    if model is not None:
        return load_dependency_parser(model, threads).complete(carried)
    ids, vocabulary = carried.columns["upos"]
    if (ids == vocabulary.index_of("_")).all():
        raise TreebankError(
            f"{carried.name}: no word has a tag, and --fill learns a parser that looks at tags. Carry them as well "
            "(--what heads,tags), or give --target-tags"
        )
    learner = DependencyParser(order=1, projective=True, threads=threads)
    return learner.fit(carried, progress=progress_for(quiet)).complete(carried)


def _report(carried: Treebank, what: list[str], seconds: float, quiet: bool) -> None:
    empty = int((carried.lengths == 0).sum())
    if empty:
        lines = "1 empty line has" if empty == 1 else f"{empty:,} empty lines have"
        warn(f"{carried.name}: {lines} no place in CoNLL-U and {'is' if empty == 1 else 'are'} left out")
    told: list[str] = []
    share = 100 / max(1, carried.n_words)
    if "heads" in what:
        told.append(f"heads of {share * int((carried.heads >= 0).sum()):.1f}%")
    if "tags" in what:
        ids, vocabulary = carried.columns["upos"]
        told.append(f"tags of {share * int((ids != vocabulary.index_of('_')).sum()):.1f}%")
    rest = f": {', '.join(told)} of the words" if told else ""
    say(f"{len(carried) - empty:,} sentences, {carried.n_words:,} words{rest}, {seconds:.1f} s", quiet)


COMMANDS = {"train": train, "apply": apply, "combine": combine, "project": project, "names": names, "markup": markup}
"""The commands of this group: ``isogloss transfer project`` and so on."""
