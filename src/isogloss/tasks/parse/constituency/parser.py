"""`ConstituencyParser`: trees of constituents over the words of a text, with posteriors for every bracket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.constituent_forms import ROOTS
from isogloss.data.constituents import Constituents
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError, UsageError
from isogloss.features import Templates
from isogloss.learners.passes import Course, LearntInPasses
from isogloss.learners.runner import Keeping
from isogloss.metrics.brackets import BracketScore, score_brackets
from isogloss.progress import Progress
from isogloss.tasks.parse.constituency.explaining import explain
from isogloss.tasks.parse.constituency.features import SPAN_TEMPLATES, templates_for
from isogloss.tasks.parse.constituency.fitted import FittedSpans
from isogloss.tasks.parse.constituency.grammar import GrammarModel
from isogloss.tasks.parse.constituency.learning import SpanLesson
from isogloss.tasks.parse.constituency.model import TreeFeatures
from isogloss.tasks.parse.constituency.options import THRESHOLDS, ConstituencyOptions
from isogloss.tasks.parse.constituency.parsing import Choosing, distributions, parsed, posteriors
from isogloss.tasks.parse.constituency.seen import Given, Seen, usable
from isogloss.tasks.parse.constituency.trees import Labels, plain, trees_of
from isogloss.tasks.parse.constituency.words import Known
from isogloss.tasks.parse.cutting import LONGEST
from isogloss.tasks.tag import CrfTagger

__all__ = ["ConstituencyParser"]


class ConstituencyParser(ConstituencyOptions, LearntInPasses[FittedSpans]):
    r"""Parses sentences by scores of labelled spans, learnt from bracketed trees alone.

    .. math:: p(y \mid x) \propto \exp \sum_{(i, j, \ell) \in y} w_\ell \cdot f(x, i, j)

    over all trees, whose nodes may have any number of children [1]_: sums are exact, and no tree is counted twice. A
    unary chain is a label of its own. Features look at the words and tags at the edges of a span, around it and inside
    of it, by themselves and with its length (`isogloss.tasks.parse.constituency.features`) [2]_.

    With model "grammar", trees are derivations of grammars instead, whose symbols have hidden states that are learnt by
    splitting and merging them (`isogloss.learners.split_merge`) [3]_, and what is said about a span is the mean
    posterior of several such grammars. Model "both" averages the posteriors of either kind.

    Parameters
    ----------
    model : "span", "grammar" or "both"
        What trees are made of.
    cycles : int
        How often the states of grammars are split in two, and half of them merged.
    grammars : int
        How many grammars are learnt, which begin with different noise.
    share : float
        What grammars count for with model "both".
    trainer : "likelihood", "mira" or "perceptron"
        What is learnt: probabilities of trees, or margins.
    order : 1 or 2
        Whether brackets are scored one by one, or see the label of the one above (`isogloss.structures.family_tree`):
        parts are then also a span below a label, a word below a label, a place where the children of a label meet, and
        two labels one above the other.
    decoder : "mbr" or "map", optional
        The tree with the highest sum of posteriors, less `threshold` for each bracket; or the best one. If not given,
        the former for likelihood, the latter for margins.
    threshold : float, optional
        What a bracket costs with decoder "mbr".
    tags : "predicted" or "gold"
        Whether tags are predicted by a tagger that the parser carries along, or taken as they are given. With
        "predicted" the parser learns from tags that were predicted in five folds.
    prune : float
        A small model of bare brackets goes first; spans to which it gives less than this are not looked at. 0 looks at
        all.
    iterations : int
        Passes over the trees; with `dev` the best number up to this.
    rate : float, optional
        Length of steps; for MIRA the longest.
    l2 : float
        Penalty on the squares of weights, ½ l2 ‖w‖² beside the log-likelihood of all sentences.
    batch : int
        Sentences of a step.
    min_count : int
        Features that fire less often on gold brackets are left out.
    min_word : int
        Words that occur less often are seen by their shapes and endings alone.
    templates : sequence of str, optional
        See `isogloss.tasks.parse.constituency.features`.
    seed : int
        Seed of the order of sentences.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_passes]
        Loss of a word in each pass, as it was met.
    tuning_ : float64[n_passes]
        F1 on dev after each pass; empty without dev.

    References
    ----------
    .. [1] Stern, Andreas and Klein, A minimal span-based neural constituency parser, ACL 2017, without the network.
    .. [2] Hall, Durrett and Klein, Less grammar, more features, ACL 2014.
    .. [3] Petrov, Barrett, Thibaux and Klein, Learning accurate, compact, and interpretable tree annotation, ACL 2006;
       Petrov, Products of random latent variable grammars, NAACL 2010, whose products are means here.

    Examples
    --------
    >>> from isogloss.data import Text
    >>> few = ["(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))", "(S (NP (NN he)) (VP (VBZ eats)))"]
    >>> trees = Constituents.of(few * 4)
    >>> parser = ConstituencyParser(iterations=3).fit(trees)
    >>> print(parser.predict(Text.of(["the dog eats"]))[0])
    (S (NP (DT the) (NN dog)) (VP (VBZ eats)))
    """

    _kind: ClassVar[str] = "constituency.span"
    _saved_as: ClassVar[str] = "the saved parser"

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        templates_for(self.order, self.span_templates)

    @property
    def _templates(self) -> dict[str, Templates]:
        """What parts of trees are seen by; nothing with a grammar alone."""
        return {} if self.model == "grammar" else templates_for(self.order, self.span_templates)

    @property
    def span_templates(self) -> tuple[Any, ...]:
        """What spans are seen by: `templates`, or the usual ones."""
        return tuple(SPAN_TEMPLATES if self.templates is None else self.templates)

    @property
    def bracket_cost(self) -> float:
        """What a bracket costs: `threshold` or, if that is not given, what suits the model."""
        return THRESHOLDS[self.model] if self.threshold is None else float(self.threshold)

    @property
    def choosing(self) -> str:
        """How a tree is chosen: as `decoder` says or, if that is not given, as suits the trainer."""
        return self.decoder or ("mbr" if self.trainer == "likelihood" or self.model != "span" else "map")

    @property
    def _how(self) -> Choosing:
        return Choosing(self.bracket_cost if self.choosing == "mbr" else None, float(self.share))

    # --- learning

    def fit(
        self,
        trees: Constituents,
        dev: Constituents | None = None,
        progress: Progress | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn the trees of a treebank.

        Parameters
        ----------
        trees : Constituents
            Function tags and traces are left aside, and discontinuous trees made continuous.
        dev : Constituents, optional
            Other trees; the number of passes is that of the best F1 on them. Grammars do not look at them.
        progress : Progress, optional
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        with self._course(progress, checkpoint, resume, [trees, dev]) as course:
            if dev is not None and not dev.n_words:
                raise TreebankError(f"{dev.name}: there are no words, so that no pass is better than another on it")
            labels, flat = Labels.of(usable(trees))
            if not labels.names:
                raise TreebankError(
                    f"{trees.name}: no tree has a bracket, so there is nothing to learn. Is it the right file?"
                )
            self._learn(labels, flat, None if dev is None else plain(dev), course)
        return self._learnt_from(flat.text())

    def _learn(self, labels: Labels, trees: Constituents, dev: Constituents | None, course: Course) -> None:
        """Grammars first, which look at no other trees, then weights of spans."""
        grammar = None
        if self.model != "span":
            with using_threads(self.threads):
                grammar = self._learn_grammar(labels, trees, course)
        if self.model != "grammar":
            lesson = SpanLesson.of(self, labels, trees, dev, course.progress)  # taggers have threads of their own
            with using_threads(self.threads):
                fitted, passed = lesson.learn(self, self._templates, self._how, course)
            self._take(replace(fitted, grammar=grammar), passed.losses(trees.n_words), passed.scores)

    def _learn_grammar(self, labels: Labels, trees: Constituents, course: Course) -> GrammarModel:
        """Learn the grammars; with model "both" they come first, and are not kept in checkpoints."""
        grammar, trace = GrammarModel.fit(
            trees, labels, cycles=self.cycles, grammars=self.grammars, seed=self.seed, progress=course.progress,
            keeping=course.keeping if self.model == "grammar" else Keeping(),
        )  # fmt: skip
        none, weights = TreeFeatures({}, {}, len(labels.names)), np.zeros(0, np.float32)
        fitted = FittedSpans(labels, Known(()), none, weights, None, None, grammar)
        self._take(fitted, -trace / max(1, trees.n_words), np.zeros(0))
        return grammar

    # --- predicting

    def predict(self, text: Given, *, confidence: bool = False) -> Constituents:
        """Trees over the words of a text; tags are predicted too, unless the parser learnt from given ones.

        With `confidence`, the trees have the posterior of each bracket. Sentences of more than
        `isogloss.tasks.parse.cutting.LONGEST` words are parsed in pieces, which are then put side by side.
        """
        learnt = self._learnt
        seen = self._seen(text, learnt)
        with using_threads(self.threads):
            return parsed(seen, learnt, self._how, str(getattr(text, "name", "<memory>")), confidence)

    def predict_proba(self, text: Given) -> list[NDArray[np.float64]]:
        """The posterior of each label of each span: float64[n_spans, n_labels] for each sentence, or piece of one.

        Spans are numbered by width, then by start (`isogloss.structures.spans_of`); labels are `labels_`.
        """
        learnt = self._learnt
        seen = self._seen(text, learnt)
        with using_threads(self.threads):
            return [
                np.array(one) for trees in distributions(seen, learnt, float(self.share)) for one in posteriors(trees)
            ]

    def k_best(self, text: Given, k: int) -> list[list[tuple[float, Constituents]]]:
        """The `k` most probable trees of each sentence, each with its log probability.

        With order 2 every tree takes a search for each span of the sentence. For model "span".
        """
        learnt = self._spans_alone("k_best")
        seen = self._seen(text, learnt)
        if int(np.diff(seen.codes.offsets).max(initial=0)) > LONGEST:
            raise UsageError(f"k_best: a sentence has more than {LONGEST} words. Cut it")
        found = []
        with using_threads(self.threads):
            at = 0
            for trees in distributions(seen, learnt):
                totals = trees.log_partition().tolist()
                for total, best in zip(totals, trees.k_best(k), strict=True):
                    made = [trees_of([seen.words[at]], [seen.tags[at]], [y], learnt.names, "k_best") for _, y in best]
                    found.append([(score - total, tree) for (score, _), tree in zip(best, made, strict=True)])
                    at += 1
        return found

    def score(self, trees: Constituents) -> BracketScore:
        """Precision, recall and F1 of labelled brackets by EVALB's rules, in percent."""
        if not isinstance(trees, Constituents):
            raise ParameterError(
                f"score: give Constituents, as Constituents.read('gold.mrg'), not {type(trees).__name__}"
            )
        gold = plain(trees)
        return score_brackets(self.predict(gold), gold)

    def explain(self, text: Given, sentence: int, begin: int, end: int, *, label: str | None = None) -> dict[str, Any]:
        """Why the words begin … end - 1 are a constituent, or are none; plain data.

        Parameters
        ----------
        text : Constituents, Treebank or Text
        sentence, begin, end : int
            From 0; `end` is behind the last word.
        label : str, optional
            The label to speak of; the most probable one without it.

        Returns
        -------
        dict
            `words`, `label`, its `probability`, `score`, the probabilities of the best `labels`, and `features`: the
            names of all that fire, with their weights for the label, the largest first. For model "span".
        """
        learnt = self._spans_alone("explain")
        return explain(self._seen(text, learnt), learnt, sentence, begin, end, label)

    def _spans_alone(self, method: str) -> FittedSpans:
        """What was learnt, where labelled spans have scores of their own."""
        if self.model != "span":
            raise UsageError(
                f"{method}: a parser with model={self.model!r} has posteriors of labels of spans (predict_proba), but "
                "no scores of whole trees. Train one with model='span'"
            )
        return self._learnt

    def _seen(self, text: Given, learnt: FittedSpans) -> Seen:
        return Seen.of(text, learnt, gold=self.tags == "gold")

    @property
    def labels_(self) -> tuple[str, ...]:
        """Labels of spans, in the order of the columns of `predict_proba`; ``+`` joins those of unary chains."""
        return self._learnt.labels

    @property
    def n_features_(self) -> int:
        """How many features have weights."""
        return sum(index.n_features for index in self._learnt.features.indices.values())

    @property
    def n_states_(self) -> tuple[int, ...]:
        """How many states all symbols of each grammar have together; empty with model "span"."""
        grammar = self._learnt.grammar
        return () if grammar is None else tuple(one.grammar.n_states for one in grammar.fine)

    @property
    def tagger_(self) -> CrfTagger | None:
        """The tagger that the parser carries along."""
        return self._learnt.tagger

    # --- keeping

    @property
    def options_(self) -> dict[str, Any]:
        """Every option as it was used; what is kept with a model."""
        used = {"templates": self.span_templates, "decoder": self.choosing, "threshold": self.bracket_cost}
        return super().options_ | used

    def _to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        learnt = self._learnt
        arrays, about = store.hold("tagger", learnt.tagger)
        return learnt.to_arrays() | arrays, {"root": learnt.names.root, "tagger": about}

    def _of_parts(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> FittedSpans:
        root, tagger = meta["root"], None
        if root is not None and root not in ROOTS:
            raise ValueError(f"the outermost bracket is {root!r}")
        if self.tags == "predicted" and self.model != "grammar":
            tagger = store.held("tagger", arrays, meta["tagger"], CrfTagger)
            if tagger.column != "xpos":
                raise ValueError(f"its tagger is for {tagger.column}")
        prune = 0.0 if self.model == "grammar" else float(self.prune)
        grammars = 0 if self.model == "span" else self.grammars
        return FittedSpans.from_arrays(arrays, self._templates, root, tagger, prune, grammars)
