"""The tagger that comes first, and what taggers believe of sentences that they have not seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isogloss.data.treebank import Treebank
from isogloss.progress import Progress
from isogloss.tasks.parse.joint._numba.layout import Sentence
from isogloss.tasks.parse.joint.analyses import AnalysisDictionary
from isogloss.tasks.parse.joint.schema import Schema
from isogloss.tasks.parse.joint.text import Seen, clamped, sentences_of
from isogloss.tasks.parse.joint.training import (
    Inference,
    JointLikelihood,
    Settings,
    all_beliefs,
    learn,
    shape_of,
)

__all__ = ["TAGGING", "Known", "allowed_values", "best_values", "jackknifed", "spread"]

FOLDS = 5
ALL_BUT_IMPOSSIBLE = 1e-4
TAGGING = Inference(links=False, tags=True, projective=False, single_root=False, iterations=3)
"""Chains and what holds them together, without links."""

Lexicon = Callable[[Treebank], AnalysisDictionary | None]


class Known(NamedTuple):
    """What there is to learn tags from."""

    treebank: Treebank
    schema: Schema
    seen: Seen
    features: NDArray[np.uint64]
    gold: NDArray[np.int64]


def jackknifed(
    known: Known, lexicon: Lexicon, settings: Settings, progress: Progress
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A tagger, and what each word is believed to be by a tagger that has not seen its sentence.

    Parameters
    ----------
    lexicon : function
        Makes a dictionary of a part of the treebank, or None.

    Returns
    -------
    weights : float64[n_weights]
        Of the tagger that has seen all.
    chances : float64[n_words, n_values]
    """
    treebank, schema = known.treebank, known.schema
    folds = min(FOLDS, len(treebank))
    fold = np.arange(len(treebank)) * folds // max(1, len(treebank))  # neighbours share their words
    chances = np.zeros((treebank.n_words, int(schema.starts[-1])))
    progress.start(f"Tagging in {folds} folds", folds + 1)
    weights, everything = _learnt(known, np.arange(len(treebank)), lexicon, settings)
    progress.update(1)
    if folds < 2:
        _fill(known, np.arange(len(treebank)), everything, weights, chances)
        return weights, chances
    for f in range(folds):
        learnt, sentences = _learnt(known, np.flatnonzero(fold != f), lexicon, settings)
        _fill(known, np.flatnonzero(fold == f), sentences, learnt, chances)
        progress.update(f + 2)
    return weights, chances


def _learnt(
    known: Known, mine: NDArray[np.int64], lexicon: Lexicon, settings: Settings
) -> tuple[NDArray[np.float64], list[Sentence]]:
    """A tagger that learns from some sentences, and all sentences as it sees them."""
    treebank, schema, gold = known.treebank, known.schema, known.gold
    shape, size = shape_of(schema, len(known.features))
    part = treebank if len(mine) == len(treebank) else treebank.take(mine)
    allowed = allowed_values(treebank, schema, lexicon(part))
    rows = np.isin(np.repeat(np.arange(len(treebank)), treebank.lengths), mine)
    allowed[rows] |= clamped(gold[rows], schema)
    make = partial(sentences_of, treebank, known.seen, known.features, schema)
    sentences = make(allowed, gold[:, 0], gold)

    def fewer(weights: NDArray[np.float64]) -> JointLikelihood:
        """Without the values that one pass has made all but impossible: several times as fast, and as good."""
        believed = np.zeros(allowed.shape)
        _fill(known, mine, sentences, weights, believed)
        few = make((believed > ALL_BUT_IMPOSSIBLE) | clamped(gold, schema), gold[:, 0], gold, mine.tolist())
        return JointLikelihood(few, shape, size, TAGGING)

    chosen = JointLikelihood([sentences[s] for s in mine], shape, size, TAGGING)
    return learn(chosen, settings, refine=fewer), sentences


def _fill(
    known: Known, chosen: NDArray[np.int64], sentences: list[Sentence], weights: NDArray[np.float64],
    chances: NDArray[np.float64],
) -> None:  # fmt: skip
    """Write what a tagger believes of the words of some sentences to their rows."""
    shape, _ = shape_of(known.schema, len(known.features))
    found = all_beliefs([sentences[s] for s in chosen], shape, weights, TAGGING)
    for s, (tags, _, _) in zip(chosen.tolist(), found, strict=True):
        spread(known.treebank, s, sentences[s], tags, known.schema, chances)


def allowed_values(treebank: Treebank, schema: Schema, lexicon: AnalysisDictionary | None) -> NDArray[np.bool_]:
    """bool[n_words, n_values]: the values that words may have; all without a dictionary."""
    if lexicon is None:
        return np.ones((treebank.n_words, int(schema.starts[-1])), np.bool_)
    return lexicon.allowed(treebank, schema)


def spread(
    treebank: Treebank, s: int, sentence: Any, tags: NDArray[np.float64], schema: Schema, out: NDArray[np.float64]
) -> None:
    """Write beliefs of the values that the words of a sentence may have to the row of each word."""
    n_attributes = len(schema.names)
    counts = np.diff(sentence.starts)[n_attributes:]
    n = len(sentence.words) - 1
    word = np.repeat(np.repeat(np.arange(n), n_attributes), counts) + int(treebank.offsets[s])
    start = np.repeat(np.tile(schema.starts[:-1], n), counts)
    rows = slice(int(treebank.offsets[s]), int(treebank.offsets[s + 1]))
    out[rows] = 0.0
    out[word, start + sentence.values[n_attributes:]] = tags[n_attributes:]


def best_values(chances: NDArray[np.float64], schema: Schema) -> NDArray[np.int64]:
    """int64[n_words, n_attributes]: the value that is believed most."""
    starts = schema.starts.tolist()
    found = [chances[:, starts[a] : starts[a + 1]].argmax(axis=1) for a in range(len(schema.names))]
    return np.stack(found, axis=1).astype(np.int64)
