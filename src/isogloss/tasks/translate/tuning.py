"""Weights of dense features from held-out sentences, by batch MIRA over what the decoder finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data import Bitext, Text, Vocabulary
from isogloss.learners.kbest import CandidateLists, KBestMira
from isogloss.metrics.translation import bleu_beside, bleu_of, matches
from isogloss.tasks.translate.language_model import LanguageModel
from isogloss.tasks.translate.search import Decoder, Derivations, Sentences

__all__ = ["References", "tuner"]

Array = NDArray[np.float64]
COUNTS = 10
"""What BLEU is made of."""
TOGETHER = 8
"""Sentences whose hopes and fears are looked for under the same weights."""


class References(NamedTuple):
    """What sentences should become, as word numbers.

    Parameters
    ----------
    words : int32[.]
        Numbers of the language model; words that it does not know have numbers of their own behind those.
    starts : int64[n + 1]
    vocabulary : Vocabulary
        Words by these further numbers, of which the first is `others`.
    others : int
    """

    words: NDArray[np.int32]
    starts: NDArray[np.int64]
    vocabulary: Vocabulary
    others: int

    @classmethod
    def of(cls, text: Text, language_model: LanguageModel) -> References:
        """The sentences of a text."""
        ids, first = text.ids.flat, language_model.end + 1
        known = language_model.encode(text.vocabulary)[ids] if len(ids) else ids
        words = np.where(known == language_model.unknown, first + ids, known).astype(np.int32)
        return cls(words, text.ids.offsets - text.ids.offsets[0], text.vocabulary, first)

    def counts(self, derivations: Derivations, sentences: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """int64[n, 10]: what BLEU of each derivation is made of; `sentences` says which references are theirs."""
        words, starts = derivations.words
        places, copied = derivations.copied
        if len(places):  # right where the reference has the same word, though the language model does not know it
            source = derivations.sentences.text.vocabulary
            known, which = np.unique(copied, return_inverse=True)
            numbers = np.array([self.vocabulary.index_of(source[number]) for number in known.tolist()])
            words = words.copy()
            words[places] = np.where(numbers >= 0, self.others + numbers, words[places[0]])[which]
        of = derivations.sentence if sentences is None else sentences[derivations.sentence]
        return matches(words, starts, self.words, self.starts, of)


def tuner(
    decoder: Decoder, dev: Bitext, *, nbest: int, cap: float, passes: int, seed: int, sentences: Sentences | None = None
) -> KBestMira:
    """A learner of the decoder's weights from the sentences of `dev`; its objective is BLEU in percent."""
    known = decoder.sentences(dev.source) if sentences is None else sentences
    references = References.of(dev.target, decoder.language_model)

    def search(weights: Array) -> CandidateLists:
        under = decoder.weighted(weights)
        found = under.search(known, nbest)
        return CandidateLists(found.starts, under.features(found), references.counts(found).astype(np.float64))

    def total(counts: Array) -> float:
        return 100 * float(bleu_of(counts))

    return KBestMira(
        search, bleu_beside, total, len(dev), COUNTS, cap=cap, passes=passes, batch=TOGETHER, seed=seed
    )  # fmt: skip
