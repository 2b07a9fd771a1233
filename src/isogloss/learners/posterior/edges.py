"""Features of dependency trees for the sparsity penalty: which pairs of tags are head and child anywhere in a text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.learners.posterior.features import Features
from isogloss.learners.posterior.together import Together

__all__ = ["edge_types"]

Indices = NDArray[np.int64]


def edge_types(
    dist: Together, tags: Sequence[ArrayLike], n_tags: int, *, symmetric: bool = False, root: bool = True
) -> tuple[Features, Indices]:
    r"""Features and groups that make `Groups` count pairs (tag of the head, tag of the child).

    .. math:: \sum_{c, p} \max_i E_q[\phi_{cpi}]

    Parameters
    ----------
    dist : Together
        Trees: the scores of each are [n + 1, n + 1], indexed (head, child), node 0 the root.
    tags : for each sentence int64[n]
        Tags from 0 to `n_tags` − 1.
    symmetric : bool
        False (PR-AS): :math:`\phi_{cpi}` is 1 if the head of the *i*-th word of tag *c* has tag *p*. True (PR-S): one
        feature for each pair of words that may be head and child.
    root : bool
        Count the root as a tag of heads, number `n_tags`; otherwise words that hang from it cost nothing.

    Returns
    -------
    Features, int64[m]
        The features, and the group of each: ``Groups(groups, strength)``. Groups are numbered in the order of
        (child tag, head tag), those that the text cannot have left out.

    References
    ----------
    Gillenwater, Ganchev, Graça, Pereira and Taskar, Sparsity in Dependency Grammar Induction, ACL 2010, section 3.
    """
    pairs: list[Indices] = [np.zeros(0, np.int64)]
    keys: list[Indices] = [np.zeros(0, np.int64)]
    n_heads, words = n_tags + 1, 0
    for s, (shape, given) in enumerate(zip(dist.shapes, tags, strict=True)):
        tag = np.asarray(given, np.int64)
        n = len(tag)
        if shape != (n + 1, n + 1) or (n and not 0 <= tag.min() <= tag.max() < n_tags):
            raise ParameterError(
                f"edge_types: sentence {s} has scores {list(shape)}, so it should have {shape[0] - 1} tags from 0 to "
                f"{n_tags - 1}, not {tag!r}"
            )
        head, child = np.append(n_tags, tag), np.append(0, tag)
        allowed = ~np.eye(n + 1, dtype=bool)
        allowed[:, 0] = False
        allowed[0] &= root
        pairs.append(np.where(allowed, child * n_heads + head[:, None], -1).ravel())
        # PR-AS: one feature for each child and tag of a head; PR-S: one for each part.
        keys.append((np.arange(words, words + n + 1) * n_heads + head[:, None]).ravel())
        words += n + 1
    pair, key = np.concatenate(pairs), np.concatenate(keys)
    used = np.flatnonzero(pair >= 0)
    if symmetric:
        key[used] = used
    features, first, to = np.unique(key[used], return_index=True, return_inverse=True)
    index = np.full(len(pair), -1)
    index[used] = to.ravel()
    groups = np.unique(pair[used[first]], return_inverse=True)[1].ravel()
    return Features.indexed(index, len(features)), groups
