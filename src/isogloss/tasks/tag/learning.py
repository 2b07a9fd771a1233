"""How the weights of a tagger are found: first each word by itself, then chains over the labels that are left.

References
----------
Müller, Schmid and Schütze, Efficient Higher-Order CRFs for Morphological Tagging, EMNLP 2013 (coarse to fine: labels
that a model of lower order finds improbable are left out; parts of bundles share weights). McMahan et al., Ad Click
Prediction, KDD 2013 (FTRL-Proximal); without penalties it is AdaGrad (Duchi, Hazan and Singer, JMLR 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks, using_threads
from isogloss.features.sparse import Sparse
from isogloss.learners.runner import run
from isogloss.learners.stochastic import Ftrl, Moving
from isogloss.learners.tuning import Tuned
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.tag.labels import Units

__all__ = [
    "Decoded", "LabelChains", "Learning", "Real", "Rows", "Settings", "Weights", "WordLabels", "decode", "n_triples",
    "rows_of",
]  # fmt: skip

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
ROOM = 1 << 20
"""Weights of triples of labels, at most: more triples than these share weights by hashing; 2 to the `ROOM_BITS`."""
SENTENCES_PER_BLOCK = 64


def n_triples(k: int, order: int) -> int:
    """How many weights triples of k labels and the outside have."""
    return min((k + 1) ** 3, ROOM) if order == 2 else 0


class Settings(NamedTuple):
    """What learning and decoding depend on, beside the text; see `CrfTagger`."""

    order: int = 1
    iterations: int = 8
    rate: float = 0.3
    l1: float = 0.1
    l2: float = 0.0
    margin: float = 5.0
    most: int = 12
    seed: int = 0
    first_iterations: int = 3
    """Passes of the models that prune."""
    folds: int = 2
    """Of the text, when lists of labels for training are made."""


class Rows(NamedTuple):
    """Which attributes have weights for which units: attribute *a* for ``units[starts[a]:starts[a + 1]]``."""

    starts: Integers
    units: NDArray[np.int32]


class Real(NamedTuple):
    """Real-valued attributes: every position looks up one row of a table for each block, and takes some dimensions.

    places : int32[n_words, n_blocks]
        Rows of the table; −1 for none, whose attributes are 0.
    table : float32[n_rows, h]
    blocks, dimensions : int32[n_real]
        Attribute f is dimension ``dimensions[f]`` of what block ``blocks[f]`` looks up.
    l1 : float32
        The penalty on weights of these attributes.
    """

    places: NDArray[np.int32]
    table: Floats
    blocks: NDArray[np.int32]
    dimensions: NDArray[np.int32]
    l1: np.float32

    @classmethod
    def none(cls, n_words: int) -> Real:
        """No attributes."""
        nothing = np.zeros(0, np.int32)
        return cls(np.zeros((n_words, 0), np.int32), np.zeros((0, 0), np.float32), nothing, nothing, np.float32(0))

    def mean_size(self) -> float:
        """The sum of |attribute|, for the mean word."""
        total = 0.0
        for b in np.unique(self.blocks).tolist():
            sizes = np.abs(self.table[:, self.dimensions[self.blocks == b]]).sum(axis=1, dtype=np.float64)
            total += float(sizes[self.places[:, b][self.places[:, b] >= 0]].sum())
        return total / max(1, len(self.places))

    def scaled(self, by: float) -> Real:
        """The same attributes, larger."""
        return self._replace(table=(self.table * by).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Weights:
    """What was learnt.

    pruner, nodes : float32[n_pairs + n_units * n_real]
        For attributes and units, of order 0 and of the chains; then for all units and real-valued attributes.
    moves : float32[n_units²]
        From a unit to a unit.
    triples : float32[.]
        Of three labels; empty at order 1.
    """

    pruner: Floats
    nodes: Floats
    moves: Floats
    triples: Floats


class Decoded(NamedTuple):
    """Labels of all words, and the short list of each with posteriors.

    labels : int32[n_words]; lists : int32[n_words, most], −1 behind the end; chances : float32[n_words, most];
    totals : float64[n_sentences], log Z over the lists.
    """

    labels: NDArray[np.int32]
    lists: NDArray[np.int32]
    chances: Floats
    totals: NDArray[np.float64]

    def chance_of(self, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        """The posterior of one label of each word, 0 where it is not in the list: float64[n_words]."""
        here = self.lists == labels[:, np.newaxis]
        return np.asarray(np.where(here, self.chances, np.float32(0)).sum(axis=1), np.float64)


def rows_of(attributes: Sparse, gold: Integers, units: Units, *, dense: int) -> Rows:
    """Weights for units that were met with an attribute; for all units, if it was met at least `dense` times."""
    from isogloss.tasks.tag._numba.rows import count_rows, fill_rows

    n = attributes.n_indicators
    order = np.argsort(attributes.indices, kind="stable")
    position = np.repeat(np.arange(attributes.n_rows), np.diff(attributes.indptr))[order]
    columns = np.concatenate([[0], np.cumsum(np.bincount(attributes.indices, minlength=n))]).astype(np.int64)
    given = (columns, gold[position], units.heads, units.members, units.size, dense)
    starts = np.zeros(n + 1, np.int64)
    count_rows(*given, starts)
    found = np.empty(starts[-1], np.int32)
    fill_rows(*given, starts, found)
    return Rows(starts, found)


class Learning:
    """The learning of one tagger.

    Parameters
    ----------
    attributes : Sparse
        Of every word of all sentences.
    offsets : int64[n_sentences + 1]
    gold : int64[n_words]
        The right labels.
    rows : Rows
    units : Units
    settings : Settings
    real : Real, optional
        Real-valued attributes of every word.
    """

    def __init__(
        self,
        attributes: Sparse,
        offsets: Integers,
        gold: Integers,
        rows: Rows,
        units: Units,
        settings: Settings,
        real: Real | None = None,
    ) -> None:
        self.real = real or Real.none(attributes.n_rows)
        self.offsets, self.gold, self.rows, self.units, self.settings = offsets, gold, rows, units, settings
        self._matrix = (attributes.indptr, attributes.indices, *rows, units.heads, units.members, self.real)
        self.n_weights = len(rows.units) + len(self.real.blocks) * units.size
        self._steps = tuple(np.float32(x) for x in (settings.rate, settings.l1, settings.l2))
        self.n_sentences = len(offsets) - 1

    def run(
        self,
        *,
        score: Callable[[Weights], float] | None = None,
        threads: int = 1,
        progress: Progress | None = None,
        keeping: Mapping[str, Any] | None = None,
    ) -> tuple[Weights, NDArray[np.float64], NDArray[np.float64]]:
        """Learn: the weights, the log-likelihood of the gold labels in each pass as they were met, and the scores.

        Parameters
        ----------
        score : callable, optional
            Tries weights after each pass of the chains; the best are kept.
        threads : int
            On which models that prune are learnt side by side; the result is the same.
        progress : Progress, optional
        keeping : mapping, optional
            Arguments of `isogloss.learners.runner.run` about checkpoints.
        """
        settings, n, progress = self.settings, len(self.gold), progress or QuietProgress()
        fold = np.random.default_rng([settings.seed, 2]).permutation(self.n_sentences) % settings.folds
        parts = [np.flatnonzero(fold != f) for f in range(settings.folds)] + [np.arange(self.n_sentences)]
        pruners = []
        progress.start("Words by themselves", len(parts))
        pool = ThreadPoolExecutor(threads)
        try:
            for pruner in pool.map(self._pruner, parts):
                pruners.append(pruner)
                progress.update(len(pruners))
        finally:
            pool.shutdown(cancel_futures=True)
        short, sizes = np.zeros((n, min(settings.most, self.units.k)), np.int32), np.zeros(n, np.int32)
        # Lists by a pruner that has learnt the labels of the very words would be too short to learn from.
        with using_threads(threads):
            for f in range(settings.folds):
                self._shorten(np.flatnonzero(fold == f), pruners[f], short, sizes)
        chains = LabelChains(self, short, sizes)
        tried = None if score is None else lambda weights: score(chains.split(pruners[-1], weights))
        learner = Tuned(self._ftrl(chains, (settings.seed, 1)), tried)
        found = run(learner, learner.init(), iterations=settings.iterations, progress=progress, **(keeping or {}))
        return chains.split(pruners[-1], found.state.weights), found.trace, np.array(found.state.scores)

    def _ftrl(self, objective: Any, seed: tuple[int, ...]) -> Ftrl:
        settings = self.settings
        return Ftrl(objective, rate=settings.rate, l1=settings.l1, l2=settings.l2, seed=seed, in_place=True)

    def _pruner(self, sentences: Integers) -> Floats:
        """A model of each word by itself, learnt from some of the sentences."""
        learner = self._ftrl(WordLabels(self, sentences), (self.settings.seed, 0))
        weights: Floats = run(learner, learner.init(), iterations=self.settings.first_iterations).state.weights
        return weights

    def telling(self, share: float) -> NDArray[np.bool_]:
        """bool[n_real]: the share of real-valued attributes whose weights, of order 0, vary most over labels."""
        k, many = self.units.k, len(self.real.blocks)
        pruner = self._pruner(np.arange(self.n_sentences))
        weights = pruner[len(self.rows.units) :].reshape(self.units.size, many)[:k]
        kept = np.zeros(many, np.bool_)
        kept[np.argsort(-weights.var(axis=0), kind="stable")[: int(np.ceil(share * many))]] = True
        return kept

    def _shorten(self, sentences: Integers, pruner: Floats, short: NDArray[np.int32], sizes: NDArray[np.int32]) -> None:
        """Labels that are worth a look, for the words of some sentences."""
        from isogloss.tasks.tag._numba.chain import prune

        blocks = max(1, len(sentences) // SENTENCES_PER_BLOCK)
        given = (pruner, self.gold, np.float32(self.settings.margin), self.units.size, short, sizes)
        run_blocks(prune, blocks, sentences, self.offsets, *self._matrix, *given)


class _Sentences:
    """What objectives over the sentences of a `Learning` share; they are `Online`, and learnt by `Ftrl` alone."""

    dtype = np.float32

    def __init__(self, learning: Learning) -> None:
        self.learning = learning


class WordLabels(_Sentences):
    """Labels of words by themselves, in some sentences: log p of the gold labels at order 0."""

    def __init__(self, learning: Learning, sentences: Integers) -> None:
        super().__init__(learning)
        self.sentences = sentences

    @property
    def n_weights(self) -> int:
        return self.learning.n_weights

    def __len__(self) -> int:
        return len(self.sentences)

    def ftrl_pass(self, order: Integers, moving: Moving, rate: Any, l1: Any, l2: Any) -> float:
        """One pass, a step for each word."""
        from isogloss.tasks.tag._numba.scores import learn_labels

        own = self.learning
        given = (self.sentences[order], own.offsets, *own._matrix, own.gold, *moving, rate, l1, l2, own.units.size)
        return float(learn_labels(*given))


class LabelChains(_Sentences):
    """Chains over short lists of labels: log p of the gold labels.

    Weights are those of attributes and units, then of moves from unit to unit, then of triples of labels.
    """

    def __init__(self, learning: Learning, short: NDArray[np.int32], sizes: NDArray[np.int32]) -> None:
        super().__init__(learning)
        moves, triples = learning.units.size**2, n_triples(learning.units.k, learning.settings.order)
        self.ends = np.cumsum([learning.n_weights, moves, triples]).tolist()
        self.short, self.sizes = short, sizes

    @property
    def n_weights(self) -> int:
        return int(self.ends[-1])

    def __len__(self) -> int:
        return self.learning.n_sentences

    def split(self, pruner: Floats, weights: Floats) -> Weights:
        """Weights by name; they share the memory."""
        return Weights(pruner, *np.split(weights, self.ends[:-1]))

    def ftrl_pass(self, order: Integers, moving: Moving, rate: Any, l1: Any, l2: Any) -> float:
        """One pass, a step for each sentence."""
        from isogloss.tasks.tag._numba import chain

        learn_chains: Any = chain.learn_chains
        own, starts = self.learning, [0, *self.ends[:-1]]
        kinds = [array for a, b in zip(starts, self.ends, strict=True) for array in moving.part(a, b)]
        text = (order, own.offsets, *own._matrix, own.gold, self.short, self.sizes)
        return float(learn_chains(own.settings.order, *text, *kinds, rate, l1, l2, own.units.size))


def decode(
    attributes: Sparse,
    offsets: Integers,
    rows: Rows,
    units: Units,
    weights: Weights,
    settings: Settings,
    real: Real | None = None,
    *,
    hard: bool = False,
) -> Decoded:
    """The labels of new text, by posteriors or, with `hard`, the best sequences; on the threads of `using_threads`.

    With `hard`, `chances` are how good the best sequence with a label is beside the best of all, and `totals` are the
    scores of the best sequences.
    """
    from isogloss.tasks.tag._numba.chain import predict_chains

    n, most = attributes.n_rows, min(settings.most, units.k)
    labels, lists = np.zeros(n, np.int32), np.empty((n, most), np.int32)
    chances, totals = np.empty((n, most), np.float32), np.zeros(len(offsets) - 1)
    given: tuple[Any, ...] = (attributes.indptr, attributes.indices, *rows, units.heads, units.members)
    given += (real or Real.none(n),)
    given += (weights.pruner, np.float32(settings.margin), weights.nodes, weights.moves, weights.triples, units.size)
    blocks = max(1, (len(offsets) - 1) // SENTENCES_PER_BLOCK)
    run_blocks(predict_chains, blocks, settings.order, hard, offsets, *given, labels, lists, chances, totals)
    return Decoded(labels, lists, chances, totals)
