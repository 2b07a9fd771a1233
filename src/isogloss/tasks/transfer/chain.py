"""From a bitext and a treebank of its source language to a tagger and a parser of the target language, in stages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Bitext
from isogloss.data.contractions import Contractions, SplitBitext, split_bitext
from isogloss.data.joining import join_treebanks
from isogloss.data.links import Links
from isogloss.data.rows import gathered
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.errors import BitextError, TreebankError
from isogloss.progress import Progress
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.induction import GrammarInducer
from isogloss.tasks.parse.induction.evidence import Beside, EdgesToKeep
from isogloss.tasks.parse.inference import pieces
from isogloss.tasks.tag import CrfTagger, ProjectedTagger
from isogloss.tasks.tag.base import ColumnTagger
from isogloss.tasks.tag.projection import carried, first_words
from isogloss.tasks.transfer.baselines import determined_sentences, random_trees
from isogloss.tasks.transfer.completing import Completed, complete_trees, most_expected, shared_links
from isogloss.tasks.transfer.conserving import ConservedEdges, agreed_shares
from isogloss.tasks.transfer.edges import ProjectedEdges, density_of, project_edges, project_posteriors
from isogloss.tasks.transfer.grammars import (
    LINKED,
    LONGEST,
    LabelledGrammar,
    known_trees,
    linked_shares,
    new_grammar,
    with_relations,
)
from isogloss.tasks.transfer.likely import LikelyHeads
from isogloss.tasks.transfer.soft_tags import weighed_tags
from isogloss.tasks.transfer.stages import Stages
from isogloss.tasks.transfer.views import possessives_as_determiners, universal, without_words

if TYPE_CHECKING:
    from isogloss.tasks.transfer.parser import TransferredParser

__all__ = ["Chain", "Given"]

TAGGING_PAIRS = 20_000
"""Pairs that the target tagger is learnt from, at most; more did not make it better."""
SOURCE_PASSES = 6
TAG_TREES = 5_000
"""Sentences, spread over the treebank, that a parser which looks at tags alone is learnt from, at most: more of them do
not make it better on other languages."""
HARD = 0.5
"""Projected links that are at least this probable are there, where they are not counted by their probabilities."""
LEAST = 1e-3
"""Heads of source words that are less probable are not kept."""
STRETCH = 3
"""A source sentence that is so many times as long as a target sentence may be is no translation of one."""
SHARD = 2_000
"""Sentences that are tagged at a time."""
TOLD, HANDY = 10, (5, 20)
"""Words and sentences that are named as those to annotate next; sentences of so many words."""
DENSE, RUN = 0.8, 5
"""Method "density" begins with sentences in which so large a share of words, and so many in a row, have a head."""


@dataclass(frozen=True, eq=False)
class Given:
    """What there is to learn from; see `TransferredParser.fit`."""

    bitext: Bitext
    treebank: Treebank
    source: Treebank | None = None
    target: Treebank | None = None
    links: Links | None = None
    trees: Treebank | None = None

    def hash(self) -> str:
        """Tells one set of texts from another."""
        parts: list[Any] = []
        for text in (self.bitext.source, self.bitext.target):
            parts += [text.ids, text.vocabulary]
        for trees in (self.treebank, self.source, self.target, self.trees):
            parts.append(None if trees is None else trees.to_bytes())
        if self.links is not None:
            parts += [self.links.offsets, self.links.source, self.links.target, self.links.probability]
        return store.data_hash(*parts)


class Projected(NamedTuple):
    """What arrived at the target sentences that may be learnt from."""

    edges: ProjectedEdges
    text: Treebank
    """The same sentences, with tags such as the parser will be given."""
    doubt: NDArray[np.float64]
    """Wrong tags of each word that the tagger expects of itself."""


@dataclass(frozen=True, eq=False)
class Chain:
    """The stages of learning, each of which needs those before.

    Parameters
    ----------
    options : TransferredParser
        Says how.
    given : Given
    split : SplitBitext
        The bitext in words as treebanks have them.
    contractions : Contractions, optional
        Those of the target language.
    stages : Stages
        Where what was made is kept.
    progress : Progress
    """

    options: TransferredParser
    given: Given
    split: SplitBitext
    contractions: Contractions | None
    stages: Stages
    progress: Progress

    @classmethod
    def of(
        cls,
        options: TransferredParser,
        given: Given,
        progress: Progress,
        checkpoint: str | PathLike[str] | None,
        resume: bool,
    ) -> Chain:
        """With what is given checked, as far as that can be done before the work."""
        bitext = given.bitext
        if not bitext.target.n_words or not bitext.source.n_words:
            raise BitextError(
                f"{bitext.source.name}, {bitext.target.name}: there are no words, so there is nothing to learn from. "
                "Are they the right files?"
            )
        if not (given.treebank.heads >= 0).any():
            raise TreebankError(f"{given.treebank.name}: no word has a head. Give a treebank of the source language")
        contractions = Contractions.choose(options.contractions, bitext.target)
        own = None if given.source is not None else Contractions.choose("auto", bitext.source)
        split = split_bitext(bitext, own, contractions)
        if given.source is not None:
            first_words(split.bitext, given.source)  # says which line differs
        if given.links is not None:
            split.split_links(given.links)
        universal(given.treebank)
        fingerprint: dict[str, Any] = {}
        if checkpoint is not None:
            words = [] if options.dictionary is None else list(options.dictionary.to_arrays().values())
            fingerprint = {"options": options.options_, "texts": given.hash(), "dictionary": store.data_hash(*words)}
        return cls(options, given, split, contractions, Stages(checkpoint, resume, fingerprint), progress)

    def learn(self) -> tuple[Contractions | None, ColumnTagger, DependencyParser | LabelledGrammar, dict[str, Any]]:
        """What is split, the tagger, the parser, and a report."""
        if self.options.learns_grammar:
            grammar = self._grammar(self.projected)
            report = self._report(self.projected, None) | {"sentences": grammar.n_sentences_}
            return self.contractions, self.target_tagger, LabelledGrammar(grammar, self.delexicalised), report
        if self.options.method == "delexicalised":
            tagger = self.target_tagger
            return self.contractions, tagger, self.delexicalised, self._report(None, None)
        parser, chosen = self._parser(self.projected)
        return self.contractions, self.target_tagger, parser, self._report(self.projected, chosen)

    # --- the source side

    @cached_property
    def treebank(self) -> Treebank:
        """The treebank as languages share it."""
        return universal(possessives_as_determiners(self.given.treebank))

    @property
    def longest(self) -> int:
        """Words of target sentences that trees are learnt from, at most."""
        return min(self.options.longest, LONGEST) if self.options.learns_grammar else self.options.longest

    @cached_property
    def usable(self) -> NDArray[np.int64]:
        """Numbers of the pairs that trees are learnt from: not too long, and not without words."""
        bitext, longest = self.split.bitext, self.longest
        source, target = bitext.source.ids.lengths, bitext.target.ids.lengths
        found = np.flatnonzero((target > 1) & (target <= longest) & (source > 0) & (source <= STRETCH * longest))
        if not len(found):
            raise BitextError(
                f"{bitext.target.name}: no sentence has from 2 to {longest} words, so there is nothing to learn trees "
                "from. Give other sentences, or a larger `longest`"
            )
        return found

    @cached_property
    def source(self) -> tuple[Treebank, LikelyHeads]:
        """The source side with tags and, in pairs that are learnt from, trees; and the heads that its words may have.

        Posteriors are of some sentences at a time, and what is kept of them is a few numbers a word.
        """
        if self.given.source is not None:
            trees = universal(possessives_as_determiners(self.given.source))
            return trees, LikelyHeads.known(trees)
        tagger, parser = self.source_tagger, self.source_parser
        self.progress.start("Parsing the source side", 1)
        text = Treebank.from_text(self.split.bitext.source)
        tagged = text.with_predictions(upos=_tags(tagger, text))
        if self.options.method == "delexicalised":
            return tagged, LikelyHeads.known(tagged)
        return _parsed(parser, tagged, self.usable)

    @cached_property
    def source_tagger(self) -> CrfTagger:
        """Learnt from the treebank."""
        made: CrfTagger = self._with_threads(self.stages.model("source-tagger", self._source_tagger))
        return made

    @cached_property
    def source_parser(self) -> DependencyParser:
        """Learnt from the treebank, with words."""
        made: DependencyParser = self._with_threads(self.stages.model("source-parser", self._source_parser))
        return made

    def _source_tagger(self) -> CrfTagger:
        made = CrfTagger(seed=self.options.seed, threads=self.options.threads)
        return made.fit(self.treebank, None, self.progress, **self.stages.keeping("source-tagger"))

    def _source_parser(self) -> DependencyParser:
        made = self._new_parser(1, SOURCE_PASSES)
        return made.fit(self.treebank, None, self.progress, **self.stages.keeping("source-parser"))

    @cached_property
    def links(self) -> Links:
        """Links of the split words."""
        if self.given.links is not None:
            return self.split.split_links(self.given.links)
        from isogloss.tasks.align import HMMAligner

        made = HMMAligner(threads=self.options.threads)
        return self.stages.links(
            self.split.bitext, lambda: made.fit_predict(self.split.bitext, progress=self.progress)
        )  # fmt: skip

    # --- the target side

    @cached_property
    def target_tagger(self) -> ColumnTagger:
        """Learnt from tagged text if there is some, otherwise from what links carry."""
        made: ColumnTagger = self._with_threads(self.stages.model("target-tagger", self._target_tagger))
        return made

    def _target_tagger(self) -> ColumnTagger:
        options = self.options
        if self.given.target is not None:
            made = CrfTagger(seed=options.seed, threads=options.threads)
            return made.fit(universal(self.given.target), None, self.progress, **self.stages.keeping("target-tagger"))
        words = None if options.dictionary is None else options.dictionary.mapped("ud17")
        pairs = min(len(self.split.bitext), TAGGING_PAIRS)
        tagger = ProjectedTagger(words, soft=True, seed=options.seed, threads=options.threads)
        source = self.source[0]
        return tagger.fit(
            self.split.bitext.part(0, pairs), source.part(0, _sentences(self.split.bitext, source, pairs)),
            links=self.links.part(0, pairs), progress=self.progress,
        )  # fmt: skip

    @cached_property
    def delexicalised(self) -> DependencyParser:
        """A parser of the source treebank that looks at tags alone."""
        made: DependencyParser = self._with_threads(self.stages.model("delexicalised", self._delexicalised))
        return made

    def _delexicalised(self) -> DependencyParser:
        made = self._new_parser(1, self.options.iterations)
        some = np.unique(np.linspace(0, len(self.treebank) - 1, TAG_TREES).astype(np.int64))
        text = without_words(self.treebank.take(some))
        return made.fit(text, None, self.progress, **self.stages.keeping("delexicalised"))

    @cached_property
    def projected(self) -> Projected:
        """Edges that arrive at sentences which are not too long, and these sentences with tags."""
        bitext, usable = self.split.bitext, self.usable
        source, heads = self.source
        self.progress.start("Projecting trees", 1)
        edges = project_posteriors(heads, source, bitext, shared_links(self.links)).take(usable)
        text, doubt = self._tagged(usable)
        return Projected(edges, universal(text), doubt)

    def _tagged(self, rows: NDArray[np.int64]) -> tuple[Treebank, NDArray[np.float64]]:
        """The target side of some pairs with tags, and how often each is wrong by what the tagger thinks of itself.

        In every other sentence tags are those that the tagger and links together think most probable: they are right
        more often than the tagger's, and of one mind with the tree that is carried. In the others they are the
        tagger's, with which the parser will have to do.
        """
        whole, tagger = Treebank.from_text(self.split.bitext.target), self.target_tagger
        text = whole.take(rows)
        arrived = None
        if self.given.target is None:  # otherwise a tagger that has seen tagged text knows better
            arrived = carried(self.split.bitext, self.links, self.source[0], tagger.labels_)
            arrived = arrived.take(gathered(whole.offsets, rows)[1])
        own, both, doubt = np.zeros(text.n_words, np.int32), np.zeros(text.n_words, np.int32), np.zeros(text.n_words)
        for start in range(0, len(text), SHARD):
            words = slice(text.offsets[start], text.offsets[min(start + SHARD, len(text))])
            posterior = tagger.predict_proba(text.part(start, start + SHARD))
            own[words], doubt[words] = posterior.argmax(axis=1), 1.0 - posterior.max(axis=1, initial=0.0)
            both[words] = own[words] if arrived is None else weighed_tags(posterior, arrived.take(words))
        names = Vocabulary(tagger.labels_)
        every_other = np.repeat(rows % 2 == 0, text.lengths)
        return text.with_predictions(upos=Column(np.where(every_other, both, own).astype(np.int32), names)), doubt

    # --- the parser

    def _parser(self, projected: Projected) -> tuple[DependencyParser, Completed | None]:
        method = self.options.method
        if method == "posterior":
            return self._keeping_edges(projected), None
        if method in ("hard", "random"):
            return self._learnt_from(self._baseline(projected)), None
        prior = self.delexicalised if method == "complete" else self._dense(projected)
        view = without_words(projected.text) if method == "complete" else projected.text
        for turn in range(self.options.rounds):
            self.progress.start("Completing trees", 1)
            found = _completed(projected.edges, prior, view)
            trees = self._chosen(projected, found, prior, view)
            last = turn + 1 == self.options.rounds
            prior, view = self._learnt_from(trees, "target-parser" if last else ""), projected.text
        return prior, found

    def _baseline(self, projected: Projected) -> Treebank:
        """Trees by hard projection: those that are whole, or those of the first sentences completed at random."""
        edges = projected.edges.keep(projected.edges.probability >= HARD)
        if self.options.method == "hard":
            return edges.as_treebank(projected.text).take(determined_sentences(edges))
        some = np.arange(min(len(edges), self.options.sentences))
        edges, text = edges.take(some), projected.text.take(some)
        heads = random_trees(edges, seed=self.options.seed)
        return text.with_columns(heads=heads, deprel=_relations(edges, heads, text))

    def _chosen(self, projected: Projected, found: Completed, prior: DependencyParser, view: Treebank) -> Treebank:
        """The sentences whose trees are most probable and most of which was projected, with relations."""
        edges = projected.edges
        rows = np.repeat(np.arange(len(edges)), edges.lengths)
        worth = np.bincount(rows, found.confidence) * np.bincount(rows, np.minimum(edges.totals(), 1.0))
        best = np.sort(np.argsort(-worth / edges.lengths**2.0, kind="stable")[: self.options.sentences])
        heads = found.heads[gathered(edges.offsets, best)[1]]
        labelled = with_relations(prior, view.take(best), heads)
        relations = _relations(edges.take(best), heads, labelled)
        return projected.text.take(best).with_columns(heads=heads, deprel=relations)

    def _dense(self, projected: Projected) -> DependencyParser:
        """A parser of the sentences that were projected densely; what they lack it leaves open."""
        found = projected.edges.as_treebank(projected.text, HARD)
        density = density_of(found.heads, projected.edges.offsets)
        dense = (density.share >= DENSE) & (density.run >= np.minimum(RUN, projected.edges.lengths))
        if not dense.any():
            raise BitextError(
                f"{projected.text.name}: no sentence has {DENSE:.0%} of its tree projected, so method='density' has "
                "nothing to begin with. Take method='complete'"
            )
        return self._learnt_from(found.take(dense))

    def _keeping_edges(self, projected: Projected) -> DependencyParser:
        """A parser that keeps a share of projected links in expectation."""
        edges = projected.edges.keep(projected.edges.probability >= HARD)
        some = np.flatnonzero(np.diff(edges.starts) > 0)[: self.options.sentences]
        text, edges = edges.as_treebank(projected.text).take(some), edges.take(some)
        shares = self._shares(edges, projected.text.take(some))

        def target(sentences: NDArray[np.int64]) -> ConservedEdges:
            return ConservedEdges(edges, sentences, shares[sentences])

        made = self._new_parser(1, self.options.iterations)
        return made.fit(text, None, self.progress, target=target)

    # --- the grammar

    def _grammar(self, projected: Projected) -> GrammarInducer:
        """A grammar of the target sentences, by the method that was chosen."""
        options = self.options
        made = new_grammar(options.method, self.longest, options.threads)
        text, evidence = self._evidence(projected)
        if not len(text):
            raise BitextError(
                f"no sentence has {'a whole tree' if options.method == 'hard' else 'a word that is linked'} to learn "
                f"from with method={options.method!r}. Take another method"
            )
        return made.fit(text, self.progress, **evidence, **self.stages.keeping("grammar"))

    def _evidence(self, projected: Projected) -> tuple[Treebank, dict[str, Any]]:
        """Sentences to learn a grammar from, and what is known of their trees."""
        options, (source, _), bitext = self.options, self.source, self.split.bitext
        if options.method == "quasi":
            return self._beside(projected, LINKED)
        if options.method == "posterior":
            edges = projected.edges.keep(projected.edges.probability >= HARD)
            some = np.flatnonzero(np.diff(edges.starts) > 0)[: options.sentences]
            edges = edges.take(some)
            shares = self._shares(edges, projected.text.take(some))
            return projected.text.take(some), {"edges": EdgesToKeep(edges.word, edges.head, shares)}
        edges = project_edges(source, bitext, self.links, one_to_one=True).take(self.usable)
        found, shares = known_trees(edges, projected.text)
        chosen = shares == 1 if options.method == "hard" else shares > 0
        found = found.take(np.flatnonzero(chosen)[: None if options.method == "hard" else options.sentences])
        if self.given.trees is not None:
            found = join_treebanks([found, universal(self.given.trees)])
        return found, {"heads": True}

    def _beside(self, projected: Projected, linked: float) -> tuple[Treebank, dict[str, Any]]:
        """Sentences so much of which is linked, or as much as there is, with source trees and links."""
        source, shares = self.source[0], linked_shares(self.links.take(self.usable), projected.text)
        enough = (shares > 0) & (shares >= min(linked, shares.max()))
        some = np.flatnonzero(enough)[: self.options.sentences]
        pairs = self.usable[some]
        trees = source.take(_source_rows(self.split.bitext, source, pairs))
        return projected.text.take(some), {"beside": Beside(trees, self.links.take(pairs))}

    def _shares(self, edges: ProjectedEdges, text: Treebank) -> NDArray[np.float64]:
        """How much of the edges of each sentence is to be kept."""
        if self.options.shares == "one":
            return np.full(len(text), self.options.share)
        trees = self.delexicalised.predict(without_words(text))
        return agreed_shares(edges, trees.heads, self.options.share)

    def _learnt_from(self, trees: Treebank, stage: str = "") -> DependencyParser:
        """The target parser of some trees, and of those that are given."""
        if self.given.trees is not None:
            trees = join_treebanks([trees, universal(self.given.trees)])
        if not len(trees):
            raise BitextError("no whole tree was projected, so method='hard' has nothing to learn from. Take another")
        made = self._new_parser(self.options.order, self.options.iterations)
        keeping = self.stages.keeping(stage) if stage else {}
        return made.fit(trees, None, self.progress, **keeping)

    def _new_parser(self, order: int, iterations: int) -> DependencyParser:
        options = self.options
        return DependencyParser(
            order=order, iterations=iterations, projective=True, seed=options.seed, threads=options.threads
        )

    def _with_threads(self, model: Any) -> Any:
        model.threads = self.options.threads  # one that was kept does not know
        return model

    # --- what was done

    def _report(self, projected: Projected | None, found: Completed | None) -> dict[str, Any]:
        bitext = self.split.bitext
        said: dict[str, Any] = {
            "pairs": len(bitext), "source_words": bitext.source.n_words, "target_words": bitext.target.n_words,
            "language": None if self.contractions is None else self.contractions.language or None,
            "split": bitext.target.n_words - self.split.surface.target.n_words,
            "tags": "given" if self.given.target is not None else "projected",
        }  # fmt: skip
        if projected is not None:
            known = projected.edges.totals()
            said |= {"links": len(self.links.source), "projected": float(known.sum() / max(1, len(known)))}
            if self.given.target is None:
                said["unsure_words"] = _unsure_words(projected)
        if found is not None:
            said["confidence"] = float(found.confidence.mean())
        if found is not None and projected is not None:
            said["sentences"] = min(self.options.sentences, len(projected.edges))
            said["unsure_lines"] = [bitext.line_of(int(self.usable[row])) for row in _unsure_rows(projected, found)]
        return said


def _sentences(bitext: Bitext, source: Treebank, pairs: int) -> int:
    """How many sentences of the source belong to the first pairs; it may lack sentences for empty lines."""
    if len(source) == len(bitext):
        return pairs
    return int(np.count_nonzero(bitext.source.ids.lengths[:pairs]))


def _source_rows(bitext: Bitext, source: Treebank, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sentences of the source that belong to some pairs, none of which is empty."""
    if len(source) == len(bitext):
        return pairs
    return np.asarray(np.cumsum(bitext.source.ids.lengths > 0)[pairs] - 1)


def _unsure_words(projected: Projected) -> list[str]:
    """The words whose tags are most often wrong, by what the tagger thinks of itself, most often first."""
    ids, vocabulary = projected.text.columns["form"]
    wrong = np.bincount(ids, projected.doubt, minlength=len(vocabulary))
    return [vocabulary[x] for x in np.argsort(-wrong, kind="stable")[:TOLD].tolist() if wrong[x] > 0]


def _unsure_rows(projected: Projected, found: Completed) -> list[int]:
    """The sentences, neither very short nor long, of whose heads the fewest are right in expectation."""
    edges = projected.edges
    rows = np.repeat(np.arange(len(edges)), edges.lengths)
    mean = np.bincount(rows, found.confidence, minlength=len(edges)) / edges.lengths
    handy = np.flatnonzero((edges.lengths >= HANDY[0]) & (edges.lengths <= HANDY[1]))
    chosen: list[int] = handy[np.argsort(mean[handy], kind="stable")[:TOLD]].tolist()
    return chosen


def _tags(tagger: ColumnTagger, text: Treebank) -> Column:
    """The tags of a text, found for some sentences at a time."""
    parts = (text.part(start, start + SHARD) for start in range(0, len(text), SHARD))
    ids = [tagger.predict(part).columns["upos"].ids for part in parts]
    return Column(np.concatenate([np.zeros(0, np.int32), *ids]), Vocabulary(tagger.labels_))


def _parsed(
    parser: DependencyParser, tagged: Treebank, rows: NDArray[np.int64]
) -> tuple[Treebank, LikelyHeads]:  # fmt: skip
    """Some sentences of a text with trees, the others without; and the heads that words may have."""
    heads, relations = np.full(tagged.n_words, -1, np.int32), np.zeros(tagged.n_words, np.int32)
    names = ("_", *parser.labels_)
    counts = np.zeros(tagged.n_words, np.int64)
    likely: list[LikelyHeads] = []
    for some in pieces(tagged.lengths[rows]):
        part, words = tagged.take(rows[some]), gathered(tagged.offsets, rows[some])[1]
        posteriors = parser.predict_proba(part)
        likely.append(LikelyHeads.of(posteriors, part.offsets, LEAST))
        counts[words] = np.diff(likely[-1].starts)
        heads[words] = most_expected(posteriors)
        ids, vocabulary = with_relations(parser, part, heads[words]).columns["deprel"]
        relations[words] = Vocabulary(names).encode(vocabulary)[ids]
    trees = tagged.with_predictions(heads=heads, deprel=Column(relations, Vocabulary(names)))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return trees, LikelyHeads.joined(likely)._replace(starts=starts)


def _completed(edges: ProjectedEdges, prior: DependencyParser, view: Treebank) -> Completed:
    """Trees of what was projected and of what a parser believes, of which no more than some sentences are held."""
    heads, chances = np.zeros(edges.n_words, np.int32), np.zeros(edges.n_words)
    for rows in pieces(edges.lengths):
        words = slice(edges.offsets[rows[0]], edges.offsets[rows[-1] + 1])
        heads[words], chances[words] = complete_trees(edges.take(rows), prior.predict_proba(view.take(rows)))
    return Completed(heads, chances)


def _relations(edges: ProjectedEdges, heads: NDArray[np.int32], parsed: Treebank) -> Column:
    """The relation that was projected with each word's head, otherwise the one that the other parser gives the word."""
    ids, vocabulary = parsed.columns["deprel"]
    names = dict.fromkeys([*vocabulary, *edges.names, "root", "_"])
    numbers = Vocabulary(names)
    own = numbers.encode(vocabulary)[ids]
    kept = edges.conserved(heads) & (edges.relation >= 0)
    of_edges = numbers.encode(edges.names) if edges.names else np.zeros(0, np.int32)
    own[edges.word[kept]] = of_edges[edges.relation[kept]] if len(of_edges) else own[edges.word[kept]]
    root = numbers.index_of("root")
    own[(own == root) & (heads > 0)] = numbers.index_of("_")
    own[heads == 0] = root
    return Column(own.astype(np.int32), numbers)
