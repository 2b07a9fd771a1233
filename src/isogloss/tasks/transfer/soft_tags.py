r"""Tags that nobody is sure of: draws from a tagger's posteriors, and what links say of them besides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isogloss.tasks.tag.projection import Projected

__all__ = ["drawn_tags", "weighed_tags"]

Floats = NDArray[np.float64]
Tags = NDArray[np.int32]


def drawn_tags(posterior: Floats, lengths: NDArray[np.int64], draws: int, seed: int) -> Tags:
    """Several tags for each word, together as near to its posterior as so many can be.

    The draws of a word are evenly spaced quantiles of its posterior, behind one another in random order: a tag of
    probability *p* is drawn ``draws · p`` times, rounded up or down. What is random depends on the place of a word in
    its sentence alone, so that a sentence has the same draws whatever text it stands in.

    Parameters
    ----------
    posterior : float64[n_words, k]
    lengths : int64[n_sentences]
        Words of each sentence.
    draws : int
    seed : int

    Returns
    -------
    int32[draws, n_words]

    Examples
    --------
    >>> found = drawn_tags(np.array([[1.0, 0.0], [0.25, 0.75]]), np.array([2]), 4, 0)
    >>> found[:, 0].tolist(), sorted(found[:, 1].tolist())
    ([0, 0, 0, 0], [0, 1, 1, 1])
    """
    n = len(posterior)
    ends = np.cumsum(lengths)
    place = np.arange(n) - np.repeat(ends - lengths, lengths)
    random = np.random.default_rng(seed).random((int(lengths.max(initial=0)), draws + 1))  # a row for each place
    order = np.argsort(random[:, :-1], axis=1)
    places = ((order + random[:, -1:]) / draws)[place].T
    below = np.cumsum(posterior, axis=1)
    below[:, -1:] = np.inf  # sums may be a little less than 1
    found = np.empty((draws, n), np.int32)
    for draw in range(draws):
        found[draw] = (below <= places[draw][:, None]).sum(axis=1)
    return found


def weighed_tags(posterior: Floats, carried: Projected) -> Tags:
    r"""The most probable tag of each word by the tagger and by the link that a tag came through.

    .. math:: q(t) \propto p(t)\,\big(r\,[t = z] + (1 - r) / k\big)

    where the tag *z* arrived with probability *r*. A tag that the tagger thinks impossible is not believed.

    Parameters
    ----------
    posterior : float64[n_words, k]
        Of a tagger.
    carried : Projected
        What links carry to the same words.

    Examples
    --------
    >>> both = Projected(np.array([1, 1, -1], np.int32), np.array([0.9, 0.9, 0.0]))
    >>> weighed_tags(np.array([[0.6, 0.4], [0.999, 0.001], [0.6, 0.4]]), both).tolist()
    [1, 0, 0]
    """
    k = posterior.shape[1] if posterior.ndim > 1 else 0
    held = np.flatnonzero(carried.labels >= 0)
    sure = carried.probability[held]
    found = posterior.copy()
    found[held] *= ((1.0 - sure) / max(1, k))[:, None]
    found[held, carried.labels[held]] += sure * posterior[held, carried.labels[held]]
    return np.asarray(found.argmax(axis=1), np.int32)
