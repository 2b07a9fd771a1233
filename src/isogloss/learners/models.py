"""Models whose scores are linear in weights: what the feature-based learners work on.

`LinearModel` takes structures of any kind, one for each item, and features of all their parts. For taggers,
`isogloss.learners.chain_model.ChainModel` does the same without writing out the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.errors import ParameterError
from isogloss.features.sparse import Sparse
from isogloss.structures import Stack, Structure
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch

__all__ = ["LinearModel", "Model"]

Array = NDArray[np.float64]
Items = NDArray[np.int64]
Structures = Batch[Any] | Sequence[Structure]


class Model(Protocol):
    """What learners ask of a model: a distribution for each item, whose log scores are linear in the weights.

    `items` are numbers of items, None for all. Gradients are added to `out`, which has room for all weights.
    """

    @property
    def n_weights(self) -> int: ...

    def __len__(self) -> int: ...

    def support(self, items: Items, /) -> NDArray[np.int64]:
        """The weights that the items depend on, each once."""
        ...

    def distribution(self, weights: Array, item: int, /) -> Structure:
        """The distribution of one item."""
        ...

    def difference(self, item: int, first: Any, second: Any, /) -> tuple[NDArray[np.int64], Array]:
        """Features of one structure less those of another: numbers of features, each once, and how much of each."""
        ...

    def gold(self, structures: Any, /) -> Any:
        """Right structures, one for each item, as a target for `add_likelihood`."""
        ...

    def soft(self, expected: Any, /) -> Any:
        """Distributions or expected parts, one for each item, as a target for `add_likelihood`."""
        ...

    def add_likelihood(self, weights: Array, target: Any, out: Array, items: Items | None, share: float, /) -> float:
        """share · Σ (E_target[score] − log Z); its gradient share · Σ (E_target[f] − E[f])."""
        ...

    def add_log_partition(self, weights: Array, out: Array, items: Items | None, share: float, /) -> float:
        """share · Σ log Z; its gradient share · Σ E[f]."""
        ...


class LinearModel:
    r"""Any structures, whose parts are scored by features: :math:`scores = base + F w`.

    Parameters
    ----------
    structures : Batch, or sequence of structures
        One for each item. Their scores are the base, to which F w is added: 0 as a rule, −∞ to forbid, or what another
        model says. A batch is worked on by kernels on threads, a sequence one by one. For structures with several kinds
        of parts take `Flat`.
    features : Sparse
        One row for each part: those of the first structure in C order, then those of the second, and so on.

    Examples
    --------
    >>> from isogloss.structures import Chain
    >>> model = LinearModel([Chain(np.zeros((1, 2, 2)))], Sparse.of([[0], [1], [], []], 2))
    >>> model.distribution(np.log([3.0, 1.0]), 0).marginals()[0, 0].round(3).tolist()
    [0.75, 0.25]
    """

    def __init__(self, structures: Structures, features: Sparse) -> None:
        self.structures, self.features = structures, features
        if isinstance(structures, Batch):
            self._base, self._offsets = structures.scores.values, structures.scores.offsets
        else:
            scores = [dist.scores for dist in structures]
            self._base = np.concatenate([np.zeros(0), *(np.ravel(array) for array in scores)])
            self._offsets = np.concatenate([[0], np.cumsum([array.size for array in scores])]).astype(np.int64)
        if features.n_rows != self._offsets[-1]:
            raise ParameterError(
                f"LinearModel: the structures have {self._offsets[-1]} parts and the features {features.n_rows} rows"
            )

    def __repr__(self) -> str:
        return f"LinearModel({len(self)} items, {self.n_weights} weights)"

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def n_weights(self) -> int:
        return self.features.n_features

    def within(self, structures: Structures) -> LinearModel:
        """The same parts and features under other structures, such as those that agree with what is known."""
        return LinearModel(structures, self.features)

    # --- distributions

    def distributions(self, weights: ArrayLike) -> Batch[Any] | list[Structure]:
        """One for each item, as a batch if the model was made with one."""
        scores = self._base + self.features.scores(weights)
        if isinstance(self.structures, Batch):
            return self.structures.with_scores(self.structures.scores.like(kept(scores)))
        return [self._scored(s, scores[a:b]) for s, a, b in self._ranges(None)]

    def distribution(self, weights: ArrayLike, item: int) -> Structure:
        """The distribution of one item."""
        a, b = int(self._offsets[item]), int(self._offsets[item + 1])
        return self._scored(item, self._base[a:b] + self.features.scores(weights, a, b))

    def _scored(self, item: int, scores: Array) -> Structure:
        dist: Any = self.structures[item]
        scored: Structure = dist.with_scores(scores.reshape(dist.scores.shape))
        return scored

    def _ranges(self, items: Items | None) -> Iterable[tuple[int, int, int]]:
        """(item, first part, last part + 1)."""
        chosen = range(len(self)) if items is None else items
        return ((int(s), int(self._offsets[s]), int(self._offsets[s + 1])) for s in chosen)

    def support(self, items: Items) -> NDArray[np.int64]:
        """The features that fire on some part of the items."""
        return self.features.support((a, b) for _, a, b in self._ranges(items))

    def difference(self, item: int, first: Any, second: Any) -> tuple[NDArray[np.int64], Array]:
        """Features of `first` less those of `second`, two structures for one item."""
        dist: Any = self.structures[item]
        parts = np.ravel(dist.parts(first) - dist.parts(second))
        a, b = int(self._offsets[item]), int(self._offsets[item + 1])
        at = self.features.support([(a, b)], parts)
        scratch = self._scratch
        self.features.add_totals(parts, scratch, a, b)
        much = scratch[at]
        scratch[at] = 0.0
        return at, much

    @cached_property
    def _scratch(self) -> Array:
        return np.zeros(self.n_weights)

    # --- targets: float64[n_parts]

    def gold(self, structures: Sequence[Any]) -> Array:
        """The parts of right structures, one for each item."""
        self._one_each(structures)
        dists: Any = self.structures
        return self._checked([dists[s].parts(structures[s]) for s in range(len(self))])

    def soft(self, expected: Any) -> Array:
        """Expected parts: arrays shaped like the scores of each item, or distributions, whose marginals are taken."""
        if isinstance(expected, Stack):
            return self._checked(list(expected))
        if isinstance(expected, Batch):
            return self._checked(list(expected.marginals()))
        return self._checked([q.marginals() if hasattr(q, "marginals") else q for q in self._one_each(expected)])

    def _one_each(self, given: Sequence[Any]) -> Sequence[Any]:
        if len(given) != len(self):
            raise ParameterError(f"{self!r}: {len(given)} targets were given; give one for each item")
        return given

    def _checked(self, parts: Sequence[ArrayLike]) -> Array:
        flat = [np.ravel(np.asarray(array, np.float64)) for array in parts]
        for s, a, b in self._ranges(None):
            if len(flat[s]) != b - a:
                raise ParameterError(f"{self!r}: item {s} has {b - a} parts, and its target {len(flat[s])}")
            if (flat[s][self._base[a:b] == -np.inf] > 0).any():
                raise ParameterError(f"{self!r}: the target of item {s} has parts that are forbidden")
        return np.concatenate([np.zeros(0), *flat])

    # --- sums

    def _solved(self, weights: Array, items: Items | None) -> tuple[Array, Array, Array]:
        """Scores and marginals of the items' parts, one after the other, and log Z of each item."""
        if items is None and isinstance(self.structures, Batch):
            dists: Any = self.distributions(weights)
            return dists.scores.values, dists.marginals().values, dists.log_partition()
        scores, marginals, values = [], [], []
        whole = self.features.scores(weights) + self._base if items is None else None
        for s, a, b in self._ranges(items):
            dist = self.distribution(weights, s) if whole is None else self._scored(s, whole[a:b])
            scores.append(np.ravel(dist.scores))
            marginals.append(np.ravel(dist.marginals()))
            values.append(dist.log_partition())
        return np.concatenate([np.zeros(0), *scores]), np.concatenate([np.zeros(0), *marginals]), np.array(values)

    def _add(self, residual: Array, out: Array, items: Items | None) -> None:
        if items is None:
            self.features.add_totals(residual, out)
            return
        at = 0
        for _, a, b in self._ranges(items):
            self.features.add_totals(residual[at : at + b - a], out, a, b)
            at += b - a

    def add_likelihood(self, weights: Array, target: Array, out: Array, items: Items | None, share: float) -> float:
        """share · Σ (target · scores − log Z), and its gradient."""
        scores, marginals, values = self._solved(weights, items)
        wanted = target
        if items is not None:
            wanted = np.concatenate([np.zeros(0), *(target[a:b] for _, a, b in self._ranges(items))])
        self._add(share * (wanted - marginals), out, items)
        used = wanted > 0
        return share * (float(wanted[used] @ scores[used]) - float(values.sum()))

    def add_log_partition(self, weights: Array, out: Array, items: Items | None, share: float) -> float:
        """share · Σ log Z, and its gradient."""
        _, marginals, values = self._solved(weights, items)
        self._add(share * marginals, out, items)
        return share * float(values.sum())
