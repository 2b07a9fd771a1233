"""`QuadraticAligner`: words may have several links, and neighbouring links help each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links
from isogloss.data.formats import BitextLike
from isogloss.engine.threads import run_blocks, using_threads
from isogloss.learners.frank_wolfe import FrankWolfe, Subgradient
from isogloss.learners.margin import Mira, Perceptron
from isogloss.progress import Progress
from isogloss.structures import Fertility, Flat, Matching
from isogloss.structures.matching import Pairs
from isogloss.tasks.align.features import FeatureExtractor, PairFeatures
from isogloss.tasks.align.options import QuadraticOptions
from isogloss.tasks.align.supervised import explain as explaining
from isogloss.tasks.align.supervised.base import LinkSet, SupervisedAligner
from isogloss.tasks.align.supervised.link_pairs import (
    PATTERNS,
    LinkPairs,
    find_link_pairs,
    further_link_kinds,
    null_kinds,
    pair_kind,
)
from isogloss.tasks.align.supervised.paired_matching import PairedMatching, Search
from isogloss.tasks.align.supervised.parts import Parts, link_and_null_parts
from isogloss.tasks.align.supervised.targets import GoldCells, spread_links
from isogloss.tasks.align.supervised.training import HeldOut, Problem, Setting, guess, temperature

__all__ = ["QuadraticAligner"]

Array = NDArray[np.float64]
FEW_PASSES = 8
"""To choose costs with."""
BETWEEN = 30
"""Passes over remembered rivals after each pass that searches, which is what takes time here."""
CALIBRATION_PAIRS = 60
"""Sentence pairs that the temperature is fitted to."""


class QuadraticAligner(QuadraticOptions, SupervisedAligner):
    r"""Learns from hand-aligned sentences what links, further links of a word and neighbouring links are worth.

    .. math:: \max_y \sum_{ij \in y} s_{ij} + \sum_{words\ alone} n_w - \sum_{words} \sum_{d=2}^{links} p_{wd}
        + \sum_{pairs\ of\ links\ in\ y} q, \qquad 0 \le p_{w2} \le p_{w3} \le \dots, \quad q \ge 0

    With `fertility` and `pairs` it is the paper's M (1, False), M+F (2, False), M+Q (1, True) or M+F+Q (2, True).

    Parameters
    ----------
    fertility : int
        The most links of a word. The second takes a penalty from the score, which is learnt; further ones at least as
        much.
    pairs : bool
        Two links between neighbouring words may score together: i-j with (i+1)-(j+1); i-(j+1) with (i+1)-j; and, where
        words may have two links, i-j with i-(j+1) or with (i+1)-j.
    near : int, optional
        A link is plausible if the HMM's posterior (or Model 2's, or Dice) is among the `near` largest of its row or of
        its column, and not below 0.001. Pairs of which neither link is plausible score nothing: some 25 pairs a word
        are left, where all would be 4 for each cell. None scores all.
    decode : "auto", "milp" or "lp"
        How the best set of links is found with `pairs`: "milp" exactly, to 1e-6, by the linear relaxation, and an
        integer program where that is fractional; "lp" by rounding the relaxation, with repair; "auto" exactly up to
        5,000 pairs of links in a sentence pair and by rounding beyond. Above 100,000, pairs are left out and the rest
        is solved by flow. Without `pairs` flow is exact at any length.
    time_limit : float, optional
        Seconds for one sentence pair, after which the best found so far is taken: that of the integer program, of the
        rounded relaxation, or of the flow without pairs. Where it is reached, results depend on the machine.
    relaxed : bool
        With `pairs`, the trainers "frank-wolfe" and "subgradient" look for rivals in the linear relaxation, as in the
        paper; otherwise, and with the other trainers, among sets of links, found by rounding.
    trainer : "frank-wolfe", "subgradient", "mira" or "perceptron"
        The first finds the largest margin; see `MatchingAligner`.
    missed : float, optional
        Chosen by cross-validation unless given; with `pairs`, for the same aligner without them.
    features, links, lexicon, extra, spurious, iterations, regularisation, targets, threshold, tune, folds, \
empty, lowercase, max_length, seed, threads
        See `SupervisedAligner`.

    Notes
    -----
    Weights of pairs are 0 or more and weights of further links 0 or less, on features that are 0 or more; so pairs
    never cost and penalties never pay, for any text. Where words may have several links, nulls are 0 or less as well,
    on every feature and its opposite: then no word would rather have none or two than one, and flow finds the best.

    Links that could not pay even with every pair they are part of are left out of the programs, which changes nothing.
    Probabilities are those of belief propagation, pairs included, at a temperature that is fitted to held-out pairs.

    References
    ----------
    Lacoste-Julien, Taskar, Klein and Jordan, Word Alignment via Quadratic Assignment, NAACL 2006. We differ: words
    without links have scores, a penalty on the weights takes the place of a bound on their size, and `near`.

    Examples
    --------
    >>> from isogloss import samples
    >>> bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    >>> aligner = QuadraticAligner(tune=False, iterations=3).fit(bitext.part(0, 30), gold[:30])
    >>> aligner.score(bitext.part(40, 50), gold[40:]).aer < 30
    True
    """

    _kind = "align.quadratic"
    DEFAULTS: ClassVar[Mapping[str, Setting]] = {
        "frank-wolfe": Setting(missed=3.0, iterations=30, passes=30, regularisation=1.0),
        "subgradient": Setting(missed=3.0, iterations=15, passes=15, regularisation=1.0),
        "mira": Setting(missed=3.0, iterations=15, passes=15),
        "perceptron": Setting(missed=1.0, iterations=15, passes=15),
    }
    NEAR: ClassVar[Mapping[str, float]] = {"frank-wolfe": 0.01}

    _chosen: list[Setting] | None = None

    # --- parts

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of pairs of links that a set of links may have."""
        if not self.pairs:
            return ()
        return PATTERNS if self.fertility > 1 else PATTERNS[:2]

    def new_extractor(self) -> FeatureExtractor:
        """An extractor with the options of this aligner and features of pairs and further links, not fitted yet."""
        extractor = super().new_extractor()
        if self._widened and "pairs" not in extractor.sets:
            extractor.sets = (*extractor.sets, "pairs")
        return extractor

    def link_pairs(self, features: PairFeatures) -> LinkPairs:
        """The pairs of links that are scored."""
        return find_link_pairs(features, self.patterns, self.near)

    def parts(self, features: PairFeatures) -> Parts:
        """Links, nulls, further links of both sides, and pairs of links."""
        kinds = list(link_and_null_parts(features).kinds)
        if self.fertility > 1:
            kinds[1:] = null_kinds(features) + further_link_kinds(features, self.fertility)
        if self.pairs:
            kinds.append(pair_kind(features, self.link_pairs(features), self.patterns))
        return Parts(kinds)

    def bounds(self, names: Sequence[str]) -> tuple[Array, Array]:
        """Least and greatest value of each weight: pairs never cost, further links never pay."""
        lower, upper = np.full(len(names), -np.inf), np.full(len(names), np.inf)
        least: tuple[str, ...] = ("source further: ", "target further: ")
        if self.fertility > 1:
            least += ("source null: ", "target null: ")
        for k, name in enumerate(names):
            if name.startswith("pair: "):
                lower[k] = 0.0
            elif name.startswith(least):
                upper[k] = 0.0
        return lower, upper

    # --- structures

    def structures(self, features: PairFeatures) -> list[Any]:
        """A `Flat` of a `PairedMatching` for each pair."""
        shapes, search = features.shapes.tolist(), Search("lp", self.time_limit)
        links = self.link_pairs(features).split() if self.pairs else [np.zeros((0, 4), np.int64)] * len(shapes)
        return [
            Flat(
                PairedMatching(np.zeros(shape), 0.0, 0.0, self.fertility, Pairs(own, np.zeros(len(own))), search=search)
            )
            for shape, own in zip(shapes, links, strict=True)
        ]

    def distributions(self, features: PairFeatures, parts: Parts, weights: Array) -> Any:
        """A `PairedMatching` for each pair; a batch of `Matching` without pairs of links."""
        scores, every = parts.scores(weights), range(len(features))
        cells = [scores[0][features.cells_of(k)].reshape(features.shape(k)) for k in every]
        nulls = [scores[1][features.source_of(k)] for k in every], [scores[2][features.target_of(k)] for k in every]
        fertility: list[Fertility | int | None] = [None] * len(features)
        if self.fertility > 1:
            source, target = (_penalties(kind, self.fertility - 1) for kind in scores[3:5])
            fertility = [Fertility(source[features.source_of(k)], target[features.target_of(k)]) for k in every]
        if not self.pairs:
            return Matching.batch(cells, *nulls, fertility if self.fertility > 1 else None, inference="bp")
        links, search = self.link_pairs(features), Search(self.decode, self.time_limit)
        own = np.split(np.maximum(scores[-1], 0.0), np.cumsum(links.counts)[:-1])
        pairs = [Pairs(*both) for both in zip(links.split(), own, strict=True)] if len(features) else []
        return [
            PairedMatching(cells[k], nulls[0][k], nulls[1][k], fertility[k], pairs[k], search=search) for k in every
        ]

    def best(self, distributions: Any) -> Sequence[LinkSet]:
        """The links of each pair, on threads."""
        return super().best(distributions) if not isinstance(distributions, list) else _each(distributions, _best)

    def link_probabilities(self, distributions: Any) -> list[Array]:
        """Posterior of every cell; pairs that score nothing make no difference, and take no time."""
        if not isinstance(distributions, list):
            return super().link_probabilities(distributions)
        return _each(distributions, _posterior)

    # --- learning

    def prefer(self, flat: Any, features: PairFeatures, pair: int) -> Array:
        """Which of several targets to begin with; see `guess`.

        Where words may have several links, a target can have most of the possible links, and Dice is no judge of which:
        without the HMM's posteriors a target has none of them.
        """
        likely = guess(features, pair)
        return spread_links(flat, likely if "hmm" in features.link_names or not self._widened else likely - 1.0)

    @property
    def _widened(self) -> bool:
        return self.pairs or self.fertility > 1

    def learner(self, problem: Problem, setting: Setting) -> Any:
        """The learner that `trainer` names, its weights within `bounds`."""
        lower, upper = self.bounds(problem.parts.names)
        about: dict[str, Any] = {"seed": self.seed, "lower": lower, "upper": upper}
        items = problem.model, problem.targets, problem.costs
        if self.trainer == "perceptron":
            return Perceptron(*items, passes=setting.passes, **about)
        if self.trainer == "mira":
            return Mira(*items, passes=setting.passes, cap=setting.regularisation, **about)
        relaxed = self.relaxed and self.pairs and self.aim != "gold"
        about |= {"l2": setting.regularisation or 1.0, "relaxed": relaxed, "certify": 0}
        if self.trainer == "subgradient":
            return Subgradient(*items, **about)
        return FrankWolfe(*items, between=BETWEEN, **about)

    def fit_features(
        self,
        features: PairFeatures,
        gold: Links | GoldCells,
        dev: tuple[PairFeatures, Links | GoldCells] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn weights alone, for features that were made before."""
        self.check_params()
        self._chosen = None
        if self.pairs and self.tune and len(super().settings()) > 1:
            passes = FEW_PASSES if self.iterations is None else self.iterations
            without = _WithoutPairs(**self.get_params()).set_params(pairs=False, iterations=passes)
            self._chosen = [without.fit_features(features, gold, dev, progress).setting_]
        super().fit_features(features, gold, dev, progress)
        self._weights = np.clip(self._weights, *self.bounds(self._names))  # averages may be off by rounding
        return self

    def settings(self) -> list[Setting]:
        """What training may try: costs that did best without pairs of links, where a search takes no time."""
        first, *rest = super().settings()
        if self._chosen is None:
            return [first, *rest]
        return [replace(first, missed=own.missed, regularisation=own.regularisation) for own in self._chosen]

    def calibrate(self, held_out: Sequence[HeldOut]) -> tuple[float, float]:
        """See `SupervisedAligner.calibrate`; with pairs on fewer pairs of sentences, since beliefs take their time."""
        if not self.pairs:
            return super().calibrate(held_out)
        few = max(1, CALIBRATION_PAIRS // len(held_out))
        return temperature(self, [_first(own, few) for own in held_out])

    # --- explaining

    def explain(
        self,
        bitext: BitextLike,
        pair: int,
        *,
        source: int | None = None,
        target: int | None = None,
        links: Mapping[str, Links] | None = None,
    ) -> dict[str, Any]:
        """As for all aligners, and what the words' further links take and what neighbouring links add.

        `further` has, for either word, how many links it has and the penalty of its second link; `pairs` the links with
        which this one may score, whether they are there, and what they add; `support` the sum of what is there.
        """
        bitext = self._checked(bitext)
        answer = super().explain(bitext, pair, source=source, target=target, links=links)
        if answer["source"] is None:
            return answer
        own = None if links is None else {name: given.part(pair, pair + 1) for name, given in links.items()}
        with using_threads(self.threads):
            features = self._transform(self.extractor_, bitext.part(pair, pair + 1), own)
            linked = self._predict(features, probability=False)[0][0]
        parts, link = self.parts(features), (answer["source"], answer["target"])
        if self.fertility > 1:
            answer["further"] = self._explain_further(parts, link, linked)
        if self.pairs:
            answer["pairs"] = self._explain_pairs(features, parts, link, linked, bitext, pair)
            there = [entry for entry in answer["pairs"] if entry["linked"]]
            answer["support"] = sum(entry["score"] for entry in there)
            if answer["linked"] and answer["gain"] < answer["support"] and there:
                held = " and ".join(f"{a} - {b}" for a, b in (entry["words"] for entry in there[:2]))
                answer["reason"] += f"; {held} beside it helped"
        return answer

    def _explain_further(self, parts: Parts, link: tuple[int, int], linked: LinkSet) -> dict[str, Any]:
        scores, found = parts.scores(self._weights), {}
        for side, name in enumerate(("source", "target")):
            row, kind = link[side] * (self.fertility - 1), 3 + side
            found[name] = {
                "links": sum(each[side] == link[side] for each in linked),
                "penalty": float(-scores[kind][row]),
                "features": explaining._contributions(parts, self._weights, kind, row),
            }
        return found

    def _explain_pairs(
        self, features: PairFeatures, parts: Parts, link: tuple[int, int], linked: LinkSet, bitext: Bitext, pair: int
    ) -> list[dict[str, Any]]:
        pairs, kind, words = self.link_pairs(features), len(parts.kinds) - 1, bitext[pair]
        scores, found = parts.scores(self._weights)[kind], []
        for row, ends in enumerate(pairs.links.tolist()):
            both = [tuple(ends[:2]), tuple(ends[2:])]
            if link not in both:
                continue
            other = both[1 - both.index(link)]
            found.append(
                {
                    "source": other[0], "target": other[1], "words": [words[0][other[0]], words[1][other[1]]],
                    "pattern": PATTERNS[pairs.pattern[row]], "score": float(scores[row]), "linked": other in linked,
                    "features": explaining._contributions(parts, self._weights, kind, row),
                }
            )  # fmt: skip
        return sorted(found, key=lambda entry: (not entry["linked"], -entry["score"], entry["source"]))


class _WithoutPairs(QuadraticAligner):
    """To choose settings with; its probabilities are not asked for."""

    def calibrate(self, held_out: Sequence[HeldOut]) -> tuple[float, float]:
        return 1.0, 0.5


def _first(own: HeldOut, pairs: int) -> HeldOut:
    some = own.features[:pairs]
    return HeldOut(some, own.gold.take(np.arange(len(some))), own.weights)


def _penalties(scores: Array, more: int) -> Array:
    """float64[n_words, more]: what further links take, each at least as much as the one before."""
    return np.maximum.accumulate(np.maximum(-scores.reshape(-1, more), 0.0), axis=1)


def _best(dist: PairedMatching) -> LinkSet:
    return dist.argmax()


def _posterior(dist: PairedMatching) -> Array:
    return dist.core().marginals()


def _each(dists: Sequence[PairedMatching], what: Any) -> list[Any]:
    """`what` of every matching; one thread takes every so-manieth."""
    out: list[Any] = [None] * len(dists)

    def some(block: int, count: int) -> None:
        for k in range(block, len(dists), count):
            out[k] = what(dists[k])

    run_blocks(some, max(1, min(16, len(dists))))
    return out
