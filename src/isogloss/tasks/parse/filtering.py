"""Which links are worth a closer look: those that a small first-order parser does not rule out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isogloss.features import KeyTable
from isogloss.learners.runner import run
from isogloss.pass_options import PassSettings
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.batch import run_sentences
from isogloss.structures.tree_parts import Candidates, TreeParts
from isogloss.tasks.parse.features import FILTER_TEMPLATES
from isogloss.tasks.parse.inference import Shape, best_trees, pieces
from isogloss.tasks.parse.quick import scores_of_links
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer, count_keys
from isogloss.tasks.parse.training import KnownHeads, TreeModel, known_sentences, tree_learner
from isogloss.tasks.parse.words import Columns, Words

__all__ = ["LinkFilter", "with_heads"]

PASSES = 3
RATE = 0.1
MOST = 16
"""Heads of a word that are looked at, at most."""


@dataclass(frozen=True, eq=False)
class LinkFilter:
    """A first-order parser with few templates, whose posteriors choose candidates.

    Parameters
    ----------
    scorer : PartScorer
    shape : Shape
    threshold : float
        Links below this share of the posterior of the word's best link are left out. Links of the best tree always
        stay, so that there is a tree.

    References
    ----------
    Koo and Collins, Efficient third-order dependency parsers, ACL 2010, section 6.1; Rush and Petrov, Vine pruning for
    efficient multi-pass dependency parsing, NAACL 2012.
    """

    scorer: PartScorer
    shape: Shape
    threshold: float

    @classmethod
    def fit(
        cls,
        words: Words,
        columns: Columns,
        heads: NDArray[np.int32],
        shape: Shape,
        *,
        threshold: float,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> LinkFilter:
        """Learn from gold heads."""
        progress = progress or QuietProgress()
        constraint = shape.constraint if shape.constraint == "projective" else "tree"  # whatever is compared
        words, first = words.without_features(), replace(shape, families=(), constraint=constraint)
        columns = columns._replace(more=())  # what views add is for the parser
        features = FeatureSet.of(columns, (), FILTER_TEMPLATES)
        every = Candidates.all(words.lengths)
        table = KeyTable.of(count_keys(words, features, every, (), heads))
        scorer = PartScorer(features, table, np.zeros(0, np.float32))  # the learner has the weights
        sentences = known_sentences(heads, words.lengths)
        model, known = TreeModel(scorer, words, every, first, sentences), KnownHeads(heads, every.offsets, sentences)
        learner = tree_learner(model, known, PassSettings("likelihood", PASSES, RATE, seed=seed), progress.within)
        found = run(learner, learner.init(), iterations=PASSES, progress=progress, name="Choosing links")
        return cls(PartScorer.packed(features, table.keys, found.state.average), first, threshold)

    def candidates(
        self, words: Words, heads: NDArray[np.int32] | None = None, *, given: NDArray[np.int32] | None = None
    ) -> Candidates:  # fmt: skip
        """The links to look at; with `heads`, those to gold heads as well, whatever their posterior.

        With `given` (−1 where any will do), posteriors are those among the trees that have these heads, and there must
        be such: words whose head is given then have no other candidate, and the others still make a tree.
        """
        from isogloss.tasks.parse._numba.filtering import choose, count

        plain = words.without_features()
        gold = np.full(int(words.lengths.sum()), -1, np.int32) if heads is None else heads
        offsets = np.concatenate([[0], np.cumsum(words.lengths)]).astype(np.int64)
        counts, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        for sentences in pieces(words.lengths):
            every = Candidates.all(words.lengths[sentences])
            parts = TreeParts.of(every)
            trees = self.shape.trees(parts, scores_of_links(self.scorer, plain, sentences, parts))
            if given is not None:
                trees = trees.having(given[offsets[sentences[0]] : offsets[sentences[-1] + 1]])
            best, beliefs = best_trees(trees, "mbr"), trees.marginals().values
            here = gold[offsets[sentences[0]] : offsets[sentences[-1] + 1]]
            kept = np.zeros(every.n_links, np.bool_)
            links = (every.offsets, every.starts, every.heads, beliefs, best, here, self.threshold, MOST)
            run_sentences(choose, len(sentences), *links, kept)
            counts.append(count(every.starts, kept))
            found.append(every.heads[kept])
        starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
        return Candidates(offsets, starts, np.concatenate(found))


def with_heads(candidates: Candidates, heads: NDArray[np.int32]) -> float:
    """The share of words whose head is among the candidates; −1 is not counted."""
    word = np.repeat(np.arange(len(heads)), np.diff(candidates.starts))
    hit = np.bincount(word[candidates.heads == heads[word]], minlength=len(heads)) > 0
    known = heads >= 0
    return float(hit[known].mean()) if known.any() else 1.0
