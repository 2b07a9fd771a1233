"""Where a parser loses in a new domain: by tag, by words that it does not know, by kinds of links; and how tags differ.

Trees of both domains are needed, a few hundred of the target at least. `decompose` takes the loss of heads apart
(`isogloss.metrics.adaptation`); `unforeseen` tells what a parser expects to lose, by its own posteriors, from what it
does not: it is no less sure where guidelines differ. `tag_differences` needs no trees.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.tagsets import UD17, UNIVERSAL12
from isogloss.data.treebank import Column, Treebank
from isogloss.errors import ParameterError, TreebankError
from isogloss.metrics.adaptation import Decomposition, Side, decompose_loss

__all__ = [
    "KINDS", "TagDifferences", "Tried", "Unforeseen", "decompose", "expected_errors", "known_words", "tag_column",
    "tag_differences", "tags_of", "unforeseen",
]  # fmt: skip

KINDS = ("tag", "unknown", "link", "length")
"""By what a loss can be taken apart: the tag of the word; whether word and head are known to the parser; the coarse
tags of head and word; how far they are from each other."""
UNKNOWN = ("both known", "one unknown", "both unknown")
LENGTHS = ("root", "1", "2", "3", "4", "5 to 7", "8 to 12", "13 or more")
_STARTS = np.array([1, 2, 3, 4, 5, 8, 13])
BINS = 10
FEW = 50


def tag_column(*treebanks: Treebank) -> str:
    """The column of universal tags; where a treebank has none, that of the tags of its language: one for all."""
    found = []
    for treebank in treebanks:
        columns = [name for name in ("upos", "xpos") if not treebank.n_words or _has_values(treebank.columns[name])]
        if not columns:
            raise TreebankError(f"{treebank.name}: no word has a tag. Tag the text first (isogloss tag apply)")
        found.append(columns)
    for name in ("upos", "xpos"):
        if all(name in columns for columns in found):
            return name
    names = " and ".join(f"{treebank.name} {columns[0]}" for treebank, columns in zip(treebanks, found, strict=True))
    raise TreebankError(f"tags of different columns cannot be compared: {names}. Tag both alike (isogloss tag apply)")


def _has_values(column: Column) -> bool:
    ids, vocabulary = column
    return not (ids == vocabulary.index_of("_")).all()


def tags_of(treebank: Treebank) -> Column:
    """The universal tags; where a treebank has none, those of the language."""
    return treebank.columns[tag_column(treebank)]


def coarse(tag: str) -> str:
    """A universal tag as it is; of others the first two letters, which tell nouns from verbs in Penn's tags."""
    return tag if tag in _UNIVERSAL else tag[:2]


_UNIVERSAL = frozenset((*UD17, *UNIVERSAL12)) - {"."}


def known_words(treebank: Treebank) -> frozenset[str]:
    """The words of a treebank, in small letters."""
    ids, vocabulary = treebank.columns["form"]
    return frozenset(vocabulary[k].lower() for k in np.unique(ids).tolist())


class Tried(NamedTuple):
    """A test: trees by a parser, and gold ones of the same sentences.

    sure : float64[n_words], optional
        The parser's posteriors of its heads.
    """

    found: Treebank
    gold: Treebank
    sure: NDArray[np.float64] | None = None

    @classmethod
    def by(cls, parser: Any, gold: Treebank) -> Tried:
        """What a parser makes of the sentences of a treebank."""
        found = parser.predict(gold, confidence=True)
        ids, vocabulary = found.columns["misc"]
        sure = np.array([_confidence(entry) for entry in vocabulary] or [0.0])
        return cls(found, gold, sure[ids] if len(ids) else np.zeros(0))

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Words whose head gold knows."""
        return np.asarray(self.gold.heads >= 0)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """bool[n_words]: whether the head is not that of gold."""
        if not np.array_equal(self.found.offsets, self.gold.offsets):
            raise TreebankError(f"{self.found.name} and {self.gold.name} do not have the same sentences")
        return np.asarray(self.found.heads != self.gold.heads)


def _confidence(entry: str) -> float:
    found = [part.partition("=")[2] for part in entry.split("|") if part.startswith("Confidence=")]
    return float(found[0]) if found else 0.0


def decompose(source: Tried, target: Tried, by: str, known: Collection[str] = ()) -> Decomposition:
    """Take the loss of heads from one domain to another apart.

    Parameters
    ----------
    source, target : Tried
        Of a parser that learnt in the source's domain, on sentences that it has not learnt from.
    by : str
        One of `KINDS`.
    known : collection of str
        The words that it learnt from (`known_words`), for "unknown".
    """
    if by not in KINDS:
        raise ParameterError(f"decompose: by should be one of {', '.join(KINDS)}, not {by!r}")
    numbers: dict[str, int] = {name: k for k, name in enumerate({"unknown": UNKNOWN, "length": LENGTHS}.get(by, ()))}
    column = tag_column(source.gold, target.gold) if by in ("tag", "link") else ""
    sides = []
    for tried in (source, target):
        kinds = _kinds(tried.gold, by, numbers, known, column)
        sides.append(Side(kinds[tried.scored], tried.wrong[tried.scored]))
    return decompose_loss(sides[0], sides[1], list(numbers))


def _kinds(
    gold: Treebank, by: str, numbers: dict[str, int], known: Collection[str], column: str = ""
) -> NDArray[np.int64]:
    """int64[n_words]: the kind of each word; new names get numbers, and tags are those of a column."""
    first = np.repeat(gold.offsets[:-1], gold.lengths)
    above = np.where(gold.heads > 0, first + gold.heads - 1, -1)
    if by == "length":
        place = np.arange(gold.n_words) - first + 1
        far = np.searchsorted(_STARTS, np.abs(place - gold.heads), side="right")
        return np.where(gold.heads == 0, 0, far).astype(np.int64)
    if by == "unknown":
        ids, vocabulary = gold.columns["form"]
        new = np.array([word.lower() not in known for word in vocabulary] or [False])[ids]
        return new.astype(np.int64) + np.where(above >= 0, new[above], False)
    ids, vocabulary = gold.columns[column]
    if by == "tag":
        return np.array([numbers.setdefault(tag, len(numbers)) for tag in vocabulary] or [0], np.int64)[ids]
    short = [coarse(tag) for tag in vocabulary]
    names = dict.fromkeys(short)
    at = {name: k for k, name in enumerate(names)}
    of_word = np.array([at[name] for name in short] or [0], np.int64)[ids]
    of_head = np.where(above >= 0, of_word[above], len(at))
    pairs = of_head * (len(at) + 1) + of_word
    used, inverse = np.unique(pairs, return_inverse=True)
    listed = [*at, "root"]
    said = [f"{listed[int(p) // (len(at) + 1)]} > {listed[int(p) % (len(at) + 1)]}" for p in used]
    return np.array([numbers.setdefault(name, len(numbers)) for name in said] or [0], np.int64)[inverse]


# --- what a parser does not expect


@dataclass(frozen=True)
class Unforeseen:
    r"""A loss as a parser expects it, and the rest; in points of percent.

    Words go to bins by the parser's posterior of their heads. With errors :math:`e_b` in the source and shares
    :math:`t_b` in the target,

    .. math:: foreseen = \sum_b t_b e_b - e, \qquad unforeseen = \sum_b t_b (f_b - e_b)

    A parser that meets unfamiliar words is less sure of itself, and foresees a loss. One that meets other guidelines
    is as sure as ever, and wrong: unforeseen is what inputs do not explain.

    loss, foreseen, unforeseen : float
    known : float
        What is unforeseen of words that, with their heads, the parser knows: there, little else than guidelines can
        differ. Of all words, if these are very few.
    margin : float
        By how much `known` may be wrong by the choice of sentences: twice its standard error.
    sure : float
        Errors of the target, in percent, where the parser is surest: in the bin of the highest posteriors.
    sure_source : float
        The same in the source.
    """

    loss: float
    foreseen: float
    unforeseen: float
    known: float
    margin: float
    sure: float
    sure_source: float

    @property
    def share(self) -> float:
        """How much of the loss is not foreseen, in percent; 0 where nothing is lost."""
        return 100 * max(0.0, self.unforeseen) / self.loss if self.loss > 0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"share": self.share}


def unforeseen(source: Tried, target: Tried, known: Collection[str]) -> Unforeseen:
    """What a parser expects to lose in a new domain, by its posteriors, and what it does not expect."""
    if source.sure is None or target.sure is None:
        raise ParameterError("unforeseen: posteriors of heads are needed; make tests with Tried.by")
    here, there = source.scored, target.scored
    edges, n, rates = _binned(source)
    bins, others = (np.searchsorted(edges, sure, side="left") for sure in (source.sure, target.sure))
    lost = _excess(rates, others, target.wrong, there)
    kinds = [_kinds(tried.gold, "unknown", {}, known) == 0 for tried in (source, target)]
    own = _rates(bins[here & kinds[0]], source.wrong[here & kinds[0]], n)
    error, other = float(source.wrong[here].mean()), float(target.wrong[there].mean())
    some = there & kinds[1]
    if np.count_nonzero(some) < FEW:
        some, own = there, rates
    return Unforeseen(
        100 * (other - error), 100 * (other - error) - lost, lost, _excess(own, others, target.wrong, some),
        _margin(target, target.wrong - own[others], some),
        100 * float(target.wrong[there & (others == n - 1)].mean()) if (there & (others == n - 1)).any() else 0.0,
        100 * float(rates[-1]),
    )  # fmt: skip


def expected_errors(source: Tried, target: Tried) -> float:
    """Errors of the target, in percent, as a parser expects them there: no trees of the target are needed."""
    if source.sure is None or target.sure is None:
        raise ParameterError("expected_errors: posteriors of heads are needed; make tests with Tried.by")
    edges, _, rates = _binned(source)
    if not len(target.sure):
        return 100 * float(source.wrong[source.scored].mean())
    return 100 * float(rates[np.searchsorted(edges, target.sure, side="left")].mean())


def _binned(source: Tried) -> tuple[NDArray[np.float64], int, NDArray[np.float64]]:
    """Borders of bins of posteriors, how many bins there are, and the errors of the source in each."""
    sure, here = np.asarray(source.sure), source.scored
    edges = np.unique(np.quantile(sure[here], np.arange(1, BINS) / BINS)) if here.any() else np.zeros(0)
    edges = edges[edges < sure.max(initial=0.0)]  # the last bin has the surest, however many there are
    bins = np.searchsorted(edges, sure, side="left")
    return edges, len(edges) + 1, _rates(bins[here], source.wrong[here], len(edges) + 1)


def _rates(bins: NDArray[np.int64], wrong: NDArray[np.bool_], n: int) -> NDArray[np.float64]:
    """float64[n]: errors of each bin; of empty ones, of all."""
    met, bad = np.bincount(bins, minlength=n), np.bincount(bins[wrong], minlength=n)
    mean = float(wrong.mean()) if len(wrong) else 0.0
    return np.where(met > 0, bad / np.maximum(met, 1), mean)


def _excess(
    rates: NDArray[np.float64], bins: NDArray[np.int64], wrong: NDArray[np.bool_], some: NDArray[np.bool_]
) -> float:  # fmt: skip
    return 100 * float((wrong[some] - rates[bins[some]]).mean()) if some.any() else 0.0


def _margin(tried: Tried, excess: NDArray[np.float64], some: NDArray[np.bool_]) -> float:
    """Twice the standard error of the mean excess of some words, by sentences, in percent."""
    if not some.any():
        return 100.0
    sentence = np.repeat(np.arange(len(tried.gold)), tried.gold.lengths)[some]
    mean = float(excess[some].mean())
    sums = np.bincount(sentence, excess[some] - mean, minlength=len(tried.gold))
    return 200 * float(np.sqrt((sums**2).sum())) / int(some.sum())


# --- tags


@dataclass(frozen=True)
class TagDifferences:
    """How the sequences of tags of two domains differ.

    n : int
        Tags of a sequence.
    distance : float
        Half the sum of differences of shares, in percent: 0 for the same, 100 for nothing in common.
    largest : tuple of (str, float, float)
        Sequences with the largest differences: shares in the source and in the target, in percent.
    """

    n: int
    distance: float
    largest: tuple[tuple[str, float, float], ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def tag_differences(
    source: Treebank, target: Treebank, n: int = 1, *, fine: bool = True, most: int = 10
) -> TagDifferences:
    """The largest differences of tags, or of sequences of them, between two domains.

    Parameters
    ----------
    fine : bool
        Tags as they are; otherwise universal ones, or the first two letters of others.

    Examples
    --------
    >>> news = Treebank.of([[("Mr.", "PROPN"), ("Vinken", "PROPN")], [("boards", "NOUN"), ("met", "VERB")]])
    >>> bio = Treebank.of([[("cells", "NOUN"), ("grow", "VERB")]])
    >>> found = tag_differences(news, bio)
    >>> found.distance, found.largest[0]
    (50.0, ('PROPN', 50.0, 0.0))
    """
    numbers: dict[str, int] = {}
    column, shares = tag_column(source, target), []
    for treebank in (source, target):
        ids, vocabulary = treebank.columns[column]
        names = list(vocabulary) if fine else [coarse(tag) for tag in vocabulary]
        own = np.array([numbers.setdefault(name, len(numbers)) for name in names] or [0], np.int64)[ids]
        shares.append((own, treebank))
    size = len(numbers) + 1  # one for what is before and after a sentence
    rows = [np.unique(_sequences(own, treebank, n, size), return_counts=True) for own, treebank in shares]
    every = np.unique(np.concatenate([codes for codes, _ in rows]))
    both = np.zeros((2, len(every)))
    for row, (codes, counts) in zip(both, rows, strict=True):
        row[np.searchsorted(every, codes)] = 100 * counts / max(1, counts.sum())
    moved = np.abs(both[1] - both[0])
    order = np.lexsort((every, -moved))[:most]
    listed = [*numbers, "·"]
    said = [" ".join(listed[int(every[k]) // size**i % size] for i in range(n)) for k in order.tolist()]
    largest = tuple((name, float(both[0, k]), float(both[1, k])) for name, k in zip(said, order.tolist(), strict=True))
    return TagDifferences(n, float(moved.sum() / 2), largest)


def _sequences(tags: NDArray[np.int64], treebank: Treebank, n: int, size: int) -> NDArray[np.int64]:
    """A code for the sequence of n tags that begins at each word."""
    last = np.repeat(treebank.offsets[1:], treebank.lengths)
    at, codes = np.arange(treebank.n_words), np.zeros(treebank.n_words, np.int64)
    for i in range(n):
        inside = at + i < last
        codes += np.where(inside, tags[np.where(inside, at + i, 0)], size - 1) * size**i
    return codes
