"""What a dependency parser learns from: treebanks with the tags it will see, and the steps from there to weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats import as_gold
from isogloss.data.treebank import Treebank
from isogloss.errors import ParameterError
from isogloss.features import KeyTable
from isogloss.learners.models import Scaled
from isogloss.learners.passes import Course, Passed
from isogloss.progress import Progress
from isogloss.structures.tree_parts import Candidates
from isogloss.tasks.parse.cutting import without_long
from isogloss.tasks.parse.filtering import LinkFilter
from isogloss.tasks.parse.fitted import Fitted
from isogloss.tasks.parse.focus import Focus
from isogloss.tasks.parse.held_out import HeldOut
from isogloss.tasks.parse.inference import Shape
from isogloss.tasks.parse.labelled import RATE as LABEL_RATE
from isogloss.tasks.parse.labelled import JointScorer, LabelledTrees, LabelScorer
from isogloss.tasks.parse.labels import Labeller
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer, count_keys
from isogloss.tasks.parse.training import KnownHeads, TreeModel, known_sentences, tree_learner
from isogloss.tasks.parse.views import View, joined, seen_by
from isogloss.tasks.parse.words import Columns, Words, columns_of, encode

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser
    from isogloss.tasks.tag import Tagger

__all__ = ["Further", "Lesson", "checked"]

LABEL_PASSES = 5
LEAST = 1e-3
"""Weights of relations up to this size are not kept."""


def checked(treebank: Treebank, single_root: bool) -> Treebank:
    """A treebank without very long sentences; two roots (if there may be but one) and cycles are refused by place."""
    treebank = as_gold(treebank)
    if single_root:
        treebank.check_trees()
    else:
        rooted = np.where(treebank.heads == 0, -1, treebank.heads)  # any number of roots is well
        treebank.with_columns(heads=rooted).check_trees()
    return without_long(treebank)


class Further(NamedTuple):
    """What learning is told beside a treebank; see `DependencyParser.fit`."""

    target: Callable[[NDArray[np.int64]], Any] | None = None
    focus: Focus | None = None
    views: tuple[View, ...] = ()

    def check(self, trainer: str) -> None:
        """`ParameterError` for what says nothing with a trainer, or together."""
        if self.focus is None:
            return
        if self.focus.words is not None and trainer not in ("risk", "mira"):
            raise ParameterError(
                f"DependencyParser: a focus on words is one of losses, which trainer {trainer!r} does not have. Take "
                "trainer 'risk' or 'mira'"
            )
        if self.focus.sentences is not None and trainer == "perceptron":
            raise ParameterError("DependencyParser: the perceptron counts all sentences alike; take another trainer")
        if self.target is not None:
            raise ParameterError("DependencyParser: give a target or a focus, not both")


@dataclass(frozen=True, eq=False)
class Lesson:
    """What is learnt from.

    Parameters
    ----------
    parser : DependencyParser
        Says how.
    treebank : Treebank
        With gold heads and relations.
    seen : Treebank
        The same sentences with the tags that the parser is to see.
    held_out : Treebank, optional
        Other sentences, with the same kind of tags, on which the number of passes is chosen.
    tagger : Tagger, optional
        Where tags are predicted.
    more : Further
        What else learning is told, see `DependencyParser.fit`.
    """

    parser: DependencyParser
    treebank: Treebank
    seen: Treebank
    held_out: Treebank | None
    tagger: Tagger | None
    more: Further

    @classmethod
    def of(
        cls, parser: DependencyParser, treebank: Treebank, dev: Treebank | None, progress: Progress, more: Further
    ) -> Lesson:  # fmt: skip
        """With tags as they are given, or as they are predicted for sentences that a tagger has not seen."""
        if parser.tags == "gold":
            return cls(parser, treebank, treebank, dev, None, more)
        from isogloss.tasks.tag import Tagger, jackknife

        found = columns_of(treebank)
        names = [found.tag] + (["xpos"] if found.fine == "xpos" else []) + (["feats"] if found.attributes else [])
        tagger = Tagger(names, seed=parser.seed, threads=parser.threads)
        folds = min(5, max(2, len(treebank)))
        seen = jackknife(treebank, tagger, folds, progress=progress, threads=parser.threads)
        tagger.fit(treebank, None, progress)
        return cls(parser, treebank, seen, None if dev is None else tagger.predict(dev), tagger, more)

    def learn(self, shape: Shape, course: Course) -> tuple[Fitted, Passed, float]:
        """Relations of a second stage, which links to look at, and weights of parts; in this order.

        The last takes most of the time. If it is interrupted, the checkpoint keeps what has been learnt; what goes
        before is then done again, with the same result.

        Returns
        -------
        fitted : Fitted
        passed : Passed
            How passes over links went.
        n : float
            Words that have a head.
        """
        parser, progress, views = self.parser, course.progress, self.more.views
        columns = columns_of(self.seen, lemma=self.tagger is None)
        sight = None
        if views:
            columns = columns._replace(more=tuple(name for view in views for name in view.atoms))
            sight = joined([view.learn(self.seen, progress) for view in views], self.seen.n_words)
        words, heads = encode(self.seen, columns, None, sight), _usable(self.treebank, shape.projective)
        labeller, chosen = self._labeller(words, columns, progress), None
        if parser.prune:
            chosen = LinkFilter.fit(
                words, columns, heads, shape, threshold=float(parser.prune), seed=parser.seed, progress=progress
            )  # fmt: skip
        model, known = self._model(words, columns, heads, shape, chosen, progress)
        rates = ((model.n_parts_weights, LABEL_RATE),) if isinstance(model, LabelledTrees) else ()
        scales, focus = self._scales(model), self.more.focus
        counts = None if focus is None or focus.sentences is None else np.asarray(focus.sentences)[model.sentences]
        learnt_on = model if scales is None else Scaled(model, scales)
        learner = tree_learner(learnt_on, known, parser.pass_settings, progress.within, rates, counts)
        uas = self._uas(model, columns, chosen, scales)
        passed = course.run(learner, "Learning links", uas, "UAS {:.2f} on dev")
        scorer, joint = _scorers(model, passed.weights if scales is None else passed.weights * scales)
        packed = PartScorer.packed(scorer.features, scorer.table.keys, scorer.weights)
        joint = None if joint is None else joint.compact(LEAST)
        fitted = Fitted(columns, shape, packed, chosen, joint, labeller, self.tagger, views)
        return fitted, passed, known.n_known

    def _scales(self, model: TreeModel) -> NDArray[np.float32] | None:
        """What features are multiplied by; those of labels by 1."""
        if self.more.focus is None or self.more.focus.features is None:
            return None
        scales = np.ones(model.n_weights, np.float32)
        keys = model.scorer.table.keys
        scales[: len(keys)] = self.more.focus.features(keys)
        return scales

    def _labeller(self, words: Words, columns: Columns, progress: Progress) -> Labeller | None:
        """Relations of gold links; they do not depend on weights of trees."""
        made = Labeller.fit(
            words, self.treebank, columns, iterations=LABEL_PASSES, seed=self.parser.seed, progress=progress
        )  # fmt: skip
        return None if made is None else made.compact(LEAST)

    def _model(
        self,
        words: Words,
        columns: Columns,
        heads: NDArray[np.int32],
        shape: Shape,
        chosen: LinkFilter | None,
        progress: Progress,
    ) -> tuple[TreeModel, Any]:
        """Features of the parts of candidate links, and what trees should be like."""
        parser = self.parser
        candidates = _candidates(chosen, words, heads)
        progress.start("Collecting features", 1)
        features = FeatureSet.of(columns, shape.families, parser.link_templates)
        found = count_keys(
            words, features, candidates, shape.families, heads, min_count=parser.min_count, support=parser.support
        )  # fmt: skip
        focus = self.more.focus
        if focus is not None and focus.features is not None:
            found = found[focus.features(found) != 0]
        table = KeyTable.of(found)
        scorer = PartScorer(features, table, np.zeros(0, np.float32))  # the learner has the weights
        sentences = known_sentences(heads, words.lengths)
        model = TreeModel(scorer, words, candidates, shape, sentences)
        target = self.more.target
        known = KnownHeads(heads, candidates.offsets, sentences, focus) if target is None else target(sentences)
        if parser.labelling == "joint":
            model = LabelledTrees.of(model, self.treebank, columns, heads) or model
        return model, known

    def _uas(
        self, model: TreeModel, columns: Columns, chosen: LinkFilter | None, scales: NDArray[np.float32] | None
    ) -> Callable[[NDArray[Any]], float] | None:
        """UAS on held-out sentences, if there are any."""
        if self.held_out is None:
            return None
        views = self.more.views
        unseen = encode(self.held_out, columns, None, seen_by(views, self.held_out) if views else None)
        other = HeldOut(unseen, _candidates(chosen, unseen), self.held_out.heads)

        def uas(weights: NDArray[np.float32]) -> float:
            parts, labels = _scorers(model, weights if scales is None else weights * scales)
            scorer = parts if labels is None else JointScorer(parts, labels)
            return other.uas(scorer, model.shape, self.parser.decoder)

        return uas


def _scorers(model: TreeModel, weights: NDArray[np.float32]) -> tuple[PartScorer, LabelScorer | None]:
    """Scorers of parts and, where they are learnt together, of labels."""
    if isinstance(model, LabelledTrees):
        return model.scorers(weights)
    return model.scorer.with_weights(weights), None


def _candidates(chosen: LinkFilter | None, words: Words, heads: NDArray[np.int32] | None = None) -> Candidates:
    return Candidates.all(words.lengths) if chosen is None else chosen.candidates(words, heads)


def _usable(treebank: Treebank, projective: bool) -> NDArray[np.int32]:
    """Gold heads; in sentences where some are unknown, those that no projective tree has count as unknown."""
    heads = treebank.heads.copy()
    if projective and (heads < 0).any():
        sentence_of = np.repeat(np.arange(len(treebank)), treebank.lengths)
        partial = np.bincount(sentence_of[heads < 0], minlength=len(treebank)) > 0
        heads[treebank.crossing & partial[sentence_of]] = -1
    return heads
