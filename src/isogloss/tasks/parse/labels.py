"""Labels of links, once a tree is known: maximum entropy over the labels of each link by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import run_blocks
from isogloss.features import KeyTable, Templates
from isogloss.features.mixing import factors_of, starts_of
from isogloss.layout import Layout, Numbers, Offsets, Strings, check
from isogloss.store import pack_strings
from isogloss.structures.batch import run_sentences
from isogloss.tasks.parse.features import LABEL_DYNAMIC, LABEL_TEMPLATES, numbered, templates_for
from isogloss.tasks.parse.scoring import Gradient
from isogloss.tasks.parse.training import Steps
from isogloss.tasks.parse.words import Columns, Words

__all__ = ["LabelWeights", "Labeller", "gold_labels"]

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
        return cls(names, templates, KeyTable.of(keys[first]), rows, labels, np.zeros(len(keys), np.float32))

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
        watch: Callable[[float], object] = lambda done: None,
    ) -> Labeller | None:
        """Learn from links that have a label; None if there are none.

        `heads` are those of the treebank unless given; `watch` is told how many passes are done.
        """
        names, gold = gold_labels(treebank)
        tree = np.ascontiguousarray(treebank.heads if heads is None else heads)
        if not names or not ((gold >= 0) & (tree >= 0)).any():
            return None
        made = cls._empty(words, columns, names, tree, gold, treebank.offsets)
        steps = Steps(len(made.labels), rate=rate)
        given = (words.starts, words.lengths, (words.codes, words.features), _numbers(made.templates))
        from isogloss.tasks.parse._numba.labels import emit_labels

        most = 2 * (len(made.templates) + 1 + 3 * words.features.shape[1]) * len(names)
        for number in range(iterations):
            mixed = np.random.default_rng([seed, 1000 + number]).permutation(len(words))
            for start in range(0, len(mixed), batch):
                sentences = mixed[start : start + batch]
                places = np.zeros(len(sentences) + 1, np.int64)
                np.cumsum(most * words.lengths[sentences], out=places[1:])
                room, losses = int(places[-1]), np.zeros(len(sentences))
                gradient = Gradient(
                    places[:-1], places[:-1].copy(), np.empty(room, np.int32), np.empty(room, np.float32)
                )  # fmt: skip
                learnt = (made.table.slots, made.rows, made.labels, steps.weights, tree, gold, treebank.offsets)
                out = (len(names), gradient.places, gradient.numbers, gradient.parts, gradient.ends, losses)
                run_sentences(emit_labels, len(sentences), sentences, *given, *learnt, *out)
                steps.take(gradient, losses)
                if start // batch % 16 == 0:
                    watch(number + start / len(mixed))
            if number == 0 and iterations > 1:
                steps.forget()
        return cls(names, made.templates, made.table, made.rows, made.labels, steps.mean())

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


def _numbers(templates: Templates) -> tuple[Any, ...]:
    """Templates as kernels take them."""
    return *numbered(templates), starts_of(LABEL_DYNAMIC), factors_of(3)
