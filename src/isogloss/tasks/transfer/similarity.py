r"""How near two languages are, by the sequences of their tags.

References
----------
Rosa and Žabokrtský, KLcpos3 – a language similarity measure for delexicalized parser transfer, ACL 2015. We differ: the
counts of the source are divided by their sum after smoothing, so that no divergence is negative, however little text
there is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isogloss.data.tagsets import UD17
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError

__all__ = ["CLOSEST", "KINDS", "TRIGRAMS", "divergence", "similarity_weights", "tag_kinds", "tag_trigrams"]

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

_OTHER, _EDGE = len(UD17), len(UD17) + 1
KINDS = len(UD17) + 2
"""The UPOS tags, all other tags taken as one, and what lies outside of a sentence."""
TRIGRAMS = KINDS**3
"""Trigrams over them."""
CLOSEST = 1e-9
"""A smaller divergence counts as this: a text is as near to itself as can be, and weights stay finite."""


def tag_kinds(treebank: Treebank) -> Counts:
    """int64[n_words]: the number of each word's UPOS among `KINDS`."""
    ids, vocabulary = treebank.columns["upos"]
    known = Vocabulary(UD17)
    kinds = np.array([known.index_of(tag) for tag in vocabulary] or [_OTHER], np.int64)
    kinds[kinds < 0] = _OTHER
    return kinds[ids]


def tag_trigrams(treebank: Treebank) -> Counts:
    """int64[`TRIGRAMS`]: how often each trigram of UPOS occurs; every word is the middle of one.

    Examples
    --------
    >>> counts = tag_trigrams(Treebank.of([[("she", "PRON"), ("sleeps", "VERB")]] * 3))
    >>> int(counts.sum()), counts[counts > 0].tolist()
    (6, [3, 3])
    """
    tags = np.full(treebank.n_words + len(treebank) + 1, _EDGE, np.int64)  # one between sentences is enough
    at = np.arange(treebank.n_words) + 1 + np.repeat(np.arange(len(treebank)), treebank.lengths)
    tags[at] = tag_kinds(treebank)
    return np.bincount((tags[at - 1] * KINDS + tags[at]) * KINDS + tags[at + 1], minlength=TRIGRAMS).astype(np.int64)


def divergence(target: Counts, source: Counts) -> float:
    r"""KLcpos3: how much the trigrams of a target differ from those of a source, in nats.

    .. math:: KL(t \,\|\, s) = \sum_{x:\, t(x) > 0} t(x) \log \frac{t(x)}{s(x)}

    over relative frequencies, where trigrams that only the target has count as if the source had each of them once. 0
    for a target without words.

    Examples
    --------
    >>> round(divergence(np.array([1, 1, 0]), np.array([1, 0, 2])), 4)         # a half each, where 1, 1 and 2 are of 4
    0.6931
    """
    if target.shape != source.shape:
        raise ParameterError(f"divergence: counts of {len(target)} and of {len(source)} trigrams do not compare")
    seen = target > 0
    smoothed = np.where(seen, np.maximum(source, 1), source)
    own, other = target[seen] / max(1, target.sum()), smoothed[seen] / max(1, smoothed.sum())
    return max(0.0, float((own * np.log(own / other)).sum()))


def similarity_weights(divergences: Floats, exponent: float = 4.0) -> Floats:
    r"""float64[n_sources]: the share of each source, :math:`w_s \propto KL(t \,\|\, s)^{-exponent}`.

    Examples
    --------
    >>> similarity_weights(np.array([0.5, 1.0])).round(4).tolist()
    [0.9412, 0.0588]
    """
    logs = -exponent * np.log(np.maximum(divergences, CLOSEST))
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())
