"""`JointParserAligner`: trees of both sides of a bitext and the links between their words, found together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.joining import join_treebanks
from isogloss.data.links import Links
from isogloss.data.tree_pairs import TreePairs, as_tree_pairs
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError
from isogloss.features.table import KEYS, Index
from isogloss.layout import Layout, Numbers, check, texts
from isogloss.learners.meanfield import CoupledLikelihood, FieldLikelihood, MeanField, mean_field
from isogloss.learners.optimisers import Lbfgs
from isogloss.learners.runner import run
from isogloss.metrics.pairs import PairScore, score_pairs
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Stack
from isogloss.tasks.align import HMMAligner, Model1Aligner, Model2Aligner
from isogloss.tasks.joint.agreement import Agreement, templates_of
from isogloss.tasks.joint.given import hash_of_model
from isogloss.tasks.joint.long_pairs import Answers, answers_apart, are_short, merged, without_long
from isogloss.tasks.joint.opinions import Opinions, fold_rows, known_links, link_component, oracle, tree_component
from isogloss.tasks.joint.options import JointPairOptions
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.transfer.stages import Stages

__all__ = ["Found", "JointParserAligner", "Models", "annotated"]

ALIGNERS = (HMMAligner, Model1Aligner, Model2Aligner)
PIECE = 200
"""Pairs that are worked on together when a text is parsed."""
TREES = ("head", "deprel")
TOLERANCE = 1e-4
"""The relative gain of the objective below which learning ends."""
_LAYOUT: Layout = {"keys": KEYS, "weights": Numbers("float64", "features")}


class Models(NamedTuple):
    """The separate models."""

    source: DependencyParser
    target: DependencyParser
    aligner: Any


class Fitted(NamedTuple):
    """What was learnt: the separate models, and weights of agreement."""

    models: Models
    tags: tuple[str, ...]
    keys: Index
    weights: NDArray[np.float64]


class Found(NamedTuple):
    """Posteriors of pairs that were parsed and aligned together."""

    source: Stack
    """float64[n + 1, n + 1] of each sentence, as (head, child)"""
    target: Stack
    links: list[NDArray[np.float32]]
    """float32[n_source, n_target] of each pair"""


class JointParserAligner(JointPairOptions):
    r"""Parses both sides of a bitext and aligns their words, all at once.

    .. math:: P(a, t, t') \propto \exp\Big[\log p(t) + \log p(t') + \sum_{(i,j) \in a} \log\tfrac{p_{ij}}{1 - p_{ij}}
        + \sum_c w_c\, n_c(a, t, t')\Big]

    The first three terms are separate models: a parser of each side and an aligner, as far as links of trees and words
    tell. The last one counts configurations of links of both trees whose words are linked, and has learnt weights; with
    weights 0 the separate models are left. The distribution is approximated by structured mean field [1]_, with the
    configurations of quasi-synchronous grammars [2]_.

    Parameters
    ----------
    linking : "any" or "itg"
        What sets of links may be.
    coupling : "all", "mono" or "none"
        Which configurations have weights.
    grain : "both", "coarse" or "fine"
        Whether weights are of configurations and order alone, of these with tags of the words, or both.
    unlinked : "open" or "absent"
        What links in training mean between words of which neither is linked: nothing, or that there is none.
    objective : "fields" or "bound"
        What weights raise: the probability of each tree, and of links that are known, given what the separate models
        think of the rest, which is exact; or the bound of mean field on the probability of all together [1]_.
    order, passes, tags
        Options of the parsers.
    folds : int
        Parts of the training text; each is judged by parsers and aligners that learnt from the others.
    prune_heads, prune_links : float
        What is less probable by the separate models is not looked at.
    min_count, l2, iterations
        Options of the weights.
    sweeps, tolerance
        Options of mean field.
    threshold : float
        Links with a higher posterior are predicted.
    seed : int
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_steps]
        The objective of training after each step: log probability of what is known, as mean field can tell.
    reading_ : Reading or None

    References
    ----------
    .. [1] Burkett, Blitzer and Klein, Joint parsing and alignment with weakly synchronized grammars, NAACL 2010. We
       differ: trees are dependencies, components are updated in turn, and separate models count as they are when
       weights are 0, which are penalised as differences from that.
    .. [2] Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 4.7.

    Examples
    --------
    >>> from isogloss import samples
    >>> from isogloss.data.tree_pairs import TreePairs
    >>> trees = [Treebank.from_bytes(samples.trees("en-de", side).encode()) for side in ("source", "target")]
    >>> pairs = TreePairs(*trees, samples.gold("en-de")[: len(trees[0])])
    >>> joint = JointParserAligner(order=1, passes=2, folds=2, iterations=3).fit(pairs)
    >>> found = joint.predict(pairs)
    >>> len(found) == len(pairs), found.links is not None
    (True, True)
    """

    _kind: ClassVar[str] = "joint.pairs"

    # --- learning

    def fit(
        self,
        pairs: TreePairs,
        progress: Progress | None = None,
        *,
        source_parser: DependencyParser | None = None,
        target_parser: DependencyParser | None = None,
        aligner: Any = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from trees of both sides and, where there are any, links.

        Parameters
        ----------
        pairs : TreePairs
            Without links, these are summed over: trees alone say what agrees.
        progress : Progress, optional
        source_parser, target_parser : DependencyParser, optional
            Parsers that learnt from other text. Without them, parsers learn from these trees; no sentence is judged
            by one that has seen its tree.
        aligner : HMMAligner, Model1Aligner or Model2Aligner, optional
            One that has learnt; otherwise an `HMMAligner` learns from these sentences in the same way.
        checkpoint : path, optional
            A folder that keeps the models that are ready, until `fit` ends.
        resume : bool
            Go on from there.
        """
        self.check_params()
        pairs = without_long(as_tree_pairs(pairs))
        _check_training(pairs)
        if pairs.links is None and self.unlinked != "open":
            raise ParameterError(
                "JointParserAligner: unlinked is about links that are known. Leave it out, or give pairs with links"
            )
        if aligner is not None and not isinstance(aligner, ALIGNERS):
            raise ParameterError(f"JointParserAligner: the aligner should be an HMMAligner, not {aligner!r}")
        fingerprint: dict[str, Any] = {}
        if checkpoint is not None:
            given = [hash_of_model(one) for one in (source_parser, target_parser, aligner)]
            fingerprint = {"options": self.options_, "texts": store.data_hash(pairs.to_bytes(), *given)}
        stages = Stages(checkpoint, resume, fingerprint)
        progress = progress or QuietProgress()
        try:
            with using_threads(self.threads):
                self._learn(pairs, Models(source_parser, target_parser, aligner), stages, progress)  # type: ignore[arg-type]
        finally:
            progress.finish()
        stages.discard()
        return self

    def _learn(self, pairs: TreePairs, given: Models, stages: Stages, progress: Progress) -> None:
        models = self._models(pairs, given, "whole", stages, progress)
        self._agree(pairs, models, self._cross_fitted(pairs, given, stages, progress), stages, progress)

    def _agree(
        self, pairs: TreePairs, models: Models, opinions: Opinions, stages: Stages, progress: Progress
    ) -> None:  # fmt: skip
        """Learn the weights of agreement, from what other models think of the pairs."""
        tags = tuple(sorted({*opinions.source_tags, *opinions.target_tags}))
        components = self._components(opinions, models)
        agreement = Agreement(components, opinions, _numbers(tags), self.coupling)
        templates = templates_of(self.grain)
        index = templates.index(agreement.parts, min_count=self.min_count)
        known = [
            components[0] if pairs.links is None else known_links(components[0], pairs.links, self.unlinked),
            oracle(components[1], pairs.source, opinions.source),
            oracle(components[2], pairs.target, opinions.target),
        ]
        told = (components, known, agreement.coupling, agreement.features(templates, index))
        objective: Any = FieldLikelihood(*told)
        if self.objective == "bound":
            objective = CoupledLikelihood(*told, sweeps=self.sweeps, tolerance=self.tolerance)
        learner = Lbfgs(objective, l2=float(self.l2))
        result = run(
            learner, learner.init(), iterations=self.iterations, tolerance=TOLERANCE, progress=progress,
            name="Learning agreement", every=None, **stages.keeping("weights"),
        )  # fmt: skip
        self._fitted = Fitted(models, tags, index, np.array(result.state.weights))
        self.trace_ = np.asarray(result.trace)

    def _models(self, pairs: TreePairs, given: Models, name: str, stages: Stages, progress: Progress) -> Models:
        """The separate models: those that were given, or such as learn from these pairs."""
        made = DependencyParser(
            order=self.order, iterations=self.passes, tags=self.tags, seed=self.seed, threads=self.threads
        )

        def learnt(side: str, trees: Treebank) -> DependencyParser:
            fresh, stage = DependencyParser(**made.get_params()), f"{side}-{name}"
            return stages.model(stage, lambda: fresh.fit(trees, None, progress, **stages.keeping(stage)))

        aligner = given.aligner
        if aligner is None:
            fresh = HMMAligner(threads=self.threads)
            aligner = stages.model(f"aligner-{name}", lambda: fresh.fit(pairs.bitext(), progress=progress))
        return Models(
            given.source or learnt("source", pairs.source), given.target or learnt("target", pairs.target), aligner
        )

    def _cross_fitted(self, pairs: TreePairs, given: Models, stages: Stages, progress: Progress) -> Opinions:
        """What models think of the pairs that have not learnt from them."""
        if None not in given:
            return Opinions.of(pairs, *given)
        parts, every = [], np.arange(len(pairs))
        for number, rows in enumerate(fold_rows(len(pairs), self.folds)):
            others = pairs.take(np.setdiff1d(every, rows))
            models = self._models(others, given, f"without-{number}", stages, progress)
            parts.append(Opinions.of(pairs.take(rows), *models))
        return Opinions.joined(parts)

    def _components(self, opinions: Opinions, models: Models) -> list[Batch[Any]]:
        return [
            link_component(opinions.links, self.linking, self.prune_links),
            tree_component(opinions.source, models.source.projective_, self.prune_heads),
            tree_component(opinions.target, models.target.projective_, self.prune_heads),
        ]

    # --- predicting

    def predict(self, pairs: TreePairs) -> TreePairs:
        """The pairs with the trees and links that are found; heads and links that they have are not looked at.

        Trees are those with the most right heads in expectation, relations are chosen by the parsers given the trees.
        Pairs with a sentence of more than `isogloss.tasks.parse.cutting.LONGEST` words are left to the separate models.
        """
        pairs = as_tree_pairs(pairs)
        short = are_short(pairs)
        together = self._answers(self._opinions(pairs.take(np.flatnonzero(short))))
        apart = answers_apart(pairs.take(np.flatnonzero(~short)), *self._learnt.models)
        return annotated(pairs, merged(short, together, apart), self._learnt.models, self.threshold)

    def _decoded(self, pairs: TreePairs, judged: Iterable[Opinions]) -> TreePairs:
        """The same, from what the separate models think of all pairs."""
        return annotated(pairs, self._answers(judged), self._learnt.models, self.threshold)

    def _answers(self, judged: Iterable[Opinions]) -> Answers:
        """Heads and posteriors of links."""
        answers = Answers([], [], [])
        with using_threads(self.threads):
            for found in self._found(judged):
                for side, component in enumerate(found.components[1:]):
                    expected = component.scores.like(kept(_expected(component)))
                    answers[side].extend(component.with_scores(expected).argmax())
                answers.links.extend(_link_posteriors(found.components[0]))
        return answers

    def predict_proba(self, pairs: TreePairs) -> Found:
        """Posteriors of heads of both sides and of links, by the factors of mean field."""
        pairs = as_tree_pairs(pairs)
        trees: tuple[list[Any], list[Any]] = ([], [])
        links: list[NDArray[np.float32]] = []
        with using_threads(self.threads):
            for found in self._found(self._opinions(pairs)):
                for side, component in enumerate(found.components[1:]):
                    trees[side].extend(component.marginals())
                links += _link_posteriors(found.components[0])
        return Found(Stack.of(trees[0], "heads", 2), Stack.of(trees[1], "heads", 2), links)

    def separate(self, pairs: TreePairs) -> TreePairs:
        """The same by the separate models, which know nothing of each other: what to compare with."""
        pairs, models = as_tree_pairs(pairs), self._learnt.models
        trees = models.source.predict(pairs.source), models.target.predict(pairs.target)
        return TreePairs(*trees, models.aligner.predict(pairs.bitext()))

    def score(self, pairs: TreePairs) -> ParseScore:
        """UAS, LAS and the rest of `isogloss.metrics.score_trees`, of both sides together; see `scores` for each."""
        gold = as_tree_pairs(pairs)
        found = self.predict(gold)
        return score_trees(
            join_treebanks([found.source, found.target]), join_treebanks([gold.source, gold.target]), columns=TREES
        )

    def scores(self, pairs: TreePairs, *, content: bool = False) -> PairScore:
        """Scores of each side and, where the pairs have links, of links; see `isogloss.metrics.pairs.score_pairs`."""
        gold = as_tree_pairs(pairs)
        return score_pairs(self.predict(gold), gold, content=content)

    def _opinions(self, pairs: TreePairs) -> Iterator[Opinions]:
        """What the separate models think of pairs, some at a time."""
        for start in range(0, len(pairs), PIECE):
            some = pairs.take(np.arange(start, min(start + PIECE, len(pairs))))
            yield Opinions.of(some, *self._learnt.models)

    def _found(self, judged: Iterable[Opinions]) -> Iterator[MeanField]:
        """Mean field over pairs, some at a time."""
        learnt, templates = self._learnt, templates_of(self.grain)
        for opinions in judged:
            components = self._components(opinions, learnt.models)
            agreement = Agreement(components, opinions, _numbers(learnt.tags), self.coupling)
            worth = agreement.features(templates, learnt.keys).scores(learnt.weights)
            yield mean_field(components, agreement.coupling, worth, sweeps=self.sweeps, tolerance=self.tolerance)

    @property
    def _learnt(self) -> Fitted:
        fitted: Fitted | None = vars(self).get("_fitted")
        if fitted is None:
            raise self._has_not_learnt
        return fitted

    @property
    def models_(self) -> Models:
        """The separate models: the parsers of both sides and the aligner."""
        return self._learnt.models

    @property
    def n_features_(self) -> int:
        """How many weights there are."""
        return len(self._learnt.weights)

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays: dict[str, NDArray[Any]] = {"keys": learnt.keys.keys, "weights": learnt.weights}
        meta: dict[str, Any] = {"tags": list(learnt.tags), "trace": self.trace_.tolist(), "models": {}}
        for name, model in learnt.models._asdict().items():
            own, about = store.hold(name, model)
            arrays |= own
            meta["models"][name] = about
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved joint model"):
            made, meta = cls.of_options(saved.options), saved.meta
            arrays = check(saved.arrays, _LAYOUT, "the weights of the saved joint model")
            held = {
                name: store.held(name, saved.arrays, meta["models"][name], *classes)
                for name, classes in zip(
                    Models._fields, ((DependencyParser,), (DependencyParser,), ALIGNERS), strict=True
                )
            }
            made._fitted = Fitted(
                Models(**held), tuple(texts(meta["tags"], "tags")), Index(arrays["keys"]), arrays["weights"]
            )
            made.trace_ = np.array(meta["trace"], np.float64)
        return made


def _numbers(tags: tuple[str, ...]) -> dict[str, int]:
    return {tag: number for number, tag in enumerate(tags, start=1)}


def _expected(component: Batch[Any]) -> NDArray[np.float64]:
    """Posteriors of links, −∞ for those that are not looked at."""
    return np.where(component.scores.values > -np.inf, component.marginals().values, -np.inf)


def _link_posteriors(component: Batch[Any]) -> list[NDArray[np.float32]]:
    return [np.minimum(one, 1.0).astype(np.float32) for one in component.marginals()]


def annotated(pairs: TreePairs, found: Answers, models: Models, threshold: float) -> TreePairs:
    """The pairs with these heads, with relations that parsers give them, and with links above a threshold."""
    source = _labelled(models.source, pairs.source, found.source)
    target = _labelled(models.target, pairs.target, found.target)
    return TreePairs(source, target, Links.above(found.links, threshold, TreePairs(source, target).bitext()))


def _labelled(parser: DependencyParser, treebank: Treebank, heads: list[Any]) -> Treebank:
    """The treebank with these heads, and the relations that the parser gives them."""
    whole = np.concatenate([np.zeros(0, np.int32), *(np.asarray(own, np.int32) for own in heads)])
    _, seen = parser._given(treebank)
    parsed = seen.with_predictions(heads=whole)
    if not parser.labels_:
        return parsed
    blank = parsed.with_columns(deprel=["_"] * treebank.n_words)
    relations = parser.complete(blank, confidence=False).columns["deprel"]
    return parsed.with_predictions(deprel=relations)


def _check_training(pairs: TreePairs) -> None:
    if len(pairs) < 2:
        raise TreebankError(f"{pairs.source.name}: {len(pairs)} pairs are too few to learn from. Give two at least")
    for side in (pairs.source, pairs.target):
        side.check_trees()
        if not (side.heads >= 0).any():
            raise TreebankError(f"{side.name}: no word has a head, so there is nothing to learn. Is it the right file?")
