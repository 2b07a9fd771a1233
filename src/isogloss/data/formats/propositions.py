"""Files of Universal Propositions: CoNLL-U with a column of senses, and a column of roles for each predicate.

Two layouts are read: ten columns of CoNLL-U, then senses, then roles; and eight, then a Y for predicates, senses and
roles. Words that stand beside themselves in their own column of roles (V) are no arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.propositions import Predicate, Propositions
from isogloss.data.treebank import Treebank
from isogloss.errors import TreebankError

__all__ = ["RoleSource", "are_propositions", "format_propositions", "parse_propositions", "read_propositions"]

_NONE, _SELF = "_", "V"


class _Layout(NamedTuple):
    """Which columns are which."""

    columns: int
    """Those of CoNLL-U."""
    flag: int | None
    """The one that says Y of a predicate."""
    sense: int

    @property
    def roles(self) -> int:
        return self.sense + 1


_PLAIN, _FLAGGED = _Layout(10, None, 10), _Layout(8, 8, 9)


@dataclass(frozen=True, eq=False, repr=False)
class RoleSource:
    """A file of propositions: the lines of each sentence, without senses and roles.

    Parameters
    ----------
    above : tuple of tuples of str
        Comments above each sentence.
    rows : tuple of tuples of str
        The columns of CoNLL-U of each word; of multiword tokens and empty nodes, which have no roles, the whole line.
    itself : bool
        Whether predicates have V in their own column of roles.
    before : tuple of (tuple of predicates, tuple of str)
        The predicates that each sentence had, and its lines: where these are the same, so are those.
    flagged : bool
        Whether there is a column with Y for predicates.
    """

    above: tuple[tuple[str, ...], ...]
    rows: tuple[tuple[str, ...], ...]
    before: tuple[tuple[tuple[Predicate, ...], tuple[str, ...]], ...]
    itself: bool
    flagged: bool

    def chosen(self, numbers: Any) -> RoleSource:
        """The same for some of the sentences."""
        kept = [int(k) for k in numbers]
        above, rows = (tuple(own[k] for k in kept) for own in (self.above, self.rows))
        return RoleSource(above, rows, tuple(self.before[k] for k in kept), self.itself, self.flagged)

    def render(self, given: Propositions) -> bytes:
        """The text with the senses and roles of now."""
        lines: list[str] = []
        for s in range(len(given)):
            lines += self.above[s]
            predicates = given.predicates(s)
            if s < len(self.before) and predicates == self.before[s][0]:
                lines += [*self.before[s][1], ""]
                continue
            words = iter(range(len(self.rows[s])))
            table = _columns(predicates, len(self.rows[s]), self.itself)
            senses = {word: sense for word, sense, _ in predicates}
            for row in self.rows[s]:
                if not _is_word(row):
                    lines.append(row)
                    continue
                k = next(words)
                flag = [("Y" if k in senses else _NONE)] if self.flagged else []
                lines.append("\t".join([row, *flag, senses.get(k, _NONE), *(column[k] for column in table)]))
            lines.append("")
        return "".join(f"{line}\n" for line in lines).encode()


def _is_word(row: str) -> bool:
    return row.partition("\t")[0].isdigit()


def _columns(predicates: tuple[Predicate, ...], n: int, itself: bool) -> list[list[str]]:
    table = []
    for word, _, arguments in predicates:
        column = [_NONE] * n
        if itself:
            column[word] = _SELF
        for k, role in arguments:
            column[k] = role
        table.append(column)
    return table


def are_propositions(data: bytes) -> bool:
    """Whether the first words have the columns of one of the layouts."""
    for line in data[: 1 << 14].split(b"\n"):
        if line.strip() and not line.startswith(b"#"):
            fields = line.split(b"\t")
            return len(fields) >= _FLAGGED.roles and fields[0] == b"1" and fields[6].isdigit() and len(fields) != 10
    return False


def read_propositions(path: PathOrName, *, encoding: str = "utf-8", errors: str = "strict") -> Propositions:
    """Read a file of Universal Propositions; ``-`` is standard input, and compressed files are undone."""
    return parse_propositions(read_bytes(path, encoding=encoding, errors=errors), name_of(path))


def parse_propositions(data: bytes, name: str = "<memory>") -> Propositions:
    """The sentences that some bytes of UTF-8 are; `name` is for messages.

    Examples
    --------
    >>> lines = ["1 she she PRON _ _ 2 nsubj _ _ _ A0", "2 sleeps sleep VERB _ _ 0 root _ _ sleep.01 V", "", ""]
    >>> text = "\\n".join(lines).replace(" ", "\\t").encode()
    >>> one = parse_propositions(text)
    >>> one.predicates(0), one.to_bytes() == text
    (((1, 'sleep.01', ((0, 'A0'),)),), True)
    """
    sentences = _split(data, name)
    words = [fields for _, rows in sentences for _, fields in rows if fields[0].isdigit()]
    layout = _FLAGGED if any(fields[8:9] == ["Y"] for fields in words) else _PLAIN
    predicates, above, kept, before, itself = [], [], [], [], False
    for comments, lines in sentences:
        rows = [(line, fields) for line, fields in lines if fields[0].isdigit()]
        if all(fields[layout.roles :] == [""] for _, fields in rows):
            rows = [(line, fields[:-1]) for line, fields in rows]
        found = [k for k, (_, fields) in enumerate(rows) if _of(fields, layout.sense) not in ("", _NONE)]
        if layout.flag is not None:
            found = [k for k, (_, fields) in enumerate(rows) if fields[layout.flag] == "Y"]
        for line, fields in rows:
            if len(fields) not in (layout.columns, layout.roles, layout.roles + len(found)):
                raise TreebankError(
                    f"{name}, line {line}: {len(fields)} columns, where a sentence with {len(found)} predicates has "
                    f"{layout.roles + len(found)}: those of CoNLL-U, the sense, and one of roles for each predicate"
                )
        own: list[Predicate] = []
        for number, word in enumerate(found):
            roles = [_of(fields, layout.roles + number) for _, fields in rows]
            itself = itself or roles[word] == _SELF
            arguments = tuple((k, role) for k, role in enumerate(roles) if role not in ("", _NONE) and k != word)
            own.append((word, _of(rows[word][1], layout.sense), arguments))
        predicates.append(own)
        before.append((tuple(own), tuple("\t".join(fields) for _, fields in lines)))
        above.append(tuple(comments))
        shown = (fields[: layout.columns] if fields[0].isdigit() else fields for _, fields in lines)
        kept.append(tuple(map("\t".join, shown)))
    source = RoleSource(tuple(above), tuple(kept), tuple(before), itself, layout.flag is not None)
    return Propositions(**{**vars(Propositions.of(_treebank(kept, name), predicates, name)), "source": source})


def _of(fields: list[str], column: int) -> str:
    return fields[column] if column < len(fields) else _NONE


def _treebank(rows: list[tuple[str, ...]], name: str) -> Treebank:
    """Words with their tags and trees, as CoNLL-U."""
    lines = []
    for own in rows:
        for row in filter(_is_word, own):
            fields = row.split("\t")
            lines.append("\t".join([*fields[:8], _NONE, _NONE]))
        lines.append("")
    return Treebank.from_bytes("".join(f"{line}\n" for line in lines).encode(), name, format="conllu")


def _split(data: bytes, name: str) -> list[tuple[list[str], list[tuple[int, list[str]]]]]:
    """Comments and words of each sentence, words with their lines."""
    sentences: list[tuple[list[str], list[tuple[int, list[str]]]]] = []
    comments: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    for number, raw in enumerate([*data.decode().split("\n"), ""], 1):
        line = raw.rstrip("\r")
        if line.startswith("#") and not rows:
            comments.append(line)
        elif line.strip():
            fields = line.split("\t")
            if len(fields) < _FLAGGED.columns:
                raise TreebankError(
                    f"{name}, line {number}: {len(fields)} columns, where CoNLL-U has 10 and roles follow"
                )
            rows.append((number, fields))
        elif rows:
            sentences.append((comments, rows))
            comments, rows = [], []
    return sentences


def format_propositions(given: Propositions) -> bytes:
    """The text in the format that was read; CoNLL-U with columns of senses and roles without a file."""
    if given.source is not None:
        return given.source.render(given)
    rows = []
    for block in given.treebank.to_bytes().decode().rstrip("\n").split("\n\n"):
        rows.append(tuple(line for line in block.split("\n") if line[:1].isdigit()))
    filled = iter(rows)
    lengths = np.diff(given.treebank.offsets).tolist()
    each = tuple(next(filled) if n else () for n in lengths)
    return RoleSource(((),) * len(each), each, (), True, False).render(given)
