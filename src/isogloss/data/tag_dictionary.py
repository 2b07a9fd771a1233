"""`TagDictionary`: which tags a word may have."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isogloss.data.bitext import Text
from isogloss.data.rows import Shown, counted
from isogloss.data.tagsets import TAGSETS, UD17, Tagset, possible_tags, tagset_named, tagset_of
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError

__all__ = ["TagDictionary", "is_number", "is_punctuation"]

Flags = NDArray[np.bool_]
Ids = NDArray[np.int64]

_UNKNOWN, _PUNCTUATION, _NUMBER, _WORD = -1, -2, -3, -4
"""What stands in place of an entry: nothing is known, or what rules know: the last has letters or digits."""
_RULES = 4
_WORDLIKE = frozenset("%‰‱&@#§")  # punctuation to Unicode, but words or symbols to those who tag
_QUOTES = frozenset("`´")
_NUMERAL = re.compile(r"[+\-−–]?[\d¼-¾⅐-⅞]+(?:[.,:/'’\-– \u00a0\u202f][\d¼-¾⅐-⅞]+)*")
_PUNCTUATION_TAGS = frozenset(found.punctuation for found in TAGSETS.values())
_NUMBER_TAGS = frozenset(found.number for found in TAGSETS.values())


class TagDictionary(Shown, Mapping[str, tuple[str, ...]]):
    """Words and the tags that each may have: from Wiktionary, UniMorph, a treebank, or a file of one's own.

    Parameters
    ----------
    entries : mapping of str to tags
        A tag or several for each word. A word without any has no entry.
    tagset : str, optional
        "universal12" or "ud17", of which all tags must be; "any" for others. By default, the set that has all of them.

    Attributes
    ----------
    tags : tuple of str
        All tags of the set, also those that no word has; if the tags are of no set that has a name, those of the
        entries in alphabetical order.
    tagset : Tagset or None

    Notes
    -----
    Words are kept in Unicode's composed form (NFC), and are looked up in it. Each word has the number of its set of
    tags; different sets are few.

    Examples
    --------
    >>> words = TagDictionary({"house": ["NOUN", "VERB"], "the": "DET"})
    >>> words["house"], "The" in words, len(words), words.tags[:3]
    (('NOUN', 'VERB'), False, 2, ('NOUN', 'VERB', 'ADJ'))
    >>> words.allowed(["The", "dog", "!"], ["DET", "NOUN", "."]).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """

    tags: tuple[str, ...]
    tagset: Tagset | None

    def __init__(self, entries: Mapping[str, Iterable[str]], tagset: str | None = None):
        pairs = ((word, tag) for word, tags in entries.items() for tag in ([tags] if isinstance(tags, str) else tags))
        self._fill(pairs, tagset)

    # Making ----------------------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], tagset: str | None = None) -> TagDictionary:
        """From pairs of word and tag; pairs of the same word are united."""
        made = cls.__new__(cls)
        made._fill(pairs, tagset)
        return made

    @classmethod
    def read(cls, path: str | PathLike[str], format: str = "auto", **options: Any) -> TagDictionary:
        """Read a table of words and tags, or one of UniMorph; see `isogloss.data.formats.read_dictionary`."""
        from isogloss.data.formats.dictionaries import read_dictionary

        return read_dictionary(path, format=format, **options)

    @classmethod
    def of_treebank(cls, treebank: Treebank, column: str = "upos", min_share: float = 0.0) -> TagDictionary:
        """The tags that each form has in a treebank.

        Parameters
        ----------
        treebank : Treebank
            Words without a tag (``_``) are not looked at.
        column : str
            "upos", "xpos" or another.
        min_share : float
            Leave out tags that fewer than this share (0 to 1) of a form's tokens have.
        """
        if column not in treebank.columns:
            raise ParameterError(f"of_treebank: no column {column!r}; there are {', '.join(treebank.columns)}")
        if not 0 <= min_share <= 1:
            raise ParameterError(f"of_treebank: min_share should be between 0 and 1, not {min_share!r}")
        forms, labels = treebank.columns["form"], treebank.columns[column]
        n_labels = max(len(labels.vocabulary), 1)
        seen, counts = np.unique(forms.ids.astype(np.int64) * n_labels + labels.ids, return_counts=True)
        form, label = seen // n_labels, seen % n_labels
        given = label != labels.vocabulary.index_of("_")
        form, label, counts = form[given], label[given], counts[given]
        totals = np.bincount(form, counts, minlength=len(forms.vocabulary))
        kept = counts >= min_share * totals[form]
        words, names = forms.vocabulary.types, labels.vocabulary.types
        pairs = [(words[w], names[t]) for w, t in zip(form[kept].tolist(), label[kept].tolist(), strict=True)]
        fine = {tag for _, tag in pairs} <= set(UD17)  # a treebank's NOUN is that of UD, unless it has other tags too
        return cls.of(pairs, "ud17" if fine else None)

    def _fill(self, pairs: Iterable[tuple[str, str]], tagset: str | None) -> None:
        numbers: dict[str, int] = {}
        masks: dict[str, int] = {}
        for word, tag in pairs:
            if not word or not tag:
                raise ParameterError(f"TagDictionary: neither word nor tag may be empty, as in ({word!r}, {tag!r})")
            key = _composed(word)
            masks[key] = masks.get(key, 0) | 1 << numbers.setdefault(tag, len(numbers))
        if tagset == "any":
            named = None
        elif tagset is None:
            named = tagset_of(numbers)
        else:
            named = tagset_named(tagset)
            foreign = sorted(set(numbers) - set(named.tags))
            if foreign:
                raise ParameterError(
                    f"TagDictionary: tag {foreign[0]!r} is not in {named.name} ({' '.join(named.tags)}). Map the tags "
                    "first, or give tagset='any'"
                )
        tags = tuple(sorted(numbers)) if named is None else named.tags
        words = sorted(masks)
        ids: dict[int, int] = {}
        sets = np.array([ids.setdefault(masks[word], len(ids)) for word in words], np.int32)
        table = np.zeros((len(ids), len(tags)), bool)
        for tag, number in numbers.items():
            table[:, tags.index(tag)] = [mask >> number & 1 for mask in ids]
        self._set(Vocabulary(words), sets, table, tags, named)

    def _set(
        self, words: Vocabulary, sets: NDArray[np.int32], table: Flags, tags: tuple[str, ...], tagset: Tagset | None
    ) -> None:
        """Words in order, the number of each one's set: int32[n_words], and the sets: bool[n_sets, n_tags]."""
        self._words, self._sets, self._table = words, sets, table
        self.tags, self.tagset = tags, tagset

    def _like(self, kept: Flags) -> TagDictionary:
        """Some of the words."""
        made = TagDictionary.__new__(TagDictionary)
        words = [word for word, keep in zip(self._words, kept.tolist(), strict=True) if keep]
        made._set(Vocabulary(words), self._sets[kept], self._table, self.tags, self.tagset)
        return made

    # Looking ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and _composed(word) in self._words

    def __getitem__(self, word: str) -> tuple[str, ...]:
        at = self._words.index_of(_composed(word))
        if at < 0:
            raise KeyError(word)
        return self.tags_of(at)

    def _said(self) -> list[str]:
        name = "other tags" if self.tagset is None else self.tagset.name
        return [counted(len(self), "word"), counted(self.n_pairs, "pair"), name]

    def _first_rows(self, most: int) -> dict[str, Any]:
        rows = [[word, " ".join(self[word])] for word in self._words[:most]]
        return {"heads": ["word", "tags"], "rows": rows, "total": len(self)}

    @cached_property
    def _names(self) -> list[tuple[str, ...]]:
        """The tags of each set."""
        return [tuple(tag for tag, has in zip(self.tags, row, strict=True) if has) for row in self._table.tolist()]

    @cached_property
    def _sizes(self) -> Ids:
        """The number of tags of each set: int64[n_sets]."""
        sizes: Ids = self._table.sum(axis=1)
        return sizes

    def tags_of(self, entry: int) -> tuple[str, ...]:
        """The tags of an entry by its number, as `entries_of` gives it."""
        return self._names[int(self._sets[entry])]

    def sizes(self, entries: Ids) -> Ids:
        """How many tags entries have, by their numbers: int64[n_entries]."""
        sizes: Ids = self._sizes[self._sets[entries]]
        return sizes

    @property
    def n_pairs(self) -> int:
        """Pairs of word and tag."""
        return int(self._sizes[self._sets].sum())

    def counts(self) -> dict[str, int]:
        """Words that may have each tag."""
        of_set = np.bincount(self._sets, minlength=len(self._table))
        return dict(zip(self.tags, (of_set @ self._table).tolist(), strict=True))

    def entries_of(self, types: Collection[str], *, fold_case: bool = True, rules: bool = False) -> Ids:
        """Where each word is found: int64[n_types].

        The number of the entry, in order of iteration: of the word as it is written or, with `fold_case`, otherwise of
        the word in small letters. -1 for words without one; with `rules`, -2 for punctuation marks, -3 for numerals and
        -4 for others with letters or digits among these.
        """
        words = types.types if isinstance(types, Vocabulary) else list(types)
        found = self._words.encode(words).astype(np.int64)
        forms: list[Callable[[str], str]] = [_composed, _folded] if fold_case else [_composed]
        for form in forms:  # whole lists at a time: there may be many words without an entry
            missing = np.flatnonzero(found < 0)
            found[missing] = self._words.encode(form(words[place]) for place in missing.tolist())
        if rules:
            missing = np.flatnonzero(found < 0)
            found[missing] = [_kind(words[place]) for place in missing.tolist()]
        return found

    def allowed(
        self,
        types: Collection[str],
        tags: Sequence[str] | None = None,
        *,
        fold_case: bool | Literal["both"] = True,
        rules: bool = True,
    ) -> Flags:
        """Which tags each word may have: bool[n_types, n_tags].

        Parameters
        ----------
        types : collection of str
            Words, such as a `Vocabulary`.
        tags : sequence of str, optional
            What the columns stand for; `tags` of the dictionary by default.
        fold_case : bool or "both"
            Look for the word in small letters where it has no entry as it is written; with "both", a word that has
            entries both ways has the tags of both. That suits words which are capitals only because a sentence begins
            with them (German "Es": a note in music, and "it").
        rules : bool
            A word without an entry which is all punctuation marks has the set's tag for them, and a numeral in digits
            has NUM, where `tags` have these. Other words with letters or digits are no punctuation.

        Returns
        -------
        bool[n_types, n_tags]
            All tags (but see `rules`) for words that are not known, and for those whose entry has none of `tags`.

        References
        ----------
        S. Li, J. Graça and B. Taskar, Wiki-ly Supervised Part-of-Speech Tagging, EMNLP 2012, section 3. The rules are
        ours.
        """
        chosen = self.tags if tags is None else tuple(tags)
        table = self._rows(chosen, rules)
        at = self.entries_of(types, fold_case=bool(fold_case), rules=rules)
        rows: Flags = table[np.where(at >= 0, self._padded[at], at)]
        if fold_case == "both":
            known = np.flatnonzero(at >= 0)
            words = list(types)
            small = self.entries_of([words[place].lower() for place in known.tolist()])
            rows[known[small >= 0]] |= table[self._sets[small[small >= 0]]]
        return rows

    @cached_property
    def _padded(self) -> NDArray[np.int32]:
        """The number of each word's set, and one of no meaning, so that any number may be looked up."""
        return np.append(self._sets, np.zeros(_RULES, np.int32))

    def _rows(self, tags: tuple[str, ...], rules: bool) -> Flags:
        """The sets over these tags, and behind them those of `_WORD`, `_NUMBER`, `_PUNCTUATION` and `_UNKNOWN`."""
        place = {tag: number for number, tag in enumerate(self.tags)}
        table = np.zeros((len(self._table) + _RULES, len(tags)), bool)
        for column, tag in enumerate(tags):
            if tag in place:
                table[:-_RULES, column] = self._table[:, place[tag]]
            table[_PUNCTUATION, column] = rules and tag in _PUNCTUATION_TAGS
            table[_NUMBER, column] = rules and tag in _NUMBER_TAGS
            table[_WORD, column] = tag not in _PUNCTUATION_TAGS
        table[~table.any(axis=1)] = True
        return table

    def known(self, types: Collection[str], *, fold_case: bool = True, rules: bool = True) -> Flags:
        """Whether each word has an entry or, with `rules`, is a punctuation mark or a numeral: bool[n_types]."""
        return np.isin(self.entries_of(types, fold_case=fold_case, rules=rules), (_UNKNOWN, _WORD), invert=True)

    # Changing --------------------------------------------------------------------------------------------------------

    def mapped(self, tagset: str) -> TagDictionary:
        """The same words with the tags of another set.

        To "universal12", each tag of UD has one tag. To "ud17", the twelve allow all that they may stand for: NOUN is
        NOUN or PROPN, VERB is VERB or AUX, CONJ is CCONJ or SCONJ, X is X, SYM or INTJ.

        Raises
        ------
        DataError
            A tag is in neither set.
        """
        wanted = tagset_named(tagset)
        if self.tagset == wanted:
            return self
        place = {tag: number for number, tag in enumerate(wanted.tags)}
        table = np.zeros((len(self._table), len(wanted.tags)), bool)
        for column, tag in enumerate(self.tags):
            for found in possible_tags(tag, tagset):
                table[:, place[found]] |= self._table[:, column]
        made = TagDictionary.__new__(TagDictionary)
        made._set(self._words, self._sets, table, wanted.tags, wanted)
        return made

    def sample(
        self, share: float, seed: int = 0, weights: Mapping[str, float] | Text | Treebank | None = None
    ) -> TagDictionary:
        """Part of the entries, to see what a smaller dictionary would do.

        A smaller sample is part of a larger one of the same `seed` and `weights`.

        Parameters
        ----------
        share : float
            Between 0 and 1: of the words or, with `weights`, of the sum of their weights.
        seed : int
        weights : mapping of str to float, Text or Treebank, optional
            How often each word occurs, so that the sample covers about that share of the tokens which the whole covers.
        """
        if not 0 <= share <= 1:
            raise ParameterError(f"sample: share should be between 0 and 1, not {share!r}")
        order = np.random.default_rng(seed).permutation(len(self))
        heavy = np.ones(len(self)) if weights is None else self._weights(weights)
        sums = np.cumsum(heavy[order])
        kept = np.zeros(len(self), bool)
        if len(self) and share > 0:
            # a word in the middle of which the share is reached stays if most of it lies before
            within = sums - heavy[order] / 2 < share * sums[-1]
            kept[order[within | (share == 1)]] = True
        return self._like(kept)

    def _weights(self, given: Mapping[str, float] | Text | Treebank) -> NDArray[np.float64]:
        """How often each entry is met: float64[n_words]."""
        if isinstance(given, Mapping):
            types, counts = list(given), np.array(list(given.values()), float)
        else:
            types, counts = types_of(given)
        if len(counts) and counts.min() < 0:
            raise ParameterError("sample: weights should not be negative")
        at = self.entries_of(types)
        return np.bincount(at[at >= 0], counts[at >= 0], minlength=len(self)).astype(float)

    # Looking at it beside text ---------------------------------------------------------------------------------------

    def coverage(self, text: Text | Treebank, *, most: int = 10) -> dict[str, Any]:
        """How much of a text has an entry; see `isogloss.data.dictionary_report.coverage`."""
        from isogloss.data.dictionary_report import coverage

        return coverage(self, text, most=most)

    def agreement(self, other: TagDictionary) -> dict[str, Any]:
        """How the entries compare with those of another; see `isogloss.data.dictionary_report.agreement`."""
        from isogloss.data.dictionary_report import agreement

        return agreement(self, other)

    def against(self, treebank: Treebank, column: str = "upos", *, most: int = 10) -> dict[str, Any]:
        """How the entries fit the tags of a treebank; see `isogloss.data.dictionary_report.against`."""
        from isogloss.data.dictionary_report import against

        return against(self, treebank, column, most=most)

    # Keeping ---------------------------------------------------------------------------------------------------------

    def write(self, path: str | PathLike[str]) -> None:
        """Write a line ``word TAB tag`` for each pair, whole or not at all; ``.gz`` and its like are compressed."""
        from isogloss.data.formats.dictionaries import format_dictionary
        from isogloss.data.formats.files import atomic_write

        data = format_dictionary(self)
        with atomic_write(path) as file:
            file.write(data)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays for `isogloss.store`."""
        from isogloss.store import pack_strings

        arrays: dict[str, NDArray[Any]] = {"sets": self._sets, "table": self._table}
        name = [] if self.tagset is None else [self.tagset.name]
        for key, strings in (("words", self._words), ("tags", self.tags), ("tagset", name)):
            arrays[key], arrays[f"{key}_offsets"] = pack_strings(strings)
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> TagDictionary:
        """The inverse of `to_arrays`."""
        from isogloss.layout import Layout, Numbers, Strings, check

        layout: Layout = {
            "words": Strings("words", distinct=True),
            "tags": Strings("tags", distinct=True, least=1, cells=True),
            "tagset": Strings("tagset"),
            "sets": Numbers("int32", "words", least=0, below="sets"),
            "table": Numbers("bool", ("sets", "tags")),
        }
        found = check(arrays, layout, "the dictionary of the saved model")
        made = cls.__new__(cls)
        tagset = tagset_named(found["tagset"][0]) if found["tagset"] else None
        made._set(Vocabulary(found["words"]), found["sets"], found["table"], tuple(found["tags"]), tagset)
        return made


def types_of(text: Text | Treebank) -> tuple[list[str], NDArray[np.int64]]:
    """The words that occur in a text, and how often each does: int64[n_types]."""
    if isinstance(text, Treebank):
        text = text.text()
    counts = np.bincount(text.ids.flat, minlength=len(text.vocabulary))
    used = np.flatnonzero(counts)
    return [text.vocabulary.types[number] for number in used.tolist()], counts[used]


def _kind(word: str) -> int:
    """What the rules say of a word."""
    if word[:1].isalpha():  # most are
        return _WORD
    if is_punctuation(word):
        return _PUNCTUATION
    if is_number(word):
        return _NUMBER
    return _WORD if any(letter.isalnum() for letter in word) else _UNKNOWN


def is_punctuation(word: str) -> bool:
    """Whether a word is all punctuation marks. ``%``, ``&``, ``@``, ``#`` and ``§`` are none: people read them out.

    Examples
    --------
    >>> [is_punctuation(word) for word in ("...", "«", "``", "%", "$", "o'")]
    [True, True, True, False, False, False]
    """
    return bool(word) and all(
        letter in _QUOTES or (unicodedata.category(letter)[0] == "P" and letter not in _WORDLIKE) for letter in word
    )


def is_number(word: str) -> bool:
    """Whether a word is a numeral in digits; with a full stop behind it, it is an ordinal in many languages and none.

    Examples
    --------
    >>> [is_number(word) for word in ("1,234.5", "-3", "15:30", "1990-1995", "3.", "1990s")]
    [True, True, True, True, False, False]
    """
    return _NUMERAL.fullmatch(word) is not None


def _composed(word: str) -> str:
    return word if word.isascii() or unicodedata.is_normalized("NFC", word) else unicodedata.normalize("NFC", word)


def _folded(word: str) -> str:
    return _composed(word.lower())
