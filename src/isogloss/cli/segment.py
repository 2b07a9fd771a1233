"""`isogloss segment`: learn to cut words into morphemes, cut them, and score what was cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Resume,
    Stopwatch,
    Threads,
    check_output,
    compiling,
    progress_for,
    say,
    warn,
    write_json,
    write_result,
)
from isogloss.cli._memory import say_if_strange
from isogloss.cli._models import header_of, load_segmenter
from isogloss.cli._options import with_options
from isogloss.cli._segment_pairs import (
    BITEXT,
    BitextOption,
    learnt_from_pairs,
    pairs_of,
    told_of,
    train_pairs,
    words_alone,
)
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder, standard_input_once, table_lines
from isogloss.errors import UsageError
from isogloss.tasks.segment.options import (
    LINKED,
    OF_BITEXT,
    OF_GOLD,
    STAGES,
    BilingualSegmenterOptions,
    SegmenterOptions,
)

if TYPE_CHECKING:
    from isogloss.data import Segmentation, Text
    from isogloss.tasks.segment import Segmenter

__all__ = ["COMMANDS", "apply", "explain", "links", "score", "train"]

Model = Annotated[
    str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss segment train`.")
]
RUNNING = 0.2
"""Frequent words are at least this share of running text; of lists of words, no words are frequent."""
_LINES = "words or sentences a line; what stands behind a tab is left out"


@with_options(
    {"": SegmenterOptions, "with --bitext": BilingualSegmenterOptions},
    "length_penalty", "rounds", "frequencies", "base_power", "leave_out", "shortest_stem", "longest_affix", "prefixes",
    "suffixes", "longest", "gold_as", "l2", "iterations", "min_count", "rewrites",
    *OF_BITEXT, panel="Learning", first=("model",),
)  # fmt: skip
def train(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", show_default=False, help=f"Text of the language: {_LINES}.")
    ],
    save: SaveFolder,
    gold: Annotated[
        str | None,
        typer.Option(
            "--gold", metavar="FEW", show_default=False,
            help="Words that were cut by people, a word a line, a tab and its morphemes, @@ before each but the first: "
            "`unhappily<TAB>un @@happy @@ly`. Or sentences, with the morphemes of all their words.",
        ),
    ] = None,
    bitext: BitextOption = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    resume: Resume = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Learn to cut words into morphemes, from text alone, with some words that people have cut, or with a translation.

    `isogloss segment apply` then cuts new words. With --bitext, morphemes are aligned with the words of the
    translation, and `isogloss segment links` links words; words that people have cut keep their boundaries.
    """
    training = Training(save, text, gold, bitext, quiet=quiet)
    _check_company(options, bitext)
    (SegmenterOptions if bitext is None else BilingualSegmenterOptions)(**options).check_params()
    if gold is None and (idle := [name for name in OF_GOLD if name in options]):
        raise UsageError(f"--{idle[0].replace('_', '-')} says nothing without --gold. Leave it out, or give words")
    stage = "segment-train" + ("" if gold is None else "-gold") + ("" if bitext is None else "-bitext")
    with compiling(stage, quiet, "60 s"):
        from isogloss.data import Segmentation
        from isogloss.tasks.segment import Segmenter

        given = _read(text, encoding, errors)
        few = None if gold is None else Segmentation.read(gold, encoding=encoding, errors=errors)
        if bitext is not None:
            learnt, pairs = train_pairs(
                training, given, bitext, few, options, threads, encoding, errors, quiet=quiet, resume=resume
            )  # fmt: skip
            line = f"{len(pairs):,} lines with translations, {learnt.n_translations_:,} translations of morphemes"
            checkpoints = [training.checkpoint, f"{training.checkpoint}.{STAGES[0]}"]
            training.keep(learnt, line, json=told_of(learnt, pairs) if json else None, checkpoints=checkpoints)
            return
        segmenter = Segmenter(**options, threads=threads)
        segmenter.fit(given, few, progress_for(quiet), checkpoint=training.checkpoint, resume=resume)
    told = {
        "lines": len(given), "words": given.n_words, "types": len(set(given.vocabulary)),
        "gold": None if few is None else few.n_words, "features": segmenter.n_features_, "rules": segmenter.n_rules_,
        "length_penalty": segmenter.length_penalty_, "trace": segmenter.trace_,
    }  # fmt: skip
    checkpoints = [training.checkpoint, *(f"{training.checkpoint}.{stage}" for stage in STAGES)]
    training.keep(segmenter, *_lines_of(segmenter, given, few), json=told if json else None, checkpoints=checkpoints)


def _check_company(options: dict[str, Any], bitext: str | None) -> None:
    """Refuse options that say nothing with, or without, a translation."""
    idle = [name for name in options if name in (OF_BITEXT if bitext is None else OF_GOLD)]
    if idle:
        flag, what = f"--{idle[0].replace('_', '-')}", "without" if bitext is None else "with"
        raise UsageError(f"{flag} says nothing {what} --bitext. Leave it out" + (
            ", or give a translation" if bitext is None else ""
        ))  # fmt: skip


def _read(path: str, encoding: str, errors: str) -> Text:
    from isogloss.data.formats.segmentations import read_words

    return read_words(path, encoding=encoding, errors=errors)


def _lines_of(segmenter: Segmenter, text: Text, gold: Segmentation | None) -> Iterator[str]:
    from isogloss.data.rows import counted

    yield f"{counted(text.n_words, 'word')} of text, {len(set(text.vocabulary)):,} different ones"
    if gold is not None:
        learnt = "their boundaries were kept"
        if segmenter.supervised_:
            rules = f", {counted(segmenter.n_rules_, 'rule')} of spelling" if segmenter.n_rules_ else ""
            learnt = f"{counted(segmenter.n_features_, 'attribute')}{rules}"
        yield f"{counted(gold.n_words, 'word')} cut by people: {learnt}; length penalty {segmenter.length_penalty_:g}"


def apply(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="IN", show_default=False, help=f"What is to be cut: {_LINES}.")],
    output: Output = None,
    labels: Annotated[
        bool, typer.Option("--labels", help="Add a column with the type of each morpheme: prefix, stem or suffix.")
    ] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Add a column with the probability of the morphemes of each word.")
    ] = False,
    nbest: Annotated[
        int | None,
        typer.Option(
            "--nbest", metavar="N", min=1, show_default=False,
            help="Write the N best ways to cut each word instead, as `line<TAB>word<TAB>morphemes<TAB>probability`; "
            "lines are counted from 0.",
        ),
    ] = None,
    bitext: BitextOption = None,
    threads: Threads = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:  # fmt: skip
    """Cut words into morphemes: `word<TAB>mor @@phemes`, one line for each line of the input, empty for an empty one.

    Of a sentence the line has the morphemes of all its words. A segmenter that has learnt with a translation looks at
    one with --bitext; without it, words are cut alike wherever they stand.
    """
    watch = Stopwatch()
    standard_input_once(text, bitext)
    check_output(output, [text, bitext])
    header_of(model, "segment")
    if bitext is not None and (confidence or nbest is not None):
        raise UsageError("--confidence and --nbest are for words without a translation. Leave --bitext or them out")
    if nbest is not None and (labels or confidence):
        raise UsageError("--nbest has columns of its own. Leave --labels and --confidence out")
    with compiling("segment-apply", quiet, "30 s"):
        segmenter = load_segmenter(model, threads)
        given = _read(text, encoding, errors)
        alone = words_alone(segmenter)
        known = None if segmenter.reading_ is None else segmenter.reading_.frequent
        if known is not None and known.share >= RUNNING:
            say_if_strange(segmenter.reading_, given)
        if bitext is not None:
            pairs, morphemes = pairs_of(bitext, given, encoding, errors)
            found = learnt_from_pairs(segmenter, model).predict(pairs, morphemes)
            write_result(output, found.to_bytes(labels=labels))
        elif nbest is not None:
            write_result(output, _ways(alone, given, nbest))
        else:
            write_result(output, alone.predict(given).to_bytes(labels=labels, confidence=confidence))
    if not given.n_words:
        warn(f"{given.name}: there are no words in it")
    say(f"{given.n_words:,} words, {watch}", quiet)


def _ways(segmenter: Segmenter, text: Text, k: int) -> Iterator[str]:
    from isogloss.data.segmentation import MARK

    found = iter(segmenter.predict_k_best(text, k))
    for line in range(len(text)):
        for word in text.tokens(line):
            for probability, morphemes in next(found):
                yield f"{line}\t{word}\t{f' {MARK}'.join(morphemes)}\t{probability:.6g}\n"


def explain(
    model: Model,
    word: Annotated[str, typer.Argument(metavar="WORD", show_default=False, help="A word.")],
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show how probable each border in a word is, and the best ways to cut it."""
    header_of(model, "segment")
    with compiling("segment-apply", quiet, "30 s"):
        found = words_alone(load_segmenter(model)).explain(word)
    if json:
        write_json(found, output)
        return
    letters, borders = found["letters"], found["borders"]
    lines = [" ".join([letters[0], *(f"{p:.2f} {one}" for p, one in zip(borders, letters[1:], strict=True))]), ""]
    rows = [
        (" + ".join(way["morphemes"]), " ".join(way["labels"]), f"{100 * way['probability']:.1f}")
        for way in found["ways"]
    ]
    lines += table_lines(("morphemes", "types", "percent"), rows, 2)
    write_result(output, "\n".join([*lines, ""]))


def links(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss segment train --bitext`."),
    ],
    source: Annotated[str, typer.Argument(metavar="SRC", show_default=False, help=f"{BITEXT}.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help=f"Text: {_LINES}.")],
    output: Output = None,
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold", metavar="X", min=0, max=1,
            help="Two words are linked if more morphemes of one than this are expected to come from the other.",
        ),
    ] = LINKED,
    scores: Annotated[bool, typer.Option("--scores", help="Write the probability of each link.")] = False,
    threads: Threads = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:  # fmt: skip
    """Link the words of a text with those of its translation by their morphemes: `0-0 1-2`, a line for each line.

    Words are numbered from 0, those of SRC first, as `isogloss align` writes them.
    """
    watch = Stopwatch()
    standard_input_once(source, text)
    check_output(output, [source, text])
    header_of(model, "segment")
    with compiling("segment-links", quiet, "30 s"):
        from isogloss.data.formats.links import format_links

        segmenter = learnt_from_pairs(load_segmenter(model, threads), model)
        pairs, morphemes = pairs_of(source, _read(text, encoding, errors), encoding, errors)
        found = segmenter.links(pairs, morphemes, threshold=threshold)
        write_result(output, format_links(found, scores=scores))
    say(f"{len(pairs):,} pairs, {len(found.source):,} links, {watch}", quiet)


def score(
    found: Annotated[
        str, typer.Argument(metavar="OUT", show_default=False, help="What `isogloss segment apply` wrote.")
    ],
    gold: Annotated[
        str, typer.Argument(metavar="GOLD", show_default=False, help="The right morphemes of the same lines.")
    ],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="FILE", help="Those of a second system: is the difference more than chance?"),
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score morphemes against gold: precision, recall and F1, in percent.

    Morphemes are counted as the SIGMORPHON 2022 shared task does, by the longest common subsequence of each line;
    borders inside words, where morphemes of gold that are spelt otherwise are found again in their words; and EMMA
    matches what is found with morphemes of gold, whatever it is called.
    """
    check_output(output, [found, gold, against])
    standard_input_once(found, gold, against)
    with compiling("segment-score", quiet, "10 s"):
        from isogloss.data import Segmentation
        from isogloss.metrics.segmentation import compare_segmentations, score_segmentation

        ours, right, other = (
            None if path is None else Segmentation.read(path, encoding=encoding, errors=errors)
            for path in (found, gold, against)
        )
        assert ours is not None and right is not None
        told = score_segmentation(ours, right).as_dict()
        if other is not None:
            told["against"] = compare_segmentations(ours, other, right).as_dict()
    if json:
        write_json(told, output)
        return
    rows = [
        (name, *(f"{told[kind][rate]:.2f}" for rate in ("precision", "recall", "f1")))
        for name, kind in (("morphemes", "morpheme"), ("borders", "boundary"), ("EMMA", "emma"))
    ]
    lines = [*table_lines(("", "precision", "recall", "f1"), rows, 1), f"words right {told['words_right']:.2f}"]
    lines += [told["signature"]]
    if "against" in told:
        theirs = told["against"]
        low, high = theirs["interval"]
        spread = f"({low:+.2f} to {high:+.2f})"
        lines.append(f"f1 {theirs['delta']:+.2f} {spread} against {theirs['second']:.2f}, p = {theirs['p_value']:.4f}")
    write_result(output, "\n".join([*lines, ""]))


COMMANDS = {"train": train, "apply": apply, "links": links, "explain": explain, "score": score}
"""The commands of this group: ``isogloss segment train`` and so on."""
