"""What a parser sees beside words and tags: further codes of words, and marks on links.

A *view* is learnt from the treebank that a parser learns from, and is kept with the parser. It adds *atoms*, codes of
each word that templates may look at (``head.cluster & child.cluster``), or *marks*, a small number for each pair of
words, such as what another parser thinks of the link. Kernels know of columns and of numbers, not of views.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ModelError, ParameterError
from isogloss.layout import Layout, Numbers, Strings, check, texts
from isogloss.progress import Progress
from isogloss.structures.batch import Stack

__all__ = ["LABELS_OF_MARKS", "MOST_VIEWS", "Sight", "View", "WordTable", "seen_by", "templates_of_atoms", "views_from"]

MOST_VIEWS = 4
"""Views of one parser that mark links."""
MOST_ATOMS = 64
RESERVED = frozenset({"word", "lemma", "tag", "fine", "between", "marker", "bundle"})
LABELS_OF_MARKS = 255
"""Marks are numbers from 1 to this; 0 is none."""


class Sight(NamedTuple):
    """What views see of the words of a treebank.

    names : tuple of str
        Atoms.
    values : int64[n_words, n_atoms]
        The value of each atom; −1 where there is none.
    marks : tuple of Stack
        For each view that marks links, [n + 1, n + 1] for each sentence as (head, child), 0 for no mark.
    """

    names: tuple[str, ...]
    values: NDArray[np.int64]
    marks: tuple[Stack, ...]

    @classmethod
    def nothing(cls, n_words: int) -> Sight:
        """No views."""
        return cls((), np.zeros((n_words, 0), np.int64), ())


class View(ABC):
    """What is seen beside words and tags."""

    kind: ClassVar[str]

    @property
    def atoms(self) -> tuple[str, ...]:
        """Names of the codes that it adds to words."""
        return ()

    @property
    def marks_links(self) -> bool:
        """Whether it marks links."""
        return False

    def learn(self, treebank: Treebank, progress: Progress | None = None) -> Sight:
        """Learn from a treebank, and say what is seen of its sentences by who has not learnt from them."""
        return self.see(treebank)

    @abstractmethod
    def see(self, treebank: Treebank) -> Sight:
        """What is seen of new sentences."""

    @abstractmethod
    def to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and a header for `isogloss.store`."""

    @classmethod
    @abstractmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of `to_parts`; nothing is trusted."""


def seen_by(views: Sequence[View], treebank: Treebank) -> Sight:
    """What several views see, together."""
    return joined([view.see(treebank) for view in views], treebank.n_words)


def joined(sights: Sequence[Sight], n_words: int) -> Sight:
    """Several sights as one."""
    names = tuple(name for sight in sights for name in sight.names)
    values = np.concatenate([np.zeros((n_words, 0), np.int64), *(sight.values for sight in sights)], axis=1)
    return Sight(names, values, tuple(stack for sight in sights for stack in sight.marks))


def checked_views(views: Sequence[View]) -> tuple[View, ...]:
    """The views, once it is known that a parser can have them together."""
    names = [name for view in views for name in view.atoms]
    if len(set(names)) < len(names) or RESERVED & set(names) or len(names) > MOST_ATOMS:
        raise ParameterError(
            f"views: atoms should have names of their own, other than {', '.join(sorted(RESERVED))}, and be at most "
            f"{MOST_ATOMS}, not {', '.join(names)}"
        )
    if sum(view.marks_links for view in views) > MOST_VIEWS:
        raise ParameterError(f"views: at most {MOST_VIEWS} may mark links")
    return tuple(views)


def views_from(
    arrays: Mapping[str, NDArray[Any]], metas: Sequence[Mapping[str, Any]], kinds: Mapping[str, type[View]]
) -> tuple[View, ...]:
    """Views of a saved model."""
    from isogloss import store

    found = []
    for number, meta in enumerate(metas):
        if meta["kind"] not in kinds:
            raise ModelError(f"the saved parser has a view of kind {meta['kind']!r}, which this version does not know")
        found.append(kinds[meta["kind"]].from_parts(store.unprefixed(f"view{number}.", arrays), meta))
    return checked_views(found)


# --- codes of words


def templates_of_atoms(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What links and larger parts are seen by where words have these atoms, by kind of part."""
    links, grand, siblings = [], [], []
    for name in names:
        h, c, g, p = (f"{role}.{name}" for role in ("head", "child", "grandparent", "previous"))
        links += [h, c, f"{h} & {c}", f"head.tag & {c}", f"{h} & child.tag", f"{h} & head.tag & {c} & child.tag"]
        links += [f"{h} & child.lemma", f"head.lemma & {c}"]
        grand += [f"{g} & {h} & {c}", f"{g} & {c}", f"{g} & head.tag & {c}"]
        siblings += [f"{h} & {p} & {c}", f"{p} & {c}"]
    return {"links": tuple(links), "grand": tuple(grand), "siblings": tuple(siblings)}


_LAYOUT: Layout = {
    "words": Strings("n_words", distinct=True),
    "values": Numbers("int32", ("n_words", "n_atoms"), least=-1),
    "unknown": Numbers("int32", ("n_atoms",), least=-1),
}


@dataclass(frozen=True, eq=False)
class WordTable(View):
    """Atoms by the word alone: classes of words, how frequent they are in a domain, where they lie in some space.

    Parameters
    ----------
    names : tuple of str
    words : Vocabulary
        In small letters.
    values : int32[n_words, n_atoms]
        −1 for words without a value.
    unknown : int32[n_atoms]
        The values of words that are not in the table.

    Examples
    --------
    >>> table = WordTable(("colour",), Vocabulary(["red", "blue", "dog"]), np.array([[1], [1], [-1]], np.int32))
    >>> table.see(Treebank.of([[("Red", "ADJ"), ("cat", "NOUN")]])).values.tolist()
    [[1], [-1]]
    """

    kind: ClassVar[str] = "words"
    names: tuple[str, ...]
    words: Vocabulary
    values: NDArray[np.int32]
    unknown: NDArray[np.int32] | None = None

    @property
    def atoms(self) -> tuple[str, ...]:
        return self.names

    def see(self, treebank: Treebank) -> Sight:
        """The values of the words of a treebank."""
        ids, vocabulary = treebank.columns["form"]
        at = self.words.encode([word.lower() for word in vocabulary])
        none = np.full(len(self.names), -1, np.int32) if self.unknown is None else self.unknown
        table = np.concatenate([self.values, none[None]])
        return Sight(self.names, table[at][ids].astype(np.int64), ())

    def to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """For `isogloss.store`."""
        from isogloss.store import pack_strings

        blob, offsets = pack_strings(self.words.types)
        none = np.full(len(self.names), -1, np.int32) if self.unknown is None else self.unknown
        arrays: dict[str, NDArray[Any]] = {
            "words": blob,
            "words_offsets": offsets,
            "values": self.values,
            "unknown": none,
        }
        return arrays, {"kind": self.kind, "names": list(self.names)}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse of `to_parts`."""
        names = texts(meta["names"], "names")
        found = check(arrays, _LAYOUT, "a view of the saved parser", {"n_atoms": len(names)})
        return cls(names, Vocabulary(found["words"]), found["values"], found["unknown"])
