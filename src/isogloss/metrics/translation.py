r"""Translations against references: BLEU and chrF as sacrebleu counts them, and BLEU of single sentences.

Corpus scores, their signatures and all counting of characters and tokens are sacrebleu's. Intervals and the p-values of
paired comparisons are drawn from its counts of each sentence, as for all other scores of ours. What learners ask for,
BLEU of thousands of candidates a second, has a kernel of its own.

References
----------
Papineni, Roukos, Ward and Zhu, ACL 2002 (BLEU). Post, A Call for Clarity in Reporting BLEU Scores, WMT 2018
(sacrebleu). Popović, chrF: character n-gram F-score, WMT 2015. Liang et al., COLING-ACL 2006 (BLEU of sentences).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import ParameterError
from isogloss.metrics._resampling import Difference, paired
from isogloss.metrics.scores import Sample, Score

__all__ = [
    "TOKENISERS", "TranslationComparison", "TranslationScore", "bleu_beside", "bleu_of", "compare_translations",
    "matches", "score_translations", "sentence_bleu",
]  # fmt: skip

TOKENISERS = ("13a", "none", "intl", "char", "zh")
"""How sacrebleu may cut words for BLEU."""
_BLEU = 10
"""Counts of BLEU in those of a sentence; the others are chrF's."""
_BETA = 2

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class TranslationScore(Score):
    """How good translations are.

    Parameters
    ----------
    bleu, chrf : float
        In percent.
    chrf_signature : str
        The recipe of chrF; `signature` has that of BLEU.
    """

    bleu: float
    chrf: float
    chrf_signature: str

    @property
    def measures(self) -> tuple[str, ...]:
        """`bleu` and `chrf`."""
        return ("bleu", "chrf")

    @property
    def headline(self) -> str:
        """`bleu`."""
        return "bleu"

    def _shown(self) -> tuple[str, ...]:
        return self.measures

    def _further(self) -> dict[str, Any]:
        return {"chrf_signature": self.chrf_signature}


@dataclass(frozen=True)
class TranslationComparison(Difference):
    """The difference of two systems that translated the same sentences."""

    measure: str = "bleu"

    def __str__(self) -> str:
        return self.said_of(self.measure)


def score_translations(
    translations: Sequence[str],
    references: Sequence[str],
    *,
    tokenise: str = "13a",
    bootstrap: int = 1000,
    seed: int = 0,
) -> TranslationScore:
    """BLEU and chrF of translations against one reference each, by sacrebleu.

    Parameters
    ----------
    translations, references : sequence of str
        A sentence each.
    tokenise : str
        How sacrebleu cuts words for BLEU: one of `TOKENISERS`; "none" for text that is tokenised.
    bootstrap : int
        Resamples for intervals, 0 for none.

    Examples
    --------
    >>> score = score_translations(["the house is very small", "yes"], ["the house is small", "yes"], bootstrap=0)
    >>> round(score.bleu, 2), round(score.chrf, 2), score.signature.split("|v:")[0]
    (43.17, 73.7, 'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|n:2|seed:0')
    """
    counts, signatures = _counted(translations, references, tokenise)
    sample = Sample(counts, _rates, bootstrap, seed)
    found, size = sample.percent(), f"n:{len(counts)}"
    return TranslationScore(
        n=len(counts), signature=sample.signed(signatures[0], size), chrf_signature=sample.signed(signatures[1], size),
        sample=sample, **found,
    )  # fmt: skip


def compare_translations(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    *,
    tokenise: str = "13a",
    measure: str = "bleu",
    resamples: int = 1000,
    seed: int = 0,
) -> TranslationComparison:
    """The difference of two systems on the same sentences, with what chance alone would do.

    References
    ----------
    Koehn, Statistical Significance Tests for Machine Translation Evaluation, EMNLP 2004.
    """
    if measure not in ("bleu", "chrf"):
        raise ParameterError(f"compare_translations: measure should be 'bleu' or 'chrf', not {measure!r}")
    each = [_counted(translations, references, tokenise)[0] for translations in (first, second)]
    counts = np.stack(each, axis=1)
    fields = paired(counts, lambda sums: _rates(sums)[measure], resamples, seed, "compare_translations")
    return TranslationComparison(**fields, measure=measure)


def _counted(
    translations: Sequence[str], references: Sequence[str], tokenise: str
) -> tuple[Counts, tuple[str, str]]:  # fmt: skip
    """What sacrebleu counts in each sentence, and how it says that it counts."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    if tokenise not in TOKENISERS:
        raise ParameterError(f"tokenise should be one of {', '.join(TOKENISERS)}, not {tokenise!r}")
    if len(translations) != len(references):
        raise ParameterError(
            f"there are {len(translations)} translations and {len(references)} references: line k of one is scored "
            "against line k of the other"
        )
    columns, signatures = [], []
    for metric in (BLEU(tokenize=tokenise, force=True), CHRF()):
        rows = metric._extract_corpus_statistics(list(translations), [list(references)]) if translations else []
        width = _BLEU if isinstance(metric, BLEU) else 3 * metric.order
        columns.append(np.array(rows, np.int64).reshape(len(rows), width))
        metric.num_refs = 1
        parts = metric.get_signature().format().split("|")
        signatures.append("|".join(part for part in parts if not part.startswith("version:")))
    columns[0] = columns[0][:, [2, 3, 4, 5, 6, 7, 8, 9, 0, 1]]  # as `count_matches` has them
    return np.concatenate(columns, axis=1), (signatures[0], signatures[1])


def _rates(counts: NDArray[Any]) -> dict[str, Floats]:
    return {"bleu": bleu_of(counts[..., :_BLEU]), "chrf": _chrf_of(counts[..., _BLEU:])}


def bleu_of(counts: NDArray[Any]) -> Floats:
    r"""BLEU, from 0 to 1, of counts[..., 10]: runs of one to four words that are right, all of them, both lengths.

    .. math:: \min(1, e^{1 - r / c}) \Big(\prod_{m=1}^{4} p_m\Big)^{1/4}

    A precision of 0 counts as 1 / (2ᵏ · runs), the k-th of them, as sacrebleu smooths ("exp").
    """
    counts = np.asarray(counts, np.float64)
    right, all_of = counts[..., :4], counts[..., 4:8]
    zeros = np.cumsum(right == 0, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = np.where(right > 0, right, 0.5**zeros) / all_of
        brevity = np.minimum(1.0, np.exp(1 - counts[..., 9] / counts[..., 8]))
        found = brevity * np.exp(np.log(precisions).mean(axis=-1))
    possible = (all_of > 0).all(axis=-1) & (right > 0).any(axis=-1)
    return np.asarray(np.where(possible, found, 0.0))


def _chrf_of(counts: NDArray[Any]) -> Floats:
    """chrF of counts[..., 18]: of one to six characters those of the translation, of the reference, and of both."""
    counts = np.asarray(counts, np.float64).reshape(*np.shape(counts)[:-1], -1, 3)
    found, wanted, right = np.moveaxis(counts, -1, 0)
    there = (found > 0) & (wanted > 0)
    orders = np.maximum(there.sum(axis=-1), 1)
    precision = np.where(there, right / np.maximum(found, 1), 0).sum(axis=-1) / orders
    recall = np.where(there, right / np.maximum(wanted, 1), 0).sum(axis=-1) / orders
    factor = _BETA**2
    return np.asarray((1 + factor) * precision * recall / np.maximum(factor * precision + recall, 1e-300))


# --- for learners


def matches(
    words: NDArray[np.int32],
    starts: Counts,
    reference_words: NDArray[np.int32],
    reference_starts: Counts,
    of_reference: Counts,
) -> Counts:
    """int64[n, 10]: what `bleu_of` takes, of translations as word numbers.

    Parameters
    ----------
    words, starts
        Translation k is ``words[starts[k]:starts[k + 1]]``.
    reference_words, reference_starts
        The same of references.
    of_reference : int64[n]
        The reference of each translation.

    Examples
    --------
    >>> words, reference = np.array([1, 2, 3, 9], np.int32), np.array([1, 2, 3, 4], np.int32)
    >>> ends = np.array([0, 4])
    >>> matches(words, ends, reference, ends, np.array([0])).tolist()
    [[3, 2, 1, 0, 4, 3, 2, 1, 4, 4]]
    """
    from isogloss.metrics._numba.bleu import count_matches

    out = np.zeros((len(starts) - 1, 10), np.int64)
    with using_threads() as threads:
        blocks = threads if len(out) > 256 else 1
        run_blocks(count_matches, blocks, words, starts, reference_words, reference_starts, of_reference, out)
    return out


def bleu_beside(counts: NDArray[Any]) -> Floats:
    """BLEU of counts[..., 10] of a sentence and a text before it, times the length of their references.

    A sentence that matters more because it is long does so here, as all scores of learners do (Chiang et al. 2008).
    Counts are above 0, as those of a text are.
    """
    counts = np.asarray(counts, np.float64)
    log = np.log(counts[..., :4] / counts[..., 4:8]).mean(axis=-1)
    brevity = np.minimum(0.0, 1 - counts[..., 9] / counts[..., 8])
    return np.asarray(np.exp(log + brevity) * counts[..., 9])


def sentence_bleu(counts: NDArray[Any]) -> Floats:
    r"""BLEU of single sentences, from 0 to 15/16, of counts[..., 10].

    .. math:: \sum_{m=1}^{4} \frac{\mathrm{BLEU}_m}{2^{5 - m}}

    with BLEU_m that of runs of up to m words, without smoothing: it is above 0 if a single word is right.

    Examples
    --------
    >>> float(sentence_bleu(np.array([4, 3, 2, 1, 4, 3, 2, 1, 4, 4])))
    0.9375
    """
    counts = np.asarray(counts, np.float64)
    right, all_of = counts[..., :4], counts[..., 4:8]
    precisions = right / np.maximum(all_of, 1)
    products = np.cumprod(precisions, axis=-1)
    means = products ** (1 / np.arange(1, 5))
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity = np.where(counts[..., 8] > 0, np.minimum(1.0, np.exp(1 - counts[..., 9] / counts[..., 8])), 0.0)
    return np.asarray(brevity * (means / 2.0 ** np.arange(4, 0, -1)).sum(axis=-1))
