"""`BilingualRanker`: what was found in one language helps to order what was found in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.groups import Group, Groups
from isogloss.engine.threads import run_blocks, using_threads
from isogloss.errors import DocumentsError, ParameterError
from isogloss.layout import Layout, Numbers, check, number, vector
from isogloss.learners.pairs import PairAscent, Pairs, Pegasos
from isogloss.learners.runner import Keeping, run
from isogloss.metrics.ranking import RankScore, kendall_tau, score_ranking
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.documents.dictionaries import read_translations
from isogloss.tasks.documents.ranking_features import Extracted, Extractor, Scale, comparable, min_max
from isogloss.tasks.documents.ranking_options import FEATURES, RankerOptions

__all__ = ["BilingualRanker", "aggregate"]

Array = NDArray[np.float64]
GRID = (1e-4, 1e-3, 1e-2, 1e-1)
"""Regularisation that is tried where none is given."""
NEAR = 0.01
"""How far from the optimum the objective may be while it is tried."""


def aggregate(scores: Array, name: str, other: Array | None = None) -> Array:
    r"""Scores of documents from the scores of their pairs with documents of the other language.

    ======== ==========================================================================================================
    max      H-1 of the paper: :math:`\max_j f_{ij}`
    mean     H-2: the mean over j
    softmax  :math:`\log \frac1n \sum_j \exp f_{ij}`, between the two
    weighted :math:`\sum_j a_j f_{ij}` with :math:`a_j \propto \exp(w_y \cdot y_j)`
    borda    the mean over j of the share of the other documents that i leaves behind; ties count half
    ======== ==========================================================================================================

    Parameters
    ----------
    scores : float64[n_documents, n_others]
    name : str
    other : float64[n_others], optional
        :math:`w_y \cdot y_j`, for `weighted`; 0 unless given.

    Examples
    --------
    >>> pairs = np.array([[3.0, 0.0], [1.0, 1.0]])
    >>> [aggregate(pairs, name).round(2).tolist() for name in ("max", "mean", "softmax", "borda")]
    [[3.0, 1.0], [1.5, 1.0], [2.36, 1.0], [0.5, 0.5]]
    """
    if name == "mean":
        return np.asarray(scores.mean(axis=1))
    if name == "max":
        return np.asarray(scores.max(axis=1))
    if name == "softmax":
        top = scores.max(axis=1, keepdims=True)
        return np.asarray(top[:, 0] + np.log(np.exp(scores - top).mean(axis=1)))
    if name == "weighted":
        weights = np.zeros(scores.shape[1]) if other is None else other
        weights = np.exp(weights - weights.max(initial=0.0))
        return np.asarray(scores @ (weights / weights.sum()))
    if name == "borda":
        gaps = scores[:, None, :] - scores[None, :, :]
        behind = (gaps > 0).sum(axis=1) + 0.5 * ((gaps == 0).sum(axis=1) - 1)
        return np.asarray(behind.mean(axis=1) / max(1, len(scores) - 1))
    raise ParameterError(f"aggregate: there is no way {name!r}")


class _Prepared(NamedTuple):
    """A group, ready to be learnt from."""

    features: Extracted
    grades: Array
    other_grades: Array


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learnt."""

    extractor: Extractor
    scale: Scale
    weights: Array
    """Of x, y and s, one after the other."""
    other_weights: Array
    """Of y alone: the ranker of the other language."""

    @property
    def sizes(self) -> tuple[int, int, int]:
        own, other, pairs = map(len, self.extractor.names)
        return own, other, pairs

    def pair_scores(self, group: Extracted) -> tuple[Array, Array]:
        """f of every pair, or of the candidates alone where there is nothing beside them; and w_y · y."""
        own, other, _ = self.sizes
        parts = np.split(self.weights, [own, own + other])
        alone, beside = group.own @ parts[0], group.other @ parts[1]
        if not len(group.other):
            return alone[:, None], np.zeros(1)
        return alone[:, None] + beside[None, :] + group.similarity @ parts[2], beside


class BilingualRanker(RankerOptions):
    r"""Ranks documents of one language by pairs of documents, one of each language; or any candidates by features.

    A pair of a document e that is to be ranked and a document c of the other language has the score

    .. math:: f_w(e_i, c_j) = w_x \cdot x_i + w_y \cdot y_j + w_s \cdot s_{ij}

    of features of both and of how alike they are. Weights are those of a support vector machine over differences of
    pairs of which one should be above the other (`ranking_features.comparable`):

    .. math:: \min_w \tfrac12 \lambda \|w\|^2 + \text{mean} \max(0,\, 1 - w \cdot (\Phi^+ - \Phi^-))

    and a document has the score that `aggregator` makes of its pairs. Without documents in another language this is the
    usual ranking SVM. What candidates are seen by, the data decide: features that are given, words of a query in an
    index (BM25 and query likelihoods), or a reference that they should be like; and, between languages, a lexicon and
    addresses.

    Parameters
    ----------
    constraints : int
        Documents of the other language that each document is paired with, n; 0 ranks without them.
    aggregator : "mean", "max", "softmax", "weighted" or "borda"
        See `aggregate`.
    choose : "ranker", "given" or "grades"
        Which n: the first ones by a ranker of that language, which is learnt from its grades beside; as the file has
        them; or by their grades, which shows what good ones would be worth, but unseen queries have none.
    features : sequence of str, optional
        Kinds: given, index, output, dic, ratio, mt, url. All that the data allow if not given.
    lexicon : path or sequence, optional
        Words of the language that is ranked and their translations, as `isogloss lexicon` writes them, or tuples
        (source, target) or (source, target, probability).
    least : float
        Entries of lower probability are left out.
    scale : "group", "all" or "none"
        Features go from 0 to 1 in each group, have mean 0 and deviation 1 in all, or stay as they are.
    trainer : "dual" or "pegasos"
        `isogloss.learners.pairs.PairAscent`, or `Pegasos`, which the paper has.
    regularisation : float, optional
        λ; chosen by the tau of held-out groups if not given.
    folds : int
        In which groups are held out for that.
    balance : "groups" or "pairs"
        What counts the same.
    most_pairs : int
        Pairs of pairs that are drawn of a group that has more.
    iterations : int
        Rounds of learning at most.
    tolerance : float
        When trainer dual stops: how far the objective may be from its optimum, as a share.
    seed : int
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    regularisation_ : float
        λ that was taken.
    trace_ : float64[n_rounds]
        The objective: the dual (`dual`), or less the primal (`pegasos`).

    References
    ----------
    Gao, Blitzer, Zhou and Wong, Exploiting Bilingual Information to Improve Web Search, ACL 2009. We differ: queries
    count the same however many pairs they have, features are scaled in each query, the n documents of the other
    language are chosen without their clicks, and there is no machine translation: `mt` translates by the lexicon.

    Examples
    --------
    >>> found = [("a", 2, {"bm25": 3.0}), ("b", 1, {"bm25": 2.0}), ("c", 0, {"bm25": 0.5})]
    >>> ranker = BilingualRanker(regularisation=0.01).fit(Groups.of([("cats", found), ("dogs", found)]))
    >>> [scores.argsort()[::-1].tolist() for scores in ranker.predict(Groups.of([("birds", found[::-1])]))]
    [[2, 1, 0]]
    """

    _kind: ClassVar[str] = "rank.pairs"

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        if self.features is not None:
            for kind in self.features:
                if kind not in FEATURES:
                    raise ParameterError(f"BilingualRanker: features should be of {', '.join(FEATURES)}, not {kind!r}")

    # --- learning

    def fit(
        self,
        groups: Groups,
        progress: Progress | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from groups with grades.

        Parameters
        ----------
        groups : Groups
            Groups whose candidates all have the same grade, or none, say how rare words are, and nothing else.
        progress : Progress, optional
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        given, progress = _checked(groups, "fit"), progress or QuietProgress()
        keeping = Keeping.of(checkpoint, resume, self.options_, [given])
        if not any((group.grades[:, None] > group.grades[None, :]).any() for group in given):
            raise DocumentsError(
                f"{given.name}: no two candidates of a group have different grades, so there is nothing to learn from. "
                "Give each a grade, or clicks"
            )
        try:
            with using_threads(self.threads):
                self._learn(given, progress, keeping)
        finally:
            progress.finish()
        return self

    def _learn(self, groups: Groups, progress: Progress, keeping: Keeping) -> None:
        progress.start("Collecting features", len(groups))
        lexicon = None if self.lexicon is None else read_translations(self.lexicon)
        bilingual = self.constraints > 0
        extractor = Extractor.of(
            groups, kinds=self.features, bilingual=bilingual, lexicon=lexicon, least=float(self.least)
        )
        raw: list[Extracted] = []
        for group in groups:
            raw.append(extractor(group, bilingual))
            progress.update(len(raw))
        sizes = (len(extractor.names[0]), len(extractor.names[1]), len(extractor.names[2]))
        others = self._other_ranker(groups, raw)
        nothing = _Fitted(extractor, Scale.of("none", [], sizes), np.zeros(sum(sizes)), others)
        chosen = [self._choose(group, each, nothing) for group, each in zip(groups, raw, strict=True)]
        kept = [each.with_others(rows) for each, rows in zip(raw, chosen, strict=True)]
        scale = Scale.of(self.scale, kept, sizes)
        prepared = [
            _Prepared(scale(each), group.grades, group.other_grades[rows])
            for group, each, rows in zip(groups, kept, chosen, strict=True)
        ]
        nothing = replace(nothing, scale=scale)
        self.regularisation_ = self._tuned(prepared, nothing, progress)
        weights, self.trace_ = self._trained(prepared, self.regularisation_, progress, keeping)
        self._fitted = replace(nothing, weights=weights)

    def _other_ranker(self, groups: Groups, raw: Sequence[Extracted]) -> Array:
        """Weights of the features of documents in the other language, by their grades; 0 where these are unknown."""
        size = raw[0].other.shape[1]
        if self.choose != "ranker" or not size:
            return np.zeros(size)
        alone = []
        for group, each in zip(groups, raw, strict=True):
            features = Extracted(min_max(each.other), np.zeros((0, 0)), np.zeros((len(each.other), 0, 0)))
            alone.append(_Prepared(features, group.other_grades, np.zeros(0)))
        return self._trained(alone, GRID[2])[0]

    def _choose(self, group: Group, raw: Extracted, learnt: _Fitted) -> NDArray[np.int64]:
        """Numbers of the documents in the other language that help."""
        many = len(raw.other)
        if self.choose == "grades":
            worth = np.nan_to_num(group.other_grades[:many], nan=-np.inf)
        elif self.choose == "ranker":
            worth = min_max(raw.other) @ learnt.other_weights
        else:
            worth = np.zeros(many)
        return np.sort(np.argsort(-worth, kind="stable")[: self.constraints])

    def _pairs(self, prepared: Sequence[_Prepared]) -> Pairs:
        """Rows of all pairs of documents, and which should be above which."""
        rows: list[Array] = []
        above: list[NDArray[np.int64]] = []
        below: list[NDArray[np.int64]] = []
        shares: list[Array] = []
        first = 0
        for place, group in enumerate(prepared):
            rows.append(_rows(group.features))
            better, beside = comparable(group.grades, group.other_grades if len(group.features.other) else np.zeros(1))
            every, wide = len(better) * len(beside), max(1, len(group.features.other))
            if every:
                drawn = np.arange(every)
                if every > self.most_pairs:
                    rng = np.random.default_rng([self.seed, place])
                    drawn = np.sort(rng.choice(every, self.most_pairs, replace=False, shuffle=False))
                up, side = better[drawn // len(beside)], beside[drawn % len(beside)]
                above.append(first + up[:, 0] * wide + side[:, 0])
                below.append(first + up[:, 1] * wide + side[:, 1])
                shares.append(np.full(len(drawn), (1.0 if self.balance == "groups" else every) / len(drawn)))
            first += len(rows[-1])
        if not above:
            return Pairs(np.concatenate(rows), np.zeros(0, np.int64), np.zeros(0, np.int64))
        share = np.concatenate(shares)
        return Pairs(
            np.concatenate(rows), np.concatenate(above), np.concatenate(below), share * (len(share) / share.sum())
        )

    def _trained(
        self, prepared: Sequence[_Prepared], regularisation: float, progress: Progress | None = None,
        keeping: Keeping | None = None, near: float = 0.0,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Weights, and the objective of each round; `near` is how far from the optimum it may stop in any case."""
        pairs = self._pairs(prepared)
        if not len(pairs):
            return np.zeros(pairs.n_features), np.zeros(0)
        l2, seed = regularisation * float(pairs.shares.sum()), self.seed
        learner: Any = (
            PairAscent(pairs, l2=l2, seed=seed) if self.trainer == "dual" else Pegasos(pairs, l2=l2, seed=seed)
        )
        result = run(
            learner, learner.init(), iterations=self.iterations, progress=progress, name="Learning to rank", every=None,
            should_stop=lambda _, info: self.trainer == "dual" and info.distance < max(near, self.tolerance),
            **(keeping or Keeping()).arguments,
        )  # fmt: skip
        return getattr(result.state, "average", result.state.weights), np.asarray(result.trace)

    def _tuned(self, prepared: list[_Prepared], nothing: _Fitted, progress: Progress) -> float:
        """λ with the best mean tau on held-out groups; the larger one of those that are alike."""
        graded = [k for k, each in enumerate(prepared) if (each.grades[:, None] > each.grades[None, :]).any()]
        if self.regularisation is not None:
            return float(self.regularisation)
        if len(graded) < 2:
            return GRID[2]
        order = np.random.default_rng([self.seed, 1]).permutation(graded)
        folds = min(self.folds, len(order))
        taus = np.zeros((folds, len(GRID), 2))
        progress.start("Choosing the regularisation", folds * len(GRID))

        def held_out(block: int, _: int) -> None:
            fold, at = divmod(block, len(GRID))
            out = set(order[fold::folds].tolist())
            learnt = replace(
                nothing, weights=self._trained([prepared[k] for k in graded if k not in out], GRID[at], near=NEAR)[0]
            )
            found = [
                kendall_tau(self._aggregated(prepared[k].features, learnt), prepared[k].grades) for k in sorted(out)
            ]
            taus[fold, at] = sum(found), len(found)

        run_blocks(held_out, folds * len(GRID))
        means = taus[:, :, 0].sum(axis=0) / taus[:, :, 1].sum(axis=0)
        self.tuning_ = means
        return GRID[int(np.flatnonzero(means >= means.max() - 1e-9)[-1])]

    # --- predicting

    def predict(self, groups: Groups) -> list[Array]:
        """The score of each candidate, higher is better: float64[n_candidates] for each group."""
        learnt = self._learnt
        return [self._aggregated(self._seen(group, learnt), learnt) for group in _checked(groups, "predict")]

    def pair_scores(self, groups: Groups) -> list[Array]:
        """f of each candidate with each document of the other language that was chosen, before aggregation.

        float64[n_candidates, n_others] for each group; one column where there is no other document.
        """
        learnt = self._learnt
        given = _checked(groups, "pair_scores")
        return [learnt.pair_scores(self._seen(group, learnt))[0] for group in given]

    def _seen(self, group: Group, learnt: _Fitted) -> Extracted:
        raw = learnt.extractor(group, self.constraints > 0)
        return learnt.scale(raw.with_others(self._choose(group, raw, learnt)))

    def _aggregated(self, features: Extracted, learnt: _Fitted) -> Array:
        if not len(features.own):
            return np.zeros(0)
        scores, beside = learnt.pair_scores(features)
        return aggregate(scores, self.aggregator, beside)

    def score(self, groups: Groups) -> RankScore:
        """Pairs in the right order and Kendall's tau, in percent."""
        gold = _checked(groups, "score")
        return score_ranking(self.predict(gold), gold)

    def feature_weights(self) -> dict[str, float]:
        """The weight of each feature; names begin with ``other:`` or ``pair:`` for y and s."""
        learnt = self._learnt
        marks = ("", "other:", "pair:")
        names = (mark + name for mark, own in zip(marks, learnt.extractor.names, strict=True) for name in own)
        return dict(zip(names, learnt.weights.tolist(), strict=True))

    @property
    def _learnt(self) -> _Fitted:
        if not hasattr(self, "_fitted"):
            raise self._has_not_learnt
        return self._fitted

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays, about = learnt.extractor.to_arrays()
        arrays |= {
            "weights": learnt.weights, "other_weights": learnt.other_weights, "middles": learnt.scale.middles,
            "widths": learnt.scale.widths,
        }  # fmt: skip
        meta = {"extractor": about, "trace": self.trace_.tolist(), "regularisation": self.regularisation_}
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("this ranker"):
            made = cls.of_options(saved.options)
            extractor = Extractor.from_arrays(saved.arrays, saved.meta["extractor"])
            own, other, pairs = map(len, extractor.names)
            found = check(saved.arrays, _LAYOUT, "this ranker", {"features": own + other + pairs, "others": other})
            made._fitted = _Fitted(
                extractor,
                Scale(made.scale, found["middles"], found["widths"]),
                found["weights"],
                found["other_weights"],
            )
            made.trace_ = vector(saved.meta["trace"], "trace")
            made.regularisation_ = number(saved.meta["regularisation"], "regularisation", least=0, most=1e6)
        return made


_LAYOUT: Layout = {
    "weights": Numbers("float64", "features"),
    "other_weights": Numbers("float64", "others"),
    "middles": Numbers("float64", "features"),
    "widths": Numbers("float64", "features", least=1e-12),
}


def _rows(features: Extracted) -> Array:
    """float64[n_candidates · n_others, n_features]: Φ of all pairs; of candidates alone where there is no other."""
    many, wide = features.similarity.shape[:2]
    if not wide:
        empty = np.zeros((many, features.other.shape[1] + features.similarity.shape[2]))
        return np.hstack([features.own, empty])
    own = np.repeat(features.own, wide, axis=0)
    return np.hstack([own, np.tile(features.other, (many, 1)), features.similarity.reshape(many * wide, -1)])


def _checked(groups: Any, place: str) -> Groups:
    if not isinstance(groups, Groups):
        raise ParameterError(f"{place}: give Groups, as Groups.read('groups.jsonl'), not {type(groups).__name__}")
    return groups
