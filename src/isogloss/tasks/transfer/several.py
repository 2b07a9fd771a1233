"""`DelexicalisedParser`: a parser for a language without a treebank, from the treebanks of several other languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from os.path import basename
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.formats import as_gold, as_treebank
from isogloss.data.reading import Reading, check_reading
from isogloss.data.treebank import Column, Treebank
from isogloss.data.vocabulary import Vocabulary
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, TreebankError, UsageError
from isogloss.layout import COUNTS, Layout, Numbers, check, texts
from isogloss.metrics.parsing import ParseScore, score_trees
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack
from isogloss.tasks.parse import DependencyParser
from isogloss.tasks.parse.cutting import cut, joined
from isogloss.tasks.parse.inference import chances_of
from isogloss.tasks.parse.words import Columns, Words, encode
from isogloss.tasks.transfer.completing import most_expected
from isogloss.tasks.transfer.directions import corrected, direction_factors, predicted_directions, tag_directions
from isogloss.tasks.transfer.options import DelexicalisedOptions
from isogloss.tasks.transfer.similarity import (
    KINDS,
    TRIGRAMS,
    Counts,
    Floats,
    divergence,
    similarity_weights,
    tag_kinds,
    tag_trigrams,
)
from isogloss.tasks.transfer.stages import Stages
from isogloss.tasks.transfer.views import universal, without_words

__all__ = ["DelexicalisedParser"]

_LAYOUT: Layout = {"trigrams": Numbers("int64", ("sources", TRIGRAMS), least=0, below=COUNTS)}
_DIRECTIONS: Layout = {"directions": Numbers("int64", ("sources", 2, KINDS, KINDS), least=0, below=COUNTS)}
_TARGET: Layout = {"target": Numbers("int64", TRIGRAMS, least=0, below=COUNTS)}

Heads = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Source:
    """What was learnt from one treebank: a parser that looks at tags alone, and the trigrams of its tags.

    Models of earlier versions do not know how often words stand before and behind their heads.
    """

    name: str
    parser: DependencyParser
    trigrams: Counts
    directions: Counts | None = None


class _Weighed(NamedTuple):
    """How sources count for a text: the share of each, and by how much directions of links are corrected."""

    shares: Floats
    factors: Floats | None


class _Fitted(NamedTuple):
    sources: tuple[_Source, ...]
    target: Counts | None
    """Trigrams of the text that sources are weighted for; without it, of each text that is parsed."""


class DelexicalisedParser(DelexicalisedOptions):
    r"""Parses a language without a treebank, by tags, from the treebanks of several other languages.

    For each treebank a parser of order 1 is learnt that sees UPOS and no words, and so can be applied to any language
    that is tagged with UPOS. The posteriors of links are summed,

    .. math:: P(h \to c) = \sum_s w_s\, P_s(h \to c), \qquad w_s \propto KL(target \,\|\, s)^{-4},

    with more weight for sources whose sequences of tags are like those of the target
    (`isogloss.tasks.transfer.similarity`). Links are then corrected by the directions that the order of tags in the
    target lets expect (`isogloss.tasks.transfer.directions`), and the projective tree with the most right heads in
    expectation is taken. Relations are chosen by a vote of the sources with the same weights, given that tree.

    Parameters
    ----------
    iterations : int
        Passes over each treebank.
    exponent : float
        How much nearer sources count more: 0 counts all alike.
    directions : bool
        Correct the directions of links.
    seed : int
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    sources_ : tuple of str
        Names of the sources.
    weights_ : dict of str to float, or None
        The share of each source for the text that was given as `target`; None without such a text.
    reading_ : Reading or None
        What is remembered of the target text.

    References
    ----------
    Rosa and Žabokrtský, KLcpos3 – a language similarity measure for delexicalized parser transfer, ACL 2015. McDonald,
    Petrov and Hall, Multi-source transfer of delexicalized dependency parsers, EMNLP 2011. We differ: posteriors are
    summed in place of one tree of each source, and trees are projective.

    Examples
    --------
    >>> from isogloss import samples
    >>> sides = {side: samples.trees("en-de", side).encode() for side in ("source", "target")}
    >>> trees = {side: Treebank.from_bytes(text) for side, text in sides.items()}
    >>> parser = DelexicalisedParser(iterations=2).fit(trees)
    >>> found = parser.predict(Treebank.of([[("Elle", "PRON"), ("dort", "VERB"), (".", "PUNCT")]]))
    >>> found.heads.tolist(), found.strings("deprel", 0)
    ([2, 0, 2], ('nsubj', 'root', 'punct'))
    """

    _kind: ClassVar[str] = "parse.delexicalised"

    # --- learning

    def fit(
        self,
        treebanks: Sequence[Treebank] | Mapping[str, Treebank],
        target: Treebank | None = None,
        progress: Progress | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from treebanks of several languages.

        Parameters
        ----------
        treebanks : sequence, or mapping of names to treebanks
            With UPOS and trees. Those of a sequence are named as their files are, or by their numbers.
        target : Treebank, optional
            Text of the target language, tagged with UPOS, for which sources are weighted once and for all; trees in it
            are not looked at. Without it, weights are found for each text that is parsed, from all of its sentences.
        progress : Progress, optional
        checkpoint : path, optional
            A folder that keeps the parsers that are ready, until `fit` ends.
        resume : bool
            Go on from there.
        """
        self.check_params()
        named = _named(treebanks)
        views = {name: _view(trees) for name, trees in named.items()}
        wanted = None if target is None else tag_trigrams(universal(as_treebank(target)))
        fingerprint: dict[str, Any] = {}
        if checkpoint is not None:
            parts = (part for name, view in views.items() for part in (name, view.to_bytes()))
            fingerprint = {"options": self.options_, "texts": store.data_hash(*parts)}
        stages = Stages(checkpoint, resume, fingerprint)
        sources = tuple(
            self._learn(name, f"source-{number}", view, stages, progress or QuietProgress())
            for number, (name, view) in enumerate(views.items())
        )
        self._fitted = _Fitted(sources, wanted)
        self.reading_ = None if target is None else Reading.of(target, frequent=True)
        stages.discard()
        return self

    def _learn(self, name: str, stage: str, view: Treebank, stages: Stages, progress: Progress) -> _Source:
        made = DependencyParser(
            order=1, projective=True, iterations=self.iterations, seed=self.seed, threads=self.threads
        )
        parser = stages.model(stage, lambda: made.fit(view, None, progress, **stages.keeping(stage)))
        return _Source(name, parser, tag_trigrams(view), tag_directions(view))

    def with_sources(self, names: Iterable[str]) -> DelexicalisedParser:
        """The same with some of the sources only, in this order."""
        learnt = self._learnt
        known = {source.name: source for source in learnt.sources}
        chosen = tuple(names)
        wrong = [name for name in chosen if name not in known]
        if wrong or not chosen:
            found = f"{wrong[0]!r} is none" if wrong else "none was named"
            raise ParameterError(f"with_sources: {found} of the sources, {', '.join(known)}")
        made = DelexicalisedParser(**self.options_, threads=self.threads)
        made._fitted = _Fitted(tuple(known[name] for name in dict.fromkeys(chosen)), learnt.target)
        made.reading_ = self.reading_
        return made

    # --- predicting

    def predict(self, treebank: Treebank | Text, *, confidence: bool = False) -> Treebank:
        """The treebank with heads and relations; its words and tags stay.

        With `confidence`, MISC gets ``Confidence``, the weighted posterior of each link, and ``LabelConfidence``, that
        of its relation if the link is right. Very long sentences are parsed in pieces, as `DependencyParser` does.
        """
        given, seen, weighed = self._given(treebank)
        offsets = cut(given.offsets)
        heads, chances = [np.zeros(0, np.int32)], [np.zeros(0)]
        with using_threads(self.threads):
            words = self._words(seen, offsets)
            for posteriors in self._posteriors(words, weighed, tag_kinds(seen)):
                found = most_expected(posteriors)
                heads.append(found)
                chances.append(chances_of(posteriors, found))
            tree = np.concatenate(heads)
            labels, sure = self._relations(words, tree, offsets, weighed.shares)
        whole, roots = joined(tree, offsets, given.offsets)
        parsed = given.with_predictions(heads=whole)
        if labels is not None:
            labels.ids[roots] = max(labels.vocabulary.index_of("parataxis"), 0)
            parsed = parsed.with_predictions(deprel=labels)
        if confidence:
            parsed = parsed.with_misc("Confidence", [f"{p:.4f}" for p in np.concatenate(chances).tolist()])
            if labels is not None:
                parsed = parsed.with_misc("LabelConfidence", [f"{p:.4f}" for p in sure.tolist()])
        return parsed

    def predict_proba(self, treebank: Treebank | Text) -> Stack:
        """The weighted posterior of each link: float64[n + 1, n + 1] for each sentence, as (head, child)."""
        _, seen, weighed = self._given(treebank)
        with using_threads(self.threads):
            words = self._words(seen, seen.offsets)
            found = [stack.values for stack in self._posteriors(words, weighed, tag_kinds(seen))]
        sizes = np.asarray(seen.lengths) + 1
        offsets = np.concatenate([[0], np.cumsum(sizes * sizes)]).astype(np.int64)
        return Stack(np.concatenate([np.zeros(0), *found]), offsets, np.stack([sizes, sizes], axis=1))

    def score(self, treebank: Treebank) -> ParseScore:
        """UAS, LAS, CLAS and the rest of `isogloss.metrics.score_trees`, in percent."""
        gold = as_gold(treebank)
        return score_trees(self.predict(gold), gold)

    def weights_for(self, treebank: Treebank) -> dict[str, float]:
        """The share of each source for a text with tags, or for the target text if one was given to `fit`."""
        _, _, weighed = self._given(treebank)
        return dict(zip(self.sources_, weighed.shares.tolist(), strict=True))

    def divergences_for(self, treebank: Treebank) -> dict[str, float]:
        """How much the tags of a text differ from those of each source: KLcpos3, in nats."""
        own = tag_trigrams(universal(as_treebank(treebank)))
        return {source.name: divergence(own, source.trigrams) for source in self._learnt.sources}

    def _given(self, treebank: Treebank | Text) -> tuple[Treebank, Treebank, _Weighed]:
        """The text, what parsers see of it, and how sources count: for the target text, or for this one."""
        target, text = self._learnt.target, as_treebank(treebank)
        check_reading(self.reading_, text)
        seen = without_words(universal(text))
        return text, seen, self._weighed(tag_trigrams(seen) if target is None else target)

    def _weighed(self, target: Counts) -> _Weighed:
        shares, sources = self._shares(target), self._learnt.sources
        known = [source.directions for source in sources if source.directions is not None]
        if not self.directions or len(known) < len(sources):
            return _Weighed(shares, None)
        directions = np.stack(known)
        predicted = predicted_directions(target, np.stack([source.trigrams for source in sources]), directions)
        return _Weighed(shares, direction_factors(predicted, directions, shares))

    def _shares(self, target: Counts) -> Floats:
        found = np.array([divergence(target, source.trigrams) for source in self._learnt.sources])
        return similarity_weights(found, self.exponent)

    def _words(self, seen: Treebank, offsets: NDArray[np.int64]) -> list[Words]:
        """The text in codes, for each source; most look at the same columns."""
        made: dict[Columns, Words] = {}
        columns = [source.parser._learnt.columns for source in self._learnt.sources]
        for one in columns:
            if one not in made:
                made[one] = encode(seen, one, offsets)
        return [made[one] for one in columns]

    def _posteriors(self, words: Sequence[Words], weighed: _Weighed, kinds: Counts) -> Iterator[Stack]:
        """Weighted posteriors of links, of some sentences at a time; `kinds` has the tags of all words."""
        trees = (source.parser._trees(own) for source, own in zip(self._learnt.sources, words, strict=True))
        weights, at = weighed.shares, 0
        for some in zip(*trees, strict=True):
            stacks = (one.beliefs_of_links() for one in some)
            first = next(stacks)
            total = weights[0] * first.values
            for weight, stack in zip(weights[1:].tolist(), stacks, strict=True):
                total += weight * stack.values
            summed = first.like(kept(total))
            n = int((summed.shapes[:, 0] - 1).sum())
            yield summed if weighed.factors is None else corrected(summed, kinds[at : at + n], weighed.factors)
            at += n

    def _relations(
        self, words: Sequence[Words], heads: Heads, offsets: NDArray[np.int64], weights: Floats
    ) -> tuple[Column | None, Floats]:
        """The relation that most is in favour of for each word's link, and its share; None if no source has any."""
        names = sorted({name for source in self._learnt.sources for name in source.parser.labels_})
        numbers = Vocabulary(names)
        votes, voters = np.zeros((len(heads), len(names))), 0.0
        for source, own, weight in zip(self._learnt.sources, words, weights.tolist(), strict=True):
            labeller = source.parser._learnt.labeller
            if labeller is not None:
                votes[:, numbers.encode(labeller.names)] += weight * labeller.predict_proba(own, heads, offsets)
                voters += weight
        if not voters:
            return None, np.zeros(0)
        best = votes.argmax(axis=1).astype(np.int32)
        return Column(best, numbers), votes[np.arange(len(best)), best] / voters

    @property
    def sources_(self) -> tuple[str, ...]:
        """Names of the sources."""
        return tuple(source.name for source in self._learnt.sources)

    @property
    def weights_(self) -> dict[str, float] | None:
        """The share of each source, if there was a target text."""
        target = self._learnt.target
        return None if target is None else dict(zip(self.sources_, self._shares(target).tolist(), strict=True))

    @property
    def _learnt(self) -> _Fitted:
        fitted: _Fitted | None = vars(self).get("_fitted")
        if fitted is None:
            raise self._has_not_learnt
        return fitted

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays: dict[str, NDArray[Any]] = {"trigrams": np.stack([source.trigrams for source in learnt.sources])}
        known = [source.directions for source in learnt.sources if source.directions is not None]
        if len(known) == len(learnt.sources):
            arrays["directions"] = np.stack(known)
        if learnt.target is not None:
            arrays["target"] = learnt.target
        meta: dict[str, Any] = {"names": list(self.sources_), "parsers": [], **Reading.to_meta(self.reading_)}
        for number, source in enumerate(learnt.sources):
            own, about = store.hold(f"source {number}", source.parser)
            arrays |= own
            meta["parsers"].append(about)
        return store.Saved(self._kind, self.options_, arrays, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved parser"):
            made = cls.of_options(saved.options)
            names = texts(saved.meta["names"], "names")
            if not names or len(saved.meta["parsers"]) != len(names):
                raise ValueError(f"it has {len(names)} names for {len(saved.meta['parsers'])} sources")
            place = "the tags of the saved parser"
            trigrams = check(saved.arrays, _LAYOUT, place, {"sources": len(names)})["trigrams"]
            target = check(saved.arrays, _TARGET, place)["target"] if "target" in saved.arrays else None
            sides: Sequence[Counts | None] = [None] * len(names)
            if "directions" in saved.arrays:
                sides = check(saved.arrays, _DIRECTIONS, place, {"sources": len(names)})["directions"]
            sources = tuple(
                _Source(name, _parser_of(f"source {number}", saved.arrays, about), trigrams[number], side)
                for number, (name, about, side) in enumerate(zip(names, saved.meta["parsers"], sides, strict=True))
            )
            made._fitted = _Fitted(sources, target)
            made.reading_ = Reading.from_meta(saved.meta)
        return made


def _parser_of(name: str, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> DependencyParser:
    """The saved parser of a source; posteriors of trees of another kind could not be summed."""
    parser: DependencyParser = store.held(name, arrays, about, DependencyParser)
    learnt = parser._learnt
    if not learnt.shape.projective or not learnt.shape.single_root or learnt.shape.families or learnt.tagger:
        raise ValueError("one of its parsers is not of order 1, or not of projective trees with one root")
    return parser


def _named(treebanks: Sequence[Treebank] | Mapping[str, Treebank]) -> dict[str, Treebank]:
    """Treebanks by name; those of a sequence by the name of their file, as far as it tells them apart."""
    if isinstance(treebanks, Treebank):
        raise UsageError("DelexicalisedParser: give a list of treebanks, one for each source, or a dictionary of them")
    if isinstance(treebanks, Mapping):
        named = {str(name): as_gold(trees) for name, trees in treebanks.items()}
    else:
        every = [as_gold(trees) for trees in treebanks]
        files = ["" if trees.name == "<memory>" else basename(trees.name) for trees in every]
        known = all(files) and len(set(files)) == len(files)
        named = {files[k] if known else str(k + 1): trees for k, trees in enumerate(every)}
    if not named:
        raise UsageError("DelexicalisedParser: there is no treebank to learn from. Give at least one")
    return named


def _view(trees: Treebank) -> Treebank:
    """What is learnt from: tags and trees."""
    if not (trees.heads >= 0).any():
        raise TreebankError(f"{trees.name}: no word has a head, so there is nothing to learn. Is it the right file?")
    return without_words(universal(trees))
