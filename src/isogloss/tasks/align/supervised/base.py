"""`SupervisedAligner`: what all aligners that learn from hand-aligned sentences have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data import Bitext, Links
from isogloss.data.formats import BitextLike, as_bitext, as_links
from isogloss.data.reading import Reading
from isogloss.engine.threads import using_threads
from isogloss.errors import LinksError, UsageError
from isogloss.metrics import AlignmentScore, score_links
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.align.features import FeatureExtractor, PairFeatures
from isogloss.tasks.align.languages import KnownWords, text_for
from isogloss.tasks.align.options import AUTO, COSTED, SupervisedOptions
from isogloss.tasks.align.supervised import applying, keeping
from isogloss.tasks.align.supervised import explain as explaining
from isogloss.tasks.align.supervised.applying import LinkSet as LinkSet  # others have it from here
from isogloss.tasks.align.supervised.parts import Parts, link_and_null_parts, take_pairs
from isogloss.tasks.align.supervised.targets import GoldCells, check_enough, check_gold, check_links, spread_links
from isogloss.tasks.align.supervised.training import (
    HeldOut,
    Problem,
    Setting,
    Training,
    grid,
    guess,
    temperature,
)

__all__ = ["SupervisedAligner"]

Array = NDArray[np.float64]
CHECKPOINTS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 30, 40, 60, 80, 120, 160, 240, 320, 500)


class SupervisedAligner(SupervisedOptions, ABC):
    """Links the words of a bitext with weights for features, learnt from hand-aligned sentence pairs.

    Parameters
    ----------
    features : sequence of str
        Sets of features, see `isogloss.tasks.align.features.SETS`.
    links : sequence of str
        Names of links by other systems, which `fit` and `predict` are then given as `links={name: Links}`.
    lexicon : path or iterable of (source, target[, weight]), optional
        Word pairs known beforehand.
    extra : sequence of functions
        Features of your own, ``f(view: PairView) -> array[n_source, n_target]``; `load` needs them again.
    trainer : str
        How weights are found; each class names its own. With "auto", where a class has it, that which does best on
        held-out pairs, together with its settings; with `tune=False` the first of the class.
    missed, spurious : float, optional
        What a sure link that is missed and a wrong link cost; `missed` is chosen by cross-validation unless given.
        More for `missed` raises recall.
    iterations : int, optional
        The most passes over the gold. Trainers that know how far they are from the optimum ("frank-wolfe",
        "extragradient") stop when they are near; for the others, passes are chosen by cross-validation unless given.
    regularisation : float, optional
        What keeps weights small, for trainers that have it; chosen likewise.
    targets : "latent", "fixed" or "gold", optional
        What is learnt where gold allows several structures, or none of the class: the structure of least loss that the
        weights so far prefer; that which the features alone suggest, unless given; or gold as it is, without possible
        links, even if the class has no such structure.
    threshold : float or "auto", optional
        Links are those whose probability reaches it, found on held-out folds with "auto"; the best structure without.
    tune : bool
        False takes defaults for all that was not given, and spares the cross-validation.
    folds : int
        Of the cross-validation within the gold.
    empty : "skip" or "learn"
        Whether pairs without gold links are passed over, as not labelled, or say that nothing is to be linked.
    lowercase : bool
        Compare words without case.
    max_length : int
        Pairs with more words on a side are passed over and have no links.
    seed : int
        Of folds and of the order of pairs in training.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    extractor_ : FeatureExtractor
        What was learnt from text without labels.
    weights_ : dict of str to float
        The weight of every feature.
    trainer_ : str
        The trainer that was used: that which was given, or that which "auto" chose.
    setting_ : Setting
        Costs, iterations and so on, as used for the last training.
    temperature_ : float
        Scores are divided by it before they become probabilities. The size of margin weights says nothing about
        probability, so this one number is fitted to the likelihood of held-out pairs: those of `dev` or of the folds.
        With `tune=False` and no `dev` it is fitted to the training pairs themselves: probabilities are then too sure
        where weights follow little gold closely. (On Hansards, two folds held out for it alone made probabilities of
        other pairs better about as often as worse.)
    trace_ : float64[.]
        Objective after each pass of the last training.
    tuning_ : list of dict
        Every setting that was tried, with its error on held-out pairs.
    threshold_ : float or None
    """

    supervised: ClassVar[bool] = True
    """Whether gold links are learnt from."""
    DEFAULTS: ClassVar[Mapping[str, Setting]]
    """Of each trainer, of which the first is the default; the rest of the grid is around it."""
    REGULARISATION: ClassVar[Mapping[str, tuple[float, ...]]] = {}
    """What is tried for `regularisation` with each trainer."""
    ONLINE: ClassVar[tuple[str, ...]] = ("perceptron", "mira", "subgradient")
    """Trainers whose targets may change between passes."""
    COSTED: ClassVar[tuple[str, ...]] = COSTED
    """Trainers that look at costs."""
    SUMMED: ClassVar[tuple[str, ...]] = ()
    """Trainers that learn towards all targets that gold allows at once, and choose none."""
    NEAR: ClassVar[Mapping[str, float]] = {}
    """Trainers that know how far they are from the optimum, and at which share of the hinges before training they
    stop: an optimum depends on the gold alone, and not on the order of sums, the seed or the processor."""

    _chosen_way: str | None = None

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        self.new_extractor().check_params()

    # --- trainers

    @property
    def way(self) -> str:
        """The trainer in use: that which was given; with "auto", that which was chosen, or the first."""
        return self.trainer if self.trainer != AUTO else self._chosen_way or self.ways()[0]

    @property
    def trainer_(self) -> str:
        """The trainer that was used."""
        self._check_fitted()
        return self.way

    def ways(self) -> tuple[str, ...]:
        """The trainers that may be chosen from, the default first."""
        return tuple(self.DEFAULTS) if self.trainer == AUTO else (self.trainer,)

    def take_way(self, way: str | None) -> None:
        """With "auto", train in this way from now on."""
        self._chosen_way = way if self.trainer == AUTO else None

    @property
    def aim(self) -> str:
        """What is learnt where gold allows several structures: `targets` or, if that is not given, what suits."""
        return self.targets or "fixed"

    # --- what a subclass writes

    def parts(self, features: PairFeatures) -> Parts:
        """The parts of its structures, with their features; links and nulls unless a subclass has more."""
        return link_and_null_parts(features)

    @abstractmethod
    def structures(self, features: PairFeatures) -> list[Any]:
        """For training: a `Flat` of scores 0 for each pair, whose parts are those of `parts`."""

    @abstractmethod
    def distributions(self, features: PairFeatures, parts: Parts, weights: Array) -> Any:
        """For prediction: a structure for each pair under its scores; a list or a batch."""

    def best(self, distributions: Any) -> Sequence[LinkSet]:
        """The links of each pair."""
        found = distributions.argmax() if hasattr(distributions, "argmax") else [d.argmax() for d in distributions]
        return list(found)

    def link_probabilities(self, distributions: Any) -> list[Array]:
        """Posterior of every cell, float64[n_source, n_target] for each pair."""
        found = distributions.marginals() if hasattr(distributions, "marginals") else distributions
        return [np.asarray(d.marginals() if hasattr(d, "marginals") else d) for d in found]

    def above(self, probability: Array, threshold: float) -> NDArray[np.bool_]:
        """Which cells of a pair are links, where a threshold decides: those whose probability reaches it."""
        return np.asarray(probability >= threshold)

    def spread(self, flat: Any, links: Any) -> Array:
        """What all parts cost, given what links cost; see `make_target`."""
        return spread_links(flat, links)

    def prefer(self, flat: Any, features: PairFeatures, pair: int) -> Array:
        """float64[n_parts]: which of several targets to begin with; see `guess`."""
        return spread_links(flat, guess(features, pair))

    def settings(self) -> list[Setting]:
        """What training may try, the default first; what the user gave is fixed in all."""
        return grid(self)

    def checkpoints(self, setting: Setting) -> list[int]:
        """After which passes the error is looked at; the last only, if the user or the trainer says how many."""
        if self.iterations is not None or self.way in self.NEAR:
            return [setting.iterations]
        return [step for step in CHECKPOINTS if step <= setting.passes]

    @abstractmethod
    def learner(self, problem: Problem, setting: Setting) -> Any:
        """A learner with `init`, `step` and states with `average`; `Training` runs it."""

    def calibrate(self, held_out: Sequence[HeldOut]) -> tuple[float, float]:
        """The temperature, and the threshold of least error at that temperature, on pairs that were held out."""
        return temperature(self, held_out)

    # --- learning

    def fit(
        self,
        bitext: BitextLike,
        gold: Links,
        unlabelled: BitextLike | None = None,
        dev: tuple[Any, Links] | None = None,
        progress: Progress | None = None,
        *,
        links: Mapping[str, Links] | None = None,
        dev_links: Mapping[str, Links] | None = None,
        extractor: FeatureExtractor | None = None,
    ) -> Self:
        """Learn from hand-aligned sentence pairs.

        Parameters
        ----------
        bitext, gold : Bitext (or anything `as_bitext` takes), Links
            As many rows of gold as pairs.
        unlabelled : Bitext, optional
            Further text, from which association and the HMM behind the features are learnt; the more the better. Text
            to be aligned later may be in it.
        dev : (bitext, gold), optional
            Settings are chosen by its error rate, instead of by cross-validation within the gold.
        links : mapping of str to Links, optional
            Links by other systems for `bitext`, under the names of the option `links`.
        dev_links : mapping of str to Links, optional
            The same for the text of `dev`.
        extractor : FeatureExtractor, optional
            One that was fitted before; it has seen no labels, so that folds may share it.
        """
        self.check_params()
        bitext, gold, progress = as_bitext(bitext), as_links(gold), progress or QuietProgress()
        check_gold(gold, bitext)
        systems = self.links if extractor is None else extractor.links
        check_links(links, systems, f"{type(self).__name__}: links")
        dev_text = held_out = None
        if dev is not None:
            dev_text = as_bitext(dev[0])
            check_gold(dev[1], dev_text, "the gold of dev")
            check_links(dev_links, systems, f"{type(self).__name__}: dev_links")
        elif dev_links is not None:
            raise UsageError(f"{type(self).__name__}: dev_links are given without dev=(bitext, gold)")
        with using_threads(self.threads):
            if extractor is None:
                extractor = self.new_extractor().fit(bitext, unlabelled, progress=progress)
            features = self._transform(extractor, bitext, links)
            if dev is not None and dev_text is not None:
                held_out = self._transform(extractor, dev_text, dev_links), dev[1]
            self.extractor_ = extractor
            return self.fit_features(features, gold, held_out, progress)

    def fit_features(
        self,
        features: PairFeatures,
        gold: Links | GoldCells,
        dev: tuple[PairFeatures, Links | GoldCells] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn weights alone, for features that were made before; folds and learning curves use it."""
        self.check_params()
        progress = progress or QuietProgress()
        cells = _cells(gold, features)
        chosen = cells.labelled if self.empty == "skip" else cells.shapes.prod(axis=1) > 0
        check_enough(cells, int(chosen.sum()), type(self).__name__)
        held_out = None
        if dev is not None:
            held_out = dev[0], _cells(dev[1], dev[0])
        self.take_way(None)
        with using_threads(self.threads):
            training = Training(self, take_pairs(features, chosen), cells.take(chosen), held_out, progress)
            found = training.run()
        self._names, self._weights = found.names, found.weights
        self.setting_, self.temperature_, self.trace_, self.tuning_ = (
            found.setting, found.temperature, found.trace, found.tuning,
        )  # fmt: skip
        self.threshold_: float | None = found.threshold
        if not isinstance(self.threshold, str):
            self.threshold_ = self.threshold
        self.n_gold_ = int(chosen.sum())
        return self

    def new_extractor(self) -> FeatureExtractor:
        """An extractor with the options of this aligner, not fitted yet."""
        return FeatureExtractor(
            self.features, links=self.links, lexicon=self._lexicon, extra=self.extra, lowercase=self.lowercase,
            max_length=self.max_length, threads=self.threads,
        )  # fmt: skip

    def _transform(
        self, extractor: FeatureExtractor, bitext: Bitext, links: Mapping[str, Links] | None
    ) -> PairFeatures:
        return extractor.transform(bitext, links)

    # --- applying

    def predict(
        self, bitext: BitextLike, *, links: Mapping[str, Links] | None = None, probability: bool = True
    ) -> Links:
        """Links with their probabilities; pairs that are passed over have none.

        Parameters
        ----------
        links : mapping of str to Links, optional
            Links by other systems for this text, if training had them.
        probability : bool
            False leaves probabilities out, which is faster where the links are the best structure.
        """
        bitext = self._checked(bitext)
        rows: list[tuple[LinkSet, Array | None]] = []
        with using_threads(self.threads):
            for features in self._stream(bitext, links):
                rows += self._predict(features, probability)
        return applying.as_links(rows, bitext)

    def predict_features(self, features: PairFeatures, *, probability: bool = False) -> Links:
        """`predict` for features that were made before."""
        self._check_fitted()
        with using_threads(self.threads):
            return applying.as_links(self._predict(features, probability), None)

    def _predict(self, features: PairFeatures, probability: bool) -> list[tuple[LinkSet, Array | None]]:
        parts = self.parts(features)
        proba: Sequence[Array | None] = [None] * len(features)
        if probability or self.threshold_ is not None:
            scaled = self.distributions(features, parts, self._weights / self.temperature_)
            proba = self.link_probabilities(scaled)
        if self.threshold_ is None:
            best = self.best(self.distributions(features, parts, self._weights))
        else:
            best = [applying.links_at(self.above(p, self.threshold_)) for p in proba if p is not None]
        return list(zip(best, proba, strict=True))

    def fit_predict(self, bitext: BitextLike, gold: Links, **options: Any) -> Links:
        """`fit`, then `predict` of the same text."""
        bitext = as_bitext(bitext)
        return self.fit(bitext, gold, **options).predict(bitext, links=options.get("links"))

    def predict_proba(
        self, bitext: BitextLike, *, links: Mapping[str, Links] | None = None
    ) -> list[NDArray[np.float32]]:
        """The posterior of every cell, float32[n_source, n_target] for each pair; empty where a pair is passed over."""
        found: list[NDArray[np.float32]] = []
        with using_threads(self.threads):
            for features in self._stream(self._checked(bitext), links):
                dists = self.distributions(features, self.parts(features), self._weights / self.temperature_)
                found += [p.astype(np.float32) for p in self.link_probabilities(dists)]
        return found

    def score(self, bitext: BitextLike, gold: Links, *, links: Mapping[str, Links] | None = None) -> AlignmentScore:
        """Precision, recall and AER of `predict` against gold links."""
        gold = as_links(gold)
        return score_links(self.predict(bitext, links=links, probability=False), gold)

    def pair_scores(self, bitext: BitextLike, *, links: Mapping[str, Links] | None = None) -> NDArray[np.float64]:
        """The expected share of words that have a partner, from 0 to 1: float64[n_pairs].

        Near 1 for close translations. Not a number for pairs that are passed over.
        """
        found = self.predict_proba(bitext, links=links)
        return np.array([applying.share_linked(posterior) for posterior in found], np.float64)

    def _checked(self, given: Any) -> Bitext:
        """A text to work on; one that looks unlike that of the training is said to."""
        self._check_fitted()
        return text_for(self, given)

    def _stream(self, bitext: Bitext, links: Mapping[str, Links] | None) -> Iterable[PairFeatures]:
        """Features of one range of pairs after the other, so that memory does not grow with the text."""
        for part, own in applying.pieces(bitext, links):
            yield self._transform(self.extractor_, part, own)

    def explain(
        self,
        bitext: BitextLike,
        pair: int,
        *,
        source: int | None = None,
        target: int | None = None,
        links: Mapping[str, Links] | None = None,
    ) -> dict[str, Any]:
        """Why two words are linked, or are not: what each feature adds, and the links that compete; plain data.

        With one word given, the other is its best partner.
        """
        bitext = self._checked(bitext)
        explaining.check_words(bitext, pair, source, target)
        own = None if links is None else {name: given.part(pair, pair + 1) for name, given in links.items()}
        with using_threads(self.threads):
            features = self._transform(self.extractor_, bitext.part(pair, pair + 1), own)
            return explaining.explain(self, features, bitext[pair], pair, source, target)

    def feature_weights(self) -> dict[str, float]:
        """The weight of every feature, the largest in size first."""
        return dict(sorted(self.weights_.items(), key=lambda item: (-abs(item[1]), item[0])))

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of every feature."""
        self._check_fitted()
        return dict(zip(self._names, self._weights.tolist(), strict=True))

    # --- keeping

    @property
    def reading_(self) -> Reading | None:  # type: ignore[override]  # that of the extractor, wherever it comes from
        """The files that it learnt from and how they were read, if it learnt from files."""
        return self.extractor_.reading_

    @property
    def known_words_(self) -> tuple[KnownWords, KnownWords]:
        """The words of source and target, and in how many pairs they occurred."""
        seen = self.extractor_.statistics_
        return KnownWords(seen.source_words, seen.source_counts), KnownWords(seen.target_words, seen.target_counts)

    @property
    def options_(self) -> dict[str, Any]:
        """Every option as it was used."""
        used = self.setting_.as_dict() | {"trainer": self.way} if hasattr(self, "setting_") else {}
        return self.kept_options | used

    @property
    def kept_options(self) -> dict[str, Any]:
        """The options that are saved with a model: what was left to the training is left so."""
        options = super().options_ | {"targets": self.aim}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}

    def _to_saved(self) -> store.Saved:
        self._check_fitted()
        return keeping.saved_of(self)

    @classmethod
    def load(cls, path: str | PathLike[str], *, extra: Sequence[Callable[..., Any]] = ()) -> Self:
        """What `save` wrote; `ModelError` names the folder if that cannot be read.

        A file cannot hold functions: a model that was trained with `extra` is given the same ones again, in that order.
        """
        saved = store.read(path, kind=cls._kind)
        with store.named(path):
            saved = replace(saved, options={**saved.options, "extra": tuple(extra)})
            return cls._from_saved(saved)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        aligner = keeping.restore(cls, saved)
        aligner._take_names()
        keeping.check_names(aligner)
        return aligner

    def _take_names(self) -> None:
        """After loading: what a subclass reads off the names of its features, if anything."""
        return

    def _check_fitted(self) -> None:
        if not hasattr(self, "_weights"):
            raise self._has_not_learnt


def _cells(gold: Links | GoldCells, features: PairFeatures) -> GoldCells:
    if isinstance(gold, GoldCells):
        return gold
    if len(gold) != len(features):
        raise LinksError(f"gold has {len(gold)} rows, and there are features of {len(features)} pairs")
    return GoldCells.of(gold, features.shapes)
