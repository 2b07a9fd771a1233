"""Sentences, what their words and phrases may become, and the best of all translations that these make.

`Sentences` has the options of some sentences: the phrase pairs of their spans, and a copy of each word for which there
is none. A `Decoder` searches among them; `Derivations` are what it finds. Everything a derivation scores is a sum over
its parts (options, jumps from one phrase to the next) and the language model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Text
from isogloss.data.rows import gathered, run_sums
from isogloss.engine.threads import run_blocks, using_threads
from isogloss.tasks.translate.language_model import LanguageModel
from isogloss.tasks.translate.table import ORIENTATIONS, SCORES, TranslationTable

if TYPE_CHECKING:
    from isogloss.tasks.translate.sparse import Learnt

__all__ = ["BLANKET", "Decoder", "Derivations", "Searching", "Sentences", "first_weights"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

BLANKET = ("language_model", "distortion", "words", "phrases", *SCORES, *ORIENTATIONS)
"""What every derivation is scored by, in the order of its weights."""
LEARNT = "learnt"
"""What sparse features score, behind all others where there are any."""
_LANGUAGE, _DISTORTION, _WORDS, _PHRASES = 0, 1, 2, 3
_TABLE, _TURNS = slice(4, 4 + len(SCORES)), slice(4 + len(SCORES), 4 + len(SCORES) + len(ORIENTATIONS))
UNLIMITED = 1 << 62
PIECE, FEW = 8, 16
"""Sentences of a block; blocks of a few sentences."""


def first_weights(n_scores: int = len(SCORES), *, orientation: bool = True) -> Array:
    """Weights to begin with, those that Moses begins with; 0 for orientations that do not count."""
    turns = 0.3 if orientation else 0.0
    return np.array([0.5, 0.3, 1.0, 0.2, *[0.2] * n_scores, *[turns] * len(ORIENTATIONS)])


@dataclass(frozen=True)
class Searching:
    """How translations are searched for.

    Parameters
    ----------
    beam : int
        Hypotheses that go on, for each number of source words translated.
    pops : int
        Hypotheses that are made, for each number of words.
    options : int
        Translations of each source phrase.
    distortion_limit : int
        How far from the first word that is not translated a phrase may end; 0 translates from left to right.
    swapping : bool
        No reordering but of two adjacent phrases, instead of the limit.
    turning : bool
        True if phrases have orientations (lexicalised reordering).
    """

    beam: int = 100
    pops: int = 200
    options: int = 20
    distortion_limit: int = 6
    swapping: bool = False
    turning: bool = True

    @classmethod
    def exact(cls, **changes: Any) -> Searching:
        """Without limits but those of reordering."""
        return cls(beam=UNLIMITED, pops=UNLIMITED, options=UNLIMITED, **changes)


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences with their options.

    Parameters
    ----------
    text : Text
    lengths : int64[n_sentences]
    spans : int64[n_spans, 4]
        First word, end, first option, end of its options.
    span_starts : int64[n_sentences + 1]
    pairs : int64[n_options]
        The phrase pair of each option; -1 for a word that is copied.
    target_starts : int64[n_options + 1]
    target_words : int32[.]
    copied : int32[n_options]
        The number of a copied word, where the target does not know it; -1 otherwise.
    """

    text: Text
    lengths: Integers
    spans: Integers
    span_starts: Integers
    pairs: Integers
    target_starts: Integers
    target_words: NDArray[np.int32]
    copied: NDArray[np.int32]

    @classmethod
    def of(cls, text: Text, table: TranslationTable, language_model: LanguageModel) -> Sentences:
        """The options of all spans of these sentences."""
        from isogloss.tasks.translate._numba.options import count_options, gather_options

        spans, starts = table.spans(text)
        offsets = text.ids.offsets - text.ids.offsets[0]
        copies = language_model.encode(text.vocabulary)[text.ids.flat] if len(offsets) > 1 else text.ids.flat
        n, n_words = count_options(table.pairs, spans)
        chosen, target_starts, words = np.empty(n, np.int64), np.empty(n + 1, np.int64), np.empty(n_words, np.int32)
        placed, copied, ids = np.empty_like(spans), np.empty(n, np.int32), np.ascontiguousarray(text.ids.flat)
        gather_options(
            table.pairs, spans, starts, offsets, ids, copies, language_model.unknown, chosen, target_starts, words,
            copied, placed,
        )  # fmt: skip
        return cls(text, text.ids.lengths, placed, starts, chosen, target_starts, words, copied)

    def __len__(self) -> int:
        return len(self.lengths)

    def keeping(self, chosen: NDArray[np.bool_]) -> Sentences:
        """With those options alone."""
        before = np.concatenate([[0], np.cumsum(chosen)])
        spans = self.spans.copy()
        spans[:, 2:] = before[self.spans[:, 2:]]
        sizes = np.diff(self.target_starts)
        starts = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
        words = self.target_words[np.repeat(chosen, sizes)]
        return replace(
            self, spans=spans, pairs=self.pairs[chosen], target_starts=starts, target_words=words,
            copied=self.copied[chosen],
        )  # fmt: skip

    @cached_property
    def jump_starts(self) -> Integers:
        """Where jumps of each sentence begin: (n + 1) · n of them, from where a phrase ended to where one begins."""
        return np.concatenate([[0], np.cumsum(self.lengths * (self.lengths + 1))]).astype(np.int64)

    def swap_starts(self, longest: int) -> Integers:
        """Where swaps of each sentence begin: for each first word, words of the first phrase and of the second."""
        return np.concatenate([[0], np.cumsum(self.lengths * longest**2)]).astype(np.int64)

    def take(self, sentences: Integers) -> Sentences:
        """Some of the sentences by their numbers, in that order."""
        span_starts, spans = gathered(self.span_starts, sentences)
        option_starts, options = gathered(self.option_starts, sentences)
        placed = self.spans[spans]
        moved = option_starts[:-1] - self.option_starts[:-1][sentences]
        placed[:, 2:] += np.repeat(moved, np.diff(span_starts))[:, None]
        target_starts, words = gathered(self.target_starts, options)
        return replace(
            self, text=self.text.take(sentences), lengths=self.lengths[sentences], spans=placed,
            span_starts=span_starts, pairs=self.pairs[options], target_starts=target_starts,
            target_words=self.target_words[words], copied=self.copied[options],
        )  # fmt: skip

    @cached_property
    def option_spans(self) -> tuple[Integers, Integers]:
        """First word and end of each option."""
        counts = self.spans[:, 3] - self.spans[:, 2]
        return np.repeat(self.spans[:, 0], counts), np.repeat(self.spans[:, 1], counts)

    @cached_property
    def option_starts(self) -> Integers:
        """int64[n_sentences + 1]: where the options of each sentence begin."""
        ends = np.append(self.spans[:, 2], len(self.pairs))
        return ends[self.span_starts]


@dataclass(frozen=True, eq=False)
class Derivations:
    """Translations of sentences, each as phrases in the order of the translation; of a sentence, the best first.

    Parameters
    ----------
    sentences : Sentences
    starts : int64[n_sentences + 1]
        Where the translations of each sentence begin.
    scores : float64[n]
    option_starts : int64[n + 1]
    options : int64[.]
        Options, as numbers among those of all sentences.
    """

    sentences: Sentences
    starts: Integers
    scores: Array
    option_starts: Integers
    options: Integers

    def __len__(self) -> int:
        return len(self.scores)

    @cached_property
    def sentence(self) -> Integers:
        """int64[n]: the sentence of each."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def words(self) -> tuple[NDArray[np.int32], Integers]:
        """Word numbers of all translations, and where those of each begin."""
        own = self.sentences
        first, last = own.target_starts[self.options], own.target_starts[self.options + 1]
        sizes = last - first
        ends = np.cumsum(sizes)
        at = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(first - (ends - sizes), sizes)
        return own.target_words[at], np.append(0, ends)[self.option_starts]

    @cached_property
    def copied(self) -> tuple[Integers, Integers]:
        """Where among these words are copies that the target does not know, and their numbers in the source."""
        own = self.sentences
        firsts = np.cumsum(np.diff(own.target_starts)[self.options]) - 1  # such an option has one word
        there = np.flatnonzero(own.copied[self.options] >= 0)
        return firsts[there], own.copied[self.options[there]].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Decoder:
    """Finds the best translations under weights.

    Parameters
    ----------
    table : TranslationTable
    language_model : LanguageModel
        Its words are those of the table's target side.
    weights : float64[n]
        Weights of `BLANKET`, and one for the sum of sparse features where there are any.
    searching : Searching
    learnt : Learnt, optional
        What sparse features come to.
    """

    table: TranslationTable
    language_model: LanguageModel
    weights: Array
    searching: Searching = field(default_factory=Searching)
    learnt: Learnt | None = None

    def weighted(self, weights: Array) -> Decoder:
        """The same with other weights."""
        return replace(self, weights=weights)

    def sentences(self, text: Text) -> Sentences:
        """Sentences with their options."""
        return Sentences.of(text, self.table, self.language_model)

    def options(
        self,
        sentences: Sentences,
        more: Array | None = None,
        jumps: Array | None = None,
        swaps: Array | None = None,
    ) -> Any:
        """Options with their scores, for kernels.

        Parameters
        ----------
        more : float64[n_options], optional
            What else options score.
        jumps : float64[n_jumps], optional
            What else jumps score.
        swaps : float64[n_swaps], optional
            What phrases that swap score (`Sentences.swap_starts`).
        """
        from isogloss.tasks.translate._numba.decode import Options
        from isogloss.tasks.translate._numba.options import option_scores

        weights = self.weights
        scores = np.zeros(len(sentences.pairs)) if more is None else np.array(more)
        moves = np.zeros(0) if jumps is None else np.array(jumps)
        swapped = np.zeros(0) if swaps is None else np.array(swaps)
        if self.learnt is not None:
            scores += weights[-1] * self.learnt.options(sentences)
            of_jumps, of_swaps = self.learnt.moves(sentences, self.table)
            moves = weights[-1] * of_jumps + (moves if len(moves) else 0.0)
            swapped = weights[-1] * of_swaps + (swapped if len(swapped) else 0.0)
        own = np.ascontiguousarray(weights[_TABLE])
        option_scores(
            self.table.pairs, sentences.pairs, sentences.target_starts, own, weights[_WORDS], weights[_PHRASES], scores
        )
        swap_starts = sentences.swap_starts(self.table.longest)
        return Options(
            sentences.spans, sentences.span_starts, sentences.lengths, sentences.target_starts[:-1],
            sentences.target_starts[1:], sentences.target_words, sentences.copied, scores, float(weights[_DISTORTION]),
            moves, sentences.jump_starts, swapped, swap_starts, self._turns(sentences), *self._orientations,
        )  # fmt: skip

    def _turns(self, sentences: Sentences) -> NDArray[np.int32]:
        """The row of the table's orientations of each option; empty where these do not count."""
        if not self.searching.turning:
            return np.zeros(0, np.int32)
        known = sentences.pairs >= 0
        out = np.zeros(len(known), np.int32)
        out[known] = self.table.arrays["turns"][sentences.pairs[known]]
        return out

    @property
    def _orientations(self) -> tuple[Array, Integers, Array]:
        """What orientations score before each phrase; and behind it, of which few differ, with the row of each."""
        if not self.searching.turning:
            return np.zeros((0, 3)), np.zeros(0, np.int64), np.zeros((1, 3))
        scores = self.table.arrays["orientations"] * self.weights[_TURNS]
        rows, different = self.table.followers
        behind = np.concatenate([np.zeros((1, 3)), scores[different, 3:]])
        return np.ascontiguousarray(scores[:, :3]), rows + 1, behind

    def search(
        self,
        sentences: Sentences,
        many: int = 1,
        *,
        distinct: bool = True,
        references: Sequence[NDArray[np.int32]] | None = None,
        more: Array | None = None,
        jumps: Array | None = None,
        swaps: Array | None = None,
    ) -> Derivations:
        """The best derivations of each sentence, on threads.

        Parameters
        ----------
        many : int
            How many of each, at most.
        distinct : bool
            Only the best of those with the same words.
        references : sequence of int32[.], optional
            Only derivations with these words, one sentence each; there may be none. Words that the language model does
            not know are negative, see `isogloss.tasks.translate.forced`.
        more, jumps, swaps
            As for `options`.
        """
        from isogloss.tasks.translate._numba.decode import best_of, search

        options, grams, settings = (
            self.options(sentences, more, jumps, swaps),
            self.language_model.grams,
            self._settings,
        )
        begin, end = self.language_model.begin, self.language_model.end
        found: list[Any] = [None] * len(sentences)
        nothing = np.zeros(0, np.int32)

        def work(block: int, count: int) -> None:
            for s in range(block, len(sentences), count):
                reference = nothing if references is None else references[s]
                made: Any = search(options, s, grams, begin, end, settings, references is not None, reference)
                hypotheses, values, complete = made
                found[s] = best_of(options, hypotheses, values, complete, many, distinct)

        with using_threads():
            run_blocks(work, max(1, min(len(sentences), FEW), -(-len(sentences) // PIECE)))
        scores, starts, chosen = zip(*found, strict=True) if found else ((), (), ())
        steps = [np.diff(each) for each in starts]
        return Derivations(
            sentences,
            np.cumsum([0, *map(len, scores)]).astype(np.int64),
            np.concatenate([np.zeros(0), *scores]),
            np.concatenate([[0], np.cumsum(np.concatenate([np.zeros(0, np.int64), *steps]))]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int64), *chosen]),
        )

    @property
    def _settings(self) -> Any:
        from isogloss.tasks.translate._numba.decode import Search

        s = self.searching
        return Search(
            s.beam, s.pops, s.options, s.distortion_limit, s.swapping, self.table.longest,
            float(self.weights[_LANGUAGE]),
        )  # fmt: skip

    def features(self, derivations: Derivations) -> Array:
        """float64[n, n_weights]: what each derivation comes to in all of `BLANKET`, and in sparse features where there
        are any; its score is their product with the weights."""
        from isogloss.tasks.translate._numba.options import derive

        own = derivations.sentences
        out = np.empty((len(derivations), len(BLANKET)))
        options, model = replace(self, learnt=None).options(own), self.language_model
        derive(
            options, own.pairs, self.table.pairs, model.grams, model.begin, model.end, *own.option_spans,
            derivations.option_starts, derivations.options, self._turns(own), self.table.arrays["orientations"],
            len(SCORES), out,
        )  # fmt: skip
        if self.learnt is None:
            return out
        jumps, swaps = self.moves(derivations)
        of_jumps, of_swaps = self.learnt.moves(own, self.table)
        each = self.learnt.options(own)[derivations.options] + of_jumps[jumps]
        if len(of_swaps):
            each[swaps >= 0] += of_swaps[swaps[swaps >= 0]]
        return np.column_stack([out, run_sums(each, derivations.option_starts)])

    def moves(self, derivations: Derivations) -> tuple[Integers, Integers]:
        """int64[n_steps] each: the jump to each phrase, and the swap that it begins or −1, as cells of sentences."""
        from isogloss.tasks.translate._numba.sparse import moves_of

        own, longest = derivations.sentences, self.table.longest
        jumps, swaps = np.empty((2, len(derivations.options)), np.int64)
        starts = own.swap_starts(longest) if self.searching.swapping else np.zeros(0, np.int64)
        moves_of(
            own.lengths, own.jump_starts, starts, longest, *own.option_spans, derivations.sentence,
            derivations.option_starts, derivations.options, jumps, swaps,
        )  # fmt: skip
        return jumps, swaps

    def texts(self, derivations: Derivations) -> list[str]:
        """The words of each derivation; those that are copied as they are in the source."""
        names = self.language_model.words.types
        words, starts = derivations.words
        unknown = self.language_model.unknown
        out = []
        for k, (first, last) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
            row = words[first:last].tolist()
            if unknown in row:
                row = self._copied(derivations, k)
                out.append(" ".join(row))
            else:
                out.append(" ".join(names[word] for word in row))
        return out

    def _copied(self, derivations: Derivations, k: int) -> list[str]:
        own, names = derivations.sentences, self.language_model.words.types
        source = own.text.tokens(int(derivations.sentence[k]))
        found = []
        for option in derivations.options[derivations.option_starts[k] : derivations.option_starts[k + 1]].tolist():
            if own.pairs[option] < 0:
                found.append(source[own.option_spans[0][option]])
            else:
                first, last = own.target_starts[option : option + 2]
                found += [names[word] for word in own.target_words[first:last].tolist()]
        return found
