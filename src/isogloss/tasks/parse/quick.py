"""Scores of all links by few features, to the bit as `PartScorer` gives them; weights of each code are found once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.structures.base import Array, kept
from isogloss.structures.batch import run_sentences
from isogloss.structures.tree_parts import TreeParts
from isogloss.tasks.parse.scoring import PartScorer
from isogloss.tasks.parse.words import Words

__all__ = ["scores_of_links"]

BLOCKS = 8
WORTH = 6.0
"""Weights that are looked up for each link, at most; without all this, they are some 25."""


def scores_of_links(scorer: PartScorer, words: Words, sentences: NDArray[np.int64], parts: TreeParts) -> Array:
    """float64[n_links]: what ``scorer.scores`` gives for all links of some sentences and no other parts.

    Parameters
    ----------
    scorer : PartScorer
        One that does not learn, of links alone.
    words : Words
        Without attributes.
    parts : TreeParts
        Of `Candidates.all`.
    """
    from isogloss.tasks.parse._numba.quick import (
        N_COUNTS,
        N_PLACES,
        N_WEIGHTS,
        add_up,
        sums_of_words,
        weigh,
        weigh_between,
    )

    links, table = scorer.link_numbers, scorer.table.slots
    lengths = words.lengths[sentences]
    rows = np.concatenate([[0], np.cumsum(lengths + 1)]).astype(np.int64)
    given = (sentences, words.starts, words.lengths)
    numbers, stand_for, counts = sums_of_words(*given, words.codes, links, rows)
    templates = len(links[0])
    tags, between = (int(count) for count in counts[2 * templates :])
    sizes = counts[:templates] * counts[templates : 2 * templates]
    sizes = np.append(sizes, [tags * tags * between, tags * tags * N_COUNTS, tags * N_PLACES]) * N_WEIGHTS
    if int(sizes.sum()) > WORTH * parts.n_links:
        return scorer.scores(words, sentences, parts)
    begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    weights = np.empty(int(begins[-1]), np.float32)
    known = (table, stand_for, counts, templates)
    run_blocks(weigh, BLOCKS, *known, begins, weights)
    run_blocks(weigh_between, BLOCKS, *known, links[3], links[4], begins, weights)
    out, offsets = np.empty(parts.n_links), parts.begins[:, 0].copy()
    seen = (rows, offsets, numbers, counts, templates, begins, weights)
    run_sentences(add_up, len(sentences), *given, words.kinds, *seen, out)
    return kept(out)
