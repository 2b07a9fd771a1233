"""What a parser sees of the words of a treebank: codes of forms, lemmas, tags and features, in bulk.

Codes are hashes of strings, so that no list of words belongs to a model, and new words have codes as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank, features_of
from isogloss.errors import ModelError
from isogloss.features.mixing import AFTER, BEFORE
from isogloss.layout import texts
from isogloss.structures.batch import Stack
from isogloss.tasks.parse.views import Sight

__all__ = ["ATOMS", "PAD", "Columns", "Words", "code_of", "columns_of", "encode"]

ATOMS = ("word", "lemma", "tag", "fine", "between", "marker", "bundle")
"""What templates may look at, in the order of the columns of `Words.codes`:

the form in small letters; the lemma, or the first five letters; the universal tag; the same with the language's own
tag, or with the features that matter most where there is none; the tag, and for punctuation and conjunctions the word;
the preposition or conjunction of the phrase, see `marker_codes`; and the whole bundle of features.
"""

PAD = 2
"""Rows before the root and after the last word of each sentence, so that neighbours always exist."""

ATTRIBUTES = (
    "Case", "Number", "Gender", "Person", "VerbForm", "Mood", "Tense", "Voice", "Aspect", "Definite", "Degree",
    "PronType", "Poss", "NumType", "Animacy", "Polarity",
)  # fmt: skip
"""Features of which each has templates of its own, if it occurs."""
FINE = ("Case", "VerbForm", "Mood", "PronType", "Definite")
MOST_ATTRIBUTES = 10
MOST_XPOS = 150
"""Tags of the language are taken as they are unless there are more."""

_MARKERS = {"ADP": 1, "SCONJ": 1, "PART": 1, "NOUN": 2, "PROPN": 2, "DET": 2, "ADJ": 2, "NUM": 2, "SYM": 2, "X": 2}
_MARKERS |= {"ADV": 2, "PRON": 3, "AUX": 3, "VERB": 4, "PUNCT": 5, "CCONJ": 5, "INTJ": 5}
_SALTS = {name: 0x1000 + 16 * i for i, name in enumerate((*ATOMS, "attribute", "edge", "view"))}


class Columns(NamedTuple):
    """Which columns of a treebank are looked at; fixed when a model is fitted."""

    tag: str
    """"upos", or "xpos" where nothing else is given."""
    fine: str
    """"xpos", "feats" or "", what is added to the tag."""
    lemma: bool
    attributes: tuple[str, ...]
    more: tuple[str, ...] = ()
    """Atoms that views add (`isogloss.tasks.parse.views`)."""

    @property
    def atoms(self) -> tuple[str, ...]:
        """All that templates may look at."""
        return (*ATOMS, *self.more)

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> Columns:
        """From what a saved model says."""
        made = cls(given["tag"], given["fine"], given["lemma"], texts(given["attributes"], "attributes"))
        made = made._replace(more=texts(given.get("more", ()), "more"))
        known = made.tag in ("upos", "xpos") and made.fine in ("xpos", "feats", "") and isinstance(made.lemma, bool)
        if not known or len(made.attributes) > MOST_ATTRIBUTES:
            raise ModelError(f"the saved parser looks at columns that are not known here: {made}. Train it again")
        return made


NO_ROWS = np.zeros(0, np.int64)
NO_MARKS = np.zeros((0, 0), np.uint8)


@dataclass(frozen=True, eq=False)
class Words:
    """Sentences as codes; row ``starts[s] + PAD + i`` is word *i* of sentence *s*, and i = 0 is the root.

    Parameters
    ----------
    codes : uint64[n_rows, n_atoms]
        By `ATOMS`, then those of views; not negative as int64, but for the codes of what lies before and after a
        sentence.
    features : uint64[n_rows, n_attributes]
        Code of the value of each attribute, 0 where a word has none.
    kinds : int8[n_rows]
        What is counted between two words: 1 verbs, 2 punctuation, 3 conjunctions, 0 all else.
    starts, lengths : int64[n_sentences]
    begins : int64[n_rows], or empty
        Where the marks of links to each word begin, that of the root first.
    marks : uint8[n_marks, n_views]
    """

    codes: NDArray[np.uint64]
    features: NDArray[np.uint64]
    kinds: NDArray[np.int8]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    begins: NDArray[np.int64] = field(default_factory=lambda: NO_ROWS)
    marks: NDArray[np.uint8] = field(default_factory=lambda: NO_MARKS)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """As kernels take them."""
        return self.codes, self.features, self.kinds, self.begins, self.marks

    def without_features(self) -> Words:
        """The same words without attributes and marks."""
        return Words(self.codes, np.zeros((len(self.codes), 0), np.uint64), self.kinds, self.starts, self.lengths)

    def __len__(self) -> int:
        return len(self.starts)


def columns_of(treebank: Treebank, *, lemma: bool = True) -> Columns:
    """The columns of a treebank that say something: what is ``_`` throughout, or the same as another, is left out.

    With `lemma` false, lemmas are not looked at even where they are given: those of a predicted pipeline are not.
    """
    given = {name: _kinds(treebank, name) for name in ("upos", "xpos")}
    tag = "upos" if given["upos"] else "xpos"
    fine = ""
    attributes = _attributes(treebank)
    if tag == "upos" and given["upos"] < given["xpos"] <= MOST_XPOS:
        fine = "xpos"
    elif attributes:
        fine = "feats"
    return Columns(tag, fine, lemma and _kinds(treebank, "lemma") > 0, attributes)


def _kinds(treebank: Treebank, column: str) -> int:
    ids, vocabulary = treebank.columns[column]
    used = np.bincount(ids, minlength=len(vocabulary)) > 0
    nothing = vocabulary.index_of("_")
    return int(np.count_nonzero(used)) - int(nothing >= 0 and bool(used[nothing]))


def _attributes(treebank: Treebank) -> tuple[str, ...]:
    """Those of `ATTRIBUTES` that at least one word in two hundred has, the most frequent."""
    ids, vocabulary = treebank.columns["feats"]
    counts = dict.fromkeys(ATTRIBUTES, 0)
    for bundle, count in zip(vocabulary, np.bincount(ids, minlength=len(vocabulary)).tolist(), strict=True):
        for name in features_of(bundle):
            if name in counts:
                counts[name] += count
    found = sorted((name for name in ATTRIBUTES if 200 * counts[name] >= max(1, len(ids))), key=lambda a: -counts[a])
    return tuple(found[:MOST_ATTRIBUTES])


def code_of(atom: str, text: str) -> int:
    """The code of one string; for tests and explanations.

    Examples
    --------
    >>> code_of("tag", "NOUN") == code_of("tag", "NOUN"), code_of("tag", "NOUN") == code_of("word", "NOUN")
    (True, False)
    """
    return int(_codes([text], atom)[0])


def _codes(strings: Sequence[str], atom: str) -> NDArray[np.uint64]:
    from isogloss.tasks.parse._numba.codes import string_codes

    joined = "".join(strings).encode("utf-32-le", "surrogatepass")
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, strings), np.int64, len(strings)), out=offsets[1:])
    out = np.empty(len(strings), np.uint64)
    string_codes(np.frombuffer(joined, np.uint32), offsets, _SALTS[atom], out)
    return out


def values_of(atom: str, columns: Columns) -> tuple[tuple[str, ...], Callable[..., str]]:
    """The columns of a treebank that an atom is made of, and how; ``marker`` is found by a kernel instead."""
    if atom == "word":
        return ("form",), str.lower
    if atom == "lemma":
        return (("lemma",), str) if columns.lemma else (("form",), lambda form: form.lower()[:5])
    if atom == "tag":
        return (columns.tag,), str if columns.tag == "upos" else lambda tag: tag[:2]
    if atom == "fine":
        if columns.fine == "feats":
            return (columns.tag, "feats"), _fine
        return ((columns.tag, columns.fine), "{}|{}".format) if columns.fine else ((columns.tag,), str)
    if atom == "between":
        return (columns.tag, "form"), _between
    return ("feats",), str


def _fine(tag: str, bundle: str) -> str:
    features = features_of(bundle)
    return "|".join([tag, *(f"{name}={features[name]}" for name in FINE if name in features)])


def _between(tag: str, form: str) -> str:
    return f"{tag}|{form.lower()}" if tag in ("PUNCT", "CCONJ", "SCONJ") else tag


def encode(
    treebank: Treebank, columns: Columns, offsets: NDArray[np.int64] | None = None, sight: Sight | None = None
) -> Words:  # fmt: skip
    """A treebank as codes; `offsets` say where sentences begin and end, if it is not as in the treebank.

    `sight` is what views see of the treebank; columns should name its atoms.
    """
    from isogloss.tasks.parse._numba.codes import marker_codes

    offsets = treebank.offsets if offsets is None else offsets
    lengths, count = np.ascontiguousarray(np.diff(offsets)), len(offsets) - 1
    starts = np.ascontiguousarray(offsets[:-1] + (2 * PAD + 1) * np.arange(count))
    n_rows = treebank.n_words + (2 * PAD + 1) * count
    at = np.arange(treebank.n_words) + np.repeat(starts + PAD + 1 - offsets[:-1], lengths)
    root, none = _codes(["root", "none"], "edge")
    before, after = np.array([BEFORE, AFTER]).astype(np.uint64)
    codes = np.full((n_rows, len(columns.atoms)), after, np.uint64)
    features = np.zeros((n_rows, len(columns.attributes)), np.uint64)
    kinds, roles = np.zeros(n_rows, np.int8), np.full(n_rows, 5, np.int8)
    for shift in range(PAD):
        codes[starts + shift] = before
    codes[starts + PAD] = root
    for i, atom in enumerate(ATOMS):
        if atom != "marker":
            codes[at, i] = _column(treebank, atom, *values_of(atom, columns))
    _fill_features(treebank, columns, at, features)
    begins, marks = NO_ROWS, NO_MARKS
    if sight is not None:
        assert sight.names == columns.more, "views and columns do not belong together"
        for i in range(len(sight.names)):
            used, numbers = np.unique(sight.values[:, i], return_inverse=True)
            codes[at, len(ATOMS) + i] = _codes([str(value) for value in used.tolist()], "view")[numbers]
        if sight.marks:
            begins, marks = _marks(sight.marks, treebank.offsets, offsets, starts, n_rows)
    tags = treebank.columns[columns.tag]
    counted = {"VERB": 1, "AUX": 1, "PUNCT": 2, "CCONJ": 3}
    kinds[at] = np.array([counted.get(tag, 0) for tag in tags.vocabulary], np.int8)[tags.ids]
    roles[at] = np.array([_MARKERS.get(tag, 5) for tag in tags.vocabulary], np.int8)[tags.ids]
    lemmas, markers = np.ascontiguousarray(codes[:, 1]), codes[:, 5].copy()
    marker_codes(starts, lengths, roles, lemmas, none, markers)
    codes[:, 5] = markers
    return Words(codes, features, kinds, starts, lengths, begins, marks)


def _marks(
    stacks: Sequence[Stack],
    sentences: NDArray[np.int64],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    n_rows: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where the marks of each row begin, and marks by child; pieces of sentences that were cut have none."""
    from isogloss.tasks.parse._numba.codes import lay_marks

    begins = np.zeros(n_rows, np.int64)
    lengths = np.diff(offsets)
    marks = np.zeros((int((lengths * (lengths + 1)).sum()), len(stacks)), np.uint8)
    given = np.stack([stack.values.astype(np.uint8) for stack in stacks], axis=1)
    lay_marks(sentences, offsets, starts, stacks[0].offsets, given, begins, marks)
    return begins, marks


def _column(treebank: Treebank, atom: str, names: tuple[str, ...], form: Callable[..., str]) -> NDArray[np.uint64]:
    """uint64[n_words]: codes of what is made of one column or two; each combination is made once."""
    first = treebank.columns[names[0]]
    if len(names) == 1:
        used, numbers = np.unique(first.ids, return_inverse=True)
        return _codes([form(first.vocabulary[i]) for i in used.tolist()], atom)[numbers]
    second = treebank.columns[names[1]]
    pairs = first.ids.astype(np.int64) * len(second.vocabulary) + second.ids
    used, numbers = np.unique(pairs, return_inverse=True)
    made = [
        form(first.vocabulary[i], second.vocabulary[j])
        for i, j in zip(*(part.tolist() for part in np.divmod(used, max(1, len(second.vocabulary)))), strict=True)
    ]
    return _codes(made, atom)[numbers]


def _fill_features(treebank: Treebank, columns: Columns, at: NDArray[Any], features: NDArray[np.uint64]) -> None:
    ids, vocabulary = treebank.columns["feats"]
    bundles = [features_of(bundle) for bundle in vocabulary]
    for i, name in enumerate(columns.attributes):
        texts = [f"{name}={bundle[name]}" if name in bundle else "" for bundle in bundles]
        codes = _codes(texts, "attribute")
        codes[[text == "" for text in texts]] = 0
        features[at, i] = codes[ids]
