r"""Quasi-synchronous grammars: a grammar of one language learnt beside trees of another, through word links.

Each target word has one of the source words that it is linked to as its *sense*, and generates its children's senses as
well as their tags:

.. math:: p(y, y' \mid x, x', d, v) = \frac{p(c)}{\sum_{c' \text{ that } x' \text{ has}} p(c')} \cdot
    \frac{1}{|\{y'' : c(x', y'') = c\}|} \cdot p_{child}(y \mid x, d, v), \qquad c = c(x', y')

where *c* is how the source words stand to each other in the source tree (`CONFIGURATIONS`). If every source word were
possible for every target word, senses would sum out and say nothing; what is learnt comes from the links.

References
----------
D. A. Smith, Efficient inference for trees and alignments, PhD thesis, Johns Hopkins 2010, section 4.6; D. A. Smith and
Eisner, Parser adaptation and projection with quasi-synchronous grammar features, EMNLP 2009. The factorisation is ours:
the text prints none. So is that a child of an unaligned head has any source word, or none, with the same probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isogloss.data._numba.trees import first_problem
from isogloss.errors import ParameterError
from isogloss.learners.em import EM
from isogloss.learners.runner import run
from isogloss.structures import SenseTrees
from isogloss.tasks.parse.configurations import CONFIGURATIONS as OF_TREES
from isogloss.tasks.parse.configurations import NULL
from isogloss.tasks.parse.configurations import configurations as of_trees
from isogloss.tasks.parse.induction.grammar import Events, TagText, ValenceGrammar
from isogloss.tasks.parse.induction.learning import GrammarModel, Tables, starting_events

__all__ = ["CONFIGURATIONS", "QuasiText", "configurations", "learn_beside"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

CONFIGURATIONS = (*OF_TREES, "unaligned")
"""How the sense of a child stands to that of its head: those of `isogloss.tasks.parse.configurations`, "null" for a
child without a sense; and, for heads without a sense, anything."""
UNALIGNED = len(OF_TREES)
START = np.array([0.01, 0.9, 0.02, 0.02, 0.02, 0.01, 0.005, 0.015])
"""What configurations begin with, but for the last: few links break up what is linked in the source."""
SMOOTHING = 0.1
"""Added to the counts of configurations."""
ROUNDS = 20
"""Steps of each M-step of configurations."""


def configurations(heads: ArrayLike) -> Integers:
    """int64[m+1, m+1]: the configuration of each source node (the root is 0) and each source word, from 1; column 0 is
    NULL.

    Parameters
    ----------
    heads : int[m]
        0 for the root.

    Examples
    --------
    >>> [CONFIGURATIONS[c] for c in configurations([2, 0, 2])[1]]  # of word 1: NULL, itself, its head, its sister
    ['null', 'same', 'child-parent', 'siblings']
    """
    given = np.asarray(heads, np.int32)
    m = len(given)
    if m and not 0 <= given.min() <= given.max() <= m:
        raise ParameterError(f"configurations: {m} heads from 0 to {m} are needed, not {heads!r}")
    bounds = np.array([0, m], np.int64)
    problem, word, _ = first_problem(bounds, np.where(given == 0, -1, given).astype(np.int32), False)
    if problem:
        raise ParameterError(f"configurations: the heads have a cycle above word {int(word) + 1}")
    found = of_trees(given, bounds)[0].astype(np.int64)
    found[:, 0] = NULL
    return found


class QuasiText:
    """Target sentences, their senses, and how the senses of all pairs of slots stand to each other.

    Parameters
    ----------
    text : TagText
        The target words.
    source_heads : for each sentence int[m]
        The source tree, 0 for the root.
    candidates : for each sentence a list for each target word
        The source words, from 1, that it may be linked to, and 0 for none; an empty list is [0].
    """

    def __init__(
        self, text: TagText, source_heads: Sequence[ArrayLike], candidates: Sequence[Sequence[Sequence[int]]]
    ) -> None:
        if not len(text) == len(source_heads) == len(candidates):
            raise ParameterError("QuasiText: source_heads and candidates are needed for every sentence")
        self.senses: list[Integers] = []
        tags: list[Integers] = []
        made: list[tuple[Integers, Array, Integers]] = []
        for s, (own, heads, linked) in enumerate(zip(text.sentences(), source_heads, candidates, strict=True)):
            if len(linked) != len(own):
                raise ParameterError(f"QuasiText: sentence {s} has {len(own)} words, but candidates of {len(linked)}")
            listed = [list(words) or [0] for words in linked]
            senses = np.array([len(words) for words in listed], np.int64)
            source = np.array([word for words in listed for word in words], np.int64)
            made.append(_pairs(configurations(heads), source, s))
            self.senses.append(senses)
            tags.append(np.repeat(own, senses))
        ends = np.cumsum([0, *(len(one) for one in tags)])
        self.text = TagText(np.concatenate([np.zeros(0, np.int64), *tags]), ends, text.n_tags)
        self.configuration: Integers = np.concatenate([np.zeros(0, np.int64), *(one[0] for one in made)])
        self.log_count: Array = np.concatenate([np.zeros(0), *(one[1] for one in made)])
        self.mask: Integers = np.concatenate([np.zeros(0, np.int64), *(one[2] for one in made)])

    def log_senses(self, chances: Array) -> Array:
        """float64[n_links]: log p(sense of the child | sense of the head)."""
        with np.errstate(divide="ignore"):
            log_chance, log_whole = np.log(np.append(chances, 1.0)), np.log(_BITS @ chances)
        known = self.configuration != UNALIGNED
        whole = np.where(known, log_whole[self.mask], 0.0)
        return np.asarray(log_chance[self.configuration] - whole - self.log_count)


_BITS = (np.arange(1 << NULL + 1)[:, None] >> np.arange(NULL + 1) & 1).astype(np.float64)
"""float64[256, 8]: which configurations are in a set."""


def _pairs(table: Integers, source: Integers, sentence: int) -> tuple[Integers, Array, Integers]:
    """Configuration, log number of source words that have it, and the set that the head has, of all links of slots."""
    m = len(table) - 1
    if len(source) and not 0 <= source.min() <= source.max() <= m:
        raise ParameterError(f"QuasiText: candidates of sentence {sentence} should be from 0 to {m}")
    counts = np.array([np.bincount(row, minlength=NULL + 1) for row in table])
    sets = (counts > 0) @ (1 << np.arange(NULL + 1))
    head, child = np.append(0, source), np.append(0, source)
    found = table[head][:, child]
    number = counts[head[:, None], found]
    sets_of = np.repeat(sets[head][:, None], len(child), axis=1)
    lost = np.append(False, source == 0)  # heads without a sense
    found[lost], number[lost], sets_of[lost] = UNALIGNED, m + 1, 0
    return found.ravel(), np.log(number.ravel()), sets_of.ravel()


@dataclass(eq=False)
class _Counts:
    """Expected numbers of decisions, of configurations, and of heads that had a set of them to choose from."""

    events: Events
    chosen: Array
    sets: Array

    def __iadd__(self, other: _Counts) -> _Counts:
        self.events += other.events
        self.chosen, self.sets = self.chosen + other.chosen, self.sets + other.sets
        return self


@dataclass(frozen=True, eq=False)
class _QuasiModel(GrammarModel):
    """Grammars and configurations of one text, for `EM`."""

    quasi: QuasiText | None = None

    def zero_counts(self) -> Any:
        return _Counts(super().zero_counts(), np.zeros(NULL + 1), np.zeros(len(_BITS)))

    def distributions(self, params: Tables, batch: Any) -> Any:
        assert self.quasi is not None
        plain = self.grammar(params).trees(self.text)
        links = plain.scores.values + self.quasi.log_senses(params["configurations"])
        stacks = (plain.scores.like(links), plain.stops, plain.children)
        return SenseTrees(*stacks, self.quasi.senses, nearest_first=self.nearest_first)

    def expected_counts(self, batch: Any, q: Any) -> Any:
        assert self.quasi is not None
        links = q.marginals().values
        known = self.quasi.configuration != UNALIGNED
        chosen = np.bincount(self.quasi.configuration[known], links[known], NULL + 1).astype(np.float64)
        sets = np.bincount(self.quasi.mask, links, len(_BITS)).astype(np.float64)
        return _Counts(Events.of(self.text, q, self.classes), chosen, sets)

    def improve(self, params: Tables, counts: Any) -> Tables:
        tables = super().improve(params, counts.events)
        return {**tables, "configurations": _chances(params["configurations"], counts.chosen, counts.sets)}

    def log_prior(self, params: Tables) -> float:
        return super().log_prior(params) + SMOOTHING * float(np.log(params["configurations"]).sum())


def _chances(before: Array, chosen: Array, sets: Array) -> Array:
    """Better chances of configurations, each set of which is normalised by itself.

    Σ_c n_c log p_c − Σ_S N_S log Σ_{c ∈ S} p_c never falls (Hunter, MM algorithms for generalized Bradley-Terry models,
    Annals of Statistics 2004); smoothing is a set of all.
    """
    wins, played = chosen + SMOOTHING, sets.copy()
    played[0] = 0.0  # heads without a sense choose no configuration
    played[-1] += SMOOTHING * len(chosen)
    chances = before
    for _ in range(ROUNDS):
        whole = _BITS @ chances
        chances = wins / (_BITS.T @ np.divide(played, whole, out=np.zeros_like(played), where=played > 0))
        chances = chances / chances.sum()
    return np.asarray(chances)


def learn_beside(
    quasi: QuasiText,
    *,
    classes: tuple[int, int] = (2, 1),
    back_off: float = 1.0,
    start: str = "uniform",
    iterations: int = 50,
    tolerance: float = 1e-5,
) -> tuple[ValenceGrammar, Array, Array]:
    """Conditional EM: the grammar of the target, the chances of configurations, and the objective of each step.

    The grammar is used without the source, as any other: ``grammar.smoothed(...).trees(text).argmax()``.

    Parameters
    ----------
    quasi : QuasiText
    classes, back_off, start, iterations, tolerance
        As for `GrammarInducer`; `classes` are those of stops and of children. "uniform" knows configurations alone.
    """
    model = _QuasiModel(quasi.text, classes, back_off, quasi=quasi)
    params = model.first(starting_events(quasi.text, classes, start))
    params["configurations"] = START / START.sum()
    learner: EM[Any, Any, Any] = EM(model, [[quasi.text]])
    result = run(learner, learner.init(params), iterations=iterations, tolerance=tolerance, name="Conditional EM")
    return model.grammar(result.state.params), result.state.params["configurations"], result.trace
