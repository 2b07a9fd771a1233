"""Pieces of words as morphemes that are spelt otherwise, such as happi of happily as happy: rules, and which applies.

Rules are read off words cut by people, whose morphemes are first found again in their words
(`isogloss.data.segmentation.surface_pieces`): letters at the end of a piece, or at its beginning, are replaced. Which
rule applies to a piece is a choice among those that fit it, with a log-linear model that sees the piece, its neighbours
and what comes out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.ragged import Ragged
from isogloss.data.segmentation import Morphemes
from isogloss.features import KEYS, Index, Parts, Templates
from isogloss.layout import Layout, Numbers, Strings, check
from isogloss.learners.loglinear import LinearModel
from isogloss.structures.batch import Stack
from isogloss.structures.choice import Choices
from isogloss.tasks.parse.constituency.words import code_of
from isogloss.tasks.segment.seen import TextKnowledge

__all__ = ["FittedRewrites", "Rule", "RuleBook", "rule_of"]

END, BEGIN, WHOLE, DOUBLED = 0, 1, 2, 3
MOST = 5
"""Letters that a rule replaces at the most; beyond it, it is of one piece alone."""
TEMPLATES = (
    "rule", "rule & last", "rule & last2", "rule & last3", "rule & first", "rule & first2", "rule & piece",
    "rule & next", "rule & next & last", "rule & next & last2", "rule & follower & last", "rule & before",
    "rule & place", "rule & size", "rule & size & next", "same & known", "rule & known", "same & word", "rule & word",
    "same & word & own", "same & known & word", "same & begins", "same & begins & place", "same & known & place",
)  # fmt: skip
"""What is seen of a rule on a piece: its letters, its neighbours, and whether what comes out is a morpheme of other
words that were cut by people (known), or a word of the text."""
Codes = NDArray[np.int64]


class Rule(NamedTuple):
    """`old` at the end (0) or the beginning (1) of a piece, or all of it (2), becomes `new`; or of two letters that are
    alike at its end there is one (3), whatever they are."""

    kind: int
    old: str
    new: str

    def on(self, piece: str) -> str:
        """What becomes of a piece that the rule fits."""
        if self.kind == DOUBLED:
            return piece[:-1]
        if self.kind == END:
            return piece[: len(piece) - len(self.old)] + self.new
        new = self.new
        if piece[:1] != piece[:1].lower() and piece[1:] == piece[1:].lower():
            new = new[:1].upper() + new[1:]
        return new + piece[len(self.old) :]

    @property
    def code(self) -> int:
        """A number for it; all rules of single pieces share one."""
        return code_of("whole" if self.kind == WHOLE else f"{self.kind} {self.old} {self.new}")


SAME, UNDOUBLED = Rule(END, "", ""), Rule(DOUBLED, "", "")


def rule_of(piece: str, morpheme: str) -> Rule:
    """The rule by which a piece becomes a morpheme.

    Examples
    --------
    >>> rule_of("happi", "happy"), rule_of("r", "er"), rule_of("ly", "ly") == SAME
    (Rule(kind=0, old='i', new='y'), Rule(kind=1, old='', new='e'), True)
    >>> rule_of("happi", "happy").on("angri"), rule_of("im", "in").on("Im"), rule_of("stopp", "stop").on("hugg")
    ('angry', 'In', 'hug')
    """
    small, other = piece.lower(), morpheme.lower()
    if piece == morpheme:
        return SAME
    if len(small) != len(piece) or len(other) != len(morpheme):
        return Rule(WHOLE, small, morpheme)
    if piece[:-1] == morpheme and _is_doubled(small):
        return UNDOUBLED
    least = min(len(small), len(other))
    same = next((k for k in range(least) if small[k] != other[k]), least)
    back = next((k for k in range(least) if small[-1 - k] != other[-1 - k]), least)
    end, begin = (
        Rule(END, small[same:], morpheme[same:]), Rule(BEGIN, small[: len(small) - back], morpheme[: len(other) - back])
    )  # fmt: skip
    rule = min(end, begin, key=lambda one: len(one.old) + len(one.new))
    too_long = max(len(rule.old), len(rule.new)) > MOST or len(rule.old) == len(piece)
    return Rule(WHOLE, small, morpheme) if too_long or rule.on(piece) != morpheme else rule


def _is_doubled(small: str) -> bool:
    return len(small) > 2 and small[-1] == small[-2]


@dataclass(frozen=True, eq=False)
class RuleBook:
    """Rules, and where each fits: those that put letters in, after or before letters that they were met beside.

    Parameters
    ----------
    rules : tuple of Rule
        The first changes nothing.
    beside : tuple of str
        For each rule that puts letters in, those that it was met beside, one after the other; "" for all others.
    """

    rules: tuple[Rule, ...]
    beside: tuple[str, ...]

    @classmethod
    def of(cls, pairs: Mapping[tuple[str, str], int], most: int) -> RuleBook:
        """From pieces with their morphemes: the `most` frequent rules that are met twice; others of a piece alone."""
        counts: Counter[Rule] = Counter()
        rule_for = {}
        for (piece, morpheme), many in pairs.items():
            rule_for[piece, morpheme] = rule = rule_of(piece, morpheme)
            counts[rule] += many
        ranked = sorted(
            (rule for rule, n in counts.items() if n > 1 and rule.kind != WHOLE and rule != SAME),
            key=lambda rule: (-counts[rule], rule),
        )
        kept = dict.fromkeys(ranked[:most])
        beside: dict[Rule, set[str]] = defaultdict(set)
        for (piece, morpheme), rule in rule_for.items():
            if rule == SAME:
                continue
            if rule not in kept:
                rule = Rule(WHOLE, piece.lower(), morpheme)
            beside[rule].add(_beside(rule, piece.lower()))
        rules = sorted(beside, key=lambda rule: (rule.kind, rule))
        return cls((SAME, *rules), ("", *("".join(sorted(beside[rule])) for rule in rules)))

    @cached_property
    def _table(self) -> dict[tuple[int, str, str], list[int]]:
        found: dict[tuple[int, str, str], list[int]] = defaultdict(list)
        for number, (rule, letters) in enumerate(zip(self.rules, self.beside, strict=True)):
            if number:
                for letter in letters or ("",):
                    found[rule.kind, rule.old, letter].append(number)
        return found

    def fitting(self, piece: str) -> list[int]:
        """The rules that fit a piece; the one that changes nothing comes first."""
        small, table = piece.lower(), self._table
        found = [0]
        if len(small) != len(piece):
            return found
        found += table.get((END, "", small[-1:]), ())
        found += table.get((BEGIN, "", small[:1]), ())
        for size in range(1, min(MOST, len(small) - 1) + 1):
            found += table.get((END, small[len(small) - size :], ""), ())
            found += table.get((BEGIN, small[:size], ""), ())
        if _is_doubled(small):
            found += table.get((DOUBLED, "", ""), ())
        return found + table.get((WHOLE, small, ""), [])


def _beside(rule: Rule, small: str) -> str:
    if rule.old or rule.kind not in (END, BEGIN):
        return ""
    return small[-1:] if rule.kind == END else small[:1]


class Choosing(NamedTuple):
    """Candidates of pieces in their words."""

    starts: Codes
    """int64[n_pieces + 1]"""
    results: list[str]
    """What comes out of each candidate."""
    parts: Parts


@dataclass(frozen=True, eq=False)
class FittedRewrites:
    """What was learnt of rewriting.

    Parameters
    ----------
    book : RuleBook
    morphemes : Mapping of str to int
        How often each morpheme is met in words cut by people, in small letters.
    index : Index
    weights : float32[n_features]
    """

    book: RuleBook
    morphemes: Mapping[str, int]
    index: Index
    weights: NDArray[np.float32]

    @classmethod
    def rules_of(cls, cut: Sequence[tuple[Morphemes, Morphemes]], most: int) -> FittedRewrites:
        """Rules alone, of the pieces and morphemes of words."""
        pairs = Counter(chain.from_iterable(zip(pieces, own, strict=True) for pieces, own in cut))
        morphemes = Counter(one.lower() for _, own in cut for one in own)
        return cls(RuleBook.of(pairs, most), morphemes, Index([]), np.zeros(0, np.float32))

    def prepared(
        self, cut: Sequence[tuple[Morphemes, Morphemes]], text: TextKnowledge, min_count: int
    ) -> tuple[FittedRewrites, LinearModel, list[int]]:
        """With all that has weights, the model of these words, and the right candidates of their pieces.

        A morpheme does not count itself as one that is known. Pieces that no rule turns into their morpheme are
        left out.
        """
        words = [pieces for pieces, _ in cut]
        right = [morpheme for _, own in cut for morpheme in own]
        choosing = self._choosing(words, text, right)
        starts = choosing.starts.tolist()
        gold = []
        for k, morpheme in enumerate(right):
            own = choosing.results[starts[k] : starts[k + 1]]
            gold.append(own.index(morpheme) if morpheme in own else -1)
        used = np.flatnonzero(np.array(gold) >= 0)
        sizes = np.diff(choosing.starts)[used]
        rows = np.repeat(choosing.starts[:-1][used] - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        parts = choosing.parts.chosen(rows, offsets)
        own_gold = [gold[k] for k in used.tolist()]
        templates = Templates(TEMPLATES, kind="rewrite")
        marked = np.zeros(parts.n_parts, np.bool_)
        marked[offsets[:-1] + np.array(own_gold, np.int64)] = True
        made = replace(self, index=templates.index(parts, gold=marked, min_count=min_count))
        stack = Stack(np.zeros(parts.n_parts), offsets, sizes[:, np.newaxis])
        return made, LinearModel(Choices(stack), templates.matrix(parts, made.index)), own_gold

    def learnt(self, weights: NDArray[np.float64], least: float = 1e-3) -> FittedRewrites:
        """With weights, without those that are next to 0."""
        kept = np.abs(weights) >= least
        return replace(self, index=Index(self.index.keys[kept]), weights=weights[kept].astype(np.float32))

    def morphemes_of(self, words: Sequence[Morphemes], text: TextKnowledge) -> list[tuple[Morphemes, float]]:
        """The morphemes of words in pieces, and how probable they are as such."""
        if len(self.book.rules) == 1:
            return [(tuple(pieces), 1.0) for pieces in words]
        choosing = self._choosing(words, text)
        matrix = Templates(TEMPLATES, kind="rewrite").matrix(choosing.parts, self.index)
        sizes = np.diff(choosing.starts)
        batch = Choices(Stack(matrix.scores(self.weights), choosing.starts, sizes[:, np.newaxis]))
        best = choosing.starts[:-1] + np.array(batch.argmax(), np.int64)
        chances = batch.marginals().values[best].tolist()
        results = [choosing.results[k] for k in best.tolist()]
        found, at = [], 0
        for pieces in words:
            stop = at + len(pieces)
            found.append((tuple(results[at:stop]), float(np.prod(chances[at:stop]))))
            at = stop
        return found

    def _choosing(self, words: Sequence[Morphemes], text: TextKnowledge, right: Sequence[str] = ()) -> Choosing:
        """All candidates of the pieces of words; `right` are their morphemes, which are not counted as known."""
        pieces = [piece for own in words for piece in own]
        different = {piece: k for k, piece in enumerate(dict.fromkeys(pieces))}
        rules = [self.book.fitting(piece) for piece in different]
        results = [
            [self.book.rules[number].on(piece) for number in own] for piece, own in zip(different, rules, strict=True)
        ]
        table = Ragged.of(rules, np.int64)
        flat = list(chain.from_iterable(results))
        there = {one: k for k, one in enumerate(dict.fromkeys([*different, *flat]))}
        known = text.of_strings([one.lower() for one in there])
        of_result = np.array([there[one] for one in flat], np.int64)
        counts = np.array([self.morphemes.get(one.lower(), 0) for one in there], np.int64)
        each = np.array([different[piece] for piece in pieces], np.int64)
        sizes = table.lengths[each] if len(each) else np.zeros(0, np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        cell = np.repeat(table.offsets[:-1][each] - starts[:-1], sizes) + np.arange(int(starts[-1]))
        owner = np.repeat(each, sizes)
        result = of_result[cell]
        often = counts[result]
        if right:
            own = np.array([there.get(one, -1) for one in right], np.int64)
            often = often - (result == np.repeat(own, sizes))
        own_rows = np.array([there[piece] for piece in different], np.int64)
        neighbours = _around(words)
        columns = {name: np.array([of(piece) for piece in different], np.int64)[owner] for name, of in _OF.items()}
        columns |= {name: np.repeat(codes, sizes) for name, codes in neighbours.items()}
        columns |= {
            "rule": np.array([rule.code for rule in self.book.rules], np.int64)[table.values[cell]],
            "same": (table.values[cell] == 0).astype(np.int64),
            "known": np.searchsorted([1, 2, 4, 16], np.maximum(often, 0), side="right"),
            "word": known[3, result], "begins": known[0, result], "own": known[3, own_rows][owner],
        }  # fmt: skip
        made = [flat[k] for k in cell.tolist()]
        return Choosing(starts, made, Parts(len(cell), starts, {}, columns))

    # --- keeping

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        arrays: dict[str, NDArray[Any]] = {}
        columns: list[tuple[str, Iterable[str]]] = [
            ("old", (rule.old for rule in self.book.rules)), ("new", (rule.new for rule in self.book.rules)),
            ("beside", self.book.beside), ("morphemes", self.morphemes),
        ]  # fmt: skip
        for name, strings in columns:
            arrays[name], arrays[f"{name}_offsets"] = store.pack_strings(list(strings))
        return arrays | {
            "kinds": np.array([rule.kind for rule in self.book.rules], np.int32),
            "counts": np.array(list(self.morphemes.values()), np.int64),
            "keys": self.index.keys, "weights": self.weights,
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> FittedRewrites:
        """The inverse of `to_arrays`; what is wrong with it is refused."""
        layout: Layout = {
            "kinds": Numbers("int32", "rules", least=0, below=4), "old": Strings("rules", least=1),
            "new": Strings("rules"), "beside": Strings("rules"), "morphemes": Strings("morphemes", distinct=True),
            "counts": Numbers("int64", "morphemes", least=0), "keys": KEYS, "weights": Numbers("float32", "features"),
        }  # fmt: skip
        own = check(arrays, layout, "the rules of the saved model")
        rules = tuple(Rule(*row) for row in zip(own["kinds"].tolist(), own["old"], own["new"], strict=True))
        if rules[0] != SAME:
            raise ValueError("the first rule should change nothing")
        morphemes = dict(zip(own["morphemes"], own["counts"].tolist(), strict=True))
        return cls(RuleBook(rules, tuple(own["beside"])), morphemes, Index(own["keys"]), own["weights"])


def _around(words: Sequence[Morphemes]) -> dict[str, Codes]:
    """Codes of the neighbours of each piece, and its place in the word."""
    code = _Coder()
    before, after, follower, place = [], [], [], []
    for pieces in words:
        last = len(pieces) - 1
        for k in range(len(pieces)):
            following = pieces[k + 1].lower() if k < last else "$"
            before.append(code(pieces[k - 1].lower() if k else "^"))
            after.append(code(following))
            follower.append(code(following[:1]))
            place.append((k == 0) + 2 * (k == last))
    named = {"before": before, "next": after, "follower": follower, "place": place}
    return {name: np.array(codes, np.int64) for name, codes in named.items()}


class _Coder(dict[str, int]):
    """Codes of strings, each made once."""

    def __missing__(self, text: str) -> int:
        self[text] = made = code_of(text)
        return made

    def __call__(self, text: str) -> int:
        return self[text]


_OF: dict[str, Any] = {
    "piece": lambda piece: code_of(piece.lower()),
    "last": lambda piece: code_of(piece[-1:].lower()),
    "last2": lambda piece: code_of(piece[-2:].lower()),
    "last3": lambda piece: code_of(piece[-3:].lower()),
    "first": lambda piece: code_of(piece[:1].lower()),
    "first2": lambda piece: code_of(piece[:2].lower()),
    "size": lambda piece: min(len(piece), 6),
}
