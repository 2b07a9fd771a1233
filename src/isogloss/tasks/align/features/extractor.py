"""`FeatureExtractor`: what is learnt from text without labels, and the features of any text that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Links, Vocabulary
from isogloss.data.formats import BitextLike, as_bitext
from isogloss.data.reading import Reading
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, ParameterError, UsageError
from isogloss.estimator import THREADS, Estimator, option
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.align.corpus import Corpus
from isogloss.tasks.align.features import keeping
from isogloss.tasks.align.features.base import Floats, PairFeatures, PairView, PartFeatures
from isogloss.tasks.align.features.blocks import LONGEST, Phrases, block_features
from isogloss.tasks.align.features.evidence import Posteriors, consensus_of, posteriors_of, training_posteriors
from isogloss.tasks.align.features.keeping import ALIGNERS, STEM
from isogloss.tasks.align.features.neighbours import VERSIONS, LinkHabits, fertility_features, link_pair_features
from isogloss.tasks.align.features.statistics import Known, Statistics, cut_words, joined
from isogloss.tasks.align.features.table import (
    COLUMNS,
    CONSENSUS,
    CONSENSUS_NULLS,
    DICTIONARY,
    HMM_NULLS,
    NULLS,
    TRUSTED,
    Dictionary,
    Table,
    stem_columns,
)
from isogloss.tasks.align.hmm import HMMAligner
from isogloss.tasks.align.lexicon import read_lexicon
from isogloss.tasks.align.options import MOST_WORDS, SETS
from isogloss.tasks.align.priors import fold

__all__ = ["SETS", "FeatureExtractor"]

STEMS = (3, 5)
"""Letters to which words are cut for the set "stems"; two lengths together did as well as the better one alone."""

Extra = Callable[[PairView], Any]


class FeatureExtractor(Estimator):
    """Features of word pairs, and of words left unlinked, for supervised aligners.

    Parameters
    ----------
    sets : sequence of str
        Which features, by set: "association", "position", "shape", "frequency", "context", "lexical", "hmm", "stems",
        "surroundings", "trust", "ibm". A constant `bias` is always among them. "stems" are posteriors of HMMs over
        words cut short, and their mean with that of "hmm", the consensus (the posterior of the HMM, or Dice, where
        there is none); "surroundings" are the cells next to a cell, and its rivals in row and column, by the
        consensus; "trust" is the consensus times what tells how far to trust it. "blocks" and "pairs" add no features
        of links, but count what `block_features`, and `link_pair_features` and `fertility_features`, need.
    links : sequence of str
        Names of other systems' links, which `transform` is then given: features ``links:<name>``.
    lexicon : path or iterable of (source, target), optional
        Word pairs that are known, a pair of words on a line between tabs. Compared without case, accents and script;
        entries of several words are passed over.
    extra : sequence of functions
        ``f(view: PairView) -> array[n_source, n_target]``, or a dict of such arrays by name: features ``extra:<name>``.
    lowercase : bool
        Count words without case.
    lexical_pairs, lexical_words : int
        The set "lexical" has an indicator for each pair of so many of the most frequent words of both sides, and for
        each of so many of the most frequent words.
    fertile_words : int
        With the sets "lexical" and "pairs", further links of so many of the most frequent words of each side have an
        indicator each.
    hmm : mapping
        Options of the `HMMAligner` behind the sets "hmm" and "stems".
    stems : sequence of int
        Letters to which words are cut for the set "stems": one HMM for each length. Endings split the counts of what
        is one word; without them rare forms have partners too.
    max_length : int
        Pairs with more words on a side are passed over.
    threads : int, optional
        All cores if not given; the result is the same.

    Notes
    -----
    All features lie between 0 and 1. A pair of the text that was fitted is judged by what the rest of that text says:
    its own sentence is taken out of the counts, and posteriors are those with own evidence left out, as `HMMAligner`
    decodes its training text. So features of training pairs are distributed as those of new text are. A pair is
    recognised by its words, whatever `Bitext` it comes in. What was saved no longer knows its text and takes all
    for new.

    Examples
    --------
    >>> from isogloss import samples
    >>> bitext = samples.bitext("en-de")
    >>> extractor = FeatureExtractor(sets=("association", "position")).fit(bitext)
    >>> features = extractor.transform(bitext)
    >>> features.link_names[:5], features.matrix(0, "distance").shape == features.shape(0)
    (('bias', 'dice', 'llr', 'pmi', 'distance'), True)
    """

    sets: Sequence[str] = option(
        default=SETS, kind=(list, tuple), kw_only=False, help="Sets of features; a constant is always among them."
    )
    links: Sequence[str] = option(
        default=(), kind=(list, tuple), help="Names of links by other systems, which are given with each text."
    )
    lexicon: str | PathLike[str] | Iterable[tuple[Any, ...]] | None = option(
        default=None,
        kind=(str, PathLike, Iterable),
        kept=False,
        help="Word pairs that are known, in a file or as tuples.",
    )
    extra: Sequence[Extra] = option(
        default=(), kind=(list, tuple), kept=False, help="Functions that make features of your own."
    )
    lowercase: bool = option(default=True, help="Count words without case.")
    lexical_pairs: int = option(
        default=5, least=0, most=10_000,
        help="How many of the most frequent words of both sides have an indicator for each pair of them.",
    )  # fmt: skip
    lexical_words: int = option(
        default=25, least=0, most=10_000, help="How many of the most frequent words have an indicator each."
    )
    fertile_words: int = option(
        default=100, least=0, most=10_000,
        help="How many of the most frequent words have an indicator each where they have further links.",
    )  # fmt: skip
    hmm: Mapping[str, Any] | None = option(
        default=None, kind=Mapping, help="Options of the HMMAligner behind the sets hmm and stems."
    )
    stems: Sequence[int] = option(
        default=STEMS, kind=(list, tuple), help="Letters to which words are cut for the set stems: one HMM for each."
    )
    max_length: int = option(
        default=1000, least=1, most=MOST_WORDS, help="Pairs with more words on a side are passed over."
    )
    threads: int | None = option(default=None, kind=int, least=1, kept=False, effect=False, help=THREADS)

    _known: Known | None = None
    _dictionary: Dictionary | None = None
    _extra_names: Sequence[tuple[str, ...]] = ()
    _frequent: Sequence[Vocabulary] = (Vocabulary([]), Vocabulary([]))
    _phrases: Phrases | None = None
    _habits: Mapping[str, LinkHabits] = MappingProxyType({})

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        if unknown := [name for name in self.sets if name not in COLUMNS]:
            wrong = ", ".join(repr(name) for name in unknown)
            raise ParameterError(f"there is no set of features {wrong}: take some of {', '.join(COLUMNS)}")
        if not all(isinstance(name, str) for name in self.links):
            raise ParameterError(f"FeatureExtractor: links should be names of systems, not {self.links!r}")
        lengths = [n for n in self.stems if isinstance(n, int) and not isinstance(n, bool) and n >= 1]
        if len(set(lengths)) < len(self.stems):
            raise ParameterError(f"FeatureExtractor: stems should be different numbers of letters, not {self.stems!r}")

    @property
    def _ordered(self) -> tuple[str, ...]:
        """The sets in the order of their features, whatever order they were given in."""
        return tuple(name for name in COLUMNS if name in self.sets)

    # --- learning

    def fit(self, bitext: BitextLike, unlabelled: BitextLike | None = None, progress: Progress | None = None) -> Self:
        """Count words and train the aligners behind the features, on the text of both; labels are never seen."""
        self.check_params()
        labelled = as_bitext(bitext)
        self.reading_ = Reading.of(labelled.source, labelled.target)
        text = joined(labelled, None if unlabelled is None else as_bitext(unlabelled))
        progress = progress or QuietProgress()
        with using_threads(self.threads):
            self.aligners_ = self._trained(text, progress)
            whole = [aligner for name, aligner in self.aligners_.items() if not name.startswith(STEM)]
            if whole:
                trained = whole[0]._trained_on
                assert trained is not None
                corpus = trained[1].corpus
            else:
                corpus = Corpus.of(text, lowercase=self.lowercase, max_length=self.max_length)
            if corpus.skipped.all():
                raise BitextError(
                    "FeatureExtractor: no pair of the text has words on both sides: nothing to learn from"
                )
            self.statistics_ = Statistics.of(corpus)
            self._known = Known.of(corpus)
            self._dictionary = None if self.lexicon is None else _dictionary(self.lexicon)
            further = self.fertile_words if "pairs" in self.sets else 0
            size = max(self.lexical_pairs, self.lexical_words, further) if "lexical" in self.sets else 0
            self._frequent = [Vocabulary(self.statistics_.frequent(side, size)) for side in ("source", "target")]
            self._extra_names = self._names_of_extra(labelled)
            self._phrases, self._habits = None, {}
            if "blocks" in self.sets:
                frequent = self.statistics_.frequent("source", 25), self.statistics_.frequent("target", 25)
                self._phrases = Phrases.of(corpus, frequent)
            if "pairs" in self.sets and self._judge is not None:
                judges = {name: self.aligners_[self._judge_of(name)] for name in self._judges}
                self._habits = {
                    name: LinkHabits.of(corpus, self._training_judgement(name), judge.threshold_)
                    for name, judge in judges.items()
                }
        return self

    @property
    def aligner_names(self) -> tuple[str, ...]:
        """The unsupervised aligners behind the features, by their names."""
        names: tuple[str, ...] = ("hmm",) if "hmm" in self.sets else ()
        names += ("model1", "model2") if "ibm" in self.sets else ()
        return names + tuple(f"{STEM}{n}" for n in self.stems if "stems" in self.sets)

    def _trained(self, text: Bitext, progress: Progress) -> dict[str, HMMAligner]:
        shared = {"lowercase": self.lowercase, "max_length": self.max_length, "threads": self.threads}
        hmm, classical = {**shared, **(self.hmm or {})}, {**shared, "constraint": "none"}  # each direction for itself
        found: dict[str, HMMAligner] = {}
        for name in self.aligner_names:
            if name.startswith(STEM):
                own = cut_words(text, int(name.removeprefix(STEM)))
                found[name] = HMMAligner(**hmm).fit(own, progress=progress)
            else:
                options = hmm if name == "hmm" else classical
                found[name] = ALIGNERS[name](**options).fit(text, progress=progress)
        return found

    def _names_of_extra(self, bitext: Bitext) -> list[tuple[str, ...]]:
        """The columns of each user function, found by calling it on the first pair that has words."""
        self._extra_names = []
        if not self.extra:
            return []
        usable = (bitext.source.ids.lengths > 0) & (bitext.target.ids.lengths > 0)
        usable &= np.maximum(bitext.source.ids.lengths, bitext.target.ids.lengths) <= self.max_length
        if not usable.any():
            raise BitextError("FeatureExtractor: no pair of the labelled text has words to try the extra features on")
        pair = int(np.flatnonzero(usable)[0])
        names: list[tuple[str, ...]] = []
        with_links = self.links
        self.links = ()  # they come with `transform`
        try:
            table, _, _ = self._table(bitext.part(pair, pair + 1), {})
        finally:
            self.links = with_links
        for number, function in enumerate(self.extra):
            found = function(_view(table, 0))
            own = getattr(function, "__name__", "<")
            own = str(number) if own.startswith("<") else own
            names.append(tuple(found) if isinstance(found, Mapping) else (own,))
        flat = [name for group in names for name in group]
        if len(set(flat)) < len(flat):
            raise ParameterError(f"FeatureExtractor: extra features should have names of their own, not {flat}")
        return names

    # --- applying

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the link features, in order; complete once `fit` has seen what user functions give."""
        names: list[str] = ["bias"]
        for name in self._ordered:
            if name == "stems":
                names += stem_columns(self.stems)
            elif name == "trust":
                names += [f"trust_{by}" for by in TRUSTED if by in names]
            else:
                names += COLUMNS[name]
        if self._dictionary is not None:
            names += DICTIONARY
        names += [f"links:{name}" for name in self.links]
        names += [f"extra:{name}" for group in self._extra_names for name in group]
        return tuple(names)

    @property
    def null_names(self) -> tuple[str, ...]:
        """Names of the null features, in order; the same for both sides."""
        return (
            *NULLS, *(HMM_NULLS if "hmm" in self.sets else ()), *(CONSENSUS_NULLS if "stems" in self.sets else ()),
        )  # fmt: skip

    @property
    def lexical_names(self) -> tuple[str, ...]:
        """Names of the indicators: ``pair:<source>|<target>``, ``source:<word>``, ``target:<word>``."""
        if "lexical" not in self.sets:
            return ()
        source, target = (words.types for words in self._frequent)
        n, m = self.lexical_pairs, self.lexical_words
        names = [f"pair:{a}|{b}" for a in source[:n] for b in target[:n]]
        return tuple(names + [f"source:{a}" for a in source[:m]] + [f"target:{b}" for b in target[:m]])

    def transform(self, bitext: BitextLike, links: Mapping[str, Links] | None = None) -> PairFeatures:
        """The features of a text.

        Parameters
        ----------
        bitext
            Any text; anything `as_bitext` takes.
        links : mapping of str to Links
            Other systems' links of this text, under the names given to the constructor.
        """
        if not hasattr(self, "statistics_"):
            raise UsageError("this FeatureExtractor has learnt nothing yet: call fit first")
        given = dict(links or {})
        if set(given) != set(self.links):
            raise UsageError(
                f"FeatureExtractor: links of {', '.join(self.links) or 'nobody'} are features here, "
                f"but those of {', '.join(given) or 'nobody'} were given. Give transform(..., links={{name: links}})"
            )
        if self._extra_names and len(self.extra) != len(self._extra_names):
            raise UsageError(
                "this FeatureExtractor was fitted with functions of the user's own, which cannot be saved: "
                f"give them again as extra=, those that make {', '.join(n for g in self._extra_names for n in g)}"
            )
        bitext = as_bitext(bitext)
        with using_threads(self.threads):
            table, posteriors, lexical = self._table(bitext, given)
            self._add_extra(table)
            consensus = table.out[:, table.columns[CONSENSUS]] if "stems" in self.sets else None
            nulls = table.nulls(posteriors, consensus)
        found = PairFeatures(table.shapes, table.names, table.out, self.null_names, *nulls, lexical, self.lexical_names)
        return replace(found, further=self._further(table, found))

    def only(self, sets: Sequence[str]) -> Self:
        """The same without other sets of parts: what was counted for "blocks" or "pairs" is dropped if not among them.

        Sets of link features have to be the same, since their names depend on each other.
        """
        if {*sets} - {"blocks", "pairs"} != {*self.sets} - {"blocks", "pairs"} or not {*sets} <= {*self.sets}:
            raise UsageError(f"FeatureExtractor: only {', '.join(self.sets)} are there, and only parts can be left out")
        found = copy(self)
        found.sets = tuple(sets)
        found._phrases = self._phrases if "blocks" in sets else None
        found._habits = self._habits if "pairs" in sets else {}
        return found

    def _further(self, table: Table, features: PairFeatures) -> dict[str, PartFeatures]:
        """What aligners with pairs of links or blocks ask for, so that it goes wherever the other features go."""
        found: dict[str, PartFeatures] = {}
        with using_threads(self.threads):
            if "pairs" in self.sets:
                source, target = self._fertility(table, features)
                found |= {"link_pairs": self._link_pairs(table, features)}
                found |= {"source_further": source, "target_further": target}
            if "blocks" in self.sets:  # means over links are left to the aligner, which needs those of few blocks
                found["blocks"] = self._blocks(table, features, averaged=())
        return found

    def _table(
        self, bitext: Bitext, links: Mapping[str, Links]
    ) -> tuple[Table, Posteriors | None, tuple[NDArray[np.int64], NDArray[np.int32]] | None]:
        corpus = Corpus.of(bitext, lowercase=self.lowercase, max_length=self.max_length)
        table = Table(bitext, corpus, self.statistics_, self._known, self.link_names)
        table.out[:, 0] = 1.0
        table.associate(wanted="association" in self.sets)
        for name, fill in (
            ("position", table.place), ("shape", table.compare), ("frequency", table.rate),
            ("context", table.look_around),
        ):  # fmt: skip
            if name in self.sets:
                fill()
        posteriors = self._believe(table)
        if self._dictionary is not None:
            table.translate(self._dictionary)
        for name, row in links.items():
            table.link(name, row)
        lexical = None
        if "lexical" in self.sets:
            lexical = table.lexical(self._frequent[0], self._frequent[1], self.lexical_pairs, self.lexical_words)
        return table, posteriors, lexical

    def _believe(self, table: Table) -> Posteriors | None:
        """Fill what unsupervised aligners say; the posteriors of the HMM, if there is one."""
        known = table.known if self._known is not None else None
        hmm, means = None, list[Floats]()
        for name, aligner in self.aligners_.items():
            text = cut_words(table.bitext, int(name.removeprefix(STEM))) if name.startswith(STEM) else table.bitext
            found = posteriors_of(aligner, text, table.corpus, known)
            if name.startswith(STEM):
                means.append(found.both.mean(axis=1, dtype=np.float32))
                table.rate_links(means[-1], name)
            elif name == "hmm":
                hmm = found
                means.append(found.both.mean(axis=1, dtype=np.float32))
                table.believe(found, aligner.threshold_, "hmm")
            else:
                table.believe(found, aligner.threshold_, f"{name}_mean")
        mean: Floats | None = None
        if means:
            mean = consensus_of(means)
            if "stems" in self.sets:
                table.rate_links(mean, CONSENSUS)
        if "surroundings" in self.sets:
            table.surround(mean)
        if "trust" in self.sets:
            table.trust(mean)
        return hmm

    # --- other parts

    def block_features(
        self,
        bitext: BitextLike,
        features: PairFeatures,
        *,
        max_size: int = LONGEST,
        averaged: Sequence[str] | None = None,
    ) -> PartFeatures:
        """Features of blocks of 2 to `max_size` words with one word; see `isogloss.tasks.align.features.blocks`.

        `features` are what `transform` gave for the same text. Rows of a pair are those of `Blocks` in C order.
        """
        if self._phrases is None:
            raise UsageError('block_features: nothing was counted for blocks: add "blocks" to sets, and fit again')
        with using_threads(self.threads):
            return self._blocks(self._again(bitext, features), features, max_size=max_size, averaged=averaged)

    def _blocks(
        self, table: Table, features: PairFeatures, *, max_size: int = LONGEST, averaged: Sequence[str] | None
    ) -> PartFeatures:
        assert self._phrases is not None
        numbers = table.source.numbers, table.target.numbers
        return block_features(
            self._phrases, table.corpus, numbers, table.inside, features, max_size=max_size, averaged=averaged
        )

    def link_pair_features(self, bitext: BitextLike, features: PairFeatures) -> PartFeatures:
        """Features of pairs of neighbouring links; see `isogloss.tasks.align.features.neighbours`.

        `features` are what `transform` gave for the same text. Rows of a pair are in the order of `neighbour_pairs`.
        """
        with using_threads(self.threads):
            table = self._counted(bitext, features)
            table.associate(wanted=False)
            return self._link_pairs(table, features)

    def _link_pairs(self, table: Table, features: PairFeatures) -> PartFeatures:
        numbers, judges = (table.source.numbers, table.target.numbers), self._habits
        found = {name: self._judgement(features, name) for name in judges}
        return link_pair_features(judges, table.corpus, numbers, table.inside, table.dice, found)

    def fertility_features(self, bitext: BitextLike, features: PairFeatures) -> tuple[PartFeatures, PartFeatures]:
        """Features of a further link of each source word and of each target word, one row a word.

        `features` are what `transform` gave for the same text.
        """
        with using_threads(self.threads):
            return self._fertility(self._counted(bitext, features), features)

    def _fertility(self, table: Table, features: PairFeatures) -> tuple[PartFeatures, PartFeatures]:
        numbers, habits = (table.source.numbers, table.target.numbers), self._habits.get("")
        counts = table.source.counts, table.target.counts
        posterior = None if habits is None else self._judgement(features)
        common = self._fertile if "lexical" in self.sets else ()
        return fertility_features(habits, table.corpus, numbers, table.inside, counts, posterior, common)

    @property
    def _judge(self) -> str | None:
        """The aligner whose posteriors count as links: the HMM, else Model 2, if there is one."""
        return next((name for name in ("hmm", "model2") if name in self.aligners_), None)

    @property
    def _judges(self) -> tuple[str, ...]:
        """Those by whom habits are counted: "", whose posteriors count as links, and versions of Model 2."""
        return ("", *(VERSIONS if "model2" in self.aligners_ else ())) if self._judge is not None else ()

    def _judge_of(self, name: str) -> str:
        """The aligner behind a judge."""
        assert self._judge is not None
        return "model2" if name else self._judge

    def _judgement(self, features: PairFeatures, name: str = "") -> Floats:
        """What a judge says of every cell of a text."""
        own = {"hmm": CONSENSUS if "stems" in self.sets else "hmm", "model2": "model2_mean"}
        wanted = name or own[self._judge_of(name)]
        return np.ascontiguousarray(features.links[:, features.column(wanted)])

    def _training_judgement(self, name: str) -> Floats:
        """The same of every cell of the text that was fitted, by the same arithmetic."""
        both = training_posteriors(self.aligners_[self._judge_of(name)])
        if name:
            return np.ascontiguousarray({**dict(zip(VERSIONS, both.T)), VERSIONS[2]: both[:, 0] * both[:, 1]}[name])
        means = [both.mean(axis=1, dtype=np.float32)]
        if self._judge == "hmm":
            stems = (aligner for other, aligner in self.aligners_.items() if other.startswith(STEM))
            means += [training_posteriors(aligner).mean(axis=1, dtype=np.float32) for aligner in stems]
        return consensus_of(means)

    @property
    def _fertile(self) -> tuple[Vocabulary, ...]:
        """The most frequent words of either side, whose further links have indicators."""
        return tuple(Vocabulary(words.types[: self.fertile_words]) for words in self._frequent)

    def _counted(self, bitext: BitextLike, features: PairFeatures) -> Table:
        if "pairs" not in self.sets:
            raise UsageError('FeatureExtractor: nothing was counted for pairs: add "pairs" to sets, and fit again')
        return self._again(bitext, features)

    def _again(self, bitext: BitextLike, features: PairFeatures) -> Table:
        """The words of a text whose link features are known already."""
        bitext = as_bitext(bitext)
        corpus = Corpus.of(bitext, lowercase=self.lowercase, max_length=self.max_length)
        table = Table(bitext, corpus, self.statistics_, self._known, ())
        if not np.array_equal(table.shapes, features.shapes):
            raise UsageError(
                "FeatureExtractor: these features are of another text; give what transform made of this one"
            )
        return table

    def _add_extra(self, table: Table) -> None:
        """Call the user's functions, pair by pair."""
        for pair in np.flatnonzero(~table.corpus.skipped).tolist() if self.extra else []:
            view = _view(table, pair)
            start, stop = table.corpus.pairs.cell_offsets[pair : pair + 2]
            for function, names in zip(self.extra, self._extra_names, strict=True):
                found = function(view)
                arrays = found if isinstance(found, Mapping) else {names[0]: found}
                if set(arrays) != set(names):
                    raise ParameterError(
                        f"extra feature: pair {pair} has {sorted(arrays)}, the first pair had {sorted(names)}: "
                        "give the same names for every pair"
                    )
                for name, array in arrays.items():
                    values = np.asarray(array, np.float32)
                    if values.shape != view.shape or not np.isfinite(values).all():
                        raise ParameterError(
                            f"extra feature {name!r}: pair {pair} should give finite numbers [{view.shape[0]}, "
                            f"{view.shape[1]}], a row for each source word, not {list(values.shape)}"
                            + ("" if np.isfinite(values).all() else " with NaN or infinity")
                        )
                    table.out[start:stop, table.columns[f"extra:{name}"]] = values.ravel()

    # --- keeping

    @property
    def options_(self) -> dict[str, Any]:
        """The options that can be written down."""
        lists = {"sets": list(self._ordered), "links": list(self.links), "stems": list(self.stems)}
        return super().options_ | lists | {"hmm": dict(self.hmm or {})}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that `transform` needs, as plain arrays for `isogloss.store`; all but the user's functions."""
        if not hasattr(self, "statistics_"):
            raise UsageError("this FeatureExtractor has learnt nothing yet: call fit first")
        return keeping.arrays_of(self)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], *, extra: Sequence[Extra] = (), threads: int | None = None
    ) -> Self:
        """What `arrays` gave. Functions of the user's own have to be given again."""
        return keeping.restored(cls, arrays, extra, threads)


def _view(table: Table, pair: int) -> PairView:
    pairs = table.corpus.pairs
    cells = slice(*pairs.cell_offsets[pair : pair + 2])
    a, b = slice(*pairs.source_offsets[pair : pair + 2]), slice(*pairs.target_offsets[pair : pair + 2])
    shape = (a.stop - a.start, b.stop - b.start)
    block = table.out[cells]
    block.flags.writeable = False
    return PairView(
        pair,
        *table.bitext[pair],
        table.source.numbers[pairs.source_ids[a]],
        table.target.numbers[pairs.target_ids[b]],
        table.source.counts[a],
        table.target.counts[b],
        {name: block[:, k].reshape(shape) for name, k in table.columns.items() if not name.startswith("extra:")},
    )


def _dictionary(given: str | PathLike[str] | Iterable[tuple[Any, ...]]) -> Dictionary:
    """Pairs of single words, folded, by source word."""
    pairs = sorted(
        {
            (fold(source), fold(target))
            for source, target, _ in read_lexicon(given)
            if len(source.split()) == len(target.split()) == 1
        }
    )
    source = Vocabulary(dict.fromkeys(a for a, _ in pairs))
    target = Vocabulary(dict.fromkeys(b for _, b in pairs))
    owner = source.encode(a for a, _ in pairs)
    rows = np.searchsorted(owner, np.arange(len(source) + 1)).astype(np.int64)
    return Dictionary(source, target, rows, target.encode(b for _, b in pairs))
