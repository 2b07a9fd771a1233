"""`Treebank`: sentences with tags and trees, in bulk, and the file they came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Text
from isogloss.data.ragged import Ragged
from isogloss.data.reading import TextForm
from isogloss.data.rows import Rows, counted, gathered, row_number, row_numbers
from isogloss.data.sentence import Sentence, features_of
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError, TreebankError

if TYPE_CHECKING:
    from isogloss.data.formats.conllu import PlainSource, Source

__all__ = ["Column", "Ranges", "Sentence", "Treebank", "bundle_of", "features_of"]

_ORDER = ("form", "upos", "head", "deprel", "lemma", "xpos", "feats", "misc")


class Column(NamedTuple):
    """One column of all words: ``vocabulary[ids[k]]`` is what word k has there. ``_`` is a value like any other.

    Parameters
    ----------
    ids : int32[n_words]
    vocabulary : Vocabulary
    """

    ids: NDArray[np.int32]
    vocabulary: Vocabulary

    def __repr__(self) -> str:
        return f"Column({counted(len(self.ids), 'word')}, {counted(len(self.vocabulary), 'kind')})"

    @classmethod
    def of(cls, strings: Iterable[str]) -> Column:
        """Number strings in order of first appearance."""
        numbers: dict[str, int] = {}
        ids = [numbers.setdefault(text, len(numbers)) for text in strings]
        return cls(np.array(ids, np.int32), Vocabulary(numbers))


class Ranges(NamedTuple):
    """Multiword tokens: surface words that are several words of the trees, as Italian `della` is `di la`.

    Parameters
    ----------
    first, stop : int64[n_ranges]
        The first word of each among all words of the treebank, and the one behind its last.
    forms, misc : tuple of str
        The surface word, and what its line has in MISC.
    """

    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    forms: tuple[str, ...] = ()
    misc: tuple[str, ...] = ()

    def rows(self) -> list[tuple[int, int, str]]:
        """First word, the one behind the last, and form."""
        return list(zip(self.first.tolist(), self.stop.tolist(), self.forms, strict=True))


def bundle_of(features: Mapping[str, str]) -> str:
    """The inverse of `features_of`: names in alphabetical order whatever their case, as CoNLL-U asks.

    Examples
    --------
    >>> bundle_of({"Number": "Sing", "Case": "Nom"}), bundle_of({})
    ('Case=Nom|Number=Sing', '_')
    """
    names = sorted(features, key=lambda name: (name.lower(), name))
    return "|".join(f"{name}={features[name]}" if features[name] else name for name in names) or "_"


@dataclass(frozen=True, eq=False, repr=False)
class Treebank(Rows[Sentence]):
    """Sentences with tags and trees: `trees[0]` is a `Sentence`, and `trees[:10]` a treebank.

    A word is a syntactic word; multiword tokens and empty nodes are not, and are kept in the text that is written.
    Word k of all is word ``k - offsets[sentence]`` of its sentence, from 0; heads count from 1, as in the file.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Where the words of each sentence start, from 0.
    columns : mapping of str to Column
        "form", "lemma", "upos", "xpos", "feats", "deprel", "deps" and "misc"; ``_`` where the format has none.
    heads : int32[n_words]
        0 for the root, 1 to n for a word of the sentence, -1 where it is not known (``_``).
    name : str
        The file, for messages.
    source : Source or PlainSource
        The text, and where in it the words stand.
    form : TextForm, optional
        How the words were made, if they come from plain text; None where the file says what a word is.

    Examples
    --------
    >>> trees = Treebank.of([[("She", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]])
    >>> trees.words(0), trees.heads.tolist(), trees.strings("upos", 0)
    (('She', 'sleeps'), [2, 0], ('PRON', 'VERB'))
    >>> trees, trees[0].words
    (Treebank(1 sentence, 2 words), ('She', 'sleeps'))
    >>> print(trees.with_columns(upos=["X", "Y"]).to_bytes().decode().splitlines()[1].split())
    ['2', 'sleeps', '_', 'Y', '_', '_', '0', 'root', '_', '_']
    """

    offsets: NDArray[np.int64]
    columns: Mapping[str, Column]
    heads: NDArray[np.int32]
    name: str
    source: Source | PlainSource
    form: TextForm | None = None

    # Making ----------------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | PathLike[str], format: str | None = None, **options: Any) -> Treebank:
        """Read CoNLL-U, CoNLL-X or CoNLL-2009; see `isogloss.data.formats.read_treebank` for the options."""
        from isogloss.data.formats.conllu import read_treebank

        return read_treebank(path, format=format, **options)

    @classmethod
    def from_bytes(
        cls, data: bytes, name: str = "<memory>", *, format: str | None = None, trees: bool = False
    ) -> Treebank:
        """Parse UTF-8 text; `trees` refuses sentences that have two roots or a cycle."""
        from isogloss.data.formats.conllu import parse_treebank

        return parse_treebank(data, name, format=format, trees=trees)

    @classmethod
    def of(cls, sentences: Iterable[Iterable[Sequence[Any] | Mapping[str, Any]]], name: str = "<memory>") -> Treebank:
        """From words given as tuples (form, upos, head, deprel, lemma, xpos, feats, misc), short ones padded with
        ``_``, or as mappings with those keys. A head of -1 or None is unknown."""
        from isogloss.data.formats.conllu import table_of

        rows = [[_cells(word) for word in sentence] for sentence in sentences]
        return cls.from_bytes(table_of(rows), name, format="conllu")._with_empty([len(row) for row in rows])

    @classmethod
    def from_text(cls, text: Text) -> Treebank:
        """Words without tags or trees. An empty sentence stays, but CoNLL-U cannot write it.

        ``# sent_id`` is the number of the line, and ``# text`` the line. Where the text knows its lines, MISC has
        ``SpaceAfter=No`` after words that no space follows, and ``SpacesAfter`` where it is not a single space.

        Examples
        --------
        >>> from isogloss.data.tokenise import tokenise_text
        >>> print(Treebank.from_text(tokenise_text(["Hello!"])).to_bytes().decode().replace("\t", " "), end="")
        # sent_id = 1
        # text = Hello!
        1 Hello _ _ _ _ _ _ _ SpaceAfter=No
        2 ! _ _ _ _ _ _ _ _
        <BLANKLINE>
        """
        from isogloss.data.formats.conllu import plain_treebank

        return plain_treebank(text)

    @classmethod
    def from_split(cls, text: Text, words: Text, surface: NDArray[np.int64]) -> Treebank:
        """As `from_text`, of the words that a text was split into; those of one surface word are a multiword token.

        Parameters
        ----------
        text : Text
            As it is written.
        words : Text
            The words, in as many sentences.
        surface : int64[n_words]
            Of which word of all in `text` each is a part; it never falls, and no word is left out.
        """
        from isogloss.data.formats.conllu import split_treebank

        return split_treebank(text, words, surface)

    def _with_empty(self, lengths: Sequence[int]) -> Treebank:
        """The same words in sentences of these lengths, of which those of length 0 are missing here."""
        if len(lengths) == len(self):
            return self
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        from isogloss.data.formats.conllu import Source

        assert isinstance(self.source, Source)
        filled = np.asarray(lengths) > 0
        blocks = np.zeros((len(lengths), 2), np.int64)
        blocks[filled] = self.source.blocks
        return replace(self, offsets=offsets, source=replace(self.source, blocks=blocks, rest=b""))

    def with_columns(
        self,
        *,
        heads: ArrayLike | None = None,
        misc: Column | Sequence[str] | None = None,
        **columns: Column | Sequence[str],
    ) -> Treebank:
        """The same sentences with other contents in some columns.

        Parameters
        ----------
        heads : int[n_words], optional
        misc, form, lemma, upos, xpos, feats, deprel, deps : Column or sequence of str, optional
            One entry for each word of the treebank.
        """
        given = columns if misc is None else {**columns, "misc": misc}
        unknown = sorted(set(given) - set(self.columns))
        if unknown:
            raise ParameterError(
                f"with_columns: no column {unknown[0]!r}; there are {', '.join(self.columns)} and heads"
            )
        fresh = {name: self._column(name, content) for name, content in given.items()}
        changed = self.source.changed | set(fresh) | ({"head"} if heads is not None else set())
        return replace(
            self,
            columns={**self.columns, **fresh},
            heads=self.heads if heads is None else self._heads(heads),
            source=replace(self.source, changed=frozenset(changed)),
        )

    def with_predictions(self, *, heads: ArrayLike | None = None, **columns: Column | Sequence[str]) -> Treebank:
        """As `with_columns`, for what a tagger or a parser found: `predicted` remembers which columns these are.

        Examples
        --------
        >>> trees = Treebank.of([[("She", "X", 2), ("sleeps", "X", 0)]]).with_predictions(upos=["PRON", "VERB"])
        >>> trees.predicted, trees.to_bytes().decode().splitlines()[0]
        (frozenset({'upos'}), '# isogloss_predicted = UPOS')
        """
        found = self.with_columns(heads=heads, **columns)
        predicted = self.predicted | set(columns) | ({"head"} if heads is not None else set())
        return replace(found, source=replace(found.source, predicted=predicted))

    @property
    def predicted(self) -> frozenset[str]:
        """The columns that a tagger or a parser wrote, "head" among them; empty if nobody says so.

        CoNLL-U keeps them in a comment at the top of the file, so that scores leave out what was only carried along.
        """
        return self.source.predicted

    def _column(self, name: str, content: Column | Sequence[str]) -> Column:
        column = content if isinstance(content, Column) else Column.of(content)
        if len(column.ids) != self.n_words:
            raise ParameterError(
                f"with_columns: {name} has {len(column.ids)} entries for {self.n_words} words; give one for each"
            )
        for text in column.vocabulary:
            if not text or "\t" in text or "\n" in text or "\r" in text:
                raise ParameterError(
                    f"with_columns: {name} {text!r} is empty or has a tab or a line end in it. Write '_' for nothing"
                )
        if self.n_words and not 0 <= column.ids.min() <= column.ids.max() < len(column.vocabulary):
            raise ParameterError(f"with_columns: {name} has numbers outside its vocabulary")
        return column

    def _heads(self, heads: ArrayLike) -> NDArray[np.int32]:
        array = np.asarray(heads)
        if array.shape != (self.n_words,) or (array.size and array.dtype.kind not in "iu"):
            raise ParameterError(
                f"with_columns: heads should be {self.n_words} whole numbers, one for each word, not "
                f"{array.dtype} of shape {array.shape}"
            )
        wrong = (array < -1) | (array > np.repeat(self.lengths, self.lengths))
        if wrong.any():
            word = int(wrong.argmax())
            sentence, at = self.place_of(word)
            raise ParameterError(
                f"with_columns: word {at + 1} of {self.label_of(sentence)} gets head {array[word]}, but there are "
                f"{self.lengths[sentence]} words; 0 is the root and -1 unknown"
            )
        return array.astype(np.int32)

    def with_misc(self, key: str, values: Sequence[str | None]) -> Treebank:
        """Set ``key=value`` in MISC, beside what stands there already; None leaves a word as it is.

        Examples
        --------
        >>> trees = Treebank.of([[{"form": "Hello", "misc": "SpaceAfter=No"}, {"form": "!"}]])
        >>> trees.with_misc("Confidence", ["0.9", "0.8"]).strings("misc", 0)
        ('SpaceAfter=No|Confidence=0.9', 'Confidence=0.8')
        """
        column = self.columns["misc"]
        if len(values) != self.n_words:
            raise ParameterError(f"with_misc: {len(values)} values for {self.n_words} words; give one for each")
        kept = []
        for text in column.vocabulary:
            entries = [entry for entry in text.split("|") if text != "_" and entry.partition("=")[0] != key]
            kept.append("|".join([*entries, ""]) if entries else "")
        merged = [
            column.vocabulary[number] if value is None else f"{kept[number]}{key}={value}"
            for number, value in zip(column.ids.tolist(), values, strict=True)
        ]
        return self.with_columns(misc=merged)

    # Looking ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_words(self) -> int:
        return len(self.heads)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Words of each sentence: int64[n_sentences]."""
        return np.diff(self.offsets)

    def words(self, sentence: int) -> tuple[str, ...]:
        """The forms of one sentence."""
        return self.strings("form", sentence)

    def strings(self, column: str, sentence: int) -> tuple[str, ...]:
        """What the words of one sentence have in a column."""
        ids, vocabulary = self.columns[column]
        at = row_number(sentence, len(self), "Treebank")
        start, stop = self.offsets[at : at + 2].tolist()
        types = vocabulary.types
        return tuple(types[number] for number in ids[start:stop].tolist())

    def _row(self, number: int) -> Sentence:
        start, stop = self.offsets[number : number + 2].tolist()
        columns = {name: self.strings(name, number) for name in self.columns}
        title = self.sent_ids[number] or f"sentence {number + 1}"
        return Sentence(columns, tuple(self.heads[start:stop].tolist()), title)

    def as_dict(self, sentence: int, other: Treebank | None = None, names: Sequence[str] = ()) -> dict[str, Any]:
        """One sentence as plain data, for `isogloss.show.trees`; `other` has another tree of the same words.

        A number after ``Confidence=`` in MISC is the confidence of the word's link.
        """
        own = self[sentence]
        drawn = own.as_dict()
        if other is not None:
            another = other[sentence]
            if another.words != own.words:
                raise TreebankError(
                    f"{self.label_of(sentence)}: its words in {self.name} are not those in {other.name}; "
                    "two trees are drawn over the same words"
                )
            drawn.update(other=another.tree(), names=list(names or (self.name, other.name)))
        return drawn

    def place_of(self, word: int) -> tuple[int, int]:
        """Sentence of a word, and which word of it, both from 0."""
        sentence = int(np.searchsorted(self.offsets, word, side="right")) - 1
        return sentence, word - int(self.offsets[sentence])

    def line_of(self, word: int) -> int:
        """The line, from 1, of the file that word came from."""
        return self.source.line_of(word)

    def label_of(self, sentence: int) -> str:
        """How messages name a sentence: by its id, or by its number from 1."""
        found = self.sent_ids[sentence]
        return f"sentence {found}" if found else f"sentence {sentence + 1}"

    def comments(self, key: str) -> tuple[str, ...]:
        """What ``# key = ...`` says of each sentence, empty where nothing does."""
        return tuple(self.source.comments(key))

    @cached_property
    def sent_ids(self) -> tuple[str, ...]:
        return self.comments("sent_id")

    @cached_property
    def parallel_ids(self) -> tuple[str, ...]:
        """``# parallel_id``, by which sentences of different languages are paired."""
        return self.comments("parallel_id")

    @cached_property
    def ranges(self) -> Ranges:
        """The multiword tokens, in order.

        Examples
        --------
        >>> from isogloss.data.contractions import Contractions, split_text
        >>> trees = split_text(Text.of(["Am Haus"]), Contractions.of_language("de"))
        >>> trees.words(0), trees.ranges.rows()
        (('An', 'dem', 'Haus'), [(0, 2, 'Am')])
        """
        return self.source.ranges(self.offsets)

    def part(self, start: int, stop: int) -> Treebank:
        """Sentences start..stop-1, sharing arrays, vocabularies and text."""
        start, stop, _ = slice(start, stop).indices(len(self))
        stop = max(start, stop)
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        words = slice(first, last)
        return replace(
            self,
            offsets=self.offsets[start : stop + 1] - first,
            columns={name: Column(ids[words], vocabulary) for name, (ids, vocabulary) in self.columns.items()},
            heads=self.heads[words],
            source=self.source.part(slice(start, stop), words),
        )

    def take(self, numbers: ArrayLike) -> Treebank:
        """Sentences by their numbers, in that order, or by a mask of booleans; vocabularies and text are shared."""
        chosen = row_numbers(numbers, len(self), "Treebank")
        offsets, words = gathered(self.offsets, chosen)
        return replace(
            self,
            offsets=offsets,
            columns={name: Column(ids[words], vocabulary) for name, (ids, vocabulary) in self.columns.items()},
            heads=self.heads[words],
            source=self.source.take(chosen, words),
        )

    def _said(self) -> list[str]:
        name = [] if self.name == "<memory>" else [repr(self.name)]
        return [counted(len(self), "sentence"), counted(self.n_words, "word"), *name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[sentence.title, str(sentence)] for sentence in self[:most]]
        return {"heads": ["", "sentence"], "rows": rows, "total": len(self)}

    def text(self) -> Text:
        """The forms alone."""
        ids, vocabulary = self.columns["form"]
        return Text(Ragged(ids, self.offsets), vocabulary, self.name, form=self.form)

    # Checking and counting -------------------------------------------------------------------------------------------

    def check_trees(self, *, complete: bool = False) -> None:
        """Raise `TreebankError` at the first sentence that has two roots or a cycle; or, with `complete`, at the first
        unknown head."""
        from isogloss.data._numba.trees import CYCLE, TWO_ROOTS, first_problem

        kind, word, other = first_problem(self.offsets, self.heads, complete)
        if not kind:
            return
        sentence, at = self.place_of(int(word))
        beside = int(other) - int(self.offsets[sentence])
        forms = self.words(sentence)
        if kind == TWO_ROOTS:
            finding = (
                f"words {beside + 1} ({forms[beside]!r}) and {at + 1} ({forms[at]!r}) are both the root (head 0). "
                "A tree has one; hang the other on a word"
            )
        elif kind == CYCLE:
            finding = (
                f"word {at + 1} ({forms[at]!r}) is its own ancestor: its heads lead back to it. Correct one of them"
                if at != beside
                else f"word {at + 1} ({forms[at]!r}) is its own head. Give another, or 0 for the root"
            )
        else:
            finding = f"word {at + 1} ({forms[at]!r}) has no head. Give one; this use needs whole trees"
        found = self.sent_ids[sentence]
        place = f", sentence {found}" if found else ""
        raise TreebankError(f"{self.name}, line {self.line_of(int(word))}{place}: {finding}")

    @cached_property
    def crossing(self) -> NDArray[np.bool_]:
        """Whether the link from a word to its head crosses another link of the sentence: bool[n_words].

        The root stands before the first word and its link counts; unknown heads have none.
        """
        from isogloss.data._numba.trees import crossing_links

        crossing: NDArray[np.bool_] = crossing_links(self.offsets, self.heads)
        return crossing

    def statistics(self) -> dict[str, Any]:
        """Counts of what is here; `crossing_words` and `crossing_sentences` are shares, in percent.

        Examples
        --------
        >>> heads = {"a": 0, "b": 4, "c": 1, "d": 1}
        >>> trees = Treebank.of([[{"form": form, "head": head, "deprel": "dep"} for form, head in heads.items()]])
        >>> found = trees.statistics()
        >>> found["words"], found["crossing_words"], found["labels"]
        (4, 50.0, 1)
        """
        sentence_of = np.repeat(np.arange(len(self)), self.lengths)
        roots = np.bincount(sentence_of[self.heads == 0], minlength=len(self))
        crossed = np.unique(sentence_of[self.crossing])
        kinds = {
            "types": "form",
            "lemmas": "lemma",
            "upos": "upos",
            "xpos": "xpos",
            "feats": "feats",
            "labels": "deprel",
        }
        return {
            "sentences": len(self),
            "words": self.n_words,
            "longest": int(self.lengths.max(initial=0)),
            **{name: self._kinds(column) for name, column in kinds.items()},
            "unknown_heads": int(np.count_nonzero(self.heads < 0)),
            "several_roots": int(np.count_nonzero(roots > 1)),
            "crossing_words": 100 * int(np.count_nonzero(self.crossing)) / max(self.n_words, 1),
            "crossing_sentences": 100 * len(crossed) / max(len(self), 1),
        }

    def _kinds(self, column: str) -> int:
        """Different contents of a column, ``_`` aside."""
        ids, vocabulary = self.columns[column]
        used = np.bincount(ids, minlength=len(vocabulary)) > 0
        nothing = vocabulary.index_of("_")
        return int(np.count_nonzero(used)) - int(nothing >= 0 and bool(used[nothing]) and column != "form")

    # Writing ---------------------------------------------------------------------------------------------------------

    def to_bytes(self, format: str | None = None) -> bytes:
        """The text: what was read, with the changed columns in it; see `isogloss.data.formats.conllu` for others."""
        from isogloss.data.formats.conllu import format_treebank

        return format_treebank(self, format)

    def write(self, path: str | PathLike[str], format: str | None = None) -> None:
        """Write a file, whole or not at all; ``-`` is standard output, ``.gz``, ``.xz`` and ``.zst`` are compressed.

        Without `format`, a name in ``.conllu``, ``.conllx`` or ``.conll09`` says which it is to be, and otherwise it
        stays as it was.
        """
        from isogloss.data.formats.conllu import layout_of_name
        from isogloss.data.formats.files import atomic_write, name_of

        promised = layout_of_name(name_of(path))
        if format is None and promised is not None and not name_of(path).endswith(".conll"):
            format = promised.name
        data = self.to_bytes(format)
        with atomic_write(path) as file:
            file.write(data)


def _cells(word: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    given = dict(word) if isinstance(word, Mapping) else dict(zip(_ORDER, word, strict=False))
    if given.get("head", 0) in (None, -1):
        given["head"] = "_"
    return given
