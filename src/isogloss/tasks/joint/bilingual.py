"""`BilingualParser`: trees of one language, helped by a parser of the other and word links between both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.tree_pairs import TreePairs, as_tree_pairs
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError
from isogloss.features import KeyTable
from isogloss.features.table import KEYS, Index
from isogloss.layout import Layout, Numbers, check
from isogloss.learners.passes import Course, LearntInPasses, learner_of
from isogloss.learners.runner import Keeping
from isogloss.metrics.pairs import PairScore, score_pairs
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.pass_options import PassSettings
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack
from isogloss.structures.loopy_pairs import LoopyPairs
from isogloss.structures.tree_parts import TreeParts
from isogloss.tasks.align import HMMAligner
from isogloss.tasks.joint.coupled import ALIGNERS, PIECE, Models
from isogloss.tasks.joint.given import hash_of_model
from isogloss.tasks.joint.long_pairs import Answers, answers_apart, are_short, merged, without_long
from isogloss.tasks.joint.looking import (
    Looked,
    SourceView,
    bilingual_templates,
    configurations_of,
    look,
    source_view,
)
from isogloss.tasks.joint.opinions import fold_rows
from isogloss.tasks.joint.options import BilingualOptions
from isogloss.tasks.joint.pair_model import Demands, KnownTrees, PairModel
from isogloss.tasks.joint.pairs import Found, annotated
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.inference import cells_of
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer, count_keys
from isogloss.tasks.parse.training import FLOOR
from isogloss.tasks.transfer.stages import Stages

__all__ = ["BilingualParser"]

FAMILIES = ("valence",)
"""Larger parts of target trees that have scores."""
LEAST = 1e-3
"""Parts whose belief is this close to what it should be are left alone."""
TAG_FOLDS = 5
"""Parts of the training text that are tagged by taggers that learnt from the others, if tags are predicted."""
_LAYOUT: Layout = {"keys": KEYS, "weights": Numbers("float32", "features")}


class FittedPairs(NamedTuple):
    """What was learnt: the separate models, weights of target trees, and of what fits together."""

    models: Models
    scorer: PartScorer
    keys: Index
    weights: NDArray[np.float32]


class BilingualParser(BilingualOptions, LearntInPasses[FittedPairs]):
    r"""Parses one language with the help of another: a factor graph over two trees and the word links between them.

    .. math:: p(t, a, s \mid w, w') \propto \exp\Big[\sum_i w_i f_i(t, w) + \sum_j w_j g_j(t, s, a, w, w')
        + h(s, w')\Big]

    with target tree t, word links a and source tree s [1]_. The parser of the source is kept as it is (h); weights of
    target trees (links and numbers of children), of word links and fertilities, and of configurations of links of both
    trees are learnt together, from target trees alone: word links and source trees are summed out, by loopy belief
    propagation. Target trees are then those with the most right heads in expectation.

    Parameters
    ----------
    coupling : "all", "mono", "synch" or "none"
        Which configurations there are (`isogloss.structures.PairParts`). With "none" it is a parser of the target
        language alone.
    source_trees : "joint", "best" or "given"
        Whether source trees are summed over, or known.
    weights : "learnt" or "fixed"
        Whether configurations have learnt weights; or a target parser that learnt alone is taken, and 1 for mono.
    grain : "both", "coarse" or "fine"
        Whether weights are of configurations and order, of these with tags of the words, or both.
    heads : int
        Number of the most probable heads of each source word that are looked at.
    prune_links : float
        Word links that the aligner finds less probable are not looked at.
    rounds : int
        Maximum number of rounds of belief propagation.
    order, tags, passes, folds
        Options of the separate parsers.
    iterations, rate, l2, batch, min_count, seed
        Options of the passes in which weights are learnt.
    threshold : float
        Word links with a higher belief are predicted.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_passes]
        Loss of a word in each pass, as it was met.
    tuning_ : float64[n_passes]
        UAS on dev after each pass; empty without dev.

    References
    ----------
    .. [1] Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 4.7. We differ:
       word links are candidates by their posterior, which is the score that they begin with; the order of words is
       seen; AdaGrad in place of stochastic gradients.

    Examples
    --------
    >>> from isogloss import samples
    >>> from isogloss.data.treebank import Treebank
    >>> trees = [Treebank.from_bytes(samples.trees("en-de", side).encode()) for side in ("source", "target")]
    >>> pairs = TreePairs(*trees)
    >>> parser = BilingualParser(passes=2, folds=2, iterations=3).fit(pairs)
    >>> found = parser.predict(pairs.take([1]))
    >>> found.target.words(0), found.target.heads.tolist()
    (('Die', 'Kinder', 'spielen', 'im', 'Garten', '.'), [2, 3, 0, 5, 3, 3])
    """

    _kind: ClassVar[str] = "joint.bilingual"
    _saved_as: ClassVar[str] = "the saved bilingual parser"

    # --- learning

    def fit(
        self,
        pairs: TreePairs,
        dev: TreePairs | None = None,
        progress: Progress | None = None,
        *,
        source_parser: DependencyParser | None = None,
        target_parser: DependencyParser | None = None,
        aligner: Any = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from target trees and a parser of the source.

        Parameters
        ----------
        pairs : TreePairs
            With trees of the target; those of the source are looked at where no parser is given, or with
            ``source_trees="given"``. Links are not looked at.
        dev : TreePairs, optional
            Other pairs; the number of passes is that of the best UAS on them.
        progress : Progress, optional
        source_parser : DependencyParser, optional
            One that learnt from other text.
        target_parser : DependencyParser, optional
            One that learnt from the same target trees, which gives tags, relations and candidates of links; with
            ``weights="fixed"`` it should have no larger parts than valences. Otherwise one learns.
        aligner : HMMAligner, Model1Aligner or Model2Aligner, optional
            One that has learnt; otherwise an `HMMAligner` learns from these sentences.
        checkpoint : path, optional
            A folder that keeps the models that are ready, until `fit` ends.
        resume : bool
            Go on from there.
        """
        self.check_params()
        pairs, dev = without_long(as_tree_pairs(pairs)), None if dev is None else without_long(as_tree_pairs(dev))
        self._check(pairs, dev)
        if aligner is not None and not isinstance(aligner, ALIGNERS):
            raise ParameterError(f"BilingualParser: the aligner should be an HMMAligner, not {aligner!r}")
        fingerprint: dict[str, Any] = {}
        if checkpoint is not None:
            given = [hash_of_model(one) for one in (source_parser, target_parser, aligner)]
            texts = [pairs.to_bytes(), b"" if dev is None else dev.to_bytes()]
            fingerprint = {"options": self.options_, "texts": store.data_hash(*texts, *given)}
        stages = Stages(checkpoint, resume, fingerprint)
        progress = progress or QuietProgress()
        try:
            with using_threads(self.threads):
                models = self._models(pairs, Models(source_parser, target_parser, aligner), stages, progress)  # type: ignore[arg-type]
                view = self._source(pairs, source_parser, models, stages, progress)
                own = target_parser is None and self.weights == "learnt"
                tagged = _held_out_tags(pairs.target, models.target, progress, self.threads) if own else None
                self._learn(pairs, dev, models, view, stages, progress, tagged)
        finally:
            progress.finish()
        stages.discard()
        return self._learnt_from(pairs.target)

    def _check(self, pairs: TreePairs, dev: TreePairs | None) -> None:
        """What is to be learnt from has target trees, dev as well, and source trees where these are taken as given."""
        if len(pairs) < 2:
            raise TreebankError(f"{pairs.target.name}: {len(pairs)} pairs are too few to learn from. Give two at least")
        pairs.target.check_trees()
        for some, what in ((pairs, "learn"), (dev, "choose the number of passes on")):
            if some is not None and not (some.target.heads >= 0).any():
                raise TreebankError(
                    f"{some.target.name}: no word has a head, so there is nothing to {what}. Is it the right file?"
                )
            if some is not None and self.source_trees == "given":
                some.source.check_trees(complete=True)

    def _parser(self, **options: Any) -> DependencyParser:
        return DependencyParser(
            iterations=self.passes, tags=self.tags, seed=self.seed, threads=self.threads, **options
        )  # fmt: skip

    def _models(self, pairs: TreePairs, given: Models, stages: Stages, progress: Progress) -> Models:
        """The separate models: those that were given, and such as learn from these pairs."""
        source, target, aligner = given
        if target is None:
            alone = self._parser(order=2, factors=FAMILIES, labels="second")
            target = stages.model("target", lambda: alone.fit(pairs.target, None, progress, **stages.keeping("target")))
        if self.weights == "fixed" and (target.families_ != FAMILIES or target.labelling != "second"):
            raise ParameterError(
                "BilingualParser: with weights 'fixed', the target parser should score links and valences alone. Train "
                "it with order=2, factors=['valence'] and labels='second', or leave it out"
            )
        if source is None:
            source = self._learnt_source(pairs, "source", stages, progress)
        if aligner is None:
            fresh = HMMAligner(threads=self.threads)
            aligner = stages.model("aligner", lambda: fresh.fit(pairs.bitext(), progress=progress))
        return Models(source, target, aligner)

    def _learnt_source(self, pairs: TreePairs, name: str, stages: Stages, progress: Progress) -> DependencyParser:
        if not (pairs.source.heads >= 0).any():
            raise TreebankError(
                f"{pairs.source.name}: no word has a head, and no parser of the source was given. One of them is needed"
            )
        made = self._parser(order=self.order)
        return stages.model(name, lambda: made.fit(pairs.source, None, progress, **stages.keeping(name)))

    def _source(
        self, pairs: TreePairs, given: DependencyParser | None, models: Models, stages: Stages, progress: Progress
    ) -> SourceView:
        """What a parser thinks of the source sentences that has not learnt from them."""
        if given is not None or self.source_trees == "given":
            return source_view(models.source, pairs.source, self.source_trees, self.heads)
        parts, every = [], np.arange(len(pairs))
        for number, rows in enumerate(fold_rows(len(pairs), self.folds)):
            others = pairs.take(np.setdiff1d(every, rows))
            parser = self._learnt_source(others, f"without-{number}", stages, progress)
            some = pairs.source.take(rows)
            own = source_view(parser, some, self.source_trees, self.heads)
            # columns are those that the parser that is kept looks at, tags those of a tagger that has not seen them
            parts.append(own._replace(words=models.source._learnt.encode(parser._given(some)[1])))
        return SourceView.joined(parts)

    def _learn(
        self, pairs: TreePairs, dev: TreePairs | None, models: Models, view: SourceView, stages: Stages,
        progress: Progress, tagged: Treebank | None,
    ) -> None:  # fmt: skip
        """Weights of target trees and of what fits together; `tagged` has the target sentences with held-out tags."""
        learnt = models.target._learnt
        templates, demands = bilingual_templates(self.grain), self._demands(models)
        if self.weights == "fixed":
            self._take(
                FittedPairs(models, learnt.scorer, Index(np.zeros(0, np.uint64)), np.zeros(0, np.float32)),
                np.zeros(0), np.zeros(0),
            )  # fmt: skip
            return
        progress.start("Collecting features", 1)
        looked = self._look(pairs, models, view, heads=pairs.target.heads, tagged=tagged)
        heads = _nearest(pairs, looked, demands)
        features = FeatureSet.of(learnt.columns, FAMILIES, models.target.link_templates)
        table = KeyTable.of(
            count_keys(looked.target, features, looked.candidates.target, FAMILIES, heads, support="tags")
        )
        scorer = PartScorer(features, table, np.zeros(0, np.float32))  # the learner has the weights
        index = templates.index(PairModel.features_of(looked, demands), min_count=self.min_count)
        model = PairModel(looked, demands, scorer, templates, index)
        settings = PassSettings("likelihood", self.iterations, self.rate, float(self.l2), self.batch, self.seed)
        known = KnownTrees(heads, pairs.target.offsets)
        learner = learner_of(model, known, settings, progress.within, least=LEAST, damping=0.0, floor=FLOOR)
        course = Course(self.iterations, progress, Keeping(**stages.keeping("weights")))
        score = None if dev is None else self._uas(dev, models, features, table, index)
        passed = course.run(learner, "Learning trees of pairs", score, "UAS {:.2f} on dev")
        fitted = self._packed(models, features, table, index, passed.weights)
        words = float(np.count_nonzero(pairs.target.heads >= 0))
        self._take(fitted, passed.losses(words), passed.scores)

    def _packed(
        self, models: Models, features: FeatureSet, table: KeyTable, index: Index, weights: NDArray[np.float32]
    ) -> FittedPairs:
        n = len(table)
        scorer = PartScorer.packed(features, table.keys, weights[:n])
        return FittedPairs(models, scorer, index, np.ascontiguousarray(weights[n:], np.float32))

    def _uas(self, dev: TreePairs, models: Models, features: FeatureSet, table: KeyTable, index: Index) -> Any:
        """UAS of target trees of held-out pairs."""
        view = source_view(models.source, dev.source, self.source_trees, self.heads)
        looked, known = self._look(dev, models, view), dev.target.heads >= 0

        def uas(weights: NDArray[np.float32]) -> float:
            fitted = self._packed(models, features, table, index, weights)
            found = self._beliefs(fitted, looked).most_right("target")
            heads = np.concatenate([np.zeros(0, np.int64), *found])
            return 100 * float(np.mean((heads == dev.target.heads)[known])) if known.any() else 0.0

        return uas

    def _demands(self, models: Models) -> Demands:
        shapes = [one._learnt.shape for one in (models.target, models.source)]
        constraints = ["projective" if shape.projective else "tree" for shape in shapes]
        return Demands(
            constraints[0], constraints[1], True, FAMILIES, configurations_of(self.coupling), self.rounds
        )  # fmt: skip

    def _look(
        self, pairs: TreePairs, models: Models, view: SourceView, heads: NDArray[np.int32] | None = None,
        tagged: Treebank | None = None,
    ) -> Looked:  # fmt: skip
        posteriors = models.aligner.predict_proba(pairs.bitext())
        least, known = float(self.prune_links), self.source_trees != "joint"
        return look(pairs, view, models.target, posteriors, least, known=known, heads=heads, tagged=tagged)

    # --- predicting

    def _beliefs(self, fitted: FittedPairs, looked: Looked) -> LoopyPairs:
        """The distributions of pairs."""
        mono = 1.0 if self.weights == "fixed" and self.coupling == "mono" else 0.0
        templates = bilingual_templates(self.grain)
        model = PairModel(looked, self._demands(fitted.models), fitted.scorer, templates, fitted.keys, mono)
        return model.batch(fitted.weights, np.arange(len(looked)))

    def _found(self, pairs: TreePairs) -> Iterator[LoopyPairs]:
        """Some pairs at a time."""
        fitted = self._learnt
        if self.source_trees == "given":
            pairs.source.check_trees(complete=True)
        for start in range(0, len(pairs), PIECE):
            some = pairs.take(np.arange(start, min(start + PIECE, len(pairs))))
            view = source_view(fitted.models.source, some.source, self.source_trees, self.heads)
            yield self._beliefs(fitted, self._look(some, fitted.models, view))

    def predict(self, pairs: TreePairs) -> TreePairs:
        """The pairs with target trees and word links that are found, and the source trees that go with them.

        Trees are those with the most right heads in expectation, relations are chosen by the parsers given the trees.
        Target trees and links that the pairs have are not looked at. Pairs with a sentence of more than
        `isogloss.tasks.parse.cutting.LONGEST` words are left to the separate models.
        """
        pairs, models = as_tree_pairs(pairs), self._learnt.models
        short, together = are_short(pairs), Answers([], [], [])
        with using_threads(self.threads):
            for found in self._found(pairs.take(np.flatnonzero(short))):
                together.source.extend(found.most_right("source"))
                together.target.extend(found.most_right("target"))
                together.links.extend(one.astype(np.float32) for one in found.beliefs_of_links())
            apart = answers_apart(pairs.take(np.flatnonzero(~short)), *models)
            return annotated(pairs, merged(short, together, apart), models, self.threshold)

    def predict_proba(self, pairs: TreePairs) -> Found:
        """Beliefs about heads of both sides and word links."""
        pairs = as_tree_pairs(pairs)
        with using_threads(self.threads):
            found = list(self._found(pairs))
        stacks = [
            Stack.of([one for some in found for one in some.beliefs_of_heads(side)], "heads", 2)
            for side in ("source", "target")
        ]
        links = [one.astype(np.float32) for some in found for one in some.beliefs_of_links()]
        return Found(stacks[0], stacks[1], links)

    def separate(self, pairs: TreePairs) -> TreePairs:
        """The same by the separate models, which know nothing of each other: what to compare with."""
        pairs, models = as_tree_pairs(pairs), self._learnt.models
        trees = models.source.predict(pairs.source), models.target.predict(pairs.target)
        return TreePairs(*trees, models.aligner.predict(pairs.bitext()))

    def score(self, pairs: TreePairs) -> ParseScore:
        """UAS, LAS and the rest of `isogloss.metrics.score_trees` of the target."""
        gold = as_tree_pairs(pairs)
        return score_trees(self.predict(gold).target, gold.target)

    def scores(self, pairs: TreePairs, *, content: bool = False) -> PairScore:
        """Scores of each side and, where the pairs have links, of links; see `isogloss.metrics.pairs.score_pairs`."""
        gold = as_tree_pairs(pairs)
        return score_pairs(self.predict(gold), gold, content=content)

    @property
    def models_(self) -> Models:
        """The separate models: the parsers of both sides and the aligner."""
        return self._learnt.models

    @property
    def n_features_(self) -> int:
        """How many weights there are."""
        return self._learnt.scorer.n_features + len(self._learnt.weights)

    # --- keeping

    def _to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        learnt = self._learnt
        arrays: dict[str, NDArray[Any]] = {
            "table": learnt.scorer.table.slots, "keys": learnt.keys.keys, "weights": learnt.weights,
        }  # fmt: skip
        meta: dict[str, Any] = {"models": {}}
        for name, model in learnt.models._asdict().items():
            own, meta["models"][name] = store.hold(name, model)
            arrays |= own
        return arrays, meta

    def _of_parts(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> FittedPairs:
        wanted = zip(Models._fields, ((DependencyParser,), (DependencyParser,), ALIGNERS), strict=True)
        models = Models(*(store.held(name, arrays, meta["models"][name], *classes) for name, classes in wanted))
        own = check(arrays, _LAYOUT, self._saved_as)
        features = FeatureSet.of(models.target._learnt.columns, FAMILIES, models.target.link_templates)
        scorer = PartScorer.ready(features, arrays["table"], "table")
        return FittedPairs(models, scorer, Index(own["keys"]), own["weights"])


def _held_out_tags(
    treebank: Treebank, parser: DependencyParser, progress: Progress, threads: int | None
) -> Treebank | None:
    """The sentences that a parser has learnt from with tags as its tagger would give them to new ones.

    None where the parser takes tags as they are given.
    """
    tagger = parser._learnt.tagger
    if tagger is None:
        return None
    from isogloss.tasks.tag import jackknife

    return jackknife(treebank, tagger, min(TAG_FOLDS, len(treebank)), progress=progress, threads=threads)


def _nearest(pairs: TreePairs, looked: Looked, demands: Demands) -> NDArray[np.int32]:
    """Heads of the target trees that are looked at which have the most right heads; −1 where none is known."""
    parts = TreeParts.of(looked.candidates.target)
    from isogloss.structures.loopy import LoopyTrees

    heads = pairs.target.heads
    trees = LoopyTrees(
        parts, np.zeros(parts.n_parts), constraint=demands.constraint, single_root=demands.single_root
    ).tree_factor()  # fmt: skip
    gain = np.where(trees.scores.values > -np.inf, 0.0, -np.inf)
    known = np.flatnonzero(heads >= 0)
    gain[cells_of(trees.scores, np.where(heads >= 0, heads, 0))[known]] += 1.0
    found = trees.with_scores(trees.scores.like(kept(gain))).argmax()
    nearest = np.concatenate([np.zeros(0, np.int32), *(np.asarray(one, np.int32) for one in found)])
    return np.where(heads >= 0, nearest, -1).astype(np.int32)
