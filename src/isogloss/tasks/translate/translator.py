"""`Translator`: phrase-based translation, learnt from a bitext."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data import Bitext, Links, Ragged, Text, Vocabulary
from isogloss.data.formats.convert import BitextLike, TextLike, as_bitext, as_links, as_text
from isogloss.data.reading import Reading
from isogloss.data.rows import counted
from isogloss.data.treebank import Treebank
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, ModelError, ParameterError, UsageError
from isogloss.layout import Layout, Numbers, Strings, check, integer, vector
from isogloss.learners.runner import Keeping, check_checkpoint, run
from isogloss.learners.tuning import Tuned
from isogloss.metrics.translation import TranslationScore, bleu_of, score_translations
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.translate import language_model as lm
from isogloss.tasks.translate.language_model import LanguageModel
from isogloss.tasks.translate.learning import CrossFitted, Folding, Kind, sparse_learner, spread_evenly
from isogloss.tasks.translate.lexicon import sure_links
from isogloss.tasks.translate.options import STAGES, TAGGED, TranslatorOptions
from isogloss.tasks.translate.search import BLANKET, LEARNT, Decoder, Derivations, Searching, first_weights
from isogloss.tasks.translate.sparse import MOST_TAGS, Learnt, PhraseTags, Reordering
from isogloss.tasks.translate.table import SCORES, TranslationTable
from isogloss.tasks.translate.tuning import References, tuner

__all__ = ["PhraseStep", "Translation", "Translator"]

Array = NDArray[np.float64]
EVERY, MOST = 20, 1000
"""Without dev, every so many pairs one is held out, and so many at most."""
TOGETHER = 100
"""Sentences that are translated at once, so that memory does not grow with the text."""
SQUARES = 1 << 21
"""The most that the squares of their lengths may add up to, if there are several: a jump leads from word to word."""
LONGEST = 1000
"""Words of the longest sentence that is translated as a whole: time and memory grow with the square."""


class Tags(NamedTuple):
    """A tag for each word of both sides, written as words are."""

    source: Text
    target: Text


class PhraseStep(NamedTuple):
    """A phrase of a translation: words of the source (first, end), what they became, and how they are linked.

    Indices of `links` count words of the whole sentences. `known` is False for a word that was copied.
    """

    first: int
    end: int
    words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    known: bool


@dataclass(frozen=True)
class Translation:
    """A translation with how it was made.

    Parameters
    ----------
    text : str
    score : float
        Weights times features.
    source : tuple of str
    phrases : tuple of PhraseStep
        In the order of the translation.
    features : dict of str to float
        What it comes to in each feature.
    """

    text: str
    score: float
    source: tuple[str, ...] = field(repr=False)
    phrases: tuple[PhraseStep, ...] = field(repr=False)
    features: dict[str, float] = field(repr=False)

    def __str__(self) -> str:
        return self.text

    @property
    def links(self) -> frozenset[tuple[int, int]]:
        """Links between words of the source and of the translation."""
        return frozenset(link for phrase in self.phrases for link in phrase.links)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        phrases = [
            {"source": " ".join(self.source[p.first : p.end]), "target": " ".join(p.words), "first": p.first,
             "end": p.end, "known": p.known}
            for p in self.phrases
        ]  # fmt: skip
        return {"text": self.text, "score": self.score, "phrases": phrases, "features": self.features}


class Translator(TranslatorOptions):
    """Translates sentences phrase by phrase.

    Links between the words of a bitext say which phrases translate which (`extract_phrases`), the target side teaches
    an n-gram language model, and the weights of both, of reordering and of length are tuned on held-out sentences, so
    that what the decoder finds comes near to their translations.

    Parameters
    ----------
    order : int
        Words of the longest n-grams of the language model.
    max_length, least_count, candidates
        Which phrase pairs there are.
    reordering, distortion_limit, orientation
        How phrases may change places.
    beam, pops, table_limit
        How wide the search is.
    iterations, nbest, cap, passes
        How dense weights are tuned.
    features : {"dense", "phrases", "pos", "all"}
        What translations are scored by.
    trainer, update, proposals, rate, dense_rate, epochs, learn_on, feature_count, folds, batch, classes
        How sparse weights are learnt.
    seed : int
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    table_ : TranslationTable
    language_model_ : LanguageModel
    weights_ : dict of str to float
    trace_ : float64[n_rounds]
        BLEU on dev, in percent, under the weights that each round of tuning began with.
    tuning_ : float64[n_rounds]
        BLEU on dev under the weights that each round came to; the best are taken.
    learning_ : float64[n_epochs]
        BLEU on dev after each pass over training sentences; empty without sparse features.
    reachable_ : float or None
        The share of the sentences that sparse weights were learnt from whose references can be reached.
    reading_ : Reading or None

    References
    ----------
    Koehn, Och and Marcu, Statistical Phrase-Based Translation, NAACL 2003. Cherry and Foster, Batch Tuning Strategies
    for Statistical Machine Translation, NAACL 2012.

    Examples
    --------
    >>> from isogloss import samples
    >>> text = samples.bitext("en-de")
    >>> translator = Translator(order=2, iterations=1).fit(text, links=samples.gold("en-de"), dev=text[:10])
    >>> translator.predict(["Yesterday Anna bought three books in Berlin ."])
    ['Gestern hat Anna in Berlin drei Bücher gekauft .']
    """

    _kind: ClassVar[str] = "translate.phrases"
    reachable_: float | None = None
    _sparse: Learnt | None = None
    """What sparse features came to, where there are any."""

    # --- learning

    def fit(
        self,
        bitext: BitextLike,
        dev: BitextLike | None = None,
        *,
        links: Links | None = None,
        monolingual: Text | None = None,
        tags: tuple[TextLike | Treebank, TextLike | Treebank] | None = None,
        progress: Progress | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from a bitext.

        Parameters
        ----------
        bitext : Bitext, or what `as_bitext` takes
        dev : the same, optional
            Sentences to tune the weights on. Without them, every twentieth pair of the bitext is held out for it, about
            a thousand at most; none if nothing is tuned, with ``iterations=0`` and dense features alone. Pairs with
            more than `LONGEST` words on a side are left out of tuning, and of learning sparse weights.
        links : Links, optional
            Between the words of the bitext; otherwise an `HMMAligner` finds them.
        monolingual : Text, optional
            More text of the target language, for the language model.
        tags : pair of Text or Treebank, optional
            The tag of each word of both sides of the bitext, for features by tags: texts of tags, or what a tagger has
            predicted, of which UPOS is taken. Otherwise classes of words, which are learnt from the text.
        checkpoint, resume
            Where learning is kept if it is interrupted, and whether to go on from there; with sparse features, each of
            `STAGES` has a checkpoint of its own beside it.
        """
        self.check_params()
        bitext, progress = as_bitext(bitext), progress or QuietProgress()
        held = as_bitext(dev) if dev is not None else None
        given = None if links is None else sure_links(bitext, as_links(links))
        self._refuse_empty(bitext, "learn from")
        if held is not None and self._tunes:
            held = self._tunable(held)
        tagged = None if tags is None else self._checked_tags(bitext, tags)
        try:
            with using_threads(self.threads):
                texts = _hashed(bitext, held, given, monolingual, tagged)
                keeping = Keeping.of(checkpoint, resume, self.options_, texts)
                self._make_way(keeping)
                self._learn(bitext, held, given, monolingual, tagged, keeping, progress)
        finally:
            progress.finish()
        self.reading_ = Reading.of(bitext.source, bitext.target)
        return self

    def _make_way(self, keeping: Keeping) -> None:
        """Refuse checkpoints of stages of another run before the work; a run that begins anew discards them."""
        for stage in STAGES if self.features != "dense" and keeping.checkpoint is not None else ():
            own = keeping.stage(stage)
            assert own.checkpoint is not None
            check_checkpoint(own.checkpoint, own.fingerprint, resume=own.resume)
            if not own.resume:
                store.discard(own.checkpoint)

    def _learn(
        self,
        bitext: Bitext,
        dev: Bitext | None,
        links: Links | None,
        monolingual: Text | None,
        tags: Tags | None,
        keeping: Keeping,
        progress: Progress,
    ) -> None:
        away = held_out(bitext) if dev is None and self._tunes else np.zeros(len(bitext), bool)
        dev = bitext.take(away) if dev is None else dev
        if links is None:
            from isogloss.tasks.align import HMMAligner

            links = HMMAligner(threads=self.threads).fit_predict(bitext, progress=progress)
        if away.any():
            bitext, links = bitext.take(~away), links.take(~away)
            tags = None if tags is None else Tags(*(side.take(~away) for side in tags))
        self.table_, self.language_model_ = self._models(bitext, links, monolingual, progress)
        self._weights, self._sparse = first_weights(orientation=self.orientation), None
        self.trace_, self.tuning_, self.reachable_, self.learning_ = np.zeros(0), np.zeros(0), None, np.zeros(0)
        if self.iterations:
            self._tune(dev, keeping.stage(STAGES[0]) if self.features != "dense" else keeping, progress)
        if self.features != "dense":
            self._learn_sparse(bitext, dev, links, monolingual, tags, keeping, progress)
            if self.iterations:
                self._tune(dev, keeping.stage(STAGES[2]), progress)

    def _models(
        self, bitext: Bitext, links: Links, monolingual: Text | None, progress: Progress | None = None
    ) -> tuple[TranslationTable, LanguageModel]:
        """What is estimated from a bitext."""
        table = TranslationTable.of(
            bitext, links, max_length=self.max_length, least_count=self.least_count, candidates=self.candidates,
            progress=progress,
        )  # fmt: skip
        return table, _language_model(table, bitext.target, monolingual, self.order)

    def _tune(self, dev: Bitext, keeping: Keeping, progress: Progress) -> None:
        learner = tuner(
            self._decoder, dev, nbest=self.nbest, cap=float(self.cap), passes=self.passes, seed=self.seed
        )  # fmt: skip
        tuned = Tuned(learner, learner.value, "BLEU {:.2f} on dev")
        result = run(
            tuned, tuned.init(self._weights), iterations=self.iterations, should_stop=tuned.is_done, name="Tuning",
            progress=progress, every=None if self.features == "dense" else 1, **keeping.arguments,
        )  # fmt: skip
        self._weights = np.array(result.state.weights)
        self.trace_, self.tuning_ = result.trace, np.array(result.state.scores)

    def _learn_sparse(
        self,
        bitext: Bitext,
        dev: Bitext,
        links: Links,
        monolingual: Text | None,
        tags: Tags | None,
        keeping: Keeping,
        progress: Progress,
    ) -> None:
        """Weights of sparse features, from training sentences that are decoded by what the others teach."""
        decoder = self._decoder

        def make(some: Bitext, between: Links) -> Decoder:
            table, model = self._models(some, between, monolingual)
            return replace(decoder, table=table, language_model=model)

        kind = self._sparse_kind(bitext, tags)
        progress.start("Folds", self.folds)
        search = CrossFitted.of(
            bitext, links, spread_evenly(usable(bitext), self.learn_on), self.folds, make, kind,
            nbest=self.proposals, update=self.update if self.trainer != "risk" else "local", least=self.feature_count,
            told=progress.update,
        )  # fmt: skip
        progress.finish()
        self.reachable_ = float(search.reachable().mean())
        learnt = Folding(decoder, kind, search.index, search.of_moves)
        learner = sparse_learner(
            search, trainer=self.trainer, update=self.update, rate=self.step_length, dense_rate=float(self.dense_rate),
            batch=self.batch, seed=self.seed,
        )  # fmt: skip
        known, references = decoder.sentences(dev.source), References.of(dev.target, decoder.language_model)

        def score(weights: Array) -> float:
            found = learnt.decoder(weights).search(known)
            return 100 * float(bleu_of(references.counts(found).sum(axis=0)))

        tuned = Tuned(learner, score, "BLEU {:.2f} on dev")
        start = np.concatenate([np.zeros(search.index.n_features), self._weights])
        result = run(
            tuned, tuned.init(start), iterations=self.epochs, should_stop=tuned.is_done, name="Learning sparse weights",
            progress=progress, every=1, **keeping.stage(STAGES[1]).arguments,
        )  # fmt: skip
        found = learnt.decoder(np.array(result.state.weights))
        self._weights, self._sparse = found.weights, found.learnt
        self.learning_ = np.array(result.state.scores)

    def _sparse_kind(self, bitext: Bitext, tags: Tags | None) -> Kind:
        """Which sparse features there are, with the tags of phrases and words."""
        if self.features == "phrases":
            return Kind(self.features)
        table, sides = self.table_, []
        for k, (text, names) in enumerate(((bitext.source, table.source), (bitext.target, table.target))):
            ids = names.encode(text.vocabulary)[text.ids.flat].astype(np.int64)
            offsets = text.ids.offsets - text.ids.offsets[0]
            if tags is None:
                marks, n_tags = _classes(ids, offsets, len(names), self.classes)
            else:
                marks, n_tags = np.asarray(tags[k].ids.flat, np.int64), len(tags[k].vocabulary)
            sides.append(PhraseTags.of(ids, offsets, marks, len(names), n_tags, self.max_length))
        reordering = None
        if self.reordering != "monotone":
            reordering = Reordering(sides[0].words, sides[0].n_tags, self.reordering == "swap")
        return Kind(self.features, sides[0], sides[1], reordering)

    def _checked_tags(self, bitext: Bitext, tags: tuple[TextLike | Treebank, TextLike | Treebank]) -> Tags:
        """Tags of both sides, one for each word."""
        if self.features not in TAGGED:
            raise ParameterError(f"Translator: tags say nothing with features={self.features!r}; pos and all need them")
        found = Tags(*(_tags_of(side) for side in tags))
        for side, given, name in zip((bitext.source, bitext.target), found, ("source", "target"), strict=True):
            if len(side) != len(given):
                raise BitextError(
                    f"{given.name}: tags of {len(given)} sentences were given, and the {name} side has {len(side)}. "
                    f"Tag all lines of {side.name}, empty ones too"
                )
            wrong = np.flatnonzero(side.ids.lengths != given.ids.lengths)
            if len(wrong):
                at = int(wrong[0])
                raise BitextError(
                    f"{given.name}, sentence {at + 1}: {counted(int(given.ids.lengths[at]), 'tag')} for "
                    f"{counted(int(side.ids.lengths[at]), 'word')} of the {name} side ({side.name}, line "
                    f"{bitext.line_of(at)}). Give one tag for each word"
                )
        return found

    def tune(self, dev: BitextLike, *, progress: Progress | None = None) -> Self:
        """Find the weights anew on other sentences: those of another domain, or with another seed.

        Phrases, the language model and sparse weights stay as they are.
        """
        _ = self._learnt
        self.check_params()
        held, progress = self._tunable(as_bitext(dev)), progress or QuietProgress()
        before = self._weights, self.trace_, self.tuning_
        start = first_weights(orientation=self.orientation)
        self._weights = start if self._sparse is None else np.append(start, 1.0)
        self.trace_, self.tuning_ = np.zeros(0), np.zeros(0)
        try:
            with using_threads(self.threads):
                if self.iterations:
                    self._tune(held, Keeping(), progress)
        except BaseException:  # stopped on the way: the weights are what they were
            self._weights, self.trace_, self.tuning_ = before
            raise
        finally:
            progress.finish()
        return self

    @property
    def _tunes(self) -> bool:
        """Whether weights are learnt that need other sentences."""
        return self.iterations > 0 or self.features != "dense"

    @staticmethod
    def _refuse_empty(bitext: Bitext, what: str) -> None:
        if not (bitext.cells > 0).any():
            raise BitextError(f"{bitext.source.name}: there is no sentence pair to {what}. Are both sides empty?")

    @classmethod
    def _tunable(cls, dev: Bitext) -> Bitext:
        """The pairs that weights can be tuned on."""
        cls._refuse_empty(dev, "tune on")
        kept = dev.take(usable(dev))
        if not len(kept):
            raise BitextError(
                f"{dev.source.name}: there is no sentence pair to tune on, all have more than {LONGEST:,} words on a "
                "side. Cut them into sentences"
            )
        return kept

    # --- what was learnt

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each feature."""
        return dict(zip(self._names, self._learnt.tolist(), strict=True))

    @property
    def _names(self) -> tuple[str, ...]:
        """The features that have a weight each."""
        return BLANKET if self._sparse is None else (*BLANKET, LEARNT)

    @property
    def _learnt(self) -> Array:
        if "_weights" not in vars(self):
            raise UsageError("Translator: has learnt nothing yet; call fit first, or load a model")
        return self._weights

    @property
    def _decoder(self) -> Decoder:
        weights = self._learnt
        limit = self.distortion_limit if self.reordering == "distance" else 0
        searching = Searching(
            self.beam, self.pops, self.table_limit, limit, self.reordering == "swap", turning=self.orientation
        )  # fmt: skip
        return Decoder(self.table_, self.language_model_, weights, searching, self._sparse)

    # --- applying

    def predict(self, source: TextLike) -> list[str]:
        """The best translation of each sentence, its words with spaces between them."""
        return list(self.predict_parts([as_text(source)]))

    def predict_parts(self, parts: Iterable[Text]) -> Iterator[str]:
        """The same for a text that comes in parts; memory does not grow with it."""
        for part in parts:
            cut, pieces = _cut(part)
            found = (line for _, found, decoder in self._searched([cut], 1) for line in _lines(decoder, found))
            for count in pieces:
                yield " ".join(line for line in islice(found, count) if line)

    def predict_nbest(self, source: TextLike, n: int) -> list[list[Translation]]:
        """The n best different translations of each sentence, the best first; fewer where there are no more.

        A sentence of more than `LONGEST` words is refused.
        """
        return list(self.predict_nbest_parts([as_text(source)], n))

    def predict_nbest_parts(self, parts: Iterable[Text], n: int) -> Iterator[list[Translation]]:
        """The same for a text that comes in parts."""
        if n < 1:
            raise ParameterError(f"Translator: n should be a positive number of translations, not {n!r}")
        for text, found, decoder in self._searched(_checked(parts), n):
            every = self._translations(text, found, decoder)
            for first, last in zip(found.starts[:-1].tolist(), found.starts[1:].tolist(), strict=True):
                yield every[first:last]

    def explain(self, sentence: str | Sequence[str]) -> Translation:
        """The best translation of one sentence with its phrases and what it comes to in each feature."""
        return self.predict_nbest(Text.of([sentence]), 1)[0][0]

    def reachable(self, bitext: BitextLike) -> NDArray[np.bool_]:
        """Which target sides the phrase table can make of their sources, within the limits of reordering."""
        from isogloss.tasks.translate.forced import forced

        pairs = as_bitext(bitext)
        with using_threads(self.threads):
            return np.diff(forced(self._decoder, pairs).starts) > 0

    def score(self, bitext: BitextLike, *, tokenise: str = "none", bootstrap: int = 1000) -> TranslationScore:
        """BLEU and chrF of `predict` against the target side."""
        pairs = as_bitext(bitext)
        references = [" ".join(row) for row in pairs.target]
        return score_translations(self.predict(pairs.source), references, tokenise=tokenise, bootstrap=bootstrap)

    def _searched(self, parts: Iterable[Text], n: int) -> Iterator[tuple[Text, Derivations, Decoder]]:
        decoder = self._decoder
        for part in parts:
            for first, last in _together(part.ids.lengths):
                text = part[first:last]
                with using_threads(self.threads):
                    found = decoder.search(decoder.sentences(text), n)
                yield text, found, decoder

    def _translations(self, text: Text, found: Derivations, decoder: Decoder) -> list[Translation]:
        features, texts = decoder.features(found), decoder.texts(found)
        firsts, ends = found.sentences.option_spans
        made = []
        for k, words in enumerate(texts):
            phrases, at = [], 0
            for option in found.options[found.option_starts[k] : found.option_starts[k + 1]].tolist():
                first, pair = int(firsts[option]), int(found.sentences.pairs[option])
                size = int(found.sentences.target_starts[option + 1] - found.sentences.target_starts[option])
                own = tuple(words.split(" ")[at : at + size])
                inside = self.table_.links_of(pair) if pair >= 0 else ((0, 0),)
                links = tuple((first + i, at + j) for i, j in inside)
                phrases.append(PhraseStep(first, int(ends[option]), own, links, pair >= 0))
                at += size
            named = dict(zip(self._names, features[k].tolist(), strict=True))
            source = text.tokens(int(found.sentence[k]))
            made.append(Translation(words, float(found.scores[k]), source, tuple(phrases), named))
        return made

    # --- keeping

    def _to_saved(self) -> store.Saved:
        weights = self._learnt
        model, table = self.language_model_, self.table_
        source, source_offsets = store.pack_strings(table.source)
        target, target_offsets = store.pack_strings(model.words)
        arrays: dict[str, NDArray[Any]] = {
            "weights": weights, "source": source, "source_offsets": source_offsets, "target": target,
            "target_offsets": target_offsets, **store.prefixed("table.", table.arrays),
            **store.prefixed("language_model.", model.arrays),
        }  # fmt: skip
        meta: dict[str, Any] = {"order": model.order, "trace": self.trace_.tolist(), "tuning": self.tuning_.tolist()}
        if self._sparse is not None:
            arrays |= store.prefixed("sparse.", self._sparse.to_arrays())
            meta["sparse"] = {
                "tags": self._sparse.n_tags, "reachable": self.reachable_, "learning": self.learning_.tolist()
            }  # fmt: skip
        return store.Saved(self._kind, self.options_, arrays, meta | Reading.to_meta(self.reading_))

    @classmethod
    def load(cls, path: str | PathLike[str], *, mapped: bool = False) -> Self:
        """What `save` wrote; `ModelError` names the folder if that cannot be read.

        With `mapped`, the phrase table and the language model stay in their file, and the pages that a text needs are
        read: for models above memory (`isogloss.store.read`).
        """
        saved = store.read(path, kind=cls._kind, mapped=mapped)
        with store.named(path):
            return cls._from_saved(saved)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved translator"):
            made = cls.of_options(saved.options)
            names = check(saved.arrays, _LAYOUT, "the translator")
            source, target = Vocabulary(names["source"]), Vocabulary(names["target"])
            own = store.unprefixed("table.", saved.arrays)
            made.table_ = TranslationTable.from_arrays(source, target, own, len(SCORES))
            order = integer(saved.meta["order"], "order", least=1, most=lm.MOST)
            own = store.unprefixed("language_model.", saved.arrays)
            made.language_model_ = LanguageModel.from_arrays(target, order, own)
            made._weights, made._sparse = names["weights"], None
            made.reachable_, made.learning_ = None, np.zeros(0)
            told = saved.meta.get("sparse")
            if told is not None:
                own = store.unprefixed("sparse.", saved.arrays)
                n_tags = integer(told["tags"], "tags", most=MOST_TAGS - 1)
                made._sparse = Learnt.from_arrays(own, made.table_, n_tags, made.reordering == "swap")
                made.reachable_, made.learning_ = float(told["reachable"]), vector(told["learning"], "learning")
            wanted = len(BLANKET) + (told is not None)
            if len(made._weights) != wanted:
                raise ModelError(f"the translator: there are {len(made._weights)} weights, and {wanted} are needed")
            made.trace_, made.tuning_ = (vector(saved.meta[name], name) for name in ("trace", "tuning"))
            made.reading_ = Reading.from_meta(saved.meta)
        return made


_LAYOUT: Layout = {
    "weights": Numbers("float64", "weights"),
    "source": Strings("source words", distinct=True),
    "target": Strings("target words", distinct=True),
}
"""Arrays of a translator beside those of its table and language model."""


def usable(bitext: Bitext) -> NDArray[np.bool_]:
    """bool[n]: pairs that translations may be compared with, neither side being empty or very long."""
    lengths = [side.ids.lengths for side in (bitext.source, bitext.target)]
    return np.asarray(np.logical_and.reduce([(each > 0) & (each <= LONGEST) for each in lengths]))


def held_out(bitext: Bitext) -> NDArray[np.bool_]:
    """bool[n]: pairs that are held out for tuning."""
    able, away = np.flatnonzero(usable(bitext)), np.zeros(len(bitext), bool)
    n = len(able)
    away[able[np.arange(EVERY - 1, n, max(EVERY, n // MOST))]] = True
    if not away.any() and n > 1:
        away[able[-1]] = True
    if not away.any():
        raise BitextError(
            f"{bitext.source.name}: of so few sentence pairs none can be held out for tuning. Give others for it "
            "(--dev SRC TGT), or leave the first weights as they are (--iterations 0)"
        )
    return away


def _language_model(table: TranslationTable, text: Text, more: Text | None, order: int) -> LanguageModel:
    """One of the target side and of more text; its words begin with those of the table."""
    if more is None:
        return LanguageModel.of(text, order, words=table.target)
    words = Vocabulary(dict.fromkeys([*table.target.types, *more.vocabulary.types]))
    ids = [words.encode(each.vocabulary)[each.ids.flat] for each in (text, more)]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([text.ids.lengths, more.ids.lengths]))])
    table.target = words
    return LanguageModel.of(Text(Ragged(np.concatenate(ids), offsets), words), order)


def _cut(text: Text) -> tuple[Text, list[int]]:
    """A text with sentences of more than `LONGEST` words in pieces, and how many pieces each sentence has."""
    lengths = text.ids.lengths
    pieces = np.maximum(1, -(-lengths // LONGEST))
    if not (pieces > 1).any():
        return text, [1] * len(text)
    sizes = np.concatenate(
        [np.full(n, size // n) + (np.arange(n) < size % n) for size, n in zip(lengths, pieces, strict=True)]
    )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Text(Ragged(np.ascontiguousarray(text.ids.flat), offsets), text.vocabulary), pieces.tolist()


def _together(lengths: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of sentences that are translated at once: at most `TOGETHER`, and fewer of long ones."""
    first, squares = 0, 0
    for k, length in enumerate(lengths.tolist()):
        if k > first and (k - first == TOGETHER or squares + length**2 > SQUARES):
            yield first, k
            first, squares = k, 0
        squares += length**2
    if first < len(lengths):
        yield first, len(lengths)


def _checked(parts: Iterable[Text]) -> Iterator[Text]:
    """Parts of a text, of which no line may be very long."""
    before = 0
    for text in parts:
        long = np.flatnonzero(text.ids.lengths > LONGEST)
        if len(long):
            at = int(long[0])
            raise BitextError(
                f"{text.name}, line {before + at + 1}: {text.ids.lengths[at]:,} words; n-best lists and phrases are of "
                f"sentences of at most {LONGEST:,}. Cut it into sentences"
            )
        yield text
        before += len(text)


def _lines(decoder: Decoder, found: Derivations) -> Iterator[str]:
    """One for each sentence, empty where nothing was found."""
    texts = decoder.texts(found)
    for first, last in zip(found.starts[:-1].tolist(), found.starts[1:].tolist(), strict=True):
        yield texts[first] if first < last else ""


class _Bytes:
    """What a run depends on, for the fingerprint of its checkpoint."""

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def to_bytes(self) -> bytes:
        return self.digest.encode()


def _tags_of(given: TextLike | Treebank) -> Text:
    """Tags as a text; of a treebank, its parts of speech."""
    if not isinstance(given, Treebank):
        return as_text(given)
    return Text.of([given.strings("upos", s) for s in range(len(given))], given.name)


def _classes(ids: NDArray[np.int64], offsets: NDArray[np.int64], n_words: int, n_classes: int) -> tuple[Any, int]:
    """The class of each token, and how many there are."""
    from isogloss.learners.word_classes import brown_classes

    known, numbers = np.unique(brown_classes(ids, offsets, n_words, n_classes), return_inverse=True)
    return np.asarray(numbers, np.int64).reshape(-1)[ids], len(known)


def _hashed(
    bitext: Bitext, dev: Bitext | None, links: Links | None, monolingual: Text | None, tags: Tags | None
) -> list[_Bytes]:
    texts = [bitext.source, bitext.target, *(tags or ())]
    texts += [] if dev is None else [dev.source, dev.target]
    texts += [] if monolingual is None else [monolingual]
    parts: list[Any] = [part for text in texts for part in (text.ids, text.vocabulary)]
    parts += [] if links is None else [links.offsets, links.source, links.target]
    return [_Bytes(store.data_hash(*parts))]
