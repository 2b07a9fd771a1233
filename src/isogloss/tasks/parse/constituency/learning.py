"""How weights of labelled spans are learnt: features of the spans that a first look leaves, and passes over trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituents import Constituents
from isogloss.data.treebank import Column
from isogloss.features import Templates
from isogloss.learners.passes import Course, Passed, learner_of
from isogloss.metrics.brackets import score_brackets
from isogloss.progress import Progress
from isogloss.tasks.parse.constituency.filtering import SpanFilter
from isogloss.tasks.parse.constituency.fitted import FittedSpans
from isogloss.tasks.parse.constituency.model import GoldBrackets, TreeFeatures, gold_spans, model_of
from isogloss.tasks.parse.constituency.options import ConstituencyOptions
from isogloss.tasks.parse.constituency.parsing import Choosing, parsed
from isogloss.tasks.parse.constituency.seen import Seen, as_tagged
from isogloss.tasks.parse.constituency.trees import Labels, as_spans
from isogloss.tasks.parse.constituency.words import Known, Sentences, span_parts
from isogloss.tasks.tag import CrfTagger, jackknife

__all__ = ["SpanLesson"]

FOLDS = 5
"""Parts of the trees whose tags are predicted by a tagger of the other parts."""
LEAST = 1e-3
"""Labelled spans whose posterior is so near to what it should be are left alone in a step."""


@dataclass(frozen=True, eq=False)
class SpanLesson:
    """What weights of labelled spans are learnt from.

    Parameters
    ----------
    labels : Labels
    trees : Constituents
        Continuous, and with one label for each span.
    tags : Column
        Those that the parser is to see.
    tagger : CrfTagger, optional
        What will make them for other text.
    dev : Constituents, optional
        Other trees, on which the number of passes is chosen.
    """

    labels: Labels
    trees: Constituents
    tags: Column
    tagger: CrfTagger | None
    dev: Constituents | None

    @classmethod
    def of(
        cls,
        options: ConstituencyOptions,
        labels: Labels,
        trees: Constituents,
        dev: Constituents | None,
        progress: Progress,
    ) -> SpanLesson:
        """With tags as they are given, or as they are predicted for sentences that a tagger has not seen."""
        if options.tags == "gold":
            return cls(labels, trees, trees.columns["tag"], None, dev)
        given = as_tagged(trees)
        tagger = CrfTagger("xpos", seed=options.seed, threads=options.threads)
        seen = given
        if len(trees) > 1:
            folds = min(FOLDS, len(trees))
            seen = jackknife(given, tagger, folds, progress=progress, threads=options.threads)
        tagger.fit(given, None, progress)
        return cls(labels, trees, seen.columns["xpos"], tagger, dev)

    def learn(
        self, options: ConstituencyOptions, templates: Mapping[str, Templates], how: Choosing, course: Course
    ) -> tuple[FittedSpans, Passed]:
        """Which spans to look at, their features, and weights of these."""
        course.progress.start("Collecting features", 1)
        labels, trees = self.labels, self.trees
        known = Known.of(trees.columns["form"], options.min_word)
        codes = Sentences.of(trees.offsets, trees.columns["form"], self.tags, known)
        gold, parts = as_spans(trees, labels), span_parts(codes)
        marked = gold_spans(gold, parts.offsets, trees.lengths)
        chosen, kept, seen = None, None, np.ones(parts.n_parts, bool)
        if options.prune:
            chosen = SpanFilter.fit(
                codes, parts, gold, marked, threshold=float(options.prune), seed=options.seed, progress=course.progress
            )
            kept = chosen.kept(codes, parts, marked)
            seen = kept.marked(parts.offsets)
        features = TreeFeatures.collected(templates, codes, parts, marked, len(labels.names), options.min_count, seen)
        model, target = model_of(features, codes, parts, kept), GoldBrackets(gold, len(labels.names))
        learner = learner_of(model, target, options.pass_settings, course.progress.within, least=LEAST)
        fitted = FittedSpans(labels, known, features, np.zeros(0, np.float32), self.tagger, chosen)
        passed = course.run(learner, "Learning brackets", self._held_out(fitted, how))
        return replace(fitted, weights=passed.weights).compact(), passed

    def _held_out(self, fitted: FittedSpans, how: Choosing) -> Callable[[NDArray[Any]], float] | None:
        """F1 of brackets on the other trees."""
        if self.dev is None:
            return None
        dev = self.dev
        seen = Seen.of(dev, fitted, gold=self.tagger is None)

        def f1(weights: NDArray[Any]) -> float:
            found = parsed(seen, replace(fitted, weights=weights), how, dev.name)
            return float(score_brackets(found, dev, bootstrap=0).f1)

        return f1
