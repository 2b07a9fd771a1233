"""Dropping sentence pairs that are not translations of each other.

A pair is judged by an aligner's `pair_scores`, the gain in log-probability a word that each side has from the other
being there, after a few plain checks: empty sides, very long sentences, lengths that cannot belong together, text that
was copied rather than translated.

An aligner that was trained on the pairs it judges has learnt the wrong ones too. Without a model from elsewhere the
text therefore judges itself in halves: each half is scored by an aligner trained on the other. Equal source sentences
are always in the same half.

What score is good enough is found without labels. Every source is also scored with the target of another pair of the
same length, which shows how pairs score that are no translations; from that and the scores of the real pairs follows
how many of them are of that kind, and the threshold at which fewest are judged wrongly. A small clean text is thus left
alone, though its scores are low.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Text
from isogloss.data.rows import gathered
from isogloss.errors import ParameterError
from isogloss.progress import Progress

__all__ = [
    "REASONS",
    "PairFacts",
    "Verdicts",
    "cross_scores",
    "filter_pairs",
    "judge",
    "mismatched",
    "noise_threshold",
    "row_keys",
    "scores_of",
]

REASONS = ("kept", "empty", "long", "ratio", "identical", "duplicate", "score")
"""Why a pair was dropped, in the order in which reasons are looked for; 0 is no reason."""

_NAME = 3  # sentences of so few words may be names, which stay the same in translation
_GRACE = 5  # words by which short sentences may differ in length, whatever their ratio


@dataclass(frozen=True, eq=False)
class PairFacts:
    """What the checks need to know of each pair; parts of a text can be put together.

    Parameters
    ----------
    n_source, n_target : int64[n_pairs]
        Words of each side.
    identical : bool[n_pairs]
        Whether both sides are the same words, but for case.
    key : uint64[n_pairs, 2]
        One number for each side, the same for the same words.
    score : float64[n_pairs]
        Not a number where an aligner passes the pair over.
    chance : float64[n_pairs]
        The score of each source with the target of another pair; not a number where that is not known.
    """

    n_source: NDArray[np.int64]
    n_target: NDArray[np.int64]
    identical: NDArray[np.bool_]
    key: NDArray[np.uint64]
    score: NDArray[np.float64]
    chance: NDArray[np.float64]

    @classmethod
    def of(cls, bitext: Bitext, score: NDArray[np.float64], chance: NDArray[np.float64] | None = None) -> PairFacts:
        """The facts of a bitext, given the scores of its pairs."""
        return cls(
            bitext.source.ids.lengths,
            bitext.target.ids.lengths,
            _identical(bitext),
            np.column_stack((row_keys(bitext.source), row_keys(bitext.target))),
            np.asarray(score, np.float64),
            np.full(len(bitext), np.nan) if chance is None else np.asarray(chance, np.float64),
        )

    @classmethod
    def together(cls, parts: Sequence[PairFacts]) -> PairFacts:
        """One after the other."""
        names = ("n_source", "n_target", "identical", "key", "score", "chance")
        if not parts:
            return cls.of(Bitext.of([]), np.zeros(0))
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Which pairs to keep, and why not the others.

    Parameters
    ----------
    score : float64[n_pairs]
    reason : int8[n_pairs]
        Place in `REASONS`; 0 for pairs that are kept.
    least : float
        The score that was asked for; minus infinity if any would do.
    noise : float
        The share of the pairs that seem to be no translations by their scores; not a number if it was not estimated.
    """

    score: NDArray[np.float64]
    reason: NDArray[np.int8]
    least: float
    noise: float

    def __len__(self) -> int:
        return len(self.reason)

    @property
    def keep(self) -> NDArray[np.bool_]:
        """True for the pairs that are kept."""
        kept: NDArray[np.bool_] = self.reason == 0
        return kept

    def counts(self) -> dict[str, int]:
        """How many pairs were kept, and how many dropped for each reason."""
        found = np.bincount(self.reason, minlength=len(REASONS)).tolist()
        return dict(zip(REASONS, found, strict=True))

    def first(self, reason: str, n: int = 5) -> list[int]:
        """The first few pairs with that verdict, from 0."""
        return [int(pair) for pair in np.flatnonzero(self.reason == REASONS.index(reason))[:n]]


def filter_pairs(
    bitext: Bitext,
    aligner: Any = None,
    *,
    keep: float | None = None,
    least: float | None = None,
    max_length: int = 1000,
    ratio: float = 3.0,
    identical: bool = False,
    duplicates: bool = True,
    progress: Progress | None = None,
) -> Verdicts:
    """Judge the pairs of a bitext.

    Parameters
    ----------
    bitext : Bitext
    aligner : HMMAligner, optional
        One trained on other text. Without it the text judges itself, see `cross_scores`.
    keep, least, max_length, ratio, identical, duplicates
        As in `judge`.

    Examples
    --------
    >>> from isogloss import samples
    >>> text = samples.bitext("en-de")
    >>> verdicts = filter_pairs(text, keep=0.9)
    >>> verdicts.counts()["kept"], len(text.take(verdicts.keep))
    (45, 45)
    """
    scores = cross_scores(bitext, progress=progress) if aligner is None else scores_of(aligner, bitext)
    return judge(
        PairFacts.of(bitext, *scores),
        keep=keep,
        least=least,
        max_length=max_length,
        ratio=ratio,
        identical=identical,
        duplicates=duplicates,
    )


def scores_of(aligner: Any, bitext: Bitext) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of the pairs, and of the same sources with targets of other pairs: float64[n_pairs] each."""
    return aligner.pair_scores(bitext), aligner.pair_scores(mismatched(bitext))


def cross_scores(
    bitext: Bitext, *, make: Callable[[], Any] | None = None, progress: Progress | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What `scores_of` gives, from aligners that never saw the pairs: each half of the text is judged by the other.

    Parameters
    ----------
    make : callable, optional
        Makes an untrained aligner; `HMMAligner` by default.
    """
    if make is None:
        from isogloss.tasks.align import HMMAligner

        make = HMMAligner
    half = (row_keys(bitext.source) >> np.uint64(32)) & np.uint64(1)
    usable = (bitext.source.ids.lengths > 0) & (bitext.target.ids.lengths > 0)
    score, chance = np.full(len(bitext), np.nan), np.full(len(bitext), np.nan)
    if not usable.any():
        return score, chance
    for judged in (0, 1):
        chosen = np.flatnonzero((half == judged) & usable)
        others = np.flatnonzero((half != judged) & usable)
        if chosen.size:
            learnt = bitext.take(others if others.size else chosen)  # one sentence only: it must judge itself
            aligner = make().fit(learnt, progress=progress)
            score[chosen], chance[chosen] = scores_of(aligner, bitext.take(chosen))
    return score, chance


def mismatched(bitext: Bitext) -> Bitext:
    """The same sources, each with the target of another pair of about the same length."""
    order = np.lexsort((row_keys(bitext.target), bitext.target.ids.lengths))
    other = np.empty_like(order)
    other[order] = np.roll(order, 1)
    return Bitext(bitext.source, bitext.take(other).target)


def noise_threshold(score: NDArray[np.float64], chance: NDArray[np.float64]) -> tuple[float, float]:
    r"""How many pairs are no translations, and the score at which fewest pairs are judged wrongly.

    Let :math:`F` be the distribution of the scores and :math:`F_0` that of scores by chance. Pairs that are no
    translations score as by chance, and others rarely so low; hence their share is about :math:`\pi = F(x) / F_0(x)` at
    the median :math:`x` of :math:`F_0`. Dropping all pairs up to :math:`t` drops :math:`\pi F_0(t)` rightly
    and :math:`F(t) - \pi F_0(t)` wrongly, so that the best threshold is

    .. math:: \arg\max_t \; 2 \pi F_0(t) - F(t).

    Returns
    -------
    share, threshold : float
        The threshold is minus infinity where dropping any would do more harm than good.

    References
    ----------
    Storey, A direct approach to false discovery rates, JRSS B 2002, for the estimate of the share.
    """
    score, chance = (np.sort(values[~np.isnan(values)]) for values in (score, chance))
    if not score.size or not chance.size:
        return 0.0, float("-inf")
    below, expected = (np.searchsorted(values, np.median(chance), "right") for values in (score, chance))
    certain = below - np.sqrt(below)  # a standard error less: little evidence drops little
    share = float(min(1.0, certain / score.size / (expected / chance.size)))
    met = np.arange(1, score.size + 1) / score.size
    gain = 2 * share * np.searchsorted(chance, score, "right") / chance.size - met
    best = int(gain.argmax())
    if gain[best] <= 0:
        return share, float("-inf")
    return share, float(np.nextafter(score[best], np.inf))


def judge(
    facts: PairFacts,
    *,
    keep: float | None = None,
    least: float | None = None,
    max_length: int = 1000,
    ratio: float = 3.0,
    identical: bool = False,
    duplicates: bool = True,
) -> Verdicts:
    """Decide which pairs to keep.

    Parameters
    ----------
    keep : float, optional
        Keep at most this share of all pairs, the best.
    least : float, optional
        Keep pairs of this score and more. Without it and `keep`, `noise_threshold` finds it. A score above 0 means that
        one side says more about the other than the frequencies of its words do.
    max_length : int
        Drop pairs with more words on a side, and those the aligner passed over.
    ratio : float
        Drop pairs in which one side has more than `ratio` times the words that the other lets expect by the lengths of
        the whole text, and 5 more.
    identical, duplicates : bool
        Whether to keep pairs of more than 3 words whose sides are the same, and pairs that were there before.
    """
    if keep is not None and least is not None:
        raise ParameterError("filter: keep is a share of the pairs and least a score; give one of the two")
    if keep is not None and not 0 <= keep <= 1:
        raise ParameterError(f"filter: keep should be a share from 0 to 1, not {keep!r}")
    if not ratio >= 1:
        raise ParameterError(f"filter: ratio should be 1 or more, not {ratio!r}")
    n_source, n_target = facts.n_source, facts.n_target
    empty = (n_source == 0) | (n_target == 0)
    usual = max(int(n_target[~empty].sum()), 1) / max(int(n_source[~empty].sum()), 1)
    checks = {
        "empty": empty,
        "long": (np.maximum(n_source, n_target) > max_length) | (np.isnan(facts.score) & ~empty),
        "ratio": (n_target > ratio * usual * n_source + _GRACE) | (n_source > ratio / usual * n_target + _GRACE),
        "identical": facts.identical & (n_source > _NAME) & (not identical),
        "duplicate": np.zeros(len(facts), bool) if duplicates else _repeated(facts.key),
    }
    reason = np.zeros(len(facts), np.int8)
    for name, found in reversed(checks.items()):
        reason[found] = REASONS.index(name)
    fine = np.flatnonzero(reason == 0)
    noise, threshold = noise_threshold(facts.score[fine], facts.chance[fine])
    if keep is not None:
        order = fine[np.argsort(-facts.score[fine], kind="stable")]  # of equal ones, those that come first
        dropped = order[int(keep * len(facts)) :]
        best = order[: int(keep * len(facts))]
        least = float(facts.score[best[-1]]) if best.size else float("inf")
    else:
        least = threshold if least is None else least
        dropped = fine[facts.score[fine] < least]
    reason[dropped] = REASONS.index("score")
    return Verdicts(facts.score, reason, least, float("nan") if np.isnan(facts.chance[fine]).all() else noise)


# Rows of texts -------------------------------------------------------------------------------------------------------


def row_keys(text: Text) -> NDArray[np.uint64]:
    """One number for every sentence, the same for the same words in the same order: uint64[n].

    It depends on the words alone, not on their numbers, so parts of a text can be compared.
    """
    spelt = (blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in text.vocabulary.types)
    of_type = np.frombuffer(b"".join(spelt), np.uint64)
    first, last = int(text.ids.offsets[0]), int(text.ids.offsets[-1])
    offsets = text.ids.offsets - first
    place = np.arange(last - first, dtype=np.uint64) - np.repeat(offsets[:-1], np.diff(offsets)).astype(np.uint64)
    mixed = of_type[text.ids.values[first:last]] ^ (place * np.uint64(0x9E3779B97F4A7C15))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])  # wraps around, and back
    keys: NDArray[np.uint64] = sums[offsets[1:]] - sums[offsets[:-1]]
    keys = (keys ^ (keys >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
    return keys


def _identical(bitext: Bitext) -> NDArray[np.bool_]:
    """Whether both sides of a pair are the same words, but for case."""
    source_words, source_form = bitext.source.vocabulary.mapped(str.lower)
    target_form = source_words.encode(word.lower() for word in bitext.target.vocabulary.types)
    same: NDArray[np.bool_] = bitext.source.ids.lengths == bitext.target.ids.lengths
    rows = np.flatnonzero(same & (bitext.source.ids.lengths > 0))
    offsets, at = gathered(bitext.source.ids.offsets, rows)
    _, other = gathered(bitext.target.ids.offsets, rows)
    differ = source_form[bitext.source.ids.values[at]] != target_form[bitext.target.ids.values[other]]
    same[rows] = np.add.reduceat(differ, offsets[:-1], dtype=np.int64) == 0 if rows.size else False
    return same


def _repeated(key: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether a pair with the same words came before."""
    repeated = np.zeros(len(key), bool)
    order = np.lexsort((key[:, 1], key[:, 0]))  # stable: the first of equal ones stays first
    again = (key[order[1:]] == key[order[:-1]]).all(axis=1)
    repeated[order[1:][again]] = True
    return repeated
