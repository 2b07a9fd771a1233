"""Trees of constituents on the command line: how files are read, and how scores are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isogloss.cli._memory import as_remembered
from isogloss.cli._treebanks import table_lines
from isogloss.errors import UsageError

if TYPE_CHECKING:
    from isogloss.data.bitext import Text
    from isogloss.data.constituents import Constituents

__all__ = ["ENDINGS", "KINDS", "confidence_table", "is_trees", "read_for", "read_trees", "read_two", "score_lines"]

KINDS = ("brackets", "discbracket", "export", "conllu")
ENDINGS = (
    ".mrg", ".ptb", ".tree", ".trees", ".bracket", ".brackets", ".dbr", ".discbracket", ".export", ".negra",
)  # fmt: skip
"""What names of files with trees of constituents end in."""
_TABLES = (".conllu", ".conllup", ".conllx", ".conll", ".conll09")
_MOST_KINDS = 15
_LOOKED_AT = 1 << 16


def _bare(path: str) -> str:
    return path.lower().removesuffix(".gz").removesuffix(".xz").removesuffix(".zst")


def is_trees(path: str, format: str = "auto") -> bool:
    """Whether the name, or the format, says that a file has trees of constituents."""
    return format in KINDS[:3] or (format == "auto" and _bare(path).endswith(ENDINGS))


def read_trees(path: str, format: str, encoding: str, errors: str, *, empty_lines: bool = False) -> Constituents:
    """Trees of a file; those of dependency treebanks become constituents."""
    from isogloss.data.constituents import Constituents

    if format == "conllu" or (format == "auto" and _bare(path).endswith(_TABLES)):
        from isogloss.data.treebank import Treebank

        treebank = Treebank.read(path, encoding=encoding, errors=errors)
        kinds = {treebank.columns["upos"].vocabulary[number] for number in set(treebank.columns["upos"].ids.tolist())}
        return Constituents.from_dependencies(treebank, tag="xpos" if kinds == {"_"} else "upos")
    kind = None if format == "auto" else format
    return Constituents.read(path, kind, encoding=encoding, errors=errors, empty_lines=empty_lines)


def read_two(
    found: str, gold: str, format: str, encoding: str, errors: str
) -> tuple[Constituents, Constituents]:  # fmt: skip
    """Trees that were found, and the right ones; empty lines count as sentences where they have to."""
    right = read_trees(gold, format, encoding, errors).continuous()
    ours = read_trees(found, format, encoding, errors).continuous()
    if len(ours) != len(right) and "-" not in (found, gold):
        for empty in ((True, False), (True, True)):
            a = read_trees(found, format, encoding, errors, empty_lines=empty[0]).continuous()
            b = read_trees(gold, format, encoding, errors, empty_lines=empty[1]).continuous()
            if len(a) == len(b):
                return a, b
    return ours, right


def read_for(
    model: Any, place: str, path: str, format: str, encoding: str, errors: str, asked: str | None
) -> Text | Constituents:  # fmt: skip
    """What a parser, saved in `place`, is applied to: plain text, or the words of trees."""
    if is_trees(path, format) or format == "conllu" or (format == "auto" and _bare(path).endswith(_TABLES)):
        if asked is not None:
            raise UsageError(f"--tokenise is for plain text, and {path} says itself what a word is. Leave it out")
        return read_trees(path, format, encoding, errors)
    from isogloss.data.formats import read_bytes
    from isogloss.data.formats.files import name_of
    from isogloss.data.reading import TextForm
    from isogloss.data.tokenise import tokenise_bytes

    form = as_remembered({"tokenise": asked, "normalise": None}, model.reading_, place)
    data = read_bytes(path, encoding=encoding, errors=errors)
    if format == "auto" and _are_brackets(data):
        raise UsageError(
            f"{name_of(path)}: every line is in brackets, as trees are, and a sentence a line is wanted. --format "
            "brackets takes the words of trees, --format text the lines as they stand"
        )
    made = tokenise_bytes(data, form["tokenise"], form["normalise"], name=name_of(path))
    return replace(made, form=TextForm(form["tokenise"], form["normalise"]))


def _are_brackets(data: bytes) -> bool:
    """Whether all of the first lines that are not empty could be bracketed trees."""
    lines = [line for line in data[:_LOOKED_AT].splitlines()[:-1] or data.splitlines() if line.strip()]
    return bool(lines) and all(line.strip().startswith(b"(") and b" " in line for line in lines) and all(
        line.count(b"(") == line.count(b")") > 1 for line in lines
    )  # fmt: skip


def confidence_table(trees: Constituents) -> str:
    """A line for each bracket: sentence, first and last word, from 1, label and probability; with a line of heads."""
    assert trees.confidence is not None
    names = trees.labels.vocabulary.types
    columns = (trees.sentence_of_node + 1, trees.begins + 1, trees.ends, trees.labels.ids, trees.confidence)
    lines = [
        f"{sentence}\t{first}\t{last}\t{names[label]}\t{sure:.4f}"
        for sentence, first, last, label, sure in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return "\n".join(["sentence\tfirst\tlast\tlabel\tprobability", *lines, ""])


def score_lines(told: Mapping[str, Any], signature: str) -> Iterator[str]:
    """What a score says, for people."""
    from isogloss.metrics.brackets import MEASURES

    short = told["short"]
    rows = []
    for name in MEASURES:
        low, high = told["intervals"].get(name, (told[name], told[name]))
        rows.append((name, f"{told[name]:.2f}", f"({low:.2f} to {high:.2f})", f"{short[name]:.2f}"))
    rows.append(("crossing", f"{told['crossing']:.2f}", "", f"{short['crossing']:.2f}"))
    yield from table_lines(("", "all", "", "up to 40"), rows, 1)
    yield f"{told['brackets']:,} brackets in {told['n']:,} sentences, {short['n']:,} of up to 40 words"
    yield signature
    if "against" in told:
        other = told["against"]
        low, high = other["interval"]
        spread = f"({low:+.2f} to {high:+.2f})"
        yield f"f1 {other['delta']:+.2f} {spread} against {other['second']:.2f}, p = {other['p_value']:.4f}"
    for by, kinds in told.get("breakdown", {}).items():
        shown = [
            (name, f"{row['brackets']:,}", *(f"{row[m]:.2f}" for m in ("precision", "recall", "f1")))
            for name, row in kinds.items()
        ]
        yield ""
        yield from table_lines((by, "brackets", "precision", "recall", "f1"), shown[:_MOST_KINDS], 1)
        if len(shown) > _MOST_KINDS:
            yield f"{len(shown) - _MOST_KINDS} that are rarer: --json has all"
