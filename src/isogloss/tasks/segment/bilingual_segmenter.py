"""`BilingualSegmenter`: words cut into morphemes that come from the words of a translation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import layout, store
from isogloss.data.bitext import Bitext, Text
from isogloss.data.formats.convert import as_bitext, as_links, as_segmentation
from isogloss.data.graphemes import graphemes
from isogloss.data.links import Links
from isogloss.data.ragged import Ragged
from isogloss.data.reading import Reading
from isogloss.data.segmentation import MARK, Morphemes, Segmentation
from isogloss.engine.threads import using_threads
from isogloss.errors import SegmentationError
from isogloss.learners.runner import Keeping
from isogloss.metrics.alignment import AlignmentScore, score_links
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.segment.bilingual import BilingualModel, BilingualSettings, Judged
from isogloss.tasks.segment.distortion import N_FEATURES
from isogloss.tasks.segment.morphemes import LABELS, STEM, MorphemeModel, marks_of
from isogloss.tasks.segment.options import LINKED, STAGES, BilingualSegmenterOptions
from isogloss.tasks.segment.pairs import SentencePairs
from isogloss.tasks.segment.segmenter import Learnt, Segmenter, _cuts, _uncut
from isogloss.tasks.segment.types import WordTypes, letters_of

__all__ = ["BilingualSegmenter", "PairPosteriors"]

FIRST = 3
"""Iterations with all positions equally probable."""


class PairPosteriors(NamedTuple):
    """What is believed of sentence pairs."""

    borders: list[NDArray[np.float64]]
    """For each target word, the probability of a border after each of its letters (graphemes) but the last."""
    links: list[NDArray[np.float32]]
    """For each pair, [n_source, n_target]: how many morphemes of a target word are expected to come from a source word,
    1 at most."""


class BilingualSegmenter(BilingualSegmenterOptions):
    r"""Cuts the words of a target language into morphemes, and aligns these with the words of a translation [1]_.

    A semi-Markov model whose states are a type of morphemes and a position in the source, or none:

    .. math:: p(\mu, \tau, a \mid e) \propto \prod_i P(\mu_i \mid e_{a_i}, \tau_i)\, P(\tau_i \mid \tau_{i-1}, b_{i-1})
        \, P(b_i \mid \tau_i, b_{i-1}, b_{i-2})\, P(a_i \mid a_{i-1}, b_{i-1})\, e^{-|\mu_i|^{lp}}

    It is learnt by EM, from where a model of words alone (`Segmenter`) is. Links between words are those of their
    morphemes. The translation may be cut into morphemes as well.

    Parameters
    ----------
    model, length_penalty, rounds, frequencies, base_power, leave_out, shortest_stem, longest_affix, prefixes, suffixes
        What is learnt of words alone, as in `Segmenter`. With ``model="up"`` and ``distortion="uniform"`` it is the
        tokeniser of Chung and Gildea [2]_, in which every morpheme comes from any source word alike.
    distortion : "learnt" or "uniform"
        Whether positions depend on the one before: a log-linear model of the distance, inside words and across borders.
    passes : int
        Iterations of EM over sentence pairs, after three with uniform positions.
    source_weight : float
        Pseudo-counts of the morphemes of a type below those that come from a source word.
    least : float
        Morphemes that the model of words alone finds less probable in a word are not looked at.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_iterations]
        log Z of all pairs in each iteration.
    segmenter_ : Segmenter
        Cuts words without a translation, by what was learnt of morphemes with it.

    References
    ----------
    .. [1] Naradowsky and Toutanova, Unsupervised bilingual morpheme segmentation and alignment with context-rich hidden
       semi-Markov models, ACL 2011.
    .. [2] Chung and Gildea, Unsupervised tokenization for machine translation, EMNLP 2009.

    Examples
    --------
    >>> stems = {"talo": "house", "auto": "car", "koira": "dog", "kala": "fish"}
    >>> pairs = [(f"{end} {word}", stem + suffix) for stem, word in stems.items()
    ...          for suffix, end in (("", "a"), ("ssa", "in"), ("lle", "to"), ("sta", "from"))]
    >>> segmenter = BilingualSegmenter(length_penalty=1.4).fit(Bitext.of(pairs))
    >>> new = Bitext.of([("in fish", "kalassa"), ("from dog", "koirasta")])
    >>> [line[0] for line in segmenter.predict(new)], [str(one) for one in segmenter.links(new)]
    ([('kala', 'ssa'), ('koira', 'sta')], ['0-0 1-0', '0-0 1-0'])
    """

    _kind: ClassVar[str] = "segment.bilingual"
    _saved_as: ClassVar[str] = "the saved segmenter"

    # --- learning

    def fit(
        self,
        bitext: Bitext,
        gold: Segmentation | None = None,
        progress: Progress | None = None,
        *,
        source_morphemes: Segmentation | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from sentence pairs.

        Parameters
        ----------
        bitext : Bitext
            The target side is what is cut.
        gold : Segmentation, optional
            Target words that people have cut: their boundaries are kept.
        progress : Progress, optional
        source_morphemes : Segmentation, optional
            The source side cut into morphemes, which are then what target morphemes come from.
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far. What is learnt of words alone has one beside it.
        resume : bool
            Go on from there.
        """
        self.check_params()
        bitext, gold = as_bitext(bitext), None if gold is None else as_segmentation(gold)
        text, progress = bitext.target, progress or QuietProgress()
        if not text.n_words:
            raise SegmentationError(f"{text.name}: there are no words to learn from")
        given = [_uncut(bitext.source), _uncut(text), gold, source_morphemes]
        keeping = Keeping.of(checkpoint, resume, self.options_, given)
        alone = Segmenter(**self._of_words(), gold_as="constraints", threads=self.threads)
        place = keeping.stage(STAGES[0]).checkpoint
        try:
            alone.fit(text, gold, progress, checkpoint=place, resume=resume and place is not None)
            with using_threads(self.threads):
                self._fitted = self._of_pairs(alone, bitext, gold, source_morphemes, progress, keeping)
        finally:
            progress.finish()
        self._cuts_source = source_morphemes is not None
        self.trace_ = self._fitted.trace
        self.reading_ = Reading.of(text, frequent=True)
        return self

    def _of_words(self) -> dict[str, Any]:
        """The options of `Segmenter`."""
        return {name: value for name, value in self.options_.items() if name in Segmenter().options_}

    def _of_pairs(
        self, alone: Segmenter, bitext: Bitext, gold: Segmentation | None, morphemes: Segmentation | None,
        progress: Progress, keeping: Keeping,
    ) -> BilingualModel:  # fmt: skip
        model = alone._learnt.morphemes
        words, numbers = _different(bitext.target)
        counts = np.bincount(numbers, minlength=len(words))
        types = WordTypes.of(words, WordTypes.weighed(counts, self.frequencies), alphabet=model.alphabet)
        marks = None
        if gold is not None:
            cuts = _cuts(gold)
            marks = marks_of(types, [cuts.get(word) for word in words], model.settings.longest)
        vocabulary: dict[str, int] = {}
        source, owners = _units(bitext.source, morphemes)
        for own in source:
            for unit in own:
                vocabulary.setdefault(unit, len(vocabulary))
        settings = BilingualSettings(
            self.passes, FIRST, self.distortion, float(self.source_weight), leave_out=self.leave_out,
            least=float(self.least),
        )  # fmt: skip
        return BilingualModel.fit(
            types, _pairs(bitext, numbers, source, owners, vocabulary), list(vocabulary), model, settings, marks=marks,
            progress=progress, keeping=keeping.arguments | {"every": None},
        )  # fmt: skip

    # --- predicting

    def predict(self, bitext: Bitext, source_morphemes: Segmentation | None = None) -> Segmentation:
        """The morphemes of each word of the target side, and their types, in the light of the source."""
        bitext = as_bitext(bitext)
        found: dict[tuple[Morphemes, Morphemes], int] = {}
        chosen: list[int] = []
        typed = self._learnt.words.settings.typed
        letters = [graphemes(word) for word in bitext.target.vocabulary]
        tokens = iter(bitext.target.ids.flat.tolist())
        for judged in self._judged(bitext, source_morphemes):
            for cut in judged.cuts:
                own, rows = letters[next(tokens)], cut.tolist()
                way = (
                    tuple("".join(own[begin:end]) for begin, end, _ in rows),
                    tuple(LABELS[label if typed else STEM] for _, _, label in rows),
                )
                chosen.append(found.setdefault(way, len(found)))
        return Segmentation(
            bitext.target, [one for one, _ in found], np.array(chosen, np.int32), [labels for _, labels in found]
        )

    def predict_proba(self, bitext: Bitext, source_morphemes: Segmentation | None = None) -> PairPosteriors:
        """How probable borders in words are, and links between words."""
        borders: list[NDArray[np.float64]] = []
        links: list[NDArray[np.float32]] = []
        for judged in self._judged(as_bitext(bitext), source_morphemes):
            borders += list(judged.boundaries)
            links += [grid.astype(np.float32) for grid in judged.links]
        return PairPosteriors(borders, links)

    def links(
        self, bitext: Bitext, source_morphemes: Segmentation | None = None, *, threshold: float = LINKED
    ) -> Links:
        """Links between words: where more morphemes than the threshold are expected to come from a source word."""
        bitext = as_bitext(bitext)
        grids = self.predict_proba(bitext, source_morphemes).links
        return Links.above(grids, threshold, bitext)

    def score(self, bitext: Bitext, gold: Links, source_morphemes: Segmentation | None = None) -> AlignmentScore:
        """Alignment error rate, precision and recall of links between words, in percent.

        For borders in words, give ``predict(bitext)`` and gold to `isogloss.score_segmentation`.
        """
        return score_links(self.links(bitext, source_morphemes), as_links(gold))

    def _judged(self, bitext: Bitext, morphemes: Segmentation | None) -> Sequence[Judged]:
        model = self._learnt
        if (morphemes is not None) is not self._cuts_source and bitext.source.n_words:
            what = "morphemes of the source" if self._cuts_source else "source words as they are"
            raise SegmentationError(f"this segmenter has learnt from {what}. Give the source likewise")
        words, numbers = _different(bitext.target)
        types = WordTypes.of(words, alphabet=model.words.alphabet)
        known = {word: number for number, word in enumerate(model.vocabulary)}
        with using_threads(self.threads):
            pairs = _pairs(bitext, numbers, *_units(bitext.source, morphemes), known)
            return list(model.judged(types, pairs))

    @property
    def _learnt(self) -> BilingualModel:
        if "_fitted" not in vars(self):
            raise self._has_not_learnt
        return self._fitted

    @property
    def segmenter_(self) -> Segmenter:
        """Cuts words without a translation, by what was learnt of morphemes with it."""
        made = Segmenter(**self._of_words(), gold_as="constraints", threads=self.threads)
        made._fitted, made.trace_, made.reading_ = Learnt(self._learnt.words), self.trace_, self.reading_
        return made

    @property
    def n_translations_(self) -> int:
        """Pairs of a morpheme and a source word that say more than the morpheme alone."""
        return len(self._learnt.units)

    @property
    def length_penalty_(self) -> float:
        """The length penalty: as given, or as chosen by words that people have cut."""
        return self._learnt.words.settings.length_penalty

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays, own = learnt.words.to_saved()
        found = store.prefixed("morphemes.", arrays)
        found["vocabulary"], found["vocabulary_offsets"] = store.pack_strings(list(learnt.vocabulary))
        found |= {name: getattr(learnt, name) for name in ("first", "units", "entries", "jumps")}
        found["shares"] = learnt.shares.reshape(-1, learnt.words.settings.n_labels)
        meta = {
            "morphemes": own, "trace": self.trace_.tolist(), "threshold": learnt.threshold,
            "cuts_source": self._cuts_source, **Reading.to_meta(self.reading_),
        }  # fmt: skip
        return store.Saved(self._kind, self.options_, found, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        meta = saved.meta
        with store.reading(cls._saved_as):
            made = cls.of_options(saved.options)
            words = MorphemeModel.from_saved(store.unprefixed("morphemes.", saved.arrays), meta["morphemes"])
            if words.settings.longest != made.longest:
                raise ValueError("pieces and morphemes differ in how long they may be")
            arrays = {name: array for name, array in saved.arrays.items() if not name.startswith("morphemes.")}
            n_units = len(words.substrings) * words.settings.n_labels
            own = layout.check(arrays, _layout(words.settings.n_labels, n_units), "the morphemes of source words")
            if not (np.diff(own["first"]) >= 0).all() or own["first"][0] or own["first"][-1] != len(own["units"]):
                raise ValueError("the entries of source words are not where they should be")
            settings = BilingualSettings(
                made.passes, FIRST, made.distortion, float(made.source_weight), leave_out=made.leave_out,
                least=float(made.least),
            )  # fmt: skip
            trace = layout.vector(meta["trace"], "trace")
            made._fitted = BilingualModel(
                settings, words, tuple(own["vocabulary"]), own["first"], own["units"], own["entries"],
                own["shares"].ravel(), own["jumps"],
                layout.number(meta["threshold"], "threshold", least=0, most=1), trace,
            )  # fmt: skip
            if not isinstance(meta["cuts_source"], bool):
                raise ValueError("cuts_source should be true or false")
            made._cuts_source, made.trace_, made.reading_ = meta["cuts_source"], trace, Reading.from_meta(meta)
        return made


def _layout(k: int, n_units: int) -> layout.Layout:
    """The arrays of a model of sentence pairs, beside those of its words."""
    numbers = layout.Numbers
    return {
        "vocabulary": layout.Strings("v", distinct=True),
        "first": numbers("int64", "v + 2", least=0),
        "units": numbers("int32", "n", least=0, below=n_units),
        "entries": numbers("float64", "n", logs=True),
        "shares": numbers("float64", ("v + 1", k), logs=True),
        "jumps": numbers("float64", N_FEATURES),
    }


def _different(text: Text) -> tuple[list[str], NDArray[np.int64]]:
    """The different words of a text in the letters of `WordTypes`, and which of them each word is."""
    found: Counter[str] = Counter()
    numbers: dict[str, int] = {}
    of_vocabulary = np.zeros(len(text.vocabulary), np.int64)
    used = np.unique(text.ids.flat).tolist() if text.n_words else []
    for number in used:
        word = "".join(letters_of(text.vocabulary[number]))
        found[word] += 1
        of_vocabulary[number] = numbers.setdefault(word, len(numbers))
    return list(numbers), of_vocabulary[text.ids.flat]


def _units(source: Text, morphemes: Segmentation | None) -> tuple[list[list[str]], list[list[int]]]:
    """The units of each source sentence in small letters, words or morphemes, and the word that each belongs to."""
    if morphemes is None:
        units = [[word.lower() for word in source.tokens(s)] for s in range(len(source))]
        return units, [list(range(len(own))) for own in units]
    cut = as_segmentation(morphemes)
    if len(cut) != len(source) or not np.array_equal(cut.text.ids.lengths, source.ids.lengths):
        raise SegmentationError(f"{cut.text.name}: these are not the words of {source.name}. Give its lines, cut")
    units, owners = [], []
    for line in cut:
        units.append([(MARK if at else "") + one.lower() for own in line for at, one in enumerate(own)])
        owners.append([word for word, own in enumerate(line) for _ in own])
    return units, owners


def _pairs(
    bitext: Bitext, numbers: NDArray[np.int64], source: Sequence[Sequence[str]], owners: Sequence[Sequence[int]],
    vocabulary: dict[str, int],
) -> SentencePairs:  # fmt: skip
    """Sentence pairs as numbers; units that are not in the vocabulary have −1."""
    ids = bitext.target.ids
    rows = Ragged.of([[vocabulary.get(unit, -1) for unit in own] for own in source], np.int64)
    lengths = np.asarray(bitext.source.ids.lengths, np.int64)
    return SentencePairs(Ragged(numbers, ids.offsets - ids.offsets[0]), rows, Ragged.of(owners, np.int64), lengths)
