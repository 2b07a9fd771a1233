"""`isogloss joint`: parse both sides of a bitext and align their words together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._bilingual import refuse_idle, train_bilingual
from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Resume,
    Threads,
    check_output,
    compiling,
    progress_for,
    say,
    write_json,
    write_result,
)
from isogloss.cli._constituents import is_trees
from isogloss.cli._joint_constituents import read_constituent_pairs, train_constituents
from isogloss.cli._memory import Look, say_if_strange
from isogloss.cli._models import load_aligner, load_dependency_parser, load_joint
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder, read_treebank, standard_input_once
from isogloss.errors import TreebankError, UsageError
from isogloss.tasks.joint.options import JointPairOptions

if TYPE_CHECKING:
    from isogloss.data.tree_pairs import TreePairs

__all__ = ["COMMANDS", "apply", "score", "train", "view"]

LEARNING = "Learning"
SEPARATE = "Separate models"

SourceTrees = Annotated[
    str, typer.Argument(metavar="SRC", show_default=False, help="A treebank of the source side, in CoNLL-U.")
]
TargetTrees = Annotated[
    str, typer.Argument(metavar="TGT", show_default=False, help="The same sentences in the target language.")
]


@with_options(
    JointPairOptions,
    "linking", "coupling", "grain", "unlinked", "objective", "order", "tags", "passes", "folds",
    "prune_heads", "prune_links", "min_count", "l2", "iterations", "sweeps", "tolerance", "threshold", "seed",
    panel=LEARNING,
)  # fmt: skip
def train(
    source: SourceTrees,
    target: TargetTrees,
    save: SaveFolder,
    links: Annotated[
        str | None,
        typer.Argument(
            metavar="[LINKS]",
            show_default=False,
            help="Links between words, a line a pair (0-0 1-2). Without them, links are summed over.",
        ),
    ] = None,
    source_parser: Annotated[
        str | None,
        typer.Option(
            "--source-parser", metavar="MODEL", rich_help_panel=SEPARATE,
            help="A parser by `isogloss parse train` of other trees; otherwise one learns from SRC.",
        ),
    ] = None,
    target_parser: Annotated[
        str | None,
        typer.Option("--target-parser", metavar="MODEL", rich_help_panel=SEPARATE, help="The same of the target side."),
    ] = None,
    aligner: Annotated[
        str | None,
        typer.Option(
            "--aligner", metavar="MODEL", rich_help_panel=SEPARATE,
            help="An aligner by `isogloss align --save`, of more text; otherwise one learns from SRC and TGT.",
        ),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Learn how trees of two languages and the links between their words agree.

    Parsers of both sides and an aligner are learnt as well, unless they are given; `isogloss joint apply` then finds
    trees and links together.
    """
    training = Training(save, source, target, links, quiet=quiet)
    JointPairOptions(**options).check_params()
    _check_needed(options, links, (source_parser, target_parser), aligner)
    with compiling("joint-train", quiet, "60 s"):
        from isogloss.data.rows import counted
        from isogloss.tasks.joint import JointParserAligner

        given: dict[str, Any] = {}
        for name, path, load in (
            ("source_parser", source_parser, load_dependency_parser),
            ("target_parser", target_parser, load_dependency_parser),
            ("aligner", aligner, load_aligner),
        ):
            if path is not None:
                given[name] = load(path, threads)
        pairs = _read(source, target, links, encoding, errors)
        for name, side in (("source_parser", pairs.source), ("target_parser", pairs.target)):
            if name in given:
                say_if_strange(given[name].reading_, side)
        model = JointParserAligner(**options, threads=threads)
        model.fit(pairs, progress_for(quiet), checkpoint=training.checkpoint, resume=resume, **given)
    told = {"pairs": len(pairs), "features": model.n_features_, "trace": model.trace_}
    line = f"{counted(len(pairs), 'pair')}, {counted(model.n_features_, 'weight')} of agreement"
    training.keep(model, line, json=told if json else None, checkpoints=())


def _check_needed(
    options: dict[str, Any], links: str | None, parsers: tuple[str | None, str | None], aligner: str | None
) -> None:
    """Refuse options of what is not learnt."""
    if "unlinked" in options and links is None:
        raise UsageError("--unlinked is about links that are known. Leave it out, or give LINKS")
    if None not in parsers:
        refuse_idle(options, ("order", "tags", "passes", "seed"), "both parsers are given")
        if aligner is not None:
            refuse_idle(options, ("folds",), "both parsers and the aligner are given")


def apply(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            show_default=False,
            help="A folder by `isogloss joint train`, `train-constituents` or `train-bilingual`.",
        ),
    ],
    source: SourceTrees,
    target: TargetTrees,
    out_source: Annotated[
        str | None, typer.Option("--out-source", metavar="FILE", help="Write the trees of the source side here.")
    ] = None,
    out_target: Annotated[
        str | None, typer.Option("--out-target", metavar="FILE", help="Write the trees of the target side here.")
    ] = None,
    out_links: Annotated[
        str | None, typer.Option("--out-links", metavar="FILE", help="Write the links here, a line a pair.")
    ] = None,
    separate: Annotated[
        bool, typer.Option("--separate", help="By the separate parsers and the aligner, to compare with.")
    ] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Parse both sides of a bitext and align their words together.

    SRC and TGT are treebanks with the words (and tags) of the sentences, in brackets for a model of constituents; trees
    that they have are not looked at.
    """
    began = time.perf_counter()
    wanted = (out_source, out_target, out_links)
    if not any(wanted):
        raise UsageError("nothing would be written. Give --out-source, --out-target or --out-links")
    written = [path for path in wanted if path is not None]
    if len(set(written)) < len(written):
        raise UsageError(f"{max(written, key=written.count)}: two results cannot go to one file. Give each its own")
    standard_input_once(source, target)
    for path in wanted:
        check_output(path, [source, target])
    with compiling("joint-apply", quiet):
        from isogloss.data.formats import format_links
        from isogloss.data.rows import counted
        from isogloss.tasks.joint import JointConstituentAligner

        loaded: Any = load_joint(model, threads)
        read = read_constituent_pairs if isinstance(loaded, JointConstituentAligner) else _read
        pairs: Any = read(source, target, None, encoding, errors)
        Look(loaded.models_.aligner, model).at(pairs.bitext())
        found = loaded.separate(pairs) if separate else loaded.predict(pairs)
        links = [] if found.links is None else found.links
        results = (found.source.to_bytes(), found.target.to_bytes(), format_links(links))
        for path, made in zip(wanted, results, strict=True):
            if path is not None:
                write_result(path, made)
    seconds = time.perf_counter() - began
    n_links = sum(len(row) for row in links)
    say(f"{counted(len(found), 'pair')}, {counted(n_links, 'link')}, {seconds:.1f} s", quiet)


def score(
    found_source: Annotated[str, typer.Argument(metavar="SRC", show_default=False, help="Trees that were found.")],
    found_target: Annotated[str, typer.Argument(metavar="TGT", show_default=False, help="Those of the target side.")],
    gold_source: Annotated[str, typer.Argument(metavar="GOLD-SRC", show_default=False, help="The right trees.")],
    gold_target: Annotated[str, typer.Argument(metavar="GOLD-TGT", show_default=False, help="The right trees.")],
    links: Annotated[
        str | None, typer.Option("--links", metavar="FILE", help="Links that were found; needs --gold-links.")
    ] = None,
    gold_links: Annotated[
        str | None, typer.Option("--gold-links", metavar="FILE", help="The right links; needs --links.")
    ] = None,
    content: Annotated[
        bool,
        typer.Option(
            "--content",
            help="Gold links are of content words alone: links between two words that gold has none of do not count.",
        ),
    ] = False,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score trees of both sides, the brackets that they make, and links, in percent.

    Of dependency trees, a bracket is the words below a head with the head itself, where these are a run of two words or
    more; it has the tag of its head as a label. Trees of constituents (.mrg, .brackets) are scored by EVALB's rules.
    """
    standard_input_once(found_source, found_target, gold_source, gold_target, links, gold_links)
    check_output(output, [found_source, found_target, gold_source, gold_target, links, gold_links])
    if (links is None) != (gold_links is None):
        raise UsageError("links are scored against links: give both --links and --gold-links, or neither")
    if content and links is None:
        raise UsageError("--content says nothing without --links. Leave it out, or give --links and --gold-links")
    with compiling("joint-score", quiet, "10 s"):
        from isogloss.metrics.pairs import score_pairs

        paths = (found_source, found_target, links), (gold_source, gold_target, gold_links)
        if is_trees(found_source):
            from isogloss.metrics.constituent_pairs import score_constituent_pairs

            told = score_constituent_pairs(
                *(read_constituent_pairs(*own, encoding, errors) for own in paths), content=content
            ).as_dict()
            _write_scores(told, json, output)
            return
        found, gold = (_read(*own, encoding, errors) for own in paths)
        told = score_pairs(found, gold, content=content).as_dict()
        words = gold.source.n_words + gold.target.n_words
        if not words or not any("uas" in own or "aer" in own for own in told.values()):
            raise TreebankError(
                f"{gold_source}, {gold_target}: there is nothing to score, since these or {found_source} and "
                f"{found_target} have no words or no trees. Are they the right files?"
            )
    _write_scores(told, json, output)


def _write_scores(told: dict[str, Any], json: bool, output: str | None) -> None:
    if json:
        write_json(told, output)
        return
    lines = [f"{side} {name} {value:.2f}" for side, own in told.items() for name, value in _numbers(own)]
    lines += [
        f"{side} trees not scored ({own['left_out']['uas']})"
        for side, own in told.items()
        if "uas" in own.get("left_out", ())
    ]
    write_result(output, "\n".join([*lines, ""]))


def view(
    source: SourceTrees,
    target: TargetTrees,
    links: Annotated[str, typer.Argument(metavar="LINKS", show_default=False, help="Links between their words.")],
    output: Output = None,
    first: Annotated[int, typer.Option("--first", min=1, metavar="N", help="How many pairs to draw.")] = 50,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Draw both trees of each pair and the links between their words: source above, target below, upside down.

    Links of trees that synchronise, with those of the other side through the links of their words, are drawn thick.
    """
    standard_input_once(source, target, links)
    check_output(output, [source, target, links])
    from isogloss.data.rows import counted
    from isogloss.show.tree_pairs import tree_pairs_page

    pairs = _read(source, target, links, encoding, errors)
    drawn = min(first, len(pairs))
    write_result(output, tree_pairs_page((pairs.as_dict(k) for k in range(drawn)), f"{source} – {target}"))
    say(f"{counted(drawn, 'pair')} of {len(pairs):,}", quiet)


def _numbers(told: dict[str, Any]) -> list[tuple[str, float]]:
    trees = ("exact",) if "exact" in told else ("uas", "las", "brackets")  # of constituents, or of dependencies
    wanted = (*trees, "precision", "recall", "f1", "aer")
    return [(name, float(told[name])) for name in wanted if told.get(name) is not None]


def _read(source: str, target: str, links: str | None, encoding: str, errors: str) -> TreePairs:
    from isogloss.data.formats import read_links
    from isogloss.data.tree_pairs import TreePairs

    trees = [read_treebank(path, encoding, errors) for path in (source, target)]
    pairs = TreePairs(trees[0], trees[1])
    if links is None:
        return pairs
    return TreePairs(trees[0], trees[1], read_links(links, bitext=pairs.bitext(), encoding=encoding))


COMMANDS = {
    "train": train,
    "train-constituents": train_constituents,
    "train-bilingual": train_bilingual,
    "apply": apply,
    "score": score,
    "view": view,
}
"""The commands of this group: ``isogloss joint train`` and so on."""
