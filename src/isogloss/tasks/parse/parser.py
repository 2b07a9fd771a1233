"""`DependencyParser`: trees over the words of a treebank, with posteriors for every link."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data.bitext import Text
from isogloss.data.formats import as_gold, as_treebank
from isogloss.data.reading import check_reading
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError
from isogloss.features import blind_to
from isogloss.learners.passes import LearntInPasses
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.progress import Progress
from isogloss.structures.batch import Stack
from isogloss.structures.loopy import LoopyTrees
from isogloss.structures.tree_parts import FAMILIES
from isogloss.tasks.parse.completing import complete
from isogloss.tasks.parse.cutting import LONGEST, cut, joined
from isogloss.tasks.parse.explaining import explain
from isogloss.tasks.parse.features import LINK_ROLES, LINK_TEMPLATES, templates_for
from isogloss.tasks.parse.fitted import Fitted
from isogloss.tasks.parse.focus import Focus
from isogloss.tasks.parse.held_out import all_trees
from isogloss.tasks.parse.inference import Shape, best_trees, chances_of
from isogloss.tasks.parse.judging import blinded, log_prob, relations
from isogloss.tasks.parse.lesson import Further, Lesson, checked
from isogloss.tasks.parse.options import DependencyOptions
from isogloss.tasks.parse.views import View, checked_views
from isogloss.tasks.parse.words import Words

__all__ = ["DependencyParser"]

CROSSING = 1.0
"""Words whose link crosses another, in percent, above which trees may cross unless something else is asked for."""


class DependencyParser(DependencyOptions, LearntInPasses[Fitted]):
    r"""Parses sentences by scores of links and larger parts, learnt from a treebank alone.

    .. math:: p(y \mid x) \propto \exp \sum_{part \in y} w \cdot f(x, part)

    over all projective trees, or all trees [1]_. With order 1 parts are links, and sums over trees exact; with order 2
    also grandparents, neighbouring siblings, numbers of children and crossing links, by belief propagation. Features
    of links are those of McDonald's parser [2]_ and some more: words, lemmas, tags and morphology of head and child, of
    their neighbours and of what lies between, with direction and length (`isogloss.tasks.parse.features`).

    Parameters
    ----------
    projective : bool, optional
        Whether no two links may cross. As it is in the treebank if not given: trees may cross where more than one word
        in a hundred has a link that crosses another.
    order : 1 or 2
        Whether links are scored one by one, or with others as well.
    factors : sequence of str, optional
        Of order 2: which of ``grand`` (GRAND), ``siblings`` (CHILDSEQ), ``valence`` (VALENCE) and ``crossing``
        (NOCROSS). All if not given; crossing only where links may cross.
    trainer : "likelihood", "risk", "mira" or "perceptron"
        What is learnt: probabilities of trees; the fewest wrong heads in expectation, from likelihood on; or margins.
    decoder : "mbr" or "map"
        The tree with the most right heads in expectation, or the most probable one.
    constraint : str, optional
        What is demanded of all links together: ``tree`` or ``projective``, as `projective` says, or one of the weaker
        ones of `isogloss.structures.loopy.CONSTRAINTS`, which are there for comparison.
    single_root : bool
        Whether the root has one child.
    rounds : int
        Of belief propagation, at most.
    prune : float
        A small first-order parser goes first; links whose posterior is below this share of the word's best are not
        looked at. 0 looks at all.
    iterations : int
        Passes over the treebank; with `dev` the best number up to this.
    rate : float, optional
        Length of steps; for MIRA the longest.
    l2 : float
        Penalty on the squares of weights, ½ l2 ‖w‖² beside the log-likelihood of all sentences.
    batch : int
        Sentences of a step.
    min_count : int
        Features that fire less often, where `support` counts them, are left out.
    support : "gold", "tags" or "all"
        Which features have weights: those that fire on gold parts; of other parts also those that do not look at words;
        or all.
    labels : "joint" or "second", optional
        Whether relations have a say in the tree, or are chosen when it is known. Joint, a link has a score for each
        relation, and trees are found with relations summed out (`isogloss.tasks.parse.labelled`), which gives better
        trees; the relations of the tree that is found are then chosen by the second stage in either case, since it sees
        the whole tree. Joint for likelihood if not given; other trainers have the second stage only.
    tags : "gold" or "predicted"
        Whether tags and features are taken as they are given, or predicted by a tagger that the parser carries along.
        Lemmas are then not looked at.
    templates : sequence of str, optional
        See `isogloss.tasks.parse.features`.
    seed : int
        Of the order of sentences.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_passes]
        Loss of a word in each pass, as it was met.
    tuning_ : float64[n_passes]
        UAS on dev after each pass; empty without dev.
    reading_ : Reading or None
        The file that it learnt from, how it was read and its frequent words; None for models of older versions.

    References
    ----------
    .. [1] Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, chapters 2 and 3.
       Smith and Eisner, Dependency parsing by belief propagation, EMNLP 2008.
    .. [2] McDonald, Crammer and Pereira, Online large-margin training of dependency parsers, ACL 2005.

    Examples
    --------
    >>> trees = Treebank.of([[("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]] * 5)
    >>> parser = DependencyParser(iterations=3).fit(trees)
    >>> found = parser.predict(Treebank.of([[("he", "PRON"), ("eats", "VERB")]]))
    >>> found.heads.tolist(), found.strings("deprel", 0)
    ([2, 0], ('nsubj', 'root'))
    """

    _kind: ClassVar[str] = "parse.dependency"
    _saved_as: ClassVar[str] = "the saved parser"

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        if self.labelling == "joint" and self.trainer != "likelihood":
            raise ParameterError(
                f"DependencyParser: joint labels are learnt by likelihood, not by {self.trainer!r}. Take "
                "trainer='likelihood', or labels='second'"
            )
        unknown = sorted(set(self.factors or ()) - set(FAMILIES))
        if unknown or (self.factors and self.order == 1):
            raise ParameterError(
                f"DependencyParser: factors should be some of {', '.join(FAMILIES)}, with order 2, not "
                f"{', '.join(unknown) or 'with order 1'}"
            )
        templates_for(self.link_templates, roles=LINK_ROLES)

    @property
    def labelling(self) -> str:
        """How relations are found: as `labels` says or, if that is not given, as suits the trainer."""
        return self.labels or ("joint" if self.trainer == "likelihood" else "second")

    @property
    def link_templates(self) -> tuple[str, ...]:
        """What links are seen by: `templates`, or the usual ones."""
        return tuple(LINK_TEMPLATES if self.templates is None else self.templates)

    def __repr__(self) -> str:
        return f"DependencyParser(order={self.order}, trainer={self.trainer!r}, tags={self.tags!r})"

    # --- learning

    def fit(
        self,
        treebank: Treebank,
        dev: Treebank | None = None,
        progress: Progress | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
        target: Callable[[NDArray[np.int64]], Any] | None = None,
        focus: Focus | None = None,
        views: Sequence[View] = (),
    ) -> Self:
        """Learn the trees of a treebank.

        Parameters
        ----------
        treebank : Treebank
            Words may lack heads (−1): all trees that have the others are then counted as right.
        dev : Treebank, optional
            Other sentences; the number of passes is that of the best UAS on them.
        progress : Progress, optional
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt of links so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        target : callable, optional
            What trees should be like, where that is not to have the known heads: given the numbers of sentences, a
            target of likelihood over `TreeModel`. Heads of the treebank then only say which features there are.
        focus : Focus, optional
            Sentences, words and features that count more than others.
        views : sequence of View
            What is seen beside words and tags (`isogloss.tasks.parse.views`); kept with the parser.
        """
        self.check_params()
        treebank = as_gold(treebank)
        more = Further(target, None if focus is None else focus.checked(treebank), checked_views(views))
        more.check(self.trainer)
        if checkpoint is not None and (focus is not None or views):
            raise ParameterError("DependencyParser: with a focus or views there are no checkpoints; leave it out")
        if focus is not None:
            more = more._replace(focus=focus.take(treebank, treebank.lengths <= LONGEST))
        treebank = checked(treebank, self.single_root)
        held_out = None if dev is None else checked(dev, self.single_root)
        with self._course(progress, checkpoint, resume, [treebank, held_out]) as course:
            if not (treebank.heads >= 0).any():
                raise TreebankError(
                    f"{treebank.name}: no word has a head, so there is nothing to learn. Is it the right file?"
                )
            lesson = Lesson.of(self, treebank, held_out, course.progress, more)  # taggers have threads of their own
            with using_threads(self.threads):
                fitted, passed, n = lesson.learn(self._shape(treebank), course)
            self._take(fitted, passed.losses(n), passed.scores)
        return self._learnt_from(treebank)

    def _shape(self, treebank: Treebank) -> Shape:
        projective = self.projective
        if projective is None:
            projective = bool(100 * np.count_nonzero(treebank.crossing) <= CROSSING * treebank.n_words)
        constraint = self.constraint or ("projective" if projective else "tree")
        families: tuple[str, ...] = ()
        if self.order == 2:
            usual = [name for name in FAMILIES if name != "crossing" or constraint != "projective"]
            families = tuple(name for name in FAMILIES if name in (usual if self.factors is None else self.factors))
        return Shape(constraint, self.single_root, families, self.rounds)

    # --- predicting

    def predict(self, treebank: Treebank | Text, *, confidence: bool = False) -> Treebank:
        """The treebank with predicted heads and relations (and tags, if the parser carries a tagger).

        With `confidence`, MISC gets ``Confidence``, the posterior of each link, and ``LabelConfidence``, that of its
        relation if the link is right. Sentences of more than `isogloss.tasks.parse.cutting.LONGEST` words are parsed in
        pieces, and the roots of later pieces hung on that of the first.
        """
        learnt, seen = self._given(treebank)
        offsets = cut(seen.offsets)
        words = learnt.encode(seen, offsets)
        heads, chances = [np.zeros(0, np.int32)], [np.zeros(0)]
        with using_threads(self.threads):
            for trees in self._trees(words):
                found = best_trees(trees, self.decoder)
                heads.append(found)
                if confidence:
                    chances.append(chances_of(trees.beliefs_of_links(), found))
            tree = np.concatenate(heads)
            whole, roots = joined(tree, offsets, seen.offsets)
            parsed, sure = seen.with_predictions(heads=whole), None
            if learnt.labeller is not None:
                labels, sure = learnt.labeller.predict(words, tree, offsets)
                labels.ids[roots] = max(labels.vocabulary.index_of("parataxis"), 0)
                parsed = parsed.with_predictions(deprel=labels)
        if confidence:
            parsed = parsed.with_misc("Confidence", [f"{p:.4f}" for p in np.concatenate(chances).tolist()])
            if sure is not None:
                parsed = parsed.with_misc("LabelConfidence", [f"{p:.4f}" for p in sure.tolist()])
        return parsed

    def complete(self, treebank: Treebank, *, confidence: bool = True) -> Treebank:
        """Fill in the heads and relations that a treebank lacks; those that it has stay.

        The trees are the best among those that have the given heads, and posteriors are those among them. With
        `confidence`, MISC of a word whose head was filled in gets ``Confidence``, and of one whose relation was,
        ``LabelConfidence``. Nothing else is written: sentences without gaps, tags and features stay as they are.

        Raises
        ------
        TreebankError
            No tree of this parser's kind has the given heads; the message names the word.

        Examples
        --------
        >>> trees = Treebank.of([[("she", "PRON", 2, "nsubj"), ("sleeps", "VERB", 0, "root")]] * 5)
        >>> parser = DependencyParser(iterations=3).fit(trees)
        >>> found = parser.complete(Treebank.of([[("he", "PRON"), ("eats", "VERB", 1, "dep")]]))
        >>> found.heads.tolist(), found.strings("deprel", 0), found.strings("misc", 0)[1]
        ([0, 1], ('root', 'dep'), '_')
        """
        return complete(self, as_treebank(treebank), confidence)

    def predict_proba(self, treebank: Treebank | Text) -> Stack:
        """The posterior of each link: float64[n + 1, n + 1] for each sentence, as (head, child), the root first."""
        _, _, words = self._seen(treebank)
        with using_threads(self.threads):
            found = [trees.beliefs_of_links() for trees in self._trees(words)]
        values = np.concatenate([np.zeros(0), *(stack.values for stack in found)])
        sizes = words.lengths + 1
        offsets = np.concatenate([[0], np.cumsum(sizes * sizes)]).astype(np.int64)
        return Stack(values, offsets, np.stack([sizes, sizes], axis=1))

    def entropy(self, treebank: Treebank | Text) -> NDArray[np.float64]:
        """float64[n_sentences]: how unsure the parser is of each tree, in nats; with order 2, by Bethe's log Z."""
        _, _, words = self._seen(treebank)
        with using_threads(self.threads):
            return np.concatenate([np.zeros(0), *(trees.entropy() for trees in self._trees(words))])

    def k_best(self, treebank: Treebank | Text, k: int) -> list[list[tuple[float, NDArray[np.int64]]]]:
        """The `k` best trees of each sentence, each with its log probability.

        With order 2 both are by what the tree factor believes: links in expectation of all larger parts.
        """
        _, _, words = self._seen(treebank)
        found: list[list[tuple[float, NDArray[np.int64]]]] = []
        with using_threads(self.threads):
            for trees in self._trees(words):
                exact = trees.tree_factor()
                for total, best in zip(exact.log_partition().tolist(), exact.k_best(k), strict=True):
                    found.append([(score - total, heads) for score, heads in best])
        return found

    def log_prob(self, treebank: Treebank | Text, trees: Sequence[Sequence[ArrayLike]]) -> list[NDArray[np.float64]]:
        """The log probabilities of trees (heads), any number for each sentence, as of `k_best`.

        −∞ for trees of another kind, such as crossing ones, and for those with links that are not looked at.
        """
        return log_prob(self, treebank, trees)

    def relations(
        self, treebank: Treebank | Text, trees: Sequence[Sequence[ArrayLike]]
    ) -> list[list[NDArray[np.int64]]]:
        """Relations of given trees, any number for each sentence: int64[n] for each, numbers of `labels_`.

        A parser without relations gives 0 to each word.
        """
        return relations(self, treebank, trees)

    def templates_without(self, attributes: Sequence[str]) -> dict[str, Any]:
        """Options in which no template of links looks at some attributes; see `isogloss.features.blind_to`."""
        return {"templates": blind_to(self.link_templates, attributes)}

    def blind_to(self, attributes: Sequence[str]) -> DependencyParser:
        """The same weights of links, without those of templates that look at some attributes: a weaker parser.

        Links are scored one by one, whatever the order; what relations add to their scores stays.
        """
        self._learnt  # noqa: B018 - says if there is nothing
        options = {"order": 1, "factors": None, **self.templates_without(attributes)}
        return blinded(self, DependencyParser(**(self.get_params() | options)))

    def score(self, treebank: Treebank) -> ParseScore:
        """UAS, LAS, CLAS and the rest of `isogloss.metrics.score_trees`, in percent."""
        gold = as_gold(treebank)
        return score_trees(self.predict(gold), gold)

    def explain(
        self, treebank: Treebank | Text, sentence: int, word: int, *, rival: int | None = None
    ) -> dict[str, Any]:
        """Why a word gets its head and not another; plain data.

        `head` and `rival` have the features of either link with their weights, and `difference` how they differ. A link
        is not alone in its tree: `parts` are those that only one of two trees has, the best with this head and the best
        with the rival. Their scores, with the other sign for those of the rival's tree, add up to the difference of the
        scores of both trees; those of links include what relations add.

        Parameters
        ----------
        treebank : Treebank or Text
        sentence, word : int
            From 0.
        rival : int, optional
            The head to compare with, 0 for the root, 1 … n; the second in probability without it.
        """
        learnt, seen, _ = self._seen(treebank)
        if not 0 <= sentence < len(seen) or not 0 <= word < seen.lengths[sentence]:
            raise ParameterError(f"explain: there is no word {word} in sentence {sentence}; both count from 0")
        alone = seen.part(sentence, sentence + 1)
        (trees,) = self._trees(learnt.encode(alone))
        return explain(learnt, alone, trees, word, rival, self.decoder)

    def with_inference(
        self, *, constraint: str | None = None, rounds: int | None = None, decoder: str | None = None
    ) -> DependencyParser:
        """The same weights, with trees found in another way."""
        learnt = self._learnt
        options = self.options_ | {"threads": self.threads}
        options |= {name: value for name, value in (("rounds", rounds), ("decoder", decoder)) if value is not None}
        made = DependencyParser(**options)
        shape = replace(learnt.shape, constraint=constraint or learnt.shape.constraint, rounds=made.rounds)
        chosen = learnt.filter
        if chosen is not None and shape.constraint in ("tree", "projective"):  # it keeps a tree of the same kind
            chosen = replace(chosen, shape=replace(chosen.shape, constraint=shape.constraint))
        made._fitted = replace(learnt, shape=shape, filter=chosen)
        made.trace_, made.tuning_, made.reading_ = self.trace_, self.tuning_, self.reading_
        return made

    def _seen(self, text: Treebank | Text) -> tuple[Fitted, Treebank, Words]:
        """What was learnt, the sentences with the tags that the parser looks at, and their codes."""
        learnt, treebank = self._given(text)
        return learnt, treebank, learnt.encode(treebank)

    def _given(self, text: Treebank | Text) -> tuple[Fitted, Treebank]:
        """What was learnt, and the sentences with the tags that the parser looks at."""
        treebank, learnt = as_treebank(text), self._learnt
        check_reading(self.reading_, treebank)
        if learnt.tagger is not None:
            treebank = learnt.tagger.predict(treebank)
        ids, vocabulary = treebank.columns[learnt.columns.tag]
        if len(ids) and vocabulary.index_of("_") >= 0 and (ids == vocabulary.index_of("_")).all():
            raise TreebankError(
                f"{treebank.name}: no word has a tag in column {learnt.columns.tag}, and this parser learnt from tags "
                "that were given. Tag the text first (isogloss tag apply), or train with predicted tags"
            )
        return learnt, treebank

    def _trees(self, words: Words, given: NDArray[np.int32] | None = None) -> Iterator[LoopyTrees]:
        """Distributions over the trees of all sentences, or those that have the given heads, some at a time."""
        learnt = self._learnt
        return all_trees(learnt.tree_scorer, words, learnt.candidates(words, given), learnt.shape)

    @property
    def labels_(self) -> tuple[str, ...]:
        """The relations that can be predicted."""
        labeller = self._learnt.labeller
        return () if labeller is None else labeller.names

    @property
    def projective_(self) -> bool:
        """Whether trees are projective."""
        return self._learnt.shape.projective

    @property
    def families_(self) -> tuple[str, ...]:
        """The larger parts that have scores; none for order 1."""
        return self._learnt.shape.families

    @property
    def n_features_(self) -> int:
        """How many weights links and larger parts have."""
        return self._learnt.scorer.n_features

    # --- keeping

    @property
    def options_(self) -> dict[str, Any]:
        """Every option as it was used; what is kept with a model."""
        return super().options_ | {"labels": self.labelling, "templates": self.link_templates}

    def _to_parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return self._learnt.to_parts()

    def _of_parts(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Fitted:
        return Fitted.from_parts(arrays, meta, self.link_templates)
