"""`ItgAligner`: links that an inversion transduction grammar can build, with blocks of several words or without."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Links
from isogloss.data.formats import BitextLike, IsoglossWarning
from isogloss.engine.threads import using_threads
from isogloss.errors import LinksError, ParameterError
from isogloss.estimator import option
from isogloss.learners.loglinear import Lbfgs, Likelihood
from isogloss.learners.margin import Mira
from isogloss.progress import Progress
from isogloss.structures import Blocks, Flat, Itg, Matching
from isogloss.tasks.align.features import FeatureExtractor, PairFeatures
from isogloss.tasks.align.options import AUTO, ItgOptions
from isogloss.tasks.align.supervised.applying import competitive, links_at
from isogloss.tasks.align.supervised.base import LinkSet, SupervisedAligner, _cells
from isogloss.tasks.align.supervised.blocks import (
    SIDES,
    BlockParts,
    Candidates,
    block_parts,
    find_candidates,
    largest_block,
)
from isogloss.tasks.align.supervised.charts import BlockItg, Charts, FlatItgs, Pruner, filled, spread_to_blocks
from isogloss.tasks.align.supervised.parts import Parts, take_pairs
from isogloss.tasks.align.supervised.targets import GoldCells, link_cost
from isogloss.tasks.align.supervised.training import HeldOut, Problem, Setting, best_threshold, guess

__all__ = ["ItgAligner"]

Array = NDArray[np.float64]
POSTERIORS = ("hmm_forward", "hmm_backward")
THRESHOLD = 0.33


class ItgAligner(ItgOptions, SupervisedAligner):
    r"""Links words as an inversion transduction grammar can, with weights learnt from hand-aligned sentence pairs.

    Every word has at most one link, or stands in a block: one word with two or more neighbours on the other side. The
    order of the links is one that swapping neighbouring pieces can make. Nearly all hand-made alignments are of this
    kind, and, unlike for matchings, the sum over all of them can be had: probabilities are exact.

    Three ways of learning (`trainer`):

    - ``"likelihood"``: the probability of all alignments nearest to gold is raised,

      .. math:: \sum \log \sum_{a \in M(a^*)} p_w(a \mid x) - \tfrac{\lambda}{2} \|w\|^2, \quad
          M(a^*) = \{a : \ell(a) \text{ least}\}

      by L-BFGS; links are those whose posterior reaches the threshold, and need not be an alignment of the grammar.
      Posteriors are those of the model: `temperature_` is 1.
    - ``"softmax-margin"``: the same with the loss of each alignment added to its score in what it is held against,

      .. math:: \sum \log \sum_{a \in M(a^*)} e^{score(a)} - \log \sum_a e^{score(a) + \ell(a)}
          - \tfrac{\lambda}{2} \|w\|^2,

      so that `missed` and `spurious` count; links are the best alignment.
    - ``"mira"``: the best alignment under rising loss augmentation is pushed below the target (annealed MIRA); links
      are the best alignment.

    Parameters
    ----------
    blocks : int or "auto", optional
        The most words in a block. With "auto" gold decides, up to 4; no blocks where fewer than 1 % of its sure links
        stand in one. None links words one to one.
    grammar : "normal" or "simple"
        The normal form has one derivation for each alignment. The simple grammar has several, so that its posteriors
        favour alignments that can be bracketed in many ways; the best alignment is the same.
    trainer : "auto", "likelihood", "mira" or "softmax-margin"
        With "auto" cross-validation chooses (between the last two, where costs are given), and likelihood is taken
        where nothing is tuned. On the Hansards likelihood was clearly better than MIRA with weak features. With all
        features MIRA was as good with much text without labels, better with little, and quicker; softmax-margin was as
        good as MIRA there.
    targets : "latent", "fixed" or "gold", optional
        As for all aligners. "latent", the default with "likelihood", there is the sum above; "fixed", the default with
        "mira", has one alignment as target, the one of least loss that the features suggest.
    regularisation : float, optional
        "likelihood": :math:`\lambda = 1 / \sigma^2`, 1 unless given, for features scaled to vary alike; from 0.1 to 10
        makes little difference. "mira": the most that one pair may change the weights by, 0.01 unless given.
    threshold : float or "auto", optional
        As for all aligners; 0.33 with "likelihood", unless given.
    competitive : bool
        With "likelihood", of the links above the threshold keep those that stand together with the best of their row
        and of their column (competitive thresholding): for texts where a word is never linked to scattered words.
    prune : bool
        Leave out what both directions of the HMM behind the features hold for impossible; without these features,
        nothing is left out. Training takes place among what is left: the target is the nearest to gold there.
    confident, cell_limit, negligible : float, int, float
        Cells of the chart are left out that break more than `cell_limit` links whose posterior is above `confident`,
        and links with both posteriors below `negligible`; a block, when one of its links is.
    chart_limit : int
        Bytes that the chart of one pair may take, after pruning. Where it would take more, pruning is made stricter;
        if that does not help, the pair has the best matching instead (no blocks), and is passed over in training.
    **options
        Those of all aligners that learn from gold: see `SupervisedAligner`.

    Attributes
    ----------
    block_size_ : int or None
        The most words in a block.

    References
    ----------
    Haghighi, Blitzer, DeNero and Klein, Better word alignments with supervised ITG models, ACL 2009. We differ:
    features are scaled before weights are penalised (they have :math:`\sigma^2 = 100` on features as they are); MIRA
    has a cap on its steps, without which gold full of blocks throws it about; softmax-margin is from Gimpel and Smith,
    Softmax-margin CRFs, NAACL 2010; charts are pruned more (they have a
    `cell_limit` of 8, for longer sentences), which loses one sure link in a thousand.

    Examples
    --------
    >>> from isogloss import samples
    >>> bitext, gold = samples.bitext("en-de"), samples.gold("en-de")
    >>> aligner = ItgAligner(features=("association", "position"), tune=False, iterations=3, blocks=None)
    >>> aligner.fit(bitext, gold).score(bitext, gold).aer < 40
    True
    """

    _kind = "align.itg"
    DEFAULTS: ClassVar[Mapping[str, Setting]] = {
        "likelihood": Setting(iterations=20, passes=40, regularisation=1.0),
        "mira": Setting(missed=3.0, iterations=15, passes=15, regularisation=0.01),
        "softmax-margin": Setting(iterations=20, passes=40, regularisation=1.0),
    }
    SUMMED: ClassVar[tuple[str, ...]] = ("likelihood", "softmax-margin")
    chart_limit: int = option(
        default=2**27, least=0, most=Itg.chart_limit, help="Bytes that the chart of one pair may take, after pruning."
    )

    @property
    def aim(self) -> str:
        """What is learnt where gold allows several structures: `targets` or, if that is not given, what suits."""
        return self.targets or ("latent" if self.way in self.SUMMED else "fixed")

    def ways(self) -> tuple[str, ...]:
        """Trainers that take the costs and the targets that were given, where they were."""
        if self.trainer != AUTO:
            return super().ways()
        found = super().ways()
        if self.missed is not None or self.spurious != 1.0:
            found = tuple(way for way in found if way in self.COSTED)
        if self.targets == "gold":
            found = tuple(way for way in found if way not in self.SUMMED)
        return tuple(way for way in found if way == "likelihood") if self.competitive else found

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        if not self.ways():
            raise ParameterError(
                'ItgAligner: competitive=True goes with trainer="likelihood", and costs (missed, spurious) and '
                'targets="gold" with trainer="mira". Leave out one of them'
            )
        if self.targets == "gold" and (self.trainer in self.SUMMED or self.blocks is not None):
            raise ParameterError(
                'ItgAligner: targets="gold" goes with trainer="mira" without blocks; gold that the grammar cannot '
                'build has neither a probability nor blocks. Take "latent" or "fixed"'
            )

    # --- parts and charts

    def _keep(self, features: PairFeatures) -> NDArray[np.bool_] | None:
        """bool[n_cells]: links that pruning leaves; None for all."""
        if not self._prunes(features):
            return None
        columns = [features.links[:, features.column(name)] for name in POSTERIORS]
        return np.asarray(np.maximum(*columns) >= self.negligible)

    def _prunes(self, features: PairFeatures) -> bool:
        return self.prune and all(name in features.link_names for name in POSTERIORS)

    def parts(self, features: PairFeatures) -> Parts:
        if self.block_size_ is None:
            return super().parts(features)
        return block_parts(features, self.block_size_, self._keep(features))

    def _chart(self, features: PairFeatures, pair: int, dist: Itg) -> Itg | None:
        """The pruned chart of a pair; None if it is too large."""
        pruner = Pruner(self.chart_limit, self.confident, self.cell_limit, self.negligible)
        if not self._prunes(features):
            return pruner(dist)
        return pruner(dist, *(features.matrix(pair, name) for name in POSTERIORS))

    def _blocks(self, shape: tuple[int, int], places: Sequence[Any], values: Sequence[Any]) -> Blocks | None:
        if self.block_size_ is None:
            return None
        full = (*shape, self.block_size_ - 1)
        return Blocks(*(filled(full, at, new) for at, new in zip(places, values, strict=True)))

    def structures(self, features: PairFeatures) -> list[Any]:
        sides: tuple[Candidates, ...] = ()
        if self.block_size_ is not None:
            sides = find_candidates(features, self.block_size_, self._keep(features))
        out: list[Any] = []
        for k in range(len(features)):
            places = [side.places_of(k) for side in sides]
            blocks = self._blocks(features.shape(k), places, [0.0] * len(places))
            dist = Itg(np.zeros(features.shape(k)), normal_form=self.grammar == "normal", blocks=blocks)
            chart = self._chart(features, k, dist)
            assert chart is not None  # those too large were taken out
            out.append(Flat(BlockItg(chart, (places[0], places[1])) if places else chart))
        return out

    def distributions(self, features: PairFeatures, parts: Parts, weights: Array) -> Charts:
        links, source, target, *rest = parts.scores(weights)
        sides = parts.candidates if isinstance(parts, BlockParts) else ()
        dists: list[Itg | Matching] = []
        for k in range(len(features)):
            cells = links[features.cells_of(k)].reshape(features.shape(k))
            nulls = source[features.source_of(k)], target[features.target_of(k)]
            places = [side.places_of(k) for side in sides]
            values = [of[side.offsets[k] : side.offsets[k + 1]] for side, of in zip(sides, rest, strict=True)]
            blocks = self._blocks(features.shape(k), places, values)
            dist = Itg(cells, *nulls, self.grammar == "normal", blocks)
            dists.append(self._chart(features, k, dist) or Matching(cells, *nulls))
        return Charts(dists)

    def best(self, distributions: Any) -> Sequence[LinkSet]:
        if self.way != "likelihood":
            return list(distributions.argmax())
        threshold = self.threshold if isinstance(self.threshold, float) else THRESHOLD
        return [links_at(self.above(p, threshold)) for p in distributions.marginals()]

    def above(self, probability: Array, threshold: float) -> NDArray[np.bool_]:
        """Cells that reach the threshold; with `competitive`, in one run with the best of their row and column."""
        return competitive(probability, threshold) if self.competitive else super().above(probability, threshold)

    def spread(self, flat: Any, links: Any) -> Array:
        return spread_to_blocks(flat, links)

    def prefer(self, flat: Any, features: PairFeatures, pair: int) -> Array:
        return spread_to_blocks(flat, guess(features, pair))

    # --- learning

    def new_extractor(self) -> FeatureExtractor:
        extractor = super().new_extractor()
        if self.blocks is not None and "blocks" not in extractor.sets:
            extractor.sets = (*extractor.sets, "blocks")
        return extractor

    def fit_features(
        self,
        features: PairFeatures,
        gold: Links | GoldCells,
        dev: tuple[PairFeatures, Links | GoldCells] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        self.check_params()
        cells = _cells(gold, features)
        self.block_size_ = largest_block(cells) if isinstance(self.blocks, str) else self.blocks
        fits = self._fits(features)
        if not fits.all():
            if not (fits & (features.shapes.prod(axis=1) > 0)).any():
                raise LinksError(
                    f"ItgAligner: no chart of the gold pairs fits into {self.chart_limit} bytes. Raise chart_limit, "
                    "or take MatchingAligner"
                )
            warnings.warn(
                f"ItgAligner: {int((~fits).sum())} of {len(fits)} gold pairs are too long for a chart of "
                f"{self.chart_limit} bytes and are not learnt from; raise chart_limit to have them",
                IsoglossWarning,
                stacklevel=2,
            )
            features, cells = take_pairs(features, fits), cells.take(fits)
        super().fit_features(features, cells, dev, progress)
        if self.way == "likelihood" and self.threshold_ is None:
            self.threshold_ = THRESHOLD
        return self

    def _fits(self, features: PairFeatures) -> NDArray[np.bool_]:
        """bool[n_pairs]: whose charts are small enough; blocks hardly matter for that."""
        empty = (Itg(np.zeros(features.shape(k))) for k in range(len(features)))
        return np.array([self._chart(features, k, dist) is not None for k, dist in enumerate(empty)], np.bool_)

    def learner(self, problem: Problem, setting: Setting) -> Any:
        if self.way == "mira":
            about: dict[str, Any] = {"passes": setting.passes, "seed": self.seed}
            return Mira(problem.model, problem.targets, problem.costs, cap=setting.regularisation, **about)
        model = problem.model.within(FlatItgs(problem.flats))
        if self.way == "softmax-margin":
            model = problem.model.within(FlatItgs(self._augmented(problem)))
        if self.aim == "fixed":
            objective = Likelihood(model, gold=problem.targets)
        else:
            near = [Flat(flat.dist.minimum_loss(*problem.gold.of_pair(k))) for k, flat in enumerate(problem.flats)]
            objective = Likelihood(model, within=model.within(FlatItgs(near).narrowed()))
        return Lbfgs(objective, l2=setting.regularisation or 0.0)

    def _augmented(self, problem: Problem) -> list[Flat[Any]]:
        """The structures of all pairs, scored with what their parts cost."""
        missed, spurious = problem.setting.missed, problem.setting.spurious
        out = []
        for k, flat in enumerate(problem.flats):
            cost = self.spread(flat, link_cost(*problem.gold.of_pair(k), missed=missed, spurious=spurious).parts)
            out.append(flat.with_scores(np.where(flat.scores == -np.inf, -np.inf, cost)))
        return out

    def calibrate(self, held_out: Sequence[HeldOut]) -> tuple[float, float]:
        if self.way == "likelihood":  # the posteriors of the model are what it was trained for
            return 1.0, best_threshold(self, held_out) if self.threshold == "auto" else THRESHOLD
        return super().calibrate(held_out)

    def _take_names(self) -> None:
        lengths = [name for name in self._names if name.startswith("source block: length ")]
        self.block_size_ = len(lengths) + 1 if lengths else None

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
        """Why two words are linked, or are not; `blocks` has the best blocks that they stand in together."""
        bitext = self._checked(bitext)
        answer = super().explain(bitext, pair, source=source, target=target, links=links)
        if self.block_size_ is None or answer["source"] is None:
            return answer
        own = None if links is None else {name: given.part(pair, pair + 1) for name, given in links.items()}
        with using_threads(self.threads):
            features = self._transform(self.extractor_, bitext.part(pair, pair + 1), own)
            answer["blocks"] = self._explained(features, bitext[pair], answer["source"], answer["target"])
        for block in answer["blocks"]:
            if block["linked"] and answer["linked"]:
                many, one = " ".join(block["words"][0]), " ".join(block["words"][1])
                answer["reason"] = f"{' and '.join(answer['words'])} are linked as parts of a block, {many} - {one}"
        return answer

    def _explained(
        self, features: PairFeatures, words: tuple[tuple[str, ...], tuple[str, ...]], i: int, j: int
    ) -> list[dict[str, Any]]:
        """Blocks that have a link, the most probable first."""
        parts = self.parts(features)
        assert isinstance(parts, BlockParts)
        _, *nulls = parts.scores(self._weights)
        chart = self.distributions(features, parts, self._weights / self.temperature_)[0]
        if not isinstance(chart, Itg):
            return []
        posteriors = chart.block_marginals()
        linked = self._predict(features, probability=False)[0][0]
        out = []
        for side, blocks in enumerate(parts.candidates):
            corner = np.stack(np.unravel_index(blocks.place, posteriors[side].shape), axis=1)
            for row in range(len(corner)):
                at, length = corner[row, :2].tolist(), int(blocks.length[row])
                spans = [range(at[k], at[k] + (length if k == side else 1)) for k in range(2)]
                if i not in spans[0] or j not in spans[1]:
                    continue
                cells = frozenset((a, b) for a in spans[0] for b in spans[1])
                lost = sum(float(nulls[k][word]) for k in range(2) for word in spans[k])
                score = float(nulls[2 + side][row])
                named = parts.contributions(self._weights, 3 + side, row)
                out.append(
                    {
                        "kind": f"{SIDES[side]} block", "source": list(spans[0]), "target": list(spans[1]),
                        "words": [[words[k][word] for word in spans[k]] for k in range(2)], "score": score,
                        "gain": score - lost, "probability": float(posteriors[side].ravel()[blocks.place[row]]),
                        "linked": cells <= linked and not _wider(cells, linked),
                        "features": [
                            {"feature": name, "value": value, "weight": weight, "contribution": weight * value}
                            for name, weight, value in sorted(named, key=lambda one: -abs(one[1] * one[2]))
                        ],
                    }
                )  # fmt: skip
        return sorted(out, key=lambda block: -block["probability"])


def _wider(cells: LinkSet, linked: LinkSet) -> bool:
    """Whether a word of a block has further links."""
    rows, columns = {i for i, _ in cells}, {j for _, j in cells}
    return any((i in rows or j in columns) and (i, j) not in cells for i, j in linked)
