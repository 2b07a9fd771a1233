r"""On which side of their heads words of a language stand, guessed from the order of its tags.

A tree knows whether a noun that depends on a noun stands before it (English, Finnish, Chinese) or behind it (Czech,
Spanish, Arabic); text with tags does not, and sources that are otherwise near may be of the wrong kind. But orders of
words go together (Greenberg 1963): where adpositions stand behind nouns and verbs at the end, genitives stand before
nouns. What goes with what is learnt from the sources, whose trees are known.

For tags *a* and *b*, let :math:`o_s(a, b)` be the logarithm of how much more often *a* stands right before *b* than
behind it in text *s*, and :math:`\lambda_s(a, b)` that of how much more often a word *a* that depends on a word *b*
stands before it than behind it. Ridge regression over the sources predicts all :math:`\lambda(a, b)` of a text from its
orders,

.. math:: \hat\lambda = \bar\lambda + \sum_s \alpha_s (\lambda_s - \bar\lambda), \qquad
    \alpha = (X X^\top + \rho\, \tfrac{1}{n} \mathrm{tr}(X X^\top) I)^{-1} X x,

where the rows of *X* have the orders of the sources, and *x* those of the text, less their means, each times the root
of how often the two tags are neighbours.

References
----------
Greenberg, Some Universals of Grammar with Particular Reference to the Order of Meaningful Elements, 1963. Wang and
Eisner, Fine-Grained Prediction of Syntactic Typology, TACL 2017, who predict directions from tags as well; there, from
very many artificial languages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack
from isogloss.tasks.transfer.similarity import KINDS, TRIGRAMS, tag_kinds

__all__ = ["RIDGE", "corrected", "direction_factors", "predicted_directions", "tag_directions", "tag_orders"]

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

RIDGE = 0.3
"""ρ of the regression, as a share of what the sources vary by; from 0.03 to 1 it made no difference that mattered."""
SURE = 0.97
"""No direction is taken to be surer than this."""
_BEFORE, _BEHIND = 2.0, 1.0
"""Pseudo-counts of orders and of directions."""


def tag_orders(trigrams: Counts) -> Floats:
    """float64[`KINDS`, `KINDS`]: how often a tag stands right before another, from `tag_trigrams`."""
    return np.asarray(trigrams.reshape(KINDS, KINDS, KINDS).sum(axis=0), np.float64)


def tag_directions(trees: Treebank) -> Counts:
    """int64[2, `KINDS`, `KINDS`]: how often words stand before their heads (0), and behind them (1), by both tags.

    Examples
    --------
    >>> found = tag_directions(Treebank.of([[("a", "DET", 2), ("dog", "NOUN", 0)]] * 3))
    >>> int(found.sum()), found.max(axis=(1, 2)).tolist()
    (3, [3, 0])
    """
    kinds, first = tag_kinds(trees), np.repeat(trees.offsets[:-1], trees.lengths)
    child = np.flatnonzero(trees.heads > 0)
    head = first[child] + trees.heads[child] - 1
    place = ((child > head).astype(np.int64) * KINDS + kinds[child]) * KINDS + kinds[head]
    return np.bincount(place, minlength=2 * KINDS * KINDS).reshape(2, KINDS, KINDS).astype(np.int64)


def _logits(directions: Counts) -> Floats:
    """λ of each source: float64[n_sources, KINDS, KINDS]."""
    before, behind = directions[:, 0] + _BEHIND, directions[:, 1] + _BEHIND
    return np.asarray(np.log(before / behind))


def predicted_directions(target: Counts, trigrams: Counts, directions: Counts) -> Floats:
    """float64[`KINDS`, `KINDS`]: λ̂ of a text, as (tag of the word, tag of its head).

    Parameters
    ----------
    target : int64[`TRIGRAMS`]
        Of the text.
    trigrams : int64[n_sources, `TRIGRAMS`]
    directions : int64[n_sources, 2, `KINDS`, `KINDS`]
        Of the sources.
    """
    every = np.stack([tag_orders(counts) for counts in (*trigrams.reshape(-1, TRIGRAMS), target)])
    upper = np.triu_indices(KINDS, 1)
    lean = np.log((every + _BEFORE) / (every.transpose(0, 2, 1) + _BEFORE))[:, upper[0], upper[1]]
    shares = every[:-1] / np.maximum(1.0, every[:-1].sum(axis=(1, 2), keepdims=True))
    often = (shares + shares.transpose(0, 2, 1)).sum(axis=0)[upper]
    lean = lean * np.sqrt(often)
    rows, own = lean[:-1] - lean[:-1].mean(axis=0), lean[-1] - lean[:-1].mean(axis=0)
    logits = _logits(directions)
    mean = logits.mean(axis=0)
    products = rows @ rows.T
    scale = float(np.trace(products)) / len(rows)
    rounding = np.sqrt(np.finfo(np.float64).eps) * float((lean[:-1] ** 2).sum()) / len(rows)
    if scale <= rounding:  # one source, or sources that are all alike
        return np.asarray(mean)
    alpha = np.linalg.solve(products + RIDGE * scale * np.eye(len(rows)), rows @ own)
    return np.asarray(mean + np.tensordot(alpha, logits - mean, 1))


def direction_factors(predicted: Floats, directions: Counts, weights: Floats) -> Floats:
    r"""float64[2, `KINDS`, `KINDS`]: how much more probable links before (0) and behind (1) heads are than sources say.

    The probability of a direction by the prediction, divided by that which the sources have together,
    :math:`\sigma(\hat\lambda) / \sigma(\sum_s w_s \lambda_s)`.
    """
    together = np.tensordot(weights, _logits(directions), 1)
    chances = [1.0 / (1.0 + np.exp(-np.stack([logit, -logit]))) for logit in (predicted, together)]
    wanted, there = (np.clip(chance, 1.0 - SURE, SURE) for chance in chances)
    return np.asarray(wanted / there)


def corrected(posteriors: Stack, kinds: Counts, factors: Floats) -> Stack:
    """Posteriors of links times the factors of their directions; those of each word add up to 1 again.

    Parameters
    ----------
    posteriors : Stack
        float64[n + 1, n + 1] of each sentence, as (head, child).
    kinds : int64[n_words]
        Tags of the words of these sentences, by `tag_kinds`.
    factors : float64[2, `KINDS`, `KINDS`]
    """
    sizes = posteriors.shapes[:, 0]
    cells = sizes * sizes
    sentence = np.repeat(np.arange(len(sizes)), cells)
    place = np.arange(len(posteriors.values)) - posteriors.offsets[sentence]
    head, child = np.divmod(place, sizes[sentence])
    first = np.concatenate([[0], np.cumsum(sizes - 1)])[sentence]
    real = (head > 0) & (child > 0)
    values = np.where(child > 0, posteriors.values, 0.0)
    of_child, of_head = kinds[(first + child - 1)[real]], kinds[(first + head - 1)[real]]
    values[real] *= factors[(child > head)[real].astype(np.int64), of_child, of_head]
    word = (first + child - 1)[child > 0]
    totals = np.bincount(word, values[child > 0], minlength=len(kinds))
    values[child > 0] /= np.maximum(totals[word], np.finfo(np.float64).tiny)
    return posteriors.like(kept(values))
