"""What labelling pairs beside hidden trees has learnt, how it is learnt, applied and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.features import Hashed, Index, Templates
from isogloss.features.table import KEYS
from isogloss.layout import Layout, Numbers, Strings, check, collect
from isogloss.learners.loglinear import AdaGrad, Likelihood
from isogloss.learners.models import Given
from isogloss.learners.runner import Keeping, run
from isogloss.learners.tuning import Tuned
from isogloss.progress import Progress
from isogloss.structures.hidden import NO_PAIR, HiddenTrees
from isogloss.tasks.extract.coupled import CoupledFeatures, CoupledModel, Problem, labels_by_sentence
from isogloss.tasks.extract.pair_options import PairOptions
from isogloss.tasks.parse.constituency.words import Known

__all__ = ["TREE_OF", "FittedPairs", "Learnt", "chosen_labels", "learn_pairs"]

TREE_OF = {
    "none": "none", "given": "none", "joint": "projective", "hidden-dependency": "projective",
    "hidden-constituency": "brackets",
}  # fmt: skip
"""Kinds of trees, by what is said of syntax."""
LEAST = 1e-4
"""Parts whose posterior is so near to what it should be are left alone in a step."""
NEGLIGIBLE = 1e-3
"""Features of pairs all of whose weights are smaller are not kept."""
PIECE = 1 << 20
"""Scores that are in memory together, about."""
LAYOUT: Layout = {
    "labels": Strings("labels", distinct=True, least=1, cells=True),
    "known": Strings("known", distinct=True, cells=True),
}


@dataclass(frozen=True, eq=False)
class FittedPairs:
    """Labels, the words that are known by themselves, and features with their weights."""

    labels: tuple[str, ...]
    words: Known
    features: CoupledFeatures
    weights: NDArray[np.float32]

    @property
    def known(self) -> tuple[str, ...]:
        return self.words.words

    def compact(self) -> FittedPairs:
        """Without features all of whose weights are negligible."""
        features, weights = self.features.compact(self.weights, NEGLIGIBLE)
        return replace(self, features=features, weights=weights)

    def batches(self, problem: Problem, at_most_one: bool) -> Iterator[HiddenTrees]:
        """Distributions of all sentences, some at a time."""
        model = CoupledModel(self.features, problem, at_most_one=at_most_one)
        ends = np.cumsum(problem.couplings.sizes(problem.tree, self.features.n_labels))
        start = 0
        while start < len(problem):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + PIECE, side="right")))
            yield model.batch(self.weights, np.arange(start, stop))
            start = stop

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        arrays = collect(self, LAYOUT)
        for name, (start, stop) in self.features.borders.items():
            own = self.features.numberings[name]
            rows = self.weights[start:stop].reshape(-1, self.features.width(name))
            if isinstance(own, Index):
                arrays[f"{name}.keys"] = own.keys
            arrays[f"{name}.weights"] = np.ascontiguousarray(rows)
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], templates: Mapping[str, Templates], bits: int
    ) -> FittedPairs:
        """The inverse of `to_arrays`."""
        place = "the saved model"
        found = check(arrays, LAYOUT, place)
        if strange := sorted(name for name in arrays if name.partition(".")[0] in _ABSENT - set(templates)):
            raise ValueError(f"its options have no use for {strange[0]}")
        n_labels = len(found["labels"])
        features = CoupledFeatures(templates, {}, n_labels)
        numberings: dict[str, Index | Hashed] = {}
        weights: list[NDArray[np.float32]] = []
        for name in templates:
            wide = features.width(name)
            if name == "cell":
                layout: Layout = {"weights": Numbers("float32", (1 << bits, wide))}
                own = check(store.unprefixed(f"{name}.", arrays), layout, f"{name} of {place}")
                numberings[name] = Hashed(bits)
            else:
                layout = {"keys": KEYS, "weights": Numbers("float32", ("features", wide))}
                own = check(store.unprefixed(f"{name}.", arrays), layout, f"{name} of {place}")
                numberings[name] = Index(own["keys"])
            weights.append(own["weights"].reshape(-1))
        known = Known(tuple(found["known"]))
        made = replace(features, numberings=numberings)
        return cls(tuple(found["labels"]), known, made, np.concatenate(weights))


_ABSENT = {"connector", "cell"}


@dataclass(frozen=True, eq=False)
class Learnt:
    """What came of learning: the model, and how it went."""

    fitted: FittedPairs
    trace: NDArray[np.float64]
    tuning: NDArray[np.float64]


def learn_pairs(
    options: PairOptions,
    unfinished: FittedPairs,
    problem: Problem,
    labels: NDArray[np.int64],
    *,
    score: Callable[[NDArray[Any]], float] | None,
    trees: list[Any] | None = None,
    progress: Progress,
    keeping: Keeping,
    name: str,
) -> Learnt:
    """Raise the likelihood of labels, with trees summed out.

    Parameters
    ----------
    unfinished : FittedPairs
        What there is to learn; its weights are those to begin with.
    labels : int64[n_pairs]
    score : callable, optional
        How good weights are on other sentences.
    trees : list, optional
        Trees of all sentences that are right, where these are learnt as well.
    """
    offsets = np.concatenate([[0], np.cumsum(problem.couplings.pairs)]).astype(np.int64)
    model = CoupledModel(unfinished.features, problem, at_most_one=options.at_most_one)
    known: dict[str, Any] = {"labels": labels_by_sentence(labels, offsets)}
    if trees is not None:
        known["trees"] = trees
    learner = AdaGrad(
        Likelihood(model, target=Given(**known), least=LEAST), rate=float(options.rate), l2=float(options.l2),
        batch=options.batch, seed=options.seed, average_from=int(options.iterations > 1), in_place=True,
        within=progress.within,
    )  # fmt: skip
    tuned = Tuned(learner, score, "F1 {:.2f} on dev")
    result = run(
        tuned, tuned.init(unfinished.weights), iterations=options.iterations, should_stop=tuned.is_done,
        progress=progress, name=name, every=None, **keeping.arguments,
    )  # fmt: skip
    fitted = replace(unfinished, weights=np.asarray(result.state.weights, np.float32)).compact()
    return Learnt(fitted, -np.asarray(result.trace) / max(1, len(labels)), np.array(result.state.scores, np.float64))


def chosen_labels(posterior: NDArray[np.float64], n_pairs: int, n_labels: int, threshold: float) -> NDArray[np.int64]:
    """int64[n_pairs]: the best label of each pair, or `NO_PAIR`.

    Of a pair with posterior b, and b_l of its best label, the label is right in expectation more often than wrong, both
    variables counted, where (b + b_l) / 2 > ½ (minimum Bayes risk); for the best F1 the threshold is lower.
    """
    pair = posterior[:n_pairs]
    rows = posterior[n_pairs : n_pairs * (1 + n_labels)].reshape(n_pairs, n_labels)
    best = rows.argmax(axis=1) if n_labels else np.zeros(n_pairs, np.int64)
    sure = (pair + rows.max(axis=1, initial=0.0)) / 2
    return np.where(sure > threshold, best, NO_PAIR).astype(np.int64)
