"""What a parser thinks of trees that it is shown, and a weaker copy of it: what other models build on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Text
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError
from isogloss.structures.heads import Heads, crosses, is_rooted
from isogloss.tasks.parse.scoring import FeatureSet, PartScorer
from isogloss.tasks.parse.words import encode

if TYPE_CHECKING:
    from isogloss.tasks.parse.parser import DependencyParser

__all__ = ["blinded", "log_prob", "relations"]

Trees = Sequence[Sequence[ArrayLike]]


def log_prob(parser: DependencyParser, treebank: Treebank | Text, trees: Trees) -> list[NDArray[np.float64]]:
    """What `DependencyParser.log_prob` does."""
    learnt, _, words = parser._seen(treebank)
    if len(trees) != len(words):
        raise ParameterError(f"log_prob: trees of {len(trees)} sentences were given for {len(words)}")
    found: list[NDArray[np.float64]] = []
    with using_threads(parser.threads):
        for some in parser._trees(words):
            exact = some.tree_factor()
            for s, total in enumerate(exact.log_partition().tolist()):
                scores, own = exact.scores[s], trees[len(found)]
                each = [_score(scores, np.asarray(y, np.int64), learnt.shape) for y in own]
                found.append(np.array(each, np.float64) - total)
    return found


def _score(scores: NDArray[np.float64], heads: Heads, shape: Any) -> float:
    """The score of a tree, −∞ if it is none of the kind."""
    n = len(scores) - 1
    if heads.shape != (n,) or (n and not 0 <= heads.min() <= heads.max() <= n):
        return -np.inf
    many = shape.single_root and np.count_nonzero(heads == 0) > 1
    if many or not is_rooted(heads) or (shape.projective and crosses(heads)):
        return -np.inf
    return float(scores[heads, np.arange(1, n + 1)].sum())


def relations(parser: DependencyParser, treebank: Treebank | Text, trees: Trees) -> list[list[NDArray[np.int64]]]:
    """What `DependencyParser.relations` does."""
    learnt, seen = parser._given(treebank)
    counts = np.array([len(own) for own in trees], np.int64)
    if len(counts) != len(seen):
        raise ParameterError(f"relations: trees of {len(counts)} sentences were given for {len(seen)}")
    repeated = seen.take(np.repeat(np.arange(len(seen)), counts))
    heads = np.concatenate([np.zeros(0, np.int32), *(np.asarray(y, np.int32) for own in trees for y in own)])
    if len(heads) != repeated.n_words:
        raise ParameterError(f"relations: {len(heads)} heads were given for {repeated.n_words} words")
    labels = np.zeros(len(heads), np.int64)
    if learnt.labeller is not None and len(heads):
        with using_threads(parser.threads):
            found, _ = learnt.labeller.predict(encode(repeated, learnt.columns), heads, repeated.offsets)
        labels = found.ids.astype(np.int64)
    each = iter(np.split(labels, repeated.offsets[1:-1]))
    return [[next(each) for _ in own] for own in trees]


def blinded(parser: DependencyParser, made: DependencyParser) -> DependencyParser:
    """The weights of a parser in one with fewer templates, which scores links one by one."""
    learnt = parser._learnt
    scorer = PartScorer(FeatureSet.of(learnt.columns, (), made.link_templates), learnt.scorer.table)
    made._fitted = replace(learnt, shape=replace(learnt.shape, families=()), scorer=scorer)
    made.trace_, made.tuning_, made.reading_ = parser.trace_, parser.tuning_, parser.reading_
    return made
