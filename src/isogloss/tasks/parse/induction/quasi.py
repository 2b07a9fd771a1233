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
from isogloss.progress import Progress
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
    table, _ = _table(given, np.array([0, len(given)], np.int64))
    return table.astype(np.int64).reshape(len(given) + 1, -1)


def _table(heads: ArrayLike, offsets: Integers) -> tuple[NDArray[np.int8], Integers]:
    """Configurations of all pairs of nodes, those of all sentences one after the other, and where each begins."""
    given = np.asarray(heads, np.int32)
    found = of_trees(given, offsets)
    # several roots are no fault here
    problem, word, _ = first_problem(offsets, np.where(given == 0, -1, given).astype(np.int32), False)
    if problem:
        s = int(np.searchsorted(offsets, word, side="right")) - 1
        raise ParameterError(f"configurations: sentence {s}: the heads have a cycle above word {word - offsets[s] + 1}")
    widths = np.diff(offsets) + 1
    table, size = found.values.copy(), np.repeat(widths, widths**2)
    table[(np.arange(len(table)) - np.repeat(found.offsets[:-1], widths**2)) % np.maximum(size, 1) == 0] = NULL
    return table, found.offsets


class QuasiText:
    """Target sentences, their senses, and how the senses of all pairs of slots stand to each other.

    Parameters
    ----------
    text : TagText
        The target words.
    heads : int[n_source_words]
        The source trees of all sentences: 0 for the root, 1 to m within the sentence, −1 where not known.
    source_offsets : int64[n_sentences + 1]
    candidates : int64[n_candidates]
        The source words, from 1 within the sentence, that target words may be linked to, and 0 for none, one target
        word after the other.
    starts : int64[n_words + 1]
        Where those of each target word begin. A word that has none may have no sense, and nothing else.
    renormalised : bool
        Whether chances of configurations are divided by the sum of those that the head's sense has at all, as above.
        Otherwise what it lacks is lost, :math:`p(c) / |\\{y'' : c(x', y'') = c\\}|`: a source word without children
        then is a poor sense of a head. Renormalised, its own head below it is as probable as a quarter, under the
        chances that learning begins with.
    """

    def __init__(
        self,
        text: TagText,
        heads: ArrayLike,
        source_offsets: ArrayLike,
        candidates: ArrayLike,
        starts: ArrayLike,
        *,
        renormalised: bool = True,
    ) -> None:
        bounds, begin = np.asarray(source_offsets, np.int64), np.asarray(starts, np.int64)
        if len(bounds) != len(text) + 1 or len(begin) != len(text.tags) + 1:
            raise ParameterError("QuasiText: source_offsets of every sentence and starts of every word are needed")
        lengths, counts = np.diff(bounds), np.diff(begin)
        senses = np.maximum(counts, 1)
        first = np.concatenate([[0], np.cumsum(senses)]).astype(np.int64)
        source = np.zeros(first[-1], np.int64)
        source[np.arange(begin[-1]) + np.repeat(first[:-1] - begin[:-1], counts)] = candidates
        ends = first[text.offsets]
        most = np.repeat(lengths, np.diff(ends))
        wrong = np.flatnonzero((source < 0) | (source > most))
        if len(wrong):
            s = int(np.searchsorted(ends, wrong[0], side="right")) - 1
            raise ParameterError(f"QuasiText: candidates of sentence {s} should be from 0 to {lengths[s]}")
        self.senses: list[Integers] = np.split(senses, text.offsets[1:-1]) if len(text) else []
        self.text = TagText(np.repeat(text.tags, senses), ends, text.n_tags)
        self._describe(_Sources.of(heads, bounds), source, renormalised)

    @classmethod
    def of(
        cls,
        text: TagText,
        source_heads: Sequence[ArrayLike],
        candidates: Sequence[Sequence[Sequence[int]]],
        *,
        renormalised: bool = True,
    ) -> QuasiText:
        """From a source tree, and a list of candidates for each target word, of each sentence."""
        if not len(text) == len(source_heads) == len(candidates):
            raise ParameterError("QuasiText: source_heads and candidates are needed for every sentence")
        for s, (size, linked) in enumerate(zip((text.sizes - 1).tolist(), candidates, strict=True)):
            if len(linked) != size:
                raise ParameterError(f"QuasiText: sentence {s} has {size} words, but candidates of {len(linked)}")
        trees = [np.asarray(heads, np.int32) for heads in source_heads]
        words = [np.asarray(words, np.int64) for linked in candidates for words in linked]
        return cls(
            text,
            np.concatenate([np.zeros(0, np.int32), *trees]),
            np.cumsum([0, *map(len, trees)]),
            np.concatenate([np.zeros(0, np.int64), *words]),
            np.cumsum([0, *map(len, words)]),
            renormalised=renormalised,
        )

    def _describe(self, sources: _Sources, source: Integers, renormalised: bool) -> None:
        """Configuration, log number of source words that have it, and the set that the head has, of all links."""
        sizes = self.text.sizes
        sentence = np.repeat(np.arange(len(self.text)), sizes**2)
        head, child = self.text.at_ends(self.text.of_nodes(source))
        node, width = sources.first[sentence] + head, sources.widths[sentence]
        found = sources.table[sources.places[sentence] + head * width + child].astype(np.int64)
        number, sets = sources.counts[node, found], sources.sets[node]
        lost = (self.text.ends[0] > 0) & (head == 0)  # heads without a sense
        self.configuration: Integers = np.where(lost, UNALIGNED, found)
        self.log_count: Array = np.log(np.where(lost, width, number))
        self.mask: Integers = np.where(lost, 0, sets if renormalised else len(_BITS) - 1)

    def log_senses(self, chances: Array) -> Array:
        """float64[n_links]: log p(sense of the child | sense of the head)."""
        with np.errstate(divide="ignore"):
            log_chance, log_whole = np.log(np.append(chances, 1.0)), np.log(_BITS @ chances)
        known = self.configuration != UNALIGNED
        whole = np.where(known, log_whole[self.mask], 0.0)
        return np.asarray(log_chance[self.configuration] - whole - self.log_count)


_BITS = (np.arange(1 << NULL + 1)[:, None] >> np.arange(NULL + 1) & 1).astype(np.float64)
"""float64[256, 8]: which configurations are in a set."""


@dataclass(frozen=True, eq=False)
class _Sources:
    """Configurations in all source trees.

    table : int8[n_pairs], with those of sentence *s* from ``places[s]`` on, [m + 1, m + 1]
    widths : int64[n_sentences], m + 1
    first : int64[n_sentences], the number of the root of each sentence among all nodes
    counts : int64[n_nodes, 8], how many nodes stand in each configuration to a node
    sets : int64[n_nodes], which configurations that are, as bits
    """

    table: NDArray[np.int8]
    places: Integers
    widths: Integers
    first: Integers
    counts: Integers
    sets: Integers

    @classmethod
    def of(cls, heads: ArrayLike, offsets: Integers) -> _Sources:
        table, places = _table(heads, offsets)
        widths = np.diff(offsets) + 1
        first = np.cumsum(widths) - widths
        node = np.repeat(np.arange(widths.sum()), np.repeat(widths, widths))
        counts = np.bincount(node * (NULL + 1) + table, minlength=int(widths.sum()) * (NULL + 1)).reshape(-1, NULL + 1)
        return cls(table, places, widths, first, counts, (counts > 0) @ (1 << np.arange(NULL + 1)))


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
    fixed: bool = False

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
        if self.fixed:
            return {**tables, "configurations": params["configurations"]}
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
    nearest_first: bool = True,
    fixed: bool = False,
    start: str = "uniform",
    iterations: int = 50,
    tolerance: float = 1e-5,
    progress: Progress | None = None,
    **keeping: Any,
) -> tuple[ValenceGrammar, Array, Array]:
    """Conditional EM: the grammar of the target, the chances of configurations, and the objective of each step.

    The grammar is used without the source, as any other: ``grammar.smoothed(...).trees(text).argmax()``.

    Parameters
    ----------
    quasi : QuasiText
    classes, back_off, nearest_first, start, iterations, tolerance
        As for `GrammarInducer`; `classes` are those of stops and of children. "uniform" knows configurations alone.
    fixed : bool
        Whether chances of configurations stay as they begin, at 0.9 for head and child.
    progress, keeping
        As for `isogloss.learners.runner.run`.
    """
    model = _QuasiModel(quasi.text, classes, back_off, nearest_first=nearest_first, quasi=quasi, fixed=fixed)
    params = model.first(starting_events(quasi.text, classes, start, nearest_first))
    params["configurations"] = START / START.sum()
    learner: EM[Any, Any, Any] = EM(model, [[quasi.text]])
    result = run(
        learner, learner.init(params), iterations=iterations, tolerance=tolerance, progress=progress,
        name="Conditional EM", **keeping,
    )  # fmt: skip
    return model.grammar(result.state.params), result.state.params["configurations"], result.trace
