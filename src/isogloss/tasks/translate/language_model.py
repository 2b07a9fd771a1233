r"""An n-gram language model with modified Kneser-Ney smoothing.

.. math:: p(w \mid h) = \frac{a(hw) - D_{a(hw)}}{\sum_v a(hv)} + \gamma(h)\, p(w \mid h'), \qquad
    \gamma(h) = \frac{\sum_{c=1}^{3} D_c\, N_c(h)}{\sum_v a(hv)}

where h' is h without its first word, a(g) is how often g occurs if it is of the highest order or begins with the
beginning of a sentence, and otherwise the number of different words that g occurs after; N_c(h) is the number of words
that follow with a = c (3 stands for 3 and more). The discounts of an order are

.. math:: D_c = c - (c + 1) \frac{n_1}{n_1 + 2 n_2} \frac{n_{c+1}}{n_c}

with n_c the number of n-grams of the order with a = c. Words alone are interpolated with the uniform distribution, in
which one word stands for all that are not known.

n-grams are counted by sorting: an n-gram that ends at some token has a number, from its last word and the number of the
(n − 1)-gram that ends at the token before. The sorted n-grams of all orders are the trie that is looked up in.

Memory: 29 bytes for an n-gram of an order below the highest and 12 for one of the highest; while it is learnt, about
100 bytes for a token. Perplexities are those of KenLM's `lmplz` and `query`, to the digits that these print.

References
----------
Chen and Goodman, An Empirical Study of Smoothing Techniques for Language Modeling, TR-10-98, Harvard 1998, equation 26.
Heafield, Pouzyrevsky, Clark and Koehn, Scalable Modified Kneser-Ney Language Model Estimation, ACL 2013. Heafield,
KenLM: Faster and Smaller Language Model Queries, WMT 2011: what a state has to remember.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Text, Vocabulary
from isogloss.data.formats import atomic_write, read_bytes
from isogloss.data.formats.files import PathOrName, name_of
from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import DataError, ModelError, ParameterError
from isogloss.layout import Layout, Numbers, check

__all__ = ["LAYOUT", "LanguageModel", "Perplexity"]

FALLBACK = (0.5, 1.0, 1.5)
"""Discounts where counts of counts say nothing: what `lmplz --discount_fallback` takes."""
MOST = 16
"""The highest order."""
UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
_TEN = math.log(10)
_LEAST = -99.0
"""What ARPA files write for the logarithm of 0."""

Integers = NDArray[np.int64]
Numbers64 = NDArray[np.float64]

LAYOUT: Layout = {
    "words": Numbers("int32", "nodes", least=0, below="words + 3"),
    "probabilities": Numbers("float32", "nodes"),
    "follows": Numbers("int32", "nodes", least=0, below="inner"),
    "starts": Numbers("int64", "inner + 1", least=1, order="rising"),
    "backoffs": Numbers("float32", "inner"),
    "shorter": Numbers("int32", "inner", least=0, below="inner"),
    "lengths": Numbers("uint8", "inner", least=0, below=MOST),
}
"""Arrays of a language model, see `isogloss.tasks.translate._numba.language_model.Grams`."""


class Perplexity(NamedTuple):
    """How well a model expects a text; ends of sentences are words, too.

    Parameters
    ----------
    including : float
        Perplexity of all words; those that it does not know count as one word, the unknown one.
    excluding : float
        Perplexity of the words that it knows.
    words, unknown : int
        Words, with ends of sentences; those that are not known.
    """

    including: float
    excluding: float
    words: int
    unknown: int


class LanguageModel:
    """Probabilities of words after words.

    Parameters
    ----------
    words : Vocabulary
        Words that it may know. Word k of it is number k; the three numbers that follow are those of an unknown word,
        the beginning and the end of a sentence.
    order : int
    arrays : mapping of str to array
        As `LAYOUT` has them.

    Examples
    --------
    >>> model = LanguageModel.of(Text.of(["the house is small", "the house is old", "a small house"]), order=2)
    >>> round(float(np.exp(model.log_probs(Text.of(["the house is old"]))[0])), 4)
    0.0157
    >>> model.perplexity(Text.of(["the old mouse"])).unknown
    1
    """

    def __init__(self, words: Vocabulary, order: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.words, self.order, self.arrays = words, order, dict(arrays)

    def __repr__(self) -> str:
        return f"LanguageModel(order {self.order}, {len(self):,} n-grams, {len(self.words):,} words)"

    def __len__(self) -> int:
        """How many n-grams there are, with those of the three special words."""
        return len(self.arrays["words"]) - 1

    @property
    def unknown(self) -> int:
        """The number of a word that is not known."""
        return len(self.words)

    @property
    def begin(self) -> int:
        """The number of the beginning of a sentence."""
        return len(self.words) + 1

    @property
    def end(self) -> int:
        """The number of the end of a sentence."""
        return len(self.words) + 2

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @cached_property
    def grams(self) -> Any:
        """For kernels."""
        from isogloss.tasks.translate._numba.language_model import Grams

        return Grams(*(self.arrays[name] for name in Grams._fields))

    # --- learning

    @classmethod
    def of(cls, text: Text, order: int = 5, *, words: Vocabulary | None = None) -> LanguageModel:
        """Learn from sentences.

        Parameters
        ----------
        text : Text
        order : int
            Words of the longest n-grams.
        words : Vocabulary, optional
            Words that it may know, beside those of the text; by default those of the text.
        """
        if not 1 <= order <= MOST:
            raise ParameterError(f"LanguageModel: order should be a whole number from 1 to {MOST}, not {order!r}")
        known = text.vocabulary if words is None else words
        ids = text.ids.flat
        if words is not None and words is not text.vocabulary:
            ids = words.encode(text.vocabulary)[ids]
            ids[ids < 0] = len(words)
        return cls(known, order, _estimated(ids, text.ids.lengths, len(known), order))

    # --- asking

    def encode(self, words: Vocabulary) -> NDArray[np.int32]:
        """The numbers of the words of another vocabulary, `unknown` for those that are not here."""
        found = self.words.encode(words)
        found[found < 0] = self.unknown
        return found

    def log_probs(self, text: Text) -> Numbers64:
        """float64[n_sentences]: log p of each sentence with its end."""
        from isogloss.tasks.translate._numba.language_model import score_sentences

        ids = self.encode(text.vocabulary)[text.ids.flat]
        offsets = text.ids.offsets - text.ids.offsets[0]
        out = np.empty(len(text))
        with using_threads() as threads:
            run_blocks(score_sentences, threads, self.grams, ids, offsets, self.begin, self.end, out)
        return out

    def perplexity(self, text: Text) -> Perplexity:
        """How well it expects a text."""
        ids = self.encode(text.vocabulary)[text.ids.flat]
        total = float(self.log_probs(text).sum())
        unknown, words = int(np.count_nonzero(self._is_unknown[ids])), len(ids) + len(text)
        lost = self._lost(text) if unknown else 0.0
        return Perplexity(
            math.exp(-total / max(words, 1)), math.exp(-(total - lost) / max(words - unknown, 1)), words, unknown
        )

    @cached_property
    def _is_unknown(self) -> NDArray[np.bool_]:
        """bool[n_words + 3]: words that never occurred, and are as likely as an unknown one.

        Whatever occurs is followed by something, if only by the end of the sentence.
        """
        n = len(self.words) + 3
        if self.order == 1:
            alone = self.arrays["probabilities"][1 : n + 1]
            return np.asarray(alone <= alone[self.unknown])
        return np.asarray(np.diff(self.arrays["starts"][1 : n + 2]) == 0)

    def _lost(self, text: Text) -> float:
        """What unknown words take of the log-probability of a text."""
        numbers = self.encode(text.vocabulary)
        lost = 0.0
        for row in text.ids:
            ids = numbers[row]
            places = np.flatnonzero(self._is_unknown[ids])
            if len(places):
                each = self._word_log_probs(ids)
                lost += float(each[places].sum())
        return lost

    def _word_log_probs(self, ids: NDArray[np.int32]) -> Numbers64:
        from isogloss.tasks.translate._numba.language_model import next_word

        state, out = self.grams.follows[1 + self.begin], np.empty(len(ids))
        for k, word in enumerate(ids):
            out[k], state = next_word(self.grams, state, word)
        return out

    # --- keeping

    @classmethod
    def from_arrays(cls, words: Vocabulary, order: int, arrays: Mapping[str, NDArray[Any]]) -> LanguageModel:
        """From the arrays of a saved model, which are checked: kernels follow their numbers without asking."""
        found = check(arrays, LAYOUT, "the language model", {"words": len(words)})
        starts, shorter, lengths = (found[name] for name in ("starts", "shorter", "lengths"))
        n_inner, n_nodes, special = len(shorter), len(found["words"]), len(words) + 3
        sound = (
            starts[0] == 1
            and starts[-1] == n_nodes
            and n_inner > special
            and starts[1] == 1 + special
            and np.array_equal(found["words"][1 : 1 + special], np.arange(special))
            and (shorter[1:] < np.arange(1, n_inner)).all()
            and (lengths[shorter[1:]] < lengths[1:]).all()
            and (lengths[found["follows"]] < order).all()
        )
        if not sound:
            raise ModelError("the language model: its n-grams do not fit together. Copy the model again")
        return cls(words, order, found)

    # --- ARPA

    def write_arpa(self, path: PathOrName | None) -> None:
        """Write the model as other programs read it."""
        taken = {UNKNOWN, BEGIN, END} & set(self.words.types)
        if taken:
            raise DataError(f"write_arpa: {sorted(taken)[0]!r} is a word of the text, and has a meaning in ARPA files")
        with atomic_write(path) as file:
            for line in self._arpa_lines():
                file.write(line.encode("utf-8", "replace"))

    def _arpa_lines(self) -> Iterator[str]:
        names = [*self.words.types, UNKNOWN, BEGIN, END]
        arrays, levels = self.arrays, self._levels
        yield "\\data\\\n"
        for length, (first, last) in enumerate(levels, 1):
            yield f"ngram {length}={last - first}\n"
        parents = np.repeat(np.arange(len(arrays["shorter"])), np.diff(arrays["starts"]))
        texts = [""]
        for length, (first, last) in enumerate(levels, 1):
            yield f"\n\\{length}-grams:\n"
            inner = length < self.order
            own = []
            for node in range(first, last):
                before = texts[parents[node - 1] - self._before(length)]
                text = f"{before} {names[arrays['words'][node]]}".lstrip(" ")
                own.append(text)
                log = float(arrays["probabilities"][node]) / _TEN
                back = f"\t{float(arrays['backoffs'][node]) / _TEN:.7g}" if inner else ""
                yield f"{log:.7g}\t{text}{back}\n"
            texts = own
        yield "\n\\end\\\n"

    def _before(self, length: int) -> int:
        """The first node of the order below."""
        return 0 if length == 1 else self._levels[length - 2][0]

    @cached_property
    def _levels(self) -> list[tuple[int, int]]:
        """First node of each order, and one after the last."""
        starts = self.arrays["starts"]
        found, first = [], 1
        for _ in range(self.order):
            last = int(starts[first]) if first < len(starts) else len(self.arrays["words"])
            found.append((first, max(first, last)))
            first = found[-1][1]
        return found

    @classmethod
    def read_arpa(cls, path: str | PathLike[str]) -> LanguageModel:
        """Read a model that another program has written."""
        name = name_of(path)
        return _Arpa(name).read(read_bytes(path).decode("utf-8", "replace").split("\n"))


# --- learning


class _Level(NamedTuple):
    """The n-grams of one order.

    Parameters
    ----------
    context : int64[n]
        Without the last word: a number among those of the order below.
    word : int64[n]
    end : int64[n]
        Without the first word, the same way.
    adjusted : int64[n]
    """

    context: Integers
    word: Integers
    end: Integers
    adjusted: Integers


def _estimated(ids: NDArray[np.int32], lengths: Integers, n_words: int, order: int) -> dict[str, NDArray[Any]]:
    levels = _levels_of(ids, lengths, n_words, order)
    probabilities = [_unigrams(levels[0].adjusted, n_words, order)]
    backoffs: list[Numbers64] = []
    for k, level in enumerate(levels[1:], 1):
        discounts = np.concatenate([[0.0], _discounts(level.adjusted)])
        n_contexts = len(probabilities[-1])
        classes = np.minimum(level.adjusted, 3)
        totals = np.bincount(level.context, level.adjusted, minlength=n_contexts)
        taken = np.bincount(level.context, discounts[classes], minlength=n_contexts)
        with np.errstate(invalid="ignore", divide="ignore"):
            gamma = taken / totals
        own = (level.adjusted - discounts[classes]) / totals[level.context]
        probabilities.append(own + gamma[level.context] * probabilities[k - 1][level.end])
        backoffs.append(np.where(totals > 0, gamma, 1.0))
    return _trie(levels, probabilities, backoffs)


def _levels_of(ids: NDArray[np.int32], lengths: Integers, n_words: int, order: int) -> list[_Level]:
    """The n-grams of all orders with their counts; those of an order lie in the order of context and word."""
    types = n_words + 3
    stream, place = _stream(ids, lengths, n_words)
    number = stream.copy()  # of the n-gram that ends at each token
    counts = np.bincount(stream, minlength=types)
    counts[n_words + 1] = 0
    levels = [_Level(np.zeros(types, np.int64), np.arange(types), np.zeros(types, np.int64), counts)]
    for length in range(2, order + 1):
        at = np.flatnonzero(place >= length - 1)
        keys = number[at - 1] * types + stream[at]
        unique, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        ends = number[at[first]]
        after = np.bincount(ends, minlength=len(levels[-1].word))  # words that the shorter ones occur after
        at_beginning = after == 0
        levels[-1] = levels[-1]._replace(adjusted=np.where(at_beginning, levels[-1].adjusted, after))
        levels.append(_Level(unique // types, unique % types, ends, counts))
        number = np.full(len(stream), -1, np.int64)
        number[at] = inverse
    return levels


def _stream(ids: NDArray[np.int32], lengths: Integers, n_words: int) -> tuple[Integers, Integers]:
    """All sentences with their beginnings and ends, and the place of each token in its sentence."""
    sizes = lengths + 2
    starts = np.cumsum(sizes) - sizes
    stream = np.empty(int(sizes.sum()), np.int64)
    place = np.arange(len(stream)) - np.repeat(starts, sizes)
    inside = np.ones(len(stream), bool)
    inside[starts] = inside[starts + sizes - 1] = False
    stream[inside] = ids
    stream[starts], stream[starts + sizes - 1] = n_words + 1, n_words + 2
    return stream, place


def _discounts(adjusted: Integers) -> Numbers64:
    """D of 1, 2 and 3 or more; `FALLBACK` where a count of counts is 0, or they make no sense.

    A discount of 0 makes none, either: what follows would leave nothing for words that never follow.
    """
    n = np.bincount(np.minimum(adjusted[adjusted > 0], 5), minlength=6).astype(float)
    if not n[1:4].all():
        return np.array(FALLBACK)
    y = n[1] / (n[1] + 2 * n[2])
    found = np.array([c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3)])
    return found if ((found > 0) & (found <= [1, 2, 3])).all() else np.array(FALLBACK)


def _unigrams(adjusted: Integers, n_words: int, order: int) -> Numbers64:
    """p of each word alone; words that never occur are as likely as the unknown one."""
    counts = adjusted.copy()
    counts[n_words + 1] = 0
    discounts = np.concatenate([[0.0], _discounts(counts)])
    total = max(float(counts.sum()), 1.0)
    left = float(discounts[np.minimum(counts, 3)].sum()) / total if counts.any() else 1.0
    known = np.count_nonzero(counts) + (counts[n_words] == 0)  # with the unknown word
    found = (counts - discounts[np.minimum(counts, 3)]) / total + left / known
    found[n_words + 1] = 1.0
    return np.asarray(found)


def _trie(levels: list[_Level], probabilities: list[Numbers64], backoffs: list[Numbers64]) -> dict[str, NDArray[Any]]:
    """Nodes of all orders, one order after the other."""
    sizes = [len(level.word) for level in levels]
    bases = np.concatenate([[1], 1 + np.cumsum(sizes)])
    n_inner = 1 + sum(sizes[:-1]) if len(levels) > 1 else 1 + sizes[0]
    starts = np.empty(n_inner + 1, np.int64)
    starts[0], starts[-1] = 1, bases[-1]
    if len(levels) == 1:  # single words go on with nothing, but are states for simplicity's sake
        starts[1:] = bases[-1]
    has_children = np.zeros(n_inner, bool)
    has_children[0] = True
    for k, level in enumerate(levels[1:], 1):
        counts = np.bincount(level.context, minlength=sizes[k - 1])
        first, last = int(bases[k - 1]), int(bases[k])
        starts[first:last] = bases[k] + np.cumsum(counts) - counts
        has_children[first:last] = (counts > 0) | (backoffs[k - 1] != 1)  # ARPA files may have weights of leaves
    shorter = np.zeros(n_inner, np.int32)
    lengths = np.zeros(n_inner, np.uint8)
    follows = np.zeros(int(bases[-1]), np.int32)
    for k, level in enumerate(levels):
        first, last = int(bases[k]), int(bases[k + 1])
        below = level.end + bases[k - 1] if k else np.zeros(sizes[0], np.int64)
        rest = follows[below]
        if k + 1 < len(levels) or len(levels) == 1:
            shorter[first:last], lengths[first:last] = below, k + 1
            own = np.arange(first, last)
            follows[first:last] = np.where(has_children[first:last], own, rest)
        else:
            follows[first:last] = rest
    left = np.concatenate([[1.0], *backoffs]) if len(levels) > 1 else np.ones(n_inner)
    with np.errstate(divide="ignore"):
        return {
            "words": np.concatenate([[0], *(level.word for level in levels)]).astype(np.int32),
            "probabilities": np.log(np.concatenate([[1.0], *probabilities])).astype(np.float32),
            "follows": follows, "starts": starts, "backoffs": np.log(left).astype(np.float32), "shorter": shorter,
            "lengths": lengths,
        }  # fmt: skip


# --- ARPA


class _Arpa:
    """A reader of ARPA files."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, lines: list[str]) -> LanguageModel:
        sections = self._sections(lines)
        names = [line[1] for line in sections[0]]
        words = Vocabulary(word for word in names if word not in (UNKNOWN, BEGIN, END))
        numbers = {word: k for k, word in enumerate([*words.types, UNKNOWN, BEGIN, END])}
        levels, probabilities, backoffs = [], [], []
        known: dict[tuple[int, ...], int] = {(): 0}
        for length, section in enumerate(sections, 1):
            try:
                rows = sorted((tuple(numbers[word] for word in text.split(" ")), p, b) for p, text, b in section)
            except KeyError as word:
                raise DataError(f"{self.name}: {word} stands in an n-gram, but not among the words alone") from None
            if length == 1:
                there = {row[0] for row in rows}
                rows = sorted(rows + [((k,), _LEAST, 0.0) for k in range(len(numbers)) if (k,) not in there])
            try:
                contexts = np.array([known[row[0][:-1]] for row in rows], np.int64)
            except KeyError:
                raise DataError(f"{self.name}: an n-gram of {length} words goes on from none that is there") from None
            longest = [self._end(row[0][1:], known) for row in rows] if length > 1 else [0] * len(rows)
            last = np.array([row[0][-1] for row in rows], np.int64)
            levels.append(_Level(contexts, last, np.array(longest, np.int64), np.zeros(0, np.int64)))
            probabilities.append(np.array([10.0 ** row[1] for row in rows]))
            if length < len(sections):
                backoffs.append(np.array([10.0 ** row[2] for row in rows]))
            known = {row[0]: k for k, row in enumerate(rows)}
        return LanguageModel(words, len(sections), _trie(levels, probabilities, backoffs))

    def _end(self, words: tuple[int, ...], known: Mapping[tuple[int, ...], int]) -> int:
        if words not in known:
            raise DataError(f"{self.name}: an n-gram of {len(words) + 1} words is there, but not its last {len(words)}")
        return known[words]

    def _sections(self, lines: list[str]) -> list[list[tuple[float, str, float]]]:
        """(log10 p, words, log10 back-off) of the n-grams of each order."""
        found: list[list[tuple[float, str, float]]] = []
        inside = False
        for number, line in enumerate((line.removesuffix("\r") for line in lines), 1):
            if line.startswith("\\"):
                inside = line.endswith("-grams:")
                if inside:
                    found.append([])
            elif inside and line.strip():
                parts = line.split("\t")
                try:
                    log, back = float(parts[0]), float(parts[2]) if len(parts) > 2 else 0.0
                    if not (log <= 0 and abs(back) <= -_LEAST):  # false for NaN, too
                        raise ValueError
                    found[-1].append((max(log, _LEAST), parts[1], back))
                except (ValueError, IndexError):
                    raise DataError(
                        f"{self.name}, line {number}: {line[:40]!r} is not a probability, words and perhaps a back-off "
                        "weight, with tabs between them"
                    ) from None
        if not found or not found[0]:
            raise DataError(f"{self.name}: there are no n-grams. Is this an ARPA file?")
        return found
