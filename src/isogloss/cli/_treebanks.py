"""What `isogloss tag` and `isogloss parse` have in common: reading treebanks or plain text, and scoring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isogloss.cli._common import READING, check_output, choice, compiling, warn, write_json, write_result
from isogloss.cli._memory import as_remembered, say_if_strange
from isogloss.errors import TreebankError, UsageError

if TYPE_CHECKING:
    from isogloss.data.bitext import Text
    from isogloss.data.treebank import Treebank

__all__ = [
    "Breakdown", "DevFile", "Found", "Gold", "InFormat", "SaveFolder", "ScoredColumns", "ScoredWords", "TrainFile",
    "breakdown_lines",
    "breakdown_of", "read_either", "read_for", "read_treebank", "score_files", "standard_input_once", "table_lines",
]  # fmt: skip

_MOST_KINDS = 15
_MOST_CONFUSIONS = 10

TrainFile = Annotated[
    str, typer.Argument(metavar="TRAIN", show_default=False, help="A treebank in CoNLL-U (or CoNLL-X, CoNLL-2009).")
]
SaveFolder = Annotated[str, typer.Option("--save", metavar="MODEL", help="Keep what is learnt in this folder.")]
DevFile = Annotated[
    str | None,
    typer.Option("--dev", metavar="DEV", help="Other sentences like these: choose the number of passes on them."),
]
Found = Annotated[str, typer.Argument(metavar="OUT", show_default=False, help="A treebank with what was predicted.")]
Gold = Annotated[str, typer.Argument(metavar="GOLD", show_default=False, help="The same words with the right ones.")]
Breakdown = Annotated[
    bool,
    typer.Option(
        "--breakdown", help="Also where the errors are: by distance, tag and relation, and what is taken for what."
    ),
]
ScoredColumns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="A,B", help="Score these, as `upos,feats`; without it, those that OUT did not carry along."
    ),
]
ScoredWords = Annotated[
    str,
    choice(
        "gold",
        "surface",
        option="--words",
        help="Both files have the same words, or only the same text: words are then paired by their characters.",
    ),
]
InFormat = Annotated[
    str, choice("auto", "conllu", "conllx", "conll2009", "text", option="--format", panel=READING, help="What IN is.")
]


def standard_input_once(*paths: str | None) -> None:
    """Refuse ``-`` for more than one file."""
    if paths.count("-") > 1:
        raise UsageError("standard input can be one of the files only")


def score_files(
    found: str, gold: str, measures: Sequence[str], output: str | None, encoding: str, errors: str, *, json: bool,
    quiet: bool, columns: str | None = None, breakdown: bool = False, tagset: str | None = None, words: str = "gold",
) -> None:  # fmt: skip
    """Score one treebank against another, and write a line for each measure, or all as JSON."""
    standard_input_once(found, gold)
    check_output(output, [found, gold])
    if breakdown and words == "surface":
        raise UsageError(
            "--breakdown is of the same words. Leave it out, or apply the model to the words of the gold file"
        )
    with compiling("tag-score", quiet, "10 s"):
        predicted, right = (read_treebank(path, encoding, errors) for path in (found, gold))
        if not right.n_words:
            raise TreebankError(
                f"{right.name}: there are no words, so there is nothing to score. Is it the right file?"
            )
        scored = _scored(predicted, right, measures, columns, tagset, words)
        if "uas" in scored:
            _warn_of_no_trees(predicted, right)
        if tagset is None and "upos" in scored:
            _warn_of_two_tagsets(predicted, right)
        if columns is None and not predicted.predicted:
            _warn_of_equal_columns(scored, measures, predicted, right)
        if breakdown:
            if "uas" not in scored:
                raise UsageError(f"--breakdown tells where heads are wrong, but {scored['left_out']['uas']}")
            scored["breakdown"] = breakdown_of(predicted, right)
    if json:
        write_json(scored, output)
        return
    lines = []
    width = 9 if words == "surface" else 7
    for name in (*measures, "word_f1"):
        if name in scored:
            low, high = scored["intervals"].get(name, (scored[name], scored[name]))
            lines.append(f"{name:<{width}}{scored[name]:6.2f}  ({low:.2f} to {high:.2f})")
    if columns is None:
        lines += [f"{name:<{width}}not scored  ({reason})" for name, reason in scored["left_out"].items()]
    compared = "" if tagset is None else f", upos in {tagset}"
    lines.append(f"{right.n_words:,} words in {len(right):,} sentences{compared}")
    if breakdown:
        lines += breakdown_lines(scored["breakdown"])
    write_result(output, "\n".join([*lines, ""]))


def _scored(
    predicted: Treebank, gold: Treebank, measures: Sequence[str], columns: str | None, tagset: str | None, words: str
) -> dict[str, Any]:
    """What `score_trees` finds, of these measures."""
    from isogloss.metrics._written import columns_of
    from isogloss.metrics.parsing import MEASURES, score_trees

    allowed = columns_of(measures)
    chosen = None if columns is None else columns.lower().split(",")
    if chosen is not None and not set(chosen) <= set(allowed):
        raise UsageError(f"--columns {columns}: give some of {','.join(allowed)}")
    score = score_trees(predicted, gold, tagset=tagset, columns=chosen, words=words)
    if not set(measures) & set(score.measures):
        reasons = "; ".join(dict.fromkeys(score.left_out[name] for name in measures))
        raise TreebankError(
            f"{predicted.name}: there is nothing to score ({reasons}). Is it the right file? --columns scores columns "
            "whoever wrote them"
        )
    scored = {name: value for name, value in score.as_dict().items() if name in measures or name not in MEASURES}
    for part in ("intervals", "left_out"):
        scored[part] = {name: value for name, value in scored[part].items() if name in (*measures, "word_f1")}
    return scored


def _warn_of_equal_columns(
    scored: Mapping[str, Any], measures: Sequence[str], predicted: Treebank, gold: Treebank
) -> None:
    """Say that some columns are right everywhere: perhaps the system only copied them."""
    from isogloss.metrics._written import columns_of

    told = [name for name in measures if name in scored]
    same = [name for name in told if scored[name] == 100]
    if same and len(same) < len(told):
        rest = ",".join(columns_of([name for name in told if name not in same]))
        warn(
            f"{' and '.join(same)}: {predicted.name} is as {gold.name} in every word. If the system did not predict "
            f"this but copied it, leave it out: --columns {rest}"
        )


def _warn_of_no_trees(*treebanks: Treebank) -> None:
    """Say which sentences have two roots or a cycle: parsers that make such are scored, but it should be known."""
    for treebank in treebanks:
        try:
            treebank.check_trees()
        except TreebankError as problem:
            warn(f"{problem}. The heads are scored as they stand; the script of CoNLL 2018 would refuse them")


def _warn_of_two_tagsets(predicted: Treebank, gold: Treebank) -> None:
    """Say that one file has the twelve tags and the other those of UD: many right ones would count as wrong."""
    from isogloss.data.tagsets import tagset_of

    used = []
    for treebank in (predicted, gold):
        ids, vocabulary = treebank.columns["upos"]
        used.append({vocabulary[number] for number in set(ids.tolist())} - {"_"})
    first, second = map(tagset_of, used)
    if first is not None and second is not None and tagset_of(used[0] | used[1]) is None:  # NOUN alone is of both
        warn(
            f"{predicted.name} has tags of {first.name} and {gold.name} of {second.name}, compared as they stand. "
            "--tagset universal12 compares both in the twelve"
        )


def breakdown_of(predicted: Treebank, gold: Treebank) -> dict[str, Any]:
    """Where the errors of trees are, as plain data.

    `distance`, `length`, `upos` (or `xpos`, where gold has no universal tags) and `deprel` are as `breakdown_trees` has
    them; `confusions` are the relations most often taken for another: gold, prediction, words.
    """
    from isogloss.metrics.parsing import breakdown_trees, confusion

    ids, vocabulary = gold.columns["upos"]
    tags = "xpos" if all(vocabulary[number] == "_" for number in set(ids.tolist())) else "upos"
    kinds = ("distance", "length", tags, "deprel")
    found: dict[str, Any] = {kind: breakdown_trees(predicted, gold, kind) for kind in kinds}
    worst = confusion(predicted, gold).worst(2 * _MOST_CONFUSIONS)
    given = [entry for entry in worst if entry[0] != "_"]  # what gold does not know is no error
    return {**found, "confusions": given[:_MOST_CONFUSIONS]}


# What is known of the words alone is the same in both treebanks, and has no precision of its own.
_TITLES = {"distance": "distance", "length": "length", "upos": "tag", "xpos": "tag", "deprel": "relation"}
_MEASURES = {"distance": ("uas", "las", "precision"), "deprel": ("uas", "las", "precision")}


def breakdown_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What `breakdown_of` found as tables, of tags and relations the most frequent ones.

    Examples
    --------
    >>> row = {"words": 3, "predicted": 4, "uas": 100.0, "las": 200 / 3, "precision": 75.0}
    >>> print("\\n".join(breakdown_lines({"distance": {"1": row}, "confusions": [("obj", "obl", 2)]})))
    <BLANKLINE>
    distance  words     uas    las  precision
    1             3  100.00  66.67      75.00
    <BLANKLINE>
    gold  predicted  words
    obj   obl            2
    """
    for kind, rows in found.items():
        if kind == "confusions":
            continue
        measures = _MEASURES.get(kind, ("uas", "las"))
        shown = [
            (name, f"{row['words']:,}", *(f"{row[measure]:.2f}" for measure in measures)) for name, row in rows.items()
        ]
        left = len(shown) - _MOST_KINDS
        yield ""
        yield from table_lines((_TITLES[kind], "words", *measures), shown[:_MOST_KINDS], 1)
        if left > 0:
            yield f"{left} that are rarer: --json has all"
    if found["confusions"]:
        yield ""
        pairs = [(right, wrong, f"{words:,}") for right, wrong, words in found["confusions"]]
        yield from table_lines(("gold", "predicted", "words"), pairs, 2)


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]], n_left: int) -> Iterator[str]:
    """Columns side by side; the first `n_left` begin on the left, numbers end on the right."""
    from isogloss.show._measure import display_width

    widths = [max(map(display_width, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            spaces = " " * (width - display_width(cell))
            cells.append(cell + spaces if number < n_left else spaces + cell)
        yield "  ".join(cells).rstrip()


def read_treebank(path: str, encoding: str, errors: str, format: str | None = None) -> Treebank:
    from isogloss.data.treebank import Treebank

    return Treebank.read(path, format, encoding=encoding, errors=errors)


def read_either(
    path: str, format: str, encoding: str, errors: str, tokenise: str = "space", normalise: Any = None
) -> Text | Treebank:
    """A treebank or plain text, as `format` says or, if that is "auto", the name or the first line.

    `tokenise` and `normalise` are for plain text, which knows its lines and where in them words stand.
    """
    if format not in ("auto", "text"):
        return read_treebank(path, encoding, errors, format)
    from isogloss.data.formats import read_bytes
    from isogloss.data.formats.files import name_of
    from isogloss.data.reading import TextForm
    from isogloss.data.tokenise import tokenise_bytes
    from isogloss.data.treebank import Treebank

    bare = path.removesuffix(".gz").removesuffix(".xz").removesuffix(".zst")
    if format == "auto" and bare.endswith((".conllu", ".conllx", ".conll", ".conll09")):
        return read_treebank(path, encoding, errors)
    data, name = read_bytes(path, encoding=encoding, errors=errors), name_of(path)
    if format == "auto" and _is_table(data):
        return Treebank.from_bytes(data, name)
    return replace(tokenise_bytes(data, tokenise, normalise, name=name), form=TextForm(tokenise, normalise))


def read_for(model: Any, place: str, path: str, format: str, encoding: str, errors: str, asked: str | None) -> Treebank:
    """What a tagger or parser, saved in `place`, is applied to: a treebank, or plain text as one.

    Plain text is tokenised as was `asked` for, else as the model remembers, else at spaces.
    """
    from isogloss.data.treebank import Treebank

    form = as_remembered({"tokenise": asked, "normalise": None}, model.reading_, place)
    found = read_either(path, format, encoding, errors, **form)
    if isinstance(found, Treebank):
        if asked is not None:
            raise UsageError(f"--tokenise is for plain text, and {path} says itself what a word is. Leave it out")
        say_if_strange(model.reading_, found)
        return found
    say_if_strange(model.reading_, found)
    plain = Treebank.from_text(found)
    empty = int((plain.lengths == 0).sum())
    if empty:
        lines = "1 empty line has" if empty == 1 else f"{empty:,} empty lines have"
        warn(f"{found.name}: {lines} no place in CoNLL-U and {'is' if empty == 1 else 'are'} left out")
    return plain


def is_treebank(path: str) -> bool:
    """Whether a file is a treebank, by its name or its first lines; standard input is not."""
    bare = path.removesuffix(".gz").removesuffix(".xz").removesuffix(".zst")
    if bare.endswith((".conllu", ".conllx", ".conll", ".conll09")):
        return True
    if path == "-":
        return False
    from isogloss.data.formats import read_bytes

    try:
        return _is_table(read_bytes(path, encoding="latin-1", errors="replace"))
    except OSError:
        return False


def _is_table(data: bytes) -> bool:
    """Whether the first line that is neither empty nor a comment has the columns of CoNLL-U."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        line = data[start : end if end >= 0 else len(data)]
        if line.strip() and not line.startswith(b"#"):
            return line.count(b"\t") >= 9
        start = end + 1 if end >= 0 else len(data)
    return False
