"""What a grammar may learn from beside tags: trees of another language, or edges that are worth keeping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isogloss.data.links import Links
from isogloss.data.treebank import Treebank
from isogloss.errors import LinksError, TreebankError
from isogloss.learners.posterior.conserved import PartSets, attainable_shares
from isogloss.structures import Stack
from isogloss.structures.projective_batch import ProjectiveTrees
from isogloss.tasks.parse.induction.grammar import TagText
from isogloss.tasks.parse.induction.material import Material
from isogloss.tasks.parse.induction.quasi import QuasiText

__all__ = ["Beside", "EdgesToKeep"]


@dataclass(frozen=True, eq=False)
class Beside:
    """Trees of translations, and links between words.

    Parameters
    ----------
    trees : Treebank
        A source tree for each target sentence. Words may lack heads.
    links : Links
        Between source and target words of each sentence. All count the same; possible ones do not count.
    renormalised, fixed : bool
        As for `QuasiText` and `learn_beside`. What each is worth is in docs/parse-from-translations.md.
    """

    trees: Treebank
    links: Links
    renormalised: bool = False
    fixed: bool = True

    def to_bytes(self) -> bytes:
        """What tells it from others."""
        links = (self.links.offsets, self.links.source, self.links.target)
        said = bytes([self.renormalised, self.fixed])
        return b"".join([said, self.trees.to_bytes(), *(np.ascontiguousarray(array).tobytes() for array in links)])

    def quasi(self, treebank: Treebank, chosen: Material, n_tags: int) -> QuasiText:
        """The target sentences that a grammar sees, with source words as senses; words without links have none."""
        trees, links = self.trees, self.links
        if not len(trees) == len(links) == len(treebank):
            raise TreebankError(
                f"{trees.name}: {len(trees):,} trees and {len(links):,} lines of links for {len(treebank):,} sentences "
                f"of {treebank.name}; give one for each"
            )
        if links.possible is not None:
            links = links.keep(~links.possible)
        outside = (links.source < 0) | (links.source >= trees.lengths[links.pair]) | (links.target < 0)
        outside |= links.target >= treebank.lengths[links.pair]
        if outside.any():
            raise LinksError(f"links of sentence {int(links.pair[outside][0]) + 1} are of words that it does not have")
        seen = np.full(treebank.n_words, -1, np.int64)
        seen[chosen.words] = np.arange(len(chosen.words))
        word = seen[treebank.offsets[links.pair] + links.target]
        order = np.lexsort((links.source, word))
        order = order[word[order] >= 0]
        counts = np.bincount(word[order], minlength=len(chosen.words))
        own = trees.take(chosen.sentences)
        return QuasiText(
            TagText(chosen.text.tags, chosen.text.offsets, n_tags), own.heads, own.offsets,
            links.source[order].astype(np.int64) + 1, np.concatenate([[0], np.cumsum(counts)]),
            renormalised=self.renormalised,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class EdgesToKeep:
    """Edges of which a share should be kept in expectation, sentence by sentence.

    Parameters
    ----------
    word : int64[n_edges]
        The child, counted over all sentences.
    head : int32[n_edges]
        0 for the root, 1 to n within the sentence.
    share : float64[n_sentences]
        η of each.
    """

    word: NDArray[np.int64]
    head: NDArray[np.int32]
    share: NDArray[np.float64]

    def to_bytes(self) -> bytes:
        """What tells it from others."""
        return b"".join(np.ascontiguousarray(array).tobytes() for array in (self.word, self.head, self.share))

    def sets(
        self, treebank: Treebank, chosen: Material
    ) -> tuple[PartSets, NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
        """Where the edges between words that a grammar sees stand among its links; the shares; and what trees can keep
        at most."""
        row = np.full(len(treebank), -1, np.int64)
        row[chosen.sentences] = np.arange(len(chosen.sentences))
        sentence = np.repeat(np.arange(len(treebank)), treebank.lengths)[self.word]
        places = chosen.places(treebank)
        child = places[self.word]
        above = np.where(self.head > 0, places[treebank.offsets[sentence] + np.maximum(self.head, 1) - 1], 0)
        kept = (row[sentence] >= 0) & (child > 0) & ((above > 0) | (self.head == 0))
        order = np.flatnonzero(kept)[np.argsort(row[sentence[kept]], kind="stable")]
        owner = row[sentence[order]]
        places = above[order] * chosen.text.sizes[owner] + child[order]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(chosen.sentences)))])
        sets = PartSets(offsets.astype(np.int64), places, np.ones(len(places)))
        sizes = chosen.text.sizes
        links = Stack(
            np.zeros(chosen.text.link_offsets[-1]), chosen.text.link_offsets, np.stack([sizes, sizes], axis=1)
        )
        most = attainable_shares(ProjectiveTrees(links, single_root=True), sets)
        return sets, self.share[chosen.sentences], most
