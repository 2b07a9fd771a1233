"""`Propositions`: sentences with predicates, their senses, and the words that play a role for them, in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.rows import Rows, counted, gathered, row_numbers
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError

if TYPE_CHECKING:
    from isogloss.data.formats.propositions import RoleSource

__all__ = ["Predicate", "Proposed", "Propositions"]

Predicate = tuple[int, str, tuple[tuple[int, str], ...]]
"""A word, from 0, its sense, and its arguments: words with their roles."""


@dataclass(frozen=True)
class Proposed:
    """One sentence of `Propositions`.

    Parameters
    ----------
    words : tuple of str
    predicates : tuple of (int, str, tuple of (int, str))
        The word of each predicate, its sense, and its arguments with their roles.
    """

    words: tuple[str, ...]
    predicates: tuple[Predicate, ...]

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        told = []
        for word, sense, arguments in self.predicates:
            roles = ", ".join(f"{role}: {self.words[k]}" for k, role in arguments)
            told.append(f"{self.words[word]}.{sense}({roles})")
        return f"{' '.join(self.words)} | {'; '.join(told)}"


@dataclass(frozen=True, eq=False, repr=False)
class Propositions(Rows[Proposed]):
    """Sentences with predicates and roles: `given[0]` is a `Proposed`, and `given[:10]` are `Propositions`.

    Parameters
    ----------
    treebank : Treebank
        Words, with tags and trees where a file has them.
    offsets : int64[n_sentences + 1]
        Where the predicates of each sentence start.
    words : int64[n_predicates]
        The word of each predicate, counted within the sentence.
    senses : Column
        Of each predicate; ``_`` where it is not known.
    argument_offsets : int64[n_predicates + 1]
        Where the arguments of each predicate start.
    arguments : int64[n_arguments]
        Words that are arguments, counted within the sentence.
    roles : Column
    name : str
    source : RoleSource, optional
        The text of the file, in which what was found is written.

    Examples
    --------
    >>> trees = Treebank.of([[("She", "PRON"), ("sleeps", "VERB"), ("well", "ADV")]])
    >>> one = Propositions.of(trees, [[(1, "sleep.01", ((0, "ARG0"), (2, "ARGM-MNR")))]])
    >>> one, print(one[0])
    She sleeps well | sleeps.sleep.01(ARG0: She, ARGM-MNR: well)
    (Propositions(1 sentence, 3 words, 1 predicate, 2 arguments), None)
    """

    treebank: Treebank
    offsets: NDArray[np.int64]
    words: NDArray[np.int64]
    senses: Column
    argument_offsets: NDArray[np.int64]
    arguments: NDArray[np.int64]
    roles: Column
    name: str = "<memory>"
    source: RoleSource | None = None

    @classmethod
    def read(cls, path: str | PathLike[str], **options: Any) -> Propositions:
        """Read a file of Universal Propositions; see `isogloss.data.formats.propositions`."""
        from isogloss.data.formats.propositions import read_propositions

        return read_propositions(path, **options)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "<memory>") -> Propositions:
        """Parse UTF-8 text."""
        from isogloss.data.formats.propositions import parse_propositions

        return parse_propositions(data, name)

    @classmethod
    def of(cls, treebank: Treebank, predicates: Sequence[Sequence[Predicate]], name: str | None = None) -> Propositions:
        """From words, and one list of predicates for each sentence."""
        nothing, zero = np.zeros(0, np.int64), np.zeros(1, np.int64)
        none = Column(np.zeros(0, np.int32), Vocabulary([]))
        empty = np.zeros(len(treebank) + 1, np.int64)
        bare = cls(treebank, empty, nothing, none, zero, nothing, none, treebank.name if name is None else name)
        return bare.with_predicates(predicates)

    def with_predicates(self, predicates: Sequence[Sequence[Predicate]]) -> Propositions:
        """The same sentences with other predicates, one list for each, in the order of their words."""
        if len(predicates) != len(self):
            raise ParameterError(f"with_predicates: {len(predicates)} lists of predicates for {len(self)} sentences")
        lengths = np.diff(self.treebank.offsets).tolist()
        for s, (own, n) in enumerate(zip(predicates, lengths, strict=True)):
            named = [k for word, _, arguments in own for k in (word, *(a for a, _ in arguments))]
            if any(not 0 <= k < n for k in named) or any(b[0] <= a[0] for a, b in pairwise(own)):
                raise ParameterError(
                    f"with_predicates: sentence {s} has {n} words; predicates and arguments are some of them, counted "
                    "from 0, and predicates come in the order of their words"
                )
        each = [predicate for own in predicates for predicate in own]
        listed = [argument for _, _, arguments in each for argument in arguments]
        return replace(
            self,
            offsets=np.cumsum([0, *(len(own) for own in predicates)]).astype(np.int64),
            words=np.array([word for word, _, _ in each], np.int64),
            senses=Column.of(sense for _, sense, _ in each),
            argument_offsets=np.cumsum([0, *(len(arguments) for _, _, arguments in each)]).astype(np.int64),
            arguments=np.array([word for word, _ in listed], np.int64),
            roles=Column.of(role for _, role in listed),
        )

    def __len__(self) -> int:
        return len(self.treebank)

    @property
    def n_predicates(self) -> int:
        return len(self.words)

    @property
    def n_arguments(self) -> int:
        return len(self.arguments)

    def predicates(self, sentence: int) -> tuple[Predicate, ...]:
        """The predicates of one sentence."""
        found = []
        for p in range(int(self.offsets[sentence]), int(self.offsets[sentence + 1])):
            here = slice(*self.argument_offsets[p : p + 2].tolist())
            names = self.roles.vocabulary.types
            roles = [names[number] for number in self.roles.ids[here].tolist()]
            sense = self.senses.vocabulary.types[int(self.senses.ids[p])]
            found.append((int(self.words[p]), sense, tuple(zip(self.arguments[here].tolist(), roles, strict=True))))
        return tuple(found)

    def _row(self, number: int) -> Proposed:
        return Proposed(self.treebank.words(number), self.predicates(number))

    def part(self, start: int, stop: int) -> Propositions:
        """Sentences start..stop-1."""
        return self.take(np.arange(*slice(start, stop).indices(len(self))))

    def take(self, numbers: ArrayLike) -> Propositions:
        """Sentences by their numbers, in that order, or by a mask of booleans."""
        chosen = row_numbers(numbers, len(self), "Propositions")
        offsets, mine = gathered(self.offsets, chosen)
        cuts, inside = gathered(self.argument_offsets, mine)
        return replace(
            self,
            treebank=self.treebank.take(chosen),
            offsets=offsets,
            words=self.words[mine],
            senses=Column(self.senses.ids[mine], self.senses.vocabulary),
            argument_offsets=cuts,
            arguments=self.arguments[inside],
            roles=Column(self.roles.ids[inside], self.roles.vocabulary),
            source=None if self.source is None else self.source.chosen(chosen),
        )

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        words, found = int(self.treebank.offsets[-1]), [counted(self.n_predicates, "predicate")]
        found.append(counted(self.n_arguments, "argument"))
        return [counted(len(self), "sentence"), counted(words, "word"), *found, *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[number, str(sentence)] for number, sentence in enumerate(self[:most])]
        return {"heads": ["", "sentence"], "rows": rows, "total": len(self)}

    def to_bytes(self) -> bytes:
        """The text in the format that was read, with the predicates of now; CoNLL-U with columns of roles otherwise."""
        from isogloss.data.formats.propositions import format_propositions

        return format_propositions(self)

    def write(self, path: str | PathLike[str]) -> None:
        """Write a file, whole or not at all; ``-`` is standard output, ``.gz``, ``.xz`` and ``.zst`` are compressed."""
        from isogloss.data.formats.files import atomic_write

        data = self.to_bytes()
        with atomic_write(path) as file:
            file.write(data)
