"""`isogloss adapt`: classify documents of a domain that has no labels, by those of one that has."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from isogloss.cli._common import (
    Encoding,
    Errors,
    Json,
    Output,
    Quiet,
    Threads,
    check_output,
    compiling,
    progress_for,
    say,
    write_json,
    write_result,
)
from isogloss.cli._labelled import Heading, LabelColumn, TextColumns, column_of, read_documents
from isogloss.cli._models import header_of, load_classifier
from isogloss.cli._options import with_options
from isogloss.cli._training import Training
from isogloss.cli._treebanks import SaveFolder, is_treebank, standard_input_once, table_lines
from isogloss.errors import UsageError
from isogloss.tasks.adapt.options import DocumentOptions

__all__ = ["COMMANDS", "apply", "diagnose", "score", "train"]

LEARNING = "Learning"
_FEW, _SHOWN = 5, 30
"""Kinds that are shown of each decomposition, and labels that are shown of a score."""


@with_options(
    DocumentOptions,
    "ngrams", "values", "min_count", "own_columns", "weighting", "loss", "l2", "prior", "rounds", "folds", "sharpness",
    "stable", "target_weight", "pivots", "pivot_count", "dimensions", "masking", "rescale", "own_centre", "positive",
    "blocks", "pivot_l2", "places_l2", "correction", "correction_by", "seed", panel=LEARNING, first=("method",),
)  # fmt: skip
def train(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", show_default=False, help="Documents with labels, a table with tabs.")
    ],
    save: SaveFolder,
    unlabelled: Annotated[
        str | None,
        typer.Option(
            "--unlabelled", metavar="TARGET", help="Documents of the new domain; labels in them are not looked at."
        ),
    ] = None,
    target_labels: Annotated[
        str | None,
        typer.Option("--target-labels", metavar="FEW", help="A few documents of the new domain with labels."),
    ] = None,
    label: LabelColumn = None,
    text: TextColumns = None,
    heading: Heading = False,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
    *,
    options: dict[str, Any],
) -> None:
    """Learn labels of documents, and adapt to documents of another domain.

    A document is a line of a table. `isogloss adapt apply` then labels new documents.
    """
    DocumentOptions(**options).check_params()
    if unlabelled is None and options.get("method") in ("scl", "scl-mi"):
        raise UsageError(f"--method {options['method']} needs documents of the new domain: --unlabelled TARGET")
    training = Training(save, source, unlabelled, target_labels, quiet=quiet)
    with compiling("adapt-train", quiet, "20 s"):
        from isogloss.data.rows import counted
        from isogloss.tasks.adapt import DocumentClassifier

        reading: dict[str, Any] = {"encoding": encoding, "errors": errors}
        given = read_documents(source, 0 if label is None else label, text, heading, **reading)
        more = {}
        if unlabelled is not None:
            more["unlabelled"] = read_documents(unlabelled, None, text, heading, given.columns, **reading)
        if target_labels is not None:
            at = 0 if label is None else label
            more["target_labels"] = read_documents(target_labels, at, text, heading, given.columns, **reading)
        classifier = DocumentClassifier(**options, threads=threads)
        classifier.fit(given, progress=progress_for(quiet), **more)
    shares = dict(zip(classifier.labels_, (100 * classifier.prior_).tolist(), strict=True))
    found = {
        "method": classifier.method, "documents": len(given), "unlabelled": len(more.get("unlabelled", ())),
        "labels": list(classifier.labels_), "features": classifier.n_features_, "prior": shares,
        "trace": classifier.trace_, "columns": _columns(given),
    }  # fmt: skip
    lines = [f"labels {', '.join(classifier.labels_)} of {counted(len(given), 'document')} ({_columns_said(given)})"]
    if "unlabelled" in more:
        said = ", ".join(f"{name} {share:.1f}%" for name, share in shares.items())
        taken = f", taken to be {said}" if classifier.method == "self-training" else ""
        lines.append(f"{counted(len(more['unlabelled']), 'unlabelled document')}{taken}")
    elif classifier.method != "none":
        lines.append("nothing was adapted: give documents of the new domain, --unlabelled TARGET")
    first = given.labels[0]
    if given.heading is None and len(given) > 2 and given.labels.count(first) == 1:
        lines.append(f"no other line has the label of line 1, {first}: if that line names the columns, say --heading")
    training.keep(classifier, *lines, json=found if json else None)


def apply(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", show_default=False, help="A folder by `isogloss adapt train`.")
    ],
    documents: Annotated[
        str, typer.Argument(metavar="IN", show_default=False, help="Documents, in a table like that of training.")
    ],
    output: Output = None,
    text: TextColumns = None,
    heading: Heading = False,
    threads: Threads = None,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Label documents: the table, with the label and its probability as the last two columns of each line.

    A column of labels in IN is not looked at.
    """
    began = time.perf_counter()
    check_output(output, [documents])
    header_of(model, "adapt")
    with compiling("adapt-apply", quiet, "10 s"):
        from isogloss.data.formats.labelled import written
        from isogloss.data.rows import counted

        classifier = load_classifier(model, threads)
        reading: dict[str, Any] = {"encoding": encoding, "errors": errors}
        given = read_documents(documents, None, text, heading, classifier.columns_, **reading)
        posteriors = classifier.predict_proba(given)
        best = posteriors.argmax(axis=1)
        names = [classifier.labels_[k] for k in best.tolist()]
        write_result(output, written(given, names, posteriors.max(axis=1, initial=0.0).tolist()))
    say(f"{counted(len(given), 'document')}, {time.perf_counter() - began:.1f} s", quiet)


def score(
    found: Annotated[str, typer.Argument(metavar="OUT", show_default=False, help="What `isogloss adapt apply` wrote.")],
    label: LabelColumn = None,
    output: Output = None,
    heading: Heading = False,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Score labels against those of a column: documents that are right, in percent.

    What was predicted is the last column but one, where `isogloss adapt apply` puts it. Documents without a label are
    passed over.
    """
    check_output(output, [found])
    standard_input_once(found)
    from isogloss.data.formats.files import name_of, read_bytes
    from isogloss.data.formats.labelled import scored_columns
    from isogloss.data.rows import counted
    from isogloss.errors import DocumentsError
    from isogloss.metrics.documents import score_documents

    data, column = read_bytes(found, encoding=encoding, errors=errors), 0 if label is None else column_of(label)
    every = list(zip(*scored_columns(data, name_of(found), column, heading), strict=True))
    known = [pair for pair in every if pair[1]]
    if not known:
        raise DocumentsError(f"{name_of(found)}: column {column} is empty. Name the column of the right label")
    if len(known) < len(every):
        say(f"{counted(len(every) - len(known), 'document')} without a label in column {column}: passed over", quiet)
    predicted, gold = zip(*known, strict=True)
    if not set(predicted) & set(gold):
        names = ", ".join(sorted(set(predicted))[:_FEW])
        say(f"no label of column {column} is ever among those predicted, {names}: is it the right column?", quiet)
    told = score_documents(predicted, gold).as_dict()
    if json:
        write_json(told, output)
        return
    low, high = told["intervals"].get("accuracy", (told["accuracy"], told["accuracy"]))
    lines = [f"accuracy {told['accuracy']:.2f} ({low:.2f} to {high:.2f})", f"{told['n']:,} documents", ""]
    often = sorted(told["labels"].items(), key=lambda entry: -max(entry[1]["documents"], entry[1]["found"]))
    shown = dict(often[:_SHOWN])
    rows = [
        (name, *(f"{row[key]:,}" for key in ("documents", "found", "right")))
        for name, row in told["labels"].items()
        if name in shown
    ]
    lines += table_lines(("label", "documents", "found", "right"), rows, 1)
    if len(often) > len(shown):
        lines.append(f"and {counted(len(often) - len(shown), 'label')} of fewer documents")
    lines.append(told["signature"])
    write_result(output, "\n".join([*lines, ""]))


def diagnose(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", show_default=False, help="Documents, text or a treebank of one domain.")
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False, help="The same of another domain.")],
    label: LabelColumn = None,
    text: TextColumns = None,
    heading: Heading = False,
    output: Output = None,
    page: Annotated[
        str | None, typer.Option("--page", metavar="HTML", help="Write a page with where the loss is from, as well.")
    ] = None,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    encoding: Encoding = "utf-8",
    errors: Errors = "strict",
) -> None:
    """Say how far two domains are apart, what is likely to be lost from one to the other, and what to do next.

    Both are tables, plain text with a document a line, or treebanks in CoNLL-U. Where SOURCE has labels or trees, a
    classifier or parser is tried on TARGET. It never learns from labels or trees of TARGET; with trees, its losses are
    taken apart, and it is asked whether guidelines differ. All numbers are in percent.
    """
    for place in (output, page):
        check_output(place, [source, target])
    standard_input_once(source, target)
    if is_treebank(source) != is_treebank(target):
        raise UsageError(f"{source} and {target}: one of them is a treebank; give two of a kind")
    reading: dict[str, Any] = {"encoding": encoding, "errors": errors}
    trees = is_treebank(source)
    if trees and (label is not None or text is not None or heading):
        raise UsageError("--label, --text and --heading are for tables; these are treebanks")
    with compiling("adapt-diagnose-trees" if trees else "adapt-diagnose", quiet, "90 s" if trees else "20 s"):
        if trees:
            told = _of_treebanks(source, target, reading, threads, progress_for(quiet))
        else:
            from isogloss.tasks.adapt import diagnose as found_out

            given = read_documents(source, 0 if label is None else label, text, heading, **reading)
            other = read_documents(target, None, text, heading, given.columns, **reading)
            told = found_out(given, other, threads=threads).as_dict()
    if page is not None:
        from isogloss.show.diagnosis import write_diagnosis

        write_diagnosis(told, page, title=f"From {source} to {target}")
    if json:
        write_json(told, output)
        return
    write_result(output, "\n".join([*_said(told), ""]))


def _of_treebanks(
    source: str, target: str, reading: dict[str, Any], threads: int | None, progress: Any
) -> dict[str, Any]:  # fmt: skip
    from isogloss.cli._treebanks import read_treebank
    from isogloss.tasks.adapt import diagnose_treebanks

    given, other = (read_treebank(path, reading["encoding"], reading["errors"]) for path in (source, target))
    return diagnose_treebanks(given, other, threads=threads, progress=progress).as_dict()


def _said(told: dict[str, Any]) -> list[str]:
    """A diagnosis, for people."""
    from isogloss.show.diagnosis import NAMES

    rows = [(NAMES[name], f"{told[name]:.1f}") for name in NAMES if told.get(name) is not None]
    rows += [(f"{name} in the target", f"{share:.1f}") for name, share in (told.get("prior") or {}).items()]
    rows += [(f"sequences of {one['n']} tags that differ", f"{one['distance']:.1f}") for one in told.get("tags") or ()]
    lines = [*table_lines(("", "percent"), rows, 1), ""]
    for by, loss in (told.get("losses") or {}).items():
        kinds = [
            (kind["name"], *(_number(kind[name]) for name in _COLUMNS), f"{kind['adds']:+.2f}")
            for kind in loss["kinds"][:_FEW]
        ]  # fmt: skip
        lines += [*table_lines((by, *(name.replace("_", " ") for name in _COLUMNS), "adds"), kinds, 1), ""]
    if told.get("guidelines"):
        found = told["guidelines"]
        lost = f"known words lose {found['known']:+.1f} ± {found['margin']:.1f} points that the parser does not foresee"
        lines += [f"guidelines: {found['verdict']} ({lost})", ""]
    return [*lines, *told["advice"]]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


_COLUMNS = ("source_share", "target_share", "source_error", "target_error")


def _columns(given: Any) -> dict[str, Any]:
    return {"label": given.columns.label, "text": list(given.columns.text)}


def _columns_said(given: Any) -> str:
    text = ", ".join(map(str, given.columns.text))
    return f"label in column {given.columns.label}, text in {text}"


COMMANDS = {"train": train, "apply": apply, "score": score, "diagnose": diagnose}
"""The commands of this group: ``isogloss adapt train`` and so on."""
