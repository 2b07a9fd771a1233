"""`MorphemeModel`: words cut into prefixes, stems and suffixes, learnt by EM from words that nobody has cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.ragged import Ragged
from isogloss.errors import ParameterError
from isogloss.learners.backoff import BackOff, Level
from isogloss.learners.em import EM
from isogloss.learners.multinomials import LogLinearMultinomial
from isogloss.learners.runner import run
from isogloss.progress import Progress
from isogloss.structures.base import kept
from isogloss.structures.batch import Stack, run_sentences
from isogloss.structures.semimarkov import Segments
from isogloss.structures.semimarkov2 import SemiMarkovs2, n_word_spans
from isogloss.tasks.segment.types import Substrings, WordTypes, span_starts

__all__ = ["LABELS", "MODELS", "MorphemeModel", "MorphemeSettings", "WordPosteriors"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PREFIX, STEM, SUFFIX = 0, 1, 2
LABELS = ("prefix", "stem", "suffix")
MODELS = ("up", "hmmp-basic", "hmmp", "full")
"""What is modelled: morphemes alone; their types with uniform transitions; learnt transitions; ends of words as well."""
ANYWHERE = 3
"""The row of transitions that leave a border of words."""
BATCH = 1 << 22
"""Scores of words that are worked on together."""
NEGLIGIBLE = 1e-6
"""Expected counts below this are forgotten when training is over."""


@dataclass(frozen=True)
class MorphemeSettings:
    """What a morpheme model is and how it is learnt.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    length_penalty : float
        A morpheme of l letters has weight exp(−l^length_penalty).
    iterations : int
        Of EM; before it, with "full", 5 of "hmmp-basic".
    longest : int
        The most letters of a morpheme.
    base_weight, shared_weight, boundary_weight : float
        Pseudo-counts of the spelling model below morphemes, of morphemes below those of a type, and of ends of words.
    variance : float
        Of the prior on weights of transitions.
    prefix_may_end : bool
        Whether a prefix may end a word.
    exact : bool
        Smooth in a single level, as a maximum a posteriori estimate, so that the objective never falls.
    """

    model: str = "full"
    length_penalty: float = 1.5
    iterations: int = 10
    longest: int = 12
    base_weight: float = 1.0
    shared_weight: float = 1.0
    boundary_weight: float = 1.0
    variance: float = 10.0
    prefix_may_end: bool = False
    exact: bool = False

    @property
    def n_labels(self) -> int:
        """One where morphemes have no types."""
        return 1 if self.model == "up" else len(LABELS)

    @property
    def learns_steps(self) -> bool:
        return self.model in ("hmmp", "full")

    @property
    def learns_ends(self) -> bool:
        return self.model == "full"

    def penalty(self) -> Array:
        """float64[longest + 1]: log weights of lengths."""
        return -(np.arange(self.longest + 1, dtype=np.float64) ** self.length_penalty)


class Spelling(NamedTuple):
    """A model of letters: morphemes are drawn letter by letter, and stop after each with the same probability."""

    letters: Array
    """float64[n_letters + 1]: log probability of each letter, and of one that is not known, of a morpheme that goes on
    to it."""
    stop: float
    """Log probability of stopping, less that of going on, which the first letter has too much."""

    @classmethod
    def of(cls, types: WordTypes) -> Spelling:
        """Relative frequencies of letters, one more for those not seen; as many stops as there are words."""
        lengths = types.letters.lengths
        weights = np.repeat(types.weights, lengths)
        counts = np.bincount(types.letters.flat, weights, len(types.alphabet) + 1)[: len(types.alphabet) + 1] + 1.0
        total = float(types.weights @ lengths)
        stop = float(types.weights.sum()) / total if total else 0.5
        stop = min(stop, 0.5)
        going = np.log1p(-stop)
        return cls(np.log(counts / counts.sum()) + going, float(np.log(stop) - going))

    def of_strings(self, substrings: Substrings) -> Array:
        """float64[n]: log probabilities of strings."""
        return _along(substrings, self.letters[substrings.letters]) + self.stop


def _along(substrings: Substrings, own: Array) -> Array:
    """Sums over all that strings begin with, themselves included."""
    found, lengths = own.copy(), substrings.lengths
    for depth in range(2, int(lengths.max(initial=0)) + 1):
        here = np.flatnonzero(lengths == depth)
        found[here] += found[substrings.parents[here]]
    return found


class Morphemes(NamedTuple):
    """Log scores of all that is learnt."""

    table: Array
    """float64[n_substrings, k]: log P(morpheme | type)."""
    unseen: Array
    """float64[k]: what other strings have of their spelling."""
    ends: Array
    """float64[2, 3, k]: log P(the word goes on, or ends | place, type); 0 where that is not modelled."""
    steps: Array
    """float64[2, k + 1, k + 1]: as `SemiMarkov2` has them."""
    weights: Array
    """float64[n_weights]: of transitions."""


class WordPosteriors(NamedTuple):
    """What a model believes of words."""

    boundaries: Ragged
    """For each word, the probability of a boundary after each letter but the last."""
    spans: Ragged
    """float64[., k]: for each word, the probability of each span with each type, spans as in `SemiMarkov2`."""
    log_weights: Array
    """float64[n_words]: log Z."""


@dataclass(eq=False)
class _Counts:
    """Expected counts of the three sub-models."""

    table: Array
    ends: Array
    steps: Array

    def __iadd__(self, other: _Counts) -> _Counts:
        raise NotImplementedError


def allowed_steps(settings: MorphemeSettings) -> NDArray[np.bool_]:
    """bool[2, k + 1, k + 1]: steps that words may have, the last row and column as in `SemiMarkov2`."""
    k = settings.n_labels
    allowed = np.ones((2, k + 1, k + 1), np.bool_)
    if k > 1:
        allowed[0, PREFIX, SUFFIX] = False
        allowed[1, :k, SUFFIX] = allowed[1, k, SUFFIX] = False
        if not settings.prefix_may_end:
            allowed[1, PREFIX, :] = False
    return allowed


class Transitions:
    """Steps between types of morphemes: log-linear, with a feature for each pair of types and each first type."""

    def __init__(self, settings: MorphemeSettings) -> None:
        from scipy.sparse import identity

        self.settings, self.k = settings, settings.n_labels
        allowed = allowed_steps(settings)
        self.mask = np.concatenate([allowed[0, : self.k, : self.k], allowed[1, self.k :, : self.k]])
        n = self.mask.size
        self._model = LogLinearMultinomial(
            identity(n, format="csr"), self.k + 1, l2=1.0 / settings.variance, allowed=self.mask.ravel()
        )

    @property
    def n_weights(self) -> int:
        return self._model.n_weights

    def steps(self, weights: Array) -> Array:
        """float64[2, k + 1, k + 1]: log scores; those that are not allowed are −∞, and the last step is free."""
        k = self.k
        rows = self._model.log_probs(weights).reshape(k + 1, k)
        out = np.full((2, k + 1, k + 1), -np.inf)
        out[0, :k, :k] = rows[:k]
        out[1, k, :k] = rows[k]
        out[1, :k, :k] = rows[k]
        out[1, :k, k] = 0.0
        return np.where(allowed_steps(self.settings), out, -np.inf)

    def fit(self, counts: Array, start: Array) -> Array:
        """Weights for expected counts of steps."""
        k = self.k
        across = counts[1, :, :k].sum(axis=0)[np.newaxis]
        wanted = np.concatenate([counts[0, :k, :k], across]) * self.mask
        return self._model.fit(wanted, start).weights

    def log_prior(self, weights: Array) -> float:
        return self._model.log_prior(weights)


class _Learning:
    """The model of all words as `EM` asks for it."""

    def __init__(
        self,
        types: WordTypes,
        substrings: Substrings,
        spans: NDArray[np.int32],
        settings: MorphemeSettings,
        marks: NDArray[np.int8],
        allowed: NDArray[np.bool_] | None,
    ) -> None:
        self.types, self.substrings, self.settings, self.marks = types, substrings, settings, marks
        self.spans, self.starts = spans, span_starts(types.letters, settings.longest)
        self.k = settings.n_labels
        self.spelling = Spelling.of(types)
        self.base = np.exp(self.spelling.of_strings(substrings))
        self.allowed = np.ones((len(substrings), self.k), np.bool_) if allowed is None else allowed
        self.transitions = Transitions(settings)
        n, k = len(substrings), self.k
        one = Level(np.zeros(n, np.int64), np.arange(n), settings.base_weight)
        events = np.arange(n * k)
        typed = Level(events % k, events // k, settings.shared_weight)
        direct = Level(events % k, events // k, settings.base_weight)
        self.morphemes = BackOff([direct] if settings.exact else [one, typed] if k > 1 else [one])
        ends = np.arange(6 * k)  # [2, 3, k]
        either = Level(np.zeros(2, np.int64), np.arange(2), settings.boundary_weight)
        by_type = Level(np.arange(2 * k) % k, np.arange(2 * k) // k, settings.boundary_weight)
        by_place = Level(ends % (3 * k), ends // (3 * k) * k + ends % k, settings.boundary_weight)
        direct = Level(ends % (3 * k), ends // (3 * k), settings.boundary_weight)
        self.ends = BackOff([direct] if settings.exact else [either, by_type, by_place])

    # --- EM

    def zero_counts(self) -> _Sum:
        return _Sum(
            np.zeros((len(self.substrings), self.k)), np.zeros((2, 3, self.k)), np.zeros((2, self.k + 1, self.k + 1))
        )

    def distributions(self, params: Morphemes, batch: range) -> SemiMarkovs2:
        types = self.types.part(batch.start, batch.stop)
        spans = self.spans[self.starts[batch.start] : self.starts[batch.stop]]
        marks = self.marks
        if len(marks):
            first = self.types.letters.offsets
            marks = marks[first[batch.start] : first[batch.stop]]
        return structures(types, spans, params, self.spelling, self.settings, marks)

    def weights(self, batch: range) -> Array:
        return self.types.weights[batch.start : batch.stop]

    def expected_counts(self, batch: range, q: SemiMarkovs2) -> Any:
        return _Batch(self, batch, q)

    def maximise(self, counts: _Sum) -> Morphemes:
        return self.improve(self.start(), counts)

    def improve(self, params: Morphemes, counts: _Sum) -> Morphemes:
        settings, k = self.settings, self.k
        own = self.morphemes.probabilities(counts.table.ravel(), self.base).reshape(-1, k)
        with np.errstate(divide="ignore"):
            table = np.where(self.allowed, np.log(own), -np.inf)
            unseen = np.log(self.morphemes.remainders(counts.table.ravel()))
        ends = params.ends
        if settings.learns_ends:
            ends = np.log(self.ends.probabilities(counts.ends.ravel(), np.array([0.5, 0.5]))).reshape(2, 3, k)
        steps, weights = params.steps, params.weights
        if settings.learns_steps:
            weights = self.transitions.fit(counts.steps, weights)
            steps = self.transitions.steps(weights)
        return Morphemes(table, unseen, ends, steps, weights)

    def start(self) -> Morphemes:
        """Morphemes as their spelling says, all types alike."""
        weights = np.zeros(self.transitions.n_weights)
        table = np.repeat(np.log(self.base)[:, np.newaxis], self.k, axis=1)
        table = np.where(self.allowed, table, -np.inf)
        return Morphemes(table, np.zeros(self.k), np.zeros((2, 3, self.k)), self.transitions.steps(weights), weights)

    def batches(self) -> list[range]:
        """Words in runs whose scores fit into memory together."""
        sizes = n_word_spans(self.types.letters.lengths, self.settings.longest) * 3 * self.k
        number = (np.cumsum(sizes) - sizes) // BATCH
        borders = np.flatnonzero(np.diff(number, prepend=-1, append=-2))
        return [range(a, b) for a, b in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)]

    def dump(self, params: Morphemes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return params._asdict(), {}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Morphemes:
        return Morphemes(**arrays)


class _Batch(NamedTuple):
    """A batch of words with their posteriors, to be counted."""

    learning: _Learning
    words: range
    q: SemiMarkovs2


@dataclass(eq=False)
class _Sum(_Counts):
    """Counts that batches add to in place."""

    def __iadd__(self, other: Any) -> _Sum:
        from isogloss.tasks.segment._numba.spans import count_spans

        learning, words, q = other
        types = learning.types.part(words.start, words.stop)
        starts = learning.starts[words.start : words.stop + 1]
        spans = learning.spans[starts[0] : starts[-1]]
        marginals = q.marginals()
        count_spans(
            types.letters.offsets, learning.settings.longest, spans, starts - starts[0], types.weights,
            marginals.values, marginals.offsets, learning.k, self.table, self.ends, self.steps.reshape(-1),
        )  # fmt: skip
        return self


def structures(
    types: WordTypes,
    spans: NDArray[np.int32],
    params: Morphemes,
    spelling: Spelling,
    settings: MorphemeSettings,
    marks: NDArray[np.int8],
) -> SemiMarkovs2:
    """The distribution over the ways to cut each word."""
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
    words = Ragged(lengths, n)
    classes = Ragged(np.tile(np.arange(k, dtype=np.int64), len(types)), n * k)
    return SemiMarkovs2(Stack(kept(scores), offsets, sizes[:, np.newaxis]), words, longest, classes, 0)


@dataclass(frozen=True, eq=False)
class MorphemeModel:
    """A model of morphemes; `fit` learns one.

    Parameters
    ----------
    settings : MorphemeSettings
    alphabet : tuple of str
    substrings : Substrings
        Those that are morphemes at times.
    params : Morphemes
    spelling : Spelling
    trace : float64[n_iterations]
        The objective at the beginning of each iteration.

    Examples
    --------
    >>> words = WordTypes.of([stem + ending for stem in ("walk", "talk", "jump", "call") for ending in ("", "s", "ed")])
    >>> model = MorphemeModel.fit(words, MorphemeSettings("up", 1.6))
    >>> model.best(WordTypes.of(["calls"], alphabet=model.alphabet))[0]
    ((0, 4, 1), (4, 5, 1))
    """

    settings: MorphemeSettings
    alphabet: tuple[str, ...]
    substrings: Substrings
    params: Morphemes
    spelling: Spelling
    trace: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fit(
        cls,
        types: WordTypes,
        settings: MorphemeSettings,
        *,
        known: Sequence[Sequence[int] | None] | None = None,
        progress: Progress | None = None,
        keeping: Any = None,
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
        if settings.model not in MODELS:
            raise ParameterError(f"model should be one of {', '.join(MODELS)}, not {settings.model!r}")
        substrings, spans = Substrings.grown(types.letters, max(1, len(types.alphabet)), settings.longest)
        learning = _Learning(types, substrings, spans, settings, marks_of(types, known), None)
        em = EM(learning, learning.batches())
        fitted = run(
            em, em.init(learning.start()), iterations=settings.iterations, progress=progress, **dict(keeping or {})
        )
        params = fitted.state.params
        return cls(settings, tuple(types.alphabet), substrings, params, learning.spelling, fitted.trace)

    def encode(self, words: Sequence[str]) -> WordTypes:
        """Words in the letters of the model."""
        return WordTypes.of(words, alphabet=self.alphabet)

    def distributions(self, types: WordTypes) -> SemiMarkovs2:
        """The distribution over the ways to cut each word."""
        return structures(
            types, self.substrings.spans(types.letters), self.params, self.spelling, self.settings, np.zeros(0, np.int8)
        )

    def posteriors(self, types: WordTypes) -> WordPosteriors:
        """What is believed of words: boundaries, spans with their types, and log Z."""
        from isogloss.tasks.segment._numba.spans import boundary_posteriors, span_posteriors

        q, k = self.distributions(types), self.settings.n_labels
        longest, offsets = self.settings.longest, types.letters.offsets
        starts = span_starts(types.letters, longest)
        spans = np.zeros((int(starts[-1]), k))
        marginals = q.marginals()
        run_sentences(
            span_posteriors, len(types), offsets, longest, starts, marginals.values, marginals.offsets, k, spans
        )
        inner = np.concatenate([[0], np.cumsum(types.letters.lengths - 1)]).astype(np.int64)
        found = np.zeros(int(inner[-1]))
        run_sentences(boundary_posteriors, len(types), offsets, longest, starts, spans, inner, found)
        return WordPosteriors(Ragged(found, inner), Ragged(spans, starts), q.log_partition())

    def best(self, types: WordTypes) -> list[Segments]:
        """The most probable way to cut each word: begin, end and type of its morphemes."""
        return self._typed(list(self.distributions(types).argmax()))

    def k_best(self, types: WordTypes, k: int) -> list[list[tuple[float, Segments]]]:
        """The k most probable ways to cut each word, with their probabilities."""
        q = self.distributions(types)
        whole = q.log_partition()
        return [
            [(float(np.exp(score - z)), y) for (score, _), y in zip(own, self._typed([y for _, y in own]), strict=True)]
            for own, z in zip(q.k_best(k), whole.tolist(), strict=True)
        ]

    def _typed(self, each: list[Segments]) -> list[Segments]:
        """With the numbers of `LABELS`: all are stems where the model has no types."""
        if self.settings.n_labels > 1:
            return each
        return [tuple((begin, end, STEM) for begin, end, _ in y) for y in each]


def marks_of(types: WordTypes, known: Sequence[Sequence[int] | None] | None) -> NDArray[np.int8]:
    """int8[n_letters]: whether a word is known to be cut after each letter (1), known not to be (0), or not known."""
    if known is None:
        return np.zeros(0, np.int8)
    if len(known) != len(types):
        raise ParameterError(f"known: there are {len(types)} words, and cuts of {len(known)}")
    offsets = types.letters.offsets - types.letters.offsets[0]
    marks = np.full(int(offsets[-1]), -1, np.int8)
    for word, cuts in enumerate(known):
        if cuts is not None:
            own = marks[offsets[word] : offsets[word + 1]]
            own[:] = 0
            for cut in cuts:
                if not 0 < cut < len(own):
                    raise ParameterError(f"known: word {word} has {len(own)} letters, and cannot be cut after {cut}")
                own[cut - 1] = 1
    return marks
