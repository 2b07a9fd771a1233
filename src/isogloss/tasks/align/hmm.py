"""The aligners people use: `HMMAligner`, and `Model1Aligner` and `Model2Aligner` with the same verbs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss._version import __version__
from isogloss.data import Bitext, Links, Vocabulary
from isogloss.data.formats import BitextLike, as_bitext, as_links
from isogloss.data.reading import Reading
from isogloss.engine.base import Engine, LocalEngine
from isogloss.engine.devices import choose
from isogloss.engine.shards import shards
from isogloss.engine.shelf import Shelf
from isogloss.engine.threads import using_threads
from isogloss.errors import BitextError, ParameterError, UsageError
from isogloss.layout import number
from isogloss.learners.runner import run
from isogloss.metrics import AlignmentScore, best_threshold, score_links
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.align import decode as decoding
from isogloss.tasks.align.corpus import SHARD, Corpus, Encoder, Room, Stay
from isogloss.tasks.align.device import DeviceText, trained
from isogloss.tasks.align.evidence import Evidence
from isogloss.tasks.align.expectation import expect
from isogloss.tasks.align.explain import explain
from isogloss.tasks.align.judged import JudgedText
from isogloss.tasks.align.languages import KnownWords, text_for
from isogloss.tasks.align.lexicon import LexiconEntry, entries_of, lexicon_prior, read_lexicon
from isogloss.tasks.align.memory import room_for, room_on_shelf
from isogloss.tasks.align.model import Model
from isogloss.tasks.align.options import HMMOptions
from isogloss.tasks.align.priors import Spellings
from isogloss.tasks.align.settings import Settings
from isogloss.tasks.align.symmetrise import symmetrise_links
from isogloss.tasks.align.training import Training

__all__ = ["HMMAligner", "Model1Aligner", "Model2Aligner"]


class HMMAligner(HMMOptions):
    """Links the words of a bitext with two HMMs, one for each direction, that are trained to agree.

    Parameters
    ----------
    constraint : {"agreement", "symmetric", "bijective", "none"}
        What training asks of the two directions; agreement, the default, is the fastest and measured best.
    decode_constraint : same, optional
        What decoding asks; by default the same, but "symmetric" after agreement.
    iterations : int, optional
        Of the HMM, five if not given, after three of Model 1.
    threshold : "auto", "points" or float
        Links are cells whose posterior reaches it. "auto" maximises the F-measure that the posteriors promise, "points"
        keeps as many links as Viterbi decoding would, of each direction by itself where `symmetrise` joins their links
        (Ganchev et al. 2008); neither needs labels.
    symmetrise : str
        "posterior" joins the directions by the mean of their posteriors; or a method of
        `isogloss.tasks.align.symmetrise` on the links of each direction, made by `decode` ("posterior" or "viterbi").
    lowercase : bool
        Compare words without case. Links speak of the words as written either way.
    spelling, stems, smoothing, null : float
        Priors; see `Settings`. 0 switches spelling or stems off.
        `null` may be "length": 1 / (m + 1) where m words can be linked to.
    lexicon : path or iterable of (source, target[, weight]), optional
        Word pairs known beforehand; a weight is a pseudo-count, 10 if not given.
    max_length : int
        Pairs with more words on a side are passed over and have no links.
    train_length : int, optional
        Pairs with more words on a side are not learnt from, but have links.
    remember : bool
        What is said of the text of the training, handed to `predict` as the same object. True: what its training came
        to, where each sentence was judged without its own evidence (`decode_leave_out`), which makes better links.
        False: what a saved model says of it, to the bit, as of any other text.
    seed : int
        For form's sake: nothing here is random.
    threads : int, optional
        All cores if not given; the result is the same.
    device : {"auto", "cpu", "cuda"}
        Where `fit` works. "auto" takes a GPU where there is one, torch is installed, and the text has a million source
        words; what the GPU has no kernels for is done on the processor. "cuda" cuts words to stems in one way, unless
        `stem_classes` says otherwise. See docs/gpu.md.
    model1_iterations, model1_constraint, final, null_smoothing, stem_length, stem_classes, leave_out, decode_leave_out,
    dual_search, dual_steps, dual_rate, dual_tolerance
        Seldom of use; see `Settings`.

    Attributes
    ----------
    trace_ : float64[n_iterations]
        Objective per pair: the sum of both directions' log-likelihoods, less what the constraint costs.
    threshold_ : float
        The threshold in use.
    thresholds_ : (float, float)
        Those in use for each direction where `symmetrise` joins their links: twice `threshold_`, but for "points".
    skipped_ : int64[.]
        Pairs of the training text that were passed over.
    reading_ : Reading or None
        The files that it learnt from and how they were read, if it learnt from files.

    Examples
    --------
    >>> from isogloss import samples
    >>> bitext = samples.bitext("en-de")
    >>> links = HMMAligner().fit(bitext).predict(bitext)
    >>> print(links[0])
    0-0 1-1 2-2 3-3 4-4 5-5
    """

    _kind: ClassVar[str] = "align.hmm"
    _name: ClassVar[str] = "hmm"
    supervised: ClassVar[bool] = False
    """Whether gold links are learnt from."""

    _trained_on: tuple[Bitext | None, JudgedText | DeviceText] | None = None
    _apart: tuple[float, float] | None = None

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        if self.decode == "viterbi" and self.symmetrise == "posterior":
            raise ParameterError(
                f"{type(self).__name__}: decode='viterbi' gives links of each direction, without posteriors to join: "
                "choose how to join them, e.g. symmetrise='grow-diag-final-and'"
            )
        if self.final and self._name != "hmm":
            raise ParameterError(
                f"{type(self).__name__}: final=True is for the HMM: here each word is linked by itself"
            )

    # --- learning

    def fit(
        self,
        bitext: BitextLike,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
        progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Learn from a bitext (or anything `as_bitext` takes). `predict` gives its own links for it, see `remember`.

        An `engine` of `isogloss.engine.workers` has other processes do the work, with the same result.
        """
        self.check_params()
        progress = progress or QuietProgress()
        choose(self.device, worth=False)  # says what is missing before anything is read
        bitext = as_bitext(bitext)
        with using_threads(self.threads):
            fine = _by_others(engine)
            text = Encoder.of([bitext], lowercase=self.lowercase, max_length=self.max_length, fine=fine)
            if fine or not self._fit_on_device(bitext, bitext, text, progress, resume=resume):
                keeping = {"checkpoint": checkpoint, "resume": resume}
                self._fit(bitext, bitext, text.corpus(Room()), progress, engine, **keeping)
        return self

    def fit_parts(
        self,
        parts: Iterable[Bitext],
        *,
        memory: int | None = None,
        folder: str | PathLike[str] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
        progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Learn from a text that comes in parts, such as `stream_bitext` makes: the same model as `fit` of the whole.

        Between two iterations the words of the text and what is kept of its posteriors lie in memory as long as there
        is room, then in files; `predict_parts` gives the links.

        Parameters
        ----------
        parts : iterable of Bitext
            Read once.
        memory : int, optional
            Bytes that this process may have; without it, everything lies in memory. If the table of word pairs does not
            fit, pairs of few occurrences share what is known of their stems.
        folder : path, optional
            Where the files are to lie while they are needed; by default the folder of the system for such files.
        engine : Engine, optional
            Where the work is done; by default in this process. The result is the same.
        """
        self.check_params()
        progress = progress or QuietProgress()
        choose(self.device, worth=False)
        parts = iter(parts)
        first = next(parts, None)
        if first is None:
            raise BitextError("fit_parts: the text has no parts, so there is nothing to learn from")
        shelf, room = Shelf(), Room()
        if memory is not None:
            shelf = Shelf(room_on_shelf(memory), None if folder is None else str(folder))
            room = room_for(memory, self._wanted)
        with using_threads(self.threads):
            fine = _by_others(engine)
            text = Encoder.of(
                chain([first], parts), lowercase=self.lowercase, max_length=self.max_length, shelf=shelf, fine=fine
            )
            if fine or not self._fit_on_device(None, first, text, progress, resume=resume, memory=memory):
                keeping = {"checkpoint": checkpoint, "resume": resume}
                self._fit(None, first, text.corpus(room), progress, engine, **keeping)
        return self

    def _wanted(self, source: Vocabulary, target: Vocabulary) -> Stay:
        """Says of entries which have a prior of their own, and so something to say however rare they are."""
        spellings = Spellings(source, target) if self.spelling else None
        lexicon = self._own_lexicon()

        def stay(rows: NDArray[np.int64], columns: NDArray[np.int32]) -> NDArray[np.bool_]:
            found = np.zeros(len(columns), bool)
            if spellings is not None:
                found |= spellings.prior(rows, columns) > 0
            if lexicon is not None:
                found |= lexicon_prior(lexicon, _Entries(source, target, rows, columns), self.lowercase) > 0
            return found

        return stay

    def _own_lexicon(self) -> list[tuple[str, str, float]] | None:
        """The user's pairs of words; what can be read once is read once, because `fit` may be called again."""
        if isinstance(self._lexicon, Iterator):
            self._lexicon = list(self._lexicon)
        return None if self._lexicon is None else read_lexicon(self._lexicon)

    def _fit(
        self,
        bitext: Bitext | None,
        first: Bitext,
        corpus: Corpus,
        progress: Progress,
        engine: Engine | None = None,
        **keeping: Any,
    ) -> None:
        """Learn from a corpus, which is that of `bitext` if it was there as a whole; `first` are its first pairs."""
        if corpus.skipped.all():
            raise BitextError(_nothing_to_learn(first, len(corpus), self.max_length))
        if self.train_length is not None and not corpus.within(self.train_length):
            raise BitextError(_nothing_to_learn(first, len(corpus), self.train_length))
        known = self._own_lexicon()
        lexicon = None if known is None else lexicon_prior(known, corpus, self.lowercase)
        self._settings = self._asked(corpus.n_source_words, len(corpus.source_words), len(corpus.target_words))
        self.reading_ = Reading.of(first.source, first.target)
        if corpus.least > 1:
            progress.note(
                f"word pairs of fewer than {corpus.least} occurrences share what is known of their stems, because the "
                f"table would take more memory: {len(corpus.columns):,} are left of "
                f"{len(corpus.columns) + int(corpus.dropped[0].sum()):,}"
            )
        if _by_others(engine) and keeping.get("checkpoint") is not None:
            raise UsageError("checkpoint: a run on workers is kept in their folder, and taken up from there")
        training = Training(corpus, self._settings, lexicon=lexicon, on_shard=progress.within, engine=engine)
        self._learn(bitext, training, progress, **keeping)

    def _learn(self, bitext: Bitext | None, training: Training, progress: Progress, **keeping: Any) -> None:
        corpus, settings = training.corpus, self._settings
        fingerprint: dict[str, Any] | None = None
        if keeping.get("checkpoint") is not None:
            fingerprint = {"options": settings.as_dict(), "data": corpus.hash(), "isogloss": __version__}
            fingerprint["least occurrences of a pair of words"] = corpus.least
        result = run(
            training, training.begin(), iterations=training.iterations, progress=progress, name="Training",
            fingerprint=fingerprint, every=None, **keeping,
        )  # fmt: skip
        model, own = training.estimate(result.state)
        text = JudgedText(corpus, model, own, settings, result.state.evidence, training.stems)
        self.trace_ = result.trace
        del result
        training.forget()  # the counts
        progress.start("Decoding", 1)
        self._in_use = self._threshold(text, progress, training.engine)
        progress.finish()
        self._model: Model = model.pruned()
        self._trained_on = bitext, text
        self.skipped_ = np.flatnonzero(corpus.skipped)
        self._bitext_hash: str | None = None

    def _fit_on_device(
        self, bitext: Bitext | None, first: Bitext, text: Encoder, progress: Progress, **limits: Any
    ) -> bool:
        """Learn on a GPU; False where there is none or it cannot do it, and it was not asked for by name."""
        there = trained(self, text, progress, **limits)
        if there is None:
            return False
        training = there.training
        self._settings, self.reading_ = there.settings, Reading.of(first.source, first.target)
        self.trace_, self.skipped_ = np.array(training.trace), np.flatnonzero(training.skipped)
        self.threshold_ = self._threshold(there, progress, LocalEngine())
        self._model = training.fetch_model(least=1e-6)
        self._trained_on = bitext, there
        self._bitext_hash = None
        return True

    def update(self, bitext: BitextLike, *, progress: Progress | None = None) -> Self:
        """Continue on more text: what was learnt before counts as if its text were still there."""
        bitext = self._checked(bitext)
        progress = progress or QuietProgress()
        with using_threads(self.threads):
            corpus = self._corpus(bitext)
            if corpus.skipped.all():
                return self
            before = self._model
            base = before.fitted_to(corpus, self._settings, learning=True)
            training = Training(corpus, self._settings, base=base, on_shard=progress.within)
            self._learn(bitext, training, progress)
            self._model = before.merged(self._model)
        return self

    def _threshold(self, text: JudgedText | DeviceText, progress: Progress, engine: Engine) -> float:
        asked = self._settings.threshold
        self._apart = None
        if not isinstance(asked, str):
            text.decode(float(asked), progress.within, engine)
            return float(asked)
        bins = text.decode(decoding.LEAST, progress.within, engine)
        if asked == "auto":
            return decoding.expected_f_threshold(bins)
        linked = np.zeros(2, np.int64)
        for shard in range(len(text.corpus.shards)):
            linked += [(path >= 0).sum() for path in self._best_paths(text.pairs(shard), text.parameters)]
        if self._settings.symmetrise != "posterior" and self._settings.decode == "posterior":
            self._apart = self._points_apart(text, linked)
        return decoding.points_threshold(bins, (int(linked.sum()) + 1) // 2)

    def _points_apart(self, text: JudgedText | DeviceText, linked: NDArray[np.int64]) -> tuple[float, float]:
        """The thresholds that keep so many links in each direction."""
        names: tuple[decoding.Direction, ...] = ("forward", "backward")
        bins = np.zeros((2, 2 * decoding.UNIT + 1), np.int64)
        for shard in range(len(text.corpus.shards)):
            _, evidence = text.shard(shard)
            bins += [decoding.spectrum(evidence.posterior, name) for name in names]
        forward, backward = (decoding.points_threshold(bins[k], int(linked[k])) for k in (0, 1))
        return forward, backward

    @property
    def threshold_(self) -> float:
        """The threshold in use."""
        return self._in_use

    @threshold_.setter
    def threshold_(self, threshold: float) -> None:
        self._in_use, self._apart = threshold, None

    @property
    def thresholds_(self) -> tuple[float, float]:
        """The thresholds in use for each direction by itself."""
        return self._apart or (self.threshold_, self.threshold_)

    # --- applying

    def predict(self, bitext: BitextLike) -> Links:
        """Links with their posteriors; pairs that are passed over have none."""
        return self.links_of(self._checked(bitext))

    def links_of(self, bitext: Bitext) -> Links:
        """`predict` for those who have looked at the text themselves: nothing is said of one that looks strange."""
        with using_threads(self.threads):
            if (text := self._known(bitext)) is not None:
                return decoding.joined(self._links_of(text), bitext)
            return decoding.joined(self._links_of_new(bitext), bitext)

    def predict_parts(self) -> Iterator[Links]:
        """Links of the text of the training, one part of it after the other."""
        self._check_fitted()
        if self._trained_on is None:
            raise UsageError("predict_parts is for the text of the training, which a saved model has not. Call predict")
        with using_threads(self.threads):
            yield from self._links_of(self._trained_on[1])

    def fit_predict(self, bitext: BitextLike, **options: Any) -> Links:
        """`fit`, then `predict` of the same text."""
        bitext = as_bitext(bitext)
        return self.fit(bitext, **options).predict(bitext)

    def predict_proba(self, bitext: BitextLike) -> list[NDArray[np.float32]]:
        """The posterior of every cell, float32[n_source, n_target] for each pair; empty where a pair is passed over."""
        bitext = self._checked(bitext)
        with using_threads(self.threads):
            corpus, _, evidence = self._evidence(bitext)
        mean = evidence.posterior.sum(axis=1, dtype=np.float32) / np.float32(2 * decoding.UNIT)
        offsets = corpus.pairs.cell_offsets
        return [mean[offsets[k] : offsets[k + 1]].reshape(corpus.shape(k)) for k in range(len(corpus))]

    def predict_directions(self, bitext: BitextLike) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
        """The posterior of every cell in each direction, forward and backward; `predict_proba` is their mean.

        Both are lists of float32[n_source, n_target], empty where a pair is passed over.
        """
        bitext = self._checked(bitext)
        with using_threads(self.threads):
            corpus, _, evidence = self._evidence(bitext)
        offsets = corpus.pairs.cell_offsets
        unit = np.float32(1.0 / decoding.UNIT)
        forward, backward = (
            [
                evidence.posterior[offsets[k] : offsets[k + 1], direction].reshape(corpus.shape(k)) * unit
                for k in range(len(corpus))
            ]
            for direction in (0, 1)
        )
        return forward, backward

    def score(self, bitext: BitextLike, gold: Links) -> AlignmentScore:
        """Precision, recall and AER of `predict` against gold links."""
        gold = as_links(gold)
        return score_links(self.predict(bitext), gold)

    def pair_scores(self, bitext: BitextLike) -> NDArray[np.float64]:
        """How much better each side is explained by the other than by its words' frequencies: float64[n_pairs].

        The gain in log-probability a word, mean of both directions; above 0 for translations, near or below it for
        sentences that have nothing to do with each other. Pairs of the training text are judged without their own
        evidence. Not a number for pairs that are passed over.
        """
        bitext = self._checked(bitext)
        with using_threads(self.threads):
            if (text := self._known(bitext)) is not None:
                corpus, model, scores = text.corpus, text.model, text.scores
            else:
                corpus, model, evidence = self._evidence(bitext)
                scores = evidence.scores
        gains = np.zeros(len(corpus))
        pairs = corpus.whole
        sides = (
            (pairs.target_ids, pairs.target_offsets, model.target_counts, scores[:, 0]),
            (pairs.source_ids, pairs.source_offsets, model.source_counts, scores[:, 1]),
        )
        for ids, offsets, counts, score in sides:
            known = (
                self._model.source_counts.sum() if counts is model.source_counts else self._model.target_counts.sum()
            )
            alone = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(0.5, counts) / max(1, known))[ids])])
            words = np.maximum(1, np.diff(offsets))
            gains += 0.5 * (score - (alone[offsets[1:]] - alone[offsets[:-1]])) / words
        gains[corpus.skipped] = np.nan
        return gains

    def explain(
        self, bitext: BitextLike, pair: int, *, source: int | None = None, target: int | None = None
    ) -> dict[str, Any]:
        """The best candidates for one word, and why it was linked or left alone; plain data."""
        bitext = self._checked(bitext)
        if (source is None) == (target is None):
            raise UsageError("explain: name one word, by source=position or target=position")
        if not 0 <= pair < len(bitext):
            raise UsageError(f"explain: there is no pair {pair}; pairs are numbered 0 to {len(bitext) - 1}")
        with using_threads(self.threads):
            corpus, model, evidence = self._evidence(bitext)
        return explain(bitext, corpus, model, evidence, self.threshold_, pair, source=source, target=target)

    def lexicon(self, *, least: float = 0.01) -> Iterator[LexiconEntry]:
        """Word pairs and their probabilities in both directions, those that reach `least` in one of them."""
        self._check_fitted()
        return entries_of(self._model, least)

    def tune_threshold(self, bitext: BitextLike, gold: Links) -> float:
        """Set the threshold to the one with the lowest AER on a small gold set; returns it."""
        bitext = self._checked(bitext)
        with using_threads(self.threads):
            corpus, _, evidence = self._evidence(bitext)
            all_links = decoding.links_above(corpus.pairs, evidence.posterior, 1e-4, bitext=bitext)
        self.threshold_ = float(min(1.0, max(1e-4, best_threshold(all_links, gold))))
        return self.threshold_

    # --- keeping

    @property
    def options_(self) -> dict[str, Any]:
        """Every option as it was used, or would be for a small text."""
        return (self._settings if hasattr(self, "_settings") else self._asked()).as_dict()

    def _to_saved(self) -> store.Saved:
        self._check_fitted()
        meta = {"threshold": self.threshold_, "data": self.data_hash_, **Reading.to_meta(self.reading_)}
        if self._apart is not None:
            meta["thresholds"] = list(self._apart)
        return store.Saved(self._kind, self.options_, self._model.arrays(), meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved aligner"):
            options = {"model": cls._name, "stem_classes": 1, **saved.options}  # older models knew one way to cut
            if (model := options.pop("model")) != cls._name:
                raise ParameterError(f"model should be {cls._name!r}, not {model!r}")
            aligner = cls.of_options(options)
            aligner._settings = aligner._asked()
            aligner.threshold_ = number(saved.meta["threshold"], "threshold", least=0.0, most=1.0)
            if "thresholds" in saved.meta:
                forward, backward = (number(x, "threshold", least=0.0, most=1.0) for x in saved.meta["thresholds"])
                aligner._apart = forward, backward
            aligner._model = Model.from_arrays(saved.arrays)
            aligner.reading_ = Reading.from_meta(saved.meta)
        aligner._bitext_hash = str(saved.meta.get("data", ""))
        aligner.trace_, aligner.skipped_ = np.zeros(0), np.zeros(0, np.int64)
        return aligner

    # --- inside

    def _asked(self, n_words: int = 0, *n_types: int) -> Settings:
        """What the options come to on a text of so many source words, and so many different words of each side."""
        types = {"n_types": float(np.sqrt(float(n_types[0]) * n_types[1]))} if n_types else {}
        return Settings.of(self._name, self.get_params(), n_words, **types)

    def _corpus(self, bitext: Bitext) -> Corpus:
        return Corpus.of(bitext, lowercase=self._settings.lowercase, max_length=self._settings.max_length)

    def _check_fitted(self) -> None:
        if not hasattr(self, "_model"):
            raise self._has_not_learnt

    def _checked(self, given: object) -> Bitext:
        """A text to work on; one that looks unlike that of the training is said to."""
        self._check_fitted()
        return given if isinstance(given, Bitext) and self._known(given) is not None else text_for(self, given)

    def _known(self, given: Bitext) -> JudgedText | DeviceText | None:
        """The text of the training, if something is that and to be judged as that."""
        if self.remember and self._trained_on is not None and given is self._trained_on[0]:
            return self._trained_on[1]
        return None

    @property
    def known_words_(self) -> tuple[KnownWords, KnownWords]:
        """The words of source and target, and how often they occurred."""
        model = self._model
        return KnownWords(model.source_words, model.source_counts), KnownWords(model.target_words, model.target_counts)

    def _evidence(self, bitext: Bitext) -> tuple[Corpus, Model, Evidence]:
        """Posteriors of a text: those of the training, see `remember`, or else from the model as it stands."""
        self._check_fitted()
        if (text := self._known(bitext)) is not None:
            return text.corpus, text.model, text.evidence
        from isogloss.tasks.align._numba.expect import no_evidence

        corpus = self._corpus(bitext)
        model = self._model.fitted_to(corpus, self._settings)
        evidence = Evidence.of(corpus.pairs)
        settings = self._settings
        expect(
            corpus.pairs, model.parameters(settings), settings, settings.model, settings.decode_constraint,
            no_evidence(corpus.pairs), evidence, leave_out=0.0, learn=False,
        )  # fmt: skip
        return corpus, model, evidence

    def _best_paths(self, pairs: Any, parameters: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        from isogloss.tasks.align._numba.expect import MODELS, best_paths

        forward = np.full(len(pairs.target_ids), -1, np.int32)
        backward = np.full(len(pairs.source_ids), -1, np.int32)
        best_paths(
            MODELS[self._settings.model], pairs, parameters, 0, len(pairs.cell_offsets) - 1, self._settings.max_length,
            forward, backward,
        )  # fmt: skip
        return forward, backward

    def _links_of(self, text: JudgedText | DeviceText) -> Iterator[Links]:
        """Links of the text of the training, shard by shard."""
        if self._settings.symmetrise == "posterior":
            yield from text.links(self.threshold_)
            return
        for shard in range(len(text.corpus.shards)):
            yield self._links(*text.shard(shard), text.parameters)

    def _links_of_new(self, bitext: Bitext) -> Iterator[Links]:
        """Links of another text, a part at a time: a sentence has the same links in whatever company it comes."""
        for start, stop in shards(bitext.cells, limit=SHARD):
            corpus, model, evidence = self._evidence(bitext.part(start, stop))
            yield self._links(corpus.pairs, evidence, model.parameters(self._settings))

    def _links(self, pairs: Any, evidence: Evidence, parameters: Any) -> Links:
        settings = self._settings
        if settings.symmetrise == "posterior":
            return decoding.links_above(pairs, evidence.posterior, self.threshold_)
        if settings.decode == "viterbi":
            forward, backward = decoding.links_of_paths(pairs, *self._best_paths(pairs, parameters))
        else:
            names: tuple[decoding.Direction, ...] = ("forward", "backward")
            forward, backward = (
                decoding.links_above(pairs, evidence.posterior, threshold, name)
                for threshold, name in zip(self.thresholds_, names, strict=True)
            )
        shapes = np.stack([np.diff(pairs.source_offsets), np.diff(pairs.target_offsets)], axis=1)
        joined = symmetrise_links(forward, backward, shapes, settings.symmetrise)
        return replace(joined, probability=decoding.probabilities(joined, pairs, evidence.posterior))

    @property
    def data_hash_(self) -> str:
        """SHA-256 of the words that it learnt from."""
        if self._bitext_hash is None:
            self._bitext_hash = self._trained_on[1].hash() if self._trained_on is not None else ""
        return self._bitext_hash


class _Entries(NamedTuple):
    """A part of a table."""

    source_words: Vocabulary
    target_words: Vocabulary
    rows: NDArray[np.int64]
    columns: NDArray[np.int32]


class Model1Aligner(HMMAligner):
    """IBM Model 1: every word chooses its partner by translation alone."""

    _kind = "align.model1"
    _name = "model1"


class Model2Aligner(HMMAligner):
    """IBM Model 2 with a diagonal: translation, and distance from the diagonal of the sentence pair.

    The distortion is that of Liang et al. 2006: one weight for each distance up to five from the place that the lengths
    suggest, and one beyond.
    """

    _kind = "align.model2"
    _name = "model2"


def _by_others(engine: Engine | None) -> bool:
    """Whether other processes do the work."""
    return engine is not None and not isinstance(engine, LocalEngine)


def _nothing_to_learn(bitext: Bitext, n_pairs: int, max_length: int) -> str:
    name = f"{bitext.source.name}, {bitext.target.name}"
    if n_pairs == 0:
        return f"{name}: the text is empty, so there is nothing to learn from"
    return (
        f"{name}: none of the {n_pairs} pairs can be used: each has an empty side or more than {max_length} words. "
        "Are the files one sentence a line?"
    )
