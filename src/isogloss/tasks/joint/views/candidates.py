"""Candidates of one side of a bitext: the best analyses of the full model, judged by the weak one, and their nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.sentence_pairs import SentencePairs
from isogloss.learners.multiview import Candidates, floored
from isogloss.progress import Progress
from isogloss.tasks.joint.views.base import View

__all__ = ["Analyses", "analyses", "link_grids"]

PIECE = 500
"""Sentences that are judged at a time."""


class Analyses(NamedTuple):
    """What models say of some sentences.

    Parameters
    ----------
    ranked : list of lists
        Analyses of each sentence.
    candidates : list of Candidates
        The same as numbers.
    nodes : list of int64[n_nodes, 6]
        The distinct nodes of each sentence; see `Nodes`.
    """

    ranked: list[list[Any]]
    candidates: list[Candidates]
    nodes: list[NDArray[np.int64]]


def analyses(
    view: View, sentences: Any, full: Any, weak: Any, k: int, progress: Progress | None = None
) -> Analyses:  # fmt: skip
    """The `k` best analyses of each sentence by the full model; what the weak model cannot make is put last."""
    made, labels = Analyses([], [], []), {label: number for number, label in enumerate(view.labels(full))}
    if progress is not None:
        progress.start(f"Candidates: {view.noun}s", len(sentences))
    for start in range(0, len(sentences), PIECE):
        some = sentences.part(start, min(start + PIECE, len(sentences)))
        best = view.k_best(full, some, k)
        ranked = [[analysis for _, analysis in own] for own in best]
        for s, judged in enumerate(view.log_prob(weak, some, ranked)):
            nodes = view.nodes(some, s, ranked[s], labels)
            own = np.array([score for score, _ in best[s]], np.float64)
            made.ranked.append(ranked[s])
            made.candidates.append(Candidates(nodes.of, own, floored(judged)))
            made.nodes.append(nodes.table)
        if progress is not None:
            progress.update(start + len(some))
    return made


def link_grids(pairs: SentencePairs, aligner: Any) -> list[NDArray[np.float64]]:
    """Probabilities of the links of each pair, float64[n_source, n_target]: those that are given, or the aligner's."""
    sizes = [tuple(each) for each in zip(*(lengths.tolist() for lengths in pairs.lengths), strict=True)]
    if pairs.links is None:
        found = aligner.predict_proba(pairs.bitext())
        return [
            np.asarray(one, np.float64) if one.shape == size else np.zeros(size)  # pairs that it passes over
            for one, size in zip(found, sizes, strict=True)
        ]
    links, grids = pairs.links, [np.zeros(size) for size in sizes]
    chance = np.ones(len(links.source)) if links.probability is None else links.probability
    chance = np.where(np.isnan(chance), 1.0, chance)
    for s, grid in enumerate(grids):
        own = slice(int(links.offsets[s]), int(links.offsets[s + 1]))
        grid[links.source[own], links.target[own]] = chance[own]
    return grids
