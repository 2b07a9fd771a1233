"""`JointParserAligner`: trees of both sides of a bitext and the links between their words, found together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.joining import join_treebanks
from isogloss.data.links import Links
from isogloss.data.tree_pairs import TreePairs, as_tree_pairs
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import TreebankError
from isogloss.features.templates import Templates
from isogloss.metrics.pairs import PairScore, score_pairs
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.structures.base import kept
from isogloss.structures.batch import Batch, Stack
from isogloss.tasks.joint.agreement import Agreement, templates_of
from isogloss.tasks.joint.coupled import CoupledModels, Models
from isogloss.tasks.joint.long_pairs import Answers, answers_apart, are_short, merged, without_long
from isogloss.tasks.joint.opinions import Opinions, known_links, link_component, oracle, tree_component
from isogloss.tasks.joint.options import JointPairOptions
from isogloss.tasks.parse import DependencyParser

__all__ = ["Found", "JointParserAligner", "Models", "annotated"]

TREES = ("head", "deprel")


class Found(NamedTuple):
    """Posteriors of pairs that were parsed and aligned together."""

    source: Stack
    """float64[n + 1, n + 1] of each sentence, as (head, child)"""
    target: Stack
    links: list[NDArray[np.float32]]
    """float32[n_source, n_target] of each pair"""


class JointParserAligner(JointPairOptions, CoupledModels[TreePairs, Opinions]):
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
    _parser: ClassVar[type[Any]] = DependencyParser

    # --- what is coupled

    def _usable(self, pairs: Any) -> TreePairs:
        short = without_long(as_tree_pairs(pairs))
        _check_training(short)
        return short

    def _fresh_parser(self) -> DependencyParser:
        return DependencyParser(
            order=self.order, iterations=self.passes, tags=self.tags, seed=self.seed, threads=self.threads
        )

    def _opinions_of(self, pairs: TreePairs, models: Models) -> Opinions:
        return Opinions.of(pairs, *models)

    def _joined(self, parts: list[Opinions]) -> Opinions:
        return Opinions.joined(parts)

    def _names(self, opinions: Opinions) -> set[str]:
        return {*opinions.source_tags, *opinions.target_tags}

    def _components(self, opinions: Opinions, models: Models) -> list[Batch[Any]]:
        return [
            link_component(opinions.links, self.linking, self.prune_links),
            tree_component(opinions.source, models.source.projective_, self.prune_heads),
            tree_component(opinions.target, models.target.projective_, self.prune_heads),
        ]

    def _agreement(
        self, components: list[Batch[Any]], opinions: Opinions, models: Models, numbers: dict[str, int]
    ) -> Agreement:
        return Agreement(components, opinions, numbers, self.coupling)

    def _templates(self) -> Templates:
        return templates_of(self.grain)

    def _known(
        self, components: list[Batch[Any]], pairs: TreePairs, opinions: Opinions, models: Models
    ) -> list[Batch[Any]]:
        links = pairs.links
        return [
            components[0] if links is None else known_links(components[0], links, self.unlinked),
            oracle(components[1], pairs.source, opinions.source),
            oracle(components[2], pairs.target, opinions.target),
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
