"""`SegmentedAligner`: words are linked by themselves and by their morphemes, for languages with many word forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data import Bitext, Links
from isogloss.data.formats import BitextLike, as_bitext, as_links
from isogloss.data.graphemes import graphemes
from isogloss.errors import ParameterError, UsageError
from isogloss.layout import number
from isogloss.learners.runner import Keeping
from isogloss.metrics import AlignmentScore, best_threshold, score_links
from isogloss.progress import Progress, QuietProgress
from isogloss.tasks.align import decode as decoding
from isogloss.tasks.align.hmm import HMMAligner
from isogloss.tasks.align.languages import KnownWords, text_for
from isogloss.tasks.align.lexicon import LexiconEntry
from isogloss.tasks.align.morphemes import CutText, averaged, cut_text, links_of_words
from isogloss.tasks.align.options import MOST_WORDS, SEGMENT_STAGES, SegmentedOptions
from isogloss.tasks.segment import Segmenter

__all__ = ["SegmentedAligner"]

LEAST = 0.002
"""Links of words or of morphemes that are less probable are not looked at."""
MORPHEMES = 2
"""Sentences may have so many times as many morphemes as words; those with more are linked by their words alone."""
_HELD = ("words", "morphemes", "source", "target")
"""What a saved model carries along."""
TOP = 5
"""Candidates that `explain` shows."""


class _CutBitext(NamedTuple):
    """Both sides of a text in morphemes."""

    source: CutText
    target: CutText
    bitext: Bitext

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[n_pairs]: morphemes of the longer side."""
        return np.maximum(self.source.text.ids.lengths, self.target.text.ids.lengths)


class SegmentedAligner(SegmentedOptions):
    r"""Links the words of a bitext with two aligners: one sees words, the other their morphemes.

    The words of one side or of both are cut by a `Segmenter` that learns from that side of the text, or by one that is
    given. An `HMMAligner` links words, another one morphemes; the probability of a link of words is

    .. math:: (1 - w)\, p(i, j) + w \min\Big(1, \sum_{k \in i} \sum_{l \in j} q(k, l)\Big),

    with p of the first, q of the second and the morphemes k and l of the words i and j [1]_. Words with several
    morphemes can so be linked to several words, such as a noun with its case ending to a preposition and a noun.

    Parameters
    ----------
    segment : {"both", "source", "target"}
        The sides whose words are cut.
    cut_length : int
        Words of fewer letters are not cut.
    cut_count : int
        Words that occur more often are not cut: what they are linked to is known well enough.
    morpheme_weight : float
        How much links of morphemes count, w above. With 1, links of words are those of their morphemes alone.
    threshold : "auto" or float
        As for `HMMAligner`; "auto" maximises the F-measure that the probabilities above promise. "points" is refused.
    symmetrise, decode : str
        Refused but for "posterior".

    All other options are those of `HMMAligner`, for both aligners.

    Attributes
    ----------
    words_, morphemes_ : HMMAligner
        The aligners. That of words has `trace_` and the lexicon.
    segmenters_ : (Segmenter or None, Segmenter or None)
        What cuts the words of source and target.
    threshold_ : float
        The threshold in use.

    References
    ----------
    .. [1] Naradowsky and Toutanova, Unsupervised bilingual morpheme segmentation and alignment with context-rich hidden
       semi-Markov models, ACL 2011, align morphemes and score the words that their links imply. We differ: words are
       cut before, and links of words have a say.

    Examples
    --------
    >>> from isogloss import samples
    >>> bitext = samples.bitext("en-de")
    >>> links = SegmentedAligner(segment="target").fit(bitext).predict(bitext)
    >>> print(links[0])
    0-0 1-1 2-2 3-3 4-4 5-5
    """

    _kind: ClassVar[str] = "align.segmented"
    supervised: ClassVar[bool] = False
    """Whether gold links are learnt from."""

    _trained_on: tuple[Bitext, _CutBitext] | None = None

    def check_params(self) -> None:
        """`ParameterError` for an option that makes no sense."""
        super().check_params()
        wanted = {"symmetrise": "posterior", "decode": "posterior", "threshold": "auto"}
        for name, usual in wanted.items():
            value = getattr(self, name)
            if isinstance(value, str) and value != usual:
                also = " or a number" if name == "threshold" else ""
                raise ParameterError(
                    f"SegmentedAligner: {name} should be {usual!r}{also}, not {value!r}: links are chosen by the "
                    "probabilities of two aligners together"
                )

    # --- learning

    def fit(
        self,
        bitext: BitextLike,
        *,
        source_segmenter: Segmenter | None = None,
        target_segmenter: Segmenter | None = None,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from a bitext (or anything `as_bitext` takes).

        Parameters
        ----------
        bitext : Bitext
        source_segmenter, target_segmenter : Segmenter, optional
            What cuts the words of a side that is cut; without it, one is learnt from that side.
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; the stages before the last have theirs beside it
            (`SEGMENT_STAGES`).
        resume : bool
            Go on from there.
        progress : Progress, optional
        """
        self.check_params()
        progress = progress or QuietProgress()
        bitext = as_bitext(bitext)
        given = source_segmenter, target_segmenter
        for one, side in zip(given, ("source", "target"), strict=True):
            if one is not None and not isinstance(one, Segmenter):
                raise ParameterError(f"SegmentedAligner: {side}_segmenter should be a Segmenter, not {one!r:.60}")
            if one is not None and self.segment not in (side, "both"):
                raise ParameterError(
                    f"SegmentedAligner: {side}_segmenter says nothing with segment={self.segment!r}. Leave it out, or "
                    f"take segment={side!r} or 'both'"
                )
        stages = Keeping(checkpoint, resume)
        for stage in map(stages.stage, SEGMENT_STAGES):
            if stage.checkpoint is not None and not resume:
                store.discard(stage.checkpoint)  # of an earlier run, perhaps of another text
        words, morphemes = self._aligners()
        words.fit(bitext, progress=progress, **_place(stages.stage(SEGMENT_STAGES[2])))
        found: list[Segmenter | None] = []
        for text, one, side in zip((bitext.source, bitext.target), given, SEGMENT_STAGES, strict=False):
            if one is None and self.segment in (side, "both"):
                one = Segmenter(threads=self.threads)
                one.fit(text, progress=progress, **_place(stages.stage(side)))
            found.append(one)
        self.words_, self.segmenters_, self.reading_ = words, (found[0], found[1]), words.reading_
        cut = self._cut(bitext)
        self.morphemes_ = morphemes.fit(cut.bitext, progress=progress, **_place(stages))
        self._trained_on = bitext, cut
        self._find_threshold()
        return self

    def fit_predict(self, bitext: BitextLike, **options: Any) -> Links:
        """`fit`, then `predict` of the same text."""
        bitext = as_bitext(bitext)
        return self.fit(bitext, **options).predict(bitext)

    def update(self, bitext: BitextLike, *, progress: Progress | None = None) -> Self:
        """Continue on more text: what was learnt before counts as if its text were still there."""
        bitext = self._checked(bitext)
        sizes = np.stack([bitext.source.ids.lengths, bitext.target.ids.lengths])
        if not ((sizes > 0) & (sizes <= self.max_length)).all(axis=0).any():
            return self
        self._spread_threads()
        cut = self._cut(bitext)
        self.words_.update(bitext, progress=progress)
        self.morphemes_.update(cut.bitext, progress=progress)
        self._trained_on = bitext, cut
        self._find_threshold()
        return self

    def _find_threshold(self) -> None:
        """The threshold, as given, or as the probabilities of the text of the training have it."""
        assert self._trained_on is not None
        if isinstance(self.threshold, str):
            chances = self._linked(*self._trained_on).probability
            assert chances is not None
            self.threshold_ = decoding.expected_f_threshold(decoding.spectrum_of(chances))
        else:
            self.threshold_ = float(self.threshold)

    def _aligners(self) -> tuple[HMMAligner, HMMAligner]:
        """Those of words and of morphemes, with all links that have a say."""
        if isinstance(self._lexicon, Iterator):
            self._lexicon = list(self._lexicon)
        own = {name: value for name, value in self.get_params().items() if name in HMMAligner._options}
        own["threshold"] = LEAST
        longer = {
            name: min(MOST_WORDS, MORPHEMES * own[name])
            for name in ("max_length", "train_length")
            if own[name] is not None
        }
        return HMMAligner(**own), HMMAligner(**own | longer)

    # --- applying

    def predict(self, bitext: BitextLike) -> Links:
        """Links of words with their probabilities; pairs that are passed over have none."""
        return decoding.links_reaching(self._posteriors(bitext), self.threshold_)

    def predict_proba(self, bitext: BitextLike) -> list[NDArray[np.float32]]:
        """The probability of every link, float32[n_source, n_target] for each pair; empty where a pair is passed over.

        Links that both aligners find less probable than 0.002 have 0.
        """
        bitext = self._checked(bitext)
        found = self._posteriors(bitext)
        assert found.probability is not None
        sizes = np.stack([bitext.source.ids.lengths, bitext.target.ids.lengths])
        sizes[:, (sizes == 0).any(axis=0) | (sizes > self.max_length).any(axis=0)] = 0
        grids = [np.zeros((n, m), np.float32) for n, m in sizes.T.tolist()]
        for k, grid in enumerate(grids):
            own = slice(*found.offsets[k : k + 2])
            grid[found.source[own], found.target[own]] = found.probability[own]
        return grids

    def score(self, bitext: BitextLike, gold: Links) -> AlignmentScore:
        """Precision, recall and AER of `predict` against gold links."""
        gold = as_links(gold)
        return score_links(self.predict(bitext), gold)

    def pair_scores(self, bitext: BitextLike) -> NDArray[np.float64]:
        """How well each pair is explained, by the aligner of words; see `HMMAligner.pair_scores`."""
        self._check_fitted()
        self._spread_threads()
        return self.words_.pair_scores(bitext)

    def lexicon(self, *, least: float = 0.01) -> Iterator[LexiconEntry]:
        """Word pairs and their probabilities in both directions, of the aligner of words."""
        self._check_fitted()
        return self.words_.lexicon(least=least)

    def tune_threshold(self, bitext: BitextLike, gold: Links) -> float:
        """Set the threshold to the one with the lowest AER on a small gold set; returns it."""
        found = self._posteriors(bitext)
        self.threshold_ = float(min(1.0, max(LEAST, best_threshold(found, gold))))
        return self.threshold_

    def explain(
        self, bitext: BitextLike, pair: int, *, source: int | None = None, target: int | None = None
    ) -> dict[str, Any]:
        """The best candidates for one word, with their morphemes and what each aligner says; plain data."""
        bitext = self._checked(bitext)
        if (source is None) == (target is None):
            raise UsageError("explain: name one word, by source=position or target=position")
        if not 0 <= pair < len(bitext):
            raise UsageError(f"explain: there is no pair {pair}; pairs are numbered 0 to {len(bitext) - 1}")
        side, position = (0, source) if source is not None else (1, target)
        assert position is not None
        here = bitext[pair]
        if not 0 <= position < len(here[side]):
            raise UsageError(f"explain: pair {pair} has no {('source', 'target')[side]} word {position}")
        self._spread_threads()
        cut = self._cut_of(bitext)
        both = self._both(bitext, cut)
        found = self._mixed(*both, bitext, cut)[pair]
        rows = [one[pair].probability for one in both]
        sides = cut[:2]
        candidates: list[dict[str, Any]] = []
        for cell, p in found.probability.items():
            if cell[side] == position:
                other = cell[1 - side]
                candidates.append({
                    "position": other,
                    "word": here[1 - side][other],
                    "morphemes": list(sides[1 - side].morphemes(pair, other)),
                    "posterior": round(p, 4),
                    "by_words": round(rows[0].get(cell, 0.0), 4),
                    "by_morphemes": round(rows[1].get(cell, 0.0), 4),
                    "linked": bool(decoding.reaches(np.array([p], np.float32), self.threshold_)[0]),
                })  # fmt: skip
        candidates.sort(key=lambda one: (-one["posterior"], one["position"]))
        word = here[side][position]
        answer = {
            "pair": pair, "side": ("source", "target")[side], "position": position, "word": word,
            "morphemes": list(sides[side].morphemes(pair, position)), "candidates": candidates[:TOP],
        }  # fmt: skip
        return answer | {"reason": _reason(word, candidates, self.threshold_)}

    # --- keeping

    @property
    def known_words_(self) -> tuple[KnownWords, KnownWords]:
        """The words of source and target, and how often they occurred."""
        return self.words_.known_words_

    @property
    def trace_(self) -> NDArray[np.float64]:
        """Objective of the aligner of words; `morphemes_.trace_` is that of morphemes."""
        return self.words_.trace_

    @property
    def skipped_(self) -> NDArray[np.int64]:
        """Pairs of the training text that were passed over."""
        return self.words_.skipped_

    @property
    def data_hash_(self) -> str:
        """SHA-256 of the words that it learnt from."""
        return self.words_.data_hash_

    def _to_saved(self) -> store.Saved:
        self._check_fitted()
        arrays: dict[str, NDArray[Any]] = {}
        held: dict[str, Any] = {}
        for name, model in zip(_HELD, (self.words_, self.morphemes_, *self.segmenters_), strict=True):
            own, held[name] = store.hold(name, model)
            arrays |= own
        return store.Saved(self._kind, self.options_, arrays, {"threshold": self.threshold_, "models": held})

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        with store.reading("the saved aligner"):
            made = cls.of_options(saved.options)
            made.threshold_ = number(saved.meta["threshold"], "threshold", least=0.0, most=1.0)
            found: list[Any] = []
            for name, classes in zip(_HELD, (HMMAligner, HMMAligner, Segmenter, Segmenter), strict=True):
                about = saved.meta["models"][name]
                found.append(None if about is None else store.held(name, saved.arrays, about, classes))
            made.words_, made.morphemes_ = found[:2]
            made.reading_ = made.words_.reading_
            made.segmenters_ = found[2], found[3]
            for one, side in zip(made.segmenters_, ("source", "target"), strict=True):
                if (one is not None) != (made.segment in (side, "both")):
                    raise ValueError(f"segment is {made.segment!r}, which does not go with its segmenters")
            made._limit()
        return made

    def _limit(self) -> None:
        """Have both aligners pass over the pairs that `max_length` says."""
        aligners = self._aligners()
        for own, fresh in zip((self.words_, self.morphemes_), aligners, strict=True):
            own.max_length = fresh.max_length
            own._settings = replace(own._settings, max_length=fresh.max_length)

    # --- inside

    def _posteriors(self, bitext: BitextLike) -> Links:
        """All links of words that have a probability."""
        bitext = self._checked(bitext)
        self._spread_threads()
        return self._linked(bitext, self._cut_of(bitext))

    def _linked(self, bitext: Bitext, cut: _CutBitext) -> Links:
        return self._mixed(*self._both(bitext, cut), bitext, cut)

    def _both(self, bitext: Bitext, cut: _CutBitext) -> tuple[Links, Links]:
        """Links of words as each of the aligners has them."""
        found = self.morphemes_.links_of(cut.bitext)
        return self.words_.links_of(bitext), links_of_words(found, cut.source, cut.target, bitext)

    def _mixed(self, words: Links, morphemes: Links, bitext: Bitext, cut: _CutBitext) -> Links:
        weight = np.where(cut.lengths > self.morphemes_.max_length, 0.0, float(self.morpheme_weight))
        return decoding.in_units(averaged(words, morphemes, weight, bitext))

    def _cut_of(self, bitext: Bitext) -> _CutBitext:
        """A text in morphemes; that of the training is there."""
        if self._trained_on is not None and bitext is self._trained_on[0]:
            return self._trained_on[1]
        return self._cut(bitext)

    def _cut(self, bitext: Bitext) -> _CutBitext:
        sizes = np.maximum(bitext.source.ids.lengths, bitext.target.ids.lengths)
        sides = [
            cut_text(text, one, sizes <= self.max_length, may_cut=partial(self._may_cut, known))
            for text, one, known in zip(
                (bitext.source, bitext.target), self.segmenters_, self.known_words_, strict=True
            )
        ]
        made = Bitext(sides[0].text, sides[1].text, bitext.first_line, bitext.line_numbers)
        return _CutBitext(sides[0], sides[1], made)

    def _may_cut(self, known: KnownWords, words: list[str]) -> NDArray[np.bool_]:
        """Which words are neither short nor frequent: bool[n_words]."""
        found = np.array([len(graphemes(word)) >= self.cut_length for word in words], np.bool_)
        forms = [word.lower() for word in words] if self.lowercase else words
        found &= np.append(known.counts, 0)[known.words.encode(forms)] <= self.cut_count
        return found

    def _spread_threads(self) -> None:
        for one in (self.words_, self.morphemes_, *self.segmenters_):
            if one is not None:
                one.threads = self.threads

    def _check_fitted(self) -> None:
        if not hasattr(self, "morphemes_"):
            raise self._has_not_learnt

    def _checked(self, given: object) -> Bitext:
        """A text to work on; one that looks unlike that of the training is said to."""
        self._check_fitted()
        if self._trained_on is not None and given is self._trained_on[0]:
            return self._trained_on[0]
        return text_for(self, given)


def _place(keeping: Keeping) -> dict[str, Any]:
    """Where a stage keeps what it has learnt; it has a fingerprint of its own."""
    return {"checkpoint": keeping.checkpoint, "resume": keeping.resume}


def _reason(word: str, candidates: list[dict[str, Any]], threshold: float) -> str:
    if not candidates:
        return f"{word} has no link: no word of the other side is probable"
    best = candidates[0]
    said = f"words alone give {best['by_words']:.2f}, morphemes {best['by_morphemes']:.2f}"
    if best["linked"]:
        return f"{word} is linked to {best['word']}: {best['posterior']:.2f} reaches {threshold:.2f}; {said}"
    below = f"its best candidate {best['word']} has {best['posterior']:.2f}, below {threshold:.2f}"
    return f"{word} has no link: {below}; {said}"
