"""Labels of links, once a tree is known: maximum entropy over the labels of each link by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import run_blocks
from isogloss.features import KeyTable, Templates
from isogloss.features.gradients import Gradient
from isogloss.features.mixing import factors_of, starts_of
from isogloss.layout import Layout, Numbers, Offsets, Strings, check
from isogloss.learners.models import pieces
from isogloss.learners.runner import run
from isogloss.learners.stochastic import AdaGrad
from isogloss.progress import Progress
from isogloss.store import pack_strings
from isogloss.structures.batch import run_sentences
from isogloss.tasks.parse.features import LABEL_DYNAMIC, LABEL_TEMPLATES, numbered, templates_for
from isogloss.tasks.parse.training import FLOOR
from isogloss.tasks.parse.words import Columns, Words

__all__ = ["LabelLikelihood", "LabelWeights", "Labeller", "gold_labels"]

SENTENCES_PER_BLOCK = 64
_LAYOUT: Layout = {
    "names": Strings("names", offsets="name_offsets", distinct=True, least=1, cells=True),
    "used": Numbers("uint32", "rows", below="rows"),
    "rows": Offsets("rows", "weights"),
    "labels": Numbers("int16", "weights", least=0, below="names"),
    "weights": Numbers("float32", "weights"),
}
"""Of what is kept; `used` are the rows that the table points to."""


def gold_labels(treebank: Treebank) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The labels that occur, sorted, and their numbers for all words; −1 for words that have none."""
    ids, vocabulary = treebank.columns["deprel"]
    used = np.bincount(ids, minlength=len(vocabulary)) > 0
    found = sorted(vocabulary[i] for i in np.flatnonzero(used).tolist() if vocabulary[i] != "_")
    return tuple(found), Vocabulary(found).encode(vocabulary)[ids].astype(np.int64)


@dataclass(frozen=True, eq=False)
class LabelWeights:
    """Features of links that have weights for some labels, those they were met with.

    Parameters
    ----------
    names : tuple of str
        The labels.
    templates : Templates
    table : KeyTable
        Its payload numbers rows.
    rows : int64[n_rows + 1]
        Where the weights of each feature begin.
    labels : int16[n_weights]
    weights : float32[n_weights]
    """

    names: tuple[str, ...]
    templates: Templates
    table: KeyTable
    rows: NDArray[np.int64]
    labels: NDArray[np.int16]
    weights: NDArray[np.float32]

    TEMPLATES: ClassVar[tuple[str, ...]] = LABEL_TEMPLATES

    @classmethod
    def templates_for(cls, columns: Columns) -> Templates:
        """The templates that say something with these columns."""
        return templates_for(cls.TEMPLATES, columns)

    @classmethod
    def of_pairs(
        cls, names: tuple[str, ...], templates: Templates, slots: NDArray[np.uint64], tags: NDArray[np.int16]
    ) -> Self:
        """With weights of 0 for pairs of a key and a label, as kernels collect them; 0 is none."""
        from isogloss.tasks.parse._numba.labels import keys_of_pairs

        at = np.flatnonzero(slots)
        keys, labels = keys_of_pairs(slots[at], tags[at]), tags[at]
        order = np.lexsort((labels, keys))
        keys, labels = keys[order], labels[order]
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)
        rows = np.append(first, len(keys)).astype(np.int64)
        return cls(names, templates, KeyTable.of(keys[first]), rows, labels, np.broadcast_to(np.float32(0), len(keys)))

    def compact(self, least: float) -> Self:
        """The same without weights of at most `least`, and features that have no other."""
        held = np.abs(self.weights) > least
        before = np.concatenate([[0], np.cumsum(held)])
        sizes = np.diff(before[self.rows])
        rows = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.int64)
        table = KeyTable.of(self.table.keys[sizes > 0])
        return type(self)(self.names, self.templates, table, rows, self.labels[held], self.weights[held])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        blob, offsets = pack_strings(self.names)
        arrays: dict[str, NDArray[Any]] = {"names": blob, "name_offsets": offsets, "table": self.table.slots}
        return arrays | {"rows": self.rows, "labels": self.labels, "weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], columns: Columns) -> Self:
        """The inverse of `to_arrays`; arrays that do not belong together are refused."""
        table = KeyTable.ready(arrays["table"], "table", "the saved parser")
        used = {"used": table.payload}
        found = check({**arrays, **used}, _LAYOUT, "the relations of the saved parser")
        rest = (found[name] for name in ("rows", "labels", "weights"))
        return cls(tuple(found["names"]), cls.templates_for(columns), table, *rest)

    @abstractmethod
    def predict_proba(
        self, words: Words, heads: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> NDArray[np.float32]:  # fmt: skip
        """float32[n_words, n_labels]: the probability of each label of each word's link."""

    def predict(
        self, words: Words, heads: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> tuple[Column, NDArray[np.float32]]:  # fmt: skip
        """The most probable label of each word's link, and its probability."""
        chances = self.predict_proba(words, heads, offsets)
        best = chances.argmax(axis=1).astype(np.int32)
        return Column(best, Vocabulary(self.names)), chances[np.arange(len(best)), best]


class Labeller(LabelWeights):
    r"""Chooses the label of each link of a tree.

    .. math:: p(r \mid h \to c) \propto \exp \sum_{f} w[f, r]

    over features of the words, their neighbours, the head of the head, the siblings beside the child and its outermost
    children [1]_.

    References
    ----------
    .. [1] McDonald, Lerman and Pereira, Multilingual dependency analysis with a two-stage discriminative parser,
       CoNLL 2006. We differ: labels are independent of each other given the tree, so that each has a probability.
    """

    @classmethod
    def fit(
        cls,
        words: Words,
        treebank: Treebank,
        columns: Columns,
        *,
        heads: NDArray[np.int32] | None = None,
        iterations: int = 5,
        rate: float = 0.1,
        batch: int = 16,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Labeller | None:
        """Learn from links that have a label; None if there are none. `heads`, unless given, are the treebank's."""
        names, gold = gold_labels(treebank)
        tree = np.ascontiguousarray(treebank.heads if heads is None else heads)
        if not names or not ((gold >= 0) & (tree >= 0)).any():
            return None
        made = cls._empty(words, columns, names, tree, gold, treebank.offsets)
        learner = AdaGrad(
            LabelLikelihood(made, words, tree, gold, treebank.offsets), rate=rate, batch=batch, seed=seed,
            damping=0.0, floor=FLOOR, average_from=int(iterations > 1), in_place=True,
            within=None if progress is None else progress.within,
        )  # fmt: skip
        found = run(learner, learner.init(), iterations=iterations, progress=progress, name="Learning labels")
        return replace(made, weights=found.state.average)

    @classmethod
    def _empty(
        cls,
        words: Words,
        columns: Columns,
        names: tuple[str, ...],
        heads: NDArray[np.int32],
        gold: NDArray[np.int64],
        offsets: NDArray[np.int64],
    ) -> Labeller:
        """The features that fire on gold links, with the labels that they fire with."""
        from isogloss.tasks.parse._numba.labels import collect_labels

        templates = cls.templates_for(columns)
        given = (words.starts, words.lengths, (words.codes, words.features), _numbers(templates))
        slots, tags = np.zeros(1 << 12, np.uint64), np.zeros(1 << 12, np.int16)
        return cls.of_pairs(names, templates, *collect_labels(*given, heads, gold, offsets, slots, tags))

    def predict_proba(
        self, words: Words, heads: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> NDArray[np.float32]:  # fmt: skip
        """float32[n_words, n_labels]: the probability of each label of each word's link."""
        from isogloss.tasks.parse._numba.labels import predict_labels

        out = np.empty((len(heads), len(self.names)), np.float32)
        given = (words.starts, words.lengths, (words.codes, words.features), _numbers(self.templates))
        learnt = (self.table.slots, self.rows, self.labels, self.weights, np.ascontiguousarray(heads), offsets)
        run_blocks(predict_labels, max(1, len(words) // SENTENCES_PER_BLOCK), *given, *learnt, out)
        return out


class LabelLikelihood:
    """The log-likelihood of the labels of links whose heads are known: what a `Labeller` is learnt by.

    Parameters
    ----------
    made : Labeller
        With the features that have weights.
    words : Words
    heads : int32[n_words]
    gold : int64[n_words]
        Numbers of labels, −1 where not known.
    offsets : int64[n_sentences + 1]
    """

    dtype = np.float32

    def __init__(
        self,
        made: Labeller,
        words: Words,
        heads: NDArray[np.int32],
        gold: NDArray[np.int64],
        offsets: NDArray[np.int64],
    ) -> None:
        self.made, self.words, self._known = made, words, (heads, gold, offsets)
        self._given = (words.starts, words.lengths, (words.codes, words.features), _numbers(made.templates))
        self._most = 2 * (len(made.templates) + 1 + 3 * words.features.shape[1]) * len(made.names)

    @property
    def n_weights(self) -> int:
        return len(self.made.labels)

    def __len__(self) -> int:
        return len(self.words)

    def support(self, items: NDArray[np.int64]) -> None:
        """Features are found as they are needed, and never listed."""
        return

    def gradient(self, weights: NDArray[np.float32], items: NDArray[np.int64]) -> tuple[float, Gradient]:
        """The log-likelihood of some sentences, and its gradient."""
        from isogloss.tasks.parse._numba.labels import emit_labels

        rooms = self._most * self.words.lengths[items]
        places, room, losses = np.cumsum(rooms) - rooms, int(rooms.sum()), np.zeros(len(items))
        lists = Gradient(places, places.copy(), np.empty(room, np.int32), np.empty(room, np.float32))
        learnt = (self.made.table.slots, self.made.rows, self.made.labels, weights, *self._known)
        out = (len(self.made.names), lists.places, lists.numbers, lists.values, lists.ends, losses)
        run_sentences(emit_labels, len(items), items, *self._given, *learnt, *out)
        return -float(losses.sum()), lists

    def add_gradient(
        self, weights: NDArray[np.float64], out: NDArray[np.float64], items: NDArray[np.int64] | None = None
    ) -> float:  # fmt: skip
        """The log-likelihood of some sentences, or of all; its gradient is added to `out`."""
        total = 0.0
        for some in pieces(len(self), items):
            value, gradient = self.gradient(weights.astype(np.float32), some)
            gradient.add_to(out)
            total += value
        return total


def _numbers(templates: Templates) -> tuple[Any, ...]:
    """Templates as kernels take them."""
    return *numbered(templates), starts_of(LABEL_DYNAMIC), factors_of(3)
