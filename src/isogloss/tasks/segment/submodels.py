"""What a model of morphemes is made of: how long they are, how they are spelt, which follow, and how words end."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.ragged import Ragged
from isogloss.errors import ModelError, ParameterError
from isogloss.layout import LARGEST, REMEDY, integer, number
from isogloss.learners.backoff import BackOff, Level
from isogloss.learners.multinomials import LogLinearMultinomial
from isogloss.tasks.segment.affixes import Affixes
from isogloss.tasks.segment.types import Substrings, WordTypes

__all__ = [
    "LABELS", "MODELS", "PREFIX", "STEM", "SUFFIX", "Emissions", "Ends", "MorphemeSettings", "Spelling", "Transitions",
]  # fmt: skip

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PREFIX, STEM, SUFFIX = 0, 1, 2
LABELS = ("prefix", "stem", "suffix")
MODELS = ("up", "hmmp-basic", "hmmp", "full")
"""What is modelled: morphemes alone; their types, with uniform transitions; learnt transitions; ends of words, too."""
MOST_LETTERS = 64
"""A morpheme of a saved model has no more."""
LEAST = 1e-300
"""The smallest probability of a string by its spelling, so that no string is impossible, however long and strange."""
UNUSUAL = -10.0
"""Log weight of a stem that is too short, and of an affix that is too long."""
PLAIN = 0
"""The label of a morpheme that is in no list, in models without types; with 1 it is a prefix, with 2 a suffix, with 3
either."""


@dataclass(frozen=True)
class MorphemeSettings:
    """What a morpheme model is and how it is learnt.

    The model of Naradowsky and Toutanova as they give it has ``leave_out=False, base_power=1, shortest_stem=1`` and
    `longest_affix` as long as `longest`.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    length_penalty : float
        A morpheme of l letters has weight exp(−l^length_penalty); 0 for no penalty.
    iterations : int
        Of EM, after the first ones.
    first_iterations : int
        Iterations before them with uniform transitions and without ends of words, of "full" alone.
    longest : int
        The most letters of a morpheme.
    base_power : float
        Power of the spelling model below morphemes: below 1, new stems cost less than their letters.
    leave_out : bool
        Take from the count of each morpheme the most that a single place in a word has given to it, so that words do
        not support themselves; what is taken says how probable new morphemes are.
    shortest_stem, longest_affix : int
        Stems of fewer and affixes of more letters have the weight e⁻¹⁰.
    n_prefixes, n_suffixes : int
        Prefixes and suffixes are those of lists of so many (`isogloss.tasks.segment.affixes`), and every boundary is
        beside one of them; 0 of both for no lists.
    base_weight, shared_weight, ends_weight : float
        Pseudo-counts of the spelling model below morphemes, of morphemes below those of a type, and of ends of words.
    variance : float
        Of the prior on weights of transitions.
    prefix_may_end : bool
        Whether a prefix may end a word.
    exact : bool
        Smooth in a single level, as a maximum a posteriori estimate, so that the objective never falls.
    """

    model: str = "full"
    length_penalty: float = 1.3
    iterations: int = 10
    first_iterations: int = 5
    longest: int = 12
    base_power: float = 0.6
    leave_out: bool = True
    shortest_stem: int = 3
    longest_affix: int = 4
    n_prefixes: int = 0
    n_suffixes: int = 0
    base_weight: float = 1.0
    shared_weight: float = 1.0
    ends_weight: float = 1.0
    variance: float = 10.0
    prefix_may_end: bool = False
    exact: bool = False

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ParameterError(f"model should be one of {', '.join(MODELS)}, not {self.model!r}")
        if self.exact and (self.leave_out or self.base_power != 1 or self.listed):
            raise ParameterError("exact: needs leave_out=False, base_power=1 and no lists of affixes")

    @property
    def listed(self) -> bool:
        """Whether affixes are those of lists."""
        return self.n_prefixes + self.n_suffixes > 0

    @property
    def typed(self) -> bool:
        """Whether morphemes have types."""
        return self.model != "up"

    @property
    def n_labels(self) -> int:
        """Types; without them one or, where affixes are listed, one for each kind of string."""
        return len(LABELS) if self.typed else 4 if self.listed else 1

    @property
    def warming(self) -> int:
        """Iterations of the simpler model at the beginning."""
        return self.first_iterations if self.model == "full" else 0

    def penalty(self) -> Array:
        """float64[n_labels, longest + 1]: log weights of lengths."""
        lengths = np.arange(self.longest + 1, dtype=np.float64)
        own = -(lengths**self.length_penalty) if self.length_penalty else np.zeros(len(lengths))
        found = np.repeat(own[np.newaxis], self.n_labels, axis=0)
        if self.typed:
            found[STEM, : self.shortest_stem] += UNUSUAL
            found[PREFIX, self.longest_affix + 1 :] += UNUSUAL
            found[SUFFIX, self.longest_affix + 1 :] += UNUSUAL
        return found

    def allowed_steps(self) -> NDArray[np.bool_]:
        """bool[2, k + 1, k + 1]: steps that words may have, the last row and column as in `SemiMarkov2`.

        No suffix begins a word or follows a prefix.
        """
        k = self.n_labels
        allowed = np.ones((2, k + 1, k + 1), np.bool_)
        if self.typed:
            allowed[0, PREFIX, SUFFIX] = False
            allowed[1, :, SUFFIX] = False
            allowed[1, PREFIX, :] = self.prefix_may_end
            allowed[1, PREFIX, SUFFIX] = False
        return allowed

    def unusual_steps(self) -> NDArray[np.bool_]:
        """bool[2, k + 1, k + 1]: steps of weight e⁻¹⁰; with lists, those between two morphemes of which none is listed.

        They are left to words that are longer than the longest morpheme.
        """
        k = self.n_labels
        unusual = np.zeros((2, k + 1, k + 1), np.bool_)
        if self.listed and self.typed:
            unusual[0, STEM, STEM] = True
        elif self.listed:  # the first should be a prefix, or the second a suffix
            unusual[0, :k, :k] = ~(np.isin(np.arange(k), (1, 3))[:, np.newaxis] | np.isin(np.arange(k), (2, 3)))
        return unusual


class Spelling(NamedTuple):
    """A model of letters: morphemes are drawn letter by letter, and stop after each with the same probability.

    .. math:: P_0(c_1 \\dots c_l) = \\big(s\\,(1 - s)^{l - 1} \\prod_i p(c_i)\\big)^{power}
    """

    letters: Array
    """float64[n_letters + 1]: log weight of each letter, and of one that is not known, with that of going on to it."""
    stop: float
    """Log weight of stopping, less that of going on, which the first letter has too much."""

    @classmethod
    def of(cls, types: WordTypes, power: float = 1.0) -> Spelling:
        """Relative frequencies of letters, each and one unknown counted once more; as many stops as there are words."""
        lengths, size = types.letters.lengths, len(types.alphabet) + 1
        counts = np.bincount(types.letters.flat, np.repeat(types.weights, lengths), size)[:size] + 1.0
        total = float(types.weights @ lengths)
        stop = min(float(types.weights.sum()) / total, 0.5) if total else 0.5
        going = np.log1p(-stop)
        return cls(power * (np.log(counts / counts.sum()) + going), float(power * (np.log(stop) - going)))

    def of_strings(self, substrings: Substrings) -> Array:
        """float64[n]: log weights of strings."""
        found, lengths = self.letters[substrings.letters], substrings.lengths
        for depth in range(2, int(lengths.max(initial=0)) + 1):
            here = np.flatnonzero(lengths == depth)
            found[here] += found[substrings.parents[here]]
        return np.asarray(found + self.stop)


class Emissions:
    r"""Morphemes of each type, backed off to those of any type and these to their spelling.

    .. math:: P(\mu \mid \tau) = \frac{c(\mu, \tau) + \alpha_1 P_1(\mu)}{c(\tau) + \alpha_1}, \qquad
        P_1(\mu) = \frac{c(\mu) + \alpha_0 P_0(\mu)}{c + \alpha_0}

    With `leave_out`, :math:`c(\mu, \tau)` in the numerator lacks the most that a single place in a word has given it,
    and :math:`\alpha_1` is raised by the sum of what is lacking; likewise below.
    """

    def __init__(
        self, settings: MorphemeSettings, substrings: Substrings, spelling: Spelling, affixes: Affixes
    ) -> None:
        n, k = len(substrings), settings.n_labels
        self.settings, self.shape = settings, (n, k)
        self.base = np.maximum(np.exp(spelling.of_strings(substrings)), LEAST)
        self.allowed, self.unlisted = _allowed(settings, substrings, affixes)
        events, once = np.arange(n * k), np.arange(n)
        if settings.exact and settings.typed:
            levels = [Level(events % k, events // k, settings.base_weight)]
        else:
            levels = [Level(np.zeros(n, np.int64), once, settings.base_weight)]
            if settings.typed:
                levels.append(Level(events % k, events // k, settings.shared_weight))
        self.backoff = BackOff(levels)

    def start(self) -> tuple[Array, Array]:
        """Morphemes as their spelling says, all types alike."""
        return self._logs(np.repeat(self.base[:, np.newaxis], self.shape[1], axis=1), np.ones(self.shape[1]))

    def fit(self, counts: Array, largest: Array, largest_typed: Array) -> tuple[Array, Array]:
        """Log probabilities of strings, [n, k], and what unseen ones of each type have beside their spelling."""
        k = self.shape[1]
        own = counts.ravel() if self.settings.typed else counts.sum(axis=1)
        removed = None
        if self.settings.leave_out:
            removed = [largest, largest_typed.ravel()][: len(self.backoff.levels)]
        found = self.backoff.probabilities(own, self.base, removed)
        others = self.backoff.remainders(own, removed)
        if not self.settings.typed:
            return self._logs(np.repeat(found[:, np.newaxis], k, axis=1), np.repeat(others, k))
        return self._logs(found.reshape(self.shape), others)

    def _logs(self, table: Array, unseen: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore"):
            return np.where(self.allowed, np.log(table), -np.inf), np.where(self.unlisted, np.log(unseen), -np.inf)

    def log_prior(self, table: Array, unseen: Array) -> float:
        """Σ α P₀(μ) log P(μ | τ) over all strings, but for a constant; of `exact` alone."""
        rest = max(0.0, 1.0 - float(self.base.sum()))
        return self.settings.base_weight * float(self.base @ table.sum(axis=1) + rest * unseen.sum())


def _allowed(
    settings: MorphemeSettings, substrings: Substrings, affixes: Affixes
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool[n, k] and bool[k]: the labels that strings may have, and those of strings that are in no list."""
    n, k = len(substrings), settings.n_labels
    if not settings.listed:
        return np.ones((n, k), np.bool_), np.ones(k, np.bool_)
    listed = np.zeros((2, n), np.bool_)
    for own, strings in zip(listed, affixes, strict=True):
        found = substrings.find(Ragged.of(strings))
        own[found[found >= 0]] = True
    if settings.typed:
        return np.stack([listed[0], np.ones(n, np.bool_), listed[1]], axis=1), np.arange(k) == STEM
    return (listed[0] + 2 * listed[1])[:, np.newaxis] == np.arange(k), np.arange(k) == PLAIN


class Ends:
    r"""Whether a word ends after a morpheme, :math:`P(b_i \mid \tau_i, b_{i-1}, b_{i-2})`.

    It is backed off to :math:`P(b_i \mid \tau_i)`, then to :math:`P(b_i)` and to 1/2. What two boundaries before say is
    whether a morpheme is the first of its word, the second, or a later one.
    """

    def __init__(self, settings: MorphemeSettings) -> None:
        k, alpha = settings.n_labels, settings.ends_weight
        self.k, self.alpha = k, alpha
        events = np.arange(6 * k)  # [2, 3, k]
        either = Level(np.zeros(2, np.int64), np.arange(2), alpha)
        by_type = Level(np.arange(2 * k) % k, np.arange(2 * k) // k, alpha)
        by_place = Level(events % (3 * k), events // (3 * k) * k + events % k, alpha)
        alone = Level(events % (3 * k), events // (3 * k), alpha)
        self.backoff = BackOff([alone] if settings.exact else [either, by_type, by_place])

    def fit(self, counts: Array) -> Array:
        """float64[2, 3, k]: log probabilities of going on and of ending, by place and type."""
        found = self.backoff.probabilities(counts.ravel(), np.array([0.5, 0.5]))
        return np.log(found).reshape(2, 3, self.k)

    def log_prior(self, logs: Array) -> float:
        """The log prior of `exact`, in which every place and type has a level of its own."""
        return 0.5 * self.alpha * float(logs.sum())


class Transitions:
    """Steps between types of morphemes: log-linear, with a feature for each pair of types and each first type."""

    def __init__(self, settings: MorphemeSettings) -> None:
        from scipy.sparse import identity

        self.k, self.allowed = settings.n_labels, settings.allowed_steps()
        self.extra = np.where(settings.unusual_steps(), UNUSUAL, 0.0)
        k = self.k
        self.mask = np.concatenate([self.allowed[0, :k, :k], self.allowed[1, k:, :k]])
        self.mask[~self.mask.any(axis=1)] = True
        self._model = LogLinearMultinomial(
            identity(self.mask.size, format="csr"), k + 1, l2=1.0 / settings.variance, allowed=self.mask.ravel()
        )

    @property
    def n_weights(self) -> int:
        return self._model.n_weights

    def steps(self, weights: Array) -> Array:
        """float64[2, k + 1, k + 1]: log probabilities; −∞ where not allowed, and 0 for the step to the end."""
        k = self.k
        rows = self._model.log_probs(weights).reshape(k + 1, k)
        out = np.full((2, k + 1, k + 1), -np.inf)
        out[0, :k, :k] = rows[:k]
        out[1, :, :k] = rows[k]
        out[1, :k, k] = 0.0
        return np.where(self.allowed, out + self.extra, -np.inf)

    def free(self) -> Array:
        """The same with score 0 for all steps that are allowed: where morphemes have no types."""
        return np.where(self.allowed, self.extra, -np.inf)

    def fit(self, counts: Array, start: Array) -> Array:
        """Weights for expected counts of steps."""
        k = self.k
        across = counts[1, :, :k].sum(axis=0)[np.newaxis]
        wanted = np.concatenate([counts[0, :k, :k], across]) * self.mask
        return self._model.fit(wanted, start).weights

    def log_prior(self, weights: Array) -> float:
        return self._model.log_prior(weights)


def settings_of(meta: Any) -> MorphemeSettings:
    """From what a saved model has, checked."""
    if not isinstance(meta, dict) or {*meta} != {one.name for one in fields(MorphemeSettings)}:
        raise ModelError(f"the settings of morphemes are not complete. {REMEDY}")
    for name, value in meta.items():
        if name == "model":
            if value not in MODELS:
                raise ModelError(f"there is no model {value!r:.40} of morphemes. {REMEDY}")
        elif name in ("leave_out", "prefix_may_end", "exact"):
            if not isinstance(value, bool):
                raise ModelError(f"{name!r} should be true or false, not {value!r:.40}. {REMEDY}")
        elif name in ("length_penalty", "base_power", "base_weight", "shared_weight", "ends_weight"):
            number(value, name, least=0, most=10 if name == "length_penalty" else LARGEST)
        elif name == "variance":
            number(value, name, least=1e-6)
        else:
            integer(value, name, least=int(name == "longest"), most=MOST_LETTERS if name == "longest" else 2**31)
    try:
        return MorphemeSettings(**meta)
    except ParameterError as finding:
        raise ModelError(f"{finding}. {REMEDY}") from finding
