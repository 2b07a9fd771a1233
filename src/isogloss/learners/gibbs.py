r"""Topics of words by collapsed Gibbs sampling: latent Dirichlet allocation over documents in any number of languages.

All languages of a document share its topics :math:`\theta_d \sim \mathrm{Dir}(\alpha)`; every language has its own
words of a topic, :math:`\phi^l_t \sim \mathrm{Dir}(\beta)`. With these summed out,

.. math:: P(w, z) = \prod_d \frac{\Gamma(A)}{\Gamma(N_d + A)} \prod_t \frac{\Gamma(N_{td} + \alpha_t)}{\Gamma(\alpha_t)}
          \prod_l \prod_t \frac{\Gamma(W_l \beta)}{\Gamma(N^l_t + W_l \beta)}
          \prod_w \frac{\Gamma(N^l_{wt} + \beta)}{\Gamma(\beta)}

and a word has topic t, given the topics of all others, with a probability proportional to

.. math:: (N_{td} + \alpha_t) \, \frac{N^l_{wt} + \beta}{N^l_t + W_l \beta}

**Blocks.** A sweep goes through the documents in order, each word being drawn from this very distribution, as long as
there is one block of documents. Where there are several, each begins with the counts of all, and sees what the others
have drawn only after the sweep: approximate distributed LDA (Newman et al. 2009). Blocks are cut by the data alone, and
every document has random numbers of its own, so that threads change nothing.

**Leaning.** Where no document exists in two languages, documents may lean on others, such as those of another language
whose words a lexicon translates: the prior of document d is

.. math:: \alpha_t + \sum_{d'} \delta_{dd'} N_{td'}

with the counts of the sweep before. A word is drawn from its conditional given these; what it changes in the priors of
documents that lean on its own is passed over, as in the reference, so that this is no exact sampler of a joint.

**Memory.** A word of the text takes 12 bytes (its number, its list, its topic, and the topic of the sweep before), and
up to 4 in the lists of counts of each block and of all (8 where a word is very frequent); a word type up to 24 more.
Where documents lean on others, 16 bytes for each document and topic.

References
----------
Mimno, Wallach, Naradowsky, Smith and McCallum, Polylingual topic models, EMNLP 2009, section 3; Yao, Mimno and
McCallum, Efficient methods for topic model inference on streaming document collections, KDD 2009 (sparse sampling);
Newman, Asuncion, Smyth and Welling, Distributed algorithms for topic models, JMLR 2009 (blocks); Hao and Paul, Learning
multilingual topics from incomparable corpora, COLING 2018 (leaning; there "SoftLink").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.engine.threads import run_blocks
from isogloss.errors import ModelError
from isogloss.features.mixing import splitmix
from isogloss.learners._numba import gibbs as kernels
from isogloss.learners.dirichlet import Tails, fixed_point_beside

__all__ = ["Bags", "Gibbs", "GibbsInfo", "GibbsState"]

BLOCK = 2_000_000
"""Words of a block, about, where the number of blocks is not given."""
MOST_BLOCKS = 32
LOOK = 10
"""Sweeps from one look at the objective to the next."""
MOST_TOPICS = 2**15 - 1
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bags:
    """Words of documents in several languages, as numbers.

    Parameters
    ----------
    words : int32[n]
        Document by document, and in a document language by language. Words of language l have the numbers ``starts[l]``
        to ``starts[l + 1] - 1``.
    segments : int64[n_documents * n_languages + 1]
        Where the words of each document in each language begin.
    sizes : int64[n_languages]
        Sizes of vocabularies.
    """

    words: NDArray[np.int32]
    segments: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @property
    def n_languages(self) -> int:
        return len(self.sizes)

    @property
    def n_documents(self) -> int:
        return (len(self.segments) - 1) // self.n_languages

    @property
    def starts(self) -> NDArray[np.int64]:
        """int64[n_languages + 1]: the first word of each language."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64[n_documents + 1]: where each document begins."""
        return np.ascontiguousarray(self.segments[:: self.n_languages])

    @property
    def language(self) -> NDArray[np.int64]:
        """int64[n]: the language of each word."""
        lengths = np.diff(self.segments)
        return np.repeat(np.tile(np.arange(self.n_languages), self.n_documents), lengths)

    def edges(self, language: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the words of each document begin and end, in one language or in all."""
        if language is None:
            return self.offsets[:-1], self.offsets[1:]
        begins, ends = self.segments[language : -1 : self.n_languages], self.segments[language + 1 :: self.n_languages]
        return np.ascontiguousarray(begins), np.ascontiguousarray(ends)


class GibbsState(NamedTuple):
    """What the next sweep needs."""

    topics: NDArray[np.int16]
    """int16[n], of every word."""
    alpha: Array
    """float64[n_topics]: the prior of documents; its sum is the concentration."""
    iteration: int = 0
    objective: float = 0.0
    """log P(w, z) when it was last looked at."""


class GibbsInfo(NamedTuple):
    """What a person wants to watch."""

    objective: float
    """log P(w, z), looked at every tenth sweep."""
    concentration: float
    detail: str


class Gibbs:
    """The sampler, a sweep a step; see this module.

    Parameters
    ----------
    bags : Bags
    n_topics : int
    concentration : float
        Sum of the prior of documents, the same for all topics at first.
    beta : float
        Prior of words, for each word type.
    optimise, burn_in : int
        After every so many sweeps, beginning after `burn_in`, the prior of documents is made more likely by Minka's
        fixed point (`Tails.fixed_point`); 0 for never.
    blocks : int, optional
        Blocks of documents; one for every two million words if not given.
    leaning : sparse float64[n_documents, n_documents], optional
        δ: how much each document leans on others, a row each.
    seed : int

    Examples
    --------
    >>> from isogloss.learners.runner import run
    >>> bags = Bags(np.array([0, 0, 1, 2, 2, 3], np.int32), np.array([0, 3, 6]), np.array([4]))
    >>> sampler = Gibbs(bags, 2, concentration=0.2)
    >>> run(sampler, sampler.init(), iterations=50).state.topics.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        bags: Bags,
        n_topics: int,
        *,
        concentration: float,
        beta: float = 0.01,
        optimise: int = 10,
        burn_in: int = 50,
        blocks: int | None = None,
        leaning: Any = None,
        seed: int = 0,
    ) -> None:
        self.leaning = leaning
        self.bags, self.n_topics, self.beta, self.concentration = bags, n_topics, float(beta), float(concentration)
        self.optimise, self.burn_in = optimise, burn_in
        self._key = np.uint64(splitmix(seed))
        self._smoothing = np.maximum(bags.sizes, 1) * self.beta  # a language may lack words
        self._cuts = _cuts(bags.offsets, blocks)
        frequencies = np.bincount(bags.words, minlength=int(bags.sizes.sum()))
        room = (np.minimum(frequencies, n_topics) // kernels.LENGTH + 1) * kernels.LENGTH
        self._starts = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
        self._slots = (self._starts[bags.words] // kernels.LENGTH).astype(np.uint32)
        self._bits = max(1, (n_topics - 1).bit_length())
        wide = (int(frequencies.max(initial=0)) + 1) << self._bits >= 2**32
        self._dtype = np.uint64 if wide else np.uint32
        self._tables: tuple[NDArray[np.int16], NDArray[Any], NDArray[np.int64]] | None = None

    @property
    def n_blocks(self) -> int:
        return len(self._cuts) - 1

    def init(self) -> GibbsState:
        """Topics at random."""
        topics = np.zeros(len(self.bags.words), np.int16)
        kernels.first_topics(self._key, self.bags.segments, self.bags.n_languages, self.n_topics, topics)
        alpha = np.full(self.n_topics, self.concentration / self.n_topics)
        return GibbsState(topics, alpha, 0, self.log_joint(topics, alpha))

    def step(self, state: GibbsState) -> tuple[GibbsState, GibbsInfo]:
        """One sweep over all words."""
        topics = state.topics.copy()
        entries, totals = self._counts(state.topics)
        self._tables = None  # they are changed in place: of no use should this be interrupted
        number, leans = state.iteration, self.leans(state.topics)
        if self.n_blocks == 1:
            self._sweep(number, topics, state.alpha, entries[None], totals[None], leans)
        else:
            entries, totals = self._together(number, topics, state.alpha, entries, totals, leans)
        self._tables = topics, entries, totals
        alpha, objective = state.alpha, state.objective
        if self.optimise and number >= self.burn_in and (number - self.burn_in) % self.optimise == 0:
            alpha = self._better_prior(topics, alpha)
        if (number + 1) % LOOK == 0 or number == 0:
            objective = self.log_joint(topics, alpha)
        words = max(1, len(topics))
        info = GibbsInfo(objective, float(alpha.sum()), f"log-likelihood {objective / words:.4f} a word")
        return GibbsState(topics, alpha, number + 1, objective), info

    def document_topics(self, topics: NDArray[np.int16]) -> Array:
        """float64[n_documents, n_topics]: how many words of each document have each topic."""
        shape = self.bags.n_documents, self.n_topics
        rows = np.repeat(np.arange(shape[0]), np.diff(self.bags.offsets))
        return np.bincount(rows * shape[1] + topics, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)

    def leans(self, topics: NDArray[np.int16]) -> Array:
        """float64[n_documents, n_topics]: what the prior of each document has beside α; no rows if nothing."""
        if self.leaning is None:
            return np.zeros((0, self.n_topics))
        return np.ascontiguousarray(self.leaning @ self.document_topics(topics))

    def _better_prior(self, topics: NDArray[np.int16], alpha: Array) -> Array:
        if self.leaning is None:
            return Tails.of(topics, *self.bags.edges(), self.n_topics).fixed_point(alpha)
        return fixed_point_beside(alpha, self.document_topics(topics), self.leans(topics))

    def _sweep(
        self, number: int, topics: NDArray[np.int16], alpha: Array, lists: Any, totals: Any, leans: Array | None = None
    ) -> None:
        bags = self.bags
        leans = np.zeros((0, self.n_topics)) if leans is None else leans
        run_blocks(
            kernels.sweep, self.n_blocks, self._cuts, self._key, number, self._slots, bags.segments, topics, alpha,
            leans, self.beta, self._smoothing, lists, self._bits, totals,
        )  # fmt: skip

    def _together(
        self,
        number: int,
        topics: NDArray[np.int16],
        alpha: Array,
        entries: NDArray[Any],
        totals: NDArray[np.int64],
        leans: Array,
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """A sweep of several blocks, each from the same counts; then the counts of all."""
        lists, sums = np.repeat(entries[None], self.n_blocks, 0), np.repeat(totals[None], self.n_blocks, 0)
        self._sweep(number, topics, alpha, lists, sums, leans)
        fresh = np.empty_like(entries)
        run_blocks(kernels.merge, self.n_blocks, self._starts, self._bits, lists, entries, fresh)
        return fresh, totals + (sums - totals).sum(axis=0)

    def _counts(self, topics: NDArray[np.int16]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Lists of all words, and words of each topic in each language, for some topics; kept from the last step."""
        if self._tables is not None and self._tables[0] is topics:
            return self._tables[1:]
        entries = np.zeros(self._starts[-1], self._dtype)
        totals = np.zeros((self.bags.n_languages, self.n_topics), np.int64)
        kernels.list_counts(self.bags.words, topics, self._starts, self._bits, entries)
        kernels.count_topics(topics, self.bags.segments, totals)
        return entries, totals

    # --- what there is to see

    def log_joint(self, topics: NDArray[np.int16], alpha: Array) -> float:
        """log P(w, z) of all words and their topics; of documents that lean on others, given the topics of these."""
        entries, totals = self._counts(topics)
        of_words = entries, self._bits, totals, self._smoothing, self.beta
        return float(kernels.joint(*of_words, topics, self.bags.segments, alpha, self.leans(topics)))

    def word_topics(self, state: GibbsState) -> tuple[NDArray[np.int64], NDArray[np.int16], NDArray[np.int64], Any]:
        """The counts of a state: those of word w are ``[offsets[w]:offsets[w + 1]]`` of topics and counts.

        Returns
        -------
        offsets : int64[n_words + 1]
        topics : int16[n_entries], in ascending order for each word
        counts : int64[n_entries]
        totals : int64[n_languages, n_topics]
        """
        entries, totals = self._counts(state.topics)
        there = entries > 0
        words = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))[there]
        topics = (entries[there] & self._dtype((1 << self._bits) - 1)).astype(np.int16)
        counts = (entries[there] >> self._dtype(self._bits)).astype(np.int64)
        order = np.lexsort((topics, words))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(words, minlength=len(self._starts) - 1))])
        return offsets.astype(np.int64), topics[order], counts[order], totals.copy()

    # --- keeping

    def dump(self, state: GibbsState) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and meta for `isogloss.store`."""
        return {"topics": state.topics, "alpha": state.alpha}, {
            "iteration": state.iteration,
            "objective": state.objective,
        }

    def restore(self, arrays: dict[str, NDArray[Any]], meta: dict[str, Any]) -> GibbsState:
        """The inverse of `dump`; `ModelError` for what cannot be a state of these documents."""
        topics, alpha = arrays["topics"], arrays["alpha"]
        fits = topics.dtype == np.int16 and topics.shape == self.bags.words.shape
        fits = fits and (not topics.size or (topics.min() >= 0 and topics.max() < self.n_topics))
        if not fits or alpha.shape != (self.n_topics,) or alpha.dtype != np.float64 or not (alpha > 0).all():
            raise ModelError("the topics of this checkpoint are not those of these documents. Start again without it")
        return GibbsState(topics, alpha, int(meta["iteration"]), float(meta["objective"]))


def _cuts(offsets: NDArray[np.int64], blocks: int | None) -> NDArray[np.int64]:
    """int64[n_blocks + 1]: documents of each block, about as many words in each."""
    n_words, n_documents = int(offsets[-1] - offsets[0]), len(offsets) - 1
    wanted = min(MOST_BLOCKS, max(1, n_words // BLOCK)) if blocks is None else blocks
    wanted = max(1, min(wanted, n_documents))
    marks = offsets[0] + n_words * np.arange(wanted + 1) // wanted
    cuts = np.searchsorted(offsets, marks, side="left").astype(np.int64)
    cuts[0], cuts[-1] = 0, n_documents
    return np.unique(cuts)
