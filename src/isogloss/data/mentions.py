"""`Mentions`: sentences with the names that they mention, and relations between these, in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Text
from isogloss.data.ragged import Ragged
from isogloss.data.rows import Rows, counted, gathered, row_numbers
from isogloss.data.treebank import Column
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError

if TYPE_CHECKING:
    from isogloss.data.formats.mentions import MentionSource

__all__ = ["Entity", "Mentioned", "Mentions", "Relation"]

Entity = tuple[int, int, str]
"""The first word of a name, from 0, the one behind its last, and its type."""
Relation = tuple[int, int, str]
"""Two names of a sentence, by their numbers from 0, and what the first is to the second."""


@dataclass(frozen=True)
class Mentioned:
    """One sentence of `Mentions`; printed, names are in brackets.

    Parameters
    ----------
    words : tuple of str
    entities : tuple of (int, int, str)
        First word, the one behind the last, and type of each name, by their places.
    relations : tuple of (int, int, str)
        Numbers of two names, and the label of what the first is to the second.
    confidence, relation_confidence : tuple of float, optional
        How sure a model is of each.
    title : str
        Its number in the file.
    """

    words: tuple[str, ...]
    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...] = ()
    confidence: tuple[float, ...] | None = None
    relation_confidence: tuple[float, ...] | None = None
    title: str = ""

    def __len__(self) -> int:
        return len(self.words)

    def __str__(self) -> str:
        begins: dict[int, str] = {}
        ends: dict[int, str] = {}
        for begin, end, kind in self.entities:
            begins[begin] = begins.get(begin, "") + "["
            ends[end - 1] = f" {kind}]" + ends.get(end - 1, "")
        return " ".join(f"{begins.get(t, '')}{word}{ends.get(t, '')}" for t, word in enumerate(self.words))

    def __repr__(self) -> str:
        return f"Mentioned({str(self)!r:.80})"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for `isogloss.show`."""
        drawn: dict[str, Any] = {
            "words": list(self.words),
            "entities": [list(entity) for entity in self.entities],
            "relations": [list(relation) for relation in self.relations],
            "title": self.title,
        }
        if self.confidence is not None:
            drawn["confidence"] = list(self.confidence)
        if self.relation_confidence is not None:
            drawn["relation_confidence"] = list(self.relation_confidence)
        return drawn

    def _repr_html_(self) -> str:
        from isogloss import show

        return show.names_svg(self.as_dict(), standalone=False)


@dataclass(frozen=True, eq=False, repr=False)
class Mentions(Rows[Mentioned]):
    """Sentences with names and relations: `mentions[0]` is a `Mentioned`, and `mentions[:10]` are `Mentions`.

    Names of a sentence come in the order of their places: by their first words, and where these are the same by their
    last. They may lie inside of each other, though models and files of tags (BIO) know only such as do not.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Where the words of each sentence start, from 0.
    columns : mapping of str to Column
        "form" of the words, and what else a file says of them: "tag" for parts of speech, "label" for tags of names as
        they stood there.
    entity_offsets : int64[n_sentences + 1]
        Where the names of each sentence start.
    begins, ends : int32[n_entities]
        First word of each name and the one behind its last, counted within the sentence.
    types : Column
        What kind of name each is.
    relation_offsets : int64[n_sentences + 1]
        Where the relations of each sentence start.
    firsts, seconds : int32[n_relations]
        Names that are related, counted within the sentence.
    labels : Column
        What the first is to the second.
    name : str
        The file, for messages.
    source : MentionSource, optional
        The text of the file, in which what was found is written.
    confidence, relation_confidence : float64[n], optional
        How sure a model is of each name, and of each relation.

    Examples
    --------
    >>> mentions = Mentions.of([(["She", "lives", "in", "New", "York"], [(3, 5, "LOC")])])
    >>> mentions, mentions.entities(0)
    (Mentions(1 sentence, 5 words, 1 name), ((3, 5, 'LOC'),))
    >>> print(mentions[0])
    She lives in [New York LOC]
    """

    offsets: NDArray[np.int64]
    columns: Mapping[str, Column]
    entity_offsets: NDArray[np.int64]
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]
    types: Column
    relation_offsets: NDArray[np.int64]
    firsts: NDArray[np.int32]
    seconds: NDArray[np.int32]
    labels: Column
    name: str = "<memory>"
    source: MentionSource | None = None
    confidence: NDArray[np.float64] | None = field(default=None, kw_only=True)
    relation_confidence: NDArray[np.float64] | None = field(default=None, kw_only=True)

    # Making ----------------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | PathLike[str], format: str | None = None, **options: Any) -> Mentions:
        """Read a file of names; see `isogloss.data.formats.read_mentions`."""
        from isogloss.data.formats.mentions import read_mentions

        return read_mentions(path, format=format, **options)

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "<memory>", *, format: str | None = None) -> Mentions:
        """Parse UTF-8 text; see `isogloss.data.formats.read_mentions`."""
        from isogloss.data.formats.mentions import parse_mentions

        return parse_mentions(data, name, format=format)

    @classmethod
    def of(cls, sentences: Iterable[Sequence[Any]], name: str = "<memory>") -> Mentions:
        """From words, names and, where there are any, relations of each sentence: ``(words, entities, relations)``."""
        words: list[Sequence[str]] = []
        entities: list[Sequence[Entity]] = []
        relations: list[Sequence[Relation]] = []
        for number, sentence in enumerate(sentences):
            if isinstance(sentence, str) or not 1 <= len(sentence) <= 3:
                raise ParameterError(
                    f"Mentions.of: sentence {number} should be (words, entities) or (words, entities, relations), not "
                    f"{sentence!r:.60}"
                )
            own, found, related = [*sentence, (), ()][:3]
            place = {k: new for new, k in enumerate(_in_order(found))}
            words.append(tuple(own))
            entities.append(found)
            relations.append([(place.get(a, -1), place.get(b, -1), label) for a, b, label in related])
        lengths = np.array([len(own) for own in words], np.int64)
        columns = {"form": Column.of(word for own in words for word in own)}
        return cls.bare(_offsets(lengths), columns, name).with_entities(entities).with_relations(relations)

    @classmethod
    def bare(
        cls,
        offsets: NDArray[np.int64],
        columns: Mapping[str, Column],
        name: str = "<memory>",
        source: MentionSource | None = None,
    ) -> Mentions:
        """Sentences without names, such as text that these are to be found in."""
        nothing, none = np.zeros(0, np.int32), np.zeros(len(offsets), np.int64)
        empty = Column(nothing, Vocabulary([]))
        return cls(offsets, columns, none, nothing, nothing, empty, none, nothing, nothing, empty, name, source)

    @classmethod
    def from_text(cls, text: Text) -> Mentions:
        """Text without names."""
        offsets = text.ids.offsets - text.ids.offsets[0]
        return cls.bare(offsets, {"form": Column(text.ids.flat.astype(np.int32), text.vocabulary)}, text.name)

    def with_entities(
        self, entities: Sequence[Sequence[Entity]], confidence: Sequence[Sequence[float]] | None = None
    ) -> Mentions:
        """The same sentences with other names, one list for each, in any order; relations are left out."""
        if len(entities) != len(self):
            raise ParameterError(f"with_entities: {len(entities)} lists of names for {len(self)} sentences")
        found: list[Entity] = []
        sure: list[float] = []
        for s, (own, n) in enumerate(zip(entities, self.lengths.tolist(), strict=True)):
            order = _in_order(own)
            for k in order:
                begin, end, kind = own[k]
                if not 0 <= begin < end <= n:
                    raise ParameterError(
                        f"with_entities: sentence {s} has {n} words, and no name from {begin} to {end}"
                    )
                found.append((int(begin), int(end), str(kind)))
            if confidence is not None:
                sure += [float(confidence[s][k]) for k in order]
        none = np.zeros(len(self) + 1, np.int64)
        nothing = np.zeros(0, np.int32)
        return replace(
            self,
            entity_offsets=_offsets(np.array([len(own) for own in entities], np.int64)),
            begins=np.array([entity[0] for entity in found], np.int32),
            ends=np.array([entity[1] for entity in found], np.int32),
            types=Column.of(entity[2] for entity in found),
            relation_offsets=none,
            firsts=nothing,
            seconds=nothing,
            labels=Column(nothing, Vocabulary([])),
            confidence=None if confidence is None else np.array(sure, np.float64),
            relation_confidence=None,
        )

    def with_relations(
        self, relations: Sequence[Sequence[Relation]], confidence: Sequence[Sequence[float]] | None = None
    ) -> Mentions:
        """The same sentences and names with other relations, one list for each sentence."""
        if len(relations) != len(self):
            raise ParameterError(f"with_relations: {len(relations)} lists of relations for {len(self)} sentences")
        found = [(int(a), int(b), str(label)) for own in relations for a, b, label in own]
        counts = np.array([len(own) for own in relations], np.int64)
        most = np.repeat(np.diff(self.entity_offsets), counts)
        pairs = np.array([relation[:2] for relation in found], np.int64).reshape(-1, 2)
        wrong = ((pairs < 0) | (pairs >= most[:, None])).any(axis=1)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            s = int(np.repeat(np.arange(len(self)), counts)[at])
            raise ParameterError(
                f"with_relations: sentence {s} has {int(most[at])} names, and a relation between {found[at][0]} and "
                f"{found[at][1]}; names are counted from 0"
            )
        sure = None if confidence is None else np.array([float(c) for own in confidence for c in own], np.float64)
        return replace(
            self,
            relation_offsets=_offsets(counts),
            firsts=pairs[:, 0].astype(np.int32),
            seconds=pairs[:, 1].astype(np.int32),
            labels=Column.of(relation[2] for relation in found),
            relation_confidence=sure,
        )

    # Looking ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_words(self) -> int:
        return int(self.offsets[-1])

    @property
    def n_entities(self) -> int:
        return len(self.begins)

    @property
    def n_relations(self) -> int:
        return len(self.firsts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Words of each sentence: int64[n_sentences]."""
        return np.diff(self.offsets)

    def words(self, sentence: int) -> tuple[str, ...]:
        """The words of one sentence."""
        return self.strings("form", sentence)

    def strings(self, column: str, sentence: int) -> tuple[str, ...]:
        """What the words of one sentence have in a column."""
        return _named(self.columns[column], self.offsets, sentence)

    def entities(self, sentence: int) -> tuple[Entity, ...]:
        """The names of one sentence."""
        here = slice(*self.entity_offsets[sentence : sentence + 2].tolist())
        kinds = _named(self.types, self.entity_offsets, sentence)
        return tuple(zip(self.begins[here].tolist(), self.ends[here].tolist(), kinds, strict=True))

    def relations(self, sentence: int) -> tuple[Relation, ...]:
        """The relations of one sentence, between names by their numbers."""
        here = slice(*self.relation_offsets[sentence : sentence + 2].tolist())
        kinds = _named(self.labels, self.relation_offsets, sentence)
        return tuple(zip(self.firsts[here].tolist(), self.seconds[here].tolist(), kinds, strict=True))

    def _row(self, number: int) -> Mentioned:
        here = slice(*self.entity_offsets[number : number + 2].tolist())
        related = slice(*self.relation_offsets[number : number + 2].tolist())
        sure = None if self.confidence is None else tuple(self.confidence[here].tolist())
        other = None if self.relation_confidence is None else tuple(self.relation_confidence[related].tolist())
        return Mentioned(
            self.words(number), self.entities(number), self.relations(number), sure, other, f"sentence {number + 1}"
        )

    def line_of(self, sentence: int) -> int:
        """The line of the file, from 1, in which a sentence begins; its number where there is no file."""
        return sentence + 1 if self.source is None else self.source.line_of(sentence)

    def part(self, start: int, stop: int) -> Mentions:
        """Sentences start..stop-1, sharing arrays, vocabularies and text."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        cuts = [offsets[start : stop + 1] for offsets in (self.offsets, self.entity_offsets, self.relation_offsets)]
        inside = [slice(int(cut[0]), int(cut[-1])) for cut in cuts]
        return self._chosen([cut - cut[0] for cut in cuts], inside, slice(start, stop))

    def take(self, numbers: ArrayLike) -> Mentions:
        """Sentences by their numbers, in that order, or by a mask of booleans; vocabularies and text are shared."""
        chosen = row_numbers(numbers, len(self), "Mentions")
        found = [gathered(cut, chosen) for cut in (self.offsets, self.entity_offsets, self.relation_offsets)]
        return self._chosen([cut for cut, _ in found], [places for _, places in found], chosen)

    def _chosen(self, cuts: Sequence[NDArray[np.int64]], inside: Sequence[Any], rows: Any) -> Mentions:
        words, names, related = inside
        return replace(
            self,
            offsets=cuts[0],
            columns={name: Column(ids[words], vocabulary) for name, (ids, vocabulary) in self.columns.items()},
            entity_offsets=cuts[1],
            begins=self.begins[names],
            ends=self.ends[names],
            types=Column(self.types.ids[names], self.types.vocabulary),
            relation_offsets=cuts[2],
            firsts=self.firsts[related],
            seconds=self.seconds[related],
            labels=Column(self.labels.ids[related], self.labels.vocabulary),
            source=None if self.source is None else self.source.chosen(rows),
            confidence=None if self.confidence is None else self.confidence[names],
            relation_confidence=None if self.relation_confidence is None else self.relation_confidence[related],
        )

    def text(self) -> Text:
        """The words alone."""
        ids, vocabulary = self.columns["form"]
        return Text(Ragged(ids, self.offsets), vocabulary, self.name)

    def statistics(self) -> dict[str, Any]:
        """Counts of what is here."""
        widths = self.ends - self.begins
        return {
            "sentences": len(self),
            "words": self.n_words,
            "entities": self.n_entities,
            "relations": self.n_relations,
            "longest": int(self.lengths.max(initial=0)),
            "longest_entity": int(widths.max(initial=0)),
            "types": {kind: int(np.sum(self.types.ids == k)) for k, kind in enumerate(self.types.vocabulary)},
        }

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        related = [counted(self.n_relations, "relation")] if self.n_relations else []
        sizes = [counted(len(self), "sentence"), counted(self.n_words, "word"), counted(self.n_entities, "name")]
        return [*sizes, *related, *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[number, str(sentence)] for number, sentence in enumerate(self[:most])]
        return {"heads": ["", "sentence"], "rows": rows, "total": len(self)}

    # Writing ---------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The text in the format that was read, in which names are those of now; columns of CoNLL without a file."""
        from isogloss.data.formats.mentions import format_mentions

        return format_mentions(self)

    def write(self, path: str | PathLike[str]) -> None:
        """Write a file, whole or not at all; ``-`` is standard output, ``.gz``, ``.xz`` and ``.zst`` are compressed."""
        from isogloss.data.formats.files import atomic_write

        data = self.to_bytes()
        with atomic_write(path) as file:
            file.write(data)


def _in_order(entities: Sequence[Entity]) -> list[int]:
    """Numbers of names, by their places."""
    return sorted(range(len(entities)), key=lambda k: (entities[k][0], entities[k][1]))


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _named(column: Column, offsets: NDArray[np.int64], row: int) -> tuple[str, ...]:
    start, stop = offsets[row : row + 2].tolist()
    types = column.vocabulary.types
    return tuple(types[number] for number in column.ids[start:stop].tolist())
