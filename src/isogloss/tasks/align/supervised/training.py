"""How the weights of a supervised aligner are found: problems, settings, cross-validation, and a temperature."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.features.sparse import Sparse
from isogloss.learners.margin import Cost
from isogloss.learners.models import LinearModel
from isogloss.progress import Progress
from isogloss.tasks.align.features import PairFeatures
from isogloss.tasks.align.supervised.parts import Parts, take_pairs
from isogloss.tasks.align.supervised.targets import GoldCells, OpenFlat, error_rate, make_target

if TYPE_CHECKING:
    from isogloss.tasks.align.supervised.base import SupervisedAligner

__all__ = ["Found", "HeldOut", "Problem", "Setting", "Training", "best_threshold", "grid", "guess", "temperature"]

Array = NDArray[np.float64]
WARM = 10
"""Passes before targets are chosen again, for learners that need targets to stand still."""
CALIBRATION_PAIRS, CALIBRATION_CELLS = 200, 2**17
"""At most so many pairs, of so many cells together, are looked at for the temperature."""
AT_ONCE = 20
UNSETTLED = 0.1
"""Temperatures where beliefs of a larger share of pairs do not settle are too low to be used."""
MISSED = (1.0, 3.0)
"""What is tried for `missed`, in units of `spurious`."""
LEAST = 1e-6


@dataclass(frozen=True)
class Setting:
    """What training may choose.

    Parameters
    ----------
    missed, spurious : float
        Costs of errors.
    iterations : int
        Passes made, or the most that may be.
    passes : int
        Passes over which loss augmentation rises, for trainers that have it; `iterations` stops before its end, maybe.
    regularisation : float, optional
        What keeps weights small, in terms of the trainer.
    """

    missed: float = 1.0
    spurious: float = 1.0
    iterations: int = 15
    passes: int = 15
    regularisation: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Setting:
        return cls(**given)


def grid(aligner: SupervisedAligner) -> list[Setting]:
    """What training may try, the default of the trainer first; what the user gave is fixed in all."""
    default, spurious = aligner.DEFAULTS[aligner.way], aligner.spurious
    passes = default.passes if aligner.iterations is None else aligner.iterations
    iterations = default.iterations if aligner.iterations is None else aligner.iterations
    missed, regular = [default.missed * spurious], [default.regularisation]
    if aligner.tune:
        missed += [c * spurious for c in MISSED if c != default.missed and aligner.way in aligner.COSTED]
        regular += [r for r in aligner.REGULARISATION.get(aligner.way, ()) if r != default.regularisation]
    if aligner.missed is not None:
        missed = [aligner.missed]
    if aligner.regularisation is not None:
        regular = [aligner.regularisation]
    return [Setting(c, spurious, iterations, passes, r) for r in regular for c in missed]


class Problem:
    """Labelled pairs as a learner takes them.

    Attributes
    ----------
    parts : Parts
    model : LinearModel
        Over the structures of the aligner. Dense features are divided by `scale`, so that each varies about as much as
        the others; `weights(found)` undoes it.
    targets : list
    costs : list of Cost
        Lists that `refresh` changes in place; empty for learners that sum over all targets.
    """

    def __init__(self, aligner: SupervisedAligner, features: PairFeatures, gold: GoldCells, setting: Setting) -> None:
        self.aligner, self.features, self.gold, self.setting = aligner, features, gold, setting
        self.parts: Parts = aligner.parts(features)
        matrix = self.parts.sparse()
        self.scale = _spread_of(matrix)
        dense = matrix.dense / self.scale[matrix.n_indicators :]
        matrix = Sparse(matrix.indptr, matrix.indices, matrix.n_indicators, dense=dense)
        self.flats = aligner.structures(features)
        structures = [OpenFlat(flat) for flat in self.flats] if aligner.aim == "gold" else self.flats
        self.model = LinearModel(structures, matrix)
        self.targets: list[Any] = []
        self.costs: list[Cost] = []
        if not (aligner.aim == "latent" and aligner.way in aligner.SUMMED):  # these have no single target
            self._aim([aligner.prefer(flat, features, k) for k, flat in enumerate(self.flats)])

    def weights(self, found: Array) -> Array:
        """Weights of the features as they are."""
        return found / self.scale

    def refresh(self, found: Array) -> None:
        """Choose targets again, by the scores that a learner's weights give."""
        scores = self.model.features.scores(found)
        ends = np.cumsum([len(flat.scores) for flat in self.flats])
        self._aim(np.split(scores, ends[:-1]))

    def _aim(self, prefer: Sequence[Array]) -> None:
        targets = [
            make_target(
                flat, *self.gold.of_pair(k), missed=self.setting.missed, spurious=self.setting.spurious,
                prefer=prefer[k], project=self.aligner.aim != "gold", spread=self.aligner.spread,
            )
            for k, flat in enumerate(self.flats)
        ]  # fmt: skip
        self.targets[:] = [target.y for target in targets]
        self.costs[:] = [target.cost for target in targets]


def _spread_of(matrix: Sparse) -> Array:
    """The standard deviation of each dense feature over the parts that have it; 1 for constants and indicators."""
    out = np.ones(matrix.n_features)
    for column in range(matrix.dense.shape[1]):
        values = matrix.dense[:, column]
        used = values[values != 0]
        if len(used):
            out[matrix.n_indicators + column] = np.sqrt(np.mean(used**2))
    return out


def guess(features: PairFeatures, pair: int) -> Array:
    """float64[n_source, n_target]: above 0 where features alone say that two words belong together.

    The posterior of the HMM less a half, or Dice less a third; 0 without both. Decides between targets before there are
    weights.
    """
    for name, least in (("hmm", 0.5), ("dice", 1 / 3)):
        if name in features.link_names:
            return features.matrix(pair, name).astype(np.float64) - least
    return np.zeros(features.shape(pair))


class Found(NamedTuple):
    """What training comes to."""

    names: tuple[str, ...]
    weights: Array
    setting: Setting
    temperature: float
    threshold: float
    trace: Array
    tuning: list[dict[str, Any]]


class HeldOut(NamedTuple):
    """Pairs that were not trained on, under weights that were."""

    features: PairFeatures
    gold: GoldCells
    weights: Array


Split = tuple[PairFeatures, GoldCells, PairFeatures, GoldCells]
"""Pairs to learn from, and pairs that are held out."""


class Training:
    """Chooses a setting on held-out pairs, trains with it on all, and fits the temperature.

    Parameters
    ----------
    aligner : SupervisedAligner
    features, gold : PairFeatures, GoldCells
        Of the pairs to learn from.
    dev : (PairFeatures, GoldCells), optional
        Held-out pairs; folds of the gold otherwise.
    """

    def __init__(
        self,
        aligner: SupervisedAligner,
        features: PairFeatures,
        gold: GoldCells,
        dev: tuple[PairFeatures, GoldCells] | None,
        progress: Progress,
    ) -> None:
        self.aligner, self.features, self.gold, self.dev, self.progress = aligner, features, gold, dev, progress

    def run(self) -> Found:
        setting, held_out, tuning = None, list[HeldOut](), list[dict[str, Any]]()
        if self.aligner.tune:
            setting, held_out, tuning = self._choose()
        if setting is None:
            setting = self.aligner.settings()[0]
        problem = Problem(self.aligner, self.features, self.gold, setting)
        self.progress.start("Training", setting.iterations)
        trace: list[float] = []
        weights = np.zeros(problem.model.n_weights)
        for step, found in self._path(problem, setting, trace):
            weights = found
            self.progress.update(step, f"pass {step} of {setting.iterations}")
        self.progress.finish()
        held_out = held_out or [HeldOut(*(self.dev or (self.features, self.gold)), weights)]
        scale, threshold = self.aligner.calibrate(held_out)
        setting = replace(setting, iterations=len(trace))
        return Found(problem.parts.names, weights, setting, scale, threshold, np.array(trace), tuning)

    # --- choosing

    def _splits(self) -> list[Split]:
        """Training and held-out pairs: dev, or each fold in turn."""
        if self.dev is not None:
            return [(self.features, self.gold, *self.dev)]
        folds = make_folds(len(self.gold), self.aligner.folds, self.aligner.seed)
        numbers = np.arange(len(self.gold))
        out = []
        for fold in folds:
            rest = np.setdiff1d(numbers, fold)
            if len(rest) and len(fold):
                out.append(
                    (take_pairs(self.features, rest), self.gold.take(rest), take_pairs(self.features, fold),
                     self.gold.take(fold))
                )  # fmt: skip
        return out

    def _choose(self) -> tuple[Setting | None, list[HeldOut], list[dict[str, Any]]]:
        """The trainer, the setting and the passes with the least error on held-out pairs, the first among equals."""
        splits = self._splits()
        tried = [(way, setting) for way in self.aligner.ways() for setting in self._settings_of(way)]
        if not splits:
            return None, [], []
        self.progress.start("Choosing settings", len(tried) * len(splits))
        best: tuple[float, str, Setting, list[HeldOut]] | None = None
        tuning = []
        for number, (way, setting) in enumerate(tried):
            self.aligner.take_way(way)
            for step, kept in self._held_out(setting, splits, number).items():
                error = self._error(kept)
                tuning.append({"trainer": way, **replace(setting, iterations=step).as_dict(), "aer": error})
                if best is None or error < best[0]:
                    best = error, way, replace(setting, iterations=step), kept
        self.progress.finish()
        assert best is not None
        self.aligner.take_way(best[1])
        return best[2], best[3], tuning

    def _settings_of(self, way: str) -> list[Setting]:
        self.aligner.take_way(way)
        return self.aligner.settings()

    def _held_out(self, setting: Setting, splits: Sequence[Split], number: int) -> dict[int, list[HeldOut]]:
        """Held-out pairs of all splits under the weights after each number of passes that may be taken."""
        steps = self.aligner.checkpoints(setting)
        kept: dict[int, list[HeldOut]] = {step: [] for step in steps}
        for split, (features, gold, other, other_gold) in enumerate(splits):
            problem, weights = Problem(self.aligner, features, gold, setting), np.zeros(0)
            for step, weights in self._path(problem, replace(setting, iterations=steps[-1]), []):
                if step in kept:
                    kept[step].append(HeldOut(other, other_gold, weights))
            for own in kept.values():  # a training that has settled says the same of passes that it need not make
                own += [HeldOut(other, other_gold, weights)] * (split + 1 - len(own))
            self.progress.update(number * len(splits) + split + 1)
        return kept

    def _error(self, held_out: Sequence[HeldOut]) -> float:
        """AER of all held-out pairs together."""
        linked = np.concatenate([linked_cells(self.aligner, own) for own in held_out])
        shapes, sure, possible = (
            np.concatenate([getattr(own.gold, name) for own in held_out]) for name in ("shapes", "sure", "possible")
        )
        return error_rate(linked, GoldCells(shapes, sure, possible))

    # --- one training

    def _path(self, problem: Problem, setting: Setting, trace: list[float]) -> Iterator[tuple[int, Array]]:
        """Pass after pass, the weights to predict with; ends where the learner is as near to the optimum as asked."""
        aligner = self.aligner
        latent = aligner.aim == "latent" and aligner.way not in aligner.SUMMED
        restless = aligner.way in aligner.ONLINE
        if latent and not restless:  # targets must stand still: choose them with a first, short training
            learner = aligner.learner(problem, setting)
            state = learner.init()
            for _ in range(min(WARM, setting.iterations)):
                state, _ = learner.step(state)
            problem.refresh(state.average)
        learner = aligner.learner(problem, setting)
        state = learner.init()
        near = aligner.NEAR.get(aligner.way, 0.0) and aligner.NEAR[aligner.way] * learner.primal(state.weights)
        for step in range(1, setting.iterations + 1):
            state, info = learner.step(state)
            trace.append(float(info.objective))
            yield step, problem.weights(state.average)
            if near and info.distance <= near:
                return
            if latent and restless:
                problem.refresh(state.average)


def make_folds(n: int, folds: int, seed: int) -> list[NDArray[np.int64]]:
    """Numbers 0 … n - 1 in `folds` groups (n if that is less) of about equal size, drawn by the seed, each sorted."""
    order = np.random.default_rng(seed).permutation(n)
    return [np.sort(order[k :: min(folds, n)]) for k in range(min(folds, n))]


def linked_cells(aligner: SupervisedAligner, own: HeldOut) -> NDArray[np.bool_]:
    """The cells of the best structures, bool[n_cells]."""
    features = own.features
    out = np.zeros(len(features.links), np.bool_)
    best = aligner.best(aligner.distributions(features, aligner.parts(features), own.weights))
    for pair, links in enumerate(best):
        if links:
            ends = np.array(sorted(links))
            out[features.cells_of(pair).start + ends[:, 0] * features.shape(pair)[1] + ends[:, 1]] = True
    return out


def temperature(aligner: SupervisedAligner, held_out: Sequence[HeldOut]) -> tuple[float, float]:
    """What scores are divided by to be log probabilities, and the threshold of least error at that temperature.

    The temperature maximises the likelihood of held-out cells: each is linked (sure) or not (neither sure nor
    possible) with its posterior; possible ones say nothing.

    Where several words score alike and have too few partners (repeated words under features that do not see where
    words stand, say), beliefs take ever longer to settle as scores grow, and in the cold they do not. Such
    temperatures are given up after a few pairs: what they say is rough, and prediction at them would be as slow.
    """
    few = [_first(own, CALIBRATION_PAIRS // len(held_out), CALIBRATION_CELLS // len(held_out)) for own in held_out]
    size = np.concatenate([np.abs(aligner.parts(own.features).scores(own.weights)[0]) for own in few])
    unit = float(size.mean()) if len(size) else 0.0
    if unit == 0.0:
        return 1.0, 0.5
    sure = np.concatenate([own.gold.sure for own in few])
    possible = np.concatenate([own.gold.possible for own in few])

    def loss(log_scale: float) -> float:
        found = _settled_posterior(aligner, few, float(np.exp(log_scale)))
        if found is None:
            return np.inf
        p = np.clip(found[~possible], LEAST, 1 - LEAST)
        return -float(np.log(np.where(sure[~possible], p, 1 - p)).sum())

    points = np.linspace(np.log(unit) - 3.5, np.log(unit) + 2.5, 25)
    known: dict[int, float] = {}
    best = len(points) - 1
    for step in (4, 2, 1):  # from hot to cold, since beliefs are slow to settle in the cold
        tried = range(best, -1, -step) if step == 4 else range(min(24, best + step), max(0, best - step) - 1, -step)
        for at in tried:
            if at not in known:
                known[at] = loss(float(points[at]))
            if step == 4 and known[at] > min(known.values()):
                break
        best = min(known, key=lambda at: known[at])
    scale = float(np.exp(points[best]))
    return scale, best_threshold(aligner, few, scale)


def best_threshold(aligner: SupervisedAligner, held_out: Sequence[HeldOut], scale: float = 1.0) -> float:
    """The threshold of posteriors with the least error on held-out pairs, at a temperature."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = [p for own in held_out for p in _posteriors(aligner, own, scale)[0]]
    shapes, sure, possible = (
        np.concatenate([getattr(own.gold, name) for own in held_out]) for name in ("shapes", "sure", "possible")
    )
    grid, gold = np.arange(0.05, 0.96, 0.025), GoldCells(shapes, sure, possible)
    errors = [error_rate(np.concatenate([aligner.above(p, t).ravel() for p in found]), gold) for t in grid.tolist()]
    return float(grid[int(np.argmin(errors))])


def _first(own: HeldOut, pairs: int, cells: int) -> HeldOut:
    """The first pairs, at least one, up to a number of pairs and of cells."""
    fit = int(np.searchsorted(own.gold.offsets, cells, side="right")) - 1
    kept = max(1, min(len(own.gold), pairs, fit))
    return own if kept >= len(own.gold) else _part(own, 0, kept)


def _part(own: HeldOut, start: int, stop: int) -> HeldOut:
    return HeldOut(own.features[start:stop], own.gold.take(np.arange(start, stop)), own.weights)


def _posteriors(aligner: SupervisedAligner, own: HeldOut, scale: float) -> tuple[list[Array], int]:
    """The posterior of every cell of each pair, and the number of pairs whose beliefs have not settled."""
    dists = aligner.distributions(own.features, aligner.parts(own.features), own.weights / scale)
    found = aligner.link_probabilities(dists)
    each = getattr(dists, "convergence", None)
    if each is None and not hasattr(dists, "marginals"):
        each = [getattr(dist, "convergence", None) for dist in dists]
    return found, sum(1 for one in each or () if one is not None and not one.converged)


def _settled_posterior(aligner: SupervisedAligner, held_out: Sequence[HeldOut], scale: float) -> Array | None:
    """float64[n_cells], a few pairs after the other; None as soon as too many have not settled."""
    parts, seen, unsettled = [np.zeros(0)], 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # which says what is counted here
        for own in held_out:
            for start in range(0, len(own.gold), AT_ONCE):
                some = _part(own, start, min(start + AT_ONCE, len(own.gold)))
                found, more = _posteriors(aligner, some, scale)
                parts += [np.ravel(p) for p in found]
                seen, unsettled = seen + len(some.gold), unsettled + more
                if unsettled > UNSETTLED * max(seen, AT_ONCE):
                    return None
    return np.concatenate(parts)
