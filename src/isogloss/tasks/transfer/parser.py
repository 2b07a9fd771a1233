"""`TransferredParser`: a tagger and parser for a language without a treebank, from a translation."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Bitext, Text
from isogloss.data.contractions import Contractions, split_text
from isogloss.data.formats import as_gold
from isogloss.data.links import Links
from isogloss.data.reading import Reading, check_reading
from isogloss.data.rows import gathered
from isogloss.data.tag_dictionary import TagDictionary
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import ParameterError, UsageError
from isogloss.estimator import option
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.cutting import LONGEST
from isogloss.tasks.parse.induction import GrammarInducer
from isogloss.tasks.parse.inference import chances_of, pieces
from isogloss.tasks.tag import CrfTagger, ProjectedTagger
from isogloss.tasks.tag.base import ColumnTagger
from isogloss.tasks.transfer.chain import Chain, Given
from isogloss.tasks.transfer.completing import most_expected
from isogloss.tasks.transfer.grammars import LabelledGrammar, with_relations
from isogloss.tasks.transfer.options import MODELS, TransferOptions
from isogloss.tasks.transfer.soft_tags import drawn_tags
from isogloss.tasks.transfer.views import universal, without_words

__all__ = ["TransferredParser"]


WITH_TREES = ("complete", "density", "hard", "random", "partial")
"""Methods that learn from trees of the target language as well."""


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was learnt: how words are split, tagged and parsed."""

    contractions: Contractions | None
    tagger: ColumnTagger
    parser: DependencyParser | LabelledGrammar
    report: dict[str, Any]


class TransferredParser(TransferOptions):
    r"""Tags and parses a language without a treebank, from its translation into one that has a treebank.

    A tagger and a parser of the source language are learnt from the treebank and applied to the source side of a
    bitext; words are linked; a tagger of the target language is learnt from what tags the links carry
    (`ProjectedTagger`). Then trees are carried over: the posterior of a target link is

    .. math:: \pi(h' \to c') = \sum_{h, c} P(h \sim h')\, P(c \sim c')\, P(h \to c)

    and what it leaves open is filled by a parser that was learnt from the source treebank without its words
    (`isogloss.tasks.transfer.completing`). The sentences whose trees are most probable teach the target parser, which
    knows words, and does not need the translation any more. Contractions (`zum`, `della`) are split into the words that
    Universal Dependencies has for them.

    Parameters
    ----------
    dictionary : TagDictionary, optional
        Tags that words of the target language may have.
    method : str
        ``complete``, as said above. ``posterior``: trees are not completed; the parser is asked to keep a `share` of
        projected links in expectation [1]_. ``density``: the parser that fills gaps is learnt from sentences which were
        projected densely [2]_, in place of the source treebank. ``hard``: only sentences whose whole tree was projected
        are learnt from. ``random``: trees are completed at random. ``delexicalised``: nothing is projected; the source
        treebank is learnt from without its words. The last three are there for comparison. ``quasi`` and ``partial``
        learn a grammar of tags [3]_; see `isogloss.tasks.transfer.grammars`.
    model : "features" or "grammar", optional
        What is learnt of target trees: a parser with features, or a dependency model with valence over tags, whose
        relations are those of a parser that looks at tags alone. If not given, as the method needs it; ``hard`` and
        ``posterior`` have both.
    order : 1 or 2
        Of the target parser.
    iterations, rounds, sentences, longest, share, shares, draws
        See the help of each option.
    contractions : str
        "auto", "none", a language, or a file; see `isogloss.data.contractions.Contractions.choose`.
    seed : int
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    tagger_ : ColumnTagger
        Of the target language.
    parser_ : DependencyParser or GrammarInducer
        Of the target language; it takes words with tags. A grammar gives no relations.
    contractions_ : Contractions or None
        What is split.
    report_ : dict
        What was done, and how sure it is: pairs, links, how much was projected, how many sentences were learnt from,
        and how probable their trees are.

    References
    ----------
    .. [1] Ganchev, Gillenwater and Taskar, Dependency Grammar Induction via Bitext Projection Constraints, ACL 2009.
    .. [2] Rasooli and Collins, Density-Driven Cross-Lingual Transfer of Dependency Parsers, EMNLP 2015.
    .. [3] D. A. Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 4.6.

    Examples
    --------
    >>> from isogloss import samples
    >>> trees = Treebank.from_bytes(samples.trees("en-de", "source").encode())
    >>> parser = TransferredParser(iterations=2).fit(samples.bitext("en-de"), trees)
    >>> found = parser.predict(Text.of(["Die Frau liest ein Buch ."]))
    >>> found.words(0), len(found.heads)
    (('Die', 'Frau', 'liest', 'ein', 'Buch', '.'), 6)
    """

    _kind: ClassVar[str] = "parse.transferred"
    dictionary: TagDictionary | None = option(
        default=None, kind=TagDictionary, kw_only=False, kept=False, help="The tags that words may have, beside links."
    )

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        offered = [name for name, methods in MODELS.items() if self.method in methods]
        if self.model is not None and self.model not in offered:
            raise ParameterError(
                f"TransferredParser: method={self.method!r} learns no model={self.model!r}. Take {offered[0]!r}, or "
                f"one of the methods {', '.join(MODELS[self.model])}"
            )
        if self.learns_grammar and self.order == 2:
            raise ParameterError("TransferredParser: order says nothing with model='grammar'. Leave it out")
        if self.method == "posterior" and self.order == 2:
            raise ParameterError(
                "TransferredParser: links are kept in expectation by parsers of order 1. Take order=1, or another "
                "method than 'posterior'"
            )

    @property
    def learns_grammar(self) -> bool:
        """Whether a grammar is learnt, as `model` or the method has it."""
        return self.model == "grammar" or self.method not in MODELS["features"]

    # --- learning

    def fit(
        self,
        bitext: Bitext,
        treebank: Treebank | None = None,
        *,
        source: Treebank | None = None,
        target: Treebank | None = None,
        links: Links | None = None,
        trees: Treebank | None = None,
        progress: Progress | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from a bitext, and a treebank of its source language.

        Parameters
        ----------
        bitext : Bitext
            The language that has a treebank first. A sentence a line; words as the treebank has them, but for
            contractions, which are split.
        treebank : Treebank, optional
            Trees of the source language, of any text, with UPOS. Needed unless `source` is given, which then stands for
            it.
        source : Treebank, optional
            The source side of the bitext with trees, if they are known; otherwise they are found by a parser that is
            learnt from `treebank`.
        target : Treebank, optional
            Tagged sentences of the target language: its tagger is learnt from them, in place of what links carry.
        links : Links, optional
            Of the bitext as it is given, with probabilities; otherwise those that `HMMAligner` finds.
        trees : Treebank, optional
            Trees of the target language, if there are a few: they are learnt from as well.
        progress : Progress, optional
        checkpoint : path, optional
            A folder that keeps what each stage has made, until `fit` ends.
        resume : bool
            Go on from there.
        """
        self.check_params()
        known = treebank if treebank is not None else source
        if known is None:
            raise UsageError("TransferredParser: give a treebank of the source language, or trees of the source side")
        if trees is not None and self.method not in WITH_TREES:
            raise UsageError(
                f"TransferredParser: method={self.method!r} does not learn from trees of the target language"
            )
        given = Given(bitext, as_gold(known), source, target, links, trees)
        chain = Chain.of(self, given, progress or QuietProgress(), checkpoint, resume)
        self._fitted = _Fitted(*chain.learn())
        self.reading_ = Reading.of(chain.split.bitext.target, frequent=True)
        chain.stages.discard()
        return self

    # --- predicting

    def predict(
        self, treebank: Treebank | Text, *, tags: str = "predicted", confidence: bool = False
    ) -> Treebank:  # fmt: skip
        """The text with tags, heads and relations.

        Parameters
        ----------
        treebank : Treebank or Text
            Contractions of a text are split, and written as multiword tokens; the words of a treebank are taken as they
            are.
        tags : "predicted" or "given"
            Whether the words are tagged, or have their tags.
        confidence : bool
            As in `DependencyParser.predict`.
        """
        tagged, parser = self._tagged(treebank, tags), self._learnt.parser
        if tags == "given" or self.draws == 1:
            found = parser.predict(self._view(tagged), confidence=confidence)
        else:
            found = self._averaged(tagged, confidence)
        return tagged.with_predictions(
            heads=found.heads, deprel=found.columns["deprel"], **({"misc": found.columns["misc"]} if confidence else {})
        )

    def predict_proba(self, treebank: Treebank | Text, *, tags: str = "predicted") -> Stack:
        """The posterior of each link: float64[n + 1, n + 1] for each sentence, as (head, child), the root first."""
        tagged = self._tagged(treebank, tags)
        if tags == "given" or self.draws == 1:
            return self._learnt.parser.predict_proba(self._view(tagged))
        return self._posteriors(tagged, self._drawn(tagged))

    def _drawn(self, tagged: Treebank) -> NDArray[np.int32]:
        """int32[draws, n_words]: tags that the tagger thinks possible, as often as they are probable."""
        return drawn_tags(self._learnt.tagger.predict_proba(tagged), tagged.lengths, self.draws, self.seed)

    def _posteriors(self, tagged: Treebank, drawn: NDArray[np.int32]) -> Stack:
        r"""Posteriors of links over tags, :math:`P(h \to c) = E_{t \sim tagger} P(h \to c \mid t)`, by draws."""
        learnt = self._learnt
        names, total = Vocabulary(learnt.tagger.labels_), None
        for tags in drawn:
            found = learnt.parser.predict_proba(self._view(tagged.with_columns(upos=Column(tags, names))))
            total = found.values if total is None else total + found.values
        assert total is not None
        return found.like(kept(total / len(drawn)))

    def _averaged(self, tagged: Treebank, confidence: bool) -> Treebank:
        """Trees with the most right heads in expectation over tags, and the relations they have with the best tags."""
        parser, drawn, view = self._learnt.parser, self._drawn(tagged), self._view(tagged)
        heads, chances = np.zeros(tagged.n_words, np.int32), np.ones(tagged.n_words)
        long = tagged.lengths > LONGEST  # parsed in pieces, with the best tags
        if long.any():
            heads[np.repeat(long, tagged.lengths)] = parser.predict(view.take(long)).heads
        usual = np.flatnonzero(~long)
        for some in pieces(tagged.lengths[usual]):
            words = gathered(tagged.offsets, usual[some])[1]
            posteriors = self._posteriors(tagged.take(usual[some]), drawn[:, words])
            heads[words] = most_expected(posteriors)
            chances[words] = chances_of(posteriors, heads[words])
        found = with_relations(parser, view, heads, confidence=confidence)
        return found.with_misc("Confidence", [f"{p:.4f}" for p in chances.tolist()]) if confidence else found

    def score(self, treebank: Treebank, *, tags: str = "predicted") -> ParseScore:
        """UAS, LAS, CLAS and the rest of `isogloss.metrics.score_trees`, in percent."""
        gold = as_gold(treebank)
        return score_trees(self.predict(gold, tags=tags), gold)

    def _tagged(self, given: Treebank | Text, tags: str) -> Treebank:
        learnt = self._learnt
        if tags not in ("predicted", "given"):
            raise ParameterError(f"TransferredParser: tags should be 'predicted' or 'given', not {tags!r}")
        text = given if isinstance(given, Treebank) else split_text(given, learnt.contractions)
        check_reading(self.reading_, text)
        if tags == "predicted":
            return learnt.tagger.predict(text)
        universal(text)  # which refuses words without tags
        return text

    def _view(self, tagged: Treebank) -> Treebank:
        """What the parser looks at."""
        return without_words(tagged) if self.method == "delexicalised" or self.learns_grammar else tagged

    @property
    def tagger_(self) -> ColumnTagger:
        """The tagger of the target language."""
        return self._learnt.tagger

    @property
    def parser_(self) -> DependencyParser | GrammarInducer:
        """The parser of the target language."""
        parser = self._learnt.parser
        return parser.grammar if isinstance(parser, LabelledGrammar) else parser

    @property
    def contractions_(self) -> Contractions | None:
        """What is split into several words."""
        return self._learnt.contractions

    @property
    def report_(self) -> dict[str, Any]:
        """What was done in learning."""
        return self._learnt.report

    @property
    def _learnt(self) -> _Fitted:
        fitted: _Fitted | None = vars(self).get("_fitted")
        if fitted is None:
            raise self._has_not_learnt
        fitted.tagger.threads = self.threads
        if isinstance(fitted.parser, LabelledGrammar):
            fitted.parser.use_threads(self.threads)
        else:
            fitted.parser.threads = self.threads
        return fitted

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        held: dict[str, Any] = {"tagger": learnt.tagger, "parser": learnt.parser}
        if isinstance(learnt.parser, LabelledGrammar):
            held |= {"grammar": learnt.parser.grammar, "parser": learnt.parser.labeller}
        table = None if learnt.contractions is None else learnt.contractions.to_bytes().decode()
        meta = {"contractions": table, "report": learnt.report, **Reading.to_meta(self.reading_)}
        arrays: dict[str, NDArray[Any]] = {}
        for name, model in held.items():
            own, meta[name] = store.hold(name, model)
            arrays |= own
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        meta = saved.meta
        with store.reading("the saved parser"):
            made = cls.of_options(saved.options)
            table = meta["contractions"]
            contractions = None if table is None else Contractions.from_bytes(str(table).encode(), "contractions")
            tagger = store.held("tagger", saved.arrays, meta["tagger"], CrfTagger, ProjectedTagger)
            parser = store.held("parser", saved.arrays, meta["parser"], DependencyParser)
            if made.learns_grammar:
                grammar = store.held("grammar", saved.arrays, meta["grammar"], GrammarInducer)
                parser = LabelledGrammar(grammar, parser)
            made._fitted = _Fitted(contractions, tagger, parser, dict(meta["report"]))
            made.reading_ = Reading.from_meta(meta)
        return made
