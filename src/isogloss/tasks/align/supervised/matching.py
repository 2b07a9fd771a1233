"""`MatchingAligner`: every word has at most one link, and the best set of links is a matching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isogloss.learners.extragradient import Extragradient
from isogloss.learners.frank_wolfe import FrankWolfe, Subgradient
from isogloss.learners.margin import Mira, Perceptron
from isogloss.structures import Flat, Matching
from isogloss.structures.matching.assignment import best_partners
from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.options import MatchingOptions
from isogloss.tasks.align.supervised.base import LinkSet, SupervisedAligner
from isogloss.tasks.align.supervised.parts import Parts
from isogloss.tasks.align.supervised.training import Problem, Setting

__all__ = ["MatchingAligner", "PlainMatching"]

Array = NDArray[np.float64]
UNBOUNDED = 1e4
"""A radius that is no bound in effect; that of Taskar et al."""


class PlainMatching:
    """What ``Flat(Matching(links, source_null, target_null))`` is to a learner, without checks and for one link a word.

    Parameters
    ----------
    shape : (int, int)
        Source and target words.
    scores : float64[n_source · n_target + n_source + n_target], optional
        Links, source nulls and target nulls; 0 if not given.
    """

    __slots__ = ("scores", "shape")

    def __init__(self, shape: tuple[int, int], scores: Array | None = None) -> None:
        n, m = shape
        self.shape = shape
        self.scores = np.zeros(n * m + n + m) if scores is None else scores

    def __repr__(self) -> str:
        return f"PlainMatching(n_source={self.shape[0]}, n_target={self.shape[1]})"

    def _kinds(self) -> tuple[Array, Array, Array]:
        n, m = self.shape
        return self.scores[: n * m].reshape(n, m), self.scores[n * m : n * m + n], self.scores[n * m + n :]

    @property
    def dist(self) -> Matching:
        """The matching itself."""
        return Matching(*self._kinds())

    def argmax(self) -> LinkSet:
        """The best set of links."""
        partner = best_partners(*self._kinds())
        assert partner is not None  # nothing is forbidden
        return frozenset([link for link in enumerate(partner.tolist()) if link[1] >= 0])

    def parts(self, y: Any) -> Array:
        """float64[n_parts]."""
        n, m = self.shape
        out = np.zeros(len(self.scores))
        out[n * m :] = 1.0
        for i, j in y:
            out[i * m + j] = 1.0
            out[n * m + i] = out[n * m + n + j] = 0.0
        return out

    def score(self, y: Any) -> float:
        """Log score of a set of links."""
        return float(self.parts(y) @ self.scores)

    def with_scores(self, scores: Array) -> PlainMatching:
        """The same sentences under other scores."""
        return PlainMatching(self.shape, np.ascontiguousarray(scores, np.float64))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(Flat(self.dist), name)  # what is rarely asked for: sums, the k best, the polytope


class MatchingAligner(MatchingOptions, SupervisedAligner):
    """Learns from hand-aligned sentences to score links and words without, and takes the best matching.

    Every word has at most one link: precise, fast, and the right class where most gold links are one to one.

    Parameters
    ----------
    trainer : "frank-wolfe", "extragradient", "mira", "subgradient" or "perceptron"
        The first two find the largest margin, a problem with one optimum, and stop near it: with a penalty for large
        weights, of which `regularisation` is the size; or with weights in a ball, of which it is the radius, 10 unless
        given (0 for none in effect, as published, where stopping early keeps weights small). MIRA takes one pair after
        the other with loss augmentation that rises. The averaged perceptron, which knows no costs, is the baseline.
    features, links, lexicon, extra, missed, spurious, iterations, regularisation, targets, threshold, tune, folds, \
empty, lowercase, max_length, seed, threads
        See `SupervisedAligner`.

    Notes
    -----
    The best matching is exact. Probabilities are those of belief propagation over matchings, at a temperature that is
    fitted to held-out pairs; the exact sum is out of reach for all but short sentences.

    References
    ----------
    Taskar, Lacoste-Julien and Klein, A Discriminative Matching Approach to Word Alignment, EMNLP 2005. We differ: words
    without links have features (Haghighi et al., ACL 2009), possible links are free, and targets are matchings.

    Examples
    --------
    >>> from isogloss import samples
    >>> bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    >>> aligner = MatchingAligner(tune=False).fit(bitext.part(0, 40), gold[:40], unlabelled=bitext.part(40, 50))
    >>> aligner.score(bitext.part(40, 50), gold[40:]).aer < 20
    True
    """

    _kind = "align.matching"
    DEFAULTS: ClassVar[Mapping[str, Setting]] = {
        "frank-wolfe": Setting(missed=1.0, iterations=100, passes=100, regularisation=1.0),
        "extragradient": Setting(missed=1.0, iterations=500, passes=500, regularisation=10.0),
        "mira": Setting(missed=1.0, iterations=15, passes=15),
        "subgradient": Setting(missed=1.0, iterations=20, passes=20, regularisation=1.0),
        "perceptron": Setting(missed=1.0, iterations=15, passes=30),
    }
    REGULARISATION: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "frank-wolfe": (1.0, 10.0),
        "subgradient": (1.0, 10.0),
    }
    NEAR: ClassVar[Mapping[str, float]] = {"frank-wolfe": 0.005, "extragradient": 0.05}

    def structures(self, features: PairFeatures) -> list[Any]:
        """A `PlainMatching` for each pair."""
        return [PlainMatching((n, m)) for n, m in features.shapes.tolist()]

    def distributions(self, features: PairFeatures, parts: Parts, weights: Array) -> Any:
        """A batch of `Matching`, sums by belief propagation."""
        links, source, target = parts.scores(weights)
        pairs = range(len(features))
        cells = [links[features.cells_of(k)].reshape(features.shape(k)) for k in pairs]
        nulls = [source[features.source_of(k)] for k in pairs], [target[features.target_of(k)] for k in pairs]
        return Matching.batch(cells, *nulls, inference="bp")

    def learner(self, problem: Problem, setting: Setting) -> Any:
        """The learner that `trainer` names."""
        about = problem.model, problem.targets, problem.costs
        if self.trainer == "perceptron":
            return Perceptron(*about, passes=setting.passes, seed=self.seed)
        if self.trainer == "mira":
            return Mira(*about, passes=setting.passes, cap=setting.regularisation, seed=self.seed)
        if self.trainer == "extragradient":
            return Extragradient(*about, radius=setting.regularisation or UNBOUNDED, tolerance=1e-6)
        svm = FrankWolfe if self.trainer == "frank-wolfe" else Subgradient
        return svm(*about, l2=setting.regularisation or 1.0, seed=self.seed, certify=0)
