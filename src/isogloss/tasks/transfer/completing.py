r"""Whole trees from what arrived through links and from what another parser believes of the rest.

Word *c* takes its head from what was projected as far as that goes, and from the other parser beyond,

.. math:: u_c(h) = \pi(h \to c) + \Big(1 - \sum_{h'} \pi(h' \to c)\Big)\, p(h \to c),

and trees are weighed by the product of what their words say, :math:`q(y) \propto \prod_{h \to c \in y} u_c(h)`. What a
word lacks is thus found together with what its neighbours have, and no projected link is certain.

References
----------
Ma and Xia, Unsupervised Dependency Parsing with Transferring Distribution via Parallel Guidance and Entropy
Regularization, ACL 2014 (posteriors of source links in place of trees, and a delexicalised parser for the rest).
Rasooli and Collins, Density-Driven Cross-Lingual Transfer of Dependency Parsers, EMNLP 2015 (completing partial trees).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.links import Links
from isogloss.errors import ParameterError
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack
from isogloss.structures.projective_batch import ProjectiveTrees
from isogloss.tasks.parse.inference import chances_of, pieces
from isogloss.tasks.transfer.edges import ProjectedEdges

__all__ = ["Completed", "complete_trees", "mixed", "most_expected", "shared_links"]

FLOOR = 1e-6
"""No head is less likely than this, so that every word has some tree."""


class Completed(NamedTuple):
    """A tree for each sentence.

    Parameters
    ----------
    heads : int32[n_words]
        0 for the root, 1 … n within the sentence.
    confidence : float64[n_words]
        The posterior of each word's link.
    """

    heads: NDArray[np.int32]
    confidence: NDArray[np.float64]


def shared_links(links: Links) -> Links:
    """Links whose probabilities add up to at most 1 for each word of either side.

    A source word that is linked with two target words stands for one of them in the tree, and which of the two it is
    cannot be seen from the links: each gets its share.

    Examples
    --------
    >>> links = Links.of([[(0, 0), (0, 1)]])
    >>> shared_links(links).probability.tolist()
    [0.5, 0.5]
    """
    chance = np.ones(len(links.source)) if links.probability is None else links.probability.astype(np.float64)
    for side in (links.source, links.target):
        _, word = np.unique(links.pair << 32 | side, return_inverse=True)
        chance /= np.maximum(1.0, np.bincount(word.ravel(), chance)[word.ravel()]) if len(chance) else 1.0
    return replace(links, probability=chance.astype(np.float32))


def mixed(edges: ProjectedEdges, prior: Stack) -> Stack:
    """What words say of their heads, :math:`u_c(h)`: float64[n + 1, n + 1] of each sentence, as (head, child).

    Parameters
    ----------
    edges : ProjectedEdges
        Probabilities of what was projected; those of a word add up to at most 1.
    prior : Stack
        Posteriors of another parser for the same sentences, as its `predict_proba` gives them.
    """
    sizes = edges.lengths + 1
    if not np.array_equal(prior.shapes, np.stack([sizes, sizes], axis=1)):
        raise ParameterError("complete_trees: posteriors should be [n + 1, n + 1] for the sentences of the edges")
    left = 1.0 - np.minimum(edges.totals(), 1.0)
    child = np.arange(len(prior.values)) - np.repeat(prior.offsets[:-1], sizes * sizes)
    child %= np.repeat(sizes, sizes * sizes)
    word = np.repeat(edges.offsets[:-1], sizes * sizes) + child - 1
    values = np.where(child > 0, prior.values * left[np.maximum(word, 0)], 0.0) if len(left) else prior.values.copy()
    at = prior.offsets[edges.sentence] + edges.head.astype(np.int64) * sizes[edges.sentence] + edges.child
    values[at] += edges.probability
    return prior.like(kept(values))


def complete_trees(edges: ProjectedEdges, prior: Stack, *, single_root: bool = True) -> Completed:
    """The trees with the most right heads in expectation under *q*, and how probable their links are.

    Examples
    --------
    Nothing but the root was projected, and the rest is as the other parser believes.

    >>> edges = ProjectedEdges.of([0, 2], [1], [0], [0.9])
    >>> prior = Stack.of([[[0, 0.5, 0.5], [0, 0, 0.5], [0, 0.5, 0]]], "prior", 2)
    >>> found = complete_trees(edges, prior)
    >>> found.heads.tolist(), found.confidence.round(2).tolist()
    ([2, 0], [0.95, 0.95])
    """
    heads, chances = [np.zeros(0, np.int32)], [np.zeros(0)]
    for some, own in _pieces(edges, prior):
        trees = ProjectiveTrees(_scores(mixed(some, own)), single_root=single_root)
        posteriors = trees.marginals()
        worth = np.where(np.isfinite(trees.scores.values), posteriors.values, -np.inf)
        best = trees.with_scores(posteriors.like(kept(worth))).argmax()
        found = np.concatenate([np.zeros(0, np.int32), *best]).astype(np.int32)
        heads.append(found)
        chances.append(chances_of(posteriors, found))
    return Completed(np.concatenate(heads), np.concatenate(chances))


def _pieces(edges: ProjectedEdges, prior: Stack) -> Iterator[tuple[ProjectedEdges, Stack]]:
    """Some sentences at a time: what is worked on is several times as large as what is given."""
    for rows in pieces(edges.lengths):
        first, last = prior.offsets[rows[0]], prior.offsets[rows[-1] + 1]
        offsets = prior.offsets[rows[0] : rows[-1] + 2] - first
        yield edges.take(rows), Stack(prior.values[first:last], offsets, prior.shapes[rows])


def _scores(shares: Stack) -> Stack:
    """Logs of what words say; the root has no head, and no word is its own."""
    sizes = shares.shapes[:, 0]
    cells = sizes * sizes
    place = np.arange(len(shares.values)) - np.repeat(shares.offsets[:-1], cells)
    head, child = np.divmod(place, np.repeat(sizes, cells))
    scores = np.log(np.maximum(shares.values, FLOOR))
    scores[(child == 0) | (head == child)] = -np.inf
    return shares.like(kept(scores))


def most_expected(posteriors: Stack) -> NDArray[np.int32]:
    r"""The projective trees with one root and the most right heads in expectation, one sentence after the other.

    .. math:: \arg\max_y \sum_c P(y_c \to c)

    Links without probability are left out. Posteriors of trees, or sums of them, always leave one.

    Examples
    --------
    >>> most_expected(Stack.of([[[0, 0.6, 0.4], [0, 0, 0.6], [0, 0.4, 0]]], "posteriors", 2)).tolist()
    [0, 1]
    """
    worth = np.where(posteriors.values > 0, posteriors.values, -np.inf)
    best = ProjectiveTrees(posteriors.like(kept(worth)), single_root=True).argmax()
    return np.concatenate([np.zeros(0, np.int32), *best]).astype(np.int32)
