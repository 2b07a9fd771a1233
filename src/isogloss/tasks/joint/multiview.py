"""`Multiview`: two models in two languages that learn from a bitext what an analysis becomes in the other language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.sentence_pairs import SentencePairs, as_sentence_pairs
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, ParameterError
from isogloss.layout import Layout, Numbers, check, vector
from isogloss.learners.multiview import CandidatePairs, Candidates, MatchedView, fit_multiview
from isogloss.metrics import Score
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.align import HMMAligner, Model1Aligner, Model2Aligner
from isogloss.tasks.joint.given import hash_of_model
from isogloss.tasks.joint.multiview_options import RULES, MultiviewOptions
from isogloss.tasks.joint.retraining import retrained
from isogloss.tasks.joint.views import VIEWS, View
from isogloss.tasks.joint.views.candidates import Analyses, analyses, link_grids
from isogloss.tasks.joint.views.features import PairFeatures
from isogloss.tasks.joint.weakening import without_words
from isogloss.tasks.transfer.stages import Stages

__all__ = ["Multiview", "Selector", "best_candidate", "most_nodes", "text_hash"]

ALIGNERS = (HMMAligner, Model1Aligner, Model2Aligner)
PIECE = 500
"""Pairs that are judged together when names, tags or trees are chosen."""
SURE = 5
"""Among so many of the best candidates `most_nodes` chooses."""
LEAST = {"entities": 0.0, "tag": 0.05, "parse": 0.05}
"""Words of trees and tagged words are only matched if a link between them is at least this probable."""
Selector = Callable[[Candidates], int]


def text_hash(pairs: SentencePairs) -> str:
    """What pairs of sentences are told apart by: their words and links."""
    text, links = pairs.bitext(), pairs.links
    parts: list[Any] = [part for side in (text.source, text.target) for part in (side.ids, side.vocabulary.types)]
    if links is not None:
        parts += [links.offsets, links.source, links.target, links.probability]
    return store.data_hash(*parts)


def _agreement(view: View, model: Any, text: Any, own: Analyses) -> float:
    """How good the best candidates of the weak model are, if those of the full model are right."""
    best = [
        [
            ranked[int(np.argmax(getattr(candidates, name)))]
            for ranked, candidates in zip(own.ranked, own.candidates, strict=True)
        ]
        for name in ("weak", "full")
    ]
    found, gold = (view.annotated(model, text, each) for each in best)
    return float(view.score(found, gold, bootstrap=0))


def best_candidate(candidates: Candidates) -> int:
    """The most probable one by the full model."""
    return int(np.argmax(candidates.full))


def most_nodes(candidates: Candidates, top: int = SURE) -> int:
    """The one with the most nodes among the `top` most probable, for a model that misses much.

    >>> most_nodes(Candidates([[], [0], [0, 1]], np.array([-0.1, -3.0, -2.0]), np.zeros(3)))
    2
    """
    best = np.argsort(-candidates.full, kind="stable")[:top]
    return int(best[int(np.argmax([len(candidates.nodes[k]) for k in best.tolist()]))])


SELECTORS: dict[str, Selector] = {"best": best_candidate, "most": most_nodes}


class Models(NamedTuple):
    """What a bilingual model is made of: for each side a model and a weaker one, and an aligner."""

    source: Any
    target: Any
    source_weak: Any
    target_weak: Any
    aligner: Any


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learnt."""

    models: Models
    features: PairFeatures
    view: MatchedView


class Judged(NamedTuple):
    """Some pairs with the candidates of both sides."""

    source: Analyses
    target: Analyses
    pairs: CandidatePairs


class Multiview(MultiviewOptions):
    r"""Labels both sides of a bitext together, by models of both languages that were learnt apart.

    Both full models list their best analyses :math:`y_1, y_2`, whose nodes (names, links of trees, tagged words) are
    matched with each other. What a match is worth is learnt on a bitext without annotation: pairs of analyses are
    scored by *weakened* models and by features :math:`\phi` of matched nodes,

    .. math:: q(y \mid x) \propto \max_a \exp\big[\lambda_1 \log p^W_1(y_1) + \lambda_2 \log p^W_2(y_2)
        + \theta \cdot \phi(y_1, a, y_2)\big],

    so that what the full models choose becomes probable. To choose, the full models take the place of the weak ones,
    with the weights that were learnt for these [1]_.

    Parameters
    ----------
    task : "entities", "tag" or "parse"
    candidates : int
        Analyses of each side.
    rule : "full", "weak", "product" or "uniform"
        What chooses a pair of analyses: equations 5, 2, 3 and 4 of the paper.
    decoder : "best" or "nodes"
        The best pair; or, for each side, what has the most right nodes in expectation over all pairs.
    source_choice, target_choice : "best" or "most"
        What is learnt from: the best analysis of the full model, or of its best five the one with the most nodes.
    threshold : float
        Links more probable than that are also counted one by one.
    rounds : int
    l2 : float
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_rounds + 1]
        The objective before learning and after each round.
    agreement_ : float64[2]
        How much of the full model's best analyses those of the weak model have, on each side: F1 of names, the share
        of tags or of labelled links, in percent.

    References
    ----------
    .. [1] Burkett, Petrov, Blitzer and Klein, Learning Better Monolingual Models with Unannotated Bilingual Text, CoNLL
       2010. We differ: analyses are those of our models, features of names also have pairs of types, and the decoder
       "nodes" is ours.

    Examples
    --------
    >>> from isogloss.data import Bitext, Mentions
    >>> from isogloss.tasks.extract import EntityTagger
    >>> english = Mentions.of([("Ada left London".split(), [(0, 1, "PER"), (2, 3, "LOC")])] * 5)
    >>> german = Mentions.of([("Ada verließ London".split(), [(0, 1, "PER"), (2, 3, "LOC")])] * 5)
    >>> models = [EntityTagger(iterations=3).fit(text) for text in (english, german)]
    >>> bitext = Bitext.of([("Ada left London", "Ada verließ London"), ("Bob left Rome", "Bob verließ Rom")])
    >>> both = Multiview("entities", candidates=5).fit(bitext, *models)
    >>> print(both.predict(bitext).target[0])
    [Ada PER] verließ [London LOC]
    """

    _kind: ClassVar[str] = "joint.multiview"

    # --- learning

    def fit(
        self,
        bitext: Any,
        source_model: Any,
        target_model: Any,
        progress: Progress | None = None,
        *,
        source_weak: Any = None,
        target_weak: Any = None,
        aligner: Any = None,
        target_selector: Selector | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from a bitext what goes together.

        Parameters
        ----------
        bitext : Bitext, SentencePairs, or two texts
            Annotation is not looked at, but for tags that the models ask for. Links, if there are any, are taken for
            those of its words; an aligner is learnt even so, for later texts.
        source_model, target_model
            Models of the task, one for each language.
        progress : Progress, optional
        source_weak, target_weak : optional
            Weaker models of the same task; see `isogloss.tasks.joint.weakening`. Without them, they are the full ones
            without what these have learnt of the spelling of words, which is quick, but worse than models that learn
            anew from less.
        aligner : HMMAligner, Model1Aligner or Model2Aligner, optional
            One that has learnt; otherwise an `HMMAligner` learns from the bitext.
        target_selector : callable, optional
            Which of some `Candidates` is learnt from, in place of `source_choice` and `target_choice`.
        checkpoint : path, optional
            A folder that keeps what is ready, until `fit` ends.
        resume : bool
            Go on from there.
        """
        self.check_params()
        view = VIEWS[self.task]
        pairs = self._checked(bitext, view)
        models = [source_model, target_model, source_weak, target_weak]
        for name, model in zip(Models._fields, models, strict=False):
            if model is not None or not name.endswith("weak"):
                view.check(model, name.replace("_", " ") + " model")
        for name, full, weak in (("source", source_model, source_weak), ("target", target_model, target_weak)):
            if weak is not None:
                view.check_weak(full, weak, name)
        if aligner is not None and not isinstance(aligner, ALIGNERS):
            raise ParameterError(f"Multiview: the aligner should be an HMMAligner, not {aligner!r:.60}")
        told = [hash_of_model(one) for one in (*models, aligner)] if checkpoint is not None else []
        stages = self._stages(pairs, told, checkpoint, resume)
        progress = progress or QuietProgress()
        try:
            with using_threads(self.threads):
                given = Models(source_model, target_model, source_weak, target_weak, aligner)
                ready = self._models(pairs, given, stages, progress)
                self._learn(pairs, ready, view, target_selector, progress)
        finally:
            progress.finish()
        stages.discard()
        return self

    def _checked(self, bitext: Any, view: View) -> SentencePairs:
        pairs = as_sentence_pairs(bitext)
        if not len(pairs):
            raise BitextError(f"{pairs.source.name}: there are no sentences, so there is nothing to learn from")
        return SentencePairs(view.sentences(pairs.source), view.sentences(pairs.target), pairs.links)

    def _stages(
        self, pairs: SentencePairs, told: list[str | None], checkpoint: str | PathLike[str] | None, resume: bool
    ) -> Stages:
        fingerprint: dict[str, Any] = {}
        if checkpoint is not None:
            fingerprint = {"options": self.options_, "texts": text_hash(pairs), "given": told}
        return Stages(checkpoint, resume, fingerprint)

    def _models(self, pairs: SentencePairs, given: Models, stages: Stages, progress: Progress) -> Models:
        """All models, those that were not given made now."""
        source_weak = given.source_weak or without_words(given.source)
        target_weak = given.target_weak or without_words(given.target)
        aligner = given.aligner
        if aligner is None:
            fresh = HMMAligner(threads=self.threads)
            aligner = stages.model("aligner", lambda: fresh.fit(pairs.bitext(), progress=progress))
        return Models(given.source, given.target, source_weak, target_weak, aligner)

    def _learn(
        self, pairs: SentencePairs, models: Models, view: View, selector: Selector | None, progress: Progress
    ) -> None:
        features = self._features(models)
        judged = self._judged(pairs, models, features, progress)
        chosen = [selector or SELECTORS[name] for name in (self.source_choice, self.target_choice)]
        sides = (judged.source.candidates, judged.target.candidates)
        gold = [[choose(own) for own in side] for choose, side in zip(chosen, sides, strict=True)]
        start = MatchedView(features.first(), np.ones(2))
        found, self.trace_ = fit_multiview(
            judged.pairs, np.stack(gold, axis=1), start, rounds=self.rounds, l2=float(self.l2), progress=progress
        )  # fmt: skip
        self._fitted = Fitted(models, features, found)
        sides_ = zip(models[:2], (pairs.source, pairs.target), judged[:2], strict=True)
        self.agreement_ = np.array([_agreement(view, model, text, own) for model, text, own in sides_])

    def _features(self, models: Models) -> PairFeatures:
        view = VIEWS[self.task]
        source, target = (view.labels(model) for model in models[:2])
        threshold, least = float(self.threshold), LEAST[self.task]
        return PairFeatures(source, target, threshold, self.task == "parse", least, view.shared)

    def _judged(
        self, pairs: SentencePairs, models: Models, features: PairFeatures, progress: Progress | None = None
    ) -> Judged:
        """Candidates of both sides, and how their nodes are seen."""
        view, k = VIEWS[self.task], self.candidates
        sides = [
            analyses(view, view.sentences(text), full, weak, k, progress)
            for text, full, weak in zip((pairs.source, pairs.target), models[:2], models[2:4], strict=True)
        ]
        source, target = sides
        matrix = features.matrix(source.nodes, target.nodes, link_grids(pairs, models.aligner))
        counts = [(len(one), len(two)) for one, two in zip(source.nodes, target.nodes, strict=True)]
        made = CandidatePairs(list(zip(source.candidates, target.candidates, strict=True)), counts, matrix)
        return Judged(source, target, made)

    # --- predicting

    def predict(self, bitext: Any, *, rule: str | None = None, decoder: str | None = None) -> SentencePairs:
        """Both sides with what is found in them; with another `rule` or `decoder` than the option says, if given."""
        rule, decoder = rule or self.rule, decoder or self.decoder
        if rule not in RULES or decoder not in ("best", "nodes"):
            raise ParameterError(f"Multiview: rule should be one of {', '.join(RULES)}, and decoder best or nodes")
        learnt, view, pairs = self._learnt, VIEWS[self.task], as_sentence_pairs(bitext)
        pairs = SentencePairs(view.sentences(pairs.source), view.sentences(pairs.target), pairs.links)
        found: tuple[list[Any], list[Any]] = ([], [])
        with using_threads(self.threads):
            for start in range(0, len(pairs), PIECE):
                some = pairs.take(np.arange(start, min(start + PIECE, len(pairs))))
                judged = self._judged(some, learnt.models, learnt.features)
                if decoder == "best":
                    best = judged.pairs.best(learnt.view, rule)
                    for side, own in enumerate(judged[:2]):
                        found[side].extend(own.ranked[s][k] for s, k in enumerate(best[:, side].tolist()))
                else:
                    self._expected(some, judged, rule, found)
        sides = zip(learnt.models[:2], (pairs.source, pairs.target), found, strict=True)
        return SentencePairs(*(view.annotated(model, text, own) for model, text, own in sides))

    def _expected(
        self, some: SentencePairs, judged: Judged, rule: str, found: tuple[list[Any], list[Any]]
    ) -> None:  # fmt: skip
        """For each side what has the most right nodes in expectation."""
        view, models = VIEWS[self.task], self._learnt.models
        for s, scores in enumerate(judged.pairs.scores(self._learnt.view, rule)):
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            sides = zip((some.source, some.target), judged[:2], models[:2], found, strict=True)
            for side, (text, own, model, out) in enumerate(sides):
                out.append(view.expected(text, s, own.ranked[s], chances.sum(axis=1 - side), model))

    def score(self, bitext: Any) -> Score:
        """How good what is found on both sides together is, by the measure of the task: F1, accuracy or LAS."""
        view, gold = VIEWS[self.task], as_sentence_pairs(bitext)
        right = [view.sentences(side) for side in (gold.source, gold.target)]
        found = self.predict(gold)
        made: Score = view.score(view.joined([found.source, found.target]), view.joined(right))
        return made

    def separate(self, bitext: Any) -> SentencePairs:
        """The same by the full models, which know nothing of each other: what to compare with."""
        pairs, models = as_sentence_pairs(bitext), self._learnt.models
        return SentencePairs(models.source.predict(pairs.source), models.target.predict(pairs.target))

    def retrain(
        self,
        bitext: Any,
        source_text: Any = None,
        target_text: Any = None,
        progress: Progress | None = None,
        *,
        mixture: str | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> tuple[Any, Any]:
        """Two monolingual models that learn from both sides of a bitext as this one annotates them.

        Parameters
        ----------
        bitext
            As for `predict`.
        source_text, target_text : optional
            What the full models learnt from, which is learnt from again. Without it, there is the bitext alone.
        progress : Progress, optional
        mixture : "plain" or "equal", optional
            See `isogloss.tasks.joint.retraining.retrained`.
        checkpoint : path, optional
            A folder that keeps what is ready, until both are.
        resume : bool
            Go on from there.
        """
        pairs = as_sentence_pairs(bitext)
        models = self._learnt.models
        told: list[str | None] = []
        if checkpoint is not None:
            texts = (None if text is None else store.data_hash(text.to_bytes()) for text in (source_text, target_text))
            told = [hash_of_model(self), *texts, mixture]
        stages = self._stages(pairs, told, checkpoint, resume)
        found = self.predict(pairs)
        made = []
        sides = (
            ("source", models.source, source_text, found.source),
            ("target", models.target, target_text, found.target),
        )
        for name, model, text, added in sides:
            given = {"mixture": mixture, **stages.keeping(name)}
            made.append(stages.model(name, partial(retrained, model, text, added, progress, **given)))
        stages.discard()
        return made[0], made[1]

    @property
    def _learnt(self) -> Fitted:
        fitted: Fitted | None = vars(self).get("_fitted")
        if fitted is None:
            raise self._has_not_learnt
        return fitted

    @property
    def models_(self) -> Models:
        """The full and the weak models of both sides, and the aligner."""
        return self._learnt.models

    @property
    def n_features_(self) -> int:
        """How many weights pairs of nodes have."""
        return len(self._learnt.view.theta)

    def feature_weights(self) -> dict[str, float]:
        """What each feature of a pair of nodes adds to a score, and what the log-probabilities of both sides count."""
        learnt = self._learnt
        named = dict(zip(learnt.features.names, learnt.view.theta.tolist(), strict=True))
        return named | {"source model": float(learnt.view.scale[0]), "target model": float(learnt.view.scale[1])}

    # --- keeping

    def save(self, path: str | PathLike[str], *, retrained: tuple[Any, Any] | None = None) -> None:
        """Write a folder with what was learnt; retrained models lie in it as ``source`` and ``target``."""
        made = self._to_saved()
        inside = {} if retrained is None else dict(
            zip(("source", "target"), (one._to_saved() for one in retrained), strict=True)
        )  # fmt: skip
        store.save(path, kind=made.kind, options=made.options, arrays=made.arrays, meta=made.meta, inside=inside)

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays: dict[str, NDArray[Any]] = {"theta": learnt.view.theta, "scale": learnt.view.scale}
        meta: dict[str, Any] = {"trace": self.trace_.tolist(), "models": {}}
        meta["agreement"] = self.agreement_.tolist()
        for name, model in learnt.models._asdict().items():
            own, about = store.hold(name, model)
            arrays |= own
            meta["models"][name] = about
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved bilingual model"):
            made, meta = cls.of_options(saved.options), saved.meta
            view = VIEWS[made.task]
            held = [
                store.held(
                    name, saved.arrays, meta["models"][name], *(ALIGNERS if name == "aligner" else view.classes())
                )
                for name in Models._fields
            ]
            models = Models(*held)
            features = made._features(models)
            layout: Layout = {
                "theta": Numbers("float64", len(features.names)), "scale": Numbers("float64", 2, least=0.0)
            }  # fmt: skip
            arrays = check(saved.arrays, layout, "the weights of the saved bilingual model")
            made._fitted = Fitted(models, features, MatchedView(arrays["theta"], arrays["scale"]))
            made.trace_ = vector(meta["trace"], "trace")
            made.agreement_ = vector(meta["agreement"], "agreement")
        return made
