"""`Segmenter`: words cut into morphemes, learnt from text alone, or with some words that people have cut."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import store
from isogloss.data.bitext import Text
from isogloss.data.formats.convert import as_segmentation, as_text
from isogloss.data.formats.files import IsoglossWarning
from isogloss.data.graphemes import graphemes
from isogloss.data.reading import Reading
from isogloss.data.rows import counted
from isogloss.data.segmentation import Morphemes, Segmentation
from isogloss.engine.threads import using_threads
from isogloss.errors import ParameterError, SegmentationError, UsageError
from isogloss.layout import vector
from isogloss.learners.loglinear import Likelihood
from isogloss.learners.optimisers import Lbfgs
from isogloss.learners.runner import Keeping, check_checkpoint, run
from isogloss.metrics.segmentation import SegmentationScore, score_segmentation
from isogloss.progress import Progress, QuietProgress
from isogloss.structures.semimarkov import Segments
from isogloss.tasks.segment.cuts import FittedCuts, border_posteriors, joined, segments_of
from isogloss.tasks.segment.morphemes import USUAL, MorphemeModel, choose_penalty, marks_of
from isogloss.tasks.segment.options import STAGES, SegmenterOptions
from isogloss.tasks.segment.rewrites import FittedRewrites
from isogloss.tasks.segment.seen import TextKnowledge, seen_words
from isogloss.tasks.segment.submodels import LABELS, STEM, MorphemeSettings
from isogloss.tasks.segment.types import WordTypes, letters_of

__all__ = ["Segmenter"]

TOLERANCE = 1e-5
"""Learning ends when the likelihood changes by less than this part of it."""
MANY = 1000
"""Words cut by people from which on pieces are seen with more of what stands around them."""
TRIED = 4
"""Ways to cut a word, at least, of which each is turned into morphemes by rules before the best is taken."""
FEW = 1000
"""Words that are cut by which a length penalty is chosen, at most."""
TRUSTED = 5.0
"""How much more a word counts whose boundaries are known."""
LETTERS = 1 << 14
"""Letters of the words whose spans are in memory together, times the number of ways to cut them that are wanted."""


class Learnt(NamedTuple):
    """What a segmenter has learnt: of text, and of words that were cut by people, if there were any."""

    morphemes: MorphemeModel
    text: TextKnowledge | None = None
    cuts: FittedCuts | None = None
    rewrites: FittedRewrites | None = None
    around: bool = False
    """Whether pieces are seen with more of what stands around them."""


class Analysis(NamedTuple):
    """One way to cut a word."""

    morphemes: Morphemes
    labels: Morphemes
    probability: float


class Segmenter(SegmenterOptions):
    r"""Cuts words into morphemes.

    Without words that people have cut, a `MorphemeModel` of the text: prefixes, stems and suffixes, learnt by EM [1]_.
    With them, a semi-Markov conditional random field over letters [2]_,

    .. math:: p(y \mid x) \propto \exp \sum_{(b, e) \in y} \Big(\sum_a w[a(b)] + \sum_a v[a(b, e)]\Big),

    whose attributes are letters around each border, pieces as a whole, how frequent these are in the text, and what
    the model of the text believes. Where morphemes of gold are spelt otherwise than the pieces of their words, such as
    happy in happily, rules are learnt as well, and which of them applies to a piece.

    Parameters
    ----------
    model : "full", "hmmp", "hmmp-basic" or "up"
        What is learnt of words that nobody has cut.
    length_penalty : float, optional
        A morpheme of n letters weighs exp(−n^length_penalty). If not given, 1.3 or, with gold, that of seven by which
        most boundaries of gold are found (F1; of up to 1,000 words, by up to 5,000 words of the text).
    rounds : int
        Iterations of EM.
    frequencies : "types", "log" or "tokens"
        How much a word of the text counts that occurs n times: 1, 1 + log₂ n or n.
    base_power, leave_out, shortest_stem, longest_affix
        How the model of the text differs from that of [1]_; see `isogloss.tasks.segment.submodels.MorphemeSettings`.
    prefixes, suffixes : int
        Sizes of lists of affixes; 0 of both for none.
    gold_as : "features" or "constraints"
        Whether the random field learns from gold, or EM keeps its boundaries.
    longest : int
        The most letters of a piece. A piece that is as long goes on: longer ones are put together of several.
    l2 : float
        Penalty on the squares of weights, ½ l2 ‖w‖² beside the log-likelihood of all words that were cut.
    iterations : int
        The most steps of L-BFGS.
    min_count : int
        Attributes that are met less often are left out.
    rewrites : int
        The most rules for morphemes that are spelt otherwise; 0 for pieces alone.
    threads : int, optional
        All cores if not given; the result is the same.

    Attributes
    ----------
    trace_ : float64[n_steps]
        Loss of a word in each step; without gold, the objective of EM.
    length_penalty_ : float
        The length penalty of the model of the text, given or chosen.

    References
    ----------
    .. [1] Naradowsky and Toutanova, Unsupervised bilingual morpheme segmentation and alignment with context-rich hidden
       semi-Markov models, ACL 2011.
    .. [2] Sarawagi and Cohen, Semi-Markov conditional random fields for information extraction, NIPS 2004; Ruokolainen
       et al., Painless semi-supervised morphological segmentation using conditional random fields, EACL 2014.

    Examples
    --------
    >>> gold = Segmentation.of([(stem + end, [stem, end]) for stem in ("walk", "talk", "call") for end in ("s", "ed")])
    >>> segmenter = Segmenter().fit(Text.of(["jump jumps jumped walks talked", "calls walked"]), gold)
    >>> segmenter.predict(Text.of(["jumps jumped"]))[0]
    (('jump', 's'), ('jump', 'ed'))
    """

    _kind: ClassVar[str] = "segment.morphemes"
    _saved_as: ClassVar[str] = "the saved segmenter"

    # --- learning

    def fit(
        self,
        text: Text | Segmentation,
        gold: Segmentation | None = None,
        progress: Progress | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from text, and from words that were cut by people.

        Parameters
        ----------
        text : Text
            Words or sentences. Of a `Segmentation`, the words alone.
        gold : Segmentation, optional
            Words or sentences with their morphemes; the words need not be in the text, and are learnt from with it.
        progress : Progress, optional
        checkpoint : path, optional
            Where Ctrl-C leaves what has been learnt so far; see `isogloss.learners.runner.run`. With gold, the stages
            before and after the cuts (`STAGES`) have theirs beside it.
        resume : bool
            Go on from there.
        """
        self.check_params()
        text, gold = as_words(text), None if gold is None else as_segmentation(gold)
        progress = progress or QuietProgress()
        if not text.n_words and (gold is None or not gold.n_words):
            raise SegmentationError(f"{text.name}: there are no words to learn from")
        if gold is not None and not gold.n_words:
            raise SegmentationError(f"{gold.name}: there are no words with morphemes. Leave it out, or give others")
        if gold is not None:
            _warn_of_strange(gold)
        keeping = Keeping.of(checkpoint, resume, self.options_, [_uncut(text), gold])
        try:
            with using_threads(self.threads):
                further = gold is not None and self.gold_as == "features"
                if further:
                    _make_way(keeping)
                learnt = self._of_text(text, gold, progress, keeping.stage(STAGES[0]) if further else keeping)
                trace = learnt.morphemes.trace
                if gold is not None and further:
                    learnt, trace = self._of_gold(learnt, text, gold, progress, keeping)
        finally:
            progress.finish()
        self._fitted, self.trace_ = learnt, np.asarray(trace, np.float64)
        self.reading_ = Reading.of(text, frequent=True)
        return self

    def _of_text(self, text: Text, gold: Segmentation | None, progress: Progress, keeping: Keeping) -> Learnt:
        """What there is to learn of words that nobody has cut."""
        counts: Counter[str] = Counter()
        for one in [text] if gold is None else [text, gold.text]:
            often = np.bincount(one.ids.flat, minlength=len(one.vocabulary)).tolist() if one.n_words else []
            for word, many in zip(one.vocabulary, often, strict=False):
                if many:
                    counts["".join(letters_of(word))] += many
        types = WordTypes.of(counts, WordTypes.weighed(list(counts.values()), self.frequencies))
        settings = MorphemeSettings(
            self.model, USUAL if self.length_penalty is None else float(self.length_penalty), self.rounds,
            longest=self.longest,
            base_power=float(self.base_power), leave_out=self.leave_out, shortest_stem=self.shortest_stem,
            longest_affix=self.longest_affix, n_prefixes=self.prefixes, n_suffixes=self.suffixes,
        )  # fmt: skip
        known = None
        if gold is not None:
            cuts = _cuts(gold)
            if self.length_penalty is None and cuts:
                listed = list(cuts)[:: -(-len(cuts) // FEW)]
                few = WordTypes.of(listed, alphabet=types.alphabet)
                penalty = choose_penalty(types, settings, few, [cuts[word] for word in listed])
                settings = replace(settings, length_penalty=penalty)
            if self.gold_as == "constraints":
                known = [cuts.get(word) for word in counts]
                more = np.array([1.0 if own is None else TRUSTED for own in known])
                types = replace(types, weights=types.weights * more)
        fitted = MorphemeModel.fit(
            types, settings, known=known, progress=progress, keeping=keeping.arguments | {"every": None}
        )  # fmt: skip
        return Learnt(fitted)

    def _of_gold(
        self, learnt: Learnt, text: Text, gold: Segmentation, progress: Progress, keeping: Keeping
    ) -> tuple[Learnt, NDArray[np.float64]]:
        """What there is to learn of words that people have cut, each way to cut a word once."""
        known = TextKnowledge.of(_types(text, gold.text), self.longest)
        cut = dict.fromkeys(zip(gold.words(), gold.surface().words(), strict=True))
        words = [word for (word, _), _ in cut]
        pieces = [own for _, (_, own) in cut]
        seen = seen_words(words, known, learnt.morphemes)
        wanted = [segments_of([len(graphemes(piece)) for piece in own], self.longest) for own in pieces]
        around = len(words) >= MANY
        unfinished = FittedCuts.collected(seen, wanted, around=around, min_count=self.min_count)
        penalty = float(self.l2)
        learner = Lbfgs(Likelihood(unfinished.model(seen, wanted), gold=wanted), l2=penalty)
        done = run(
            learner, learner.init(), iterations=self.iterations, tolerance=TOLERANCE, progress=progress,
            name="Learning where words are cut", **(keeping.arguments | {"every": None}),
        )  # fmt: skip
        cuts = unfinished.learnt(done.state.weights)
        rewrites = None
        both = [
            (own, morphemes) for (_, morphemes), (_, own) in cut if len(own) == len(morphemes)
        ]  # fmt: skip
        if self.rewrites and any(own != morphemes for own, morphemes in both):
            rewrites = self._rewrites(both, known, penalty, progress, keeping.stage(STAGES[1]))
        return Learnt(learnt.morphemes, known, cuts, rewrites, around), -done.trace / max(1, len(words))

    def _rewrites(
        self,
        both: Sequence[tuple[Morphemes, Morphemes]],
        known: TextKnowledge,
        l2: float,
        progress: Progress,
        keeping: Keeping,
    ) -> FittedRewrites:
        rules = FittedRewrites.rules_of(both, self.rewrites)
        rules, model, right = rules.prepared(both, known, self.min_count)
        learner = Lbfgs(Likelihood(model, gold=right), l2=l2)
        done = run(
            learner, learner.init(), iterations=self.iterations, tolerance=TOLERANCE, progress=progress,
            name="Learning how morphemes are spelt", **(keeping.arguments | {"every": None}),
        )  # fmt: skip
        return rules.learnt(done.state.weights)

    # --- predicting

    def predict(self, text: Text | Segmentation) -> Segmentation:
        """The morphemes of each word of a text, their types, and how probable they are all together."""
        text = as_words(text)
        each = [ways[0] for ways in self._ways(text, 1)]
        return self._segmentation(text, each)

    def predict_k_best(self, text: Text | Segmentation, k: int) -> list[list[tuple[float, Morphemes]]]:
        """The `k` most probable ways to cut each word of a text, best first, each with its probability."""
        if k < 1:
            raise ParameterError(f"predict_k_best: k should be 1 or more, not {k!r}")
        text = as_words(text)
        found = [[(one.probability, one.morphemes) for one in ways] for ways in self._ways(text, k)]
        return [found[word] for word in _numbers(text)]

    def predict_proba(self, text: Text | Segmentation) -> list[NDArray[np.float64]]:
        """For each word of a text, the probability of a border after each of its letters (graphemes) but the last."""
        text, learnt = as_words(text), self._learnt
        found: list[NDArray[np.float64]] = []
        with using_threads(self.threads):
            for words in _some(_types(text)):
                if learnt.cuts is None or learnt.text is None:
                    found += list(learnt.morphemes.posteriors(learnt.morphemes.encode(words)).boundaries)
                    continue
                batch = learnt.cuts.distributions(seen_words(words, learnt.text, learnt.morphemes))
                found += [border_posteriors(np.asarray(own)[:, :, 0]) for own in batch.segment_marginals()]
        return [found[word] for word in _numbers(text)]

    def score(self, gold: Segmentation) -> SegmentationScore:
        """Precision, recall and F1 of morphemes and of borders, in percent."""
        gold = as_segmentation(gold)
        return score_segmentation(self.predict(gold.text), gold)

    def explain(self, word: str, *, k: int = 5) -> dict[str, Any]:
        """Why a word is cut as it is; plain data.

        Returns
        -------
        dict
            `word`, its `letters`, `borders` (the probability of one after each letter but the last), and `ways`: the
            `k` best, each with `morphemes`, `labels` and `probability`.
        """
        text = Text.of([word])
        if text.n_words != 1:
            raise UsageError(f"explain: {word!r} should be one word")
        ways = self._ways(text, k)[0]
        return {
            "word": word,
            "letters": list(graphemes(word)),
            "borders": self.predict_proba(text)[0].tolist(),
            "ways": [one._asdict() for one in ways],
        }

    def _segmentation(self, text: Text, each: Sequence[Analysis]) -> Segmentation:
        numbers: dict[tuple[Morphemes, Morphemes], int] = {}
        own = np.array([numbers.setdefault((one.morphemes, one.labels), len(numbers)) for one in each], np.int32)
        sure = np.array([one.probability for one in each], np.float64)
        at = _numbers(text)
        return Segmentation(
            text, [one for one, _ in numbers], own[at], [labels for _, labels in numbers], sure[at]
        )  # fmt: skip

    def _ways(self, text: Text, k: int) -> list[list[Analysis]]:
        """The k best ways to cut each different word of a text."""
        learnt = self._learnt
        found: list[list[Analysis]] = []
        with using_threads(self.threads):
            for words in _some(_types(text), k):
                found += self._unsupervised(words, k) if learnt.cuts is None else self._supervised(words, k)
        return found

    def _unsupervised(self, words: list[str], k: int) -> list[list[Analysis]]:
        model = self._learnt.morphemes
        types = model.encode(words)
        if k == 1:
            best = model.best(types)
            each = [[(p, y)] for p, y in zip(model.confidence(types, best).tolist(), best, strict=True)]
        else:
            each = model.k_best(types, k)
        found = []
        for word, ways in zip(words, each, strict=True):
            letters = graphemes(word)
            found.append([
                Analysis(
                    tuple("".join(letters[begin:end]) for begin, end, _ in y), tuple(LABELS[t] for _, _, t in y), p
                )
                for p, y in ways
            ])  # fmt: skip
        return found

    def _supervised(self, words: list[str], k: int) -> list[list[Analysis]]:
        learnt = self._learnt
        assert learnt.cuts is not None and learnt.text is not None
        seen = seen_words(words, learnt.text, learnt.morphemes)
        batch = learnt.cuts.distributions(seen)
        whole = batch.log_partition().tolist()
        listed: list[tuple[int, float, Segments]] = []
        many = k if learnt.rewrites is None else max(k, TRIED)
        for number, (ways, z) in enumerate(zip(batch.k_best(many), whole, strict=True)):
            listed += [(number, float(np.exp(score - z)), y) for score, y in ways]
        typed = _typed(learnt.morphemes, [words[number] for number, _, _ in listed], [y for _, _, y in listed])
        cut = [joined(y, self.longest) for y in typed]
        letters = [graphemes(word) for word in words]
        pieces = [
            tuple("".join(letters[number][a:b]) for a, b, _ in y) for (number, _, _), y in zip(listed, cut, strict=True)
        ]
        morphemes: Sequence[tuple[Morphemes, float]] = [(own, 1.0) for own in pieces]
        if learnt.rewrites is not None:
            morphemes = learnt.rewrites.morphemes_of(pieces, learnt.text)
        found: list[dict[Morphemes, Analysis]] = [{} for _ in words]
        for (number, sure, _), (own, chance), y in zip(listed, morphemes, cut, strict=True):
            labels, before = tuple(LABELS[label] for _, _, label in y), found[number].get(own)
            if before is not None:  # two ways to cut the word into the same morphemes
                found[number][own] = before._replace(probability=before.probability + sure * chance)
            else:
                found[number][own] = Analysis(own, labels, sure * chance)
        return [sorted(each.values(), key=lambda one: -one.probability)[:k] for each in found]

    @property
    def _learnt(self) -> Learnt:
        if "_fitted" not in vars(self):
            raise self._has_not_learnt
        return self._fitted

    @property
    def n_features_(self) -> int:
        """How many attributes have weights; 0 without words that were cut by people."""
        return 0 if self._learnt.cuts is None else self._learnt.cuts.n_features

    @property
    def n_rules_(self) -> int:
        """Rules for morphemes that are spelt otherwise."""
        return 0 if self._learnt.rewrites is None else len(self._learnt.rewrites.book.rules) - 1

    @property
    def length_penalty_(self) -> float:
        """The length penalty of the model of the text: as given, or as chosen by words that people have cut."""
        return self._learnt.morphemes.settings.length_penalty

    @property
    def supervised_(self) -> bool:
        """Whether it has learnt from words that people have cut."""
        return self._learnt.cuts is not None

    # --- keeping

    def _to_saved(self) -> store.Saved:
        learnt = self._learnt
        arrays, own = learnt.morphemes.to_saved()
        found = store.prefixed("morphemes.", arrays)
        for name, part in (("text", learnt.text), ("cuts", learnt.cuts), ("rewrites", learnt.rewrites)):
            if part is not None:
                found |= store.prefixed(f"{name}.", part.to_arrays())
        meta = {
            "morphemes": own, "trace": self.trace_.tolist(), "supervised": learnt.cuts is not None,
            "around": learnt.around, "rewrites": learnt.rewrites is not None, **Reading.to_meta(self.reading_),
        }  # fmt: skip
        return store.Saved(self._kind, self.options_, found, meta)

    @classmethod
    def _from_saved(cls, saved: store.Saved) -> Self:
        meta = saved.meta
        with store.reading(cls._saved_as):
            made = cls.of_options(saved.options)
            learnt = Learnt(
                MorphemeModel.from_saved(store.unprefixed("morphemes.", saved.arrays), meta["morphemes"])
            )  # fmt: skip
            if learnt.morphemes.settings.longest != made.longest:
                raise ValueError("pieces and morphemes differ in how long they may be")
            if flag(meta["supervised"]):
                around = flag(meta["around"])
                text = TextKnowledge.from_arrays(store.unprefixed("text.", saved.arrays), made.longest)
                cuts = FittedCuts.from_arrays(store.unprefixed("cuts.", saved.arrays), made.longest, around=around)
                learnt = learnt._replace(text=text, cuts=cuts, around=around)
            if flag(meta["rewrites"]):
                learnt = learnt._replace(
                    rewrites=FittedRewrites.from_arrays(store.unprefixed("rewrites.", saved.arrays))
                )  # fmt: skip
            made._fitted, made.trace_ = learnt, vector(meta["trace"], "trace")
            made.reading_ = Reading.from_meta(meta)
        return made


def flag(given: Any) -> bool:
    """What a saved model says is so, or is not."""
    if not isinstance(given, bool):
        raise ValueError(f"{given!r} should be true or false")
    return given


def _make_way(keeping: Keeping) -> None:
    """Refuse checkpoints of stages of another run before the work; a run that begins anew discards them."""
    for own in [] if keeping.checkpoint is None else map(keeping.stage, STAGES):
        assert own.checkpoint is not None
        check_checkpoint(own.checkpoint, own.fingerprint, resume=own.resume)
        if not own.resume:
            store.discard(own.checkpoint)


def _warn_of_strange(gold: Segmentation) -> None:
    """Say if no word of gold is cut, which have more morphemes than letters, and if many have other letters."""
    lines = np.repeat(np.arange(1, len(gold) + 1), gold.text.ids.lengths).tolist()
    first: dict[tuple[str, Morphemes], int] = {}
    for line, own in zip(lines, gold.words(), strict=True):
        first.setdefault(own, line)
    crowded, foreign = [], []
    for (word, morphemes), line in first.items():
        place = f"line {line}: {word!r:.40} as {' '.join(morphemes)!r:.60}"
        letters = letters_of(word)
        if len(morphemes) > len(letters):
            crowded.append(place)
        if 2 * (Counter(letters) & Counter(letters_of("".join(morphemes)))).total() < len(letters):
            foreign.append(place)
    if all(len(morphemes) == 1 for _, morphemes in first):
        (word, morphemes), line = next(iter(first.items()))
        warnings.warn(
            f"{gold.name}: no word is cut, and so no word will be (line {line}: {word!r:.40} as {morphemes[0]!r:.60}). "
            "Before each morpheme but the first there should be a space and @@, as in 'cats<TAB>cat @@s'",
            IsoglossWarning,
            stacklevel=3,
        )
    if crowded:
        warnings.warn(
            f"{gold.name}: there are more morphemes than letters in {counted(len(crowded), 'word')} ({crowded[0]}). "
            "Such words are learnt from as if they were cut into letters, without their morphemes",
            IsoglossWarning,
            stacklevel=3,
        )
    if len(foreign) > max(2, len(first) // 5):
        warnings.warn(
            f"{gold.name}: {len(foreign)} of {len(first)} words have morphemes without half of their letters "
            f"({foreign[0]}). Is a line missing on one side, or are these the morphemes of other words?",
            IsoglossWarning,
            stacklevel=3,
        )


def _cuts(gold: Segmentation) -> dict[str, list[int]]:
    """Words in the letters of `WordTypes`, and after which of them they are cut; of several ways the first."""
    found: dict[str, list[int]] = {}
    for word, pieces in gold.surface().words():
        letters = letters_of(word)
        sizes = [len(letters_of(piece)) for piece in pieces]
        if sum(sizes) == len(letters):
            found.setdefault("".join(letters), np.cumsum(sizes)[:-1].tolist())
    return found


def as_words(given: Any) -> Text:
    """Text as it is, or the words of a segmentation."""
    return given.text if isinstance(given, Segmentation) else as_text(given)


def _typed(model: MorphemeModel, words: list[str], cuts: Sequence[Segments]) -> list[Segments]:
    """The types that a model of text finds most probable for pieces of words that are cut so."""
    types = model.encode(words)
    known = marks_of(types, [[end for _, end, _ in y[:-1]] for y in cuts])
    if not model.settings.typed:
        return [tuple((begin, end, STEM) for begin, end, _ in y) for y in cuts]
    return list(model.distributions(types, known).argmax())


def _uncut(text: Text) -> Segmentation:
    """Words as they are, to tell one text from another by."""
    return Segmentation.at(text, [(word,) for s in range(len(text)) for word in text.tokens(s)])


def _types(*texts: Text) -> list[str]:
    """The different words of texts, each once."""
    found: dict[str, None] = {}
    for text in texts:
        if text.n_words:
            used = np.unique(text.ids.flat)
            found |= dict.fromkeys(text.vocabulary[number] for number in used.tolist())
    return list(found)


def _numbers(text: Text) -> NDArray[np.int64]:
    """int64[n_words]: where each word is among `_types`."""
    if not text.n_words:
        return np.zeros(0, np.int64)
    return np.asarray(np.unique(text.ids.flat, return_inverse=True)[1].ravel(), np.int64)


def _some(words: list[str], ways: int = 1) -> Iterator[list[str]]:
    """A few words at a time: they have many spans, and so many ways to cut each are wanted."""
    start, letters = 0, 0
    for at, word in enumerate(words):
        letters += ways * len(word)
        if letters > LETTERS and at > start:
            yield words[start:at]
            start, letters = at, ways * len(word)
    if start < len(words):
        yield words[start:]
