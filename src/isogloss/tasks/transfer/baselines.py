"""What to compare with: projected edges made into whole trees by chance, and sentences that need no chance.

References
----------
Hwa, Resnik, Weinberg, Cabezas and Kolak, Natural Language Engineering 11(3), 2005, as Ganchev, Gillenwater and Taskar
(ACL 2009) compare with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isogloss.structures.batch import run_sentences
from isogloss.structures.partial import compatible_heads
from isogloss.tasks.transfer.edges import ProjectedEdges

__all__ = ["determined_sentences", "random_trees"]


def random_trees(edges: ProjectedEdges, *, seed: int = 0, single_root: bool = True) -> NDArray[np.int32]:
    """A projective tree for each sentence that has as many projected edges as came in time, and is random otherwise.

    Edges are taken in random order, each if some projective tree has it beside those taken before. Then every word that
    is left, in random order, gets the first head, in random order, that some projective tree has beside all others.

    Returns
    -------
    int32[n_words]
        The same for the same seed, on any number of threads.

    Examples
    --------
    >>> edges = ProjectedEdges.of([0, 3], [0], [3])
    >>> random_trees(edges).tolist()[0], (random_trees(edges) >= 0).all()
    (3, np.True_)
    """
    from isogloss.tasks.transfer._numba.completing import fill_at_random

    rng = np.random.default_rng(seed)
    order = rng.random(len(edges.word))
    heads = compatible_heads(edges.offsets, edges.word, edges.head, order, single_root=single_root)
    seeds = rng.integers(0, 2**63, len(edges), dtype=np.uint64)
    run_sentences(fill_at_random, len(edges), edges.offsets, seeds, single_root, heads)
    return heads


def determined_sentences(
    edges: ProjectedEdges, threshold: float = 0.0, *, single_root: bool = True
) -> NDArray[np.bool_]:
    """bool[n_sentences]: sentences in which every word has a projected head: hard projection keeps these alone."""
    return np.asarray(edges.density(threshold, single_root=single_root).share == 1.0)
