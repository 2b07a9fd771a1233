"""`JointConstituentAligner`: constituents of both sides of a bitext and the links between their words, together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.constituent_pairs import ConstituentPairs, as_constituent_pairs
from isogloss.data.constituents import Constituents
from isogloss.data.links import Links
from isogloss.engine.threads import using_threads
from isogloss.errors import TreebankError
from isogloss.features.templates import Templates
from isogloss.metrics.brackets import BracketScore, score_brackets
from isogloss.metrics.constituent_pairs import ConstituentPairScore, score_constituent_pairs
from isogloss.structures.batch import Batch
from isogloss.structures.span_tree import LabelledSpans
from isogloss.tasks.joint.bracket_agreement import BracketAgreement, bracket_templates
from isogloss.tasks.joint.bracket_opinions import (
    BracketOpinions,
    bispan_component,
    bracket_component,
    known_terminals,
    nearest_trees,
)
from isogloss.tasks.joint.coupled import CoupledModels, Models
from isogloss.tasks.joint.long_pairs import are_short, without_long
from isogloss.tasks.joint.options import JointConstituentOptions
from isogloss.tasks.parse.constituency import ConstituencyParser
from isogloss.tasks.parse.constituency.trees import plain, trees_of

__all__ = ["BracketsFound", "JointConstituentAligner"]

LONGEST = 70
"""Words of a side: the chart of bispans grows with the fourth power."""


class BracketsFound(NamedTuple):
    """Posteriors of pairs that were parsed and aligned together.

    Parameters
    ----------
    source, target : list of float64[n_spans, n_labels]
        Of each sentence, by the labels of the parsers; spans are numbered by width, then by start.
    links : list of float32[n_source, n_target]
    """

    source: list[NDArray[np.float64]]
    target: list[NDArray[np.float64]]
    links: list[NDArray[np.float32]]


class _Answers(NamedTuple):
    source: list[LabelledSpans]
    target: list[LabelledSpans]
    links: list[NDArray[np.float32]]


class JointConstituentAligner(JointConstituentOptions, CoupledModels[ConstituentPairs, BracketOpinions]):
    r"""Parses both sides of a bitext into constituents and aligns their words, all at once.

    .. math:: P(t, a, t') \propto \exp\Big[\sum_{n \in t} s_n + \sum_{n' \in t'} s_{n'} + \sum_{b \in a} s_b
        + \sum_{n \triangleright b} w \cdot f(n, b) + \sum_{b \triangleleft n'} w \cdot f(b, n')
        + \sum_{n \triangleright b \triangleleft n'} w \cdot f(n, b, n') \Big]

    The first three terms are separate models: a parser of each side, by posteriors of its brackets, and an aligner,
    whose links are joined by a transduction grammar to a binary tree over both sentences
    (`isogloss.structures.Bitree`). The others say how often a bispan *b* of that tree has the same words as a bracket
    *n* of the source, *n'* of the target, or both; nothing forces them to. With weights 0 the separate models are left.
    The distribution is approximated by structured mean field, as `JointParserAligner` does for dependencies.

    Parameters
    ----------
    coupling : "all", "partial", "both" or "none"
        Bispans with brackets over their source words, target words and both; over one side; over both; or nothing.
    grain : "both", "coarse" or "fine"
        Whether coupled parts are seen by their kind, by labels, or by either.
    blocks : "all", "words" or "one"
        What terminals of the grammar link; see `isogloss.structures.bichart.PATTERNS`.
    nulls : "low" or "free"
        Where words without a link are attached; see `isogloss.structures.Bitree`.
    unlinked : "open" or "absent"
        What links in training mean between words of which neither is linked: nothing, or that there is none.
    objective : "bound" or "fields"
        What weights raise; see `JointParserAligner`.
    order, passes, tags
        Options of the parsers.
    folds : int
        Parts of the training text; each is judged by parsers and aligners that learnt from the others.
    prune_brackets, prune_links, prune_bispans : float
        What is less probable by the separate models is not looked at, in training as in use.
    min_count, l2, iterations
        Options of the weights.
    sweeps, tolerance
        Options of mean field.
    threshold : float
        Links with a higher posterior, summed over all terminals that have them, are predicted.
    seed : int
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_steps]
        The objective of training after each step.

    References
    ----------
    Burkett, Blitzer and Klein, Joint parsing and alignment with weakly synchronized grammars, NAACL 2010. We differ:
    components are updated in turn; trees are not binarised; parsers score brackets by their posteriors and not rules;
    bispans are pruned by their posteriors too; and separate models count as they are when weights are 0, which are
    penalised as differences from that.

    Examples
    --------
    >>> from isogloss import samples
    >>> from isogloss.data import ConstituentPairs, TreePairs, Treebank
    >>> trees = [Treebank.from_bytes(samples.trees("en-de", side).encode()) for side in ("source", "target")]
    >>> pairs = ConstituentPairs.from_dependencies(TreePairs(*trees, samples.gold("en-de")[: len(trees[0])]))
    >>> joint = JointConstituentAligner(order=1, passes=2, folds=2, iterations=3).fit(pairs)
    >>> found = joint.predict(pairs)
    >>> len(found) == len(pairs), found.links is not None
    (True, True)
    """

    _kind: ClassVar[str] = "joint.constituents"
    _parser: ClassVar[type[Any]] = ConstituencyParser

    # --- what is coupled

    def _usable(self, pairs: Any) -> ConstituentPairs:
        short = without_long(_plain(as_constituent_pairs(pairs)), LONGEST)
        if len(short) < 2:
            raise TreebankError(
                f"{short.source.name}: {len(short)} pairs are too few to learn from. Give two at least, of at most "
                f"{LONGEST} words"
            )
        return short

    def _fresh_parser(self) -> ConstituencyParser:
        return ConstituencyParser(
            order=self.order, iterations=self.passes, tags=self.tags, seed=self.seed, threads=self.threads
        )

    def _opinions_of(self, pairs: ConstituentPairs, models: Models) -> BracketOpinions:
        return BracketOpinions.of(pairs, *models)

    def _joined(self, parts: list[BracketOpinions]) -> BracketOpinions:
        return BracketOpinions.joined(parts)

    def _fitting(self, opinions: BracketOpinions, models: Models) -> BracketOpinions:
        return opinions.with_labels(models.source.labels_, models.target.labels_)

    def _names(self, opinions: BracketOpinions) -> set[str]:
        return {*opinions.source_tags, *opinions.target_tags, *opinions.source_labels, *opinions.target_labels}

    def _components(self, opinions: BracketOpinions, models: Models) -> list[Batch[Any]]:
        return [
            bispan_component(opinions.links, self.blocks, self.nulls, self.prune_links, self.prune_bispans),
            bracket_component(opinions.source, self.prune_brackets),
            bracket_component(opinions.target, self.prune_brackets),
        ]

    def _agreement(
        self, components: list[Batch[Any]], opinions: BracketOpinions, models: Models, numbers: dict[str, int]
    ) -> BracketAgreement:
        return BracketAgreement(components, opinions, numbers, self.coupling)

    def _templates(self) -> Templates:
        return bracket_templates(self.grain)

    def _known(
        self, components: list[Any], pairs: ConstituentPairs, opinions: BracketOpinions, models: Models
    ) -> list[Batch[Any]]:
        bispans, source, target = components
        names = models.source._learnt.names, models.target._learnt.names
        return [
            bispans if pairs.links is None else known_terminals(bispans, pairs.links, self.unlinked),
            nearest_trees(source, pairs.source, names[0], opinions.source),
            nearest_trees(target, pairs.target, names[1], opinions.target),
        ]

    # --- predicting

    def predict(self, pairs: ConstituentPairs) -> ConstituentPairs:
        """The pairs with the trees and links that are found; brackets and links that they have are not looked at.

        Trees are those with the most right brackets in expectation, less what a bracket costs (an option of the
        parsers). Pairs with a sentence of more than 70 words are left to the separate models.
        """
        pairs = _plain(as_constituent_pairs(pairs))
        short = are_short(pairs, LONGEST)
        if short.all():
            return self._decoded(pairs, self._opinions(pairs))
        rows = np.concatenate([np.flatnonzero(short), np.flatnonzero(~short)])
        some, others = pairs.take(np.flatnonzero(short)), pairs.take(np.flatnonzero(~short))
        found = self._decoded(some, self._opinions(some)), self.separate(others)
        source, target = (Constituents.joined([getattr(one, side) for one in found]) for side in ("source", "target"))
        links = Links.of([row for one in found for row in one.links or ()])
        return ConstituentPairs(source, target, links).take(np.argsort(rows))

    def _decoded(self, pairs: ConstituentPairs, judged: Iterable[BracketOpinions]) -> ConstituentPairs:
        """The same, from what the separate models think of all pairs."""
        models, found = self._learnt.models, self._answers(judged)
        sides = []
        for parser, trees, spans in zip(models[:2], (pairs.source, pairs.target), found[:2], strict=True):
            seen = parser._seen(trees, parser._learnt)
            sides.append(trees_of(seen.words, seen.tags, spans, parser._learnt.names, trees.name))
        return ConstituentPairs(sides[0], sides[1], Links.above(found.links, self.threshold, pairs.bitext()))

    def _answers(self, judged: Iterable[BracketOpinions]) -> _Answers:
        answers, models = _Answers([], [], []), self._learnt.models
        with using_threads(self.threads):
            for found in self._found(judged):
                bispans, *sides = found.components
                for parser, component, into in zip(models[:2], sides, answers[:2], strict=True):
                    into.extend(component.most_right(threshold=parser.bracket_cost))  # type: ignore[attr-defined]
                answers.links.extend(_link_posteriors(bispans))
        return answers

    def predict_proba(self, pairs: ConstituentPairs) -> BracketsFound:
        """Posteriors of brackets of both sides and of links, by the factors of mean field."""
        pairs = _plain(as_constituent_pairs(pairs))
        sides: tuple[list[Any], list[Any]] = ([], [])
        links: list[NDArray[np.float32]] = []
        with using_threads(self.threads):
            for found in self._found(self._opinions(pairs)):
                for into, component in zip(sides, found.components[1:], strict=True):
                    into.extend(np.minimum(one, 1.0) for one in component.marginals())
                links += _link_posteriors(found.components[0])
        return BracketsFound(sides[0], sides[1], links)

    def separate(self, pairs: ConstituentPairs) -> ConstituentPairs:
        """The same by the separate models, which know nothing of each other: what to compare with."""
        pairs, models = _plain(as_constituent_pairs(pairs)), self._learnt.models
        trees = models.source.predict(pairs.source), models.target.predict(pairs.target)
        return ConstituentPairs(*trees, models.aligner.predict(pairs.bitext()))

    def score(self, pairs: ConstituentPairs) -> BracketScore:
        """Precision, recall and F1 of the brackets of both sides together; see `scores` for each."""
        gold = _plain(as_constituent_pairs(pairs))
        found = self.predict(gold)
        return score_brackets(*(Constituents.joined([one.source, one.target]) for one in (found, gold)))

    def scores(self, pairs: ConstituentPairs, *, content: bool = False) -> ConstituentPairScore:
        """Scores of each side and, where the pairs have links, of links."""
        gold = _plain(as_constituent_pairs(pairs))
        return score_constituent_pairs(self.predict(gold), gold, content=content)


def _plain(pairs: ConstituentPairs) -> ConstituentPairs:
    """Without function tags, and with continuous trees; traces are refused, since links are numbered by words."""
    sides = [plain(side) for side in (pairs.source, pairs.target)]
    for own, given in zip(sides, (pairs.source, pairs.target), strict=True):
        if own.n_words != given.n_words:
            raise TreebankError(
                f"{given.name}: trees have traces, which are no words of a translation. Take them out with "
                "trees.stripped(), and number links by the words that are left"
            )
    return ConstituentPairs(sides[0], sides[1], pairs.links)


def _link_posteriors(component: Any) -> list[NDArray[np.float32]]:
    return [np.minimum(one, 1.0).astype(np.float32) for one in component.link_marginals()]
