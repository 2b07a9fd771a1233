r"""Weights of sparse features, learnt from training sentences that are translated without what they themselves taught.

A phrase table expects the sentences that it was estimated from far too well: each of their phrases is in it, with a
probability that is too high, and their language model knows them. So training sentences are cut into folds, and each is
decoded with a table and a language model of all training text but its fold (cross-fitting). Links are found once, from
all of the text. Where few sentences of the text are learnt from, each fold leaves almost all of it, and what the
decoder meets is what it will meet later; leave-one-out counts would be cheaper, but the language model and the lexical
weights have none.

`CrossFitted` searches for `isogloss.learners.searched.SearchModel`. The averaged perceptron and MIRA
(`isogloss.learners.margin`) learn from it as Liang et al. do. Minimum risk (`isogloss.learners.risk`) raises the
expected quality of all that is found, which chance moves less than it moves the one best of many.

References
----------
Liang, Bouchard-Côté, Klein and Taskar, COLING-ACL 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links
from isogloss.data.rows import gathered, run_sums
from isogloss.features import Index, Sparse
from isogloss.learners.margin import Mira, Perceptron
from isogloss.learners.risk import Risk
from isogloss.learners.searched import Lacking, Searched, SearchModel, Towards
from isogloss.learners.stochastic import AdaGrad
from isogloss.metrics.translation import sentence_bleu
from isogloss.tasks.translate.forced import forced
from isogloss.tasks.translate.search import Decoder, Derivations, Sentences
from isogloss.tasks.translate.sparse import Learnt, PhraseTags, Reordering, phrase_parts, phrase_templates
from isogloss.tasks.translate.tuning import References

__all__ = ["CrossFitted", "Fold", "Folding", "Kind", "sparse_learner", "spread_evenly"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Kind(NamedTuple):
    """Which sparse features there are.

    Parameters
    ----------
    features : {"phrases", "pos", "all"}
    source, target : PhraseTags, optional
        Needed by all but "phrases".
    reordering : Reordering, optional
    """

    features: str
    source: PhraseTags | None = None
    target: PhraseTags | None = None
    reordering: Reordering | None = None

    def of_pairs(self, decoder: Decoder, pairs: Integers, index: Index) -> Sparse:
        """Features of phrase pairs of a table by their numbers."""
        parts = phrase_parts(decoder.table, pairs, self.source, self.target)
        return phrase_templates(self.features).matrix(parts, index)

    def keys(self, decoder: Decoder, sentences: Sentences, pairs: Integers) -> NDArray[np.uint64]:
        """Keys of the features of some phrase pairs and of the moves of some sentences."""
        parts = phrase_parts(decoder.table, pairs, self.source, self.target)
        found = phrase_templates(self.features).index(parts).keys
        if self.reordering is None:
            return found
        return np.union1d(found, self.reordering.index(sentences, decoder.table).keys)


class Fold(NamedTuple):
    """Sentences to learn from, and what decodes them.

    Parameters
    ----------
    items : int64[n]
        Their numbers among all that are learnt from.
    bitext : Bitext
    decoder : Decoder
        With a table and a language model that have not seen them.
    sentences : Sentences
    used : int64[n_used]
        The phrase pairs of their options, ascending.
    references : References
    """

    items: Integers
    bitext: Bitext
    decoder: Decoder
    sentences: Sentences
    used: Integers
    references: References

    @classmethod
    def of(cls, items: Integers, bitext: Bitext, decoder: Decoder) -> Fold:
        """Make a fold of sentences with their numbers."""
        sentences = decoder.sentences(bitext.source)
        used = np.unique(sentences.pairs)
        references = References.of(bitext.target, decoder.language_model)
        return cls(items, bitext, decoder, sentences, used[used >= 0], references)


class _Rows(NamedTuple):
    """Features of a fold: rows of phrase pairs, of jumps and of swaps, one after the other."""

    indptr: Integers
    indices: NDArray[np.int32]
    of_options: Integers
    jumps: int
    swaps: int

    def add(self, rows: Integers, weights: Array, out: Array) -> None:
        """Add what the features of rows come to; −1 stands for no row."""
        from isogloss.tasks.translate._numba.sparse import add_option_scores

        add_option_scores(rows, self.indptr, self.indices, weights, out)


def spread_evenly(usable: NDArray[np.bool_], most: int) -> Integers:
    """Numbers of sentence pairs that may be used, at most so many, evenly over a text."""
    able = np.flatnonzero(usable)
    if len(able) <= most:
        return able
    return able[np.arange(most) * len(able) // most]


class CrossFitted:
    """Searches for translations of training sentences, each with what was learnt from the other folds.

    Weights are those of sparse features, then those of the dense ones.

    Parameters
    ----------
    folds : sequence of Fold
    kind : Kind
    nbest : int
        Translations of a sentence.
    update : {"local", "hybrid", "bold"}
        With all but local, references are decoded too.
    least : int
        Leave out features that fewer options and moves have: what is seen once is learnt by heart.
    """

    def __init__(self, folds: Sequence[Fold], kind: Kind, *, nbest: int, update: str = "local", least: int = 1) -> None:
        self.folds, self.kind, self.nbest, self.update = list(folds), kind, nbest, update
        n = sum(len(fold.items) for fold in folds)
        self.fold, self.place = np.empty(n, np.int64), np.empty(n, np.int64)
        for number, fold in enumerate(folds):
            self.fold[fold.items] = number
            self.place[fold.items] = np.arange(len(fold.items))
        keys = [kind.keys(fold.decoder, fold.sentences, fold.used) for fold in folds]
        self.index = Index(np.unique(np.concatenate([np.zeros(0, np.uint64), *keys])))
        self._rows = [self._rows_of(fold) for fold in folds]
        if least > 1:
            self.index = Index(self.index.keys[self._often() >= least])
            self._rows = [self._rows_of(fold) for fold in folds]
        self.of_moves = np.zeros(self.index.n_features, np.bool_)
        for rows in self._rows:
            if rows.jumps >= 0:
                self.of_moves[rows.indices[rows.indptr[rows.jumps] :]] = True

    @classmethod
    def of(
        cls,
        bitext: Bitext,
        links: Links,
        chosen: Integers,
        folds: int,
        make: Callable[[Bitext, Links], Decoder],
        kind: Kind,
        *,
        nbest: int,
        update: str = "local",
        least: int = 1,
        told: Callable[[int], object] | None = None,
    ) -> CrossFitted:
        """Make folds of sentences of a text, chosen by their numbers.

        Parameters
        ----------
        make : callable
            Pairs and their links to a decoder that has learnt from these.
        told : callable, optional
            Told how many folds are done.
        """
        made = []
        for k in range(folds):
            items = np.arange(k, len(chosen), folds)
            others = np.ones(len(bitext), np.bool_)
            others[chosen[items]] = False
            made.append(Fold.of(items, bitext.take(chosen[items]), make(bitext.take(others), links.take(others))))
            if told is not None:
                told(k + 1)
        return cls(made, kind, nbest=nbest, update=update, least=least)

    def __len__(self) -> int:
        """How many sentences there are."""
        return len(self.fold)

    @property
    def n_dense(self) -> int:
        """How many dense features there are."""
        return len(self.folds[0].decoder.weights)

    @property
    def n_weights(self) -> int:
        """How many weights there are."""
        return self.index.n_features + self.n_dense

    def _rows_of(self, fold: Fold) -> _Rows:
        pairs = self.kind.of_pairs(fold.decoder, fold.used, self.index)
        parts, own = [pairs], fold.sentences
        if self.kind.reordering is not None:
            parts += self.kind.reordering.matrices(own, fold.decoder.table, self.index)
        ends = np.cumsum([0, *(len(part.indices) for part in parts)])
        indptr = np.concatenate([[0], *(part.indptr[1:] + end for part, end in zip(parts, ends, strict=False))])
        indices = np.concatenate([part.indices for part in parts])
        rows = np.searchsorted(fold.used, own.pairs)
        moves = [len(fold.used), len(fold.used) + int(own.jump_starts[-1])] if len(parts) > 1 else [-1, -1]
        return _Rows(indptr.astype(np.int64), indices, np.where(own.pairs >= 0, rows, -1), *moves)

    def _often(self) -> Integers:
        """int64[n_features]: how many options and moves of all sentences have each feature."""
        out = np.zeros(self.index.n_features)
        for rows in self._rows:
            times = np.bincount(rows.of_options[rows.of_options >= 0], minlength=len(rows.indptr) - 1)
            if rows.jumps >= 0:
                times[rows.jumps :] = 1
            out += np.bincount(rows.indices, np.repeat(times, np.diff(rows.indptr)), len(out))
        return out.astype(np.int64)

    def __call__(self, weights: Array, items: Integers) -> Searched:
        """The best translations of some sentences, and their references where these are decoded."""
        found = []
        for number in range(len(self.folds)):
            here = np.flatnonzero(self.fold[items] == number)
            if len(here):
                found += self._searched(number, weights, here, self.place[items[here]])
        return _gathered(found, len(items), self.index.n_features)

    def _searched(self, number: int, weights: Array, here: Integers, local: Integers) -> list[_Found]:
        fold, rows = self.folds[number], self._rows[number]
        own, longest = fold.sentences, fold.decoder.table.longest
        sparse, dense = weights[: self.index.n_features], weights[self.index.n_features :]
        some, decoder = own.take(local), fold.decoder.weighted(np.array(dense))
        of_options = rows.of_options[gathered(own.option_starts, local)[1]]
        score = np.zeros(len(of_options))
        rows.add(of_options, sparse, score)
        more: dict[str, Any] = {"more": score}
        cells: list[Integers] = []
        if rows.jumps >= 0:
            cells = [rows.jumps + gathered(own.jump_starts, local)[1]]
            if decoder.searching.swapping:
                cells.append(rows.swaps + gathered(own.swap_starts(longest), local)[1])
            for name, moves in zip(("jumps", "swaps"), cells, strict=False):
                more[name] = np.zeros(len(moves))
                rows.add(moves, sparse, more[name])
        derivations = [decoder.search(some, self.nbest, **more)]
        if self.update != "local":
            derivations.append(forced(decoder, fold.bitext.take(local), some, **more))
        made = []
        for right, each in enumerate(derivations):
            indices, sizes = self._listed(rows, decoder, each, of_options, cells)
            quality = sentence_bleu(fold.references.counts(each, local))
            made.append(_Found(here[each.sentence], indices, sizes, decoder.features(each), quality, bool(right)))
        return made

    @staticmethod
    def _listed(
        rows: _Rows, decoder: Decoder, found: Derivations, of_options: Integers, cells: list[Integers]
    ) -> tuple[NDArray[np.int32], Integers]:
        """The sparse features of derivations, and how many each has."""
        steps = [of_options[found.options]]
        if cells:
            jumps, swaps = decoder.moves(found)
            steps.append(cells[0][jumps])
            if len(cells) > 1:
                steps.append(np.where(swaps >= 0, cells[1][swaps], -1))
        every = np.column_stack(steps).reshape(-1)
        lengths = np.where(every >= 0, np.diff(rows.indptr)[every], 0).astype(np.float64)
        ends = found.option_starts * len(steps)
        sizes = run_sums(lengths, ends).astype(np.int64)
        _, places = gathered(rows.indptr, every[every >= 0])
        return rows.indices[places], sizes

    def reachable(self) -> NDArray[np.bool_]:
        """bool[n]: which references the tables of the other folds can make."""
        out = np.zeros(len(self), np.bool_)
        for fold in self.folds:
            out[fold.items] = np.diff(forced(fold.decoder, fold.bitext, fold.sentences).starts) > 0
        return out


@dataclass(frozen=True, eq=False)
class Folding:
    """Makes numbers of phrase pairs from weights of their features, for the table of a whole text.

    Parameters
    ----------
    base : Decoder
        Without sparse features.
    kind : Kind
    index : Index
    of_moves : bool[n_features]
        Which features are of jumps and swaps.
    """

    base: Decoder
    kind: Kind
    index: Index
    of_moves: NDArray[np.bool_]

    @cached_property
    def _pairs(self) -> Sparse:
        return self.kind.of_pairs(self.base, np.arange(len(self.base.table)), self.index)

    def learnt(self, weights: Array) -> Learnt:
        """The sums that the decoder takes, made of the weights of all features of the index."""
        used = np.flatnonzero(self.of_moves & (weights != 0))
        pairs = self._pairs.scores(weights).astype(np.float32)
        return Learnt(pairs, self.kind.reordering, Index(self.index.keys[used]), weights[used])

    def decoder(self, weights: Array) -> Decoder:
        """With all weights, sparse and then dense; what sparse features come to has a weight of 1."""
        n = self.index.n_features
        return replace(self.base, weights=np.append(weights[n:], 1.0), learnt=self.learnt(weights[:n]))


def sparse_learner(
    search: CrossFitted, *, trainer: str, update: str, rate: float, dense_rate: float, batch: int, seed: int
) -> Any:
    """The learner of weights: minimum risk by AdaGrad, or steps to `update` of length `rate`, with "mira" at most.

    Dense weights move `dense_rate` times as far as sparse ones.
    """
    model, n = SearchModel(search, len(search), search.n_weights), search.index.n_features
    passing: dict[str, Any] = {"batch": batch, "seed": seed, "in_place": True}
    if trainer == "risk":
        return AdaGrad(Risk(model, Lacking()), rate=rate, rates=[(n, rate * dense_rate)], **passing)
    if trainer == "mira":
        return Mira(
            model, Towards(update), augmentation=(1.0, 1.0), cap=rate, rates=[(n, dense_rate)], **passing
        )  # fmt: skip
    return Perceptron(model, Towards(update), rates=[(0, rate), (n, rate * dense_rate)], **passing)


class _Found(NamedTuple):
    """Translations of some items of a minibatch, the best of each item first."""

    items: Integers
    indices: NDArray[np.int32]
    sizes: Integers
    dense: Array
    qualities: Array
    right: bool


def _gathered(found: list[_Found], n_items: int, n_indicators: int) -> Searched:
    """All of it by item, what is right last."""
    items = np.concatenate([one.items for one in found])
    right = np.concatenate([np.full(len(one.items), one.right) for one in found])
    order = np.lexsort((right, items))
    sizes = np.concatenate([one.sizes for one in found])
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    indptr, places = gathered(starts, order)
    indices = np.concatenate([one.indices for one in found])[places]
    dense = np.concatenate([one.dense for one in found])[order]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=n_items))]).astype(np.int64)
    last = np.maximum(bounds[1:] - 1, 0)
    there = (np.diff(bounds) > 0) & right[order][last]
    qualities = np.concatenate([one.qualities for one in found])[order]
    return Searched(
        bounds, Sparse(indptr, indices, n_indicators, dense=dense), qualities, np.where(there, last, -1)
    )  # fmt: skip
