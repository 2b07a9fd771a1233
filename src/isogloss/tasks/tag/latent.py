r"""A conditional random field learnt from lattices: words whose tags are known in part.

.. math:: L(w) = \sum_x \log \frac{\sum_{y \in Y(x)} \exp w \cdot f(x, y)}{\sum_y \exp w \cdot f(x, y)}
    - \tfrac12 \lambda_2 \|w\|^2

where Y(x) has the tag sequences that the lattice allows. Where it allows all, the text says nothing; where it allows
one, this is the usual likelihood.

References
----------
Täckström et al., TACL 2013, section 4.2. Tsuboi et al., Training Conditional Random Fields Using Incomplete
Annotations, Coling 2008.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.features import KEYS, Index, Parts, Templates, positions
from isogloss.features.sparse import Sparse
from isogloss.layout import Layout, Numbers, check
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.loglinear import Lbfgs, Likelihood
from isogloss.learners.runner import run
from isogloss.learners.semi_supervised import Alternating
from isogloss.progress import Progress
from isogloss.structures import FactoredChains
from isogloss.tasks.tag.projection import Expectations
from isogloss.tasks.tag.words import word_axis

__all__ = ["TEMPLATES", "LatentCrf"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TEMPLATES = (
    "form", "word", *(f"prefix{n}" for n in range(1, 4)), *(f"suffix{n}" for n in range(1, 5)), "shape", "look",
    "look & first", "word[-1]", "word[+1]", "suffix2[-1]", "suffix2[+1]", "suffix3[-1]", "suffix3[+1]", "look[-1]",
    "look[+1]",
)  # fmt: skip
"""Fewer than those of `CrfTagger`: with half of the tags in doubt, pairs of words learn noise."""
STEPS = 10
"""Of L-BFGS after each projection."""
_LAYOUT: Layout = {
    "keys": KEYS,
    "nodes": Numbers("float32", ("features", "k")),
    "steps": Numbers("float64", "steps"),
}


@dataclass(frozen=True, eq=False)
class LatentCrf:
    """What was learnt.

    Parameters
    ----------
    index : Index
        Of attributes.
    weights : float64[n_weights]
        In the order of `ChainModel`; every attribute has a weight for every tag.
    k, order : int
    """

    index: Index
    weights: Floats
    k: int
    order: int

    @classmethod
    def learn(
        cls,
        text: Treebank,
        allowed: Mask,
        *,
        order: int,
        l2: float,
        iterations: int,
        min_count: int,
        wanted: Expectations | None = None,
        progress: Progress | None = None,
    ) -> tuple[Self, Floats]:
        """The field, and the penalised likelihood after each step, which never falls.

        Parameters
        ----------
        text : Treebank
        allowed : bool[n_words, k]
            Tags that each word may have.
        order, l2, iterations, min_count
            As for `ProjectedTagger`.
        wanted : Expectations, optional
            What posteriors are asked for besides: then each step is one projection and a few steps of L-BFGS towards
            it, and the objective is less by what it costs.
        progress : Progress, optional
        """
        attributes, index = _attributes(text, None, min_count)
        k = allowed.shape[1]
        features = NodeFeatures(attributes, LabelPairs.all(index.n_features, k))
        model = ChainModel(features, text.lengths, order=order)
        watched: dict[str, Any] = {"progress": progress, "name": "Learning tags"}
        if wanted is not None:
            alternating = Alternating(model, model.within(allowed), wanted.project, l2=l2, climbs=STEPS)
            soft = run(alternating, alternating.init(), iterations=-(-iterations // STEPS), **watched)
            return cls(index, soft.state.weights, k, order), np.asarray(soft.trace)
        learner = Lbfgs(Likelihood(model, within=model.within(allowed)), l2=l2, history=5)
        found = run(learner, learner.init(), iterations=iterations, tolerance=1e-5, **watched)
        return cls(index, found.state.weights, k, order), np.asarray(found.trace)

    def chains(self, text: Treebank, allowed: Mask | None = None) -> FactoredChains:
        """The distributions over tags of each sentence; `allowed` as in `learn`."""
        attributes, _ = _attributes(text, self.index, 1)
        features = NodeFeatures(attributes, LabelPairs.all(self.index.n_features, self.k))
        return ChainModel(features, text.lengths, order=self.order, allowed=allowed).distributions(self.weights)

    def reasons(self, one: Treebank, word: int, chosen: int, other: int) -> list[dict[str, Any]]:
        """What each attribute of a word adds to the score of one tag less that of another, the largest first."""
        keys = Templates(TEMPLATES).keys(_parts(one))[word]
        own = self.weights[: self.index.n_features * self.k].reshape(-1, self.k)
        found = [
            {"template": name, "weight": float(own[number, chosen] - own[number, other])}
            for name, number in zip(Templates(TEMPLATES).names, self.index.numbers(keys).tolist(), strict=True)
            if number >= 0
        ]
        return sorted((entry for entry in found if entry["weight"]), key=lambda entry: -abs(float(entry["weight"])))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`; attributes without weight are left out."""
        own = self.weights[: self.index.n_features * self.k].reshape(-1, self.k).astype(np.float32)
        held = own.any(axis=1)
        return {"keys": self.index.keys[held], "nodes": own[held], "steps": self.weights[own.size :]}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], k: int, order: int) -> Self:
        """The inverse of `to_arrays`."""
        size = k ** (order + 1) + (k * k if order == 2 else 0) + 2 * k
        found = check(arrays, _LAYOUT, "the weights of the saved tagger", {"k": k, "steps": size})
        weights = np.concatenate([found["nodes"].ravel().astype(np.float64), found["steps"]])
        return cls(Index(found["keys"]), weights, k, order)


def _parts(text: Treebank) -> Parts:
    ids, vocabulary = text.columns["form"]
    return positions(word_axis(ids, vocabulary.types, text.offsets))


def _attributes(text: Treebank, index: Index | None, min_count: int) -> tuple[Sparse, Index]:
    templates, parts = Templates(TEMPLATES), _parts(text)
    if index is None:
        index = templates.index(parts, min_count=min_count)
    return templates.matrix(parts, index), index
