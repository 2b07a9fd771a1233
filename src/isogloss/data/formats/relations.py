"""Files of relations between names: SemEval-2010 task 8, and the columns of CoNLL04."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats.files import PathOrName, name_of, read_bytes
from isogloss.data.mentions import Entity, Mentions, Relation
from isogloss.data.tokenise import tokenise
from isogloss.data.treebank import Column
from isogloss.errors import MentionsError

__all__ = [
    "OTHER",
    "HeadSource",
    "MarkedSource",
    "are_heads",
    "are_marked",
    "parse_heads",
    "parse_marked",
    "read_answers",
]

OTHER = "Other"
"""What SemEval calls two names between which there is none of its relations."""
_MARKED = re.compile(r'(\d+)\s+"?(.*?<e[12]>.*?)"?\s*$')
_LABEL = re.compile(r"(\S+?)(?:\(e([12]),e([12])\))?$")
_TAGS = re.compile(r"(</?e[12]>)")
_NONE = "N"
_LABEL_LIST = re.compile(r"\[\s*(?:'[^'\\]*'|\"[^\"\\]*\")(?:\s*,\s*(?:'[^'\\]*'|\"[^\"\\]*\"))*\s*\]")
_QUOTED = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")
_HEAD_LIST = re.compile(r"\[\s*\d{1,9}(?:\s*,\s*\d{1,9})*\s*\]")
_LOOKED_AT = 1 << 14


# SemEval-2010 task 8 -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class MarkedSource:
    """A file with a sentence and its two marked names to a block, and the label of their relation below.

    Parameters
    ----------
    numbers : int64[n_sentences]
        Its own number of each sentence.
    lines : int64[n_sentences]
    swapped : bool[n_sentences]
        Whether the name that is marked as the second comes first.
    """

    numbers: NDArray[np.int64]
    lines: NDArray[np.int64]
    swapped: NDArray[np.bool_]

    def line_of(self, sentence: int) -> int:
        """The line, from 1, in which a sentence begins."""
        return int(self.lines[sentence])

    def chosen(self, rows: Any) -> MarkedSource:
        """The same for some of the sentences."""
        return MarkedSource(self.numbers[rows], self.lines[rows], self.swapped[rows])

    def render(self, mentions: Mentions) -> bytes:
        """The number of each sentence and its label, as the official scorer reads them."""
        return "".join(f"{self.numbers[s]}\t{self.label(mentions, s)}\n" for s in range(len(mentions))).encode()

    def label(self, mentions: Mentions, s: int) -> str:
        """The label of a sentence as SemEval writes it, with its direction."""
        found = mentions.relations(s)
        if not found:
            return OTHER
        first, second, kind = found[0]
        if self.swapped[s]:
            first, second = 1 - first, 1 - second
        return f"{kind}(e{first + 1},e{second + 1})"


def are_marked(data: bytes) -> bool:
    """Whether the first line that is not empty is a sentence with marked names."""
    first = next((line for line in data[:_LOOKED_AT].split(b"\n") if line.strip()), b"")
    return _MARKED.match(first.decode(errors="replace")) is not None


def parse_marked(data: bytes, name: str = "<memory>") -> Mentions:
    """Sentences of SemEval-2010 task 8, whether or not their labels are there; words are told apart by us.

    Examples
    --------
    >>> one = parse_marked(b'7\\t"A <e1>cup</e1> of hot <e2>tea</e2>."\\nContent-Container(e2,e1)\\nComment: x\\n')
    >>> one.words(0), one.entities(0), one.relations(0)
    (('A', 'cup', 'of', 'hot', 'tea', '.'), ((1, 2, 'e'), (4, 5, 'e')), ((1, 0, 'Content-Container'),))
    >>> one.to_bytes()
    b'7\\tContent-Container(e2,e1)\\n'
    """
    sentences: list[tuple[list[str], list[Entity], list[Relation]]] = []
    numbers, lines, swapped = [], [], []
    waiting = False
    for number, line in enumerate(data.decode().splitlines(), 1):
        found = _MARKED.match(line)
        if found is not None:
            words, spans = _split_marked(found[2], name, number)
            turned = spans[1] < spans[0]
            sentences.append((words, [(*span, "e") for span in sorted(spans)], []))
            numbers.append(int(found[1]))
            lines.append(number)
            swapped.append(turned)
            waiting = True
        elif line.strip() and not line.startswith("Comment"):
            if not waiting:
                raise MentionsError(
                    f"{name}, line {number}: {line!r:.60} is neither a sentence with <e1> and <e2> nor its label. A "
                    'sentence is 1<TAB>"The <e1>cup</e1> of <e2>tea</e2>.", and its label stands in the next line'
                )
            sentences[-1][2].extend(_relation(line.strip(), swapped[-1], name, number))
            waiting = False
    source = MarkedSource(np.array(numbers, np.int64), np.array(lines, np.int64), np.array(swapped, bool))
    made = Mentions.of(sentences, name)
    return Mentions(**{**vars(made), "source": source})


def read_answers(path: PathOrName, gold: Mentions, encoding: str = "utf-8", errors: str = "strict") -> Mentions:
    """The sentences of gold with the labels of a file of answers, a number and a label a line, or of one like gold."""
    data, name = read_bytes(path, encoding=encoding, errors=errors), name_of(path)
    source = gold.source
    assert isinstance(source, MarkedSource)
    if are_marked(data):
        return parse_marked(data, name)
    place = {int(number): s for s, number in enumerate(source.numbers)}
    found: dict[int, list[Relation]] = {}
    for line, text in enumerate(data.decode().splitlines(), 1):
        fields = text.split()
        if not fields:
            continue
        if len(fields) != 2 or not fields[0].isdigit():
            raise MentionsError(f"{name}, line {line}: {text!r:.60} should be a number and a label, with a tab between")
        s = place.get(int(fields[0]), -1)
        if s < 0 or s in found:
            what = "twice" if s in found else f"not in {gold.name}"
            raise MentionsError(f"{name}, line {line}: sentence {fields[0]} is {what}. Is it of another file?")
        found[s] = _relation(fields[1], bool(source.swapped[s]), name, line)
    if len(found) < len(gold):
        lost = next(int(source.numbers[s]) for s in range(len(gold)) if s not in found)
        raise MentionsError(f"{name}: there is no line for sentence {lost} of {gold.name}, and every one needs one")
    return gold.with_relations([found[s] for s in range(len(gold))])


def _split_marked(text: str, name: str, number: int) -> tuple[list[str], list[tuple[int, int]]]:
    """Words, and the places of both names."""
    words: list[str] = []
    ends: dict[str, int] = {}
    for piece in _TAGS.split(text):
        if _TAGS.fullmatch(piece):
            ends[piece] = len(words)
        else:
            words += [piece[begin:end] for begin, end in tokenise(piece)]
    spans = [(ends.get(f"<e{k}>", 0), ends.get(f"</e{k}>", 0)) for k in (1, 2)]
    if any(begin >= end for begin, end in spans):
        raise MentionsError(
            f"{name}, line {number}: {text!r:.60} should have two marked names, <e1>...</e1> and <e2>...</e2>"
        )
    return words, spans


def _relation(label: str, turned: bool, name: str, number: int) -> list[Relation]:
    found = _LABEL.match(label)
    if found is None or (found[1] != OTHER and (found[2] is None or found[2] == found[3])):
        raise MentionsError(
            f"{name}, line {number}: {label!r:.60} is no label. Labels are {OTHER}, or a relation with its "
            "direction, as in Cause-Effect(e2,e1)"
        )
    if found[1] == OTHER:
        return []
    first, second = int(found[2]) - 1, int(found[3]) - 1
    return [(1 - first, 1 - second, found[1]) if turned else (first, second, found[1])]


# CoNLL04 -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class HeadSource:
    """A word a line with its tag, its relations and the last words of the names that these are to.

    Parameters
    ----------
    rows : tuple of tuples of bytes
        The lines of each sentence, without relations.
    titles : tuple of bytes
        The line above each sentence.
    lines : int64[n_sentences]
    """

    rows: tuple[tuple[bytes, ...], ...]
    titles: tuple[bytes, ...]
    lines: NDArray[np.int64]

    def line_of(self, sentence: int) -> int:
        """The line, from 1, in which a sentence begins."""
        return int(self.lines[sentence])

    def chosen(self, rows: Any) -> HeadSource:
        """The same for some of the sentences."""
        numbers = np.arange(len(self.rows))[rows].tolist()
        kept = tuple(self.rows[k] for k in numbers), tuple(self.titles[k] for k in numbers)
        return HeadSource(*kept, self.lines[rows])

    def render(self, mentions: Mentions) -> bytes:
        """The same words and tags with the relations of now."""
        pieces: list[bytes] = []
        for s in range(len(mentions)):
            names = mentions.entities(s)
            told: dict[int, list[tuple[str, int]]] = {}
            for first, second, label in mentions.relations(s):
                told.setdefault(names[first][1] - 1, []).append((label, names[second][1] - 1))
            pieces.append(self.titles[s])
            for k, row in enumerate(self.rows[s]):
                own = told.get(k, [(_NONE, k)])
                labels, heads = [label for label, _ in own], [head for _, head in own]
                pieces.append(row + f"\t{labels!r}\t{heads!r}\n".encode())
        return b"".join(pieces)


def are_heads(data: bytes) -> bool:
    """Whether it begins as CoNLL04 does."""
    return data.startswith(b"#doc")


def parse_heads(data: bytes, name: str = "<memory>") -> Mentions:
    """Sentences of CoNLL04: number, word, tag, list of relations and list of last words, with ``#doc`` above each.

    Examples
    --------
    >>> text = "#doc 1\\n0\\tRome\\tB-Loc\\t['Located_In']\\t[1]\\n1\\tItaly\\tB-Loc\\t['N']\\t[1]\\n"
    >>> one = parse_heads(text.encode())
    >>> one.entities(0), one.relations(0), one.to_bytes() == text.encode()
    (((0, 1, 'Loc'), (1, 2, 'Loc')), ((0, 1, 'Located_In'),), True)
    """
    from isogloss.data.formats.mentions import decode_tags

    sentences: list[tuple[list[str], list[str], list[tuple[int, str, int]]]] = []
    rows: list[list[bytes]] = []
    titles, lines = [], []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.startswith(b"#doc"):
            titles.append(line + b"\n")
            lines.append(number)
            rows.append([])
            sentences.append(([], [], []))
            continue
        if not line.strip():
            continue
        fields = line.decode().rstrip("\r").split("\t")
        if len(fields) not in (3, 5) or not titles:
            raise MentionsError(
                f"{name}, line {number}: {line.decode()!r:.60} should have a number, a word, a tag, relations and "
                "heads, with tabs between them, below a line #doc"
            )
        words, tags, found = sentences[-1]
        for label, head in _listed(fields, name, number):
            found.append((len(words), label, head))
        words.append(fields[1])
        tags.append(fields[2])
        rows[-1].append("\t".join(fields[:3]).encode())
    whole = [(words, tags, decode_tags(tags), found) for words, tags, found in sentences]
    bare = Mentions.of([(words, names) for words, _, names, _ in whole], name)
    related = [_between(found, names, name, at) for (_, _, names, found), at in zip(whole, lines, strict=True)]
    columns = {**bare.columns, "label": Column.of(tag for _, tags, _, _ in whole for tag in tags)}
    source = HeadSource(tuple(map(tuple, rows)), tuple(titles), np.array(lines, np.int64))
    return Mentions(**{**vars(bare.with_relations(related)), "source": source, "columns": columns})


def _listed(fields: list[str], name: str, number: int) -> list[tuple[str, int]]:
    if len(fields) == 3:
        return []
    labels = [one or other for one, other in _QUOTED.findall(fields[3])]
    heads = [int(head) for head in re.findall(r"\d+", fields[4])] if _HEAD_LIST.fullmatch(fields[4].strip()) else []
    if not _LABEL_LIST.fullmatch(fields[3].strip()) or len(labels) != len(heads):
        raise MentionsError(
            f"{name}, line {number}: {fields[3]!r:.30} and {fields[4]!r:.30} should be two lists of the same "
            "length, as ['Live_In'] and [8]"
        )
    return [(label, head) for label, head in zip(labels, heads, strict=True) if label != _NONE]


def _between(found: list[tuple[int, str, int]], names: list[Entity], name: str, line: int) -> list[Relation]:
    """Relations between names by their numbers, from those between words."""
    owner = {word: k for k, (begin, end, _) in enumerate(names) for word in range(begin, end)}
    related = []
    for word, label, head in found:
        if word not in owner or head not in owner:
            raise MentionsError(
                f"{name}, sentence of line {line}: {label} between words {word} and {head}, which are not both names"
            )
        related.append((owner[word], owner[head], label))
    return related
