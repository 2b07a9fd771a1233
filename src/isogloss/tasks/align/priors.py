"""What is known of word pairs before any counting: spelling, stems, and the user's own lexicon.

All three are pseudo-counts on entries of the pair table, so that evidence outweighs them: a prior of one is worth one
expected link.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from isogloss.tasks.align.corpus import Corpus
    from isogloss.tasks.align.model import Model

__all__ = [
    "Cut",
    "Spellings",
    "StemTable",
    "Stems",
    "compared",
    "cuts",
    "fold",
    "skeleton",
    "spelling_prior",
    "stem",
]

# A plain romanisation, enough to see that Москва is Moskva: letters of Cyrillic and Greek by sound. Other scripts, from
# kana to Thai, are spelt by the tables of `anyascii`; Chinese characters there as in Mandarin.
_LETTERS = "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґљњћђџјαβγδεζηθικλμνξοπρσςτυφχψω"
_SOUNDS = (
    "a b v g d e e zh z i i k l m n o p r s t u f h c ch sh shch ' y ' e iu ia i i e g l n c d d j "
    "a b g d e z e th i k l m n x o p r s s t y ph ch ps o"
)
_ROMAN = dict(zip(_LETTERS, _SOUNDS.split(" "), strict=True))


@lru_cache(maxsize=1 << 18)
def fold(word: str) -> str:
    """A word without case, accents and script: what spelling is compared by.

    >>> fold("Élysée"), fold("Москва"), fold("ホテル"), fold("北京"), fold("서울")
    ('elysee', 'moskva', 'hoteru', 'beijing', 'seoul')
    """
    if word.isascii():
        return word.lower()
    letters = (c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c) or c in _VOICED)
    plain = "".join(_ROMAN.get(c, c) for c in "".join(letters).casefold()).replace("'", "")
    if plain.isascii() or not any(c.isalpha() for c in plain):
        return plain
    from anyascii import anyascii

    spelt: str = anyascii(unicodedata.normalize("NFC", plain)).lower().replace("'", "").replace("`", "")
    return spelt or plain


_VOICED = "\u3099\u309a"  # marks of kana that are letters of their own
_CONSONANTAL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")  # Hebrew, Arabic, Syriac and their like
_SOUNDS_ALIKE = str.maketrans("cqpvgz", "kkbfjs")
_TWO_LETTERS = re.compile("ck|kh|sh|th|ph|ch|dh|gh")
_VOWELS = re.compile("[aeiouwy]")


def skeleton(form: str) -> str:
    """The consonants of a folded word, as a script without vowels can tell them apart; the first letter stays.

    >>> skeleton("mohammed"), skeleton("mhmd"), skeleton("bush"), skeleton("bwsh")
    ('mhmd', 'mhmd', 'bs', 'bs')
    """
    if not form[:1].isalpha():
        return form
    plain = _TWO_LETTERS.sub(lambda pair: _ONE_LETTER[pair[0]], form).translate(_SOUNDS_ALIKE)
    bones = plain[:1] + _VOWELS.sub("", plain[1:])
    return re.sub(r"([a-z])\1+", r"\1", bones)


_ONE_LETTER = {"ck": "k", "kh": "h", "sh": "s", "th": "t", "ph": "f", "ch": "s", "dh": "d", "gh": "j"}


def _without_vowels(words: Sequence[str]) -> bool:
    """Whether most words are written in a script that leaves vowels out."""
    with_letters = [word for word in words if word[:1].isalpha()]
    return 2 * sum(1 for word in with_letters if _CONSONANTAL.match(word)) > len(with_letters)


def compared(source: Sequence[str], target: Sequence[str]) -> tuple[list[str], list[str]]:
    """What the spelling of words is compared by: folded, and without vowels if one side is written without."""
    forms = [fold(word) for word in source], [fold(word) for word in target]
    if _without_vowels(source) != _without_vowels(target):
        return [skeleton(form) for form in forms[0]], [skeleton(form) for form in forms[1]]
    return forms


class Cut(NamedTuple):
    """How words are cut to stems, and how much their stems say: a factor on the strength of the prior."""

    length: int
    end: bool = False
    factor: float = 1.0


def cuts(length: int, classes: int) -> tuple[Cut, ...]:
    """One class of each word, by its beginning; or three: by a longer and a shorter beginning, and by its ending.

    A longer beginning tells more words apart, a shorter one has met more, and compounds and words with prefixes go by
    their ending. Lengths and factors were chosen on dev splits of eleven gold sets; each class lowered the error of
    most of them.
    """
    short = max(1, length - 1)
    return (Cut(length), Cut(short), Cut(short, end=True, factor=0.5))[:classes]


def stem(word: str, length: int, *, end: bool = False) -> str:
    """The first letters of a word, or the last; a crude class of forms that share them.

    Words with something else than a letter there stay whole. A letter of some scripts says more than one of ours: of
    Chinese characters one is taken, of kana and Hangul no more than two.

    >>> stem("translations", 4), stem("translations", 4, end=True), stem("1998", 4), stem("京都", 4)
    ('tran', 'ions', '1998', '京')
    """
    letter = word[-1:] if end else word[:1]
    if not letter.isalpha():
        return word
    length = min(length, _MOST.get(_script(letter), length))
    return word[-length:] if end else word[:length]


_MOST = {"Han": 1, "kana": 2, "Hangul": 2}
_SCRIPTS = ((0x3040, 0x30FF, "kana"), (0x3400, 0x9FFF, "Han"), (0xAC00, 0xD7AF, "Hangul"), (0xF900, 0xFAFF, "Han"))


def _script(letter: str) -> str:
    """Of those whose letters are many; "" for all others."""
    code = ord(letter)
    if code < 0x3005:
        return ""
    if letter == "々" or code >= 0x20000:
        return "Han"
    return next((name for first, last, name in _SCRIPTS if first <= code <= last), "")


class Spellings:
    """Words of both sides as their spelling is compared: spelt out once, then asked for any part of a table.

    Parameters
    ----------
    source, target : sequence of str
    """

    def __init__(self, source: Sequence[str], target: Sequence[str]) -> None:
        forms = compared(source, target)
        letters = sorted(set("".join(forms[0])) | set("".join(forms[1])))
        number = {letter: k for k, letter in enumerate(letters)}
        same: dict[str, int] = {}

        def arrays(words: list[str]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
            starts = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(np.int64)
            flat = np.array([number[c] for word in words for c in word], np.int32)
            whole = [same.setdefault(word, len(same)) if len(word) > 1 or not word.isalpha() else -1 for word in words]
            return flat, starts, np.array(whole, np.int32)

        self._arrays = (*arrays(forms[0]), *arrays(forms[1]), max(1, len(letters)))

    def prior(self, rows: NDArray[np.int64], columns: NDArray[np.int32], *, least: float = 0.6) -> NDArray[np.float32]:
        """Likeness of spelling of every entry of a table, as `spelling_prior` has it."""
        from isogloss.tasks.align._numba.spelling import alike

        ratio = np.zeros(len(columns), np.float32)
        alike(rows, columns, *self._arrays, 4, least, ratio)
        prior: NDArray[np.float32] = np.maximum(0.0, (ratio - np.float32(least)) / np.float32(1.0 - least)) ** 2
        return prior


def spelling_prior(
    source: Sequence[str],
    target: Sequence[str],
    rows: NDArray[np.int64],
    columns: NDArray[np.int32],
    *,
    least: float = 0.6,
) -> NDArray[np.float32]:
    """Likeness of spelling of every entry, from 0 to 1: float32[n_entries].

    Words of the same folded form have 1; a pair whose longest common subsequence ratio r exceeds `least` has
    ((r - least) / (1 - least))²; other pairs 0. Single letters that stand alone say nothing, nor do words of fewer than
    four letters unless they are the same. Beside a script without vowels (Arabic, Hebrew) consonants are compared.
    """
    return Spellings(source, target).prior(rows, columns, least=least)


@dataclass(frozen=True, eq=False)
class Stems:
    """Classes of word types by stem, and which pair of classes each entry belongs to.

    Parameters
    ----------
    group : int32[n_entries]
    source_class, target_class : int32[n_types]
    owner, other : int32[n_groups]
        Source and target class of each pair of classes; they lie by source class, from ``starts`` on.
    members, member_starts : int32[n_source_types], int64[n_classes + 1]
        Source types by class.
    """

    group: NDArray[np.int32]
    source_class: NDArray[np.int32]
    target_class: NDArray[np.int32]
    owner: NDArray[np.int32]
    other: NDArray[np.int32]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    member_starts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        source: Iterable[str],
        target: Iterable[str],
        rows: NDArray[np.int64],
        columns: NDArray[np.int32],
        cut: Cut,
        pairs: Callable[..., tuple[NDArray[np.int64], NDArray[np.int32]] | None] = lambda *classes: None,
    ) -> Stems:
        """Of a table; `pairs` knows better which classes go together where entries have been left out of it.

        Given the classes of source and target types, it says which target classes each source class meets, as rows and
        columns. An entry whose classes are not among them has the group after the last.
        """
        from isogloss.tasks.align._numba.lexicon import find_groups, group_entries

        source_class, target_class = _classes(source, cut)[0], _classes(target, cut)[0]
        members = np.argsort(source_class, kind="stable").astype(np.int32)
        sizes = np.bincount(source_class) if len(source_class) else np.zeros(0, np.int64)
        member_starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        n_targets = int(target_class.max(initial=-1)) + 1
        if (known := pairs(source_class, target_class)) is not None:
            starts, other = known
            owner = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
            group = find_groups(members, member_starts, rows, columns, target_class, starts, other, max(1, n_targets))
            return cls(group, source_class, target_class, owner, other, starts, members, member_starts)
        group, owner, other = group_entries(members, member_starts, rows, columns, target_class, max(1, n_targets))
        starts = np.searchsorted(owner, np.arange(len(member_starts))).astype(np.int64)
        return cls(group, source_class, target_class, owner, other, starts, members, member_starts)

    @property
    def classes(self) -> tuple[Any, ...]:
        """As `find_some_cells` takes them."""
        n_classes = int(self.target_class.max(initial=0)) + 1
        return self.members, self.member_starts, self.starts, self.other, self.target_class, n_classes


def _classes(words: Iterable[str], cut: Cut) -> tuple[NDArray[np.int32], dict[str, int]]:
    """The class of each word, numbered in order of first appearance, and the number of each stem."""
    numbers: dict[str, int] = {}
    stems = (stem(word, cut.length, end=cut.end) for word in words)
    return np.array([numbers.setdefault(one, len(numbers)) for one in stems], np.int32), numbers


@dataclass(frozen=True, eq=False)
class StemTable:
    """Which stems go together in a model: its prior for words that the model has not met, or not met together.

    Parameters
    ----------
    rows, columns : int64[n_stems + 1], int32[n_pairs]
        Pairs of stems, by source stem.
    pull : float32[n_pairs, 2]
        Strength of the prior times the probability of one stem given the other, forward and backward.
    source, target : dict of str to int
        Numbers of stems.
    source_totals, target_totals : int64[n_stems]
        Occurrences of each stem in the training text.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int32]
    pull: NDArray[np.float32]
    source: dict[str, int]
    target: dict[str, int]
    source_totals: NDArray[np.int64]
    target_totals: NDArray[np.int64]
    source_counts: NDArray[np.int64]
    target_counts: NDArray[np.int64]
    cut: Cut

    @classmethod
    def of(cls, model: Model, strength: float, cut: Cut) -> StemTable:
        """Sum the weights of a model over stems."""
        from isogloss.tasks.align._numba.lexicon import group_sums

        stems = Stems.of(model.source_words, model.target_words, model.rows, model.columns, cut)
        source_class, source = _classes(model.source_words, cut)
        target_class, target = _classes(model.target_words, cut)
        sums = np.full((len(stems.owner), 2), 1e-9)
        group_sums(stems.members, stems.member_starts, model.rows, stems.group, model.weights, sums)
        forward = np.bincount(stems.owner, sums[:, 0], minlength=len(source))
        backward = np.bincount(stems.other, sums[:, 1], minlength=len(target))
        pull = (
            strength
            * cut.factor
            * np.stack([sums[:, 0] / forward[stems.owner], sums[:, 1] / backward[stems.other]], axis=1)
        )
        return cls(
            stems.starts,
            stems.other,
            pull.astype(np.float32),
            source,
            target,
            np.bincount(source_class, model.source_counts, minlength=len(source)).astype(np.int64),
            np.bincount(target_class, model.target_counts, minlength=len(target)).astype(np.int64),
            model.source_counts,
            model.target_counts,
            cut,
        )

    def prior(self, corpus: Corpus, source: NDArray[np.int32], target: NDArray[np.int32]) -> NDArray[np.float32]:
        """Stem prior of every entry of a text whose words have the numbers `source` and `target` in the model (or -1).

        A word is given its share of what its stem is given: its part of the occurrences of the stem, an unknown word as
        if it had occurred once more.
        """
        from isogloss.tasks.align._numba.lexicon import look_up

        a, share_a = self._shares(corpus.source_words, source, self.source, self.source_totals, self.source_counts)
        b, share_b = self._shares(corpus.target_words, target, self.target, self.target_totals, self.target_counts)
        pull = np.zeros((len(corpus.columns), 2), np.float32)
        found = np.zeros(len(corpus.columns), bool)
        look_up(
            corpus.rows, corpus.columns, a, b, self.rows, self.columns, self.pull, max(1, len(self.target)), pull, found
        )  # fmt: skip
        owner = np.repeat(np.arange(len(corpus.source_words)), np.diff(corpus.rows))
        pull[:, 0] *= share_b[corpus.columns]
        pull[:, 1] *= share_a[owner]
        return pull

    def _shares(
        self,
        words: Iterable[str],
        known: NDArray[np.int32],
        numbers: dict[str, int],
        totals: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        cut = self.cut
        stems = np.array([numbers.get(stem(word, cut.length, end=cut.end), -1) for word in words], np.int32)
        total = np.append(totals, 0)[stems]
        count = np.append(counts, 0)[known]
        return stems, np.where(known >= 0, count / np.maximum(1, total), 1.0 / (1.0 + total)).astype(np.float32)
