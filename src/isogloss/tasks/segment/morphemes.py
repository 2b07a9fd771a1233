"""`MorphemeModel`: words cut into prefixes, stems and suffixes, learnt by EM from words that nobody has cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isogloss import layout
from isogloss.data.ragged import Ragged
from isogloss.errors import ParameterError
from isogloss.learners.em import EM
from isogloss.learners.runner import run
from isogloss.progress import Progress
from isogloss.store import pack_strings
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.semimarkov import Segments
from isogloss.structures.semimarkov2 import SemiMarkovs2, n_word_spans
from isogloss.tasks.segment.affixes import Affixes, mine_affixes
from isogloss.tasks.segment.submodels import (
    LABELS,
    MODELS,
    STEM,
    Emissions,
    Ends,
    MorphemeSettings,
    Spelling,
    Transitions,
    settings_of,
)
from isogloss.tasks.segment.types import Substrings, WordTypes, span_starts

__all__ = [
    "LABELS", "MODELS", "PENALTIES", "STEM", "USUAL", "MorphemeModel", "MorphemeSettings", "WordPosteriors",
    "best_threshold", "choose_penalty", "marks_of", "structures", "word_batches",
]  # fmt: skip

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

BATCH = 1 << 22
"""Scores of words that are worked on together."""
NEGLIGIBLE = 1e-6
"""Morphemes that are expected less often are forgotten when training is over."""
LITTLE = 1e-3
"""What a posterior of types counts beside that of boundaries in decoding: it decides between equals."""
SOME = 20_000
"""Words by which the threshold is chosen."""
USUAL = 1.3
"""The length penalty that suits lists of words and running text, Czech and English."""
PENALTIES = (USUAL, 1.2, 1.4, 1.1, 1.5, 1.6, 1.8)
"""Among which the length penalty is looked for, the usual one first."""
ENOUGH = 5_000
"""Words by which a penalty is chosen."""
THRESHOLDS = np.linspace(0.02, 0.98, 97)
"""Among which the best threshold for boundaries is looked for."""


class Morphemes(NamedTuple):
    """Log scores of all that is learnt."""

    table: Array
    """float64[n_substrings, k]: log P(morpheme | type)."""
    unseen: Array
    """float64[k]: what other strings have beside their spelling."""
    ends: Array
    """float64[2, 3, k]: log P(the word goes on, or ends | place, type); 0 where that is not modelled."""
    steps: Array
    """float64[2, k + 1, k + 1]: as `SemiMarkov2` has them."""
    weights: Array
    """float64[n_weights]: of transitions."""
    done: Array
    """float64[1]: iterations so far."""


class WordPosteriors(NamedTuple):
    """What a model believes of words."""

    boundaries: Ragged
    """For each word, the probability of a boundary after each letter but the last."""
    spans: Ragged
    """float64[., k]: for each word, the probability of each span with each type, spans as in `SemiMarkov2`."""
    log_weights: Array
    """float64[n_words]: log Z."""


class _Counts:
    """Expected counts of the three sub-models, and the most that one place in a word adds to those of morphemes."""

    def __init__(self, n: int, k: int) -> None:
        self.table, self.largest, self.largest_typed = np.zeros((n, k)), np.zeros(n), np.zeros((n, k))
        self.ends, self.steps = np.zeros((2, 3, k)), np.zeros((2, k + 1, k + 1))

    def __iadd__(self, batch: _Batch) -> _Counts:
        from isogloss.tasks.segment._numba.spans import count_spans

        learning, words, marginals = batch.learning, batch.words, batch.q.marginals()
        types, starts = learning.types.part(words.start, words.stop), learning.starts[words.start : words.stop + 1]
        count_spans(
            types.letters.offsets, learning.settings.longest, learning.spans[starts[0] : starts[-1]],
            starts - starts[0], types.weights, marginals.values, marginals.offsets, self.table.shape[1],
            self.table, self.largest, self.largest_typed, self.ends, self.steps.reshape(-1),
        )  # fmt: skip
        return self


class _Batch(NamedTuple):
    """A batch of words with their posteriors, to be counted."""

    learning: _Learning
    words: range
    q: SemiMarkovs2


class _Learning:
    """The model of all words as `EM` asks for it; an item of a batch is a range of words."""

    def __init__(
        self,
        types: WordTypes,
        substrings: Substrings,
        spans: NDArray[np.int32],
        settings: MorphemeSettings,
        affixes: Affixes,
        marks: NDArray[np.int8],
    ) -> None:
        self.types, self.substrings, self.settings, self.marks = types, substrings, settings, marks
        self.spans, self.starts = spans, span_starts(types.letters, settings.longest)
        self.spelling = Spelling.of(types, settings.base_power)
        self.emissions = Emissions(settings, substrings, self.spelling, affixes)
        self.ends, self.transitions = Ends(settings), Transitions(settings)

    def zero_counts(self) -> _Counts:
        return _Counts(len(self.substrings), self.settings.n_labels)

    def distributions(self, params: Morphemes, batch: Any) -> SemiMarkovs2:
        first, marks = self.types.letters.offsets, self.marks
        if len(marks):
            marks = marks[first[batch.start] - first[0] : first[batch.stop] - first[0]]
        spans = self.spans[self.starts[batch.start] : self.starts[batch.stop]]
        return structures(self.types.part(batch.start, batch.stop), spans, params, self.spelling, self.settings, marks)

    def weights(self, batch: Any) -> Array:
        return self.types.weights[batch.start : batch.stop]

    def expected_counts(self, batch: Any, q: SemiMarkovs2) -> _Batch:
        return _Batch(self, batch, q)

    def improve(self, params: Morphemes, counts: _Counts) -> Morphemes:
        settings, done = self.settings, float(params.done[0]) + 1.0
        table, unseen = self.emissions.fit(counts.table, counts.largest, counts.largest_typed)
        ends, steps, weights = params.ends, params.steps, params.weights
        if done >= settings.warming:
            if settings.model == "full":
                ends = self.ends.fit(counts.ends)
            if settings.model in ("hmmp", "full"):
                weights = self.transitions.fit(counts.steps, weights)
                steps = self.transitions.steps(weights)
        return Morphemes(table, unseen, ends, steps, weights, np.array([done]))

    def log_prior(self, params: Morphemes) -> float:
        """0 unless the estimate is exact: back-off has no prior of which it is the mode."""
        if not self.settings.exact:
            return 0.0
        value = self.emissions.log_prior(params.table, params.unseen)
        if self.settings.model == "full":
            value += self.ends.log_prior(params.ends)
        return value + self.transitions.log_prior(params.weights)

    def start(self) -> Morphemes:
        """Morphemes as their spelling says, uniform steps, ends of words left out."""
        k, weights = self.settings.n_labels, np.zeros(self.transitions.n_weights)
        steps = self.transitions.steps(weights) if self.settings.typed else self.transitions.free()
        return Morphemes(*self.emissions.start(), np.zeros((2, 3, k)), steps, weights, np.zeros(1))

    def batches(self) -> list[range]:
        """Words in runs whose scores fit into memory together."""
        return word_batches(self.types, self.settings)

    def dump(self, params: Morphemes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return params._asdict(), {}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Morphemes:
        return Morphemes(**arrays)


def structures(
    types: WordTypes,
    spans: NDArray[np.int32],
    params: Morphemes,
    spelling: Spelling,
    settings: MorphemeSettings,
    marks: NDArray[np.int8],
) -> SemiMarkovs2:
    """The distribution over the ways to cut each word.

    Parameters
    ----------
    types : WordTypes
    spans : int32[n_spans]
        What `Substrings.spans` says of them.
    params, spelling, settings
        What has been learnt.
    marks : int8[n_letters]
        Boundaries that are known, as `marks_of` has them; may be empty.
    """
    from isogloss.tasks.segment._numba.spans import lay_out

    k, longest = settings.n_labels, settings.longest
    lengths, steps = types.letters.lengths, np.ascontiguousarray(params.steps).reshape(-1)
    starts = span_starts(types.letters, longest)
    sizes = np.diff(starts) * 3 * k + len(steps)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scores = np.empty(int(offsets[-1]))
    letters = Ragged(types.letters.flat.astype(np.int32, copy=False), types.letters.offsets - types.letters.offsets[0])
    run_sentences(
        lay_out, len(types), letters.values, letters.offsets, longest, spans, starts, params.table, params.unseen,
        spelling.letters, spelling.stop, settings.penalty(), params.ends, steps, marks, scores, offsets,
    )  # fmt: skip
    n = np.arange(len(types) + 1, dtype=np.int64)
    classes = Ragged(np.tile(np.arange(k, dtype=np.int64), len(types)), n * k)
    stack = Stack(kept(scores), offsets, sizes[:, np.newaxis])
    return SemiMarkovs2(stack, Ragged(lengths, n), longest, classes, 0)


@dataclass(frozen=True, eq=False)
class MorphemeModel:
    r"""A model of morphemes with types; `fit` learns one.

    .. math:: p(\mu, \tau) \propto \prod_i P(\mu_i \mid \tau_i)\, P(\tau_i \mid \tau_{i-1}, b_{i-1})\,
        P(b_i \mid \tau_i, b_{i-1}, b_{i-2})\, e^{-|\mu_i|^{lp}}

    Parameters
    ----------
    settings : MorphemeSettings
    alphabet : tuple of str
    substrings : Substrings
        Those that are morphemes at times.
    params : Morphemes
    spelling : Spelling
    threshold : float
        A boundary should be more probable than this: where F1 of boundaries is largest, as far as the posteriors of the
        words learnt from are right.
    trace : float64[n_iterations]
        The objective at the beginning of each iteration: log Z of all words, and with `exact` the log prior.

    References
    ----------
    Naradowsky and Toutanova, Unsupervised bilingual morpheme segmentation and alignment with context-rich hidden
    semi-Markov models, ACL 2011. We differ, unless told otherwise: counts leave out what the own word gives
    (`leave_out`), the spelling model is tempered (`base_power`), stems and affixes have usual lengths.

    Examples
    --------
    >>> words = WordTypes.of([stem + ending for stem in ("walk", "talk", "jump", "call") for ending in ("", "s", "ed")])
    >>> model = MorphemeModel.fit(words, MorphemeSettings())
    >>> model.best(model.encode(["calls", "barked"]))
    [((0, 4, 1), (4, 5, 2)), ((0, 4, 1), (4, 6, 2))]
    """

    settings: MorphemeSettings
    alphabet: tuple[str, ...]
    substrings: Substrings
    params: Morphemes
    spelling: Spelling
    threshold: float = 0.5
    trace: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fit(
        cls,
        types: WordTypes,
        settings: MorphemeSettings,
        *,
        known: Sequence[Sequence[int] | None] | None = None,
        progress: Progress | None = None,
        keeping: Mapping[str, Any] | None = None,
    ) -> MorphemeModel:
        """Learn from words.

        Parameters
        ----------
        types : WordTypes
        settings : MorphemeSettings
        known : sequence, optional
            For each word, after which letters it is cut (1 is after the first), or None where that is not known.
        progress : Progress, optional
        keeping : mapping, optional
            Further arguments of `isogloss.learners.runner.run`, such as those of checkpoints.
        """
        marks = marks_of(types, known, settings.longest)
        substrings, spans = Substrings.grown(types.letters, max(1, len(types.alphabet)), settings.longest)
        affixes = Affixes((), ())
        if settings.listed:
            most = min(settings.longest_affix, settings.longest)
            affixes = mine_affixes(types, settings.n_prefixes, settings.n_suffixes, longest=most)
        learning = _Learning(types, substrings, spans, settings, affixes, marks)
        em: EM[Morphemes, Any, Any] = EM(learning, learning.batches())
        fitted = run(
            em, em.init(learning.start()), iterations=settings.warming + settings.iterations, progress=progress,
            name="Learning morphemes", **dict(keeping or {}),
        )  # fmt: skip
        params = fitted.state.params
        model = cls(settings, tuple(types.alphabet), substrings, params, learning.spelling, 0.5, fitted.trace)
        model = model._small(types)
        return replace(model, threshold=model.best_threshold_for(types))

    def _small(self, types: WordTypes) -> MorphemeModel:
        """Without strings that say no more than their spelling."""
        spelt = self.spelling.of_strings(self.substrings)[:, np.newaxis] + self.params.unseen
        with np.errstate(invalid="ignore"):
            more = np.exp(self.params.table) - np.exp(spelt)
        substrings, old = self.substrings.kept((np.abs(more) > NEGLIGIBLE / max(1.0, types.weights.sum())).any(axis=1))
        params = self.params._replace(table=np.ascontiguousarray(self.params.table[old]))
        return replace(self, substrings=substrings, params=params)

    def best_threshold_for(self, types: WordTypes) -> float:
        """Where boundaries of these words have the largest F1 if their posteriors are right."""
        some = _some(types, SOME)
        each = [some.part(own.start, own.stop) for own in word_batches(some, self.settings)]
        found = np.concatenate([np.zeros(0), *(self.posteriors(words).boundaries.flat for words in each)])
        return best_threshold(found, np.repeat(some.weights, some.letters.lengths - 1))

    def encode(self, words: Sequence[str]) -> WordTypes:
        """Words in the letters of the model."""
        return WordTypes.of(words, alphabet=self.alphabet)

    def distributions(self, types: WordTypes, marks: NDArray[np.int8] | None = None) -> SemiMarkovs2:
        """The distribution over the ways to cut each word, of which boundaries may be known (`marks_of`)."""
        known = np.zeros(0, np.int8) if marks is None else marks
        return structures(
            types, self.substrings.spans(types.letters), self.params, self.spelling, self.settings, known
        )  # fmt: skip

    def posteriors(self, types: WordTypes) -> WordPosteriors:
        """What is believed of words: boundaries, spans with their types, and log Z."""
        return self._believed(types, self.distributions(types))

    def _believed(self, types: WordTypes, q: SemiMarkovs2) -> WordPosteriors:
        from isogloss.tasks.segment._numba.spans import boundary_posteriors, span_posteriors

        longest, offsets, k = self.settings.longest, types.letters.offsets, self.settings.n_labels
        starts, marginals = span_starts(types.letters, longest), q.marginals()
        spans = np.zeros((int(starts[-1]), k))
        run_sentences(
            span_posteriors, len(types), offsets, longest, starts, marginals.values, marginals.offsets, k, spans
        )
        inner = np.concatenate([[0], np.cumsum(types.letters.lengths - 1)]).astype(np.int64)
        found = np.zeros(int(inner[-1]))
        run_sentences(boundary_posteriors, len(types), offsets, longest, starts, spans, inner, found)
        return WordPosteriors(Ragged(found, inner), Ragged(spans, starts), q.log_partition())

    def best(self, types: WordTypes, *, threshold: float | None = None) -> list[Segments]:
        """How each word should be cut: begin, end and type of its morphemes.

        Boundaries are those whose probabilities, less the threshold, add up to the most, among all ways to cut a word
        that are allowed; types are the most probable ones of these pieces.
        """
        from isogloss.tasks.segment._numba.spans import gains

        q = self.distributions(types)
        believed = self._believed(types, q)
        scores, longest = q.scores.values.copy(), self.settings.longest
        run_sentences(
            gains, len(types), types.letters.offsets, longest, believed.spans.offsets, believed.spans.values,
            believed.boundaries.offsets, believed.boundaries.values,
            self.threshold if threshold is None else threshold, LITTLE, scores, q.scores.offsets,
        )  # fmt: skip
        return self._typed(list(q.with_scores(q.scores.like(kept(scores))).argmax()))

    def most_probable(self, types: WordTypes) -> list[Segments]:
        """The most probable way to cut each word, with its types (Viterbi)."""
        return self._typed(list(self.distributions(types).argmax()))

    def confidence(self, types: WordTypes, ways: Sequence[Segments]) -> Array:
        """float64[n_words]: how probable it is that a word is cut so, whatever the types of its pieces."""
        known = marks_of(types, [[end for _, end, _ in y[:-1]] for y in ways])
        return np.exp(self.distributions(types, known).log_partition() - self.distributions(types).log_partition())

    def k_best(self, types: WordTypes, k: int) -> list[list[tuple[float, Segments]]]:
        """The k most probable ways to cut each word, each once, with their probabilities, whatever the types of pieces.

        They are looked for by their most probable types, which they come with.
        """
        q = self.distributions(types)
        whole = q.log_partition()
        found = [[y for _, y in q[s].k_best(k, labels=False)] for s in range(len(types))]
        owners = np.repeat(np.arange(len(types)), [len(own) for own in found])
        listed = types.take(owners)
        known = marks_of(listed, [[end for _, end, _ in y[:-1]] for own in found for y in own])
        sure = iter(np.exp(self.distributions(listed, known).log_partition() - whole[owners]).tolist())
        return [sorted(((next(sure), y) for y in self._typed(own)), key=lambda way: -way[0]) for own in found]

    def _typed(self, each: list[Segments]) -> list[Segments]:
        """With the numbers of `LABELS`: all are stems where the model has no types."""
        if self.settings.typed:
            return each
        return [tuple((begin, end, STEM) for begin, end, _ in y) for y in each]

    # --- keeping

    def to_saved(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and what goes into the header of a saved model."""
        letters, offsets = pack_strings(list(self.alphabet))
        arrays = {
            "alphabet": letters, "alphabet_offsets": offsets, "parents": self.substrings.parents,
            "letters": self.substrings.letters, "spelling": self.spelling.letters,
            **{name: getattr(self.params, name) for name in ("table", "unseen", "ends", "steps", "weights", "done")},
        }  # fmt: skip
        meta = {
            "settings": asdict(self.settings), "stop": self.spelling.stop, "threshold": self.threshold,
            "trace": self.trace.tolist(),
        }  # fmt: skip
        return arrays, meta

    @classmethod
    def from_saved(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Self:
        """The inverse; arrays may come from anywhere, and are checked."""
        settings = settings_of(meta["settings"])
        k = settings.n_labels
        n_weights = Transitions(settings).n_weights
        found = layout.check(arrays, _layout(k, n_weights), "the morphemes of this model")
        substrings = Substrings(
            found["parents"], found["letters"], max(1, len(found["alphabet"])), settings.longest
        )  # fmt: skip
        substrings.check()
        params = Morphemes(*(found[name] for name in Morphemes._fields))
        spelling = Spelling(found["spelling"], layout.number(meta["stop"], "stop", most=layout.LARGEST))
        threshold = layout.number(meta["threshold"], "threshold", least=0, most=1)
        return cls(
            settings, tuple(found["alphabet"]), substrings, params, spelling, threshold,
            layout.vector(meta["trace"], "trace"),
        )  # fmt: skip


def choose_penalty(
    types: WordTypes,
    settings: MorphemeSettings,
    words: WordTypes,
    cuts: Sequence[Sequence[int]],
    penalties: Sequence[float] = PENALTIES,
    progress: Progress | None = None,
) -> float:
    """The length penalty whose model of `types` finds most of the boundaries of a few words, by F1.

    Parameters
    ----------
    types : WordTypes
        What is learnt from; of many, some thousand.
    settings : MorphemeSettings
    words : WordTypes
        In the alphabet of `types`.
    cuts : sequence of sequence of int
        After which letters they are cut. They are looked at here alone, not learnt from.
    penalties : sequence of float
        Of equal ones the first is taken.

    Examples
    --------
    >>> types = WordTypes.of([stem + ending for stem in ("walk", "talk", "jump", "call") for ending in ("", "s", "ed")])
    >>> few = WordTypes.of(["walked", "calls", "jump"], alphabet=types.alphabet)
    >>> choose_penalty(types, MorphemeSettings(), few, [[4], [4], []], [1.3, 3.0])
    1.3
    """
    some = _some(types, ENOUGH)
    wanted = [frozenset(own) for own in cuts]
    scores = []
    for penalty in penalties:
        model = MorphemeModel.fit(some, replace(settings, length_penalty=penalty), progress=progress)
        found = [frozenset(begin for begin, _, _ in y if begin) for y in model.best(words)]
        right = sum(len(a & b) for a, b in zip(found, wanted, strict=True))
        scores.append(2.0 * right / max(1, sum(map(len, found)) + sum(map(len, wanted))))
    return float(penalties[int(np.argmax(scores))])


def best_threshold(found: Array, weights: Array | None = None) -> float:
    """Where boundaries of these probabilities have the largest F1, if the probabilities are right.

    >>> best_threshold(np.array([0.9, 0.8, 0.1, 0.05]))
    0.1
    """
    own = np.ones(len(found)) if weights is None else weights
    expected = float(own @ found)
    scores = [
        2.0 * float(own[above] @ found[above]) / max(float(own[above].sum()) + expected, 1e-300)
        for above in (found > one for one in THRESHOLDS)
    ]
    return float(THRESHOLDS[int(np.argmax(scores))])


def _some(types: WordTypes, most: int) -> WordTypes:
    """Words at equal distances, if there are more."""
    if len(types) <= most:
        return types
    return types.take(np.linspace(0, len(types) - 1, most).astype(np.int64))


def word_batches(types: WordTypes, settings: MorphemeSettings) -> list[range]:
    """Words in runs whose scores fit into memory together."""
    sizes = n_word_spans(types.letters.lengths, settings.longest) * 3 * settings.n_labels
    number = (np.cumsum(sizes) - sizes) // BATCH
    borders = np.flatnonzero(np.diff(number, prepend=-1, append=-2))
    return [range(a, b) for a, b in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)]


def _layout(k: int, n_weights: int) -> layout.Layout:
    """The arrays of a model with so many labels."""
    numbers = layout.Numbers
    return {
        "alphabet": layout.Strings("a", distinct=True),
        "parents": numbers("int32", "n", least=-1, below="n"),
        "letters": numbers("int32", "n", least=0, below="a"),
        "spelling": numbers("float64", "a + 1"),
        "table": numbers("float64", ("n", k), logs=True),
        "unseen": numbers("float64", k, logs=True),
        "ends": numbers("float64", (2, 3, k), logs=True),
        "steps": numbers("float64", (2, k + 1, k + 1), logs=True),
        "weights": numbers("float64", n_weights),
        "done": numbers("float64", 1),
    }


def marks_of(
    types: WordTypes, known: Sequence[Sequence[int] | None] | None, longest: int | None = None
) -> NDArray[np.int8]:
    """int8[n_letters]: whether a word is known to be cut after each letter (1), known not to be (0), or not known (−1).

    Inside of pieces of more than `longest` letters nothing is known, since no morpheme is as long.

    >>> marks_of(WordTypes.of(["tea", "at"]), [[1], None]).tolist()
    [1, 0, 0, -1, -1]
    """
    if known is None:
        return np.zeros(0, np.int8)
    if len(known) != len(types):
        raise ParameterError(f"known: there are {len(types)} words, and cuts of {len(known)}")
    offsets = types.letters.offsets - types.letters.offsets[0]
    marks = np.full(int(offsets[-1]), -1, np.int8)
    for word, cuts in enumerate(known):
        if cuts is None:
            continue
        own = marks[offsets[word] : offsets[word + 1]]
        own[:] = 0
        for cut in cuts:
            if not 0 < cut < len(own):
                raise ParameterError(f"known: word {word} has {len(own)} letters, and cannot be cut after {cut}")
            own[cut - 1] = 1
        for begin, end in pairwise([0, *sorted(cuts), len(own)]):
            if longest is not None and end - begin > longest:
                own[begin : end - 1] = -1
    return marks
