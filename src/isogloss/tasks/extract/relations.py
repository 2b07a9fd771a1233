"""`RelationExtractor`: relations between the names of a sentence, with syntax that nobody had to annotate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.mentions import Mentions
from isogloss.data.reading import check_reading
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import using_threads
from isogloss.errors import MentionsError, ParameterError
from isogloss.features import Templates
from isogloss.learners.passes import Course
from isogloss.metrics.relations import RelationScore, score_relations
from isogloss.progress import Progress
from isogloss.structures.hidden import HiddenTrees
from isogloss.structures.spans import span_number
from isogloss.tasks.extract.coupled import Problem
from isogloss.tasks.extract.fitted_pairs import FittedPairs, chosen_labels
from isogloss.tasks.extract.name_pairs import Labels, NamePairs, Nodes, pair_problem
from isogloss.tasks.extract.pair_labeller import PairLabeller
from isogloss.tasks.extract.pair_options import RelationOptions
from isogloss.tasks.extract.pair_words import lowered
from isogloss.tasks.extract.relation_features import relation_templates
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.constituency.words import Known
from isogloss.tasks.parse.cutting import LONGEST
from isogloss.tasks.tag import CrfTagger

__all__ = ["LatentTree", "RelationExtractor"]


class LatentTree(NamedTuple):
    """The hidden tree of a sentence, as it is most probable.

    Parameters
    ----------
    nodes : tuple of str
        Words, those of a name as one.
    heads : tuple of int, optional
        The head of each node, from 1; 0 for the root.
    spans : tuple of (int, int), optional
        Brackets: the first node, from 0, and the one behind the last.
    probability : tuple of float
        The posterior of each link or bracket.
    """

    nodes: tuple[str, ...]
    heads: tuple[int, ...] | None
    spans: tuple[tuple[int, int], ...] | None
    probability: tuple[float, ...]


class RelationExtractor(RelationOptions, PairLabeller):
    r"""Finds relations between names that are given: every two names of a sentence may be related.

    .. math:: p(\ell \mid x) \propto \sum_z \exp \Big(\sum_{part \in z} w \cdot f(x, part)
        + \sum_{p: \ell_p \ne none} w \cdot f(x, p) + w_{\ell_p} \cdot f(x, p) + \sum_{z_c \in z} w \cdot f(x, c) \Big)

    A pair has a label, with a direction, or none. With hidden syntax there is a tree z over the sentence as well, in
    which a name is one node: a projective dependency tree, whose links between two names, or a binary bracketing, whose
    span from one name to the other, speaks for or against a relation. Nobody annotates trees: they are summed out,
    exactly and in closed form, in learning and in applying [1]_ (`isogloss.structures.HiddenTrees`).

    Parameters
    ----------
    syntax : "none", "given", "hidden-dependency" or "hidden-constituency"
        What is known of the syntax of a sentence: nothing, the trees of a parser that is given to `fit`, or trees that
        are learnt from relations alone.
    features : "all" or "pairs"
        Whether pairs are seen by the words inside, around and between names, or by the names and their distance alone,
        as in [1]_: then what lies between has a say through trees only.
    at_most_one : bool
        Whether a pair may be true without a label.
    threshold : float
        A relation is predicted where the mean of the posteriors of the pair and of its label is higher: ½ has the
        fewest wrong variables in expectation, less gives more relations.
    iterations, rate, l2, batch, min_count, min_word
        Of learning; see the help of each.
    bits : int
        Features of hidden trees are hashed to so many bits.
    start : float
        The weight of all connectors at the beginning. At 0, trees learn from the second step on.
    crossing : bool
        Whether links of hidden dependency trees may cross (sums by the matrix-tree theorem).
    seed : int
        Seed of the order of sentences.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    labels_ : tuple of str
        Relations with their directions, in the order of `predict_proba`.
    trace_ : float64[n_passes]
        Loss of a pair in each pass, as it was met.
    tuning_ : float64[n_passes]
        F1 on dev after each pass; empty without dev.

    References
    ----------
    .. [1] Naradowsky, Riedel and Smith, Improving NLP through marginalization of hidden syntactic structure, EMNLP
       2012. We differ: links of hidden dependencies connect the two names themselves, in either direction, in place of
       a common head, which keeps sums exact; labels have a direction.

    Examples
    --------
    >>> one = ("Ada lives in Rome".split(), [(0, 1, "PER"), (3, 4, "LOC")], [(0, 1, "Live_In")])
    >>> other = ("Bob saw Ada in Oslo".split(), [(0, 1, "PER"), (2, 3, "PER"), (4, 5, "LOC")])
    >>> extractor = RelationExtractor(iterations=5).fit(Mentions.of([one, other] * 5))
    >>> found = extractor.predict(Mentions.of([("Eve lives in Bern".split(), [(0, 1, "PER"), (3, 4, "LOC")])]))
    >>> found.relations(0)
    ((0, 1, 'Live_In'),)
    """

    _kind: ClassVar[str] = "extract.relations"
    _saved_as: ClassVar[str] = "the saved model of relations"

    @property
    def _templates(self) -> dict[str, Templates]:
        return relation_templates(self._tree, self.features, self.syntax == "given")

    # --- learning

    def fit(
        self,
        mentions: Mentions,
        dev: Mentions | None = None,
        progress: Progress | None = None,
        *,
        tagger: CrfTagger | None = None,
        parser: DependencyParser | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn the relations between the names of a text.

        Parameters
        ----------
        mentions : Mentions
            Of two names with several relations, the first is learnt.
        dev : Mentions, optional
            Other sentences; the number of passes is that of the best F1 on them.
        progress : Progress, optional
        tagger : CrfTagger, optional
            Tags that words are seen by; the model carries it along. Without it, tags that the file has.
        parser : DependencyParser, optional
            For syntax "given": the parser whose trees are looked at, one that predicts its own tags.
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        self._check_helpers(tagger, parser)
        given, other = _checked(mentions, "fit"), None if dev is None else _checked(dev, "fit")
        with self._course(progress, checkpoint, resume, [given, other]) as course, using_threads(self.threads):
            labels = Labels.of(given)
            if not len(labels):
                raise MentionsError(
                    f"{mentions.name}: has no relations between its names, so there is nothing to learn. Files of "
                    "SemEval 2010 task 8 (semeval) and of CoNLL 2004 (conll04) have them; columns of words and tags "
                    "(columns) have names alone"
                )
            self._tagger, self._parser = tagger, parser
            self._learn(given, other, labels, course)
        return self._learnt_from(given.text())

    def _check_helpers(self, tagger: Any, parser: Any) -> None:
        if tagger is not None and not isinstance(tagger, CrfTagger):
            raise ParameterError(f"fit: tagger should be a CrfTagger, not {type(tagger).__name__}")
        if (parser is not None) != (self.syntax == "given"):
            wanted = "a parser is needed: fit(..., parser=)" if parser is None else "no parser is looked at"
            raise ParameterError(f"fit: with syntax {self.syntax!r}, {wanted}")
        if parser is not None and not (isinstance(parser, DependencyParser) and parser.tags == "predicted"):
            raise ParameterError("fit: parser should be a DependencyParser that predicts its tags, tags='predicted'")

    def _learn(self, mentions: Mentions, dev: Mentions | None, labels: Labels, course: Course) -> None:
        course.progress.start("Collecting features", 1)
        known = Known.of(lowered(mentions.columns["form"]), self.min_word)
        pairs = NamePairs.of(mentions)
        problem, right = self._problem(mentions, pairs, known), pairs.labels(mentions, labels)
        unfinished = self._unfinished(
            labels.written, known, problem, right, self._templates, min_count=self.min_count, start=float(self.start)
        )
        score = None if dev is None else self._held_out(dev, known)
        fitted, passed = self._raise_likelihood(course, "Learning relations", unfinished, problem, right, score=score)
        self._take(fitted, passed.losses(len(right)), passed.scores)

    def _held_out(self, dev: Mentions, known: Known) -> Callable[[FittedPairs], float]:
        pairs = NamePairs.of(dev)
        problem = self._problem(dev, pairs, known)

        def f1(learnt: FittedPairs) -> float:
            return float(score_relations(self._found(dev, pairs, problem, learnt, False), dev, bootstrap=0).f1)

        return f1

    def _problem(self, mentions: Mentions, pairs: NamePairs, known: Known) -> Problem:
        tags, trees = self._tags(mentions), None
        if self._parser is not None:
            trees = self._parser.predict(Treebank.from_text(mentions.text()))
        return pair_problem(mentions, pairs, known, tags, self._tree, trees)

    def _tags(self, mentions: Mentions) -> Column:
        if self._tagger is not None:
            return self._tagger.predict(mentions.text()).columns[self._tagger.column]
        if "tag" in mentions.columns:
            return mentions.columns["tag"]
        return Column(np.zeros(mentions.n_words, np.int32), Vocabulary(["_"]))

    # --- predicting

    def predict(self, mentions: Mentions, *, confidence: bool = False) -> Mentions:
        """The same sentences and names, with the relations between these; what was there is not looked at.

        With `confidence`, the result has the posterior of each relation.
        """
        learnt, given = self._learnt, _checked(mentions, "predict")
        check_reading(self.reading_, given.text())
        pairs = NamePairs.of(given)
        with using_threads(self.threads):
            return self._found(given, pairs, self._problem(given, pairs, learnt.words), learnt, confidence)

    def _found(
        self, mentions: Mentions, pairs: NamePairs, problem: Problem, learnt: FittedPairs, confidence: bool
    ) -> Mentions:
        labels = Labels.read(learnt.labels)
        relations: list[list[tuple[int, int, str]]] = []
        sure: list[list[float]] = []
        each = learnt.posteriors(problem, self.at_most_one)
        for start, (chances, rows) in zip(pairs.offsets[:-1].tolist(), each, strict=True):
            chosen = chosen_labels(chances, rows, float(self.threshold))
            on = np.flatnonzero(chosen >= 0).tolist()
            relations.append([pairs.relation(start + p, int(chosen[p]), labels) for p in on])
            sure.append([float(rows[p, chosen[p]]) for p in on])
        return mentions.with_relations(relations, sure if confidence else None)

    def predict_proba(self, mentions: Mentions) -> list[NDArray[np.float64]]:
        """The posterior of each label of each pair of names: float64[n_pairs, n_labels] for each sentence.

        Pairs are (0, 1), (0, 2), …, (1, 2), … by the numbers of names; labels are `labels_`.
        """
        learnt, given = self._learnt, _checked(mentions, "predict_proba")
        with using_threads(self.threads):
            return self._chances(self._problem(given, NamePairs.of(given), learnt.words), learnt)

    def latent_trees(self, mentions: Mentions) -> list[LatentTree]:
        """The most probable hidden tree of each sentence, labels summed out, to look at."""
        learnt, given = self._with_trees(), _checked(mentions, "latent_trees")
        pairs, nodes = NamePairs.of(given), Nodes.of(given)
        found: list[LatentTree] = []
        with using_threads(self.threads):
            problem = self._problem(given, pairs, learnt.words)
            for batch in learnt.batches(problem, self.at_most_one):
                found += _drawn_out(batch, [nodes.words(given, len(found) + s) for s in range(len(batch))])
        return found

    def score(self, mentions: Mentions) -> RelationScore:
        """Precision, recall and F1 of relations, in percent: macro-averaged for files of SemEval."""
        gold = _checked(mentions, "score")
        return score_relations(self.predict(gold), gold)

    @property
    def labels_(self) -> tuple[str, ...]:
        """Relations with their directions."""
        return self._learnt.labels

    # --- keeping

    def _to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, meta = self._learnt.to_arrays(), {}
        for name, helper in (("tagger", self._tagger), ("parser", self._parser)):
            own, meta[name] = store.hold(name, helper)
            arrays |= own
        return arrays, meta

    def _of_parts(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> FittedPairs:
        self._tagger = None if meta["tagger"] is None else store.held("tagger", arrays, meta["tagger"], CrfTagger)
        self._parser = None
        if self.syntax == "given":
            self._parser = store.held("parser", arrays, meta["parser"], DependencyParser)
            if self._parser.tags != "predicted":
                raise ValueError("its parser does not predict tags")
        fitted = FittedPairs.from_arrays(arrays, self._templates, self.bits)
        Labels.read(fitted.labels)
        return fitted


def _checked(mentions: Any, place: str) -> Mentions:
    if not isinstance(mentions, Mentions):
        raise ParameterError(
            f"{place}: give Mentions, as Mentions.read('relations.txt'), not {type(mentions).__name__}"
        )
    long = np.flatnonzero(mentions.lengths > LONGEST)
    if len(long):
        s = int(long[0])
        raise MentionsError(
            f"{mentions.name}, line {mentions.line_of(s)}: a sentence of {mentions.lengths[s]} words; relations are "
            f"looked for in sentences of up to {LONGEST}. Cut it"
        )
    return mentions


def _drawn_out(batch: HiddenTrees, nodes: list[tuple[str, ...]]) -> list[LatentTree]:
    """The most probable tree of each sentence, with the posterior of each part."""
    trees = batch.trees()
    best, found = trees.argmax(), []
    for own, tree, posterior in zip(nodes, best, trees.marginals(), strict=True):
        if batch.tree == "brackets":
            spans = tuple(sorted(tree))
            chance = tuple(float(posterior[span_number(i, j, len(own))]) for i, j in spans)
            found.append(LatentTree(own, None, spans, chance))
        else:
            heads = tuple(int(head) for head in tree)
            chance = tuple(float(posterior[head, child]) for child, head in enumerate(heads, 1))
            found.append(LatentTree(own, heads, None, chance))
    return found
