"""`BilingualModel`: morphemes that come from the words of a translation, learnt by EM from sentence pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.ragged import Ragged
from isogloss.learners.backoff import BackOff, Level
from isogloss.learners.em import EM
from isogloss.learners.runner import run
from isogloss.progress import Progress
from isogloss.structures.aligned_segments import AlignedSegmentsBatch
from isogloss.structures.batch import run_sentences
from isogloss.tasks.segment.affixes import Affixes, mine_affixes
from isogloss.tasks.segment.distortion import Distortion
from isogloss.tasks.segment.lattices import WordLattices
from isogloss.tasks.segment.morphemes import LITTLE, MorphemeModel, Morphemes, best_threshold
from isogloss.tasks.segment.pairs import Cells, Pairs, Params, SentencePairs, cell_offsets, numbered, offsets_of
from isogloss.tasks.segment.submodels import Emissions, Ends, Transitions
from isogloss.tasks.segment.types import Substrings, WordTypes

__all__ = ["BilingualModel", "BilingualSettings", "Judged"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
SOME = 2_000
"""Sentence pairs by which the threshold is chosen."""
NEGLIGIBLE = 1e-7
"""Pairs of a morpheme and a source word that are less probable than this beyond their back-off are forgotten."""


@dataclass(frozen=True)
class BilingualSettings:
    """How morphemes are learnt together with the words that they come from.

    Parameters
    ----------
    iterations : int
        Of EM, after the first ones.
    first_iterations : int
        Iterations before them in which all source positions are equally probable.
    distortion : str
        "learnt", or "uniform" for all iterations.
    source_weight : float
        Pseudo-counts of the morphemes of a type below those that come from a source word.
    variance : float
        Of the prior on weights of distortion.
    leave_out : bool
        Take from the count of a morpheme and a source word the most that a single place has given it.
    least : float
        The smallest posterior, in the model of words alone, of a morpheme that is looked at in a word.
    exact : bool
        Smooth in a single level and count every word as often as it occurs, so that the objective never falls.
    """

    iterations: int = 8
    first_iterations: int = 3
    distortion: str = "learnt"
    source_weight: float = 3.0
    variance: float = 10.0
    leave_out: bool = True
    least: float = 0.01
    exact: bool = False


class _Counts:
    """Expected counts of pairs of a morpheme and a source word, of arcs of words, and of steps."""

    def __init__(self, n_entries: int, n_arcs: int, n_steps: int) -> None:
        self.entries, self.largest = np.zeros(n_entries), np.zeros(n_entries)
        self.arcs, self.steps = np.zeros(n_arcs), np.zeros(n_steps)

    def __iadd__(self, batch: tuple[Pairs, AlignedSegmentsBatch]) -> _Counts:
        from isogloss.tasks.segment._numba.bilingual import count_pairs

        pairs, marginals = batch[0], batch[1].marginals()
        own, words = pairs.lattices, pairs.given.words
        count_pairs(
            words.values, words.offsets, own.arcs_at, own.rows_at, pairs.given.source.offsets, pairs.cells.entries,
            pairs.cells.offsets, pairs.table_offsets, pairs.which_size, marginals.values, marginals.offsets,
            self.entries, self.largest, self.arcs, self.steps,
        )  # fmt: skip
        return self


class _Learning:
    """The model of all sentence pairs as `EM` asks for it; an item of a batch is a range of pairs."""

    def __init__(
        self, pairs: SentencePairs, lattices: WordLattices, n_source: int, model: MorphemeModel,
        settings: BilingualSettings,
    ) -> None:  # fmt: skip
        self.settings, self.mono = settings, model.settings
        k, types = self.mono.n_labels, lattices.types
        strings, spans = Substrings.grown(types.letters, max(1, len(types.alphabet)), self.mono.longest)
        used = np.zeros(len(strings), np.bool_)
        used[spans[lattices.rows[:, 3]]] = True
        self.strings, old = strings.kept(used)
        new = np.full(len(used), -1, np.int64)
        new[old] = np.arange(len(old))
        self.row_strings = new[spans[lattices.rows[:, 3]]]
        self.row_labels = lattices.rows[:, 2]
        self.units = self.row_strings * k + self.row_labels
        affixes = Affixes((), ())
        if self.mono.listed:
            most = min(self.mono.longest_affix, self.mono.longest)
            affixes = mine_affixes(types, self.mono.n_prefixes, self.mono.n_suffixes, longest=most)
        self.emissions = Emissions(self.mono, self.strings, model.spelling, affixes)
        self.ends, self.transitions, self.model = Ends(self.mono), Transitions(self.mono), model
        cells, self.of_entries, self.owners = numbered(pairs, lattices, self.units, n_source, len(self.strings) * k)
        self.pairs, self.n_source = Pairs.of(pairs, lattices, cells), n_source
        contexts = self.owners.astype(np.int64) * k + self.of_entries % k
        self.backoff = BackOff([Level(contexts, self.of_entries.astype(np.int64), settings.source_weight)])
        self.distortion = Distortion(self.pairs.sizes, settings.variance)
        often = np.bincount(pairs.words.flat, minlength=len(types)).astype(np.float64)
        own = often if settings.exact else types.weights
        self.scale = np.divide(own, often, out=np.zeros(len(often)), where=often > 0)
        self.places = np.unique(lattices.rows[:, 3], return_inverse=True)[1]

    def start(self) -> Params:
        """Morphemes as the model of words alone has them, whatever they come from; all positions alike."""
        k, old = self.mono.n_labels, self.model.params
        numbers = self.model.substrings.find(Ragged.of(_letters(self.strings)))
        spelt = self.model.spelling.of_strings(self.strings)[:, np.newaxis] + old.unseen
        table = np.concatenate([spelt, old.table])[np.where(numbers < 0, np.arange(len(numbers)), numbers + len(spelt))]
        if self.settings.exact:
            table = np.repeat(np.log(self.emissions.base)[:, np.newaxis], k, axis=1)
        return Params(
            table.ravel()[self.of_entries], np.zeros((self.n_source + 1) * k), np.ascontiguousarray(table), old.unseen,
            old.ends, old.steps, old.weights, np.zeros(self.distortion.n_weights), np.zeros(1),
        )  # fmt: skip

    def zero_counts(self) -> _Counts:
        own = self.pairs
        return _Counts(len(self.of_entries), len(own.lattices.arcs), int(self.distortion.offsets[-1]))

    def distributions(self, params: Params, batch: Any) -> AlignedSegmentsBatch:
        row_scores = params.table.ravel()[self.units]
        arc_scores = self.pairs.lattices.arc_scores(self.mono.penalty(), params.ends, params.steps)
        return self.pairs.part(batch).distributions(params, row_scores, arc_scores, self.tables(params))

    def tables(self, params: Params) -> Array:
        """Steps between source positions."""
        uniform = self.settings.distortion == "uniform" or params.done[0] < self.settings.first_iterations
        return self.distortion.uniform() if uniform else self.distortion.tables(params.jumps)

    def expected_counts(self, batch: Any, q: AlignedSegmentsBatch) -> Any:
        return self.pairs.part(batch), q

    def improve(self, params: Params, counts: _Counts) -> Params:
        settings, done, k = self.settings, float(params.done[0]) + 1.0, self.mono.n_labels
        own = self._of_words(counts.arcs)
        table, unseen = self.emissions.fit(*own[:3])
        ends = self.ends.fit(own[3]) if self.mono.model == "full" else params.ends
        weights, steps = params.weights, params.steps
        if self.mono.model in ("hmmp", "full"):
            weights = self.transitions.fit(own[4], weights)
            steps = self.transitions.steps(weights)
        base = np.exp(table).ravel()
        if settings.exact:
            base = np.repeat(self.emissions.base, k)
        if self.n_source == 0:  # null alone: as without a source
            entries, shares = table.ravel()[self.of_entries], np.zeros(k)
        else:
            removed = [counts.largest] if settings.leave_out and not settings.exact else None
            with np.errstate(divide="ignore"):
                entries = np.log(self.backoff.probabilities(counts.entries, base, removed))
                found = self.backoff.remainders(counts.entries, removed)
                shares = np.zeros((self.n_source + 1) * k)
                shares[: len(found)] = np.log(found)
            if settings.exact:
                table, unseen = np.log(base).reshape(table.shape), np.zeros(k)
        jumps = params.jumps
        if settings.distortion == "learnt" and done >= settings.first_iterations:
            jumps = self.distortion.fit(counts.steps, jumps)
        return Params(entries, shares, table, unseen, ends, steps, weights, jumps, np.array([done]))

    def _of_words(self, arcs: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Counts as the model of words alone has them: of morphemes, the most of one place, of ends and of steps."""
        lattices, k = self.pairs.lattices, self.mono.n_labels
        rows = lattices.rows_of_arcs
        label = self.row_labels[rows]
        own = arcs * np.repeat(self.scale, np.diff(lattices.arcs_at))
        of_rows = np.bincount(rows, own, len(self.units))
        table = np.bincount(self.units, of_rows, len(self.strings) * k).reshape(-1, k)
        typed = np.zeros(table.size)
        np.maximum.at(typed, self.units, of_rows)
        places = self.places.ravel()
        of_places = np.bincount(places, of_rows)
        whole = np.zeros(len(self.strings))
        np.maximum.at(whole, self.row_strings, of_places[places])
        place, before, ending = lattices.about.T.astype(np.int64)
        ends = np.bincount((ending * 3 + place) * k + label, own, 6 * k).reshape(2, 3, k)
        steps = np.zeros((2, k + 1, k + 1))
        np.add.at(steps, ((before == k).astype(np.int64), before, label), own)
        steps[1, :k, k] += np.bincount(label, own * ending, k)
        return np.asarray(table, np.float64), whole, typed.reshape(-1, k), np.asarray(ends, np.float64), steps

    def finished(self, params: Params, vocabulary: tuple[str, ...], trace: Array) -> BilingualModel:
        """What was learnt, without pairs that say no more than their back-off."""
        k, strings = self.mono.n_labels, self.strings
        contexts = self.owners.astype(np.int64) * k + self.of_entries % k
        more = np.exp(params.entries) - np.exp(params.shares[contexts] + params.table.ravel()[self.of_entries])
        kept_entries = np.flatnonzero(more > NEGLIGIBLE)
        spelt = self.model.spelling.of_strings(strings)[:, np.newaxis] + params.unseen
        with np.errstate(invalid="ignore"):
            some = (np.abs(np.exp(params.table) - np.exp(spelt)) > NEGLIGIBLE).any(axis=1)
        some[self.of_entries[kept_entries] // k] = True
        small, old = strings.kept(some)
        new = np.full(len(strings), -1, np.int64)
        new[old] = np.arange(len(old))
        units = new[self.of_entries[kept_entries] // k] * k + self.of_entries[kept_entries] % k
        owners = self.owners[kept_entries]
        order = np.lexsort((units, owners))
        morphemes = Morphemes(
            np.ascontiguousarray(params.table[old]), params.unseen, params.ends, params.steps, params.weights,
            self.model.params.done,
        )  # fmt: skip
        words = replace(self.model, substrings=small, params=morphemes)
        return BilingualModel(
            self.settings, words, vocabulary, offsets_of(np.bincount(owners, minlength=self.n_source + 1)),
            units[order].astype(np.int32), params.entries[kept_entries][order], params.shares, params.jumps,
            0.5, trace,
        )  # fmt: skip

    def log_prior(self, params: Params) -> float:
        """0 unless the estimate is exact: back-off has no prior of which it is the mode."""
        if not self.settings.exact:
            return 0.0
        k, alpha = self.mono.n_labels, self.settings.source_weight
        base = np.repeat(self.emissions.base, k)[self.of_entries]
        contexts = self.backoff.levels[0].contexts
        rest = np.bincount(contexts, base, len(params.shares))
        value = alpha * float(base @ params.entries + np.maximum(0.0, 1.0 - rest) @ params.shares)
        if self.mono.model == "full":
            value += self.ends.log_prior(params.ends)
        if self.settings.distortion == "learnt":
            value += self.distortion.log_prior(params.jumps)
        return value + self.transitions.log_prior(params.weights)

    def dump(self, params: Params) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return params._asdict(), {}

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> Params:
        return Params(**arrays)


def _letters(strings: Any) -> list[list[int]]:
    """The letters of each string."""
    found: list[list[int]] = []
    for parent, letter in zip(strings.parents.tolist(), strings.letters.tolist(), strict=True):
        found.append([*(found[parent] if parent >= 0 else []), letter])
    return found


class Judged(NamedTuple):
    """What is believed of some sentences."""

    boundaries: Ragged
    """For each word, the probability of a boundary after each letter but the last."""
    cuts: Ragged
    """int64[., 3]: for each word, begin, end and type of its morphemes."""
    links: list[Array]
    """float64[n_source, n_target] for each sentence: how many morphemes of a word are expected to come from a word of
    the source, 1 at most."""


@dataclass(frozen=True, eq=False)
class BilingualModel:
    r"""A model of the morphemes of a sentence, and of the words of its translation that they come from.

    .. math:: p(\mu, \tau, a \mid e) \propto \prod_i P(\mu_i \mid e_{a_i}, \tau_i)\, P(\tau_i \mid \tau_{i-1}, b_{i-1})
        \, P(b_i \mid \tau_i, b_{i-1}, b_{i-2})\, P(a_i \mid a_{i-1}, b_{i-1})\, e^{-|\mu_i|^{lp}}

    Parameters
    ----------
    settings : BilingualSettings
    words : MorphemeModel
        The model of words alone that morphemes are backed off to, as it is after sentence pairs were seen.
    vocabulary : tuple of str
        Source words, in small letters.
    first : int64[n_source + 2]
        Where the morphemes of each source word begin; null is the last.
    units : int32[n_entries]
        Morphemes with types, rising for each source word: the number of a string times that of types, and the type.
    entries, shares : float64
        As in `Params`.
    jumps : float64[n_weights]
        Of distortion; without any, all source positions are equally probable.
    threshold : float
        A boundary should be more probable than this.
    trace : float64[n_iterations]
        The objective at the beginning of each iteration: log Z of all pairs.

    References
    ----------
    Naradowsky and Toutanova, Unsupervised bilingual morpheme segmentation and alignment with context-rich hidden
    semi-Markov models, ACL 2011. We differ: a step between source positions does not see types, and one between types
    no positions, as none of their features sees both; a morpheme does not see the one before it; morphemes whatever
    they come from, ends of words and types are counted by different words, as in the model of words alone.
    """

    settings: BilingualSettings
    words: MorphemeModel
    vocabulary: tuple[str, ...]
    first: Integers
    units: NDArray[np.int32]
    entries: Array
    shares: Array
    jumps: Array
    threshold: float = 0.5
    trace: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def fit(
        cls,
        types: WordTypes,
        pairs: SentencePairs,
        vocabulary: Sequence[str],
        words: MorphemeModel,
        settings: BilingualSettings,
        *,
        marks: NDArray[np.int8] | None = None,
        progress: Progress | None = None,
        keeping: Mapping[str, Any] | None = None,
    ) -> BilingualModel:
        """Learn from sentence pairs.

        Parameters
        ----------
        types : WordTypes
            The different target words, in the letters of `words`.
        pairs : SentencePairs
        vocabulary : sequence of str
            Source words.
        words : MorphemeModel
            What is known of words alone: where learning begins, and which cuts are looked at.
        settings : BilingualSettings
        marks : int8[n_letters], optional
            Boundaries that are known, as `marks_of` has them.
        progress, keeping
            As in `MorphemeModel.fit`.
        """
        lattices = WordLattices.of(types, words, settings.least, marks)
        learning = _Learning(pairs, lattices, len(vocabulary), words, settings)
        em: EM[Params, Any, Any] = EM(learning, learning.pairs.batches())
        fitted = run(
            em, em.init(learning.start()), iterations=settings.first_iterations + settings.iterations,
            progress=progress, name="Learning morphemes and their translations", **dict(keeping or {}),
        )  # fmt: skip
        model = learning.finished(fitted.state.params, tuple(vocabulary), fitted.trace)
        model = replace(model, words=replace(model.words, threshold=model.words.best_threshold_for(types)))
        some = pairs.part(0, SOME)
        found = [np.zeros(0), *(one.boundaries.flat for one in model.judged(types, some))]
        return replace(model, threshold=best_threshold(np.concatenate(found)))

    # --- using it

    def params(self) -> Params:
        """As they are in learning."""
        own = self.words.params
        return Params(
            self.entries, self.shares, own.table, own.unseen, own.ends, own.steps, own.weights, self.jumps, np.ones(1)
        )

    def believed(self, types: WordTypes, pairs: SentencePairs) -> Iterator[tuple[range, Pairs, AlignedSegmentsBatch]]:
        """The distribution of each sentence, some sentences at a time."""
        from isogloss.tasks.segment._numba.bilingual import find_cells

        own, k, params = self.words, self.words.settings.n_labels, self.params()
        lattices = WordLattices.of(types, own, self.settings.least)
        strings = own.substrings.spans(types.letters)[lattices.rows[:, 3]].astype(np.int64)
        label = lattices.rows[:, 2]
        units = np.where(strings < 0, -1, strings * k + label)
        table = np.concatenate([own.params.table.ravel(), np.zeros(1)])
        row_scores = np.where(units < 0, own.params.unseen[label] + self._spelt(types, lattices), table[units])
        arc_scores = lattices.arc_scores(own.settings.penalty(), own.params.ends, own.params.steps)
        whole = Pairs.of(pairs, lattices, Cells(np.zeros(0, np.int32), np.zeros(len(pairs) + 1, np.int64)))
        distortion = Distortion(whole.sizes, self.settings.variance)
        learnt = self.settings.distortion == "learnt"
        tables = distortion.tables(self.jumps) if learnt else distortion.uniform()
        for some in whole.batches():
            part = whole.part(some)
            offsets = cell_offsets(part.given, lattices)
            cells = np.empty(int(offsets[-1]), np.int32)
            given = (part.given.words.values, part.given.words.offsets, lattices.rows_at, part.given.source.values)
            run_sentences(
                find_cells, len(part.given), units, *given, part.given.source.offsets, self.first, self.units, offsets,
                cells,
            )  # fmt: skip
            part = replace(part, cells=Cells(cells, offsets))
            yield some, part, part.distributions(params, row_scores, arc_scores, tables)

    def judged(self, types: WordTypes, pairs: SentencePairs) -> Iterator[Judged]:
        """What is believed of sentences, some at a time."""
        from isogloss.tasks.segment._numba.bilingual import best_cuts, link_words

        for _, part, q in self.believed(types, pairs):
            marginals, lattices, words, source = q.marginals(), part.lattices, part.given.words, part.given.source
            links_at = offsets_of(part.given.n_source * words.lengths)
            links = np.zeros(int(links_at[-1]))
            place = (words.values, words.offsets)
            run_sentences(
                link_words, len(words), *place, lattices.rows_at, source.offsets, part.given.owners.values,
                marginals.values, marginals.offsets, links, links_at,
            )  # fmt: skip
            letters_at = offsets_of(types.letters.lengths[words.values] - 1)
            rows_at = offsets_of(np.diff(lattices.rows_at)[words.values])
            boundaries, taken = np.zeros(int(letters_at[-1])), np.zeros(int(rows_at[-1]), np.uint8)
            run_sentences(
                best_cuts, len(words), *place, lattices.nodes, lattices.arcs, lattices.arcs_at, lattices.rows_at,
                lattices.rows, source.offsets, marginals.values, marginals.offsets, self.threshold, LITTLE, letters_at,
                boundaries, rows_at, taken,
            )  # fmt: skip
            first = np.repeat(lattices.rows_at[words.values] - rows_at[:-1], np.diff(rows_at))
            chosen = np.flatnonzero(taken)
            rows = lattices.rows[chosen + first[chosen], :3]
            many = np.add.reduceat(np.append(taken, 0), rows_at[:-1], dtype=np.int64) if len(words.values) else rows_at
            grids = [
                links[a:b].reshape(m, n)
                for a, b, m, n in zip(
                    links_at[:-1].tolist(), links_at[1:].tolist(), part.given.n_source.tolist(),
                    words.lengths.tolist(), strict=True,
                )
            ]  # fmt: skip
            yield Judged(Ragged(boundaries, letters_at), Ragged(rows, offsets_of(many[: len(words.values)])), grids)

    def _spelt(self, types: WordTypes, lattices: WordLattices) -> Array:
        """float64[n_rows]: log weight of the letters of each row."""
        spelling, letters = self.words.spelling, types.letters
        known = np.minimum(letters.flat, len(spelling.letters) - 1)
        before = np.concatenate([[0.0], np.cumsum(spelling.letters[known])])
        start = (letters.offsets - letters.offsets[0])[lattices.words_of_rows]
        return np.asarray(
            before[start + lattices.rows[:, 1]] - before[start + lattices.rows[:, 0]] + spelling.stop, np.float64
        )  # fmt: skip
