"""`GrammarInducer`: trees without a treebank, by a grammar over tags that is learnt from tagged text."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import layout, store
from isogloss.data.bitext import Text
from isogloss.data.formats import as_gold, as_treebank
from isogloss.data.reading import Reading, check_reading
from isogloss.data.treebank import Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.shards import shards
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError, UsageError
from isogloss.layout import Strings, vector
from isogloss.learners.em import ProjectCorpus
from isogloss.learners.posterior.conserved import conserving
from isogloss.learners.runner import Keeping
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.progress import Progress, QuietProgress
from isogloss.structures import Stack, ValenceTrees
from isogloss.structures.partial import can_be_projective
from isogloss.tasks.parse.cutting import LONGEST, cut, joined
from isogloss.tasks.parse.induction.evidence import Beside, EdgesToKeep
from isogloss.tasks.parse.induction.grammar import Events, TagText, ValenceGrammar
from isogloss.tasks.parse.induction.learning import (
    GrammarModel,
    allowed_links,
    at_least,
    events_of_links,
    learn,
    links_of,
    sparsity,
    starting_events,
)
from isogloss.tasks.parse.induction.material import Material, marks_of
from isogloss.tasks.parse.induction.options import ALPHAS, VALENCES, InductionOptions
from isogloss.tasks.parse.induction.quasi import learn_beside
from isogloss.tasks.parse.induction.rules import rule_tables

__all__ = ["GrammarInducer"]

LEAST = -50.0
"""Log scores of links that are given to begin with are at least this: other parsers may rule links out for good."""
PIECE = 2_000_000
"""Links of sentences that are parsed together."""


class GrammarInducer(InductionOptions):
    r"""Learns a dependency grammar from tags alone, and parses with it; no tree is needed, and none is looked at.

    .. math:: p(x, y) = p_{root}(r) \prod_{h \to m \in y} p_{stop}(0 \mid h, d, v)\, p_{child}(m \mid h, d, v)
        \prod_h \prod_d p_{stop}(1 \mid h, d, k_{hd})

    over tags *x* and projective trees *y* with one root child: the dependency model with valence [1]_, and its
    extension by valences of children and a back-off [2]_. EM alone finds poor grammars. With ``learner="sparse"`` it
    maximises the likelihood less the least of

    .. math:: KL(q \| p(y \mid x)) + \sigma \sum_{c, p} \max_i E_q[\phi_{cpi}]

    over all *q*, which asks for grammars in which few pairs of tags (head *p*, child *c*) occur at all [3]_. With
    `rules` most links have to be among pairs of universal tags that are known to most languages [4]_.

    Parameters
    ----------
    model : "dmv" or "extended"
        Two classes of valence for decisions to stop and one for children, or three of both with a back-off.
    learner : "sparse", "em" or "dirichlet"
        The penalty above; the likelihood alone; or a Dirichlet prior of all multinomials, by mean-field variational EM.
    sigma : float
        σ for 1,000 words of training, or, without `scaled`, as it is: KL grows with the text and the penalty does not.
        0 is EM.
    scaled : bool
    root_sigma : float
        σ of links from the root is this times `sigma`.
    symmetric : bool
        One feature for each pair of words (PR-S), or for each word and tag of its head (PR-AS).
    alpha : float, optional
        Of the prior; 0.25 for dmv and 0.1 for extended if not given.
    rules : "ud" or "function-heads", optional
        In place of the penalty, demand that in expectation `share` of all links are among these
        (`isogloss.tasks.parse.induction.rules`). Needs UPOS.
    share : float
    stop_valences, child_valences : int, optional
        V_s and V_c; as the model says if not given.
    back_off : float
        λ of ``λ p(m | h, d, v) + (1 − λ) p(m | d, v)``, for extended models.
    nearest_first : bool
        Whether the child nearest to its head has valence 0, or the farthest.
    start : "harmonic", "distance" or "uniform"
        What EM begins with; see `isogloss.tasks.parse.induction.learning.starting_events`.
    iterations : int
        Steps of EM, at most.
    viterbi : int
        Further steps, at most, that count the best tree of each sentence alone, without penalty or rules.
    tolerance : float
        EM ends when the objective changes by less than this part of itself.
    dual_steps : int
        Passes over the text that solving for the penalty or rules may cost in each step of EM, at most.
    gap : float
        How exactly: the duality gap over max(1, KL + penalty).
    column : "upos" or "xpos"
    longest : int
        Sentences of more words, marks not counted, are not learnt from. All are parsed.
    punctuation : bool
        Whether punctuation marks are words of the grammar. Otherwise they are left out, and hung on the tree when it is
        known: between two words on the lowest word that is above both, at either end on the root's child.
    smoothing : float
        Added to every probability before parsing.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    grammar_ : ValenceGrammar
        As learnt, without smoothing.
    tags_ : tuple of str
    trace_ : float64[n_steps]
        The objective at the beginning of each step: log-likelihood, less divergence and penalty, less the divergence
        from the prior. It never falls if `gap` is 0 and `dual_steps` are enough.
    configurations_ : float64[8] or None
        How probable it is that a link stands in each configuration in the trees of another language
        (`isogloss.tasks.parse.configurations.CONFIGURATIONS`), if it was learnt beside them.
    unconverged_ : int
        Steps whose penalty or rules were not solved to `gap`.
    reading_ : Reading or None

    Notes
    -----
    Relations are not induced: DEPREL is left open.

    References
    ----------
    .. [1] Klein and Manning, Corpus-based induction of syntactic structure, ACL 2004.
    .. [2] Headden, Johnson and McClosky, Improving unsupervised dependency parsing with richer contexts and smoothing,
       NAACL 2009.
    .. [3] Gillenwater, Ganchev, Graça, Pereira and Taskar, Sparsity in dependency grammar induction, ACL 2010. We
       differ: σ in proportion to the text; quasi-Newton steps for the dual.
    .. [4] Naseem, Chen, Barzilay and Johnson, Using universal linguistic knowledge to guide grammar induction, EMNLP
       2010.
    .. [5] Ganchev, Gillenwater and Taskar, Dependency grammar induction via bitext projection constraints, ACL 2009:
       the generative model.

    Examples
    --------
    >>> tagged = Treebank.of([[("dogs", "NOUN"), ("bark", "VERB")],
    ...                       [("she", "PRON"), ("sees", "VERB"), ("the", "DET"), ("dog", "NOUN")]] * 5)
    >>> inducer = GrammarInducer(model="dmv", rules="ud").fit(tagged)
    >>> inducer.predict(tagged[1:2]).heads.tolist()
    [2, 0, 4, 2]
    """

    _kind: ClassVar[str] = "parse.induced"

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        if self.rules is not None and self.column != "upos":
            raise ParameterError(
                f"GrammarInducer: rules are about upos, so column should be 'upos', not {self.column!r}"
            )

    @property
    def classes(self) -> tuple[int, int]:
        """V_s and V_c: as given, or as the model has them."""
        usual = VALENCES[self.model]
        return self.stop_valences or usual[0], self.child_valences or usual[1]

    @property
    def prior(self) -> float:
        """α, 0 without a prior."""
        if self.learner != "dirichlet":
            return 0.0
        return ALPHAS[self.model] if self.alpha is None else self.alpha

    @property
    def _own(self) -> float:
        """λ of the model."""
        return self.back_off if self.model == "extended" else 1.0

    # --- learning

    def fit(
        self,
        treebank: Treebank,
        progress: Progress | None = None,
        *,
        links: Stack | None = None,
        heads: bool = False,
        beside: Beside | None = None,
        edges: EdgesToKeep | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from the tags of a treebank; heads are not looked at unless `heads` says so.

        Parameters
        ----------
        treebank : Treebank
        progress : Progress, optional
        links : Stack, optional
            Log scores of links, float64[n + 1, n + 1] for each sentence, to begin with in place of `start`: those of
            another parser, such as ``np.log`` of what its `predict_proba` gives.
        heads : bool
            Whether heads that the treebank has are known, and all trees have them; words without one (−1) are free. A
            treebank of whole trees is then counted, and nothing is left to induce. Sentences that have no projective
            tree with one root and these heads are not learnt from.
        beside : Beside, optional
            Trees of translations: a quasi-synchronous grammar is learnt by conditional EM
            (`isogloss.tasks.parse.induction.quasi`). For ``learner="em"``.
        edges : EdgesToKeep, optional
            A share of these is kept in expectation in every step [5]_. For ``learner="em"``.
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; see `isogloss.learners.runner.run`.
        resume : bool
            Go on from there, to the bit as if nothing had happened.
        """
        self.check_params()
        self._check_evidence(links, heads, beside, edges)
        treebank = as_treebank(treebank)
        tags = self._tags_of(treebank)
        chosen = self._chosen(treebank, tags, heads)
        text = TagText(chosen.text.tags, chosen.text.offsets, len(tags))  # every tag is known here
        said = self.options_ | ({"heads": True} if heads else {})
        keeping = Keeping.of(checkpoint, resume, said, [treebank, beside, edges])
        how: dict[str, Any] = {
            "iterations": self.iterations, "tolerance": self.tolerance, "progress": progress or QuietProgress(),
            **keeping.arguments,
        }  # fmt: skip
        watched: dict[str, NDArray[np.float64]] = {}
        self.configurations_: NDArray[np.float64] | None = None
        with using_threads(self.threads):
            if beside is not None:
                self.grammar_, self.configurations_, self.trace_ = learn_beside(
                    beside.quasi(treebank, chosen, len(tags)), classes=self.classes, back_off=self._own,
                    nearest_first=self.nearest_first, fixed=beside.fixed, start=self.start, **how,
                )  # fmt: skip
            else:
                allowed = allowed_links(text, chosen.heads(treebank)) if heads else None
                model = GrammarModel(text, self.classes, self._own, self.prior, self.nearest_first, allowed)
                begin = self._start(treebank, chosen, text, links)
                sets = None if edges is None else conserving(*edges.sets(treebank, chosen))
                self.grammar_, self.trace_, watched = learn(
                    model, begin, lambda trees: sets or self._demanded(text, trees, tags), viterbi=self.viterbi, **how
                )
        self.unconverged_ = int(watched["unconverged"].sum()) if "unconverged" in watched else 0
        self.tags_ = tuple(tags)
        self.n_sentences_, self.n_words_ = len(text), len(text.tags)
        self.reading_ = Reading.of(treebank, frequent=True)
        return self

    def _check_evidence(
        self, links: Stack | None, heads: bool, beside: Beside | None, edges: EdgesToKeep | None
    ) -> None:  # fmt: skip
        if beside is None and edges is None:
            return
        name = "edges" if beside is None else "beside"
        if self.learner != "em" or self.rules is not None:
            raise UsageError(f"GrammarInducer: {name} needs learner='em', without rules")
        if (beside is not None) + (edges is not None) + heads > 1 or (beside is not None and links is not None):
            raise UsageError(f"GrammarInducer: {name} stands for itself. Leave heads, links and the like out")
        if beside is not None and self.viterbi:
            raise UsageError("GrammarInducer: beside trees of another language there are no Viterbi steps")

    def _chosen(self, treebank: Treebank, tags: Vocabulary, heads: bool) -> Material:
        """The words to learn from."""
        chosen = Material.of(treebank, self.column, tags, punctuation=self.punctuation, longest=self.longest)
        if not len(chosen.sentences):
            raise TreebankError(
                f"{treebank.name}: no sentence has 1 to {self.longest} words, so there is nothing to learn from. Raise "
                "longest"
            )
        if not heads:
            return chosen
        possible = can_be_projective(chosen.heads(treebank), chosen.text.offsets)
        if not possible.any():
            raise TreebankError(
                f"{treebank.name}: no sentence has a projective tree with one root and the heads that are given, so "
                "there is nothing to learn from"
            )
        return chosen.take(possible)

    def _tags_of(self, treebank: Treebank) -> Vocabulary:
        """The tags of the words that the grammar sees, in alphabetical order; of all sentences, short or not."""
        ids, vocabulary = treebank.columns[self.column]
        seen = ids if self.punctuation else ids[~marks_of(treebank)]
        tags = sorted(vocabulary[number] for number in np.unique(seen).tolist())
        if not tags or tags == ["_"]:
            raise TreebankError(
                f"{treebank.name}: no word has a tag in column {self.column}, and a grammar is learnt from tags. Tag "
                "the text first (isogloss tag apply), or take the other column"
            )
        return Vocabulary(tags)

    def _start(self, treebank: Treebank, chosen: Material, text: TagText, links: Stack | None) -> Events:
        if links is None:
            return starting_events(text, self.classes, self.start, self.nearest_first)
        sizes = treebank.lengths + 1
        if not np.array_equal(links.shapes, np.stack([sizes, sizes], axis=1)):
            raise ParameterError(
                "GrammarInducer: links should be [n+1, n+1] for each sentence of the treebank, the root first"
            )
        scores = links_of(links, chosen.within(treebank), text.offsets, chosen.sentences.tolist())
        return events_of_links(text, self.classes, np.maximum(scores, LEAST), self.nearest_first)

    def _demanded(self, text: TagText, trees: ValenceTrees, tags: Vocabulary) -> ProjectCorpus | None:
        """What the E-step demands of posteriors."""
        if self.rules is not None:
            pairs, roots = rule_tables(self.rules, tuple(tags))
            return at_least(text, pairs, roots, self.share, gap=self.gap, steps=self.dual_steps)
        sigma = self.sigma * (len(text.tags) / 1000 if self.scaled else 1.0)
        if self.learner != "sparse" or sigma == 0:
            return None
        return sparsity(
            text, trees, sigma, sigma * self.root_sigma, symmetric=self.symmetric, gap=self.gap, steps=self.dual_steps
        )

    # --- predicting

    def predict(self, treebank: Treebank | Text, *, confidence: bool = False) -> Treebank:
        """The treebank with the most probable trees; sentences may be of any length.

        Punctuation marks hang where `punctuation` says. With `confidence`, MISC gets ``Confidence``, the posterior of
        each link; for marks, 1. Sentences of more than `isogloss.tasks.parse.cutting.LONGEST` words are parsed in
        pieces.
        """
        given = self._given(treebank)
        found = np.zeros(given.n_words, np.int64)  # heads among the words of a piece
        sure = np.ones(given.n_words)
        seen = self._seen(given)
        pieces = cut(seen.text.offsets)
        with using_threads(self.threads):
            for words, trees in self._trees(seen, pieces):
                best = trees.argmax()
                found[words] = np.concatenate([np.zeros(0, np.int64), *best])
                if confidence:
                    sure[words] = _chances(trees, best)
        heads = self._among_all(given, seen, pieces, found[seen.words].astype(np.int32))
        parsed = given.with_columns(deprel=["_"] * given.n_words).with_predictions(heads=heads)
        if confidence:
            parsed = parsed.with_misc("Confidence", [f"{p:.4f}" for p in sure.tolist()])
        return parsed

    def predict_proba(self, treebank: Treebank | Text) -> Stack:
        """The posterior of each link: float64[n + 1, n + 1] for each sentence, as (head, child), the root first.

        Marks have the head that `predict` gives them, with probability 1.
        """
        given = self._given(treebank)
        sizes = given.lengths + 1
        stack = Stack(
            np.zeros(int((sizes**2).sum())),
            np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64),
            np.stack([sizes, sizes], axis=1),
        )
        if given.lengths.max(initial=0) > LONGEST:
            raise TreebankError(
                f"{given.name}: posteriors of all links are for sentences of at most {LONGEST} words; predict has no "
                "limit"
            )
        seen, heads = self._seen(given), self.predict(given).heads
        within = seen.within(given)
        with using_threads(self.threads):
            at = 0
            for _, trees in self._trees(seen, seen.text.offsets):
                for posterior in trees.marginals():
                    nodes = np.append(0, within[seen.text.offsets[at] : seen.text.offsets[at + 1]] + 1)
                    stack[int(seen.sentences[at])][np.ix_(nodes, nodes)] = posterior
                    at += 1
        for word in np.setdiff1d(np.arange(given.n_words), seen.words).tolist():
            sentence, place = given.place_of(word)
            stack[sentence][heads[word], place + 1] = 1.0
        return stack

    def score(self, treebank: Treebank) -> ParseScore:
        """UAS and the rest of `isogloss.metrics.score_trees`, in percent; punctuation counts."""
        gold = as_gold(treebank)
        return score_trees(self.predict(gold), gold)

    def _given(self, text: Treebank | Text) -> Treebank:
        treebank, _ = as_treebank(text), self._learnt
        check_reading(self.reading_, treebank)
        ids, vocabulary = treebank.columns[self.column]
        if len(ids) and vocabulary.index_of("_") >= 0 and (ids == vocabulary.index_of("_")).all():
            raise TreebankError(
                f"{treebank.name}: no word has a tag in column {self.column}, and this grammar is one of tags. Tag the "
                "text first (isogloss tag apply)"
            )
        return treebank

    def _seen(self, treebank: Treebank) -> Material:
        """The words that the grammar looks at."""
        return Material.of(treebank, self.column, Vocabulary(self.tags_), punctuation=self.punctuation)

    def _trees(self, seen: Material, offsets: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], ValenceTrees]]:
        """Words, by their numbers in the treebank, and the distributions over their trees, some at a time."""
        grammar = self._learnt.smoothed(self.smoothing)
        text = TagText(seen.text.tags, offsets, seen.text.n_tags)
        for first, last in shards(text.sizes**2, limit=PIECE):
            yield seen.words[offsets[first] : offsets[last]], grammar.trees(text.part(first, last))

    def _among_all(
        self, given: Treebank, seen: Material, pieces: NDArray[np.int64], heads: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Heads of all words: those of the words that were seen, and of marks."""
        from isogloss.tasks.parse._numba.induction import attach_marks

        whole, _ = joined(heads, pieces, seen.text.offsets)
        within, begin = seen.within(given), np.repeat(seen.text.offsets[:-1], np.diff(seen.text.offsets))
        out, marks = np.zeros(given.n_words, np.int32), np.ones(given.n_words, np.bool_)
        marks[seen.words] = False
        out[seen.words] = np.where(whole > 0, within[begin + np.maximum(whole, 1) - 1] + 1, 0)
        attach_marks(given.offsets, marks, out)
        return out

    @property
    def _learnt(self) -> ValenceGrammar:
        if not hasattr(self, "grammar_"):
            raise self._has_not_learnt
        return self.grammar_

    # --- keeping

    def _to_saved(self) -> store.Saved:
        grammar = self._learnt
        arrays = {name: getattr(grammar, name) for name in ValenceGrammar.LAYOUT}
        arrays["tags"], arrays["tags_offsets"] = store.pack_strings(self.tags_)
        meta = {
            "trace": self.trace_.tolist(), "unconverged": self.unconverged_, "sentences": self.n_sentences_,
            "words": self.n_words_, **Reading.to_meta(self.reading_),
        }  # fmt: skip
        if self.configurations_ is not None:
            meta["configurations"] = self.configurations_.tolist()
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        arrays, meta = saved.arrays, saved.meta
        with store.reading("the saved grammar"):
            inducer = cls.of_options(saved.options)
            stop_valences, child_valences = inducer.classes
            tags = Strings("k", distinct=True, least=1)
            read = layout.check(
                arrays, {"tags": tags, **ValenceGrammar.LAYOUT}, "the saved grammar",
                {"s": stop_valences, "c": child_valences},
            )  # fmt: skip
            tables = {name: read[name] for name in ValenceGrammar.LAYOUT}
            inducer.grammar_ = ValenceGrammar(**tables, back_off=inducer._own, nearest_first=inducer.nearest_first)
            inducer.tags_ = tuple(read["tags"])
            inducer.trace_ = vector(meta["trace"], "trace")
            chances = meta.get("configurations")
            inducer.configurations_ = None if chances is None else vector(chances, "configurations")
            inducer.unconverged_ = layout.integer(meta["unconverged"], "unconverged")
            inducer.n_sentences_ = layout.integer(meta["sentences"], "sentences")
            inducer.n_words_ = layout.integer(meta["words"], "words")
            inducer.reading_ = Reading.from_meta(meta)
        return inducer


def _chances(trees: ValenceTrees, best: Any) -> NDArray[np.float64]:
    """The posterior of each link of these trees."""
    pairs = zip(trees.marginals(), best, strict=True)
    return np.concatenate([np.zeros(0), *(p[heads, np.arange(1, len(heads) + 1)] for p, heads in pairs)])
