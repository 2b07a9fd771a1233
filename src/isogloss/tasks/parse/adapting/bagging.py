"""Sentences that parsers label who have not learnt from them: bagging, and self-training.

References
----------
Dredze et al., Frustratingly Hard Domain Adaptation for Dependency Parsing, EMNLP-CoNLL 2007, section 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.joining import join_treebanks
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError
from isogloss.progress import Progress

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser

__all__ = ["bagged", "bags_of", "surest"]


def bags_of(n: int, bags: int, size: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Numbers of the sentences in each bag, drawn with replacement.

    A bag of size b has about :math:`n (1 - e^{-b/n})` different sentences; the others are what its parser labels.
    """
    if n < 2:
        raise ParameterError("bagging: there should be two sentences or more")
    rng = np.random.default_rng(seed)
    return [rng.integers(n, size=size) for _ in range(bags)]


def bagged(
    parser: DependencyParser,
    treebank: Treebank,
    bags: list[NDArray[np.int64]],
    seed: int = 0,
    progress: Progress | None = None,
) -> Treebank:
    """All sentences as they are labelled by the parsers of bags that they are not in, in an order of chance.

    Parameters
    ----------
    parser : DependencyParser
        Its options are those of the parser of each bag.
    """
    labelled: list[Treebank] = []
    for bag in bags:
        rest = np.setdiff1d(np.arange(len(treebank)), bag)
        if not len(rest):
            continue
        learnt = type(parser)(**parser.get_params()).fit(treebank.take(bag), progress=progress)
        labelled.append(learnt.predict(treebank.take(rest)))
    if not labelled:
        raise ParameterError("bagging: every sentence is in every bag, so that nothing is left to label; take less")
    joined = join_treebanks(labelled)
    return joined.take(np.random.default_rng(seed).permutation(len(joined)))


def surest(parser: Any, text: Treebank, share: float) -> Treebank:
    """The sentences of a text, parsed, of whose trees a parser is surest: entropy for each word is low."""
    lengths = np.maximum(text.lengths, 1)
    unsure = parser.entropy(text) / lengths
    kept = np.sort(np.argsort(unsure, kind="stable")[: max(1, round(share * len(text)))])
    found: Treebank = parser.predict(text.take(kept[text.lengths[kept] > 0]))
    return found
