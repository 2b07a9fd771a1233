"""Bitexts of any size from a synchronous grammar, with known links, trees, tags, morphemes and dictionary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Ragged, Text, Vocabulary
from isogloss.errors import ParameterError
from isogloss.samples._grammar import RELATIONS, TAGS, VARIANTS, Tables, tables
from isogloss.samples._spelling import Speller, split_code

__all__ = ["Labels", "SyntheticBitext", "SyntheticGrammar", "synthetic"]

T = TypeVar("T")

_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Labels(Sequence[tuple[T, ...]], Generic[T]):
    """A label for every word: row *i* is the labels of sentence *i*; work in bulk uses `ids`.

    Examples
    --------
    >>> tags = Labels(Ragged.of([[0, 1], [1]]), ("NOUN", "VERB"))
    >>> tags[0], len(tags)
    (('NOUN', 'VERB'), 2)
    """

    ids: Ragged
    names: Sequence[T]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row):  # type: ignore[no-untyped-def]
        if isinstance(row, slice):
            return Labels(self.ids[row], self.names)
        return tuple(self.names[number] for number in self.ids[row].tolist())


@dataclass(frozen=True, eq=False)
class SyntheticBitext:
    """A generated bitext and everything that is known about it.

    Parameters
    ----------
    bitext : Bitext
    links : Links
        The true links; a word without links has no counterpart.
    source_tags, target_tags : Labels of str
        Universal part-of-speech tags.
    source_heads, target_heads : Ragged of int32
        The head of each word, words from 1, the root 0. All trees are projective and have one root.
    source_relations, target_relations : Labels of str
    source_morphemes, target_morphemes : Labels of tuple of str
        Stem and endings of each word; joined, they spell it.
    grammar : SyntheticGrammar
    """

    bitext: Bitext
    links: Links
    source_tags: Labels[str]
    target_tags: Labels[str]
    source_heads: Ragged
    target_heads: Ragged
    source_relations: Labels[str]
    target_relations: Labels[str]
    source_morphemes: Labels[tuple[str, ...]]
    target_morphemes: Labels[tuple[str, ...]]
    grammar: SyntheticGrammar
    _words: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return len(self.bitext)

    @cached_property
    def lexicon(self) -> dict[str, dict[str, float]]:
        """The true dictionary of the source stems that occur: p(target stem | source stem) in the grammar.

        Of concepts that take two words on one side, the inflected one is listed. Words without counterpart are absent.
        """
        return self.grammar._lexicon(self._words)


@dataclass(frozen=True)
class SyntheticGrammar:
    """The grammar behind `synthetic`, for texts in pieces: `generate(n, start)` and `stream(block)`.

    The options are those of `synthetic`. Pair *k* depends on the options and on *k* alone, so any pieces, made in any
    order or place, are parts of one text without end.

    Examples
    --------
    >>> grammar = SyntheticGrammar(seed=3)
    >>> whole, part = grammar.generate(20), grammar.generate(5, start=15)
    >>> whole.bitext[15] == part.bitext[0]
    True
    """

    seed: int = 0
    reordering: float = 0.3
    fertility: float = 0.1
    null: float = 0.1
    vocabulary: int = 2000
    growth: float = 0.7
    morphology: bool = True
    ambiguity: float = 0.1
    cognates: float = 0.1
    freedom: float = 0.2
    lengths: tuple[int, int] = (2, 20)

    def __post_init__(self) -> None:
        shares = {"reordering": 1.0, "fertility": 1.0, "ambiguity": 1.0, "cognates": 1.0, "freedom": 1.0, "null": 0.5}
        for name, most in shares.items():
            if not 0 <= getattr(self, name) <= most:
                raise ParameterError(f"synthetic: {name} should be between 0 and {most:g}, not {getattr(self, name)!r}")
        if not 0 <= self.growth <= 0.95:
            raise ParameterError(
                f"synthetic: growth should be between 0 (a closed vocabulary) and 0.95, not {self.growth!r}"
            )
        if self.vocabulary < 10:
            raise ParameterError(f"synthetic: vocabulary should be at least 10 stems, not {self.vocabulary!r}")
        if self.seed < 0:
            raise ParameterError(f"synthetic: seed should be 0 or more, not {self.seed!r}")
        shortest, longest = self.lengths
        if not 1 <= shortest <= longest <= 1000:
            raise ParameterError(
                f"synthetic: lengths should be (shortest, longest) with 1 <= shortest <= longest <= 1000, "
                f"not {self.lengths!r}"
            )

    @cached_property
    def _tables(self) -> Tables:
        return tables(self.seed, asdict(self))

    @cached_property
    def _speller(self) -> Speller:
        return Speller(self.seed)

    def generate(self, n: int, start: int = 0) -> SyntheticBitext:
        """Pairs start..start+n-1 of the text of this grammar."""
        from isogloss.samples._numba.derive import derive

        if n < 0 or start < 0:
            raise ParameterError(f"synthetic: the number of pairs and the start should be 0 or more, not {n}, {start}")
        derived = _Derived()
        for first in range(start, start + n, _BLOCK):
            derived.append(*derive(self._tables, first, min(first + _BLOCK, start + n)))
        return self._assemble(derived, start)

    def stream(self, block: int = 10_000, start: int = 0) -> Iterator[SyntheticBitext]:
        """The text in blocks, without end and in bounded memory; each block has its own vocabulary numbers."""
        if block < 1:
            raise ParameterError(f"synthetic: a block should have at least one pair, not {block}")
        while True:
            yield self.generate(block, start)
            start += block

    def _assemble(self, derived: _Derived, start: int) -> SyntheticBitext:
        source, target = (self._side(derived, side) for side in (0, 1))
        bitext = Bitext(source.text, target.text, first_line=start + 1)
        return SyntheticBitext(
            bitext=bitext,
            links=Links(derived.offsets(2), derived.column("links", 0), derived.column("links", 1), bitext=bitext),
            source_tags=source.tags,
            target_tags=target.tags,
            source_heads=source.heads,
            target_heads=target.heads,
            source_relations=source.relations,
            target_relations=target.relations,
            source_morphemes=source.morphemes,
            target_morphemes=target.morphemes,
            grammar=self,
            _words=source.words,
        )

    def _side(self, derived: _Derived, side: int) -> _Side:
        offsets = derived.offsets(side)
        types, analyses = self._number(derived.column("codes", side))
        morphemes = self._spell(types, side)
        numbers: dict[str, int] = {}  # of spellings: two analyses may be spelt alike
        of_type = np.array([numbers.setdefault("".join(word), len(numbers)) for word in morphemes], np.int32)
        name = f"<synthetic {('source', 'target')[side]}>"
        return _Side(
            text=Text(Ragged(of_type[analyses], offsets), Vocabulary(numbers), name),
            tags=Labels(Ragged(derived.column("tags", side), offsets), TAGS),
            heads=Ragged(derived.column("heads", side), offsets),
            relations=Labels(Ragged(derived.column("relations", side), offsets), RELATIONS),
            morphemes=Labels(Ragged(analyses, offsets), morphemes),
            words=np.unique(types >> 3),
        )

    @staticmethod
    def _number(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The distinct codes in order of first appearance, and the place of each code among them."""
        types, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(order.size, np.int32)
        rank[order] = np.arange(order.size, dtype=np.int32)
        return types[order], rank[inverse]

    def _spell(self, codes: NDArray[np.int64], side: int) -> list[tuple[str, ...]]:
        """The morphemes of each code."""
        speller = self._speller
        words, features, tags = split_code(codes)
        distinct, place = np.unique(words, return_inverse=True)
        spelt = self._stems(distinct, side)
        stems = [spelt[k] for k in place.tolist()]
        if not self.morphology:
            return [(stem,) for stem in stems]
        return [
            (stem, *speller.endings(stem, tag, feature, side)) if word >= 0 and word % VARIANTS != 2 else (stem,)
            for stem, word, feature, tag in zip(stems, words.tolist(), features.tolist(), tags.tolist(), strict=True)
        ]

    def _stems(self, words: NDArray[np.int64], side: int) -> list[str]:
        """The stem, or the function word, with each number."""
        from isogloss.samples._numba.derive import COGNATE, SHIFTED, properties

        speller, key = self._speller, self._tables.key[1]
        concepts = np.maximum(words, 0) // VARIANTS
        borrowed = (properties(key, concepts, COGNATE) < self.cognates) & (words % VARIANTS == 0) & (words >= 0)
        shifted = properties(key, concepts, SHIFTED) < 0.5
        return [
            speller.function_word(-1 - word, side)
            if word < 0
            else speller.cognate(word, shift)
            if cognate and side == 1
            else speller.stem(word, side)
            for word, cognate, shift in zip(words.tolist(), borrowed.tolist(), shifted.tolist(), strict=True)
        ]

    def _lexicon(self, words: NDArray[np.int64]) -> dict[str, dict[str, float]]:
        from isogloss.samples._numba.derive import SECOND, properties

        ours = words[(words >= 0) & (words % VARIANTS != 2)]
        concepts = ours // VARIANTS
        second = np.where(properties(self._tables.key[1], concepts, 1) < self.ambiguity, SECOND, 0.0)
        usual, other = self._stems(concepts * VARIANTS, 1), self._stems(concepts * VARIANTS + 1, 1)
        found = {
            stem: {a: 1.0 - p, b: p} if p else {a: 1.0}
            for stem, a, b, p in zip(self._stems(ours, 0), usual, other, second.tolist(), strict=True)
        }
        seen = set(self._stems(words[words < 0], 0))
        for stem, a, b in self._speller.pairs_of_function_words:
            if stem in seen:
                found[stem] = {a: 1.0 - self.ambiguity, b: self.ambiguity} if a != b and self.ambiguity else {a: 1.0}
        return found


class _Side(NamedTuple):
    """One side of the text; `words` are the numbers of the stems that occur."""

    text: Text
    tags: Labels[str]
    heads: Ragged
    relations: Labels[str]
    morphemes: Labels[tuple[str, ...]]
    words: NDArray[np.int64]


class _Derived:
    """What the kernel returned for each block, without the unused ends of its arrays."""

    def __init__(self) -> None:
        self._lengths: list[NDArray[np.int64]] = [np.zeros((3, 0), np.int64)]
        self._parts: dict[tuple[str, int], list[NDArray[Any]]] = {
            (name, side): [np.empty(0, kind)]
            for name, kind in (
                ("codes", np.int64),
                ("heads", np.int32),
                ("tags", np.int8),
                ("relations", np.int8),
                ("links", np.int32),
            )
            for side in (0, 1)
        }

    def append(self, lengths: NDArray[np.int64], *arrays: NDArray[Any]) -> None:
        self._lengths.append(lengths)
        totals = lengths.sum(axis=1)
        for name, array in zip(("codes", "heads", "tags", "relations", "links"), arrays, strict=True):
            for side in (0, 1):
                end = totals[2] if name == "links" else totals[side]
                self._parts[name, side].append(array[side, :end].copy())

    def offsets(self, row: int) -> NDArray[np.int64]:
        lengths = np.concatenate([block[row] for block in self._lengths])
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def column(self, name: str, side: int) -> NDArray[Any]:
        return np.concatenate(self._parts[name, side])


def synthetic(
    n: int,
    *,
    seed: int = 0,
    reordering: float = 0.3,
    fertility: float = 0.1,
    null: float = 0.1,
    vocabulary: int = 2000,
    growth: float = 0.7,
    morphology: bool = True,
    ambiguity: float = 0.1,
    cognates: float = 0.1,
    freedom: float = 0.2,
    lengths: tuple[int, int] = (2, 20),
) -> SyntheticBitext:
    r"""Generate `n` sentence pairs in two invented languages.

    A synchronous dependency grammar grows one tree from its head outwards and writes it in both languages. Concepts
    have a rank in a double power law: a core in which shares fall as one over the rank, and an endless tail of rarer
    ones,

    .. math:: p(r) \propto (r + q)^{-1} \text{ for } r \le V, \qquad
              p(r) \propto (V + q)^{\gamma - 1} (r + q)^{-\gamma} \text{ beyond}, \qquad \gamma = 1/\text{growth},

    so that the number of stems grows in the end as (number of words)^growth.

    Parameters
    ----------
    n : int
        How many pairs. The first pairs of a longer text are the pairs of a shorter one.
    seed : int
        Chooses the grammar, the spelling and the text.
    reordering : float
        Share of the relations whose dependents stand on the other side of the head in the target; 0 keeps the order,
        1 mirrors it.
    fertility : float
        Share of the concepts that take two words on one side (half of them on each) and one on the other. The second
        word of a verb is a particle that may stand apart from it.
    null : float
        Share of the words of each side without a counterpart, about; at most 0.5.
    vocabulary : int
        Stems of the core, over all open classes.
    growth : float
        Exponent with which the vocabulary grows, 0 (the core is all there is) to 0.95.
    morphology : bool
        Inflect: number and tense in the source; number, case, tense and agreement, with vowel harmony, in the target.
    ambiguity : float
        Share of the concepts with a synonym in the target, and of those with one in the source; also how often a
        function word takes another translation than its usual one.
    cognates : float
        Share of the concepts whose target stem is the source stem, half of them after regular sound changes (which
        leave some stems as they are).
    freedom : float
        How often, relative to `reordering`, a single dependent changes sides against its relation's habit.
    lengths : (int, int)
        Fewest and most words of a sentence, on either side. Where little room is left, second words and words without
        counterpart become rarer.

    References
    ----------
    Gerlach and Altmann, Stochastic model for the vocabulary growth in natural languages, Physical Review X 3, 2013:
    the double power law. We differ: a Mandelbrot shift q = 10, since function words are drawn apart.

    Examples
    --------
    >>> text = synthetic(100, seed=7)
    >>> len(text), text.bitext[0] == synthetic(200, seed=7).bitext[0]
    (100, True)
    """
    grammar = SyntheticGrammar(
        seed=seed,
        reordering=reordering,
        fertility=fertility,
        null=null,
        vocabulary=vocabulary,
        growth=growth,
        morphology=morphology,
        ambiguity=ambiguity,
        cognates=cognates,
        freedom=freedom,
        lengths=lengths,
    )
    return grammar.generate(n)
