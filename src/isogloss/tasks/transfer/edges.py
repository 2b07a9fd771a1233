r"""Trees carried through links: which links of target words a source tree speaks for, and with what probability.

*Hard*: a link p → c of the source tree gives p' → c' for every p' linked with p and c' linked with c [1]_. *Soft*: with
posteriors of trees and of word links in place of the best of each,

.. math:: P(h' \to c') = \sum_{h, c} P(h \sim h')\, P(c \sim c')\, P(h \to c)

What arrives may give a word two heads, cross, or go round in circles: `ProjectedEdges` keeps all of it, since learners
that work with expectations can use it as it is, and `ProjectedEdges.heads` makes a partial tree of it.

References
----------
.. [1] Ganchev, Gillenwater and Taskar, Dependency Grammar Induction via Bitext Projection Constraints, ACL 2009,
   section 3. Hwa, Resnik, Weinberg, Cabezas and Kolak, Bootstrapping Parsers via Syntactic Projection across Parallel
   Texts, Natural Language Engineering 11(3), 2005. Rasooli and Collins, Density-Driven Cross-Lingual Transfer of
   Dependency Parsers, EMNLP 2015 (density).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Bitext, Text
from isogloss.data.links import Links
from isogloss.data.rows import gathered, row_numbers
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError, TreebankError
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.partial import compatible_heads
from isogloss.tasks.transfer.likely import LikelyHeads

__all__ = [
    "Density",
    "ProjectedEdges",
    "density_of",
    "links_above",
    "project_edges",
    "project_posteriors",
]

Floats = NDArray[np.float64]
Heads = NDArray[np.int32]
CUTOFF = 0.01
"""Posteriors below this are left out of soft projection, of word links as well as of what is projected."""


class Density(NamedTuple):
    """How much of each sentence was projected.

    Parameters
    ----------
    share : float64[n_sentences]
        Words that have a head, of all words; 1 for a sentence without words.
    run : int64[n_sentences]
        The longest run of neighbouring words that all have a head.
    """

    share: Floats
    run: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ProjectedEdges:
    """Links of target words that a source text speaks for: any number for each word.

    Parameters
    ----------
    offsets : int64[n_sentences + 1]
        Words of the target.
    word : int64[n_edges]
        The child, counted over all sentences. Edges are ordered by child, then head, and each is there once.
    head : int32[n_edges]
        0 for the root, 1 … n within the sentence.
    probability : float64[n_edges]
    relation : int32[n_edges]
        Number of the relation, −1 for none.
    origin : int32[n_edges]
        The child in the source sentence, from 1, whose link gave most of it; 0 where that is not known.
    names : tuple of str
        The relations.

    Examples
    --------
    >>> bitext = Bitext.of([("she sleeps", "sie schläft")])
    >>> trees = Treebank.of([[("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]])
    >>> edges = project_edges(trees, bitext, Links.of([[(0, 0), (1, 1)]]))
    >>> edges, edges.heads().tolist(), [edges.names[r] for r in edges.relation]
    (ProjectedEdges(1 sentence, 2 words, 2 edges), [2, 0], ['nsubj', 'root'])
    """

    offsets: NDArray[np.int64]
    word: NDArray[np.int64]
    head: Heads
    probability: Floats
    relation: Heads
    origin: Heads
    names: tuple[str, ...] = ()

    # --- looking

    def __repr__(self) -> str:
        counts = (len(self), self.n_words, len(self.word))
        said = (f"{n:,} {noun}{'s' * (n != 1)}" for n, noun in zip(counts, ("sentence", "word", "edge"), strict=True))
        return f"ProjectedEdges({', '.join(said)})"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_words(self) -> int:
        return int(self.offsets[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[n_sentences]: words of each sentence."""
        return np.diff(self.offsets)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """int64[n_sentences + 1]: the edges of sentence *s* are ``starts[s]:starts[s + 1]``."""
        return np.searchsorted(self.word, self.offsets).astype(np.int64)

    @cached_property
    def sentence(self) -> NDArray[np.int64]:
        """int64[n_edges]: the sentence of each edge."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def child(self) -> Heads:
        """int32[n_edges]: the child of each edge from 1 in its sentence."""
        return (self.word - self.offsets[self.sentence] + 1).astype(np.int32)

    def totals(self) -> Floats:
        """float64[n_words]: the probabilities of all edges of each word, added up."""
        return np.bincount(self.word, self.probability, minlength=self.n_words).astype(np.float64)

    def conserved(self, heads: ArrayLike) -> NDArray[np.bool_]:
        """bool[n_edges]: whether trees, given as the heads of all words, have each edge."""
        given = np.asarray(heads)
        if given.shape != (self.n_words,):
            raise ParameterError(f"ProjectedEdges: {self.n_words} heads are needed, not {list(given.shape)}")
        return np.asarray(given[self.word] == self.head)

    # --- choosing

    def keep(self, chosen: NDArray[np.bool_]) -> ProjectedEdges:
        """Only the edges where `chosen` (one flag an edge) is true."""
        return replace(
            self, word=self.word[chosen], head=self.head[chosen], probability=self.probability[chosen],
            relation=self.relation[chosen], origin=self.origin[chosen],
        )  # fmt: skip

    def take(self, numbers: ArrayLike) -> ProjectedEdges:
        """Sentences by their numbers, in that order, or by a mask of booleans."""
        rows = row_numbers(numbers, len(self), "ProjectedEdges")
        offsets, _ = gathered(self.offsets, rows)
        starts, places = gathered(self.starts, rows)
        shift = np.repeat(offsets[:-1] - self.offsets[rows], np.diff(starts))
        return replace(
            self, offsets=offsets, word=self.word[places] + shift, head=self.head[places],
            probability=self.probability[places], relation=self.relation[places], origin=self.origin[places],
        )  # fmt: skip

    @classmethod
    def of(
        cls,
        offsets: ArrayLike,
        word: ArrayLike,
        head: ArrayLike,
        probability: ArrayLike | None = None,
        relation: ArrayLike | None = None,
        origin: ArrayLike | None = None,
        names: Sequence[str] = (),
    ) -> ProjectedEdges:
        """Edges in any order; of those that are there more than once the most probable stays.

        Examples
        --------
        >>> edges = ProjectedEdges.of([0, 2], [1, 0, 1], [1, 0, 1], [0.5, 1.0, 0.75])
        >>> edges.word.tolist(), edges.head.tolist(), edges.probability.tolist()
        ([0, 1], [0, 1], [1.0, 0.75])
        """
        starts, child, above = np.asarray(offsets, np.int64), np.asarray(word, np.int64), np.asarray(head, np.int32)
        m = len(child)
        sure = np.ones(m) if probability is None else np.asarray(probability, np.float64)
        kind = np.full(m, -1, np.int32) if relation is None else np.asarray(relation, np.int32)
        whence = np.zeros(m, np.int32) if origin is None else np.asarray(origin, np.int32)
        if m and not 0 <= child.min() <= child.max() < starts[-1]:
            raise ParameterError(f"ProjectedEdges: children should be words from 0 to {starts[-1] - 1}")
        inside = np.searchsorted(starts, child, side="right") - 1
        own = child - starts[inside] + 1
        if (above < 0).any() or (above > np.diff(starts)[inside]).any() or (above == own).any():
            raise ParameterError("ProjectedEdges: heads should be 0 or another word of the same sentence, from 1")
        if m and not 0 <= sure.min() <= sure.max() <= 1:
            raise ParameterError("ProjectedEdges: probabilities should be from 0 to 1")
        if m and not -1 <= kind.min() <= kind.max() < len(names):
            raise ParameterError(f"ProjectedEdges: relations should be from -1 to {len(names) - 1}")
        order = np.lexsort((-sure, above, child))
        child, above = child[order], above[order]
        new = np.ones(m, np.bool_)
        new[1:] = (child[1:] != child[:-1]) | (above[1:] != above[:-1])
        at = order[new]
        return cls(starts, child[new], above[new], sure[at], kind[at], whence[at], tuple(names))

    # --- trees

    def best(self, threshold: float = 0.0) -> NDArray[np.int64]:
        """int64[n_words]: the number of each word's most probable edge, −1 where there is none as probable as
        `threshold`, or where two are equally probable."""
        likely = np.flatnonzero(self.probability >= threshold)
        order = likely[np.lexsort((-self.probability[likely], self.word[likely]))]
        word, chance = self.word[order], self.probability[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = word[1:] != word[:-1]
        tied = np.zeros(len(order), np.bool_)
        tied[:-1] = (word[1:] == word[:-1]) & (chance[1:] == chance[:-1])
        out = np.full(self.n_words, -1, np.int64)
        out[word[first & ~tied]] = order[first & ~tied]
        return out

    def chosen(self, threshold: float = 0.0, *, single_root: bool = True) -> NDArray[np.int64]:
        """int64[n_words]: the number of the edge that `heads` takes for each word, −1 for none."""
        best = self.best(threshold)
        edge = best[best >= 0]
        word, head = self.word[edge], self.head[edge]
        reach = np.abs(self.child[edge].astype(np.int64) - head)
        ranks = np.empty(len(edge))
        ranks[np.lexsort((word, reach, -self.probability[edge]))] = np.arange(len(edge))
        heads = compatible_heads(self.offsets, word, head, ranks, single_root=single_root)
        best[heads < 0] = -1
        return best

    def heads(self, threshold: float = 0.0, *, single_root: bool = True) -> Heads:
        """A partial projective tree of each sentence.

        Each word gets its most probable head, if that is at least as probable as `threshold` and no other is equally
        probable. Where not all of these fit into one projective tree, the more probable come first (of equal ones the
        shorter), and what then no longer fits is left out: some projective tree has all heads that are given.

        Returns
        -------
        int32[n_words]
            0 for the root, 1 … n within the sentence, −1 where unknown: what `DependencyParser.fit` takes.
        """
        return self._heads_of(self.chosen(threshold, single_root=single_root))

    def _heads_of(self, chosen: NDArray[np.int64]) -> Heads:
        heads = np.full(self.n_words, -1, np.int32)
        heads[chosen >= 0] = self.head[chosen[chosen >= 0]]
        return heads

    def density(self, threshold: float = 0.0, *, single_root: bool = True) -> Density:
        """How much of each sentence has a head, see `heads`."""
        return density_of(self.heads(threshold, single_root=single_root), self.offsets)

    def as_treebank(self, target: Treebank | Text, threshold: float = 0.0, *, single_root: bool = True) -> Treebank:
        """The target text with projected heads and relations, ``_`` where nothing arrived.

        MISC of a word that has a head gets ``Proj``, the number, from 1, of the source word whose link was carried, and
        ``ProjConf``, the probability.
        """
        trees = target if isinstance(target, Treebank) else Treebank.from_text(target)
        if not np.array_equal(trees.lengths[trees.lengths > 0], self.lengths[self.lengths > 0]):
            raise TreebankError(
                f"{trees.name}: {len(trees):,} sentences with {trees.n_words:,} words, and edges of {len(self):,} with "
                f"{self.n_words:,}. Give the target side of the text that they were projected through"
            )
        chosen = self.chosen(threshold, single_root=single_root)
        words = np.flatnonzero(chosen >= 0)
        edge = chosen[words]
        names = ["_", *dict.fromkeys(name for name in self.names if name != "_")]
        numbers = np.array([names.index(name) for name in ("_", *self.names)], np.int32)  # −1, no relation, is first
        kinds = np.zeros(self.n_words, np.int32)
        kinds[words] = numbers[self.relation[edge] + 1]
        found = trees.with_predictions(heads=self._heads_of(chosen), deprel=Column(kinds, Vocabulary(names)))
        origin = [str(place) if place else None for place in self.origin[edge].tolist()]
        sure = [f"{chance:.4f}" for chance in self.probability[edge].tolist()]
        for key, said in (("Proj", origin), ("ProjConf", sure)):
            values: list[str | None] = [None] * self.n_words
            for word, text in zip(words.tolist(), said, strict=True):
                values[word] = text
            found = found.with_misc(key, values)
        return found


def density_of(heads: Heads, offsets: NDArray[np.int64]) -> Density:
    """How much of each sentence has a head.

    Examples
    --------
    >>> density_of(np.array([2, 0, -1, 2, -1]), np.array([0, 4, 4, 5]))
    Density(share=array([0.75, 1.  , 0.  ]), run=array([2, 0, 0]))
    """
    known, lengths = heads >= 0, np.diff(offsets)
    before = np.concatenate([[0], np.cumsum(known)])
    counts = before[offsets[1:]] - before[offsets[:-1]]
    share = np.where(lengths > 0, counts / np.maximum(lengths, 1), 1.0)
    starts = np.zeros(len(heads), np.bool_)
    starts[offsets[:-1][lengths > 0]] = True
    number = np.cumsum(~known | starts)  # a run begins with a sentence, and after each word without a head
    sizes = np.bincount(number, known, minlength=1).astype(np.int64)
    run = np.zeros(len(lengths), np.int64)
    np.maximum.at(run, np.repeat(np.arange(len(lengths)), lengths), sizes[number] if len(heads) else sizes[:0])
    return Density(share, run)


def links_above(posteriors: Sequence[NDArray[np.floating]], least: float = CUTOFF) -> Links:
    """Posteriors of cells, [n_source, n_target] for each pair as aligners give them, as links with probabilities.

    Examples
    --------
    >>> links = links_above([np.array([[0.9, 0.001]], np.float32)])
    >>> str(links[0]), links.probability.tolist() == [np.float32(0.9)]
    ('0-0', True)
    """
    sizes = np.array([matrix.size for matrix in posteriors], np.int64)
    widths = np.array([matrix.shape[1] for matrix in posteriors], np.int64)
    flat = np.concatenate([np.zeros(0, np.float32), *(np.ravel(matrix) for matrix in posteriors)])
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    at = np.flatnonzero(flat >= max(least, np.finfo(np.float32).tiny))
    pair = np.searchsorted(starts, at, side="right") - 1
    source, target = np.divmod(at - starts[pair], widths[pair])
    offsets = np.searchsorted(at, starts).astype(np.int64)
    return Links(offsets, source.astype(np.int32), target.astype(np.int32), flat[at].astype(np.float32))


def project_edges(
    source: Treebank, bitext: Bitext, links: Links, *, root: bool = True, one_to_one: bool = False
) -> ProjectedEdges:
    """Carry the trees of the source through links: a link p → c gives p' → c' for every p' linked with p, c' with c.

    Parameters
    ----------
    source : Treebank
        Trees of the source side, sentence by sentence the words of the bitext; it may lack sentences for empty lines.
        Heads may be unknown.
    bitext : Bitext
    links : Links
        Possible links of gold do not count.
    root : bool
        Whether words linked with the root of the source tree get the root as their head.
    one_to_one : bool
        Use only links of words that have no other.

    Returns
    -------
    ProjectedEdges
        The probability is P(link of p) · P(link of c) · P(p → c): posteriors of `links` where it has them, and
        ``Confidence=`` in MISC of the source, where a parser left it; what is not known counts as 1. Of several ways to
        the same edge the most probable counts. A word is never its own head.

    Examples
    --------
    >>> bitext = Bitext.of([("he did sleep", "er schlief")])
    >>> trees = Treebank.of([[("he", "PRON", 3, "nsubj"), ("did", "AUX", 3, "aux"), ("sleep", "VERB", 0, "root")]])
    >>> edges = project_edges(trees, bitext, Links.of([[(0, 0), (1, 1), (2, 1)]]))
    >>> list(zip(edges.head.tolist(), edges.child.tolist()))                       # did <- sleep would be a loop
    [(2, 1), (0, 2)]
    """
    edges = LikelyHeads.known(source)
    return _carried(edges if root else edges.without_root(), source, bitext, _used(links, one_to_one), summed=False)


def project_posteriors(
    posteriors: Stack | LikelyHeads,
    source: Treebank,
    bitext: Bitext,
    links: Links | Sequence[NDArray[np.floating]],
    *,
    root: bool = True,
    one_to_one: bool = False,
    cutoff: float = CUTOFF,
) -> ProjectedEdges:
    r"""Soft projection: the posterior of a target link, summed over all source links and word links it may come from.

    .. math:: P(h' \to c') = \sum_{h, c} P(h \sim h')\, P(c \sim c')\, P(h \to c)

    where the root is linked with the root alone. Posteriors of word links need not add up to 1; where what arrives at a
    word adds up to more than 1, it is divided by its sum.

    Parameters
    ----------
    posteriors : Stack or LikelyHeads
        float64[n + 1, n + 1] of each sentence of `source`, as `DependencyParser.predict_proba` gives them; or what was
        kept of them.
    source : Treebank
        The words, and the relations of their best heads.
    bitext : Bitext
    links : Links, or float[n_source, n_target] for each pair
        With posteriors, as `predict` or `predict_proba` of an aligner gives them; of the latter, those below `cutoff`
        are left out. Links without posteriors are certain.
    root, one_to_one : bool
        As in `project_edges`.
    cutoff : float
        Edges of the target below this are dropped.

    Returns
    -------
    ProjectedEdges
        The relation of an edge is that of the source link that gives most, if that is in the source tree.
    """
    edges = posteriors if isinstance(posteriors, LikelyHeads) else _listed(posteriors, source)
    if len(edges.starts) != source.n_words + 1:
        raise ParameterError(
            f"project_posteriors: heads of {len(edges.starts) - 1} words do not fit the {source.n_words} of "
            f"{source.name}; parse the same file"
        )
    if not isinstance(links, Links):
        links = links_above(links, cutoff)
    edges = edges if root else edges.without_root()
    found = _carried(edges, source, bitext, _used(links, one_to_one), summed=True)
    chance = found.probability / np.maximum(1.0, found.totals())[found.word]
    found = replace(found, probability=np.minimum(chance, 1.0))
    return found.keep(found.probability >= cutoff)


def _listed(posteriors: Stack, source: Treebank) -> LikelyHeads:
    """What is not too faint of posteriors of the same sentences."""
    lengths = np.asarray(source.lengths) + 1
    if not np.array_equal(posteriors.shapes, np.stack([lengths, lengths], axis=1)):
        raise ParameterError(
            f"project_posteriors: posteriors of {len(posteriors)} sentences do not fit the {len(source)} of "
            f"{source.name}; parse the same file"
        )
    return LikelyHeads.of(posteriors.checked("project_posteriors"), source.offsets)


def _relations(vocabulary: Vocabulary, ids: NDArray[np.int32]) -> tuple[tuple[str, ...], Heads]:
    """Names of relations, and the number of each word's; −1 for ``_``."""
    names = [name for name in vocabulary if name != "_"]
    numbers = Vocabulary(names).encode(vocabulary) if len(vocabulary) else np.zeros(0, np.int32)
    return tuple(names), numbers[ids].astype(np.int32) if len(ids) else np.zeros(0, np.int32)


def _used(links: Links, one_to_one: bool) -> Links:
    """The links that carry something, by pair, then source."""
    if links.possible is not None:
        links = links.keep(~links.possible)
    keys = links.pair << 32 | links.source
    if (np.diff(keys) < 0).any():
        order = np.argsort(keys, kind="stable")
        chance = None if links.probability is None else links.probability[order]
        links = Links(links.offsets, links.source[order], links.target[order], chance, None, links.bitext)
    return only_one_to_one(links) if one_to_one else links


def only_one_to_one(links: Links) -> Links:
    """The links of words that have no other.

    Examples
    --------
    >>> str(only_one_to_one(Links.of([[(0, 0), (1, 1), (1, 2)]]))[0])
    '0-0'
    """
    keys = (links.pair << 32 | side for side in (links.source, links.target))
    counts = (np.unique(key, return_inverse=True, return_counts=True)[1:] for key in keys)
    alone = [(number == 1)[inverse.ravel()] for inverse, number in counts]
    return links.keep(alone[0] & alone[1])


def _carried(edges: LikelyHeads, source: Treebank, bitext: Bitext, links: Links, *, summed: bool) -> ProjectedEdges:
    """What links carry; the relation is that of the source word, where its head in the tree is what is carried."""
    from isogloss.tasks.tag.projection import check_links, first_words
    from isogloss.tasks.transfer._numba.edges import carry_edges

    ids, vocabulary = source.columns["deprel"]
    names, kinds = _relations(vocabulary, ids)
    of_word = np.repeat(np.arange(source.n_words), np.diff(edges.starts))
    kinds = np.where(source.heads[of_word] == edges.head, kinds[of_word], -1).astype(np.int32)
    check_links(bitext, links)
    first = first_words(bitext, source)
    n_source, n_target = bitext.source.ids.lengths, bitext.target.ids.lengths
    chance = np.ones(len(links.source)) if links.probability is None else links.probability.astype(np.float64)
    chance[np.isnan(chance)] = 1.0
    if len(chance) and not 0 <= chance.min() <= chance.max() <= 1 + 1e-6:
        raise ParameterError("probabilities of links should be from 0 to 1")
    chance = np.minimum(chance, 1.0)
    rooms = _rooms(edges, links, first, n_source, n_target)
    size = int(rooms[-1])
    child, head, kind, origin = (np.empty(size, np.int32) for _ in range(4))
    values, filled = np.empty(size), np.zeros(len(bitext), np.int64)
    run_sentences(
        carry_edges, len(bitext), edges.starts, edges.head, edges.chance.astype(np.float64), kinds, first, n_source,
        n_target, links.offsets, links.source, links.target, chance, summed, rooms, child, head, values, kind, origin,
        filled,
    )  # fmt: skip
    starts = np.concatenate([[0], np.cumsum(filled)]).astype(np.int64)
    places = np.arange(starts[-1]) + np.repeat(rooms[:-1] - starts[:-1], filled)
    offsets = bitext.target.ids.offsets - bitext.target.ids.offsets[0]  # a part of a text begins anywhere
    word = child[places] - 1 + np.repeat(offsets[:-1], filled)
    return ProjectedEdges(offsets, word, head[places], values[places], kind[places], origin[places], names)


def _rooms(
    edges: LikelyHeads,
    links: Links,
    first: NDArray[np.int64],
    n_source: NDArray[np.int64],
    n_target: NDArray[np.int64],
) -> NDArray[np.int64]:
    """int64[n_pairs + 1]: where each pair may write: as many as its links can carry, or as its words can have."""
    n_pairs, n_words = len(first), len(edges.starts) - 1
    of_word = np.bincount(first[links.pair] + links.source, minlength=n_words)  # empty sentences have no links
    pair_of = np.repeat(np.arange(n_pairs), n_source)
    child = np.repeat(np.arange(n_words), np.diff(edges.starts))
    above = np.where(edges.head == 0, 1, of_word[np.maximum(first[pair_of[child]] + edges.head - 1, 0)])
    needed = np.bincount(pair_of[child], of_word[child] * above, minlength=n_pairs).astype(np.int64)
    return np.concatenate([[0], np.cumsum(np.minimum(needed, n_target * (n_target + 1)))]).astype(np.int64)
