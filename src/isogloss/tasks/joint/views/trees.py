"""Links of trees as nodes: `DependencyParser` in two languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.formats import as_treebank
from isogloss.data.joining import join_treebanks
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.structures import ProjectiveTree, SpanningTree
from isogloss.tasks.joint.views.base import COLUMNS, Array, Nodes, Ranked, View
from isogloss.tasks.parse import DependencyParser

__all__ = ["TREES", "Tree", "TreeView"]

Numbers = NDArray[np.int64]


class Tree(NamedTuple):
    """A tree of one sentence: heads from 1, 0 for the root, and relations as numbers of the parser's `labels_`."""

    heads: Numbers
    labels: Numbers


class TreeView(View):
    """Dependency trees; a node is a link with its relation and with all words below it.

    Trees are judged by their heads. Relations are those that the full parser gives to each tree.
    """

    task: ClassVar[str] = "parse"
    noun: ClassVar[str] = "link"
    words: ClassVar[tuple[str, ...]] = ("word", "lemma", "marker")
    weaker: ClassVar[tuple[str, ...]] = ("word", "lemma", "marker")
    mixture: ClassVar[str] = "equal"

    def classes(self) -> tuple[type, ...]:
        """`DependencyParser`."""
        return (DependencyParser,)

    def check_weak(self, full: DependencyParser, weak: DependencyParser, side: str) -> None:
        """Trees are judged by their heads, whatever relations are called."""

    def sentences(self, given: Any) -> Treebank:
        """`Treebank`; trees that it has are not looked at."""
        return as_treebank(given)

    def k_best(self, model: DependencyParser, sentences: Treebank, k: int) -> Ranked:
        """The most probable trees, with relations."""
        found = model.k_best(sentences, k)
        labels = model.relations(sentences, [[heads for _, heads in own] for own in found])
        return [
            [(score, Tree(heads, own)) for (score, heads), own in zip(trees, related, strict=True)]
            for trees, related in zip(found, labels, strict=True)
        ]

    def log_prob(self, model: DependencyParser, sentences: Treebank, analyses: Sequence[Sequence[Tree]]) -> list[Array]:
        """Log-probabilities of trees by their heads alone."""
        return model.log_prob(sentences, [[tree.heads for tree in own] for own in analyses])

    def nodes(
        self, sentences: Treebank, sentence: int, analyses: Sequence[Tree], labels: Mapping[str, int]
    ) -> Nodes:  # fmt: skip
        """A node for each link."""
        from isogloss.tasks.joint._numba.nodes import link_nodes

        n = int(sentences.lengths[sentence])
        table = np.empty((len(analyses) * n, len(COLUMNS)), np.int64)
        heads, relations = (np.array([tree[k] for tree in analyses], np.int64).reshape(-1, n) for k in (0, 1))
        link_nodes(heads, relations if labels else np.full_like(relations, -1), table)
        return Nodes.distinct(table, [n] * len(analyses))

    def labels(self, model: DependencyParser) -> tuple[str, ...]:
        """Relations."""
        return model.labels_

    def expected(
        self, sentences: Treebank, sentence: int, ranked: Sequence[Tree], chances: Array, model: DependencyParser
    ) -> Tree:
        """The tree with the most right heads, whose links have the relations that are the most probable with them."""
        n = int(sentences.lengths[sentence])
        worth = np.zeros((n + 1, n + 1))
        labelled: dict[tuple[int, int], dict[int, float]] = {}
        for tree, chance in zip(ranked, chances.tolist(), strict=True):
            worth[tree.heads, np.arange(1, n + 1)] += chance
            for link in zip(tree.heads.tolist(), range(n), strict=True):
                own = labelled.setdefault(link, {})
                own[int(tree.labels[link[1]])] = own.get(int(tree.labels[link[1]]), 0.0) + chance
        kind: Any = ProjectiveTree if model.projective_ else SpanningTree
        scores = np.where(worth > 0, worth, -np.inf)
        heads = np.asarray(kind(scores, single_root=model.single_root).argmax(), np.int64)
        best = [max(own.items(), key=lambda item: (item[1], -item[0]))[0]
                for own in (labelled[link] for link in zip(heads.tolist(), range(n), strict=True))]  # fmt: skip
        return Tree(heads, np.array(best, np.int64))

    def annotated(self, model: DependencyParser, sentences: Treebank, analyses: Sequence[Tree]) -> Treebank:
        """The sentences with a tree each, and with tags where the parser predicts them."""
        _, seen = model._given(sentences)
        nothing = np.zeros(0, np.int64)
        heads, labels = (np.concatenate([nothing, *(tree[k] for tree in analyses)]) for k in (0, 1))
        found = seen.with_predictions(heads=heads.astype(np.int32))
        if not model.labels_:
            return found
        return found.with_predictions(deprel=Column(labels.astype(np.int32), Vocabulary(model.labels_)))

    def fresh(self, model: DependencyParser, blind_to: Sequence[str] = ()) -> DependencyParser:
        """With fewer templates of links, which are then scored one by one."""
        options = model.options_ | {"threads": model.threads, **model.templates_without(blind_to)}
        if blind_to:
            options |= {"order": 1, "factors": None}
        return DependencyParser(**options)

    def joined(self, texts: Sequence[Treebank]) -> Treebank:
        """One treebank."""
        return join_treebanks(texts)

    def score(self, found: Treebank, gold: Treebank, **options: Any) -> ParseScore:
        """LAS and the rest."""
        return score_trees(found, gold, columns=("head", "deprel"), **options)


TREES = TreeView()
