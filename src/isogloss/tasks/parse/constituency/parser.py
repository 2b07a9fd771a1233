"""`ConstituencyParser`: trees of constituents over the words of a text, with posteriors for every bracket."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.constituent_forms import ROOTS
from isogloss.data.constituents import Constituents, unescaped
from isogloss.data.formats import IsoglossWarning
from isogloss.data.reading import Reading
from isogloss.data.treebank import Column, Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError, UsageError
from isogloss.features import Index, Templates
from isogloss.features.table import KEYS
from isogloss.layout import Layout, Numbers, Strings, check, collect, vector
from isogloss.learners.loglinear import AdaGrad, Likelihood
from isogloss.learners.margin import Mira, Perceptron
from isogloss.learners.runner import Keeping, run
from isogloss.learners.tuning import Tuned
from isogloss.metrics.brackets import BracketScore, score_brackets
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.span_tree import SpanTrees
from isogloss.structures.spans import span_number
from isogloss.tasks.parse.constituency.features import SPAN_TEMPLATES, templates_for
from isogloss.tasks.parse.constituency.filtering import SpanFilter
from isogloss.tasks.parse.constituency.grammar import GrammarModel
from isogloss.tasks.parse.constituency.model import GoldBrackets, TreeFeatures, gold_spans, model_of
from isogloss.tasks.parse.constituency.options import RATES, THRESHOLDS, ConstituencyOptions
from isogloss.tasks.parse.constituency.pruning import Within
from isogloss.tasks.parse.constituency.trees import Labels, Spans, as_spans, check_tops, column_of, plain, trees_of
from isogloss.tasks.parse.constituency.words import Known, Sentences, span_parts
from isogloss.tasks.parse.cutting import LONGEST, cut
from isogloss.tasks.tag import CrfTagger, jackknife

__all__ = ["ConstituencyParser"]

LEAST = 1e-3
"""Labelled spans whose posterior is so near to what it should be are left alone in a step."""
NEGLIGIBLE = 5e-3
"""Features all of whose weights are smaller than this share of the largest are not kept."""
PIECE = 1 << 16
"""Spans whose scores are in memory together."""
FOLDS = 5

LAYOUT: Layout = {
    "labels": Strings("labels", distinct=True, least=1, cells=True),
    "known": Strings("known", distinct=True, cells=True),
}
Given = Constituents | Treebank | Text


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learnt: labels, words that are known by themselves, features with their weights, and a tagger."""

    names: Labels
    words: Known
    features: TreeFeatures
    weights: NDArray[np.float32]
    tagger: CrfTagger | None
    filter: SpanFilter | None = None
    grammar: GrammarModel | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        return self.names.names

    @property
    def known(self) -> tuple[str, ...]:
        return self.words.words

    def compact(self) -> Fitted:
        """Without features all of whose weights are negligible."""
        rows, indices, kept = self.features.split(self.weights), {}, {}
        least = NEGLIGIBLE * float(np.abs(self.weights).max(initial=0.0))
        large = {
            name: np.abs(own.reshape(len(own), math.prod(own.shape[1:]))).max(axis=1, initial=0.0) > least
            for name, own in rows.items()
        }
        wide = self.features.wide
        for name, index in self.features.indices.items():
            worth = large[name]
            if name == "label" and wide is not None:
                worth = np.empty(len(wide), bool)
                worth[wide], worth[~wide] = large["label"], large["bracket"]
                kept["bracket"] = rows["bracket"][large["bracket"]]
                wide = wide[worth]
            indices[name] = Index(index.keys[worth])
            kept[name] = rows[name][large[name]]
        features = replace(self.features, indices=indices, wide=wide)
        weights = [kept.get(name, rows[name]).reshape(-1) for name in features.shapes()]
        return replace(self, features=features, weights=np.concatenate(weights))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `isogloss.store`."""
        arrays = collect(self, LAYOUT)
        if self.features.templates:
            for name, index in self.features.indices.items():
                arrays[f"{name}.keys"] = index.keys
            for name, own in self.features.split(self.weights).items():
                arrays[f"{name}.weights"] = np.ascontiguousarray(own)
            arrays["wide"] = np.asarray(self.features.wide, np.uint8)
        for name, part in (("filter.", self.filter), ("grammar.", self.grammar)):
            arrays |= {} if part is None else store.prefixed(name, part.to_arrays())
        return arrays

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        templates: Mapping[str, Templates],
        root: str | None,
        tagger: CrfTagger | None,
        prune: float,
        grammars: int = 0,
    ) -> Fitted:
        """The inverse of `to_arrays`."""
        place = "the saved parser"
        found = check(arrays, LAYOUT, place)
        unused = (*(() if "below" in templates else ("below.", "place.", "pair.")), *(() if prune else ("filter.",)))
        unused += (() if templates else ("label.", "bracket.", "wide")) + (() if grammars else ("grammar.",))
        if strange := sorted(name for name in arrays if name.startswith(unused)):
            raise ValueError(f"its options have no use for {strange[0]}")
        if any(re.search(r"[\s()]", label) for label in found["labels"]):
            raise ValueError("a label has a space or a bracket in it")
        layouts = {name: check(arrays, {f"{name}.keys": KEYS}, place)[f"{name}.keys"] for name in templates}
        indices = {name: Index(keys) for name, keys in layouts.items()}
        wide = None
        if templates:
            wide = check(arrays, {"wide": Numbers("uint8", indices["label"].n_features, below=2)}, place)["wide"] == 1
        features = TreeFeatures(templates, indices, len(found["labels"]), wide)
        layout: Layout = {f"{name}.weights": Numbers("float32", shape) for name, shape in features.shapes().items()}
        weights = [own.reshape(-1) for own in check(arrays, layout, place).values()]
        names = Labels(tuple(found["labels"]), root)
        known = Known(tuple(found["known"]))
        chosen = SpanFilter.from_arrays(store.unprefixed("filter.", arrays), prune) if prune else None
        grammar = None
        if grammars:
            grammar = GrammarModel.from_arrays(store.unprefixed("grammar.", arrays), len(found["labels"]), grammars)
        joint = np.concatenate([np.zeros(0, np.float32), *weights])
        return cls(names, known, features, joint, tagger, chosen, grammar)


class _Seen(NamedTuple):
    """Sentences as the parser sees them."""

    words: list[tuple[str, ...]]
    tags: list[tuple[str, ...]]
    codes: Sentences


class ConstituencyParser(ConstituencyOptions):
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
    >>> few = ["(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))", "(S (NP (NN he)) (VP (VBZ eats)))"]
    >>> trees = Constituents.of(few * 4)
    >>> parser = ConstituencyParser(iterations=3).fit(trees)
    >>> print(parser.predict(Text.of(["the dog eats"]))[0])
    (S (NP (DT the) (NN dog)) (VP (VBZ eats)))
    """

    _kind: ClassVar[str] = "constituency.span"

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
    def step_length(self) -> float:
        """Length of steps: `rate` or, if that is not given, what suits the trainer."""
        return RATES[self.trainer] if self.rate is None else float(self.rate)

    @property
    def bracket_cost(self) -> float:
        """What a bracket costs: `threshold` or, if that is not given, what suits the model."""
        return THRESHOLDS[self.model] if self.threshold is None else float(self.threshold)

    @property
    def choosing(self) -> str:
        """How a tree is chosen: as `decoder` says or, if that is not given, as suits the trainer."""
        return self.decoder or ("mbr" if self.trainer == "likelihood" or self.model != "span" else "map")

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
        progress = progress or QuietProgress()
        keeping = Keeping.of(checkpoint, resume, self.options_, [trees, dev])
        if dev is not None and not dev.n_words:
            raise TreebankError(f"{dev.name}: there are no words, so that no pass is better than another on it")
        labels, flat = Labels.of(_usable(trees))
        if not labels.names:
            raise TreebankError(
                f"{trees.name}: no tree has a bracket, so there is nothing to learn. Is it the right file?"
            )
        try:
            with using_threads(self.threads):
                grammar = None if self.model == "span" else self._learn_grammar(labels, flat, progress, keeping)
            if self.model != "grammar":
                tags, tagger = self._tags(flat, progress)
                with using_threads(self.threads):
                    self._learn(labels, flat, tags, tagger, None if dev is None else plain(dev), progress, keeping)
                self._fitted: Fitted = replace(self._fitted, grammar=grammar)
        finally:
            progress.finish()
        self.reading_ = Reading.of(flat.text(), frequent=True)
        return self

    def _learn_grammar(
        self, labels: Labels, trees: Constituents, progress: Progress, keeping: Keeping
    ) -> GrammarModel:  # fmt: skip
        """Learn the grammars; with model "both" they come first, and are not kept in checkpoints."""
        grammar, trace = GrammarModel.fit(
            trees, labels, cycles=self.cycles, grammars=self.grammars, seed=self.seed, progress=progress,
            keeping=keeping if self.model == "grammar" else Keeping(),
        )  # fmt: skip
        none, weights = TreeFeatures({}, {}, len(labels.names)), np.zeros(0, np.float32)
        self._fitted = Fitted(labels, Known(()), none, weights, None, None, grammar)
        self.trace_, self.tuning_ = -trace / max(1, trees.n_words), np.zeros(0)
        return grammar

    def _tags(self, trees: Constituents, progress: Progress) -> tuple[Column, CrfTagger | None]:
        """The tags that the parser is to see, and the tagger that will make them for other text."""
        if self.tags == "gold":
            return trees.columns["tag"], None
        given = _as_treebank(trees)
        tagger = CrfTagger("xpos", seed=self.seed, threads=self.threads)
        seen = given
        if len(trees) > 1:
            folds = min(FOLDS, len(trees))
            seen = jackknife(given, tagger, folds, progress=progress, threads=self.threads)
        tagger.fit(given, None, progress)
        return seen.columns["xpos"], tagger

    def _learn(
        self,
        labels: Labels,
        trees: Constituents,
        tags: Column,
        tagger: CrfTagger | None,
        dev: Constituents | None,
        progress: Progress,
        keeping: Keeping,
    ) -> None:
        progress.start("Collecting features", 1)
        known = Known.of(trees.columns["form"], self.min_word)
        codes = Sentences.of(trees.offsets, trees.columns["form"], tags, known)
        templates, gold = templates_for(self.order, self.span_templates), as_spans(trees, labels)
        parts = span_parts(codes)
        marked = gold_spans(gold, parts.offsets, trees.lengths)
        chosen, kept, seen = None, None, np.ones(parts.n_parts, bool)
        if self.prune:
            chosen = SpanFilter.fit(
                codes, parts, gold, marked, threshold=float(self.prune), seed=self.seed, progress=progress
            )
            kept = chosen.kept(codes, parts, marked)
            seen = kept.marked(parts.offsets)
        features = TreeFeatures.collected(templates, codes, parts, marked, len(labels.names), self.min_count, seen)
        model = model_of(features, codes, parts, kept)
        learner = self._learner(model, GoldBrackets(gold, len(labels.names)), progress)
        fitted = Fitted(labels, known, features, np.zeros(0, np.float32), tagger, chosen)
        score = None if dev is None else self._held_out(fitted, dev)
        tuned = Tuned(learner, score, "F1 {:.2f} on dev")
        result = run(
            tuned, tuned.init(), iterations=self.iterations, should_stop=tuned.is_done, progress=progress,
            name="Learning brackets", every=None, **keeping.arguments,
        )  # fmt: skip
        self._fitted = replace(fitted, weights=result.state.weights).compact()
        self.trace_ = -np.asarray(result.trace) / max(1, trees.n_words)
        self.tuning_ = np.array(result.state.scores, np.float64)

    def _learner(self, model: Any, gold: GoldBrackets, progress: Progress) -> Any:
        passing: dict[str, Any] = {
            "batch": self.batch, "seed": self.seed, "average_from": int(self.iterations > 1), "in_place": True,
            "within": progress.within,
        }  # fmt: skip
        if self.trainer == "perceptron":
            return Perceptron(model, gold, **passing)
        if self.trainer == "mira":
            return Mira(model, gold, augmentation=(1.0, 1.0), cap=self.step_length, **passing)
        likely = Likelihood(model, target=gold, least=LEAST)
        return AdaGrad(likely, rate=self.step_length, l2=float(self.l2), **passing)

    def _held_out(self, fitted: Fitted, dev: Constituents) -> Any:
        seen = self._as_seen(dev, fitted)

        def f1(weights: NDArray[np.float32]) -> float:
            found = self._parsed(seen, replace(fitted, weights=weights), dev.name)
            return float(score_brackets(found, dev, bootstrap=0).f1)

        return f1

    # --- predicting

    def predict(self, text: Given, *, confidence: bool = False) -> Constituents:
        """Trees over the words of a text; tags are predicted too, unless the parser learnt from given ones.

        With `confidence`, the trees have the posterior of each bracket. Sentences of more than
        `isogloss.tasks.parse.cutting.LONGEST` words are parsed in pieces, which are then put side by side.
        """
        learnt = self._learnt
        seen = self._as_seen(text, learnt)
        with using_threads(self.threads):
            return self._parsed(seen, learnt, _name_of(text), confidence)

    def predict_proba(self, text: Given) -> list[NDArray[np.float64]]:
        """The posterior of each label of each span: float64[n_spans, n_labels] for each sentence, or piece of one.

        Spans are numbered by width, then by start (`isogloss.structures.spans_of`); labels are `labels_`.
        """
        learnt = self._learnt
        seen = self._as_seen(text, learnt)
        with using_threads(self.threads):
            return [np.array(one) for trees in self._trees(seen, learnt) for one in _posteriors(trees)]

    def k_best(self, text: Given, k: int) -> list[list[tuple[float, Constituents]]]:
        """The `k` most probable trees of each sentence, each with its log probability.

        With order 2 every tree takes a search for each span of the sentence. For model "span".
        """
        learnt = self._spans_alone("k_best")
        seen = self._as_seen(text, learnt)
        if int(np.diff(seen.codes.offsets).max(initial=0)) > LONGEST:
            raise UsageError(f"k_best: a sentence has more than {LONGEST} words. Cut it")
        found = []
        with using_threads(self.threads):
            at = 0
            for trees in self._trees(seen, learnt):
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
        seen = self._as_seen(text, learnt)
        n = len(seen.words[sentence]) if 0 <= sentence < len(seen.words) else 0
        if not 0 <= begin < end <= n:
            raise UsageError(f"explain: there are no words {begin} to {end} in a sentence {sentence}; all count from 0")
        if n > LONGEST:
            raise UsageError(f"explain: the sentence has more than {LONGEST} words. Cut it")
        if label is not None and label not in learnt.labels:
            raise UsageError(f"explain: the parser knows no label {label!r}; it knows {', '.join(learnt.labels)}")
        one = self._as_seen(Constituents.assembled([seen.words[sentence]], [seen.tags[sentence]], [[]]), learnt)
        (trees,) = self._trees(one, learnt)
        row = np.asarray(_posteriors(trees)[0])[span_number(begin, end, n)]
        best = np.argsort(-row, kind="stable").tolist()
        chosen = best[0] if label is None else learnt.labels.index(label)
        part = span_number(begin, end, n)
        found = _features(span_parts(one.codes), part, learnt, chosen)
        return {
            "words": list(seen.words[sentence][begin:end]),
            "label": learnt.labels[chosen],
            "probability": float(row[chosen]),
            "score": float(trees.scores.values[part * len(learnt.labels) + chosen]),
            "labels": {learnt.labels[k]: float(row[k]) for k in best[:5]},
            "features": found,
        }

    def _spans_alone(self, method: str) -> Fitted:
        """What was learnt, where labelled spans have scores of their own."""
        if self.model != "span":
            raise UsageError(
                f"{method}: a parser with model={self.model!r} has posteriors of labels of spans (predict_proba), but "
                "no scores of whole trees. Train one with model='span'"
            )
        return self._learnt

    def _as_seen(self, text: Given, learnt: Fitted) -> _Seen:
        """Words, tags and codes of what is to be parsed."""
        if isinstance(text, Constituents):
            text = plain(text)
            words = [text.words(k) for k in range(len(text))]
            tags, forms, offsets = text.columns["tag"], text.columns["form"], text.offsets
        elif isinstance(text, Treebank):
            words = [text.words(k) for k in range(len(text))]
            tags, forms, offsets = text.columns["xpos"], text.columns["form"], text.offsets
            if self.tags == "gold":
                raise TreebankError(
                    f"{text.name}: this parser learnt from tags that were given, and a treebank has them in several "
                    "columns. Give Constituents, as Constituents.from_dependencies(treebank, tag='upos')"
                )
        elif isinstance(text, Text):
            words = [text.tokens(k) for k in range(len(text))]
            if self.tags == "gold":
                raise TreebankError(
                    f"{text.name}: has no tags, and this parser learnt from tags that were given (--tags gold). Give "
                    "trees, whose tags are taken, or train with --tags predicted (tags='predicted')"
                )
            forms = tags = column_of(words)
            offsets = np.concatenate([[0], np.cumsum(text.ids.lengths)]).astype(np.int64)
        else:
            raise ParameterError(
                f"{type(text).__name__} cannot be parsed. Give Constituents, a Treebank, or a Text, as "
                "Text.of(['she sleeps'])"
            )
        if learnt.tagger is not None:
            plain_words = [[unescaped(word) for word in sentence] for sentence in words]
            tagged = learnt.tagger.predict(Text.of(plain_words))
            tags = tagged.columns["xpos"]
        names = tags.vocabulary.types
        listed = [names[number] for number in tags.ids.tolist()]
        own = [tuple(listed[a:b]) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        return _Seen(words, own, Sentences.of(offsets, forms, tags, learnt.words))

    def _trees(self, seen: _Seen, learnt: Fitted) -> Iterator[Any]:
        """Distributions over the trees of all sentences, or their pieces, some at a time."""
        codes, offsets = seen.codes, cut(seen.codes.offsets)
        lengths = np.diff(offsets)
        spans = np.cumsum(lengths * (lengths + 1) // 2)
        words = [word for sentence in seen.words for word in sentence]
        tags = [tag for sentence in seen.tags for tag in sentence] if self.tags == "gold" else None
        start, piece = 0, PIECE if learnt.grammar is None else PIECE // 4
        while start < len(lengths):
            before = int(spans[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(spans, before + piece, side="right")))
            found: Any = None
            if learnt.features.templates:
                some = codes.part(offsets[start : stop + 1])
                parts = span_parts(some)
                kept = None if learnt.filter is None else learnt.filter.kept(some, parts)
                found = model_of(learnt.features, some, parts, kept).batch(learnt.weights, np.arange(stop - start))
            if learnt.grammar is not None:
                bounds = list(pairwise(offsets[start : stop + 1].tolist()))
                given = None if tags is None else [tags[a:b] for a, b in bounds]
                beside = None if found is None else _posteriors(found)
                within = None if beside is None else Within(learnt.labels, beside)
                own = learnt.grammar.posteriors([words[a:b] for a, b in bounds], given, within=within)
                found = own if beside is None else own.mixed(beside, float(self.share))
            yield found
            start = stop

    def _parsed(self, seen: _Seen, learnt: Fitted, name: str, confidence: bool = False) -> Constituents:
        found: list[Spans] = []
        sure: list[dict[tuple[int, int, int], float]] = []
        own_tags: list[str] = []
        for trees in self._trees(seen, learnt):
            best = trees.most_right(threshold=self.bracket_cost) if self.choosing == "mbr" else trees.argmax()
            found += best
            if self.model == "grammar":
                own_tags += [tag for tags in trees.tags for tag in tags]
            if confidence:
                for spans, posterior in zip(best, _posteriors(trees), strict=True):
                    n = max((end for _, end, _ in spans), default=0)
                    sure.append({span: float(posterior[span_number(span[0], span[1], n), span[2]]) for span in spans})
        pieces = cut(seen.codes.offsets)
        if len(pieces) != len(seen.codes.offsets):
            found, sure = _whole(found, sure, pieces, seen.codes.offsets)
        bounds = pairwise(seen.codes.offsets.tolist())
        tags = [tuple(own_tags[a:b]) for a, b in bounds] if self.model == "grammar" else seen.tags
        made = trees_of(seen.words, tags, found, learnt.names, name)
        return replace(made, confidence=_confidence(made, found, sure, learnt.names)) if confidence else made

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

    @property
    def _learnt(self) -> Fitted:
        if not hasattr(self, "_fitted"):
            raise self._has_not_learnt
        return self._fitted

    # --- keeping

    @property
    def options_(self) -> dict[str, Any]:
        """Every option as it was used; what is kept with a model."""
        used = {
            "rate": self.step_length,
            "templates": self.span_templates,
            "decoder": self.choosing,
            "threshold": self.bracket_cost,
        }
        return super().options_ | used

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays = learnt.to_arrays()
        meta: dict[str, Any] = {
            "root": learnt.names.root, "trace": self.trace_.tolist(), "tuning": self.tuning_.tolist(), "tagger": None,
        }  # fmt: skip
        if learnt.tagger is not None:
            own, meta["tagger"] = store.hold("tagger", learnt.tagger)
            arrays |= own
        return store.Saved(self._kind, self.options_, arrays, meta | Reading.to_meta(self.reading_))

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        arrays, meta = saved.arrays, saved.meta
        with store.reading("the saved parser"):
            parser = cls.of_options(saved.options)
            root = meta["root"]
            if root is not None and root not in ROOTS:
                raise ValueError(f"the outermost bracket is {root!r}")
            tagger = None
            if parser.tags == "predicted" and parser.model != "grammar":
                tagger = store.held("tagger", arrays, meta["tagger"], CrfTagger)
                if tagger.column != "xpos":
                    raise ValueError(f"its tagger is for {tagger.column}")
            prune = 0.0 if parser.model == "grammar" else float(parser.prune)
            grammars = 0 if parser.model == "span" else parser.grammars
            parser._fitted = Fitted.from_arrays(arrays, parser._templates, root, tagger, prune, grammars)
            parser.trace_, parser.tuning_ = vector(meta["trace"], "trace"), vector(meta["tuning"], "tuning")
            parser.reading_ = Reading.from_meta(meta)
        return parser


def _usable(trees: Constituents) -> Constituents:
    """Trees to learn from: those with words, and not too long ones."""
    if not isinstance(trees, Constituents):
        raise ParameterError(f"fit: give Constituents, as Constituents.read('trees.mrg'), not {type(trees).__name__}")
    found = plain(trees)
    check_tops(found)
    short = found.lengths <= LONGEST
    if not short.all():
        warnings.warn(
            f"{trees.name}: {np.count_nonzero(~short):,} of {len(trees):,} trees have more than {LONGEST} words and "
            "are passed over. Are they lists, or several sentences each?",
            IsoglossWarning,
            stacklevel=4,
        )
    good = short & (found.lengths > 0)
    if not good.any():
        many = f"from 1 to {LONGEST} words" if found.lengths.any() else "words"
        raise TreebankError(f"{trees.name}: no tree has {many}, so there is nothing to learn. Is it the right file?")
    return found.take(good)


def _as_treebank(trees: Constituents) -> Treebank:
    """Words, as people write them, with their tags as xpos."""
    words = [[unescaped(word) for word in trees.words(k)] for k in range(len(trees))]
    given = Treebank.from_text(Text.of(words, trees.name))
    return given.with_columns(xpos=trees.columns["tag"])


def _name_of(text: Any) -> str:
    return str(getattr(text, "name", "<memory>"))


def _whole(
    found: Sequence[Spans], sure: Sequence[Mapping[Any, float]], pieces: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[list[Spans], list[dict[tuple[int, int, int], float]]]:  # fmt: skip
    """Trees of pieces side by side, under the label of the first of them."""
    counts = np.maximum(1, -(-np.diff(offsets) // LONGEST))
    which = np.repeat(np.arange(len(counts)), counts)
    whole: list[set[tuple[int, int, int]]] = [set() for _ in range(len(offsets) - 1)]
    chances: list[dict[tuple[int, int, int], float]] = [{} for _ in whole]
    for number, (start, sentence) in enumerate(zip(pieces[:-1].tolist(), which.tolist(), strict=True)):
        shift = start - int(offsets[sentence])
        for begin, end, label in found[number]:
            whole[sentence].add((begin + shift, end + shift, label))
            if sure:
                chances[sentence][begin + shift, end + shift, label] = sure[number][begin, end, label]
        if counts[sentence] > 1 and shift == 0:
            n = int(offsets[sentence + 1] - offsets[sentence])
            top = max(found[number], key=lambda span: span[1] - span[0])
            whole[sentence].add((0, n, top[2]))
            chances[sentence][0, n, top[2]] = 0.0
    return [frozenset(spans) for spans in whole], chances if sure else []


def _confidence(
    made: Constituents, found: Sequence[Spans], sure: Sequence[Mapping[Any, float]], names: Labels
) -> NDArray[np.float64]:
    """float64[n_nodes]: the posterior of each node; those of a unary chain share theirs, the outermost has 1."""
    out = np.ones(made.n_nodes)
    for number, chances in enumerate(sure):
        by_span = {(begin, end): chance for (begin, end, _), chance in chances.items()}
        first, last = made.node_offsets[number : number + 2].tolist()
        for node in range(first + (names.root is not None), last):
            out[node] = by_span[int(made.begins[node]), int(made.ends[node])]
    return out


def _features(parts: Any, part: int, learnt: Fitted, label: int) -> list[dict[str, Any]]:
    """What fires on a span, template by template, with its weight for a label; the largest first."""
    found = []
    features, rows = learnt.features, learnt.features.split(learnt.weights)
    own = np.empty(features.indices["label"].n_features)
    wide = np.asarray(features.wide)
    own[wide], own[~wide] = rows["label"][:, label] + rows["label"][:, -1], rows["bracket"]
    for name in features.templates["label"].names:
        matrix = Templates([name] if name else [()], kind="label").matrix(parts, features.indices["label"])
        for number in matrix.indices[matrix.indptr[part] : matrix.indptr[part + 1]].tolist():
            found.append({"feature": name or "always", "weight": float(own[number])})
    return sorted(found, key=lambda entry: -abs(entry["weight"]))


def _posteriors(trees: Any) -> Any:
    """float64[n_spans, n_labels] of each sentence."""
    return trees.marginals() if isinstance(trees, SpanTrees) else trees.constituents()
