"""`GraphTagger`: a tagger from a hundred labelled sentences and much text, where similar words help one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import using_threads
from isogloss.errors import UsageError
from isogloss.features import KEYS, Axis, Index, Templates, positions
from isogloss.features.sparse import Sparse
from isogloss.layout import Layout, Numbers, Strings, check, vector
from isogloss.learners.chain_model import ChainModel, LabelPairs, NodeFeatures
from isogloss.learners.graphs import Propagated, propagate
from isogloss.learners.posterior.smooth import GraphLaplacian
from isogloss.learners.semi_supervised import Info, Regularised, State, vertex_features
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.tag.base import LABELS, ColumnTagger, as_treebank
from isogloss.tasks.tag.options import GraphOptions
from isogloss.tasks.tag.similarity import SUFFIX, Vertices, common_suffixes, context_axis, similarity, trigrams
from isogloss.tasks.tag.words import joined, template_names, templates_of

__all__ = ["TEMPLATES", "GraphTagger", "Material"]

Array = NDArray[np.float64]
FLAGS = ("capital", "punctuation", "digit", "hyphen", "period")
TEMPLATES = ((), *(
    name + place
    for place in ("", "[-1]", "[+1]")
    for name in ("form", "word", *(f"suffix{n}" for n in range(1, SUFFIX + 1)), *FLAGS)
))  # fmt: skip
"""What the paper's tagger sees of a word and of the two beside it."""


class Material:
    """A labelled and an unlabelled text, their attributes, and the graph over the trigrams of both.

    What `GraphTagger` learns from, and what others may be compared on: `propagated` is label propagation by itself,
    `labelled` and `unlabelled` are models for `Likelihood`, `regularised` is the learner.
    """

    def __init__(
        self, tagger: GraphTagger, labelled: Treebank, unlabelled: Treebank, graph: tuple[Vertices, Any] | None = None
    ) -> None:
        self.tagger, self.text = tagger, unlabelled
        self.labels, self.gold = tagger._gold(labelled)
        self.k, self.words = len(self.labels), labelled.n_words
        ids, types, offsets = joined([labelled, unlabelled])
        self.suffixes = tagger._suffixes(types)
        self.axis = context_axis(ids, types, offsets, self.suffixes)
        parts = positions(self.axis)
        self.index = tagger._templates.index(parts, min_count=tagger.min_count)
        rows = tagger._templates.matrix(parts, self.index)
        pairs = LabelPairs.all(self.index.n_features, self.k)
        cuts = ((0, self.words, labelled.lengths), (self.words, len(ids), unlabelled.lengths))
        self.labelled, self.unlabelled = (
            ChainModel(NodeFeatures(rows.rows(start, stop), pairs), lengths, order=tagger.order)
            for start, stop, lengths in cuts
        )
        self.sentences = [self.gold[a:b] for a, b in zip(labelled.offsets[:-1], labelled.offsets[1:], strict=True)]
        self._graph = graph

    @cached_property
    def vertices(self) -> Vertices:
        return trigrams(self.axis) if self._graph is None else self._graph[0]

    @cached_property
    def graph(self) -> Any:
        """Sparse matrix [n_vertices, n_vertices]."""
        if self._graph is not None:
            return self._graph[1]
        return similarity(
            self.axis, self.vertices, self.tagger.neighbours, shared=self.tagger.shared, seed=self.tagger.seed
        )

    @cached_property
    def fixed(self) -> Array:
        """float64[n_vertices, k]: how often each vertex bears each label in the labelled text."""
        out = np.zeros((self.vertices.size, self.k))
        of = self.vertices.of[: self.words]
        np.add.at(out, (of[of >= 0], self.gold[of >= 0]), 1.0)
        return out

    def propagated(self) -> tuple[NDArray[np.int64], Propagated]:
        """Label propagation alone: labels of all unlabelled words, and what was found for the vertices.

        Words that no label reaches get the most frequent one of the labelled words that have a vertex; punctuation
        marks, which have none, the label that those of the labelled text have most.
        """
        seen = self.fixed.sum(axis=1, keepdims=True)
        known = np.divide(self.fixed, seen, out=np.zeros_like(self.fixed), where=seen > 0)
        found = propagate(self.graph, known, prior=self.fixed.sum(axis=0) if seen.any() else None)
        of = self.vertices.of
        marks = self.gold[of[: self.words] < 0]
        other = np.bincount(marks if len(marks) else self.gold, minlength=self.k).argmax()
        rest = of[self.words :]
        return np.where(rest >= 0, found.labels.argmax(axis=1)[rest] if self.vertices.size else 0, other), found

    def regularised(self) -> Regularised:
        """The learner of this text."""
        of, tagger = self.vertices.of, self.tagger
        counts = np.bincount(of[of >= 0], minlength=self.vertices.size)
        degree = self.graph.sum() / max(1, self.vertices.size)
        penalty = GraphLaplacian(self.graph / degree if degree else self.graph, counts, self.k, fixed=self.fixed)
        return Regularised(
            self.labelled,
            self.sentences,
            self.unlabelled,
            vertex_features(of[self.words :], self.vertices.size, self.k),
            penalty,
            strength=tagger.strength,
            l2=tagger.sigma**-2,
            share=tagger.share,
            inner=tagger.inner,
            climbs=tagger.climbs,
        )

    def fitted(self, weights: Array) -> _Fitted:
        return _Fitted(self.labels, self.suffixes, self.index, weights)


_LAYOUT: Layout = {
    **LABELS,
    "suffixes": Strings("suffixes", offsets="suffix_offsets", distinct=True),
    "keys": KEYS,
    "weights": Numbers("float64", "weights"),
}


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learnt."""

    labels: tuple[str, ...]
    suffixes: tuple[str, ...]
    index: Index
    weights: Array


class GraphTagger(GraphOptions, ColumnTagger):
    r"""Tags words by a conditional random field learnt from few labelled sentences, much text, and a graph.

    Trigrams of words that are seen in similar contexts should have similar tags in their middle. That is a penalty on
    the posteriors of the unlabelled text while the model learns from them:

    .. math:: \max_{\theta, q}\; \sum_{i \le l} \log p_\theta(y_i \mid x_i) - \tfrac{1}{2\sigma^2} \|\theta\|^2
        - \sum_{i > l} KL(q_i \| p_\theta) - \tfrac{\lambda}{2} \sum_{abk} w_{ab} (\tilde m_{ak} - \tilde m_{bk})^2

    where :math:`\tilde m_{ak}` is how often trigram a has tag k under q (or in the labelled sentences).

    Parameters
    ----------
    column : "upos", "xpos" or "feats"
        What is predicted; some twenty labels at most, as time and memory grow with their cube.
    order : int
        Labels before a word's own that its score looks at: 1 or 2.
    neighbours : int
        Of each trigram; pairs that name each other are linked. (The paper has 60, with larger texts.)
    strength : float
        λ. Weights of the graph are scaled so that those of a vertex add up to 1 on the mean: cosines depend on the size
        of a text, and λ should mean the same in all.
    sigma : float
        Of the Gaussian prior on weights.
    iterations : int
        Rounds of q and θ at most; 0 learns from the labelled sentences alone. Few are best: when
        rounds go on, the graph smooths away what the labelled sentences say.
    tolerance : float
        Stop when a round gains less than this share of the objective.
    share : float
        What an unlabelled sentence counts beside a labelled one.
    suffixes : sequence of str, optional
        Endings worth looking at; those of up to three letters that ten types have otherwise.
    shared : bool
        See `isogloss.tasks.tag.similarity.similarity`.
    min_count : int
        Attributes that are met less often in both texts together are left out.
    templates : sequence of str, optional
        What words are seen by; the paper's otherwise.
    inner, climbs : int
        Steps for q and for θ in each round at most.
    seed : int
        Of the approximate search for neighbours in very large texts.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    labels_ : tuple of str
        What can be predicted, in the order of the columns of `predict_proba`.
    trace_ : float64[2 · n_rounds]
        The objective after each half of each round; it never falls.
    infos_ : list of Info
        What happened in each round. Not kept with a model, as are the next two.
    posteriors_ : float64[n_words, n_labels]
        q: posteriors of the words of the unlabelled text, by the graph as well as by the model.
    material_ : Material
        Both texts, and the graph.

    References
    ----------
    He, Gillenwater and Taskar, Graph-Based Posterior Regularization for Semi-Supervised Structured Prediction, CoNLL
    2013. We differ: see docs/tag-with-neighbours.md.

    Examples
    --------
    >>> few = Treebank.of([[("the", "DET"), ("cat", "NOUN"), ("sleeps", "VERB")]])
    >>> tagger = GraphTagger(iterations=3).fit(few, Text.of(["the dog sleeps", "the dog eats", "the cat eats"]))
    >>> [tagger.predict_transductive().strings("upos", s) for s in range(2)]
    [('DET', 'NOUN', 'VERB'), ('DET', 'NOUN', 'VERB')]
    """

    _kind: ClassVar[str] = "tag.graph"

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        self._templates  # noqa: B018 - says which template makes no sense

    @property
    def _templates(self) -> Templates:
        return templates_of(template_names(self.templates, TEMPLATES))

    @property
    def options_(self) -> dict[str, Any]:
        """Every option that is saved with a model; templates are written out, whatever the usual ones will be."""
        return super().options_ | {"templates": template_names(self.templates, TEMPLATES)}

    def __repr__(self) -> str:
        return f"GraphTagger({self.column!r}, order={self.order})"

    # --- learning

    def fit(
        self,
        labelled: Treebank,
        unlabelled: Treebank | Text,
        dev: Treebank | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from sentences with tags and from text without.

        Parameters
        ----------
        labelled : Treebank
            Words that have ``_`` in the column learn that: it is a tag like others.
        unlabelled : Treebank or Text
            Tags that it may have are not looked at. The text that is to be tagged in the end serves best.
        dev : Treebank, optional
            Other labelled sentences; the round of the best accuracy on them is kept, and posteriors_ are of it.
        progress : Progress, optional
        """
        self.check_params()
        progress = progress or QuietProgress()
        progress.start(f"Learning {self.column} with neighbours", self.iterations + 1)
        try:
            with using_threads(self.threads):
                self.material_ = material = Material(self, labelled, as_treebank(unlabelled))
                learner = material.regularised()
                state = learner.init()
                progress.update(1, "labelled sentences")
                state = self._rounds(learner, state, dev, progress)
                chains: Any = material.unlabelled.distributions(state.weights)
                if self.iterations:
                    chains = learner.expect(state).q.members[0]
                self.posteriors_ = np.array(chains.marginals().values.reshape(-1, material.k))
        finally:
            progress.finish()
        self._fitted = material.fitted(state.weights)
        self._remember(labelled)
        return self

    def _rounds(self, learner: Regularised, state: State, dev: Treebank | None, progress: Progress) -> State:
        """Rounds until the objective stands still; the best of dev, or the last."""
        self.infos_: list[Info] = []
        best, score = state, self._accuracy(state, dev)
        for _ in range(self.iterations):
            before = state.objective
            state, info = learner.step(state)
            self.infos_.append(info)
            now = self._accuracy(state, dev)
            if dev is None or now > score:
                best, score = state, now
            detail = f"objective {info.objective:.1f}" + (f", {100 * now:.2f} on dev" if dev is not None else "")
            progress.update(1 + state.iteration, detail)
            if state.objective - before < self.tolerance * abs(state.objective):
                break
        self.trace_ = np.array([value for info in self.infos_ for value in (info.middle, info.objective)])
        return best

    def _accuracy(self, state: State, dev: Treebank | None) -> float:
        if dev is None:
            return 0.0
        ids, vocabulary = dev.columns[self.column]
        gold = Vocabulary(self.material_.labels).encode(vocabulary)[ids]
        return float(np.mean(self._chances(dev, self.material_.fitted(state.weights)).argmax(axis=1) == gold))

    def _suffixes(self, types: Sequence[str]) -> tuple[str, ...]:
        return common_suffixes(types) if self.suffixes is None else tuple(word.lower() for word in self.suffixes)

    # --- predicting

    @property
    def labels_(self) -> tuple[str, ...]:
        """What can be predicted."""
        labels: tuple[str, ...] = self._learnt.labels
        return labels

    def predict_proba(self, treebank: Treebank | Text) -> Array:
        """float64[n_words, n_labels]: the posterior of each of `labels_` for each word, by the model alone."""
        treebank, learnt = as_treebank(treebank), self._learnt
        with using_threads(self.threads):
            return self._chances(treebank, learnt)

    def predict_transductive(self) -> Treebank:
        """The unlabelled text that `fit` was given, with the tags that the graph and the model find together."""
        if not hasattr(self, "posteriors_"):
            raise UsageError("GraphTagger: the unlabelled text is not kept in a saved model; use predict, or fit again")
        found = Column(self.posteriors_.argmax(axis=1).astype(np.int32), Vocabulary(self.labels_))
        content: dict[str, Any] = {self.column: found}
        return self.material_.text.with_predictions(**content)

    def _axis(self, treebank: Treebank, learnt: _Fitted) -> Axis:
        ids, vocabulary = treebank.columns["form"]
        return context_axis(ids, vocabulary.types, treebank.offsets, learnt.suffixes)

    def _model(self, attributes: Sparse, lengths: NDArray[np.int64], learnt: _Fitted) -> ChainModel:
        k = len(learnt.labels)
        return ChainModel(
            NodeFeatures(attributes, LabelPairs.all(attributes.n_indicators, k)), lengths, order=self.order
        )

    def _chances(self, treebank: Treebank, learnt: _Fitted) -> Array:
        attributes = self._templates.matrix(positions(self._axis(treebank, learnt)), learnt.index)
        chains = self._model(attributes, treebank.lengths, learnt).distributions(learnt.weights)
        return np.array(chains.marginals().values.reshape(-1, len(learnt.labels)))

    def explain(
        self, treebank: Treebank | Text, sentence: int, word: int, *, rival: str | None = None
    ) -> dict[str, Any]:
        """Why a word gets its tag and not another: what each attribute and the tags around it add; plain data."""
        one, chances, chosen, other, said = self._compare(treebank, sentence, word, rival)
        labels, learnt = self.labels_, self._learnt
        parts = positions(self._axis(one, learnt))
        model = self._model(self._templates.matrix(parts, learnt.index), one.lengths, learnt)
        own, shared = model.split(learnt.weights)
        numbers = learnt.index.numbers(self._templates.keys(parts)[word])
        gains: list[dict[str, Any]] = [
            {
                "template": name or "(always)",
                "weight": float(own[n * len(labels) + chosen] - own[n * len(labels) + other]),
            }
            for name, n in zip(self._templates.names, numbers.tolist(), strict=True)
            if n >= 0
        ]
        tags = chances.argmax(axis=1)
        around = [
            {"place": place, "tag": tag, "weight": score(chosen) - score(other)}
            for place, tag, score in _moves(shared, self.order, tags, word, labels)
        ]
        gains.sort(key=lambda entry: -abs(entry["weight"]))
        return {**said, "attributes": gains, "neighbours": around}

    # --- keeping

    def to_meta(self) -> dict[str, Any]:
        """What else is remembered, for `isogloss.store`."""
        return {"trace": self.trace_.tolist()}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Weights, for `isogloss.store`."""
        learnt = self._learnt
        labels, suffixes = store.pack_strings(learnt.labels), store.pack_strings(learnt.suffixes)
        return {
            "labels": labels[0], "label_offsets": labels[1], "suffixes": suffixes[0], "suffix_offsets": suffixes[1],
            "keys": learnt.index.keys, "weights": learnt.weights,
        }  # fmt: skip

    def _restore(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        found = check(arrays, _LAYOUT, "the weights of the saved tagger")
        labels, suffixes = tuple(found["labels"]), tuple(found["suffixes"])
        self._fitted = _Fitted(labels, suffixes, Index(found["keys"]), found["weights"])
        self.trace_ = vector(meta["trace"], "trace")
        empty = self._model(Sparse([0], [], self._fitted.index.n_features), np.zeros(0, np.int64), self._fitted)
        check(arrays, {"weights": Numbers("float64", empty.n_weights)}, "the weights of the saved tagger")


def _moves(shared: Any, order: int, tags: NDArray[Any], word: int, labels: tuple[str, ...]) -> list[Any]:
    """For each step that a word's label takes part in: where, the labels beside it, and the weight by the label."""
    found = []
    sequence = tags.tolist()

    def within(start: int, stop: int, table: Array) -> Any:
        def score(label: int) -> float:
            return float(table[tuple(label if t == word else sequence[t] for t in range(start, stop))])

        place = " ".join("_" if t == word else labels[sequence[t]] for t in range(start, stop))
        return ("before" if stop - 1 == word else "after" if start == word else "between", place, score)

    pairs = shared.transitions if order == 1 else shared.pairs
    found += [within(t, t + 2, pairs) for t in (word - 1, word) if t >= 0 and t + 2 <= len(sequence)]
    if order == 2:
        found += [
            within(t, t + 3, shared.transitions) for t in range(word - 2, word + 1) if 0 <= t <= len(sequence) - 3
        ]
    return found
