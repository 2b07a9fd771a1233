"""`View`: what a task says of one side of a bitext, so that `Multiview` need not know what is looked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError

__all__ = ["COLUMNS", "Nodes", "Ranked", "View"]

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
COLUMNS = ("begin", "end", "label", "word", "head", "children")
"""What is known of a node: its first word and the one behind its last; the number of its label, −1 for others than
those that are known; and of links of trees the word that depends, its head (both from 0, the root is −1), and how many
words depend on the word."""
Ranked = list[list[tuple[float, Any]]]
"""For each sentence some analyses with their log-probabilities, the most probable first."""


class Nodes(NamedTuple):
    """Nodes of the analyses of a sentence.

    A node is a piece of an analysis that may have a counterpart in the other language.

    Parameters
    ----------
    table : int64[n_nodes, 6]
        Distinct nodes, by `COLUMNS`.
    of : list of int64[.]
        The nodes of each analysis, by their rows.
    """

    table: Numbers
    of: list[Numbers]

    @classmethod
    def distinct(cls, rows: Numbers, counts: Sequence[int]) -> Nodes:
        """From the nodes of all analyses one after the other, so many of each.

        >>> found = Nodes.distinct(np.array([[0, 1, 5, -1, -1, 0]] * 3), [2, 1])
        >>> found.table.tolist(), [own.tolist() for own in found.of]
        ([[0, 1, 5, -1, -1, 0]], [[0, 0], [0]])
        """
        rows = np.asarray(rows, np.int64).reshape(-1, len(COLUMNS))
        keys, different = np.zeros(len(rows), np.int64), 1
        for column in rows.T:
            values = int(column.max(initial=0)) + 2
            if different * values >= 2**63:  # numbers in the place of keys, since products would not fit
                keys, different = np.unique(keys, return_inverse=True)[1], len(rows)
            keys, different = keys * values + column + 1, different * values
        _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
        return cls(rows[first], np.split(numbers.astype(np.int64), np.cumsum(counts)[:-1]) if len(counts) else [])


class View(ABC):
    """A task, as far as two models of it in two languages can teach each other.

    A subclass says which estimators do the task, and what their analyses are. An analysis is whatever their `k_best`
    gives and their `log_prob` takes; all methods but `features` are about one side.
    """

    task: ClassVar[str]
    noun: ClassVar[str]
    """What a node is called."""
    words: ClassVar[tuple[str, ...]]
    """What templates that look at whole words look at."""
    weaker: ClassVar[tuple[str, ...]]
    """What weak models that learn anew are blind to."""
    mixture: ClassVar[str]
    """How much added sentences count in retraining; see `isogloss.tasks.joint.retraining`."""

    @abstractmethod
    def classes(self) -> tuple[type, ...]:
        """The estimators that do the task."""

    def check(self, model: Any, what: str) -> None:
        """`ParameterError` for a model of another task."""
        if not isinstance(model, self.classes()):
            known = " or ".join(
                f"{'an' if one.__name__[0] in 'AEIOU' else 'a'} {one.__name__}" for one in self.classes()
            )
            raise ParameterError(f"Multiview: the {what} should be {known} for task {self.task!r}, not {model!r:.60}")

    def check_weak(self, full: Any, weak: Any, side: str) -> None:
        """`ParameterError` for a weak model that knows none of the labels of the full one, and cannot judge it."""
        known, given = self.labels(full), self.labels(weak)
        if known and not set(known) & set(given):
            raise ParameterError(
                f"Multiview: the {side} model knows {', '.join(known)}, and the weak one none of these but "
                f"{', '.join(given)}. A weak model should learn from text with the same labels"
            )

    @abstractmethod
    def sentences(self, given: Any) -> Any:
        """The sentences as models take them."""

    @abstractmethod
    def k_best(self, model: Any, sentences: Any, k: int) -> Ranked:
        """The `k` best analyses of each sentence, with true log-probabilities."""

    @abstractmethod
    def log_prob(self, model: Any, sentences: Any, analyses: Sequence[Sequence[Any]]) -> list[Array]:
        """Log-probabilities of analyses of each sentence; −∞ for those that the model cannot make."""

    @abstractmethod
    def nodes(self, sentences: Any, sentence: int, analyses: Sequence[Any], labels: Mapping[str, int]) -> Nodes:
        """The nodes of some analyses of a sentence; no analysis has a node twice."""

    @abstractmethod
    def labels(self, model: Any) -> tuple[str, ...]:
        """Labels that nodes may have."""

    def shared(self, label: str) -> str:
        """What a label is called in both languages."""
        return label

    @abstractmethod
    def expected(self, sentences: Any, sentence: int, ranked: Sequence[Any], chances: Array, model: Any) -> Any:
        """The analysis with the most that is right in expectation, when `ranked` have these probabilities."""

    @abstractmethod
    def annotated(self, model: Any, sentences: Any, analyses: Sequence[Any]) -> Any:
        """The sentences with an analysis each, and what else the model says of them."""

    # --- other models of the same task

    def without_words(self, model: Any) -> Any:
        """The model without the weights of what looks at whole words."""
        return model.blind_to(self.words)

    @abstractmethod
    def fresh(self, model: Any, blind_to: Sequence[str] = ()) -> Any:
        """An estimator with the options of a model that has learnt nothing; it does not look at some attributes."""

    @abstractmethod
    def joined(self, texts: Sequence[Any]) -> Any:
        """The sentences of several texts, with their annotation."""

    @abstractmethod
    def score(self, found: Any, gold: Any, **options: Any) -> Any:
        """How good an annotation is: an `isogloss.metrics.Score`."""
