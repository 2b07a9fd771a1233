"""What `isogloss tag` and `isogloss parse` have in common: reading treebanks or plain text, and scoring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from isogloss.cli._common import READING, check_output, choice, compiling, warn, write_json, write_result
from isogloss.errors import UsageError

if TYPE_CHECKING:
    from isogloss.data.treebank import Treebank

__all__ = ["Found", "Gold", "InFormat", "TrainFile", "read_any", "read_treebank", "score_files", "standard_input_once"]

TrainFile = Annotated[
    str, typer.Argument(metavar="TRAIN", show_default=False, help="A treebank in CoNLL-U (or CoNLL-X, CoNLL-2009).")
]
Found = Annotated[str, typer.Argument(metavar="OUT", show_default=False, help="A treebank with what was predicted.")]
Gold = Annotated[str, typer.Argument(metavar="GOLD", show_default=False, help="The same words with the right ones.")]
InFormat = Annotated[
    str, choice("auto", "conllu", "conllx", "conll2009", "text", option="--format", panel=READING, help="What IN is.")
]


def standard_input_once(*paths: str | None) -> None:
    """Refuse ``-`` for more than one file."""
    if paths.count("-") > 1:
        raise UsageError("standard input can be one of the files only")


def score_files(
    found: str, gold: str, measures: Sequence[str], output: str | None, encoding: str, errors: str, *, json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Score one treebank against another, and write a line for each measure, or all as JSON."""
    standard_input_once(found, gold)
    check_output(output, [found, gold])
    with compiling("tag-score", quiet, "10 s"):
        from isogloss.metrics.parsing import score_trees

        predicted, right = (read_treebank(path, encoding, errors) for path in (found, gold))
        scored = score_trees(predicted, right).as_dict()
    if json:
        write_json(scored, output)
        return
    lines = []
    for name in measures:
        low, high = scored["intervals"].get(name, (scored[name], scored[name]))
        lines.append(f"{name:<7}{scored[name]:6.2f}  ({low:.2f} to {high:.2f})")
    write_result(output, "\n".join([*lines, f"{right.n_words:,} words in {len(right):,} sentences", ""]))


def read_treebank(path: str, encoding: str, errors: str, format: str | None = None) -> Treebank:
    from isogloss.data.treebank import Treebank

    return Treebank.read(path, format, encoding=encoding, errors=errors)


def read_any(path: str, format: str, encoding: str, errors: str) -> Treebank:
    """A treebank, or plain text as one."""
    if format not in ("auto", "text"):
        return read_treebank(path, encoding, errors, format)
    from isogloss.data.bitext import Text
    from isogloss.data.formats import read_bytes
    from isogloss.data.formats.files import name_of
    from isogloss.data.treebank import Treebank

    bare = path.removesuffix(".gz").removesuffix(".xz").removesuffix(".zst")
    if format == "auto" and bare.endswith((".conllu", ".conllx", ".conll", ".conll09")):
        return read_treebank(path, encoding, errors)
    data, name = read_bytes(path, encoding=encoding, errors=errors), name_of(path)
    if format == "auto" and _is_table(data):
        return Treebank.from_bytes(data, name)
    plain = Treebank.from_text(Text.from_bytes(data, name))
    empty = int((plain.lengths == 0).sum())
    if empty:
        warn(f"{name}: {empty:,} empty lines have no place in CoNLL-U and are left out")
    return plain


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
