r"""Margin learning where only a search knows what there is: structures are hidden, and rightness has degrees.

A search proposes candidates for an item (an n-best list), each with features and a quality, such as BLEU of the
sentence; and perhaps one that is right as a whole, the best of those that lead to the reference. `SearchModel` makes a
model of it, on which `isogloss.learners.margin` works as on any other: the first candidate is what was found, and
`Towards` says what it is drawn to,

.. math:: w \leftarrow w + f(x, y_t, h_t) - f(x, y_p, h_p),

by one of three rules. *bold*: what is right, and no step where the search cannot reach it. *local*: the candidate of
the highest quality, a small step to what is near. *hybrid*: bold where that can be reached, otherwise local.

References
----------
Liang, Bouchard-Côté, Klein and Taskar, An End-to-End Discriminative Approach to Machine Translation, COLING-ACL 2006,
equation 3 and section 4. Collins, EMNLP 2002 (the averaged perceptron).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.errors import ParameterError
from isogloss.features.gradients import Gradient
from isogloss.features.sparse import Sparse
from isogloss.learners.margin import Rivals
from isogloss.learners.models import LinearModel, Model
from isogloss.structures import Choices, Stack
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch

__all__ = ["UPDATES", "Candidates", "Lacking", "SearchModel", "Searched", "Towards"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]
UPDATES = ("local", "hybrid", "bold")
"""What a step may be drawn to."""


class Searched(NamedTuple):
    """What a search found for some items.

    Parameters
    ----------
    starts : int64[n_items + 1]
        Candidates of item *k* are ``starts[k] … starts[k + 1] - 1``, the best by their scores first; there may be none.
    features : Sparse
        A row for each candidate.
    qualities : float64[n]
        The higher the better.
    right : int64[n_items]
        Among all candidates the one that is right as a whole, the last of its item, which the search itself did not
        propose; −1 where there is none.
    """

    starts: Items
    features: Sparse
    qualities: Array
    right: Items


class Candidates(Choices):
    """Choices among what was found, which is kept beside them.

    Parameters
    ----------
    scores : Stack
    found : Searched
    rows : LinearModel
        The features of the candidates.
    """

    def __init__(self, scores: Stack, found: Searched, rows: LinearModel) -> None:
        super().__init__(scores)
        self.found, self.rows = found, rows

    def _remake(self, scores: Stack) -> Candidates:
        return Candidates(scores, self.found, self.rows)


class SearchModel(Model):
    """A model of items whose structures a search proposes, anew for each weights.

    Parameters
    ----------
    search : callable
        Weights and numbers of items to what is found for these.
    n_items, n_weights : int

    Examples
    --------
    Two candidates, of which the second is better; both are found under any weights.

    >>> from isogloss.learners.margin import Perceptron
    >>> from isogloss.learners.runner import run
    >>> def search(weights, items):
    ...     order = np.argsort(-weights, kind="stable")
    ...     rows = Sparse.of([[k] for k in order], 2)
    ...     return Searched(np.array([0, 2]), rows, np.array([0.0, 1.0])[order], np.array([-1]))
    >>> learner = Perceptron(SearchModel(search, 1, 2), Towards("local"))
    >>> run(learner, learner.init(), iterations=2).state.weights.tolist()
    [-1.0, 1.0]
    """

    def __init__(self, search: Callable[[Array, Items], Searched], n_items: int, n_weights: int) -> None:
        self.search, self.n_items, self._n_weights = search, n_items, n_weights

    def __len__(self) -> int:
        return self.n_items

    @property
    def n_weights(self) -> int:
        return self._n_weights

    def batch(self, weights: NDArray[Any], items: Items) -> Candidates:
        """What is found for some items, scored."""
        found = self.search(weights, items)
        if found.features.n_features != self.n_weights:
            raise ParameterError(
                f"SearchModel: candidates have {found.features.n_features} features, and there are {self.n_weights} "
                "weights"
            )
        sizes = np.diff(found.starts)
        nothing = Stack(kept(np.zeros(len(found.qualities))), found.starts, sizes[:, None])
        rows = LinearModel(Choices(nothing), found.features)
        return Candidates(rows.batch(weights, np.arange(len(items))).scores, found, rows)

    def gradient(self, items: Items, batch: Batch[Any], values: Array, *, least: float = 0.0) -> Gradient:
        """Σ value · features of candidates."""
        known: Any = batch
        rows: LinearModel = known.rows
        return rows.gradient(np.arange(len(items)), batch, values, least=least)


class Towards:
    """What steps are drawn to, for `isogloss.learners.margin.Perceptron` and `Mira`.

    Of candidates of equal quality, the one with the higher score is near. What has the same features as what was found
    is no target. Losses are what is lacking in quality, never below 0 with local steps; `Mira` has the target win by
    it.

    Parameters
    ----------
    update : {"local", "hybrid", "bold"}
    """

    def __init__(self, update: str = "local") -> None:
        if update not in UPDATES:
            raise ParameterError(f"Towards: update should be one of {', '.join(UPDATES)}, not {update!r}")
        self.update = update

    def target(self, found: Searched, item: int) -> int:
        """The candidate that a step is drawn to; −1 for no step."""
        first, last, right = int(found.starts[item]), int(found.starts[item + 1]), int(found.right[item])
        if right >= 0 and self.update != "local":
            return right
        if right >= 0:
            last -= 1
        if first == last or self.update == "bold":
            return -1
        return first + int(np.argmax(found.qualities[first:last]))

    def rivals(self, items: Items, batch: Any, augmentation: float) -> Rivals:
        """Targets less what was found."""
        found: Searched = batch.found
        parts, losses = np.zeros(len(found.qualities)), np.zeros(len(items))
        for k in range(len(items)):
            first, target = int(found.starts[k]), self.target(found, k)
            if target < 0 or first == target or _same(found.features, first, target):
                continue
            parts[target] += 1.0
            parts[first] -= 1.0
            losses[k] = found.qualities[target] - found.qualities[first]
        return Rivals(parts, losses)


class Lacking:
    """What candidates lack in quality, for `isogloss.learners.risk.Risk`; what is right counts where it was proposed.

    Minimum risk raises the expected quality of what a search proposes: of all candidates, not of one that is drawn to.
    """

    def costs(self, items: Items, batch: Any) -> tuple[Array, Array]:
        """Minus the quality of each candidate."""
        return -batch.found.qualities, np.zeros(len(items))


def _same(features: Sparse, first: int, second: int) -> bool:
    """True if two rows have the same features, with the same values."""
    own, other = (_entries(features, row) for row in (first, second))
    return np.array_equal(own, other) and np.array_equal(features.dense[first], features.dense[second])


def _entries(features: Sparse, row: int) -> NDArray[np.float64]:
    """The features of a row that are not dense, with their values, in the order of their numbers."""
    place = slice(int(features.indptr[row]), int(features.indptr[row + 1]))
    indices = features.indices[place]
    values = features.values[place] if len(features.values) else np.ones(len(indices))
    return np.stack([indices.astype(np.float64), values])[:, np.lexsort((values, indices))]
